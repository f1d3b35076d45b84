//! The signals that ask a process to end.

use std::io;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Calls `asked` with the name of each SIGTERM and SIGINT that comes from now on, on a separate thread. They no longer end the process.
///
/// # Errors
/// The handlers cannot be set, or no thread can be had.
pub fn on_stop(asked: impl Fn(&'static str) + Send + 'static) -> io::Result<()> {
    if crate::simulation::current().is_some() {
        // No signal is ever sent.
        return Ok(());
    }
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    crate::threads::spawn("signals", move || {
        for signal in signals.forever() {
            asked(if signal == SIGTERM { "SIGTERM" } else { "SIGINT" });
        }
    })?;
    Ok(())
}
