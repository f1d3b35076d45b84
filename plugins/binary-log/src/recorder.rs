//! Turns the changes of a session's transactions into events: an attachment, as `docs/format/binary-log.md` describes it.
//!
//! An attachment holds what the log's files will hold, but for identifiers, commits, positions and checksums, which the follower adds. Rows
//! of a transaction follow a BEGIN; a statement that changes definitions stands alone.

use std::collections::HashMap;
use std::sync::Arc;

use binlog::gtid::GtidEvent;
use binlog::query::{QueryContext, QueryEvent, flags2};
use binlog::{
    Column, EventKind, Image, KeyPart, Layout, RowMetadata, RowsKind, RowsWriter, rows,
    write_event, write_table_map,
};
use errors::{Result, err};
use plugin_api::{LogWishes, LoggedTable, Recorder, RowImage, StatementContext, Tracking};
use types::{Gtid, Value};

use crate::core::Settings;
use crate::dependencies::{DEPENDENCIES, Dependencies};

/// An event of attachments only, before the end of a transaction: the level of zstd that it is compressed with.
pub(crate) const COMPRESSION: EventKind = EventKind(0xf1);
/// An event of attachments only, before the end of a transaction: a number by which its identifier is told, 8 bytes.
pub(crate) const NUMBER: EventKind = EventKind(0xf2);

/// Rows of an event, unless one row is longer (`binlog_row_event_max_size`).
const EVENT_BYTES_MAX: usize = 8192;
/// How far replicas are on this server is nothing to others.
const REPLICA_SCHEMA: &str = "squall_replication";
/// Descriptions of tables that a session keeps.
const TABLES_MAX: usize = 64;
/// The name of the catalog that statements run in.
const CATALOG: &[u8] = b"std";

/// A table, ready for its rows to be written.
struct Shaped {
    table: Arc<LoggedTable>,
    layout: Layout,
    /// Where each column is in a row as it comes; none when all are at their own place.
    places: Option<Vec<usize>>,
    /// Its table map event, without timestamp.
    map: Vec<u8>,
}

impl Shaped {
    fn new(table: &Arc<LoggedTable>) -> Shaped {
        let columns: Vec<Column<'_>> = table
            .columns
            .iter()
            .map(|column| Column { name: &column.name, ty: &column.ty, visible: column.is_visible })
            .collect();
        let key: Vec<KeyPart> = table
            .primary_key
            .iter()
            .map(|(column, prefix)| KeyPart { column: *column, prefix: prefix.unwrap_or(0) })
            .collect();
        let mut map = Vec::new();
        write_event(&mut map, EventKind::TABLE_MAP, 0, 0, 0, |out| {
            let (schema, name) = (&table.schema, &table.name);
            write_table_map(out, table.id, schema, name, &columns, &key, RowMetadata::Full);
        });
        let places: Vec<usize> = table.columns.iter().map(|column| column.place).collect();
        let in_place = places.iter().enumerate().all(|(at, place)| *place == at);
        Shaped {
            layout: Layout::new(table.columns.iter().map(|column| &column.ty)),
            table: table.clone(),
            places: (!in_place).then_some(places),
            map,
        }
    }

    /// Columns by their places in a record.
    fn columns_at(&self, places: &[usize]) -> Vec<usize> {
        let is_at = |at: &usize| places.contains(&self.table.columns[*at].place);
        (0..self.table.columns.len()).filter(is_at).collect()
    }

    /// The values of a record in the order of the columns; none of the row that was not there before or is gone.
    fn values<'v>(&self, record: &'v [Value], own: &'v mut Vec<Value>) -> &'v [Value] {
        let Some(places) = self.places.as_ref().filter(|_| !record.is_empty()) else {
            return record;
        };
        own.clear();
        own.extend(places.iter().map(|place| record.get(*place).cloned().unwrap_or(Value::Null)));
        own
    }

