//! Drizzle's further user locks, its barriers, and `shutdown()`.
//!
//! GET_LOCK and its family are built-in functions; what is here waits for other sessions to take locks, takes several at once, or meets them
//! at a barrier.

mod barriers;
mod functions;
mod table;

use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

use barriers::Barriers;

/// The name under which functions find the barriers.
const STATE: &str = "user_locks.barriers";

/// The plugin.
#[derive(Debug)]
pub struct UserLocks;

impl Plugin for UserLocks {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("user_locks", "Barriers, further functions of user locks, and shutdown().")
            .by_default()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let barriers = Arc::new(Barriers::default());
        registrar.shared_state(STATE, barriers.clone());
        registrar.observer(barriers.clone());
        registrar.information_table(Arc::new(table::BarrierTable::new(barriers)));
        functions::all().into_iter().for_each(|function| registrar.function(function));
    }
}
