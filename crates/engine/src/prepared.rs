//! Transactions in doubt: prepared, and waiting for a decision, across restarts (E23).

mod decide;

use std::collections::HashMap;
use std::sync::Arc;

use sys::sync::Mutex;
use txn::TxnState;

/// The transactions in doubt by name.
#[derive(Default)]
pub(crate) struct Prepared(Mutex<HashMap<Arc<[u8]>, Arc<TxnState>>>);

impl Prepared {
    fn remove(&self, name: &[u8]) -> Option<Arc<TxnState>> {
        self.0.lock().remove(name)
    }
}
