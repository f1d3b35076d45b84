//! From `plan::Physical` to `Node`.

use std::sync::Arc;

use engine_api::{IndexId, RowLock, TableId, WaitPolicy};
use errors::{Error, ErrorCode, Result};
use plan::{
    Access, AggregateCall, AggregateMode, BinaryOp, CastKind, CteId, Expr, FrameBound, FrameUnit,
    IndexKeySource, JoinKind, Physical, RangeBound, RangeSpec, Register, RegisterSet, RowLocking,
    SetOperation, SortKey, TableAccess, WindowCall,
};
use plugin_api::BoundAggregate;
use rows::arguments::{arg_infos, trimmed};
use rows::layout::Layout;
use rows::value_key::Domain;
use types::{AggregateRole, CollationId, DataType, TypeKind};

use super::aggregate::{AggregateNode, CallKind, CallNode};
use super::information::InformationNode;
use super::join::{HashJoinNode, HashKey, NestedLoopNode};
use super::json_rows::JsonRowsNode;
use super::keys::{KeySource, RangeNode, Ranges};
use super::materialize::RecursiveNode;
use super::node::Node;
use super::scan::{AccessNode, ArmNode, ScanNode, TableNode};
use super::set::SetNode;
use super::sort::{KeyCode, SortInput, SortNode};
use super::window::{Bound, WindowCallNode, WindowFunction, WindowNode};
use crate::expr::{Code, Comparison, Compiler, comparator, unify_code};
use crate::measure::MeasuredNodes;
use crate::operator::Source;
use crate::pipelines::{BatchAggregateNode, BatchGrouping};

/// Compiles operators; wraps the compiler of expressions.
pub(crate) struct NodeCompiler<'a> {
    pub(crate) exprs: Compiler<'a>,
    /// Set when every operator is to be measured.
    pub(crate) measured: Option<MeasuredNodes>,
    /// Whoever reads the node compiled next may stop before its end.
    pub(crate) may_stop: bool,
}

pub(crate) fn index(register: Register) -> usize {
    register.0 as usize
}

fn indexes(registers: &[Register]) -> Vec<usize> {
    registers.iter().copied().map(index).collect()
}

fn typed(columns: &[(Register, DataType)]) -> (Vec<usize>, Vec<DataType>) {
    columns.iter().map(|(register, ty)| (index(*register), ty.clone())).unzip()
}

/// A node of which all rows are read.
fn drained(mut node: Node) -> Node {
    let mut at = &mut node;
    loop {
        at = match at {
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Measured { input, .. } => input,
            Node::Scan(scan) => {
                scan.is_drained = true;
                return node;
            }
            _ => return node,
        };
    }
}

/// The scan whose rows a node passes on.
fn scan_below(mut node: &Node) -> Option<&ScanNode> {
    loop {
        node = match node {
            Node::Filter { input, .. }
            | Node::Project { input, .. }
            | Node::Measured { input, .. } => input,
            Node::Scan(scan) => return Some(scan),
            _ => return None,
        };
    }
}

/// What `Physical::Aggregate` says of its groups.
#[derive(Clone, Copy)]
struct Groups<'p> {
    mode: AggregateMode,
    keys: &'p [(Register, Expr)],
    aggregates: &'p [AggregateCall],
    carried: &'p [Register],
    grouping: &'p [Option<Register>],
}

/// A grouping, by the batch program where that can do it.
fn grouping_node(row: AggregateNode, batch: Option<BatchGrouping>) -> Node {
    match batch {
        Some(batch) => Node::BatchAggregate(Box::new(BatchAggregateNode { row, batch })),
        None => Node::Aggregate(Box::new(row)),
    }
}

/// Whether a node gives the rows of a grouping, or of DISTINCT, as they are found.
fn is_grouping(plan: &Physical) -> bool {
    match plan {
        Physical::Filter { input, .. } | Physical::Project { input, .. } => is_grouping(input),
        Physical::Aggregate { .. } | Physical::Distinct { .. } => true,
        _ => false,
    }
}

