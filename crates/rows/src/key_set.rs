//! A set of byte strings that numbers its members: grouping, DISTINCT and hash joins look up keys in it.
//!
//! Keys are stored one after another in one buffer, so that a new one needs no separate allocation and none is freed individually.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry as Place;

/// Keys with the numbers 0, 1, ... in order of insertion.
#[derive(Debug, Default)]
pub struct KeySet {
    /// For each key its length in four bytes and the key.
    bytes: Vec<u8>,
    table: HashTable<Entry>,
    state: FixedState,
}

/// The place of a key. Its half of the hash avoids most comparisons with other keys, and all when the table grows.
#[derive(Debug)]
struct Entry {
    start: usize,
    hash: u32,
    number: u32,
}

/// Bytes of a key's length.
const LENGTH: usize = 4;

/// Approximate bytes that a key costs in addition to its own: the length, and an entry in a table that is two thirds full.
pub const KEY_OVERHEAD: usize = LENGTH + size_of::<Entry>() * 3 / 2;

/// The hash for the table: both its ends, which choose place and tag, come from the stored half.
#[inline]
fn spread(half: u32) -> u64 {
    u64::from(half) << 32 | u64::from(half)
}

#[inline]
fn key_at(bytes: &[u8], start: usize) -> &[u8] {
    let (length, rest) = bytes[start..].split_at(LENGTH);
    let length = length.iter().rev().fold(0, |length, byte| length << 8 | usize::from(*byte));
    &rest[..length]
}

impl KeySet {
    #[inline]
    fn half(&self, key: &[u8]) -> u32 {
        let hash = self.state.hash_one(key);
        (hash >> 32) as u32 ^ hash as u32
    }

    /// The number of a key, if it is there.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<u32> {
        let hash = self.half(key);
        let found = self.table.find(spread(hash), |entry| {
            entry.hash == hash && key_at(&self.bytes, entry.start) == key
        });
        found.map(|entry| entry.number)
    }

    /// The number of a key, and whether it was inserted now.
    ///
    /// # Panics
    ///
    /// With more than 2^32 keys, or a key of 4 GiB: memory limits end a statement long before.
    #[inline]
    pub fn insert(&mut self, key: &[u8]) -> (u32, bool) {
        let hash = self.half(key);
        let (bytes, number) = (&mut self.bytes, self.table.len());
        let equal = |entry: &Entry| entry.hash == hash && key_at(bytes, entry.start) == key;
        match self.table.entry(spread(hash), equal, |entry| spread(entry.hash)) {
            Place::Occupied(place) => (place.get().number, false),
            Place::Vacant(place) => {
                let number = u32::try_from(number).expect("keys are bounded by memory");
                let length = u32::try_from(key.len()).expect("keys are bounded by memory");
                let start = bytes.len();
                bytes.extend_from_slice(&length.to_le_bytes());
                bytes.extend_from_slice(key);
                place.insert(Entry { start, hash, number });
                (number, true)
            }
        }
    }

    /// All keys in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let key = (at < self.bytes.len()).then(|| key_at(&self.bytes, at))?;
            at += LENGTH + key.len();
            Some(key)
        })
    }

    /// Bytes held, about.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len() + self.table.len() * (KEY_OVERHEAD - LENGTH)
    }

    /// Removes all keys and frees their memory.
    pub fn clear(&mut self) {
        *self = KeySet::default();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::KeySet;

    #[test]
    fn numbers_keys_as_they_come() {
        let mut set = KeySet::default();
        let mut model: HashMap<Vec<u8>, u32> = HashMap::new();
        let mut order = Vec::new();
        let mut state = 7u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let length = (state >> 33) as usize % 90;
            let key = vec![(state >> 40) as u8 % 50; length];
            let next = model.len() as u32;
            let known = model.get(&key).copied();
            assert_eq!(set.get(&key), known);
            assert_eq!(set.insert(&key), (known.unwrap_or(next), known.is_none()));
            if known.is_none() {
                model.insert(key.clone(), next);
                order.push(key);
            }
        }
        assert!(order.len() > 3_000 && set.heap_bytes() > order.len() * 24);
        assert!(set.iter().eq(order.iter().map(Vec::as_slice)));
        set.clear();
        assert_eq!((set.get(&order[0]), set.iter().count()), (None, 0));
    }
}
