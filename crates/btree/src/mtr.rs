//! Mini-transactions: latched pages, their edits, one log record. Also the meta page: allocation and the free list.

use std::io;

use bufpool::{Exclusive, Pool};
use page::{Kind, PageMut, PageNo, PageRef};
use stdx::Few;

/// Words of the meta page's body. The free list hangs on its link.
const META_PAGE_COUNT: usize = 0;
const META_FREE_COUNT: usize = 1;
/// First of the words that the engine uses.
const META_FIELDS: usize = 2;

/// Pages of one mini-transaction at most.
const PLACES_MAX: usize = 64;
/// Pages of most.
const PLACES_USUAL: usize = 4;

/// Bytes of a record before its operations: number of pages, their numbers, length of the operations.
const fn head_bytes(pages: usize) -> usize {
    1 + 4 * pages + 4
}

/// Pages latched exclusively and the log of their edits.
pub struct Mtr<'p> {
    pool: &'p Pool,
    pages: Few<Exclusive<'p>>,
    changed: u64,
    ops: Vec<u8>,
    meta: Option<usize>,
}

impl<'p> Mtr<'p> {
    /// Nothing latched.
    pub fn new(pool: &'p Pool) -> Mtr<'p> {
        Mtr { pool, pages: Few::default(), changed: 0, ops: Vec::new(), meta: None }
    }

    /// Takes over a latch; returns the page's place.
    pub fn add(&mut self, guard: Exclusive<'p>) -> usize {
        assert!(self.pages.len() < PLACES_MAX, "a mini-transaction touches few pages");
        self.pages.push(guard);
        self.pages.len() - 1
    }

    /// The page at a place.
    pub fn page(&self, place: usize) -> PageRef<'p> {
        self.pages[place].page()
    }

    /// Number of the page at a place.
    pub fn number(&self, place: usize) -> PageNo {
        self.pages[place].number()
    }

