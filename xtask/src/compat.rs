//! The generated parts of COMPAT.md: a line `# @differs what | reference | Squall | why` or `# @not-built what` under
//! `tests/sql` names the difference that the statements below it show.

use std::fmt::Write as _;
use std::path::Path;

use crate::run;

const DIFFERS: &str = "# @differs ";
const NOT_BUILT: &str = "# @not-built ";
const BEGIN: &str = "<!-- made by `cargo xtask compat`: ";
const END: &str = "<!-- end -->";

/// The differences that the scripts name, in the order of files and lines.
#[derive(Default)]
struct Named {
    differs: Vec<String>,
    not_built: Vec<String>,
    findings: Vec<String>,
}

/// Writes the generated parts again.
///
/// # Errors
/// A tag is malformed or has no test, or a file cannot be read or written.
pub fn write() -> Result<(), String> {
    let root = run::root();
    let path = root.join("COMPAT.md");
    let named = read(&root)?;
    if !named.findings.is_empty() {
        return Err(named.findings.join("\n"));
    }
    let text = std::fs::read_to_string(&path).map_err(|e| format!("COMPAT.md: {e}"))?;
    std::fs::write(&path, fill(&text, &named)?).map_err(|e| format!("COMPAT.md: {e}"))
}

/// Errors in the tags, and lines of COMPAT.md that do not match them.
///
/// # Errors
/// A file cannot be read, or COMPAT.md has lost its markers.
pub fn outdated(root: &Path) -> Result<Vec<String>, String> {
    let named = read(root)?;
    let text = std::fs::read_to_string(root.join("COMPAT.md")).map_err(|e| e.to_string())?;
    let fresh = fill(&text, &named)? == text;
    let mut findings = named.findings;
    if !fresh {
        findings.push("COMPAT.md is older than the scripts: run `cargo xtask compat`".into());
    }
    Ok(findings)
}

fn read(root: &Path) -> Result<Named, String> {
    let folder = root.join("tests/sql/squall");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("tests/sql/squall: {e}"))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut named = Named::default();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        named.collect(&name, &text);
    }
    Ok(named)
}

impl Named {
    fn collect(&mut self, file: &str, text: &str) {
        let mut untested: Option<&str> = None;
        let tested = |line: &str| line.split_once('>').is_some_and(|(who, _)| who.len() <= 3);
        for line in text.lines() {
            let tag = [DIFFERS, NOT_BUILT].iter().find_map(|tag| line.strip_prefix(tag));
            if let Some(what) = tag {
                self.findings.extend(untested.map(|tag| format!("{file}: no test for {tag}")));
                untested = Some(what);
                match line.starts_with(DIFFERS) {
                    true if what.split(" | ").count() != 4 => {
                        self.findings.push(format!("{file}: a tag needs four parts: {what}"));
                    }
                    true => self.differs.push(what.to_owned()),
                    false => self.not_built.push(what.to_owned()),
                }
            } else if tested(line) {
                untested = None;
            }
        }
        self.findings.extend(untested.map(|tag| format!("{file}: no test for {tag}")));
    }

    fn part(&self, name: &str) -> Option<String> {
        let mut text = String::new();
        match name {
            "differences" => {
                text.push_str("| what | MySQL 9.7 | Squall | why |\n| --- | --- | --- | --- |\n");
                for row in &self.differs {
                    let _ = writeln!(text, "| {row} |");
                }
            }
            "not built" => {
                for what in &self.not_built {
                    let _ = writeln!(text, "- {what}");
                }
            }
            _ => return None,
        }
        Some(text)
    }
}

/// The document with its made parts replaced.
fn fill(text: &str, named: &Named) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let line_end = rest[at..].find('\n').ok_or("COMPAT.md: a marker without end")? + at + 1;
        let name = rest[at + BEGIN.len()..line_end].trim_end().trim_end_matches(" -->");
        let part = named.part(name).ok_or(format!("COMPAT.md: no part is called {name}"))?;
        let end = rest[line_end..].find(END).ok_or("COMPAT.md: a part without end")? + line_end;
        out.push_str(&rest[..line_end]);
        out.push('\n');
        out.push_str(&part);
        out.push('\n');
        rest = &rest[end..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_become_rows() {
        let mut named = Named::default();
        named.collect("a.test", "# @differs a | b | c | d\n> SELECT 1\n# @not-built x\nc2> x\n");
        assert!(named.findings.is_empty());
        let text = format!("Head\n{BEGIN}differences -->\nold\n{END}\nTail\n");
        let filled = fill(&text, &named).unwrap();
        assert!(filled.contains("| a | b | c | d |") && !filled.contains("old"));
        assert_eq!(fill(&filled, &named).unwrap(), filled);
    }

    #[test]
    fn a_tag_needs_its_parts_and_a_test() {
        let mut named = Named::default();
        named.collect("a.test", "# @differs a | b\n# @not-built x\n");
        assert_eq!(named.findings.len(), 3);
    }
}
