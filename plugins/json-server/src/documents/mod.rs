//! Documents: `/1.0/docs/SCHEMA/COLLECTION/ID`.
//!
//! A collection is an ordinary table as MySQL's document store makes it: `doc JSON`, and `_id`, which is generated from `doc` and is
//! the primary key. So SQL sees the same rows. docs/json-server.md describes the calls.

mod condition;
mod find;
mod indexes;
mod one;

use errors::ErrorCode;
use hyper::StatusCode;
use serde_json::{Value as Json, json};
use types::json::JsonValue;
use types::{SqlBytes, Value};

use crate::call::Call;
use crate::filter::read_json;
use crate::reply::Reply;
use crate::route::{Names, Route, login};
use crate::statement::{
    Database, Name, Statement, existing_schema, invalid, missing, run, with_database,
};
use changes::text;
use plugin_api::Answer;

/// Bytes of an `_id`: the column is VARBINARY(32).
const ID_BYTES_MAX: usize = 32;
/// Documents of one request.
const DOCUMENTS_MAX: usize = 10_000;
/// The name after a collection that is not the id of a document.
const RESERVED_ID: &str = "indexes";

pub const ROUTES: &[Route] = &[
    login("GET", "/1.0/docs/{schema}", collections),
    login("POST", "/1.0/docs/{schema}", create_collection),
    login("GET", "/1.0/docs/{schema}/{collection}", find::by_query),
    login("POST", "/1.0/docs/{schema}/{collection}", insert),
    login("PATCH", "/1.0/docs/{schema}/{collection}", find::patch),
    login("DELETE", "/1.0/docs/{schema}/{collection}", find::delete),
    login("POST", "/1.0/docs/{schema}/{collection}/find", find::by_body),
    login("GET", "/1.0/docs/{schema}/{collection}/indexes", indexes::list),
    login("POST", "/1.0/docs/{schema}/{collection}/indexes", indexes::create),
    login("DELETE", "/1.0/docs/{schema}/{collection}/indexes/{name}", indexes::remove),
    login("GET", "/1.0/docs/{schema}/{collection}/{id}", one::get),
    login("PUT", "/1.0/docs/{schema}/{collection}/{id}", one::put),
    login("PATCH", "/1.0/docs/{schema}/{collection}/{id}", one::patch),
    login("DELETE", "/1.0/docs/{schema}/{collection}/{id}", one::delete),
];

/// A collection by its names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// Its schema.
    pub schema: Name,
    /// Its table.
    pub name: Name,
}

impl Collection {
    /// The collection that the first two parts of a path name.
    fn named(names: &Names) -> Result<Collection, Reply> {
        Ok(Collection { schema: Name::new(&names[0])?, name: Name::new(&names[1])? })
    }

    /// `text` and the table.
    fn statement(&self, text: &'static str) -> Statement {
        let mut statement = Statement::new(text);
        statement.table(&self.schema, &self.name);
        statement
    }

    /// Checks that the collection is there.
    fn check(&self, database: &mut dyn Database) -> Result<(), Reply> {
        let mut statement = self.statement("SELECT `doc`, `_id` FROM ");
        statement.text(" LIMIT 0");
        self.run(database, &statement).map(drop)
    }

    /// Runs a statement on the collection. A table without the columns of one is no collection.
    fn run(&self, database: &mut dyn Database, statement: &Statement) -> Result<Answer, Reply> {
        database.run(statement).map_err(|error| match error.code() {
            ErrorCode::BAD_FIELD_ERROR => missing("the table is not a collection"),
            _ => Reply::sql_error(&error),
        })
    }

    /// Makes the table.
    fn create(&self, database: &mut dyn Database, begin: &'static str) -> Result<(), Reply> {
        let mut statement = self.statement(begin);
        statement.text(
            " (`doc` JSON NOT NULL, `_id` VARBINARY(32) GENERATED ALWAYS AS \
             (JSON_UNQUOTE(JSON_EXTRACT(`doc`, '$._id'))) STORED NOT NULL, PRIMARY KEY (`_id`)) CHARSET utf8mb4",
        );
        run(database, &statement).map(drop)
    }

    /// Runs `work`; when the table is missing, makes it and runs `work` again.
    fn created_on_demand<T>(
        &self,
        database: &mut dyn Database,
        work: impl Fn(&mut dyn Database) -> Result<T, Reply>,
    ) -> Result<T, Reply> {
        let absent = match work(database) {
            Err(reply) if reply.status == StatusCode::NOT_FOUND => reply,
            done => return done,
        };
        let mut statement =
            Statement::new("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = ");
        statement.value(self.schema.value()).text(" AND TABLE_NAME = ").value(self.name.value());
        let count = run(database, &statement)?;
        if database.in_transaction()
            || !matches!(count.rows.as_slice(), [row] if row[..] == [Value::Int(0)])
        {
            return Err(absent);
        }
        self.create(database, "CREATE TABLE IF NOT EXISTS ")?;
        work(database)
    }
}

/// Definitions end transactions.
fn no_transaction(database: &dyn Database) -> Result<(), Reply> {
    match database.in_transaction() {
        false => Ok(()),
        true => Err(Reply::failure(
            StatusCode::CONFLICT,
            "a definition cannot change inside a transaction",
        )),
    }
}

