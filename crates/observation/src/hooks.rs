//! What the loaded plugins want to observe or restrict: one word that sessions test, and the observers behind it.

use std::fmt;

use arc_swap::ArcSwap;
use errors::Result;
use plugin_api::{EventSet, Observer, Registry};
use sys::sync::Arc;
use sys::sync::atomic::{AtomicU32, Ordering};

/// What the loaded plugins want to know or restrict.
#[derive(Default)]
pub struct Hooks {
    word: AtomicU32,
    /// Those that want something. What each wants is asked for once, as settings decide it.
    observers: ArcSwap<Vec<Wanting>>,
}

struct Wanting {
    events: EventSet,
    observer: Arc<dyn Observer>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hooks").field(&self.word).finish()
    }
}

/// Bits after those of `EventSet`: a plugin restricts access; a sink wants changes; the binary log is on.
const RESTRICTS: u32 = 1 << 31;
const SINKS: u32 = 1 << 30;
/// Commits are logged.
const LOGS: u32 = 1 << 29;

impl Hooks {
    /// Whether an observer wants one of these events.
    #[inline]
    pub fn wants(&self, events: EventSet) -> bool {
        self.word.load(Ordering::Relaxed) & events.bits() != 0
    }

    /// Whether a plugin restricts access.
    #[inline]
    pub fn restricts(&self) -> bool {
        self.word.load(Ordering::Relaxed) & RESTRICTS != 0
    }

    /// Whether anybody may want written rows.
    #[inline]
    pub fn watches_rows(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (EventSet::ROWS.bits() | SINKS | LOGS) != 0
    }

    /// Whether an observer or a sink may want written rows.
    #[inline]
    pub fn tells_of_rows(&self) -> bool {
        self.word.load(Ordering::Relaxed) & (EventSet::ROWS.bits() | SINKS) != 0
    }

    /// Whether the binary log is on.
    #[inline]
    pub fn logs_commits(&self) -> bool {
        self.word.load(Ordering::Relaxed) & LOGS != 0
    }

    /// Calls `tell` for each observer that wants one of these events.
    pub fn tell(&self, events: EventSet, mut tell: impl FnMut(&dyn Observer)) {
        let observers = self.observers.load();
        let wanting = observers.iter().filter(|wanting| wanting.events.meets(events));
        wanting.for_each(|wanting| tell(wanting.observer.as_ref()));
    }

    /// The same for those that may refuse; the first refusal counts.
    ///
    /// # Errors
    /// The refusal.
    pub fn ask(
        &self,
        events: EventSet,
        mut ask: impl FnMut(&dyn Observer) -> Result<()>,
    ) -> Result<()> {
        let observers = self.observers.load();
        let mut wanting = observers.iter().filter(|wanting| wanting.events.meets(events));
        wanting.try_for_each(|wanting| ask(wanting.observer.as_ref()))
    }

    /// Asks the plugins again.
    pub fn refresh(&self, registry: &Registry) {
        let all = registry.observers().iter();
        let all =
            all.map(|observer| Wanting { events: observer.events(), observer: observer.clone() });
        let wanting: Vec<Wanting> =
            all.filter(|wanting| wanting.events != EventSet::NONE).collect();
        let events = wanting.iter().fold(EventSet::NONE, |all, wanting| all | wanting.events);
        let has_policy = registry.authorizers().iter().any(|policy| policy.is_active());
        let restricts = if has_policy { RESTRICTS } else { 0 };
        let has_sinks = registry.change_sinks().iter().any(|sink| sink.is_active());
        let sinks = if has_sinks { SINKS } else { 0 };
        let has_log = registry.binary_log().is_some_and(|log| log.is_active());
        let logs = if has_log { LOGS } else { 0 };
        self.observers.store(Arc::new(wanting));
        self.word.store(events.bits() | restricts | sinks | logs, Ordering::Relaxed);
    }
}
