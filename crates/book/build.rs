//! Makes the book of the pages that `docs/SUMMARY.md` lists, in its order: a table of their texts, and of the files that a browser reads.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a build program")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Alignment, CowStr, Event, Options, Parser, Tag, TagEnd, html};

/// A line of the table of contents.
struct Entry {
    title: String,
    /// The page, from the root of the repository on; a heading of a part has none.
    page: Option<PathBuf>,
}

/// What a page refers to that the book needs besides.
type Pictures = BTreeSet<PathBuf>;

fn main() {
    let here = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = here.join("../..").canonicalize().expect("the root of the repository");
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo sets it"));
    let contents = contents(&read(&root, Path::new("docs/SUMMARY.md")));
    let pages: BTreeSet<&Path> =
        contents.iter().filter_map(|entry| entry.page.as_deref()).collect();
    let (mut table, mut files, mut pictures) = (String::new(), BTreeMap::new(), Pictures::new());
    table.push_str("/// All pages, in the order of the contents.\npub const PAGES: &[Page] = &[\n");
    for entry in &contents {
        let Some(page) = &entry.page else { continue };
        let text = read(&root, page);
        let (name, title) = (place(page).with_extension("").display().to_string(), &entry.title);
        let path = root.join(page).display().to_string();
        let _ = writeln!(
            table,
            "    Page {{ name: {name:?}, title: {title:?}, text: include_str!({path:?}) }},"
        );
        let html = rendered(page, &text, title, &contents, &pages, &mut pictures);
        files.insert(in_book(page), keep(&out, &in_book(page), html.as_bytes()));
    }
    for picture in pictures {
        println!("cargo::rerun-if-changed={}", root.join(&picture).display());
        files.insert(place(&picture).display().to_string(), root.join(&picture));
    }
    files.insert("book.css".to_owned(), here.join("src/book.css"));
    println!("cargo::rerun-if-changed=src/book.css");
    table.push_str("];\n\n/// All files, by path.\npub const FILES: &[File] = &[\n");
    for (path, file) in files {
        let file = file.display().to_string();
        let _ = writeln!(table, "    File {{ path: {path:?}, bytes: include_bytes!({file:?}) }},");
    }
    table.push_str("];\n");
    std::fs::write(out.join("book.rs"), table).expect("a build folder that can be written");
}

fn read(root: &Path, page: &Path) -> String {
    let path = root.join(page);
    println!("cargo::rerun-if-changed={}", path.display());
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes a file of the book into the build's folder.
fn keep(out: &Path, path: &str, bytes: &[u8]) -> PathBuf {
    let file = out.join("pages").join(path);
    std::fs::create_dir_all(file.parent().expect("it has a folder")).expect("a folder");
    std::fs::write(&file, bytes).expect("a build folder that can be written");
    file
}

fn contents(summary: &str) -> Vec<Entry> {
    let mut entries = Vec::new();
    for line in summary.lines().skip(1) {
        if let Some(title) = line.strip_prefix("# ") {
            entries.push(Entry { title: title.to_owned(), page: None });
        } else if let Some((title, target)) = line.trim_start_matches("- ").split_once("](") {
            let title = title.trim_start_matches('[').to_owned();
            let page = resolve(Path::new("docs/SUMMARY.md"), target.trim_end_matches(')'));
            entries.push(Entry { title, page: Some(page) });
        }
    }
    entries
}

/// Where a link of `page` leads, from the root of the repository on.
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

/// A file's place in the book.
fn place(path: &Path) -> &Path {
    path.strip_prefix("docs").unwrap_or(path)
}

/// The file of a page in the book.
fn in_book(page: &Path) -> String {
    match page == Path::new("README.md") {
        true => "index.html".to_owned(),
        false => place(page).with_extension("html").display().to_string(),
    }
}

/// `../` as often as it takes to go from a page to the book's root.
fn up(page: &Path) -> String {
    "../".repeat(place(page).components().count() - 1)
}

/// A page with its frame.
fn rendered(
    page: &Path,
    text: &str,
    title: &str,
    contents: &[Entry],
    pages: &BTreeSet<&Path>,
    pictures: &mut Pictures,
) -> String {
    let up = up(page);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><link rel=\"stylesheet\" href=\"{up}book.css\"></head><body>\n\
         <details><summary>Contents</summary><nav>\n"
    );
    for entry in contents {
        let title = &entry.title;
        let _ = match &entry.page {
            None => writeln!(out, "<h2>{title}</h2>"),
            Some(other) if other == page => writeln!(out, "<b>{title}</b>"),
            Some(other) => writeln!(out, "<a href=\"{up}{}\">{title}</a>", in_book(other)),
        };
    }
    out.push_str("</nav></details>\n<main>\n");
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
    with_links(page, &mut events, pages, pictures);
    with_anchors(&mut events);
    html::push_html(&mut out, events.into_iter());
    let order: Vec<_> = contents.iter().filter(|entry| entry.page.is_some()).collect();
    if let Some(at) = order.iter().position(|entry| entry.page.as_deref() == Some(page))
        && let Some(next) = order.get(at + 1)
        && let Some(target) = &next.page
    {
        let _ =
            writeln!(out, "<p>Next: <a href=\"{up}{}\">{}</a></p>", in_book(target), next.title);
    }
    out.push_str("</main></body></html>\n");
    out
}

