//! GREATEST, LEAST and INTERVAL.

use std::cmp::Ordering;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, NumberClass, any_nullable, number_class, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, DatetimeText, FunctionRole,
    ScalarFunction,
};
use types::{CollationId, DataType, TypeKind, Value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "GREATEST",
        Arity::at_least(2),
        "GREATEST(value1, value2, ...)\nThe largest argument.",
        |ctx, args| bind_extreme(ctx, args, Ordering::Greater),
    ).joins(Arguments::ALL).datetime_text(DatetimeText::FromDates),
    scalar(
        "LEAST",
        Arity::at_least(2),
        "LEAST(value1, value2, ...)\nThe smallest argument.",
        |ctx, args| bind_extreme(ctx, args, Ordering::Less),
    ).joins(Arguments::ALL).datetime_text(DatetimeText::FromDates),
    scalar(
        "INTERVAL",
        Arity::at_least(2),
        "INTERVAL(N, N1, N2, ...)\nHow many of the ascending numbers N1, N2, ... are not greater than N; -1 when N is NULL.",
        bind_interval,
    ).role(FunctionRole::Interval).numbers(Arguments::only(0)),
];

fn bind_extreme(ctx: &BindContext, args: &[ArgInfo], wanted: Ordering) -> Result<BoundFunction> {
    if args.iter().any(|arg| arg.ty.kind == TypeKind::Geometry) {
        let name = if wanted == Ordering::Greater { "greatest" } else { "least" };
        return Err(Error::with(ErrorCode::WRONG_ARGUMENTS, &[&name]));
    }
    let (ty, coercion) = common_type(ctx, args);
    let collation = ty.collation;
    if let Some(decimals) = datetime_decimals(args) {
        let coercion = match decimals {
            None => Coercion::Date,
            Some(_) => Coercion::DateTime,
        };
        return Ok(BoundFunction::new(ty, vec![coercion], move |_, args| {
            let best = args.iter().reduce(|best, candidate| {
                if order(candidate, best, collation) == wanted { candidate } else { best }
            });
            Ok(best.map_or(Value::Null, |best| datetime_text(best, decimals.unwrap_or(0))))
        }));
    }
    Ok(BoundFunction::new(ty, vec![coercion], move |_, args| {
        let mut best = &args[0];
        for candidate in &args[1..] {
            if order(candidate, best, collation) == wanted {
                best = candidate;
            }
        }
        Ok(best.clone())
    }))
}

fn order(left: &Value, right: &Value, collation: CollationId) -> Ordering {
    match (left, right) {
        (Value::Bytes(left), Value::Bytes(right)) => {
            charset::collation_or_binary(collation).compare(left, right)
        }
        (Value::Date(left), Value::Date(right)) => left.cmp(right),
        (Value::Time(left), Value::Time(right)) => left.cmp(right),
        (Value::DateTime(left), Value::DateTime(right)) => left.cmp(right),
        (Value::Decimal(left), Value::Decimal(right)) => left.cmp(right),
        (Value::Double(left), Value::Double(right)) => left.total_cmp(right),
        _ => kit::integer(left).cmp(&kit::integer(right)),
    }
}

/// Dates mixed with other types compare as dates and are shown as text: the inner value is the fractional digits of a datetime, `None` for
/// dates alone.
fn datetime_decimals(args: &[ArgInfo]) -> Option<Option<u8>> {
    let known: Vec<&ArgInfo> = args.iter().filter(|arg| arg.ty.kind != TypeKind::Null).collect();
    let plain = known.iter().all(|arg| arg.ty.is_temporal());
    let json = known.iter().any(|arg| arg.ty.kind == TypeKind::Json);
    let datetimes =
        known.iter().any(|arg| matches!(arg.ty.kind, TypeKind::DateTime | TypeKind::Timestamp));
    if plain || json || !known.iter().any(|arg| arg.ty.has_date()) {
        return None;
    }
    if !datetimes {
        return Some(None);
    }
    Some(Some(known.iter().map(|arg| fraction_digits(arg)).max().unwrap_or(0)))
}

/// Digits of the fraction that an argument has as a datetime: all of a text that is not known or begins like no datetime, and of a double.
fn fraction_digits(arg: &ArgInfo) -> u8 {
    match &arg.constant {
        Some(Value::Bytes(text)) if arg.ty.is_string() && starts_with_digit(text) => {
            let point = text.iter().position(|byte| *byte == b'.');
            point.map_or(0, |at| (text.len() - at - 1).min(6) as u8)
        }
        _ if arg.ty.is_integer() || arg.ty.kind == TypeKind::Date => 0,
        _ if arg.ty.is_temporal() || arg.ty.kind == TypeKind::Decimal => arg.ty.decimals.min(6),
        _ => 6,
    }
}

fn starts_with_digit(text: &[u8]) -> bool {
    text.trim_ascii_start().first().is_some_and(u8::is_ascii_digit)
}

/// Characters of a time or datetime of `base` characters with a fraction.
fn with_fraction(base: u32, decimals: u8) -> u32 {
    if decimals > 0 { base + 1 + u32::from(decimals) } else { base }
}

