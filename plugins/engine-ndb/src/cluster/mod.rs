//! ALTER CLUSTER: the cluster is changed by SQL, through its management server.
//!
//! A change is a plan of steps. The plan is stored in this server's tables before its first step acts; a step can be begun again, or
//! finds in the cluster that it was done. So whoever starts after a crash goes on where it was, or says that nothing had been done.

mod configuration;
mod journal;
mod parameters;
mod plan;
mod run;
mod statement;

use std::collections::HashMap;
use std::time::Duration;

use engine_api::{CancelToken, EngineError};
use errors::{Error, ErrorCode, Result};
use plugin_api::{
    BackgroundJob, ClusterControl, ClusterStep, Registrar, RunningJob, SessionFactory,
};
use sys::blocking::blocking;
use sys::clock;
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::sync::{Arc, Mutex};
use sys::threads::Thread;
use tracing::{error, info, warn};

use self::configuration::Configuration;
use self::journal::{Ending, Journal, Stored};
use self::plan::{Action, Facts, refused};
use self::run::{Age, Cluster};
use self::statement::Change;
use crate::engine::Shared;
use crate::error::NdbError;
use crate::shim::{Command, Node, Shim};

/// What changes need. Backups need what backups of the server need.
const PRIVILEGE: &str = "CLUSTER_ADMIN";
/// Between two looks of a statement at its change.
const WATCH: Duration = Duration::from_millis(20);

/// How a change is going.
#[derive(Default)]
struct Progress(Mutex<Option<Result<()>>>);

/// What runs changes.
struct Control {
    shared: Arc<Shared>,
    journal: Journal,
    /// The change that runs, with its thread.
    current: Mutex<Option<(Arc<Progress>, Thread)>>,
    is_stopping: AtomicBool,
}

/// The cluster of this server.
struct Managed<'c> {
    shared: &'c Shared,
    shim: Shim,
    address: String,
    is_stopping: &'c AtomicBool,
}

fn seconds() -> u64 {
    clock::wall().as_secs()
}

fn failed(error: EngineError) -> Error {
    error.into_error(&CancelToken::new())
}

fn word(error: NdbError) -> Error {
    error.word()
}

/// Of a value of ndbinfo, which is a number in this machine's order.
fn number(bytes: Option<&[u8]>) -> u64 {
    let Some(bytes) = bytes.filter(|bytes| bytes.len() <= 8) else { return 0 };
    let big_first = |number, byte: &u8| number << 8 | u64::from(*byte);
    match cfg!(target_endian = "big") {
        true => bytes.iter().fold(0, big_first),
        false => bytes.iter().rev().fold(0, big_first),
    }
}

impl Managed<'_> {
    /// Shows the rows of a table of ndbinfo, as far as the data nodes answer.
    fn info(&self, table: &str, columns: &[&str], mut each: impl FnMut(&[u64])) -> Result<()> {
        let link = self.shared.links.get().map_err(failed)?;
        let read = link.connection.info_rows(table, columns, |values| {
            let values: Vec<u64> = values.iter().map(|value| number(*value)).collect();
            each(&values);
            true
        });
        read.map_err(word)
    }

    /// Bytes of DataMemory that are used on the fullest node.
    fn used(&self) -> Result<u64> {
        const DATA_MEMORY: u64 = 3;
        let mut most = 0;
        self.info("resources", &["resource_id", "used"], |values| {
            if let [DATA_MEMORY, pages] = *values {
                most = most.max(pages << 15);
            }
        })?;
        Ok(most)
    }

    fn facts(&self, journal: &Journal) -> Result<Facts> {
        let nodes = self.nodes().map_err(word)?;
        let configuration = self.configuration().map_err(word)?;
        let used = self.used()?;
        let link = self.shared.links.get().map_err(failed)?;
        let mut tables = Vec::new();
        for name in link.connection.table_names().map_err(word)? {
            let opened = crate::shim::NdbTable::open(&link.connection, &name);
            // One that is dropped meanwhile has no rows.
            let rows = opened.and_then(|table| table.size()).map_or(0, |(rows, _)| rows);
            tables.push((name, rows));
        }
        tables.sort();
        Ok(Facts { nodes, configuration, used, tables, history: journal.history()? })
    }
}

