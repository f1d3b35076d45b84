//! sysbench's OLTP workloads, each client on its own thread with prepared statements.

use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use client::{Connection, Failure, Prepared};
use rustix::time::{ClockId, clock_gettime};
use types::Value;

use crate::http::HttpConnection;
use crate::options::{Options, Protocol, Workload};
use crate::random::Random;

const C_PATTERN: &str = "###########-###########-###########-###########-###########-\
    ###########-###########-###########-###########-###########";
const PAD_PATTERN: &str = "###########-###########-###########-###########-###########";
/// Rows of one INSERT while filling.
const FILL_ROWS: u64 = 500;
/// Rows of a range, as sysbench's `--range-size`.
const RANGE_ROWS: u64 = 100;
/// Default length of a run, seconds.
const SECONDS: u64 = 10;

/// The statements of the workloads; `{}` is the table's number.
const STATEMENTS: &[(&str, &str)] = &[
    ("one", "SELECT 1"),
    ("point", "SELECT c FROM sbtest{} WHERE id=?"),
    ("range", "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ?"),
    ("sum", "SELECT SUM(k) FROM sbtest{} WHERE id BETWEEN ? AND ?"),
    ("order", "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c"),
    ("distinct", "SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c"),
    ("index", "UPDATE sbtest{} SET k=k+1 WHERE id=?"),
    ("non_index", "UPDATE sbtest{} SET c=? WHERE id=?"),
    ("delete", "DELETE FROM sbtest{} WHERE id=?"),
    ("insert", "INSERT INTO sbtest{} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
    ("append", "INSERT INTO sbtest{} (k, c, pad) VALUES (?, ?, ?)"),
    ("points", "SELECT id, k, c, pad FROM sbtest{} WHERE k IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    ("ranges", "SELECT COUNT(k) FROM sbtest{} WHERE k BETWEEN ? AND ? OR k BETWEEN ? AND ?"),
];

/// State shared by the clients.
struct Run<'a> {
    options: &'a Options,
    workload: Workload,
    stop: AtomicBool,
    statements: AtomicU64,
    transactions: AtomicU64,
    retries: AtomicU64,
    acknowledged: Option<Mutex<File>>,
    failure: Mutex<Option<String>>,
}

/// Runs the workload of the options.
///
/// # Errors
/// The server cannot be reached or a statement fails other than by a deadlock or time-out.
pub fn run(options: &Options) -> Result<(), String> {
    let Some(workload) = options.workload else { return Ok(()) };
    if options.prepare {
        fill(options).map_err(|error| error.to_string())?;
    }
    for clients in &options.concurrency {
        measure(options, workload, *clients)?;
    }
    if options.cleanup {
        let mut admin = options.open(None).map_err(|e| e.to_string())?;
        let drop = format!("DROP SCHEMA IF EXISTS `{}`", options.create_schema);
        admin.query(drop.as_bytes(), &mut ()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Creates and fills the tables.
fn fill(options: &Options) -> client::Result<()> {
    let mut admin = options.open(None)?;
    let schema = &options.create_schema;
    for sql in [
        format!("DROP SCHEMA IF EXISTS `{schema}`"),
        format!("CREATE SCHEMA `{schema}`"),
        format!("USE `{schema}`"),
    ] {
        admin.query(sql.as_bytes(), &mut ())?;
    }
    let mut random = Random::new(options.set_random_seed);
    for table in 1..=options.tables {
        let create = format!(
            "CREATE TABLE sbtest{table} (id INT NOT NULL AUTO_INCREMENT, k INT NOT NULL DEFAULT 0, \
             c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', PRIMARY KEY (id))"
        );
        admin.query(create.as_bytes(), &mut ())?;
        let mut left = options.table_size;
        while left > 0 {
            let rows = left.min(FILL_ROWS);
            let values: Vec<String> = (0..rows)
                .map(|_| {
                    let k = 1 + random.below(options.table_size);
                    format!("({k},'{}','{}')", random.digits(C_PATTERN), random.digits(PAD_PATTERN))
                })
                .collect();
            let insert =
                format!("INSERT INTO sbtest{table} (k, c, pad) VALUES {}", values.join(","));
            admin.query(insert.as_bytes(), &mut ())?;
            left -= rows;
        }
        let index = format!("CREATE INDEX k_{table} ON sbtest{table} (k)");
        admin.query(index.as_bytes(), &mut ())?;
    }
    Ok(())
}

fn measure(options: &Options, workload: Workload, clients: u64) -> Result<(), String> {
    let acknowledged = match &options.acknowledged {
        None => None,
        Some(path) => {
            let file = File::options().append(true).create(true).open(path);
            Some(Mutex::new(file.map_err(|error| format!("{}: {error}", path.display()))?))
        }
    };
    let run = Run {
        options,
        workload,
        stop: AtomicBool::new(false),
        statements: AtomicU64::new(0),
        transactions: AtomicU64::new(0),
        retries: AtomicU64::new(0),
        acknowledged,
        failure: Mutex::new(None),
    };
    let seconds = if options.timer_length > 0 { options.timer_length } else { SECONDS };
    let (started, cpu_before) = (Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        for number in 0..clients {
            let run = &run;
            scope.spawn(move || client_thread(run, number));
        }
        while started.elapsed() < Duration::from_secs(seconds) && !run.stop.load(Ordering::Relaxed)
        {
            std::thread::sleep(Duration::from_millis(20));
        }
        run.stop.store(true, Ordering::Relaxed);
    });
    let (elapsed, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds() - cpu_before);
    if let Some(failure) = run.failure.into_inner().map_err(|_| "a client panicked")? {
        return Err(failure);
    }
    let (statements, transactions) = (run.statements.into_inner(), run.transactions.into_inner());
    if !options.silent {
        println!(
            "{workload:?}: {clients} clients, {:.0} queries/s, {:.0} transactions/s, {} retries, \
             {:.2} processors in the client, {:.1} us of them a query",
            statements as f64 / elapsed,
            transactions as f64 / elapsed,
            run.retries.into_inner(),
            cpu / elapsed,
            cpu * 1e6 / statements.max(1) as f64
        );
    }
    Ok(())
}

/// Processor time of this process so far.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn client_thread(run: &Run<'_>, number: u64) {
    let result = Client::open(run, number).and_then(|mut client| client.work());
    if let Err(error) = result {
        run.stop.store(true, Ordering::Relaxed);
        if let Ok(mut failure) = run.failure.lock() {
            failure.get_or_insert_with(|| error.to_string());
        }
    }
}

/// How a client's statements travel.
enum Link {
    Mysql(Connection),
    Http(HttpConnection),
}

struct Client<'a> {
    run: &'a Run<'a>,
    link: Link,
    random: Random,
    prepared: std::collections::HashMap<(&'static str, u64), Prepared>,
    /// Statements to send together, when there is more than one.
    queue: Vec<(Prepared, Vec<Value>)>,
    statements: u64,
}

impl<'a> Client<'a> {
    fn open(run: &'a Run<'a>, number: u64) -> client::Result<Client<'a>> {
        let schema = Some(run.options.create_schema.as_str());
        let schema = schema.filter(|_| run.workload != Workload::Select1);
        let link = match run.options.protocol {
            Protocol::Http => Link::Http(HttpConnection::open(run.options)?),
            Protocol::Tcp | Protocol::Socket | Protocol::Mysql => {
                Link::Mysql(run.options.open(schema)?)
            }
        };
        let random = Random::new(run.options.set_random_seed.wrapping_mul(1_000_003) ^ number);
        let (prepared, queue) = (Default::default(), Vec::new());
        Ok(Client { run, link, random, prepared, queue, statements: 0 })
    }

    fn work(&mut self) -> client::Result<()> {
        while !self.run.stop.load(Ordering::Relaxed) {
            match self.transaction() {
                Ok(()) => {
                    self.run.transactions.fetch_add(1, Ordering::Relaxed);
                }
                Err(Failure::Server(error)) if matches!(error.code().0, 1205 | 1213) => {
                    self.run.retries.fetch_add(1, Ordering::Relaxed);
                    self.queue.clear();
                    self.run_text(b"ROLLBACK")?;
                }
                Err(error) => return Err(error),
            }
        }
        self.run.statements.fetch_add(self.statements, Ordering::Relaxed);
        Ok(())
    }

    /// One event of the workload.
    fn transaction(&mut self) -> client::Result<()> {
        match self.run.workload {
            Workload::Select1 => self.execute("one", 0, &[]).map(drop),
            Workload::PointSelect => self.point(),
            Workload::UpdateIndex => self.update_index(),
            Workload::UpdateNonIndex => self.update_non_index(),
            Workload::Insert => self.append(),
            Workload::Delete => {
                let (table, id) = (self.table(), self.id());
                self.execute("delete", table, &[id]).map(drop)
            }
            Workload::RandomPoints => {
                let table = self.table();
                let keys: Vec<Value> = (0..10).map(|_| self.id()).collect();
                self.execute("points", table, &keys).map(drop)
            }
            Workload::RandomRanges => {
                let table = self.table();
                let (a, b) = (self.range(), self.range());
                self.execute("ranges", table, &[a, b].concat()).map(drop)
            }
            // It has its own module.
            Workload::Flexasync => Ok(()),
            Workload::ReadOnly => self.in_transaction(Client::reads),
            Workload::WriteOnly => self.in_transaction(Client::writes),
            Workload::ReadWrite => self.in_transaction(|client| {
                client.reads()?;
                client.writes()
            }),
        }
    }

    fn in_transaction(
        &mut self,
        work: impl FnOnce(&mut Self) -> client::Result<()>,
    ) -> client::Result<()> {
        self.run_text(b"BEGIN")?;
        work(self)?;
        self.run_text(b"COMMIT")?;
        self.statements += 2;
        Ok(())
    }

    fn reads(&mut self) -> client::Result<()> {
        for _ in 0..10 {
            self.point()?;
        }
        for name in ["range", "sum", "order", "distinct"] {
            let (table, range) = (self.table(), self.range());
            self.execute(name, table, &range)?;
        }
        Ok(())
    }

    fn writes(&mut self) -> client::Result<()> {
        self.update_index()?;
        self.update_non_index()?;
        let (table, id) = (self.table(), self.id());
        self.execute("delete", table, std::slice::from_ref(&id))?;
        let row = [vec![id], self.row()].concat();
        self.execute("insert", table, &row).map(drop)
    }

    fn point(&mut self) -> client::Result<()> {
        let (table, id) = (self.table(), self.id());
        self.execute("point", table, &[id]).map(drop)
    }

    fn update_index(&mut self) -> client::Result<()> {
        let (table, id) = (self.table(), self.id());
        self.execute("index", table, &[id]).map(drop)
    }

    fn update_non_index(&mut self) -> client::Result<()> {
        let (table, id) = (self.table(), self.id());
        let text = Value::text(&self.random.digits(C_PATTERN));
        self.execute("non_index", table, &[text, id]).map(drop)
    }

    fn append(&mut self) -> client::Result<()> {
        let (table, row) = (self.table(), self.row());
        let id = self.execute("append", table, &row)?;
        if let Some(file) = &self.run.acknowledged {
            let line = format!("{table} {id}\n");
            let mut file = file.lock().map_err(|_| Failure::Lost("a client panicked".into()))?;
            file.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn table(&mut self) -> u64 {
        1 + self.random.below(self.run.options.tables)
    }

    fn id(&mut self) -> Value {
        Value::Int(1 + self.random.below(self.run.options.table_size) as i64)
    }

    fn range(&mut self) -> Vec<Value> {
        let first = 1 + self.random.below(self.run.options.table_size) as i64;
        vec![Value::Int(first), Value::Int(first + RANGE_ROWS as i64 - 1)]
    }

    /// k, c and pad.
    fn row(&mut self) -> Vec<Value> {
        let c = Value::text(&self.random.digits(C_PATTERN));
        vec![self.id(), c, Value::text(&self.random.digits(PAD_PATTERN))]
    }

    /// Runs a statement of its own and ignores the rows.
    fn run_text(&mut self, sql: &[u8]) -> client::Result<()> {
        match &mut self.link {
            Link::Mysql(connection) => connection.query(sql, &mut ()).map(drop),
            Link::Http(connection) => connection.run(sql, &[]).map(drop),
        }
    }

    /// Runs a statement of the workload, or keeps it to be sent with others. Returns the generated id.
    fn execute(&mut self, name: &'static str, table: u64, values: &[Value]) -> client::Result<u64> {
        self.statements += 1;
        let is_text = self.run.options.text;
        let connection = match &mut self.link {
            Link::Http(connection) => return connection.run(text(name, table).as_bytes(), values),
            Link::Mysql(connection) => connection,
        };
        if is_text {
            let sql = with_values(&text(name, table), values);
            return Ok(connection.query(sql.as_bytes(), &mut ())?.last_insert_id);
        }
        let statement = match self.prepared.get(&(name, table)) {
            Some(statement) => *statement,
            None => {
                let statement = connection.prepare(text(name, table).as_bytes())?;
                self.prepared.insert((name, table), statement);
                statement
            }
        };
        let at_once = self.run.options.pipeline as usize;
        if at_once == 1 {
            return Ok(connection.execute(statement, values, &mut ())?.last_insert_id);
        }
        self.queue.push((statement, values.to_vec()));
        if self.queue.len() == at_once {
            connection.execute_pipelined(&self.queue, &mut ())?;
            self.queue.clear();
        }
        Ok(0)
    }
}

fn text(name: &str, table: u64) -> String {
    let found = STATEMENTS.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, text)| *text).replace("{}", &table.to_string())
}

/// Puts the values where the question marks are. The values are numbers or digits and dashes.
fn with_values(text: &str, values: &[Value]) -> String {
    let mut values = values.iter();
    let mut out = String::with_capacity(text.len() + 200);
    for c in text.chars() {
        match (c, values.len()) {
            ('?', 1..) => match values.next() {
                Some(Value::Bytes(bytes)) => {
                    out.push('\'');
                    out.push_str(&String::from_utf8_lossy(bytes));
                    out.push('\'');
                }
                Some(Value::Int(number)) => out.push_str(&number.to_string()),
                _ => out.push_str("NULL"),
            },
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_the_marks_were() {
        let sql = with_values(&text("non_index", 3), &[Value::text("1-2"), Value::Int(-5)]);
        assert_eq!(sql, "UPDATE sbtest3 SET c='1-2' WHERE id=-5");
    }
}
