//! Unique keys WITHOUT OVERLAPS: rows that are alike in some columns have no time in common.
//!
//! A row is stored first, and then the key is searched by a locking read for rows that it must not have a time in common with; if there is one, storing the
//! row is undone, and the row is a duplicate. So of two transactions that store overlapping rows at the same time the one that searches last finds
//! the other's row: both rows are in the index by then. It waits for the other transaction, as every locking read does for a row that
//! is stored, changed or deleted by another, at every isolation level, and sees what has become of it. (Both may search
//! last: then both wait, and one of them ends with a deadlock.)
//!
//! Rows that are alike do not overlap, so that the order of their ends is that of their starts, and the first one that ends after the new row starts
//! tells for all: if it starts before the new row ends the two overlap, and if not, all later ones start even later. That holds also while rows of others
//! are there that have yet to be searched for. Let `r` be the row that ended the search, and let a later row `s` overlap the new row.
//! Then `s` has in it all the time of `r`, and one of the two was stored last. `s` searched last: then it found `r`, or the new row, which come
//! before `s` in the index. `r` searched last: then it found `s`, or ended with a row between the two, of which the same is true.

use engine_api::{
    Direction, EngineIndex, IndexId, KeyBound, KeyRange, RowBatch, RowLock, ScanSpec, TableId,
    WaitPolicy,
};
use errors::Result;
use plan::{OverlapCheck, TableWrite};
use rows::layout::Layout;
use rows::overlaps::{counts, differs, leading};
use rows::times::is_before;
use types::key::encode_part;
use types::{DataType, Value};

use crate::run::Run;

/// Rows read at a time: the first that is not the new one tells.
const ROWS_PER_FETCH: usize = 2;

/// The keys of a table.
pub(crate) struct Overlaps {
    table: TableId,
    engine: EngineIndex,
    /// Each with the type of the period's end.
    checks: Vec<(OverlapCheck, DataType)>,
}

impl Overlaps {
    pub(crate) fn of(table: &TableWrite, engine: EngineIndex) -> Option<Box<Overlaps>> {
        if table.overlaps.is_empty() {
            return None;
        }
        let ty = |check: &OverlapCheck| table.columns[check.end].ty.clone();
        let checks = table.overlaps.iter().map(|check| (check.clone(), ty(check))).collect();
        Some(Box::new(Overlaps { table: TableId(table.table), engine, checks }))
    }

    /// A row that overlaps one which was just stored in place of `old`: the key and the row's locator.
    pub(crate) fn find(
        &self,
        layout: &Layout,
        (old, record): (Option<&[u8]>, &[u8]),
        run: &mut Run<'_>,
    ) -> Result<Option<(IndexId, Vec<u8>)>> {
        let new = layout.decode_all(record)?;
        let old = old.map(|old| layout.decode_all(old)).transpose()?;
        for (check, end) in &self.checks {
            let is_same = old.as_ref().is_some_and(|old| !differs(check, old, &new));
            let is_null = check.alike.iter().any(|part| new[part.column].is_null());
            if is_same || is_null || !counts(check, &new) {
                continue;
            }
            for before in leading(check, &new) {
                if let Some(locator) = self.search(layout, (check, end), &new, before, run)? {
                    return Ok(Some((IndexId(check.index), locator)));
                }
            }
        }
        Ok(None)
    }

    fn search(
        &self,
        layout: &Layout,
        (check, end): (&OverlapCheck, &DataType),
        new: &[Value],
        before: Vec<u8>,
        run: &mut Run<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let range = self.range(check, end, new, before);
        let opened = run.transaction(self.engine)?.open_cursor(&range);
        let cursor = run.engine(opened)?;
        let mut batch = RowBatch::new();
        let found = loop {
            batch.clear();
            let fetched = run.transaction(self.engine)?.fetch(cursor, ROWS_PER_FETCH, &mut batch);
            match run.engine(fetched) {
                Ok(0) => break Ok(None),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
            let mut told = batch.iter().filter_map(|row| {
                let overlaps = judge(layout, check, new, row.record).transpose()?;
                Some(overlaps.map(|overlaps| overlaps.then(|| row.locator.to_vec())))
            });
            if let Some(told) = told.next() {
                break told;
            }
        };
        run.transaction(self.engine)?.close_cursor(cursor);
        found
    }

    /// The rows that are like the new one and end after it starts. `alike`: what their keys begin with.
    fn range(
        &self,
        check: &OverlapCheck,
        end: &DataType,
        new: &[Value],
        mut alike: Vec<u8>,
    ) -> ScanSpec {
        for part in &check.alike {
            let value = &new[part.column];
            encode_part(value, &part.ty, part.prefix_length, part.descending, &mut alike);
        }
        let mut lower = alike.clone();
        encode_part(&new[check.start], end, None, false, &mut lower);
        ScanSpec {
            table: self.table,
            index: IndexId(check.index),
            range: KeyRange { lower: KeyBound::Excluded(lower), upper: KeyBound::Included(alike) },
            direction: Direction::Forward,
            lock: RowLock::Shared,
            wait: WaitPolicy::Wait,
        }
    }
}

/// Whether a stored row overlaps the new one; `None` for a row that does not tell.
fn judge(
    layout: &Layout,
    check: &OverlapCheck,
    new: &[Value],
    record: &[u8],
) -> Result<Option<bool>> {
    let row = layout.decode_all(record)?;
    let tells = differs(check, &row, new) && counts(check, &row);
    Ok(tells.then(|| is_before(&row[check.start], &new[check.end])))
}
