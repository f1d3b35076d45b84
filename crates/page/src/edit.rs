//! Changing a page, and replaying the change. The caller holds the page's exclusive latch; sizes are checked before a change begins.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use stdx::bytes::Reader;
use sys::model::step;

use crate::layout::{
    FLAG_LOWER, FLAG_UPPER, Fences, HEADER_WORDS, Kind, PageNo, SLOT_BYTES, W_FENCES, W_KIND,
    W_LINK, W_LSN, W_PAGE, W_SPACE, W_TREE, W_TXN, padded, record_bytes,
};
use crate::read::{PageRef, key_head};

const OP_WRITE: u8 = 1;
const OP_MOVE: u8 = 2;
const OP_ZERO: u8 = 3;
const OP_COMPACT: u8 = 4;
const OP_WORD: u8 = 5;

/// A page that is being changed. Each change is appended to `ops` as well, marked with the page's place in its mini-transaction.
pub struct PageMut<'a> {
    words: &'a [AtomicU64],
    ops: &'a mut Vec<u8>,
    place: u8,
}

fn store_bytes(words: &[AtomicU64], offset: usize, bytes: &[u8]) {
    step();
    // Callers pass word-aligned offsets; the last word is padded with zeros.
    let (chunks, rest) = bytes.as_chunks::<8>();
    let target = &words[offset / 8..][..bytes.len().div_ceil(8)];
    for (word, chunk) in target.iter().zip(chunks) {
        word.store(u64::from_le_bytes(*chunk), Relaxed);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        target[chunks.len()].store(u64::from_le_bytes(word), Relaxed);
    }
}

fn move_words(words: &[AtomicU64], to: usize, from: usize, count: usize) {
    step();
    let (source, target) = (&words[from..from + count], &words[to..to + count]);
    let copy = |index: usize| target[index].store(source[index].load(Relaxed), Relaxed);
    if to <= from {
        (0..count).for_each(copy);
    } else {
        (0..count).rev().for_each(copy);
    }
}

/// Slides live records together so that all garbage becomes contiguous. Deterministic: replay calls it too. `None`, and nothing is done, when
/// the page is not sound.
fn compact(words: &[AtomicU64]) -> Option<()> {
    let page = PageRef::new(words);
    let mut image = vec![0_u64; words.len()];
    let mut end = page.size_bytes();
    let mut take = |offset: usize, len: usize| {
        end = end.checked_sub(len)?;
        let target = image.get_mut(end / 8..)?.get_mut(..len / 8)?;
        for (target, source) in target.iter_mut().zip(words.get(offset / 8..)?) {
            *target = source.load(Relaxed);
        }
        Some(end as u64)
    };
    let fences = page.word(W_FENCES);
    let (lower, lower_len) = (fences & 0xFFFF, fences >> 16 & 0xFFFF);
    let (upper, upper_len) = (fences >> 32 & 0xFFFF, fences >> 48);
    let lower = take(lower as usize, padded(lower_len as usize))?;
    let upper = take(upper as usize, padded(upper_len as usize))?;
    let count = page.count();
    let mut slots = Vec::with_capacity(count);
    for slot in words.get(HEADER_WORDS..)?.get(..count)? {
        let slot = slot.load(Relaxed);
        let (offset, suffix) = ((slot & 0xFFFF) as usize, (slot >> 16 & 0xFFFF) as usize);
        let value = (words.get(offset / 8)?.load(Relaxed) & 0xFFFF) as usize;
        slots.push(slot & !0xFFFF | take(offset, record_bytes(suffix, value))?);
    }
    for (word, value) in words[end / 8..].iter().zip(&image[end / 8..]) {
        word.store(*value, Relaxed);
    }
    for (word, slot) in words[HEADER_WORDS..].iter().zip(slots) {
        word.store(slot, Relaxed);
    }
    words[W_FENCES].store(lower | lower_len << 16 | upper << 32 | upper_len << 48, Relaxed);
    let space = page.word(W_SPACE) & 0xFFFF_0000_0000_FFFF;
    words[W_SPACE].store(space | (end as u64) << 16, Relaxed);
    Some(())
}

