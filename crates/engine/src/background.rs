//! The threads that purge, write pages, take checkpoints and flush the log for those who do not wait.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use sys::sync::atomic::Ordering;

use sys::clock::{Clock as _, RealClock};
use sys::threads::{Thread, spawn};
use wal::{Durability, FailurePolicy};

use crate::engine::Shared;

/// Pause between rounds when there is little to do.
const ROUND: Duration = Duration::from_millis(10);
/// Pause of the page writer: each look costs a pass over all frames.
const WRITE_ROUND: Duration = Duration::from_millis(50);
/// Log segments after which a checkpoint does not wait for its time.
const LOG_SEGMENTS_MAX: u64 = 8;
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

fn pause(shared: &Shared, time: Duration) {
    let guard = shared.pause.lock();
    if !is_over(shared) {
        drop(shared.wake.wait_for(guard, time));
    }
}

fn purge_rounds(shared: &Shared) {
    while !is_over(shared) {
        // What fails stays queued; a disk that fails for good ends the process through the log.
        match shared.purge(256) {
            Ok(256..) => {}
            _ => pause(shared, ROUND),
        }
    }
}

/// Writes pages when many are dirty, and before each checkpoint those that were dirty at the one before, so that redo starts at most
/// two intervals back. A log that grows fast brings the checkpoint forward.
fn write_rounds(shared: &Shared) {
    let clock = RealClock::new();
    let log = &shared.system.log;
    let (mut checkpointed, mut synced) = (clock.monotonic(), clock.monotonic());
    let mut previous = log.next_ticket();
    while !is_over(shared) {
        let now = clock.monotonic();
        let pool = shared.system.pool.stats();
        let mut failed = false;
        if pool.dirty_frames * 4 > pool.frames {
            failed |= shared.system.flush_pages(pool.frames as usize / 8).is_err();
        }
        let is_due = now - checkpointed >= shared.config.checkpoint_interval;
        if (is_due && log.next_ticket() != previous) || log.stats().segments > LOG_SEGMENTS_MAX {
            failed |= shared.system.pool.flush(usize::MAX, previous).is_err();
            // What the checkpoint itself draws must not make the next one due.
            failed |= shared.checkpoint().is_err();
            previous = log.next_ticket();
            checkpointed = now;
        }
        if shared.config.log.durability == Durability::Relaxed && now - synced >= RELAXED_SYNC {
            failed |= log.flush_to(log.next_ticket() - 1).is_err();
            synced = now;
        }
        if failed && shared.config.log.failure == FailurePolicy::Abort {
            // Writes of unknown extent since the last good sync: restart repairs them from the doublewrite file and the log.
            eprintln!("squall: data pages cannot be written; aborting");
            std::process::abort();
        }
        pause(shared, WRITE_ROUND);
    }
}
