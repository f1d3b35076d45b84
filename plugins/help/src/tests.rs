//! Tests of what a word finds.

use syntax::ParseOptions;

use crate::topics::{Found, Help};

fn help() -> Help {
    Help::of_statements()
}

fn topic(word: &str) -> String {
    let help = help();
    match help.find(word.as_bytes()) {
        Found::Topic(at) => help.topics[at].name.clone(),
        other => panic!("{word}: {other:?}"),
    }
}

#[test]
fn topics_are_found_by_name_and_keyword() {
    assert_eq!(topic("select"), "SELECT");
    assert_eq!(topic("LOAD D%"), "LOAD DATA");
    assert_eq!(topic("infile"), "LOAD DATA");
    assert_eq!(help().find(b"no such thing"), Found::Nothing);
}

#[test]
fn several_topics_and_categories_are_listed() {
    let help = help();
    let Found::Several { topics, categories } = help.find(b"create%") else { panic!("a list") };
    assert!(topics.len() > 5 && categories.is_empty());
    assert!(matches!(help.find(b"data%"), Found::Several { .. }));
    assert_eq!(help.find(b"contents"), Found::Category(0));
    assert!(matches!(help.find(b"transactions"), Found::Category(_)));
}

#[test]
fn names_are_unique_and_texts_are_there() {
    let help = help();
    let mut names: Vec<&str> = help.topics.iter().map(|topic| &*topic.name).collect();
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for topic in &help.topics {
        assert!(topic.description.len() > "Syntax:\n\n".len(), "{}", topic.name);
        assert!(topic.name.len() <= 64 && topic.category > 0, "{}", topic.name);
    }
}

#[test]
fn examples_are_statements() {
    for topic in help().topics {
        let mut rest = &*topic.example;
        while !rest.trim().is_empty() {
            match syntax::parse_one(rest, &ParseOptions::default()) {
                Ok((_, used)) => rest = &rest[used..],
                // In a stored program only.
                Err(_) if rest.starts_with("DECLARE") => break,
                Err(error) => panic!("{}: {error}: {rest}", topic.name),
            }
        }
    }
}
