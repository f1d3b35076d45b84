//! Applies transactions: each in one transaction here, together with the position after it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use binlog::envelope::XaPrepare;
use binlog::event::{Events, HEADER_BYTES, flags};
use binlog::query::{QueryEvent, flags2};
use binlog::{Event, EventKind, Gtid, Header, Row, RowsEvent, RowsKind, TableMap, decode, rows};
use engine_api::CancelToken;
use errors::{Error, ErrorCode, Result};
use plugin_api::{RepeatedTransaction, SessionFactory};
use syntax::ParseOptions;
use syntax::ast::Statement;

use crate::by_hash;
use crate::channel::Channel;
use crate::crew::{Crew, Progress, Start};
use crate::filter::Filters;
use crate::local::{Local, Pending, quoted, text_of};
use crate::mariadb;
use crate::partitions;
use crate::settings::Settings;
use crate::store;
use crate::target::{Change, Target};

/// What comes makes no sense.
const BROKEN: ErrorCode = ErrorCode(1594);
/// The branch exists.
const XA_DUPLICATE: ErrorCode = ErrorCode(1440);
/// There is no such branch.
const XA_UNKNOWN: ErrorCode = ErrorCode(1397);
/// Most bytes of a compressed transaction once it is not.
const PAYLOAD_BYTES_MAX: u64 = 1 << 32;
/// What MariaDB takes for a text of utf8mb4.
const UTF8MB4_GENERAL_CI: u16 = 45;
/// Most tables that are known at once.
const TARGETS_MAX: usize = 1000;

/// The session for rows: values mean the same whatever the settings of this server are. Other transactions are let in between the rows
/// that one locks: several are applied side by side.
const FOR_ROWS: &str = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', \
     time_zone = '+00:00', unique_checks = 1, transaction_isolation = 'READ-COMMITTED', character_set_client = utf8mb4, \
     character_set_results = utf8mb4, collation_connection = utf8mb4_0900_ai_ci, \
     transactional_ddl = 0, timestamp = DEFAULT, system_versioning_stored_rows = 1";

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
    /// It is here already: its events are passed over.
    Skipped,
}

/// Where sessions come from, and what stops their statements.
pub(crate) struct Home {
    pub(crate) sessions: Arc<dyn SessionFactory>,
    pub(crate) cancel: CancelToken,
}

impl Home {
    pub(crate) fn open(&self, pending: Arc<Pending>) -> Result<Local> {
        Local::open(&*self.sessions, self.cancel.clone(), pending)
    }
}

/// Changes of rows of one statement in a table without unique indexes.
struct ByValues {
    table_id: u64,
    kind: RowsKind,
    flags: u16,
    place: String,
    target: Arc<Target>,
    rows: Vec<Row>,
    /// Bytes of their events.
    bytes: usize,
}

impl ByValues {
    /// Whether an event has more of them.
    fn goes_on(&self, event: &Event<'_>) -> bool {
        let Event::Rows(rows) = event else { return false };
        let flags = rows.flags & !rows::flags::STATEMENT_ENDS;
        (rows.table_id, rows.kind, flags) == (self.table_id, self.kind, self.flags)
    }
}

/// Applies the events of transactions: those that come, or for a worker those that it is given.
pub(crate) struct Applier {
    crew: Arc<Crew>,
    channel: Arc<Channel>,
    home: Home,
    local: Local,
    /// The worker's number; 0 for the thread of the channel.
    slot: usize,
    filters: Filters,
    tables: HashMap<u64, Arc<TableMap>>,
    targets: HashMap<String, Arc<Target>>,
    /// The state of definitions that these are of.
    definitions: u64,
    set_up: SetUp,
    checks_foreign_keys: bool,
    /// Rows of the present statement that are found by their values.
    by_values: Option<ByValues>,
    /// Whether this server has a binary log; then transactions keep their identifiers in it.
    has_log: Option<bool>,
    stage: Stage,
    transaction: Option<Start>,
    /// The last transaction that ended.
    ended: Option<Start>,
    /// The place of the transaction among those that workers were given.
    order: Option<u64>,
    session: u64,
    /// How far the channel is with the transaction.
    next: Option<Progress>,
}

pub(crate) fn broken(why: impl std::fmt::Display) -> Error {
    Error::new(BROKEN, format!("The event makes no sense: {why}"))
}

