//! Partitions by key: each kind of server chooses the partition for a key by a hash of its own, so what names such a partition means other rows
//! here than at a source of another kind.

use binlog::query::QueryEvent;
use errors::{Error, Result};
use syntax::ParseOptions;
use syntax::ast::{AlterAction, PartitionAction, PartitionNames, Statement};
use types::{SqlMode, Value};

use crate::local::Local;

const IS_BY_KEY: &str = "SELECT 1 FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND \
     (PARTITION_METHOD LIKE '%KEY' OR SUBPARTITION_METHOD LIKE '%KEY' AND SUBPARTITION_NAME = ?) LIMIT 1";

/// A change of the rows of partitions that a statement names.
pub(crate) struct Change {
    schema: String,
    table: String,
    /// The partitions, or subpartitions.
    names: Vec<String>,
    what: &'static str,
}

impl Change {
    /// The one of a statement.
    pub(crate) fn of(query: &QueryEvent<'_>) -> Option<Change> {
        let mode = SqlMode(query.context.sql_mode.unwrap_or(0));
        let options = ParseOptions {
            ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
            no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            ..ParseOptions::default()
        };
        let Ok((Statement::AlterTable(alter), _)) = syntax::parse_bytes(query.text, &options)
        else {
            return None;
        };
        let (what, names) = alter.actions.iter().find_map(|action| {
            let AlterAction::Partition(action) = action else { return None };
            if let PartitionAction::Truncate(PartitionNames::List(names)) = &**action {
                return Some(("TRUNCATE PARTITION", names.clone()));
            }
            let PartitionAction::Exchange { name, .. } = &**action else { return None };
            Some(("EXCHANGE PARTITION", vec![name.clone()]))
        })?;
        let schema = match &alter.name.schema {
            Some(schema) => schema.text.to_string(),
            None => String::from_utf8_lossy(query.schema).into_owned(),
        };
        let names = names.iter().map(|name| name.text.to_string()).collect();
        Some(Change { schema, table: alter.name.name.text.to_string(), names, what })
    }

    /// Refuses it when the table's partitions have other rows at a source that is no Squall.
    ///
    /// # Errors
    /// 1235; those of reading the table's definition.
    pub(crate) fn check(&self, local: &mut Local) -> Result<()> {
        let Change { schema, table, names, what } = self;
        let mut is_by_key = false;
        for name in names {
            let values = [Value::text(schema), Value::text(table), Value::text(name)];
            is_by_key |= !local.execute(IS_BY_KEY, &values)?.rows.is_empty();
        }
        if !is_by_key {
            return Ok(());
        }
        Err(Error::not_supported(format!(
            "{what} from a source that is no Squall for {schema}.{table}, which is partitioned by key: its partitions have other rows \
             there. Change the rows by hand and pass over the transaction"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_partition_is_found() {
        let what = |text: &str, sql_mode: SqlMode| {
            let mut query = QueryEvent { text: text.as_bytes(), ..QueryEvent::default() };
            query.context.sql_mode = Some(sql_mode.0);
            Change::of(&query).map(|change| change.what)
        };
        let plain = SqlMode(0);
        assert_eq!(what("ALTER TABLE t TRUNCATE PARTITION p0", plain), Some("TRUNCATE PARTITION"));
        assert_eq!(what("ALTER TABLE t TRUNCATE PARTITION ALL", plain), None);
        let exchange = "ALTER TABLE \"t\" EXCHANGE PARTITION p0 WITH TABLE u";
        assert_eq!(what(exchange, SqlMode::ANSI_QUOTES), Some("EXCHANGE PARTITION"));
        assert_eq!(what("ALTER TABLE t COALESCE PARTITION 1", plain), None);
        assert_eq!(what("TRUNCATE TABLE t", plain), None);
    }
}
