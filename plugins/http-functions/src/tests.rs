//! Requests to servers of the test, and everything that must not become one.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::{HeaderMap, Method, Uri};
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::address::{canonical, is_public};
use crate::allow::AllowList;
use crate::request::{Answer, Limits, Request, agent, header, perform};
use crate::url::Url;

fn list(text: &str) -> AllowList {
    AllowList::parse(text).expect("a list")
}

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

#[test]
fn public_addresses_are_told_from_all_others() {
    for address in [
        "127.0.0.1",
        "127.255.255.255",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.0.1",
        "::",
        "::1",
        "fe80::1",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
    ] {
        let ip: IpAddr = address.parse().expect(address);
        assert!(!is_public(canonical(ip)), "{address}");
    }
    for address in
        ["1.1.1.1", "93.184.215.14", "172.32.0.1", "2606:4700:4700::1111", "::ffff:1.1.1.1"]
    {
        let ip: IpAddr = address.parse().expect(address);
        assert!(is_public(canonical(ip)), "{address}");
    }
}

#[test]
fn the_list_names_hosts_ports_domains_and_networks() {
    let all = list(
        " api.example.com , files.example.com:8443, *.trusted.org,10.0.0.0/8, 127.0.0.1:8000,[::1]:81 ",
    );
    let public = "93.184.215.14";
    for (host, address, port, expected) in [
        ("api.example.com", public, 80, true),
        ("API.example.com.", public, 443, true),
        ("example.com", public, 80, false),
        ("api.example.com.evil.net", public, 80, false),
        ("files.example.com", public, 8443, true),
        ("files.example.com", public, 443, false),
        ("a.trusted.org", public, 80, true),
        ("a.b.trusted.org", public, 80, true),
        ("trusted.org", public, 80, false),
        ("nottrusted.org", public, 80, false),
        // An allowed name that leads inside: only to what is named as an address.
        ("api.example.com", "127.0.0.1", 80, false),
        ("api.example.com", "169.254.169.254", 80, false),
        ("api.example.com", "::ffff:169.254.169.254", 80, false),
        ("api.example.com", "10.9.9.9", 80, true),
        ("10.9.9.9", "10.9.9.9", 5432, true),
        ("11.9.9.9", "11.9.9.9", 80, false),
        ("127.0.0.1", "127.0.0.1", 8000, true),
        ("127.0.0.1", "127.0.0.1", 8001, false),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", 8000, true),
        ("::1", "::1", 81, true),
        ("::1", "::1", 80, false),
        ("localhost", "127.0.0.1", 80, false),
    ] {
        assert_eq!(all.allows(host, at(address, port)), expected, "{host} {address}:{port}");
    }
    let local = list("localhost");
    assert!(
        local.allows("localhost", at("127.0.0.1", 80)) && local.allows("LocalHost", at("::1", 1))
    );
    assert!(!local.allows("evil.com", at("127.0.0.1", 80)));
    assert!(!local.allows("localhost", at("10.0.0.1", 80)));
    let any = list("*");
    assert!(any.allows("evil.com", at(public, 80)) && !any.allows("evil.com", at("10.0.0.1", 80)));
    let none = list("");
    assert!(!none.may_resolve("localhost", 80) && !none.allows("127.0.0.1", at("127.0.0.1", 80)));
    for bad in
        ["a b", "http://x", "x:99999", "10.0.0.0/33", "*.", "a..b", "0x7f.1", "127.1", "user@host"]
    {
        assert!(AllowList::parse(bad).is_err(), "{bad}");
    }
}

#[test]
fn urls_with_tricks_are_refused() {
    for url in [
        "",
        "x",
        "/path",
        "//host/",
        "file:///etc/passwd",
        "ftp://host/",
        "gopher://host/",
        "http:///path",
        "http://user@host/",
        "http://user:secret@host/",
        "http://host@evil/",
        "http://allowed%40evil/",
        "http://host/\r\nX: y",
        "http://host/\nX",
        "http://host/a b",
        "http://ho st/",
        "http://host\\@evil/",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://1.2.3.4.5/",
        "http://256.1.1.1/",
        "http://[::1/",
        "http://[::1%25lo]/",
        "http://[1.2.3.4]/",
        "http://host:99999/",
        "http://host:/",
        "http://host:x/",
        "http://ⓛocalhost/",
        "http://.../",
        "http://host\u{0}/",
        "jar:http://host/",
        "javascript:1",
    ] {
        assert!(Url::parse(url).is_err(), "{url:?}");
    }
    for (url, host, port) in [
        ("http://Example.com", "example.com", 80),
        ("https://example.com/a?b=c#d", "example.com", 443),
        ("http://127.0.0.1:8000/x", "127.0.0.1", 8000),
        ("http://[::1]:81/", "::1", 81),
        ("HTTP://example.com./", "example.com.", 80),
    ] {
        let parsed = Url::parse(url).expect(url);
        assert_eq!((&*parsed.host, parsed.port), (host, port), "{url}");
    }
}

