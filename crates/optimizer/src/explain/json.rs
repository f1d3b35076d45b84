//! JSON documents as EXPLAIN prints them.

use std::fmt::Write;

/// A value of a document.
#[derive(Clone, Debug)]
pub(super) enum Json {
    Bool(bool),
    /// A whole number.
    Count(u64),
    /// Any number; whole ones with one digit after the point.
    Number(f64),
    Text(String),
    List(Vec<Json>),
    /// In the order given.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    pub(super) fn text(text: &str) -> Json {
        Json::Text(text.to_owned())
    }

    pub(super) fn texts(texts: impl IntoIterator<Item = String>) -> Json {
        Json::List(texts.into_iter().map(Json::Text).collect())
    }

    /// An object whose members are ordered as in a stored JSON document: shorter names first.
    pub(super) fn sorted(mut members: Vec<(&'static str, Json)>) -> Json {
        members.sort_by_key(|(name, _)| (name.len(), *name));
        Json::Object(members)
    }

    /// The document over several lines.
    pub(super) fn print(&self) -> String {
        let mut out = String::new();
        self.write(0, &mut out);
        out
    }

    fn write(&self, depth: usize, out: &mut String) {
        let pad = |depth: usize, out: &mut String| out.extend(std::iter::repeat_n("  ", depth));
        match self {
            Json::Bool(value) => _ = write!(out, "{value}"),
            Json::Count(number) => _ = write!(out, "{number}"),
            Json::Number(number) => _ = write!(out, "{number:?}"),
            Json::Text(text) => quote(text, out),
            Json::List(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    out.push_str(if position > 0 { ",\n" } else { "\n" });
                    pad(depth + 1, out);
                    item.write(depth + 1, out);
                }
                if !items.is_empty() {
                    out.push('\n');
                    pad(depth, out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (position, (name, value)) in members.iter().enumerate() {
                    out.push_str(if position > 0 { ",\n" } else { "\n" });
                    pad(depth + 1, out);
                    quote(name, out);
                    out.push_str(": ");
                    value.write(depth + 1, out);
                }
                if !members.is_empty() {
                    out.push('\n');
                    pad(depth, out);
                }
                out.push('}');
            }
        }
    }
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            control if (control as u32) < 0x20 => _ = write!(out, "\\u{:04x}", control as u32),
            other => out.push(other),
        }
    }
    out.push('"');
}
