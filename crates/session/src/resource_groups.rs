//! CREATE, ALTER, DROP and SET RESOURCE GROUP, and the hint of that name.

use std::sync::Arc;

use ::accounts::PrivilegeChecks;
use catalog::ResourceGroup;
use definitions::{USER_DEFAULT, change_resource_group, resource_group};
use errors::{Level, Result, bail};
use observation::{check_for_session, may_use_groups};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast;

use crate::session::Session;

/// CREATE, ALTER and DROP RESOURCE GROUP.
///
/// # Errors
/// 1227, those of `change_resource_group`, 3656.
pub(crate) fn change(
    session: &mut Session,
    statement: &ast::ResourceGroup,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_dynamic_alone("RESOURCE_GROUP_ADMIN")?;
    let usable = sys::affinity::of_process();
    let snapshot = session.server.catalog.snapshot();
    let change = change_resource_group(statement, &snapshot, &usable)?;
    let sessions = &session.server.sessions;
    if change.must_be_empty && sessions.are_in_group(&change.name) {
        bail!(RESOURCE_GROUP_BUSY, change.name);
    }
    let commit = session.commit_definitions(std::slice::from_ref(&change.edit))?;
    session.server.sessions.change_group(&change.name, change.stays.as_deref());
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

/// SET RESOURCE GROUP.
///
/// # Errors
/// 1227, 1059, 3651, 3657, 3660, 3661.
pub(crate) fn set(
    session: &mut Session,
    name: &ast::Ident,
    threads: &[u64],
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if !may_use_groups(&session.privileges) {
        bail!(SPECIFIC_ACCESS_DENIED_ERROR, "RESOURCE_GROUP_ADMIN OR RESOURCE_GROUP_USER");
    }
    let group = resource_group(&session.server.catalog.snapshot(), &name.text)?;
    let is_default = &*group.name == USER_DEFAULT;
    let own = session.shared.id;
    for error in session.server.sessions.set_group(&group, is_default, own, threads)? {
        session.working.push_error(Level::Warning, &error);
    }
    session.send_ok(sink, OkInfo::default())
}

/// The group that a statement's hint names, enabled or not.
///
/// # Errors
/// 1227, 1059, 3651, 3661.
pub(crate) fn hinted(session: &Session, name: &str) -> Result<Arc<ResourceGroup>> {
    if !may_use_groups(&session.privileges) {
        let names = "SUPER OR RESOURCE_GROUP_ADMIN OR RESOURCE_GROUP_USER";
        bail!(SPECIFIC_ACCESS_DENIED_ERROR, names);
    }
    let group = resource_group(&session.server.catalog.snapshot(), name)?;
    let why = "System resource group can't be bound with a session thread";
    check_for_session(&group, session.shared.id, why)?;
    Ok(group)
}