impl Cluster for Managed<'_> {
    fn nodes(&self) -> Result<Vec<Node>, NdbError> {
        let mut nodes = self.shim.nodes(&self.address)?;
        let is_away = |node: &Node| node.kind == plan::DATA && node.status == run::NO_CONTACT;
        if nodes.iter().any(is_away) {
            // Its group is told as 0 then, also of one that is in none.
            let without_group = self.configuration()?.without_group();
            for node in nodes.iter_mut().filter(|node| is_away(node)) {
                if without_group.contains(&node.id) {
                    node.group = configuration::NO_GROUP as i32;
                }
            }
        }
        Ok(nodes)
    }

    fn configuration(&self) -> Result<Configuration, NdbError> {
        self.shim.configuration(&self.address).map(Configuration)
    }

    fn configure(&self, configuration: &Configuration) -> Result<(), NdbError> {
        self.shim.configure(&self.address, &configuration.0)
    }

    fn command(&self, command: Command, nodes: &[i32]) -> Result<i32, NdbError> {
        self.shim.command(&self.address, command, nodes)
    }

    fn ages(&self) -> HashMap<i32, Age> {
        let mut ages = HashMap::new();
        let columns = ["node_id", "uptime", "config_generation"];
        let read = self.info("nodes", &columns, |values| {
            if let [node, uptime, generation] = *values {
                ages.insert(node as i32, Age { uptime, generation });
            }
        });
        if let Err(error) = read {
            info!(%error, "data nodes do not say how old they are");
        }
        ages
    }

    fn spread(&self, table: &str) -> Result<(), NdbError> {
        match self.shared.links.get() {
            Ok(link) => link.connection.spread(table),
            Err(error) => Err(NdbError {
                code: 4009,
                status: 1,
                is_aborted: false,
                text: failed(error).to_string(),
            }),
        }
    }

    fn renew(&self) -> Result<()> {
        if let Err(error) = self.shared.links.renew().map_err(failed) {
            // Such as no free slot for clients: the old connection reaches the rows of new nodes through the others.
            warn!(%error, "ndbinfo does not show the new data nodes until the server starts anew");
        }
        Ok(())
    }

    fn now(&self) -> u64 {
        seconds()
    }

    fn pause(&self, time: Duration) -> Result<()> {
        // Pairs with the store in `stop`.
        if self.is_stopping.load(Ordering::Acquire) {
            return Err(Error::with(ErrorCode::SERVER_SHUTDOWN, &[]));
        }
        sys::threads::sleep(time);
        Ok(())
    }
}

impl Control {
    fn managed(&self) -> Result<Managed<'_>> {
        let (shim, address) = self.shared.links.manager().map_err(failed)?;
        Ok(Managed { shared: &self.shared, shim, address, is_stopping: &self.is_stopping })
    }

    fn plan(&self, change: &str) -> Result<Vec<plan::Step>> {
        let change = statement::parse(change)?;
        blocking(|| self.managed()?.facts(&self.journal)?.plan(&change))
    }

    /// Does the steps that are left, and stores how the change ended.
    fn work(&self, stored: &Stored) -> Result<()> {
        let managed = self.managed()?;
        let outcome = self.steps(&managed, stored);
        // Pairs with the store in `stop`.
        if outcome.is_err() && self.is_stopping.load(Ordering::Acquire) {
            info!("{}: goes on when the server starts again", stored.statement);
            return outcome;
        }
        let ending = if outcome.is_ok() { Ending::Done } else { Ending::Failed };
        match &outcome {
            Ok(()) => info!("{}: done", stored.statement),
            Err(error) => error!("{}: failed: {error}", stored.statement),
        }
        self.journal.end(stored.id, ending, outcome.as_ref().err(), seconds())?;
        outcome
    }

    fn steps(&self, managed: &Managed<'_>, stored: &Stored) -> Result<()> {
        for (at, step) in stored.steps.iter().enumerate().filter(|(_, step)| !step.is_done) {
            let began = match step.began {
                Some(began) => began,
                None => {
                    let now = seconds();
                    self.journal.begin(stored.id, at, now)?;
                    now
                }
            };
            info!("{}: step {}: {}", stored.statement, at + 1, step.action.shown());
            run::run(managed, &step.action, began)?;
            self.journal.finish(stored.id, at, seconds())?;
        }
        Ok(())
    }

    /// Starts a thread that does the change, unless one runs.
    fn start(self: &Arc<Self>, make: impl FnOnce() -> Result<Stored>) -> Result<Arc<Progress>> {
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|(progress, _)| progress.0.lock().is_none()) {
            return Err(refused("another change of the cluster is under way"));
        }
        let stored = make()?;
        let progress = Arc::new(Progress::default());
        let (control, told) = (self.clone(), progress.clone());
        let work = move || {
            let outcome = control.work(&stored);
            *told.0.lock() = Some(outcome);
        };
        let thread = sys::threads::spawn("ndb-change", work).map_err(Error::internal)?;
        if let Some((_, over)) = current.replace((progress.clone(), thread)) {
            over.join();
        }
        Ok(progress)
    }

    /// Goes on with a change that a crash or a stop has left, or says that it never was.
    fn resume(self: &Arc<Self>) -> Result<()> {
        let Some(stored) = self.journal.unfinished()? else { return Ok(()) };
        let next = stored.steps.iter().position(|step| !step.is_done);
        let step = next.and_then(|at| stored.steps.get(at));
        let is_undone = match (next, step) {
            (Some(0), Some(step)) if step.began.is_none() => true,
            (Some(0), Some(step)) => run::left_nothing(&self.managed()?, &step.action)?,
            _ => false,
        } || step
            .is_some_and(|step| step.began.is_some() && step.action == Action::Backup);
        if is_undone {
            warn!("{}: undone, the server ended before its first step was done", stored.statement);
            return self.journal.end(stored.id, Ending::Undone, None, seconds());
        }
        let at = next.map_or(stored.steps.len(), |at| at + 1);
        warn!("{}: goes on at step {at} of {}", stored.statement, stored.steps.len());
        self.start(|| Ok(stored)).map(drop)
    }
}

