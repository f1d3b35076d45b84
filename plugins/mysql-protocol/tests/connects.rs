//! Many log-ins, and attackers that never finish theirs: a quick form of `examples/connects.rs`. A separate process: it
//! checks its memory and threads.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod canned;
mod client;
mod running;
mod storm;

use std::time::Duration;

use client::Options;
use running::start_with;
use storm::{HalfOpen, Load, run, usage};

/// Seconds until a log-in has to be done.
const CONNECT_TIMEOUT: u64 = 2;
/// Attackers; more than may be half open, and more than may be connected.
const ATTACKERS: usize = 300;

#[test]
fn log_ins_go_on_while_others_never_finish_theirs() {
    let server = start_with(
        |canned| {
            canned.globals.insert("connect_timeout", CONNECT_TIMEOUT);
            canned.globals.insert("max_connections", 200);
        },
        1,
    );
    let load = |rate, seconds| Load {
        address: server.address,
        options: Options { user: "native", password: "secret", ..Options::default() },
        rate,
        time: Duration::from_secs(seconds),
        workers: 4,
    };
    let warm = run(&load(100, 1));
    assert_eq!((warm.served, warm.failed), (100, 0), "{warm:?}");
    let (threads, memory_kib) = usage("self");
    let calm = run(&load(300, 2));
    println!("calm: {calm:?}");
    assert_eq!((calm.served, calm.failed), (600, 0), "{calm:?}");
    let attack = HalfOpen::start(server.address, ATTACKERS);
    std::thread::sleep(Duration::from_millis(1500));
    let besieged = run(&load(50, 5));
    let cuts = attack.stop();
    println!("besieged: {besieged:?}, {cuts:?}");
    assert_eq!(besieged.failed, 0, "{besieged:?}");
    assert!(cuts.cut > 0 && cuts.opened > ATTACKERS as u64, "{cuts:?}");
    // The attackers look once a second, the server twice; the rest is for slow machines.
    assert!(cuts.oldest < Duration::from_secs(CONNECT_TIMEOUT + 6), "{cuts:?}");
    let (threads_after, memory_after_kib) = usage("self");
    println!("threads {threads} -> {threads_after}, KiB {memory_kib} -> {memory_after_kib}");
    assert!(threads_after <= threads + 8, "{threads} -> {threads_after} threads");
    assert!(memory_after_kib < memory_kib + 65_536, "{memory_kib} -> {memory_after_kib} KiB");
}
