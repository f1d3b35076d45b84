//! The profiles of accounts: a mode, and the forms of statements that are allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::firewall::store::{Entry, Store};

/// Most profiles, rules of a profile, bytes of a rule, and bytes of all rules.
const PROFILES_MAX: usize = 10_000;
const RULES_MAX: usize = 10_000;
pub(crate) const RULE_BYTES_MAX: usize = 65_535;
const BYTES_MAX: usize = 64 << 20;
/// Suspicious forms of a profile that are remembered, so that each is in the error log once.
const REPORTED_MAX: usize = 1000;

/// What is done about a profile's statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Nothing.
    #[default]
    Off,
    /// Their forms become rules.
    Recording,
    /// Those without a rule are refused.
    Protecting,
    /// Those without a rule are in the error log, and run.
    Detecting,
}

impl Mode {
    const NAMES: [(Mode, &'static str); 4] = [
        (Mode::Off, "OFF"),
        (Mode::Recording, "RECORDING"),
        (Mode::Protecting, "PROTECTING"),
        (Mode::Detecting, "DETECTING"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Mode::NAMES.into_iter().find(|(mode, _)| *mode == self).map_or("OFF", |(_, name)| name)
    }

    pub(crate) fn called(name: &str) -> Option<Mode> {
        let found = Mode::NAMES.into_iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        found.map(|(mode, _)| mode)
    }
}

/// What is to be done about a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// No profile is about it, or it is recorded.
    Unwatched,
    /// A rule allows it.
    Granted,
    /// No rule allows it, but it runs.
    Suspicious { is_first: bool },
    /// It does not run.
    Denied,
}

#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) mode: Mode,
    pub(crate) rules: BTreeSet<String>,
    reported: BTreeSet<String>,
}

/// All profiles, by account.
#[derive(Debug)]
pub(crate) struct Profiles {
    profiles: BTreeMap<String, Profile>,
    store: Store,
    /// Bytes of all rules.
    bytes: usize,
    /// Profiles whose mode is not OFF.
    watched: usize,
}

