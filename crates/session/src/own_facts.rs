//! Reads information tables as the server itself, for plugins that report on it without a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{AccountName, EffectivePrivileges};
use describe::{Information, NoConnection};
use errors::{Diagnostics, Result, err};
use plugin_api::{InfoColumn, InfoFilter};
use types::Value;
use variables::SessionValues;

use crate::server::Server;

impl Server {
    /// Gives the rows of an information table, for an account without a name that has every privilege.
    ///
    /// # Errors
    /// 1109; what `emit` returns.
    pub(crate) fn read_as_itself(
        &self,
        schema: &str,
        name: &str,
        emit: &mut dyn FnMut(&[InfoColumn], &[Value]) -> Result<()>,
    ) -> Result<()> {
        let registry = self.registry();
        let table = registry.information_table(schema, name);
        let table = table.ok_or_else(|| err!(UNKNOWN_TABLE, name, schema))?;
        let information = Information {
            server: self,
            definitions: None,
            connection: &NoConnection,
            values: Arc::new(SessionValues::new(&self.globals)),
            privileges: &EffectivePrivileges::everything(),
            diagnostics: &Diagnostics::default(),
            database: None,
            account: &AccountName { user: "".into(), host: "localhost".into() },
            temporary: &Arc::new(BTreeMap::new()),
            tls: None,
            active_roles: &[],
        };
        let columns = table.columns();
        let filter = InfoFilter { equals: Vec::new(), reads: (0..columns.len()).collect() };
        table.rows(&information, &filter, &mut |row| emit(columns, row))
    }
}
