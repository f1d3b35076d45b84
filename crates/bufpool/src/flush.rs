//! Writing pages back: copies under shared latches, the doublewrite batch, in place, clean.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use page::{CHECKSUM_BYTES, PageNo, checksum, seal, verify};
use stdx::bytes::{Reader, put_u32};
use sys::disk::File;
use sys::mem::AlignedBytes;

use crate::pool::Pool;

/// Pages of one doublewrite batch.
pub(crate) const BATCH_PAGES: usize = 256;
/// Bytes of one write: the log's writes come in between (see `sys::ring`).
const PIECE_BYTES: usize = 128 * 1024;
/// The header block: magic, checksum of the rest, count, checksum of each page.
const HEADER_BYTES: usize = 4096;
const MAGIC: u32 = 0x5744_5153; // "SQDW"

/// A sync of page files failed: it is unknown which writes since the last good sync reached the device, so nothing may be retried. After a failed write
/// alone a retry is allowed: the pages are still in memory.
#[derive(Debug)]
pub struct SyncFailed(io::Error);

impl SyncFailed {
    fn wrap(error: io::Error) -> io::Error {
        io::Error::new(error.kind(), SyncFailed(error))
    }

    /// Whether an error is one.
    pub fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<SyncFailed>())
    }
}

impl std::fmt::Display for SyncFailed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "sync failed: {}", self.0)
    }
}

impl std::error::Error for SyncFailed {}

/// The one thread that writes pages holds this.
pub(crate) struct PageWriter {
    doublewrite: Arc<dyn File>,
    page_bytes: usize,
    /// The header block, then the copies.
    staging: AlignedBytes,
    /// Bytes of `staging` in use.
    filled: usize,
    pages: Vec<(u32, PageNo)>,
    /// The batch is in the doublewrite file and perhaps torn in place: no other may take its room before it is whole (B10).
    is_unfinished: bool,
}

impl PageWriter {
    pub fn new(doublewrite: Arc<dyn File>, page_bytes: usize) -> PageWriter {
        PageWriter {
            doublewrite,
            page_bytes,
            staging: AlignedBytes::new(0),
            filled: 0,
            pages: Vec::new(),
            is_unfinished: false,
        }
    }

    /// Blocks for the longest batch.
    pub fn reserve(&self) -> io::Result<()> {
        self.doublewrite.reserve(0, (HEADER_BYTES + BATCH_PAGES * self.page_bytes) as u64)
    }

    /// The header of a batch of sealed copies.
    fn header(&self) -> Vec<u8> {
        let mut out = vec![0; 8];
        put_u32(&mut out, self.pages.len() as u32);
        for image in self.staging[HEADER_BYTES..self.filled].chunks_exact(self.page_bytes) {
            out.extend_from_slice(&image[..CHECKSUM_BYTES]);
        }
        out.resize(HEADER_BYTES, 0);
        let crc = crc(&out);
        out[..4].copy_from_slice(&MAGIC.to_le_bytes());
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        out
    }
}

fn crc(header: &[u8]) -> u32 {
    // The page checksum skips the first four bytes; so does this one, after magic and checksum.
    checksum(&header[4..])
}

/// Bytes for a place in a file, cut into single writes.
fn pieces(offset: u64, bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let pieces = bytes.chunks(PIECE_BYTES).enumerate();
    pieces.map(move |(at, piece)| (offset + (at * PIECE_BYTES) as u64, piece))
}

/// Copies a page that does not change.
fn copy_out(words: &[AtomicU64], out: &mut [u8]) {
    assert_eq!(size_of_val(words), out.len());
    if cfg!(target_endian = "big") {
        return copy_by_words(words, out);
    }
    // SAFETY: the caller holds the shared latch, so no thread stores to these words, and racing atomic loads may run concurrently with a plain
    // read; `out` is borrowed exclusively and of the same size. The order in memory is that of files here.
    unsafe {
        std::ptr::copy_nonoverlapping(words.as_ptr().cast::<u8>(), out.as_mut_ptr(), out.len());
    }
}

/// Like `copy_out`, on machines with another byte order in memory than in files.
fn copy_by_words(words: &[AtomicU64], out: &mut [u8]) {
    for (word, bytes) in words.iter().zip(out.as_chunks_mut::<8>().0) {
        *bytes = word.load(Ordering::Relaxed).to_le_bytes();
    }
}

/// The bytes, in file order, of a frame that only its caller uses.
pub(crate) fn bytes_of(words: &[AtomicU64]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "big") {
        let mut bytes = vec![0; size_of_val(words)];
        copy_by_words(words, &mut bytes);
        return Cow::Owned(bytes);
    }
    // SAFETY: no entry names the frame, so no thread stores to it; a thread that still reads the frame's former page only loads
    // atomically, which may run concurrently with a plain read. The length is that of `words`, and any bits are valid bytes.
    Cow::Borrowed(unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) })
}

