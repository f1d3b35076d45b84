//! What statements cost: the record that observers get, and sums of such records.

use crate::session::SocketView;

/// The amounts that a statement always counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementCounts {
    /// Rows that were read.
    pub rows_examined: u64,
    /// Bytes of its answer.
    pub bytes_sent: u64,
    /// Internal temporary tables.
    pub temporary_tables: u64,
    /// Those that did not fit in memory.
    pub temporary_disk_tables: u64,
    /// Joins that read a whole inner table for each outer row.
    pub full_joins: u64,
    /// Joins that read ranges of the inner table.
    pub full_range_joins: u64,
    /// First tables of which ranges were read.
    pub ranges: u64,
    /// First tables that were read whole.
    pub scans: u64,
    /// Sorts that merged runs from files.
    pub sort_merge_passes: u64,
    /// Sorts of ranges.
    pub sort_ranges: u64,
    /// Rows that were sorted.
    pub sort_rows: u64,
    /// Sorts of whole tables.
    pub sort_scans: u64,
}

impl StatementCounts {
    /// Whether a whole table was read.
    pub fn used_no_index(&self) -> bool {
        self.scans + self.full_joins > 0
    }

    /// Adds another statement's counts.
    pub fn add(&mut self, other: &StatementCounts) {
        self.rows_examined += other.rows_examined;
        self.bytes_sent += other.bytes_sent;
        self.temporary_tables += other.temporary_tables;
        self.temporary_disk_tables += other.temporary_disk_tables;
        self.full_joins += other.full_joins;
        self.full_range_joins += other.full_range_joins;
        self.ranges += other.ranges;
        self.scans += other.scans;
        self.sort_merge_passes += other.sort_merge_passes;
        self.sort_ranges += other.sort_ranges;
        self.sort_rows += other.sort_rows;
        self.sort_scans += other.sort_scans;
    }
}

/// A step of a statement: what it used between two changes of its phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatementStep {
    /// Its name, one of the reference's stages.
    pub name: &'static str,
    /// Nanoseconds that it took.
    pub nanos: u64,
    /// Microseconds on a processor in the program.
    pub user_micros: u64,
    /// Microseconds on a processor in the kernel.
    pub system_micros: u64,
    /// Times that the thread waited.
    pub voluntary_switches: u64,
    /// Times that another thread took its processor.
    pub involuntary_switches: u64,
    /// Blocks read by the file system.
    pub block_reads: u64,
    /// Blocks written by it.
    pub block_writes: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
    /// Work done in it and expected of it, in rows or pages; 0: not counted.
    pub work_done: u64,
    /// See `work_done`.
    pub work_expected: u64,
}

impl StatementStep {
    /// Adds another step's amounts.
    pub fn add(&mut self, other: &StatementStep) {
        self.nanos += other.nanos;
        self.user_micros += other.user_micros;
        self.system_micros += other.system_micros;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
        self.block_reads += other.block_reads;
        self.block_writes += other.block_writes;
        self.major_faults += other.major_faults;
        self.minor_faults += other.minor_faults;
        self.work_done += other.work_done;
        self.work_expected += other.work_expected;
    }
}

