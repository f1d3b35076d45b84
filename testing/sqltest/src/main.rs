//! Runs the SQL scripts under `tests/sql` against a server and compares its answers with those in the scripts.
//!
//! The scripts are data (see `tests/sql/README.md`). `--server` takes any server that speaks the protocol, so the same scripts
//! run differentially against a reference; `--update` rewrites their expectations with the server's answers.

mod answer;
mod runner;
mod script;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

/// Where scripts are.
const ROOTS: [&str; 2] = ["tests/sql", "tests/plans"];

#[derive(Parser)]
#[command(about = "Runs SQL scripts against a server")]
struct Options {
    /// Scripts or folders; all of tests/sql and tests/plans by default.
    paths: Vec<PathBuf>,
    /// `host:port` of a running server (root without a password); a fresh squalld is started otherwise.
    #[arg(long)]
    server: Option<String>,
    /// Rewrite the expectations.
    #[arg(long, env = "UPDATE", value_parser = clap::builder::FalseyValueParser::new())]
    update: bool,
    /// The server program.
    #[arg(long, env = "SQUALLD", default_value = "target/debug/squalld")]
    squalld: PathBuf,
    /// Further options for squalld.
    #[arg(long, allow_hyphen_values = true)]
    server_option: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("sqltest: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<usize, String> {
    let roots = match options.paths.is_empty() {
        true => ROOTS.map(PathBuf::from).to_vec(),
        false => options.paths.clone(),
    };
    let mut files = Vec::new();
    for root in &roots {
        collect(root, &mut files).map_err(|error| format!("{}: {error}", root.display()))?;
    }
    files.sort();
    let started = match &options.server {
        Some(_) => None,
        None => Some(sqltest::Server::start(&options.squalld, &options.server_option)?),
    };
    let address = match (&options.server, &started) {
        (Some(address), _) => address.clone(),
        (None, Some(server)) => server.address(),
        (None, None) => return Err("no server".into()),
    };
    let (mut passed, mut failed) = (0, 0);
    for file in &files {
        match runner::run_file(file, &address, options.update) {
            Ok(()) => passed += 1,
            Err(message) => {
                failed += 1;
                println!("FAILED {}\n{message}", file.display());
            }
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "test") {
            collect(&path, files)?;
        }
    }
    Ok(())
}
