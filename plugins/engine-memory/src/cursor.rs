//! Scans: consistent ones in batches under the table's latch, locking ones row by row.

use engine_api::{
    Direction, EngineError, EngineResult, IndexId, KeyRange, RowBatch, RowLock, ScanSpec,
    WaitPolicy,
};
use locks::Mode;
use sys::sync::Arc;

use crate::key::Key;
use crate::status::row_name;
use crate::table::{Index, Row, Table, TableData, View};
use crate::transaction::MemoryTransaction;
use engine_api::Span;

/// Entries read before the latch is released and the cancel token checked.
const EXAMINED_MAX: usize = 4096;
/// Bytes after which a fetch returns early.
const FETCH_BYTES_MAX: usize = 1 << 20;

/// An open scan.
pub(crate) struct Cursor {
    pub(crate) table: Arc<Table>,
    pub(crate) index: IndexId,
    /// `None`: the range can hold nothing.
    span: Option<Span>,
    backward: bool,
    pub(crate) lock: RowLock,
    wait: WaitPolicy,
    /// Key of the last entry passed.
    position: Option<Vec<u8>>,
    done: bool,
    wants_gap: bool,
    /// Whether SKIP LOCKED left a row out.
    pub(crate) skipped: bool,
}

/// The record lock that a read requests.
pub(crate) fn mode_of(lock: RowLock) -> Option<Mode> {
    match lock {
        RowLock::None => None,
        RowLock::Shared => Some(Mode::Shared),
        RowLock::Exclusive => Some(Mode::Exclusive),
    }
}

impl Cursor {
    pub(crate) fn open(table: Arc<Table>, spec: &ScanSpec) -> EngineResult<Cursor> {
        if spec.index != IndexId::CLUSTERED && table.data.read().index(spec.index).is_none() {
            return Err(EngineError::UnknownTable);
        }
        Ok(Cursor {
            table,
            index: spec.index,
            span: Span::of(&spec.range),
            backward: spec.direction == Direction::Backward,
            lock: spec.lock,
            wait: spec.wait,
            position: None,
            done: false,
            wants_gap: true,
            skipped: false,
        })
    }

    /// For a point read of a secondary index.
    pub(crate) fn point(
        table: Arc<Table>,
        index: IndexId,
        key: &[u8],
        lock: RowLock,
        wait: WaitPolicy,
    ) -> Cursor {
        Cursor {
            table,
            index,
            span: Span::of(&KeyRange::prefix(key.to_vec())),
            backward: false,
            lock,
            wait,
            position: None,
            done: false,
            wants_gap: true,
            skipped: false,
        }
    }

    pub(crate) fn without_gap(mut self) -> Cursor {
        self.wants_gap = false;
        self
    }
}

/// Why a pass over the entries stopped.
enum Stop {
    /// Nothing is left.
    End,
    /// Enough rows, or enough work under one latch.
    Pause,
    /// A row is locked by another.
    Blocked(Key),
}

/// One pass of a scan under one latch.
struct Pass<'a> {
    limit: usize,
    rows: usize,
    examined: usize,
    batch: &'a mut RowBatch,
    /// Last entry passed.
    last: Option<&'a Key>,
}

impl<'a> Pass<'a> {
    fn is_full(&self) -> bool {
        self.rows >= self.limit
            || self.examined >= EXAMINED_MAX
            || self.batch.size_bytes() >= FETCH_BYTES_MAX
    }

    fn consistent_rows(
        &mut self,
        rows: impl Iterator<Item = (&'a Key, &'a Row)>,
        view: View,
    ) -> Stop {
        for (key, row) in rows {
            if let Some(record) = row.visible(view) {
                self.batch.push(key.as_slice(), record);
                self.rows += 1;
            }
            self.last = Some(key);
            self.examined += 1;
            if self.is_full() {
                return Stop::Pause;
            }
        }
        Stop::End
    }

