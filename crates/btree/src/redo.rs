//! Replaying the page edits of records: page by page, so that pages may be shared out among threads.
//!
//! Independent of the origin of records. A page's pieces are given in ticket order; pages do not depend on each other.

use std::io;

use bufpool::Pool;
use page::{PageMut, PageNo, apply_ops, touched};
use stdx::bytes::Reader;

/// The parts of a record that a mini-transaction wrote.
#[derive(Clone, Copy, Debug)]
pub struct RedoBody<'a> {
    /// Page numbers, 4 bytes each.
    pages: &'a [u8],
    /// Edits of all of them.
    pub ops: &'a [u8],
    /// Where `ops` starts in the body.
    pub ops_start: usize,
    /// The bytes that the caller of `commit` added.
    pub extra: &'a [u8],
}

/// A record's edits of one page.
#[derive(Clone, Copy, Debug)]
pub struct Touch {
    /// The page.
    pub page: PageNo,
    /// Its place in the record.
    pub place: u8,
    /// Its former content does not matter.
    pub is_blank: bool,
}

/// The edits of one record to one page.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Ticket of the record.
    pub ticket: u64,
    /// Place of the page in it.
    pub place: u8,
    /// The page's former content does not matter.
    pub is_blank: bool,
    /// The record's edits, of other pages too.
    pub ops: &'a [u8],
}

impl<'a> RedoBody<'a> {
    /// Takes a record's body apart; `None` when it is malformed.
    pub fn parse(body: &'a [u8]) -> Option<RedoBody<'a>> {
        let mut reader = Reader::new(body);
        let count = usize::from(reader.u8()?);
        let pages = reader.take(4 * count)?;
        let ops = reader.blob()?;
        Some(RedoBody { pages, ops, ops_start: 1 + 4 * count + 4, extra: reader.rest() })
    }

    /// The pages that are edited; `None` when the edits are malformed.
    pub fn touches(&self) -> Option<impl Iterator<Item = Touch> + use<'a>> {
        let touched = touched(self.ops)?;
        let pages = self.pages.as_chunks::<4>().0.iter().enumerate();
        Some(pages.filter(move |(place, _)| touched.any >> place & 1 != 0).map(
            move |(place, number)| Touch {
                page: PageNo(u32::from_le_bytes(*number)),
                place: place as u8,
                is_blank: touched.blank >> place & 1 != 0,
            },
        ))
    }
}

/// Applies a record's edits to every page that has not seen them.
///
/// # Errors
/// I/O; `InvalidData` for a damaged record or page.
pub fn redo(pool: &Pool, ticket: u64, body: &RedoBody<'_>) -> io::Result<()> {
    for Touch { page, place, is_blank } in body.touches().ok_or_else(damaged)? {
        redo_page(pool, page, &[Piece { ticket, place, is_blank, ops: body.ops }])?;
    }
    Ok(())
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "damaged log record")
}

/// Applies pieces, in ticket order, to a page that may have seen some of them. What lies before a piece that empties the page is passed
/// over, and the page is not read then: the log has all that comes after.
///
/// # Errors
/// As `redo`.
pub fn redo_page(pool: &Pool, no: PageNo, pieces: &[Piece<'_>]) -> io::Result<()> {
    let blank = pieces.iter().rposition(|piece| piece.is_blank);
    let guard = match blank {
        Some(_) => pool.create(no)?,
        None => pool.exclusive(no)?,
    };
    let seen = guard.page().lsn();
    let mut last = seen;
    for piece in pieces[blank.unwrap_or(0)..].iter().filter(|piece| piece.ticket > seen) {
        guard.mark_dirty(piece.ticket);
        apply_ops(guard.words(), piece.ops, piece.place).ok_or_else(damaged)?;
        last = piece.ticket;
    }
    if last > seen {
        PageMut::set_lsn(guard.words(), last);
    }
    Ok(())
}
