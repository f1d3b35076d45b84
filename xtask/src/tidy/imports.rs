//! Which files of a crate import which: the names in a file's code, resolved to the file that defines them.
//!
//! A re-export (`pub use`) is followed to the definition and is not an import itself, so that a `mod.rs` that only declares and
//! re-exports imports nothing and defines nothing. Items reached through a value, such as methods, need no import and do not count.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use super::source::Source;

/// Imports of the files of one crate: from file to file (indices of its sources), with the names.
pub type Imports = BTreeMap<(usize, usize), BTreeSet<String>>;

/// A module and the meaning of its names.
struct Module {
    parent: Option<usize>,
    file: usize,
    names: HashMap<String, Vec<Meaning>>,
    globs: Vec<Vec<String>>,
}

/// The meaning of a name in a module. It can have two: a module and a function, for example.
#[derive(Clone)]
enum Meaning {
    /// An item that the module defines.
    Item,
    /// A child of the module.
    Module(usize),
    /// The item at the path, relative to the module.
    Import(Vec<String>),
}

/// The target of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item of the file.
    Item(usize),
}

/// The modules of a crate, one root for each of its programs and its library.
#[derive(Default)]
struct Tree {
    modules: Vec<Module>,
}

/// Paths longer than this chain of imports are abandoned: imports can be circular.
const IMPORTS_MAX: usize = 16;

impl Tree {
    fn add(&mut self, file: usize, parent: Option<usize>, items: &[Item]) -> usize {
        let id = self.modules.len();
        let module = Module { parent, file, names: HashMap::new(), globs: Vec::new() };
        self.modules.push(module);
        for item in items {
            let name = match item {
                Item::Const(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Fn(item) => &item.sig.ident,
                Item::Static(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Union(item) => &item.ident,
                Item::Macro(item) => match &item.ident {
                    Some(name) => name,
                    None => continue,
                },
                Item::Use(item) => {
                    self.add_use(id, &mut Vec::new(), &item.tree);
                    continue;
                }
                Item::Mod(module) => {
                    if let Some((_, items)) = &module.content {
                        let child = self.add(file, Some(id), items);
                        self.name(id, module.ident.to_string(), Meaning::Module(child));
                    }
                    continue;
                }
                _ => continue,
            };
            self.name(id, name.to_string(), Meaning::Item);
        }
        id
    }

    fn name(&mut self, module: usize, name: String, meaning: Meaning) {
        self.modules[module].names.entry(name).or_default().push(meaning);
    }

    fn add_use(&mut self, module: usize, prefix: &mut Vec<String>, tree: &UseTree) {
        for_each_use(prefix, tree, &mut |path, name| match name {
            Some(name) => self.name(module, name.to_owned(), Meaning::Import(path.to_vec())),
            None => self.modules[module].globs.push(path.to_vec()),
        });
    }

    /// The meaning of `path` in `module`.
    fn resolve(&self, module: usize, path: &[String], imports: usize) -> Vec<Target> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(self.root(module))],
            "self" => vec![Target::Module(module)],
            "super" => self.modules[module].parent.map(Target::Module).into_iter().collect(),
            name => self.lookup(module, name, imports),
        };
        while let Some((name, after)) = rest.split_first() {
            rest = after;
            let through = |target: Target| match target {
                // Variants and associated items are where their type is.
                Target::Item(_) => vec![target],
                Target::Module(module) if name == "super" => {
                    self.modules[module].parent.map(Target::Module).into_iter().collect()
                }
                Target::Module(module) if name == "self" => vec![Target::Module(module)],
                Target::Module(module) => self.lookup(module, name, imports),
            };
            targets = targets.into_iter().flat_map(through).collect();
        }
        targets
    }

    fn lookup(&self, module: usize, name: &str, imports: usize) -> Vec<Target> {
        let Some(imports) = imports.checked_sub(1) else { return Vec::new() };
        let here = &self.modules[module];
        let mut targets = Vec::new();
        for meaning in here.names.get(name).into_iter().flatten() {
            match meaning {
                Meaning::Item => targets.push(Target::Item(here.file)),
                Meaning::Module(child) => targets.push(Target::Module(*child)),
                // `use name::x` of a package of this name would lead back to itself.
                Meaning::Import(path) if path.len() == 1 && path[0] == name => {}
                Meaning::Import(path) => targets.extend(self.resolve(module, path, imports)),
            }
        }
        if targets.is_empty() {
            for glob in &here.globs {
                for target in self.resolve(module, glob, imports) {
                    if let Target::Module(other) = target
                        && other != module
                    {
                        targets.extend(self.lookup(other, name, imports));
                    }
                }
            }
        }
        targets
    }

    fn root(&self, mut module: usize) -> usize {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }
}

/// Calls `found` with each full path of `tree` and the name it gets, `None` for a glob.
fn for_each_use(
    prefix: &mut Vec<String>,
    tree: &UseTree,
    found: &mut dyn FnMut(&[String], Option<&str>),
) {
    let depth = prefix.len();
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            for_each_use(prefix, &path.tree, found);
        }
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| for_each_use(prefix, tree, found));
        }
        UseTree::Glob(_) => found(prefix, None),
        UseTree::Name(name) if name.ident == "self" => {
            let name = prefix.last().cloned().unwrap_or_default();
            found(prefix, Some(&name));
        }
        UseTree::Name(name) => {
            prefix.push(name.ident.to_string());
            found(prefix, Some(&name.ident.to_string()));
        }
        UseTree::Rename(rename) => {
            if rename.ident != "self" {
                prefix.push(rename.ident.to_string());
            }
            found(prefix, Some(&rename.rename.to_string()));
        }
    }
    prefix.truncate(depth);
}

