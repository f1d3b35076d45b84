//! The scripts: statements after `> `, each with its expected view; lines that set sizes; comments.

use std::path::Path;

use crate::fixture::{Fixture, View};

/// Runs a script and compares; with `UPDATE` set in the environment it writes the shown results instead.
///
/// # Panics
/// A statement shows something else than the script expects, or a line is malformed.
pub fn check(path: &Path, view: View) {
    let text = std::fs::read_to_string(path).expect("the script can be read");
    let (shown, differences) = run(&text, view);
    if std::env::var_os("UPDATE").is_some_and(|value| !value.is_empty() && value != *"0") {
        std::fs::write(path, shown).expect("the script can be written");
        return;
    }
    assert!(differences.is_empty(), "{}\n{differences}", path.display());
}

/// The script with the actual results, and the differences.
fn run(text: &str, view: View) -> (String, String) {
    let mut fixture = Fixture::default();
    let (mut shown, mut differences) = (String::new(), String::new());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        shown += line;
        shown.push('\n');
        let Some(first) = line.strip_prefix("> ") else {
            if !line.is_empty() && !line.starts_with('#') {
                let words: Vec<&str> = line.split_whitespace().collect();
                let result = fixture.set(&words);
                result.unwrap_or_else(|error| differences += &format!("  {error}\n"));
            }
            continue;
        };
        let mut sql = first.to_owned();
        while let Some(next) = lines.next_if(|next| next.starts_with("  ")) {
            sql += "\n";
            sql += next;
            shown += next;
            shown.push('\n');
        }
        let mut expected = Vec::new();
        while let Some(next) = lines.next_if(|next| !next.is_empty()) {
            expected.push(next);
        }
        let expected = expected.join("\n");
        let answer = fixture.answer(&sql, view);
        if answer != expected {
            differences += &format!("  {sql}\n  expected:\n{expected}\n  is:\n{answer}\n");
        }
        if !answer.is_empty() {
            shown += &answer;
            shown.push('\n');
        }
    }
    (shown, differences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_differs_is_reported() {
        let script = "> CREATE TABLE t (a INT PRIMARY KEY)\n\n> SELECT a FROM t WHERE a = 1\n-> Table scan on t\n";
        let (shown, differences) = run(script, View::Plan);
        assert!(differences.contains("Single-row index lookup on t"), "{differences}");
        assert_eq!(run(&shown, View::Plan), (shown.clone(), String::new()));
    }

    #[test]
    fn a_malformed_line_is_reported() {
        assert!(run("rows nothing 5\n", View::Plan).1.contains("no table nothing"));
    }
}
