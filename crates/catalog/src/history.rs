//! System versioning: tables that keep the rows that UPDATE and DELETE replace. Each row says from when to when it was current; what is current now
//! ends at the last moment that a TIMESTAMP can tell. Unique keys end with that moment, so that only current rows clash.

use std::borrow::Cow;

use engine_api::IndexId;
use types::{DataType, DateTime, TypeKind, Value};

use crate::model::{Column, Index, IndexPart, Table};

/// What a table that keeps history does with a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnHistory {
    /// A change of it is kept.
    #[default]
    Kept,
    /// WITHOUT SYSTEM VERSIONING: an UPDATE of such columns alone leaves no old row.
    NotKept,
    /// It tells when the row became current. `declared`: the statement defined it, else it is hidden.
    RowStart {
        /// GENERATED ALWAYS AS ROW START.
        declared: bool,
    },
    /// It tells when the row was replaced.
    RowEnd {
        /// GENERATED ALWAYS AS ROW END.
        declared: bool,
    },
}

/// Names of the columns that a table gets when the statement defines none.
pub const ROW_START: &str = "row_start";
/// As `ROW_START`.
pub const ROW_END: &str = "row_end";

/// Numbers in the dictionary.
const NUMBERS: [(ColumnHistory, u64); 6] = [
    (ColumnHistory::Kept, 0),
    (ColumnHistory::NotKept, 1),
    (ColumnHistory::RowStart { declared: false }, 2),
    (ColumnHistory::RowEnd { declared: false }, 3),
    (ColumnHistory::RowStart { declared: true }, 4),
    (ColumnHistory::RowEnd { declared: true }, 5),
];

impl ColumnHistory {
    /// Whether the server alone gives it values.
    pub fn is_time(self) -> bool {
        matches!(self, ColumnHistory::RowStart { .. } | ColumnHistory::RowEnd { .. })
    }

    /// Whether the table has it without its definition saying so: statements read it by name, and nothing else shows it.
    pub fn is_undeclared_time(self) -> bool {
        matches!(
            self,
            ColumnHistory::RowStart { declared: false } | ColumnHistory::RowEnd { declared: false }
        )
    }

    pub(crate) fn number(self) -> u64 {
        NUMBERS.iter().find(|(known, _)| *known == self).map_or(0, |(_, number)| *number)
    }

    pub(crate) fn numbered(number: u64) -> Option<ColumnHistory> {
        NUMBERS.iter().find(|(_, known)| *known == number).map(|(known, _)| *known)
    }
}

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
}

/// The type of the two columns.
pub fn row_time_type() -> DataType {
    DataType::new(TypeKind::Timestamp, 26, 6).with_nullable(false)
}

/// The end of rows that are current.
pub fn never() -> Value {
    /// 2038-01-19 03:14:07.999999 UTC, in microseconds since 1970.
    const LAST_MICROS: i64 = i32::MAX as i64 * 1_000_000 + 999_999;
    Value::DateTime(DateTime::from_unix_micros(LAST_MICROS).unwrap_or(DateTime::ZERO))
}
