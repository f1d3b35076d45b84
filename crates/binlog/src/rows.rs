//! Events with rows.

use types::Value;

use crate::event::{EventKind, begin_event, end_event};
use crate::json_changes::{self, JsonChanges};
use crate::layout::{Layout, Shape};
use crate::read::{Malformed, Reader, Result, put_lenenc, put_uint};
use crate::table_map::TableMap;
use crate::value;

/// Flags of an event with rows.
pub mod flags {
    /// The last event of the statement: tables that were mapped are forgotten.
    pub const STATEMENT_ENDS: u16 = 1;
    /// `foreign_key_checks` was off.
    pub const NO_FOREIGN_KEY_CHECKS: u16 = 2;
    /// `unique_checks` was off.
    pub const RELAXED_UNIQUE_CHECKS: u16 = 4;
    /// Rows are whole.
    pub const COMPLETE_ROWS: u16 = 8;
    /// Foreign keys are kept above the engine: rows that a cascade changed are in the log. 9.7 sets it.
    pub const SQL_FOREIGN_KEYS: u16 = 0x10;
}

/// Place of the flags in an event with its header; they have two bytes.
pub const FLAGS_OFFSET: usize = 19 + 6;

/// Bytes of an event's header and of what comes before the number of columns.
const HEADER_BYTES: usize = 19 + 10;

/// What happened to the rows of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsKind {
    /// They were inserted: after images alone.
    Insert,
    /// They were updated: before and after images.
    Update,
    /// They were deleted: before images alone.
    Delete,
}

impl RowsKind {
    /// The kind of event that holds them.
    pub const fn event(self) -> EventKind {
        match self {
            RowsKind::Insert => EventKind::WRITE_ROWS,
            RowsKind::Update => EventKind::UPDATE_ROWS,
            RowsKind::Delete => EventKind::DELETE_ROWS,
        }
    }
}

/// Columns that images have, by position; `None` for all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// Of rows before the change.
    pub before: Option<Box<[bool]>>,
    /// Of rows after it.
    pub after: Option<Box<[bool]>>,
}

/// Appends rows of one table to events that are not sealed: many rows to an event, until the next one would make it longer than a limit.
#[derive(Debug)]
pub struct RowsWriter<'a> {
    layout: &'a Layout,
    kind: RowsKind,
    image: &'a Image,
    table_id: u64,
    flags: u16,
    timestamp: u32,
    server_id: u32,
    bytes_max: usize,
    /// Columns whose documents may be given as changes, if any may.
    partial: Option<&'a [usize]>,
    /// Where the open event starts.
    open: Option<usize>,
}

