//! The actions of ALTER TABLE on the draft of the new definition.

use std::sync::Arc;

use catalog::{ColumnDefault, Table, same_name};
use errors::{Diagnostics, Error, ErrorCode, Result, bail, err};
use syntax::ast::{ColumnPosition, Ident};

use super::vacant::vacant_place;
use crate::charsets::note_charset;
use crate::column_type::converted;
use crate::columns::{add_column_extras, build_column};
use crate::context::Context;
use crate::draft::{Draft, is_hidden};
use crate::expressions::bind_over_columns;
use crate::generated_key;
use crate::options::{choose_collation, schema_collation};
use crate::partitions::partition_reads;
use crate::periods;

/// The error of DROP for an object that does not exist.
const CANT_DROP: ErrorCode = ErrorCode::CANT_DROP_FIELD_OR_KEY;

fn missing(conditions: &mut Diagnostics, name: &str, if_exists: bool) -> Result<()> {
    if if_exists {
        conditions.note(CANT_DROP, &[&name]);
        return Ok(());
    }
    Err(Error::with(CANT_DROP, &[&name]))
}

pub(super) fn change_column(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    old: &Ident,
    if_exists: bool,
    definition: &syntax::ast::ColumnDef,
    position: Option<&ColumnPosition>,
) -> Result<()> {
    let Some(at) = draft.column(&old.text) else {
        if if_exists {
            ctx.conditions().note(ErrorCode::BAD_FIELD_ERROR, &[&old.text, &draft.name]);
            return Ok(());
        }
        bail!(BAD_FIELD_ERROR, old.text, draft.name);
    };
    let new_name = &*definition.name.text;
    if !same_name(&old.text, new_name) && draft.column(new_name).is_some() {
        bail!(DUP_FIELDNAME, new_name);
    }
    let mut built = build_column(ctx, draft, definition)?;
    built.column.origin = draft.columns[at].origin;
    let was_virtual = |generated: &Option<catalog::Generated>| {
        generated.as_ref().map(|generated| generated.stored)
    };
    let (before, after) = (
        was_virtual(&draft.columns[at].column.generated),
        was_virtual(&built.column.column.generated),
    );
    match (before, after) {
        (Some(false), None | Some(true)) | (None | Some(true), Some(false)) => {
            bail!(UNSUPPORTED_ACTION_ON_GENERATED_COLUMN, "Changing the STORED status");
        }
        _ => {}
    }
    if &*draft.columns[at].column.name != new_name {
        if !same_name(&draft.columns[at].column.name, new_name) {
            refuse_dependents(ctx, draft, at)?;
        }
        rename_column(draft, at, new_name);
    }
    let name = built.column.column.name.clone();
    draft.columns[at] = built.column;
    if let Some(position) = position {
        move_column(draft, &name, position)?;
    }
    add_column_extras(
        ctx,
        draft,
        &name,
        built.primary,
        built.unique,
        &built.checks,
        built.references.as_ref(),
    )
}

