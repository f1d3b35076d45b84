//! Inserts that are held back, so that many travel in one round trip.

use engine_api::EngineResult;
use sys::sync::Arc;

use crate::table::Table;
use crate::transaction::NdbEngineTransaction;

/// Rows sent together.
const ROWS_MAX: usize = 128;
/// Bytes of them.
const BYTES_MAX: usize = 128 << 10;

/// A row to be inserted.
pub(crate) struct NewRow {
    pub(crate) table: Arc<Table>,
    pub(crate) locator: Vec<u8>,
    pub(crate) record: Vec<u8>,
}

/// The rows held back.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) rows: Vec<NewRow>,
    bytes: usize,
    /// A statement that writes many rows runs, and takes a refusal at its end.
    pub(crate) is_open: bool,
    /// The row that was refused last.
    pub(crate) refused: Option<Vec<u8>>,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
        self.bytes = 0;
        self.is_open = false;
        self.refused = None;
    }

    /// Adds a row; true when it is time to send.
    pub(crate) fn push(&mut self, row: NewRow) -> bool {
        self.bytes += row.locator.len() + row.record.len();
        self.rows.push(row);
        self.rows.len() >= ROWS_MAX || self.bytes >= BYTES_MAX
    }

    pub(crate) fn take(&mut self) -> Vec<NewRow> {
        self.bytes = 0;
        std::mem::take(&mut self.rows)
    }
}

impl NdbEngineTransaction {
    /// Sends the rows that were held back.
    ///
    /// # Errors
    /// As `insert`: the statement must be undone.
    pub(crate) fn send_pending(&mut self) -> EngineResult<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let rows = self.pending.take();
        self.insert_rows(&rows)
    }
}