/// Whether rows are equal in `columns` exactly when they are in the sort keys.
fn decides(keys: &[SortKey], columns: &[(Register, DataType)]) -> bool {
    let is_key = |key: &SortKey, (register, ty): &(Register, DataType)| {
        let as_it_is = matches!(key.expr, Expr::Column { register: own, .. } if own == *register);
        as_it_is && key.expr.ty().collation == ty.collation
    };
    columns.iter().all(|column| keys.iter().any(|key| is_key(key, column)))
        && keys.iter().all(|key| columns.iter().any(|column| is_key(key, column)))
}

/// Whether a TIMESTAMP expression gives UTC: columns as stored do, everything else is local time.
pub(crate) fn is_utc(expr: &Expr) -> bool {
    match expr {
        Expr::Column { ty, .. } | Expr::Literal { ty, .. } => ty.kind == TypeKind::Timestamp,
        Expr::Cast { kind, .. } => *kind == CastKind::TimestampToUtc,
        _ => false,
    }
}

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

impl<'a> NodeCompiler<'a> {
    pub(crate) fn node(&mut self, plan: &Physical) -> Result<Node> {
        let mut node = self.bare_node(plan)?;
        let Some(measured) = &mut self.measured else { return Ok(node) };
        let place = measured.add(plan);
        if let Node::Scan(scan) = &mut node {
            scan.measured = Some(place);
        }
        Ok(Node::Measured { place, input: Box::new(node) })
    }

    /// The input of another operator.
    fn input(&mut self, plan: &Physical) -> Result<Box<dyn Source>> {
        Ok(Box::new(self.node(plan)?))
    }

    fn bare_node(&mut self, plan: &Physical) -> Result<Node> {
        match plan {
            Physical::OneRow => Ok(Node::OneRow),
            Physical::Nothing => Ok(Node::Nothing),
            Physical::Scan { table, access, filter } => {
                Ok(Node::Scan(Box::new(self.scan(table, access, filter.as_ref())?)))
            }
            Physical::InformationScan { schema, name, columns, equals, filter } => {
                self.information(schema, name, columns, equals, filter.as_ref())
            }
            Physical::Values { rows, columns } => self.values(rows, columns),
            Physical::JsonRows(rows) => self.json_rows(rows),
            Physical::Filter { input, predicate } => self.filter(input, predicate),
            Physical::Project { input, columns } => self.project(input, columns),
            Physical::NestedLoop { kind, outer, inner, condition, inner_columns } => {
                self.nested_loop(*kind, (outer, inner), condition.as_ref(), inner_columns)
            }
            Physical::HashJoin { kind, outer, inner, keys, condition, inner_columns } => {
                self.hash_join(*kind, (outer, inner), keys, condition.as_ref(), inner_columns)
            }
            Physical::Aggregate { input, mode, keys, aggregates, carried, rollup, grouping } => {
                let groups = Groups { mode: *mode, keys, aggregates, carried, grouping };
                self.grouping(input, &groups, *rollup)
            }
            Physical::Window { input, partition_by, order_by, calls, columns } => {
                self.window(input, partition_by, order_by, calls, columns)
            }
            Physical::Sort { input, keys, limit, columns } => {
                self.sort(input, keys, limit.as_ref(), columns)
            }
            Physical::Distinct { input, columns, keeps_order } => {
                self.distinct(input, columns, *keeps_order)
            }
            Physical::Limit { input, limit, offset, count_all } => {
                self.limit(input, limit.as_ref(), offset.as_ref(), *count_all)
            }
            Physical::SetOperation { operation, inputs, columns } => {
                self.set_operation(*operation, inputs, columns)
            }
            Physical::Materialize { id, input, outputs, columns, correlated } => {
                self.materialize(*id, (input, outputs), columns, *correlated)
            }
            Physical::CteScan { id, columns } => {
                Ok(Node::CteScan { id: *id, columns: typed(columns).0 })
            }
            Physical::RecursiveCte {
                id,
                seed,
                seed_outputs,
                step,
                step_outputs,
                distinct,
                columns,
            } => {
                let (seed, step) = ((&**seed, &**seed_outputs), (&**step, &**step_outputs));
                self.recursive_cte(*id, seed, step, *distinct, columns)
            }
        }
    }