    fn consistent_entries(
        &mut self,
        entries: impl Iterator<Item = (&'a Key, &'a u32)>,
        data: &'a TableData,
        index: &Index,
        view: View,
    ) -> EngineResult<Stop> {
        let mut scratch = Vec::new();
        for (key, sql_length) in entries {
            let (sql, locator) = key.as_slice().split_at(*sql_length as usize);
            if let Some(row) = data.rows.get(locator)
                && let Some(record) = row.visible(view)
                // With one version only, every entry of the row is that version's.
                && (row.older.is_empty() || index.keys.matches(record, sql, &mut scratch)?)
            {
                self.batch.push(locator, record);
                self.rows += 1;
            }
            self.last = Some(key);
            self.examined += 1;
            if self.is_full() {
                return Ok(Stop::Pause);
            }
        }
        Ok(Stop::End)
    }
}

impl MemoryTransaction {
    /// See `Transaction::fetch`.
    pub(crate) fn fetch_from(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let mut rows = 0;
        while rows == 0 && !cursor.done && limit > 0 {
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            rows = match mode_of(cursor.lock) {
                None => self.fetch_consistent(cursor, limit, batch)?,
                Some(mode) => self.fetch_locking(cursor, limit, mode, batch)?,
            };
        }
        Ok(rows)
    }

    fn fetch_consistent(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let view = self.view();
        let table = cursor.table.clone();
        let data = table.data.read();
        let position = cursor.position.as_deref();
        let bounds = cursor.span.as_ref().and_then(|s| s.bounds_after(position, cursor.backward));
        let Some(bounds) = bounds else {
            cursor.done = true;
            return Ok(0);
        };
        let mut pass = Pass { limit, rows: 0, examined: 0, batch, last: None };
        let stop = if cursor.index == IndexId::CLUSTERED {
            let range = data.rows.range::<[u8], _>(bounds);
            if cursor.backward {
                pass.consistent_rows(range.rev(), view)
            } else {
                pass.consistent_rows(range, view)
            }
        } else {
            let index = data.index(cursor.index).ok_or(EngineError::UnknownTable)?;
            let range = index.entries.range::<[u8], _>(bounds);
            if cursor.backward {
                pass.consistent_entries(range.rev(), &data, index, view)?
            } else {
                pass.consistent_entries(range, &data, index, view)?
            }
        };
        let (rows, last) = (pass.rows, pass.last);
        advance(&mut cursor.position, last);
        cursor.done = matches!(stop, Stop::End);
        Ok(rows)
    }

    fn fetch_locking(
        &mut self,
        cursor: &mut Cursor,
        limit: usize,
        mode: Mode,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let table = cursor.table.clone();
        let mut rows = 0;
        loop {
            let data = table.data.read();
            let position = cursor.position.as_deref();
            let bounds =
                cursor.span.as_ref().and_then(|s| s.bounds_after(position, cursor.backward));
            let mut pass = Pass { limit: limit - rows, rows: 0, examined: 0, batch, last: None };
            let stop = match bounds {
                None => Stop::End,
                Some(bounds) => self.locking_pass(&mut pass, &data, cursor, bounds, mode)?,
            };
            let (found, last) = (pass.rows, pass.last);
            rows += found;
            cover_gap(self, cursor, last, matches!(stop, Stop::End));
            advance(&mut cursor.position, last);
            drop(data);
            match stop {
                Stop::End => {
                    cursor.done = true;
                    return Ok(rows);
                }
                Stop::Pause => return Ok(rows),
                Stop::Blocked(_) if rows > 0 => return Ok(rows),
                Stop::Blocked(locator) => {
                    let name = row_name(table.id, locator.as_slice());
                    self.wait_for_row(name, mode, cursor.wait)?;
                }
            }
        }
    }

