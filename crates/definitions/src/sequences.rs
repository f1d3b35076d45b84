//! The tables that sequences are.

use catalog::{SEQUENCE_OPTION, Table};
use errors::{Error, Result, SequenceError};
use syntax::Statement;
use syntax::ast::{AlterAction, AlterTable, CreateSequence, CreateTable, Ident, TableOption};
use types::TypeKind;

use crate::context::Context;
use crate::draft::Draft;

/// The columns of a sequence, in this order.
const DEFINITION: &str = "CREATE TABLE s (next_not_cached_value bigint NOT NULL, minimum_value bigint NOT NULL, maximum_value bigint NOT NULL, \
     start_value bigint NOT NULL, `increment` bigint NOT NULL, cache_size bigint unsigned NOT NULL, cycle_option tinyint unsigned NOT NULL, \
     cycle_count bigint NOT NULL)";

/// CREATE SEQUENCE as a CREATE TABLE.
///
/// # Errors
/// 1235 for what sequences do not have here.
pub fn create_table_of(create: &CreateSequence) -> Result<CreateTable> {
    if create.temporary {
        return Err(Error::not_supported("CREATE TEMPORARY SEQUENCE"));
    }
    let Ok((Statement::CreateTable(mut table), _)) =
        syntax::parse_one(DEFINITION, &syntax::ParseOptions::default())
    else {
        return Err(Error::internal("the columns of a sequence"));
    };
    table.flags = create.flags;
    table.name = create.name.clone();
    table.options = create.table_options.clone();
    table.options.push(TableOption::Other(Ident::new(SEQUENCE_OPTION), "1".into()));
    Ok(*table)
}

/// Whether an option says that the table is a sequence, or that it is none.
pub(crate) fn declared(option: &TableOption) -> Option<bool> {
    let TableOption::Other(name, value) = option else { return None };
    name.text.eq_ignore_ascii_case(SEQUENCE_OPTION).then_some(&**value != "0")
}

/// Whether a draft is to be a sequence.
pub(crate) fn is_sequence(draft: &Draft) -> bool {
    draft.options.iter().any(|(name, _)| name == SEQUENCE_OPTION)
}

/// Checks that the table of a sequence has the columns of one and nothing else.
///
/// # Errors
/// 4086; 1235 for what sequences do not have here.
pub(crate) fn check_structure(draft: &Draft, create: &CreateTable) -> Result<()> {
    if !is_sequence(draft) {
        return Ok(());
    }
    if draft.temporary {
        return Err(Error::not_supported("CREATE TEMPORARY SEQUENCE"));
    }
    if create.partitioning.is_some() || create.query.is_some() {
        return Err(Error::not_supported("a sequence with partitions or made from a query"));
    }
    let bad = |why| {
        Err(SequenceError::BadStructure(why).about(format!("{}.{}", draft.schema, draft.name)))
    };
    let Ok((Statement::CreateTable(wanted), _)) =
        syntax::parse_one(DEFINITION, &syntax::ParseOptions::default())
    else {
        return Err(Error::internal("the columns of a sequence"));
    };
    if draft.columns.len() != wanted.columns.len() {
        return bad("it has other columns");
    }
    for (at, (column, wanted)) in draft.columns.iter().zip(&wanted.columns).enumerate() {
        let ty = &column.column.ty;
        let kind = if at == 6 { TypeKind::TinyInt } else { TypeKind::BigInt };
        let is_right = catalog::same_name(&column.column.name, &wanted.name.text)
            && ty.kind == kind
            && ty.unsigned == (at == 5 || at == 6)
            && !ty.nullable
            && column.column.generated.is_none()
            && !column.column.auto_increment;
        if !is_right {
            return bad("a column differs");
        }
    }
    if !draft.indexes.is_empty() || !draft.foreign_keys.is_empty() || !draft.checks.is_empty() {
        return bad("it has keys or constraints");
    }
    Ok(())
}

/// Whether a default names a sequence that is not there, which dumps may make later: they switch the checks of foreign keys off.
pub(crate) fn may_come(ctx: &dyn Context, error: &Error) -> bool {
    error.code() == SequenceError::Unknown.about("").code() && !ctx.settings().foreign_key_checks
}

/// A sequence may only be renamed, and no table becomes one.
///
/// # Errors
/// 1235.
pub(crate) fn check_alter(table: &Table, alter: &AlterTable) -> Result<()> {
    // Dumps switch keys off and on.
    let is_rename = |action: &AlterAction| {
        use AlterAction::{DisableKeys, EnableKeys, RenameTable};
        matches!(action, RenameTable(_) | DisableKeys | EnableKeys)
    };
    if table.is_sequence() && !(alter.actions.iter().all(is_rename) && alter.partitioning.is_none())
    {
        return Err(Error::not_supported("ALTER TABLE of a sequence"));
    }
    let declares = |action: &AlterAction| matches!(action, AlterAction::Option(option) if declared(option).is_some());
    if alter.actions.iter().any(declares) {
        return Err(Error::not_supported("ALTER TABLE with SEQUENCE"));
    }
    Ok(())
}
