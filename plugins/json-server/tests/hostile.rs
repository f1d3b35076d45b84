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

/// Heads that programs in front of a server read in other ways than the server: none may hide a second request, or log in as somebody else.
#[test]
fn ambiguous_heads_hide_nothing() {
    let machine = Machine::start();
    let mut root = machine.client();
    root.sql("CREATE USER u IDENTIFIED BY 'u'");
    let (login, other) = (basic("root", "p"), basic("u", "u"));
    let hidden = format!("GET /1.0/me HTTP/1.1\r\nHost: x\r\n{login}\r\n");
    let length = hidden.len();
    for lines in [
        format!("Content-Length : {length}\r\n"),
        format!("Content-Length: 0\r\n Content-Length: {length}\r\n"),
        format!("Content-Length: {length}, {length}\r\n"),
        "Content-Length: 0x10\r\n".to_owned(),
        "Content-Length:\r\n".to_owned(),
        "Transfer-Encoding: xchunked\r\n".to_owned(),
        "Transfer-Encoding : chunked\r\n".to_owned(),
        "Transfer-Encoding: chunked, identity\r\n".to_owned(),
        "Transfer-Encoding: \u{b}chunked\r\n".to_owned(),
        "X: a\0b\r\n".to_owned(),
        "X: a\rContent-Length: 3\r\n".to_owned(),
        "\r\n: x\r\n".to_owned(),
    ] {
        let mut client = machine.client();
        client.send(
            format!("POST /1.0/me HTTP/1.1\r\nHost: x\r\n{login}{lines}\r\n0\r\n\r\n{hidden}")
                .as_bytes(),
        );
        // The path has no POST: 405 is an answer to the visible request.
        let statuses: Vec<u16> =
            std::iter::from_fn(|| client.answer()).map(|it| it.status).collect();
        assert!(statuses.iter().all(|status| *status >= 400), "{lines:?}: {statuses:?}");
    }
    // Of two log-ins the first counts, or none.
    let mut client = machine.client();
    client.send(format!("GET /1.0/me HTTP/1.1\r\nHost: x\r\n{other}{login}\r\n").as_bytes());
    let answer = client.answer().unwrap();
    assert!(answer.status >= 400 || answer.json()["user"] == "u");
    // Two bodies under one length: the rest is another request's beginning, and no request.
    let mut client = machine.client();
    let text = "Content-Type: text/plain\r\nContent-Length: 8\r\n";
    client.send(
        format!("POST /1.0/sql HTTP/1.1\r\nHost: x\r\n{login}{text}\r\nSELECT 1; DROP DATABASE d")
            .as_bytes(),
    );
    assert_eq!(client.answer().unwrap().json()["results"][0]["rows"], json!([[1]]));
    assert!(client.answer().is_none_or(|answer| answer.status == 400));
    assert_eq!(root.get("/1.0/me").status, 200);
}

