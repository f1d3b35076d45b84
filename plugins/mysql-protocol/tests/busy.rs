//! Busy connections and threads. A separate process, because it inspects its threads, by the number of a system call.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
#![cfg(target_arch = "x86_64")]

mod canned;
mod client;
mod running;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::Client;
use running::start;

/// How long a change may take; ticks come twice a second.
const PATIENCE: Duration = Duration::from_secs(30);

fn cell(set: &client::ResultSet) -> Option<&str> {
    set.rows.first()?.first()?.as_deref()
}

/// The server's worker threads: all, and those that wait inside a read of one socket.
fn workers() -> (usize, usize) {
    let (mut all, mut reading) = (0, 0);
    for task in std::fs::read_dir("/proc/self/task").expect("own threads").flatten() {
        let file = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        if file("comm").starts_with("mysql-worker") {
            all += 1;
            reading += usize::from(file("syscall").starts_with("45 "));
        }
    }
    (all, reading)
}

fn ask(client: &mut Client) {
    assert_eq!(cell(&client.query("echo here").expect("a result")), Some("here"));
}

/// Keeps every client busy until `done`, or patience ends.
fn load_until(clients: &mut [Client], done: impl Fn(usize, usize) -> bool) -> (usize, usize) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in clients {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    ask(client);
                }
            });
        }
        let begin = Instant::now();
        let mut seen = workers();
        while !done(seen.0, seen.1) && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
            seen = workers();
        }
        stop.store(true, Ordering::Relaxed);
        seen
    })
}

#[test]
fn busy_connections_get_threads_and_give_them_back() {
    let server = start();
    let mut clients: Vec<Client> = (0..24).map(|_| server.connect()).collect();
    let before = workers().0;
    // A reactor gives eight connections their own threads.
    let (_, reading) = load_until(&mut clients[..4], |_, reading| reading >= 2);
    assert!(reading >= 2, "{reading} threads wait for commands");
    let begin = Instant::now();
    while workers().1 > 0 {
        assert!(begin.elapsed() < PATIENCE, "silent connections keep their threads");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Too many busy ones stay with the reactor, and those on threads return to it.
    let begin = Instant::now();
    let (all, _) = load_until(&mut clients, |_, _| begin.elapsed() > Duration::from_secs(2));
    assert!(all <= before + 12, "{all} threads for 24 busy connections, {before} before");
    // Commits, large results and files work the same on a connection's own thread.
    load_until(&mut clients[..1], |_, reading| reading == 1);
    assert_eq!(clients[0].query("load x").expect("OK").affected_rows, 8);
    assert_eq!(clients[0].query("numbers 20000").expect("a result").rows.len(), 20_000);
    server.canned.commits.make_durable();
    assert!(clients[0].query("commit x").is_ok());
    load_until(&mut clients[..2], |_, reading| reading >= 1);
    // A client that goes away in the middle of a statement cancels it, and the server stops while another is busy: that
    // every session ended is checked when it is dropped.
    clients[0].send_command(b"\x03wait x");
    clients.remove(0);
    load_until(&mut clients[..1], |_, reading| reading == 1);
    drop(server);
}
