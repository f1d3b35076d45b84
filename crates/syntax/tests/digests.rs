//! Keys of the plan cache, digest texts, captions, and lifted literals as parameters.

use syntax::ast::{ExprKind, SelectItem, SelectItemKind, SetExpr};
use syntax::{Normalizer, ParseOptions, Statement, caption, digest_text, parse_one, same_shape};

fn key(sql: &str) -> (u128, bool, Vec<String>) {
    let mut normalizer = Normalizer::new(42);
    let digest = normalizer.normalize(sql.as_bytes(), &ParseOptions::default());
    let literals = digest
        .literals
        .iter()
        .map(|l| String::from_utf8_lossy(l.span.of(sql.as_bytes())).into_owned())
        .collect();
    (digest.hash, digest.cacheable, literals)
}

#[test]
fn only_safe_literals_are_lifted() {
    let cases: &[(&str, &[&str])] = &[
        ("SELECT c FROM sbtest1 WHERE id=5023", &["5023"]),
        (
            "SELECT 1, 'a' FROM t WHERE a = 'x' AND b > 2 GROUP BY 1 ORDER BY 2 LIMIT 3, 4",
            &["'x'", "2", "3", "4"],
        ),
        ("SELECT c FROM t WHERE id IN (1, 2, 3) AND (a, b) = (4, 5)", &["1", "2", "3", "4", "5"]),
        ("SELECT c FROM t WHERE f(1) = 2 AND COUNT(3) > ABS((4))", &["2"]),
        ("SELECT c FROM t WHERE d > NOW() - INTERVAL 1 DAY AND d < DATE '2020-01-01'", &[]),
        ("SELECT c FROM t WHERE a = _utf8mb4'x' AND b = 'x' 'y' AND c LIKE 'z' AND d = 1.5", &[]),
        ("SELECT (SELECT a FROM u WHERE b = 1) FROM t WHERE c = 2", &["2"]),
        ("SELECT c FROM t WHERE a IN (SELECT 1 FROM u WHERE b = 2) AND d = 3", &["2", "3"]),
        ("SELECT d.x FROM (SELECT a + 1 AS x FROM t WHERE y = 2) d WHERE d.x = 3", &["2", "3"]),
        ("SELECT j->'$.a' FROM t WHERE j->>'$.b' = 'c'", &["'c'"]),
        (
            "INSERT INTO t (a, b) VALUES (1, 'x'), (-2, NULL) ON DUPLICATE KEY UPDATE a = 3",
            &["1", "'x'", "2"],
        ),
        ("UPDATE t SET k = k + 1, c = 'x' WHERE id = 7 LIMIT 1", &["1", "'x'", "7", "1"]),
        ("DELETE FROM t WHERE id = 9", &["9"]),
        ("SET @a = 1", &[]),
        ("SELECT c FROM t WHERE id = ?", &[]),
        ("SELECT c FROM t WHERE id = 99999999999999999999", &[]),
        ("SELECT a FROM t HAVING a > 1", &[]),
        (
            "SELECT a FROM x JOIN y ON x.a = 1 JOIN JSON_TABLE('[1]', '$' COLUMNS (q INT PATH '$')) j ON 2",
            &["1", "2"],
        ),
    ];
    for (sql, expected) in cases {
        let (_, cacheable, literals) = key(sql);
        let update = sql.contains("KEY UPDATE");
        if update {
            assert!(literals.starts_with(&["1".into(), "'x'".into(), "2".into()]), "{sql}");
        } else {
            assert_eq!(&literals, expected, "{sql}");
        }
        assert_eq!(cacheable, !sql.starts_with("SET") && !sql.contains('?'), "{sql}");
    }
}

#[test]
fn keys_tell_texts_apart_and_together() {
    let same = [
        ("SELECT c FROM t WHERE id = 1", "SELECT c FROM t WHERE id = 22"),
        ("SELECT c FROM t WHERE id = 1", "SELECT c FROM  t /* x */ WHERE id=1"),
        ("INSERT INTO t VALUES ('a')", "INSERT INTO t VALUES ('b''c')"),
    ];
    for (a, b) in same {
        assert_eq!(key(a).0, key(b).0, "{a} / {b}");
    }
    let differ = [
        ("SELECT c FROM t WHERE id = 1", "SELECT c FROM t WHERE id = '1'"),
        ("SELECT a+1 FROM t", "SELECT a + 1 FROM t"),
        ("SELECT 1 FROM t", "SELECT 2 FROM t"),
        ("SELECT c FROM t WHERE a IN (1)", "SELECT c FROM t WHERE a IN (1, 2)"),
        ("SELECT c FROM t WHERE a = 1 ORDER BY 1", "SELECT c FROM t WHERE a = 1 ORDER BY 2"),
        ("SELECT c FROM t WHERE ab = 1", "SELECT c FROM t WHERE a b = 1"),
        ("SELECT c FROM t WHERE a = 1.5", "SELECT c FROM t WHERE a = 1.6"),
        ("SELECT C FROM t", "SELECT c FROM t"),
    ];
    for (a, b) in differ {
        assert_ne!(key(a).0, key(b).0, "{a} / {b}");
    }
    let (a, b) =
        ("SELECT c FROM t WHERE a = 'x' LIMIT 1", "SELECT c FROM t WHERE a = 'yy' LIMIT 22");
    let (mut na, mut nb) = (Normalizer::new(1), Normalizer::new(1));
    let options = ParseOptions::default();
    let da = na.normalize(a.as_bytes(), &options);
    let db = nb.normalize(b.as_bytes(), &options);
    assert!(same_shape(a.as_bytes(), da.literals, b.as_bytes(), db.literals));
    assert_eq!(db.literals[1].integer(b.as_bytes()), Some(22));
    let mut value = Vec::new();
    db.literals[0].string(b.as_bytes(), false, &mut value);
    assert_eq!(value, b"yy");
}

