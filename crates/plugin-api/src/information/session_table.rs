//! Tables whose rows are about the session that reads them.

use errors::Result;
use types::Value;

use super::{InfoColumn, InfoFilter, InformationContext, InformationTable, TableDefinition};
use crate::function::SessionServices;

/// Makes the rows of a session.
type Rows = dyn Fn(&dyn SessionServices) -> Vec<Vec<Value>> + Send + Sync;

/// A table whose rows are those of the session that reads it.
pub struct SessionTable {
    definition: TableDefinition,
    rows: Box<Rows>,
}

impl SessionTable {
    /// A table of this shape. `rows` gives a value for each of its columns.
    pub fn new(
        definition: TableDefinition,
        rows: impl Fn(&dyn SessionServices) -> Vec<Vec<Value>> + Send + Sync + 'static,
    ) -> SessionTable {
        SessionTable { definition, rows: Box::new(rows) }
    }
}

impl InformationTable for SessionTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        _: &dyn InformationContext,
        _: &InfoFilter,
        _: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        Ok(())
    }

    fn session_rows(&self, session: &dyn SessionServices) -> Option<Vec<Vec<Value>>> {
        Some((self.rows)(session))
    }
}
