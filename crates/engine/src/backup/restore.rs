//! Turns a backup, and an archive of the log, into the files of an engine that crashed at the requested time. Opening them is recovery's
//! work, as after any crash.
//!
//! The log is cut at a ticket by making the batch that reaches it say that nothing after it counts (W3). Every byte of the backup is
//! compared with its list, every batch of the log with its chain.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

use page::CrcSum;
use sys::disk::{Disk, File, OpenMode};
use txn::each_commit;
use types::DateTime;
use wal::{Checkpoint, CheckpointFile, Follower, LogPlace, cut_batches, segment_number};

use super::manifest::{CHECKPOINT, FileSum, Manifest};
use crate::identity;

/// Bytes copied at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The point to which the log is rolled forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoreUntil {
    /// To the end of the log.
    End,
    /// Commits with this position and before it.
    Position(u64),
    /// Commits up to this time, microseconds since 1970 UTC: all before the first later one.
    Micros(u64),
}

/// The result of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Commits with a smaller position are there, and no others.
    pub end_position: u64,
    /// The last of them that has a time: microseconds since 1970 UTC. 0 if the log after the checkpoint has none.
    pub last_commit_micros: u64,
    /// Whether the log extends beyond the requested point, so that everything up to it is certainly restored.
    pub is_reached: bool,
    /// Bytes of pages.
    pub page_bytes: u32,
}

