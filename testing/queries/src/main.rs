//! Random statements over random tables. Each is checked by oracles: another server (MySQL), the same tables without indexes, other
//! plans, the prepared statement, the parts of a condition. A statement whose answers differ is made smaller and printed.

mod answer;
mod node;
mod oracle;
mod query;
mod schema;
mod templates;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use client::{Connection, Options as Login, Target};
use sys::entropy::SplitMix;

use answer::{Difference, Reply, ask, shown};
use node::Node;
use oracle::{Finding, Servers};
use query::{Maker, Query};
use schema::Schema;

#[derive(Parser)]
#[command(about = "Looks for wrong answers with random queries")]
struct Options {
    /// Port of a server on this host (root without a password); a fresh squalld is started otherwise.
    #[arg(long)]
    port: Option<u16>,
    /// The server program.
    #[arg(long, env = "SQUALLD", default_value = "target/debug/squalld")]
    squalld: PathBuf,
    /// Port of a MySQL server on this host to compare with (root without a password).
    #[arg(long)]
    peer: Option<u16>,
    /// The first seed; each round has its own tables and the next seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rounds.
    #[arg(long, default_value_t = 10)]
    rounds: u64,
    /// Statements of a round.
    #[arg(long, default_value_t = 300)]
    queries: u64,
    /// Ends after this many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// Also counts errors that only one server answers, and types of columns, as differences.
    #[arg(long)]
    strict: bool,
    /// Differences that are printed.
    #[arg(long, default_value_t = 20)]
    shown: usize,
}