    /// The columns that a changed row is logged with.
    fn image(&self, wanted: RowImage, old: &[Value], new: &[Value]) -> Image {
        let key = &self.table.primary_key;
        if wanted == RowImage::Full || key.is_empty() {
            return Image::default();
        }
        let is_key = |at: usize| key.iter().any(|(column, _)| *column == at);
        let changes = |at: usize| old.get(at) != new.get(at);
        // Documents, geometries and vectors are no blobs to the reference.
        let is_large = |at: usize| {
            let ty = &self.table.columns[at].ty;
            ty.is_blob() && ty.is_string()
        };
        let all = 0..self.table.columns.len();
        let before = all.clone().map(|at| match wanted {
            RowImage::Minimal => is_key(at),
            RowImage::Full | RowImage::NoBlob => is_key(at) || !is_large(at),
        });
        let is_new = old.is_empty();
        let after = all.map(|at| match wanted {
            RowImage::Minimal => is_new || changes(at),
            RowImage::Full | RowImage::NoBlob => is_new || !is_large(at) || changes(at),
        });
        Image { before: Some(before.collect()), after: Some(after.collect()) }
    }
}

/// What is kept of a statement's context.
#[derive(Default)]
struct Context {
    thread_id: u32,
    seconds: u32,
    micros: u32,
    schema: Vec<u8>,
    sql_mode: u64,
    charset: [u16; 3],
    time_zone: Vec<u8>,
    foreign_key_checks: bool,
    auto_increment: (u16, u16),
    row_image: RowImage,
    partial_json: bool,
    gtid: Option<Gtid>,
    wishes: LogWishes,
    /// The server that changes are logged as those of.
    server_id: u32,
    text: Option<Vec<u8>>,
}

impl Context {
    fn set(&mut self, from: &StatementContext<'_>, own_server_id: u32) {
        let micros = u64::try_from(from.started_micros).unwrap_or(0);
        self.thread_id = from.connection_id as u32;
        self.seconds = (micros / 1_000_000) as u32;
        self.micros = (micros % 1_000_000) as u32;
        self.schema.clear();
        self.schema.extend_from_slice(from.schema.unwrap_or_default().as_bytes());
        self.sql_mode = from.sql_mode;
        self.charset = [from.client_collation, from.connection_collation, from.server_collation];
        self.time_zone.clear();
        self.time_zone.extend_from_slice(from.time_zone.as_bytes());
        self.foreign_key_checks = from.foreign_key_checks;
        let narrow = |number: u64| u16::try_from(number).unwrap_or(u16::MAX);
        self.auto_increment = (narrow(from.auto_increment.0), narrow(from.auto_increment.1));
        self.row_image = from.row_image;
        self.partial_json = from.partial_json;
        self.gtid = from.gtid.and_then(Gtid::parse);
        self.wishes = from.wishes;
        self.server_id =
            if from.wishes.server_id > 0 { from.wishes.server_id } else { own_server_id };
        self.text = from.text.map(<[u8]>::to_vec);
    }

    /// Appends a statement as an event.
    fn put_query(&self, text: &[u8], out: &mut Vec<u8>) {
        let relaxed = if self.foreign_key_checks { 0 } else { flags2::NO_FOREIGN_KEY_CHECKS };
        let is_begin = text == b"BEGIN";
        let event = QueryEvent {
            thread_id: self.thread_id,
            schema: &self.schema,
            text,
            context: QueryContext {
                flags2: Some(relaxed),
                sql_mode: Some(self.sql_mode),
                catalog: Some(CATALOG),
                auto_increment: Some(self.auto_increment).filter(|pair| *pair != (1, 1)),
                charset: Some(self.charset),
                time_zone: Some(&self.time_zone[..]).filter(|_| !is_begin),
                schemas: if is_begin { Vec::new() } else { vec![&self.schema] },
                microseconds: Some(self.micros).filter(|_| !is_begin),
                default_collation_for_utf8mb4: Some(255),
                ..QueryContext::default()
            },
            ..QueryEvent::default()
        };
        let kind = EventKind::QUERY;
        write_event(out, kind, self.seconds, self.server_id, 0, |out| event.write(out));
    }
}

