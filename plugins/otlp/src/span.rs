//! A statement as a span, and the context of the trace that it belongs to.

use plugin_api::{StatementEnd, StatementEvent};
use serde_json::{Value as Json, json};

/// The kind of a span that answers a request, and the status of one that failed, as OTLP numbers them.
const SERVER: u32 = 2;
const ERROR: u32 = 2;
/// Longest text of a statement in a span.
const TEXT_BYTES_MAX: usize = 4096;

/// The header `traceparent` of W3C's Trace Context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parent {
    /// 32 hexadecimal digits.
    pub(crate) trace_id: String,
    /// 16 hexadecimal digits.
    pub(crate) span_id: String,
    /// The caller records its part of the trace.
    pub(crate) is_sampled: bool,
}

impl Parent {
    /// Reads `00-TRACE-SPAN-FLAGS`; later versions may have more behind it.
    pub(crate) fn parse(text: &str) -> Option<Parent> {
        let mut parts = text.trim().split('-');
        let (version, trace_id, span_id, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            text.len() == length
                && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let is_some = |text: &str| text.bytes().any(|byte| byte != b'0');
        let is_valid = is_hex(version, 2)
            && version != "ff"
            && is_hex(trace_id, 32)
            && is_some(trace_id)
            && is_hex(span_id, 16)
            && is_some(span_id)
            && is_hex(flags, 2)
            && (version != "00" || parts.next().is_none());
        let is_sampled = u8::from_str_radix(flags, 16).is_ok_and(|flags| flags & 1 == 1);
        let (trace_id, span_id) = (trace_id.to_owned(), span_id.to_owned());
        is_valid.then_some(Parent { trace_id, span_id, is_sampled })
    }
}

/// `digits` hexadecimal digits of a new id; empty when the system gives no random bytes.
pub(crate) fn new_id(digits: usize) -> String {
    let mut bytes = [0; 16];
    match sys::entropy::fill(&mut bytes) {
        Ok(()) => bytes[..digits / 2].iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(_) => String::new(),
    }
}

fn text(key: &str, value: &str) -> Json {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// 64-bit integers are strings in OTLP's JSON.
fn number(key: &str, value: u64) -> Json {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The span of a statement. Literals are left out of its text.
pub(crate) fn span(
    event: &StatementEvent<'_>,
    end: &StatementEnd<'_>,
    parent: Option<&Parent>,
) -> Json {
    let verb = event.verb();
    let digest = (event.digest_text)();
    let session = &event.session;
    let mut attributes = vec![
        text("db.system.name", "squall"),
        text("db.operation.name", &verb),
        text("db.query.text", cut(&digest)),
        text("db.user", session.user),
        text("client.address", session.host),
        number("squall.connection_id", session.connection_id),
        number("db.response.returned_rows", end.rows_sent),
        number("squall.rows_affected", end.rows_affected),
        number("squall.rows_examined", end.counts.rows_examined),
    ];
    attributes.extend(session.schema.map(|schema| text("db.namespace", schema)));
    let began = u128::try_from(event.started_micros).unwrap_or(0) * 1000;
    let ended = began + u128::from(end.elapsed_micros) * 1000;
    let mut span = json!({
        "traceId": parent.map_or_else(|| new_id(32), |parent| parent.trace_id.clone()),
        "spanId": new_id(16),
        "name": if verb.is_empty() { event.command } else { &verb },
        "kind": SERVER,
        "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": ended.to_string(),
    });
    if let Some(parent) = parent {
        span["parentSpanId"] = json!(parent.span_id);
    }
    if let Some(error) = end.error {
        attributes.push(text("db.response.status_code", &error.code().0.to_string()));
        attributes.push(text("error.type", error.sqlstate_str()));
        span["status"] = json!({ "code": ERROR, "message": error.message() });
    }
    span["attributes"] = json!(attributes);
    span
}

/// The request for some spans.
pub(crate) fn request(service: &str, spans: Vec<Json>) -> Json {
    let version = env!("CARGO_PKG_VERSION");
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", service)] },
        "scopeSpans": [{ "scope": { "name": "squall", "version": version }, "spans": spans }],
    }] })
}
