//! One document by its id: get, put, patch, delete, with `ETag`, `If-Match` and `If-None-Match`.

use errors::ErrorCode;
use hyper::{StatusCode, header};
use types::Value;
use types::json::{JsonValue, write_text};

use super::{Collection, Names, check_id, id_value, own_id, with_id};
use crate::call::Call;
use crate::filter::read_json;
use crate::reply::Reply;
use crate::statement::{Database, Statement, atomically, invalid, missing, with_database};
use changes::text;

/// The text of an `ETag` without its quotes, computed from the document.
const ETAG: &str = "LEFT(SHA2(`doc`, 256), 32)";
/// How often a put starts again when another one was faster.
const ATTEMPTS_MAX: usize = 3;

/// What the caller wants of the document that is there.
#[derive(Debug, Default, PartialEq, Eq)]
struct Conditions {
    /// `If-Match`: one of these, or any.
    matches: Option<Vec<String>>,
    /// `If-None-Match`: none of these, or nothing at all.
    none_matches: Option<Vec<String>>,
}

impl Conditions {
    fn of(call: &Call<'_>) -> Result<Conditions, Reply> {
        let tags = |name| match call.request.headers.contains_key(&name) {
            false => Ok(None),
            true => match call.request.header(name).and_then(entity_tags) {
                Some(tags) => Ok(Some(tags)),
                None => {
                    Err(invalid(format_args!("If-Match and If-None-Match take * or quoted tags")))
                }
            },
        };
        Ok(Conditions {
            matches: tags(header::IF_MATCH)?,
            none_matches: tags(header::IF_NONE_MATCH)?,
        })
    }

    fn check(&self, etag: Option<&str>) -> Result<(), Reply> {
        let fits = |tags: &[String]| {
            etag.is_some_and(|etag| tags.iter().any(|tag| tag == "*" || tag == etag))
        };
        let is_met = self.matches.as_deref().is_none_or(fits)
            && !self.none_matches.as_deref().is_some_and(fits);
        match is_met {
            true => Ok(()),
            false => Err(Reply::failure(
                StatusCode::PRECONDITION_FAILED,
                "the document is not in the state that the request names",
            )),
        }
    }
}

/// `*` or the texts of `"a", W/"b"`.
fn entity_tags(text: &str) -> Option<Vec<String>> {
    let tag = |tag: &str| match tag.trim() {
        "*" => Some("*".to_owned()),
        tag => {
            let inner = tag.strip_prefix("W/").unwrap_or(tag);
            let inner = inner.strip_prefix('"')?.strip_suffix('"')?;
            (!inner.contains('"') && inner != "*").then(|| inner.to_owned())
        }
    };
    text.split(',').map(tag).collect()
}

/// The document with its tag.
struct Stored {
    text: Vec<u8>,
    etag: String,
}

impl Stored {
    fn reply(self, status: StatusCode) -> Reply {
        Reply::json(status, self.text).with("etag", format!("\"{}\"", self.etag))
    }
}

fn read(
    database: &mut dyn Database,
    collection: &Collection,
    id: &str,
    end: &'static str,
) -> Result<Option<Stored>, Reply> {
    let mut statement = Statement::new("SELECT `doc`, ");
    statement.text(ETAG).text(" FROM ").table(&collection.schema, &collection.name);
    statement.text(" WHERE `_id` = ").value(id_value(id)).text(end);
    let mut answer = collection.run(database, &statement)?;
    Ok(answer.rows.pop().and_then(|row| {
        let [Value::Json(document), etag] = &row[..] else { return None };
        let mut bytes = Vec::new();
        write_text(document, &mut bytes);
        Some(Stored { text: bytes, etag: text(etag)? })
    }))
}

fn no_document() -> Reply {
    missing("no document has this id")
}

/// Reads the document for a change, locks it, and checks the caller's conditions.
fn locked(
    database: &mut dyn Database,
    collection: &Collection,
    id: &str,
    conditions: &Conditions,
) -> Result<Option<Stored>, Reply> {
    let stored = read(database, collection, id, " FOR UPDATE")?;
    conditions.check(stored.as_ref().map(|stored| stored.etag.as_str()))?;
    Ok(stored)
}

/// `GET`
pub fn get(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let conditions = Conditions::of(call)?;
        let collection = Collection::named(names)?;
        let stored = read(database, &collection, &names[2], "")?.ok_or_else(no_document)?;
        let changed = Conditions { matches: None, none_matches: conditions.none_matches };
        if changed.check(Some(&stored.etag)).is_err() {
            let etag = format!("\"{}\"", stored.etag);
            return Ok(
                Reply { status: StatusCode::NOT_MODIFIED, ..Reply::empty() }.with("etag", etag)
            );
        }
        Ok(stored.reply(StatusCode::OK))
    })
}