/// The control as plugins are given it.
struct Shown(Arc<Control>);

impl ClusterControl for Shown {
    fn privilege(&self, change: &str) -> Result<&'static str> {
        Ok(match statement::parse(change)? {
            Change::Backup => "BACKUP_ADMIN",
            Change::Set(_)
            | Change::Add(_)
            | Change::Drop(_)
            | Change::Restart(_)
            | Change::Stop(_)
            | Change::Start(_) => PRIVILEGE,
        })
    }

    fn explain(&self, change: &str) -> Result<Vec<ClusterStep>> {
        Ok(self.0.plan(change)?.iter().map(plan::Step::explained).collect())
    }

    fn run(&self, change: &str, cancel: &CancelToken) -> Result<()> {
        let steps = self.0.plan(change)?;
        let statement = format!("ALTER CLUSTER {}", change.trim());
        blocking(|| {
            let store = || self.0.journal.store(&statement, &steps, seconds());
            let progress = self.0.start(store)?;
            loop {
                if let Some(outcome) = progress.0.lock().clone() {
                    return outcome;
                }
                cancel.check()?;
                sys::threads::sleep(WATCH);
            }
        })
    }
}

/// Looks at the start of the server for a change that is not over.
struct Job(Arc<Control>);

struct Running {
    control: Arc<Control>,
    thread: Thread,
}

impl BackgroundJob for Job {
    fn name(&self) -> &'static str {
        "ndb-cluster"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        let control = self.0.clone();
        // Pairs with the loads in `pause` and `work`.
        control.is_stopping.store(false, Ordering::Release);
        control.journal.set_sessions(Some(sessions));
        let resuming = control.clone();
        let resume = move || {
            const STEP: Duration = Duration::from_millis(200);
            // Pairs with the store in `stop`.
            while !resuming.is_stopping.load(Ordering::Acquire) {
                match resuming.resume() {
                    Ok(()) => return,
                    Err(error) if error.code() == ErrorCode::SERVER_ISNT_AVAILABLE => {
                        sys::threads::sleep(STEP);
                    }
                    Err(error) => {
                        error!(%error, "a change of the cluster that was begun cannot go on");
                        return;
                    }
                }
            }
        };
        let thread = sys::threads::spawn("ndb-resume", resume).map_err(Error::internal)?;
        Ok(Box::new(Running { control, thread }))
    }
}

impl RunningJob for Running {
    fn stop(self: Box<Self>) {
        // Pairs with the loads in `pause`, `work` and the thread that resumes.
        self.control.is_stopping.store(true, Ordering::Release);
        self.thread.join();
        let current = self.control.current.lock().take();
        if let Some((_, thread)) = current {
            thread.join();
        }
        self.control.journal.set_sessions(None);
    }
}

/// Registers the statements, the privilege and the job.
pub(crate) fn register(shared: &Arc<Shared>, registrar: &mut Registrar<'_>) {
    let control = Arc::new(Control {
        shared: shared.clone(),
        journal: Journal::default(),
        current: Mutex::default(),
        is_stopping: AtomicBool::new(false),
    });
    registrar.privilege(PRIVILEGE);
    registrar.cluster(Arc::new(Shown(control.clone())));
    registrar.job(Arc::new(Job(control)));
}
