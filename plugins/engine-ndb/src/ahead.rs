//! Rows that are read together because a statement will ask for them one by one.

use std::collections::HashMap;

use engine_api::{EngineResult, IndexId, KeyBound, KeyRange, TableId};
use types::key::fixed_width;

use crate::cursor::Cursor;
use crate::shim::{Hold, Operation};
use crate::table::Table;
use crate::transaction::{BATCH, NdbEngineTransaction};

/// Keys read ahead at most.
const KEYS_MAX: usize = 4_096;

/// The rows.
#[derive(Default)]
pub(crate) struct Ahead {
    rows: HashMap<(TableId, Vec<u8>), Option<Vec<u8>>>,
    /// The number of writes before which they were read.
    writes: u64,
}

impl Ahead {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.rows.clear();
    }
}

/// Bytes of each clustered key; `None` where they differ.
fn key_width(table: &Table) -> Option<usize> {
    let primary = table.def.primary()?;
    let widths = primary.parts.iter().map(|part| {
        let column = table.def.columns.get(part.column)?;
        fixed_width(&column.ty).filter(|_| part.prefix_length.is_none())
    });
    widths.sum()
}

/// The key, if the range holds no other.
fn only_key(range: &KeyRange, width: usize) -> Option<&[u8]> {
    let (KeyBound::Included(low), KeyBound::Included(high)) = (&range.lower, &range.upper) else {
        return None;
    };
    (low == high && low.len() == width).then_some(low)
}

impl NdbEngineTransaction {
    /// Reads the rows of ranges that are one clustered key each, many in a round trip.
    pub(crate) fn read_ahead(
        &mut self,
        table: TableId,
        index: IndexId,
        ranges: &[KeyRange],
    ) -> EngineResult<()> {
        self.ahead.clear();
        if index != IndexId::CLUSTERED {
            return Ok(());
        }
        let table = self.table(table)?;
        let Some(width) = key_width(&table) else { return Ok(()) };
        let keys = ranges.iter().take(KEYS_MAX).filter_map(|range| only_key(range, width));
        let mut reads: Vec<Operation> =
            keys.map(|key| Operation::read(&table.rows, key, Hold::Nothing)).collect();
        for reads in reads.chunks_mut(BATCH) {
            self.execute(reads)?;
        }
        self.ahead.writes = self.writes;
        let rows = reads.into_iter().map(|read| {
            let row = (read.code == 0).then_some(read.row);
            ((table.id(), read.key), row)
        });
        self.ahead.rows.extend(rows);
        Ok(())
    }

    /// Gives a cursor its only row, if it was read ahead.
    pub(crate) fn take_ahead(&mut self, cursor: &mut Cursor) {
        if self.ahead.writes != self.writes {
            self.ahead.clear();
            return;
        }
        let Some((table, key)) = cursor.only_key() else { return };
        if let Some((key, row)) = self.ahead.rows.remove_entry(&(table, key.to_vec())) {
            cursor.set_only(row.map(|row| (key.1, row)));
        }
    }
}
