//! Free frames: the partitions, the clock, freeing ahead of need, and reading ahead.
//!
//! Which page a frame holds is decided in `pool`; this file only finds frames. No list is shared by the whole pool.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use page::PageNo;
use sys::blocking::blocking;
use sys::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use sys::sync::{Condvar, Mutex};
use sys::topology::Sizes;

use crate::flush::BATCH_PAGES;
use crate::pool::{NO_FRAME, Pool};

/// Rounds of an allocation before it fails: each writes dirty pages, so only latched frames are left.
const ROUNDS_MAX: usize = 1000;
/// Frames below which a pool is not divided further.
const PARTITION_FRAMES_MIN: usize = 512;
const PARTITIONS_MAX: usize = 64;
/// One frame in this many is kept free ahead of need.
const FREE_SHARE: usize = 32;
/// Pages that wait to be read ahead; requests beyond this number are dropped.
const AHEAD_MAX: usize = 512;
/// Longest sleep of a thread that serves the pool.
const IDLE: Duration = Duration::from_secs(1);

/// Frames beside each other that belong to one partition: as huge pages they are filled by it alone.
const BLOCK_FRAMES: usize = 128;

/// A part of the frames with its own clock. The blocks of frames belong to the partitions in turn, so that the pool grows and shrinks at one end.
#[repr(align(128))]
pub(crate) struct Partition {
    hand: AtomicUsize,
    pub free: Mutex<Vec<u32>>,
}

/// Which of `parts` partitions a frame belongs to.
fn part_of(frame: usize, parts: usize) -> usize {
    frame / BLOCK_FRAMES % parts
}

/// How many of the first `count` frames belong to partition `at`.
fn share(count: usize, parts: usize, at: usize) -> usize {
    let round = BLOCK_FRAMES * parts;
    count / round * BLOCK_FRAMES
        + (count % round).saturating_sub(at * BLOCK_FRAMES).min(BLOCK_FRAMES)
}

/// The frame at a place of partition `at`.
fn frame_at(place: usize, parts: usize, at: usize) -> usize {
    (place / BLOCK_FRAMES * parts + at) * BLOCK_FRAMES + place % BLOCK_FRAMES
}

/// All of `parts` partitions that belong to `nodes` nodes in turn, from `own` on: those of its node first.
fn order(own: usize, parts: usize, nodes: usize) -> impl Iterator<Item = usize> {
    let of_node = parts / nodes;
    (0..parts).map(move |at| (own + at % of_node * nodes + at / of_node) % parts)
}

/// The frames of `count` in partitions.
pub(crate) fn divide(count: usize, sizes: &Sizes) -> Box<[Partition]> {
    let parts = sizes.partitions(PARTITIONS_MAX.min(count / PARTITION_FRAMES_MIN));
    let partition = |at: usize| {
        let places = (0..share(count, parts, at)).rev();
        let free = places.map(|place| frame_at(place, parts, at) as u32).collect();
        Partition { hand: AtomicUsize::new(0), free: Mutex::new(free) }
    };
    (0..parts).map(partition).collect()
}

/// The events that wake the threads that serve the pool.
#[derive(Default)]
pub(crate) struct Service {
    pub needs_frames: Mutex<bool>,
    frames: Condvar,
    pub ahead: Mutex<VecDeque<PageNo>>,
    pages: Condvar,
    /// Whether a thread reads ahead.
    reads_ahead: AtomicBool,
}

impl Pool {
    /// The partition that the calling thread takes frames from first. That of a thread which is bound to a node of memory belongs to its node: frames that
    /// only such threads touch first have their memory there.
    fn partition(&self) -> usize {
        sys::threads::part_of(self.partitions.len(), self.nodes)
    }

    /// The partitions in the order in which a thread whose own one is `own` asks them: those of the same node first.
    fn order(&self, own: usize) -> impl Iterator<Item = usize> + use<> {
        order(own, self.partitions.len(), self.nodes)
    }

    /// Frames of a partition.
    fn share(&self, at: usize) -> usize {
        share(self.frames(), self.partitions.len(), at)
    }

    /// Frames of a partition to keep free.
    fn free_target(&self, at: usize) -> usize {
        self.share(at) / FREE_SHARE
    }

