//! Checks of foreign keys: the parent, its key, the types on both sides.

use std::sync::Arc;

use catalog::{ForeignKey, Index, ReferenceAction, Table};
use errors::{Error, ErrorCode, Result, bail, err};
use syntax::ast;
use types::DataType;

use crate::context::Context;
use crate::draft::{Draft, DraftForeignKey};
use crate::names::is_too_long;
use crate::quoting::quote;

/// Checks the foreign keys of a new definition, except for those named in `existing`, and fills in the referenced columns that
/// were not written.
pub fn check_foreign_keys(
    ctx: &mut dyn Context,
    table: &mut Table,
    existing: &[Arc<str>],
) -> Result<()> {
    let snapshot = ctx.catalog();
    let own = table.clone();
    for key in &mut table.foreign_keys {
        if existing.contains(&key.name) {
            continue;
        }
        ctx.require_references(&key.referenced_schema, &key.referenced_table)?;
        let is_self = *key.referenced_schema == *own.schema && key.referenced_table == own.name;
        let parent = if is_self {
            Some(Arc::new(own.clone()))
        } else {
            snapshot.table(&key.referenced_schema, &key.referenced_table)
        };
        check_own_columns(&own, key)?;
        let Some(parent) = parent else {
            if ctx.settings().foreign_key_checks {
                bail!(FK_CANNOT_OPEN_PARENT, key.referenced_table);
            }
            continue;
        };
        if parent.partitioning.is_some() {
            bail!(FOREIGN_KEY_ON_PARTITIONED);
        }
        if key.referenced_columns.is_empty() {
            fill_referenced(key, &parent)?;
        }
        let enforce = ctx.settings().foreign_key_checks;
        let whole_unique = ctx.settings().restricts_foreign_keys;
        if !check_against_parent(&own, key, &parent, enforce, whole_unique)? {
            ctx.conditions().warn(ErrorCode::WARN_DEPRECATED_NON_STANDARD_KEY, &[&key.name]);
        }
    }
    Ok(())
}

/// Refuses actions of foreign keys on columns that stored generated columns are computed from: a row that follows its parent keeps
/// its stored values. What `old` had already may stay.
///
/// # Errors
/// 1215.
pub fn check_stored_bases(ctx: &dyn Context, table: &Table, old: Option<&Table>) -> Result<()> {
    let acts = |action| matches!(action, ReferenceAction::Cascade | ReferenceAction::SetNull);
    let acting = |key: &&ForeignKey| acts(key.on_update) || acts(key.on_delete);
    let keys: Vec<&ForeignKey> = table.foreign_keys.iter().filter(acting).collect();
    let stored = |column: &catalog::Column| column.generated.as_ref().is_some_and(|g| g.stored);
    if keys.is_empty() || !table.columns.iter().any(stored) {
        return Ok(());
    }
    let reads = reads_of_generated(ctx, table)?;
    let had_column = |name: &str| {
        old.is_some_and(|old| old.column(name).is_some_and(|at| stored(&old.columns[at])))
    };
    let had_key = |name: &Arc<str>| {
        old.is_some_and(|old| old.foreign_keys.iter().any(|key| key.name == *name))
    };
    for (position, column) in table.columns.iter().enumerate().filter(|(_, c)| stored(c)) {
        for key in &keys {
            let is_new = !had_column(&column.name) || !had_key(&key.name);
            if is_new && key.columns.iter().any(|base| reads[position].contains(base)) {
                bail!(CANNOT_ADD_FOREIGN);
            }
        }
    }
    Ok(())
}

/// A check may not read a column that the action of a foreign key writes: actions do not check. What `old` has together stays.
///
/// # Errors
/// 3823.
pub fn check_written_columns(ctx: &dyn Context, table: &Table, old: Option<&Table>) -> Result<()> {
    let writes = |key: &&ForeignKey| {
        let on_update =
            matches!(key.on_update, ReferenceAction::Cascade | ReferenceAction::SetNull);
        on_update || key.on_delete == ReferenceAction::SetNull
    };
    let keys: Vec<&ForeignKey> = table.foreign_keys.iter().filter(writes).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let typed = |column: &catalog::Column| (column.name.clone(), column.ty.clone());
    let columns: Vec<(Arc<str>, DataType)> = table.columns.iter().map(typed).collect();
    for check in &table.checks {
        let had_check = old.is_some_and(|old| old.checks.iter().any(|o| o.name == check.name));
        let read = ctx.bind(None, &columns, &check.expression)?.columns;
        for key in &keys {
            let had_key = old.is_some_and(|o| o.foreign_keys.iter().any(|k| k.name == key.name));
            let shared = key.columns.iter().find(|column| read.contains(column));
            if let (Some(column), false) = (shared, had_check && had_key) {
                let column = &table.columns[*column].name;
                bail!(
                    CHECK_CONSTRAINT_CLAUSE_USING_FK_REFER_ACTION_COLUMN,
                    column,
                    check.name,
                    key.name
                );
            }
        }
    }
    Ok(())
}

