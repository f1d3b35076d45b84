//! Reading a stored table: batches of records, of which only the needed columns are decoded.

use std::rc::Rc;
use std::sync::Arc;

use engine_api::{
    CursorId, Direction, EngineIndex, GetOutcome, IndexId, KeyBound, KeyRange, LOOKUPS_MAX, RowBuf,
    RowLock, RowRef, ScanSpec, TableId, WaitPolicy,
};
use errors::Result;
use hashbrown::HashSet;
use plan::KeyWalk;
use rows::layout::Layout;
use types::{SqlBytes, Value};

use super::keys::{KeySource, Ranges, evaluate_keys, key_range};
use crate::buffers::ScanBuffers;
use crate::expr::Truth;
use crate::fulltext::{Found, SearchCode};
use crate::measure::ExecCounts;
use crate::operator::Operator;
use crate::run::Run;

/// A stored table in a program.
pub(crate) struct TableNode {
    pub(crate) table: TableId,
    pub(crate) engine: EngineIndex,
    pub(crate) layout: Layout,
    /// The index's entries hold all columns.
    pub(crate) wants_keys: bool,
    /// Columns that the filter reads: index in the record, register.
    pub(crate) first: Vec<(usize, usize)>,
    /// The other needed columns.
    pub(crate) rest: Vec<(usize, usize)>,
    pub(crate) locator: Option<usize>,
    pub(crate) lock: RowLock,
    pub(crate) wait: WaitPolicy,
}

/// How rows are found.
pub(crate) enum AccessNode {
    Unique {
        index: IndexId,
        key: Vec<KeySource>,
    },
    Ranges {
        index: IndexId,
        ranges: Ranges,
        backward: bool,
        or_all: bool,
    },
    /// Whole keys of a unique index.
    Keys {
        index: IndexId,
        keys: Vec<Vec<KeySource>>,
        backward: bool,
        or_all: bool,
    },
    Merge {
        arms: Vec<ArmNode>,
        or_all: bool,
    },
    Fulltext {
        search: Arc<SearchCode>,
    },
    Full {
        index: IndexId,
        backward: bool,
    },
    Walk(Arc<KeyWalk>),
}

/// One of the indexes of a merge.
pub(crate) struct ArmNode {
    pub(crate) index: IndexId,
    pub(crate) ranges: Ranges,
    /// The alternative that it answers.
    pub(crate) condition: Truth,
}

/// A scan in a program.
pub(crate) struct ScanNode {
    pub(crate) table: TableNode,
    pub(crate) access: AccessNode,
    pub(crate) filter: Option<Truth>,
    /// The place of its measure.
    pub(crate) measured: Option<usize>,
    /// The reader of this scan reads all of it.
    pub(crate) is_drained: bool,
    /// Unless the statement ends early, all rows are read: by this scan's reader, or by those above it.
    pub(crate) all_read: bool,
    /// One row of each group is enough: the key of a row's group.
    pub(crate) firsts: Option<Vec<KeySource>>,
}

impl ScanNode {
    /// Counts a cursor that is opened.
    fn count_open(&self, counts: &mut ExecCounts) {
        counts.read_key += 1;
        match &self.access {
            AccessNode::Full { backward: false, .. } => counts.read_first += 1,
            AccessNode::Full { backward: true, .. } => counts.read_last += 1,
            AccessNode::Walk(walk) if walk.lower.is_none() && walk.upper.is_none() => {
                match walk.backward {
                    false => counts.read_first += 1,
                    true => counts.read_last += 1,
                }
            }
            AccessNode::Unique { .. }
            | AccessNode::Ranges { .. }
            | AccessNode::Keys { .. }
            | AccessNode::Merge { .. }
            | AccessNode::Walk(_)
            | AccessNode::Fulltext { .. } => {}
        }
    }

