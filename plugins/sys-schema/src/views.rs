//! Reads the definitions of views. `-- view NAME` begins one, `-- views NAME` one with a twin `x$NAME`, which has plain numbers and whole texts where the
//! view itself has short ones: `TIME{picoseconds}`, `BYTES{count}`, `TEXT{statement}`, `PATH{file}`, and `EITHER{view|twin}` for other differences.

use std::sync::Arc;

use plugin_api::SystemView;

const SCHEMA: &str = "sys";

/// The definitions.
const SOURCES: [&str; 4] = [
    include_str!("activity.sql"),
    include_str!("schema.sql"),
    include_str!("server.sql"),
    include_str!("statements.sql"),
];

/// The function that shortens a marked expression.
const MARKS: [(&str, &str); 4] = [
    ("TIME", "format_pico_time"),
    ("BYTES", "format_bytes"),
    ("TEXT", "sys.format_statement"),
    ("PATH", "sys.format_path"),
];
const EITHER: &str = "EITHER";

/// Which of two twins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twin {
    Short,
    Plain,
}

/// All views.
pub(crate) fn all() -> Vec<SystemView> {
    let parts = SOURCES.iter().flat_map(|source| source.split("\n-- view").skip(1));
    parts.flat_map(views_of).collect()
}

/// The views of a definition: what follows `-- view`.
fn views_of(part: &str) -> Vec<SystemView> {
    let Some((head, query)) = part.split_once('\n') else { return Vec::new() };
    let (has_twin, name) = match head.strip_prefix("s ") {
        Some(name) => (true, name),
        None => (false, head.trim_start()),
    };
    let view = |name: String, twin| SystemView {
        schema: SCHEMA,
        name: Arc::from(name),
        query: Arc::from(expand(query.trim(), twin)),
    };
    let mut views = vec![view(name.to_owned(), Twin::Short)];
    if has_twin {
        views.push(view(format!("x${name}"), Twin::Plain));
    }
    views
}

/// The query of one of the twins.
///
/// # Panics
/// On an unknown mark or one that does not end: the text is part of the program, and the test below reads all of it.
fn expand(query: &str, twin: Twin) -> String {
    let mut out = String::with_capacity(query.len());
    let mut rest = query;
    while let Some((before, marked)) = rest.split_once('{') {
        let (inside, after) = split_at_end(marked);
        rest = after;
        if let Some(before) = before.strip_suffix(EITHER) {
            let (short, plain) = inside.split_once('|').unwrap_or((inside, inside));
            out.push_str(before);
            out.push_str(if twin == Twin::Short { short } else { plain });
            continue;
        }
        let mark = MARKS.iter().find(|(mark, _)| before.ends_with(mark));
        let Some((mark, function)) = mark else { panic!("an unknown mark in a view: {before}") };
        out.push_str(&before[..before.len() - mark.len()]);
        match twin {
            Twin::Short => out.push_str(&format!("{function}({inside})")),
            Twin::Plain => out.push_str(inside),
        }
    }
    out.push_str(rest);
    out
}

/// What a mark holds, and what follows it.
fn split_at_end(marked: &str) -> (&str, &str) {
    let Some(parts) = marked.split_once('}') else { panic!("a mark without an end: {marked}") };
    parts
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn all_views_are_there_once_and_without_marks() {
        let views = all();
        let names: HashSet<_> = views.iter().map(|view| view.name.clone()).collect();
        assert_eq!((names.len(), views.len()), (101, 101));
        assert!(views.iter().all(|view| !view.query.contains(['{', '}'])));
        assert!(views.iter().all(|view| view.query.starts_with("SELECT")));
    }

    #[test]
    fn twins_differ_in_the_marked_expressions() {
        let query = "SELECT TIME{a} AS a, EITHER{b|c} FROM t";
        assert_eq!(expand(query, Twin::Short), "SELECT format_pico_time(a) AS a, b FROM t");
        assert_eq!(expand(query, Twin::Plain), "SELECT a AS a, c FROM t");
    }
}