/// Copies a page that does not change into private words of the same size.
pub(crate) fn copy_between(source: &[AtomicU64], target: &[AtomicU64]) {
    assert_eq!(source.len(), target.len());
    // SAFETY: the caller holds the source's shared latch, so no thread stores to it, and racing atomic loads may run concurrently with a plain read;
    // `target` belongs to the caller alone, is of equal length, and its words may be written through a shared reference.
    unsafe {
        let to = target.as_ptr().cast_mut();
        std::ptr::copy_nonoverlapping(source.as_ptr(), to, source.len());
    }
}

impl Pool {
    /// Writes up to `limit` pages with changes older than `below`, oldest first. Returns how many.
    ///
    /// # Errors
    /// I/O; the pages stay dirty and are written again later.
    pub fn flush(&self, limit: usize, below: u64) -> io::Result<usize> {
        let mut candidates: Vec<(u64, u32)> = Vec::new();
        // No ticket is zero.
        if below > 0 {
            self.each_dirty(|frame, oldest| {
                if oldest < below {
                    candidates.push((oldest, frame));
                }
            });
        }
        if candidates.len() > limit {
            candidates.select_nth_unstable(limit);
            candidates.truncate(limit);
        }
        // In the order of the file, so that neighbours go out in one write. The page is read once: it may change in the meantime.
        for (key, frame) in &mut candidates {
            *key = u64::from(self.descriptor(*frame).page.load(Ordering::Relaxed));
        }
        candidates.sort_unstable();
        let frames: Vec<u32> = candidates.into_iter().map(|(_, frame)| frame).collect();
        self.flush_frames(&frames)
    }

    /// Writes the pages of these frames that are dirty, a batch at a time, so that other threads that wait for the writer get it in between.
    /// Returns how many pages were written, those of an unfinished batch included.
    pub(crate) fn flush_frames(&self, frames: &[u32]) -> io::Result<usize> {
        let mut count = 0;
        // Also without any frame: an unfinished batch comes first.
        for batch in frames.chunks(BATCH_PAGES).chain(frames.is_empty().then_some(&[][..])) {
            let mut writer = self.writer.lock();
            if writer.is_unfinished {
                count += self.finish_batch(&mut writer)?;
            }
            count += self.write_times.time(|| self.flush_batch(&mut writer, batch))?;
        }
        Ok(count)
    }

    fn flush_batch(&self, writer: &mut PageWriter, frames: &[u32]) -> io::Result<usize> {
        if writer.staging.is_empty() {
            writer.staging = AlignedBytes::new(HEADER_BYTES + BATCH_PAGES * writer.page_bytes);
        }
        writer.filled = HEADER_BYTES;
        writer.pages.clear();
        // In the order of the file: neighbours go out in one write.
        let page_of = |frame: &u32| self.descriptor(*frame).page.load(Ordering::Acquire);
        let mut batch: Vec<(u32, u32)> =
            frames.iter().map(|frame| (page_of(frame), *frame)).collect();
        batch.sort_unstable();
        batch.dedup();
        let mut lsn = 0;
        for (_, frame) in batch {
            lsn = lsn.max(self.stage(writer, frame)?);
        }
        if writer.pages.is_empty() {
            return Ok(0);
        }
        if let Some(log) = self.log() {
            log.flush_to(lsn)?;
            assert!(log.durable() > lsn, "the log is durable before pages are written (B7)");
        }
        let (page_bytes, filled) = (writer.page_bytes, writer.filled);
        writer.staging[HEADER_BYTES..filled].chunks_exact_mut(page_bytes).for_each(seal);
        let header = writer.header();
        writer.staging[..HEADER_BYTES].copy_from_slice(&header);
        if self.config.doublewrite {
            for (offset, piece) in pieces(0, &writer.staging[..filled]) {
                writer.doublewrite.write_at(piece, offset)?;
            }
            writer.doublewrite.sync().map_err(SyncFailed::wrap)?;
        }
        writer.is_unfinished = true;
        self.finish_batch(writer)
    }

