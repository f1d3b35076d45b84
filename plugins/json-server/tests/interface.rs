//! Streams, transactions, cursors, rows, counters, compression and caching, over sockets.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int64Type};
use arrow_ipc::reader::StreamReader;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use support::{Answer, Client, Machine, basic};

const NDJSON: &str = "Content-Type: text/plain\r\nAccept: application/x-ndjson\r\n";
const ARROW: &str = "Content-Type: text/plain\r\nAccept: application/vnd.apache.arrow.stream\r\n";

/// A table of `count` numbers with a text each.
fn numbers(client: &mut Client, count: usize) {
    client.sql(
        "CREATE DATABASE d; CREATE TABLE d.n (id INT PRIMARY KEY, v VARCHAR(100), d DECIMAL(9,2))",
    );
    let rows: Vec<Json> = (0..count).map(|n| json!([n, "x".repeat(50), "1.5"])).collect();
    let body = json!({ "sql": "INSERT INTO d.n VALUES (?, ?, ?)", "rows": rows });
    let answer = client.json("POST", "/1.0/sql", &body);
    assert_eq!(answer.json()["results"][0]["affected_rows"], count);
}

fn lines_of(answer: &Answer) -> Vec<Json> {
    let text = std::str::from_utf8(&answer.body).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn lines_stream_each_result() {
    let machine = Machine::start();
    let mut client = machine.client();
    numbers(&mut client, 5000);
    let sql =
        b"SELECT id, v FROM d.n ORDER BY id; DELETE FROM d.n WHERE id < 2; SELECT 1 FROM no.t";
    let answer = client.request("POST", "/1.0/sql", NDJSON, sql);
    assert_eq!(answer.header("transfer-encoding"), Some("chunked"));
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    let lines = lines_of(&answer);
    assert_eq!(lines[0]["columns"][0]["name"], "id");
    assert_eq!(lines[5000], json!([4999, "x".repeat(50)]));
    assert_eq!(lines[5001]["end"]["row_count"], 5000);
    assert_eq!(lines[5002]["end"]["affected_rows"], 2);
    assert_eq!(lines[5003]["error"]["sqlstate"], "42000");
    assert_eq!(lines.len(), 5004);
    // A failure before the first byte has its status.
    assert_eq!(client.request("POST", "/1.0/sql", NDJSON, b"SELECT 1 FROM no.t").status, 404);
    let small = client.request("POST", "/1.0/sql", NDJSON, b"SELECT 7");
    assert_eq!((small.status, lines_of(&small).len()), (200, 3));
}

#[test]
fn a_slow_reader_holds_back_the_statement_and_a_lost_one_ends_it() {
    let machine = Machine::start();
    let mut client = machine.client();
    numbers(&mut client, 1000);
    // A million rows, some 60 MB.
    let sql = "SELECT a.v, b.id FROM d.n a JOIN d.n b";
    let mut reader = machine.client();
    let head = format!(
        "POST /1.0/sql HTTP/1.1\r\nHost: x\r\n{}{NDJSON}Content-Length: {}\r\n\r\n{sql}",
        basic("root", "p"),
        sql.len()
    );
    reader.send(head.as_bytes());
    let mut start = [0; 64];
    reader.stream.read_exact(&mut start).unwrap();
    assert!(start.starts_with(b"HTTP/1.1 200"));
    let running =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT a.v%'";
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(client.sql(running)["results"][0]["rows"], json!([[1]]), "it waits for its reader");
    drop(reader);
    let deadline = Instant::now() + Duration::from_secs(20);
    while client.sql(running)["results"][0]["rows"] != json!([[0]]) {
        assert!(Instant::now() < deadline, "the statement of a lost client goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_client_that_leaves_cancels_its_statement() {
    let machine = Machine::start();
    let mut client = machine.client();
    let sql = "SELECT SLEEP(60)";
    let mut lost = machine.client();
    let head = format!(
        "POST /1.0/sql HTTP/1.1\r\nHost: x\r\n{}Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{sql}",
        basic("root", "p"),
        sql.len()
    );
    lost.send(head.as_bytes());
    let running =
        "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE 'SELECT SLEEP%'";
    let mut wait_for = |count: u64| {
        let deadline = Instant::now() + Duration::from_secs(20);
        while client.sql(running)["results"][0]["rows"] != json!([[count]]) {
            assert!(Instant::now() < deadline, "{count} statements expected");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for(1);
    drop(lost);
    wait_for(0);
}

#[test]
fn arrow_batches_keep_types() {
    let machine = Machine::start();
    let mut client = machine.client();
    numbers(&mut client, 6000);
    let sql = b"SELECT id, v, d, DATE'2020-02-03' day, NULL nothing FROM d.n ORDER BY id";
    let answer = client.request("POST", "/1.0/sql", ARROW, sql);
    assert_eq!(answer.status, 200);
    let reader = StreamReader::try_new(answer.body.as_slice(), None).unwrap();
    let types: Vec<String> =
        reader.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
    assert_eq!(types, ["Int64", "Utf8", "Decimal128(9, 2)", "Date32", "Utf8"]);
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 6000);
    assert!(batches.len() > 1);
    let first = &batches[0];
    assert_eq!(first.column(0).as_primitive::<Int64Type>().value(7), 7);
    assert_eq!(first.column(2).as_primitive::<Decimal128Type>().value(0), 150);
    assert_eq!(first.column(3).as_primitive::<arrow_array::types::Date32Type>().value(0), 18_295);
    let answer = client.request("POST", "/1.0/sql", ARROW, b"DELETE FROM d.n WHERE id < 3");
    let batch =
        StreamReader::try_new(answer.body.as_slice(), None).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.column(0).as_primitive::<arrow_array::types::UInt64Type>().value(0), 3);
    assert_eq!(client.request("POST", "/1.0/sql", ARROW, b"SELECT 1 FROM no.t").status, 404);
}

#[test]
fn rows_are_inserted_all_or_none() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT)");
    let insert = |rows: Json| json!({ "sql": "INSERT INTO d.t (v) VALUES (?)", "rows": rows });
    let answer = client.json("POST", "/1.0/sql", &insert(json!([[1], [2], [3]])));
    let result = &answer.json()["results"][0];
    assert_eq!((&result["affected_rows"], &result["last_insert_id"]), (&json!(3), &json!(1)));
    let body =
        json!({ "sql": "INSERT INTO d.t VALUES (?, ?)", "rows": [[10, 1], [11, 1], [10, 2]] });
    let answer = client.json("POST", "/1.0/sql", &body);
    assert_eq!((answer.status, &answer.json()["error"]["row"]), (409, &json!(2)));
    let answer = client.json("POST", "/1.0/sql", &insert(json!([[1], [2, 3]])));
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(1136)));
    assert_eq!(client.sql("SELECT COUNT(*) FROM d.t")["results"][0]["rows"], json!([[3]]));
    let answer = client.json("POST", "/1.0/sql", &insert(json!([])));
    assert_eq!(answer.json()["results"][0]["affected_rows"], 0);
}

