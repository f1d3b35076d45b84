//! `cargo xtask fuzz`: the decoders on bytes that coverage guides (libFuzzer). A target is a test in a file `fuzz.rs`; `cargo test` runs it
//! too, on what `__fuzz__` beside it keeps and on random bytes.
//!
//! The compiler's own pass counts branches, so the stable toolchain does; a C++ compiler builds libFuzzer. The same targets run under
//! `cargo bolero test`, where that is installed.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::layers::workspace;
use crate::{release, run};

/// Below the root: programs, and what runs found on their way.
const FOLDER: &str = "target/fuzz";
/// Seconds that one input may take, and MiB that a target may use.
const LIMITS: &[&str] = &["-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1"];
/// What counts branches, and compares.
const COVERAGE: &str = "--cfg fuzzing --cfg fuzzing_libfuzzer -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-sanitizer-coverage-stack-depth";

/// A test that takes any bytes.
struct Target {
    /// Name of its crate.
    package: String,
    /// Folder of the crate.
    folder: PathBuf,
    test: String,
}

impl Target {
    fn name(&self) -> String {
        format!("{}::{}", self.package, self.test)
    }

    /// What the repository keeps of it.
    fn kept(&self) -> PathBuf {
        self.folder.join(format!("src/__fuzz__/fuzz__{}", self.test))
    }
}

/// Lists the targets, or runs those that are named, or all, each for so many seconds: `[TARGET..] --seconds N`. A target is `crate::test`;
/// a crate's name stands for all of its targets.
///
/// # Errors
/// The arguments make no sense, something does not build, or an input breaks a rule; that input is in `crashes` then.
pub fn fuzz(args: &[String]) -> Result<(), String> {
    const USAGE: &str = "fuzz takes nothing, or [TARGET..] --seconds N";
    let targets = targets()?;
    let (names, seconds) = match args {
        [] => {
            targets.iter().for_each(|target| println!("{}", target.name()));
            return Ok(());
        }
        [names @ .., option, seconds] if option == "--seconds" => (names, seconds),
        _ => return Err(USAGE.to_owned()),
    };
    let seconds: u32 = seconds.parse().map_err(|_| USAGE.to_owned())?;
    let is_meant = |target: &&Target| {
        names.is_empty()
            || names.iter().any(|name| *name == target.package || *name == target.name())
    };
    let chosen: Vec<_> = targets.iter().filter(is_meant).collect();
    if chosen.is_empty() {
        return Err(format!(
            "no target is called {}: `cargo xtask fuzz` lists them",
            names.join(", ")
        ));
    }
    let mut failed = Vec::new();
    for target in chosen {
        println!("==> {}", target.name());
        let program = build(target)?;
        if let Err(error) = run_one(target, &program, seconds) {
            eprintln!("{error}");
            failed.push(target.name());
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{}: the inputs are in `crashes`. Mend what they show; they stay there, and `cargo test` runs them",
            failed.join(", ")
        )),
    }
}

/// The tests of all files `fuzz.rs` that ask bolero for bytes.
fn targets() -> Result<Vec<Target>, String> {
    let mut targets = Vec::new();
    for krate in workspace()? {
        let folder = run::root().join(&krate.folder);
        let Ok(text) = std::fs::read_to_string(folder.join("src/fuzz.rs")) else { continue };
        let tests = text.split("#[test]\nfn ").skip(1).filter_map(|test| test.split_once("()"));
        targets.extend(tests.filter(|(_, body)| body.contains("bolero::check!")).map(
            |(test, _)| Target {
                package: krate.name.clone(),
                folder: folder.clone(),
                test: test.to_owned(),
            },
        ));
    }
    Ok(targets)
}

/// Builds the tests of the target's crate with counters.
fn build(target: &Target) -> Result<String, String> {
    let host = release::host()?;
    let environment = [("RUSTFLAGS", COVERAGE), ("BOLERO_FUZZER", "libfuzzer")];
    // `--target`: build scripts and macros are built without counters.
    let args = ["test", "--locked", "--quiet", "--no-run", "--lib", "--message-format=json"];
    let place = ["--profile", "fuzz", "--target", &host, "--target-dir", FOLDER];
    let args = [&args[..], &place, &["-p", &target.package]].concat();
    let built = run::output_with(&environment, "cargo", &args)?;
    let program = built.lines().filter(|line| line.starts_with('{')).find_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"] == true;
        message["executable"].as_str().filter(|_| is_test).map(str::to_owned)
    });
    program.ok_or_else(|| format!("cargo built no tests of {}", target.package))
}

fn run_one(target: &Target, program: &str, seconds: u32) -> Result<(), String> {
    let folder = |path: PathBuf| {
        let made = std::fs::create_dir_all(&path);
        made.map(|()| path.display().to_string()).map_err(|error| format!("{path:?}: {error}"))
    };
    // What a run finds stays outside of the repository; the kept inputs are read.
    let found =
        folder(run::root().join(FOLDER).join("corpus").join(&target.package).join(&target.test))?;
    let kept = folder(target.kept().join("corpus"))?;
    let crashes = folder(target.kept().join("crashes"))?;
    let mut args = vec![found, kept, crashes.clone(), format!("-artifact_prefix={crashes}/")];
    args.push(format!("-max_total_time={seconds}"));
    args.extend(LIMITS.iter().map(|&limit| limit.to_owned()));
    let (test, args) = (format!("fuzz::{}", target.test), args.join(" "));
    let environment = [
        ("BOLERO_TEST_NAME", test.as_str()),
        ("BOLERO_LIBTEST_HARNESS", "1"),
        ("BOLERO_LIBFUZZER_ARGS", &args),
    ];
    let test = [test.as_str(), "--exact", "--nocapture", "--quiet", "--test-threads", "1"];
    let run = run::command_in(&target.folder, &environment, program, &test);
    // Git keeps no empty folders: a run that found nothing leaves none.
    let _ = std::fs::remove_dir(Path::new(&crashes));
    run
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_target_starts_from_kept_inputs() {
        let targets = super::targets().unwrap();
        assert!(targets.len() > 30, "{}", targets.len());
        for target in targets {
            let corpus = target.kept().join("corpus");
            let count = std::fs::read_dir(&corpus).map_or(0, Iterator::count);
            assert!(count > 0, "{} has no corpus", target.name());
        }
    }
}
