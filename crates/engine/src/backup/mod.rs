//! Backup while others read and write: each data page as it is on the disk at the time of its copy, and the log from a checkpoint before the
//! first copy to a point after the last. Recovery brings them to one consistent state, that at the end (E12).
//!
//! Pages are read from the file, past the pool: a page that is being written is read again, and at last taken from memory. The
//! checkpoint's log and undo files are kept until they are copied. Nothing stops for a backup.

pub(crate) mod manifest;
mod progress;
pub(crate) mod restore;

use std::io;
use std::sync::Arc;
use std::time::Duration;
use sys::sync::atomic::Ordering;

use engine_api::{BackupFile, BackupSummary, BackupTarget, CancelToken, EngineError, EngineResult};
use errors::{Error, ErrorCode};
use page::{CrcSum, PageNo, seal, verify};
use sys::disk::{DiskKey, OpenMode};
use sys::encryption::FileSealer;
use sys::mem::AlignedBytes;
use txn::{FilePin, files_beside};
use wal::{Checkpoint, Follower, LogPin};

use crate::error::io_error;
use crate::shared::Shared;
pub(crate) use progress::Backups;

use manifest::{CHECKPOINT, FileSum, MANIFEST, Manifest, SPACE};
use progress::Progress;

/// Bytes read at a time.
const CHUNK_BYTES: usize = 1 << 20;
/// Where a page names its tree (docs/format/page.md).
const TREE: std::ops::Range<usize> = 56..64;
/// A page that is being written is whole after a few tries.
const READ_TRIES: u32 = 20;

fn now_micros() -> u64 {
    sys::clock::wall().as_micros() as u64
}

/// See `Engine::backup`.
pub(crate) fn backup(
    shared: &Arc<Shared>,
    target: &dyn BackupTarget,
    cancel: &CancelToken,
) -> EngineResult<BackupSummary> {
    let backups = &shared.backups;
    if backups.running.swap(true, Ordering::AcqRel) {
        return Err(Error::with(ErrorCode::CLONE_TOO_MANY_CONCURRENT_CLONES, &[&1]).into());
    }
    let started_micros = now_micros();
    backups.change(|now| *now = Progress { state: "pages", started_micros, ..Progress::default() });
    let outcome = Copier::start(shared, target, cancel, started_micros).and_then(Copier::run);
    backups.change(|now| {
        now.ended_micros = now_micros();
        match &outcome {
            Ok(summary) => {
                now.state = "done";
                now.end_position = summary.end_position;
            }
            Err(error) => {
                now.state = "failed";
                now.error = error.clone().into_error(cancel).message().to_owned();
            }
        }
    });
    backups.running.store(false, Ordering::Release);
    outcome
}

/// A backup under way.
struct Copier<'a> {
    shared: &'a Arc<Shared>,
    target: &'a dyn BackupTarget,
    cancel: &'a CancelToken,
    checkpoint: Checkpoint,
    started_micros: u64,
    files: Vec<FileSum>,
    log_pin: LogPin,
    _file_pin: FilePin,
}

/// A file of the backup that is being written.
struct Output<'a> {
    file: Box<dyn BackupFile + 'a>,
    sum: CrcSum,
    name: String,
    bytes: u64,
    /// It shares the blocks of its source: what is not changed is not written.
    shares: bool,
    /// Where the data directory is encrypted, the backup is, under the same key. Sums are of the plain text.
    sealer: Option<FileSealer>,
}

impl Output<'_> {
    fn fail(&self, error: &io::Error) -> EngineError {
        write_error(&self.name, error)
    }
}

fn write_error(name: &str, error: &io::Error) -> EngineError {
    let number = error.raw_os_error().unwrap_or(0);
    Error::with(ErrorCode::ERROR_ON_WRITE, &[&name, &number, error]).into()
}

