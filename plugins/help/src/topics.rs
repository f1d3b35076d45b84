//! What HELP knows: categories, topics and keywords. Topics of functions come from the functions themselves.

use charset::CollationId;
use plugin_api::{FunctionView, InformationContext};

const TEXT: &str = include_str!("topics.txt");

/// The category of all others.
pub(crate) const CONTENTS: &str = "Contents";
/// The category of the categories of functions.
const FUNCTIONS: &str = "Functions";
/// Plugins whose functions have a category of their own.
const FAMILIES: &[(&str, &str)] = &[
    ("aggregates", "Aggregate Functions and Modifiers"),
    ("functions_crypto", "Encryption Functions"),
    ("functions_json", "JSON Functions"),
    ("functions_numeric", "Numeric Functions"),
    ("functions_spatial", "Spatial Functions"),
    ("functions_string", "String Functions"),
    ("functions_temporal", "Date and Time Functions"),
    ("user_locks", "Locking Functions"),
];
const OTHERS: &str = "Miscellaneous Functions";

/// A category; the first one has no parent.
pub(crate) struct Category {
    pub(crate) name: &'static str,
    /// Its place among the categories.
    pub(crate) parent: Option<usize>,
}

/// A topic.
pub(crate) struct Topic {
    pub(crate) name: String,
    /// Its place among the categories.
    pub(crate) category: usize,
    pub(crate) description: String,
    pub(crate) example: String,
    pub(crate) keywords: Vec<&'static str>,
}

/// All that HELP knows.
pub(crate) struct Help {
    pub(crate) categories: Vec<Category>,
    pub(crate) topics: Vec<Topic>,
}

impl Help {
    /// With the functions of the plugins that are loaded now.
    pub(crate) fn new(facts: &dyn InformationContext) -> Help {
        let mut help = Help::of_statements();
        let functions = help.category(FUNCTIONS, Some(0));
        let plugins = facts.plugins();
        let mut known = facts.functions();
        known.sort_unstable();
        for FunctionView { name, help: text } in known {
            let owner = plugins.iter().find(|plugin| {
                let is_it = |slot: &str| matches!(slot, "FUNCTION" | "AGGREGATE");
                plugin.items.iter().any(|item| is_it(item.slot) && item.name == name)
            });
            let family = FAMILIES.iter().find(|(plugin, _)| {
                owner.is_some_and(|owner| owner.info.name.eq_ignore_ascii_case(plugin))
            });
            let category = family.map_or(OTHERS, |(_, category)| category);
            let category = help.category(category, Some(functions));
            // A statement or a type may have the same name.
            let is_taken = help.topics.iter().any(|topic| topic.name == name);
            let name = if is_taken { format!("{name} FUNCTION") } else { name.to_owned() };
            help.topics.push(Topic {
                name,
                category,
                description: format!("{text}\n"),
                example: String::new(),
                keywords: Vec::new(),
            });
        }
        help
    }

    /// The topics of the text.
    pub(crate) fn of_statements() -> Help {
        let mut help = Help { categories: Vec::new(), topics: Vec::new() };
        help.category(CONTENTS, None);
        let mut category = 0;
        for line in TEXT.lines() {
            if let Some(name) = line.strip_prefix("== ") {
                help.topics.push(Topic {
                    name: name.to_owned(),
                    category,
                    description: "Syntax:\n".to_owned(),
                    example: String::new(),
                    keywords: Vec::new(),
                });
            } else if let Some(name) = line.strip_prefix("= ") {
                category = help.category(name, Some(0));
            } else if let Some(topic) = help.topics.last_mut() {
                topic.add(line);
            }
        }
        for topic in &mut help.topics {
            let end = topic.description.trim_end().len();
            topic.description.truncate(end);
            topic.description.push('\n');
        }
        help
    }

    /// The place of a category, which is made when it is not there.
    fn category(&mut self, name: &'static str, parent: Option<usize>) -> usize {
        let known = self.categories.iter().position(|category| category.name == name);
        known.unwrap_or_else(|| {
            self.categories.push(Category { name, parent });
            self.categories.len() - 1
        })
    }

    /// All keywords, in order, without repetition.
    pub(crate) fn keywords(&self) -> Vec<&'static str> {
        let mut all: Vec<_> = self.topics.iter().flat_map(|topic| topic.keywords.clone()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl Topic {
    /// A line of its text: `>` an example, `:` keywords.
    fn add(&mut self, line: &'static str) {
        if let Some(example) = line.strip_prefix("> ") {
            self.example += example;
            self.example.push('\n');
        } else if let Some(keywords) = line.strip_prefix(": ") {
            self.keywords.extend(keywords.split_whitespace());
        } else {
            self.description += line;
            self.description.push('\n');
        }
    }
}

/// What a word stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Nothing,
    /// One topic.
    Topic(usize),
    /// Several topics, and the categories that fit too.
    Several { topics: Vec<usize>, categories: Vec<usize> },
    /// What is in one category.
    Category(usize),
}

impl Help {
    /// Looks for topics and categories of this name, and for topics with this keyword when there are none. `word` may have `%` and `_`.
    pub(crate) fn find(&self, word: &[u8]) -> Found {
        let collation = charset::collation_or_binary(CollationId::UTF8MB4_0900_AI_CI);
        let fits = |name: &str| collation.like(word, name.as_bytes(), Some('\\'));
        let named = |at: &usize| fits(&self.topics[*at].name);
        let with_keyword = |at: &usize| self.topics[*at].keywords.iter().any(|word| fits(word));
        let places = || 0..self.topics.len();
        let mut topics: Vec<usize> = places().filter(named).collect();
        let categories = self.categories.iter().enumerate().filter(|(_, one)| fits(one.name));
        let categories: Vec<usize> = categories.map(|(at, _)| at).collect();
        if topics.is_empty() && categories.is_empty() {
            topics = places().filter(with_keyword).collect();
        }
        match (&topics[..], &categories[..]) {
            ([], []) => Found::Nothing,
            ([], [category]) => Found::Category(*category),
            ([topic], _) => Found::Topic(*topic),
            _ => Found::Several { topics, categories },
        }
    }
}
