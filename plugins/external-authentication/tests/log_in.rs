//! Accounts of external methods over the MySQL protocol (UNIX socket, TLS, plain TCP) and over HTTP (Basic, Bearer).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use client::{Connection, Encryption, Failure, Target};
use engine_memory::MemoryEngine;
use plugin_api::{ListenerContext, Plugin, PluginInfo, Registrar, Registry, RunningListener};
use serde_json::json;
use session::{RootAccount, Server, ServerConfig};

/// Of `secret`.
const HASH: &str = "$2y$05$bdBABJbQp8cx20yCAfwz6OK/r1yAY3z24LF6GD6tUDD5JTEoOHxNm";

struct MemoryOnly(Arc<MemoryEngine>);

impl Plugin for MemoryOnly {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("memory", "Engine of the test.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.engine(self.0.clone());
    }
}

/// A server with all methods, its MySQL listener and its JSON server. Root's password is `p`.
struct Machine {
    listeners: Vec<Box<dyn RunningListener>>,
    directory: PathBuf,
    _server: Arc<Server>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.listeners.drain(..).for_each(|listener| listener.stop(Duration::from_secs(1)));
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Machine {
    fn start() -> Machine {
        let directory = std::env::temp_dir().join(format!("log-in-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let engine = Arc::new(MemoryEngine::new());
        let mut plugins: Vec<Box<dyn Plugin>> = vec![
            Box::new(MemoryOnly(engine.clone())),
            Box::new(functions_misc::MiscFunctions),
            Box::new(show::ShowStatements),
            authentication::plugin(),
            mysql_protocol::plugin(Arc::default()),
            json_server::plugin(),
        ];
        plugins.extend(external_authentication::plugins());
        let registry = Registry::build(&plugins);
        let listeners = registry.listeners().to_vec();
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
        let start = |listener: &Arc<dyn plugin_api::Listener>| {
            let context = ListenerContext {
                sessions: server.clone(),
                bind_addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
                port: 0,
                socket: Some(directory.join("mysql.sock")),
                admin_address: None,
                data_directory: directory.clone(),
                reactors: 1,
                tls_files: None,
                tls_disabled: false,
            };
            listener.start(context).expect("a port")
        };
        let listeners = listeners.iter().map(start).collect();
        Machine { listeners, directory, _server: server }
    }

    fn port(&self, index: usize) -> u16 {
        self.listeners[index].port().expect("a port")
    }

    fn open(&self, way: Way, user: &str, password: &str) -> Result<Connection, Failure> {
        let (target, tls) = match way {
            Way::Socket => (Target::Socket(self.directory.join("mysql.sock")), Encryption::Off),
            Way::Tls => (Target::Tcp("127.0.0.1".into(), self.port(0)), Encryption::Required),
            Way::Plain => (Target::Tcp("127.0.0.1".into(), self.port(0)), Encryption::Off),
        };
        Connection::open(&client::Options {
            target,
            user: user.into(),
            password: password.into(),
            database: None,
            tls,
            framings: Vec::new(),
            expired_passwords: false,
        })
    }

    /// The number of the error of a log-in that fails.
    fn refusal(&self, way: Way, user: &str, password: &str) -> u16 {
        match self.open(way, user, password) {
            Ok(_) => 0,
            Err(Failure::Server(error)) => error.code().0,
            Err(Failure::Lost(text)) => panic!("{text}"),
        }
    }

    fn run(&self, statements: &[String]) {
        let mut root = self.open(Way::Socket, "root", "p").expect("root logs in");
        for sql in statements {
            root.query(sql.as_bytes(), &mut ()).unwrap_or_else(|error| panic!("{sql}: {error:?}"));
        }
    }

    /// Status and body of `GET /1.0/me`.
    fn me(&self, authorization: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port(1))).expect("a connection");
        let head = "GET /1.0/me HTTP/1.1\r\nHost: localhost\r\nConnection: close";
        write!(stream, "{head}\r\nAuthorization: {authorization}\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), answer)
    }
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Socket,
    Tls,
    Plain,
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

fn token(pair: &Ed25519KeyPair, audience: &str) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_secs();
    let claims = json!({ "iss": "example", "sub": "u-1", "aud": audience, "exp": now + 300,
        "preferred_username": "olga" });
    let der = pair.to_pkcs8v1().expect("a form");
    let key = jsonwebtoken::EncodingKey::from_ed_der(der.as_ref());
    let header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::EdDSA);
    jsonwebtoken::encode(&header, &claims, &key).expect("a token")
}

#[test]
fn accounts_of_external_methods_log_in_over_each_protocol() {
    let machine = Machine::start();
    let users = machine.directory.join("users");
    let write = |text: &str| {
        std::fs::write(&users, text).expect("a file");
        std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    };
    write(&format!("ann:{HASH}\n"));
    let pair = Ed25519KeyPair::generate().expect("a key");
    let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let providers = json!({ "example": { "audience": "squall",
        "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x }] } });
    machine.run(&[
        format!("SET GLOBAL auth_file_users = '{}'", users.display()),
        format!("SET GLOBAL authentication_openid_connect_configuration = 'JSON://{providers}'"),
        "CREATE USER ann IDENTIFIED WITH auth_file".into(),
        r#"CREATE USER olga IDENTIFIED WITH authentication_openid_connect AS '{"identity_provider": "example", "user": "u-1"}'"#
            .into(),
        "CREATE USER hal IDENTIFIED WITH auth_http, pia IDENTIFIED WITH auth_pam AS 'squall', lea IDENTIFIED WITH auth_ldap AS 'cn={user}'"
            .into(),
    ]);
    let good = token(&pair, "squall");
    let other = token(&pair, "shop");
    for way in [Way::Socket, Way::Tls] {
        for (user, password) in [("ann", "secret"), ("olga", good.as_str())] {
            let mut connection = machine.open(way, user, password).expect(user);
            connection.query(b"SELECT CURRENT_USER()", &mut ()).expect("a statement");
            assert_eq!(machine.refusal(way, user, "wrong"), 1045, "{way:?} {user}");
            assert_eq!(machine.refusal(way, user, ""), 1045, "{way:?} {user}");
        }
        assert_eq!(machine.refusal(way, "olga", &other), 1045);
        // Nothing says where to ask: nobody gets in.
        for user in ["hal", "lea"] {
            assert_eq!(machine.refusal(way, user, "secret"), 1045, "{user}");
        }
    }
    for user in ["ann", "olga", "hal", "pia", "lea"] {
        assert_eq!(machine.refusal(Way::Plain, user, "secret"), 3159, "{user}");
    }
    assert_eq!(machine.me(&basic("ann", "secret")).0, 200);
    assert_eq!(machine.me(&basic("ann", "Secret")).0, 401);
    assert_eq!(machine.me(&basic("olga", &good)).0, 200);
    let (status, body) = machine.me(&format!("Bearer {good}"));
    assert!(status == 200 && body.contains("\"olga@%\""), "{body}");
    for bad in [other.as_str(), "x.y.z", ""] {
        assert_eq!(machine.me(&format!("Bearer {bad}")).0, 401);
    }
    // No cache of right passwords outlives the file's line.
    write("# nobody\n");
    assert_eq!(machine.me(&basic("ann", "secret")).0, 401);
    assert_eq!(machine.refusal(Way::Tls, "ann", "secret"), 1045);
}
