//! The checkpoint file: two blocks written in turn, so that one is always whole.

use std::io;
use std::sync::Arc;

use stdx::bytes::{Reader, put_u32, put_u64};
use sys::disk::{Disk, File, OpenMode};

use crate::log::LogPosition;

const FILE_NAME: &str = "checkpoint";
const BLOCK_BYTES: usize = 4096;
pub(crate) const MAGIC: u32 = 0x4B43_5153; // "SQCK"

// Two blocks, each one sector of any disk (docs/format/wal.md).
const _: () = assert!(BLOCK_BYTES == 4096);

/// A point from which recovery can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Counts checkpoints; the larger one of the two blocks counts. Names the file `straddle-<n>` of unsettled transactions.
    pub number: u64,
    /// No page lacks a change below it.
    pub redo_from: u64,
    /// Where to read from.
    pub position: LogPosition,
    /// Tickets below it may have been drawn.
    pub next_ticket: u64,
    /// Batches with a smaller number were durable when it was taken.
    pub durable_batch: u64,
    /// Bytes of a page; fixed at creation.
    pub page_bytes: u32,
    /// Bytes of log that the last recovery replayed in a second; 0 unknown.
    pub redo_rate: u64,
}

/// The open file.
pub struct CheckpointFile {
    file: Arc<dyn File>,
}

impl Checkpoint {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 8];
        put_u64(&mut out, self.number);
        put_u64(&mut out, self.redo_from);
        put_u64(&mut out, self.next_ticket);
        put_u64(&mut out, self.position.segment);
        put_u64(&mut out, self.position.batch);
        put_u64(&mut out, self.position.low);
        put_u64(&mut out, self.position.high);
        put_u32(&mut out, self.position.epoch);
        put_u32(&mut out, self.position.previous_crc);
        put_u32(&mut out, self.page_bytes);
        put_u64(&mut out, self.redo_rate);
        put_u64(&mut out, self.durable_batch);
        out.resize(BLOCK_BYTES, 0);
        let crc = page::crc(&out[8..]);
        out[..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The bytes of a file that holds this checkpoint alone.
    pub fn file_image(&self) -> Vec<u8> {
        let mut image = vec![0; 2 * BLOCK_BYTES];
        let start = (self.number % 2) as usize * BLOCK_BYTES;
        image[start..start + BLOCK_BYTES].copy_from_slice(&self.encode());
        image
    }

    pub(crate) fn decode(block: &[u8]) -> Option<Checkpoint> {
        let mut reader = Reader::new(block);
        let magic = reader.u32()?;
        let crc = reader.u32()?;
        if magic != MAGIC || crc != page::crc(block.get(8..)?) {
            return None;
        }
        let (number, redo_from, next_ticket) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (segment, batch) = (reader.u64()?, reader.u64()?);
        let (low, high) = (reader.u64()?, reader.u64()?);
        let (epoch, previous_crc) = (reader.u32()?, reader.u32()?);
        let position = LogPosition { segment, epoch, batch, previous_crc, low, high };
        let (page_bytes, redo_rate) = (reader.u32()?, reader.u64()?);
        let durable_batch = reader.u64()?;
        Some(Checkpoint {
            number,
            redo_from,
            position,
            next_ticket,
            durable_batch,
            page_bytes,
            redo_rate,
        })
    }
}

impl CheckpointFile {
    /// Opens the file and reads the newest whole checkpoint; `None` for a disk that was never set up. Setting one up stores two checkpoints.
    ///
    /// # Errors
    /// I/O; `InvalidData` if the file had checkpoints and none is whole.
    pub fn open(disk: &dyn Disk) -> io::Result<(CheckpointFile, Option<Checkpoint>)> {
        let file = disk.open(FILE_NAME, OpenMode::OrCreate)?;
        disk.sync_dir()?;
        let mut bytes = vec![0; 2 * BLOCK_BYTES];
        let count = file.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        let newest = bytes
            .chunks_exact(BLOCK_BYTES)
            .filter_map(Checkpoint::decode)
            .max_by_key(|checkpoint| checkpoint.number);
        // A crash may spoil the block that is being written, never both: this disk was in use.
        let was_used = |block: &[u8]| block.iter().any(|byte| *byte != 0);
        let mut blocks = bytes.chunks_exact(BLOCK_BYTES);
        if newest.is_none() && blocks.len() == 2 && blocks.all(was_used) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the file '{FILE_NAME}' is damaged: neither of its blocks is whole"),
            ));
        }
        Ok((CheckpointFile { file }, newest))
    }

    /// Blocks of the file that hold something and are not whole.
    ///
    /// # Errors
    /// I/O.
    pub fn damaged_blocks(disk: &dyn Disk) -> io::Result<usize> {
        let file = disk.open(FILE_NAME, OpenMode::Existing)?;
        let mut bytes = vec![0; 2 * BLOCK_BYTES];
        let count = file.read_at(&mut bytes, 0)?;
        let blocks = bytes[..count].chunks(BLOCK_BYTES);
        let damaged = blocks.filter(|block| {
            block.iter().any(|byte| *byte != 0) && Checkpoint::decode(block).is_none()
        });
        Ok(damaged.count())
    }

    /// Stores a checkpoint over the older one and makes it durable.
    ///
    /// # Errors
    /// I/O; the checkpoint before it still counts.
    pub fn store(&self, checkpoint: &Checkpoint) -> io::Result<()> {
        let offset = (checkpoint.number % 2) * BLOCK_BYTES as u64;
        self.file.write_at(&checkpoint.encode(), offset)?;
        self.file.sync()
    }
}
