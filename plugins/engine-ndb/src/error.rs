//! NDB's errors, and what they become.

use engine_api::EngineError;
use errors::{Error, ErrorCode};

/// NDB's number, and what it says of the transaction.
#[derive(Clone, Debug)]
pub(crate) struct NdbError {
    pub(crate) code: i32,
    /// 1 temporary, 2 permanent, 3 the result is unknown.
    pub(crate) status: i32,
    pub(crate) is_aborted: bool,
    pub(crate) text: String,
}

/// No row has the key.
pub(crate) const NO_ROW: i32 = 626;
/// A row has the key.
pub(crate) const DUPLICATE: i32 = 630;
/// Another transaction has a lock, and the operation does not wait.
pub(crate) const LOCKED: i32 = 635;
/// No such table: the numbers of the dictionary and of the client.
const NO_TABLE: [i32; 2] = [709, 723];
/// The definition of a table that another client has changed or dropped.
const OUTDATED: [i32; 6] = [241, 283, 284, 1225, 1226, 1227];
/// The table is there already.
const EXISTS: i32 = 721;
/// A wait for a lock was too long: the transaction is gone.
const WAITED: [i32; 2] = [266, 274];
/// The cluster is gone, or this client is cut off.
const CUT_OFF: [i32; 1] = [4009];
/// DataMemory is full.
const FULL: [i32; 3] = [826, 827, 921];

/// 1412: the definition is not the one that the caller works with.
pub(crate) fn outdated() -> Error {
    Error::with(ErrorCode::TABLE_DEF_CHANGED, &[])
}

impl NdbError {
    /// A row that a transaction needs to be run again is locked.
    pub(crate) fn locked() -> NdbError {
        let text = "A row of a transaction that is run again is locked".to_owned();
        NdbError { code: LOCKED, status: 1, is_aborted: true, text }
    }

    pub(crate) fn is_temporary(&self) -> bool {
        self.status == 1
    }

    pub(crate) fn is_no_table(&self) -> bool {
        NO_TABLE.contains(&self.code)
    }

    /// Another server has changed or dropped the table.
    fn is_outdated(&self) -> bool {
        OUTDATED.contains(&self.code) || self.is_no_table()
    }

    pub(crate) fn is_existing(&self) -> bool {
        self.code == EXISTS
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        CUT_OFF.contains(&self.code)
    }

    pub(crate) fn is_lock_wait(&self) -> bool {
        WAITED.contains(&self.code)
    }

    pub(crate) fn is_full(&self) -> bool {
        FULL.contains(&self.code)
    }

    /// A transaction may be run again: it left nothing, and the next try may succeed.
    pub(crate) fn may_repeat(&self) -> bool {
        self.is_temporary() && !self.is_lock_wait() && !self.is_outdated() || self.is_cut_off()
    }

    /// Whether nobody knows if the commit that met it happened.
    pub(crate) fn is_unknown(&self) -> bool {
        self.status == 3
    }

    /// The words for a client.
    pub(crate) fn word(&self) -> Error {
        if self.is_outdated() {
            return outdated();
        }
        match self.is_full() {
            true => Error::with(ErrorCode::RECORD_FILE_FULL, &[&"NDB"]),
            false => Error::with(ErrorCode::GET_ERRMSG, &[&self.code, &self.text, &"NDBCLUSTER"]),
        }
    }

    /// The words for a client whose transaction is over.
    pub(crate) fn word_loss(&self) -> Error {
        Error::with(ErrorCode::GET_TEMPORARY_ERRMSG, &[&self.code, &self.text, &"NDBCLUSTER"])
    }

    /// As the engine's error; the caller has ended the transaction if it was aborted.
    pub(crate) fn into_engine(self) -> EngineError {
        match self.is_lock_wait() {
            true => EngineError::Deadlock,
            false => EngineError::Other(self.word()),
        }
    }
}
