//! Scans: consistent ones read plain rows in place and others from private copies of leaves, locking ones go row by row.

use btree::{LeafCopy, Seek, Tree};
use engine_api::{
    Direction, EngineError, EngineResult, IndexId, KeyBound, KeyRange, RowBatch, ScanSpec,
    WaitPolicy,
};
use locks::Mode;
use stdx::LocalArc;
use sys::model::breaks;
use types::key::key_record_header;

use crate::entry::read_entry;
use crate::error::io_error;
use crate::keys::{IndexKeys, Span};
use crate::obstacle::{Absent, Locked};
use crate::read::{View, committed_version, sees_inline, visible};
use crate::row::{HEADER_BYTES, Header, append_record};
use crate::table::Table;
use crate::transaction::Txn;

/// Bytes after which a fetch returns early.
const FETCH_BYTES_MAX: usize = 1 << 20;

/// An open scan. The remaining range is always a span: forward scans move its start, backward scans its end.
pub(crate) struct Cursor {
    table: LocalArc<Table>,
    /// `None`: the clustered index.
    index: Option<usize>,
    /// `None`: the range can hold nothing.
    range: Option<Span>,
    /// The remaining part of `range`.
    left: Option<Span>,
    backward: bool,
    lock: Option<Mode>,
    wait: WaitPolicy,
    /// Rows are given as key records.
    pub(crate) gives_keys: bool,
    pub(crate) leaf: Option<LeafCopy>,
    /// Whether SKIP LOCKED left a row out.
    pub(crate) skipped: bool,
    /// The key of the row fetched last, if it is not locked (`WaitPolicy::Peek`).
    pub(crate) peeked: Option<Vec<u8>>,
    /// The range begins and ends with the same key.
    is_point: bool,
    /// The cursor is for one row of a unique key: its caller locks the range if no such row exists.
    is_unique: bool,
    /// The cursor waits for the next row even if `wait` says otherwise.
    insists: bool,
    sql_key: Vec<u8>,
    entry_key: Vec<u8>,
}

impl Cursor {
    pub fn open(
        table: LocalArc<Table>,
        spec: &ScanSpec,
        lock: Option<Mode>,
    ) -> EngineResult<Cursor> {
        let mut cursor = Cursor::over(table, spec.index, &spec.range, lock, spec.wait)?;
        cursor.backward = spec.direction == Direction::Backward;
        Ok(cursor)
    }

    /// For a point read of a unique secondary index.
    pub fn point(
        table: LocalArc<Table>,
        index: IndexId,
        key: &[u8],
        lock: Option<Mode>,
        wait: WaitPolicy,
    ) -> EngineResult<Cursor> {
        let cursor = Cursor::over(table, index, &KeyRange::prefix(key.to_vec()), lock, wait)?;
        Ok(Cursor { is_unique: true, ..cursor })
    }

    fn over(
        table: LocalArc<Table>,
        index: IndexId,
        range: &KeyRange,
        lock: Option<Mode>,
        wait: WaitPolicy,
    ) -> EngineResult<Cursor> {
        let index = match index {
            IndexId::CLUSTERED => None,
            id => Some(table.index_at(id)?),
        };
        let is_point = matches!((&range.lower, &range.upper),
            (KeyBound::Included(lower), KeyBound::Included(upper)) if lower == upper);
        let range = Span::of(range);
        Ok(Cursor {
            table,
            index,
            left: range.clone(),
            range,
            backward: false,
            lock,
            wait,
            gives_keys: false,
            leaf: None,
            skipped: false,
            peeked: None,
            insists: false,
            is_point,
            is_unique: false,
            sql_key: Vec::new(),
            entry_key: Vec::new(),
        })
    }

    /// The table it reads.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The secondary index that it reads.
    pub fn index(&self) -> Option<usize> {
        self.index
    }

    /// Table it reads.
    pub fn table_id(&self) -> engine_api::TableId {
        self.table.id
    }

