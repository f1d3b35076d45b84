//! Every line of the tables: an expression, its value, its type and its warnings, as the reference answers them.

use function_suite::Evaluator;

/// Lines of tab-separated fields: expression, value or `ERROR number text`, type, warnings joined with ` | `.
fn check(table: &str) {
    let evaluator = Evaluator::default();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let expected = fields[1..].join("\t");
        let actual = match evaluator.evaluate(fields[0]) {
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
    check(include_str!("../tables/numeric.txt"));
}

#[test]
fn string() {
    check(include_str!("../tables/string.txt"));
}

#[test]
fn temporal() {
    check(include_str!("../tables/temporal.txt"));
}

#[test]
fn json() {
    check(include_str!("../tables/json.txt"));
}

#[test]
fn crypto() {
    check(include_str!("../tables/crypto.txt"));
}

#[test]
fn misc() {
    check(include_str!("../tables/misc.txt"));
}
