//! An ordered map whose copies share their unchanged parts: a new version of a large catalog costs as much as its change.

use std::borrow::Borrow;
use std::sync::Arc;

/// Maximum number of entries in a chunk.
const CHUNK_ENTRIES: usize = 256;

/// See the module's documentation. Chunks are in order, sorted, and never empty.
#[derive(Clone, Debug)]
pub struct SharedMap<K, V> {
    chunks: Vec<Arc<Vec<(K, V)>>>,
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        SharedMap { chunks: Vec::new() }
    }
}

impl<K, V> SharedMap<K, V> {
    /// All entries in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter()).map(|(key, value)| (key, value))
    }

    /// All values in order of key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// The chunk that contains a key or where it belongs, and the position there.
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> (usize, Result<usize, usize>)
    where
        K: Borrow<Q>,
    {
        let after = self.chunks.partition_point(|chunk| chunk[0].0.borrow() <= key);
        let at = after.saturating_sub(1);
        let found = self
            .chunks
            .get(at)
            .map_or(Err(0), |chunk| chunk.binary_search_by(|(other, _)| other.borrow().cmp(key)));
        (at, found)
    }

    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let (at, found) = self.place(key);
        found.ok().map(|slot| &self.chunks[at][slot].1)
    }

    /// Whether the key exists.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// Sets a key's value and returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (at, found) = self.place(&key);
        let Some(chunk) = self.chunks.get_mut(at) else {
            self.chunks.push(Arc::new(vec![(key, value)]));
            return None;
        };
        let entries = Arc::make_mut(chunk);
        match found {
            Ok(slot) => return Some(std::mem::replace(&mut entries[slot].1, value)),
            Err(slot) => entries.insert(slot, (key, value)),
        }
        if entries.len() > CHUNK_ENTRIES {
            let upper = entries.split_off(entries.len() / 2);
            self.chunks.insert(at + 1, Arc::new(upper));
        }
        None
    }

    /// Removes a key and returns its value.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let (at, found) = self.place(key);
        let slot = found.ok()?;
        let entries = Arc::make_mut(self.chunks.get_mut(at)?);
        let (_, value) = entries.remove(slot);
        if entries.is_empty() {
            self.chunks.remove(at);
        }
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_is_a_map_and_copies_do_not_see_later_changes() {
        let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
        let mut state = 9_u64;
        for step in 0..6000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = (state >> 33) % 1500;
            let (old, before) = (map.clone(), model.clone());
            if step % 3 == 2 {
                assert_eq!(map.remove(&key), model.remove(&key));
            } else {
                assert_eq!(map.insert(key, step), model.insert(key, step));
            }
            assert_eq!(map.get(&key), model.get(&key));
            if step % 500 == 0 {
                assert!(old.iter().eq(before.iter()) && map.iter().eq(model.iter()));
                assert!(map.values().eq(model.values()) && map.len() == model.len());
            }
        }
    }
}
