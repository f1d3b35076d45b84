//! HELP: a statement that is rewritten to a SELECT over the tables `mysql.help_*`, which this plugin has too.
//!
//! The texts about statements and types are in `topics.txt`; those about functions are the functions' own.

mod tables;
#[cfg(test)]
mod tests;
mod topics;

use std::sync::Arc;

use errors::Result;
use plugin_api::{
    InformationContext, Plugin, PluginInfo, Registrar, RewriteContext, StatementRewriter,
};
use syntax::ParseOptions;
use syntax::ast::Statement;
use types::SqlMode;

use topics::{Found, Help};

/// The plugin.
pub struct HelpTopics;

impl Plugin for HelpTopics {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("help", "HELP and its tables")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.rewriter("HELP", Arc::new(HelpRewriter));
        for table in tables::all() {
            registrar.information_table(table);
        }
    }
}

struct HelpRewriter;

impl StatementRewriter for HelpRewriter {
    fn rewrite(
        &self,
        sql: &str,
        ctx: &RewriteContext,
        facts: &dyn InformationContext,
    ) -> Result<Option<String>> {
        // Most statements are not HELP: they are not parsed for it.
        let is_help = |four: &[u8]| four.eq_ignore_ascii_case(b"help");
        if !sql.as_bytes().windows(4).any(is_help) {
            return Ok(None);
        }
        let options = ParseOptions {
            ansi_quotes: ctx.sql_mode.contains(SqlMode::ANSI_QUOTES),
            no_backslash_escapes: ctx.sql_mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
            ..ParseOptions::default()
        };
        let Ok((Statement::Help(word), _)) = syntax::parse_one(sql, &options) else {
            return Ok(None);
        };
        Ok(Some(select(&Help::new(facts).find(word.as_bytes()))))
    }
}

/// Places as numbers of the tables.
fn numbers(places: &[usize]) -> String {
    let mut text = String::from("0");
    for place in places {
        text += &format!(", {}", place + 1);
    }
    text
}

/// The SELECT that shows what was found.
fn select(found: &Found) -> String {
    match found {
        Found::Topic(topic) => format!(
            "SELECT name AS name, description AS description, example AS example FROM mysql.help_topic WHERE help_topic_id = {}",
            topic + 1
        ),
        Found::Nothing => several(&[], &[]),
        Found::Several { topics, categories } => several(topics, categories),
        Found::Category(category) => {
            let number = category + 1;
            format!(
                "SELECT c.name AS source_category_name, t.name AS name, t.is_it_category AS is_it_category FROM mysql.help_category c JOIN (SELECT name, 'N' AS is_it_category, help_category_id AS parent FROM mysql.help_topic UNION ALL SELECT name, 'Y', parent_category_id FROM mysql.help_category) t ON t.parent = c.help_category_id WHERE c.help_category_id = {number} ORDER BY t.is_it_category, t.name"
            )
        }
    }
}

/// A list of names.
fn several(topics: &[usize], categories: &[usize]) -> String {
    let (topics, categories) = (numbers(topics), numbers(categories));
    format!(
        "SELECT name AS name, 'N' AS is_it_category FROM mysql.help_topic WHERE help_topic_id IN ({topics}) UNION ALL SELECT name, 'Y' FROM mysql.help_category WHERE help_category_id IN ({categories}) ORDER BY is_it_category, name"
    )
}
