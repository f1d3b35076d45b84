//! Requests over sockets against a server in this process.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use serde_json::{Value as Json, json};
use support::{Machine, basic};

#[test]
fn statements_answer_with_types() {
    let machine = Machine::start();
    let mut client = machine.client();
    let answer = client.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id BIGINT PRIMARY KEY, v VARCHAR(10), d DECIMAL(10,2), \
         j JSON, b VARBINARY(5), at DATETIME); \
         INSERT INTO d.t VALUES (1, 'é\"', 1.5, '{\"a\": [1]}', x'ff00', '2026-01-02 03:04:05'), \
         (9007199254740993, NULL, NULL, NULL, NULL, NULL)",
    );
    assert_eq!(answer["results"][2]["affected_rows"], 2);
    let answer = client.sql("SELECT * FROM d.t ORDER BY id; SELECT COUNT(*) n FROM d.t");
    let first = &answer["results"][0];
    let names: Vec<&str> =
        first["columns"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["id", "v", "d", "j", "b", "at"]);
    assert_eq!(first["columns"][0]["type"], "bigint");
    assert_eq!(first["columns"][4]["encoding"], "base64");
    let row = json!([1, "é\"", "1.50", {"a": [1]}, "/wA=", "2026-01-02 03:04:05"]);
    assert_eq!(first["rows"][0], row);
    assert_eq!(first["rows"][1][0], "9007199254740993");
    assert_eq!(first["row_count"], 2);
    assert_eq!(answer["results"][1]["rows"], json!([[2]]));
}

#[test]
fn parameters_are_values_and_never_text() {
    let machine = Machine::start();
    let mut client = machine.client();
    let evil = "'; DROP DATABASE mysql; --";
    let body =
        json!({ "sql": "SELECT ? AS a, ? + 1 AS b, ? AS c", "parameters": [evil, 41, null] });
    let answer = client.json("POST", "/1.0/sql", &body);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["results"][0]["rows"], json!([[evil, 42, null]]));
    let body = json!({ "sql": "SELECT ?, ?", "parameters": [1] });
    assert_eq!(client.json("POST", "/1.0/sql", &body).status, 400);
    let body = json!({ "sql": "SELECT 1", "nonsense": 1 });
    assert_eq!(client.json("POST", "/1.0/sql", &body).status, 400);
}

#[test]
fn errors_have_a_status_and_keep_the_results_before() {
    let machine = Machine::start();
    let mut client = machine.client();
    let text = "Content-Type: text/plain\r\n";
    let answer = client.request("POST", "/1.0/sql", text, b"SELECT 1; SELECT * FROM no.t");
    assert_eq!(answer.status, 404);
    let body = answer.json();
    assert_eq!(body["error"]["sqlstate"], "42000");
    assert_eq!(body["results"][0]["rows"], json!([[1]]));
    assert_eq!(client.request("POST", "/1.0/sql", text, b"SELEC").status, 400);
    assert_eq!(client.request("POST", "/1.0/sql", text, b"\xff").status, 400);
    assert_eq!(client.request("POST", "/1.0/sql", "Content-Type: image/png\r\n", b"x").status, 415);
    assert_eq!(client.get("/1.0/nothing").status, 404);
    let answer = client.get("/1.0/sql");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
}

#[test]
fn a_request_leaves_nothing_for_the_next_one() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.sql("CREATE DATABASE d; USE d; SET @x = 1; BEGIN; CREATE TEMPORARY TABLE d.u (a INT)");
    let answer = client.sql("SELECT DATABASE(), @x");
    assert_eq!(answer["results"][0]["rows"][0][0], Json::Null);
    assert_eq!(answer["results"][0]["rows"][0][1], Json::Null);
    assert_eq!(client.sql("SELECT * FROM d.u")["error"]["code"], 1146);
    let body = json!({ "sql": "SELECT DATABASE()", "schema": "d" });
    assert_eq!(client.json("POST", "/1.0/sql", &body).json()["results"][0]["rows"], json!([["d"]]));
    let body = json!({ "sql": "SELECT 1", "schema": "none" });
    assert_eq!(client.json("POST", "/1.0/sql", &body).status, 404);
}

