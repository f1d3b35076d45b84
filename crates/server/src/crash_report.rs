//! What the server writes about itself before it ends by an assertion or a failure that only a restart can repair: `squall-crash-1.txt` in the data directory.
//!
//! What is at hand comes first, and each part is written before the next one is made: a thread that is stuck may keep the rest from being made, and
//! nobody waits for it long. No statement, no data, no secret goes in. The last five reports are kept, the newest as number 1.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use error_log::ErrorLog;
use plugin_api::SessionFactory as _;
use session::Server;
use sys::files::{self, Existing, File};

use crate::VERSION;

/// Reports that are kept.
const REPORTS_MAX: usize = 5;
/// Lines of the error log.
const LOG_LINES: usize = 500;
/// Names of tables and accounts are not for everyone.
const FILE_MODE: u32 = 0o600;
/// Parts of names of options whose values are not written.
const SECRET_NAMES: [&str; 6] =
    ["password", "passphrase", "secret", "credential", "key", "init_connect"];

/// What a report is made of.
pub(crate) struct CrashReport {
    directory: PathBuf,
    options: Vec<(String, String)>,
    log: Arc<ErrorLog>,
    server: OnceLock<Weak<Server>>,
}

impl CrashReport {
    /// From now on a report is written when the process ends by itself. `options`: those that the server was started with.
    pub(crate) fn prepare(
        directory: &Path,
        options: &[(String, String)],
        log: &Arc<ErrorLog>,
    ) -> Arc<CrashReport> {
        let report = Arc::new(CrashReport {
            directory: directory.to_owned(),
            options: options.to_vec(),
            log: log.clone(),
            server: OnceLock::new(),
        });
        let writing = report.clone();
        sys::process::before_abort(Box::new(move |reason| {
            if let Err(error) = writing.write(reason) {
                sys::process::warn(&format!("no report of this could be written: {error}"));
            }
        }));
        report
    }

    /// Reports have the figures of this server too.
    pub(crate) fn follow(&self, server: &Arc<Server>) {
        let _first = self.server.set(Arc::downgrade(server));
    }

    fn path(&self, number: usize) -> PathBuf {
        self.directory.join(format!("squall-crash-{number}.txt"))
    }

    fn write(&self, reason: &str) -> io::Result<()> {
        for number in (1..REPORTS_MAX).rev() {
            // Most are not there.
            let _ = files::rename(&self.path(number), &self.path(number + 1));
        }
        let mut file = File::create(&self.path(1), FILE_MODE, Existing::Replace)?;
        let seconds = sys::clock::wall().as_secs();
        let reason = without_quoted(reason);
        write!(file, "Squall {VERSION} ended by itself: {reason}\n\n")?;
        write!(file, "seconds since 1970: {seconds}\nprocess: {}\n", sys::process::id())?;
        write!(file, "memory in use: {} bytes\n\n", sys::process::resident_bytes())?;
        writeln!(file, "[error log]")?;
        for line in self.log.latest(LOG_LINES) {
            writeln!(file, "{}", without_statement(&line))?;
        }
        writeln!(file, "\n[options]")?;
        for (name, value) in &self.options {
            let is_secret = SECRET_NAMES.iter().any(|part| name.contains(part));
            writeln!(file, "{name}={}", if is_secret { "<hidden>" } else { value })?;
        }
        writeln!(file, "\n[status]")?;
        if let Some(server) = self.server.get().and_then(Weak::upgrade) {
            for (name, value) in server.status() {
                writeln!(file, "{name}={value}")?;
            }
        }
        // Names take the longest: of a program with all its symbols, seconds.
        writeln!(file, "\n[stacks]")?;
        write!(file, "{}", sys::stacks::folded(&sys::stacks::capture_all()))
    }
}

/// A line of the log without statements and quoted texts.
fn without_statement(line: &str) -> String {
    match line.find("a deadlock") {
        Some(at) => without_quoted(&line[..at + "a deadlock".len()]),
        None => without_quoted(line),
    }
}

/// A text in which `?` stands for each quoted one.
fn without_quoted(text: &str) -> String {
    let mut shown = String::new();
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => {
                quote = None;
                shown.push(c);
            }
            Some(_) => {}
            None => {
                shown.push(c);
                if c == '\'' || c == '"' {
                    quote = Some(c);
                    shown.push('?');
                }
            }
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test")]

    use super::*;

    #[test]
    fn reports_are_few_and_hold_no_statements() {
        assert_eq!(without_quoted("near 'SELECT 1' at \"x"), "near '?' at \"?");
        assert_eq!(without_statement("WARN a deadlock UPDATE t SET a = 918"), "WARN a deadlock");
        let directory = std::env::temp_dir().join(format!("crash-report-{}", std::process::id()));
        files::create_directories(&directory, 0o700).expect("a directory");
        let options = [("port", "3306"), ("replica_password", "hunter2")];
        let report = CrashReport {
            directory: directory.clone(),
            options: options.map(|(name, value)| (name.into(), value.into())).to_vec(),
            log: ErrorLog::start(None, 3).expect("a log"),
            server: OnceLock::new(),
        };
        for number in 0..REPORTS_MAX + 3 {
            report.write(&format!("reason {number}")).expect("a report");
        }
        let newest = files::read_text(&report.path(1)).expect("a report");
        assert!(newest.contains(&format!("ended by itself: reason {}", REPORTS_MAX + 2)));
        assert!(newest.contains("port=3306") && newest.contains("[status]"), "{newest}");
        assert!(!newest.contains("hunter2"));
        assert!(files::exists(&report.path(REPORTS_MAX)));
        assert!(!files::exists(&report.path(REPORTS_MAX + 1)));
        files::remove_directory(&directory).expect("a directory");
    }
}
