//! Blocks for pages before anybody needs them: a page that was allocated can always be written, so that a full file system keeps neither
//! checkpoints nor rollbacks from going on (B16).

use std::io;

use sys::disk::is_full;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

use crate::pool::Pool;

/// Pages that the file grows by: a share of it, within these bounds.
const GROWTH_SHARE: u64 = 16;
const GROWTH_MIN: u64 = 64;
const GROWTH_MAX: u64 = 4096;

/// Pages of the file by what they are for.
#[derive(Default)]
pub(crate) struct Room {
    /// Pages below this number have blocks.
    reserved: AtomicU64,
    /// Pages below this number were allocated, as the meta page says.
    allocated: AtomicU64,
    /// Of those, the ones on the free list.
    free: AtomicU64,
    /// One thread at a time makes the file larger.
    growing: Mutex<()>,
}

impl Pool {
    /// Tells the pool what the meta page says: after it was read or changed, under its latch.
    pub fn note_pages(&self, allocated: u64, free: u64) {
        self.room.allocated.store(allocated, Ordering::Relaxed);
        self.room.free.store(free, Ordering::Relaxed);
    }

    /// Pages that can be allocated without more space.
    pub fn room_pages(&self) -> u64 {
        let room = &self.room;
        let behind = room.reserved.load(Ordering::Relaxed);
        behind.saturating_sub(room.allocated.load(Ordering::Relaxed))
            + room.free.load(Ordering::Relaxed)
    }

    /// Pages of the reserve, and how many of them there are now.
    pub fn reserve_state(&self) -> (u64, u64) {
        (self.config.reserve_pages, self.room_pages().min(self.config.reserve_pages))
    }

    /// Makes sure that `pages` can be allocated besides the reserve. Callers hold no latches.
    ///
    /// # Errors
    /// `StorageFull`, `QuotaExceeded`; I/O.
    #[inline]
    pub fn ensure_room(&self, pages: u64) -> io::Result<()> {
        match self.room_pages() >= self.config.reserve_pages + pages {
            true => Ok(()),
            false => self.grow(pages),
        }
    }

    #[cold]
    fn grow(&self, pages: u64) -> io::Result<()> {
        let _one = self.room.growing.lock();
        let room = self.room_pages();
        let wanted = self.config.reserve_pages + pages;
        let Some(missing) = wanted.checked_sub(room).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let allocated = self.room.allocated.load(Ordering::Relaxed);
        let mut more = (allocated / GROWTH_SHARE).clamp(GROWTH_MIN, GROWTH_MAX);
        loop {
            match self.reserve_more(missing + more) {
                Err(error) if is_full(&error) && more > 0 => more /= 4,
                outcome => return outcome,
            }
        }
    }

    /// Gives the page blocks, if it has none yet. For a caller that holds the latch of the meta page.
    ///
    /// # Errors
    /// As `ensure_room`.
    pub fn reserve_page(&self, no: u64) -> io::Result<()> {
        let reserved = self.room.reserved.load(Ordering::Relaxed);
        match no < reserved {
            true => Ok(()),
            // Callers that asked for room do not come here.
            false => self.reserve_to(reserved, no + 1),
        }
    }

    fn reserve_more(&self, pages: u64) -> io::Result<()> {
        let reserved = self.room.reserved.load(Ordering::Relaxed);
        let from = reserved.max(self.room.allocated.load(Ordering::Relaxed));
        self.reserve_to(reserved, from + pages)
    }

    fn reserve_to(&self, from: u64, to: u64) -> io::Result<()> {
        let page_bytes = self.config.page_bytes as u64;
        let to = to.min(self.config.pages_max as u64);
        if to <= from {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.reserve(from * page_bytes, (to - from) * page_bytes)?;
        let before = self.room.reserved.fetch_max(to, Ordering::Relaxed);
        assert!(from <= before, "no page below the reserved ones is left out (B16)");
        Ok(())
    }

    /// At the start: blocks for all pages of the file, which an earlier version may have left out, for the batch of the page writer, and for the
    /// reserve.
    ///
    /// # Errors
    /// As `ensure_room`; everything else works, and what is missing is asked for again by who needs it.
    pub fn reserve_at_start(&self) -> io::Result<()> {
        let allocated = self.room.allocated.load(Ordering::Relaxed);
        if allocated > self.room.reserved.load(Ordering::Relaxed) {
            self.reserve_to(0, allocated)?;
        }
        if self.config.doublewrite {
            self.writer.lock().reserve()?;
        }
        self.ensure_room(0)
    }
}
