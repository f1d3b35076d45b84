//! Meaning of CREATE, ALTER and DROP SERVER.

use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit, ForeignServer};
use errors::{Error, ErrorCode, Result, bail, err};
use syntax::ast::{Ident, ServerDef, ServerOption};

/// Characters of every text but HOST; longer ones are cut, as in the reference.
const TEXT_MAX: usize = 64;
/// Characters of HOST.
const HOST_MAX: usize = 255;

/// What a statement changes: nothing when it only has something to say.
#[derive(Debug, Default)]
pub struct ServerChange {
    /// Of the catalog.
    pub edit: Option<Edit>,
    /// Not errors.
    pub warnings: Vec<Error>,
}

/// CREATE and ALTER SERVER.
///
/// # Errors
/// 1476, 1477, 1525.
pub fn put_server(statement: &ServerDef, snapshot: &CatalogSnapshot) -> Result<ServerChange> {
    let name = checked_name(&statement.name)?;
    let known = snapshot.server(&name);
    let mut change = ServerChange::default();
    let mut server = match (known, statement.alter) {
        (Some(known), true) => ForeignServer::clone(known),
        (None, true) => bail!(FOREIGN_SERVER_DOESNT_EXIST, statement.name.text),
        (Some(_), false) if statement.flags.if_not_exists => {
            change.warnings.push(err!(FOREIGN_SERVER_EXISTS, statement.name.text));
            return Ok(change);
        }
        (Some(_), false) if !statement.flags.or_replace => {
            bail!(FOREIGN_SERVER_EXISTS, statement.name.text)
        }
        (_, false) => ForeignServer { name, ..ForeignServer::default() },
    };
    if let Some(wrapper) = &statement.wrapper {
        server.wrapper = cut(&wrapper.text, TEXT_MAX);
    }
    for (option, value) in &statement.options {
        let text = cut(value, TEXT_MAX);
        match option {
            ServerOption::Host => server.host = host(value, &mut change.warnings),
            ServerOption::Database => server.database = text,
            ServerOption::User => server.user = text,
            ServerOption::Password => server.password = text,
            ServerOption::Socket => server.socket = text,
            ServerOption::Owner => server.owner = text,
            // The reference keeps it as a signed number.
            ServerOption::Port => {
                server.port = value.parse::<i32>().unwrap_or(i32::MAX).unsigned_abs();
            }
        }
    }
    change.edit = Some(Edit::PutServer(Arc::new(server)));
    Ok(change)
}

/// DROP SERVER.
///
/// # Errors
/// 1477 without IF EXISTS.
pub fn drop_server(
    name: &Ident,
    is_there: IfExists,
    snapshot: &CatalogSnapshot,
) -> Result<Option<Edit>> {
    let found = snapshot.server(&cut(&name.text, TEXT_MAX));
    match (found, is_there) {
        (Some(server), _) => Ok(Some(Edit::DropServer(server.name.clone()))),
        (None, IfExists::Written) => Ok(None),
        (None, IfExists::Absent) => Err(err!(FOREIGN_SERVER_DOESNT_EXIST, name.text)),
    }
}

/// Whether a DROP has IF EXISTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// It has.
    Written,
    /// It has not.
    Absent,
}

impl IfExists {
    /// From the syntax tree.
    pub fn of(is_written: bool) -> IfExists {
        if is_written { IfExists::Written } else { IfExists::Absent }
    }
}

fn checked_name(name: &Ident) -> Result<Arc<str>> {
    if name.text.is_empty() {
        bail!(WRONG_VALUE, "server name", "");
    }
    Ok(cut(&name.text, TEXT_MAX))
}

/// The text as a column of this many characters keeps it.
fn cut(text: &str, characters: usize) -> Arc<str> {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    text[..end].trim_end_matches(' ').into()
}

/// The column of hosts has the character set ascii.
fn host(text: &str, warnings: &mut Vec<Error>) -> Arc<str> {
    if let Some(at) = text.find(|character: char| !character.is_ascii()) {
        let bytes: String = text.as_bytes()[at..]
            .iter()
            .take(6)
            .map(|byte| match byte.is_ascii() {
                true => char::from(*byte).to_string(),
                false => format!("\\x{byte:02X}"),
            })
            .collect();
        let message = format!("Incorrect string value: '{bytes}' for column 'Host' at row 1");
        warnings.push(Error::new(ErrorCode::TRUNCATED_WRONG_VALUE_FOR_FIELD, message));
    }
    cut(&text.replace(|character: char| !character.is_ascii(), "?"), HOST_MAX)
}
