//! Events: CREATE, ALTER, DROP and SHOW CREATE EVENT, and how their schedules are parsed and shown. The module `scheduler` runs them.

use std::sync::Arc;

use catalog::{Edit, Event, EventSchedule, EventStatus, PrivilegeSet, Routine, RoutineKind};
use definitions::{literal, quote_for};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{
    ColumnMeta, EventView, IntervalView, LocalFile, OkInfo, ResultSink, RowSource, SessionState,
};
use syntax::ast::{self, AlterEvent, BodyKind, CreateEvent, DropObject, Expr, ObjectName};
use types::temporal::MICROS_PER_SECOND;
use types::{DataType, DateTime, SqlMode, Value, ZoneRules};

use crate::frame::Frame;
use crate::host::{DefinitionHost, ProgramHost};
use crate::load::{Made, load_routine, loaded};
use crate::routine::{NAME_CHARS_MAX, definer_text, require_over_definer};
use crate::run::run_body;
use crate::running::Running;
use crate::schedule::{SCHEDULE_TIME_MAX, UNITS, read_step, step_text};
use crate::show::{create_columns, send_row};

fn status_text(status: EventStatus) -> &'static str {
    match status {
        EventStatus::Enabled => "ENABLED",
        EventStatus::Disabled => "DISABLED",
        EventStatus::ReplicaSideDisabled => "REPLICA_SIDE_DISABLED",
    }
}

fn status_of(status: ast::EventStatus) -> EventStatus {
    match status {
        ast::EventStatus::Enable => EventStatus::Enabled,
        ast::EventStatus::Disable => EventStatus::Disabled,
        ast::EventStatus::DisableOnReplica => EventStatus::ReplicaSideDisabled,
    }
}

/// A time in whole seconds, as the event's zone shows it.
fn shown(micros: i64, zone: &dyn ZoneRules) -> DateTime {
    zone.utc_to_local(micros - micros.rem_euclid(MICROS_PER_SECOND))
}

/// The text of SHOW CREATE EVENT.
fn create_text(event: &Event, zone: &dyn ZoneRules, ansi_quotes: bool) -> String {
    let quote = |name: &str| quote_for(ansi_quotes, name);
    let definer = accounts::parse_account(&event.definer);
    let time_text = |micros| {
        let mut text = Vec::new();
        types::to_text(&Value::DateTime(shown(micros, zone)), &DataType::datetime(0), &mut text);
        format!("'{}'", String::from_utf8_lossy(&text))
    };
    let schedule = match &event.schedule {
        EventSchedule::At(at) => format!("AT {}", time_text(*at)),
        EventSchedule::Every { step, unit, starts, ends } => {
            let ends = ends.map_or_else(String::new, |ends| format!(" ENDS {}", time_text(ends)));
            format!("EVERY {} {unit} STARTS {}{ends}", step_text(*step, unit), time_text(*starts))
        }
    };
    let comment = match event.comment.is_empty() {
        true => String::new(),
        false => format!(" COMMENT {}", literal(&event.comment)),
    };
    format!(
        "CREATE DEFINER={}@{} EVENT {} ON SCHEDULE {schedule} ON COMPLETION {} {}{comment} DO {}",
        quote(&definer.user),
        quote(&definer.host),
        quote(&event.name),
        if event.preserve { "PRESERVE" } else { "NOT PRESERVE" },
        match event.status {
            EventStatus::Enabled => "ENABLE",
            EventStatus::Disabled => "DISABLE",
            EventStatus::ReplicaSideDisabled => "DISABLE ON REPLICA",
        },
        event.body
    )
}

/// An event as information tables see it.
pub fn event_view(event: &Event, zone: &dyn ZoneRules) -> EventView {
    let mut view = EventView {
        schema: event.schema.to_string(),
        name: event.name.to_string(),
        definer: event.definer.to_string(),
        time_zone: event.time_zone.to_string(),
        body: event.body.to_string(),
        execute_at: None,
        interval: None,
        starts: None,
        ends: None,
        sql_mode: SqlMode(event.sql_mode).to_text(),
        status: status_text(event.status),
        preserve: event.preserve,
        created_micros: event.created_micros,
        altered_micros: event.altered_micros,
        executed: event.executed_micros.map(|micros| shown(micros, zone)),
        comment: event.comment.to_string(),
        session_charset: event.charset_client.to_string(),
        session_collation: event.collation_connection.to_string(),
        database_collation: charset::collation_or_binary(event.database_collation).name.to_owned(),
    };
    match &event.schedule {
        EventSchedule::At(at) => view.execute_at = Some(shown(*at, zone)),
        EventSchedule::Every { step, unit, starts, ends } => {
            let (value, unit) = (step_text(*step, unit), unit.to_string());
            view.interval = Some(IntervalView { value, unit });
            view.starts = Some(shown(*starts, zone));
            view.ends = ends.map(|ends| shown(ends, zone));
        }
    }
    view
}

