//! Reading a page word by word. Every function here is total: on torn bytes it returns a wrong answer, but never panics or loops for long.

use std::cmp::Ordering;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sys::model::step;

use crate::layout::{
    FLAG_LOWER, FLAG_UPPER, Fences, HEADER_WORDS, Kind, PageNo, SLOT_BYTES, W_FENCES, W_KIND,
    W_LINK, W_LSN, W_PAGE, W_SPACE, W_TREE, W_TXN, padded, record_bytes,
};

/// First four bytes of `suffix` as a number that orders like the bytes, zeros appended.
pub fn key_head(suffix: &[u8]) -> u32 {
    match suffix {
        [a, b, c, d, ..] => u32::from_be_bytes([*a, *b, *c, *d]),
        [a, b, c] => u32::from_be_bytes([*a, *b, *c, 0]),
        [a, b] => u32::from_be_bytes([*a, *b, 0, 0]),
        [a] => u32::from_be_bytes([*a, 0, 0, 0]),
        [] => 0,
    }
}

/// A zeroed page in its own memory.
pub fn private_page(page_bytes: usize) -> Box<[AtomicU64]> {
    (0..page_bytes / 8).map(|_| AtomicU64::new(0)).collect()
}

/// A page, shared or private. The number of words is a power of two, so masking keeps every access inside.
#[derive(Clone, Copy)]
pub struct PageRef<'a> {
    words: &'a [AtomicU64],
}

#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub offset: usize,
    pub suffix_len: usize,
    pub head: u32,
}

impl<'a> PageRef<'a> {
    /// Looks at page memory.
    ///
    /// # Panics
    /// When the size is not a power of two.
    pub fn new(words: &'a [AtomicU64]) -> PageRef<'a> {
        assert!(words.len().is_power_of_two());
        PageRef { words }
    }

    /// Page size.
    pub fn size_bytes(self) -> usize {
        self.words.len() * 8
    }

    /// The memory.
    pub fn words(self) -> &'a [AtomicU64] {
        self.words
    }

    #[inline]
    pub(crate) fn word(self, index: usize) -> u64 {
        step();
        self.words[index & (self.words.len() - 1)].load(Relaxed)
    }

    #[inline]
    fn field(self, word: usize, shift: u32) -> usize {
        (self.word(word) >> shift) as usize & 0xFFFF
    }

    /// Kind; `Blank` for unknown bytes.
    #[inline]
    pub fn kind(self) -> Kind {
        match (self.word(W_KIND) >> 32) as u8 {
            1 => Kind::Meta,
            2 => Kind::Node,
            3 => Kind::Free,
            4 => Kind::Blob,
            _ => Kind::Blank,
        }
    }

    /// Height above the leaves.
    #[inline]
    pub fn level(self) -> u8 {
        (self.word(W_KIND) >> 40) as u8
    }

    /// Whether it is a tree page that holds rows.
    pub fn is_leaf(self) -> bool {
        self.level() == 0
    }

    fn flags(self) -> u64 {
        self.word(W_KIND) >> 48
    }

    /// The number it believes to have.
    pub fn number(self) -> PageNo {
        PageNo(self.word(W_PAGE) as u32)
    }

    /// Ticket of its last change.
    pub fn lsn(self) -> u64 {
        self.word(W_LSN)
    }

    /// Tree it belongs to.
    pub fn tree(self) -> u64 {
        self.word(W_TREE)
    }

    /// Next page of a free list or a blob.
    pub fn link(self) -> PageNo {
        PageNo(self.word(W_LINK) as u32)
    }

    /// Largest transaction id that changed the page; bytes used in a blob.
    pub fn max_txn(self) -> u64 {
        self.word(W_TXN)
    }

    /// Number of records, at most as many as fit.
    #[inline]
    pub fn count(self) -> usize {
        self.field(W_SPACE, 0).min(self.words.len() - HEADER_WORDS)
    }

    /// Word `index` after the header, of a page that is not a tree page.
    pub fn body_word(self, index: usize) -> u64 {
        self.word(HEADER_WORDS + index)
    }

