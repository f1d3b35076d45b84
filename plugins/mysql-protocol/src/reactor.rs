//! A reactor: an epoll set, the connections in it, and a clock that ticks periodically.
//!
//! Replies that wait for a commit are collected while statements are ready to run. When none is left, one of the parked
//! connections gets a turn in which it may write the log for all; a reactor that does not run out of statements soon leaves that to
//! the engine's thread.
//!
//! A connection is either in its entry or out with a worker. Events that arrive while it is out are remembered
//! in the entry. Other threads reach a reactor through its inbox only. Busy connections, while they are few, are sent out
//! for long: each to a thread that waits for its commands and does nothing else.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use engine_api::CancelToken;
use sys::blocking::{Reactor, Turn};
use sys::clock::monotonic;
use sys::net::{Poller, Waker};
use sys::sync::Mutex;

use crate::connection::{CloseReason, Connection, Phase, Scratch, Server};
use crate::placement::{Activity, Crowd, Placement};

/// Time between two checks of all connections: the resolution of time-outs, and how long a killed idle
/// connection remains.
pub(crate) const TICK: Duration = Duration::from_millis(500);
/// The same while the server stops.
const TICK_STOPPING: Duration = Duration::from_millis(20);
/// Tasks run between two polls of the kernel when another task is always ready.
const TASKS_PER_POLL: usize = 64;
const WAKE_TOKEN: usize = usize::MAX - 1;
/// A reactor with other connections writes the log itself as long as that usually takes no longer, because they wait in the meantime.
const LEAD_PATIENCE: Duration = Duration::from_micros(300);
/// How long replies may wait for a reactor that always has other work.
const PARKED_WHILE_BUSY_MAX: Duration = Duration::from_millis(1);

/// A message from another thread to a reactor.
pub(crate) enum Message {
    /// A new connection.
    New(Box<Connection>),
    /// A connection returns from a worker that no longer leads.
    Back(Box<Connection>),
    /// Parked connections may continue, or their commits need attention.
    Wake,
    /// Close idle connections now, kill the rest at the deadline.
    Stop { deadline: Duration },
}

/// The way into a reactor.
pub(crate) struct Inbox {
    messages: Mutex<Vec<Message>>,
    tick: AtomicBool,
    waker: Waker,
}

impl Inbox {
    pub(crate) fn send(&self, message: Message) {
        let mut messages = self.messages.lock();
        messages.push(message);
        let first = messages.len() == 1;
        drop(messages);
        // Later messages share the first one's wake-up.
        if first {
            self.waker.wake();
        }
    }

    /// Makes the reactor check all its connections. It keeps no time itself, so that its waits need no timer.
    pub(crate) fn tick(&self) {
        self.tick.store(true, Ordering::Release);
        self.waker.wake();
    }

    fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock())
    }
}

/// A connection's place in its reactor, and how to wake the reactor.
#[derive(Clone)]
pub(crate) struct WakeUp {
    inbox: Arc<Inbox>,
    entry: usize,
}

impl WakeUp {
    pub(crate) fn wake(&self) {
        self.inbox.send(Message::Wake);
    }
}

struct Entry {
    /// `None` while a worker has it, or when the entry is free.
    connection: Option<Box<Connection>>,
    /// Connection id; 0 when free.
    id: u64,
    cancel: CancelToken,
    /// In the queue of those to run.
    queued: bool,
    /// Something happened since its last turn began.
    ready: bool,
    placement: Placement,
    /// In the list of connections whose reply waits.
    parked: bool,
}

impl Entry {
    /// One without a connection.
    fn free() -> Entry {
        Entry {
            connection: None,
            id: 0,
            cancel: CancelToken::new(),
            queued: false,
            ready: false,
            placement: Placement::default(),
            parked: false,
        }
    }

    fn has_phase(&self, phase: Phase) -> bool {
        self.connection.as_ref().is_some_and(|connection| connection.phase == phase)
    }

    /// Evaluates the connection's activity since the last tick.
    fn look(&mut self) -> Activity {
        let commands = self.connection.as_ref().map(|connection| connection.commands);
        self.placement.look(commands, self.cancel.is_connection_killed())
    }
}

