//! Measures what a statement costs, for those who ask; while nobody does, a statement tests one flag where its phases change.

use crate::session::Session;
use observation::Phase;

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
