//! Events: CREATE, ALTER, DROP and SHOW CREATE EVENT, and how their schedules are read and shown. When they run is `crate::events`.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{
    Edit, Event, EventSchedule, EventStatus, EventStep, PrivilegeSet, Routine, RoutineKind,
};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{ColumnMeta, EventView, OkInfo, ResultSink};
use syntax::ast::{
    self, AlterEvent, BodyKind, CreateEvent, DropObject, Expr, IntervalUnit, ObjectName,
};
use types::temporal::MICROS_PER_SECOND;
use types::{DataType, DateTime, SqlMode, Value, ZoneRules};

use super::NAME_CHARS_MAX;
use super::frame::Frame;
use super::show::create_columns;
use crate::session::Session;
use crate::sink::{DiscardSink, send_rows};
use crate::statement::Running;
use definitions::{literal, quote};

/// Longest interval, in months or in seconds: the reference's.
const STEP_MAX: u64 = 1_000_000_000;

/// The last moment of a schedule, 3001-01-18 23:59:59 UTC: the reference's.
const MOMENT_MAX: i64 = 32_536_771_199 * MICROS_PER_SECOND;

/// A unit of intervals.
struct Unit {
    unit: IntervalUnit,
    name: &'static str,
    /// What each part of a value counts, in months or in seconds.
    parts: &'static [u64],
    /// What stands between them.
    separators: &'static str,
}

const UNITS: &[Unit] = &[
    Unit { unit: IntervalUnit::Year, name: "YEAR", parts: &[12], separators: "" },
    Unit { unit: IntervalUnit::Quarter, name: "QUARTER", parts: &[3], separators: "" },
    Unit { unit: IntervalUnit::Month, name: "MONTH", parts: &[1], separators: "" },
    Unit { unit: IntervalUnit::YearMonth, name: "YEAR_MONTH", parts: &[12, 1], separators: "-" },
    Unit { unit: IntervalUnit::Week, name: "WEEK", parts: &[604_800], separators: "" },
    Unit { unit: IntervalUnit::Day, name: "DAY", parts: &[86_400], separators: "" },
    Unit { unit: IntervalUnit::Hour, name: "HOUR", parts: &[3_600], separators: "" },
    Unit { unit: IntervalUnit::Minute, name: "MINUTE", parts: &[60], separators: "" },
    Unit { unit: IntervalUnit::Second, name: "SECOND", parts: &[1], separators: "" },
    Unit {
        unit: IntervalUnit::DayHour,
        name: "DAY_HOUR",
        parts: &[86_400, 3_600],
        separators: " ",
    },
    Unit {
        unit: IntervalUnit::DayMinute,
        name: "DAY_MINUTE",
        parts: &[86_400, 3_600, 60],
        separators: " :",
    },
    Unit {
        unit: IntervalUnit::DaySecond,
        name: "DAY_SECOND",
        parts: &[86_400, 3_600, 60, 1],
        separators: " ::",
    },
    Unit {
        unit: IntervalUnit::HourMinute,
        name: "HOUR_MINUTE",
        parts: &[3_600, 60],
        separators: ":",
    },
    Unit {
        unit: IntervalUnit::HourSecond,
        name: "HOUR_SECOND",
        parts: &[3_600, 60, 1],
        separators: "::",
    },
    Unit {
        unit: IntervalUnit::MinuteSecond,
        name: "MINUTE_SECOND",
        parts: &[60, 1],
        separators: ":",
    },
];

/// Whether a unit counts months.
fn counts_months(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    matches!(unit, Year | Quarter | Month | YearMonth)
}

