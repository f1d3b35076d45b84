//! Requests to stop the server: signals and SHUTDOWN.

use std::io;
use std::sync::Arc;

use sys::sync::{Condvar, Mutex};

/// A stop request that one thread waits for. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<Inner>);

#[derive(Default)]
struct Inner {
    reason: Mutex<Option<&'static str>>,
    asked: Condvar,
}

impl Stop {
    /// Requests shutdown; the first reason counts.
    pub(crate) fn ask(&self, reason: &'static str) {
        self.0.reason.lock().get_or_insert(reason);
        self.0.asked.notify_all();
    }

    /// Whether shutdown was requested.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.reason.lock().is_some()
    }

    /// Waits until shutdown is requested.
    pub(crate) fn wait(&self) -> &'static str {
        let mut reason = self.0.reason.lock();
        loop {
            if let Some(reason) = *reason {
                return reason;
            }
            reason = self.0.asked.wait(reason);
        }
    }

    /// From now on SIGTERM and SIGINT request shutdown.
    ///
    /// # Errors
    /// The handlers cannot be set.
    pub(crate) fn on_signals(&self) -> io::Result<()> {
        let stop = self.clone();
        sys::signals::on_stop(move |signal| stop.ask(signal))
    }
}
