//! A whole server on a simulated machine (`sys::simulation`), and clients that talk to it over the simulated network.
//!
//! Everything here runs inside `Simulation::run`: on the real machine it would start a real server.
//!
//! Tests write their own clients ([`Client`]). The program `simulate` makes them up: a [`Plan`] says what a seed does, [`run`] does it, a `World` knows what
//! each answer must be.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

mod clients;
mod life;
pub mod model;
pub mod plan;
pub mod run;
mod shrink;
mod trouble;
mod verify;
mod world;

pub use plan::Plan;
pub use run::{Outcome, run};
pub use shrink::shrink;
pub use world::{Counts, Violation};

use client::{Answer, Carrier, Connection, Encryption, Options, Reach, Target};
use sys::net::Stream;
use sys::sync::Mutex;
use sys::threads::Thread;

// A seed also decides the order of a map's entries.
sys::seeded_hash_maps!();

/// Where the server keeps everything.
pub const DATA: &str = "/data";
const SOCKET: &str = "/data/squall.sock";
const PORT: u16 = 3306;
/// Small, so that a test maps little memory; the working set is smaller still.
const POOL: &str = "--innodb-buffer-pool-size=16M";
/// The longest time that a client waits for its server, in simulated time.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time between two attempts to connect to a starting server.
const ATTEMPT: Duration = Duration::from_millis(20);

/// A server that runs.
pub struct Server {
    thread: Thread,
    code: Arc<Mutex<Option<ExitCode>>>,
}

impl Server {
    /// Starts a server on [`DATA`] and returns when it accepts connections.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start() -> Server {
        let server = Server::begin(vec![format!("--datadir={DATA}"), POOL.to_owned()]);
        let until = sys::clock::monotonic() + PATIENCE;
        while Stream::connect_unix(Path::new(SOCKET)).is_err() {
            assert!(sys::clock::monotonic() < until, "the server does not come up");
            assert!(server.code.lock().is_none(), "the server ended while it started");
            sys::threads::sleep(ATTEMPT);
        }
        server
    }

    /// Starts a server with these options, and does not wait for it.
    ///
    /// # Panics
    /// When no thread can be had.
    pub fn begin(options: Vec<String>) -> Server {
        let code = Arc::new(Mutex::new(None));
        let theirs = code.clone();
        let body = move || {
            let ended = server::run(options.into_iter());
            *theirs.lock() = Some(ended);
        };
        let thread = sys::threads::spawn("squalld", body).expect("a thread");
        Server { thread, code }
    }

    /// Whether it accepts connections; an error with its exit code when it has ended.
    ///
    /// # Errors
    /// It has ended.
    pub fn is_up(&self) -> Result<bool, String> {
        self.ended().map_or(Ok(()), Err)?;
        Ok(Stream::connect_unix(Path::new(SOCKET)).is_ok())
    }

    /// Its exit code, in words, when it has ended.
    pub fn ended(&self) -> Option<String> {
        // An exit code cannot be compared.
        self.code.lock().as_ref().map(|code| format!("{code:?}"))
    }

    /// Waits until it has ended. Whether it reports success.
    pub fn join(self) -> bool {
        self.thread.join();
        let success = format!("{:?}", ExitCode::SUCCESS);
        self.code.lock().as_ref().is_some_and(|code| format!("{code:?}") == success)
    }

    /// Asks it to stop, and waits until it has. Returns whether it reports success.
    pub fn stop(self, client: &mut Client) -> bool {
        client.run("SHUTDOWN");
        self.join()
    }
}

/// A stream whose reads and writes wait, like those of a client.
struct Waiting(Stream);

impl Read for Waiting {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.0.wait_readable(PATIENCE)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }
}

