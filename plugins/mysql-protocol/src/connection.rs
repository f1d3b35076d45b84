//! A connection: its state, and how it is driven through one turn on a worker thread.
//!
//! Invariants: outside a turn the connection owns no buffers but an unfinished packet and a held-back reply;
//! after `Phase::Closed` nothing is read or written.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use engine_api::{CancelToken, CommitHandle, EngineResult};
use errors::{Error, ErrorCode, err};
use hashbrown::HashMap;
use plugin_api::{ConnectionKind, SessionFactory, SessionHandle};
use rustls::ServerConfig;
use sys::clock::monotonic;
use sys::net::Stream;
use types::{DataType, Value};
use wire::{
    Capabilities, ErrPacket, NONCE_BYTES, Packet, ParameterType, ScanError, begin_packet,
    finish_packet, join_parts, scan_packet,
};

use crate::buffer::InputBuffer;
use crate::login::Login;
use crate::metadata::MetadataCache;
use crate::reactor::WakeUp;
use crate::tls_status::TlsStatus;
use crate::transport::{Fill, Transport};

/// Commands of one connection in a row, before others get their turn.
const COMMANDS_PER_TURN: usize = 16;
/// Packets of the log-in: connection attributes of 64 KiB and the other fields.
const LOGIN_PACKET_MAX: usize = 128 * 1024;
/// Fewer connections than this that have not logged in are always allowed.
const HALF_OPEN_MIN: usize = 256;
/// How long a refused client may continue sending.
const LINGER_TIME: Duration = Duration::from_secs(10);
/// How much it may send: the largest packet.
const LINGER_BYTES: usize = 1 << 30;
/// Reads of a turn.
const LINGER_READS_PER_TURN: usize = 64;
/// Seconds between two messages that there is no place.
const TOLD_EVERY: u64 = 10;
/// An output buffer larger than this is not kept by a worker.
const OUTPUT_KEPT_MAX: usize = 256 * 1024;

/// State that all connections of a listener share.
pub(crate) struct Server {
    pub(crate) sessions: Arc<dyn SessionFactory>,
    /// Of connections that ask for it from now on.
    pub(crate) tls: ArcSwapOption<ServerConfig>,
    pub(crate) tls_status: Arc<TlsStatus>,
    pub(crate) version: String,
    pub(crate) connections: AtomicUsize,
    /// Those of them that came through the administrative address: `max_connections` is not for them.
    administrative: AtomicUsize,
    /// When the log was told that there is no place, in seconds.
    told_full: AtomicU64,
    /// Connections that have not logged in.
    pub(crate) half_open: AtomicUsize,
    pub(crate) next_id: AtomicU64,
    /// Weights of the connections that run many commands now, including those with their own threads.
    pub(crate) busy: AtomicUsize,
    /// Those of them that often wait for the log.
    pub(crate) committing: AtomicUsize,
    /// Connections release their own threads: too many have one, or the server stops.
    pub(crate) recall: AtomicBool,
}

impl Server {
    pub(crate) fn new(
        sessions: Arc<dyn SessionFactory>,
        tls: Option<Arc<ServerConfig>>,
        tls_status: Arc<TlsStatus>,
    ) -> Server {
        let version = sessions.server_version();
        Server {
            sessions,
            tls: ArcSwapOption::new(tls),
            tls_status,
            version,
            connections: AtomicUsize::new(0),
            administrative: AtomicUsize::new(0),
            told_full: AtomicU64::new(0),
            half_open: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            busy: AtomicUsize::new(0),
            committing: AtomicUsize::new(0),
            recall: AtomicBool::new(false),
        }
    }
}

impl Server {
    /// How many may come in. One place more than there are is for an administrator, whom only the log-in tells from others.
    fn places(&self) -> usize {
        (self.sessions.global_integer("max_connections") as usize).saturating_add(1)
    }

    /// Connections that take one of the places.
    fn taken(&self) -> usize {
        let administrative = self.administrative.load(Ordering::Relaxed);
        self.connections.load(Ordering::Relaxed).saturating_sub(administrative)
    }

    /// Tells the log that a client was refused; not of every one.
    pub(crate) fn tell_full(&self) {
        let now = monotonic().as_secs().max(1);
        let before = self.told_full.load(Ordering::Relaxed);
        // Only the acceptor's thread comes here.
        if before == 0 || now >= before + TOLD_EVERY {
            self.told_full.store(now, Ordering::Relaxed);
            let max = self.places() - 1;
            tracing::warn!(
                "mysql: Too many connections: max_connections = {max}, and one for an administrator, are open"
            );
        }
    }

