//! Reads statements, runs them, shows their results.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use client::{Answer, Connection, Failure, Outcome};
use rustyline::error::ReadlineError;
use rustyline::history::DefaultHistory;
use rustyline::{Config, Editor};

use crate::complete::Words;
use crate::format::Printer;
use crate::options::{Format, Options};
use crate::split::{Ending, first_statement};

const HELP: &str = "\
Statements end with ; or \\g, with \\G their result is shown vertically, \\c forgets what was typed.
  help, \\h          this text                source FILE, \\. FILE   run a file
  use SCHEMA, \\u    change the schema         pager CMD, nopager     where results go
  status, \\s        connection facts          format NAME            table, vertical, tsv, csv, json
  delimiter X, \\d   change the delimiter      rehash, \\#            read names for completion again
  quit, \\q          leave
";

/// Connects; asks for the password where the options want that.
///
/// # Errors
/// The server cannot be reached or refuses.
pub fn connect(options: &Options) -> Result<Connection, String> {
    let password = password_of(options)?;
    Connection::open(&options.login(&password)).map_err(|error| error.to_string())
}

fn password_of(options: &Options) -> Result<String, String> {
    match options.password.as_deref() {
        Some("?") => ask_password().map_err(|error| error.to_string()),
        other => Ok(other.unwrap_or_default().to_owned()),
    }
}

/// A connected shell.
pub struct Shell<'a> {
    options: &'a Options,
    connection: Connection,
    password: String,
    delimiter: String,
    format: Option<Format>,
    pager: Option<String>,
    interactive: bool,
}

/// Action after a line.
enum Next {
    Go,
    Quit,
}

