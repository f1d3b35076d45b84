//! Arms `_ =>` of a match over an enum of ours. A new variant runs into them unseen; STYLE.md asks for exhaustive matches.
//!
//! A match is over an enum of ours when the pattern of another arm names a variant of one, at whatever depth. Variants are known by
//! their names alone: the rule needs no types.

use std::collections::{HashMap, HashSet};

use syn::visit::{self, Visit};
use syn::{Pat, UseTree};

use super::ratchet::{Better, Ratchet};
use super::source::Source;

/// Enums by name, with their variants.
type Enums = HashMap<String, HashSet<String>>;

#[derive(Default)]
struct FindEnums(Enums);

impl<'ast> Visit<'ast> for FindEnums {
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        let variants = self.0.entry(item.ident.to_string()).or_default();
        variants.extend(item.variants.iter().map(|variant| variant.ident.to_string()));
    }
}

/// A file's names for enums and variants.
#[derive(Default)]
struct Names {
    /// Imported enums under another name, with their original name.
    aliases: HashMap<String, String>,
    /// Variants without their enum.
    variants: HashSet<String>,
}

struct FindNames<'a> {
    enums: &'a Enums,
    names: Names,
}

impl FindNames<'_> {
    fn add(&mut self, parent: &str, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => self.add(&path.ident.to_string(), &path.tree),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(parent, tree)),
            UseTree::Rename(rename) => {
                let (own, here) = (rename.ident.to_string(), rename.rename.to_string());
                if self.enums.contains_key(&own) {
                    self.names.aliases.insert(here, own);
                } else if self.enums.get(parent).is_some_and(|variants| variants.contains(&own)) {
                    self.names.variants.insert(here);
                }
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                if self.enums.get(parent).is_some_and(|variants| variants.contains(&name)) {
                    self.names.variants.insert(name);
                }
            }
            UseTree::Glob(_) => {
                let variants = self.enums.get(parent);
                self.names.variants.extend(variants.into_iter().flatten().cloned());
            }
        }
    }
}

impl<'ast> Visit<'ast> for FindNames<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add("", &item.tree);
    }
}

struct FindWildcards<'a> {
    file: &'a str,
    enums: &'a Enums,
    all_variants: &'a HashSet<&'a str>,
    names: Names,
    places: Vec<String>,
}

/// Whether a pattern names a variant of ours.
struct NamesVariant<'a, 'b> {
    rule: &'a FindWildcards<'b>,
    found: bool,
}

impl<'ast> Visit<'ast> for NamesVariant<'_, '_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
        let variant = names.next().unwrap_or_default();
        self.found |= match names.next() {
            None => self.rule.names.variants.contains(&variant),
            Some(own) if own == "Self" => self.rule.all_variants.contains(variant.as_str()),
            Some(name) => {
                let own = self.rule.names.aliases.get(&name).unwrap_or(&name);
                self.rule.enums.get(own).is_some_and(|variants| variants.contains(&variant))
            }
        };
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.found |= self.rule.names.variants.contains(&pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }

    // Names in a guard are not patterns.
    fn visit_expr(&mut self, _: &'ast syn::Expr) {}
}

impl<'ast> Visit<'ast> for FindWildcards<'_> {
    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        let wildcard = expression.arms.iter().find_map(|arm| match &arm.pat {
            Pat::Wild(wild) => Some(wild.underscore_token.span.start().line),
            _ => None,
        });
        if let Some(line) = wildcard {
            let mut names = NamesVariant { rule: self, found: false };
            expression.arms.iter().for_each(|arm| names.visit_pat(&arm.pat));
            if names.found {
                self.places.push(format!("{}:{line}", self.file));
            }
        }
        visit::visit_expr_match(self, expression);
    }
}

/// How many such arms there are.
pub fn ratchet(sources: &[Source]) -> Ratchet {
    let mut enums = FindEnums::default();
    for source in sources {
        source.items.iter().for_each(|item| enums.visit_item(item));
    }
    let enums = enums.0;
    let all_variants: HashSet<&str> = enums.values().flatten().map(String::as_str).collect();
    let mut places = Vec::new();
    for source in sources {
        let mut names = FindNames { enums: &enums, names: Names::default() };
        source.items.iter().for_each(|item| names.visit_item(item));
        let mut rule = FindWildcards {
            file: &source.name,
            enums: &enums,
            all_variants: &all_variants,
            names: names.names,
            places: Vec::new(),
        };
        source.items.iter().for_each(|item| rule.visit_item(item));
        places.append(&mut rule.places);
    }
    Ratchet {
        name: "wildcard_arms_over_own_enums".into(),
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
    fn wildcards_over_our_enums_are_found() {
        let text = "enum A { B, C(u8) }\n\
             fn a(a: A) { match a { A::B => {}\n _ => {} } }\n\
             fn b(a: Option<A>) { match a { Some(A::C(1)) => {}\n _ => {} } }\n\
             fn c(a: u8, b: A) { match a { 1 => match b { A::B => {}\n _ => {} },\n _ => {} } }\n\
             impl A { fn d(&self) { match self { Self::B => {}\n _ => {} } } }\n\
             mod e { use super::A as D; use super::A::*; fn f(a: D) { match a { D::B => {}\n _ => {} }\n match a { C(_) => {}\n _ => {} } } }\n";
        let found = ratchet(&[sample("b.rs", text)]);
        let lines: Vec<&str> =
            found.places.iter().filter_map(|place| place.split(':').nth(1)).collect();
        assert_eq!(lines, ["3", "5", "7", "10", "12", "14"]);
    }

    #[test]
    fn other_wildcards_are_not() {
        let text = "enum A { B, C }\n\
             fn a(a: u8) { match a { 1 => {} _ => {} } }\n\
             fn b(a: Option<u8>) { match a { Some(1) => {} _ => {} } }\n\
             fn c(a: u8, b: A) { match a { 1 if b == A::B => {} _ => {} } }\n\
             fn d(a: A) { match a { A::B => {} _ if e() => {} A::C => {} } }\n";
        assert_eq!(ratchet(&[sample("b.rs", text)]).places, Vec::<String>::new());
    }
}