    /// Whether one more connection is within the limit, or can take the place of one that has not logged in.
    pub(crate) fn has_room(&self) -> bool {
        self.taken() < self.places() || self.half_open.load(Ordering::Relaxed) > 0
    }

    /// How many connections that have not logged in must be closed.
    pub(crate) fn half_open_surplus(&self) -> usize {
        let max = self.places();
        let half_open = self.half_open.load(Ordering::Relaxed);
        let over = self.taken().saturating_sub(max);
        let too_many = half_open.saturating_sub((max / 4).max(HALF_OPEN_MIN));
        // The newest one, for which they make room.
        too_many.max(over).min(half_open.saturating_sub(1))
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The greeting is to be sent.
    Fresh,
    /// Waiting for the log-in (before or after TLS was asked for).
    Login,
    /// Inside the exchange of an authentication method.
    Exchange,
    /// The answer to the log-in is known and held back.
    Delayed,
    /// Waiting for commands.
    Ready,
    /// A reply waits for a commit to become durable.
    Parked,
    /// The client was refused, and its input is read to the end so that it can read the error: a socket closed with unread bytes discards
    /// the data sent last.
    Lingering,
    /// Over.
    Closed,
}

/// Why the reactor wants a connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// Too long without a command.
    Idle,
    /// Too long without a command in a transaction; the variable that says so.
    IdleTransaction(&'static str),
    /// Too slow with log-in or packet.
    Slow,
    /// KILL.
    Killed,
    /// The server stops.
    Shutdown,
}

/// Buffers of a worker thread, lent to the connection it drives.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) input: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) types: Vec<DataType>,
    pub(crate) values: Vec<Value>,
    pub(crate) metadata: MetadataCache,
}

/// The protocol's state of a prepared statement.
#[derive(Default)]
pub(crate) struct BoundStatement {
    /// Types as last sent.
    pub(crate) types: Vec<ParameterType>,
    /// Parameters sent in pieces.
    pub(crate) long_data: Vec<(u16, Vec<u8>)>,
    /// A piece was refused: the next execution fails with this.
    pub(crate) long_data_error: Option<Error>,
    /// Column types of the open cursor.
    pub(crate) cursor: Vec<DataType>,
}

/// Prepared statements by id: looked up with every execution, so not with the standard library's hash.
pub(crate) type BoundStatements = HashMap<u32, BoundStatement, foldhash::fast::RandomState>;

/// A reply that waits for commits.
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) commits: Vec<CommitHandle>,
    pub(crate) close_after: bool,
}

/// Settings of the session that the protocol reads between commands.
#[derive(Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) idle: Duration,
    /// While a transaction is open, with the variable that says so.
    pub(crate) transaction: Option<(&'static str, Duration)>,
    pub(crate) read: Duration,
    pub(crate) write: Duration,
}

/// One client.
pub(crate) struct Connection {
    pub(crate) server: Arc<Server>,
    pub(crate) id: u64,
    pub(crate) kind: ConnectionKind,
    /// Came through the administrative address.
    pub(crate) is_administrative: bool,
    pub(crate) transport: Transport,
    pub(crate) input: InputBuffer,
    /// Number of the next frame in either direction.
    pub(crate) sequence: u8,
    pub(crate) capabilities: Capabilities,
    pub(crate) nonce: [u8; NONCE_BYTES],
    pub(crate) phase: Phase,
    pub(crate) login: Option<Box<Login>>,
    pub(crate) session: Option<Box<dyn SessionHandle>>,
    pub(crate) cancel: CancelToken,
    pub(crate) statements: BoundStatements,
    pub(crate) held: Option<Box<Held>>,
    pub(crate) max_packet: usize,
    pub(crate) timeouts: Timeouts,
    /// Has run a command since `timeouts` was read.
    pub(crate) timeouts_stale: bool,
    /// Its place in a reactor, and how others wake that.
    pub(crate) wake_up: Option<WakeUp>,
    /// Parked, and no other connection has work: this turn may write the log, if that recently took no longer than this.
    pub(crate) may_lead: Option<Duration>,
    /// Parked, and has asked for the reactor to be woken when the commits need another check.
    pub(crate) awaits_wake: bool,
    pub(crate) close_request: Option<CloseReason>,
    /// Until when, and for how many bytes, it lingers.
    pub(crate) linger: Option<(Duration, usize)>,
    /// Counted among the open ones.
    is_counted: bool,
    /// Counted among those that have not logged in.
    pub(crate) half_open: bool,
    /// More work can be done at once.
    pub(crate) wants_turn: bool,
    /// Commands so far.
    pub(crate) commands: u32,
    /// Replies so far that waited for the log. Its reactor reads it while another thread has the connection.
    pub(crate) commits: Arc<AtomicU32>,
    /// Waits inside statements, mostly for pages. Written by the thread that has the connection.
    pub(crate) waits: Arc<AtomicU32>,
    /// Reactor time of the last turn, in seconds.
    pub(crate) active_at: u64,
    /// Reactor time of the accept, in seconds.
    pub(crate) accepted_at: u64,
}

