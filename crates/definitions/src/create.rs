//! CREATE TABLE: the definition in the statement.

use std::sync::Arc;

use catalog::Table;
use engine_api::TableId;
use errors::{Result, bail};
use syntax::ast::{CreateTable, TableConstraint, TableOption};
use variables::as_text;

use crate::columns::{add_built_column, build_column};
use crate::context::Context;
use crate::draft::{Draft, materialise_indexed_columns};
use crate::encryption;
use crate::engines::engine_choice;
use crate::expressions::check_expressions;
use crate::foreign_keys::{check_foreign_keys, check_stored_bases, check_written_columns};
use crate::generated_key;
use crate::history;
use crate::indexes::{add_constraint, note_repeated_indexes};
use crate::options::{apply_table_options, declare_engine};
use crate::partitions::{build_partitioning, check_partition_qualifiers, check_partitioned};
use crate::periods;
use crate::sequences::{check_structure, is_sequence};
use crate::timestamps;

/// CREATE EXTERNAL TABLE: no engine here has its tables elsewhere.
///
/// # Errors
/// 6512, 6513 without an engine, 1286.
fn refuse_external(ctx: &dyn Context, create: &CreateTable) -> Result<()> {
    let engine = |option: &&TableOption| matches!(option, TableOption::Engine(_));
    let Some(TableOption::Engine(name)) = create.options.iter().rfind(engine) else {
        bail!(EXTERNAL_ENGINE_NOT_SPECIFIED)
    };
    bail!(ENGINE_NOT_EXTERNAL, engine_choice(&ctx.engines(), &name.text)?.shown())
}

/// The columns, keys and options of CREATE TABLE.
///
/// # Errors
/// Any error of one of them.
pub fn write_draft(
    ctx: &mut dyn Context,
    create: &CreateTable,
    schema: &Arc<str>,
    name: &Arc<str>,
) -> Result<Draft> {
    if create.external {
        refuse_external(ctx, create)?;
    }
    let mut draft = Draft::new(ctx, schema, name, create.temporary);
    let names_engine = |option: &TableOption| matches!(option, TableOption::Engine(_));
    if !create.options.iter().any(names_engine) {
        let variable = match create.temporary {
            true => "default_tmp_storage_engine",
            false => "default_storage_engine",
        };
        let engine = as_text(&ctx.variable(variable));
        declare_engine(ctx, &mut draft, &engine)?;
    }
    let says = |option: &TableOption| matches!(option, TableOption::Encryption(_));
    if !create.options.iter().any(says) {
        encryption::inherit(ctx, &mut draft)?;
    }
    apply_table_options(ctx, &mut draft, create.options.iter())?;
    for (name, start, end) in &create.periods {
        if history::is_system_time(name) {
            history::declare_period(&mut draft, start, end);
        } else {
            periods::declare(&mut draft, name, start, end)?;
        }
    }
    for definition in &create.columns {
        let built = build_column(ctx, &draft, definition)?;
        let position = draft.columns.len();
        add_built_column(ctx, &mut draft, built, position)?;
    }
    // Keys of foreign keys have their places among the others.
    let (keys, others): (Vec<_>, Vec<_>) = create
        .constraints
        .iter()
        .partition(|constraint| !matches!(constraint, TableConstraint::Check(..)));
    for constraint in keys.into_iter().chain(others) {
        add_constraint(ctx, &mut draft, constraint)?;
    }
    Ok(draft)
}

/// Builds the table of a draft with all columns, and the key that is generated for it; it has no id yet. Returns its AUTO_INCREMENT too.
///
/// # Errors
/// Any error of the definition as a whole.
pub fn complete(
    ctx: &mut dyn Context,
    create: &CreateTable,
    mut draft: Draft,
) -> Result<(Table, Option<u64>)> {
    check_structure(&draft, create)?;
    history::settle(&mut draft, true)?;
    periods::settle(&mut draft)?;
    if create.like.is_none() && !is_sequence(&draft) {
        generated_key::add(ctx, &mut draft, create.partitioning.is_some())?;
    }
    timestamps::imply_defaults(ctx, &mut draft)?;
    materialise_indexed_columns(&mut draft);
    draft.name_checks(None)?;
    check_expressions(ctx, &draft)?;
    if let Some(written) = &create.partitioning {
        check_partition_qualifiers(ctx, &draft, written)?;
        draft.partitioning = Some(build_partitioning(ctx, &draft, written)?);
    }
    check_partitioned(ctx, &draft)?;
    let requires_key = variables::as_u64(&ctx.variable("sql_require_primary_key")) == 1;
    if requires_key && !is_sequence(&draft) && !draft.indexes.iter().any(|index| index.primary) {
        bail!(TABLE_WITHOUT_PK);
    }
    let next = draft.auto_increment;
    draft.fit_comments(ctx)?;
    crate::engines::choose_methods(ctx.conditions(), &mut draft);
    let mut table = draft.finish(TableId(0), None)?;
    note_repeated_indexes(ctx.conditions(), &table, None);
    crate::engines::check_abilities(ctx, &table)?;
    check_foreign_keys(ctx, &mut table, &[])?;
    check_stored_bases(ctx, &table, None)?;
    check_written_columns(ctx, &table, None)?;
    if !create.temporary {
        ctx.catalog().check_constraint_names(&table, None)?;
    }
    Ok((table, next))
}
