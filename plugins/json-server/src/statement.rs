//! Statements of the document and table calls: text that this crate wrote, names that are quoted here, values that are parameters.

use errors::Error;
use hyper::StatusCode;
use types::{SqlBytes, Value};

use crate::call::Call;
use crate::gateway::Lease;
use crate::held::{HeldSession, Kind, Purpose};
use crate::reply::Reply;
use plugin_api::Answer;

/// Longest identifier, in characters.
const NAME_CHARACTERS_MAX: usize = 64;
/// The header that names a transaction of `/1.0/transactions`.
pub const TRANSACTION: &str = "x-squall-transaction";

/// The name of a schema, table, column or index, which may stand in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

impl Name {
    /// Checks a name.
    ///
    /// # Errors
    /// Status 400 for one that no object can have.
    pub fn new(text: &str) -> Result<Name, Reply> {
        let is_possible = !text.is_empty()
            && text.chars().count() <= NAME_CHARACTERS_MAX
            && text.chars().all(|character| character != '\0' && character <= '\u{ffff}')
            && !text.ends_with(' ');
        match is_possible {
            true => Ok(Name(text.to_owned())),
            false => Err(invalid(format_args!("{text:?} is not the name of an object"))),
        }
    }

    /// The text, not quoted.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The text as a parameter.
    pub fn value(&self) -> Value {
        Value::text(&self.0)
    }
}

/// A statement with its parameters. Only fixed text and quoted names get into `sql`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statement {
    sql: String,
    parameters: Vec<Value>,
}

impl Statement {
    /// A statement that begins with `text`.
    pub fn new(text: &'static str) -> Statement {
        Statement { sql: text.to_owned(), parameters: Vec::new() }
    }

    /// Appends fixed text.
    pub fn text(&mut self, text: &'static str) -> &mut Statement {
        self.sql.push_str(text);
        self
    }

    /// Appends a quoted name.
    pub fn name(&mut self, name: &Name) -> &mut Statement {
        self.sql.push('`');
        self.sql.push_str(&name.0.replace('`', "``"));
        self.sql.push('`');
        self
    }

    /// Appends the name of a table.
    pub fn table(&mut self, schema: &Name, table: &Name) -> &mut Statement {
        self.name(schema).text(".").name(table)
    }

    /// Appends a number.
    pub fn number(&mut self, number: u64) -> &mut Statement {
        self.sql.push_str(&number.to_string());
        self
    }

    /// Appends a string literal.
    ///
    /// # Panics
    /// A character of `text` is not plain: callers check it.
    pub fn plain_literal(&mut self, text: &str) -> &mut Statement {
        assert!(text.chars().all(is_plain), "a literal of plain characters");
        self.sql.push('\'');
        self.sql.push_str(text);
        self.sql.push('\'');
        self
    }

    /// Appends a parameter.
    pub fn value(&mut self, value: Value) -> &mut Statement {
        self.sql.push('?');
        self.parameters.push(value);
        self
    }

    /// Appends a parameter that is the text of a JSON document.
    pub fn document(&mut self, text: Vec<u8>) -> &mut Statement {
        self.text("CAST(").value(Value::Bytes(SqlBytes::from(text))).text(" AS JSON)")
    }

    /// Appends another statement.
    pub fn append(&mut self, other: Statement) -> &mut Statement {
        self.sql.push_str(&other.sql);
        self.parameters.extend(other.parameters);
        self
    }

    /// The text.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The parameters.
    pub fn parameters(&self) -> &[Value] {
        &self.parameters
    }
}

/// A character that means nothing inside a string literal, whatever `sql_mode` is.
pub fn is_plain(character: char) -> bool {
    character.is_alphanumeric()
        || matches!(character, '_' | '-' | ' ' | '$' | '.' | '"' | '(' | ')' | '[' | ']')
}

/// What the document and table calls need of a session.
pub trait Database {
    /// Runs one statement.
    ///
    /// # Errors
    /// The statement's.
    fn run(&mut self, statement: &Statement) -> Result<Answer, Error>;

    /// Whether the caller began a transaction, which only the caller ends.
    fn in_transaction(&self) -> bool;
}

/// A session of the caller.
struct Session<'a> {
    lease: Lease<'a>,
    /// The transaction that it is held for.
    transaction: Option<&'a str>,
    /// No statement failed.
    is_clean: bool,
    /// A failure rolled the transaction back.
    is_rolled_back: bool,
}

impl Database for Session<'_> {
    fn run(&mut self, statement: &Statement) -> Result<Answer, Error> {
        let answer = self.lease.values(statement.sql(), statement.parameters());
        if let Err(error) = &answer {
            self.is_clean = false;
            self.is_rolled_back |= error.ends_transaction();
        }
        answer
    }

    fn in_transaction(&self) -> bool {
        self.transaction.is_some()
    }
}

