//! `squall restore`: a data directory from a backup and the binary logs that were written since, up to a transaction or a time.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use binlog::{Event, Gtid, GtidSet, decode};
use clap::Parser;
use clap::error::ErrorKind;

use super::replay::{Manner, Output, Replay};
use super::sql::Targets;
use super::walk::{Chosen, Walk};
use super::{finish, read, time};
use crate::import::address::Address;
use crate::import::server::{Server, quoted_text};

/// Which transactions a backup has.
const EXECUTED: &str = "binary-log";
/// The first line of that file.
const FORMAT: &str = "squall-backup-log 1";
/// Longest start of the server.
const START_LIMIT: Duration = Duration::from_secs(3600);
/// How often a wait looks.
const STEP: Duration = Duration::from_millis(50);

/// Makes a data directory from a backup and binary logs, as it was after a transaction or at a time
#[derive(Debug, Parser)]
#[command(name = "squall restore")]
struct Arguments {
    /// What BACKUP DATABASE TO wrote, while the server had a binary log
    #[arg(long)]
    backup: PathBuf,
    /// Log files since the backup, or the directories that hold them
    #[arg(long, num_args = 1.., required = true)]
    binlogs: Vec<PathBuf>,
    /// The last transaction: UUID:NUMBER
    #[arg(long, conflicts_with = "until_time")]
    until_gtid: Option<String>,
    /// No transaction that committed later (UTC, 'YYYY-MM-DD hh:mm:ss[.ffffff]')
    #[arg(long)]
    until_time: Option<String>,
    /// The new data directory
    #[arg(long)]
    datadir: PathBuf,
    /// The account in the backup that repeats transactions; its password from SQUALL_PASSWORD
    #[arg(long, default_value = "root")]
    user: String,
    /// The server's program; beside this program unless given
    #[arg(long)]
    squalld: Option<PathBuf>,
}

/// Runs the command line after `squall restore`.
///
/// # Errors
/// The command line is wrong, the backup or a log is damaged or does not reach so far, the server does not start.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let parsed =
        Arguments::try_parse_from(["squall restore".to_owned()].into_iter().chain(arguments));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(error.to_string()),
        Err(error) => return Err(error.render().ansi().to_string()),
    };
    let executed = executed(&arguments.backup)?;
    let files = read::files(&arguments.binlogs)?;
    check_start(&files, &executed)?;
    let chosen = chosen(&arguments, &executed)?;
    let program = program(arguments.squalld.as_deref())?;
    restore(&program, &arguments)?;
    let mut running = Running::start(&program, &arguments)?;
    let result = repeat(&mut running, &arguments, &files, &chosen, &executed);
    let stopped = running.stop();
    let report = result?;
    stopped?;
    let place = arguments.datadir.display();
    Ok(format!("{report}start squalld with --datadir={place}\n"))
}

/// The transactions that the backup has.
fn executed(backup: &Path) -> Result<GtidSet, String> {
    let path = backup.join(EXECUTED);
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|error| {
        format!("{shown}: {error}; a backup has this file when its server had a binary log")
    })?;
    parse_executed(&text)
        .ok_or_else(|| format!("{shown}: the file is damaged or of another version"))
}

fn parse_executed(text: &str) -> Option<GtidSet> {
    let mut lines = text.lines();
    let is_known = lines.next()? == FORMAT;
    let _position: u64 = lines.next()?.strip_prefix("position ")?.parse().ok()?;
    let set = GtidSet::parse(lines.next()?.strip_prefix("executed ")?)?;
    (is_known && lines.next()? == "end").then_some(set)
}

/// The first log must not begin after the end of the backup.
fn check_start(files: &[PathBuf], executed: &GtidSet) -> Result<(), String> {
    let Some(first) = files.first() else { return Err("no log files".to_owned()) };
    let mut missing = GtidSet::default();
    let _ = read::file(first, &mut |_, header, body| {
        if let Ok(Event::PreviousGtids(before)) = decode(header.kind, body) {
            missing = before.subtract(executed);
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{} begins too late: transactions between the backup and it are missing: {}",
            first.display(),
            missing.to_string().replace('\n', "")
        )),
    }
}

fn chosen(arguments: &Arguments, executed: &GtidSet) -> Result<Chosen, String> {
    let until = arguments.until_time.as_deref().map(time::parse).transpose()?;
    let ended = ended_micros(&arguments.backup)?;
    if until.is_some_and(|until| until < ended) {
        let ended = time::text(ended);
        return Err(format!(
            "the backup ended at {ended} UTC, after the requested time: use an earlier one"
        ));
    }
    let last = match &arguments.until_gtid {
        Some(text) => Some(Gtid::parse(text).ok_or_else(|| format!("'{text}' is no UUID:NUMBER"))?),
        None => None,
    };
    if last.as_ref().is_some_and(|last| executed.contains(last.uuid, &last.tag, last.number)) {
        return Err(
            "the backup has the requested transaction, and may have later ones: use an earlier one"
                .to_owned(),
        );
    }
    Ok(Chosen::since(executed.clone(), until, last))
}

