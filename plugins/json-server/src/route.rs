//! A call: its method, its path and what answers it.

use crate::call::{Call, Incoming};
use crate::gateway::Gateway;
use crate::reply::Reply;

/// The parts of a path that stand for a name in its pattern, decoded.
pub type Names = Vec<String>;

/// Who may call.
#[derive(Clone, Copy)]
pub enum Handler {
    /// Anybody.
    Public(fn(&Gateway, &Incoming) -> Reply),
    /// A caller who has logged in.
    Login(fn(&Call<'_>, &Names) -> Reply),
}

/// A call.
#[derive(Clone, Copy)]
pub struct Route {
    /// Its method.
    pub method: &'static str,
    /// Its path, with `{name}` for a part that varies.
    pub path: &'static str,
    /// What answers it.
    pub handler: Handler,
}

/// A route for callers who have logged in.
pub const fn login(
    method: &'static str,
    path: &'static str,
    handler: fn(&Call<'_>, &Names) -> Reply,
) -> Route {
    Route { method, path, handler: Handler::Login(handler) }
}

/// A route for anybody.
pub const fn public(
    method: &'static str,
    path: &'static str,
    handler: fn(&Gateway, &Incoming) -> Reply,
) -> Route {
    Route { method, path, handler: Handler::Public(handler) }
}

/// Percent-decoded text; `None` when it is not UTF-8 or an escape is incomplete.
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let digits = std::str::from_utf8(&digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(bytes).ok()
}
