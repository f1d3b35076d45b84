//! Lists of keys and the rows found for them.

use crate::{RowBatch, RowBuf, RowRef};

/// Keys that one call may look up.
pub const LOOKUPS_MAX: usize = 1_000;

/// Keys of one index, bytes side by side in one buffer.
#[derive(Clone, Debug, Default)]
pub struct KeyList {
    bytes: Vec<u8>,
    /// Where each key ends; it starts at the end of the one before.
    ends: Vec<usize>,
}

impl KeyList {
    /// Forgets the keys, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends a key.
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// The buffer to which the bytes of the next key are appended, before `end_key` or `abandon_key`.
    pub fn begin_key(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The key that was begun is complete.
    pub fn end_key(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Forgets the bytes of a key that was begun.
    pub fn abandon_key(&mut self) {
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Key `index`, counted from 0.
    ///
    /// # Panics
    /// If no such key exists.
    #[inline]
    pub fn key(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    /// All keys in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.key(index))
    }

    /// The places of the keys in ascending order of the keys. `order` is replaced.
    pub fn sort_into(&self, order: &mut Vec<u32>) {
        order.clear();
        order.extend(0..self.len() as u32);
        if !self.iter().is_sorted() {
            order.sort_unstable_by(|a, b| self.key(*a as usize).cmp(self.key(*b as usize)));
        }
    }
}

/// What `Transaction::get_many` found.
#[derive(Clone, Debug, Default)]
pub struct FoundRows {
    rows: RowBatch,
    /// For each key the place of its row in `rows`; `NO_ROW` for none.
    places: Vec<u32>,
}

const NO_ROW: u32 = u32::MAX;

impl FoundRows {
    /// Forgets the rows, and expects those of `keys` keys, none of which has one yet.
    pub fn reset(&mut self, keys: usize) {
        self.rows.clear();
        self.places.clear();
        self.places.resize(keys, NO_ROW);
    }

    /// Puts the row of key `key`, which `fill` appends to the batch.
    ///
    /// # Panics
    /// If there are not so many keys.
    #[inline]
    pub fn put_with(&mut self, key: usize, fill: impl FnOnce(&mut RowBatch)) {
        let place = self.rows.len();
        fill(&mut self.rows);
        debug_assert_eq!(self.rows.len(), place + 1, "a key has one row");
        self.places[key] = place as u32;
    }

    /// Puts the row of key `key`.
    pub fn put(&mut self, key: usize, row: RowRef<'_>) {
        self.put_with(key, |rows| rows.push(row.locator, row.record));
    }

    /// Number of keys.
    pub fn keys(&self) -> usize {
        self.places.len()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no key has a row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.rows.size_bytes()
    }

    /// The row of key `key`.
    ///
    /// # Panics
    /// If there are not so many keys.
    #[inline]
    pub fn row(&self, key: usize) -> Option<RowRef<'_>> {
        let place = self.places[key];
        (place != NO_ROW).then(|| self.rows.row(place as usize))
    }

    /// Gives the rows in the order of their keys to `batch`, which is empty.
    pub fn give_to(&mut self, batch: &mut RowBatch) {
        debug_assert!(batch.is_empty(), "rows are given to an empty batch");
        let present = self.places.iter().filter(|place| **place != NO_ROW);
        if present.is_sorted() {
            std::mem::swap(&mut self.rows, batch);
        } else {
            for row in (0..self.keys()).filter_map(|key| self.row(key)) {
                batch.push(row.locator, row.record);
            }
        }
        self.reset(0);
    }
}

/// One look-up after the other: what `Transaction::get_many` does unless an engine knows better.
pub(crate) fn get_one_by_one<E>(
    keys: &KeyList,
    out: &mut FoundRows,
    mut get: impl FnMut(&[u8], &mut RowBuf) -> Result<bool, E>,
) -> Result<(), E> {
    out.reset(keys.len());
    let mut row = RowBuf::default();
    for (at, key) in keys.iter().enumerate() {
        if get(key, &mut row)? {
            out.put(at, row.as_row());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_kept_apart_and_sorted() {
        let mut keys = KeyList::default();
        keys.push(b"b");
        keys.begin_key().extend_from_slice(b"half");
        keys.abandon_key();
        keys.push(b"");
        keys.begin_key().extend_from_slice(b"ab");
        keys.end_key();
        assert_eq!(keys.iter().collect::<Vec<_>>(), [b"b".as_slice(), b"", b"ab"]);
        let mut order = vec![7];
        keys.sort_into(&mut order);
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn rows_come_in_the_order_of_keys() {
        let mut found = FoundRows::default();
        found.reset(3);
        found.put(2, RowRef { locator: b"k2", record: b"r2" });
        found.put(0, RowRef { locator: b"k0", record: b"r0" });
        assert!(found.row(1).is_none());
        assert_eq!(found.row(0).map(|row| row.record), Some(b"r0".as_slice()));
        let mut batch = RowBatch::new();
        found.give_to(&mut batch);
        let locators: Vec<_> = batch.iter().map(|row| row.locator.to_vec()).collect();
        assert_eq!(locators, [b"k0", b"k2"]);
        assert!(found.is_empty());
    }
}
