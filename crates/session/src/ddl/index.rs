//! CREATE INDEX and DROP INDEX, as ALTER TABLE.

use errors::{Result, err};
use plugin_api::ResultSink;
use syntax::ast::{AlterAction, AlterTable, CreateIndex, DropIndex, Ident, TableConstraint};

use super::alter::alter_with;
use crate::session::Session;
use programs::Running;

/// CREATE INDEX.
pub(crate) fn create_index(
    session: &mut Session,
    create: &CreateIndex,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    alter_with(session, &creation(create)?, catalog::PrivilegeSet::INDEX, running, sink)
}

/// CREATE INDEX as ALTER TABLE.
pub(super) fn creation(create: &CreateIndex) -> Result<AlterTable> {
    let mut index = create.index.clone();
    index.if_not_exists |= create.flags.if_not_exists;
    let mut actions = Vec::new();
    if create.flags.or_replace {
        let name = index.name.clone().ok_or_else(|| err!(WRONG_NAME_FOR_INDEX, ""))?;
        actions.push(AlterAction::DropIndex { name, if_exists: true });
    }
    actions.push(AlterAction::AddConstraint(Box::new(TableConstraint::Index(index))));
    actions.extend(demands(create.algorithm.as_ref(), create.lock.as_ref()));
    Ok(AlterTable { name: create.table.clone(), if_exists: false, actions, partitioning: None })
}

/// DROP INDEX.
pub(crate) fn drop_index(
    session: &mut Session,
    drop: &DropIndex,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    alter_with(session, &dropping(drop), catalog::PrivilegeSet::INDEX, running, sink)
}

/// DROP INDEX as ALTER TABLE.
pub(super) fn dropping(drop: &DropIndex) -> AlterTable {
    let action = if drop.name.is("PRIMARY") {
        AlterAction::DropPrimaryKey
    } else {
        AlterAction::DropIndex { name: drop.name.clone(), if_exists: drop.if_exists }
    };
    let mut actions = vec![action];
    actions.extend(demands(drop.algorithm.as_ref(), drop.lock.as_ref()));
    AlterTable { name: drop.table.clone(), if_exists: false, actions, partitioning: None }
}

/// ALGORITHM and LOCK as ALTER TABLE has them.
fn demands(algorithm: Option<&Ident>, lock: Option<&Ident>) -> impl Iterator<Item = AlterAction> {
    let algorithm = algorithm.cloned().map(AlterAction::Algorithm);
    algorithm.into_iter().chain(lock.cloned().map(AlterAction::Lock))
}