fn collections(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let schema = existing_schema(database, &names[0])?;
        let mut statement = Statement::new(
            "SELECT d.TABLE_NAME FROM information_schema.COLUMNS d JOIN information_schema.COLUMNS i \
             ON i.TABLE_SCHEMA = d.TABLE_SCHEMA AND i.TABLE_NAME = d.TABLE_NAME WHERE d.COLUMN_NAME = 'doc' \
             AND d.DATA_TYPE = 'json' AND i.COLUMN_NAME = '_id' AND i.COLUMN_KEY = 'PRI' AND d.TABLE_SCHEMA = ",
        );
        statement.value(schema.value()).text(" ORDER BY d.TABLE_NAME");
        let rows = run(database, &statement)?.rows;
        let found: Vec<Json> = rows
            .iter()
            .filter_map(|row| text(row.first()?))
            .map(|name| json!({ "name": name }))
            .collect();
        Ok(Reply::document(&json!({ "collections": found })))
    })
}

fn create_collection(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let body = call.request.json()?;
        let name = match &body {
            Json::Object(fields) if fields.len() == 1 => fields.get("name").and_then(Json::as_str),
            _ => None,
        };
        let name = name.ok_or_else(|| invalid(format_args!("the body is {{\"name\": \"..\"}}")))?;
        let collection = Collection { schema: Name::new(&names[0])?, name: Name::new(name)? };
        no_transaction(database)?;
        collection.create(database, "CREATE TABLE ")?;
        let created = Reply::document(&json!({ "name": name }));
        Ok(Reply { status: StatusCode::CREATED, ..created })
    })
}

/// `POST`: one document or an array of them; all or none are inserted.
fn insert(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let collection = Collection::named(names)?;
        let documents = match read_json("the body", &call.request.body)? {
            JsonValue::Array(documents) => documents,
            document => vec![document],
        };
        if documents.is_empty() || documents.len() > DOCUMENTS_MAX {
            return Err(invalid(format_args!("a request has 1 to {DOCUMENTS_MAX} documents")));
        }
        let mut statement = collection.statement("INSERT INTO ");
        statement.text(" (`doc`) VALUES ");
        let mut ids = Vec::with_capacity(documents.len());
        for (index, document) in documents.into_iter().enumerate() {
            let (id, document) = with_id(document, None)?;
            statement.text(if index == 0 { "(" } else { ", (" }).document(document).text(")");
            ids.push(id);
        }
        let answer = collection
            .created_on_demand(database, |database| collection.run(database, &statement))?;
        let body = json!({ "ids": ids, "affected_rows": answer.affected_rows });
        Ok(Reply { status: StatusCode::CREATED, ..Reply::document(&body) })
    })
}

/// The id of a document, and its text with the id in it: `given`, its own or a new one.
fn with_id(document: JsonValue, given: Option<&str>) -> Result<(String, Vec<u8>), Reply> {
    let JsonValue::Object(mut object) = document else {
        return Err(invalid(format_args!("a document is an object")));
    };
    let own = own_id(object.get(b"_id"))?;
    let id = match (given, own) {
        (Some(given), Some(own)) if given != own => {
            return Err(invalid(format_args!("_id is {own:?}, and the path names {given:?}")));
        }
        (Some(given), _) => given.to_owned(),
        (None, Some(own)) => own,
        (None, None) => new_id()?,
    };
    check_id(&id)?;
    object.insert(b"_id".to_vec(), JsonValue::string(&id));
    let document = JsonValue::Object(object);
    Ok((id, document.to_text()))
}

/// The `_id` of a document or patch.
fn own_id(value: Option<&JsonValue>) -> Result<Option<String>, Reply> {
    match value {
        None => Ok(None),
        Some(JsonValue::String(bytes)) => Ok(Some(String::from_utf8_lossy(bytes).into_owned())),
        Some(_) => Err(invalid(format_args!("_id is not a string"))),
    }
}

fn check_id(id: &str) -> Result<(), Reply> {
    match (1..=ID_BYTES_MAX).contains(&id.len()) && id != RESERVED_ID {
        true => Ok(()),
        false => Err(invalid(format_args!(
            "_id has 1 to {ID_BYTES_MAX} bytes, and is not {RESERVED_ID:?}"
        ))),
    }
}

/// Seconds and random bits as 28 hexadecimal digits: ids that were made later sort later.
fn new_id() -> Result<String, Reply> {
    let mut random = [0; 10];
    sys::entropy::fill(&mut random)
        .map_err(|_| Reply::failure(StatusCode::SERVICE_UNAVAILABLE, "no random bytes"))?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("{:08x}{random}", sys::clock::wall().as_secs()))
}

fn id_value(id: &str) -> Value {
    Value::Bytes(SqlBytes::from(id.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> JsonValue {
        read_json("the test", text.as_bytes()).unwrap()
    }

    #[test]
    fn a_document_has_an_id() {
        let (id, text) = with_id(document(r#"{"a":1}"#), Some("x")).unwrap();
        assert_eq!((id.as_str(), text.as_slice()), ("x", &br#"{"a": 1, "_id": "x"}"#[..]));
        assert_eq!(with_id(document(r#"{"_id":"k"}"#), None).unwrap().0, "k");
        let (first, _) = with_id(document("{}"), None).unwrap();
        let (second, _) = with_id(document("{}"), None).unwrap();
        assert!(first.len() == 28 && first != second, "{first} {second}");
    }

    #[test]
    fn wrong_ids_are_refused() {
        let long = format!("{{\"_id\":\"{}\"}}", "x".repeat(33));
        for text in [
            "[]",
            "1",
            r#"{"_id":1}"#,
            r#"{"_id":null}"#,
            r#"{"_id":""}"#,
            r#"{"_id":"indexes"}"#,
            &long,
        ] {
            assert_eq!(with_id(document(text), None).unwrap_err().status.as_u16(), 400, "{text}");
        }
        assert!(with_id(document(r#"{"_id":"a"}"#), Some("b")).is_err());
    }
}
