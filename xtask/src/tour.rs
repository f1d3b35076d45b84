//! The tour under `docs/tour`: every item that a chapter names must still exist.
//!
//! A name is code of the form `crate::Item`, with the crate as its folder under `crates/` is called.

use std::path::Path;

use crate::lines::rust_files;

/// Names in the chapters that no longer exist, worded for the author.
///
/// # Errors
/// The folder cannot be read.
pub fn outdated(root: &Path) -> Result<Vec<String>, String> {
    let folder = root.join("docs/tour");
    let mut findings = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|e| format!("docs/tour: {e}"))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        for (package, item) in names(&text) {
            let sources = rust_files(&root.join("crates").join(package.replace('_', "-")));
            let found = sources
                .iter()
                .any(|file| std::fs::read_to_string(file).is_ok_and(|code| defines(&code, item)));
            if !found {
                findings.push(format!("{}: {package}::{item} does not exist", path.display()));
            }
        }
    }
    Ok(findings)
}

/// Paths in the code of a page that are neither at the root nor, as the tour writes them, below `crates`.
pub fn lost_paths(root: &Path, text: &str) -> Vec<String> {
    let is_there = |path: &str| root.join(path).exists() || root.join("crates").join(path).exists();
    paths(text).filter(|path| !is_there(path)).map(str::to_owned).collect()
}

/// Code of the form `folder/../file.ending` or `folder/name` that begins with a folder of sources.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 8] =
        ["crates/", "plugins/", "testing/", "tests/", "tools/", "docs/", "xtask/", "benches/"];
    const ENDINGS: [&str; 6] = [".rs", ".md", ".py", ".toml", ".test", ".rules"];
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    text.split('`').skip(1).step_by(2).filter(move |code| {
        let known = FOLDERS.iter().any(|folder| code.starts_with(folder))
            || (code.contains("/src/") && ENDINGS.iter().any(|ending| code.ends_with(ending)));
        known && code.chars().all(is_path)
    })
}

/// The names in a chapter: pairs of crate and item.
fn names(text: &str) -> Vec<(&str, &str)> {
    text.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|code| code.split_once("::"))
        .filter(|(package, item)| is_name(package) && is_name(item))
        .collect()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn defines(code: &str, item: &str) -> bool {
    const KINDS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "macro_rules!"];
    let mut words = code.split_whitespace();
    let mut previous = "";
    words.any(|word| {
        let is_definition = KINDS.contains(&previous)
            && word
                .strip_prefix(item)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
        previous = word;
        is_definition
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found() {
        let text = "`crates/wal` `wal/src/log.rs` `docs/a.md` `x/y` `tests/*.py` `/etc/x.md`";
        assert_eq!(paths(text).collect::<Vec<_>>(), ["crates/wal", "wal/src/log.rs", "docs/a.md"]);
    }

    #[test]
    fn names_are_found_and_checked() {
        assert_eq!(names("a `wal::Log` and `x` and `a::b::c`"), [("wal", "Log")]);
        let code = "pub struct Log;\nimpl Log { pub fn flush_to(&self) {} }";
        assert!(defines(code, "Log") && defines(code, "flush_to"));
        assert!(!defines(code, "Lo") && !defines(code, "impl") && !defines(code, "flush"));
    }
}
