//! JSON_CONTAINS, JSON_CONTAINS_PATH, JSON_OVERLAPS, MEMBER OF.

use std::cmp::Ordering;

use errors::Result;
use plugin_api::kit::{self, any_nullable, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionRole, ScalarFunction,
};
use types::Value;
use types::json::{JsonRef, JsonType};

use crate::argument::{Call, Wildcards, no_paths};
use crate::create::coercions;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "JSON_CONTAINS",
        Arity::between(2, 3),
        "JSON_CONTAINS(target, candidate[, path])\nWhether one document contains another.",
        bind_contains,
    )
    .role(FunctionRole::JsonContains),
    scalar(
        "JSON_CONTAINS_PATH",
        Arity::at_least(3),
        "JSON_CONTAINS_PATH(json_doc, one_or_all, path, ...)\nWhether paths lead to anything.",
        bind_contains_path,
    )
    .role(FunctionRole::JsonContainsPath),
    scalar(
        "JSON_OVERLAPS",
        Arity::exactly(2),
        "JSON_OVERLAPS(json_doc1, json_doc2)\nWhether two documents have something in common.",
        |_, args| {
            let call = Call::new("json_overlaps", args, no_paths);
            let ty = kit::integer_type(1, any_nullable(args));
            Ok(BoundFunction::new(ty, coercions(args), move |_, args| {
                let (Some(left), Some(right)) = (call.document(args, 0)?, call.document(args, 1)?)
                else {
                    return Ok(Value::Null);
                };
                Ok(Value::bool(overlaps(JsonRef::new(&left), JsonRef::new(&right))))
            }))
        },
    )
    .role(FunctionRole::JsonOverlaps),
    scalar(
        "JSON_MEMBER_OF",
        Arity::exactly(2),
        "value MEMBER OF(json_array)\nWhether an array has a value.",
        bind_member_of,
    )
    .role(FunctionRole::JsonMemberOf),
];

fn equal(left: JsonRef<'_>, right: JsonRef<'_>) -> bool {
    left.compare(right) == Ordering::Equal
}

/// Recursion ends with the documents, which are at most 100 deep.
fn contains(target: JsonRef<'_>, candidate: JsonRef<'_>) -> bool {
    match (target.kind(), candidate.kind()) {
        (JsonType::Array, JsonType::Array) => candidate
            .elements()
            .all(|wanted| target.elements().any(|element| contains(element, wanted))),
        (JsonType::Array, _) => target.elements().any(|element| contains(element, candidate)),
        (JsonType::Object, JsonType::Object) => candidate
            .members()
            .all(|(name, wanted)| target.get(name).is_some_and(|value| contains(value, wanted))),
        _ => equal(target, candidate),
    }
}

fn overlaps(left: JsonRef<'_>, right: JsonRef<'_>) -> bool {
    match (left.kind(), right.kind()) {
        (JsonType::Array, JsonType::Array) => {
            left.elements().any(|element| right.elements().any(|other| equal(element, other)))
        }
        (JsonType::Array, _) => left.elements().any(|element| equal(element, right)),
        (_, JsonType::Array) => right.elements().any(|element| equal(left, element)),
        (JsonType::Object, JsonType::Object) => left
            .members()
            .any(|(name, value)| right.get(name).is_some_and(|other| equal(value, other))),
        _ => equal(left, right),
    }
}

fn bind_contains(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new("json_contains", args, |index| index == 2);
    let mut wanted = coercions(&args[..2]);
    wanted.push(Coercion::Text);
    Ok(BoundFunction::new(kit::integer_type(21, true), wanted, move |_, args| {
        let (Some(target), Some(candidate)) = (call.document(args, 0)?, call.document(args, 1)?)
        else {
            return Ok(Value::Null);
        };
        let (root, candidate) = (JsonRef::new(&target), JsonRef::new(&candidate));
        if args.len() == 2 {
            return Ok(Value::bool(contains(root, candidate)));
        }
        let Some(path) = call.path(args, 2, Wildcards::Refused)? else { return Ok(Value::Null) };
        Ok(path.first(root).map_or(Value::Null, |place| Value::bool(contains(place, candidate))))
    }))
}

fn bind_contains_path(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new("json_contains_path", args, |index| index > 1);
    let wanted = vec![kit::named_coercion(&args[0].ty), Coercion::Text];
    Ok(BoundFunction::new(kit::integer_type(21, true), wanted, move |_, args| {
        let Some(document) = call.document(args, 0)? else { return Ok(Value::Null) };
        let Some(all) = call.wants_all(args, 1)? else { return Ok(Value::Null) };
        for index in 2..args.len() {
            let Some(path) = call.path(args, index, Wildcards::Allowed)? else {
                return Ok(Value::Null);
            };
            let found = path.first(JsonRef::new(&document)).is_some();
            if found != all {
                return Ok(Value::bool(found));
            }
        }
        Ok(Value::bool(all))
    }))
}

fn bind_member_of(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new("member of", args, no_paths);
    let ty = kit::integer_type(1, any_nullable(args));
    Ok(BoundFunction::new(ty, coercions(args), move |_, args| {
        let wanted = call.value(args, 0).to_binary();
        let Some(document) = call.document(args, 1)? else { return Ok(Value::Null) };
        let (root, wanted) = (JsonRef::new(&document), JsonRef::new(&wanted));
        Ok(Value::bool(match root.kind() {
            JsonType::Array => root.elements().any(|element| equal(element, wanted)),
            _ => equal(root, wanted),
        }))
    }))
}
