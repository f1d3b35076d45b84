//! A file of which the bytes are encrypted in units of 512, after a header that names no key but says where the units' numbers begin.
//!
//! The last unit is always whole on the disk. When the file does not end with a unit, its size there tells how far it goes: by a unit more than the bytes
//! that count, the rest being zeros.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crypt::{UNIT_BYTES, UnitCipher};

use crate::disk::{BLOCK_BYTES, BlockBuffer, DiskKey, File};
use crate::sync::Mutex;

/// Bytes before the first unit: a multiple of the largest page, so that what was aligned stays aligned.
pub const HEADER_BYTES: u64 = 32 << 10;

const MAGIC: [u8; 4] = *b"SQEN";
const VERSION: u32 = 1;
const SALT_BYTES: usize = 16;
const UNIT: u64 = UNIT_BYTES as u64;

/// The header's bytes that count; the others are zero. Far less than a device writes at once.
const FACTS_BYTES: usize = 8 + SALT_BYTES + 4;

fn facts_of(salt: u128) -> [u8; FACTS_BYTES] {
    let mut facts = [0; FACTS_BYTES];
    facts[..4].copy_from_slice(&MAGIC);
    facts[4..8].copy_from_slice(&VERSION.to_le_bytes());
    facts[8..8 + SALT_BYTES].copy_from_slice(&salt.to_le_bytes());
    let sum = crypt::checksum(&facts[..8 + SALT_BYTES]);
    facts[8 + SALT_BYTES..].copy_from_slice(&sum.to_le_bytes());
    facts
}

/// The number of the first unit; `None` when the bytes are no header.
fn salt_of(facts: &[u8; FACTS_BYTES]) -> Option<u128> {
    let salt = facts[8..].first_chunk::<SALT_BYTES>().copied().map(u128::from_le_bytes)?;
    (facts_of(salt) == *facts).then_some(salt)
}

fn new_salt() -> io::Result<u128> {
    let mut salt = [0; SALT_BYTES];
    crate::entropy::fill(&mut salt)?;
    Ok(u128::from_le_bytes(salt))
}

/// Bytes on the disk after the header, of a file of this size.
fn stored_size(size: u64) -> u64 {
    let stored = match size % UNIT {
        0 => size,
        _ => size + UNIT,
    };
    debug_assert_eq!(size_of_stored(stored), size, "the stored size tells the size");
    stored
}

/// The reverse.
fn size_of_stored(stored: u64) -> u64 {
    match stored % UNIT {
        0 => stored,
        _ => stored.saturating_sub(UNIT),
    }
}

/// An encrypted file over another one.
pub struct EncryptedFile {
    below: Arc<dyn File>,
    units: Arc<UnitCipher>,
    salt: u128,
    header_bytes: u64,
    /// See `EncryptedDisk`.
    partial: Arc<Mutex<()>>,
    /// Its user writes whole units only, so that no size has to be asked for.
    is_in_blocks: bool,
    /// For the next write.
    buffer: Mutex<BlockBuffer>,
}

