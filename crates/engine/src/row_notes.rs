//! Rows of a table that others change while its rows are copied.
//!
//! Writers note the locator of each row that they change, before they commit. A round of the copy takes a snapshot and then collects the notes:
//! every row that this snapshot and an earlier round's see differently is among them, or was left noted by that round because its newest version was not
//! committed for its snapshot. Rolled back changes need no note: no snapshot ever saw them.

mod rounds;

use engine_api::{EngineError, EngineResult, NotedPass, RowBatch};
use errors::Error;
use stdx::bytes::Reader;
use sys::model::breaks;
use sys::sync::Mutex;

use crate::error::io_error;
use crate::side_log::{SideLog, read_change};

/// The notes of one table.
pub(crate) struct RowNotes {
    /// Names its files.
    id: u64,
    noted: SideLog,
    /// The collected rows that are still to be returned, for each pass.
    remove: SideLog,
    put: SideLog,
    /// An error of a writer's note: it ends the copy, not the writer.
    failed: Mutex<Option<EngineError>>,
}

impl RowNotes {
    /// Notes that a row has been changed.
    #[cold]
    pub fn note(&self, locator: &[u8]) {
        if breaks("note changed rows") {
            return;
        }
        if let Err(error) = self.noted.note_key(locator) {
            self.failed.lock().get_or_insert(io_error(error));
        }
    }

    /// See `Transaction::next_noted`.
    pub fn next(&self, pass: NotedPass, out: &mut RowBatch) -> EngineResult<()> {
        out.clear();
        let log = match pass {
            NotedPass::Remove => &self.remove,
            NotedPass::Put => &self.put,
        };
        let mut bytes = Vec::new();
        log.take(&mut bytes).map_err(io_error)?;
        each_key(&bytes, |key| {
            out.push(key, &[]);
            Ok(())
        })
    }
}

/// Calls back for each key in bytes that a side log returned.
fn each_key(bytes: &[u8], mut visit: impl FnMut(&[u8]) -> EngineResult<()>) -> EngineResult<()> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let (_, entry) =
            read_change(&mut reader).ok_or_else(|| Error::internal("damaged notes of rows"))?;
        visit(&entry.key)?;
    }
    Ok(())
}