    /// Appends `len` bytes from after the header, of a page that is not a tree page.
    pub fn copy_body(self, len: usize, out: &mut Vec<u8>) {
        self.copy_bytes(HEADER_WORDS * 8, len, out);
    }

    pub(crate) fn heap_start(self) -> usize {
        self.field(W_SPACE, 16)
    }

    pub(crate) fn garbage(self) -> usize {
        self.field(W_SPACE, 32)
    }

    /// Bytes of key that every record shares and none stores.
    #[inline]
    pub fn prefix_len(self) -> usize {
        self.field(W_SPACE, 48)
    }

    /// Bytes between slots and heap.
    pub(crate) fn contiguous(self) -> usize {
        let slots_end = (HEADER_WORDS + self.count()) * 8;
        // A heap that starts at the end of a 64 KiB page would not fit 16 bits; pages are at most 32 KiB.
        self.heap_start().saturating_sub(slots_end)
    }

    /// Bytes free after a compaction.
    pub fn free_bytes(self) -> usize {
        self.contiguous() + self.garbage()
    }

    /// Bytes that records, slots and fences take.
    pub fn used_bytes(self) -> usize {
        (self.size_bytes() - HEADER_WORDS * 8).saturating_sub(self.free_bytes())
    }

    #[inline]
    pub(crate) fn slot(self, index: usize) -> Slot {
        let word = self.word(HEADER_WORDS + index);
        Slot {
            offset: (word & 0xFFFF) as usize,
            suffix_len: (word >> 16) as usize & 0xFFFF,
            head: (word >> 32) as u32,
        }
    }

    #[inline]
    fn value_len(self, slot: Slot) -> usize {
        (self.word(slot.offset / 8) & 0xFFFF) as usize
    }

    /// Appends `len` bytes from word-aligned `offset`, at most a page of them.
    pub(crate) fn copy_bytes(self, offset: usize, len: usize, out: &mut Vec<u8>) {
        let len = len.min(self.size_bytes());
        let (first, count) = (offset / 8, padded(len) / 8);
        out.reserve(count * 8);
        let start = out.len();
        let Some(source) = self.words.get(first..first + count) else {
            // Torn bytes: some answer, inside the page.
            for index in 0..count {
                out.extend_from_slice(&self.word(first + index).to_le_bytes());
            }
            return out.truncate(start + len);
        };
        // SAFETY: `count` words after `start` are reserved above and written before the length covers them; `len` is at most that.
        unsafe {
            let target = out.as_mut_ptr().add(start).cast::<u64>();
            for (index, word) in source.iter().enumerate() {
                target.add(index).write_unaligned(word.load(Relaxed).to_le());
            }
            out.set_len(start + len);
        }
    }

