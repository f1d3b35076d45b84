//! Applies transactions: each in one transaction here, together with the position after it.

use std::collections::HashMap;
use std::sync::Arc;

use binlog::envelope::XaPrepare;
use binlog::event::{Events, HEADER_BYTES, flags};
use binlog::gtid::GtidEvent;
use binlog::query::{QueryEvent, flags2};
use binlog::{Event, EventKind, GtidSet, Header, RowsEvent, TableMap, decode, rows};
use errors::{Error, ErrorCode, Result};
use syntax::ParseOptions;
use syntax::ast::Statement;

use crate::channel::Channel;
use crate::filter::Filters;
use crate::local::{Local, quoted, text_of};
use crate::settings::Settings;
use crate::status::{Seen, now_micros};
use crate::store::{self, Position};
use crate::target::{Change, Target};

/// What comes makes no sense.
const BROKEN: ErrorCode = ErrorCode(1594);
/// The branch exists.
const XA_DUPLICATE: ErrorCode = ErrorCode(1440);
/// There is no such branch.
const XA_UNKNOWN: ErrorCode = ErrorCode(1397);
/// Most bytes of a compressed transaction once it is not.
const PAYLOAD_BYTES_MAX: u64 = 1 << 32;
/// Most tables that are known at once.
const TARGETS_MAX: usize = 1000;

/// The session for rows: values mean the same whatever the settings of this server are.
const FOR_ROWS: &str = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', \
     time_zone = '+00:00', unique_checks = 1, character_set_client = utf8mb4, \
     character_set_results = utf8mb4, collation_connection = utf8mb4_0900_ai_ci, \
     transactional_ddl = 0, timestamp = DEFAULT";

/// What the session is set up for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetUp {
    Nothing,
    Rows,
    Statements,
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// None is open.
    Between,
    /// Its identifier was read.
    Announced,
    /// It is open here.
    Open,
    /// It is applied already, or not for this server: its events are passed over.
    Skipped,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Event,
    /// What START REPLICA .. UNTIL asked for is reached.
    Stop,
}

/// Applies the events of a channel.
pub(crate) struct Applier<'c> {
    channel: &'c Channel,
    local: Local,
    position: Position,
    executed: GtidSet,
    own_server_id: u32,
    ignored_servers: Vec<u64>,
    filters: Filters,
    tables: HashMap<u64, Arc<TableMap>>,
    targets: HashMap<String, Arc<Target>>,
    set_up: SetUp,
    checks_foreign_keys: bool,
    /// Whether this server has a binary log; then transactions keep their identifiers in it.
    has_log: Option<bool>,
    stage: Stage,
    /// No transaction was applied since the connection was made.
    is_first: bool,
    transaction: Option<GtidEvent>,
    /// The server where the transaction began.
    server_id: u32,
}

fn broken(why: impl std::fmt::Display) -> Error {
    Error::new(BROKEN, format!("The event makes no sense: {why}"))
}