impl EncryptedFile {
    /// Over `below`, which gets a header when it has none because it is new.
    ///
    /// # Errors
    /// The file has bytes and no header: it is not encrypted, or damaged. I/O.
    pub(super) fn open(
        below: Arc<dyn File>,
        units: Arc<UnitCipher>,
        partial: &Arc<Mutex<()>>,
        is_in_blocks: bool,
    ) -> io::Result<EncryptedFile> {
        let _alone = partial.lock();
        let mut block = BlockBuffer::default();
        block.reset(BLOCK_BYTES).fill(0);
        below.read_at(block.bytes_mut(), 0)?;
        let found = block.bytes().first_chunk().and_then(salt_of);
        let salt = match found {
            Some(salt) => salt,
            // Written and synced before anything else was: without it the file was being made.
            None if below.size_bytes()? <= HEADER_BYTES => {
                let salt = new_salt()?;
                block.reset(BLOCK_BYTES).fill(0);
                block.bytes_mut()[..FACTS_BYTES].copy_from_slice(&facts_of(salt));
                let made = below
                    .write_at(block.bytes(), 0)
                    .and_then(|()| below.set_size(HEADER_BYTES))
                    .and_then(|()| below.sync());
                if let Err(error) = made {
                    // After a failed sync the cache may hold a header that the device has not: who opens the file next
                    // is not to find it.
                    let _ = below.set_size(0);
                    return Err(error);
                }
                salt
            }
            None => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the file is not encrypted, or its first bytes are damaged",
                ));
            }
        };
        Ok(EncryptedFile {
            below,
            units,
            salt,
            header_bytes: HEADER_BYTES,
            partial: partial.clone(),
            is_in_blocks,
            buffer: Mutex::default(),
        })
    }

    /// Over a file that ends with the process: without a header, under a key of its own.
    pub(crate) fn unkept(below: Arc<dyn File>) -> io::Result<EncryptedFile> {
        Ok(EncryptedFile {
            below,
            units: super::key::unkept_units()?,
            salt: 0,
            header_bytes: 0,
            partial: Arc::default(),
            is_in_blocks: false,
            buffer: Mutex::default(),
        })
    }

    fn number(&self, offset: u64) -> u128 {
        self.salt.wrapping_add(u128::from(offset / UNIT))
    }

    fn has_partial(&self, offset: u64, length: usize) -> bool {
        !offset.is_multiple_of(UNIT) || !length.is_multiple_of(UNIT_BYTES)
    }

    /// Fills `bytes`, whole units, from `offset`; behind the end they are zero.
    fn read_units(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        debug_assert!(!self.has_partial(offset, bytes.len()), "units are read whole");
        let count = self.below.read_at(bytes, self.header_bytes + offset)?;
        bytes[count..].fill(0);
        self.units.decrypt(self.number(offset), bytes);
        Ok(())
    }

    /// Encrypts and writes whole units, and zeros behind them.
    fn write_units(&self, bytes: &[u8], offset: u64, zeros: usize) -> io::Result<()> {
        debug_assert!(!self.has_partial(offset, bytes.len()), "units are written whole");
        debug_assert!(zeros < UNIT_BYTES, "more would be another unit");
        let mut buffer = std::mem::take(&mut *self.buffer.lock());
        let sealed = buffer.reset(bytes.len() + zeros);
        sealed[..bytes.len()].copy_from_slice(bytes);
        self.units.encrypt(self.number(offset), &mut sealed[..bytes.len()]);
        sealed[bytes.len()..].fill(0);
        let written = self.below.write_at(sealed, self.header_bytes + offset);
        *self.buffer.lock() = buffer;
        written
    }

    /// A write that may not begin or end with a unit, or may change how much of the last one counts.
    fn write_any(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _alone = self.partial.lock();
        let before = self.size_bytes()?;
        let end = offset + bytes.len() as u64;
        let (first, last) = (offset - offset % UNIT, end.next_multiple_of(UNIT));
        let mut whole = vec![0; (last - first) as usize];
        if !offset.is_multiple_of(UNIT) && first < before {
            self.read_units(&mut whole[..UNIT_BYTES], first)?;
        }
        let tail = last - UNIT;
        if !end.is_multiple_of(UNIT)
            && tail < before
            && (tail != first || offset.is_multiple_of(UNIT))
        {
            let at = (tail - first) as usize;
            self.read_units(&mut whole[at..], tail)?;
        }
        let start = (offset - first) as usize;
        whole[start..start + bytes.len()].copy_from_slice(bytes);
        let size = before.max(end);
        let zeros = match last == size.next_multiple_of(UNIT) {
            true => size % UNIT,
            false => 0,
        };
        self.write_units(&whole, first, zeros as usize)?;
        // What told how far the last unit goes would now say less.
        if stored_size(before) > stored_size(size) {
            self.below.set_size(self.header_bytes + stored_size(size))?;
        }
        Ok(())
    }
}

