//! Replaying the page edits of a record.

use std::io;

use bufpool::Pool;
use page::{PageMut, PageNo, apply_ops, ops_touch, starts_with_zero};
use stdx::bytes::Reader;

/// The parts of a record that a mini-transaction wrote.
#[derive(Clone, Debug)]
pub struct RedoBody<'a> {
    pages: Vec<PageNo>,
    ops: &'a [u8],
    /// What the caller of `commit` added.
    pub extra: &'a [u8],
}

impl<'a> RedoBody<'a> {
    /// Takes a record's body apart; `None` when it is malformed.
    pub fn parse(body: &'a [u8]) -> Option<RedoBody<'a>> {
        let mut reader = Reader::new(body);
        let count = reader.u8()?;
        let pages = (0..count).map(|_| reader.u32().map(PageNo)).collect::<Option<Vec<_>>>()?;
        let ops = reader.blob()?;
        Some(RedoBody { pages, ops, extra: reader.rest() })
    }
}

/// Applies a record's edits to every page that has not seen them.
///
/// # Errors
/// I/O; `InvalidData` for a damaged record or page.
pub fn redo(pool: &Pool, ticket: u64, body: &RedoBody<'_>) -> io::Result<()> {
    for (place, no) in body.pages.iter().enumerate() {
        let place = place as u8;
        if !ops_touch(body.ops, place) {
            continue;
        }
        let blank = || starts_with_zero(body.ops, place);
        let guard = pool.exclusive_for_redo(*no, blank)?;
        if guard.page().lsn() >= ticket {
            continue;
        }
        guard.mark_dirty(ticket);
        if apply_ops(guard.words(), body.ops, place).is_none() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "damaged log record"));
        }
        PageMut::set_lsn(guard.words(), ticket);
    }
    Ok(())
}
