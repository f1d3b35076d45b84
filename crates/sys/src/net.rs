//! Sockets: listeners, streams, readiness by epoll, and bounded waits on one socket.
//!
//! Knows no protocol. Registration is edge-triggered and for reading only: a reader has to read until a short read, and a
//! writer that finds its socket full waits with [`Stream::wait_writable`]. Sockets are left in blocking mode and every call
//! says whether it may wait, so that one socket can be read by a reactor now and by a waiting thread later.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::interrupt::Waiting;
pub use crate::readiness::Ready;
use crate::simulation::network::Address;
use crate::simulation::{self, VirtualListener, VirtualPoller, VirtualSocket, VirtualWaker};
use crate::waits::{self, Wait};

/// Events taken from the kernel at once.
const EVENTS_PER_WAIT: usize = 256;
/// Connections that wait to be accepted; the kernel has its own limit.
const BACKLOG: i32 = 4096;

/// A socket that accepts connections.
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// UNIX.
    Unix(UnixListener),
    /// On a simulated machine.
    Virtual(VirtualListener),
}

impl Listener {
    /// Binds a TCP socket.
    ///
    /// # Errors
    /// The address is in use or not ours.
    pub fn tcp(address: SocketAddr) -> io::Result<Listener> {
        if let Some(here) = simulation::current() {
            return VirtualListener::tcp(&here, address).map(Listener::Virtual);
        }
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG)?;
        Ok(Listener::Tcp(listener))
    }

    /// Binds a TCP socket whose address may overlap those of `others`, this process's own listeners, as all addresses and one of them do. Afterwards
    /// no other process gets the address by chance; one of the same user that asks for sharing can.
    ///
    /// # Errors
    /// The address is in use by another process, or not ours.
    pub fn tcp_beside(address: SocketAddr, others: &[&Listener]) -> io::Result<Listener> {
        use rustix::net::{self, AddressFamily, SocketFlags, SocketType, sockopt};
        if simulation::current().is_some() {
            return Listener::tcp(address);
        }
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        // Both sides have to allow it while the new one binds and begins to listen.
        let share = |is_shared: bool| -> io::Result<()> {
            for other in others {
                if let Listener::Tcp(other) = other {
                    sockopt::set_socket_reuseport(other, is_shared)?;
                }
            }
            Ok(sockopt::set_socket_reuseport(&socket, is_shared)?)
        };
        let bound = share(true)
            .and_then(|()| Ok(net::bind(&socket, &address)?))
            .and_then(|()| Ok(net::listen(&socket, BACKLOG)?));
        share(false)?;
        bound?;
        Ok(Listener::Tcp(TcpListener::from(socket)))
    }

    /// Binds a UNIX socket; a socket file without a listener is replaced.
    ///
    /// # Errors
    /// Another process answers there, or the path cannot be made.
    pub fn unix(path: &Path) -> io::Result<Listener> {
        if let Some(here) = simulation::current() {
            return VirtualListener::unix(&here, path).map(Listener::Virtual);
        }
        if path.exists() {
            if UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        listener.set_nonblocking(true)?;
        rustix::net::listen(&listener, BACKLOG)?;
        // Everyone may connect; authentication decides.
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        std::fs::set_permissions(path, mode)?;
        Ok(Listener::Unix(listener))
    }

    /// The bound TCP address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(listener) => listener.local_addr().ok(),
            Listener::Unix(_) => None,
            Listener::Virtual(listener) => listener.address(),
        }
    }

    /// The next waiting connection, or `None`.
    ///
    /// # Errors
    /// Out of descriptors, and the like; the listener stays usable.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        let accepted = match self {
            Listener::Tcp(listener) => listener.accept().map(|(stream, _)| Stream::Tcp(stream)),
            Listener::Unix(listener) => listener.accept().map(|(stream, _)| Stream::Unix(stream)),
            Listener::Virtual(listener) => return Ok(listener.accept().map(Stream::Virtual)),
        };
        match accepted {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if is_transient(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

/// Credentials of the process at the other end of a UNIX socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerCredentials {
    /// User id.
    pub uid: u32,
    /// Name of that user, if it has one.
    pub user: Option<String>,
}

/// A connected socket.
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// UNIX.
    Unix(UnixStream),
    /// On a simulated machine.
    Virtual(VirtualSocket),
}

