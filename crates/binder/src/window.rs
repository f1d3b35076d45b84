//! Window functions: windows by name and in place, frames, and the calls over each.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result, bail};
use plan::{
    BinaryOp, Expr, FrameBound, FrameUnit, SortKey, WindowCall, WindowFrame, WindowFunction,
};
use syntax::ast::{self, WindowFunc};
use types::{CollationId, DataType, FunctionRole, TypeKind, Value};

use crate::aggregate::Call;
use crate::binder::Binder;
use crate::scope::{Clause, NamedWindow, WindowGroup};

/// A window after names are resolved.
struct Window {
    partition_by: Vec<Expr>,
    order_by: Vec<SortKey>,
    frame: Option<WindowFrame>,
}

fn function_of(func: WindowFunc) -> WindowFunction {
    match func {
        WindowFunc::RowNumber => WindowFunction::RowNumber,
        WindowFunc::Rank => WindowFunction::Rank,
        WindowFunc::DenseRank => WindowFunction::DenseRank,
        WindowFunc::CumeDist => WindowFunction::CumeDist,
        WindowFunc::PercentRank => WindowFunction::PercentRank,
        WindowFunc::Ntile => WindowFunction::Ntile,
        WindowFunc::Lead => WindowFunction::Lead,
        WindowFunc::Lag => WindowFunction::Lag,
        WindowFunc::FirstValue => WindowFunction::FirstValue,
        WindowFunc::LastValue => WindowFunction::LastValue,
        WindowFunc::NthValue => WindowFunction::NthValue,
    }
}

/// The text by which errors name a window without a name.
const UNNAMED: &str = "<unnamed window>";

/// A number where ORDER BY of a query would refer to its columns.
fn is_position(expr: &ast::Expr) -> bool {
    matches!(expr.kind, ast::ExprKind::Literal(ast::Literal::Integer(_)))
}

