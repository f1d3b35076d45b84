//! Plugins that come and go beside a load: no statement fails but by the error of a function that is not there, and memory does not grow.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::process::{mib, resident_bytes};
use crate::{Options, connect, error_of, must, run};

/// How long plugins come and go, and how often in a second each of them does both.
const LASTS: Duration = Duration::from_secs(12);
const ROUNDS_PER_SECOND: u32 = 10;
/// Sessions of the load.
const SESSIONS: usize = 4;
/// Memory that may be taken between the first third and the end.
const GROWTH_MAX: u64 = 48 << 20;
/// "FUNCTION .. does not exist".
const NO_FUNCTION: u16 = 1305;
/// The plugin that is a file.
const FILE: &str = "tests/plugins/text-tools.wasm";

/// Statements of the load. The first needs no plugin.
const STATEMENTS: [&str; 4] = [
    "SELECT c FROM counted.t WHERE id = 1",
    "SELECT text_tools_add(1, 2)",
    "SELECT JS('a + b', 1 AS a, 2 AS b)",
    "UPDATE counted.t SET c = c + text_tools_add(1, 1) WHERE id = 1",
];

/// What a session of the load met.
#[derive(Default)]
struct Met {
    succeeded: AtomicU64,
    missing: AtomicU64,
}

/// See the module.
pub fn check(options: &Options) -> Result<(), String> {
    let server = sqltest::Server::start(&options.squalld, &[])?;
    let mut admin = connect(&server)?;
    let folder = server.folder().join("data").join("plugins");
    let copy = |from: &Path| {
        std::fs::create_dir_all(&folder)?;
        std::fs::copy(from, folder.join("text-tools.wasm"))
    };
    copy(Path::new(FILE)).map_err(|error| format!("{FILE}: {error}"))?;
    for sql in [
        "CREATE DATABASE counted",
        "CREATE TABLE counted.t (id INT PRIMARY KEY, c BIGINT NOT NULL)",
        "INSERT INTO counted.t VALUES (1, 0)",
        "INSTALL PLUGIN wasm",
    ] {
        run(&mut admin, sql)?;
    }
    let (stops, met) = (AtomicBool::new(false), Met::default());
    let (result, growth) = std::thread::scope(|scope| {
        let load: Vec<_> =
            (0..SESSIONS).map(|_| scope.spawn(|| load(&server, &stops, &met))).collect();
        let result = come_and_go(&mut admin, server.process());
        stops.store(true, Ordering::Relaxed);
        let ended = load.into_iter().map(|session| session.join().unwrap_or(Err("a panic".into())));
        let ended: Result<Vec<()>, String> = ended.collect();
        match (result, ended) {
            (Ok((rounds, growth)), Ok(_)) => (Ok(rounds), growth),
            (Err(error), _) | (_, Err(error)) => (Err(error), 0),
        }
    });
    let rounds = result?;
    let (succeeded, missing) =
        (met.succeeded.load(Ordering::Relaxed), met.missing.load(Ordering::Relaxed));
    println!(
        "  {rounds} rounds, {succeeded} statements, {missing} without their function, {:.1} MiB more",
        mib(growth)
    );
    must(succeeded > 0 && missing > 0, "the load met no plugin, or always one".into())?;
    must(growth < GROWTH_MAX, format!("memory grew by {:.1} MiB", mib(growth)))
}

/// Installs and removes both plugins; the rounds, and the growth of memory after the first third.
fn come_and_go(admin: &mut client::Connection, process: u32) -> Result<(u32, u64), String> {
    let (started, mut rounds, mut early) = (Instant::now(), 0, None);
    let pause = Duration::from_secs(1) / ROUNDS_PER_SECOND;
    while started.elapsed() < LASTS {
        for sql in [
            "INSTALL PLUGIN js",
            "INSTALL PLUGIN text_tools SONAME 'text-tools.wasm'",
            "UNINSTALL PLUGIN js",
            "UNINSTALL PLUGIN text_tools",
        ] {
            run(admin, sql)?;
            std::thread::sleep(pause / 4);
        }
        rounds += 1;
        if early.is_none() && started.elapsed() > LASTS / 3 {
            early = Some(resident_bytes(process));
        }
    }
    let growth = resident_bytes(process).saturating_sub(early.unwrap_or(0));
    Ok((rounds, growth))
}

fn load(server: &sqltest::Server, stops: &AtomicBool, met: &Met) -> Result<(), String> {
    let mut connection = connect(server)?;
    run(&mut connection, "USE counted")?;
    let mut turn = 0;
    while !stops.load(Ordering::Relaxed) {
        let sql = STATEMENTS[turn % STATEMENTS.len()];
        match error_of(&mut connection, sql)? {
            None => met.succeeded.fetch_add(1, Ordering::Relaxed),
            Some(NO_FUNCTION) if turn % STATEMENTS.len() > 0 => {
                met.missing.fetch_add(1, Ordering::Relaxed)
            }
            Some(code) => return Err(format!("{sql}: error {code}")),
        };
        turn += 1;
    }
    Ok(())
}
