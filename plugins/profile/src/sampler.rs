//! Looks at the sessions that run statements: once a second for ACTIVE_SESSION_HISTORY, and as often as `profile_sample_hz` says for PROFILE_SAMPLES.
//!
//! One thread asks the server which sessions run and looks at the threads that run them. Sessions do nothing for it and wait for nothing: while it looks at a
//! thread, that copies its stack, some 50 microseconds. Everything that is kept has a bound.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::variable::as_u64;
use plugin_api::{
    BackgroundJob, ConnectionEvent, EventSet, GlobalValue, Observer, ProcessView, RunningJob,
    SessionFactory,
};
use sys::clock::{Clock, RealClock};
use sys::sync::{Condvar, Mutex};
use sys::threads::Thread;
use types::Value;

use crate::sample::{Sample, Taker};

/// The variable that sets how often a session is looked at.
pub(crate) const RATE: &str = "profile_sample_hz";
/// One row a second for 16 sessions; with more of them the history is shorter than an hour.
const HISTORY_MAX: usize = 60_000;
/// Age of the oldest row of the history.
const HISTORY_AGE_MICROS: i64 = 3_600 * 1_000_000;
const SAMPLES_MAX: usize = 100_000;
const SECOND: Duration = Duration::from_secs(1);

/// Samples, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<VecDeque<Sample>>);

impl Kept {
    fn push(&self, sample: Sample, count_max: usize) {
        let mut kept = self.0.lock();
        debug_assert!(kept.len() <= count_max, "the oldest have given way");
        kept.push_back(sample);
        while kept.len() > count_max {
            kept.pop_front();
        }
    }

    fn forget_before(&self, at_micros: i64) {
        let mut kept = self.0.lock();
        while kept.front().is_some_and(|sample| sample.at_micros < at_micros) {
            kept.pop_front();
        }
    }

