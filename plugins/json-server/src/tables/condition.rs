//! Conditions on rows: `column=operator.value` and filters as for documents, as SQL.

use types::Value;
use types::json::JsonValue;

use super::columns::{Column, Kind, Table};
use crate::filter::{Comparison, Filter, Presence, Test};
use crate::reply::Reply;
use crate::statement::{Statement, invalid};

/// Values in one `in.(..)`.
const VALUES_MAX: usize = 1000;

/// Appends the condition that a filter makes on the table's columns.
///
/// # Errors
/// Status 400 for unknown columns, and values of other types than the column's.
pub fn filter(table: &Table, filter: &Filter, out: &mut Statement) -> Result<(), Reply> {
    match filter {
        Filter::All(filters) if filters.is_empty() => {
            out.text("TRUE");
            Ok(())
        }
        Filter::All(filters) => join(table, filters, " AND ", out),
        Filter::Any(filters) => join(table, filters, " OR ", out),
        Filter::Not(inner) => {
            out.text("((");
            self::filter(table, inner, out)?;
            out.text(") IS NOT TRUE)");
            Ok(())
        }
        Filter::Field(name, test) => self::test(table.column(name)?, test, out),
    }
}

fn join(
    table: &Table,
    filters: &[Filter],
    between: &'static str,
    out: &mut Statement,
) -> Result<(), Reply> {
    for (index, one) in filters.iter().enumerate() {
        out.text(if index == 0 { "(" } else { between });
        filter(table, one, out)?;
    }
    out.text(")");
    Ok(())
}

fn test(column: &Column, test: &Test, out: &mut Statement) -> Result<(), Reply> {
    match test {
        Test::Compare(Comparison::Equal, JsonValue::Null) | Test::Exists(Presence::Absent) => {
            out.name(&column.name).text(" IS NULL");
        }
        Test::Exists(Presence::Present) => {
            out.name(&column.name).text(" IS NOT NULL");
        }
        Test::Compare(_, JsonValue::Null) => {
            return Err(invalid(format_args!("null has no order")));
        }
        Test::Compare(comparison, value) => {
            let value = column.json_value(value)?;
            column.write(value, out.name(&column.name).text(comparison.sql()));
        }
        Test::In(values) => {
            let (nulls, values): (Vec<_>, Vec<_>) =
                values.iter().partition(|value| matches!(value, JsonValue::Null));
            out.text("(");
            if !nulls.is_empty() {
                out.name(&column.name).text(" IS NULL OR ");
            }
            let values = values.iter().map(|value| column.json_value(value));
            is_in(column, values.collect::<Result<_, _>>()?, out);
            out.text(")");
        }
        Test::Contains(value) => match column.kind {
            Kind::Document => {
                out.text("JSON_CONTAINS(").name(&column.name).text(", ").document(value.to_text());
                out.text(")");
            }
            Kind::Integer
            | Kind::Decimal
            | Kind::Float
            | Kind::Text
            | Kind::DateTime
            | Kind::Time
            | Kind::Bytes => {
                return Err(invalid(format_args!("$contains is for columns of type json")));
            }
        },
        Test::Like(pattern) => {
            out.name(&column.name).text(" LIKE ").value(Value::text(pattern));
        }
        Test::Regex(pattern) => {
            out.name(&column.name).text(" REGEXP ").value(Value::text(pattern));
        }
    }
    Ok(())
}

fn is_in(column: &Column, values: Vec<Value>, out: &mut Statement) {
    out.name(&column.name).text(" IN (");
    if values.is_empty() {
        out.text("NULL");
    }
    for (index, value) in values.into_iter().enumerate() {
        out.text(if index == 0 { "" } else { ", " });
        column.write(value, out);
    }
    out.text(")");
}

