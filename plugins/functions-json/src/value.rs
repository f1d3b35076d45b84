//! JSON_VALUE: the value at a path as a value of an SQL type, with its results for missing values and errors.

use errors::{Diagnostics, Error, ErrorCode, Result};
use plugin_api::kit;
use plugin_api::{ArgInfo, BindContext, BoundFunction, Coercion, FunctionContext};
use types::convert::{CastContext, cast};
use types::json::{JsonRef, JsonType};
use types::{DataType, Decimal, JsonValue, SqlBytes, TypeKind, Value};

use crate::argument::{Call, Wildcards, rest_are_paths};

const NAME: &str = "json_value";
/// The argument whose type is the type of RETURNING.
const RETURNING: usize = 2;
/// The choice of ON EMPTY, and its DEFAULT.
const ON_EMPTY: usize = 3;
/// The choice of ON ERROR, and its DEFAULT.
const ON_ERROR: usize = 5;

/// Warnings of one conversion; any of them means that the value does not fit.
const WARNINGS_MAX: u32 = 4;

/// `NULL`, `ERROR` or `DEFAULT` of ON EMPTY and ON ERROR, as the binder numbers them.
#[derive(Clone)]
enum On {
    Null,
    Error,
    Default(Value),
}

/// `JSON_VALUE(document, path, type, on empty, its default, on error, its default)`.
pub(crate) fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new(NAME, args, |index| rest_are_paths(index) && index < RETURNING);
    let ty = args[RETURNING].ty.clone();
    let on_empty = on_clause(args, ON_EMPTY, &ty)?;
    let on_error = on_clause(args, ON_ERROR, &ty)?;
    let first = kit::named_coercion(&args[0].ty);
    let coercions = vec![first, Coercion::Text, type_coercion(&ty), Coercion::AsIs];
    let result = ty.clone().with_nullable(true);
    let kernel = move |ctx: &mut FunctionContext<'_>, args: &[Value]| {
        let failed = |error: Error| match &on_error {
            On::Null => Ok(Value::Null),
            On::Error => Err(error),
            On::Default(value) => Ok(value.clone()),
        };
        let document = match call.document(args, 0) {
            Ok(Some(document)) => document,
            Ok(None) => return Ok(Value::Null),
            Err(error) if error.code() != ErrorCode::INVALID_JSON_TEXT_IN_PARAM => {
                return Err(error);
            }
            Err(error) => {
                if !matches!(on_error, On::Error) {
                    ctx.diagnostics.push_error(errors::Level::Warning, &error);
                }
                return failed(error);
            }
        };
        let Some(path) = call.path(args, 1, Wildcards::Allowed)? else { return Ok(Value::Null) };
        let mut found = Vec::new();
        path.select(JsonRef::new(&document), &mut found);
        match &found[..] {
            [] => match &on_empty {
                On::Null => Ok(Value::Null),
                On::Error => Err(Error::with(ErrorCode::MISSING_JSON_VALUE, &[&NAME])),
                On::Default(value) => Ok(value.clone()),
            },
            [value] => match returned(*value, &ty, ctx) {
                Some(value) => Ok(value),
                None => failed(out_of_range(&ty, "")),
            },
            _ => failed(Error::with(ErrorCode::MULTIPLE_JSON_VALUES, &[&NAME])),
        }
    };
    Ok(BoundFunction::new(result, coercions, kernel).with_nulls())
}

/// That of an argument that stands for a type. UUIDs and addresses would be read as texts.
pub(crate) fn type_coercion(ty: &DataType) -> Coercion {
    match ty.as_fixed() {
        Some(_) => Coercion::To(ty.clone()),
        None => Coercion::AsIs,
    }
}

fn out_of_range(ty: &DataType, what: &str) -> Error {
    let name = match ty.kind {
        _ if ty.is_integer() && ty.unsigned => "UNSIGNED",
        _ if ty.is_integer() => "SIGNED",
        _ if ty.is_string() && what.is_empty() => "STRING",
        _ if ty.is_string() => "CHAR",
        TypeKind::Date => "DATE",
        TypeKind::Time => "TIME",
        TypeKind::DateTime => "DATETIME",
        TypeKind::Year => "YEAR",
        TypeKind::Decimal => "DECIMAL",
        TypeKind::Float => "FLOAT",
        TypeKind::Json => "JSON",
        TypeKind::Fixed(kind) => kind.name(),
        _ => "DOUBLE",
    };
    let subject = format!("{name}{what}");
    Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&subject, &NAME])
}

