//! A disk that redirects writes: the disk below is only read. For examining the result of a recovery without touching the files.
//!
//! Changed blocks are in unnamed files, with one bit in memory for each block, so that memory use is small compared with the files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{BLOCK_BYTES, Disk, File, OpenMode};
use crate::sync::Mutex;
use crate::temporary::{TemporaryFiles, UnnamedFile};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// The disk. Dropping it discards all writes.
pub struct OverlayDisk {
    below: Arc<dyn Disk>,
    scratch: TemporaryFiles,
    /// Files that were opened or made here; `None`: removed.
    files: Mutex<BTreeMap<String, Option<Arc<OverlayFile>>>>,
}

struct OverlayFile {
    below: Option<Arc<dyn File>>,
    state: Mutex<State>,
}

struct State {
    changed: UnnamedFile,
    /// A bit for each block: it is in `changed`.
    blocks: Vec<u64>,
    size: u64,
    /// The content of `below` from here on is no longer valid.
    below_size: u64,
}

impl OverlayDisk {
    /// Over `below`, with changed blocks on the file system of `scratch`.
    pub fn new(below: Arc<dyn Disk>, scratch: &Path) -> OverlayDisk {
        let scratch = TemporaryFiles::new(scratch, Arc::default());
        OverlayDisk { below, scratch, files: Mutex::new(BTreeMap::new()) }
    }

    fn make(&self, below: Option<Arc<dyn File>>) -> io::Result<Arc<OverlayFile>> {
        let size = below.as_ref().map_or(Ok(0), |file| file.size_bytes())?;
        let changed = self.scratch.create()?;
        let state = State { changed, blocks: Vec::new(), size, below_size: size };
        Ok(Arc::new(OverlayFile { below, state: Mutex::new(state) }))
    }
}

impl Disk for OverlayDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        let is_removed = match files.get(name) {
            Some(Some(file)) => return Ok(file.clone()),
            Some(None) => true,
            None => false,
        };
        let below = match is_removed {
            true => Err(io::ErrorKind::NotFound.into()),
            false => self.below.open(name, OpenMode::Existing),
        };
        let file = match below {
            Ok(below) => self.make(Some(below))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && mode == OpenMode::OrCreate => {
                self.make(None)?
            }
            Err(error) => return Err(error),
        };
        files.insert(name.to_owned(), Some(file.clone()));
        Ok(file)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.open(name, OpenMode::Existing)?;
        self.files.lock().insert(name.to_owned(), None);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.open(from, OpenMode::Existing)?;
        let mut files = self.files.lock();
        let file = files.insert(from.to_owned(), None).flatten();
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let files = self.files.lock();
        let mut names = self.below.list()?;
        names.retain(|name| !files.contains_key(name));
        names.extend(files.iter().filter(|(_, file)| file.is_some()).map(|(name, _)| name.clone()));
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

impl State {
    fn has(&self, block: u64) -> bool {
        let word = self.blocks.get((block / 64) as usize).copied().unwrap_or(0);
        word >> (block % 64) & 1 != 0
    }

    fn mark(&mut self, block: u64) {
        let at = (block / 64) as usize;
        if self.blocks.len() <= at {
            self.blocks.resize(at + 1, 0);
        }
        self.blocks[at] |= 1 << (block % 64);
    }

    /// Fills `buf`, which lies within one block.
    fn read_part(&self, below: Option<&dyn File>, buf: &mut [u8], offset: u64) -> io::Result<()> {
        if self.has(offset / BLOCK) {
            return self.changed.read_at(buf, offset);
        }
        buf.fill(0);
        let here = self.below_size.saturating_sub(offset).min(buf.len() as u64) as usize;
        match below {
            Some(below) if here > 0 => below.read_at(&mut buf[..here], offset).map(drop),
            _ => Ok(()),
        }
    }

    fn write_part(&mut self, below: Option<&dyn File>, buf: &[u8], offset: u64) -> io::Result<()> {
        let (block, within) = (offset / BLOCK, (offset % BLOCK) as usize);
        if !self.has(block) && buf.len() < BLOCK_BYTES {
            let mut whole = [0; BLOCK_BYTES];
            self.read_part(below, &mut whole, block * BLOCK)?;
            whole[within..within + buf.len()].copy_from_slice(buf);
            self.changed.write_at(&whole, block * BLOCK)?;
        } else {
            self.changed.write_at(buf, offset)?;
        }
        self.mark(block);
        Ok(())
    }
}

