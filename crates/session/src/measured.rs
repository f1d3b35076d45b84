//! Measures what a statement costs, for those who ask; while nobody does, a statement tests one flag where its phases change.

use observation::Phase;
use plugin_api::SessionCounts;

use crate::process::SessionShared;
use crate::session::Session;
use crate::status::NAMES;

/// The session's clock.
pub(crate) fn now_nanos(session: &Session) -> u64 {
    u64::try_from(session.server.clock.monotonic().as_nanos()).unwrap_or(u64::MAX)
}

impl Session {
    /// The statement's next phase begins.
    #[inline]
    pub(crate) fn enter(&mut self, phase: Phase) {
        if self.phases.is_measured() || self.profile.is_some() {
            enter_measured(self, phase);
        }
    }
}

#[cold]
fn enter_measured(session: &mut Session, phase: Phase) {
    let now = now_nanos(session);
    session.phases.enter(phase, now);
    if let Some(profiled) = &mut session.profile {
        profiled.profiling.enter(phase, now);
    }
}

impl SessionShared {
    /// What the session has counted so far.
    pub(crate) fn counts(&self) -> SessionCounts {
        let (received, sent) = self.traffic.counts();
        let mut counts = vec![0; NAMES.len()];
        self.counters.add_to(&mut counts);
        let counters = NAMES.iter().copied().zip(counts).collect();
        SessionCounts { id: self.id, opened_micros: self.opened_micros, received, sent, counters }
    }
}