impl Connection {
    pub(crate) fn new(server: Arc<Server>, stream: Stream, is_administrative: bool) -> Connection {
        let kind = stream.peer_address().map_or(ConnectionKind::Local, ConnectionKind::Tcp);
        server.connections.fetch_add(1, Ordering::Relaxed);
        server.administrative.fetch_add(usize::from(is_administrative), Ordering::Relaxed);
        server.half_open.fetch_add(1, Ordering::Relaxed);
        let cancel = CancelToken::new();
        Connection {
            id: server.next_id.fetch_add(1, Ordering::Relaxed),
            server,
            kind,
            is_administrative,
            transport: Transport::new(stream, cancel.clone()),
            input: InputBuffer::default(),
            sequence: 0,
            capabilities: Capabilities::default(),
            nonce: [0; NONCE_BYTES],
            phase: Phase::Fresh,
            login: None,
            session: None,
            cancel,
            statements: BoundStatements::default(),
            held: None,
            max_packet: LOGIN_PACKET_MAX,
            timeouts: Timeouts {
                idle: Duration::from_secs(28_800),
                transaction: None,
                read: Duration::from_secs(30),
                write: Duration::from_secs(60),
            },
            timeouts_stale: false,
            wake_up: None,
            may_lead: None,
            awaits_wake: false,
            close_request: None,
            linger: None,
            is_counted: true,
            half_open: true,
            wants_turn: false,
            commands: 0,
            commits: Arc::default(),
            waits: Arc::default(),
            active_at: 0,
            accepted_at: 0,
        }
    }

    /// One turn: as many commands as have arrived, within limits.
    pub(crate) fn run(&mut self, scratch: &mut Scratch) {
        self.wants_turn = false;
        self.input.adopt(&mut scratch.input);
        // A turn that failed half-way leaves its output, which was for another client.
        scratch.output.clear();
        let waits = sys::blocking::waits();
        self.drive(scratch);
        let waited = sys::blocking::waits().wrapping_sub(waits);
        if waited > 0 {
            let before = self.waits.load(Ordering::Relaxed);
            self.waits.store(before.wrapping_add(waited), Ordering::Relaxed);
        }
        self.input.release(&mut scratch.input);
        if scratch.output.capacity() > OUTPUT_KEPT_MAX {
            scratch.output = Vec::new();
        }
        if self.phase == Phase::Closed {
            self.end();
        }
    }

    /// Waits for commands and runs them on a thread that does nothing else, until it is interrupted or threads are recalled:
    /// without a reactor a command costs one read and one write, and the scheduler spreads busy connections.
    pub(crate) fn run_alone(&mut self, scratch: &mut Scratch) {
        if let Some(waiting) = self.transport.waiting.clone() {
            waiting.begin();
            self.transport.silent = false;
            while self.phase != Phase::Closed
                && !self.transport.silent
                && !waiting.is_recalled()
                && !self.server.recall.load(Ordering::Relaxed)
            {
                self.transport.drained = false;
                self.run(scratch);
            }
        }
        self.transport.waiting = None;
        // The reactor checks once more for input that arrived in the meantime.
        self.wants_turn = true;
    }

