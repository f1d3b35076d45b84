//! Locks on records of transactions that hold very many, in little memory (L6).

use std::collections::HashMap;

use sys::model::sized;
use sys::sync::atomic::{AtomicUsize, Ordering};
use sys::sync::{Arc, Mutex};

use crate::keyset::{KeySet, Membership};
use crate::owner::Owner;
use crate::table::Mode;

/// A power of two.
const SHARDS: usize = sized(64, 2);
/// Memory of one transaction's locks of a mode in a space; with more the ranges grow.
const SET_BYTES_MAX: usize = 16 << 20;
/// Bytes of the space at the beginning of a name.
const SPACE_BYTES: usize = 8;

struct Set {
    owner: Arc<Owner>,
    mode: Mode,
    keys: KeySet,
}

/// A packed lock on a name.
pub(crate) struct Hit {
    pub owner: Arc<Owner>,
    pub mode: Mode,
    /// Whether it was locked itself; otherwise it is between keys that were.
    pub is_exact: bool,
}

#[derive(Default)]
struct Shard {
    spaces: Mutex<HashMap<u64, Vec<Set>>>,
}

/// All packed locks.
pub(crate) struct Packed {
    shards: Vec<Shard>,
    /// Number of sets: without any, a search ends here.
    count: AtomicUsize,
}

pub(crate) fn split(name: &[u8]) -> (u64, &[u8]) {
    let (space, key) = name.split_first_chunk::<SPACE_BYTES>().unwrap_or((&[0; 8], name));
    (u64::from_le_bytes(*space), key)
}

impl Packed {
    pub fn new() -> Packed {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        Packed { shards, count: AtomicUsize::new(0) }
    }

    fn shard(&self, space: u64) -> &Shard {
        &self.shards[stdx::mix(space) as usize & (SHARDS - 1)]
    }

    /// Whether no other owner has a packed lock. A thread that finds a name without an entry sees every lock packed before that entry was removed.
    pub fn has_only(&self, owner: Option<&Owner>) -> bool {
        let own = owner.map_or(0, |owner| owner.packed_sets.load(Ordering::Relaxed));
        self.count.load(Ordering::Acquire) == own
    }

    /// Adds locks; their entries go afterwards. The names are sorted.
    pub fn add(&self, owner: &Arc<Owner>, names: &[Box<[u8]>], mode: Mode) {
        for names in names.chunk_by(|left, right| split(left).0 == split(right).0) {
            let Some(first) = names.first() else { continue };
            let space = split(first).0;
            {
                let mut held = owner.held.lock();
                if !held.packed_spaces.contains(&space) {
                    held.packed_spaces.push(space);
                }
            }
            let keys: Vec<&[u8]> = names.iter().map(|name| split(name).1).collect();
            let mut spaces = self.shard(space).spaces.lock();
            let sets = spaces.entry(space).or_default();
            let at = sets.iter().position(|set| set.owner.id == owner.id && set.mode == mode);
            let at = at.unwrap_or_else(|| {
                sets.push(Set { owner: owner.clone(), mode, keys: KeySet::default() });
                owner.packed_sets.fetch_add(1, Ordering::Relaxed);
                self.count.fetch_add(1, Ordering::Release);
                sets.len() - 1
            });
            sets[at].keys.add_sorted(&keys, SET_BYTES_MAX);
        }
    }

    /// The holders of a packed lock on a name.
    pub fn find(&self, name: &[u8]) -> Vec<Hit> {
        let (space, key) = split(name);
        let spaces = self.shard(space).spaces.lock();
        let sets = spaces.get(&space).map(Vec::as_slice).unwrap_or_default();
        let hits = sets.iter().filter_map(|set| {
            let membership = set.keys.find(key)?;
            let is_exact = membership == Membership::Exact;
            Some(Hit { owner: set.owner.clone(), mode: set.mode, is_exact })
        });
        hits.collect()
    }

    /// Gives back a transaction's.
    pub fn release(&self, owner: &Owner, spaces: &[u64]) {
        for space in spaces {
            let mut shard = self.shard(*space).spaces.lock();
            let Some(sets) = shard.get_mut(space) else { continue };
            let before = sets.len();
            sets.retain(|set| set.owner.id != owner.id);
            owner.packed_sets.fetch_sub(before - sets.len(), Ordering::Relaxed);
            self.count.fetch_sub(before - sets.len(), Ordering::Release);
            if sets.is_empty() {
                shard.remove(space);
            }
        }
    }

    /// Shows each set, with the number of its keys or ranges of them, until `visit` has enough.
    pub fn each(&self, mut visit: impl FnMut(&Arc<Owner>, u64, Mode, usize) -> bool) {
        for shard in &self.shards {
            for (space, sets) in &*shard.spaces.lock() {
                if !sets.iter().all(|set| visit(&set.owner, *space, set.mode, set.keys.len())) {
                    return;
                }
            }
        }
    }

    /// Memory, and locks or ranges of them.
    pub fn size(&self) -> (usize, usize) {
        let mut size = (0, 0);
        for shard in &self.shards {
            for set in shard.spaces.lock().values().flatten() {
                size = (size.0 + set.keys.size_bytes(), size.1 + set.keys.len());
            }
        }
        size
    }
}
