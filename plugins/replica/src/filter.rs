//! Replication filters: which changes of the source are repeated here.
//!
//! The rules and their order are those that the reference documents: rules of databases count before those of tables, REWRITE_DB before all.

use std::fmt::Write as _;

use binlog::query::QueryEvent;
use errors::{Error, Result, err};
use serde_json::{Map, Value as Json, json};
use syntax::ParseOptions;
use syntax::ast::{Ident, ObjectName, Statement};

use crate::status::now_micros;

/// The kinds of rules, in the order in which they are shown.
pub(crate) const KINDS: [&str; 7] = [
    "REPLICATE_DO_DB",
    "REPLICATE_IGNORE_DB",
    "REPLICATE_DO_TABLE",
    "REPLICATE_IGNORE_TABLE",
    "REPLICATE_WILD_DO_TABLE",
    "REPLICATE_WILD_IGNORE_TABLE",
    "REPLICATE_REWRITE_DB",
];
const DO_DB: usize = 0;
const IGNORE_DB: usize = 1;
const DO_TABLE: usize = 2;
const IGNORE_TABLE: usize = 3;
const WILD_DO: usize = 4;
const WILD_IGNORE: usize = 5;
const REWRITE: usize = 6;

/// The rules of one kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules {
    /// Names, or for REWRITE_DB pairs of names one after the other.
    pub(crate) values: Vec<String>,
    /// Whether they were given for one channel.
    pub(crate) is_of_channel: bool,
    /// Microseconds since 1970 when they were given.
    pub(crate) since_micros: i64,
}

/// The filters of a channel.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filters([Rules; KINDS.len()]);

impl Filters {
    /// What CHANGE REPLICATION FILTER says.
    ///
    /// # Errors
    /// 1235 for an unknown rule, 1210 for a table without a schema.
    pub(crate) fn change(
        &mut self,
        rules: &[(Ident, Vec<Box<str>>)],
        is_of_channel: bool,
    ) -> Result<()> {
        for (rule, values) in rules {
            let found = KINDS.iter().position(|kind| rule.is(kind));
            let unknown =
                || Error::not_supported(format!("CHANGE REPLICATION FILTER {}", rule.text));
            let kind = found.ok_or_else(unknown)?;
            let names_tables = (DO_TABLE..=WILD_IGNORE).contains(&kind);
            if names_tables && values.iter().any(|value| !value.contains('.')) {
                return Err(err!(WRONG_ARGUMENTS, rule.text));
            }
            self.0[kind] = Rules {
                values: values.iter().map(ToString::to_string).collect(),
                is_of_channel,
                since_micros: now_micros(),
            };
        }
        Ok(())
    }

