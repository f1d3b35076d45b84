//! `squall import`: copies a running MySQL or MariaDB into a Squall server, and compares.
//!
//! The source is read at one moment, by several connections that begin their snapshots under one lock. Everything that the target refuses is in
//! the report. An import that was interrupted goes on when it is called again: what the target has is compared with the new moment, and only
//! what differs is copied again.

mod accounts;
pub(crate) mod address;
mod copy;
mod definitions;
mod dialect;
mod report;
mod rows;
pub(crate) mod server;
mod snapshot;
mod state;

use clap::Parser;
use clap::error::ErrorKind;

use address::Address;
use definitions::Definitions;
use report::Report;
use server::{Flavour, Server, quoted_text};
use snapshot::Snapshot;
use state::State;

/// Copies databases and accounts of a running MySQL or MariaDB into a Squall server
#[derive(Debug, Parser)]
#[command(name = "squall import")]
struct Arguments {
    /// The source: mysql://user@host:port/ or mysql://user@/socket; its password from SQUALL_SOURCE_PASSWORD, or user:password
    source: String,
    /// The databases; all unless given
    databases: Vec<String>,
    /// The target, in the same form; its password from SQUALL_PASSWORD
    #[arg(long)]
    into: String,
    /// Connections that copy at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Megabytes of a range of keys, which one connection copies at a time
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=1024))]
    range_mb: u64,
    /// Take no lock in the source: one connection reads, and the place in the binary log is not known
    #[arg(long)]
    without_lock: bool,
    /// Leave accounts, roles and grants out
    #[arg(long)]
    without_accounts: bool,
    /// Events run in the target at once, as they do in the source
    #[arg(long)]
    enable_events: bool,
}

/// Statements of each connection that writes: values as they are, in any order.
const WRITER: [&str; 3] = [
    "SET SESSION wait_timeout = 2073600, time_zone = '+00:00', foreign_key_checks = 0, unique_checks = 0",
    "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "SET character_set_results = NULL",
];

/// Runs the command line after `squall import`: progress to the standard error, the report as the result.
///
/// # Errors
/// The command line is wrong, a server cannot be reached or refuses, or not everything could be brought over: then the text is the report.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let parsed =
        Arguments::try_parse_from(["squall import".to_owned()].into_iter().chain(arguments));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(error.to_string()),
        Err(error) => return Err(error.render().ansi().to_string()),
    };
    let password = |name| std::env::var(name).ok();
    let source = Address::parse(&arguments.source, password("SQUALL_SOURCE_PASSWORD"))?;
    let target = Address::parse(&arguments.into, password("SQUALL_PASSWORD"))?;
    let mut import = Import::begin(&arguments, source, target)?;
    let report = import.run(&arguments)?;
    match report.is_complete() {
        true => Ok(report.text()),
        false => Err(report.text()),
    }
}

/// An import on its way.
struct Import {
    source: Address,
    target: Address,
    server: Server,
    state: State,
}

impl Import {
    fn begin(arguments: &Arguments, source: Address, target: Address) -> Result<Import, String> {
        debug_assert!(arguments.threads > 0, "the command line says so");
        let mut server = Server::new(target.connect()?)?;
        if !server.connection.server_version.contains("Squall") {
            return Err(format!("{target} is no Squall: {}", server.connection.server_version));
        }
        for sql in &WRITER[..2] {
            server.run(sql)?;
        }
        let state = State::read(&mut server, &source.place())?;
        if state.is_resumed {
            eprintln!(
                "An import was interrupted: it goes on. What is there is compared, and copied again where it differs."
            );
        }
        Ok(Import { source, target, server, state })
    }

