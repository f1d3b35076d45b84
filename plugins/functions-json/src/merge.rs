//! JSON_MERGE_PATCH and JSON_MERGE_PRESERVE.

use errors::Result;
use plugin_api::kit::{self, json_type, scalar};
use plugin_api::{Arity, BoundFunction, ScalarFunction};
use types::json::JsonObject;
use types::{JsonValue, Value};

use crate::argument::{Call, no_paths};
use crate::create::coercions;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "JSON_MERGE_PATCH",
        Arity::at_least(2),
        "JSON_MERGE_PATCH(json_doc, json_doc, ...)\nDocuments merged after RFC 7396.",
        |_, args| {
            let call = Call::new("json_merge_patch", args, no_paths);
            let bound = BoundFunction::new(json_type(), coercions(args), move |_, args| {
                merge_patch(&call, args)
            });
            Ok(bound.with_nulls())
        },
    ),
    scalar(
        "JSON_MERGE_PRESERVE",
        Arity::at_least(2),
        "JSON_MERGE_PRESERVE(json_doc, json_doc, ...)\nDocuments merged so that no value is lost.",
        |_, args| {
            let call = Call::new("json_merge_preserve", args, no_paths);
            let bound = BoundFunction::new(json_type(), coercions(args), move |_, args| {
                let mut merged: Option<JsonValue> = None;
                for index in 0..args.len() {
                    let Some(next) = call.tree(args, index)? else { return Ok(Value::Null) };
                    merged = Some(match merged {
                        None => next,
                        Some(before) => preserve(before, next),
                    });
                }
                merged.as_ref().map_or(Ok(Value::Null), kit::json_document)
            });
            Ok(bound)
        },
    )
    .aliases(&["JSON_MERGE"]).deprecated("JSON_MERGE", "'JSON_MERGE' is deprecated and will be removed in a future release. Please use JSON_MERGE_PRESERVE/JSON_MERGE_PATCH instead"),
];

/// A document that is not an object replaces everything before it, NULL too.
fn merge_patch(call: &Call, args: &[Value]) -> Result<Value> {
    let mut merged: Option<JsonValue> = call.tree(args, 0)?;
    for index in 1..args.len() {
        merged = match (merged, call.tree(args, index)?) {
            (_, None) => None,
            (None, Some(JsonValue::Object(_))) => None,
            (Some(target), Some(patch)) => Some(patched(target, patch)),
            (None, Some(other)) => Some(other),
        };
    }
    merged.as_ref().map_or(Ok(Value::Null), kit::json_document)
}

fn patched(target: JsonValue, patch: JsonValue) -> JsonValue {
    let JsonValue::Object(patch) = patch else { return patch };
    let mut object = match target {
        JsonValue::Object(object) => object,
        _ => JsonObject::new(),
    };
    for (name, value) in patch.into_members() {
        if matches!(value, JsonValue::Null) {
            object.remove(&name);
            continue;
        }
        let before = object.remove(&name).unwrap_or(JsonValue::Null);
        object.insert(name, patched(before, value));
    }
    JsonValue::Object(object)
}

fn preserve(left: JsonValue, right: JsonValue) -> JsonValue {
    match (left, right) {
        (JsonValue::Object(mut left), JsonValue::Object(right)) => {
            for (name, value) in right.into_members() {
                let merged = match left.remove(&name) {
                    Some(before) => preserve(before, value),
                    None => value,
                };
                left.insert(name, merged);
            }
            JsonValue::Object(left)
        }
        (left, right) => {
            let mut elements = into_elements(left);
            elements.extend(into_elements(right));
            JsonValue::Array(elements)
        }
    }
}

fn into_elements(value: JsonValue) -> Vec<JsonValue> {
    match value {
        JsonValue::Array(elements) => elements,
        other => vec![other],
    }
}