impl Applier {
    /// Opens a session that applies; `slot` is the worker's number, 0 for the thread of the channel.
    pub(crate) fn open(
        crew: &Arc<Crew>,
        home: Home,
        settings: &Settings,
        slot: usize,
    ) -> Result<Applier> {
        let local = home.open(crew.channel.pending.clone())?;
        let mut applier = Applier {
            crew: crew.clone(),
            channel: crew.channel.clone(),
            home,
            local,
            slot,
            filters: settings.filters.clone(),
            tables: HashMap::new(),
            targets: HashMap::new(),
            definitions: 0,
            set_up: SetUp::Nothing,
            checks_foreign_keys: true,
            by_values: None,
            has_log: None,
            stage: Stage::Between,
            transaction: None,
            ended: None,
            order: None,
            session: 0,
            next: None,
        };
        applier.note_session()?;
        Ok(applier)
    }

    /// A transaction begins, whose events come.
    pub(crate) fn begin_transaction(&mut self, start: Start) {
        debug_assert!(self.stage == Stage::Between, "one transaction after the other");
        self.channel.update(|status| {
            if let Some(worker) = status.workers.get_mut(self.slot) {
                worker.begin(start.seen());
            }
        });
        self.transaction = Some(start);
        self.stage = Stage::Announced;
    }

    /// The transaction that the last event ended.
    pub(crate) fn take_ended(&mut self) -> Option<Start> {
        self.ended.take()
    }

    /// Applies a whole transaction.
    ///
    /// # Errors
    /// Those of the statements; the transaction is to be rolled back.
    pub(crate) fn repeat(
        &mut self,
        start: &Start,
        events: &[(Header, Vec<u8>)],
        order: u64,
    ) -> Result<()> {
        self.order = Some(order);
        self.begin_transaction(start.clone());
        events.iter().try_for_each(|(header, body)| self.apply(header, body))?;
        match self.take_ended() {
            Some(_) => Ok(()),
            None => Err(broken("a transaction without an end")),
        }
    }

    /// Rolls back the transaction that failed: the next is applied in a new session, as nothing of the old one is sure.
    ///
    /// # Errors
    /// No session can be opened.
    pub(crate) fn begin_anew(&mut self) -> Result<()> {
        self.local = self.home.open(self.crew.channel.pending.clone())?;
        self.stage = Stage::Between;
        self.set_up = SetUp::Nothing;
        self.transaction = None;
        self.next = None;
        self.by_values = None;
        self.tables.clear();
        self.targets.clear();
        self.note_session()
    }

    /// Tells others the number of its session.
    fn note_session(&mut self) -> Result<()> {
        let answer = self.local.run(b"SELECT CONNECTION_ID()")?;
        let number = text_of(answer.rows.first().and_then(|row| row.first())).parse();
        self.session = number.map_err(Error::internal)?;
        self.crew.note_session(self.slot, self.session);
        Ok(())
    }

    /// Passes a transaction over that ends at this offset.
    pub(crate) fn pass_over(&mut self, start: &Start, offset: u64) {
        let progress = self.progress_after(start, offset);
        self.crew.note_applied(progress, self.slot, start.event.sequence_number);
    }

    /// Stores the position after a transaction that changes nothing here.
    ///
    /// # Errors
    /// Those of the statements.
    pub(crate) fn leave_out(&mut self, start: Start, header: &Header) -> Result<()> {
        self.begin_transaction(start);
        self.begin()?;
        self.commit(header)?;
        self.ended = None;
        Ok(())
    }

    fn progress_after(&self, start: &Start, offset: u64) -> Progress {
        let mut progress = self.crew.progress();
        progress.position.offset = offset;
        if let Some(gtid) = &start.event.gtid {
            progress.executed.add(gtid.uuid, &gtid.tag, gtid.number);
        }
        if let Some(gtid) = start.mariadb {
            progress.position.gtid_slave_pos.advance(gtid);
        }
        progress
    }