    /// Goes back to the row that was peeked at.
    pub fn lock_peeked(&mut self) {
        let (Some(mut key), Some(range)) = (self.peeked.take(), &self.range) else { return };
        let left = self.left.get_or_insert_with(|| range.clone());
        if self.backward {
            // The smallest key above it.
            key.push(0);
            left.end = Some(key);
        } else {
            left.start = key;
        }
        self.insists = true;
    }

    /// Whether a locked row is read before waiting for it: not if it is the only row requested.
    fn peeks(&self) -> bool {
        let key_parts = self.table.primary.as_ref().map_or(1, IndexKeys::part_count);
        let is_point = key_parts == 1 && self.is_point;
        self.wait == WaitPolicy::Peek && self.index.is_none() && !self.insists && !is_point
    }

    /// Starts again from the beginning.
    pub fn restart(&mut self) {
        self.left = self.range.clone();
        self.leaf = None;
    }

    fn tree(&self) -> Tree {
        self.index.map_or(self.table.clustered, |at| self.table.indexes[at].tree)
    }

    fn seek<'a>(left: &'a Span, backward: bool) -> Seek<'a> {
        match (backward, &left.end) {
            (false, _) => Seek::At(&left.start),
            (true, Some(end)) => Seek::Below(end),
            (true, None) => Seek::Last,
        }
    }

    /// Moves past a key.
    fn pass_key(&mut self, key: &[u8]) {
        let Some(left) = &mut self.left else { return };
        if self.backward {
            let end = left.end.get_or_insert_with(Vec::new);
            end.clear();
            end.extend_from_slice(key);
        } else {
            left.start.clear();
            left.start.extend_from_slice(key);
            // The smallest key above it.
            left.start.push(0);
        }
        self.close_if_empty();
    }

    /// Moves past a leaf with the given fence in the scan's direction.
    fn pass_leaf(&mut self, fence: Option<&[u8]>) {
        let (Some(left), Some(fence)) = (&mut self.left, fence) else {
            self.left = None;
            return;
        };
        let end = match self.backward {
            true => left.end.get_or_insert_with(Vec::new),
            false => &mut left.start,
        };
        end.clear();
        end.extend_from_slice(fence);
        self.close_if_empty();
    }

    fn pass(&mut self, next: Next, key: &[u8]) {
        match next {
            Next::Key => self.pass_key(key),
            Next::Leaf => self.pass_leaf(Some(key)),
            Next::End => self.pass_leaf(None),
        }
    }

    fn close_if_empty(&mut self) {
        if self.left.as_ref().is_some_and(|left| left.ends_before(&left.start)) {
            self.left = None;
        }
    }
}

/// The scan's place in a leaf.
fn slots_of(page: page::PageRef<'_>, left: &Span) -> std::ops::Range<usize> {
    let first = page.search(&left.start).0;
    let last = match &left.end {
        Some(end) => match page.covers(end) {
            true => page.search(end).0,
            // The end lies in a later leaf.
            false => page.count(),
        },
        None => page.count(),
    };
    let first = if page.covers(&left.start) { first } else { 0 };
    first..last.max(first)
}

/// The slots of a leaf that a scan has to read, in its direction.
struct Slots {
    start: usize,
    count: usize,
    backward: bool,
}

impl Slots {
    fn of(page: page::PageRef<'_>, left: &Span, backward: bool) -> Slots {
        let slots = slots_of(page, left);
        Slots { start: slots.start, count: slots.len(), backward }
    }

    /// The n-th slot.
    #[inline]
    fn at(&self, index: usize) -> usize {
        match self.backward {
            false => self.start + index,
            true => self.start + self.count - 1 - index,
        }
    }