/// When the backup ended, as its manifest says.
fn ended_micros(backup: &Path) -> Result<u64, String> {
    let path = backup.join("manifest");
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("ended_micros "));
    let micros = line.and_then(|micros| micros.parse().ok());
    micros.ok_or_else(|| format!("{shown}: the file is damaged"))
}

fn program(given: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(own.with_file_name("squalld"))
}

/// The data directory as of the end of the backup.
fn restore(program: &Path, arguments: &Arguments) -> Result<(), String> {
    let (datadir, backup) = (arguments.datadir.display(), arguments.backup.display());
    eprintln!("restoring {backup} to {datadir}");
    let done = Command::new(program)
        .arg(format!("--datadir={datadir}"))
        .arg(format!("--restore-from={backup}"))
        .status();
    match done {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{} --restore-from ended with {status}", program.display())),
        Err(error) => Err(format!("{}: {error}", program.display())),
    }
}

/// A server that only this program reaches.
struct Running {
    process: Child,
    server: Server,
}

impl Running {
    fn start(program: &Path, arguments: &Arguments) -> Result<Running, String> {
        let socket = std::path::absolute(arguments.datadir.join("restore.sock"));
        let socket = socket.map_err(|error| error.to_string())?;
        let mut process = Command::new(program)
            .arg(format!("--datadir={}", arguments.datadir.display()))
            .arg(format!("--socket={}", socket.display()))
            .args(["--skip-networking", "--log-bin", "--event-scheduler=OFF"])
            // Where the backup has no account root; others do not come into the data directory.
            .args(["--skip-replica-start", "--insecure-root"])
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let password = std::env::var("SQUALL_PASSWORD").ok();
        let address = Address::of_socket(&socket, &arguments.user, password);
        let started = Instant::now();
        loop {
            let failure = match address.connect() {
                Ok(connection) => return Ok(Running { process, server: Server::new(connection)? }),
                Err(failure) => failure,
            };
            let ended = process.try_wait().map_err(|error| error.to_string())?;
            if let Some(status) = ended {
                return Err(format!("the server ended with {status}"));
            }
            // What a server says is no reason to wait.
            if !failure.contains("ERROR 2013") || started.elapsed() > START_LIMIT {
                let _ = process.kill();
                let _ = process.wait();
                return Err(format!("{failure}; name the account with --user and SQUALL_PASSWORD"));
            }
            std::thread::sleep(STEP);
        }
    }

    fn stop(mut self) -> Result<(), String> {
        let asked = self.server.run("SHUTDOWN").map(drop);
        if asked.is_err() {
            let _ = self.process.kill();
        }
        let status = self.process.wait().map_err(|error| error.to_string())?;
        asked?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }
}

fn repeat(
    running: &mut Running,
    arguments: &Arguments,
    files: &[PathBuf],
    chosen: &Chosen,
    executed: &GtidSet,
) -> Result<String, String> {
    let set = executed.to_string().replace('\n', "");
    running.server.run(&format!("SET GLOBAL gtid_purged = {}", quoted_text(&set)))?;
    let socket = std::path::absolute(arguments.datadir.join("restore.sock"));
    let socket = socket.map_err(|error| error.to_string())?;
    let password = std::env::var("SQUALL_PASSWORD").ok();
    let address = Address::of_socket(&socket, &arguments.user, password);
    let output = Output::Server(Box::new(Server::new(address.connect()?)?));
    let manner = Manner::Events(Box::default());
    let mut replay = Replay::new(output, manner, Targets::new(None), true)?;
    let mut walk = Walk::new(chosen, &mut replay);
    for path in files {
        let read = read::file(path, &mut |place, header, body| walk.take(place, header, body));
        if read?.is_break() {
            break;
        }
    }
    if let Some(open) = walk.unfinished() {
        eprintln!("the logs end within transaction {}: it is left out", open.name());
    }
    let is_found = chosen.last.is_none() || walk.has_last;
    let report = finish(replay, true, "repeated")?;
    match is_found {
        true => Ok(report),
        false => Err(format!(
            "{report}the logs do not have the requested transaction: all of them was repeated"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transactions_of_a_backup_are_read() {
        let uuid = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
        let text = format!("{FORMAT}\nposition 77\nexecuted {uuid}:1-5\nend\n");
        let set = parse_executed(&text).map(|set| set.to_string());
        assert_eq!(set.as_deref(), Some(&*format!("{uuid}:1-5")));
        assert!(parse_executed(&text.replace("\nend\n", "\n")).is_none());
        assert!(parse_executed(&text.replace("log 1", "log 2")).is_none());
        assert!(parse_executed("").is_none());
    }
}
