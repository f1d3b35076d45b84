//! The parts that model checkers (loom, shuttle) need besides the types in `sync`: sizes that a model can search, steps at which another thread
//! may run, broken variants that a model must catch, and a parking lot that the model sees.
//!
//! In a build without debug assertions everything here is a constant or nothing at all.

/// `usual`, or `small` under a model: tables of a thousand shards only cost a model time.
pub const fn sized(usual: usize, small: usize) -> usize {
    if cfg!(any(loom, shuttle)) { small } else { usual }
}

/// A place between two accesses to memory that the model does not see, at which another thread may run. For shuttle: loom would search
/// without end.
#[inline(always)]
pub fn step() {
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
}

/// Code that models leave out: assertions that read shared memory would be steps of the schedule, and make faults rarer.
#[macro_export]
macro_rules! unmodelled {
    ($($code:tt)*) => {
        #[cfg(not(any(loom, shuttle)))]
        {
            $($code)*
        }
    };
}

#[cfg(not(any(loom, shuttle)))]
pub use crate::planted::{breaks, plant};

#[cfg(loom)]
pub use exhaustive::{AtomicU64, check, check_in_turn};
#[cfg(any(loom, shuttle))]
pub use modelled::{breaks, is_caught, park, unpark_all};

#[cfg(any(loom, shuttle))]
mod modelled {
    use std::collections::HashMap;
    use std::process::{Command, Stdio};
    use std::sync::{Arc, OnceLock};

    #[cfg(loom)]
    use loom::lazy_static;
    #[cfg(shuttle)]
    use shuttle::lazy_static;

    use crate::sync::{Condvar, Mutex};

    /// Environment variable that names the rule to break.
    pub(super) const BREAKS: &str = "SQUALL_BREAKS";

    /// See above.
    pub fn breaks(rule: &str) -> bool {
        static BROKEN: OnceLock<Option<String>> = OnceLock::new();
        BROKEN.get_or_init(|| std::env::var(BREAKS).ok()).as_deref() == Some(rule)
    }

    /// Whether the test `name` of this program fails when the code under test breaks `rule`. In a separate process: a model that finds a
    /// deadlock may end it.
    pub fn is_caught(name: &str, rule: &str) -> bool {
        let Ok(program) = std::env::current_exe() else { return false };
        let mut command = Command::new(program);
        command.args(["--exact", name]).env(BREAKS, rule);
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.is_ok_and(|status| !status.success())
    }

    struct Sleeper {
        woken: Mutex<bool>,
        wake: Condvar,
    }

    lazy_static! {
        /// Sleepers by address: parking_lot's contract with the model's own locks, so that the model finds a lost wake-up as a deadlock.
        static ref SLEEPERS: Mutex<HashMap<usize, Vec<Arc<Sleeper>>>> = Mutex::new(HashMap::new());
    }

    /// See `sync::park`.
    pub fn park(address: usize, still_needed: impl FnOnce() -> bool) {
        let sleeper = Arc::new(Sleeper { woken: Mutex::new(false), wake: Condvar::new() });
        {
            let mut sleepers = SLEEPERS.lock();
            if !still_needed() {
                return;
            }
            sleepers.entry(address).or_default().push(sleeper.clone());
        }
        let mut woken = sleeper.woken.lock();
        while !*woken {
            woken = sleeper.wake.wait(woken);
        }
    }

    /// See `sync::unpark_all`.
    pub fn unpark_all(address: usize) {
        let sleepers = SLEEPERS.lock().remove(&address).unwrap_or_default();
        for sleeper in sleepers {
            *sleeper.woken.lock() = true;
            sleeper.wake.notify_all();
        }
    }
}

#[cfg(shuttle)]
pub use random::check;

#[cfg(shuttle)]
mod random {
    use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
    use shuttle::{Config, Runner};

    /// Seed of the first schedule; `SHUTTLE_RANDOM_SEED` sets another.
    const SEED: u64 = 0x5eed;
    /// Switches of a schedule with few of them.
    const FEW: usize = 3;
    /// The factor by which a build that breaks a rule is searched longer: chance must not hide the fault.
    const PATIENCE: usize = 20;

    /// Runs `model` under `schedules` random schedules, and as many with few switches at unfavourable places, which find faults that many random ones
    /// miss. The same schedules in each run: a failure is repeatable, and a later run finds no new one.
    pub fn check(schedules: usize, model: impl Fn() + Copy + Send + Sync + 'static) {
        let broken = std::env::var_os(super::modelled::BREAKS).is_some();
        let schedules = if broken { schedules * PATIENCE } else { schedules };
        println!("{schedules} schedules of each kind from seed {SEED:#x}");
        run(RandomScheduler::new_from_seed(SEED, schedules), model);
        run(PctScheduler::new_from_seed(SEED, FEW, schedules), model);
    }

    fn run(scheduler: impl Scheduler + 'static, model: impl Fn() + Send + Sync + 'static) {
        Runner::new(scheduler, Config::default()).run(model);
    }
}

#[cfg(loom)]
mod exhaustive {
    use std::ops::Deref;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64 as Counter, Ordering};

    static LOADS_ARE_STEPS: AtomicBool = AtomicBool::new(false);

    /// loom's, except for loads in `check_in_turn`.
    #[derive(Debug, Default)]
    pub struct AtomicU64(loom::sync::atomic::AtomicU64);

    impl AtomicU64 {
        /// Holds `value`.
        pub fn new(value: u64) -> AtomicU64 {
            AtomicU64(loom::sync::atomic::AtomicU64::new(value))
        }

        /// Reads.
        pub fn load(&self, order: Ordering) -> u64 {
            match LOADS_ARE_STEPS.load(Ordering::Relaxed) {
                true => self.0.fetch_add(0, Ordering::AcqRel),
                false => self.0.load(order),
            }
        }
    }

    impl Deref for AtomicU64 {
        type Target = loom::sync::atomic::AtomicU64;

        fn deref(&self) -> &Self::Target {
            &self.0
        }
    }

    /// Runs `model` under every schedule with few preemptions, and with every stale value that a load may give.
    pub fn check(model: impl Fn() + Sync + Send + 'static) {
        let count = Arc::new(Counter::new(0));
        let counter = count.clone();
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(2);
        builder.max_branches = 100_000;
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            model();
        });
        println!("{} executions", count.load(Ordering::Relaxed));
    }

    /// Like `check`, with loads as steps of their own that give the newest value: loom forgets a thread's load once another thread has loaded
    /// too, and with it the schedules in which that other thread's store comes first. For tests that are about the order of steps, in
    /// programs where all tests are.
    pub fn check_in_turn(model: impl Fn() + Sync + Send + 'static) {
        LOADS_ARE_STEPS.store(true, Ordering::Relaxed);
        check(model);
    }
}
