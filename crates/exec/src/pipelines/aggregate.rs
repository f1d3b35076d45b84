//! Grouping by the batch program, with the row program as its fallback.

use std::cmp::Ordering;

use batch::{
    Batch, BatchExpr, Column, Env, Fit, Grouped, Line, Operand, Rollup, StateKind, StateResult,
    States, Unfit,
};
use budget::SharedMemory;
use errors::Result;
use plan::{AggregateCall, AggregateMode, Expr, GroupSets, Physical, Register};
use plugin_api::Coercion;
use types::{AggregateRole, CollationId, Decimal, TypeKind, Value};

use super::pipeline::{Pipeline, PipelineCompiler, Sink};
use crate::operator::{Operator, Source};
use crate::ops::{AggregateNode, CallKind, Live, NodeCompiler};
use crate::run::Run;

/// A grouping that both programs can do.
pub(crate) struct BatchAggregateNode {
    pub(crate) row: AggregateNode,
    pub(crate) batch: BatchGrouping,
}

impl Source for BatchAggregateNode {
    fn build<'r>(&'r self) -> Box<dyn Operator<'r> + 'r> {
        Box::new(BatchAggregate::new(&self.row, &self.batch))
    }
}

/// The data that the batch program needs in addition to the row program's node.
pub(crate) struct BatchGrouping {
    pipeline: Pipeline,
    keys: Vec<BatchExpr>,
    collations: Vec<CollationId>,
    carried: Vec<BatchExpr>,
    calls: Vec<(StateKind, Option<BatchExpr>)>,
}

/// The state of a call; `None` when only the row program supports it.
fn state_kind(call: &AggregateCall, coercions: &[Coercion]) -> Option<StateKind> {
    if !call.order_by.is_empty() {
        return None;
    }
    let role = call.function.role;
    let [arg] = call.args.as_slice() else {
        return (role == AggregateRole::Count && call.args.is_empty()).then_some(StateKind::Count);
    };
    let ty = arg.ty();
    if coercions.iter().any(|coercion| *coercion != Coercion::AsIs) && role != AggregateRole::Count
    {
        return None;
    }
    let is_member = matches!(ty.kind, TypeKind::Enum | TypeKind::Set);
    if role == AggregateRole::Count {
        return match call.distinct {
            false => Some(StateKind::Count),
            // Members of ENUM and SET are numbers in the batch program.
            true if is_member => None,
            true => Some(StateKind::CountDistinct(ty.collation)),
        };
    }
    let extreme = |wanted| (!is_member).then_some(StateKind::Extreme(wanted, ty.collation));
    if role == AggregateRole::Minimum {
        return extreme(Ordering::Less);
    }
    if role == AggregateRole::Maximum {
        return extreme(Ordering::Greater);
    }
    if !matches!(role, AggregateRole::Sum | AggregateRole::Average) {
        return None;
    }
    let is_exact = ty.is_integer() || ty.kind == TypeKind::Decimal;
    match call.distinct {
        true => is_exact.then_some(StateKind::SumDistinct),
        false if is_exact => Some(StateKind::Sum),
        false => (ty.kind == TypeKind::Double).then_some(StateKind::SumDouble),
    }
}

impl BatchGrouping {
    /// Compiles a grouping that the batch program supports. `row`: the row program's node.
    pub(crate) fn compile(
        nodes: &mut NodeCompiler<'_>,
        input: &Physical,
        keys: &[(Register, Expr)],
        aggregates: &[AggregateCall],
        row: &AggregateNode,
    ) -> Option<BatchGrouping> {
        if matches!(row.sets, GroupSets::Listed(_)) {
            return None;
        }
        let input = match input {
            // Levels are built from the groups, and sorted here.
            Physical::Sort { input, limit: None, .. } if row.is_rollup() => input,
            input => input,
        };
        let mut kinds = Vec::with_capacity(aggregates.len());
        for (call, node) in aggregates.iter().zip(&row.calls) {
            let coercions: Vec<_> = node.args.iter().map(|(_, _, c)| c.clone()).collect();
            let kind = state_kind(call, &coercions)?;
            if row.is_rollup() && kind == StateKind::SumDouble {
                return None;
            }
            kinds.push(kind);
        }
        let (mut compiler, parts) = PipelineCompiler::new(nodes).pipeline(input)?;
        let keys_of = |compiler: &mut PipelineCompiler<'_, '_>| {
            keys.iter().map(|(_, key)| compiler.expr(key)).collect::<Option<Vec<_>>>()
        };
        let key_exprs = keys_of(&mut compiler)?;
        let carried = row.carried.iter().map(|register| {
            let slot = compiler.slot(Register(*register as u32))?;
            Some(BatchExpr::Column(slot))
        });
        let carried = carried.collect::<Option<Vec<_>>>()?;
        let mut calls = Vec::with_capacity(kinds.len());
        for (kind, call) in kinds.into_iter().zip(aggregates) {
            let arg = match call.args.first() {
                Some(arg) => Some(compiler.expr(arg)?),
                None => None,
            };
            calls.push((kind, arg));
        }
        Some(BatchGrouping {
            pipeline: compiler.finish(parts),
            keys: key_exprs,
            collations: keys.iter().map(|(_, key)| key.ty().collation).collect(),
            carried,
            calls,
        })
    }

