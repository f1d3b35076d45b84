//! Changed rows: what row observers and change sinks are told; and the slot for change sinks.

use std::sync::Arc;

use errors::Result;
use types::{DataType, Value};

use crate::json_text::put_json;
use crate::observer::SessionFacts;

/// A column of a changed row.
#[derive(Clone, Debug, PartialEq)]
pub struct RowColumn {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: DataType,
}

/// What happens to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowChangeKind {
    /// It is new.
    Insert,
    /// It gets other values.
    Update,
    /// It goes.
    Delete,
}

/// A change of a row. Columns are those that are stored, in order; a TIMESTAMP is in UTC.
#[derive(Clone, Copy, Debug)]
pub struct RowChange<'a> {
    /// The table's schema.
    pub schema: &'a str,
    /// The table.
    pub table: &'a str,
    /// Its columns.
    pub columns: &'a [RowColumn],
    /// The row before; none for an INSERT.
    pub old: Option<&'a [Value]>,
    /// The row after; none for a DELETE.
    pub new: Option<&'a [Value]>,
}

impl RowChange<'_> {
    /// What happens to the row.
    pub fn kind(&self) -> RowChangeKind {
        match (self.old, self.new) {
            (None, _) => RowChangeKind::Insert,
            (Some(_), Some(_)) => RowChangeKind::Update,
            (Some(_), None) => RowChangeKind::Delete,
        }
    }

    /// The value of a column before the change, by its name without regard to case.
    pub fn old_value(&self, column: &str) -> Option<&Value> {
        self.old?.get(self.place(column)?)
    }

    /// The value of a column after the change.
    pub fn new_value(&self, column: &str) -> Option<&Value> {
        self.new?.get(self.place(column)?)
    }

    fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| known.name.to_lowercase() == column.to_lowercase())
    }

    /// A row, `old` or `new`, as a JSON object: dates are strings, binary strings are hexadecimal digits.
    ///
    /// # Errors
    /// A value does not have its column's type.
    pub fn json(&self, row: &[Value]) -> Result<String> {
        let mut out = vec![b'{'];
        for (column, value) in self.columns.iter().zip(row) {
            if out.len() > 1 {
                out.push(b',');
            }
            types::json::quote(column.name.as_bytes(), &mut out);
            out.push(b':');
            put_json(&column.ty, value.into(), &mut out)?;
        }
        out.push(b'}');
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

/// A change of a row by a statement that runs.
#[derive(Clone, Copy, Debug)]
pub struct RowEvent<'a> {
    /// Whose statement it is.
    pub session: SessionFacts<'a>,
    /// The change.
    pub change: RowChange<'a>,
}

/// A transaction that has committed and is durable.
#[derive(Clone, Copy, Debug)]
pub struct CommittedTransaction<'a> {
    /// Its number among those with changes that sinks wanted, from 1 when the server started: transactions that committed later have
    /// larger ones.
    pub number: u64,
    /// Who committed it.
    pub session: SessionFacts<'a>,
    /// When, microseconds since 1970 UTC.
    pub at_micros: i64,
    /// Changes of the tables that the sink wants, in the order in which they were made.
    pub changes: &'a [RowChange<'a>],
    /// Further changes, of any table that a sink wants, that were not kept: the transaction was too large.
    pub lost: u64,
}

/// Gets the changes of committed transactions, each once, in the order of their commits. The session that committed waits for it, and so
/// do those that commit changes afterwards.
pub trait ChangeSink: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Whether it wants any changes as things are. Asked when the plugin is loaded and after a change of a global variable.
    fn is_active(&self) -> bool;
    /// Whether it wants the changes of a table.
    fn wants_table(&self, schema: &str, table: &str) -> bool;
    /// A transaction has committed.
    fn committed(&self, transaction: &CommittedTransaction<'_>);
}

#[cfg(test)]
mod tests {
    use types::TypeKind;

    use super::*;

    #[test]
    fn values_are_found_by_name() {
        let column =
            |name: &str, kind| RowColumn { name: name.into(), ty: DataType::new(kind, 20, 0) };
        let columns = [column("Id", TypeKind::BigInt), column("v", TypeKind::VarChar)];
        let (old, new) = ([Value::Int(1), Value::Null], [Value::Int(1), Value::text("a\"b")]);
        let change = RowChange {
            schema: "d",
            table: "t",
            columns: &columns,
            old: Some(&old),
            new: Some(&new),
        };
        assert_eq!(change.kind(), RowChangeKind::Update);
        assert_eq!(change.old_value("ID"), Some(&Value::Int(1)));
        assert_eq!(change.new_value("V"), Some(&Value::text("a\"b")));
        assert_eq!(change.new_value("w"), None);
        assert_eq!(change.json(&new).unwrap(), r#"{"Id":1,"v":"a\"b"}"#);
        assert_eq!(change.json(&old).unwrap(), r#"{"Id":1,"v":null}"#);
    }
}
