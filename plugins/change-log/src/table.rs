//! `data_dictionary.CHANGE_LOG`: the last changes, in memory of bounded size, for accounts that may read every table.

use std::collections::VecDeque;

use errors::Result;
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable};
use sys::sync::Mutex;
use types::{CollationId, DataType, FixedOffset, TypeKind, Value, ZoneRules as _};

/// Changes that are kept, and their bytes: the oldest give way.
const CHANGES_MAX: usize = 1000;
const BYTES_MAX: usize = 4 << 20;

/// A change.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) transaction: u64,
    pub(crate) at_micros: i64,
    pub(crate) account: String,
    pub(crate) schema: String,
    pub(crate) table: String,
    pub(crate) kind: &'static str,
    /// JSON; `null` for none.
    pub(crate) old: String,
    pub(crate) new: String,
}

impl Logged {
    fn bytes(&self) -> usize {
        let texts = [&self.account, &self.schema, &self.table, &self.old, &self.new];
        size_of::<Logged>() + texts.map(String::len).iter().sum::<usize>()
    }
}

#[derive(Debug, Default)]
struct Kept {
    changes: VecDeque<Logged>,
    bytes: usize,
}

/// The table.
#[derive(Debug)]
pub(crate) struct RecentChanges {
    columns: Vec<InfoColumn>,
    kept: Mutex<Kept>,
}

fn column(name: &'static str, kind: TypeKind, length: u32) -> InfoColumn {
    let mut ty = DataType::new(kind, length, 0);
    if ty.is_text() {
        ty.collation = CollationId::UTF8MB4_0900_AI_CI;
    }
    if kind == TypeKind::DateTime {
        ty.decimals = 6;
    }
    ty.unsigned = kind == TypeKind::BigInt;
    ty.nullable = kind == TypeKind::LongText;
    InfoColumn { name, ty }
}

impl Default for RecentChanges {
    fn default() -> RecentChanges {
        let columns = vec![
            column("TRANSACTION_NUMBER", TypeKind::BigInt, 20),
            column("COMMITTED", TypeKind::DateTime, 26),
            column("ACCOUNT", TypeKind::VarChar, 288),
            column("TABLE_SCHEMA", TypeKind::VarChar, 64),
            column("TABLE_NAME", TypeKind::VarChar, 64),
            column("KIND", TypeKind::VarChar, 6),
            column("OLD_ROW", TypeKind::LongText, u32::MAX),
            column("NEW_ROW", TypeKind::LongText, u32::MAX),
        ];
        RecentChanges { columns, kept: Mutex::default() }
    }
}

impl RecentChanges {
    pub(crate) fn push(&self, changes: Vec<Logged>) {
        let mut kept = self.kept.lock();
        for change in changes {
            kept.bytes += change.bytes();
            kept.changes.push_back(change);
            while kept.changes.len() > CHANGES_MAX || kept.bytes > BYTES_MAX {
                let oldest = kept.changes.pop_front();
                kept.bytes -= oldest.map_or(0, |oldest| oldest.bytes());
            }
        }
    }
}

fn json(text: &str) -> Value {
    if text == "null" { Value::Null } else { Value::text(text) }
}

impl InformationTable for RecentChanges {
    fn schema(&self) -> &'static str {
        "data_dictionary"
    }

    fn name(&self) -> &'static str {
        "CHANGE_LOG"
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        if !ctx.has_privilege("SELECT") {
            return Ok(());
        }
        // A copy: no lock is held while rows are sent.
        let changes: Vec<Logged> = self.kept.lock().changes.iter().cloned().collect();
        changes.iter().try_for_each(|change| {
            emit(&[
                Value::UInt(change.transaction),
                Value::DateTime(FixedOffset::utc().utc_to_local(change.at_micros)),
                Value::text(&change.account),
                Value::text(&change.schema),
                Value::text(&change.table),
                Value::text(change.kind),
                json(&change.old),
                json(&change.new),
            ])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_changes_give_way() {
        let table = RecentChanges::default();
        let change = |number: u64, length: usize| Logged {
            transaction: number,
            at_micros: 0,
            account: String::new(),
            schema: String::new(),
            table: String::new(),
            kind: "DELETE",
            old: "x".repeat(length),
            new: "null".into(),
        };
        table.push((0..2000).map(|number| change(number, 1)).collect());
        assert_eq!(table.kept.lock().changes[0].transaction, 1000);
        table.push(vec![change(2000, BYTES_MAX / 2), change(2001, BYTES_MAX / 2)]);
        let kept = table.kept.lock();
        assert_eq!((kept.changes.len(), kept.changes[0].transaction), (1, 2001));
        assert_eq!(kept.bytes, kept.changes[0].bytes());
    }
}
