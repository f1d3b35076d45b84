//! Rows on their way: how each column is read, written as a literal, and summed up to compare two tables.

use std::hash::{DefaultHasher, Hasher};

use super::server::quoted_name;

/// How the value of a column travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Its digits.
    Number,
    /// A double with all its digits, compared as a number.
    Double,
    /// A text in a form of Unicode that literals may have.
    Text,
    /// Bytes.
    Bytes,
    /// Bytes that are read as this character set, or as the column's own form.
    Hex(Option<String>),
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    /// What the query selects.
    pub(super) expression: String,
    pub(super) form: Form,
    /// Its value is computed: it is compared, and not written.
    pub(super) is_generated: bool,
}

impl Column {
    /// From the type and the character set in the information schema; the latter is empty for other types than texts.
    pub(super) fn new(name: &str, ty: &str, charset: &str, is_generated: bool) -> Column {
        let quoted = quoted_name(name);
        let (expression, form) =
            match ty {
                // A float's text has six digits. -0 stays what it is.
                "float" => (format!("{quoted} * 1e0"), Form::Double),
                "double" => (quoted, Form::Double),
                "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" => {
                    (quoted, Form::Number)
                }
                // By number: the value that stands for a wrong one has no name.
                "enum" | "set" => (format!("CAST({quoted} AS UNSIGNED)"), Form::Number),
                "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob"
                | "vector" => (quoted, Form::Bytes),
                "date" | "time" | "datetime" | "timestamp" | "json" | "uuid" | "inet4"
                | "inet6" => (quoted, Form::Text),
                _ => match charset {
                    "utf8mb4" | "utf8mb3" | "utf8" | "ascii" => (quoted, Form::Text),
                    // BIT, the spatial types.
                    "" => (quoted, Form::Hex(None)),
                    other => (quoted, Form::Hex(Some(other.to_owned()))),
                },
            };
        Column { name: name.to_owned(), expression, form, is_generated }
    }
}

/// Appends a value as a literal.
pub(super) fn put_literal(out: &mut Vec<u8>, form: &Form, cell: Option<&[u8]>) {
    let Some(cell) = cell else {
        out.extend_from_slice(b"NULL");
        return;
    };
    match form {
        Form::Number | Form::Double => out.extend_from_slice(cell),
        Form::Text => put_quoted(out, cell),
        Form::Bytes => {
            out.extend_from_slice(b"_binary");
            put_quoted(out, cell);
        }
        Form::Hex(charset) => {
            if let Some(charset) = charset {
                out.push(b'_');
                out.extend_from_slice(charset.as_bytes());
                out.push(b' ');
            }
            put_hex(out, cell);
        }
    }
}

fn put_quoted(out: &mut Vec<u8>, cell: &[u8]) {
    out.push(b'\'');
    let mut rest = cell;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\'' | b'\\' | 0)) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(match rest[at] {
            b'\'' => b"''",
            b'\\' => b"\\\\",
            _ => b"\\0",
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}

fn put_hex(out: &mut Vec<u8>, cell: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend_from_slice(b"x'");
    out.extend(
        cell.iter()
            .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
    );
    out.push(b'\'');
}

/// A sum of rows that does not depend on their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Checksum {
    pub(super) rows: u64,
    /// Of whole rows.
    sum: u64,
    /// Of each column, to name those that differ.
    columns: Vec<u64>,
}

impl Checksum {
    /// Adds a row.
    pub(super) fn add_row(&mut self, columns: &[Column], cells: &[Option<&[u8]>]) {
        debug_assert_eq!(columns.len(), cells.len(), "a cell for each column");
        self.columns.resize(columns.len(), 0);
        let mut row = DefaultHasher::new();
        for ((column, cell), sum) in columns.iter().zip(cells).zip(&mut self.columns) {
            let hash = hash_of(&column.form, *cell);
            *sum = sum.wrapping_add(hash);
            row.write_u64(hash);
        }
        self.sum = self.sum.wrapping_add(row.finish());
        self.rows += 1;
    }

