//! Parallel redo: one thread verifies and sorts the log window by window and follows the transactions; at the same time workers apply the page edits of
//! earlier windows, each for the pages that a hash assigns to it. `redo_line` has the waits between threads.
//!
//! Memory: a few windows, set aside from the pool, and the pool. Pages are written during redo, so that frames stay free. This file knows
//! the page edits of a record; `Found` handles its effect on transactions (X13).

use std::io;

use btree::{Piece, RedoBody, Touch, redo_page};
use bufpool::Pool;
use page::PageNo;
use sys::disk::Disk;
use sys::threads::{Crew, alongside};
use wal::{Checkpoint, LogConfig, LogLoader, LogReader, ReplayEnd, Window};

use crate::recovery::{Found, Progress, Recovery, RecoveryPhase, damaged};
use crate::redo_line::{Alarm, Ending, Line, Segments};

/// Log in memory at a time, at most; less for a small pool.
const WINDOW_BYTES_MAX: usize = 16 << 20;
const WINDOW_BYTES_MIN: usize = 32 << 10;
/// Share of the pool for one window if whole segments are too large.
const WINDOW_POOL_SHARE: usize = 32;
/// Threads that read segments.
const LOADERS: usize = 4;
/// Windows that are filled or applied at a time, at most.
const STRETCHES_MAX: usize = 3;
/// Segments that are being read ahead or wait to be verified, at most.
const SEGMENTS_AHEAD_MAX: usize = 4;
/// The division of redo among threads.
#[derive(Clone, Copy, Debug)]
pub struct RedoCrew {
    /// Workers that apply page edits.
    pub workers: usize,
    /// Whether they are threads.
    pub crew: Crew,
}

impl Default for RedoCrew {
    fn default() -> Self {
        let workers = sys::threads::sizes().waiting_workers();
        RedoCrew { workers, crew: Crew::Threads }
    }
}

/// The division of the memory for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shares {
    window_bytes: usize,
    stretches: usize,
    segments_ahead: usize,
}

impl Shares {
    /// Whole segments, fewer of them in a smaller pool: reading them ahead keeps the device busy. At most half of the pool is for the log; a
    /// pool that has no room for three segments in it reads smaller windows, each when it is needed.
    fn of(pool_bytes: usize, segment_bytes: usize) -> Shares {
        const ALL: usize = STRETCHES_MAX + SEGMENTS_AHEAD_MAX;
        let window = (pool_bytes / WINDOW_POOL_SHARE).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        let (window_bytes, segments_ahead, stretches) = match pool_bytes / 2 / segment_bytes.max(1)
        {
            0..3 => (window, 1, STRETCHES_MAX),
            room @ 3..ALL => (segment_bytes.max(window), room / 2, room - room / 2),
            _ => (segment_bytes.max(window), SEGMENTS_AHEAD_MAX, STRETCHES_MAX),
        };
        Shares { window_bytes, stretches, segments_ahead }
    }
}

/// A record's edits to one page, found again in its window.
#[derive(Clone, Copy)]
struct Job {
    ticket: u64,
    page: u32,
    ops_start: u32,
    ops_length: u32,
    place: u8,
    is_blank: bool,
}

/// A window and the page edits of its records, one list for each worker, in ticket order.
struct Stretch {
    window: Window,
    jobs: Vec<Vec<Job>>,
}

impl Stretch {
    fn new(workers: usize) -> Stretch {
        Stretch { window: Window::new(), jobs: (0..workers).map(|_| Vec::new()).collect() }
    }

    /// Reads the next window, follows its transactions and shares its edits out. False at the end of the log.
    fn fill(
        &mut self,
        reader: &mut LogReader<'_>,
        window_bytes: usize,
        found: &mut Found,
        report: &mut Recovery,
    ) -> io::Result<bool> {
        self.jobs.iter_mut().for_each(Vec::clear);
        if !reader.next(&mut self.window, window_bytes)? {
            return Ok(false);
        }
        let workers = self.jobs.len() as u64;
        for (body_start, record) in self.window.records() {
            let body = RedoBody::parse(record.body).ok_or_else(damaged)?;
            let ops_start = body_start + body.ops_start as u32;
            for Touch { page, place, is_blank } in body.touches().ok_or_else(damaged)? {
                let job = Job {
                    ticket: record.ticket,
                    page: page.0,
                    ops_start,
                    ops_length: body.ops.len() as u32,
                    place,
                    is_blank,
                };
                let worker = stdx::mix(u64::from(page.0)) % workers;
                self.jobs[worker as usize].push(job);
            }
            found.apply(&record, body.extra).ok_or_else(damaged)?;
        }
        report.records += self.window.len() as u64;
        report.log_bytes = reader.read_bytes();
        Ok(true)
    }

    /// Applies one worker's edits, page by page. Returns the number of pages.
    fn apply(&self, worker: usize, pool: &Pool) -> io::Result<u64> {
        let jobs = &self.jobs[worker];
        // Page and place in the list: sorts by page, and within a page by ticket.
        let mut order: Vec<u64> =
            jobs.iter().zip(0..).map(|(job, at)| u64::from(job.page) << 32 | at).collect();
        order.sort_unstable();
        let mut pieces = Vec::new();
        let mut count = 0;
        for pages in order.chunk_by(|left, right| left >> 32 == right >> 32) {
            pieces.clear();
            pieces.extend(pages.iter().map(|key| self.piece(&jobs[*key as u32 as usize])));
            redo_page(pool, page_of(pages), &pieces)?;
            count += 1;
        }
        Ok(count)
    }