impl<'a> Shell<'a> {
    /// Connects.
    ///
    /// # Errors
    /// The server cannot be reached or refuses.
    pub fn open(options: &'a Options) -> Result<Shell<'a>, String> {
        let password = password_of(options)?;
        let connection = Connection::open(&options.login(&password)).map_err(|e| e.to_string())?;
        Ok(Shell {
            options,
            connection,
            password,
            delimiter: ";".into(),
            format: options.format,
            pager: None,
            interactive: false,
        })
    }

    /// Runs all statements of `text`.
    ///
    /// # Errors
    /// The first statement that fails, unless `--force`.
    pub fn batch(&mut self, text: &str) -> Result<(), String> {
        let mut rest = text;
        loop {
            let line = rest.trim_start().lines().next().unwrap_or("");
            let command = command_of(line, &self.delimiter);
            if let Some(next) = self.command(command) {
                match next? {
                    Next::Quit => return Ok(()),
                    Next::Go => rest = &rest.trim_start()[line.len()..],
                }
                continue;
            }
            let (statement, end, ending) = match first_statement(rest, &self.delimiter) {
                Some((length, end, ending)) => (&rest[..length], end, ending),
                None => (rest, rest.len(), Ending::Plain),
            };
            if !statement.trim().is_empty() && ending != Ending::Cancelled {
                let result = self.run(statement.trim(), ending == Ending::Vertical);
                if let Err(message) = result {
                    if !self.options.force {
                        return Err(message);
                    }
                    eprintln!("{message}");
                }
            }
            if end >= rest.len() {
                return Ok(());
            }
            rest = &rest[end..];
        }
    }

    /// Prompts until the user leaves.
    ///
    /// # Errors
    /// The terminal fails.
    pub fn interactive(&mut self) -> Result<(), String> {
        self.interactive = true;
        println!(
            "Connected to {} (connection {}). Type help for help.",
            self.connection.server_version, self.connection.connection_id
        );
        let config = Config::builder().auto_add_history(true).build();
        let mut editor: Editor<Words, DefaultHistory> =
            Editor::with_config(config).map_err(|error| error.to_string())?;
        editor.set_helper(Some(Words { names: self.names() }));
        let history = std::env::var("HOME").map(|home| format!("{home}/.squall_history"));
        if let Ok(file) = &history {
            // The file does not exist the first time.
            let _ = editor.load_history(file);
        }
        let mut pending = String::new();
        loop {
            let prompt = if pending.is_empty() { "squall> " } else { "     -> " };
            match editor.readline(prompt) {
                Ok(line) => {
                    let rehash = matches!(line.trim(), "rehash" | "\\#");
                    if pending.is_empty() && rehash {
                        editor.set_helper(Some(Words { names: self.names() }));
                        continue;
                    }
                    match self.line(&line, &mut pending) {
                        Ok(Next::Go) => {}
                        Ok(Next::Quit) => break,
                        Err(message) => eprintln!("{message}"),
                    }
                }
                Err(ReadlineError::Interrupted) => pending.clear(),
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(error.to_string()),
            }
        }
        if let Ok(file) = &history {
            editor.save_history(file).map_err(|error| format!("{file}: {error}"))?;
        }
        Ok(())
    }

    /// Takes a typed line; complete statements run.
    fn line(&mut self, line: &str, pending: &mut String) -> Result<Next, String> {
        if pending.is_empty() {
            let command = command_of(line, &self.delimiter);
            if let Some(next) = self.command(command) {
                return next;
            }
        }
        pending.push_str(line);
        pending.push('\n');
        while let Some((length, end, ending)) = first_statement(pending, &self.delimiter) {
            let statement = pending[..length].trim().to_owned();
            pending.drain(..end);
            if !statement.is_empty() && ending != Ending::Cancelled {
                self.run(&statement, ending == Ending::Vertical)?;
            }
        }
        if pending.trim().is_empty() {
            pending.clear();
        }
        Ok(Next::Go)
    }

    /// Runs a command of the client itself; `None` when `line` is not a command.
    fn command(&mut self, line: &str) -> Option<Result<Next, String>> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "help" | "\\h" | "?" | "\\?" if rest.is_empty() => print!("{HELP}"),
            "quit" | "exit" | "\\q" if rest.is_empty() => return Some(Ok(Next::Quit)),
            "delimiter" | "DELIMITER" | "\\d" if !rest.is_empty() => {
                self.delimiter = rest.to_owned()
            }
            "source" | "\\." if !rest.is_empty() => {
                let text =
                    std::fs::read_to_string(rest).map_err(|error| format!("{rest}: {error}"));
                return Some(text.and_then(|text| self.batch(&text)).map(|()| Next::Go));
            }
            "use" | "\\u" if !rest.is_empty() && !rest.contains(' ') => {
                let name = rest.trim_matches('`').replace('`', "``");
                return Some(self.run(&format!("USE `{name}`"), false).map(|()| Next::Go));
            }
            "status" | "\\s" if rest.is_empty() => {
                const STATUS: &str = "SELECT CONNECTION_ID() AS connection, CURRENT_USER() AS user, \
                    DATABASE() AS `schema`, VERSION() AS version, @@version_comment AS comment";
                return Some(self.run(STATUS, true).map(|()| Next::Go));
            }
            "pager" | "\\P" => self.pager = (!rest.is_empty()).then(|| rest.to_owned()),
            "nopager" | "\\n" if rest.is_empty() => self.pager = None,
            "format" if !rest.is_empty() => {
                match <Format as clap::ValueEnum>::from_str(rest, true) {
                    Ok(format) => self.format = Some(format),
                    Err(_) => return Some(Err(format!("unknown format {rest}"))),
                }
            }
            _ => return None,
        }
        Some(Ok(Next::Go))
    }

    /// The format of results in the current mode.
    fn format(&self, vertical: bool) -> Format {
        if vertical || self.options.vertical {
            return Format::Vertical;
        }
        let terminal = self.interactive || std::io::stdout().is_terminal();
        let usual = if terminal || self.options.table { Format::Table } else { Format::Tsv };
        self.format.unwrap_or(usual)
    }

    /// Runs a statement and shows all its results; reconnects once when the connection was lost.
    fn run(&mut self, statement: &str, vertical: bool) -> Result<(), String> {
        let mut results = self.show(Some(statement), vertical);
        if let (Err(Failure::Lost(why)), true) = (&results, self.interactive) {
            eprintln!("{why}. Connecting again...");
            let login = self.options.login(&self.password);
            self.connection = Connection::open(&login).map_err(|error| error.to_string())?;
            results = self.show(Some(statement), vertical);
        }
        while results.as_ref().is_ok_and(|outcome| outcome.more) {
            results = self.show(None, vertical);
        }
        results.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Shows the first result of `statement`, or the next one of the last.
    fn show(&mut self, statement: Option<&str>, vertical: bool) -> client::Result<Outcome> {
        let started = Instant::now();
        let mut pager = self.pager.as_deref().and_then(|command| start_pager(command).ok());
        let stdout = std::io::stdout();
        let mut out: Box<dyn Write> = match pager.as_mut().and_then(|pager| pager.stdin.take()) {
            Some(input) => Box::new(std::io::BufWriter::new(input)),
            None => Box::new(std::io::BufWriter::new(stdout.lock())),
        };
        let format = self.format(vertical);
        let mut printer = Printer::new(format, !self.options.skip_column_names, &mut *out);
        let outcome = match statement {
            Some(sql) => self.connection.query(sql.as_bytes(), &mut printer as &mut dyn Answer),
            None => self.connection.next_result(&mut printer),
        };
        printer.finish();
        let flushed = out.flush();
        drop(out);
        if let Some(mut pager) = pager {
            // A pager that was closed early has seen enough.
            let _ = pager.wait();
        } else {
            flushed?;
        }
        if let (Ok(outcome), true) = (&outcome, self.interactive) {
            println!("{}\n", summary(outcome, started.elapsed().as_secs_f64()));
        }
        outcome
    }

    /// Names for completion: schemas, tables and columns of the current schema.
    fn names(&mut self) -> Vec<String> {
        struct Names(Vec<String>);
        impl Answer for Names {
            fn row(&mut self, cells: &[Option<&[u8]>]) {
                let cells = cells.iter().flatten();
                self.0.extend(cells.map(|cell| String::from_utf8_lossy(cell).into_owned()));
            }
        }
        let mut names = Names(Vec::new());
        for sql in [
            "SHOW DATABASES",
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()",
            "SELECT DISTINCT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()",
        ] {
            // Without names only completion is missing.
            let _ = self.connection.query(sql.as_bytes(), &mut names);
        }
        names.0.sort();
        names.0.dedup();
        names.0
    }
}