/// The procedure that an event runs: its body, without parameters.
fn procedure_of(event: &Event) -> Arc<Routine> {
    Arc::new(Routine {
        schema: event.schema.clone(),
        name: event.name.clone(),
        kind: RoutineKind::Procedure,
        parameter_text: "".into(),
        parameters: Vec::new(),
        returns: None,
        body: event.body.clone(),
        external: None,
        definer: event.definer.clone(),
        invoker: false,
        deterministic: false,
        data_access: "".into(),
        comment: "".into(),
        sql_mode: event.sql_mode,
        created_micros: event.created_micros,
        altered_micros: event.altered_micros,
        charset_client: event.charset_client.clone(),
        collation_connection: event.collation_connection.clone(),
        database_collation: event.database_collation,
    })
}

/// CREATE EVENT.
///
/// # Errors
/// 1537, missing privileges, invalid schedules.
pub fn create_event<H: DefinitionHost + ?Sized>(
    host: &mut H,
    create: &CreateEvent,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(&create.name)?;
    check_event_name(host, &schema, &name)?;
    host.check_writable(&schema)?;
    let scheduler = host.events();
    let _guard = scheduler.changing();
    let snapshot = host.snapshot();
    let known = snapshot.schema(&schema).ok_or_else(|| err!(BAD_DB_ERROR, schema))?;
    let old = snapshot.event(&schema, &name);
    if old.is_some() && !create.flags.or_replace {
        if !create.flags.if_not_exists {
            bail!(EVENT_ALREADY_EXISTS, name);
        }
        host.conditions().working.note(ErrorCode::EVENT_ALREADY_EXISTS, &[&name]);
        return host.send_ok(sink, OkInfo::default());
    }
    let definer = definer_text(host, create.definer.as_ref())?;
    let facts = host.facts();
    let mut event = Event {
        database_collation: known.options.collation,
        schema,
        name,
        schedule: event_schedule(host, &create.schedule, running)?,
        status: create.status.map_or(EventStatus::Enabled, status_of),
        preserve: create.preserve == Some(true),
        comment: create.comment.as_deref().unwrap_or("").into(),
        body: event_body(&create.body, running)?,
        definer,
        sql_mode: host.settings().sql_mode.0,
        time_zone: facts.time_zone,
        created_micros: host.facts().now_micros,
        altered_micros: host.facts().now_micros,
        executed_micros: None,
        charset_client: facts.charset_client,
        collation_connection: host.settings().collation_connection.name.into(),
    };
    // An event that cannot run is not stored.
    load_routine(&|name| host.has_variable(name), &procedure_of(&event))?;
    if is_past(host, &event.schedule) {
        if !event.preserve {
            host.conditions().working.note(ErrorCode::EVENT_CANNOT_CREATE_IN_THE_PAST, &[]);
            return host.send_ok(sink, OkInfo::default());
        }
        host.conditions().working.note(ErrorCode::EVENT_EXEC_TIME_IN_THE_PAST, &[]);
        event.status = EventStatus::Disabled;
    }
    let put = Edit::PutEvent { event: Arc::new(event), over: old.cloned() };
    host.commit(&[put], sink)
}

