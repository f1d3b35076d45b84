//! The web console: rebuilds `web/dist`, which is committed, and compares; its tests.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::run;

/// Checks the console's types, runs its unit tests, and compares `web/dist` with what its sources give.
/// Without npm it says so and does nothing: the server builds from the committed files.
///
/// # Errors
/// A check fails, or the committed files are not those of the sources.
pub fn check() -> Result<(), String> {
    if !is_there("npm") {
        println!("console: skipped, because npm is missing (.ci/run installs it)");
        return Ok(());
    }
    let web = run::root().join("web");
    let npm = |args: &[&str]| run::command_in(&web, &[], "npm", args);
    npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"])?;
    npm(&["run", "--silent", "check"])?;
    npm(&["test", "--silent"])?;
    let fresh = run::root().join("target/console");
    let into = format!("--into={}", fresh.display());
    npm(&["run", "--silent", "build", "--", &into])?;
    compare(&web.join("dist"), &fresh)
}

/// The console in a browser against `target/debug/squalld`. Without npm or Chromium it says so and does nothing.
///
/// # Errors
/// A test fails.
pub fn browser() -> Result<(), String> {
    if !is_there("npm") || !is_there("chromium") {
        println!(
            "console in a browser: skipped, because npm or chromium is missing (.ci/run installs them)"
        );
        return Ok(());
    }
    let web = run::root().join("web");
    if !web.join("node_modules").is_dir() {
        let install = ["ci", "--no-audit", "--no-fund", "--loglevel=error"];
        run::command_in(&web, &[], "npm", &install)?;
    }
    run::command_in(&web, &[], "npm", &["run", "--silent", "browser"])
}

fn is_there(program: &str) -> bool {
    let quiet = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

fn compare(committed: &Path, fresh: &Path) -> Result<(), String> {
    let (ours, theirs) = (names(committed)?, names(fresh)?);
    let differs = ours.iter().chain(&theirs).find(|name| {
        let read = |folder: &Path| fs::read(folder.join(name)).ok();
        read(committed) != read(fresh)
    });
    match differs {
        None => Ok(()),
        Some(name) => Err(format!(
            "web/dist/{name} is not what web/src gives: run `npm ci && npm run build` in web/, and commit web/dist"
        )),
    }
}

fn names(folder: &Path) -> Result<Vec<String>, String> {
    let wrong = |error| format!("cannot read {}: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(wrong)?;
    entries
        .map(|entry| Ok(entry.map_err(wrong)?.file_name().to_string_lossy().into_owned()))
        .collect()
}
