//! Datagrams to a UNIX socket of this machine, which never wait for their reader.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// A socket that sends to one reader.
#[derive(Debug)]
pub struct Datagrams(UnixDatagram);

impl Datagrams {
    /// A socket that sends to the reader at `path`.
    ///
    /// # Errors
    /// Nobody reads there; `Unsupported` on a simulated machine.
    pub fn to(path: &Path) -> io::Result<Datagrams> {
        if crate::simulation::current().is_some() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect(path)?;
        Ok(Datagrams(socket))
    }

    /// Sends one datagram.
    ///
    /// # Errors
    /// `WouldBlock` when the reader's queue is full; the reader has gone; the datagram is too large.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.send(bytes).map(drop)
    }
}
