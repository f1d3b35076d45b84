//! Functions of plugins that run statements: inside the statement that calls them, and in sessions of their own.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::time::{Duration, Instant};

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, Plugin, PluginInfo, Registrar,
    StatementResult,
};
use support::{Harness, TextSink};
use types::{DataType, Value};

/// Functions that run their argument.
struct Runners;

impl Plugin for Runners {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("runners", "Functions of this test.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let any = Arity::at_least(1);
        registrar.function(scalar("INSIDE", any, "", bind_inside).runs_statements());
        registrar.function(scalar("TRIES", any, "", bind_tries).runs_statements());
        registrar.function(scalar("BESIDE", any, "", bind_beside).runs_statements());
    }
}

fn text_type() -> DataType {
    kit::text_type(1000, types::CollationId::UTF8MB4_0900_AI_CI)
}

/// The cells of the rows, or the number of affected rows.
fn shown(result: &StatementResult) -> Value {
    if result.columns.is_empty() {
        return Value::text(&format!("changed {}", result.affected_rows));
    }
    let mut cells = Vec::new();
    for row in &result.rows {
        for (value, column) in row.iter().zip(&result.columns) {
            let mut text = format!("{}=", column.name).into_bytes();
            types::to_text(value, &column.ty, &mut text);
            cells.push(String::from_utf8(text).expect("UTF-8"));
        }
    }
    Value::text(&cells.join(","))
}

/// `INSIDE(sql, parameter, ..)`.
fn bind_inside(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = std::iter::once(Coercion::Text).chain(args[1..].iter().map(|_| Coercion::AsIs));
    let bound =
        BoundFunction::with_statements(text_type(), coercions.collect(), |_, session, args| {
            session.run(&kit::text(&args[0]), &args[1..]).map(|result| shown(&result))
        });
    Ok(bound.with_nulls())
}

/// `TRIES(sql)`: the error as a text when it fails.
fn bind_tries(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![Coercion::Text];
    Ok(BoundFunction::with_statements(text_type(), coercions, |_, session, args| {
        Ok(match session.run(&kit::text(&args[0]), &[]) {
            Ok(result) => shown(&result),
            Err(error) => Value::text(&format!("failed {}", error.code().0)),
        })
    }))
}

/// `BESIDE(sql)`: the results of a session of its own.
fn bind_beside(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![Coercion::Text];
    Ok(BoundFunction::with_statements(text_type(), coercions, |_, session, args| {
        let mut sink = TextSink::default();
        let mut beside = session.open_session()?;
        beside.query(&kit::text(&args[0]).into_owned().into_bytes(), &[], &mut sink)?;
        Ok(Value::text(&sink.results.join(";")))
    }))
}

fn harness() -> Harness {
    Harness::with(vec![Box::new(Runners)])
}

#[test]
fn a_function_reads_and_writes_in_the_transaction_of_its_statement() {
    let harness = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(10))
         CREATE TABLE log (n INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20))
         INSERT INTO t1 VALUES (1, 'one'), (2, 'two')
         SET @v = 7",
    );
    root.check(&[
        ("SELECT INSIDE('SELECT b, a FROM t1 WHERE a = ?', 2)", "b=two,a=2"),
        ("SELECT INSIDE('SELECT ? AS x, @v AS v', 'it''s')", "x=it's,v=7"),
        ("SELECT INSIDE('SELECT ? AS x', NULL)", "x="),
        (
            "SELECT a, INSIDE('INSERT INTO log (what) VALUES (?)', b) FROM t1",
            "1|changed 1\n2|changed 1",
        ),
        ("SELECT COUNT(*) FROM log", "2"),
        ("SELECT INSIDE('SET @v = 8'), @v", "changed 0|8"),
        ("START TRANSACTION", "ok 0"),
        ("SELECT INSIDE('INSERT INTO log (what) VALUES (1), (2)')", "changed 2"),
        ("SELECT COUNT(*) FROM log", "4"),
        ("ROLLBACK", "ok 0"),
        ("SELECT COUNT(*) FROM log", "2"),
        ("SET @r = INSIDE('SELECT MAX(a) AS m FROM t1')", "ok 0"),
        ("SELECT @r", "m=2"),
        // Other values of the session stay.
        ("INSERT INTO log (what) VALUES ('x')", "ok 1"),
        ("SELECT INSIDE('INSERT INTO log (what) VALUES (9)'), LAST_INSERT_ID() > 0", "changed 1|1"),
    ]);
}

