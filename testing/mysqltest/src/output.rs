//! How results are printed, and what is replaced in them.

use regex::{Captures, Regex, RegexBuilder};

use crate::connections::{Data, SqlError};

/// The layout of result sets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// A line of captions, then a line a row, with tabs.
    Horizontal,
    /// A line a cell.
    Vertical,
}

/// What is done to the next statement's output.
#[derive(Default)]
pub struct Changes {
    /// Columns from 1 with the text for all their cells.
    pub columns: Vec<(usize, String)>,
    /// Texts and their replacements.
    pub texts: Vec<(String, String)>,
    /// Patterns and their replacements, where `\1` is a group.
    pub patterns: Vec<(Regex, String)>,
    /// Rows in the order of their text.
    pub sorted: bool,
    /// All of it in lower case.
    pub lowercase: bool,
}

/// Reads `number text number text`.
///
/// # Errors
/// The list is not pairs.
pub fn columns(arguments: &str) -> Result<Vec<(usize, String)>, String> {
    let pairs = pairs(arguments)?.into_iter();
    let number = |(column, text): (String, String)| Some((column.parse().ok()?, text));
    let all: Option<Vec<_>> = pairs.map(number).collect();
    all.ok_or_else(|| format!("{arguments}: column numbers were expected"))
}

/// Reads `from to from to`, each perhaps in quotes.
///
/// # Errors
/// A word is alone, or a quote has no end.
pub fn pairs(arguments: &str) -> Result<Vec<(String, String)>, String> {
    let mut words = Vec::new();
    let mut rest = arguments.trim();
    while !rest.is_empty() {
        let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let (word, after) = match quote {
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            Some(quote) => rest[1..]
                .split_once(quote)
                .ok_or_else(|| format!("{arguments}: a quote without an end"))?,
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    if words.len() % 2 == 1 {
        return Err(format!("{arguments}: pairs were expected"));
    }
    Ok(words.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// Reads `/pattern/replacement/flags` as often as it comes.
///
/// # Errors
/// A part is missing, or a pattern is wrong.
pub fn patterns(arguments: &str) -> Result<Vec<(Regex, String)>, String> {
    let mut found = Vec::new();
    let mut rest = arguments.trim();
    while let Some(mark) = rest.chars().next() {
        let incomplete = || format!("{arguments}: /pattern/replacement/ was expected");
        let (pattern, after) = until(&rest[mark.len_utf8()..], mark).ok_or_else(incomplete)?;
        let (replacement, after) = until(after, mark).ok_or_else(incomplete)?;
        let flags = after.len() - after.trim_start_matches(['i', 'g']).len();
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(after[..flags].contains('i'))
            .build()
            .map_err(|error| error.to_string())?;
        found.push((regex, replacement));
        rest = after[flags..].trim_start();
    }
    Ok(found)
}

/// The text before `mark`, which a backslash may hide, and the text after it.
fn until(text: &str, mark: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut escaped = false;
    for (offset, c) in text.char_indices() {
        match c {
            c if escaped => {
                if c != mark {
                    out.push('\\');
                }
                out.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            c if c == mark => return Some((out, &text[offset + mark.len_utf8()..])),
            c => out.push(c),
        }
    }
    None
}

impl Changes {
    /// The text of a result set.
    pub fn result(&self, data: &Data, layout: Layout) -> String {
        let cell = |(place, cell): (usize, &Option<String>)| {
            let replaced = self.columns.iter().find(|(column, _)| *column == place + 1);
            match replaced {
                Some((_, text)) => text.clone(),
                None => cell.clone().unwrap_or_else(|| "NULL".into()),
            }
        };
        let rows = data.rows.iter().map(|row| row.iter().enumerate().map(cell).collect::<Vec<_>>());
        let mut text = String::new();
        let mut lines: Vec<String> = match layout {
            Layout::Horizontal => {
                text = data.names.join("\t") + "\n";
                rows.map(|row| row.join("\t") + "\n").collect()
            }
            Layout::Vertical => rows
                .map(|row| {
                    let pairs = data.names.iter().zip(row);
                    pairs.map(|(name, cell)| format!("{name}\t{cell}\n")).collect()
                })
                .collect(),
        };
        if self.sorted {
            lines.sort();
        }
        lines.iter().for_each(|line| text.push_str(line));
        self.replaced(text)
    }

    /// The text of an error that was expected.
    pub fn error(&self, error: &SqlError) -> String {
        self.replaced(format!("ERROR {}: {}\n", error.sqlstate, error.message))
    }

    /// Text in which texts and patterns are replaced.
    pub fn replaced(&self, mut text: String) -> String {
        for (from, to) in &self.texts {
            text = text.replace(from, to);
        }
        for (pattern, to) in &self.patterns {
            let replace = |found: &Captures<'_>| with_groups(to, found);
            text = pattern.replace_all(&text, replace).into_owned();
        }
        if self.lowercase { text.to_lowercase() } else { text }
    }
}

/// `\1` is the first group.
fn with_groups(replacement: &str, found: &Captures<'_>) -> String {
    let mut out = String::new();
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek().and_then(|digit| digit.to_digit(10)).filter(|_| c == '\\') {
            Some(group) => {
                chars.next();
                out.push_str(found.get(group as usize).map_or("", |group| group.as_str()));
            }
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Data {
        let row = |a: &str, b: Option<&str>| vec![Some(a.to_owned()), b.map(str::to_owned)];
        Data {
            names: vec!["a".into(), "b".into()],
            rows: vec![row("2", None), row("1", Some("x"))],
            ..Data::default()
        }
    }

    #[test]
    fn results_have_two_layouts() {
        let plain = Changes::default();
        assert_eq!(plain.result(&data(), Layout::Horizontal), "a\tb\n2\tNULL\n1\tx\n");
        assert_eq!(plain.result(&data(), Layout::Vertical), "a\t2\nb\tNULL\na\t1\nb\tx\n");
    }

    #[test]
    fn columns_texts_and_patterns_are_replaced() {
        let mut changes =
            Changes { columns: columns("2 #").unwrap(), sorted: true, ..Changes::default() };
        assert_eq!(changes.result(&data(), Layout::Horizontal), "a\tb\n1\t#\n2\t#\n");
        changes.columns.clear();
        changes.texts = pairs("'x' \"y z\"").unwrap();
        changes.patterns = patterns(r"/(N)ULL/<\1>/ /B/c/i").unwrap();
        assert_eq!(changes.result(&data(), Layout::Horizontal), "a\tc\n1\ty z\n2\t<N>\n");
        assert!(pairs("a").is_err() && patterns("/a").is_err() && columns("x y").is_err());
    }
}