    fn values(&mut self, rows: &[Vec<Expr>], columns: &[Register]) -> Result<Node> {
        Ok(Node::Values {
            rows: rows.iter().map(|row| self.exprs.exprs(row)).collect::<Result<_>>()?,
            columns: indexes(columns),
        })
    }

    fn json_rows(&mut self, rows: &plan::JsonRows) -> Result<Node> {
        let document = self.exprs.expr(&rows.document)?;
        Ok(Node::JsonRows(Box::new(JsonRowsNode::new(rows, document)?)))
    }

    fn filter(&mut self, input: &Physical, predicate: &Expr) -> Result<Node> {
        Ok(Node::Filter {
            input: Box::new(self.node(input)?),
            predicate: self.exprs.truth(predicate)?,
        })
    }

    fn project(&mut self, input: &Physical, columns: &[(Register, Expr)]) -> Result<Node> {
        let input = Box::new(self.node(input)?);
        let columns =
            columns.iter().map(|(register, expr)| Ok((index(*register), self.exprs.expr(expr)?)));
        Ok(Node::Project { input, columns: columns.collect::<Result<_>>()? })
    }

    fn limit(
        &mut self,
        input: &Physical,
        limit: Option<&Expr>,
        offset: Option<&Expr>,
        count_all: bool,
    ) -> Result<Node> {
        self.may_stop = !count_all && is_grouping(input);
        Ok(Node::Limit {
            input: Box::new(self.node(input)?),
            limit: self.exprs.option(limit)?,
            offset: self.exprs.option(offset)?,
            count_all,
        })
    }

    fn materialize(
        &mut self,
        id: CteId,
        (input, outputs): (&Physical, &[Expr]),
        columns: &[(Register, DataType)],
        correlated: bool,
    ) -> Result<Node> {
        let (registers, types) = typed(columns);
        Ok(Node::Materialize {
            id,
            input: Box::new(self.node(input)?),
            outputs: self.outputs(outputs, &types)?,
            columns: registers,
            correlated,
        })
    }

    fn recursive_cte(
        &mut self,
        id: CteId,
        (seed, seed_outputs): (&Physical, &[Expr]),
        (step, step_outputs): (&Physical, &[Expr]),
        distinct: bool,
        columns: &[(Register, DataType)],
    ) -> Result<Node> {
        let (registers, types) = typed(columns);
        Ok(Node::RecursiveCte(Box::new(RecursiveNode {
            id,
            seed: self.input(seed)?,
            seed_outputs: self.outputs(seed_outputs, &types)?,
            step: self.input(step)?,
            step_outputs: self.outputs(step_outputs, &types)?,
            distinct,
            columns: registers,
            types,
        })))
    }

    fn grouping(&mut self, input: &Physical, groups: &Groups<'_>, rollup: bool) -> Result<Node> {
        let Groups { mode, keys, aggregates, carried, grouping } = *groups;
        // Only the row program stops before the end.
        let may_stop = std::mem::take(&mut self.may_stop) && mode == AggregateMode::Sorted;
        let row = AggregateNode {
            input: Box::new(drained(self.node(input)?)),
            mode,
            keys: self.group_keys(keys)?,
            calls: self.aggregates(aggregates)?,
            carried: indexes(carried),
            rollup,
            grouping: grouping.iter().map(|register| register.map(index)).collect(),
            input_registers: self.group_registers(input, keys, aggregates, carried),
        };
        // Only its operators are measured one by one.
        let batch = match self.measured.is_none() && !may_stop {
            true => BatchGrouping::compile(self, input, keys, aggregates, &row),
            false => None,
        };
        Ok(grouping_node(row, batch))
    }

