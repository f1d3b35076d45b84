//! A disk that forgets: every unsynced write may survive a crash, be lost, or be torn at a sector.
//!
//! Per file it keeps a durable image and the ordered list of writes since the last sync. Creation, removal and renaming are kept
//! in order until `sync_dir`; a crash keeps a prefix of them, as a journalled filesystem does. After `crash_after` operations
//! every call fails, as for a dead process; `after_crash` then returns the disk that the next process finds.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{BLOCK_BYTES, Disk, DiskSpace, File, OpenMode};
use crate::random::SplitMix;

/// The unit in which the device writes whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Clone)]
enum Pending {
    Write { offset: u64, bytes: Vec<u8> },
    Size(u64),
}

#[derive(Clone, Default)]
struct Inode {
    /// The content that the process reads: the durable image plus all writes.
    current: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
    /// Blocks that it has. Those of a removed file are free at once.
    blocks: BTreeSet<u64>,
}

#[derive(Clone)]
enum DirOp {
    Create(String, usize),
    Remove(String),
    Rename(String, String),
}

#[derive(Default)]
struct State {
    inodes: Vec<Inode>,
    names: HashMap<String, usize>,
    durable_names: HashMap<String, usize>,
    dir_pending: Vec<DirOp>,
    /// Mutating operations so far.
    operations: u64,
    crash_at: Option<u64>,
    fail_sync_at: Option<u64>,
    crashed: bool,
    /// Blocks of the disk, when they are limited, and how many are in use; others have taken some of them.
    blocks_max: Option<u64>,
    blocks_used: u64,
}

/// The simulated disk. Cloning shares it.
#[derive(Clone, Default)]
pub struct SimDisk(Arc<Mutex<State>>);

struct SimFile {
    disk: SimDisk,
    inode: usize,
}

fn gone() -> io::Error {
    io::Error::other("simulated crash")
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every call fails once `operations` more mutating calls were made.
    pub fn crash_after(&self, operations: u64) {
        let mut state = self.state();
        state.crash_at = Some(state.operations + operations);
    }

    /// The sync that is the `operations`-th mutating call from now (or the first after it) fails once and drops its data.
    pub fn fail_sync_after(&self, operations: u64) {
        let mut state = self.state();
        state.fail_sync_at = Some(state.operations + operations);
    }

    /// Mutating calls (write, size, sync, create, remove, rename) so far.
    pub fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Whether the crash has happened.
    pub fn has_crashed(&self) -> bool {
        self.state().crashed
    }

    /// Limits the bytes of all files; what needs more fails with `StorageFull`. A disk after a crash is limited again by its user.
    pub fn limit(&self, bytes: Option<u64>) {
        let mut state = self.state();
        let blocks = |inode: &Inode| inode.blocks.len() as u64;
        state.blocks_used = state.names.values().map(|inode| blocks(&state.inodes[*inode])).sum();
        state.blocks_max = bytes.map(|bytes| bytes / BLOCK_BYTES as u64);
    }

    /// Bytes of the blocks of all files.
    pub fn used_bytes(&self) -> u64 {
        let state = self.state();
        let blocks = state.names.values().map(|inode| state.inodes[*inode].blocks.len() as u64);
        blocks.sum::<u64>() * BLOCK_BYTES as u64
    }

    /// Fails every call from now on.
    pub fn crash_now(&self) {
        self.state().crashed = true;
    }

    /// The disk as the next process finds it: with a random part of the writes that were not synced.
    pub fn after_crash(&self, seed: u64) -> SimDisk {
        let mut random = SplitMix::new(seed);
        let state = self.state();
        let mut names = state.durable_names.clone();
        let kept = random.below(state.dir_pending.len() as u64 + 1) as usize;
        apply_dir(&mut names, &state.dir_pending[..kept]);
        let inodes = state.inodes.iter().map(|inode| survive(inode, &mut random)).collect();
        SimDisk(Arc::new(Mutex::new(State {
            inodes,
            durable_names: names.clone(),
            names,
            ..State::default()
        })))
    }

    /// Flips one bit of a file's durable and current image: bit rot.
    ///
    /// # Panics
    /// When the file is missing or shorter.
    pub fn flip_bit(&self, name: &str, offset: usize, bit: u8) {
        let mut state = self.state();
        let inode = state.names[name];
        let inode = &mut state.inodes[inode];
        inode.current[offset] ^= 1 << bit;
        if offset < inode.durable.len() {
            inode.durable[offset] ^= 1 << bit;
        }
    }
}

