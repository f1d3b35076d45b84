//! What all clients of a run know together, outside of the simulated machine: it outlives every crash.
//!
//! One thread of the machine runs at a time, and none waits while it looks at this.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use histories::{End, Transaction};
use sys::sync::{Condvar, Mutex as MachineMutex};

use crate::clients::branch::Branch;
use crate::clients::scratch::ScratchTables;
use crate::model::Timeline;
use crate::plan::{Fault, Plan};

/// Statements of each client that a report shows.
const LAST_STATEMENTS: usize = 14;

/// A rule that the server broke.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, in a sentence.
    pub rule: String,
    /// What was seen.
    pub detail: String,
}

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Lives of the server.
    pub lives: u64,
    /// Lives that ended by a failure of power or the end of the process.
    pub crashes: u64,
    /// Statements whose answer came.
    pub statements: u64,
    /// Commits that were acknowledged.
    pub commits: u64,
    /// Commits whose answer was lost.
    pub unknown: u64,
}

/// A backup that was taken.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Its directory.
    pub path: String,
    /// Of each client, the number of the oldest state that it may have.
    pub floors: Vec<usize>,
}

/// Everything.
pub struct Knowledge {
    /// The first violation.
    pub violation: Option<Violation>,
    /// Nobody sends another statement in this life.
    pub is_over: bool,
    /// Nothing goes wrong any more in this life.
    pub is_calm: bool,
    /// Clients that still work.
    pub working: u32,
    /// After so many statements of this life it ends.
    pub statements_left: u64,
    /// What happened.
    pub counts: Counts,
    /// The rows that each client has of its own.
    pub timelines: Vec<Timeline>,
    /// The XA branch that each client left.
    pub branches: BTreeMap<u32, Branch>,
    /// Transactions on lists.
    pub history: Vec<Transaction>,
    /// Those that are open, by client, and whether COMMIT was sent.
    pub open: BTreeMap<u32, (Transaction, bool)>,
    /// Numbers of texts and elements.
    pub next_number: u32,
    /// Tables that come and go.
    pub scratch: ScratchTables,
    /// Definitions of the tables in use that somebody has changed.
    pub toggles: crate::clients::definitions::Toggles,
    /// Persisted settings.
    pub persisted: crate::clients::settings::Persisted,
    /// Backups that were taken.
    pub backups: Vec<Backup>,
    /// Statements may lack space until then.
    pub space_is_short_until: Duration,
    /// Files cannot be read or written at times, in this life.
    pub files_fail: bool,
    /// The last statements of each client.
    logs: BTreeMap<String, VecDeque<String>>,
}

/// What all share.
pub struct World {
    /// What the run does.
    pub plan: Plan,
    knowledge: Mutex<Knowledge>,
}

/// Wakes the thread that waits for the end of a life.
#[derive(Clone)]
pub struct Bell(Arc<(MachineMutex<()>, Condvar)>);

impl Bell {
    /// A bell for one life.
    pub fn new() -> Bell {
        Bell(Arc::new((MachineMutex::new(()), Condvar::new())))
    }

    /// Wakes whoever waits.
    pub fn ring(&self) {
        self.0.1.notify_all();
    }

    /// Waits until it rings, for `limit` at most.
    pub fn wait(&self, limit: Duration) {
        let guard = self.0.0.lock();
        drop(self.0.1.wait_for(guard, limit));
    }
}

impl Default for Bell {
    fn default() -> Bell {
        Bell::new()
    }
}

impl World {
    /// Of a run that has not begun.
    pub fn new(plan: Plan) -> World {
        let timelines = (0..plan.clients).map(|_| Timeline::new(crate::model::State::new()));
        let knowledge = Knowledge {
            violation: None,
            is_over: false,
            is_calm: false,
            working: 0,
            statements_left: u64::MAX,
            counts: Counts::default(),
            timelines: timelines.collect(),
            branches: BTreeMap::new(),
            history: Vec::new(),
            open: BTreeMap::new(),
            next_number: 0,
            scratch: ScratchTables::default(),
            toggles: Default::default(),
            persisted: Default::default(),
            backups: Vec::new(),
            space_is_short_until: Duration::ZERO,
            files_fail: false,
            logs: BTreeMap::new(),
        };
        World { plan, knowledge: Mutex::new(knowledge) }
    }

    /// All that is known. The caller must not wait while it has this.
    pub fn know(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the run has this fault.
    pub fn has(&self, fault: Fault) -> bool {
        self.plan.faults.contains(&fault)
    }

    /// A number that nothing else has.
    pub fn number(&self) -> u32 {
        let mut known = self.know();
        known.next_number += 1;
        known.next_number
    }

    /// The server broke a rule. The first one counts.
    pub fn violate(&self, rule: &str, detail: impl Into<String>) {
        let mut known = self.know();
        known.is_over = true;
        if known.violation.is_none() {
            known.violation = Some(Violation { rule: rule.to_owned(), detail: detail.into() });
        }
    }

    /// Notes a line of a client.
    pub fn log(&self, client: &str, line: String) {
        let mut known = self.know();
        let log = known.logs.entry(client.to_owned()).or_default();
        log.push_back(line);
        if log.len() > LAST_STATEMENTS {
            log.pop_front();
        }
    }

    /// The last statements of all clients.
    pub fn last_statements(&self) -> String {
        let mut text = String::new();
        for (client, log) in &self.know().logs {
            text += &format!("{client}:\n");
            log.iter().for_each(|line| text += &format!("  {line}\n"));
        }
        text
    }

    /// A statement was answered. True when the life ends now.
    pub fn count_statement(&self) -> bool {
        let mut known = self.know();
        known.counts.statements += 1;
        known.statements_left = known.statements_left.saturating_sub(1);
        known.statements_left == 0
    }

    /// The server's life is over: transactions on lists that were open ended with it.
    pub fn end_life(&self, at: Duration) {
        let mut known = self.know();
        known.is_over = true;
        let open = std::mem::take(&mut known.open);
        for (_, (mut transaction, is_committing)) in open {
            transaction.end = if is_committing { End::Unknown } else { End::Aborted };
            transaction.ended = at.as_nanos() as u64;
            known.counts.unknown += u64::from(is_committing);
            known.history.push(transaction);
        }
    }
}