impl Write for Waiting {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(buf) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            if !self.0.wait_writable(PATIENCE)? {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Carrier for Waiting {}

/// A logged-in administrator.
pub struct Client {
    name: String,
    connection: Connection,
}

impl Client {
    /// Logs in over the UNIX socket. The first log-in of a server's life must: over TCP the password would have to be encrypted with a key
    /// that no seed decides.
    ///
    /// # Panics
    /// When it is refused.
    pub fn over_socket(name: &str) -> Client {
        Client::try_over_socket(name, Path::new(DATA)).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// The same, of the server on a data directory.
    ///
    /// # Errors
    /// Nobody listens, or the log-in is refused.
    pub fn try_over_socket(name: &str, data: &Path) -> client::Result<Client> {
        Client::try_over_socket_with(name, data, data)
    }

    /// The same, with the password of another data directory's server.
    ///
    /// # Errors
    /// Nobody listens, or the log-in is refused.
    pub fn try_over_socket_with(name: &str, data: &Path, other: &Path) -> client::Result<Client> {
        let stream = Stream::connect_unix(&data.join("squall.sock"))?;
        Client::log_in(name, stream, Reach::Machine, other)
    }

    /// Logs in over TCP.
    ///
    /// # Panics
    /// When it is refused.
    pub fn over_tcp(name: &str) -> Client {
        Client::try_over_tcp(name).unwrap_or_else(|why| panic!("{name}: {why}"))
    }

    /// The same, without a panic.
    ///
    /// # Errors
    /// Nobody listens, or the log-in is refused.
    pub fn try_over_tcp(name: &str) -> client::Result<Client> {
        let address = SocketAddr::from(([127, 0, 0, 1], PORT));
        let stream = Stream::connect_tcp(address, PATIENCE)?;
        Client::log_in(name, stream, Reach::Network, Path::new(DATA))
    }

    fn log_in(name: &str, stream: Stream, reach: Reach, data: &Path) -> client::Result<Client> {
        let password = sys::files::read_text(&data.join("root-password"))?;
        let options = Options {
            target: Target::Tcp("127.0.0.1".to_owned(), PORT),
            user: "root".to_owned(),
            password: password.trim().to_owned(),
            database: None,
            tls: Encryption::Off,
            framings: Vec::new(),
            expired_passwords: false,
        };
        let connection = Connection::over(Box::new(Waiting(stream)), reach, &options)?;
        Ok(Client { name: name.to_owned(), connection })
    }

    /// `CONNECTION_ID()`.
    pub fn id(&self) -> u32 {
        self.connection.connection_id
    }

    /// Runs a statement: the rows that it affected, and those that it returned.
    ///
    /// # Errors
    /// The server's, or the connection is lost.
    pub fn query(&mut self, statement: &str) -> client::Result<(u64, model::Rows)> {
        let mut cells = Cells::default();
        let outcome = self.connection.query(statement.as_bytes(), &mut cells)?;
        Ok((outcome.affected_rows, cells.0))
    }

    /// Runs a statement; its rows, or its error, as lines of text, which also go into the trace.
    pub fn run(&mut self, statement: &str) -> Vec<String> {
        let mut lines = Lines::default();
        let outcome = self.connection.query(statement.as_bytes(), &mut lines);
        let mut lines = lines.0;
        match outcome {
            Ok(outcome) if outcome.columns.is_empty() => {
                lines.push(format!("ok, {} rows", outcome.affected_rows));
            }
            Ok(_) => {}
            Err(failure) => lines.push(failure.to_string()),
        }
        sys::simulation::note(&format!("{}: {statement}: {lines:?}", self.name));
        lines
    }
}

/// Collects rows as they are.
#[derive(Default)]
struct Cells(model::Rows);

impl Answer for Cells {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text =
            |cell: &Option<&[u8]>| cell.map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        self.0.push(cells.iter().map(text).collect());
    }
}

/// Collects rows as lines.
#[derive(Default)]
struct Lines(Vec<String>);

impl Answer for Lines {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text = |cell: &Option<&[u8]>| match cell {
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            None => "NULL".to_owned(),
        };
        self.0.push(cells.iter().map(text).collect::<Vec<_>>().join(" "));
    }
}
