//! EXCHANGE PARTITION: whether two tables are defined alike.

use catalog::{Column, Index, PARTITION_COLUMN, Partition, Table, same_name};
use errors::{Result, bail};

use crate::engines::shown_engine;

/// Options that error 1731 calls just `TABLE OPTION`.
const OTHER_OPTIONS: &[&str] = &["CHECKSUM", "DELAY_KEY_WRITE", "PACK_KEYS", "STATS_PERSISTENT"];

/// Whether the partition of `table` and `other` may exchange their rows.
///
/// # Errors
/// 1731, 1736, 3106 where the definitions differ in more than defaults, comments, CHECK, visibility and the directions of indexes.
pub fn check_alike(table: &Table, partition: &Partition, other: &Table) -> Result<()> {
    let differs = |name: &str| option(&table.options, name) != option(&other.options, name);
    if shown_engine(table) != shown_engine(other) {
        bail!(MIX_HANDLER_ERROR);
    }
    if row_format(table) != row_format(other) {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "ROW_FORMAT");
    }
    check_columns(&own_columns(table), &own_columns(other))?;
    let alike = |index: &Index| {
        let known = other.indexes.iter().find(|known| known.name == index.name);
        known.is_some_and(|known| {
            known.unique == index.unique && parts(other, known) == parts(table, index)
        })
    };
    if table.indexes.len() != other.indexes.len()
        || table.fulltext.len() != other.fulltext.len()
        || !table.indexes.iter().all(alike)
    {
        bail!(TABLES_DIFFERENT_METADATA);
    }
    if differs("AVG_ROW_LENGTH") {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "AVG_ROW_LENGTH");
    }
    if OTHER_OPTIONS.iter().any(|name| differs(name)) {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "TABLE OPTION");
    }
    if table.collation != other.collation {
        bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, "CHARACTER SET");
    }
    for name in ["MAX_ROWS", "MIN_ROWS"] {
        if option(&partition.options, name) != option(&other.options, name) {
            bail!(PARTITION_EXCHANGE_DIFFERENT_OPTION, name);
        }
    }
    Ok(())
}

fn option<'o>(options: &'o [(String, String)], name: &str) -> Option<&'o str> {
    let found = options.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.as_str())
}

/// The reference's row format for ROW_FORMAT and KEY_BLOCK_SIZE.
fn row_format(table: &Table) -> &str {
    match (option(&table.options, "ROW_FORMAT"), option(&table.options, "KEY_BLOCK_SIZE")) {
        (None, Some(_)) => "COMPRESSED",
        (written, _) => written.unwrap_or("DYNAMIC"),
    }
}

/// All columns but the one that holds the partition's number and places of dropped ones.
fn own_columns(table: &Table) -> Vec<&Column> {
    let is_own = |column: &&Column| &*column.name != PARTITION_COLUMN && !column.is_vacant();
    table.columns.iter().filter(is_own).collect()
}

fn check_columns(own: &[&Column], others: &[&Column]) -> Result<()> {
    if own.len() != others.len() {
        bail!(TABLES_DIFFERENT_METADATA);
    }
    for (own, other) in own.iter().zip(others) {
        let [expression, others_expression] = [own, other].map(|column| {
            let generated = column.generated.as_ref();
            generated.map(|made| (&made.expression, made.hidden, &made.elements))
        });
        if !same_name(&own.name, &other.name)
            || own.ty != other.ty
            || own.auto_increment != other.auto_increment
            || expression != others_expression
        {
            bail!(TABLES_DIFFERENT_METADATA);
        }
        let [stored, others_stored] =
            [own, other].map(|column| column.generated.as_ref().map(|generated| generated.stored));
        if stored != others_stored {
            let action = "Exchanging partitions for non-generated columns";
            bail!(UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, action);
        }
    }
    Ok(())
}

/// Columns of an index with their prefixes.
fn parts(table: &Table, index: &Index) -> Vec<(String, Option<u32>)> {
    let name = |at: usize| table.columns[at].name.to_lowercase();
    index.parts.iter().map(|part| (name(part.column), part.prefix_length)).collect()
}
