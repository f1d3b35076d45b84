//! Making another thread abandon a wait inside a system call that has no time limit.
//!
//! Independent of sockets. A limit on every wait would cost a kernel timer each time; this costs two stores.

use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};

use crate::{simulation, waits};

/// The signal that ends a wait. By default it does nothing, so that one which comes too late or from elsewhere is harmless.
const SIGNAL: libc::c_int = libc::SIGURG;

/// The waits of one thread at a time, as others see them.
#[derive(Debug, Default)]
pub struct Waiting {
    thread: AtomicI32,
    /// Waits begun and ended; odd while the thread is inside one.
    steps: AtomicU32,
    recalled: AtomicBool,
}

extern "C" fn ignore(_: libc::c_int) {}

/// Makes the signal end system calls instead of being ignored.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let handler: extern "C" fn(libc::c_int) = ignore;
        // SAFETY: an all-zero `sigaction` is a valid one: no flags, so interrupted calls are not begun again.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler as libc::sighandler_t;
        // SAFETY: `action` is initialised, the handler does nothing and thus is safe at any point, and the old one is not requested.
        unsafe { libc::sigaction(SIGNAL, &action, std::ptr::null_mut()) };
    });
}

impl Waiting {
    /// From here on the waits are those of the calling thread.
    pub fn begin(&self) {
        let thread = match simulation::current() {
            Some(here) => here.id(),
            None => {
                install();
                rustix::thread::gettid().as_raw_nonzero().get()
            }
        };
        self.thread.store(thread, Ordering::Release);
    }

    /// Runs `body`, which waits in a system call and returns `Interrupted` when that is interrupted.
    #[inline]
    pub fn wait<T>(&self, body: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let step = self.steps.load(Ordering::Relaxed);
        self.steps.store(step.wrapping_add(1), Ordering::Release);
        let result = waits::idle(body);
        self.steps.store(step.wrapping_add(2), Ordering::Release);
        result
    }

    /// Counts up by two with every wait; odd during one.
    pub fn steps(&self) -> u32 {
        self.steps.load(Ordering::Acquire)
    }

    /// Interrupts the thread if it is inside a wait. It may be entering or leaving one at this time: a caller that needs certainty checks
    /// `steps` later and tries again.
    pub fn interrupt(&self) {
        if self.steps().is_multiple_of(2) {
            return;
        }
        let thread = self.thread.load(Ordering::Acquire);
        if let Some(here) = simulation::current() {
            return here.interrupt(thread);
        }
        let process = rustix::process::getpid();
        // SAFETY: sends a signal that has a handler to a thread of this process; if it has ended the call fails, or at worst
        // ends a system call of its successor early, which every caller of such calls provides for.
        unsafe { libc::syscall(libc::SYS_tgkill, process.as_raw_pid(), thread, SIGNAL) };
    }

    /// Interrupts the thread, and asks it to wait no more.
    pub fn recall(&self) {
        self.recalled.store(true, Ordering::Release);
        self.interrupt();
    }

    /// Whether the thread was asked to wait no more.
    pub fn is_recalled(&self) -> bool {
        self.recalled.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn a_wait_without_limit_ends_when_interrupted() {
        let (mut stream, _peer) = crate::net::Stream::pair().expect("a pair");
        let waiting = Arc::new(Waiting::default());
        waiting.interrupt();
        let theirs = waiting.clone();
        let thread = std::thread::spawn(move || {
            theirs.begin();
            stream.read_waiting(&mut [0; 8], &theirs)
        });
        while !thread.is_finished() {
            waiting.interrupt();
            std::thread::sleep(Duration::from_millis(1));
        }
        let error = thread.join().expect("no panic").expect_err("nothing came");
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert_eq!(waiting.steps(), 2);
    }
}