impl File for EncryptedFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.is_in_blocks && !self.has_partial(offset, buf.len()) {
            let count = self.below.read_at(buf, self.header_bytes + offset)?;
            self.units.decrypt(self.number(offset), &mut buf[..count]);
            return Ok(count);
        }
        let size = self.size_bytes()?;
        let count = size.saturating_sub(offset).min(buf.len() as u64) as usize;
        if count == 0 {
            return Ok(0);
        }
        let first = offset - offset % UNIT;
        let last = (offset + count as u64).next_multiple_of(UNIT);
        let mut whole = vec![0; (last - first) as usize];
        self.read_units(&mut whole, first)?;
        let start = (offset - first) as usize;
        buf[..count].copy_from_slice(&whole[start..start + count]);
        Ok(count)
    }

    fn read_words(&self, words: &[AtomicU64], offset: u64) -> io::Result<usize> {
        let count = self.below.read_words(words, self.header_bytes + offset)?;
        debug_assert!(offset.is_multiple_of(UNIT), "pages are whole units");
        let mut number = self.number(offset);
        for words in words[..count / 8].chunks_exact(UNIT_BYTES / 8) {
            let mut unit = [0; UNIT_BYTES];
            for (bytes, word) in unit.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                *bytes = word.load(Ordering::Relaxed).to_le_bytes();
            }
            self.units.decrypt(number, &mut unit);
            for (bytes, word) in unit.as_chunks::<8>().0.iter().zip(words) {
                // Others may read the words now, and discard what they read.
                word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
            }
            number = number.wrapping_add(1);
        }
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        match buf.is_empty() || self.is_in_blocks && !self.has_partial(offset, buf.len()) {
            true if buf.is_empty() => Ok(()),
            true => self.write_units(buf, offset, 0),
            false => self.write_any(buf, offset),
        }
    }

    fn write_parts(&self, parts: &[(u64, &[u8])]) -> io::Result<()> {
        let in_blocks = |(offset, bytes): &(u64, &[u8])| !self.has_partial(*offset, bytes.len());
        if !self.is_in_blocks || !parts.iter().all(in_blocks) {
            return parts.iter().try_for_each(|(offset, bytes)| self.write_at(bytes, *offset));
        }
        let mut buffer = std::mem::take(&mut *self.buffer.lock());
        let mut rest = buffer.reset(parts.iter().map(|(_, bytes)| bytes.len()).sum());
        let mut sealed = Vec::with_capacity(parts.len());
        for (offset, bytes) in parts {
            let (here, behind) = rest.split_at_mut(bytes.len());
            here.copy_from_slice(bytes);
            self.units.encrypt(self.number(*offset), here);
            sealed.push((self.header_bytes + offset, &*here));
            rest = behind;
        }
        let written = self.below.write_parts(&sealed);
        drop(sealed);
        *self.buffer.lock() = buffer;
        written
    }

    fn sync(&self) -> io::Result<()> {
        self.below.sync()
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(size_of_stored(self.below.size_bytes()?.saturating_sub(self.header_bytes)))
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        let _alone = self.partial.lock();
        let before = self.size_bytes()?;
        if size_bytes < before {
            let first = size_bytes - size_bytes % UNIT;
            if first < size_bytes {
                // Zeros follow when the file grows again.
                let mut unit = [0; UNIT_BYTES];
                self.read_units(&mut unit, first)?;
                unit[(size_bytes - first) as usize..].fill(0);
                self.write_units(&unit, first, 0)?;
            }
            self.below.set_size(self.header_bytes + size_bytes.next_multiple_of(UNIT))?;
        }
        self.below.set_size(self.header_bytes + stored_size(size_bytes))
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.below.reserve(self.header_bytes + offset, length)
    }
}

/// Encrypts a file that is written front to back.
pub struct FileSealer {
    units: Arc<UnitCipher>,
    next: u128,
    /// Bytes that are no whole unit yet, and all before them that were not handed out.
    waiting: Vec<u8>,
}

impl FileSealer {
    /// With the header waiting.
    ///
    /// # Errors
    /// The operating system refused randomness.
    pub fn new(key: &dyn DiskKey) -> io::Result<(FileSealer, Vec<u8>)> {
        let salt = new_salt()?;
        let mut header = vec![0; HEADER_BYTES as usize];
        header[..FACTS_BYTES].copy_from_slice(&facts_of(salt));
        Ok((FileSealer { units: key.units(), next: salt, waiting: Vec::new() }, header))
    }

    /// Takes bytes and returns what is to be written now.
    pub fn seal(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.waiting.extend_from_slice(bytes);
        let whole = self.waiting.len() - self.waiting.len() % UNIT_BYTES;
        let rest = self.waiting.split_off(whole);
        let mut sealed = std::mem::replace(&mut self.waiting, rest);
        self.units.encrypt(self.next, &mut sealed);
        self.next = self.next.wrapping_add((whole / UNIT_BYTES) as u128);
        sealed
    }

    /// What is to be written last.
    pub fn end(mut self) -> Vec<u8> {
        let count = self.waiting.len();
        debug_assert!(count < UNIT_BYTES, "whole units were handed out");
        if count == 0 {
            return Vec::new();
        }
        let mut sealed = std::mem::take(&mut self.waiting);
        sealed.resize(UNIT_BYTES, 0);
        self.units.encrypt(self.next, &mut sealed);
        sealed.resize(UNIT_BYTES + count, 0);
        sealed
    }
}