    fn pop_free(&self, at: usize) -> Option<u32> {
        let partition = &self.partitions[at];
        let (frame, left) = {
            let mut free = partition.free.lock();
            (free.pop()?, free.len())
        };
        if left == self.free_target(at) / 2 && left > 0 {
            *self.service.needs_frames.lock() = true;
            self.service.frames.notify_one();
        }
        Some(frame)
    }

    /// A frame that holds no page.
    pub(crate) fn take_frame(&self) -> io::Result<u32> {
        let own = self.partition();
        for round in 0..ROUNDS_MAX {
            if let Some(frame) = self.order(own).find_map(|at| self.pop_free(at)) {
                return Ok(frame);
            }
            let mut cold = Vec::new();
            if let Some(frame) = self.order(own).find_map(|at| self.evict(at, &mut cold)) {
                return Ok(frame);
            }
            blocking(|| self.flush_frames(&cold))?;
            if round > 2 {
                sys::threads::yield_now();
            }
        }
        Err(io::Error::new(io::ErrorKind::OutOfMemory, "every frame of the pool is latched"))
    }

    /// Frames that hold no page.
    pub(crate) fn free_frames(&self) -> usize {
        self.partitions.iter().map(|partition| partition.free.lock().len()).sum()
    }

    /// Takes up to `count` frames that hold no page, those first that would be used last: their memory was never touched.
    pub(crate) fn take_untouched(&self, count: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        let each = count.div_ceil(self.partitions.len());
        for partition in &self.partitions {
            let mut free = partition.free.lock();
            let here = each.min(free.len()).min(count - taken.len());
            taken.extend(free.drain(..here));
        }
        taken
    }

    /// A frame that its caller took holds no page.
    pub(crate) fn give_back_frame(&self, frame: u32) {
        let at = part_of(frame as usize, self.partitions.len());
        {
            let mut free = self.partitions[at].free.lock();
            // Under the mutex: a step that makes the pool smaller looks through the list after it lowered the number (B17).
            if (frame as usize) < self.frames() {
                free.push(frame);
                return;
            }
        }
        self.resizing.leaving.lock().push(frame);
    }

    /// Frames from `from` on can be used: to the free lists, behind those that are there.
    pub(crate) fn free_from(&self, frames: std::ops::Range<usize>) {
        let parts = self.partitions.len();
        for (at, partition) in self.partitions.iter().enumerate() {
            let own = frames.clone().rev().filter(|frame| part_of(*frame, parts) == at);
            let own: Vec<u32> = own.map(|frame| frame as u32).collect();
            partition.free.lock().splice(0..0, own);
        }
    }

    /// Takes the frames from number `from` on out of the free lists.
    pub(crate) fn take_free_from(&self, from: usize) -> Vec<u32> {
        let mut taken = Vec::new();
        for partition in &self.partitions {
            taken.extend(partition.free.lock().extract_if(.., |frame| *frame as usize >= from));
        }
        taken
    }

    /// Takes a clean, unreferenced frame from its page. Two turns of the clock at most, and not past many dirty frames: among a
    /// few clean ones left, two pages that need each other would push each other out for ever. Dirty frames that would have
    /// gone are added to `cold`.
    fn evict(&self, at: usize, cold: &mut Vec<u32>) -> Option<u32> {
        let partition = &self.partitions[at];
        let count = self.share(at);
        let dirty_max = (count / 8).min(BATCH_PAGES);
        let mut dirty = 0;
        for _ in 0..2 * count {
            let place = partition.hand.fetch_add(1, Ordering::Relaxed) % count;
            let frame = frame_at(place, self.partitions.len(), at);
            let descriptor = self.descriptor(frame as u32);
            let no = descriptor.page.load(Ordering::Acquire);
            if no == NO_FRAME {
                continue;
            }
            let Ok(entry) = self.entry(PageNo(no)) else { continue };
            if entry.take_referenced() {
                continue;
            }
            if descriptor.oldest_change() != 0 {
                cold.push(frame as u32);
                dirty += 1;
                if dirty > dirty_max {
                    return None;
                }
                continue;
            }
            if !entry.latch.try_lock_exclusive() {
                continue;
            }
            let still = entry.frame.load(Ordering::Relaxed) == frame as u32
                && descriptor.oldest_change() == 0;
            if still {
                entry.frame.store(NO_FRAME, Ordering::Release);
                descriptor.page.store(NO_FRAME, Ordering::Release);
            }
            entry.latch.unlock_exclusive();
            if still {
                self.evictions.fetch_add(1, Ordering::Relaxed);
                return Some(frame as u32);
            }
        }
        None
    }

