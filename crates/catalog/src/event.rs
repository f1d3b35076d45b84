//! Events as the catalog keeps them. Their text is kept as written; the session that runs them parses it again.

use std::sync::Arc;

use errors::Result;
use types::CollationId;

use crate::fields::{FieldWriter, damaged, object_fields};

/// Whether an event runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStatus {
    /// At its scheduled times.
    Enabled,
    /// Not until it is altered.
    Disabled,
    /// Disabled on a replica: it runs on the source.
    ReplicaSideDisabled,
}

/// The time from one run to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventStep {
    /// By the calendar of the event's time zone.
    Months(u64),
    /// By the clock.
    Seconds(u64),
}

/// When an event runs. Times are microseconds since 1970 UTC.
#[derive(Clone, Debug, PartialEq)]
pub enum EventSchedule {
    /// Once.
    At(i64),
    /// Repeatedly.
    Every {
        /// The interval; not zero.
        step: EventStep,
        /// The unit as written.
        unit: Arc<str>,
        /// The first time.
        starts: i64,
        /// The last possible time.
        ends: Option<i64>,
    },
}

/// An event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Schema.
    pub schema: Arc<str>,
    /// Name as created; events' names compare without regard to case.
    pub name: Arc<str>,
    /// When it runs.
    pub schedule: EventSchedule,
    /// Whether it runs.
    pub status: EventStatus,
    /// ON COMPLETION PRESERVE.
    pub preserve: bool,
    /// COMMENT.
    pub comment: Arc<str>,
    /// The body as written.
    pub body: Arc<str>,
    /// `user@host`.
    pub definer: Arc<str>,
    /// The SQL mode that the text is parsed and run in.
    pub sql_mode: u64,
    /// Name of the time zone that its times are shown in and its months are counted by.
    pub time_zone: Arc<str>,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Microseconds since 1970 UTC.
    pub altered_micros: i64,
    /// When it ran last, microseconds since 1970 UTC.
    pub executed_micros: Option<i64>,
    /// `character_set_client` of the session that created it.
    pub charset_client: Arc<str>,
    /// `collation_connection` of that session.
    pub collation_connection: Arc<str>,
    /// Collation of the schema then.
    pub database_collation: CollationId,
}

/// The key of an event's name.
pub(crate) fn event_key(name: &str) -> Arc<str> {
    Arc::from(name.to_lowercase())
}

/// An event: schema 1, name 2, at 3, months 4, seconds 5, unit 6, starts 7, ends 8, status 9 (1 disabled, 2 on replicas), preserve 10,
/// comment 11, body 12, definer 13, SQL mode 14, time zone 15, created 16, altered 17, executed 18, character set of the client 19,
/// collation of the connection 20, collation of the schema 21. Times that may be missing are written one larger.
pub(crate) fn write_event(event: &Event) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &event.schema);
    out.text(2, &event.name);
    match &event.schedule {
        EventSchedule::At(at) => out.number(3, *at as u64),
        EventSchedule::Every { step, unit, starts, ends } => {
            match step {
                EventStep::Months(months) => out.number(4, *months),
                EventStep::Seconds(seconds) => out.number(5, *seconds),
            }
            out.text(6, unit);
            out.number(7, *starts as u64);
            out.number(8, ends.map_or(0, |ends| ends as u64 + 1));
        }
    }
    out.number(
        9,
        match event.status {
            EventStatus::Enabled => 0,
            EventStatus::Disabled => 1,
            EventStatus::ReplicaSideDisabled => 2,
        },
    );
    out.flag(10, event.preserve);
    out.text(11, &event.comment);
    out.text(12, &event.body);
    out.text(13, &event.definer);
    out.number(14, event.sql_mode);
    out.text(15, &event.time_zone);
    out.number(16, event.created_micros as u64);
    out.number(17, event.altered_micros as u64);
    out.number(18, event.executed_micros.map_or(0, |executed| executed as u64 + 1));
    out.text(19, &event.charset_client);
    out.text(20, &event.collation_connection);
    out.number(21, u64::from(event.database_collation.0));
    out.finish()
}

pub(crate) fn read_event(bytes: &[u8]) -> Result<Event> {
    let none: Arc<str> = Arc::from("");
    let (mut at, mut step, mut unit, mut starts, mut ends) = (0, None, none.clone(), 0, None);
    let mut event = Event {
        schema: none.clone(),
        name: none.clone(),
        schedule: EventSchedule::At(0),
        status: EventStatus::Enabled,
        preserve: false,
        comment: none.clone(),
        body: none.clone(),
        definer: none.clone(),
        sql_mode: 0,
        time_zone: none.clone(),
        created_micros: 0,
        altered_micros: 0,
        executed_micros: None,
        charset_client: none.clone(),
        collation_connection: none,
        database_collation: CollationId::UTF8MB4_0900_AI_CI,
    };
    for field in object_fields(bytes)? {
        match field.tag {
            1 => event.schema = field.text()?.into(),
            2 => event.name = field.text()?.into(),
            3 => at = field.number()? as i64,
            4 => step = Some(EventStep::Months(field.number()?)),
            5 => step = Some(EventStep::Seconds(field.number()?)),
            6 => unit = field.text()?.into(),
            7 => starts = field.number()? as i64,
            8 => ends = field.number()?.checked_sub(1).map(|ends| ends as i64),
            9 => event.status = read_status(field.number()?)?,
            10 => event.preserve = field.flag()?,
            11 => event.comment = field.text()?.into(),
            12 => event.body = field.text()?.into(),
            13 => event.definer = field.text()?.into(),
            14 => event.sql_mode = field.number()?,
            15 => event.time_zone = field.text()?.into(),
            16 => event.created_micros = field.number()? as i64,
            17 => event.altered_micros = field.number()? as i64,
            18 => {
                event.executed_micros = field.number()?.checked_sub(1).map(|micros| micros as i64);
            }
            19 => event.charset_client = field.text()?.into(),
            20 => event.collation_connection = field.text()?.into(),
            21 => event.database_collation = CollationId(field.narrow()?),
            _ => {}
        }
    }
    event.schedule = match step {
        None => EventSchedule::At(at),
        Some(EventStep::Months(0) | EventStep::Seconds(0)) => return Err(damaged()),
        Some(step) => EventSchedule::Every { step, unit, starts, ends },
    };
    Ok(event)
}

fn read_status(number: u64) -> Result<EventStatus> {
    match number {
        0 => Ok(EventStatus::Enabled),
        1 => Ok(EventStatus::Disabled),
        2 => Ok(EventStatus::ReplicaSideDisabled),
        _ => Err(damaged()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let every = |step, ends| EventSchedule::Every { step, unit: "DAY".into(), starts: 7, ends };
        let schedules = [
            EventSchedule::At(5),
            every(EventStep::Seconds(86_400), None),
            every(EventStep::Months(14), Some(0)),
        ];
        for (schedule, executed_micros) in schedules.into_iter().zip([None, Some(0), Some(9)]) {
            let event = Event {
                schema: "s".into(),
                name: "Name".into(),
                schedule,
                status: EventStatus::ReplicaSideDisabled,
                preserve: true,
                comment: "c".into(),
                body: "SELECT 1".into(),
                definer: "root@localhost".into(),
                sql_mode: 1 << 40,
                time_zone: "SYSTEM".into(),
                created_micros: 3,
                altered_micros: 4,
                executed_micros,
                charset_client: "utf8mb4".into(),
                collation_connection: "utf8mb4_bin".into(),
                database_collation: CollationId(46),
            };
            assert_eq!(read_event(&write_event(&event)).expect("readable"), event);
        }
    }
}
