//! Functions that read from a document: JSON_EXTRACT, JSON_VALUE, JSON_KEYS, JSON_LENGTH and similar ones.

use errors::Result;
use plugin_api::kit::{self, json_type, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionRole, ScalarFunction,
};
use types::json::{self, JsonRef, JsonType};
use types::{CollationId, DataType, JsonValue, SqlBytes, TypeKind, Value};

use crate::argument::{Call, Wildcards, no_paths, rest_are_paths};
use crate::create::coercions;

/// More than the longest type name.
const TYPE_LENGTH: u64 = 17;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "JSON_EXTRACT",
        Arity::at_least(2),
        "JSON_EXTRACT(json_doc, path, ...)\nThe values that paths lead to.",
        bind_extract,
    ).role(FunctionRole::JsonExtract),
    scalar(
        "JSON_VALUE",
        // The binder adds arguments for RETURNING, ON EMPTY and ON ERROR.
        Arity::exactly(7),
        "JSON_VALUE(json_doc, path [RETURNING type] [on_empty] [on_error])\nThe value that a path leads to, as text or as a type.",
        crate::value::bind,
    ).role(FunctionRole::JsonValue),
    scalar(
        "JSON_VALID",
        Arity::exactly(1),
        "JSON_VALID(val)\nWhether a value is JSON.",
        bind_valid,
    ),
    scalar(
        "JSON_TYPE",
        Arity::exactly(1),
        "JSON_TYPE(json_val)\nThe type of a JSON value.",
        |_, args| {
            of_document(
                args,
                "json_type",
                text_type(TYPE_LENGTH, CollationId::UTF8MB4_BIN),
                |document| Value::text(document.kind().name()),
            )
        },
    ),
    scalar(
        "JSON_DEPTH",
        Arity::exactly(1),
        "JSON_DEPTH(json_doc)\nHow deep a document is.",
        |_, args| {
            of_document(args, "json_depth", kit::integer_type(21, true), |document| {
                Value::Int(document.depth() as i64)
            })
        },
    ),
    scalar(
        "JSON_PRETTY",
        Arity::exactly(1),
        "JSON_PRETTY(json_val)\nA document in lines with indentation.",
        |_, args| {
            let ty = text_type(kit::UNBOUNDED_CHARACTERS, CollationId::UTF8MB4_BIN);
            of_document(args, "json_pretty", ty, |document| {
                let mut out = Vec::new();
                json::write_pretty(&document.to_document(), &mut out);
                Value::Bytes(SqlBytes::from(out))
            })
        },
    ),
    scalar(
        "JSON_STORAGE_SIZE",
        Arity::exactly(1),
        "JSON_STORAGE_SIZE(json_val)\nBytes of a document's binary form.",
        |_, args| {
            of_document(args, "json_storage_size", kit::integer_type(21, true), |document| {
                Value::Int(document.to_document().len() as i64)
            })
        },
    ),
    scalar(
        "JSON_STORAGE_FREE",
        Arity::exactly(1),
        "JSON_STORAGE_FREE(json_val)\nBytes that in-place updates have freed: always 0.",
        |_, args| {
            of_document(args, "json_storage_free", kit::integer_type(21, false), |_| Value::Int(0))
        },
    ),
    scalar(
        "JSON_LENGTH",
        Arity::between(1, 2),
        "JSON_LENGTH(json_doc[, path])\nElements or members; 1 for a scalar.",
        |_, args| {
            at_path(args, "json_length", kit::integer_type(21, true), |value| {
                Value::Int(if value.kind().is_scalar() { 1 } else { value.len() as i64 })
            })
        },
    ),
    scalar(
        "JSON_KEYS",
        Arity::between(1, 2),
        "JSON_KEYS(json_doc[, path])\nThe names of an object's members.",
        |_, args| {
            at_path(args, "json_keys", json_type(), |value| match value.kind() {
                JsonType::Object => {
                    let names = value.members().map(|(name, _)| JsonValue::string(name)).collect();
                    JsonValue::Array(names).to_value()
                }
                _ => Value::Null,
            })
        },
    ),
];

type OfDocument = fn(JsonRef<'_>) -> Value;

fn of_document(
    args: &[ArgInfo],
    name: &'static str,
    ty: DataType,
    answer: OfDocument,
) -> Result<BoundFunction> {
    let call = Call::new(name, args, no_paths);
    Ok(BoundFunction::new(ty, coercions(args), move |_, args| {
        let document = call.document(args, 0)?;
        Ok(document.map_or(Value::Null, |document| answer(JsonRef::new(&document))))
    }))
}

fn at_path(
    args: &[ArgInfo],
    name: &'static str,
    ty: DataType,
    answer: OfDocument,
) -> Result<BoundFunction> {
    let call = Call::new(name, args, rest_are_paths);
    Ok(BoundFunction::new(
        ty,
        vec![kit::named_coercion(&args[0].ty), Coercion::Text],
        move |_, args| {
            let Some(document) = call.document(args, 0)? else { return Ok(Value::Null) };
            let root = JsonRef::new(&document);
            if args.len() == 1 {
                return Ok(answer(root));
            }
            let Some(path) = call.path(args, 1, Wildcards::Refused)? else {
                return Ok(Value::Null);
            };
            Ok(path.first(root).map_or(Value::Null, answer))
        },
    ))
}

fn path_coercions(args: &[ArgInfo]) -> Vec<Coercion> {
    vec![kit::named_coercion(&args[0].ty), Coercion::Text]
}

fn bind_extract(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new("json_extract", args, rest_are_paths);
    Ok(BoundFunction::new(json_type(), path_coercions(args), move |_, args| {
        if args.len() == 2
            && let Some(found) = call.in_text(args, 0, 1)?
        {
            return Ok(found.map_or(Value::Null, |value| value.to_value()));
        }
        let Some(document) = call.document(args, 0)? else { return Ok(Value::Null) };
        extract(&call, &document, args)
    }))
}

/// The values of a document at the paths after the first argument.
fn extract(call: &Call, document: &[u8], args: &[Value]) -> Result<Value> {
    let root = JsonRef::new(document);
    let mut found = Vec::new();
    let mut several = args.len() > 2;
    for index in 1..args.len() {
        let Some(path) = call.path(args, index, Wildcards::Allowed)? else {
            return Ok(Value::Null);
        };
        several |= path.has_wildcard();
        path.select(root, &mut found);
    }
    match &found[..] {
        [] => Ok(Value::Null),
        [only] if !several => Ok(Value::Json(only.to_document())),
        all => kit::json_document(&JsonValue::Array(
            all.iter().map(|value| JsonValue::from_ref(*value)).collect(),
        )),
    }
}

fn bind_valid(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let text = args[0].ty.is_text();
    let json = args[0].ty.kind == TypeKind::Json;
    Ok(BoundFunction::new(kit::integer_type(21, true), vec![Coercion::AsIs], move |_, args| {
        Ok(Value::bool(json || (text && json::check(kit::bytes(&args[0])).is_ok())))
    }))
}
