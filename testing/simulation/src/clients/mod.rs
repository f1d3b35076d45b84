//! Clients that the seed makes up: each sends statements, checks the answers, and goes on after every fault.

pub(crate) mod branch;
pub(crate) mod definitions;
pub(crate) mod lists;
mod others;
mod own;
mod recover;
pub(crate) mod scratch;
pub(crate) mod settings;
pub(crate) mod transfers;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use client::Failure;
use sys::entropy::SplitMix;

use crate::model::Rows;
use crate::plan::{Fault, Work};
use crate::world::{Bell, World};
use crate::{Client, DATA};

pub(crate) use definitions::Changer;

/// Simulated time until a statement must be answered.
const PATIENCE: Duration = Duration::from_secs(500);
/// Between two attempts to connect.
const ATTEMPT: Duration = Duration::from_millis(5);
/// Letters of a statement or an answer that a log shows.
const SHOWN: usize = 300;

/// Why a client stops what it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The life is over, or a rule was broken.
    Over,
    /// The connection is lost.
    Lost,
    /// The server has rolled the transaction back.
    RolledBack,
    /// The transaction cannot go on; the client rolls it back.
    GiveUp,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// The rows that were affected, and those that were returned.
    Done(u64, Rows),
    /// The number of an error, which undid the statement and nothing else.
    Refused(u16),
}

/// A connection that writes down what it does.
pub(crate) struct Session {
    pub name: String,
    pub world: Arc<World>,
    pub random: SplitMix,
    bell: Bell,
    client: Option<Client>,
    /// The last connection's number.
    id: Option<u32>,
    /// Over TCP, and not over the socket.
    is_remote: bool,
    /// Statements so far.
    pub sent: u32,
}

/// So much of a text as a log shows.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}… ({} letters)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

