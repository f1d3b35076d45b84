//! The computation of a column of JSON_TABLE: the value at a path of an item, as a value of the column's type.

use errors::{Diagnostics, Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, FunctionRole,
    ScalarFunction,
};
use types::convert::CastContext;
use types::json::{JsonRef, JsonType};
use types::{DataType, JsonValue, TypeKind, Value};

use crate::argument::{Call, Wildcards};
use crate::value::{converted, type_coercion};

/// The argument that has the column's type.
const TYPE: usize = 2;
/// The column's name.
const COLUMN: usize = 3;
/// The choice of ON EMPTY, and its DEFAULT.
const ON_EMPTY: usize = 4;
/// The choice of ON ERROR, and its DEFAULT.
const ON_ERROR: usize = 6;
/// Warnings of one conversion; any of them means that the value does not fit.
const WARNINGS_MAX: u32 = 4;

pub(crate) const FUNCTIONS: &[ScalarFunction] =
    &[scalar("JSON_TABLE COLUMN", Arity::exactly(8), "A column of JSON_TABLE.", bind)
        .role(FunctionRole::JsonTableColumn)];

/// `NULL`, `ERROR` or `DEFAULT` of ON EMPTY and ON ERROR, as the binder numbers them.
#[derive(Clone)]
enum On {
    Null,
    Error,
    /// A value of the column's type.
    Default(Value),
}

/// The reason why a value does not fit a column.
enum Misfit {
    Container,
    Range,
    /// Text that is not a number, for a column of this numeric type.
    Invalid(&'static str),
}

/// `(item, path, type, column, on empty, its default, on error, its default)`.
fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new("json_table", args, |index| index == 1);
    let ty = args[TYPE].ty.clone();
    let column = match &args[COLUMN].constant {
        Some(name) => String::from_utf8_lossy(kit::bytes(name)).into_owned(),
        None => String::new(),
    };
    let on_empty = on_clause(args, ON_EMPTY, &ty, &column)?;
    let on_error = on_clause(args, ON_ERROR, &ty, &column)?;
    let result = ty.clone().with_nullable(true);
    let kernel = move |ctx: &mut FunctionContext<'_>, args: &[Value]| {
        let Some(item) = call.document(args, 0)? else { return Ok(Value::Null) };
        let Some(path) = call.path(args, 1, Wildcards::Allowed)? else { return Ok(Value::Null) };
        let mut found = Vec::new();
        path.select(JsonRef::new(&item), &mut found);
        let fitted = match &found[..] {
            [] => match &on_empty {
                On::Null => return Ok(Value::Null),
                On::Error => {
                    return Err(Error::with(ErrorCode::MISSING_JSON_TABLE_VALUE, &[&column]));
                }
                On::Default(value) => return Ok(value.clone()),
            },
            [value] => fitted(*value, &ty, ctx),
            many if ty.kind == TypeKind::Json => {
                let items = many.iter().map(|value| JsonValue::from_ref(*value)).collect();
                Ok(Value::Json(JsonValue::Array(items).to_binary()))
            }
            _ => Err(Misfit::Container),
        };
        let misfit = match fitted {
            Ok(value) => return Ok(value),
            Err(misfit) => misfit,
        };
        match (&on_error, misfit) {
            (On::Null, _) => Ok(Value::Null),
            (On::Error, misfit) => Err(error_of(&misfit, &column)),
            (On::Default(value), _) => Ok(value.clone()),
        }
    };
    let first = kit::named_coercion(&args[0].ty);
    let coercions = vec![first, Coercion::Text, type_coercion(&args[TYPE].ty), Coercion::AsIs];
    Ok(BoundFunction::new(result, coercions, kernel).with_nulls())
}

fn error_of(misfit: &Misfit, column: &str) -> Error {
    match misfit {
        Misfit::Container => Error::with(ErrorCode::WRONG_JSON_TABLE_VALUE, &[&column]),
        Misfit::Invalid(wanted) => {
            let code = ErrorCode::INVALID_JSON_VALUE_FOR_CAST;
            Error::with(code, &[wanted, &column, &1])
        }
        Misfit::Range => Error::with(ErrorCode::JT_VALUE_OUT_OF_RANGE, &[&column]),
    }
}

