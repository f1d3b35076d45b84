//! JSON_SCHEMA_VALID and JSON_SCHEMA_VALIDATION_REPORT: JSON Schema draft 4 with references within one schema.

use std::cmp::Ordering;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, json_type, scalar};
use plugin_api::{ArgInfo, Arity, BoundFunction, FunctionContext, ScalarFunction};
use types::json::{JsonObject, JsonRef, JsonType};
use types::{JsonValue, Value};

use crate::argument::{Call, no_paths};
use crate::create::coercions;
use crate::schema_parts::{Patterns, prepare, reference, resolve};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "JSON_SCHEMA_VALID",
        Arity::exactly(2),
        "JSON_SCHEMA_VALID(schema, document)\nWhether a document follows a schema.",
        |_, args| {
            let call = Call::new("json_schema_valid", args, no_paths);
            let ty = kit::integer_type(1, any_nullable(args));
            let patterns = constant_patterns(&call, args);
            Ok(BoundFunction::new(ty, coercions(args), move |ctx, args| {
                Ok(run(ctx, &call, patterns.as_ref(), args)?
                    .map_or(Value::Null, |failure| Value::bool(failure.is_none())))
            }))
        },
    ),
    scalar(
        "JSON_SCHEMA_VALIDATION_REPORT",
        Arity::exactly(2),
        "JSON_SCHEMA_VALIDATION_REPORT(schema, document)\nWhere a document fails a schema.",
        |_, args| {
            let call = Call::new("json_schema_validation_report", args, no_paths);
            let patterns = constant_patterns(&call, args);
            Ok(BoundFunction::new(json_type(), coercions(args), move |ctx, args| {
                Ok(run(ctx, &call, patterns.as_ref(), args)?
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

/// Comparisons of a value with a part of a schema after which the function looks whether it shall end.
const CHECK_EVERY: u32 = 1024;

/// The prepared expressions of a schema that is constant; what is wrong with it is for the call to say.
fn constant_patterns(call: &Call, args: &[ArgInfo]) -> Option<Patterns> {
    let constant = args.first()?.constant.clone()?;
    let schema = call.document(&[constant], 0).ok()??;
    prepare(JsonRef::new(&schema)).ok()
}

/// `None` for a NULL argument, else the first failure.
fn run(
    ctx: &mut FunctionContext<'_>,
    call: &Call,
    patterns: Option<&Patterns>,
    args: &[Value],
) -> Result<Option<Option<Failure>>> {
    let (Some(schema), Some(document)) = (call.document(args, 0)?, call.document(args, 1)?) else {
        return Ok(None);
    };
    let root = JsonRef::new(&schema);
    if root.kind() != JsonType::Object {
        return Err(Error::with(ErrorCode(3853), &[&1, &call.name, &"object"]));
    }
    let own = if patterns.is_none() { prepare(root)? } else { Patterns::default() };
    let patterns = patterns.unwrap_or(&own);
    let mut validation = Validation { root, patterns, ctx, work: 0 };
    validation.validate(root, JsonRef::new(&document), "#", "#").map(Some)
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
    let is_named = |name: JsonRef<'_>| type_matches(name.as_bytes().unwrap_or_default(), document);
    let names = |list: JsonRef<'_>| {
        if list.kind() == JsonType::Array { list.elements().any(is_named) } else { is_named(list) }
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

/// The comparison of a document with a schema.
struct Validation<'a, 'b, 'c> {
    root: JsonRef<'a>,
    patterns: &'a Patterns,
    ctx: &'b mut FunctionContext<'c>,
    work: u32,
}

fn failed(keyword: &'static str, at: &str, place: &str) -> Result<Option<Failure>> {
    Ok(Some(Failure { keyword, schema: at.to_owned(), document: place.to_owned() }))
}

impl Validation<'_, '_, '_> {
    fn validate(
        &mut self,
        schema: JsonRef<'_>,
        document: JsonRef<'_>,
        at: &str,
        place: &str,
    ) -> Result<Option<Failure>> {
        self.work = self.work.wrapping_add(1);
        if self.work.is_multiple_of(CHECK_EVERY) {
            self.ctx.session.check_cancelled()?;
        }
        // A reference takes the place of everything beside it; one that leads nowhere asks for nothing.
        if let Some(text) = reference(schema) {
            return match resolve(self.root, text) {
                Some((target, at)) => self.validate(target, document, &at, place),
                None => Ok(None),
            };
        }
        if schema.kind() != JsonType::Object {
            return Ok(None);
        }
        if let Some(keyword) = failed_scalar_keyword(schema, document) {
            return failed(keyword, at, place);
        }
        let kind = document.kind();
        let mut nested = None;
        if kind == JsonType::Object {
            nested = self.validate_object(schema, document, at, place)?;
        } else if kind == JsonType::Array {
            nested = self.validate_array(schema, document, at, place)?;
        } else if kind == JsonType::String {
            let pattern = schema.get(b"pattern").filter(|text| text.kind() == JsonType::String);
            let text = document.as_bytes().unwrap_or_default();
            if let Some(pattern) = pattern.and_then(|pattern| pattern.as_bytes())
                && !self.patterns.matches(pattern, text)?
            {
                return failed("pattern", at, place);
            }
        }
        if nested.is_some() {
            return Ok(nested);
        }
        self.validate_combined(schema, document, at, place)
    }

    /// allOf, anyOf, oneOf and not.
    fn validate_combined(
        &mut self,
        schema: JsonRef<'_>,
        document: JsonRef<'_>,
        at: &str,
        place: &str,
    ) -> Result<Option<Failure>> {
        let mut count = |keyword: &str| -> Result<Option<(usize, usize)>> {
            let Some(list) =
                schema.get(keyword.as_bytes()).filter(|list| list.kind() == JsonType::Array)
            else {
                return Ok(None);
            };
            let mut passed = 0;
            for part in list.elements() {
                passed += usize::from(self.validate(part, document, at, place)?.is_none());
            }
            Ok(Some((passed, list.len())))
        };
        if count("allOf")?.is_some_and(|(passed, all)| passed < all) {
            return failed("allOf", at, place);
        }
        if count("anyOf")?.is_some_and(|(passed, _)| passed == 0) {
            return failed("anyOf", at, place);
        }
        if count("oneOf")?.is_some_and(|(passed, _)| passed != 1) {
            return failed("oneOf", at, place);
        }
        if let Some(not) = schema.get(b"not")
            && self.validate(not, document, at, place)?.is_none()
        {
            return failed("not", at, place);
        }
        Ok(None)
    }

    fn validate_object(
        &mut self,
        schema: JsonRef<'_>,
        document: JsonRef<'_>,
        at: &str,
        place: &str,
    ) -> Result<Option<Failure>> {
        if let Some(required) = schema.get(b"required") {
            let missing = |name: JsonRef<'_>| {
                name.as_bytes().is_some_and(|name| document.get(name).is_none())
            };
            if required.elements().any(missing) {
                return failed("required", at, place);
            }
        }
        let limit = |name: &[u8]| schema.get(name).and_then(number);
        let count = document.len() as f64;
        if limit(b"minProperties").is_some_and(|bound| count < bound) {
            return failed("minProperties", at, place);
        }
        if limit(b"maxProperties").is_some_and(|bound| count > bound) {
            return failed("maxProperties", at, place);
        }
        if !self.dependencies_hold(schema, document, at, place)? {
            return failed("dependencies", at, place);
        }
        for (name, member) in document.members() {
            let failure = self.validate_member(schema, name, member, at, place)?;
            if failure.is_some() {
                return Ok(failure);
            }
        }
        Ok(None)
    }

    /// One member of an object: what its own name, the patterns of its name, and the rule for all others ask for.
    fn validate_member(
        &mut self,
        schema: JsonRef<'_>,
        name: &[u8],
        member: JsonRef<'_>,
        at: &str,
        place: &str,
    ) -> Result<Option<Failure>> {
        let map = |keyword: &[u8]| schema.get(keyword).filter(|map| map.kind() == JsonType::Object);
        let shown = String::from_utf8_lossy(name);
        let inner_place = format!("{place}/{shown}");
        let mut is_named = false;
        for (pattern, inner) in
            map(b"patternProperties").into_iter().flat_map(|patterns| patterns.members())
        {
            if !self.patterns.knows(pattern) || !self.patterns.matches(pattern, name)? {
                continue;
            }
            is_named = true;
            if self.validate(inner, member, at, &inner_place)?.is_some() {
                return failed("patternProperties", at, &inner_place);
            }
        }
        if let Some(inner) = map(b"properties").and_then(|properties| properties.get(name)) {
            let inner_at = format!("{at}/properties/{shown}");
            let failure = self.validate(inner, member, &inner_at, &inner_place)?;
            // Beside a pattern, the report names the patterns.
            return match failure.is_some() && is_named {
                true => failed("patternProperties", at, &inner_place),
                false => Ok(failure),
            };
        }
        let Some(additional) = schema.get(b"additionalProperties").filter(|_| !is_named) else {
            return Ok(None);
        };
        match additional.as_bool().filter(|_| additional.kind() == JsonType::Bool) {
            Some(true) => Ok(None),
            Some(false) => failed("additionalProperties", at, place),
            None => {
                let inner_at = format!("{at}/additionalProperties");
                self.validate(additional, member, &inner_at, &inner_place)
            }
        }
    }

    /// What members ask for when they are there: other members, or a whole schema.
    fn dependencies_hold(
        &mut self,
        schema: JsonRef<'_>,
        document: JsonRef<'_>,
        at: &str,
        place: &str,
    ) -> Result<bool> {
        let map = schema.get(b"dependencies").filter(|map| map.kind() == JsonType::Object);
        for (name, wanted) in map.into_iter().flat_map(|map| map.members()) {
            if document.get(name).is_none() {
                continue;
            }
            let holds = if wanted.kind() == JsonType::Array {
                let mut names = wanted.elements().filter_map(|name| name.as_bytes());
                names.all(|name| document.get(name).is_some())
            } else {
                // Of what is no schema, nothing is wanted.
                self.validate(wanted, document, at, place)?.is_none()
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn validate_array(
        &mut self,
        schema: JsonRef<'_>,
        document: JsonRef<'_>,
        at: &str,
        place: &str,
    ) -> Result<Option<Failure>> {
        let limit = |name: &[u8]| schema.get(name).and_then(number);
        let count = document.len() as f64;
        if limit(b"minItems").is_some_and(|bound| count < bound) {
            return failed("minItems", at, place);
        }
        if limit(b"maxItems").is_some_and(|bound| count > bound) {
            return failed("maxItems", at, place);
        }
        if schema.get(b"uniqueItems").and_then(|value| value.as_bool()).unwrap_or(false) {
            let mut sorted: Vec<JsonRef<'_>> = document.elements().collect();
            sorted.sort_by(|left, right| left.compare(*right));
            if sorted.windows(2).any(|pair| pair[0].compare(pair[1]) == Ordering::Equal) {
                return failed("uniqueItems", at, place);
            }
        }
        let Some(items) = schema.get(b"items") else { return Ok(None) };
        for (index, element) in document.elements().enumerate() {
            let (inner, inner_at) = if items.kind() == JsonType::Array {
                let Some(inner) = items.at(index) else { break };
                (inner, format!("{at}/items/{index}"))
            } else {
                (items, format!("{at}/items"))
            };
            let failure = self.validate(inner, element, &inner_at, &format!("{place}/{index}"))?;
            if failure.is_some() {
                return Ok(failure);
            }
        }
        Ok(None)
    }
}
