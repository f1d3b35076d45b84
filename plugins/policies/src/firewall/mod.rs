//! `mysql_firewall`: an account runs only statements whose form was recorded, whatever its privileges allow. The names are those of MySQL
//! Enterprise Firewall's account profiles.

mod form;
mod functions;
mod profiles;
mod store;
mod tables;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text};
use plugin_api::{
    EventSet, GlobalValue, Observer, Plugin, PluginInfo, Registrar, SessionServices, StatementEvent,
};
use sys::process::{self, Gravity};
use sys::sync::Mutex;

use self::profiles::{Mode, Profiles, Verdict};

/// Sets every profile.
const ADMIN: &str = "FIREWALL_ADMIN";
/// Sets the profile of the own account.
const USER: &str = "FIREWALL_USER";
/// Its holders run everything.
const EXEMPT: &str = "FIREWALL_EXEMPT";
/// The name under which functions find the firewall.
const STATE: &str = "mysql_firewall.firewall";

static MODE: Definition = Definition::global(
    "mysql_firewall_mode",
    Kind::Bool,
    "ON",
    "ON: the profiles of accounts are obeyed. OFF: every account runs everything and nothing is recorded",
);
static TRACE: Definition = Definition::global(
    "mysql_firewall_trace",
    Kind::Bool,
    "OFF",
    "ON: statements that the firewall refuses are in the error log",
);

/// The plugin.
#[derive(Debug)]
pub struct SqlFirewall;

impl Plugin for SqlFirewall {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(
            "mysql_firewall",
            "Accounts run only statements of the forms that were recorded for them.",
        )
        .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let firewall = Arc::new(Firewall::default());
        registrar.variable(&MODE, &firewall.is_on);
        registrar.variable(&TRACE, &firewall.traces);
        registrar.privilege(ADMIN);
        registrar.privilege(USER);
        registrar.privilege(EXEMPT);
        registrar.shared_state(STATE, firewall.clone());
        type Count = fn(&Counts) -> &AtomicU64;
        let counts: [(&'static str, Count); 3] = [
            ("Firewall_access_denied", |counts| &counts.denied),
            ("Firewall_access_granted", |counts| &counts.granted),
            ("Firewall_access_suspicious", |counts| &counts.suspicious),
        ];
        for (name, count) in counts {
            let counting = firewall.clone();
            registrar
                .status(name, move || count(&counting.counts).load(Ordering::Relaxed).to_string());
        }
        let counting = firewall.clone();
        registrar.status("Firewall_cached_entries", move || counting.rule_count().to_string());
        tables::all(&firewall).into_iter().for_each(|table| registrar.information_table(table));
        functions::all().into_iter().for_each(|function| registrar.function(function));
        registrar.system_procedure(functions::set_mode_procedure());
        registrar.observer(firewall);
    }
}

#[derive(Debug, Default)]
struct Counts {
    denied: AtomicU64,
    granted: AtomicU64,
    suspicious: AtomicU64,
}

/// What the plugin keeps.
#[derive(Debug, Default)]
struct Firewall {
    is_on: GlobalValue,
    traces: GlobalValue,
    counts: Counts,
    /// None before they are first needed: only then the data directory is known.
    profiles: Mutex<Option<Profiles>>,
    /// The profiles were read, and none has a mode other than OFF: statements are not looked at.
    is_idle: AtomicBool,
}

fn unreadable(reason: impl std::fmt::Display) -> Error {
    Error::internal(format!("the file of the firewall's profiles: {reason}"))
}

impl Firewall {
    /// Does something with the profiles, which are read from their file the first time.
    ///
    /// # Errors
    /// The file cannot be read, or that of `body`.
    fn with_profiles<T>(
        &self,
        session: &dyn SessionServices,
        body: impl FnOnce(&mut Profiles) -> Result<T>,
    ) -> Result<T> {
        let mut known = self.profiles.lock();
        let profiles = match &mut *known {
            Some(profiles) => profiles,
            None => {
                let directory = session.system_variable("datadir").map(|value| as_text(&value));
                let directory = PathBuf::from(directory.unwrap_or_default());
                known.insert(Profiles::read(&directory).map_err(unreadable)?)
            }
        };
        let done = body(profiles);
        // Pairs with the load in `events`.
        self.is_idle.store(profiles.watched() == 0, Ordering::Release);
        done
    }

    fn rule_count(&self) -> usize {
        self.profiles.lock().as_ref().map_or(0, Profiles::rule_count)
    }

    fn forget_counts(&self) {
        let Counts { denied, granted, suspicious } = &self.counts;
        for count in [denied, granted, suspicious] {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// # Errors
    /// 1045 for a statement that the profile does not allow.
    fn check(&self, account: &str, event: &StatementEvent<'_>) -> Result<()> {
        let form = form::of_statement(event);
        let verdict = self.with_profiles(event.services, |profiles| {
            profiles.judge(account, form.as_deref()).map_err(unreadable)
        })?;
        let count = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed);
        let form = form.as_deref().unwrap_or("a text that is known only when it runs");
        match verdict {
            Verdict::Unwatched => {}
            Verdict::Granted => drop(count(&self.counts.granted)),
            Verdict::Suspicious { is_first } => {
                count(&self.counts.suspicious);
                if is_first {
                    tell(&format!("suspicious statement of '{account}', in no rule: {form}"));
                }
            }
            Verdict::Denied => {
                count(&self.counts.denied);
                if self.traces.is_on() {
                    tell(&format!("statement of '{account}' refused, in no rule: {form}"));
                }
                let message = "Statement was blocked by Firewall";
                return Err(Error::new(ErrorCode::ACCESS_DENIED_ERROR, message));
            }
        }
        Ok(())
    }
}

fn tell(text: &str) {
    process::tell(Gravity::Note, &format!("mysql_firewall: {text}"));
}

/// An account's name as profiles have it: hosts in small letters, as accounts have them.
fn profile_name(account: &str) -> Option<String> {
    let (user, host) = account.rsplit_once('@')?;
    Some(format!("{user}@{}", host.to_ascii_lowercase()))
}

impl Observer for Firewall {
    fn name(&self) -> &'static str {
        "mysql_firewall"
    }

    fn events(&self) -> EventSet {
        // Pairs with the store in `with_profiles`.
        match self.is_on.is_on() && !self.is_idle.load(Ordering::Acquire) {
            true => EventSet::BEFORE_STATEMENT,
            false => EventSet::NONE,
        }
    }

    fn before_statement(&self, event: &StatementEvent<'_>) -> Result<()> {
        let account = profile_name(event.session.account).unwrap_or_default();
        let mode = self.with_profiles(event.services, |profiles| Ok(profiles.mode_of(&account)));
        if matches!(mode, Ok(Mode::Off)) || event.services.has_privilege(EXEMPT) {
            return Ok(());
        }
        mode?;
        self.check(&account, event)
    }
}