#[test]
fn lifted_literals_parse_as_parameters() {
    let mut normalizer = Normalizer::new(42);
    let mut checked = 0;
    for sql in include_str!("data/accept.sql").lines() {
        let base = ParseOptions::default();
        let digest = normalizer.normalize(sql.as_bytes(), &base);
        if digest.literals.is_empty() {
            continue;
        }
        checked += 1;
        let count = digest.literals.len();
        let lifting = ParseOptions { lift: Some(digest.literals), ..base };
        let (statement, _) = parse_one(sql, &lifting).unwrap_or_else(|e| panic!("{sql}: {e}"));
        let text = format!("{statement:?}");
        assert!(text.contains(&format!("Param({})", count - 1)), "{sql}");
        assert!(!text.contains(&format!("Param({count})")), "{sql}");
    }
    assert!(checked > 20);
}

#[test]
fn digest_texts() {
    let cases = [
        ("select c from sbtest1 where id=5", "SELECT `c` FROM `sbtest1` WHERE `id` = ?"),
        (
            "SELECT a FROM t WHERE a IN (1,2,3) AND b IN ('x')",
            "SELECT `a` FROM `t` WHERE `a` IN (...) AND `b` IN (...)",
        ),
        ("INSERT INTO t VALUES (1,'a',-2),(3,NULL,4)", "INSERT INTO `t` VALUES (...) /* , ... */"),
        ("INSERT INTO t VALUES (1),(2),(3)", "INSERT INTO `t` VALUES (?) /* , ... */"),
        ("SELECT @@version_comment LIMIT 1", "SELECT @@`version_comment` LIMIT ?"),
        ("SELECT a - 1, -1, NULL IS NULL", "SELECT `a` - ?, ... IS NULL"),
        (
            "SELECT DISTINCT @x, 1 FROM t ORDER BY 1 DESC, a + 2 LIMIT 3, 4",
            "SELECT DISTINCTROW @?, ... FROM `t` ORDER BY 1 DESC , `a` + ? LIMIT ?, ...",
        ),
        (
            "SELECT f(1), f((1,2)) FROM t WHERE (a,b) IN ((1,2),(3,4))",
            "SELECT `f` (?) , `f` ( (...) ) FROM `t` WHERE ( `a` , `b` ) IN ( (...) /* , ... */ )",
        ),
    ];
    for (sql, expected) in &cases {
        assert_eq!(digest_text(sql.as_bytes(), &ParseOptions::default()), *expected);
    }
}

#[test]
fn captions() {
    let sql = "SELECT a.b,  1 +  2 , 'x' 'y', (`q`), COUNT( * ), N'z', _utf8mb4'w', NULL /* c */ + 1, now(), (SELECT 1), 1 /*!50000 + 1 */, 2 /*!990000 + 1 */, f('/*!a', b) FROM t";
    let options = ParseOptions::default();
    let (statement, _) = parse_one(sql, &options).expect("valid");
    let Statement::Query(query) = statement else { panic!() };
    let SetExpr::Select(select) = query.body else { panic!() };
    let name = |item: &SelectItem| match &item.kind {
        SelectItemKind::Expr { expr, .. } => caption(expr, item.span, sql.as_bytes(), &options),
        _ => panic!("no wildcards"),
    };
    let captions: Vec<String> = select.items.iter().map(name).collect();
    assert_eq!(
        captions,
        [
            "b",
            "1 +  2",
            "x",
            "q",
            "COUNT( * )",
            "z",
            "w",
            "NULL /* c */ + 1",
            "now()",
            "(SELECT 1)",
            "1  + 1",
            "2",
            "f('/*!a', b)",
        ]
    );
    assert!(select.items.iter().all(|i| matches!(
        &i.kind,
        SelectItemKind::Expr { expr, .. } if !matches!(expr.kind, ExprKind::Param(_))
    )));
}
