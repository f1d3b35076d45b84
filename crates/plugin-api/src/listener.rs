//! The slot for network protocols.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use errors::{Error, ErrorCode, Result, bail, err};
use types::Value;

use crate::session::SessionFactory;
use crate::variable::{as_text, as_u64};

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
    /// Where administrators find a place whatever `max_connections` is: `admin_address`, `admin_port`.
    pub admin_address: Option<SocketAddr>,
    /// Where certificates are kept and, when missing, made.
    pub data_directory: PathBuf,
    /// Reactor threads; 0 for one per core.
    pub reactors: usize,
    /// Own certificate, key and CA in PEM files, when configured.
    pub tls_files: Option<(PathBuf, PathBuf, Option<PathBuf>)>,
    /// `require_secure_transport` is checked by the session factory; this switches TLS off altogether.
    pub tls_disabled: bool,
}

impl ListenerContext {
    /// The context after settings of listeners have changed. `None` when none of its own has: `port`, `bind_address`, `socket`.
    ///
    /// # Errors
    /// 1231: not an address, no port or no path. 1290: there is no TCP listener.
    pub fn with(&self, settings: &[(&'static str, Value)]) -> Result<Option<ListenerContext>> {
        let (mut next, mut is_changed) = (self.clone(), false);
        for (name, value) in settings {
            let text = as_text(value);
            let wrong = || err!(WRONG_VALUE_FOR_VAR, name, text);
            match *name {
                "port" => next.port = u16::try_from(as_u64(value)).map_err(|_| wrong())?,
                "bind_address" => {
                    next.bind_addresses = parse_bind_addresses(&text).map_err(|_| wrong())?;
                    if next.bind_addresses.is_empty() {
                        return Err(wrong());
                    }
                }
                "socket" if text.is_empty() || text.contains('\0') => return Err(wrong()),
                "socket" => next.socket = Some(self.data_path(&text)),
                _ => continue,
            }
            if *name != "socket" && self.bind_addresses.is_empty() {
                bail!(OPTION_PREVENTS_STATEMENT, "--skip-networking");
            }
            is_changed = true;
        }
        Ok(is_changed.then_some(next))
    }

    /// A path as options give it: below the data directory unless it is absolute or begins with `./`.
    fn data_path(&self, text: &str) -> PathBuf {
        let path = PathBuf::from(text);
        if path.is_absolute() || text.starts_with("./") {
            path
        } else {
            self.data_directory.join(path)
        }
    }
}

/// The addresses of `bind_address`: IP addresses, `localhost` and `*`, separated by commas.
///
/// # Errors
/// The part that is no address.
pub fn parse_bind_addresses(text: &str) -> std::result::Result<Vec<IpAddr>, String> {
    let address = |part: &str| match part {
        "*" => Ok(IpAddr::V6(Ipv6Addr::UNSPECIFIED)),
        "localhost" => Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        other => other.parse().map_err(|_| other.to_owned()),
    };
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(address).collect()
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

/// Addresses that a listener has bound beside its present ones. When it is dropped, they are closed.
pub trait Rebinding: Send {
    /// Its settings as they are bound: port 0 has become a port.
    fn bound(&self) -> Vec<(&'static str, Value)>;
    /// Listens on them alone from now on; all connections stay.
    fn adopt(self: Box<Self>);
}

/// A started listener.
pub trait RunningListener: Send {
    /// The TCP port in use, for `port=0`.
    fn port(&self) -> Option<u16>;
    /// Binds the addresses of changed settings beside the present ones: clients can connect to them already. `None` when none of the settings is the
    /// listener's.
    ///
    /// # Errors
    /// A port or path cannot be bound; then nothing has changed.
    fn rebind(&self, settings: &[(&'static str, Value)]) -> Result<Option<Box<dyn Rebinding>>> {
        let _ = settings;
        Ok(None)
    }
    /// ALTER INSTANCE RELOAD TLS: reads certificate and key anew, for connections that come from now on. When that fails the ones before stay in use,
    /// or with `disables_on_error` there is no TLS from now on.
    ///
    /// # Errors
    /// 3888: they cannot be read, or do not fit each other.
    fn reload_tls(&self, disables_on_error: bool) -> Result<()> {
        let _ = disables_on_error;
        Ok(())
    }
    /// Stops accepting at once, lets running statements finish up to `grace`, closes all connections, joins all threads.
    fn stop(self: Box<Self>, grace: std::time::Duration);
}
