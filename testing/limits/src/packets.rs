//! Hostile texts through the wire: the server must answer or return an error, stay up, and keep its memory in proportion.

use std::time::{Duration, Instant};

use crate::process::{mib, resident_bytes};
use crate::{Options, connect, error_of, must, run};

/// Memory that the server may use for a text of 64 MiB while it answers, and afterwards.
const RESIDENT_MAX: u64 = 1 << 30;
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// See the module.
pub fn check(options: &Options) -> Result<(), String> {
    let server = sqltest::Server::start(&options.squalld, &[])?;
    let mut admin = connect(&server)?;
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    let calls = format!("SELECT {}1{}", "ABS(".repeat(100_000), ")".repeat(100_000));
    let literal = format!("SELECT LENGTH('{}')", "x".repeat(64 << 20));
    for raised in [false, true] {
        if raised {
            run(&mut admin, "SET GLOBAL max_allowed_packet = 1073741824")?;
        }
        for (name, sql) in [("parentheses", &nested), ("calls", &calls), ("literal", &literal)] {
            let mut connection = connect(&server)?;
            let started = Instant::now();
            let error = error_of(&mut connection, sql)?;
            let took = started.elapsed();
            println!("  {name}: {error:?} in {took:?}");
            let refused = name == "literal" && !raised;
            must(refused == (error == Some(1153)), format!("{name}: error {error:?}"))?;
            must(took < ANSWER_WITHIN, format!("{name}: {took:?}"))?;
            run(&mut admin, "DO 1")
                .map_err(|lost| format!("{name}: the server is gone: {lost}"))?;
            let resident = resident_bytes(server.process());
            println!("  {:.0} MiB resident", mib(resident));
            must(resident < RESIDENT_MAX, format!("{name}: {:.0} MiB", mib(resident)))?;
        }
    }
    Ok(())
}