#[test]
fn statements_inside_keep_to_the_rules_of_stored_functions() {
    let harness = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY)
         INSERT INTO t1 VALUES (1), (2)
         CREATE PROCEDURE two() BEGIN SELECT 1; SELECT 2; END",
    );
    root.refuse(&[
        ("SELECT INSIDE('COMMIT')", 1422),
        ("SELECT INSIDE('ROLLBACK')", 1422),
        ("SELECT INSIDE('START TRANSACTION')", 1422),
        ("SELECT INSIDE('CREATE TABLE t2 (a INT)')", 1422),
        ("SELECT INSIDE('FLUSH TABLES')", 1336),
        ("SELECT INSIDE('SELECT 1; SELECT 2')", 1064),
        ("SELECT INSIDE('SELECT ?')", 1210),
        ("SELECT INSIDE('SELECT nothing')", 1054),
        ("SELECT INSIDE('CALL two()')", 1415),
        ("SELECT INSIDE('DELETE FROM t1') FROM t1", 1442),
        ("CREATE TABLE t3 (a VARCHAR(10) DEFAULT (INSIDE('SELECT 1')))", 3769),
        ("CREATE TABLE t3 (a INT, b VARCHAR(10) AS (INSIDE('SELECT 1')))", 3102),
    ]);
    // Who makes a view does not run statements as the one who reads it; without statements the function works there.
    root.setup("CREATE VIEW v1 AS SELECT INSIDE('SELECT 1') AS a");
    root.setup("CREATE VIEW v2 AS SELECT BESIDE('SELECT 1') AS a");
    root.setup("CREATE VIEW v3 AS SELECT TRIES('SELECT 1') AS a");
    root.refuse(&[("SELECT * FROM v1", 1350), ("SELECT * FROM v2", 1350)]);
    root.check(&[("SELECT * FROM v3", "failed 1350")]);
    let deep = (0..12).fold("SELECT 1".to_owned(), |sql, _| {
        format!("SELECT INSIDE('{}')", sql.replace('\\', "\\\\").replace('\'', "\\'"))
    });
    assert_eq!(root.code(&deep), 1436);
    root.setup("CREATE USER eve");
    root.setup("GRANT INSERT ON t.* TO eve");
    let mut eve = harness.connect("eve").expect("eve may connect");
    eve.run("USE t");
    assert_eq!(eve.code("SELECT INSIDE('SELECT * FROM t1')"), 1142);
}

#[test]
fn a_statement_that_fails_inside_changes_nothing() {
    let harness = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY)
         INSERT INTO t1 VALUES (3)",
    );
    root.check(&[
        ("SELECT TRIES('INSERT INTO t1 VALUES (1), (2), (3)')", "failed 1062"),
        ("SELECT COUNT(*) FROM t1", "1"),
        (
            "SELECT TRIES('INSERT INTO t1 VALUES (1)'), TRIES('INSERT INTO t1 VALUES (1)')",
            "changed 1|failed 1062",
        ),
        ("SELECT COUNT(*) FROM t1", "2"),
    ]);
    // The calling statement fails: what it ran inside is undone as well.
    root.refuse(&[("SELECT INSIDE('INSERT INTO t1 VALUES (10)'), INSIDE('oops')", 1064)]);
    root.check(&[("SELECT COUNT(*) FROM t1", "2")]);
    root.setup("START TRANSACTION");
    root.setup("INSERT INTO t1 VALUES (20)");
    root.refuse(&[("SELECT INSIDE('INSERT INTO t1 VALUES (10)'), INSIDE('oops')", 1064)]);
    root.check(&[("SELECT COUNT(*) FROM t1", "3"), ("ROLLBACK", "ok 0")]);
}