    /// For changing the page at a place.
    pub fn edit(&mut self, place: usize) -> PageMut<'_> {
        /// Room for the usual change, so that its parts do not grow the memory one by one.
        const OPS_BYTES: usize = 512;
        self.changed |= 1 << place;
        if self.ops.capacity() == 0 {
            self.ops = Vec::with_capacity(OPS_BYTES);
        }
        PageMut::new(self.pages[place].words(), &mut self.ops, place as u8)
    }

    fn latch_meta(&mut self) -> io::Result<usize> {
        if let Some(place) = self.meta {
            return Ok(place);
        }
        let guard = self.pool.exclusive(PageNo::META)?;
        let place = self.add(guard);
        self.meta = Some(place);
        Ok(place)
    }

    /// A page from the free list or from the end of the file. Its content is for the caller to format.
    ///
    /// # Errors
    /// I/O, or the file has its largest size; nothing was edited by this call.
    pub fn allocate(&mut self) -> io::Result<usize> {
        let meta = self.latch_meta()?;
        sys::unmodelled! {
            debug_assert!(self.page(meta).kind() == Kind::Meta, "page 0 is the meta page");
        }
        let first = self.page(meta).link();
        if first != PageNo::META {
            let guard = self.pool.exclusive(first)?;
            if guard.page().kind() != Kind::Free {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "free list is damaged"));
            }
            let next = guard.page().link();
            let count = self.page(meta).body_word(META_FREE_COUNT);
            let place = self.add(guard);
            let mut edit = self.edit(meta);
            edit.set_link(next);
            edit.write_body(META_FREE_COUNT * 8, &count.saturating_sub(1).to_le_bytes());
            self.tell_pool(meta);
            return Ok(place);
        }
        let count = self.page(meta).body_word(META_PAGE_COUNT);
        let no = PageNo(u32::try_from(count).map_err(|_| io::ErrorKind::StorageFull)?);
        self.pool.reserve_page(count)?;
        let guard = self.pool.create(no).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => io::ErrorKind::StorageFull.into(),
            _ => error,
        })?;
        let place = self.add(guard);
        self.edit(meta).write_body(META_PAGE_COUNT * 8, &(count + 1).to_le_bytes());
        self.tell_pool(meta);
        Ok(place)
    }

    fn tell_pool(&self, meta: usize) {
        let page = self.page(meta);
        let (pages, free) = (page.body_word(META_PAGE_COUNT), page.body_word(META_FREE_COUNT));
        sys::unmodelled! {
            assert!(free < pages, "the meta page itself is never free");
        }
        self.pool.note_pages(pages, free);
    }

    /// Makes sure that `free` cannot fail.
    ///
    /// # Errors
    /// I/O.
    pub fn prepare_free(&mut self) -> io::Result<()> {
        self.latch_meta().map(drop)
    }

    /// Puts the page at `place` on the free list. The caller has called `prepare_free`.
    ///
    /// # Panics
    /// When it is on the free list already: two owners would get it.
    pub fn free(&mut self, place: usize) {
        let meta = self.meta.expect("prepare_free was called");
        sys::unmodelled! {
            assert!(self.page(place).kind() != Kind::Free, "a page is freed once");
        }
        assert!(place != meta, "the meta page is never freed");
        let (first, no) = (self.page(meta).link(), self.number(place));
        let count = self.page(meta).body_word(META_FREE_COUNT);
        let mut edit = self.edit(place);
        edit.format(no, Kind::Free, 0, 0);
        edit.set_link(first);
        let mut edit = self.edit(meta);
        edit.set_link(no);
        edit.write_body(META_FREE_COUNT * 8, &(count + 1).to_le_bytes());
        self.tell_pool(meta);
    }

    /// Sets one of the engine's words on the meta page.
    ///
    /// # Errors
    /// I/O.
    pub fn set_space_field(&mut self, index: usize, value: u64) -> io::Result<()> {
        let meta = self.latch_meta()?;
        self.edit(meta).write_body((META_FIELDS + index) * 8, &value.to_le_bytes());
        Ok(())
    }

    /// Logs the edits as a record of `kind` followed by `extra`, and releases the latches. Returns the ticket.
    pub fn commit(mut self, kind: u8, extra: &[u8]) -> u64 {
        self.log(kind, [extra, &[]])
    }

    /// Like `commit`, with two pieces after the edits.
    pub fn commit_with(mut self, kind: u8, extra: [&[u8]; 2]) -> u64 {
        self.log(kind, extra)
    }

    fn log(&mut self, kind: u8, [extra, more]: [&[u8]; 2]) -> u64 {
        let log = self.pool.log().expect("changes are made after recovery connected the log");
        debug_assert_eq!(
            page::touched(&self.ops).map(|touched| touched.any & !self.changed),
            Some(0),
            "replay finds edits of latched pages only"
        );
        // B6: the floor is stored before the ticket is drawn.
        let floor = log.next_ticket();
        // Most records are of a page or two: clearing room for all that there may be would cost more than the rest of the head.
        let (mut usual, mut most);
        let header: &mut [u8] = match self.pages.len() <= PLACES_USUAL {
            true => {
                usual = [0; head_bytes(PLACES_USUAL)];
                &mut usual
            }
            false => {
                most = [0; head_bytes(PLACES_MAX)];
                &mut most
            }
        };
        header[0] = self.pages.len() as u8;
        let mut end = 1;
        let mut put = |value: u32| {
            header[end..end + 4].copy_from_slice(&value.to_le_bytes());
            end += 4;
        };
        for (place, page) in self.pages.iter().enumerate() {
            put(page.number().0);
            if self.changed & 1 << place != 0 {
                page.mark_dirty(floor);
            }
        }
        put(self.ops.len() as u32);
        let parts = [&header[..end], &self.ops, extra, more];
        let (ticket, crowded) = log.append_watched(kind, &parts, |_| {});
        assert!(ticket >= floor, "the floor of a change is below its ticket (B6)");
        for (place, page) in self.pages.iter().enumerate() {
            if self.changed & 1 << place != 0 {
                PageMut::set_lsn(page.words(), ticket);
            }
        }
        self.ops.clear();
        self.changed = 0;
        self.pages.clear();
        self.meta = None;
        if crowded {
            // A broken log is reported to threads that wait for durability.
            let _ = log.relieve();
        }
        ticket
    }
}

/// Kind of a record that only changes pages.
pub(crate) const KIND_PAGES: u8 = 1;

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if !self.ops.is_empty() {
            // A bug in the middle of a change: the pages are not consistent, and must reach neither the log nor another reader.
            sys::threads::abort_if_panicking("a change of pages did not come to its end");
            // T1: an error came between allocation and use. The edits are consistent; at worst a page is lost.
            self.log(KIND_PAGES, [&[], &[]]);
        }
    }
}

/// Sets up the meta page of a new space.
///
/// # Errors
/// I/O.
pub fn format_space(pool: &Pool) -> io::Result<()> {
    let mut mtr = Mtr::new(pool);
    let place = mtr.add(pool.create(PageNo::META)?);
    let mut edit = mtr.edit(place);
    edit.format(PageNo::META, Kind::Meta, 0, 0);
    edit.write_body(META_PAGE_COUNT * 8, &1_u64.to_le_bytes());
    mtr.commit(KIND_PAGES, &[]);
    pool.note_pages(1, 0);
    Ok(())
}

/// One of the engine's words on the meta page.
///
/// # Errors
/// I/O.
pub fn space_field(pool: &Pool, index: usize) -> io::Result<u64> {
    Ok(pool.shared(PageNo::META)?.page().body_word(META_FIELDS + index))
}

/// Pages of the file, and how many of them are on the free list.
///
/// # Errors
/// I/O.
pub fn pages_in_use(pool: &Pool) -> io::Result<(u64, u64)> {
    let meta = pool.shared(PageNo::META)?;
    Ok((meta.page().body_word(META_PAGE_COUNT), meta.page().body_word(META_FREE_COUNT)))
}
