//! Directories and files of a simulated machine. Each directory is a disk that forgets (`crate::sim`); directories themselves are always
//! durable.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::faults::{Fallible, broken};
use super::scheduler::{Core, Here};
use crate::disk::{BLOCK_BYTES, Disk, DiskSpace, File, OpenMode, SyncPolicy};
use crate::file_kinds::{About, Existing};
use crate::planted::breaks;
use crate::sim::SimDisk;
use crate::waits::{self, Wait};

/// The least duration of a call.
const READ: Duration = Duration::from_micros(20);
const WRITE: Duration = Duration::from_micros(20);
const SYNC: Duration = Duration::from_micros(150);

/// All of them.
pub(crate) struct FileTree {
    directories: BTreeMap<PathBuf, SimDisk>,
    locked: BTreeSet<PathBuf>,
    /// Generates names for unnamed files.
    unnamed: u64,
    /// Blocks that files of a new directory may get; `None` without a limit.
    spare: Option<u64>,
}

impl FileTree {
    pub(crate) fn new() -> FileTree {
        let directories = ["/", "/tmp"].map(|path| (PathBuf::from(path), SimDisk::new()));
        FileTree {
            directories: directories.into(),
            locked: BTreeSet::new(),
            unnamed: 0,
            spare: None,
        }
    }

    pub(crate) fn unlock_all(&mut self) {
        self.locked.clear();
    }

    /// Gives the files of each directory so many blocks more than they have; with `None` as many as they like.
    pub(crate) fn fill(&mut self, spare: Option<u64>) {
        self.spare = spare;
        self.directories.values().for_each(|disk| limit(disk, spare));
    }

    fn make(&mut self, path: PathBuf) {
        let spare = self.spare;
        self.directories.entry(path).or_insert_with(|| {
            let disk = SimDisk::new();
            limit(&disk, spare);
            disk
        });
    }

    pub(crate) fn lose_power(&mut self, seed: u64) {
        for disk in self.directories.values_mut() {
            *disk = disk.after_crash(seed);
        }
    }