    fn kinds(&self) -> Vec<StateKind> {
        self.calls.iter().map(|(kind, _)| *kind).collect()
    }

    /// All groups in the order of their first rows.
    fn groups(&self, run: &mut Run<'_>) -> Fit<Grouped> {
        let kinds = self.kinds();
        let ordered = kinds.contains(&StateKind::SumDouble);
        let memory = SharedMemory::within(&run.memory);
        let sinks = self.pipeline.run(ordered, run, || GroupSink {
            node: self,
            grouped: Grouped::new(&self.collations, &kinds, !self.keys.is_empty()),
            charged: 0,
            memory: &memory,
        })?;
        let parts = sinks.into_iter().map(|sink| sink.grouped).collect();
        Grouped::merged(parts)
    }
}

/// One thread's groups.
struct GroupSink<'n> {
    node: &'n BatchGrouping,
    grouped: Grouped,
    charged: usize,
    memory: &'n SharedMemory<'n>,
}

impl Sink for GroupSink<'_> {
    fn take(&mut self, batch: &Batch, env: &Env<'_>, position: u64) -> Fit<()> {
        let rows = batch.rows;
        let eval = |expr: &BatchExpr| -> Fit<Operand<'_>> {
            let value = match expr {
                BatchExpr::Column(slot) => {
                    Operand::Column(std::borrow::Cow::Borrowed(batch.column(*slot)?))
                }
                expr => Operand::Column(std::borrow::Cow::Owned(
                    expr.eval(batch, env)?.into_column(rows)?,
                )),
            };
            Ok(value)
        };
        let node = self.node;
        let kept = node.keys.iter().chain(&node.carried).map(eval).collect::<Fit<Vec<_>>>()?;
        let args = node.calls.iter().map(|(_, arg)| arg.as_ref().map(eval).transpose());
        let args = args.collect::<Fit<Vec<_>>>()?;
        let kept: Vec<&Column> = kept.iter().map(Operand::source).collect();
        let args: Vec<Option<&Column>> =
            args.iter().map(|arg| arg.as_ref().map(Operand::source)).collect();
        self.grouped.update(rows, position, &kept, &args)?;
        self.charge()
    }
}

impl GroupSink<'_> {
    fn charge(&mut self) -> Fit<()> {
        let bytes = self.grouped.heap_bytes();
        if bytes > self.charged {
            let more = bytes - self.charged;
            if !self.memory.take(more) {
                return Err(Unfit);
            }
            self.charged = bytes;
        }
        Ok(())
    }
}

/// A running grouping.
struct BatchAggregate<'r> {
    node: &'r AggregateNode,
    batch: &'r BatchGrouping,
    grouped: Option<Grouped>,
    /// WITH ROLLUP: for each number of live keys the states of its groups.
    levels: Vec<Vec<States>>,
    /// Groups in the order of their first rows; with higher levels in the order of keys.
    order: Vec<Line>,
    at: usize,
    bytes: usize,
    /// The row program, when it has to do the work.
    row: Option<Box<dyn Operator<'r> + 'r>>,
}