    /// Orders the `len` stored bytes at word-aligned `offset` against `key`.
    #[inline]
    fn compare_bytes(self, offset: usize, len: usize, key: &[u8]) -> Ordering {
        let len = len.min(self.size_bytes());
        let first = offset / 8;
        let common = len.min(key.len());
        let mut done = 0;
        while done + 8 <= common {
            let stored = u64::from_be(self.word(first + done / 8).to_le());
            let bytes = key[done..done + 8].try_into().unwrap_or([0; 8]);
            match stored.cmp(&u64::from_be_bytes(bytes)) {
                Ordering::Equal => done += 8,
                unequal => return unequal,
            }
        }
        if done < common {
            let stored = self.word(first + done / 8).to_le_bytes();
            match stored[..common - done].cmp(&key[done..common]) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        len.cmp(&key.len())
    }

    #[inline]
    fn compare_slot(self, slot: Slot, head: u32, suffix: &[u8]) -> Ordering {
        match slot.head.cmp(&head) {
            Ordering::Equal if slot.suffix_len <= 4 && suffix.len() <= 4 => {
                slot.suffix_len.cmp(&suffix.len())
            }
            Ordering::Equal => self.compare_bytes(slot.offset + 8, slot.suffix_len, suffix),
            unequal => unequal,
        }
    }

    /// Total. First slot with a key not below `key` (which must lie within the fences), and whether it equals it.
    #[inline]
    pub fn search(self, key: &[u8]) -> (usize, bool) {
        let suffix = key.get(self.prefix_len()..).unwrap_or(&[]);
        let head = key_head(suffix);
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = (low + high) / 2;
            match self.compare_slot(self.slot(middle), head, suffix) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return (middle, true),
                Ordering::Greater => high = middle,
            }
        }
        (low, false)
    }

    /// Total. Slot of the child that covers `key` in an inner node: the last one with a key not above it.
    #[inline]
    pub fn child_slot(self, key: &[u8]) -> usize {
        match self.search(key) {
            (slot, true) => slot,
            (slot, false) => slot.saturating_sub(1),
        }
    }

    /// Total. Slot of the child that covers the keys just below `key` (`None`: the end of the range).
    pub fn child_slot_below(self, key: Option<&[u8]>) -> usize {
        match key {
            Some(key) => self.search(key).0.saturating_sub(1),
            None => self.count().saturating_sub(1),
        }
    }

    /// Total. Child in a slot of an inner node.
    #[inline]
    pub fn child(self, slot: usize) -> PageNo {
        let slot = self.slot(slot);
        PageNo(self.word((slot.offset + 8 + padded(slot.suffix_len)) / 8) as u32)
    }

    /// Total. Appends the whole page.
    pub fn copy_page(self, out: &mut Vec<u8>) {
        self.copy_bytes(0, self.size_bytes(), out);
    }

    /// Total. Appends the value in a slot.
    #[inline]
    pub fn copy_value(self, slot: usize, out: &mut Vec<u8>) {
        let slot = self.slot(slot);
        let offset = slot.offset + 8 + padded(slot.suffix_len.min(self.size_bytes()));
        self.copy_bytes(offset, self.value_len(slot), out);
    }

    /// Total. Appends the value in a slot without its first `skip` bytes, a multiple of 8.
    #[inline]
    pub fn copy_value_from(self, slot: usize, skip: usize, out: &mut Vec<u8>) {
        let slot = self.slot(slot);
        let offset = slot.offset + 8 + padded(slot.suffix_len.min(self.size_bytes())) + skip;
        self.copy_bytes(offset, self.value_len(slot).saturating_sub(skip), out);
    }

    /// Total. Length of the value in a slot.
    pub fn value_length(self, slot: usize) -> usize {
        self.value_len(self.slot(slot))
    }

    /// Total. Word `index` of the value in a slot.
    #[inline]
    pub fn value_word(self, slot: usize, index: usize) -> u64 {
        let slot = self.slot(slot);
        self.word((slot.offset + 8 + padded(slot.suffix_len)) / 8 + index)
    }

    /// Total. Appends the whole key in a slot, prefix included.
    #[inline]
    pub fn copy_key(self, slot: usize, out: &mut Vec<u8>) {
        let lower = self.field(W_FENCES, 0);
        self.copy_bytes(lower, self.prefix_len(), out);
        let slot = self.slot(slot);
        self.copy_bytes(slot.offset + 8, slot.suffix_len, out);
    }

    /// Appends the key without the prefix.
    pub(crate) fn copy_suffix(self, slot: usize, out: &mut Vec<u8>) {
        let slot = self.slot(slot);
        self.copy_bytes(slot.offset + 8, slot.suffix_len, out);
    }

    /// Whether a record would fit only after a compaction, and that would win so little of a page with many records that the next few
    /// records would each need another: splitting costs less.
    pub fn is_crowded(self, key_len: usize, value_len: usize) -> bool {
        /// Records from which on compacting costs more than the split is worth.
        const MANY: usize = 64;
        /// Share of the page that a compaction must win.
        const GAIN_SHARE: usize = 16;
        let suffix = key_len.saturating_sub(self.prefix_len());
        self.count() >= MANY
            && self.contiguous() < record_bytes(suffix, value_len) + SLOT_BYTES
            && self.free_bytes() < self.size_bytes() / GAIN_SHARE
    }

    /// Bytes from the record at `offset` to the next record in the heap: the record and the garbage after it.
    pub(crate) fn room_at(self, offset: usize) -> usize {
        let (lower, upper) = (self.field(W_FENCES, 0), self.field(W_FENCES, 32));
        let fences = [(lower, self.field(W_FENCES, 16)), (upper, self.field(W_FENCES, 48))];
        let fences = fences.into_iter().filter(|(_, len)| *len > 0).map(|(start, _)| start);
        let slots = self.words[HEADER_WORDS..].iter().take(self.count());
        let records = slots.map(|slot| (slot.load(Relaxed) & 0xFFFF) as usize);
        let next = records.chain(fences).filter(|next| *next > offset).min();
        next.unwrap_or(self.size_bytes()) - offset
    }

    pub(crate) fn slot_record_bytes(self, index: usize) -> usize {
        let slot = self.slot(index);
        8 + padded(slot.suffix_len) + padded(self.value_len(slot))
    }

    /// Whether it has no lower limit.
    pub fn is_leftmost(self) -> bool {
        self.flags() & FLAG_LOWER == 0
    }

    /// Whether it has no upper limit.
    pub fn is_rightmost(self) -> bool {
        self.flags() & FLAG_UPPER == 0
    }

    /// Total. Replaces `out` with the lower fence; false if the page has none.
    pub fn lower_fence(self, out: &mut Vec<u8>) -> bool {
        out.clear();
        let (offset, len) = (self.field(W_FENCES, 0), self.field(W_FENCES, 16));
        self.copy_bytes(offset, len, out);
        !self.is_leftmost()
    }

    /// Total. Replaces `out` with the upper fence; false if the page has none.
    pub fn upper_fence(self, out: &mut Vec<u8>) -> bool {
        out.clear();
        let (offset, len) = (self.field(W_FENCES, 32), self.field(W_FENCES, 48));
        self.copy_bytes(offset, len, out);
        !self.is_rightmost()
    }

    /// Both fences, owned.
    pub fn fences(self) -> Fences {
        let (mut lower, mut upper) = (Vec::new(), Vec::new());
        let has_lower = self.lower_fence(&mut lower);
        let has_upper = self.upper_fence(&mut upper);
        Fences { lower: has_lower.then_some(lower), upper: has_upper.then_some(upper) }
    }

    /// Total. Whether `key` lies within the fences.
    pub fn covers(self, key: &[u8]) -> bool {
        let lower_ok = self.is_leftmost()
            || self.compare_bytes(self.field(W_FENCES, 0), self.field(W_FENCES, 16), key)
                != Ordering::Greater;
        let upper_ok = self.is_rightmost()
            || self.compare_bytes(self.field(W_FENCES, 32), self.field(W_FENCES, 48), key)
                == Ordering::Greater;
        lower_ok && upper_ok
    }

    /// Lists the faults of a tree page that does not change; empty if it is sound.
    pub fn check_node(self) -> Vec<String> {
        let mut wrong = Vec::new();
        let (mut previous, mut key) = (Vec::new(), Vec::new());
        let mut used = 0;
        for slot in 0..self.count() {
            key.clear();
            self.copy_key(slot, &mut key);
            if slot > 0 && previous >= key {
                wrong.push(format!(
                    "page {}: slot {slot} not above the one before",
                    self.number().0
                ));
            }
            if !self.covers(&key) {
                wrong.push(format!("page {}: slot {slot} outside the fences", self.number().0));
            }
            if self.slot(slot).offset < self.heap_start() {
                wrong.push(format!("page {}: slot {slot} points above the heap", self.number().0));
            }
            used += self.slot_record_bytes(slot);
            std::mem::swap(&mut previous, &mut key);
        }
        let fences = padded(self.field(W_FENCES, 16)) + padded(self.field(W_FENCES, 48));
        if self.heap_start() + self.garbage() + used + fences != self.size_bytes() {
            wrong.push(format!("page {}: heap bytes do not add up", self.number().0));
        }
        wrong
    }
}