    fn drive(&mut self, scratch: &mut Scratch) {
        if let Some(reason) = self.close_request.take() {
            return self.close_for(reason, scratch);
        }
        if self.phase == Phase::Parked && !self.unpark() {
            return;
        }
        if self.phase == Phase::Fresh {
            self.send_greeting(scratch);
        }
        if self.phase == Phase::Lingering {
            return self.discard_input();
        }
        if self.phase == Phase::Delayed {
            self.end_delay(scratch);
        }
        for _ in 0..COMMANDS_PER_TURN {
            let is_waiting =
                matches!(self.phase, Phase::Parked | Phase::Lingering | Phase::Delayed);
            if is_waiting || self.phase == Phase::Closed {
                return;
            }
            match self.next_packet() {
                Ok(Some(packet)) => self.take_packet(packet, scratch),
                Ok(None) => return,
                Err(reply) => return self.turn_away(reply, scratch),
            }
            if self.cancel.is_connection_killed() && self.phase == Phase::Ready {
                self.phase = Phase::Closed;
            }
        }
        self.wants_turn = true;
    }

    /// A complete packet, or `None` when none has arrived yet.
    fn next_packet(&mut self) -> Result<Option<Packet>, Option<Error>> {
        let first = if self.phase == Phase::Ready { 0 } else { self.sequence };
        // The limit itself is too large, as in the reference.
        let payload_max = self.max_packet - 1;
        loop {
            match scan_packet(self.input.bytes(), first, payload_max) {
                Ok(packet) => return Ok(Some(packet)),
                Err(ScanError::TooLarge { last_sequence }) => {
                    self.sequence = last_sequence.wrapping_add(1);
                    return Err(Some(err!(NET_PACKET_TOO_LARGE)));
                }
                Err(ScanError::OutOfOrder) => return Err(Some(err!(NET_PACKETS_OUT_OF_ORDER))),
                Err(ScanError::Incomplete { .. }) if self.transport.drained => return Ok(None),
                Err(ScanError::Incomplete { .. }) => match self.transport.fill(&mut self.input) {
                    Ok(Fill::Progress) => {}
                    Ok(Fill::Drained) => return Ok(None),
                    Ok(Fill::Closed) | Err(_) => return Err(None),
                },
            }
        }
    }

    /// Handles the packet at the front of the input.
    fn take_packet(&mut self, packet: Packet, scratch: &mut Scratch) {
        let mut input = std::mem::take(&mut self.input);
        // Pipelined input stays in the connection: a command may read on (LOAD DATA LOCAL).
        let tail = input.split_tail(packet.frame_bytes);
        if !tail.is_empty() {
            self.input.append(&tail);
        }
        self.sequence = packet.last_sequence.wrapping_add(1);
        let payload = join_parts(input.bytes_mut(), packet);
        match self.phase {
            Phase::Login => self.take_login(payload, scratch),
            Phase::Exchange => self.take_exchange(payload, scratch),
            Phase::Ready => self.take_command(payload, scratch),
            Phase::Fresh | Phase::Delayed | Phase::Parked | Phase::Lingering | Phase::Closed => {}
        }
        input.consume(packet.frame_bytes);
        if self.input.is_empty() {
            self.input = input;
        }
    }

    /// Sends a reply, if any, and closes.
    fn fail(&mut self, reply: Option<Error>, scratch: &mut Scratch) {
        if let Some(error) = reply {
            scratch.output.clear();
            self.put_error(&error, &mut scratch.output);
            // The connection ends whether or not this arrives.
            let _ = self.transport.send(&scratch.output, Duration::ZERO);
        }
        self.phase = Phase::Closed;
    }

    /// Sends a reply, if any, and ends the session. A client that has logged in may finish sending in the meantime.
    fn turn_away(&mut self, reply: Option<Error>, scratch: &mut Scratch) {
        let lingers = self.phase == Phase::Ready && reply.is_some();
        self.fail(reply, scratch);
        if lingers {
            self.end_session();
            self.transport.finish_sending();
            self.linger = Some((monotonic() + LINGER_TIME, LINGER_BYTES));
            self.phase = Phase::Lingering;
            self.wants_turn = true;
            // It needs no separate thread for that.
            self.transport.silent = true;
        }
    }

    /// Discards the input of a refused client.
    fn discard_input(&mut self) {
        let Some((_, bytes_left)) = &mut self.linger else {
            self.phase = Phase::Closed;
            return;
        };
        for _ in 0..LINGER_READS_PER_TURN {
            match self.transport.discard(self.input.space()) {
                Ok(len) if len > 0 && len <= *bytes_left => *bytes_left -= len,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Ok(_) | Err(_) => {
                    self.phase = Phase::Closed;
                    return;
                }
            }
        }
        self.wants_turn = true;
    }

