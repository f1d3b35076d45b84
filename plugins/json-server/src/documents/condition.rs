//! Filters over documents as SQL. Values of different JSON types are never equal, and none is less or greater than the other.

use types::Value;
use types::json::{JsonValue, quote};

use super::indexes::Index;
use crate::filter::{Comparison, Filter, Presence, Test};
use crate::reply::Reply;
use crate::statement::{Statement, invalid};

/// Names in a path.
const SEGMENTS_MAX: usize = 32;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1024;

/// The JSON path of a dotted path: `a.b.0` is `$."a"."b"[0]`.
///
/// # Errors
/// Status 400.
pub fn json_path(dotted: &str) -> Result<Vec<u8>, Reply> {
    let mut path = b"$".to_vec();
    if dotted.len() > PATH_BYTES_MAX || dotted.split('.').count() > SEGMENTS_MAX {
        return Err(invalid(format_args!("the path is too long")));
    }
    for segment in dotted.split('.') {
        match segment {
            "" => return Err(invalid(format_args!("{dotted:?} is not a path"))),
            // An index has at most 9 digits; longer numbers are names.
            _ if segment.len() <= 9 && segment.bytes().all(|byte| byte.is_ascii_digit()) => {
                path.extend_from_slice(format!("[{segment}]").as_bytes());
            }
            _ => {
                path.push(b'.');
                quote(segment.as_bytes(), &mut path);
            }
        }
    }
    Ok(path)
}

/// Appends the condition, with the help of the collection's indexes.
///
/// # Errors
/// Status 400.
pub fn condition(filter: &Filter, indexes: &[Index], out: &mut Statement) -> Result<(), Reply> {
    out.text("(");
    write(filter, out)?;
    for filter in conjuncts(filter) {
        let Filter::Field(path, test) = filter else { continue };
        let fitting = indexes.iter().filter(|index| index.path == *path);
        let helpful = fitting.filter_map(|index| index.condition(test));
        for condition in helpful.take(1) {
            out.text(" AND ").append(condition);
        }
    }
    out.text(")");
    Ok(())
}

/// The parts that must all be true.
pub fn conjuncts(filter: &Filter) -> Vec<&Filter> {
    match filter {
        Filter::All(filters) => filters.iter().flat_map(conjuncts).collect(),
        Filter::Any(_) | Filter::Not(_) | Filter::Field(..) => vec![filter],
    }
}

fn write(filter: &Filter, out: &mut Statement) -> Result<(), Reply> {
    match filter {
        Filter::All(filters) if filters.is_empty() => {
            out.text("TRUE");
            Ok(())
        }
        Filter::All(filters) => join(filters, " AND ", out),
        Filter::Any(filters) => join(filters, " OR ", out),
        Filter::Not(filter) => {
            out.text("((");
            write(filter, out)?;
            out.text(") IS NOT TRUE)");
            Ok(())
        }
        Filter::Field(path, test) if path == "_id" => id_test(test, out),
        Filter::Field(path, test) => field_test(&json_path(path)?, test, out),
    }
}

fn join(filters: &[Filter], between: &'static str, out: &mut Statement) -> Result<(), Reply> {
    for (index, filter) in filters.iter().enumerate() {
        out.text(if index == 0 { "(" } else { between });
        write(filter, out)?;
    }
    out.text(")");
    Ok(())
}

/// Tests of `_id` use the column, which is the primary key.
fn id_test(test: &Test, out: &mut Statement) -> Result<(), Reply> {
    match test {
        Test::Compare(comparison, JsonValue::String(id)) => {
            out.text("`_id`").text(comparison.sql()).value(bytes(id));
            Ok(())
        }
        Test::In(ids) if ids.iter().all(|id| matches!(id, JsonValue::String(_))) => {
            list(ids, out.text("`_id`"), |id, out| {
                if let JsonValue::String(id) = id {
                    out.value(bytes(id));
                }
            });
            Ok(())
        }
        Test::Compare(..)
        | Test::In(_)
        | Test::Exists(_)
        | Test::Contains(_)
        | Test::Like(_)
        | Test::Regex(_) => field_test(b"$.\"_id\"", test, out),
    }
}

fn field_test(path: &[u8], test: &Test, out: &mut Statement) -> Result<(), Reply> {
    match test {
        Test::Compare(comparison, value) => compare(path, *comparison, value, out)?,
        Test::In(values) => match values.iter().any(|value| matches!(value, JsonValue::Null)) {
            false => is_in(path, values, out),
            true => {
                out.text("(");
                is_null(path, out);
                out.text(" OR ");
                is_in(path, values, out);
                out.text(")");
            }
        },
        Test::Exists(presence) => {
            out.text("JSON_CONTAINS_PATH(`doc`, 'one', ").value(bytes(path)).text(match presence {
                Presence::Present => ") = 1",
                Presence::Absent => ") = 0",
            });
        }
        Test::Contains(value) => {
            type_is(path, "'ARRAY'", out);
            extract(path, out.text(" AND JSON_CONTAINS("));
            out.text(", ").document(value.to_text()).text(")");
        }
        Test::Like(pattern) => {
            unquoted(path, out);
            out.text(" LIKE ").value(Value::text(pattern)).text(")");
        }
        Test::Regex(pattern) => {
            unquoted(path, out);
            out.text(" REGEXP ").value(Value::text(pattern)).text(")");
        }
    }
    Ok(())
}

