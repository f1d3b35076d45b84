//! A nested loop whose inner side is one row by a whole key: outer rows are gathered, and the rows of all their keys are looked up in one call.

use engine_api::{FoundRows, IndexId, KeyList, RowLock};
use errors::Result;
use plan::{Access, Expr, JoinKind, Physical, RowLocking};
use types::Value;

use super::join::OuterRow;
use super::scan::{AccessNode, LOOKUP_WORK, ScanNode};
use crate::expr::Truth;
use crate::kept_rows::Rows;
use crate::operator::{Operator, Source};
use crate::run::Run;

/// Outer rows that are gathered.
const GATHERED_MAX: usize = 512;
/// Instead of the place of a key: a part of it is NULL, or no row can have it.
const NO_KEY: u32 = u32::MAX;

/// Such a join in a program.
pub(crate) struct LookupJoinNode {
    pub(crate) kind: JoinKind,
    pub(crate) outer: Box<dyn Source>,
    /// Registers that the outer side sets.
    pub(crate) outer_columns: Vec<usize>,
    /// The outer side sets all of them for each of its rows: their values can be moved away.
    pub(crate) moves_outer: bool,
    /// A scan by a unique key.
    pub(crate) inner: Box<ScanNode>,
    pub(crate) condition: Option<Truth>,
    pub(crate) inner_columns: Vec<usize>,
}

/// Whether nobody notices that an input is read before rows found for its earlier rows are used.
pub(crate) fn may_run_ahead(plan: &Physical) -> bool {
    if let Physical::Scan { table, .. } = plan
        && table.locking != RowLocking::None
    {
        return false;
    }
    let mut is_quiet = true;
    plan.for_each_expr(&mut |expr| {
        let is_bound = |part: &Expr| {
            matches!(part, Expr::Stored { .. } | Expr::Subquery { .. } | Expr::UserVariable { .. })
        };
        is_quiet &= !expr.is_volatile() && !expr.any(&mut |part| is_bound(part));
    });
    plan.for_each_input(&mut |input| is_quiet = is_quiet && may_run_ahead(input));
    is_quiet
}

/// Whether an input has one row at most: nothing would be gathered.
pub(crate) fn is_one_row(plan: &Physical) -> bool {
    if let Physical::Scan { access, .. } = plan {
        return matches!(access, Access::Unique { .. });
    }
    let is_kept = matches!(
        plan,
        Physical::OneRow
            | Physical::Filter { .. }
            | Physical::Project { .. }
            | Physical::NestedLoop { .. }
    );
    let mut is_one = is_kept;
    plan.for_each_input(&mut |input| is_one = is_one && is_one_row(input));
    is_one
}

/// Such a join that runs.
pub(crate) struct LookupJoin<'r> {
    node: &'r LookupJoinNode,
    outer: Box<dyn Operator<'r> + 'r>,
    /// Gathered rows, and the place of each one's key.
    rows: Rows,
    places: Vec<u32>,
    keys: KeyList,
    found: FoundRows,
    /// The next gathered row.
    at: usize,
    /// The outer side is at its end.
    is_over: bool,
}

