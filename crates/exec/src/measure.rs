//! The counters of a run: row operations for status variables, and rows, time and waits of each operator for EXPLAIN ANALYZE and PROFILE.
//! Both live in the run and are handed to the session at its end; nothing here is shared.

use std::time::Duration;

use plan::Physical;
use sys::clock::RealClock;
use sys::waits::{self, Totals};

/// Work of a session since it last took the counts, as status variables show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct ExecCounts {
    /// Rows that were read to find the result: what the other counters say of reads also counts how often a scan began or met its end.
    pub examined: u64,
    pub read_first: u64,
    pub read_key: u64,
    pub read_last: u64,
    pub read_next: u64,
    pub read_prev: u64,
    pub read_rnd_next: u64,
    pub write: u64,
    pub update: u64,
    pub delete: u64,
    pub sort_range: u64,
    pub sort_rows: u64,
    pub sort_scan: u64,
    pub temporary_tables: u64,
    /// `Sort_merge_passes`: sorted runs written to files.
    pub sort_merge_passes: u64,
    /// `Created_tmp_disk_tables`: hash tables that moved to files.
    pub disk_tables: u64,
    /// Groupings that the batch program did.
    pub batch_groupings: u64,
}

impl ExecCounts {
    /// Adds the counts of a run.
    pub(crate) fn add(&mut self, other: &ExecCounts) {
        self.examined += other.examined;
        self.read_first += other.read_first;
        self.read_key += other.read_key;
        self.read_last += other.read_last;
        self.read_next += other.read_next;
        self.read_prev += other.read_prev;
        self.read_rnd_next += other.read_rnd_next;
        self.write += other.write;
        self.update += other.update;
        self.delete += other.delete;
        self.sort_range += other.sort_range;
        self.sort_rows += other.sort_rows;
        self.sort_scan += other.sort_scan;
        self.temporary_tables += other.temporary_tables;
        self.sort_merge_passes += other.sort_merge_passes;
        self.disk_tables += other.disk_tables;
        self.batch_groupings += other.batch_groupings;
    }
}

/// The measurements of one operator of a measured plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measure {
    /// How often it was opened.
    pub loops: u64,
    /// Rows that it gave.
    pub rows: u64,
    /// Rows that a scan read before its filter.
    pub examined: u64,
    /// Time until the first row, of all loops; opening included.
    pub first: Duration,
    /// Time until the end, of all loops.
    pub last: Duration,
    /// What its thread waited for while this operator ran itself, not one that it called.
    pub waits: Totals,
    /// The place of the operator that called it first: its reader, or the one whose expression needs its subquery.
    pub caller: Option<usize>,
}

/// The plan that is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Measuring {
    /// Each operator does its own work, as the plan says: EXPLAIN ANALYZE.
    #[default]
    OneByOne,
    /// Operators do the work of others where they would without being measured (a batch program, a sort that removes duplicates): PROFILE.
    AsRun,
}

/// Which measure belongs to which operator of the plan that was compiled, by the operator's address: the plan must stay where it is.
#[derive(Debug, Default)]
pub struct MeasuredNodes {
    addresses: Vec<usize>,
    pub(crate) measuring: Measuring,
}

impl MeasuredNodes {
    pub(crate) fn new(measuring: Measuring) -> MeasuredNodes {
        MeasuredNodes { addresses: Vec::new(), measuring }
    }

    pub(crate) fn add(&mut self, node: &Physical) -> usize {
        self.addresses.push(std::ptr::from_ref(node).addr());
        self.addresses.len() - 1
    }

    /// The place of an operator's measure.
    pub fn place(&self, node: &Physical) -> Option<usize> {
        let address = std::ptr::from_ref(node).addr();
        self.addresses.iter().position(|known| *known == address)
    }

    pub(crate) fn len(&self) -> usize {
        self.addresses.len()
    }
}

/// Measures of a run, with their clock.
pub(crate) struct Measures {
    pub(crate) clock: RealClock,
    pub(crate) list: Vec<Measure>,
    /// The operator that runs.
    current: Option<usize>,
    /// The thread's waits that belong to operators already, and how many they are.
    seen: Totals,
    seen_count: u64,
}

impl Measures {
    pub(crate) fn new(count: usize) -> Measures {
        let seen = waits::mine();
        Measures {
            clock: RealClock::new(),
            list: vec![Measure::default(); count],
            current: None,
            seen,
            seen_count: seen.count(),
        }
    }

    /// Another operator runs, or none. Returns the one that ran until now.
    pub(crate) fn enter(&mut self, place: Option<usize>) -> Option<usize> {
        debug_assert!(place.is_none_or(|place| place < self.list.len()), "a measured operator");
        let count = waits::mine_ended();
        if count != self.seen_count {
            let now = waits::mine();
            if let Some(measure) = self.current.and_then(|current| self.list.get_mut(current)) {
                measure.waits.add(&now.since(&self.seen));
            }
            (self.seen, self.seen_count) = (now, count);
        }
        std::mem::replace(&mut self.current, place)
    }
}