fn apply_dir(names: &mut HashMap<String, usize>, ops: &[DirOp]) {
    for op in ops {
        match op {
            DirOp::Create(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            DirOp::Remove(name) => {
                names.remove(name);
            }
            DirOp::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
        }
    }
}

fn survive(inode: &Inode, random: &mut SplitMix) -> Inode {
    let mut image = inode.durable.clone();
    // One crash in four loses everything, one keeps everything: the extremes matter most.
    let style = random.below(4);
    for pending in &inode.pending {
        let fate = match style {
            0 => 0,
            1 => 1,
            _ => random.below(3),
        };
        match (fate, pending) {
            (0, _) => {}
            (_, Pending::Size(size)) => image.resize(*size as usize, 0),
            (1, Pending::Write { offset, bytes }) => put(&mut image, *offset, bytes),
            (_, Pending::Write { offset, bytes }) => {
                for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                    if random.below(2) == 0 {
                        put(&mut image, offset + (index * SECTOR_BYTES) as u64, sector);
                    }
                }
            }
        }
    }
    let blocks = inode.blocks.clone();
    Inode { current: image.clone(), durable: image, pending: Vec::new(), blocks }
}

fn put(image: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    let start = offset as usize;
    if image.len() < start + bytes.len() {
        image.resize(start + bytes.len(), 0);
    }
    image[start..start + bytes.len()].copy_from_slice(bytes);
}

impl State {
    fn mutate(&mut self) -> io::Result<()> {
        if self.crashed || self.crash_at.is_some_and(|at| self.operations >= at) {
            self.crashed = true;
            return Err(gone());
        }
        self.operations += 1;
        Ok(())
    }

    /// Gives a file the blocks of a range that it lacks, all or none.
    fn allocate(&mut self, inode: usize, offset: u64, length: u64) -> io::Result<()> {
        let block = BLOCK_BYTES as u64;
        let range = offset / block..(offset + length).div_ceil(block);
        let held = self.inodes[inode].blocks.range(range.clone()).count() as u64;
        let wanted = range.end - range.start.min(range.end) - held;
        if self.blocks_max.is_some_and(|max| wanted > 0 && self.blocks_used + wanted > max) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "the simulated disk is full"));
        }
        self.blocks_used += wanted;
        self.inodes[inode].blocks.extend(range);
        Ok(())
    }

    fn release(&mut self, inode: usize, from: u64) {
        let blocks = &mut self.inodes[inode].blocks;
        let released = blocks.split_off(&from.div_ceil(BLOCK_BYTES as u64));
        self.blocks_used = self.blocks_used.saturating_sub(released.len() as u64);
    }
}

impl File for SimFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        if state.crashed {
            return Err(gone());
        }
        let image = &state.inodes[self.inode].current;
        let start = (offset as usize).min(image.len());
        let count = buf.len().min(image.len() - start);
        buf[..count].copy_from_slice(&image[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.allocate(self.inode, offset, buf.len() as u64)?;
        let result = state.mutate();
        let was_alive = result.is_ok() || state.crash_at == Some(state.operations);
        if was_alive {
            // The write that the crash interrupts may still reach the device, whole or in part.
            let inode = &mut state.inodes[self.inode];
            inode.pending.push(Pending::Write { offset, bytes: buf.to_vec() });
            put(&mut inode.current, offset, buf);
        }
        if result.is_err() {
            state.crash_at = Some(0);
        }
        result
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.mutate()?;
        let fails = state.fail_sync_at.is_some_and(|at| state.operations >= at);
        let inode = &mut state.inodes[self.inode];
        if fails {
            // As page caches do: the data is dropped, and the next sync reports success.
            inode.pending.clear();
            state.fail_sync_at = None;
            return Err(io::Error::other("simulated sync failure"));
        }
        let pending = std::mem::take(&mut inode.pending);
        for change in pending {
            match change {
                Pending::Write { offset, bytes } => put(&mut inode.durable, offset, &bytes),
                Pending::Size(size) => inode.durable.resize(size as usize, 0),
            }
        }
        Ok(())
    }

    fn size_bytes(&self) -> io::Result<u64> {
        let state = self.disk.state();
        if state.crashed {
            return Err(gone());
        }
        Ok(state.inodes[self.inode].current.len() as u64)
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        state.mutate()?;
        state.release(self.inode, size_bytes);
        let inode = &mut state.inodes[self.inode];
        inode.current.resize(size_bytes as usize, 0);
        inode.pending.push(Pending::Size(size_bytes));
        Ok(())
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.disk.state();
        if state.crashed {
            return Err(gone());
        }
        state.allocate(self.inode, offset, length)
    }
}