#[test]
fn a_session_beside_has_transactions_and_a_number_of_its_own() {
    let harness = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY)
         INSERT INTO t1 VALUES (1), (2)
         SET innodb_lock_wait_timeout = 1",
    );
    root.check(&[
        ("SELECT BESIDE('INSERT INTO t1 VALUES (3); SELECT COUNT(*) FROM t1')", "ok 1;3"),
        ("SELECT BESIDE('SELECT CONNECTION_ID()') = CONNECTION_ID()", "0"),
        ("SELECT BESIDE('SELECT CURRENT_USER(), DATABASE()')", "root@localhost|t"),
        ("SELECT BESIDE('SELECT COUNT(*) FROM information_schema.processlist')", "2"),
        ("SELECT COUNT(*) FROM information_schema.processlist", "1"),
        ("START TRANSACTION", "ok 0"),
        ("INSERT INTO t1 VALUES (4)", "ok 1"),
        (
            "SELECT BESIDE('SELECT COUNT(*) FROM t1; CREATE TABLE t2 (a INT); COMMIT')",
            "3;ok 0;ok 0",
        ),
        ("ROLLBACK", "ok 0"),
        ("SELECT COUNT(*) FROM t1", "3"),
        // Without COMMIT its transaction ends with it.
        ("SELECT BESIDE('BEGIN; DELETE FROM t1')", "ok 0;ok 3"),
        ("SELECT COUNT(*) FROM t1", "3"),
        (
            "SELECT BESIDE('SELECT BESIDE(1)')",
            "error 1424: Recursive stored functions and triggers are not allowed.",
        ),
    ]);
    // Locks of the calling statement: the usual error.
    root.setup("START TRANSACTION");
    root.setup("UPDATE t1 SET a = 10 WHERE a = 1");
    let timeout = "error 1205: Lock wait timeout exceeded; try restarting transaction";
    root.check(&[
        ("SELECT BESIDE('DELETE FROM t1 WHERE a = 1')", timeout),
        ("SELECT BESIDE('DROP TABLE t1')", timeout),
        ("ROLLBACK", "ok 0"),
    ]);
    root.setup("START TRANSACTION READ ONLY");
    root.refuse(&[("SELECT BESIDE('SELECT 1')", 1792)]);
    root.setup("ROLLBACK");
    root.setup("SET GLOBAL super_read_only = 1");
    root.check(&[
        ("SELECT BESIDE('SELECT COUNT(*) FROM t1')", "3"),
        ("SELECT LEFT(BESIDE('DELETE FROM t1'), 11)", "error 1290:"),
    ]);
    root.setup("SET GLOBAL super_read_only = 0");
    root.setup("SET GLOBAL read_only = 0");
    root.setup("SET GLOBAL max_connections = 1");
    root.refuse(&[("SELECT BESIDE('SELECT 1')", 1040)]);
}

#[test]
fn a_kill_of_the_statement_stops_the_session_beside() {
    let harness = harness();
    let mut root = harness.root();
    let id = root.id;
    for sql in ["SELECT BESIDE('SELECT SLEEP(60)')", "SELECT TRIES('SELECT SLEEP(60)')"] {
        let mut killer = harness.connect("root").expect("root may connect");
        let thread = std::thread::spawn(move || {
            while killer
                .run("SELECT 1 FROM information_schema.processlist WHERE state = 'User sleep'")
                != "1"
            {
                std::thread::yield_now();
            }
            killer.run(&format!("KILL QUERY {id}"))
        });
        let begun = Instant::now();
        assert_eq!(root.code(sql), 1317, "{sql}");
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(thread.join().expect("no panic"), "ok 0");
    }
    root.check(&[("SELECT 1", "1")]);
}

#[test]
fn a_session_that_nobody_waits_for_can_be_killed_and_ends_with_the_server() {
    let harness = Harness::with(vec![Box::new(execute::Execute)]);
    let mut root = harness.root();
    let sleeper = "SELECT id FROM information_schema.processlist WHERE state = 'User sleep'";
    let wait = |root: &mut support::Client, is_there: bool| loop {
        let id = root.run(sleeper);
        if id.is_empty() != is_there {
            return id;
        }
        std::thread::yield_now();
    };
    root.check(&[("EXECUTE 'DO SLEEP(600)' CONCURRENT", "ok 0")]);
    let id = wait(&mut root, true);
    root.check(&[
        (
            &*format!("SELECT user, db FROM information_schema.processlist WHERE id = {id}"),
            "root|t",
        ),
        (&*format!("KILL {id}"), "ok 0"),
    ]);
    wait(&mut root, false);
    root.check(&[("EXECUTE 'DO SLEEP(600)' CONCURRENT", "ok 0")]);
    wait(&mut root, true);
    let begun = Instant::now();
    harness.server.close();
    assert!(begun.elapsed() < Duration::from_secs(8));
    assert_eq!(root.run(sleeper), "");
}
