//! Rows as JSON objects: what `docs/format/changes.md` says of values.

use std::ops::Range;

use errors::Result;
use types::{DataType, ResultCell, TypeKind, Value};

use crate::event::put_name;
use crate::json::{form_of, write_cell, write_string};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: DataType,
}

/// Appends a value.
///
/// # Errors
/// A damaged record.
pub fn write_value(
    value: &Value,
    ty: &DataType,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    // In the log, members are numbers.
    if let (TypeKind::Enum, Value::UInt(index)) = (ty.kind, value) {
        write_string(ty.member(*index).unwrap_or_default(), out);
    } else if let (TypeKind::Set, Value::UInt(bits)) = (ty.kind, value) {
        let is_in = |at: &u64| *at < 64 && bits >> at & 1 == 1;
        let names: Vec<&[u8]> = (0..ty.member_count() as u64)
            .filter(is_in)
            .map(|at| ty.member(at + 1).unwrap_or_default())
            .collect();
        write_string(&names.join(&b','), out);
    } else {
        write_cell(&ResultCell::from(value), ty, form_of(ty), scratch, out)?;
    }
    if matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp) && out.get(start) == Some(&b'"')
    {
        if let Some(space) = out[start..].iter().position(|byte| *byte == b' ') {
            out[start + space] = b'T';
        }
        if ty.kind == TypeKind::Timestamp {
            out.pop();
            out.extend_from_slice(b"Z\"");
        }
    }
    Ok(())
}

/// Appends an object of the columns that have a value and that `is_wanted` names by place.
///
/// # Errors
/// A damaged record.
pub fn write_object<'v>(
    columns: &[Column],
    value: impl Fn(usize) -> Option<&'v Value>,
    is_wanted: impl Fn(usize) -> bool,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'{');
    let mut is_first = true;
    for (at, column) in columns.iter().enumerate().filter(|(at, _)| is_wanted(*at)) {
        let Some(value) = value(at) else { continue };
        if !std::mem::replace(&mut is_first, false) {
            out.push(b',');
        }
        write_string(column.name.as_bytes(), out);
        out.push(b':');
        write_value(value, &column.ty, scratch, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Appends `,"name":` and the columns of the key, or null. Returns where the object is.
///
/// # Errors
/// A damaged record.
pub fn put_key<'v>(
    name: &str,
    columns: &[Column],
    key: &[usize],
    value: impl Fn(usize) -> Option<&'v Value>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Option<Range<usize>>> {
    put_name(name, out);
    if key.is_empty() {
        out.extend_from_slice(b"null");
        return Ok(None);
    }
    let start = out.len();
    write_object(columns, value, |at| key.contains(&at), scratch, out)?;
    Ok(Some(start..out.len()))
}

/// Appends the fields of the event that describes a table.
pub fn put_table(schema: &str, table: &str, columns: &[Column], key: &[usize], out: &mut Vec<u8>) {
    crate::event::put_text("schema", schema, out);
    crate::event::put_text("table", table, out);
    out.extend_from_slice(b",\"columns\":[");
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        put_column(column, out);
    }
    out.extend_from_slice(b"],\"key\":[");
    for (at, place) in key.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let name = columns.get(*place).map_or("", |column| column.name.as_str());
        write_string(name.as_bytes(), out);
    }
    out.push(b']');
}

fn put_column(column: &Column, out: &mut Vec<u8>) {
    let DataType { kind, nullable, unsigned, length, decimals, .. } = &column.ty;
    out.extend_from_slice(b"{\"name\":");
    write_string(column.name.as_bytes(), out);
    let rest = format!(
        ",\"type\":\"{}\",\"nullable\":{nullable},\"unsigned\":{unsigned},\"length\":{length},\"decimals\":{decimals}",
        kind.name()
    );
    out.extend_from_slice(rest.as_bytes());
    if form_of(&column.ty) == crate::json::Form::Bytes {
        out.extend_from_slice(b",\"encoding\":\"base64\"");
    }
    if matches!(kind, TypeKind::Enum | TypeKind::Set) {
        out.extend_from_slice(b",\"members\":[");
        for at in 0..column.ty.member_count() as u64 {
            if at > 0 {
                out.push(b',');
            }
            write_string(column.ty.member(at + 1).unwrap_or_default(), out);
        }
        out.push(b']');
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use types::{Date, DateTime};

    use super::*;

    fn written(value: &Value, kind: TypeKind) -> String {
        let mut out = Vec::new();
        write_value(value, &DataType::new(kind, 20, 0), &mut Vec::new(), &mut out)
            .expect("a value");
        String::from_utf8(out).expect("JSON is text")
    }

    #[test]
    fn times_are_iso() {
        let date = Date::new(2026, 1, 2).expect("a date");
        let at = Value::DateTime(DateTime::new(date, 3, 4, 5, 0).expect("a time"));
        assert_eq!(written(&at, TypeKind::DateTime), "\"2026-01-02T03:04:05\"");
        assert_eq!(written(&at, TypeKind::Timestamp), "\"2026-01-02T03:04:05Z\"");
        assert_eq!(written(&Value::Null, TypeKind::Timestamp), "null");
        assert_eq!(written(&Value::Date(date), TypeKind::Date), "\"2026-01-02\"");
    }
}
