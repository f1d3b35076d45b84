//! The parsed Rust files of a crate, tests left out.
//!
//! Files are found by their `mod` declarations from the crate's roots on (`lib.rs`, `main.rs`, `bin/*.rs`), so that a module for
//! tests is left out whatever its file is called. Items for tests are removed from the trees.

use std::path::{Path, PathBuf};

use syn::{Attribute, ImplItem, Item};

use crate::lines::rust_files;

/// One Rust file of a crate.
pub struct Source {
    /// Folder of its crate, `crates/session`.
    pub krate: String,
    /// Path from the root of the checkout.
    pub name: String,
    /// Its module, from the crate's root on: `["print", "expr"]`. Empty for a root.
    pub module: Vec<String>,
    /// Text of the whole file.
    pub text: String,
    /// Its items, those for tests left out.
    pub items: Vec<Item>,
}

/// All files of the crate in `folder`, roots first.
///
/// # Errors
/// A file cannot be read or is not Rust.
pub fn of_crate(root: &Path, folder: &str) -> Result<Vec<Source>, String> {
    let source_folder = root.join(folder).join("src");
    let mut roots = vec![source_folder.join("lib.rs"), source_folder.join("main.rs")];
    roots.extend(rust_files(&source_folder.join("bin")));
    let mut sources = Vec::new();
    for path in roots.into_iter().filter(|path| path.exists()) {
        read(root, folder, &path, Vec::new(), &mut sources)?;
    }
    Ok(sources)
}

/// Reads the file at `path` and those of its modules into `sources`.
fn read(
    root: &Path,
    krate: &str,
    path: &Path,
    module: Vec<String>,
    sources: &mut Vec<Source>,
) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let name = path.strip_prefix(root).unwrap_or(path).display().to_string();
    let source = parse(krate, &name, module.clone(), text)?;
    let children = declared(&source.items, path, &module);
    sources.push(source);
    for (file, module) in children {
        read(root, krate, &file, module, sources)?;
    }
    Ok(())
}

/// A source from its text.
///
/// # Errors
/// The text is not Rust.
pub fn parse(krate: &str, name: &str, module: Vec<String>, text: String) -> Result<Source, String> {
    let file = syn::parse_file(&text).map_err(|error| format!("{name}: {error}"))?;
    let items = if for_tests(&file.attrs) { Vec::new() } else { without_tests(file.items) };
    Ok(Source { krate: krate.into(), name: name.into(), module, text, items })
}

/// Files of the modules that `items` of the file at `path` declares.
fn declared(items: &[Item], path: &Path, module: &[String]) -> Vec<(PathBuf, Vec<String>)> {
    let folder = path.parent().unwrap_or(path);
    let stem = path.file_stem().unwrap_or_default();
    let owns_folder = module.is_empty() || stem == "mod";
    let folder = if owns_folder { folder.to_owned() } else { folder.join(stem) };
    let mut files = Vec::new();
    for item in items {
        let Item::Mod(child) = item else { continue };
        if child.content.is_some() {
            continue;
        }
        let name = child.ident.to_string();
        let mut candidates =
            vec![folder.join(format!("{name}.rs")), folder.join(&name).join("mod.rs")];
        candidates.retain(|candidate| candidate.exists());
        let module = module.iter().cloned().chain([name]).collect();
        files.extend(candidates.pop().map(|file| (file, module)));
    }
    files
}

/// `items` but those that only tests are built with.
fn without_tests(items: Vec<Item>) -> Vec<Item> {
    let mut kept = Vec::new();
    for mut item in items {
        if for_tests(attributes(&item)) {
            continue;
        }
        if let Item::Mod(module) = &mut item
            && let Some((_, content)) = &mut module.content
        {
            *content = without_tests(std::mem::take(content));
        }
        if let Item::Impl(block) = &mut item {
            block.items.retain(|item| match item {
                ImplItem::Fn(function) => !for_tests(&function.attrs),
                _ => true,
            });
        }
        kept.push(item);
    }
    kept
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether the attributes leave the item to builds for tests: `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, ..))]`.
fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::Path(path) => path.is_ident("test"),
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string().replace(' ', "");
            let words: Vec<&str> = condition.split(['(', ')', ',']).collect();
            words.contains(&"test") && !condition.contains("not(test")
        }
        _ => false,
    })
}

/// A source for the tests of the rules: file `name` of crate `crates/a`.
#[cfg(test)]
pub fn sample(name: &str, text: &str) -> Source {
    let module = name.strip_suffix(".rs").unwrap_or(name);
    let module = module.strip_suffix("/mod").unwrap_or(module);
    let module = module.split('/').filter(|part| *part != "lib").map(str::to_owned).collect();
    parse("crates/a", &format!("crates/a/src/{name}"), module, text.into()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_left_out() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[cfg(all(test, not(loom)))]\nmod c;\n\
                    #[cfg(not(test))]\nfn d() {}\nimpl A { #[cfg(test)] fn e(&self) {} fn f(&self) {} }\n";
        let source = sample("lib.rs", text);
        assert_eq!(source.items.len(), 3);
        let Item::Impl(block) = &source.items[2] else { panic!("the impl block is third") };
        assert_eq!(block.items.len(), 1);
    }

    #[test]
    fn files_are_found_by_their_declarations() {
        let root = crate::run::root();
        let sources = of_crate(&root, "crates/syntax").unwrap();
        let has = |name: &str| sources.iter().any(|source| source.name.ends_with(name));
        assert!(has("crates/syntax/src/lib.rs") && has("crates/syntax/src/parser/mod.rs"));
        assert!(sources.iter().all(|source| !source.name.contains("tests")));
    }
}
