//! Telling the service manager how the process is, by the protocol of `sd_notify`: datagrams to the socket that it named.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The manager's socket.
pub struct Manager {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Manager {
    /// The one that `NOTIFY_SOCKET` names; `None` if no manager waits for notifications.
    pub fn from_environment() -> Option<Manager> {
        if crate::simulation::current().is_some() {
            return None;
        }
        let name = std::env::var("NOTIFY_SOCKET").ok()?;
        let address = match name.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(&name),
        };
        Some(Manager { socket: UnixDatagram::unbound().ok()?, address: address.ok()? })
    }

    /// Sends assignments, one a line. If the manager does not listen, that is not an error.
    pub fn tell(&self, text: &str) {
        let _sent = self.socket.send_to_addr(text.as_bytes(), &self.address);
    }
}
