//! SUM and AVG: exact for integers, decimals and temporal values, doubles for the rest.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, NumberClass, number_class};
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BindContext, BoundAggregate, Coercion, FunctionContext, Geometries,
};
use types::{DataType, Decimal, NOT_FIXED_DECIMALS, TypeKind, Value};

/// Digits that a sum may have more than its argument.
const SUM_DIGITS: u32 = 22;
/// Most digits of a decimal.
const PRECISION_MAX: u32 = 65;
/// Most fractional digits of a decimal.
const SCALE_MAX: u8 = 30;

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[
    AggregateFunction {
        name: "SUM",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::Sum,
        numbers: Arguments::ALL,
        geometries: Geometries::Refused,
        help: "SUM([DISTINCT] expr)\nThe sum; NULL without rows.",
        binding: AggregateBinding::Code(|ctx, args, _| bind(ctx, args, Kind::Sum)),
    },
    AggregateFunction {
        name: "AVG",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::Average,
        numbers: Arguments::ALL,
        geometries: Geometries::Refused,
        help: "AVG([DISTINCT] expr)\nThe average; NULL without rows.",
        binding: AggregateBinding::Code(|ctx, args, _| bind(ctx, args, Kind::Average)),
    },
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Sum,
    Average,
}

/// Digits and scale of an exact argument; `None` for doubles.
fn exact_digits(ty: &DataType) -> Option<(u32, u8)> {
    let fraction = ty.decimals.min(6);
    let temporal = |digits: u32| Some((digits + u32::from(fraction), fraction));
    match ty.kind {
        TypeKind::Date => Some((8, 0)),
        TypeKind::Time => temporal(7),
        TypeKind::DateTime | TypeKind::Timestamp => temporal(14),
        TypeKind::Decimal => Some((ty.length, ty.decimals)),
        TypeKind::Year | TypeKind::Bit => Some((ty.length, 0)),
        _ if ty.is_integer() && ty.unsigned => Some((ty.length, 0)),
        _ if ty.is_integer() => Some((ty.length.saturating_sub(1).max(1), 0)),
        _ => None,
    }
}

fn bind(ctx: &BindContext, args: &[ArgInfo], kind: Kind) -> Result<BoundAggregate> {
    let arg = &args[0].ty;
    let Some((digits, scale)) = exact_digits(arg) else {
        return Ok(bind_double(arg, kind));
    };
    let increment = ctx.div_precision_increment;
    let ty = match kind {
        Kind::Sum => DataType::decimal((digits + SUM_DIGITS).min(PRECISION_MAX), scale),
        Kind::Average => {
            let wide = scale.saturating_add(increment).min(SCALE_MAX);
            DataType::decimal((digits + u32::from(increment)).min(PRECISION_MAX), wide)
        }
    };
    let out_scale = ty.decimals;
    let (coercion, accumulator): (_, Arc<dyn Fn() -> Box<dyn Accumulator> + Send + Sync>) =
        match number_class(arg) {
            NumberClass::Integer { .. } => (
                Coercion::Integer,
                Arc::new(move || Box::new(IntegerSum { kind, out_scale, sum: 0, count: 0 })),
            ),
            NumberClass::Decimal | NumberClass::Double => (
                Coercion::Decimal,
                Arc::new(move || {
                    Box::new(DecimalSum { kind, out_scale, sum: Decimal::ZERO, count: 0 })
                }),
            ),
        };
    Ok(BoundAggregate { ty, coercions: vec![coercion], skip_nulls: true, accumulator })
}

fn bind_double(arg: &DataType, kind: Kind) -> BoundAggregate {
    let fixed =
        matches!(arg.kind, TypeKind::Float | TypeKind::Double) && arg.decimals < NOT_FIXED_DECIMALS;
    let ty = match kind {
        Kind::Sum => kit::double_type_like(arg),
        Kind::Average if fixed => {
            let decimals = (arg.decimals + 4).min(SCALE_MAX);
            DataType::new(TypeKind::Double, 17 + u32::from(decimals), decimals)
        }
        Kind::Average => DataType::double(),
    };
    BoundAggregate {
        ty,
        coercions: vec![Coercion::Double],
        skip_nulls: true,
        accumulator: Arc::new(move || Box::new(DoubleSum { kind, sum: 0.0, count: 0 })),
    }
}

#[cold]
fn overflow() -> Error {
    Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&"DECIMAL", &"sum"])
}

fn quotient(sum: &Decimal, count: u64, out_scale: u8) -> Result<Value> {
    let increment = out_scale.saturating_sub(sum.scale());
    let average = sum.div(&Decimal::from_u64(count), increment.into()).ok_or_else(overflow)?;
    Ok(Value::Decimal(average.rescale(out_scale)))
}

/// Sums 64-bit integers; 2^63 rows fit.
struct IntegerSum {
    kind: Kind,
    out_scale: u8,
    sum: i128,
    count: u64,
}

impl Accumulator for IntegerSum {
    #[inline]
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        self.sum += match &args[0] {
            Value::Int(number) => i128::from(*number),
            Value::UInt(number) => i128::from(*number),
            other => kit::integer(other),
        };
        self.count += 1;
        Ok(())
    }
    fn update_sum(&mut self, sum: &Value, count: u64) -> Result<()> {
        let number = kit::decimal(sum).rescale(0).as_i128().ok_or_else(overflow)?.0;
        self.sum = self.sum.checked_add(number).ok_or_else(overflow)?;
        self.count += count;
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        let sum = Decimal::from_i128(self.sum, 0);
        match self.kind {
            _ if self.count == 0 => Ok(Value::Null),
            Kind::Sum => Ok(Value::Decimal(sum)),
            Kind::Average => quotient(&sum, self.count, self.out_scale),
        }
    }
    fn reset(&mut self) {
        (self.sum, self.count) = (0, 0);
    }
}

struct DecimalSum {
    kind: Kind,
    out_scale: u8,
    sum: Decimal,
    count: u64,
}

impl Accumulator for DecimalSum {
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        let next = match &args[0] {
            Value::Decimal(number) => self.sum.add(number),
            other => self.sum.add(&kit::decimal(other)),
        };
        self.sum = next.ok_or_else(overflow)?;
        self.count += 1;
        Ok(())
    }
    fn update_sum(&mut self, sum: &Value, count: u64) -> Result<()> {
        self.sum = self.sum.add(&kit::decimal(sum)).ok_or_else(overflow)?;
        self.count += count;
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        match self.kind {
            _ if self.count == 0 => Ok(Value::Null),
            Kind::Sum => Ok(Value::Decimal(self.sum.rescale(self.out_scale))),
            Kind::Average => quotient(&self.sum, self.count, self.out_scale),
        }
    }
    fn reset(&mut self) {
        (self.sum, self.count) = (Decimal::ZERO, 0);
    }
}

struct DoubleSum {
    kind: Kind,
    sum: f64,
    count: u64,
}

impl Accumulator for DoubleSum {
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        self.sum += kit::double(&args[0]);
        self.count += 1;
        Ok(())
    }
    fn update_sum(&mut self, sum: &Value, count: u64) -> Result<()> {
        self.sum += kit::double(sum);
        self.count += count;
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        let result = match self.kind {
            _ if self.count == 0 => return Ok(Value::Null),
            Kind::Sum => self.sum,
            Kind::Average => self.sum / self.count as f64,
        };
        kit::finite(result, "sum", &[])
    }
    fn reset(&mut self) {
        (self.sum, self.count) = (0.0, 0);
    }
}
