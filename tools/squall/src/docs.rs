//! `squall docs`: the documentation, from the program itself.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use book::{FILES, PAGES};
use clap::Parser;
use clap::error::ErrorKind;

/// Programs that show an address in a browser, in the order in which they are tried.
const BROWSERS: &[&str] = &["xdg-open", "open"];
/// Most lines that a search prints.
const FOUND_MAX: usize = 200;

/// Prints the documentation of this version
#[derive(Debug, Parser)]
#[command(name = "squall docs")]
struct Arguments {
    /// The page, by its name or a part of it; a list of all pages unless given
    page: Option<String>,
    /// Lines of all pages that have this text, in upper or lower case
    #[arg(short, long, conflicts_with = "page")]
    search: Option<String>,
    /// Writes the book for a browser into this folder, and prints its address
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["page", "search"])]
    html: Option<PathBuf>,
    /// Opens the book in a browser; its files go to the folder of --html, else to the user's cache
    #[arg(long, conflicts_with_all = ["page", "search"])]
    open: bool,
}

/// Runs the command line after `squall docs`.
///
/// # Errors
/// The command line is wrong, or there is no such page.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let parsed = Arguments::try_parse_from(["squall docs".to_owned()].into_iter().chain(arguments));
    let arguments = match parsed {
        Ok(arguments) => arguments,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(error.to_string()),
        Err(error) => return Err(error.render().ansi().to_string()),
    };
    if arguments.open || arguments.html.is_some() {
        let folder = arguments.html.map_or_else(cache, Ok)?;
        let address = written(&folder)?;
        let shown = arguments.open && BROWSERS.iter().any(|browser| shows(browser, &address));
        let hint = if arguments.open && !shown {
            "no browser could be started: open it yourself\n"
        } else {
            ""
        };
        return Ok(format!("{address}\n{hint}"));
    }
    match (arguments.page, arguments.search) {
        (Some(name), _) => page(&name).map(str::to_owned),
        (None, Some(words)) => found(&words),
        (None, None) => Ok(list()),
    }
}

fn list() -> String {
    let mut text = String::from(
        "squall docs --open shows the book in a browser, squall docs PAGE prints one of these:\n\n",
    );
    for page in PAGES {
        let _ = writeln!(text, "  {:<32} {}", page.name, page.title);
    }
    text
}

/// Where the book of this version goes unless a folder is named.
fn cache() -> Result<PathBuf, String> {
    let of =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache")));
    let cache = cache.ok_or("neither HOME nor XDG_CACHE_HOME is set: name a folder with --html")?;
    Ok(cache.join("squall").join(concat!("book-", env!("CARGO_PKG_VERSION"))))
}

/// Writes all files of the book below `folder`; the address of its first page.
fn written(folder: &Path) -> Result<String, String> {
    let wrong = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    for file in FILES {
        let path = folder.join(file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(|error| wrong(parent, error))?;
        }
        std::fs::write(&path, file.bytes).map_err(|error| wrong(&path, error))?;
    }
    let folder = folder.canonicalize().map_err(|error| wrong(folder, error))?;
    Ok(format!("file://{}", address(&folder.join("index.html").to_string_lossy())))
}

/// A path as a part of an address.
fn address(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                text.push(char::from(byte));
            }
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

fn shows(browser: &str, address: &str) -> bool {
    let quiet =
        |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet(Command::new(browser).arg(address)).is_ok_and(|status| status.success())
}

/// The page of this name, else the only one whose name or title has it.
fn page(wanted: &str) -> Result<&'static str, String> {
    let wanted = wanted.trim_end_matches(".md").to_lowercase();
    let exact = PAGES.iter().find(|page| page.name.to_lowercase() == wanted);
    let has = |text: &str| text.to_lowercase().contains(&wanted);
    let near: Vec<_> = PAGES.iter().filter(|page| has(page.name) || has(page.title)).collect();
    match (exact, near.as_slice()) {
        (Some(page), _) => Ok(page.text),
        (None, [page]) => Ok(page.text),
        (None, []) => Err(format!("no page {wanted}; `squall docs` lists them")),
        (None, several) => {
            let names: Vec<_> = several.iter().map(|page| page.name).collect();
            Err(format!("several pages: {}", names.join(", ")))
        }
    }
}

fn found(words: &str) -> Result<String, String> {
    let words = words.to_lowercase();
    let mut text = String::new();
    let lines = PAGES.iter().flat_map(|page| page.text.lines().map(|line| (page.name, line)));
    for (name, line) in
        lines.filter(|(_, line)| line.to_lowercase().contains(&words)).take(FOUND_MAX)
    {
        let _ = writeln!(text, "{name}: {line}");
    }
    if text.is_empty() { Err(format!("no page has {words}")) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_name_part_and_word() {
        assert!(page("from-mysql").is_ok_and(|text| text.contains("squall import")));
        assert!(page("reference/variables.md").is_ok_and(|text| text.contains("max_connections")));
        assert!(page("quick").is_ok_and(|text| text.starts_with("# Quick start")));
        assert!(page("tour").is_err_and(|text| text.contains("tour/01")));
        assert!(page("no such page").is_err());
        assert!(found("LOCK INSTANCE FOR BACKUP").is_ok_and(|text| text.contains("from-mysql: ")));
        assert!(found("\u{1}").is_err());
        assert!(list().lines().count() > 40);
    }

    #[test]
    fn the_book_is_written_for_a_browser() {
        let folder = std::env::temp_dir().join(format!("the book {}", std::process::id()));
        let html = format!("--html={}", folder.display());
        let address = run([html].into_iter()).unwrap();
        assert!(address.starts_with("file:///") && address.contains("the%20book"), "{address}");
        let page = std::fs::read_to_string(folder.join("tour/01-foundations.html")).unwrap();
        assert!(page.contains("<h1 id=\"foundations\">"), "{page}");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(run(["--html=/dev/null/book".to_owned()].into_iter()).is_err());
    }
}
