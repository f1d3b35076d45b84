//! Requests of enemies: smuggling, slowness, size, names with SQL in them, and bytes changed at random.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use support::{Machine, basic};

/// Every route with a path that fits it, from the document that another test compares with the router.
fn operations() -> Vec<(String, String, bool)> {
    let document: Json = serde_json::from_str(include_str!("../openapi.json")).unwrap();
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        for (method, operation) in methods.as_object().unwrap() {
            let is_public = operation.get("security").is_some();
            all.push((method.to_uppercase(), path.clone(), is_public));
        }
    }
    all
}

#[test]
fn every_route_needs_a_log_in() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.login.clear();
    let mut guarded = 0;
    for (method, path, is_public) in operations() {
        let answer = client.request(&method, &path, "Content-Type: application/json\r\n", b"{}");
        if is_public {
            assert!(matches!(answer.status, 200 | 400), "{method} {path}: {}", answer.status);
        } else {
            guarded += 1;
            assert_eq!(answer.status, 401, "{method} {path}");
            assert!(answer.header("www-authenticate").is_some());
        }
    }
    assert!(guarded > 30);
}

#[test]
fn ambiguous_lengths_are_refused() {
    let machine = Machine::start();
    let login = basic("root", "p");
    let inner = format!("GET /1.0/me HTTP/1.1\r\nHost: x\r\n{login}\r\n");
    for lengths in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, x\r\n",
    ] {
        let mut client = machine.client();
        let head = format!("POST /1.0/sql HTTP/1.1\r\nHost: x\r\n{login}{lengths}\r\n");
        client.send(format!("{head}0\r\n\r\n{inner}").as_bytes());
        let answer = client.answer();
        assert!(answer.is_none_or(|answer| answer.status >= 400), "{lengths}");
        assert!(client.answer().is_none(), "a hidden request was answered: {lengths}");
    }
    // With both, the length is ignored or the request refused; what follows is never read as another request's head by surprise.
    let mut client = machine.client();
    let both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\n";
    let body = "8\r\nSELECT 1\r\n0\r\n\r\n";
    client.send(
        format!("POST /sql HTTP/1.1\r\nHost: x\r\n{login}{both}\r\n{body}{inner}").as_bytes(),
    );
    let first = client.answer();
    assert!(
        first.is_none_or(|answer| answer.status >= 400 || answer.json()["query"] == "SELECT 1")
    );
    let mut fresh = machine.client();
    assert_eq!(fresh.get("/1.0/me").status, 200);
}

