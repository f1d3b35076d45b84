//! The command-line client: interactive with history and completion, or a batch of statements with several output formats.

mod complete;
mod format;
mod options;
mod shell;
mod split;

use std::io::{IsTerminal, Read};
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let options = options::Options::parse();
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
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