    /// Frees frames until every partition has its share, writing cold dirty pages on the way.
    fn free_ahead(&self) -> io::Result<()> {
        for at in 0..self.partitions.len() {
            let partition = &self.partitions[at];
            let mut cold = Vec::new();
            while partition.free.lock().len() < self.free_target(at) {
                if let Some(frame) = self.evict(at, &mut cold) {
                    self.give_back_frame(frame);
                    continue;
                }
                if cold.is_empty() || self.flush_frames(&cold)? == 0 {
                    break;
                }
                cold.clear();
            }
        }
        Ok(())
    }

    /// Keeps frames free ahead of need until `is_over`. One thread runs it.
    pub fn serve_frames(&self, is_over: impl Fn() -> bool) {
        while !is_over() {
            {
                let mut needed = self.service.needs_frames.lock();
                if !*needed && !is_over() {
                    needed = self.service.frames.wait_for(needed, IDLE);
                }
                *needed = false;
            }
            // The page writer meets and reports a failed write again.
            if !is_over() && self.free_ahead().is_err() {
                sys::threads::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Whether threads for reading ahead exist.
    pub fn reads_ahead(&self) -> bool {
        self.service.reads_ahead.load(Ordering::Relaxed)
    }

    /// Asks for pages to be read in by other threads. Without such threads nothing happens.
    pub fn read_ahead(&self, pages: impl Iterator<Item = PageNo>) {
        if !self.reads_ahead() {
            return;
        }
        let mut missing = pages.filter(|no| !self.is_resident(*no)).peekable();
        if missing.peek().is_none() {
            return;
        }
        let mut ahead = self.service.ahead.lock();
        let before = ahead.len();
        for no in missing.take(AHEAD_MAX - before.min(AHEAD_MAX)) {
            ahead.push_back(no);
        }
        for _ in before..ahead.len() {
            self.service.pages.notify_one();
        }
    }

    /// Reads pages ahead until `is_over`. A few threads run it.
    pub fn serve_ahead(&self, is_over: impl Fn() -> bool) {
        self.service.reads_ahead.store(true, Ordering::Relaxed);
        while !is_over() {
            let next = {
                let mut ahead = self.service.ahead.lock();
                if ahead.is_empty() && !is_over() {
                    ahead = self.service.pages.wait_for(ahead, IDLE);
                }
                ahead.pop_front()
            };
            if let Some(no) = next {
                // A thread that needs the page meets the error again.
                let _ = self.read_in_cold(no);
            }
        }
    }

    /// Wakes the threads that serve, to see that it is over.
    pub fn wake_service(&self) {
        *self.service.needs_frames.lock() = true;
        self.service.frames.notify_all();
        drop(self.service.ahead.lock());
        self.service.pages.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_of_the_same_node_are_asked_first_and_all_once() {
        let asked = |own, parts, nodes| order(own, parts, nodes).collect::<Vec<usize>>();
        assert_eq!(asked(2, 4, 1), [2, 3, 0, 1]);
        assert_eq!(asked(3, 8, 2), [3, 5, 7, 1, 4, 6, 0, 2]);
        for (parts, nodes) in [(1, 1), (6, 3), (12, 4), (64, 2)] {
            for own in 0..parts {
                let mut all = asked(own, parts, nodes);
                assert!(all[..parts / nodes].iter().all(|at| at % nodes == own % nodes));
                all.sort_unstable();
                assert_eq!(all, (0..parts).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn partitions_follow_from_the_processors() {
        let sizes = |processors, nodes| Sizes { processors, cores: processors, nodes };
        let parts = |count, sizes| divide(count, &sizes).len();
        assert_eq!(parts(1 << 20, sizes(2, 1)), 4);
        assert_eq!(parts(1 << 20, sizes(120, 3)), 63);
        assert_eq!(parts(PARTITION_FRAMES_MIN * 7, sizes(120, 2)), 6);
        assert_eq!(parts(32, sizes(120, 2)), 1);
    }
}
