//! Sessions serve one request after another: nothing of one may be seen by the next, and no change of the server be missed.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use serde_json::{Value as Json, json};
use support::{Client, Machine, basic};

/// A statement with a parameter, which stays prepared. Run often, it becomes one that the reading thread runs.
fn with_parameter(client: &mut Client, sql: &str, parameter: Json) -> Json {
    let body = json!({ "sql": sql, "parameters": [parameter] });
    client.json("POST", "/1.0/sql", &body).json()
}

fn rows(answer: &Json) -> &Json {
    let rows = &answer["results"][0]["rows"];
    assert!(rows.is_array(), "{answer}");
    rows
}

/// What a request can see of its session.
const LOOKS: &[&str] = &[
    "SELECT ?, @x, @y",
    "SELECT ?, @@sql_mode, @@autocommit, @@time_zone, @@sql_select_limit, @@foreign_key_checks",
    "SELECT ?, @@transaction_isolation, @@transaction_read_only",
    "SELECT ?, @@character_set_client, @@character_set_results, @@collation_connection",
    "SELECT ?, LAST_INSERT_ID(), FOUND_ROWS(), ROW_COUNT(), @@insert_id",
    "SELECT ?, @@warning_count, @@error_count",
    "SELECT ?, DATABASE(), CURRENT_ROLE()",
    "SELECT ?, IS_USED_LOCK('l'), IS_FREE_LOCK('l')",
    "SELECT ?, @@timestamp > 1000",
    "SELECT ?, COUNT(*) FROM d.t",
];

fn looks(client: &mut Client) -> Vec<Json> {
    let mut seen: Vec<Json> =
        LOOKS.iter().map(|sql| rows(&with_parameter(client, sql, json!(1))).clone()).collect();
    seen.push(rows(&client.sql("SHOW WARNINGS")).clone());
    seen.push(rows(&client.sql("SELECT @x, LAST_INSERT_ID(), @@warning_count")).clone());
    seen.push(client.sql("SELECT * FROM d.hidden")["error"]["code"].clone());
    seen.push(client.sql("EXECUTE stored")["error"]["code"].clone());
    seen
}

fn prepared() -> Machine {
    let machine = Machine::start();
    let mut client = machine.client();
    let made = client.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (a INT AUTO_INCREMENT PRIMARY KEY, b INT); \
         INSERT INTO d.t (b) VALUES (1), (2); CREATE ROLE r; GRANT r TO root@localhost",
    );
    assert!(made.get("error").is_none(), "{made}");
    machine
}

#[test]
fn nothing_of_a_request_is_seen_by_the_next() {
    let machine = prepared();
    let mut client = machine.client();
    // Often enough that the statements are prepared and known as short.
    let before = (0..5).map(|_| looks(&mut client)).last().unwrap();
    for left in [
        "SET @x = 1, @y = 'a'",
        "SELECT 1 INTO @x",
        "SET SESSION sql_mode = 'ANSI'",
        "SET autocommit = 0; INSERT INTO d.t (b) VALUES (9)",
        "SET time_zone = '+05:00', sql_select_limit = 1, foreign_key_checks = 0",
        "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY",
        "SET NAMES latin1",
        "SET timestamp = 1",
        "SET insert_id = 77",
        "SELECT LAST_INSERT_ID(5)",
        "START TRANSACTION; INSERT INTO d.t (b) VALUES (9)",
        "START TRANSACTION; SELECT * FROM d.t FOR UPDATE",
        "CREATE TEMPORARY TABLE d.hidden (a INT)",
        "CREATE TEMPORARY TABLE d.t (a INT); INSERT INTO d.t VALUES (1), (2), (3)",
        "USE d",
        "SET ROLE r",
        "SET ROLE NONE",
        "DO GET_LOCK('l', 0)",
        "LOCK TABLES d.t WRITE",
        "FLUSH TABLES WITH READ LOCK",
        "PREPARE stored FROM 'SELECT 1'",
        "SELECT CAST('x' AS SIGNED), 1/0",
        "SELECT * FROM nothing.at_all",
        "SELECT SQL_CALC_FOUND_ROWS * FROM d.t LIMIT 1",
        "XA START 'x'; INSERT INTO d.t (b) VALUES (9)",
        "INSERT INTO d.t (a, b) VALUES (1, 1)",
        "SET SESSION max_execution_time = 1000; SET @x = 2; SELECT 1",
    ] {
        let answer = client.sql(left);
        assert_eq!(looks(&mut client), before, "after {left}: {answer}");
        let mut other = machine.client();
        let written = other.sql("INSERT INTO d.t (b) VALUES (3); DELETE FROM d.t WHERE b = 3");
        assert!(written.get("error").is_none(), "{left} holds something: {written}");
        assert_eq!(looks(&mut client), before, "after {left}");
    }
}

#[test]
fn seeds_of_random_numbers_do_not_outlive_their_request() {
    let machine = prepared();
    let mut client = machine.client();
    // The first number after them is 5 / 2^30.
    let given = "SET rand_seed1 = 1, rand_seed2 = 2";
    let small = "SELECT ?, RAND() < 1e-8";
    for _ in 0..6 {
        let both = client.sql(&format!("{given}; SELECT RAND() < 1e-8"));
        assert_eq!(both["results"][1]["rows"], json!([[1]]), "{both}");
        client.sql(given);
        assert_eq!(*rows(&with_parameter(&mut client, small, json!(1))), json!([[1, 0]]));
    }
}

