//! `cargo xtask instructions`: the cost of everyday statements, in instructions, compared with `tests/instructions.toml`.

use std::process::Command;

use crate::run;

/// The optimised server that is measured. Incremental builds inline differently: figures would not compare.
const SERVER: &[&str] =
    &["build", "--profile", "fast", "-p", "server", "--bins", "--locked", "--quiet"];
const NOT_INCREMENTAL: &[(&str, &str)] = &[("CARGO_INCREMENTAL", "0")];

/// Builds the server and compares.
///
/// # Errors
/// As `compare` and `build_server`.
pub fn instructions(options: &[String]) -> Result<(), String> {
    build_server()?;
    run::command("cargo", &["build", "-p", "instructions", "--locked", "--quiet"])?;
    compare(options)
}

/// Builds the server that is measured.
///
/// # Errors
/// It does not build.
pub fn build_server() -> Result<(), String> {
    run::command_with(NOT_INCREMENTAL, "cargo", SERVER)
}

/// Compares the server that is built; `UPDATE=1` in the environment stores the counts.
///
/// # Errors
/// Valgrind is not installed, or a statement needs too many instructions.
pub fn compare(options: &[String]) -> Result<(), String> {
    for tool in ["valgrind", "vgdb"] {
        if Command::new(tool).arg("--version").output().is_err() {
            return Err(format!("{tool} is not installed (Debian's package is valgrind)"));
        }
    }
    let program = ["--squalld".to_owned(), "target/fast/squalld".to_owned()];
    run::command("target/debug/instructions", &[&program[..], options].concat())
}
