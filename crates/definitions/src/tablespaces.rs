//! Meaning of CREATE, ALTER and DROP TABLESPACE, and of the option TABLESPACE of tables.
//!
//! A tablespace is a name for a group of tables: it can be renamed, and dropped when it is empty. The default engine has files of its own, so the
//! file of a tablespace is kept as it was declared, with a note.

use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit, Relation, Table, Tablespace};
use errors::{Error, ErrorCode, Result, bail};
use syntax::ast::{self, TablespaceAction};

use crate::context::Context;
use crate::draft::Draft;
use crate::encryption;
use crate::engines::{EngineChoice, SHOWN_ENGINE, engine_choice};
use crate::options::keep;

/// The name under which a table keeps its clause.
pub(crate) const OPTION: &str = "TABLESPACE";
/// Tablespaces that are always there.
const ALWAYS: [&str; 3] = ["innodb_system", "innodb_file_per_table", "innodb_temporary"];

const NOT_SHARED: &str = "InnoDB : A partitioned table is not allowed in a shared tablespace.";

/// What a statement changes.
///
/// # Errors
/// 1235 for undo tablespaces; 1286, 1478, 1533, 1813, 3119, 3120, 3121, 3185, 3510, 3606, 3629.
pub fn change_tablespace(ctx: &mut dyn Context, statement: &ast::Tablespace) -> Result<Vec<Edit>> {
    if statement.undo {
        return Err(Error::not_supported("UNDO TABLESPACE"));
    }
    let name = &*statement.name.text;
    let options = Options::read(ctx, statement)?;
    check_name(name)?;
    let catalog = ctx.catalog();
    match statement.action {
        TablespaceAction::Create => create(ctx, &catalog, name, options),
        TablespaceAction::Alter => {
            let known = find(&catalog, name)?;
            alter(&catalog, &known, options)
        }
        TablespaceAction::Drop => {
            let known = find(&catalog, name)?;
            if !tables_of(&catalog, name).is_empty() {
                bail!(TABLESPACE_IS_NOT_EMPTY, name);
            }
            Ok(vec![Edit::DropTablespace(known.name.clone())])
        }
    }
}

/// The options of a statement.
#[derive(Default)]
struct Options<'s> {
    file: Option<&'s str>,
    dropped_file: Option<&'s str>,
    rename: Option<&'s str>,
    comment: Option<&'s str>,
    autoextend_bytes: Option<u64>,
    block_bytes: Option<u64>,
    is_encrypted: Option<bool>,
}