/// One of the listener's reactors.
pub(crate) struct ConnectionReactor {
    server: Arc<Server>,
    poller: Poller,
    inbox: Arc<Inbox>,
    entries: Vec<Entry>,
    free: Vec<usize>,
    queue: VecDeque<usize>,
    /// Connections whose reply waits for a commit.
    parked: Vec<usize>,
    /// Some parked connection will cause a wake-up.
    awaits_wake: bool,
    /// When the first of them arrived, or the engine was asked to handle them.
    parked_since: Duration,
    /// A parked connection has had a turn to write the log.
    has_led: bool,
    tasks_since_poll: usize,
    started: Duration,
    /// Seconds since `started`, as of the last tick.
    seconds: u64,
    /// Connections that have not logged in, oldest first; those that have logged in remain in it for a while.
    half_open: VecDeque<(usize, u64)>,
    crowd: Crowd,
    stopping: Option<Duration>,
}

impl ConnectionReactor {
    /// One of `reactors` reactors of `server`.
    pub(crate) fn new(server: Arc<Server>, reactors: usize) -> io::Result<ConnectionReactor> {
        let poller = Poller::new()?;
        let waker = poller.waker(WAKE_TOKEN)?;
        let inbox = Inbox { messages: Mutex::new(Vec::new()), tick: AtomicBool::new(false), waker };
        Ok(ConnectionReactor {
            server,
            poller,
            inbox: Arc::new(inbox),
            entries: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            parked: Vec::new(),
            awaits_wake: false,
            parked_since: monotonic(),
            has_led: false,
            tasks_since_poll: 0,
            started: monotonic(),
            seconds: 0,
            half_open: VecDeque::new(),
            crowd: Crowd::of(reactors),
            stopping: None,
        })
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        self.inbox.clone()
    }

    fn next_queued(&mut self) -> Option<Turn<Box<Connection>>> {
        while let Some(index) = self.queue.pop_front() {
            let entry = &mut self.entries[index];
            entry.queued = false;
            if let Some(mut connection) = entry.connection.take() {
                if std::mem::take(&mut entry.ready) {
                    connection.transport.drained = false;
                }
                if entry.placement.is_promoted()
                    && self.poller.leave_reading(&connection.transport.stream, index).is_ok()
                {
                    connection.transport.waiting = Some(entry.placement.leave());
                    return Some(Turn::Detach(connection));
                }
                return Some(Turn::Run(connection));
            }
        }
        None
    }

    fn enqueue(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        if !entry.queued && entry.connection.is_some() {
            entry.queued = true;
            self.queue.push_back(index);
        }
    }

    fn poll(&mut self) -> io::Result<()> {
        self.tasks_since_poll = 0;
        let limit = if !self.queue.is_empty() || self.must_settle() {
            Some(Duration::ZERO)
        } else {
            // Otherwise the acceptor keeps the time.
            self.stopping.map(|_| TICK_STOPPING)
        };
        self.poller.wait(limit)?;
        let mut woken = false;
        let (entries, queue) = (&mut self.entries, &mut self.queue);
        for event in self.poller.ready() {
            if event.token == WAKE_TOKEN {
                woken = true;
            } else if let Some(entry) = entries.get_mut(event.token) {
                entry.ready = true;
                if event.closed && entry.connection.is_none() && entry.id != 0 {
                    // The client of a running statement is gone: the result is not wanted.
                    entry.cancel.kill_connection();
                }
                if !entry.queued && entry.connection.is_some() {
                    entry.queued = true;
                    queue.push_back(event.token);
                }
            }
        }
        let mut tick = self.stopping.is_some();
        if woken {
            tick |= self.inbox.tick.swap(false, Ordering::AcqRel);
            for message in self.inbox.take() {
                self.receive(message);
            }
        }
        if tick {
            self.tick();
        }
        if !self.parked.is_empty() {
            self.look_at_parked();
        }
        Ok(())
    }

    /// Replies wait, and no thread has been asked to take care of them.
    fn must_settle(&self) -> bool {
        !self.parked.is_empty() && !self.awaits_wake
    }

