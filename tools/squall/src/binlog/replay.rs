//! Transactions as statements: to a server, or as a script for any client; and their reverse.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use binlog::envelope::XaPrepare;
use binlog::event::{self, CHECKSUM_BYTES, seal, write_event};
use binlog::query::{QueryEvent, flags2};
use binlog::rows::flags::{NO_FOREIGN_KEY_CHECKS, SQL_FOREIGN_KEYS, STATEMENT_ENDS};
use binlog::rows::{FLAGS_OFFSET, RowImage};
use binlog::{EventKind, GtidSet, Header, Image, Row, RowsEvent, RowsKind, RowsWriter, TableMap};
use types::Value;

use super::read::Place;
use super::sql::Targets;
use super::walk::{Sink, Transaction, uses_schema};
use crate::import::server::{Server, quoted_name};

/// The session for rows: values mean the same whatever the settings of the server are.
const FOR_ROWS: &str = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES', time_zone = '+00:00', \
     character_set_client = utf8mb4, collation_connection = utf8mb4_0900_ai_ci, unique_checks = 1, timestamp = DEFAULT";
/// Bytes of an INSERT from which on it takes no more rows.
const INSERT_BYTES: usize = 256 << 10;

/// Bytes of an event with rows from which on the next row begins another one.
const EVENT_BYTES: usize = 64 << 10;

/// Transactions between two lines about the progress.
const PROGRESS_EVERY: u64 = 10_000;

/// Where statements go.
pub(super) enum Output<'o> {
    /// They run.
    Server(Box<Server>),
    /// They are written for a client: `DELIMITER` as mysqlbinlog has it, as texts of programs have semicolons.
    Script(&'o mut dyn Write),
}

impl Output<'_> {
    /// The first lines of a script.
    pub(super) fn open(&mut self) -> Result<(), String> {
        match self {
            Output::Server(_) => Ok(()),
            Output::Script(out) => writeln!(out, "DELIMITER /*!*/;").map_err(|e| e.to_string()),
        }
    }

    /// The last lines of a script.
    pub(super) fn close(&mut self) -> Result<(), String> {
        match self {
            Output::Server(_) => Ok(()),
            Output::Script(out) => {
                let text = "SET @@SESSION.GTID_NEXT = 'AUTOMATIC'\n/*!*/;\nDELIMITER ;";
                writeln!(out, "{text}").map_err(|e| e.to_string())
            }
        }
    }

    fn comment(&mut self, text: &str) -> Result<(), String> {
        match self {
            Output::Server(_) => Ok(()),
            Output::Script(out) => writeln!(out, "# {text}").map_err(|e| e.to_string()),
        }
    }

    fn run(&mut self, sql: &[u8]) -> Result<(), String> {
        match self {
            Output::Server(server) => {
                let outcome = server.connection.query(sql, &mut ());
                outcome.map(drop).map_err(|error| explained(&error.to_string(), sql))
            }
            Output::Script(out) => {
                out.write_all(sql).map_err(|e| e.to_string())?;
                out.write_all(b"\n/*!*/;\n").map_err(|e| e.to_string())
            }
        }
    }

    /// Changes one row, which must be there.
    fn change(&mut self, sql: &[u8]) -> Result<(), String> {
        let Output::Server(server) = self else { return self.run(sql) };
        let outcome = server.connection.query(sql, &mut ());
        let outcome = outcome.map_err(|error| explained(&error.to_string(), sql))?;
        // An UPDATE that finds its row changed already counts it as found alone.
        if outcome.affected_rows == 0 && !outcome.info.starts_with("Rows matched: 1") {
            return Err(explained("the row that the log changes is not there", sql));
        }
        Ok(())
    }
}

fn explained(error: &str, sql: &[u8]) -> String {
    let text = String::from_utf8_lossy(sql);
    let start: String = text.chars().take(200).collect();
    format!("{error}: {start}")
}

/// `XA PREPARE ..`, or `XA COMMIT .. ONE PHASE`
pub(super) fn prepared(xid: &XaPrepare<'_>) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let name = format!("X'{}',X'{}',{}", hex(xid.global), hex(xid.branch), xid.format);
    if xid.one_phase { format!("XA COMMIT {name} ONE PHASE") } else { format!("XA PREPARE {name}") }
}

/// What the session is set up for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SetUp {
    Nothing,
    Rows,
    Statements,
}

/// How rows are repeated.
pub(super) enum Manner {
    /// As BINLOG statements: exactly, and without triggers.
    Events(Box<Events>),
    /// As INSERT, UPDATE and DELETE.
    Statements,
}

