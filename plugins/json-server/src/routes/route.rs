//! A call: its method, its path, and the function that answers it.

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