impl Disk for SimDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut state = self.state();
        if state.crashed {
            return Err(gone());
        }
        let inode = match (state.names.get(name), mode) {
            (Some(inode), _) => *inode,
            (None, OpenMode::Existing) => return Err(io::ErrorKind::NotFound.into()),
            (None, OpenMode::OrCreate) => {
                state.mutate()?;
                let inode = state.inodes.len();
                state.inodes.push(Inode::default());
                state.names.insert(name.to_string(), inode);
                state.dir_pending.push(DirOp::Create(name.to_string(), inode));
                inode
            }
        };
        Ok(Arc::new(SimFile { disk: self.clone(), inode }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.mutate()?;
        let inode = state.names.remove(name).ok_or(io::ErrorKind::NotFound)?;
        state.release(inode, 0);
        state.dir_pending.push(DirOp::Remove(name.to_string()));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.mutate()?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        if let Some(replaced) = state.names.insert(to.to_string(), inode) {
            state.release(replaced, 0);
        }
        state.dir_pending.push(DirOp::Rename(from.to_string(), to.to_string()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.state();
        if state.crashed {
            return Err(gone());
        }
        let mut names: Vec<String> = state.names.keys().cloned().collect();
        // In the same order each time: a test repeats the run of a seed.
        names.sort_unstable();
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.state();
        state.mutate()?;
        let ops = std::mem::take(&mut state.dir_pending);
        let mut names = std::mem::take(&mut state.durable_names);
        apply_dir(&mut names, &ops);
        state.durable_names = names;
        Ok(())
    }

    fn space(&self) -> Option<DiskSpace> {
        let state = self.state();
        let max = state.blocks_max?;
        Some(DiskSpace {
            path: "simulated".to_owned(),
            total_bytes: max * BLOCK_BYTES as u64,
            free_bytes: max.saturating_sub(state.blocks_used) * BLOCK_BYTES as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synced_bytes_survive_and_others_may_not() {
        let mut kept = 0;
        for seed in 0..64 {
            let disk = SimDisk::new();
            let file = disk.open("a", OpenMode::OrCreate).unwrap();
            file.write_at(&[1; 1024], 0).unwrap();
            file.sync().unwrap();
            disk.sync_dir().unwrap();
            file.write_at(&[2; 1024], 0).unwrap();
            let next = disk.after_crash(seed).open("a", OpenMode::Existing).unwrap();
            let mut bytes = [0; 1024];
            assert_eq!(next.read_at(&mut bytes, 0).unwrap(), 1024);
            for sector in bytes.chunks(512) {
                assert!(sector.iter().all(|byte| *byte == sector[0]) && matches!(sector[0], 1 | 2));
            }
            kept += i32::from(bytes[0] == 2);
        }
        assert!((8..56).contains(&kept), "{kept}");
    }

    #[test]
    fn a_file_without_sync_dir_may_vanish() {
        let outcomes: Vec<bool> = (0..32)
            .map(|seed| {
                let disk = SimDisk::new();
                disk.open("a", OpenMode::OrCreate).unwrap().sync().unwrap();
                disk.after_crash(seed).open("a", OpenMode::Existing).is_ok()
            })
            .collect();
        assert!(outcomes.contains(&true) && outcomes.contains(&false));
    }

    #[test]
    fn everything_fails_after_the_crash() {
        let disk = SimDisk::new();
        let file = disk.open("a", OpenMode::OrCreate).unwrap();
        disk.crash_after(1);
        file.write_at(b"x", 0).unwrap();
        assert!(file.write_at(b"y", 1).is_err());
        assert!(file.sync().is_err() && disk.list().is_err());
    }
}
