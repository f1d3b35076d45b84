//! Completion of keywords, tables and columns.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

const KEYWORDS: &str = "ALTER AND AS ASC BEGIN BETWEEN BY CASE COMMIT CREATE CROSS DATABASE \
    DATABASES DEFAULT DELETE DESC DESCRIBE DISTINCT DROP ELSE END EXISTS EXPLAIN FALSE FROM GRANT \
    GROUP HAVING IF IN INDEX INNER INSERT INTO IS JOIN KEY KILL LEFT LIKE LIMIT NOT NULL OFFSET ON \
    OR ORDER OUTER PRIMARY PROCESSLIST REPLACE REVOKE RIGHT ROLLBACK SELECT SET SHOW STATUS TABLE \
    TABLES THEN TRANSACTION TRUE TRUNCATE UNION UNIQUE UPDATE USE USING VALUES VARIABLES VIEW \
    WARNINGS WHEN WHERE WITH";

/// Words that can be completed.
#[derive(Default)]
pub struct Words {
    /// Schemas, tables, columns.
    pub names: Vec<String>,
}

impl Words {
    /// Completions of `word`, in order, without repeats.
    fn starting_with(&self, word: &str) -> Vec<String> {
        let lower = word.to_lowercase();
        let keywords = KEYWORDS.split_whitespace().filter(|k| k.to_lowercase().starts_with(&lower));
        let upper = word.chars().next().is_some_and(char::is_uppercase);
        let mut found: Vec<String> =
            keywords.map(|k| if upper { k.to_owned() } else { k.to_lowercase() }).collect();
        found.extend(self.names.iter().filter(|n| n.to_lowercase().starts_with(&lower)).cloned());
        found.sort();
        found.dedup();
        found
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..position];
        let part_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let start = before
            .rfind(|c| !part_of_word(c))
            .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
        Ok((start, self.starting_with(&before[start..])))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn keywords_follow_the_case_that_was_begun() {
        let words = Words { names: vec!["selections".into()] };
        assert_eq!(words.starting_with("sele"), ["select", "selections"]);
        assert_eq!(words.starting_with("SELE"), ["SELECT", "selections"]);
    }
}
