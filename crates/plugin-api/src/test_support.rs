//! For tests of plugins and their users: a session made of plain fields, and a result sink without a client protocol.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result, bail};
use types::{DataType, Value, ZoneRules};

use crate::json_text::put_json;
use crate::{
    AccountSecret, AuthRequest, Authenticator, ColumnMeta, ConnectInfo, ConnectionKind, LocalFile,
    OkInfo, ResultSink, RowSource, SessionFactory, SessionHandle, SessionServices, SessionState,
};

/// A server without accounts, sessions and figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSessions;

impl SessionFactory for NoSessions {
    fn server_version(&self) -> String {
        String::new()
    }

    fn server_collation(&self) -> u16 {
        0
    }

    fn default_authentication(&self) -> String {
        String::new()
    }

    fn find_account(
        &self,
        _: &AuthRequest,
        _: &ConnectionKind,
    ) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        bail!(SERVER_SHUTDOWN)
    }

    fn open(&self, _: ConnectInfo, _: &AuthRequest) -> Result<Box<dyn SessionHandle>> {
        bail!(SERVER_SHUTDOWN)
    }

    fn kill(&self, _: u64) {}

    fn global_integer(&self, _: &str) -> u64 {
        0
    }

    fn global_text(&self, _: &str) -> String {
        String::new()
    }

    fn status(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn count_status(&self, _: &'static str, _: u64) {}
}

/// A session whose answers are its fields.
#[derive(Default)]
pub struct FakeSession {
    /// `@name`.
    pub user_variables: HashMap<String, (Value, DataType)>,
    /// `@@name`.
    pub system_variables: HashMap<String, Value>,
    /// `LAST_INSERT_ID()`.
    pub last_insert_id: u64,
    /// Locks held with their counts.
    pub locks: HashMap<String, u64>,
    /// Named zones.
    pub zones: HashMap<String, Arc<dyn ZoneRules>>,
}

impl SessionServices for FakeSession {
    fn connection_id(&self) -> u64 {
        42
    }
    fn user(&self) -> String {
        "root@localhost".into()
    }
    fn current_user(&self) -> String {
        "root@%".into()
    }
    fn has_privilege(&self, _name: &str) -> bool {
        true
    }
    fn database(&self) -> Option<String> {
        Some("test".into())
    }
    fn last_insert_id(&self) -> u64 {
        self.last_insert_id
    }
    fn set_last_insert_id(&mut self, value: u64) {
        self.last_insert_id = value;
    }
    fn row_count(&self) -> i64 {
        -1
    }
    fn found_rows(&self) -> u64 {
        3
    }
    fn user_variable(&self, name: &str) -> Option<(Value, DataType)> {
        self.user_variables.get(name).cloned()
    }
    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType) {
        self.user_variables.insert(name.to_owned(), (value, ty));
    }
    fn system_variable(&self, name: &str) -> Option<Value> {
        self.system_variables.get(name).cloned()
    }
    fn random(&mut self) -> f64 {
        0.5
    }
    fn time_zone(&self, name: &str) -> Option<Arc<dyn ZoneRules>> {
        self.zones.get(name).cloned()
    }
    fn sleep(&mut self, _duration: Duration) -> bool {
        true
    }
    fn check_cancelled(&self) -> Result<()> {
        Ok(())
    }
    fn get_user_lock(&mut self, name: &str, _timeout_seconds: f64) -> Result<bool> {
        *self.locks.entry(name.to_owned()).or_default() += 1;
        Ok(true)
    }
    fn release_user_lock(&mut self, name: &str) -> Option<bool> {
        self.locks.remove(name).map(|_| true)
    }
    fn release_all_user_locks(&mut self) -> u64 {
        self.locks.drain().map(|(_, count)| count).sum()
    }
    fn user_lock_holder(&self, name: &str) -> Option<u64> {
        self.locks.get(name).map(|_| 42)
    }
    fn version(&self) -> &str {
        "9.7.0-squall"
    }
}

/// Keeps result sets as JSON: each row is an array. Dates are strings, JSON documents stay documents, vectors are arrays of numbers,
/// binary strings and geometries are hexadecimal digits.
#[derive(Default)]
pub struct JsonSink {
    types: Vec<DataType>,
    /// The rows of all results.
    pub rows: Vec<String>,
    /// The error of the failed statement.
    pub errors: Vec<Error>,
}

impl ResultSink for JsonSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.types = columns.iter().map(|column| column.ty.clone()).collect();
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let mut out = vec![b'['];
        for (index, ty) in self.types.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            put_json(ty, row.cell(index)?, &mut out)?;
        }
        out.push(b']');
        self.rows.push(String::from_utf8(out).map_err(Error::internal)?);
        Ok(())
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.errors.push(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}
