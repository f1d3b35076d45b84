//! Several actions of one ALTER TABLE: all name the columns of the table as it was, and what is dropped makes room for what comes.

use errors::{Result, bail};
use syntax::ast::{AlterAction, Ident};

use super::actions::{column_of, rename_column};
use crate::ddl::draft::Draft;
use crate::session::Session;

/// Which actions come first. Indexes go before their columns, foreign keys before their indexes.
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
        _ => 4,
    }
}

/// The column that an action gives another name, and that name.
fn renamed(action: &mut AlterAction) -> Option<(&mut Ident, &Ident)> {
    match action {
        AlterAction::RenameColumn { old, new } => Some((old, new)),
        AlterAction::ChangeColumn { old, column, .. } => Some((old, &column.name)),
        _ => None,
    }
}

impl Session {
    /// The actions in the order in which they are applied. Columns that get another name have one meanwhile that
    /// nobody can write, so that names may be exchanged.
    pub(super) fn ordered_actions(
        &self,
        draft: &mut Draft,
        actions: &[AlterAction],
    ) -> Result<Vec<AlterAction>> {
        let mut actions = actions.to_vec();
        actions.sort_by_key(rank);
        let mut places: Vec<(usize, String)> = Vec::new();
        for (number, action) in actions.iter_mut().enumerate() {
            let conditional = matches!(action, AlterAction::ChangeColumn { if_exists: true, .. });
            let Some((old, new)) = renamed(action) else { continue };
            if old.text == new.text || conditional && draft.column(&old.text).is_none() {
                continue;
            }
            let at = column_of(draft, &old.text, &draft.name)?;
            if places.iter().any(|(known, _)| *known == at) {
                bail!(BAD_FIELD_ERROR, old.text, draft.name);
            }
            self.refuse_dependents(draft, at)?;
            let meanwhile = format!("\0{number}");
            old.text = meanwhile.as_str().into();
            places.push((at, meanwhile));
        }
        for (at, meanwhile) in places {
            rename_column(draft, at, &meanwhile);
        }
        Ok(actions)
    }
}
