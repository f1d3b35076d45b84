//! Joins: nested loop, and hash with the inner side in memory.

use errors::Result;
use plan::JoinKind;
use rows::key_set::{KEY_OVERHEAD, KeySet};
use rows::value_key::{Domain, Side};
use types::Value;

use super::partitions::{LEVELS_MAX, Partitions};
use crate::expr::{Code, Truth};
use crate::kept_rows::Rows;
use crate::operator::{Operator, Source};
use crate::run::Run;
use crate::spill::RowReader;

/// A nested loop in a program.
pub(crate) struct NestedLoopNode {
    pub(crate) kind: JoinKind,
    pub(crate) outer: Box<dyn Source>,
    pub(crate) inner: Box<dyn Source>,
    pub(crate) condition: Option<Truth>,
    pub(crate) inner_columns: Vec<usize>,
}

/// A running nested loop.
pub(crate) struct NestedLoop<'r> {
    node: &'r NestedLoopNode,
    outer: Box<dyn Operator<'r> + 'r>,
    inner: Box<dyn Operator<'r> + 'r>,
    outer_row: OuterRow,
}

impl<'r> NestedLoop<'r> {
    pub(crate) fn new(node: &'r NestedLoopNode) -> NestedLoop<'r> {
        NestedLoop {
            node,
            outer: node.outer.build(),
            inner: node.inner.build(),
            outer_row: OuterRow::default(),
        }
    }

    fn inner_match(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while self.inner.next(run)? {
            run.tick()?;
            match &self.node.condition {
                Some(condition) if !condition.holds(run)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }
}

/// The state of a join for a row of its outer side.
#[derive(Clone, Copy, Default)]
pub(super) struct OuterRow {
    /// The row is in the registers and its matches are being read.
    is_there: bool,
    matched: bool,
}

impl OuterRow {
    pub(super) fn begun() -> OuterRow {
        OuterRow { is_there: true, matched: false }
    }

    /// After a match was found or the matches ended: whether the join emits the registers. If an outer
    /// row has no match, the inner columns are NULL.
    pub(super) fn emits(
        &mut self,
        kind: JoinKind,
        found: bool,
        inner_columns: &[usize],
        run: &mut Run<'_>,
    ) -> bool {
        self.matched |= found;
        // Inner and outer joins continue with the next match.
        self.is_there = found && matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Full);
        match kind {
            JoinKind::Inner | JoinKind::Semi => found,
            JoinKind::Anti => !found,
            JoinKind::Left | JoinKind::Full => {
                if !self.matched {
                    inner_columns.iter().for_each(|register| run.regs[*register] = Value::Null);
                }
                found || !self.matched
            }
        }
    }
}

impl<'r> Operator<'r> for NestedLoop<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.outer_row = OuterRow::default();
        self.outer.open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        loop {
            if !self.outer_row.is_there {
                if !self.outer.next(run)? {
                    return Ok(false);
                }
                run.tick()?;
                self.inner.open(run)?;
                self.outer_row = OuterRow::begun();
            }
            let found = self.inner_match(run)?;
            if self.outer_row.emits(self.node.kind, found, &self.node.inner_columns, run) {
                return Ok(true);
            }
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.outer.close(run);
        self.inner.close(run);
        self.outer_row = OuterRow::default();
    }
}

/// One pair of equal expressions.
pub(crate) struct HashKey {
    pub(crate) outer: Code,
    pub(crate) inner: Code,
    pub(crate) domain: Domain,
}

/// A hash join in a program.
pub(crate) struct HashJoinNode {
    pub(crate) kind: JoinKind,
    pub(crate) outer: Box<dyn Source>,
    pub(crate) inner: Box<dyn Source>,
    pub(crate) keys: Vec<HashKey>,
    pub(crate) condition: Option<Truth>,
    pub(crate) inner_columns: Vec<usize>,
    /// Registers that the outer side sets.
    pub(crate) outer_columns: Vec<usize>,
    /// The inner side reads registers of outer queries: the table is built at each open.
    pub(crate) correlated: bool,
}

/// End of a chain of rows with equal keys.
const NO_ROW: u32 = u32::MAX;

/// The key of a full join's inner rows that have NULL in theirs.
const NO_MATCH: u8 = 0;

/// A running hash join.
pub(crate) struct HashJoin<'r> {
    node: &'r HashJoinNode,
    outer: Box<dyn Operator<'r> + 'r>,
    inner: Box<dyn Operator<'r> + 'r>,
    keys: KeySet,
    /// First and last row of each key; those between follow in `chain`.
    heads: Vec<(u32, u32)>,
    chain: Vec<u32>,
    rows: Rows,
    built: bool,
    bytes: usize,
    candidate: u32,
    /// In a full join: the rows of the table that an outer row matched.
    matched: Vec<bool>,
    /// Set after the table's last outer row: the next row of the table that a full join looks at.
    rest: Option<usize>,
    outer_row: OuterRow,
    key: Vec<u8>,
    /// Set while the table is that of a part: its outer rows.
    part: Option<Part>,
    /// Parts still to be joined.
    parts: Vec<Part>,
}