impl<'a> PageMut<'a> {
    /// Edits page memory; `ops` collects the redo operations of page number `place` of the mini-transaction.
    pub fn new(words: &'a [AtomicU64], ops: &'a mut Vec<u8>, place: u8) -> PageMut<'a> {
        debug_assert!(place < PLACES_MAX, "a place fits the mask of `touched`");
        PageMut { words, ops, place }
    }

    /// For reading.
    pub fn page(&self) -> PageRef<'_> {
        PageRef::new(self.words)
    }

    fn op(&mut self, code: u8) {
        self.ops.extend_from_slice(&[code, self.place]);
    }

    fn set_word(&mut self, index: usize, value: u64) {
        if self.words[index].load(Relaxed) == value {
            return;
        }
        step();
        self.words[index].store(value, Relaxed);
        self.op(OP_WORD);
        self.ops.extend_from_slice(&(index as u16).to_le_bytes());
        self.ops.extend_from_slice(&value.to_le_bytes());
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        debug_assert!(offset.is_multiple_of(8), "replay writes whole words");
        store_bytes(self.words, offset, bytes);
        self.op(OP_WRITE);
        self.ops.extend_from_slice(&(offset as u16).to_le_bytes());
        self.ops.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        self.ops.extend_from_slice(bytes);
    }

    fn move_slots(&mut self, to: usize, from: usize, count: usize) {
        if count == 0 {
            return;
        }
        let (to, from) = (HEADER_WORDS + to, HEADER_WORDS + from);
        move_words(self.words, to, from, count);
        self.op(OP_MOVE);
        for field in [to, from, count] {
            self.ops.extend_from_slice(&(field as u16).to_le_bytes());
        }
    }

    /// Sets the number of slots, the start of the heap and its garbage.
    ///
    /// # Panics
    /// When slots and heap would overlap, or the garbage be larger than the heap: the page would be lost to its next change.
    fn update_space(&mut self, count: usize, heap: usize, garbage: usize) {
        assert!((HEADER_WORDS + count) * 8 <= heap, "slots and heap do not overlap");
        assert!(heap + garbage <= self.page().size_bytes(), "garbage is a part of the heap");
        let prefix = self.page().prefix_len() as u64;
        let word = count as u64 | (heap as u64) << 16 | (garbage as u64) << 32 | prefix << 48;
        self.set_word(W_SPACE, word);
    }

    /// Empties the page and gives it a kind, a level and a tree.
    pub fn format(&mut self, no: PageNo, kind: Kind, level: u8, tree: u64) {
        self.words.iter().for_each(|word| word.store(0, Relaxed));
        self.op(OP_ZERO);
        self.set_word(W_KIND, (kind as u64) << 32 | u64::from(level) << 40);
        self.set_word(W_PAGE, u64::from(no.0));
        self.set_word(W_TREE, tree);
        self.set_word(W_SPACE, (self.page().size_bytes() as u64) << 16);
    }

    /// Replaces everything on the page except its checksum with the content of `image`, which does not change: few operations however it was
    /// built.
    pub fn put_image(&mut self, image: PageRef<'_>) {
        assert_eq!(image.size_bytes(), self.page().size_bytes(), "an image is a whole page");
        sys::unmodelled! {
            debug_assert!(image.kind() != Kind::Blank, "an image is of a formatted page");
        }
        sys::unmodelled! {
            debug_assert_eq!(image.check_node(), Vec::<String>::new(), "an image is a sound node");
        }
        self.words.iter().for_each(|word| word.store(0, Relaxed));
        self.op(OP_ZERO);
        let (front, heap) = ((HEADER_WORDS + image.count()) * 8, image.heap_start());
        let mut bytes = Vec::with_capacity(image.size_bytes());
        image.copy_bytes(0, front, &mut bytes);
        self.write(0, &bytes);
        bytes.clear();
        image.copy_bytes(heap, image.size_bytes() - heap, &mut bytes);
        self.write(heap, &bytes);
    }

    /// Gives the rightmost node of a level an upper fence without moving its records: their shared prefix stays empty. False, and
    /// nothing changed, when it does not fit or the node has one.
    pub fn close_above(&mut self, upper: &[u8]) -> bool {
        let bytes = padded(upper.len());
        if !self.page().is_rightmost() || self.page().contiguous() < bytes || upper.is_empty() {
            return false;
        }
        sys::unmodelled! {
            debug_assert!(
                self.page().count() == 0 || self.page().search(upper).0 == self.page().count(),
                "an upper fence is above every key"
            );
        }
        let heap = self.page().heap_start() - bytes;
        self.write(heap, upper);
        let fences = self.page().word(W_FENCES) & 0xFFFF_FFFF;
        self.set_word(W_FENCES, fences | (heap as u64) << 32 | (upper.len() as u64) << 48);
        let kind = self.page().word(W_KIND);
        self.set_word(W_KIND, kind | FLAG_UPPER << 48);
        let (count, garbage) = (self.page().count(), self.page().garbage());
        self.update_space(count, heap, garbage);
        true
    }

    /// Formats a tree page that covers `fences`.
    ///
    /// # Panics
    /// If no key fits between the fences.
    pub fn format_node(&mut self, no: PageNo, level: u8, tree: u64, fences: &Fences) {
        if let (Some(lower), Some(upper)) = (&fences.lower, &fences.upper) {
            assert!(lower < upper, "a node covers a range of keys");
        }
        self.format(no, Kind::Node, level, tree);
        let mut heap = self.page().size_bytes();
        let mut flags = 0;
        let mut place = |this: &mut Self, fence: &Option<Vec<u8>>, flag: u64| {
            let bytes = fence.as_deref().unwrap_or(&[]);
            heap -= padded(bytes.len());
            if fence.is_some() {
                flags |= flag;
            }
            if !bytes.is_empty() {
                this.write(heap, bytes);
            }
            heap as u64 | (bytes.len() as u64) << 16
        };
        let lower = place(self, &fences.lower, FLAG_LOWER);
        let upper = place(self, &fences.upper, FLAG_UPPER);
        self.set_word(W_FENCES, lower | upper << 32);
        let kind = self.page().word(W_KIND);
        self.set_word(W_KIND, kind & 0x0000_FFFF_FFFF_FFFF | flags << 48);
        let prefix = fences.prefix_length() as u64;
        self.set_word(W_SPACE, (heap as u64) << 16 | prefix << 48);
    }

    /// Sets the link to the next page.
    pub fn set_link(&mut self, next: PageNo) {
        self.set_word(W_LINK, u64::from(next.0));
    }

    /// Sets the largest transaction id, or the bytes used in a blob.
    pub fn set_max_txn(&mut self, value: u64) {
        self.set_word(W_TXN, value);
    }

    /// Stores raw bytes after the header of a page that is not a tree page.
    pub fn write_body(&mut self, offset: usize, bytes: &[u8]) {
        debug_assert!(offset.is_multiple_of(8), "replay writes whole words");
        debug_assert!(
            self.page().kind() != Kind::Node,
            "a node has slots where others have a body"
        );
        self.write(HEADER_WORDS * 8 + offset, bytes);
    }

    /// Whether a record would fit at its place, perhaps after a compaction.
    pub fn fits(&self, key_len: usize, value_len: usize) -> bool {
        let suffix = key_len.saturating_sub(self.page().prefix_len());
        record_bytes(suffix, value_len) + SLOT_BYTES <= self.page().free_bytes()
    }

    fn allocate(&mut self, bytes: usize, extra_slots: usize) -> usize {
        if self.page().contiguous() < bytes + extra_slots * SLOT_BYTES {
            #[cfg(not(any(loom, shuttle)))]
            let free = self.page().free_bytes();
            compact(self.words).expect("a page that is edited is sound");
            self.op(OP_COMPACT);
            sys::unmodelled! {
                assert_eq!(self.page().contiguous(), free, "compaction makes all garbage contiguous");
            }
        }
        sys::unmodelled! {
            assert!(
                self.page().contiguous() >= bytes + extra_slots * SLOT_BYTES,
                "the caller has checked that the record fits"
            );
        }
        self.page().heap_start() - bytes
    }

    fn write_record(&mut self, offset: usize, suffix: &[u8], value: &[u8]) {
        // Built in the log record, stored from there.
        let length = 8 + padded(suffix.len()) + value.len();
        self.ops.reserve(length + 64);
        self.op(OP_WRITE);
        self.ops.extend_from_slice(&(offset as u16).to_le_bytes());
        self.ops.extend_from_slice(&(length as u16).to_le_bytes());
        let start = self.ops.len();
        self.ops.extend_from_slice(&(value.len() as u64).to_le_bytes());
        self.ops.extend_from_slice(suffix);
        self.ops.resize(start + 8 + padded(suffix.len()), 0);
        self.ops.extend_from_slice(value);
        store_bytes(self.words, offset, &self.ops[start..]);
    }

    /// Inserts a record at `slot`, the place that `PageRef::search` returns. False, without a change, if it does not fit.
    ///
    /// # Panics
    /// When `slot` is beyond the last record.
    pub fn insert(&mut self, slot: usize, key: &[u8], value: &[u8]) -> bool {
        sys::unmodelled! {
            assert!(slot <= self.page().count(), "a record goes between others or after the last");
        }
        sys::unmodelled! {
            debug_assert!(self.page().covers(key), "a key is within the node's fences");
        }
        sys::unmodelled! {
            debug_assert_eq!(self.page().search(key), (slot, false), "keys are unique and in order");
        }
        if !self.fits(key.len(), value.len()) {
            return false;
        }
        let suffix = &key[self.page().prefix_len()..];
        let bytes = record_bytes(suffix.len(), value.len());
        let offset = self.allocate(bytes, 1);
        let (count, garbage) = (self.page().count(), self.page().garbage());
        self.write_record(offset, suffix, value);
        self.move_slots(slot + 1, slot, count - slot);
        self.set_slot(slot, offset, suffix);
        self.update_space(count + 1, offset, garbage);
        sys::unmodelled! {
            debug_assert_eq!(self.page().search(key), (slot, true), "the inserted key is found");
        }
        true
    }

    fn set_slot(&mut self, slot: usize, offset: usize, suffix: &[u8]) {
        let head = u64::from(key_head(suffix));
        self.set_word(
            HEADER_WORDS + slot,
            offset as u64 | (suffix.len() as u64) << 16 | head << 32,
        );
    }

    /// Replaces the value at `slot`. False, and nothing changed, when it does not fit.
    ///
    /// # Panics
    /// If no such record exists.
    pub fn replace_value(&mut self, slot: usize, value: &[u8]) -> bool {
        sys::unmodelled! {
            assert!(slot < self.page().count(), "the record exists");
        }
        let at = self.page().slot(slot);
        let old = self.page().slot_record_bytes(slot);
        let bytes = record_bytes(at.suffix_len, value.len());
        if bytes == old {
            if self.page().value_length(slot) != value.len() {
                self.set_word(at.offset / 8, value.len() as u64);
            }
            self.write_changed(at.offset + 8 + padded(at.suffix_len), value);
            return true;
        }
        if bytes < old {
            // In its place: the next compaction reclaims the bytes after it.
            self.set_word(at.offset / 8, value.len() as u64);
            self.write_changed(at.offset + 8 + padded(at.suffix_len), value);
            let (count, heap) = (self.page().count(), self.page().heap_start());
            self.update_space(count, heap, self.page().garbage() + old - bytes);
            return true;
        }
        if bytes > self.page().free_bytes() + old {
            return false;
        }
        let (count, heap, garbage) =
            (self.page().count(), self.page().heap_start(), self.page().garbage());
        if bytes - old <= garbage && bytes <= self.page().room_at(at.offset) {
            // Space left after a shorter value: a deleted row that is inserted again needs no other place, and the page no compaction.
            self.set_word(at.offset / 8, value.len() as u64);
            self.write_changed(at.offset + 8 + padded(at.suffix_len), value);
            self.update_space(count, heap, garbage - (bytes - old));
            return true;
        }
        let mut suffix = Vec::new();
        self.page().copy_suffix(slot, &mut suffix);
        self.remove(slot);
        let offset = self.allocate(bytes, 1);
        let (count, garbage) = (self.page().count(), self.page().garbage());
        self.write_record(offset, &suffix, value);
        self.move_slots(slot + 1, slot, count - slot);
        self.set_slot(slot, offset, &suffix);
        self.update_space(count + 1, offset, garbage);
        true
    }

    /// Writes only runs of changed words: most updates touch the row's head and a few columns.
    fn write_changed(&mut self, offset: usize, bytes: &[u8]) {
        /// Equal words between two runs that cost less than the head of another write.
        const GAP_WORDS: usize = 1;
        let (chunks, rest) = bytes.as_chunks::<8>();
        let mut last_word = [0; 8];
        last_word[..rest.len()].copy_from_slice(rest);
        let tail = (!rest.is_empty()).then_some(&last_word);
        let stored = &self.words[offset / 8..];
        let changed = |(index, chunk): (usize, &[u8; 8])| {
            (stored[index].load(Relaxed) != u64::from_le_bytes(*chunk)).then_some(index * 8)
        };
        let mut run: Option<(usize, usize)> = None;
        for start in chunks.iter().chain(tail).enumerate().filter_map(changed) {
            let end = bytes.len().min(start + 8);
            run = match run {
                Some((first, last)) if start <= last + GAP_WORDS * 8 => Some((first, end)),
                Some((first, last)) => {
                    self.write(offset + first, &bytes[first..last]);
                    Some((start, end))
                }
                None => Some((start, end)),
            };
        }
        if let Some((first, last)) = run {
            self.write(offset + first, &bytes[first..last]);
        }
    }

    /// Overwrites one word of the value at `slot`.
    ///
    /// # Panics
    /// When the record or its word does not exist.
    pub fn set_value_word(&mut self, slot: usize, index: usize, value: u64) {
        sys::unmodelled! {
            assert!(slot < self.page().count(), "the record exists");
        }
        let at = self.page().slot(slot);
        sys::unmodelled! {
            assert!(index * 8 < self.page().value_length(slot), "the word is a part of the value");
        }
        self.set_word((at.offset + 8 + padded(at.suffix_len)) / 8 + index, value);
    }

    /// Removes the record at `slot`.
    ///
    /// # Panics
    /// If no such record exists.
    pub fn remove(&mut self, slot: usize) {
        sys::unmodelled! {
            assert!(slot < self.page().count(), "the record exists");
        }
        let bytes = self.page().slot_record_bytes(slot);
        let (count, heap, garbage) =
            (self.page().count(), self.page().heap_start(), self.page().garbage());
        self.move_slots(slot, slot + 1, count - slot - 1);
        self.update_space(count - 1, heap, garbage + bytes);
    }

    /// Sets the ticket of the mini-transaction. Not part of the operations: replay sets it from the record.
    ///
    /// # Panics
    /// When the page has seen a later one: tickets of a page grow, because they are drawn under its latch (W1 of `wal`).
    pub fn set_lsn(words: &[AtomicU64], ticket: u64) {
        assert!(ticket > words[W_LSN].load(Relaxed), "the changes of a page have growing tickets");
        words[W_LSN].store(ticket, Relaxed);
    }
}

