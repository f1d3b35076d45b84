//! Sockets: accepting, reading requests within limits, writing answers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming as Body};
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use plugin_api::variable::{as_text, as_u64};
use plugin_api::{Listener, ListenerContext, Rebinding, RunningListener, cannot_listen};
use sys::affinity::Inheritance;
use sys::sync::Mutex;
use sys::threads::Thread;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use types::Value;

use crate::call::Incoming;
use crate::finish::{self, Origin};
use crate::gateway::Gateway;
use crate::held::IDLE_WITHIN;
use crate::outlet::{Answered, ClientGuard, Started, Starter, Waiting};
use crate::quick;
use crate::reply::Reply;
use crate::routes;
use crate::settings::{BIND_ADDRESS_NAME, PORT_NAME, Settings};

/// Threads that read and write sockets besides those that may run a statement meanwhile.
const IO_THREADS: usize = 1;
/// Stack of the threads that run statements: they recurse over expressions.
const STATEMENT_STACK_BYTES: usize = 8 << 20;
/// Connections at one time.
const CONNECTIONS_MAX: usize = 1024;
/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;
/// How long a client may take for the head of a request, and for its body.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// Largest body.
const BODY_BYTES_MAX: usize = 16 << 20;
/// Largest head.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// The listener.
pub struct JsonServer {
    /// The plugin's variables.
    pub settings: Settings,
}

impl Listener for JsonServer {
    fn name(&self) -> &'static str {
        "json_server"
    }

    fn start(&self, ctx: ListenerContext) -> Result<Box<dyn RunningListener>> {
        let threads = self.settings.max_threads.number() as usize;
        let address = self.address()?;
        let quick_max = sys::threads::processors();
        // INSTALL PLUGIN runs on a thread that may have a seat.
        let inherited = Inheritance::here();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(IO_THREADS + quick_max)
            // Others go on with the sockets for those that wait in a statement; one more is for upkeep.
            .max_blocking_threads(threads + quick_max + 1)
            .thread_stack_size(STATEMENT_STACK_BYTES)
            .thread_name("json-server")
            .on_thread_start(move || inherited.give_up())
            .enable_io()
            .enable_time()
            .build()
            .map_err(Error::internal)?;
        let (listener, port) = bind(&runtime, address)?;
        let gateway = Gateway::new(ctx.sessions, self.settings.clone(), quick_max)
            .map_err(Error::internal)?;
        let gateway = Arc::new(gateway);
        let (stop, stopped) = watch::channel(false);
        let (kept_up, until) = (gateway.clone(), stopped.clone());
        runtime.spawn_blocking(move || keep_up(&kept_up, until));
        let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let accepting = runtime.spawn(accept(listener, gateway.clone(), room.clone(), stopped));
        let present = Mutex::new(Present { address, port, accepting });
        let (watched, handle) = (gateway.clone(), runtime.handle().clone());
        let watch = move || watched.quick.watch(&handle);
        let watch = sys::threads::spawn("json-watch", watch).map_err(Error::internal)?;
        tracing::info!(%address, "json_server listens");
        let shared = Arc::new(Shared { gateway, room, stop, present });
        let settings = self.settings.clone();
        Ok(Box::new(Running { runtime, settings, shared, watch }))
    }
}

impl JsonServer {
    fn address(&self) -> Result<SocketAddr> {
        let settings = &self.settings;
        address_of(&settings.bind_address.text(), settings.port.number())
    }
}

fn address_of(ip: &str, port: u64) -> Result<SocketAddr> {
    let wrong = |_| errors::err!(WRONG_VALUE_FOR_VAR, BIND_ADDRESS_NAME, ip);
    let ip: IpAddr = ip.parse().map_err(wrong)?;
    Ok(SocketAddr::new(ip, u16::try_from(port).map_err(Error::internal)?))
}

/// Binds and listens; a thread of a runtime may call it.
fn bind(runtime: &Runtime, address: SocketAddr) -> Result<(TcpListener, u16)> {
    let _entered = runtime.enter();
    let bound = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(BACKLOG)?;
        let port = listener.local_addr()?.port();
        Ok((listener, port))
    };
    bound()
        .map_err(|error: std::io::Error| cannot_listen("json_server", &address, PORT_NAME, &error))
}

struct Running {
    runtime: Runtime,
    settings: Settings,
    shared: Arc<Shared>,
    watch: Thread,
}

