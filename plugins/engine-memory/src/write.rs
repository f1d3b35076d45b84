//! Inserting, updating and deleting rows: uniqueness, gap locks of others, versions, undo.

use engine_api::{EngineError, EngineResult, IndexId, TableId};
use locks::Mode;
use sys::sync::Arc;
use sys::sync::atomic::Ordering;

use crate::key::Key;
use crate::status::{LockName, Obstacle, row_name};
use crate::table::{Index, Row, Table, TableData, Version};
use crate::transaction::{MemoryTransaction, Undo};
use engine_api::Span;

impl MemoryTransaction {
    pub(crate) fn insert_row(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        let table = self.table(table)?;
        let mut locator = Vec::new();
        loop {
            let mut data = table.data.write();
            if locator.is_empty() {
                match &data.clustered {
                    Some(keys) => keys.append(record, &mut locator).map(|_| ())?,
                    None => {
                        let row_id = table.next_row_id.fetch_add(1, Ordering::Relaxed);
                        locator.extend_from_slice(&row_id.to_be_bytes());
                    }
                }
            }
            let free = self.check_locator_free(&table, &data, &locator);
            match free.and_then(|()| self.check_entries(&table, &data, record, &locator, None)) {
                Ok(()) => {
                    self.push_version(&table, &mut data, &locator, Some(record))?;
                    self.inserted = locator;
                    return Ok(());
                }
                Err(obstacle) => {
                    drop(data);
                    self.wait_for(obstacle, Mode::Shared)?;
                }
            }
        }
    }

    pub(crate) fn update_row(
        &mut self,
        table: TableId,
        locator: &[u8],
        record: &[u8],
    ) -> EngineResult<()> {
        let table = self.table(table)?;
        let mut new_locator = Vec::new();
        loop {
            let mut data = table.data.write();
            if let Err(name) = self.own_row(&table, &data, locator)? {
                drop(data);
                self.wait_for(Obstacle::Row(name), Mode::Exclusive)?;
                continue;
            }
            new_locator.clear();
            match &data.clustered {
                Some(keys) => keys.append(record, &mut new_locator).map(|_| ())?,
                None => new_locator.extend_from_slice(locator),
            }
            let moved = new_locator != locator;
            let free = match moved {
                true => self.check_locator_free(&table, &data, &new_locator),
                false => Ok(()),
            };
            let checked = free.and_then(|()| {
                self.check_entries(&table, &data, record, &new_locator, Some(locator))
            });
            match checked {
                Ok(()) => {
                    if moved {
                        self.push_version(&table, &mut data, locator, None)?;
                    }
                    return self.push_version(&table, &mut data, &new_locator, Some(record));
                }
                Err(obstacle) => {
                    drop(data);
                    self.wait_for(obstacle, Mode::Shared)?;
                }
            }
        }
    }

    pub(crate) fn delete_row(&mut self, table: TableId, locator: &[u8]) -> EngineResult<()> {
        let table = self.table(table)?;
        loop {
            let mut data = table.data.write();
            match self.own_row(&table, &data, locator)? {
                Ok(()) => return self.push_version(&table, &mut data, locator, None),
                Err(name) => {
                    drop(data);
                    self.wait_for(Obstacle::Row(name), Mode::Exclusive)?;
                }
            }
        }
    }

    /// Locks a live row exclusively; the inner error names the obstacle to wait for.
    fn own_row(
        &mut self,
        table: &Table,
        data: &TableData,
        locator: &[u8],
    ) -> EngineResult<Result<(), LockName>> {
        let row = data.rows.get(locator).ok_or(EngineError::RowNotFound)?;
        if !self.try_lock_row(table.id, locator, row, Mode::Exclusive) {
            return Ok(Err(row_name(table.id, locator)));
        }
        if row.is_live() { Ok(Ok(())) } else { Err(EngineError::RowNotFound) }
    }

    /// Whether a row may appear at `locator`.
    fn check_locator_free(
        &mut self,
        table: &Table,
        data: &TableData,
        locator: &[u8],
    ) -> Result<(), Obstacle> {
        let status = self.status();
        if let Some(row) = data.rows.get(locator) {
            let name = row_name(table.id, locator);
            let foreign = row.head.writer.id != status.id;
            if row.is_live() || (foreign && row.head.writer.is_active()) {
                if !self.try_lock_row(table.id, locator, row, Mode::Shared) {
                    return Err(Obstacle::Row(name));
                }
                return Err(duplicate(IndexId::CLUSTERED, locator));
            }
            if foreign && self.shared.locks.is_locked_by_other(Some(&status.owner), &name) {
                return Err(Obstacle::Row(name));
            }
        }
        self.check_gaps(table, IndexId::CLUSTERED, locator)
    }

