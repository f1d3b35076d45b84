//! The reader of attachments: follows the log.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{AttachedCommit, AttachmentReader, EngineResult};
use errors::Error;
use sys::sync::atomic::Ordering;

use crate::attachments::write;
use crate::error::io_error;
use crate::shared::Shared;

/// See `engine_api::AttachmentReader`.
struct Reader {
    shared: Arc<Shared>,
    reader: txn::AttachmentReader,
    /// The commit that was returned last.
    commit: Option<txn::AttachedCommit>,
    confirmed: u64,
    has_gap: bool,
}

/// See `Engine::attachments`.
pub(crate) fn reader(
    shared: &Arc<Shared>,
    after: Option<u64>,
) -> EngineResult<Box<dyn AttachmentReader>> {
    let own = &shared.attachments;
    // Pairs with the store in `drop`.
    if !shared.config.keeps_attachments || own.has_reader.swap(true, Ordering::AcqRel) {
        return Err(Error::internal("the log is not kept for this reader of attachments").into());
    }
    let log = &shared.system.log;
    let open = |start: (u64, u64)| {
        let (log, disk) = (log.clone(), shared.disk.clone());
        txn::AttachmentReader::new(log, disk, shared.config.log.block_bytes, start)
    };
    let kept = own.segment.lock().zip(after).map(open);
    let (reader, has_gap) = match kept {
        Some(Ok(reader)) => (reader, false),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(error)),
        _ => {
            let next = log.next_ticket();
            log.flush_to(next - 1).map_err(io_error)?;
            (open((log.durable_end().segment, next - 1)).map_err(io_error)?, after.is_some())
        }
    };
    let (shared, commit) = (shared.clone(), None);
    let mut reader = Reader { shared, reader, commit, confirmed: 0, has_gap };
    reader.confirm()?;
    Ok(Box::new(reader))
}

impl AttachmentReader for Reader {
    fn next(&mut self) -> EngineResult<Option<AttachedCommit>> {
        self.commit = self.reader.next_commit().map_err(io_error)?;
        let commit = self.commit.as_ref();
        Ok(commit.map(|commit| AttachedCommit {
            position: commit.ticket,
            micros: commit.micros,
            length: commit.length,
        }))
    }

    fn read(&mut self, out: &mut Vec<u8>) -> EngineResult<bool> {
        match &mut self.commit {
            Some(commit) => self.reader.read(commit, out).map_err(io_error),
            None => Ok(false),
        }
    }

    fn again(&mut self) {
        self.commit.iter_mut().for_each(txn::AttachedCommit::again);
    }

    fn passed(&self) -> u64 {
        self.reader.passed()
    }

    fn has_gap(&self) -> bool {
        self.has_gap
    }

    fn confirm(&mut self) -> EngineResult<()> {
        let segment = self.reader.needed_segment();
        assert!(self.confirmed <= segment, "a reader never goes back");
        if segment != self.confirmed {
            write(&*self.shared.disk, segment).map_err(io_error)?;
            let mut pin = self.shared.attachments.pin.lock();
            match &*pin {
                Some(pin) => pin.advance(segment),
                None => *pin = Some(self.shared.system.log.pin(segment)),
            }
            *self.shared.attachments.segment.lock() = Some(segment);
            self.confirmed = segment;
        }
        Ok(())
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let bed = self.shared.attachments.bed.clone();
        Box::new(move || bed.wake())
    }

    fn wait(&mut self, at_most: Duration) {
        self.shared.attachments.bed.wait(at_most);
    }

    fn pause(&mut self, at_most: Duration) {
        self.shared.attachments.bed.pause(at_most);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Pairs with the swap in `reader`.
        self.shared.attachments.has_reader.store(false, Ordering::Release);
    }
}
