//! The counted statements, and their rows.

use std::time::{Duration, Instant};

use client::{Answer, Connection, Encryption, Prepared, Target};
use sqltest::Server;
use types::Value;

/// Rows of the table that most statements use, and of the one that is counted and grouped entirely.
const ROWS: i64 = 2_000;
const MANY_ROWS: i64 = 10_000;
/// Warm-up time before statements are counted: the server checks for busy connections twice a second and has by then given this one its own thread.
const WARM: Duration = Duration::from_millis(1100);

/// A counted statement.
pub struct Statement {
    /// Its name in the file of figures.
    pub name: &'static str,
    /// Number of runs between two counts.
    pub times: u32,
    /// Makes the rows of a round, from the number of earlier runs of the statement.
    rows: Option<fn(i64, u32) -> String>,
    run: Run,
}

/// How a statement runs; `?` is replaced by numbers made of how often it ran before.
enum Run {
    /// Prepared once.
    Prepared(&'static str, fn(i64) -> Vec<Value>),
    /// As text, with a literal that changes.
    Text(fn(i64) -> String),
    /// Texts, in order.
    Texts(&'static [&'static str]),
    /// Opening and closing a connection.
    Connect,
}

/// All of them.
pub const STATEMENTS: &[Statement] = &[
    Statement { name: "select_1", times: 2000, rows: None, run: Run::Texts(&["SELECT 1"]) },
    Statement {
        name: "point_select_text",
        times: 2000,
        rows: None,
        run: Run::Text(|n| format!("SELECT c FROM t WHERE id = {}", id(n))),
    },
    Statement {
        name: "point_select",
        times: 2000,
        rows: None,
        run: Run::Prepared("SELECT c FROM t WHERE id = ?", |n| ints(&[id(n)])),
    },
    Statement {
        name: "range_of_100",
        times: 300,
        rows: None,
        run: Run::Prepared("SELECT c FROM t WHERE id BETWEEN ? AND ?", |n| {
            ints(&[id(n) % 1900 + 1, id(n) % 1900 + 100])
        }),
    },
    Statement {
        name: "order_by_limit",
        times: 100,
        rows: None,
        run: Run::Prepared(
            "SELECT id, c FROM t WHERE id BETWEEN ? AND ? ORDER BY c LIMIT 10",
            |n| ints(&[id(n) % 1900 + 1, id(n) % 1900 + 100]),
        ),
    },
    Statement {
        name: "join_by_key",
        times: 1500,
        rows: None,
        run: Run::Prepared(
            "SELECT t.c, o.name FROM t JOIN owner o ON o.id = t.owner WHERE t.id = ?",
            |n| ints(&[id(n)]),
        ),
    },
    Statement {
        name: "count_all",
        times: 20,
        rows: None,
        run: Run::Texts(&["SELECT COUNT(*) FROM many"]),
    },
    Statement {
        name: "group_by",
        times: 10,
        rows: None,
        run: Run::Texts(&["SELECT kind, COUNT(*), SUM(amount) FROM many GROUP BY kind"]),
    },
    Statement {
        name: "insert",
        times: 1500,
        rows: None,
        run: Run::Prepared("INSERT INTO fresh (id, k, owner, c) VALUES (?, ?, ?, ?)", |n| {
            let mut values = ints(&[n, n % 977, n % 100]);
            values.push(text(n));
            values
        }),
    },
    Statement {
        name: "update_non_index",
        times: 1500,
        rows: None,
        run: Run::Prepared("UPDATE t SET c = ? WHERE id = ?", |n| vec![text(n), Value::Int(id(n))]),
    },
    Statement {
        name: "update_index",
        times: 1500,
        rows: None,
        run: Run::Prepared("UPDATE t SET k = k + 1 WHERE id = ?", |n| ints(&[id(n)])),
    },
    Statement {
        name: "delete",
        times: 1500,
        rows: Some(|ran, times| {
            format!("INSERT INTO gone SELECT {ran} + id, k, owner, c FROM t WHERE id <= {times}")
        }),
        run: Run::Prepared("DELETE FROM gone WHERE id = ?", |n| ints(&[n])),
    },
    Statement {
        name: "begin_commit",
        times: 1500,
        rows: None,
        run: Run::Texts(&["BEGIN", "COMMIT"]),
    },
    Statement { name: "connect", times: 100, rows: None, run: Run::Connect },
];

/// A key of the table, a different one each time.
fn id(n: i64) -> i64 {
    n * 7 % ROWS + 1
}

fn ints(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::Int).collect()
}

fn text(n: i64) -> Value {
    Value::text(&format!("{:0>100}", n * 7919 % 1_000_003))
}

/// The connection whose statements are counted.
pub struct Session {
    connection: Connection,
    options: client::Options,
}

/// The first column of an answer.
#[derive(Default)]
struct Names(Vec<String>);

impl Answer for Names {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let name = cells.first().copied().flatten().unwrap_or_default();
        self.0.push(String::from_utf8_lossy(name).into_owned());
    }
}

/// A prepared statement.
pub struct Ready {
    statement: &'static Statement,
    prepared: Option<Prepared>,
    /// How often it ran.
    ran: i64,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// The server refuses.
    pub fn open(server: &Server) -> Result<Session, String> {
        let options = client::Options {
            target: Target::Tcp("127.0.0.1".into(), server.port()),
            user: "root".into(),
            password: String::new(),
            database: None,
            tls: Encryption::Off,
            framings: Vec::new(),
            expired_passwords: false,
        };
        let connection = Connection::open(&options).map_err(|failure| failure.to_string())?;
        Ok(Session { connection, options })
    }

