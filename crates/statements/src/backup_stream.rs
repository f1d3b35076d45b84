//! BACKUP DATABASE TO STREAM: a backup as rows of a result, for a client that stores it elsewhere (`docs/format/backup.md`).
//!
//! The engine writes on one thread, and the statement's own sends. A few pieces are in memory between them: a slow client slows the backup.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crc_fast::CrcAlgorithm;
use engine_api::{BackupFile, BackupTarget, CancelToken, Engine};
use errors::{Error, Result};
use plugin_api::{BinaryLog, ColumnMeta, ResultSink, ValueRow};
use sys::sync::{Condvar, Mutex};
use sys::threads::{Crew, alongside};
use types::{CollationId, DataType, TypeKind, Value};

use crate::backup_directory::{EXECUTED, executed_text};

/// Most bytes of a row.
const PIECE_BYTES: usize = 1 << 20;
/// Pieces that wait to be sent.
const WAITING_MAX: usize = 4;
/// How often a wait looks whether the statement was killed.
const STEP: Duration = Duration::from_millis(200);
/// Longest name of a file.
const NAME_CHARS: u32 = 255;

/// Bytes of a file.
struct Piece {
    file: Arc<str>,
    offset: u64,
    bytes: Vec<u8>,
}

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Piece>,
    /// Bytes of pages that the engine has announced.
    expected: u64,
    /// Nothing more comes.
    is_written: bool,
    /// Nobody takes them any more.
    is_abandoned: bool,
}

/// The way from the engine to the client.
struct Pipe<'c> {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    cancel: &'c CancelToken,
    /// Data is sent as it is read, from an encrypted directory too.
    is_plain: bool,
}

impl Pipe<'_> {
    fn put(&self, piece: Piece) -> io::Result<()> {
        let mut waiting = self.waiting.lock();
        while waiting.pieces.len() >= WAITING_MAX && !waiting.is_abandoned {
            if self.cancel.is_cancelled() {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            waiting = self.changed.wait_for(waiting, STEP);
        }
        if waiting.is_abandoned {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        waiting.pieces.push_back(piece);
        drop(waiting);
        self.changed.notify_all();
        Ok(())
    }

    /// The next piece, and the bytes that are expected; `None` at the end.
    fn take(&self) -> Option<(Piece, u64)> {
        let mut waiting = self.waiting.lock();
        loop {
            if let Some(piece) = waiting.pieces.pop_front() {
                let expected = waiting.expected;
                drop(waiting);
                self.changed.notify_all();
                return Some((piece, expected));
            }
            if waiting.is_written {
                return None;
            }
            waiting = self.changed.wait_for(waiting, STEP);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut self.waiting.lock());
        self.changed.notify_all();
    }
}

impl BackupTarget for Pipe<'_> {
    fn create(&self, name: &str) -> io::Result<Box<dyn BackupFile + '_>> {
        Ok(Box::new(Output { pipe: self, file: name.into(), offset: 0 }))
    }

    fn is_plain(&self) -> bool {
        self.is_plain
    }

    fn expect(&self, bytes: u64) {
        self.change(|waiting| waiting.expected = bytes);
    }
}

struct Output<'p> {
    pipe: &'p Pipe<'p>,
    file: Arc<str>,
    offset: u64,
}

impl BackupFile for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for bytes in bytes.chunks(PIECE_BYTES) {
            let (file, offset) = (self.file.clone(), self.offset);
            self.pipe.put(Piece { file, offset, bytes: bytes.to_vec() })?;
            self.offset += bytes.len() as u64;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        // A file without bytes has a row too.
        if self.offset > 0 {
            return Ok(());
        }
        self.pipe.put(Piece { file: self.file.clone(), offset: 0, bytes: Vec::new() })
    }
}

/// The columns of the result.
fn columns() -> [ColumnMeta; 5] {
    let name = DataType::varchar(NAME_CHARS, CollationId::UTF8MB4_0900_AI_CI);
    let number = DataType::bigint_unsigned;
    let data = DataType::new(TypeKind::LongBlob, u32::MAX, 0);
    [
        ColumnMeta::computed("FILE", name.with_nullable(false)),
        ColumnMeta::computed("OFFSET", number().with_nullable(false)),
        ColumnMeta::computed("DATA", data.with_nullable(false)),
        ColumnMeta::computed("CHECKSUM", number().with_nullable(false)),
        ColumnMeta::computed("EXPECTED", number().with_nullable(false)),
    ]
}

fn send(sink: &mut dyn ResultSink, piece: Piece, expected: u64) -> Result<()> {
    let checksum = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &piece.bytes);
    let row = [
        Value::text(&piece.file),
        Value::UInt(piece.offset),
        Value::Bytes(piece.bytes.into()),
        Value::UInt(checksum),
        Value::UInt(expected),
    ];
    sink.row(&ValueRow(&row))
}

/// Sends all of a backup as rows; the end of the result is the caller's. With `is_plain`, what an encrypted directory holds is sent as it is.
///
/// # Errors
/// Those of the engine and of the log; the client is gone; 1317 when `cancel` fires.
pub fn send_backup(
    engine: &dyn Engine,
    log: Option<&dyn BinaryLog>,
    is_plain: bool,
    cancel: &CancelToken,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    sink.columns(&columns())?;
    if let Some(log) = log {
        log.begin_backup();
    }
    let pipe = Pipe { waiting: Mutex::default(), changed: Condvar::new(), cancel, is_plain };
    let write = |_| {
        let copied = engine.backup(&pipe, cancel);
        pipe.change(|waiting| waiting.is_written = true);
        copied
    };
    let pass_on = || {
        let sent = std::iter::from_fn(|| pipe.take())
            .try_for_each(|(piece, expected)| send(sink, piece, expected));
        if sent.is_err() {
            pipe.change(|waiting| waiting.is_abandoned = true);
        }
        sent
    };
    let (copied, sent) = alongside(Crew::Threads, 1, write, pass_on);
    let copied = copied.into_iter().next().ok_or_else(|| Error::internal("a thread of backup"));
    let copied = copied.and_then(|copied| copied.map_err(|error| error.into_error(cancel)));
    // After an error too: the log is to keep nothing more.
    let end_position = copied.as_ref().map_or(0, |summary| summary.end_position);
    let executed = log.map_or(Ok(None), |log| log.end_backup(end_position));
    sent?;
    copied?;
    if let Some(executed) = executed? {
        let bytes = executed_text(end_position, &executed).into_bytes();
        let expected = pipe.waiting.lock().expected;
        send(sink, Piece { file: EXECUTED.into(), offset: 0, bytes }, expected)?;
    }
    Ok(())
}