    fn information(
        &mut self,
        schema: &Arc<str>,
        name: &Arc<str>,
        columns: &[(usize, Register)],
        equals: &[(Arc<str>, Expr)],
        filter: Option<&Expr>,
    ) -> Result<Node> {
        let equals = equals
            .iter()
            .map(|(column, expr)| Ok((column.clone(), self.exprs.expr(expr)?, expr.ty())));
        let equals = equals.collect::<Result<Vec<_>>>()?;
        Ok(Node::Information(Box::new(InformationNode {
            schema: schema.clone(),
            name: name.clone(),
            columns: columns.iter().map(|(column, register)| (*column, index(*register))).collect(),
            equals,
            filter: filter.map(|filter| self.exprs.truth(filter)).transpose()?,
        })))
    }

    fn nested_loop(
        &mut self,
        kind: JoinKind,
        (outer, inner): (&Physical, &Physical),
        condition: Option<&Expr>,
        inner_columns: &[Register],
    ) -> Result<Node> {
        Ok(Node::NestedLoop(Box::new(NestedLoopNode {
            kind,
            outer: self.input(outer)?,
            inner: self.input(inner)?,
            condition: condition.map(|condition| self.exprs.truth(condition)).transpose()?,
            inner_columns: indexes(inner_columns),
        })))
    }

    fn hash_join(
        &mut self,
        kind: JoinKind,
        (outer, inner): (&Physical, &Physical),
        keys: &[(Expr, Expr, CollationId)],
        condition: Option<&Expr>,
        inner_columns: &[Register],
    ) -> Result<Node> {
        // The inputs first: they name the registers that errors in expressions mention.
        let (outer_node, inner_node) = (self.input(outer)?, self.input(inner)?);
        let keys = keys.iter().map(|(outer, inner, collation)| {
            Ok(HashKey {
                domain: Domain::new(&outer.ty(), &inner.ty(), *collation),
                outer: self.exprs.expr(outer)?,
                inner: self.exprs.expr(inner)?,
            })
        });
        let keys = keys.collect::<Result<_>>()?;
        Ok(Node::HashJoin(Box::new(HashJoinNode {
            kind,
            correlated: self.is_correlated(inner),
            outer_columns: definitions(outer).iter().map(index).collect(),
            outer: outer_node,
            inner: inner_node,
            keys,
            condition: condition.map(|condition| self.exprs.truth(condition)).transpose()?,
            inner_columns: indexes(inner_columns),
        })))
    }

    fn aggregates(&mut self, calls: &[AggregateCall]) -> Result<Vec<CallNode>> {
        calls.iter().map(|call| self.aggregate(call)).collect()
    }

    fn group_keys(&mut self, keys: &[(Register, Expr)]) -> Result<Vec<(usize, Code, DataType)>> {
        keys.iter()
            .map(|(register, expr)| Ok((index(*register), self.exprs.expr(expr)?, expr.ty())))
            .collect()
    }

    fn sort(
        &mut self,
        input: &Physical,
        keys: &[SortKey],
        limit: Option<&Expr>,
        columns: &[Register],
    ) -> Result<Node> {
        let doubles = match input {
            // Measured, the two steps are told apart.
            Physical::Distinct { input, columns, .. } if self.measured.is_none() => {
                Some(&**input).filter(|_| decides(keys, columns))
            }
            _ => None,
        };
        let input = drained(self.node(doubles.unwrap_or(input))?);
        Ok(Node::Sort(Box::new(SortNode {
            reads_ranges: scan_below(&input).is_some_and(ScanNode::reads_ranges),
            input: match input {
                Node::Scan(scan) => SortInput::Scan(scan),
                rows => SortInput::Rows(Box::new(rows)),
            },
            keys: self.sort_keys(keys)?,
            limit: self.exprs.option(limit)?,
            columns: indexes(columns),
            distinct: doubles.is_some(),
        })))
    }

