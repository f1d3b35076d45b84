//! Joins: nested loop, and hash with the inner side in memory.

use errors::Result;
use hashbrown::HashMap;
use plan::JoinKind;
use types::Value;

use super::{Node, Operator, Rows, build};
use crate::expr::{Code, Truth};
use crate::run::Run;
use crate::value_key::{Domain, Side};

/// A nested loop in a program.
pub(crate) struct NestedLoopNode {
    pub(crate) kind: JoinKind,
    pub(crate) outer: Node,
    pub(crate) inner: Node,
    pub(crate) condition: Option<Truth>,
    pub(crate) inner_columns: Vec<usize>,
}

/// A running nested loop.
pub(crate) struct NestedLoop<'r> {
    node: &'r NestedLoopNode,
    outer: Box<dyn Operator<'r> + 'r>,
    inner: Box<dyn Operator<'r> + 'r>,
    /// An outer row is in the registers and the inner side is open.
    in_row: bool,
    matched: bool,
}

impl<'r> NestedLoop<'r> {
    pub(crate) fn new(node: &'r NestedLoopNode) -> NestedLoop<'r> {
        NestedLoop {
            node,
            outer: build(&node.outer),
            inner: build(&node.inner),
            in_row: false,
            matched: false,
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

fn set_null(registers: &[usize], run: &mut Run<'_>) {
    for register in registers {
        run.regs[*register] = Value::Null;
    }
}

impl<'r> Operator<'r> for NestedLoop<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.in_row = false;
        self.outer.open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        loop {
            if !self.in_row {
                if !self.outer.next(run)? {
                    return Ok(false);
                }
                run.tick()?;
                self.inner.open(run)?;
                self.in_row = true;
                self.matched = false;
            }
            let found = self.inner_match(run)?;
            self.matched |= found;
            match (self.node.kind, found) {
                (JoinKind::Inner | JoinKind::Left, true) => return Ok(true),
                (JoinKind::Left, false) => {
                    self.in_row = false;
                    if !self.matched {
                        set_null(&self.node.inner_columns, run);
                        return Ok(true);
                    }
                }
                (JoinKind::Semi, true) | (JoinKind::Anti, false) => {
                    self.in_row = false;
                    return Ok(true);
                }
                (JoinKind::Inner | JoinKind::Semi, false) | (JoinKind::Anti, true) => {
                    self.in_row = false;
                }
            }
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.outer.close(run);
        self.inner.close(run);
        self.in_row = false;
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
    pub(crate) outer: Node,
    pub(crate) inner: Node,
    pub(crate) keys: Vec<HashKey>,
    pub(crate) condition: Option<Truth>,
    pub(crate) inner_columns: Vec<usize>,
    /// The inner side reads registers of outer queries: the table is built at each open.
    pub(crate) correlated: bool,
}

/// End of a chain of rows with equal keys.
const NO_ROW: u32 = u32::MAX;

/// A running hash join.
pub(crate) struct HashJoin<'r> {
    node: &'r HashJoinNode,
    outer: Box<dyn Operator<'r> + 'r>,
    inner: Box<dyn Operator<'r> + 'r>,
    /// Newest row of each key; the others follow in `chain`.
    heads: HashMap<Box<[u8]>, (u32, u32), foldhash::fast::FixedState>,
    chain: Vec<u32>,
    rows: Rows,
    built: bool,
    bytes: usize,
    candidate: u32,
    in_row: bool,
    matched: bool,
    key: Vec<u8>,
}

impl<'r> HashJoin<'r> {
    pub(crate) fn new(node: &'r HashJoinNode) -> HashJoin<'r> {
        HashJoin {
            node,
            outer: build(&node.outer),
            inner: build(&node.inner),
            heads: HashMap::default(),
            chain: Vec::new(),
            rows: Rows::new(node.inner_columns.len()),
            built: false,
            bytes: 0,
            candidate: NO_ROW,
            in_row: false,
            matched: false,
            key: Vec::new(),
        }
    }

    fn forget(&mut self, run: &mut Run<'r>) {
        run.memory.release(self.bytes);
        self.bytes = 0;
        self.heads.clear();
        self.chain.clear();
        self.rows.clear(run);
        self.built = false;
    }

    /// The key of the present row into `self.key`; false when a part is NULL.
    fn make_key(&mut self, outer: bool, run: &mut Run<'r>) -> Result<bool> {
        self.key.clear();
        for key in &self.node.keys {
            let (code, side) = match outer {
                true => (&key.outer, Side::Left),
                false => (&key.inner, Side::Right),
            };
            if !key.domain.append_code(code, side, run, &mut self.key)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn build_table(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.forget(run);
        self.inner.open(run)?;
        while self.inner.next(run)? {
            run.tick()?;
            if !self.make_key(false, run)? {
                continue;
            }
            let row = self.rows.len() as u32;
            self.rows.push_registers(&self.node.inner_columns, run)?;
            self.chain.push(NO_ROW);
            match self.heads.get_mut(self.key.as_slice()) {
                Some((_, last)) => {
                    // Appended at the end, so that equal rows keep their order.
                    self.chain[*last as usize] = row;
                    *last = row;
                }
                None => {
                    let bytes = self.key.len() + super::simple::ENTRY_BYTES;
                    self.bytes += bytes;
                    run.memory.charge(bytes)?;
                    self.heads.insert(self.key.as_slice().into(), (row, row));
                }
            }
        }
        self.inner.close(run);
        self.built = true;
        Ok(())
    }

    fn next_match(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while self.candidate != NO_ROW {
            run.tick()?;
            let row = self.candidate as usize;
            self.candidate = self.chain[row];
            self.rows.restore(row, &self.node.inner_columns, run);
            match &self.node.condition {
                Some(condition) if !condition.holds(run)? => {}
                _ => return Ok(true),
            }
        }
        Ok(false)
    }
}

impl<'r> Operator<'r> for HashJoin<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.in_row = false;
        if self.node.correlated || !self.built {
            self.build_table(run)?;
        }
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
        if self.rows.is_empty() && matches!(self.node.kind, JoinKind::Inner | JoinKind::Semi) {
            return Ok(false);
        }
        loop {
            if !self.in_row {
                if !self.outer.next(run)? {
                    return Ok(false);
                }
                run.tick()?;
                self.candidate = NO_ROW;
                if self.make_key(true, run)?
                    && let Some((first, _)) = self.heads.get(self.key.as_slice())
                {
                    self.candidate = *first;
                }
                self.in_row = true;
                self.matched = false;
            }
            let found = self.next_match(run)?;
            self.matched |= found;
            match (self.node.kind, found) {
                (JoinKind::Inner | JoinKind::Left, true) => return Ok(true),
                (JoinKind::Left, false) => {
                    self.in_row = false;
                    if !self.matched {
                        set_null(&self.node.inner_columns, run);
                        return Ok(true);
                    }
                }
                (JoinKind::Semi, true) | (JoinKind::Anti, false) => {
                    self.in_row = false;
                    return Ok(true);
                }
                (JoinKind::Inner | JoinKind::Semi, false) | (JoinKind::Anti, true) => {
                    self.in_row = false;
                }
            }
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.outer.close(run);
        self.inner.close(run);
        self.forget(run);
        self.in_row = false;
    }
}
