//! How many assertions there are, in tenths for a thousand lines: in all crates, and in those that store rows.

use syn::visit::{self, Visit};

use super::ratchet::{Better, Ratchet};
use super::source::Source;
use crate::lines::code_lines;

const MACROS: &[&str] =
    &["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];

const STORAGE: &[&str] = &[
    "crates/page",
    "crates/wal",
    "crates/bufpool",
    "crates/btree",
    "crates/locks",
    "crates/txn",
    "crates/engine",
];

#[derive(Default)]
struct Assertions(u64);

impl<'ast> Visit<'ast> for Assertions {
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|segment| segment.ident.to_string());
        let name = name.unwrap_or_default();
        self.0 += u64::from(MACROS.contains(&name.as_str()));
        // Code that models leave out is code like any other.
        if name == "unmodelled"
            && let Ok(statements) = call.parse_body_with(syn::Block::parse_within)
        {
            statements.iter().for_each(|statement| self.visit_stmt(statement));
        }
        visit::visit_macro(self, call);
    }
}

/// The two figures.
pub fn ratchets(sources: &[Source]) -> Vec<Ratchet> {
    let storage = sources.iter().filter(|source| STORAGE.contains(&source.krate.as_str()));
    vec![
        density("assertions_per_10k_lines", sources.iter()),
        density("assertions_per_10k_lines_of_storage", storage),
    ]
}

fn density<'a>(name: &str, sources: impl Iterator<Item = &'a Source>) -> Ratchet {
    let (mut assertions, mut lines, mut places) = (0, 0, Vec::new());
    for source in sources {
        let mut found = Assertions::default();
        source.items.iter().for_each(|item| found.visit_item(item));
        assertions += found.0;
        lines += code_lines(&source.text);
        if found.0 > 0 {
            places.push(format!("{} {}", source.name, found.0));
        }
    }
    let value = (assertions * 10_000).checked_div(lines).unwrap_or(0);
    let target = u64::MAX;
    Ratchet { name: name.into(), better: Better::Higher, value, target, places }
}

#[cfg(test)]
mod tests {
    use super::super::source::sample;
    use super::*;

    #[test]
    fn assertions_are_counted_where_tests_are_not() {
        let text = "fn a() {\n    assert!(a);\n    sys::unmodelled! { debug_assert_eq!(a, b); }\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn a() { assert!(a); }\n}\n";
        let found = ratchets(&[sample("b.rs", text)]);
        // Two in four lines; the crate stores nothing.
        assert_eq!((found[0].value, found[1].value), (5_000, 0));
    }
}