    /// Queues parked connections whose commits are durable. If the reactor always has other work, the engine's own thread must take care
    /// of the rest.
    fn look_at_parked(&mut self) {
        let is_busy = !self.queue.is_empty();
        let mut at = 0;
        while let Some(index) = self.parked.get(at).copied() {
            let entry = &mut self.entries[index];
            match &entry.connection {
                Some(connection) if !connection.is_settled() => at += 1,
                // Those out with a worker return through `put_back`.
                Some(_) | None => {
                    entry.parked = false;
                    self.parked.swap_remove(at);
                    self.enqueue(index);
                }
            }
        }
        if is_busy
            && self.must_settle()
            && monotonic().saturating_sub(self.parked_since) > PARKED_WHILE_BUSY_MAX
        {
            let last =
                self.parked.last().and_then(|index| self.entries[*index].connection.as_ref());
            self.awaits_wake = last.is_some_and(|connection| connection.ask_to_be_woken());
            self.parked_since = monotonic();
        }
    }

    fn everybody_waits(&self) -> bool {
        self.parked.len() == self.entries.len() - self.free.len()
    }

    /// When idle: a parked connection, for a turn in which it may write the log.
    fn next_leader(&mut self) -> Option<Turn<Box<Connection>>> {
        if !self.must_settle() {
            return None;
        }
        let patience = if self.everybody_waits() { Duration::MAX } else { LEAD_PATIENCE };
        while let Some(index) = self.parked.pop() {
            let entry = &mut self.entries[index];
            entry.parked = false;
            let waits = entry.connection.take_if(|connection| connection.phase == Phase::Parked);
            if let Some(mut connection) = waits {
                connection.may_lead = Some(patience);
                self.has_led = true;
                return Some(Turn::Run(connection));
            }
        }
        None
    }

