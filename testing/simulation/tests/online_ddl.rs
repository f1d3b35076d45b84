//! ALTER TABLE copies rows beside writers, on a simulated machine that loses power at some point: afterwards the table has one of its definitions and the rows
//! of a table that every transaction changed alike.

use std::time::Duration;

use simulation::{Client, Server};
use sys::entropy::SplitMix;
use sys::simulation::Simulation;
use sys::threads::Thread;

const ROWS: u64 = 60;
const TRANSACTIONS: u64 = 25;

/// Changes of the definition, each after the one before, that keep the columns `id`, `u` and `v`.
const CHANGES: [&str; 8] = [
    "ALTER TABLE d.t MODIFY v BIGINT, LOCK=NONE",
    "ALTER TABLE d.t ADD w INT DEFAULT 7 FIRST, ALGORITHM=COPY, LOCK=NONE",
    "ALTER TABLE d.t DROP PRIMARY KEY, ADD PRIMARY KEY (u), ADD UNIQUE KEY k (id), LOCK=NONE",
    "ALTER TABLE d.t DROP COLUMN w, ALGORITHM=COPY",
    "ALTER TABLE d.t DROP PRIMARY KEY, ADD PRIMARY KEY (id), DROP KEY k, ADD UNIQUE KEY (u)",
    "ALTER TABLE d.t ADD g INT AS (v + 1) STORED",
    "ALTER TABLE d.t MODIFY id BIGINT, MODIFY u BIGINT, LOCK=NONE",
    "ALTER TABLE d.t DROP COLUMN g, ALGORITHM=COPY",
];

fn live<T: Send + 'static>(machine: &Simulation, life: fn() -> T) -> T {
    machine.run(life).unwrap_or_else(|failure| panic!("{failure}\n{}", machine.console()))
}

fn run(client: &mut Client, statement: &str) {
    let answer = client.run(statement);
    assert!(answer.last().is_some_and(|last| last.starts_with("ok")), "{statement}: {answer:?}");
}

fn create(client: &mut Client) {
    run(client, "CREATE DATABASE d");
    for table in ["t", "s"] {
        let columns = "id INT PRIMARY KEY, u INT NOT NULL UNIQUE, v INT";
        run(client, &format!("CREATE TABLE d.{table} ({columns})"));
        for id in 0..ROWS {
            run(client, &format!("INSERT INTO d.{table} VALUES ({id}, {id}, {id})"));
        }
    }
}

/// Transactions that change `t` and `s` alike: rows come, go, move and swap values of a unique key.
fn write(mut client: Client, seed: u64) {
    let mut random = SplitMix::new(seed);
    for number in 0..TRANSACTIONS {
        let (one, other) = (random.below(ROWS * 2), random.below(ROWS * 2));
        let fresh = 1000 + seed * 1000 + number * 2;
        let changes = match random.below(5) {
            0 => vec![format!("INSERT IGNORE INTO d.@ (id, u, v) VALUES ({one}, {fresh}, 1)")],
            1 => vec![format!("DELETE FROM d.@ WHERE id = {one}")],
            2 => vec![format!("UPDATE d.@ SET v = v + 1 WHERE id BETWEEN {one} AND {one} + 5")],
            3 => vec![format!("UPDATE IGNORE d.@ SET id = {other} WHERE id = {one}")],
            _ => vec![
                format!("UPDATE d.@ SET u = {fresh} WHERE id = {one}"),
                format!("UPDATE IGNORE d.@ SET u = {other} WHERE id = {one}"),
            ],
        };
        let commits = random.below(6) > 0;
        // A deadlock has rolled all of it back.
        let mut alive = client.run("BEGIN") == ["ok, 0 rows"];
        for change in &changes {
            for table in ["s", "t"] {
                let answer = if alive { client.run(&change.replace('@', table)) } else { continue };
                alive = answer.last().is_some_and(|last| last.starts_with("ok"));
                assert!(alive || answer[0].contains("1213"), "{change}: {answer:?}");
            }
        }
        client.run(if alive && commits { "COMMIT" } else { "ROLLBACK" });
    }
}

fn start_writers() -> [Thread; 2] {
    let (socket, tcp) = (Client::over_socket("socket"), Client::over_tcp("tcp"));
    let spawn = |name, client, seed| {
        sys::threads::spawn(name, move || write(client, seed)).expect("a thread")
    };
    [spawn("socket-client", socket, 1), spawn("tcp-client", tcp, 2)]
}

/// Both tables have the same rows, and no index lies.
fn compare(client: &mut Client) {
    let differing = "SELECT COUNT(*) FROM d.t JOIN d.s USING (id, u) WHERE t.v <=> s.v";
    let counts = ["SELECT COUNT(*) FROM d.t", "SELECT COUNT(*) FROM d.s", differing];
    let counts: Vec<Vec<String>> = counts.iter().map(|count| client.run(count)).collect();
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    assert!(counts[0][0].parse::<u64>().is_ok(), "{counts:?}");
    assert_eq!(client.run("CHECK TABLE d.t")[0], "d.t check status OK");
}

fn whole_life() {
    let server = Server::start();
    let mut client = Client::over_socket("first");
    create(&mut client);
    let writers = start_writers();
    for change in CHANGES {
        run(&mut client, change);
    }
    writers.into_iter().for_each(Thread::join);
    compare(&mut client);
    assert!(server.stop(&mut client));
}

/// Ends at some point of the changes.
fn interrupted_life() {
    let _server = Server::start();
    let mut client = Client::over_socket("first");
    create(&mut client);
    let _writers = start_writers();
    let _changer = sys::threads::spawn("changer", move || {
        for change in CHANGES {
            run(&mut client, change);
        }
    });
    let mut noise = [0; 2];
    sys::entropy::fill(&mut noise).expect("simulated");
    sys::threads::sleep(Duration::from_micros(u64::from(u16::from_le_bytes(noise)) * 3));
}

fn recovered_life() {
    let server = Server::start();
    let mut client = Client::over_socket("second");
    compare(&mut client);
    // What the lost copy was made of is gone, and the next change finds nothing in its way.
    run(&mut client, "ALTER TABLE d.t MODIFY v DECIMAL(20), ALGORITHM=COPY, LOCK=NONE");
    compare(&mut client);
    assert!(server.stop(&mut client));
}

#[test]
fn altered_tables_have_what_the_writers_wrote() {
    for seed in 1..4 {
        let machine = Simulation::new(seed);
        machine.hide_bytes_of(".pem");
        live(&machine, whole_life);
    }
}

#[test]
fn after_a_power_failure_the_table_is_the_old_or_the_new_one() {
    for seed in 1..9 {
        let machine = Simulation::new(seed);
        machine.hide_bytes_of(".pem");
        live(&machine, interrupted_life);
        machine.lose_power();
        live(&machine, recovered_life);
    }
}
