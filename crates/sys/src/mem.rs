//! Large memory regions of words that several threads read and write with atomic accesses only, buffers that a device can fill directly,
//! and hints to the allocator.

use std::alloc::{GlobalAlloc, Layout};
use std::io;
use std::sync::atomic::AtomicU64;

// Links the library that defines `mi_collect`.
use libmimalloc_sys as _;

// SAFETY: the signature is mimalloc's own, and any thread may call it at any time.
unsafe extern "C" {
    safe fn mi_collect(force: bool);
}

/// Returns freed memory that the allocator keeps, also that of ended threads, to the system: for times after which much less
/// is needed. Does nothing with another allocator.
pub fn give_back_freed() {
    mi_collect(true);
}

/// Blocks of this size or more are advised to use huge pages: memory that a query fills with rows, not memory that a connection keeps.
const HUGE_FROM_BYTES: usize = 4 << 20;
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// An allocator that uses huge pages for large blocks, and only for those.
///
/// Each thread's heap touches a little of many pages: as huge pages they made a server with 64 busy connections take four times the memory
/// it used. Without any huge pages, queries that fill memory took a fifth more time, for their page faults.
pub struct Allocator<A>(pub A);

impl<A> Allocator<A> {
    /// Advises the huge pages that are entirely in the block.
    #[inline]
    fn advise(start: *mut u8, size_bytes: usize) {
        if size_bytes >= HUGE_FROM_BYTES && !start.is_null() {
            Self::advise_large(start, size_bytes);
        }
    }

    #[cold]
    fn advise_large(start: *mut u8, size_bytes: usize) {
        let before = start.align_offset(HUGE_PAGE_BYTES);
        let inside = size_bytes.saturating_sub(before) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
        // SAFETY: the range lies in a block that was just allocated, and advice for huge pages changes no byte of it. That it may fail changes
        // nothing either.
        unsafe {
            let first = start.add(before.min(size_bytes));
            let _ = rustix::mm::madvise(first.cast(), inside, rustix::mm::Advice::LinuxHugepage);
        }
    }
}

// SAFETY: every call goes to `A`, whose blocks are returned as they are.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { self.0.alloc(layout) };
        Self::advise(start, layout.size());
        start
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { self.0.dealloc(start, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { self.0.alloc_zeroed(layout) };
        Self::advise(start, layout.size());
        start
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size_bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { self.0.realloc(start, layout, size_bytes) };
        Self::advise(start, size_bytes);
        start
    }
}

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
        // Words cost memory when they are first touched; most of a large region may never be.
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous private mapping aliases nothing; zero bytes are valid AtomicU64 values.
        let start = unsafe {
            let start = mmap_anonymous(std::ptr::null_mut(), size_bytes, protection, flags)?;
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

impl Region {
    /// Returns the memory of these words to the system, as far as they fill pages of it. They stay mapped and become zero, at once or when the system likes.
    ///
    /// # Errors
    /// The system refuses; the memory is kept.
    pub fn give_back(&self, words: std::ops::Range<usize>) -> io::Result<()> {
        const PAGE_WORDS: usize = 4096 / size_of::<AtomicU64>();
        let words = words.start.next_multiple_of(PAGE_WORDS)..words.end / PAGE_WORDS * PAGE_WORDS;
        assert!(words.end <= self.words, "only words of the region are given back");
        if words.is_empty() {
            return Ok(());
        }
        let size_bytes = words.len() * size_of::<AtomicU64>();
        // SAFETY: the range lies in the mapping of this value, which is private and anonymous: its pages become zero, which is a valid value of each word. Threads
        // that read them meanwhile do so through atomics, and see a word from before or zero.
        unsafe {
            let start = self.start.add(words.start);
            rustix::mm::madvise(start.cast(), size_bytes, rustix::mm::Advice::LinuxDontNeed)?;
        }
        Ok(())
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

/// Alignment of `AlignedBytes`, enough for every device's direct transfers.
const ALIGNMENT: usize = 4096;

/// Zeroed bytes of a fixed length, aligned so that files opened for direct transfers need no copy.
pub struct AlignedBytes {
    start: std::ptr::NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value alone and is reached through its borrows only.
unsafe impl Send for AlignedBytes {}
// SAFETY: as above.
unsafe impl Sync for AlignedBytes {}

impl AlignedBytes {
    fn layout(length: usize) -> std::alloc::Layout {
        std::alloc::Layout::from_size_align(length.max(1), ALIGNMENT)
            .expect("a buffer is smaller than the address space")
    }

    /// `length` zero bytes.
    pub fn new(length: usize) -> AlignedBytes {
        let layout = AlignedBytes::layout(length);
        // SAFETY: the layout's size is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let Some(start) = std::ptr::NonNull::new(start) else {
            std::alloc::handle_alloc_error(layout)
        };
        AlignedBytes { start, length }
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with the same layout.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), AlignedBytes::layout(self.length)) }
    }
}

impl std::ops::Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `length` initialised bytes that live as long as self.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl std::ops::DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and self is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}
