//! Sorting by key bytes, stable, with a bounded number of rows when only the first are wanted.

use std::cmp::Ordering;

use errors::Result;
use rows::value_key::append_sort_key;

use super::merge::{Merge, SpilledRuns};
use super::scan::{Scan, ScanNode, TableNode};
use super::simple::{Seen, row_count};
use crate::buffers::SortedRows;
use crate::expr::Code;
use crate::kept_rows::Rows;
use crate::operator::{Operator, Source};
use crate::run::Run;

/// A sort key.
pub(crate) struct KeyCode {
    pub(crate) code: Code,
    pub(crate) collation: types::CollationId,
    pub(crate) descending: bool,
}

/// A sort in a program.
pub(crate) struct SortNode {
    pub(crate) input: SortInput,
    /// Its rows come from ranges of an index.
    pub(crate) reads_ranges: bool,
    pub(crate) keys: Vec<KeyCode>,
    pub(crate) limit: Option<Code>,
    pub(crate) columns: Vec<usize>,
    /// Only the first of rows with equal keys counts.
    pub(crate) distinct: bool,
}

/// The input of a sort.
pub(crate) enum SortInput {
    /// A plain scan, whose records may be sorted undecoded.
    Scan(Box<ScanNode>),
    Rows(Box<dyn Source>),
}

impl Source for SortInput {
    fn build<'r>(&'r self) -> Box<dyn Operator<'r> + 'r> {
        match self {
            SortInput::Scan(scan) => Box::new(Scan::new(scan)),
            SortInput::Rows(rows) => rows.build(),
        }
    }
}

impl SortNode {
    /// Counts a sort that returns `rows` rows from memory.
    pub(crate) fn count_sorted(&self, rows: usize, run: &mut Run<'_>) {
        match self.reads_ranges {
            true => run.counts.sort_range += 1,
            false => run.counts.sort_scan += 1,
        }
        run.counts.sort_rows += rows as u64;
    }
}

/// Appends the key of the current row.
pub(crate) fn append_keys(keys: &[KeyCode], run: &mut Run<'_>, out: &mut Vec<u8>) -> Result<()> {
    for key in keys {
        match key.code.leaf(run) {
            Some(value) => append_sort_key(value, key.collation, key.descending, out),
            None => {
                let value = key.code.eval(run)?;
                append_sort_key(&value, key.collation, key.descending, out);
            }
        }
    }
    Ok(())
}

/// Rows with sort keys, side by side.
pub(crate) struct Sorter {
    pub(crate) rows: Rows,
    width: usize,
    key_bytes: Vec<u8>,
    /// For each row: end of its key.
    key_ends: Vec<usize>,
    charged: usize,
}

impl Sorter {
    pub(crate) fn new(width: usize) -> Sorter {
        Sorter {
            rows: Rows::new(width),
            width,
            key_bytes: Vec::new(),
            key_ends: Vec::new(),
            charged: 0,
        }
    }

    /// Builds the current row's key; `finish_row` keeps it after the row was pushed.
    pub(crate) fn push_key(&mut self, keys: &[KeyCode], run: &mut Run<'_>) -> Result<()> {
        let start = self.key_bytes.len();
        append_keys(keys, run, &mut self.key_bytes)?;
        self.key_ends.push(self.key_bytes.len());
        let bytes = self.key_bytes.len() - start + size_of::<usize>();
        self.charged += bytes;
        run.memory.charge(bytes)
    }

    /// As `push_key`, unless the key is not below `bound`: false then, and nothing is kept. Keys are computed only until one decides.
    fn push_key_below(
        &mut self,
        keys: &[KeyCode],
        bound: &[u8],
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let start = self.key_bytes.len();
        let mut rest = keys;
        loop {
            let Some((key, others)) = rest.split_first() else {
                self.key_bytes.truncate(start);
                return Ok(false);
            };
            append_keys(std::slice::from_ref(key), run, &mut self.key_bytes)?;
            rest = others;
            let own = &self.key_bytes[start..];
            match own.cmp(&bound[..own.len().min(bound.len())]) {
                Ordering::Less => break,
                Ordering::Equal => {}
                Ordering::Greater => {
                    self.key_bytes.truncate(start);
                    return Ok(false);
                }
            }
        }
        append_keys(rest, run, &mut self.key_bytes)?;
        self.key_ends.push(self.key_bytes.len());
        let bytes = self.key_bytes.len() - start + size_of::<usize>();
        self.charged += bytes;
        run.memory.charge(bytes)?;
        Ok(true)
    }

