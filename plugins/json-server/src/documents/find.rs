//! Documents by example: find, patch and delete.

use types::Value;
use types::json::{JsonObject, JsonRef, JsonValue};

use super::condition::{condition, conjuncts, json_path};
use super::indexes::{self, Index};
use super::one::merge_patch;
use super::{Collection, Names, id_value, no_transaction};
use crate::call::Call;
use crate::filter::{Filter, read_json};
use crate::json::write_string;
use crate::reply::Reply;
use crate::statement::{Database, Statement, invalid, run, with_database};
use changes::text;
use hyper::StatusCode;

/// Documents of an answer when the request names no number, and at most.
const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 10_000;
/// Paths in a sort or a projection.
const PATHS_MAX: usize = 32;

/// A request to find documents.
#[derive(Debug)]
struct Query {
    filter: Filter,
    /// Paths with their directions.
    sort: Vec<(String, Direction)>,
    /// Paths of a projection; empty for whole documents.
    fields: Vec<String>,
    limit: u64,
    offset: u64,
    after: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Ascending,
    Descending,
}

impl Query {
    fn new() -> Query {
        Query {
            filter: Filter::everything(),
            sort: Vec::new(),
            fields: Vec::new(),
            limit: LIMIT_DEFAULT,
            offset: 0,
            after: None,
        }
    }

    fn from_query(call: &Call<'_>) -> Result<Query, Reply> {
        let mut query = Query::new();
        for (name, value) in &call.request.query {
            match name.as_str() {
                "filter" => query.filter = Filter::parse(read_json("filter", value.as_bytes())?)?,
                "sort" => query.sort = directions(value.split(','))?,
                "fields" => query.fields = paths(value.split(','))?,
                "limit" => query.limit = number(name, value, LIMIT_MAX)?,
                "offset" => query.offset = number(name, value, u64::from(u32::MAX))?,
                "after" => query.after = Some(value.clone()),
                _ => return Err(invalid(format_args!("no parameter is called {name:?}"))),
            }
        }
        query.checked()
    }

    fn from_body(body: JsonValue) -> Result<Query, Reply> {
        let JsonValue::Object(body) = body else {
            return Err(invalid(format_args!("the body is not an object")));
        };
        let mut query = Query::new();
        for (name, value) in body.into_members() {
            let name = String::from_utf8_lossy(&name).into_owned();
            match name.as_str() {
                "filter" => query.filter = Filter::parse(value)?,
                "sort" => query.sort = directions(strings(&name, &value)?.into_iter())?,
                "fields" => query.fields = paths(strings(&name, &value)?.into_iter())?,
                "limit" => query.limit = integer(&name, &value, LIMIT_MAX)?,
                "offset" => query.offset = integer(&name, &value, u64::from(u32::MAX))?,
                "after" => {
                    let JsonValue::String(id) = value else {
                        return Err(invalid(format_args!("after is not a string")));
                    };
                    query.after = Some(String::from_utf8_lossy(&id).into_owned());
                }
                _ => return Err(invalid(format_args!("no field is called {name:?}"))),
            }
        }
        query.checked()
    }

    fn checked(self) -> Result<Query, Reply> {
        match self.after.is_some() && (!self.sort.is_empty() || self.offset > 0) {
            true => Err(invalid(format_args!("after goes with neither sort nor offset"))),
            false => Ok(self),
        }
    }

    /// The statement; it asks for one document more than wanted, to know whether there are more.
    fn statement(&self, collection: &Collection, indexes: &[Index]) -> Result<Statement, Reply> {
        let mut statement = collection.statement("SELECT `doc`, `_id` FROM ");
        condition(&self.filter, indexes, statement.text(" WHERE "))?;
        if let Some(after) = &self.after {
            statement.text(" AND `_id` > ").value(id_value(after));
        }
        statement.text(" ORDER BY ");
        for (path, direction) in &self.sort {
            let path = Value::Bytes(types::SqlBytes::from(json_path(path)?));
            statement.text("JSON_EXTRACT(`doc`, ").value(path).text(")");
            statement.text(match direction {
                Direction::Ascending => ", ",
                Direction::Descending => " DESC, ",
            });
        }
        statement.text("`_id` LIMIT ").number(self.limit + 1).text(" OFFSET ").number(self.offset);
        Ok(statement)
    }
}

fn number(name: &str, value: &str, max: u64) -> Result<u64, Reply> {
    let digits =
        value.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.parse().ok()).flatten();
    match digits {
        Some(number) if number <= max => Ok(number),
        _ => Err(invalid(format_args!("{name} is a number up to {max}"))),
    }
}

fn integer(name: &str, value: &JsonValue, max: u64) -> Result<u64, Reply> {
    if let JsonValue::Int(number) = value
        && let Ok(number) = u64::try_from(*number)
        && number <= max
    {
        return Ok(number);
    }
    Err(invalid(format_args!("{name} is a number up to {max}")))
}