#[test]
fn nobody_gets_in_without_a_password() {
    let machine = Machine::start();
    let mut client = machine.client();
    for login in [
        "",
        "Authorization: Basic ????\r\n",
        "Authorization: Bearer x\r\n",
        &basic("root", ""),
        &basic("root", "P"),
        &basic("nobody", "p"),
    ] {
        client.login = login.to_owned();
        let answer =
            client.request("POST", "/1.0/sql", "Content-Type: text/plain\r\n", b"SELECT 1");
        assert_eq!(answer.status, 401, "{login}");
        assert!(answer.header("www-authenticate").is_some());
    }
    // The console has a log-in form of its own: the browser must not open another window for it.
    client.login = String::new();
    let answer = client.request("GET", "/1.0/me", "X-Squall: 1\r\n", b"");
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, None));
    // Another address could log in; this one has to wait after many failures.
    client.login = basic("root", "wrong");
    let codes: Vec<u16> = (0..30).map(|_| client.get("/1.0/me").status).collect();
    assert_eq!(codes.last(), Some(&429));
}

#[test]
fn tokens_replace_passwords_until_logout() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.login.clear();
    let wrong = json!({ "user": "root", "password": "x" });
    assert_eq!(client.json("POST", "/1.0/login", &wrong).status, 401);
    let right = json!({ "user": "root", "password": "p" });
    let answer = client.json("POST", "/1.0/login", &right);
    assert_eq!(answer.status, 200);
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"));
    client.login = format!("Authorization: Bearer {token}\r\n");
    let me = client.get("/1.0/me").json();
    assert_eq!((&me["user"], &me["account"]), (&json!("root"), &json!("root@localhost")));
    client.login = format!("Cookie: squall_session={token}\r\n");
    assert_eq!(client.get("/1.0/me").status, 200);
    let text = "Content-Type: text/plain\r\n";
    assert_eq!(client.request("POST", "/1.0/sql", text, b"SELECT 1").status, 403);
    let text = "Content-Type: text/plain\r\nX-Squall: 1\r\n";
    assert_eq!(client.request("POST", "/1.0/sql", text, b"SELECT 1").status, 200);
    assert_eq!(client.request("DELETE", "/1.0/login", "X-Squall: 1\r\n", b"").status, 204);
    assert_eq!(client.get("/1.0/me").status, 401);
}

#[test]
fn a_changed_password_ends_tokens_and_remembered_log_ins() {
    let machine = Machine::start();
    let mut root = machine.client();
    root.sql("CREATE USER u IDENTIFIED BY 'one'");
    let mut client = machine.client();
    client.login = basic("u", "one");
    assert_eq!(client.get("/1.0/me").status, 200);
    let answer = client.json("POST", "/1.0/login", &json!({ "user": "u", "password": "one" }));
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    root.sql("ALTER USER u IDENTIFIED BY 'two'");
    assert_eq!(client.get("/1.0/me").status, 401);
    client.login = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(client.get("/1.0/me").status, 401);
    client.login = basic("u", "two");
    assert_eq!(client.get("/1.0/me").status, 200);
    let denied = client.request(
        "POST",
        "/1.0/sql",
        "Content-Type: text/plain\r\n",
        b"SELECT * FROM mysql.user",
    );
    assert_eq!(denied.status, 403);
}

#[test]
fn a_statement_is_cancelled_by_its_id() {
    let machine = Machine::start();
    let mut client = machine.client();
    let mut other = machine.client();
    let runner = std::thread::spawn(move || {
        client.json("POST", "/1.0/sql", &json!({ "sql": "DO SLEEP(20)", "id": "mine" }))
    });
    let mut status = 404;
    while status == 404 {
        status = other.request("DELETE", "/1.0/statements/mine", "", b"").status;
    }
    assert_eq!(status, 204);
    let answer = runner.join().unwrap();
    assert!(answer.json()["duration_us"].as_u64().is_none_or(|took| took < 10_000_000));
    assert_eq!(other.request("DELETE", "/1.0/statements/mine", "", b"").status, 404);
}

#[test]
fn long_results_are_cut_where_the_caller_says() {
    let machine = Machine::start();
    let mut client = machine.client();
    let sql = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 100) SELECT i FROM n";
    let answer = client.json("POST", "/1.0/sql", &json!({ "sql": sql, "max_rows": 10 })).json();
    let result = &answer["results"][0];
    assert_eq!(result["rows"].as_array().unwrap().len(), 10);
    assert_eq!((&result["row_count"], &result["truncated"]), (&json!(100), &json!(true)));
}

