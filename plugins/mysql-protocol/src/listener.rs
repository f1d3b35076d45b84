//! The listener: binds, accepts, spreads connections over reactors, binds other addresses while it runs, stops.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use errors::{Error, Result, bail, err};
use plugin_api::{Listener, ListenerContext, Rebinding, RunningListener, cannot_listen};
use sys::affinity::{Affinity, Seat};
use sys::blocking::{Pool, PoolOptions};
use sys::clock::monotonic;
use sys::io_times::IoTimes;
use sys::net::{Poller, Stream, Waker};
use sys::sync::{Condvar, Mutex};
use sys::threads::Thread;
use sys::topology::Topology;
use types::Value;
use wire::{Capabilities, ErrPacket, begin_packet, finish_packet};

use crate::connection::{Connection, Server};
use crate::reactor::{ConnectionReactor, Inbox, Message, TICK};
use crate::tls;
use crate::tls_status::TlsStatus;

/// Threads that may wait inside statements, in addition to one for each allowed connection.
const SPARE_THREADS: usize = 64;
/// The waker's token in the acceptor's poller; those of sockets begin after it.
const WAKER: usize = 0;
/// How long a change of addresses waits for the acceptor.
const ADOPT_WITHIN: Duration = Duration::from_secs(5);
/// The settings that say where it listens.
const OWN_SETTINGS: [&str; 3] = ["port", "bind_address", "socket"];
/// How long the acceptor pauses when the system has no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The MySQL protocol.
#[derive(Default)]
pub struct MysqlProtocol {
    pub(crate) io_times: Arc<IoTimes>,
    pub(crate) tls_status: Arc<TlsStatus>,
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
        let tls = tls.map(|(config, in_use)| {
            self.tls_status.use_now(Some(in_use));
            config
        });
        let server = Arc::new(Server::new(ctx.sessions.clone(), tls, self.tls_status.clone()));
        start(&ctx, server).map(|running| Box::new(running) as Box<dyn RunningListener>)
    }
}

fn start(ctx: &ListenerContext, server: Arc<Server>) -> Result<Running> {
    let bound = bind(ctx, &[])?;
    let mut poller = Poller::new().map_err(Error::internal)?;
    let waker = poller.waker(WAKER).map_err(Error::internal)?;
    let mut accepting = Accepting::default();
    accepting.change_to(bound.clone(), &mut poller).map_err(Error::internal)?;
    let (pool, inboxes) = start_reactors(ctx, &server).map_err(Error::internal)?;
    let shared = Arc::new(Shared {
        waker,
        stopping: AtomicBool::new(false),
        next: Mutex::new(None),
        adopted: Condvar::new(),
        present: Mutex::new(Present { context: ctx.clone(), bound }),
    });
    let served = server.clone();
    let acceptor = Acceptor {
        accepting,
        poller,
        server,
        inboxes: inboxes.clone(),
        next_inbox: AtomicUsize::new(0),
        shared: shared.clone(),
    };
    let thread = sys::threads::spawn("mysql-accept", move || acceptor.run());
    let thread = thread.map_err(Error::internal)?;
    Ok(Running { pool, inboxes, shared, thread, server: served })
}

/// The place where a socket listens.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A socket that listens.
#[derive(Clone)]
struct Bound {
    place: Place,
    listener: Arc<sys::net::Listener>,
    /// Administrators find a place here, whatever `max_connections` is.
    is_administrative: bool,
}

impl Bound {
    fn new(place: Place, listener: sys::net::Listener) -> Bound {
        Bound { place, listener: Arc::new(listener), is_administrative: false }
    }
}

/// Binds all addresses of the context, apart from those that `kept` has bound.
fn bind(ctx: &ListenerContext, kept: &[Bound]) -> Result<Vec<Bound>> {
    let mut all = Vec::new();
    let mut port = ctx.port;
    for address in &ctx.bind_addresses {
        let address = SocketAddr::new(*address, port);
        let bound = match kept
            .iter()
            .find(|bound| !bound.is_administrative && bound.place == Place::Tcp(address))
        {
            Some(bound) => bound.clone(),
            None => {
                let listener = bind_tcp(address, kept)
                    .map_err(|error| cannot_listen("mysql", &address, "port", &error))?;
                let address = listener.local_address().unwrap_or(address);
                Bound::new(Place::Tcp(address), listener)
            }
        };
        if let Place::Tcp(address) = bound.place {
            // With port 0 the first address picks the port, and the others use the same.
            port = address.port();
        }
        all.push(bound);
    }
    if let Some(path) = &ctx.socket {
        let place = Place::Unix(path.clone());
        let bound = match kept.iter().find(|bound| bound.place == place) {
            Some(bound) => bound.clone(),
            None => {
                let listener = sys::net::Listener::unix(path)
                    .map_err(|error| cannot_listen("mysql", &path.display(), "socket", &error))?;
                Bound::new(place, listener)
            }
        };
        all.push(bound);
    }
    if let Some(address) = ctx.admin_address {
        all.push(bind_administrative(address, kept)?);
    }
    Ok(all)
}

