//! Texts made to hurt: deep nesting, long chains, long lists, garbage.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::time::{Duration, Instant};

use syntax::{ParseErrorKind, ParseOptions, Statement, parse_bytes, parse_one};

/// Runs on a stack of the size of a worker's, whatever the test harness gives.
fn small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(test).expect("a thread");
    thread.join().expect("no overflow, no panic");
}

fn outcome(sql: &str) -> Result<Statement, ParseErrorKind> {
    parse_one(sql, &ParseOptions::default()).map(|(s, _)| s).map_err(|e| e.kind)
}

fn walk(statement: Result<Statement, ParseErrorKind>) {
    if let Ok(statement) = statement {
        let copy = statement.clone();
        assert!(copy == statement);
        assert!(!format!("{copy:?}").is_empty());
    }
}

#[test]
fn deep_nesting_is_refused_without_overflow() {
    small_stack(|| {
        let shapes: &[(&str, &str, &str, &str)] = &[
            ("SELECT ", "(", "1", ")"),
            ("SELECT ", "f(", "1", ")"),
            ("SELECT ", "- ", "1", ""),
            ("SELECT ", "NOT ", "1", ""),
            ("SELECT ", "!", "1", ""),
            ("SELECT ", "BINARY ", "1", ""),
            ("SELECT ", "(SELECT ", "1", ")"),
            ("", "(", "SELECT 1", ")"),
            ("SELECT * FROM ", "(", "t", ")"),
            ("SELECT * FROM ", "(SELECT * FROM ", "t", ") x"),
            ("SELECT * FROM ", "{oj ", "t", "}"),
            ("SELECT * FROM a", " JOIN b", "", ""),
            ("SELECT * FROM a", " JOIN b ON 1", "", ""),
            ("SELECT * FROM a", " JOIN b", "", " ON 1"),
            ("SELECT ", "CASE WHEN ", "1", " THEN 2 END"),
            ("SELECT ", "a + INTERVAL (", "1", ") DAY"),
            ("SELECT ", "INTERVAL 1 DAY + ", "a", ""),
            ("SELECT ", "((SELECT 1) + ", "1", ")"),
            ("SELECT ", "{x ", "1", "}"),
            ("SELECT ", "@a := ", "1", ""),
            ("SELECT 1 ", "IN (1 ", "", ")"),
            ("SELECT ", "a BETWEEN b AND ", "1", ""),
            ("SELECT ", "EXISTS (SELECT ", "1", ")"),
            ("SELECT a", " COLLATE b", "", ""),
            ("SELECT a", " IS NULL", "", ""),
            ("SELECT a", " = a", "", ""),
            ("SELECT a", " + a", "", ""),
            ("SELECT a", " + INTERVAL 1 DAY", "", ""),
            ("SELECT a", " XOR a", "", ""),
            ("SELECT ", "(1,", "1", ")"),
            ("CREATE PROCEDURE p() ", "BEGIN ", "END", "; END"),
            ("CREATE PROCEDURE p() ", "IF 1 THEN ", "SELECT 1", "; END IF"),
            ("EXPLAIN ", "SHOW PARSE_TREE ", "SELECT 1", ""),
            ("SHOW ", "PARSE_TREE SHOW ", "TABLES", ""),
            ("WITH a AS ", "(WITH a AS ", "(SELECT 1)", " SELECT 1) SELECT 1"),
            (
                "SELECT * FROM JSON_TABLE('', '' ",
                "COLUMNS (NESTED '' ",
                "COLUMNS (a INT PATH '')",
                ")",
            ),
        ];
        for (head, open, inner, close) in shapes {
            for depth in [10, 100, 250, 290, 400, 950, 100_000] {
                let sql = format!("{head}{}{inner}{}", open.repeat(depth), close.repeat(depth));
                let started = Instant::now();
                walk(outcome(&sql));
                assert!(started.elapsed() < Duration::from_secs(5), "{head}{open} {depth}");
            }
        }
        assert_eq!(outcome(&"(".repeat(100_000)), Err(ParseErrorKind::TooDeep));
        assert!(matches!(
            outcome(&format!("SELECT 1{}", "+1".repeat(100_000))),
            Err(ParseErrorKind::TooDeep)
        ));
    });
}

#[test]
fn ordinary_depth_is_taken() {
    small_stack(|| {
        let chain = |op: &str, n: usize| format!("SELECT a FROM t WHERE 1{}", op.repeat(n));
        for sql in [
            chain(" OR a = 1", 50_000),
            chain(" AND (a = 1 OR b + 1 = 2)", 20_000),
            chain(" + a", 800),
            format!("SELECT {}1{}", "(".repeat(200), ")".repeat(200)),
            format!("SELECT 1{}", " UNION ALL SELECT 2".repeat(20_000)),
            format!("SELECT {}", "CASE WHEN a = 1 THEN 'x' END, ".repeat(5_000) + "1"),
        ] {
            let statement = outcome(&sql);
            assert!(statement.is_ok(), "{:.60} {:?}", sql, statement.err());
            walk(statement);
        }
    });
}

#[test]
fn long_lists_and_literals_are_linear() {
    let list = format!("SELECT a IN (0{}) FROM t", ",1".repeat(1_000_000));
    let rows = format!("INSERT INTO t VALUES (0){}", ",(1,'a')".repeat(300_000));
    let text = format!("SELECT '{}'", "ab''\\n".repeat(64 << 17));
    for sql in [list, rows, text] {
        let started = Instant::now();
        assert!(outcome(&sql).is_ok());
        assert!(started.elapsed() < Duration::from_secs(20), "{:.30}", sql);
    }
}

#[test]
fn texts_need_not_be_utf8_inside_strings() {
    let options = ParseOptions::default();
    assert!(parse_bytes(b"INSERT INTO t VALUES (_binary'\xff\xfe\\0')", &options).is_ok());
    let error = parse_bytes(b"SELECT \xff\xfe FROM t", &options).expect_err("not a name");
    assert_eq!(error.code(), 1300);
}
