//! What the threads of a channel share while it runs: how far it is, and the transactions that wait for workers.
//!
//! Transactions are given out in the order of the source and commit in that order. A worker begins one when all that it depends on by the source's
//! logical clock have committed, and waits for its turn before it stores the position. One that fails before its turn may have been too early:
//! it is rolled back and applied again at its turn. So an error counts only when all earlier transactions are here.
//!
//! The end of a transaction wakes only those that can go on: who has the next turn, who depended on it, and the coordinator when there is room.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use binlog::gtid::GtidEvent;
use binlog::mariadb::MariadbGtid;
use binlog::{GtidSet, Header};
use errors::{Error, ErrorCode, Result};
use plugin_api::SessionFactory;
use sys::sync::{Condvar, Mutex, MutexGuard};
use sys::threads::Thread;

use crate::apply::{Applier, Home};
use crate::channel::{Channel, PENDING_MAX, RETRIES_MAX, Stop};
use crate::settings::Settings;
use crate::status::{LastError, Seen, WorkerStatus, now_micros};
use crate::store::Position;

/// How often a wait looks whether the channel stops.
const STEP: Duration = Duration::from_millis(100);
/// Condition variables that transactions wait on by their order: at least as many as workers, so that no two of them share one.
const WAKES: usize = crate::settings::WORKERS_MAX as usize;
/// How long a worker waits for its turn before it looks whether another waits for its locks; twice as long each time after it.
const FIRST_LOOK: Duration = Duration::from_millis(10);

/// How a transaction begins.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) event: GtidEvent,
    /// Its identifier when the source is MariaDB.
    pub(crate) mariadb: Option<MariadbGtid>,
    /// The server where it began.
    pub(crate) server_id: u32,
    /// Seconds since 1970 by the clock of that server.
    pub(crate) timestamp: u32,
    /// The source's file that it is in.
    pub(crate) file: Arc<str>,
}

impl Start {
    /// Its identifier, or `ANONYMOUS`.
    pub(crate) fn name(&self) -> String {
        let of_mariadb = self.mariadb.as_ref().map(ToString::to_string);
        let name = self.event.gtid.as_ref().map(ToString::to_string).or(of_mariadb);
        name.unwrap_or_else(|| "ANONYMOUS".to_owned())
    }

    /// As tables show it.
    pub(crate) fn seen(&self) -> Seen {
        Seen {
            name: self.name(),
            original_micros: self.event.original_commit_timestamp as i64,
            immediate_micros: self.event.immediate_commit_timestamp as i64,
            started_micros: now_micros(),
            ..Seen::default()
        }
    }
}

/// A transaction for a worker.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) start: Start,
    pub(crate) events: Vec<(Header, Vec<u8>)>,
    /// Bytes that it takes in memory, about.
    pub(crate) bytes: u64,
    /// Nothing is applied, but the position moves on to this offset.
    pub(crate) passes_to: Option<u64>,
    /// Its place among those that were given out.
    order: u64,
}

impl Job {
    pub(crate) fn new(start: Start) -> Job {
        Job { start, events: Vec::new(), bytes: 0, passes_to: None, order: 0 }
    }
}

/// A transaction that was given out and has not ended.
struct Outstanding {
    timestamp: u32,
    bytes: u64,
}

/// How far a channel is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    pub(crate) position: Position,
    pub(crate) executed: GtidSet,
    /// A transaction was applied since the connection was made.
    pub(crate) has_moved: bool,
}

struct State {
    progress: Progress,
    queue: VecDeque<Job>,
    outstanding: VecDeque<Outstanding>,
    /// Bytes of those.
    bytes: u64,
    /// The order of the next transaction that is given out, and of the next that commits.
    given: u64,
    turn: u64,
    /// The number in the source's logical clock of the last transaction that has committed.
    committed: i64,
    failure: Option<Error>,
    /// Nothing more is given out.
    ends: bool,
    /// How often definitions were changed.
    definitions: u64,
    /// The session of each worker and what it applies.
    workers: Vec<(u64, Option<u64>)>,
    /// Transactions that wait for those that they depend on: their order, and the last of those by the source's clock.
    dependent: Vec<(u64, i64)>,
    /// The coordinator waits until no more bytes than these are given out, or no transaction.
    awaited_bytes: Option<u64>,
}

impl State {
    /// Whether a transaction may be given out that leaves room for so many bytes.
    fn has_room(&self, bytes: u64) -> bool {
        self.outstanding.is_empty() || self.bytes <= bytes
    }
}

