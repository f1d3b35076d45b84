//! The session's values as the functions of a statement with programs use them: in a cell, because its programs use them as well.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use errors::Result;
use plugin_api::{SequenceCall, SequenceName, SessionServices};
use types::geometry::KnownSystem;
use types::{DataType, Value, ZoneRules};

use crate::services::Services;

/// Values that a statement shares with its programs. No borrow outlives a call, so a program finds the cell free.
pub(crate) struct LentServices<'s> {
    services: &'s RefCell<Services>,
    version: &'s str,
}

impl<'s> LentServices<'s> {
    /// `version`: the server's, which the cell cannot lend.
    pub(crate) fn new(services: &'s RefCell<Services>, version: &'s str) -> LentServices<'s> {
        LentServices { services, version }
    }
}

impl SessionServices for LentServices<'_> {
    fn connection_id(&self) -> u64 {
        self.services.borrow().connection_id()
    }

    fn user(&self) -> String {
        self.services.borrow().user()
    }

    fn current_user(&self) -> String {
        self.services.borrow().current_user()
    }

    fn current_role(&self) -> String {
        self.services.borrow().current_role()
    }

    fn load_file(&self, name: &str, bytes_max: u64) -> Option<Vec<u8>> {
        self.services.borrow().load_file(name, bytes_max)
    }

    fn has_privilege(&self, name: &str) -> bool {
        self.services.borrow().has_privilege(name)
    }

    fn database(&self) -> Option<String> {
        self.services.borrow().database()
    }

    fn last_insert_id(&self) -> u64 {
        self.services.borrow().last_insert_id()
    }

    fn set_last_insert_id(&mut self, value: u64) {
        self.services.borrow_mut().set_last_insert_id(value);
    }

    fn row_count(&self) -> i64 {
        self.services.borrow().row_count()
    }

    fn found_rows(&self) -> u64 {
        self.services.borrow().found_rows()
    }

    fn reference_system(&self, srid: u32) -> Option<KnownSystem> {
        self.services.borrow().reference_system(srid)
    }

    fn query_attribute(&self, name: &str) -> Option<Value> {
        self.services.borrow().query_attribute(name)
    }

    fn user_variable(&self, name: &str) -> Option<(Value, DataType)> {
        SessionServices::user_variable(&*self.services.borrow(), name)
    }

    fn user_variables(&self) -> Vec<(String, Value, DataType)> {
        self.services.borrow().user_variables()
    }

    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType) {
        self.services.borrow_mut().set_user_variable(name, value, ty);
    }

    fn system_variable(&self, name: &str) -> Option<Value> {
        SessionServices::system_variable(&*self.services.borrow(), name)
    }

    fn random(&mut self) -> f64 {
        self.services.borrow_mut().random()
    }

    fn time_zone(&self, name: &str) -> Option<Arc<dyn ZoneRules>> {
        self.services.borrow().time_zone(name)
    }

    fn sleep(&mut self, duration: Duration) -> bool {
        self.services.borrow_mut().sleep(duration)
    }

    fn check_cancelled(&self) -> Result<()> {
        self.services.borrow().check_cancelled()
    }

    fn get_user_lock(&mut self, name: &str, timeout_seconds: f64) -> Result<bool> {
        self.services.borrow_mut().get_user_lock(name, timeout_seconds)
    }

    fn release_user_lock(&mut self, name: &str) -> Option<bool> {
        self.services.borrow_mut().release_user_lock(name)
    }

    fn release_all_user_locks(&mut self) -> u64 {
        self.services.borrow_mut().release_all_user_locks()
    }

    fn user_lock_holder(&self, name: &str) -> Option<u64> {
        self.services.borrow().user_lock_holder(name)
    }

    fn sequence(&mut self, name: &SequenceName<'_>, call: SequenceCall) -> Result<Option<i64>> {
        self.services.borrow_mut().sequence(name, call)
    }

    fn version(&self) -> &str {
        self.version
    }
}
