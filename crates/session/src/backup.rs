//! BACKUP DATABASE TO and CLONE LOCAL DATA DIRECTORY: the engine writes to a directory that this statement creates, and that is
//! removed when it fails.

use ::accounts::PrivilegeChecks;
use std::io;
use std::path::PathBuf;

use engine_api::Progress;
use errors::{Error, Result, err};
use plugin_api::{OkInfo, ResultSink};
use statements::backup_directory::{Backup, BackupDirectory};
use statements::backup_stream::send_backup;
use sys::blocking::blocking;
use sys::files;

use crate::load_data::file_error;
use crate::measured::{begin_stage, end_stage};
use crate::session::Session;

/// Copies everything committed to a directory that does not exist yet.
pub(crate) fn run_backup(
    session: &mut Session,
    directory: &str,
    purpose: Backup,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_dynamic("BACKUP_ADMIN")?;
    let (name, path) = (directory, PathBuf::from(directory));
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
    if let Some(log) = &log {
        log.begin_backup();
    }
    let outcome = blocking(|| {
        let copied = engine.backup(&target, &cancel);
        let copied = copied.map_err(|error| error.into_error(&cancel));
        // After an error too: the log is to keep nothing more.
        let end_position = copied.as_ref().map_or(0, |summary| summary.end_position);
        let executed = log.map_or(Ok(None), |log| log.end_backup(end_position));
        let ended = copied.and(executed).and_then(|executed| {
            // The binary log of an encrypted directory reads encrypted files only.
            let is_told = |_: &String| purpose == Backup::Kept || engine.directory_key().is_none();
            let told = executed.filter(is_told);
            told.map_or(Ok(()), |executed| target.put_executed(end_position, &executed))
                .and_then(|()| target.sync())
                .map_err(|error| file_error(3, "Error writing", &path, &error))
        });
        if ended.is_err() {
            // The error of the copy says more than one of the cleanup.
            let _ = files::remove_directory(&path);
        }
        ended
    });
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

/// Sends everything committed to the client.
pub(crate) fn stream_backup(session: &mut Session, sink: &mut dyn ResultSink) -> Result<()> {
    session.require_dynamic("BACKUP_ADMIN")?;
    let engine = session.server.default_engine.clone();
    if !engine.is_durable() {
        return Err(Error::not_supported("BACKUP of a server that keeps nothing on disk"));
    }
    let cancel = session.shared.cancel.clone();
    let log = session.server.registry().binary_log().cloned();
    begin_stage(session, "Backing up");
    let sent = blocking(|| send_backup(&*engine, log.as_deref(), &cancel, sink));
    end_stage(session, None);
    sent?;
    sink.end(&session.state_info())
}