    fn distinct(
        &mut self,
        input: &Physical,
        columns: &[(Register, DataType)],
        keeps_order: bool,
    ) -> Result<Node> {
        if let Some(groups) = self.distinct_groups(input, columns, keeps_order)? {
            return Ok(groups);
        }
        Ok(Node::Distinct {
            keeps_order,
            input: Box::new(self.node(input)?),
            columns: columns.iter().map(|(r, ty)| (index(*r), ty.clone())).collect(),
        })
    }

    fn set_operation(
        &mut self,
        operation: SetOperation,
        inputs: &[(Physical, Vec<Expr>)],
        columns: &[(Register, DataType)],
    ) -> Result<Node> {
        let (registers, types) = typed(columns);
        let inputs = inputs
            .iter()
            .map(|(input, outputs)| Ok((self.input(input)?, self.outputs(outputs, &types)?)))
            .collect::<Result<_>>()?;
        let columns = registers.iter().copied().zip(types.iter().cloned()).collect();
        let set = Node::Set(Box::new(SetNode { operation, inputs, columns: registers, types }));
        Ok(match operation {
            SetOperation::UnionDistinct => {
                Node::Distinct { input: Box::new(set), columns, keeps_order: false }
            }
            SetOperation::UnionAll
            | SetOperation::IntersectAll
            | SetOperation::IntersectDistinct
            | SetOperation::ExceptAll
            | SetOperation::ExceptDistinct => set,
        })
    }

    /// DISTINCT as a grouping without calls, where the batch program can do that and all rows are wanted.
    fn distinct_groups(
        &mut self,
        input: &Physical,
        columns: &[(Register, DataType)],
        keeps_order: bool,
    ) -> Result<Option<Node>> {
        if std::mem::take(&mut self.may_stop) || keeps_order || self.measured.is_some() {
            return Ok(None);
        }
        let key = |(register, ty): &(Register, DataType)| {
            (*register, Expr::Column { register: *register, ty: ty.clone() })
        };
        let keys: Vec<(Register, Expr)> = columns.iter().map(key).collect();
        let row = AggregateNode {
            keys: self.group_keys(&keys)?,
            input: Box::new(drained(self.node(input)?)),
            mode: AggregateMode::Hash,
            calls: Vec::new(),
            carried: Vec::new(),
            rollup: false,
            grouping: vec![None; keys.len()],
            input_registers: self.group_registers(input, &keys, &[], &[]),
        };
        let batch = BatchGrouping::compile(self, input, &keys, &[], &row);
        Ok(batch.map(|batch| grouping_node(row, Some(batch))))
    }

    /// Registers of the input that a grouping reads, and the carried ones.
    fn group_registers(
        &self,
        input: &Physical,
        keys: &[(Register, Expr)],
        aggregates: &[AggregateCall],
        carried: &[Register],
    ) -> Vec<usize> {
        let subqueries = self.exprs.subqueries;
        let outer = |id: plan::SubqueryId| {
            subqueries.get(id.0 as usize).map_or(&[] as &[Register], |query| query.outer.as_slice())
        };
        let mut read: RegisterSet = carried.iter().copied().collect();
        let calls = aggregates
            .iter()
            .flat_map(|call| call.args.iter().chain(call.order_by.iter().map(|key| &key.expr)));
        for expr in keys.iter().map(|(_, expr)| expr).chain(calls) {
            expr.add_registers(&outer, &mut read);
        }
        let set = definitions(input);
        set.iter().filter(|register| read.contains(*register)).map(index).collect()
    }

    /// Output expressions in the representation of the columns.
    pub(crate) fn outputs(&mut self, outputs: &[Expr], types: &[DataType]) -> Result<Vec<Code>> {
        let pairs = outputs.iter().zip(types);
        pairs.map(|(output, ty)| self.exprs.unified(output, ty)).collect()
    }

    /// Whether the operator reads registers that nothing below it sets.
    fn is_correlated(&self, plan: &Physical) -> bool {
        let subqueries = self.exprs.subqueries;
        let outer = |id: plan::SubqueryId| {
            subqueries.get(id.0 as usize).map_or(&[] as &[Register], |query| query.outer.as_slice())
        };
        let (mut read, mut set) = (RegisterSet::new(), RegisterSet::new());
        add_reads(plan, &outer, &mut read);
        plan.add_definitions(&mut set);
        !read.is_subset(&set)
    }

