//! Makes histories on a real server and checks them: several connections append to lists and read them, in rounds on fresh lists, each
//! round checked when it ends.

mod session;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use client::{Connection, Options as Login, Target};
use histories::{End, Level, check};

#[derive(Parser)]
#[command(about = "Looks for isolation anomalies on a running server")]
pub(crate) struct Options {
    /// Port of a server on this host (root without a password); a fresh squalld is started otherwise.
    #[arg(long)]
    port: Option<u16>,
    /// The server program.
    #[arg(long, env = "SQUALLD", default_value = "target/debug/squalld")]
    squalld: PathBuf,
    /// The isolation level; all by default.
    #[arg(long)]
    level: Vec<Name>,
    /// Connections.
    #[arg(long, default_value_t = 8)]
    connections: u32,
    /// Seconds for each level.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Seconds of a round.
    #[arg(long, default_value_t = 5)]
    round: u64,
    /// Seed of the operations (their order in time is the server's).
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Checks against another level than the one run: shows that the checker finds anomalies of a weaker level.
    #[arg(long)]
    check_as: Option<Name>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    ReadCommitted,
    RepeatableRead,
    Serializable,
    /// Connections at all of these; only the promises of the weakest are checked.
    Mixed,
}

impl Name {
    fn level(self) -> Level {
        match self {
            Name::ReadCommitted | Name::Mixed => Level::ReadCommitted,
            Name::RepeatableRead => Level::RepeatableRead,
            Name::Serializable => Level::Serializable,
        }
    }

    fn sql(self) -> &'static [&'static str] {
        match self {
            Name::ReadCommitted => &["READ COMMITTED"],
            Name::RepeatableRead => &["REPEATABLE READ"],
            Name::Serializable => &["SERIALIZABLE"],
            Name::Mixed => &["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"],
        }
    }
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("histories: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Number of anomalies.
fn run(options: &Options) -> Result<usize, String> {
    let started = match options.port {
        Some(_) => None,
        None => Some(sqltest::Server::start(&options.squalld, &[])?),
    };
    let port = options.port.or(started.as_ref().map(sqltest::Server::port));
    let login = Login {
        target: Target::Tcp("127.0.0.1".into(), port.unwrap_or_default()),
        user: "root".into(),
        password: String::new(),
        database: None,
        tls: client::Encryption::Off,
        framings: Vec::new(),
        expired_passwords: false,
    };
    wait_until_ready(&login)?;
    let all = Name::value_variants();
    let levels = if options.level.is_empty() { all } else { &options.level[..] };
    let mut anomalies = 0;
    for level in levels {
        anomalies += run_level(options, &login, *level)?;
    }
    println!("{} passed, {anomalies} failed", levels.len());
    Ok(anomalies)
}

/// A server that has just started answers that it is not ready yet.
fn wait_until_ready(login: &Login) -> Result<(), String> {
    const SECONDS: u64 = 60;
    let begun = Instant::now();
    loop {
        let opened = Connection::open(login);
        match opened.and_then(|mut connection| connection.query(b"SELECT 1", &mut ())) {
            Ok(_) => return Ok(()),
            Err(failure) if begun.elapsed().as_secs() > SECONDS => return Err(failure.to_string()),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[derive(Default)]
struct Totals {
    transactions: usize,
    committed: usize,
    aborted: usize,
    permitted: usize,
    anomalies: usize,
    busy: Duration,
    checking: Duration,
}

fn run_level(options: &Options, login: &Login, level: Name) -> Result<usize, String> {
    let mut totals = Totals::default();
    let mut round = 0;
    while totals.busy < Duration::from_secs(options.seconds) {
        let left = Duration::from_secs(options.seconds) - totals.busy;
        let time = left.min(Duration::from_secs(options.round));
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(round);
        let begun = Instant::now();
        let history = work::round(login, level.sql(), options.connections, time, seed)
            .map_err(|error| format!("{level:?}, round {round}: {error}"))?;
        totals.busy += begun.elapsed();
        let begun = Instant::now();
        let report = check(&history, options.check_as.unwrap_or(level).level());
        totals.checking += begun.elapsed();
        let count = |end| history.iter().filter(|one| one.end == end).count();
        totals.transactions += history.len();
        totals.committed += count(End::Committed);
        totals.aborted += count(End::Aborted);
        totals.permitted += report.permitted;
        totals.anomalies += report.forbidden.len();
        for finding in report.forbidden.iter().take(5) {
            println!(
                "{level:?}, round {round}, seed {seed}: {:?}\n  {}",
                finding.anomaly, finding.text
            );
        }
        round += 1;
    }
    println!(
        "{}: {} connections, {:.0} s, {} rounds: {} transactions ({} committed, {} rolled back), {:.0} a second; {} cycles \
         that the level allows, {} anomalies; checked in {:.1} s",
        level.sql().join(", "),
        options.connections,
        totals.busy.as_secs_f64(),
        round,
        totals.transactions,
        totals.committed,
        totals.aborted,
        totals.transactions as f64 / totals.busy.as_secs_f64(),
        totals.permitted,
        totals.anomalies,
        totals.checking.as_secs_f64(),
    );
    Ok(totals.anomalies)
}
