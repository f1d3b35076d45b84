//! Taking a checkpoint: where redo starts, and the undo of all transactions that are not settled.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use sys::sync::atomic::Ordering;

use stdx::bytes::{Reader, put_blob, put_u64};
use sys::disk::{Disk, File, OpenMode};
use wal::{Checkpoint, CheckpointFile};

use crate::filed::SharedFile;
use crate::subjects::Subjects;
use crate::system::TxnSystem;
use crate::undo_log::{FILE_PREFIX, UndoLog, UndoSpace};

/// Name of a checkpoint's file of unsettled transactions.
pub(crate) fn unsettled_file_name(number: u64) -> String {
    format!("straddle-{number}")
}

/// Name of the file that becomes the next checkpoint's: its blocks are there already, so that a checkpoint needs no space (X19).
const RESERVE_NAME: &str = "checkpoint-reserve";
/// Bytes of it at least; more when the last file of unsettled transactions was longer than half of it.
pub(crate) const RESERVE_BYTES_MIN: u64 = 4 << 20;

/// Kind of an entry without an id in the file of unsettled transactions: the subjects of the undo of active ones (X16).
const SUBJECTS: u64 = 0;
/// The same for the names of prepared transactions (X17).
const NAMES: u64 = 1;

/// A transaction that is not settled, as the checkpoint's file stores it.
pub(crate) struct UnsettledTxn {
    pub id: u64,
    pub commit: u64,
    pub purged: u64,
    pub undo: UndoLog,
    /// The name under which it is prepared.
    pub name: Option<Arc<[u8]>>,
}

/// Stores a checkpoint after number `previous`.
///
/// # Errors
/// I/O; the previous checkpoint remains valid.
pub fn take_checkpoint(
    system: &TxnSystem,
    disk: &dyn Disk,
    file: &CheckpointFile,
    previous: u64,
) -> io::Result<Checkpoint> {
    let pins = system.checkpointing.lock();
    let number = previous + 1;
    // In this order: a change with a ticket below `ceiling` has marked its page, and pushed its undo, before the reads below.
    let ceiling = system.log.next_ticket();
    let redo_from = system.pool.oldest_change(ceiling);
    // Files of transactions settled before the image is built: no checkpoint from this one on names them.
    let unused = match *pins {
        0 => std::mem::take(&mut *system.unused_files.lock()),
        // A reader uses files that an earlier checkpoint names.
        _ => Vec::new(),
    };
    let stored = store(system, disk, file, number, redo_from);
    if stored.is_err() {
        system.unused_files.lock().extend(unused);
        return stored;
    }
    if *pins == 0 {
        remove_unsettled_except(disk, number)?;
    }
    // Who lacks the reserve is told (`is_reserve_whole`); the checkpoint is taken.
    let _ = system.make_reserve();
    for name in &unused {
        disk.remove(name)?;
    }
    stored
}

fn store(
    system: &TxnSystem,
    disk: &dyn Disk,
    file: &CheckpointFile,
    number: u64,
    redo_from: u64,
) -> io::Result<Checkpoint> {
    let (image, undo_files) = unsettled_image(system);
    // Before `sync_dir`, which makes their names durable too.
    undo_files.iter().try_for_each(|undo_file| undo_file.sync())?;
    let unsettled = open_unsettled(disk, number)?;
    let mut image = image;
    pad(&mut image, unsettled.size_bytes()?);
    seal(&mut image);
    unsettled.write_at(&image, 0)?;
    unsettled.sync()?;
    system.unsettled_bytes.store(image.len() as u64, Ordering::Relaxed);
    disk.sync_dir()?;
    let next_ticket = system.log.next_ticket();
    system.log.flush_to(next_ticket - 1)?; // X7
    let position = system.log.position_for(redo_from);
    let page_bytes = system.pool.page_bytes() as u32;
    let redo_rate = system.redo_rate();
    let durable_batch = system.log.durable_batch();
    assert!(system.log.durable() >= next_ticket, "a checkpoint names only durable tickets (X7)");
    assert!(redo_from <= next_ticket, "redo starts among tickets that were drawn");
    let checkpoint = Checkpoint {
        number,
        redo_from,
        position,
        next_ticket,
        durable_batch,
        page_bytes,
        redo_rate,
    };
    file.store(&checkpoint)?;
    system.log.forget_before(position)?;
    Ok(checkpoint)
}

/// Keeps the files that a checkpoint names from being removed, also for checkpoints taken from now on, until it is dropped.
pub struct FilePin(Arc<TxnSystem>);

impl FilePin {
    /// Pins the files of a checkpoint that is taken afterwards.
    pub fn new(system: &Arc<TxnSystem>) -> FilePin {
        *system.checkpointing.lock() += 1;
        FilePin(system.clone())
    }
}

impl Drop for FilePin {
    fn drop(&mut self) {
        *self.0.checkpointing.lock() -= 1;
    }
}