/// What the threads of a channel share.
pub(crate) struct Crew {
    pub(crate) channel: Arc<Channel>,
    pub(crate) stop: Arc<Stop>,
    state: Mutex<State>,
    /// A transaction was given out.
    given: Condvar,
    /// There is the room that the coordinator waits for.
    room: Condvar,
    /// A transaction may go on: the one of this order.
    wakes: Box<[Condvar]>,
}

/// The threads of a crew.
pub(crate) struct Workers {
    crew: Arc<Crew>,
    threads: Vec<Thread>,
}

fn interrupted() -> Error {
    Error::new(ErrorCode::QUERY_INTERRUPTED, "")
}

impl Crew {
    /// `executed`: the transactions that are here.
    pub(crate) fn new(
        channel: Arc<Channel>,
        stop: Arc<Stop>,
        position: Position,
        executed: GtidSet,
    ) -> Crew {
        let state = State {
            progress: Progress { position, executed, has_moved: false },
            queue: VecDeque::new(),
            outstanding: VecDeque::new(),
            bytes: 0,
            given: 0,
            turn: 0,
            committed: 0,
            failure: None,
            ends: false,
            definitions: 0,
            workers: Vec::new(),
            dependent: Vec::new(),
            awaited_bytes: None,
        };
        let wakes = std::iter::repeat_with(Condvar::new).take(WAKES).collect();
        let (given, room) = (Condvar::new(), Condvar::new());
        Crew { channel, stop, state: Mutex::new(state), given, room, wakes }
    }

    fn update(&self, slot: usize, change: impl FnOnce(&mut WorkerStatus)) {
        self.channel.update(|status| {
            debug_assert!(slot < status.workers.len(), "a row for each thread");
            status.workers.get_mut(slot).map(change).unwrap_or_default();
        });
    }

    /// The thread with this number applies in this session.
    pub(crate) fn note_session(&self, slot: usize, session: u64) {
        if slot > 0 {
            self.state.lock().workers[slot - 1].0 = session;
        }
        self.update(slot, |worker| worker.session = session);
    }

    /// Whether a worker failed or the channel stops.
    pub(crate) fn is_halted(&self) -> bool {
        self.stop.is_asked() || self.state.lock().failure.is_some()
    }

