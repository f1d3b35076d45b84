//! Definitions that several servers share: an engine outside this process may keep the catalog's entries of its tables beside the rows, for every server that uses it.
//!
//! Each table has a stamp that grows with every change of its definition. A server tells the engine which stamp its own catalog follows; the engine lets nobody
//! write rows by another one. Names are the engine's business only as far as two tables never have the same one.

use crate::{EngineResult, TableId};

/// A table's definition as the engine keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedTable {
    /// Grows with each change; begins with 1.
    pub stamp: u64,
    /// The catalog's entry, which the engine does not understand.
    pub entry: Vec<u8>,
}

/// A new or changed definition, for `Transaction::share_definitions`.
#[derive(Clone, Debug)]
pub struct SharedChange<'a> {
    /// The table, which the engine has made or changed in this transaction.
    pub table: TableId,
    /// Its schema.
    pub schema: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The catalog's entry.
    pub entry: Vec<u8>,
}

/// See the module; `Engine::shared_definitions`.
pub trait SharedDefinitions: Send + Sync {
    /// An id for a new table that no server has used before; `TableId::is_shared`.
    ///
    /// # Errors
    /// The engine cannot be reached.
    fn new_table_id(&self) -> EngineResult<TableId>;

    /// Differs after each change of any definition; 0 while nothing was ever defined. Changes may become visible some moments after it.
    ///
    /// # Errors
    /// The engine cannot be reached.
    fn version(&self) -> EngineResult<u64>;

    /// All tables and their stamps, in the order of their ids.
    ///
    /// # Errors
    /// The engine cannot be reached.
    fn stamps(&self) -> EngineResult<Vec<(TableId, u64)>>;

    /// A table's definition; `None` when it is dropped.
    ///
    /// # Errors
    /// The engine cannot be reached; 1412 while it changes.
    fn read(&self, table: TableId) -> EngineResult<Option<SharedTable>>;

    /// This server's catalog has the table as it is under `stamp`; `None`: not at all. The caller keeps all statements away from the table.
    fn follow(&self, table: TableId, stamp: Option<u64>);

    /// The stamp that this server's catalog follows.
    fn followed(&self, table: TableId) -> Option<u64>;
}