/// The imports of a crate, whose files `sources` are, parents before children.
pub fn of_crate(sources: &[&Source]) -> Imports {
    let mut tree = Tree::default();
    let mut of_file = Vec::new();
    let mut root = 0;
    for (file, source) in sources.iter().enumerate() {
        let parent = source.module.split_last().map(|(name, path)| {
            // Parents come before their children, and the last root before them all.
            let found = (0..file).rev().find(|other| sources[*other].module == path);
            (name.clone(), found.map_or(root, |other| of_file[other]))
        });
        let id = tree.add(file, parent.as_ref().map(|(_, parent)| *parent), &source.items);
        of_file.push(id);
        match parent {
            Some((name, parent)) => tree.name(parent, name, Meaning::Module(id)),
            None => root = id,
        }
    }
    let mut imports = Imports::new();
    for (file, source) in sources.iter().enumerate() {
        let module = of_file[file];
        let seen = HashSet::new();
        let mut visitor = FindPaths { tree: &tree, module, file, seen, imports: &mut imports };
        source.items.iter().for_each(|item| visitor.visit_item(item));
    }
    imports
}

/// Finds the paths of a file's code.
struct FindPaths<'a> {
    tree: &'a Tree,
    module: usize,
    file: usize,
    /// Paths that are done, each with the module that names it.
    seen: HashSet<(usize, Vec<String>)>,
    imports: &'a mut Imports,
}

impl FindPaths<'_> {
    fn path(&mut self, path: &[String]) {
        if path.is_empty() || !self.seen.insert((self.module, path.to_vec())) {
            return;
        }
        for target in self.tree.resolve(self.module, path, IMPORTS_MAX) {
            // A module as such is only a name; the items named in it count.
            if let Target::Item(file) = target
                && file != self.file
            {
                let name = path.join("::");
                self.imports.entry((self.file, file)).or_default().insert(name);
            }
        }
    }

    /// The paths in the tokens of a macro call.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.path(&std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.path(&std::mem::take(&mut path));
                    self.tokens(group.stream());
                    colons = 0;
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    self.path(&std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        self.path(&path);
    }
}

impl<'ast> Visit<'ast> for FindPaths<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            for_each_use(&mut Vec::new(), &item.tree, &mut |path, _| self.path(path));
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_none() {
            return;
        }
        let name = module.ident.to_string();
        let meanings = self.tree.modules[self.module].names.get(&name);
        let child = meanings.into_iter().flatten().find_map(|meaning| match meaning {
            Meaning::Module(child) => Some(*child),
            Meaning::Item | Meaning::Import(_) => None,
        });
        let outer = self.module;
        self.module = child.unwrap_or(outer);
        visit::visit_item_mod(self, module);
        self.module = outer;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names: Vec<String> =
                path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.path(&names);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        visit::visit_macro(self, call);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

#[cfg(test)]
mod tests {
    use super::super::source::sample;
    use super::*;

    /// Imports between files, worded `a -> b`.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(name, text)| sample(name, text)).collect();
        let short = |file: usize| files[file].0.trim_end_matches(".rs");
        let found = of_crate(&sources.iter().collect::<Vec<_>>());
        found.keys().map(|(from, to)| format!("{} -> {}", short(*from), short(*to))).collect()
    }

    #[test]
    fn each_way_to_name_an_item_is_an_import() {
        for code in [
            "use crate::b::c::D;",
            "use super::b::c::{D, E};",
            "use crate::b; fn f() { b::c::d(); }",
            "fn f() -> crate::b::c::D { todo() }",
            "fn f(x: u8) { match x { super::b::c::D::X => {} } }",
            "fn f() { println!(\"{}\", crate::b::c::d(1)); }",
            "fn f() { use crate::b::c::D; }",
            "use crate::b::c::*; fn f(d: D) {}",
            "mod g { fn f() { super::super::b::c::d(); } }",
        ] {
            let files = [
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", code),
                ("b/mod.rs", "pub mod c;"),
                ("b/c.rs", "pub enum D { X } pub fn d() {} pub struct E;"),
            ];
            assert_eq!(imports(&files), ["a -> b/c"], "{code}");
        }
    }

    #[test]
    fn what_is_exported_again_is_where_it_is_defined() {
        let files = [
            ("lib.rs", "mod a; mod b; pub use b::D;"),
            ("a.rs", "use crate::D; use crate::b::E; pub struct A;"),
            ("b/mod.rs", "mod c; mod e; pub use c::{C as D}; pub use e::*; use crate::a::A;"),
            ("b/c.rs", "pub struct C;"),
            ("b/e.rs", "pub struct E;"),
        ];
        assert_eq!(imports(&files), ["a -> b/c", "a -> b/e", "b/mod -> a"]);
    }

    #[test]
    fn other_packages_and_methods_are_no_imports() {
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use b_package::D; use std::b; fn f(d: &D) { d.b(); b::c::d(); ::b::x(); }"),
            ("b.rs", "pub fn d() {} impl D { fn b(&self) {} }"),
        ];
        assert_eq!(imports(&files), Vec::<String>::new());
    }
}
