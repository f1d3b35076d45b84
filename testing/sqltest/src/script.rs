//! The script format: statements after a prompt, each followed by the expected answer.

/// How a step is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `> `: text protocol, wait for the answer.
    Text,
    /// `>p `: prepared, binary protocol.
    Prepared,
    /// `>& `: send and continue; the answer is `waits` when the statement blocks.
    Background,
    /// `>= `: the answer of the previously sent statement.
    Reap,
    /// `>!`: KILL QUERY for the previously sent statement, and its answer.
    Stop,
}

/// A piece of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A comment or blank line, kept as it is.
    Verbatim(String),
    /// A statement and its expected answer.
    Step {
        /// `c1` when the prompt has no name.
        connection: String,
        /// How.
        mode: Mode,
        /// Directives of the comment lines above: `@types`, `@sort`.
        sql: String,
        /// Expected answer, lines joined by newlines.
        expected: String,
        /// The prompt as written.
        prompt: String,
    },
}

/// Splits a script.
pub fn parse(text: &str) -> Vec<Item> {
    let mut items = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((connection, mode, prompt)) = prompt(line) else {
            items.push(Item::Verbatim(line.to_owned()));
            continue;
        };
        let mut sql = line[prompt.len()..].to_owned();
        // A statement continues over indented lines.
        while let Some(next) = lines.next_if(|next| next.starts_with("  ")) {
            sql.push('\n');
            sql.push_str(next);
        }
        let mut expected = Vec::new();
        while let Some(next) = lines.next_if(|next| {
            !next.is_empty() && !next.starts_with("# ") && self::prompt(next).is_none()
        }) {
            expected.push(next);
        }
        items.push(Item::Step { connection, mode, sql, expected: expected.join("\n"), prompt });
    }
    items
}

/// Prints a script from its items.
pub fn print(items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
        match item {
            Item::Verbatim(line) => text.push_str(line),
            Item::Step { sql, expected, prompt, .. } => {
                text.push_str(prompt);
                text.push_str(sql);
                if !expected.is_empty() {
                    text.push('\n');
                    text.push_str(expected);
                }
            }
        }
        text.push('\n');
    }
    text
}

/// Connections whose name begins so log in as that user, without a schema, with the password after a colon; others as root, in the script's schema.
pub const USER: &str = "u_";

fn prompt(line: &str) -> Option<(String, Mode, String)> {
    let end = line.find('>')?;
    let name = &line[..end];
    let named = name
        .strip_prefix('c')
        .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    let is_user = name
        .strip_prefix(USER)
        .map(|n| n.split_once(':').unwrap_or((n, "")))
        .is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_alphanumeric()));
    if !name.is_empty() && !named && !is_user {
        return None;
    }
    let rest = &line[end + 1..];
    let (mode, skip) = match rest.as_bytes() {
        [b' ', ..] => (Mode::Text, 1),
        [b'p', b' ', ..] => (Mode::Prepared, 2),
        [b'&', b' ', ..] => (Mode::Background, 2),
        [b'='] => (Mode::Reap, 1),
        [b'!'] => (Mode::Stop, 1),
        _ => return None,
    };
    let connection = if name.is_empty() { "c1" } else { name };
    Some((connection.to_owned(), mode, line[..end + 1 + skip].to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str =
        "# A script.\n> SELECT 1\n1\n1\n\nc2>& UPDATE t\n  SET a = 1\nwaits\nc2>=\nok\n";

    #[test]
    fn steps_carry_connection_mode_and_answer() {
        let items = parse(SCRIPT);
        assert_eq!(items.len(), 5);
        let Item::Step { connection, mode, sql, expected, .. } = &items[3] else { panic!() };
        assert_eq!((connection.as_str(), *mode), ("c2", Mode::Background));
        assert_eq!((sql.as_str(), expected.as_str()), ("UPDATE t\n  SET a = 1", "waits"));
    }

    #[test]
    fn printing_gives_the_script_back() {
        assert_eq!(print(&parse(SCRIPT)), SCRIPT);
    }
}