/// What was done and found.
#[derive(Default)]
struct Totals {
    statements: u64,
    refused: u64,
    found: BTreeMap<Difference, u64>,
    errors: BTreeMap<String, (u64, String)>,
    printed: usize,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("queries: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Number of differences.
fn run(options: &Options) -> Result<u64, String> {
    let started = match options.port {
        Some(_) => None,
        None => Some(sqltest::Server::start(&options.squalld, &[])?),
    };
    let port = options.port.or(started.as_ref().map(sqltest::Server::port)).unwrap_or_default();
    let begun = Instant::now();
    let mut totals = Totals::default();
    for seed in options.seed..options.seed + options.rounds {
        if options.seconds.is_some_and(|most| begun.elapsed() > Duration::from_secs(most)) {
            break;
        }
        round(options, port, seed, &mut totals).map_err(|error| format!("seed {seed}: {error}"))?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let Totals { statements, refused, found, .. } = &totals;
    println!(
        "{statements} statements in {seconds:.0} s, {refused} of them refused; found: {found:?}"
    );
    for (kind, (count, example)) in &totals.errors {
        println!("{count} x {kind}\n    {example}");
    }
    let counts = |difference: &Difference| {
        options.strict || !matches!(difference, Difference::Errors | Difference::Types)
    };
    let failed =
        found.iter().filter(|(difference, _)| counts(difference)).map(|(_, count)| count).sum();
    println!("{} passed, {failed} failed", statements - failed);
    Ok(failed)
}

fn connect(port: u16, schema: &str, statements: &[String]) -> Result<Connection, String> {
    let login = Login {
        target: Target::Tcp("127.0.0.1".into(), port),
        user: "root".into(),
        password: String::new(),
        database: None,
        tls: client::Encryption::Off,
        framings: Vec::new(),
        expired_passwords: false,
    };
    let begun = Instant::now();
    let mut connection = loop {
        let opened = Connection::open(&login).and_then(|mut opened| {
            opened.query(b"SELECT 1", &mut ())?;
            Ok(opened)
        });
        match opened {
            Ok(connection) => break connection,
            Err(failure) if begun.elapsed().as_secs() > 60 => return Err(failure.to_string()),
            // It has just started.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut setup: Vec<String> = [
        "SET time_zone = '+00:00'",
        "SET sql_mode = ''",
        "SET timestamp = 1600000000",
        "SET max_execution_time = 5000",
    ]
    .map(str::to_owned)
    .into();
    setup.push(format!("DROP DATABASE IF EXISTS {schema}"));
    setup.push(format!("CREATE DATABASE {schema}"));
    setup.push(format!("USE {schema}"));
    setup.extend_from_slice(statements);
    setup.push("SET sql_mode = DEFAULT".into());
    for sql in setup {
        match ask(&mut connection, &sql) {
            Reply::Rows(..) => {}
            reply => return Err(format!("{sql}\n{}", shown(&reply))),
        }
    }
    Ok(connection)
}

fn round(options: &Options, port: u16, seed: u64, totals: &mut Totals) -> Result<(), String> {
    let mut random = SplitMix::new(seed);
    let schema = Schema::random(&mut random);
    let mut servers = Servers {
        subject: connect(port, "queries", &schema.indexed)?,
        plain: connect(port, "queries_plain", &schema.plain)?,
        peer: options.peer.map(|port| connect(port, "queries", &schema.indexed)).transpose()?,
        refused: 0,
    };
    for number in 0..options.queries {
        // Each statement has its own chances, so that it can be made again alone.
        let mut random = SplitMix::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
        totals.statements += 1;
        if number % 4 == 3 {
            let parted = Maker::new(&mut random, &schema).parted();
            if let Some(finding) = servers.check_parts(&parted) {
                let sql = format!(
                    "SELECT {} FROM {} WHERE {}",
                    parted.items.sql(),
                    parted.from.sql(),
                    parted.condition.sql()
                );
                note(options, &schema, (seed, number), &finding, &sql, totals);
            }
            continue;
        }
        let query = Maker::new(&mut random, &schema).query();
        let Some(finding) = servers.check(&query.node.sql(), &query, number) else { continue };
        let is_printed = totals.printed < options.shown && finding.difference != Difference::Errors;
        let (smallest, finding) = match is_printed {
            true => smallest(&mut servers, query, finding, number),
            false => (query.node, finding),
        };
        note(options, &schema, (seed, number), &finding, &smallest.sql(), totals);
        if finding.difference == Difference::Lost {
            break;
        }
    }
    totals.refused += servers.refused;
    Ok(())
}

/// Makes a statement smaller as long as its answers differ in the same way.
fn smallest(
    servers: &mut Servers,
    mut query: Query,
    mut finding: Finding,
    choice: u64,
) -> (Node, Finding) {
    const TRIES: u32 = 600;
    let (mut at, mut tries) = (0, 0);
    while at < query.node.count() && tries < TRIES && finding.difference != Difference::Lost {
        let mut is_smaller = false;
        for candidate in query.node.smaller_at(at) {
            tries += 1;
            let smaller = Query { node: candidate, folds: query.folds, ordered: query.ordered };
            let found = servers.check(&smaller.node.sql(), &smaller, choice);
            if let Some(found) = found
                && found.difference == finding.difference
                && found.oracle == finding.oracle
            {
                (query, finding, is_smaller) = (smaller, found, true);
                break;
            }
        }
        if !is_smaller {
            at += 1;
        }
    }
    (query.node, finding)
}

fn note(
    options: &Options,
    schema: &Schema,
    (seed, number): (u64, u64),
    finding: &Finding,
    sql: &str,
    totals: &mut Totals,
) {
    *totals.found.entry(finding.difference).or_default() += 1;
    if finding.difference == Difference::Errors {
        let word = |reply: &Reply| match reply {
            Reply::Refused(code, message) => {
                format!("{code} {}", message.split('\'').next().unwrap_or_default())
            }
            Reply::Rows(..) | Reply::Lost(_) => "rows".to_owned(),
        };
        let key = format!(
            "{} | {}: {}",
            word(&finding.answers[0]),
            finding.oracle,
            word(&finding.answers[1])
        );
        let entry = totals.errors.entry(key).or_insert_with(|| (0, sql.to_owned()));
        entry.0 += 1;
        if sql.len() < entry.1.len() {
            entry.1 = sql.to_owned();
        }
        return;
    }
    if totals.printed >= options.shown {
        return;
    }
    totals.printed += 1;
    println!(
        "--- {:?}, {}: seed {seed}, statement {number}\n{sql}",
        finding.difference, finding.oracle
    );
    let used = schema.tables.iter().filter(|table| sql.contains(&format!("{} a", table.name)));
    for table in used {
        let start = format!("CREATE TABLE {} ", table.name);
        let definition = schema.indexed.iter().find(|one| one.starts_with(&start));
        println!("  {}", definition.map_or("", String::as_str));
    }
    println!("{}\n  other:\n{}", shown(&finding.answers[0]), shown(&finding.answers[1]));
}