#[test]
fn a_transaction_spans_requests() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)");
    let begun = client.json("POST", "/1.0/transactions", &json!({ "schema": "d" }));
    assert_eq!(begun.status, 200, "{:?}", begun.json());
    let begun = begun.json();
    let id = begun["id"].as_str().unwrap();
    let path = |rest: &str| format!("/1.0/transactions/{id}/{rest}");
    let text = "Content-Type: text/plain\r\n";
    let run =
        |client: &mut Client, sql: &str| client.request("POST", &path("sql"), text, sql.as_bytes());
    assert_eq!(run(&mut client, "INSERT INTO t VALUES (1)").status, 200);
    let rows = json!({ "sql": "INSERT INTO t VALUES (?)", "rows": [[2], [1]] });
    assert_eq!(client.json("POST", &path("sql"), &rows).status, 409);
    assert_eq!(run(&mut client, "SELECT * FROM t").json()["results"][0]["rows"], json!([[1]]));
    assert_eq!(client.sql("SELECT * FROM d.t")["results"][0]["rows"], json!([]));
    // A failing statement does not end it.
    assert_eq!(run(&mut client, "SELECT * FROM none").status, 404);
    assert_eq!(client.request("POST", &path("commit"), "", b"").status, 204);
    assert_eq!(client.sql("SELECT * FROM d.t")["results"][0]["rows"], json!([[1]]));
    assert_eq!(client.request("POST", &path("commit"), "", b"").status, 404);
    // Rolled back, and of nobody else.
    let begun = client.json("POST", "/1.0/transactions", &json!({ "isolation": "read-committed" }));
    let begun = begun.json();
    let id = begun["id"].as_str().unwrap();
    let path = |rest: &str| format!("/1.0/transactions/{id}/{rest}");
    let insert = b"INSERT INTO d.t VALUES (9)";
    assert_eq!(client.request("POST", &path("sql"), text, insert).status, 200);
    client.sql("CREATE USER u IDENTIFIED BY 'q'; GRANT ALL ON *.* TO u");
    let mut other = machine.client();
    other.login = basic("u", "q");
    assert_eq!(other.request("POST", &path("sql"), text, b"SELECT 1").status, 404);
    assert_eq!(client.request("POST", &path("rollback"), "", b"").status, 204);
    assert_eq!(client.sql("SELECT * FROM d.t")["results"][0]["rows"], json!([[1]]));
    let wrong = client.json("POST", "/1.0/transactions", &json!({ "isolation": "none; DROP" }));
    assert_eq!(wrong.status, 400);
    // Their number is bounded.
    let statuses: Vec<u16> =
        (0..17).map(|_| client.request("POST", "/1.0/transactions", "", b"").status).collect();
    assert_eq!((statuses[15], statuses[16]), (200, 429));
}

