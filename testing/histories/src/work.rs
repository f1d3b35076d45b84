//! The load: random transactions on a few lists at a time, by primary key, by secondary key and by range, as SQL.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use client::{Answer, Connection, Failure, Options};
use histories::{Element, End, Key, Op, Reading, Transaction};
use sys::entropy::SplitMix;

/// Lists in use at a time.
const LISTS: usize = 8;
/// Appends after which a list is left for a new one.
const LENGTH_MAX: u32 = 30;
/// Lists of a range read.
const RANGE: u32 = 3;
/// Keys of the secondary index are this much above the primary ones.
const SECOND_KEY: u32 = 1_000_000;

const DEADLOCK: u16 = 1213;
/// Transactions are short: whoever waits for so long stands in a deadlock that was not found, which fails the run.
const LOCK_WAIT_SECONDS: u32 = 30;

/// Lists that all connections use.
struct Lists {
    active: [AtomicU32; LISTS],
    appended: [AtomicU32; LISTS],
    next: AtomicU32,
    next_element: AtomicU32,
}

impl Lists {
    fn new() -> Lists {
        Lists {
            active: std::array::from_fn(|at| AtomicU32::new(at as u32 + 1)),
            appended: Default::default(),
            next: AtomicU32::new(LISTS as u32 + 1),
            next_element: AtomicU32::new(1),
        }
    }

    fn pick(&self, random: &mut SplitMix) -> Key {
        // Some are used more than others.
        let at = random.below(LISTS as u64).min(random.below(LISTS as u64));
        self.active[at as usize].load(Ordering::Relaxed)
    }

    fn note_append(&self, key: Key) {
        let slot = |active: &AtomicU32| active.load(Ordering::Relaxed) == key;
        let Some(at) = self.active.iter().position(slot) else { return };
        if self.appended[at].fetch_add(1, Ordering::Relaxed) + 1 == LENGTH_MAX {
            self.appended[at].store(0, Ordering::Relaxed);
            self.active[at].store(self.next.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Rows of `id, list`.
#[derive(Default)]
struct Rows(BTreeMap<Key, Vec<Element>>);

impl Answer for Rows {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text = |at: usize| std::str::from_utf8(cells[at].unwrap_or_default()).unwrap_or("");
        let elements = text(1).split(',').filter(|part| !part.is_empty());
        // What is no number is nobody's element, which the checker reports.
        let list = elements.map(|part| part.parse().unwrap_or(0)).collect();
        self.0.insert(text(0).parse().unwrap_or(0), list);
    }
}

/// One round on an empty table.
///
/// # Errors
/// The server refuses something that it should not.
pub(crate) fn round(
    login: &Options,
    level: &str,
    connections: u32,
    time: Duration,
    seed: u64,
) -> Result<Vec<Transaction>, String> {
    let words = |failure: Failure| failure.to_string();
    let mut first = Connection::open(login).map_err(words)?;
    for sql in [
        "CREATE DATABASE IF NOT EXISTS histories",
        "DROP TABLE IF EXISTS histories.lists",
        "CREATE TABLE histories.lists (id INT PRIMARY KEY, k INT NOT NULL, list TEXT NOT NULL, UNIQUE KEY (k))",
    ] {
        first.query(sql.as_bytes(), &mut ()).map_err(words)?;
    }
    let (lists, over, clock) = (Lists::new(), AtomicBool::new(false), Instant::now());
    let outcomes: Vec<Result<Vec<Transaction>, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|number| {
                let (lists, over) = (&lists, &over);
                let seed = seed.wrapping_mul(1009).wrapping_add(u64::from(number));
                scope.spawn(move || {
                    let mut session = Session::open(login, level, lists, clock, seed)?;
                    let mut history = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        match session.transaction() {
                            Ok(transaction) => history.push(transaction),
                            Err(error) => {
                                over.store(true, Ordering::Relaxed);
                                return Err(error);
                            }
                        }
                    }
                    Ok(history)
                })
            })
            .collect();
        let step = Duration::from_millis(20);
        while clock.elapsed() < time && !over.load(Ordering::Relaxed) {
            std::thread::sleep(step);
        }
        over.store(true, Ordering::Relaxed);
        let panicked = |_| Err("a connection's thread ended badly".to_owned());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let mut history = Vec::new();
    for outcome in outcomes {
        history.extend(outcome?);
    }
    // Everything as it is in the end: appends that vanished are missing here.
    let mut last = Session::open(login, level, &lists, clock, seed)?;
    history.push(last.read_all()?);
    Ok(history)
}

struct Session<'l> {
    connection: Connection,
    lists: &'l Lists,
    clock: Instant,
    random: SplitMix,
}

/// Why a transaction went no further.
enum Stopped {
    /// Rolled back; this is in order.
    Aborted,
    Failed(String),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        match failure {
            Failure::Server(error) if error.code().0 == DEADLOCK => Stopped::Aborted,
            other => Stopped::Failed(other.to_string()),
        }
    }
}