impl<'a> RowsWriter<'a> {
    /// A writer for the rows of one statement in one table. `flags` is of [`flags`], without the end of the statement; `bytes_max` is
    /// `binlog_row_event_max_size`.
    pub fn new(
        layout: &'a Layout,
        kind: RowsKind,
        image: &'a Image,
        table_id: u64,
        flags: u16,
        (timestamp, server_id): (u32, u32),
        bytes_max: usize,
    ) -> RowsWriter<'a> {
        let flags = flags & !flags::STATEMENT_ENDS;
        RowsWriter {
            layout,
            kind,
            image,
            table_id,
            flags,
            timestamp,
            server_id,
            bytes_max,
            partial: None,
            open: None,
        }
    }

    /// Updated documents that stay the same, and those of these columns, are given as changes where that is shorter. The rows before
    /// are whole.
    #[must_use]
    pub fn partial(self, edited: &'a [usize]) -> RowsWriter<'a> {
        RowsWriter { partial: Some(edited).filter(|_| self.kind == RowsKind::Update), ..self }
    }

    /// Goes on with an event that another writer for the same rows left open.
    #[must_use]
    pub fn resumed(self, open: Option<usize>) -> RowsWriter<'a> {
        RowsWriter { open, ..self }
    }

    /// Appends a row: its values in order of the columns, before and after the change; what the kind has not is not read. All rows of
    /// an open event are in the same buffer.
    pub fn push(&mut self, before: &[Value], after: &[Value], out: &mut Vec<u8>) {
        let start = match self.open {
            Some(start) => start,
            None => self.begin(out),
        };
        let row_start = out.len();
        self.put_row(before, after, out);
        let is_first = row_start - start <= HEADER_BYTES + 9 + 2 * self.layout.len().div_ceil(8);
        if is_first || out.len() - start <= self.bytes_max {
            end_event(out, start);
            return;
        }
        // The row goes to the next event: what is before it is complete.
        let row = out.split_off(row_start);
        end_event(out, start);
        self.begin(out);
        out.extend_from_slice(&row);
        self.open.into_iter().for_each(|start| end_event(out, start));
    }

    /// Ends the open event; the next row begins another one. `ends_statement` marks it as the statement's last.
    pub fn finish(&mut self, ends_statement: bool, out: &mut [u8]) {
        let Some(start) = self.open.take() else { return };
        if ends_statement && let Some(low) = out.get_mut(start + FLAGS_OFFSET) {
            *low |= flags::STATEMENT_ENDS as u8;
        }
    }

    /// Where the open event starts in the buffer.
    pub fn open_event(&self) -> Option<usize> {
        self.open
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> usize {
        let kind = match self.partial {
            Some(_) => EventKind::PARTIAL_UPDATE_ROWS,
            None => self.kind.event(),
        };
        let start = begin_event(out, kind, self.timestamp, self.server_id, 0);
        put_uint(self.table_id, 6, out);
        out.extend_from_slice(&self.flags.to_le_bytes());
        // The bytes of this length, and nothing else.
        out.extend_from_slice(&2u16.to_le_bytes());
        put_lenenc(self.layout.len() as u64, out);
        let all = &[][..];
        if self.kind != RowsKind::Insert {
            put_present(self.image.before.as_deref().unwrap_or(all), self.layout.len(), out);
        }
        if self.kind != RowsKind::Delete {
            put_present(self.image.after.as_deref().unwrap_or(all), self.layout.len(), out);
        }
        self.open = Some(start);
        start
    }

    fn put_row(&self, before: &[Value], after: &[Value], out: &mut Vec<u8>) {
        if self.kind != RowsKind::Insert {
            put_image(self.layout, self.image.before.as_deref(), before, out);
        }
        match self.partial {
            Some(edited) => self.put_partial(edited, before, after, out),
            None if self.kind == RowsKind::Delete => {}
            None => put_image(self.layout, self.image.after.as_deref(), after, out),
        }
    }

    /// The row after, in front of it the documents that are given as changes: a bit for each JSON column, if there is one.
    fn put_partial(&self, edited: &[usize], before: &[Value], after: &[Value], out: &mut Vec<u8>) {
        // Of all JSON columns, also those that the image has not.
        let documents_before = |at: usize| {
            self.layout.shapes[..at].iter().filter(|shape| matches!(shape, Shape::Json)).count()
        };
        let bytes = documents_before(self.layout.len()).div_ceil(8);
        let options = out.len();
        out.resize(options + 1 + bytes, 0);
        let mut changes = Vec::new();
        put_columns(self.layout, self.image.after.as_deref(), after, out, |at, shape, out| {
            let start = out.len();
            value::put(&after[at], shape, out);
            if !matches!(shape, Shape::Json) {
                return;
            }
            let (Some(Value::Json(old)), Value::Json(new)) = (before.get(at), &after[at]) else {
                return;
            };
            // With its length, the changes are shorter than the document.
            let Some(bytes_max) = (out.len() - start).checked_sub(4 + 5) else { return };
            changes.clear();
            let is_edited = old == new || edited.contains(&at);
            if is_edited && json_changes::put(old, new, bytes_max, &mut changes) {
                out.truncate(start);
                out.extend_from_slice(&(changes.len() as u32).to_le_bytes());
                out.extend_from_slice(&changes);
                out[options] = 1;
                let bit = documents_before(at);
                out[options + 1 + bit / 8] |= 1 << (bit % 8);
            }
        });
        if out[options] == 0 {
            out.drain(options + 1..options + 1 + bytes);
        }
    }
}