/// The addresses of a host, which is a name or an address, with this port. A simulated machine knows addresses only.
///
/// # Errors
/// The name is not known.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if simulation::current().is_some() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(std::net::ToSocketAddrs::to_socket_addrs(&(host, port))?.collect())
}

impl Stream {
    /// Connects and waits for it.
    ///
    /// # Errors
    /// Refused, unreachable, or no answer in `limit`.
    pub fn connect_tcp(address: SocketAddr, limit: Duration) -> io::Result<Stream> {
        if let Some(here) = simulation::current() {
            return VirtualSocket::connect(&here, &Address::Tcp(address)).map(Stream::Virtual);
        }
        TcpStream::connect_timeout(&address, limit).map(Stream::Tcp)
    }

    /// Connects to a UNIX socket.
    ///
    /// # Errors
    /// If no listener exists.
    pub fn connect_unix(path: &Path) -> io::Result<Stream> {
        if let Some(here) = simulation::current() {
            let address = Address::Unix(path.to_owned());
            return VirtualSocket::connect(&here, &address).map(Stream::Virtual);
        }
        UnixStream::connect(path).map(Stream::Unix)
    }

    /// Two sockets connected with each other, for tests.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn pair() -> io::Result<(Stream, Stream)> {
        if let Some(here) = simulation::current() {
            let (a, b) = VirtualSocket::pair(&here);
            return Ok((Stream::Virtual(a), Stream::Virtual(b)));
        }
        let (a, b) = UnixStream::pair()?;
        Ok((Stream::Unix(a), Stream::Unix(b)))
    }

    /// The process's number of the socket; -1 on a simulated machine.
    pub fn descriptor(&self) -> i32 {
        self.real().map_or(-1, |fd| fd.as_raw_fd())
    }

    /// Address of the peer; `None` for UNIX sockets.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
            Stream::Virtual(socket) => socket.peer(),
        }
    }

    /// The peer of a UNIX socket.
    pub fn peer_credentials(&self) -> Option<PeerCredentials> {
        match self {
            Stream::Tcp(_) => None,
            Stream::Virtual(socket) if socket.peer().is_some() => None,
            Stream::Virtual(_) => {
                let user = Some(crate::process::SIMULATED.to_owned());
                Some(PeerCredentials { uid: crate::process::SIMULATED_UID, user })
            }
            Stream::Unix(stream) => {
                let credentials = peer_of(stream.as_fd())?;
                let uid = credentials.uid;
                Some(PeerCredentials { uid, user: user_name(uid) })
            }
        }
    }

    /// Small packets leave at once, and dead peers are noticed in the end.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn set_options(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => {
                stream.set_nodelay(true)?;
                rustix::net::sockopt::set_socket_keepalive(stream.as_fd(), true)?;
                Ok(())
            }
            Stream::Unix(_) | Stream::Virtual(_) => Ok(()),
        }
    }

    /// Reads the available bytes. `WouldBlock` if there are none; 0 if the peer closed.
    ///
    /// # Errors
    /// As for any socket.
    #[inline]
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let fd = match self.real() {
            Ok(fd) => fd,
            Err(socket) => return socket.read(buf),
        };
        loop {
            match rustix::net::recv(fd, &mut *buf, RecvFlags::DONTWAIT) {
                Ok((_, len)) => return Ok(len),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// As [`Stream::read`], but waits for the first byte until `waiting` is interrupted; `Interrupted` then.
    ///
    /// # Errors
    /// As for any socket.
    #[inline]
    pub fn read_waiting(&mut self, buf: &mut [u8], waiting: &Waiting) -> io::Result<usize> {
        let fd = match self.real() {
            Ok(fd) => fd,
            Err(socket) => return waiting.wait(|| socket.read_waiting(buf)),
        };
        waiting.wait(|| match rustix::net::recv(fd, &mut *buf, RecvFlags::empty()) {
            Ok((_, len)) => Ok(len),
            Err(error) => Err(error.into()),
        })
    }

    /// Writes as much as fits. `WouldBlock` when nothing does.
    ///
    /// # Errors
    /// As for any socket.
    #[inline]
    pub fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let fd = match self.real() {
            Ok(fd) => fd,
            Err(socket) => return socket.write(buf),
        };
        loop {
            match rustix::net::send(fd, buf, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                other => return Ok(other?),
            }
        }
    }

    /// Closes both directions; a peer or thread that waits on the socket notices.
    pub fn shutdown(&self) {
        // Fails only when the peer was faster.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Virtual(socket) => {
                socket.shutdown();
                Ok(())
            }
        };
    }

    /// Closes the way out: the peer reads to the end, and may still send.
    pub fn shutdown_sending(&self) {
        // Fails only when the peer was faster.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Write),
            Stream::Virtual(socket) => {
                socket.shutdown_sending();
                Ok(())
            }
        };
    }

    /// Waits until the socket takes bytes. False when `limit` has passed.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn wait_writable(&self, limit: Duration) -> io::Result<bool> {
        let _waiting = waits::enter(Wait::Network);
        match self.real() {
            Ok(fd) => wait(fd, PollFlags::OUT, limit),
            Err(socket) => socket.wait_writable(limit),
        }
    }

    /// Waits until bytes can be read or the peer closed. False when `limit` has passed.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn wait_readable(&self, limit: Duration) -> io::Result<bool> {
        let _waiting = waits::enter(Wait::Network);
        match self.real() {
            Ok(fd) => wait(fd, PollFlags::IN, limit),
            Err(socket) => socket.wait_readable(limit),
        }
    }

    /// The descriptor, or the socket of a simulated machine.
    #[inline]
    fn real(&self) -> Result<BorrowedFd<'_>, &VirtualSocket> {
        match self {
            Stream::Tcp(stream) => Ok(stream.as_fd()),
            Stream::Unix(stream) => Ok(stream.as_fd()),
            Stream::Virtual(socket) => Err(socket),
        }
    }
}