/// The events that BINLOG statements are made of.
#[derive(Default)]
pub(super) struct Events {
    /// The format of the log, sealed, until it was given.
    format: Option<Vec<u8>>,
    /// The present event, not sealed.
    event: Vec<u8>,
    /// Descriptions of tables by number, not sealed.
    maps: HashMap<u64, Arc<[u8]>>,
}

impl Events {
    fn note(&mut self, header: &Header, body: &[u8]) {
        let Header { timestamp, kind, server_id, flags, .. } = *header;
        let mut event = Vec::new();
        write_event(&mut event, kind, timestamp, server_id, flags, |out| {
            out.extend_from_slice(body);
        });
        if kind == EventKind::FORMAT_DESCRIPTION {
            // Events are given with checksums, whether the log has them or not.
            if let Some(algorithm) = event.last_mut() {
                *algorithm = 1;
            }
            self.format = Some(sealed(&event));
        } else if kind == EventKind::TABLE_MAP
            && let Some(number) = body.get(..6)
        {
            let number = number.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            self.maps.insert(number, event.into());
        } else {
            self.event = event;
        }
    }

    /// The statement that makes the changes of the present event.
    fn statement(&mut self, table_id: u64) -> Result<Vec<u8>, String> {
        let map = self.maps.get(&table_id).ok_or("rows of a table that was not described")?;
        let mut rows = self.event.clone();
        if let Some(byte) = rows.get_mut(FLAGS_OFFSET) {
            *byte |= STATEMENT_ENDS as u8;
        }
        Ok(binlog_statement(&[sealed(map), sealed(&rows)]))
    }
}

fn sealed(event: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(event.len() + CHECKSUM_BYTES);
    seal(event, 0, &mut out);
    out
}

fn binlog_statement(events: &[Vec<u8>]) -> Vec<u8> {
    let mut sql = b"BINLOG '".to_vec();
    for event in events {
        sql.push(b'\n');
        sql.extend_from_slice(STANDARD.encode(event).as_bytes());
    }
    sql.extend_from_slice(b"\n'");
    sql
}

/// Repeats transactions.
pub(super) struct Replay<'o> {
    pub(super) output: Output<'o>,
    manner: Manner,
    targets: Targets,
    /// Transactions keep their identifiers.
    keeps_gtids: bool,
    /// Those that the server has.
    executed: GtidSet,
    set_up: SetUp,
    checks_foreign_keys: Option<bool>,
    is_skipped: bool,
    is_bundle: bool,
    is_branch: bool,
    pub(super) applied: u64,
    pub(super) skipped: u64,
    pub(super) rows: u64,
    /// The last transaction that was repeated.
    pub(super) last: Option<Transaction>,
    current: Option<Transaction>,
}

