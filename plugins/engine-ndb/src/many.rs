//! Reads of many keys in few round trips.

use engine_api::{
    EngineResult, FoundRows, GetOutcome, IndexId, KeyList, RowBuf, RowLock, RowRef, WaitPolicy,
};
use sys::sync::Arc;

use crate::shim::{Hold, Operation};
use crate::table::{Table, split_entry};
use crate::transaction::{BATCH, NdbEngineTransaction, hold_of, mode_of};

impl NdbEngineTransaction {
    /// Shows `each` the rows of clustered keys, with the place of the key. Rows that are locked and to be skipped are left out.
    pub(crate) fn get_many_clustered(
        &mut self,
        table: &Arc<Table>,
        keys: &[&[u8]],
        lock: RowLock,
        wait: WaitPolicy,
        mut each: impl FnMut(usize, RowRef<'_>),
    ) -> EngineResult<()> {
        let hold = hold_of(lock);
        if hold != Hold::Nothing {
            self.fence(table)?;
        }
        for (chunk, keys) in keys.chunks(BATCH).enumerate() {
            let mut reads = Vec::with_capacity(keys.len());
            let mut places = Vec::with_capacity(keys.len());
            for (at, key) in keys.iter().enumerate() {
                if let Some(mode) = mode_of(lock) {
                    let name = crate::write::row_name(table.id(), key);
                    if !self.lock(&name, mode, wait)? {
                        continue;
                    }
                }
                reads.push(Operation::read(&table.rows, key, hold));
                places.push(chunk * BATCH + at);
            }
            match hold {
                Hold::Nothing => self.execute(&mut reads)?,
                Hold::Shared | Hold::Exclusive if reads.is_empty() => {}
                Hold::Shared | Hold::Exclusive => self.read_locked(&mut reads, wait)?,
            }
            for (read, place) in reads.iter().zip(places).filter(|(read, _)| read.code == 0) {
                each(place, RowRef { locator: &read.key, record: &read.row });
                if hold == Hold::Exclusive {
                    self.hold(table.id(), &read.key, &read.row);
                }
            }
        }
        Ok(())
    }

    /// As `get` of each key of a unique secondary index: their entries first, then the rows. A row that was changed in between is looked up again.
    pub(crate) fn get_many_secondary(
        &mut self,
        table: &Arc<Table>,
        index: IndexId,
        keys: &KeyList,
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut FoundRows,
    ) -> EngineResult<()> {
        let entries = table.index(index)?.entries.clone();
        let mut reads: Vec<Operation> =
            keys.iter().map(|key| Operation::read(&entries, key, Hold::Nothing)).collect();
        for reads in reads.chunks_mut(BATCH) {
            self.execute(reads)?;
        }
        let (mut places, mut locators) = (Vec::new(), Vec::new());
        for (at, read) in reads.iter().enumerate().filter(|(_, read)| read.code == 0) {
            places.push(at);
            locators.push(split_entry(&read.key, &read.row)?.1);
        }
        let mut rows: Vec<Option<RowBuf>> = vec![None; locators.len()];
        self.get_many_clustered(table, &locators, lock, wait, |at, row| {
            let (locator, record) = (row.locator.to_vec(), row.record.to_vec());
            rows[at] = Some(RowBuf { locator, record });
        })?;
        for (at, row) in places.into_iter().zip(rows) {
            let key = keys.key(at);
            let is_skipped = row.is_none() && wait == WaitPolicy::SkipLocked;
            let same = match &row {
                Some(row) => table.index(index)?.entry(&row.record, &row.locator)?.key == key,
                None => false,
            };
            let mut row = row.unwrap_or_default();
            if is_skipped {
                continue;
            }
            if same
                || self.get_secondary(table, index, key, lock, wait, &mut row)? == GetOutcome::Found
            {
                out.put(at, row.as_row());
            }
        }
        Ok(())
    }
}
