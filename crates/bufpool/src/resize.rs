//! Another number of frames while the pool is in use (B17).

use std::io;
use std::ops::Range;
use std::time::Duration;

use page::PageNo;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicUsize, Ordering};

use crate::pool::{Entry, FRAMES_MIN, NO_FRAME, Pool};

/// Frames that leave in one step, at least: a change of mind takes effect after it.
const STEP_FRAMES: usize = 1024;
/// Of a large pool this part leaves in one step, as each step looks through the lists of free frames.
const STEP_SHARE: usize = 16;
/// Pause before pages that could not be moved are looked at again.
const PAUSE: Duration = Duration::from_millis(2);
/// Pause after an error.
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// What became of the last change of the size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResizeState {
    /// Whether it goes on.
    pub is_running: bool,
    /// Frames before it, now, and wanted.
    pub from: usize,
    /// See `from`.
    pub frames: usize,
    /// See `from`.
    pub target: usize,
    /// Microseconds since 1970 at which it ended; zero before the first one.
    pub ended_micros: u64,
    /// Why it waits, when it cannot go on for now.
    pub trouble: Option<String>,
}

pub(crate) struct Resizing {
    state: Mutex<ResizeState>,
    /// Frames of the running step that nobody uses any more.
    pub leaving: Mutex<Vec<u32>>,
    /// Frames below this number may hold a page: more than the pool has while some leave.
    used: AtomicUsize,
}

impl Resizing {
    pub fn new(frames: usize) -> Resizing {
        let state = ResizeState { from: frames, frames, target: frames, ..ResizeState::default() };
        Resizing {
            state: Mutex::new(state),
            leaving: Mutex::new(Vec::new()),
            used: AtomicUsize::new(frames),
        }
    }

    /// Frames below this number may hold a page.
    pub fn frames_used(&self) -> usize {
        // Acquire pairs with the stores of `grow` and of `shrink`.
        self.used.load(Ordering::Acquire)
    }

    fn target(&self) -> usize {
        self.state.lock().target
    }
}

impl Pool {
    /// Bytes of pages that the pool may grow to.
    pub fn bytes_max(&self) -> usize {
        self.config.frames_max.saturating_mul(self.config.page_bytes)
    }

    /// Asks for a pool of `bytes`, within what is possible. True: the caller, or a thread that it starts, calls `resize`. False: nothing is to
    /// do, or who is at it sees the new wish.
    pub fn wants_size(&self, bytes: usize) -> bool {
        let frames = (bytes / self.config.page_bytes).clamp(FRAMES_MIN, self.config.frames_max);
        let mut state = self.resizing.state.lock();
        state.target = frames;
        if state.is_running || frames == self.frames() {
            return false;
        }
        (state.is_running, state.from, state.trouble) = (true, self.frames(), None);
        true
    }

    /// The change of the size that goes on, or the last one.
    pub fn resize_state(&self) -> ResizeState {
        ResizeState { frames: self.frames(), ..self.resizing.state.lock().clone() }
    }

    /// Brings the pool to the size asked for, or until `is_over`. One thread at a time, which holds no latch.
    pub fn resize(&self, is_over: impl Fn() -> bool) {
        loop {
            let (frames, target) = {
                let mut state = self.resizing.state.lock();
                assert!(state.is_running, "one thread changes the size at a time");
                let frames = self.frames();
                if state.target == frames || is_over() {
                    state.is_running = false;
                    state.ended_micros = sys::clock::wall().as_micros() as u64;
                    return;
                }
                (frames, state.target)
            };
            match target > frames {
                true => self.grow_to(target),
                false => {
                    let step = STEP_FRAMES.max(frames / STEP_SHARE);
                    self.shrink_to(target.max(frames.saturating_sub(step)), &is_over);
                }
            }
        }
    }

    fn grow_to(&self, target: usize) {
        let from = self.frames();
        assert!(target <= self.config.frames_max, "frames have addresses before they are used");
        self.resizing.used.store(target, Ordering::Release); // pairs with `frames_used`
        self.frames.store(target, Ordering::Release); // pairs with `frames`
        self.free_from(from..target);
    }

