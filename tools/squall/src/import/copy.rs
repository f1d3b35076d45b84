//! Rows in parallel: ranges of keys, each read from the source's snapshot, written to the target, summed up on both sides.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use client::{Answer, Failure};

use super::address::Address;
use super::definitions::{Key, Table};
use super::rows::{Checksum, put_literal};
use super::server::{Server, quoted_name};

/// Most ranges of a table.
const RANGES_MAX: u64 = 1000;
/// Bytes of an INSERT.
const STATEMENT_BYTES: usize = 1 << 20;
/// Time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(2);

/// A part of a table.
#[derive(Clone, Debug)]
struct Range {
    table: usize,
    /// A condition; empty for all rows.
    condition: String,
}

/// A table on its way.
struct Work<'a> {
    table: &'a Table,
    /// Keys compare alike on both sides, so that a condition names the same rows.
    is_exact: bool,
    source: Checksum,
    target: Checksum,
    failure: Option<String>,
    warning: Option<String>,
}

/// What became of a table.
pub(super) struct Copied<'a> {
    pub(super) table: &'a Table,
    pub(super) rows: u64,
    pub(super) checksum: String,
    /// Why it is not equal.
    pub(super) failure: Option<String>,
    pub(super) warning: Option<String>,
}

/// What threads share.
struct Job<'a> {
    works: Vec<Mutex<Work<'a>>>,
    ranges: Mutex<VecDeque<Range>>,
    target: &'a Address,
    packet_bytes_max: usize,
    /// Ranges that are equal on both sides are left as they are.
    is_resumed: bool,
    /// Ranges that were equal.
    kept: Mutex<u64>,
}

/// How to copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Bytes of a range that are aimed at.
    pub(super) range_bytes: u64,
    /// Ranges that are equal on both sides are left as they are.
    pub(super) is_resumed: bool,
}

/// What a thread tells: rows and bytes that passed.
type Progress = (u64, u64);

/// Copies `tables` with a thread for each of `readers`, then reads the target and compares.
///
/// # Errors
/// A connection cannot be opened or is lost. What is wrong with one table is in its part of the result.
pub(super) fn copy<'a>(
    tables: Vec<&'a Table>,
    readers: &mut [Server],
    target: &'a Address,
    manner: Manner,
) -> Result<Vec<Copied<'a>>, String> {
    debug_assert!(manner.range_bytes > 0, "the command line says so");
    let Manner { range_bytes, is_resumed } = manner;
    let mut first = writer(target)?;
    let packet_bytes_max = first.cell("SELECT @@max_allowed_packet")?.parse().unwrap_or(64 << 20);
    let mut ranges = VecDeque::new();
    let mut works = Vec::new();
    for (number, table) in tables.into_iter().enumerate() {
        let mut work = Work {
            table,
            is_exact: table.key.as_ref().is_none_or(is_exact),
            source: Checksum::default(),
            target: Checksum::default(),
            failure: None,
            warning: None,
        };
        let conditions = match is_resumed && !work.is_exact {
            true => resume_whole(&mut first, &mut readers[0], &mut work, range_bytes)?,
            false => conditions(&mut readers[0], table, range_bytes)?,
        };
        ranges.extend(conditions.into_iter().map(|condition| Range { table: number, condition }));
        works.push(Mutex::new(work));
    }
    let all = ranges.clone();
    let job = Job {
        works,
        ranges: Mutex::new(ranges),
        target,
        packet_bytes_max,
        is_resumed,
        kept: Mutex::new(0),
    };
    let bytes: u64 = job.works.iter().map(|work| locked(work).table.bytes).sum();
    run(&job, readers, "copied", bytes, |job, reader, writer, range, sender| {
        copy_range(job, reader, writer, range, sender)
    })?;
    if is_resumed {
        eprintln!("{} of {} ranges were equal already", locked(&job.kept), all.len());
    }
    // Text keys may sort otherwise in the target: those tables are compared as a whole.
    let mut seen = None;
    let mut ranges = VecDeque::new();
    for range in all {
        let is_exact = locked(&job.works[range.table]).is_exact;
        if is_exact {
            ranges.push_back(range);
        } else if seen != Some(range.table) {
            seen = Some(range.table);
            ranges.push_back(Range { table: range.table, condition: String::new() });
        }
    }
    *locked(&job.ranges) = ranges;
    run(&job, readers, "compared", bytes, |job, _, writer, range, sender| {
        let work = &job.works[range.table];
        let table = locked(work).table;
        let sum = checksum(writer, table, &range.condition, sender)?;
        locked(work).target.add(&sum);
        Ok(())
    })?;
    let finished = job.works.into_iter().map(|work| finish(work.into_inner().expect(NO_PANIC)));
    Ok(finished.collect())
}

