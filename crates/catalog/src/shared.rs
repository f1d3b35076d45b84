//! Tables whose definitions several servers share (`engine_api::SharedDefinitions`): the entry that the engine keeps, and what a server compares with its own.

use std::sync::Arc;

use engine_api::TableId;
use errors::{Result, err};
use sys::sync::MutexGuard;

use crate::fields::{FieldWriter, damaged, object_fields};
use crate::{Catalog, CatalogSnapshot, Edit, Schema, Table, codec};

/// A shared table as one server tells the others.
#[derive(Clone, Debug)]
pub struct SharedEntry {
    /// Its schema, without what is in it: a server that has none makes it so.
    pub schema: Schema,
    /// The table.
    pub table: Table,
}

impl SharedEntry {
    /// The entry of a table.
    ///
    /// # Errors
    /// 1049.
    pub fn write(snapshot: &CatalogSnapshot, table: &Table) -> Result<Vec<u8>> {
        let schema = snapshot.schema(&table.schema);
        let schema = schema.ok_or_else(|| err!(BAD_DB_ERROR, table.schema))?;
        let mut out = FieldWriter::object();
        out.bytes(1, &codec::write_schema(schema));
        out.bytes(2, &codec::write_table(table));
        Ok(out.finish())
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// It is damaged, or a later version wrote it.
    pub fn read(bytes: &[u8]) -> Result<SharedEntry> {
        let (mut schema, mut table) = (None, None);
        for field in object_fields(bytes)? {
            match field.tag {
                1 => schema = Some(codec::read_schema(field.bytes)?),
                2 => table = Some(codec::read_table(field.bytes)?),
                _ => {}
            }
        }
        let (schema, table) = (schema.ok_or_else(damaged)?, table.ok_or_else(damaged)?);
        Ok(SharedEntry { schema, table })
    }

    /// The histograms of a server are its own: takes over those of columns that are as they were.
    pub fn keep_histograms(&mut self, known: &Table) {
        for column in &mut self.table.columns {
            let same = known.columns.iter().find(|one| one.name == column.name);
            column.histogram =
                same.filter(|one| one.ty == column.ty).and_then(|one| one.histogram.clone());
        }
    }
}

impl Edit {
    /// The table that it makes, or makes of another.
    pub fn new_table(&self) -> Option<&Arc<Table>> {
        if let Edit::CreateTable(table) | Edit::ReplaceTable { new: table, .. } = self {
            Some(table)
        } else {
            None
        }
    }

    /// Whether other servers have to know of it.
    pub fn is_shared(&self) -> bool {
        let old = self.replaced_table().is_some_and(TableId::is_shared);
        old || self.new_table().is_some_and(|table| table.id.is_shared())
    }

    /// Whether it takes a table from the other servers and keeps it here.
    pub fn leaves_others(&self) -> bool {
        let old = self.replaced_table().is_some_and(TableId::is_shared);
        old && self.new_table().is_some_and(|table| !table.id.is_shared())
    }
}

impl CatalogSnapshot {
    /// The shared tables of an engine.
    pub fn shared_tables(&self, engine: &str) -> Vec<TableId> {
        let shared = self.tables.iter().filter(|(id, _)| id.is_shared());
        shared.filter(|(_, table)| *table.look().engine == *engine).map(|(id, _)| *id).collect()
    }

    /// Whether the catalog has exactly this table.
    pub fn has_same(&self, table: &Table) -> bool {
        self.encoded_table(table.id).is_some_and(|known| *known == codec::write_table(table))
    }
}

impl Catalog {
    /// Until the guard is dropped nobody else changes shared definitions here: neither a statement nor what follows other servers. Taken after metadata locks.
    pub fn sharing(&self) -> MutexGuard<'_, ()> {
        sys::blocking::blocking(|| self.sharing.lock())
    }
}
