//! mysqlslap's method: a schema, a list of statements, several clients that run through it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use client::{Connection, Failure};

use crate::generate;
use crate::options::Options;
use crate::random::Random;
use crate::report::Report;

/// State shared by the clients.
struct Load<'a> {
    options: &'a Options,
    statements: &'a [String],
    /// Statements that each client runs; 0 with a time limit.
    per_client: u64,
    start: Barrier,
    stop: AtomicBool,
    done: AtomicU64,
    errors: AtomicU64,
    failure: Mutex<Option<String>>,
}

/// Runs all tests.
///
/// # Errors
/// The server cannot be reached, or a statement fails without `--ignore-sql-errors`.
pub fn run(options: &Options) -> Result<(), String> {
    let mut random = Random::new(options.set_random_seed);
    let mut statements = Vec::new();
    for given in &options.query {
        statements.extend(generate::split(&text_or_file(given)?, &options.delimiter));
    }
    if options.auto_generate_sql {
        statements = generate::statements(options, &mut random);
    }
    if statements.is_empty() {
        return Err("nothing to run: give --query, --auto-generate-sql or --workload".into());
    }
    let engines: Vec<Option<&str>> = match options.engine.is_empty() {
        true => vec![None],
        false => options.engine.iter().map(|engine| Some(engine.as_str())).collect(),
    };
    loop {
        for engine in &engines {
            for clients in &options.concurrency {
                test(options, *engine, *clients, &statements, &mut random)?;
            }
        }
        if !options.burnin {
            return Ok(());
        }
    }
}

/// A text as given, or the text of the file that it names.
fn text_or_file(given: &str) -> Result<String, String> {
    if !std::path::Path::new(given).is_file() {
        return Ok(given.to_owned());
    }
    std::fs::read_to_string(given).map_err(|error| format!("{given}: {error}"))
}

/// One test: an engine, a number of clients, all iterations.
fn test(
    options: &Options,
    engine: Option<&str>,
    clients: u64,
    statements: &[String],
    random: &mut Random,
) -> Result<(), String> {
    let per_client = per_client(options, clients, statements.len() as u64);
    let setup = setup(options, engine, random)?;
    if options.only_print {
        setup.iter().chain(statements).for_each(|sql| println!("{sql};"));
        return Ok(());
    }
    if options.verbose > 0 {
        println!("Running {} statements with {clients} clients", statements.len());
    }
    if options.verbose > 1 {
        setup.iter().chain(statements).for_each(|sql| println!("{sql};"));
    }
    let (mut seconds, mut total, mut errors) = (Vec::new(), 0, 0);
    for _ in 0..options.iterations {
        let mut admin = options.open(None).map_err(|e| e.to_string())?;
        setup.iter().try_for_each(|sql| execute(&mut admin, sql))?;
        system(options.pre_system.as_deref())?;
        let load = Load {
            options,
            statements,
            per_client,
            start: Barrier::new(clients as usize + 1),
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            failure: Mutex::new(None),
        };
        seconds.push(run_clients(&load, clients));
        if let Some(failure) = load.failure.into_inner().map_err(|_| "a client panicked")? {
            return Err(failure);
        }
        total += load.done.into_inner();
        errors += load.errors.into_inner();
        system(options.post_system.as_deref())?;
        if let Some(after) = &options.post_query {
            let after = generate::split(&text_or_file(after)?, &options.delimiter);
            after.iter().try_for_each(|sql| execute(&mut admin, sql))?;
        }
        if !options.no_drop {
            execute(&mut admin, &format!("DROP SCHEMA IF EXISTS `{}`", options.create_schema))?;
        }
    }
    let statements_per_client = total / clients.max(1) / options.iterations.max(1);
    let report = Report {
        options,
        engine,
        clients,
        statements_per_client,
        seconds,
        statements: total,
        errors,
    };
    report.print().map_err(|error| error.to_string())
}

/// How many statements each client runs.
fn per_client(options: &Options, clients: u64, statements: u64) -> u64 {
    if options.timer_length > 0 {
        0
    } else if options.auto_generate_sql_execute_number > 0 {
        options.auto_generate_sql_execute_number
    } else if options.number_of_queries > 0 {
        (options.number_of_queries / clients.max(1)).max(1)
    } else {
        statements
    }
}

