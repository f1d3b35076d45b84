//! Reads a test: statements, commands and blocks.

/// An element of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Line of its start, from 1.
    pub line: usize,
    /// Its content.
    pub kind: Kind,
}

/// The content of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A statement for the server.
    Sql(String),
    /// A command of the test language with its arguments.
    Command(String, String),
    /// `if (condition) { .. }`.
    If(String, Vec<Item>),
    /// `while (condition) { .. }`.
    While(String, Vec<Item>),
}

/// The words that are commands; a statement that begins with anything else goes to the server.
pub const COMMANDS: [&str; 40] = [
    "connect",
    "connection",
    "dec",
    "delimiter",
    "die",
    "dirty_close",
    "disable_abort_on_error",
    "disable_info",
    "disable_query_log",
    "disable_result_log",
    "disable_warnings",
    "disconnect",
    "echo",
    "enable_abort_on_error",
    "enable_info",
    "enable_query_log",
    "enable_result_log",
    "enable_warnings",
    "error",
    "eval",
    "exit",
    "horizontal_results",
    "inc",
    "let",
    "lowercase_result",
    "query",
    "query_horizontal",
    "query_vertical",
    "real_sleep",
    "reap",
    "replace_column",
    "replace_regex",
    "replace_result",
    "send",
    "send_eval",
    "skip",
    "sleep",
    "sorted_result",
    "source",
    "vertical_results",
];

/// Commands of the language that this runner does not have: named in the error.
const NOT_BUILT: [&str; 29] = [
    "append_file",
    "cat_file",
    "change_user",
    "character_set",
    "chmod",
    "copy_file",
    "diff_files",
    "exec",
    "exec_in_background",
    "exec_sys",
    "expr",
    "file_exists",
    "list_files",
    "mkdir",
    "move_file",
    "output",
    "perl",
    "ping",
    "remove_file",
    "remove_files_wildcard",
    "reset_connection",
    "result_format",
    "rmdir",
    "send_quit",
    "send_shutdown",
    "shutdown_server",
    "start_timer",
    "wait_for_slave_to_stop",
    "write_file",
];

/// Reads a whole test.
///
/// # Errors
/// A block or quote without an end, an unknown command; names the line.
pub fn parse(text: &str) -> Result<Vec<Item>, String> {
    let mut reader = Reader { text, at: 0, delimiter: ";".into() };
    let items = reader.items(Nesting::Outermost)?;
    Ok(items)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Nesting {
    Outermost,
    Block,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    delimiter: String,
}

impl Reader<'_> {
    fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn items(&mut self, nesting: Nesting) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        loop {
            self.at += self.rest().len() - self.rest().trim_start().len();
            let line = self.line();
            if self.rest().is_empty() {
                return match nesting {
                    Nesting::Outermost => Ok(items),
                    Nesting::Block => Err(format!("line {line}: a block without its }}")),
                };
            }
            if self.rest().starts_with('}') {
                self.at += 1;
                return match nesting {
                    Nesting::Block => Ok(items),
                    Nesting::Outermost => Err(format!("line {line}: a }} without its block")),
                };
            }
            if self.rest().starts_with('#') {
                self.take_line();
            } else if let Some(kind) = self.item(line)? {
                items.push(Item { line, kind });
            }
        }
    }

    fn take_line(&mut self) -> &str {
        let start = self.at;
        let length = self.rest().find('\n').unwrap_or(self.rest().len());
        self.at += length;
        &self.text[start..start + length]
    }

    /// One item; nothing for a change of the delimiter.
    fn item(&mut self, line: usize) -> Result<Option<Kind>, String> {
        if self.rest().starts_with("--") {
            let text = self.take_line()[2..].trim().to_owned();
            return self.command(text, line);
        }
        for word in ["if", "while"] {
            let rest = self.rest();
            let after = rest.get(word.len()..).filter(|_| starts_with_word(rest, word));
            if after.is_some_and(|after| after.trim_start().starts_with('(')) {
                return self.block(word, line).map(Some);
            }
        }
        let text = self.statement(line)?;
        let first = first_word(&text).to_ascii_lowercase();
        if COMMANDS.contains(&first.as_str()) || NOT_BUILT.contains(&first.as_str()) {
            return self.command(text, line);
        }
        Ok((!text.is_empty()).then_some(Kind::Sql(text)))
    }

    /// The text up to the delimiter outside quotes, which is passed over.
    fn statement(&mut self, line: usize) -> Result<String, String> {
        let (start, mut quote) = (self.at, None);
        let mut escaped = false;
        for (offset, c) in self.text[start..].char_indices() {
            if quote.is_none() && self.text[start + offset..].starts_with(&self.delimiter) {
                self.at = start + offset + self.delimiter.len();
                return Ok(self.text[start..start + offset].trim().to_owned());
            }
            match (quote, c) {
                _ if escaped => escaped = false,
                (Some('\'' | '"'), '\\') => escaped = true,
                (Some(open), c) if c == open => quote = None,
                (None, '\'' | '"' | '`') => quote = Some(c),
                (Some(_) | None, _) => {}
            }
        }
        Err(format!("line {line}: a statement without its {}", self.delimiter))
    }

    fn command(&mut self, text: String, line: usize) -> Result<Option<Kind>, String> {
        let name = first_word(&text).to_ascii_lowercase();
        let arguments = text[name.len()..].trim().to_owned();
        if name == "delimiter" {
            self.delimiter = arguments;
            return Ok(None);
        }
        if NOT_BUILT.contains(&name.as_str()) {
            return Err(format!("line {line}: the command {name} is not built"));
        }
        if !COMMANDS.contains(&name.as_str()) {
            return Err(format!("line {line}: {name} is no command"));
        }
        Ok(Some(Kind::Command(name, arguments)))
    }

    fn block(&mut self, word: &str, line: usize) -> Result<Kind, String> {
        let unclosed = || format!("line {line}: a condition without its )");
        self.at += word.len();
        let open = self.rest().find('(').ok_or_else(unclosed)?;
        self.at += open + 1;
        let (mut depth, mut end) = (1, None);
        for (offset, c) in self.rest().char_indices() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth == 0 {
                end = Some(offset);
                break;
            }
        }
        let end = end.ok_or_else(unclosed)?;
        let condition = self.rest()[..end].trim().to_owned();
        self.at += end + 1;
        self.at += self.rest().len() - self.rest().trim_start().len();
        if !self.rest().starts_with('{') {
            return Err(format!("line {line}: a condition without its {{"));
        }
        self.at += 1;
        let items = self.items(Nesting::Block)?;
        Ok(if word == "if" { Kind::If(condition, items) } else { Kind::While(condition, items) })
    }
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

