//! The network of a simulated machine: listeners, connections of two pipes each, and pollers that report them as epoll does, edge-triggered.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::scheduler::{Core, Here, Key, State, Woken};
use super::trace::{Event, hash};
use crate::readiness::Ready;

/// Bytes that a pipe holds before its writer has to wait.
const PIPE_BYTES: usize = 256 * 1024;
/// The least travel time of a packet.
const TRAVEL: Duration = Duration::from_micros(30);
/// First port assigned when none is requested.
const FIRST_FREE_PORT: u16 = 40_000;

/// Where a listener can be found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Something that reaches its receiver after a while.
pub(crate) enum Arrival {
    Bytes { pipe: u64, bytes: Vec<u8> },
    End { pipe: u64 },
}

/// The pollers that watch a pipe or a listener.
#[derive(Clone, Copy)]
struct Watch {
    poller: u64,
    token: usize,
    /// Of bytes, and not only of the end.
    reading: bool,
}

#[derive(Default)]
struct Pipe {
    arrived: VecDeque<u8>,
    /// Bytes that travel.
    under_way: usize,
    /// The arrival time of the last packet sent; later packets do not overtake it.
    last_arrival: Duration,
    is_ended: bool,
    writer_is_gone: bool,
    reader_is_gone: bool,
    watch: Option<Watch>,
}

#[derive(Default)]
struct Listening {
    backlog: VecDeque<Connection>,
    watch: Option<Watch>,
}

#[derive(Clone)]
struct Connection {
    inbound: u64,
    outbound: u64,
    peer: Option<SocketAddr>,
}

/// All of it.
#[derive(Default)]
pub(crate) struct Network {
    listeners: BTreeMap<Address, Listening>,
    pipes: Vec<Pipe>,
    /// The two pipes of each connection that was made to a listener.
    connections: Vec<[u64; 2]>,
    pollers: Vec<Vec<Ready>>,
    ports: u16,
}

impl Network {
    fn pipe(&mut self) -> u64 {
        self.pipes.push(Pipe::default());
        self.pipes.len() as u64 - 1
    }

    fn find(&mut self, pipe: u64) -> &mut Pipe {
        &mut self.pipes[pipe as usize]
    }

    fn next_port(&mut self) -> u16 {
        self.ports += 1;
        FIRST_FREE_PORT + self.ports - 1
    }

    /// Removes a `watch`.
    fn forget(&mut self, watch: Option<Watch>) {
        if let Some(Watch { poller, token, .. }) = watch {
            self.pollers[poller as usize].retain(|ready| ready.token != token);
        }
    }
}

impl State {
    /// Tells a poller.
    fn tell(&mut self, poller: u64, token: usize, closed: bool) {
        let ready = &mut self.network.pollers[poller as usize];
        match ready.iter_mut().find(|ready| ready.token == token) {
            Some(ready) => ready.closed |= closed,
            None => ready.push(Ready { token, closed }),
        }
        self.wake_all(Key::Poller(poller));
    }

    /// Reports the state of a pipe to its waiters.
    fn tell_of(&mut self, pipe: u64) {
        self.wake_all(Key::Bytes(pipe));
        let Pipe { watch, is_ended, .. } = *self.network.find(pipe);
        if let Some(watch) = watch
            && (watch.reading || is_ended)
        {
            self.tell(watch.poller, watch.token, is_ended);
        }
    }

