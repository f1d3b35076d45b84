//! The rows that a statement read and wrote, with the names of their tables.

use catalog::CatalogSnapshot;
use exec::{TableCounts, TableWork};
use plugin_api::TableRows;

/// The work on tables with their names; temporary tables have none that others know.
pub fn table_rows(work: &TableWork, snapshot: &CatalogSnapshot) -> Vec<TableRows> {
    let row = |counts: TableCounts| {
        let table = snapshot.table_by_id(counts.table).filter(|table| !table.temporary)?;
        let index_name = |id| {
            let index = table.indexes.iter().find(|index| index.id == id);
            index.map(|index| index.name.clone())
        };
        Some(TableRows {
            schema: table.schema.clone(),
            table: table.name.clone(),
            index: counts.index.and_then(index_name),
            fetched: counts.fetched,
            inserted: counts.inserted,
            updated: counts.updated,
            deleted: counts.deleted,
        })
    };
    work.all().into_iter().filter_map(row).collect()
}
