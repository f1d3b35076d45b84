//! The events that pollers report for sockets.

/// One readiness event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The registration's number.
    pub token: usize,
    /// The peer closed its side, or the connection failed.
    pub closed: bool,
}
