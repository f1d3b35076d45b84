//! Large memory regions of words that several threads read and write with atomic accesses only.

use std::io;
use std::sync::atomic::AtomicU64;

/// Zeroed words, page-aligned, mapped for the life of the value and advised to use huge pages.
pub struct Region {
    start: *mut AtomicU64,
    words: usize,
}

// SAFETY: the region is only reachable as `&[AtomicU64]`, which is Send and Sync; the mapping belongs to this value alone.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps `words` zeroed words.
    ///
    /// # Errors
    /// Not enough address space.
    pub fn map(words: usize) -> io::Result<Region> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        let size_bytes = words * size_of::<AtomicU64>();
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh anonymous private mapping aliases nothing; zero bytes are valid AtomicU64 values.
        let start = unsafe {
            let start =
                mmap_anonymous(std::ptr::null_mut(), size_bytes, protection, MapFlags::PRIVATE)?;
            // Advice only: without huge pages the region works, slower.
            let _ = madvise(start, size_bytes, Advice::LinuxHugepage);
            start
        };
        Ok(Region { start: start.cast(), words })
    }

    /// The words.
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `start` is valid for `words` words until drop, and all access is through shared atomics.
        unsafe { std::slice::from_raw_parts(self.start, self.words) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `map`; no borrow of it can outlive self.
        unsafe {
            let _ = rustix::mm::munmap(self.start.cast(), self.words * size_of::<AtomicU64>());
        }
    }
}