pub(super) fn drop_column(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    table: &Table,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let Some(at) = draft.column(name) else { return missing(ctx.conditions(), name, if_exists) };
    periods::check_dropped(draft, name)?;
    let in_key = draft
        .foreign_keys
        .iter()
        .find(|key| key.columns.iter().any(|column| same_name(column, name)));
    if let Some(key) = in_key {
        let key = key.name.clone().unwrap_or_else(|| Arc::from(""));
        bail!(FK_COLUMN_CANNOT_DROP, name, key);
    }
    let snapshot = ctx.catalog();
    for child in snapshot.children_of(&table.schema, &table.name) {
        for key in &child.foreign_keys {
            let refers = key.referenced_table == table.name
                && key.referenced_columns.iter().any(|column| same_name(column, name));
            if refers && ctx.settings().foreign_key_checks {
                let child = match child.schema == table.schema {
                    true => child.name.to_string(),
                    false => format!("{}.{}", child.schema, child.name),
                };
                bail!(FK_COLUMN_CANNOT_DROP_CHILD, name, key.name, child);
            }
        }
    }
    // A check of this column alone is dropped with it.
    let columns = &draft.columns;
    let alone = |text: &str| {
        bind_over_columns(ctx, columns, text).is_ok_and(|bound| {
            !bound.columns.is_empty() && bound.columns.iter().all(|column| *column == at)
        })
    };
    let kept: Vec<bool> = draft.checks.iter().map(|(_, check)| !alone(&check.expression)).collect();
    let mut kept = kept.into_iter();
    draft.checks.retain(|_| kept.next().unwrap_or(true));
    refuse_dependents(ctx, draft, at)?;
    let dropped = draft.columns.remove(at);
    draft.columns.extend(vacant_place(table, &dropped));
    // An index loses the column; one without columns left is dropped.
    for index in &mut draft.indexes {
        let parts = index.parts.len();
        index.parts.retain(|part| !same_name(&part.column, name));
        if index.parts.len() != parts {
            index.origin = None;
            index.entries = None;
        }
    }
    draft.indexes.retain(|index| !index.parts.is_empty());
    Ok(())
}

/// 3108, 3959, 3837 when an expression of the table reads the column at `at`, which is dropped or renamed.
pub(super) fn refuse_dependents(ctx: &dyn Context, draft: &Draft, at: usize) -> Result<()> {
    let name = draft.columns[at].column.name.clone();
    if let Some(partitioning) = &draft.partitioning {
        let used = partition_reads(ctx, draft, partitioning)?;
        if used.iter().any(|used| same_name(used, &name)) {
            bail!(DEPENDENT_BY_PARTITION_FUNC, name);
        }
    }
    let reads = |text: &str| {
        bind_over_columns(ctx, &draft.columns, text).is_ok_and(|bound| bound.columns.contains(&at))
    };
    for other in &draft.columns {
        if let Some(generated) = &other.column.generated
            && reads(&generated.expression)
        {
            if generated.hidden {
                bail!(DEPENDENT_BY_FUNCTIONAL_INDEX, name);
            }
            bail!(DEPENDENT_BY_GENERATED_COLUMN, name);
        }
        if let ColumnDefault::Expression(text) = &other.column.default
            && reads(text)
        {
            bail!(DEPENDENT_BY_DEFAULT_GENERATED_VALUE, name);
        }
    }
    for (check_name, check) in &draft.checks {
        if reads(&check.expression) {
            let shown = check_name.clone().unwrap_or_else(|| check.name.clone());
            // The reference's error 3959; the catalogue does not list it.
            return Err(Error::new(
                ErrorCode(3959),
                format!(
                    "Check constraint '{shown}' uses column '{name}', hence column cannot be dropped or renamed."
                ),
            ));
        }
    }
    Ok(())
}

pub(super) fn drop_index(
    conditions: &mut Diagnostics,
    draft: &mut Draft,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let Some(at) = draft.index(name) else { return missing(conditions, name, if_exists) };
    let index = draft.indexes.remove(at);
    for part in &index.parts {
        let hidden = draft
            .column(&part.column)
            .filter(|position| is_hidden(&draft.columns[*position].column));
        if let Some(position) = hidden {
            draft.columns.remove(position);
        }
    }
    Ok(())
}

pub(super) fn drop_constraint(
    conditions: &mut Diagnostics,
    draft: &mut Draft,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    if let Some(at) = find_check(draft, name) {
        draft.checks.remove(at);
        return Ok(());
    }
    if let Some(at) = find_foreign_key(draft, name) {
        draft.foreign_keys.remove(at);
        return Ok(());
    }
    periods::check_constraint_name(draft, name)?;
    match draft.index(name) {
        Some(at) if draft.indexes[at].unique => drop_index(conditions, draft, name, if_exists),
        _ if if_exists => missing(conditions, name, true),
        _ => Err(err!(CONSTRAINT_NOT_FOUND, name)),
    }
}