/// Why a mutex is never poisoned: no thread panics with one.
const NO_PANIC: &str = "no thread panics while it holds it";

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect(NO_PANIC)
}

fn finish(work: Work<'_>) -> Copied<'_> {
    let difference = work.source.difference(&work.target, &work.table.columns);
    Copied {
        table: work.table,
        rows: work.source.rows,
        checksum: work.source.text(),
        failure: work.failure.or(difference),
        warning: work.warning,
    }
}

/// A connection that takes rows as they are.
fn writer(target: &Address) -> Result<Server, String> {
    let mut writer = Server::new(target.connect()?)?;
    for sql in super::WRITER {
        writer.run(sql)?;
    }
    Ok(writer)
}

/// Gives the ranges to threads and prints their progress.
fn run<'a>(
    job: &Job<'a>,
    readers: &mut [Server],
    what: &str,
    bytes: u64,
    step: impl Fn(&Job<'a>, &mut Server, &mut Server, &Range, &Sender<Progress>) -> Result<(), String>
    + Sync,
) -> Result<(), String> {
    let (sender, receiver) = mpsc::channel::<Progress>();
    let (step, total) = (&step, locked(&job.ranges).len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = readers
            .iter_mut()
            .map(|reader| {
                let sender = sender.clone();
                scope.spawn(move || -> Result<(), String> {
                    let mut writer = writer(job.target)?;
                    loop {
                        let Some(range) = locked(&job.ranges).pop_front() else { return Ok(()) };
                        let stepped = step(job, reader, &mut writer, &range, &sender);
                        if stepped.is_err() {
                            // The others need not go on.
                            locked(&job.ranges).clear();
                        }
                        stepped?;
                    }
                })
            })
            .collect();
        drop(sender);
        let (begun, mut told) = (Instant::now(), Instant::now());
        let (mut rows_done, mut bytes_done) = (0, 0);
        loop {
            match receiver.recv_timeout(PROGRESS) {
                Ok((rows, bytes)) => {
                    rows_done += rows;
                    bytes_done += bytes;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
            }
            if told.elapsed() >= PROGRESS {
                told = Instant::now();
                let left = locked(&job.ranges).len();
                let seconds = begun.elapsed().as_secs_f64();
                eprintln!(
                    "{what}: {} of {total} ranges, {rows_done} rows, {} of about {} MB, {:.1} MB/s",
                    total.saturating_sub(left),
                    bytes_done >> 20,
                    bytes >> 20,
                    bytes_done as f64 / f64::from(1 << 20) / seconds
                );
            }
        }
        let results = threads.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err("a thread of the import ended".to_owned()))
        });
        results.collect::<Vec<_>>().into_iter().collect::<Result<Vec<()>, String>>()?;
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("{what}: {rows_done} rows, {} MB in {seconds:.1} s", bytes_done >> 20);
        Ok(())
    })
}

/// Whether keys of this type compare alike everywhere.
fn is_exact(key: &Key) -> bool {
    key.charset.is_empty()
}

/// The conditions that divide a table.
fn conditions(source: &mut Server, table: &Table, range_bytes: u64) -> Result<Vec<String>, String> {
    let count = (table.bytes / range_bytes).clamp(1, RANGES_MAX);
    let whole = vec![String::new()];
    let Some(key) = table.key.as_ref().filter(|_| count > 1) else { return Ok(whole) };
    let name = quoted_name(&key.column);
    let bounds = match key.ty.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => {
            let sql = format!("SELECT MIN({name}), MAX({name}) FROM {}", table.quoted());
            let row = source.rows(&sql)?.into_iter().next().unwrap_or_default();
            let ends: Vec<i128> = row.iter().filter_map(|cell| cell.parse().ok()).collect();
            let [least, most] = ends[..] else { return Ok(whole) };
            numbers_between(least, most, count)
        }
        "enum" | "set" | "bit" | "float" | "double" => return Ok(whole),
        _ => keys_between(source, table, key, count)?,
    };
    Ok(between(&name, &bounds))
}

/// `count` - 1 numbers that divide what lies between two.
fn numbers_between(least: i128, most: i128, count: u64) -> Vec<String> {
    let count = i128::from(count).min(most - least + 1).max(1);
    (1..count).map(|at| (least + (most - least + 1) * at / count).to_string()).collect()
}