/// Names of the files besides pages and log that a recovery from a checkpoint may read, as they are now.
///
/// # Errors
/// I/O.
pub fn files_beside(disk: &dyn Disk, checkpoint: u64) -> io::Result<Vec<String>> {
    let unsettled = unsettled_file_name(checkpoint);
    let mut names = disk.list()?;
    names.retain(|name| *name == unsettled || name.starts_with(FILE_PREFIX));
    names.sort_unstable();
    Ok(names)
}

/// The file of a checkpoint's unsettled transactions: the reserve, if it is there.
fn open_unsettled(disk: &dyn Disk, number: u64) -> io::Result<Arc<dyn File>> {
    let name = unsettled_file_name(number);
    match disk.rename(RESERVE_NAME, &name) {
        Ok(()) => disk.open(&name, OpenMode::Existing),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let file = disk.open(&name, OpenMode::OrCreate)?;
            file.set_size(0)?;
            Ok(file)
        }
        Err(error) => Err(error),
    }
}

/// Makes an image at least as long as the file that it replaces: cutting the file would give its blocks to others. The rest is a name of no
/// transaction.
fn pad(image: &mut Vec<u8>, length: u64) {
    /// Words of an entry and of a name, and the lengths of two blobs.
    const HEAD_BYTES: usize = 8 * 8 + 2 * 4;
    let length = length as usize;
    if image.len() < length {
        put_padding(image, length.saturating_sub(image.len() + HEAD_BYTES));
    }
    assert!(image.len() >= length, "the whole file is written (X19)");
}

fn put_padding(image: &mut Vec<u8>, bytes: usize) {
    [0, NAMES, 0, 0, 0, 0, 0].into_iter().for_each(|word| put_u64(image, word));
    let mut name = Vec::new();
    put_u64(&mut name, 0);
    put_blob(&mut name, &vec![0; bytes]);
    put_blob(image, &name);
}

/// The first of the others becomes the reserve, if there is none.
pub(crate) fn remove_unsettled_except(disk: &dyn Disk, number: u64) -> io::Result<()> {
    let kept = unsettled_file_name(number);
    let names = disk.list()?;
    let mut has_reserve = names.iter().any(|name| name == RESERVE_NAME);
    for name in names {
        if name.starts_with("straddle-") && name != kept {
            if std::mem::replace(&mut has_reserve, true) {
                disk.remove(&name)?;
            } else {
                disk.rename(&name, RESERVE_NAME)?;
            }
        }
    }
    Ok(())
}

impl TxnSystem {
    /// Makes the file that the next checkpoint takes.
    ///
    /// # Errors
    /// `StorageFull`, `QuotaExceeded`; I/O.
    pub fn make_reserve(&self) -> io::Result<()> {
        let last = self.unsettled_bytes.load(Ordering::Relaxed);
        let wanted = (last * 2).max(self.checkpoint_reserve_min);
        if self.checkpoint_reserve_min == 0 {
            return Ok(());
        }
        let disk = &self.undo_space.disk;
        let mut file = disk.open(RESERVE_NAME, OpenMode::OrCreate)?;
        if file.size_bytes()? > wanted.saturating_mul(4) {
            // An image of as many bytes is written each time.
            disk.remove(RESERVE_NAME)?;
            file = disk.open(RESERVE_NAME, OpenMode::OrCreate)?;
        }
        let made = file.reserve(0, wanted);
        self.has_checkpoint_reserve.store(made.is_ok(), Ordering::Relaxed);
        made
    }

    /// Whether the next checkpoint needs no space, as far as is known.
    #[inline]
    pub fn has_checkpoint_reserve(&self) -> bool {
        self.has_checkpoint_reserve.load(Ordering::Relaxed)
    }
}

/// Builds the bytes of the file: checksum:32, then for each transaction id, commit, purged, last, bytes of its undo in a file, number of that file when others share
/// it, where it begins there, and the rest of its undo. At the end entries of the same form without an id, whose "commit" gives the kind of their
/// "undo", see `docs/format/wal.md`. Also returns the files that must be synced.
fn unsettled_image(system: &TxnSystem) -> (Vec<u8>, Vec<Arc<dyn File>>) {
    /// Words of a transaction and the length of its undo.
    const HEAD_BYTES: usize = 7 * 8 + 4;
    let (mut out, mut files) = (vec![0; 4], Vec::new());
    let mut shared_files = HashMap::new();
    let (mut subjects, mut names) = (Vec::new(), Vec::new());
    let cores = system.all_cores();
    let undo: usize = cores.iter().map(|core| core.undo_bytes().0).sum();
    // Room for all of it, and for transactions that begin in the meantime: growing would take twice the memory.
    out.reserve(undo + undo / 8 + (cores.len() + system.purge_backlog()) * HEAD_BYTES);
    for core in cores {
        // X2: the mutex makes undo and commit one state.
        let undo = core.undo.lock();
        let (number, at) = undo.shared.as_ref().map_or((0, 0), |(file, at)| (file.number, *at));
        let (commit, purged) =
            (core.commit.load(Ordering::Acquire), core.purged.load(Ordering::Acquire));
        let words = [core.id, commit, purged, undo.last, undo.base, number, at];
        words.iter().for_each(|word| put_u64(&mut out, *word));
        put_blob(&mut out, &undo.bytes);
        if core.is_active()
            && let Some(known) = &undo.subjects
        {
            let count = known.iter().count() as u64;
            [core.id, count]
                .into_iter()
                .chain(known.iter())
                .for_each(|word| put_u64(&mut subjects, word));
        }
        if core.is_active()
            && let Some(name) = core.prepared_name()
        {
            put_u64(&mut names, core.id);
            put_blob(&mut names, &name);
        }
        match &undo.shared {
            Some((shared, _)) => drop(shared_files.insert(shared.number, shared.file.clone())),
            None => files.extend(undo.file.clone()),
        }
    }
    // After the live ones: a transaction filed in between is in the image twice, with the same undo.
    system.each_filed(|id, filed| {
        let words =
            [id, filed.commit, filed.purged, filed.last, filed.length, filed.file.number, filed.at];
        words.iter().for_each(|word| put_u64(&mut out, *word));
        put_blob(&mut out, &[]);
        shared_files.insert(filed.file.number, filed.file.file.clone());
    });
    files.extend(shared_files.into_values());
    // Subjects come last: earlier versions expect them there.
    for (kind, bytes) in [(NAMES, names), (SUBJECTS, subjects)] {
        if !bytes.is_empty() {
            [0, kind, 0, 0, 0, 0, 0].into_iter().for_each(|word| put_u64(&mut out, word));
            put_blob(&mut out, &bytes);
        }
    }
    (out, files)
}