/// A bit for each column; the bits after the last one are set when all are.
fn put_present(present: &[bool], columns: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + columns.div_ceil(8), 0);
    if present.is_empty() {
        out[start..].fill(0xff);
        return;
    }
    for (at, _) in present.iter().take(columns).enumerate().filter(|(_, present)| **present) {
        out[start + at / 8] |= 1 << (at % 8);
    }
}

fn put_image(layout: &Layout, present: Option<&[bool]>, row: &[Value], out: &mut Vec<u8>) {
    put_columns(layout, present, row, out, |at, shape, out| value::put(&row[at], shape, out));
}

/// Appends an image: `put` appends the columns that are not NULL.
fn put_columns(
    layout: &Layout,
    present: Option<&[bool]>,
    row: &[Value],
    out: &mut Vec<u8>,
    mut put: impl FnMut(usize, Shape, &mut Vec<u8>),
) {
    let is_present = |at: usize| present.is_none_or(|present| present.get(at) == Some(&true));
    let count = (0..layout.len()).filter(|at| is_present(*at)).count();
    out.reserve(row.iter().map(value::size_hint).sum::<usize>() + layout.len());
    let nulls = out.len();
    out.resize(nulls + count.div_ceil(8), 0);
    let columns = layout.shapes.iter().enumerate().filter(|(at, _)| is_present(*at));
    for (bit, (at, shape)) in columns.enumerate() {
        match row.get(at) {
            None | Some(Value::Null) => out[nulls + bit / 8] |= 1 << (bit % 8),
            Some(_) => put(at, *shape, out),
        }
    }
}

/// A row: a value for each column that the image has.
pub type RowImage = Vec<Option<Value>>;

/// A row of an event; an image is empty when the kind has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Before the change.
    pub before: RowImage,
    /// After it.
    pub after: RowImage,
    /// What became of documents that the image before lacks; `after` lacks them too.
    pub changes: Vec<JsonChanges>,
}

/// An event with rows, whose bytes are not read yet.
#[derive(Clone, Copy, Debug)]
pub struct RowsEvent<'a> {
    /// What the table map of its table has.
    pub table_id: u64,
    /// What happened.
    pub kind: RowsKind,
    /// See [`flags`].
    pub flags: u16,
    /// Number of columns.
    pub columns: usize,
    /// Whether JSON documents may be given as changes.
    partial: bool,
    before: &'a [u8],
    after: &'a [u8],
    rows: &'a [u8],
}

impl<'a> RowsEvent<'a> {
    /// Reads the start of an event's body. `None` for a kind that has no rows.
    pub(crate) fn read(kind: EventKind, body: &'a [u8]) -> Result<Option<RowsEvent<'a>>> {
        let (change, is_second) = match kind {
            EventKind::WRITE_ROWS_V1 => (RowsKind::Insert, false),
            EventKind::UPDATE_ROWS_V1 => (RowsKind::Update, false),
            EventKind::DELETE_ROWS_V1 => (RowsKind::Delete, false),
            EventKind::WRITE_ROWS => (RowsKind::Insert, true),
            EventKind::UPDATE_ROWS | EventKind::PARTIAL_UPDATE_ROWS => (RowsKind::Update, true),
            EventKind::DELETE_ROWS => (RowsKind::Delete, true),
            _ => return Ok(None),
        };
        let mut reader = Reader::new(body);
        let (table_id, flags) = (reader.uint(6)?, reader.u16()?);
        if is_second {
            let extra = reader.u16()?.checked_sub(2).ok_or(Malformed("length of extra data"))?;
            // The partition of the rows, which their values say too.
            reader.bytes(usize::from(extra))?;
        }
        let columns = reader.lenenc_usize()?;
        let bytes = columns.div_ceil(8);
        let first = reader.bytes(bytes)?;
        let second = if change == RowsKind::Update { reader.bytes(bytes)? } else { first };
        let partial = kind == EventKind::PARTIAL_UPDATE_ROWS;
        let (before, after, rows) = (first, second, reader.rest());
        Ok(Some(RowsEvent { table_id, kind: change, flags, columns, partial, before, after, rows }))
    }

    /// Whether the statement ends with it.
    pub fn ends_statement(&self) -> bool {
        self.flags & flags::STATEMENT_ENDS != 0
    }

    /// Whether it may have changes of documents that its images before lack (`Row::changes`).
    pub fn lacks_documents(&self) -> bool {
        self.partial && !(0..self.columns).all(|at| bit(self.before, at))
    }

    /// Bytes of its rows.
    pub fn bytes(&self) -> usize {
        self.rows.len()
    }

    /// Its rows, read with the table map of its table.
    pub fn rows(&self, table: &'a TableMap) -> Rows<'a> {
        Rows { event: *self, table, rest: Reader::new(self.rows), failed: false }
    }
}

/// The rows of an event. It ends after the first error.
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    event: RowsEvent<'a>,
    table: &'a TableMap,
    rest: Reader<'a>,
    failed: bool,
}

impl Iterator for Rows<'_> {
    type Item = std::result::Result<Row, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.is_empty() {
            return None;
        }
        let before = self.rest;
        let row = self.read_row();
        // A row without bytes would repeat for ever.
        self.failed = row.is_err() || self.rest.rest().len() == before.rest().len();
        if row.is_ok() && self.failed {
            return Some(Err(Malformed("row without columns")));
        }
        Some(row)
    }
}

