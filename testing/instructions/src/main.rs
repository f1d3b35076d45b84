//! Counts the instructions that squalld needs for everyday statements, and compares them with the figures that `tests/instructions.toml` keeps:
//! `instructions --squalld target/fast/squalld`. A statement that needs clearly more than its figure is an error.
//!
//! Callgrind counts, so the figures do not depend on other load of the machine. On a processor with other features than the one that they were
//! counted on, libraries run other code: then the counts are only shown.

mod callgrind;
mod figures;
mod statements;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use callgrind::Watched;
use figures::{Figures, Verdict};
use statements::{STATEMENTS, Session, Statement};

/// The statements that unused plugins must not slow down, and by how many percent they may differ.
const BESIDE_PLUGINS: [&str; 2] = ["point_select", "point_select_text"];
/// The statement whose check of privileges is counted.
const ACCESS_CHECKED: &str = "point_select";
const PLUGINS_PERCENT: f64 = 1.0;
/// Instructions that the check of privileges may need in a point SELECT.
const ACCESS_CHECK_MAX: u64 = 60;

/// Rounds of a statement; the lowest count is its figure: higher counts come from unrelated work.
const ROUNDS: usize = 3;
/// Rounds of a statement whose count is above its limit so far: on a busy machine, pages may be written in each of the first rounds.
const ROUNDS_MAX: usize = 9;

#[derive(Parser)]
#[command(about = "Counts instructions of everyday statements")]
struct Options {
    /// The server program, optimised.
    #[arg(long, env = "SQUALLD", default_value = "target/fast/squalld")]
    squalld: PathBuf,
    /// The kept figures.
    #[arg(long, default_value = "tests/instructions.toml")]
    figures: PathBuf,
    /// Store the counts.
    #[arg(long, env = "UPDATE", value_parser = clap::builder::FalseyValueParser::new())]
    update: bool,
    /// Start the server with this option too, as `--option=--log-bin`; may be given several times.
    #[arg(long)]
    option: Vec<String>,
    /// Show the count of each thread.
    #[arg(long)]
    threads: bool,
    /// Run this statement before anything is counted; may be given several times.
    #[arg(long)]
    first: Vec<String>,
    /// Copy callgrind's files of the last round of each statement here.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Do not count again with plugins loaded.
    #[arg(long)]
    without_plugins: bool,
    /// Only statements whose name begins with one of these.
    only: Vec<String>,
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("instructions: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all statements are within their limits.
fn run(options: &Options) -> Result<bool, String> {
    let mut figures = Figures::read(&options.figures)?;
    let processor = figures::processor();
    let is_compared = figures.hold_for(&processor);
    if !is_compared && !options.update {
        println!("NOT COMPARED: the figures are of another processor than this one ({processor})");
    }
    let watched = Watched::start(&options.squalld, &options.option)?;
    let mut session = Session::open(watched.server())?;
    session.load()?;
    options.first.iter().try_for_each(|sql| session.query(sql))?;
    let (mut held, mut lower) = (true, false);
    let mut plain = Vec::new();
    for statement in STATEMENTS {
        let is_wanted = |only: &String| statement.name.starts_with(only.as_str());
        if !options.only.is_empty() && !options.only.iter().any(is_wanted) {
            continue;
        }
        let is_met = |counted| !is_compared || figures.judge(statement.name, counted).is_met();
        let (counted, access_check) =
            count(&watched, &mut session, statement, options.threads, is_met)?;
        let verdict = figures.judge(statement.name, counted);
        println!("{:<24} {counted:>12}  {verdict}", statement.name);
        if statement.name == ACCESS_CHECKED {
            let is_met = (1..=ACCESS_CHECK_MAX).contains(&access_check);
            let verdict = if is_met { "" } else { "  NOT FOUND, OR TOO MANY" };
            println!("  its check of privileges {access_check:>10}{verdict}");
            held &= is_met;
        }
        held &= options.update || !is_compared || verdict.is_met();
        lower |= is_compared && matches!(verdict, Verdict::Fewer { .. });
        if options.update {
            figures.keep(statement.name, counted);
        }
        if let Some(folder) = &options.keep {
            watched.keep(&folder.join(statement.name))?;
        }
        if BESIDE_PLUGINS.contains(&statement.name) {
            plain.push((statement, counted));
        }
    }
    if !options.without_plugins {
        held &= count_beside_plugins(&watched, &mut session, &plain, options.threads)?;
    }
    if options.update {
        figures.keep_processor(&processor);
        figures.write(&options.figures)?;
    } else if lower {
        println!("Lower the figures that are too high now: UPDATE=1 cargo xtask instructions");
    }
    Ok(held)
}

/// Counts statements again after the plugins have been loaded; whether they need about the same, as none of the plugins is used.
fn count_beside_plugins(
    watched: &Watched,
    session: &mut Session,
    plain: &[(&'static Statement, u64)],
    show_threads: bool,
) -> Result<bool, String> {
    if plain.is_empty() {
        return Ok(true);
    }
    let loaded = session.load_plugins()?;
    println!("with {} loaded:", loaded.join(", "));
    let mut held = true;
    for (statement, before) in plain {
        let percent = |counted: u64| (counted as f64 / *before as f64 - 1.0) * 100.0;
        let is_met = |counted| percent(counted) <= PLUGINS_PERCENT;
        let (counted, _) = count(watched, session, statement, show_threads, is_met)?;
        let (percent, is_met) = (percent(counted), is_met(counted));
        let verdict = if is_met { "" } else { "  TOO MUCH" };
        println!("{:<24} {counted:>12}  {percent:+.2} %{verdict}", statement.name);
        held &= is_met;
    }
    Ok(held)
}

/// Instructions of one execution, and those of its check of privileges. `is_met` says whether a count is within its limit.
fn count(
    watched: &Watched,
    session: &mut Session,
    statement: &'static Statement,
    show_threads: bool,
    is_met: impl Fn(u64) -> bool,
) -> Result<(u64, u64), String> {
    let mut ready = session.prepare(statement)?;
    let (mut least, mut access_check) = (u64::MAX, u64::MAX);
    let times = u64::from(statement.times);
    for round in 0..ROUNDS_MAX {
        if round >= ROUNDS && is_met(least) {
            break;
        }
        session.warm_up(&mut ready)?;
        watched.reset()?;
        session.run(&mut ready)?;
        let counts = watched.counts()?;
        if show_threads {
            println!("    {counts}");
        }
        least = least.min(counts.of_statements() / times);
        access_check = access_check.min(counts.of_access_check() / times);
    }
    Ok((least, access_check))
}