    pub(crate) fn all(&self) -> Vec<Sample> {
        self.0.lock().iter().cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Sampler {
    /// `profile_sample_hz`.
    pub(crate) rate: GlobalValue,
    /// `active_session_history`.
    pub(crate) keeps_history: GlobalValue,
    pub(crate) history: Kept,
    pub(crate) samples: Kept,
    /// Rates of sessions that have set their own.
    own_rates: Mutex<HashMap<u64, u64>>,
    control: Mutex<Control>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Control {
    stops: bool,
}

impl Sampler {
    /// How often a session is to be looked at.
    fn rate_of(&self, session: u64, all: u64) -> u64 {
        self.own_rates.lock().get(&session).copied().unwrap_or(all)
    }

    /// Runs until it is stopped.
    fn run(&self, sessions: &dyn SessionFactory) {
        let clock = RealClock::new();
        let mut taker = Taker::default();
        let (mut tick, mut next, mut history_at) = (0_u64, clock.monotonic(), clock.monotonic());
        loop {
            let hz = self.highest_rate();
            let period = if hz == 0 { SECOND } else { SECOND / u32::try_from(hz).unwrap_or(1) };
            let now = clock.monotonic();
            // A machine that is too slow for the rate gets a lower one.
            next = (next + period).max(now).min(now + period);
            if self.pause(next.saturating_sub(now)) {
                return;
            }
            tick += 1;
            let now = clock.monotonic();
            let is_history_due = self.keeps_history.is_on() && now >= history_at;
            if is_history_due {
                history_at = (history_at + SECOND).max(now);
            }
            if hz > 0 || is_history_due {
                let look = Look { tick, hz, is_history_due };
                self.look(&look, &sessions.running_sessions(), &clock, &mut taker);
            }
        }
    }

    fn highest_rate(&self) -> u64 {
        let own = self.own_rates.lock().values().copied().max().unwrap_or(0);
        own.max(self.rate.number())
    }

    /// Waits; returns whether the job is to end.
    fn pause(&self, pause: Duration) -> bool {
        let control = self.control.lock();
        if control.stops {
            return true;
        }
        self.wake.wait_for(control, pause).stops
    }

    fn look(&self, look: &Look, running: &[ProcessView], clock: &RealClock, taker: &mut Taker) {
        let all = self.rate.number();
        let now_micros = i64::try_from(clock.wall().as_micros()).unwrap_or(i64::MAX);
        if look.is_history_due {
            self.history.forget_before(now_micros - HISTORY_AGE_MICROS);
        }
        for view in running {
            let is_sampled = look.is_due(self.rate_of(view.id, all));
            if !is_sampled && !look.is_history_due {
                continue;
            }
            let Some(sample) = taker.take(view, now_micros) else { continue };
            if is_sampled {
                self.samples.push(sample.clone(), SAMPLES_MAX);
            }
            if look.is_history_due {
                self.history.push(sample, HISTORY_MAX);
            }
        }
    }
}

/// One look at the sessions.
struct Look {
    tick: u64,
    /// Looks in a second.
    hz: u64,
    is_history_due: bool,
}

impl Look {
    /// Whether this is one of `rate` looks in a second.
    fn is_due(&self, rate: u64) -> bool {
        // It may have been raised since the look was planned.
        let rate = rate.min(self.hz);
        let so_far = |tick: u64| tick.wrapping_mul(rate) / self.hz.max(1);
        rate > 0 && so_far(self.tick) != so_far(self.tick.wrapping_sub(1))
    }
}

impl Observer for Sampler {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn events(&self) -> EventSet {
        EventSet::SESSION_VARIABLE | EventSet::DISCONNECT
    }

    fn variable_set(&self, connection_id: u64, name: &str, value: &Value) {
        if name == RATE {
            self.own_rates.lock().insert(connection_id, as_u64(value));
            self.wake.notify_all();
        }
    }

    fn variables_reset(&self, connection_id: u64) {
        self.own_rates.lock().remove(&connection_id);
    }

    fn disconnected(&self, connection: &ConnectionEvent<'_>) {
        self.own_rates.lock().remove(&connection.session.connection_id);
    }
}

/// The thread as a job of the plugin.
pub(crate) struct SampleJob(pub(crate) Arc<Sampler>);

struct RunningSampler {
    sampler: Arc<Sampler>,
    thread: Thread,
}

impl BackgroundJob for SampleJob {
    fn name(&self) -> &'static str {
        "profile"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        let sampler = self.0.clone();
        sampler.control.lock().stops = false;
        let runs = sampler.clone();
        let thread = sys::threads::spawn("profile", move || runs.run(&*sessions));
        Ok(Box::new(RunningSampler { sampler, thread: thread.map_err(Error::internal)? }))
    }
}

impl RunningJob for RunningSampler {
    fn stop(self: Box<Self>) {
        self.sampler.control.lock().stops = true;
        self.sampler.wake.notify_all();
        self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lower_rate_is_due_as_often_as_it_says() {
        let due = |rate: u64| {
            let look = |tick| Look { tick, hz: 997, is_history_due: false };
            (1..=997).filter(|tick| look(*tick).is_due(rate)).count()
        };
        assert_eq!((due(997), due(100), due(1), due(0)), (997, 100, 1, 0));
    }

    #[test]
    fn a_session_has_its_own_rate_until_its_variables_are_reset() {
        let sampler = Sampler::default();
        sampler.rate.store(Value::UInt(10));
        assert_eq!(sampler.rate_of(1, 10), 10);
        sampler.variable_set(1, "sort_buffer_size", &Value::UInt(7));
        sampler.variable_set(1, RATE, &Value::UInt(0));
        sampler.variable_set(2, RATE, &Value::UInt(500));
        assert_eq!((sampler.rate_of(1, 10), sampler.highest_rate()), (0, 500));
        sampler.variables_reset(1);
        sampler.variables_reset(2);
        assert_eq!((sampler.rate_of(1, 10), sampler.highest_rate()), (10, 10));
    }
}