/// The line under a result.
fn summary(outcome: &Outcome, seconds: f64) -> String {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let warnings = match outcome.warnings {
        0 => String::new(),
        count => format!(", {count} warning{}", plural(count.into())),
    };
    let what = if outcome.columns.is_empty() {
        format!("{} row{} affected", outcome.affected_rows, plural(outcome.affected_rows))
    } else {
        format!("{} row{}", outcome.rows, plural(outcome.rows))
    };
    let info = if outcome.info.is_empty() { String::new() } else { format!("\n{}", outcome.info) };
    format!("{what}{warnings} ({seconds:.3} s){info}")
}

fn start_pager(command: &str) -> std::io::Result<std::process::Child> {
    Command::new("sh").args(["-c", command]).stdin(Stdio::piped()).spawn()
}

/// Asks without echo.
fn ask_password() -> std::io::Result<String> {
    let stty = |mode: &str| Command::new("stty").arg(mode).status();
    eprint!("Password: ");
    stty("-echo")?;
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line);
    stty("echo")?;
    eprintln!();
    read?;
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

/// A line as a command of the client. The delimiter that ends it is not part of it, but DELIMITER names one.
fn command_of<'l>(line: &'l str, delimiter: &str) -> &'l str {
    let line = line.trim();
    let word = line.split_whitespace().next().unwrap_or_default();
    match word.eq_ignore_ascii_case("delimiter") || word == "\\d" {
        true => line,
        false => line.trim_end_matches(delimiter),
    }
}

#[cfg(test)]
mod tests {
    use super::command_of;

    #[test]
    fn a_delimiter_may_begin_with_the_one_before() {
        assert_eq!(command_of(" DELIMITER ;; ", ";"), "DELIMITER ;;");
        assert_eq!(command_of("delimiter ;", ";;"), "delimiter ;");
        assert_eq!(command_of("\\d $$", "$$"), "\\d $$");
        assert_eq!(command_of("quit;", ";"), "quit");
    }
}
