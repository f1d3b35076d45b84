//! Counts the `?` of a statement. Knows strings, quoted names and comments, no grammar.

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