    /// The place where the scan continues after `passed` slots; the key or fence is stored in `key`.
    fn next(&self, page: page::PageRef<'_>, passed: usize, key: &mut Vec<u8>) -> Next {
        key.clear();
        if passed == self.count {
            let more = match self.backward {
                false => page.upper_fence(key),
                true => page.lower_fence(key),
            };
            return if more { Next::Leaf } else { Next::End };
        }
        if passed > 0 {
            page.copy_key(self.at(passed - 1), key);
        }
        Next::Key
    }
}

/// The place where a scan continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// After a key.
    Key,
    /// At a leaf's fence.
    Leaf,
    /// The scan has ended.
    End,
}

impl Txn {
    /// See `Transaction::fetch`.
    pub(crate) fn fetch_from(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        cursor.peeked = None;
        let mut rows = 0;
        while rows == 0 && cursor.left.is_some() && limit > 0 {
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            rows = match cursor.lock {
                None => self.fetch_consistent(cursor, limit, batch)?,
                Some(mode) => self.fetch_locking(cursor, limit, mode, batch)?,
            };
        }
        Ok(rows)
    }

    fn load_leaf(&mut self, cursor: &mut Cursor) -> EngineResult<LeafCopy> {
        let spare = cursor.leaf.take().or_else(|| self.leaves.pop());
        let pool = &self.shared.system.pool;
        let tree = cursor.tree();
        let mut leaf = spare.unwrap_or_else(|| LeafCopy::new(pool));
        let Some(left) = &cursor.left else { return Ok(leaf) };
        leaf.load(pool, tree, Cursor::seek(left, cursor.backward)).map_err(io_error)?;
        Ok(leaf)
    }

    /// The current copy, if it is still up to date and covers the place.
    fn held_leaf(&mut self, cursor: &mut Cursor) -> EngineResult<Option<LeafCopy>> {
        if let (Some(leaf), Some(left)) = (&cursor.leaf, &cursor.left) {
            let covers = !cursor.backward && leaf.page().covers(&left.start);
            if covers && leaf.is_current(&self.shared.system.pool).map_err(io_error)? {
                return Ok(cursor.leaf.take());
            }
        }
        Ok(None)
    }

    /// Fetches the rows of one leaf: plain ones in place, from the first other row on from a copy.
    fn fetch_consistent(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let view = self.view()?;
        if let Some(leaf) = self.held_leaf(cursor)? {
            return self.fetch_copied(cursor, &view, leaf, limit, batch);
        }
        let spare = cursor.leaf.take().or_else(|| self.leaves.pop());
        let system = &self.shared.system;
        let mut leaf = spare.unwrap_or_else(|| LeafCopy::new(&system.pool));
        let mut key = std::mem::take(&mut cursor.entry_key);
        let Some(left) = &cursor.left else { return Ok(0) };
        let (mut rows, mut next) = (0, Next::End);
        let seek = Cursor::seek(left, cursor.backward);
        let is_done = leaf.load_unless(&system.pool, cursor.tree(), seek, |page| {
            let slots = Slots::of(page, left, cursor.backward);
            let settled = cursor.gives_keys && view.sees_entries(page.max_txn());
            if cursor.index.is_some() && !settled {
                return false;
            }
            let mut passed = 0;
            while passed < slots.count && rows < limit && batch.size_bytes() < FETCH_BYTES_MAX {
                let slot = slots.at(passed);
                rows += usize::from(match settled {
                    true => {
                        key.clear();
                        page.copy_key(slot, &mut key);
                        push_entry(page.value_word(slot, 0), &key, batch)
                    }
                    false if self.push_inline(&view, page, slot, batch) => true,
                    false => break,
                });
                passed += 1;
            }
            next = slots.next(page, passed, &mut key);
            passed > 0 || slots.count == 0
        });
        if is_done.map_err(io_error)? {
            cursor.pass(next, &key);
            cursor.entry_key = key;
            cursor.leaf = Some(leaf);
            return Ok(rows);
        }
        cursor.entry_key = key;
        self.fetch_copied(cursor, &view, leaf, limit, batch)
    }

