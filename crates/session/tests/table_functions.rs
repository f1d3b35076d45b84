//! Table functions of plugins, and HTTP from SQL.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use errors::Result;
use plugin_api::kit::{self, json_type, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, Plugin, PluginInfo, Registrar,
    TableFunction,
};
use support::{Client, Harness};
use types::{DataType, JsonValue, Value};

struct Tables;

impl Plugin for Tables {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("tables", "A table function of this test.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let rows = scalar("SERIES", Arity::between(1, 2), "", bind).volatile();
        registrar.table_function(TableFunction { rows, columns });
    }
}

fn columns() -> Vec<(&'static str, DataType)> {
    vec![
        ("n", DataType::bigint()),
        ("half", DataType::decimal(10, 1)),
        ("word", DataType::varchar(20, types::CollationId::UTF8MB4_0900_AI_CI)),
    ]
}

/// `SERIES(last [, word])`: counts its calls in `@calls`.
fn bind(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![Coercion::Integer, Coercion::Text];
    Ok(BoundFunction::new(json_type(), coercions, |ctx, args| {
        let calls =
            ctx.session.user_variable("calls").map_or(0, |(value, _)| kit::integer_i64(&value));
        ctx.session.set_user_variable("calls", Value::Int(calls + 1), DataType::bigint());
        let row = |n: i64| {
            let word =
                args.get(1).map_or(JsonValue::Null, |word| JsonValue::string(kit::bytes(word)));
            JsonValue::Array(vec![JsonValue::Int(n), JsonValue::Double(n as f64 / 2.0), word])
        };
        let rows = (1..=kit::integer_i64(&args[0])).map(row).collect();
        kit::json_document(&JsonValue::Array(rows))
    }))
}

fn client(harness: &Harness) -> Client {
    let mut root = harness.root();
    root.setup("SET @calls = 0");
    root
}

#[test]
fn the_rows_of_a_function_are_a_table() {
    let harness = Harness::with(vec![Box::new(functions_json::JsonFunctions), Box::new(Tables)]);
    let mut root = client(&harness);
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(10))
         INSERT INTO t1 VALUES (0, 'none'), (1, 'one'), (2, 'two')",
    );
    root.check(&[
        ("SELECT * FROM series(3)", "1|0.5|NULL\n2|1.0|NULL\n3|1.5|NULL"),
        ("SELECT s.n, word FROM series(2, 'x') AS s WHERE s.n > 1", "2|x"),
        ("SELECT SUM(series.n) FROM `series`(100)", "5050"),
        ("SELECT COUNT(*) FROM series(NULL)", "0"),
        ("SELECT @calls", "3"),
        // Its arguments may be columns of tables before it, as with JSON_TABLE.
        ("SELECT a, n, word FROM t1, series(a, b) s ORDER BY a, n", "1|1|one\n2|1|two\n2|2|two"),
        ("SELECT a, n FROM t1 LEFT JOIN series(a) s ON TRUE WHERE a < 2 ORDER BY a", "0|NULL\n1|1"),
        ("SELECT a FROM t1 WHERE a IN (SELECT n FROM series(1))", "1"),
        ("SET @calls = 0", "ok 0"),
        // One call, however often its rows are read.
        ("SELECT COUNT(*) FROM t1 JOIN series(2) s ON s.n <> a", "4"),
        ("SELECT @calls", "1"),
        ("CREATE VIEW v AS SELECT n FROM series(2) s", "ok 0"),
        ("SELECT * FROM v", "1\n2"),
        ("INSERT INTO t1 SELECT n + 10, word FROM series(2, 'w') s", "ok 2"),
        ("SELECT COUNT(*) FROM t1", "5"),
        ("PREPARE p FROM 'SELECT MAX(n) FROM series(?) s'", "ok 0"),
        ("SET @n = 7", "ok 0"),
        ("EXECUTE p USING @n", "7"),
        ("SELECT series(1)", "[[1, 0.5, null]]"),
    ]);
    root.refuse(&[
        ("SELECT * FROM nothing(1)", 1305),
        ("SELECT * FROM abs(1)", 1305),
        ("SELECT * FROM series()", 1582),
        ("SELECT * FROM series(1, 2, 3)", 1582),
        ("SELECT * FROM series(a), t1", 1054),
        ("SELECT x FROM series(1)", 1054),
        ("SELECT * FROM series(1", 1064),
    ]);
    assert!(
        root.run("EXPLAIN FORMAT=TRADITIONAL SELECT * FROM series(1)")
            .contains("Table function: series")
    );
}

/// Answers each request with its method, its path, one of its headers and its body; never one for `/never`.
fn serve() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let (mut first, mut length, mut key, mut line) =
                (String::new(), 0, String::new(), String::new());
            let _ = reader.read_line(&mut first);
            while reader.read_line(&mut line).is_ok() && !line.trim().is_empty() {
                let (name, value) = line.trim().split_once(':').expect("a header");
                match &*name.to_ascii_lowercase() {
                    "content-length" => length = value.trim().parse().expect("a number"),
                    "x-key" | "content-type" => key += value,
                    _ => {}
                }
                line.clear();
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let mut words = first.split(' ');
            let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
            if path == "/never" {
                kept.push(stream);
                continue;
            }
            let status = if path == "/missing" { "404 Not Found" } else { "200 OK" };
            let text = format!("{method} {path}{key} {}", String::from_utf8_lossy(&body));
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nX-Seen: yes\r\nX-Seen: again\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
        }
    });
    address
}