impl<'o> Replay<'o> {
    /// # Errors
    /// The server does not say what it has.
    pub(super) fn new(
        mut output: Output<'o>,
        manner: Manner,
        targets: Targets,
        keeps_gtids: bool,
    ) -> Result<Replay<'o>, String> {
        let mut executed = GtidSet::default();
        if let (Output::Server(server), true) = (&mut output, keeps_gtids) {
            let text = server.cell("SELECT @@GLOBAL.gtid_executed")?;
            executed = GtidSet::parse(&text).ok_or("the server's gtid_executed is no set")?;
        }
        output.open()?;
        Ok(Replay {
            output,
            manner,
            targets,
            keeps_gtids,
            executed,
            set_up: SetUp::Nothing,
            checks_foreign_keys: None,
            is_skipped: false,
            is_bundle: false,
            is_branch: false,
            applied: 0,
            skipped: 0,
            rows: 0,
            last: None,
            current: None,
        })
    }

    fn prepare_for_rows(&mut self, flags: u16) -> Result<(), String> {
        if self.set_up != SetUp::Rows {
            self.output.run(FOR_ROWS.as_bytes())?;
            self.set_up = SetUp::Rows;
            self.checks_foreign_keys = None;
        }
        // Since 9.6 the rows that cascades changed are in the log themselves.
        let checks = flags & (NO_FOREIGN_KEY_CHECKS | SQL_FOREIGN_KEYS) == 0;
        if self.checks_foreign_keys != Some(checks) {
            let set = format!("SET SESSION foreign_key_checks = {}", u8::from(checks));
            self.output.run(set.as_bytes())?;
            self.checks_foreign_keys = Some(checks);
        }
        Ok(())
    }

    /// Changes rows, inserts many at a time.
    fn change(&mut self, map: &TableMap, kind: RowsKind, rows: &[Row]) -> Result<(), String> {
        let target = self.targets.find(map)?;
        self.rows += rows.len() as u64;
        if kind != RowsKind::Insert {
            for row in rows {
                let sql = target.change(map, kind, row)?;
                if !sql.is_empty() {
                    self.output.change(&sql)?;
                }
            }
            return Ok(());
        }
        let mut sql = Vec::new();
        for row in rows {
            if sql.is_empty() {
                sql = target.insert_head(&row.after);
            } else {
                sql.extend_from_slice(b", ");
            }
            target.put_row(map, &row.after, &mut sql);
            if sql.len() >= INSERT_BYTES {
                self.output.run(&sql)?;
                sql.clear();
            }
        }
        if sql.is_empty() { Ok(()) } else { self.output.run(&sql) }
    }

    /// Makes changes, after the description of their format if that is new.
    fn make(&mut self, change: &Changes, format: Option<Vec<u8>>) -> Result<(), String> {
        if let Manner::Statements = self.manner {
            self.prepare_for_rows(change.flags)?;
            return self.change(&change.map, change.kind, &change.rows);
        }
        if let Some(format) = format {
            self.output.run(&binlog_statement(&[format]))?;
        }
        self.rows += change.rows.len() as u64;
        self.output.run(&change.statement())
    }

    /// Makes the session that of a statement.
    fn set_context(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<(), String> {
        let context = &query.context;
        let mut sets = Vec::new();
        if let Some(bits) = context.flags2 {
            let on = |bit: u32| u8::from(bits & bit == 0);
            sets.push(format!("foreign_key_checks = {}", on(flags2::NO_FOREIGN_KEY_CHECKS)));
            sets.push(format!("unique_checks = {}", on(flags2::RELAXED_UNIQUE_CHECKS)));
        }
        if let Some(mode) = context.sql_mode {
            sets.push(format!("sql_mode = {mode}"));
        }
        if let Some([client, connection, server]) = context.charset {
            sets.push(format!("character_set_client = {}", collation(client)?.charset.name));
            sets.push(format!("collation_connection = {}", collation(connection)?.name));
            sets.push(format!("collation_server = {}", collation(server)?.name));
        }
        if let Some(zone) = context.time_zone {
            let zone = String::from_utf8_lossy(zone).replace('\'', "''");
            sets.push(format!("time_zone = '{zone}'"));
        }
        if let Some(id) = context.default_collation_for_utf8mb4 {
            sets.push(format!("default_collation_for_utf8mb4 = {}", collation(id)?.name));
        }
        let micros = context.microseconds.unwrap_or(0);
        sets.push(format!("timestamp = {}.{micros:06}", header.timestamp));
        if self.set_up == SetUp::Statements {
            self.output.run(b"SET SESSION character_set_client = utf8mb4")?;
        }
        if uses_schema(header, query) {
            let schema = String::from_utf8_lossy(query.schema);
            self.output.run(format!("USE {}", quoted_name(&schema)).as_bytes())?;
        }
        self.output.run(format!("SET SESSION {}", sets.join(", ")).as_bytes())?;
        self.set_up = SetUp::Statements;
        Ok(())
    }
}

fn collation(id: u16) -> Result<&'static charset::Collation, String> {
    let known = charset::collation(charset::CollationId(id));
    known.ok_or_else(|| format!("collation {id} is not known"))
}