    fn key(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.key_ends[row - 1] };
        &self.key_bytes[start..self.key_ends[row]]
    }

    fn last_key(&self) -> &[u8] {
        self.key(self.key_ends.len() - 1)
    }

    /// Rows in order, the later first among equal ones.
    pub(crate) fn order_late_first(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).rev().collect();
        order.sort_by(|a, b| self.key(*a as usize).cmp(self.key(*b as usize)));
        order
    }

    /// The first of the rows with each key, in order.
    fn distinct_order(&self) -> Vec<u32> {
        let mut order = self.order();
        order.dedup_by(|later, earlier| self.key(*later as usize) == self.key(*earlier as usize));
        order
    }

    /// Removes the key that was built last.
    fn forget_key(&mut self, run: &mut Run<'_>) {
        self.key_ends.pop();
        let start = self.key_ends.last().copied().unwrap_or(0);
        let bytes = self.key_bytes.len() - start + size_of::<usize>();
        self.key_bytes.truncate(start);
        self.charged -= bytes;
        run.memory.release(bytes);
    }

    /// Rows in order.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.rows.len() as u32).collect();
        // Eight bytes of each key at hand decide most comparisons without reading the keys.
        let heads: Vec<u64> = (0..self.rows.len()).map(|row| key_head(self.key(row))).collect();
        order.sort_by(|a, b| {
            let (a, b) = (*a as usize, *b as usize);
            heads[a].cmp(&heads[b]).then_with(|| self.key(a).cmp(self.key(b)))
        });
        order
    }

    /// Bytes held.
    fn bytes(&self) -> usize {
        self.rows.bytes() + self.charged
    }

    /// Writes the rows in their order as a sorted run.
    fn spill(&mut self, order: Vec<u32>, runs: &mut SpilledRuns, run: &mut Run<'_>) -> Result<()> {
        for row in order {
            let row = row as usize;
            runs.push(self.key(row), self.rows.row(row).iter())?;
        }
        self.clear(run);
        runs.end_run(run)
    }

    /// Keeps only the first `limit` rows of an order.
    fn shrink(&mut self, order: Vec<u32>, limit: usize, run: &mut Run<'_>) -> Result<()> {
        let mut kept = Sorter::new(self.width);
        for row in order.into_iter().take(limit) {
            let row = row as usize;
            kept.key_bytes.extend_from_slice(self.key(row));
            kept.key_ends.push(kept.key_bytes.len());
            kept.rows.push_values(self.rows.row(row).iter().cloned(), run)?;
        }
        kept.charged = kept.key_bytes.len() + kept.key_ends.len() * size_of::<usize>();
        run.memory.charge(kept.charged)?;
        self.clear(run);
        *self = kept;
        Ok(())
    }

    pub(crate) fn clear(&mut self, run: &mut Run<'_>) {
        self.rows.clear(run);
        run.memory.release(self.charged);
        self.charged = 0;
        self.key_bytes.clear();
        self.key_ends.clear();
    }
}

/// The first bytes of a key as a number that orders like them.
pub(crate) fn key_head(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let length = key.len().min(8);
    head[..length].copy_from_slice(&key[..length]);
    u64::from_be_bytes(head)
}

/// A bounded sort discards unwanted rows each time this many rows more than wanted have arrived.
const SLACK_ROWS: usize = 4096;

/// A distinct sort looks up keys before it keeps their rows once this many rows have arrived.
const LOOK_UP_ROWS: usize = 1024;

/// A running sort.
pub(crate) struct Sort<'r> {
    node: &'r SortNode,
    input: Box<dyn Operator<'r> + 'r>,
    sorter: Sorter,
    /// The keys that have arrived in a distinct sort of many rows, as far as they fit memory.
    seen: Option<Seen>,
    /// The key after which no row is wanted; later rows with the same key are not wanted either.
    bound: Option<Vec<u8>>,
    /// The rows that did not fit memory, while more arrive.
    runs: Option<SpilledRuns>,
    order: Vec<u32>,
    at: usize,
    /// The rows that did not fit memory, and how many of them are still wanted.
    merge: Option<(Merge, usize)>,
}

