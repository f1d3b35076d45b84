//! Distinguishing a damaged log from one that a crash cut short (W12).
//!
//! After a crash the last batches may be torn, also one before a whole one: several writes are under way at a time. But every batch
//! says which ones were durable when it was made. A whole batch that calls the missing one durable proves that it existed and was acknowledged.

use std::fmt;
use std::io;

use sys::disk::{Disk, File, OpenMode};

use crate::batch::{HEADER_BYTES, Header};
use crate::replay::{append, segment_numbers};
use crate::writer::segment_name;

/// Bytes of log read at a time.
const CHUNK_BYTES: usize = 1 << 20;

/// The treatment of a log that cannot be read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagePolicy {
    /// Nothing is opened; the files stay as they are.
    Refuse,
    /// The log before the damage is used, everything after it is discarded.
    StopThere,
}

/// Proof that the missing batch was durable.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Witness {
    Batch { number: u64, file: String, offset: u64 },
    Checkpoint,
}

/// The place of the damage in a log, and its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDamage {
    /// File with the last batch before the damage.
    pub file: String,
    /// The damage is at this offset of it, or at the start of the next file when this one ends there.
    pub offset: u64,
    /// Number of the batch that should be there.
    pub batch: u64,
    /// Every readable ticket after the damage is below it.
    pub(crate) high: u64,
    witness: Witness,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogDamage { file, offset, batch, .. } = self;
        write!(
            f,
            "the log is damaged: batch {batch} cannot be read, which should be at offset {offset} of '{file}' or, when that \
             ends there, at the start of the next file; it was durable according to "
        )?;
        match &self.witness {
            Witness::Batch { number, file, offset } => {
                write!(f, "batch {number} at offset {offset} of '{file}'")
            }
            Witness::Checkpoint => f.write_str("the last checkpoint"),
        }
    }
}

/// The place after the last batch of a log, and the batch that should be there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub segment: u64,
    pub offset: u64,
    pub epoch: u32,
    pub batch: u64,
}

/// Searches after the end of a log for batches that prove that more existed. `durable`: batches below it were durable when the checkpoint was taken.
pub(crate) fn find_damage(
    disk: &dyn Disk,
    end: End,
    durable: u64,
    block_bytes: usize,
) -> io::Result<Option<LogDamage>> {
    let mut witness = (durable > end.batch).then_some(Witness::Checkpoint);
    let mut high = 0;
    for segment in segment_numbers(disk)?.into_iter().filter(|number| *number >= end.segment) {
        let from = if segment == end.segment { end.offset } else { 0 };
        let name = segment_name(segment);
        let file = disk.open(&name, OpenMode::Existing)?;
        each_later_batch(&*file, from, end, block_bytes, |header, offset| {
            high = high.max(header.high);
            if witness.is_none() && header.durable > end.batch {
                let file = name.clone();
                witness = Some(Witness::Batch { number: header.number, file, offset });
            }
        })?;
    }
    let damage = witness.map(|witness| LogDamage {
        file: segment_name(end.segment),
        offset: end.offset,
        batch: end.batch,
        high,
        witness,
    });
    Ok(damage)
}

/// Calls `visit` for each whole batch of the last run, or a later one, with a number above that of `end`. A recycled segment holds older
/// batches, whose numbers are smaller; batches that an earlier run left after its end have a smaller epoch.
fn each_later_batch(
    file: &dyn File,
    from: u64,
    end: End,
    block_bytes: usize,
    mut visit: impl FnMut(Header, u64),
) -> io::Result<()> {
    let size = file.size_bytes()?;
    let (mut start, mut chunk, mut batch) = (from, Vec::new(), Vec::new());
    while start < size {
        chunk.clear();
        // No more than there is: what is asked for is zeroed first.
        let wanted = (size - start).min(CHUNK_BYTES.next_multiple_of(block_bytes) as u64);
        let read = append(file, start, wanted as usize, &mut chunk)?;
        for (block, offset) in chunk.chunks(block_bytes).zip((start..).step_by(block_bytes)) {
            let Some(header) = Header::parse(block) else { continue };
            let length = HEADER_BYTES as u64 + u64::from(header.length);
            if header.epoch < end.epoch || header.number <= end.batch || length > size - offset {
                continue;
            }
            batch.clear();
            append(file, offset, length as usize, &mut batch)?;
            if batch.get(8..length as usize).is_some_and(|rest| page::crc(rest) == header.crc) {
                visit(header, offset);
            }
        }
        if read == 0 {
            break;
        }
        start += read as u64;
    }
    Ok(())
}
