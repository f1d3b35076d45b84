//! The filter document: which events the log takes.
//!
//! `{"rules": [{"user": "app%", "host": "10.%", "schema": "shop", "event": ["statement"], "command": ["UPDATE", "DELETE"], "log": true}],
//! "default": false}`: the first rule that fits decides; a field that a rule lacks fits everything. An empty text logs all. Changes of rows are
//! logged only where a rule names the event `row`.

use errors::{Error, ErrorCode, Result};
use serde_json::{Map, Value};

/// The names of events.
const EVENTS: [&str; 7] =
    ["connect", "disconnect", "login_failure", "message", "row", "schema_change", "statement"];
/// The event that rules have to name.
const ROW: &str = "row";

/// Which events the log takes.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    rules: Vec<Rule>,
    /// Whether what no rule fits is left out.
    skips_rest: bool,
}

#[derive(Debug, Default)]
struct Rule {
    users: Vec<String>,
    hosts: Vec<String>,
    schemas: Vec<String>,
    tables: Vec<String>,
    events: Vec<String>,
    commands: Vec<String>,
    skips: bool,
}

/// The facts of an event that filters know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) event: &'static str,
    pub(crate) user: &'a str,
    pub(crate) host: &'a str,
    pub(crate) schema: &'a str,
    /// Of a row or a schema change; else empty.
    pub(crate) table: &'a str,
    pub(crate) command: &'a str,
}

fn wrong(message: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, format!("audit_log_filter: {message}"))
}

/// One text or several.
fn texts(name: &str, value: &Value) -> Result<Vec<String>> {
    let text = |value: &Value| {
        value.as_str().map(str::to_owned).ok_or_else(|| wrong(format!("'{name}' takes texts")))
    };
    match value.as_array() {
        Some(values) => values.iter().map(text).collect(),
        None => text(value).map(|text| vec![text]),
    }
}

fn truth(name: &str, value: &Value) -> Result<bool> {
    value.as_bool().ok_or_else(|| wrong(format!("'{name}' is true or false")))
}

impl Rule {
    fn parse(fields: &Map<String, Value>) -> Result<Rule> {
        let mut rule = Rule::default();
        for (name, value) in fields {
            match name.as_str() {
                "user" => rule.users = texts(name, value)?,
                "host" => rule.hosts = texts(name, value)?,
                "schema" => rule.schemas = texts(name, value)?,
                "table" => rule.tables = texts(name, value)?,
                "event" => rule.events = texts(name, value)?,
                "command" => rule.commands = texts(name, value)?,
                "log" => rule.skips = !truth(name, value)?,
                other => return Err(wrong(format!("a rule has no '{other}'"))),
            }
        }
        match rule.events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
            Some(event) => {
                Err(wrong(format!("there is no event '{event}'; events: {}", EVENTS.join(", "))))
            }
            None => Ok(rule),
        }
    }

    fn names(&self, event: &str) -> bool {
        self.events.iter().any(|known| known == event)
    }

    fn fits(&self, facts: &Facts<'_>) -> bool {
        let fits = |patterns: &[String], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| is_like(pattern, name))
        };
        fits(&self.users, facts.user)
            && fits(&self.hosts, facts.host)
            && fits(&self.schemas, facts.schema)
            && fits(&self.tables, facts.table)
            && (facts.event != ROW || self.names(ROW))
            && fits(&self.events, facts.event)
            && fits(&self.commands, facts.command)
    }
}

