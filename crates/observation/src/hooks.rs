//! What the loaded plugins want to observe or restrict, in one word that sessions test.

use plugin_api::{EventSet, Registry};
use sys::sync::atomic::{AtomicU32, Ordering};

/// What the loaded plugins want to know or restrict.
#[derive(Debug, Default)]
pub struct Hooks(AtomicU32);

/// Bits after those of `EventSet`: a plugin restricts access; a sink wants changes.
const RESTRICTS: u32 = 1 << 31;
const SINKS: u32 = 1 << 30;

impl Hooks {
    /// Whether an observer wants one of these events.
    #[inline]
    pub fn wants(&self, events: EventSet) -> bool {
        self.0.load(Ordering::Relaxed) & events.bits() != 0
    }

    /// Whether a plugin restricts access.
    #[inline]
    pub fn restricts(&self) -> bool {
        self.0.load(Ordering::Relaxed) & RESTRICTS != 0
    }

    /// Whether anybody may want written rows.
    #[inline]
    pub fn watches_rows(&self) -> bool {
        self.0.load(Ordering::Relaxed) & (EventSet::ROWS.bits() | SINKS) != 0
    }

    /// Asks the plugins again.
    pub fn refresh(&self, registry: &Registry) {
        let wanted = registry.observers().iter().map(|observer| observer.events());
        let events = wanted.fold(EventSet::NONE, |all, events| all | events);
        let has_policy = registry.authorizers().iter().any(|policy| policy.is_active());
        let restricts = if has_policy { RESTRICTS } else { 0 };
        let has_sinks = registry.change_sinks().iter().any(|sink| sink.is_active());
        let sinks = if has_sinks { SINKS } else { 0 };
        self.0.store(events.bits() | restricts | sinks, Ordering::Relaxed);
    }
}