/// The rows event that is being filled.
struct Open {
    table: u64,
    kind: RowsKind,
    start: usize,
    image: Image,
}

/// See `plugin_api::Recorder`.
pub(crate) struct SessionRecorder {
    settings: Arc<Settings>,
    context: Context,
    /// What was recorded and not taken.
    waiting: Vec<u8>,
    /// Bytes taken since the transaction began.
    taken: u64,
    /// The identifier given to this transaction, and that of the one before it, until `gtid_next` is set again.
    given: Option<Gtid>,
    used: Option<Gtid>,
    /// The transaction's BEGIN was recorded.
    has_begun: bool,
    open: Option<Open>,
    /// Rows were recorded, and no event says that their statement ends.
    needs_end: bool,
    /// Where the running statement began.
    statement_at: u64,
    /// Where its text is, once that is recorded.
    text_at: Option<u64>,
    /// Where its last event with rows is. It is not taken before it can say whether the statement ends.
    last_rows: Option<u64>,
    /// Tables that the statement's events have described.
    mapped: Vec<u64>,
    tables: HashMap<u64, Shaped>,
    dependencies: Dependencies,
    /// A transaction was handed over whole to be committed.
    is_logged: bool,
    /// Numbers of transactions whose identifiers are to be told.
    tracked: Vec<u64>,
    row: (Vec<Value>, Vec<Value>),
}

impl SessionRecorder {
    pub(crate) fn new(settings: Arc<Settings>) -> SessionRecorder {
        SessionRecorder {
            settings,
            context: Context::default(),
            waiting: Vec::new(),
            taken: 0,
            given: None,
            used: None,
            has_begun: false,
            open: None,
            needs_end: false,
            statement_at: 0,
            text_at: None,
            last_rows: None,
            mapped: Vec::new(),
            tables: HashMap::new(),
            dependencies: Dependencies::default(),
            is_logged: false,
            tracked: Vec::new(),
            row: Default::default(),
        }
    }

