//! Counts the `?` of a statement. Knows strings, quoted names and comments, no grammar.

use errors::{Error, err};
use syntax::ParseOptions;
use syntax::ast::Statement;

/// Number of placeholders in `sql`.
pub fn count(sql: &[u8], no_backslash_escapes: bool) -> usize {
    let mut count = 0;
    let mut at = 0;
    while at < sql.len() {
        let rest = &sql[at..];
        at += match rest[0] {
            b'?' => {
                count += 1;
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
            _ => 1,
        };
    }
    count
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
    use super::count;

    #[test]
    fn only_bare_marks_count() {
        assert_eq!(count(b"select ?, '?', \"?\", `?`, 'it''s ?', '\\'?' -- ?\n, ?", false), 2);
        assert_eq!(count(b"select '\\', ?", true), 1);
        assert_eq!(count(b"/* ? */ /*! ? */ # ?\n?", false), 2);
    }
}
