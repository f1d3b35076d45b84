//! The pool of isolates: QuickJS runtimes that statements borrow, one at a time each.
//!
//! A runtime is reused, a global object is not, except by the program of the one session that it was made for, and by expressions that change
//! nothing (`expression`). A runtime in which
//! something may be left over (a run that was stopped, jobs that never ran) is thrown away.

use std::time::Duration;

use errors::{Result, err};
use rquickjs::{Context, Runtime};
use sys::blocking::blocking;
use sys::clock::monotonic;
use sys::sync::{Condvar, Mutex};

use crate::expression::Expressions;
use crate::failure::LANGUAGE;
use crate::settings::{Limits, Settings};

/// How often a statement that waits for an isolate looks whether it was killed.
const WAIT_STEP: Duration = Duration::from_millis(20);

/// Which compiled program a context belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramId(pub u64);

/// A runtime with at most one context that is kept.
pub(crate) struct Isolate {
    pub expressions: Option<Expressions>,
    pub kept: Option<(ProgramId, Context)>,
    pub runtime: Runtime,
}

#[derive(Default)]
struct State {
    idle: Vec<Isolate>,
    leased: usize,
    programs: u64,
}

/// How many isolates there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counts {
    pub isolates: usize,
    pub in_use: usize,
}

/// All isolates of the server.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    freed: Condvar,
    pub settings: Settings,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What may happen to an isolate after its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Afterwards {
    Reuse,
    Discard,
}

/// An isolate that a statement has to itself.
pub(crate) struct Lease<'p> {
    pool: &'p Pool,
    isolate: Option<Isolate>,
}

impl Pool {
    /// A number for a new program.
    pub(crate) fn new_program(&self) -> ProgramId {
        let mut state = self.state.lock();
        state.programs += 1;
        ProgramId(state.programs)
    }

    /// Drops the contexts of a program.
    pub(crate) fn forget(&self, program: ProgramId) {
        let mut dropped = Vec::new();
        let mut state = self.state.lock();
        for isolate in &mut state.idle {
            if isolate.kept.as_ref().is_some_and(|(kept, _)| *kept == program) {
                dropped.extend(isolate.kept.take());
            }
        }
        drop(state);
    }

    pub(crate) fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts { isolates: state.idle.len() + state.leased, in_use: state.leased }
    }

    /// An isolate, preferably the one that has the program's context.
    ///
    /// # Errors
    /// That of `check`; 6000 when none becomes free in time.
    pub(crate) fn lease(
        &self,
        program: Option<ProgramId>,
        limits: &Limits,
        check: impl Fn() -> Result<()>,
    ) -> Result<Lease<'_>> {
        let found = match self.try_lease(program, limits) {
            Some(found) => found,
            None => blocking(|| self.wait_for_one(program, limits, check))?,
        };
        let isolate = match found {
            Some(mut isolate) => {
                if isolate.kept.as_ref().is_some_and(|(kept, _)| Some(*kept) != program) {
                    isolate.kept = None;
                }
                Some(isolate)
            }
            None => None,
        };
        let mut lease = Lease { pool: self, isolate };
        if lease.isolate.is_none() {
            let runtime = Runtime::new().map_err(|_| err!(OUT_OF_RESOURCES))?;
            lease.isolate = Some(Isolate { expressions: None, kept: None, runtime });
        }
        Ok(lease)
    }

    /// `Some(None)`: the caller may make one. `None`: it has to wait.
    fn try_lease(&self, program: Option<ProgramId>, limits: &Limits) -> Option<Option<Isolate>> {
        let mut state = self.state.lock();
        let kept = |isolate: &Isolate| isolate.kept.as_ref().map(|(program, _)| *program);
        let own = program.and_then(|_| state.idle.iter().rposition(|it| kept(it) == program));
        let found = own.or_else(|| state.idle.iter().rposition(|it| kept(it).is_none()));
        if let Some(at) = found {
            state.leased += 1;
            return Some(Some(state.idle.remove(at)));
        }
        if state.idle.len() + state.leased < limits.isolates_max {
            state.leased += 1;
            return Some(None);
        }
        if state.idle.is_empty() {
            return None;
        }
        state.leased += 1;
        // The one that was used the longest time ago loses its program.
        Some(Some(state.idle.remove(0)))
    }

    fn wait_for_one(
        &self,
        program: Option<ProgramId>,
        limits: &Limits,
        check: impl Fn() -> Result<()>,
    ) -> Result<Option<Isolate>> {
        let end = monotonic() + limits.time;
        loop {
            if let Some(found) = self.try_lease(program, limits) {
                return Ok(found);
            }
            check()?;
            if monotonic() >= end {
                let waited = limits.time.as_millis();
                let text = format!(
                    "all {} isolates (js_max_isolates) were in use for {waited} ms (js_timeout)",
                    limits.isolates_max
                );
                return Err(err!(LANGUAGE_COMPONENT_ERROR, LANGUAGE, text));
            }
            let state = self.state.lock();
            if state.idle.is_empty() {
                let _waiting = sys::waits::enter(sys::waits::Wait::Mutex);
                drop(self.freed.wait_for(state, WAIT_STEP));
            }
        }
    }
}

impl Lease<'_> {
    pub(crate) fn isolate(&mut self) -> Option<&mut Isolate> {
        self.isolate.as_mut()
    }

    /// Gives the isolate back.
    pub(crate) fn end(mut self, limits: &Limits, afterwards: Afterwards) {
        if afterwards == Afterwards::Reuse
            && let Some(isolate) = self.isolate.take()
        {
            let mut state = self.pool.state.lock();
            if state.idle.len() + state.leased <= limits.isolates_max {
                state.idle.push(isolate);
            } else {
                drop(state);
                drop(isolate);
            }
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.isolate = None;
        self.pool.state.lock().leased -= 1;
        self.pool.freed.notify_one();
    }
}