    /// Counts rows that the engine returned; none for the end.
    fn count_fetched(&self, rows: u64, run: &mut Run<'_>) {
        let counts = &mut run.counts;
        counts.examined += rows;
        if let Some(work) = &run.tables {
            work.fetched(self.table.table, self.used_index(), rows);
        }
        match &self.access {
            AccessNode::Full { backward: false, index: IndexId::CLUSTERED } => {
                // The read that finds the end counts too.
                counts.read_rnd_next += rows.max(1);
            }
            AccessNode::Full { backward: false, .. }
            | AccessNode::Ranges { backward: false, .. }
            | AccessNode::Keys { backward: false, .. }
            | AccessNode::Merge { .. }
            | AccessNode::Fulltext { .. }
            | AccessNode::Unique { .. } => counts.read_next += rows,
            AccessNode::Walk(walk) if !walk.backward => counts.read_next += rows,
            AccessNode::Walk(_)
            | AccessNode::Full { backward: true, .. }
            | AccessNode::Keys { backward: true, .. }
            | AccessNode::Ranges { backward: true, .. } => {
                counts.read_prev += rows;
            }
        }
        self.note_examined(rows, run);
    }

    /// The index that rows are found by.
    fn used_index(&self) -> Option<IndexId> {
        match &self.access {
            AccessNode::Unique { index, .. }
            | AccessNode::Keys { index, .. }
            | AccessNode::Ranges { index, .. } => Some(*index),
            AccessNode::Full { index, .. } => Some(*index).filter(|at| *at != IndexId::CLUSTERED),
            AccessNode::Merge { arms, .. } => arms.first().map(|arm| arm.index),
            AccessNode::Walk(walk) => Some(IndexId(walk.index)),
            AccessNode::Fulltext { .. } => None,
        }
    }

    pub(crate) fn note_examined(&self, rows: u64, run: &mut Run<'_>) {
        if let (Some(place), Some(measures)) = (self.measured, &mut run.measures) {
            measures.list[place].examined += rows;
        }
    }
}

impl TableNode {
    /// Whether no column of its rows is read.
    fn is_counted(&self) -> bool {
        self.first.is_empty() && self.rest.is_empty() && self.locator.is_none()
    }

    /// Decodes columns into registers.
    #[inline]
    pub(crate) fn load(
        &self,
        columns: &[(usize, usize)],
        record: &[u8],
        run: &mut Run<'_>,
    ) -> Result<()> {
        for (column, register) in columns {
            run.regs[*register] = self.layout.decode(record, *column)?;
        }
        Ok(())
    }

    /// Loads the row if it passes the filter.
    #[inline]
    pub(crate) fn accept(
        &self,
        filter: Option<&Truth>,
        row: RowRef<'_>,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        self.load(&self.first, row.record, run)?;
        if let Some(register) = self.locator {
            run.regs[register] = Value::Bytes(SqlBytes::new(row.locator));
        }
        if let Some(filter) = filter
            && !filter.holds(run)?
        {
            return Ok(false);
        }
        self.load(&self.rest, row.record, run)?;
        Ok(true)
    }

    /// The lock on rows read: in a serializable transaction plain reads lock too.
    #[inline]
    pub(crate) fn effective_lock(&self, run: &Run<'_>) -> RowLock {
        match self.lock {
            RowLock::None if run.env.settings.lock_reads => RowLock::Shared,
            lock => lock,
        }
    }

    /// Releases the lock on a row that the filter rejected.
    pub(crate) fn refuse(&self, locator: &[u8], run: &mut Run<'_>) -> Result<()> {
        if self.effective_lock(run) != RowLock::None {
            run.transaction(self.engine)?.unlock_row(self.table, locator);
        }
        Ok(())
    }

    /// Reads one row by a full key.
    pub(crate) fn get(
        &self,
        index: IndexId,
        key: &[u8],
        row: &mut RowBuf,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let lock = self.effective_lock(run);
        run.counts.read_key += 1;
        let transaction = run.host.transaction_at(self.engine)?;
        let outcome = transaction.get(self.table, index, key, lock, self.wait, row);
        match outcome {
            Ok(GetOutcome::Found) => {
                run.counts.examined += 1;
                if let Some(work) = &run.tables {
                    work.fetched(self.table, Some(index), 1);
                }
                Ok(true)
            }
            Ok(GetOutcome::NotFound | GetOutcome::Skipped) => Ok(false),
            Err(error) => Err(run.engine_error(error)),
        }
    }
}

