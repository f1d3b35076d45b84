//! Rows are noted, and a round of the copy collects them.

use std::sync::Arc;

use engine_api::{EngineError, EngineResult, TableId};
use errors::Error;
use sys::model::breaks;
use sys::sync::Mutex;
use txn::Visibility;

use crate::error::{Failure, io_error};
use crate::read::View;
use crate::row::Header;
use crate::table::Table;
use crate::transaction::Txn;

use super::{RowNotes, each_key};

/// Rows between two checks for cancellation.
const CANCEL_EVERY: u64 = 4096;

impl Txn {
    /// Lets writers note the rows that they change, until this transaction ends.
    pub(crate) fn begin_notes(&mut self, id: TableId) -> EngineResult<()> {
        self.wait_for_losers(id)?;
        let table = self.table(id)?;
        if !table.builds.is_empty() || table.notes.is_some() {
            return Err(Error::internal("another change of this table is under way").into());
        }
        let log = || {
            let id = self.shared.system.log.draw();
            (id, self.shared.side_log(id))
        };
        let ((id, noted), (_, remove), (_, put)) = (log(), log(), log());
        let notes = Arc::new(RowNotes { id, noted, remove, put, failed: Mutex::new(None) });
        self.shared.dictionary.put(Arc::new(table.with_notes(notes)?));
        self.building = Some(table.id);
        Ok(())
    }

    pub(crate) fn notes_of(&mut self, id: TableId) -> EngineResult<Arc<RowNotes>> {
        let table = self.table(id)?;
        let notes = table.notes.clone();
        notes.ok_or_else(|| Error::internal("rows of this table are not noted").into())
    }

    /// See `Transaction::collect_noted`.
    pub(crate) fn collect_notes(&mut self, id: TableId) -> EngineResult<u64> {
        let table = self.table(id)?;
        let notes = self.notes_of(id)?;
        // Before the notes are read: see the module.
        let view = self.view()?;
        if let Some(error) = notes.failed.lock().take() {
            return Err(error);
        }
        let mut sorter = self.shared.sorter(notes.id);
        let mut left = notes.noted.left_bytes();
        let mut bytes = Vec::new();
        while left > 0 {
            notes.noted.take(&mut bytes).map_err(io_error)?;
            if bytes.is_empty() {
                break;
            }
            left = left.saturating_sub(bytes.len() as u64);
            each_key(&bytes, |key| sorter.add(key, 0).map_err(io_error))?;
            self.check_cancelled()?;
        }
        let (mut count, mut before) = (0_u64, Vec::new());
        sorter.finish(|key, _| -> Result<(), Failure> {
            if count > 0 && before == key {
                return Ok(());
            }
            before.clear();
            before.extend_from_slice(key);
            count += 1;
            if count.is_multiple_of(CANCEL_EVERY) {
                self.check_cancelled()?;
            }
            if !self.is_newest_seen(&table, &view, key)? && !breaks("keep notes of open changes") {
                notes.noted.note_key(key)?;
            }
            notes.remove.note_key(key)?;
            notes.put.note_key(key)?;
            Ok(())
        })?;
        Ok(count)
    }

    fn check_cancelled(&self) -> EngineResult<()> {
        if self.cancel.is_cancelled() { Err(EngineError::Cancelled) } else { Ok(()) }
    }

    /// Whether `view` sees the newest version of a row, or that it is deleted.
    fn is_newest_seen(&self, table: &Table, view: &View, key: &[u8]) -> EngineResult<bool> {
        let (system, mut value) = (&self.shared.system, Vec::new());
        if !table.clustered.get(&system.pool, key, &mut value).map_err(io_error)? {
            return Ok(true);
        }
        let Some(snapshot) = &view.snapshot else { return Ok(true) };
        let newest = system.visibility(snapshot, Header::of(&value).id(), view.own);
        Ok(matches!(newest, Visibility::Visible))
    }

    /// See `Transaction::delete_equal`.
    pub(crate) fn delete_row_equal(
        &mut self,
        table: &Arc<Table>,
        record: &[u8],
    ) -> EngineResult<()> {
        if table.primary.is_none() {
            return Err(Error::internal("rows without a key are found by nothing").into());
        }
        let mut locator = Vec::new();
        self.write_locator(table, record, &mut locator)?;
        self.delete_row(table, &locator)?;
        self.inserted = locator;
        Ok(())
    }
}