fn compare(
    path: &[u8],
    comparison: Comparison,
    value: &JsonValue,
    out: &mut Statement,
) -> Result<(), Reply> {
    let types = match (comparison, value) {
        (Comparison::Equal, JsonValue::Null) => {
            is_null(path, out);
            return Ok(());
        }
        (Comparison::Equal, _) => {
            extract(path, out);
            out.text(" = ").document(value.to_text());
            return Ok(());
        }
        (_, JsonValue::Int(_) | JsonValue::UInt(_) | JsonValue::Double(_)) => {
            "'INTEGER', 'UNSIGNED INTEGER', 'DOUBLE', 'DECIMAL'"
        }
        (_, JsonValue::String(_)) => "'STRING'",
        (_, JsonValue::Bool(_)) => "'BOOLEAN'",
        (
            _,
            JsonValue::Null
            | JsonValue::Decimal(_)
            | JsonValue::Date(_)
            | JsonValue::Time(_)
            | JsonValue::DateTime(_)
            | JsonValue::Opaque(..)
            | JsonValue::Array(_)
            | JsonValue::Object(_),
        ) => {
            return Err(invalid(format_args!(
                "only numbers, strings and truth values have an order"
            )));
        }
    };
    type_is(path, types, out.text("("));
    extract(path, out.text(" AND "));
    out.text(comparison.sql()).document(value.to_text()).text(")");
    Ok(())
}

/// Missing, or the JSON `null`.
fn is_null(path: &[u8], out: &mut Statement) {
    extract(path, out.text("IFNULL(JSON_TYPE("));
    out.text("), 'NULL') = 'NULL'");
}

fn is_in(path: &[u8], values: &[JsonValue], out: &mut Statement) {
    extract(path, out);
    list(values, out, |value, out| {
        out.document(value.to_text());
    });
}

fn list(
    values: &[JsonValue],
    out: &mut Statement,
    mut write: impl FnMut(&JsonValue, &mut Statement),
) {
    out.text(" IN (");
    if values.is_empty() {
        out.text("NULL");
    }
    for (index, value) in values.iter().enumerate() {
        out.text(if index == 0 { "" } else { ", " });
        write(value, out);
    }
    out.text(")");
}

fn extract(path: &[u8], out: &mut Statement) {
    out.text("JSON_EXTRACT(`doc`, ").value(bytes(path)).text(")");
}

fn type_is(path: &[u8], types: &'static str, out: &mut Statement) {
    extract(path, out.text("JSON_TYPE("));
    out.text(") IN (").text(types).text(")");
}

/// The text of a string; the caller closes the parenthesis.
fn unquoted(path: &[u8], out: &mut Statement) {
    type_is(path, "'STRING'", out.text("("));
    extract(path, out.text(" AND JSON_UNQUOTE("));
    out.text(")");
}

fn bytes(bytes: &[u8]) -> Value {
    Value::Bytes(types::SqlBytes::from(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::read_json;

    fn sql(text: &str) -> Result<Statement, Reply> {
        let filter = Filter::parse(read_json("the filter", text.as_bytes())?)?;
        let mut out = Statement::default();
        condition(&filter, &[], &mut out)?;
        Ok(out)
    }

    #[test]
    fn paths_are_quoted() {
        let path = |text| json_path(text).map(|path| String::from_utf8(path).unwrap());
        assert_eq!(path("a.b.0").unwrap(), r#"$."a"."b"[0]"#);
        assert_eq!(path(r#"a"].x\"#).unwrap(), r#"$."a\"]"."x\\""#);
        assert_eq!(path("$**.*").unwrap(), r#"$."$**"."*""#);
        assert_eq!(path("a\0b").unwrap(), r#"$."a\u0000b""#);
        for text in ["", ".", "a..b", "a.", &"a.".repeat(40), &"x".repeat(2000)] {
            assert!(path(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn nothing_of_a_filter_is_in_the_text() {
        let evil = r#"'); DROP TABLE t; -- \" ` ?"#;
        let name = serde_json::Value::from(evil).to_string();
        for operator in ["$eq", "$gt", "$like", "$regex", "$contains"] {
            let filter = format!("{{{name}:{{\"{operator}\":{name}}}}}");
            let statement = sql(&filter).unwrap();
            assert!(!statement.sql().contains("DROP"), "{}", statement.sql());
            let marks = statement.sql().matches('?').count();
            assert_eq!(marks, statement.parameters().len());
        }
    }

    #[test]
    fn types_have_an_order_of_their_own() {
        let text = sql(r#"{"a":{"$gt":5}}"#).unwrap().sql().to_owned();
        assert!(text.contains("'INTEGER'") && text.contains(" > CAST(? AS JSON)"), "{text}");
        assert_eq!(sql(r#"{"_id":"x"}"#).unwrap().sql(), "(`_id` = ?)");
        assert_eq!(sql(r#"{"a":{"$in":[]}}"#).unwrap().sql(), "(JSON_EXTRACT(`doc`, ?) IN (NULL))");
        for text in [r#"{"a":{"$gt":null}}"#, r#"{"a":{"$lt":[1]}}"#, r#"{"a":{"$gte":{}}}"#] {
            assert_eq!(sql(text).unwrap_err().status.as_u16(), 400, "{text}");
        }
    }
}