/// Rows of the first fetch; a plain read grows from here, a locking one starts with a single row.
const FIRST_FETCH: usize = 16;
/// Likewise where all rows will be read.
const FIRST_FETCH_DRAINED: usize = 256;
const FETCH_MAX: usize = 1024;
const LOCKING_FETCH_MAX: usize = 64;
const FETCH_GROWTH: usize = 8;
/// Rows of each fetch where one of each group is enough; a group that fills it is left by a search for the next one.
const FIRSTS_FETCH: usize = 32;

/// Larger buffers of a scan are freed, not kept for the next statement.
const KEPT_BYTES_MAX: usize = 256 << 10;

impl ScanNode {
    /// Whether its rows come from ranges of an index.
    pub(crate) fn reads_ranges(&self) -> bool {
        matches!(
            self.access,
            AccessNode::Ranges { .. } | AccessNode::Keys { .. } | AccessNode::Merge { .. }
        )
    }
}

/// Bytes of locators that a locking merge of several arms remembers; beyond them the alternatives' conditions identify duplicates, as in plain reads.
const GIVEN_BYTES_MAX: usize = 16 << 20;

/// The number of rows read in table order in the time of one found through an index.
const ROWS_PER_LOOKUP: u64 = 8;

/// Whether it takes less time to read a whole table than its rows in `ranges` of an index.
pub(crate) fn hold_much(
    table: TableId,
    engine: EngineIndex,
    index: IndexId,
    ranges: &[KeyRange],
    run: &Run<'_>,
) -> Result<bool> {
    let engine = run.host.engine_at(engine)?;
    let all = run.engine(engine.table_stats(table))?.rows;
    let mut rows = 0u64;
    for range in ranges {
        rows = rows.saturating_add(run.engine(engine.estimate_range(table, index, range))?.rows);
        if rows.saturating_mul(ROWS_PER_LOOKUP) > all {
            return Ok(all >= WHOLE_ROWS_MIN);
        }
    }
    Ok(false)
}

/// Whether it takes less time to read a whole table than the rows of so many keys.
fn are_many(keys: usize, table: TableId, engine: EngineIndex, run: &Run<'_>) -> Result<bool> {
    let all = run.engine(run.host.engine_at(engine)?.table_stats(table))?.rows;
    Ok(all >= WHOLE_ROWS_MIN && (keys as u64).saturating_mul(ROWS_PER_LOOKUP) > all)
}

/// The optimizer's cost of a look-up by key, for the progress of the statement.
pub(crate) const LOOKUP_WORK: u64 = 2;

/// In a smaller table the access does not matter.
const WHOLE_ROWS_MIN: u64 = 100;

/// A running scan.
pub(crate) struct Scan<'r> {
    node: &'r ScanNode,
    /// Ranges still to be read, the next one last.
    ranges: Vec<KeyRange>,
    /// The arm of a merge that is read.
    arm: usize,
    /// Locators of rows that a locking read through a merge gave, and their bytes.
    given: HashSet<Box<[u8]>, foldhash::fast::FixedState>,
    given_bytes: usize,
    cursor: Option<CursorId>,
    buffers: ScanBuffers,
    at: usize,
    /// The last row of the batch is the last committed version, and locked by another transaction.
    is_peeked: bool,
    fetch: usize,
    /// The ranges turned out to hold much of the table: all of it is read.
    reads_all: bool,
    /// For access by a unique key: whether the row is still to be delivered.
    point: bool,
    /// The rows of a list of keys are looked up, many in a call: the next one's place in the order.
    next_key: Option<usize>,
    /// The result of a MATCH.
    found: Option<Rc<Found>>,
    group: Group,
}

