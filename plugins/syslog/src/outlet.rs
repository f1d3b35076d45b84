//! The socket of the system's log: opened when a message comes, and again some time after it was lost.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sys::datagram::Datagrams;
use sys::sync::Mutex;

/// A socket that could not be opened is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// Messages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Taken by the system's log.
    pub(crate) sent: u64,
    /// Not taken: nobody reads, or not fast enough.
    pub(crate) dropped: u64,
}

#[derive(Default)]
struct State {
    open: Option<(String, Arc<Datagrams>)>,
    /// When the last attempt to open failed.
    failed: Option<Duration>,
    counts: Counts,
}

/// Where messages go.
#[derive(Default)]
pub(crate) struct Outlet(Mutex<State>);

impl Outlet {
    /// Sends a message to the socket at `path`, or drops it.
    pub(crate) fn send(&self, path: &str, message: &[u8]) {
        let socket = self.socket(path);
        let sent = socket.as_ref().is_some_and(|socket| match socket.send(message) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => false,
            Err(_) => {
                // The reader has gone: another may listen at the same path by now.
                self.close();
                self.socket(path).is_some_and(|socket| socket.send(message).is_ok())
            }
        });
        let counts = &mut self.0.lock().counts;
        match sent {
            true => counts.sent += 1,
            false => counts.dropped += 1,
        }
    }

    fn socket(&self, path: &str) -> Option<Arc<Datagrams>> {
        let mut state = self.0.lock();
        if let Some((known, socket)) = &state.open
            && known == path
        {
            return Some(socket.clone());
        }
        let now = sys::clock::monotonic();
        if state.failed.is_some_and(|failed| now.saturating_sub(failed) < RETRY) {
            return None;
        }
        match Datagrams::to(Path::new(path)) {
            Ok(socket) => {
                let socket = Arc::new(socket);
                state.open = Some((path.to_owned(), socket.clone()));
                state.failed = None;
                Some(socket)
            }
            Err(_) => {
                state.open = None;
                state.failed = Some(now);
                None
            }
        }
    }

    /// The next message opens the socket again.
    pub(crate) fn close(&self) {
        let mut state = self.0.lock();
        state.open = None;
        state.failed = None;
    }

    /// Messages so far.
    pub(crate) fn counts(&self) -> Counts {
        self.0.lock().counts
    }
}
