//! Failures of a back end in the error log, few enough that nobody can fill it by trying to log in.

use std::time::Duration;

use sys::sync::Mutex;
use tracing::warn;

/// The error log gets one line of a method in this time.
const INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct State {
    told: Option<Duration>,
    untold: u64,
}

/// One method's failures.
#[derive(Debug, Default)]
pub(crate) struct Complaints(Mutex<State>);

impl Complaints {
    /// Writes that `method` could not check a user's password; `reason` holds no secret.
    pub(crate) fn tell(&self, method: &str, user: &str, reason: &str) {
        let now = sys::clock::monotonic();
        let mut state = self.0.lock();
        if state.told.is_some_and(|told| now.saturating_sub(told) < INTERVAL) {
            state.untold += 1;
            return;
        }
        let untold = std::mem::take(&mut state.untold);
        state.told = Some(now);
        drop(state);
        warn!(method, user, untold, "a log-in could not be checked: {reason}");
    }
}
