//! A disk that goes wrong on purpose: a rule decides for every call whether it passes, fails, or is skipped while success is reported.
//!
//! Wraps any other disk. It is independent of the files' meaning; tests state their rules by file name and kind of call.

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskSpace, File, OpenMode};

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `Disk::open`.
    Open,
    /// `File::read_at`.
    Read,
    /// `File::write_at`.
    Write,
    /// `File::sync`.
    Sync,
    /// `File::set_size`.
    SetSize,
    /// `File::reserve`.
    Reserve,
    /// `Disk::remove`.
    Remove,
    /// `Disk::rename`, of the old name.
    Rename,
    /// `Disk::sync_dir`, with an empty name.
    SyncDir,
}

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is made.
    Pass,
    /// It is not made, and reported as done. Calls that return something pass.
    Skip,
    /// It is not made and fails.
    Fail(io::ErrorKind),
}

/// Decides about calls; may also just count or delay them.
pub type Rule = Arc<dyn Fn(Call, &str) -> Verdict + Send + Sync>;
/// Changes the bytes read: file name, offset, bytes.
pub type Tamper = Arc<dyn Fn(&str, u64, &mut [u8]) + Send + Sync>;

/// A disk under a rule.
#[derive(Clone)]
pub struct FaultDisk {
    inner: Arc<dyn Disk>,
    rule: Rule,
    tamper: Option<Tamper>,
}

struct FaultFile {
    inner: Arc<dyn File>,
    name: String,
    rule: Rule,
    tamper: Option<Tamper>,
}

impl FaultDisk {
    /// `inner` under `rule`.
    pub fn new(inner: Arc<dyn Disk>, rule: Rule) -> FaultDisk {
        FaultDisk { inner, rule, tamper: None }
    }

    /// Also passes everything read through `tamper`.
    pub fn with_tamper(self, tamper: Tamper) -> FaultDisk {
        FaultDisk { tamper: Some(tamper), ..self }
    }
}

fn judge(
    rule: &Rule,
    call: Call,
    name: &str,
    make: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    match rule(call, name) {
        Verdict::Pass => make(),
        Verdict::Skip => Ok(()),
        Verdict::Fail(kind) => Err(injected(call, name, kind)),
    }
}

fn injected(call: Call, name: &str, kind: io::ErrorKind) -> io::Error {
    io::Error::new(kind, format!("injected failure: {call:?} of '{name}'"))
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        if let Verdict::Fail(kind) = (self.rule)(Call::Read, &self.name) {
            return Err(injected(Call::Read, &self.name, kind));
        }
        let count = self.inner.read_at(buf, offset)?;
        if let Some(tamper) = &self.tamper {
            tamper(&self.name, offset, &mut buf[..count]);
        }
        Ok(count)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        judge(&self.rule, Call::Write, &self.name, || self.inner.write_at(buf, offset))
    }

    fn sync(&self) -> io::Result<()> {
        judge(&self.rule, Call::Sync, &self.name, || self.inner.sync())
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.inner.size_bytes()
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        judge(&self.rule, Call::SetSize, &self.name, || self.inner.set_size(size_bytes))
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        judge(&self.rule, Call::Reserve, &self.name, || self.inner.reserve(offset, length))
    }
}

impl Disk for FaultDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        if let Verdict::Fail(kind) = (self.rule)(Call::Open, name) {
            return Err(injected(Call::Open, name, kind));
        }
        let inner = self.inner.open(name, mode)?;
        let (rule, tamper) = (self.rule.clone(), self.tamper.clone());
        Ok(Arc::new(FaultFile { inner, name: name.to_string(), rule, tamper }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        judge(&self.rule, Call::Remove, name, || self.inner.remove(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        judge(&self.rule, Call::Rename, from, || self.inner.rename(from, to))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.inner.list()
    }

    fn sync_dir(&self) -> io::Result<()> {
        judge(&self.rule, Call::SyncDir, "", || self.inner.sync_dir())
    }

    fn space(&self) -> Option<DiskSpace> {
        self.inner.space()
    }
}
