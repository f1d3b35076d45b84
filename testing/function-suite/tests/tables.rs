//! Every line of the tables: an expression, its value, its type and its warnings, as in the reference.

use function_suite::{Answer, Evaluator};

/// Lines of tab-separated fields: expression, value or `ERROR number text`, type, warnings joined with ` | `.
fn check(table: &str, evaluate: fn(&Evaluator, &str) -> errors::Result<Answer>) {
    let evaluator = Evaluator::default();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let expected = fields[1..].join("\t");
        let actual = match evaluate(&evaluator, fields[0]) {
            Ok(answer) => {
                let value = answer.value.unwrap_or_else(|| "NULL".into());
                [value, answer.ty, answer.warnings.join(" | ")].join("\t")
            }
            Err(error) => format!("ERROR {} {}", error.code(), error.message()),
        };
        count += 1;
        if actual.trim_end() != expected.trim_end() {
            wrong.push(format!("{}\n  expected {expected}\n  actual   {actual}", fields[0]));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} lines differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn numeric() {
    check(include_str!("../tables/numeric.txt"), Evaluator::evaluate);
}

#[test]
fn string() {
    check(include_str!("../tables/string.txt"), Evaluator::evaluate);
}

#[test]
fn temporal() {
    check(include_str!("../tables/temporal.txt"), Evaluator::evaluate);
}

#[test]
fn json() {
    check(include_str!("../tables/json.txt"), Evaluator::evaluate);
}

#[test]
fn crypto() {
    check(include_str!("../tables/crypto.txt"), Evaluator::evaluate);
}

#[test]
fn misc() {
    check(include_str!("../tables/misc.txt"), Evaluator::evaluate);
}

#[test]
fn aggregates() {
    check(include_str!("../tables/aggregates.txt"), Evaluator::aggregate);
}

#[test]
fn columns() {
    check(include_str!("../tables/columns.txt"), Evaluator::evaluate);
}