    /// One step: the frames from `target` on lose their pages and their memory.
    fn shrink_to(&self, target: usize, is_over: &impl Fn() -> bool) {
        let from = self.frames();
        let leaving = &self.resizing.leaving;
        assert!(leaving.lock().is_empty(), "a step ends before the next one begins");
        self.frames.store(target, Ordering::Release); // pairs with `frames`
        let free = self.take_free_from(target);
        leaving.lock().extend(free);
        loop {
            let outcome = self.vacate_all(target..from);
            if leaving.lock().len() == from - target {
                break;
            }
            if is_over() || self.resizing.target() >= from {
                // Called off: nobody has to wait for what cannot be moved.
                self.frames.store(from, Ordering::Release); // pairs with `frames`
                let back = std::mem::take(&mut *leaving.lock());
                return back.into_iter().for_each(|frame| self.give_back_frame(frame));
            }
            let pause = if outcome.is_err() { ERROR_PAUSE } else { PAUSE };
            self.resizing.state.lock().trouble = outcome.err().map(|error| error.to_string());
            sys::threads::sleep(pause);
        }
        self.resizing.used.store(target, Ordering::Release); // pairs with `frames_used`
        let words = self.config.page_bytes / 8;
        // Refused, the memory is used again when the pool grows.
        let given = self.region.give_back(target * words..from * words);
        leaving.lock().clear();
        self.resizing.state.lock().trouble = given.err().map(|error| error.to_string());
    }

    fn vacate_all(&self, frames: Range<usize>) -> io::Result<()> {
        frames.into_iter().try_for_each(|frame| self.vacate(frame as u32))
    }

    /// Takes the page of a frame out of it: to another frame if somebody used it lately or it has changes, else out of the pool. Without effect while the page
    /// is on its way to the disk, or a thread has just taken the frame for one.
    fn vacate(&self, frame: u32) -> io::Result<()> {
        let descriptor = self.descriptor(frame);
        // Acquire pairs with the store of who put the page there.
        let no = descriptor.page.load(Ordering::Acquire);
        if no == NO_FRAME {
            return Ok(());
        }
        let entry = self.entry(PageNo(no))?;
        let stays = entry.is_referenced() || descriptor.oldest_change() != 0;
        // Before the latch: finding a frame may write pages.
        let new = if stays { Some(self.take_frame()?) } else { None };
        entry.latch.lock_exclusive();
        let is_here = entry.frame.load(Ordering::Relaxed) == frame;
        let is_out = is_here
            && match new {
                Some(new) => self.move_page(PageNo(no), entry, frame, new),
                None if descriptor.oldest_change() == 0 => {
                    entry.frame.store(NO_FRAME, Ordering::Release); // pairs with the latch's next holder
                    self.evictions.fetch_add(1, Ordering::Relaxed);
                    true
                }
                None => false,
            };
        if is_out {
            descriptor.page.store(NO_FRAME, Ordering::Release); // pairs with the loads of the clock and the writer
        }
        entry.latch.unlock_exclusive();
        let over = if is_out { Some(frame) } else { new };
        over.into_iter().for_each(|frame| self.give_back_frame(frame));
        Ok(())
    }

    /// Moves a page, which the caller latched exclusively, to a frame that the caller took. False while it is on its way to the disk: the writer
    /// will say of the old frame that it is clean.
    fn move_page(&self, no: PageNo, entry: &Entry, from: u32, to: u32) -> bool {
        let (old, new) = (self.descriptor(from), self.descriptor(to));
        // Acquire pairs with the store of the writer, which needs the latch to begin.
        if old.in_flight.load(Ordering::Acquire) != 0 {
            return false;
        }
        assert_eq!(new.oldest_change(), 0, "a frame is clean before it is used again");
        for (source, target) in self.frame_words(from).iter().zip(self.frame_words(to)) {
            target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        self.marks.carry(&old.first_change, &new.first_change, to);
        new.page.store(no.0, Ordering::Release); // pairs with the loads of the clock and the writer
        entry.frame.store(to, Ordering::Release); // pairs with the latch's next holder
        true
    }
}
