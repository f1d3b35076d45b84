//! `regex_policy`: rules of a file. The first rule that fits decides; what no rule fits is accepted.
//!
//! A line: `schema|table|process USER OBJECT ACCEPT|DENY`. USER and OBJECT are regular expressions that fit a whole name; the object of a
//! table is `schema.table`. `#` begins a comment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text};
use plugin_api::{
    Authorizer, BackgroundJob, GlobalValue, LogSink, Object, Plugin, PluginInfo, Registrar,
    RunningJob, SessionFactory, Subject,
};
use regex::Regex;
use sys::sync::{Mutex, RwLock};
use types::Value;

use crate::NothingRuns;

static POLICY: Definition = Definition::global(
    "regex_policy_policy",
    Kind::Text,
    "",
    "File of the rules, relative to the data directory; SET reads it again. Empty: no rule",
);

/// The plugin.
#[derive(Debug)]
pub struct RegexPolicy;

impl Plugin for RegexPolicy {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("regex_policy", "Accepts or denies objects by the rules of a file.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let policy = Arc::new(Policy::default());
        let checking = policy.clone();
        registrar.checked_variable(&POLICY, &policy.file, move |value| checking.load(value));
        registrar.authorizer(policy.clone());
        registrar.log_sink(policy.clone());
        registrar.job(policy);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Schema,
    Table,
    Process,
}

#[derive(Debug)]
struct Rule {
    what: What,
    user: Regex,
    object: Regex,
    is_accepted: bool,
}

/// A regular expression that fits whole names.
fn whole(pattern: &str) -> std::result::Result<Regex, String> {
    Regex::new(&format!("^(?:{pattern})$")).map_err(|error| error.to_string())
}

fn parse_line(line: &str) -> std::result::Result<Option<Rule>, String> {
    let line = line.split('#').next().unwrap_or_default().trim();
    if line.is_empty() {
        return Ok(None);
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    let [what, user, object, action] = words[..] else {
        return Err("four words are wanted: schema|table|process USER OBJECT ACCEPT|DENY".into());
    };
    let what = match what.to_ascii_lowercase().as_str() {
        "schema" => What::Schema,
        "table" => What::Table,
        "process" => What::Process,
        other => return Err(format!("'{other}' is not schema, table or process")),
    };
    let is_accepted = match action.to_ascii_uppercase().as_str() {
        "ACCEPT" => true,
        "DENY" => false,
        other => return Err(format!("'{other}' is not ACCEPT or DENY")),
    };
    Ok(Some(Rule { what, user: whole(user)?, object: whole(object)?, is_accepted }))
}

fn parse(text: &str) -> std::result::Result<Vec<Rule>, String> {
    let mut rules = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let rule = parse_line(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        rules.extend(rule);
    }
    Ok(rules)
}

#[derive(Default)]
struct Policy {
    file: GlobalValue,
    directory: Mutex<PathBuf>,
    rules: RwLock<Arc<Vec<Rule>>>,
}

fn refused(message: String) -> Error {
    Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, format!("regex_policy_policy: {message}"))
}

impl Policy {
    /// Reads the rules of a file. The rules in force stay when it cannot be read or has a mistake.
    fn load(&self, value: &Value) -> Result<()> {
        let name = as_text(value);
        let rules = match name.is_empty() {
            true => Vec::new(),
            false => {
                let path = self.directory.lock().join(Path::new(&name));
                let text = sys::files::read_text(&path);
                let text = text.map_err(|error| refused(format!("'{name}': {error}")))?;
                parse(&text).map_err(|error| refused(format!("'{name}', {error}")))?
            }
        };
        *self.rules.write() = Arc::new(rules);
        Ok(())
    }
}

impl Authorizer for Policy {
    fn name(&self) -> &'static str {
        "regex_policy"
    }

    /// By the name of the file, which is known before its rules.
    fn is_active(&self) -> bool {
        !self.file.text().is_empty()
    }

    fn denies(&self, subject: &Subject<'_>, object: &Object<'_>) -> bool {
        let rules = self.rules.read().clone();
        let table;
        let (what, name) = match object {
            Object::Schema(schema) => (What::Schema, *schema),
            Object::Table(schema, name) => {
                table = format!("{schema}.{name}");
                (What::Table, table.as_str())
            }
            Object::Process(owner) => (What::Process, *owner),
        };
        let fits = |rule: &&Rule| {
            rule.what == what && rule.user.is_match(subject.user) && rule.object.is_match(name)
        };
        rules.iter().find(fits).is_some_and(|rule| !rule.is_accepted)
    }
}

/// FLUSH LOGS and SIGHUP read the rules again.
impl LogSink for Policy {
    fn name(&self) -> &'static str {
        "regex_policy"
    }

    fn reopen(&self) -> Result<()> {
        self.load(&self.file.value())
    }
}

impl BackgroundJob for Policy {
    fn name(&self) -> &'static str {
        "regex_policy"
    }

    /// Reads the rules that the command line or an earlier SET PERSIST names: a mistake in them stops the start, so that no server runs
    /// without rules that it should have.
    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        *self.directory.lock() = PathBuf::from(sessions.global_text("datadir"));
        self.load(&self.file.value())?;
        Ok(Box::new(NothingRuns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let policy = Policy::default();
        let text = "# rules\nschema ann ann|shared ACCEPT\nschema ann .* DENY\ntable .* app\\.secret.* DENY # no\nprocess bob ann DENY\n";
        *policy.rules.write() = Arc::new(parse(text).expect("rules"));
        let denies = |user: &str, object: Object<'_>| {
            policy.denies(&Subject { user, host: "%", is_administrator: false }, &object)
        };
        assert!(!denies("ann", Object::Schema("shared")));
        assert!(denies("ann", Object::Schema("shared2")));
        assert!(!denies("bob", Object::Schema("shared2")));
        assert!(denies("bob", Object::Table("app", "secrets")));
        assert!(!denies("bob", Object::Table("app", "plain")));
        assert!(denies("bob", Object::Process("ann")));
    }

    #[test]
    fn without_a_file_it_is_not_asked() {
        let policy = Policy::default();
        assert!(!policy.is_active());
        policy.file.store(Value::text("rules"));
        assert!(policy.is_active(), "before its rules are read: nothing is let through in between");
    }

    #[test]
    fn mistakes_name_their_line() {
        for (text, at) in [
            ("schema a b", "line 1"),
            ("schema a b ACCEPT\nview a b DENY", "line 2"),
            ("schema ( b DENY", "line 1"),
            ("schema a b MAYBE", "line 1"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.starts_with(at), "{error}");
        }
    }
}
