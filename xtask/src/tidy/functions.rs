//! Lengths of functions, from the line of `fn` to its closing brace.

use syn::visit::{self, Visit};
use syn::{Block, Signature};

use super::ratchet::{Better, Ratchet};
use super::source::Source;

/// Functions above this length are counted.
const LONG: u64 = 100;
/// No function may be longer than this.
const TOO_LONG: u64 = 120;
/// The limit that 99 of 100 functions should keep to.
const P99: u64 = 60;

struct Function {
    lines: u64,
    place: String,
}

struct Functions<'a> {
    file: &'a str,
    found: Vec<Function>,
}

impl Functions<'_> {
    fn add(&mut self, signature: &Signature, block: &Block) {
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        let lines = (last - first + 1) as u64;
        let place = format!("{}:{first} {} ({lines})", self.file, signature.ident);
        self.found.push(Function { lines, place });
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}

/// How many functions are long or too long, and the length that 99 of 100 keep to.
pub fn ratchets(sources: &[Source]) -> Vec<Ratchet> {
    let mut functions = Vec::new();
    for source in sources {
        let mut visitor = Functions { file: &source.name, found: Vec::new() };
        source.items.iter().for_each(|item| visitor.visit_item(item));
        functions.extend(visitor.found);
    }
    functions.sort_by_key(|function| std::cmp::Reverse(function.lines));
    let longer_than = |limit: u64| -> Vec<String> {
        let long = functions.iter().take_while(|function| function.lines > limit);
        long.map(|function| function.place.clone()).collect()
    };
    let count = |name: &str, limit: u64| {
        let places = longer_than(limit);
        let value = places.len() as u64;
        Ratchet { name: name.into(), better: Better::Lower, value, target: 0, places }
    };
    let p99 = functions.get(functions.len() / 100).map_or(0, |function| function.lines);
    vec![
        count("functions_over_100_lines", LONG),
        count("functions_over_120_lines", TOO_LONG),
        Ratchet {
            name: "function_lines_p99".into(),
            better: Better::Lower,
            value: p99,
            target: P99,
            places: longer_than(P99),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::super::source::sample;
    use super::*;

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "    a();\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_counted() {
        let text =
            function("a", 101) + &function("b", 100) + "impl A {" + &function("c", 121) + "}";
        let found = ratchets(&[sample("b.rs", &text)]);
        assert_eq!((found[0].value, found[1].value, found[2].value), (2, 1, 121));
        assert_eq!(found[0].places[0], "crates/a/src/b.rs:202 c (121)");
    }

    #[test]
    fn one_in_a_hundred_may_be_longer() {
        let short = function("a", 10).repeat(199);
        assert_eq!(ratchets(&[sample("b.rs", &(function("b", 90) + &short))])[2].value, 10);
        let two = function("b", 90).repeat(3);
        assert_eq!(ratchets(&[sample("b.rs", &(two + &short))])[2].value, 90);
    }

    #[test]
    fn braces_in_texts_and_comments_do_not_count() {
        let text = "fn a() {\n    let b = \"{\";\n    // {\n    let c = '{';\n    let d = r#\"{\"{\"#;\n}\n";
        let found = ratchets(&[sample("b.rs", text)]);
        assert_eq!(found[2].value, 6);
    }
}