fn wait(fd: BorrowedFd<'_>, flags: PollFlags, limit: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds = [PollFd::from_borrowed_fd(fd, flags)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(rustix::io::Errno::INTR) if !left.is_zero() => {}
            Err(rustix::io::Errno::INTR) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

/// The process at the other end of a UNIX socket. Not by rustix: a peer outside of this process's namespace has the process id 0, which is an error there.
fn peer_of(socket: BorrowedFd<'_>) -> Option<libc::ucred> {
    let mut about = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both pointers are to live objects, and the call writes at most `size` bytes to the first.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            std::ptr::from_mut(&mut about).cast(),
            &mut size,
        )
    };
    (failed == 0 && size as usize == size_of::<libc::ucred>()).then_some(about)
}

/// Name of the operating system's user `uid`.
pub(crate) fn user_name(uid: u32) -> Option<String> {
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
    let mut buf = vec![0; 4096];
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live objects of the sizes given; the call writes at most `buf.len()` bytes.
    let failed = unsafe {
        libc::getpwuid_r(uid, entry.as_mut_ptr(), buf.as_mut_ptr(), buf.len(), &mut found)
    };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: success with a non-null result means that the entry is filled in and its name is a NUL-terminated
    // string inside `buf`, which is alive.
    let name = unsafe { std::ffi::CStr::from_ptr((*entry.as_ptr()).pw_name) };
    name.to_str().ok().map(str::to_owned)
}

/// Waits for many sockets.
pub struct Poller {
    backend: Backend,
    ready: Vec<Ready>,
}