#[test]
fn slow_heads_are_cut_off() {
    let machine = Machine::start();
    let mut slow = machine.client();
    slow.send(b"GET /1.0/me HTTP/1.1\r\nHost: x\r\nX-A: ");
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(25) {
        slow.send(b"a");
        if started.elapsed() > Duration::from_secs(9) {
            break;
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    let answer = slow.answer();
    assert!(answer.is_none_or(|answer| answer.status == 408));
    assert!(started.elapsed() < Duration::from_secs(25), "{:?}", started.elapsed());
    let mut client = machine.client();
    assert_eq!(client.get("/1.0/me").status, 200);
}

#[test]
fn large_requests_are_refused() {
    let machine = Machine::start();
    let mut client = machine.client();
    let long = format!("/1.0/me?{}", "x".repeat(200_000));
    client.send(format!("GET {long} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
    assert!(client.answer().is_none_or(|answer| matches!(answer.status, 400 | 414 | 431)));
    let mut client = machine.client();
    let body = vec![b' '; (16 << 20) + 1];
    client.send(
        format!(
            "POST /1.0/sql HTTP/1.1\r\nHost: x\r\n{}Content-Length: {}\r\n\r\n",
            basic("root", "p"),
            body.len()
        )
        .as_bytes(),
    );
    client.send(&body);
    assert!(client.answer().is_none_or(|answer| answer.status == 413));
    let mut client = machine.client();
    let deep = format!("{{\"sql\":\"SELECT 1\",\"parameters\":[{}]}}", "[".repeat(100_000));
    let answer = client.request("POST", "/1.0/sql", "", deep.as_bytes());
    assert_eq!(answer.status, 400);
}

#[test]
fn names_are_names_and_not_sql() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE json; CREATE DATABASE safe; CREATE TABLE safe.t (a INT)");
    let evil = "`; DROP DATABASE safe; -- ";
    let create = json!({ "query": { "name": evil } });
    client.json("POST", "/json/ddl/schema/create", &create);
    let path = "/json?schema=json&table=%60%3B%20DROP%20DATABASE%20safe%3B%20--%20";
    let document = json!({ "query": { "_id": 1, "document": { evil: evil, "`": 1 } } });
    client.json("POST", path, &document);
    assert_eq!(client.get(path).status, 200);
    client.request("DELETE", &format!("{path}&_id=1%20OR%201=1"), "", b"");
    let body = json!({ "sql": "SELECT 1", "schema": evil });
    client.json("POST", "/1.0/sql", &body);
    client.json("POST", "/1.0/transactions", &json!({ "schema": evil }));
    client.json("POST", "/1.0/transactions", &json!({ "isolation": evil }));
    for (method, path, _) in operations() {
        let path = path.replace("/x", "/%60%3BDROP%20DATABASE%20safe%3B--");
        client.json(&method, &path, &json!({ evil: evil, "_id": evil, "filter": { evil: 1 } }));
    }
    assert_eq!(client.sql("SELECT COUNT(*) FROM safe.t")["results"][0]["rows"], json!([[0]]));
}

/// A generator whose numbers are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// A request with one to eight changes.
    fn mutated(&mut self, seed: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = seed.to_vec();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.below(256) as u8,
                2 => drop(bytes.drain(at..(at + 1 + self.below(20)).min(bytes.len()))),
                3 => {
                    let from = self.below(other.len());
                    let piece = &other[from..(from + 1 + self.below(40)).min(other.len())];
                    bytes.splice(at..at, piece.iter().copied());
                }
                4 => {
                    let words: [&[u8]; 8] =
                        [b"\r\n", b"\0", b"{", b"\"", b"%00", b"../", b"9999999999", b"\xff\xfe"];
                    bytes.splice(at..at, words[self.below(8)].iter().copied());
                }
                _ => bytes.truncate(at.max(1)),
            }
            if bytes.is_empty() {
                bytes.push(b'G');
            }
        }
        bytes
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let login = basic("root", "p");
    let body = |method: &str, path: &str, body: &str| {
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{login}Content-Type: application/json\r\n\
             Accept: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    let mut seeds = vec![
        body("POST", "/1.0/sql", r#"{"sql":"SELECT ?, 'a'","parameters":[1],"id":"i"}"#),
        body("POST", "/1.0/sql", r#"{"sql":"DO ?","rows":[[1],[null],["x"]]}"#),
        body("POST", "/1.0/cursors", r#"{"sql":"SELECT 1 UNION SELECT 2"}"#),
        body("POST", "/1.0/login", r#"{"user":"root","password":"p"}"#),
        body("POST", "/json?schema=d&table=t", r#"{"query":{"_id":1,"document":{"a":[1]}}}"#),
    ];
    for (method, path, _) in operations() {
        // It would end the log-in of the seeds by changing nothing: fine, they use a password.
        seeds.push(body(&method, &path, "{}"));
    }
    seeds
}

/// Sends `count` changed requests, and checks after each thousand that the server answers and stays lean.
fn survives(count: usize) {
    let machine = Machine::start();
    let seeds = seeds();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut probe = machine.client();
    probe.sql("CREATE DATABASE d");
    let mut answered = 0;
    let mut client = machine.client();
    for round in 0..count {
        let (seed, other) = (numbers.below(seeds.len()), numbers.below(seeds.len()));
        let request = numbers.mutated(&seeds[seed], &seeds[other]);
        client.send(&request);
        // No more of it comes: an incomplete request ends here.
        let _ = client.stream.get_ref().shutdown(std::net::Shutdown::Write);
        while let Some(answer) = client.answer() {
            answered += 1;
            assert!(
                answer.status < 500,
                "{}: {}",
                String::from_utf8_lossy(&request),
                String::from_utf8_lossy(&answer.body)
            );
        }
        client = machine.client();
        if round % 1000 == 999 {
            assert_eq!(probe.get("/1.0/me").status, 200);
            let bytes = sys::process::resident_bytes();
            assert!(bytes < 1 << 30, "{bytes} bytes after {round} requests");
        }
    }
    assert!(answered > count / 4, "only {answered} were requests at all");
}

/// `SQUALL_REQUESTS=100000` runs the full number, which takes some minutes.
#[test]
fn changed_requests_do_no_harm() {
    let count = std::env::var("SQUALL_REQUESTS").ok().and_then(|text| text.parse().ok());
    survives(count.unwrap_or(1500));
}
