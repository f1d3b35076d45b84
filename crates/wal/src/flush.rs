//! Group commit: the first thread that needs durability writes for all threads that arrived in the meantime; the others wait or are called back.
//!
//! A few writes may be under way at a time (a device does several at once as fast as one), each with the records that came since the previous one.
//! `durable` follows them in order. Rules W2, W6 and W9 of the README.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use sys::model::breaks;
use sys::sync::atomic::{AtomicU64, Ordering};
use sys::sync::{Condvar, Mutex, MutexGuard};
use sys::waits::{self, Wait};

use crate::follow::LogPlace;
use crate::log::{Durability, FailurePolicy, Log};

type Callback = Box<dyn FnOnce() + Send>;

/// Who is called once.
struct Waiter {
    ticket: u64,
    /// When the ticket may be seen, else when it is durable.
    until_seen: bool,
    wake: Callback,
}

/// More than the writes under way plus the next one, so that waiters for different writes wait in different places.
pub(crate) const SLOTS: usize = 8;

fn slot(number: u64) -> usize {
    number as usize % SLOTS
}

/// A write under way, or one that is done while an earlier one is not.
struct Pending {
    number: u64,
    low: u64,
    end: LogPlace,
    /// Number of the next batch.
    next_batch: u64,
    is_done: bool,
}

#[derive(Default)]
struct Flusher {
    /// In the order of their batches.
    pending: VecDeque<Pending>,
    /// The end of the last one that is durable with all earlier ones.
    landed: LogPlace,
    /// Threads that gather or write now.
    writing: usize,
    /// Called when their tickets are durable or seen.
    waiting: Vec<Waiter>,
    /// Called when the next write is over.
    onlookers: Vec<Callback>,
    /// Threads in `flush_to` that wait for the write of another, by its number.
    sleepers: [usize; SLOTS],
    /// The newest write that has collected its records.
    gathered: u64,
    /// `serve` is to flush all tickets below it.
    requested: u64,
    /// The thread in `serve` is idle.
    server_sleeps: bool,
    stopping: bool,
    broken: Option<String>,
}

impl Flusher {
    fn check_whole(&self) -> io::Result<()> {
        match &self.broken {
            Some(message) => Err(io::Error::other(message.clone())),
            None => Ok(()),
        }
    }

    /// Whether a write that is under way covers `ticket`.
    fn is_gathered(&self, ticket: u64) -> bool {
        self.pending.back().is_some_and(|last| ticket < last.low)
    }

    /// The write that makes `ticket` durable: one under way, or the next.
    fn write_of(&self, ticket: u64) -> u64 {
        let found = self.pending.iter().find(|pending| ticket < pending.low);
        found.map_or(self.gathered + 1, |pending| pending.number)
    }

    /// Callbacks that are due.
    fn take_ready(&mut self, log: &Log) -> Vec<Callback> {
        let mut ready = std::mem::take(&mut self.onlookers);
        if self.waiting.is_empty() {
            return ready;
        }
        let broken = self.broken.is_some();
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        let (durable, visible) = (log.durable(), log.visible());
        let (done, waiting) = waiting.partition::<Vec<_>, _>(|waiter| {
            let end = if waiter.until_seen { visible } else { durable };
            broken || waiter.ticket < end
        });
        self.waiting = waiting;
        ready.extend(done.into_iter().map(|waiter| waiter.wake));
        ready
    }
}

/// The state shared by the threads that make the log durable.
#[derive(Default)]
pub(crate) struct FlushState {
    flusher: Mutex<Flusher>,
    flushed: [Condvar; SLOTS],
    request: Condvar,
    /// Commits that were held back may be seen.
    seen: Condvar,
    /// The duration of recent flushes in microseconds, a moving average.
    average_micros: AtomicU64,
}

impl FlushState {
    pub fn starting_at(landed: LogPlace) -> FlushState {
        let flusher = Mutex::new(Flusher { landed, ..Flusher::default() });
        FlushState { flusher, ..FlushState::default() }
    }

    pub fn landed(&self) -> LogPlace {
        self.flusher.lock().landed
    }

    fn note(&self, took: Duration) {
        let average = self.average_micros.load(Ordering::Relaxed);
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.average_micros.store(average - average / 8 + took / 8, Ordering::Relaxed);
    }

    fn is_slower_than(&self, patience: Duration) -> bool {
        Duration::from_micros(self.average_micros.load(Ordering::Relaxed)) > patience
    }

    fn wake_server(&self, flusher: &mut Flusher) {
        if std::mem::take(&mut flusher.server_sleeps) {
            self.request.notify_one();
        }
    }

    fn ask_server(&self, flusher: &mut Flusher, waiter: Waiter) {
        let ticket = waiter.ticket;
        flusher.waiting.push(waiter);
        flusher.requested = flusher.requested.max(ticket + 1);
        // The end of a write that covers it, or of the next one, triggers another check.
        if !flusher.is_gathered(ticket) {
            self.wake_server(flusher);
        }
    }
}