    fn fetch_copied(
        &mut self,
        cursor: &mut Cursor,
        view: &View,
        leaf: LeafCopy,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let page = leaf.page();
        let Some(left) = &cursor.left else { return Ok(0) };
        let slots = Slots::of(page, left, cursor.backward);
        let settled = cursor.gives_keys && view.sees_entries(page.max_txn());
        let (mut rows, mut passed) = (0, 0);
        let mut key = std::mem::take(&mut cursor.entry_key);
        while passed < slots.count && rows < limit && batch.size_bytes() < FETCH_BYTES_MAX {
            let slot = slots.at(passed);
            passed += 1;
            if cursor.index.is_none() && self.push_inline(view, page, slot, batch) {
                rows += 1;
                continue;
            }
            key.clear();
            page.copy_key(slot, &mut key);
            rows += usize::from(match settled {
                true => push_entry(page.value_word(slot, 0), &key, batch),
                false => self.push_visible(cursor, view, page, slot, &key, batch)?,
            });
        }
        let next = slots.next(page, passed, &mut key);
        cursor.pass(next, &key);
        cursor.entry_key = key;
        cursor.leaf = Some(leaf);
        Ok(rows)
    }

    /// Appends a plain row: its newest version, which the view sees, goes from the page's copy to the batch. False if the row is not plain.
    #[inline]
    fn push_inline(
        &self,
        view: &View,
        page: page::PageRef<'_>,
        slot: usize,
        batch: &mut RowBatch,
    ) -> bool {
        let head = Header::from_words(page.value_word(slot, 0), page.value_word(slot, 1));
        let sees = sees_inline(&self.shared.system, view, head);
        if sees {
            let locate = |out: &mut Vec<u8>| page.copy_key(slot, out);
            batch.push_parts(locate, |out| page.copy_value_from(slot, HEADER_BYTES, out));
        }
        sees
    }

    /// Appends the version of a slot's row that the view sees, if one exists and (E3) the slot is its entry.
    fn push_visible(
        &mut self,
        cursor: &mut Cursor,
        view: &View,
        page: page::PageRef<'_>,
        slot: usize,
        key: &[u8],
        batch: &mut RowBatch,
    ) -> EngineResult<bool> {
        let shared = &self.shared;
        let pool = &shared.system.pool;
        let value = &mut self.value;
        value.clear();
        let Some(at) = cursor.index else {
            page.copy_value(slot, value);
            if !visible(&shared.system, view, value)? {
                return Ok(false);
            }
            return push(pool, batch, key, value).map(|()| true);
        };
        let (length, _) = read_entry(page.value_word(slot, 0));
        let Some((sql, locator)) = key.split_at_checked(length) else { return Ok(false) };
        let found = cursor.table.clustered.get(pool, locator, value).map_err(io_error)?;
        if !found || !visible(&shared.system, view, value)? {
            return Ok(false);
        }
        let mut record = Vec::new();
        append_record(pool, value, &mut record).map_err(io_error)?;
        if !cursor.table.indexes[at].keys.has(&record, sql, &mut cursor.sql_key)? {
            return Ok(false);
        }
        match cursor.gives_keys {
            true => push_keys(sql, locator, batch),
            false => batch.push(locator, &record),
        }
        Ok(true)
    }