    fn run(&mut self, arguments: &Arguments) -> Result<Report, String> {
        let mut report = Report::default();
        let threads = usize::from(arguments.threads);
        let mut snapshot = Snapshot::begin(&self.source, threads, !arguments.without_lock)?;
        let guard = &mut snapshot.guard;
        let read = definitions::read(guard, &arguments.databases, &mut report)?;
        let accounts = match arguments.without_accounts {
            true => Vec::new(),
            false => accounts::read(guard, &mut report)?,
        };
        if guard.flavour == Flavour::MariaDb && !arguments.without_lock {
            snapshot.release()?;
        }
        if accounts::is_account(&accounts, &self.target.user) {
            report.remarks.push(format!(
                "the source has an account {}, by which the import logged in: look at its password in the target",
                self.target.user
            ));
        }
        eprintln!("{} databases, {} tables", read.databases.len(), read.tables.len());
        self.state.make_databases(&mut self.server, &read.databases, &mut report)?;
        definitions::make_sequences(&mut self.server, &read.sequences, &mut report)?;
        self.drop_triggers(&read)?;
        let accounts = accounts::make(&mut self.server, accounts, &mut self.state, &mut report)?;
        let is_equal =
            self.copy_tables(&read, &mut snapshot, arguments.range_mb << 20, &mut report)?;
        let events = arguments.enable_events;
        definitions::make_programs(&mut self.server, &read.programs, events, &mut report)?;
        accounts::grant(&mut self.server, &accounts, &mut report);
        self.remark_on_position(&mut snapshot, &mut report)?;
        if is_equal {
            self.server.run(&format!("DROP DATABASE {}", state::SCHEMA))?;
        } else {
            report
                .remarks
                .push("rows are missing or differ: the same command tries them again".to_owned());
        }
        Ok(report)
    }

    /// Those of an interrupted import would run for each row.
    fn drop_triggers(&mut self, read: &Definitions) -> Result<(), String> {
        for database in &read.databases {
            let list = format!(
                "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = {}",
                quoted_text(&database.name)
            );
            for row in self.server.rows(&list)? {
                let names = [&database.name, &row[0]].map(|name| server::quoted_name(name));
                self.server.run(&format!("DROP TRIGGER {}", names.join(".")))?;
            }
        }
        Ok(())
    }

    /// Makes and fills the tables; false when the rows of one are not equal to the source's.
    fn copy_tables(
        &mut self,
        read: &Definitions,
        snapshot: &mut Snapshot,
        range_bytes: u64,
        report: &mut Report,
    ) -> Result<bool, String> {
        let mut tables = Vec::new();
        for table in &read.tables {
            match self.state.make_table(&mut self.server, table, report) {
                Ok(()) => tables.push(table),
                Err(error) => report.missing(format!("table {}: {error}", table.quoted())),
            }
        }
        // The large ones first, so that all threads are busy to the end.
        tables.sort_by_key(|table| std::cmp::Reverse(table.bytes));
        let manner = copy::Manner { range_bytes, is_resumed: self.state.is_resumed };
        let mut is_equal = true;
        for copied in copy::copy(tables, &mut snapshot.readers, &self.target, manner)? {
            let path = copied.table.quoted();
            match copied.failure {
                Some(why) => {
                    is_equal = false;
                    report.missing(format!("rows of {path}: {why}"));
                }
                None => {
                    eprintln!(
                        "{path}: {} rows, checksum {} on both sides",
                        copied.rows, copied.checksum
                    );
                    report.made("tables with equal checksums");
                }
            }
            if let Some(warning) = copied.warning {
                report.changed(format!("rows of {path}: {warning}"));
            }
        }
        Ok(is_equal)
    }

    /// How to go on from the source's binary log.
    fn remark_on_position(
        &mut self,
        snapshot: &mut Snapshot,
        report: &mut Report,
    ) -> Result<(), String> {
        let Some(position) = &snapshot.position else {
            let why = "the source writes no binary log, or --without-lock kept the import from asking: nothing can follow the source from here";
            report.remarks.push(why.to_owned());
            return Ok(());
        };
        let place = format!("{} at {}", position.file, position.offset);
        let id = "SELECT @@server_id";
        if snapshot.guard.cell(id)? == self.server.cell(id)? {
            report.remarks.push("both servers have the same server_id: SET PERSIST server_id in the target before it follows the source".to_owned());
        }
        let way = match snapshot.guard.flavour {
            Flavour::MariaDb | Flavour::MySql if position.gtids.is_empty() => accounts::Way::Place,
            Flavour::MariaDb => accounts::Way::MariaDb,
            // gtid_purged would add to what is there already.
            Flavour::MySql if self.server.cell("SELECT @@gtid_executed")?.is_empty() => {
                accounts::Way::Identifiers
            }
            Flavour::MySql => accounts::Way::Place,
        };
        let host = self.source.host();
        let statement = accounts::follow(host, &self.source.user, position, way);
        report.remarks.push(format!("to follow the source from {place}:\n{statement}"));
        Ok(())
    }
}
