//! The documentation as a book: `docs/SUMMARY.md` lists its pages. Checks that it lists each page once, that links lead somewhere and that files named in code exist; lays
//! the pages out for mdBook in `target/book/src` and builds them where that program is.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::{run, tour};

/// A link of a page: its text and where it leads, both as written, and where they stand.
struct Link<'a> {
    begin: usize,
    end: usize,
    text: &'a str,
    target: &'a str,
}

/// Checks the pages, then builds the book.
///
/// # Errors
/// A page is not listed, a link leads nowhere, or mdBook fails.
pub fn book() -> Result<(), String> {
    let root = run::root();
    let findings = findings(&root)?;
    if !findings.is_empty() {
        return Err(findings.join("\n"));
    }
    run::command("python3", &["docs/pictures/draw.py", "--check"])?;
    let out = root.join("target/book");
    lay_out(&root, &out)?;
    match Command::new("mdbook").arg("build").arg(&out).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("mdbook build: {status}")),
        Err(_) => {
            println!(
                "LEFT OUT: the book is checked and laid out in target/book, and not built: there is no mdbook (cargo install mdbook)"
            );
            Ok(())
        }
    }
}

/// What is wrong with the pages.
fn findings(root: &Path) -> Result<Vec<String>, String> {
    let mut findings = Vec::new();
    let listed = summary(root)?;
    let mut seen = BTreeSet::new();
    for page in &listed {
        if !seen.insert(page) {
            findings.push(format!("docs/SUMMARY.md lists {} twice", page.display()));
        }
    }
    for page in pages(root)? {
        if !seen.contains(&page) {
            findings.push(format!("docs/SUMMARY.md does not list {}", page.display()));
        }
    }
    for page in &listed {
        let text = read(root, page)?;
        // What changed long ago may have named a file that is gone.
        if page != Path::new("CHANGELOG.md") {
            let lost = tour::lost_paths(root, &text);
            findings.extend(lost.iter().map(|path| format!("{}: no file {path}", page.display())));
        }
        for link in links(&text).filter(|link| !is_elsewhere(link.target)) {
            let (file, anchor) = split_anchor(link.target);
            let path = if file.is_empty() { page.clone() } else { resolve(page, file) };
            if !root.join(&path).exists() {
                findings.push(format!("{}: {} leads nowhere", page.display(), link.target));
            } else if !anchor.is_empty() && path.extension().is_some_and(|e| e == "md") {
                let anchors = anchors(&read(root, &path)?);
                if !anchors.contains(anchor) {
                    findings.push(format!("{}: no heading {}", page.display(), link.target));
                }
            }
        }
    }
    Ok(findings)
}

fn read(root: &Path, page: &Path) -> Result<String, String> {
    std::fs::read_to_string(root.join(page)).map_err(|e| format!("{}: {e}", page.display()))
}

/// The pages that the summary lists, from the root of the repository on.
fn summary(root: &Path) -> Result<Vec<PathBuf>, String> {
    let page = Path::new("docs/SUMMARY.md");
    let text = read(root, page)?;
    Ok(links(&text).map(|link| resolve(page, link.target)).collect())
}

/// All pages that there are: those under `docs`, and those at the root.
fn pages(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut pages = Vec::new();
    for folder in ["", "docs", "docs/format", "docs/tour", "docs/reference"] {
        let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
        for entry in entries {
            let name = entry.map_err(|e| e.to_string())?.file_name();
            let path = Path::new(folder).join(&name);
            let is_page = path.extension().is_some_and(|e| e == "md") && name != "SUMMARY.md";
            if is_page {
                pages.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Links of the form `[text](target)`, outside code.
fn links(text: &str) -> impl Iterator<Item = Link<'_>> {
    let (mut found, mut at, mut in_block) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            links_of_line(line, at, &mut found);
        }
        at += line.len();
    }
    found.into_iter()
}

fn links_of_line<'a>(line: &'a str, begin: usize, found: &mut Vec<Link<'a>>) {
    let (mut in_code, mut open) = (false, None);
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '`' => in_code = !in_code,
            '[' if !in_code => open = Some(at),
            // A text may have code in it: what counts is where it began.
            ']' if line[at..].starts_with("](") && !in_code => {
                let Some(start) = open.take() else { continue };
                let Some(length) = line[at + 2..].find(')') else { continue };
                let end = at + 2 + length;
                let (text, target) = (&line[start + 1..at], &line[at + 2..end]);
                found.push(Link { begin: begin + start, end: begin + end + 1, text, target });
                chars = line.char_indices();
                chars.by_ref().take_while(|(next, _)| *next < end).for_each(drop);
            }
            _ => {}
        }
    }
}

