//! The page of statements of `cargo xtask reference`: from the grammar's tree, the kinds of statements, and every place that refuses a
//! construct with error 1235.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Arm, Expr, ExprCall, Item, Lit, Pat};

use crate::lines::rust_files;

/// The grammar's tree: file, enum, and the heading under which its variants are listed.
const TREE: &[(&str, &str, &str)] = &[
    ("lib.rs", "Statement", ""),
    ("admin.rs", "ShowKind", "SHOW"),
    ("admin.rs", "Replication", "Replication"),
    ("admin.rs", "FlushItem", "FLUSH"),
    ("admin.rs", "AlterInstance", "ALTER INSTANCE"),
    ("program.rs", "Program", "In stored programs"),
];
/// Where a refusal is a plugin's or the engine's word to the server, and no statement's.
const INSIDE: &[&str] = &["engine", "engine-api", "plugin-api", "errors", "engine-skeleton"];

/// The page.
///
/// # Errors
/// A source file cannot be read or understood.
pub fn page(root: &Path) -> Result<String, String> {
    let kinds = kinds(&read(root, "crates/statements/src/statement_kind.rs")?)?;
    let mut page = String::from(
        "# Statements\n\n<!-- made by `cargo xtask reference` from the sources -->\n\nAll statements that the grammar knows (`crates/ast/src`), with optional parts in square brackets. The syntax is MySQL's: \
         what differs is in [Compatibility](../../COMPAT.md). *Implicit commit* says whether a statement ends the open transaction before it begins; *unless joined* ones do not with \
         `transactional_ddl` ([definitions](../definitions.md)). A statement that is not built is error 1235, which names it.\n",
    );
    for (file, name, heading) in TREE {
        let text = read(root, &format!("crates/ast/src/{file}"))?;
        if !heading.is_empty() {
            let _ = write!(page, "\n## {heading}\n\n");
        }
        let mut in_table = false;
        for line in variants(&text, name)? {
            match line {
                Line::Variant { name: variant, .. } if variant == "Empty" => {}
                Line::Group(group) => {
                    let _ = write!(page, "\n## {}\n\n", capital(&group));
                    in_table = false;
                }
                Line::Variant { name: variant, syntax } if *name == "Statement" => {
                    if !in_table {
                        page.push_str("| statement | implicit commit | |\n| --- | --- | --- |\n");
                        in_table = true;
                    }
                    let kind = kinds.get(&variant).ok_or(format!("no kind of {variant}"))?;
                    let _ =
                        writeln!(page, "| {} | {} | {} |", cell(&syntax), kind.commits, kind.note);
                }
                Line::Variant { syntax, .. } if syntax.starts_with('`') && *name == "ShowKind" => {
                    let _ = writeln!(
                        page,
                        "- {}",
                        syntax.replace("`SHOW ", "`").replacen('`', "`SHOW ", 1)
                    );
                }
                Line::Variant { syntax, .. } => {
                    let _ = writeln!(page, "- {syntax}");
                }
            }
        }
    }
    page.push_str(
        "\n## Parts that are refused\n\nError 1235 names these constructs of statements that are built otherwise:\n\n",
    );
    for refusal in refusals(root)? {
        let _ = writeln!(page, "- `{refusal}`");
    }
    Ok(page)
}

fn read(root: &Path, path: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[derive(Debug, PartialEq)]
enum Line {
    /// A comment `// --- group` between variants.
    Group(String),
    Variant {
        name: String,
        syntax: String,
    },
}

/// The variants of an enum with the first sentence of their comments, and the comments that divide them.
fn variants(text: &str, name: &str) -> Result<Vec<Line>, String> {
    let begin = text.find(&format!("pub enum {name} {{")).ok_or(format!("no enum {name}"))?;
    let body = text.get(begin..).unwrap_or_default();
    let body = body.get(..body.find("\n}").ok_or("an enum without an end")?).unwrap_or_default();
    let (mut lines, mut comment) = (Vec::new(), String::new());
    for line in body.lines().skip(1) {
        let Some(line) = line.strip_prefix("    ").filter(|line| !line.starts_with([' ', '}']))
        else {
            continue;
        };
        if let Some(group) = line.strip_prefix("// --- ") {
            lines.push(Line::Group(group.to_owned()));
        } else if let Some(words) = line.strip_prefix("/// ") {
            comment.push_str(if comment.is_empty() { "" } else { " " });
            comment.push_str(words);
        } else if line.starts_with(|c: char| c.is_ascii_uppercase()) {
            let name = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
            let syntax = match std::mem::take(&mut comment) {
                comment if comment.is_empty() => format!("`{}`", words_of(name)),
                comment => comment.trim_end_matches('.').to_owned(),
            };
            lines.push(Line::Variant { name: name.to_owned(), syntax });
        }
    }
    Ok(lines)
}

/// `BinaryLogs` as `BINARY LOGS`.
fn words_of(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        words.push_str(if c.is_ascii_uppercase() && !words.is_empty() { " " } else { "" });
        words.push(c.to_ascii_uppercase());
    }
    words
}

struct Kind {
    commits: &'static str,
    note: String,
}

/// What `kind_of` says of each variant.
fn kinds(text: &str) -> Result<BTreeMap<String, Kind>, String> {
    let file = syn::parse_file(text).map_err(|error| error.to_string())?;
    let function = file.items.iter().find_map(|item| match item {
        Item::Fn(function) if function.sig.ident == "kind_of" => Some(function),
        _ => None,
    });
    let mut arms = Arms::default();
    arms.visit_item_fn(function.ok_or("no fn kind_of")?);
    Ok(arms.kinds)
}

