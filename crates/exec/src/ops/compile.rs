//! From `plan::Physical` to `Node`.

use std::sync::Arc;

use engine_api::RowLock;
use errors::Result;
use plan::{
    AggregateCall, AggregateMode, CastKind, CteId, Expr, GroupSets, JoinKind, Physical, Register,
    RegisterSet, SetOperation, SortKey,
};
use rows::value_key::Domain;
use types::{CollationId, DataType, TypeKind};

use super::aggregate::{AggregateNode, CallNode};
use super::information::InformationNode;
use super::join::{HashJoinNode, HashKey, NestedLoopNode};
use super::json_rows::JsonRowsNode;
use super::lookup_join::{LookupJoinNode, is_one_row, may_run_ahead};
use super::materialize::{PartOutput, RecursiveNode};
use super::node::Node;
use super::scan::{AccessNode, ScanNode};
use super::set::SetNode;
use super::sort::{KeyCode, SortInput, SortNode};
use crate::expr::{Code, Compiler};
use crate::measure::{MeasuredNodes, Measuring};
use crate::operator::Source;
use crate::pipelines::{BatchAggregateNode, BatchGrouping};

/// Compiles operators; wraps the compiler of expressions.
pub(crate) struct NodeCompiler<'a> {
    pub(crate) exprs: Compiler<'a>,
    /// Set when every operator is to be measured.
    pub(crate) measured: Option<MeasuredNodes>,
    /// The reader of the node compiled next may stop before its end.
    pub(crate) may_stop: bool,
    /// Unless the statement ends early, all rows of the node compiled next are read.
    pub(crate) all_read: bool,
}

pub(crate) fn index(register: Register) -> usize {
    register.0 as usize
}

pub(super) fn indexes(registers: &[Register]) -> Vec<usize> {
    registers.iter().copied().map(index).collect()
}

fn typed(columns: &[(Register, DataType)]) -> (Vec<usize>, Vec<DataType>) {
    columns.iter().map(|(register, ty)| (index(*register), ty.clone())).unzip()
}

/// A node whose rows are all read.
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

/// The scan whose rows a node passes through.
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

/// The groups of a `Physical::Aggregate`.
#[derive(Clone, Copy)]
struct Groups<'p> {
    mode: AggregateMode,
    keys: &'p [(Register, Expr)],
    aggregates: &'p [AggregateCall],
    carried: &'p [Register],
    sets: &'p GroupSets,
    grouping: &'p [Option<Register>],
}

/// A grouping, by the batch program where it supports it.
fn grouping_node(row: AggregateNode, batch: Option<BatchGrouping>) -> Node {
    match batch {
        Some(batch) => Node::BatchAggregate(Box::new(BatchAggregateNode { row, batch })),
        None => Node::Aggregate(Box::new(row)),
    }
}

/// Whether a node returns the rows of a grouping, or of DISTINCT, in the order found.
fn is_grouping(plan: &Physical) -> bool {
    match plan {
        Physical::Filter { input, .. } | Physical::Project { input, .. } => is_grouping(input),
        Physical::Aggregate { .. } | Physical::Distinct { .. } => true,
        _ => false,
    }
}

/// Whether rows are equal in `columns` exactly when their sort keys are.
fn decides(keys: &[SortKey], columns: &[(Register, DataType)]) -> bool {
    let is_key = |key: &SortKey, (register, ty): &(Register, DataType)| {
        let as_it_is = matches!(key.expr, Expr::Column { register: own, .. } if own == *register);
        as_it_is && key.expr.ty().collation == ty.collation
    };
    columns.iter().all(|column| keys.iter().any(|key| is_key(key, column)))
        && keys.iter().all(|key| columns.iter().any(|column| is_key(key, column)))
}