impl<'r> Sort<'r> {
    pub(crate) fn new(node: &'r SortNode) -> Sort<'r> {
        Sort::with_input(node, node.input.build())
    }

    fn with_input(node: &'r SortNode, input: Box<dyn Operator<'r> + 'r>) -> Sort<'r> {
        Sort {
            node,
            input,
            sorter: Sorter::new(node.columns.len()),
            seen: None,
            bound: None,
            runs: None,
            order: Vec::new(),
            at: 0,
            merge: None,
        }
    }

    /// Continues with a scan of which some rows are kept already. The scan is the node's input, and open.
    pub(crate) fn resume(
        node: &'r SortNode,
        (scan, scan_node): (Scan<'r>, &'r ScanNode),
        kept: &SortedRows,
        run: &mut Run<'r>,
    ) -> Result<Sort<'r>> {
        let mut sort = Sort::with_input(node, Box::new(scan));
        let outcome = sort.take_kept(&scan_node.table, kept, run);
        match outcome {
            Ok(()) => Ok(sort),
            Err(error) => {
                sort.close(run);
                Err(error)
            }
        }
    }

    fn take_kept(&mut self, table: &TableNode, kept: &SortedRows, run: &mut Run<'r>) -> Result<()> {
        let limit = self.limit(run)?;
        for record in kept.records() {
            table.load(&table.first, record, run)?;
            table.load(&table.rest, record, run)?;
            self.take_row(limit, run)?;
        }
        self.take_input(limit, run)
    }

    fn limit(&self, run: &mut Run<'r>) -> Result<usize> {
        let limit = row_count(self.node.limit.as_ref(), u64::MAX, run)?;
        Ok(usize::try_from(limit).unwrap_or(usize::MAX))
    }

    /// Reads the rest of the open input and sorts all rows.
    fn take_input(&mut self, limit: usize, run: &mut Run<'r>) -> Result<()> {
        while self.input.next(run)? {
            run.tick()?;
            self.take_row(limit, run)?;
        }
        self.input.close(run);
        if let Some(mut runs) = self.runs.take() {
            let order = self.order();
            self.sorter.spill(order, &mut runs, run)?;
            self.merge = Some((runs.merge(run)?, limit));
        }
        self.order = self.order();
        self.order.truncate(limit);
        self.node.count_sorted(self.order.len(), run);
        Ok(())
    }

    /// Keeps the current row, of which only the first `limit` are wanted.
    fn take_row(&mut self, limit: usize, run: &mut Run<'r>) -> Result<()> {
        match &self.bound {
            Some(bound) if !self.sorter.push_key_below(&self.node.keys, bound, run)? => {
                return Ok(());
            }
            Some(_) => {}
            None => self.sorter.push_key(&self.node.keys, run)?,
        }
        if !self.is_new(run)? {
            self.sorter.forget_key(run);
            return Ok(());
        }
        self.sorter.rows.push_registers(&self.node.columns, run)?;
        if self.node.distinct && self.seen.is_none() && self.sorter.rows.len() == LOOK_UP_ROWS {
            self.begin_to_look_up(run)?;
        }
        if self.sorter.rows.len() >= limit.saturating_mul(2).saturating_add(SLACK_ROWS) {
            self.sorter.shrink(self.order(), limit, run)?;
            if let Some(last) = limit.checked_sub(1).filter(|last| *last < self.sorter.rows.len()) {
                self.bound = Some(self.sorter.key(last).to_vec());
            }
        }
        if self.sorter.bytes() > run.operator_bytes() {
            let order = self.order();
            let runs = match &mut self.runs {
                Some(runs) => runs,
                None => self.runs.insert(SpilledRuns::create(run)?),
            };
            self.sorter.spill(order, runs, run)?;
        }
        Ok(())
    }

    /// The rows that count, in order.
    fn order(&self) -> Vec<u32> {
        if self.node.distinct { self.sorter.distinct_order() } else { self.sorter.order() }
    }

    /// Whether the last key may be a new one.
    fn is_new(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let Some(seen) = &mut self.seen else { return Ok(true) };
        let is_new = seen.insert_key(self.sorter.last_key(), &mut run.memory)?;
        if seen.bytes() > run.operator_bytes() {
            // Later duplicates are found by sorting.
            seen.clear(run);
        }
        Ok(is_new)
    }

    /// Keeps one row of each key, and notes the keys.
    fn begin_to_look_up(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.sorter.shrink(self.order(), usize::MAX, run)?;
        let mut seen = Seen::default();
        for row in 0..self.sorter.rows.len() {
            seen.insert_key(self.sorter.key(row), &mut run.memory)?;
        }
        self.seen = Some(seen);
        Ok(())
    }

    fn forget(&mut self, run: &mut Run<'r>) {
        self.sorter.clear(run);
        if let Some(mut seen) = self.seen.take() {
            seen.clear(run);
        }
        self.order.clear();
        self.at = 0;
        (self.runs, self.merge, self.bound) = (None, None, None);
    }

    /// Moves to the next row of the merged runs that is wanted; false at the end.
    fn next_merged(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let Some((merge, left)) = &mut self.merge else { return Ok(false) };
        loop {
            if *left == 0 || !merge.next()? {
                return Ok(false);
            }
            if !self.node.distinct || merge.is_new_key() {
                *left -= 1;
                for (register, value) in self.node.columns.iter().zip(merge.values.drain(..)) {
                    run.regs[*register] = value;
                }
                return Ok(true);
            }
            run.tick()?;
        }
    }
}

impl<'r> Operator<'r> for Sort<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.forget(run);
        let limit = self.limit(run)?;
        self.input.open(run)?;
        self.take_input(limit, run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if self.merge.is_some() {
            return self.next_merged(run);
        }
        let Some(row) = self.order.get(self.at) else { return Ok(false) };
        self.at += 1;
        self.sorter.rows.release(*row as usize, &self.node.columns, run);
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.forget(run);
        self.input.close(run);
    }
}