impl<'s> Options<'s> {
    fn read(ctx: &mut dyn Context, statement: &'s ast::Tablespace) -> Result<Options<'s>> {
        let mut options = Options::default();
        for (word, value) in &statement.options {
            let number = || value.parse::<u64>().unwrap_or(u64::MAX);
            match &**word {
                "ADD DATAFILE" => options.file = Some(value),
                "DROP DATAFILE" => options.dropped_file = Some(value),
                "RENAME TO" => options.rename = Some(value),
                "COMMENT" => options.comment = Some(value),
                "AUTOEXTEND_SIZE" => options.autoextend_bytes = Some(number()),
                "FILE_BLOCK_SIZE" => options.block_bytes = Some(number()),
                "ENCRYPTION" => options.is_encrypted = Some(encryption::wanted(ctx, value)?),
                "ENGINE" => check_engine(ctx, value, statement.action)?,
                other => ctx.conditions().warn(ErrorCode::OPTION_IGNORED, &[&other]),
            }
        }
        Ok(options)
    }
}

fn check_engine(ctx: &dyn Context, name: &str, action: TablespaceAction) -> Result<()> {
    let choice = engine_choice(&ctx.engines(), name)?;
    if matches!(choice, EngineChoice::Default) {
        return Ok(());
    }
    let statement = match action {
        TablespaceAction::Create => "CREATE TABLESPACE",
        TablespaceAction::Alter => "ALTER TABLESPACE",
        TablespaceAction::Drop => "DROP TABLESPACE",
    };
    bail!(ILLEGAL_HA_CREATE_OPTION, choice.shown(), statement)
}

/// An error with a text of its own, as the reference's engine says it.
fn refuse<T>(code: ErrorCode, text: String) -> Result<T> {
    Err(Error::new(code, text))
}

fn check_name(name: &str) -> Result<()> {
    let lower = name.to_lowercase();
    if lower == "mysql" || ALWAYS.contains(&&*lower) {
        let text = format!("InnoDB: `{name}` is a reserved tablespace name.");
        return refuse(ErrorCode::WRONG_TABLESPACE_NAME, text);
    }
    if lower.starts_with("innodb_") {
        let text = "InnoDB: Tablespace names starting with `innodb_` are reserved.";
        return refuse(ErrorCode::WRONG_TABLESPACE_NAME, text.to_owned());
    }
    Ok(())
}

fn find(catalog: &CatalogSnapshot, name: &str) -> Result<Arc<Tablespace>> {
    match catalog.tablespace(name) {
        Some(known) => Ok(known.clone()),
        None => bail!(TABLESPACE_MISSING_WITH_NAME, name),
    }
}

/// The name of a file in the data directory.
fn checked_file(file: &str) -> Result<&str> {
    let file = file.strip_prefix("./").unwrap_or(file);
    let text = if !file.ends_with(".ibd") {
        "The ADD DATAFILE filepath must end with '.ibd'."
    } else if file.contains(['/', '\\']) {
        "The DATAFILE location must be in a known directory."
    } else {
        return Ok(file);
    };
    refuse(ErrorCode::WRONG_FILE_NAME, text.to_owned())
}

fn create(
    ctx: &mut dyn Context,
    catalog: &CatalogSnapshot,
    name: &str,
    options: Options<'_>,
) -> Result<Vec<Edit>> {
    if catalog.tablespace(name).is_some() {
        bail!(TABLESPACE_EXISTS, name);
    }
    let file = match options.file {
        Some(file) => checked_file(file)?.to_owned(),
        None => format!("{name}.ibd"),
    };
    if catalog.tablespaces().iter().any(|known| *known.file == *file) {
        bail!(TABLESPACE_DUP_FILENAME, name);
    }
    if options.file.is_some() {
        ctx.conditions().note(ErrorCode::OPTION_IGNORED, &[&"ADD DATAFILE"]);
    }
    let tablespace = Tablespace {
        name: name.into(),
        file: file.into(),
        comment: options.comment.unwrap_or_default().into(),
        autoextend_bytes: options.autoextend_bytes.unwrap_or(0),
        block_bytes: options.block_bytes.unwrap_or(0),
        is_encrypted: options.is_encrypted.unwrap_or(false),
    };
    Ok(vec![Edit::PutTablespace(Arc::new(tablespace))])
}

fn alter(catalog: &CatalogSnapshot, known: &Tablespace, options: Options<'_>) -> Result<Vec<Edit>> {
    let name = &known.name;
    if options.file.is_some() {
        let text = format!("Failed to alter: TABLESPACE {name}");
        return refuse(ErrorCode::ALTER_FILEGROUP_FAILED, text);
    }
    if let Some(file) = options.dropped_file {
        bail!(MISSING_TABLESPACE_FILE, name, file);
    }
    let mut changed = known.clone();
    changed.autoextend_bytes = options.autoextend_bytes.unwrap_or(known.autoextend_bytes);
    changed.is_encrypted = options.is_encrypted.unwrap_or(known.is_encrypted);
    let Some(renamed) = options.rename.filter(|renamed| **renamed != **name) else {
        return Ok(vec![Edit::PutTablespace(Arc::new(changed))]);
    };
    check_name(renamed)?;
    if catalog.tablespace(renamed).is_some() {
        bail!(TABLESPACE_EXISTS, renamed);
    }
    changed.name = renamed.into();
    let mut edits =
        vec![Edit::DropTablespace(name.clone()), Edit::PutTablespace(Arc::new(changed))];
    for table in tables_of(catalog, name) {
        let mut moved = Table::clone(&table);
        for (option, value) in &mut moved.options {
            if option == OPTION {
                *value = unparse::quote_ident(renamed);
            }
        }
        edits.push(Edit::ReplaceTable { old: table.id, new: Arc::new(moved) });
    }
    Ok(edits)
}

fn tables_of(catalog: &CatalogSnapshot, name: &str) -> Vec<Arc<Table>> {
    let quoted = unparse::quote_ident(name);
    let mut found = Vec::new();
    for schema in catalog.schemas() {
        for (relation, _) in catalog.names(&schema.name) {
            let Some(Relation::Table(table)) = catalog.look(&schema.name, relation) else {
                continue;
            };
            if table.options.iter().any(|(option, value)| option == OPTION && *value == quoted) {
                found.push(table);
            }
        }
    }
    found
}

/// TABLESPACE of a table.
///
/// # Errors
/// 3510 for one that does not exist; 1478 where temporary tables may not be, or only those.
pub(crate) fn declare(ctx: &mut dyn Context, draft: &mut Draft, name: &str) -> Result<()> {
    let lower = name.to_lowercase();
    let refused = |why: &str| {
        let text = format!("InnoDB: Tablespace `{name}` {why}");
        refuse(ErrorCode::ILLEGAL_HA_CREATE_OPTION, text)
    };
    if lower == "innodb_temporary" {
        if !draft.temporary {
            return refused("can only contain TEMPORARY tables.");
        }
        let text = "InnoDB: TABLESPACE=innodb_temporary option is ignored. All temporary tables are created in a session temporary tablespace. This option is deprecated and will be removed in a future release.";
        let code = ErrorCode::ILLEGAL_HA_CREATE_OPTION;
        ctx.conditions().push_error(errors::Level::Warning, &Error::new(code, text));
        return Ok(());
    }
    if !ALWAYS.contains(&&*lower) {
        find(&ctx.catalog(), name)?;
        if draft.temporary {
            return refused("cannot contain TEMPORARY tables.");
        }
    }
    keep(draft, OPTION, Some(unparse::quote_ident(name)));
    Ok(())
}

/// TABLESPACE of a partition, as it is shown.
///
/// # Errors
/// 3510 for one that does not exist; 1478 for one that others share.
pub(crate) fn of_partition(ctx: &dyn Context, name: &str) -> Result<String> {
    let lower = name.to_lowercase();
    if !ALWAYS.contains(&&*lower) {
        find(&ctx.catalog(), name)?;
    }
    if lower != "innodb_file_per_table" {
        return refuse(ErrorCode::ILLEGAL_HA_CREATE_OPTION, NOT_SHARED.to_owned());
    }
    Ok(unparse::quote_ident(name))
}

/// A partitioned table is in no tablespace that others share.
///
/// # Errors
/// 1478.
pub(crate) fn check_partitioned(draft: &Draft) -> Result<()> {
    let own = unparse::quote_ident("innodb_file_per_table");
    let shares = |(option, value): &(String, String)| option == OPTION && *value != own;
    if draft.partitioning.is_some() && draft.options.iter().any(shares) {
        return refuse(ErrorCode::ILLEGAL_HA_CREATE_OPTION, NOT_SHARED.to_owned());
    }
    Ok(())
}

/// LOGFILE GROUP: MySQL Cluster's alone.
///
/// # Errors
/// 3658, or 1286.
pub fn refuse_logfile_group(ctx: &dyn Context, statement: &ast::Tablespace) -> Result<()> {
    let engine = statement.options.iter().find(|(word, _)| &**word == "ENGINE");
    let shown = match engine {
        Some((_, name)) => engine_choice(&ctx.engines(), name)?.shown(),
        None => SHOWN_ENGINE,
    };
    bail!(FEATURE_UNSUPPORTED, "LOGFILE GROUP", format!("by {shown}"))
}
