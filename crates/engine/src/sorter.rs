//! Sorting index entries that need not fit memory: runs in a file, merged in one pass.
//!
//! The file is of no use after a crash; it is removed at the next open. Independent of tables.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;

use sys::disk::{Disk, File, OpenMode};

/// Names of the files start with it.
pub(crate) const FILE_PREFIX: &str = "sort-";
/// Bytes of a run read at a time.
const WINDOW_BYTES: usize = 64 << 10;
/// In front of a key in a run: length:16, tag:16.
const RECORD_HEADER_BYTES: usize = 4;

/// A key in the arena. The head decides most comparisons without reading the arena.
#[derive(Clone, Copy)]
struct Item {
    head: u64,
    offset: u32,
    length: u16,
    tag: u16,
}

/// Collects keys, each with a tag.
pub(crate) struct Sorter {
    disk: Arc<dyn Disk>,
    name: String,
    memory_bytes: usize,
    arena: Vec<u8>,
    items: Vec<Item>,
    file: Option<Arc<dyn File>>,
    /// The end of each run; a run starts at the end of the previous one.
    runs: Vec<u64>,
}

fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let length = key.len().min(8);
    head[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(head)
}

impl Sorter {
    /// Nothing yet. `name` is that of the file, after the prefix.
    pub fn new(disk: Arc<dyn Disk>, name: String, memory_bytes: usize) -> Sorter {
        Sorter {
            disk,
            name: format!("{FILE_PREFIX}{name}"),
            memory_bytes: memory_bytes.min(1 << 30),
            arena: Vec::new(),
            items: Vec::new(),
            file: None,
            runs: Vec::new(),
        }
    }

    /// Adds a key of less than 64 KiB.
    ///
    /// # Errors
    /// I/O.
    pub fn add(&mut self, key: &[u8], tag: u16) -> io::Result<()> {
        let used = self.arena.len() + self.items.len() * size_of::<Item>();
        if used + key.len() > self.memory_bytes && !self.items.is_empty() {
            self.spill()?;
        }
        let offset = self.arena.len() as u32;
        self.arena.extend_from_slice(key);
        self.items.push(Item { head: head_of(key), offset, length: key.len() as u16, tag });
        Ok(())
    }

    fn sort(&mut self) {
        let arena = &self.arena;
        let key = |item: &Item| &arena[item.offset as usize..][..usize::from(item.length)];
        self.items.sort_unstable_by(|left, right| {
            let keys = left.head.cmp(&right.head).then_with(|| key(left).cmp(key(right)));
            keys.then(left.offset.cmp(&right.offset))
        });
    }

    fn spill(&mut self) -> io::Result<()> {
        self.sort();
        let file = match &self.file {
            Some(file) => file.clone(),
            None => {
                let file = self.disk.open(&self.name, OpenMode::OrCreate)?;
                file.set_size(0)?;
                self.file.insert(file).clone()
            }
        };
        let mut end = self.runs.last().copied().unwrap_or(0);
        let mut out = Vec::with_capacity(WINDOW_BYTES);
        for item in &self.items {
            out.extend_from_slice(&item.length.to_le_bytes());
            out.extend_from_slice(&item.tag.to_le_bytes());
            out.extend_from_slice(&self.arena[item.offset as usize..][..usize::from(item.length)]);
            if out.len() >= WINDOW_BYTES {
                file.write_at(&out, end)?;
                end += out.len() as u64;
                out.clear();
            }
        }
        file.write_at(&out, end)?;
        self.runs.push(end + out.len() as u64);
        self.items.clear();
        self.arena.clear();
        Ok(())
    }

    /// Passes all keys on in order, equal ones in the order in which they were added.
    ///
    /// # Errors
    /// I/O, and errors of `each`.
    pub fn finish<E: From<io::Error>>(
        mut self,
        mut each: impl FnMut(&[u8], u16) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.runs.is_empty() {
            self.sort();
            return self.items.iter().try_for_each(|item| {
                each(&self.arena[item.offset as usize..][..usize::from(item.length)], item.tag)
            });
        }
        self.spill()?;
        (self.arena, self.items) = (Vec::new(), Vec::new());
        let file = self.file.clone().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        let mut readers = Vec::new();
        let mut start = 0;
        for end in &self.runs {
            readers.push(RunReader {
                file: file.clone(),
                next: start,
                end: *end,
                window: Vec::new(),
                at: 0,
            });
            start = *end;
        }
        let mut heap = BinaryHeap::new();
        for (index, reader) in readers.iter_mut().enumerate() {
            let mut key = Vec::new();
            if let Some(tag) = reader.read(&mut key)? {
                heap.push(Reverse((key, index, tag)));
            }
        }
        while let Some(Reverse((mut key, index, tag))) = heap.pop() {
            each(&key, tag)?;
            if let Some(tag) = readers[index].read(&mut key)? {
                heap.push(Reverse((key, index, tag)));
            }
        }
        Ok(())
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Otherwise the next open does it.
            let _ = self.disk.remove(&self.name);
        }
    }
}

/// One run, read from front to back.
struct RunReader {
    file: Arc<dyn File>,
    next: u64,
    end: u64,
    window: Vec<u8>,
    at: usize,
}

impl RunReader {
    /// Makes `length` bytes available at `at`; false at the end of the run.
    fn fill(&mut self, length: usize) -> io::Result<bool> {
        if self.window.len() - self.at >= length {
            return Ok(true);
        }
        self.window.drain(..self.at);
        self.at = 0;
        let have = self.window.len();
        let more = (self.end - self.next).min(WINDOW_BYTES.max(length) as u64) as usize;
        self.window.resize(have + more, 0);
        let count = self.file.read_at(&mut self.window[have..], self.next)?;
        self.window.truncate(have + count);
        self.next += count as u64;
        Ok(self.window.len() >= length)
    }

    /// Replaces `key` with the next one and returns its tag.
    fn read(&mut self, key: &mut Vec<u8>) -> io::Result<Option<u16>> {
        if !self.fill(RECORD_HEADER_BYTES)? {
            return Ok(None);
        }
        let header = &self.window[self.at..self.at + RECORD_HEADER_BYTES];
        let length = usize::from(u16::from_le_bytes([header[0], header[1]]));
        let tag = u16::from_le_bytes([header[2], header[3]]);
        if !self.fill(RECORD_HEADER_BYTES + length)? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let start = self.at + RECORD_HEADER_BYTES;
        key.clear();
        key.extend_from_slice(&self.window[start..start + length]);
        self.at = start + length;
        Ok(Some(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::entropy::SplitMix;
    use sys::sim::SimDisk;

    #[test]
    fn keys_come_back_in_order_from_memory_and_from_runs() {
        for memory in [1 << 20, 2000, 100] {
            let disk: Arc<dyn Disk> = Arc::new(SimDisk::new());
            let mut sorter = Sorter::new(disk.clone(), "7".into(), memory);
            let mut random = SplitMix::new(11);
            let mut expected = Vec::new();
            for tag in 0..500_u16 {
                let length = random.below(30) as usize;
                let key: Vec<u8> = (0..length).map(|_| random.below(4) as u8).collect();
                sorter.add(&key, tag).unwrap();
                expected.push((key, tag));
            }
            expected.sort_by(|(left, _), (right, _)| left.cmp(right));
            let mut found = Vec::new();
            let each = |key: &[u8], tag| -> io::Result<()> {
                found.push((key.to_vec(), tag));
                Ok(())
            };
            sorter.finish(each).unwrap();
            assert_eq!(found, expected, "memory {memory}");
            assert!(disk.list().unwrap().is_empty());
        }
    }
}