    fn piece(&self, job: &Job) -> Piece<'_> {
        let ops = self.window.at(job.ops_start, job.ops_length as usize);
        Piece { ticket: job.ticket, place: job.place, is_blank: job.is_blank, ops }
    }
}

fn page_of(keys: &[u64]) -> PageNo {
    PageNo(keys.first().map_or(0, |key| (key >> 32) as u32))
}

/// Keeps a quarter of the frames clean, so that workers rarely have to write pages themselves.
fn write_some(pool: &Pool) -> io::Result<()> {
    let usable = pool.usable_frames();
    if pool.dirty_frames() * 4 < usable * 3 {
        return Ok(());
    }
    pool.flush(usable / 4, u64::MAX).map(drop)
}

/// The state of a replay on the caller's thread.
struct Replay<'r, 'd> {
    reader: LogReader<'d>,
    shares: Shares,
    found: &'r mut Found,
    report: &'r mut Recovery,
    progress: &'r mut Progress,
}

impl Replay<'_, '_> {
    fn fill(&mut self, stretch: &mut Stretch) -> io::Result<bool> {
        stretch.fill(&mut self.reader, self.shares.window_bytes, self.found, self.report)
    }

    fn tell(&mut self, pages_done: u64) {
        let report = &mut *self.report;
        let total = report.log_bytes_total.max(1);
        report.pages_done = pages_done;
        report.pages_total = pages_done * total / report.log_bytes.clamp(1, total);
        self.progress.tell(report, RecoveryPhase::Redo, report.log_bytes, total);
    }

    /// One step after the other.
    fn in_turn(
        &mut self,
        workers: usize,
        mut loader: LogLoader<'_>,
        pool: &Pool,
    ) -> io::Result<()> {
        let mut stretch = Stretch::new(workers);
        let mut pages_done = 0;
        loop {
            loader.follow(self.reader.segment());
            if let Some(loading) = loader.next(self.reader.spare().unwrap_or_default())? {
                loading.read()?.into_iter().for_each(|loaded| self.reader.give(loaded));
            }
            if !self.fill(&mut stretch)? {
                return Ok(());
            }
            write_some(pool)?;
            for worker in 0..workers {
                pages_done += stretch.apply(worker, pool)?;
            }
            self.tell(pages_done);
        }
    }

    fn side_by_side(
        &mut self,
        workers: usize,
        loader: LogLoader<'_>,
        pool: &Pool,
    ) -> io::Result<()> {
        let Shares { stretches, segments_ahead, .. } = self.shares;
        let segments = Segments::new(loader, segments_ahead);
        let line = Line::new(workers, (0..stretches).map(|_| Stretch::new(workers)).collect());
        let helper = |index: usize| {
            let _alarm = Alarm { segments: &segments, line: &line };
            match index.checked_sub(LOADERS) {
                None => segments.load(),
                Some(0) => line.write(|| write_some(pool)),
                Some(worker) => line.work(|stretch| stretch.apply(worker - 1, pool)),
            }
        };
        let (_, outcome) = alongside(Crew::Threads, LOADERS + 1 + workers, helper, || {
            let _ending = Ending { segments: &segments, line: &line };
            self.feed(&segments, &line)
        });
        outcome
    }

    fn feed(&mut self, segments: &Segments<'_>, line: &Line<Stretch>) -> io::Result<()> {
        loop {
            let mut stretch = line.spare()?;
            segments.deliver(&mut self.reader)?;
            if !self.fill(&mut stretch)? {
                break;
            }
            let pages_done = line.push(stretch);
            self.tell(pages_done);
        }
        let pages_done = line.drain()?;
        self.tell(pages_done);
        Ok(())
    }
}

/// Replays the log from a checkpoint on.
pub(crate) fn replay(
    disk: &dyn Disk,
    pool: &Pool,
    (checkpoint, log): (&Checkpoint, &LogConfig),
    redo: RedoCrew,
    found: &mut Found,
    (report, progress): (&mut Recovery, &mut Progress),
) -> io::Result<ReplayEnd> {
    let workers = redo.workers.max(1);
    let pool_bytes = pool.page_bytes() * pool.usable_frames();
    let shares = Shares::of(pool_bytes, log.segment_bytes as usize);
    // The windows, the segments read ahead, and the lists of their records.
    pool.set_aside(shares.window_bytes * (shares.stretches + shares.segments_ahead));
    let (position, block_bytes) = (checkpoint.position, log.block_bytes);
    let reader = LogReader::new(disk, position, checkpoint.redo_from, block_bytes);
    let loader = LogLoader::new(disk, position, shares.window_bytes, block_bytes);
    let mut replay = Replay { reader, shares, found, report, progress };
    match redo.crew {
        Crew::InTurn => replay.in_turn(workers, loader, pool)?,
        Crew::Threads => replay.side_by_side(workers, loader, pool)?,
    }
    let reader = replay.reader;
    report.pages_total = report.pages_done;
    pool.give_back_set_aside();
    reader.end(checkpoint.durable_batch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_pool_reads_fewer_segments_ahead_and_keeps_half_for_pages() {
        const MB: usize = 1 << 20;
        let of = |pool_mb: usize| {
            let Shares { window_bytes, stretches, segments_ahead } =
                Shares::of(pool_mb * MB, 16 * MB);
            assert!(window_bytes * (stretches + segments_ahead) <= pool_mb * MB / 2);
            (window_bytes / MB, stretches, segments_ahead)
        };
        assert_eq!(of(1024), (16, 3, 4));
        assert_eq!(of(224), (16, 3, 4));
        assert_eq!(of(192), (16, 3, 3));
        assert_eq!(of(128), (16, 2, 2));
        assert_eq!(of(96), (16, 2, 1));
        assert_eq!(of(64), (2, 3, 1));
    }
}
