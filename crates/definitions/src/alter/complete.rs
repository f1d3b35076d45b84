//! From the draft of an altered table to its new definition, with the checks of the whole table.

use std::sync::Arc;

use catalog::{Check, Table};
use errors::{Result, bail};
use types::TypeKind;

use crate::context::Context;
use crate::draft::{Draft, materialise_indexed_columns};
use crate::expressions::check_expressions;
use crate::foreign_keys::{
    check_foreign_keys, check_kept_keys, check_stored_bases, check_written_columns,
};
use crate::generated_key;
use crate::indexes::note_repeated_indexes;
use crate::names::check_made_names;
use crate::partitions::{check_partitioned, renew_partition_values};
use crate::timestamps;

/// The definition that an ALTER TABLE requests, checked, and its new parts.
#[derive(Debug)]
pub struct Altered {
    /// The new definition, under the id of the old one.
    pub table: Table,
    /// Each new column's position in the old table.
    pub origins: Vec<Option<usize>>,
    /// AUTO_INCREMENT as the statement gives it.
    pub next: Option<u64>,
    /// Foreign keys are added.
    pub adds_foreign_keys: bool,
    /// Checks are added, or begin to be enforced.
    pub adds_checks: bool,
}

/// 3644 where a column with a spatial index that stays gets another SRID attribute.
fn check_reference_systems(old: &Table, draft: &Draft) -> Result<()> {
    for index in draft.indexes.iter().filter(|index| index.spatial && index.origin.is_some()) {
        let column = index.parts.first().and_then(|part| draft.column(&part.column));
        let Some(column) = column.map(|at| &draft.columns[at]) else { continue };
        let before = column.origin.map(|origin| &old.columns[origin].ty);
        let is_geometry = column.column.ty.kind == TypeKind::Geometry;
        let srid = column.column.ty.spatial.srid;
        if is_geometry && before.is_some_and(|before| before.spatial.srid != srid) {
            bail!(CANNOT_ALTER_SRID_DUE_TO_INDEX, column.column.name);
        }
    }
    Ok(())
}

/// Makes the new definition of `old`. `rename`: its new schema and name.
///
/// # Errors
/// Any error of the definition as a whole; 1050 when the new name is already used.
pub fn complete(
    ctx: &mut dyn Context,
    old: &Table,
    mut draft: Draft,
    rename: Option<&(Arc<str>, Arc<str>)>,
) -> Result<Altered> {
    crate::history::settle(&mut draft, false)?;
    crate::periods::settle(&mut draft)?;
    generated_key::check_altered(ctx, old, &draft)?;
    timestamps::imply_defaults(ctx, &mut draft)?;
    materialise_indexed_columns(&mut draft);
    draft.name_checks(Some(old))?;
    check_expressions(ctx, &draft)?;
    renew_partition_values(ctx, &mut draft)?;
    check_partitioned(ctx, &draft)?;
    let next = draft.auto_increment;
    let existing: Vec<Arc<str>> = draft
        .foreign_keys
        .iter()
        .filter(|key| key.existing)
        .filter_map(|key| key.name.clone())
        .collect();
    let origins: Vec<Option<usize>> = draft.columns.iter().map(|column| column.origin).collect();
    draft.fit_comments(ctx)?;
    check_reference_systems(old, &draft)?;
    crate::engines::choose_methods(ctx.conditions(), &mut draft);
    let mut table = draft.finish(old.id, Some(old))?;
    note_repeated_indexes(ctx.conditions(), &table, Some(old));
    crate::engines::check_abilities(ctx, &table)?;
    check_foreign_keys(ctx, &mut table, &existing)?;
    check_stored_bases(ctx, &table, Some(old))?;
    check_written_columns(ctx, &table, Some(old))?;
    check_kept_keys(ctx, old, &table, &origins, &existing)?;
    let adds_foreign_keys = table.foreign_keys.len() > existing.len();
    let is_enforced = |check: &Check| {
        let mut known = old.checks.iter();
        known.any(|known| known.enforced && known.expression == check.expression)
    };
    let adds_checks = table.checks.iter().any(|check| check.enforced && !is_enforced(check));
    let catalog = ctx.catalog();
    if let Some((schema, name)) = rename {
        let same = *schema == old.schema && *name == old.name;
        if !same && catalog.kind(schema, name).is_some() {
            bail!(TABLE_EXISTS_ERROR, name);
        }
        table.rename(schema, name);
        check_made_names(&table)?;
    }
    if !old.temporary {
        catalog.check_constraint_names(&table, Some(old.id))?;
    }
    Ok(Altered { table, origins, next, adds_foreign_keys, adds_checks })
}
