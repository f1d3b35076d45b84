//! The table function `http`: one row with the whole answer, whatever its status.

use std::borrow::Cow;

use errors::Result;
use plugin_api::kit::{self, json_type, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, TableFunction};
use types::json::JsonObject;
use types::{CollationId, DataType, JsonValue, Value};
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, HeaderValue, Method};

use crate::failure::Failure;
use crate::functions::{CHARACTERS_MAX, call, text_of};
use crate::request::{self, Answer, Request};
use crate::url::Url;

/// As errors name the function.
const NAME: &str = "http";
/// Bytes of the header names and values that a request may have.
const HEADER_BYTES_MAX: usize = 32 * 1024;

pub(crate) const HTTP: TableFunction = TableFunction {
    rows: scalar(
        "HTTP",
        Arity::between(1, 4),
        "HTTP(url [, method [, body [, headers]]])\nA table function: status, headers and body of the answer to a request. headers is a JSON object.",
        bind,
    )
    .volatile()
    .one_thread(),
    columns,
};

fn columns() -> Vec<(&'static str, DataType)> {
    vec![
        ("status", kit::integer_type(3, true)),
        ("headers", json_type()),
        ("body", kit::text_type(CHARACTERS_MAX, CollationId::UTF8MB4_0900_AI_CI)),
    ]
}

fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = [Coercion::Text, Coercion::Text, Coercion::Text, Coercion::Json];
    let bound = BoundFunction::new(json_type(), coercions[..args.len()].to_vec(), |ctx, args| {
        if args[0].is_null() {
            return Ok(Value::Null);
        }
        let answer = call(ctx, NAME, || request_of(args))?;
        kit::json_document(&JsonValue::Array(vec![row_of(&answer)]))
    });
    Ok(bound.with_nulls())
}

fn request_of(args: &[Value]) -> std::result::Result<Request, Failure> {
    let given = |at: usize| args.get(at).filter(|value| !value.is_null());
    let method = given(1).map_or(Cow::Borrowed("GET"), kit::text).to_ascii_uppercase();
    let method = match &*method {
        "GET" => Method::GET,
        "HEAD" => Method::HEAD,
        "POST" => Method::POST,
        "PUT" => Method::PUT,
        "PATCH" => Method::PATCH,
        "DELETE" => Method::DELETE,
        "OPTIONS" => Method::OPTIONS,
        _ => return Err(Failure::new("the method is none of those that are supported")),
    };
    let mut headers = given(3).map_or_else(|| Ok(HeaderMap::new()), headers_of)?;
    let body = given(2).map(|body| kit::bytes(body).to_vec());
    if body.is_some() && !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    }
    Ok(Request { method, url: Url::parse(&kit::text(&args[0]))?, headers, body })
}

/// The headers of a JSON object: texts and numbers by name.
fn headers_of(document: &Value) -> std::result::Result<HeaderMap, Failure> {
    let wrong = || Failure::new("the headers are not a JSON object of texts");
    let Value::Json(document) = document else { return Err(wrong()) };
    let JsonValue::Object(members) = JsonValue::from_ref(types::JsonRef::new(document)) else {
        return Err(wrong());
    };
    let mut headers = HeaderMap::new();
    let mut bytes = 0;
    for (name, value) in members.members() {
        let name = std::str::from_utf8(name).map_err(|_| wrong())?;
        let text = match value {
            JsonValue::String(text) => text.clone(),
            JsonValue::Null | JsonValue::Array(_) | JsonValue::Object(_) => return Err(wrong()),
            number => number.to_text(),
        };
        let text = String::from_utf8(text).map_err(|_| wrong())?;
        bytes += name.len() + text.len();
        let (name, value) = request::header(name, &text)?;
        headers.insert(name, value);
    }
    if bytes > HEADER_BYTES_MAX {
        return Err(Failure::new("the headers are too large"));
    }
    Ok(headers)
}

/// Status, headers and body; headers of one name become one with commas.
fn row_of(answer: &Answer) -> JsonValue {
    let mut headers = JsonObject::new();
    for name in answer.headers.keys() {
        let values = answer.headers.get_all(name).iter();
        let values: Vec<_> =
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        headers.insert(name.as_str().into(), JsonValue::string(values.join(", ")));
    }
    JsonValue::Array(vec![
        JsonValue::Int(i64::from(answer.status.as_u16())),
        JsonValue::Object(headers),
        JsonValue::string(text_of(answer).as_bytes()),
    ])
}
