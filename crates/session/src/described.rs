//! Servers and spatial reference systems: CREATE, ALTER and DROP.

use ::accounts::PrivilegeChecks;
use catalog::{Edit, PrivilegeSet};
use definitions::{
    IfExists, create_reference_system, drop_reference_system, drop_server, put_server,
};
use errors::{Level, Result, bail};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::Statement;

use crate::session::Session;

/// CREATE, ALTER and DROP SERVER.
///
/// # Errors
/// 1227, those of `put_server` and `drop_server`.
pub(crate) fn change_server(
    session: &mut Session,
    statement: &Statement,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_global(PrivilegeSet::SUPER)?;
    let snapshot = session.server.catalog.snapshot();
    let mut edit = None;
    if let Statement::Server(server) = statement {
        let change = put_server(server, &snapshot)?;
        let level = if change.edit.is_some() { Level::Warning } else { Level::Note };
        change.warnings.iter().for_each(|warning| session.working.push_error(level, warning));
        edit = change.edit;
    } else if let Statement::DropServer { if_exists, name } = statement {
        edit = drop_server(name, IfExists::of(*if_exists), &snapshot)?;
    }
    carry_out(session, edit, 1, sink)
}

/// CREATE and DROP SPATIAL REFERENCE SYSTEM.
///
/// # Errors
/// 6427, those of `create_reference_system` and `drop_reference_system`.
pub(crate) fn change_reference_system(
    session: &mut Session,
    statement: &Statement,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let is_drop = matches!(statement, Statement::DropSpatialReferenceSystem { .. });
    if !session.privileges.has_dynamic("CREATE_SPATIAL_REFERENCE_SYSTEM") {
        let verb = if is_drop { "DROP" } else { "CREATE" };
        bail!(CMD_NEED_SUPER_OR_CREATE_SRS, format!("{verb} SPATIAL REFERENCE SYSTEM"));
    }
    let snapshot = session.server.catalog.snapshot();
    let change = if let Statement::CreateSpatialReferenceSystem(create) = statement {
        create_reference_system(create, &snapshot)?
    } else if let Statement::DropSpatialReferenceSystem { if_exists, srid } = statement {
        drop_reference_system(*srid, IfExists::of(*if_exists), &snapshot)?
    } else {
        Default::default()
    };
    if let Some(warning) = &change.warning {
        session.working.push_error(Level::Warning, warning);
    }
    carry_out(session, change.edit, 0, sink)
}

fn carry_out(
    session: &mut Session,
    edit: Option<Edit>,
    affected_rows: u64,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.check_writable()?;
    let commit = match &edit {
        Some(edit) => Some(session.commit_definitions(std::slice::from_ref(edit))?),
        None => None,
    };
    session.send_ok(sink, OkInfo { affected_rows, commit, ..OkInfo::default() })
}
