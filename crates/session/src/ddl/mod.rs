//! Statements that change definitions.
//!
//! Each builds what the catalog shall hold, takes metadata locks, changes the engine and the dictionary in one transaction, and
//! publishes the new version with the commit.

mod alter;
mod charsets;
mod column_type;
mod columns;
mod copy;
mod create;
mod database;
mod draft;
mod drop;
mod foreign_keys;
mod indexes;
mod options;
mod partition_text;
mod partitions;
mod view;

use std::sync::Arc;

use catalog::{Edit, LockMode, MetadataGuard, Table};
use engine_api::{CommitHandle, TableId};
use errors::{ErrorCode, Result, bail, err};
use exec::TransactionSource;
use syntax::ast::{Ident, ObjectName};

use crate::server::Server;
use crate::session::Session;

pub(crate) use column_type::{TypeContext, column_type, find_charset, find_collation, type_text};
pub(crate) use draft::{is_hidden, is_single_unique};
pub(crate) use partition_text::{method_expression, method_name, partitioning_text, values_text};

use draft::is_too_long;

/// Names of the reference's engines that stand for the server's own.
const MEANS_DEFAULT: &[&str] = &["INNODB", "SQUALL"];
/// Names that stand for it with a warning.
const MEANS_DEFAULT_WITH_WARNING: &[&str] = &[
    "MYISAM",
    "ARIA",
    "MEMORY",
    "HEAP",
    "CSV",
    "ARCHIVE",
    "ROCKSDB",
    "TOKUDB",
    "NDB",
    "NDBCLUSTER",
    "MRG_MYISAM",
    "MERGE",
];

/// What an ENGINE clause means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EngineChoice {
    /// The default engine, asked for by a name that everybody takes for it.
    Default,
    /// The default engine in the place of another.
    Substituted,
}

/// What an engine name means.
///
/// # Errors
/// 1286.
pub(crate) fn engine_choice(server: &Server, name: &str) -> Result<EngineChoice> {
    let upper = name.to_ascii_uppercase();
    let is_own = server.default_engine.name().eq_ignore_ascii_case(name);
    if is_own || MEANS_DEFAULT.contains(&&*upper) {
        return Ok(EngineChoice::Default);
    }
    let registered = server.registry.engine(name).is_some();
    if registered || MEANS_DEFAULT_WITH_WARNING.contains(&&*upper) {
        return Ok(EngineChoice::Substituted);
    }
    Err(err!(UNKNOWN_STORAGE_ENGINE, name))
}

/// Name under which the default engine is shown.
pub(crate) const SHOWN_ENGINE: &str = "Squall";

impl Session {
    /// Schema and name of an object, the current schema when none is written.
    pub(crate) fn qualify(&self, name: &ObjectName) -> Result<(Arc<str>, Arc<str>)> {
        let schema = match &name.schema {
            Some(schema) => Arc::from(&*schema.text),
            None => self.current_schema()?,
        };
        Ok((schema, Arc::from(&*name.name.text)))
    }

    /// A stored or temporary table.
    ///
    /// # Errors
    /// 1146, 1347 for a view.
    pub(crate) fn find_table(&self, schema: &str, name: &str) -> Result<Arc<Table>> {
        match self.view().relation(schema, name) {
            Some(catalog::Relation::Table(table)) => Ok(table),
            Some(catalog::Relation::View(_)) => Err(err!(WRONG_OBJECT, schema, name, "BASE TABLE")),
            None => Err(err!(NO_SUCH_TABLE, schema, name)),
        }
    }

    /// Waits until nobody else uses the tables, and keeps others out.
    pub(crate) fn lock_for_ddl(&self, tables: &[TableId]) -> Result<MetadataGuard> {
        let wanted: Vec<_> =
            tables.iter().map(|table| (Some(*table), LockMode::Exclusive)).collect();
        let timeout = self.settings.lock_wait_timeout;
        self.server.metadata_locks.lock(self.shared.id, &wanted, timeout, &self.shared.cancel)
    }

    /// Commits the running transaction of the default engine together with `edits`.
    pub(crate) fn commit_definitions(&mut self, edits: &[Edit]) -> Result<CommitHandle> {
        let engine = self.server.default_engine.name();
        let catalog = self.server.catalog.clone();
        let followed = crate::program::follow_tables(&catalog.snapshot(), edits)?;
        let edits = followed.as_deref().unwrap_or(edits);
        let txn = self.transactions.transaction(engine)?;
        let handle = catalog.commit(txn, edits, &self.shared.cancel)?;
        self.transactions.commit()?;
        Ok(handle)
    }

    /// Warnings of an ENGINE clause.
    pub(crate) fn note_engine(&mut self, engine: &str, table: &str) -> Result<()> {
        match engine_choice(&self.server, engine) {
            Ok(EngineChoice::Default) => Ok(()),
            Ok(EngineChoice::Substituted) => {
                let shown = SHOWN_ENGINE;
                self.working.warn(ErrorCode::WARN_USING_OTHER_HANDLER, &[&shown, &table]);
                Ok(())
            }
            Err(error) => {
                let strict = types::SqlMode::NO_ENGINE_SUBSTITUTION;
                if self.settings.sql_mode.contains(strict) {
                    return Err(error);
                }
                self.working.push_error(errors::Level::Warning, &error);
                let shown = SHOWN_ENGINE;
                self.working.warn(ErrorCode::WARN_USING_OTHER_HANDLER, &[&shown, &table]);
                Ok(())
            }
        }
    }
}

/// 1103, 1059.
pub(crate) fn check_table_name(name: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') {
        bail!(WRONG_TABLE_NAME, name);
    }
    if is_too_long(name) {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}

/// 1102, 1059.
pub(crate) fn check_schema_name(name: &Ident) -> Result<()> {
    let name = &*name.text;
    if name.is_empty() || name.ends_with(' ') {
        bail!(WRONG_DB_NAME, name);
    }
    if is_too_long(name) {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}
