//! Spans as a collector receives them, and a collector that is away.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plugin_api::test_support::FakeSession;
use plugin_api::{
    BackgroundJob, Observer, QueryAttribute, SessionFacts, StatementCounts, StatementEnd,
    StatementEvent,
};
use serde_json::Value as Json;
use types::Value;

use crate::exporter::{ExportJob, Exporter};
use crate::settings::check_endpoint;
use crate::span::Parent;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn statement(exporter: &Exporter, attributes: &[QueryAttribute]) {
    let error = errors::err!(NO_SUCH_TABLE, "d", "t");
    let session =
        SessionFacts { connection_id: 7, user: "u", host: "h", account: "u@%", schema: Some("d") };
    let event = StatementEvent {
        session,
        command: "Query",
        text: b"SELECT 'secret' FROM t",
        digest_text: &|| "SELECT ? FROM `t`".to_owned(),
        digest_hash: None,
        connection_attributes: &|| Arc::from([]),
        started_micros: 1_700_000_000_000_000,
        services: &FakeSession::default(),
        attributes,
    };
    let end = StatementEnd {
        error: Some(&error),
        rows_sent: 3,
        counts: StatementCounts { rows_examined: 9, ..StatementCounts::default() },
        elapsed_micros: 1500,
        ..StatementEnd::default()
    };
    exporter.after_statement(&event, &end);
}

fn attribute(value: &str) -> QueryAttribute {
    QueryAttribute { name: "traceparent".to_owned(), value: Value::text(value) }
}

/// Takes one request and answers with `status`; returns its body.
fn collector(status: &'static str) -> (String, std::thread::JoinHandle<Json>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1/traces", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            stream.read_line(&mut line).unwrap();
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).unwrap();
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{{}}");
        stream.get_mut().write_all(answer.as_bytes()).unwrap();
        serde_json::from_slice(&body).unwrap()
    });
    (address, thread)
}

fn exporter(endpoint: &str) -> Arc<Exporter> {
    let exporter = Arc::new(Exporter::default());
    exporter.settings.endpoint.store(Value::text(endpoint));
    exporter.settings.service.store(Value::text("shop"));
    exporter.settings.statements.store(Value::text("TRACED"));
    exporter
}

fn counts(exporter: &Exporter) -> [u64; 3] {
    exporter.counts().map(|count| count.load(Ordering::Relaxed))
}

/// Runs the thread until it has sent what waits.
fn send(exporter: &Arc<Exporter>) {
    let factory = Arc::new(plugin_api::test_support::NoSessions);
    ExportJob(exporter.clone()).start(factory).unwrap().stop();
}

#[test]
fn a_traced_statement_becomes_a_span_of_its_trace() {
    let (address, collector) = collector("200 OK");
    let exporter = exporter(&address);
    statement(&exporter, &[]);
    statement(&exporter, &[attribute(&TRACE.replace("-01", "-00"))]);
    statement(&exporter, &[attribute("nonsense")]);
    statement(&exporter, &[attribute(TRACE)]);
    send(&exporter);
    assert_eq!(counts(&exporter), [1, 0, 0]);
    let body = collector.join().unwrap();
    let resource = &body["resourceSpans"][0];
    assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "shop");
    let span = &resource["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
    assert_eq!((&span["name"], &span["kind"]), (&"SELECT".into(), &2.into()));
    assert_eq!(span["startTimeUnixNano"], "1700000000000000000");
    assert_eq!(span["endTimeUnixNano"], "1700000000001500000");
    assert_eq!(span["status"]["code"], 2);
    let text = body.to_string();
    assert!(text.contains("SELECT ? FROM `t`") && !text.contains("secret"), "{text}");
    assert!(text.contains("\"1146\"") && text.contains("42S02"), "{text}");
}

#[test]
fn all_statements_are_sent_when_asked() {
    let (address, collector) = collector("200 OK");
    let exporter = exporter(&address);
    exporter.settings.statements.store(Value::text("ALL"));
    statement(&exporter, &[]);
    send(&exporter);
    let body = collector.join().unwrap();
    let span = &body["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
    assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
    assert!(span.get("parentSpanId").is_none());
}

#[test]
fn a_collector_that_is_away_costs_its_spans_and_nothing_else() {
    let unused = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let exporter = exporter(&format!("http://{unused}/v1/traces"));
    (0..3).for_each(|_| statement(&exporter, &[attribute(TRACE)]));
    send(&exporter);
    assert_eq!(counts(&exporter), [0, 3, 1]);
    let (address, collector) = collector("503 Service Unavailable");
    exporter.settings.endpoint.store(Value::text(&address));
    statement(&exporter, &[attribute(TRACE)]);
    send(&exporter);
    collector.join().unwrap();
    assert_eq!(counts(&exporter), [0, 4, 2]);
}

#[test]
fn the_queue_is_bounded() {
    let exporter = exporter("http://127.0.0.1:1/");
    for _ in 0..9000 {
        exporter.push(Json::Null);
    }
    assert_eq!(counts(&exporter), [0, 9000 - 8192, 0]);
}

#[test]
fn parents_are_read_as_the_standard_says() {
    let parent = Parent::parse(TRACE).unwrap();
    assert!(parent.is_sampled && parent.span_id == "b7ad6b7169203331");
    assert!(Parent::parse(&TRACE.replace("00-", "cc-").replace("-01", "-01-what")).is_some());
    for wrong in [
        "",
        "00",
        &TRACE[..54],
        &TRACE.to_uppercase(),
        &TRACE.replace("00-", "ff-"),
        &format!("{TRACE}-x"),
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    ] {
        assert_eq!(Parent::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn an_endpoint_is_an_address() {
    for right in ["", "http://127.0.0.1:4318/v1/traces", "https://collector.example/v1/traces"] {
        assert!(check_endpoint(&Value::text(right)).is_ok(), "{right}");
    }
    for wrong in ["127.0.0.1:4318", "ftp://a/", "http:///x", "file:///etc/passwd", "x"] {
        assert!(check_endpoint(&Value::text(wrong)).is_err(), "{wrong}");
    }
}
