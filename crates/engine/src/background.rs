//! The threads that purge, write pages, take checkpoints and flush the log for those who do not wait.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sys::clock::{Clock as _, RealClock};
use sys::threads::{Thread, spawn};
use wal::{Durability, FailurePolicy};

use crate::engine::Shared;

/// Pause between rounds when there is little to do.
const ROUND: Duration = Duration::from_millis(10);
/// Pages written in one round.
const ROUND_PAGES: usize = 64;
/// In relaxed mode the log is synced this often.
const RELAXED_SYNC: Duration = Duration::from_secs(1);

pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Vec<Thread>> {
    let log = shared.system.log.clone();
    let (purger, writer) = (shared.clone(), shared.clone());
    Ok(vec![
        spawn("log", move || log.serve())?,
        spawn("purge", move || purge_rounds(&purger))?,
        spawn("pages", move || write_rounds(&writer))?,
    ])
}

fn is_over(shared: &Shared) -> bool {
    shared.stopping.load(Ordering::Acquire)
}

fn pause(shared: &Shared) {
    let guard = shared.pause.lock();
    if !is_over(shared) {
        drop(shared.wake.wait_for(guard, ROUND));
    }
}

fn purge_rounds(shared: &Shared) {
    while !is_over(shared) {
        // What fails stays queued; a disk that fails for good ends the process through the log.
        match shared.purge(256) {
            Ok(256..) => {}
            _ => pause(shared),
        }
    }
}

fn write_rounds(shared: &Shared) {
    let clock = RealClock::new();
    let (mut checkpointed, mut synced) = (clock.monotonic(), clock.monotonic());
    while !is_over(shared) {
        let now = clock.monotonic();
        let mut failed = shared.system.flush_pages(ROUND_PAGES).is_err();
        if now - checkpointed >= shared.config.checkpoint_interval {
            failed |= shared.checkpoint().is_err();
            checkpointed = now;
        }
        if shared.config.log.durability == Durability::Relaxed && now - synced >= RELAXED_SYNC {
            let log = &shared.system.log;
            failed |= log.flush_to(log.next_ticket() - 1).is_err();
            synced = now;
        }
        if failed && shared.config.log.failure == FailurePolicy::Abort {
            // Writes of unknown extent since the last good sync: restart repairs them from the doublewrite file and the log.
            eprintln!("squall: data pages cannot be written; aborting");
            std::process::abort();
        }
        pause(shared);
    }
}
