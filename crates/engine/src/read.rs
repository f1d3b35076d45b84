//! Which version of a row a reader sees.

use engine_api::{EngineError, EngineResult};
use errors::Error;
use txn::{Snapshot, TxnSystem, UndoPointer, Visibility};

use crate::error::io_error;
use crate::keys::IndexKeys;
use crate::row::{Header, UndoEntry, append_record};

/// The versions that a reader sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// `None`: the newest version, committed or not.
    pub snapshot: Option<Snapshot>,
    /// Own versions are always seen; 0 for none.
    pub own: u64,
}

impl View {
    /// Whether this reader may trust every entry of a secondary leaf that `max_txn` changed last: live ones have a row, and that
    /// row has no other entry (E15).
    pub fn sees_entries(&self, max_txn: u64) -> bool {
        self.snapshot.is_some_and(|snapshot| max_txn < snapshot.low)
    }
}

fn damaged() -> EngineError {
    EngineError::Other(Error::internal("an undo entry is missing"))
}

/// Whether `view` sees the newest version, which is a record in place, by comparing numbers only. False if that does not decide it.
#[inline(always)]
pub(crate) fn sees_inline(system: &TxnSystem, view: &View, header: Header) -> bool {
    if header.is_deleted() || header.is_out_of_line() {
        return false;
    }
    let Some(snapshot) = &view.snapshot else { return true };
    matches!(system.visibility(snapshot, header.id(), view.own), Visibility::Visible)
}

/// Replaces `value`, the newest version, with the one that `view` sees. False if it sees none, or the row is deleted.
#[inline]
pub(crate) fn visible(system: &TxnSystem, view: &View, value: &mut Vec<u8>) -> EngineResult<bool> {
    let header = Header::of(value);
    let Some(snapshot) = &view.snapshot else { return Ok(!header.is_deleted()) };
    match system.visibility(snapshot, header.id(), view.own) {
        Visibility::Visible => Ok(!header.is_deleted()),
        Visibility::Hidden(core) => walk_back(system, snapshot, view.own, header, core, value),
    }
}

/// Replaces `value`, the newest version, with the one committed last. Returns whether one exists that is not deleted, and the ticket of its commit
/// unless that is long ago.
pub(crate) fn committed_version(
    system: &TxnSystem,
    value: &mut Vec<u8>,
) -> EngineResult<(bool, u64)> {
    let (mut payload, mut older) = (Vec::new(), Vec::new());
    loop {
        let header = Header::of(value);
        let Some(core) = system.find(header.id()) else { return Ok((!header.is_deleted(), 0)) };
        if let Some(ticket) = core.committed() {
            return Ok((!header.is_deleted(), ticket));
        }
        core.read_undo(UndoPointer(header.undo), &mut payload).ok_or_else(damaged)?;
        if !step_back(&payload, value, &mut older)? {
            return Ok((false, 0));
        }
    }
}

/// Replaces `value` with the previous version, from its undo entry. False if none exists.
fn step_back(entry: &[u8], value: &mut Vec<u8>, older: &mut Vec<u8>) -> EngineResult<bool> {
    let entry = UndoEntry::decode(entry).ok_or_else(damaged)?;
    let is_there = entry.before(value, older).ok_or_else(damaged)?;
    std::mem::swap(value, older);
    Ok(is_there)
}

fn walk_back(
    system: &TxnSystem,
    snapshot: &Snapshot,
    own: u64,
    mut header: Header,
    mut core: std::sync::Arc<txn::TxnState>,
    value: &mut Vec<u8>,
) -> EngineResult<bool> {
    let (mut payload, mut older) = (Vec::new(), Vec::new());
    loop {
        core.read_undo(UndoPointer(header.undo), &mut payload).ok_or_else(damaged)?;
        if !step_back(&payload, value, &mut older)? {
            return Ok(false);
        }
        header = Header::of(value);
        match system.visibility(snapshot, header.id(), own) {
            Visibility::Visible => return Ok(!header.is_deleted()),
            Visibility::Hidden(next) => core = next,
        }
    }
}

/// Whether some version that anyone may still see, from `value` on backwards, has the key `sql` (E4).
pub(crate) fn some_version_has_key(
    system: &TxnSystem,
    horizon: u64,
    keys: &IndexKeys,
    mut value: Vec<u8>,
    sql: &[u8],
) -> EngineResult<bool> {
    let (mut record, mut key) = (Vec::new(), Vec::new());
    let (mut payload, mut older) = (Vec::new(), Vec::new());
    loop {
        let header = Header::of(&value);
        if !header.is_deleted() {
            record.clear();
            append_record(&system.pool, &value, &mut record).map_err(io_error)?;
            if keys.has(&record, sql, &mut key)? {
                return Ok(true);
            }
        }
        let Some(core) = system.find(header.id()) else { return Ok(false) };
        if core.committed().is_some_and(|ticket| ticket < horizon) {
            return Ok(false);
        }
        core.read_undo(UndoPointer(header.undo), &mut payload).ok_or_else(damaged)?;
        if !step_back(&payload, &mut value, &mut older)? {
            return Ok(false);
        }
    }
}
