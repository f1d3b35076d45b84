//! System versioning: tables that keep the rows that UPDATE and DELETE replace. Each row says from when to when it was current; what is current now
//! ends at the last moment that a TIMESTAMP can tell. Unique keys end with that moment, so that only current rows clash.

use types::{DataType, DateTime, TypeKind, Value};

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
