//! `cargo xtask ci`: the checks that a change must pass before it lands, those that fail fastest first. Most run on the debug build, whose
//! assertions are on; requirements that have a figure, and the scripts once more, on an optimised server.

use std::time::Instant;

use crate::{book, console, instructions, lines, models, platforms, reference, run, tidy};

type Step = (&'static str, fn() -> Result<(), String>);

/// All with the same features, so that one build serves each.
const TEST: [&str; 4] = ["test", "--workspace", "--locked", "--quiet"];

const STEPS: &[Step] = &[
    ("format", || run::command("cargo", &["fmt", "--all", "--check"])),
    ("tidy", || tidy::tidy(&["--strict".to_owned()])),
    ("clippy", clippy),
    ("unit tests", || {
        let rest = ["--exclude", "simulation", "--no-fail-fast"];
        run::command("cargo", &[&TEST[..], &rest].concat())
    }),
    // The whole server on a simulated machine.
    ("simulation", || {
        run::command("cargo", &[&TEST[..], &["--test", "simulated_server"]].concat())
    }),
    ("crash points", crash_points),
    ("models", models::models),
    // The formats on a big-endian processor and on ARM; `cargo xtask platforms` does the rest.
    ("platforms", platforms::formats),
    ("programs", || {
        run::command("cargo", &["build", "--workspace", "--bins", "--locked", "--quiet"])
    }),
    ("SQL tests", || run::command("target/debug/sqltest", &["--squalld", "target/debug/squalld"])),
    ("mysqltest", || {
        run::command("target/debug/mysqltest", &["--squalld", "target/debug/squalld"])
    }),
    ("book", book::book),
    ("documentation", || {
        reference::reference(&["--check".to_owned()])?;
        run::command("python3", &["tests/docs/quick_start.py"])
    }),
    ("console", console::check),
    ("console in a browser", console::browser),
    // A short soak; `tests/http/run --soak 300` is the long one.
    ("HTTP", || run::command("bash", &["tests/http/run", "--soak", "12"])),
    ("BarCamp", || run::command("bash", &["examples/barcamp/run.sh"])),
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
    ("damage", || {
        let scripts = ["damage.py", "device.py", "surroundings.py", "addresses.py"];
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
        let pathologies =
            ["tests/observability/pathologies.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &pathologies)?;
        // It says so when there is no MySQL to replicate from.
        let replica = ["tests/crash/replica.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &replica)?;
        let scripts = [
            "binary_log.py",
            "follow.py",
            "log_settings.py",
            "filters.py",
            "parallel.py",
            "positions.py",
            "encrypted.py",
            "semi_sync.py",
            "binlog_tool.py",
            "point_in_time.py",
            "changes.py",
            "clone.py",
            "switch_over.py",
        ];
        for script in scripts {
            let script = format!("tests/replication/{script}");
            run::command("python3", &[&script, "--squalld", "target/debug/squalld"])?;
        }
        let settings = ["tests/crash/settings.py", "--squalld", "target/debug/squalld"];
        run::command("python3", &[&settings[..], &["--rounds", "5"]].concat())
    }),
    ("backup", || {
        let scripts = ["backup.py", "reflink.py", "encryption.py"];
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

/// The scripts of `damage` that find more the longer they run, on the debug build.
///
/// # Errors
/// A script failed.
pub fn soak() -> Result<(), String> {
    run::command("cargo", &["build", "--package", "server", "--bin", "squalld", "--locked"])?;
    let full_disk = ["tests/crash/full_disk.py", "--squalld", "target/debug/squalld"];
    // A new directory each time: one that was filled once has free pages.
    (1..=10).try_for_each(|seed: u32| {
        let (moments, seed) = (["--moments", "20", "--seed"], seed.to_string());
        run::command("python3", &[&full_disk[..], &moments, &[seed.as_str()]].concat())
    })
}

/// Runs all steps, or those named in `only`. A step that fails does not keep the others from running: one run tells all that is
/// wrong.
///
/// # Errors
/// The steps that failed.
pub fn ci(only: &[String]) -> Result<(), String> {
    let started = Instant::now();
    let mut passed = 0;
    let mut failures = Vec::new();
    for (name, step) in STEPS {
        if !only.is_empty() && !only.iter().any(|wanted| wanted == name) {
            continue;
        }
        println!("==> {name}");
        let step_started = Instant::now();
        let result = step();
        println!("    {name}: {:.0} s", step_started.elapsed().as_secs_f64());
        match result {
            Ok(()) => passed += 1,
            Err(error) => {
                println!("    {name}: failed: {error}");
                failures.push(format!("{name}: {error}"));
            }
        }
    }
    println!("ci: all steps in {:.0} s", started.elapsed().as_secs_f64());
    println!("{passed} passed, {} failed", failures.len());
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

/// The crash loop at its full length, optimised: only the engine is built for it.
fn crash_points() -> Result<(), String> {
    let test = ["test", "--profile", "fast", "--locked", "--quiet", "-p", "engine"];
    let args = [&test[..], &["--test", "crash_points"]].concat();
    run::command_with(&[("SQUALL_CRASHES", "10000")], "cargo", &args)
}

fn clippy() -> Result<(), String> {
    run::command(
        "cargo",
        &["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"],
    )
}