impl Binder<'_> {
    /// Binds the WINDOW clause; a window may build on one defined before or after it.
    pub(crate) fn bind_named_windows(
        &mut self,
        windows: &[(ast::Ident, ast::WindowSpec)],
    ) -> Result<()> {
        if windows.is_empty() {
            return Ok(());
        }
        for (index, (name, _)) in windows.iter().enumerate() {
            if windows[..index].iter().any(|(before, _)| before.is(&name.text)) {
                bail!(WINDOW_DUPLICATE_NAME, name.text);
            }
        }
        let mut left: Vec<&(ast::Ident, ast::WindowSpec)> = windows.iter().collect();
        while !left.is_empty() {
            let waiting = |spec: &ast::WindowSpec| {
                spec.base.as_ref().is_some_and(|base| left.iter().any(|(n, _)| n.is(&base.text)))
            };
            let Some(next) = left.iter().position(|(_, spec)| !waiting(spec)) else {
                bail!(WINDOW_CIRCULARITY_IN_WINDOW_GRAPH);
            };
            let (name, spec) = left.remove(next);
            let window = self.bind_window_spec(spec, &name.text)?;
            self.block().named_windows.push(NamedWindow {
                name: Arc::from(&*name.text),
                partition_by: window.partition_by,
                order_by: window.order_by,
                frame: window.frame,
            });
        }
        Ok(())
    }

    fn named_window(&self, name: &str) -> Result<NamedWindow> {
        let block = self.blocks.last().expect("inside a block");
        match block.named_windows.iter().find(|w| w.name.eq_ignore_ascii_case(name)) {
            Some(window) => Ok(window.clone()),
            None => bail!(WINDOW_NO_SUCH_WINDOW, name),
        }
    }

    fn bind_window_spec(&mut self, spec: &ast::WindowSpec, name: &str) -> Result<Window> {
        let block = self.block();
        let clause = std::mem::replace(&mut block.clause, Clause::WindowSpec);
        let windows = std::mem::replace(&mut block.allow_windows, false);
        let bound = self.bind_window_parts(spec, name);
        let block = self.block();
        block.clause = clause;
        block.allow_windows = windows;
        bound
    }

    fn bind_window_parts(&mut self, spec: &ast::WindowSpec, name: &str) -> Result<Window> {
        let ordered = spec.order_by.iter().map(|item| &item.expr);
        if spec.partition_by.iter().chain(ordered).any(is_position) {
            bail!(WINDOW_ILLEGAL_ORDER_BY, name);
        }
        let mut partition_by = Vec::with_capacity(spec.partition_by.len());
        for expr in &spec.partition_by {
            partition_by.push(self.bind_window_key(expr, name)?);
        }
        let mut order_by = Vec::with_capacity(spec.order_by.len());
        for item in &spec.order_by {
            let expr = self.bind_window_key(&item.expr, name)?;
            order_by.push(SortKey { expr, descending: item.desc });
        }
        if let Some(base) = &spec.base {
            let base = self.named_window(&base.text)?;
            if !partition_by.is_empty() {
                bail!(WINDOW_NO_CHILD_PARTITIONING);
            }
            if base.frame.is_some() {
                bail!(WINDOW_NO_INHERIT_FRAME, base.name);
            }
            if !order_by.is_empty() && !base.order_by.is_empty() {
                bail!(WINDOW_NO_REDEFINE_ORDER_BY, name, base.name);
            }
            partition_by = base.partition_by;
            if order_by.is_empty() {
                order_by = base.order_by;
            }
        }
        let frame = match &spec.frame {
            Some(frame) => Some(self.bind_frame(frame, &order_by, name)?),
            None => None,
        };
        Ok(Window { partition_by, order_by, frame })
    }

    /// A key of PARTITION BY or ORDER BY; a window function in it is 3595.
    fn bind_window_key(&mut self, expr: &ast::Expr, name: &str) -> Result<Expr> {
        self.bind_single(expr).map_err(|error| {
            match error.code() == ErrorCode::WINDOW_INVALID_WINDOW_FUNC_USE {
                true => {
                    Error::with(ErrorCode::WINDOW_NESTED_WINDOW_FUNC_USE_IN_WINDOW_SPEC, &[&name])
                }
                false => error,
            }
        })
    }

    fn bind_frame(
        &mut self,
        frame: &ast::Frame,
        order_by: &[SortKey],
        name: &str,
    ) -> Result<WindowFrame> {
        let unit = match frame.unit {
            ast::FrameUnit::Rows => FrameUnit::Rows,
            ast::FrameUnit::Range => FrameUnit::Range,
            ast::FrameUnit::Groups => return Err(Error::not_supported("GROUPS")),
        };
        if frame.exclude != ast::FrameExclude::NoOthers {
            return Err(Error::not_supported("EXCLUDE"));
        }
        if frame.start == ast::FrameBound::UnboundedFollowing {
            bail!(WINDOW_FRAME_START_ILLEGAL, name);
        }
        if frame.end == ast::FrameBound::UnboundedPreceding {
            bail!(WINDOW_FRAME_END_ILLEGAL, name);
        }
        let start = self.bind_frame_bound(&frame.start, unit, order_by, name)?;
        let end = self.bind_frame_bound(&frame.end, unit, order_by, name)?;
        let wrong = matches!(
            (&start, &end),
            (FrameBound::CurrentRow | FrameBound::Following(_), FrameBound::Preceding(_))
                | (FrameBound::Following(_), FrameBound::CurrentRow)
        );
        if wrong {
            bail!(WINDOW_FRAME_ILLEGAL, name);
        }
        Ok(WindowFrame { unit, start, end })
    }

    fn bind_frame_bound(
        &mut self,
        bound: &ast::FrameBound,
        unit: FrameUnit,
        order_by: &[SortKey],
        name: &str,
    ) -> Result<FrameBound> {
        let (amount, interval, preceding) = match bound {
            ast::FrameBound::UnboundedPreceding => return Ok(FrameBound::UnboundedPreceding),
            ast::FrameBound::CurrentRow => return Ok(FrameBound::CurrentRow),
            ast::FrameBound::UnboundedFollowing => return Ok(FrameBound::UnboundedFollowing),
            ast::FrameBound::Preceding(amount, interval) => (amount, interval, true),
            ast::FrameBound::Following(amount, interval) => (amount, interval, false),
        };
        let amount = self.bind_single(amount)?;
        if !amount.is_constant() {
            bail!(WINDOW_RANGE_BOUND_NOT_CONSTANT, name);
        }
        let expr = match unit {
            FrameUnit::Rows => {
                if interval.is_some() {
                    bail!(WINDOW_ROWS_INTERVAL_USE, name);
                }
                let bad = match &amount {
                    Expr::Literal { value: Value::Int(number), .. } => *number < 0,
                    Expr::Literal { value: Value::UInt(_), .. } | Expr::Parameter { .. } => false,
                    _ => true,
                };
                if bad {
                    bail!(WINDOW_FRAME_ILLEGAL, name);
                }
                amount
            }
            // In a RANGE frame the bound is the value that the order key is compared with.
            FrameUnit::Range => {
                self.range_bound(amount, interval.as_ref(), preceding, order_by, name)?
            }
        };
        Ok(if preceding { FrameBound::Preceding(expr) } else { FrameBound::Following(expr) })
    }

    /// The order key of the current row moved by the amount: a row belongs to the frame while its own key is on the right side
    /// of that value.
    fn range_bound(
        &mut self,
        amount: Expr,
        interval: Option<&ast::IntervalUnit>,
        preceding: bool,
        order_by: &[SortKey],
        name: &str,
    ) -> Result<Expr> {
        let [key] = order_by else { bail!(WINDOW_RANGE_FRAME_ORDER_TYPE, name) };
        let ty = key.expr.ty();
        if is_no_amount(&amount) {
            bail!(WINDOW_FRAME_ILLEGAL, name);
        }
        let back = preceding != key.descending;
        match interval {
            Some(unit) => {
                if !ty.is_temporal() {
                    bail!(WINDOW_RANGE_FRAME_NUMERIC_TYPE, name);
                }
                let role = if back { FunctionRole::DateSubtract } else { FunctionRole::DateAdd };
                let unit = self.unit_text(*unit);
                self.function(role, vec![unit, key.expr.clone(), amount])
            }
            None => {
                if ty.is_temporal() {
                    bail!(WINDOW_RANGE_FRAME_TEMPORAL_TYPE, name);
                }
                if !ty.is_numeric() && ty.kind != TypeKind::Null {
                    bail!(WINDOW_RANGE_FRAME_ORDER_TYPE, name);
                }
                let op = if back { BinaryOp::Subtract } else { BinaryOp::Add };
                // Wide enough for every key: an end beyond the key's own range is not an error.
                let result = match ty.kind {
                    TypeKind::Float | TypeKind::Double => DataType::double(),
                    _ => DataType::decimal(65, ty.decimals.max(amount.ty().decimals).min(30)),
                };
                let result = result.with_nullable(ty.nullable || amount.ty().nullable);
                let key = key.expr.clone();
                Ok(crate::expr::binary(op, key, amount, CollationId::BINARY, result))
            }
        }
    }

    fn bind_over(&mut self, over: &ast::Over) -> Result<Window> {
        match over {
            ast::Over::Name(name) => {
                let window = self.named_window(&name.text)?;
                Ok(Window {
                    partition_by: window.partition_by,
                    order_by: window.order_by,
                    frame: window.frame,
                })
            }
            ast::Over::Spec(spec) => self.bind_window_spec(spec, UNNAMED),
        }
    }

    fn begin_window(&mut self, name: &str) -> Result<()> {
        let block = self.block();
        if !block.allow_windows || block.in_aggregate > 0 || block.in_window {
            bail!(WINDOW_INVALID_WINDOW_FUNC_USE, name.to_lowercase());
        }
        block.in_window = true;
        Ok(())
    }

    pub(crate) fn bind_window_call(&mut self, call: &ast::WindowCall) -> Result<Expr> {
        let function = function_of(call.func);
        if call.from_last {
            return Err(Error::not_supported("FROM LAST"));
        }
        if call.ignore_nulls {
            return Err(Error::not_supported("IGNORE NULLS"));
        }
        self.begin_window(function.name())?;
        let args: Result<Vec<Expr>> = call.args.iter().map(|arg| self.bind_single(arg)).collect();
        self.block().in_window = false;
        let args = args?;
        check_count_argument(call.func, &args)?;
        let window = self.bind_over(&call.over)?;
        let ty = self.window_type(call.func, &args)?;
        Ok(self.add_window_call(function, args, window, kept_type(ty)))
    }

    pub(crate) fn bind_aggregate_window(
        &mut self,
        call: &Call<'_>,
        over: &ast::Over,
    ) -> Result<Expr> {
        let aggregate = call.function;
        if call.distinct {
            return Err(Error::not_supported("DISTINCT in a window function"));
        }
        self.begin_window(aggregate.name)?;
        let args: Result<Vec<Expr>> = call.args.iter().map(|arg| self.bind_single(arg)).collect();
        self.block().in_window = false;
        let mut args = args?;
        if crate::fixed::takes_text(aggregate.role) {
            let collation = self.input.bind.collation_connection;
            args.iter_mut().for_each(|arg| crate::fixed::text_of(arg, collation));
        }
        let window = self.bind_over(over)?;
        let ty = self.aggregate_type(aggregate, &args, call.separator)?;
        let function = WindowFunction::Aggregate(aggregate.reference());
        Ok(self.add_window_call(function, args, window, kept_type(ty)))
    }

    fn window_type(&self, func: WindowFunc, args: &[Expr]) -> Result<DataType> {
        Ok(match func {
            WindowFunc::RowNumber
            | WindowFunc::Rank
            | WindowFunc::DenseRank
            | WindowFunc::Ntile => DataType::bigint_unsigned().with_nullable(false),
            WindowFunc::CumeDist | WindowFunc::PercentRank => {
                DataType::double().with_nullable(false)
            }
            WindowFunc::Lead | WindowFunc::Lag => match (args.first(), args.get(2)) {
                (Some(value), Some(default)) => self.unify_exprs(&[value, default], "lead")?,
                (Some(value), None) => value.ty().with_nullable(true),
                _ => bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, function_of(func).name()),
            },
            WindowFunc::FirstValue | WindowFunc::LastValue | WindowFunc::NthValue => {
                match args.first() {
                    Some(value) => value.ty().with_nullable(true),
                    None => bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, function_of(func).name()),
                }
            }
        })
    }

    fn add_window_call(
        &mut self,
        function: WindowFunction,
        args: Vec<Expr>,
        window: Window,
        ty: DataType,
    ) -> Expr {
        let output = self.new_register();
        let end = if window.order_by.is_empty() {
            FrameBound::UnboundedFollowing
        } else {
            FrameBound::CurrentRow
        };
        let frame = window.frame.unwrap_or(WindowFrame {
            unit: FrameUnit::Range,
            start: FrameBound::UnboundedPreceding,
            end,
        });
        let call = WindowCall { function, args, frame, output, ty: ty.clone() };
        let groups = &mut self.block().window_groups;
        let same = groups.iter_mut().find(|group| {
            group.partition_by == window.partition_by && group.order_by == window.order_by
        });
        match same {
            Some(group) => group.calls.push(call),
            None => groups.push(WindowGroup {
                partition_by: window.partition_by,
                order_by: window.order_by,
                calls: vec![call],
            }),
        }
        Expr::column(output, ty)
    }
}

