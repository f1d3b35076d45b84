//! Indexes on paths of documents: a virtual column `_ix_NAME` that holds the value at the path, and an index on it, whose comment
//! names the path and the type.
//!
//! A document whose value at the path does not fit the type is refused. So a condition on the path implies a condition on the
//! column, which is added to it (`Index::condition`): the answer never depends on the indexes.

use hyper::StatusCode;
use serde_json::{Value as Json, json};
use types::Value;
use types::json::JsonValue;

use super::{Collection, Names};
use crate::call::Call;
use crate::filter::{Comparison, Test};
use crate::reply::Reply;
use crate::statement::{Database, Name, Statement, invalid, is_plain, missing, run, with_database};

/// Longest name of an index: its column has a prefix.
const NAME_LENGTH_MAX: usize = 48;
/// Longest text in an index, in characters.
const TEXT_LENGTH_MAX: u32 = 512;
/// Before the name of the index in the name of its column.
const PREFIX: &str = "_ix_";

/// The type of the values in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexType {
    /// `bigint`
    Integer,
    /// `double`
    Double,
    /// `varchar(n)`
    Text(u32),
    /// `datetime`
    DateTime,
}

/// An index of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// The path in dotted form.
    pub path: String,
    /// The type of its values.
    pub ty: IndexType,
    /// Whether a value may occur in one document only.
    pub is_unique: bool,
}

impl IndexType {
    fn parse(text: &str) -> Option<IndexType> {
        Some(match text {
            "bigint" => IndexType::Integer,
            "double" => IndexType::Double,
            "datetime" => IndexType::DateTime,
            _ => {
                let length = text.strip_prefix("varchar(")?.strip_suffix(')')?.parse().ok()?;
                (1..=TEXT_LENGTH_MAX).contains(&length).then_some(IndexType::Text(length))?
            }
        })
    }

    fn text(self) -> String {
        match self {
            IndexType::Integer => "bigint".into(),
            IndexType::Double => "double".into(),
            IndexType::DateTime => "datetime".into(),
            IndexType::Text(length) => format!("varchar({length})"),
        }
    }
}

impl Index {
    fn column(&self) -> Result<Name, Reply> {
        Name::new(&format!("{PREFIX}{}", self.name))
    }

    /// The comment that describes it.
    fn comment(&self) -> String {
        format!("$.{} {}", self.path, self.ty.text())
    }

    fn from_comment(name: &str, comment: &str, is_unique: bool) -> Option<Index> {
        let (path, ty) = comment.strip_prefix("$.")?.rsplit_once(' ')?;
        let ty = IndexType::parse(ty)?;
        Some(Index { name: name.to_owned(), path: path.to_owned(), ty, is_unique })
    }

    /// A condition on the column that follows from the test of the path, for the optimizer; `None` when the index is no help.
    pub fn condition(&self, test: &Test) -> Option<Statement> {
        let column = self.column().ok()?;
        let mut out = Statement::default();
        match test {
            Test::Compare(comparison, value) => {
                let value = self.key(*comparison, value)?;
                out.name(&column).text(comparison.weakened().sql());
                self.write_key(value, &mut out);
            }
            Test::In(values) if !values.is_empty() => {
                let keys = values.iter().map(|value| self.key(Comparison::Equal, value));
                let keys: Vec<Value> = keys.collect::<Option<_>>()?;
                out.name(&column).text(" IN (");
                for (index, key) in keys.into_iter().enumerate() {
                    out.text(if index == 0 { "" } else { ", " });
                    self.write_key(key, &mut out);
                }
                out.text(")");
            }
            Test::In(_) | Test::Exists(_) | Test::Contains(_) | Test::Like(_) | Test::Regex(_) => {
                return None;
            }
        }
        Some(out)
    }

    /// The value as the index holds it.
    fn key(&self, comparison: Comparison, value: &JsonValue) -> Option<Value> {
        match (self.ty, value) {
            (IndexType::Integer, JsonValue::Int(number)) => Some(Value::Int(*number)),
            (IndexType::Double, JsonValue::Int(number)) => Some(Value::Double(*number as f64)),
            (IndexType::Double, JsonValue::UInt(number)) => Some(Value::Double(*number as f64)),
            (IndexType::Double, JsonValue::Double(number)) => Some(Value::Double(*number)),
            (IndexType::Text(_), JsonValue::String(text)) => {
                Some(Value::Bytes(types::SqlBytes::from(text.as_slice())))
            }
            // Texts do not have the order of the timestamps that they name.
            (IndexType::DateTime, JsonValue::String(text)) if comparison == Comparison::Equal => {
                Some(Value::Bytes(types::SqlBytes::from(text.as_slice())))
            }
            (
                IndexType::Integer | IndexType::Double | IndexType::Text(_) | IndexType::DateTime,
                _,
            ) => None,
        }
    }

    fn write_key(&self, key: Value, out: &mut Statement) {
        match self.ty {
            IndexType::DateTime => out.text("CAST(").value(key).text(" AS DATETIME(6))"),
            IndexType::Integer | IndexType::Double | IndexType::Text(_) => out.value(key),
        };
    }

