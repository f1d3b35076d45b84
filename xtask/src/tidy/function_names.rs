//! No kernel crate names a function of a plugin: the kernel uses only the properties that the plugin declares (`FunctionTraits`).
//!
//! The names are those of the plugins' tables, taken from their source; a string literal in the kernel that is one of them, in any case,
//! is a finding. Many names are also other words (types, units, statements, variables): `WORDS` lists where.

use std::collections::BTreeSet;

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::source::Source;
use crate::layers::Layers;

/// Names of types that are functions, too.
const TYPES: &[&str] = &[
    "CHAR",
    "DATE",
    "GEOMCOLLECTION",
    "GEOMETRYCOLLECTION",
    "LINESTRING",
    "MULTILINESTRING",
    "MULTIPOINT",
    "MULTIPOLYGON",
    "POINT",
    "POLYGON",
    "TIME",
    "TIMESTAMP",
    "UUID",
    "YEAR",
];
/// Units of intervals.
const UNITS: &[&str] =
    &["DAY", "HOUR", "MICROSECOND", "MINUTE", "MONTH", "QUARTER", "SECOND", "WEEK", "YEAR"];
/// Statements, as messages and EXPLAIN name them.
const STATEMENTS: &[&str] = &["INSERT", "REPLACE"];

/// Crates of statements about definitions, accounts, programs and settings: no plan or expression passes through them.
const STATEMENT_CRATES: &[&str] = &[
    "crates/accounts/",
    "crates/definitions/",
    "crates/describe/",
    "crates/programs/",
    "crates/session/",
    "crates/variables/",
];

/// Where a literal that looks like a function's name is a word of something else: starts of files' paths, the words, the reason.
const WORDS: &[(&[&str], &[&str], &str)] = &[
    (
        &["crates/types/"],
        TYPES,
        "names of types in warnings, kinds of geometries, types of JSON values",
    ),
    (&["crates/exec/", "crates/rows/"], TYPES, "names of types"),
    (STATEMENT_CRATES, TYPES, "names of types"),
    (
        STATEMENT_CRATES,
        UNITS,
        "units of events and of a password's age, units that functions get as a text",
    ),
    (STATEMENT_CRATES, &["CURRENT_TIMESTAMP"], "how the default of a column is shown"),
    (STATEMENT_CRATES, &["SYSTEM_USER"], "a privilege"),
    (STATEMENT_CRATES, &["SLEEP"], "the state of a connection that waits for a command"),
    (
        &["crates/observation/"],
        &["SLEEP", "REPLACE"],
        "the state of a connection that waits for a command; a word of statements",
    ),
    (STATEMENT_CRATES, &["USER"], "a column of an account table"),
    (
        STATEMENT_CRATES,
        &["TIMESTAMP", "LAST_INSERT_ID", "VERSION", "COLLATION", "CRC32"],
        "system variables, parts of their names, their values",
    ),
    (&["crates/binder/src/literal.rs"], TYPES, "names of types in messages about literals"),
    (
        &["crates/binder/src/call.rs"],
        TYPES,
        "GET_FORMAT and WEIGHT_STRING get the kind of their value as a text",
    ),
    (&["crates/binder/src/call.rs"], UNITS, "functions get the unit of an interval as a text"),
    (&["crates/binder/"], STATEMENTS, "statements in messages"),
    (
        &["crates/duality/"],
        &["INSERT", "JSON_OBJECT", "JSON_ARRAY", "ETAG"],
        "a statement and kinds of values in messages, a member of documents",
    ),
    (&["crates/plugin-api/src/secrets.rs"], STATEMENTS, "a clause of ALTER USER"),
    (
        &["crates/optimizer/src/explain/", "crates/plan/src/print.rs"],
        STATEMENTS,
        "statements in plans",
    ),
    (
        &["crates/catalog/", "crates/syntax/src/parser/program_scope.rs"],
        STATEMENTS,
        "events of triggers, privileges",
    ),
    (&["crates/plan/src/print.rs"], &["COUNT"], "a part of LIMIT"),
    (&["crates/catalog/src/model.rs"], &["COUNT"], "a column of a FULLTEXT index's table"),
    (&["crates/catalog/"], &["SYSTEM_USER"], "a privilege"),
    (&["crates/server/src/options.rs"], &["USER"], "an option of the command line"),
    (&["crates/charset/src/list.rs", "crates/syntax/src/parser/"], &["ASCII"], "a character set"),
    (&["crates/syntax/src/parser/"], &["COUNT"], "a word of SHOW and GET DIAGNOSTICS"),
];

