//! The columns of a table that tell from when to when its rows were current, and what they mean for its keys.

use std::borrow::Cow;

use engine_api::IndexId;

use crate::history::ColumnHistory;
use crate::model::{Column, Index, IndexPart, Table};

/// Positions of the two columns among a table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowTimes {
    /// When the row became current.
    pub start: usize,
    /// When it was replaced.
    pub end: usize,
}

impl Column {
    /// Whether no statement gives it values: it is generated, or tells the times of the row.
    pub fn is_computed(&self) -> bool {
        self.generated.is_some() || self.history.is_time()
    }

    /// Whether definitions and `*` leave it out.
    pub fn is_unlisted(&self) -> bool {
        let is_hidden = self.generated.as_ref().is_some_and(|generated| generated.hidden);
        is_hidden || self.history.is_undeclared_time()
    }
}

impl Table {
    /// The columns of the rows' times, if the table keeps history.
    pub fn row_times(&self) -> Option<RowTimes> {
        let at = |wanted: fn(ColumnHistory) -> bool| {
            self.columns.iter().position(|column| wanted(column.history))
        };
        let start = at(|history| matches!(history, ColumnHistory::RowStart { .. }))?;
        let end = at(|history| matches!(history, ColumnHistory::RowEnd { .. }))?;
        Some(RowTimes { start, end })
    }

    /// The parts in which no two rows are the same, if the index is unique.
    pub fn distinct_parts<'t>(&self, index: &'t Index) -> Cow<'t, [IndexPart]> {
        match self.end_part(index) {
            None => Cow::Borrowed(&index.parts),
            end => Cow::Owned(index.parts.iter().cloned().chain(end).collect()),
        }
    }

    /// The part that a unique index has after its own ones: the end of the row.
    pub(crate) fn end_part(&self, index: &Index) -> Option<IndexPart> {
        let column = self.row_times().filter(|_| index.unique)?.end;
        let has_it = index.parts.iter().any(|part| part.column == column);
        (!has_it).then_some(IndexPart { column, prefix_length: None, descending: false })
    }

    /// Whether the keys of an index begin with a part that its definition does not have.
    pub fn has_leading_part(&self, index: &Index) -> bool {
        index.id == IndexId::CLUSTERED && self.partition_column().is_some()
    }

    /// Whether the keys of an index are so many parts and then the end of the row.
    pub fn ends_with_time(&self, index: u32, parts: usize) -> bool {
        let found = self.indexes.iter().find(|known| known.id.0 == index);
        found.is_some_and(|index| index.parts.len() == parts && self.end_part(index).is_some())
    }
}