    /// Fetches the rows of one leaf, each locked. The part of the range in the leaf is locked before its rows are read.
    fn fetch_locking(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        mode: Mode,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let Some(left) = cursor.left.clone() else { return Ok(0) };
        self.relieve_locks();
        let mut leaf = self.load_leaf(cursor)?;
        // The part that this leaf covers now; the part stays the same even if the leaf is split.
        let mut fence = Vec::new();
        let more = match cursor.backward {
            false => leaf.page().upper_fence(&mut fence),
            true => leaf.page().lower_fence(&mut fence),
        };
        let part = clip(&left, more.then_some(&fence), cursor.backward);
        if self.locks_gaps() && !cursor.is_unique {
            let owner = self.owner();
            let space = cursor.tree().id;
            let locks = &self.shared.system.locks;
            locks.lock_range(&owner, space, &part.start, part.end.as_deref());
            if !leaf.is_current(&self.shared.system.pool).map_err(io_error)? {
                cursor.leaf = Some(leaf);
                leaf = self.load_leaf(cursor)?;
            }
        }
        let shared = self.shared.clone();
        let mut held = HeldLeaf { pool: &shared.system.pool, leaf: None };
        let mut rows = 0;
        let mut key = Vec::new();
        let page = leaf.page();
        let slots = slots_of(page, &part);
        let keys: Vec<usize> = match cursor.backward {
            false => slots.collect(),
            true => slots.rev().collect(),
        };
        // After a split in between, the leaf holds less than the part; after a merge, more than was locked. Only their overlap is passed.
        let mut again = Vec::new();
        let more = match cursor.backward {
            false => page.upper_fence(&mut again),
            true => page.lower_fence(&mut again),
        };
        for slot in keys {
            if rows >= limit || batch.size_bytes() >= FETCH_BYTES_MAX {
                cursor.leaf = Some(leaf);
                return Ok(rows);
            }
            key.clear();
            page.copy_key(slot, &mut key);
            let (length, _) = match cursor.index {
                Some(_) => read_entry(page.value_word(slot, 0)),
                None => (0, false),
            };
            let step =
                self.lock_and_push(cursor, &mut held, (&key, length), mode, batch, rows > 0)?;
            cursor.insists = false;
            match step {
                Step::Row => rows += 1,
                Step::Nothing => {}
                Step::Peeked => {
                    cursor.pass_key(&key);
                    cursor.peeked = Some(key);
                    cursor.leaf = Some(leaf);
                    return Ok(rows + 1);
                }
                Step::Blocked => {
                    cursor.leaf = Some(leaf);
                    return Ok(rows);
                }
            }
            cursor.pass_key(&key);
            if cursor.left.is_none() {
                return Ok(rows);
            }
        }
        let locked = if breaks("pass only what was locked") { &left } else { &part };
        let passed = clip(locked, more.then_some(&again), cursor.backward);
        let edge = if cursor.backward { Some(passed.start) } else { passed.end };
        cursor.pass_leaf(edge.as_deref());
        cursor.leaf = Some(leaf);
        Ok(rows)
    }

    fn lock_and_push(
        &mut self,
        cursor: &mut Cursor,
        held: &mut HeldLeaf<'_>,
        (key, sql_length): (&[u8], usize),
        mode: Mode,
        batch: &mut RowBatch,
        has_rows: bool,
    ) -> EngineResult<Step> {
        let Some((sql, locator)) = key.split_at_checked(sql_length) else {
            return Ok(Step::Nothing);
        };
        let table = cursor.table.clone();
        let absent = match cursor.index.is_some() && self.locks_gaps() {
            true => Absent::Locked,
            false => Absent::Left,
        };
        let wanted = (mode, absent);
        let at_once = match cursor.index {
            Some(_) => self.try_lock_current(&table, locator, wanted)?,
            None => {
                let leaf = held.of(&table, locator)?;
                let locked = self.try_lock_in(leaf.page(), &table, locator, wanted);
                // While it is held, this thread neither waits nor reads anything else.
                let reads_on =
                    locked == Some(Locked::Found) && Header::of(&self.value).is_out_of_line();
                if locked.is_none() || reads_on {
                    held.leaf = None;
                }
                locked
            }
        };
        let locked = match at_once {
            Some(locked) => locked,
            None if has_rows && matches!(cursor.wait, WaitPolicy::Wait | WaitPolicy::Peek) => {
                return Ok(Step::Blocked);
            }
            None if cursor.peeks() && !self.locks_gaps() => return self.peek(locator, batch),
            None => {
                let name = self.name.clone();
                match self.wait_for_row(name, mode, cursor.wait)? {
                    true => self.lock_wanted(&table, locator, wanted, cursor.wait)?,
                    false => Locked::Skipped,
                }
            }
        };
        match locked {
            Locked::Skipped => {
                cursor.skipped = true;
                return Ok(Step::Nothing);
            }
            Locked::Missing => return Ok(Step::Nothing),
            Locked::Found => {}
        }
        let pool = &self.shared.system.pool;
        let Some(at) = cursor.index else {
            return push(pool, batch, locator, &self.value).map(|()| Step::Row);
        };
        let mut record = Vec::new();
        append_record(pool, &self.value, &mut record).map_err(io_error)?;
        if !cursor.table.indexes[at].keys.has(&record, sql, &mut cursor.sql_key)? {
            return Ok(Step::Nothing);
        }
        match cursor.gives_keys {
            true => push_keys(sql, locator, batch),
            false => batch.push(locator, &record),
        }
        Ok(Step::Row)
    }
}