/// The columns that each generated column is computed from, through other generated columns too. A generated column reads only
/// generated columns before it.
fn reads_of_generated(ctx: &dyn Context, table: &Table) -> Result<Vec<Vec<usize>>> {
    let typed = |column: &catalog::Column| (column.name.clone(), column.ty.clone());
    let columns: Vec<(Arc<str>, DataType)> = table.columns.iter().map(typed).collect();
    let mut reads: Vec<Vec<usize>> = vec![Vec::new(); columns.len()];
    for (position, column) in table.columns.iter().enumerate() {
        let Some(generated) = &column.generated else { continue };
        let direct = ctx.bind(None, &columns, &generated.expression)?.columns;
        let through = direct.iter().flat_map(|at| reads[*at].clone()).collect::<Vec<_>>();
        reads[position] = direct.into_iter().chain(through).collect();
    }
    Ok(reads)
}

/// Checks that ALTER TABLE keeps the columns and indexes that foreign keys need: the existing keys of the table
/// (`existing`), and those of other tables to it. `origins`: the columns of `old` that those of `new` were.
///
/// # Errors
/// 1553, 1832, 1833, 3780.
pub(crate) fn check_kept_keys(
    ctx: &dyn Context,
    old: &Table,
    new: &Table,
    origins: &[Option<usize>],
    existing: &[Arc<str>],
) -> Result<()> {
    let enforce = ctx.settings().foreign_key_checks;
    let catalog = ctx.catalog();
    for key in new.foreign_keys.iter().filter(|key| existing.contains(&key.name)) {
        if refers(key, old) {
            check_as_parent(old, new, origins, new, key, enforce)?;
        } else if let Some(parent) = catalog.table(&key.referenced_schema, &key.referenced_table) {
            check_types(new, key, &parent, enforce)?;
        }
        let before: Option<Vec<usize>> = key.columns.iter().map(|at| origins[*at]).collect();
        if let Some(before) = before
            && let Some(lost) = lost_index(begins_with, (old, &before), (new, &key.columns))
        {
            bail!(DROP_INDEX_FK, lost.name);
        }
        for column in &key.columns {
            let before = origins[*column].map(|origin| &old.columns[origin].ty);
            let column = &new.columns[*column];
            if enforce && before.is_some_and(|before| loses(before, &column.ty)) {
                bail!(FK_COLUMN_CANNOT_CHANGE, column.name, key.name);
            }
        }
    }
    for child in catalog.children_of(&old.schema, &old.name) {
        if new.partitioning.is_some() {
            bail!(FOREIGN_KEY_ON_PARTITIONED);
        }
        let keys = child.foreign_keys.iter().filter(|key| refers(key, old));
        for key in keys.filter(|_| child.id != old.id) {
            check_as_parent(old, new, origins, &child, key, enforce)?;
        }
    }
    Ok(())
}

fn refers(key: &ForeignKey, table: &Table) -> bool {
    key.referenced_schema == table.schema && key.referenced_table == table.name
}

/// Whether values of one type may not fit another that foreign keys treat as the same.
fn loses(before: &DataType, after: &DataType) -> bool {
    before.is_string() && (before.kind != after.kind || after.length < before.length)
}

/// Checks the types on both sides of a kept key. Without foreign_key_checks only texts may differ.
fn check_types(table: &Table, key: &ForeignKey, parent: &Table, enforce: bool) -> Result<()> {
    for (own, other) in key.columns.iter().zip(&key.referenced_columns) {
        let own = &table.columns[*own];
        let Some(other) = parent.column(other).map(|position| &parent.columns[position]) else {
            continue;
        };
        let both_texts = own.ty.is_string() && other.ty.is_string();
        if !compatible(&own.ty, &other.ty) && (enforce || !both_texts) {
            bail!(FK_INCOMPATIBLE_COLUMNS, own.name, other.name, key.name);
        }
    }
    Ok(())
}