impl Session {
    pub fn new(name: &str, world: &Arc<World>, bell: &Bell, seed: u64) -> Session {
        let random = SplitMix::new(seed);
        let (world, bell) = (world.clone(), bell.clone());
        let name = name.to_owned();
        Session { name, world, random, bell, client: None, id: None, is_remote: false, sent: 0 }
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    /// The server broke a rule.
    pub fn violate(&self, rule: &str, detail: impl Into<String>) -> Stop {
        self.world.violate(rule, format!("{}: {}", self.name, detail.into()));
        self.bell.ring();
        Stop::Over
    }

    fn log(&self, line: &str) {
        let now = sys::clock::monotonic().as_micros();
        let line = format!("{}.{:06} {}", now / 1_000_000, now % 1_000_000, short(line));
        sys::simulation::note(&format!("{}: {line}", self.name));
        self.world.log(&self.name, line);
    }

    /// Connects over one way or the other.
    pub fn connect(&mut self) -> Result<Option<u32>, Stop> {
        self.is_remote = self.one_in(2);
        self.reconnect()
    }

    /// Connects over the socket.
    pub fn connect_over_socket(&mut self) -> Result<Option<u32>, Stop> {
        self.is_remote = false;
        self.reconnect()
    }

    /// Connects, again and again; the number of the connection before.
    fn reconnect(&mut self) -> Result<Option<u32>, Stop> {
        self.client = None;
        loop {
            if self.world.know().is_over {
                return Err(Stop::Over);
            }
            let connected = match self.is_remote {
                true => Client::try_over_tcp(&self.name),
                false => Client::try_over_socket(&self.name, Path::new(DATA)),
            };
            match connected {
                Ok(client) => {
                    let before = self.id.replace(client.id());
                    self.log(&format!("connected as {}", client.id()));
                    self.client = Some(client);
                    return Ok(before);
                }
                Err(failure) => {
                    self.log(&format!("cannot connect: {failure}"));
                    sys::threads::sleep(ATTEMPT);
                }
            }
        }
    }

    /// Waits like a program that has something else to do, now and then for long.
    pub fn think(&mut self) {
        let micros = match self.random.below(40) {
            0 => self.random.below(60_000),
            1..4 => self.random.below(3_000),
            _ => self.random.below(150),
        };
        sys::threads::sleep(Duration::from_micros(micros));
    }

    /// Sends a statement and reads its answer.
    pub fn send(&mut self, sql: &str) -> Result<Reply, Stop> {
        if self.world.know().is_over {
            return Err(Stop::Over);
        }
        self.log(sql);
        self.sent += 1;
        let Some(client) = self.client.as_mut() else { return Err(Stop::Lost) };
        let began = sys::clock::monotonic();
        let answer = client.query(sql);
        let took = sys::clock::monotonic().saturating_sub(began);
        let is_last = self.world.count_statement();
        if is_last {
            self.bell.ring();
        }
        if took > PATIENCE {
            return Err(self.violate("a statement is answered in time", format!("{sql}: {took:?}")));
        }
        match answer {
            Ok((affected, rows)) => {
                let shown = if rows.is_empty() { String::new() } else { format!(" {rows:?}") };
                self.log(&format!("-> {affected} rows{shown}"));
                Ok(Reply::Done(affected, rows))
            }
            Err(Failure::Lost(why)) => {
                self.log(&format!("-> lost: {why}"));
                self.client = None;
                Err(Stop::Lost)
            }
            Err(Failure::Server(error)) => {
                self.log(&format!("-> {} {}", error.code().0, error.message()));
                self.judge(sql, error.code().0, error.message())
            }
        }
    }

    /// What an error means.
    fn judge(&mut self, sql: &str, code: u16, message: &str) -> Result<Reply, Stop> {
        let has = |fault| self.world.has(fault);
        let now = sys::clock::monotonic();
        let (is_short, files_fail) = {
            let known = self.world.know();
            (known.space_is_short_until > now, known.files_fail)
        };
        match code {
            // Duplicate, no parent, unknown table, no such branch, NOWAIT: the caller knows whether it may be.
            1062 | 1094 | 1452 | 1050 | 1051 | 1146 | 1397 | 3572 => Ok(Reply::Refused(code)),
            // A lock that is held for too long undoes the statement.
            1205 => Ok(Reply::Refused(code)),
            1213 | 1614 => Err(Stop::RolledBack),
            1412 if self.world.plan.work.contains(&Work::Definitions) => Err(Stop::GiveUp),
            1317 | 3024 if has(Fault::KillSession) => Err(Stop::GiveUp),
            // The server stops.
            1053 => {
                self.client = None;
                Err(Stop::Lost)
            }
            3 | 1021 | 1026 | 1114 if is_short => Err(Stop::GiveUp),
            _ if files_fail => Err(Stop::GiveUp),
            _ => {
                let detail = format!("{}: error {code}: {message}", short(sql));
                Err(self.violate("a statement has no error that nothing explains", detail))
            }
        }
    }

    /// Runs a statement that nothing refuses.
    pub fn must(&mut self, sql: &str) -> Result<(u64, Rows), Stop> {
        match self.send(sql)? {
            Reply::Done(affected, rows) => Ok((affected, rows)),
            Reply::Refused(1205) => Err(Stop::GiveUp),
            Reply::Refused(code) => {
                let detail = format!("{}: error {code}", short(sql));
                Err(self.violate("a statement has no error that nothing explains", detail))
            }
        }
    }

    /// Rows of a query, in an order that depends on nothing.
    pub fn rows(&mut self, sql: &str) -> Result<Rows, Stop> {
        let (_, mut rows) = self.must(sql)?;
        rows.sort();
        Ok(rows)
    }

    /// Goes, and says that it has nothing left to do.
    pub fn leave(mut self) {
        self.client = None;
        self.world.know().working -= 1;
        self.bell.ring();
    }

    /// Ends a transaction that failed. What stays open fails what comes next.
    pub fn roll_back(&mut self, stop: Stop) -> Result<(), Stop> {
        match stop {
            Stop::Over | Stop::Lost => Err(stop),
            Stop::RolledBack => Ok(()),
            Stop::GiveUp => match self.must("ROLLBACK") {
                // An error of files, or somebody's KILL: once more.
                Err(Stop::GiveUp | Stop::RolledBack) => self.must("ROLLBACK").map(drop),
                done => done.map(drop),
            },
        }
    }
}

/// One of the clients: does what the plan says until it has sent its statements.
pub(crate) struct Worker {
    pub session: Session,
    /// Its number, and the owner of its rows.
    pub number: u32,
    statements: u32,
}

impl Worker {
    pub fn new(session: Session, number: u32) -> Worker {
        let statements = session.world.plan.statements;
        Worker { session, number, statements }
    }

    /// Works until the end of its statements or of the life.
    pub fn work(mut self) {
        let mut recovers = true;
        while !self.session.world.know().is_over {
            let done = match std::mem::take(&mut recovers) {
                true => self.recover(),
                false if self.session.sent >= self.statements => break,
                false => self.something(),
            };
            match done.or_else(|stop| self.session.roll_back(stop)) {
                Ok(()) => {}
                Err(Stop::Over) => break,
                Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => recovers = true,
            }
        }
        self.session.leave();
    }

    fn something(&mut self) -> Result<(), Stop> {
        type Kind = (Work, u64, fn(&mut Worker) -> Result<(), Stop>);
        const KINDS: [Kind; 4] = [
            (Work::Own, 5, Worker::change_own),
            (Work::Others, 3, Worker::look_at_others),
            (Work::Lists, 4, Worker::use_lists),
            (Work::Transfers, 3, Worker::transfer),
        ];
        self.session.think();
        let plan = &self.session.world.plan;
        let kinds: Vec<&Kind> = KINDS.iter().filter(|kind| plan.work.contains(&kind.0)).collect();
        let mut at = self.session.random.below(kinds.iter().map(|kind| kind.1).sum());
        for (_, weight, act) in kinds {
            match at.checked_sub(*weight) {
                Some(less) => at = less,
                None => return act(self),
            }
        }
        // Nothing to do but to be there.
        self.session.must("SELECT 1").map(drop)
    }
}
