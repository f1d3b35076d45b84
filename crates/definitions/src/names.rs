//! Names of schemas and tables.

use catalog::Table;
use errors::{Result, bail};
use syntax::ast::Ident;

/// Maximum length of an identifier in characters.
const IDENTIFIER_CHARS_MAX: usize = 64;

/// Whether a table may have the name.
///
/// # Errors
/// 1103, 1059.
pub fn check_table_name(name: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') {
        bail!(WRONG_TABLE_NAME, name);
    }
    if is_too_long(name) {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}

/// Whether a schema may have the name.
///
/// # Errors
/// 1102, 1059.
pub fn check_schema_name(name: &Ident) -> Result<()> {
    let name = &*name.text;
    if name.is_empty() || name.ends_with(' ') {
        bail!(WRONG_DB_NAME, name);
    }
    if is_too_long(name) {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}

/// Whether a column may have the name; 1166, 1059.
pub(crate) fn check_column_name(name: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') {
        bail!(WRONG_COLUMN_NAME, name);
    }
    if is_too_long(name) {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}

/// Whether the names of constraints that follow a table's new name may be names; 1059.
pub(crate) fn check_made_names(table: &Table) -> Result<()> {
    if let Some((_, name)) = table.constraint_names().find(|(_, name)| is_too_long(name)) {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}

/// Whether a name is too long.
pub(crate) fn is_too_long(name: &str) -> bool {
    name.chars().count() > IDENTIFIER_CHARS_MAX
}