    fn find(&self, path: &Path) -> io::Result<SimDisk> {
        self.directories.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn limit(disk: &SimDisk, spare: Option<u64>) {
    disk.limit(spare.map(|spare| disk.used_bytes() + spare * BLOCK_BYTES as u64));
}

/// From the root, without dots.
fn absolute(path: &Path) -> PathBuf {
    let mut clean = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    clean
}

/// A directory's path and the name in it.
fn split(path: &Path) -> io::Result<(PathBuf, String)> {
    let path = absolute(path);
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let parent = path.parent().unwrap_or(Path::new("/"));
    Ok((parent.to_owned(), name.to_string_lossy().into_owned()))
}

/// A directory that is locked for its user.
pub(crate) struct VirtualLock {
    core: Arc<Core>,
    path: PathBuf,
}

impl VirtualLock {
    /// Locks a path; `None` when it is locked.
    pub(crate) fn acquire(here: &Here, path: &Path) -> Option<VirtualLock> {
        let path = absolute(path);
        let is_free = here.with(|state| state.files.locked.insert(path.clone()));
        is_free.then(|| VirtualLock { core: here.core.clone(), path })
    }
}

impl Drop for VirtualLock {
    fn drop(&mut self) {
        self.core.lock().files.locked.remove(&self.path);
    }
}

/// A directory as storage uses it.
struct VirtualDisk {
    machine: Machine,
    root: PathBuf,
    disk: SimDisk,
    sync: SyncPolicy,
    _lock: Option<VirtualLock>,
}

/// The machine of a disk or a file: calls wait on the caller's thread.
#[derive(Clone)]
struct Machine(Arc<Core>);

impl Machine {
    /// Takes about the time of a call, and writes into the trace what it changes.
    fn call(
        &self,
        least: Duration,
        change: Option<(&'static str, &Path, &str)>,
        offset: u64,
        bytes: &[u8],
    ) {
        let Some(here) = super::current().filter(|here| Arc::ptr_eq(&here.core, &self.0)) else {
            return;
        };
        let slowness = here.with(|state| state.faults.disk_slowness.max(1));
        here.pause_about(least * slowness);
        if let Some((call, root, name)) = change {
            let file = root.join(name).display().to_string();
            here.with(|state| {
                let event = state.trace.disk(call, file, offset, bytes);
                state.record(event);
            });
        }
    }
}

impl Machine {
    /// Whether a call fails, as the machine's faults have it.
    fn fails(&self, call: Fallible) -> bool {
        self.0.lock().draw_failure(call)
    }

    fn allow(&self, call: Fallible) -> io::Result<()> {
        if self.fails(call) { Err(broken()) } else { Ok(()) }
    }
}

struct OpenFile {
    machine: Machine,
    root: PathBuf,
    name: String,
    disk: SimDisk,
    file: Arc<dyn File>,
    sync: SyncPolicy,
}

impl OpenFile {
    fn change(&self, call: &'static str, least: Duration, offset: u64, bytes: &[u8]) {
        self.machine.call(least, Some((call, &self.root, &self.name)), offset, bytes);
    }
}

impl File for OpenFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let _waiting = waits::enter(Wait::Read);
        self.machine.call(READ, None, 0, &[]);
        self.machine.allow(Fallible::Read)?;
        self.file.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        let _waiting = waits::enter(Wait::Write);
        self.change("write", WRITE, offset, buf);
        if self.machine.fails(Fallible::Write) {
            let written = self.machine.0.lock().below(buf.len() as u64 + 1);
            self.file.write_at(&buf[..written as usize], offset)?;
            return Err(broken());
        }
        self.file.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        if self.sync == SyncPolicy::Never {
            return Ok(());
        }
        let _waiting = waits::enter(Wait::Sync);
        self.change("sync", SYNC, 0, &[]);
        if breaks("syncs reach the device") {
            return Ok(());
        }
        if self.machine.fails(Fallible::Sync) {
            self.disk.fail_sync_after(0);
        }
        self.file.sync()
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.file.size_bytes()
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        self.change("set size", WRITE, size_bytes, &[]);
        self.machine.allow(Fallible::Write)?;
        self.file.set_size(size_bytes)
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.file.reserve(offset, length)
    }
}

impl VirtualDisk {
    fn change(&self, call: &'static str, least: Duration, name: &str) {
        self.machine.call(least, Some((call, &self.root, name)), 0, &[]);
    }
}

impl Disk for VirtualDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.machine.call(READ, None, 0, &[]);
        self.machine.allow(Fallible::Read)?;
        let file = self.disk.open(name, mode)?;
        Ok(Arc::new(OpenFile {
            machine: self.machine.clone(),
            root: self.root.clone(),
            name: name.to_owned(),
            disk: self.disk.clone(),
            file,
            sync: self.sync,
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.change("remove", WRITE, name);
        self.machine.allow(Fallible::Write)?;
        self.disk.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change("rename", WRITE, from);
        self.machine.allow(Fallible::Write)?;
        self.disk.rename(from, to)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.machine.call(READ, None, 0, &[]);
        self.machine.allow(Fallible::Read)?;
        self.disk.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        if self.sync == SyncPolicy::Never {
            return Ok(());
        }
        self.change("sync directory", SYNC, "");
        self.machine.allow(Fallible::Sync)?;
        self.disk.sync_dir()
    }

    fn space(&self) -> Option<DiskSpace> {
        self.disk.space()
    }
}

fn disk_at(here: &Here, root: PathBuf, sync: SyncPolicy) -> io::Result<VirtualDisk> {
    let disk = here.with(|state| state.files.find(&root))?;
    Ok(VirtualDisk { machine: Machine(here.core.clone()), root, disk, sync, _lock: None })
}

/// See `crate::disk::open`.
pub(crate) fn open_disk(here: &Here, root: &Path, sync: SyncPolicy) -> io::Result<Arc<dyn Disk>> {
    create_directories(here, root);
    let lock = VirtualLock::acquire(here, &root.join("lock")).ok_or(io::ErrorKind::WouldBlock)?;
    let disk = disk_at(here, absolute(root), sync)?;
    Ok(Arc::new(VirtualDisk { _lock: Some(lock), ..disk }))
}

/// See `crate::disk::open_read_only`.
pub(crate) fn open_disk_unlocked(here: &Here, root: &Path) -> io::Result<Arc<dyn Disk>> {
    Ok(Arc::new(disk_at(here, absolute(root), SyncPolicy::Device)?))
}

/// A file with a position.
pub(crate) struct VirtualFile {
    file: Arc<dyn File>,
    position: u64,
}

impl VirtualFile {
    /// How long the file is now.
    pub(crate) fn size_bytes(&self) -> io::Result<u64> {
        self.file.size_bytes()
    }
}

impl std::fmt::Debug for VirtualFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "VirtualFile at {}", self.position)
    }
}

