//! Lists the commits in a log without replaying it: a restore to a point in time finds its end by them.

use std::io;
use std::ops::ControlFlow;

use btree::RedoBody;
use stdx::bytes::Reader;
use sys::disk::Disk;
use wal::{Checkpoint, LogReader, Window};

use crate::recovery::damaged;
use crate::system::KIND_COMMIT;

/// Log read at a time.
const WINDOW_BYTES: usize = 1 << 20;

/// Shows ticket and time (microseconds since 1970, when the record has it) of every commit from a checkpoint on, in ticket order, until
/// `visit` has seen enough.
///
/// # Errors
/// I/O; `InvalidData` for a damaged record.
pub fn each_commit(
    disk: &dyn Disk,
    checkpoint: &Checkpoint,
    block_bytes: usize,
    mut visit: impl FnMut(u64, Option<u64>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut reader = LogReader::new(disk, checkpoint.position, checkpoint.redo_from, block_bytes);
    let mut window = Window::new();
    while reader.next(&mut window, WINDOW_BYTES)? {
        for (_, record) in window.records().filter(|(_, record)| record.kind == KIND_COMMIT) {
            let body = RedoBody::parse(record.body).ok_or_else(damaged)?;
            let mut reader = Reader::new(body.extra);
            let _transaction = reader.u64().ok_or_else(damaged)?;
            if visit(record.ticket, reader.u64()).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}
