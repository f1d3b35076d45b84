//! Triggers as the catalog keeps them. Their text is kept as written; the session that runs them parses it again.

use std::sync::Arc;

use errors::Result;
use types::CollationId;

use crate::fields::{FieldWriter, object_fields};

/// The event that fires a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerEvent {
    /// A new row.
    Insert,
    /// A changed row.
    Update,
    /// A row is deleted.
    Delete,
}

impl TriggerEvent {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Delete => "DELETE",
        }
    }
}

/// A trigger.
#[derive(Clone, Debug, PartialEq)]
pub struct Trigger {
    /// Schema, of the table as well.
    pub schema: Arc<str>,
    /// Name as created; triggers' names compare without regard to case.
    pub name: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// The event that fires it.
    pub event: TriggerEvent,
    /// BEFORE, else AFTER.
    pub before: bool,
    /// Its position, from 1, among the table's triggers of the same event and time.
    pub order: u64,
    /// The body as written.
    pub body: Arc<str>,
    /// `user@host`.
    pub definer: Arc<str>,
    /// The SQL mode that the text is parsed and run in.
    pub sql_mode: u64,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// `character_set_client` of the session that created it.
    pub charset_client: Arc<str>,
    /// `collation_connection` of that session.
    pub collation_connection: Arc<str>,
    /// Collation of the schema then.
    pub database_collation: CollationId,
}

impl Trigger {
    /// `BEFORE` or `AFTER`.
    pub fn timing(&self) -> &'static str {
        if self.before { "BEFORE" } else { "AFTER" }
    }

    /// Whether both are fired by the same event of the same table at the same time.
    pub fn goes_with(&self, other: &Trigger) -> bool {
        self.schema == other.schema
            && self.table == other.table
            && (self.event, self.before) == (other.event, other.before)
    }
}

/// The key of a trigger's name.
pub(crate) fn trigger_key(name: &str) -> Arc<str> {
    Arc::from(name.to_lowercase())
}

/// A trigger: schema 1, name 2, table 3, event 4 (1 INSERT, 2 UPDATE, 3 DELETE), before 5, order 6, body 7, definer 8, SQL mode 9,
/// created 10, character set of the client 11, collation of the connection 12, collation of the schema 13.
pub(crate) fn write_trigger(trigger: &Trigger) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &trigger.schema);
    out.text(2, &trigger.name);
    out.text(3, &trigger.table);
    out.number(4, event_number(trigger.event));
    out.flag(5, trigger.before);
    out.number(6, trigger.order);
    out.text(7, &trigger.body);
    out.text(8, &trigger.definer);
    out.number(9, trigger.sql_mode);
    out.number(10, trigger.created_micros as u64);
    out.text(11, &trigger.charset_client);
    out.text(12, &trigger.collation_connection);
    out.number(13, u64::from(trigger.database_collation.0));
    out.finish()
}

fn event_number(event: TriggerEvent) -> u64 {
    match event {
        TriggerEvent::Insert => 1,
        TriggerEvent::Update => 2,
        TriggerEvent::Delete => 3,
    }
}

pub(crate) fn read_trigger(bytes: &[u8]) -> Result<Trigger> {
    let none: Arc<str> = Arc::from("");
    let mut trigger = Trigger {
        schema: none.clone(),
        name: none.clone(),
        table: none.clone(),
        event: TriggerEvent::Insert,
        before: false,
        order: 0,
        body: none.clone(),
        definer: none.clone(),
        sql_mode: 0,
        created_micros: 0,
        charset_client: none.clone(),
        collation_connection: none,
        database_collation: CollationId::UTF8MB4_0900_AI_CI,
    };
    for field in object_fields(bytes)? {
        match field.tag {
            1 => trigger.schema = field.text()?.into(),
            2 => trigger.name = field.text()?.into(),
            3 => trigger.table = field.text()?.into(),
            4 => {
                trigger.event = match field.number()? {
                    1 => TriggerEvent::Insert,
                    2 => TriggerEvent::Update,
                    3 => TriggerEvent::Delete,
                    _ => return Err(errors::Error::internal("a trigger of an unknown event")),
                };
            }
            5 => trigger.before = field.flag()?,
            6 => trigger.order = field.number()?,
            7 => trigger.body = field.text()?.into(),
            8 => trigger.definer = field.text()?.into(),
            9 => trigger.sql_mode = field.number()?,
            10 => trigger.created_micros = field.number()? as i64,
            11 => trigger.charset_client = field.text()?.into(),
            12 => trigger.collation_connection = field.text()?.into(),
            13 => trigger.database_collation = CollationId(field.narrow()?),
            _ => {}
        }
    }
    Ok(trigger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_is_read_as_it_was_written_and_keeps_its_bytes() {
        let trigger = Trigger {
            schema: "s".into(),
            name: "Name".into(),
            table: "t".into(),
            event: TriggerEvent::Delete,
            before: true,
            order: 2,
            body: "SET @a = OLD.b".into(),
            definer: "root@localhost".into(),
            sql_mode: 1 << 40,
            created_micros: 5,
            charset_client: "utf8mb4".into(),
            collation_connection: "utf8mb4_bin".into(),
            database_collation: CollationId(46),
        };
        let bytes = write_trigger(&trigger);
        assert_eq!(read_trigger(&bytes).expect("readable"), trigger);
        // The stored form: format 1, then the schema's field. Numbers take 8 bytes, texts their own.
        assert_eq!(bytes[..9], [1, 0, 1, 0, 1, 0, 0, 0, b's']);
        let texts = 1 + 4 + 1 + 14 + 14 + 7 + 11;
        assert_eq!(bytes.len(), 2 + 13 * 6 + texts + 6 * 8);
        let mut damaged = bytes.clone();
        let event = bytes.iter().position(|byte| *byte == 3).expect("the event or a tag before it");
        damaged.truncate(event + 4);
        assert!(read_trigger(&damaged).is_err());
    }
}
