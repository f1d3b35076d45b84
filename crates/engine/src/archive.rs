//! The archive of the log: a directory that gets every batch soon after it is durable, so that a backup can be rolled forward to any later
//! point in time (E13).
//!
//! Its files are named like the log's and hold the same bytes at the same places, except bytes that are not durable. A segment of the log is released
//! only when it is in the archive. The archive is always a prefix of the log: the log that a crash left is archived before recovery removes
//! files, as far as recovery will accept it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sys::disk::{Disk, File, OpenMode};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};
use wal::{
    CheckpointFile, Follower, Log, LogConfig, LogPin, LogPlace, LogPosition, segment_name,
    segment_number,
};

use crate::backup::manifest::MANIFEST;
use crate::identity;

/// Time between two updates of the archive.
pub(crate) const ROUND: Duration = Duration::from_millis(500);
/// Default limit of the log that is kept while its archive cannot be written.
const BACKLOG_MAX_BYTES: u64 = 10 << 30;

/// Where the log begins in a data directory that is new.
const FIRST: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

fn refused(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the log's archive: {text}"))
}

/// The archive's files and its end.
struct Copy {
    archive: Arc<dyn Disk>,
    follower: Follower,
    output: Option<(u64, Arc<dyn File>)>,
    failure: Option<String>,
}

impl Copy {
    /// Copies the log up to `end`, and makes the copy durable. A failed copy counts as not begun.
    fn go_on(&mut self, end: Option<LogPlace>) -> io::Result<()> {
        let before = self.follower.clone();
        let outcome = self.copy(end);
        if outcome.is_err() {
            self.follower = before;
            self.output = None;
        }
        outcome
    }

    fn copy(&mut self, end: Option<LogPlace>) -> io::Result<()> {
        let (mut is_new, mut has_written) = (false, false);
        while let Some(batches) = self.follower.next(end)? {
            let LogPlace { segment, offset } = batches.place;
            if self.output.as_ref().is_none_or(|(open, _)| *open != segment) {
                self.output.take().map_or(Ok(()), |(_, whole)| whole.sync())?;
                let file = self.archive.open(&segment_name(segment), OpenMode::OrCreate)?;
                // Bytes that a crash left after the last whole batch.
                file.set_size(offset)?;
                self.output = Some((segment, file));
                is_new = true;
            }
            if let Some((_, file)) = &self.output {
                file.write_at(batches.bytes, offset)?;
                has_written = true;
            }
        }
        if let Some((_, file)) = self.output.as_ref().filter(|_| has_written) {
            file.sync()?;
        }
        if is_new { self.archive.sync_dir() } else { Ok(()) }
    }
}

/// Keeps the archive up to date.
pub(crate) struct Archiver {
    copy: Mutex<Copy>,
    pin: Mutex<Option<LogPin>>,
    backlog_max_bytes: AtomicU64,
    failures: AtomicU64,
    gaps: AtomicU64,
}

/// Counters of an archive.
pub(crate) struct ArchiveStats {
    pub segment: u64,
    pub backlog_bytes: u64,
    pub failures: u64,
    pub gaps: u64,
    pub failure: String,
}

/// Where the archive ends, as a follower of its files.
fn end_of(archive: &Arc<dyn Disk>, block_bytes: usize) -> io::Result<Option<Follower>> {
    let mut numbers: Vec<u64> =
        archive.list()?.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    while let Some(last) = numbers.pop() {
        // A file without a batch was made just before a crash.
        let Some(mut follower) = Follower::at_segment(archive.clone(), last, block_bytes)? else {
            continue;
        };
        while follower.next(None)?.is_some() {}
        if follower.place().offset > 0 {
            return Ok(Some(follower));
        }
    }
    Ok(None)
}

