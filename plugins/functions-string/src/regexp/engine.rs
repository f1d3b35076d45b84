//! A compiled pattern and its matches as byte ranges. Independent of SQL values.

use std::ops::Range;

use errors::{Error, ErrorCode, Result};

use super::syntax;

/// Steps that a pattern with look-around or back-references may take in one search.
const BACKTRACK_LIMIT: usize = 1_000_000;
/// Bytes of a compiled pattern.
const PROGRAM_BYTES_MAX: usize = 8 << 20;

/// Matching options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Case-insensitive.
    pub(crate) case_insensitive: bool,
    /// `^` and `$` match at lines.
    pub(crate) multi_line: bool,
    /// `.` matches line ends.
    pub(crate) dot_all: bool,
    /// Only `\n` ends a line.
    pub(crate) unix_lines: bool,
}

/// A compiled pattern.
pub(crate) enum Pattern {
    /// Matched in linear time.
    Linear(regex::Regex),
    /// Matched by backtracking.
    Backtracking(fancy_regex::Regex),
}

/// Groups of a match: byte ranges, the whole match first.
pub(crate) type Groups = Vec<Option<Range<usize>>>;

impl Pattern {
    /// # Errors
    /// 3685 and the numbers that follow, for errors in the pattern.
    pub(crate) fn compile(pattern: &str, options: Options) -> Result<Pattern> {
        if pattern.is_empty() {
            return Err(Error::with(ErrorCode::REGEXP_ILLEGAL_ARGUMENT, &[]));
        }
        let translated = syntax::translate(pattern, options)?;
        if translated.backtracking {
            let built = fancy_regex::RegexBuilder::new(&translated.text)
                .backtrack_limit(BACKTRACK_LIMIT)
                .delegate_size_limit(PROGRAM_BYTES_MAX)
                .build();
            return built
                .map(Pattern::Backtracking)
                .map_err(|error| syntax_error(&error.to_string()));
        }
        let built =
            regex::RegexBuilder::new(&translated.text).size_limit(PROGRAM_BYTES_MAX).build();
        built.map(Pattern::Linear).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Error::with(ErrorCode(3887), &[]),
            other => syntax_error(&other.to_string()),
        })
    }

    /// # Errors
    /// 3699 when the step limit is reached; so for all searches.
    pub(crate) fn is_match(&self, text: &str) -> Result<bool> {
        match self {
            Pattern::Linear(regex) => Ok(regex.is_match(text)),
            Pattern::Backtracking(regex) => regex.is_match(text).map_err(timeout),
        }
    }

    /// The first match at or after byte `start`.
    pub(crate) fn find_at(&self, text: &str, start: usize) -> Result<Option<Range<usize>>> {
        match self {
            Pattern::Linear(regex) => Ok(regex.find_at(text, start).map(|found| found.range())),
            Pattern::Backtracking(regex) => {
                let found = regex.find_from_pos(text, start).map_err(timeout)?;
                Ok(found.map(|found| found.start()..found.end()))
            }
        }
    }

    /// The groups of the first match at or after byte `start`.
    pub(crate) fn groups_at(&self, text: &str, start: usize) -> Result<Option<Groups>> {
        match self {
            Pattern::Linear(regex) => Ok(regex.captures_at(text, start).map(|groups| {
                groups.iter().map(|group| group.map(|group| group.range())).collect()
            })),
            Pattern::Backtracking(regex) => {
                let groups = regex.captures_from_pos(text, start).map_err(timeout)?;
                Ok(groups.map(|groups| {
                    groups
                        .iter()
                        .map(|group| group.map(|group| group.start()..group.end()))
                        .collect()
                }))
            }
        }
    }

    /// Number of capturing groups, the whole match not counted.
    pub(crate) fn group_count(&self) -> usize {
        let count = match self {
            Pattern::Linear(regex) => regex.captures_len(),
            Pattern::Backtracking(regex) => regex.captures_len(),
        };
        count.saturating_sub(1)
    }

    /// Number of the group with a name.
    pub(crate) fn group_named(&self, name: &str) -> Option<usize> {
        match self {
            Pattern::Linear(regex) => regex.capture_names().position(|known| known == Some(name)),
            Pattern::Backtracking(regex) => {
                regex.capture_names().position(|known| known == Some(name))
            }
        }
    }

    /// The `occurrence`th match (1-based) at or after byte `start`.
    pub(crate) fn nth(
        &self,
        text: &str,
        start: usize,
        occurrence: u64,
    ) -> Result<Option<Range<usize>>> {
        let mut at = start;
        for _ in 1..occurrence {
            match self.find_at(text, at)? {
                Some(found) => match next_start(text, &found) {
                    Some(next) => at = next,
                    None => return Ok(None),
                },
                None => return Ok(None),
            }
        }
        self.find_at(text, at)
    }
}

/// Where the search continues after a match: after an empty match, one character later.
pub(crate) fn next_start(text: &str, found: &Range<usize>) -> Option<usize> {
    if !found.is_empty() {
        return Some(found.end);
    }
    let step = text[found.end..].chars().next()?.len_utf8();
    Some(found.end + step)
}

#[cold]
fn timeout(_: fancy_regex::Error) -> Error {
    Error::with(ErrorCode::REGEXP_TIME_OUT, &[])
}

/// The reference's error number for an error of the regex compiler.
#[cold]
fn syntax_error(message: &str) -> Error {
    const KINDS: &[(&str, ErrorCode)] = &[
        ("unclosed group", ErrorCode::REGEXP_MISMATCHED_PAREN),
        ("unopened group", ErrorCode::REGEXP_MISMATCHED_PAREN),
        ("unclosed character class", ErrorCode::REGEXP_MISSING_CLOSE_BRACKET),
        ("invalid character class range", ErrorCode::REGEXP_INVALID_RANGE),
        ("invalid repetition count range", ErrorCode::REGEXP_MAX_LT_MIN),
        ("repetition", ErrorCode::REGEXP_BAD_INTERVAL),
        ("incomplete escape", ErrorCode::REGEXP_BAD_ESCAPE_SEQUENCE),
        ("escape", ErrorCode::REGEXP_BAD_ESCAPE_SEQUENCE),
        ("look-behind", ErrorCode::REGEXP_LOOK_BEHIND_LIMIT),
        ("look-around", ErrorCode::REGEXP_LOOK_BEHIND_LIMIT),
        ("back", ErrorCode::REGEXP_INVALID_BACK_REF),
        ("paren", ErrorCode::REGEXP_MISMATCHED_PAREN),
    ];
    let lower = message.to_ascii_lowercase();
    if lower.contains("missing expression") || lower.contains("target of repeat") {
        return Error::with(ErrorCode::REGEXP_RULE_SYNTAX, &[&1, &1]);
    }
    match KINDS.iter().find(|(words, _)| lower.contains(words)) {
        Some((_, code)) => Error::with(*code, &[]),
        None => Error::with(ErrorCode::REGEXP_RULE_SYNTAX, &[&1, &1]),
    }
}
