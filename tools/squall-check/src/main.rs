//! Checks a data directory, or a backup, that no server uses: pages, tables, free list, log and the small files. Changes nothing.
//!
//! Exits with 0 when everything is intact, 1 when something is damaged, 2 when it could not be checked.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use engine::{CheckNews, EngineConfig, check_files};
use sys::clock::{Clock as _, RealClock};
use sys::disk::ReadOnlyDisk;
use sys::overlay::OverlayDisk;

/// Checks a data directory or a backup that no server uses.
#[derive(Parser)]
#[command(name = "squall-check", version)]
struct Options {
    /// Data directory, or directory of a backup
    directory: PathBuf,
    /// Where to keep recovery's changes during the check
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    scratch: PathBuf,
    /// Memory for pages
    #[arg(long, value_name = "MEGABYTES", default_value_t = 64)]
    memory: usize,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

const DAMAGED: u8 = 1;
const FAILED: u8 = 2;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DAMAGED),
        Err(message) => {
            eprintln!("squall-check: {message}");
            ExitCode::from(FAILED)
        }
    }
}

/// The files of the engine are in a separate directory, or, in a backup, at the top level.
fn storage_of(directory: &Path) -> PathBuf {
    let inner = directory.join("storage");
    if inner.is_dir() { inner } else { directory.to_owned() }
}

/// True when everything is intact.
fn run(options: &Options) -> Result<bool, String> {
    let path = storage_of(&options.directory);
    let disk = ReadOnlyDisk::open_unused(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            format!("{}: a server uses it; stop the server, or use CHECK TABLE", path.display())
        }
        _ => format!("{}: {error}", path.display()),
    })?;
    if !path.join("checkpoint").is_file() {
        return Err(format!("{}: neither a data directory nor a backup", path.display()));
    }
    let overlay = OverlayDisk::new(Arc::new(disk), &options.scratch);
    let config =
        EngineConfig { pool_bytes: options.memory.max(5) << 20, ..EngineConfig::default() };
    let mut progress = Progress::new(options.quiet);
    let checked = check_files(Arc::new(overlay), &config, &mut |news| progress.tell(&news));
    progress.end();
    let checked = checked.map_err(|error| format!("{}: {error:?}", path.display()))?;
    let verdict = match checked.findings {
        0 => "no damage".to_owned(),
        1 => "1 thing is wrong".to_owned(),
        count => format!("{count} things are wrong"),
    };
    println!("{} pages, {} tables: {verdict}", checked.pages, checked.tables);
    Ok(checked.findings == 0)
}

/// Findings to standard output, progress to standard error.
struct Progress {
    clock: RealClock,
    told: Duration,
    is_quiet: bool,
    /// Progress overwrites its own line.
    is_terminal: bool,
    has_line: bool,
}

impl Progress {
    fn new(is_quiet: bool) -> Progress {
        let is_terminal = std::io::stderr().is_terminal();
        Progress {
            clock: RealClock::new(),
            told: Duration::ZERO,
            is_quiet,
            is_terminal,
            has_line: false,
        }
    }

    fn tell(&mut self, news: &CheckNews<'_>) {
        match news {
            CheckNews::Progress { step, done, total } => self.show(step, *done, *total),
            CheckNews::Finding { place, text } => {
                self.end();
                println!("{place}: {text}");
            }
            CheckNews::Note(text) => {
                self.end();
                println!("note: {text}");
            }
        }
    }

    fn show(&mut self, step: &str, done: u64, total: u64) {
        let every = if self.is_terminal { 200 } else { 5000 };
        let now = self.clock.monotonic();
        if self.is_quiet || now < self.told + Duration::from_millis(every) {
            return;
        }
        self.told = now;
        let percent = (u128::from(done) * 100).checked_div(u128::from(total)).unwrap_or(0).min(100);
        let (start, end) = if self.is_terminal { ("\r", "      ") } else { ("", "\n") };
        eprint!("{start}{step}: {percent} % ({done} of {total}){end}");
        let _ = std::io::stderr().flush();
        self.has_line = self.is_terminal;
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.has_line) {
            eprintln!();
        }
    }
}