#[derive(Default)]
struct Arms {
    kinds: BTreeMap<String, Kind>,
}

impl Visit<'_> for Arms {
    fn visit_arm(&mut self, arm: &Arm) {
        let mut names = Vec::new();
        statement_names(&arm.pat, &mut names);
        if names.is_empty() {
            return;
        }
        let mut words = Words::default();
        words.visit_expr(&arm.body);
        let has = |word: &str| words.names.contains(word);
        let commits = if has("defines") || has("DEFINES") || has("commits") {
            "yes"
        } else if has("kind_of_maintenance") {
            "yes, but not CHECKSUM"
        } else if has("may_join") || has("MAY_JOIN") {
            "unless joined"
        } else {
            "no"
        };
        for name in names {
            let note = match (name.as_str(), has("unsupported")) {
                ("Replication", _) => {
                    "see below; by the plugin `replica`, without it error 1235".into()
                }
                ("Program", _) => "in stored programs only".into(),
                (_, true) => format!("**not built**: 1235 `{}`", words.texts.join(" ")),
                (_, false) => String::new(),
            };
            // A guard's arm comes first, the other one is the rule.
            self.kinds.insert(name, Kind { commits, note });
        }
    }
}

/// The variants of `Statement` that a pattern has.
fn statement_names(pattern: &Pat, names: &mut Vec<String>) {
    let path = match pattern {
        Pat::Or(or) => return or.cases.iter().for_each(|case| statement_names(case, names)),
        Pat::Path(path) => &path.path,
        Pat::TupleStruct(tuple) => &tuple.path,
        Pat::Struct(fields) => &fields.path,
        _ => return,
    };
    let mut parts = path.segments.iter().map(|segment| segment.ident.to_string());
    if parts.next().is_some_and(|first| first == "Statement") {
        names.extend(parts.next());
    }
}

/// Names and texts in an expression.
#[derive(Default)]
struct Words {
    names: BTreeSet<String>,
    texts: Vec<String>,
}

impl Visit<'_> for Words {
    fn visit_ident(&mut self, ident: &proc_macro2::Ident) {
        self.names.insert(ident.to_string());
    }

    fn visit_lit(&mut self, literal: &Lit) {
        if let Lit::Str(text) = literal {
            self.texts.push(text.value());
        }
    }
}

/// The constructs that the server's code refuses with error 1235.
fn refusals(root: &Path) -> Result<BTreeSet<String>, String> {
    let mut found = Refusals::default();
    for folder in ["crates", "plugins"] {
        for file in rust_files(&root.join(folder)) {
            let name = file.strip_prefix(root).unwrap_or(&file);
            let parts: Vec<_> = name.iter().map(|part| part.to_string_lossy()).collect();
            let is_inside = parts.get(1).is_some_and(|part| INSIDE.contains(&&**part));
            let is_test = parts
                .iter()
                .any(|part| part == "tests" || part == "tests.rs" || part == "examples");
            if is_inside || is_test {
                continue;
            }
            let text = std::fs::read_to_string(&file).map_err(|error| error.to_string())?;
            if text.contains("not_supported(") || text.contains("NotSupported(") {
                let parsed =
                    syn::parse_file(&text).map_err(|e| format!("{}: {e}", name.display()))?;
                found.visit_file(&parsed);
            }
        }
    }
    Ok(found.texts)
}

#[derive(Default)]
struct Refusals {
    texts: BTreeSet<String>,
}

impl Visit<'_> for Refusals {
    fn visit_expr_call(&mut self, call: &ExprCall) {
        let is_refusal = matches!(&*call.func, Expr::Path(path) if path.path.segments.last()
            .is_some_and(|last| last.ident == "not_supported" || last.ident == "NotSupported"));
        if is_refusal {
            let mut words = Words::default();
            call.args.iter().for_each(|argument| words.visit_expr(argument));
            // One with an argument is a template: its own name is no construct.
            let whole = words
                .texts
                .into_iter()
                .filter(|text| !text.contains('{') && text != "this statement");
            self.texts.extend(whole);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_item_mod(&mut self, module: &syn::ItemMod) {
        if module.ident != "tests" {
            visit::visit_item_mod(self, module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_and_its_kinds_are_read() {
        let tree = "pub enum S {\n    // --- data\n    /// `A`,\n    /// and more.\n    A(Box<u8>),\n    /// `B`.\n    B {\n        /// C.\n        c: u8,\n    },\n}\n";
        let lines = variants(tree, "S").unwrap();
        let variant =
            |name: &str, syntax: &str| Line::Variant { name: name.into(), syntax: syntax.into() };
        assert_eq!(
            lines,
            [Line::Group("data".into()), variant("A", "`A`, and more"), variant("B", "`B`")]
        );
        let code = "fn kind_of(s: S) -> K { match s { Statement::A(_) | Statement::C { .. } => may_join(X), Statement::B => unsupported(\"B\") } }";
        let kinds = kinds(code).unwrap();
        assert_eq!(
            (kinds["A"].commits, kinds["C"].commits, kinds["B"].commits),
            ("unless joined", "unless joined", "no")
        );
        assert!(kinds["B"].note.contains("1235 `B`"));
    }
}
