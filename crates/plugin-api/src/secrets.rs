//! Passwords in texts of statements: observers and logs get `<secret>` in their place.

use std::borrow::Cow;

const SECRET: &[u8] = b"'<secret>'";

/// The text without passwords: literals after IDENTIFIED BY, IDENTIFIED .. AS, REPLACE, PASSWORD (also of a server's options) and, in statements about change streams, SECRET, HEADERS and PRIVATE_KEY give way to `'<secret>'`, and so does
/// the text of a PREPARE that would contain one.
pub fn without_secrets(text: &[u8]) -> Cow<'_, [u8]> {
    if !mentions_password(text) && !is_about_streams(text) {
        return Cow::Borrowed(text);
    }
    let kept = Vec::with_capacity(text.len());
    let mut hider = Hider { text, kept, context: Context::Free, is_after_password: false };
    hider.run();
    Cow::Owned(hider.kept)
}

/// Whether a password may follow. Nearly all statements say no after a look at each byte.
fn mentions_password(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'd', b'D', text).any(|last| {
        let ends_with = |word: &[u8]| {
            let start = (last + 1).checked_sub(word.len());
            start.is_some_and(|start| text[start..=last].eq_ignore_ascii_case(word))
        };
        ends_with(b"identified") || ends_with(b"password")
    })
}

/// CREATE and ALTER CHANGE STREAM: a sink may have secrets.
fn is_about_streams(text: &[u8]) -> bool {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(2);
    let first = words.next().unwrap_or_default();
    (first.eq_ignore_ascii_case(b"CREATE") || first.eq_ignore_ascii_case(b"ALTER"))
        && words.next().is_some_and(|word| word.eq_ignore_ascii_case(b"CHANGE"))
}

/// What the words so far say of the next literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Context {
    /// Nothing.
    Free,
    /// IDENTIFIED: a password follows BY or AS.
    Identified,
    /// The next literal is a password.
    Secret,
    /// PASSWORD: a password follows `=` or `(`.
    Password,
}

struct Hider<'t> {
    text: &'t [u8],
    kept: Vec<u8>,
    context: Context,
    /// The last word is PASSWORD and nothing but spaces came after it: in the options of a server a literal follows.
    is_after_password: bool,
}

impl Hider<'_> {
    fn run(&mut self) {
        let mut at = 0;
        while at < self.text.len() {
            let end = self.token_end(at).min(self.text.len());
            debug_assert!(end > at, "each token takes some of the text");
            self.take(at, end);
            at = end;
        }
    }

    /// The end of the token that begins at `at`.
    fn token_end(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        match rest[0] {
            quote @ (b'\'' | b'"' | b'`') => at + quoted_length(rest, quote),
            b'#' => at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()),
            b'-' if rest.starts_with(b"-- ") => {
                at + rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
            }
            b'/' if rest.starts_with(b"/*") && !rest.starts_with(b"/*!") => {
                let end = rest.windows(2).skip(2).position(|two| two == b"*/");
                at + end.map_or(rest.len(), |end| end + 4)
            }
            byte if is_word(byte) => at + rest.iter().take_while(|byte| is_word(**byte)).count(),
            _ => at + 1,
        }
    }

    fn take(&mut self, at: usize, end: usize) {
        let token = &self.text[at..end];
        let is_after_password = self.is_after_password;
        if !token[0].is_ascii_whitespace() {
            self.is_after_password = token.eq_ignore_ascii_case(b"PASSWORD");
        }
        match token[0] {
            b'\'' | b'"' => {
                let inside = mentions_password(token);
                if self.context == Context::Secret || is_after_password || inside {
                    self.kept.extend_from_slice(SECRET);
                    self.context = Context::Free;
                    return;
                }
            }
            byte if is_word(byte) => self.context = self.after_word(token),
            b'=' | b'(' if self.context == Context::Password => self.context = Context::Secret,
            b',' | b';' => self.context = Context::Free,
            _ => {}
        }
        self.kept.extend_from_slice(token);
    }

    fn after_word(&self, word: &[u8]) -> Context {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        match self.context {
            Context::Free | Context::Identified | Context::Password | Context::Secret
                if is(b"IDENTIFIED") =>
            {
                Context::Identified
            }
            Context::Identified if is(b"BY") || is(b"AS") => Context::Secret,
            // IDENTIFIED BY PASSWORD '..', an introducer: the literal follows.
            Context::Secret => Context::Secret,
            Context::Free if is(b"replace") => Context::Secret,
            Context::Free | Context::Identified | Context::Password
                if word.len() >= 8 && word[word.len() - 8..].eq_ignore_ascii_case(b"PASSWORD") =>
            {
                Context::Password
            }
            Context::Free if [&b"SECRET"[..], b"HEADERS", b"PRIVATE_KEY"].into_iter().any(is) => {
                Context::Password
            }
            other => other,
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The length of the quoted text at the start of `rest`, its quotes included.
fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if quote != b'`' => at += 2,
            byte if byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(text: &str) -> String {
        String::from_utf8(without_secrets(text.as_bytes()).into_owned()).expect("UTF-8")
    }

    #[test]
    fn passwords_are_hidden() {
        for (text, expected) in [
            ("CREATE USER u@'h' IDENTIFIED BY 'pw'", "CREATE USER u@'h' IDENTIFIED BY '<secret>'"),
            (
                "create user 'a' identified with 'x' as 'h', 'b' identified by \"q\"\"r\"",
                "create user 'a' identified with 'x' as '<secret>', 'b' identified by '<secret>'",
            ),
            (
                "ALTER USER u IDENTIFIED BY 'a\\'b' REPLACE 'old'",
                "ALTER USER u IDENTIFIED BY '<secret>' REPLACE '<secret>'",
            ),
            ("SET PASSWORD FOR 'u' = 'pw'", "SET PASSWORD FOR 'u' = '<secret>'"),
            ("SET PASSWORD = PASSWORD('pw')", "SET PASSWORD = PASSWORD('<secret>')"),
            (
                "CREATE CHANGE STREAM s WITH (url = 'u', secret = 'pw', headers='A: b')",
                "CREATE CHANGE STREAM s WITH (url = 'u', secret = '<secret>', headers='<secret>')",
            ),
            ("PREPARE s FROM 'SET PASSWORD = \"x\"'", "PREPARE s FROM '<secret>'"),
            (
                "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD='x', SOURCE_HOST='h'",
                "CHANGE REPLICATION SOURCE TO SOURCE_PASSWORD='<secret>', SOURCE_HOST='h'",
            ),
            (
                "CREATE SERVER s FOREIGN DATA WRAPPER m OPTIONS (USER 'u', PASSWORD 'p', HOST 'h')",
                "CREATE SERVER s FOREIGN DATA WRAPPER m OPTIONS (USER 'u', PASSWORD '<secret>', HOST 'h')",
            ),
            ("SELECT 'plain'", "SELECT 'plain'"),
        ] {
            assert_eq!(hidden(text), expected);
        }
    }

    #[test]
    fn open_quotes_end_with_the_text() {
        assert_eq!(hidden("SET PASSWORD = 'pw"), "SET PASSWORD = '<secret>'");
        assert_eq!(hidden("SET PASSWORD = '\\"), "SET PASSWORD = '<secret>'");
    }
}
