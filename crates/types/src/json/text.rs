//! Binary documents as text.

use super::binary::JsonRef;
use super::{JsonType, MAX_DEPTH};
use crate::text::{write_f64, write_i64, write_u64};

/// Appends a document as the reference prints it: a space after `:` and `,`.
pub fn write_text(document: &[u8], out: &mut Vec<u8>) {
    JsonRef::new(document).write_text(out);
}

/// Appends a document with a line per element, indented by two spaces.
pub fn write_pretty(document: &[u8], out: &mut Vec<u8>) {
    write(JsonRef::new(document), Some(0), 0, out);
}

impl JsonRef<'_> {
    /// Appends the text.
    pub fn write_text(self, out: &mut Vec<u8>) {
        write(self, None, 0, out);
    }
}

/// Appends a quoted string.
pub fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut from = 0;
    for (at, &c) in text.iter().enumerate() {
        if c >= 0x20 && c != b'"' && c != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[from..at]);
        from = at + 1;
        match c {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(c >> 4)], HEX[usize::from(c & 15)]]);
            }
        }
    }
    out.extend_from_slice(&text[from..]);
    out.push(b'"');
}

fn new_line(indent: Option<usize>, out: &mut Vec<u8>) {
    if let Some(level) = indent {
        out.push(b'\n');
        out.resize(out.len() + 2 * level, b' ');
    }
}

fn separator(index: usize, inner: Option<usize>, out: &mut Vec<u8>) {
    if index > 0 {
        out.extend_from_slice(if inner.is_some() { b"," } else { b", " });
    }
    new_line(inner, out);
}

fn write(value: JsonRef<'_>, indent: Option<usize>, depth: usize, out: &mut Vec<u8>) {
    // Only corrupt data nests deeper.
    if depth > MAX_DEPTH {
        return out.extend_from_slice(b"null");
    }
    let inner = indent.map(|level| level + 1);
    match value.kind() {
        JsonType::Array => {
            out.push(b'[');
            for (index, element) in value.elements().enumerate() {
                separator(index, inner, out);
                write(element, inner, depth + 1, out);
            }
            if !value.is_empty() {
                new_line(indent, out);
            }
            out.push(b']');
        }
        JsonType::Object => {
            out.push(b'{');
            for (index, (name, member)) in value.members().enumerate() {
                separator(index, inner, out);
                quote(name, out);
                out.extend_from_slice(b": ");
                write(member, inner, depth + 1, out);
            }
            if !value.is_empty() {
                new_line(indent, out);
            }
            out.push(b'}');
        }
        _ => write_scalar(value, out),
    }
}

fn write_scalar(value: JsonRef<'_>, out: &mut Vec<u8>) {
    match value.kind() {
        JsonType::Bool => {
            let word: &[u8] = if value.as_bool() == Some(true) { b"true" } else { b"false" };
            out.extend_from_slice(word);
        }
        JsonType::Int => write_i64(value.as_i64().unwrap_or(0), out),
        JsonType::UInt => write_u64(value.as_u64().unwrap_or(0), out),
        JsonType::Double => {
            let start = out.len();
            write_f64(value.as_f64().unwrap_or(0.0), out);
            if !out[start..].iter().any(|c| matches!(c, b'.' | b'e')) {
                out.extend_from_slice(b".0");
            }
        }
        JsonType::Decimal => value.as_decimal().unwrap_or_default().write_text(out),
        JsonType::String => quote(value.as_bytes().unwrap_or(b""), out),
        JsonType::Date | JsonType::Time | JsonType::DateTime | JsonType::Opaque(_) => {
            out.push(b'"');
            value.write_unquoted(out);
            out.push(b'"');
        }
        JsonType::Null | JsonType::Array | JsonType::Object => out.extend_from_slice(b"null"),
    }
}

impl JsonRef<'_> {
    /// Appends the result of `JSON_UNQUOTE`: strings and dates without quotes, other values as text.
    pub fn write_unquoted(self, out: &mut Vec<u8>) {
        match self.kind() {
            JsonType::String => out.extend_from_slice(self.as_bytes().unwrap_or(b"")),
            JsonType::Date => self.as_date().unwrap_or_default().write_text(out),
            JsonType::Time => self.as_time().unwrap_or_default().write_text(6, out),
            JsonType::DateTime => self.as_datetime().unwrap_or_default().write_text(6, out),
            JsonType::Opaque(kind) => {
                out.extend_from_slice(b"base64:type");
                write_u64(u64::from(kind), out);
                out.push(b':');
                write_base64(self.as_bytes().unwrap_or(b""), out);
            }
            _ => self.write_text(out),
        }
    }
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for chunk in bytes.chunks(3) {
        let group = u32::from(chunk[0]) << 16
            | u32::from(chunk.get(1).copied().unwrap_or(0)) << 8
            | u32::from(chunk.get(2).copied().unwrap_or(0));
        for position in 0..4 {
            if position <= chunk.len() {
                out.push(ALPHABET[(group >> (18 - 6 * position) & 63) as usize]);
            } else {
                out.push(b'=');
            }
        }
    }
}