    fn scan(
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
            access: match access {
                Access::Unique { index, key } => {
                    AccessNode::Unique { index: IndexId(*index), key: self.keys(key)? }
                }
                Access::Ranges { index, ranges, backward, or_all } => AccessNode::Ranges {
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
                Access::Full { index, backward } => {
                    AccessNode::Full { index: IndexId(*index), backward: *backward }
                }
            },
            filter: filter.map(|filter| self.exprs.truth(filter)).transpose()?,
            measured: None,
            is_drained: false,
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

    fn sort_keys(&mut self, keys: &[SortKey]) -> Result<Vec<KeyCode>> {
        keys.iter()
            .map(|key| {
                Ok(KeyCode {
                    code: self.exprs.expr(&key.expr)?,
                    collation: key.expr.ty().collation,
                    descending: key.descending,
                })
            })
            .collect()
    }

    fn bound_aggregate(
        &self,
        name: &str,
        args: &[Expr],
        separator: Option<&[u8]>,
    ) -> Result<BoundAggregate> {
        let function = self
            .exprs
            .registry
            .aggregate(name)
            .ok_or_else(|| Error::with(ErrorCode::SP_DOES_NOT_EXIST, &[&"FUNCTION", &name]))?;
        (function.bind)(self.exprs.bind, &arg_infos(args), separator)
    }

    fn aggregate(&mut self, call: &AggregateCall) -> Result<CallNode> {
        let function =
            self.bound_aggregate(call.function.name, &call.args, call.separator.as_deref())?;
        let order_by = self.sort_keys(&call.order_by)?;
        self.call(function, call.function.role, &call.args, call.distinct, order_by, call.output)
    }

    fn call(
        &mut self,
        function: BoundAggregate,
        role: AggregateRole,
        args: &[Expr],
        distinct: bool,
        order_by: Vec<KeyCode>,
        output: Register,
    ) -> Result<CallNode> {
        let kind = match (role, args) {
            _ if distinct || !order_by.is_empty() => CallKind::Plugin,
            (AggregateRole::Count, []) => CallKind::CountAll,
            (AggregateRole::Count, [_]) => CallKind::Count,
            (AggregateRole::Sum, [arg]) if arg.ty().is_integer() => CallKind::SumInteger,
            _ => CallKind::Plugin,
        };
        let coercion = |at: usize| {
            let all = &function.coercions;
            all.get(at).or(all.last()).cloned().unwrap_or(plugin_api::Coercion::AsIs)
        };
        let args = args
            .iter()
            .enumerate()
            .map(|(at, arg)| {
                Ok((self.exprs.expr(arg)?, arg.ty(), trimmed(coercion(at), &arg.ty())))
            })
            .collect::<Result<_>>()?;
        Ok(CallNode { kind, args, distinct, order_by, output: index(output), function })
    }

    fn window(
        &mut self,
        input: &Physical,
        partition_by: &[Expr],
        order_by: &[SortKey],
        calls: &[WindowCall],
        columns: &[Register],
    ) -> Result<Node> {
        let input = self.input(input)?;
        let ascending = |expr: &Expr| SortKey { expr: expr.clone(), descending: false };
        let partition_by: Vec<SortKey> = partition_by.iter().map(ascending).collect();
        let scratch = self.exprs.new_register();
        let calls = calls
            .iter()
            .map(|call| self.window_call(call, order_by, scratch))
            .collect::<Result<_>>()?;
        Ok(Node::Window(Box::new(WindowNode {
            input,
            partition_by: self.sort_keys(&partition_by)?,
            order_by: self.sort_keys(order_by)?,
            calls,
            columns: indexes(columns),
            scratch,
        })))
    }

    fn window_call(
        &mut self,
        call: &WindowCall,
        order_by: &[SortKey],
        scratch: usize,
    ) -> Result<WindowCallNode> {
        let function = match call.function {
            plan::WindowFunction::RowNumber => WindowFunction::RowNumber,
            plan::WindowFunction::Rank => WindowFunction::Rank,
            plan::WindowFunction::DenseRank => WindowFunction::DenseRank,
            plan::WindowFunction::PercentRank => WindowFunction::PercentRank,
            plan::WindowFunction::CumeDist => WindowFunction::CumeDist,
            plan::WindowFunction::Ntile => WindowFunction::Ntile,
            plan::WindowFunction::Lead => WindowFunction::Lead,
            plan::WindowFunction::Lag => WindowFunction::Lag,
            plan::WindowFunction::FirstValue => WindowFunction::FirstValue,
            plan::WindowFunction::LastValue => WindowFunction::LastValue,
            plan::WindowFunction::NthValue => WindowFunction::NthValue,
            plan::WindowFunction::Aggregate(aggregate) => {
                let function = self.bound_aggregate(aggregate.name, &call.args, None)?;
                let role = aggregate.role;
                let call = self.call(function, role, &call.args, false, Vec::new(), call.output)?;
                WindowFunction::Aggregate(Box::new(call))
            }
        };
        let unit = call.frame.unit;
        Ok(WindowCallNode {
            function,
            args: call
                .args
                .iter()
                .enumerate()
                .map(|(at, arg)| match at {
                    // LEAD and LAG: the default has the type of the result.
                    0 | 2 => Ok(unify_code(self.exprs.expr(arg)?, arg.ty(), &call.ty)),
                    _ => self.exprs.expr(arg),
                })
                .collect::<Result<_>>()?,
            arg_types: call.args.iter().map(Expr::ty).collect(),
            unit,
            start: self.frame_bound(&call.frame.start, unit, order_by, scratch, true)?,
            end: self.frame_bound(&call.frame.end, unit, order_by, scratch, false)?,
            output: index(call.output),
        })
    }

    fn frame_bound(
        &mut self,
        bound: &FrameBound,
        unit: FrameUnit,
        order_by: &[SortKey],
        scratch: usize,
        is_start: bool,
    ) -> Result<Bound> {
        let (distance, preceding) = match bound {
            FrameBound::UnboundedPreceding | FrameBound::UnboundedFollowing => {
                return Ok(Bound::Unbounded);
            }
            FrameBound::CurrentRow => return Ok(Bound::CurrentRow),
            FrameBound::Preceding(distance) => (distance, true),
            FrameBound::Following(distance) => (distance, false),
        };
        if unit == FrameUnit::Rows {
            return Ok(Bound::Rows { distance: self.exprs.expr(distance)?, preceding });
        }
        let [key] = order_by else {
            return Err(Error::with(ErrorCode(3587), &[&"<unnamed window>"]));
        };
        // The binder has moved the order value already: the expression is the limit itself.
        let (ty, limit_ty) = (key.expr.ty(), distance.ty());
        let op = if is_start != key.descending {
            BinaryOp::GreaterOrEqual
        } else {
            BinaryOp::LessOrEqual
        };
        Ok(Bound::Range {
            limit: self.exprs.expr(distance)?,
            nulls_last: key.descending,
            inside: Box::new(Comparison {
                op,
                left: self.exprs.expr(&key.expr)?,
                right: Code::Register(scratch),
                comparator: comparator(&ty, &limit_ty, CollationId::BINARY),
            }),
        })
    }
}

/// Registers that an operator or one below it sets.
fn definitions(plan: &Physical) -> RegisterSet {
    let mut set = RegisterSet::new();
    plan.add_definitions(&mut set);
    set
}

fn add_reads<'p>(
    plan: &'p Physical,
    outer: &dyn Fn(plan::SubqueryId) -> &'p [Register],
    set: &mut RegisterSet,
) {
    plan.for_each_expr(&mut |expr| expr.add_registers(outer, set));
    plan.for_each_input(&mut |input| add_reads(input, outer, set));
}