/// Links to pages become links of the book; a picture is noted; a link to another file of the repository becomes its text.
fn with_links(
    page: &Path,
    events: &mut Vec<Event<'_>>,
    pages: &BTreeSet<&Path>,
    pictures: &mut Pictures,
) {
    let (up, mut without) = (up(page), false);
    events.retain_mut(|event| match event {
        Event::Start(Tag::Link { dest_url, .. }) => {
            if dest_url.contains("://")
                || dest_url.starts_with("mailto:")
                || dest_url.starts_with('#')
            {
                return true;
            }
            let (file, anchor) = match dest_url.split_once('#') {
                Some((file, anchor)) => (file, format!("#{anchor}")),
                None => (&**dest_url, String::new()),
            };
            let target = resolve(page, file);
            without = !pages.contains(&*target);
            let path = format!("{up}{}{anchor}", in_book(&target));
            *dest_url = CowStr::from(path);
            !without
        }
        Event::End(TagEnd::Link) => !std::mem::take(&mut without),
        Event::Start(Tag::Image { dest_url, .. }) => {
            let target = resolve(page, dest_url);
            *dest_url = CowStr::from(format!("{up}{}", place(&target).display()));
            pictures.insert(target);
            true
        }
        // Alignment would be a style in the text, which the console's policy forbids.
        Event::Start(Tag::Table(columns)) => {
            columns.fill(Alignment::None);
            true
        }
        // A comment of the sources.
        Event::Html(text) | Event::InlineHtml(text) => !text.trim_start().starts_with("<!--"),
        _ => true,
    });
}

/// Headings get the anchors by which other pages name them.
fn with_anchors(events: &mut [Event<'_>]) {
    let mut begin = None;
    for at in 0..events.len() {
        match &events[at] {
            Event::Start(Tag::Heading { .. }) => begin = Some(at),
            Event::End(TagEnd::Heading(_)) => {
                let Some(begin) = begin.take() else { continue };
                let words: String = events[begin..at]
                    .iter()
                    .filter_map(|event| match event {
                        Event::Text(text) | Event::Code(text) => Some(&**text),
                        _ => None,
                    })
                    .collect();
                let keep = |c: char| match c {
                    ' ' => Some('-'),
                    c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
                    _ => None,
                };
                let anchor: String = words.trim().to_lowercase().chars().filter_map(keep).collect();
                if let Event::Start(Tag::Heading { id, .. }) = &mut events[begin] {
                    *id = Some(CowStr::from(anchor));
                }
            }
            _ => {}
        }
    }
}
