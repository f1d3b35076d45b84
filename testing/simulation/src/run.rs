//! A whole run: lives of one machine, failures between them, and what is checked at the end.

use std::hash::{Hash as _, Hasher as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sys::entropy::SplitMix;
use sys::simulation::{Failure, Simulation};

use crate::clients::lists;
use crate::life::{End, Ended, Life, live};
use crate::plan::{Fault, PLANTED, Plan};
use crate::verify;
use crate::world::{Counts, Violation, World};

/// Lines of the server's log that a report shows.
const LOG_LINES: usize = 30;

/// What became of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The first rule that was broken.
    pub violation: Option<Violation>,
    /// The last statements of each client.
    pub last_statements: String,
    /// The end of the server's log.
    pub log: String,
    /// What happened.
    pub counts: Counts,
    /// Simulated time.
    pub uptime: Duration,
    /// Of everything that left or reached the machine: the same seed gives the same.
    pub trace_hash: u64,
}

/// Panics of threads of this process.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn panics() -> Vec<String> {
    std::mem::take(&mut *PANICS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a plan. One at a time in a process: some of a server's state belongs to the process, and so does a planted defect.
///
/// # Panics
/// When a defect is to be planted in a build without debug assertions.
pub fn run(plan: &Plan) -> Outcome {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let line = format!("thread {}: {info}", thread.name().unwrap_or("?"));
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }));
    let rule = PLANTED.iter().find(|(name, _)| plan.planted == Some(*name));
    assert!(rule.is_none_or(|(_, rule)| sys::model::plant(rule)), "a build with debug assertions");
    let machine = Simulation::new(plan.seed);
    // The cryptographic library makes keys from its own entropy.
    machine.hide_bytes_of(".pem");
    let world = Arc::new(World::new(plan.clone()));
    live_all(&machine, &world);
    if world.know().violation.is_none() {
        check_lists(&machine, &world);
    }
    let console = machine.console();
    let lines: Vec<&str> = console.lines().collect();
    let mut hasher = std::hash::DefaultHasher::new();
    machine.trace().hash(&mut hasher);
    let known = world.know();
    let (violation, counts) = (known.violation.clone(), known.counts);
    drop(known);
    Outcome {
        violation,
        last_statements: world.last_statements(),
        log: lines[lines.len().saturating_sub(LOG_LINES)..].join("\n"),
        counts,
        uptime: machine.uptime(),
        trace_hash: hasher.finish(),
    }
}

fn live_all(machine: &Simulation, world: &Arc<World>) {
    let mut random = SplitMix::new(world.plan.seed ^ 0x0FF);
    for number in 0..world.plan.lives {
        let life = Life::draw(&world.plan, number);
        let (theirs, planned) = (world.clone(), life.clone());
        let ended = on_machine(machine, world, move || live(&theirs, &planned));
        world.end_life(machine.uptime());
        if world.know().violation.is_some() {
            return;
        }
        let fails_by_itself = world.know().files_fail;
        match ended {
            Some(Ended::AsPlanned) => {}
            Some(Ended::ByItself(code)) if !fails_by_itself => {
                return world
                    .violate("a server that can use its files runs", format!("it ended: {code}"));
            }
            // A thread that ended badly, or files that failed.
            Some(Ended::ByItself(_)) | None => {}
        }
        world.know().counts.crashes += u64::from(life.end != End::Clean);
        let loses_power = match life.end {
            End::Power => true,
            End::Kill => false,
            // It may have ended by itself, and the machine with it.
            End::Clean => world.has(Fault::Power) && random.below(2) == 0,
        };
        if loses_power {
            machine.lose_power();
        }
        if life.end == End::Clean && !fails_by_itself {
            let left = machine.left_threads();
            let left: Vec<_> = left.iter().filter(|name| *name != "trouble").collect();
            if !left.is_empty() {
                return world
                    .violate("a server that has stopped has no threads", format!("{left:?}"));
            }
        }
    }
    let backups = world.know().backups.clone();
    for backup in backups.iter().rev().take(2) {
        let (theirs, backup) = (world.clone(), backup.clone());
        on_machine(machine, world, move || verify::restore(&theirs, &backup));
    }
}

/// Runs something on the machine. `None` when it did not come to its end.
fn on_machine<T: Send + 'static>(
    machine: &Simulation,
    world: &Arc<World>,
    body: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let ended = catch_unwind(AssertUnwindSafe(|| machine.run(body)));
    let panics = panics();
    if !panics.is_empty() {
        world.violate("no thread panics", panics.join("\n"));
    }
    match ended {
        Ok(Ok(value)) => Some(value),
        Ok(Err(Failure::Aborted(reason))) => {
            if !world.know().files_fail {
                world.violate("a server that can use its files runs", reason);
            }
            None
        }
        Ok(Err(Failure::Stuck(threads))) => {
            world.violate("threads do not wait for each other", threads);
            None
        }
        Err(_) => None,
    }
}

/// Looks for a cycle in the order of the transactions on lists. On the machine, whose seed decides the order of maps.
fn check_lists(machine: &Simulation, world: &Arc<World>) {
    let theirs = world.clone();
    on_machine(machine, world, move || {
        let history = std::mem::take(&mut theirs.know().history);
        let (level, name) = lists::level(&theirs.plan);
        let report = histories::check(&history, level);
        if let Some(finding) = report.forbidden.first() {
            let detail = format!("{:?}: {}", finding.anomaly, finding.text);
            theirs
                .violate(&format!("transactions on lists are isolated as {name} promises"), detail);
        }
    });
}
