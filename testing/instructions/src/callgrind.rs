//! A squalld under callgrind, which reports each thread's instructions since the previous report.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

use sqltest::Server;

/// The prefix of callgrind's file names, in the server's folder.
const OUT: &str = "callgrind";
/// The threads that run statements, by their name. The work of others (writing pages, purge, checking for idle connections) depends on the time
/// more than on the statement.
const WORKER: &str = "mysql-worker";
/// A thread that callgrind counted and that has ended: only workers come and go.
const ENDED: &str = "ended";

/// A server under callgrind.
pub struct Watched {
    server: Server,
}

/// The function that checks whether an account may run a plan.
const ACCESS_CHECK: &str = "check_plan_privileges";

/// Instructions by thread: its number and name.
pub struct Counts {
    threads: BTreeMap<u32, (String, u64)>,
    access_check: u64,
}

impl Watched {
    /// Starts `program`.
    ///
    /// # Errors
    /// Valgrind is not installed, or the server does not start under it.
    pub fn start(program: &Path, more: &[String]) -> Result<Watched, String> {
        let command = |folder: &Path| {
            let mut command = Command::new("valgrind");
            command
                .args(["--tool=callgrind", "--separate-threads=yes", "--quiet"])
                .arg(format!("--callgrind-out-file={}", folder.join(OUT).display()))
                .arg(format!("--log-file={}", folder.join("valgrind").display()))
                .arg(program);
            command
        };
        // The listeners of plugins take any free port. Callgrind sometimes ends by an assertion of its own when a thread handles a signal, as the
        // profile's samples make it.
        let options = [
            "--skip-ssl",
            "--innodb-buffer-pool-size=64M",
            "--json-server-port=0",
            "--profile-sample-hz=0",
            "--active-session-history=OFF",
        ];
        let options = options.into_iter().map(str::to_owned).chain(more.iter().cloned());
        let options: Vec<String> = options.collect();
        Ok(Watched { server: Server::start_command(command, &options)? })
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Counts from here.
    ///
    /// # Errors
    /// Callgrind does not answer.
    pub fn reset(&self) -> Result<(), String> {
        self.ask(&["zero"]).map(drop)
    }

    /// Instructions of each thread since the reset.
    ///
    /// # Errors
    /// Callgrind does not answer.
    pub fn counts(&self) -> Result<Counts, String> {
        self.forget()?;
        self.ask(&["dump"])?;
        let names = self.thread_names()?;
        let (mut counts, mut access_check) = (BTreeMap::new(), 0);
        for path in self.dumps()? {
            let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
            let header = |key: &str| {
                let mut lines = text.lines();
                lines.find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
            };
            let (Some(thread), Some(count)) = (header("thread:"), header("summary:")) else {
                return Err(format!("{} has no count", path.display()));
            };
            let thread = thread as u32;
            let name = names.get(&thread).cloned().unwrap_or_else(|| ENDED.into());
            counts.insert(thread, (name, count));
            access_check += of_function(&text, ACCESS_CHECK);
        }
        Ok(Counts { threads: counts, access_check })
    }

    /// Removes callgrind's previous files: each dump of a thread's counts is a new one.
    fn forget(&self) -> Result<(), String> {
        for path in self.dumps()? {
            std::fs::remove_file(path).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Copies the files of the latest counts to `folder`, for `callgrind_annotate`.
    ///
    /// # Errors
    /// They cannot be copied.
    pub fn keep(&self, folder: &Path) -> Result<(), String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        for path in self.dumps()? {
            let name = path.file_name().unwrap_or_default();
            std::fs::copy(&path, folder.join(name)).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn dumps(&self) -> Result<Vec<std::path::PathBuf>, String> {
        let entries = std::fs::read_dir(self.server.folder()).map_err(|error| error.to_string())?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_dump = |path: &std::path::PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with(&format!("{OUT}.")))
        };
        Ok(paths.filter(is_dump).collect())
    }

    /// Names by callgrind's thread numbers. It reports the kernel's numbers, and the kernel the names.
    fn thread_names(&self) -> Result<BTreeMap<u32, String>, String> {
        let status = self.ask(&["v.info", "scheduler"])?;
        let mut names = BTreeMap::new();
        for line in status.lines() {
            let number = |text: &str| text.split([':', ')']).next()?.trim().parse::<u32>().ok();
            let Some(thread) = line.strip_prefix("Thread ").and_then(number) else { continue };
            let Some(task) = line.rsplit_once("(lwpid ").and_then(|(_, task)| number(task)) else {
                continue;
            };
            let path = format!("/proc/{}/task/{task}/comm", self.server.process());
            if let Ok(name) = std::fs::read_to_string(path) {
                names.insert(thread, name.trim().to_owned());
            }
        }
        if names.is_empty() {
            return Err(format!("callgrind names no threads:\n{status}"));
        }
        Ok(names)
    }

    /// Sends callgrind a command while the server runs.
    fn ask(&self, words: &[&str]) -> Result<String, String> {
        let pid = format!("--pid={}", self.server.process());
        let output = Command::new("vgdb").arg(pid).args(words).output();
        let output = output.map_err(|error| format!("cannot start vgdb: {error}"))?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(format!("vgdb {}: {error}", words.join(" ")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Instructions of the function whose name contains `name`, those of its calls included, in a file of callgrind.
fn of_function(text: &str, name: &str) -> u64 {
    // A name stands at the first use of its number: `fn=(7) name`, `cfn=(7)`.
    let mut numbers = Vec::new();
    let (mut is_inside, mut sum) = (false, 0);
    for line in text.lines() {
        let function = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn="));
        if let Some(function) = function {
            let number = function.split(' ').next().unwrap_or_default();
            if function.contains(name) {
                numbers.push(number);
            }
            if line.starts_with("fn=") {
                is_inside = numbers.contains(&number);
            }
        } else if is_inside
            && line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
        {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse::<u64>().ok());
            sum += cost.unwrap_or(0);
        }
    }
    sum
}

impl Counts {
    /// Of the check whether the account may run the plan.
    pub fn of_access_check(&self) -> u64 {
        self.access_check
    }

    /// Of the threads that run statements.
    pub fn of_statements(&self) -> u64 {
        let workers = self.threads.values().filter(|(name, _)| name == WORKER || name == ENDED);
        workers.map(|(_, count)| count).sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, (name, count)) in self.threads.iter().filter(|(_, (_, count))| *count > 0) {
            write!(f, "{thread} {name}: {count}  ")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::of_function;

    #[test]
    fn a_function_has_its_own_instructions_and_those_of_its_calls() {
        let text = "thread: 1\nfn=(1) a::first\n10 5\ncfn=(2) a::check\ncalls=3 20\n+1 30\n12 1\n\n\
                    fn=(2)\n20 7\n+1 2\ncfn=(3) a::inner\ncalls=1 30\n22 11\n\nfn=(3)\n30 11\n";
        assert_eq!(of_function(text, "a::check"), 20);
        assert_eq!(of_function(text, "a::inner"), 11);
        assert_eq!(of_function(text, "a::other"), 0);
    }
}
