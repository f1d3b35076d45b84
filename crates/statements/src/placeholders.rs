//! Counts the `?` of a statement. Knows strings, quoted names and comments, no grammar.

use errors::{Error, err};
use syntax::ParseOptions;
use syntax::ast::Statement;

/// The placeholders of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placeholders {
    pub count: usize,
    /// The numbers of those that LIMIT counts rows by.
    pub row_counts: Vec<u32>,
}

/// What may follow in a LIMIT.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InLimit {
    Outside,
    First,
    Separator,
    Second,
}

impl InLimit {
    fn after_number(self) -> InLimit {
        if self == InLimit::First { InLimit::Separator } else { InLimit::Outside }
    }

    fn counts(self) -> bool {
        matches!(self, InLimit::First | InLimit::Second)
    }

    fn after_word(self, word: &[u8]) -> InLimit {
        if word.eq_ignore_ascii_case(b"limit") {
            InLimit::First
        } else if self == InLimit::Separator && word.eq_ignore_ascii_case(b"offset") {
            InLimit::Second
        } else if word[0].is_ascii_digit() {
            self.after_number()
        } else {
            InLimit::Outside
        }
    }
}

/// The placeholders in `sql`.
pub fn find(sql: &[u8], no_backslash_escapes: bool) -> Placeholders {
    let mut found = Placeholders::default();
    let (mut at, mut place) = (0, InLimit::Outside);
    while at < sql.len() {
        let rest = &sql[at..];
        at += match rest[0] {
            b'?' => {
                if place.counts() {
                    found.row_counts.push(found.count as u32);
                }
                found.count += 1;
                place = place.after_number();
                1
            }
            quote @ (b'\'' | b'"' | b'`') => {
                quoted(rest, quote, quote != b'`' && !no_backslash_escapes)
            }
            b'#' => line(rest),
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(|byte| *byte <= b' ') => {
                line(rest)
            }
            // The text of a versioned comment counts, its delimiters do not.
            b'/' if rest.starts_with(b"/*!") => 3,
            b'/' if rest.starts_with(b"/*") => comment(rest),
            byte if is_of_word(byte) => {
                let word = rest.split(|byte| !is_of_word(*byte)).next().unwrap_or(rest);
                place = place.after_word(word);
                word.len()
            }
            byte => {
                if !byte.is_ascii_whitespace() {
                    let goes_on = byte == b',' && place == InLimit::Separator;
                    place = if goes_on { InLimit::Second } else { InLimit::Outside };
                }
                1
            }
        };
    }
    found
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

fn line(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1)
}

fn comment(rest: &[u8]) -> usize {
    rest.windows(2).skip(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 4)
}

/// Length of a quoted text with its quotes.
fn quoted(rest: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < rest.len() {
        if escapes && rest[at] == b'\\' {
            at += 2;
            continue;
        }
        if rest[at] == quote {
            if rest.get(at + 1) == Some(&quote) {
                at += 2;
                continue;
            }
            return at + 1;
        }
        at += 1;
    }
    rest.len()
}

/// Whether a text contains no statement.
pub fn is_blank(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_whitespace() || *byte == b';' || *byte == 0)
}

/// 1064 at the start of `rest`, which ends `text`.
pub fn near(rest: &[u8], text: &[u8]) -> Error {
    let start = rest.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(0);
    let shown: String = String::from_utf8_lossy(&rest[start..]).chars().take(80).collect();
    let before = &text[..text.len() - rest.len() + start];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    err!(PARSE_ERROR, shown, line)
}

/// Whether the text contains only comments.
pub fn is_comment(text: &[u8], options: &ParseOptions<'_>) -> bool {
    let parsed = syntax::parse_bytes(text, options);
    matches!(parsed, Ok((Statement::Empty, consumed)) if is_blank(&text[consumed..]))
}

#[cfg(test)]
mod tests {
    use super::find;

    fn count(sql: &[u8], no_backslash_escapes: bool) -> usize {
        find(sql, no_backslash_escapes).count
    }

    #[test]
    fn only_bare_marks_count() {
        assert_eq!(count(b"select ?, '?', \"?\", `?`, 'it''s ?', '\\'?' -- ?\n, ?", false), 2);
        assert_eq!(count(b"select '\\', ?", true), 1);
        assert_eq!(count(b"/* ? */ /*! ? */ # ?\n?", false), 2);
    }

    #[test]
    fn limit_counts_rows() {
        let of = |sql: &[u8]| find(sql, false).row_counts;
        assert_eq!(of(b"select ? from t limit ?"), [1]);
        assert_eq!(
            of(b"(select ?, ? limit ?, ?) union select ? LIMIT 1 /* ? */ offset ?"),
            [2, 3, 5]
        );
        assert_eq!(of(b"select a from (select 1 limit ?) d where a in (?, ?) limit 1, ?"), [0, 3]);
        assert_eq!(of(b"select `limit`, ?, 'limit', ? from limits, ?"), []);
    }
}
