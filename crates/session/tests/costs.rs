//! What statements cost, counted for the session that ran them and no other.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::collections::VecDeque;
use std::sync::Mutex;

use support::{Client, Harness};

const SESSIONS: u64 = 64;
const ROUNDS: usize = 6;

fn harness() -> Harness {
    Harness::with(vec![Box::new(statement_costs::StatementCosts)])
}

/// How much work a session does in a statement.
fn share(session: usize) -> u64 {
    if session.is_multiple_of(2) { 1 } else { 8 }
}

fn numbers(text: &str) -> Vec<u64> {
    let number = |cell: &str| cell.parse().unwrap_or_else(|_| panic!("a number: {cell} of {text}"));
    text.split(['\n', '|']).map(number).collect()
}

#[test]
fn sixty_four_sessions_on_two_threads_each_have_their_own_time() {
    let harness = harness();
    let mut watcher = harness.root();
    let session = |number: usize| {
        let mut client = harness.connect("root").expect("root may connect");
        client.setup("SET statement_cost = ON");
        (number, client, Vec::new())
    };
    let sessions: VecDeque<(usize, Client, Vec<u64>)> =
        (0..SESSIONS as usize).map(session).collect();
    let ids: Vec<u64> = sessions.iter().map(|(_, client, _)| client.id).collect();
    // Whichever thread is free takes the next session, so that all of them move between the threads.
    let waiting = Mutex::new((sessions, SESSIONS as usize * ROUNDS));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = {
                        let mut waiting = waiting.lock().expect("no panic");
                        if waiting.1 == 0 {
                            return;
                        }
                        let next = waiting.0.pop_front();
                        waiting.1 -= usize::from(next.is_some());
                        next
                    };
                    let Some((number, mut client, mut costs)) = next else { continue };
                    let count = 15 * share(number);
                    let sql = format!(
                        "SELECT PERF_UDF({count}, 'task-clock', REVERSE(REPEAT('abcdef', 100)))"
                    );
                    costs.push(numbers(&client.run(&sql))[0]);
                    waiting.lock().expect("no panic").0.push_back((number, client, costs));
                }
            });
        }
    });
    let mut sessions: Vec<_> = waiting.into_inner().expect("no panic").0.into();
    sessions.sort_by_key(|(number, ..)| *number);

    // By the least of its rounds a session with eight times the work takes about eight times as long, whoever runs beside it.
    let least = |heavy: bool| -> Vec<u64> {
        let of = sessions.iter().filter(|(number, ..)| (share(*number) > 1) == heavy);
        of.map(|(_, _, costs)| costs.iter().copied().min().unwrap_or(0)).collect()
    };
    let (light, heavy) = (least(false), least(true));
    let (most_light, least_heavy) = (light.iter().max().unwrap(), heavy.iter().min().unwrap());
    assert!(least_heavy > &(3 * most_light), "light {light:?}, heavy {heavy:?}");

    // The same from the sessions' records, to which the statements of others add nothing.
    for ((number, client, costs), id) in sessions.iter_mut().zip(&ids) {
        assert_eq!(client.id, *id);
        let sql = format!(
            "SELECT MEASURED, CPU_NANOSECONDS FROM data_dictionary.SESSION_USAGE WHERE SESSION_ID = {id}"
        );
        let record = numbers(&watcher.run(&sql));
        let inside: u64 = costs.iter().sum();
        assert_eq!(record[0], costs.len() as u64, "session {number}");
        assert!(record[1] >= inside, "session {number}: {record:?} and {inside}");
        // Parsing and planning come on top; not the time of 63 others.
        assert!(record[1] < 4 * inside + 50_000_000, "session {number}: {record:?} and {inside}");
    }
}

#[test]
fn totals_are_the_sums_of_the_sessions_also_of_those_that_have_ended() {
    let harness = harness();
    let mut watcher = harness.root();
    let mut sessions: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = harness.connect("root").expect("root may connect");
            client.setup("SET statement_cost = ON\nUSE t");
            (0..5).for_each(|_| drop(client.run("SELECT REVERSE(REPEAT('abcdef', 100))")));
            client
        })
        .collect();
    let columns = "SUM(MEASURED), SUM(CPU_NANOSECONDS), SUM(PAGES), SUM(ROWS_SENT)";
    let sums = watcher.run(&format!("SELECT {columns} FROM data_dictionary.SESSION_USAGE"));
    for kind in ["USER", "APPLICATION", "SCHEMA", "DIGEST"] {
        let sql =
            format!("SELECT {columns} FROM data_dictionary.STATEMENT_COSTS WHERE KIND = '{kind}'");
        assert_eq!(watcher.run(&sql), sums, "{kind}");
    }
    assert_eq!(numbers(&sums)[0], 8 * 6, "5 SELECT and a USE each: the SET begins it");
    sessions.truncate(3);
    let sql = format!("SELECT {columns} FROM data_dictionary.STATEMENT_COSTS WHERE KIND = 'USER'");
    assert_eq!(watcher.run(&sql), sums, "sessions that have ended count");
}