enum Backend {
    Epoll(OwnedFd),
    Virtual(VirtualPoller),
}

/// The events reported for a stream besides its close.
const READING: EventFlags = EventFlags::IN.union(EventFlags::RDHUP);

impl Poller {
    /// A poller without registrations.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new() -> io::Result<Poller> {
        let backend = match simulation::current() {
            Some(here) => Backend::Virtual(VirtualPoller::new(&here)),
            None => Backend::Epoll(epoll::create(epoll::CreateFlags::CLOEXEC)?),
        };
        Ok(Poller { backend, ready: Vec::with_capacity(EVENTS_PER_WAIT) })
    }

    /// A waker that reports its wake-ups as `token`.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn waker(&self, token: usize) -> io::Result<Waker> {
        let epoll = match &self.backend {
            Backend::Epoll(epoll) => epoll,
            Backend::Virtual(poller) => return Ok(Waker(Wake::Virtual(poller.waker(token)))),
        };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = rustix::event::eventfd(0, flags)?;
        add(epoll, event.as_fd(), token, EventFlags::IN)?;
        Ok(Waker(Wake::Event(Arc::new(event))))
    }

    /// Reports readability of `stream` as `token` until the stream is dropped.
    ///
    /// # Errors
    /// Out of kernel memory.
    pub fn add_stream(&self, stream: &Stream, token: usize) -> io::Result<()> {
        match (&self.backend, stream.real()) {
            (Backend::Epoll(epoll), Ok(fd)) => add(epoll, fd, token, READING),
            (Backend::Virtual(poller), Err(socket)) => {
                poller.watch(socket, token, true);
                Ok(())
            }
            (Backend::Epoll(_), Err(_)) | (Backend::Virtual(_), Ok(_)) => Err(strangers()),
        }
    }

    /// Reports of a registered stream only that its peer closed: another thread waits for its bytes.
    ///
    /// # Errors
    /// Not registered.
    pub fn leave_reading(&self, stream: &Stream, token: usize) -> io::Result<()> {
        self.modify(stream, token, EventFlags::RDHUP)
    }

    /// Reports readability again. Bytes that arrived in the meantime are reported at once.
    ///
    /// # Errors
    /// Not registered.
    pub fn resume_reading(&self, stream: &Stream, token: usize) -> io::Result<()> {
        self.modify(stream, token, READING)
    }

    /// Reports waiting connections of `listener` as `token`.
    ///
    /// # Errors
    /// Out of kernel memory.
    pub fn add_listener(&self, listener: &Listener, token: usize) -> io::Result<()> {
        match (&self.backend, listener) {
            (Backend::Epoll(epoll), Listener::Tcp(listener)) => {
                add(epoll, listener.as_fd(), token, EventFlags::IN)
            }
            (Backend::Epoll(epoll), Listener::Unix(listener)) => {
                add(epoll, listener.as_fd(), token, EventFlags::IN)
            }
            (Backend::Virtual(poller), Listener::Virtual(listener)) => {
                poller.watch_listener(listener, token);
                Ok(())
            }
            (Backend::Epoll(_), Listener::Virtual(_)) => Err(strangers()),
            (Backend::Virtual(_), Listener::Tcp(_) | Listener::Unix(_)) => Err(strangers()),
        }
    }

    fn modify(&self, stream: &Stream, token: usize, flags: EventFlags) -> io::Result<()> {
        match (&self.backend, stream.real()) {
            (Backend::Epoll(epoll), Ok(fd)) => {
                let data = EventData::new_u64(token as u64);
                Ok(epoll::modify(epoll, fd, data, flags | EventFlags::ET)?)
            }
            (Backend::Virtual(poller), Err(socket)) => {
                poller.watch(socket, token, flags.contains(EventFlags::IN));
                Ok(())
            }
            (Backend::Epoll(_), Err(_)) | (Backend::Virtual(_), Ok(_)) => Err(strangers()),
        }
    }

    /// Waits for events, at most `limit`. A signal ends the wait early.
    ///
    /// # Errors
    /// The poller is broken.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        self.ready.clear();
        let epoll = match &self.backend {
            Backend::Epoll(epoll) => epoll,
            Backend::Virtual(poller) => {
                return waits::idle(|| poller.wait(limit, &mut self.ready));
            }
        };
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs() as i64,
            tv_nsec: i64::from(limit.subsec_nanos()),
        });
        let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS_PER_WAIT];
        let events = match waits::idle(|| epoll::wait(epoll, &mut events, limit.as_ref())) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let closed = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        self.ready.extend(events.iter().map(|event| {
            // By value: the fields of a packed struct cannot be borrowed.
            let (flags, data) = (event.flags, event.data);
            Ready { token: data.u64() as usize, closed: flags.intersects(closed) }
        }));
        Ok(())
    }

    /// The events of the last wait.
    pub fn ready(&self) -> impl Iterator<Item = Ready> + '_ {
        self.ready.iter().copied()
    }
}