    /// Writes the batch that is in the doublewrite file to its places.
    fn finish_batch(&self, writer: &mut PageWriter) -> io::Result<usize> {
        let mut images = &writer.staging[HEADER_BYTES..writer.filled];
        for (image, (_, no)) in images.chunks_exact(writer.page_bytes).zip(&writer.pages) {
            // Pairs with the check of every page that is read: written pages must pass it.
            assert!(verify(image, *no), "only whole pages go to their own places");
        }
        let runs = writer.pages.chunk_by(|(_, left), (_, right)| left.0 + 1 == right.0);
        let runs = runs.flat_map(|run| {
            let (here, rest) = images.split_at(run.len() * writer.page_bytes);
            images = rest;
            pieces(u64::from(run[0].1.0) * writer.page_bytes as u64, here)
        });
        self.file.write_parts(&runs.collect::<Vec<_>>())?;
        self.file.sync().map_err(SyncFailed::wrap)?;
        for (frame, _) in &writer.pages {
            // B6: from here a zero `first_change` means clean.
            self.descriptor(*frame).in_flight.store(0, Ordering::Release);
        }
        writer.is_unfinished = false;
        self.writes.fetch_add(writer.pages.len() as u64, Ordering::Relaxed);
        Ok(writer.pages.len())
    }

    /// Copies a page into the batch and returns its LSN; 0 when it is latched or moved away.
    fn stage(&self, writer: &mut PageWriter, frame: u32) -> io::Result<u64> {
        let descriptor = self.descriptor(frame);
        let no = PageNo(descriptor.page.load(Ordering::Acquire));
        if no.0 == u32::MAX {
            return Ok(0);
        }
        let entry = self.entry(no)?;
        if !entry.latch.try_lock_shared() {
            return Ok(0);
        }
        let mut lsn = 0;
        if entry.frame.load(Ordering::Acquire) == frame && descriptor.oldest_change() != 0 {
            let end = writer.filled + writer.page_bytes;
            copy_out(self.frame_words(frame), &mut writer.staging[writer.filled..end]);
            writer.filled = end;
            lsn = page::PageRef::new(self.frame_words(frame)).lsn();
            writer.pages.push((frame, no));
            // B6: in this order.
            descriptor.in_flight.store(descriptor.oldest_change(), Ordering::Release);
            if descriptor.first_change.swap(0, Ordering::AcqRel) != 0 {
                self.dirty.fetch_sub(1, Ordering::Relaxed);
            }
        }
        entry.latch.unlock_shared();
        Ok(lsn)
    }

    /// The smallest ticket that redo needs: `ceiling`, or the oldest change that is not on disk. Read `ceiling` before the call.
    pub fn oldest_change(&self, ceiling: u64) -> u64 {
        let mut oldest = ceiling;
        self.each_dirty(|_, ticket| oldest = oldest.min(ticket));
        oldest
    }

    /// Shows the frames with changes that are not on disk, with the tickets of the oldest.
    fn each_dirty(&self, visit: impl FnMut(u32, u64)) {
        self.marks.each(
            || self.resizing.frames_used(),
            |frame| self.descriptor(frame).oldest_change(),
            visit,
        );
    }

    /// Restores the pages of the last doublewrite batch that are torn in place (B8). Returns how many.
    ///
    /// # Errors
    /// I/O.
    pub fn restore_torn(
        file: &dyn File,
        doublewrite: &dyn File,
        page_bytes: usize,
    ) -> io::Result<usize> {
        let mut bytes = vec![0; doublewrite.size_bytes()? as usize];
        let count = doublewrite.read_at(&mut bytes, 0)?;
        bytes.truncate(count);
        let images = whole_batch(&bytes, page_bytes).unwrap_or_default();
        let mut restored = 0;
        let mut present = vec![0; page_bytes];
        for image in images {
            let no = PageNo(u32::from_le_bytes([image[8], image[9], image[10], image[11]]));
            let offset = u64::from(no.0) * page_bytes as u64;
            let count = file.read_at(&mut present, offset)?;
            if count < page_bytes || !verify(&present, no) {
                file.write_at(image, offset)?;
                restored += 1;
            }
        }
        // Also makes durable the writes of an earlier process that did not sync them.
        file.sync()?;
        Ok(restored)
    }
}

fn whole_batch(bytes: &[u8], page_bytes: usize) -> Option<Vec<&[u8]>> {
    let (header, body) = bytes.split_at_checked(HEADER_BYTES)?;
    let mut reader = Reader::new(header);
    if reader.u32()? != MAGIC || reader.u32()? != crc(header) {
        return None;
    }
    let count = reader.u32()? as usize;
    let images: Vec<&[u8]> = body.chunks_exact(page_bytes).take(count).collect();
    if images.len() < count {
        return None;
    }
    for image in &images {
        if reader.u32()? != checksum(image) {
            return None;
        }
    }
    Some(images)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_copying_give_the_bytes_of_the_file() {
        let words: Vec<AtomicU64> =
            [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908].map(AtomicU64::new).into();
        let expected: Vec<u8> = (0..16).collect();
        let (mut copied, mut by_words) = (vec![0; 16], vec![0; 16]);
        copy_out(&words, &mut copied);
        copy_by_words(&words, &mut by_words);
        assert_eq!((copied, by_words), (expected.clone(), expected.clone()));
        assert_eq!(*bytes_of(&words), expected[..]);
    }
}