fn refused(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The log's files of a backup and of an archive as one log: of each segment the longer file.
struct BothLogs {
    backup: Arc<dyn Disk>,
    archive: Option<Arc<dyn Disk>>,
}

impl Disk for BothLogs {
    fn open(&self, name: &str, _mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let size = |file: &io::Result<Arc<dyn File>>| match file {
            Ok(file) => file.size_bytes().unwrap_or(0),
            Err(_) => 0,
        };
        let here = self.backup.open(name, OpenMode::Existing);
        let Some(archive) = &self.archive else { return here };
        let there = archive.open(name, OpenMode::Existing);
        if there.is_ok() && size(&there) >= size(&here) { there } else { here }
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names: BTreeSet<String> = self.backup.list()?.into_iter().collect();
        if let Some(archive) = &self.archive {
            names.extend(archive.list()?);
        }
        Ok(names.into_iter().collect())
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Fills `target`, which must be empty, with files from which recovery makes the requested state. `progress` gets the bytes done and in total.
///
/// # Errors
/// Damaged, incomplete or foreign files, a point in time that they do not reach: the message says what to do. I/O.
pub fn restore(
    backup: &Arc<dyn Disk>,
    archive: Option<&Arc<dyn Disk>>,
    target: &dyn Disk,
    until: RestoreUntil,
    mut progress: impl FnMut(u64, u64),
) -> io::Result<Restored> {
    let manifest = Manifest::read(&**backup)?;
    if let Some(archive) = archive {
        check_archive(&**archive, &manifest)?;
    }
    if !target.list()?.is_empty() {
        return Err(refused("the new data directory is not empty; name one that is".into()));
    }
    let (mut done, total) = (0, manifest.files.iter().map(|file| file.bytes).sum());
    for file in &manifest.files {
        // The log is copied batch by batch below.
        let into = (segment_number(&file.name).is_none()).then_some(target);
        copy_verified(&**backup, file, into, |bytes| {
            done += bytes;
            progress(done, total);
        })?;
    }
    let (_, checkpoint) = CheckpointFile::open(target)?;
    let checkpoint = checkpoint.ok_or_else(|| {
        refused(format!(
            "the backup's file `{CHECKPOINT}` is damaged; use another copy of the backup"
        ))
    })?;
    let logs = BothLogs { backup: backup.clone(), archive: archive.cloned() };
    let logs: Arc<dyn Disk> = Arc::new(logs);
    let wanted = find_cut(&*logs, &checkpoint, &manifest, until)?;
    let end_position = copy_log(&logs, target, &checkpoint, &manifest, wanted.cut)?;
    target.sync_dir()?;
    Ok(Restored {
        end_position,
        last_commit_micros: wanted.last_commit_micros,
        is_reached: wanted.cut.is_some(),
        page_bytes: manifest.page_bytes,
    })
}

/// Compares the files of a backup with its list.
///
/// # Errors
/// The first difference; I/O.
pub(crate) fn verify_files(backup: &dyn Disk) -> io::Result<()> {
    let manifest = Manifest::read(backup)?;
    manifest.files.iter().try_for_each(|file| copy_verified(backup, file, None, |_| {}))
}

fn check_archive(archive: &dyn Disk, manifest: &Manifest) -> io::Result<()> {
    match identity::read(archive)? {
        None => Err(refused("this is not an archive: it has no file `identity`".into())),
        Some(identity) if identity != manifest.identity => Err(refused(
            "the archive holds the log of another data directory than the one that the backup is of; \
             name the archive that belongs to it"
                .into(),
        )),
        Some(_) => Ok(()),
    }
}

/// Reads a file of the backup to its end, compares it with the list and copies it.
fn copy_verified(
    backup: &dyn Disk,
    sum: &FileSum,
    target: Option<&dyn Disk>,
    mut progress: impl FnMut(u64),
) -> io::Result<()> {
    let FileSum { name, bytes, crc } = sum;
    let from = match backup.open(name, OpenMode::Existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(refused(format!(
                "the backup's file `{name}` is missing; use another copy of the backup"
            )));
        }
        other => other?,
    };
    let to = target.map(|target| target.open(name, OpenMode::OrCreate)).transpose()?;
    let (mut chunk, mut read, mut found) = (vec![0; CHUNK_BYTES], 0, CrcSum::new());
    loop {
        let count = from.read_at(&mut chunk, read)?;
        found.add(&chunk[..count]);
        if let Some(to) = &to {
            to.write_at(&chunk[..count], read)?;
        }
        read += count as u64;
        progress(count as u64);
        if count < chunk.len() {
            break;
        }
    }
    if read != *bytes || found.value() != *crc {
        return Err(refused(format!(
            "the backup's file `{name}` is damaged (it has {read} bytes of {bytes}, or others than were \
             written); use another copy of the backup"
        )));
    }
    to.map_or(Ok(()), |to| to.sync())
}

/// Where the log is to end.
#[derive(Default)]
struct Wanted {
    /// First ticket that does not count; `None`: all of the log counts.
    cut: Option<u64>,
    last_commit_micros: u64,
}

fn find_cut(
    logs: &dyn Disk,
    checkpoint: &Checkpoint,
    manifest: &Manifest,
    until: RestoreUntil,
) -> io::Result<Wanted> {
    let mut wanted = Wanted::default();
    let too_early = || {
        refused(format!(
            "the backup ends after the requested time, at position {} ({}); use an earlier backup",
            manifest.end_position,
            time_text(manifest.ended_micros),
        ))
    };
    if let RestoreUntil::Position(position) = until {
        if position.saturating_add(1) < manifest.end_position {
            return Err(too_early());
        }
        wanted.cut = Some(position.saturating_add(1));
    }
    // Perhaps nothing was committed during the backup: earlier commits are in it anyway.
    if matches!(until, RestoreUntil::Micros(limit) if limit < manifest.started_micros) {
        return Err(too_early());
    }
    let mut is_too_early = false;
    let block_bytes = manifest.block_bytes as usize;
    each_commit(logs, checkpoint, block_bytes, |ticket, micros| {
        if wanted.cut.is_some_and(|cut| ticket >= cut) {
            return ControlFlow::Break(());
        }
        let is_beyond = |limit: u64| micros.is_some_and(|micros| micros > limit);
        if matches!(until, RestoreUntil::Micros(limit) if is_beyond(limit)) {
            is_too_early = ticket < manifest.end_position;
            wanted.cut = Some(ticket);
            return ControlFlow::Break(());
        }
        wanted.last_commit_micros = micros.unwrap_or(wanted.last_commit_micros);
        ControlFlow::Continue(())
    })?;
    if is_too_early { Err(too_early()) } else { Ok(wanted) }
}

/// Copies the log from the checkpoint to the cut or its end. Returns the first position that does not count.
fn copy_log(
    logs: &Arc<dyn Disk>,
    target: &dyn Disk,
    checkpoint: &Checkpoint,
    manifest: &Manifest,
    cut: Option<u64>,
) -> io::Result<u64> {
    let block_bytes = manifest.block_bytes as usize;
    let mut follower = Follower::new(logs.clone(), checkpoint.position, block_bytes);
    let mut output: Option<(u64, Arc<dyn File>)> = None;
    let mut reached = None;
    while reached.is_none()
        && let Some(batches) = follower.next(None)?
    {
        let LogPlace { segment, offset } = batches.place;
        let short = cut.and_then(|cut| cut_batches(&batches, cut, block_bytes));
        if output.as_ref().is_none_or(|(open, _)| *open != segment) {
            output.map_or(Ok(()), |(_, file)| file.sync())?;
            let name = wal::segment_name(segment);
            output = Some((segment, target.open(&name, OpenMode::OrCreate)?));
        }
        if let Some((_, file)) = &output {
            file.write_at(short.as_deref().unwrap_or(batches.bytes), offset)?;
        }
        reached = short.and(cut);
    }
    output.map_or(Ok(()), |(_, file)| file.sync())?;
    let end = reached.unwrap_or(follower.low());
    if end < manifest.end_position {
        return Err(refused(format!(
            "the backup's log ends at position {end}, before its pages do ({}); use another copy of the backup",
            manifest.end_position
        )));
    }
    if reached.is_none() {
        check_whole(&**logs, follower.place(), end, cut)?;
    }
    Ok(end)
}

/// The chain has ended without a cut: nothing may follow, and the requested position must have been reached.
fn check_whole(logs: &dyn Disk, end: LogPlace, position: u64, cut: Option<u64>) -> io::Result<()> {
    let names = logs.list()?;
    let later = names.iter().filter_map(|name| segment_number(name)).filter(|at| *at > end.segment);
    if let Some(later) = later.min() {
        return Err(refused(format!(
            "the archive has a gap: the log ends at position {position} in `{}` and continues in `{}`; put the missing files \
             back, or restore up to position {} or less, or use a later backup",
            wal::segment_name(end.segment),
            wal::segment_name(later),
            position.saturating_sub(1),
        )));
    }
    match cut {
        Some(cut) if cut > position => Err(refused(format!(
            "the log ends at position {position}, before the requested one; add the archive's newer files, or omit the \
             position to restore the whole archive"
        ))),
        _ => Ok(()),
    }
}

/// A time as users read it, UTC.
pub fn time_text(micros: u64) -> String {
    let Some(time) = DateTime::from_unix_micros(micros as i64) else { return "?".into() };
    let mut text = Vec::new();
    time.write_text(6, &mut text);
    format!("{} UTC", String::from_utf8_lossy(&text))
}
