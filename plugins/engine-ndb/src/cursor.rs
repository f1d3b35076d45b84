//! Scans in the order of an index.

use engine_api::{
    Direction, EngineError, EngineResult, IndexId, RowBatch, RowLock, ScanSpec, WaitPolicy,
};
use sys::blocking::blocking;
use sys::sync::Arc;
use types::key::key_record_header;

use crate::shim::{Hold, NdbScan, Operation, ScanRange};
use crate::table::{Index, Table, split_entry};
use crate::transaction::{BATCH, NdbEngineTransaction, hold_of, mode_of};
use engine_api::Span;

/// Rows that a fragment sends at a time.
const FRAGMENT_BATCH_MAX: usize = 256;

/// An open scan.
pub(crate) struct Cursor {
    table: Arc<Table>,
    index: IndexId,
    /// `None`: the range can hold nothing.
    span: Option<Span>,
    backward: bool,
    lock: RowLock,
    wait: WaitPolicy,
    /// The caller reads only columns of the keys.
    only_keys: bool,
    /// Key of the last entry passed.
    position: Option<Vec<u8>>,
    done: bool,
    scan: Option<NdbScan>,
    /// The number of writes when the scan began: it does not see later ones.
    writes: u64,
}

impl Cursor {
    pub(crate) fn open(
        table: Arc<Table>,
        spec: &ScanSpec,
        only_keys: bool,
    ) -> EngineResult<Cursor> {
        if spec.index != IndexId::CLUSTERED {
            table.index(spec.index)?;
        }
        Ok(Cursor {
            table,
            index: spec.index,
            span: Span::of(&spec.range),
            backward: spec.direction == Direction::Backward,
            lock: spec.lock,
            wait: spec.wait,
            only_keys: only_keys && spec.index != IndexId::CLUSTERED && spec.lock == RowLock::None,
            position: None,
            done: false,
            scan: None,
            writes: 0,
        })
    }

    /// Ends the scan in the cluster; the next fetch begins another one behind the last entry.
    pub(crate) fn stop(&mut self) {
        self.scan = None;
    }
}

/// Keys and rows of one fetch from an index, which may be the rows themselves.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

impl NdbEngineTransaction {
    /// See `Transaction::fetch`.
    pub(crate) fn fetch_from(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let before = batch.len();
        while batch.len() == before && !cursor.done && limit > 0 {
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            let pairs = self.next_pairs(cursor, limit.min(BATCH))?;
            let Some((last, _)) = pairs.last() else {
                cursor.done = true;
                cursor.stop();
                break;
            };
            let position = last.clone();
            self.deliver(cursor, pairs, batch)?;
            cursor.position = Some(position);
        }
        Ok(batch.len() - before)
    }

    fn next_pairs(&mut self, cursor: &mut Cursor, limit: usize) -> EngineResult<Pairs> {
        let Some(span) = &cursor.span else { return Ok(Vec::new()) };
        if cursor.writes != self.writes {
            cursor.scan = None;
        }
        let keys = match cursor.index {
            IndexId::CLUSTERED => cursor.table.rows.clone(),
            id => cursor.table.index(id)?.entries.clone(),
        };
        loop {
            let mut scan = match cursor.scan.take() {
                Some(scan) => scan,
                None => {
                    let position = cursor.position.as_deref();
                    let (low, high) = match (position, cursor.backward) {
                        (Some(position), false) => (position, span.end.as_deref()),
                        (Some(position), true) => (span.start.as_slice(), Some(position)),
                        (None, _) => (span.start.as_slice(), span.end.as_deref()),
                    };
                    let range = ScanRange {
                        low: Some(low),
                        low_inclusive: position.is_none() || cursor.backward,
                        high,
                        descending: cursor.backward,
                        with_rows: true,
                        batch: limit.clamp(1, FRAGMENT_BATCH_MAX) as u32,
                    };
                    cursor.writes = self.writes;
                    self.with_ndb(|ndb| ndb.scan(&keys, &range))?
                }
            };
            let mut pairs = Vec::new();
            let read =
                blocking(|| scan.next(limit, |key, row| pairs.push((key.to_vec(), row.to_vec()))));
            match read {
                Ok(_) => {
                    cursor.scan = Some(scan);
                    return Ok(pairs);
                }
                Err(error) => {
                    drop(scan);
                    self.after_scan_failure(error)?;
                }
            }
        }
    }

    /// Puts the rows of entries into the batch, locked as the cursor asks.
    fn deliver(
        &mut self,
        cursor: &mut Cursor,
        pairs: Pairs,
        batch: &mut RowBatch,
    ) -> EngineResult<()> {
        let table = cursor.table.clone();
        let index = match cursor.index {
            IndexId::CLUSTERED => None,
            id => Some(table.index(id)?),
        };
        if let (Some(_), true) = (index, cursor.only_keys) {
            for (key, row) in &pairs {
                let (own, locator) = split_entry(key, row)?;
                batch.push_with(locator, |out| {
                    out.extend_from_slice(&key_record_header(own.len()));
                    out.extend_from_slice(own);
                    out.extend_from_slice(locator);
                });
            }
            return Ok(());
        }
        if let (None, RowLock::None) = (index, cursor.lock) {
            pairs.iter().for_each(|(locator, record)| batch.push(locator, record));
            return Ok(());
        }
        self.read_rows(cursor, &table, index, &pairs, batch)
    }

    fn read_rows(
        &mut self,
        cursor: &mut Cursor,
        table: &Table,
        index: Option<&Index>,
        pairs: &Pairs,
        batch: &mut RowBatch,
    ) -> EngineResult<()> {
        let hold = hold_of(cursor.lock);
        if hold != Hold::Nothing {
            self.fence(table)?;
        }
        let (mut reads, mut keys) = (Vec::new(), Vec::new());
        for (key, row) in pairs {
            let locator = match index {
                None => key.as_slice(),
                Some(_) => split_entry(key, row)?.1,
            };
            if let Some(mode) = mode_of(cursor.lock) {
                let name = crate::write::row_name(table.id(), locator);
                match self.lock(&name, mode, cursor.wait) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        cursor.stop();
                        return Err(error);
                    }
                }
            }
            reads.push(Operation::read(&table.rows, locator, hold));
            keys.push(key);
        }
        match hold {
            Hold::Nothing => self.execute(&mut reads)?,
            Hold::Shared | Hold::Exclusive if reads.is_empty() => {}
            Hold::Shared | Hold::Exclusive => self.read_locked(&mut reads, cursor.wait)?,
        }
        for (read, key) in reads.iter().zip(keys) {
            if read.code != 0 {
                continue;
            }
            if let Some(index) = index
                && index.entry(&read.row, &read.key)?.key != *key
            {
                // The row has changed since the entry was read.
                continue;
            }
            batch.push(&read.key, &read.row);
            if hold == Hold::Exclusive {
                self.hold(table.id(), &read.key, &read.row);
            }
        }
        Ok(())
    }
}
