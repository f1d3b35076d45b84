//! What JSON Schema refers to: other parts of the same schema, and regular expressions.

use std::collections::HashMap;

use errors::{Error, ErrorCode, Result};
use types::json::{JsonRef, JsonType};

/// Parts of a schema within each other, and references one after the other.
const DEPTH_MAX: usize = 200;
/// Backtracking steps of one match.
const BACKTRACK_LIMIT: usize = 1_000_000;

/// The text of a reference, if a part is one.
pub(crate) fn reference<'a>(part: JsonRef<'a>) -> Option<&'a [u8]> {
    if part.kind() != JsonType::Object {
        return None;
    }
    part.get(b"$ref").filter(|text| text.kind() == JsonType::String)?.as_bytes()
}

/// The part that a reference (`#/definitions/a`) names, with its location.
pub(crate) fn resolve<'a>(root: JsonRef<'a>, reference: &[u8]) -> Option<(JsonRef<'a>, String)> {
    let mut part = root;
    let mut location = "#".to_owned();
    let pointer = percent_decoded(reference.strip_prefix(b"#")?);
    if pointer.is_empty() {
        return Some((part, location));
    }
    for token in pointer.strip_prefix(b"/")?.split(|byte| *byte == b'/') {
        let token = token_of(token);
        part = if part.kind() == JsonType::Array {
            part.at(std::str::from_utf8(&token).ok()?.parse().ok()?)?
        } else {
            part.get(&token)?
        };
        location.push('/');
        location.push_str(&String::from_utf8_lossy(&token));
    }
    Some((part, location))
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                decoded.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

/// A member's name in a pointer: `~1` is a slash, `~0` a tilde.
fn token_of(text: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(text);
    text.replace("~1", "/").replace("~0", "~").into_bytes()
}

/// The regular expressions of a schema; `None` for one that is none, which everything matches.
#[derive(Default)]
pub(crate) struct Patterns(HashMap<Vec<u8>, Option<fancy_regex::Regex>>);

impl Patterns {
    /// Whether a text has the pattern.
    ///
    /// # Errors
    /// 3699 when the search takes too long.
    pub(crate) fn matches(&self, pattern: &[u8], text: &[u8]) -> Result<bool> {
        let Some(Some(regex)) = self.0.get(pattern) else { return Ok(true) };
        let found = regex.is_match(&bytes_as_chars(text));
        found.map_err(|_| Error::with(ErrorCode::REGEXP_TIME_OUT, &[]))
    }

    /// Whether it is a regular expression.
    pub(crate) fn knows(&self, pattern: &[u8]) -> bool {
        matches!(self.0.get(pattern), Some(Some(_)))
    }

    fn add(&mut self, pattern: &[u8]) {
        if !self.0.contains_key(pattern) {
            let built = translate(&bytes_as_chars(pattern)).and_then(|pattern| {
                let mut builder = fancy_regex::RegexBuilder::new(&pattern);
                builder.backtrack_limit(BACKTRACK_LIMIT).build().ok()
            });
            self.0.insert(pattern.to_vec(), built);
        }
    }
}

/// Each byte as the character of its number: the reference's expressions match bytes.
fn bytes_as_chars(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// An expression in JavaScript's syntax in that of the library; `None` for groups that JavaScript's first edition does not know.
fn translate(pattern: &str) -> Option<String> {
    let mut out = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let escaped = chars.next()?;
                match (escaped, in_class) {
                    ('w', false) => out.push_str("[0-9A-Za-z_]"),
                    ('W', false) => out.push_str("[^0-9A-Za-z_]"),
                    ('d', false) => out.push_str("[0-9]"),
                    ('D', false) => out.push_str("[^0-9]"),
                    ('s', false) => out.push_str("[ \\t\\n\\x0B\\x0C\\r]"),
                    ('S', false) => out.push_str("[^ \\t\\n\\x0B\\x0C\\r]"),
                    ('w', true) => out.push_str("0-9A-Za-z_"),
                    ('d', true) => out.push_str("0-9"),
                    ('s', true) => out.push_str(" \\t\\n\\x0B\\x0C\\r"),
                    ('b', false) => out.push_str("(?-u:\\b)"),
                    ('B', false) => out.push_str("(?-u:\\B)"),
                    ('u' | 'x', _) => {
                        let count = if escaped == 'u' { 4 } else { 2 };
                        let digits: String = chars.by_ref().take(count).collect();
                        let code = u32::from_str_radix(&digits, 16).ok()?;
                        out.push_str(&format!("\\x{{{code:X}}}"));
                    }
                    ('0', _) => out.push_str("\\x00"),
                    ('n' | 'r' | 't' | 'v' | 'f', _) | ('1'..='9', false) => {
                        out.push('\\');
                        out.push(escaped);
                    }
                    (letter, _) if letter.is_ascii_alphanumeric() => out.push(letter),
                    (sign, _) => out.push_str(&escape(sign)),
                }
            }
            '[' if in_class => match chars.peek() {
                Some(':') => {
                    out.push('[');
                    let name: String = chars.by_ref().take_while(|c| *c != ']').collect();
                    out.push_str(&name);
                    out.push(']');
                }
                _ => out.push_str("\\["),
            },
            '[' => {
                in_class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // An empty class matches nothing, its contrary everything.
                if chars.next_if_eq(&']').is_some() {
                    in_class = false;
                    let negative = out.ends_with("[^");
                    out.truncate(out.len() - if negative { 2 } else { 1 });
                    out.push_str(if negative { "(?s:.)" } else { "(?!)" });
                }
            }
            ']' => {
                in_class = false;
                out.push(']');
            }
            '.' if !in_class => out.push_str("[^\\n\\r]"),
            '(' if !in_class && chars.peek() == Some(&'?') => {
                chars.next();
                let kind = chars.next().filter(|kind| matches!(kind, ':' | '=' | '!'))?;
                out.push_str("(?");
                out.push(kind);
            }
            '{' if !in_class => {
                let count: String = chars.by_ref().take_while(|c| *c != '}').collect();
                let (least, most) = count.split_once(',').unwrap_or((&count, ""));
                let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
                if least.is_empty() || !is_number(least) || !is_number(most) {
                    return None;
                }
                out.push_str(&format!("{{{count}}}"));
            }
            '&' | '~' | '#' | ' ' => out.push_str(&escape(c)),
            c => out.push(c),
        }
    }
    Some(out)
}