/// Lengths of the pieces of `length` bytes from `offset` that each lie within one block.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = usize> {
    let (mut at, end) = (offset, offset + length as u64);
    std::iter::from_fn(move || {
        let next = (at / BLOCK + 1).saturating_mul(BLOCK).min(end);
        let piece = (next - at) as usize;
        at = next;
        (piece > 0).then_some(piece)
    })
}

impl File for OverlayFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.state.lock();
        let count = state.size.saturating_sub(offset).min(buf.len() as u64) as usize;
        let (mut rest, mut at) = (&mut buf[..count], offset);
        for piece in pieces(offset, count) {
            let (here, behind) = rest.split_at_mut(piece);
            state.read_part(self.below.as_deref(), here, at)?;
            (rest, at) = (behind, at + piece as u64);
        }
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let (mut rest, mut at) = (buf, offset);
        for piece in pieces(offset, buf.len()) {
            let (here, behind) = rest.split_at(piece);
            state.write_part(self.below.as_deref(), here, at)?;
            (rest, at) = (behind, at + piece as u64);
        }
        state.size = state.size.max(at);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.state.lock().size)
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        if size_bytes < state.size {
            // When the file grows again it has zeros there: in the rest of the last block, and in all later blocks.
            let end = size_bytes.next_multiple_of(BLOCK).min(state.size);
            let zeros = [0; BLOCK_BYTES];
            let length = (end - size_bytes) as usize;
            if length > 0 {
                state.write_part(self.below.as_deref(), &zeros[..length], size_bytes)?;
            }
            let kept = size_bytes.div_ceil(BLOCK);
            for block in kept..state.size.div_ceil(BLOCK) {
                if let Some(word) = state.blocks.get_mut((block / 64) as usize) {
                    *word &= !(1 << (block % 64));
                }
            }
            state.below_size = state.below_size.min(size_bytes);
        }
        state.size = size_bytes;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::SplitMix;
    use crate::sim::SimDisk;

    /// Against a plain vector; the disk below stays untouched.
    #[test]
    fn it_reads_what_was_written_and_leaves_the_rest_alone() {
        let below = SimDisk::new();
        let original: Vec<u8> = (0..20_000).map(|at| at as u8).collect();
        below.open("a", OpenMode::OrCreate).unwrap().write_at(&original, 0).unwrap();
        let disk = OverlayDisk::new(Arc::new(below.clone()), &std::env::temp_dir());
        let (file, mut model, mut random) =
            (disk.open("a", OpenMode::Existing).unwrap(), original.clone(), SplitMix::new(1));
        for _ in 0..600 {
            let offset = random.below(30_000) as usize;
            match random.below(8) {
                0 => {
                    model.resize(offset, 0);
                    file.set_size(offset as u64).unwrap();
                }
                _ => {
                    let bytes = vec![random.below(256) as u8; random.below(9000) as usize];
                    if model.len() < offset + bytes.len() {
                        model.resize(offset + bytes.len(), 0);
                    }
                    model[offset..offset + bytes.len()].copy_from_slice(&bytes);
                    file.write_at(&bytes, offset as u64).unwrap();
                }
            }
            let mut read = vec![1; model.len() + 10];
            assert_eq!(file.read_at(&mut read, 0).unwrap(), model.len());
            assert!(read[..model.len()] == model);
        }
        let mut read = vec![0; original.len()];
        below.open("a", OpenMode::Existing).unwrap().read_at(&mut read, 0).unwrap();
        assert!(read == original);
    }

    #[test]
    fn names_come_and_go_above_only() {
        let below = SimDisk::new();
        for name in ["a", "b"] {
            below.open(name, OpenMode::OrCreate).unwrap();
        }
        let disk = OverlayDisk::new(Arc::new(below.clone()), &std::env::temp_dir());
        disk.remove("a").unwrap();
        disk.rename("b", "c").unwrap();
        assert!(disk.open("a", OpenMode::Existing).is_err() && disk.remove("b").is_err());
        assert_eq!(disk.list().unwrap(), ["c"]);
        disk.open("a", OpenMode::OrCreate).unwrap().write_at(b"x", 0).unwrap();
        assert_eq!(disk.open("a", OpenMode::Existing).unwrap().size_bytes().unwrap(), 1);
        assert_eq!(below.list().unwrap().len(), 2);
    }
}