fn on_clause(args: &[ArgInfo], at: usize, ty: &DataType, column: &str) -> Result<On> {
    match args[at].constant {
        Some(Value::Int(1)) => return Ok(On::Error),
        Some(Value::Int(2)) => {}
        _ => return Ok(On::Null),
    }
    let given = &args[at + 1];
    let Some(value) = given.constant.as_ref().filter(|value| !value.is_null()) else {
        return Ok(On::Null);
    };
    let mut text = Vec::new();
    types::text::to_text(value, &given.ty, &mut text);
    let document = types::json::parse(&text).map_err(|error| {
        let code = ErrorCode::INVALID_JSON_TEXT_IN_PARAM;
        Error::with(code, &[&1, &"JSON_TABLE", &error.message, &error.position])
    })?;
    default(JsonRef::new(&document.to_binary()), ty, column).map(On::Default)
}

/// A DEFAULT as a value of the column's type.
fn default(document: JsonRef<'_>, ty: &DataType, column: &str) -> Result<Value> {
    let mut diagnostics = Diagnostics::new(WARNINGS_MAX);
    let mut conversion = CastContext::new(types::SqlMode::default(), &mut diagnostics);
    let is_null = document.kind() == JsonType::Null && ty.kind != TypeKind::Json;
    let found = match is_null {
        true => Err(misfit_of(true, ty)),
        false => fitted_in(document, ty, &mut conversion),
    };
    found.map_err(|misfit| match misfit {
        Misfit::Container => Error::with(ErrorCode::INVALID_DEFAULT, &[&column]),
        Misfit::Invalid(_) | Misfit::Range => error_of(&misfit, column),
    })
}

/// A value of a document as one of the column's type. JSON's null is NULL.
fn fitted(
    value: JsonRef<'_>,
    ty: &DataType,
    ctx: &mut FunctionContext<'_>,
) -> std::result::Result<Value, Misfit> {
    let mut diagnostics = Diagnostics::new(WARNINGS_MAX);
    let mut conversion = CastContext::new(ctx.sql_mode, &mut diagnostics);
    conversion.time_zone = ctx.time_zone;
    conversion.today = ctx.now.date();
    fitted_in(value, ty, &mut conversion)
}

fn fitted_in(
    value: JsonRef<'_>,
    ty: &DataType,
    conversion: &mut CastContext<'_>,
) -> std::result::Result<Value, Misfit> {
    match value.kind() {
        JsonType::Null => return Ok(Value::Null),
        _ if ty.kind == TypeKind::Json => return Ok(Value::Json(value.to_document())),
        JsonType::Array | JsonType::Object => return Err(Misfit::Container),
        _ => {}
    }
    let is_text = value.kind() == JsonType::String;
    let value = converted(value, ty, conversion).ok_or_else(|| misfit_of(is_text, ty))?;
    if is_within(&value, ty) { Ok(value) } else { Err(Misfit::Range) }
}

/// The reason why a scalar is no value of a type.
fn misfit_of(is_text: bool, ty: &DataType) -> Misfit {
    match ty.kind {
        _ if is_text && ty.is_integer() => Misfit::Invalid("INTEGER"),
        TypeKind::Decimal if is_text => Misfit::Invalid("DECIMAL"),
        TypeKind::Float | TypeKind::Double if is_text => Misfit::Invalid("DOUBLE"),
        _ => Misfit::Range,
    }
}

/// Whether an integer can be held by a column narrower than 64 bits.
fn is_within(value: &Value, ty: &DataType) -> bool {
    let bits = match ty.kind {
        TypeKind::TinyInt => 8,
        TypeKind::SmallInt => 16,
        TypeKind::MediumInt => 24,
        TypeKind::Int => 32,
        _ => return true,
    };
    match value {
        Value::UInt(value) => *value < 1 << bits,
        Value::Int(value) => (-(1_i64 << (bits - 1))..1 << (bits - 1)).contains(value),
        _ => true,
    }
}