fn datetime_text(value: &Value, decimals: u8) -> Value {
    let mut out = Vec::with_capacity(26);
    match value {
        Value::Date(date) => date.write_text(&mut out),
        Value::DateTime(at) => at.write_text(decimals, &mut out),
        _ => return Value::Null,
    }
    Value::Bytes(types::SqlBytes::from(out))
}

/// The type in which all arguments are compared, also that of the result.
fn common_type(ctx: &BindContext, args: &[ArgInfo]) -> (DataType, Coercion) {
    let nullable = any_nullable(args);
    let known: Vec<&DataType> =
        args.iter().map(|arg| &arg.ty).filter(|ty| ty.kind != TypeKind::Null).collect();
    let collation = kit::result_collation(ctx, args);
    let length = known.iter().map(|ty| kit::text_length_in(ty, collation)).max().unwrap_or(0);
    if let Some(fixed) = known.iter().find(|ty| ty.as_fixed().is_some())
        && known.iter().all(|ty| ty.is_string() || ty.kind == fixed.kind)
    {
        // A text may be no value of the type.
        let ty = DataType::clone(fixed).with_nullable(true);
        return (ty.clone(), Coercion::To(ty));
    }
    let text = |ty: &&&DataType| {
        ty.is_string() || matches!(ty.kind, TypeKind::Enum | TypeKind::Set | TypeKind::Json)
    };
    let temporal = known.iter().filter(|ty| ty.is_temporal()).count();
    if known.iter().any(|ty| text(&ty)) || (temporal > 0 && temporal < known.len()) {
        let length = match datetime_decimals(args) {
            Some(Some(decimals)) => u64::from(with_fraction(19, decimals)),
            Some(None) => 10,
            None if temporal > 0 => {
                let digits = args.iter().filter(|arg| arg.ty.kind != TypeKind::Null);
                let digits = digits.map(fraction_digits).max().unwrap_or(0);
                length.max(u64::from(with_fraction(10, digits)))
            }
            None => length,
        };
        let ty = kit::text_type(length, collation);
        return (ty.with_nullable(nullable), Coercion::Text);
    }
    let (ty, coercion) = if temporal > 0 { common_temporal(&known) } else { common_number(&known) };
    (ty.with_nullable(nullable), coercion)
}

fn common_temporal(known: &[&DataType]) -> (DataType, Coercion) {
    let decimals = known.iter().map(|ty| ty.decimals).max().unwrap_or(0);
    let length = |base: u32| with_fraction(base, decimals);
    if known.iter().all(|ty| ty.kind == TypeKind::Date) {
        (DataType::new(TypeKind::Date, 10, 0), Coercion::Date)
    } else if known.iter().all(|ty| ty.kind == TypeKind::Time) {
        (DataType::new(TypeKind::Time, length(10), decimals), Coercion::Time)
    } else {
        let stamps = known.iter().all(|ty| ty.kind == TypeKind::Timestamp);
        let kind = if stamps { TypeKind::Timestamp } else { TypeKind::DateTime };
        (DataType::new(kind, length(19), decimals), Coercion::DateTime)
    }
}

fn common_number(known: &[&DataType]) -> (DataType, Coercion) {
    let classes: Vec<NumberClass> = known.iter().map(|ty| number_class(ty)).collect();
    let length = known.iter().map(|ty| ty.length).max().unwrap_or(1);
    if classes.contains(&NumberClass::Double) {
        return (DataType::double(), Coercion::Double);
    }
    let signed = classes.contains(&NumberClass::Integer { unsigned: false });
    let unsigned = classes.contains(&NumberClass::Integer { unsigned: true });
    let wide = known.iter().any(|ty| ty.kind == TypeKind::BigInt && ty.unsigned);
    if classes.contains(&NumberClass::Decimal) || (signed && wide) {
        let whole = known.iter().map(|ty| kit::whole_digits(ty)).max().unwrap_or(1);
        let scale = known.iter().map(|ty| ty.decimals).max().unwrap_or(0);
        return (DataType::decimal((whole + u32::from(scale)).min(65), scale), Coercion::Decimal);
    }
    // A YEAR is narrower than an INT of either sign.
    let small = known.iter().all(|ty| matches!(ty.kind, TypeKind::Int | TypeKind::Year));
    let mixed = signed && known.iter().any(|ty| ty.kind == TypeKind::Int && ty.unsigned);
    let kind = if small && !mixed { TypeKind::Int } else { TypeKind::BigInt };
    let mut ty = DataType::new(kind, length, 0);
    ty.unsigned = unsigned && !signed;
    (ty, Coercion::Integer)
}

fn bind_interval(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let exact = args.iter().all(|arg| number_class(&arg.ty) != NumberClass::Double);
    let coercion = if exact { Coercion::Decimal } else { Coercion::Double };
    let ty = kit::integer_type(2, false);
    let bound = BoundFunction::new(ty, vec![coercion], |_, args| {
        if args[0].is_null() {
            return Ok(Value::Int(-1));
        }
        let not_above = |limit: &Value| {
            limit.is_null() || order(limit, &args[0], CollationId::BINARY) != Ordering::Greater
        };
        Ok(Value::Int(args[1..].iter().take_while(|limit| not_above(limit)).count() as i64))
    });
    Ok(bound.with_nulls())
}