impl Rows<'_> {
    fn read_row(&mut self) -> Result<Row> {
        if self.event.columns != self.table.layout.len() {
            return Err(Malformed("rows of another table"));
        }
        let mut row = Row::default();
        let mut changes = Vec::new();
        if self.event.kind != RowsKind::Insert {
            row.before = self.read_image(self.event.before, &[], None, &mut changes)?;
        }
        if self.event.kind != RowsKind::Delete {
            let options = if self.event.partial { self.read_options()? } else { None };
            row.after = self.read_image(self.event.after, &row.before, options, &mut changes)?;
        }
        row.changes = changes;
        Ok(row)
    }

    /// The bits of the JSON columns that are given as changes.
    fn read_options(&mut self) -> Result<Option<Vec<u8>>> {
        if self.rest.lenenc()? & 1 == 0 {
            return Ok(None);
        }
        let shapes = &self.table.layout.shapes;
        let documents = shapes.iter().filter(|shape| matches!(shape, Shape::Json)).count();
        Ok(Some(self.rest.bytes(documents.div_ceil(8))?.to_vec()))
    }

    fn read_image(
        &mut self,
        present: &[u8],
        before: &[Option<Value>],
        options: Option<Vec<u8>>,
        changes: &mut Vec<JsonChanges>,
    ) -> Result<RowImage> {
        let shapes = &self.table.layout.shapes;
        let is_present = |at: usize| bit(present, at);
        let count = (0..shapes.len()).filter(|at| is_present(*at)).count();
        let nulls = self.rest.bytes(count.div_ceil(8))?;
        let mut row = Vec::with_capacity(shapes.len());
        let (mut position, mut document) = (0, 0);
        for (at, shape) in shapes.iter().enumerate() {
            let is_json = matches!(shape, Shape::Json);
            let changed =
                is_json && options.as_deref().is_some_and(|options| bit(options, document));
            document += usize::from(is_json);
            if !is_present(at) {
                row.push(None);
                continue;
            }
            position += 1;
            row.push(if bit(nulls, position - 1) {
                Some(Value::Null)
            } else if changed {
                self.read_changes(at, before.get(at).and_then(Option::as_ref), changes)?
            } else {
                Some(value::read(&mut self.rest, *shape)?)
            });
        }
        Ok(row)
    }

    /// The document after its changes; none when the image before has not the document.
    fn read_changes(
        &mut self,
        column: usize,
        before: Option<&Value>,
        changes: &mut Vec<JsonChanges>,
    ) -> Result<Option<Value>> {
        let length = self.rest.u32()? as usize;
        let bytes = self.rest.bytes(length)?;
        match before {
            Some(Value::Json(document)) => {
                Ok(Some(Value::Json(json_changes::apply(document, bytes)?)))
            }
            Some(_) => Err(Malformed("changes of a JSON document that the row has not")),
            None => {
                changes.push(JsonChanges::new(column, bytes));
                Ok(None)
            }
        }
    }
}

fn bit(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}