/// Whether `old` may become `new` while a key of `child` refers to it.
fn check_as_parent(
    old: &Table,
    new: &Table,
    origins: &[Option<usize>],
    child: &Table,
    key: &ForeignKey,
    enforce: bool,
) -> Result<()> {
    let before: Vec<usize> =
        key.referenced_columns.iter().filter_map(|name| old.column(name)).collect();
    let place = |column: &usize| origins.iter().position(|origin| *origin == Some(*column));
    let after: Vec<usize> = before.iter().filter_map(place).collect();
    if after.len() < key.columns.len() {
        // The old parent did not have columns of these names, or it loses them because nothing is checked.
        return Ok(());
    }
    let mut renamed = key.clone();
    renamed.referenced_columns =
        after.iter().map(|position| new.columns[*position].name.clone()).collect();
    check_types(child, &renamed, new, enforce)?;
    for (before, after) in before.iter().zip(&after) {
        let (before, after) = (&old.columns[*before], &new.columns[*after]);
        if enforce && loses(&before.ty, &after.ty) {
            let child = format!("{}.{}", child.schema, child.name);
            bail!(FK_COLUMN_CANNOT_CHANGE_CHILD, before.name, key.name, child);
        }
    }
    // A unique key of exactly these columns, or an index that begins with them, as before.
    let (old, new) = ((old, &*before), (new, &*after));
    let lost = match whole_indexes(old.0).any(|index| is_unique_over(index, &before)) {
        true => lost_index(is_unique_over, old, new),
        false => lost_index(begins_with, old, new),
    };
    match lost {
        Some(index) => Err(err!(DROP_INDEX_FK, index.name)),
        None => Ok(()),
    }
}

/// An index that `serves` columns of the old table, where no index serves them in the new one.
fn lost_index<'a>(
    serves: fn(&Index, &[usize]) -> bool,
    (old, before): (&'a Table, &[usize]),
    (new, after): (&Table, &[usize]),
) -> Option<&'a Index> {
    let stays = whole_indexes(new).any(|index| serves(index, after));
    whole_indexes(old).find(|index| !stays && serves(index, before))
}

/// The indexes that have one entry for each row.
fn whole_indexes(table: &Table) -> impl Iterator<Item = &Index> {
    table.indexes.iter().filter(|index| !table.is_multi_valued(index))
}

/// Whether an index is a unique key of exactly these columns.
fn is_unique_over(index: &Index, columns: &[usize]) -> bool {
    index.unique && index.parts.len() == columns.len() && begins_with(index, columns)
}

/// Whether an index begins with these columns, without prefix lengths.
fn begins_with(index: &Index, columns: &[usize]) -> bool {
    index.parts.len() >= columns.len()
        && index
            .parts
            .iter()
            .zip(columns)
            .all(|(part, column)| part.column == *column && part.prefix_length.is_none())
}

/// `REFERENCES t` means its primary key.
fn fill_referenced(key: &mut ForeignKey, parent: &Table) -> Result<()> {
    let primary = parent.primary().filter(|primary| primary.parts.len() == key.columns.len());
    let primary =
        primary.ok_or_else(|| err!(FK_NO_INDEX_PARENT, key.name, key.referenced_table))?;
    key.referenced_columns =
        primary.parts.iter().map(|part| parent.columns[part.column].name.clone()).collect();
    Ok(())
}

fn check_own_columns(table: &Table, key: &ForeignKey) -> Result<()> {
    let sets_null =
        key.on_delete == ReferenceAction::SetNull || key.on_update == ReferenceAction::SetNull;
    for column in &key.columns {
        let column = &table.columns[*column];
        if sets_null && !column.ty.nullable {
            bail!(FK_COLUMN_NOT_NULL, column.name, key.name);
        }
        if let Some(generated) = &column.generated {
            if !generated.stored {
                bail!(FK_CANNOT_USE_VIRTUAL_COLUMN, key.name, column.name);
            }
            let updates = match key.on_update {
                ReferenceAction::Cascade => Some("ON UPDATE CASCADE"),
                ReferenceAction::SetNull => Some("ON UPDATE SET NULL"),
                ReferenceAction::NoAction
                | ReferenceAction::Restrict
                | ReferenceAction::SetDefault => None,
            };
            let deletes =
                (key.on_delete == ReferenceAction::SetNull).then_some("ON DELETE SET NULL");
            if let Some(refused) = updates.or(deletes) {
                bail!(WRONG_FK_OPTION_FOR_GENERATED_COLUMN, refused);
            }
        }
    }
    Ok(())
}

