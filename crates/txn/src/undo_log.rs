//! The undo entries of one transaction: an append-only sequence whose newest part is in memory and whose older part is in a file.
//!
//! Offsets never change meaning. The file's content never changes, so a checkpoint syncs the file and names its length instead of
//! copying it. The meaning of an entry is the caller's.

use std::io;
use std::sync::Arc;

use stdx::bytes::Reader;
use sys::disk::{Disk, File, OpenMode};

use crate::filed::{SharedFile, shared_name};
use crate::subjects::Subjects;

/// Bytes before a payload: length:32, checksum of the rest:32, pointer to the previous entry:64.
const ENTRY_HEADER_BYTES: usize = 16;
/// Seed of the checksum.
const CHECKSUM_SEED: u64 = 2;
/// Bytes read from the file at a time.
const WINDOW_BYTES: u64 = 64 << 10;
/// When reading backward, this share of a window lies after the head of the wanted entry: longer entries are read twice.
const ENTRY_SHARE: u64 = 4;
/// Names of the files start with it.
pub(crate) const FILE_PREFIX: &str = "undo-";

/// Name of the file of a transaction.
pub(crate) fn file_name(id: u64) -> String {
    format!("{FILE_PREFIX}{id}")
}

impl UndoLog {
    /// Name of the file with the older part, if it exists.
    pub fn file_name(&self) -> Option<String> {
        self.file.as_ref()?;
        Some(match &self.shared {
            Some((shared, _)) => shared_name(shared.number),
            None => file_name(self.id),
        })
    }
}

/// The place of undo that does not fit memory.
#[derive(Clone)]
pub(crate) struct UndoSpace {
    pub disk: Arc<dyn Disk>,
    /// Bytes that one transaction keeps in memory.
    pub memory_bytes: usize,
    /// The subject of an entry (X16).
    pub subject_of: fn(&[u8]) -> u64,
}

