//! The slot for named time zones: providers of the rules of zones like `Europe/Prague`. Offsets like `+01:00` need no plugin.

use std::sync::Arc;

use types::ZoneRules;

/// A database of named time zones.
pub trait TimeZones: Send + Sync {
    /// The zone called `name`, in any case; `None` when it does not exist.
    fn named(&self, name: &str) -> Option<Arc<dyn ZoneRules>>;
}