/// Keys at equal distances, as literals.
fn keys_between(
    source: &mut Server,
    table: &Table,
    key: &Key,
    count: u64,
) -> Result<Vec<String>, String> {
    let (name, path) = (quoted_name(&key.column), table.quoted());
    let step = (table.rows / count).max(1);
    let literal = |hex: &str| match (key.ty.as_str(), key.charset.as_str()) {
        ("date" | "time" | "datetime" | "timestamp" | "decimal", _) => None,
        (_, "") => Some(format!("x'{hex}'")),
        (_, charset) => Some(format!("_{charset} x'{hex}'")),
    };
    let mut bounds: Vec<String> = Vec::new();
    loop {
        let from = bounds.last().map(|last| format!("WHERE {name} > {last}")).unwrap_or_default();
        let rows = source.rows(&format!(
            "SELECT HEX({name}), IF({}, '', {name}) FROM {path} {from} ORDER BY {name} LIMIT 1 OFFSET {step}",
            literal("").is_some()
        ))?;
        let Some(row) = rows.first() else { return Ok(bounds) };
        bounds.push(literal(&row[0]).unwrap_or_else(|| format!("'{}'", row[1])));
        if bounds.len() as u64 >= RANGES_MAX {
            return Ok(bounds);
        }
    }
}

/// Conditions that divide all keys at `bounds`.
fn between(name: &str, bounds: &[String]) -> Vec<String> {
    let (Some(first), Some(last)) = (bounds.first(), bounds.last()) else {
        return vec![String::new()];
    };
    let mut conditions = vec![format!(" WHERE {name} < {first}")];
    let inner = bounds.windows(2);
    conditions.extend(inner.map(|w| format!(" WHERE {name} >= {} AND {name} < {}", w[0], w[1])));
    conditions.push(format!(" WHERE {name} >= {last}"));
    conditions
}

/// After an interruption, a table whose ranges are not exact: nothing to do if it is equal, else from the beginning.
fn resume_whole(
    target: &mut Server,
    source: &mut Server,
    work: &mut Work<'_>,
    range_bytes: u64,
) -> Result<Vec<String>, String> {
    let (quiet, _receiver) = mpsc::channel();
    let there = checksum(source, work.table, "", &quiet)?;
    if there == checksum(target, work.table, "", &quiet)? {
        work.source = there;
        work.is_exact = true;
        // Its target side is read again when all tables are compared: a condition that no row fulfils twice.
        return Ok(vec![SKIPPED.to_owned()]);
    }
    target.run(&format!("DELETE FROM {}", work.table.quoted()))?;
    conditions(source, work.table, range_bytes)
}

/// The condition of a range that is equal already.
const SKIPPED: &str = " WHERE TRUE";

/// SELECT of all columns.
fn select(table: &Table, condition: &str) -> String {
    let expressions: Vec<_> = table.columns.iter().map(|c| c.expression.as_str()).collect();
    format!("SELECT {} FROM {}{condition}", expressions.join(", "), table.quoted())
}

struct Sum<'a> {
    table: &'a Table,
    sum: Checksum,
    bytes: u64,
    sender: &'a Sender<Progress>,
    told: u64,
}

impl Answer for Sum<'_> {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        self.sum.add_row(&self.table.columns, cells);
        self.bytes += cells.iter().flatten().map(|cell| cell.len() as u64).sum::<u64>();
        if self.bytes >= STATEMENT_BYTES as u64 {
            self.tell();
        }
    }
}

impl Sum<'_> {
    fn tell(&mut self) {
        // Nobody listens when a range is only looked at.
        let _ = self.sender.send((self.sum.rows - self.told, self.bytes));
        (self.told, self.bytes) = (self.sum.rows, 0);
    }
}

/// The checksum of a range.
fn checksum(
    server: &mut Server,
    table: &Table,
    condition: &str,
    sender: &Sender<Progress>,
) -> Result<Checksum, String> {
    let sql = select(table, condition);
    let mut sum = Sum { table, sum: Checksum::default(), bytes: 0, sender, told: 0 };
    let read = server.connection.query(sql.as_bytes(), &mut sum);
    read.map_err(|error| format!("{}: {error}", table.quoted()))?;
    sum.tell();
    Ok(sum.sum)
}

/// Rows on their way into INSERT statements.
struct Pipe<'a, 'w> {
    table: &'a Table,
    writer: &'w mut Server,
    packet_bytes_max: usize,
    head: Vec<u8>,
    statement: Vec<u8>,
    statement_rows: u64,
    sum: Checksum,
    warning: Option<String>,
    failure: Option<Failure>,
    /// A row is longer than a packet may be.
    too_long: Option<usize>,
    sender: &'w Sender<Progress>,
}