    /// Applies an event.
    ///
    /// # Errors
    /// Those of the statements; the open transaction is to be rolled back.
    pub(crate) fn apply(&mut self, header: &Header, body: &[u8]) -> Result<()> {
        let event = decode(header.kind, body).map_err(broken)?;
        if self.by_values.as_ref().is_some_and(|kept| !kept.goes_on(&event)) {
            self.change_by_values()?;
        }
        match event {
            Event::Gtid(_) | Event::Rotate(_) => return Err(broken("the start of a transaction")),
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
            event if self.stage == Stage::Skipped => self.skip(header, &event)?,
            Event::Query(query) if self.is_of_mariadb() => {
                self.query_of_mariadb(header, &query)?;
            }
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
                let hint = if is_of_statement(kind) { " (binlog_format must be ROW)" } else { "" };
                let what = format!("replication of events of kind {}{hint}", kind.name());
                return Err(Error::not_supported(what));
            }
        }
        Ok(())
    }

    /// An event of a branch that is prepared already.
    fn skip(&mut self, header: &Header, event: &Event<'_>) -> Result<()> {
        if !matches!(event, Event::XaPrepare(_)) {
            return Ok(());
        }
        self.begin()?;
        self.commit(header)
    }

    fn is_of_mariadb(&self) -> bool {
        self.transaction.as_ref().is_some_and(|start| start.mariadb.is_some())
    }

    fn query_of_mariadb(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<()> {
        if self.stage == Stage::Open && mariadb::is_change(query.text) {
            return Err(mariadb::not_rows(query.text));
        }
        let mut own = query.clone();
        own.context.sql_mode = own.context.sql_mode.map(mariadb::sql_mode);
        let text = match self.stage {
            Stage::Open => mariadb::within_transaction(query.text),
            Stage::Between | Stage::Announced | Stage::Skipped => query.text.into(),
        };
        own.text = &text;
        // What utf8mb4 means there without a collation.
        own.context.default_collation_for_utf8mb4 = Some(UTF8MB4_GENERAL_CI);
        let done = self.query(header, &own);
        done.map_err(|error| mariadb::explained(error, query.text))
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
                return self.local.run(&without_ansi_quotes(text)).map(drop);
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
        let start = self.transaction.as_ref();
        let gtid = start.and_then(|start| start.event.gtid.clone());
        self.next_identifier(gtid.as_ref())
    }

    /// What is logged next gets this identifier, or one of this server.
    fn next_identifier(&mut self, gtid: Option<&Gtid>) -> Result<()> {
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
        self.local.repeat_transaction(&RepeatedTransaction {
            gtid,
            server_id: transaction.map_or(0, |start| start.server_id),
            commit_micros: transaction.map_or(0, |start| start.event.original_commit_timestamp),
        })
    }

    /// A statement about an XA branch.
    fn branch(&mut self, header: &Header, text: &[u8]) -> Result<()> {
        if text.starts_with(b"XA END ") {
            // When it is prepared: until then it is known whether the position becomes part of it.
            return Ok(());
        }
        self.prepare_for_rows()?;
        if text.starts_with(b"XA START ") {
            // A branch is logged when it is decided, with the identifier of that.
            self.next_identifier(None)?;
            let done = self.local.run(text);
            self.stage = Stage::Open;
            // It was prepared before the server ended, but the position not stored.
            if done.as_ref().is_err_and(|error| error.code() == XA_DUPLICATE) && self.is_first() {
                self.stage = Stage::Skipped;
                return Ok(());
            }
            return done.map(drop);
        }
        self.keep_identifier()?;
        let done = self.local.run(text);
        // XA COMMIT or XA ROLLBACK, which the server had done before it ended.
        let is_done_before =
            done.as_ref().is_err_and(|error| error.code() == XA_UNKNOWN) && self.is_first();
        if !is_done_before {
            done?;
        } else if !self.is_logged()? {
            self.begin()?;
            return self.commit(header);
        }
        self.follow_branch(header)
    }

    /// Whether the identifier of the transaction is in the binary log of this server.
    fn is_logged(&mut self) -> Result<bool> {
        let start = self.transaction.as_ref();
        let Some(gtid) = start.and_then(|start| start.event.gtid.as_ref()) else { return Ok(true) };
        let text = format!("SELECT GTID_SUBSET('{gtid}', @@GLOBAL.gtid_executed)");
        let answer = self.local.run(text.as_bytes())?;
        Ok(text_of(answer.rows.first().and_then(|row| row.first())) == "1")
    }

    /// Stores the position after a statement about a branch that has its identifier in the log.
    fn follow_branch(&mut self, header: &Header) -> Result<()> {
        self.next_identifier(None)?;
        self.local.run(b"BEGIN")?;
        self.stage = Stage::Open;
        self.commit(header)
    }

    /// The end of an XA branch in its session: the position is stored in the branch or, as it may stay prepared for long, after it.
    fn prepare_branch(&mut self, header: &Header, xid: &XaPrepare<'_>) -> Result<()> {
        if self.stage != Stage::Open {
            return Err(broken("XA PREPARE without XA START"));
        }
        let name = mariadb::xa_name(xid);
        if xid.one_phase {
            self.advance(header)?;
            self.keep_identifier()?;
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
        if let Some(change) = partitions::Change::of(query)
            && !self.channel.status().is_of_squall
        {
            self.prepare_for_rows()?;
            change.check(&mut self.local)?;
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
        self.crew.note_definitions();
        if creates {
            self.stage = Stage::Open;
            return Ok(());
        }
        self.commit(header)
    }

    /// A statement that cannot be part of a transaction. That it begins is stored before, so that after a crash in the middle it is known why
    /// it fails: because it was done.
    fn define_alone(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<()> {
        let start = self.transaction.as_ref();
        let gtid = start.and_then(|start| start.event.gtid.as_ref());
        let file = start.map_or("", |start| &*start.file);
        let place = format!("{file}:{}", header.position);
        let name = gtid.map_or(place, ToString::to_string);
        let progress = self.crew.progress();
        let may_be_done = !progress.has_moved && progress.position.started == name;
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
        self.crew.note_definitions();
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
        // History is what the source's is.
        let mut sets = vec![
            "system_versioning_stored_rows = 0".to_owned(),
            "system_versioning_alter_history = KEEP".to_owned(),
        ];
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
        let map = if map.is_complete() { map } else { self.completed(&map, &target) };
        if rows.lacks_documents() {
            // What their changes are made of may be what a row before made of it.
            self.change_by_values()?;
        } else if target.takes_hash(rows.kind) {
            let kept = self.by_values.get_or_insert_with(|| ByValues {
                table_id: rows.table_id,
                kind: rows.kind,
                flags: rows.flags & !rows::flags::STATEMENT_ENDS,
                place: format!("{}.{}", map.schema, map.table),
                target,
                rows: Vec::new(),
                bytes: 0,
            });
            kept.bytes += rows.bytes();
            for row in rows.rows(&map) {
                kept.rows.push(row.map_err(broken)?);
            }
            if rows.ends_statement() || kept.bytes > by_hash::BYTES_MAX {
                self.change_by_values()?;
            }
            return self.channel.check_stop_within_transaction();
        }
        let mut change: Option<Change> = None;
        for row in rows.rows(&map) {
            let mut row = row.map_err(broken)?;
            target.complete(&mut self.local, &mut row)?;
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

    /// Makes the changes of rows that are found by their values: of several by one statement.
    fn change_by_values(&mut self) -> Result<()> {
        let Some(ByValues { kind, target, mut rows, place, .. }) = self.by_values.take() else {
            return Ok(());
        };
        let named =
            |error: Error| Error::new(error.code(), format!("Table {place}: {}", error.message()));
        let Some(first) = rows.first() else { return Ok(()) };
        let change = target.change(kind, &first.before, &first.after)?;
        if rows.len() > 1
            && let Some(statement) = target.hash_statement(kind, first)
        {
            let hashed = self.channel.rows.clone();
            let (local, session) = (&mut self.local, self.session);
            rows = hashed.change(local, session, &statement, rows).map_err(named)?;
        }
        by_hash::one_by_one(&mut self.local, &change, &rows).map_err(named)
    }

    /// What the event does not say, the table of this server does.
    fn completed(&mut self, map: &TableMap, target: &Target) -> Arc<TableMap> {
        let mut whole = map.clone();
        whole.complete(&target.known());
        debug_assert!(whole.is_complete(), "it is asked for once");
        let whole = Arc::new(whole);
        self.tables.insert(map.table_id, whole.clone());
        whole
    }

    fn target(&mut self, map: &TableMap) -> Result<Arc<Target>> {
        let definitions = self.crew.definitions();
        if definitions != self.definitions {
            self.targets.clear();
            self.definitions = definitions;
        }
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

    /// No transaction was applied since the connection was made.
    fn is_first(&self) -> bool {
        !self.crew.progress().has_moved
    }

    /// Stores the position after the transaction and commits.
    fn commit(&mut self, header: &Header) -> Result<()> {
        self.advance(header)?;
        self.local.run(b"COMMIT")?;
        self.note_committed();
        Ok(())
    }

    /// Stores the position after the transaction, as part of it, when it is its turn.
    fn advance(&mut self, header: &Header) -> Result<()> {
        if let Some(order) = self.order {
            self.wait_for_turn(order)?;
        }
        let Some(start) = &self.transaction else {
            return Err(broken("the end of a transaction without its start"));
        };
        let mut next = self.progress_after(start, u64::from(header.position));
        next.position.gtids = next.executed.to_string();
        if self.set_up == SetUp::Statements {
            // Names are in the character set of the statement's client otherwise.
            self.local.run(b"SET SESSION character_set_client = utf8mb4")?;
        }
        store::advance(&mut self.local, &self.channel.name, &next.position)?;
        self.next = Some(next);
        Ok(())
    }

    fn wait_for_turn(&mut self, order: u64) -> Result<()> {
        let (local, session) = (&mut self.local, self.session);
        self.crew.wait_for_turn(order, |earlier| {
            let earlier: Vec<_> = earlier.iter().map(u64::to_string).collect();
            if earlier.is_empty() {
                return Ok(false);
            }
            let text = format!(
                "SELECT COUNT(*) FROM performance_schema.data_lock_waits WHERE BLOCKING_THREAD_ID = {session} \
                 AND REQUESTING_THREAD_ID IN ({})",
                earlier.join(", ")
            );
            let answer = local.run(text.as_bytes())?;
            Ok(text_of(answer.rows.first().and_then(|row| row.first())) != "0")
        })
    }

    fn note_committed(&mut self) {
        self.stage = Stage::Between;
        self.tables.clear();
        self.ended = self.transaction.take();
        let number = self.ended.as_ref().map_or(0, |start| start.event.sequence_number);
        if let Some(next) = self.next.take() {
            let next = Progress { has_moved: true, ..next };
            self.crew.note_applied(next, self.slot, number);
        }
    }
}

/// Whether an event belongs to a statement that changes rows.
fn is_of_statement(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::INTVAR
            | EventKind::RAND
            | EventKind::USER_VAR
            | EventKind::BEGIN_LOAD_QUERY
            | EventKind::EXECUTE_LOAD_QUERY
    )
}

/// How the creation of a table ends in the log whose rows are part of the transaction.
const START_TRANSACTION: &[u8] = b" START TRANSACTION";

/// Whether a transaction ends with this statement: it is a COMMIT, or one of its own.
pub(crate) fn is_last(text: &[u8]) -> bool {
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
    known_collation(id).map(|collation| collation.name)
}

fn charset_of(id: u16) -> Result<&'static str> {
    known_collation(id).map(|collation| collation.charset.name)
}

fn known_collation(id: u16) -> Result<&'static charset::Collation> {
    let near = binlog::mariadb::collation(id);
    near.and_then(charset::collation).ok_or_else(|| broken(format!("collation {id}")))
}
/// A statement about a savepoint, whose name is in the quotes of the source's session, for a session without ANSI_QUOTES.
fn without_ansi_quotes(text: &[u8]) -> Cow<'_, [u8]> {
    let quote = text.iter().position(|byte| matches!(byte, b'"' | b'`'));
    let Some(at) = quote.filter(|at| text[*at] == b'"') else { return Cow::Borrowed(text) };
    let rest = text[at + 1..].trim_ascii_end();
    let inner = rest.strip_suffix(b"\"").unwrap_or(rest);
    let name = String::from_utf8_lossy(inner).replace("\"\"", "\"");
    Cow::Owned([&text[..at], quoted(&name).as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::without_ansi_quotes;

    #[test]
    fn savepoints_of_ansi_quotes() {
        for (text, wanted) in [
            ("SAVEPOINT `a\"b`", "SAVEPOINT `a\"b`"),
            ("SAVEPOINT \"s0\"", "SAVEPOINT `s0`"),
            ("ROLLBACK TO \"a`\"\"\"", "ROLLBACK TO `a``\"`"),
            ("SAVEPOINT plain", "SAVEPOINT plain"),
        ] {
            assert_eq!(&*without_ansi_quotes(text.as_bytes()), wanted.as_bytes());
        }
    }
}
