//! What a server answers, in a form that two answers can be compared in.

use client::{Answer, Column, Connection, Failure};
use wire::{ColumnType, TypeOnWire};

/// The answer to a statement.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// A result set: types of its columns as text, and its rows.
    Rows(Vec<String>, Vec<Vec<String>>),
    /// An error's number and message.
    Refused(u16, String),
    /// The connection is gone.
    Lost(String),
}

#[derive(Default)]
struct Rows {
    inexact: Vec<bool>,
    types: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Answer for Rows {
    fn columns(&mut self, columns: &[Column]) {
        let is_inexact = |ty| matches!(ty, ColumnType::Double | ColumnType::Float);
        self.inexact = columns.iter().map(|column| is_inexact(column.ty.ty)).collect();
        self.types = columns.iter().map(|column| type_of(&column.ty)).collect();
    }

    fn row(&mut self, values: &[Option<&[u8]>]) {
        let row = values.iter().zip(&self.inexact).map(|(value, inexact)| match value {
            None => "NULL".to_owned(),
            Some(bytes) if *inexact => rounded(&String::from_utf8_lossy(bytes)),
            Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        });
        self.rows.push(row.collect());
    }
}

/// Collation of what is no text.
const BINARY: u16 = 63;

/// The type of a column as programs see it: integers of all sizes are one, as MySQL changes the size when rows go through a temporary table.
fn type_of(ty: &TypeOnWire) -> String {
    use ColumnType as Type;
    let is_text = if ty.collation == BINARY { "binary" } else { "text" };
    match ty.ty {
        Type::Tiny | Type::Short | Type::Int24 | Type::Long | Type::LongLong => "integer".into(),
        Type::Float | Type::Double => "inexact".into(),
        Type::NewDecimal | Type::Time | Type::DateTime | Type::Timestamp => {
            format!("{:?} {}", ty.ty, ty.decimals)
        }
        Type::VarChar | Type::VarString | Type::String => format!("{is_text} string"),
        Type::TinyBlob | Type::MediumBlob | Type::LongBlob | Type::Blob => {
            format!("{is_text} string")
        }
        other => format!("{other:?}"),
    }
}

/// A DOUBLE to ten digits: sums depend on the order of the rows beyond that.
fn rounded(text: &str) -> String {
    text.parse::<f64>().map_or_else(|_| text.to_owned(), |number| format!("{number:.9e}"))
}

/// Runs a statement.
pub(crate) fn ask(connection: &mut Connection, sql: &str) -> Reply {
    let mut rows = Rows::default();
    match connection.query(sql.as_bytes(), &mut rows) {
        Ok(_) => Reply::Rows(rows.types, rows.rows),
        Err(Failure::Server(error)) => Reply::Refused(error.code().0, error.message().to_string()),
        Err(Failure::Lost(why)) => Reply::Lost(why),
    }
}

/// How two answers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// A connection was lost.
    Lost,
    /// Other rows.
    Rows,
    /// Other types of columns, with the same rows.
    Types,
    /// An error where the other has rows, or another error.
    Errors,
}

/// Compares two answers. `ordered`: the order of the rows counts. `folds`: of equal strings either may be shown.
pub(crate) fn difference(
    one: &Reply,
    other: &Reply,
    ordered: bool,
    folds: bool,
) -> Option<Difference> {
    match (one, other) {
        (Reply::Lost(_), _) | (_, Reply::Lost(_)) => Some(Difference::Lost),
        (Reply::Refused(one, _), Reply::Refused(other, _)) if one == other => None,
        (Reply::Refused(..), _) | (_, Reply::Refused(..)) => Some(Difference::Errors),
        (Reply::Rows(types, rows), Reply::Rows(other_types, other_rows)) => {
            let seen = |rows: &[Vec<String>]| comparable(rows, ordered, folds);
            if seen(rows) != seen(other_rows) {
                return Some(Difference::Rows);
            }
            // MySQL gives NULL the type that comes first to hand.
            let alike = |(one, other): (&String, &String)| {
                one == other || [one, other].iter().any(|ty| *ty == "Null")
            };
            (!types.iter().zip(other_types).all(alike)).then_some(Difference::Types)
        }
    }
}

fn comparable(rows: &[Vec<String>], ordered: bool, folds: bool) -> Vec<Vec<String>> {
    let folded = |value: &String| match folds {
        true => value.trim_end().to_lowercase(),
        false => value.clone(),
    };
    let mut rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(folded).collect()).collect();
    if !ordered {
        rows.sort();
    }
    rows
}

/// An answer in a few lines.
pub(crate) fn shown(reply: &Reply) -> String {
    const ROWS_SHOWN: usize = 6;
    match reply {
        Reply::Lost(why) => format!("  lost: {why}"),
        Reply::Refused(code, message) => format!("  ERROR {code}: {message}"),
        Reply::Rows(types, rows) => {
            let mut lines = vec![format!("  {} rows: {}", rows.len(), types.join(", "))];
            let mut rows: Vec<&Vec<String>> = rows.iter().collect();
            rows.sort();
            lines
                .extend(rows.iter().take(ROWS_SHOWN).map(|row| format!("    {}", row.join(" | "))));
            lines.join("\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(values: &[&str]) -> Reply {
        let rows = values.iter().map(|value| vec![(*value).to_owned()]);
        Reply::Rows(vec!["Long".into()], rows.collect())
    }

    #[test]
    fn order_and_case_count_where_they_are_decided() {
        let differs = |one: &[&str], other: &[&str], ordered, folds| {
            difference(&rows(one), &rows(other), ordered, folds)
        };
        assert_eq!(differs(&["1", "2"], &["2", "1"], false, false), None);
        assert_eq!(differs(&["1", "2"], &["2", "1"], true, false), Some(Difference::Rows));
        assert_eq!(differs(&["a"], &["A "], false, true), None);
        assert_eq!(differs(&["a"], &["A"], false, false), Some(Difference::Rows));
        assert_eq!(differs(&["1"], &["1", "1"], false, true), Some(Difference::Rows));
        let refused = |code| Reply::Refused(code, String::new());
        assert_eq!(difference(&refused(1690), &refused(1690), false, false), None);
        let differs = difference(&refused(1690), &rows(&["1"]), false, false);
        assert_eq!(differs, Some(Difference::Errors));
        let lost = difference(&Reply::Lost("gone".into()), &rows(&[]), false, false);
        assert_eq!(lost, Some(Difference::Lost));
    }

    #[test]
    fn doubles_are_compared_to_ten_digits() {
        assert_eq!(rounded("0.30000000000000004"), rounded("0.3"));
        assert_ne!(rounded("0.300001"), rounded("0.3"));
    }
}
