//! The floor server: the real listener and reactors over canned results. Its cost per query is the cost that no
//! SQL layer can save.
//!
//! `cargo run --release -p mysql-protocol --example floor -- [PORT [REACTORS [LOG_DIRECTORY]]]`; users: root without a
//! password, app with `secret`. With a directory for a log, each change that is committed writes one block there, durably.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

#[path = "../tests/canned/mod.rs"]
mod canned;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use authentication::CachingSha2Password;
use mysql_protocol::MysqlProtocol;
use plugin_api::{Authenticator, Listener, ListenerContext};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next().map_or(Ok(3399), |text| text.parse())?;
    let reactors = arguments.next().map_or(Ok(0), |text| text.parse())?;
    let method: Arc<dyn Authenticator> = Arc::new(CachingSha2Password::new());
    let stored = method.hash_password(b"secret")?;
    let accounts = HashMap::from([
        ("root".to_owned(), (method.clone(), Vec::new())),
        ("app".to_owned(), (method, stored)),
    ]);
    let mut canned = canned::Canned::new(accounts);
    canned.globals.insert("max_connections", 100_000);
    canned.commits.make_durable();
    if let Some(log) = arguments.next() {
        canned.log = Some(Arc::new(canned::BlockLog::create(log.as_ref())?));
    }
    let directory = std::env::temp_dir().join(format!("squall-floor-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let running = MysqlProtocol::default().start(ListenerContext {
        sessions: Arc::new(canned::Factory(Arc::new(canned))),
        bind_addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        port,
        socket: None,
        admin_address: None,
        data_directory: directory,
        reactors,
        tls_files: None,
        tls_disabled: false,
    })?;
    println!("floor server on 127.0.0.1:{}", running.port().unwrap_or(port));
    loop {
        std::thread::park();
    }
}
