//! HANDLER: opens tables, reads them from place to place, and closes them.

use std::sync::Arc;

use ::accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use errors::{ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use programs::Running;
use statements::handlers::{OpenTable, Reading};
use syntax::Statement;
use syntax::ast::{ExprKind, Handler, HandlerAction, HandlerStep};
use types::{CastContext, DataType, Value};

use crate::planned::Planned;
use crate::session::Session;

/// Runs a HANDLER statement.
pub(crate) fn run(
    session: &mut Session,
    statement: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Statement::Handler(handler) = statement else { return Ok(()) };
    if session.locked.is_in_force() {
        bail!(LOCK_OR_ACTIVE_TRANSACTION);
    }
    let name = &handler.table.name.text;
    match &handler.action {
        HandlerAction::Open { alias } => {
            let alias = alias.as_ref().map_or(name, |alias| &alias.text);
            if session.handlers.find(alias).is_ok() {
                bail!(NONUNIQ_TABLE, alias);
            }
            let table = table_to_open(session, handler)?;
            let table = OpenTable::new(Arc::from(&**alias), table);
            session.handlers.open(table, &session.shared.memory, &session.server.memory)?;
        }
        HandlerAction::Close => {
            session.handlers.close(name, &session.shared.memory, &session.server.memory)?;
        }
        HandlerAction::Read { .. } => {
            return read(session, statement, handler, running, sink);
        }
    }
    session.send_ok(sink, OkInfo::default())
}

fn table_to_open(session: &Session, handler: &Handler) -> Result<Arc<catalog::Table>> {
    let (schema, name) = session.qualify(&handler.table)?;
    match catalog::system_schema(&schema) {
        Some("information_schema") => {
            bail!(WRONG_OBJECT, schema, name.to_uppercase(), "BASE TABLE")
        }
        Some(_) => bail!(ILLEGAL_HA, name),
        None => {}
    }
    session.require_on_table(&schema, &name, PrivilegeSet::SELECT)?;
    session.find_table(&schema, &name)
}

/// Closes the tables whose definitions this session has changed.
pub(crate) fn close_changed(session: &mut Session) {
    let view = session.view();
    session.handlers.retain(&session.shared.memory, &session.server.memory, |open| {
        let now = view.table(&open.schema, &open.name);
        now.is_some_and(|now| Arc::ptr_eq(&now, &open.table))
    });
}

fn read(
    session: &mut Session,
    statement: &Statement,
    handler: &Handler,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let alias = &handler.table.name.text;
    let (planned, reading) = plan(session, statement, handler, running)?;
    session.scratch.take_walked();
    session.run_to_client(&planned, running.parameters, sink)?;
    match session.scratch.take_walked() {
        Some(last) => session.handlers.find(alias)?.stopped(reading, last),
        None => Ok(()),
    }
}

/// Plans a READ over the present definition of its table, whose metadata lock is taken.
fn plan(
    session: &mut Session,
    statement: &Statement,
    handler: &Handler,
    running: &Running<'_>,
) -> Result<(Arc<Planned>, Reading)> {
    let alias = &handler.table.name.text;
    let HandlerAction::Read { index, step, filter, limit } = &handler.action else {
        bail!(UNKNOWN_TABLE, alias, "HANDLER")
    };
    let index = index.as_ref().map(|index| &*index.text);
    loop {
        session.shared.cancel.check()?;
        renew(session, alias)?;
        let values = values_of(session, alias, index, step, running)?;
        let now = session.services.fixed_now_micros.unwrap_or(session.statement.started_micros);
        let today = session.statement.local_clock.read(now, &*session.settings.time_zone).date();
        let mut context = CastContext {
            time_zone: &*session.settings.time_zone,
            today,
            ..CastContext::new(session.settings.sql_mode, &mut session.working)
        };
        let open = session.handlers.find(alias)?;
        let reading = open.reading(index, step, &values, &mut context)?;
        let walk = open.walk(&reading);
        let query = open.query(filter.as_ref(), limit.as_ref(), walk.is_some())?;
        let table = open.table.clone();
        let planned = session.planner().plan_walk(statement, &query, running.source, walk)?;
        let is_same = planned.tables.first().is_some_and(|used| Arc::ptr_eq(used, &table));
        if is_same && session.lock_plan(&planned)? {
            return Ok((planned, reading));
        }
    }
}

/// Takes the present definition of an open table: one that others have changed is read from the start again.
fn renew(session: &mut Session, alias: &str) -> Result<()> {
    let view = session.view();
    let open = session.handlers.find(alias)?;
    let now = view.table(&open.schema, &open.name);
    match now {
        Some(now) if Arc::ptr_eq(&now, &open.table) => Ok(()),
        Some(now) if !now.temporary && !open.table.temporary => {
            open.renew(now);
            Ok(())
        }
        // A temporary table belongs to this session, and what it does to a table closes it.
        _ if open.table.temporary || now.is_some() => {
            session.handlers.close(alias, &session.shared.memory, &session.server.memory)?;
            Err(err!(UNKNOWN_TABLE, alias, "HANDLER"))
        }
        _ => Err(err!(NO_SUCH_TABLE, open.schema, open.name)),
    }
}

/// The values of a key.
fn values_of(
    session: &mut Session,
    alias: &str,
    index: Option<&str>,
    step: &HandlerStep,
    running: &Running<'_>,
) -> Result<Vec<(Value, DataType)>> {
    let (HandlerStep::Key { values, .. }, Some(index)) = (step, index) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::with_capacity(values.len());
    for (at, value) in values.iter().enumerate() {
        if let ExprKind::Default(None) = value.kind {
            found.push(session.handlers.find(alias)?.default_of(index, at)?);
            continue;
        }
        // Columns have no value here.
        found.push(session.evaluate(value, running).map_err(|error| match error.code() {
            ErrorCode::BAD_FIELD_ERROR => err!(WRONG_ARGUMENTS, "HANDLER ... READ"),
            _ => error,
        })?);
    }
    Ok(found)
}
