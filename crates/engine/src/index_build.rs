//! Building indexes while others change the table.
//!
//! From `begin` on every writer records in a side log how each change affects the index's entries. The newest versions of all rows are
//! read, sorted and built into a tree bottom up; these rows may already contain changes that are in the side log too. Then the records of the side log are
//! applied in order: an entry with records ends as its last record says, any other stays as it was read. Only for the last
//! records must the table have no writers. Equal keys of a unique index are suspects until then: one of them may have been deleted in the meantime.

mod build;

use btree::Tree;
use engine_api::{EngineError, EngineResult, IndexDef};
use sys::model::breaks;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

use crate::entry::{Entry, check_length, without};
use crate::error::io_error;
use crate::keys::IndexKeys;
use crate::side_log::{Change, SideLog};

/// Flag next to the length of an entry's columns while it is sorted.
const HAS_NULL: u16 = 1 << 15;
/// The most equal keys of a unique index that are checked again at the end; beyond that number they are duplicates at once.
const SUSPECTS_MAX: usize = 1000;
/// Keys between two checks for cancellation.
const CANCEL_EVERY: u64 = 4096;
/// Bytes of notes that may be left for the time when the table is quiet.
const QUIET_BYTES_MAX: u64 = 64 << 10;
/// Rounds of catching up after which the rest is left for that time, however much it is: writers are faster.
const ROUNDS_MAX: usize = 64;

/// An index that is being built.
pub(crate) struct IndexBuild {
    pub def: IndexDef,
    pub keys: IndexKeys,
    tree: Tree,
    page_bytes: usize,
    log: SideLog,
    /// An error of a writer's note: it ends the build, not the writer.
    failed: Mutex<Option<EngineError>>,
    suspects: Mutex<Vec<Vec<u8>>>,
    /// Entries read, and put into the tree.
    read: AtomicU64,
    put: AtomicU64,
}

impl IndexBuild {
    /// Notes how a change of a row, from one record to another, affects the index.
    pub fn note_row(&self, old: Option<&[u8]>, new: Option<&[u8]>, locator: &[u8]) {
        let noted = self.try_note(old, new, locator, |_| Ok(Change::Mark));
        noted.unwrap_or_else(|error| self.fail(error));
    }

    /// Notes that a change is undone. `has_version` says whether an older version has the key of the removed entry.
    pub fn note_undo(
        &self,
        gone: Option<&[u8]>,
        back: Option<&[u8]>,
        locator: &[u8],
        has_version: impl Fn(&Entry) -> EngineResult<bool>,
    ) -> EngineResult<()> {
        let left = |entry: &Entry| {
            has_version(entry).map(|has| if has { Change::Mark } else { Change::Remove })
        };
        let noted = self.try_note(gone, back, locator, left);
        noted.or_else(|error| {
            self.fail(error);
            Ok(())
        })
    }

    fn try_note(
        &self,
        old: Option<&[u8]>,
        new: Option<&[u8]>,
        locator: &[u8],
        left: impl Fn(&Entry) -> EngineResult<Change>,
    ) -> EngineResult<()> {
        let make = |record: Option<&[u8]>| -> EngineResult<Vec<Entry>> {
            let Some(record) = record else { return Ok(Vec::new()) };
            let entries = Entry::all(&self.keys, record, locator)?;
            entries.iter().try_for_each(|entry| check_length(self.page_bytes, entry))?;
            Ok(entries)
        };
        let (old, new) = (make(old)?, make(new)?);
        if old == new || breaks("note changes for builds") {
            return Ok(());
        }
        for gone in without(&old, &new) {
            self.log.note(left(gone)?, gone).map_err(io_error)?;
        }
        for added in without(&new, &old) {
            self.log.note(Change::Put, added).map_err(io_error)?;
        }
        Ok(())
    }

    fn fail(&self, error: EngineError) {
        self.failed.lock().get_or_insert(error);
    }

    fn check(&self) -> EngineResult<()> {
        self.failed.lock().take().map_or(Ok(()), Err)
    }

    fn suspect(&self, sql: &[u8], locator: &[u8]) -> EngineResult<()> {
        let mut suspects = self.suspects.lock();
        if suspects.iter().any(|known| known == sql) {
            return Ok(());
        }
        if suspects.len() == SUSPECTS_MAX {
            let locator = locator.to_vec();
            return Err(EngineError::DuplicateKey { index: self.def.id, locator });
        }
        suspects.push(sql.to_vec());
        Ok(())
    }

    /// The progress of the build.
    pub fn progress(&self) -> [(&'static str, u64); 4] {
        [
            ("rows_read", self.read.load(Ordering::Relaxed)),
            ("entries_built", self.put.load(Ordering::Relaxed)),
            ("noted_bytes", self.log.total_bytes()),
            ("noted_bytes_left", self.log.left_bytes()),
        ]
    }
}
