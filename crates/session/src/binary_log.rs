//! Statements and commands about the binary log.

use std::sync::Arc;
use std::time::Duration;

use accounts::PrivilegeChecks as _;
use catalog::PrivilegeSet;
use errors::{Error, Result, bail, err};
use plugin_api::variable::{as_text, as_u64};
use plugin_api::{
    BinaryLog, DumpRequest, DumpSink, OkInfo, PurgeLimit, RegisteredReplica, ResultSink,
    SessionServices as _,
};
use programs::Running;
use syntax::ast::{ChangeStream, Expr, ReplicationValue, ResetItem, Statement, StreamAction};
use types::{CastContext, Value, to_datetime};

use crate::replication::{Controlling, run_replica};
use crate::session::Session;

/// The binary log, if it is on.
fn active(session: &Session) -> Option<Arc<dyn BinaryLog>> {
    let registry = session.server.registry();
    registry.binary_log().filter(|log| log.is_active()).cloned()
}

/// SHOW CREATE CHANGE STREAM: who may see the stream is told when there is none.
///
/// # Errors
/// 1220, 1227.
pub(crate) fn check_stream(session: &mut Session, name: &str) -> Result<()> {
    let Some(log) = active(session) else { return Ok(()) };
    let sees_log = [PrivilegeSet::REPLICATION_CLIENT, PrivilegeSet::REPLICATION_SLAVE]
        .into_iter()
        .any(|privilege| session.require_global(privilege).is_ok());
    if !sees_log {
        session.require_dynamic("CHANGE_STREAM_ADMIN")?;
    }
    let text = format!("SHOW CREATE CHANGE STREAM `{}`", name.replace('`', "``"));
    log.change_stream(&text, &mut Controlling { session })
}

/// FLUSH BINARY LOGS.
pub(crate) fn rotate(session: &Session) -> Result<()> {
    active(session).map_or(Ok(()), |log| log.rotate())
}

/// PURGE BINARY LOGS, RESET and the statements about change streams.
pub(crate) fn run(
    session: &mut Session,
    statement: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if let Statement::PurgeBinaryLogs { to, before } = statement {
        return purge(session, to.as_deref(), before.as_deref(), running, sink);
    }
    if let Statement::Reset(items) = statement {
        reset(session, items)?;
        let is_replica = |item: &ResetItem| matches!(item, ResetItem::Replica { .. });
        return match items.iter().any(is_replica) {
            true => run_replica(session, running, sink),
            false => session.send_ok(sink, OkInfo::default()),
        };
    }
    if let Statement::ChangeStream(statement) = statement {
        return change_stream(session, statement, running, sink);
    }
    Err(Error::internal("not a statement about the binary log"))
}

/// CREATE, ALTER and DROP CHANGE STREAM. Who reads streams may say how far he is.
fn change_stream(
    session: &mut Session,
    statement: &ChangeStream,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    match statement {
        ChangeStream::Alter { action: StreamAction::Confirm(_), .. } => {
            session.require_global(PrivilegeSet::REPLICATION_SLAVE)?;
        }
        ChangeStream::Create { options, .. }
        | ChangeStream::Alter { action: StreamAction::Options(options), .. } => {
            session.require_dynamic("CHANGE_STREAM_ADMIN")?;
            // A sink sends every row of the tables to where its options say, which are the texts among them: as one who reads the log could.
            if options.iter().any(|(_, value)| matches!(value, ReplicationValue::Text(_))) {
                session.require_global(PrivilegeSet::REPLICATION_SLAVE)?;
            }
        }
        ChangeStream::Alter { .. } | ChangeStream::Drop { .. } => {
            session.require_dynamic("CHANGE_STREAM_ADMIN")?;
        }
    }
    let Some(log) = active(session) else { bail!(NO_BINARY_LOGGING) };
    let text = String::from_utf8_lossy(running.source);
    log.change_stream(&text, &mut Controlling { session })?;
    session.send_ok(sink, OkInfo::default())
}