#[test]
fn many_slow_clients_keep_nobody_out() {
    let machine = Machine::start();
    let mut slow: Vec<_> = (0..300).map(|_| machine.client()).collect();
    for (number, client) in slow.iter_mut().enumerate() {
        let login = basic("root", "p");
        // Half of them stop in the head, half in the body.
        let text = match number % 2 {
            0 => "POST /1.0/sql HTTP/1.1\r\nHost: x\r\nX-A: ".to_owned(),
            _ => {
                format!("POST /1.0/sql HTTP/1.1\r\nHost: x\r\n{login}Content-Length: 100\r\n\r\nS")
            }
        };
        client.send(text.as_bytes());
    }
    let started = Instant::now();
    for _ in 0..50 {
        assert_eq!(machine.client().get("/1.0/me").status, 200);
    }
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
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

/// The bytes of a request. It has a token: wrong tokens, unlike wrong passwords, do not keep the address out.
fn whole(token: &str, method: &str, path: &[u8], body: &[u8]) -> Vec<u8> {
    // It would end the token.
    let token = if method == "DELETE" && path == b"/1.0/login" { "none" } else { token };
    let rest = format!(
        " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nAccept: application/x-ndjson\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [method.as_bytes(), b" ", path, rest.as_bytes(), body].concat()
}

/// Method, path and body of requests.
fn seeds() -> Vec<(String, String, String)> {
    let owned = |(method, path, body): (&str, &str, &str)| {
        (method.to_owned(), path.to_owned(), body.to_owned())
    };
    let bodies = [
        ("POST", "/1.0/sql", r#"{"sql":"SELECT ?, 'a'","parameters":[1],"id":"i"}"#),
        ("POST", "/1.0/sql", r#"{"sql":"DO ?","rows":[[1],[null],["x"]]}"#),
        ("POST", "/1.0/cursors", r#"{"sql":"SELECT 1 UNION SELECT 2"}"#),
        ("POST", "/1.0/transactions", r#"{"schema":"d","isolation":"serializable"}"#),
        ("POST", "/json?schema=d&table=t", r#"{"query":{"_id":1,"document":{"a":[1]}}}"#),
    ];
    let mut seeds: Vec<_> = bodies.into_iter().map(owned).collect();
    seeds.extend(operations().iter().map(|(method, path, _)| owned((method, path, "{}"))));
    seeds
}

/// Sends `count` changed requests, and checks after each thousand that the server answers and stays lean.
fn survives(count: usize) {
    let machine = Machine::start();
    let mut probe = machine.client();
    probe.sql("CREATE DATABASE d");
    let password = json!({ "user": "root", "password": "p" });
    let mut log_in = || {
        let answer = probe.json("POST", "/1.0/login", &password).json();
        answer["token"].as_str().unwrap().to_owned()
    };
    // One for each thousand requests, in case that one of them logs out.
    let tokens: Vec<String> = (0..=count / 1000).map(|_| log_in()).collect();
    probe.login = format!("Authorization: Bearer {}\r\n", log_in());
    let seeds = seeds();
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut answered, mut passed) = (0, 0);
    for (thousand, token) in tokens.iter().enumerate() {
        for _ in 0..(count - thousand * 1000).min(1000) {
            let (seed, other) = (numbers.below(seeds.len()), numbers.below(seeds.len()));
            let (method, path, body) = &seeds[seed];
            let [path, body] = [path.as_bytes(), body.as_bytes()];
            // Changes anywhere, or where the head stays one that HTTP allows.
            let change = numbers.below(3);
            let request = match change {
                0 => numbers.mutated(&whole(token, method, path, body), seeds[other].2.as_bytes()),
                1 => {
                    let body = numbers.mutated(body, seeds[other].2.as_bytes());
                    whole(token, method, path, &body)
                }
                _ => {
                    let path = numbers.mutated(path, seeds[other].1.as_bytes());
                    whole(token, method, &path, body)
                }
            };
            let mut client = machine.client();
            client.send(&request);
            // An incomplete request ends here. The others must not seem to: the server drops what a client that left had asked for.
            if change == 0 {
                let _ = client.stream.get_ref().shutdown(std::net::Shutdown::Write);
            }
            while let Some(answer) = client.answer() {
                answered += 1;
                passed += usize::from(!matches!(answer.status, 400 | 401 | 429));
                assert!(
                    answer.status < 500,
                    "{}: {}",
                    String::from_utf8_lossy(&request),
                    String::from_utf8_lossy(&answer.body)
                );
            }
        }
        assert_eq!(probe.get("/1.0/me").status, 200);
        let bytes = sys::process::resident_bytes();
        assert!(bytes < 1 << 30, "{bytes} bytes after {thousand} thousand requests");
    }
    assert!(answered > count / 4, "only {answered} were requests at all");
    assert!(passed > count / 10, "only {passed} reached a call");
}

/// `SQUALL_REQUESTS=100000` runs the full number, which takes a minute.
#[test]
fn changed_requests_do_no_harm() {
    let count = std::env::var("SQUALL_REQUESTS").ok().and_then(|text| text.parse().ok());
    survives(count.unwrap_or(10_000));
}