/// Fills in the checksum.
pub(crate) fn seal(image: &mut [u8]) {
    let crc = stdx::hash_bytes(1, &image[4..]) as u32;
    image[..4].copy_from_slice(&crc.to_le_bytes());
}

pub(crate) fn read_unsettled(space: &UndoSpace, number: u64) -> io::Result<Vec<UnsettledTxn>> {
    let file = space.disk.open(&unsettled_file_name(number), OpenMode::Existing)?;
    let mut bytes = vec![0; file.size_bytes()? as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    let damaged = || {
        io::Error::new(io::ErrorKind::InvalidData, "the file of unsettled transactions is damaged")
    };
    let mut cores = parse(&bytes).ok_or_else(damaged)?;
    let (mut subjects, mut names) = (HashMap::new(), HashMap::new());
    while let Some(about) = cores.pop_if(|core| core.id == 0) {
        match about.commit {
            SUBJECTS => subjects = parse_subjects(&about.bytes).ok_or_else(damaged)?,
            NAMES => names = parse_names(&about.bytes).ok_or_else(damaged)?,
            _ => return Err(damaged()),
        }
    }
    let mut files: HashMap<u64, Arc<SharedFile>> = HashMap::new();
    cores
        .into_iter()
        .map(|core| {
            let Stored { id, commit, purged, last, base, shared, at, bytes } = core;
            let undo = match shared {
                0 => {
                    let subjects = subjects.remove(&id);
                    UndoLog::restored(id, space, last, base, bytes, subjects)?
                }
                number => {
                    let file = match files.entry(number) {
                        Entry::Occupied(found) => found.get().clone(),
                        Entry::Vacant(vacant) => {
                            let file = SharedFile::existing(&*space.disk, number)?;
                            vacant.insert(Arc::new(file)).clone()
                        }
                    };
                    UndoLog::shared(id, last, base, (file, at))
                }
            };
            Ok(UnsettledTxn { id, commit, purged, undo, name: names.remove(&id) })
        })
        .collect()
}

pub(crate) struct Stored {
    id: u64,
    commit: u64,
    purged: u64,
    last: u64,
    base: u64,
    shared: u64,
    at: u64,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn parse(bytes: &[u8]) -> Option<Vec<Stored>> {
    let mut reader = Reader::new(bytes);
    let crc = reader.u32()?;
    if crc != stdx::hash_bytes(1, reader.rest()) as u32 {
        return None;
    }
    let mut cores = Vec::new();
    while !reader.is_empty() {
        let (id, commit, purged) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (last, base) = (reader.u64()?, reader.u64()?);
        let (shared, at) = (reader.u64()?, reader.u64()?);
        let bytes = reader.blob()?.to_vec();
        cores.push(Stored { id, commit, purged, last, base, shared, at, bytes });
    }
    Some(cores)
}

pub(crate) fn parse_subjects(bytes: &[u8]) -> Option<HashMap<u64, Subjects>> {
    let mut reader = Reader::new(bytes);
    let mut all = HashMap::new();
    while !reader.is_empty() {
        let (id, count) = (reader.u64()?, reader.u64()?);
        let numbers: Option<Subjects> = (0..count).map(|_| reader.u64()).collect();
        all.insert(id, numbers?);
    }
    Some(all)
}

pub(crate) fn parse_names(bytes: &[u8]) -> Option<HashMap<u64, Arc<[u8]>>> {
    let mut reader = Reader::new(bytes);
    let mut all = HashMap::new();
    while !reader.is_empty() {
        all.insert(reader.u64()?, reader.blob()?.into());
    }
    Some(all)
}
