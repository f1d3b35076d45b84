//! The steps that an ALTER TABLE takes, for EXPLAIN.

use catalog::Table;
use engine_api::{IndexDef, TableStats};

use super::{Algorithm, Altered, Choice, IndexChanges, builds_online};

/// Rows that are copied, and index entries that are built, in a second: what a machine of two processors does beside other work.
const COPIED_A_SECOND: f64 = 120_000.0;
const BUILT_A_SECOND: f64 = 600_000.0;
/// Bytes that a second writes at most.
const BYTES_A_SECOND: f64 = 100e6;
/// Bytes of an index entry besides its columns, and of a column whose values have no fixed length.
const ENTRY_BYTES: u64 = 16;
const TEXT_BYTES_MAX: u64 = 24;

/// Whom a step keeps waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Nobody.
    Nobody,
    /// Other changes of the definition.
    Definitions,
    /// Statements on the table for a moment.
    Moment,
    /// Statements on the table.
    All,
}

impl Blocks {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Blocks::Nobody => "nothing",
            Blocks::Definitions => "other changes of the definition",
            Blocks::Moment => "reads and writes, for a moment",
            Blocks::All => "reads and writes",
        }
    }

    /// Whether statements on the table go on.
    pub fn is_online(self) -> bool {
        match self {
            Blocks::Nobody | Blocks::Definitions => true,
            Blocks::Moment | Blocks::All => false,
        }
    }
}

/// A step.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub action: String,
    /// Whom it keeps waiting.
    pub blocks: Blocks,
    /// How long it takes, about.
    pub seconds: f64,
    /// Bytes that it writes, about.
    pub bytes: u64,
}

impl Step {
    fn short(action: impl Into<String>, blocks: Blocks) -> Step {
        Step { action: action.into(), blocks, seconds: 0.0, bytes: 0 }
    }

    fn long(action: String, blocks: Blocks, rows: f64, bytes: u64) -> Step {
        let seconds = rows + bytes as f64 / BYTES_A_SECOND;
        Step { action, blocks, seconds, bytes }
    }
}

/// The ALGORITHM that a choice is.
pub fn algorithm_name(choice: &Choice) -> &'static str {
    match &choice.algorithm {
        Algorithm::Copy => "COPY",
        Algorithm::InPlace(changes) if *changes == IndexChanges::default() => "INSTANT",
        Algorithm::InPlace(_) => "INPLACE",
    }
}

/// The steps of an ALTER TABLE, in order. `gone`: the number of partitions whose rows are deleted.
pub fn steps(
    table: &Table,
    altered: &Altered,
    choice: &Choice,
    stats: &TableStats,
    gone: usize,
) -> Vec<Step> {
    let mut steps = vec![Step::short(WAIT, Blocks::Nobody)];
    let new = &altered.table;
    let leaves = new.partitioning.as_ref().map_or(0, |partitioning| partitioning.leaves());
    let none = TableStats::default();
    // DISCARD TABLESPACE copies no row.
    let is_empty = new.is_discarded() && new.discarded_partitions().len() == leaves;
    let stats = if is_empty { &none } else { stats };
    match &choice.algorithm {
        Algorithm::Copy => copy_steps(altered, choice, stats, &mut steps),
        Algorithm::InPlace(changes) => {
            if gone > 0 {
                let rows = stats.rows as f64 / 2.0 / COPIED_A_SECOND;
                let action = format!("delete the rows of {gone} partitions");
                steps.push(Step::long(action, Blocks::All, rows, 0));
            }
            let online = builds_online(table, &altered.table, changes);
            build_steps(altered, changes, stats, online, &mut steps);
            let names = |index: &&IndexDef| changes.dropped.contains(&index.id);
            for index in table.definition.indexes.iter().filter(names) {
                steps.push(Step::short(format!("drop index {}", index.name), Blocks::Moment));
            }
            steps.push(Step::short("change the definition", Blocks::Moment));
        }
    }
    steps
}

const WAIT: &str = "wait for transactions that use the table";

/// Indexes are built one after another from one reading of the rows each.
fn build_steps(
    altered: &Altered,
    changes: &IndexChanges,
    stats: &TableStats,
    online: bool,
    steps: &mut Vec<Step>,
) {
    let is_added = |index: &&IndexDef| changes.added.contains(&index.id);
    let added: Vec<&IndexDef> = altered.table.definition.indexes.iter().filter(is_added).collect();
    if added.is_empty() {
        return;
    }
    if online {
        steps.push(Step::short("begin to note changed entries", Blocks::Moment));
    }
    let blocks = if online { Blocks::Definitions } else { Blocks::All };
    for index in added {
        let bytes = stats.rows * entry_bytes(&altered.table, index);
        let action = format!("build index {} over {} rows", index.name, stats.rows);
        steps.push(Step::long(action, blocks, stats.rows as f64 / BUILT_A_SECOND, bytes));
    }
    if online {
        steps.push(Step::short(WAIT, Blocks::Nobody));
        steps.push(Step::short("add the last changed entries", Blocks::Moment));
    }
}

fn copy_steps(altered: &Altered, choice: &Choice, stats: &TableStats, steps: &mut Vec<Step>) {
    let indexes = &altered.table.definition.indexes;
    let entries: u64 = indexes
        .iter()
        .filter(|index| index.id != engine_api::IndexId::CLUSTERED)
        .map(|index| stats.rows * entry_bytes(&altered.table, index))
        .sum();
    let seconds = stats.rows as f64 / COPIED_A_SECOND;
    let bytes = stats.data_bytes + entries;
    let action = format!("copy {} rows into a new table", stats.rows);
    if !choice.copies_online {
        steps.push(Step::long(action, Blocks::All, seconds, bytes));
        steps.push(Step::short("replace the table", Blocks::Moment));
        return;
    }
    steps.push(Step::short("begin to note changed rows", Blocks::Moment));
    steps.push(Step::long(action, Blocks::Definitions, seconds, bytes));
    steps.push(Step::short("copy rows again that others have changed", Blocks::Definitions));
    steps.push(Step::short(WAIT, Blocks::Nobody));
    steps.push(Step::short("copy the last changed rows, and replace the table", Blocks::Moment));
}

/// Bytes of an entry of an index, about.
fn entry_bytes(table: &Table, index: &IndexDef) -> u64 {
    let columns = &table.definition.columns;
    let width = |part: &engine_api::KeyPart| {
        let ty = &columns[part.column].ty;
        let fixed = types::record::fixed_length(ty).map(u64::from);
        fixed.unwrap_or_else(|| u64::from(ty.length).min(TEXT_BYTES_MAX))
    };
    index.parts.iter().map(width).sum::<u64>() + ENTRY_BYTES
}
