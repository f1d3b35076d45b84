//! Runs the SQL scripts under `tests/sql` against a server and compares its answers with those in the scripts.
//!
//! The scripts are data (see `tests/sql/README.md`). `--server` takes any server that speaks the protocol, so the same scripts
//! run differentially against a reference; `--update` rewrites their expectations with the server's answers.

mod answer;
mod runner;
mod script;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;

/// Where scripts are.
const ROOTS: [&str; 2] = ["tests/sql", "tests/plans"];

#[derive(Parser)]
#[command(about = "Runs SQL scripts against a server")]
struct Options {
    /// Scripts or folders; all of tests/sql and tests/plans by default.
    paths: Vec<PathBuf>,
    /// `host:port` of a running server (root without a password); fresh ones are started otherwise, see `--jobs`.
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
    /// Servers that are started, each with scripts of its own: most of a script's time is waiting.
    #[arg(long, default_value_t = 4, conflicts_with = "server")]
    jobs: usize,
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
    let next = AtomicUsize::new(0);
    let failed = match &options.server {
        Some(address) => run_scripts(&files, &next, address, options.update),
        None => {
            let jobs = options.jobs.clamp(1, files.len().max(1));
            std::thread::scope(|scope| {
                let start = |_| scope.spawn(|| run_on_own_server(options, &files, &next));
                let workers: Vec<_> = (0..jobs).map(start).collect();
                let died = |_| Err("a thread that runs scripts panicked".to_owned());
                let ended = workers.into_iter().map(|worker| worker.join().unwrap_or_else(died));
                ended.sum::<Result<usize, String>>()
            })?
        }
    };
    println!("{} passed, {failed} failed", files.len() - failed);
    Ok(failed)
}

/// As `run_scripts`, on a server that is started for it.
fn run_on_own_server(
    options: &Options,
    files: &[PathBuf],
    next: &AtomicUsize,
) -> Result<usize, String> {
    let server = sqltest::Server::start(&options.squalld, &options.server_option)?;
    Ok(run_scripts(files, next, &server.address(), options.update))
}

/// Runs scripts that nobody has taken yet, `next` being the first of them, until there are none; returns how many failed.
fn run_scripts(files: &[PathBuf], next: &AtomicUsize, address: &str, update: bool) -> usize {
    // Relaxed: the number alone is shared. It gives each script to one worker.
    let taken = std::iter::from_fn(|| files.get(next.fetch_add(1, Ordering::Relaxed)));
    taken
        .filter(|file| {
            let result = runner::run_file(file, address, update);
            if let Err(message) = &result {
                println!("FAILED {}\n{message}", file.display());
            }
            result.is_err()
        })
        .count()
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
