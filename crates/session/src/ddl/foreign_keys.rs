//! Whether foreign keys may be: the parent, its key, the types on both sides.

use std::sync::Arc;

use catalog::{ForeignKey, ReferenceAction, Table};
use errors::{Result, bail, err};
use types::DataType;

use crate::session::Session;

impl Session {
    /// Checks the foreign keys of a new definition, those named in `existing` excepted, and fills in the referenced columns that
    /// were not written.
    pub(crate) fn check_foreign_keys(
        &self,
        table: &mut Table,
        existing: &[Arc<str>],
    ) -> Result<()> {
        let snapshot = self.server.catalog.snapshot();
        let own = table.clone();
        for key in &mut table.foreign_keys {
            if existing.contains(&key.name) {
                continue;
            }
            self.require_on_table(
                &key.referenced_schema,
                &key.referenced_table,
                catalog::PrivilegeSet::REFERENCES,
            )?;
            let is_self = *key.referenced_schema == *own.schema && key.referenced_table == own.name;
            let parent = if is_self {
                Some(Arc::new(own.clone()))
            } else {
                snapshot.table(&key.referenced_schema, &key.referenced_table)
            };
            check_own_columns(&own, key)?;
            let Some(parent) = parent else {
                if self.settings.foreign_key_checks {
                    bail!(FK_CANNOT_OPEN_PARENT, key.referenced_table);
                }
                continue;
            };
            if key.referenced_columns.is_empty() {
                fill_referenced(key, &parent)?;
            }
            let enforce = self.settings.foreign_key_checks;
            check_against_parent(&own, key, &parent, enforce)?;
        }
        Ok(())
    }

    /// What ALTER TABLE may not take from foreign keys that stay: types that go together, and indexes on both sides.
    /// `origins`: the old column behind each new one.
    pub(crate) fn check_kept_foreign_keys(
        &self,
        old: &Table,
        new: &Table,
        origins: &[Option<usize>],
    ) -> Result<()> {
        let snapshot = self.server.catalog.snapshot();
        let moved = |at: &usize| origins.iter().position(|origin| *origin == Some(*at));
        let stays = |key: &ForeignKey| new.foreign_keys.iter().any(|kept| kept.name == key.name);
        for key in old.foreign_keys.iter().filter(|key| stays(key)) {
            let columns: Option<Vec<usize>> = key.columns.iter().map(moved).collect();
            let Some(columns) = columns else { continue };
            keep_index(old, &key.columns, new, &columns)?;
            let Some(parent) = snapshot.table(&key.referenced_schema, &key.referenced_table) else {
                continue;
            };
            for ((was, at), name) in key.columns.iter().zip(&columns).zip(&key.referenced_columns) {
                let (was, own) = (&old.columns[*was], &new.columns[*at]);
                let other = match (parent.column(name), parent.id == old.id) {
                    (Some(at), true) => moved(&at).map(|at| &new.columns[at]),
                    (at, _) => at.map(|at| &parent.columns[at]),
                };
                let Some(other) = other else { continue };
                if was.ty != own.ty && !compatible(&own.ty, &other.ty) {
                    bail!(FK_INCOMPATIBLE_COLUMNS, own.name, other.name, key.name);
                }
            }
        }
        for child in snapshot.children_of(&old.schema, &old.name) {
            let refers = |key: &&ForeignKey| {
                key.referenced_schema == old.schema
                    && key.referenced_table == old.name
                    && (child.id != old.id || stays(key))
            };
            for key in child.foreign_keys.iter().filter(refers) {
                let names = key.referenced_columns.iter();
                let before: Option<Vec<usize>> = names.map(|name| old.column(name)).collect();
                let Some(before) = before else { continue };
                let after: Option<Vec<usize>> = before.iter().map(moved).collect();
                let Some(after) = after else { continue };
                keep_index(old, &before, new, &after)?;
                for ((was, at), own) in before.iter().zip(&after).zip(&key.columns) {
                    let own = match (child.id == old.id, moved(own)) {
                        (true, Some(own)) => &new.columns[own],
                        _ => &child.columns[*own],
                    };
                    let (was, other) = (&old.columns[*was], &new.columns[*at]);
                    if was.ty != other.ty && !compatible(&own.ty, &other.ty) {
                        bail!(FK_INCOMPATIBLE_COLUMNS, own.name, other.name, key.name);
                    }
                }
            }
        }
        Ok(())
    }
}

/// 1553 when no index begins with the columns of a foreign key any more.
fn keep_index(old: &Table, before: &[usize], new: &Table, after: &[usize]) -> Result<()> {
    fn begins(index: &catalog::Index, columns: &[usize]) -> bool {
        let mut pairs = index.parts.iter().zip(columns);
        index.parts.len() >= columns.len()
            && pairs.all(|(part, at)| part.column == *at && part.prefix_length.is_none())
    }
    if new.indexes.iter().any(|index| begins(index, after)) {
        return Ok(());
    }
    match old.indexes.iter().find(|index| begins(index, before)) {
        Some(lost) => Err(err!(DROP_INDEX_FK, lost.name)),
        None => Ok(()),
    }
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
            let changes =
                |action| matches!(action, ReferenceAction::Cascade | ReferenceAction::SetNull);
            if changes(key.on_update) || key.on_delete == ReferenceAction::SetNull {
                bail!(WRONG_FK_OPTION_FOR_GENERATED_COLUMN, "ON UPDATE");
            }
        }
    }
    Ok(())
}

fn check_against_parent(
    table: &Table,
    key: &ForeignKey,
    parent: &Table,
    enforce: bool,
) -> Result<()> {
    let mut positions = Vec::with_capacity(key.referenced_columns.len());
    for name in &key.referenced_columns {
        match parent.column(name) {
            Some(position) => positions.push(position),
            None if enforce => bail!(FK_NO_COLUMN_PARENT, name, key.name, key.referenced_table),
            None => return Ok(()),
        }
    }
    for (own, other) in key.columns.iter().zip(&positions) {
        let (own, other) = (&table.columns[*own], &parent.columns[*other]);
        if !compatible(&own.ty, &other.ty) {
            bail!(FK_INCOMPATIBLE_COLUMNS, own.name, other.name, key.name);
        }
    }
    let begins =
        |index: &catalog::Index| {
            index.parts.len() >= positions.len()
                && index.parts.iter().zip(&positions).all(|(part, position)| {
                    part.column == *position && part.prefix_length.is_none()
                })
        };
    if !parent.indexes.iter().any(begins) {
        if !enforce {
            return Ok(());
        }
        bail!(FK_NO_INDEX_PARENT, key.name, key.referenced_table);
    }
    let whole_unique = |index: &catalog::Index| {
        index.unique && index.parts.len() == positions.len() && begins(index)
    };
    if enforce && !parent.indexes.iter().any(whole_unique) {
        bail!(FK_NO_UNIQUE_INDEX_PARENT, key.name, key.referenced_table);
    }
    Ok(())
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
