//! `squall binlog`: lists, shows, filters, repeats and undoes what a binary log has: MySQL's or Squall's, in files or from a server.

mod filter;
mod list;
mod read;
mod replay;
pub(crate) mod restore;
mod show;
mod sql;
#[cfg(test)]
mod tests;
mod time;
mod walk;

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use crate::import::address::Address;
use crate::import::server::Server;
use replay::{Flashback, Manner, Output, Replay};
use sql::Targets;
use walk::{Chosen, Selection, Sink, Walk};

/// Reads the binary log of a MySQL or Squall
#[derive(Debug, Parser)]
#[command(name = "squall binlog")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists log files: size, server, times, transactions
    List {
        /// Log files, or directories of them
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
    /// Shows transactions, rows as statements that nothing runs
    Show {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        selection: Selection,
        /// One JSON object per row or statement, one per line
        #[arg(long, conflicts_with = "events")]
        json: bool,
        /// A line for every event too
        #[arg(long)]
        events: bool,
    },
    /// Writes the transactions that are chosen to a new log file
    Filter {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        selection: Selection,
        /// The new file
        #[arg(short, long)]
        output: PathBuf,
    },
    /// Repeats transactions on a server, or writes the statements
    Replay {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        target: Target,
        /// Transactions get new identifiers
        #[arg(long)]
        without_gtids: bool,
    },
    /// Undoes transactions on a server, the last first, or writes the statements
    Flashback {
        #[command(flatten)]
        source: Source,
        #[command(flatten)]
        selection: Selection,
        #[command(flatten)]
        target: Target,
        /// Most megabytes of changes that are held
        #[arg(long, default_value_t = 1024)]
        memory_mb: u64,
    },
}

/// Where the log is
#[derive(Debug, Args)]
struct Source {
    /// Log files, or directories of them
    #[arg(required_unless_present = "from")]
    paths: Vec<PathBuf>,
    /// A server that sends its log: mysql://user@host:port/ or mysql://user@/socket; its password from SQUALL_SOURCE_PASSWORD
    #[arg(long, value_name = "URL", conflicts_with = "paths")]
    from: Option<String>,
}

/// Where statements go
#[derive(Debug, Args)]
struct Target {
    /// The server that runs the statements; its password from SQUALL_PASSWORD. They are written to the standard output without it
    #[arg(long, value_name = "URL")]
    into: Option<String>,
    /// A server that tells names, keys and generated columns of tables, where the log has not all of these; the target unless given
    #[arg(long, value_name = "URL")]
    names: Option<String>,
    /// Rows as INSERT, UPDATE and DELETE instead of BINLOG statements: for servers and people that do not read these
    #[arg(long)]
    sql: bool,
}

/// Runs the command line after `squall binlog`.
///
/// # Errors
/// The command line is wrong, the log cannot be read or is damaged, or a server refuses.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let parsed =
        Arguments::try_parse_from(["squall binlog".to_owned()].into_iter().chain(arguments));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(error.to_string()),
        Err(error) => return Err(error.render().ansi().to_string()),
    };
    let stdout = std::io::stdout();
    let mut out = BufWriter::new(stdout.lock());
    let result = run_command(arguments.command, &mut out);
    // What was read before an error is shown.
    out.flush().map_err(|error| error.to_string())?;
    result
}

fn run_command(command: Command, out: &mut dyn Write) -> Result<String, String> {
    match command {
        Command::List { paths } => list::run(&read::files(&paths)?),
        Command::Show { source, selection, json, events } => {
            walk(&source, &selection.read()?, &mut show::Show::new(out, json, events))?;
            Ok(String::new())
        }
        Command::Filter { source, selection, output } => {
            filter::run(&source, &selection.read()?, &output)
        }
        Command::Replay { source, selection, target, without_gtids } => {
            let mut replay = target.replay(out, !without_gtids)?;
            walk(&source, &selection.read()?, &mut replay)?;
            finish(replay, target.into.is_some(), "repeated")
        }
        Command::Flashback { source, selection, target, memory_mb } => {
            let mut flashback = Flashback::new(memory_mb << 20);
            walk(&source, &selection.read()?, &mut flashback)?;
            let mut replay = target.replay(out, false)?;
            flashback.undo(&mut replay)?;
            finish(replay, target.into.is_some(), "undone")
        }
    }
}

fn finish(mut replay: Replay<'_>, says: bool, done: &str) -> Result<String, String> {
    replay.output.close()?;
    if !says {
        return Ok(String::new());
    }
    let mut text = format!("{} transactions {done}, {} rows", replay.applied, replay.rows);
    if replay.skipped > 0 {
        text += &format!("; {} were there already", replay.skipped);
    }
    if let Some(last) = &replay.last {
        text += &format!(
            "\nthe last: {}, {}, committed at {} UTC",
            last.name(),
            last.place,
            time::text(last.micros())
        );
    }
    Ok(text + "\n")
}

fn connect(url: &str) -> Result<Server, String> {
    let address = Address::parse(url, std::env::var("SQUALL_PASSWORD").ok())?;
    Server::new(address.connect()?)
}

impl Target {
    fn replay<'o>(&self, out: &'o mut dyn Write, keeps_gtids: bool) -> Result<Replay<'o>, String> {
        let manner = match self.sql {
            true => Manner::Statements,
            false => Manner::Events(Box::default()),
        };
        let names = self.names.as_ref().or(self.into.as_ref());
        let targets = Targets::new(names.map(|url| connect(url)).transpose()?);
        let output = match &self.into {
            Some(url) => Output::Server(Box::new(connect(url)?)),
            None => Output::Script(out),
        };
        Replay::new(output, manner, targets, keeps_gtids)
    }
}

/// Gives the chosen transactions of the source to the sink.
fn walk(source: &Source, chosen: &Chosen, sink: &mut dyn Sink) -> Result<(), String> {
    let mut walk = Walk::new(chosen, sink);
    if let Some(url) = &source.from {
        let address = Address::parse(url, std::env::var("SQUALL_SOURCE_PASSWORD").ok())?;
        read::server(&address, &chosen.exclude, &mut |place, header, body| {
            walk.take(place, header, body)
        })?;
    } else {
        let files = read::files(&source.paths)?;
        for (at, path) in files.iter().enumerate() {
            (walk.is_first_file, walk.is_last_file) = (at == 0, at + 1 == files.len());
            let read = read::file(path, &mut |place, header, body| walk.take(place, header, body));
            if read?.is_break() {
                break;
            }
        }
    }
    match walk.unfinished() {
        None => Ok(()),
        Some(open) => Err(format!(
            "{}: transaction {} has no end in the log; nothing of it counts",
            open.place,
            open.name()
        )),
    }
}
