//! JSON_SCHEMA_VALID and JSON_SCHEMA_VALIDATION_REPORT: JSON Schema draft 4 without references and patterns, which return error 1235.

use std::cmp::Ordering;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, json_type, scalar};
use plugin_api::{Arity, BoundFunction, ScalarFunction};
use types::json::{JsonObject, JsonRef, JsonType};
use types::{JsonValue, Value};

use crate::argument::{Call, no_paths};
use crate::create::coercions;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "JSON_SCHEMA_VALID",
        Arity::exactly(2),
        "JSON_SCHEMA_VALID(schema, document)\nWhether a document follows a schema.",
        |_, args| {
            let call = Call::new("json_schema_valid", args, no_paths);
            let ty = kit::integer_type(1, any_nullable(args));
            Ok(BoundFunction::new(ty, coercions(args), move |_, args| {
                Ok(run(&call, args)?.map_or(Value::Null, |failure| Value::bool(failure.is_none())))
            }))
        },
    ),
    scalar(
        "JSON_SCHEMA_VALIDATION_REPORT",
        Arity::exactly(2),
        "JSON_SCHEMA_VALIDATION_REPORT(schema, document)\nWhere a document fails a schema.",
        |_, args| {
            let call = Call::new("json_schema_validation_report", args, no_paths);
            Ok(BoundFunction::new(json_type(), coercions(args), move |_, args| {
                Ok(run(&call, args)?
                    .map_or(Value::Null, |failure| report(failure.as_ref()).to_value()))
            }))
        },
    ),
];

/// The first requirement that a document fails.
struct Failure {
    keyword: &'static str,
    schema: String,
    document: String,
}

/// `None` for a NULL argument, else the first failure.
fn run(call: &Call, args: &[Value]) -> Result<Option<Option<Failure>>> {
    let (Some(schema), Some(document)) = (call.document(args, 0)?, call.document(args, 1)?) else {
        return Ok(None);
    };
    let schema = JsonRef::new(&schema);
    if schema.kind() != JsonType::Object {
        return Err(Error::with(ErrorCode(3853), &[&1, &call.name, &"object"]));
    }
    validate(schema, JsonRef::new(&document), "#", "#").map(Some)
}

fn report(failure: Option<&Failure>) -> JsonValue {
    let text = |text: &str| JsonValue::string(text);
    let mut members = vec![(b"valid".to_vec(), JsonValue::Bool(failure.is_none()))];
    if let Some(failure) = failure {
        let reason = format!(
            "The JSON document location '{}' failed requirement '{}' at JSON Schema location '{}'",
            failure.document, failure.keyword, failure.schema
        );
        members.push((b"reason".to_vec(), text(&reason)));
        members.push((b"schema-location".to_vec(), text(&failure.schema)));
        members.push((b"document-location".to_vec(), text(&failure.document)));
        members.push((b"schema-failed-keyword".to_vec(), text(failure.keyword)));
    }
    JsonValue::Object(JsonObject::from_members(members))
}

/// Unsupported keywords.
const MISSING: [&str; 5] = ["$ref", "pattern", "patternProperties", "dependencies", "format"];

fn validate(
    schema: JsonRef<'_>,
    document: JsonRef<'_>,
    at: &str,
    place: &str,
) -> Result<Option<Failure>> {
    for keyword in MISSING {
        if keyword != "format" && schema.get(keyword.as_bytes()).is_some() {
            return Err(Error::not_supported(format!("JSON Schema '{keyword}'")));
        }
    }
    let fail = |keyword: &'static str| {
        Ok(Some(Failure { keyword, schema: at.to_owned(), document: place.to_owned() }))
    };
    if let Some(keyword) = failed_scalar_keyword(schema, document) {
        return fail(keyword);
    }
    let nested = match document.kind() {
        JsonType::Object => validate_object(schema, document, at, place)?,
        JsonType::Array => validate_array(schema, document, at, place)?,
        _ => None,
    };
    if nested.is_some() {
        return Ok(nested);
    }
    let count = |keyword: &str| -> Result<Option<(usize, usize)>> {
        let Some(list) =
            schema.get(keyword.as_bytes()).filter(|list| list.kind() == JsonType::Array)
        else {
            return Ok(None);
        };
        let mut passed = 0;
        for part in list.elements() {
            passed += usize::from(validate(part, document, at, place)?.is_none());
        }
        Ok(Some((passed, list.len())))
    };
    if count("allOf")?.is_some_and(|(passed, all)| passed < all) {
        return fail("allOf");
    }
    if count("anyOf")?.is_some_and(|(passed, _)| passed == 0) {
        return fail("anyOf");
    }
    if count("oneOf")?.is_some_and(|(passed, _)| passed != 1) {
        return fail("oneOf");
    }
    if let Some(not) = schema.get(b"not")
        && validate(not, document, at, place)?.is_none()
    {
        return fail("not");
    }
    Ok(None)
}

fn type_matches(name: &[u8], document: JsonRef<'_>) -> bool {
    let kind = document.kind();
    match name {
        b"object" => kind == JsonType::Object,
        b"array" => kind == JsonType::Array,
        b"string" => kind == JsonType::String,
        b"boolean" => kind == JsonType::Bool,
        b"null" => kind == JsonType::Null,
        b"number" => kind.is_number(),
        b"integer" => {
            matches!(kind, JsonType::Int | JsonType::UInt)
                || document
                    .as_f64()
                    .is_some_and(|number| kind == JsonType::Double && number.fract() == 0.0)
        }
        _ => true,
    }
}

