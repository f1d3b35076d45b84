//! Many sessions that run JavaScript at once: all finish, each with its own result, and none takes more memory than its run may.

use std::sync::Barrier;
use std::time::Instant;

use crate::process::{mib, peak_bytes, resident_bytes};
use crate::{Options, connect, error_of, must, run};

/// Sessions, twice as many as there are isolates.
const SESSIONS: usize = 64;
/// Statements of each.
const STATEMENTS: usize = 5;
/// One session in so many wants more memory than a run may have.
const GREEDY: usize = 8;
/// Bytes that one run may use, and the isolates.
const MEMORY_LIMIT: u64 = 8 << 20;
const ISOLATES: u64 = 32;
/// Memory of 64 connections and of what the allocator keeps.
const SLACK: u64 = 64 << 20;
/// The error of a run that wants more memory than it may have.
const SCRIPT_FAILED: u16 = 6000;

/// A run of some milliseconds that holds some memory; the same in Rust is `expected`.
const PROGRAM: &str = "var a = [], s = seed; for (var i = 0; i < 100000; i++) { s = (s * 31 + i) % 1000003; \
    a[i % 50000] = s } s + a.length";

fn expected(seed: u64) -> u64 {
    (0..100_000).fold(seed, |state, step| (state * 31 + step) % 1_000_003) + 50_000
}

/// See the module.
pub fn check(options: &Options) -> Result<(), String> {
    let server = sqltest::Server::start(&options.squalld, &[])?;
    let mut admin = connect(&server)?;
    for sql in [
        "INSTALL PLUGIN js",
        &format!("SET GLOBAL js_memory_limit = {MEMORY_LIMIT}"),
        &format!("SET GLOBAL js_max_isolates = {ISOLATES}"),
    ] {
        run(&mut admin, sql)?;
    }
    let before = resident_bytes(server.process());
    let (barrier, started) = (Barrier::new(SESSIONS), Instant::now());
    let ended: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let session = |number| {
            let (server, barrier) = (&server, &barrier);
            scope.spawn(move || statements(server, barrier, number))
        };
        let sessions: Vec<_> = (0..SESSIONS).map(session).collect();
        sessions.into_iter().map(|one| one.join().unwrap_or(Err("a panic".into()))).collect()
    });
    let took = started.elapsed();
    let growth = peak_bytes(server.process()).saturating_sub(before);
    println!(
        "  {SESSIONS} sessions, {} runs in {:.1} s, at most {:.1} MiB more",
        SESSIONS * STATEMENTS,
        took.as_secs_f64(),
        mib(growth)
    );
    ended.into_iter().collect::<Result<Vec<()>, String>>()?;
    run(&mut admin, "DO JS('1')")?;
    let allowed = ISOLATES * MEMORY_LIMIT + SLACK;
    must(growth < allowed, format!("memory grew by {:.1} MiB", mib(growth)))
}

/// What one session does.
fn statements(server: &sqltest::Server, barrier: &Barrier, number: usize) -> Result<(), String> {
    let connection = connect(server);
    barrier.wait();
    let mut connection = connection?;
    for turn in 0..STATEMENTS {
        let seed = (number * STATEMENTS + turn) as u64;
        if number % GREEDY == GREEDY - 1 {
            let bomb = "DO JS('var a = []; while (true) { a.push(new Array(1000).fill(1)) }')";
            let code = error_of(&mut connection, bomb)?;
            must(code == Some(SCRIPT_FAILED), format!("a run without limit ended with {code:?}"))?;
        }
        // Another result is error 1242: more than one row in place of a value.
        let sql = format!(
            "DO IF(JS('{PROGRAM}', {seed} AS seed) = {}, 1, (SELECT 1 UNION ALL SELECT 2))",
            expected(seed)
        );
        run(&mut connection, &sql)?;
    }
    Ok(())
}