    fn locking_pass<'a>(
        &mut self,
        pass: &mut Pass<'a>,
        data: &'a TableData,
        cursor: &Cursor,
        bounds: (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>),
        mode: Mode,
    ) -> EngineResult<Stop> {
        if cursor.index == IndexId::CLUSTERED {
            let entries = data.rows.range::<[u8], _>(bounds).map(|(key, _)| (key, 0));
            return if cursor.backward {
                self.lock_entries(pass, entries.rev(), data, None, cursor, mode)
            } else {
                self.lock_entries(pass, entries, data, None, cursor, mode)
            };
        }
        let index = data.index(cursor.index).ok_or(EngineError::UnknownTable)?;
        let entries = index.entries.range::<[u8], _>(bounds).map(|(key, length)| (key, *length));
        if cursor.backward {
            self.lock_entries(pass, entries.rev(), data, Some(index), cursor, mode)
        } else {
            self.lock_entries(pass, entries, data, Some(index), cursor, mode)
        }
    }

    fn lock_entries<'a>(
        &mut self,
        pass: &mut Pass<'a>,
        entries: impl Iterator<Item = (&'a Key, u32)>,
        data: &TableData,
        index: Option<&Index>,
        cursor: &Cursor,
        mode: Mode,
    ) -> EngineResult<Stop> {
        let own = self.status().id;
        let mut scratch = Vec::new();
        for (key, sql_length) in entries {
            let (sql, locator) = key.as_slice().split_at(sql_length as usize);
            if let Some(row) = data.rows.get(locator)
                && may_match(row, index, sql, own, &mut scratch)?
            {
                if self.try_lock_row(cursor.table.id, locator, row, mode) {
                    if let Some(record) = matching_head(row, index, sql, &mut scratch)? {
                        pass.batch.push(locator, record);
                        pass.rows += 1;
                    }
                } else if cursor.wait != WaitPolicy::SkipLocked {
                    return Ok(Stop::Blocked(Key::new(locator)));
                }
            }
            pass.last = Some(key);
            pass.examined += 1;
            if pass.is_full() {
                return Ok(Stop::Pause);
            }
        }
        Ok(Stop::End)
    }
}

/// Whether the row's newest version, or the one it falls back to when an active writer rolls back, belongs to the entry.
fn may_match(
    row: &Row,
    index: Option<&Index>,
    sql: &[u8],
    own: u64,
    scratch: &mut Vec<u8>,
) -> EngineResult<bool> {
    if matching_head(row, index, sql, scratch)?.is_some() {
        return Ok(true);
    }
    let head_is_settled = row.head.writer.id == own || !row.head.writer.is_active();
    if head_is_settled {
        return Ok(false);
    }
    match row.newest_settled(own).and_then(|version| version.record.as_deref()) {
        None => Ok(false),
        Some(record) => index.map_or(Ok(true), |index| index.keys.matches(record, sql, scratch)),
    }
}

/// The newest record, when it is live and belongs to the entry.
fn matching_head<'a>(
    row: &'a Row,
    index: Option<&Index>,
    sql: &[u8],
    scratch: &mut Vec<u8>,
) -> EngineResult<Option<&'a [u8]>> {
    let Some(record) = row.head.record.as_deref() else { return Ok(None) };
    let matches = match index {
        None => true,
        Some(_) if row.older.is_empty() => true,
        Some(index) => index.keys.matches(record, sql, scratch)?,
    };
    Ok(matches.then_some(record))
}

fn advance(position: &mut Option<Vec<u8>>, last: Option<&Key>) {
    if let Some(last) = last {
        let position = position.get_or_insert_default();
        position.clear();
        position.extend_from_slice(last.as_slice());
    }
}

/// Extends the scan's gap lock over the range it has passed. The caller holds the latch.
fn cover_gap(txn: &mut MemoryTransaction, cursor: &Cursor, last: Option<&Key>, at_end: bool) {
    if !txn.locks_gaps() || !cursor.wants_gap || (last.is_none() && !at_end) {
        return;
    }
    let Some(whole) = &cursor.span else { return };
    let mut covered = whole.clone();
    if let (Some(last), false) = (last, at_end) {
        if cursor.backward {
            covered.start = last.as_slice().to_vec();
        } else {
            // The smallest key after `last`.
            covered.end = Some([last.as_slice(), &[0]].concat());
        }
    }
    txn.lock_gap(&cursor.table, cursor.index, &covered);
}