impl Txn {
    /// The last committed version of the row in the scratch buffer, if it existed then.
    fn peek(&mut self, locator: &[u8], batch: &mut RowBatch) -> EngineResult<Step> {
        let system = &self.shared.system;
        let (found, seen) = committed_version(system, &mut self.value)?;
        self.seen = self.seen.max(seen);
        if !found {
            return Ok(Step::Nothing);
        }
        push(&system.pool, batch, locator, &self.value).map(|()| Step::Peeked)
    }
}

/// The latched leaf of the rows that are being locked: they are neighbours.
struct HeldLeaf<'p> {
    pool: &'p bufpool::Pool,
    leaf: Option<bufpool::Shared<'p>>,
}

impl<'p> HeldLeaf<'p> {
    /// The leaf of a row.
    fn of(&mut self, table: &Table, key: &[u8]) -> EngineResult<&mut bufpool::Shared<'p>> {
        if self.leaf.as_ref().is_some_and(|leaf| !leaf.page().covers(key)) {
            self.leaf = None;
        }
        let leaf = match self.leaf.take() {
            Some(leaf) => leaf,
            None => table.clustered.shared_leaf(self.pool, Seek::At(key)).map_err(io_error)?,
        };
        Ok(self.leaf.insert(leaf))
    }
}

/// The outcome for one entry.
enum Step {
    Row,
    /// A row that is not locked.
    Peeked,
    Nothing,
    /// Rows were found before it: they are returned first.
    Blocked,
}

/// The part of `left` up to a leaf's fence in the scan's direction.
fn clip(left: &Span, fence: Option<&Vec<u8>>, backward: bool) -> Span {
    let mut part = left.clone();
    match (fence, backward) {
        (None, _) => {}
        (Some(fence), false) => {
            if part.end.as_ref().is_none_or(|end| fence < end) {
                part.end = Some(fence.clone());
            }
        }
        (Some(fence), true) => {
            if *fence > part.start {
                part.start = fence.clone();
            }
        }
    }
    part
}

/// An entry of a leaf on which all are settled (E15); false when it is marked.
fn push_entry(word: u64, key: &[u8], batch: &mut RowBatch) -> bool {
    let (length, marked) = read_entry(word);
    match key.split_at_checked(length) {
        Some((sql, locator)) if !marked => {
            push_keys(sql, locator, batch);
            true
        }
        _ => false,
    }
}

fn push_keys(sql: &[u8], locator: &[u8], batch: &mut RowBatch) {
    batch.push_with(locator, |out| {
        out.extend_from_slice(&key_record_header(sql.len()));
        out.extend_from_slice(sql);
        out.extend_from_slice(locator);
    });
}

fn push(
    pool: &bufpool::Pool,
    batch: &mut RowBatch,
    locator: &[u8],
    value: &[u8],
) -> EngineResult<()> {
    let mut outcome = Ok(());
    batch.push_with(locator, |out| outcome = append_record(pool, value, out));
    outcome.map_err(io_error)
}
