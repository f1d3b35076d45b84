//! Sorted runs in files, merged by key; equal keys keep the order of the runs.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use errors::Result;
use types::Value;

use crate::run::Run;
use crate::spill::{Extent, RowReader, RowWriter};

/// Runs merged at once.
const FAN_IN: usize = 128;

/// Runs on their way to be merged.
pub(crate) struct SpilledRuns {
    writer: RowWriter,
    runs: Vec<Extent>,
}

impl SpilledRuns {
    pub(crate) fn create(run: &mut Run<'_>) -> Result<SpilledRuns> {
        Ok(SpilledRuns { writer: RowWriter::create(run.env.settings)?, runs: Vec::new() })
    }

    /// Appends a row of the current run; rows come in order.
    pub(crate) fn push<'v>(
        &mut self,
        key: &[u8],
        values: impl Iterator<Item = &'v Value>,
    ) -> Result<()> {
        self.writer.push(key, values)
    }

    /// The current run is complete.
    pub(crate) fn end_run(&mut self, run: &mut Run<'_>) -> Result<()> {
        self.runs.push(self.writer.end_sequence()?);
        run.counts.sort_merge_passes += 1;
        run.env.cancel.check()
    }

    /// All rows in order. Too many runs are merged to fewer first.
    pub(crate) fn merge(mut self, run: &mut Run<'_>) -> Result<Merge> {
        while self.runs.len() > FAN_IN {
            let mut fewer = SpilledRuns::create(run)?;
            for some in self.runs.chunks(FAN_IN) {
                let mut merge = Merge::new(&self.writer, some)?;
                while merge.next()? {
                    run.tick()?;
                    fewer.push(&merge.key, merge.values.iter())?;
                }
                fewer.end_run(run)?;
            }
            self = fewer;
        }
        Merge::new(&self.writer, &self.runs)
    }
}

/// The first row of a run that has not been returned yet.
struct Head {
    key: Vec<u8>,
    run: usize,
    values: Vec<Value>,
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        self.key.cmp(&other.key).then(self.run.cmp(&other.run))
    }
}

/// Delivers the rows of several runs in order.
pub(crate) struct Merge {
    readers: Vec<RowReader>,
    heads: BinaryHeap<Reverse<Head>>,
    key: Vec<u8>,
    /// The key before; empty at the first.
    before: Vec<u8>,
    /// The current row.
    pub(crate) values: Vec<Value>,
}

impl Merge {
    fn new(writer: &RowWriter, runs: &[Extent]) -> Result<Merge> {
        let mut merge = Merge {
            readers: runs.iter().map(|extent| writer.reader(*extent)).collect(),
            heads: BinaryHeap::with_capacity(runs.len()),
            key: Vec::new(),
            before: Vec::new(),
            values: Vec::new(),
        };
        for run in 0..runs.len() {
            merge.refill(Head { key: Vec::new(), run, values: Vec::new() })?;
        }
        Ok(merge)
    }

    /// Reads a run's next row, reusing the memory of another.
    fn refill(&mut self, mut head: Head) -> Result<()> {
        if self.readers[head.run].next(&mut head.key, &mut head.values)? {
            self.heads.push(Reverse(head));
        }
        Ok(())
    }

    /// Moves to the next row; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool> {
        let Some(Reverse(mut head)) = self.heads.pop() else { return Ok(false) };
        std::mem::swap(&mut self.before, &mut self.key);
        std::mem::swap(&mut self.key, &mut head.key);
        std::mem::swap(&mut self.values, &mut head.values);
        self.refill(head)?;
        Ok(true)
    }

    /// Whether the previous row had another key.
    pub(crate) fn is_new_key(&self) -> bool {
        self.before != self.key
    }
}
