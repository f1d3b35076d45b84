//! The threads of redo. Some read segments of the log ahead; the caller's verifies them, follows the transactions and shares the page edits
//! out; workers apply them; one more writes pages, so that frames stay free.
//!
//! Threads wait for slower ones only because the number of segments and stretches is limited. Each worker takes every stretch in
//! order, so a page's edits stay in order. Of the content of a stretch only the worker that applies it matters here.

use std::collections::VecDeque;
use std::io;

use sys::disk::BlockBuffer;
use sys::sync::{Arc, Condvar, Mutex};
use wal::{Loaded, LogLoader, LogReader};

/// Segments of the log on their way into memory.
pub(crate) struct Segments<'d> {
    state: Mutex<SegmentState<'d>>,
    /// As many are being read ahead or wait to be verified at most.
    ahead_max: usize,
    arrived: Condvar,
    has_room: Condvar,
}

struct SegmentState<'d> {
    loader: LogLoader<'d>,
    /// Numbers of those that are being read.
    under_way: Vec<u64>,
    loaded: Vec<Loaded>,
    spare: Vec<BlockBuffer>,
    /// The loader has no next one for now.
    is_idle: bool,
    is_over: bool,
    failure: Option<io::Error>,
}

impl<'d> Segments<'d> {
    pub fn new(loader: LogLoader<'d>, ahead_max: usize) -> Segments<'d> {
        let state = SegmentState {
            loader,
            under_way: Vec::new(),
            loaded: Vec::new(),
            spare: Vec::new(),
            is_idle: false,
            is_over: false,
            failure: None,
        };
        let (arrived, has_room) = (Condvar::new(), Condvar::new());
        Segments { state: Mutex::new(state), ahead_max, arrived, has_room }
    }

    /// Reads segments until it is over. A few threads run it: one transfer at a time does not keep a device busy.
    pub fn load(&self) {
        let mut state = self.state.lock();
        while !state.is_over {
            if state.is_idle || state.under_way.len() + state.loaded.len() >= self.ahead_max {
                state = self.has_room.wait(state);
                continue;
            }
            let block = state.spare.pop().unwrap_or_default();
            let read = match state.loader.next(block) {
                Ok(None) => {
                    state.is_idle = true;
                    Ok(None)
                }
                Ok(Some(loading)) => {
                    let number = loading.number();
                    state.under_way.push(number);
                    drop(state);
                    let read = loading.read();
                    state = self.state.lock();
                    state.under_way.retain(|other| *other != number);
                    read
                }
                Err(error) => Err(error),
            };
            match read {
                Ok(loaded) => state.loaded.extend(loaded),
                Err(error) => {
                    state.failure = Some(error);
                    state.is_over = true;
                }
            }
            self.arrived.notify_all();
        }
    }

    fn fail(&self, error: io::Error) {
        self.state.lock().failure.get_or_insert(error);
        self.arrived.notify_all();
    }

    /// Passes the reader the segment that it needs next, once it has been read. A segment that is not read ahead is left to the reader.
    pub fn deliver(&self, reader: &mut LogReader<'_>) -> io::Result<()> {
        let wanted = reader.segment();
        let mut state = self.state.lock();
        state.spare.extend(std::iter::from_fn(|| reader.spare()));
        if state.loader.follow(wanted) {
            state.is_idle = false;
        }
        loop {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            let (passed, ahead): (Vec<_>, _) =
                state.loaded.drain(..).partition(|loaded| loaded.number() < wanted);
            state.loaded = ahead;
            state.spare.extend(passed.into_iter().map(Loaded::into_block));
            self.has_room.notify_all();
            if let Some(at) = state.loaded.iter().position(|loaded| loaded.number() == wanted) {
                reader.give(state.loaded.swap_remove(at));
                return Ok(());
            }
            let will_be_taken = !state.is_idle && state.loader.segment() <= wanted;
            if !will_be_taken && !state.under_way.contains(&wanted) {
                return Ok(());
            }
            state = self.arrived.wait(state);
        }
    }

    pub fn end(&self) {
        self.state.lock().is_over = true;
        self.has_room.notify_all();
    }
}

/// Stretches of the log on their way through the workers.
pub(crate) struct Line<S> {
    state: Mutex<LineState<S>>,
    workers: usize,
    /// Signals a new stretch to workers and the writer.
    came: Condvar,
    /// One is through.
    went: Condvar,
}

struct LineState<S> {
    /// Oldest first.
    queue: VecDeque<UnderWay<S>>,
    /// Number of the next stretch.
    next: u64,
    spare: Vec<S>,
    pages_done: u64,
    is_over: bool,
    failure: Option<io::Error>,
}

struct UnderWay<S> {
    number: u64,
    stretch: Arc<S>,
    /// Workers that are not done with it.
    left: usize,
}

impl<S> Line<S> {
    pub fn new(workers: usize, spare: Vec<S>) -> Line<S> {
        let state = LineState {
            queue: VecDeque::new(),
            next: 0,
            spare,
            pages_done: 0,
            is_over: false,
            failure: None,
        };
        Line { state: Mutex::new(state), workers, came: Condvar::new(), went: Condvar::new() }
    }

    /// A stretch to fill, once one is free.
    pub fn spare(&self) -> io::Result<S> {
        let mut state = self.state.lock();
        loop {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            if let Some(spare) = state.spare.pop() {
                return Ok(spare);
            }
            state = self.went.wait(state);
        }
    }