/// Files that spell the grammar's own words, among them calls with special syntax; they give them no meaning.
const SPELLING: &[&str] = &["crates/unparse/src/", "crates/ast/src/", "crates/syntax/src/digest/"];

/// Functions in the kernel's code.
pub fn findings(layers: &Layers, sources: &[Source]) -> Vec<String> {
    let is_plugin = |source: &&Source| {
        source.krate.starts_with("plugins/functions-") || source.krate == "plugins/aggregates"
    };
    let mut names = BTreeSet::new();
    for source in sources.iter().filter(is_plugin) {
        if let Ok(tokens) = source.text.parse() {
            declared(tokens, &mut names);
        }
    }
    let is_kernel = |source: &&Source| {
        let name = source.krate.strip_prefix("crates/");
        name.is_some_and(|name| layers.kernel.iter().any(|kernel| kernel == name))
    };
    sources.iter().filter(is_kernel).flat_map(|source| in_file(source, &names)).collect()
}

/// The names that plugins declare: `scalar("NAME", ..)`, `.aliases(&["NAME"])`, `name: "NAME"`, and the capitals in a `functions!` or `unbuilt!`.
fn declared(tokens: TokenStream, names: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        let before = |back: usize| match at.checked_sub(back).map(|at| &tokens[at]) {
            Some(TokenTree::Ident(word)) => word.to_string(),
            Some(TokenTree::Punct(sign)) if sign.spacing() == Spacing::Alone => {
                sign.as_char().to_string()
            }
            _ => String::new(),
        };
        match token {
            TokenTree::Group(group) => {
                let literals = || group.stream().into_iter().filter_map(|token| text(&token));
                let is_table = before(1) == "!" && ["functions", "unbuilt"].contains(&&*before(2));
                match &*before(1) {
                    "scalar" => names.extend(literals().next()),
                    "aliases" => all(group.stream(), names),
                    _ if is_table => names.extend(literals().filter(|name| is_name(name))),
                    _ => {}
                }
                declared(group.stream(), names);
            }
            TokenTree::Literal(_) if before(1) == ":" && before(2) == "name" => {
                names.extend(text(token).filter(|name| is_name(name)));
            }
            TokenTree::Literal(_) | TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// All texts in `tokens`, those in brackets included.
fn all(tokens: TokenStream, names: &mut BTreeSet<String>) {
    for token in tokens {
        match &token {
            TokenTree::Group(group) => all(group.stream(), names),
            token => names.extend(text(token)),
        }
    }
}

/// Whether a text is written as names of functions are.
fn is_name(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// The text of a string literal, as it is written.
fn text(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    let written = literal.to_string();
    let inside = written.trim_start_matches('b').strip_prefix('"')?.strip_suffix('"')?;
    Some(inside.to_owned())
}

/// The texts of a file's code, with their lines.
#[derive(Default)]
struct Texts(Vec<(usize, String)>);

impl Texts {
    fn add(&mut self, tokens: TokenStream) {
        for token in tokens {
            match &token {
                TokenTree::Group(group) => self.add(group.stream()),
                token => {
                    let line = token.span().start().line;
                    self.0.extend(text(token).map(|text| (line, text.to_ascii_uppercase())));
                }
            }
        }
    }
}

impl<'ast> Visit<'ast> for Texts {
    // Documentation and conditions of the build.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_lit(&mut self, literal: &'ast syn::Lit) {
        let text = match literal {
            syn::Lit::Str(text) => text.value(),
            syn::Lit::ByteStr(text) => String::from_utf8_lossy(&text.value()).into_owned(),
            _ => return,
        };
        self.0.push((literal.span().start().line, text.to_ascii_uppercase()));
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.add(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}

fn in_file(source: &Source, names: &BTreeSet<String>) -> Vec<String> {
    if SPELLING.iter().any(|folder| source.name.starts_with(folder)) {
        return Vec::new();
    }
    let mut texts = Texts::default();
    source.items.iter().for_each(|item| texts.visit_item(item));
    let is_word = |text: &str| {
        WORDS.iter().any(|(paths, words, _)| {
            words.contains(&text) && paths.iter().any(|path| source.name.starts_with(path))
        })
    };
    let found = texts.0.into_iter().filter(|(_, text)| names.contains(text) && !is_word(text));
    found
        .map(|(line, text)| {
            format!(
                "{}:{line}: \"{text}\": the kernel names no function; its plugin declares its properties (types::function)",
                source.name
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::source::parse;
    use super::*;

    fn source(krate: &str, file: &str, text: &str) -> Source {
        parse(krate, &format!("{krate}/src/{file}"), Vec::new(), text.into()).unwrap()
    }

    fn plugin() -> Source {
        let text = "const FUNCTIONS: &[F] = &[scalar(\"RAND\", A, \"help\", bind).volatile(),\n\
                    scalar(\"YEAR\", A, \"help\", |_, _| other(\"text\")).aliases(&[\"YR\"])];\n\
                    const B: &[F] = unbuilt! { \"UPDATEXML\" \"st_x\" };\n\
                    const G: &[A] = &[Aggregate { name: \"SUM\", help: \"SUM(x)\" }];";
        source("plugins/functions-a", "lib.rs", text)
    }

    fn kernel() -> Layers {
        Layers::read("[layer.a]\n[kernel]\ncrates = [\"optimizer\", \"types\"]").unwrap()
    }

    #[test]
    fn names_come_from_the_tables_of_plugins() {
        let mut names = BTreeSet::new();
        declared(plugin().text.parse().unwrap(), &mut names);
        let expected = ["RAND", "YEAR", "YR", "UPDATEXML", "SUM"].map(str::to_owned);
        assert_eq!(names, BTreeSet::from(expected));
    }

    #[test]
    fn the_tables_of_the_plugins_are_read() {
        let root = crate::run::root();
        let mut names = BTreeSet::new();
        for family in ["misc", "numeric", "spatial", "crypto", "string"] {
            for source in source_files(&root, family) {
                declared(source.text.parse().unwrap(), &mut names);
            }
        }
        let known =
            ["NVL", "RAND", "ATAN2", "ST_CONTAINS", "ST_GEOMFROMWKB", "UUID_V4", "UPDATEXML"];
        for name in known {
            assert!(names.contains(name), "{name} is not among {} names", names.len());
        }
    }

    fn source_files(root: &std::path::Path, family: &str) -> Vec<Source> {
        super::super::source::of_crate(root, &format!("plugins/functions-{family}")).unwrap()
    }

    #[test]
    fn a_function_in_the_kernel_is_found() {
        let text = "fn a(n: &str) -> bool { n == \"rand\" || matches!(n, \"SUM\" | \"other\") }\n\
                    /// A comment on RAND: \"RAND\".\n\
                    fn b() { bail!(\"YR\"); }\n\
                    #[cfg(test)]\nmod tests { fn c() { call(\"RAND\"); } }";
        let found = findings(&kernel(), &[plugin(), source("crates/optimizer", "p.rs", text)]);
        let places: Vec<&str> =
            found.iter().filter_map(|line| line.split(": the").next()).collect();
        let file = "crates/optimizer/src/p.rs";
        let expected = ["1: \"RAND\"", "1: \"SUM\"", "3: \"YR\""];
        assert_eq!(places, expected.map(|place| format!("{file}:{place}")));
    }

    #[test]
    fn words_of_something_else_and_other_crates_are_left_alone() {
        let text = "fn a() { warn(\"YEAR\"); }";
        let sources = [
            plugin(),
            source("crates/types", "cast.rs", text),
            source("crates/engine", "lib.rs", "fn a() { b(\"RAND\"); }"),
        ];
        assert_eq!(findings(&kernel(), &sources), Vec::<String>::new());
    }
}
