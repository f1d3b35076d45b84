//! Values out of line: immutable chains of pages, written back to front so that every part already written is a valid chain.

use std::io;

use bufpool::Pool;
use page::{HEADER_BYTES, Kind, PageNo, PageRef};

use crate::mtr::Mtr;

/// Pages that one mini-transaction writes.
const PART_PAGES: usize = 16;

/// Puts the last part of `rest` before the chain that starts at `next`. Returns the remainder of `rest`, the new pages, the first
/// one in the chain last, and the mini-transaction, which the caller commits with its own record.
///
/// # Errors
/// I/O.
pub fn write_blob_part<'p, 'b>(
    pool: &'p Pool,
    mut rest: &'b [u8],
    mut next: PageNo,
) -> io::Result<(&'b [u8], Vec<PageNo>, Mtr<'p>)> {
    let body = pool.page_bytes() - HEADER_BYTES;
    let mut mtr = Mtr::new(pool);
    let mut pages = Vec::new();
    while !rest.is_empty() && pages.len() < PART_PAGES {
        let last = match rest.len() % body {
            0 => body,
            short => short,
        };
        let (front, piece) = rest.split_at(rest.len() - last);
        let place = mtr.allocate()?;
        let no = mtr.number(place);
        let mut edit = mtr.edit(place);
        edit.format(no, Kind::Blob, 0, 0);
        edit.set_link(next);
        edit.set_max_txn(piece.len() as u64);
        edit.write_body(0, piece);
        pages.push(no);
        (rest, next) = (front, no);
    }
    Ok((rest, pages, mtr))
}

/// Appends the bytes of a chain to `out`.
///
/// # Errors
/// I/O; `InvalidData` when a page is not part of a chain or the chain is longer than `length`.
pub fn read_blob(pool: &Pool, first: PageNo, length: usize, out: &mut Vec<u8>) -> io::Result<()> {
    walk_blob(pool, first, length, |_, page, used| page.copy_body(used, out))
}

/// Shows the pages of a chain.
///
/// # Errors
/// As `read_blob`.
pub fn visit_blob(
    pool: &Pool,
    first: PageNo,
    length: usize,
    on_page: &mut dyn FnMut(PageNo),
) -> io::Result<()> {
    walk_blob(pool, first, length, |no, _, _| on_page(no))
}

fn walk_blob(
    pool: &Pool,
    first: PageNo,
    length: usize,
    mut each: impl FnMut(PageNo, PageRef<'_>, usize),
) -> io::Result<()> {
    let (mut no, mut seen) = (first, 0);
    while seen < length {
        let page = pool.shared(no)?;
        let used = page.page().max_txn() as usize;
        if page.page().kind() != Kind::Blob || used == 0 || seen + used > length {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "value out of line is damaged"));
        }
        each(no, page.page(), used);
        seen += used;
        no = page.page().link();
    }
    Ok(())
}

/// Frees the first page of a chain, in a mini-transaction that the caller commits; returns the next page. `None` when the page is no
/// part of a chain, so that freeing can be repeated after a crash.
///
/// # Errors
/// I/O.
pub fn free_blob_page(pool: &Pool, no: PageNo) -> io::Result<Option<(PageNo, Mtr<'_>)>> {
    let guard = pool.exclusive(no)?;
    if guard.page().kind() != Kind::Blob {
        return Ok(None);
    }
    let next = guard.page().link();
    let mut mtr = Mtr::new(pool);
    let place = mtr.add(guard);
    mtr.prepare_free()?;
    mtr.free(place);
    Ok(Some((next, mtr)))
}
