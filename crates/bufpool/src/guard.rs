//! Ways to hold a page: optimistic without a latch, shared, exclusive.

use std::sync::atomic::{AtomicU64, Ordering};

use page::{PageNo, PageRef};

use crate::pool::{Entry, Pool};

/// An optimistic read without a latch. Its data is valid only if `validate` says so afterwards (B3).
#[derive(Clone, Copy)]
pub struct Optimistic<'p> {
    pub(crate) pool: &'p Pool,
    pub(crate) entry: &'p Entry,
    pub(crate) number: PageNo,
    pub(crate) frame: u32,
    pub(crate) version: u64,
}

impl<'p> Optimistic<'p> {
    /// The bytes, possibly changing.
    #[inline]
    pub fn page(&self) -> PageRef<'p> {
        PageRef::new(self.pool.frame_words(self.frame))
    }

    /// Number of the page.
    pub fn number(&self) -> PageNo {
        self.number
    }

    /// Version of the page; never recurs with other bytes (B2).
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether everything read so far was one state.
    #[inline]
    pub fn validate(&self) -> bool {
        self.entry.latch.validate(self.version)
    }

    /// The exclusive latch, when the page has not changed since.
    pub fn upgrade(self) -> Option<Exclusive<'p>> {
        self.entry.latch.upgrade(self.version).then(|| Exclusive {
            pool: self.pool,
            entry: self.entry,
            number: self.number,
            frame: self.frame,
        })
    }

    /// The shared latch, when the page has not changed since. Does not wait for a writer.
    pub fn share(self) -> Option<Shared<'p>> {
        if !self.entry.latch.try_lock_shared() {
            return None;
        }
        let shared = Shared { pool: self.pool, entry: self.entry, frame: self.frame };
        // A failed validation drops `shared`, which unlocks.
        self.entry.latch.validate(self.version).then_some(shared)
    }
}

/// The shared latch: the page does not change.
pub struct Shared<'p> {
    pool: &'p Pool,
    entry: &'p Entry,
    frame: u32,
}

impl<'p> Shared<'p> {
    /// The bytes.
    pub fn page(&self) -> PageRef<'_> {
        PageRef::new(self.pool.frame_words(self.frame))
    }

    /// Copies the page into private memory of the same size.
    pub fn copy_to(&self, target: &[AtomicU64]) {
        crate::flush::copy_between(self.pool.frame_words(self.frame), target);
    }
}

impl Drop for Shared<'_> {
    fn drop(&mut self) {
        self.entry.latch.unlock_shared();
    }
}

/// The exclusive latch: the page may be changed.
pub struct Exclusive<'p> {
    pub(crate) pool: &'p Pool,
    pub(crate) entry: &'p Entry,
    pub(crate) number: PageNo,
    pub(crate) frame: u32,
}

impl<'p> Exclusive<'p> {
    /// The bytes, for reading.
    pub fn page(&self) -> PageRef<'p> {
        PageRef::new(self.pool.frame_words(self.frame))
    }

    /// The bytes, for `PageMut`.
    pub fn words(&self) -> &'p [AtomicU64] {
        self.pool.frame_words(self.frame)
    }

    /// Number of the page.
    pub fn number(&self) -> PageNo {
        self.number
    }

    /// Marks the page changed. `ticket_floor` is at or below the ticket that the change will draw, and is stored before it is drawn (B6).
    pub fn mark_dirty(&self, ticket_floor: u64) {
        let descriptor = self.pool.descriptor(self.frame);
        sys::unmodelled! {
            debug_assert_eq!(
                descriptor.page.load(Ordering::Relaxed),
                self.number.0,
                "a frame keeps its page while the page is latched (B4)"
            );
        }
        let first_change = &descriptor.first_change;
        if first_change.load(Ordering::Relaxed) == 0 {
            // Release pairs with the acquire load of the page writer and of the checkpoint.
            first_change.store(ticket_floor.max(1), Ordering::Release);
            self.pool.marks.mark(self.frame);
            self.pool.dirty.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        self.entry.latch.unlock_exclusive();
    }
}
