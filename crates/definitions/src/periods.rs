//! Periods of application time in definitions: two columns that say from when to when a row holds, and unique keys over them WITHOUT OVERLAPS.

use std::sync::Arc;

use catalog::{ColumnDefault, Period, same_name};
use errors::{Error, ErrorCode, Result, bail, err};
use syntax::ast::{Ident, IndexAlgorithm, IndexDef, IndexOption};
use types::{TypeKind, Value};

use crate::context::Context;
use crate::draft::{Draft, DraftIndex, DraftPart, DraftPeriod};

/// PERIOD FOR of a definition.
///
/// # Errors
/// 4154 for a second one.
pub(crate) fn declare(draft: &mut Draft, name: &Ident, start: &Ident, end: &Ident) -> Result<()> {
    if draft.period.is_some() {
        bail!(MORE_THAN_ONE_PERIOD);
    }
    let text = |ident: &Ident| Arc::from(&*ident.text);
    draft.period = Some(DraftPeriod { name: text(name), start: text(start), end: text(end) });
    Ok(())
}

/// ADD PERIOD. Whether there is a new one.
///
/// # Errors
/// As `declare`.
pub(crate) fn add(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    (name, if_not_exists): (&Ident, bool),
    (start, end): (&Ident, &Ident),
) -> Result<bool> {
    let is_there = draft.period.as_ref().is_some_and(|known| same_name(&known.name, &name.text));
    if if_not_exists && is_there {
        ctx.conditions().note(ErrorCode::DUP_FIELDNAME, &[&name.text]);
        return Ok(false);
    }
    declare(draft, name, start, end).map(|()| true)
}

/// DROP PERIOD.
///
/// # Errors
/// 1091.
pub(crate) fn remove(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    name: &Ident,
    if_exists: bool,
) -> Result<()> {
    if draft.period.as_ref().is_some_and(|period| same_name(&period.name, &name.text)) {
        draft.period = None;
    } else if if_exists {
        ctx.conditions().note(ErrorCode::CANT_DROP_FIELD_OR_KEY, &[&name.text]);
    } else {
        bail!(CANT_DROP_FIELD_OR_KEY, name.text);
    }
    Ok(())
}

/// A column of the table has another name.
pub(crate) fn rename_column(draft: &mut Draft, old: &str, new: &Arc<str>) {
    let Some(period) = &mut draft.period else { return };
    for column in [&mut period.start, &mut period.end] {
        if same_name(column, old) {
            *column = new.clone();
        }
    }
}

/// One of several columns of a key WITHOUT OVERLAPS stays as long as the key does: without it fewer rows could be beside each other. With its only one
/// the key goes.
///
/// # Errors
/// 1072.
pub(crate) fn check_dropped(draft: &Draft, column: &str) -> Result<()> {
    let has = |index: &&DraftIndex| {
        index.without_overlaps.is_some()
            && index.parts.len() > 1
            && index.parts.iter().any(|part| same_name(&part.column, column))
    };
    if draft.indexes.iter().any(|index| has(&index)) {
        bail!(KEY_COLUMN_DOES_NOT_EXIST, column);
    }
    Ok(())
}

/// DROP CONSTRAINT of a name that no constraint has: that of the period's check is an error of its own.
///
/// # Errors
/// 4158.
pub(crate) fn check_constraint_name(draft: &Draft, name: &str) -> Result<()> {
    if let Some(period) = draft.period.as_ref().filter(|known| same_name(&known.name, name)) {
        bail!(PERIOD_CONSTRAINT_DROP, period.name, period.name);
    }
    Ok(())
}

/// The period that a key's `WITHOUT OVERLAPS` names.
///
/// # Errors
/// 4171 for a hash, 1235 for expressions.
pub(crate) fn period_of_key(definition: &IndexDef, name: &str) -> Result<Option<Arc<str>>> {
    let Some(period) = &definition.without_overlaps else { return Ok(None) };
    let is_hash = |option: &IndexOption| matches!(option, IndexOption::Using(IndexAlgorithm::Hash));
    if definition.options.iter().any(is_hash) {
        bail!(KEY_CANT_HAVE_WITHOUT_OVERLAPS, name);
    }
    let is_expression =
        |part: &syntax::ast::KeyPart| matches!(part.kind, syntax::ast::KeyPartKind::Expr(_));
    if definition.parts.iter().any(is_expression) {
        return Err(Error::not_supported("WITHOUT OVERLAPS of expressions"));
    }
    Ok(Some(Arc::from(&*period.text)))
}

/// Checks the period and the keys over it, and makes its columns NOT NULL.
///
/// # Errors
/// 1054, 1060, 1063, 1110, 1235, 4152, 4153, 4155, 4156, 4170.
pub(crate) fn settle(draft: &mut Draft) -> Result<()> {
    if let Some(period) = draft.period.clone() {
        settle_columns(draft, &period)?;
    }
    let period = draft.period.clone();
    for index in &mut draft.indexes {
        let Some(named) = &index.without_overlaps else { continue };
        let period = period.as_ref().filter(|period| same_name(&period.name, named));
        let period = period.ok_or_else(|| err!(PERIOD_NOT_FOUND, named))?;
        if let Some(part) = index.parts.iter().find(|part| period.is_of(&part.column)) {
            let name = index.name.clone().unwrap_or_else(|| Arc::from(""));
            bail!(KEY_CONTAINS_PERIOD_FIELDS, name, part.column);
        }
        let part = |column: &Arc<str>| DraftPart {
            column: column.clone(),
            prefix_length: None,
            descending: false,
        };
        index.parts.extend([part(&period.end), part(&period.start)]);
    }
    Ok(())
}

fn settle_columns(draft: &mut Draft, period: &DraftPeriod) -> Result<()> {
    if draft.temporary {
        bail!(PERIOD_TEMPORARY_NOT_ALLOWED);
    }
    if draft.column(&period.name).is_some() {
        bail!(DUP_FIELDNAME, period.name);
    }
    if same_name(&period.start, &period.end) {
        bail!(FIELD_SPECIFIED_TWICE, period.start);
    }
    let find = |name: &str| {
        let found = draft.column(name);
        found.ok_or_else(|| err!(BAD_FIELD_ERROR, name, period.name))
    };
    let places = [find(&period.start)?, find(&period.end)?];
    for column in places.map(|at| &draft.columns[at].column) {
        if !matches!(column.ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp) {
            bail!(WRONG_FIELD_SPEC, column.name);
        }
        if column.is_computed() {
            bail!(PERIOD_FIELD_WRONG_ATTRIBUTES, column.name, "GENERATED ALWAYS AS");
        }
    }
    let [start, end] = places.map(|at| &draft.columns[at].column.ty);
    if start.kind != end.kind || start.decimals != end.decimals {
        bail!(PERIOD_TYPES_MISMATCH, period.name);
    }
    for at in places {
        let column = &mut draft.columns[at];
        column.null_written = Some(false);
        column.column.ty.nullable = false;
        if column.column.default == ColumnDefault::Constant(Value::Null) {
            column.column.default = ColumnDefault::None;
        }
    }
    Ok(())
}

/// The period as the catalog has it.
pub(crate) fn resolve(draft: &Draft) -> Option<Period> {
    let period = draft.period.as_ref()?;
    let (start, end) = (draft.column(&period.start)?, draft.column(&period.end)?);
    Some(Period { name: period.name.clone(), start, end })
}

/// Whether an ALTER TABLE has to look at rows again: new periods and keys over them must hold of all.
pub(crate) fn looks_at_rows(definition: &IndexDef) -> bool {
    definition.without_overlaps.is_some()
}