impl Log {
    /// Returns when every ticket up to and including `ticket` is durable. Flushes for all waiters unless enough other threads do.
    ///
    /// # Errors
    /// The log is broken.
    pub fn flush_to(&self, ticket: u64) -> io::Result<()> {
        let mut flusher = self.flush.flusher.lock();
        loop {
            if self.durable() > ticket {
                return Ok(());
            }
            flusher.check_whole()?;
            if flusher.is_gathered(ticket) || flusher.writing >= self.config.flights {
                let at = slot(flusher.write_of(ticket));
                flusher.sleepers[at] += 1;
                let _waiting = waits::enter(Wait::LogFlush);
                flusher = self.flush.flushed[at].wait(flusher);
                flusher.sleepers[at] -= 1;
                continue;
            }
            flusher = self.flush_for_all(flusher);
        }
    }

    /// For a thread with no other work: flushes for all waiters, unless enough other threads do or a recent flush took longer than `patience`,
    /// and returns true if `ticket` is durable. Otherwise `wake` is called once: when a write of another is over, or, when
    /// flushes take longer, once `ticket` is durable, which needs a thread in `serve`.
    ///
    /// # Errors
    /// The log is broken.
    pub fn lead(&self, ticket: u64, patience: Duration, wake: Callback) -> io::Result<bool> {
        let mut flusher = self.flush.flusher.lock();
        if !self.is_acknowledged(ticket) {
            flusher.check_whole()?;
            if self.durable() > ticket {
                // It is held back: `hold_from` ends that.
                flusher.waiting.push(Waiter { ticket, until_seen: true, wake });
                return Ok(false);
            }
            let is_seen_to = flusher.is_gathered(ticket) || flusher.writing >= self.config.flights;
            if !is_seen_to && self.flush.is_slower_than(patience) {
                let waiter = Waiter { ticket, until_seen: true, wake };
                self.flush.ask_server(&mut flusher, waiter);
                return Ok(false);
            }
            if !is_seen_to {
                flusher = self.flush_for_all(flusher);
            }
        }
        if self.is_acknowledged(ticket) {
            return Ok(true);
        }
        flusher.check_whole()?;
        // Some write is not over, perhaps only one before its own.
        flusher.onlookers.push(wake);
        Ok(false)
    }

