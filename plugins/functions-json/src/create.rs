//! JSON_ARRAY, JSON_OBJECT, JSON_QUOTE, JSON_UNQUOTE.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, json_type, scalar, text_length, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionRole, ScalarFunction,
};
use types::json::{self, JsonObject, JsonRef};
use types::{CollationId, JsonValue, SqlBytes, TypeKind, Value};

use crate::argument::{Call, no_paths};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "JSON_ARRAY",
        Arity::at_least(0),
        "JSON_ARRAY([val, ...])\nA JSON array of the values.",
        |_, args| {
            let call = Call::new("json_array", args, no_paths);
            Ok(BoundFunction::new(json_type(), coercions(args), move |_, args| {
                let elements = (0..args.len()).map(|index| call.value(args, index)).collect();
                kit::json_document(&JsonValue::Array(elements))
            })
            .with_nulls())
        },
    ),
    scalar(
        "JSON_OBJECT",
        Arity::at_least(0),
        "JSON_OBJECT([key, val, ...])\nA JSON object of the pairs.",
        bind_object,
    )
    .role(FunctionRole::JsonObject),
    scalar(
        "JSON_QUOTE",
        Arity::exactly(1),
        "JSON_QUOTE(string)\nA JSON string of a text.",
        bind_quote,
    ),
    scalar(
        "JSON_UNQUOTE",
        Arity::exactly(1),
        "JSON_UNQUOTE(json_val)\nThe text of a JSON string.",
        bind_unquote,
    )
    .role(FunctionRole::JsonUnquote),
];

/// Every argument unchanged, except for names of ENUM and SET members.
pub(crate) fn coercions(args: &[ArgInfo]) -> Vec<Coercion> {
    args.iter().map(|arg| kit::named_coercion(&arg.ty)).collect()
}

fn bind_object(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    if !args.len().is_multiple_of(2) {
        return Err(Error::with(ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&"json_object"]));
    }
    let call = Call::new("json_object", args, no_paths);
    let coercions = args.iter().enumerate().map(|(index, arg)| match index % 2 {
        0 => Coercion::Text,
        _ => kit::named_coercion(&arg.ty),
    });
    let bound = BoundFunction::new(json_type(), coercions.collect(), move |_, args| {
        let mut members = Vec::with_capacity(args.len() / 2);
        for index in (0..args.len()).step_by(2) {
            if args[index].is_null() {
                return Err(Error::with(ErrorCode::JSON_DOCUMENT_NULL_KEY, &[]));
            }
            members.push((kit::bytes(&args[index]).to_vec(), call.value(args, index + 1)));
        }
        kit::json_document(&JsonValue::Object(JsonObject::from_members(members)))
    });
    Ok(bound.with_nulls())
}

fn bind_quote(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    // A control character takes six.
    let length = text_length(&args[0].ty).saturating_mul(6).saturating_add(2);
    let given = &args[0].ty;
    if !given.is_string() && !given.is_enum_or_set() && given.kind != TypeKind::Null {
        return Err(Error::with(ErrorCode(3064), &[&1, &"json_quote"]));
    }
    let ty = text_type(length, CollationId::UTF8MB4_BIN);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let mut out = Vec::new();
        json::quote(kit::bytes(&args[0]), &mut out);
        Ok(if ctx.fits_packet("json_quote", out.len() as u64) {
            Value::Bytes(SqlBytes::from(out))
        } else {
            Value::Null
        })
    }))
}

fn bind_unquote(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let length = match args[0].ty.kind {
        TypeKind::Json => kit::UNBOUNDED_CHARACTERS,
        _ => text_length(&args[0].ty),
    };
    let ty = &args[0].ty;
    if !ty.is_string() && !matches!(ty.kind, TypeKind::Json | TypeKind::Null) {
        return Err(Error::with(ErrorCode(3064), &[&1, &"json_unquote"]));
    }
    let call = Call::new("json_unquote", args, no_paths);
    let ty = text_type(length, CollationId::UTF8MB4_BIN);
    Ok(BoundFunction::new(ty, vec![kit::named_coercion(&args[0].ty)], move |_, args| {
        let document = match &args[0] {
            Value::Bytes(text)
                if !(text.len() >= 2 && text.starts_with(b"\"") && text.ends_with(b"\"")) =>
            {
                return Ok(args[0].clone());
            }
            _ => call.document(args, 0)?,
        };
        Ok(document.map_or(Value::Null, |document| unquoted(JsonRef::new(&document))))
    }))
}

/// A string's characters, or the text of anything else.
pub(crate) fn unquoted(value: JsonRef<'_>) -> Value {
    let mut out = Vec::new();
    value.write_unquoted(&mut out);
    Value::Bytes(SqlBytes::from(out))
}