    /// The statement that makes the index.
    fn create(&self, collection: &Collection) -> Result<Statement, Reply> {
        let (column, name) = (self.column()?, Name::new(&self.name)?);
        let segments: Vec<String> =
            self.path.split('.').map(|segment| format!("\"{segment}\"")).collect();
        let path = format!("$.{}", segments.join("."));
        let mut out = Statement::new("ALTER TABLE ");
        out.table(&collection.schema, &collection.name).text(" ADD COLUMN ").name(&column);
        match self.ty {
            IndexType::Integer => out.text(" BIGINT"),
            IndexType::Double => out.text(" DOUBLE"),
            IndexType::DateTime => out.text(" DATETIME(6)"),
            IndexType::Text(length) => out
                .text(" VARCHAR(")
                .number(u64::from(length))
                .text(") CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_bin"),
        };
        out.text(" GENERATED ALWAYS AS (JSON_VALUE(`doc`, ").plain_literal(&path);
        match self.ty {
            IndexType::Integer => out.text(" RETURNING SIGNED"),
            IndexType::Double => out.text(" RETURNING DOUBLE"),
            IndexType::DateTime => out.text(" RETURNING DATETIME(6)"),
            IndexType::Text(length) => {
                out.text(" RETURNING CHAR(").number(u64::from(length)).text(")")
            }
        };
        out.text(" ERROR ON ERROR)) VIRTUAL, ADD");
        out.text(if self.is_unique { " UNIQUE INDEX " } else { " INDEX " }).name(&name);
        out.text(" (").name(&column).text(") COMMENT ").plain_literal(&self.comment());
        Ok(out)
    }

    fn json(&self) -> Json {
        json!({
            "name": self.name,
            "path": format!("$.{}", self.path),
            "type": self.ty.text(),
            "unique": self.is_unique,
        })
    }
}

/// The path of an index in dotted form: names of letters, digits, `_`, `-` and inner spaces, so that it can stand in a literal.
fn index_path(text: &str) -> Option<String> {
    let path = text.strip_prefix("$.")?;
    let is_name = |segment: &str| {
        let mut characters = segment.chars();
        let is_number = segment.bytes().all(|byte| byte.is_ascii_digit());
        !segment.is_empty()
            && !is_number
            && segment.trim() == segment
            && characters.all(|one| is_plain(one) && (one.is_alphanumeric() || "_- ".contains(one)))
    };
    (path.len() <= 256 && path.split('.').all(is_name)).then(|| path.to_owned())
}

/// The indexes of a collection.
///
/// # Errors
/// The statement's.
pub fn of(database: &mut dyn Database, collection: &Collection) -> Result<Vec<Index>, Reply> {
    let mut statement = Statement::new(
        "SELECT INDEX_NAME, INDEX_COMMENT, NON_UNIQUE = 0 FROM information_schema.STATISTICS \
         WHERE TABLE_SCHEMA = ",
    );
    statement.value(collection.schema.value()).text(" AND TABLE_NAME = ");
    statement.value(collection.name.value());
    statement.text(" AND COLUMN_NAME = CONCAT('_ix_', INDEX_NAME) ORDER BY INDEX_NAME");
    let answer = run(database, &statement)?;
    let index = |row: &Vec<Value>| {
        let [Value::Bytes(name), Value::Bytes(comment), unique] = &row[..] else { return None };
        Index::from_comment(
            std::str::from_utf8(name).ok()?,
            std::str::from_utf8(comment).ok()?,
            matches!(unique, Value::Int(1) | Value::UInt(1)),
        )
    };
    Ok(answer.rows.iter().filter_map(index).collect())
}

/// `GET /1.0/docs/SCHEMA/COLLECTION/indexes`
pub fn list(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let collection = Collection::named(names)?;
        collection.check(database)?;
        let indexes: Vec<Json> = of(database, &collection)?.iter().map(Index::json).collect();
        Ok(Reply::document(&json!({ "indexes": indexes })))
    })
}

/// `POST /1.0/docs/SCHEMA/COLLECTION/indexes`
pub fn create(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let collection = Collection::named(names)?;
        let index = read(&call.request.json()?)?;
        super::no_transaction(database)?;
        collection.check(database)?;
        if of(database, &collection)?.iter().any(|known| known.name == index.name) {
            return Err(Reply::failure(StatusCode::CONFLICT, "an index has this name"));
        }
        run(database, &index.create(&collection)?)?;
        Ok(Reply { status: StatusCode::CREATED, ..Reply::document(&index.json()) })
    })
}

