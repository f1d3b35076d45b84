//! The threads that purge, write pages, take checkpoints and flush the log for commits that no thread waits for.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use sys::sync::atomic::Ordering;

use bufpool::SyncFailed;
use sys::clock::{Clock as _, RealClock};
use sys::threads::{Thread, spawn};
use wal::{Durability, FailurePolicy};

use crate::checkpointer::{Checkpointer, Round};
use crate::shared::Shared;

/// Pause between rounds when little work is waiting.
const ROUND: Duration = Duration::from_millis(10);
/// Pause of the page writer: each round scans all dirty pages.
const WRITE_ROUND: Duration = Duration::from_millis(50);
/// Threads that read pages ahead of scans.
const READERS_AHEAD: usize = 4;
/// Rounds of the page writer in a row whose writes fail: about a minute, time enough to make room on the device.
const WRITE_FAILURES_MAX: u32 = 1200;
/// In relaxed mode the log is synced this often.
const RELAXED_SYNC: Duration = Duration::from_secs(1);

pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Vec<Thread>> {
    let log = shared.system.log.clone();
    let (purger, writer, framer) = (shared.clone(), shared.clone(), shared.clone());
    let undoer = shared.clone();
    let mut threads = vec![
        spawn("rollback", move || roll_back_rounds(&undoer))?,
        spawn("log", move || log.serve())?,
        spawn("purge", move || purge_rounds(&purger))?,
        spawn("pages", move || write_rounds(&writer))?,
        spawn("frames", move || framer.system.pool.serve_frames(|| is_over(&framer)))?,
    ];
    if shared.archive.is_some() {
        let archiver = shared.clone();
        threads.push(spawn("archive", move || archive_rounds(&archiver))?);
    }
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
        // Failed purges stay queued; a disk that fails for good ends the process through the log.
        match shared.purge(256) {
            Ok(256..) => {}
            _ => {
                // Work left after a failure is tried again.
                let _ = shared.dictionary.close_some();
                shared.system.slots.note(sys::clock::wall().as_micros() as u64, |_| {});
                pause(shared, ROUND);
            }
        }
    }
}

/// Ends the process when page files cannot be trusted or cannot be written for long. Until then pages stay dirty, the checkpoint stays
/// where it is and commits continue. Each reason is said once: `said` is the one of the round before.
fn give_up_after(shared: &Shared, failure: &io::Error, failures: u32, said: &mut String) {
    let policy = shared.config.log.failure;
    if policy != FailurePolicy::Abort {
        return;
    }
    // After a failed sync a restart repairs partly written pages from the doublewrite file and the log.
    if SyncFailed::is(failure) || failures >= WRITE_FAILURES_MAX {
        sys::process::abort(&format!("data pages cannot be written: {failure}"));
    }
    let reason = failure.to_string();
    if failures == 1 || reason != *said {
        sys::process::warn(&format!("data pages cannot be written: {reason}; trying again"));
        *said = reason;
    }
}

/// Writes pages and takes checkpoints, so that a restart stays within its target time.
fn write_rounds(shared: &Shared) {
    let clock = RealClock::new();
    let mut checkpointer = Checkpointer::new(shared, clock.monotonic());
    let mut synced = clock.monotonic();
    let (mut failures, mut said) = (0, String::new());
    while !is_over(shared) {
        let now = clock.monotonic();
        let mut failure = None;
        let outcome = checkpointer.round(now).unwrap_or_else(|error| {
            failure = Some(error);
            Round::Rest
        });
        // Without a spare segment a commit would have to make one; if the disk is full now, the next round makes it.
        shared.keep_reserves();
        if shared.config.log.durability == Durability::Relaxed && now - synced >= RELAXED_SYNC {
            let log = &shared.system.log;
            failure = failure.or(log.flush_to(log.next_ticket() - 1).err());
            synced = now;
        }
        match failure {
            Some(failure) => {
                failures += 1;
                give_up_after(shared, &failure, failures, &mut said);
            }
            None => failures = 0,
        }
        if outcome == Round::Rest {
            pause(shared, WRITE_ROUND);
        }
    }
}

/// Archives the log as it grows.
fn archive_rounds(shared: &Shared) {
    while !is_over(shared) {
        shared.archive_log();
        pause(shared, crate::archive::ROUND);
    }
}

/// Undoes losers, and what its own session could not undo. A failed step is tried again.
fn roll_back_rounds(shared: &Shared) {
    let mut has_failed = false;
    while !is_over(shared) {
        let outcome = shared.roll_back_losers().and_then(|()| shared.roll_back_abandoned());
        if let Err(error) = &outcome
            && !has_failed
        {
            sys::process::warn(&format!(
                "a rollback failed: {error:?}; its rows stay locked and it is tried again"
            ));
        }
        has_failed = outcome.is_err();
        pause(shared, RELAXED_SYNC);
    }
}