impl VirtualFile {
    pub(crate) fn open(here: &Here, path: &Path) -> io::Result<VirtualFile> {
        let (parent, name) = split(path)?;
        let file = disk_at(here, parent, SyncPolicy::Device)?.open(&name, OpenMode::Existing)?;
        Ok(VirtualFile { file, position: 0 })
    }

    pub(crate) fn create(here: &Here, path: &Path, existing: Existing) -> io::Result<VirtualFile> {
        let (parent, name) = split(path)?;
        if existing == Existing::Refuse && about(here, path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = disk_at(here, parent, SyncPolicy::Device)?.open(&name, OpenMode::OrCreate)?;
        let position = match existing {
            Existing::Append => file.size_bytes()?,
            Existing::Refuse | Existing::Replace => 0,
        };
        file.set_size(position)?;
        Ok(VirtualFile { file, position })
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Read for VirtualFile {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buf, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Write for VirtualFile {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.file.write_at(buf, self.position)?;
        self.position += buf.len() as u64;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file that is removed with its handle.
pub(crate) fn unnamed_file(here: &Here, directory: &Path) -> io::Result<Arc<dyn File>> {
    let disk = disk_at(here, absolute(directory), SyncPolicy::Never)?;
    let number = here.with(|state| {
        state.files.unnamed += 1;
        state.files.unnamed
    });
    let name = format!("unnamed-{number}");
    let file = disk.open(&name, OpenMode::OrCreate)?;
    disk.remove(&name)?;
    Ok(file)
}

pub(crate) fn about(here: &Here, path: &Path) -> Option<About> {
    let whole = absolute(path);
    if here.with(|state| state.files.directories.contains_key(&whole)) {
        return Some(About { is_file: false, is_directory: true, size_bytes: 0 });
    }
    let size_bytes = VirtualFile::open(here, path).ok()?.file.size_bytes().ok()?;
    Some(About { is_file: true, is_directory: false, size_bytes })
}

pub(crate) fn canonical(here: &Here, path: &Path) -> io::Result<PathBuf> {
    about(here, path).ok_or(io::ErrorKind::NotFound)?;
    Ok(absolute(path))
}

pub(crate) fn remove(here: &Here, path: &Path) -> io::Result<()> {
    let (parent, name) = split(path)?;
    disk_at(here, parent, SyncPolicy::Device)?.remove(&name)
}

pub(crate) fn rename(here: &Here, from: &Path, to: &Path) -> io::Result<()> {
    let ((parent, from), (_, to)) = (split(from)?, split(to)?);
    disk_at(here, parent, SyncPolicy::Device)?.rename(&from, &to)
}

pub(crate) fn create_directory(here: &Here, path: &Path) -> io::Result<()> {
    let path = absolute(path);
    let parent = path.parent().unwrap_or(Path::new("/")).to_owned();
    if about(here, &path).is_some() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    here.with(|state| {
        state.files.find(&parent)?;
        state.files.make(path);
        Ok(())
    })
}

pub(crate) fn create_directories(here: &Here, path: &Path) {
    here.with(|state| {
        for path in absolute(path).ancestors() {
            state.files.make(path.to_owned());
        }
    });
}

pub(crate) fn remove_directory(here: &Here, path: &Path) -> io::Result<()> {
    let path = absolute(path);
    here.with(|state| {
        state.files.find(&path)?;
        state.files.directories.retain(|directory, _| !directory.starts_with(&path));
        Ok(())
    })
}

pub(crate) fn sync_directory(here: &Here, path: &Path) -> io::Result<()> {
    disk_at(here, absolute(path), SyncPolicy::Device)?.sync_dir()
}
