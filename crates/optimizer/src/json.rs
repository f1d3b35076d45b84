//! JSON documents as EXPLAIN and the trace of the optimizer print them.

use std::fmt::Write;

/// A value of a document.
#[derive(Clone, Debug)]
pub(crate) enum Json {
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
    pub(crate) fn text(text: &str) -> Json {
        Json::Text(text.to_owned())
    }

    pub(crate) fn texts(texts: impl IntoIterator<Item = String>) -> Json {
        Json::List(texts.into_iter().map(Json::Text).collect())
    }

    /// An object whose members are ordered as in a stored JSON document: shorter names first.
    pub(crate) fn sorted(mut members: Vec<(&'static str, Json)>) -> Json {
        members.sort_by_key(|(name, _)| (name.len(), *name));
        Json::Object(members)
    }

    /// The document over several lines.
    pub(crate) fn print(&self) -> String {
        let mut out = String::new();
        self.write(Some(0), &mut out);
        out
    }

    /// The document in one line, without spaces.
    pub(crate) fn print_in_line(&self) -> String {
        let mut out = String::new();
        self.write(None, &mut out);
        out
    }

    /// `depth`: of this value, when the document has several lines.
    fn write(&self, depth: Option<usize>, out: &mut String) {
        let inner = depth.map(|depth| depth + 1);
        let new_line = |depth: Option<usize>, out: &mut String| {
            if let Some(depth) = depth {
                out.push('\n');
                out.extend(std::iter::repeat_n("  ", depth));
            }
        };
        match self {
            Json::Bool(value) => _ = write!(out, "{value}"),
            Json::Count(number) => _ = write!(out, "{number}"),
            Json::Number(number) => _ = write!(out, "{number:?}"),
            Json::Text(text) => quote(text, out),
            Json::List(items) => {
                out.push('[');
                for (position, item) in items.iter().enumerate() {
                    out.push_str(if position > 0 { "," } else { "" });
                    new_line(inner, out);
                    item.write(inner, out);
                }
                if !items.is_empty() {
                    new_line(depth, out);
                }
                out.push(']');
            }
            Json::Object(members) => {
                out.push('{');
                for (position, (name, value)) in members.iter().enumerate() {
                    out.push_str(if position > 0 { "," } else { "" });
                    new_line(inner, out);
                    quote(name, out);
                    out.push_str(if depth.is_some() { ": " } else { ":" });
                    value.write(inner, out);
                }
                if !members.is_empty() {
                    new_line(depth, out);
                }
                out.push('}');
            }
        }
    }
}

/// An object of these members.
pub(crate) fn object<const N: usize>(members: [(&'static str, Json); N]) -> Json {
    Json::Object(members.into())
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
