//! What a session's changes of definitions are to other servers (`engine_api::SharedDefinitions`).

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit, SharedEntry, Table};
use engine_api::{Engine, SharedChange, TableId};
use errors::Result;
use exec::TransactionSource;

use crate::transactions::Transactions;

/// Shared definitions that the engines' commits change: then this server follows them.
#[derive(Default)]
pub struct Shared(Vec<(Arc<dyn Engine>, TableId, Option<u64>)>);

impl Shared {
    /// The catalog has the new definitions.
    pub fn follow(self) {
        for (engine, table, stamp) in self.0 {
            if let Some(shared) = engine.shared_definitions() {
                shared.follow(table, stamp);
            }
        }
    }
}

impl Transactions {
    /// Tells the engines, in their transactions, the definitions that these edits of `snapshot` bring to other servers. Done last before the commit, and under
    /// `Catalog::sharing` until the catalog has them.
    ///
    /// # Errors
    /// 1050: another server was faster with a name; engine errors.
    pub fn share(&mut self, snapshot: &CatalogSnapshot, edits: &[Edit]) -> Result<Shared> {
        let mut last: BTreeMap<TableId, Option<Arc<Table>>> = BTreeMap::new();
        for edit in edits {
            if let Some(old) = edit.replaced_table().filter(|id| id.is_shared()) {
                last.insert(old, None);
            }
            if let Some(new) = edit.new_table().filter(|table| table.id.is_shared()) {
                last.insert(new.id, Some(new.clone()));
            }
        }
        let mut shared = Shared::default();
        let mut by_engine: BTreeMap<Arc<str>, Vec<Arc<Table>>> = BTreeMap::new();
        for (id, table) in last {
            match table {
                Some(table) => by_engine.entry(table.engine.clone()).or_default().push(table),
                None => {
                    if let Some(old) = snapshot.table_by_id(id) {
                        shared.0.push((self.engine(&old.engine)?, id, None));
                    }
                }
            }
        }
        for (engine, tables) in by_engine {
            let mut changes = Vec::with_capacity(tables.len());
            for table in &tables {
                let entry = SharedEntry::write(snapshot, table)?;
                let (schema, name) = (&*table.schema, &*table.name);
                changes.push(SharedChange { table: table.id, schema, name, entry });
            }
            let told = self.transaction(&engine)?.share_definitions(&changes);
            let stamps = told.map_err(|error| error.into_error(self.cancel()))?;
            let engine = self.engine(&engine)?;
            let tables = tables.iter().zip(stamps);
            shared.0.extend(tables.map(|(table, stamp)| (engine.clone(), table.id, Some(stamp))));
        }
        Ok(shared)
    }

    /// Keeps other servers from writing to tables whose definitions the statement changes.
    ///
    /// # Errors
    /// 1412 when another server has changed one; 1205.
    pub fn lock_definitions(
        &mut self,
        snapshot: &CatalogSnapshot,
        tables: &[TableId],
    ) -> Result<()> {
        for id in tables.iter().filter(|id| id.is_shared()) {
            let Some(table) = snapshot.table_by_id(*id) else { continue };
            let locked = self.transaction(&table.engine)?.lock_definition(*id);
            locked.map_err(|error| error.into_error(self.cancel()))?;
        }
        Ok(())
    }
}