/// Refuses (1210) a number of rows for NTILE, LEAD, LAG and NTH_VALUE that rows would give.
fn check_count_argument(func: WindowFunc, args: &[Expr]) -> Result<()> {
    let count = match func {
        WindowFunc::Ntile => args.first(),
        WindowFunc::Lead | WindowFunc::Lag | WindowFunc::NthValue => args.get(1),
        WindowFunc::RowNumber
        | WindowFunc::Rank
        | WindowFunc::DenseRank
        | WindowFunc::CumeDist
        | WindowFunc::PercentRank
        | WindowFunc::FirstValue
        | WindowFunc::LastValue => None,
    };
    let is_wrong = |node: &Expr| {
        // A variable counts by the value it has when the statement begins.
        matches!(node, Expr::Column { .. } | Expr::Subquery { .. })
            || matches!(node, Expr::UserVariable { ty, .. } if !ty.is_integer())
    };
    if count.is_some_and(|count| count.any(&mut |node| is_wrong(node))) {
        bail!(WRONG_ARGUMENTS, function_of(func).name().to_lowercase());
    }
    Ok(())
}

/// The type of a window's result in the reference's temporary table.
fn kept_type(mut ty: DataType) -> DataType {
    match ty.kind {
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int => {
            ty.kind = TypeKind::BigInt;
        }
        TypeKind::Char => ty.kind = TypeKind::VarChar,
        _ => {}
    }
    ty
}

/// Whether a bound of a RANGE frame is written as NULL or as less than nothing.
fn is_no_amount(amount: &Expr) -> bool {
    let Expr::Literal { value, .. } = amount else { return false };
    value.is_null()
        || matches!(value, Value::Int(number) if *number < 0)
        || matches!(value, Value::Double(number) if *number < 0.0)
        || matches!(value, Value::Decimal(number) if number.is_negative())
        || matches!(value, Value::Bytes(text) if text.trim_ascii_start().starts_with(b"-"))
}