fn strings<'a>(name: &str, value: &'a JsonValue) -> Result<Vec<&'a str>, Reply> {
    let wrong = || invalid(format_args!("{name} is an array of strings"));
    let JsonValue::Array(values) = value else { return Err(wrong()) };
    let text = |value: &'a JsonValue| {
        let JsonValue::String(bytes) = value else { return Err(wrong()) };
        std::str::from_utf8(bytes).map_err(|_| wrong())
    };
    values.iter().map(text).collect()
}

fn paths<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<String>, Reply> {
    let paths: Vec<String> = texts.map(str::to_owned).collect();
    if paths.len() > PATHS_MAX {
        return Err(invalid(format_args!("at most {PATHS_MAX} paths")));
    }
    for path in &paths {
        json_path(path)?;
    }
    Ok(paths)
}

fn directions<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<(String, Direction)>, Reply> {
    let direction = |text: String| match text.strip_prefix('-') {
        Some(path) => (path.to_owned(), Direction::Descending),
        None => (text, Direction::Ascending),
    };
    let sort: Vec<_> = paths(texts)?.into_iter().map(direction).collect();
    // What follows a minus sign is a path too.
    paths(sort.iter().map(|(path, _)| path.as_str()))?;
    Ok(sort)
}

/// The collection's indexes, when the filter may use one.
fn helpful_indexes(
    database: &mut dyn Database,
    collection: &Collection,
    filter: &Filter,
) -> Result<Vec<Index>, Reply> {
    let is_field = |filter: &&Filter| matches!(filter, Filter::Field(path, _) if path != "_id");
    match conjuncts(filter).iter().any(is_field) {
        true => indexes::of(database, collection),
        false => Ok(Vec::new()),
    }
}

fn answer(call: &Call<'_>, names: &Names, query: Result<Query, Reply>) -> Reply {
    with_database(call, |database| {
        let query = query?;
        let collection = Collection::named(names)?;
        let indexes = helpful_indexes(database, &collection, &query.filter)?;
        let statement = query.statement(&collection, &indexes)?;
        let mut rows = collection.run(database, &statement)?.rows;
        let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let more = rows.len() > wanted;
        rows.truncate(wanted);
        let mut body = b"{\"documents\":[".to_vec();
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            if let Some(Value::Json(document)) = row.first() {
                write(document, &query.fields, &mut body);
            }
        }
        body.extend_from_slice(format!("],\"count\":{},\"next\":", rows.len()).as_bytes());
        let last = rows.last().and_then(|row| text(row.get(1)?));
        match last.filter(|_| more && query.sort.is_empty()) {
            Some(id) => write_string(id.as_bytes(), &mut body),
            None => body.extend_from_slice(b"null"),
        }
        body.extend_from_slice(format!(",\"more\":{more}}}").as_bytes());
        Ok(Reply::json(StatusCode::OK, body))
    })
}

/// Appends the document, or the parts of it that `fields` names.
fn write(document: &[u8], fields: &[String], out: &mut Vec<u8>) {
    if fields.is_empty() {
        types::json::write_text(document, out);
        return;
    }
    let document = JsonValue::from_ref(JsonRef::new(document));
    let paths: Vec<Vec<&str>> = fields
        .iter()
        .map(String::as_str)
        .chain(["_id"])
        .map(|path| path.split('.').collect())
        .collect();
    out.extend_from_slice(&project(&document, &paths).to_text());
}

/// The named parts of a value; a path goes into each element of an array.
fn project(value: &JsonValue, paths: &[Vec<&str>]) -> JsonValue {
    match value {
        JsonValue::Object(object) => {
            let mut kept = JsonObject::new();
            for (name, member) in object.members() {
                let inner: Vec<Vec<&str>> = paths
                    .iter()
                    .filter(|path| {
                        path.first().is_some_and(|first| first.as_bytes() == name.as_slice())
                    })
                    .map(|path| path[1..].to_vec())
                    .collect();
                if inner.iter().any(Vec::is_empty) {
                    kept.insert(name.clone(), member.clone());
                } else if !inner.is_empty()
                    && matches!(member, JsonValue::Object(_) | JsonValue::Array(_))
                {
                    kept.insert(name.clone(), project(member, &inner));
                }
            }
            JsonValue::Object(kept)
        }
        JsonValue::Array(elements) => {
            let objects = elements.iter().filter(|element| matches!(element, JsonValue::Object(_)));
            JsonValue::Array(objects.map(|element| project(element, paths)).collect())
        }
        scalar => scalar.clone(),
    }
}

/// `GET /1.0/docs/SCHEMA/COLLECTION`
pub fn by_query(call: &Call<'_>, names: &Names) -> Reply {
    answer(call, names, Query::from_query(call))
}