    fn close_for(&mut self, reason: CloseReason, scratch: &mut Scratch) {
        let ready = self.phase == Phase::Ready;
        self.sequence = 0;
        let reply = match reason {
            CloseReason::Idle if ready => Some(err!(CLIENT_INTERACTION_TIMEOUT)),
            CloseReason::IdleTransaction(variable) => {
                tracing::info!(
                    connection = self.id,
                    variable,
                    "an idle transaction is rolled back"
                );
                // As the answer to the next command, which is how every client reads it.
                self.sequence = 1;
                let text = format!(
                    "The client was disconnected by the server because of inactivity in a transaction. See {variable}."
                );
                Some(Error::new(ErrorCode::CLIENT_INTERACTION_TIMEOUT, text))
            }
            CloseReason::Shutdown if ready => Some(err!(SERVER_SHUTDOWN)),
            CloseReason::Idle | CloseReason::Shutdown => None,
            CloseReason::Slow | CloseReason::Killed => None,
        };
        self.fail(reply, scratch);
    }

    /// Appends an ERR packet.
    pub(crate) fn put_error(&mut self, error: &Error, out: &mut Vec<u8>) {
        let start = begin_packet(out);
        ErrPacket::of(error).encode(out, self.capabilities);
        finish_packet(out, start, &mut self.sequence);
    }

    /// Sends the worker's output buffer; a failure closes the connection.
    pub(crate) fn send_output(&mut self, scratch: &mut Scratch) {
        if self.transport.send(&scratch.output, self.timeouts.write).is_err() {
            self.phase = Phase::Closed;
        }
        scratch.output.clear();
    }

