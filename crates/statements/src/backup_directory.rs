//! The directory of a backup: the files of the engine, and which transactions of the binary log they hold.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use engine_api::{BackupFile, BackupTarget, CancelToken, Engine};
use errors::{Error, ErrorCode, Result};
use plugin_api::BinaryLog;
use sys::disk::FileHandle;
use sys::files::{self, Existing, File};
use sys::io_times::IoTimes;

/// It holds the rows of all accounts.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Which transactions of the binary log a backup has.
pub(crate) const EXECUTED: &str = "binary-log";
/// The directory of the binary log in a data directory, and where it finds which transactions a clone has.
const LOG_DIRECTORY: &str = "binary-log";
const LOG_CLONED: &str = "cloned";
/// Where a data directory has the files of the engine.
const STORAGE: &str = "storage";

/// The purpose of the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backup {
    /// BACKUP: a source for restore.
    Kept,
    /// CLONE LOCAL: a data directory that a server is started on.
    Started,
}

/// A directory created for one backup.
#[derive(Debug)]
pub struct BackupDirectory {
    path: PathBuf,
    /// Where the files go.
    inner: PathBuf,
    purpose: Backup,
    times: Arc<IoTimes>,
}

impl BackupDirectory {
    /// Creates the directory.
    ///
    /// # Errors
    /// `AlreadyExists`, I/O.
    pub fn make(path: &Path, purpose: Backup, times: Arc<IoTimes>) -> io::Result<BackupDirectory> {
        files::create_directory(path, DIRECTORY_MODE)?;
        let inner = match purpose {
            Backup::Kept => path.to_owned(),
            Backup::Started => path.join(STORAGE),
        };
        if purpose == Backup::Started {
            files::create_directory(&inner, DIRECTORY_MODE)?;
        }
        Ok(BackupDirectory { path: path.to_owned(), inner, purpose, times })
    }

    /// Writes which transactions of the binary log the backup has: `docs/format/backup.md`.
    ///
    /// # Errors
    /// I/O.
    pub fn put_executed(&self, end_position: u64, executed: &str) -> io::Result<()> {
        let text = executed_text(end_position, executed);
        let log = self.path.join(LOG_DIRECTORY);
        let path = match self.purpose {
            Backup::Kept => self.inner.join(EXECUTED),
            Backup::Started => {
                files::create_directory(&log, DIRECTORY_MODE)?;
                log.join(LOG_CLONED)
            }
        };
        let mut file = File::create(&path, FILE_MODE, Existing::Refuse)?;
        file.write_all(text.as_bytes())?;
        file.sync(&self.times)?;
        match self.purpose {
            Backup::Kept => Ok(()),
            Backup::Started => files::sync_directory(&log, &self.times),
        }
    }

    /// Copies all that is committed to the directory, and removes it when that fails.
    ///
    /// # Errors
    /// Those of the engine and of the log; I/O; 1317 when `cancel` fires.
    pub fn fill(
        &self,
        engine: &dyn Engine,
        log: Option<&dyn BinaryLog>,
        cancel: &CancelToken,
    ) -> Result<()> {
        if let Some(log) = log {
            log.begin_backup();
        }
        let copied = engine.backup(self, cancel).map_err(|error| error.into_error(cancel));
        // After an error too: the log is to keep nothing more.
        let end_position = copied.as_ref().map_or(0, |summary| summary.end_position);
        let executed = log.map_or(Ok(None), |log| log.end_backup(end_position));
        let ended = copied.and(executed).and_then(|executed| {
            // The binary log of an encrypted directory reads encrypted files only.
            let is_told =
                |_: &String| self.purpose == Backup::Kept || engine.directory_key().is_none();
            let told = executed.filter(is_told);
            told.map_or(Ok(()), |executed| self.put_executed(end_position, &executed))
                .and_then(|()| self.sync())
                .map_err(|error| self.write_error(&error))
        });
        if ended.is_err() {
            // The error of the copy says more than one of the cleanup.
            let _ = files::remove_directory(&self.path);
        }
        ended
    }

    fn write_error(&self, error: &io::Error) -> Error {
        const ERROR_WRITING: ErrorCode = ErrorCode(3);
        let (number, text) = (error.raw_os_error().unwrap_or(0), error.to_string());
        let text = text.split(" (os error").next().unwrap_or_default();
        let path = self.path.display();
        let text = format!("Error writing '{path}' (OS errno {number} - {text})");
        Error::new(ERROR_WRITING, text)
    }

    /// Makes the names durable.
    ///
    /// # Errors
    /// I/O.
    pub fn sync(&self) -> io::Result<()> {
        let directories = [Some(&*self.inner), Some(&*self.path), self.path.parent()];
        directories
            .into_iter()
            .flatten()
            .try_for_each(|directory| files::sync_directory(directory, &self.times))
    }
}

/// What says which transactions of the binary log a backup has.
pub(crate) fn executed_text(end_position: u64, executed: &str) -> String {
    format!("squall-backup-log 1\nposition {end_position}\nexecuted {executed}\nend\n")
}

impl BackupTarget for BackupDirectory {
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
