//! `squall admin`: what administrators ask a server for.

mod bundle;
mod lockstat;
mod mask;
pub(crate) mod table;

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};

use crate::options::Options;
use crate::shell;

/// Administration.
#[derive(Debug, Parser)]
#[command(name = "squall admin")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes a support bundle: versions, settings, statements by time, waits, plans, logs; no data, no literals, no secrets
    #[command(disable_help_flag = true)]
    Bundle {
        #[command(flatten)]
        options: Box<Options>,
        /// The archive; squall-bundle-TIME.tar.gz unless given
        #[arg(short, long)]
        output: Option<PathBuf>,
        /// Definitions of tables too: their DEFAULT values, comments and conditions may hold literals
        #[arg(long)]
        with_ddl: bool,
        /// How many statements, the slowest first
        #[arg(long, default_value_t = 50)]
        statements: u32,
    },
    /// Shows the locks that were waited for most, as plockstat does
    #[command(disable_help_flag = true)]
    Lockstat {
        #[command(flatten)]
        options: Box<Options>,
        /// How many locks of each kind
        #[arg(short = 'n', long, default_value_t = 10)]
        top: u32,
    },
}

/// Runs the command line after `squall admin`.
///
/// # Errors
/// The command line is wrong, the server cannot be reached, or a file cannot be written.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let parsed =
        Arguments::try_parse_from(["squall admin".to_owned()].into_iter().chain(arguments));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        // What was asked for is no error.
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(error.to_string()),
        Err(error) => return Err(error.render().ansi().to_string()),
    };
    match arguments.command {
        Command::Bundle { options, output, with_ddl, statements } => {
            let wanted = bundle::Wanted { output, with_ddl, statements };
            bundle::run(&mut shell::connect(&options)?, &wanted)
        }
        Command::Lockstat { options, top } => lockstat::run(&mut shell::connect(&options)?, top),
    }
}