pub(super) fn drop_foreign_key(
    conditions: &mut Diagnostics,
    draft: &mut Draft,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let Some(at) = find_foreign_key(draft, name) else {
        return missing(conditions, name, if_exists);
    };
    draft.foreign_keys.remove(at);
    Ok(())
}

/// CONVERT TO CHARACTER SET: every text column changes.
pub(super) fn convert_charset(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    charset: Option<&Ident>,
    collation: Option<&Ident>,
) -> Result<()> {
    let text = |name: Option<&Ident>| name.map(|name| name.text.clone());
    let schema = schema_collation(ctx, &draft.schema);
    let (charset, collation) = (text(charset), text(collation));
    note_charset(ctx.conditions(), charset.as_deref(), collation.as_deref());
    let collation = choose_collation(charset.as_deref(), collation.as_deref(), schema)?;
    draft.collation = collation;
    draft.declared_collation = collation;
    for column in &mut draft.columns {
        let ty = &mut column.column.ty;
        let has_text =
            ty.is_text() || matches!(ty.kind, types::TypeKind::Enum | types::TypeKind::Set);
        if has_text {
            *ty = converted(ty, charset::collation_or_binary(collation), &column.column.name)?;
        }
    }
    Ok(())
}

pub(super) fn column_of(draft: &Draft, name: &str, table: &str) -> Result<usize> {
    draft.column(name).ok_or_else(|| err!(BAD_FIELD_ERROR, name, table))
}

pub(super) fn find_check(draft: &Draft, name: &str) -> Option<usize> {
    draft
        .checks
        .iter()
        .position(|(known, _)| known.as_ref().is_some_and(|known| same_name(known, name)))
}

fn find_foreign_key(draft: &Draft, name: &str) -> Option<usize> {
    let named = |known: &Arc<str>| same_name(known, name);
    draft.foreign_keys.iter().position(|key| key.name.as_ref().is_some_and(named))
}

/// Where FIRST and AFTER put a column; at the end (or `default`) without either.
pub(super) fn place_for(
    draft: &Draft,
    position: Option<&ColumnPosition>,
    default: Option<usize>,
) -> Result<usize> {
    match position {
        None => Ok(default.unwrap_or(draft.columns.len())),
        // A generated key stays the first.
        Some(ColumnPosition::First) => Ok(usize::from(generated_key::is_in(draft))),
        Some(ColumnPosition::After(name)) => {
            column_of(draft, &name.text, &draft.name).map(|at| at + 1)
        }
    }
}

/// Moves a column to another position; does nothing for a column that does not exist (IF EXISTS).
pub(super) fn move_column(draft: &mut Draft, name: &str, position: &ColumnPosition) -> Result<()> {
    if let Some(at) = draft.column(name) {
        let moved = draft.columns.remove(at);
        let to = place_for(draft, Some(position), None)?;
        draft.columns.insert(to, moved);
    }
    Ok(())
}

/// Renames a column in everything that refers to it.
pub(super) fn rename_column(draft: &mut Draft, at: usize, new: &str) {
    let old = draft.columns[at].column.name.clone();
    let name: Arc<str> = Arc::from(new);
    draft.columns[at].column.name = name.clone();
    draft.columns[at].column.histogram = None;
    periods::rename_column(draft, &old, &name);
    for index in &mut draft.indexes {
        for part in &mut index.parts {
            if same_name(&part.column, &old) {
                part.column = name.clone();
            }
        }
    }
    for key in &mut draft.foreign_keys {
        for column in &mut key.columns {
            if same_name(column, &old) {
                *column = name.clone();
            }
        }
        if key.key.referenced_schema == draft.schema && key.key.referenced_table == draft.name {
            for column in &mut key.key.referenced_columns {
                if same_name(column, &old) {
                    *column = name.clone();
                }
            }
        }
    }
}
