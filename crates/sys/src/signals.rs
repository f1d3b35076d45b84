//! The signals that ask a process to end or to flush its logs.

use std::io;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// A signal that does not end the process by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGTERM or SIGINT, by name: the process is asked to end.
    Stop(&'static str),
    /// SIGHUP or SIGUSR1, by name: the process is asked to flush its logs.
    Flush(&'static str),
    /// SIGUSR2, by name: the process is asked what its threads do.
    Stacks(&'static str),
}

/// Calls `received` with each SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 that comes from now on, on a separate thread. They no longer end
/// the process.
///
/// # Errors
/// The handlers cannot be set, or no thread can be had.
pub fn on_signals(received: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
    if crate::simulation::current().is_some() {
        // No signal is ever sent.
        return Ok(());
    }
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2])?;
    crate::threads::spawn("signals", move || {
        for signal in signals.forever() {
            received(match signal {
                SIGTERM => Signal::Stop("SIGTERM"),
                SIGINT => Signal::Stop("SIGINT"),
                SIGHUP => Signal::Flush("SIGHUP"),
                SIGUSR1 => Signal::Flush("SIGUSR1"),
                _ => Signal::Stacks("SIGUSR2"),
            });
        }
    })?;
    Ok(())
}
