//! Atomic accesses with an ordering (`Acquire`, `Release`, `AcqRel`, `SeqCst`) without a comment that names their counterpart. The comment
//! says `pairs with`, on the line or on one of the three above it.

use std::collections::BTreeSet;

use syn::visit::{self, Visit};

use super::ratchet::{Better, Ratchet};
use super::source::Source;

const ORDERINGS: &[&str] = &["Acquire", "Release", "AcqRel", "SeqCst"];
/// Lines above the access in which the comment may be.
const LINES_ABOVE: usize = 3;

/// Lines that name an ordering. A line counts once.
#[derive(Default)]
struct Accesses(BTreeSet<usize>);

impl<'ast> Visit<'ast> for Accesses {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut segments = path.segments.iter().rev();
        if let Some(last) = segments.next()
            && ORDERINGS.iter().any(|ordering| last.ident == ordering)
            && segments.next().is_none_or(|segment| segment.ident == "Ordering")
        {
            self.0.insert(last.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }
}

/// Whether line number `line` (from 1) has its comment.
fn names_partner(lines: &[&str], line: usize) -> bool {
    let first = line.saturating_sub(LINES_ABOVE + 1);
    lines[first..line.min(lines.len())].iter().any(|line| {
        let comment = line.split_once("//").map(|(_, comment)| comment.to_lowercase());
        comment.is_some_and(|comment| comment.contains("pairs with"))
    })
}

/// How many lines lack it.
pub fn ratchet(sources: &[Source]) -> Ratchet {
    let mut places = Vec::new();
    for source in sources {
        let mut accesses = Accesses::default();
        source.items.iter().for_each(|item| accesses.visit_item(item));
        let lines: Vec<&str> = source.text.lines().collect();
        let bare = accesses.0.into_iter().filter(|line| !names_partner(&lines, *line));
        places.extend(bare.map(|line| format!("{}:{line}", source.name)));
    }
    Ratchet {
        name: "atomics_without_partner".into(),
        better: Better::Lower,
        value: places.len() as u64,
        target: 0,
        places,
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::sample;
    use super::*;

    #[test]
    fn an_ordering_without_its_partner_is_found() {
        let text = "fn a() {\n    a.load(Ordering::Acquire);\n    // Pairs with the load in `b`.\n    a.store(1, Ordering::Release);\n\
             \n\n\n    a.swap(1, AcqRel); a.swap(2, SeqCst);\n    a.load(Ordering::Relaxed);\n    Statement::Release;\n}\n";
        let found = ratchet(&[sample("b.rs", text)]);
        assert_eq!(found.places, ["crates/a/src/b.rs:2", "crates/a/src/b.rs:8"]);
    }
}
