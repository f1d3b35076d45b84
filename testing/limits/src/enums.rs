//! ENUM definitions with tens of thousands of members: created, refused and searched in linear time.

use std::time::{Duration, Instant};

use client::Connection;

use crate::{Options, connect, error_of, must, run};

/// Time limit for any definition.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// Number of runs, of which the best counts: the machine may be busy, and other load slows the large definition more, whose data leaves the caches.
const ROUNDS: usize = 20;
/// Seven times as many members may take seven times as long, times this factor.
const GROWTH_MAX: f64 = 1.3;
const TRIES: usize = 5;

fn definition(count: usize) -> String {
    let members: Vec<String> = (0..count).map(|n| format!("'{n:05}'")).collect();
    format!("CREATE TABLE e (c ENUM({}))", members.join(","))
}

/// The best time of a statement, and the error it ends with.
fn time(connection: &mut Connection, sql: &str) -> Result<(Duration, Option<u16>), String> {
    let mut best = Duration::MAX;
    let mut error = None;
    for _ in 0..ROUNDS {
        run(connection, "DROP TABLE IF EXISTS e")?;
        let started = Instant::now();
        error = error_of(connection, sql)?;
        best = best.min(started.elapsed());
    }
    Ok((best, error))
}

/// See the module.
pub fn check(options: &Options) -> Result<(), String> {
    let server = sqltest::Server::start(&options.squalld, &[])?;
    let mut connection = connect(&server)?;
    run(&mut connection, "CREATE DATABASE limits")?;
    run(&mut connection, "USE limits")?;
    let (most, error) = time(&mut connection, &definition(65_535))?;
    println!("  65,535 members: {most:?}");
    must(error.is_none() && most < ANSWER_WITHIN, format!("65,535: {most:?}, {error:?}"))?;
    let (refused, error) = time(&mut connection, &definition(70_000))?;
    println!("  70,000 members refused: {refused:?}");
    must(error.is_some() && refused < ANSWER_WITHIN, format!("70,000: {refused:?}, {error:?}"))?;
    let doubled = definition(65_000).replace("'00001'", "'64998'");
    let (found, error) = time(&mut connection, &doubled)?;
    println!("  a duplicate found: {found:?}");
    must(error == Some(1291) && found < ANSWER_WITHIN, format!("{found:?}, {error:?}"))?;
    run(&mut connection, "SET enum_max_values = 0")?;
    // Other work on the machine takes the caches that the large definition needs: the least growth counts.
    let mut least = f64::MAX;
    for _ in 0..TRIES {
        let (small, _) = time(&mut connection, &definition(10_000))?;
        let (large, error) = time(&mut connection, &definition(70_000))?;
        let growth = large.as_secs_f64() / small.as_secs_f64() / 7.0;
        println!("  10,000 members: {small:?}; 70,000: {large:?}; {growth:.2} of linear");
        must(error.is_none() && large < ANSWER_WITHIN, format!("70,000: {large:?}, {error:?}"))?;
        least = least.min(growth);
        if least <= GROWTH_MAX {
            break;
        }
    }
    must(least <= GROWTH_MAX, format!("growth {least:.2}"))?;
    run(&mut connection, "INSERT INTO e VALUES ('69999'), (70000), ('00000')")?;
    let found = connection
        .query(b"SELECT c FROM e WHERE c = '69999' AND c + 0 = 70000", &mut ())
        .map_err(|failure| failure.to_string())?;
    must(found.rows == 2, format!("{} rows with the last member", found.rows))
}