    /// Holds `scratch.output` back until `commits` are durable.
    pub(crate) fn park(&mut self, commits: Vec<CommitHandle>, close: bool, scratch: &mut Scratch) {
        // One thread writes it at a time.
        self.commits.store(self.commits.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        if self.transport.waiting.is_some() {
            return self.wait_and_send(&commits, close, scratch);
        }
        let bytes = scratch.output.clone();
        scratch.output.clear();
        self.held = Some(Box::new(Held { bytes, commits, close_after: close }));
        self.phase = Phase::Parked;
        // Goes out at once if the commit became durable in the meantime; otherwise the reactor handles it.
        self.unpark();
    }

    /// On its own thread: it has no other work while it waits.
    fn wait_and_send(&mut self, commits: &[CommitHandle], close: bool, scratch: &mut Scratch) {
        // The last one first: the log then has the earlier ones as well.
        match commits.iter().rev().try_for_each(CommitHandle::wait) {
            Ok(()) => self.send_output(scratch),
            // The log failed: the client must not be told that its commit succeeded.
            Err(_) => {
                scratch.output.clear();
                self.phase = Phase::Closed;
            }
        }
        if close {
            self.phase = Phase::Closed;
        }
    }

    /// Whether a parked connection's reply can go out.
    pub(crate) fn is_settled(&self) -> bool {
        let held = self.held.as_ref();
        held.is_none_or(|held| held.commits.iter().all(CommitHandle::is_durable))
    }

    /// Sends the held reply if its commits are durable, or can be made so now. True when it was sent.
    fn unpark(&mut self) -> bool {
        let may_lead = self.may_lead.take();
        let Some(mut held) = self.held.take() else { return true };
        while let Some(commit) = held.commits.last() {
            match self.await_commit(commit, may_lead) {
                Ok(true) => held.commits.pop(),
                Ok(false) => {
                    self.held = Some(held);
                    return false;
                }
                Err(_) => {
                    // The log failed: the client must not be told that its commit succeeded.
                    self.phase = Phase::Closed;
                    return true;
                }
            };
        }
        let sent = self.transport.send(&held.bytes, self.timeouts.write);
        self.phase = if sent.is_err() || held.close_after { Phase::Closed } else { Phase::Ready };
        true
    }

    /// Whether the commit is durable. Waits for it on the connection's own thread. Elsewhere writes the log itself if that recently took at
    /// most `may_lead`, and otherwise arranges a wake-up; without `may_lead` only checks.
    fn await_commit(
        &mut self,
        commit: &CommitHandle,
        may_lead: Option<Duration>,
    ) -> EngineResult<bool> {
        let CommitHandle::Pending(wait) = commit else { return Ok(true) };
        if wait.is_durable() {
            return Ok(true);
        }
        if self.transport.waiting.is_some() {
            // It parked in the reactor, and has its own thread now.
            return wait.wait().map(|()| true);
        }
        let (Some(patience), Some(wake_up)) = (may_lead, self.wake_up.clone()) else {
            return Ok(false);
        };
        let settled = wait.lead(patience, Box::new(move || wake_up.wake()))?;
        self.awaits_wake = !settled;
        Ok(settled)
    }

    /// Has the reactor woken once the commits of this parked connection are durable, and with them all earlier commits. False when
    /// there is nothing to wait for.
    pub(crate) fn ask_to_be_woken(&self) -> bool {
        let (Some(held), Some(wake_up)) = (&self.held, &self.wake_up) else { return false };
        let Some(CommitHandle::Pending(wait)) = held.commits.last() else { return false };
        let wake_up = wake_up.clone();
        wait.notify(Box::new(move || wake_up.wake()));
        true
    }

    /// Reads session settings that bound waiting.
    pub(crate) fn refresh_timeouts(&mut self) {
        let Some(session) = &self.session else { return };
        let seconds = |name| Duration::from_secs(session.integer_variable(name).max(1));
        self.timeouts = Timeouts {
            idle: seconds("wait_timeout"),
            transaction: session.idle_transaction_limit(),
            read: seconds("net_read_timeout"),
            write: seconds("net_write_timeout"),
        };
        self.timeouts_stale = false;
    }

    /// Whether the connection has exceeded a limit at reactor time `now`.
    pub(crate) fn overdue(&mut self, now: u64, connect_timeout: u64) -> Option<CloseReason> {
        if self.cancel.is_connection_killed() {
            return Some(CloseReason::Killed);
        }
        if let Some((deadline, _)) = self.linger {
            return (monotonic() >= deadline).then_some(CloseReason::Slow);
        }
        match self.phase {
            Phase::Fresh | Phase::Login | Phase::Exchange if self.session.is_none() => {
                (now - self.accepted_at > connect_timeout).then_some(CloseReason::Slow)
            }
            Phase::Ready | Phase::Exchange => {
                if self.timeouts_stale {
                    self.refresh_timeouts();
                }
                let silent = Duration::from_secs(now - self.active_at);
                if !self.input.is_empty() && silent > self.timeouts.read {
                    return Some(CloseReason::Slow);
                }
                if let Some((variable, limit)) = self.timeouts.transaction
                    && silent > limit
                {
                    return Some(CloseReason::IdleTransaction(variable));
                }
                (silent > self.timeouts.idle).then_some(CloseReason::Idle)
            }
            Phase::Fresh
            | Phase::Login
            | Phase::Delayed
            | Phase::Parked
            | Phase::Lingering
            | Phase::Closed => None,
        }
    }

    /// Ends a connection outside of its turn, or after a turn that panicked.
    pub(crate) fn abort(&mut self) {
        self.phase = Phase::Closed;
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.end()));
        if ended.is_err() {
            tracing::error!("connection {}: the session panicked again while it ended", self.id);
        }
    }

    /// Ends the session (with a rollback) and the socket.
    fn end(&mut self) {
        if self.session.is_none() {
            // Before the client learns of it: the next client must find the place released once, not twice.
            self.leave();
        }
        self.transport.close();
        self.end_session();
    }

    /// Releases its place among the connections.
    fn leave(&mut self) {
        if std::mem::take(&mut self.half_open) {
            self.server.half_open.fetch_sub(1, Ordering::Relaxed);
        }
        if std::mem::take(&mut self.is_counted) {
            self.server.connections.fetch_sub(1, Ordering::Relaxed);
            let administrative = usize::from(self.is_administrative);
            self.server.administrative.fetch_sub(administrative, Ordering::Relaxed);
        }
    }

    fn end_session(&mut self) {
        if let Some(session) = self.session.take() {
            sys::blocking::blocking(|| drop(session));
        } else if self.login.is_some() {
            self.server.sessions.count_status("Aborted_connects", 1);
        }
        self.statements = BoundStatements::default();
        self.input = InputBuffer::default();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
        let sessions = &self.server.sessions;
        let (received, sent) = self.transport.traffic.counts();
        sessions.count_status("Bytes_received", received);
        sessions.count_status("Bytes_sent", sent);
    }
}
