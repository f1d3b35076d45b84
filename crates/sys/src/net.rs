//! Sockets: listeners, non-blocking streams, readiness by epoll, and bounded waits on one socket.
//!
//! Knows no protocol. Registration is edge-triggered and for reading only: a reader has to read until a
//! short read, and a writer that finds its socket full waits with [`Stream::wait_writable`].

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};
use rustix::event::{PollFd, PollFlags, Timespec};

/// Events taken from the kernel at once.
const EVENTS_PER_WAIT: usize = 256;

/// A socket that accepts connections.
pub enum Listener {
    /// TCP.
    Tcp(mio::net::TcpListener),
    /// UNIX.
    Unix(mio::net::UnixListener),
}

impl Listener {
    /// Binds a TCP socket.
    ///
    /// # Errors
    /// The address is in use or not ours.
    pub fn tcp(address: SocketAddr) -> io::Result<Listener> {
        mio::net::TcpListener::bind(address).map(Listener::Tcp)
    }

    /// Binds a UNIX socket; a socket file that nobody answers on is replaced.
    ///
    /// # Errors
    /// Another process answers there, or the path cannot be made.
    pub fn unix(path: &Path) -> io::Result<Listener> {
        if path.exists() {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::ErrorKind::AddrInUse.into());
            }
            std::fs::remove_file(path)?;
        }
        let listener = mio::net::UnixListener::bind(path)?;
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

/// A connected, non-blocking socket.
pub enum Stream {
    /// TCP.
    Tcp(mio::net::TcpStream),
    /// UNIX.
    Unix(mio::net::UnixStream),
}

impl Stream {
    /// Connects and waits for it, for tests and tools.
    ///
    /// # Errors
    /// Refused, unreachable, or no answer in `limit`.
    pub fn connect_tcp(address: SocketAddr, limit: Duration) -> io::Result<Stream> {
        let stream = std::net::TcpStream::connect_timeout(&address, limit)?;
        stream.set_nonblocking(true)?;
        Ok(Stream::Tcp(mio::net::TcpStream::from_std(stream)))
    }

    /// Connects to a UNIX socket.
    ///
    /// # Errors
    /// Nobody listens.
    pub fn connect_unix(path: &Path) -> io::Result<Stream> {
        let stream = std::os::unix::net::UnixStream::connect(path)?;
        stream.set_nonblocking(true)?;
        Ok(Stream::Unix(mio::net::UnixStream::from_std(stream)))
    }

    /// Two sockets connected with each other, for tests.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn pair() -> io::Result<(Stream, Stream)> {
        let (a, b) = mio::net::UnixStream::pair()?;
        Ok((Stream::Unix(a), Stream::Unix(b)))
    }

    /// Address of the peer; `None` for UNIX sockets.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    /// Who is at the other end of a UNIX socket.
    pub fn peer_credentials(&self) -> Option<PeerCredentials> {
        match self {
            Stream::Tcp(_) => None,
            Stream::Unix(stream) => {
                let credentials = rustix::net::sockopt::socket_peercred(stream.as_fd()).ok()?;
                let uid = credentials.uid.as_raw();
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
            Stream::Unix(_) => Ok(()),
        }
    }

    /// Reads what is there. `WouldBlock` when nothing is; 0 when the peer closed.
    ///
    /// # Errors
    /// As for any socket.
    pub fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match self {
                Stream::Tcp(stream) => stream.read(buf),
                Stream::Unix(stream) => stream.read(buf),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Writes as much as fits. `WouldBlock` when nothing does.
    ///
    /// # Errors
    /// As for any socket.
    pub fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            let written = match self {
                Stream::Tcp(stream) => stream.write(buf),
                Stream::Unix(stream) => stream.write(buf),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Closes both directions; a peer or thread that waits on the socket notices.
    pub fn shutdown(&self) {
        // Fails only when the peer was faster.
        let _ = match self {
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// Waits until the socket takes bytes. False when `limit` has passed.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn wait_writable(&self, limit: Duration) -> io::Result<bool> {
        self.wait(PollFlags::OUT, limit)
    }

    /// Waits until bytes can be read or the peer closed. False when `limit` has passed.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn wait_readable(&self, limit: Duration) -> io::Result<bool> {
        self.wait(PollFlags::IN, limit)
    }

    fn wait(&self, flags: PollFlags, limit: Duration) -> io::Result<bool> {
        let deadline = Instant::now() + limit;
        let fd = match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        };
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

/// One readiness event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The registration's number.
    pub token: usize,
    /// The peer closed its side, or the connection failed.
    pub closed: bool,
}

/// Waits for many sockets.
pub struct Poller {
    poll: Poll,
    events: Events,
}

impl Poller {
    /// A poller without registrations.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new() -> io::Result<Poller> {
        Ok(Poller { poll: Poll::new()?, events: Events::with_capacity(EVENTS_PER_WAIT) })
    }

    /// A waker whose wake-ups arrive as `token`. One per poller.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn waker(&self, token: usize) -> io::Result<Waker> {
        mio::Waker::new(self.poll.registry(), Token(token)).map(|waker| Waker(Arc::new(waker)))
    }

    /// Reports readability of `stream` as `token` until the stream is dropped.
    ///
    /// # Errors
    /// Out of kernel memory.
    pub fn add_stream(&self, stream: &mut Stream, token: usize) -> io::Result<()> {
        let registry = self.poll.registry();
        match stream {
            Stream::Tcp(stream) => registry.register(stream, Token(token), Interest::READABLE),
            Stream::Unix(stream) => registry.register(stream, Token(token), Interest::READABLE),
        }
    }

    /// Reports waiting connections of `listener` as `token`.
    ///
    /// # Errors
    /// Out of kernel memory.
    pub fn add_listener(&self, listener: &mut Listener, token: usize) -> io::Result<()> {
        let registry = self.poll.registry();
        match listener {
            Listener::Tcp(listener) => {
                registry.register(listener, Token(token), Interest::READABLE)
            }
            Listener::Unix(listener) => {
                registry.register(listener, Token(token), Interest::READABLE)
            }
        }
    }

    /// Waits for events, at most `limit`. A signal ends the wait early.
    ///
    /// # Errors
    /// The poller is broken.
    pub fn wait(&mut self, limit: Option<Duration>) -> io::Result<()> {
        match self.poll.poll(&mut self.events, limit) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// The events of the last wait.
    pub fn ready(&self) -> impl Iterator<Item = Ready> + '_ {
        self.events.iter().map(|event| Ready {
            token: event.token().0,
            closed: event.is_read_closed() || event.is_error(),
        })
    }
}

/// Wakes a poller from another thread. Cloning shares.
#[derive(Clone)]
pub struct Waker(Arc<mio::Waker>);

impl Waker {
    /// Makes the poller's current or next wait return.
    pub fn wake(&self) {
        // An eventfd write fails only when its counter is full, and then the poller is awake anyway.
        let _ = self.0.wake();
    }
}
