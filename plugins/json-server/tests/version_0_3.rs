//! The calls of version 0.3, with their whole answers as the file has them. `UPDATE=1` writes the answers that come now.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::fmt::Write as _;

use support::{Answer, Machine};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/version_0_3.txt");
/// Begin the line of a request, and that of an answer's status.
const REQUEST: &str = ">> ";
const ANSWER: &str = "<< ";

/// The lines of one call: those before the answer, which are its request.
fn request_of(call: &str) -> String {
    let lines = call.lines().take_while(|line| !line.starts_with(ANSWER));
    lines.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn described(answer: &Answer) -> String {
    let mut text = format!("{ANSWER}{}\n", answer.status);
    // The only header that the clock decides.
    for (name, value) in answer.headers.iter().filter(|(name, _)| name != "date") {
        writeln!(text, "{name}: {value}").unwrap();
    }
    writeln!(text, "{}", String::from_utf8_lossy(&answer.body)).unwrap();
    text
}

#[test]
fn the_25_calls_answer_as_the_file_says() {
    let machine = Machine::start();
    let mut client = machine.client();
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    let (mut now, mut calls) = (String::new(), 0);
    for call in golden.split("\n>> ") {
        let request = request_of(call.strip_prefix(REQUEST).unwrap_or(call));
        let (line, body) = request.split_once('\n').unwrap_or((&request, ""));
        let (method, path) = line.split_once(' ').unwrap();
        let answer = client.request(method, path, "", body.as_bytes());
        calls += 1;
        writeln!(now, "{REQUEST}{request}\n{}", described(&answer)).unwrap();
    }
    assert_eq!(calls, 25);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(GOLDEN, &now).unwrap();
        return;
    }
    for (number, (wanted, got)) in golden.lines().zip(now.lines()).enumerate() {
        assert_eq!(got, wanted, "line {} of {GOLDEN}", number + 1);
    }
    assert_eq!(now, golden);
}
