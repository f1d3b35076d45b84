//! Which frames may hold changes that are not on disk: a bit each, so that looking through the dirty ones does not pass all frames.
//!
//! Independent of pages. Rule B14 of the README.

use sys::model::breaks;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

const BITS: usize = 64;

/// See the file's head.
pub(crate) struct DirtySet {
    words: Box<[AtomicU64]>,
    /// One scan at a time: a scan clears bits and may set them again.
    pub look: Mutex<()>,
}

impl DirtySet {
    /// Nothing is dirty.
    pub fn new(frames: usize) -> DirtySet {
        let words = (0..frames.div_ceil(BITS)).map(|_| AtomicU64::new(0)).collect();
        DirtySet { words, look: Mutex::new(()) }
    }

    /// A frame got its first change; that was stored before. Always a read-modify-write, so that it is ordered with the one of a scan.
    pub fn mark(&self, frame: u32) {
        let frame = frame as usize;
        self.words[frame / BITS].fetch_or(1 << (frame % BITS), Ordering::AcqRel);
    }

    /// The change in `from`, if any, is one in `to` from now on, which belongs to `frame`. No other thread changes the two meanwhile.
    pub fn carry(&self, from: &AtomicU64, to: &AtomicU64, frame: u32) {
        // A scan that passed the new frame already and comes to the old one later would miss the change.
        let _no_scan = (!breaks("no scan while a page moves")).then(|| self.look.lock());
        let first = from.load(Ordering::Acquire); // pairs with the store of `mark_dirty`
        if first != 0 {
            to.store(first, Ordering::Release); // pairs with the loads of scans
            self.mark(frame);
            from.store(0, Ordering::Release); // pairs with the loads of scans
        }
    }

    /// Shows the marked ones of the first `frames`, which it asks for while no page moves, for which `oldest` is not zero. The marks of others go.
    pub fn each(
        &self,
        frames: impl Fn() -> usize,
        oldest: impl Fn(u32) -> u64,
        mut visit: impl FnMut(u32, u64),
    ) {
        let _only = self.look.lock();
        for (index, word) in self.words.iter().enumerate().take(frames().div_ceil(BITS)) {
            let mut rest = word.load(Ordering::Acquire);
            let mut clean = 0;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                let frame = (index * BITS) as u32 + bit;
                match oldest(frame) {
                    0 => clean |= 1 << bit,
                    ticket => visit(frame, ticket),
                }
            }
            if clean == 0 {
                continue;
            }
            word.fetch_and(!clean, Ordering::AcqRel);
            // A thread that marked in between relies on the mark.
            let mut again = 0;
            while clean != 0 && !breaks("look again") {
                let bit = clean.trailing_zeros();
                clean &= clean - 1;
                let frame = (index * BITS) as u32 + bit;
                let ticket = oldest(frame);
                if ticket != 0 {
                    again |= 1 << bit;
                    visit(frame, ticket);
                }
            }
            if again != 0 {
                word.fetch_or(again, Ordering::AcqRel);
            }
        }
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}