    /// Whether there is no rule.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|rules| rules.values.is_empty())
    }

    /// The rules that are set, with the names of their kinds.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&'static str, &Rules)> {
        KINDS.into_iter().zip(&self.0).filter(|(_, rules)| !rules.values.is_empty())
    }

    /// The rules of a kind as SHOW REPLICA STATUS shows them.
    pub(crate) fn shown(&self, kind: &str) -> String {
        let found = KINDS.into_iter().zip(&self.0).find(|(name, _)| *name == kind);
        found.map_or_else(String::new, |(name, rules)| shown(name, &rules.values))
    }

    /// The schema that changes of this one go to.
    pub(crate) fn rewritten<'s>(&'s self, schema: &'s str) -> &'s str {
        let pairs = self.0[REWRITE].values.as_chunks::<2>().0;
        pairs.iter().find(|[from, _]| from == schema).map_or(schema, |[_, to]| to)
    }

    /// Whether the rules of databases let changes of a schema pass.
    pub(crate) fn takes_schema(&self, schema: &str) -> bool {
        let is_in = |kind: usize| self.0[kind].values.iter().any(|name| name == schema);
        match self.0[DO_DB].values.is_empty() {
            false => is_in(DO_DB),
            true => !is_in(IGNORE_DB),
        }
    }

    /// Whether the rules of tables let changes of a table pass.
    pub(crate) fn takes_table(&self, schema: &str, table: &str) -> bool {
        let name = format!("{schema}.{table}");
        let is_in = |kind: usize| self.0[kind].values.contains(&name);
        let is_like = |kind: usize| self.0[kind].values.iter().any(|rule| is_match(rule, &name));
        if is_in(DO_TABLE) {
            return true;
        }
        if is_in(IGNORE_TABLE) {
            return false;
        }
        if is_like(WILD_DO) {
            return true;
        }
        if is_like(WILD_IGNORE) {
            return false;
        }
        self.0[DO_TABLE].values.is_empty() && self.0[WILD_DO].values.is_empty()
    }

    /// Whether changes of rows of a table are repeated; its schema is the rewritten one.
    pub(crate) fn takes_rows(&self, schema: &str, table: &str) -> bool {
        self.is_empty() || self.takes_schema(schema) && self.takes_table(schema, table)
    }

    /// Whether a statement that changes definitions is repeated: by its current schema, or the schema that it is about, and if it is
    /// about tables by them, one of which is enough.
    pub(crate) fn takes_definition(&self, query: &QueryEvent<'_>, text: &[u8]) -> bool {
        let current = String::from_utf8_lossy(query.schema).into_owned();
        let parsed = syntax::parse_bytes(text, &ParseOptions::default());
        let Ok((statement, _)) = parsed else { return self.takes_schema(&current) };
        if let Statement::CreateDatabase(create) = &statement {
            return self.takes_whole(&create.name.text);
        }
        if let Statement::DropDatabase(drop) = &statement {
            return self.takes_whole(&drop.name.text);
        }
        let tables = tables_of(&statement);
        // The reference goes by the current schema; a statement that names another is logged with the name, here and there.
        if !current.is_empty() && !self.takes_schema(self.rewritten(&current)) {
            return false;
        }
        let takes = |name: &&ObjectName| {
            let schema = name.schema.as_ref().map_or_else(
                || self.rewritten(&current).to_owned(),
                |schema| schema.text.to_string(),
            );
            self.takes_table(&schema, &name.name.text)
        };
        tables.is_empty() || tables.iter().any(takes)
    }

    /// Whether the making and dropping of a schema is repeated.
    fn takes_whole(&self, schema: &str) -> bool {
        let name = format!("{schema}.");
        let is_like = |kind: usize| self.0[kind].values.iter().any(|rule| is_match(rule, &name));
        let is_taken = match (is_like(WILD_DO), is_like(WILD_IGNORE)) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => self.0[WILD_DO].values.is_empty(),
        };
        self.takes_schema(schema) && is_taken
    }

    /// As they are stored.
    pub(crate) fn written(&self) -> Json {
        let mut map = Map::new();
        for (name, rules) in self.list() {
            let Rules { values, is_of_channel, since_micros } = rules;
            let rules = json!({"values": values, "channel": is_of_channel, "since": since_micros});
            map.insert(name.to_owned(), rules);
        }
        Json::Object(map)
    }

    /// Reads what `written` made.
    pub(crate) fn read(json: &Json) -> Filters {
        let mut filters = Filters::default();
        for (kind, name) in KINDS.into_iter().enumerate() {
            let stored = &json[name];
            let values = stored["values"].as_array().into_iter().flatten();
            filters.0[kind] = Rules {
                values: values.filter_map(Json::as_str).map(str::to_owned).collect(),
                is_of_channel: stored["channel"].as_bool().unwrap_or(false),
                since_micros: stored["since"].as_i64().unwrap_or(0),
            };
        }
        filters
    }
}