impl Profiles {
    /// Reads those of a data directory.
    ///
    /// # Errors
    /// I/O; `InvalidData` for a file that is damaged.
    pub(crate) fn read(directory: &Path) -> io::Result<Profiles> {
        let (store, entries) = Store::open(directory)?;
        let mut profiles = Profiles { profiles: BTreeMap::new(), store, bytes: 0, watched: 0 };
        entries.into_iter().for_each(|entry| profiles.apply(entry));
        Ok(profiles)
    }

    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Mode { account, mode } => {
                let profile = self.profiles.entry(account).or_default();
                self.watched -= usize::from(profile.mode != Mode::Off);
                self.watched += usize::from(mode != Mode::Off);
                profile.mode = mode;
                profile.reported.clear();
            }
            Entry::Rule { account, rule } => {
                let length = rule.len();
                if self.profiles.entry(account).or_default().rules.insert(rule) {
                    self.bytes += length;
                }
            }
            Entry::Reset { account } => {
                let profile = self.profiles.entry(account).or_default();
                self.watched -= usize::from(profile.mode != Mode::Off);
                let rules = std::mem::take(profile).rules;
                self.bytes -= rules.iter().map(String::len).sum::<usize>();
            }
        }
    }

    /// # Errors
    /// The entry could not be written; nothing has changed then.
    fn change(&mut self, entry: Entry) -> io::Result<()> {
        self.store.append(&entry)?;
        self.apply(entry);
        Ok(())
    }

    /// Profiles whose mode is not OFF.
    pub(crate) fn watched(&self) -> usize {
        self.watched
    }

    pub(crate) fn rule_count(&self) -> usize {
        self.profiles.values().map(|profile| profile.rules.len()).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Profile)> {
        self.profiles.iter()
    }

    /// The mode of an account; OFF without a profile.
    pub(crate) fn mode_of(&self, account: &str) -> Mode {
        self.profiles.get(account).map_or(Mode::Off, |profile| profile.mode)
    }

    /// Sets the mode of an account's profile, which is made when there is none. The file is written anew, without what is over.
    ///
    /// # Errors
    /// The file could not be written; the mode stays. `StorageFull` for too many profiles.
    pub(crate) fn set_mode(&mut self, account: &str, mode: Mode) -> io::Result<()> {
        if !self.profiles.contains_key(account) && self.profiles.len() >= PROFILES_MAX {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "too many profiles"));
        }
        self.change(Entry::Mode { account: account.to_owned(), mode })?;
        self.compact()
    }

    /// Removes the rules of an account's profile and sets its mode to OFF.
    ///
    /// # Errors
    /// The file could not be written; the rules stay.
    pub(crate) fn reset(&mut self, account: &str) -> io::Result<()> {
        self.change(Entry::Reset { account: account.to_owned() })?;
        self.compact()
    }

    fn compact(&mut self) -> io::Result<()> {
        let entries = self.profiles.iter().flat_map(|(account, profile)| {
            let mode = Entry::Mode { account: account.clone(), mode: profile.mode };
            let rule = |rule: &String| Entry::Rule { account: account.clone(), rule: rule.clone() };
            std::iter::once(mode).chain(profile.rules.iter().map(rule))
        });
        self.store.rewrite(entries)
    }

    /// What is to be done about a statement of this form; none for one that no rule can allow.
    ///
    /// # Errors
    /// A rule could not be written.
    pub(crate) fn judge(&mut self, account: &str, form: Option<&str>) -> io::Result<Verdict> {
        let bytes = self.bytes;
        let Some(profile) = self.profiles.get_mut(account) else { return Ok(Verdict::Unwatched) };
        let is_known = form.is_some_and(|form| profile.rules.contains(form));
        match profile.mode {
            Mode::Off => Ok(Verdict::Unwatched),
            Mode::Protecting if is_known => Ok(Verdict::Granted),
            Mode::Protecting => Ok(Verdict::Denied),
            Mode::Detecting if is_known => Ok(Verdict::Granted),
            Mode::Detecting => {
                let form = form.unwrap_or_default();
                let has_room =
                    profile.reported.len() < REPORTED_MAX && form.len() <= RULE_BYTES_MAX;
                Ok(Verdict::Suspicious {
                    is_first: has_room && profile.reported.insert(form.into()),
                })
            }
            Mode::Recording => {
                let Some(form) = form.filter(|_| !is_known) else { return Ok(Verdict::Unwatched) };
                let fits = form.len() <= RULE_BYTES_MAX
                    && profile.rules.len() < RULES_MAX
                    && bytes + form.len() <= BYTES_MAX;
                if fits {
                    self.change(Entry::Rule { account: account.into(), rule: form.into() })?;
                }
                Ok(Verdict::Unwatched)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_memory() -> Profiles {
        Profiles::read(Path::new("/nowhere/at/all")).expect("no file")
    }

    #[test]
    fn each_mode_judges_as_its_name_says() {
        let mut profiles = in_memory();
        let account = "a@h";
        assert_eq!(profiles.judge(account, Some("SELECT ?")).ok(), Some(Verdict::Unwatched));
        profiles.set_mode(account, Mode::Recording).expect("in memory");
        profiles.judge(account, Some("SELECT ?")).expect("in memory");
        profiles.judge(account, None).expect("in memory");
        assert_eq!((profiles.rule_count(), profiles.bytes), (1, 8));
        profiles.set_mode(account, Mode::Protecting).expect("in memory");
        for (form, verdict) in [
            (Some("SELECT ?"), Verdict::Granted),
            (Some("DROP TABLE `t`"), Verdict::Denied),
            (None, Verdict::Denied),
        ] {
            assert_eq!(profiles.judge(account, form).ok(), Some(verdict), "{form:?}");
        }
        assert_eq!(profiles.judge("b@h", None).ok(), Some(Verdict::Unwatched));
        profiles.set_mode(account, Mode::Detecting).expect("in memory");
        let second = [true, false].map(|is_first| Some(Verdict::Suspicious { is_first }));
        assert_eq!([0, 1].map(|_| profiles.judge(account, Some("DO ?")).ok()), second);
        assert_eq!(profiles.watched(), 1);
        profiles.reset(account).expect("in memory");
        assert_eq!(profiles.watched(), 0);
        assert_eq!((profiles.rule_count(), profiles.bytes), (0, 0));
        assert_eq!(profiles.mode_of(account), Mode::Off);
    }

    #[test]
    fn rules_are_bounded() {
        let mut profiles = in_memory();
        profiles.set_mode("a@h", Mode::Recording).expect("in memory");
        for number in 0..RULES_MAX + 5 {
            profiles.judge("a@h", Some(&format!("SELECT `a{number}`"))).expect("in memory");
        }
        profiles.judge("a@h", Some(&"x".repeat(RULE_BYTES_MAX + 1))).expect("in memory");
        assert_eq!(profiles.rule_count(), RULES_MAX);
    }
}
