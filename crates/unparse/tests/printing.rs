//! Trees survive being printed and parsed again; the canonical spelling is the reference's.

use syntax::ast::{SelectItemKind, SetExpr};
use syntax::{ParseOptions, Statement, parse_one};
use unparse::{PrintOptions, print_expr, print_statement};

#[test]
fn printed_statements_parse_to_the_same_tree() {
    let options = ParseOptions::default();
    let mut checked = 0;
    let mut failed = Vec::new();
    for sql in include_str!("../../syntax/tests/data/accept.sql").lines() {
        let Ok((tree, _)) = parse_one(sql, &options) else { panic!("{sql}") };
        let Some(text) = print_statement(&tree, &PrintOptions::default()) else { continue };
        checked += 1;
        match parse_one(&text, &options) {
            Ok((again, _)) if again == tree => {}
            Ok(_) => failed.push(format!("{sql}\n    {text}")),
            Err(error) => failed.push(format!("{sql}\n    {text}\n    {error}")),
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n"));
    assert!(checked > 150, "{checked}");
}

#[test]
fn canonical_spelling() {
    let cases = [
        ("a+1", "(`a` + 1)"),
        ("-a", "-(`a`)"),
        ("a AND b > 1", "((0 <> `a`) and (`b` > 1))"),
        ("NOT a", "(0 = `a`)"),
        ("s NOT LIKE 'x'", "(not((`s` like 'x')))"),
        ("s REGEXP 'x'", "regexp_like(`s`,'x')"),
        ("a IN (1,2)", "(`a` in (1,2))"),
        ("a IN (SELECT a FROM t2)", "`a` in (select `a` from `t2`)"),
        ("a IS NOT TRUE", "((0 <> `a`) is not true)"),
        ("CASE a WHEN 1 THEN 2 ELSE 3 END", "(case `a` when 1 then 2 else 3 end)"),
        ("CAST(a AS CHAR(10))", "cast(`a` as char(10) charset utf8mb4)"),
        ("COUNT(*)", "count(0)"),
        (
            "GROUP_CONCAT(DISTINCT s ORDER BY a DESC)",
            "group_concat(distinct `s` order by `a` DESC separator ',')",
        ),
        ("ROW_NUMBER() OVER w", "row_number() OVER `w`"),
        ("DATE_SUB(d, INTERVAL 1 HOUR)", "(`d` - interval 1 hour)"),
        ("TIMESTAMPADD(DAY, 1, d)", "(`d` + interval 1 day)"),
        ("POSITION('a' IN s)", "locate('a',`s`)"),
        ("MOD(a, 2)", "(`a` % 2)"),
        ("j->>'$.a'", "json_unquote(json_extract(`j`,'$.a'))"),
        ("CURRENT_DATE", "curdate()"),
        ("'it''s \\\\ \\n x'", "'it\\'s \\\\ \\n x'"),
        ("a DIV 2 << 1", "((`a` DIV 2) << 1)"),
        ("TIMESTAMPDIFF(DAY, d, d)", "timestampdiff(DAY,`d`,`d`)"),
        ("MATCH (s) AGAINST ('x' IN BOOLEAN MODE)", "(match `s` against ('x' in boolean mode))"),
        ("x'41'", "0x41"),
    ];
    let print =
        PrintOptions { canonical: true, cast_charset: Some("utf8mb4"), ..PrintOptions::default() };
    for (sql, expected) in cases {
        let (statement, _) =
            parse_one(&format!("SELECT {sql}"), &ParseOptions::default()).expect(sql);
        let Statement::Query(query) = statement else { panic!("{sql}") };
        let SetExpr::Select(select) = query.body else { panic!("{sql}") };
        let SelectItemKind::Expr { expr, .. } = &select.items[0].kind else { panic!("{sql}") };
        assert_eq!(print_expr(expr, &print), expected);
    }
}
