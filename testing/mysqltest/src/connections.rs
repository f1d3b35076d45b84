//! The connections of a test, by name.

use std::collections::HashMap;
use std::thread::JoinHandle;

use client::{Answer, Column, Connection, Encryption, Failure, Target};

/// One result of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Captions; empty for a statement without a result set.
    pub names: Vec<String>,
    /// Rows; `None` for NULL.
    pub rows: Vec<Vec<Option<String>>>,
    /// Affected rows.
    pub affected: u64,
    /// Text of the OK packet.
    pub info: String,
    /// Warnings, as SHOW WARNINGS gives them.
    pub warnings: Vec<Vec<Option<String>>>,
}

/// A statement's failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    pub code: u16,
    pub sqlstate: String,
    pub message: String,
}

/// The results of a statement before its failure, if any.
pub type Answered = (Vec<Data>, Result<(), SqlError>);

impl Answer for Data {
    fn columns(&mut self, columns: &[Column]) {
        self.names = columns.iter().map(|column| column.name.clone()).collect();
    }

    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text = |cell: &Option<&[u8]>| cell.map(|it| String::from_utf8_lossy(it).into_owned());
        self.rows.push(cells.iter().map(text).collect());
    }
}

enum State {
    Idle(Connection),
    /// A statement that was sent and not reaped.
    Busy(JoinHandle<(Connection, Answered)>),
}

/// Who logs in.
pub struct Login<'a> {
    pub user: &'a str,
    pub password: &'a str,
    pub schema: Option<&'a str>,
}

/// All connections; one of them is the current one.
pub struct Connections {
    host: String,
    port: u16,
    open: HashMap<String, State>,
    current: String,
}

impl Connections {
    /// No connection yet.
    ///
    /// # Errors
    /// The address is not `host:port`.
    pub fn new(address: &str) -> Result<Connections, String> {
        let split =
            address.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse().ok()?)));
        let (host, port) = split.ok_or_else(|| format!("{address} is not host:port"))?;
        let (host, current) = (host.to_owned(), String::new());
        Ok(Connections { host, port, open: HashMap::new(), current })
    }

    /// Opens a connection and makes it the current one.
    ///
    /// # Errors
    /// The server refuses (inner), or cannot be reached.
    pub fn connect(
        &mut self,
        name: &str,
        login: &Login<'_>,
    ) -> Result<Result<(), SqlError>, String> {
        let options = client::Options {
            target: Target::Tcp(self.host.clone(), self.port),
            user: login.user.to_owned(),
            password: login.password.to_owned(),
            database: login.schema.map(str::to_owned),
            tls: Encryption::Preferred,
            framings: Vec::new(),
            expired_passwords: false,
        };
        match Connection::open(&options) {
            Ok(connection) => {
                self.open.insert(name.to_owned(), State::Idle(connection));
                name.clone_into(&mut self.current);
                Ok(Ok(()))
            }
            Err(failure) => sql_error(failure).map(Err),
        }
    }

    /// Makes `name` the current connection.
    ///
    /// # Errors
    /// It is not open.
    pub fn select(&mut self, name: &str) -> Result<(), String> {
        if !self.open.contains_key(name) {
            return Err(format!("the connection {name} is not open"));
        }
        name.clone_into(&mut self.current);
        Ok(())
    }

    /// Closes `name`.
    ///
    /// # Errors
    /// It is not open, or its statement was not reaped.
    pub fn disconnect(&mut self, name: &str) -> Result<(), String> {
        match self.open.remove(name) {
            Some(State::Idle(_)) => Ok(()),
            Some(State::Busy(_)) => Err(format!("the statement of {name} was not reaped")),
            None => Err(format!("the connection {name} is not open")),
        }
    }

    /// Runs a statement on the current connection.
    ///
    /// # Errors
    /// The connection is lost.
    pub fn run(&mut self, sql: &str) -> Result<Answered, String> {
        self.send(sql)?;
        self.reap()
    }

    /// Starts a statement on the current connection.
    ///
    /// # Errors
    /// The connection is not open or busy.
    pub fn send(&mut self, sql: &str) -> Result<(), String> {
        let name = self.current.clone();
        let Some(State::Idle(mut connection)) = self.open.remove(&name) else {
            return Err(format!("the connection {name} is not open, or waits for --reap"));
        };
        let sql = sql.to_owned();
        let work = move || {
            let answered = answer(&mut connection, &sql);
            (connection, answered)
        };
        self.open.insert(name, State::Busy(std::thread::spawn(work)));
        Ok(())
    }

    /// Waits for the statement that was sent on the current connection.
    ///
    /// # Errors
    /// None was sent; the connection is lost.
    pub fn reap(&mut self) -> Result<Answered, String> {
        let name = self.current.clone();
        match self.open.remove(&name) {
            Some(State::Busy(thread)) => {
                let (connection, answered) = thread.join().map_err(|_| "a panic".to_owned())?;
                self.open.insert(name, State::Idle(connection));
                Ok(answered)
            }
            Some(State::Idle(_)) | None => Err(format!("nothing was sent on {name}")),
        }
    }
}

fn sql_error(failure: Failure) -> Result<SqlError, String> {
    match failure {
        Failure::Server(error) => Ok(SqlError {
            code: error.code().0,
            sqlstate: error.sqlstate_str().to_owned(),
            message: error.message().to_owned(),
        }),
        Failure::Lost(reason) => Err(reason),
    }
}

/// Code and state that clients use for a lost connection.
fn lost(reason: String) -> SqlError {
    SqlError { code: 2013, sqlstate: "HY000".into(), message: reason }
}

fn answer(connection: &mut Connection, sql: &str) -> Answered {
    let mut results = Vec::new();
    let mut data = Data::default();
    let mut outcome = connection.query(sql.as_bytes(), &mut data);
    loop {
        let ended = match outcome {
            Ok(ended) => ended,
            Err(failure) => return (results, Err(sql_error(failure).unwrap_or_else(lost))),
        };
        (data.affected, data.info) = (ended.affected_rows, ended.info);
        if ended.warnings > 0 && !ended.more {
            let mut warnings = Data::default();
            if connection.query(b"SHOW WARNINGS", &mut warnings).is_ok() {
                data.warnings = warnings.rows;
            }
        }
        results.push(std::mem::take(&mut data));
        if !ended.more {
            return (results, Ok(()));
        }
        outcome = connection.next_result(&mut data);
    }
}
