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