/// The tables that a statement is about.
fn tables_of(statement: &Statement) -> Vec<&ObjectName> {
    if let Statement::DropTable(drop) = statement {
        return drop.names.iter().collect();
    }
    if let Statement::RenameTable(rename) = statement {
        return rename.renames.iter().map(|(from, _)| from).collect();
    }
    let one = if let Statement::CreateTable(create) = statement {
        Some(&create.name)
    } else if let Statement::AlterTable(alter) = statement {
        Some(&alter.name)
    } else if let Statement::TruncateTable(name) = statement {
        Some(name)
    } else if let Statement::CreateIndex(create) = statement {
        Some(&create.table)
    } else if let Statement::DropIndex(drop) = statement {
        Some(&drop.table)
    } else {
        None
    };
    one.into_iter().collect()
}

/// The values of rules as they are shown.
pub(crate) fn shown(kind: &str, values: &[String]) -> String {
    if kind != KINDS[REWRITE] {
        return values.join(",");
    }
    let mut text = String::new();
    for [from, to] in values.as_chunks::<2>().0 {
        // Writing to a string does not fail.
        let _ = write!(text, "{}({from},{to})", if text.is_empty() { "" } else { "," });
    }
    text
}

/// Whether a name is like a pattern: `%` for any characters, `_` for one, `\` before one of these for itself.
fn is_match(pattern: &str, name: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return name.is_empty() };
    let rest = &pattern[first.len_utf8()..];
    let after_one = || name.chars().next().map(|one| &name[one.len_utf8()..]);
    match first {
        '%' => {
            let mut ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            ends.any(|at| is_match(rest, &name[at..]))
        }
        '_' => after_one().is_some_and(|name| is_match(rest, name)),
        '\\' if rest.starts_with(['%', '_', '\\']) => {
            let escaped = rest.chars().next();
            name.chars().next() == escaped
                && after_one().is_some_and(|name| is_match(&rest[1..], name))
        }
        _ => name.starts_with(first) && after_one().is_some_and(|name| is_match(rest, name)),
    }
}

#[cfg(test)]
mod tests {
    use syntax::ast::{Replication, Statement};

    use super::*;

    fn filters(text: &str) -> Filters {
        let sql = format!("CHANGE REPLICATION FILTER {text}");
        let parsed = syntax::parse_one(&sql, &syntax::ParseOptions::default()).expect(&sql);
        let mut filters = Filters::default();
        if let Statement::Replication(replication) = parsed.0
            && let Replication::ChangeFilter { rules, .. } = *replication
        {
            filters.change(&rules, true).expect(&sql);
        }
        assert!(!filters.is_empty(), "{sql}");
        filters
    }

    #[test]
    fn rules_count_in_the_order_of_the_reference() {
        let tables = filters(
            "REPLICATE_DO_TABLE = (a.t), REPLICATE_IGNORE_TABLE = (a.u), REPLICATE_WILD_DO_TABLE = ('a.u%', 'w\\_x.%')",
        );
        assert!(tables.takes_table("a", "t") && tables.takes_table("a", "u2"));
        assert!(!tables.takes_table("a", "u") && !tables.takes_table("b", "t"));
        assert!(tables.takes_table("w_x", "any") && !tables.takes_table("wyx", "any"));
        let ignored = filters("REPLICATE_WILD_IGNORE_TABLE = ('a.t_')");
        assert!(ignored.takes_table("a", "t") && !ignored.takes_table("a", "t1"));
        let schemas = filters("REPLICATE_DO_DB = (a), REPLICATE_IGNORE_DB = (a, b)");
        assert!(schemas.takes_schema("a") && !schemas.takes_schema("c"));
        assert!(!filters("REPLICATE_IGNORE_DB = (b)").takes_schema("b"));
        assert_eq!(Filters::read(&tables.written()), tables);
    }

    #[test]
    fn pairs_are_rewritten_and_shown() {
        let pairs = filters("REPLICATE_REWRITE_DB = ((a, b), (c, d))");
        assert_eq!((pairs.rewritten("a"), pairs.rewritten("x")), ("b", "x"));
        assert_eq!(pairs.shown("REPLICATE_REWRITE_DB"), "(a,b),(c,d)");
    }
}