impl<'a> Copier<'a> {
    /// Takes the checkpoint that recovery will start from, and keeps its files.
    fn start(
        shared: &'a Arc<Shared>,
        target: &'a dyn BackupTarget,
        cancel: &'a CancelToken,
        started_micros: u64,
    ) -> EngineResult<Copier<'a>> {
        // Pinned first: the files of this checkpoint must not go with the next one.
        let (file_pin, log_pin) = (FilePin::new(&shared.system), shared.system.log.pin(0));
        let checkpoint = shared.checkpoint()?;
        log_pin.advance(checkpoint.position.segment);
        Ok(Copier {
            shared,
            target,
            cancel,
            checkpoint,
            started_micros,
            files: Vec::new(),
            log_pin,
            _file_pin: file_pin,
        })
    }

    fn run(mut self) -> EngineResult<BackupSummary> {
        self.copy_pages()?;
        self.shared.backups.change(|now| now.state = "undo");
        for name in files_beside(&*self.shared.disk, self.checkpoint.number).map_err(io_error)? {
            self.copy_file(&name)?;
        }
        let mut output = self.create_sealed(CHECKPOINT)?;
        self.put(&mut output, &self.checkpoint.file_image())?;
        self.finish(output)?;
        self.shared.backups.change(|now| now.state = "log");
        let end_position = self.copy_log()?;
        let end_micros = now_micros();
        let manifest = Manifest {
            identity: self.shared.identity.clone(),
            page_bytes: self.checkpoint.page_bytes,
            block_bytes: self.shared.config.log.block_bytes as u32,
            started_micros: self.started_micros,
            ended_micros: end_micros,
            first_segment: self.checkpoint.position.segment,
            end_position,
            files: std::mem::take(&mut self.files),
        };
        if let Some(key) = self.key() {
            // It opens the backup, so it is not among the files that are copied from it.
            let (name, text) = key.file();
            self.write_whole(name, text.as_bytes())?;
        }
        self.write_whole(MANIFEST, manifest.encode().as_bytes())?;
        let bytes = self.shared.backups.progress.lock().bytes;
        Ok(BackupSummary { end_position, end_micros, bytes })
    }

    /// The key under which files are encrypted for the target.
    fn key(&self) -> Option<Arc<dyn DiskKey>> {
        self.shared.disk.key().filter(|_| !self.target.is_plain())
    }

    fn check(&self) -> EngineResult<()> {
        match self.cancel.is_cancelled() {
            true => Err(EngineError::Cancelled),
            false => Ok(()),
        }
    }

    fn create(&self, name: &str) -> EngineResult<Output<'a>> {
        let file = self.target.create(name).map_err(|error| write_error(name, &error))?;
        let (sum, name) = (CrcSum::new(), name.to_owned());
        Ok(Output { file, sum, name, bytes: 0, shares: false, sealer: None })
    }

    /// A file of data: encrypted where the data directory is.
    fn create_sealed(&self, name: &str) -> EngineResult<Output<'a>> {
        let mut output = self.create(name)?;
        if let Some(key) = self.key() {
            let (sealer, header) = FileSealer::new(&*key).map_err(io_error)?;
            output.file.write(&header).map_err(|error| output.fail(&error))?;
            output.sealer = Some(sealer);
        }
        Ok(output)
    }

    fn put(&self, output: &mut Output<'_>, bytes: &[u8]) -> EngineResult<()> {
        output.sum.add(bytes);
        output.bytes += bytes.len() as u64;
        if !output.shares {
            let sealed = output.sealer.as_mut().map(|sealer| sealer.seal(bytes));
            let written = output.file.write(sealed.as_deref().unwrap_or(bytes));
            written.map_err(|error| output.fail(&error))?;
        }
        self.shared.backups.change(|now| now.bytes += bytes.len() as u64);
        self.check()
    }

    fn finish(&mut self, output: Output<'_>) -> EngineResult<()> {
        let Output { mut file, sum, name, bytes, shares, sealer } = output;
        if let Some(sealer) = sealer {
            file.write(&sealer.end()).map_err(|error| write_error(&name, &error))?;
        }
        if shares {
            file.cut(bytes).map_err(|error| write_error(&name, &error))?;
        }
        file.finish().map_err(|error| write_error(&name, &error))?;
        self.files.push(FileSum { name, bytes, crc: sum.value() });
        Ok(())
    }

    fn write_whole(&mut self, name: &str, bytes: &[u8]) -> EngineResult<()> {
        let mut output = self.create(name)?;
        self.put(&mut output, bytes)?;
        self.finish(output)
    }

    /// A file of which the part that counts does not change any more.
    fn copy_file(&mut self, name: &str) -> EngineResult<()> {
        let file = self.shared.disk.open(name, OpenMode::Existing).map_err(io_error)?;
        let mut output = self.create_sealed(name)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let count = file.read_at(&mut chunk, output.bytes).map_err(io_error)?;
            self.put(&mut output, &chunk[..count])?;
            if count < chunk.len() {
                return self.finish(output);
            }
        }
    }

    fn copy_pages(&mut self) -> EngineResult<()> {
        let file = self.shared.disk.open_pages(SPACE, OpenMode::Existing).map_err(io_error)?;
        let page_bytes = self.checkpoint.page_bytes as usize;
        // Replay of the copied log creates pages after the end.
        let pages = file.size_bytes().map_err(io_error)? / page_bytes as u64;
        self.shared.backups.change(|now| now.pages_total = pages);
        self.target.expect(pages * page_bytes as u64);
        let mut chunk = AlignedBytes::new(CHUNK_BYTES.max(page_bytes));
        let mut output = self.create_sealed(SPACE)?;
        // After the checkpoint: its pages are in the file, and later changes are in the log that is copied.
        if let Some(source) = file.handle() {
            output.shares = output.file.share(source).map_err(|error| output.fail(&error))?;
        }
        let mut next = 0;
        while next < pages {
            let count = (pages - next).min((chunk.len() / page_bytes) as u64);
            let images = &mut chunk[..count as usize * page_bytes];
            let offset = next * page_bytes as u64;
            let read = match output.shares {
                true => output.file.read_at(images, offset).map_err(|error| output.fail(&error))?,
                false => file.read_at(images, offset).map_err(io_error)?,
            };
            // Pages missing from a shrinking file are read one by one, and found missing there.
            images[read..].fill(u8::MAX);
            for (image, no) in images.chunks_exact_mut(page_bytes).zip(next..) {
                let no = PageNo(no as u32);
                if !is_good(image, no) {
                    self.read_again(&*file, no, image)?;
                    if output.shares {
                        let offset = u64::from(no.0) * page_bytes as u64;
                        let written = output.file.write_at(image, offset);
                        written.map_err(|error| output.fail(&error))?;
                    }
                }
            }
            self.put(&mut output, images)?;
            next += count;
            self.shared.backups.change(|now| now.pages_done = next);
        }
        self.finish(output)
    }

    /// A page that was not whole: it was just being written, or it is damaged.
    fn read_again(
        &self,
        file: &dyn sys::disk::File,
        no: PageNo,
        image: &mut [u8],
    ) -> EngineResult<()> {
        let offset = u64::from(no.0) * image.len() as u64;
        for _ in 0..READ_TRIES {
            sys::threads::sleep(Duration::from_micros(500));
            let count = file.read_at(image, offset).map_err(io_error)?;
            if count == image.len() && is_good(image, no) {
                return Ok(());
            }
        }
        // Perhaps its batch could not be written (B10) and only memory has it. Its changes are in the log that is copied later.
        match self.shared.system.pool.shared(no) {
            Ok(guard) => {
                let mut copy = Vec::with_capacity(image.len());
                guard.page().copy_page(&mut copy);
                image.copy_from_slice(&copy);
                seal(image);
                Ok(())
            }
            Err(error) => Err(self.name_owner(io_error(error), image)),
        }
    }

    /// Adds the page to the figures of its table.
    fn name_owner(&self, error: EngineError, image: &[u8]) -> EngineError {
        let tree = u64::from_le_bytes(image[TREE].try_into().unwrap_or([0; 8]));
        let tables = self.shared.dictionary.all().unwrap_or_default();
        let owner = tables
            .into_iter()
            .find(|table| table.trees().iter().any(|stored| stored.tree.id == tree));
        match owner {
            Some(table) => crate::error::name_table(&table.def, error),
            None => error,
        }
    }

    /// The log from the checkpoint to now. Returns the position up to which it reaches.
    fn copy_log(&mut self) -> EngineResult<u64> {
        let log = &self.shared.system.log;
        // Beyond every page that was copied (W7).
        log.flush_to(log.next_ticket() - 1).map_err(io_error)?;
        let end = log.durable_end();
        let block_bytes = self.shared.config.log.block_bytes;
        let disk = self.shared.disk.clone();
        let mut follower = Follower::new(disk, self.checkpoint.position, block_bytes);
        let mut output: Option<(u64, Output<'_>)> = None;
        while let Some(batches) = follower.next(Some(end)).map_err(io_error)? {
            let segment = batches.place.segment;
            if let Some((written, whole)) = output.take_if(|(written, _)| *written != segment) {
                self.finish(whole)?;
                self.log_pin.advance(written + 1);
            }
            let current = match &mut output {
                Some((_, current)) => current,
                None => {
                    &mut output
                        .insert((segment, self.create_sealed(&wal::segment_name(segment))?))
                        .1
                }
            };
            self.put(current, batches.bytes)?;
        }
        if let Some((_, last)) = output {
            self.finish(last)?;
        }
        Ok(follower.low())
    }
}

/// Whether a page is whole, or was never written.
fn is_good(image: &[u8], no: PageNo) -> bool {
    verify(image, no) || image.iter().all(|byte| *byte == 0)
}
