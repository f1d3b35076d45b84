//! How PROFILE shows what it measured.

use errors::{Result, bail};
use plugin_api::kit::{integer_type, text_type};
use plugin_api::{ColumnMeta, ConnectionProfile, ProfileFrame, ProfilePrinter, ProfileRows};
use types::{CollationId, DataType, Decimal, TypeKind, Value};

use crate::connection::Looks;
use crate::folded::{Folded, clean};
use crate::svg;

/// How a profile looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// One row for each operator.
    #[default]
    Table,
    /// One row for each stack.
    Folded,
    /// A flame graph in one row.
    Svg,
}

impl Format {
    /// # Errors
    /// 1210: there is none of this name.
    pub(crate) fn named(name: Option<&str>) -> Result<Format> {
        match name.map(str::to_ascii_uppercase).as_deref() {
            None | Some("TABLE") => Ok(Format::Table),
            Some("FOLDED") => Ok(Format::Folded),
            Some("SVG") => Ok(Format::Svg),
            Some(_) => bail!(WRONG_ARGUMENTS, "PROFILE FORMAT"),
        }
    }
}

/// Characters of the name of an operator, and of a flame graph.
const NAME_CHARACTERS: u64 = 1 << 16;
const GRAPH_CHARACTERS: u64 = 1 << 24;
/// Blanks before an operator for each one above it.
const INDENT: usize = 2;

/// Shows profiles of statements.
pub(crate) struct Printer;

impl ProfilePrinter for Printer {
    fn connection(&self) -> Box<dyn ConnectionProfile> {
        Box::<Looks>::default()
    }

    fn check(&self, format: Option<&str>) -> Result<()> {
        Format::named(format).map(drop)
    }

    fn show(&self, profile: &ProfileFrame, format: Option<&str>) -> Result<ProfileRows> {
        let text = |characters| text_type(characters, CollationId::UTF8MB4_0900_AI_CI);
        let column = |name: &str, ty: DataType| ColumnMeta::computed(name, ty);
        Ok(match Format::named(format)? {
            Format::Table => {
                let decimal = |decimals| DataType::new(TypeKind::Decimal, 20, decimals);
                let columns = vec![
                    column("OPERATOR", text(NAME_CHARACTERS)),
                    column("TIME_MS", decimal(3)),
                    column("SELF_MS", decimal(3)),
                    column("SELF_PERCENT", decimal(1)),
                    column("ROWS", integer_type(20, true)),
                    column("LOOPS", integer_type(20, false)),
                ];
                let mut rows = Vec::new();
                add_rows(profile, (0, own_in_all(profile)), &mut rows);
                (columns, rows)
            }
            Format::Folded => {
                let lines = Folded::of(profile).lines();
                let rows = lines.iter().map(|line| vec![Value::text(line)]).collect();
                (vec![column("STACK", text(NAME_CHARACTERS))], rows)
            }
            Format::Svg => {
                let graph = svg::draw(&Folded::of(profile));
                (vec![column("SVG", text(GRAPH_CHARACTERS))], vec![vec![Value::text(&graph)]])
            }
        })
    }
}

/// What all frames took themselves: the whole of which percentages are.
fn own_in_all(frame: &ProfileFrame) -> u64 {
    frame.own_nanos() + frame.parts.iter().map(own_in_all).sum::<u64>()
}

fn add_rows(frame: &ProfileFrame, (depth, whole): (usize, u64), rows: &mut Vec<Vec<Value>>) {
    let own = frame.own_nanos();
    rows.push(vec![
        Value::text(&format!("{:depth$}{}", "", clean(&frame.name), depth = depth * INDENT)),
        fixed(u128::from(frame.nanos), 1_000, 3),
        fixed(u128::from(own), 1_000, 3),
        // Tenths of percents.
        fixed(u128::from(own) * 1_000, u128::from(whole.max(1)), 1),
        frame.rows.map_or(Value::Null, Value::UInt),
        Value::UInt(frame.loops),
    ]);
    frame.parts.iter().for_each(|part| add_rows(part, (depth + 1, whole), rows));
}

/// `number / divisor`, rounded, with `decimals` digits after the point.
fn fixed(number: u128, divisor: u128, decimals: u8) -> Value {
    let rounded = (number + divisor / 2) / divisor;
    Value::Decimal(Decimal::from_i128(rounded.cast_signed(), decimals))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> ProfileFrame {
        let scan = ProfileFrame {
            name: "Table scan on t".to_owned(),
            nanos: 750_400,
            rows: Some(7),
            loops: 1,
            parts: Vec::new(),
        };
        let rows = Some(1);
        ProfileFrame {
            name: "Query".to_owned(),
            nanos: 1_000_000,
            rows,
            loops: 1,
            parts: vec![scan],
        }
    }

    #[test]
    fn the_table_indents_operators_and_gives_their_share() {
        let (columns, rows) = Printer.show(&profile(), None).expect("a table");
        assert_eq!(columns.len(), 6);
        let text = |row: usize, column: usize| variables_text(&rows[row][column]);
        assert_eq!(
            (text(0, 0), text(0, 1), text(0, 2), text(0, 3)),
            ("Query".into(), "1.000".into(), "0.250".into(), "25.0".into())
        );
        assert_eq!(
            (text(1, 0), text(1, 1), text(1, 3), text(1, 4)),
            ("  Table scan on t".into(), "0.750".into(), "75.0".into(), "7".into())
        );
    }

    fn variables_text(value: &Value) -> String {
        match value {
            Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Value::Decimal(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn an_unknown_format_is_refused_before_the_statement_runs() {
        assert!(Printer.check(Some("folded")).is_ok() && Printer.check(Some("XML")).is_err());
    }
}