impl<'a> Session<'a> {
    fn open(call: &'a Call<'_>) -> Result<Session<'a>, Reply> {
        let transaction = call.request.headers.get(TRANSACTION);
        let transaction = transaction.map(|id| id.to_str().unwrap_or_default());
        let lease = match transaction {
            None => call
                .gateway
                .session(&call.caller, None)
                .map_err(|error| Reply::sql_error(&error))?,
            Some(id) => {
                let held = call.gateway.held.take(&call.caller, Kind::Transaction, id)?;
                call.gateway.lease(held.session)
            }
        };
        Ok(Session { lease, transaction, is_clean: true, is_rolled_back: false })
    }

    /// Ends the request.
    fn close(self, call: &Call<'_>) {
        let held = &call.gateway.held;
        match self.transaction {
            Some(id) => match self.lease.keep() {
                Ok(session) if !self.is_rolled_back => {
                    held.put(id, HeldSession { session, purpose: Purpose::Transaction });
                }
                Ok(_) | Err(_) => held.forget(id),
            },
            None if self.is_clean => self.lease.give_back(),
            // After a failure the session may have state left over: it ends.
            None => {}
        }
    }
}

/// Runs `work` in a session of the caller, or in the transaction that the header `X-Squall-Transaction` names.
pub fn with_database(
    call: &Call<'_>,
    work: impl FnOnce(&mut dyn Database) -> Result<Reply, Reply>,
) -> Reply {
    let mut session = match Session::open(call) {
        Ok(session) => session,
        Err(reply) => return reply,
    };
    let runs = call.request.waiting.runs(session.lease.cancel());
    let reply = work(&mut session).unwrap_or_else(|reply| reply);
    drop(runs);
    session.close(call);
    reply
}

/// Runs a statement; its error becomes the answer.
///
/// # Errors
/// The answer to the statement's failure.
pub fn run(database: &mut dyn Database, statement: &Statement) -> Result<Answer, Reply> {
    database.run(statement).map_err(|error| Reply::sql_error(&error))
}

/// The schema that a call names, which is there.
///
/// # Errors
/// Status 400 for no name of a schema, 404 when none has it.
pub fn existing_schema(database: &mut dyn Database, name: &str) -> Result<Name, Reply> {
    let schema = Name::new(name)?;
    let mut statement =
        Statement::new("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ");
    statement.value(schema.value());
    match run(database, &statement)?.rows.is_empty() {
        true => Err(missing("no schema has this name")),
        false => Ok(schema),
    }
}

/// Runs `work` as one transaction, or in the caller's. Its own transaction locks rows that are there and no gaps between them, so that
/// changes of different rows do not wait for each other.
///
/// # Errors
/// The work's; everything is rolled back then.
pub fn atomically<T>(
    database: &mut dyn Database,
    work: impl FnOnce(&mut dyn Database) -> Result<T, Reply>,
) -> Result<T, Reply> {
    if database.in_transaction() {
        return work(database);
    }
    run(database, &Statement::new("SET TRANSACTION ISOLATION LEVEL READ COMMITTED"))?;
    run(database, &Statement::new("START TRANSACTION"))?;
    let done = work(database);
    let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = run(database, &Statement::new(end));
    let done = done?;
    ended?;
    Ok(done)
}

/// Status 400.
pub fn invalid(message: std::fmt::Arguments<'_>) -> Reply {
    Reply::failure(StatusCode::BAD_REQUEST, &message.to_string())
}

/// Status 404.
pub fn missing(what: &str) -> Reply {
    Reply::failure(StatusCode::NOT_FOUND, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_quotes() {
        let mut statement = Statement::new("SELECT 1 FROM ");
        let name = Name::new("a`; DROP TABLE b -- ").err();
        assert!(name.is_some(), "a name does not end with a space");
        let (schema, table) = (Name::new("a`b").unwrap(), Name::new("x`; DROP TABLE b #").unwrap());
        statement.table(&schema, &table);
        assert_eq!(statement.sql(), "SELECT 1 FROM `a``b`.`x``; DROP TABLE b #`");
    }

    #[test]
    fn impossible_names_are_refused() {
        let long = "x".repeat(65);
        for text in ["", "a\0b", "a ", "\u{1f600}", long.as_str()] {
            assert!(Name::new(text).is_err(), "{text:?}");
        }
        assert!(Name::new(&"é".repeat(64)).is_ok());
    }

    #[test]
    fn values_are_parameters() {
        let mut statement = Statement::new("SELECT ");
        statement.value(Value::text("' OR 1")).text(", ").document(b"{}".to_vec());
        assert_eq!(statement.sql(), "SELECT ?, CAST(? AS JSON)");
        assert_eq!(statement.parameters(), [Value::text("' OR 1"), Value::text("{}")]);
    }

    #[test]
    #[should_panic(expected = "plain")]
    fn literals_are_plain() {
        Statement::new("").plain_literal("it's");
    }
}