impl Sink for Replay<'_> {
    fn event(&mut self, _: &Place, header: &Header, body: &[u8]) -> Result<(), String> {
        if let Manner::Events(events) = &mut self.manner {
            events.note(header, body);
        }
        Ok(())
    }

    fn begin(&mut self, transaction: &Transaction, is_bundle: bool) -> Result<(), String> {
        let gtid = transaction.event.gtid.as_ref();
        let has =
            gtid.is_some_and(|gtid| self.executed.contains(gtid.uuid, &gtid.tag, gtid.number));
        self.is_skipped = has;
        if has {
            self.skipped += 1;
            return Ok(());
        }
        (self.is_bundle, self.is_branch) = (is_bundle, false);
        self.current = Some(transaction.clone());
        let when = super::time::text(transaction.micros());
        self.output.comment(&format!("{}, {when} UTC", transaction.place))?;
        if self.keeps_gtids {
            let next = gtid.map_or_else(|| "ANONYMOUS".to_owned(), ToString::to_string);
            self.output.run(format!("SET @@SESSION.GTID_NEXT = '{next}'").as_bytes())?;
        }
        // XA START and CREATE TABLE begin by themselves.
        Ok(())
    }

    fn statement(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<(), String> {
        if self.is_skipped {
            return Ok(());
        }
        self.set_context(header, query)?;
        self.is_branch |= query.text.starts_with(b"XA START ");
        self.targets.forget();
        self.output.run(query.text)
    }

    fn rows(&mut self, map: &Arc<TableMap>, rows: &RowsEvent<'_>) -> Result<(), String> {
        if self.is_skipped {
            return Ok(());
        }
        if let Manner::Events(events) = &mut self.manner {
            if let Some(format) = events.format.take() {
                self.output.run(&binlog_statement(&[format]))?;
            }
            let statement = events.statement(map.table_id)?;
            let counted: Result<Vec<Row>, _> = rows.rows(map).collect();
            self.rows += counted.map_err(|error| error.to_string())?.len() as u64;
            return self.output.run(&statement);
        }
        self.prepare_for_rows(rows.flags)?;
        let all: Result<Vec<Row>, _> = rows.rows(map).collect();
        self.change(map, rows.kind, &all.map_err(|error| error.to_string())?)
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>) -> Result<(), String> {
        if self.is_skipped { Ok(()) } else { self.output.run(prepared(xid).as_bytes()) }
    }

    fn commit(&mut self) -> Result<(), String> {
        if self.is_skipped {
            return Ok(());
        }
        if self.is_bundle && !self.is_branch {
            self.output.run(b"COMMIT")?;
        }
        self.applied += 1;
        if let Output::Server(_) = self.output
            && self.applied.is_multiple_of(PROGRESS_EVERY)
        {
            eprintln!("{} transactions, {} rows", self.applied, self.rows);
        }
        self.last = self.current.take();
        Ok(())
    }

    fn open(&mut self) -> Result<(), String> {
        if self.is_skipped { Ok(()) } else { self.output.run(b"BEGIN") }
    }
}

/// Changes of one event with rows.
struct Changes {
    map: Arc<TableMap>,
    /// The event of the map, not sealed.
    map_event: Arc<[u8]>,
    kind: RowsKind,
    flags: u16,
    rows: Vec<Row>,
}

impl Changes {
    /// The changes that undo these.
    fn reverse(self) -> Changes {
        let swap = |row: Row| Row { before: row.after, after: row.before, changes: Vec::new() };
        let kind = match self.kind {
            RowsKind::Insert => RowsKind::Delete,
            RowsKind::Update => RowsKind::Update,
            RowsKind::Delete => RowsKind::Insert,
        };
        // Rows that a cascade changed are in the log, so that nothing may cascade.
        let flags = self.flags | NO_FOREIGN_KEY_CHECKS;
        Changes { kind, flags, rows: self.rows.into_iter().rev().map(swap).collect(), ..self }
    }

    /// The statement that makes them.
    fn statement(&self) -> Vec<u8> {
        let present =
            |image: &RowImage| -> Box<[bool]> { image.iter().map(Option::is_some).collect() };
        let values = |image: &RowImage| -> Vec<Value> {
            image.iter().map(|cell| cell.clone().unwrap_or(Value::Null)).collect()
        };
        let Some(first) = self.rows.first() else { return Vec::new() };
        let image =
            Image { before: Some(present(&first.before)), after: Some(present(&first.after)) };
        let (layout, kind, number) = (self.map.layout(), self.kind, self.map.table_id);
        let mut writer =
            RowsWriter::new(layout, kind, &image, number, self.flags, (0, 0), EVENT_BYTES);
        let mut events = Vec::new();
        for row in &self.rows {
            writer.push(&values(&row.before), &values(&row.after), &mut events);
        }
        writer.finish(true, &mut events);
        let rows = event::Events::new(&events).map(|(_, event)| sealed(event));
        binlog_statement(&std::iter::once(sealed(&self.map_event)).chain(rows).collect::<Vec<_>>())
    }
}

/// Gathers transactions and undoes them, the last first.
pub(super) struct Flashback {
    events: Events,
    bytes_max: u64,
    bytes: u64,
    transactions: Vec<(Transaction, Vec<Changes>)>,
}

impl Flashback {
    pub(super) fn new(bytes_max: u64) -> Flashback {
        Flashback { events: Events::default(), bytes_max, bytes: 0, transactions: Vec::new() }
    }

