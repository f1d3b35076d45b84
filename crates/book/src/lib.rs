//! The documentation as the programs contain it: `squall docs` prints it, the web console serves it. The build makes it of the pages that
//! `docs/SUMMARY.md` lists.
//!
//! Invariant: the book needs nothing from elsewhere. It has no scripts, and all that a page refers to inside the repository is one of
//! [`FILES`].

/// A page of the documentation as it was written.
#[derive(Debug)]
pub struct Page {
    /// Its place from the root of the repository or below `docs`, without `.md`.
    pub name: &'static str,
    /// What the table of contents calls it.
    pub title: &'static str,
    /// Its text, in Markdown.
    pub text: &'static str,
}

/// A file of the book as a browser reads it: a page, a picture, the style.
#[derive(Debug)]
pub struct File {
    /// Its place in the book, with `/` between folders and none at the begin.
    pub path: &'static str,
    /// What it holds.
    pub bytes: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/book.rs"));

/// The file of a book at a path; a path that ends with `/`, and the empty one, is its `index.html`.
pub fn file(path: &str) -> Option<&'static File> {
    let path = if path.is_empty() { "index.html" } else { path };
    FILES.iter().find(|file| file.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str) -> &'static str {
        file(path).and_then(|file| std::str::from_utf8(file.bytes).ok()).expect(path)
    }

    #[test]
    fn pages_are_html_with_their_contents() {
        let page = text("quick-start.html");
        assert!(page.contains("<h1 id=\"quick-start\">Quick start</h1>"), "{page}");
        assert!(page.contains("<a href=\"from-mysql.html\">From MySQL in an afternoon</a>"));
        assert!(text("").contains("<title>Squall</title>"));
        assert!(text("tour/01-foundations.html").contains("href=\"../book.css\""));
        assert!(file("no/such/page.html").is_none());
        assert!(PAGES.iter().any(|page| page.name == "quick-start" && page.title == "Quick start"));
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        for page in FILES.iter().filter(|file| file.path.ends_with(".html")) {
            let text = std::str::from_utf8(page.bytes).expect(page.path);
            assert!(!text.contains("<script") && !text.contains(" style="), "{}", page.path);
            let folder = page.path.rsplit_once('/').map_or("", |(folder, _)| folder);
            for (mark, is_source) in [("src=\"", true), ("href=\"", false)] {
                for target in text.split(mark).skip(1).filter_map(|rest| rest.split('"').next()) {
                    let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
                    assert!(!(is_elsewhere && is_source), "{}: {target}", page.path);
                    let target = target.split('#').next().unwrap_or_default();
                    if is_elsewhere || target.is_empty() {
                        continue;
                    }
                    let mut place: Vec<&str> =
                        folder.split('/').filter(|n| !n.is_empty()).collect();
                    for part in target.split('/') {
                        if part == ".." {
                            place.pop();
                        } else {
                            place.push(part);
                        }
                    }
                    assert!(file(&place.join("/")).is_some(), "{}: {target}", page.path);
                }
            }
        }
    }
}