#[test]
fn what_a_statement_with_parameters_leaves_is_gone_too() {
    let machine = prepared();
    let mut client = machine.client();
    let before = (0..5).map(|_| looks(&mut client)).last().unwrap();
    for (left, parameter) in [
        ("SELECT @x := ?", json!(1)),
        ("SELECT LAST_INSERT_ID(?)", json!(9)),
        ("SELECT GET_LOCK('l', ?)", json!(0)),
        ("SELECT CAST(? AS SIGNED)", json!("x")),
        ("SELECT * FROM d.t WHERE a > ? FOR UPDATE", json!(0)),
        ("SET @x = ?", json!(3)),
        ("SELECT ? INTO @x", json!(3)),
    ] {
        for _ in 0..6 {
            with_parameter(&mut client, left, parameter.clone());
            assert_eq!(looks(&mut client), before, "after {left}");
        }
    }
}

#[test]
fn changes_of_the_server_are_seen_at_once() {
    let machine = prepared();
    let mut client = machine.client();
    let mut ask = |sql: &str| {
        let mut answers = (0..6).map(|_| with_parameter(&mut client, sql, json!(1)));
        answers.next_back().unwrap()
    };
    let mut root = machine.client();
    let all = "SELECT * FROM d.t WHERE a = ?";
    assert_eq!(*rows(&ask(all)), json!([[1, 1]]));
    root.sql("ALTER TABLE d.t ADD COLUMN c INT DEFAULT 7");
    assert_eq!(*rows(&ask(all)), json!([[1, 1, 7]]));
    root.sql("UPDATE d.t SET c = 8 WHERE a = 1");
    assert_eq!(*rows(&ask(all)), json!([[1, 1, 8]]));
    root.sql("DROP TABLE d.t");
    assert_eq!(ask(all)["error"]["code"], 1146);
    let limit = "SELECT ?, @@sql_select_limit";
    assert_ne!(*rows(&ask(limit)), json!([[1, 5]]));
    root.sql("SET GLOBAL sql_select_limit = 5");
    assert_eq!(*rows(&ask(limit)), json!([[1, 5]]));
}

#[test]
fn changes_of_an_account_are_seen_at_once() {
    let machine = prepared();
    let mut root = machine.client();
    root.sql("CREATE USER u IDENTIFIED BY 'one'; GRANT SELECT ON d.* TO u; GRANT r TO u");
    let mut client = machine.client();
    client.login = basic("u", "one");
    let mut status = |login: &str, sql: &str| {
        client.login = login.to_owned();
        let body = json!({ "sql": sql, "parameters": [1] });
        let codes = (0..6).map(|_| client.json("POST", "/1.0/sql", &body).status);
        codes.collect::<Vec<_>>()
    };
    let (one, read) = (basic("u", "one"), "SELECT b FROM d.t WHERE a = ?");
    assert_eq!(status(&one, read), [200; 6]);
    root.sql("REVOKE SELECT ON d.* FROM u");
    assert_eq!(status(&one, read), [403; 6]);
    root.sql("GRANT SELECT ON d.* TO r; SET DEFAULT ROLE r TO u");
    assert_eq!(status(&one, read), [200; 6]);
    root.sql("ALTER USER u ACCOUNT LOCK");
    assert_eq!(status(&one, read), [403; 6]);
    root.sql("ALTER USER u IDENTIFIED BY 'two' ACCOUNT UNLOCK");
    assert_eq!(status(&one, read), [401; 6]);
    let two = basic("u", "two");
    assert_eq!(status(&two, read), [200; 6]);
    root.sql("DROP USER u");
    assert_eq!(status(&two, read), [401; 6]);
    // Another account with the same name starts without anything of the old one.
    root.sql("CREATE USER u IDENTIFIED BY 'two'");
    assert_eq!(status(&two, read), [403; 6]);
}

#[test]
fn accounts_do_not_share_sessions() {
    let machine = prepared();
    let mut client = machine.client();
    client.sql("CREATE USER u IDENTIFIED BY 'u'; CREATE USER v IDENTIFIED BY 'v'");
    for round in 0..20 {
        let name = ["u", "v"][round % 2];
        client.login = basic(name, name);
        let answer = with_parameter(&mut client, "SELECT ?, CURRENT_USER()", json!(round));
        assert_eq!(*rows(&answer), json!([[round, format!("{name}@%")]]));
    }
}

#[test]
fn a_statement_that_waits_on_a_reading_thread_lets_others_run() {
    let machine = prepared();
    let mut client = machine.client();
    // Short so far: the next run may be on a thread that reads requests.
    let sql = "SELECT b FROM d.t WHERE a = 1 AND SLEEP(?) = 0";
    for _ in 0..6 {
        assert_eq!(*rows(&with_parameter(&mut client, sql, json!(0))), json!([[1]]));
    }
    let sleepers: Vec<_> = (0..8)
        .map(|_| {
            let mut client = machine.client();
            std::thread::spawn(move || with_parameter(&mut client, sql, json!(1.5)))
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let started = std::time::Instant::now();
    for number in 0..20 {
        let answer = with_parameter(&mut machine.client(), "SELECT ?", json!(number));
        assert_eq!(*rows(&answer), json!([[number]]));
    }
    assert!(started.elapsed().as_millis() < 1000, "{:?}", started.elapsed());
    for sleeper in sleepers {
        assert_eq!(*rows(&sleeper.join().unwrap()), json!([[1]]));
    }
}
