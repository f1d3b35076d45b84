//! Records what the session's statements change, for the binary log.

use std::sync::Arc;

use catalog::{AccountName, Table};
use errors::Result;
use observation::{Changes, OwnedFacts, RowWatcher, with_definer};
use plugin_api::variable::as_text;
use plugin_api::{OkInfo, StateChange, StatementContext, Tracking};
use programs::{Origin, Running};
use syntax::ast::Statement;

use crate::session::Session;

/// Whether changes go to the binary log.
pub(crate) fn is_on(session: &Session) -> bool {
    session.server.hooks.logs_commits() && session.settings.binary_log.changes
}

/// A statement begins that may write rows.
pub(crate) fn begin_statement(session: &mut Session) {
    let text = text_of_rows(session);
    let mut watcher = session.transactions.watcher.take();
    if let Some(watcher) = &mut watcher
        && let Some(recorder) = watcher.recorder()
    {
        recorder.begin_statement(&context(session, text.as_deref(), ""));
    }
    session.transactions.watcher = watcher;
}

/// The text that is logged before the statement's rows, if it is wanted. Statements of triggers and functions are part of the one that
/// caused them.
fn text_of_rows(session: &mut Session) -> Option<Vec<u8>> {
    if !session.settings.binary_log.texts || session.transactions.function_depth > 0 {
        return None;
    }
    // The text of a definition is still to be logged, also when it writes rows on its way.
    let statement = &mut session.statement;
    let own = if statement.defines { statement.text.last().cloned() } else { statement.text.pop() };
    // A statement that was run from a cache: the process list has its text.
    Some(own.unwrap_or_else(|| session.shared.activity.lock().info.clone()))
}

/// A session's watcher; one that waits to be put back.
fn take_watcher(session: &mut Session) -> Box<RowWatcher> {
    let (registry, snapshot) = (session.server.registry(), session.snapshot());
    let order = session.transactions.home.changes.clone();
    session.transactions.watcher.take().unwrap_or_else(|| {
        let facts = session.session_facts(session.services.database.as_deref());
        let changes = Changes::new(OwnedFacts::of(&facts), order);
        Box::new(RowWatcher::new(registry, snapshot, changes))
    })
}

/// COMMIT, or a decision about an XA branch: one with an identifier of its own is recorded, even if it changed nothing.
pub(crate) fn commit(session: &mut Session) {
    if session.settings.binary_log.gtid_next.is_none() || !is_on(session) {
        return;
    }
    let mut watcher = take_watcher(session);
    if let Some(recorder) = watcher.recorder() {
        recorder.commit(&context(session, None, ""));
    }
    session.transactions.watcher = Some(watcher);
}

/// Records the running statement, which changes definitions, if it is to be logged.
///
/// # Errors
/// 1837.
pub(crate) fn definition(session: &mut Session) -> Result<()> {
    let texts = std::mem::take(&mut session.statement.text);
    if texts.is_empty() {
        return Ok(());
    }
    let mut watcher = take_watcher(session);
    let mut recorded = Ok(());
    if let Some(recorder) = watcher.recorder() {
        let zone = session.services.variable("time_zone", false);
        let zone = zone.map_or_else(String::new, |zone| as_text(&zone));
        let context = context(session, None, &zone);
        recorded = texts.iter().try_for_each(|text| recorder.definition(&context, text));
    }
    session.transactions.watcher = Some(watcher);
    recorded
}

/// Logs other texts than that of the running statement, if it is to be logged.
pub(crate) fn log_instead(session: &mut Session, texts: Vec<Vec<u8>>) {
    if !session.statement.text.is_empty() {
        session.statement.text = texts;
    }
}

/// Records the running statement, which makes a table, before the table's rows.
///
/// # Errors
/// 1837.
pub(crate) fn definition_of(session: &mut Session, table: &Arc<Table>) -> Result<()> {
    if !session.statement.text.is_empty() {
        definition(session)?;
        session.transactions.set_new_table(Some(table.clone()));
    }
    Ok(())
}

/// Notes the text of a statement for the binary log.
pub(crate) fn note_text(
    session: &mut Session,
    statement: &Statement,
    running: &Running<'_>,
    is_definition: bool,
) {
    session.statement.text.clear();
    session.statement.defines = is_definition;
    let of_program = session.statement.program_text.take();
    if !is_on(session) || !is_definition && !session.settings.binary_log.texts {
        return;
    }
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    let of_program = of_program.filter(|_| running.origin == Origin::Program);
    let source = of_program.as_deref().unwrap_or(running.source);
    let whole = source.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
    let text = source[..whole].trim_ascii_start();
    let AccountName { user, host } = &session.account;
    let quoted = [user, host].map(|part| definitions::quote(part));
    session.statement.text.push(with_definer(statement, text, &quoted.join("@")));
}

/// Before the reply to a commit: waits for replicas, if they are to be waited for, and tells the identifiers that `session_track_gtids` asks for.
///
/// # Errors
/// The log cannot be written.
pub(crate) fn track(session: &mut Session, state: &mut OkInfo) -> Result<()> {
    if let Some(watcher) = session.transactions.watcher.as_mut() {
        watcher.wait_for_replicas(state.commit.as_ref())?;
    }
    let tracking = session.settings.binary_log.wishes.tracking;
    let Some(watcher) = session.transactions.watcher.as_mut().filter(|_| tracking != Tracking::Off)
    else {
        return Ok(());
    };
    let told = watcher.told_identifiers(tracking, state.commit.as_ref(), &session.shared.cancel)?;
    state.changes.extend(told.map(StateChange::Gtids));
    Ok(())
}

fn context<'a>(
    session: &'a Session,
    text: Option<&'a [u8]>,
    time_zone: &'a str,
) -> StatementContext<'a> {
    let settings = &session.settings;
    StatementContext {
        connection_id: session.shared.id,
        started_micros: session
            .services
            .fixed_now_micros
            .unwrap_or(session.statement.started_micros),
        schema: session.services.database.as_deref(),
        sql_mode: settings.sql_mode.bits(),
        client_collation: settings.charset_client.default_collation.0,
        connection_collation: settings.collation_connection.id.0,
        server_collation: settings.collation_server.id.0,
        time_zone,
        foreign_key_checks: settings.foreign_key_checks,
        auto_increment: (settings.auto_increment_increment, settings.auto_increment_offset),
        row_image: settings.binary_log.row_image,
        partial_json: settings.binary_log.partial_json,
        gtid: settings.binary_log.gtid_next.as_deref(),
        wishes: settings.binary_log.wishes,
        text,
    }
}
