//! BACKUP DATABASE TO and CLONE LOCAL DATA DIRECTORY: the engine writes to a directory that this statement creates, and that is
//! removed when it fails.

use ::accounts::PrivilegeChecks;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_api::{BackupFile, BackupTarget, Progress};
use errors::{Error, Result, err};
use plugin_api::{OkInfo, ResultSink};
use sys::disk::FileHandle;
use sys::files::{self, Existing, File};
use sys::io_times::IoTimes;

use crate::load_data::file_error;
use crate::measured::{begin_stage, end_stage};
use crate::session::Session;

/// It holds the rows of all accounts.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Which transactions of the binary log a backup has.
const EXECUTED: &str = "binary-log";
/// Where a data directory has the files of the engine.
const STORAGE: &str = "storage";

/// The purpose of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backup {
    /// BACKUP: a source for restore.
    Kept,
    /// CLONE LOCAL: a data directory that a server is started on.
    Started,
}

/// Copies everything committed to a directory that does not exist yet.
pub(crate) fn run_backup(
    session: &mut Session,
    directory: &str,
    purpose: Backup,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_dynamic("BACKUP_ADMIN")?;
    let (name, path) = (directory, PathBuf::from(directory));
    if !path.is_absolute() {
        return Err(err!(WRONG_VALUE, "absolute path", name));
    }
    let engine = session.server.default_engine.clone();
    if !engine.is_durable() {
        return Err(Error::not_supported("BACKUP of a server that keeps nothing on disk"));
    }
    let times = session.server.io_times.clone();
    let target = Directory::make(&path, purpose, times).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => err!(FILE_EXISTS_ERROR, name),
        _ => file_error(1, "Can't create directory", &path, &error),
    })?;
    begin_stage(session, "Backing up");
    let cancel = session.shared.cancel.clone();
    let log = session.server.registry().binary_log().cloned();
    if let Some(log) = &log {
        log.begin_backup();
    }
    let outcome = sys::blocking::blocking(|| {
        let copied = engine.backup(&target, &cancel);
        let copied = copied.map_err(|error| error.into_error(&cancel));
        // After an error too: the log is to keep nothing more.
        let end_position = copied.as_ref().map_or(0, |summary| summary.end_position);
        let executed = log.map_or(Ok(None), |log| log.end_backup(end_position));
        let ended = copied.and(executed).and_then(|executed| {
            let kept = executed.filter(|_| purpose == Backup::Kept);
            kept.map_or(Ok(()), |executed| target.put_executed(end_position, &executed))
                .and_then(|()| target.sync())
                .map_err(|error| file_error(3, "Error writing", &path, &error))
        });
        if ended.is_err() {
            // The error of the copy says more than one of the cleanup.
            let _ = files::remove_directory(&path);
        }
        ended
    });
    let pages = |name| {
        let stats = session.server.default_engine.stats();
        let mut stats = stats.iter().filter(|stat| stat.group == "backup");
        stats.find(|stat| stat.name == name).and_then(|stat| stat.value.parse().ok()).unwrap_or(0)
    };
    let (work_done, work_expected) = (pages("pages_done"), pages("pages_total"));
    end_stage(session, Some(Progress { work_done, work_expected }));
    outcome?;
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo::default())
}

/// A directory created for one backup.
struct Directory {
    path: PathBuf,
    /// Where the files go.
    inner: PathBuf,
    times: Arc<IoTimes>,
}

impl Directory {
    fn make(path: &Path, purpose: Backup, times: Arc<IoTimes>) -> io::Result<Directory> {
        files::create_directory(path, DIRECTORY_MODE)?;
        let inner = match purpose {
            Backup::Kept => path.to_owned(),
            Backup::Started => path.join(STORAGE),
        };
        if purpose == Backup::Started {
            files::create_directory(&inner, DIRECTORY_MODE)?;
        }
        Ok(Directory { path: path.to_owned(), inner, times })
    }

    /// Writes which transactions of the binary log the backup has: `docs/format/backup.md`.
    fn put_executed(&self, end_position: u64, executed: &str) -> io::Result<()> {
        let text =
            format!("squall-backup-log 1\nposition {end_position}\nexecuted {executed}\nend\n");
        let mut file = self.create(EXECUTED)?;
        file.write(text.as_bytes())?;
        file.finish()
    }

    /// Makes the names durable.
    fn sync(&self) -> io::Result<()> {
        let directories = [Some(&*self.inner), Some(&*self.path), self.path.parent()];
        directories
            .into_iter()
            .flatten()
            .try_for_each(|directory| files::sync_directory(directory, &self.times))
    }
}

impl BackupTarget for Directory {
    fn create(&self, name: &str) -> io::Result<Box<dyn BackupFile + '_>> {
        let file = File::create(&self.inner.join(name), FILE_MODE, Existing::Refuse)?;
        Ok(Box::new(Output { file, times: &self.times }))
    }
}

struct Output<'a> {
    file: File,
    times: &'a IoTimes,
}

impl BackupFile for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    fn share(&mut self, source: FileHandle<'_>) -> io::Result<bool> {
        self.file.share(source)
    }

    fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn cut(&mut self, size_bytes: u64) -> io::Result<()> {
        self.file.set_size(size_bytes)
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.file.sync(self.times)
    }
}
