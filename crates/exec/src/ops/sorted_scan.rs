//! ORDER BY over a plain scan of few rows: records stay as the engine returned them and are sent from there. A larger scan continues
//! in a `Sort`.

use errors::Result;

use super::scan::{Scan, ScanNode};
use super::simple::row_count;
use super::sort::{SortInput, SortNode, key_head};
use crate::buffers::{Place, SortedRows};
use crate::operator::Operator;
use crate::run::Run;

/// The operators handle more rows; they have limits and files.
const ROWS_MAX: usize = 4096;
/// A distinct sort of more rows looks up their keys as they arrive.
const DISTINCT_ROWS_MAX: usize = 1024;
const BYTES_MAX: usize = 1 << 20;
/// At most one in this many of the rows read may be wanted for only the wanted ones to be kept: between two sorts, as many new ones
/// arrive.
const BOUNDED_SHARE: usize = 4;
/// A larger buffer is freed, not kept for the next statement.
const KEPT_BYTES_MAX: usize = 256 << 10;

impl SortNode {
    /// The columns of the scanned table that are its keys, when its input is a plain scan and they are plain columns.
    pub(crate) fn record_keys(&self) -> Option<(&ScanNode, Vec<usize>)> {
        let SortInput::Scan(scan) = &self.input else { return None };
        let table = &scan.table;
        let columns = table.first.iter().chain(&table.rest);
        let column_of = |register: usize| {
            columns.clone().find(|(_, own)| *own == register).map(|(column, _)| *column)
        };
        let keys = self.keys.iter().map(|key| column_of(key.code.as_register()?));
        let keys = keys.collect::<Option<_>>()?;
        table.locator.is_none().then_some((scan, keys))
    }
}

impl SortedRows {
    /// Reads a scan; `columns` are those of the sort keys. Where few rows are wanted, only those are kept. False when there are more
    /// rows: those after the kept ones are still to be read.
    pub(crate) fn read<'r>(
        &mut self,
        (node, columns): (&SortNode, &[usize]),
        (scan, scan_node): (&mut Scan<'r>, &ScanNode),
        run: &mut Run<'r>,
    ) -> Result<bool> {
        let rows_max = if node.distinct { DISTINCT_ROWS_MAX } else { ROWS_MAX };
        let bytes_max = BYTES_MAX.min(run.operator_bytes());
        let limit = row_count(node.limit.as_ref(), u64::MAX, run)?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let is_bounded = !node.distinct && limit > 0 && limit <= rows_max / BOUNDED_SHARE;
        scan.open(run)?;
        while let Some(row) = scan.next_record(run)? {
            let start = self.keys.len();
            for (column, key) in columns.iter().zip(&node.keys) {
                let order = (key.collation, key.descending);
                scan_node.table.layout.append_sort_key(
                    row.record,
                    *column,
                    order,
                    &mut self.keys,
                )?;
            }
            if self.bound.as_deref().is_some_and(|bound| self.keys[start..] >= *bound) {
                self.keys.truncate(start);
                continue;
            }
            let place = Place {
                head: key_head(&self.keys[start..]),
                key_start: start as u32,
                key_end: self.keys.len() as u32,
                row: self.places.len() as u32,
            };
            self.places.push(place);
            self.records.push(&[], row.record);
            if self.places.len() == rows_max || self.bytes() > bytes_max {
                if is_bounded {
                    self.shrink(limit);
                    if self.bytes() <= bytes_max / 2 {
                        continue;
                    }
                }
                self.charge(run)?;
                return Ok(false);
            }
        }
        self.charge(run)?;
        Ok(true)
    }

    /// Keeps the first `limit` rows, in order; of later ones only those before the last of them count.
    fn shrink(&mut self, limit: usize) {
        self.sort(false);
        self.places.truncate(limit);
        let mut kept = SortedRows::default();
        for (row, place) in (0..).zip(&self.places) {
            let key = &self.keys[place.key_start as usize..place.key_end as usize];
            let start = kept.keys.len() as u32;
            kept.keys.extend_from_slice(key);
            kept.records.push(&[], self.records.row(place.row as usize).record);
            let key_end = kept.keys.len() as u32;
            kept.places.push(Place { head: place.head, key_start: start, key_end, row });
            if row as usize + 1 == limit {
                kept.bound = Some(key.to_vec());
            }
        }
        *self = kept;
    }

    fn bytes(&self) -> usize {
        self.records.size_bytes() + self.keys.len()
    }

    fn charge(&mut self, run: &mut Run<'_>) -> Result<()> {
        let bytes = self.bytes() + self.places.len() * size_of::<Place>();
        self.charged += bytes;
        run.memory.charge(bytes)
    }

    /// Sorts the rows; of those with equal keys only the first stays when `distinct`.
    pub(crate) fn sort(&mut self, distinct: bool) {
        let keys = &self.keys;
        let key = |place: &Place| &keys[place.key_start as usize..place.key_end as usize];
        self.places.sort_unstable_by(|a, b| {
            let by_key = || key(a).cmp(key(b)).then(a.row.cmp(&b.row));
            a.head.cmp(&b.head).then_with(by_key)
        });
        if distinct {
            self.places.dedup_by(|b, a| a.head == b.head && key(a) == key(b));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The records, in their current order.
    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| self.records.row(place.row as usize).record)
    }

    pub(crate) fn clear(&mut self, run: &mut Run<'_>) {
        run.memory.release(std::mem::take(&mut self.charged));
        if self.bytes() > KEPT_BYTES_MAX {
            *self = SortedRows::default();
        }
        self.records.clear();
        self.keys.clear();
        self.places.clear();
        self.bound = None;
    }
}
