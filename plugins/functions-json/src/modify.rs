//! Functions that change a document: JSON_SET, JSON_INSERT, JSON_REPLACE, JSON_REMOVE, JSON_ARRAY_APPEND, JSON_ARRAY_INSERT.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, json_type, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::json::{PathLeg, SetMode};
use types::{JsonPath, JsonValue, Value};

use crate::argument::{Call, Wildcards, rest_are_paths};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "JSON_SET",
        Arity::at_least(3),
        "JSON_SET(json_doc, path, val, ...)\nThe document with values put at paths.",
        |_, args| {
            bind_pairs(args, "json_set", |document, path, value| {
                document.set_path(path, value, SetMode::Set);
                Ok(())
            })
        },
    )
    .edits_document(),
    scalar(
        "JSON_INSERT",
        Arity::at_least(3),
        "JSON_INSERT(json_doc, path, val, ...)\nThe document with values inserted at paths that do not exist.",
        |_, args| {
            bind_pairs(args, "json_insert", |document, path, value| {
                document.set_path(path, value, SetMode::Insert);
                Ok(())
            })
        },
    ),
    scalar(
        "JSON_REPLACE",
        Arity::at_least(3),
        "JSON_REPLACE(json_doc, path, val, ...)\nThe document with existing values replaced.",
        |_, args| {
            bind_pairs(args, "json_replace", |document, path, value| {
                document.set_path(path, value, SetMode::Replace);
                Ok(())
            })
        },
    )
    .edits_document(),
    scalar(
        "JSON_ARRAY_APPEND",
        Arity::at_least(3),
        "JSON_ARRAY_APPEND(json_doc, path, val, ...)\nThe document with values added to the ends of arrays.",
        |_, args| bind_pairs(args, "json_array_append", append),
    ),
    scalar(
        "JSON_ARRAY_INSERT",
        Arity::at_least(3),
        "JSON_ARRAY_INSERT(json_doc, path, val, ...)\nThe document with values put into arrays.",
        |_, args| bind_pairs(args, "json_array_insert", insert),
    ),
    scalar(
        "JSON_REMOVE",
        Arity::at_least(2),
        "JSON_REMOVE(json_doc, path, ...)\nThe document without the values at paths.",
        bind_remove,
    )
    .edits_document(),
];

type Change = fn(&mut JsonValue, &JsonPath, JsonValue) -> Result<()>;

/// Odd positions are paths, even ones after the first are values.
fn odd_are_paths(index: usize) -> bool {
    index % 2 == 1
}

fn bind_pairs(args: &[ArgInfo], name: &'static str, change: Change) -> Result<BoundFunction> {
    if args.len().is_multiple_of(2) {
        return Err(Error::with(ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name]));
    }
    let call = Call::new(name, args, odd_are_paths);
    let coercions = args.iter().enumerate().map(|(index, arg)| match index % 2 {
        1 => Coercion::Text,
        _ => kit::named_coercion(&arg.ty),
    });
    let bound = BoundFunction::new(json_type(), coercions.collect(), move |ctx, args| {
        let Some(mut document) = call.tree(args, 0)? else { return Ok(Value::Null) };
        for index in (1..args.len()).step_by(2) {
            let Some(path) = call.path(args, index, Wildcards::Refused)? else {
                return Ok(Value::Null);
            };
            change(&mut document, &path, call.value(args, index + 1))?;
        }
        finish(ctx, call.name, &document)
    });
    Ok(bound.with_nulls())
}

fn finish(ctx: &mut FunctionContext<'_>, name: &str, document: &JsonValue) -> Result<Value> {
    let value = kit::json_document(document)?;
    Ok(if ctx.fits_packet(name, kit::bytes(&value).len() as u64) { value } else { Value::Null })
}

fn append(document: &mut JsonValue, path: &JsonPath, value: JsonValue) -> Result<()> {
    match document.get_path_mut(path.legs()) {
        Some(JsonValue::Array(elements)) => elements.push(value),
        Some(other) => {
            let first = std::mem::replace(other, JsonValue::Null);
            *other = JsonValue::Array(vec![first, value]);
        }
        None => {}
    }
    Ok(())
}

fn insert(document: &mut JsonValue, path: &JsonPath, value: JsonValue) -> Result<()> {
    let Some((PathLeg::Cell(index), parents)) = path.legs().split_last() else {
        return Err(Error::with(ErrorCode::INVALID_JSON_PATH_ARRAY_CELL, &[]));
    };
    if let Some(JsonValue::Array(elements)) = document.get_path_mut(parents) {
        let at = match index.resolve(elements.len()) {
            Some(at) => at.min(elements.len()),
            // Before the first element.
            None if index.from_end => 0,
            None => elements.len(),
        };
        elements.insert(at, value);
    }
    Ok(())
}

fn bind_remove(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let call = Call::new("json_remove", args, rest_are_paths);
    let coercions = vec![kit::named_coercion(&args[0].ty), Coercion::Text];
    Ok(BoundFunction::new(json_type(), coercions, move |_, args| {
        let Some(mut document) = call.tree(args, 0)? else { return Ok(Value::Null) };
        for index in 1..args.len() {
            let Some(path) = call.path(args, index, Wildcards::Refused)? else {
                return Ok(Value::Null);
            };
            if path.legs().is_empty() {
                return Err(Error::with(ErrorCode::JSON_VACUOUS_PATH, &[&"$"]));
            }
            document.remove_path(&path);
        }
        kit::json_document(&document)
    }))
}