fn http_harness() -> Harness {
    let harness = Harness::with(vec![
        Box::new(functions_json::JsonFunctions),
        Box::new(http_functions::HttpFunctions),
    ]);
    harness.root().setup("INSTALL PLUGIN http_functions");
    harness
}

#[test]
fn http_from_sql() {
    let (harness, address) = (http_harness(), serve());
    let mut root = harness.root();
    root.setup(&format!("SET @u = 'http://{address}'"));
    let refused = root.run("SELECT http_get(CONCAT(@u, '/a'))");
    assert!(
        refused.starts_with(
            "error 3200: http_get UDF failed; '127.0.0.1' is not among http_allowed_hosts"
        ),
        "{refused}"
    );
    root.setup("SET GLOBAL http_allowed_hosts = '127.0.0.1'");
    root.check(&[
        ("SELECT http_get(CONCAT(@u, '/a?b'))", "GET /a?b "),
        ("SELECT http_get(NULL), http_post(NULL, 'x'), http_post(@u, NULL)", "NULL|NULL|NULL"),
        ("SELECT http_post(@u, 'body')", "POST / text/plain; charset=utf-8 body"),
        ("SELECT http_put(CONCAT(@u, '/p'), '<a/>', 'text/xml')", "PUT /p text/xml <a/>"),
        ("SELECT http_post(@u, JSON_OBJECT('a', 1))", "POST / application/json {\"a\": 1}"),
        ("SELECT http_delete(CONCAT(@u, '/d'))", "DELETE /d "),
        ("SELECT status, body FROM http(CONCAT(@u, '/missing'))", "404|GET /missing "),
        ("SELECT status, headers->>'$.\"x-seen\"' FROM http(CONCAT(@u, '/h')) AS h", "200|yes, again"),
        (
            "SELECT body FROM http(@u, 'patch', 'data', '{\"X-Key\": \"k\", \"Content-Type\": \"a/b\"}')",
            "PATCH / k a/b data",
        ),
        ("SELECT COUNT(*) FROM http(NULL)", "0"),
        ("SELECT p, body FROM (SELECT '/x' AS p UNION ALL SELECT '/y') t, http(CONCAT(@u, p)) h", "/x|GET /x \n/y|GET /y "),
    ]);
    let missing = root.run("SELECT http_get(CONCAT(@u, '/missing'))");
    assert_eq!(missing, "error 3200: http_get UDF failed; the server answered 404 Not Found");
    let dead = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound");
    root.refuse(&[
        (&*format!("SELECT http_get('http://{dead}/')"), 3200),
        ("SELECT http_get(CONCAT(@u, '/a b'))", 3200),
        ("SELECT http_get('http://u:p@127.0.0.1/')", 3200),
        ("SELECT http_get('file:///etc/passwd')", 3200),
        ("SELECT http_post(@u, 'x', 'text/plain\\r\\nX-Evil: 1')", 3200),
        ("SELECT * FROM http(@u, 'TRACE')", 3200),
        ("SELECT * FROM http(@u, 'GET', NULL, '{\"Host\": \"evil\"}')", 3200),
        ("SELECT * FROM http(@u, 'GET', NULL, '[1]')", 3200),
        ("SELECT http_get()", 1582),
        ("SET GLOBAL http_max_redirects = 'x'", 1232),
    ]);
    root.setup("SET GLOBAL http_max_size = 3");
    root.refuse(&[("SELECT http_get(@u)", 3200)]);
    root.setup("CREATE USER eve");
    let mut eve = harness.connect("eve").expect("eve may connect");
    eve.refuse(&[
        ("SELECT http_get('http://127.0.0.1/')", 1227),
        ("SELECT * FROM http('http://127.0.0.1/')", 1227),
    ]);
    root.setup("GRANT HTTP_REQUEST ON *.* TO eve");
    eve.refuse(&[("SELECT http_get('http://127.0.0.2/')", 3200)]);
}

#[test]
fn a_request_ends_with_its_statement() {
    let (harness, address) = (http_harness(), serve());
    let mut root = harness.root();
    root.setup("SET GLOBAL http_allowed_hosts = '127.0.0.1'");
    let sql = format!("SELECT http_get('http://{address}/never')");
    let id = root.id;
    let mut killer = harness.connect("root").expect("root may connect");
    let running = sql.clone();
    let thread = std::thread::spawn(move || {
        let quoted = running.replace('\'', "''");
        let there =
            format!("SELECT COUNT(*) FROM information_schema.processlist WHERE info = '{quoted}'");
        while killer.run(&there) != "1" {
            std::thread::yield_now();
        }
        killer.run(&format!("KILL QUERY {id}"))
    });
    let begun = Instant::now();
    assert_eq!(root.code(&sql), 1317);
    assert!(begun.elapsed() < Duration::from_secs(8), "sooner than http_timeout");
    assert_eq!(thread.join().expect("no panic"), "ok 0");
    root.setup("SET GLOBAL http_timeout = 1");
    assert!(root.run(&sql).contains("http_timeout"));
    root.setup("SET GLOBAL http_timeout = 60");
    root.setup("SET max_execution_time = 100");
    assert_eq!(root.code(&sql), 3024);
}
