//! A support bundle of a server that holds markers in data, literals, names of locked rows and passwords: none of them is in it.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use client::{Connection, Encryption, Options, Target};
use engine_memory::MemoryEngine;
use plugin_api::{ListenerContext, Plugin, PluginInfo, Registrar, Registry, RunningListener};
use session::{RootAccount, Server, ServerConfig};

struct MemoryOnly(Arc<MemoryEngine>);

impl Plugin for MemoryOnly {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("memory", "Engine of the test.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.engine(self.0.clone());
    }
}

/// A server that listens on a UNIX socket in a directory of its own.
struct Machine {
    listener: Option<Box<dyn RunningListener>>,
    directory: PathBuf,
    _server: Arc<Server>,
}

impl Drop for Machine {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.stop(Duration::from_secs(1));
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Machine {
    fn start() -> Machine {
        let directory = std::env::temp_dir().join(format!("bundle-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let engine = Arc::new(MemoryEngine::new());
        let plugins: Vec<Box<dyn Plugin>> = vec![
            Box::new(MemoryOnly(engine.clone())),
            Box::new(aggregates::Aggregates),
            Box::new(functions_crypto::CryptoFunctions),
            Box::new(functions_misc::MiscFunctions),
            Box::new(functions_numeric::NumericFunctions),
            Box::new(functions_string::StringFunctions),
            Box::new(functions_temporal::TemporalFunctions),
            Box::new(information_schema::InformationSchema),
            Box::new(show::ShowStatements),
            Box::new(statement_costs::StatementCosts),
            authentication::plugin(),
            mysql_protocol::plugin(Arc::default()),
        ];
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
            options: Vec::new(),
            root: RootAccount { os_uid: None, password: Some("rootmarker".into()) },
            insecure_root: false,
            io_times: Arc::default(),
        })
        .expect("a server");
        let listener = listener
            .start(ListenerContext {
                sessions: server.clone(),
                bind_addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
                port: 0,
                socket: Some(directory.join("mysql.sock")),
                admin_address: None,
                data_directory: directory.clone(),
                reactors: 1,
                tls_files: None,
                tls_disabled: true,
            })
            .expect("a socket");
        Machine { listener: Some(listener), directory, _server: server }
    }

    fn connect(&self) -> Connection {
        Connection::open(&Options {
            target: Target::Socket(self.directory.join("mysql.sock")),
            user: "root".into(),
            password: "rootmarker".into(),
            database: None,
            tls: Encryption::Off,
            framings: Vec::new(),
            expired_passwords: false,
        })
        .expect("root logs in")
    }

    /// The bundle's files by name, without its folder.
    fn bundle(&self, more: &[&str]) -> BTreeMap<String, String> {
        let path = self.directory.join("bundle.tar.gz");
        let _ = std::fs::remove_file(&path);
        let written = Command::new(env!("CARGO_BIN_EXE_squall"))
            .args(["admin", "bundle", "--socket"])
            .arg(self.directory.join("mysql.sock"))
            .arg("--output")
            .arg(&path)
            .args(more)
            .env("SQUALL_PASSWORD", "rootmarker")
            .output()
            .expect("squall runs");
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        read(&path)
    }
}

fn read(path: &Path) -> BTreeMap<String, String> {
    let file = std::fs::File::open(path).expect("an archive");
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(file));
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("entries") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a name").file_name().expect("a name").to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("a text");
        files.insert(name.to_string_lossy().into_owned(), text);
    }
    files
}

fn run(connection: &mut Connection, sql: &str) {
    connection.query(sql.as_bytes(), &mut ()).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

#[test]
fn a_bundle_has_figures_and_neither_data_nor_literals_nor_secrets() {
    let machine = Machine::start();
    let mut root = machine.connect();
    for sql in [
        "CREATE SCHEMA shop",
        "CREATE TABLE shop.orders (name VARCHAR(40) PRIMARY KEY, n INT DEFAULT 5)",
        "INSERT INTO shop.orders VALUES ('datamarker', 918273645)",
        "SELECT * FROM shop.orders WHERE name = 'literalmarker' OR n = 817263549",
        "CREATE USER ann IDENTIFIED BY 'passwordmarker'",
        "SET GLOBAL init_connect = 'SET @x = ''initmarker'''",
        "BEGIN",
        "UPDATE shop.orders SET n = 716253489 WHERE name = 'datamarker'",
    ] {
        run(&mut root, sql);
    }
    // A statement that runs, and one that waits for the row, while the bundle is made.
    let mut others = [
        "SELECT SLEEP(20), 'processmarker'",
        "UPDATE shop.orders SET n = 615243798 WHERE name = 'datamarker'",
    ]
    .map(|sql| {
        let mut other = machine.connect();
        Some(std::thread::spawn(move || drop(other.query(sql.as_bytes(), &mut ()))))
    });
    std::thread::sleep(Duration::from_millis(500));
    let files = machine.bundle(&[]);
    let readme = &files["README.txt"];
    for name in ["versions", "settings", "status", "processes", "tables", "statements", "locks"] {
        let text = files.get(&format!("{name}.tsv"));
        let text = text.unwrap_or_else(|| panic!("{name}: {readme}"));
        assert!(text.lines().count() > 0, "{name}: {readme}");
    }
    assert!(files["versions.tsv"].contains("9.7.0-Squall-test"));
    assert!(files["settings.tsv"].contains("max_connections"));
    assert!(files["tables.tsv"].contains("orders"));
    assert!(files["processes.tsv"].contains("SLEEP"), "{}", files["processes.tsv"]);
    assert!(!files.contains_key("definitions.sql"));
    for (name, text) in &files {
        for marker in [
            "datamarker",
            "918273645",
            "literalmarker",
            "817263549",
            "716253489",
            "615243798",
            "processmarker",
            "passwordmarker",
            "initmarker",
            "rootmarker",
        ] {
            assert!(!text.contains(marker), "{marker} in {name}: {text}");
        }
    }
    let files = machine.bundle(&["--with-ddl"]);
    assert!(files["definitions.sql"].contains("CREATE TABLE `orders`"));
    run(&mut root, "ROLLBACK");
    // The sleeping statement ends with its connection's server.
    drop(others[1].take().map(std::thread::JoinHandle::join));
}