#[test]
fn the_console_is_served_without_a_password() {
    let machine = Machine::start();
    let mut client = machine.client();
    client.login.clear();
    let answer = client.get("/");
    assert_eq!(answer.status, 200);
    assert!(String::from_utf8_lossy(&answer.body).to_lowercase().contains("<html"));
    let policy = answer.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"));
    let tag = format!("If-None-Match: {}\r\n", answer.header("etag").unwrap());
    assert_eq!(client.request("GET", "/", &tag, b"").status, 304);
    let page = client.get("/docs/quick-start.html");
    assert!(String::from_utf8_lossy(&page.body).contains("<h1 id=\"quick-start\">"));
    assert_eq!(page.header("content-security-policy"), Some(policy));
    assert_eq!((client.get("/docs/").status, client.get("/docs/book.css").status), (200, 200));
    for path in [
        "/docs/../Cargo.toml",
        "/docs/nothing",
        "/../Cargo.toml",
        "/%2e%2e/Cargo.toml",
        "//etc/passwd",
        "/index.html/x",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

/// The calls of Drizzle's JSON server 0.3.
#[test]
fn version_0_3_answers_as_drizzle_did() {
    let machine = Machine::start();
    let mut client = machine.client();
    let version = json!({ "json_server_version": "0.3", "version": "9.7.0-Squall-test" });
    for path in ["/version", "/latest/version", "/0.1/version", "/0.2/version", "/0.3/version"] {
        assert_eq!(client.get(path).json(), version, "{path}");
    }
    for path in ["/sql", "/latest/sql", "/0.1/sql", "/0.2/sql", "/0.3/sql"] {
        let answer = client.request("POST", path, "", b"SELECT 1,2").json();
        let wanted =
            json!({ "query": "SELECT 1,2", "result_set": [["1", "2"]], "sqlstate": "00000" });
        assert_eq!(answer, wanted, "{path}");
    }
    let answer = client.request("POST", "/sql", "", b"SELECT * FROM no.t").json();
    assert_eq!(
        (&answer["sqlstate"], &answer["error_type"]),
        (&json!("42000"), &json!("sql error"))
    );
    assert!(answer["error_message"].as_str().unwrap().contains("no"));
    documents_of_version_0_3(&mut client);
}

fn documents_of_version_0_3(client: &mut support::Client) {
    let create = json!({ "query": { "name": "json" } });
    let done = |query: &Json| json!({ "query": query, "sqlstate": "00000" });
    let answer = client.json("POST", "/json/ddl/schema/create", &create).json();
    assert_eq!(answer, done(&create["query"]));
    let put = json!({ "query": { "_id": 2, "document": { "firstname": "Henrik", "age": 39 } } });
    for path in ["/json?schema=json&table=people", "/latest/json?schema=json&table=people"] {
        assert_eq!(client.json("POST", path, &put).json(), done(&put["query"]));
    }
    let more = json!({ "query": { "document": { "firstname": "Ann", "mentions": ["a", "b"] } } });
    assert_eq!(
        client.json("PUT", "/0.3/json?schema=json&table=people", &more).json(),
        done(&more["query"])
    );
    let one = json!({ "_id": 2, "document": { "firstname": "Henrik", "age": 39 } });
    let answer = client.get("/json?schema=json&table=people&_id=2").json();
    assert_eq!(answer["result_set"], json!([one]));
    let by_query =
        "/0.3/json?schema=json&table=people&query=%7B%22query%22%3A%7B%22_id%22%3A2%7D%7D";
    let answer = client.get(&format!("{by_query}&_id=99")).json();
    assert_eq!(answer, json!({ "query": { "_id": 2 }, "result_set": [one], "sqlstate": "00000" }));
    let answer = client.get("/latest/json?schema=json&table=people").json();
    let rows = answer["result_set"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(
        rows[1],
        json!({ "_id": 3, "document": { "firstname": "Ann", "mentions": ["a", "b"] } })
    );
    let answer = client.get("/json?schema=json");
    assert_eq!(answer.status, 404);
    assert!(String::from_utf8_lossy(&answer.body).contains("table must be specified"));
    let answer = client.request("DELETE", "/json?schema=json&table=people&_id=3", "", b"");
    assert_eq!(answer.json()["sqlstate"], "00000");
    let rows = client.get("/json?schema=json&table=people").json();
    assert_eq!(rows["result_set"], json!([one]));
    let answer = client.request("DELETE", "/json?schema=json&table=people", "", b"");
    assert_eq!(answer.status, 404);
    assert!(String::from_utf8_lossy(&answer.body).contains("_id must be specified"));
    let answer = client.get("/json?schema=json&table=none").json();
    assert_eq!(answer["sqlstate"], "42S02");
    assert_eq!(
        client.json("POST", "/0.3/json/ddl/schema/drop", &create).json(),
        done(&create["query"])
    );
}