fn add(epoll: &OwnedFd, fd: BorrowedFd<'_>, token: usize, flags: EventFlags) -> io::Result<()> {
    Ok(epoll::add(epoll, fd, EventData::new_u64(token as u64), flags | EventFlags::ET)?)
}

/// A poller of one machine was given a socket of another.
fn strangers() -> io::Error {
    io::Error::other("a poller and its sockets belong to one machine")
}

/// Wakes a poller from another thread. Cloning shares.
#[derive(Clone)]
pub struct Waker(Wake);

#[derive(Clone)]
enum Wake {
    Event(Arc<OwnedFd>),
    Virtual(VirtualWaker),
}

impl Waker {
    /// Makes the poller's current or next wait return.
    pub fn wake(&self) {
        let event = match &self.0 {
            Wake::Event(event) => event,
            Wake::Virtual(waker) => return waker.wake(),
        };
        // Every write is a separate event, so the counter is read only when it is full: then the poller is awake anyway.
        if rustix::io::write(event, &1_u64.to_ne_bytes()).is_err() {
            let _ = rustix::io::read(event, &mut [0; 8]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Option<Duration> = Some(Duration::ZERO);

    fn tokens(poller: &mut Poller) -> Vec<(usize, bool)> {
        poller.wait(NOW).expect("a poller");
        poller.ready().map(|event| (event.token, event.closed)).collect()
    }

    #[test]
    fn whoever_left_reading_hears_of_bytes_when_it_resumes() {
        let mut poller = Poller::new().expect("a poller");
        let (mut stream, mut peer) = Stream::pair().expect("a pair");
        poller.add_stream(&stream, 7).expect("registered");
        assert_eq!(tokens(&mut poller), []);
        peer.write(b"a").expect("room");
        assert_eq!(tokens(&mut poller), [(7, false)]);
        assert_eq!(tokens(&mut poller), [], "edges are reported once");
        assert_eq!(stream.read(&mut [0; 8]).expect("a byte"), 1);
        poller.leave_reading(&stream, 7).expect("registered");
        peer.write(b"b").expect("room");
        assert_eq!(tokens(&mut poller), [], "another thread waits for the bytes");
        poller.resume_reading(&stream, 7).expect("registered");
        assert_eq!(tokens(&mut poller), [(7, false)]);
        poller.leave_reading(&stream, 7).expect("registered");
        drop(peer);
        assert_eq!(tokens(&mut poller), [(7, true)], "the peer's close is reported anyway");
    }

    #[test]
    fn every_wake_up_arrives() {
        let mut poller = Poller::new().expect("a poller");
        let waker = poller.waker(9).expect("a waker");
        for _ in 0..3 {
            waker.wake();
            assert_eq!(tokens(&mut poller), [(9, false)]);
            assert_eq!(tokens(&mut poller), []);
        }
    }
}