macro_rules! costs {
    ($($(#[$doc:meta])* $field:ident $name:literal,)*) => {
        /// What a statement cost, helper threads included; or the sum of several.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct StatementCost {
            $($(#[$doc])* pub $field: u64,)*
            /// Events that are not counted everywhere.
            pub events: CostEvents,
        }

        impl StatementCost {
            /// Adds another statement's cost.
            pub fn add(&mut self, other: &StatementCost) {
                $(self.$field = self.$field.saturating_add(other.$field);)*
                self.events.add(&other.events);
            }

            /// Names of the amounts, as columns of tables have them.
            pub const NAMES: &'static [&'static str] = &[$($name,)*];

            /// The amounts in the order of their names.
            pub fn amounts(&self) -> Vec<u64> {
                vec![$(self.$field,)*]
            }
        }
    };
}

costs! {
    /// Nanoseconds on a processor.
    cpu_nanos "CPU_NANOSECONDS",
    /// Microseconds of these in the program.
    user_micros "USER_MICROSECONDS",
    /// Microseconds of these in the kernel.
    system_micros "SYSTEM_MICROSECONDS",
    /// Nanoseconds before it was planned.
    parse_nanos "PARSE_NANOSECONDS",
    /// Nanoseconds of planning.
    plan_nanos "PLAN_NANOSECONDS",
    /// Nanoseconds of execution.
    execute_nanos "EXECUTE_NANOSECONDS",
    /// Nanoseconds of its commit. What the reply then waits for the log is not in it: no thread waits with it.
    commit_nanos "COMMIT_NANOSECONDS",
    /// Nanoseconds of waiting for row locks.
    row_lock_nanos "ROW_LOCK_NANOSECONDS",
    /// Nanoseconds of waiting for locks on tables and definitions.
    table_lock_nanos "TABLE_LOCK_NANOSECONDS",
    /// Page faults that needed no I/O.
    minor_faults "MINOR_PAGE_FAULTS",
    /// Page faults that did.
    major_faults "MAJOR_PAGE_FAULTS",
    /// Times that a thread waited.
    voluntary_switches "VOLUNTARY_CONTEXT_SWITCHES",
    /// Times that another thread took the processor.
    involuntary_switches "INVOLUNTARY_CONTEXT_SWITCHES",
    /// Blocks that the file system read.
    block_reads "BLOCK_INPUT_OPERATIONS",
    /// Blocks that the file system wrote.
    block_writes "BLOCK_OUTPUT_OPERATIONS",
    /// Pages that were asked for, repeats included.
    pages "PAGES",
    /// Those that had to be read.
    pages_missed "PAGES_MISSED",
    /// Bytes of log records.
    log_bytes "LOG_BYTES",
    /// Reads from files.
    reads "READS",
    /// Their bytes.
    read_bytes "READ_BYTES",
    /// Their nanoseconds.
    read_nanos "READ_NANOSECONDS",
    /// Writes to files and syncs.
    writes "WRITES",
    /// Their bytes.
    written_bytes "WRITTEN_BYTES",
    /// Their nanoseconds.
    write_nanos "WRITE_NANOSECONDS",
    /// Temporary files that were made.
    temporary_files "TEMPORARY_FILES",
    /// Bytes that were written to them.
    temporary_bytes "TEMPORARY_BYTES",
}

impl StatementCost {
    /// Nanoseconds of waiting for locks.
    pub fn lock_nanos(&self) -> u64 {
        self.row_lock_nanos.saturating_add(self.table_lock_nanos)
    }
}

/// Events that the machine may refuse to count: `None` then, not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CostEvents {
    /// Moves to another processor.
    pub migrations: Option<u64>,
    /// Cycles.
    pub cycles: Option<u64>,
    /// Instructions.
    pub instructions: Option<u64>,
    /// Misses of the last cache.
    pub cache_misses: Option<u64>,
}

impl CostEvents {
    /// Their names, as columns of tables have them.
    pub const NAMES: [&'static str; 4] =
        ["CPU_MIGRATIONS", "CYCLES", "INSTRUCTIONS", "CACHE_MISSES"];

    /// The events in the order of their names.
    pub fn amounts(&self) -> [Option<u64>; 4] {
        [self.migrations, self.cycles, self.instructions, self.cache_misses]
    }

    fn add(&mut self, other: &CostEvents) {
        let sum = |one: Option<u64>, two: Option<u64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.saturating_add(two)),
            (one, two) => one.or(two),
        };
        *self = CostEvents {
            migrations: sum(self.migrations, other.migrations),
            cycles: sum(self.cycles, other.cycles),
            instructions: sum(self.instructions, other.instructions),
            cache_misses: sum(self.cache_misses, other.cache_misses),
        };
    }
}

/// What a session has counted since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Its number.
    pub id: u64,
    /// When it began, microseconds since 1970 UTC.
    pub opened_micros: i64,
    /// Bytes that came from its client.
    pub received: u64,
    /// Bytes that went to its client.
    pub sent: u64,
    /// The socket to its client, where it has one.
    pub socket: Option<SocketView>,
    /// Its status counters by name.
    pub counters: Vec<(&'static str, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_every_amount_and_keep_unknown_events_unknown() {
        let one = StatementCost {
            cpu_nanos: 5,
            temporary_bytes: 7,
            events: CostEvents { cycles: Some(3), ..CostEvents::default() },
            ..StatementCost::default()
        };
        let mut sum = StatementCost::default();
        sum.add(&one);
        sum.add(&one);
        let amounts = sum.amounts();
        assert_eq!(amounts.len(), StatementCost::NAMES.len());
        assert_eq!((amounts[0], amounts.last()), (10, Some(&14)));
        assert_eq!(sum.events.amounts(), [None, Some(6), None, None]);
    }
}