/// The group of the last row, where a scan gives one row of each.
#[derive(Default)]
struct Group {
    key: Vec<u8>,
    /// The key of the row that is looked at.
    next: Vec<u8>,
    is_given: bool,
    /// No row since the last fetch was of another group.
    fills_batch: bool,
    /// The range that is read.
    range: KeyRange,
}

impl<'r> Scan<'r> {
    /// At most `rows` rows will be requested.
    pub(crate) fn expect(&mut self, rows: u64) {
        if self.node.table.lock == RowLock::None && self.fetch > 1 {
            self.fetch = usize::try_from(rows)
                .map_or(FIRST_FETCH_DRAINED, |rows| rows.clamp(1, FIRST_FETCH_DRAINED));
        }
    }

    pub(crate) fn new(node: &'r ScanNode) -> Scan<'r> {
        Scan {
            node,
            ranges: Vec::new(),
            arm: 0,
            given: HashSet::default(),
            given_bytes: 0,
            cursor: None,
            buffers: ScanBuffers::default(),
            at: 0,
            is_peeked: false,
            fetch: FIRST_FETCH,
            reads_all: false,
            point: false,
            next_key: None,
            found: None,
            group: Group::default(),
        }
    }

    fn next_point(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if !std::mem::replace(&mut self.point, false) {
            return Ok(false);
        }
        let AccessNode::Unique { index, .. } = &self.node.access else { return Ok(false) };
        let table = &self.node.table;
        run.env.cancel.count_work(LOOKUP_WORK);
        if !table.get(*index, &self.buffers.key, &mut self.buffers.row, run)? {
            return Ok(false);
        }
        self.node.note_examined(1, run);
        if table.accept(self.node.filter.as_ref(), self.buffers.row.as_row(), run)? {
            return Ok(true);
        }
        table.refuse(&self.buffers.row.locator, run)?;
        Ok(false)
    }

    /// The next row that a MATCH found.
    fn next_found(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let Some(found) = self.found.clone() else { return Ok(false) };
        let table = &self.node.table;
        // An entry that the snapshot sees belongs to a row that it sees.
        let is_counted = table.is_counted() && table.effective_lock(run) == RowLock::None;
        let is_counted = is_counted && self.node.filter.is_none();
        while let Some(locator) = found.row(self.at) {
            run.tick()?;
            self.at += 1;
            if is_counted {
                return Ok(true);
            }
            if !table.get(IndexId::CLUSTERED, locator, &mut self.buffers.row, run)? {
                continue;
            }
            self.node.note_examined(1, run);
            if table.accept(self.node.filter.as_ref(), self.buffers.row.as_row(), run)? {
                return Ok(true);
            }
            table.refuse(&self.buffers.row.locator, run)?;
        }
        Ok(false)
    }

    /// Whether a row that passes is of the group whose row was given; if it is not, it becomes that row.
    fn is_of_given_group(&mut self, at: usize, passes: bool, run: &mut Run<'r>) -> Result<bool> {
        let Some(key) = &self.node.firsts else { return Ok(false) };
        if !passes {
            let table = &self.node.table;
            table.load(&table.rest, self.buffers.batch.row(at).record, run)?;
        }
        let group = &mut self.group;
        group.next.clear();
        let mut is_whole = true;
        for part in key {
            is_whole &= part.append(run, &mut group.next)?;
        }
        debug_assert!(is_whole, "a value of a column has a key");
        group.is_given &= is_whole;
        let is_same = group.is_given && group.key == group.next;
        // It may begin where the batch does.
        group.fills_batch &= is_same || passes && at == 0;
        if passes && !is_same {
            std::mem::swap(&mut group.key, &mut group.next);
            group.is_given = is_whole;
        }
        Ok(is_same && passes)
    }

    /// Leaves the rest of a group that filled a fetch, if one did: the next fetch begins behind it.
    fn leave_group(&mut self, run: &mut Run<'r>) -> bool {
        let fills = std::mem::replace(&mut self.group.fills_batch, true);
        if !fills || !self.group.is_given || self.cursor.is_none() {
            return false;
        }
        self.close_cursor(run);
        let mut range = std::mem::take(&mut self.group.range);
        let end = KeyBound::Excluded(self.group.key.clone());
        match self.spec(KeyRange::ALL, RowLock::None).direction {
            Direction::Forward => range.lower = end,
            Direction::Backward => range.upper = end,
        }
        self.ranges.push(range);
        true
    }

    /// The part of one range to read.
    fn spec(&self, range: KeyRange, lock: RowLock) -> ScanSpec {
        let (index, backward) = match &self.node.access {
            _ if self.reads_all => (IndexId::CLUSTERED, false),
            AccessNode::Ranges { index, backward, .. }
            | AccessNode::Keys { index, backward, .. }
            | AccessNode::Full { index, backward } => (*index, *backward),
            AccessNode::Unique { index, .. } => (*index, false),
            AccessNode::Merge { arms, .. } => (arms[self.arm].index, false),
            AccessNode::Walk(walk) => (IndexId(walk.index), walk.backward),
            AccessNode::Fulltext { .. } => (IndexId::CLUSTERED, false),
        };
        ScanSpec {
            table: self.node.table.table,
            index,
            range,
            direction: if backward { Direction::Backward } else { Direction::Forward },
            lock,
            wait: self.node.table.wait,
        }
    }

    /// The ranges of the first arm of a merge, or the whole table where some arm holds much of it.
    fn begin_merge(
        &mut self,
        arms: &[ArmNode],
        may_read_all: bool,
        run: &mut Run<'r>,
    ) -> Result<()> {
        let table = &self.node.table;
        if may_read_all {
            for arm in arms {
                let ranges = arm.ranges.evaluate(false, run)?;
                self.reads_all |= hold_much(table.table, table.engine, arm.index, &ranges, run)?;
            }
        }
        self.ranges.clear();
        if self.reads_all {
            self.ranges.push(KeyRange::ALL);
        } else if let Some(first) = arms.first() {
            self.ranges = first.ranges.evaluate(false, run)?;
            self.ranges.reverse();
        }
        Ok(())
    }

    /// Prepares the look-ups of a list of keys, or their ranges where a cursor must read them.
    fn begin_keys(&mut self, lock: RowLock, run: &mut Run<'r>) -> Result<()> {
        let AccessNode::Keys { keys, backward, or_all, .. } = &self.node.access else {
            return Ok(());
        };
        let lookups = self.buffers.lookups.get_or_insert_default();
        evaluate_keys(keys, *backward, (&mut lookups.keys, &mut lookups.order), run)?;
        self.ranges.clear();
        self.next_key = None;
        let table = &self.node.table;
        // Locking cursors of engines with gap locks lock what is beside a key, too.
        if lock != RowLock::None && run.host.engine_at(table.engine)?.capabilities().gap_locks {
            let last_first = lookups.order.iter().rev();
            self.ranges.extend(last_first.map(|at| key_range(lookups.keys.key(*at as usize))));
            return Ok(());
        }
        let keys = lookups.order.len();
        self.reads_all =
            *or_all && lock == RowLock::None && are_many(keys, table.table, table.engine, run)?;
        if self.reads_all {
            self.ranges.push(KeyRange::ALL);
        } else {
            self.next_key = Some(0);
            if self.node.all_read {
                self.fetch = LOOKUPS_MAX;
            }
        }
        Ok(())
    }

    /// Looks up rows of more keys; false after the last key.
    fn look_up(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let AccessNode::Keys { index, .. } = &self.node.access else { return Ok(false) };
        let (node, table) = (self.node, &self.node.table);
        let lock = table.effective_lock(run);
        let max = match lock {
            RowLock::Shared | RowLock::Exclusive if !node.all_read => LOCKING_FETCH_MAX,
            RowLock::None | RowLock::Shared | RowLock::Exclusive => LOOKUPS_MAX,
        };
        self.is_peeked = false;
        loop {
            run.env.cancel.check()?;
            let Some(lookups) = &mut self.buffers.lookups else { return Ok(false) };
            let from = self.next_key.unwrap_or(0);
            let to = (from + self.fetch.min(max)).min(lookups.order.len());
            if from == to {
                return Ok(false);
            }
            lookups.call.clear();
            for at in &lookups.order[from..to] {
                lookups.call.push(lookups.keys.key(*at as usize));
            }
            self.next_key = Some(to);
            let transaction = run.host.transaction_at(table.engine)?;
            let (call, found) = (&lookups.call, &mut lookups.found);
            let outcome = transaction.get_many(table.table, *index, call, lock, table.wait, found);
            if let Err(error) = outcome {
                return Err(run.engine_error(error));
            }
            let rows = found.len() as u64;
            found.give_to(&mut self.buffers.batch);
            run.counts.read_key += (to - from) as u64;
            node.count_fetched(rows, run);
            run.env.cancel.count_work(rows);
            self.fetch = (self.fetch * FETCH_GROWTH).min(max);
            if rows > 0 {
                return Ok(true);
            }
        }
    }

    /// Fetches more rows; false when the scan is at its end.
    fn refill(&mut self, run: &mut Run<'r>) -> Result<bool> {
        self.buffers.batch.clear();
        self.at = 0;
        if self.next_key.is_some() {
            return self.look_up(run);
        }
        // Locks must reach all rows.
        let is_plain = self.node.table.effective_lock(run) == RowLock::None;
        let gives_firsts = self.node.firsts.is_some() && is_plain && !self.reads_all;
        if gives_firsts {
            // Behind a long group, two rows tell whether the next one is long, too.
            self.fetch = if self.leave_group(run) { 2 } else { FIRSTS_FETCH };
        }
        loop {
            run.env.cancel.check()?;
            let lock = self.node.table.effective_lock(run);
            let transaction = run.host.transaction_at(self.node.table.engine)?;
            let cursor = match self.cursor {
                Some(cursor) => cursor,
                None => {
                    let Some(range) = self.ranges.pop() else {
                        if self.next_arm(run)? {
                            continue;
                        }
                        return Ok(false);
                    };
                    if gives_firsts {
                        self.group.range = range.clone();
                    }
                    let spec = self.spec(range, lock);
                    let opened = match self.node.table.wants_keys {
                        true => transaction.open_key_cursor(&spec),
                        false => transaction.open_cursor(&spec),
                    };
                    match opened {
                        Ok(cursor) => {
                            self.node.count_open(&mut run.counts);
                            *self.cursor.insert(cursor)
                        }
                        Err(error) => return Err(run.engine_error(error)),
                    }
                }
            };
            match transaction.fetch(cursor, self.fetch, &mut self.buffers.batch) {
                Ok(0) => {
                    transaction.close_cursor(cursor);
                    self.cursor = None;
                    self.node.count_fetched(0, run);
                }
                Ok(rows) => {
                    self.is_peeked =
                        self.node.table.wait == WaitPolicy::Peek && transaction.is_peeked(cursor);
                    self.node.count_fetched(rows as u64, run);
                    run.env.cancel.count_work(rows as u64);
                    let max = match lock {
                        RowLock::None => FETCH_MAX,
                        RowLock::Shared | RowLock::Exclusive => LOCKING_FETCH_MAX,
                    };
                    self.fetch = (self.fetch * FETCH_GROWTH).min(max);
                    return Ok(true);
                }
                Err(error) => return Err(run.engine_error(error)),
            }
        }
    }

    /// Starts the next arm of a merge; false after the last one.
    fn next_arm(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let AccessNode::Merge { arms, .. } = &self.node.access else { return Ok(false) };
        let Some(arm) = arms.get(self.arm + 1).filter(|_| !self.reads_all) else {
            return Ok(false);
        };
        self.arm += 1;
        self.ranges = arm.ranges.evaluate(false, run)?;
        self.ranges.reverse();
        Ok(true)
    }

    /// Whether a row of the batch that passed the filter belongs to another arm of a merge. Its lock stays, whichever arm returns it.
    #[inline]
    fn is_of_other_arm(&mut self, at: usize, run: &mut Run<'r>) -> Result<bool> {
        let AccessNode::Merge { arms, .. } = &self.node.access else { return Ok(false) };
        if self.reads_all {
            return Ok(false);
        }
        // A row that is read in its current version may have been moved into an arm that was read before. A row may be in several ranges of a single arm.
        let is_single = arms.len() == 1;
        if is_single || self.node.table.effective_lock(run) != RowLock::None {
            let locator = self.buffers.batch.row(at).locator;
            if self.given.contains(locator) {
                return Ok(true);
            }
            if is_single || self.given_bytes < GIVEN_BYTES_MAX {
                let bytes = locator.len() + size_of::<Box<[u8]>>();
                run.memory.charge(bytes)?;
                self.given_bytes += bytes;
                self.given.insert(locator.into());
                return Ok(false);
            }
        }
        for arm in &arms[..self.arm] {
            if arm.condition.holds(run)? {
                return Ok(true);
            }
        }
        Ok(!arms[self.arm].condition.holds(run)?)
    }

    /// The last row of the batch matters: it is read again, locked.
    fn lock_peeked(&mut self, run: &mut Run<'r>) -> Result<()> {
        if let Some(cursor) = self.cursor {
            run.transaction(self.node.table.engine)?.lock_peeked(cursor);
        }
        Ok(())
    }

    fn close_cursor(&mut self, run: &mut Run<'r>) {
        if let Some(cursor) = self.cursor.take()
            && !run.is_rolled_back.get()
            && let Ok(transaction) = run.host.transaction_at(self.node.table.engine)
        {
            transaction.close_cursor(cursor);
        }
    }
}

/// An end of a walk as the engine takes it.
fn end(bytes: &Option<(Vec<u8>, bool)>) -> KeyBound {
    match bytes {
        None => KeyBound::Unbounded,
        Some((bytes, true)) => KeyBound::Included(bytes.clone()),
        Some((bytes, false)) => KeyBound::Excluded(bytes.clone()),
    }
}

impl<'r> Operator<'r> for Scan<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.close_cursor(run);
        if !self.buffers.is_used {
            self.buffers = run.buffers.scans.pop().unwrap_or_default();
            self.buffers.is_used = true;
        }
        self.buffers.batch.clear();
        self.at = 0;
        self.arm = 0;
        self.given.clear();
        run.memory.release(std::mem::take(&mut self.given_bytes));
        self.reads_all = false;
        self.group = Group::default();
        let lock = self.node.table.effective_lock(run);
        self.fetch = match lock {
            RowLock::None if self.node.is_drained => FIRST_FETCH_DRAINED,
            RowLock::None => FIRST_FETCH,
            RowLock::Shared | RowLock::Exclusive => 1,
        };
        match &self.node.access {
            AccessNode::Unique { key, .. } => {
                self.buffers.key.clear();
                self.point = true;
                for part in key {
                    if !part.append(run, &mut self.buffers.key)? {
                        self.point = false;
                        break;
                    }
                }
            }
            AccessNode::Ranges { index, ranges, backward, or_all } => {
                self.ranges = ranges.evaluate(*backward, run)?;
                self.ranges.reverse();
                let table = &self.node.table;
                self.reads_all = *or_all
                    && lock == RowLock::None
                    && hold_much(table.table, table.engine, *index, &self.ranges, run)?;
                if self.reads_all {
                    self.ranges.clear();
                    self.ranges.push(KeyRange::ALL);
                }
            }
            AccessNode::Keys { .. } => self.begin_keys(lock, run)?,
            AccessNode::Merge { arms, or_all } => {
                self.begin_merge(arms, *or_all && lock == RowLock::None, run)?;
            }
            AccessNode::Fulltext { search } => {
                // Locked like the rows: a writer of the rows changes their entries, and two holders of a shared lock would wait for each other.
                let lock = if lock == RowLock::None { run.match_lock } else { lock };
                let wait = match self.node.table.wait {
                    // Nothing is passed here.
                    WaitPolicy::Peek => WaitPolicy::Wait,
                    wait => wait,
                };
                self.found = Some(search.found((lock, wait), run)?);
            }
            AccessNode::Walk(walk) => {
                self.ranges.clear();
                self.ranges.push(KeyRange { lower: end(&walk.lower), upper: end(&walk.upper) });
            }
            AccessNode::Full { .. } => {
                self.ranges.clear();
                self.ranges.push(KeyRange::ALL);
            }
        }
        Ok(())
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        match self.node.access {
            AccessNode::Unique { .. } => return self.next_point(run),
            AccessNode::Fulltext { .. } => return self.next_found(run),
            AccessNode::Ranges { .. }
            | AccessNode::Keys { .. }
            | AccessNode::Merge { .. }
            | AccessNode::Walk(_)
            | AccessNode::Full { .. } => {}
        }
        Ok(self.advance::<true>(run)?.is_some())
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.close_cursor(run);
        if let AccessNode::Walk(_) = self.node.access
            && self.buffers.is_used
        {
            let last = self.at.checked_sub(1).filter(|at| *at < self.buffers.batch.len());
            run.buffers.walked = Some(last.map(|at| {
                let row = self.buffers.batch.row(at);
                RowBuf { record: row.record.to_vec(), locator: row.locator.to_vec() }
            }));
        }
        self.ranges.clear();
        self.given = HashSet::default();
        run.memory.release(std::mem::take(&mut self.given_bytes));
        self.found = None;
        self.at = 0;
        self.point = false;
        self.next_key = None;
        let mut buffers = std::mem::take(&mut self.buffers);
        let listed = buffers.lookups.as_ref().map_or(0, |lookups| lookups.size_bytes());
        let held = buffers.batch.size_bytes() + listed;
        if buffers.is_used && held <= KEPT_BYTES_MAX {
            buffers.batch.clear();
            buffers.is_used = false;
            run.buffers.scans.push(buffers);
        }
    }
}

