//! Taking a checkpoint: where redo starts, and the undo of everybody who is not settled.

use std::io;
use std::sync::atomic::Ordering;

use stdx::bytes::{Reader, put_blob, put_u64};
use sys::disk::{Disk, OpenMode};
use wal::{Checkpoint, CheckpointFile};

use crate::core::UndoLog;
use crate::system::TxnSystem;

/// Name of the straddle file of a checkpoint.
pub(crate) fn straddle_name(number: u64) -> String {
    format!("straddle-{number}")
}

/// A core as it stands in a straddle file.
pub(crate) struct Straddler {
    pub id: u64,
    pub commit: u64,
    pub purged: u64,
    pub undo: UndoLog,
}

/// Stores a checkpoint after `previous` and returns its number. `flush` says whether to write all dirty pages first, as at shutdown.
///
/// # Errors
/// I/O; the checkpoint before still counts.
pub fn take_checkpoint(
    system: &TxnSystem,
    disk: &dyn Disk,
    file: &CheckpointFile,
    previous: u64,
) -> io::Result<u64> {
    let _one = system.checkpointing.lock();
    let number = previous + 1;
    // In this order: a change with a ticket below `ceiling` has marked its page, and pushed its undo, before the looks below.
    let ceiling = system.log.next_ticket();
    let redo_from = system.pool.oldest_change(ceiling);
    let image = straddle_image(system);
    let straddle = disk.open(&straddle_name(number), OpenMode::OrCreate)?;
    straddle.set_size(0)?;
    straddle.write_at(&image, 0)?;
    straddle.sync()?;
    disk.sync_dir()?;
    let next_ticket = system.log.next_ticket();
    system.log.flush_to(next_ticket - 1)?; // X7
    let position = system.log.position_for(redo_from);
    let page_bytes = system.pool.page_bytes() as u32;
    file.store(&Checkpoint { number, redo_from, position, next_ticket, page_bytes })?;
    system.log.forget_before(position)?;
    remove_straddles_except(disk, number)?;
    Ok(number)
}

pub(crate) fn remove_straddles_except(disk: &dyn Disk, number: u64) -> io::Result<()> {
    let kept = straddle_name(number);
    for name in disk.list()? {
        if name.starts_with("straddle-") && name != kept {
            disk.remove(&name)?;
        }
    }
    Ok(())
}

/// Bytes: checksum:32, then for each core id, commit, purged, last, and its undo.
fn straddle_image(system: &TxnSystem) -> Vec<u8> {
    let mut out = vec![0; 4];
    for core in system.all_cores() {
        // X2: the mutex makes undo and commit one state.
        let undo = core.undo.lock();
        put_u64(&mut out, core.id);
        put_u64(&mut out, core.commit.load(Ordering::Acquire));
        put_u64(&mut out, core.purged.load(Ordering::Acquire));
        put_u64(&mut out, undo.last);
        put_blob(&mut out, &undo.bytes);
    }
    let crc = stdx::hash_bytes(1, &out[4..]) as u32;
    out[..4].copy_from_slice(&crc.to_le_bytes());
    out
}

pub(crate) fn read_straddle(disk: &dyn Disk, number: u64) -> io::Result<Vec<Straddler>> {
    let file = disk.open(&straddle_name(number), OpenMode::Existing)?;
    let mut bytes = vec![0; file.size_bytes()? as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    parse(&bytes)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "straddle file is damaged"))
}

fn parse(bytes: &[u8]) -> Option<Vec<Straddler>> {
    let mut reader = Reader::new(bytes);
    let crc = reader.u32()?;
    if crc != stdx::hash_bytes(1, reader.rest()) as u32 {
        return None;
    }
    let mut cores = Vec::new();
    while !reader.is_empty() {
        let (id, commit, purged) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let last = reader.u64()?;
        let undo = UndoLog { last, bytes: reader.blob()?.to_vec() };
        cores.push(Straddler { id, commit, purged, undo });
    }
    Some(cores)
}