fn on_clause(args: &[ArgInfo], at: usize, ty: &DataType) -> Result<On> {
    match args[at].constant {
        Some(Value::Int(1)) => return Ok(On::Error),
        Some(Value::Int(2)) => {}
        _ => return Ok(On::Null),
    }
    let given = &args[at + 1];
    match &given.constant {
        Some(Value::Null) | None => Ok(On::Null),
        Some(value) => default(value, &given.ty, ty).map(On::Default),
    }
}

/// A DEFAULT converted to the type; it must fit.
fn default(value: &Value, from: &DataType, ty: &DataType) -> Result<Value> {
    let mut text = Vec::new();
    types::text::to_text(value, from, &mut text);
    let shown = String::from_utf8_lossy(&text).into_owned();
    let refused = |what: &str| Err(Error::with(ErrorCode::TRUNCATED_WRONG_VALUE, &[&what, &shown]));
    if ty.is_integer() {
        let what = if ty.unsigned { "INTEGER UNSIGNED" } else { "INTEGER SIGNED" };
        return match shown.parse::<i128>() {
            Err(_) => refused(what),
            Ok(number) => whole(number, ty).ok_or_else(|| out_of_range(ty, " DEFAULT")),
        };
    }
    if ty.kind == TypeKind::Json {
        let parsed = types::json::parse(&text).map_err(|error| {
            let code = ErrorCode::INVALID_JSON_TEXT_IN_PARAM;
            Error::with(code, &[&1, &NAME, &error.message, &error.position])
        })?;
        return kit::json_document(&parsed);
    }
    let document = JsonValue::string(&text).to_binary();
    let mut diagnostics = Diagnostics::new(WARNINGS_MAX);
    let mut ctx = CastContext::new(types::SqlMode::default(), &mut diagnostics);
    let is_longer = |scale: u8| scale > ty.decimals && ty.kind != TypeKind::Date;
    match converted(JsonRef::new(&document), ty, &mut ctx) {
        Some(Value::Time(_) | Value::DateTime(_)) if is_longer(fraction_of(&text)) => {
            Err(out_of_range(&DataType::time(6), " DEFAULT"))
        }
        Some(Value::Decimal(number)) => {
            let exact = Decimal::parse(&text).is_some_and(|exact| exact == number);
            if exact { Ok(Value::Decimal(number)) } else { Err(out_of_range(ty, " DEFAULT")) }
        }
        Some(value) => Ok(value),
        None => match ty.kind {
            TypeKind::Date => refused("date"),
            TypeKind::Time => refused("time"),
            TypeKind::DateTime => refused("datetime"),
            TypeKind::Year if !is_number(&shown) => refused("YEAR"),
            TypeKind::Decimal if !is_number(&shown) => refused("DECIMAL"),
            TypeKind::Float | TypeKind::Double if !is_number(&shown) => refused("DOUBLE"),
            _ => Err(out_of_range(ty, " DEFAULT")),
        },
    }
}

/// Whether a text is a number, or empty.
fn is_number(text: &str) -> bool {
    text.trim().is_empty() || text.trim().parse::<f64>().is_ok()
}

/// The digits of the fraction of a second that are not zeros at the end.
fn fraction_of(text: &[u8]) -> u8 {
    let Some(at) = text.iter().rposition(|byte| *byte == b'.') else { return 0 };
    let digits = text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit());
    digits
        .zip(1..=6)
        .filter(|(digit, _)| **digit != b'0')
        .map(|(_, place)| place)
        .last()
        .unwrap_or(0)
}

/// A value of a document converted to the type; `None` when it does not convert. JSON's null is NULL.
fn returned(value: JsonRef<'_>, ty: &DataType, ctx: &mut FunctionContext<'_>) -> Option<Value> {
    if value.kind() == JsonType::Null {
        return Some(Value::Null);
    }
    if ty.kind == TypeKind::Json {
        return Some(Value::Json(value.to_document()));
    }
    let mut diagnostics = Diagnostics::new(WARNINGS_MAX);
    let mut conversion = CastContext::new(ctx.sql_mode, &mut diagnostics);
    conversion.time_zone = ctx.time_zone;
    conversion.today = ctx.now.date();
    converted(value, ty, &mut conversion)
}

pub(crate) fn converted(
    value: JsonRef<'_>,
    ty: &DataType,
    ctx: &mut CastContext<'_>,
) -> Option<Value> {
    match ty.kind {
        _ if ty.is_integer() => integer(value, ty),
        TypeKind::Year => match integer(value, &DataType::bigint())? {
            Value::Int(year @ (0 | 1901..=2155)) => Some(Value::UInt(year as u64)),
            _ => None,
        },
        TypeKind::Date | TypeKind::Time | TypeKind::DateTime => temporal(value, ty, ctx),
        TypeKind::Fixed(kind) if value.kind() == JsonType::String => {
            kind.parse(value.as_bytes()?).map(Value::Bytes)
        }
        TypeKind::Fixed(_) => None,
        _ if ty.is_string() => text(value, ty, ctx),
        _ => number(value, ty, ctx),
    }
}

