//! `cargo xtask ci`: the checks that a change must pass before it lands, those that fail fastest first. Most run on the debug build, whose
//! assertions are on; requirements that have a figure, and the scripts once more, on an optimised server.

use std::time::Instant;

use crate::{book, console, instructions, lines, models, platforms, reference, run, tidy};

type Step = (&'static str, fn() -> Result<(), String>);

/// All with the same features, so that one build serves each.
const WORKSPACE: [&str; 3] = ["--workspace", "--locked", "--quiet"];

const STEPS: &[Step] = &[
    ("format", || run::command("cargo", &["fmt", "--all", "--check"])),
    ("tidy", || tidy::tidy(&["--strict".to_owned()])),
    // Programs and tests; what later steps run of the debug build. Not `--bins` alone: features that tests ask for would make it another build.
    ("build and lints", || linted("build", &["--all-targets"])),
    ("licences and sources", licences),
    ("unit tests", || linted("test", &["--exclude", "simulation", "--no-fail-fast"])),
    // The whole server on a simulated machine; `generated`: a few seeds, and some with a planted defect.
    ("simulation", || linted("test", &["--test", "simulated_server", "--test", "generated"])),
    ("crash points", crash_points),
    ("models", models::models),
    // The formats on a big-endian processor and on ARM; `cargo xtask platforms` does the rest.
    ("platforms", platforms::formats),
    ("SQL tests", || run::command("target/debug/sqltest", &["--squalld", "target/debug/squalld"])),
    ("mysqltest", || {
        run::command("target/debug/mysqltest", &["--squalld", "target/debug/squalld"])
    }),
    // Names, types and ranges of variables and information tables, against those of MySQL.
    ("information", || {
        let script = ["tests/information/compare.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &script)
    }),
    ("book", book::book),
    ("documentation", || {
        reference::reference(&["--check".to_owned()])?;
        run::command("python3", &["tests/docs/quick_start.py"])?;
        run::command("python3", &["tests/docs/pages.py"])
    }),
    ("console", console::check),
    ("console in a browser", console::browser),
    // A short soak; `tests/http/run --soak 300` is the long one.
    ("HTTP", || run::command("bash", &["tests/http/run", "--soak", "12"])),
    ("BarCamp", || {
        let program =
            |name: &str| run::root().join("target/debug").join(name).display().to_string();
        let (squalld, squall) = (program("squalld"), program("squall"));
        let programs = [("SQUALLD", squalld.as_str()), ("SQUALL", squall.as_str())];
        run::command_with(&programs, "bash", &["examples/barcamp/run.sh"])
    }),
    ("optimised server", instructions::build_server),
    ("instructions", || instructions::compare(&[])),
    ("limits", || run::command("target/debug/limits", &["--squalld", "target/fast/squalld"])),
    ("SQL tests, optimised", || {
        run::command("target/debug/sqltest", &["--squalld", "target/fast/squalld"])
    }),
    // The optimised server, other programs as they are.
    ("packages", || {
        let bins = ["--bins", "target/fast", "--bins", "target/debug"];
        run::command("python3", &[&["packaging/test.py"], &bins[..]].concat())
    }),
    ("sysbench", || run::command("bash", &["tests/sysbench/run", "target/fast/squalld"])),
    ("histories", || {
        let squalld = ["--squalld", "target/debug/squalld"];
        run::command("target/debug/histories", &[&squalld[..], &["--seconds", "5"]].concat())
    }),
    ("pathologies", || {
        let script = ["tests/observability/pathologies.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &script)
    }),
    // Without MySQL beside it: other plans, other tables, other ways to ask must give the same answers.
    ("queries", || {
        let squalld = ["--squalld", "target/fast/squalld", "--rounds", "40", "--queries", "100"];
        run::command("target/debug/queries", &squalld)
    }),
    ("damage", || {
        let scripts = ["damage.py", "device.py", "surroundings.py", "addresses.py", "init_file.py"];
        for script in scripts.map(|name| format!("tests/crash/{name}")) {
            run::command("python3", &[&script, "--squalld", "target/debug/squalld"])?;
        }
        let full_disk = ["tests/crash/full_disk.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &[&full_disk[..], &["--moments", "20"]].concat())?;
        let transactions = ["tests/crash/transactions.py", "--squalld", "target/debug/squalld"];
        run::command(
            "python3",
            &[&transactions[..], &["--rounds", "15", "--kills", "5"]].concat(),
        )?;
        let sequences = ["tests/crash/sequences.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &sequences)?;
        let transport = ["tests/crash/transport.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &transport)?;
        let settings = ["tests/crash/settings.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &[&settings[..], &["--rounds", "5"]].concat())?;
        let firewall = ["tests/crash/firewall.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &[&firewall[..], &["--rounds", "5"]].concat())
    }),
    // Those that need MySQL or MariaDB say so when there is none.
    ("replicas", || {
        in_order(&[
            "crash/replica.py",
            "replication/follow.py",
            "replication/both_ways.py",
            "replication/mariadb.py",
            "replication/hostile.py",
            "replication/keyless.py",
            "replication/manager.py",
            "replication/filters.py",
            "replication/parallel.py",
            "replication/positions.py",
            "replication/encrypted.py",
            "replication/semi_sync.py",
            "replication/xa.py",
        ])
    }),
    ("binary log", || {
        in_order(&[
            "replication/binary_log.py",
            "replication/log_settings.py",
            "replication/binlog_tool.py",
            "replication/point_in_time.py",
            "replication/clone.py",
            "replication/clone_encrypted.py",
            "replication/switch_over.py",
            "replication/sequences.py",
            "replication/partial_json.py",
            "replication/outages.py",
        ])
    }),
    ("changes", || {
        in_order(&[
            "replication/changes.py",
            "replication/changes_select.py",
            "replication/webhook.py",
            "replication/kafka.py",
        ])
    }),
    ("backup", || {
        let scripts = ["backup.py", "reflink.py", "encryption.py", "vault.py", "reload.py"];
        let scripts = scripts.map(|name| format!("tests/crash/{name}"));
        scripts.iter().try_for_each(|script| {
            run::command("python3", &[script, "--squalld", "target/debug/squalld"])
        })
    }),
    ("import", || {
        // It says so when there is no MySQL or MariaDB to import from.
        run::command("python3", &["tests/import/run.py", "--squalld", "target/debug/squalld"])
    }),
    ("NDB", || {
        // It says so when there is no MySQL Cluster.
        let script = ["tests/ndb/run.py", "--suite", "--squalld", "target/debug/squalld"];
        run::command("python3", &script)
    }),
    ("old files", || {
        let scripts = ["open.py", "upgrade.py"].map(|name| format!("tests/format/{name}"));
        scripts.iter().try_for_each(|script| {
            run::command("python3", &[script, "--squalld", "target/debug/squalld"])
        })
    }),
    ("clients", || {
        run::command("bash", &["tests/clients/run"])?;
        run::command("bash", &["tests/replication/consumers/run"])
    }),
    ("size", lines::size),
];

/// Steps that wait for servers, disks and clients more than they compute: a whole run does them after the others, the lists side by
/// side, and shows the output of each when it ends. Those of the last list compute all the time: they get the processors that the others
/// leave, by the number that `nice` takes.
const LANES: [(u8, &[&str]); 4] = [
    (0, &["damage", "backup", "old files", "HTTP", "BarCamp", "console in a browser"]),
    (0, &["replicas", "import", "queries", "histories", "changes"]),
    (0, &["clients", "binary log", "SQL tests, optimised"]),
    (10, &["instructions", "packages", "crash points", "models", "platforms", "size"]),
];

/// Runs scripts of `tests` on the debug build.
fn in_order(scripts: &[&str]) -> Result<(), String> {
    scripts.iter().try_for_each(|script| {
        let script = format!("tests/{script}");
        run::command("python3", &[script.as_str(), "--squalld", "target/debug/squalld"])
    })
}

/// Seconds of generated runs on a simulated machine, when nobody says another number.
const SIMULATED_SECONDS: &str = "3600";

/// What finds more the longer it runs, on the debug build: generated runs on a simulated machine, random queries, loads to and from replicas, all readers of the binary log, and scripts of `damage`. `--simulation SECONDS`
/// makes generated runs alone.
///
/// # Errors
/// A script failed, a run broke a rule, or the arguments make no sense.
pub fn soak(args: &[String]) -> Result<(), String> {
    match args {
        [] => {}
        [option, seconds] if option == "--simulation" => return simulate(seconds),
        _ => return Err("soak takes nothing, or --simulation SECONDS".to_owned()),
    }
    simulate(SIMULATED_SECONDS)?;
    run::command("cargo", &["build", "--package", "server", "--bin", "squalld", "--locked"])?;
    let full_disk = ["tests/crash/full_disk.py", "--squalld", "target/debug/squalld"];
    let queries = ["run", "--quiet", "--package", "queries", "--", "--rounds", "2000"];
    run::command("cargo", &queries)?;
    run::command("bash", &["tests/replication/consumers/run", "--all"])?;
    let ways = ["tests/replication/both_ways.py", "--minutes", "10"];
    run::command("python3", &[&ways[..], &["--squalld", "target/debug/squalld"]].concat())?;
    // A new directory each time: one that was filled once has free pages.
    (1..=10).try_for_each(|seed: u32| {
        let (moments, seed) = (["--moments", "20", "--seed"], seed.to_string());
        run::command("python3", &[&full_disk[..], &moments, &[seed.as_str()]].concat())
    })
}

/// Other seeds each day, on all processors. The summary says which broke a rule.
fn simulate(seconds: &str) -> Result<(), String> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let days = now.map_or(0, |now| now.as_secs() / (24 * 3600));
    let seeds = format!("{}..", days * 10_000_000);
    let jobs = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let program = ["run", "--quiet", "--package", "simulation", "--bin", "simulate", "--"];
    let options = ["--seeds", &seeds, "--seconds", seconds, "--jobs", &jobs];
    run::command("cargo", &[&program[..], &options].concat())
}

/// Runs all steps, or those named in `only`. A step that fails does not keep the others from running: one run tells all that is
/// wrong.
///
/// # Errors
/// The steps that failed, or a name that no step has.
pub fn ci(only: &[String]) -> Result<(), String> {
    let started = Instant::now();
    let mut ended = Vec::new();
    if only.is_empty() {
        let is_in_a_lane = |name: &str| LANES.iter().any(|(_, lane)| lane.contains(&name));
        ended.extend(STEPS.iter().filter(|(name, _)| !is_in_a_lane(name)).map(run_step));
        ended.extend(run_lanes());
    } else {
        for name in only {
            let step = STEPS.iter().find(|(known, _)| known == name);
            ended.push(run_step(step.ok_or_else(|| format!("no step {name}"))?));
        }
    }
    let failures: Vec<String> = ended.iter().filter_map(|result| result.clone().err()).collect();
    println!("ci: all steps in {:.0} s", started.elapsed().as_secs_f64());
    println!("{} passed, {} failed", ended.len() - failures.len(), failures.len());
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// Runs one step here; its error says its name.
fn run_step((name, step): &Step) -> Result<(), String> {
    println!("==> {name}");
    let started = Instant::now();
    let result = step();
    println!("    {name}: {:.0} s", started.elapsed().as_secs_f64());
    result.map_err(|error| {
        println!("    {name}: failed: {error}");
        format!("{name}: {error}")
    })
}

/// Runs the steps of `LANES`, each in a process of its own, so that its output stays together.
fn run_lanes() -> Vec<Result<(), String>> {
    std::thread::scope(|scope| {
        let lanes = LANES.map(|(nice, lane)| {
            let run = move |name: &&str| run_apart(name, nice);
            scope.spawn(move || lane.iter().map(run).collect::<Vec<_>>())
        });
        let died = |_| vec![Err("a lane of steps panicked".to_owned())];
        lanes.into_iter().flat_map(|lane| lane.join().unwrap_or_else(died)).collect()
    })
}

/// How much of a failed step's output the end of the run repeats.
const LINES_OF_A_FAILURE: usize = 40;

/// Runs one step in a process of its own and prints its output when it ends.
fn run_apart(name: &str, nice: u8) -> Result<(), String> {
    let (is_success, text) =
        run::apart(&["ci", name], nice).map_err(|error| format!("{name}: {error}"))?;
    // What a process of one step says of all steps is not of interest.
    let is_summary = |line: &str| line.starts_with("ci: all steps") || line.ends_with(" failed");
    let lines: Vec<&str> = text.lines().filter(|line| !is_summary(line)).collect();
    println!("{}", lines.join("\n"));
    // Said again at the end of the run, because other lanes' outputs follow.
    let end = &lines[lines.len().saturating_sub(LINES_OF_A_FAILURE)..];
    if is_success { Ok(()) } else { Err(format!("{name}: it ended with\n{}\n", end.join("\n"))) }
}

/// The crash loop at its full length, optimised: only the engine is built for it.
fn crash_points() -> Result<(), String> {
    let test = ["test", "--profile", "fast", "--locked", "--quiet", "-p", "engine"];
    let args = [&test[..], &["--test", "crash_points"]].concat();
    run::command_with(&[("SQUALL_CRASHES", "10000")], "cargo", &args)
}

/// What deny.toml says of dependencies. Known weak points are a check of their own: their list is fetched from elsewhere than the registry.
fn licences() -> Result<(), String> {
    if run::output("cargo-deny", &["--version"]).is_err() {
        println!(
            "    SKIPPED: cargo-deny is not installed; licences and sources of dependencies were not checked (CONTRIBUTING.md)"
        );
        return Ok(());
    }
    // What other targets depend on is read too, and a build of this one has not fetched it.
    run::command("cargo", &["fetch", "--locked", "--quiet"])?;
    let checks = ["--offline", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"];
    run::command("cargo-deny", &[&["--log-level", "error"], &checks[..]].concat())
}

/// Builds or tests the workspace with clippy in the compiler's place, as `cargo clippy` does it: what is linted is compiled in the same go, and
/// once. Its own builds are kept beside those of plain cargo.
fn linted(command: &str, args: &[&str]) -> Result<(), String> {
    let sysroot = run::output("rustc", &["--print", "sysroot"])?;
    let driver = format!("{}/bin/clippy-driver", sysroot.trim());
    let lints = [("RUSTC_WORKSPACE_WRAPPER", driver.as_str()), ("CLIPPY_ARGS", LINTS)];
    run::command_with(&lints, "cargo", &[&[command], &WORKSPACE[..], args].concat())
}

/// `-D warnings`, as `cargo clippy` hands options on.
const LINTS: &str = "-D__CLIPPY_HACKERY__warnings";
