//! The log as tables of `data_dictionary`: its files, where it is, its events, its readers. SHOW statements read them.

use std::sync::Arc;

use binlog::event::{HEADER_BYTES, MAGIC};
use binlog::{Event, EventKind, decode, rows};
use errors::Result;
use plugin_api::{BinaryLog as _, InfoColumn, InfoFilter, InformationContext, InformationTable};
use types::{CollationId, DataType, TypeKind, Value};

use crate::core::{Core, file_name, file_number};
use crate::files::{FileEvents, plain};
use crate::streams::{PRIVILEGE, one_line, scope_document};

fn text(name: &'static str, length: u32) -> InfoColumn {
    let mut ty = DataType::new(TypeKind::VarChar, length, 0);
    ty.collation = CollationId::UTF8MB4_0900_AI_CI;
    ty.nullable = false;
    InfoColumn { name, ty }
}

fn number(name: &'static str) -> InfoColumn {
    let mut ty = DataType::new(TypeKind::BigInt, 20, 0);
    ty.unsigned = true;
    ty.nullable = false;
    InfoColumn { name, ty }
}

fn long_text(name: &'static str) -> InfoColumn {
    let mut ty = DataType::new(TypeKind::LongText, u32::MAX, 0);
    ty.collation = CollationId::UTF8MB4_0900_AI_CI;
    ty.nullable = false;
    InfoColumn { name, ty }
}

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Files,
    Status,
    Events,
    Readers,
    Streams,
}

/// One of the tables.
pub(crate) struct LogTable {
    core: Arc<Core>,
    kind: Kind,
    columns: Vec<InfoColumn>,
}

fn stream_columns() -> Vec<InfoColumn> {
    vec![
        text("STREAM_NAME", 64),
        long_text("SCOPE"),
        long_text("SCOPE_DOCUMENT"),
        text("STATE", 8),
        number("WANTS_SNAPSHOT"),
        long_text("CONFIRMED_GTID_SET"),
        text("LOG_NAME", 255),
        number("LAG_BYTES"),
        number("LAG_SECONDS"),
        number("RETENTION_BYTES"),
        number("RETENTION_SECONDS"),
        number("INCLUDE_BEFORE"),
        number("INCLUDE_SCHEMA"),
        number("CONNECTION_ID"),
        text("LAST_ERROR", 512),
        long_text("CREATE_STATEMENT"),
        text("SINK", 64),
        number("DELIVERED_EVENTS"),
        number("DELIVERY_FAILURES"),
    ]
}

/// All of them.
pub(crate) fn all(core: &Arc<Core>) -> Vec<LogTable> {
    let table = |kind, columns| LogTable { core: core.clone(), kind, columns };
    vec![
        table(Kind::Files, vec![text("LOG_NAME", 255), number("FILE_SIZE"), text("ENCRYPTED", 3)]),
        table(
            Kind::Status,
            vec![
                text("LOG_NAME", 255),
                number("POSITION"),
                long_text("EXECUTED_GTID_SET"),
                long_text("PURGED_GTID_SET"),
                text("FAILURE", 512),
            ],
        ),
        table(
            Kind::Events,
            vec![
                text("LOG_NAME", 255),
                number("POS"),
                text("EVENT_TYPE", 32),
                number("SERVER_ID"),
                number("END_LOG_POS"),
                long_text("INFO"),
            ],
        ),
        table(Kind::Streams, stream_columns()),
        table(
            Kind::Readers,
            vec![
                number("SERVER_ID"),
                text("HOST", 255),
                number("PORT"),
                number("SOURCE_ID"),
                text("REPLICA_UUID", 36),
                number("CONNECTION_ID"),
                text("LOG_NAME", 255),
            ],
        ),
    ]
}