    /// Whether the secondary entries of `record` may appear. `old` is the row's present locator, for an update.
    fn check_entries(
        &mut self,
        table: &Table,
        data: &TableData,
        record: &[u8],
        locator: &[u8],
        old: Option<&[u8]>,
    ) -> Result<(), Obstacle> {
        let old_record = old.and_then(|old| data.rows.get(old)?.head.record.as_deref());
        let (mut key, mut scratch) = (Vec::new(), Vec::new());
        for index in &data.indexes {
            let mut check = |key: &mut Vec<u8>, has_null: bool| -> Result<(), Obstacle> {
                if let Some(old_record) = old_record
                    && old == Some(locator)
                    && index.keys.matches(old_record, key, &mut scratch)?
                {
                    return Ok(());
                }
                if index.def.unique && !has_null {
                    self.check_unique(table, data, index, key, old)?;
                }
                key.extend_from_slice(locator);
                self.check_gaps(table, index.def.id, key)
            };
            let mut outcome = Ok(());
            index.keys.for_each(record, &mut key, |key, has_null| {
                if outcome.is_ok() {
                    outcome = check(key, has_null);
                }
                Ok(())
            })?;
            outcome?;
        }
        Ok(())
    }

    /// Whether no other transaction locks the gap into which a key would go. The caller holds the latch exclusively.
    fn check_gaps(&mut self, table: &Table, index: IndexId, key: &[u8]) -> Result<(), Obstacle> {
        let status = self.status();
        let space = table.gap_space(index);
        let blockers = self.shared.locks.range_blockers(Some(&status.owner), space, key);
        if blockers.is_empty() { Ok(()) } else { Err(Obstacle::Transactions(blockers)) }
    }

    fn check_unique(
        &mut self,
        table: &Table,
        data: &TableData,
        index: &Index,
        key: &[u8],
        own_locator: Option<&[u8]>,
    ) -> Result<(), Obstacle> {
        let own = self.status().id;
        let span = Span::prefix(key);
        let Some(bounds) = span.bounds_after(None, false) else { return Ok(()) };
        let mut scratch = Vec::new();
        for (entry, sql_length) in index.entries.range::<[u8], _>(bounds) {
            let (sql, locator) = entry.as_slice().split_at(*sql_length as usize);
            if sql != key || Some(locator) == own_locator {
                continue;
            }
            let Some(row) = data.rows.get(locator) else { continue };
            let settled = row.head.writer.id == own || !row.head.writer.is_active();
            let head_matches =
                record_matches(index, row.head.record.as_deref(), key, &mut scratch)?;
            if settled && !head_matches {
                continue;
            }
            if !settled && !head_matches {
                let before = row.newest_settled(own).and_then(|v| v.record.as_deref());
                if !record_matches(index, before, key, &mut scratch)? {
                    continue;
                }
            }
            if !self.try_lock_row(table.id, locator, row, Mode::Shared) {
                return Err(Obstacle::Row(row_name(table.id, locator)));
            }
            return Err(duplicate(index.def.id, locator));
        }
        Ok(())
    }

    /// Makes a new newest version. Everything was checked.
    fn push_version(
        &mut self,
        table: &Arc<Table>,
        data: &mut TableData,
        locator: &[u8],
        record: Option<&[u8]>,
    ) -> EngineResult<()> {
        let writer = self.status();
        if let Some(record) = record {
            data.add_entries(record, locator)?;
            data.data_bytes += record.len() as i64;
        }
        writer.owner.add_weight();
        let is_live = record.is_some();
        let version = Version { writer, record: record.map(Box::from) };
        let (was_live, had_row) = match data.rows.get_mut(locator) {
            Some(row) => {
                let was_live = row.is_live();
                row.older.push(std::mem::replace(&mut row.head, version));
                (was_live, true)
            }
            None => {
                let row = Row { head: version, older: Vec::new() };
                data.rows.insert(Key::new(locator), row);
                (false, false)
            }
        };
        table.live_rows.fetch_add(i64::from(is_live) - i64::from(was_live), Ordering::Relaxed);
        self.undo.push(Undo::Row {
            table: table.clone(),
            locator: Key::new(locator),
            has_history: had_row || !is_live,
        });
        Ok(())
    }
}

fn record_matches(
    index: &Index,
    record: Option<&[u8]>,
    key: &[u8],
    scratch: &mut Vec<u8>,
) -> EngineResult<bool> {
    record.map_or(Ok(false), |record| index.keys.matches(record, key, scratch))
}

fn duplicate(index: IndexId, locator: &[u8]) -> Obstacle {
    Obstacle::Error(EngineError::DuplicateKey { index, locator: locator.to_vec() })
}

/// Takes back the newest version of a row.
pub(crate) fn undo_row(table: &Table, locator: &[u8]) {
    let mut data = table.data.write();
    let Some(row) = data.rows.get_mut(locator) else { return };
    let was_live = row.is_live();
    let (gone, is_live) = match row.older.pop() {
        Some(before) => {
            let gone = std::mem::replace(&mut row.head, before);
            (Some(gone), row.is_live())
        }
        None => (data.rows.remove(locator).map(|row| row.head), false),
    };
    table.live_rows.fetch_add(i64::from(is_live) - i64::from(was_live), Ordering::Relaxed);
    if let Some(record) = gone.and_then(|version| version.record) {
        data.data_bytes -= record.len() as i64;
        // The record was indexed when it was written, so its keys can be made again.
        let _ = data.remove_entries(&record, locator);
    }
}
