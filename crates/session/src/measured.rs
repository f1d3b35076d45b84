//! Measures what a statement costs, for those who ask; while nobody does, a statement tests one flag where its phases change.

use crate::session::Session;
use engine_api::Progress;
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

/// Long work begins that the process list and the statement's steps show by the reference's name for it.
pub(crate) fn begin_stage(session: &mut Session, name: &'static str) {
    let now_micros = session.server.now_micros();
    let mut activity = session.shared.activity.lock();
    activity.state = plugin_api::Stage::shown_state(name);
    activity.stage = Some((name, now_micros));
    drop(activity);
    change_stage(session, Some(name));
}

/// The long work ended; it did so much of what was expected, where that is counted.
pub(crate) fn end_stage(session: &mut Session, progress: Option<Progress>) {
    let mut activity = session.shared.activity.lock();
    (activity.state, activity.stage) = ("executing", None);
    drop(activity);
    if let Some(Progress { work_done, work_expected }) = progress {
        session.phases.count_work(work_done, work_expected.max(work_done));
    }
    change_stage(session, None);
}

fn change_stage(session: &mut Session, stage: Option<&'static str>) {
    if session.phases.is_measured() {
        let now = now_nanos(session);
        session.phases.enter_stage(stage, now);
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
