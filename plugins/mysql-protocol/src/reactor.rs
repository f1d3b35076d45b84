//! A reactor: an epoll set, the connections in it, and a clock that ticks once in a while.
//!
//! A connection is either in its entry or out with a worker. Events that arrive while it is out are remembered
//! in the entry. Other threads reach a reactor through its inbox only.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use engine_api::CancelToken;
use sys::blocking::{Reactor, Turn};
use sys::net::{Poller, Waker};

use crate::connection::{CloseReason, Connection, Phase, Scratch, Server};

/// Time between two looks at all connections: the resolution of time-outs, and how long a killed idle
/// connection lives on.
const TICK: Duration = Duration::from_millis(500);
/// The same while the server stops.
const TICK_STOPPING: Duration = Duration::from_millis(20);
/// Tasks run between two looks at the kernel when there is always another task.
const TASKS_PER_POLL: usize = 64;
const WAKE_TOKEN: usize = usize::MAX - 1;

/// What other threads tell a reactor.
pub(crate) enum Message {
    /// A new connection.
    New(Box<Connection>),
    /// A connection comes back from a worker that does not lead any more.
    Back(Box<Connection>),
    /// A parked connection may go on.
    Wake { entry: usize, id: u64 },
    /// Close idle connections now, kill the rest at the deadline.
    Stop { deadline: Instant },
}

/// The way into a reactor.
pub(crate) struct Inbox {
    messages: Mutex<Vec<Message>>,
    waker: Waker,
}

impl Inbox {
    pub(crate) fn send(&self, message: Message) {
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.push(message);
        let first = messages.len() == 1;
        drop(messages);
        // Later messages ride on the first one's wake-up.
        if first {
            self.waker.wake();
        }
    }

    fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Wakes one parked connection.
#[derive(Clone)]
pub(crate) struct WakeUp {
    inbox: Arc<Inbox>,
    entry: usize,
    id: u64,
}

impl WakeUp {
    pub(crate) fn wake(&self) {
        self.inbox.send(Message::Wake { entry: self.entry, id: self.id });
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
}

/// One of the listener's reactors.
pub(crate) struct ConnectionReactor {
    server: Arc<Server>,
    poller: Poller,
    inbox: Arc<Inbox>,
    entries: Vec<Entry>,
    free: Vec<usize>,
    queue: VecDeque<usize>,
    tasks_since_poll: usize,
    started: Instant,
    next_tick: Instant,
    stopping: Option<Instant>,
}

impl ConnectionReactor {
    pub(crate) fn new(server: Arc<Server>) -> io::Result<ConnectionReactor> {
        let poller = Poller::new()?;
        let inbox =
            Arc::new(Inbox { messages: Mutex::new(Vec::new()), waker: poller.waker(WAKE_TOKEN)? });
        let now = Instant::now();
        Ok(ConnectionReactor {
            server,
            poller,
            inbox,
            entries: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            tasks_since_poll: 0,
            started: now,
            next_tick: now + TICK,
            stopping: None,
        })
    }

    pub(crate) fn inbox(&self) -> Arc<Inbox> {
        self.inbox.clone()
    }

