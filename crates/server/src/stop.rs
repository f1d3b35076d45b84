//! Requests to stop the server, from signals and SHUTDOWN, and the other signals.

use std::io;
use std::sync::Arc;

use error_log::ErrorLog;
use sys::signals::Signal;
use sys::sync::{Condvar, Mutex};
use tracing::{error, info};

/// A stop request that one thread waits for. Clones share it.
#[derive(Clone)]
pub(crate) struct Stop(Arc<Inner>);

struct Inner {
    error_log: Arc<ErrorLog>,
    reason: Mutex<Option<&'static str>>,
    asked: Condvar,
    /// Opens the files of plugins' logs again.
    reopen: Mutex<Option<Reopen>>,
}

/// Opens log files again.
type Reopen = Box<dyn Fn() -> errors::Result<()> + Send>;

impl Stop {
    /// Nothing is requested yet. Signals open `error_log` again.
    pub(crate) fn new(error_log: Arc<ErrorLog>) -> Stop {
        let (reason, asked, reopen) = Default::default();
        Stop(Arc::new(Inner { error_log, reason, asked, reopen }))
    }

    /// The process's log.
    pub(crate) fn error_log(&self) -> &Arc<ErrorLog> {
        &self.0.error_log
    }

    /// Requests shutdown; the first reason counts.
    pub(crate) fn ask(&self, reason: &'static str) {
        self.0.reason.lock().get_or_insert(reason);
        self.0.asked.notify_all();
    }

    /// Sets how log files other than the error log are opened again.
    pub(crate) fn on_flush(&self, reopen: Reopen) {
        *self.0.reopen.lock() = Some(reopen);
    }

    fn flush(&self, signal: &'static str) {
        match self.0.error_log.open_again() {
            Ok(()) => info!(signal, "logs flushed"),
            // The old file is still written.
            Err(error) => error!(signal, "the error log cannot be reopened: {error}"),
        }
        let reopened = self.0.reopen.lock().as_ref().map_or(Ok(()), |reopen| reopen());
        if let Err(error) = reopened {
            error!(signal, "a log cannot be reopened: {error}");
        }
    }

    /// Whether shutdown was requested.
    pub(crate) fn is_asked(&self) -> bool {
        self.0.reason.lock().is_some()
    }

    /// Why shutdown was requested.
    pub(crate) fn reason(&self) -> Option<&'static str> {
        *self.0.reason.lock()
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
}

/// From now on SIGTERM and SIGINT ask `stop`, SIGHUP and SIGUSR1 reopen the logs, and SIGUSR2 writes the stacks of all threads to the error log, each as one line that flame graph tools read.
///
/// # Errors
/// The handlers cannot be set.
pub(crate) fn obey_signals(stop: &Stop) -> io::Result<()> {
    let stop = stop.clone();
    sys::signals::on_signals(move |signal| match signal {
        Signal::Stop(name) => stop.ask(name),
        Signal::Flush(name) => stop.flush(name),
        Signal::Stacks(name) => report_stacks(name),
    })
}

fn report_stacks(signal: &'static str) {
    let stacks = sys::stacks::capture_all();
    info!(signal, threads = stacks.len(), "stacks of all threads");
    for line in sys::stacks::folded(&stacks).lines() {
        info!("stack: {line}");
    }
}