    fn place(&self) -> u64 {
        self.taken + self.waiting.len() as u64
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.last_rows = Some(self.taken + open.start as u64);
        }
    }

    /// The rows that follow are of another statement.
    fn end_statement(&mut self) {
        self.close();
        self.mapped.clear();
        if !std::mem::take(&mut self.needs_end) {
            return;
        }
        let last = self.last_rows.take().and_then(|place| place.checked_sub(self.taken));
        let flags = last.and_then(|at| self.waiting.get_mut(at as usize + rows::FLAGS_OFFSET));
        if let Some(flags) = flags {
            *flags |= rows::flags::STATEMENT_ENDS as u8;
        }
    }

    /// Records the identifier that the transaction was given.
    fn put_identifier(&mut self) {
        // What follows a definition in its transaction is another one in the log.
        let Some(gtid) = self.context.gtid.clone().filter(|_| self.given.is_none()) else { return };
        self.given = Some(gtid.clone());
        let event = GtidEvent {
            gtid: Some(gtid),
            may_have_statements: true,
            last_committed: 0,
            sequence_number: 0,
            immediate_commit_timestamp: 0,
            original_commit_timestamp: self.context.wishes.commit_micros,
            transaction_length: 0,
            immediate_server_version: 0,
            original_server_version: 0,
        };
        let (seconds, origin) = (self.context.seconds, self.context.wishes.server_id);
        write_event(&mut self.waiting, EventKind::GTID_TAGGED, seconds, origin, 0, |out| {
            event.write_tagged(out);
        });
    }

    /// Records how the transaction is to be written, and a number by which its identifier is told.
    fn put_wishes(&mut self) {
        if let Some(level) = self.context.wishes.compression {
            write_event(&mut self.waiting, COMPRESSION, 0, 0, 0, |out| out.push(level as u8));
        }
        if self.context.wishes.tracking != Tracking::Off {
            let number = self.settings.next_number();
            self.tracked.push(number);
            write_event(&mut self.waiting, NUMBER, 0, 0, 0, |out| {
                out.extend_from_slice(&number.to_le_bytes());
            });
        }
    }

    /// # Errors
    /// 1837.
    fn check_identifier(&self) -> Result<()> {
        let is_used = self.used.is_some() && self.used == self.context.gtid;
        match &self.used {
            Some(gtid) if is_used => Err(err!(GTID_NEXT_TYPE_UNDEFINED_GTID, gtid)),
            Some(_) | None => Ok(()),
        }
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.put_identifier();
            self.context.put_query(b"BEGIN", &mut self.waiting);
        }
        if self.text_at.is_some() {
            return;
        }
        let at = self.place();
        if let Some(text) = &self.context.text {
            self.text_at = Some(at);
            let (seconds, id) = (self.context.seconds, self.context.server_id);
            let kind = EventKind::ROWS_QUERY;
            let flags = binlog::event::flags::IGNORABLE;
            write_event(&mut self.waiting, kind, seconds, id, flags, |out| {
                binlog::envelope::write_rows_query(text, out);
            });
        }
    }

    fn shape(&mut self, table: &Arc<LoggedTable>) {
        if self.tables.get(&table.id).is_some_and(|known| Arc::ptr_eq(&known.table, table)) {
            return;
        }
        if self.tables.len() >= TABLES_MAX {
            self.tables.clear();
        }
        self.mapped.retain(|mapped| *mapped != table.id);
        self.tables.insert(table.id, Shaped::new(table));
    }

    fn put_row(
        &mut self,
        table: u64,
        kind: RowsKind,
        (old, new): (&[Value], &[Value]),
        edited: &[usize],
    ) -> Result<()> {
        let Some(shaped) = self.tables.get(&table) else { return Ok(()) };
        let (seconds, server_id) = (self.context.seconds, self.context.server_id);
        let before = shaped.values(old, &mut self.row.0);
        let after = shaped.values(new, &mut self.row.1);
        let image = match self.context.row_image {
            RowImage::Full => Image::default(),
            wanted => shaped.image(wanted, before, after),
        };
        let fits = self
            .open
            .as_ref()
            .is_some_and(|open| (open.table, open.kind) == (table, kind) && open.image == image);
        if !fits && let Some(open) = self.open.take() {
            self.last_rows = Some(self.taken + open.start as u64);
        }
        if !self.mapped.contains(&table) {
            let start = self.waiting.len();
            self.waiting.extend_from_slice(&shaped.map);
            self.waiting[start..start + 4].copy_from_slice(&seconds.to_le_bytes());
            self.waiting[start + 5..start + 9].copy_from_slice(&server_id.to_le_bytes());
            self.mapped.push(table);
        }
        // Foreign keys were checked here, and rows that cascades changed are logged, before the row that led to them.
        let flags = rows::flags::SQL_FOREIGN_KEYS | rows::flags::NO_FOREIGN_KEY_CHECKS;
        let stamp = (seconds, server_id);
        let mut writer =
            RowsWriter::new(&shaped.layout, kind, &image, table, flags, stamp, EVENT_BYTES_MAX)
                .resumed(self.open.as_ref().map(|open| open.start));
        let edited = match self.context.partial_json {
            true => Some(shaped.columns_at(edited)),
            false => None,
        };
        if let Some(edited) = &edited {
            writer = writer.partial(edited);
        }
        let start = self.waiting.len();
        writer.push(before, after, &mut self.waiting);
        if self.waiting.len() - start > MAX_ROW_BYTES {
            return Err(err!(BINLOG_LOGGING_IMPOSSIBLE, "the row is too large"));
        }
        self.dependencies.add(&shaped.table, before);
        self.dependencies.add(&shaped.table, after);
        let start = writer.open_event().unwrap_or(start);
        self.open = Some(Open { table, kind, start, image });
        self.needs_end = true;
        Ok(())
    }
}

