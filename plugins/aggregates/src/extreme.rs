//! MIN, MAX and ANY_VALUE.

use std::cmp::Ordering;
use std::sync::Arc;

use charset::Collation;
use errors::Result;
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BindContext, BoundAggregate, Coercion, FunctionContext, Geometries, kit,
};
use types::{TypeKind, Value};

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[
    AggregateFunction {
        name: "MIN",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::Minimum,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help: "MIN([DISTINCT] expr)\nThe smallest value; NULL without rows.",
        binding: AggregateBinding::Code(|ctx, args, _| bind(ctx, args, Some(Ordering::Less))),
    },
    AggregateFunction {
        name: "MAX",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::Maximum,
        numbers: Arguments::NONE,
        geometries: Geometries::Refused,
        help: "MAX([DISTINCT] expr)\nThe largest value; NULL without rows.",
        binding: AggregateBinding::Code(|ctx, args, _| bind(ctx, args, Some(Ordering::Greater))),
    },
    AggregateFunction {
        name: "ANY_VALUE",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::AnyValue,
        numbers: Arguments::NONE,
        geometries: Geometries::Taken,
        help: "ANY_VALUE(expr)\nThe value of one of the rows.",
        binding: AggregateBinding::Code(|ctx, args, _| bind(ctx, args, None)),
    },
];

/// Keeps the first value, or the minimum or maximum.
struct Extreme {
    best: Option<Value>,
    wanted: Option<Ordering>,
    collation: &'static Collation,
}

fn bind(ctx: &BindContext, args: &[ArgInfo], wanted: Option<Ordering>) -> Result<BoundAggregate> {
    let arg = &args[0].ty;
    let named = matches!(arg.kind, TypeKind::Enum | TypeKind::Set);
    let (ty, coercion) = if named {
        let mut ty = kit::text_type(arg.length.into(), arg.collation);
        ty.kind = TypeKind::Char;
        (ty, Coercion::Text)
    } else {
        (arg.clone().with_nullable(wanted.is_some() || arg.nullable), Coercion::AsIs)
    };
    let collation = charset::collation_or_binary(kit::text_collation(ctx, &args[0]));
    Ok(BoundAggregate {
        ty,
        coercions: vec![coercion],
        skip_nulls: wanted.is_some(),
        accumulator: Arc::new(move || Box::new(Extreme { best: None, wanted, collation })),
    })
}

/// Order of two values of one type.
fn compare(left: &Value, right: &Value, collation: &Collation) -> Ordering {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => left.cmp(right),
        (Value::UInt(left), Value::UInt(right)) => left.cmp(right),
        (Value::Double(left), Value::Double(right)) => left.total_cmp(right),
        (Value::Decimal(left), Value::Decimal(right)) => left.cmp(right),
        (Value::Bytes(left), Value::Bytes(right)) => collation.compare(left, right),
        (Value::Date(left), Value::Date(right)) => left.cmp(right),
        (Value::Time(left), Value::Time(right)) => left.cmp(right),
        (Value::DateTime(left), Value::DateTime(right)) => left.cmp(right),
        (Value::Json(left), Value::Json(right)) => crate::json::compare(left, right),
        (left, right) => kit::decimal(left).cmp(&kit::decimal(right)),
    }
}

impl Accumulator for Extreme {
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        let better = match (&self.best, self.wanted) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(best), Some(wanted)) => compare(&args[0], best, self.collation) == wanted,
        };
        if better {
            self.best = Some(args[0].clone());
        }
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(self.best.clone().unwrap_or(Value::Null))
    }
    fn reset(&mut self) {
        self.best = None;
    }
    fn memory_bytes(&self) -> usize {
        match &self.best {
            Some(Value::Bytes(bytes) | Value::Json(bytes)) => bytes.heap_bytes(),
            Some(Value::Decimal(number)) => number.heap_bytes(),
            _ => 0,
        }
    }
}