    /// What made a worker fail.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.state.lock().failure.clone()
    }

    fn check(&self, state: &State) -> Result<()> {
        if self.stop.is_asked() || state.failure.is_some() { Err(interrupted()) } else { Ok(()) }
    }

    /// How far the channel is.
    pub(crate) fn progress(&self) -> Progress {
        self.state.lock().progress.clone()
    }

    /// How often definitions were changed: what is known of tables before the last time is out of date.
    pub(crate) fn definitions(&self) -> u64 {
        self.state.lock().definitions
    }

    /// Definitions were changed.
    pub(crate) fn note_definitions(&self) {
        self.state.lock().definitions += 1;
    }

    /// The source goes on in a file.
    pub(crate) fn set_file(&self, file: &str, offset: u64) {
        let mut state = self.state.lock();
        debug_assert!(state.outstanding.is_empty(), "positions are of one file");
        file.clone_into(&mut state.progress.position.file);
        state.progress.position.offset = offset;
    }

    /// What comes is numbered by another clock: all before `number` is here.
    pub(crate) fn begin_clock(&self, number: i64) {
        let mut state = self.state.lock();
        debug_assert!(state.outstanding.is_empty(), "numbers are of one clock");
        state.committed = number - 1;
    }

    /// Gives a transaction to the workers, as soon as all that were given out take at most `bytes_max` with it.
    ///
    /// # Errors
    /// A worker failed, the channel stops.
    pub(crate) fn give(&self, mut job: Job, bytes_max: u64) -> Result<()> {
        let mut state = self.wait_for_room(bytes_max.saturating_sub(job.bytes))?;
        job.order = state.given;
        state.given += 1;
        // None without any, so that none are left when all have ended.
        let bytes = job.bytes.max(1);
        state.bytes += bytes;
        let timestamp = job.start.timestamp;
        state.outstanding.push_back(Outstanding { timestamp, bytes });
        state.queue.push_back(job);
        drop(state);
        self.given.notify_one();
        Ok(())
    }

    /// Waits until all transactions that were given out have committed.
    ///
    /// # Errors
    /// A worker failed, the channel stops.
    pub(crate) fn drain(&self) -> Result<()> {
        self.wait_for_room(0).map(drop)
    }

    /// Waits until no more than so many bytes are given out, or no transaction. One thread does.
    fn wait_for_room(&self, bytes: u64) -> Result<MutexGuard<'_, State>> {
        let mut state = self.state.lock();
        loop {
            self.check(&state)?;
            if state.has_room(bytes) {
                return Ok(state);
            }
            state.awaited_bytes = Some(bytes);
            state = self.room.wait_for(state, STEP);
            state.awaited_bytes = None;
        }
    }

    /// The next transaction for a worker; `None` when there will be none.
    fn take(&self, worker: usize) -> Option<Job> {
        let mut state = self.state.lock();
        loop {
            if self.check(&state).is_err() {
                return None;
            }
            if let Some(job) = state.queue.pop_front() {
                state.workers[worker].1 = Some(job.order);
                return Some(job);
            }
            if state.ends {
                return None;
            }
            state = self.given.wait_for(state, STEP);
        }
    }

    /// Lets the transaction of this order go on, if it waits.
    fn wake(&self, order: u64) {
        self.wakes[order as usize % WAKES].notify_one();
    }

    /// Waits until something ends for which the transaction of this order waits, at most so long.
    fn sleep<'s>(
        &self,
        state: MutexGuard<'s, State>,
        order: u64,
        longest: Duration,
    ) -> MutexGuard<'s, State> {
        self.wakes[order as usize % WAKES].wait_for(state, longest.min(STEP))
    }

    fn wait_until_turn(&self, order: u64) -> Result<()> {
        let mut state = self.state.lock();
        loop {
            self.check(&state)?;
            if state.turn == order {
                return Ok(());
            }
            state = self.sleep(state, order, STEP);
        }
    }

    /// Waits until the transactions have committed that one depends on. False when it is not its turn yet.
    fn wait_for_dependencies(&self, job: &Job) -> Result<bool> {
        let event = &job.start.event;
        if event.sequence_number <= 0 {
            return self.wait_until_turn(job.order).map(|()| true);
        }
        let mut state = self.state.lock();
        loop {
            self.check(&state)?;
            if state.turn == job.order || state.committed >= event.last_committed {
                return Ok(state.turn == job.order);
            }
            state.dependent.push((job.order, event.last_committed));
            state = self.sleep(state, job.order, STEP);
            state.dependent.retain(|(order, _)| *order != job.order);
        }
    }

    /// Waits for the turn of a transaction whose changes are made. `is_in_way` says whether one of these sessions, which apply earlier
    /// transactions, waits for its locks.
    ///
    /// # Errors
    /// 1213 when the transaction must give way; a worker failed, the channel stops.
    pub(crate) fn wait_for_turn(
        &self,
        order: u64,
        mut is_in_way: impl FnMut(&[u64]) -> Result<bool>,
    ) -> Result<()> {
        let mut look = FIRST_LOOK;
        let mut state = self.state.lock();
        loop {
            self.check(&state)?;
            debug_assert!(state.turn <= order, "a turn is taken once");
            if state.turn == order {
                return Ok(());
            }
            let until = sys::clock::monotonic() + look;
            state = self.wait_up_to(state, order, until);
            if state.turn == order || sys::clock::monotonic() < until {
                continue;
            }
            let earlier = |(session, at): &(u64, Option<u64>)| {
                at.is_some_and(|at| at < order).then_some(*session)
            };
            let sessions: Vec<u64> = state.workers.iter().filter_map(earlier).collect();
            drop(state);
            if is_in_way(&sessions)? {
                return Err(Error::new(ErrorCode::LOCK_DEADLOCK, "an earlier transaction waits"));
            }
            look = (look * 2).min(STEP * 5);
            state = self.state.lock();
        }
    }

    fn wait_up_to<'s>(
        &self,
        mut state: MutexGuard<'s, State>,
        order: u64,
        until: Duration,
    ) -> MutexGuard<'s, State> {
        loop {
            let left = until.saturating_sub(sys::clock::monotonic());
            if state.turn == order || left.is_zero() || self.check(&state).is_err() {
                return state;
            }
            state = self.sleep(state, order, left);
        }
    }

    /// A transaction has ended, after which the channel is so far: in its turn, or while no worker has one.
    pub(crate) fn note_applied(&self, progress: Progress, slot: usize, number: i64) {
        let mut state = self.state.lock();
        state.committed = number;
        if slot > 0 {
            state.turn += 1;
            state.workers[slot - 1].1 = None;
            let ended = state.outstanding.pop_front();
            debug_assert!(ended.is_some(), "who ends was given out");
            state.bytes -= ended.map_or(0, |ended| ended.bytes);
        }
        let next = state.outstanding.front().map(|next| next.timestamp);
        self.channel.update(|status| {
            status.applied_file.clone_from(&progress.position.file);
            status.applied_offset = progress.position.offset;
            status.executed.clone_from(&progress.executed);
            status.gtid_slave_pos.clone_from(&progress.position.gtid_slave_pos);
            status.applying_since = next;
            status.ended += 1;
            if let Some(worker) = status.workers.get_mut(slot) {
                worker.note_applied();
            }
        });
        let is_idle = state.outstanding.is_empty();
        state.progress = progress;
        if slot == 0 {
            return;
        }
        let turn = state.turn;
        let free = state.dependent.iter().filter(|(_, last)| *last <= number);
        let free: Vec<u64> = free.map(|(order, _)| *order).collect();
        let has_room = state.awaited_bytes.is_some_and(|bytes| state.has_room(bytes));
        drop(state);
        self.wake(turn);
        free.into_iter().filter(|order| *order != turn).for_each(|order| self.wake(order));
        if has_room {
            self.room.notify_one();
        }
        // Others see a transaction when it is durable. While more come, the disk is not waited for.
        if is_idle {
            self.channel.pending.settle();
        } else {
            self.channel.pending.settle_after(PENDING_MAX);
        }
    }

    /// Applies a transaction, in the end at its turn.
    fn carry_out(&self, slot: usize, job: &Job, applier: &mut Applier) -> Result<()> {
        if let Some(offset) = job.passes_to {
            self.wait_until_turn(job.order)?;
            applier.pass_over(&job.start, offset);
            return Ok(());
        }
        let mut has_turn = self.wait_for_dependencies(job)?;
        let mut retries = 0;
        loop {
            let Err(error) = applier.repeat(&job.start, &job.events, job.order) else {
                return Ok(());
            };
            let is_transient =
                matches!(error.code(), ErrorCode::LOCK_DEADLOCK | ErrorCode::LOCK_WAIT_TIMEOUT);
            if self.is_halted() || has_turn && (!is_transient || retries >= RETRIES_MAX) {
                return Err(error);
            }
            applier.begin_anew()?;
            if is_transient {
                self.channel.update(|status| status.retries += 1);
                self.update(slot, |worker| {
                    worker.current.retries += 1;
                    worker.current.transient = LastError::of(&error);
                });
            }
            if has_turn {
                retries += 1;
                sys::threads::sleep(STEP * retries as u32);
            }
            self.wait_until_turn(job.order)?;
            has_turn = true;
        }
    }

    fn fail(&self, slot: usize, job: &Job, error: &Error) {
        let mut state = self.state.lock();
        if state.failure.is_some() || self.stop.is_asked() {
            return;
        }
        self.update(slot, |worker| worker.error = LastError::of(error));
        let end = job.events.last().map_or(0, |(header, _)| header.position);
        let (name, file) = (job.start.name(), &job.start.file);
        let text = format!(
            "Worker {slot} failed at transaction '{name}' of the source's log {file}, which ends at {end}: {}",
            error.message()
        );
        state.failure = Some(Error::new(error.code(), text));
        drop(state);
        // None waits for a lock any longer.
        self.stop.interrupt();
        self.given.notify_all();
        self.room.notify_all();
        self.wakes.iter().for_each(Condvar::notify_all);
    }

    fn work(&self, slot: usize, applier: &mut Applier) {
        while let Some(job) = self.take(slot - 1) {
            if let Err(error) = self.carry_out(slot, &job, applier) {
                self.fail(slot, &job, &error);
                return;
            }
        }
    }
}

