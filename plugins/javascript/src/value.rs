//! Values of SQL as values of JavaScript, and back.

use errors::err;
use plugin_api::{TypedValue, kit};
use rquickjs::function::{Constructor, Function, This};
use rquickjs::promise::PromiseState;
use rquickjs::{Array, BigInt, Coerced, Ctx, Object, Result, TypedArray, Value as JsValue};
use types::{CollationId, DataType, DateTime, TypeKind, Value, json};

use crate::failure::{Failure, script_error};
use crate::guard::Watch;

/// Whole numbers up to this magnitude are exact in a JavaScript number.
const EXACT_MAX: i64 = (1 << 53) - 1;
const MICROS_PER_MILLI: i64 = 1000;
/// Bytes of a binary result between two looks at the clock.
const BYTES_PER_CHECK: usize = 1 << 16;

/// The parts of the language that conversions need, taken before a script can replace them.
pub(crate) struct Builtins<'js> {
    date: Constructor<'js>,
    date_value: Function<'js>,
}

impl<'js> Builtins<'js> {
    pub(crate) fn of(ctx: &Ctx<'js>) -> Result<Builtins<'js>> {
        let date: Constructor<'js> = ctx.globals().get("Date")?;
        let prototype: Object<'js> = date.get("prototype")?;
        Ok(Builtins { date, date_value: prototype.get("getTime")? })
    }
}

/// A value of SQL in JavaScript.
pub(crate) fn to_js<'js>(
    ctx: &Ctx<'js>,
    builtins: &Builtins<'js>,
    value: &Value,
    ty: &DataType,
) -> Result<JsValue<'js>> {
    let number = |number: f64| Ok(JsValue::new_number(ctx.clone(), number));
    match value {
        Value::Null => Ok(JsValue::new_null(ctx.clone())),
        Value::Int(truth) if ty.is_truth() => Ok(JsValue::new_bool(ctx.clone(), *truth != 0)),
        Value::Int(whole) if whole.unsigned_abs() <= EXACT_MAX as u64 => number(*whole as f64),
        Value::Int(whole) => Ok(BigInt::from_i64(ctx.clone(), *whole)?.into_value()),
        Value::UInt(whole) if *whole <= EXACT_MAX as u64 => number(*whole as f64),
        Value::UInt(whole) => Ok(BigInt::from_u64(ctx.clone(), *whole)?.into_value()),
        Value::Double(double) => number(*double),
        Value::Decimal(decimal) => number(decimal.to_f64()),
        Value::Bytes(bytes) if ty.is_binary() || is_opaque(ty.kind) => {
            Ok(TypedArray::<u8>::new_copy(ctx.clone(), bytes.as_slice())?.into_value())
        }
        Value::Bytes(_) if ty.as_fixed().is_some() => plain_text(ctx, value, ty),
        Value::Bytes(bytes) => text(ctx, &String::from_utf8_lossy(bytes)),
        Value::Date(date) => to_date(ctx, builtins, date.at_midnight(), value, ty),
        Value::DateTime(at) => to_date(ctx, builtins, *at, value, ty),
        Value::Time(_) => plain_text(ctx, value, ty),
        Value::Json(document) => {
            let mut source = Vec::new();
            json::write_text(document, &mut source);
            ctx.json_parse(source)
        }
    }
}

fn is_opaque(kind: TypeKind) -> bool {
    matches!(kind, TypeKind::Geometry | TypeKind::Vector)
}

fn text<'js>(ctx: &Ctx<'js>, text: &str) -> Result<JsValue<'js>> {
    Ok(rquickjs::String::from_str(ctx.clone(), text)?.into_value())
}

fn plain_text<'js>(ctx: &Ctx<'js>, value: &Value, ty: &DataType) -> Result<JsValue<'js>> {
    let mut out = Vec::new();
    types::to_text(value, ty, &mut out);
    text(ctx, &String::from_utf8_lossy(&out))
}

/// A Date whose UTC fields are those of the value; a date that does not exist is its text.
fn to_date<'js>(
    ctx: &Ctx<'js>,
    builtins: &Builtins<'js>,
    at: DateTime,
    value: &Value,
    ty: &DataType,
) -> Result<JsValue<'js>> {
    match at.to_unix_micros() {
        Some(micros) => builtins.date.construct((micros.div_euclid(MICROS_PER_MILLI) as f64,)),
        None => plain_text(ctx, value, ty),
    }
}

/// Runs what the script has put off, and takes the value out of a promise.
pub(crate) fn settle<'js>(
    ctx: &Ctx<'js>,
    value: JsValue<'js>,
    watch: &Watch,
) -> std::result::Result<JsValue<'js>, Failure> {
    while ctx.execute_pending_job() {
        if watch.must_stop() {
            return Err(rquickjs::Error::Exception.into());
        }
    }
    let Some(promise) = value.as_promise() else { return Ok(value) };
    match promise.state() {
        PromiseState::Pending => Err(script_error("the promise is never settled").into()),
        PromiseState::Resolved | PromiseState::Rejected => match promise.result() {
            Some(result) => Ok(result?),
            None => Err(script_error("the promise has no result").into()),
        },
    }
}