/// Binds the administrative address, unless `kept` has it.
fn bind_administrative(address: SocketAddr, kept: &[Bound]) -> Result<Bound> {
    if let Some(bound) = kept.iter().find(|bound| bound.is_administrative) {
        return Ok(bound.clone());
    }
    let listener = sys::net::Listener::tcp(address)
        .map_err(|error| cannot_listen("mysql", &address, "admin_port", &error))?;
    Ok(Bound { is_administrative: true, ..Bound::new(Place::Tcp(address), listener) })
}

/// All addresses and one of them overlap when they have the same port: then the listeners have to share it for a moment.
fn bind_tcp(address: SocketAddr, kept: &[Bound]) -> io::Result<sys::net::Listener> {
    let has_same_port = |bound: &&Bound| match bound.place {
        Place::Tcp(other) => other.port() == address.port(),
        Place::Unix(_) => false,
    };
    let others = kept.iter().filter(has_same_port).map(|bound| &*bound.listener);
    let others: Vec<&sys::net::Listener> = others.collect();
    match others.is_empty() {
        true => sys::net::Listener::tcp(address),
        false => sys::net::Listener::tcp_beside(address, &others),
    }
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
    // The server has checked the setting before it started.
    let affinity = Affinity::parse(&server.sessions.global_text("cpu_affinity"));
    let seats = affinity.unwrap_or_default().seats(&Topology::read(), count);
    if !seats.is_empty() {
        let processors: Vec<u32> = seats.iter().map(Seat::processor).collect();
        tracing::info!(?processors, "mysql: a reactor on each of these processors");
    }
    let options = PoolOptions {
        name: "mysql-worker".to_owned(),
        threads_max: connections.saturating_add(count + SPARE_THREADS),
        seats,
    };
    Ok((Pool::start(reactors, options)?, inboxes))
}

/// What the acceptor's thread shares with those that change or stop it.
struct Shared {
    waker: Waker,
    stopping: AtomicBool,
    /// The sockets to accept from instead of the present ones.
    next: Mutex<Option<Vec<Bound>>>,
    /// `next` was taken.
    adopted: Condvar,
    present: Mutex<Present>,
}

/// Where the listener listens.
struct Present {
    context: ListenerContext,
    bound: Vec<Bound>,
}

/// The sockets that the acceptor accepts from, with their tokens in its poller.
#[derive(Default)]
struct Accepting {
    sockets: Vec<(usize, Bound)>,
    last_token: usize,
}

impl Accepting {
    /// Accepts from these sockets; those that it accepted from before stay registered. Returns the others.
    fn change_to(&mut self, next: Vec<Bound>, poller: &mut Poller) -> io::Result<Vec<Bound>> {
        let mut sockets = Vec::with_capacity(next.len());
        for bound in next {
            let is_same =
                |(_, known): &&(usize, Bound)| Arc::ptr_eq(&known.listener, &bound.listener);
            let token = match self.sockets.iter().find(is_same) {
                Some((token, _)) => *token,
                None => {
                    self.last_token += 1;
                    poller.add_listener(&bound.listener, self.last_token)?;
                    self.last_token
                }
            };
            sockets.push((token, bound));
        }
        let mut left = std::mem::replace(&mut self.sockets, sockets);
        left.retain(|(token, _)| self.sockets.iter().all(|(kept, _)| kept != token));
        Ok(left.into_iter().map(|(_, bound)| bound).collect())
    }

    fn by_token(&self, token: usize) -> Option<Bound> {
        let socket = self.sockets.iter().find(|(known, _)| *known == token);
        socket.map(|(_, bound)| bound.clone())
    }
}

struct Acceptor {
    accepting: Accepting,
    poller: Poller,
    server: Arc<Server>,
    inboxes: Vec<Arc<Inbox>>,
    next_inbox: AtomicUsize,
    shared: Arc<Shared>,
}

impl Acceptor {
    /// Accepts, and keeps the time for the reactors while there are connections.
    fn run(mut self) {
        let mut next_tick = monotonic() + TICK;
        while !self.shared.stopping.load(Ordering::Acquire) {
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
                match self.accepting.by_token(token) {
                    Some(bound) => self.accept_all(&bound),
                    None => self.adopt_next(),
                }
            }
        }
    }

    /// Accepts from other sockets, if that is asked for. Clients that have connected to the old ones are accepted first.
    fn adopt_next(&mut self) {
        let Some(next) = self.shared.next.lock().take() else { return };
        match self.accepting.change_to(next, &mut self.poller) {
            Ok(left) => left.iter().for_each(|bound| self.accept_all(bound)),
            Err(error) => tracing::error!("mysql: {error}"),
        }
        self.shared.adopted.notify_all();
    }

    /// Events are edge-triggered: takes every waiting connection.
    fn accept_all(&self, bound: &Bound) {
        while !self.shared.stopping.load(Ordering::Acquire) {
            match bound.listener.accept() {
                Ok(Some(stream)) => self.admit(stream, bound.is_administrative),
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!("accept: {error}");
                    sys::threads::sleep(ACCEPT_PAUSE);
                }
            }
        }
    }

    fn admit(&self, mut stream: Stream, is_administrative: bool) {
        if !is_administrative && !self.server.has_room() {
            self.server.sessions.count_status("Connection_errors_max_connections", 1);
            self.server.tell_full();
            refuse(&mut stream);
            return;
        }
        if stream.set_options().is_err() {
            return;
        }
        let connection = Box::new(Connection::new(self.server.clone(), stream, is_administrative));
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
    pool: Pool<ConnectionReactor>,
    inboxes: Vec<Arc<Inbox>>,
    shared: Arc<Shared>,
    thread: Thread,
    server: Arc<Server>,
}

