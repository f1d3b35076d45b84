//! The threads that purge, write pages, take checkpoints and flush the log for those who do not wait.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use sys::sync::atomic::Ordering;

use bufpool::SyncFailed;
use sys::clock::{Clock as _, RealClock};
use sys::threads::{Thread, spawn};
use wal::{Durability, FailurePolicy};

use crate::engine::Shared;

/// Pause between rounds when there is little to do.
const ROUND: Duration = Duration::from_millis(10);
/// Pause of the page writer: each look costs a pass over all frames.
const WRITE_ROUND: Duration = Duration::from_millis(50);
/// Threads that read pages ahead of scans.
const READERS_AHEAD: usize = 4;
/// Rounds of the page writer in a row whose writes fail: about a minute, time enough to make room on the device.
const WRITE_FAILURES_MAX: u32 = 1200;
/// Log segments after which a checkpoint does not wait for its time.
const LOG_SEGMENTS_MAX: u64 = 8;
/// In relaxed mode the log is synced this often.
const RELAXED_SYNC: Duration = Duration::from_secs(1);

pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Vec<Thread>> {
    let log = shared.system.log.clone();
    let (purger, writer, framer) = (shared.clone(), shared.clone(), shared.clone());
    let mut threads = vec![
        spawn("log", move || log.serve())?,
        spawn("purge", move || purge_rounds(&purger))?,
        spawn("pages", move || write_rounds(&writer))?,
        spawn("frames", move || framer.system.pool.serve_frames(|| is_over(&framer)))?,
    ];
    for _ in 0..READERS_AHEAD {
        let reader = shared.clone();
        threads.push(spawn("ahead", move || reader.system.pool.serve_ahead(|| is_over(&reader)))?);
    }
    Ok(threads)
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

/// Ends the process when page files cannot be trusted or cannot be written for long. Until then pages stay dirty, the checkpoint stays
/// where it is and commits go on.
fn give_up_after(shared: &Shared, failure: &io::Error, failures: u32) {
    let policy = shared.config.log.failure;
    if policy != FailurePolicy::Abort {
        return;
    }
    // After a failed sync restart repairs from the doublewrite file and the log what was written to an unknown extent.
    if SyncFailed::is(failure) || failures >= WRITE_FAILURES_MAX {
        eprintln!("squall: data pages cannot be written: {failure}; aborting");
        std::process::abort();
    }
    if failures == 1 {
        eprintln!("squall: data pages cannot be written: {failure}; trying again");
    }
}

/// Writes pages when many are dirty, and before each checkpoint those that were dirty at the one before, so that redo starts at most
/// two intervals back. A log that grows fast brings the checkpoint forward.
fn write_rounds(shared: &Shared) {
    let clock = RealClock::new();
    let log = &shared.system.log;
    let (mut checkpointed, mut synced) = (clock.monotonic(), clock.monotonic());
    let mut previous = log.next_ticket();
    let mut failures = 0;
    while !is_over(shared) {
        let now = clock.monotonic();
        let pool = shared.system.pool.stats();
        let mut failure = None;
        // Made when it is needed at the latest, and a failure shows then.
        let _ahead_of_need = log.prepare_segment();
        if pool.dirty_frames * 4 > pool.frames {
            failure = shared.system.flush_pages(pool.frames as usize / 8).err();
        }
        let is_due = now - checkpointed >= shared.config.checkpoint_interval;
        if (is_due && log.next_ticket() != previous) || log.stats().segments > LOG_SEGMENTS_MAX {
            failure = failure.or(shared.system.pool.flush(usize::MAX, previous).err());
            // What the checkpoint itself draws must not make the next one due.
            if failure.is_none() && shared.checkpoint().is_err() {
                failure = Some(io::Error::other("the checkpoint cannot be stored"));
            }
            previous = log.next_ticket();
            checkpointed = now;
        }
        if shared.config.log.durability == Durability::Relaxed && now - synced >= RELAXED_SYNC {
            failure = failure.or(log.flush_to(log.next_ticket() - 1).err());
            synced = now;
        }
        match failure {
            Some(failure) => {
                failures += 1;
                give_up_after(shared, &failure, failures);
            }
            None => failures = 0,
        }
        pause(shared, WRITE_ROUND);
    }
}
