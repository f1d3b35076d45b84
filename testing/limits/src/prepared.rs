//! Prepared statements that are never closed, and the gain from preparing.

use client::{Connection, Failure, Prepared};
use sqltest::Server;
use types::Value;

use crate::process::{cpu_seconds, mib, resident_bytes};
use crate::{Options, connect, must, run};

/// The default of `prepared_stmt_memory_limit`.
const MEMORY_LIMIT_BYTES: u64 = 64 << 20;
/// Memory of a connection itself, with room.
const CONNECTION_BYTES: u64 = 16 << 10;
/// Executions of one round when text and prepared form are compared.
const EXECUTIONS: usize = 20_000;
const ROUNDS: usize = 5;
/// Least ratio of the server time of a text that is parsed and planned to that of the prepared form. A text of a shape that ran before is
/// found in the plan cache and costs about as much as the prepared form: that ratio is only printed.
const GAIN_MIN: f64 = 1.3;

fn start(options: &Options) -> Result<(Server, usize, usize), String> {
    let (connections, statements) = if options.full { (1_000, 1_000) } else { (100, 200) };
    let set = vec![format!("--max-connections={}", connections + 10)];
    let server = Server::start(&options.squalld, &set)?;
    let mut connection = connect(&server)?;
    run(&mut connection, "CREATE DATABASE limits")?;
    run(&mut connection, "CREATE TABLE limits.t (id INT PRIMARY KEY, c VARCHAR(40))")?;
    run(&mut connection, "INSERT INTO limits.t VALUES (1, 'one'), (2, 'two')")?;
    Ok((server, connections, statements))
}

/// Prepares on every connection without closing; returns the number of statements refused with 1461.
fn flood(
    server: &Server,
    connections: usize,
    statements: usize,
    text: &dyn Fn(usize, usize) -> String,
) -> Result<usize, String> {
    let mut open: Vec<Connection> = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(connect(server)?);
    }
    let before = resident_bytes(server.process());
    let (mut refused, mut firsts): (usize, Vec<Option<Prepared>>) = (0, vec![None; connections]);
    for (number, connection) in open.iter_mut().enumerate() {
        for statement in 0..statements {
            match connection.prepare(text(number, statement).as_bytes()) {
                Ok(prepared) => _ = firsts[number].get_or_insert(prepared),
                Err(Failure::Server(error)) if error.code().0 == 1461 => refused += 1,
                Err(failure) => return Err(failure.to_string()),
            }
        }
    }
    let after = resident_bytes(server.process());
    // The coldest statement of every connection still runs.
    for (connection, first) in open.iter_mut().zip(&firsts) {
        let Some(first) = first else { continue };
        let outcome = connection.execute(*first, &[Value::Int(1)], &mut ());
        let rows = outcome.map_err(|failure| failure.to_string())?.rows;
        must(rows == 1, format!("{rows} rows of a cold statement"))?;
    }
    let warm = resident_bytes(server.process());
    let count = connections * statements;
    println!(
        "  {count} statements on {connections} connections: {:.1} MiB, {:.1} MiB with one executed on each, {refused} refused; {:.1} MiB before",
        mib(after.saturating_sub(before)),
        mib(warm.saturating_sub(before)),
        mib(before),
    );
    let grown = warm.saturating_sub(before);
    let allowed = MEMORY_LIMIT_BYTES + connections as u64 * CONNECTION_BYTES;
    must(grown <= allowed, format!("{:.1} MiB for {count} statements", mib(grown)))?;
    Ok(refused)
}

/// Every connection prepares the same thousand texts.
pub fn equal_texts(options: &Options) -> Result<(), String> {
    let (server, connections, statements) = start(options)?;
    let text =
        |_: usize, n: usize| format!("SELECT c FROM limits.t WHERE id = ? /* {n} */ AND {n} = {n}");
    let refused = flood(&server, connections, statements, &text)?;
    must(refused == 0, format!("{refused} refused"))
}

/// Every statement has a different text.
pub fn distinct_texts(options: &Options) -> Result<(), String> {
    let (server, connections, statements) = start(options)?;
    let text = |connection: usize, n: usize| {
        format!("SELECT c FROM limits.t WHERE id = ? AND {connection} = {connection} AND {n} = {n}")
    };
    let refused = flood(&server, connections, statements, &text)?;
    println!("  {refused} of {} refused with 1461", connections * statements);
    // Half a million texts of that length fit the limit.
    must(
        connections * statements - refused >= 400_000.min(connections * statements),
        format!("{refused} refused"),
    )
}

/// A point select by text, of a new shape each time and of one shape, against its prepared form: server time.
pub fn faster_than_text(options: &Options) -> Result<(), String> {
    let (server, ..) = start(options)?;
    let mut connection = connect(&server)?;
    let prepare = connection.prepare(b"SELECT c FROM limits.t WHERE id = ?");
    let prepared = prepare.map_err(|failure| failure.to_string())?;
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (kind, times) in times.iter_mut().enumerate() {
            let started = cpu_seconds(server.process());
            for n in 0..EXECUTIONS {
                let id = (n % 2 + 1) as i64;
                let alias = round * EXECUTIONS + n;
                let outcome = match kind {
                    0 => {
                        let sql = format!("SELECT c AS c{alias} FROM limits.t WHERE id = {id}");
                        connection.query(sql.as_bytes(), &mut ())
                    }
                    1 => {
                        let sql = format!("SELECT c AS c FROM limits.t WHERE id = {id}");
                        connection.query(sql.as_bytes(), &mut ())
                    }
                    _ => connection.execute(prepared, &[Value::Int(id)], &mut ()),
                };
                outcome.map_err(|failure| failure.to_string())?;
            }
            times.push((cpu_seconds(server.process()) - started) / EXECUTIONS as f64 * 1e6);
        }
    }
    let [new, known, binary] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    let gain = new / binary;
    println!(
        "  a point select takes {new:.2} us by a new text, {known:.2} us by a known one, {binary:.2} us prepared: {gain:.2} and {:.2} times",
        known / binary
    );
    must(gain >= GAIN_MIN, format!("{gain:.2} times"))
}