/// What accepting connections needs, whatever the address.
struct Shared {
    gateway: Arc<Gateway>,
    room: Arc<Semaphore>,
    stop: watch::Sender<bool>,
    present: Mutex<Present>,
}

/// Where the server listens.
struct Present {
    address: SocketAddr,
    port: u16,
    accepting: JoinHandle<()>,
}

impl RunningListener for Running {
    fn port(&self) -> Option<u16> {
        Some(self.shared.present.lock().port)
    }

    fn rebind(&self, settings: &[(&'static str, Value)]) -> Result<Option<Box<dyn Rebinding>>> {
        let own = |wanted: &str| settings.iter().find(|(name, _)| *name == wanted);
        let (ip, port) = (own(BIND_ADDRESS_NAME), own(PORT_NAME));
        if ip.is_none() && port.is_none() {
            return Ok(None);
        }
        let present = self.shared.present.lock();
        let ip = ip.map_or_else(|| self.settings.bind_address.text(), |(_, ip)| as_text(ip));
        let port = port.map_or(u64::from(present.port), |(_, port)| as_u64(port));
        let address = address_of(&ip, port)?;
        let is_same = address.ip() == present.address.ip() && address.port() == present.port;
        let new = if is_same { None } else { Some(bind(&self.runtime, address)?) };
        let port = new.as_ref().map_or(present.port, |(_, port)| *port);
        let listener = new.map(|(listener, _)| listener);
        let settings = settings.to_vec();
        let (shared, handle) = (self.shared.clone(), self.runtime.handle().clone());
        Ok(Some(Box::new(Rebound { shared, handle, listener, address, port, settings })))
    }

    fn stop(self: Box<Self>, grace: Duration) {
        let Running { runtime, shared, watch, .. } = *self;
        let _ = shared.stop.send(true);
        runtime.block_on(async {
            // Connections hold a receiver each: the last one to end drops the last receiver.
            let _ = tokio::time::timeout(grace, shared.stop.closed()).await;
        });
        // What still runs now ends by error 1053 or 1317.
        shared.gateway.kill_active();
        shared.gateway.quick.stop();
        watch.join();
        runtime.shutdown_timeout(Duration::from_secs(5));
        shared.gateway.held.end_idle(Duration::ZERO);
        shared.gateway.idle.clear();
    }
}

/// An address that is bound beside the present one; no listener when it is that.
struct Rebound {
    shared: Arc<Shared>,
    handle: Handle,
    listener: Option<TcpListener>,
    address: SocketAddr,
    port: u16,
    settings: Vec<(&'static str, Value)>,
}

impl Rebinding for Rebound {
    fn bound(&self) -> Vec<(&'static str, Value)> {
        let as_bound = |(name, value): &(&'static str, Value)| match *name {
            PORT_NAME => Some((*name, Value::UInt(u64::from(self.port)))),
            BIND_ADDRESS_NAME => Some((*name, value.clone())),
            _ => None,
        };
        self.settings.iter().filter_map(as_bound).collect()
    }

    fn adopt(self: Box<Self>) {
        let Some(listener) = self.listener else { return };
        let Shared { gateway, room, stop, present } = &*self.shared;
        let next = accept(listener, gateway.clone(), room.clone(), stop.subscribe());
        let accepting = self.handle.spawn(next);
        let next = Present { address: self.address, port: self.port, accepting };
        // Only its listener ends with it: each connection is a task of its own.
        std::mem::replace(&mut *present.lock(), next).accepting.abort();
        tracing::info!(address = %self.address, "json_server listens");
    }
}

/// Each second: counters for the history, and the end of sessions that nobody uses.
fn keep_up(gateway: &Gateway, mut stopped: watch::Receiver<bool>) {
    let second = Duration::from_secs(1);
    loop {
        gateway.live.sample(gateway.sessions.as_ref());
        gateway.held.end_idle(IDLE_WITHIN);
        gateway.idle.end_old();
        let changed = async { tokio::time::timeout(second, stopped.changed()).await };
        if tokio::runtime::Handle::current().block_on(changed).is_ok() {
            return;
        }
    }
}

async fn accept(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    room: Arc<Semaphore>,
    mut stopped: watch::Receiver<bool>,
) {
    loop {
        let permit = room.clone().acquire_owned();
        let accepted = tokio::select! {
            _ = stopped.changed() => return,
            accepted = async { (permit.await, listener.accept().await) } => accepted,
        };
        let (Ok(permit), Ok((stream, peer))) = accepted else {
            // No descriptor is free: wait for one instead of asking at full speed.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (gateway, stopped) = (gateway.clone(), stopped.clone());
        tokio::spawn(async move {
            serve(stream, peer, gateway, stopped).await;
            drop(permit);
        });
    }
}

/// Serves one connection until its client, an idle timeout or the server ends it.
async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    gateway: Arc<Gateway>,
    mut stopped: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let gateway = gateway.clone();
        async move { Ok::<_, std::convert::Infallible>(respond(request, peer, gateway).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // A client that breaks the protocol or the connection: nothing to tell anybody.
        _ = connection.as_mut() => {}
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

async fn respond(
    request: Request<Body>,
    peer: SocketAddr,
    gateway: Arc<Gateway>,
) -> Response<Answered> {
    let (head, body) = request.into_parts();
    let allowed = gateway.settings.allowed_origins.text();
    let reader = match finish::origin(&head.headers, &allowed) {
        Origin::Allowed(origin) => HeaderValue::from_str(origin).ok(),
        Origin::Own | Origin::Foreign => None,
    };
    let mut response = respond_to(head, body, peer, gateway).await;
    if let Some(origin) = reader {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.append(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

async fn respond_to(
    head: Parts,
    body: Body,
    peer: SocketAddr,
    gateway: Arc<Gateway>,
) -> Response<Answered> {
    let is_head = head.method == hyper::Method::HEAD;
    let body = match read_body(&head.headers, body).await {
        Ok(body) => body,
        Err(refusal) => return response(refusal, is_head),
    };
    let (starter, started) = Starter::new();
    let waiting = Waiting::default();
    let guard = waiting.guard();
    let Some(query) = routes::query(head.uri.query().unwrap_or("")) else {
        let message = "the part after ? is not percent-encoded UTF-8";
        return response(Reply::failure(StatusCode::BAD_REQUEST, message), is_head);
    };
    let request = Incoming {
        method: head.method,
        path: head.uri.path().to_owned(),
        query,
        headers: head.headers,
        body,
        address: peer,
        starter,
        waiting,
    };
    if let Some(reply) = quick::answer(&gateway, &request) {
        return response(finish::finish(&request, reply), is_head);
    }
    let work = tokio::task::spawn_blocking(move || {
        let reply = routes::answer(&gateway, &request);
        finish::finish(&request, reply)
    });
    // A handler that begins an answer in pieces sends its head; one that does not drops the sender with the request.
    match started.await {
        Ok(started) => in_pieces(started, guard),
        Err(_) => {
            let reply = work.await.unwrap_or_else(|_| quick::fault());
            drop(guard);
            response(reply, is_head)
        }
    }
}

async fn read_body(headers: &HeaderMap, body: Body) -> std::result::Result<Vec<u8>, Reply> {
    let body = tokio::time::timeout(BODY_WITHIN, Limited::new(body, BODY_BYTES_MAX).collect());
    match body.await {
        Ok(Ok(body)) => finish::decoded_body(headers, body.to_bytes().to_vec(), BODY_BYTES_MAX),
        Ok(Err(_)) => {
            let message = "the body is incomplete or larger than 16 MiB";
            Err(Reply::failure(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Err(_) => {
            let message = "the body did not come in time";
            Err(Reply::failure(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

fn builder() -> hyper::http::response::Builder {
    Response::builder()
        .header("x-content-type-options", "nosniff")
        .header("referrer-policy", "no-referrer")
}

fn in_pieces(started: Started, guard: ClientGuard) -> Response<Answered> {
    let mut builder = builder()
        .status(StatusCode::OK)
        .header(header::CONTENT_TYPE, started.content_type)
        .header(header::CACHE_CONTROL, "no-store");
    if started.is_gzip {
        builder = builder.header(header::CONTENT_ENCODING, "gzip");
    }
    let body = Answered::of(started, guard);
    builder.body(body).unwrap_or_else(|_| empty())
}

fn empty() -> Response<Answered> {
    Response::new(Answered::Whole(Full::new(Bytes::new())))
}

fn response(reply: Reply, is_head: bool) -> Response<Answered> {
    let mut builder = builder().status(reply.status);
    if !matches!(reply.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        builder = builder.header(header::CONTENT_TYPE, reply.content_type);
    }
    for (name, value) in reply.headers {
        builder = builder.header(name, value);
    }
    let body = if is_head { Bytes::new() } else { Bytes::from(reply.body) };
    builder.body(Answered::Whole(Full::new(body))).unwrap_or_else(|_| empty())
}