/// The step that `text` says in a unit; 1542 when it is none.
fn read_step(text: &str, unit: &Unit) -> Result<EventStep> {
    let bad = || err!(EVENT_INTERVAL_NOT_POSITIVE_OR_TOO_BIG);
    let text = text.trim();
    let total = if unit.parts.len() == 1 {
        let number: f64 = text.parse().map_err(|_| bad())?;
        let count = number.round();
        if !(1.0..=STEP_MAX as f64).contains(&count) {
            return Err(bad());
        }
        count as u64 * unit.parts[0]
    } else {
        if text.starts_with('-') {
            return Err(bad());
        }
        let digits = text.split(|letter: char| !letter.is_ascii_digit());
        let numbers = digits.filter(|part| !part.is_empty()).map(str::parse::<u64>);
        let numbers: Vec<u64> =
            numbers.collect::<std::result::Result<_, _>>().map_err(|_| bad())?;
        // Fewer numbers than parts are the last ones.
        let skipped = unit.parts.len().checked_sub(numbers.len()).ok_or_else(bad)?;
        let products = numbers.iter().zip(&unit.parts[skipped..]);
        products.fold(0_u64, |sum, (number, part)| sum.saturating_add(number.saturating_mul(*part)))
    };
    if total == 0 || total > STEP_MAX {
        return Err(bad());
    }
    Ok(match counts_months(unit.unit) {
        true => EventStep::Months(total),
        false => EventStep::Seconds(total),
    })
}

/// A step as its unit writes it.
fn step_text(step: EventStep, name: &str) -> String {
    let (EventStep::Months(total) | EventStep::Seconds(total)) = step;
    let Some(unit) = UNITS.iter().find(|unit| unit.name == name) else { return total.to_string() };
    let mut rest = total;
    let mut text = String::new();
    let mut separators = unit.separators.chars();
    for (at, part) in unit.parts.iter().enumerate() {
        if at > 0 {
            text.extend(separators.next());
        }
        text += &(rest / part).to_string();
        rest %= part;
    }
    if unit.parts.len() > 1 { format!("'{text}'") } else { text }
}

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

/// A moment to whole seconds, as the event's zone shows it.
fn shown(micros: i64, zone: &dyn ZoneRules) -> DateTime {
    zone.utc_to_local(micros - micros.rem_euclid(MICROS_PER_SECOND))
}