impl<'r> BatchAggregate<'r> {
    fn new(node: &'r AggregateNode, batch: &'r BatchGrouping) -> BatchAggregate<'r> {
        BatchAggregate {
            node,
            batch,
            grouped: None,
            levels: Vec::new(),
            order: Vec::new(),
            at: 0,
            bytes: 0,
            row: None,
        }
    }

    fn clear(&mut self, run: &mut Run<'r>) {
        run.memory.release(self.bytes);
        self.bytes = 0;
        self.grouped = None;
        self.levels.clear();
        self.order.clear();
        self.at = 0;
    }

    fn prepare(&mut self, run: &mut Run<'r>) -> Fit<()> {
        let grouped = self.batch.groups(run)?;
        let bytes = grouped.heap_bytes();
        run.memory.charge(bytes).map_err(|_| run.memory.release(bytes)).map_err(|()| Unfit)?;
        self.bytes = bytes;
        if self.node.is_rollup() {
            let rollup = Rollup::new(&grouped, &self.batch.collations)?;
            self.levels = rollup.states(&grouped, &self.batch.kinds())?;
            self.order = rollup.lines;
            let bytes = self.levels.iter().flatten().map(States::heap_bytes).sum::<usize>()
                + size_of_val(&self.order[..]);
            self.bytes += bytes;
            run.memory.charge(bytes).map_err(|_| Unfit)?;
        } else {
            let live_keys = self.node.keys.len();
            let line = |group| Line { group, at: group, live_keys };
            self.order = (0..grouped.first.len() as u32).map(line).collect();
            self.order.sort_unstable_by_key(|line| grouped.first[line.group as usize]);
        }
        self.grouped = Some(grouped);
        Ok(())
    }

    /// Copies a group into the registers; `None`: the one group of no rows.
    fn emit(&self, line: Option<Line>, run: &mut Run<'r>) -> Result<()> {
        let Some(grouped) = &self.grouped else { return Ok(()) };
        let key_count = self.node.keys.len();
        let live_keys = match line {
            Some(line) => line.live_keys,
            None if self.node.is_rollup() => 0,
            None => key_count,
        };
        let keys = self.node.keys.iter().map(|(register, _, _)| *register);
        for (at, register) in keys.chain(self.node.carried.iter().copied()).enumerate() {
            run.regs[register] = match line {
                Some(line) if at < live_keys || at >= key_count => {
                    grouped.kept(at, line.group as usize).map_err(|_| damaged())?
                }
                _ => Value::Null,
            };
        }
        self.node.set_grouping(Live::First(live_keys), run);
        let states = self.levels.get(live_keys).unwrap_or(&grouped.states);
        for (at, call) in self.node.calls.iter().enumerate() {
            let result = match line {
                Some(line) => states[at].result(line.at as usize).map_err(|_| damaged())?,
                None if self.batch.calls[at].0.counts() => StateResult::Count(0),
                None => StateResult::Best(None),
            };
            let value = match result {
                StateResult::Count(count) => Value::Int(count),
                StateResult::Sum(_, 0) | StateResult::Best(None) => Value::Null,
                StateResult::Sum(Value::Decimal(sum), _) if call.kind == CallKind::SumInteger => {
                    Value::Decimal(Decimal::from_i128(sum.as_i128().unwrap_or((0, 0)).0, 0))
                }
                StateResult::Sum(sum, count) => {
                    let mut accumulator = (call.function.accumulator)();
                    accumulator.update_sum(&sum, count)?;
                    accumulator.result(&mut run.function)?
                }
                StateResult::Best(Some(best)) => best,
            };
            run.regs[call.output] = value;
        }
        Ok(())
    }
}

fn damaged() -> errors::Error {
    errors::Error::internal("a group's value is out of its type's range")
}

impl<'r> Operator<'r> for BatchAggregate<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.clear(run);
        if self.row.is_none() && self.prepare(run).is_ok() {
            run.counts.batch_groupings += 1;
            return Ok(());
        }
        run.env.cancel.check()?;
        // If it was unfit once, it will be unfit again.
        self.row.get_or_insert_with(|| self.node.build()).open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if let Some(row) = &mut self.row {
            return row.next(run);
        }
        let has_total = self.node.mode == AggregateMode::Scalar || self.node.is_rollup();
        if self.order.is_empty() && has_total && self.at == 0 {
            self.at = 1;
            self.emit(None, run)?;
            return Ok(true);
        }
        let Some(line) = self.order.get(self.at).copied() else { return Ok(false) };
        self.at += 1;
        self.emit(Some(line), run)?;
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.clear(run);
        if let Some(row) = &mut self.row {
            row.close(run);
        }
    }
}