#[test]
fn redirects_are_resolved_against_the_url() {
    let base = Url::parse("http://a.org/x/y?q").expect("a URL");
    for (location, expected) in [
        ("z", "http://a.org/x/z"),
        ("/z", "http://a.org/z"),
        ("?r", "http://a.org/x/y?r"),
        ("//b.org/z", "http://b.org/z"),
        ("https://b.org/z#f", "https://b.org/z"),
    ] {
        assert_eq!(base.redirected(location).expect(location).uri.to_string(), expected);
    }
    for location in [
        "file:///etc/passwd",
        "http://u:p@a.org/",
        "gopher://x/",
        "//u@b.org/",
        "http://2130706433/",
    ] {
        assert!(base.redirected(location).is_err(), "{location}");
    }
    let secure = Url::parse("https://a.org/").expect("a URL");
    assert!(secure.redirected("http://a.org/").is_err() && secure.redirected("/b").is_ok());
}

#[test]
fn headers_end_no_line_and_do_not_touch_the_connection() {
    assert!(header("X-Key", "value").is_ok());
    for (name, value) in [
        ("X", "a\r\nY: b"),
        ("X", "a\nb"),
        ("X\r\nY", "b"),
        ("X Y", "b"),
        ("", "b"),
        ("X:", "b"),
        ("Host", "evil"),
        ("content-length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Proxy-Authorization", "x"),
    ] {
        assert!(header(name, value).is_err(), "{name:?} {value:?}");
    }
}

/// Answers each request with what `answer` makes of its first line and its headers, until the test ends.
fn serve(answer: impl Fn(&str, &str) -> String + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let (mut first, mut headers, mut length) = (String::new(), String::new(), 0);
            let _ = reader.read_line(&mut first);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).is_err() || line.trim().is_empty() {
                    break;
                }
                if let Some(bytes) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = bytes.trim().parse().expect("a number");
                }
                headers.push_str(&line);
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            headers.push_str(&String::from_utf8_lossy(&body));
            let _ = stream.write_all(answer(first.trim(), &headers).as_bytes());
        }
    });
    address
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

fn redirect(status: u16, location: &str) -> String {
    format!(
        "HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

fn limits(allowed: &str) -> Limits {
    Limits {
        allowed: Arc::new(list(allowed)),
        timeout: Duration::from_secs(5),
        bytes_max: 1000,
        redirects_max: 3,
    }
}

fn request(method: Method, url: &str) -> Request {
    let body = (method == Method::POST).then(|| b"payload".to_vec());
    Request { method, url: Url::parse(url).expect(url), headers: HeaderMap::new(), body }
}

fn get_by(limits: &Limits, resolver: Arc<dyn Resolver>, url: &str) -> Result<String, String> {
    let answer = perform(&agent(limits, resolver), limits, request(Method::GET, url));
    let text = |answer: Answer| String::from_utf8_lossy(&answer.body).into_owned();
    answer.map(text).map_err(|failure| failure.into_error("f").message().to_owned())
}

fn get(limits: &Limits, url: &str) -> Result<String, String> {
    get_by(limits, Arc::new(DefaultResolver::default()), url)
}

#[test]
fn a_request_is_sent_and_its_answer_kept() {
    let address =
        serve(|first, rest| ok(&format!("{first}|{}", rest.lines().last().unwrap_or(""))));
    let limits = limits("127.0.0.1");
    let url = format!("http://{address}/a?b");
    assert!(get(&limits, &url).expect("an answer").starts_with("GET /a?b HTTP/1.1|"));
    let posted = perform(
        &agent(&limits, Arc::new(DefaultResolver::default())),
        &limits,
        request(Method::POST, &url),
    );
    assert_eq!(posted.expect("an answer").body, b"POST /a?b HTTP/1.1|payload");
}

#[test]
fn what_is_not_allowed_is_not_connected_to() {
    let hits = Arc::new(AtomicUsize::new(0));
    let count = hits.clone();
    let address = serve(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        ok("secret")
    });
    let port = address.port();
    for allowed in ["", "*", "example.com", "*.localhost", "10.0.0.0/8", "127.0.0.1:1"] {
        for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "[::]"] {
            let refused = get(&limits(allowed), &format!("http://{host}:{port}/"));
            let refused = refused.expect_err(host);
            assert!(refused.contains("http_allowed_hosts"), "{allowed} {host}: {refused}");
        }
    }
    assert_eq!(hits.load(Ordering::Relaxed), 0);
    assert_eq!(
        get(&limits("127.0.0.1"), &format!("http://[::ffff:127.0.0.1]:{port}/")),
        Ok("secret".into())
    );
    assert_eq!(
        get(&limits("localhost"), &format!("http://localhost:{port}/")),
        Ok("secret".into())
    );
}

