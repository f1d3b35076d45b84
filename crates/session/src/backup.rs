//! BACKUP DATABASE TO and CLONE LOCAL DATA DIRECTORY: the engine writes to a directory that this statement creates, or to its client.

use ::accounts::PrivilegeChecks;
use std::io;
use std::path::PathBuf;

use engine_api::Progress;
use errors::{Error, Result, err};
use plugin_api::{OkInfo, ResultSink};
use statements::backup_directory::{Backup, BackupDirectory};
use statements::backup_stream::send_backup;
use sys::blocking::blocking;

use crate::load_data::file_error;
use crate::measured::{begin_stage, end_stage};
use crate::session::Session;

/// Copies everything committed to a directory that does not exist yet.
pub(crate) fn run_backup(
    session: &mut Session,
    directory: Option<&str>,
    is_plain: bool,
    purpose: Backup,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_dynamic("BACKUP_ADMIN")?;
    let Some(name) = directory else { return stream_backup(session, is_plain, sink) };
    let path = PathBuf::from(name);
    if !path.is_absolute() {
        return Err(err!(WRONG_VALUE, "absolute path", name));
    }
    let engine = session.server.default_engine.clone();
    if !engine.is_durable() {
        return Err(Error::not_supported("BACKUP of a server that keeps nothing on disk"));
    }
    let times = session.server.io_times.clone();
    let target =
        BackupDirectory::make(&path, purpose, times).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => err!(FILE_EXISTS_ERROR, name),
            _ => file_error(1, "Can't create directory", &path, &error),
        })?;
    begin_stage(session, "Backing up");
    let cancel = session.shared.cancel.clone();
    let log = session.server.registry().binary_log().cloned();
    let outcome = blocking(|| target.fill(&*engine, log.as_deref(), &cancel));
    let pages = |name| {
        let stats = session.server.default_engine.stats();
        let mut stats = stats.iter().filter(|stat| stat.group == "backup");
        stats.find(|stat| stat.name == name).and_then(|stat| stat.value.parse().ok()).unwrap_or(0)
    };
    let (work_done, work_expected) = (pages("pages_done"), pages("pages_total"));
    end_stage(session, Some(Progress { work_done, work_expected }));
    outcome?;
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo::default())
}

fn stream_backup(session: &mut Session, is_plain: bool, sink: &mut dyn ResultSink) -> Result<()> {
    let engine = session.server.default_engine.clone();
    if !engine.is_durable() {
        return Err(Error::not_supported("BACKUP of a server that keeps nothing on disk"));
    }
    // What is encrypted on the disk is so on the way.
    if is_plain && engine.directory_key().is_some() && session.client.tls.is_none() {
        return Err(err!(CLONE_ENCRYPTION));
    }
    let cancel = session.shared.cancel.clone();
    let log = session.server.registry().binary_log().cloned();
    begin_stage(session, "Backing up");
    let sent = blocking(|| send_backup(&*engine, log.as_deref(), is_plain, &cancel, sink));
    end_stage(session, None);
    sent.and_then(|()| sink.end(&session.state_info()))
}
