//! A server in this process whose only listener is the JSON server, and a small HTTP client.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine_memory::MemoryEngine;
use plugin_api::{ListenerContext, Plugin, PluginInfo, Registrar, Registry, RunningListener};
use serde_json::Value as Json;
use session::{RootAccount, Server, ServerConfig};

struct MemoryOnly(Arc<MemoryEngine>);

impl Plugin for MemoryOnly {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("memory", "Engine of the tests.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.engine(self.0.clone());
    }
}

/// A running server. Root's password is `p`.
pub struct Machine {
    pub address: SocketAddr,
    running: Option<Box<dyn RunningListener>>,
    _server: Arc<Server>,
}

impl Machine {
    pub fn start() -> Machine {
        Machine::with(Vec::new())
    }

    /// A server with more plugins.
    pub fn with(more: Vec<Box<dyn Plugin>>) -> Machine {
        let engine = Arc::new(MemoryEngine::new());
        let mut plugins: Vec<Box<dyn Plugin>> = vec![
            Box::new(MemoryOnly(engine.clone())),
            Box::new(functions_numeric::NumericFunctions),
            Box::new(functions_string::StringFunctions),
            Box::new(functions_temporal::TemporalFunctions),
            Box::new(functions_json::JsonFunctions),
            Box::new(functions_crypto::CryptoFunctions),
            Box::new(functions_misc::MiscFunctions),
            Box::new(aggregates::Aggregates),
            Box::new(information_schema::InformationSchema),
            Box::new(show::ShowStatements),
            authentication::plugin(),
            json_server::plugin(),
        ];
        plugins.extend(more);
        let registry = Registry::build(&plugins);
        let listener = registry.listeners()[0].clone();
        let server = Server::open(ServerConfig {
            version: "9.7.0-Squall-test".into(),
            registry,
            plugins: Vec::new(),
            plugin_directory: String::new(),
            default_engine: engine.clone(),
            temporary_engine: engine,
            clock: Arc::new(sys::clock::RealClock::new()),
            system_zone: Arc::new(types::FixedOffset::utc()),
            shutdown: Box::new(|| {}),
            restart: None,
            defaults: Vec::new(),
            options: vec![("json_server_port".into(), "0".into())],
            root: RootAccount { os_uid: None, password: Some("p".into()) },
            insecure_root: false,
            io_times: Arc::default(),
        })
        .expect("a server");
        let running = listener
            .start(ListenerContext {
                sessions: server.clone(),
                bind_addresses: Vec::new(),
                port: 0,
                socket: None,
                admin_address: None,
                data_directory: std::env::temp_dir(),
                reactors: 0,
                tls_files: None,
                tls_disabled: true,
            })
            .expect("a port");
        let port = running.port().expect("a port");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Machine { address, running: Some(running), _server: server }
    }

    pub fn client(&self) -> Client {
        let stream = TcpStream::connect(self.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        Client { stream: BufReader::new(stream), login: basic("root", "p") }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.stop(Duration::from_secs(2));
        }
    }
}

/// The header of Basic authentication.
pub fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(format!("{user}:{password}")))
}

/// A kept connection.
pub struct Client {
    pub stream: BufReader<TcpStream>,
    /// Header lines that log in.
    pub login: String,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Json {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

impl Client {
    /// A request with JSON.
    pub fn json(&mut self, method: &str, path: &str, body: &Json) -> Answer {
        self.request(
            method,
            path,
            "Content-Type: application/json\r\n",
            body.to_string().as_bytes(),
        )
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.request("GET", path, "", b"")
    }

    /// Statements by `POST /1.0/sql`.
    pub fn sql(&mut self, sql: &str) -> Json {
        let answer =
            self.request("POST", "/1.0/sql", "Content-Type: text/plain\r\n", sql.as_bytes());
        answer.json()
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{}{headers}Content-Length: {}\r\n\r\n",
            self.login,
            body.len()
        );
        self.send(&[head.as_bytes(), body].concat());
        self.answer().expect("an answer")
    }

    pub fn send(&mut self, bytes: &[u8]) {
        // The server may have closed the connection already: the answer shows it.
        let _ = self.stream.get_mut().write_all(bytes);
    }

    /// The next answer; `None` when the connection ended.
    pub fn answer(&mut self) -> Option<Answer> {
        let line = self.line()?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if answer.header("transfer-encoding") == Some("chunked") {
            loop {
                let length = usize::from_str_radix(self.line()?.trim(), 16).ok()?;
                let mut piece = vec![0; length];
                self.stream.read_exact(&mut piece).ok()?;
                self.line()?;
                answer.body.extend_from_slice(&piece);
                if length == 0 {
                    return Some(answer);
                }
            }
        }
        let length = answer.header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        answer.body = vec![0; length];
        self.stream.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.stream.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    }
}

/// Percent-encoded text.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}
