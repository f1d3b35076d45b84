//! The listener: binds, accepts, spreads connections over reactors, stops.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use errors::{Error, Result, err};
use plugin_api::{Listener, ListenerContext, RunningListener, cannot_listen};
use sys::blocking::{Pool, PoolOptions};
use sys::clock::monotonic;
use sys::io_times::IoTimes;
use sys::net::{Poller, Stream, Waker};
use sys::threads::Thread;
use wire::{Capabilities, ErrPacket, begin_packet, finish_packet};

use crate::connection::{Connection, Server};
use crate::reactor::{ConnectionReactor, Inbox, Message, TICK};
use crate::tls;

/// Threads that may wait inside statements, in addition to one for each allowed connection.
const SPARE_THREADS: usize = 64;
/// How long the acceptor pauses when the system has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The MySQL protocol.
#[derive(Default)]
pub struct MysqlProtocol {
    pub(crate) io_times: Arc<IoTimes>,
}

impl Listener for MysqlProtocol {
    fn name(&self) -> &'static str {
        "mysql"
    }

    fn start(&self, ctx: ListenerContext) -> Result<Box<dyn RunningListener>> {
        let tls = if ctx.tls_disabled {
            None
        } else {
            let made = tls::configure(ctx.tls_files.as_ref(), &ctx.data_directory, &self.io_times);
            Some(made.map_err(|error| Error::internal(format!("TLS certificates: {error}")))?)
        };
        let server = Arc::new(Server::new(ctx.sessions.clone(), tls));
        start(&ctx, server).map(|running| Box::new(running) as Box<dyn RunningListener>)
    }
}

fn start(ctx: &ListenerContext, server: Arc<Server>) -> Result<Running> {
    let listeners = bind(ctx)?;
    let port = listeners.iter().find_map(|listener| listener.local_address()).map(|a| a.port());
    let poller = Poller::new().map_err(Error::internal)?;
    let waker = poller.waker(listeners.len()).map_err(Error::internal)?;
    for (token, listener) in listeners.iter().enumerate() {
        poller.add_listener(listener, token).map_err(Error::internal)?;
    }
    let (pool, inboxes) = start_reactors(ctx, &server).map_err(Error::internal)?;
    let stopping = Arc::new(AtomicBool::new(false));
    let acceptor = Acceptor {
        listeners,
        poller,
        server,
        inboxes: inboxes.clone(),
        next_inbox: AtomicUsize::new(0),
        stopping: stopping.clone(),
    };
    let thread = sys::threads::spawn("mysql-accept", move || acceptor.run());
    let thread = thread.map_err(Error::internal)?;
    let socket = ctx.socket.clone();
    Ok(Running { port, socket, pool, inboxes, stopping, waker, thread })
}

fn bind(ctx: &ListenerContext) -> Result<Vec<sys::net::Listener>> {
    let mut listeners = Vec::new();
    let mut port = ctx.port;
    for address in &ctx.bind_addresses {
        let address = SocketAddr::new(*address, port);
        let listener = sys::net::Listener::tcp(address)
            .map_err(|error| cannot_listen("mysql", &address, "port", &error))?;
        // With port 0 the first address picks the port, and the others use the same.
        port = listener.local_address().map_or(port, |bound| bound.port());
        listeners.push(listener);
    }
    if let Some(path) = &ctx.socket {
        let listener = sys::net::Listener::unix(path)
            .map_err(|error| cannot_listen("mysql", &path.display(), "socket", &error))?;
        listeners.push(listener);
    }
    Ok(listeners)
}

type Reactors = (Pool<ConnectionReactor>, Vec<Arc<Inbox>>);

fn start_reactors(ctx: &ListenerContext, server: &Arc<Server>) -> io::Result<Reactors> {
    let count = if ctx.reactors == 0 { sys::threads::processors() } else { ctx.reactors };
    let mut reactors = Vec::new();
    let mut inboxes = Vec::new();
    for _ in 0..count {
        let reactor = ConnectionReactor::new(server.clone(), count)?;
        let inbox = reactor.inbox();
        inboxes.push(inbox.clone());
        reactors.push((reactor, inbox));
    }
    let connections = server.sessions.global_integer("max_connections") as usize;
    let options = PoolOptions {
        name: "mysql-worker".to_owned(),
        threads_max: connections.saturating_add(count + SPARE_THREADS),
    };
    Ok((Pool::start(reactors, options)?, inboxes))
}

struct Acceptor {
    listeners: Vec<sys::net::Listener>,
    poller: Poller,
    server: Arc<Server>,
    inboxes: Vec<Arc<Inbox>>,
    next_inbox: AtomicUsize,
    stopping: Arc<AtomicBool>,
}

impl Acceptor {
    /// Accepts, and keeps the time for the reactors while there are connections.
    fn run(mut self) {
        let mut next_tick = monotonic() + TICK;
        while !self.stopping.load(Ordering::Acquire) {
            let limit = match self.server.connections.load(Ordering::Relaxed) {
                0 => None,
                _ => Some(next_tick.saturating_sub(monotonic())),
            };
            if self.poller.wait(limit).is_err() {
                return;
            }
            if monotonic() >= next_tick {
                next_tick = monotonic() + TICK;
                self.inboxes.iter().for_each(|inbox| inbox.tick());
            }
            let tokens: Vec<usize> = self.poller.ready().map(|event| event.token).collect();
            for token in tokens {
                if token < self.listeners.len() {
                    self.accept_all(token);
                }
            }
        }
    }

    /// Events are edge-triggered: takes every waiting connection.
    fn accept_all(&self, token: usize) {
        while !self.stopping.load(Ordering::Acquire) {
            match self.listeners[token].accept() {
                Ok(Some(stream)) => self.admit(stream),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!("accept: {error}");
                    sys::threads::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    fn admit(&self, mut stream: Stream) {
        if !self.server.has_room() {
            self.server.sessions.count_status("Connection_errors_max_connections", 1);
            refuse(&mut stream);
            return;
        }
        if stream.set_options().is_err() {
            return;
        }
        let connection = Box::new(Connection::new(self.server.clone(), stream));
        let next = self.next_inbox.fetch_add(1, Ordering::Relaxed) % self.inboxes.len().max(1);
        if let Some(inbox) = self.inboxes.get(next) {
            inbox.send(Message::New(connection));
        }
    }
}

/// Error 1040 in place of a greeting; no SQLSTATE, because no capability is agreed on.
fn refuse(stream: &mut Stream) {
    let mut out = Vec::new();
    let mut sequence = 0;
    let start = begin_packet(&mut out);
    ErrPacket::of(&err!(CON_COUNT_ERROR)).encode(&mut out, Capabilities::default());
    finish_packet(&mut out, start, &mut sequence);
    // A new socket has buffer space; if not, the peer sees a closed connection.
    let _ = stream.write(&out);
}

struct Running {
    port: Option<u16>,
    socket: Option<PathBuf>,
    pool: Pool<ConnectionReactor>,
    inboxes: Vec<Arc<Inbox>>,
    stopping: Arc<AtomicBool>,
    waker: Waker,
    thread: Thread,
}

impl RunningListener for Running {
    fn port(&self) -> Option<u16> {
        self.port
    }

    fn stop(self: Box<Self>, grace: Duration) {
        self.stopping.store(true, Ordering::Release);
        self.waker.wake();
        self.thread.join();
        if let Some(path) = &self.socket {
            // It may be gone already.
            let _ = sys::files::remove(path);
        }
        let deadline = monotonic() + grace;
        for inbox in &self.inboxes {
            inbox.send(Message::Stop { deadline });
        }
        self.pool.join();
    }
}