    /// Makes the tables.
    ///
    /// # Errors
    /// A statement fails.
    pub fn load(&mut self) -> Result<(), String> {
        for sql in [
            "CREATE DATABASE counted",
            "USE counted",
            "SET cte_max_recursion_depth = 1000000",
            "CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, owner INT NOT NULL, c VARCHAR(120) NOT NULL, KEY k (k))",
            "CREATE TABLE fresh LIKE t",
            "CREATE TABLE gone LIKE t",
            "CREATE TABLE owner (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL)",
            "CREATE TABLE many (id INT PRIMARY KEY, kind INT NOT NULL, amount INT NOT NULL)",
        ] {
            self.query(sql)?;
        }
        let numbers = |rows: i64| {
            format!(
                "WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {rows})"
            )
        };
        let (few, many) = (numbers(ROWS), numbers(MANY_ROWS));
        self.query(&format!(
            "INSERT INTO t {few} SELECT i, i * 31 % 977, i % 100, LPAD(i, 100, '0') FROM r"
        ))?;
        self.query("INSERT INTO owner SELECT id - 1, CONCAT('owner ', id) FROM t WHERE id <= 100")?;
        self.query(&format!("INSERT INTO many {many} SELECT i, i % 20, i * 7 % 1000 FROM r"))?;
        self.query("ANALYZE TABLE t, owner, many")
    }

    /// Loads every plugin that can be loaded, and names them. Those that watch or restrict sessions get settings by which they want
    /// nothing; `simple_user_policy` and `metrics` have none: they are in use as soon as they are loaded.
    ///
    /// # Errors
    /// One cannot be loaded.
    pub fn load_plugins(&mut self) -> Result<Vec<String>, String> {
        let sql = "SELECT PLUGIN_NAME FROM information_schema.PLUGINS \
            WHERE PLUGIN_TYPE = 'MODULE' AND PLUGIN_STATUS = 'DISABLED' \
            AND PLUGIN_NAME NOT IN ('simple_user_policy', 'metrics')";
        let mut names = Names::default();
        let outcome = self.connection.query(sql.as_bytes(), &mut names);
        outcome.map_err(|failure| format!("{sql}: {failure}"))?;
        for name in &names.0 {
            self.query(&format!("INSTALL PLUGIN {name}"))?;
        }
        self.query("SET GLOBAL audit_log_filter = '{\"default\": false}'")?;
        self.query("SET GLOBAL logging_query_enable = OFF")?;
        Ok(names.0)
    }

    /// Prepares a statement on the server.
    ///
    /// # Errors
    /// It is wrong.
    pub fn prepare(&mut self, statement: &'static Statement) -> Result<Ready, String> {
        let prepared = match &statement.run {
            Run::Prepared(sql, _) => {
                let prepared = self.connection.prepare(sql.as_bytes());
                Some(prepared.map_err(|failure| format!("{sql}: {failure}"))?)
            }
            Run::Text(_) | Run::Texts(_) | Run::Connect => None,
        };
        Ok(Ready { statement, prepared, ran: 0 })
    }

    /// Runs a statement until the server's caches are warm, and makes the rows of a round.
    ///
    /// # Errors
    /// It fails.
    pub fn warm_up(&mut self, ready: &mut Ready) -> Result<(), String> {
        let started = Instant::now();
        while started.elapsed() < WARM {
            self.make_rows(ready)?;
            self.run(ready)?;
        }
        self.make_rows(ready)
    }

    /// Makes the rows that the statement's next round deletes.
    fn make_rows(&mut self, ready: &Ready) -> Result<(), String> {
        match ready.statement.rows {
            Some(sql) => self.query(&sql(ready.ran, ready.statement.times)),
            None => Ok(()),
        }
    }

    /// Runs a round of a statement.
    ///
    /// # Errors
    /// It fails.
    pub fn run(&mut self, ready: &mut Ready) -> Result<(), String> {
        for _ in 0..ready.statement.times {
            ready.ran += 1;
            match &ready.statement.run {
                Run::Prepared(sql, parameters) => {
                    let Some(prepared) = ready.prepared else { return Err("not prepared".into()) };
                    let run = self.connection.execute(prepared, &parameters(ready.ran), &mut ());
                    let outcome = run.map_err(|failure| format!("{sql}: {failure}"))?;
                    if outcome.rows == 0 && outcome.affected_rows == 0 {
                        return Err(format!("{sql}: no row found"));
                    }
                }
                Run::Text(sql) => self.query(&sql(ready.ran))?,
                Run::Texts(texts) => texts.iter().try_for_each(|sql| self.query(sql))?,
                Run::Connect => {
                    let connection = Connection::open(&self.options);
                    drop(connection.map_err(|failure| failure.to_string())?);
                }
            }
        }
        Ok(())
    }

    /// Runs a statement whose rows nobody reads.
    ///
    /// # Errors
    /// The server's.
    pub fn query(&mut self, sql: &str) -> Result<(), String> {
        let outcome = self.connection.query(sql.as_bytes(), &mut ());
        outcome.map(drop).map_err(|failure| format!("{sql}: {failure}"))
    }
}
