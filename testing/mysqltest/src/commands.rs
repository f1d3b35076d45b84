//! Runs a test's items and collects what they print.

use std::path::{Path, PathBuf};
use std::time::Duration;

use errors::ErrorCode;

use crate::connections::{Answered, Connections, Data, Login, SqlError};
use crate::output::{self, Changes, Layout};
use crate::script::{self, Item, Kind};
use crate::variables::{Variables, holds};

/// Turns of one `while`, and how deep files may include each other.
const TURNS_MAX: usize = 1_000_000;
const DEPTH_MAX: usize = 16;

/// How a test ended without a fault.
pub enum Ended {
    /// With this output.
    Complete(String),
    /// By `skip`.
    Skipped,
}

/// Whether the items that follow run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Continue,
    Exit,
    Skip,
}

/// An outcome that `--error` allows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Allowed {
    Success,
    Code(u16),
    State(String),
}

/// What is printed.
struct Shown {
    query: bool,
    result: bool,
    warnings: bool,
    info: bool,
    layout: Layout,
}

struct Run<'a> {
    test: &'a Path,
    connections: Connections,
    variables: Variables,
    shown: Shown,
    /// A statement that fails ends the test.
    aborts: bool,
    allowed: Vec<Allowed>,
    changes: Changes,
    printed: String,
    depth: usize,
}

/// Runs a test on a server, in the schema `test`, which it finds empty.
///
/// # Errors
/// A statement failed that should not have, or the other way round; a command is wrong. Names the line.
pub fn run(items: &[Item], test: &Path, address: &str) -> Result<Ended, String> {
    let mut connections = Connections::new(address)?;
    let login = Login { user: "root", password: "", schema: None };
    connections.connect("default", &login)?.map_err(|error| error.message)?;
    for sql in ["DROP DATABASE IF EXISTS test", "CREATE DATABASE test", "USE test"] {
        connections.run(sql)?.1.map_err(|error| error.message)?;
    }
    let shown = Shown {
        query: true,
        result: true,
        warnings: true,
        info: false,
        layout: Layout::Horizontal,
    };
    let mut run = Run {
        test,
        connections,
        variables: Variables::default(),
        shown,
        aborts: true,
        allowed: Vec::new(),
        changes: Changes::default(),
        printed: String::new(),
        depth: 0,
    };
    Ok(match run.items(items)? {
        Flow::Continue | Flow::Exit => Ended::Complete(run.printed),
        Flow::Skip => Ended::Skipped,
    })
}