/// ALTER EVENT.
///
/// # Errors
/// 1539, missing privileges, invalid schedules.
pub fn alter_event<H: DefinitionHost + ?Sized>(
    host: &mut H,
    alter: &AlterEvent,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(&alter.name)?;
    host.require_on_schema(&schema, PrivilegeSet::EVENT)?;
    host.check_writable(&schema)?;
    let scheduler = host.events();
    let _guard = scheduler.changing();
    let snapshot = host.snapshot();
    let old = snapshot.event(&schema, &name).ok_or_else(|| err!(EVENT_DOES_NOT_EXIST, name))?;
    require_over_definer(host, &old.definer)?;
    let mut event = Event::clone(old);
    event.definer = definer_text(host, alter.definer.as_ref())?;
    event.altered_micros = host.facts().now_micros;
    if let Some(schedule) = &alter.schedule {
        event.schedule = event_schedule(host, schedule, running)?;
        event.time_zone = host.facts().time_zone;
        // A recurring event continues from its last run, so that one that alters itself does not run without end.
        if matches!(event.schedule, EventSchedule::At(_)) {
            event.executed_micros = None;
        }
    }
    if let Some(preserve) = alter.preserve {
        event.preserve = preserve;
    }
    if let Some(status) = alter.status {
        event.status = status_of(status);
    }
    if let Some(comment) = &alter.comment {
        event.comment = Arc::from(&**comment);
    }
    if let Some(body) = &alter.body {
        event.body = event_body(body, running)?;
        event.sql_mode = host.settings().sql_mode.0;
    }
    load_routine(&|name| host.has_variable(name), &procedure_of(&event))?;
    if alter.schedule.is_some() && is_past(host, &event.schedule) {
        if !event.preserve {
            bail!(EVENT_CANNOT_ALTER_IN_THE_PAST);
        }
        host.conditions().working.note(ErrorCode::EVENT_EXEC_TIME_IN_THE_PAST, &[]);
        event.status = EventStatus::Disabled;
    }
    let over = Some(old.clone());
    let Some(rename) = &alter.rename else {
        return host.commit(&[Edit::PutEvent { event: Arc::new(event), over }], sink);
    };
    let (to_schema, to_name) = host.qualify(rename)?;
    if to_schema == schema && to_name.to_lowercase() == name.to_lowercase() {
        bail!(EVENT_SAME_NAME);
    }
    check_event_name(host, &to_schema, &to_name)?;
    if snapshot.schema(&to_schema).is_none() {
        bail!(BAD_DB_ERROR, to_schema);
    }
    if snapshot.event(&to_schema, &to_name).is_some() {
        bail!(EVENT_ALREADY_EXISTS, to_name);
    }
    (event.schema, event.name) = (to_schema, to_name);
    let put = Edit::PutEvent { event: Arc::new(event), over: None };
    host.commit(&[Edit::DropEvent { schema, name, over }, put], sink)
}

/// DROP EVENT.
///
/// # Errors
/// 1539, 1044.
pub fn drop_event<H: DefinitionHost + ?Sized>(
    host: &mut H,
    drop: &DropObject,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(&drop.name)?;
    host.require_on_schema(&schema, PrivilegeSet::EVENT)?;
    host.check_writable(&schema)?;
    let scheduler = host.events();
    let _guard = scheduler.changing();
    let snapshot = host.snapshot();
    let Some(known) = snapshot.event(&schema, &name) else {
        if !drop.if_exists {
            bail!(EVENT_DOES_NOT_EXIST, name);
        }
        host.conditions().working.note(ErrorCode::SP_DOES_NOT_EXIST, &[&"Event", &name]);
        return host.send_ok(sink, OkInfo::default());
    };
    require_over_definer(host, &known.definer)?;
    let over = Some(known.clone());
    host.commit(&[Edit::DropEvent { schema, name, over }], sink)
}

fn check_event_name<H: DefinitionHost + ?Sized>(host: &H, schema: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') {
        bail!(SP_WRONG_NAME, name);
    }
    if name.chars().count() > NAME_CHARS_MAX {
        bail!(TOO_LONG_IDENT, name);
    }
    host.require_on_schema(schema, PrivilegeSet::EVENT)
}

fn event_body(body: &ast::Body, running: &Running<'_>) -> Result<Arc<str>> {
    match body.kind {
        BodyKind::Sql(_) => {
            let text = String::from_utf8_lossy(body.span.of(running.source));
            Ok(text.trim_end().into())
        }
        BodyKind::External(_) => Err(Error::not_supported("stored programs in other languages")),
    }
}

fn is_past<H: DefinitionHost + ?Sized>(host: &H, schedule: &EventSchedule) -> bool {
    let last = match schedule {
        EventSchedule::At(at) => Some(*at),
        EventSchedule::Every { ends, .. } => *ends,
    };
    last.is_some_and(|last| last < this_second(host))
}

/// The current second, microseconds since 1970 UTC.
fn this_second<H: DefinitionHost + ?Sized>(host: &H) -> i64 {
    let now = host.facts().now_micros;
    now - now.rem_euclid(MICROS_PER_SECOND)
}