/// The head before a payload. Entries get their checksum when they move to a file: most never do.
fn header(previous: u64, payload: &[u8]) -> [u8; ENTRY_HEADER_BYTES] {
    let mut out = [0; ENTRY_HEADER_BYTES];
    out[..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    out[8..].copy_from_slice(&previous.to_le_bytes());
    out
}

/// Fills in the checksums of consecutive entries.
fn seal(mut entries: &mut [u8]) {
    while let Some((head, rest)) = entries.split_at_mut_checked(ENTRY_HEADER_BYTES) {
        let mut reader = Reader::new(head);
        let (length, _, previous) = (reader.u32(), reader.u32(), reader.u64());
        let payload = rest.split_at_mut_checked(length.unwrap_or(0) as usize);
        let Some((payload, behind)) = payload else { return };
        let sum = checksum(previous.unwrap_or(0), payload);
        head[4..8].copy_from_slice(&sum.to_le_bytes());
        entries = behind;
    }
}

fn checksum(previous: u64, payload: &[u8]) -> u32 {
    stdx::hash_bytes(CHECKSUM_SEED ^ previous, payload) as u32
}

/// See the file's head.
pub(crate) struct UndoLog {
    id: u64,
    /// Entries from `base` on.
    pub bytes: Vec<u8>,
    /// Bytes in the file.
    pub base: u64,
    pub file: Option<Arc<dyn File>>,
    /// The file is one that transactions share, and the entries begin at this offset of it.
    pub shared: Option<(Arc<SharedFile>, u64)>,
    /// The newest entry not undone.
    pub last: u64,
    /// The subjects of all entries; `None` when an earlier version wrote some of them.
    pub subjects: Option<Subjects>,
    /// Part of the file read last, and its place: rolling back and purging read in one direction.
    window: Vec<u8>,
    window_start: u64,
    window_bytes: u64,
}

impl UndoLog {
    /// No entries.
    pub fn new(id: u64) -> UndoLog {
        UndoLog {
            id,
            bytes: Vec::new(),
            base: 0,
            file: None,
            shared: None,
            window_bytes: WINDOW_BYTES,
            last: 0,
            subjects: Some(Subjects::default()),
            window: Vec::new(),
            window_start: 0,
        }
    }

    /// The state stored by a checkpoint: `base` bytes in the file, then `bytes`.
    pub fn restored(
        id: u64,
        space: &UndoSpace,
        last: u64,
        base: u64,
        bytes: Vec<u8>,
        subjects: Option<Subjects>,
    ) -> std::io::Result<UndoLog> {
        let file = match base {
            0 => None,
            _ => Some(space.disk.open(&file_name(id), OpenMode::Existing)?),
        };
        Ok(UndoLog { bytes, base, file, last, subjects, ..UndoLog::new(id) })
    }

    /// All of an ended transaction's entries, in a file that others share.
    pub fn shared(id: u64, last: u64, length: u64, shared: (Arc<SharedFile>, u64)) -> UndoLog {
        /// For readers of an entry or two of each transaction.
        const WINDOW_BYTES: u64 = 2 << 10;
        UndoLog {
            base: length,
            file: Some(shared.0.file.clone()),
            shared: Some(shared),
            last,
            window_bytes: WINDOW_BYTES,
            ..UndoLog::new(id)
        }
    }

    /// Pointer of the next entry.
    pub fn next(&self) -> u64 {
        self.base + self.bytes.len() as u64 + 1
    }

    fn note(&mut self, payload: &[u8], space: &UndoSpace) {
        if let Some(subjects) = &mut self.subjects {
            subjects.note((space.subject_of)(payload));
        }
    }

    /// `space` is the same in every call, here and below: a reference in each transaction would be a count that all of them change.
    pub fn push(&mut self, payload: &[u8], space: &UndoSpace) -> u64 {
        let pointer = self.next();
        assert!(pointer > self.last, "an entry comes after the one that it names (X2)");
        assert!(u32::try_from(payload.len()).is_ok(), "the length of an entry has four bytes");
        self.note(payload, space);
        let bytes = ENTRY_HEADER_BYTES + payload.len();
        match self.bytes.capacity() {
            // Most transactions have one entry.
            0 => self.bytes = Vec::with_capacity(bytes),
            _ => self.bytes.reserve(bytes),
        }
        self.bytes.extend_from_slice(&header(self.last, payload));
        self.bytes.extend_from_slice(payload);
        self.last = pointer;
        pointer
    }

    /// Recovery: writes an entry at its place, overwriting (X6). Entries in the file are there already.
    pub fn restore(&mut self, pointer: u64, previous: u64, payload: &[u8], space: &UndoSpace) {
        self.last = pointer;
        self.note(payload, space);
        let Some(start) = (pointer - 1).checked_sub(self.base) else { return };
        let start = start as usize;
        if start == self.bytes.len() {
            self.bytes.extend_from_slice(&header(previous, payload));
            self.bytes.extend_from_slice(payload);
            return;
        }
        let end = start + ENTRY_HEADER_BYTES + payload.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let body = start + ENTRY_HEADER_BYTES;
        self.bytes[start..body].copy_from_slice(&header(previous, payload));
        self.bytes[body..end].copy_from_slice(payload);
    }

    /// Moves the entries in memory to the file when they exceed the limit. On failure they stay in memory.
    pub fn spill_if_large(&mut self, space: &UndoSpace) -> io::Result<()> {
        if self.bytes.len() > space.memory_bytes {
            self.copy_to_file(space)?;
            // Keep the memory for the next entries.
            self.bytes.clear();
        }
        Ok(())
    }

    /// After a failure to move them: whether the entries may stay in memory.
    pub fn check_memory(&self, space: &UndoSpace, failure: io::Error) -> io::Result<()> {
        /// So many times the usual memory: a checkpoint stores it, and its reserve is larger.
        const MEMORY_SHARES: usize = 2;
        match self.bytes.len() > space.memory_bytes.saturating_mul(MEMORY_SHARES) {
            true => Err(failure),
            false => Ok(()),
        }
    }

    /// Frees the unused memory.
    pub fn trim(&mut self) {
        if self.file.is_some() {
            self.bytes.shrink_to_fit();
        }
    }

    /// The entries in memory, in the form that a file has.
    pub fn sealed(&mut self) -> &[u8] {
        seal(&mut self.bytes);
        &self.bytes
    }

    /// Moves the entries in memory to the transaction's own file. On failure they stay in memory.
    pub fn spill(&mut self, space: &UndoSpace) {
        if self.copy_to_file(space).is_ok() {
            self.bytes = Vec::new();
        }
    }

    /// Without an error the entries in memory are in the file now, and the caller must drop them.
    fn copy_to_file(&mut self, space: &UndoSpace) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let file = space.disk.open(&file_name(self.id), OpenMode::OrCreate)?;
                self.file.insert(file).clone()
            }
        };
        let base = self.base;
        // All or nothing: a part of it would only take space from others.
        file.reserve(base, self.bytes.len() as u64)?;
        file.write_at(self.sealed(), base)?;
        self.base += self.bytes.len() as u64;
        Ok(())
    }

    /// `length` bytes from `start`, wherever they are.
    fn slice(&mut self, start: u64, length: usize) -> Option<&[u8]> {
        if let Some(start) = start.checked_sub(self.base) {
            return self.bytes.get(start as usize..)?.get(..length);
        }
        let end = start + length as u64;
        let window_end = self.window_start + self.window.len() as u64;
        if start < self.window_start || end > window_end {
            // When reading backward, the bytes before are needed next, and the rest of this head's entry; when reading forward, the bytes after.
            let (from, to) = match start < self.window_start {
                true => {
                    let to = end.max(start + self.window_bytes / ENTRY_SHARE).min(self.base);
                    (to.saturating_sub(self.window_bytes).min(start), to)
                }
                false => (start, end.max(start + self.window_bytes).min(self.base)),
            };
            let offset = self.shared.as_ref().map_or(0, |(_, at)| *at);
            self.window.resize(to.checked_sub(from)? as usize, 0);
            let read = self.file.as_ref()?.read_at(&mut self.window, offset + from);
            let count = read.unwrap_or(0);
            self.window.truncate(count);
            self.window_start = from;
        }
        self.window.get((start - self.window_start) as usize..)?.get(..length)
    }

    /// Length of an entry's payload and the pointer to the previous entry; `None` when no such entry exists, or the file's bytes are not those
    /// that were written.
    fn look(&mut self, pointer: u64) -> Option<(usize, u64)> {
        let start = pointer.checked_sub(1)?;
        let in_file = start < self.base;
        let mut reader = Reader::new(self.slice(start, ENTRY_HEADER_BYTES)?);
        let (length, sum) = (reader.u32()? as usize, reader.u32()?);
        let previous = reader.u64()?;
        // A damaged length must not ask for memory that no entry needs.
        if in_file && length as u64 > self.base - start {
            return None;
        }
        if in_file
            && sum != checksum(previous, self.slice(start + ENTRY_HEADER_BYTES as u64, length)?)
        {
            return None;
        }
        Some((length, previous))
    }

    /// The entry before one; `None` as for `look`.
    pub fn previous(&mut self, pointer: u64) -> Option<u64> {
        self.look(pointer).map(|(_, previous)| previous)
    }

    /// Replaces `out` with a payload and returns the entry before it.
    pub fn read(&mut self, pointer: u64, out: &mut Vec<u8>) -> Option<u64> {
        let (length, previous) = self.look(pointer)?;
        assert!(previous < pointer, "an entry comes after the one that it names (X2)");
        out.clear();
        out.extend_from_slice(self.slice(pointer - 1 + ENTRY_HEADER_BYTES as u64, length)?);
        Some(previous)
    }
}
