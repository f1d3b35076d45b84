//! A simulated machine: under one seed, threads take turns, time passes when all of them wait, and disks and networks live in memory.
//!
//! [`Simulation::run`] starts a thread of the machine. On it, and on every thread that it starts through `crate::threads`, the whole crate
//! works on the simulated machine: files, sockets, clocks, entropy, locks, conditions. One thread runs at a time, and another gets its turn
//! when the first waits: for a lock, a condition, a sleep, a disk, a peer. The next thread, the duration of disk and network operations, and the order
//! of wake-ups are drawn from the seed, so that the same seed gives the same run, and another seed another order of the same work. Computing
//! takes no time.
//!
//! A process without a simulation pays one load of a word that never changes where it waits or makes a system call anyway, and nothing where it
//! takes a free lock.
//!
//! Not simulated: preemption between two waits (the models of loom and shuttle are for that), weak memory, and the entropy of
//! libraries that ask the system themselves (see `Simulation::hide_bytes_of` and [`crate::seeded_hash_maps`]).
// The models do not run on simulated machines.
#![cfg_attr(any(loom, shuttle), allow(dead_code))]

mod faults;
pub(crate) mod file_tree;
pub(crate) mod network;
mod scheduler;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;
mod trace;

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use scheduler::{Core, End};

pub use faults::{Faults, change_faults, cut_a_connection, fill_disks, stall_a_connection};
pub(crate) use file_tree::{VirtualFile, VirtualLock};
pub(crate) use network::{VirtualListener, VirtualPoller, VirtualSocket, VirtualWaker};
pub(crate) use scheduler::{Here, Key, VirtualThread, Woken};
pub use trace::{Event, Record};

/// Wall clock at the start of a machine's life: 2026-01-01 00:00:00 UTC.
const START_OF_TIME: Duration = Duration::from_secs(1_767_225_600);

/// Machines that run now. Changes only when a simulation begins or ends, so that looking at it costs nothing in a server.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The simulated machine that this thread belongs to.
    static HERE: RefCell<Option<Here>> = const { RefCell::new(None) };
}

/// The calling thread's place in a simulated machine; `None` on the real one.
#[inline]
pub(crate) fn current() -> Option<Here> {
    // Relaxed: a simulated thread is started after the count went up, and starting a thread orders the two.
    if RUNNING.load(Ordering::Relaxed) == 0 { None } else { look_up() }
}

#[cold]
fn look_up() -> Option<Here> {
    // While a thread ends its value may be gone already.
    HERE.try_with(|here| here.borrow().clone()).ok().flatten()
}

/// Makes the calling thread one of `here`'s machine.
fn enter(here: &Here) {
    HERE.with(|current| *current.borrow_mut() = Some(here.clone()));
}

/// The uptime of the calling thread's simulated machine.
#[inline]
pub(crate) fn monotonic() -> Option<Duration> {
    current().map(|here| here.now())
}

/// Time since 1970-01-01 UTC on the calling thread's simulated machine.
#[inline]
pub(crate) fn wall() -> Option<Duration> {
    let here = current()?;
    let (up, offset) = here.with(|state| (state.now(), state.faults.wall_offset_secs));
    let by = Duration::from_secs(offset.unsigned_abs());
    let time = START_OF_TIME + up;
    Some(if offset < 0 { time.saturating_sub(by) } else { time + by })
}

/// Why a life of a machine ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Every thread waits for another one. Names the object of each wait.
    Stuck(String),
    /// The process ended itself, for this reason.
    Aborted(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Stuck(threads) => write!(f, "all threads wait:\n{threads}"),
            Failure::Aborted(reason) => write!(f, "the process ended itself: {reason}"),
        }
    }
}

/// A simulated machine with its disks.
pub struct Simulation(Arc<Core>);

impl Simulation {
    /// A machine with empty disks and randomness from `seed`.
    pub fn new(seed: u64) -> Simulation {
        Simulation(Arc::new(Core::new(seed)))
    }

    /// Leaves the bytes of files whose names end in `suffix` out of the trace: they come from entropy that is not simulated.
    pub fn hide_bytes_of(&self, suffix: &str) {
        self.0.lock().trace.hidden.push(suffix.to_owned());
    }

    /// Runs `body` on a thread of the machine, and returns what it returned. Then the machine stops: other threads get no more turns.
    /// Their memory stays taken until the real process ends. The disks stay as they are for the next call, as if power had failed but all
    /// writes had arrived; see [`Simulation::lose_power`].
    ///
    /// # Errors
    /// All threads wait for each other, or the simulated process aborted.
    ///
    /// # Panics
    /// When `body` does; when no thread can be had.
    pub fn run<T: Send + 'static>(
        &self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        RUNNING.fetch_add(1, Ordering::Relaxed);
        let result: Arc<Mutex<Option<Result<T, Box<dyn Any + Send>>>>> = Arc::default();
        let (theirs, core) = (result.clone(), self.0.clone());
        self.0.begin_life("main", move || {
            let outcome = catch_unwind(AssertUnwindSafe(body));
            *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            core.end_life(End::Returned);
        });
        let end = self.0.wait_for_end();
        RUNNING.fetch_sub(1, Ordering::Relaxed);
        let outcome = result.lock().unwrap_or_else(PoisonError::into_inner).take();
        match (end, outcome) {
            (End::Stuck(threads), _) => Err(Failure::Stuck(threads)),
            (End::Aborted(reason), _) => Err(Failure::Aborted(reason)),
            (End::Returned, Some(Ok(value))) => Ok(value),
            (End::Returned, Some(Err(panic))) => resume_unwind(panic),
            (End::Returned, None) => unreachable!("the result is stored before the life ends"),
        }
    }

    /// Simulates a power failure: of the writes that were not synced, a part drawn from the seed stays. Call it between two calls of `run`.
    pub fn lose_power(&self) {
        self.0.lock().lose_power();
    }

    /// Names of threads that were not over when the last life ended.
    pub fn left_threads(&self) -> Vec<String> {
        self.0.lock().left.clone()
    }

    /// Everything that left or reached the machine so far, in order.
    pub fn trace(&self) -> Vec<Record> {
        self.0.lock().trace.records.clone()
    }

    /// The uptime so far, of all lives.
    pub fn uptime(&self) -> Duration {
        self.0.lock().now()
    }

    /// The text written to standard error so far.
    pub fn console(&self) -> String {
        self.0.lock().console.clone()
    }
}

/// Writes a line of the test's own into the trace; nothing on a real machine.
pub fn note(text: &str) {
    if let Some(here) = current() {
        here.with(|state| state.record(Event::Note(text.to_owned())));
    }
}