impl<'c> Applier<'c> {
    pub(crate) fn new(
        channel: &'c Channel,
        local: Local,
        position: Position,
        executed: GtidSet,
        own_server_id: u32,
        settings: &Settings,
    ) -> Applier<'c> {
        Applier {
            channel,
            local,
            position,
            executed,
            own_server_id,
            ignored_servers: settings.ignored_servers.clone(),
            filters: settings.filters.clone(),
            tables: HashMap::new(),
            targets: HashMap::new(),
            set_up: SetUp::Nothing,
            checks_foreign_keys: true,
            has_log: None,
            stage: Stage::Between,
            is_first: true,
            transaction: None,
            server_id: 0,
        }
    }

    /// Applies an event.
    ///
    /// # Errors
    /// Those of the statements; the open transaction is rolled back with the session.
    pub(crate) fn apply(&mut self, header: &Header, body: &[u8]) -> Result<Next> {
        match decode(header.kind, body).map_err(broken)? {
            Event::Gtid(event) => return self.announce(header, event),
            Event::Rotate(rotate) => {
                self.position.file = String::from_utf8_lossy(rotate.name).into_owned();
                self.position.offset = rotate.position;
            }
            Event::TransactionPayload(payload) if self.stage != Stage::Skipped => {
                let events = payload.events(PAYLOAD_BYTES_MAX).map_err(broken)?;
                let mut inner = Events::new(&events);
                for (of_inner, event) in inner.by_ref() {
                    let of_inner = Header { position: header.position, ..of_inner };
                    self.apply(&of_inner, &event[HEADER_BYTES..])?;
                }
                if !inner.rest().is_empty() {
                    return Err(broken("a compressed transaction"));
                }
            }
            _ if self.stage == Stage::Skipped => return self.skip(header, body),
            Event::Query(query) => self.query(header, &query)?,
            Event::TableMap(mut map) => {
                if !self.filters.is_empty() {
                    map.schema = self.filters.rewritten(&map.schema).into();
                }
                self.tables.insert(map.table_id, Arc::new(*map));
            }
            Event::Rows(rows) => self.rows(&rows)?,
            Event::Xid(_) => self.commit(header)?,
            Event::Incident(_, message) => {
                let text = String::from_utf8_lossy(message);
                let text = format!("The incident {text} occurred on the source");
                return Err(Error::new(ErrorCode(1590), text));
            }
            Event::XaPrepare(xid) => self.prepare_branch(header, &xid)?,
            Event::FormatDescription(_) | Event::PreviousGtids(_) | Event::RowsQuery(_) => {}
            Event::TransactionPayload(_) | Event::Heartbeat(_) | Event::Stop => {}
            Event::Other(EventKind::TRANSACTION_CONTEXT | EventKind::VIEW_CHANGE) => {}
            Event::Other(_) if header.flags & flags::IGNORABLE != 0 => {}
            Event::Other(kind) => {
                let what = format!("replication of events of kind {}", kind.name());
                return Err(Error::not_supported(what));
            }
        }
        Ok(self.after_event())
    }

    /// What UNTIL says of the present position.
    fn after_event(&self) -> Next {
        if self.stage == Stage::Between
            && self.channel.is_until_reached(&self.position, &self.executed)
        {
            return Next::Stop;
        }
        Next::Event
    }

    /// A transaction begins.
    fn announce(&mut self, header: &Header, event: GtidEvent) -> Result<Next> {
        if matches!(self.stage, Stage::Open | Stage::Announced) {
            return Err(broken("a transaction within another"));
        }
        let name = event.gtid.as_ref().map_or("ANONYMOUS".to_owned(), ToString::to_string);
        if let Some(gtid) = &event.gtid
            && self.channel.stops_before(gtid)
        {
            return Ok(Next::Stop);
        }
        let is_done = event
            .gtid
            .as_ref()
            .is_some_and(|gtid| self.executed.contains(gtid.uuid, &gtid.tag, gtid.number));
        let is_foreign = header.server_id == self.own_server_id
            || self.ignored_servers.contains(&u64::from(header.server_id));
        self.stage = if is_done || is_foreign { Stage::Skipped } else { Stage::Announced };
        self.channel.update(|status| {
            status.applying_since = (!is_done).then_some(header.timestamp);
            status.current = Seen {
                name,
                original_micros: event.original_commit_timestamp as i64,
                immediate_micros: event.immediate_commit_timestamp as i64,
                started_micros: now_micros(),
                ended_micros: 0,
            };
            if let Some(gtid) = &event.gtid {
                status.retrieved.add(gtid.uuid, &gtid.tag, gtid.number);
            }
        });
        if self.stage == Stage::Announced {
            self.channel.delay(event.immediate_commit_timestamp as i64)?;
        }
        self.transaction = Some(event);
        self.server_id = header.server_id;
        Ok(Next::Event)
    }

    /// An event of a transaction that is passed over.
    fn skip(&mut self, header: &Header, body: &[u8]) -> Result<Next> {
        let event = decode(header.kind, body).map_err(broken)?;
        let is_end =
            matches!(event, Event::Xid(_) | Event::XaPrepare(_) | Event::TransactionPayload(_));
        if is_end || matches!(event, Event::Query(query) if is_last(query.text)) {
            self.position.offset = u64::from(header.position);
            if let Some(gtid) = self.transaction.take().and_then(|event| event.gtid) {
                self.executed.add(gtid.uuid, &gtid.tag, gtid.number);
            }
            self.stage = Stage::Between;
            self.note_applied();
        }
        Ok(self.after_event())
    }

    fn query(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<()> {
        let text = query.text;
        if text == b"BEGIN" {
            return self.begin();
        }
        if text == b"COMMIT" {
            return self.commit(header);
        }
        if text.starts_with(b"XA ") {
            return self.branch(header, text);
        }
        if text == b"ROLLBACK" {
            self.local.run(b"ROLLBACK")?;
            self.stage = Stage::Announced;
            self.begin()?;
            return self.commit(header);
        }
        if self.stage == Stage::Open && !is_create_in_transaction(text) {
            if text.starts_with(b"SAVEPOINT ") || text.starts_with(b"ROLLBACK TO ") {
                return self.local.run(text).map(drop);
            }
            self.set_context(header, query)?;
            return self.local.run(text).map(drop);
        }
        self.define(header, query)
    }

    fn begin(&mut self) -> Result<()> {
        self.prepare_for_rows()?;
        self.keep_identifier()?;
        self.local.run(b"BEGIN")?;
        self.stage = Stage::Open;
        Ok(())
    }

    /// The transaction gets in the binary log of this server the identifier that it has in the source's.
    fn keep_identifier(&mut self) -> Result<()> {
        let has_log = match self.has_log {
            Some(known) => known,
            None => {
                let answer = self.local.run(b"SELECT @@GLOBAL.log_bin")?;
                let first = answer.rows.first().and_then(|row| row.first());
                let has_log = text_of(first) == "1";
                *self.has_log.insert(has_log)
            }
        };
        if !has_log {
            return Ok(());
        }
        let transaction = self.transaction.as_ref();
        let gtid = transaction.and_then(|event| event.gtid.as_ref());
        let next = gtid.map_or_else(|| "AUTOMATIC".to_owned(), ToString::to_string);
        let committed = transaction.map_or(0, |event| event.original_commit_timestamp);
        let origin = self.server_id;
        let set = format!(
            "SET SESSION gtid_next = '{next}', original_server_id = {origin}, original_commit_timestamp = {committed}"
        );
        self.local.run(set.as_bytes()).map(drop)
    }

    /// A statement about an XA branch.
    fn branch(&mut self, header: &Header, text: &[u8]) -> Result<()> {
        if text.starts_with(b"XA END ") {
            // When it is prepared: until then it is known whether the position becomes part of it.
            return Ok(());
        }
        self.prepare_for_rows()?;
        let done = self.local.run(text);
        if text.starts_with(b"XA START ") {
            self.stage = Stage::Open;
            // It was prepared before the server ended, but the position not stored.
            if done.as_ref().is_err_and(|error| error.code() == XA_DUPLICATE) && self.is_first {
                self.stage = Stage::Skipped;
                return Ok(());
            }
            return done.map(drop);
        }
        // XA COMMIT or XA ROLLBACK, which the server had done before it ended.
        let is_done_before =
            done.as_ref().is_err_and(|error| error.code() == XA_UNKNOWN) && self.is_first;
        if !is_done_before {
            done?;
        }
        self.begin()?;
        self.commit(header)
    }

    /// The end of an XA branch in its session: the position is stored in the branch or, as it may stay prepared for long, after it.
    fn prepare_branch(&mut self, header: &Header, xid: &XaPrepare<'_>) -> Result<()> {
        if self.stage != Stage::Open {
            return Err(broken("XA PREPARE without XA START"));
        }
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let name = format!("X'{}',X'{}',{}", hex(xid.global), hex(xid.branch), xid.format);
        if xid.one_phase {
            self.advance(header)?;
            self.local.run(format!("XA END {name}").as_bytes())?;
            self.local.run(format!("XA COMMIT {name} ONE PHASE").as_bytes())?;
            self.note_committed();
            return Ok(());
        }
        self.local.run(format!("XA END {name}").as_bytes())?;
        self.local.run(format!("XA PREPARE {name}").as_bytes())?;
        self.begin()?;
        self.commit(header)
    }

    fn prepare_for_rows(&mut self) -> Result<()> {
        if self.set_up != SetUp::Rows {
            self.local.run(FOR_ROWS.as_bytes())?;
            self.local.run(b"SET SESSION foreign_key_checks = 0")?;
            self.checks_foreign_keys = false;
            self.set_up = SetUp::Rows;
        }
        Ok(())
    }

    /// A statement that is a transaction of its own, or creates a table whose rows follow.
    fn define(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<()> {
        let creates = is_create_in_transaction(query.text);
        let text = if creates {
            let end = query.text.len() - START_TRANSACTION.len();
            &query.text[..end]
        } else {
            query.text
        };
        if !self.filters.is_empty() && !self.filters.takes_definition(query, text) {
            // The transaction has its identifier and its position, and changes nothing.
            self.channel.update(|status| status.filtered += 1);
            if self.stage != Stage::Open {
                self.begin()?;
            }
            return if creates { Ok(()) } else { self.commit(header) };
        }
        if !creates && commits_by_itself(text) {
            return self.define_alone(header, query);
        }
        // What can be part of a transaction is, so that the position after it is stored with it or not at all.
        self.set_context(header, query)?;
        self.keep_identifier()?;
        self.local.run(b"SET SESSION transactional_ddl = 1")?;
        if self.stage != Stage::Open {
            self.local.run(b"BEGIN")?;
        }
        if let Err(error) = self.local.run(text) {
            if error.code() != ErrorCode(1235) || creates {
                return Err(error);
            }
            self.local.run(b"ROLLBACK")?;
            return self.define_alone(header, query);
        }
        self.targets.clear();
        if creates {
            self.stage = Stage::Open;
            return Ok(());
        }
        self.commit(header)
    }

    /// A statement that cannot be part of a transaction. That it begins is stored before, so that after a crash in the middle it is known why
    /// it fails: because it was done.
    fn define_alone(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<()> {
        let gtid = self.transaction.as_ref().and_then(|event| event.gtid.as_ref());
        let place = format!("{}:{}", self.position.file, header.position);
        let name = gtid.map_or(place, ToString::to_string);
        let may_be_done = self.is_first && self.position.started == name;
        self.prepare_for_rows()?;
        store::start(&mut self.local, &self.channel.name, &name)?;
        self.set_context(header, query)?;
        self.keep_identifier()?;
        self.local.run(b"SET SESSION transactional_ddl = 0")?;
        if let Err(error) = self.local.run(query.text) {
            self.prepare_for_rows()?;
            if !may_be_done {
                store::start(&mut self.local, &self.channel.name, "")?;
                return Err(error);
            }
            tracing::warn!(transaction = name, %error, "done before the server ended");
        }
        self.disable_event(query)?;
        self.targets.clear();
        self.commit(header)
    }

    /// An event runs on the source alone: what it changes comes from there.
    fn disable_event(&mut self, query: &QueryEvent<'_>) -> Result<()> {
        let parsed = syntax::parse_bytes(query.text, &ParseOptions::default());
        let name = match parsed.map(|(statement, _)| statement) {
            Ok(Statement::CreateEvent(create)) => create.name,
            Ok(Statement::AlterEvent(alter)) => alter.rename.unwrap_or(alter.name),
            Ok(_) | Err(_) => return Ok(()),
        };
        let schema = match &name.schema {
            Some(schema) => schema.text.to_string(),
            None => String::from_utf8_lossy(query.schema).into_owned(),
        };
        let (schema, name) = (quoted(&schema), quoted(&name.name.text));
        self.prepare_for_rows()?;
        // It is so on this server alone.
        self.local.run(b"SET SESSION sql_log_bin = 0")?;
        let text = format!("ALTER EVENT {schema}.{name} DISABLE ON REPLICA");
        let disabled = self.local.run(text.as_bytes()).map(drop);
        self.local.run(b"SET SESSION sql_log_bin = 1")?;
        disabled
    }

    /// Makes the session that of the statement.
    fn set_context(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<()> {
        let context = &query.context;
        let mut sets = Vec::new();
        if let Some(bits) = context.flags2 {
            let on = |bit: u32| u8::from(bits & bit == 0);
            let foreign_keys = on(flags2::NO_FOREIGN_KEY_CHECKS);
            sets.push(format!("foreign_key_checks = {foreign_keys}"));
            sets.push(format!("unique_checks = {}", on(flags2::RELAXED_UNIQUE_CHECKS)));
        }
        if let Some(mode) = context.sql_mode {
            sets.push(format!("sql_mode = {mode}"));
        }
        if let Some([client, connection, server]) = context.charset {
            sets.push(format!("character_set_client = {}", charset_of(client)?));
            sets.push(format!("collation_connection = {}", collation_of(connection)?));
            sets.push(format!("collation_server = {}", collation_of(server)?));
        }
        if let Some(zone) = context.time_zone {
            let zone = String::from_utf8_lossy(zone).replace('\'', "''");
            sets.push(format!("time_zone = '{zone}'"));
        }
        if let Some(collation) = context.default_collation_for_utf8mb4 {
            sets.push(format!("default_collation_for_utf8mb4 = {}", collation_of(collation)?));
        }
        let micros = context.microseconds.unwrap_or(0);
        sets.push(format!("timestamp = {}.{micros:06}", header.timestamp));
        // This session reads what it is sent in UTF-8, until the text of the statement itself.
        self.local.run(format!("SET SESSION {}", sets.join(", ")).as_bytes())?;
        self.set_up = SetUp::Statements;
        if header.flags & flags::SUPPRESS_USE == 0 && !query.schema.is_empty() {
            let schema = String::from_utf8_lossy(query.schema);
            let used = self.local.use_schema(self.filters.rewritten(&schema));
            // A schema that was left out is nothing to statements about accounts.
            if !is_about_accounts(query.text) || self.filters.is_empty() {
                used?;
            }
        }
        Ok(())
    }

    fn rows(&mut self, rows: &RowsEvent<'_>) -> Result<()> {
        let Some(map) = self.tables.get(&rows.table_id).cloned() else {
            return Err(broken("rows of a table that was not described"));
        };
        if self.stage != Stage::Open {
            return Err(broken("rows outside of a transaction"));
        }
        if !self.filters.takes_rows(&map.schema, &map.table) {
            self.channel.update(|status| status.filtered += 1);
            return Ok(());
        }
        self.prepare_for_rows()?;
        // Since 9.6 the rows that cascades changed are in the log themselves.
        let off = rows::flags::SQL_FOREIGN_KEYS | rows::flags::NO_FOREIGN_KEY_CHECKS;
        let checks = rows.flags & off == 0;
        if checks != self.checks_foreign_keys {
            let set = format!("SET SESSION foreign_key_checks = {}", u8::from(checks));
            self.local.run(set.as_bytes())?;
            self.checks_foreign_keys = checks;
        }
        let target = self.target(&map)?;
        let mut change: Option<Change> = None;
        for row in rows.rows(&map) {
            let row = row.map_err(broken)?;
            let change = match &change {
                Some(change) => change,
                None => change.insert(target.change(rows.kind, &row.before, &row.after)?),
            };
            if !change.is_empty() {
                change.run(&mut self.local, &row.before, &row.after).map_err(|error| {
                    let place = format!("{}.{}", map.schema, map.table);
                    let text = format!("Table {place}: {}", error.message());
                    Error::new(error.code(), text)
                })?;
            }
        }
        self.channel.check_stop_within_transaction()
    }

    fn target(&mut self, map: &TableMap) -> Result<Arc<Target>> {
        let name = format!("{}\0{}", map.schema, map.table);
        if let Some(target) = self.targets.get(&name) {
            return Ok(target.clone());
        }
        let target = Arc::new(Target::load(&mut self.local, &map.schema, &map.table)?);
        if self.targets.len() >= TARGETS_MAX {
            self.targets.clear();
        }
        self.targets.insert(name, target.clone());
        Ok(target)
    }

    /// Stores the position after the transaction and commits.
    fn commit(&mut self, header: &Header) -> Result<()> {
        self.advance(header)?;
        self.local.run(b"COMMIT")?;
        self.note_committed();
        Ok(())
    }

    /// Stores the position after the transaction, as part of it.
    fn advance(&mut self, header: &Header) -> Result<()> {
        self.position.offset = u64::from(header.position);
        if let Some(gtid) = self.transaction.take().and_then(|event| event.gtid) {
            self.executed.add(gtid.uuid, &gtid.tag, gtid.number);
            self.position.gtids = self.executed.to_string();
        }
        if self.set_up == SetUp::Statements {
            // Names are in the character set of the statement's client otherwise.
            self.local.run(b"SET SESSION character_set_client = utf8mb4")?;
        }
        store::advance(&mut self.local, &self.channel.name, &self.position)
    }

    fn note_committed(&mut self) {
        self.stage = Stage::Between;
        self.is_first = false;
        self.tables.clear();
        self.note_applied();
    }

    fn note_applied(&self) {
        self.channel.update(|status| {
            status.applied_file.clone_from(&self.position.file);
            status.applied_offset = self.position.offset;
            status.executed.clone_from(&self.executed);
            status.applying_since = None;
            status.last = std::mem::take(&mut status.current);
            status.last.ended_micros = now_micros();
        });
    }
}

/// How the creation of a table ends in the log whose rows are part of the transaction.
const START_TRANSACTION: &[u8] = b" START TRANSACTION";

/// Whether a transaction ends with this statement: it is a COMMIT, or one of its own.
fn is_last(text: &[u8]) -> bool {
    const PARTS: [&[u8]; 4] = [b"SAVEPOINT ", b"ROLLBACK TO ", b"XA START ", b"XA END "];
    let is_part = PARTS.iter().any(|part| text.starts_with(part));
    !(text == b"BEGIN" || is_part || is_create_in_transaction(text))
}

fn is_create_in_transaction(text: &[u8]) -> bool {
    text.ends_with(START_TRANSACTION)
        && text.get(..7).is_some_and(|word| word.eq_ignore_ascii_case(b"CREATE "))
}

/// Whether a statement is no part of a transaction, with `transactional_ddl` either.
fn commits_by_itself(text: &[u8]) -> bool {
    let parsed = syntax::parse_bytes(text, &ParseOptions::default());
    let Ok((statement, _)) = parsed else { return false };
    use Statement::{AlterEvent, CreateEvent, DropEvent};
    matches!(statement, CreateEvent(_) | AlterEvent(_) | DropEvent(_)) || is_of_account(&statement)
}

fn is_about_accounts(text: &[u8]) -> bool {
    let parsed = syntax::parse_bytes(text, &ParseOptions::default());
    parsed.is_ok_and(|(statement, _)| is_of_account(&statement))
}

fn is_of_account(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateUser(_)
            | Statement::AlterUser(_)
            | Statement::DropUser { .. }
            | Statement::RenameUser(_)
            | Statement::CreateRole { .. }
            | Statement::DropRole { .. }
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::SetPassword(_)
            | Statement::SetDefaultRole { .. }
    )
}

fn collation_of(id: u16) -> Result<&'static str> {
    let known = charset::collation(charset::CollationId(id));
    known.map(|collation| collation.name).ok_or_else(|| broken(format!("collation {id}")))
}

fn charset_of(id: u16) -> Result<&'static str> {
    let known = charset::collation(charset::CollationId(id));
    known.map(|collation| collation.charset.name).ok_or_else(|| broken(format!("collation {id}")))
}
