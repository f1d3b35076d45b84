//! What happens when space ends: who needs more of it fails and says so, who ends something goes on from the reserve (E24).

use std::time::Duration;

use engine_api::{CancelToken, EngineError, EngineResult};
use errors::{Error, ErrorCode};
use sys::blocking::blocking;
use sys::clock::{Clock as _, RealClock};
use sys::disk::is_full;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::error::io_error;
use crate::shared::Shared;

/// Pages that a change of one row may allocate: splits from the leaves to the roots of its trees.
pub(crate) const ROW_PAGES: u64 = 16;
/// Pages that a tree built from its leaves gets at a time.
pub(crate) const GROUP_PAGES: u64 = 64;
/// A change waits so long for a checkpoint to release a part of the log.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Whether the reserve is whole.
#[derive(Default)]
pub(crate) struct Shortage {
    /// Log or checkpoint lack a part of the reserve, and there was no space for it.
    is_short: AtomicBool,
    /// Microseconds of the clock since which it is.
    since: AtomicU64,
}

impl Shared {
    /// Whether the log or the checkpoint lack a part of their reserve.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.shortage.is_short.load(Ordering::Relaxed)
    }

    /// Makes the reserves whole, as far as there is space.
    pub(crate) fn keep_reserves(&self) {
        let lacks_checkpoint = !self.system.has_checkpoint_reserve();
        let made = self.system.log.prepare_segment();
        let made = made.and_then(|()| match lacks_checkpoint {
            true => self.system.make_reserve(),
            false => Ok(()),
        });
        let is_short = made.is_err_and(|error| is_full(&error));
        if is_short && !self.is_short() {
            let now = RealClock::new().monotonic().as_micros() as u64;
            self.shortage.since.store(now, Ordering::Relaxed);
        }
        self.system.log.set_frugal(is_short);
        self.shortage.is_short.store(is_short, Ordering::Relaxed);
        // Who needs pages asks again and says what is missing.
        let _ = self.system.pool.ensure_room(GROUP_PAGES);
    }

    /// Makes sure that `pages` can be allocated. Called without latches by who makes something larger; undo and purge use the reserve.
    #[inline]
    pub(crate) fn room_for(&self, pages: u64) -> EngineResult<()> {
        self.system.pool.ensure_room(pages).map_err(io_error)
    }

    /// Before a change: while the reserve of the log is not whole, a checkpoint may release a part of the log.
    ///
    /// # Errors
    /// It does not.
    #[cold]
    pub(crate) fn wait_for_reserve(&self, cancel: &CancelToken) -> EngineResult<()> {
        let clock = RealClock::new();
        let since = Duration::from_micros(self.shortage.since.load(Ordering::Relaxed));
        while self.is_short() {
            // Without threads nobody takes a checkpoint.
            let is_vain = !self.config.background;
            if is_vain || clock.monotonic().saturating_sub(since) > PATIENCE {
                return Err(self.log_is_full());
            }
            if cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            blocking(|| sys::threads::sleep(PAUSE));
        }
        Ok(())
    }

    /// Between steps of a rollback: it must not use up the log while a checkpoint can release some of it.
    pub(crate) fn spare_log(&self) {
        /// Afterwards it goes on: only more space can help.
        const ROUNDS_MAX: u32 = 500;
        let mut rounds = 0;
        while self.is_short() && self.system.log.reserve_state().0 < 2 && rounds < ROUNDS_MAX {
            blocking(|| sys::threads::sleep(PAUSE));
            rounds += 1;
        }
    }

    /// Whether a part of the reserve is missing, and not only for the moment.
    pub(crate) fn lacks_reserve(&self) -> bool {
        let (wanted, there) = self.system.pool.reserve_state();
        self.is_short() || there < wanted
    }

    /// Bytes that the reserves lack.
    pub(crate) fn missing_bytes(&self) -> u64 {
        let (wanted, there) = self.system.pool.reserve_state();
        let pages = (wanted + ROW_PAGES).saturating_sub(there) * self.config.page_bytes as u64;
        let (there, wanted) = self.system.log.reserve_state();
        pages + wanted.saturating_sub(there) as u64 * self.config.log.segment_bytes
    }

    /// Bytes of the reserves, and how many of them are there.
    pub(crate) fn reserve_bytes(&self) -> (u64, u64) {
        let (pages, pages_there) = self.system.pool.reserve_state();
        let (segments_there, segments) = self.system.log.reserve_state();
        let page_bytes = self.config.page_bytes as u64;
        let bytes = |pages: u64, segments: usize| {
            pages * page_bytes + segments as u64 * self.config.log.segment_bytes
        };
        (bytes(pages, segments), bytes(pages_there, segments_there.min(segments)))
    }

    fn place(&self) -> String {
        match self.disk.space() {
            Some(space) => format!(
                "the file system of '{}' has {} of {} bytes free, and at least {} more are needed",
                space.path,
                space.free_bytes,
                space.total_bytes,
                self.missing_bytes()
                    .saturating_sub(space.free_bytes)
                    .max(self.config.page_bytes as u64),
            ),
            None => format!("{} bytes are missing", self.missing_bytes()),
        }
    }

    /// The error of a table that cannot grow.
    #[cold]
    pub(crate) fn table_is_full(&self, table: &str) -> EngineError {
        let text = format!("The table '{table}' is full: {}", self.place());
        EngineError::Other(Error::new(ErrorCode::RECORD_FILE_FULL, text))
    }

    #[cold]
    fn log_is_full(&self) -> EngineError {
        let text = format!("Disk full (log): {}", self.place());
        EngineError::Other(Error::new(ErrorCode::DISK_FULL, text))
    }
}