/// Begins a transaction; returns the path of its statements.
fn begin(client: &mut Client) -> String {
    let begun = client.json("POST", "/1.0/transactions", &json!({ "schema": "d" })).json();
    format!("/1.0/transactions/{}/sql", begun["id"].as_str().unwrap())
}

#[test]
fn a_transaction_that_ended_takes_no_more_statements() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, n INT); INSERT INTO d.t VALUES (1, 0), (2, 0)",
    );
    let text = "Content-Type: text/plain\r\n";
    let path = begin(&mut client);
    let answer = client.request("POST", &path, text, b"UPDATE t SET n = 1 WHERE id = 1; COMMIT");
    assert_eq!((answer.status, answer.header("x-squall-transaction")), (200, Some("ended")));
    assert_eq!(client.request("POST", &path, text, b"UPDATE t SET n = 9").status, 404);
    assert_eq!(client.sql("SELECT n FROM d.t")["results"][0]["rows"], json!([[1], [0]]));
    // Two that wait for each other: the one that the deadlock ends is over.
    let mut other = machine.client();
    let (mine, theirs) = (begin(&mut client), begin(&mut other));
    client.request("POST", &mine, text, b"UPDATE t SET n = 2 WHERE id = 1");
    other.request("POST", &theirs, text, b"UPDATE t SET n = 3 WHERE id = 2");
    let waiter = std::thread::spawn(move || {
        let status =
            other.request("POST", &theirs, text, b"UPDATE t SET n = 3 WHERE id = 1").status;
        (status, other.request("POST", &theirs, text, b"UPDATE t SET n = 4 WHERE id = 2").status)
    });
    let first = client.request("POST", &mine, text, b"UPDATE t SET n = 2 WHERE id = 2").status;
    let second = client.request("POST", &mine, text, b"UPDATE t SET n = 5 WHERE id = 1").status;
    let mut statuses = [(first, second), (0, 0)];
    let commit = mine.replace("/sql", "/commit");
    client.request("POST", &commit, "", b"");
    statuses[1] = waiter.join().unwrap();
    statuses.sort();
    assert_eq!(statuses, [(200, 200), (409, 404)]);
}

#[test]
fn a_cursor_gives_rows_in_portions() {
    let machine = Machine::start();
    let mut client = machine.client();
    numbers(&mut client, 1000);
    let body = json!({ "sql": "SELECT id FROM d.n WHERE id >= ? ORDER BY id", "parameters": [10] });
    let opened = client.json("POST", "/1.0/cursors", &body).json();
    assert_eq!(opened["columns"][0]["name"], "id");
    let path = format!("/1.0/cursors/{}", opened["id"].as_str().unwrap());
    let first = client.get(&format!("{path}?rows=300")).json();
    assert_eq!((&first["rows"][0], &first["rows"][299]), (&json!([10]), &json!([309])));
    assert_eq!((&first["row_count"], &first["done"]), (&json!(300), &json!(false)));
    assert_eq!(client.get(&format!("{path}?rows=0")).status, 400);
    let rest = client.get(&format!("{path}?rows=100000")).json();
    assert_eq!((&rest["row_count"], &rest["done"]), (&json!(690), &json!(true)));
    assert_eq!(client.get(&path).status, 404, "it ended with its last row");
    let opened = client.json("POST", "/1.0/cursors", &body).json();
    let path = format!("/1.0/cursors/{}", opened["id"].as_str().unwrap());
    assert_eq!(client.request("DELETE", &path, "", b"").status, 204);
    assert_eq!(client.get(&path).status, 404);
    let body = json!({ "sql": "DELETE FROM d.n" });
    assert_eq!(client.json("POST", "/1.0/cursors", &body).status, 400);
    assert_eq!(client.sql("SELECT COUNT(*) FROM d.n")["results"][0]["rows"], json!([[1000]]));
}

