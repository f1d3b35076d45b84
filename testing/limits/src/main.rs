//! Requirements with a figure, against an optimised squalld: `limits --squalld target/fast/squalld`. Prints every figure; ends with an
//! error when one is missed. `--full` opens as many connections and statements as the requirements name.

mod enums;
mod javascript;
mod packets;
mod plugins;
mod prepared;
mod process;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Options.
#[derive(Parser)]
#[command(about = "Checks requirements that have a figure")]
pub struct Options {
    /// The server program, optimised.
    #[arg(long, env = "SQUALLD", default_value = "target/fast/squalld")]
    squalld: PathBuf,
    /// The whole sizes: a thousand connections, a thousand statements each.
    #[arg(long)]
    full: bool,
    /// Only checks whose name begins with one of these.
    only: Vec<String>,
}

/// A check prints its figures and returns the missed limit as the error.
type Check = fn(&Options) -> Result<(), String>;

const CHECKS: &[(&str, Check)] = &[
    ("enums", enums::check),
    ("javascript", javascript::check),
    ("packets", packets::check),
    ("plugins", plugins::check),
    ("prepared-equal", prepared::equal_texts),
    ("prepared-distinct", prepared::distinct_texts),
    ("prepared-faster", prepared::faster_than_text),
];

fn main() -> ExitCode {
    let options = Options::parse();
    let mut failed = 0;
    for (name, check) in CHECKS {
        if !options.only.is_empty()
            && !options.only.iter().any(|only| name.starts_with(only.as_str()))
        {
            continue;
        }
        match check(&options) {
            Ok(()) => println!("{name}: met"),
            Err(missed) => {
                failed += 1;
                println!("{name}: MISSED: {missed}");
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A connection as root to a server of ours.
fn connect(server: &sqltest::Server) -> Result<client::Connection, String> {
    let options = client::Options {
        target: client::Target::Tcp("127.0.0.1".into(), server.port()),
        user: "root".into(),
        password: String::new(),
        database: None,
        tls: client::Encryption::Off,
        framings: Vec::new(),
        expired_passwords: false,
    };
    client::Connection::open(&options).map_err(|failure| failure.to_string())
}

/// Runs a statement that must succeed.
fn run(connection: &mut client::Connection, sql: &str) -> Result<(), String> {
    let shown: String = sql.chars().take(60).collect();
    connection
        .query(sql.as_bytes(), &mut ())
        .map(drop)
        .map_err(|failure| format!("{shown}: {failure}"))
}

/// The number of the error that a statement ends with; `None` for success.
fn error_of(connection: &mut client::Connection, sql: &str) -> Result<Option<u16>, String> {
    match connection.query(sql.as_bytes(), &mut ()) {
        Ok(_) => Ok(None),
        Err(client::Failure::Server(error)) => Ok(Some(error.code().0)),
        Err(failure) => Err(failure.to_string()),
    }
}

/// The message for a missed limit.
fn must(holds: bool, what: String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what) }
}