/// Appends the condition of one parameter `column=operator.value`.
///
/// # Errors
/// Status 400.
pub fn parameter(table: &Table, name: &str, text: &str, out: &mut Statement) -> Result<(), Reply> {
    let column = table.column(name)?;
    let wrong = || {
        invalid(format_args!(
            "{name:?} is OPERATOR.VALUE: eq, ne, gt, gte, lt, lte, in, like, is.null or is.notnull"
        ))
    };
    let (operator, value) = text.split_once('.').ok_or_else(wrong)?;
    let comparison = match operator {
        "eq" => " = ",
        "gt" => Comparison::Greater.sql(),
        "gte" => Comparison::GreaterOrEqual.sql(),
        "lt" => Comparison::Less.sql(),
        "lte" => Comparison::LessOrEqual.sql(),
        "ne" => {
            // A NULL is another value.
            let value = column.text_value(value)?;
            column.write(value, out.text("((").name(&column.name).text(" = "));
            out.text(") IS NOT TRUE)");
            return Ok(());
        }
        "in" => {
            let list = value.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            let texts: Vec<&str> = list.unwrap_or(value).split(',').collect();
            if texts.len() > VALUES_MAX {
                return Err(invalid(format_args!("in takes at most {VALUES_MAX} values")));
            }
            let values = texts.into_iter().map(|text| column.text_value(text));
            is_in(column, values.collect::<Result<_, _>>()?, out);
            return Ok(());
        }
        "like" => {
            out.name(&column.name).text(" LIKE ").value(Value::text(value));
            return Ok(());
        }
        "is" if value == "null" => {
            out.name(&column.name).text(" IS NULL");
            return Ok(());
        }
        "is" if value == "notnull" => {
            out.name(&column.name).text(" IS NOT NULL");
            return Ok(());
        }
        _ => return Err(wrong()),
    };
    let value = column.text_value(value)?;
    column.write(value, out.name(&column.name).text(comparison));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::table;
    use super::*;
    use crate::filter::read_json;

    fn by_filter(text: &str) -> Result<Statement, Reply> {
        let mut out = Statement::default();
        filter(&table(), &Filter::parse(read_json("the test", text.as_bytes())?)?, &mut out)?;
        Ok(out)
    }

    fn by_parameter(name: &str, text: &str) -> Result<Statement, Reply> {
        let mut out = Statement::default();
        parameter(&table(), name, text, &mut out)?;
        Ok(out)
    }

    #[test]
    fn conditions_name_columns_and_hold_values() {
        let sql = |text| by_filter(text).unwrap().sql().to_owned();
        assert_eq!(sql(r#"{"id":5}"#), "`id` = ?");
        assert_eq!(sql(r#"{"ID":{"$in":[1,null]}}"#), "(`id` IS NULL OR `id` IN (?))");
        assert_eq!(sql(r#"{"j":{"$contains":1}}"#), "JSON_CONTAINS(`j`, CAST(? AS JSON))");
        assert_eq!(by_parameter("id", "in.(1,2)").unwrap().sql(), "`id` IN (?, ?)");
        assert_eq!(by_parameter("k", "eq.a.b").unwrap().parameters(), [Value::text("a.b")]);
        assert_eq!(by_parameter("k", "ne.x").unwrap().sql(), "((`k` = ?) IS NOT TRUE)");
    }

    #[test]
    fn unknown_names_and_wrong_values_are_refused() {
        let filters = [
            r#"{"x":1}"#,
            r#"{"id` OR 1":1}"#,
            r#"{"id":"1 OR 1=1"}"#,
            r#"{"id":[1]}"#,
            r#"{"id":{"$gt":null}}"#,
            r#"{"k":{"$contains":1}}"#,
            r#"{"j.a":1}"#,
            r#"{"d":"1.5x"}"#,
            r#"{"id":1e30}"#,
        ];
        for text in filters {
            assert_eq!(by_filter(text).unwrap_err().status.as_u16(), 400, "{text}");
        }
        let parameters = [
            ("x", "eq.1"),
            ("id", "eq"),
            ("id", "eq."),
            ("id", "eq.1 OR 1"),
            ("id", "EQ.1"),
            ("id", "is.x"),
            ("id", "in.()"),
            ("id", "in.(1,)"),
            ("id", "or.1"),
            ("", "eq.1"),
            ("id", "eq.\u{0}1"),
            ("d", "gt.--1"),
        ];
        for (name, text) in parameters {
            assert_eq!(by_parameter(name, text).unwrap_err().status.as_u16(), 400, "{name} {text}");
        }
    }
}