/// PURGE BINARY LOGS.
fn purge(
    session: &mut Session,
    to: Option<&str>,
    before: Option<&Expr>,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_dynamic("BINLOG_ADMIN")?;
    let limit = match (to, before) {
        (Some(name), _) => PurgeLimit::To(name.to_owned()),
        (None, Some(before)) => {
            let (value, ty) = session.evaluate(before, running)?;
            let wrong = || err!(WRONG_ARGUMENTS, "PURGE LOGS BEFORE");
            let mut ctx = CastContext::new(session.settings.sql_mode, &mut session.working);
            let mode = session.settings.sql_mode.temporal();
            let local = to_datetime(&value, &ty, 6, mode, &mut ctx).ok_or_else(wrong)?;
            let micros = session.settings.time_zone.local_to_utc(local);
            PurgeLimit::Before(micros.ok_or_else(wrong)?)
        }
        (None, None) => bail!(WRONG_ARGUMENTS, "PURGE LOGS"),
    };
    // Without a log there is nothing to remove.
    active(session).map_or(Ok(()), |log| log.purge(&limit))?;
    session.send_ok(sink, OkInfo::default())
}

/// RESET BINARY LOGS AND GTIDS.
fn reset(session: &mut Session, items: &[ResetItem]) -> Result<()> {
    session.require_global(PrivilegeSet::RELOAD)?;
    for item in items {
        match item {
            ResetItem::BinaryLogsAndGtids { to } => {
                let first = to.unwrap_or(1);
                if !(1..=2_000_000_000).contains(&first) {
                    let most = "2000000000";
                    bail!(RESET_SOURCE_TO_VALUE_OUT_OF_RANGE, first, most);
                }
                active(session).map_or(Ok(()), |log| log.reset(first))?;
            }
            ResetItem::Replica { .. } => {}
        }
    }
    Ok(())
}

/// COM_REGISTER_REPLICA.
pub(crate) fn register(session: &mut Session, replica: RegisteredReplica) -> Result<OkInfo> {
    session.require_global(PrivilegeSet::REPLICATION_SLAVE)?;
    let Some(log) = active(session) else { bail!(NO_BINARY_LOGGING) };
    log.register(RegisteredReplica {
        uuid: said(session, &["replica_uuid", "slave_uuid"]),
        ..replica
    });
    Ok(session.flags())
}

/// COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID.
pub(crate) fn dump(
    session: &mut Session,
    request: DumpRequest,
    sink: &mut dyn DumpSink,
) -> Result<()> {
    if !request.is_filtered {
        session.require_global(PrivilegeSet::REPLICATION_SLAVE)?;
    }
    let Some(log) = active(session) else {
        bail!(SOURCE_FATAL_ERROR_READING_BINLOG, 1236, "Binary log is not open");
    };
    let checksum = said(session, &["source_binlog_checksum", "master_binlog_checksum"]);
    let heartbeat = said(session, &["source_heartbeat_period", "master_heartbeat_period"]);
    let request = DumpRequest {
        acknowledges: said(session, &["rpl_semi_sync_replica", "rpl_semi_sync_slave"]) == "1",
        takes_checksums: checksum.eq_ignore_ascii_case("CRC32"),
        heartbeat: Duration::from_nanos(heartbeat.parse().unwrap_or(0)),
        ..request
    };
    let connection = request.connection_id;
    let command = if request.gtids.is_some() { "Binlog Dump GTID" } else { "Binlog Dump" };
    session.begin_command(command, b"");
    let outcome = log.dump(&request, sink, &session.shared.cancel);
    session.become_idle();
    log.unregister(connection);
    outcome
}

/// What a reader has said of itself in a user variable of one of these names.
fn said(session: &Session, names: &[&str]) -> String {
    let value = names.iter().find_map(|name| session.services.user_variable(name));
    value.map_or_else(String::new, |(value, _)| match value {
        Value::Int(_) | Value::UInt(_) => as_u64(&value).to_string(),
        other => as_text(&other),
    })
}
