//! Memory that a session keeps from statement to statement, so that a warm statement allocates nothing: the operators' storage, without
//! the operators.

use engine_api::{FoundRows, KeyList, RowBatch, RowBuf};
use types::Value;

/// Memory of a scan, reused from statement to statement.
#[derive(Default)]
pub(crate) struct ScanBuffers {
    pub(crate) batch: RowBatch,
    pub(crate) row: RowBuf,
    pub(crate) key: Vec<u8>,
    /// Where a list of keys was read.
    pub(crate) lookups: Option<Box<Lookups>>,
    pub(crate) is_used: bool,
}

/// Keys to look up, many in a call.
#[derive(Default)]
pub(crate) struct Lookups {
    pub(crate) keys: KeyList,
    /// The places of the keys in their order, each key once.
    pub(crate) order: Vec<u32>,
    /// The keys of one call.
    pub(crate) call: KeyList,
    pub(crate) found: FoundRows,
}

impl Lookups {
    /// Bytes held.
    pub(crate) fn size_bytes(&self) -> usize {
        self.keys.size_bytes() + self.call.size_bytes() + self.found.size_bytes()
    }
}

/// A row's place among the others.
pub(crate) struct Place {
    /// The first bytes of the key decide most comparisons.
    pub(crate) head: u64,
    pub(crate) key_start: u32,
    pub(crate) key_end: u32,
    pub(crate) row: u32,
}

/// Records with their sort keys, side by side. The memory is reused from statement to statement.
#[derive(Default)]
pub(crate) struct SortedRows {
    pub(crate) records: RowBatch,
    pub(crate) keys: Vec<u8>,
    pub(crate) places: Vec<Place>,
    /// The key after which no row is wanted.
    pub(crate) bound: Option<Vec<u8>>,
    pub(crate) charged: usize,
}

/// Buffers for making records.
#[derive(Default)]
pub(crate) struct RecordBuffers {
    pub(crate) old: Vec<Value>,
    pub(crate) new: Vec<Value>,
    pub(crate) record: Vec<u8>,
    /// The rows as triggers see them.
    pub(crate) old_row: Vec<Value>,
    pub(crate) new_row: Vec<Value>,
}

/// Buffers of a run.
#[derive(Default)]
pub(crate) struct RunBuffers {
    /// Those of scans that are closed.
    pub(crate) scans: Vec<ScanBuffers>,
    /// For making records.
    pub(crate) records: RecordBuffers,
    /// For keys that are built and used only once.
    pub(crate) key: Vec<u8>,
    /// For a row that is changed by its key.
    pub(crate) point: PointBuffers,
    /// A row that is logged, before and after. In a box, as most statements log nothing and move these buffers.
    pub(crate) logged: Option<Box<(Vec<Value>, Vec<Value>)>>,
    /// The last row that a walk took; nothing inside when it came to its end.
    pub(crate) walked: Option<Option<RowBuf>>,
}

/// A row that is changed through its key: the key, and the record as it was read.
#[derive(Default)]
pub(crate) struct PointBuffers {
    pub(crate) key: Vec<u8>,
    pub(crate) old: Vec<u8>,
}