fn whole(number: i128, ty: &DataType) -> Option<Value> {
    if ty.unsigned {
        u64::try_from(number).ok().map(Value::UInt)
    } else {
        i64::try_from(number).ok().map(Value::Int)
    }
}

fn integer(value: JsonRef<'_>, ty: &DataType) -> Option<Value> {
    let number = match value.kind() {
        JsonType::Bool => i128::from(value.as_bool()?),
        JsonType::String => std::str::from_utf8(value.as_bytes()?).ok()?.parse().ok()?,
        JsonType::Double => {
            let number = value.as_f64()?.round_ties_even();
            // Every double within the range of i128 that matters converts as it is.
            if number.abs() < 1e20 { number as i128 } else { return None }
        }
        JsonType::Decimal => {
            let (number, scale) = value.as_decimal()?.round(0).as_i128()?;
            if scale == 0 { number } else { return None }
        }
        _ => match (value.as_i64(), value.as_u64()) {
            (Some(number), _) => i128::from(number),
            (None, Some(number)) => i128::from(number),
            (None, None) => return None,
        },
    };
    whole(number, ty)
}

/// A scalar of a document as an SQL value.
fn scalar(value: JsonRef<'_>) -> Option<(Value, DataType)> {
    Some(match value.kind() {
        JsonType::String => {
            let text = value.as_bytes()?;
            let ty = DataType::varchar(text.len() as u32, types::CollationId::UTF8MB4_BIN);
            (Value::Bytes(SqlBytes::new(text)), ty)
        }
        JsonType::Bool => (Value::Int(i64::from(value.as_bool()?)), DataType::bigint()),
        JsonType::Double => (Value::Double(value.as_f64()?), DataType::double()),
        JsonType::Decimal => {
            let number = value.as_decimal()?;
            let ty = DataType::decimal(number.precision().max(1), number.scale());
            (Value::Decimal(number), ty)
        }
        _ => match (value.as_i64(), value.as_u64()) {
            (Some(number), _) => (Value::Int(number), DataType::bigint()),
            (None, Some(number)) => (Value::UInt(number), DataType::bigint_unsigned()),
            (None, None) => return None,
        },
    })
}

/// Converts a value if that causes no warning.
fn silently(
    value: &Value,
    from: &DataType,
    ty: &DataType,
    ctx: &mut CastContext<'_>,
) -> Option<Value> {
    let before = ctx.diagnostics.warning_count();
    let value = cast(value, from, ty, ctx).ok()?;
    (ctx.diagnostics.warning_count() == before && !value.is_null()).then_some(value)
}

fn number(value: JsonRef<'_>, ty: &DataType, ctx: &mut CastContext<'_>) -> Option<Value> {
    let (value, from) = scalar(value)?;
    if let Value::Bytes(text) = &value
        && text.is_empty()
    {
        return None;
    }
    silently(&value, &from, ty, ctx)
}

fn temporal(value: JsonRef<'_>, ty: &DataType, ctx: &mut CastContext<'_>) -> Option<Value> {
    // Digits beyond those of the type are truncated.
    let precise = match ty.kind {
        TypeKind::Time => DataType::time(6),
        TypeKind::Date | TypeKind::DateTime => DataType::datetime(6),
        _ => return None,
    };
    let (value, from) = match (value.as_datetime(), value.as_date(), value.as_time()) {
        (Some(value), ..) => (Value::DateTime(value), DataType::datetime(6)),
        (_, Some(value), _) => (Value::Date(value), DataType::date()),
        (.., Some(value)) => (Value::Time(value), DataType::time(6)),
        _ if value.kind() == JsonType::String => scalar(value)?,
        _ => return None,
    };
    let exact = silently(&value, &from, &precise, ctx)?;
    Some(match exact {
        Value::Time(time) => Value::Time(time.truncate_fsp(ty.decimals)),
        Value::DateTime(at) if ty.kind == TypeKind::Date => Value::Date(at.date()),
        Value::DateTime(at) => Value::DateTime(at.truncate_fsp(ty.decimals)),
        _ => return None,
    })
}

fn text(value: JsonRef<'_>, ty: &DataType, ctx: &mut CastContext<'_>) -> Option<Value> {
    if matches!(value.kind(), JsonType::Opaque(_)) {
        return None;
    }
    let mut out = Vec::new();
    value.write_unquoted(&mut out);
    let from = DataType::varchar(out.len() as u32, types::CollationId::UTF8MB4_BIN);
    silently(&Value::Bytes(SqlBytes::from(out)), &from, ty, ctx)
}
