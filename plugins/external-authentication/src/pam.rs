//! `auth_pam`: the operating system's pluggable authentication modules. The AS clause names the service.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use plugin_api::variable::{Definition, Kind, uint};
use plugin_api::{GlobalValue, Plugin, PluginInfo, Registrar};
use sys::pam::Verdict;
use sys::sync::{Condvar, Mutex};

use crate::password::{Attempt, Backend, PasswordMethod};

/// Checks at one time, those included that nobody waits for any more: a module that hangs keeps its thread.
const RUNNING_MAX: usize = 32;

static SERVICE: Definition = Definition::global(
    "auth_pam_service",
    Kind::Text,
    "squall",
    "PAM service of accounts that are created without an AS clause",
);
static DIRECTORY: Definition = Definition::fixed(
    "auth_pam_directory",
    Kind::Text,
    "",
    "Directory of the service files; empty: the system's",
);
static TIMEOUT: Definition = Definition::global(
    "auth_pam_timeout",
    uint(1, 600),
    "30",
    "Seconds that a log-in waits for the modules of PAM",
);

/// The plugin.
#[derive(Debug)]
pub(crate) struct AuthPam;

impl Plugin for AuthPam {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("auth_pam", "Authenticates users by PAM.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let pam = Pam::default();
        registrar.variable(&SERVICE, &pam.service);
        registrar.variable(&DIRECTORY, &pam.directory);
        registrar.variable(&TIMEOUT, &pam.timeout);
        registrar.authenticator(Arc::new(PasswordMethod::new(pam)));
    }
}

#[derive(Default)]
struct Pam {
    service: GlobalValue,
    directory: GlobalValue,
    timeout: GlobalValue,
    running: Arc<Mutex<usize>>,
}

/// A place among the running checks.
struct Place(Arc<Mutex<usize>>);

impl Place {
    fn take(running: &Arc<Mutex<usize>>) -> Option<Place> {
        let mut count = running.lock();
        if *count >= RUNNING_MAX {
            return None;
        }
        *count += 1;
        Some(Place(running.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
    }
}

type Outcome = std::result::Result<Verdict, String>;

#[derive(Default)]
struct Shared {
    outcome: Mutex<Option<Outcome>>,
    done: Condvar,
}

/// A file name without a way out of the directory.
fn is_service(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

impl Pam {
    /// Starts a check on a thread of its own: nobody can stop a module that waits.
    fn start(&self, service: String, attempt: Attempt<'_>) -> Result<Arc<Shared>, String> {
        let place = Place::take(&self.running);
        let place = place.ok_or_else(|| format!("{RUNNING_MAX} log-ins wait for PAM already"))?;
        let shared = Arc::new(Shared::default());
        let there = shared.clone();
        let directory = Some(self.directory.text()).filter(|text| !text.is_empty());
        let directory = directory.map(PathBuf::from);
        let (user, password) = (attempt.user.to_owned(), attempt.password.to_owned());
        let started = sys::threads::spawn("pam", move || {
            let outcome = sys::pam::check(directory.as_deref(), &service, &user, &password);
            *there.outcome.lock() = Some(outcome);
            there.done.notify_all();
            drop(place);
        });
        started.map_err(|error| error.to_string())?;
        Ok(shared)
    }
}

impl Backend for Pam {
    fn name(&self) -> &'static str {
        "auth_pam"
    }

    fn is_valid_account(&self, account: &str) -> bool {
        account.is_empty() || is_service(account)
    }

    fn verify(&self, attempt: Attempt<'_>) -> Result<bool, String> {
        let service = match attempt.account {
            "" => self.service.text(),
            account => account.to_owned(),
        };
        if !is_service(&service) {
            return Err(format!("'{service}' is no name of a PAM service"));
        }
        let shared = self.start(service, attempt)?;
        let seconds = self.timeout.number().max(1);
        let end = sys::clock::monotonic() + Duration::from_secs(seconds);
        let mut outcome = shared.outcome.lock();
        loop {
            if let Some(outcome) = outcome.take() {
                return match outcome? {
                    Verdict::Accepted => Ok(true),
                    Verdict::Refused(_) => Ok(false),
                };
            }
            let left = end.saturating_sub(sys::clock::monotonic());
            if left.is_zero() {
                return Err(format!("PAM did not answer within {seconds} s"));
            }
            outcome = shared.done.wait_for(outcome, left);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;
    use std::time::Instant;

    use types::Value;

    use super::*;

    /// Services of the test: pam_exec runs a script that compares the password.
    fn services(directory: &Path) {
        let script = directory.join("compare.sh");
        std::fs::create_dir_all(directory).expect("a directory");
        let text = "#!/bin/sh\n[ \"$PAM_USER:$(tr -d '\\0')\" = 'ann:secret' ]\n";
        std::fs::write(&script, text).expect("a file");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        let script = script.display();
        for (name, lines) in [
            ("permit", "auth required pam_permit.so\naccount required pam_permit.so\n".to_owned()),
            ("deny", "auth required pam_deny.so\naccount required pam_permit.so\n".to_owned()),
            ("locked", "auth required pam_permit.so\naccount required pam_deny.so\n".to_owned()),
            (
                "compare",
                format!(
                    "auth required pam_exec.so quiet expose_authtok {script}\naccount required pam_permit.so\n"
                ),
            ),
            (
                "slow",
                "auth required pam_exec.so quiet /bin/sleep 3\naccount required pam_permit.so\n"
                    .to_owned(),
            ),
        ] {
            std::fs::write(directory.join(name), lines).expect("a file");
        }
    }

    #[test]
    fn services_decide_and_a_slow_one_is_not_waited_for() {
        if !sys::pam::is_available() {
            eprintln!("SKIPPED: this machine has no libpam.so.0");
            return;
        }
        let directory = std::env::temp_dir().join(format!("auth-pam-{}", std::process::id()));
        services(&directory);
        let pam = Pam::default();
        pam.directory.store(Value::text(directory.to_str().expect("a text")));
        pam.service.store(Value::text("compare"));
        pam.timeout.store(Value::UInt(20));
        let verify = |user, account, password| pam.verify(Attempt { user, account, password });
        assert_eq!(verify("ann", "permit", "anything"), Ok(true));
        assert_eq!(verify("ann", "deny", "secret"), Ok(false));
        assert_eq!(verify("ann", "locked", "secret"), Ok(false));
        assert_eq!(verify("ann", "", "secret"), Ok(true));
        assert_eq!(verify("ann", "", "Secret"), Ok(false));
        assert_eq!(verify("bob", "compare", "secret"), Ok(false));
        assert_eq!(verify("ann", "no-such-service", "secret"), Ok(false));
        assert!(verify("ann", "../compare", "secret").is_err());
        pam.timeout.store(Value::UInt(1));
        let begun = Instant::now();
        assert!(verify("ann", "slow", "secret").is_err_and(|reason| reason.contains("1 s")));
        assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
        assert_eq!(*pam.running.lock(), 1, "the module still waits");
        *pam.running.lock() = RUNNING_MAX;
        assert!(verify("ann", "permit", "x").is_err_and(|reason| reason.contains("already")));
        std::fs::remove_dir_all(&directory).expect("a directory");
    }
}
