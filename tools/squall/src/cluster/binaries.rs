//! The programs of MySQL Cluster, which the user has.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a cluster on this machine needs.
const PROGRAMS: [&str; 3] = ["ndb_mgmd", "ndbmtd", "ndb_mgm"];

/// Where they are.
pub(super) struct Binaries {
    pub(super) directory: PathBuf,
}

impl Binaries {
    /// In the given directory, or in the first one of PATH that has all.
    pub(super) fn find(given: Option<&Path>) -> Result<Binaries, String> {
        let missing = |directory: &Path| {
            PROGRAMS.iter().find(|program| !directory.join(program).is_file()).copied()
        };
        if let Some(directory) = given {
            let directory = std::fs::canonicalize(directory)
                .map_err(|error| format!("{}: {error}", directory.display()))?;
            return match missing(&directory) {
                None => Ok(Binaries { directory }),
                Some(program) => Err(format!("{} has no {program}", directory.display())),
            };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).find(|directory| missing(directory).is_none());
        found.map(|directory| Binaries { directory }).ok_or_else(|| {
            format!(
                "{} of MySQL Cluster are not in PATH: --ndb-bin says where",
                PROGRAMS.join(", ")
            )
        })
    }

    /// Tells the management server something, and returns its answer.
    pub(super) fn tell(&self, address: &str, what: &str) -> Result<String, String> {
        let mut command = Command::new(self.directory.join("ndb_mgm"));
        let address = format!("--ndb-connectstring={address}");
        command.args([&address, "--connect-retries=1", "-e", what]).stdin(Stdio::null());
        let done = command.output().map_err(|error| format!("ndb_mgm: {error}"))?;
        let answer = String::from_utf8_lossy(&done.stdout).into_owned();
        match done.status.success() {
            true => Ok(answer),
            false => Err(format!("{what}: {answer}{}", String::from_utf8_lossy(&done.stderr))),
        }
    }

    /// Starts a program that goes on by itself; its words go to the end of `log`, and it reads `input`.
    pub(super) fn start(
        &self,
        program: &str,
        arguments: &[String],
        log: &Path,
        input: Option<&str>,
    ) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{program}: {error}");
        // A pipe would stay open as long as what goes on.
        let words = File::options().create(true).append(true).open(log).map_err(failed)?;
        let mut command = Command::new(self.directory.join(program));
        command.args(arguments).stderr(words.try_clone().map_err(failed)?).stdout(words);
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().map_err(failed)?;
        if let (Some(mut pipe), Some(input)) = (child.stdin.take(), input) {
            // One that ends without reading says why in its log.
            let _ = pipe.write_all(input.as_bytes());
        }
        match child.wait().map_err(failed)?.success() {
            true => Ok(()),
            false => {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(5).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                Err(format!("{program} does not start:\n{}", last.join("\n")))
            }
        }
    }
}