/// Whether a name is like a pattern, in which `%` stands for anything; capitals and small letters are the same.
fn is_like(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    let mut parts = pattern.split('%');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut ends_open = !pattern.contains('%');
    for part in parts {
        ends_open = part.is_empty();
        if ends_open {
            continue;
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    match pattern.rsplit_once('%') {
        None => rest.is_empty(),
        Some((_, last)) => ends_open || name.ends_with(last),
    }
}

impl Filter {
    /// Reads a filter document.
    ///
    /// # Errors
    /// 1231 says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Filter> {
        if text.trim().is_empty() {
            return Ok(Filter::default());
        }
        let document: Value = serde_json::from_str(text).map_err(wrong)?;
        let fields = document.as_object().ok_or_else(|| wrong("an object is wanted"))?;
        let mut filter = Filter::default();
        for (name, value) in fields {
            match name.as_str() {
                "rules" => {
                    let rules = value.as_array().ok_or_else(|| wrong("'rules' is an array"))?;
                    let rule = |rule: &Value| {
                        Rule::parse(rule.as_object().ok_or_else(|| wrong("a rule is an object"))?)
                    };
                    filter.rules = rules.iter().map(rule).collect::<Result<_>>()?;
                }
                "default" => filter.skips_rest = !truth(name, value)?,
                other => return Err(wrong(format!("there is no '{other}'"))),
            }
        }
        Ok(filter)
    }

    /// Whether the log takes the event.
    pub(crate) fn takes(&self, facts: &Facts<'_>) -> bool {
        let rule = self.rules.iter().find(|rule| rule.fits(facts));
        !rule.map_or(self.skips_rest || facts.event == ROW, |rule| rule.skips)
    }

    /// Whether the log may take an event, whoever causes it.
    pub(crate) fn may_take(&self, event: &str) -> bool {
        let may = |rule: &Rule| match event {
            ROW => rule.names(ROW),
            _ => rule.events.is_empty() || rule.names(event),
        };
        self.rules.iter().any(|rule| may(rule) && !rule.skips) || (!self.skips_rest && event != ROW)
    }

    /// Whether the log may take rows of a table.
    pub(crate) fn may_take_rows(&self, schema: &str, table: &str) -> bool {
        let fits = |patterns: &[String], name: &str| {
            patterns.is_empty() || patterns.iter().any(|pattern| is_like(pattern, name))
        };
        self.rules.iter().any(|rule| {
            rule.names(ROW)
                && !rule.skips
                && fits(&rule.schemas, schema)
                && fits(&rule.tables, table)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(user: &'a str, schema: &'a str, command: &'a str) -> Facts<'a> {
        Facts { event: "statement", user, host: "10.0.0.1", schema, table: "", command }
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let text = r#"{"rules": [{"user": "app%", "command": ["SELECT"], "log": false},
            {"schema": "shop", "event": "statement"}], "default": false}"#;
        let filter = Filter::parse(text).expect("a filter");
        assert!(!filter.takes(&facts("app1", "shop", "SELECT")));
        assert!(filter.takes(&facts("app1", "shop", "UPDATE")));
        assert!(filter.takes(&facts("ann", "shop", "SELECT")));
        assert!(!filter.takes(&facts("ann", "other", "SELECT")));
        assert!(Filter::parse("").expect("no filter").takes(&facts("a", "", "SELECT")));
    }

    #[test]
    fn rows_are_logged_only_where_a_rule_names_them() {
        let all = Filter::parse("").expect("no filter");
        let row = |table| Facts { event: "row", table, ..facts("a", "shop", "UPDATE") };
        assert!(!all.takes(&row("t")) && !all.may_take("row") && all.may_take("statement"));
        let text = r#"{"rules": [{"schema": "shop", "log": true},
            {"event": "row", "schema": "shop", "table": "pay%"}], "default": false}"#;
        let filter = Filter::parse(text).expect("a filter");
        assert!(filter.takes(&row("payments")) && !filter.takes(&row("carts")));
        assert!(filter.may_take_rows("shop", "pay") && !filter.may_take_rows("other", "pay"));
        assert!(filter.may_take("row") && filter.may_take("connect"));
        let nothing = Filter::parse(r#"{"default": false}"#).expect("a filter");
        assert!(EVENTS.iter().all(|event| !nothing.may_take(event)));
    }

    #[test]
    fn mistakes_are_refused() {
        for text in [
            "[",
            "[]",
            r#"{"rule": []}"#,
            r#"{"rules": [{"users": "a"}]}"#,
            r#"{"rules": [{"event": "stament"}]}"#,
            r#"{"rules": [{"log": 1}]}"#,
        ] {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percent_stands_for_anything() {
        for (pattern, name, is) in [
            ("a%", "abc", true),
            ("%c", "abc", true),
            ("a%c", "abc", true),
            ("%b%", "abc", true),
            ("abc", "ABC", true),
            ("ab", "abc", false),
            ("%d", "abc", false),
            ("a%c", "abcd", false),
            ("%", "", true),
        ] {
            assert_eq!(is_like(pattern, name), is, "{pattern} {name}");
        }
    }
}