fn is_elsewhere(target: &str) -> bool {
    target.contains("://") || target.starts_with("mailto:")
}

fn split_anchor(target: &str) -> (&str, &str) {
    target.split_once('#').unwrap_or((target, ""))
}

/// Where a link of `page` leads, without `..`.
fn resolve(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    path
}

/// The anchors of a page's headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut in_block = false;
    for line in text.lines() {
        in_block ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !in_block) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let keep = |c: char| match c {
                ' ' => Some('-'),
                c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                _ => None,
            };
            anchors.insert(heading.chars().filter_map(keep).collect());
        }
    }
    anchors
}

/// Writes the pages in the form that mdBook wants: all below one folder. Links to files that are no pages become their text.
fn lay_out(root: &Path, out: &Path) -> Result<(), String> {
    let source = out.join("src");
    // What an earlier run left.
    let _ = std::fs::remove_dir_all(&source);
    let mut listed = summary(root)?;
    listed.push("docs/SUMMARY.md".into());
    let wrong = |e: std::io::Error| e.to_string();
    std::fs::create_dir_all(&source).map_err(wrong)?;
    std::fs::copy(root.join("docs/book.toml"), out.join("book.toml")).map_err(wrong)?;
    for page in &listed {
        let text = read(root, page)?;
        let depth = place(page).components().count() - 1;
        let mut written = String::with_capacity(text.len());
        let mut at = 0;
        for link in links(&text).filter(|link| !is_elsewhere(link.target)) {
            let (file, anchor) = split_anchor(link.target);
            let target = resolve(page, file);
            if file.is_empty() {
                continue;
            }
            written.push_str(&text[at..link.begin]);
            at = link.end;
            let is_picture = target.extension().is_some_and(|e| e == "webp" || e == "svg");
            if is_picture || listed.contains(&target) {
                let path = format!("{}{}", "../".repeat(depth), place(&target).display());
                let hash = if anchor.is_empty() { "" } else { "#" };
                written.push_str(&format!("[{}]({path}{hash}{anchor})", link.text));
            } else {
                written.push_str(link.text);
            }
            if is_picture {
                let to = source.join(place(&target));
                std::fs::create_dir_all(to.parent().unwrap_or(&source)).map_err(wrong)?;
                std::fs::copy(root.join(&target), to).map_err(wrong)?;
            }
        }
        written.push_str(&text[at..]);
        let to = source.join(place(page));
        std::fs::create_dir_all(to.parent().unwrap_or(&source)).map_err(wrong)?;
        std::fs::write(to, written).map_err(wrong)?;
    }
    Ok(())
}

/// A file's place in the book.
fn place(path: &Path) -> &Path {
    path.strip_prefix("docs").unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_outside_code() {
        let text = "See [a](b.md#c) and `[no](d.md)`.\n```\n[no](e.md)\n```\n[`x`](../f.md) [g](https://h/)\n";
        let found: Vec<_> = links(text).map(|link| (link.text, link.target)).collect();
        assert_eq!(found, [("a", "b.md#c"), ("`x`", "../f.md"), ("g", "https://h/")]);
        for link in links(text) {
            let whole = format!("[{}]({})", link.text, link.target);
            assert_eq!(text[link.begin..link.end], whole);
        }
    }

    #[test]
    fn targets_and_anchors_are_as_a_browser_takes_them() {
        assert_eq!(resolve(Path::new("docs/tour/a.md"), "../../b.md"), Path::new("b.md"));
        assert_eq!(resolve(Path::new("README.md"), "docs/a.md"), Path::new("docs/a.md"));
        let anchors = anchors("# What's `new`?\n```\n# no\n```\n## A-b c\n");
        assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["a-b-c", "whats-new"]);
    }
}