impl<'l> Session<'l> {
    fn open(
        login: &Options,
        level: &str,
        lists: &'l Lists,
        clock: Instant,
        seed: u64,
    ) -> Result<Session<'l>, String> {
        let mut connection = Connection::open(login).map_err(|failure| failure.to_string())?;
        for sql in [
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
            format!("SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}"),
            "USE histories".into(),
        ] {
            connection
                .query(sql.as_bytes(), &mut ())
                .map_err(|failure| format!("{sql}: {failure}"))?;
        }
        Ok(Session { connection, lists, clock, random: SplitMix::new(seed) })
    }

    fn run(&mut self, sql: &str) -> Result<u64, Stopped> {
        Ok(self.connection.query(sql.as_bytes(), &mut ())?.affected_rows)
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    /// A random transaction.
    fn transaction(&mut self) -> Result<Transaction, String> {
        let began = self.now();
        let read_only = self.random.below(6) == 0;
        let mut ops = Vec::new();
        let end = match self.body(read_only, &mut ops) {
            Ok(()) if self.random.below(20) == 0 => self.end("ROLLBACK", End::Aborted),
            Ok(()) => self.end("COMMIT", End::Committed),
            Err(Stopped::Aborted) => self.end("ROLLBACK", End::Aborted),
            Err(Stopped::Failed(error)) => Err(error),
        }?;
        Ok(Transaction { ops, end, began, ended: self.now() })
    }

    fn end(&mut self, sql: &str, end: End) -> Result<End, String> {
        match self.run(sql) {
            Ok(_) => Ok(end),
            Err(Stopped::Aborted) => Ok(End::Unknown),
            Err(Stopped::Failed(error)) => Err(format!("{sql}: {error}")),
        }
    }

    fn body(&mut self, read_only: bool, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        match read_only {
            true => self.run("START TRANSACTION READ ONLY")?,
            false => self.run("START TRANSACTION")?,
        };
        for _ in 0..1 + self.random.below(5) {
            match self.random.below(20) {
                0..8 if !read_only => self.append(ops)?,
                8 if !read_only => self.append_and_take_back(ops)?,
                9 | 10 => self.read_range(ops, read_only)?,
                _ => self.read_one(ops, read_only)?,
            }
        }
        Ok(())
    }

    fn append(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        let key = self.lists.pick(&mut self.random);
        let element = self.lists.next_element.fetch_add(1, Ordering::Relaxed);
        let column = if self.random.below(4) == 0 { "k" } else { "id" };
        let value = if column == "k" { key + SECOND_KEY } else { key };
        let update =
            format!("UPDATE lists SET list = CONCAT(list, ',{element}') WHERE {column} = {value}");
        let appended = self.random.below(2) == 0 && self.run(&update)? == 1;
        if !appended {
            let k = key + SECOND_KEY;
            self.run(&format!(
                "INSERT INTO lists VALUES ({key}, {k}, '{element}') \
                 ON DUPLICATE KEY UPDATE list = CONCAT(list, ',{element}')"
            ))?;
        }
        self.lists.note_append(key);
        ops.push(Op::Append { key, element, undone: false });
        Ok(())
    }

    fn append_and_take_back(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        self.run("SAVEPOINT s")?;
        let before = ops.len();
        let outcome = self.append(ops).and_then(|()| self.append(ops));
        for op in &mut ops[before..] {
            if let Op::Append { undone, .. } = op {
                *undone = true;
            }
        }
        outcome?;
        self.run("ROLLBACK TO SAVEPOINT s").map(drop)
    }

    fn lock(&mut self, read_only: bool) -> (&'static str, Reading) {
        match self.random.below(5) {
            0 if !read_only => (" FOR UPDATE", Reading::Locking),
            1 if !read_only => (" FOR SHARE", Reading::Locking),
            _ => ("", Reading::Plain),
        }
    }

    fn read_one(&mut self, ops: &mut Vec<Op>, read_only: bool) -> Result<(), Stopped> {
        let key = self.lists.pick(&mut self.random);
        let (lock, reading) = self.lock(read_only);
        let sql = match self.random.below(3) {
            0 => format!("SELECT id, list FROM lists WHERE k = {}{lock}", key + SECOND_KEY),
            _ => format!("SELECT id, list FROM lists WHERE id = {key}{lock}"),
        };
        let mut rows = Rows::default();
        self.connection.query(sql.as_bytes(), &mut rows)?;
        let elements = rows.0.remove(&key).unwrap_or_default();
        ops.push(Op::Read { key, elements, reading });
        Ok(())
    }

    /// A range that may reach to lists that are not there yet.
    fn read_range(&mut self, ops: &mut Vec<Op>, read_only: bool) -> Result<(), Stopped> {
        let first = self.lists.pick(&mut self.random);
        let (lock, reading) = self.lock(read_only);
        let (column, offset) =
            if self.random.below(3) == 0 { ("k", SECOND_KEY) } else { ("id", 0) };
        let (low, high) = (first + offset, first + RANGE - 1 + offset);
        let sql =
            format!("SELECT id, list FROM lists WHERE {column} BETWEEN {low} AND {high}{lock}");
        let mut rows = Rows::default();
        self.connection.query(sql.as_bytes(), &mut rows)?;
        for key in first..first + RANGE {
            let elements = rows.0.remove(&key).unwrap_or_default();
            ops.push(Op::Read { key, elements, reading });
        }
        Ok(())
    }

    fn read_all(&mut self) -> Result<Transaction, String> {
        let began = self.now();
        let mut rows = Rows::default();
        let read = self.connection.query(b"SELECT id, list FROM lists", &mut rows);
        read.map_err(|failure| failure.to_string())?;
        let keys = 1..self.lists.next.load(Ordering::Relaxed);
        let read = |key| Op::Read {
            key,
            elements: rows.0.remove(&key).unwrap_or_default(),
            reading: Reading::Plain,
        };
        let ops = keys.map(read).collect();
        Ok(Transaction { ops, end: End::Committed, began, ended: self.now() })
    }
}