/// An event's length has four bytes, and readers have limits of their own.
const MAX_ROW_BYTES: usize = 1 << 30;

impl Recorder for SessionRecorder {
    fn begin_statement(&mut self, context: &StatementContext<'_>) {
        self.end_statement();
        self.statement_at = self.place();
        self.text_at = None;
        self.context.set(context, self.settings.server_id());
    }

    fn row(
        &mut self,
        table: &Arc<LoggedTable>,
        old: Option<&[Value]>,
        new: Option<&[Value]>,
        edited: &[usize],
    ) -> Result<()> {
        if *table.schema == *REPLICA_SCHEMA {
            return Ok(());
        }
        self.check_identifier()?;
        self.begin();
        self.shape(table);
        if !self.mapped.contains(&table.id) {
            // Readers want all tables of a statement described before its first rows.
            self.end_statement();
        }
        let kind = match (old, new) {
            (None, _) => RowsKind::Insert,
            (Some(_), Some(_)) => RowsKind::Update,
            (Some(_), None) => RowsKind::Delete,
        };
        let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
        self.put_row(table.id, kind, (old, new), edited)
    }

    fn definition(&mut self, context: &StatementContext<'_>, text: &[u8]) -> Result<()> {
        self.finish();
        self.context.set(context, self.settings.server_id());
        self.check_identifier()?;
        self.put_identifier();
        self.put_wishes();
        self.context.put_query(text, &mut self.waiting);
        self.has_begun = false;
        Ok(())
    }

    fn commit(&mut self, context: &StatementContext<'_>) {
        if self.place() > 0 {
            // The identifier may have been given since.
            if self.given.is_none() && context.gtid.is_some() {
                self.context.set(context, self.settings.server_id());
                self.put_identifier();
            }
            return;
        }
        self.context.set(context, self.settings.server_id());
        if self.context.gtid.is_some() && self.check_identifier().is_ok() {
            self.begin();
        }
    }

    fn mark(&mut self) -> u64 {
        self.close();
        self.place()
    }

    fn undo_to(&mut self, mark: u64) -> Option<u64> {
        self.open = None;
        self.last_rows = self.last_rows.filter(|place| *place < mark);
        // What described tables may be gone.
        self.mapped.clear();
        if mark <= self.statement_at {
            self.needs_end = false;
        }
        self.text_at = self.text_at.filter(|at| *at < mark);
        if mark == 0 {
            // What is recorded next begins the transaction anew, with its identifier.
            self.has_begun = false;
            self.given = None;
            self.dependencies.clear();
        }
        match mark.checked_sub(self.taken) {
            Some(kept) => {
                self.waiting.truncate(kept as usize);
                None
            }
            None => {
                self.waiting.clear();
                self.taken = mark;
                Some(mark)
            }
        }
    }

    fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        self.close();
        let kept_from = self.last_rows.filter(|_| self.needs_end).map_or(self.place(), |at| at);
        let count = (kept_from - self.taken) as usize;
        out.extend_from_slice(&self.waiting[..count]);
        self.waiting.drain(..count);
        self.taken = kept_from;
    }

    fn finish(&mut self) {
        self.end_statement();
        self.is_logged |= self.place() > 0;
        if self.has_begun {
            self.put_wishes();
            let dependencies = &mut self.dependencies;
            write_event(&mut self.waiting, DEPENDENCIES, 0, 0, 0, |out| dependencies.put(out));
        }
        self.dependencies.clear();
        self.has_begun = false;
    }

    fn reset(&mut self) {
        self.used = self.given.take().or(self.used.take());
        self.undo_to(0);
        self.taken = 0;
        self.statement_at = 0;
        self.waiting.clear();
        self.mapped.clear();
    }

    fn renew_identifier(&mut self) {
        self.used = None;
    }

    fn take_logged(&mut self) -> bool {
        std::mem::take(&mut self.is_logged)
    }

    fn take_tracked(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.tracked)
    }
}