/// Rows of both sides whose keys hash to one part, in files because the inner side did not fit memory. The outer rows' keys are
/// preceded by a byte that is set if they have no NULL.
struct Part {
    inner: Option<RowReader>,
    outer: Option<RowReader>,
    level: u32,
}

/// Where the outer rows come from that are to be divided.
enum OuterRows {
    Input,
    Part(Option<RowReader>),
}

impl<'r> HashJoin<'r> {
    pub(crate) fn new(node: &'r HashJoinNode) -> HashJoin<'r> {
        HashJoin {
            node,
            outer: node.outer.build(),
            inner: node.inner.build(),
            keys: KeySet::default(),
            heads: Vec::new(),
            chain: Vec::new(),
            rows: Rows::new(node.inner_columns.len()),
            built: false,
            bytes: 0,
            candidate: NO_ROW,
            matched: Vec::new(),
            rest: None,
            outer_row: OuterRow::default(),
            key: Vec::new(),
            part: None,
            parts: Vec::new(),
        }
    }

    /// Forgets the table.
    fn clear(&mut self, run: &mut Run<'r>) {
        run.memory.release(self.bytes);
        self.bytes = 0;
        self.keys.clear();
        self.heads.clear();
        self.chain.clear();
        self.matched.clear();
        self.rows.clear(run);
        self.built = false;
    }

    fn forget(&mut self, run: &mut Run<'r>) {
        self.clear(run);
        self.part = None;
        self.parts.clear();
    }

    fn is_full(&self) -> bool {
        self.node.kind == JoinKind::Full
    }

    /// Builds the key of the current row in `self.key`; false when a part is NULL. The keys of a full join begin with a byte, so that its
    /// table can also keep the rows that match nothing, which have `NO_MATCH` as key.
    fn make_key(&mut self, outer: bool, run: &mut Run<'r>) -> Result<bool> {
        self.key.clear();
        if self.is_full() {
            self.key.push(!NO_MATCH);
        }
        for key in &self.node.keys {
            let (code, side) = match outer {
                true => (&key.outer, Side::Left),
                false => (&key.inner, Side::Right),
            };
            if !code.append_key(&key.domain, side, run, &mut self.key)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps the inner row in the registers under `self.key`.
    fn add_row(&mut self, run: &mut Run<'r>) -> Result<()> {
        let row = self.rows.len() as u32;
        self.rows.push_registers(&self.node.inner_columns, run)?;
        self.chain.push(NO_ROW);
        if self.is_full() {
            self.matched.push(false);
            self.bytes += 1;
            run.memory.charge(1)?;
        }
        let (key, is_new) = self.keys.insert(&self.key);
        if is_new {
            let bytes = self.key.len() + KEY_OVERHEAD + size_of::<(u32, u32)>();
            self.bytes += bytes;
            self.heads.push((row, row));
            return run.memory.charge(bytes);
        }
        // Appended at the end, so that equal rows keep their order.
        let last = &mut self.heads[key as usize].1;
        self.chain[*last as usize] = row;
        *last = row;
        Ok(())
    }

    /// The next inner row of the input or of a part, with its key in `self.key`; rows that cannot match are skipped,
    /// unless a full join keeps them.
    fn next_inner(&mut self, part: &mut Option<RowReader>, run: &mut Run<'r>) -> Result<bool> {
        if let Some(part) = part {
            return part.next_into(&mut self.key, &self.node.inner_columns, run);
        }
        while self.inner.next(run)? {
            run.tick()?;
            if self.make_key(false, run)? {
                return Ok(true);
            }
            if self.is_full() {
                self.key.clear();
                self.key.push(NO_MATCH);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves the table's rows to files.
    fn move_table(&mut self, files: &mut Partitions, run: &mut Run<'r>) -> Result<()> {
        for (key, (first, _)) in self.keys.iter().zip(&self.heads) {
            let mut row = *first;
            while row != NO_ROW {
                files.push(key, self.rows.row(row as usize).iter(), run)?;
                row = self.chain[row as usize];
            }
        }
        self.clear(run);
        Ok(())
    }

    /// Builds the table of the inner rows. If they do not fit memory, they are in the returned files.
    fn read_inner(
        &mut self,
        mut part: Option<RowReader>,
        level: u32,
        run: &mut Run<'r>,
    ) -> Result<Option<Partitions>> {
        let mut files: Option<Partitions> = None;
        while self.next_inner(&mut part, run)? {
            run.tick()?;
            if let Some(files) = &mut files {
                files.push_registers(&self.key, &self.node.inner_columns, run)?;
                continue;
            }
            self.add_row(run)?;
            let bytes = self.bytes + self.rows.bytes();
            if bytes > run.operator_bytes() && level < LEVELS_MAX {
                let mut moved = Partitions::new(level, run);
                self.move_table(&mut moved, run)?;
                files = Some(moved);
            }
        }
        Ok(files)
    }

    fn build_table(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.forget(run);
        self.inner.open(run)?;
        let files = self.read_inner(None, 0, run)?;
        self.inner.close(run);
        self.built = files.is_none();
        if let Some(inner) = files {
            self.outer.open(run)?;
            self.divide(inner, OuterRows::Input, run)?;
            self.outer.close(run);
        }
        Ok(())
    }

    /// Divides the outer rows, of the input or of a part, in the same way as the inner ones.
    fn divide(&mut self, inner: Partitions, mut rows: OuterRows, run: &mut Run<'r>) -> Result<()> {
        let level = inner.next_level();
        let mut outer = Partitions::new(level, run);
        let mut stored = Vec::new();
        loop {
            match &mut rows {
                OuterRows::Part(None) => break,
                OuterRows::Part(Some(part)) => {
                    if !part.next_into(&mut stored, &self.node.outer_columns, run)? {
                        break;
                    }
                }
                OuterRows::Input => {
                    if !self.outer.next(run)? {
                        break;
                    }
                    let has_key = self.make_key(true, run)?;
                    stored.clear();
                    stored.push(u8::from(has_key));
                    stored.extend_from_slice(&self.key);
                }
            }
            run.tick()?;
            outer.push_beside(&inner, &stored, &self.node.outer_columns, run)?;
        }
        for (inner, outer) in inner.finish()?.into_iter().zip(outer.finish()?) {
            // Inner rows alone give nothing, but in a full join.
            if outer.is_some() || (inner.is_some() && self.is_full()) {
                self.parts.push(Part { inner, outer, level });
            }
        }
        Ok(())
    }

    /// Builds the table of the next part; false after the last one.
    fn next_part(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while let Some(mut part) = self.parts.pop() {
            self.clear(run);
            let Some(inner) = part.inner.take() else {
                self.part = Some(part);
                return Ok(true);
            };
            let Some(files) = self.read_inner(Some(inner), part.level, run)? else {
                self.part = Some(part);
                return Ok(true);
            };
            self.divide(files, OuterRows::Part(part.outer.take()), run)?;
        }
        self.part = None;
        Ok(false)
    }

    /// The next outer row for the table; its key is in `self.key` when this returns that it has one.
    fn next_outer(&mut self, run: &mut Run<'r>) -> Result<Option<bool>> {
        if self.built {
            return match self.outer.next(run)? {
                true => self.make_key(true, run).map(Some),
                false => Ok(None),
            };
        }
        if let Some(outer) = self.part.as_mut().and_then(|part| part.outer.as_mut())
            && outer.next_into(&mut self.key, &self.node.outer_columns, run)?
        {
            let has_key = self.key.first() == Some(&1);
            self.key.drain(..1.min(self.key.len()));
            return Ok(Some(has_key));
        }
        Ok(None)
    }

    /// Puts the next row of the table that no outer row matched into the registers, from `row` on; NULL in those of the outer side.
    fn next_unmatched(&mut self, mut row: usize, run: &mut Run<'r>) -> Result<bool> {
        while self.matched.get(row) == Some(&true) {
            run.tick()?;
            row += 1;
        }
        self.rest = Some(row + 1);
        if row >= self.matched.len() {
            return Ok(false);
        }
        self.rows.restore(row, &self.node.inner_columns, run);
        self.node.outer_columns.iter().for_each(|register| run.regs[*register] = Value::Null);
        Ok(true)
    }

    fn next_match(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while self.candidate != NO_ROW {
            run.tick()?;
            let row = self.candidate as usize;
            self.candidate = self.chain[row];
            self.rows.restore(row, &self.node.inner_columns, run);
            match &self.node.condition {
                Some(condition) if !condition.holds(run)? => {}
                _ => {
                    if let Some(matched) = self.matched.get_mut(row) {
                        *matched = true;
                    }
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl<'r> Operator<'r> for HashJoin<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.outer_row = OuterRow::default();
        self.rest = None;
        if self.node.correlated || !self.built {
            self.build_table(run)?;
        }
        if !self.built {
            // Both sides are in files.
            self.candidate = NO_ROW;
            return Ok(());
        }
        self.matched.fill(false);
        let inner_is_empty = self.rows.is_empty();
        let needs_match = matches!(self.node.kind, JoinKind::Inner | JoinKind::Semi);
        self.candidate = NO_ROW;
        if inner_is_empty && needs_match {
            self.outer.close(run);
            return Ok(());
        }
        self.outer.open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let needs_match = matches!(self.node.kind, JoinKind::Inner | JoinKind::Semi);
        if self.built && self.rows.is_empty() && needs_match {
            return Ok(false);
        }
        loop {
            if let Some(row) = self.rest {
                if self.next_unmatched(row, run)? {
                    return Ok(true);
                }
                if self.built || !self.next_part(run)? {
                    return Ok(false);
                }
                self.rest = None;
            }
            if !self.outer_row.is_there {
                let Some(has_key) = self.next_outer(run)? else {
                    self.rest = Some(0);
                    continue;
                };
                run.tick()?;
                self.candidate = NO_ROW;
                if has_key && let Some(key) = self.keys.get(&self.key) {
                    self.candidate = self.heads[key as usize].0;
                }
                self.outer_row = OuterRow::begun();
            }
            let found = self.next_match(run)?;
            if self.outer_row.emits(self.node.kind, found, &self.node.inner_columns, run) {
                return Ok(true);
            }
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.outer.close(run);
        self.inner.close(run);
        self.forget(run);
        self.outer_row = OuterRow::default();
    }
}
