//! Generated runs of the whole server on a simulated machine: `simulate --seed 7` repeats one, `simulate --seeds 1..100` makes a hundred.

use std::collections::VecDeque;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser;
use simulation::plan::{FAULTS, Plan, WORK, named, planted};
use simulation::{Outcome, run, shrink};

/// Runs of the whole server on a simulated machine, with clients that check every answer.
#[derive(Parser)]
struct Arguments {
    /// Makes the run of this seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Makes the runs of these seeds, `1..100` without the last, each in a process of its own.
    #[arg(long)]
    seeds: Option<String>,
    /// Makes runs for so many seconds, from the first of `--seeds` on.
    #[arg(long)]
    seconds: Option<u64>,
    /// Runs at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Looks for a smaller run that breaks the same rule.
    #[arg(long)]
    shrink: bool,
    /// Ends at the first run that breaks a rule.
    #[arg(long)]
    first: bool,
    /// Clients at a time; otherwise as the seed says.
    #[arg(long)]
    clients: Option<u32>,
    /// Statements of a client in a life.
    #[arg(long)]
    statements: Option<u32>,
    /// Lives of the server.
    #[arg(long)]
    lives: Option<u32>,
    /// What may go wrong, separated by commas; `none` or `all`.
    #[arg(long)]
    faults: Option<String>,
    /// What clients do, separated by commas.
    #[arg(long)]
    work: Option<String>,
    /// A defect of the server, which must be found.
    #[arg(long)]
    planted: Option<String>,
}

impl Arguments {
    fn plan(&self, seed: u64) -> Result<Plan, String> {
        let mut plan = Plan::of_seed(seed);
        plan.clients = self.clients.unwrap_or(plan.clients).clamp(1, 15);
        plan.statements = self.statements.unwrap_or(plan.statements);
        plan.lives = self.lives.unwrap_or(plan.lives).max(1);
        if let Some(names) = &self.faults {
            plan.faults = named(&FAULTS, names)?;
        }
        if let Some(names) = &self.work {
            plan.work = named(&WORK, names)?;
        }
        if let Some(name) = &self.planted {
            plan.planted = Some(planted(name)?);
        }
        Ok(plan)
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.seed {
        Some(seed) => arguments.plan(seed).and_then(|plan| match arguments.shrink {
            true => shrink_run(&plan),
            false => Ok(one_run(&plan)),
        }),
        None => many_runs(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("simulate: {message}");
            ExitCode::from(2)
        }
    }
}

/// The figures of a run in one line, which `Figures::add` reads.
fn figures(plan: &Plan, outcome: &Outcome) -> String {
    let counts = outcome.counts;
    format!(
        "seed={} lives={} crashes={} statements={} commits={} unknown={} simulated_ms={} trace={:016x}",
        plan.seed,
        counts.lives,
        counts.crashes,
        counts.statements,
        counts.commits,
        counts.unknown,
        outcome.uptime.as_millis(),
        outcome.trace_hash
    )
}

/// Whether the run of a plan breaks no rule.
fn one_run(plan: &Plan) -> bool {
    let outcome = run(plan);
    println!("{}", figures(plan, &outcome));
    let Some(violation) = &outcome.violation else { return true };
    println!("seed {} breaks a rule: {}", plan.seed, violation.rule);
    println!("{}", violation.detail);
    println!("the last statements:\n{}", outcome.last_statements);
    println!("the end of the server's log:\n{}", outcome.log);
    println!("repeat it with\n  simulate {}", plan.options());
    false
}

fn start(plan: &Plan) -> Result<Child, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let options = plan.options();
    let mut command = Command::new(program);
    command.args(options.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| format!("cannot start a run: {error}"))
}

/// The output of a run, and whether it broke no rule.
fn finish(child: Child) -> Result<(bool, String), String> {
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        text += &String::from_utf8_lossy(&output.stderr);
    }
    Ok((output.status.success(), text))
}

fn rule(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.contains(" breaks a rule: "))?;
    line.split_once(" breaks a rule: ").map(|(_, rule)| rule.to_owned())
}

fn shrink_run(plan: &Plan) -> Result<bool, String> {
    let (is_right, text) = finish(start(plan)?)?;
    if is_right {
        println!("the run breaks no rule");
        return Ok(true);
    }
    let wanted = rule(&text);
    let mut last = text;
    let smallest = shrink(plan, |smaller| match start(smaller).and_then(finish) {
        Ok((false, text)) if rule(&text) == wanted => {
            println!("still: {}", smaller.options());
            last = text;
            true
        }
        Ok(_) | Err(_) => false,
    });
    print!("{last}");
    println!("the smallest run that breaks this rule is\n  simulate {}", smallest.options());
    Ok(false)
}

/// Sums of many runs.
#[derive(Default)]
struct Figures {
    runs: u64,
    lives: u64,
    crashes: u64,
    statements: u64,
    commits: u64,
    unknown: u64,
    simulated_ms: u64,
}

impl Figures {
    fn add(&mut self, text: &str) {
        let Some(line) = text.lines().find(|line| line.starts_with("seed=")) else { return };
        self.runs += 1;
        for (name, value) in line.split(' ').filter_map(|part| part.split_once('=')) {
            let value = value.parse().unwrap_or(0);
            match name {
                "lives" => self.lives += value,
                "crashes" => self.crashes += value,
                "statements" => self.statements += value,
                "commits" => self.commits += value,
                "unknown" => self.unknown += value,
                "simulated_ms" => self.simulated_ms += value,
                _ => {}
            }
        }
    }

    fn print(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        println!(
            "{} seeds in {seconds:.0} s ({:.2} a second): {} lives, {} crashes, {} statements, {} commits, {} of unknown outcome, {:.1} simulated minutes",
            self.runs,
            self.runs as f64 / seconds,
            self.lives,
            self.crashes,
            self.statements,
            self.commits,
            self.unknown,
            self.simulated_ms as f64 / 60_000.0
        );
    }
}

/// Makes runs in processes of their own: what a crash leaves behind goes with its process.
fn many_runs(arguments: &Arguments) -> Result<bool, String> {
    let (first, end) = match (&arguments.seeds, arguments.seconds) {
        (Some(seeds), _) => {
            let (first, end) = seeds.split_once("..").unwrap_or((seeds, ""));
            let number =
                |text: &str| text.parse::<u64>().map_err(|_| format!("{seeds} are no seeds"));
            (number(first)?, if end.is_empty() { u64::MAX } else { number(end)? })
        }
        (None, Some(_)) => (1, u64::MAX),
        (None, None) => return Err("which seed? --seed, --seeds or --seconds".to_owned()),
    };
    let (began, mut figures, mut failed) = (Instant::now(), Figures::default(), Vec::new());
    let limit = arguments.seconds.map_or(Duration::MAX, Duration::from_secs);
    let (mut running, mut next) = (VecDeque::new(), first);
    loop {
        let goes_on =
            next < end && began.elapsed() < limit && (!arguments.first || failed.is_empty());
        if goes_on && running.len() < arguments.jobs.max(1) {
            running.push_back((next, start(&arguments.plan(next)?)?));
            next += 1;
            continue;
        }
        let Some((seed, child)) = running.pop_front() else { break };
        let (is_right, text) = finish(child)?;
        figures.add(&text);
        if !is_right {
            println!("{text}");
            failed.push((seed, rule(&text).unwrap_or_else(|| "the run ended badly".to_owned())));
        }
    }
    figures.print(began.elapsed());
    for (seed, rule) in &failed {
        println!("seed {seed}: {rule}");
    }
    Ok(failed.is_empty())
}
