//! Changes of definitions beside statements on the table.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

// Only results are compared.
#[allow(dead_code)]
mod support;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use support::Harness;

const READERS: u64 = 100;
const READS: u64 = 20;

/// The 99th percentile of the time that one of the reads takes, which each of many sessions makes.
fn read_beside_each_other(harness: &Arc<Harness>) -> Duration {
    let readers: Vec<_> = (0..READERS)
        .map(|number| {
            let harness = harness.clone();
            thread::spawn(move || {
                let mut client = harness.root();
                client.setup("SET lock_wait_timeout = 1");
                let times = (0..READS).map(|read| {
                    let begin = Instant::now();
                    let id = (number * READS + read) % 100;
                    let found = client.run(&format!("SELECT a FROM t1 WHERE id = {id}"));
                    assert_eq!(found, (id * 2).to_string());
                    begin.elapsed()
                });
                times.collect::<Vec<_>>()
            })
        })
        .collect();
    let times = readers.into_iter().flat_map(|reader| reader.join().expect("no panic"));
    let mut times: Vec<Duration> = times.collect();
    times.sort();
    times[times.len() * 99 / 100]
}

#[test]
fn readers_do_not_wait_for_an_alter_that_waits_for_a_long_transaction() {
    let harness = Arc::new(Harness::new());
    let mut long = harness.root();
    long.setup("CREATE TABLE t1 (id INT PRIMARY KEY, a INT)");
    for id in 0..100 {
        long.setup(&format!("INSERT INTO t1 VALUES ({id}, {})", id * 2));
    }
    let before = read_beside_each_other(&harness);
    long.setup("BEGIN\nSELECT COUNT(*) FROM t1");
    let alter = {
        let harness = harness.clone();
        thread::spawn(move || harness.root().run("ALTER TABLE t1 ADD COLUMN b INT"))
    };
    let waits = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'ALTER%' AND state LIKE 'Waiting for table%'";
    let mut looking = harness.root();
    while looking.run(waits) != "1" {
        thread::yield_now();
    }
    let beside = read_beside_each_other(&harness);
    println!("99 % of the reads took up to {before:?} before, {beside:?} beside the ALTER");
    // It has waited all the time, and gets its turn after the transaction.
    assert!(!alter.is_finished());
    long.setup("COMMIT");
    assert_eq!(alter.join().expect("no panic"), "ok 0");
    assert_eq!(long.run("SELECT COUNT(b) FROM t1"), "0");
}

#[test]
fn an_alter_gets_its_turn_among_readers_that_never_stop() {
    let harness = Arc::new(Harness::new());
    let mut root = harness.root();
    root.setup("CREATE TABLE t1 (id INT PRIMARY KEY, a INT)\nINSERT INTO t1 VALUES (1, 2)");
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let (harness, done) = (harness.clone(), done.clone());
            thread::spawn(move || {
                let mut client = harness.root();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(client.run("SELECT a FROM t1 WHERE id = 1"), "2");
                    assert_eq!(client.run("SELECT SLEEP(0.02) FROM t1"), "0");
                }
            })
        })
        .collect();
    for column in 0..3 {
        let alter = format!("ALTER TABLE t1 ADD COLUMN c{column} INT");
        assert_eq!(root.run(&alter), "ok 0");
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
}
