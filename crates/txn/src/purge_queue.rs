//! Ended transactions that wait for purge: in lanes, so that committing threads do not contend, and so that several threads can purge.
//!
//! A lane's transactions come from a few threads each, in the order in which they ended. The thread that holds the lane purges and files
//! them; lanes are independent of each other.

use std::collections::VecDeque;
use sys::sync::atomic::{AtomicUsize, Ordering};
use sys::sync::{Mutex, MutexGuard};

/// Lanes on small machines.
const LANES_MIN: usize = 32;

/// An ended transaction that waits for purge.
pub(crate) struct Ended {
    pub id: u64,
    /// Snapshots at or below it may need its undo.
    pub at: u64,
    /// Approximate bytes of memory that filing it would free.
    pub bytes: usize,
}

#[derive(Default)]
struct Waiting {
    ended: VecDeque<Ended>,
    /// The number at the front that were filed, or cannot be.
    filed: usize,
    /// Sum of `bytes` of the others.
    bytes: usize,
}

#[derive(Default)]
#[repr(align(128))]
struct Lane {
    waiting: Mutex<Waiting>,
    working: Mutex<()>,
}

/// The exclusive right to purge or file a lane's transactions.
pub struct PurgeLane<'a> {
    lane: &'a Lane,
    _alone: MutexGuard<'a, ()>,
}

/// See the file's head.
pub(crate) struct PurgeQueue {
    /// A power of two of them.
    lanes: Box<[Lane]>,
    /// The lane at which the next round begins.
    turn: AtomicUsize,
}

/// The number of waiting transactions, and their memory.
#[derive(Clone, Copy, Default)]
pub(crate) struct Backlog {
    pub transactions: usize,
    /// Places for transactions, used or not.
    pub capacity: usize,
    pub filed: usize,
    /// Bytes of those that are not filed.
    pub bytes: usize,
}

impl PurgeQueue {
    pub fn new() -> PurgeQueue {
        let count = sys::threads::sizes().shards(LANES_MIN);
        let lanes = (0..count).map(|_| Lane::default()).collect();
        PurgeQueue { lanes, turn: AtomicUsize::new(0) }
    }

    fn own(&self) -> &Lane {
        &self.lanes[sys::threads::number() & (self.lanes.len() - 1)]
    }

    /// Adds a transaction to the lane of the calling thread.
    pub fn push(&self, ended: Ended) {
        let mut waiting = self.own().waiting.lock();
        waiting.bytes += ended.bytes;
        waiting.ended.push_back(ended);
    }

    /// Whether more than `limit` wait in the calling thread's lane, and not for a snapshot above `horizon`.
    pub fn is_behind(&self, limit: usize, horizon: u64) -> bool {
        let waiting = self.own().waiting.lock();
        waiting.ended.len() > limit && waiting.ended[limit].at < horizon
    }

    /// The calling thread's lane, unless another thread holds it.
    pub fn own_lane(&self) -> Option<PurgeLane<'_>> {
        self.own().hold()
    }

    /// The lanes that no thread holds, starting with another one each time.
    pub fn free_lanes(&self) -> impl Iterator<Item = PurgeLane<'_>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.lanes.len();
        (0..count).filter_map(move |at| self.lanes[(first + at) & (count - 1)].hold())
    }

    pub fn backlog(&self) -> Backlog {
        let add = |sum: Backlog, lane: &Lane| {
            let waiting = lane.waiting.lock();
            Backlog {
                transactions: sum.transactions + waiting.ended.len(),
                capacity: sum.capacity + waiting.ended.capacity(),
                filed: sum.filed + waiting.filed,
                bytes: sum.bytes + waiting.bytes,
            }
        };
        self.lanes.iter().fold(Backlog::default(), add)
    }
}

impl Lane {
    fn hold(&self) -> Option<PurgeLane<'_>> {
        self.working.try_lock().map(|alone| PurgeLane { lane: self, _alone: alone })
    }
}

impl PurgeLane<'_> {
    /// Takes one of the oldest transactions if it ended below `horizon`.
    pub(crate) fn take(&self, horizon: u64) -> Option<u64> {
        /// The number examined: they are nearly in order.
        const LOOK: usize = 64;
        let mut waiting = self.lane.waiting.lock();
        let at = waiting.ended.iter().take(LOOK).position(|ended| ended.at < horizon)?;
        let ended = waiting.ended.remove(at)?;
        match at < waiting.filed {
            true => waiting.filed -= 1,
            false => waiting.bytes -= ended.bytes,
        }
        Some(ended.id)
    }

    /// Queues a transaction again after its purge failed.
    pub(crate) fn put_back(&self, ended: Ended) {
        let mut waiting = self.lane.waiting.lock();
        waiting.bytes += ended.bytes;
        waiting.ended.push_back(ended);
    }

    /// The oldest that are not filed, with about the given total of bytes; id and bytes of each.
    pub(crate) fn unfiled(&self, bytes_max: usize) -> Vec<(u64, usize)> {
        let waiting = self.lane.waiting.lock();
        let mut bytes = 0;
        let unfiled = waiting.ended.iter().skip(waiting.filed);
        let batch = unfiled.take_while(|ended| {
            let more = bytes < bytes_max;
            bytes += ended.bytes;
            more
        });
        batch.map(|ended| (ended.id, ended.bytes)).collect()
    }

    /// Notes that the transactions from `unfiled` are filed, or cannot be.
    pub(crate) fn note_filed(&self, batch: &[(u64, usize)]) {
        let mut waiting = self.lane.waiting.lock();
        waiting.filed += batch.len();
        assert!(waiting.filed <= waiting.ended.len(), "only transactions that wait are filed");
        waiting.bytes -= batch.iter().map(|(_, bytes)| bytes).sum::<usize>();
    }
}
