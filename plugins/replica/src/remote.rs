//! A connection to another server by an account there: for CLONE INSTANCE and SWITCH OVER.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use client::{Answer, Carrier, Connection, Encryption, Failure, Options, Reach, Target};
use engine_api::CancelToken;
use sys::net::Stream;
use sys::sync::atomic::{AtomicBool, Ordering};

/// Longest wait for the start of a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How often a wait looks whether the statement was killed.
const STEP: Duration = Duration::from_millis(200);

/// Where the other server is, and who asks.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) password: String,
    /// `REQUIRE [NO] SSL`; without it the connection is encrypted if the server can.
    pub(crate) require_ssl: Option<bool>,
}

/// Ends the waits of a connection: the statement was killed, or its client has failed by itself.
#[derive(Clone)]
pub(crate) struct Halt {
    pub(crate) cancel: CancelToken,
    failed: Arc<AtomicBool>,
}

impl Halt {
    pub(crate) fn new(cancel: CancelToken) -> Halt {
        Halt { cancel, failed: Arc::default() }
    }

    /// What still comes is not wanted.
    pub(crate) fn fail(&self) {
        // It says nothing about other memory: the connection's own thread reads it.
        self.failed.store(true, Ordering::Relaxed);
    }

    fn is_halted(&self) -> bool {
        self.cancel.is_cancelled() || self.failed.load(Ordering::Relaxed)
    }
}

/// The socket, which gives up when the statement is killed or nothing comes for too long.
struct Wire {
    stream: Stream,
    halt: Halt,
    limit: Duration,
}

impl Carrier for Wire {}

impl Wire {
    fn check(&self, since: Duration) -> io::Result<()> {
        if self.halt.is_halted() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if sys::clock::monotonic() - since > self.limit {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(())
    }
}

impl Read for Wire {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let since = sys::clock::monotonic();
        self.check(since)?;
        loop {
            match self.stream.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            self.check(since)?;
            self.stream.wait_readable(STEP)?;
        }
    }
}

impl Write for Wire {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let since = sys::clock::monotonic();
        loop {
            match self.stream.write(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return other,
            }
            self.check(since)?;
            self.stream.wait_writable(STEP)?;
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Connects to the first address of a host that answers.
///
/// # Errors
/// None does.
pub(crate) fn connect(host: &str, port: u16) -> io::Result<Stream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in sys::net::resolve(host, port)? {
        match Stream::connect_tcp(address, CONNECT_LIMIT) {
            Ok(stream) => return stream.set_options().map(|()| stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A session on the other server.
pub(crate) struct Remote {
    connection: Connection,
}

/// The cells of all rows.
#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Answer for Rows {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text = |cell: &Option<&[u8]>| String::from_utf8_lossy(cell.unwrap_or(b"")).into_owned();
        self.0.push(cells.iter().map(text).collect());
    }
}

impl Remote {
    /// Connects and logs in. `limit`: the other server may say nothing for so long.
    ///
    /// # Errors
    /// The server cannot be reached or refuses; the statement was killed.
    pub(crate) fn open(address: &Address, halt: &Halt, limit: Duration) -> client::Result<Remote> {
        let stream = connect(&address.host, address.port).map_err(|error| {
            let number = error.raw_os_error().map_or_else(|| error.to_string(), |n| n.to_string());
            let (host, port) = (&address.host, address.port);
            let text = format!("Can't connect to MySQL server on '{host}:{port}' ({number})");
            Failure::Server(errors::Error::new(errors::ErrorCode(2003), text))
        })?;
        let wire = Wire { stream, halt: halt.clone(), limit };
        let options = Options {
            target: Target::Tcp(address.host.clone(), address.port),
            user: address.user.clone(),
            password: address.password.clone(),
            database: None,
            tls: match address.require_ssl {
                None => Encryption::Preferred,
                Some(true) => Encryption::Required,
                Some(false) => Encryption::Off,
            },
            framings: Vec::new(),
            expired_passwords: false,
        };
        let connection = Connection::over(Box::new(wire), Reach::Network, &options)?;
        Ok(Remote { connection })
    }

    /// What a server calls its version.
    pub(crate) fn version(&self) -> &str {
        &self.connection.server_version
    }

    /// Runs a statement and gives its rows to `answer`.
    ///
    /// # Errors
    /// Those of the statement; the connection is lost.
    pub(crate) fn query(&mut self, sql: &str, answer: &mut dyn Answer) -> client::Result<()> {
        self.connection.query(sql.as_bytes(), answer).map(drop)
    }

    /// The rows of a statement.
    ///
    /// # Errors
    /// As `query`.
    pub(crate) fn rows(&mut self, sql: &str) -> client::Result<Vec<Vec<String>>> {
        let mut rows = Rows::default();
        self.query(sql, &mut rows)?;
        Ok(rows.0)
    }
}
