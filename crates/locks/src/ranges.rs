//! Spans of keys that are locked against inserts, by space.

use std::collections::HashMap;

use sys::model::sized;
use sys::sync::atomic::{AtomicUsize, Ordering};
use sys::sync::{Arc, Mutex};

use crate::owner::Owner;

/// A power of two.
const SHARDS: usize = 64;

/// Approximate limit of a transaction's spans in a space; beyond it neighbours are merged, which also locks the keys between them.
const OWN_SPANS_MAX: usize = sized(1024, 4);

struct Span {
    owner: Arc<Owner>,
    start: Vec<u8>,
    /// Exclusive; `None` means no limit.
    end: Option<Vec<u8>>,
}

impl Span {
    /// Grows to cover a span that overlaps or touches it.
    fn extend(&mut self, start: &[u8], end: Option<&[u8]>) {
        if start < self.start.as_slice() {
            self.start = start.to_vec();
        }
        if self.end.as_deref().is_some_and(|own| end.is_none_or(|end| end > own)) {
            self.end = end.map(<[u8]>::to_vec);
        }
    }
}

#[derive(Default)]
struct Shard {
    spans: Mutex<HashMap<u64, Vec<Span>>>,
    /// Spans in the shard: inserters into spaces without spans stop here.
    count: AtomicUsize,
}

/// All spans.
pub(crate) struct Ranges(Vec<Shard>);

impl Ranges {
    pub fn new() -> Ranges {
        Ranges((0..SHARDS).map(|_| Shard::default()).collect())
    }

    fn shard(&self, space: u64) -> &Shard {
        &self.0[stdx::mix(space) as usize & (SHARDS - 1)]
    }

    pub fn add(&self, owner: &Arc<Owner>, space: u64, start: &[u8], end: Option<&[u8]>) {
        {
            let mut held = owner.held.lock();
            if !held.spaces.contains(&space) {
                held.spaces.push(space);
            }
        }
        let shard = self.shard(space);
        let mut spans = shard.spans.lock();
        let list = spans.entry(space).or_default();
        // A scan extends its last span, at whichever end it moves: one span per scan, not one per fetch.
        if let Some(last) = list.iter_mut().rev().find(|span| span.owner.id == owner.id)
            && last.end.as_deref().is_none_or(|last_end| last_end >= start)
            && end.is_none_or(|end| end >= last.start.as_slice())
        {
            last.extend(start, end);
            return;
        }
        let span =
            Span { owner: owner.clone(), start: start.to_vec(), end: end.map(<[u8]>::to_vec) };
        list.push(span);
        // Published before the scan latches a page; pairs with the load of an inserter that holds the page.
        shard.count.fetch_add(1, Ordering::SeqCst);
        // A growing list gets here now and then, whatever makes it grow.
        if list.len().is_multiple_of(OWN_SPANS_MAX) {
            let gone = thin_out(list, owner);
            shard.count.fetch_sub(gone, Ordering::SeqCst);
        }
    }

    /// Locks a whole space in which no transaction, the owner included, has a span; false if one has.
    pub fn add_alone(&self, owner: &Arc<Owner>, space: u64) -> bool {
        let shard = self.shard(space);
        {
            let mut spans = shard.spans.lock();
            if spans.contains_key(&space) {
                return false;
            }
            let all = Span { owner: owner.clone(), start: Vec::new(), end: None };
            spans.insert(space, vec![all]);
            shard.count.fetch_add(1, Ordering::SeqCst);
        }
        let mut held = owner.held.lock();
        if !held.spaces.contains(&space) {
            held.spaces.push(space);
        }
        true
    }

    /// Owners of spans anywhere in a space.
    pub fn others(&self, owner: &Owner, space: u64) -> Vec<Arc<Owner>> {
        let spans = self.shard(space).spans.lock();
        let list = spans.get(&space).map(Vec::as_slice).unwrap_or_default();
        let others = list.iter().filter(|span| owner.id != span.owner.id);
        others.map(|span| span.owner.clone()).collect()
    }

    /// All of them.
    pub fn count(&self) -> usize {
        self.0.iter().map(|shard| shard.count.load(Ordering::Relaxed)).sum()
    }

    /// Shows each span until `visit` has enough.
    pub fn each(&self, mut visit: impl FnMut(&Arc<Owner>, u64, &[u8], Option<&[u8]>) -> bool) {
        for shard in &self.0 {
            if shard.count.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for (space, spans) in &*shard.spans.lock() {
                let mut spans = spans.iter();
                if !spans.all(|span| visit(&span.owner, *space, &span.start, span.end.as_deref())) {
                    return;
                }
            }
        }
    }

    pub fn blockers(&self, owner: Option<&Owner>, space: u64, key: &[u8]) -> Vec<Arc<Owner>> {
        let shard = self.shard(space);
        if shard.count.load(Ordering::SeqCst) == 0 {
            return Vec::new();
        }
        let spans = shard.spans.lock();
        let list = spans.get(&space).map(Vec::as_slice).unwrap_or_default();
        list.iter()
            .filter(|span| owner.is_none_or(|owner| owner.id != span.owner.id))
            .filter(|span| key >= span.start.as_slice())
            .filter(|span| span.end.as_deref().is_none_or(|end| key < end))
            .map(|span| span.owner.clone())
            .collect()
    }

    pub fn release(&self, owner: &Owner, spaces: Vec<u64>) {
        for space in spaces {
            let shard = self.shard(space);
            let mut spans = shard.spans.lock();
            let Some(list) = spans.get_mut(&space) else { continue };
            let before = list.len();
            list.retain(|span| span.owner.id != owner.id);
            shard.count.fetch_sub(before - list.len(), Ordering::SeqCst);
            if list.is_empty() {
                spans.remove(&space);
            }
        }
    }
}

/// Merges each two neighbouring spans of a transaction that has too many. Returns the number removed.
fn thin_out(list: &mut Vec<Span>, owner: &Owner) -> usize {
    let before = list.len();
    let (mut own, others): (Vec<Span>, Vec<Span>) =
        std::mem::take(list).into_iter().partition(|span| span.owner.id == owner.id);
    *list = others;
    if own.len() < OWN_SPANS_MAX {
        list.append(&mut own);
        return 0;
    }
    own.sort_by(|left, right| left.start.cmp(&right.start));
    let mut left = None::<Span>;
    for span in own {
        match left.as_mut() {
            None => left = Some(span),
            Some(first) => {
                first.extend(&span.start, span.end.as_deref());
                list.extend(left.take());
            }
        }
    }
    list.extend(left);
    before - list.len()
}
