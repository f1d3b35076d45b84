//! The slot for network protocols.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use errors::{Error, ErrorCode, Result};

use crate::session::SessionFactory;

/// The environment that a listener starts with.
#[derive(Clone)]
pub struct ListenerContext {
    /// Opens sessions.
    pub sessions: Arc<dyn SessionFactory>,
    /// Addresses to bind; empty for none.
    pub bind_addresses: Vec<IpAddr>,
    /// TCP port; 0 picks one.
    pub port: u16,
    /// Path of the UNIX socket.
    pub socket: Option<PathBuf>,
    /// Where certificates are kept and, when missing, made.
    pub data_directory: PathBuf,
    /// Reactor threads; 0 for one per core.
    pub reactors: usize,
    /// Own certificate, key and CA in PEM files, when configured.
    pub tls_files: Option<(PathBuf, PathBuf, Option<PathBuf>)>,
    /// `require_secure_transport` is checked by the session factory; this switches TLS off altogether.
    pub tls_disabled: bool,
}

/// Error 1081 with the address, what the system said, and what helps.
///
/// `variable` names the system variable of the port.
pub fn cannot_listen(
    name: &str,
    address: &dyn std::fmt::Display,
    variable: &str,
    error: &std::io::Error,
) -> Error {
    use std::io::ErrorKind;
    let number = error.raw_os_error().map_or_else(|| "-".to_owned(), |number| number.to_string());
    let advice = match error.kind() {
        ErrorKind::AddrInUse => {
            format!("stop the process that uses it, or set {variable} to another")
        }
        ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        ErrorKind::PermissionDenied => {
            format!("the system does not allow it: set {variable} to another")
        }
        _ => format!("see {variable}"),
    };
    let text = format!("{name} cannot listen on {address} (errno: {number} - {error}): {advice}");
    Error::new(ErrorCode::IPSOCK_ERROR, text)
}

/// A protocol that accepts connections.
pub trait Listener: Send + Sync {
    /// Name for logs and tables.
    fn name(&self) -> &'static str;
    /// Binds and starts to accept.
    ///
    /// # Errors
    /// The port or path cannot be bound; certificates cannot be read or made.
    fn start(&self, ctx: ListenerContext) -> Result<Box<dyn RunningListener>>;
}

/// A started listener.
pub trait RunningListener: Send {
    /// The TCP port in use, for `port=0`.
    fn port(&self) -> Option<u16>;
    /// Stops accepting at once, lets running statements finish up to `grace`, closes all connections, joins all threads.
    fn stop(self: Box<Self>, grace: std::time::Duration);
}