#[test]
fn counters_have_a_history() {
    let machine = Machine::start();
    let mut client = machine.client();
    let before = client.get("/1.0/live").json();
    (0..10).for_each(|_| drop(client.sql("SELECT 1")));
    let after = client.get("/1.0/live").json();
    let selects = |json: &Json| json["values"]["Com_select"].as_u64().unwrap();
    assert!(selects(&after) >= selects(&before) + 10);
    assert!(after["values"]["Threads_connected"].as_u64().unwrap() > 0);
    assert!(after["values"]["Resident_bytes"].as_u64().unwrap() > 1 << 20);
    std::thread::sleep(Duration::from_millis(2500));
    let history = client.get("/1.0/live/history?seconds=60").json();
    let names = history["names"].as_array().unwrap().len();
    let samples = history["samples"].as_array().unwrap();
    assert!(samples.len() >= 2, "{history}");
    assert!(samples.iter().all(|sample| sample.as_array().unwrap().len() == names + 1));
    assert_eq!(client.get("/1.0/live/history?seconds=x").status, 400);
}

#[test]
fn answers_and_bodies_are_compressed() {
    let machine = Machine::start();
    let mut client = machine.client();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"SELECT REPEAT('a', 100000)").unwrap();
    let body = encoder.finish().unwrap();
    for (accept, streamed) in [("", false), ("Accept: application/x-ndjson\r\n", true)] {
        let headers = format!(
            "Content-Type: text/plain\r\nContent-Encoding: gzip\r\nAccept-Encoding: br, gzip\r\n{accept}"
        );
        let answer = client.request("POST", "/1.0/sql", &headers, &body);
        assert_eq!(answer.header("content-encoding"), Some("gzip"));
        assert!(answer.body.len() < 2000);
        let mut text = String::new();
        GzDecoder::new(answer.body.as_slice()).read_to_string(&mut text).unwrap();
        assert!(text.contains(&"a".repeat(100_000)));
        assert_eq!(answer.header("transfer-encoding").is_some(), streamed);
    }
    let plain = client.request(
        "POST",
        "/1.0/sql",
        "Accept-Encoding: gzip;q=0\r\n",
        b"{\"sql\":\"SELECT REPEAT('a', 9999)\"}",
    );
    assert_eq!((plain.status, plain.header("content-encoding")), (200, None));
}

#[test]
fn a_known_answer_is_not_sent_again() {
    let machine = Machine::start();
    let mut client = machine.client();
    for path in ["/", "/version", "/1.0/me"] {
        let answer = client.get(path);
        assert_eq!(answer.status, 200, "{path}");
        let tag = answer.header("etag").unwrap().to_owned();
        let again = client.request("GET", path, &format!("If-None-Match: {tag}\r\n"), b"");
        assert_eq!((again.status, again.body.len()), (304, 0), "{path}");
        let other = client.request("GET", path, "If-None-Match: \"x\"\r\n", b"");
        assert_eq!(other.status, 200);
    }
    assert_eq!(client.get("/1.0/live").header("etag"), None);
}

#[test]
fn pages_of_elsewhere_are_refused() {
    let machine = Machine::start();
    let mut client = machine.client();
    let text = "Content-Type: text/plain\r\n";
    let evil = format!("{text}Origin: http://evil.example\r\n");
    assert_eq!(client.request("POST", "/sql", &evil, b"SELECT 1").status, 403);
    assert_eq!(
        client.request("OPTIONS", "/sql", "Origin: http://evil.example\r\n", b"").status,
        405
    );
    let own = format!("{text}Origin: http://localhost\r\n");
    let answer = client.request("POST", "/sql", &own, b"SELECT 1");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (200, None));
    client.sql("SET GLOBAL json_server_allowed_origins = 'http://good.example'");
    let good = "Origin: http://good.example\r\n";
    let answer = client.request("POST", "/sql", &format!("{text}{good}"), b"SELECT 1");
    assert_eq!(answer.header("access-control-allow-origin"), Some("http://good.example"));
    assert_eq!(client.request("OPTIONS", "/sql", good, b"").status, 204);
    assert_eq!(client.request("POST", "/sql", &evil, b"SELECT 1").status, 403);
}
