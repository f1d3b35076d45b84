//! Generated invisible primary keys: the column `my_row_id`, which a table without a key gets when `sql_generate_invisible_primary_key` is ON. Nothing marks
//! such a key: one of its form counts as generated, whoever wrote it.

use std::sync::Arc;

use catalog::{Column, ColumnDefault, Table, same_name};
use errors::{Error, Result, bail};
use types::{DataType, TypeKind};

use crate::context::Context;
use crate::draft::{Draft, DraftColumn, DraftIndex, DraftPart, is_hidden};
use crate::engines::DECLARED_ENGINE;

/// The name of the column.
const NAME: &str = "my_row_id";
/// Digits of a BIGINT UNSIGNED.
const DIGITS: u32 = 20;

fn has_form(column: &Column) -> bool {
    same_name(&column.name, NAME)
        && column.ty.kind == TypeKind::BigInt
        && column.ty.unsigned
        && !column.ty.nullable
        && column.auto_increment
        && column.invisible
}

/// Whether the primary key of the table has the form of a generated one. Its column is the first.
pub fn has_generated_key(table: &Table) -> bool {
    let Some(primary) = table.primary() else { return false };
    table.columns.first().is_some_and(has_form)
        && matches!(&primary.parts[..], [part] if part.column == 0)
}

/// Whether that of the draft has.
pub(crate) fn is_in(draft: &Draft) -> bool {
    let Some(first) = draft.columns.first() else { return false };
    let primary = draft.indexes.iter().find(|index| index.primary);
    has_form(&first.column)
        && primary.is_some_and(|index| {
            matches!(&index.parts[..], [part] if same_name(&part.column, &first.column.name))
        })
}

/// Whether the statement is not to leave tables without a key.
fn is_wanted(ctx: &dyn Context) -> bool {
    variables::as_u64(&ctx.variable("sql_generate_invisible_primary_key")) != 0
}

/// Whether a row can be told by a key: the primary key, or a unique one whose parts are whole and NOT NULL.
fn has_key(draft: &Draft) -> bool {
    let is_whole = |part: &DraftPart| {
        let column = draft.column(&part.column).map(|at| &draft.columns[at].column);
        part.prefix_length.is_none()
            && column.is_some_and(|column| {
                !is_hidden(column) && (!column.ty.nullable || column.auto_increment)
            })
    };
    let mut indexes = draft.indexes.iter();
    indexes.any(|index| index.primary || index.unique && index.parts.iter().all(is_whole))
}

/// Adds a key to a new table that has none.
///
/// # Errors
/// 4108, 4109; 1235 for a partitioned table.
pub(crate) fn add(ctx: &dyn Context, draft: &mut Draft, is_partitioned: bool) -> Result<()> {
    let is_declared = draft.options.iter().any(|(name, _)| name == DECLARED_ENGINE);
    if !is_wanted(ctx) || is_declared || has_key(draft) {
        return Ok(());
    }
    if is_partitioned {
        return Err(Error::not_supported(
            "generating invisible primary key for the partitioned tables",
        ));
    }
    if draft.column(NAME).is_some() {
        bail!(GIPK_COLUMN_EXISTS);
    }
    if draft.columns.iter().any(|column| column.column.auto_increment) {
        bail!(GIPK_FAILED_AUTOINC_COLUMN_EXISTS);
    }
    let name: Arc<str> = NAME.into();
    let ty = DataType::new(TypeKind::BigInt, DIGITS, 0).with_nullable(false);
    let column = Column {
        name: name.clone(),
        ty: DataType { unsigned: true, ..ty },
        stored: None,
        default: ColumnDefault::None,
        on_update_now: None,
        auto_increment: true,
        generated: None,
        invisible: true,
        comment: String::new(),
        collation_written: false,
        histogram: None,
        placement: catalog::Placement::default(),
        history: catalog::ColumnHistory::Kept,
    };
    draft.columns.insert(
        0,
        DraftColumn { column, origin: None, null_written: Some(false), history_written: None },
    );
    let part = DraftPart { column: name, prefix_length: None, descending: false };
    draft.indexes.insert(0, DraftIndex::of_column(part, true));
    Ok(())
}

/// Checks an ALTER TABLE: a table with a key keeps one where keys are generated, and nothing of a generated key changes but its visibility.
///
/// # Errors
/// 1235, 4110, 4111.
pub(crate) fn check_altered(ctx: &dyn Context, old: &Table, draft: &Draft) -> Result<()> {
    if is_wanted(ctx) && has_key(&Draft::of(old)) && !has_key(draft) {
        return Err(Error::not_supported(
            "an operation that leaves the table without a PRIMARY KEY or a UNIQUE NOT NULL key while @@sql_generate_invisible_primary_key=ON.",
        ));
    }
    if !has_generated_key(old) {
        return Ok(());
    }
    let first = draft
        .columns
        .iter()
        .position(|column| column.origin == Some(0) && !column.column.is_vacant());
    let Some(at) = first else { return Ok(()) };
    let primary = draft.indexes.iter().find(|index| index.primary);
    if primary.is_none_or(|index| index.origin.is_none()) {
        bail!(DROP_PK_COLUMN_TO_DROP_GIPK);
    }
    let (before, after) = (&old.columns[0], &draft.columns[at].column);
    let is_same = at == 0
        && before.name == after.name
        && before.ty == after.ty
        && before.auto_increment == after.auto_increment
        && before.default == after.default
        && before.comment == after.comment
        && after.generated.is_none();
    if !is_same {
        bail!(GIPK_COLUMN_ALTER_NOT_ALLOWED, before.name);
    }
    Ok(())
}
