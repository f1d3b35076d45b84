//! Runs tests in the language of mysqltest and drizzletest: `t/NAME.test` holds statements and commands, `r/NAME.result` what they print.
//!
//! For suites that exist in that language already; the project's own scripts are in `sqltest`'s. README.md lists the commands.

mod commands;
mod compare;
mod connections;
mod output;
mod script;
mod variables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(about = "Runs .test files in the language of mysqltest against a server")]
struct Options {
    /// `.test` files, or folders with `t/` and `r/`; all of tests/mysqltest by default.
    paths: Vec<PathBuf>,
    /// `host:port` of a running server (root without a password); a fresh squalld is started otherwise.
    #[arg(long)]
    server: Option<String>,
    /// Write the result files instead of comparing with them.
    #[arg(long)]
    record: bool,
    /// The server program.
    #[arg(long, env = "SQUALLD", default_value = "target/debug/squalld")]
    squalld: PathBuf,
    /// Further options for squalld.
    #[arg(long, allow_hyphen_values = true)]
    server_option: Vec<String>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("mysqltest: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<usize, String> {
    let mut files = Vec::new();
    let default = [PathBuf::from("tests/mysqltest")];
    let paths = if options.paths.is_empty() { &default[..] } else { &options.paths };
    for path in paths {
        collect(path, &mut files).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    files.sort();
    let started = match &options.server {
        Some(_) => None,
        None => Some(sqltest::Server::start(&options.squalld, &options.server_option)?),
    };
    let address = match (&options.server, &started) {
        (Some(address), _) => address.clone(),
        (None, Some(server)) => server.address(),
        (None, None) => return Err("no server".into()),
    };
    let mut failed = 0;
    for file in &files {
        match run_file(file, &address, options.record) {
            Ok(note) => println!("{:<40} {note}", file.display()),
            Err(message) => {
                failed += 1;
                println!("{:<40} failed\n{message}", file.display());
            }
        }
    }
    println!("{} passed, {failed} failed", files.len() - failed);
    if files.is_empty() {
        return Err("no tests".into());
    }
    Ok(failed)
}

/// Adds the `.test` files of a folder and of the folders in it.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "test") {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// `t/NAME.test` has `r/NAME.result`; a file elsewhere has its result beside it.
fn result_file(test: &Path) -> PathBuf {
    let name = test.with_extension("result");
    let folder = test.parent().unwrap_or(Path::new(""));
    match (folder.file_name(), folder.parent(), name.file_name()) {
        (Some(t), Some(suite), Some(file)) if t == "t" => suite.join("r").join(file),
        _ => name,
    }
}

fn run_file(test: &Path, address: &str, record: bool) -> Result<&'static str, String> {
    let text = std::fs::read_to_string(test).map_err(|error| error.to_string())?;
    let items = script::parse(&text)?;
    let printed = match commands::run(&items, test, address)? {
        commands::Ended::Complete(printed) => printed,
        commands::Ended::Skipped => return Ok("skipped"),
    };
    let file = result_file(test);
    if record {
        std::fs::write(&file, printed).map_err(|error| format!("{}: {error}", file.display()))?;
        return Ok("recorded");
    }
    let expected = std::fs::read_to_string(&file)
        .map_err(|error| format!("{}: {error}; --record writes it", file.display()))?;
    compare::compare(&expected, &printed).map(|()| "passed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_has_its_result_in_r() {
        assert_eq!(result_file(Path::new("s/t/a.test")), Path::new("s/r/a.result"));
        assert_eq!(result_file(Path::new("s/a.test")), Path::new("s/a.result"));
    }
}
