//! ETAG, and the document of a JSON duality view, which has the tag of its content.
//!
//! A tag is the sum, modulo 2^128, of a digest (XXH3, 128 bits) of each argument. The order of the rows that make an array is not
//! content: in a view's document an array counts by the sum of the digests of its elements.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, json_type, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionRole, ScalarFunction,
};
use types::json::{JsonObject, JsonRef};
use types::{Date, JsonValue, SqlBytes, Time, TypeKind, Value};
use xxhash_rust::xxh3::xxh3_128;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ETAG",
        Arity::at_least(1),
        "ETAG(val, ...)\nA tag of the values: 32 hexadecimal digits that change with them.",
        bind_etag,
    ),
    scalar(
        "JSON_DUALITY_OBJECT DOCUMENT",
        Arity::exactly(1),
        "The document of a JSON duality view.",
        |_, _| {
            Ok(BoundFunction::new(json_type(), vec![Coercion::Json], |_, args| match &args[0] {
                Value::Json(object) => tagged(JsonValue::from_ref(JsonRef::new(object))),
                other => Ok(other.clone()),
            }))
        },
    )
    .role(FunctionRole::JsonDualityDocument),
];

const METADATA: &[u8] = b"_metadata";

fn bind_etag(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    if args.iter().any(|arg| matches!(arg.ty.kind, TypeKind::Geometry | TypeKind::Vector)) {
        return Err(Error::with(ErrorCode::ETAG_TYPE, &[]));
    }
    let coercion = |arg: &ArgInfo| {
        if arg.ty.kind == TypeKind::Json {
            Coercion::AsIs
        } else if arg.ty.kind == TypeKind::Bit || arg.ty.is_string() {
            Coercion::Bytes
        } else {
            Coercion::Text
        }
    };
    let ty = text_type(32, ctx.collation_connection);
    let bound = BoundFunction::new(ty, args.iter().map(coercion).collect(), |_, args| {
        let sum = args.iter().fold(0u128, |sum, arg| sum.wrapping_add(digest_of(arg)));
        Ok(Value::Bytes(SqlBytes::from(text(sum))))
    });
    Ok(bound.with_nulls())
}

fn text(tag: u128) -> Vec<u8> {
    format!("{tag:032x}").into_bytes()
}

fn digest_of(value: &Value) -> u128 {
    match value {
        Value::Null => xxh3_128(b"\x01\x00"),
        Value::Json(document) => {
            let mut out = Vec::new();
            content(&JsonValue::from_ref(JsonRef::new(document)), Arrays::InOrder, &mut out);
            xxh3_128(&out)
        }
        value => xxh3_128(filled(kit::bytes(value))),
    }
}

/// An empty text counts as one zero.
fn filled(text: &[u8]) -> &[u8] {
    if text.is_empty() { b"\0" } else { text }
}

#[derive(Clone, Copy, PartialEq)]
enum Arrays {
    InOrder,
    AsSets,
}

/// The bytes of which a tag is the digest.
fn content(value: &JsonValue, arrays: Arrays, out: &mut Vec<u8>) {
    match value {
        JsonValue::Null => out.push(0),
        JsonValue::Bool(value) => out.push(if *value { 8 } else { 7 }),
        JsonValue::Int(value) => number(*value as f64, out),
        JsonValue::UInt(value) => number(*value as f64, out),
        JsonValue::Double(value) => number(*value, out),
        JsonValue::Decimal(value) => number(value.to_f64(), out),
        JsonValue::String(bytes) | JsonValue::Opaque(_, bytes) => out.extend(filled(bytes)),
        JsonValue::Date(date) => out.extend((day_part(*date) << 41).to_le_bytes()),
        JsonValue::Time(time) => out.extend(clock_part(*time).to_le_bytes()),
        JsonValue::DateTime(datetime) => {
            let packed = (day_part(datetime.date()) << 41) + clock_part(datetime.time());
            out.extend(packed.to_le_bytes());
        }
        JsonValue::Array(elements) => {
            out.push(6);
            match arrays {
                Arrays::InOrder => elements.iter().for_each(|one| content(one, arrays, out)),
                Arrays::AsSets => {
                    let mut sum = 0u128;
                    let mut own = Vec::new();
                    for element in elements {
                        own.clear();
                        content(element, arrays, &mut own);
                        sum = sum.wrapping_add(xxh3_128(&own));
                    }
                    out.extend(sum.to_le_bytes());
                }
            }
        }
        JsonValue::Object(object) => {
            out.push(5);
            for (name, member) in object.members() {
                out.extend(name);
                content(member, arrays, out);
            }
        }
    }
}

/// Numbers count by their value, whatever their type.
fn number(value: f64, out: &mut Vec<u8>) {
    if value == 0.0 {
        out.push(0);
    } else {
        out.extend(value.to_le_bytes());
    }
}

/// Year, month and day as the reference packs them.
fn day_part(date: Date) -> i64 {
    let months = i64::from(date.year()) * 13 + i64::from(date.month());
    (months << 5) | i64::from(date.day())
}

/// A time as the reference packs it.
fn clock_part(time: Time) -> i64 {
    let micros = time.micros().abs();
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let clock = ((seconds / 3600) << 12) | ((seconds / 60 % 60) << 6) | (seconds % 60);
    ((clock << 24) + fraction) * if time.micros() < 0 { -1 } else { 1 }
}

/// A view's document from its object: the member `_metadata` has the tag.
fn tagged(object: JsonValue) -> Result<Value> {
    let mut out = Vec::new();
    content(&object, Arrays::AsSets, &mut out);
    let tag = JsonValue::String(text(xxh3_128(&out)));
    let JsonValue::Object(object) = object else { return kit::json_document(&object) };
    let mut members = object.into_members();
    members.retain(|(name, _)| name != METADATA);
    let metadata = JsonObject::from_members(vec![(b"etag".to_vec(), tag)]);
    members.push((METADATA.to_vec(), JsonValue::Object(metadata)));
    kit::json_document(&JsonValue::Object(JsonObject::from_members(members)))
}
