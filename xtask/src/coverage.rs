//! `cargo xtask coverage`: which lines unit tests and SQL scripts run, by crate, written to `docs/coverage.md`.
//!
//! Builds the workspace once more, with counters, and runs all tests in that build: too slow to be part of `cargo xtask ci`.
//! Cargo calls this program in the compiler's place (`compile`), for the workspace's crates alone: libraries need no counters.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::layers::{Crate, workspace};
use crate::lines::is_test_file;
use crate::{release, run};

/// The published table.
const TABLE: &str = "docs/coverage.md";
/// Below the root.
const COUNTERS: &str = "target/coverage";

/// Lines that could run, and lines that did.
#[derive(Clone, Copy, Default)]
struct Covered {
    lines: u64,
    run: u64,
}

/// Runs the tests of all crates, or of those in `only`, and all SQL scripts, and writes the table of the crates.
///
/// # Errors
/// A tool is missing, something does not build, or a test fails.
pub fn coverage(only: &[String]) -> Result<(), String> {
    let tool = |name: &str| release::llvm_tool(name).map(|tool| tool.display().to_string());
    let (profdata, cov) = (tool("llvm-profdata")?, tool("llvm-cov")?);
    let counters = run::root().join(COUNTERS);
    if counters.exists() {
        std::fs::remove_dir_all(&counters).map_err(|error| format!("{counters:?}: {error}"))?;
    }
    let raw = counters.join("%m-%p.profraw").display().to_string();
    let own = std::env::current_exe().map_err(|error| error.to_string())?.display().to_string();
    let environment = [("RUSTC_WORKSPACE_WRAPPER", own.as_str()), ("LLVM_PROFILE_FILE", &raw)];
    println!("==> unit tests");
    let programs = test_programs(&environment, only)?;
    for (package, program) in &programs {
        let package = run::root().join(package);
        run::command_in(&package, &environment, program, &["--quiet"])?;
    }
    println!("==> SQL scripts");
    let build = ["build", "--locked", "--quiet", "-p", "server", "-p", "sqltest", "--bins"];
    run::command_with(&environment, "cargo", &build)?;
    let squalld = "target/debug/squalld";
    run::command_with(&environment, "target/debug/sqltest", &["--squalld", squalld])?;
    let merged = counters.join("merged.profdata").display().to_string();
    let merge = ["merge", "--sparse", "-o", &merged, &counters.display().to_string()];
    run::command(&profdata, &merge)?;
    let mut export = vec!["export".to_owned(), "--summary-only".into()];
    export.extend(["--instr-profile".into(), merged, squalld.into()]);
    export.extend(programs.into_iter().map(|(_, program)| format!("--object={program}")));
    let export: Vec<&str> = export.iter().map(String::as_str).collect();
    let exported = run::output(&cov, &export)?;
    let table = table(&exported, only)?;
    print!("{table}");
    std::fs::write(run::root().join(TABLE), table).map_err(|error| format!("{TABLE}: {error}"))
}

/// Whether cargo calls this program in the compiler's place.
pub fn is_compiler(arguments: &[String]) -> bool {
    let compiler = arguments.first().map(Path::new);
    compiler.and_then(Path::file_stem).is_some_and(|name| name == "rustc")
}

/// Compiles with counters: the first argument is the compiler.
pub fn compile(arguments: &[String]) -> ExitCode {
    let Some((compiler, arguments)) = arguments.split_first() else { return ExitCode::FAILURE };
    let mut command = Command::new(compiler);
    match command.args(arguments).arg("-Cinstrument-coverage").status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{compiler}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the tests: the folder of each one's crate, where it runs, and its program.
fn test_programs(
    environment: &[(&str, &str)],
    only: &[String],
) -> Result<Vec<(PathBuf, String)>, String> {
    let mut args = vec!["test", "--locked", "--quiet", "--no-run", "--message-format=json"];
    args.extend(["--lib", "--bins", "--tests"]);
    match only {
        [] => args.push("--workspace"),
        _ => only.iter().for_each(|package| args.extend(["-p", package.as_str()])),
    }
    let built = run::output_with(environment, "cargo", &args)?;
    let mut programs = BTreeSet::new();
    for line in built.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let is_test = message["profile"]["test"] == true;
        let (program, manifest) = (&message["executable"], &message["manifest_path"]);
        if let (true, Some(program), Some(manifest)) =
            (is_test, program.as_str(), manifest.as_str())
        {
            let folder = Path::new(manifest).parent().unwrap_or(Path::new("."));
            programs.insert((folder.to_owned(), program.to_owned()));
        }
    }
    Ok(programs.into_iter().collect())
}

/// The document: a line each crate that is part of the product.
fn table(exported: &str, only: &[String]) -> Result<String, String> {
    let exported: Value = serde_json::from_str(exported).map_err(|error| error.to_string())?;
    let files = exported["data"][0]["files"].as_array().ok_or("llvm-cov exported no files")?;
    let crates = workspace()?;
    let mut by_crate: BTreeMap<&str, Covered> = BTreeMap::new();
    for file in files {
        let path = Path::new(file["filename"].as_str().unwrap_or_default());
        let Some(krate) = owner(path, &crates) else { continue };
        let count = |name: &str| file["summary"]["lines"][name].as_u64().unwrap_or(0);
        let covered = by_crate.entry(&krate.folder).or_default();
        covered.lines += count("count");
        covered.run += count("covered");
    }
    let tests = match only {
        [] => "the unit tests of all crates".to_owned(),
        _ => format!("the unit tests of {}", only.join(", ")),
    };
    let mut text = format!(
        "# Coverage\n\nLines that {tests} and all SQL scripts run, written by `cargo xtask coverage {}`. \
         Tests themselves are not counted.\n\n| crate | lines | covered |\n| --- | ---: | ---: |\n",
        only.join(" ")
    )
    .replace(" `.", "`.");
    let mut all = Covered::default();
    for (folder, covered) in &by_crate {
        text += &row(folder, *covered);
        all = Covered { lines: all.lines + covered.lines, run: all.run + covered.run };
    }
    Ok(text + &row("all", all))
}

fn row(name: &str, covered: Covered) -> String {
    let percent = covered.run as f64 * 100.0 / covered.lines.max(1) as f64;
    format!("| {name} | {} | {percent:.1} % |\n", covered.lines)
}

/// The crate of the product that a file belongs to.
fn owner<'c>(path: &Path, crates: &'c [Crate]) -> Option<&'c Crate> {
    let path = path.strip_prefix(run::root()).ok()?;
    let is_tool = path.starts_with("testing") || path.starts_with("xtask");
    if is_tool || is_test_file(path) {
        return None;
    }
    crates.iter().find(|krate| path.starts_with(&krate.folder))
}