/// Requirements on the value itself.
fn failed_scalar_keyword(schema: JsonRef<'_>, document: JsonRef<'_>) -> Option<&'static str> {
    let equal = |other: JsonRef<'_>| document.compare(other) == Ordering::Equal;
    let names = |list: JsonRef<'_>| match list.kind() {
        JsonType::Array => {
            list.elements().any(|name| type_matches(name.as_bytes().unwrap_or_default(), document))
        }
        _ => type_matches(list.as_bytes().unwrap_or_default(), document),
    };
    if schema.get(b"type").is_some_and(|wanted| !names(wanted)) {
        return Some("type");
    }
    if schema.get(b"enum").is_some_and(|list| !list.elements().any(equal)) {
        return Some("enum");
    }
    let limit = |name: &[u8]| schema.get(name).and_then(number);
    let flag = |name: &[u8]| schema.get(name).and_then(|value| value.as_bool()).unwrap_or(false);
    if let Some(value) = number(document) {
        let low = |bound: f64| value < bound || (flag(b"exclusiveMinimum") && value == bound);
        if limit(b"minimum").is_some_and(low) {
            return Some("minimum");
        }
        let high = |bound: f64| value > bound || (flag(b"exclusiveMaximum") && value == bound);
        if limit(b"maximum").is_some_and(high) {
            return Some("maximum");
        }
        if limit(b"multipleOf").is_some_and(|unit| unit > 0.0 && (value / unit).fract() != 0.0) {
            return Some("multipleOf");
        }
    }
    if document.kind() == JsonType::String {
        let length = charset::char_length(document.as_bytes().unwrap_or_default()) as f64;
        if limit(b"minLength").is_some_and(|bound| length < bound) {
            return Some("minLength");
        }
        if limit(b"maxLength").is_some_and(|bound| length > bound) {
            return Some("maxLength");
        }
    }
    None
}

fn number(value: JsonRef<'_>) -> Option<f64> {
    match value.kind() {
        JsonType::Int => value.as_i64().map(|number| number as f64),
        JsonType::UInt => value.as_u64().map(|number| number as f64),
        JsonType::Double => value.as_f64(),
        JsonType::Decimal => value.as_decimal().map(|number| number.to_f64()),
        _ => None,
    }
}

fn validate_object(
    schema: JsonRef<'_>,
    document: JsonRef<'_>,
    at: &str,
    place: &str,
) -> Result<Option<Failure>> {
    let fail = |keyword: &'static str| {
        Ok(Some(Failure { keyword, schema: at.to_owned(), document: place.to_owned() }))
    };
    if let Some(required) = schema.get(b"required") {
        let missing =
            |name: JsonRef<'_>| name.as_bytes().is_some_and(|name| document.get(name).is_none());
        if required.elements().any(missing) {
            return fail("required");
        }
    }
    let limit = |name: &[u8]| schema.get(name).and_then(number);
    let count = document.len() as f64;
    if limit(b"minProperties").is_some_and(|bound| count < bound) {
        return fail("minProperties");
    }
    if limit(b"maxProperties").is_some_and(|bound| count > bound) {
        return fail("maxProperties");
    }
    let properties = schema.get(b"properties").filter(|value| value.kind() == JsonType::Object);
    let additional = schema.get(b"additionalProperties");
    for (name, member) in document.members() {
        let shown = String::from_utf8_lossy(name);
        let inner_place = format!("{place}/{shown}");
        if let Some(inner) = properties.and_then(|properties| properties.get(name)) {
            let failure =
                validate(inner, member, &format!("{at}/properties/{shown}"), &inner_place)?;
            if failure.is_some() {
                return Ok(failure);
            }
        } else if let Some(additional) = additional {
            match additional.as_bool().filter(|_| additional.kind() == JsonType::Bool) {
                Some(true) => {}
                Some(false) => return fail("additionalProperties"),
                None => {
                    let failure = validate(
                        additional,
                        member,
                        &format!("{at}/additionalProperties"),
                        &inner_place,
                    )?;
                    if failure.is_some() {
                        return Ok(failure);
                    }
                }
            }
        }
    }
    Ok(None)
}

fn validate_array(
    schema: JsonRef<'_>,
    document: JsonRef<'_>,
    at: &str,
    place: &str,
) -> Result<Option<Failure>> {
    let fail = |keyword: &'static str| {
        Ok(Some(Failure { keyword, schema: at.to_owned(), document: place.to_owned() }))
    };
    let limit = |name: &[u8]| schema.get(name).and_then(number);
    let count = document.len() as f64;
    if limit(b"minItems").is_some_and(|bound| count < bound) {
        return fail("minItems");
    }
    if limit(b"maxItems").is_some_and(|bound| count > bound) {
        return fail("maxItems");
    }
    if schema.get(b"uniqueItems").and_then(|value| value.as_bool()).unwrap_or(false) {
        let mut sorted: Vec<JsonRef<'_>> = document.elements().collect();
        sorted.sort_by(|left, right| left.compare(*right));
        if sorted.windows(2).any(|pair| pair[0].compare(pair[1]) == Ordering::Equal) {
            return fail("uniqueItems");
        }
    }
    let Some(items) = schema.get(b"items") else { return Ok(None) };
    for (index, element) in document.elements().enumerate() {
        let (inner, inner_at) = match items.kind() {
            JsonType::Array => match items.at(index) {
                Some(inner) => (inner, format!("{at}/items/{index}")),
                None => break,
            },
            _ => (items, format!("{at}/items")),
        };
        let failure = validate(inner, element, &inner_at, &format!("{place}/{index}"))?;
        if failure.is_some() {
            return Ok(failure);
        }
    }
    Ok(None)
}