/// Whether a TIMESTAMP expression is in UTC: stored columns are, everything else is local time.
pub(crate) fn is_utc(expr: &Expr) -> bool {
    match expr {
        Expr::Column { ty, .. } | Expr::Literal { ty, .. } => ty.kind == TypeKind::Timestamp,
        Expr::Cast { kind, .. } => *kind == CastKind::TimestampToUtc,
        _ => false,
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

    /// Whether each operator does its own work alone, to be measured.
    fn keeps_apart(&self) -> bool {
        let measuring = self.measured.as_ref().map(|measured| measured.measuring);
        measuring == Some(Measuring::OneByOne)
    }

    /// The input of another operator.
    pub(super) fn input(&mut self, plan: &Physical) -> Result<Box<dyn Source>> {
        Ok(Box::new(self.node(plan)?))
    }

    /// A node whose rows are all read if `all_read` says so.
    fn node_read(&mut self, plan: &Physical, all_read: bool) -> Result<Node> {
        self.all_read = all_read;
        self.node(plan)
    }

    fn bare_node(&mut self, plan: &Physical) -> Result<Node> {
        let all_read = std::mem::take(&mut self.all_read);
        match plan {
            Physical::OneRow => Ok(Node::OneRow),
            Physical::Nothing => Ok(Node::Nothing),
            Physical::Scan { table, access, filter } => {
                let scan = self.scan(table, access, filter.as_ref())?;
                Ok(Node::Scan(Box::new(ScanNode { all_read, ..scan })))
            }
            Physical::InformationScan { schema, name, columns, equals, filter } => {
                self.information(schema, name, columns, equals, filter.as_ref())
            }
            Physical::Values { rows, columns } => self.values(rows, columns),
            Physical::JsonRows(rows) => self.json_rows(rows),
            Physical::Filter { input, predicate } => self.filter(input, predicate, all_read),
            Physical::Project { input, columns } => self.project(input, columns, all_read),
            Physical::NestedLoop { kind, outer, inner, condition, inner_columns } => {
                let columns = (condition.as_ref(), inner_columns.as_slice());
                self.nested_loop(*kind, (outer, inner), columns, all_read)
            }
            Physical::HashJoin { kind, outer, inner, keys, condition, inner_columns } => {
                let columns = (condition.as_ref(), inner_columns.as_slice());
                self.hash_join(*kind, (outer, inner), keys, columns, all_read)
            }
            Physical::Aggregate { input, mode, keys, aggregates, carried, sets, grouping } => {
                let groups = Groups { mode: *mode, keys, aggregates, carried, sets, grouping };
                self.grouping(input, &groups)
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
                names,
            } => {
                let (seed, step) = ((&**seed, &**seed_outputs), (&**step, &**step_outputs));
                self.recursive_cte(*id, seed, step, *distinct, (columns, names))
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

    fn filter(&mut self, input: &Physical, predicate: &Expr, all_read: bool) -> Result<Node> {
        Ok(Node::Filter {
            input: Box::new(self.node_read(input, all_read)?),
            predicate: self.exprs.truth(predicate)?,
        })
    }

    fn project(
        &mut self,
        input: &Physical,
        columns: &[(Register, Expr)],
        all_read: bool,
    ) -> Result<Node> {
        let input = Box::new(self.node_read(input, all_read)?);
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
            input: Box::new(self.node_read(input, true)?),
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
        (columns, names): (&[(Register, DataType)], &[Arc<str>]),
    ) -> Result<Node> {
        let (registers, types) = typed(columns);
        let stored = step_outputs.iter().zip(&types).zip(names).map(|((output, ty), name)| {
            let from = output.ty();
            let code = match must_store(&from, ty) {
                false => return self.exprs.unified(output, ty).map(|code| (code, None)),
                true => self.exprs.expr(output)?,
            };
            Ok((code, Some((name.clone(), from))))
        });
        let output = |(code, stored)| PartOutput { code, stored };
        let step_outputs = stored.map(|part| part.map(output)).collect::<Result<_>>()?;
        let seed_outputs = self.outputs(seed_outputs, &types)?.into_iter();
        Ok(Node::RecursiveCte(Box::new(RecursiveNode {
            id,
            seed: self.input(seed)?,
            seed_outputs: seed_outputs.map(|code| output((code, None))).collect(),
            step: self.input(step)?,
            step_outputs,
            distinct,
            columns: registers,
            types,
        })))
    }

    fn grouping(&mut self, input: &Physical, groups: &Groups<'_>) -> Result<Node> {
        let Groups { mode, keys, aggregates, carried, sets, grouping } = *groups;
        // Only the row program stops before the end.
        let may_stop = std::mem::take(&mut self.may_stop) && mode == AggregateMode::Sorted;
        let row = AggregateNode {
            input: Box::new(drained(self.node_read(input, !may_stop)?)),
            mode,
            keys: self.group_keys(keys)?,
            calls: self.aggregates(aggregates)?,
            carried: indexes(carried),
            sets: sets.clone(),
            grouping: grouping.iter().map(|register| register.map(index)).collect(),
            input_registers: self.group_registers(input, keys, aggregates, carried),
        };
        // Only its operators are measured one by one.
        let batch = match !self.keeps_apart() && !may_stop {
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
        (condition, inner_columns): (Option<&Expr>, &[Register]),
        all_read: bool,
    ) -> Result<Node> {
        let outer_node = self.node_read(outer, all_read)?;
        let inner_node = self.node(inner)?;
        let condition = condition.map(|condition| self.exprs.truth(condition)).transpose()?;
        let inner_columns = indexes(inner_columns);
        match inner_node {
            Node::Scan(inner)
                if all_read
                    && matches!(inner.access, AccessNode::Unique { .. })
                    && inner.table.lock == RowLock::None
                    && !is_one_row(outer)
                    && may_run_ahead(outer) =>
            {
                Ok(Node::LookupJoin(Box::new(LookupJoinNode {
                    kind,
                    outer_columns: definitions(outer).iter().map(index).collect(),
                    moves_outer: matches!(outer_node, Node::Scan(_) | Node::LookupJoin(_)),
                    outer: Box::new(outer_node),
                    inner,
                    condition,
                    inner_columns,
                })))
            }
            inner => Ok(Node::NestedLoop(Box::new(NestedLoopNode {
                kind,
                outer: Box::new(outer_node),
                inner: Box::new(inner),
                condition,
                inner_columns,
            }))),
        }
    }

    fn hash_join(
        &mut self,
        kind: JoinKind,
        (outer, inner): (&Physical, &Physical),
        keys: &[(Expr, Expr, CollationId)],
        (condition, inner_columns): (Option<&Expr>, &[Register]),
        all_read: bool,
    ) -> Result<Node> {
        // The inputs first: they name the registers that errors in expressions mention.
        let outer_node = self.node_read(outer, all_read)?;
        let inner_node = self.node_read(inner, true)?;
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
            outer: Box::new(outer_node),
            inner: Box::new(inner_node),
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
            // A measured plan keeps the two steps separate.
            Physical::Distinct { input, columns, .. } if !self.keeps_apart() => {
                Some(&**input).filter(|_| decides(keys, columns))
            }
            _ => None,
        };
        let input = drained(self.node_read(doubles.unwrap_or(input), true)?);
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

    /// DISTINCT as a grouping without calls, where the batch program supports it and all rows are wanted.
    fn distinct_groups(
        &mut self,
        input: &Physical,
        columns: &[(Register, DataType)],
        keeps_order: bool,
    ) -> Result<Option<Node>> {
        if std::mem::take(&mut self.may_stop) || keeps_order || self.keeps_apart() {
            return Ok(None);
        }
        let key = |(register, ty): &(Register, DataType)| {
            (*register, Expr::Column { register: *register, ty: ty.clone() })
        };
        let keys: Vec<(Register, Expr)> = columns.iter().map(key).collect();
        let row = AggregateNode {
            keys: self.group_keys(&keys)?,
            input: Box::new(drained(self.node_read(input, true)?)),
            mode: AggregateMode::Hash,
            calls: Vec::new(),
            carried: Vec::new(),
            sets: GroupSets::One,
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
    pub(super) fn is_correlated(&self, plan: &Physical) -> bool {
        let subqueries = self.exprs.subqueries;
        let outer = |id: plan::SubqueryId| {
            subqueries.get(id.0 as usize).map_or(&[] as &[Register], |query| query.outer.as_slice())
        };
        let (mut read, mut set) = (RegisterSet::new(), RegisterSet::new());
        add_reads(plan, &outer, &mut read);
        plan.add_definitions(&mut set);
        !read.is_subset(&set)
    }

    pub(super) fn sort_keys(&mut self, keys: &[SortKey]) -> Result<Vec<KeyCode>> {
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
}

/// Whether values of one type may not fit a column of another: those that fit need only its representation.
fn must_store(from: &DataType, to: &DataType) -> bool {
    let both = |is: fn(&DataType) -> bool| is(from) && is(to);
    if both(DataType::is_string) {
        return from.length > to.length;
    }
    if both(DataType::is_integer) {
        return from.length > to.length || from.unsigned != to.unsigned;
    }
    from.kind != TypeKind::Null
        && to.kind != TypeKind::Timestamp
        && (from.kind, from.length, from.decimals) != (to.kind, to.length, to.decimals)
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
