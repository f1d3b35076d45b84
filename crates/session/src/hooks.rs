//! What the loaded plugins want to observe or restrict, in one word that sessions test.

use plugin_api::{EventSet, Registry};
use sys::sync::atomic::{AtomicU32, Ordering};

/// What the loaded plugins want to know or restrict.
#[derive(Debug, Default)]
pub(crate) struct Hooks(AtomicU32);

/// The bit after those of `EventSet`: a plugin restricts access.
const RESTRICTS: u32 = 1 << 31;

impl Hooks {
    /// Whether an observer wants one of these events.
    #[inline]
    pub(crate) fn wants(&self, events: EventSet) -> bool {
        self.0.load(Ordering::Relaxed) & events.bits() != 0
    }

    /// Whether a plugin restricts access.
    #[inline]
    pub(crate) fn restricts(&self) -> bool {
        self.0.load(Ordering::Relaxed) & RESTRICTS != 0
    }

    /// Asks the plugins again.
    pub(crate) fn refresh(&self, registry: &Registry) {
        let wanted = registry.observers().iter().map(|observer| observer.events());
        let events = wanted.fold(EventSet::NONE, |all, events| all | events);
        let restricts = if registry.authorizers().is_empty() { 0 } else { RESTRICTS };
        self.0.store(events.bits() | restricts, Ordering::Relaxed);
    }
}