/// Whether the key may refer to `parent`. `whole_unique`: only to a unique key of exactly these columns. Returns whether it does.
fn check_against_parent(
    table: &Table,
    key: &ForeignKey,
    parent: &Table,
    enforce: bool,
    whole_unique: bool,
) -> Result<bool> {
    let mut positions = Vec::with_capacity(key.referenced_columns.len());
    for name in &key.referenced_columns {
        match parent.column(name) {
            Some(position) => positions.push(position),
            None if enforce => bail!(FK_NO_COLUMN_PARENT, name, key.name, key.referenced_table),
            None => return Ok(true),
        }
    }
    for (own, other) in key.columns.iter().zip(&positions) {
        let (own, other) = (&table.columns[*own], &parent.columns[*other]);
        if other.generated.as_ref().is_some_and(|generated| !generated.stored) {
            bail!(FK_CANNOT_USE_VIRTUAL_COLUMN, key.name, other.name);
        }
        if !compatible(&own.ty, &other.ty) {
            bail!(FK_INCOMPATIBLE_COLUMNS, own.name, other.name, key.name);
        }
    }
    let is_unique = whole_indexes(parent).any(|index| is_unique_over(index, &positions));
    if whole_unique && !is_unique {
        bail!(FK_NO_UNIQUE_INDEX_PARENT, key.name, key.referenced_table);
    }
    if enforce && !whole_indexes(parent).any(|index| begins_with(index, &positions)) {
        bail!(FK_NO_INDEX_PARENT, key.name, key.referenced_table);
    }
    Ok(is_unique)
}

/// Types on both sides of a foreign key: integers of one size and sign, strings of one character set and collation.
fn compatible(own: &DataType, other: &DataType) -> bool {
    if own.is_string() && other.is_string() {
        return own.is_binary() == other.is_binary() && own.collation == other.collation;
    }
    own.kind == other.kind
        && own.unsigned == other.unsigned
        && (!matches!(own.kind, types::TypeKind::Decimal)
            || (own.length, own.decimals) == (other.length, other.decimals))
}

/// A foreign key as error 1701 names it.
pub fn foreign_key_reference(child: &Table, key: &ForeignKey) -> String {
    format!("{}.{}, CONSTRAINT {}", quote(&child.schema), quote(&child.name), quote(&key.name))
}

/// Whether the names that a foreign key gives may be names at all; 1059, 1103, 1166.
fn check_names(name: Option<&ast::Ident>, references: &ast::References) -> Result<()> {
    let schema = references.table.schema.as_ref();
    if let Some(long) = name.into_iter().chain(schema).find(|name| is_too_long(&name.text)) {
        bail!(TOO_LONG_IDENT, long.text);
    }
    let table = &references.table.name.text;
    if table.is_empty() || table.ends_with(' ') || is_too_long(table) {
        bail!(WRONG_TABLE_NAME, table);
    }
    let is_wrong = |name: &str| name.is_empty() || name.ends_with(' ') || is_too_long(name);
    if let Some(column) = references.columns.iter().find(|column| is_wrong(&column.text)) {
        bail!(WRONG_COLUMN_NAME, column.text);
    }
    Ok(())
}

/// A foreign key as a statement writes it.
pub(crate) fn foreign_key(
    name: Option<&ast::Ident>,
    columns: &[Arc<str>],
    references: &ast::References,
    draft: &Draft,
) -> Result<DraftForeignKey> {
    check_names(name, references)?;
    if !references.columns.is_empty() && references.columns.len() != columns.len() {
        let shown = name.map_or("foreign key without name", |name| &*name.text);
        bail!(WRONG_FK_DEF, shown, "Key reference and table reference don't match");
    }
    if references.match_kind.is_some_and(|kind| kind != ast::MatchKind::Simple) {
        return Err(Error::not_supported("MATCH FULL and MATCH PARTIAL"));
    }
    let action = |action: Option<ast::ReferenceAction>| match action {
        None | Some(ast::ReferenceAction::NoAction) => ReferenceAction::NoAction,
        Some(ast::ReferenceAction::Restrict) => ReferenceAction::Restrict,
        Some(ast::ReferenceAction::Cascade) => ReferenceAction::Cascade,
        Some(ast::ReferenceAction::SetNull) => ReferenceAction::SetNull,
        // Kept and shown; it acts as NO ACTION.
        Some(ast::ReferenceAction::SetDefault) => ReferenceAction::SetDefault,
    };
    let schema = references.table.schema.as_ref().map_or(&*draft.schema, |schema| &*schema.text);
    let key = ForeignKey {
        name: Arc::from(""),
        columns: Vec::new(),
        referenced_schema: schema.into(),
        referenced_table: Arc::from(&*references.table.name.text),
        referenced_columns: references.columns.iter().map(|name| Arc::from(&*name.text)).collect(),
        on_update: action(references.on_update),
        on_delete: action(references.on_delete),
    };
    Ok(DraftForeignKey {
        name: name.map(|name| Arc::from(&*name.text)),
        columns: columns.to_vec(),
        key,
        existing: false,
    })
}