impl<'r> LookupJoin<'r> {
    pub(crate) fn new(node: &'r LookupJoinNode) -> LookupJoin<'r> {
        LookupJoin {
            node,
            outer: node.outer.build(),
            rows: Rows::new(node.outer_columns.len()),
            places: Vec::new(),
            keys: KeyList::default(),
            found: FoundRows::default(),
            at: 0,
            is_over: false,
        }
    }

    fn index(&self) -> IndexId {
        match &self.node.inner.access {
            AccessNode::Unique { index, .. } => *index,
            AccessNode::Ranges { .. }
            | AccessNode::Keys { .. }
            | AccessNode::Merge { .. }
            | AccessNode::Fulltext { .. }
            | AccessNode::Walk(_)
            | AccessNode::Full { .. } => IndexId::CLUSTERED,
        }
    }

    /// Gathers outer rows, and looks up their keys.
    fn gather(&mut self, run: &mut Run<'r>) -> Result<()> {
        let node = self.node;
        self.rows.clear(run);
        self.places.clear();
        self.keys.clear();
        self.at = 0;
        // A reader that locks does it in the order of the rows.
        let max = match node.inner.table.effective_lock(run) {
            RowLock::None => GATHERED_MAX,
            RowLock::Shared | RowLock::Exclusive => 1,
        };
        while self.rows.len() < max {
            if !self.outer.next(run)? {
                self.is_over = true;
                break;
            }
            run.tick()?;
            let place = self.add_key(run)?;
            self.places.push(place);
            match node.moves_outer {
                true => self.rows.push_moved(&node.outer_columns, run)?,
                false => self.rows.push_registers(&node.outer_columns, run)?,
            }
        }
        debug_assert_eq!(self.rows.len(), self.places.len(), "each row has a place");
        self.look_up(run)
    }

    /// Adds the key for the outer row in the registers.
    fn add_key(&mut self, run: &mut Run<'r>) -> Result<u32> {
        let AccessNode::Unique { key, .. } = &self.node.inner.access else { return Ok(NO_KEY) };
        for part in key {
            if !part.append(run, self.keys.begin_key())? {
                self.keys.abandon_key();
                return Ok(NO_KEY);
            }
        }
        self.keys.end_key();
        Ok(self.keys.len() as u32 - 1)
    }

    fn look_up(&mut self, run: &mut Run<'r>) -> Result<()> {
        let keys = self.keys.len() as u64;
        if keys == 0 {
            return Ok(());
        }
        run.env.cancel.check()?;
        let (index, table) = (self.index(), &self.node.inner.table);
        let lock = table.effective_lock(run);
        let transaction = run.host.transaction_at(table.engine)?;
        let (keys_list, found) = (&self.keys, &mut self.found);
        let outcome = transaction.get_many(table.table, index, keys_list, lock, table.wait, found);
        if let Err(error) = outcome {
            return Err(run.engine_error(error));
        }
        let rows = self.found.len() as u64;
        run.counts.read_key += keys;
        run.counts.examined += rows;
        if let Some(work) = &run.tables {
            work.fetched(table.table, Some(index), rows);
        }
        run.env.cancel.count_work(keys * LOOKUP_WORK);
        self.node.inner.note_examined(rows, run);
        Ok(())
    }

    /// Loads the row that was found for the outer row in the registers; false if there is none that matches.
    fn load(&mut self, row: usize, run: &mut Run<'r>) -> Result<bool> {
        let inner = &self.node.inner;
        let place = self.places[row];
        let found = if place == NO_KEY { None } else { self.found.row(place as usize) };
        let Some(found) = found else { return Ok(false) };
        if !inner.table.accept(inner.filter.as_ref(), found, run)? {
            inner.table.refuse(found.locator, run)?;
            return Ok(false);
        }
        match &self.node.condition {
            Some(condition) => condition.holds(run),
            None => Ok(true),
        }
    }
}

impl<'r> Operator<'r> for LookupJoin<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.rows.clear(run);
        self.at = 0;
        self.is_over = false;
        self.outer.open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        loop {
            if self.at == self.rows.len() {
                if self.is_over {
                    return Ok(false);
                }
                self.gather(run)?;
                continue;
            }
            let row = self.at;
            self.at += 1;
            self.rows.release(row, &self.node.outer_columns, run);
            let found = self.load(row, run)?;
            let (kind, inner_columns) = (self.node.kind, &self.node.inner_columns);
            if OuterRow::begun().emits(kind, found, inner_columns, run) {
                return Ok(true);
            }
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.outer.close(run);
        self.rows.clear(run);
        self.found = FoundRows::default();
        self.at = 0;
        self.is_over = false;
    }
}

impl Rows {
    /// Moves the values of some registers into a row.
    fn push_moved(&mut self, registers: &[usize], run: &mut Run<'_>) -> Result<()> {
        let taken = registers
            .iter()
            .map(|register| std::mem::replace(&mut run.regs[*register], Value::Null));
        self.push(taken, &mut run.memory)
    }
}
