//! Compiles a plan's aggregate and window calls for the operators.

use errors::{Error, ErrorCode, Result};
use plan::{
    AggregateCall, BinaryOp, Expr, FrameBound, FrameUnit, Physical, Register, SortKey, WindowCall,
};
use plugin_api::BoundAggregate;
use rows::arguments::{arg_infos, trimmed};
use types::{AggregateRole, CollationId};

use super::aggregate::{CallKind, CallNode};
use super::compile::{NodeCompiler, index, indexes};
use super::node::Node;
use super::sort::KeyCode;
use super::window::{Bound, WindowCallNode, WindowFunction, WindowNode};
use crate::expr::{Code, Comparison, comparator, unify_code};

impl NodeCompiler<'_> {
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
        function.bind(self.exprs.bind, &arg_infos(args), separator)
    }

    pub(super) fn aggregate(&mut self, call: &AggregateCall) -> Result<CallNode> {
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

    pub(super) fn window(
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
