//! `auth_http` against HTTP servers of the tests, plain and with TLS.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::*;

/// Of `ann:secret`.
const RIGHT: &str = "Basic YW5uOnNlY3JldA==";

/// Answers one request: 204 to the right password, 401 to others, 302 and 500 by path.
fn answer(stream: &mut (impl Read + Write)) {
    let (mut head, mut line) = (String::new(), String::new());
    let mut reader = BufReader::new(&mut *stream);
    while reader.read_line(&mut line).is_ok_and(|length| length > 2) {
        head.push_str(&line);
        line.clear();
    }
    let is_right = head.lines().any(|line| {
        line.split_once(": ").is_some_and(|(name, value)| {
            name.eq_ignore_ascii_case("authorization") && value == RIGHT
        })
    });
    let status = match head.split(' ').nth(1).unwrap_or_default() {
        "/moved" => "302 Found\r\nLocation: /check",
        "/broken" => "500 Broken",
        _ if is_right => "204 Good",
        _ => "401 Bad",
    };
    let _ = write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let _ = stream.flush();
}

/// A plain server: its URL and the number of its requests.
fn plain() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let count = Arc::new(AtomicUsize::new(0));
    let counting = count.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            counting.fetch_add(1, Ordering::Relaxed);
            answer(&mut stream);
        }
    });
    (url, count)
}

fn server(url: &str) -> HttpServer {
    let server = HttpServer::default();
    server.url.store(Value::text(url));
    server.timeout.store(Value::UInt(1));
    server
}

fn verify(server: &HttpServer, password: &str) -> std::result::Result<bool, String> {
    server.verify(Attempt { user: "ann", account: "", password })
}

#[test]
fn the_status_decides_and_redirects_and_failures_refuse() {
    let (url, _) = plain();
    let checked = server(&format!("{url}/check"));
    assert_eq!(verify(&checked, "secret"), Ok(true));
    assert_eq!(verify(&checked, "Secret"), Ok(false));
    assert_eq!(checked.verify(Attempt { user: "ann:x", account: "", password: "y" }), Ok(false));
    for path in ["moved", "broken"] {
        assert!(verify(&server(&format!("{url}/{path}")), "secret").is_err(), "{path}");
    }
    assert!(verify(&server(""), "secret").is_err());
    assert!(check(&Value::text("http://example.com/")).is_err());
}

#[test]
fn a_right_password_is_kept_as_long_as_asked_for() {
    let (url, count) = plain();
    let server = server(&url);
    for expected in [1, 2] {
        assert_eq!(verify(&server, "secret"), Ok(true));
        assert_eq!(count.load(Ordering::Relaxed), expected);
    }
    server.cache_seconds.store(Value::UInt(60));
    for _ in 0..3 {
        assert_eq!(verify(&server, "secret"), Ok(true));
        assert_eq!(verify(&server, "wrong"), Ok(false));
    }
    // Two without the cache, one into it, and each wrong one.
    assert_eq!(count.load(Ordering::Relaxed), 2 + 1 + 3);
    for number in 0..2 * CACHED_MAX as u64 {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        server.cached.lock().keep(key, Duration::MAX, Duration::ZERO);
    }
    assert_eq!(server.cached.lock().until.len(), CACHED_MAX);
}

#[test]
fn a_silent_server_costs_the_timeout_only() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let begun = Instant::now();
    let reason = verify(&server(&url), "hunter2").expect_err("no answer");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!reason.contains("hunter2"), "{reason}");
}

#[test]
fn tls_is_verified_against_the_authorities_of_the_file() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("made");
    let key = rustls::pki_types::PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = rustls::ServerConnection::new(config.clone()).expect("a connection");
            answer(&mut rustls::StreamOwned::new(connection, stream));
        }
    });
    let server = server(&format!("https://localhost:{port}/"));
    assert!(verify(&server, "secret").is_err(), "nobody vouches for the certificate");
    let file = std::env::temp_dir().join(format!("auth-http-ca-{}.pem", std::process::id()));
    std::fs::write(&file, made.cert.pem()).expect("a file");
    server.ca_file.store(Value::text(file.to_str().expect("a text")));
    assert_eq!(verify(&server, "secret"), Ok(true));
    assert_eq!(verify(&server, "wrong"), Ok(false));
    std::fs::remove_file(&file).expect("a file");
}
