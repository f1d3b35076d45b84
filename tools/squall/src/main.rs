//! The command-line client: interactive with history and completion, or a batch of statements with several output formats. `squall plugin`
//! helps authors of plugins, `squall admin` administrators, `squall import` brings a MySQL's data, `squall binlog` reads
//! binary logs, `squall restore` brings a backup to a point in time, `squall cluster` runs a MySQL Cluster
//! on this machine, `squall docs` prints the documentation.

mod admin;
mod binlog;
mod cluster;
mod complete;
mod docs;
mod format;
mod import;
mod options;
mod plugin;
mod shell;
mod split;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match arguments.next().as_deref() {
        Some("plugin") => plugin::run(arguments),
        Some("admin") => admin::run(arguments),
        Some("binlog") => binlog::run(arguments),
        Some("cluster") => cluster::run(arguments),
        Some("docs") => docs::run(arguments),
        Some("restore") => binlog::restore::run(arguments),
        Some("import") => import::run(arguments),
        Some(_) | None => run(&options::Options::parse()).map(|()| String::new()),
    };
    match result {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &options::Options) -> Result<(), String> {
    let mut shell = shell::Shell::open(options)?;
    if let Some(text) = &options.execute {
        return shell.batch(text);
    }
    if options.batch || !std::io::stdin().is_terminal() {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(|error| error.to_string())?;
        return shell.batch(&text);
    }
    shell.interactive()
}
