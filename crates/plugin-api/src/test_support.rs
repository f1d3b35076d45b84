//! A session made of plain fields, for tests of function plugins.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use errors::Result;
use types::{DataType, Value, ZoneRules};

use crate::SessionServices;

/// Answers what the fields say.
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