    /// Hands a stretch to all workers. Returns the number of pages done so far.
    pub fn push(&self, stretch: S) -> u64 {
        let mut state = self.state.lock();
        let (number, left) = (state.next, self.workers);
        state.next += 1;
        state.queue.push_back(UnderWay { number, stretch: Arc::new(stretch), left });
        self.came.notify_all();
        state.pages_done
    }

    /// Waits until all is applied. Returns the number of pages done.
    pub fn drain(&self) -> io::Result<u64> {
        let mut state = self.state.lock();
        loop {
            if let Some(failure) = state.failure.take() {
                return Err(failure);
            }
            if state.queue.is_empty() {
                return Ok(state.pages_done);
            }
            state = self.went.wait(state);
        }
    }

    /// A worker's part: one stretch after another, until it is over.
    pub fn work(&self, apply: impl Fn(&S) -> io::Result<u64>) {
        let mut number = 0;
        while let Some(stretch) = self.stretch(number) {
            let done = apply(&stretch);
            // Before the count: the last worker returns the stretch.
            drop(stretch);
            self.finish(number, done);
            number += 1;
        }
    }

    fn stretch(&self, number: u64) -> Option<Arc<S>> {
        let mut state = self.state.lock();
        loop {
            if state.is_over {
                return None;
            }
            let here = state.queue.iter().find(|under_way| under_way.number == number);
            if let Some(under_way) = here {
                return Some(under_way.stretch.clone());
            }
            state = self.came.wait(state);
        }
    }

    fn finish(&self, number: u64, done: io::Result<u64>) {
        let mut state = self.state.lock();
        match done {
            Ok(pages) => state.pages_done += pages,
            Err(error) => {
                state.failure.get_or_insert(error);
                self.went.notify_all();
            }
        }
        // One that failed is counted too: it takes the next.
        let at = state.queue.iter().position(|under_way| under_way.number == number);
        let Some(at) = at else { return };
        state.queue[at].left -= 1;
        if state.queue[at].left == 0 {
            let gone = state.queue.remove(at).map(|under_way| under_way.stretch);
            state.spare.extend(gone.and_then(Arc::into_inner));
            self.went.notify_all();
        }
    }

    /// Calls `write` whenever a stretch came, until it is over.
    pub fn write(&self, write: impl Fn() -> io::Result<()>) {
        let mut seen = 0;
        loop {
            let mut state = self.state.lock();
            while !state.is_over && state.next == seen {
                state = self.came.wait(state);
            }
            if state.is_over {
                return;
            }
            seen = state.next;
            drop(state);
            if let Err(error) = write() {
                self.fail(error);
            }
        }
    }

    fn fail(&self, error: io::Error) {
        self.state.lock().failure.get_or_insert(error);
        self.went.notify_all();
    }

    pub fn end(&self) {
        self.state.lock().is_over = true;
        self.came.notify_all();
    }
}

/// Held by each helper: when one panics, the caller's thread must not wait for it for ever.
pub(crate) struct Alarm<'a, 'd, S> {
    pub segments: &'a Segments<'d>,
    pub line: &'a Line<S>,
}

impl<S> Drop for Alarm<'_, '_, S> {
    fn drop(&mut self) {
        if sys::threads::is_panicking() {
            let error = || io::Error::other("a thread of recovery panicked");
            self.segments.fail(error());
            self.line.fail(error());
        }
    }
}

/// Held by the caller's thread: sends the helpers home, also when it panics.
pub(crate) struct Ending<'a, 'd, S> {
    pub segments: &'a Segments<'d>,
    pub line: &'a Line<S>,
}

impl<S> Drop for Ending<'_, '_, S> {
    fn drop(&mut self) {
        self.segments.end();
        self.line.end();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use sys::sim::SimDisk;
    use sys::threads::{Crew, alongside};
    use wal::LogPosition;

    use super::*;

    const START: LogPosition =
        LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

    /// Runs `count` stretches past helpers that play `role`. Returns what the caller's thread saw, and whether any thread panicked.
    fn run(count: u64, role: impl Fn(&Line<u64>, usize) + Sync) -> (io::Result<u64>, bool) {
        let disk = SimDisk::new();
        let segments = Segments::new(LogLoader::new(&disk, START, 1 << 20, 512), 4);
        let line = Line::new(2, vec![0, 0]);
        let mut seen = Ok(0);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let helper = |index: usize| {
                let _alarm = Alarm { segments: &segments, line: &line };
                role(&line, index);
            };
            alongside(Crew::Threads, 3, helper, || {
                let _ending = Ending { segments: &segments, line: &line };
                seen = (|| {
                    for number in 0..count {
                        line.spare()?;
                        line.push(number);
                    }
                    line.drain()
                })();
            });
        }));
        (seen, outcome.is_err())
    }

    #[test]
    fn every_worker_takes_every_stretch() {
        let (seen, has_panicked) = run(50, |line, index| match index {
            0 => line.write(|| Ok(())),
            _ => line.work(|stretch| Ok(*stretch)),
        });
        assert_eq!((seen.unwrap(), has_panicked), (2 * (0..50).sum::<u64>(), false));
    }

    #[test]
    fn nobody_waits_for_a_helper_that_panicked() {
        for bad in 0..3 {
            let (seen, has_panicked) = run(50, |line, index| match index {
                0 => line.write(|| if bad == 0 { panic!("on purpose") } else { Ok(()) }),
                _ => line.work(|stretch| match (*stretch, index == bad) {
                    (7, true) => panic!("on purpose"),
                    _ => Ok(1),
                }),
            });
            // The writer may have had nothing to do before the end.
            assert!(bad == 0 || seen.is_err() && has_panicked, "{bad}: {seen:?}");
        }
    }
}