/// Replays the operations that belong to page `place`. `None` when they are malformed: the log is damaged.
pub fn apply_ops(words: &[AtomicU64], ops: &[u8], place: u8) -> Option<()> {
    let mut reader = Reader::new(ops);
    while !reader.is_empty() {
        let code = reader.u8()?;
        let mine = reader.u8()? == place;
        match code {
            OP_WRITE => {
                let (offset, len) = (reader.u16()? as usize, reader.u16()? as usize);
                let bytes = reader.take(len)?;
                if mine {
                    words.get(offset / 8..(offset + padded(len)) / 8)?;
                    store_bytes(words, offset, bytes);
                }
            }
            OP_MOVE => {
                let (to, from) = (reader.u16()? as usize, reader.u16()? as usize);
                let count = reader.u16()? as usize;
                if mine {
                    words.get(to.max(from)..to.max(from) + count)?;
                    move_words(words, to, from, count);
                }
            }
            OP_ZERO if mine => words.iter().for_each(|word| word.store(0, Relaxed)),
            OP_COMPACT if mine => compact(words)?,
            OP_ZERO | OP_COMPACT => {}
            OP_WORD => {
                let (index, value) = (reader.u16()? as usize, reader.u64()?);
                if mine {
                    words.get(index)?.store(value, Relaxed);
                }
            }
            _ => return None,
        }
    }
    Some(())
}

/// Places of a mini-transaction's pages at most: they fit a mask.
const PLACES_MAX: u8 = 64;

/// The effects of operations on the pages of a mini-transaction, as masks of places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Pages with any operation.
    pub any: u64,
    /// Pages emptied by their first operation, so that their former content does not matter.
    pub blank: u64,
}

/// Looks through operations; `None` when they are malformed.
pub fn touched(ops: &[u8]) -> Option<Touched> {
    let mut reader = Reader::new(ops);
    let mut touched = Touched::default();
    while !reader.is_empty() {
        let code = reader.u8()?;
        let place = reader.u8()?;
        if place >= PLACES_MAX {
            return None;
        }
        let bit = 1 << place;
        if code == OP_ZERO && touched.any & bit == 0 {
            touched.blank |= bit;
        }
        touched.any |= bit;
        match code {
            OP_WRITE => {
                reader.u16()?;
                let len = reader.u16()? as usize;
                reader.take(len)?;
            }
            OP_MOVE => {
                reader.take(6)?;
            }
            OP_WORD => {
                reader.take(10)?;
            }
            _ => {}
        }
    }
    Some(touched)
}