impl InformationTable for LogTable {
    fn schema(&self) -> &'static str {
        "data_dictionary"
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Files => "BINARY_LOGS",
            Kind::Status => "BINARY_LOG_STATUS",
            Kind::Events => "BINARY_LOG_EVENTS",
            Kind::Readers => "BINARY_LOG_READERS",
            Kind::Streams => "CHANGE_STREAMS",
        }
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        filter: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let of_streams = self.kind == Kind::Streams && ctx.has_privilege(PRIVILEGE);
        let may_read = of_streams
            || ctx.has_privilege("REPLICATION CLIENT")
            || ctx.has_privilege("REPLICATION SLAVE");
        if !self.core.is_on() || !may_read {
            return Ok(());
        }
        match self.kind {
            Kind::Files => self.files(emit),
            Kind::Status => self.status(emit),
            Kind::Events => self.events(filter, emit),
            Kind::Readers => self.readers(emit),
            Kind::Streams => self.streams(emit),
        }
    }
}

impl LogTable {
    fn files(&self, emit: &mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()> {
        sys::blocking::blocking(|| self.core.catch_up())?;
        let files = self.core.state.lock().files.clone();
        let is_encrypted = self.core.engine.directory_key().is_some();
        let encrypted = Value::text(if is_encrypted { "Yes" } else { "No" });
        files.iter().try_for_each(|file| {
            let name = Value::text(&file_name(file.number));
            emit(&[name, Value::UInt(file.size), encrypted.clone()])
        })
    }

    fn status(&self, emit: &mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()> {
        let status = self.core.status()?;
        let failure = self.core.state.lock().failure.clone().unwrap_or_default();
        emit(&[
            Value::text(&status.file),
            Value::UInt(status.position),
            Value::text(&status.executed),
            Value::text(&status.purged),
            Value::text(&failure),
        ])
    }

    fn streams(&self, emit: &mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()> {
        sys::blocking::blocking(|| self.core.catch_up())?;
        let streams = self.core.streams.lock().0.clone();
        for stream in streams {
            let (log, bytes, seconds) = {
                let state = self.core.state.lock();
                let needed = stream.needed(&state.files).and_then(|at| state.files.get(at));
                let log = needed.map_or_else(String::new, |file| file_name(file.number));
                (log, stream.lag_bytes(&state), stream.lag_seconds(&state))
            };
            let sink = stream.sink.as_ref();
            let status = self.core.sink_states.of(&stream.name);
            let error = stream.lost.clone().or(status.error).unwrap_or_default();
            let secrets = self.core.sink_secrets(&stream);
            let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
            emit(&[
                Value::text(&stream.name),
                Value::text(&stream.shown_scope()),
                Value::text(&scope_document(&stream.scope)),
                Value::text(stream.state()),
                Value::UInt(stream.wants_snapshot.into()),
                Value::text(&one_line(&stream.confirmed)),
                Value::text(&log),
                Value::UInt(bytes),
                Value::UInt(seconds),
                Value::UInt(stream.retention_bytes),
                Value::UInt(stream.retention_seconds),
                Value::UInt(stream.has_before.into()),
                Value::UInt(stream.has_schema.into()),
                Value::UInt(stream.reader.filter(|_| sink.is_none()).unwrap_or(0)),
                Value::text(&error),
                Value::text(&stream.create_statement(&secrets)),
                Value::text(sink.map_or("", |sink| &sink.name)),
                Value::UInt(status.events),
                Value::UInt(status.failures),
            ])?;
        }
        Ok(())
    }

    fn readers(&self, emit: &mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()> {
        let source = u64::from(self.core.settings.server_id());
        let (replicas, readers) = {
            let state = self.core.state.lock();
            (state.replicas.clone(), state.readers.clone())
        };
        for replica in replicas {
            let at = readers.iter().find(|(connection, _)| *connection == replica.connection_id);
            emit(&[
                Value::UInt(replica.server_id.into()),
                Value::text(&replica.host),
                Value::UInt(replica.port.into()),
                Value::UInt(source),
                Value::text(&replica.uuid),
                Value::UInt(replica.connection_id),
                Value::text(&at.map_or_else(String::new, |(_, file)| file_name(*file))),
            ])?;
        }
        Ok(())
    }

    fn events(
        &self,
        filter: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        sys::blocking::blocking(|| self.core.catch_up())?;
        let home = self.core.home()?;
        let files = self.core.state.lock().files.clone();
        let wanted = filter.value("log_name").map(file_number);
        let chosen =
            files.iter().filter(|file| wanted.is_none_or(|wanted| wanted == Some(file.number)));
        for file in chosen {
            let name = Value::text(&file_name(file.number));
            let mut events = FileEvents::open(&*home.disk, file.number, MAGIC.len() as u64)?;
            let has_checksums = events.has_checksums()?;
            let mut tables = Vec::new();
            loop {
                let start = events.position;
                let Some((header, event)) = events.next(file.size)? else { break };
                let info = plain(header, event, has_checksums).map_or_else(String::new, |event| {
                    info(header.kind, &event[HEADER_BYTES..], &mut tables)
                });
                let size = u64::from(header.size);
                emit(&[
                    name.clone(),
                    Value::UInt(start),
                    Value::text(&shown_kind(header.kind)),
                    Value::UInt(header.server_id.into()),
                    Value::UInt(start + size),
                    Value::text(&info),
                ])?;
            }
        }
        Ok(())
    }
}

/// The name of a kind as SHOW BINLOG EVENTS has it.
fn shown_kind(kind: EventKind) -> String {
    match kind {
        EventKind::FORMAT_DESCRIPTION => "Format_desc".to_owned(),
        EventKind::GTID_TAGGED => "Gtid_tagged".to_owned(),
        EventKind::XA_PREPARE => "XA_prepare".to_owned(),
        EventKind::TRANSACTION_PAYLOAD => "Transaction_payload".to_owned(),
        other => {
            let name = other.name();
            let (first, rest) = name.split_at(1);
            format!("{first}{}", rest.to_ascii_lowercase())
        }
    }
}

/// What an event says, in a line. `tables`: numbers and names of the tables described so far.
fn info(kind: EventKind, body: &[u8], tables: &mut Vec<(u64, String)>) -> String {
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match decode(kind, body) {
        Ok(Event::FormatDescription(format)) => {
            format!("Server ver: {}, Binlog ver: {}", lossy(format.server_version), format.version)
        }
        Ok(Event::Rotate(rotate)) => format!("{};pos={}", lossy(rotate.name), rotate.position),
        Ok(Event::PreviousGtids(set)) => set.to_string(),
        Ok(Event::Gtid(event)) => match event.gtid {
            Some(gtid) => format!("SET @@SESSION.GTID_NEXT= '{gtid}'"),
            None => "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'".to_owned(),
        },
        Ok(Event::Query(query)) if query.schema.is_empty() || query.text == b"BEGIN" => {
            lossy(query.text)
        }
        Ok(Event::Query(query)) => format!("use `{}`; {}", lossy(query.schema), lossy(query.text)),
        Ok(Event::Xid(xid)) => format!("COMMIT /* xid={xid} */"),
        Ok(Event::RowsQuery(text)) => format!("# {}", lossy(text)),
        Ok(Event::TableMap(map)) => {
            let name = format!("{}.{}", map.schema, map.table);
            let line = format!("table_id: {} ({name})", map.table_id);
            tables.push((map.table_id, name));
            line
        }
        Ok(Event::Rows(rows)) => {
            let end = if rows.flags & rows::flags::STATEMENT_ENDS != 0 {
                " flags: STMT_END_F"
            } else {
                ""
            };
            format!("table_id: {}{end}", rows.table_id)
        }
        Ok(Event::Incident(number, message)) => format!("#{number} ({})", lossy(message)),
        Ok(_) | Err(_) => String::new(),
    }
}