/// Statements that create the schema, its tables and rows.
fn setup(
    options: &Options,
    engine: Option<&str>,
    random: &mut Random,
) -> Result<Vec<String>, String> {
    let schema = &options.create_schema;
    let mut setup = vec![
        format!("DROP SCHEMA IF EXISTS `{schema}`"),
        format!("CREATE SCHEMA `{schema}`"),
        format!("USE `{schema}`"),
    ];
    if let Some(create) = &options.create {
        setup.extend(generate::split(&text_or_file(create)?, &options.delimiter));
    }
    if options.auto_generate_sql {
        setup.push(generate::create_table(options, engine));
        let rows = options.auto_generate_sql_write_number;
        setup.extend((0..rows).map(|_| generate::insert(options, random)));
    }
    if let Some(before) = &options.pre_query {
        setup.extend(generate::split(&text_or_file(before)?, &options.delimiter));
    }
    Ok(setup)
}

fn execute(connection: &mut Connection, sql: &str) -> Result<(), String> {
    let mut outcome = connection.query(sql.as_bytes(), &mut ());
    while matches!(&outcome, Ok(done) if done.more) {
        outcome = connection.next_result(&mut ());
    }
    outcome.map(|_| ()).map_err(|error| format!("{error} (in: {sql})"))
}

fn system(command: Option<&str>) -> Result<(), String> {
    let Some(command) = command else { return Ok(()) };
    let status = std::process::Command::new("sh").args(["-c", command]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command}: {status}")),
        Err(error) => Err(format!("{command}: {error}")),
    }
}

/// Runs the clients and returns the seconds from their common start to the end of the last.
fn run_clients(load: &Load<'_>, clients: u64) -> f64 {
    std::thread::scope(|scope| {
        for number in 0..clients {
            scope.spawn(move || client(load, number));
        }
        load.start.wait();
        let started = Instant::now();
        if load.options.timer_length > 0 {
            std::thread::sleep(Duration::from_secs(load.options.timer_length));
            load.stop.store(true, Ordering::Relaxed);
        }
        started
    })
    .elapsed()
    .as_secs_f64()
}

fn client(load: &Load<'_>, number: u64) {
    let opened = load.options.open(Some(&load.options.create_schema));
    load.start.wait();
    let result = opened.and_then(|connection| run_statements(load, connection, number));
    if let Err(error) = result {
        load.stop.store(true, Ordering::Relaxed);
        if let Ok(mut failure) = load.failure.lock() {
            failure.get_or_insert_with(|| error.to_string());
        }
    }
}

fn run_statements(load: &Load<'_>, mut connection: Connection, number: u64) -> client::Result<()> {
    let options = load.options;
    if options.delayed_start > 0 {
        let mut random = Random::new(options.set_random_seed ^ number);
        std::thread::sleep(Duration::from_millis(random.below(options.delayed_start)));
    }
    if options.commit > 0 {
        connection.query(b"SET AUTOCOMMIT=0", &mut ())?;
    }
    let mut count = 0;
    while load.per_client == 0 || count < load.per_client {
        if load.stop.load(Ordering::Relaxed) {
            break;
        }
        let sql = &load.statements[(count % load.statements.len() as u64) as usize];
        match run_one(&mut connection, sql) {
            Err(Failure::Server(_)) if options.ignore_sql_errors => {
                load.errors.fetch_add(1, Ordering::Relaxed);
            }
            result => result?,
        }
        count += 1;
        if options.commit > 0 && count % options.commit == 0 {
            connection.query(b"COMMIT", &mut ())?;
        }
        if options.detach > 0 && count % options.detach == 0 {
            connection = options.open(Some(&options.create_schema))?;
        }
    }
    if options.commit > 0 {
        connection.query(b"COMMIT", &mut ())?;
    }
    load.done.fetch_add(count, Ordering::Relaxed);
    Ok(())
}

fn run_one(connection: &mut Connection, sql: &str) -> client::Result<()> {
    let mut outcome = connection.query(sql.as_bytes(), &mut ())?;
    while outcome.more {
        outcome = connection.next_result(&mut ())?;
    }
    Ok(())
}
