//! Redo side by side: one thread reads, verifies and sorts the log window by window and follows the transactions; meanwhile the page edits
//! of the window before are applied by workers, each with the pages that a hash gives it.
//!
//! Memory: two windows, set aside from the pool, and the pool. Pages are written as it goes, so that frames stay free. Knows what
//! a record does to pages; what it says of transactions is `Found`'s (X13).

use std::io;

use btree::{Piece, RedoBody, Touch, redo_page};
use bufpool::Pool;
use page::PageNo;
use sys::disk::Disk;
use sys::sync::Mutex;
use sys::threads::{Crew, alongside};
use wal::{Checkpoint, LoadPart, Loading, LogLoader, LogReader, ReplayEnd, Window};

use crate::recovery::{Found, Progress, Recovery, RecoveryPhase, damaged};

/// Log in memory at a time, at most; less for a small pool.
const WINDOW_BYTES_MAX: usize = 32 << 20;
const WINDOW_BYTES_MIN: usize = 64 << 10;
/// Share of the pool that one window may have.
const WINDOW_POOL_SHARE: usize = 16;
/// Segments that wait to be verified when redo begins; one more is read while a window is worked on.
const SEGMENTS_AHEAD: usize = 2;
/// A segment is read in so many parts side by side.
const SEGMENT_PARTS: usize = 4;
/// Workers for each processor: most of their time goes by waiting for a page, so as many pages are read at a time.
const WORKERS_PER_PROCESSOR: usize = 4;
/// Pages asked for ahead of the one that is worked on.
const AHEAD_PAGES: usize = 64;

/// How redo is shared out.
#[derive(Clone, Copy, Debug)]
pub struct RedoCrew {
    /// Workers that apply page edits.
    pub workers: usize,
    /// Whether they are threads.
    pub crew: Crew,
}

impl Default for RedoCrew {
    fn default() -> Self {
        let workers = sys::threads::processors() * WORKERS_PER_PROCESSOR;
        RedoCrew { workers, crew: Crew::Threads }
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

/// A window and what its records do to pages, one list for each worker, in ticket order.
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
        let mut ahead = order.chunk_by(|left, right| left >> 32 == right >> 32);
        for pages in ahead.by_ref().take(AHEAD_PAGES) {
            pool.will_need(page_of(pages));
        }
        let mut pieces = Vec::new();
        let mut count = 0;
        for pages in order.chunk_by(|left, right| left >> 32 == right >> 32) {
            if let Some(later) = ahead.next() {
                pool.will_need(page_of(later));
            }
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
fn write_some(pool: &Pool) -> io::Result<u64> {
    let usable = pool.usable_frames();
    if pool.dirty_frames() * 4 < usable * 3 {
        return Ok(0);
    }
    pool.flush(usable / 4, u64::MAX).map(|_| 0)
}

type Part<'a> = Mutex<LoadPart<'a>>;

fn parts_of(loading: &mut Option<Loading>) -> Vec<Part<'_>> {
    loading.iter_mut().flat_map(|loading| loading.parts(SEGMENT_PARTS)).map(Mutex::new).collect()
}

/// One when the part is there, to be counted like a worker's pages.
fn read_part(part: &Part<'_>) -> io::Result<u64> {
    part.lock().read().map(u64::from)
}

/// Gives a segment to the reader when all of its parts were there.
fn give(
    reader: &mut LogReader<'_>,
    loading: Option<Loading>,
    parts: Vec<io::Result<u64>>,
) -> io::Result<()> {
    let mut is_whole = true;
    for part in parts {
        is_whole &= part? != 0;
    }
    loading.filter(|_| is_whole).into_iter().for_each(|loading| reader.give(loading.finish()));
    Ok(())
}

/// Replays the log from a checkpoint on.
pub(crate) fn replay(
    disk: &dyn Disk,
    pool: &Pool,
    (checkpoint, block_bytes): (&Checkpoint, usize),
    redo: RedoCrew,
    found: &mut Found,
    (report, progress): (&mut Recovery, &mut Progress),
) -> io::Result<ReplayEnd> {
    let workers = redo.workers.max(1);
    let pool_bytes = pool.page_bytes() * pool.usable_frames();
    let window_bytes = (pool_bytes / WINDOW_POOL_SHARE).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
    // Two windows, and about half as much again for the lists of what is in them; or four segments of half the size.
    pool.set_aside(window_bytes * 3);
    let mut reader = LogReader::new(disk, checkpoint.position, checkpoint.redo_from, block_bytes);
    let (mut now, mut next) = (Stretch::new(workers), Stretch::new(workers));
    let mut loader = LogLoader::new(disk, checkpoint.position, window_bytes / 2);
    for _ in 0..SEGMENTS_AHEAD {
        let mut loading = loader.next(reader.spare())?;
        let parts = parts_of(&mut loading);
        let (read, ()) = alongside(redo.crew, parts.len(), |part| read_part(&parts[part]), || ());
        drop(parts);
        give(&mut reader, loading, read)?;
    }
    let mut is_more = now.fill(&mut reader, window_bytes, found, report)?;
    while is_more {
        loader.follow(reader.segment());
        let mut loading = loader.next(reader.spare())?;
        let parts = parts_of(&mut loading);
        // Reading comes first: the device is what everybody waits for.
        let piece = |index: usize| match index.checked_sub(parts.len()) {
            None => read_part(&parts[index]),
            Some(0) => write_some(pool),
            Some(worker) => now.apply(worker - 1, pool),
        };
        let read = || next.fill(&mut reader, window_bytes, found, report);
        let (mut done, filled) = alongside(redo.crew, parts.len() + 1 + workers, piece, read);
        let applied = done.split_off(parts.len());
        drop(parts);
        for pages in applied {
            report.pages_done += pages?;
        }
        is_more = filled?;
        give(&mut reader, loading, done)?;
        std::mem::swap(&mut now, &mut next);
        let total = report.log_bytes_total.max(1);
        report.pages_total = report.pages_done * total / report.log_bytes.clamp(1, total);
        progress.tell(report, RecoveryPhase::Redo, report.log_bytes, total);
    }
    report.pages_total = report.pages_done;
    drop((now, next));
    pool.give_back_set_aside();
    reader.end(checkpoint.durable_batch)
}