fn event_schedule<H: DefinitionHost + ?Sized>(
    host: &mut H,
    schedule: &ast::Schedule,
    running: &Running<'_>,
) -> Result<EventSchedule> {
    let (amount, unit, starts, ends) = match schedule {
        ast::Schedule::At(at) => {
            return Ok(EventSchedule::At(event_time(host, at, "AT", running)?));
        }
        ast::Schedule::Every { amount, unit, starts, ends } => (amount, unit, starts, ends),
    };
    let Some(unit) = UNITS.iter().find(|known| known.unit == *unit) else {
        return Err(Error::not_supported("MICROSECOND"));
    };
    let (value, _) = host.evaluate(amount, running)?;
    let mut text = Vec::new();
    value.write_plain_text(&mut text);
    let step = read_step(&String::from_utf8_lossy(&text), unit)?;
    let starts = match starts {
        Some(starts) => event_time(host, starts, "STARTS", running)?,
        None => this_second(host),
    };
    let ends = match ends {
        Some(ends) => Some(
            event_time(host, ends, "ENDS", running).map_err(|_| err!(EVENT_ENDS_BEFORE_STARTS))?,
        ),
        None => None,
    };
    if ends.is_some_and(|ends| ends <= starts) {
        bail!(EVENT_ENDS_BEFORE_STARTS);
    }
    Ok(EventSchedule::Every { step, unit: unit.name.into(), starts, ends })
}

/// A time of a schedule in the session's time zone.
fn event_time<H: DefinitionHost + ?Sized>(
    host: &mut H,
    expr: &Expr,
    word: &str,
    running: &Running<'_>,
) -> Result<i64> {
    let (value, ty) = host.evaluate(expr, running)?;
    let mut text = Vec::new();
    value.write_plain_text(&mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let bad = || err!(WRONG_VALUE, word, text);
    if value.is_null() {
        bail!(WRONG_VALUE, word, "NULL");
    }
    let time = host.convert(word, &value, &ty, &DataType::datetime(0));
    match time.map_err(|_| bad())? {
        Value::DateTime(time) if !time.is_zero() => {
            let micros = host.settings().time_zone.local_to_utc(time);
            micros.filter(|micros| (1..=SCHEDULE_TIME_MAX).contains(micros)).ok_or_else(bad)
        }
        _ => Err(bad()),
    }
}

/// SHOW CREATE EVENT.
///
/// # Errors
/// 1539, 1044.
pub fn show_create_event<H: DefinitionHost + ?Sized>(
    host: &mut H,
    name: &ObjectName,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(name)?;
    host.require_on_schema(&schema, PrivilegeSet::EVENT)?;
    let snapshot = host.snapshot();
    let known = snapshot.event(&schema, &name);
    let event = known.ok_or_else(|| err!(EVENT_DOES_NOT_EXIST, name))?;
    let zone = host.event_zone(event);
    let view = event_view(event, &*zone);
    let ansi_quotes = host.settings().sql_mode.contains(SqlMode::ANSI_QUOTES);
    let mut columns = create_columns("Event", "Create Event").to_vec();
    let text = DataType::varchar(64, columns[0].ty.collation).with_nullable(false);
    columns.insert(2, ColumnMeta::computed("time_zone", text));
    let row = vec![
        Value::text(&event.name),
        Value::text(&view.sql_mode),
        Value::text(&event.time_zone),
        Value::text(&create_text(event, &*zone, ansi_quotes)),
        Value::text(&view.session_charset),
        Value::text(&view.session_collation),
        Value::text(&view.database_collation),
    ];
    send_row(host, sink, &columns, &row)
}

/// Runs an event's body, as its definer.
///
/// # Errors
/// Errors of the body.
pub fn run_event_body<H: ProgramHost + ?Sized>(host: &mut H, event: &Event) -> Result<()> {
    let loaded = loaded(host, Made::Routine(procedure_of(event)))?;
    host.finish_scope()?;
    let outside = host.enter(&loaded)?;
    host.state_mut().frames.push(Frame::new(loaded.clone()));
    let result = run_body(host, &loaded, &mut NoResults);
    host.state_mut().frames.pop();
    host.leave(outside);
    result
}

/// Discards the results of an event.
struct NoResults;

impl ResultSink for NoResults {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &dyn RowSource) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, _: &Error) -> Result<()> {
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(NOT_ALLOWED_COMMAND);
    }
}