impl Answer for Pipe<'_, '_> {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        if self.failure.is_some() {
            return;
        }
        self.sum.add_row(&self.table.columns, cells);
        let begin = self.statement.len();
        self.statement.extend_from_slice(if self.statement_rows == 0 { b"(" } else { b",(" });
        let written = self.table.columns.iter().zip(cells).filter(|(c, _)| !c.is_generated);
        for (at, (column, cell)) in written.enumerate() {
            if at > 0 {
                self.statement.push(b',');
            }
            put_literal(&mut self.statement, &column.form, *cell);
        }
        self.statement.push(b')');
        self.statement_rows += 1;
        let length = self.statement.len();
        if length >= STATEMENT_BYTES {
            self.flush();
            debug_assert!(self.failure.is_some() || self.statement.len() < length, "it was sent");
            if length - begin > self.packet_bytes_max && self.failure.is_some() {
                self.too_long = Some(length - begin);
            }
        }
    }
}

impl Pipe<'_, '_> {
    fn flush(&mut self) {
        if self.statement_rows == 0 || self.failure.is_some() {
            return;
        }
        let bytes = self.statement.len() as u64;
        match self.writer.connection.query(&self.statement, &mut ()) {
            Ok(outcome) => {
                if outcome.warnings > 0 && self.warning.is_none() {
                    let warnings = self.writer.warnings().unwrap_or_default();
                    self.warning = warnings.into_iter().next();
                }
                // The main thread listens until all threads are done.
                let _ = self.sender.send((self.statement_rows, bytes));
            }
            Err(error) => self.failure = Some(error),
        }
        self.statement.clear();
        self.statement.extend_from_slice(&self.head);
        self.statement_rows = 0;
    }
}

fn copy_range(
    job: &Job<'_>,
    reader: &mut Server,
    writer: &mut Server,
    range: &Range,
    sender: &Sender<Progress>,
) -> Result<(), String> {
    let work = &job.works[range.table];
    let (table, is_exact) = {
        let work = locked(work);
        if range.condition == SKIPPED {
            *locked(&job.kept) += 1;
        }
        if work.failure.is_some() || range.condition == SKIPPED {
            return Ok(());
        }
        (work.table, work.is_exact)
    };
    if job.is_resumed && is_exact {
        let there = checksum(reader, table, &range.condition, sender)?;
        let (quiet, _receiver) = mpsc::channel();
        if there == checksum(writer, table, &range.condition, &quiet)? {
            locked(work).source.add(&there);
            *locked(&job.kept) += 1;
            return Ok(());
        }
        writer.run(&format!("DELETE FROM {}{}", table.quoted(), range.condition))?;
    }
    let written = table.columns.iter().filter(|column| !column.is_generated);
    let names: Vec<_> = written.map(|column| quoted_name(&column.name)).collect();
    let head = format!("INSERT INTO {} ({}) VALUES ", table.quoted(), names.join(", "));
    let mut pipe = Pipe {
        table,
        writer,
        packet_bytes_max: job.packet_bytes_max,
        statement: head.clone().into_bytes(),
        head: head.into_bytes(),
        statement_rows: 0,
        sum: Checksum::default(),
        warning: None,
        failure: None,
        too_long: None,
        sender,
    };
    let sql = select(table, &range.condition);
    let read = reader.connection.query(sql.as_bytes(), &mut pipe);
    pipe.flush();
    let (sum, warning, failure, too_long) = (pipe.sum, pipe.warning, pipe.failure, pipe.too_long);
    let failure = match (too_long, failure.or(read.err())) {
        (Some(bytes), _) => Some(format!(
            "a row needs a packet of {bytes} bytes: raise max_allowed_packet in the target"
        )),
        // Nothing more can be copied: the next call goes on.
        (None, Some(lost @ Failure::Lost(_))) => return Err(format!("{}: {lost}", table.quoted())),
        (None, failure) => failure.map(|error| error.to_string()),
    };
    let mut work = locked(work);
    work.source.add(&sum);
    work.warning = work.warning.take().or(warning);
    work.failure = work.failure.take().or(failure);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_every_key_once() {
        assert_eq!(numbers_between(1, 10, 3), ["4", "7"]);
        assert_eq!(numbers_between(5, 5, 9), [""; 0]);
        let ends = numbers_between(i128::from(i64::MIN), i128::from(u64::MAX), 2);
        assert_eq!(ends, ["4611686018427387904"]);
        assert_eq!(
            between("`a`", &numbers_between(1, 10, 3)),
            [" WHERE `a` < 4", " WHERE `a` >= 4 AND `a` < 7", " WHERE `a` >= 7"]
        );
        assert_eq!(between("`a`", &[]), [""]);
    }
}