    /// Seconds since the reactor began.
    fn now(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    fn next_queued(&mut self) -> Option<Box<Connection>> {
        while let Some(index) = self.queue.pop_front() {
            let entry = &mut self.entries[index];
            entry.queued = false;
            if let Some(mut connection) = entry.connection.take() {
                if std::mem::take(&mut entry.ready) {
                    connection.transport.drained = false;
                }
                return Some(connection);
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
        let occupied = self.entries.len() > self.free.len();
        let limit = if !self.queue.is_empty() {
            Some(Duration::ZERO)
        } else if occupied || self.stopping.is_some() {
            Some(self.next_tick.saturating_duration_since(Instant::now()))
        } else {
            None
        };
        self.poller.wait(limit)?;
        let mut woken = false;
        let mut marked = Vec::new();
        for event in self.poller.ready() {
            if event.token == WAKE_TOKEN {
                woken = true;
            } else if let Some(entry) = self.entries.get_mut(event.token) {
                entry.ready = true;
                if event.closed && entry.connection.is_none() && entry.id != 0 {
                    // The client of a running statement is gone: nobody wants the result.
                    entry.cancel.kill_connection();
                }
                marked.push(event.token);
            }
        }
        for index in marked {
            self.enqueue(index);
        }
        if woken {
            for message in self.inbox.take() {
                self.receive(message);
            }
        }
        if Instant::now() >= self.next_tick {
            self.tick();
        }
        Ok(())
    }

    fn receive(&mut self, message: Message) {
        match message {
            Message::New(connection) => self.add(connection),
            Message::Back(connection) => self.put_back(connection),
            Message::Wake { entry, id } => {
                if let Some(found) = self.entries.get_mut(entry)
                    && found.id == id
                {
                    found.ready = true;
                    self.enqueue(entry);
                }
            }
            Message::Stop { deadline } => {
                self.stopping = Some(deadline);
                self.next_tick = Instant::now();
            }
        }
    }

    fn add(&mut self, mut connection: Box<Connection>) {
        if self.stopping.is_some() {
            return;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(Entry {
                connection: None,
                id: 0,
                cancel: CancelToken::new(),
                queued: false,
                ready: false,
            });
            self.entries.len() - 1
        });
        if self.poller.add_stream(&mut connection.transport.stream, index).is_err() {
            self.free.push(index);
            return;
        }
        let id = connection.id;
        connection.wake_up = Some(WakeUp { inbox: self.inbox.clone(), entry: index, id });
        connection.accepted_at = self.now();
        connection.active_at = self.now();
        let entry = &mut self.entries[index];
        entry.id = id;
        entry.cancel = connection.cancel.clone();
        entry.ready = false;
        entry.connection = Some(connection);
        self.enqueue(index);
    }

    /// Looks at every connection: time-outs, kills, shutdown.
    fn tick(&mut self) {
        self.next_tick =
            Instant::now() + if self.stopping.is_some() { TICK_STOPPING } else { TICK };
        let now = self.now();
        let connect_timeout = self.server.sessions.global_integer("connect_timeout").max(2);
        let kill = self.stopping.is_some_and(|deadline| Instant::now() >= deadline);
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
            if reason.is_some() {
                connection.close_request = reason;
                self.enqueue(index);
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
            && let Some(connection) = self.next_queued()
        {
            self.tasks_since_poll += 1;
            return Turn::Run(connection);
        }
        if self.stopping.is_some() && self.is_empty() {
            return Turn::Stop;
        }
        if self.poll().is_err() {
            // Without its poller a reactor can do nothing for its connections.
            return Turn::Stop;
        }
        match self.next_queued() {
            Some(connection) => {
                self.tasks_since_poll += 1;
                Turn::Run(connection)
            }
            None => Turn::Again,
        }
    }

    fn run(connection: &mut Box<Connection>, scratch: &mut Scratch) {
        connection.run(scratch);
    }

    fn panicked(connection: &mut Box<Connection>) {
        connection.abort();
    }

    fn put_back(&mut self, mut connection: Box<Connection>) {
        let Some(wake_up) = &connection.wake_up else { return };
        let index = wake_up.entry;
        let now = self.now();
        let entry = &mut self.entries[index];
        if connection.phase == Phase::Closed {
            entry.id = 0;
            entry.ready = false;
            self.free.push(index);
            return;
        }
        connection.active_at = now;
        let again = entry.ready || connection.wants_turn;
        entry.connection = Some(connection);
        if again {
            self.enqueue(index);
        }
    }

    fn give_back(inbox: &Arc<Inbox>, connection: Box<Connection>) {
        inbox.send(Message::Back(connection));
    }
}
