//! When pages are written and checkpoints taken: a restart after a crash must not take longer than its target (E11).
//!
//! A restart reads and replays the log after the last checkpoint, and reads the pages that this log changes. Both are bounded here. Nothing
//! stops for a checkpoint: the oldest changes are written a few pages at a time, as fast as the log grows. When that is not fast enough,
//! each change is slowed down a little, instead of stopping all changes at once.

use std::io;
use std::time::Duration;
use sys::sync::atomic::Ordering;

use crate::shared::Shared;

/// Bytes of log that a restart replays in a second, before a recovery on this machine measured it. Pessimistic.
const RATE_DEFAULT: u64 = 100 << 20;
/// Time that a page costs a restart: it is read ahead of its use, in parallel with others.
const PAGE_TIME: Duration = Duration::from_micros(20);
/// Pages written between two scans, at least, and the share of the pool if that is more: each scan visits all dirty pages.
const CHUNK_PAGES_MIN: u64 = 256;
const CHUNK_SHARE: u64 = 64;
/// Least time between two checkpoints: each syncs a few small files.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(250);
/// A checkpoint is worth taking when it saves a restart this share of the log that it may replay.
const GAIN_SHARE: u64 = 16;
/// The longest that one change is slowed down.
const BRAKE_MICROS_MAX: u64 = 20_000;

/// The page writer's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// There is more to write.
    GoOn,
    /// Nothing to do for now.
    Rest,
}

/// Bounds of the work of a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Log to replay.
    pub log_bytes: u64,
    /// Pages to read.
    pub pages: u64,
}

impl Budget {
    /// The bounds for a target time, if `rate` bytes of log are replayed in a second and a segment is the least that can be released.
    pub fn new(target: Duration, rate: u64, segment_bytes: u64) -> Budget {
        let rate = if rate == 0 { RATE_DEFAULT } else { rate };
        // Half of the time each, so that both together stay within it.
        let half = target / 2;
        let log_bytes = (half.as_secs_f64() * rate as f64) as u64;
        Budget {
            log_bytes: log_bytes.max(4 * segment_bytes),
            pages: (half.as_nanos() / PAGE_TIME.as_nanos()).max(1) as u64,
        }
    }
}

/// See the file's head.
pub(crate) struct Checkpointer<'s> {
    shared: &'s Shared,
    /// Where redo of the last checkpoint starts.
    redo_from: u64,
    checkpointed: Duration,
    /// The last ticket seen, and the time since which no later one was drawn.
    ticket: u64,
    quiet_since: Duration,
    /// Every change before this ticket was on disk at the last scan.
    clean_before: Option<u64>,
}

impl<'s> Checkpointer<'s> {
    pub fn new(shared: &'s Shared, now: Duration) -> Checkpointer<'s> {
        Checkpointer {
            shared,
            redo_from: shared.system.pool.oldest_change(shared.system.log.next_ticket()),
            checkpointed: now,
            ticket: 0,
            quiet_since: now,
            clean_before: None,
        }
    }

    /// Writes some pages and takes a checkpoint when it is time.
    ///
    /// # Errors
    /// I/O.
    pub fn round(&mut self, now: Duration) -> io::Result<Round> {
        let (log, pool) = (&self.shared.system.log, &self.shared.system.pool);
        let settings = &self.shared.settings;
        let segment_bytes = self.shared.config.log.segment_bytes;
        let rate = self.shared.system.redo_rate();
        let budget = Budget::new(settings.recovery_target(), rate, segment_bytes);
        let ceiling = log.next_ticket();
        if ceiling != self.ticket {
            self.ticket = ceiling;
            self.quiet_since = now;
        }
        let is_quiet = now - self.quiet_since >= self.shared.config.checkpoint_interval;
        let (dirty, frames) = (pool.dirty_frames() as u64, pool.usable_frames() as u64);
        // Changes older than half of the log that may be replayed are being written.
        let is_short = self.shared.is_short();
        let below = match is_short || is_quiet || dirty * 4 > frames || dirty > budget.pages {
            true => u64::MAX,
            false => log.ticket_before(budget.log_bytes / 2),
        };
        let chunk = CHUNK_PAGES_MIN.max(frames / CHUNK_SHARE) as usize;
        let written = if dirty > 0 { pool.flush(chunk, below)? } else { 0 };
        // Every change draws a ticket: without a new one all frames need not be read again.
        let oldest = match self.clean_before {
            Some(ticket) if ticket == ceiling => ceiling,
            Some(_) | None => pool.oldest_change(ceiling),
        };
        self.clean_before = (oldest == ceiling).then_some(ceiling);
        let (now_bytes, then_bytes) = (log.bytes_since(self.redo_from), log.bytes_since(oldest));
        self.set_brake(then_bytes, &budget);
        let gain = now_bytes.saturating_sub(then_bytes);
        let is_worth = gain >= (budget.log_bytes / GAIN_SHARE).max(segment_bytes)
            // A part of the log that is released makes the reserve whole.
            || is_short && gain > 0
            || is_quiet && written == 0 && oldest != self.redo_from;
        if is_worth && now - self.checkpointed >= CHECKPOINT_PAUSE {
            self.shared
                .checkpoint()
                .map_err(|error| io::Error::other(format!("checkpoint: {error:?}")))?;
            self.checkpointed = now;
            // Tickets drawn by the checkpoint itself must not make the next one due.
            self.ticket = log.next_ticket();
            self.redo_from = if oldest == ceiling { self.ticket } else { oldest };
        }
        Ok(if written >= chunk { Round::GoOn } else { Round::Rest })
    }

    /// Slows changes down when the log that must be kept outgrows the budget: the more, the further it is beyond.
    fn set_brake(&self, bytes: u64, budget: &Budget) {
        let beyond = bytes.saturating_sub(budget.log_bytes);
        let micros = (beyond * BRAKE_MICROS_MAX / budget.log_bytes).min(BRAKE_MICROS_MAX);
        self.shared.brake_micros.store(micros, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_follows_the_target_and_the_measured_rate() {
        let budget = |seconds, rate| Budget::new(Duration::from_secs(seconds), rate, 16 << 20);
        assert_eq!(budget(5, 0), Budget { log_bytes: 250 << 20, pages: 125_000 });
        assert_eq!(budget(5, 400 << 20).log_bytes, 1000 << 20);
        assert_eq!(budget(0, 0), Budget { log_bytes: 64 << 20, pages: 1 });
    }
}