/// `POST /1.0/docs/SCHEMA/COLLECTION/find`
pub fn by_body(call: &Call<'_>, names: &Names) -> Reply {
    answer(call, names, read_json("the body", &call.request.body).and_then(Query::from_body))
}

/// `PATCH /1.0/docs/SCHEMA/COLLECTION` with `{"filter": {..}, "patch": {..}}`
pub fn patch(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let wrong =
            || invalid(format_args!("the body is {{\"filter\": {{..}}, \"patch\": {{..}}}}"));
        let JsonValue::Object(mut body) = read_json("the body", &call.request.body)? else {
            return Err(wrong());
        };
        let (filter, patch) = (body.remove(b"filter"), body.remove(b"patch"));
        let (Some(filter), Some(patch), true) = (filter, patch, body.is_empty()) else {
            return Err(wrong());
        };
        let (filter, patch) = (Filter::parse(filter)?, merge_patch(patch, None)?);
        let collection = Collection::named(names)?;
        let mut statement = collection.statement("UPDATE ");
        statement.text(" SET `doc` = JSON_MERGE_PATCH(`doc`, ").document(patch).text(") WHERE ");
        change(database, &collection, &filter, statement)
    })
}

/// `DELETE /1.0/docs/SCHEMA/COLLECTION` with `filter=` for some documents, or `drop=true` for all and the collection.
pub fn delete(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let collection = Collection::named(names)?;
        match call.request.query.as_slice() {
            [(name, value)] if name == "filter" => {
                let filter = Filter::parse(read_json("filter", value.as_bytes())?)?;
                let mut statement = collection.statement("DELETE FROM ");
                statement.text(" WHERE ");
                change(database, &collection, &filter, statement)
            }
            [(name, value)] if name == "drop" && value == "true" => {
                no_transaction(database)?;
                collection.check(database)?;
                run(database, &collection.statement("DROP TABLE "))?;
                Ok(Reply::empty())
            }
            _ => Err(invalid(format_args!("filter={{..}} or drop=true says what to delete"))),
        }
    })
}

/// Ends a statement that changes documents with its condition, and runs it.
fn change(
    database: &mut dyn Database,
    collection: &Collection,
    filter: &Filter,
    mut statement: Statement,
) -> Result<Reply, Reply> {
    let indexes = helpful_indexes(database, collection, filter)?;
    condition(filter, &indexes, &mut statement)?;
    let answer = collection.run(database, &statement)?;
    Ok(Reply::document(&serde_json::json!({ "affected_rows": answer.affected_rows })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projected(document: &str, fields: &[&str]) -> String {
        let document = read_json("the test", document.as_bytes()).unwrap().to_binary();
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        let mut out = Vec::new();
        write(&document, &fields, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_projection_keeps_the_named_parts() {
        let document = r#"{"_id":"1","a":{"b":1,"c":2},"d":[{"e":1,"f":2},3],"g":4}"#;
        assert_eq!(projected(document, &["a.b"]), r#"{"a": {"b": 1}, "_id": "1"}"#);
        assert_eq!(projected(document, &["d.e", "g"]), r#"{"d": [{"e": 1}], "g": 4, "_id": "1"}"#);
        assert_eq!(projected(document, &["g.x", "zz"]), r#"{"_id": "1"}"#);
    }

    #[test]
    fn a_query_has_limits() {
        let query = |text: &str| Query::from_body(read_json("the test", text.as_bytes()).unwrap());
        let sql = |text: &str| {
            let collection = Collection::named(&vec!["s".into(), "t".into()]).unwrap();
            query(text).unwrap().statement(&collection, &[]).unwrap().sql().to_owned()
        };
        assert_eq!(
            sql(r#"{"sort":["-a.b"],"limit":2,"offset":1}"#),
            "SELECT `doc`, `_id` FROM `s`.`t` WHERE (TRUE) ORDER BY JSON_EXTRACT(`doc`, ?) DESC, `_id` LIMIT 3 OFFSET 1"
        );
        assert!(sql(r#"{"after":"x"}"#).contains("AND `_id` > ?"));
        let wrong = [
            "[]",
            r#"{"limit":-1}"#,
            r#"{"limit":10001}"#,
            r#"{"limit":"1"}"#,
            r#"{"x":1}"#,
            r#"{"sort":[1]}"#,
            r#"{"sort":["-"]}"#,
            r#"{"sort":"a"}"#,
            r#"{"after":1}"#,
            r#"{"after":"a","sort":["b"]}"#,
            r#"{"fields":["a..b"]}"#,
        ];
        for text in wrong {
            assert_eq!(query(text).unwrap_err().status.as_u16(), 400, "{text}");
        }
    }
}