fn escape(c: char) -> String {
    if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() }
}

/// Looks through a whole schema before a document is compared with it.
///
/// # Errors
/// 1235 for a reference to another schema, 3157 for references in a circle.
pub(crate) fn prepare(root: JsonRef<'_>) -> Result<Patterns> {
    let mut search = Search { root, patterns: Patterns::default(), seen: HashMap::new() };
    search.check_references(root, 0)?;
    search.visit(root, "#".to_owned(), 0)?;
    Ok(search.patterns)
}

struct Search<'a> {
    root: JsonRef<'a>,
    patterns: Patterns,
    /// Locations that were looked at: whether that is over.
    seen: HashMap<String, bool>,
}

impl<'a> Search<'a> {
    fn check_references(&self, part: JsonRef<'a>, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        if reference(part).is_some_and(|text| !text.starts_with(b"#")) {
            return Err(Error::not_supported("references in JSON Schema"));
        }
        if part.kind() == JsonType::Object {
            return part
                .members()
                .try_for_each(|(_, member)| self.check_references(member, depth + 1));
        }
        if part.kind() == JsonType::Array {
            return part.elements().try_for_each(|member| self.check_references(member, depth + 1));
        }
        Ok(())
    }

    fn visit(&mut self, part: JsonRef<'a>, location: String, depth: usize) -> Result<()> {
        match self.seen.get(&location) {
            Some(true) => return Ok(()),
            Some(false) => return Err(too_deep()),
            None if depth > DEPTH_MAX => return Err(too_deep()),
            None => {}
        }
        self.seen.insert(location.clone(), false);
        if let Some(text) = reference(part) {
            if let Some((target, place)) = resolve(self.root, text) {
                self.visit(target, place, depth + 1)?;
            }
        } else if part.kind() == JsonType::Object {
            self.note_patterns(part);
            for (name, member) in part.members() {
                let name = String::from_utf8_lossy(name);
                self.visit(member, format!("{location}/{name}"), depth + 1)?;
            }
        } else if part.kind() == JsonType::Array {
            for (index, member) in part.elements().enumerate() {
                self.visit(member, format!("{location}/{index}"), depth + 1)?;
            }
        }
        self.seen.insert(location, true);
        Ok(())
    }

    fn note_patterns(&mut self, part: JsonRef<'a>) {
        let pattern = part.get(b"pattern").filter(|text| text.kind() == JsonType::String);
        if let Some(pattern) = pattern.and_then(|text| text.as_bytes()) {
            self.patterns.add(pattern);
        }
        let named = part.get(b"patternProperties").filter(|map| map.kind() == JsonType::Object);
        for (pattern, _) in named.into_iter().flat_map(|map| map.members()) {
            self.patterns.add(pattern);
        }
    }
}

#[cold]
fn too_deep() -> Error {
    errors::err!(JSON_DOCUMENT_TOO_DEEP)
}