fn starts_with_word(text: &str, word: &str) -> bool {
    first_word(text).eq_ignore_ascii_case(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        parse(text).unwrap().into_iter().map(|item| item.kind).collect()
    }

    fn sql(text: &str) -> Kind {
        Kind::Sql(text.into())
    }

    fn command(name: &str, arguments: &str) -> Kind {
        Kind::Command(name.into(), arguments.into())
    }

    #[test]
    fn statements_end_at_the_delimiter_outside_quotes() {
        assert_eq!(
            kinds("# note\nSELECT ';', \"a;\\\"\";\nSELECT 2;"),
            [sql("SELECT ';', \"a;\\\"\""), sql("SELECT 2")]
        );
        assert_eq!(
            kinds(
                "delimiter //;\nCREATE PROCEDURE p() BEGIN SELECT 1; END//\ndelimiter ;//\nSELECT 1;"
            ),
            [sql("CREATE PROCEDURE p() BEGIN SELECT 1; END"), sql("SELECT 1")]
        );
        assert!(parse("SELECT 1").is_err());
    }

    #[test]
    fn commands_have_two_forms() {
        assert_eq!(
            kinds("--error 1146\nSELECT * FROM t;\nlet $a= 1;\n--echo it's;"),
            [
                command("error", "1146"),
                sql("SELECT * FROM t"),
                command("let", "$a= 1"),
                command("echo", "it's;")
            ]
        );
        assert!(parse("--nonsense\n").is_err());
        assert!(parse("--exec ls\n").unwrap_err().contains("not built"));
    }

    #[test]
    fn blocks_nest() {
        let parsed =
            kinds("while ($i > (1))\n{\n  if (!$x) { SELECT 1; }\n  dec $i;\n}\nSELECT 2;");
        let [Kind::While(condition, body), Kind::Sql(_)] = &parsed[..] else {
            panic!("{parsed:?}")
        };
        assert_eq!(condition, "$i > (1)");
        assert!(
            matches!(&body[0].kind, Kind::If(condition, inner) if condition == "!$x" && inner.len() == 1)
        );
        assert!(parse("if (1) {").is_err() && parse("}").is_err());
        // IF as a function is a statement's matter.
        assert_eq!(kinds("SELECT IF(1, 2, 3);"), [sql("SELECT IF(1, 2, 3)")]);
    }
}
