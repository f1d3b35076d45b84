//! Statements that the grammar must accept, and its errors for those that it must refuse.

use syntax::{ParseErrorKind, ParseOptions, Statement, parse_one};

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty())
}

#[test]
fn accepts() {
    let mut failed = Vec::new();
    for sql in lines(include_str!("data/accept.sql")) {
        match parse_one(sql, &ParseOptions::default()) {
            Ok((_, used)) if used == sql.len() => {}
            Ok((_, used)) => failed.push(format!("{sql}\n    stopped at {used}")),
            Err(error) => failed.push(format!("{sql}\n    {error}")),
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn rejects_where_the_reference_does() {
    let mut failed = Vec::new();
    for line in lines(include_str!("data/reject.txt")) {
        let (sql, expected) = line.rsplit_once('|').expect("a bar");
        match parse_one(sql, &ParseOptions::default()) {
            Err(error) => match &error.kind {
                ParseErrorKind::Syntax { near, line: 1 } if near == expected => {}
                ParseErrorKind::Other { .. } if expected.is_empty() => {}
                other => failed.push(format!("{sql}\n    expected {expected:?}, got {other:?}")),
            },
            Ok((_, used)) if sql.contains(';') && used < sql.len() => {}
            Ok((statement, _)) => failed.push(format!("{sql}\n    taken as {statement:?}")),
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn near_text_and_line() {
    let error = |sql: &str| match parse_one(sql, &ParseOptions::default()) {
        Err(e) => match e.kind {
            ParseErrorKind::Syntax { near, line } => (near, line),
            other => panic!("{other:?}"),
        },
        Ok(s) => panic!("{s:?}"),
    };
    assert_eq!(error("\n\nSELECT\n1 1\n1 ;"), ("1\n1".into(), 2));
    let long = format!("SELECT 1 1 {}", "é".repeat(200));
    let (near, _) = error(&long);
    assert_eq!(near.chars().count(), 80);
    assert!(near.starts_with("1 éé"));
    assert_eq!(error("SELECT 1 FROM ; "), (String::new(), 1));
    assert_eq!(error("SELECT 1 FROM ; SELECT 2"), ("; SELECT 2".into(), 1));
}

#[test]
fn one_statement_at_a_time() {
    let sql = "SELECT 1; SELECT 2 ;; -- end";
    let options = ParseOptions::default();
    let mut at = 0;
    let mut kinds = Vec::new();
    while at < sql.len() {
        let (statement, used) = parse_one(&sql[at..], &options).expect("valid");
        kinds.push(statement == Statement::Empty);
        at += used;
    }
    assert_eq!(kinds, [false, false, true, true]);
    let single = ParseOptions { multi_statements: false, ..options };
    assert!(parse_one("SELECT 1; -- x", &single).is_ok());
    assert!(parse_one("SELECT 1; SELECT 2", &single).is_err());
}

#[test]
fn modes() {
    let base = ParseOptions::default();
    let ansi = ParseOptions { ansi_quotes: true, ..base.clone() };
    assert!(parse_one("SELECT \"a\".\"b\" FROM \"t\"", &ansi).is_ok());
    assert!(parse_one("SELECT 1 FROM \"t\"", &base).is_err());
    let pipes = ParseOptions { pipes_as_concat: true, ..base.clone() };
    assert_ne!(
        parse_one("SELECT a || b", &base).expect("or"),
        parse_one("SELECT a || b", &pipes).expect("concat")
    );
    let plain = ParseOptions { no_backslash_escapes: true, ..base.clone() };
    assert!(parse_one(r"SELECT 'a\'", &plain).is_ok());
    assert!(parse_one(r"SELECT 'a\'", &base).is_err());
    let space = ParseOptions { ignore_space: true, ..base.clone() };
    assert!(parse_one("SELECT COUNT (*)", &space).is_ok());
    let high = ParseOptions { high_not_precedence: true, ..base.clone() };
    assert_eq!(
        parse_one("SELECT NOT a BETWEEN 1 AND 2", &high).expect("high").0,
        parse_one("SELECT (NOT a) BETWEEN 1 AND 2", &base).expect("low").0
    );
}