impl Workers {
    /// Starts so many workers.
    ///
    /// # Errors
    /// Sessions or threads cannot be made.
    pub(crate) fn start(
        crew: &Arc<Crew>,
        sessions: &Arc<dyn SessionFactory>,
        settings: &Settings,
        count: usize,
    ) -> Result<Workers> {
        let mut workers = Workers { crew: crew.clone(), threads: Vec::new() };
        for slot in 1..=count {
            crew.state.lock().workers.push((0, None));
            let home = Home { sessions: sessions.clone(), cancel: crew.stop.token() };
            let mut applier = Applier::open(crew, home, settings, slot)?;
            let own = crew.clone();
            own.update(slot, |worker| worker.is_running = true);
            let body = move || {
                own.work(slot, &mut applier);
                own.update(slot, |worker| worker.is_running = false);
            };
            let thread = sys::threads::spawn("replica-worker", body);
            workers.threads.push(thread.map_err(|_| errors::err!(REPLICA_THREAD))?);
        }
        Ok(workers)
    }
}

// What was given out whole is applied, unless the channel stops.
impl Drop for Workers {
    fn drop(&mut self) {
        self.crew.state.lock().ends = true;
        self.crew.given.notify_all();
        self.threads.drain(..).for_each(Thread::join);
    }
}