    /// Undoes what was gathered; how many transactions and rows that was.
    ///
    /// # Errors
    /// Those of the output.
    pub(super) fn undo(self, replay: &mut Replay<'_>) -> Result<(), String> {
        let mut format = self.events.format;
        for (transaction, changes) in self.transactions.into_iter().rev() {
            let failed =
                |error| format!("undoing {} ({}): {error}", transaction.name(), transaction.place);
            let text = format!("undoes {} ({})", transaction.name(), transaction.place);
            replay.output.comment(&text)?;
            replay.output.run(b"BEGIN").map_err(failed)?;
            for change in changes.into_iter().rev().map(Changes::reverse) {
                replay.make(&change, format.take()).map_err(failed)?;
            }
            replay.output.run(b"COMMIT").map_err(failed)?;
            replay.applied += 1;
        }
        Ok(())
    }
}

/// Whether the row can be put back: what it had is in its image.
///
/// # Errors
/// A column is missing.
fn check_images(map: &TableMap, kind: RowsKind, row: &mut Row) -> Result<(), String> {
    let path = format!("{}.{}", map.schema, map.table);
    let minimal = || {
        format!(
            "a change of {path} cannot be undone: its image lacks columns (binlog_row_image was not FULL)"
        )
    };
    let is_whole = |image: &[Option<Value>]| image.iter().all(Option::is_some);
    match kind {
        RowsKind::Insert => Ok(()),
        RowsKind::Delete if is_whole(&row.before) => Ok(()),
        RowsKind::Delete => Err(minimal()),
        RowsKind::Update if !row.changes.is_empty() => Err(minimal()),
        RowsKind::Update => {
            for (before, after) in row.before.iter().zip(row.after.iter_mut()) {
                if before.is_none() && after.is_some() {
                    return Err(minimal());
                }
                // What was not changed is what it was.
                if after.is_none() {
                    after.clone_from(before);
                }
            }
            Ok(())
        }
    }
}

impl Sink for Flashback {
    fn event(&mut self, _: &Place, header: &Header, body: &[u8]) -> Result<(), String> {
        self.events.note(header, body);
        Ok(())
    }

    fn begin(&mut self, transaction: &Transaction, _: bool) -> Result<(), String> {
        self.transactions.push((transaction.clone(), Vec::new()));
        Ok(())
    }

    fn statement(&mut self, _: &Header, query: &QueryEvent<'_>) -> Result<(), String> {
        let text = String::from_utf8_lossy(query.text);
        if text.starts_with("SAVEPOINT ") {
            return Ok(());
        }
        let start: String = text.chars().take(120).collect();
        Err(format!("a statement cannot be undone: {start}"))
    }

    fn rows(&mut self, map: &Arc<TableMap>, rows: &RowsEvent<'_>) -> Result<(), String> {
        let all: Result<Vec<Row>, _> = rows.rows(map).collect();
        let mut all = all.map_err(|error| error.to_string())?;
        for row in &mut all {
            check_images(map, rows.kind, row)?;
            let cells = row.before.len() + row.after.len();
            let texts: usize = row.before.iter().chain(&row.after).flatten().map(bytes_of).sum();
            self.bytes += (cells * size_of::<Option<Value>>() + texts) as u64;
        }
        if self.bytes > self.bytes_max {
            return Err(format!(
                "the changes to undo take more than {} MiB: choose fewer transactions, or allow more with --memory-mb",
                self.bytes_max >> 20
            ));
        }
        let map_event = self.events.maps.get(&map.table_id).cloned().unwrap_or_default();
        let changes =
            Changes { map: map.clone(), map_event, kind: rows.kind, flags: rows.flags, rows: all };
        if let Some((_, open)) = self.transactions.last_mut() {
            open.push(changes);
        }
        Ok(())
    }

    fn prepare(&mut self, _: &XaPrepare<'_>) -> Result<(), String> {
        Err("an XA transaction cannot be undone".to_owned())
    }

    fn commit(&mut self) -> Result<(), String> {
        // One of which nothing was chosen has nothing to undo.
        if self.transactions.last().is_some_and(|(_, changes)| changes.is_empty()) {
            self.transactions.pop();
        }
        Ok(())
    }

    fn wants_statements_of_tables(&self) -> bool {
        true
    }
}

fn bytes_of(value: &Value) -> usize {
    if let Value::Bytes(bytes) | Value::Json(bytes) = value { bytes.len() } else { 0 }
}