    /// Adds the rows of another part of the table.
    pub(super) fn add(&mut self, other: &Checksum) {
        self.rows += other.rows;
        self.sum = self.sum.wrapping_add(other.sum);
        self.columns.resize(self.columns.len().max(other.columns.len()), 0);
        for (sum, more) in self.columns.iter_mut().zip(&other.columns) {
            *sum = sum.wrapping_add(*more);
        }
    }

    /// What differs, for the report.
    pub(super) fn difference(&self, target: &Checksum, columns: &[Column]) -> Option<String> {
        if self == target {
            return None;
        }
        let differing = columns.iter().enumerate().filter(|(at, _)| {
            self.columns.get(*at).unwrap_or(&0) != target.columns.get(*at).unwrap_or(&0)
        });
        let names: Vec<_> = differing.map(|(_, column)| column.name.as_str()).collect();
        Some(format!(
            "{} rows there, {} here, checksums {:016x} and {:016x}, columns that differ: {}",
            self.rows,
            target.rows,
            self.sum,
            target.sum,
            names.join(", ")
        ))
    }

    /// The sum of the rows.
    pub(super) fn text(&self) -> String {
        format!("{:016x}", self.sum)
    }
}

fn hash_of(form: &Form, cell: Option<&[u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Some(cell) = cell else { return hasher.finish() };
    let number = (*form == Form::Double)
        .then(|| std::str::from_utf8(cell).ok()?.parse::<f64>().ok())
        .flatten();
    match number {
        // Servers write the same number differently.
        Some(number) => hasher.write_u64(number.to_bits()),
        None => hasher.write(cell),
    }
    hasher.write_u8(1);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(form: &Form, cell: &[u8]) -> String {
        let mut out = Vec::new();
        put_literal(&mut out, form, Some(cell));
        String::from_utf8(out).expect("a text")
    }

    #[test]
    fn literals_keep_every_byte() {
        assert_eq!(literal(&Form::Number, b"-12.50"), "-12.50");
        assert_eq!(literal(&Form::Text, b"it's \\ \0"), "'it''s \\\\ \\0'");
        assert_eq!(literal(&Form::Bytes, b"a"), "_binary'a'");
        assert_eq!(literal(&Form::Hex(None), &[0, 255]), "x'00ff'");
        assert_eq!(literal(&Form::Hex(Some("sjis".into())), b"\\"), "_sjis x'5c'");
        let mut out = Vec::new();
        put_literal(&mut out, &Form::Text, None);
        assert_eq!(out, b"NULL");
    }

    #[test]
    fn checksums_know_rows_but_not_their_order() {
        let columns =
            [Column::new("d", "double", "", false), Column::new("t", "text", "utf8mb4", false)];
        let sum = |rows: &[[Option<&str>; 2]]| {
            let mut sum = Checksum::default();
            for row in rows {
                let cells: Vec<_> = row.iter().map(|cell| cell.map(str::as_bytes)).collect();
                sum.add_row(&columns, &cells);
            }
            sum
        };
        let (a, b) = ([Some("1e3"), Some("x")], [Some("2"), None]);
        assert_eq!(sum(&[a, b]), sum(&[b, a]));
        assert_eq!(sum(&[a]), sum(&[[Some("1000"), Some("x")]]), "the same number");
        let mut parts = sum(&[a]);
        parts.add(&sum(&[b]));
        assert_eq!(parts, sum(&[a, b]));
        assert_ne!(sum(&[a, a]), sum(&[b, b]), "pairs do not cancel out");
        // The columns' values are the same, their rows are not.
        let crossed = sum(&[[Some("1"), Some("x")], [Some("2"), Some("y")]]);
        let straight = sum(&[[Some("1"), Some("y")], [Some("2"), Some("x")]]);
        assert!(crossed.difference(&straight, &columns).is_some_and(|text| text.ends_with(": ")));
        let other = sum(&[a, [Some("2"), Some("")]]);
        let text = sum(&[a, b]).difference(&other, &columns).expect("NULL is not an empty text");
        assert!(text.ends_with("differ: t"), "{text}");
    }
}
