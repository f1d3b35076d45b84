//! From a plan's table accesses to scans: keys, ranges and locks.

use engine_api::{IndexId, RowLock, TableId, WaitPolicy};
use errors::Result;
use plan::{
    Access, Expr, Firsts, IndexKeySource, RangeBound, RangeSpec, Register, RegisterSet, RowLocking,
    TableAccess,
};
use rows::layout::Layout;

use super::compile::{NodeCompiler, index, is_utc};
use super::keys::{KeySource, RangeNode, Ranges};
use super::scan::{AccessNode, ArmNode, ScanNode, TableNode};
use crate::expr::Code;

fn locking(locking: RowLocking) -> (RowLock, WaitPolicy) {
    match locking {
        RowLocking::None => (RowLock::None, WaitPolicy::Wait),
        RowLocking::Shared => (RowLock::Shared, WaitPolicy::Wait),
        RowLocking::SharedNoWait => (RowLock::Shared, WaitPolicy::NoWait),
        RowLocking::SharedSkipLocked => (RowLock::Shared, WaitPolicy::SkipLocked),
        RowLocking::Exclusive => (RowLock::Exclusive, WaitPolicy::Wait),
        RowLocking::ExclusiveNoWait => (RowLock::Exclusive, WaitPolicy::NoWait),
        RowLocking::ExclusiveSkipLocked => (RowLock::Exclusive, WaitPolicy::SkipLocked),
        RowLocking::ExclusivePeek => (RowLock::Exclusive, WaitPolicy::Peek),
    }
}

impl NodeCompiler<'_> {
    pub(super) fn scan(
        &mut self,
        table: &TableAccess,
        access: &Access,
        filter: Option<&Expr>,
    ) -> Result<ScanNode> {
        for (column, register) in &table.columns {
            if let Some(name) = table.names.get(*column) {
                self.exprs.names.insert(index(*register), name.clone());
            }
        }
        let mut in_filter = RegisterSet::new();
        if let Some(filter) = filter {
            let subqueries = self.exprs.subqueries;
            filter.add_registers(
                &|id| subqueries.get(id.0 as usize).map_or(&[], |query| query.outer.as_slice()),
                &mut in_filter,
            );
        }
        if let Access::Merge { arms, .. } = access {
            arms.iter().for_each(|arm| arm.condition.add_registers(&|_| &[], &mut in_filter));
        }
        let columns = table.columns.iter().map(|(column, register)| (*column, *register));
        let (first, rest): (Vec<_>, Vec<_>) =
            columns.partition(|(_, register)| in_filter.contains(*register));
        let plain = |columns: Vec<(usize, Register)>| {
            columns.into_iter().map(|(column, register)| (column, index(register))).collect()
        };
        let (lock, wait) = locking(table.locking);
        Ok(ScanNode {
            table: TableNode {
                table: TableId(table.table),
                engine: self.exprs.engine(&table.engine)?,
                layout: Layout::new(&table.layout, table.missing.to_vec())
                    .with_entries(table.entries.as_deref()),
                wants_keys: table.entries.is_some(),
                first: plain(first),
                rest: plain(rest),
                locator: table.locator.map(index),
                lock,
                wait,
            },
            access: self.access(table, access)?,
            filter: filter.map(|filter| self.exprs.truth(filter)).transpose()?,
            measured: None,
            is_drained: false,
            all_read: false,
            firsts: table.firsts.as_ref().and_then(|firsts| group_key(table, firsts)),
        })
    }

    fn access(&mut self, table: &TableAccess, access: &Access) -> Result<AccessNode> {
        Ok(match access {
            // Keys without the rows come from a scan of the index.
            Access::Ranges { index, ranges, backward, or_all, keys: true }
                if ranges.len() > 1 && table.entries.is_none() =>
            {
                let keys = ranges.iter().map(|range| self.keys(&range.equal));
                AccessNode::Keys {
                    index: IndexId(*index),
                    keys: keys.collect::<Result<_>>()?,
                    backward: *backward,
                    or_all: *or_all,
                }
            }
            Access::Unique { index, key } => {
                AccessNode::Unique { index: IndexId(*index), key: self.keys(key)? }
            }
            Access::Ranges { index, ranges, backward, or_all, keys: _ } => AccessNode::Ranges {
                or_all: *or_all,
                index: IndexId(*index),
                ranges: Ranges {
                    ranges: ranges.iter().map(|r| self.range(r)).collect::<Result<_>>()?,
                },
                backward: *backward,
            },
            Access::Merge { arms, or_all } => AccessNode::Merge {
                arms: arms.iter().map(|arm| self.arm(arm)).collect::<Result<_>>()?,
                or_all: *or_all,
            },
            Access::Fulltext { search, against } => {
                AccessNode::Fulltext { search: self.exprs.search(search, against)? }
            }
            Access::Walk(walk) => AccessNode::Walk(walk.clone()),
            Access::Full { index, backward } => {
                AccessNode::Full { index: IndexId(*index), backward: *backward }
            }
        })
    }

    fn arm(&mut self, arm: &plan::MergeArm) -> Result<ArmNode> {
        let ranges = arm.ranges.iter().map(|range| self.range(range)).collect::<Result<_>>()?;
        Ok(ArmNode {
            index: IndexId(arm.index),
            ranges: Ranges { ranges },
            condition: self.exprs.truth(&arm.condition)?,
        })
    }

    fn key(&mut self, source: &IndexKeySource) -> Result<KeySource> {
        Ok(KeySource {
            value: self.exprs.expr(&source.value)?,
            from: source.value.ty(),
            ty: source.ty.clone(),
            prefix_length: source.prefix_length,
            descending: source.descending,
            null_safe: source.null_safe,
            is_utc: is_utc(&source.value),
        })
    }

    fn keys(&mut self, sources: &[IndexKeySource]) -> Result<Vec<KeySource>> {
        sources.iter().map(|source| self.key(source)).collect()
    }

    pub(crate) fn range(&mut self, range: &RangeSpec) -> Result<RangeNode> {
        let mut bound = |bound: &Option<RangeBound>| -> Result<Option<(KeySource, bool)>> {
            bound.as_ref().map(|b| Ok((self.key(&b.key)?, b.inclusive))).transpose()
        };
        let (lower, upper) = (bound(&range.lower)?, bound(&range.upper)?);
        Ok(RangeNode { equal: self.keys(&range.equal)?, lower, upper })
    }
}

/// The key of the group that a row belongs to.
fn group_key(table: &TableAccess, firsts: &Firsts) -> Option<Vec<KeySource>> {
    let part = |(column, descending): &(usize, bool)| {
        let (_, register) = table.columns.iter().find(|(known, _)| known == column)?;
        let ty = table.layout.get(*column)?.clone();
        Some(KeySource {
            value: Code::Register(index(*register)),
            from: ty.clone(),
            ty,
            prefix_length: None,
            descending: *descending,
            null_safe: true,
            is_utc: true,
        })
    };
    firsts.parts.iter().map(part).collect()
}
