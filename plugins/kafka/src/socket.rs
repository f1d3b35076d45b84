//! A connection's bytes: TCP, or TLS over it, with a limit of time and an end when the stream is stopped.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use engine_api::CancelToken;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use sys::net::{Stream, resolve};

/// How often is looked whether the stream was stopped.
const POLL: Duration = Duration::from_millis(20);

/// A connected socket.
pub(crate) enum Socket {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

/// A socket whose reads and writes end at a time.
pub(crate) struct Timed {
    stream: Stream,
    cancel: CancelToken,
    until: Duration,
}

impl Socket {
    /// Connects within `limit`.
    ///
    /// # Errors
    /// Nobody there, or a host that is not known.
    pub fn connect(
        host: &str,
        port: u16,
        tls: Option<&Arc<ClientConfig>>,
        limit: Duration,
        cancel: &CancelToken,
    ) -> io::Result<Socket> {
        let until = sys::clock::monotonic() + limit;
        let mut last = io::Error::from(ErrorKind::NotFound);
        for address in resolve(host, port)? {
            let left = until.saturating_sub(sys::clock::monotonic());
            if left.is_zero() || cancel.is_cancelled() {
                return Err(ErrorKind::TimedOut.into());
            }
            match Stream::connect_tcp(address, left) {
                Ok(stream) => {
                    stream.set_options()?;
                    let timed = Timed { stream, cancel: cancel.clone(), until };
                    return Socket::over(timed, host, tls);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn over(timed: Timed, host: &str, tls: Option<&Arc<ClientConfig>>) -> io::Result<Socket> {
        let Some(config) = tls else { return Ok(Socket::Plain(timed)) };
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        Ok(Socket::Tls(Box::new(StreamOwned::new(session, timed))))
    }

    /// What follows may take so long.
    pub fn limit(&mut self, limit: Duration) {
        let until = sys::clock::monotonic() + limit;
        match self {
            Socket::Plain(timed) => timed.until = until,
            Socket::Tls(stream) => stream.sock.until = until,
        }
    }
}

impl Timed {
    /// Waits for a step; an error when the time is over or the stream was stopped.
    fn wait(&self, wait: impl FnOnce(Duration) -> io::Result<bool>) -> io::Result<()> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("the stream was stopped"));
        }
        if sys::clock::monotonic() >= self.until {
            return Err(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
        }
        wait(POLL).map(drop)
    }
}

impl Read for Timed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.stream.read(buf) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(|limit| self.stream.wait_readable(limit))?;
                }
                other => return other,
            }
        }
    }
}

impl Write for Timed {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            match self.stream.write(buf) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.wait(|limit| self.stream.wait_writable(limit))?;
                }
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(timed) => timed.read(buf),
            Socket::Tls(stream) => stream.read(buf),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Plain(timed) => timed.write(buf),
            Socket::Tls(stream) => stream.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Plain(timed) => timed.flush(),
            Socket::Tls(stream) => stream.flush(),
        }
    }
}