impl Run<'_> {
    fn items(&mut self, items: &[Item]) -> Result<Flow, String> {
        for item in items {
            let flow = self.item(item).map_err(|error| match error.starts_with("line ") {
                true => error,
                false => format!("line {}: {error}", item.line),
            })?;
            if flow != Flow::Continue {
                return Ok(flow);
            }
        }
        Ok(Flow::Continue)
    }

    fn item(&mut self, item: &Item) -> Result<Flow, String> {
        match &item.kind {
            Kind::Sql(sql) => self.statement(sql).map(|()| Flow::Continue),
            Kind::Command(name, arguments) => self.command(name, arguments),
            Kind::If(condition, body) => match self.condition(condition)? {
                true => self.items(body),
                false => Ok(Flow::Continue),
            },
            Kind::While(condition, body) => {
                for _ in 0..TURNS_MAX {
                    if !self.condition(condition)? {
                        return Ok(Flow::Continue);
                    }
                    let flow = self.items(body)?;
                    if flow != Flow::Continue {
                        return Ok(flow);
                    }
                }
                Err("a loop without an end".into())
            }
        }
    }

    fn condition(&mut self, text: &str) -> Result<bool, String> {
        let (negated, inner) = match text.strip_prefix('!') {
            Some(rest) if rest.trim_start().starts_with('`') => (true, rest.trim()),
            _ => (false, text),
        };
        let value = self.value(inner)?;
        Ok(holds(&value) != negated)
    }

    /// A variable's new value: the first cell of a query in backticks, a cell by `query_get_value`, or expanded text.
    fn value(&mut self, text: &str) -> Result<String, String> {
        let text = self.variables.expand(text.trim())?;
        if let Some(sql) = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')) {
            let data = self.query(sql)?;
            let row = data.rows.first().cloned().unwrap_or_default();
            let cells = row.into_iter().map(|cell| cell.unwrap_or_default());
            return Ok(cells.collect::<Vec<_>>().join("\t"));
        }
        let Some(inside) = text.strip_prefix("query_get_value(") else { return Ok(text) };
        let wrong = || format!("{text}: query_get_value(query, column, row) was expected");
        let inside = inside.strip_suffix(')').ok_or_else(wrong)?;
        let (inside, row) = inside.rsplit_once(',').ok_or_else(wrong)?;
        let (sql, column) = inside.rsplit_once(',').ok_or_else(wrong)?;
        let row: usize = row.trim().parse().map_err(|_| wrong())?;
        let data = self.query(sql.trim().trim_matches('"'))?;
        let column = data.names.iter().position(|name| name == column.trim()).ok_or_else(wrong)?;
        let Some(row) = data.rows.get(row.wrapping_sub(1)) else { return Ok("No such row".into()) };
        Ok(row[column].clone().unwrap_or_else(|| "NULL".into()))
    }

    fn query(&mut self, sql: &str) -> Result<Data, String> {
        let (results, end) = self.connections.run(sql)?;
        end.map_err(|error| format!("{sql}: {}", error.message))?;
        Ok(results.into_iter().next().unwrap_or_default())
    }

    fn statement(&mut self, sql: &str) -> Result<(), String> {
        self.echo(sql);
        let answered = self.connections.run(sql)?;
        self.answered(answered, sql)
    }

    fn echo(&mut self, sql: &str) {
        if self.shown.query {
            let text = self.changes.replaced(format!("{sql};\n"));
            self.printed.push_str(&text);
        }
    }

    /// Prints a statement's results, and checks its end against what `--error` allows.
    fn answered(&mut self, answered: Answered, sql: &str) -> Result<(), String> {
        let (changes, allowed) =
            (std::mem::take(&mut self.changes), std::mem::take(&mut self.allowed));
        let (results, end) = answered;
        for data in &results {
            self.result(data, &changes);
        }
        match end {
            Ok(()) if allowed.is_empty() || allowed.contains(&Allowed::Success) => Ok(()),
            Ok(()) => Err(format!("{sql}\n    succeeded, but {allowed:?} was expected")),
            Err(error) => self.failed(&error, &allowed, &changes, sql),
        }
    }

    fn result(&mut self, data: &Data, changes: &Changes) {
        if self.shown.result && !data.names.is_empty() {
            self.printed.push_str(&changes.result(data, self.shown.layout));
        }
        if self.shown.info && data.names.is_empty() {
            self.printed.push_str(&format!("affected rows: {}\n", data.affected));
            if !data.info.is_empty() {
                self.printed.push_str(&format!("info: {}\n", data.info));
            }
        }
        if self.shown.warnings && self.shown.result && !data.warnings.is_empty() {
            let cells = |row: &Vec<Option<String>>| {
                let cells = row.iter().map(|cell| cell.clone().unwrap_or_else(|| "NULL".into()));
                cells.collect::<Vec<_>>().join("\t") + "\n"
            };
            let lines: String = data.warnings.iter().map(cells).collect();
            self.printed.push_str("Warnings:\n");
            self.printed.push_str(&changes.replaced(lines));
        }
    }

    fn failed(
        &mut self,
        error: &SqlError,
        allowed: &[Allowed],
        changes: &Changes,
        sql: &str,
    ) -> Result<(), String> {
        let is_allowed = allowed.iter().any(|allowed| match allowed {
            Allowed::Success => false,
            Allowed::Code(code) => *code == error.code,
            Allowed::State(state) => *state == error.sqlstate,
        });
        if !is_allowed && (self.aborts || !allowed.is_empty()) {
            let SqlError { code, sqlstate, message } = error;
            return Err(format!("{sql}\n    ERROR {code} ({sqlstate}): {message}"));
        }
        if self.shown.result {
            // Which of several errors came is not part of the result.
            let text = match allowed {
                [] | [_] => changes.error(error),
                _ => "Got one of the listed errors\n".to_owned(),
            };
            self.printed.push_str(&text);
        }
        Ok(())
    }

    fn command(&mut self, name: &str, arguments: &str) -> Result<Flow, String> {
        if self.switch(name) || self.change(name, arguments)? {
            return Ok(Flow::Continue);
        }
        match name {
            "echo" => {
                let text = self.variables.expand(arguments)?;
                self.printed.push_str(&format!("{text}\n"));
            }
            "error" => self.allowed = allowed(&self.variables.expand(arguments)?)?,
            "eval" => {
                let sql = self.variables.expand(arguments)?;
                self.statement(&sql)?;
            }
            "query" => self.statement(arguments)?,
            "query_horizontal" => self.in_layout(Layout::Horizontal, arguments)?,
            "query_vertical" => self.in_layout(Layout::Vertical, arguments)?,
            "let" => self.assign(arguments)?,
            "inc" => self.count(arguments, 1)?,
            "dec" => self.count(arguments, -1)?,
            "source" => return self.source(arguments),
            "sleep" | "real_sleep" => {
                let seconds = self.variables.expand(arguments)?.parse().unwrap_or(0.0);
                std::thread::sleep(Duration::from_secs_f64(f64::clamp(seconds, 0.0, 60.0)));
            }
            "die" => return Err(self.variables.expand(arguments)?),
            "skip" => return Ok(Flow::Skip),
            "exit" => return Ok(Flow::Exit),
            other => self.connection_command(other, arguments)?,
        }
        Ok(Flow::Continue)
    }

    /// The commands that switch something on or off; false for any other.
    fn switch(&mut self, name: &str) -> bool {
        match name {
            "enable_query_log" => self.shown.query = true,
            "disable_query_log" => self.shown.query = false,
            "enable_result_log" => self.shown.result = true,
            "disable_result_log" => self.shown.result = false,
            "enable_warnings" => self.shown.warnings = true,
            "disable_warnings" => self.shown.warnings = false,
            "enable_info" => self.shown.info = true,
            "disable_info" => self.shown.info = false,
            "enable_abort_on_error" => self.aborts = true,
            "disable_abort_on_error" => self.aborts = false,
            "vertical_results" => self.shown.layout = Layout::Vertical,
            "horizontal_results" => self.shown.layout = Layout::Horizontal,
            _ => return false,
        }
        true
    }

    /// The commands for the next statement's output; false for any other.
    fn change(&mut self, name: &str, arguments: &str) -> Result<bool, String> {
        match name {
            "replace_column" => {
                self.changes.columns = output::columns(&self.variables.expand(arguments)?)?;
            }
            "replace_result" => {
                self.changes.texts = output::pairs(&self.variables.expand(arguments)?)?;
            }
            "replace_regex" => self.changes.patterns = output::patterns(arguments)?,
            "sorted_result" => self.changes.sorted = true,
            "lowercase_result" => self.changes.lowercase = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn connection_command(&mut self, name: &str, arguments: &str) -> Result<(), String> {
        let arguments = self.variables.expand(arguments)?;
        match name {
            "connect" => self.connect(&arguments),
            "connection" => self.connections.select(&arguments),
            "disconnect" | "dirty_close" => self.connections.disconnect(&arguments),
            "send" | "send_eval" => {
                self.echo(&arguments);
                self.connections.send(&arguments)
            }
            "reap" => {
                let answered = self.connections.reap()?;
                self.answered(answered, "reap")
            }
            other => Err(format!("the command {other} is not built")),
        }
    }

    /// `connect (name, host, user, password, schema)`: the host is always the server under test.
    fn connect(&mut self, arguments: &str) -> Result<(), String> {
        let inside = arguments.trim_start_matches('(').trim_end_matches(')');
        let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
        let part = |place: usize| parts.get(place).copied().filter(|part| !part.is_empty());
        let name = part(0).ok_or("connect (name, host, user, password, schema) was expected")?;
        let schema = match part(4) {
            Some("*NO-ONE*") => None,
            given => Some(given.unwrap_or("test")),
        };
        let login =
            Login { user: part(2).unwrap_or("root"), password: part(3).unwrap_or(""), schema };
        let end = self.connections.connect(name, &login)?;
        self.answered((Vec::new(), end), arguments)
    }

    fn in_layout(&mut self, layout: Layout, sql: &str) -> Result<(), String> {
        let sql = self.variables.expand(sql)?;
        let before = std::mem::replace(&mut self.shown.layout, layout);
        let end = self.statement(&sql);
        self.shown.layout = before;
        end
    }

    fn assign(&mut self, arguments: &str) -> Result<(), String> {
        let (name, value) = arguments.split_once('=').ok_or("let $name = value was expected")?;
        let value = self.value(value)?;
        self.variables.set(name.trim(), value);
        Ok(())
    }

    fn count(&mut self, name: &str, step: i64) -> Result<(), String> {
        let value: i64 = self.variables.get(name).and_then(|it| it.parse().ok()).unwrap_or(0);
        self.variables.set(name, (value + step).to_string());
        Ok(())
    }

    /// Runs another file, found from the suite's folder or from the test's.
    fn source(&mut self, arguments: &str) -> Result<Flow, String> {
        let name = self.variables.expand(arguments)?;
        let near = |levels: usize| self.test.ancestors().nth(levels).map(|it| it.join(&name));
        let candidates = [Some(PathBuf::from(&name)), near(1), near(2), near(3)];
        let found = candidates.into_iter().flatten().find(|path| path.is_file());
        let path = found.ok_or_else(|| format!("{name}: no such file"))?;
        if self.depth == DEPTH_MAX {
            return Err(format!("{name}: files include each other too deeply"));
        }
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let items = script::parse(&text).map_err(|error| format!("{name}: {error}"))?;
        self.depth += 1;
        let flow = self.items(&items).map_err(|error| format!("{name}: {error}"));
        self.depth -= 1;
        flow
    }
}

/// Reads the list of `--error`: numbers, names, `S` and an SQLSTATE, 0 for success.
fn allowed(arguments: &str) -> Result<Vec<Allowed>, String> {
    let one = |word: &str| {
        if let Ok(code) = word.parse::<u16>() {
            return Ok(if code == 0 { Allowed::Success } else { Allowed::Code(code) });
        }
        if let Some(state) = word.strip_prefix('S').filter(|state| state.len() == 5) {
            return Ok(Allowed::State(state.to_owned()));
        }
        let bare = word.strip_prefix("ER_").or_else(|| word.strip_prefix("WARN_"));
        let found = ErrorCode::all().find(|code| bare.is_some() && code.name() == bare);
        found.map(|code| Allowed::Code(code.0)).ok_or_else(|| format!("no error is called {word}"))
    };
    let words = arguments.split(',').map(str::trim).filter(|word| !word.is_empty());
    words.map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_numbers_names_and_states() {
        let list = allowed("1146, ER_NO_SUCH_TABLE,S42S02,0").unwrap();
        let state = Allowed::State("42S02".into());
        assert_eq!(list, [Allowed::Code(1146), Allowed::Code(1146), state, Allowed::Success]);
        assert!(allowed("ER_NOTHING_LIKE_IT").is_err());
    }
}
