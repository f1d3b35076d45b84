//! Messages to a socket of the test.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;
use crate::message::MESSAGE_BYTES_MAX;
use crate::outlet::Counts;

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("syslog-{name}-{}", std::process::id()))
}

fn sender(path: &std::path::Path) -> Sender {
    let sender = Sender::default();
    sender.path.store(Value::text(path.to_str().expect("a text")));
    sender.ident.store(Value::text("squalld"));
    sender.facility.store(Value::text("LOCAL2"));
    sender.error_log.store(Value::UInt(1));
    sender
}

fn received(socket: &UnixDatagram) -> String {
    let mut buf = [0; 2 * MESSAGE_BYTES_MAX];
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let length = socket.recv(&mut buf).expect("a message");
    String::from_utf8_lossy(&buf[..length]).into_owned()
}

#[test]
fn lines_arrive_in_both_forms() {
    let path = path("forms");
    let reader = UnixDatagram::bind(&path).expect("a socket");
    let sender = sender(&path);
    sender.error_line(Severity::Error, "disk\nfull");
    // LOCAL2 is 18, an error 3.
    let id = std::process::id();
    assert_eq!(received(&reader), format!("<147>squalld[{id}]: error_log disk full"));
    sender.format.store(Value::text("RFC5424"));
    sender.error_line(Severity::Warning, "late");
    let message = received(&reader);
    assert!(message.starts_with("<148>1 20"), "{message}");
    assert!(message.ends_with(&format!("Z - squalld {id} error_log - late")), "{message}");
    sender.error_line(Severity::Information, &"ä".repeat(MESSAGE_BYTES_MAX));
    let length = received(&reader).len();
    assert!((MESSAGE_BYTES_MAX - 1..=MESSAGE_BYTES_MAX).contains(&length), "{length}");
    sender.error_log.store(Value::UInt(0));
    sender.error_line(Severity::Error, "not sent");
    assert_eq!(sender.outlet.counts(), Counts { sent: 3, dropped: 0 });
    std::fs::remove_file(&path).expect("a file");
}

#[test]
fn a_reader_that_does_not_read_costs_messages_and_no_time() {
    let path = path("full");
    let sender = sender(&path);
    sender.error_line(Severity::Error, "nobody listens");
    assert_eq!(sender.outlet.counts(), Counts { sent: 0, dropped: 1 });
    let reader = UnixDatagram::bind(&path).expect("a socket");
    LogSink::reopen(&sender).expect("closed");
    let begun = Instant::now();
    for _ in 0..10_000 {
        sender.error_line(Severity::Error, "much to say");
    }
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let counts = sender.outlet.counts();
    assert!(counts.sent > 0 && counts.dropped > 1, "{counts:?}");
    assert_eq!(counts.sent + counts.dropped, 10_001);
    // Another reader at the same path gets the next one.
    drop(reader);
    std::fs::remove_file(&path).expect("a file");
    let reader = UnixDatagram::bind(&path).expect("a socket");
    sender.error_line(Severity::Error, "again");
    assert!(received(&reader).ends_with("again"));
    std::fs::remove_file(&path).expect("a file");
}

#[test]
fn statements_are_chosen_by_a_pattern_that_was_checked() {
    assert!(check_pattern(&Value::text("(")).is_err());
    assert!(check_pattern(&Value::text("^DELETE")).is_ok());
    let sender = Sender::default();
    assert_eq!(sender.events(), EventSet::NONE);
    sender.statements.store(Value::UInt(1));
    assert_eq!(sender.events(), EventSet::AFTER_STATEMENT);
    assert!(sender.matches(b"SELECT 1"));
    sender.pattern.store(Value::text("(?i)^delete"));
    assert!(sender.matches(b"DELETE FROM t") && !sender.matches(b"SELECT 1"));
}
