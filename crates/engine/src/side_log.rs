//! Changes of an index's entries that happen while the index is built, in order, to be applied to it afterwards.
//!
//! In memory up to a bound, then in a file that is of no use after a crash; the next open removes it. Independent of tables.

use std::io;
use std::sync::Arc;

use stdx::bytes::Reader;
use sys::disk::{Disk, File, OpenMode};
use sys::sync::Mutex;

use crate::entry::Entry;

/// Bytes in memory beyond which they go to the file.
const MEMORY_BYTES_MAX: usize = 1 << 20;

/// A change of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is live.
    Put,
    /// It is marked: older versions of its row have it.
    Mark,
    /// No version has it.
    Remove,
}

impl Change {
    fn code(self) -> u8 {
        match self {
            Change::Put => 0,
            Change::Mark => 1,
            Change::Remove => 2,
        }
    }

    fn of(code: u8) -> Option<Change> {
        [Change::Put, Change::Mark, Change::Remove].get(usize::from(code)).copied()
    }
}

#[derive(Default)]
struct Noted {
    memory: Vec<u8>,
    file: Option<Arc<dyn File>>,
    /// Lengths of the pieces in the file that were not taken, the next one first.
    pieces: std::collections::VecDeque<usize>,
    /// Where in the file the first of them begins, and the last ends.
    taken: u64,
    end: u64,
    /// Bytes noted in all.
    total: u64,
}

/// See the module.
pub(crate) struct SideLog {
    disk: Arc<dyn Disk>,
    name: String,
    noted: Mutex<Noted>,
}

impl SideLog {
    /// Nothing yet; `name` is the file's.
    pub fn new(disk: Arc<dyn Disk>, name: String) -> SideLog {
        SideLog { disk, name, noted: Mutex::default() }
    }

    /// Notes a change.
    ///
    /// # Errors
    /// I/O: the change is lost.
    pub fn note(&self, change: Change, entry: &Entry) -> io::Result<()> {
        self.append([change.code(), u8::from(entry.has_null)], entry.sql, &entry.key)
    }

    /// Notes that the row with this key has changed.
    ///
    /// # Errors
    /// As `note`.
    pub fn note_key(&self, key: &[u8]) -> io::Result<()> {
        self.append([Change::Put.code(), 0], 0, key)
    }

    fn append(&self, codes: [u8; 2], sql: usize, key: &[u8]) -> io::Result<()> {
        let mut noted = self.noted.lock();
        let before = noted.memory.len();
        noted.memory.extend_from_slice(&codes);
        noted.memory.extend_from_slice(&(sql as u16).to_le_bytes());
        noted.memory.extend_from_slice(&(key.len() as u16).to_le_bytes());
        noted.memory.extend_from_slice(key);
        noted.total += (noted.memory.len() - before) as u64;
        match noted.memory.len() >= MEMORY_BYTES_MAX {
            true => self.spill(&mut noted),
            false => Ok(()),
        }
    }

    fn spill(&self, noted: &mut Noted) -> io::Result<()> {
        let file = match &noted.file {
            Some(file) => file.clone(),
            None => {
                let file = self.disk.open(&self.name, OpenMode::OrCreate)?;
                file.set_size(0)?;
                noted.file.insert(file).clone()
            }
        };
        file.write_at(&noted.memory, noted.end)?;
        noted.end += noted.memory.len() as u64;
        let length = noted.memory.len();
        noted.pieces.push_back(length);
        noted.memory.clear();
        Ok(())
    }

    /// Replaces `out` with the oldest changes that were not taken yet; if `out` stays empty, none are left.
    ///
    /// # Errors
    /// I/O.
    pub fn take(&self, out: &mut Vec<u8>) -> io::Result<()> {
        out.clear();
        let mut noted = self.noted.lock();
        let Some(length) = noted.pieces.pop_front() else {
            std::mem::swap(&mut noted.memory, out);
            return Ok(());
        };
        let (at, file) = (noted.taken, noted.file.clone());
        noted.taken += length as u64;
        drop(noted);
        let file = file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        out.resize(length, 0);
        match file.read_at(out, at)? {
            read if read == length => Ok(()),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Bytes that were not taken.
    pub fn left_bytes(&self) -> u64 {
        let noted = self.noted.lock();
        noted.memory.len() as u64 + noted.end - noted.taken
    }

    /// Bytes noted since the beginning.
    pub fn total_bytes(&self) -> u64 {
        self.noted.lock().total
    }
}

impl Drop for SideLog {
    fn drop(&mut self) {
        if self.noted.lock().file.take().is_some() {
            // Otherwise the next open does it.
            let _ = self.disk.remove(&self.name);
        }
    }
}

/// Returns the next change in the bytes that `SideLog::take` returned; `None` when the bytes are damaged.
pub(crate) fn read_change(reader: &mut Reader<'_>) -> Option<(Change, Entry)> {
    let change = Change::of(reader.u8()?)?;
    let has_null = reader.u8()? != 0;
    let [sql, length] = [reader.u16()?, reader.u16()?].map(usize::from);
    let key = reader.take(length)?.to_vec();
    Some((change, Entry { key, sql, has_null }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::sim::SimDisk;

    #[test]
    fn changes_come_back_in_order_from_memory_and_from_the_file() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
        let log = SideLog::new(disk.clone(), "sort-1-log".into());
        let entry = |at: usize| Entry {
            key: vec![at as u8; 1 + at % 900],
            sql: at % 7,
            has_null: at.is_multiple_of(3),
        };
        let change = |at: usize| Change::of((at % 3) as u8).unwrap();
        let (mut noted, mut read, mut bytes) = (0, 0, Vec::new());
        for round in [10, 5000, 1, 3000] {
            for _ in 0..round {
                log.note(change(noted), &entry(noted)).unwrap();
                noted += 1;
            }
            loop {
                log.take(&mut bytes).unwrap();
                if bytes.is_empty() {
                    break;
                }
                let mut reader = Reader::new(&bytes);
                while !reader.is_empty() {
                    let expected = (change(read), entry(read));
                    assert_eq!(read_change(&mut reader).unwrap(), expected);
                    read += 1;
                }
            }
            assert_eq!((read, log.left_bytes()), (noted, 0));
        }
        assert!(!disk.list().unwrap().is_empty());
        drop(log);
        assert!(disk.list().unwrap().is_empty());
    }
}