    /// Flushes once, with the mutex released during the write, and wakes all its waiters.
    fn flush_for_all<'a>(
        &'a self,
        mut flusher: MutexGuard<'a, Flusher>,
    ) -> MutexGuard<'a, Flusher> {
        flusher.writing += 1;
        drop(flusher);
        let delay_micros = self.delay_micros.load(Ordering::Relaxed);
        if delay_micros > 0 {
            sys::threads::sleep(Duration::from_micros(delay_micros));
        }
        let (outcome, took) = self.flushes.measure(|| self.gather_and_write());
        self.flush.note(took);
        let mut flusher = self.flush.flusher.lock();
        flusher.writing -= 1;
        match outcome {
            Ok(number) => self.land(&mut flusher, number),
            Err(error) => {
                flusher.broken = Some(format!("the log is broken: {error}"));
                self.flush.flushed.iter().for_each(Condvar::notify_all);
                self.flush.seen.notify_all();
            }
        }
        // One of the threads that came since may write now; its write includes the others.
        let next = slot(flusher.gathered + 1);
        if flusher.sleepers[next] > 0 {
            self.flush.flushed[next].notify_one();
        }
        let ready = flusher.take_ready(self);
        if flusher.requested > self.durable() {
            self.flush.wake_server(&mut flusher);
        }
        if ready.is_empty() {
            return flusher;
        }
        drop(flusher);
        ready.into_iter().for_each(|wake| wake());
        self.flush.flusher.lock()
    }

    /// A write is done: `durable` moves over it if none before it is under way (W9).
    fn land(&self, flusher: &mut Flusher, number: u64) {
        if let Some(landed) = flusher.pending.iter_mut().find(|pending| pending.number == number) {
            landed.is_done = true;
        }
        while let Some(first) = flusher.pending.pop_front_if(|first| first.is_done) {
            debug_assert!(
                self.durable() <= first.low,
                "`durable` follows the order of the batches (W9)"
            );
            flusher.landed = first.end;
            // In this order: a session that learns that a commit is durable sees it in its next snapshot.
            self.durable_batch.fetch_max(first.next_batch, Ordering::AcqRel);
            self.visible.0.fetch_max(first.low.min(self.held()), Ordering::AcqRel);
            self.durable.0.fetch_max(first.low, Ordering::AcqRel);
            let at = slot(first.number);
            if flusher.sleepers[at] > 0 {
                self.flush.flushed[at].notify_all();
            }
        }
    }

    /// Commits from this ticket on are not to be seen yet.
    fn held(&self) -> u64 {
        // Written under the flusher's mutex, which whoever moves `visible` by it holds.
        self.held.load(Ordering::Relaxed)
    }

    /// Whether some commits are held back.
    pub(crate) fn is_holding(&self) -> bool {
        self.held() != u64::MAX
    }

    /// From now on commits with a ticket from `ticket` on are durable without being seen or acknowledged: not by snapshots, nor by those who
    /// wait for them. A later ticket lets the commits below it through, `u64::MAX` all. What is seen already stays so.
    pub fn hold_from(&self, ticket: u64) {
        let low = match self.config.durability {
            Durability::Synced => 0,
            Durability::Relaxed => self.decided(),
        };
        let mut flusher = self.flush.flusher.lock();
        self.held.store(ticket, Ordering::Relaxed);
        let ready = self.show(&mut flusher, low.max(self.durable()));
        drop(flusher);
        ready.into_iter().for_each(|wake| wake());
    }

    /// The same as in `land`, for commits that need not be durable.
    pub(crate) fn show_below(&self, low: u64) {
        let mut flusher = self.flush.flusher.lock();
        let ready = self.show(&mut flusher, low);
        drop(flusher);
        ready.into_iter().for_each(|wake| wake());
    }

    /// Lets commits below `low` be seen, but not those that are held. Returns whom to wake.
    fn show(&self, flusher: &mut Flusher, low: u64) -> Vec<Callback> {
        assert!(low <= self.next_ticket(), "only tickets that were drawn are seen");
        // Pairs with the load in `visible`.
        self.visible.0.fetch_max(low.min(self.held()), Ordering::AcqRel);
        self.flush.seen.notify_all();
        flusher.take_ready(self)
    }

    /// Waits until a durable commit may be seen.
    pub(crate) fn wait_until_seen(&self, ticket: u64) -> io::Result<()> {
        let mut flusher = self.flush.flusher.lock();
        while !self.is_acknowledged(ticket) {
            flusher.check_whole()?;
            let _waiting = waits::enter(Wait::LogFlush);
            flusher = self.flush.seen.wait(flusher);
        }
        Ok(())
    }

    /// Returns the number of the flight that was written.
    fn gather_and_write(&self) -> io::Result<u64> {
        let flight = {
            let mut writer = self.writer.lock();
            // W2: `low` before the lanes.
            let mut low = self.next_ticket();
            let durable = self.durable_batch();
            let flight = writer.gather(&self.files, &self.lanes, (low, durable), &self.config);
            let flight = flight.or_else(|error| self.fail(error))?;
            if breaks("W2") {
                low = self.next_ticket();
            }
            let (end, next_batch) = (flight.end(), writer.next_batch());
            let pending = Pending { number: flight.number(), low, end, next_batch, is_done: false };
            assert!(low >= self.durable(), "a batch is gathered after those that are durable");
            // Under the writer's mutex: in the order of the batches.
            let mut flusher = self.flush.flusher.lock();
            assert!(flusher.gathered < pending.number, "batches are gathered in their order (W9)");
            flusher.gathered = pending.number;
            flusher.pending.push_back(pending);
            drop(flusher);
            flight
        };
        let number = flight.number();
        let waits = self.config.failure == FailurePolicy::Abort;
        let written = flight.write(waits).or_else(|error| self.fail(error));
        self.writer.lock().keep(flight);
        written.map(|()| number)
    }

    fn fail<T>(&self, error: io::Error) -> io::Result<T> {
        if self.config.failure == FailurePolicy::Abort {
            // W6: the state of the file is unknown; only recovery can find its content.
            sys::process::abort(&format!(
                "the log cannot be written: {error}. What was acknowledged is safe. Check the device, then start the server again: it recovers"
            ));
        }
        Err(error)
    }

    /// Calls `wake` once a commit with `ticket` is acknowledged or the log is broken; needs a thread in `serve`.
    pub fn notify(&self, ticket: u64, wake: Callback) {
        self.notify_of(Waiter { ticket, until_seen: true, wake });
    }

    /// The same once it is durable, whether it may be seen or not. In relaxed mode nobody asks for a flush.
    pub fn notify_durable(&self, ticket: u64, wake: Callback) {
        let until_seen = self.config.durability == Durability::Relaxed;
        self.notify_of(Waiter { ticket, until_seen, wake });
    }

    fn notify_of(&self, waiter: Waiter) {
        let mut flusher = self.flush.flusher.lock();
        let end = if waiter.until_seen { self.visible() } else { self.durable() };
        if waiter.ticket < end || flusher.broken.is_some() {
            drop(flusher);
            return (waiter.wake)();
        }
        self.flush.ask_server(&mut flusher, waiter);
    }

    /// Flushes for `notify` until `stop`. One thread runs it.
    pub fn serve(&self) {
        loop {
            let mut flusher = self.flush.flusher.lock();
            while flusher.requested <= self.durable() {
                if flusher.stopping {
                    return;
                }
                flusher.server_sleeps = true;
                flusher = self.flush.request.wait(flusher);
            }
            let wanted = flusher.requested;
            drop(flusher);
            if self.flush_to(wanted - 1).is_err() {
                return;
            }
        }
    }

    /// Ends `serve`.
    pub fn stop(&self) {
        let mut flusher = self.flush.flusher.lock();
        flusher.stopping = true;
        self.flush.wake_server(&mut flusher);
    }

    /// Whether a write has failed.
    pub fn is_broken(&self) -> bool {
        self.flush.flusher.lock().broken.is_some()
    }
}