/// `PUT`: the whole document.
pub fn put(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let conditions = Conditions::of(call)?;
        let collection = Collection::named(names)?;
        let id = &names[2];
        check_id(id)?;
        let (_, document) = with_id(read_json("the body", &call.request.body)?, Some(id))?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let done = collection.created_on_demand(database, |database| {
                atomically(database, |database| {
                    put_once(database, &collection, id, &document, &conditions)
                })
            });
            match done {
                // Another put made the document after we looked for it.
                Err(reply)
                    if is_race(&reply) && attempts < ATTEMPTS_MAX && !database.in_transaction() => {
                }
                done => return done,
            }
        }
    })
}

/// Whether the request may succeed when it is run again.
fn is_race(reply: &Reply) -> bool {
    let codes = [ErrorCode::DUP_ENTRY, ErrorCode::LOCK_DEADLOCK];
    let body: serde_json::Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    reply.status == StatusCode::CONFLICT
        && codes.iter().any(|code| body["error"]["code"] == u64::from(code.0))
}

fn put_once(
    database: &mut dyn Database,
    collection: &Collection,
    id: &str,
    document: &[u8],
    conditions: &Conditions,
) -> Result<Reply, Reply> {
    let before = locked(database, collection, id, conditions)?;
    let mut statement = match before {
        Some(_) => collection.statement("UPDATE "),
        None => collection.statement("INSERT INTO "),
    };
    statement.text(" SET `doc` = ").document(document.to_vec());
    if before.is_some() {
        statement.text(" WHERE `_id` = ").value(id_value(id));
    }
    collection.run(database, &statement)?;
    let status = if before.is_some() { StatusCode::OK } else { StatusCode::CREATED };
    let stored = read(database, collection, id, "")?.ok_or_else(no_document)?;
    Ok(stored.reply(status))
}

/// `PATCH`: a JSON merge patch (RFC 7396).
pub fn patch(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let conditions = Conditions::of(call)?;
        let collection = Collection::named(names)?;
        let id = &names[2];
        let patch = merge_patch(read_json("the body", &call.request.body)?, Some(id))?;
        atomically(database, |database| {
            locked(database, &collection, id, &conditions)?.ok_or_else(no_document)?;
            let mut statement = collection.statement("UPDATE ");
            statement.text(" SET `doc` = JSON_MERGE_PATCH(`doc`, ").document(patch);
            statement.text(") WHERE `_id` = ").value(id_value(id));
            collection.run(database, &statement)?;
            let stored = read(database, &collection, id, "")?.ok_or_else(no_document)?;
            Ok(stored.reply(StatusCode::OK))
        })
    })
}

/// The text of a patch, which does not change `_id`.
pub fn merge_patch(patch: JsonValue, id: Option<&str>) -> Result<Vec<u8>, Reply> {
    let JsonValue::Object(object) = &patch else {
        return Err(invalid(format_args!("the patch is not an object")));
    };
    match own_id(object.get(b"_id"))? {
        Some(own) if Some(own.as_str()) != id => {
            Err(invalid(format_args!("a patch cannot change _id")))
        }
        _ => Ok(patch.to_text()),
    }
}

/// `DELETE`
pub fn delete(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let conditions = Conditions::of(call)?;
        let collection = Collection::named(names)?;
        let id = &names[2];
        atomically(database, |database| {
            locked(database, &collection, id, &conditions)?.ok_or_else(no_document)?;
            let mut statement = collection.statement("DELETE FROM ");
            statement.text(" WHERE `_id` = ").value(id_value(id));
            collection.run(database, &statement)?;
            Ok(Reply::empty())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Option<Vec<String>> {
        entity_tags(text)
    }

    #[test]
    fn conditions_compare_tags() {
        let conditions = |matches: Option<&str>, none: Option<&str>| Conditions {
            matches: matches.map(|text| tags(text).unwrap()),
            none_matches: none.map(|text| tags(text).unwrap()),
        };
        assert!(conditions(None, None).check(None).is_ok());
        assert!(conditions(Some("\"a\", \"b\""), None).check(Some("b")).is_ok());
        assert!(conditions(Some("\"a\""), None).check(Some("b")).is_err());
        assert!(conditions(Some("*"), None).check(None).is_err());
        assert!(conditions(None, Some("*")).check(None).is_ok());
        assert!(conditions(None, Some("*")).check(Some("a")).is_err());
        assert!(conditions(None, Some("W/\"a\"")).check(Some("a")).is_err());
        for text in ["a", "\"a", "", "\"*\"", "\"a\"b\""] {
            assert_eq!(tags(text), None, "{text}");
        }
    }

    #[test]
    fn a_patch_keeps_the_id() {
        let patch =
            |text: &str| merge_patch(read_json("the test", text.as_bytes()).unwrap(), Some("a"));
        assert!(patch(r#"{"x":null}"#).is_ok());
        assert!(patch(r#"{"_id":"a"}"#).is_ok());
        for text in [r#"{"_id":"b"}"#, r#"{"_id":null}"#, "[]", "null", r#""x""#] {
            assert!(patch(text).is_err(), "{text}");
        }
    }
}