    /// The next turn that needs no poll of the kernel.
    fn next_known(&mut self) -> Option<Turn<Box<Connection>>> {
        if let Some(turn) = self.next_queued() {
            return Some(turn);
        }
        if std::mem::take(&mut self.has_led) && !self.parked.is_empty() {
            self.look_at_parked();
            return self.next_queued();
        }
        // The kernel has no events for clients that all wait for their replies.
        if self.everybody_waits() { self.next_leader() } else { None }
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::New(connection) => self.add(connection),
            Message::Back(mut connection) => {
                // The wake-up may have come earlier.
                connection.awaits_wake = false;
                self.put_back(connection);
            }
            // The poll checks them.
            Message::Wake => self.awaits_wake = false,
            Message::Stop { deadline } => {
                self.stopping = Some(deadline);
                self.server.recall.store(true, Ordering::Relaxed);
                self.tick();
            }
        }
    }

    fn add(&mut self, mut connection: Box<Connection>) {
        if self.stopping.is_some() {
            return;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry::free());
            self.entries.len() - 1
        });
        if self.poller.add_stream(&connection.transport.stream, index).is_err() {
            self.free.push(index);
            return;
        }
        let id = connection.id;
        connection.wake_up = Some(WakeUp { inbox: self.inbox.clone(), entry: index });
        // Ticks were not needed before the first connection.
        self.seconds = monotonic().saturating_sub(self.started).as_secs();
        connection.accepted_at = self.seconds;
        connection.active_at = self.seconds;
        let entry = &mut self.entries[index];
        entry.id = id;
        entry.cancel = connection.cancel.clone();
        entry.ready = false;
        entry.placement = Placement::of(connection.commits.clone(), connection.waits.clone());
        entry.connection = Some(connection);
        self.enqueue(index);
        self.evict_half_open();
        self.half_open.push_back((index, id));
    }

    /// Closes the oldest unfinished log-ins when there are too many: a genuine client finishes within milliseconds.
    fn evict_half_open(&mut self) {
        let entries = &self.entries;
        let is_half_open = |(index, id): &(usize, u64)| {
            let entry = &entries[*index];
            entry.id == *id && entry.connection.as_ref().is_none_or(|open| open.half_open)
        };
        while self.half_open.front().is_some_and(|place| !is_half_open(place)) {
            self.half_open.pop_front();
        }
        while self.server.half_open_surplus() > 0 {
            // Prefers one that has sent nothing to one whose input waits to be read.
            let silent = |(index, id): &(usize, u64)| {
                let entry = &self.entries[*index];
                entry.id == *id && !entry.ready && entry.has_phase(Phase::Login)
            };
            let late = |(index, id): &(usize, u64)| {
                let entry = &self.entries[*index];
                entry.id == *id && entry.connection.as_ref().is_some_and(|open| open.half_open)
            };
            let places = &self.half_open;
            let Some(at) = places.iter().position(silent).or_else(|| places.iter().position(late))
            else {
                return;
            };
            let Some((index, _)) = self.half_open.remove(at) else { return };
            let entry = &mut self.entries[index];
            // At once, not in its turn: the next check of the numbers must find them right.
            if let Some(mut connection) = entry.connection.take() {
                connection.abort();
            }
            entry.id = 0;
            entry.ready = false;
            self.free.push(index);
        }
    }

    /// Checks every connection: time-outs, kills, shutdown.
    fn tick(&mut self) {
        self.seconds = monotonic().saturating_sub(self.started).as_secs();
        let now = self.seconds;
        let connect_timeout = self.server.sessions.global_integer("connect_timeout").max(2);
        let kill = self.stopping.is_some_and(|deadline| monotonic() >= deadline);
        self.place_busy();
        for index in 0..self.entries.len() {
            let entry = &mut self.entries[index];
            if kill {
                entry.cancel.kill_connection();
            }
            let Some(connection) = &mut entry.connection else { continue };
            let reason = if self.stopping.is_some() && (kill || connection.phase != Phase::Parked) {
                Some(CloseReason::Shutdown)
            } else {
                connection.overdue(now, connect_timeout)
            };
            let is_due = connection.is_answer_due();
            if reason.is_some() {
                connection.close_request = reason;
            }
            if reason.is_some() || is_due {
                self.enqueue(index);
            }
        }
    }

    /// Gives the busy connections their own threads if the server has few, and recalls such threads when there are many.
    fn place_busy(&mut self) {
        let activities = self.entries.iter_mut().map(Entry::look);
        let must_leave = self.crowd.weigh(activities, &self.server, self.stopping.is_some());
        for entry in &mut self.entries {
            if must_leave.includes(entry.placement.activity()) {
                entry.placement.call_back();
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.len() == self.free.len()
    }
}

impl Reactor for ConnectionReactor {
    type Task = Box<Connection>;
    type Scratch = Scratch;
    type Remote = Arc<Inbox>;

    fn next(&mut self) -> Turn<Box<Connection>> {
        if self.tasks_since_poll < TASKS_PER_POLL
            && let Some(turn) = self.next_known()
        {
            self.tasks_since_poll += 1;
            return turn;
        }
        if self.stopping.is_some() && self.is_empty() {
            return Turn::Stop;
        }
        if self.poll().is_err() {
            // Without its poller a reactor can do nothing for its connections.
            return Turn::Stop;
        }
        match self.next_queued().or_else(|| self.next_leader()) {
            Some(turn) => {
                self.tasks_since_poll += 1;
                turn
            }
            None => Turn::Again,
        }
    }

    fn run(connection: &mut Box<Connection>, scratch: &mut Scratch) {
        connection.run(scratch);
    }

    fn run_detached(connection: &mut Box<Connection>, scratch: &mut Scratch) {
        connection.run_alone(scratch);
    }

    fn panicked(connection: &mut Box<Connection>) {
        connection.abort();
    }

    fn put_back(&mut self, mut connection: Box<Connection>) {
        let Some(wake_up) = &connection.wake_up else { return };
        let index = wake_up.entry;
        let entry = &mut self.entries[index];
        if entry.placement.come_back(connection.commands) {
            let resumed = self.poller.resume_reading(&connection.transport.stream, index);
            if resumed.is_err() && connection.phase != Phase::Closed {
                connection.abort();
            }
        }
        if connection.phase == Phase::Closed {
            entry.id = 0;
            entry.ready = false;
            self.free.push(index);
            if std::mem::take(&mut entry.parked) {
                self.parked.retain(|parked| *parked != index);
            }
            return;
        }
        connection.active_at = self.seconds;
        let again = entry.ready || connection.wants_turn;
        self.awaits_wake |= std::mem::take(&mut connection.awaits_wake);
        if connection.phase == Phase::Parked && !entry.parked {
            entry.parked = true;
            if self.parked.is_empty() {
                self.parked_since = monotonic();
            }
            self.parked.push(index);
        }
        entry.connection = Some(connection);
        if again {
            self.enqueue(index);
        }
    }

    fn give_back(inbox: &Arc<Inbox>, connection: Box<Connection>) {
        inbox.send(Message::Back(connection));
    }
}
