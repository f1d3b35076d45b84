//! CREATE, ALTER and DROP TABLESPACE.

use ::accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use definitions::{change_tablespace, refuse_logfile_group};
use errors::Result;
use plugin_api::{OkInfo, ResultSink};
use programs::Running;
use syntax::ast::Tablespace;

use super::definer::Definer;
use crate::session::Session;

/// Runs the statement.
///
/// # Errors
/// 1227, those of `change_tablespace`.
pub(crate) fn change(
    session: &mut Session,
    statement: &Tablespace,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_global(PrivilegeSet::CREATE_TABLESPACE)?;
    let edits = change_tablespace(&mut Definer::new(session, running), statement)?;
    let tables: Vec<_> = edits.iter().filter_map(catalog::Edit::replaced_table).collect();
    let _guard = session.lock_for_ddl(&tables)?;
    let commit = session.commit_definitions(&edits)?;
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

/// LOGFILE GROUP.
///
/// # Errors
/// 1227, 3658.
pub(crate) fn refuse_logfiles(
    session: &mut Session,
    statement: &Tablespace,
    running: &Running<'_>,
) -> Result<()> {
    session.require_global(PrivilegeSet::CREATE_TABLESPACE)?;
    refuse_logfile_group(&Definer::new(session, running), statement)
}
