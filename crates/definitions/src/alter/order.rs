//! Several actions of one ALTER TABLE: all name the columns of the table as it was, drops make room for additions, and columns
//! get their positions last, in the order of the statement.

use errors::{Result, bail};
use syntax::ast::{AlterAction, ColumnPosition, Ident};

use super::actions::{column_of, refuse_dependents, rename_column};
use crate::context::Context;
use crate::draft::Draft;

/// The rank of the last actions.
const LAST: u8 = 4;

/// The order of actions. Indexes are dropped before their columns, foreign keys before their indexes.
fn rank(action: &AlterAction) -> u8 {
    match action {
        AlterAction::DropForeignKey { .. } => 0,
        AlterAction::DropIndex { .. }
        | AlterAction::DropPrimaryKey
        | AlterAction::DropCheck(_)
        | AlterAction::DropConstraint { .. } => 1,
        AlterAction::DropColumn { .. } => 2,
        AlterAction::RenameColumn { .. }
        | AlterAction::ChangeColumn { .. }
        | AlterAction::ModifyColumn { .. } => 3,
        _ => LAST,
    }
}

/// A part of a statement's work.
pub(crate) enum Step {
    Action(AlterAction),
    /// A column that is already changed moves to its position.
    Move(Ident, ColumnPosition),
}

/// The position that a changed column moves to, under its new name.
fn taken_move(action: &mut AlterAction) -> Option<Step> {
    match action {
        AlterAction::ModifyColumn { column, position, .. }
        | AlterAction::ChangeColumn { column, position, .. } => {
            let position = position.take()?;
            Some(Step::Move(column.name.clone(), position))
        }
        _ => None,
    }
}

/// The column that an action renames, and its new name.
fn renamed(action: &mut AlterAction) -> Option<(&mut Ident, &Ident)> {
    match action {
        AlterAction::RenameColumn { old, new } => Some((old, new)),
        AlterAction::ChangeColumn { old, column, .. } => Some((old, &column.name)),
        _ => None,
    }
}

/// Returns the steps in the order in which they are taken. A column that is renamed gets a temporary name that
/// no statement can contain, so that names may be exchanged.
pub(crate) fn ordered_actions(
    ctx: &dyn Context,
    draft: &mut Draft,
    actions: &[AlterAction],
) -> Result<Vec<Step>> {
    let mut steps = Vec::with_capacity(actions.len());
    for action in actions {
        let (mut action, rank) = (action.clone(), rank(action));
        let moved = taken_move(&mut action);
        steps.push((rank, Step::Action(action)));
        steps.extend(moved.map(|moved| (LAST, moved)));
    }
    steps.sort_by_key(|(rank, _)| *rank);
    let mut steps: Vec<Step> = steps.into_iter().map(|(_, step)| step).collect();
    let mut places: Vec<(usize, String)> = Vec::new();
    for (number, step) in steps.iter_mut().enumerate() {
        let Step::Action(action) = step else { continue };
        let conditional = matches!(action, AlterAction::ChangeColumn { if_exists: true, .. });
        let Some((old, new)) = renamed(action) else { continue };
        if old.text == new.text || conditional && draft.column(&old.text).is_none() {
            continue;
        }
        let at = column_of(draft, &old.text, &draft.name)?;
        if places.iter().any(|(known, _)| *known == at) {
            bail!(BAD_FIELD_ERROR, old.text, draft.name);
        }
        refuse_dependents(ctx, draft, at)?;
        let temporary = format!("\0{number}");
        old.text = temporary.as_str().into();
        places.push((at, temporary));
    }
    for (at, temporary) in places {
        rename_column(draft, at, &temporary);
    }
    Ok(steps)
}