/// The text of SHOW CREATE EVENT.
fn create_text(event: &Event, zone: &dyn ZoneRules) -> String {
    let definer = ::accounts::parse_account(&event.definer);
    let moment = |micros| {
        let mut text = Vec::new();
        types::to_text(&Value::DateTime(shown(micros, zone)), &DataType::datetime(0), &mut text);
        format!("'{}'", String::from_utf8_lossy(&text))
    };
    let schedule = match &event.schedule {
        EventSchedule::At(at) => format!("AT {}", moment(*at)),
        EventSchedule::Every { step, unit, starts, ends } => {
            let ends = ends.map_or_else(String::new, |ends| format!(" ENDS {}", moment(ends)));
            format!("EVERY {} {unit} STARTS {}{ends}", step_text(*step, unit), moment(*starts))
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
pub(crate) fn event_view(event: &Event, zone: &dyn ZoneRules) -> EventView {
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
            view.interval = Some((step_text(*step, unit), unit.to_string()));
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

impl Session {
    /// CREATE EVENT.
    pub(crate) fn create_event(
        &mut self,
        create: &CreateEvent,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (schema, name) = self.qualify(&create.name)?;
        self.check_event_name(&schema, &name)?;
        self.check_writable()?;
        let server = self.server.clone();
        let _guard = server.events.changing();
        let snapshot = self.server.catalog.snapshot();
        let known = snapshot.schema(&schema).ok_or_else(|| err!(BAD_DB_ERROR, schema))?;
        let old = snapshot.event(&schema, &name);
        if old.is_some() && !create.flags.or_replace {
            if !create.flags.if_not_exists {
                bail!(EVENT_ALREADY_EXISTS, name);
            }
            self.working.note(ErrorCode::EVENT_ALREADY_EXISTS, &[&name]);
            return self.send_ok(sink, OkInfo::default());
        }
        let definer = self.definer_text(create.definer.as_ref())?;
        let mut event = Event {
            database_collation: known.default_collation,
            schema,
            name,
            schedule: self.event_schedule(&create.schedule, running)?,
            status: create.status.map_or(EventStatus::Enabled, status_of),
            preserve: create.preserve == Some(true),
            comment: create.comment.as_deref().unwrap_or("").into(),
            body: self.event_body(&create.body, running)?,
            definer,
            sql_mode: self.settings.sql_mode.0,
            time_zone: self.session_text("time_zone").into(),
            created_micros: self.statement_micros(),
            altered_micros: self.statement_micros(),
            executed_micros: None,
            charset_client: self.session_text("character_set_client").into(),
            collation_connection: self.settings.collation_connection.name.into(),
        };
        // What cannot be run is not kept.
        self.load_routine(&procedure_of(&event))?;
        if self.is_past(&event.schedule) {
            if !event.preserve {
                self.working.note(ErrorCode::EVENT_CANNOT_CREATE_IN_THE_PAST, &[]);
                return self.send_ok(sink, OkInfo::default());
            }
            self.working.note(ErrorCode::EVENT_EXEC_TIME_IN_THE_PAST, &[]);
            event.status = EventStatus::Disabled;
        }
        let put = Edit::PutEvent { event: Arc::new(event), over: old.cloned() };
        self.commit_event(&[put], sink)
    }

    /// ALTER EVENT.
    pub(crate) fn alter_event(
        &mut self,
        alter: &AlterEvent,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (schema, name) = self.qualify(&alter.name)?;
        self.require_on_schema(&schema, PrivilegeSet::EVENT)?;
        self.check_writable()?;
        let server = self.server.clone();
        let _guard = server.events.changing();
        let snapshot = self.server.catalog.snapshot();
        let old = snapshot.event(&schema, &name).ok_or_else(|| err!(EVENT_DOES_NOT_EXIST, name))?;
        self.require_over_definer(&old.definer)?;
        let mut event = Event::clone(old);
        event.definer = self.definer_text(alter.definer.as_ref())?;
        event.altered_micros = self.statement_micros();
        if let Some(schedule) = &alter.schedule {
            event.schedule = self.event_schedule(schedule, running)?;
            event.time_zone = self.session_text("time_zone").into();
            // A recurring event goes on from its last run, so that one that alters itself does not run without end.
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
            event.body = self.event_body(body, running)?;
            event.sql_mode = self.settings.sql_mode.0;
        }
        self.load_routine(&procedure_of(&event))?;
        if alter.schedule.is_some() && self.is_past(&event.schedule) {
            if !event.preserve {
                bail!(EVENT_CANNOT_ALTER_IN_THE_PAST);
            }
            self.working.note(ErrorCode::EVENT_EXEC_TIME_IN_THE_PAST, &[]);
            event.status = EventStatus::Disabled;
        }
        let over = Some(old.clone());
        let Some(rename) = &alter.rename else {
            return self.commit_event(&[Edit::PutEvent { event: Arc::new(event), over }], sink);
        };
        let (to_schema, to_name) = self.qualify(rename)?;
        if to_schema == schema && to_name.to_lowercase() == name.to_lowercase() {
            bail!(EVENT_SAME_NAME);
        }
        self.check_event_name(&to_schema, &to_name)?;
        if snapshot.schema(&to_schema).is_none() {
            bail!(BAD_DB_ERROR, to_schema);
        }
        if snapshot.event(&to_schema, &to_name).is_some() {
            bail!(EVENT_ALREADY_EXISTS, to_name);
        }
        (event.schema, event.name) = (to_schema, to_name);
        let put = Edit::PutEvent { event: Arc::new(event), over: None };
        self.commit_event(&[Edit::DropEvent { schema, name, over }, put], sink)
    }

    /// DROP EVENT.
    pub(crate) fn drop_event(
        &mut self,
        drop: &DropObject,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (schema, name) = self.qualify(&drop.name)?;
        self.require_on_schema(&schema, PrivilegeSet::EVENT)?;
        self.check_writable()?;
        let server = self.server.clone();
        let _guard = server.events.changing();
        let snapshot = self.server.catalog.snapshot();
        let Some(known) = snapshot.event(&schema, &name) else {
            if !drop.if_exists {
                bail!(EVENT_DOES_NOT_EXIST, name);
            }
            self.working.note(ErrorCode::SP_DOES_NOT_EXIST, &[&"Event", &name]);
            return self.send_ok(sink, OkInfo::default());
        };
        self.require_over_definer(&known.definer)?;
        let over = Some(known.clone());
        self.commit_event(&[Edit::DropEvent { schema, name, over }], sink)
    }

    fn commit_event(&mut self, edits: &[Edit], sink: &mut dyn ResultSink) -> Result<()> {
        let commit = self.commit_definitions(edits)?;
        self.server.events.wake();
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
    }

    fn check_event_name(&self, schema: &str, name: &str) -> Result<()> {
        if name.is_empty() || name.ends_with(' ') {
            bail!(SP_WRONG_NAME, name);
        }
        if name.chars().count() > NAME_CHARS_MAX {
            bail!(TOO_LONG_IDENT, name);
        }
        self.require_on_schema(schema, PrivilegeSet::EVENT)
    }

    fn event_body(&self, body: &ast::Body, running: &Running<'_>) -> Result<Arc<str>> {
        match body.kind {
            BodyKind::Sql(_) => {
                let text = String::from_utf8_lossy(body.span.of(running.source));
                Ok(text.trim_end().into())
            }
            BodyKind::External(_) => {
                Err(Error::not_supported("stored programs in other languages"))
            }
        }
    }

    fn is_past(&self, schedule: &EventSchedule) -> bool {
        let last = match schedule {
            EventSchedule::At(at) => Some(*at),
            EventSchedule::Every { ends, .. } => *ends,
        };
        last.is_some_and(|last| last < self.this_second())
    }

    /// The running second, microseconds since 1970 UTC.
    fn this_second(&self) -> i64 {
        let now = self.statement_micros();
        now - now.rem_euclid(MICROS_PER_SECOND)
    }

    fn event_schedule(
        &mut self,
        schedule: &ast::Schedule,
        running: &Running<'_>,
    ) -> Result<EventSchedule> {
        let (amount, unit, starts, ends) = match schedule {
            ast::Schedule::At(at) => {
                return Ok(EventSchedule::At(self.event_moment(at, "AT", running)?));
            }
            ast::Schedule::Every { amount, unit, starts, ends } => (amount, unit, starts, ends),
        };
        let Some(unit) = UNITS.iter().find(|known| known.unit == *unit) else {
            return Err(Error::not_supported("MICROSECOND"));
        };
        let (value, _) = self.evaluate(amount, running)?;
        let mut text = Vec::new();
        value.write_plain_text(&mut text);
        let step = read_step(&String::from_utf8_lossy(&text), unit)?;
        let starts = match starts {
            Some(starts) => self.event_moment(starts, "STARTS", running)?,
            None => self.this_second(),
        };
        let ends = match ends {
            Some(ends) => Some(
                self.event_moment(ends, "ENDS", running)
                    .map_err(|_| err!(EVENT_ENDS_BEFORE_STARTS))?,
            ),
            None => None,
        };
        if ends.is_some_and(|ends| ends <= starts) {
            bail!(EVENT_ENDS_BEFORE_STARTS);
        }
        Ok(EventSchedule::Every { step, unit: unit.name.into(), starts, ends })
    }

    /// A moment of a schedule in the session's time zone.
    fn event_moment(&mut self, expr: &Expr, word: &str, running: &Running<'_>) -> Result<i64> {
        let (value, ty) = self.evaluate(expr, running)?;
        let mut text = Vec::new();
        value.write_plain_text(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let bad = || err!(WRONG_VALUE, word, text);
        if value.is_null() {
            bail!(WRONG_VALUE, word, "NULL");
        }
        let moment = self.convert_variable(word, &value, &ty, &DataType::datetime(0));
        match moment.map_err(|_| bad())? {
            Value::DateTime(moment) if !moment.is_zero() => {
                let micros = self.settings.time_zone.local_to_utc(moment);
                micros.filter(|micros| (1..=MOMENT_MAX).contains(micros)).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }

    /// SHOW CREATE EVENT.
    pub(crate) fn show_create_event(
        &mut self,
        name: &ObjectName,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let (schema, name) = self.qualify(name)?;
        self.require_on_schema(&schema, PrivilegeSet::EVENT)?;
        let snapshot = self.server.catalog.snapshot();
        let known = snapshot.event(&schema, &name);
        let event = known.ok_or_else(|| err!(EVENT_DOES_NOT_EXIST, name))?;
        let zone = self.server.event_zone(event);
        let view = event_view(event, &*zone);
        let mut columns = create_columns("Event", "Create Event").to_vec();
        let text = DataType::varchar(64, columns[0].ty.collation).with_nullable(false);
        columns.insert(2, ColumnMeta::computed("time_zone", text));
        let row = vec![
            Value::text(&event.name),
            Value::text(&view.sql_mode),
            Value::text(&event.time_zone),
            Value::text(&create_text(event, &*zone)),
            Value::text(&view.session_charset),
            Value::text(&view.session_collation),
            Value::text(&view.database_collation),
        ];
        let state = self.state_info();
        send_rows(sink, &columns, &[row], &state)
    }

    /// Runs an event's body in a session that was opened for it.
    ///
    /// # Errors
    /// What the body fails with.
    pub(crate) fn run_event(&mut self, event: &Event) -> Result<()> {
        self.begin_command("Execute", event.body.as_bytes());
        self.begin_statement();
        let result = self.guarded(|session| session.run_event_body(event));
        match &result {
            Ok(()) => self.end_statement(),
            Err(error) => self.fail_statement(error),
        }
        self.become_idle();
        result
    }

    fn run_event_body(&mut self, event: &Event) -> Result<()> {
        let loaded = self.loaded_routine(&procedure_of(event))?;
        self.finish_transaction_scope()?;
        let outside = self.enter(&loaded)?;
        self.frames.push(Frame::new(loaded.clone()));
        let result = self.run_body(&loaded, &mut DiscardSink::default());
        self.frames.pop();
        self.leave(outside);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_shown_by_their_units() {
        let unit = |name: &str| UNITS.iter().find(|unit| unit.name == name).expect("known");
        for (text, name, step, shown) in [
            ("2", "DAY", EventStep::Seconds(172_800), "2"),
            ("1.5", "HOUR", EventStep::Seconds(7_200), "2"),
            ("3", "QUARTER", EventStep::Months(9), "3"),
            ("1:30", "MINUTE_SECOND", EventStep::Seconds(90), "'1:30'"),
            ("90", "MINUTE_SECOND", EventStep::Seconds(90), "'1:30'"),
            ("1 2", "DAY_HOUR", EventStep::Seconds(93_600), "'1 2'"),
            ("1-2", "YEAR_MONTH", EventStep::Months(14), "'1-2'"),
            ("1 2:3:4", "DAY_SECOND", EventStep::Seconds(93_784), "'1 2:3:4'"),
        ] {
            assert_eq!(read_step(text, unit(name)).expect("a step"), step, "{text} {name}");
            assert_eq!(step_text(step, name), shown);
        }
        for (text, name) in
            [("0", "DAY"), ("-1", "DAY"), ("x", "DAY"), ("-1:2", "HOUR_MINUTE"), ("1e30", "SECOND")]
        {
            assert!(read_step(text, unit(name)).is_err(), "{text} {name}");
        }
    }
}
