//! A server starts from nothing, serves clients and stops on a simulated machine: the same seed gives the same run, another seed another
//! run with the same answers.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use simulation::{Client, Server};
use sys::simulation::{Record, Simulation};
use sys::sync::Mutex;
use sys::threads::Thread;

const ROWS: usize = 12;

/// A process has one error log, and each of its servers sets the level of that log: a machine beside would decide which lines this
/// one's trace has.
static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// A machine that prints its server's log when a test fails.
struct Machine {
    machine: Simulation,
    _alone: MutexGuard<'static, ()>,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let machine = Simulation::new(seed);
        // The cryptographic library makes keys from its own entropy.
        machine.hide_bytes_of(".pem");
        Machine { machine, _alone: alone }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.machine.console());
        }
    }
}

/// Ids of rows whose commit was acknowledged.
type Acknowledged = Arc<Mutex<Vec<usize>>>;

/// Inserts rows from `first` on, and counts them in a row that both writers change.
fn write_rows(mut client: Client, first: usize, acknowledged: &Acknowledged) {
    for id in first..first + ROWS {
        assert_eq!(client.run("BEGIN"), ["ok, 0 rows"]);
        let insert = format!("INSERT INTO d.t VALUES ({id}, {}, REPEAT('x', {id}))", id * 10);
        assert_eq!(client.run(&insert), ["ok, 1 rows"]);
        assert_eq!(client.run("UPDATE d.counter SET n = n + 1 WHERE id = 1"), ["ok, 1 rows"]);
        assert_eq!(client.run("COMMIT"), ["ok, 0 rows"]);
        acknowledged.lock().push(id);
    }
}

fn create(client: &mut Client) {
    for statement in [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, c INT, v VARCHAR(200), KEY (c))",
        "CREATE TABLE d.counter (id INT PRIMARY KEY, n INT)",
    ] {
        assert!(client.run(statement)[0].starts_with("ok"), "{statement}");
    }
    assert_eq!(client.run("INSERT INTO d.counter VALUES (1, 0)"), ["ok, 1 rows"]);
}

/// Two clients, one over the socket and one over TCP, at the same time.
fn start_writers(acknowledged: &Acknowledged) -> [Thread; 2] {
    let socket = Client::over_socket("socket");
    let tcp = Client::over_tcp("tcp");
    let spawn = |name, client, first| {
        let acknowledged = acknowledged.clone();
        let body = move || write_rows(client, first, &acknowledged);
        sys::threads::spawn(name, body).expect("a thread")
    };
    [spawn("socket-client", socket, 1), spawn("tcp-client", tcp, 101)]
}

fn look(client: &mut Client) -> Vec<String> {
    let mut answers = client.run("SELECT COUNT(*), SUM(c), SUM(LENGTH(v)) FROM d.t");
    answers.extend(client.run("SELECT n FROM d.counter"));
    answers.extend(client.run("SELECT id, c FROM d.t WHERE c BETWEEN 50 AND 1020 ORDER BY id"));
    answers.extend(client.run("CHECK TABLE d.t, d.counter"));
    answers
}

/// Starts from nothing, works, stops.
fn first_life() -> Vec<String> {
    let server = Server::start();
    let mut client = Client::over_socket("first");
    create(&mut client);
    start_writers(&Acknowledged::default()).into_iter().for_each(Thread::join);
    let answers = look(&mut client);
    assert!(server.stop(&mut client));
    answers
}

/// Starts, reads, stops.
fn second_life() -> Vec<String> {
    let server = Server::start();
    let mut client = Client::over_socket("second");
    let answers = look(&mut client);
    assert!(server.stop(&mut client));
    answers
}

fn live<T: Send + 'static>(machine: &Simulation, life: fn() -> T) -> T {
    let outcome = machine.run(life).unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(machine.left_threads(), Vec::<String>::new(), "threads after the end");
    outcome
}

fn run(seed: u64) -> (Vec<Record>, Vec<String>) {
    let Machine { machine, .. } = &Machine::new(seed);
    let answers = live(machine, first_life);
    assert_eq!(answers, live(machine, second_life));
    (machine.trace(), answers)
}

fn assert_same(one: &[Record], other: &[Record]) {
    for (index, (a, b)) in one.iter().zip(other).enumerate() {
        let before = &one[index.saturating_sub(5)..index];
        assert_eq!(a, b, "record {index} differs, after {before:#?}");
    }
    assert_eq!(one.len(), other.len());
}

#[test]
fn a_seed_gives_the_same_run_and_another_one_the_same_answers() {
    let (trace, answers) = run(1);
    assert_eq!(answers[0], "24 13560 1356");
    assert_eq!(answers[1], "24");
    let (again, _) = run(1);
    assert_same(&trace, &again);
    let (other, other_answers) = run(2);
    assert_eq!(answers, other_answers);
    assert_ne!(trace, other);
}

/// Starts from nothing, and loses power while two clients write. Returns the rows whose commit was acknowledged.
fn interrupted_life() -> Vec<usize> {
    let _server = Server::start();
    let mut client = Client::over_socket("first");
    create(&mut client);
    let acknowledged = Acknowledged::default();
    let _writers = start_writers(&acknowledged);
    let mut noise = [0];
    sys::entropy::fill(&mut noise).expect("simulated");
    sys::threads::sleep(Duration::from_micros(u64::from(noise[0]) * 30));
    acknowledged.lock().clone()
}

/// Starts on the files that the failure left, and reads.
fn recovered_life() -> (Vec<usize>, Vec<String>, Vec<String>) {
    let server = Server::start();
    let mut client = Client::over_socket("second");
    let ids = client.run("SELECT id FROM d.t ORDER BY id");
    let ids = ids.iter().map(|id| id.parse().expect("a number")).collect();
    let counter = client.run("SELECT n FROM d.counter");
    let checked = client.run("CHECK TABLE d.t, d.counter");
    assert!(server.stop(&mut client));
    (ids, counter, checked)
}

#[test]
fn what_was_acknowledged_is_there_after_a_power_failure() {
    let mut kept = Vec::new();
    for seed in 1..=6 {
        let Machine { machine, .. } = &Machine::new(seed);
        let acknowledged = machine.run(interrupted_life).expect("a life");
        machine.lose_power();
        let (ids, counter, checked) = live(machine, recovered_life);
        for id in &acknowledged {
            assert!(ids.contains(id), "seed {seed}: row {id} is lost; {ids:?} are there");
        }
        assert_eq!(counter, [ids.len().to_string()], "seed {seed}: a part of a transaction");
        assert!(checked.iter().all(|line| line.ends_with("OK")), "seed {seed}: {checked:?}");
        kept.push(acknowledged.len());
    }
    // The failures came at different times, some of them in the middle.
    assert!(kept.iter().any(|count| *count > 0 && *count < 2 * ROWS), "{kept:?}");
}