    pub(super) fn receive(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Bytes { pipe, bytes } => {
                let to = self.network.find(pipe);
                assert!(to.under_way >= bytes.len(), "arriving bytes were under way");
                to.under_way -= bytes.len();
                if to.reader_is_gone {
                    return;
                }
                to.arrived.extend(bytes);
                self.tell_of(pipe);
            }
            Arrival::End { pipe } => {
                self.network.find(pipe).is_ended = true;
                self.tell_of(pipe);
            }
        }
    }

    fn send(&mut self, pipe: u64, make: impl FnOnce() -> Arrival) {
        let travel = self.latency(TRAVEL * self.faults.network_slowness.max(1));
        let now = self.now();
        let to = self.network.find(pipe);
        to.last_arrival = to.last_arrival.max(now + travel);
        let at = to.last_arrival;
        self.arrive(at, make());
    }

    fn write(&mut self, pipe: u64, buf: &[u8]) -> io::Result<usize> {
        let to = self.network.find(pipe);
        if to.writer_is_gone || to.reader_is_gone {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let count = buf.len().min(PIPE_BYTES - to.arrived.len() - to.under_way);
        if count == 0 && !buf.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        to.under_way += count;
        assert!(to.arrived.len() + to.under_way <= PIPE_BYTES, "a pipe holds no more than it may");
        let bytes = buf[..count].to_vec();
        self.record(Event::Packet { pipe, length: count as u64, hash: hash(&bytes) });
        self.send(pipe, || Arrival::Bytes { pipe, bytes });
        Ok(count)
    }

    fn read(&mut self, pipe: u64, buf: &mut [u8]) -> io::Result<usize> {
        let from = self.network.find(pipe);
        if from.arrived.is_empty() {
            let is_over = from.is_ended || from.reader_is_gone;
            return if is_over { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let count = buf.len().min(from.arrived.len());
        for (to, byte) in buf.iter_mut().zip(from.arrived.drain(..count)) {
            *to = byte;
        }
        self.wake_all(Key::Room(pipe));
        Ok(count)
    }

    /// One of the connections to listeners whose ends both send.
    fn draw_connection(&mut self) -> Option<[u64; 2]> {
        let network = &self.network;
        let sends = |pipe: &u64| !network.pipes[*pipe as usize].writer_is_gone;
        let open = network.connections.iter().filter(|pipes| pipes.iter().all(sends));
        let open: Vec<[u64; 2]> = open.copied().collect();
        let at = if open.is_empty() { 0 } else { self.below(open.len() as u64) };
        open.get(at as usize).copied()
    }

    /// Ends a connection for both sides. The first packets under way may still arrive.
    pub(super) fn cut_a_connection(&mut self) -> bool {
        let Some(pipes) = self.draw_connection() else { return false };
        for cut in pipes {
            let mut arriving = self.below(3);
            let lost = self.lose_arrivals(|arrival| {
                let is_of_it = matches!(arrival, Arrival::Bytes { pipe, .. } if *pipe == cut);
                let arrives = is_of_it && arriving > 0;
                arriving -= u64::from(arrives);
                is_of_it && !arrives
            });
            let bytes = lost.iter().map(|arrival| match arrival {
                Arrival::Bytes { bytes, .. } => bytes.len(),
                Arrival::End { .. } => 0,
            });
            let bytes: usize = bytes.sum();
            self.network.find(cut).under_way -= bytes;
            self.end_writing(cut);
            self.wake_all(Key::Room(cut));
        }
        true
    }

    /// Has what is sent over a connection from now on arrive after `time` at the earliest.
    pub(super) fn stall_a_connection(&mut self, time: Duration) -> bool {
        let Some(pipes) = self.draw_connection() else { return false };
        let until = self.now() + time;
        for pipe in pipes {
            let stalled = self.network.find(pipe);
            stalled.last_arrival = stalled.last_arrival.max(until);
        }
        true
    }

    fn end_writing(&mut self, pipe: u64) {
        if !std::mem::replace(&mut self.network.find(pipe).writer_is_gone, true) {
            self.send(pipe, || Arrival::End { pipe });
        }
    }

    fn end_reading(&mut self, pipe: u64) {
        let from = self.network.find(pipe);
        from.reader_is_gone = true;
        from.arrived.clear();
        self.wake_all(Key::Room(pipe));
        self.wake_all(Key::Bytes(pipe));
    }
}

fn here() -> io::Result<Here> {
    // A socket that left its machine has no peer.
    super::current().ok_or_else(|| io::ErrorKind::NotConnected.into())
}

/// One end of a connection.
pub struct VirtualSocket {
    core: Arc<Core>,
    connection: Connection,
}

impl VirtualSocket {
    /// Connects to the listener at `address`.
    pub(crate) fn connect(here: &Here, address: &Address) -> io::Result<VirtualSocket> {
        here.pause_about(TRAVEL);
        here.with(|state| {
            if !state.network.listeners.contains_key(address) {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let (there, back) = (state.network.pipe(), state.network.pipe());
            let tcp = |port| SocketAddr::from(([127, 0, 0, 1], port));
            let (ours, theirs) = match address {
                Address::Tcp(address) => (Some(*address), Some(tcp(state.network.next_port()))),
                Address::Unix(_) => (None, None),
            };
            let accepted = Connection { inbound: there, outbound: back, peer: theirs };
            let Some(listening) = state.network.listeners.get_mut(address) else {
                return Err(io::ErrorKind::ConnectionRefused.into());
            };
            listening.backlog.push_back(accepted);
            if let Some(watch) = listening.watch {
                state.tell(watch.poller, watch.token, false);
            }
            state.network.connections.push([there, back]);
            let connection = Connection { inbound: back, outbound: there, peer: ours };
            Ok(VirtualSocket { core: here.core.clone(), connection })
        })
    }

    /// Two ends of one connection.
    pub(crate) fn pair(here: &Here) -> (VirtualSocket, VirtualSocket) {
        let (there, back) = here.with(|state| (state.network.pipe(), state.network.pipe()));
        let end = |inbound, outbound| VirtualSocket {
            core: here.core.clone(),
            connection: Connection { inbound, outbound, peer: None },
        };
        (end(back, there), end(there, back))
    }

    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.connection.peer
    }

    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.core.lock().read(self.connection.inbound, buf)
    }

    /// Waits for the first byte, or until another thread interrupts the wait.
    pub(crate) fn read_waiting(&self, buf: &mut [u8]) -> io::Result<usize> {
        let here = here()?;
        loop {
            match self.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if here.wait(Key::Bytes(self.connection.inbound), None) == Woken::Interrupted {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
    }

    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<usize> {
        self.core.lock().write(self.connection.outbound, buf)
    }

    pub(crate) fn shutdown(&self) {
        let mut state = self.core.lock();
        state.end_writing(self.connection.outbound);
        state.end_reading(self.connection.inbound);
    }

    pub(crate) fn shutdown_sending(&self) {
        self.core.lock().end_writing(self.connection.outbound);
    }

    /// Waits until bytes can be read or the peer closed. False when `limit` has passed.
    pub(crate) fn wait_readable(&self, limit: Duration) -> io::Result<bool> {
        let pipe = self.connection.inbound;
        wait_until(limit, Key::Bytes(pipe), |state| {
            let from = state.network.find(pipe);
            !from.arrived.is_empty() || from.is_ended || from.reader_is_gone
        })
    }

    /// Waits until the peer takes bytes. False when `limit` has passed.
    pub(crate) fn wait_writable(&self, limit: Duration) -> io::Result<bool> {
        let pipe = self.connection.outbound;
        wait_until(limit, Key::Room(pipe), |state| {
            let to = state.network.find(pipe);
            to.reader_is_gone || to.writer_is_gone || to.arrived.len() + to.under_way < PIPE_BYTES
        })
    }
}

/// Waits until `is_there` returns a value. A signal does not end such a wait: it continues, as the real one does.
fn wait_until(
    limit: Duration,
    key: Key,
    is_there: impl Fn(&mut State) -> bool,
) -> io::Result<bool> {
    let here = here()?;
    let until = here.now().saturating_add(limit);
    loop {
        if here.with(&is_there) {
            return Ok(true);
        }
        let left = until.saturating_sub(here.now());
        if left.is_zero() {
            return Ok(false);
        }
        here.wait(key, Some(left));
    }
}

impl Drop for VirtualSocket {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        let Connection { inbound, outbound, .. } = self.connection;
        if state.network.pipes.len() as u64 <= inbound.max(outbound) {
            // Of an earlier life of the machine.
            return;
        }
        let watch = state.network.find(inbound).watch.take();
        state.network.forget(watch);
        state.end_writing(outbound);
        state.end_reading(inbound);
    }
}

/// A listener.
pub struct VirtualListener {
    core: Arc<Core>,
    address: Address,
}

impl VirtualListener {
    pub(crate) fn tcp(here: &Here, mut address: SocketAddr) -> io::Result<VirtualListener> {
        if address.port() == 0 {
            address.set_port(here.with(|state| state.network.next_port()));
        }
        VirtualListener::bind(here, Address::Tcp(address))
    }

    pub(crate) fn unix(here: &Here, path: &Path) -> io::Result<VirtualListener> {
        VirtualListener::bind(here, Address::Unix(path.to_owned()))
    }

    fn bind(here: &Here, address: Address) -> io::Result<VirtualListener> {
        here.with(|state| {
            if state.network.listeners.contains_key(&address) {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            state.network.listeners.insert(address.clone(), Listening::default());
            Ok(VirtualListener { core: here.core.clone(), address })
        })
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match &self.address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        }
    }

    pub(crate) fn accept(&self) -> Option<VirtualSocket> {
        let mut state = self.core.lock();
        let connection = state.network.listeners.get_mut(&self.address)?.backlog.pop_front()?;
        Some(VirtualSocket { core: self.core.clone(), connection })
    }
}

impl Drop for VirtualListener {
    fn drop(&mut self) {
        let mut state = self.core.lock();
        let Some(gone) = state.network.listeners.remove(&self.address) else { return };
        state.network.forget(gone.watch);
        for connection in gone.backlog {
            state.end_writing(connection.outbound);
            state.end_reading(connection.inbound);
        }
    }
}

/// Waits for many sockets.
pub(crate) struct VirtualPoller {
    core: Arc<Core>,
    number: u64,
}

impl VirtualPoller {
    pub(crate) fn new(here: &Here) -> VirtualPoller {
        let number = here.with(|state| {
            state.network.pollers.push(Vec::new());
            state.network.pollers.len() as u64 - 1
        });
        VirtualPoller { core: here.core.clone(), number }
    }

    pub(crate) fn waker(&self, token: usize) -> VirtualWaker {
        VirtualWaker { core: self.core.clone(), poller: self.number, token }
    }

    /// Watches a socket from now on, and reports its present state at once.
    pub(crate) fn watch(&self, socket: &VirtualSocket, token: usize, reading: bool) {
        let mut state = self.core.lock();
        let pipe = socket.connection.inbound;
        let from = state.network.find(pipe);
        from.watch = Some(Watch { poller: self.number, token, reading });
        let is_ended = from.is_ended;
        if is_ended || (reading && !from.arrived.is_empty()) {
            state.tell(self.number, token, is_ended);
        }
    }

    pub(crate) fn watch_listener(&self, listener: &VirtualListener, token: usize) {
        let mut state = self.core.lock();
        let watch = Watch { poller: self.number, token, reading: true };
        let Some(listening) = state.network.listeners.get_mut(&listener.address) else { return };
        listening.watch = Some(watch);
        if !listening.backlog.is_empty() {
            state.tell(self.number, token, false);
        }
    }

    /// Waits for events and moves them to `ready`.
    pub(crate) fn wait(&self, limit: Option<Duration>, ready: &mut Vec<Ready>) -> io::Result<()> {
        let here = here()?;
        let take =
            |state: &mut State| std::mem::take(&mut state.network.pollers[self.number as usize]);
        let mut events = here.with(take);
        if events.is_empty() && limit != Some(Duration::ZERO) {
            here.wait(Key::Poller(self.number), limit);
            events = here.with(take);
        }
        ready.extend(events);
        Ok(())
    }
}

/// Wakes a poller.
#[derive(Clone)]
pub(crate) struct VirtualWaker {
    core: Arc<Core>,
    poller: u64,
    token: usize,
}

impl VirtualWaker {
    pub(crate) fn wake(&self) {
        self.core.lock().tell(self.poller, self.token, false);
    }
}
