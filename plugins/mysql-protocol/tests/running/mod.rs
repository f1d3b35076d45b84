//! A listener with canned sessions for a test, stopped and checked at its end.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
#![allow(dead_code)]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use authentication::{AuthSocket, CachingSha2Password, NativePassword};
use mysql_protocol::MysqlProtocol;
use plugin_api::{Authenticator, Listener, ListenerContext, RunningListener};
use wire::Capabilities;

use crate::canned::{Canned, Factory};
use crate::client::{BASE, Client, Options};

pub struct Running {
    listener: Option<Box<dyn RunningListener>>,
    pub address: SocketAddr,
    pub directory: PathBuf,
    pub canned: Arc<Canned>,
}

impl Running {
    pub fn socket(&self) -> PathBuf {
        self.directory.join("mysql.sock")
    }

    pub fn connect(&self) -> Client {
        Client::connect(self.address, &Options::default()).expect("logged in")
    }

    pub fn connect_with(&self, more: Capabilities) -> Client {
        let options = Options { caps: BASE | more, ..Options::default() };
        Client::connect(self.address, &options).expect("logged in")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.stop(Duration::from_millis(200));
        }
        assert_eq!(self.canned.open.load(Ordering::SeqCst), 0, "every session was dropped");
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

pub fn start_with(change: impl FnOnce(&mut Canned), reactors: usize) -> Running {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("squall-loopback-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).expect("a directory");
    let sha2: Arc<dyn Authenticator> = Arc::new(CachingSha2Password::new());
    let native: Arc<dyn Authenticator> = Arc::new(NativePassword);
    let socket: Arc<dyn Authenticator> = Arc::new(AuthSocket);
    let hash = |method: &Arc<dyn Authenticator>| method.hash_password(b"secret").expect("a hash");
    let accounts = HashMap::from([
        ("root".to_owned(), (sha2.clone(), Vec::new())),
        ("sha2".to_owned(), (sha2.clone(), hash(&sha2))),
        ("native".to_owned(), (native.clone(), hash(&native))),
        ("socket".to_owned(), (socket, b"root".to_vec())),
    ]);
    let mut canned = Canned::new(accounts);
    change(&mut canned);
    let canned = Arc::new(canned);
    let context = ListenerContext {
        sessions: Arc::new(Factory(canned.clone())),
        bind_addresses: vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
        port: 0,
        socket: Some(directory.join("mysql.sock")),
        admin_address: None,
        data_directory: directory.clone(),
        reactors,
        tls_files: None,
        tls_disabled: false,
    };
    let listener = MysqlProtocol::default().start(context).expect("started");
    let port = listener.port().expect("a port");
    let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    Running { listener: Some(listener), address, directory, canned }
}

pub fn start() -> Running {
    start_with(|_| (), 1)
}