impl Archiver {
    /// Copies the log that a crash or a stop left. Runs before recovery, which removes files that no checkpoint needs.
    ///
    /// # Errors
    /// The archive belongs to another log; I/O.
    pub fn open(
        archive: Arc<dyn Disk>,
        disk: &Arc<dyn Disk>,
        own: &str,
        block_bytes: usize,
    ) -> io::Result<Archiver> {
        let names = archive.list()?;
        match identity::read(&*archive)? {
            Some(identity) if identity == own => {}
            Some(_) => {
                return Err(refused(
                    "the directory holds the log of another data directory (a restored or cloned one counts as \
                     another); name an empty directory",
                ));
            }
            None if names.iter().any(|name| segment_number(name).is_some() || name == MANIFEST) => {
                return Err(refused("the directory holds other files; name an empty directory"));
            }
            None => identity::write(&*archive, own)?,
        }
        let (_, checkpoint) = CheckpointFile::open(&**disk)?;
        let start = checkpoint.map_or(FIRST, |checkpoint| checkpoint.position);
        let mut gaps = 0;
        let follower = match end_of(&archive, block_bytes)? {
            None => Follower::new(disk.clone(), start, block_bytes),
            Some(end) => match meet(end.on(disk.clone()), disk, start, block_bytes)? {
                Some(follower) => follower,
                None => {
                    gaps = 1;
                    warn_of_gap("it was not written for a while");
                    Follower::new(disk.clone(), start, block_bytes)
                }
            },
        };
        let mut copy = Copy { archive, follower, output: None, failure: None };
        copy.go_on(None)?;
        Ok(Archiver {
            copy: Mutex::new(copy),
            pin: Mutex::new(None),
            backlog_max_bytes: AtomicU64::new(BACKLOG_MAX_BYTES),
            failures: AtomicU64::new(0),
            gaps: AtomicU64::new(gaps),
        })
    }

    /// From now on the running log keeps segments that are not archived.
    pub fn attach(&self, log: &Arc<Log>) {
        let segment = self.copy.lock().follower.place().segment;
        *self.pin.lock() = Some(log.pin(segment));
    }

    pub fn set_backlog_max(&self, bytes: u64) {
        self.backlog_max_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Archives the durable part of the log.
    pub fn round(&self, log: &Arc<Log>, disk: &Arc<dyn Disk>, config: &LogConfig) {
        let end = log.durable_end();
        let mut copy = self.copy.lock();
        match copy.go_on(Some(end)) {
            Ok(()) => copy.failure = None,
            Err(error) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                if copy.failure.is_none() {
                    sys::process::warn(&format!(
                        "the log cannot be archived: {error}; trying again"
                    ));
                }
                copy.failure = Some(error.to_string());
                self.give_up_when_late(&mut copy, log, disk, end, config);
            }
        }
        if let Some(pin) = &*self.pin.lock() {
            pin.advance(copy.follower.place().segment);
        }
    }

    /// The device of the log must not fill up because the archive's cannot be written: then the archive gets a gap.
    fn give_up_when_late(
        &self,
        copy: &mut Copy,
        log: &Arc<Log>,
        disk: &Arc<dyn Disk>,
        end: LogPlace,
        config: &LogConfig,
    ) {
        let behind = (end.segment - copy.follower.place().segment) * config.segment_bytes;
        if behind <= self.backlog_max_bytes.load(Ordering::Relaxed) {
            return;
        }
        self.gaps.fetch_add(1, Ordering::Relaxed);
        warn_of_gap("log_archive_backlog_max_mb is reached");
        copy.follower = Follower::new(disk.clone(), log.position_for(u64::MAX), config.block_bytes);
    }

    pub fn stats(&self, log: &Log, segment_bytes: u64) -> ArchiveStats {
        let end = log.durable_end();
        let copy = self.copy.lock();
        let place = copy.follower.place();
        let behind = (end.segment - place.segment) * segment_bytes + end.offset;
        ArchiveStats {
            segment: place.segment,
            backlog_bytes: behind.saturating_sub(place.offset),
            failures: self.failures.load(Ordering::Relaxed),
            gaps: self.gaps.load(Ordering::Relaxed),
            failure: copy.failure.clone().unwrap_or_default(),
        }
    }
}

fn warn_of_gap(why: &str) {
    sys::process::warn(&format!(
        "the log's archive gets a gap: {why}; backups from before it can be rolled forward to the gap only: \
         make a new one"
    ));
}

/// Returns a follower at the archive's end, if the log of the data directory continues from there; `None` if the log between them is lost.
fn meet(
    end: Follower,
    disk: &Arc<dyn Disk>,
    start: LogPosition,
    block_bytes: usize,
) -> io::Result<Option<Follower>> {
    let mut own = Follower::new(disk.clone(), start, block_bytes);
    if end.batch() >= start.batch {
        // The archive's last batch is in the log that recovery reads.
        own.skip_to(end.batch())?;
        if own.is_same_chain(&end) {
            return Ok(Some(end));
        }
        return Err(refused(
            "it is ahead of the data directory, whose files are older than the archive; name an empty directory",
        ));
    }
    let mut probe = end.clone();
    let meets = probe.skip_to(start.batch)? && own.is_same_chain(&probe);
    Ok(meets.then_some(end))
}
