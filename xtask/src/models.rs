//! `cargo xtask models`: the engine's concurrent parts under loom (every schedule of small cases) and shuttle (random schedules of larger
//! ones). Each has its own target folder, as the whole build is for the model.

use crate::run;

/// Model, and the arguments of `cargo test`.
const MODELS: &[(&str, &[&str])] = &[
    ("loom", &["-p", "wal", "-p", "btree", "--test", "loom"]),
    ("loom", &["-p", "bufpool", "-p", "txn", "--lib", "model"]),
    ("shuttle", &["-p", "locks", "-p", "wal", "-p", "btree", "-p", "engine", "--test", "shuttle"]),
];

/// Runs all of them.
///
/// # Errors
/// The first that fails; it prints the schedule.
pub fn models() -> Result<(), String> {
    for (model, tests) in MODELS {
        let flags = format!("--cfg {model}");
        let folder = format!("target/{model}");
        let environment = [("RUSTFLAGS", flags.as_str()), ("CARGO_TARGET_DIR", folder.as_str())];
        let args = [&["test", "--profile", "models", "--locked", "--quiet"], *tests].concat();
        run::command_with(&environment, "cargo", &args)?;
    }
    Ok(())
}
