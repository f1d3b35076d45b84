//! `squall docs`: the documentation, from the program itself.

use std::fmt::Write as _;

use clap::Parser;
use clap::error::ErrorKind;

/// Name, title and text of each page.
const PAGES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));
/// Most lines that a search prints.
const FOUND_MAX: usize = 200;

/// Prints the documentation of this version
#[derive(Debug, Parser)]
#[command(name = "squall docs")]
struct Arguments {
    /// The page, by its name or a part of it; a list of all pages unless given
    page: Option<String>,
    /// Lines of all pages that have this text, in upper or lower case
    #[arg(short, long, conflicts_with = "page")]
    search: Option<String>,
}

/// Runs the command line after `squall docs`.
///
/// # Errors
/// The command line is wrong, or there is no such page.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let parsed = Arguments::try_parse_from(["squall docs".to_owned()].into_iter().chain(arguments));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(error.to_string()),
        Err(error) => return Err(error.render().ansi().to_string()),
    };
    match (arguments.page, arguments.search) {
        (Some(name), _) => page(&name).map(str::to_owned),
        (None, Some(words)) => found(&words),
        (None, None) => Ok(list()),
    }
}

fn list() -> String {
    let mut text = String::from("squall docs PAGE prints one of these:\n\n");
    for (name, title, _) in PAGES {
        let _ = writeln!(text, "  {name:<32} {title}");
    }
    text
}

/// The page of this name, else the only one whose name or title has it.
fn page(wanted: &str) -> Result<&'static str, String> {
    let wanted = wanted.trim_end_matches(".md").to_lowercase();
    let exact = PAGES.iter().find(|(name, _, _)| name.to_lowercase() == wanted);
    let has = |text: &str| text.to_lowercase().contains(&wanted);
    let near: Vec<_> = PAGES.iter().filter(|(name, title, _)| has(name) || has(title)).collect();
    match (exact, near.as_slice()) {
        (Some((_, _, text)), _) | (None, [(_, _, text)]) => Ok(text),
        (None, []) => Err(format!("no page {wanted}; `squall docs` lists them")),
        (None, several) => {
            let names: Vec<_> = several.iter().map(|(name, _, _)| *name).collect();
            Err(format!("several pages: {}", names.join(", ")))
        }
    }
}

fn found(words: &str) -> Result<String, String> {
    let words = words.to_lowercase();
    let mut text = String::new();
    let lines = PAGES.iter().flat_map(|(name, _, page)| page.lines().map(move |line| (name, line)));
    for (name, line) in
        lines.filter(|(_, line)| line.to_lowercase().contains(&words)).take(FOUND_MAX)
    {
        let _ = writeln!(text, "{name}: {line}");
    }
    if text.is_empty() { Err(format!("no page has {words}")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_name_part_and_word() {
        assert!(page("from-mysql").is_ok_and(|text| text.contains("squall import")));
        assert!(page("reference/variables.md").is_ok_and(|text| text.contains("max_connections")));
        assert!(page("quick").is_ok_and(|text| text.starts_with("# Quick start")));
        assert!(page("tour").is_err_and(|text| text.contains("tour/01")));
        assert!(page("no such page").is_err());
        assert!(found("LOCK INSTANCE FOR BACKUP").is_ok_and(|text| text.contains("from-mysql: ")));
        assert!(found("\u{1}").is_err());
        assert!(list().lines().count() > 40);
    }
}
