//! `mysql.general_log` and `mysql.slow_log`: the last entries, in memory of bounded size.

use std::collections::VecDeque;

use errors::{Error, ErrorCode, Result};
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable, TableEditor};
use sys::sync::Mutex;
use types::{CollationId, DataType, TypeKind, Value};

/// Entries that a table keeps: the oldest give way.
const ROWS_MAX: usize = 10_000;
/// Bytes of their values likewise.
const BYTES_MAX: usize = 16 << 20;
/// Bytes of a value in memory besides its text.
const VALUE_BYTES: usize = 24;

#[derive(Debug, Default)]
struct Rows {
    rows: VecDeque<Vec<Value>>,
    bytes: usize,
}

/// A table of log entries.
#[derive(Debug)]
pub(crate) struct LogTable {
    name: &'static str,
    columns: Vec<InfoColumn>,
    kept: Mutex<Rows>,
}

fn column(name: &'static str, kind: TypeKind, length: u32) -> InfoColumn {
    let mut ty = DataType::new(kind, length, 0);
    if ty.is_text() {
        ty.collation = CollationId::UTF8MB3_GENERAL_CI;
    }
    if matches!(kind, TypeKind::DateTime | TypeKind::Time) {
        ty.decimals = 6;
    }
    ty.nullable = false;
    InfoColumn { name, ty }
}

fn unsigned(name: &'static str, kind: TypeKind, length: u32) -> InfoColumn {
    let mut column = column(name, kind, length);
    column.ty.unsigned = true;
    column
}

impl LogTable {
    pub(crate) fn general() -> LogTable {
        let columns = vec![
            column("event_time", TypeKind::DateTime, 26),
            column("user_host", TypeKind::MediumText, 16_777_215),
            unsigned("thread_id", TypeKind::BigInt, 20),
            unsigned("server_id", TypeKind::Int, 10),
            column("command_type", TypeKind::VarChar, 64),
            column("argument", TypeKind::MediumBlob, 16_777_215),
        ];
        LogTable { name: "general_log", columns, kept: Mutex::default() }
    }

    pub(crate) fn slow() -> LogTable {
        let columns = vec![
            column("start_time", TypeKind::DateTime, 26),
            column("user_host", TypeKind::MediumText, 16_777_215),
            column("query_time", TypeKind::Time, 17),
            column("lock_time", TypeKind::Time, 17),
            column("rows_sent", TypeKind::Int, 11),
            column("rows_examined", TypeKind::Int, 11),
            column("db", TypeKind::VarChar, 512),
            column("last_insert_id", TypeKind::Int, 11),
            column("insert_id", TypeKind::Int, 11),
            unsigned("server_id", TypeKind::Int, 10),
            column("sql_text", TypeKind::MediumBlob, 16_777_215),
            unsigned("thread_id", TypeKind::BigInt, 20),
        ];
        LogTable { name: "slow_log", columns, kept: Mutex::default() }
    }

    /// Adds an entry.
    pub(crate) fn push(&self, row: Vec<Value>) {
        let mut kept = self.kept.lock();
        kept.bytes += size_bytes(&row);
        kept.rows.push_back(row);
        while kept.rows.len() > ROWS_MAX || kept.bytes > BYTES_MAX {
            let Some(oldest) = kept.rows.pop_front() else { break };
            kept.bytes -= size_bytes(&oldest);
        }
    }
}

fn size_bytes(row: &[Value]) -> usize {
    row.iter().map(|value| VALUE_BYTES + value.heap_bytes()).sum()
}

impl InformationTable for LogTable {
    fn schema(&self) -> &'static str {
        "mysql"
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.columns
    }

    fn rows(
        &self,
        _: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        // A copy: no lock is held while rows are sent.
        let rows: Vec<Vec<Value>> = self.kept.lock().rows.iter().cloned().collect();
        rows.iter().try_for_each(|row| emit(row))
    }

    fn editor(&self) -> Option<&dyn TableEditor> {
        Some(self)
    }
}

impl TableEditor for LogTable {
    /// The reference's error: entries are not changed.
    fn update(&self, _: &[Value], _: &[(usize, Value)], _: u64) -> Result<bool> {
        Err(Error::with(ErrorCode::CANT_LOCK_LOG_TABLE, &[]))
    }

    fn truncate(&self) -> Result<()> {
        *self.kept.lock() = Rows::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_give_way() {
        let table = LogTable::general();
        for number in 0..ROWS_MAX as u64 + 5 {
            table.push(vec![Value::UInt(number)]);
        }
        let kept = table.kept.lock();
        assert_eq!(kept.rows.len(), ROWS_MAX);
        assert_eq!(kept.rows[0], [Value::UInt(5)]);
        assert_eq!(kept.bytes, ROWS_MAX * VALUE_BYTES);
    }

    #[test]
    fn large_texts_are_bounded_too() {
        let table = LogTable::slow();
        for _ in 0..40 {
            table.push(vec![Value::Bytes(vec![b'x'; 1 << 20].as_slice().into())]);
        }
        assert!(table.kept.lock().bytes <= BYTES_MAX);
    }
}