#[test]
fn a_redirect_is_checked_like_a_first_request() {
    let inside = serve(|_, _| ok("secret"));
    let targets = Mutex::new(Vec::new());
    for target in [
        format!("http://{inside}/"),
        format!("http://localhost:{}/", inside.port()),
        format!("http://[::ffff:127.0.0.1]:{}/", inside.port()),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        format!("http://u:p@{inside}/"),
        "file:///etc/passwd".to_owned(),
        "http://2130706433/".to_owned(),
    ] {
        let location = target.clone();
        let outside = serve(move |_, _| redirect(302, &location));
        let answer = get(&limits(&outside.to_string()), &format!("http://{outside}/"));
        targets.lock().expect("no panic").push((target, answer.expect_err("refused")));
    }
    assert!(targets.lock().expect("no panic").iter().all(|(_, error)| !error.contains("secret")));
    let there =
        serve(|first, _| if first.contains("/end") { ok("done") } else { redirect(301, "/end") });
    assert_eq!(get(&limits("127.0.0.1"), &format!("http://{there}/")), Ok("done".into()));
    let circle = serve(|_, _| redirect(307, "/again"));
    let error = get(&limits("127.0.0.1"), &format!("http://{circle}/")).expect_err("endless");
    assert!(error.contains("more than 3 redirects"), "{error}");
}

#[test]
fn headers_do_not_follow_a_redirect_to_another_host() {
    let other = serve(|first, rest| {
        ok(&format!("{first} {}", rest.to_ascii_lowercase().contains("authorization")))
    });
    let first = serve(move |_, _| redirect(302, &format!("http://{other}/there")));
    let limits = limits("127.0.0.1");
    let mut request = request(Method::POST, &format!("http://{first}/"));
    let (name, value) = header("Authorization", "Bearer x").expect("a header");
    request.headers.insert(name, value);
    let answer = perform(&agent(&limits, Arc::new(DefaultResolver::default())), &limits, request);
    assert_eq!(answer.expect("an answer").body, b"GET /there HTTP/1.1 false");
}

/// Answers first with a public address and then with that of this machine.
#[derive(Debug)]
struct Rebinding(AtomicUsize, SocketAddr);

impl Resolver for Rebinding {
    fn resolve(
        &self,
        _: &Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut found = self.empty();
        if self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            // A documentation address stands for the public one; it is allowed by name of its network and nobody answers there.
            found.push(at("203.0.113.1", self.1.port()));
        }
        found.push(self.1);
        Ok(found)
    }
}

#[test]
fn a_name_that_leads_inside_after_all_gains_nothing() {
    let hits = Arc::new(AtomicUsize::new(0));
    let count = hits.clone();
    let inside = serve(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        ok("secret")
    });
    let rebinding = Arc::new(Rebinding(AtomicUsize::new(1), inside));
    let mut limits = limits("evil.example, 203.0.113.0/24");
    limits.timeout = Duration::from_secs(1);
    let url = format!("http://evil.example:{}/", inside.port());
    for _ in 0..2 {
        // Its answer is this machine alone, then both: the one that is left is not this machine.
        assert!(get_by(&limits, rebinding.clone(), &url).is_err());
    }
    assert_eq!(hits.load(Ordering::Relaxed), 0);
}

#[test]
fn time_and_size_are_bounded() {
    let mut limits = limits("127.0.0.1");
    let large = serve(|_, _| ok(&"x".repeat(1001)));
    let error = get(&limits, &format!("http://{large}/")).expect_err("large");
    assert!(error.contains("http_max_size"), "{error}");
    let exact = serve(|_, _| ok(&"x".repeat(1000)));
    assert_eq!(get(&limits, &format!("http://{exact}/")).map(|text| text.len()), Ok(1000));
    limits.timeout = Duration::from_millis(300);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let begun = Instant::now();
    let error = get(&limits, &format!("http://{}/", silent.local_addr().expect("bound")))
        .expect_err("silent");
    assert!(error.contains("http_timeout"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    let dead = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    assert!(get(&limits, &format!("http://{dead}/")).expect_err("dead").contains("refused"));
}

#[test]
fn https_to_a_server_without_tls_fails() {
    let plain = serve(|_, _| ok("secret"));
    assert!(get(&limits("127.0.0.1"), &format!("https://{plain}/")).is_err());
}

/// A server with a certificate that nobody issued but itself; counts the requests that it could read.
fn serve_tls(hits: Arc<AtomicUsize>) -> SocketAddr {
    let made =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
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
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let connection = rustls::ServerConnection::new(config.clone()).expect("a connection");
            let mut stream = rustls::StreamOwned::new(connection, stream);
            let mut byte = [0];
            if matches!(stream.read(&mut byte), Ok(1)) {
                hits.fetch_add(1, Ordering::Relaxed);
                let _ = stream.write_all(ok("secret").as_bytes());
            }
        }
    });
    address
}

#[test]
fn a_certificate_that_nobody_issued_is_refused() {
    let hits = Arc::new(AtomicUsize::new(0));
    let address = serve_tls(hits.clone());
    let error = get(&limits("localhost"), &format!("https://localhost:{}/", address.port()));
    let error = error.expect_err("refused");
    assert!(error.contains("UnknownIssuer"), "{error}");
    assert_eq!(hits.load(Ordering::Relaxed), 0);
}
