//! ENCRYPTION of tables and databases, on a server that encrypts everything or nothing: the words say what a definition promises, and who may choose.

use catalog::CatalogSnapshot;
use errors::{Diagnostics, ErrorCode, Result, bail, err};
use types::Value;

use crate::context::Context;
use crate::draft::Draft;
use crate::options::keep;

/// The name under which a table keeps its clause.
const OPTION: &str = "ENCRYPTION";
/// The dynamic privilege of those who may choose another encryption than the default.
pub const TABLE_ENCRYPTION_ADMIN: &str = "TABLE_ENCRYPTION_ADMIN";

fn is_on(ctx: &dyn Context, name: &str) -> bool {
    matches!(ctx.variable(name), Value::Int(1) | Value::UInt(1))
}

/// Y and N, in either case.
fn is_yes(text: &str) -> Option<bool> {
    match text {
        "Y" | "y" => Some(true),
        "N" | "n" => Some(false),
        _ => None,
    }
}

/// Whether tables of a schema are encrypted unless they say otherwise.
fn default_of(catalog: &CatalogSnapshot, schema: &str) -> bool {
    catalog.schema(schema).is_some_and(|schema| schema.options.is_encrypted)
}

/// ENCRYPTION= of a tablespace.
///
/// # Errors
/// 3184 for another word than Y and N; 3185 for Y without encryption.
pub(crate) fn wanted(ctx: &dyn Context, text: &str) -> Result<bool> {
    let Some(wanted) = is_yes(text) else { bail!(INVALID_ENCRYPTION_OPTION) };
    if wanted && !is_on(ctx, "storage_encryption") {
        bail!(CANNOT_FIND_KEY_IN_KEYRING);
    }
    Ok(wanted)
}

/// ENCRYPTION= of a table.
///
/// # Errors
/// 3184 for another word than Y and N; 3833 for a temporary table; 3826 without the privilege for another encryption than the schema's; 3185 for Y without
/// encryption.
pub(crate) fn declare(ctx: &mut dyn Context, draft: &mut Draft, text: &str) -> Result<()> {
    let Some(wanted) = is_yes(text) else { bail!(INVALID_ENCRYPTION_OPTION) };
    if draft.temporary {
        bail!(TEMPORARY_TABLE_ENCRYPTION);
    }
    let default = default_of(&ctx.catalog(), &draft.schema);
    let (is_checked, may) = choice(ctx);
    if wanted != default && is_checked && !may {
        bail!(CANNOT_SET_TABLE_ENCRYPTION);
    }
    let is_directory_encrypted = is_on(ctx, "storage_encryption");
    if wanted && !is_directory_encrypted {
        bail!(CANNOT_FIND_KEY_IN_KEYRING);
    }
    if !wanted && default && !is_checked {
        ctx.conditions().warn(ErrorCode::WARN_UNENCRYPTED_TABLE_IN_ENCRYPTED_DB, &[]);
    }
    if !wanted && is_directory_encrypted {
        // Nothing in the directory is plain.
        ctx.conditions().note(ErrorCode::OPTION_IGNORED, &[&"ENCRYPTION='N'"]);
    }
    let shown = (wanted || default).then(|| format!("'{text}'"));
    keep(draft, OPTION, shown);
    Ok(())
}

/// A new table without the clause takes over what its schema says.
///
/// # Errors
/// 3185: the schema says Y, and the server does not encrypt.
pub(crate) fn inherit(ctx: &dyn Context, draft: &mut Draft) -> Result<()> {
    if draft.temporary || !default_of(&ctx.catalog(), &draft.schema) {
        return Ok(());
    }
    if !is_on(ctx, "storage_encryption") {
        bail!(CANNOT_FIND_KEY_IN_KEYRING);
    }
    keep(draft, OPTION, Some("'Y'".to_owned()));
    Ok(())
}

/// A copy (CREATE TABLE .. LIKE) has the clause of its source, or what its own schema says.
///
/// # Errors
/// As `declare` and `inherit`.
pub fn inherit_like(ctx: &mut dyn Context, draft: &mut Draft) -> Result<()> {
    let own = draft.options.iter().find(|(name, _)| name == OPTION);
    match own.map(|(_, value)| value.trim_matches('\'').to_owned()) {
        Some(_) if draft.temporary => {
            keep(draft, OPTION, None);
            Ok(())
        }
        Some(text) => declare(ctx, draft, &text),
        None => inherit(ctx, draft),
    }
}

/// What a table says that gets into another schema: warns of a plain one among encrypted ones.
///
/// # Errors
/// 3826: the schema has another encryption, `is_checked` (`table_encryption_privilege_check`), and the account `may` not choose.
pub fn check_move(
    catalog: &CatalogSnapshot,
    options: &[(String, String)],
    schema: &str,
    (is_checked, may): (bool, bool),
    conditions: &mut Diagnostics,
) -> Result<()> {
    let says_yes = |(name, value): &(String, String)| {
        name == OPTION && is_yes(value.trim_matches('\'')) == Some(true)
    };
    let is_encrypted = options.iter().any(says_yes);
    let default = default_of(catalog, schema);
    if is_encrypted != default && is_checked && !may {
        bail!(CANNOT_SET_TABLE_ENCRYPTION);
    }
    if default && !is_encrypted && !is_checked {
        conditions.warn(ErrorCode::WARN_UNENCRYPTED_TABLE_IN_ENCRYPTED_DB, &[]);
    }
    Ok(())
}

/// Whether the choice of encryption is checked, and whether the account may choose.
pub(crate) fn choice(ctx: &dyn Context) -> (bool, bool) {
    (is_on(ctx, "table_encryption_privilege_check"), ctx.has_dynamic(TABLE_ENCRYPTION_ADMIN))
}

/// DEFAULT ENCRYPTION of a schema; `None` when the statement has no such clause. `default`: the session's `default_table_encryption`.
///
/// # Errors
/// 1525 for another word than Y and N; 3827 for another than the default when `is_checked` and the account `may` not choose.
pub fn schema_encryption(
    given: Option<&str>,
    default: bool,
    (is_checked, may): (bool, bool),
) -> Result<Option<bool>> {
    const SUBJECT: &str = "argument (should be Y or N)";
    let Some(text) = given else { return Ok(None) };
    let wanted = is_yes(text).ok_or_else(|| err!(WRONG_VALUE, SUBJECT, text))?;
    if wanted != default && is_checked && !may {
        bail!(CANNOT_SET_DATABASE_ENCRYPTION);
    }
    Ok(Some(wanted))
}