/// Reads the description of an index.
fn read(body: &Json) -> Result<Index, Reply> {
    let Json::Object(fields) = body else {
        return Err(invalid(format_args!("the body is not an object")));
    };
    const KNOWN: [&str; 4] = ["path", "type", "name", "unique"];
    if let Some(unknown) = fields.keys().find(|field| !KNOWN.contains(&field.as_str())) {
        return Err(invalid(format_args!("no field is called {unknown:?}")));
    }
    let path = fields.get("path").and_then(Json::as_str).and_then(index_path);
    let path = path.ok_or_else(|| {
        invalid(format_args!("path is like \"$.a.b\", of letters, digits, _, - and spaces"))
    })?;
    let ty = fields.get("type").and_then(Json::as_str).and_then(IndexType::parse);
    let ty = ty.ok_or_else(|| {
        invalid(format_args!("type is bigint, double, datetime or varchar(1) to varchar(512)"))
    })?;
    let is_unique = match fields.get("unique") {
        None => false,
        Some(Json::Bool(unique)) => *unique,
        Some(_) => return Err(invalid(format_args!("unique is true or false"))),
    };
    let name = match fields.get("name") {
        None => path.replace(['.', ' ', '-'], "_").chars().take(NAME_LENGTH_MAX).collect(),
        Some(Json::String(name)) => name.clone(),
        Some(_) => return Err(invalid(format_args!("name is not a string"))),
    };
    check_name(&name)?;
    Ok(Index { name, path, ty, is_unique })
}

fn check_name(name: &str) -> Result<(), Reply> {
    let is_name = (1..=NAME_LENGTH_MAX).contains(&name.chars().count())
        && name.chars().all(|one| one.is_alphanumeric() || one == '_')
        && !name.eq_ignore_ascii_case("primary");
    match is_name {
        true => Ok(()),
        false => Err(invalid(format_args!("the name of an index has letters, digits and _"))),
    }
}

/// `DELETE /1.0/docs/SCHEMA/COLLECTION/indexes/NAME`
pub fn remove(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let collection = Collection::named(names)?;
        super::no_transaction(database)?;
        collection.check(database)?;
        let indexes = of(database, &collection)?;
        let found = indexes.iter().find(|index| index.name == names[2]);
        let index = found.ok_or_else(|| missing("no index has this name"))?;
        let mut statement = Statement::new("ALTER TABLE ");
        statement.table(&collection.schema, &collection.name).text(" DROP INDEX ");
        statement.name(&Name::new(&index.name)?).text(", DROP COLUMN ").name(&index.column()?);
        run(database, &statement)?;
        Ok(Reply::empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_an_index() {
        let index =
            read(&json!({"path": "$.a.b c", "type": "varchar(20)", "unique": true})).unwrap();
        assert_eq!((index.name.as_str(), index.path.as_str()), ("a_b_c", "a.b c"));
        let back = Index::from_comment("a_b_c", &index.comment(), true);
        assert_eq!(back, Some(index.clone()));
        let collection = Collection::named(&vec!["s".into(), "t".into()]).unwrap();
        assert_eq!(
            index.create(&collection).unwrap().sql(),
            "ALTER TABLE `s`.`t` ADD COLUMN `_ix_a_b_c` VARCHAR(20) CHARACTER SET utf8mb4 COLLATE \
             utf8mb4_0900_bin GENERATED ALWAYS AS (JSON_VALUE(`doc`, '$.\"a\".\"b c\"' RETURNING CHAR(20) \
             ERROR ON ERROR)) VIRTUAL, ADD UNIQUE INDEX `a_b_c` (`_ix_a_b_c`) COMMENT '$.a.b c varchar(20)'"
        );
    }

    #[test]
    fn what_could_leave_a_literal_is_refused() {
        let paths = [
            "a", "$", "$.", "$.a'b", "$.a\\", "$.a\"b", "$.*", "$[0]", "$.a..b", "$.a\0", "$.1",
            "$. a",
        ];
        for path in paths {
            assert!(read(&json!({"path": path, "type": "bigint"})).is_err(), "{path:?}");
        }
        for ty in ["int", "varchar(0)", "varchar(513)", "varchar(1) x", "BIGINT", "varchar(-1)", ""]
        {
            assert!(read(&json!({"path": "$.a", "type": ty})).is_err(), "{ty:?}");
        }
        for name in ["", "a`b", "primary", "a b"] {
            let body = json!({"path": "$.a", "type": "bigint", "name": name});
            assert!(read(&body).is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_index_helps_values_of_its_type() {
        let index = |ty| Index { name: "i".into(), path: "a".into(), ty, is_unique: false };
        let sql = |ty, comparison, value| {
            let test = Test::Compare(comparison, value);
            index(ty).condition(&test).map(|statement| statement.sql().to_owned())
        };
        let greater = sql(IndexType::Integer, Comparison::Greater, JsonValue::Int(5));
        assert_eq!(greater.as_deref(), Some("`_ix_i` >= ?"), "5.4 is 5 in the index");
        assert_eq!(sql(IndexType::Integer, Comparison::Equal, JsonValue::Double(5.5)), None);
        assert_eq!(sql(IndexType::Text(5), Comparison::Equal, JsonValue::Int(5)), None);
        let text = JsonValue::string("2024-01-01");
        assert_eq!(sql(IndexType::DateTime, Comparison::Less, text), None);
    }
}