/// A value of JavaScript in SQL, with the type that suits it.
pub(crate) fn to_sql<'js>(
    ctx: &Ctx<'js>,
    builtins: &Builtins<'js>,
    value: &JsValue<'js>,
    watch: &Watch,
) -> std::result::Result<TypedValue, Failure> {
    if value.is_null() || value.is_undefined() {
        return Ok(TypedValue { value: Value::Null, ty: DataType::null() });
    }
    if let Some(truth) = value.as_bool() {
        return Ok(TypedValue { value: Value::bool(truth), ty: DataType::boolean() });
    }
    if let Some(number) = value.as_number() {
        return Ok(of_number(number));
    }
    if let Some(string) = value.as_string() {
        return Ok(of_text(&string.to_string()?));
    }
    if value.is_big_int() {
        return Ok(of_big_int(value.get::<Coerced<String>>()?.0));
    }
    let Some(object) = value.as_object().filter(|_| !value.is_function()) else {
        let text = format!("a value of type {} has no SQL value", value.type_name());
        return Err(script_error(&text).into());
    };
    if let Some(bytes) = object.as_typed_array::<u8>() {
        return of_bytes(bytes, watch);
    }
    if !value.is_proxy() && object.is_instance_of(&*builtins.date) {
        let millis: f64 = builtins.date_value.call((This(object.clone()),))?;
        return Ok(of_date(millis));
    }
    of_json(ctx, value)
}

fn of_number(number: f64) -> TypedValue {
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX as f64 {
        return TypedValue { value: Value::Int(number as i64), ty: DataType::bigint() };
    }
    if number.is_finite() {
        return TypedValue { value: Value::Double(number), ty: DataType::double() };
    }
    of_text(if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    })
}

fn of_text(text: &str) -> TypedValue {
    let ty = kit::text_type(text.len() as u64, CollationId::UTF8MB4_0900_AI_CI);
    TypedValue { value: Value::text(text), ty }
}

fn of_big_int(digits: String) -> TypedValue {
    if let Ok(number) = digits.parse::<i64>() {
        return TypedValue { value: Value::Int(number), ty: DataType::bigint() };
    }
    match digits.parse::<u64>() {
        Ok(number) => TypedValue { value: Value::UInt(number), ty: DataType::bigint_unsigned() },
        Err(_) => of_text(&digits),
    }
}

/// Of milliseconds since 1970; a Date that is none is NULL, as in JSON.
fn of_date(millis: f64) -> TypedValue {
    let micros = (millis * MICROS_PER_MILLI as f64) as i64;
    let at = if millis.is_finite() { DateTime::from_unix_micros(micros) } else { None };
    let fsp = if micros % 1_000_000 == 0 { 0 } else { 3 };
    TypedValue { value: at.map_or(Value::Null, Value::DateTime), ty: DataType::datetime(fsp) }
}

fn of_bytes(array: &TypedArray<'_, u8>, watch: &Watch) -> std::result::Result<TypedValue, Failure> {
    let mut bytes = Vec::new();
    for index in 0..array.len() {
        if index % BYTES_PER_CHECK == 0 && watch.must_stop() {
            return Err(rquickjs::Error::Exception.into());
        }
        bytes.push(array.as_object().get::<_, u8>(index as u32)?);
    }
    let ty = kit::binary_type(bytes.len() as u64);
    Ok(TypedValue { value: Value::Bytes(types::SqlBytes::new(&bytes)), ty })
}

fn of_json<'js>(ctx: &Ctx<'js>, value: &JsValue<'js>) -> std::result::Result<TypedValue, Failure> {
    let Some(text) = ctx.json_stringify(value)? else {
        return Ok(TypedValue { value: Value::Null, ty: DataType::null() });
    };
    let text = text.to_string()?;
    let document = json::parse(text.as_bytes()).map_err(|_| {
        // JSON.stringify writes JSON, but not always such as a document may be.
        let shown: String = text.chars().take(40).collect();
        script_error(&format!("the result is no JSON document of SQL: {shown}"))
    })?;
    let value = kit::json_document(&document)?;
    Ok(TypedValue { value, ty: kit::json_type() })
}

/// A value as text: the result of `JS()`.
///
/// # Errors
/// Bytes that are no text.
pub(crate) fn to_text(typed: TypedValue) -> errors::Result<Value> {
    match &typed.value {
        Value::Null => return Ok(Value::Null),
        Value::Bytes(bytes) if std::str::from_utf8(bytes).is_err() => {
            return Err(err!(
                LANGUAGE_COMPONENT_ERROR,
                crate::failure::LANGUAGE,
                "the bytes of the result are not UTF-8"
            ));
        }
        Value::Bytes(_) => return Ok(typed.value),
        Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => {}
    }
    let mut out = Vec::new();
    types::to_text(&typed.value, &typed.ty, &mut out);
    Ok(Value::Bytes(types::SqlBytes::new(&out)))
}

/// An array of values.
pub(crate) fn array<'js>(
    ctx: &Ctx<'js>,
    values: impl Iterator<Item = Result<JsValue<'js>>>,
) -> Result<Array<'js>> {
    let array = Array::new(ctx.clone())?;
    for (index, value) in values.enumerate() {
        array.set(index, value?)?;
    }
    Ok(array)
}
