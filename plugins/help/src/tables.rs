//! The tables of HELP in the schema `mysql`.

use std::sync::Arc;

use errors::Result;
use plugin_api::{
    InfoColumn, InfoFilter, InformationContext, InformationTable, TableDefinition,
    table_definitions,
};
use types::Value;

use crate::topics::Help;

const DEFINITIONS: &str = include_str!("definitions.txt");

/// The rows of a table.
type Rows = fn(&Help) -> Vec<Vec<Value>>;

/// Numbers begin with 1.
fn number(place: usize) -> Value {
    Value::UInt(place as u64 + 1)
}

fn topics(help: &Help) -> Vec<Vec<Value>> {
    let row = |(at, topic): (usize, &crate::topics::Topic)| {
        vec![
            number(at),
            Value::text(&topic.name),
            number(topic.category),
            Value::text(&topic.description),
            Value::text(&topic.example),
            Value::text(""),
        ]
    };
    help.topics.iter().enumerate().map(row).collect()
}

fn categories(help: &Help) -> Vec<Vec<Value>> {
    let row = |(at, category): (usize, &crate::topics::Category)| {
        let parent = category.parent.map_or(Value::UInt(0), number);
        vec![number(at), Value::text(category.name), parent, Value::text("")]
    };
    help.categories.iter().enumerate().map(row).collect()
}

fn keywords(help: &Help) -> Vec<Vec<Value>> {
    let words = help.keywords();
    words.iter().enumerate().map(|(at, word)| vec![number(at), Value::text(word)]).collect()
}

fn relations(help: &Help) -> Vec<Vec<Value>> {
    let words = help.keywords();
    let of_topic = |(at, topic): (usize, &crate::topics::Topic)| {
        let places = topic.keywords.iter().filter_map(|word| words.binary_search(word).ok());
        places.map(|place| vec![number(at), number(place)]).collect::<Vec<_>>()
    };
    help.topics.iter().enumerate().flat_map(of_topic).collect()
}

/// A table, with its rows.
struct HelpTable {
    definition: TableDefinition,
    rows: Rows,
}

/// All of them.
pub(crate) fn all() -> Vec<Arc<dyn InformationTable>> {
    let table = |definition: TableDefinition| -> Arc<dyn InformationTable> {
        let rows = match definition.name {
            "help_topic" => topics,
            "help_category" => categories,
            "help_keyword" => keywords,
            _ => relations,
        };
        Arc::new(HelpTable { definition, rows })
    };
    table_definitions(DEFINITIONS).into_iter().map(table).collect()
}

impl InformationTable for HelpTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        facts: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        (self.rows)(&Help::new(facts)).iter().try_for_each(|row| emit(row))
    }
}