impl RunningListener for Running {
    fn port(&self) -> Option<u16> {
        port_of(&self.shared.present.lock().bound)
    }

    fn rebind(&self, settings: &[(&'static str, Value)]) -> Result<Option<Box<dyn Rebinding>>> {
        let present = self.shared.present.lock();
        let Some(context) = present.context.with(settings)? else { return Ok(None) };
        let bound = bind(&context, &present.bound)?;
        let old = present.bound.clone();
        let shared = self.shared.clone();
        let settings = settings.to_vec();
        Ok(Some(Box::new(Rebound { shared, context, bound, old, settings })))
    }

    fn reload_tls(&self, disables_on_error: bool) -> Result<()> {
        let context = self.shared.present.lock().context.clone();
        if context.tls_disabled {
            bail!(SSL_LIBRARY_ERROR, "TLS is switched off by --skip-ssl");
        }
        match tls::read(context.tls_files.as_ref(), &context.data_directory) {
            Ok((config, in_use)) => {
                self.server.tls.store(Some(config));
                self.server.tls_status.use_now(Some(in_use));
                Ok(())
            }
            Err(failure) => {
                if disables_on_error {
                    self.server.tls.store(None);
                    self.server.tls_status.use_now(None);
                }
                let left = if disables_on_error {
                    "there is no TLS now"
                } else {
                    "the ones before stay in use"
                };
                tracing::error!("TLS certificates were not reloaded, {left}: {}", failure.reason);
                Err(err!(SSL_LIBRARY_ERROR, failure.subject))
            }
        }
    }

    fn stop(self: Box<Self>, grace: Duration) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.waker.wake();
        self.thread.join();
        remove_sockets(&self.shared.present.lock().bound, &[]);
        let deadline = monotonic() + grace;
        for inbox in &self.inboxes {
            inbox.send(Message::Stop { deadline });
        }
        self.pool.join();
    }
}

fn port_of(bound: &[Bound]) -> Option<u16> {
    bound.iter().filter(|bound| !bound.is_administrative).find_map(|bound| match bound.place {
        Place::Tcp(address) => Some(address.port()),
        Place::Unix(_) => None,
    })
}

/// Removes the files of sockets that `kept` does not have.
fn remove_sockets(bound: &[Bound], kept: &[Bound]) {
    for Bound { place, .. } in bound {
        if let Place::Unix(path) = place
            && !kept.iter().any(|kept| kept.place == *place)
        {
            // It may be gone already.
            let _ = sys::files::remove(path);
        }
    }
}

/// Sockets that are bound and not yet accepted from, and those of before.
struct Rebound {
    shared: Arc<Shared>,
    context: ListenerContext,
    bound: Vec<Bound>,
    /// The present ones.
    old: Vec<Bound>,
    settings: Vec<(&'static str, Value)>,
}

impl Rebinding for Rebound {
    fn bound(&self) -> Vec<(&'static str, Value)> {
        let port = port_of(&self.bound).unwrap_or_default();
        let as_bound = |(name, value): &(&'static str, Value)| match *name {
            "port" => (*name, Value::UInt(u64::from(port))),
            _ => (*name, value.clone()),
        };
        let own = |(name, _): &&(&'static str, Value)| OWN_SETTINGS.contains(name);
        self.settings.iter().filter(own).map(as_bound).collect()
    }

    fn adopt(mut self: Box<Self>) {
        let new = std::mem::take(&mut self.bound);
        let mut next = self.shared.next.lock();
        *next = Some(new.clone());
        self.shared.waker.wake();
        let deadline = monotonic() + ADOPT_WITHIN;
        while next.is_some() {
            let left = deadline.saturating_sub(monotonic());
            if left.is_zero() {
                tracing::warn!("mysql: the new addresses are accepted from late");
                break;
            }
            next = self.shared.adopted.wait_for(next, left);
        }
        drop(next);
        remove_sockets(&self.old, &new);
        let context = self.context.clone();
        *self.shared.present.lock() = Present { context, bound: new };
        self.old.clear();
    }
}

impl Drop for Rebound {
    fn drop(&mut self) {
        remove_sockets(&self.bound, &self.old);
    }
}
