//! Splits input into statements at the delimiter, outside strings, quoted names, dollar-quoted texts and comments.

/// How a statement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The delimiter or `\g`.
    Plain,
    /// `\G`: show the result vertically.
    Vertical,
    /// `\c`: forget it.
    Cancelled,
}

/// A complete statement at the start of `text`: its length, the bytes it takes with its end, and how it ended.
pub fn first_statement(text: &str, delimiter: &str) -> Option<(usize, usize, Ending)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if text[at..].starts_with(delimiter) {
            return Some((at, at + delimiter.len(), Ending::Plain));
        }
        at = match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => after_quoted(bytes, at, quote)?,
            b'$' if !follows_word(bytes, at) => after_dollars(text, at)?,
            b'#' => after_line(bytes, at),
            b'-' if is_dash_comment(bytes, at) => after_line(bytes, at),
            b'/' if bytes.get(at + 1) == Some(&b'*') => at + 2 + text[at + 2..].find("*/")? + 2,
            b'\\' => match bytes.get(at + 1) {
                Some(b'g') => return Some((at, at + 2, Ending::Plain)),
                Some(b'G') => return Some((at, at + 2, Ending::Vertical)),
                Some(b'c') => return Some((at, at + 2, Ending::Cancelled)),
                _ => at + 1,
            },
            _ => at + char_length(bytes[at]),
        };
    }
    None
}

/// `-- ` and `--` at the end of a line begin a comment, `5--3` does not.
fn is_dash_comment(bytes: &[u8], at: usize) -> bool {
    bytes.get(at + 1) == Some(&b'-') && bytes.get(at + 2).is_none_or(u8::is_ascii_whitespace)
}

/// Past the end of a line comment, or of the text.
fn after_line(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| at + end + 1)
}

/// Past the closing quote; `None` when it is missing.
fn after_quoted(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// A `$` inside a name begins nothing.
fn follows_word(bytes: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| {
        bytes[before].is_ascii_alphanumeric() || matches!(bytes[before], b'_' | b'$' | 0x80..)
    })
}

/// Past a text like `$$ .. $$` or `$tag$ .. $tag$`, or past a `$` that begins none; `None` when its end is missing.
fn after_dollars(text: &str, start: usize) -> Option<usize> {
    let is_tag = |c: char| c.is_alphanumeric() || c == '_';
    let tag = text[start + 1..].find(|c| !is_tag(c)).unwrap_or(text.len() - start - 1);
    let open = start + 1 + tag + 1;
    if text.as_bytes().get(open - 1) != Some(&b'$') {
        return Some(start + 1);
    }
    let mark = &text[start..open];
    text[open..].find(mark).map(|length| open + length + mark.len())
}

fn char_length(first: u8) -> usize {
    match first {
        0..0xc0 => 1,
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, statement: &str, ending: Ending) {
        let (end, _, found) = first_statement(text, ";").unwrap();
        assert_eq!((&text[..end], found), (statement, ending));
    }

    #[test]
    fn delimiters_inside_quotes_and_comments_do_not_count() {
        check(
            "SELECT ';', \"a;\", `;` /* ; */ -- ;\n; x",
            "SELECT ';', \"a;\", `;` /* ; */ -- ;\n",
            Ending::Plain,
        );
        check("SELECT 'it''s \\';'; b", "SELECT 'it''s \\';'", Ending::Plain);
        check("SELECT 5--3; b", "SELECT 5--3", Ending::Plain);
        check("SELECT 1\\G", "SELECT 1", Ending::Vertical);
        check("oops\\c", "oops", Ending::Cancelled);
        check("AS $$ a; 'b $$; c", "AS $$ a; 'b $$", Ending::Plain);
        check("AS $js$ $$; $j$; $js$; c", "AS $js$ $$; $j$; $js$", Ending::Plain);
        check("SELECT a$b, $c; d$", "SELECT a$b, $c", Ending::Plain);
    }

    #[test]
    fn an_unfinished_statement_waits() {
        for text in ["SELECT 1", "SELECT ';", "/* ;", "SELECT '\u{1F4A9}", "AS $$ a;", "AS $x$ $$;"]
        {
            assert_eq!(first_statement(text, ";"), None, "{text}");
        }
        assert_eq!(first_statement("a//b", "//"), Some((1, 3, Ending::Plain)));
        assert_eq!(first_statement("a $$ b", "$$"), Some((2, 4, Ending::Plain)));
    }
}