impl<'r> Scan<'r> {
    /// The next row that passes the filter, as the engine returned it; only the filter's columns are in registers.
    pub(crate) fn next_record(&mut self, run: &mut Run<'r>) -> Result<Option<RowRef<'_>>> {
        let node = self.node;
        if let AccessNode::Unique { .. } = node.access {
            return Ok(self.next_point(run)?.then(|| self.buffers.row.as_row()));
        }
        if let AccessNode::Fulltext { .. } = node.access {
            return Ok(self.next_found(run)?.then(|| self.buffers.row.as_row()));
        }
        let at = self.advance::<false>(run)?;
        Ok(at.map(|at| self.buffers.batch.row(at)))
    }

    /// Goes on to the next row that passes the filter: its place in the batch. `WHOLE`: all its columns are put into registers, not only those that
    /// the filter reads.
    fn advance<const WHOLE: bool>(&mut self, run: &mut Run<'r>) -> Result<Option<usize>> {
        let node = self.node;
        loop {
            while self.at < self.buffers.batch.len() {
                let at = self.at;
                self.at += 1;
                let row = self.buffers.batch.row(at);
                let passes = if WHOLE {
                    node.table.accept(node.filter.as_ref(), row, run)?
                } else {
                    node.table.load(&node.table.first, row.record, run)?;
                    node.filter.as_ref().map_or(Ok(true), |filter| filter.holds(run))?
                };
                if passes && self.is_of_other_arm(at, run)? {
                    continue;
                }
                if WHOLE && node.firsts.is_some() && self.is_of_given_group(at, passes, run)? {
                    continue;
                }
                let is_peeked = self.is_peeked && self.at == self.buffers.batch.len();
                match passes {
                    true if is_peeked => self.lock_peeked(run)?,
                    true => return Ok(Some(at)),
                    false if is_peeked => {}
                    false => {
                        node.table.refuse(self.buffers.batch.row(at).locator, run)?;
                    }
                }
            }
            if !self.refill(run)? {
                return Ok(None);
            }
        }
    }
}
