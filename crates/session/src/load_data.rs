//! LOAD DATA [LOCAL] INFILE: the file is read in pieces, rows go in as INSERTs of many rows, so that memory stays bounded.

use std::io::Read;

use catalog::PrivilegeSet;
use errors::{Error, ErrorCode, Result, bail};
use plugin_api::{LocalFile, OkInfo, ResultSink, SessionServices};
use syntax::Statement;
use syntax::ast::{self, Expr, ExprKind, LoadColumn, LoadData, LoadDuplicates, LoadSource};
use types::{CollationId, DataType, Value};

use crate::outfile::{Format, file_error};
use crate::session::Session;
use crate::sink::NoRows;
use crate::statement::{Origin, Running};

/// Rows of one INSERT.
const BATCH_ROWS: usize = 256;
/// Bytes after which an INSERT goes out however few rows it has.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes read at a time.
const READ_BYTES: usize = 64 * 1024;
/// Longest line.
const LINE_BYTES_MAX: usize = 1 << 30;

/// Where lines come from.
enum Source<'a> {
    Local(Box<dyn LocalFile + 'a>),
    File(std::fs::File, String),
}

impl Source<'_> {
    fn read(&mut self) -> Result<Vec<u8>> {
        match self {
            Source::Local(file) => file.read(),
            Source::File(file, name) => {
                let mut piece = vec![0; READ_BYTES];
                let count = file
                    .read(&mut piece)
                    .map_err(|error| file_error(ErrorCode::ERROR_ON_READ, name, &error))?;
                piece.truncate(count);
                Ok(piece)
            }
        }
    }
}

/// A field: its text, or NULL.
type Field = Option<Vec<u8>>;

/// Cuts a stream of bytes into lines and fields.
struct Lines {
    format: Format,
    buffer: Vec<u8>,
    position: usize,
    ended: bool,
}

impl Lines {
    /// The next line's fields; `None` at the end.
    fn next(&mut self, source: &mut Source<'_>) -> Result<Option<Vec<Field>>> {
        loop {
            match self.parse() {
                Some((fields, used)) => {
                    self.position += used;
                    return Ok(fields);
                }
                None => self.fill(source)?,
            }
        }
    }

    fn fill(&mut self, source: &mut Source<'_>) -> Result<()> {
        self.buffer.drain(..self.position);
        self.position = 0;
        let piece = source.read()?;
        self.ended = piece.is_empty();
        self.buffer.extend_from_slice(&piece);
        if self.buffer.len() > LINE_BYTES_MAX {
            bail!(NET_PACKET_TOO_LARGE);
        }
        Ok(())
    }

    /// Fields of the line at `position` and its length; `None` when more bytes are needed; no fields at the end of the file.
    #[allow(clippy::type_complexity)]
    fn parse(&self) -> Option<(Option<Vec<Field>>, usize)> {
        let input = &self.buffer[self.position..];
        if input.is_empty() {
            return self.ended.then_some((None, 0));
        }
        let mut at = 0;
        if !self.format.lines_starting.is_empty() {
            match find(input, &self.format.lines_starting) {
                Some(start) => at = start + self.format.lines_starting.len(),
                None => return self.ended.then_some((None, input.len())),
            }
        }
        let mut fields = Vec::new();
        loop {
            let (field, used, last) = self.field(&input[at..])?;
            fields.push(field);
            at += used;
            if last {
                return Some((Some(fields), at));
            }
        }
    }

    /// One field, the bytes it took with its terminator, and whether it ends the line.
    fn field(&self, input: &[u8]) -> Option<(Field, usize, bool)> {
        let format = &self.format;
        let enclosed = format.enclosed.is_some_and(|quote| input.first() == Some(&quote));
        let mut text = Vec::new();
        let mut at = usize::from(enclosed);
        let mut null = false;
        loop {
            let rest = &input[at..];
            let Some(byte) = rest.first() else {
                // The file ended inside or right behind a field.
                return self.ended.then(|| (field_of(text, null, enclosed, format), at, true));
            };
            if Some(*byte) == format.escaped {
                match rest.get(1) {
                    Some(b'N') if !enclosed && text.is_empty() && self.ends_field(&rest[2..])? => {
                        null = true;
                    }
                    Some(next) => text.push(unescape(*next)),
                    None if self.ended => text.push(*byte),
                    None => return None,
                }
                at += 2;
                continue;
            }
            if enclosed && Some(*byte) == format.enclosed {
                if rest.get(1) == format.enclosed.as_ref() {
                    text.push(*byte);
                    at += 2;
                    continue;
                }
                if rest.len() == 1 && !self.ended {
                    return None;
                }
                if self.ends_field(&rest[1..])? {
                    at += 1;
                    let (used, last) = self.terminator(&input[at..]);
                    return Some((field_of(text, null, true, format), at + used, last));
                }
                text.push(*byte);
                at += 1;
                continue;
            }
            if !enclosed && self.ends_field(rest)? {
                let (used, last) = self.terminator(rest);
                return Some((field_of(text, null, false, format), at + used, last));
            }
            text.push(*byte);
            at += 1;
        }
    }

    /// Whether a field's or line's end stands here; `None` when more bytes are needed to tell.
    fn ends_field(&self, rest: &[u8]) -> Option<bool> {
        if rest.is_empty() {
            return if self.ended { Some(true) } else { None };
        }
        for end in [&self.format.fields_terminated, &self.format.lines_terminated] {
            if end.is_empty() {
                continue;
            }
            if rest.starts_with(end) {
                return Some(true);
            }
            if !self.ended && end.starts_with(rest) {
                return None;
            }
        }
        Some(false)
    }

    /// Length of the terminator here, and whether it ends the line.
    fn terminator(&self, rest: &[u8]) -> (usize, bool) {
        let format = &self.format;
        let line = &format.lines_terminated;
        let field = &format.fields_terminated;
        if !line.is_empty() && rest.starts_with(line) {
            (line.len(), true)
        } else if !field.is_empty() && rest.starts_with(field) {
            (field.len(), false)
        } else {
            (0, true)
        }
    }
}

fn field_of(text: Vec<u8>, null: bool, enclosed: bool, format: &Format) -> Field {
    // Without an escape character the bare word NULL is one.
    let word = !enclosed && format.escaped.is_none() && text == b"NULL";
    (!null && !word).then_some(text)
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'0' => 0,
        b'b' => 8,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'Z' => 26,
        other => other,
    }
}

fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    text.windows(needle.len()).position(|window| window == needle)
}

/// Counts of a load.
#[derive(Default)]
struct Totals {
    records: u64,
    deleted: u64,
    skipped: u64,
    affected: u64,
}

impl Session {
    /// LOAD DATA.
    pub(crate) fn run_load_data(
        &mut self,
        load: &LoadData,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if load.xml {
            return Err(Error::not_supported("LOAD XML"));
        }
        if load.bulk || load.source != LoadSource::File || load.file_count.is_some() {
            return Err(Error::not_supported("LOAD DATA ... ALGORITHM = BULK"));
        }
        let (schema, name) = self.qualify(&load.table)?;
        self.require_on_table(&schema, &name, PrivilegeSet::INSERT)?;
        let table = self.find_table(&schema, &name)?;
        let format = Format::new(&load.format)?;
        let charset = match &load.charset {
            Some(name) => crate::ddl::find_charset(&name.text)?,
            None => crate::ddl::find_charset(&crate::variables::as_text(
                &self.value("character_set_database"),
            ))?,
        };
        let columns: Vec<LoadColumn> = if load.columns.is_empty() {
            let visible = table.columns.iter().filter(|column| {
                !column.invisible && column.generated.is_none()
            });
            visible
                .map(|column| {
                    LoadColumn::Column(ast::ColumnName {
                        schema: None,
                        table: None,
                        name: ast::Ident::new(&column.name),
                    })
                })
                .collect()
        } else {
            load.columns.clone()
        };
        let mut lines = Lines { format, buffer: Vec::new(), position: 0, ended: false };
        let totals = {
            let mut source = if load.local {
                if self.server.globals.integer("local_infile") == 0 || !self.client.local_files {
                    return Err(Error::new(
                        ErrorCode(3948),
                        "Loading local data is disabled; this must be enabled on both the client and server sides",
                    ));
                }
                Source::Local(sink.local_file(&load.file)?)
            } else {
                let path = self.server_file(&load.file)?;
                let file = std::fs::File::open(&path)
                    .map_err(|error| file_error(ErrorCode::FILE_NOT_FOUND, &load.file, &error))?;
                Source::File(file, load.file.to_string())
            };
            self.load_lines(load, &columns, charset, &mut lines, &mut source, running)?
        };
        let info = format!(
            "Records: {}  Deleted: {}  Skipped: {}  Warnings: {}",
            totals.records,
            totals.deleted,
            totals.skipped,
            self.working.warning_count()
        );
        self.services.row_count = totals.affected as i64;
        let commit = self.finish_transaction_scope()?;
        let ok = OkInfo { affected_rows: totals.affected, info, commit, ..OkInfo::default() };
        self.send_ok(sink, ok)
    }

    fn load_lines(
        &mut self,
        load: &LoadData,
        columns: &[LoadColumn],
        charset: &'static charset::Charset,
        lines: &mut Lines,
        source: &mut Source<'_>,
        running: &Running<'_>,
    ) -> Result<Totals> {
        let mut totals = Totals::default();
        for _ in 0..load.ignore_lines {
            if lines.next(source)?.is_none() {
                return Ok(totals);
            }
        }
        let uses_variables = !load.set.is_empty()
            || columns.iter().any(|column| matches!(column, LoadColumn::UserVar(_)));
        let limit = if uses_variables { 1 } else { BATCH_ROWS };
        let mut rows: Vec<Vec<Field>> = Vec::new();
        let mut bytes = 0;
        // The whole load is one statement: a failure undoes all of it.
        let was_explicit = self.transactions.explicit;
        let place = "\u{1}load data";
        self.transactions.savepoint(place);
        let result = (|| {
            loop {
                let line = lines.next(source)?;
                let ended = line.is_none();
                if let Some(fields) = line {
                    totals.records += 1;
                    self.warn_field_count(fields.len(), columns.len(), totals.records);
                    let fields: Vec<Field> = fields
                        .into_iter()
                        .map(|field| field.map(|text| decode(text, charset)))
                        .collect();
                    bytes += fields.iter().flatten().map(Vec::len).sum::<usize>();
                    rows.push(fields);
                }
                if rows.len() >= limit || bytes >= BATCH_BYTES || (ended && !rows.is_empty()) {
                    self.load_batch(load, columns, &rows, running, &mut totals)?;
                    rows.clear();
                    bytes = 0;
                    self.shared.cancel.check()?;
                }
                if ended {
                    return Ok(());
                }
            }
        })();
        if let Err(error) = result {
            if self.transactions.is_started() {
                self.transactions.rollback_to(place)?;
            }
            let _ = self.transactions.release(place);
            self.transactions.explicit = was_explicit;
            return Err(error);
        }
        let _ = self.transactions.release(place);
        Ok(totals)
    }

    fn warn_field_count(&mut self, got: usize, wanted: usize, row: u64) {
        if got < wanted {
            self.working.warn(ErrorCode::WARN_TOO_FEW_RECORDS, &[&row]);
        } else if got > wanted {
            self.working.warn(ErrorCode::WARN_TOO_MANY_RECORDS, &[&row]);
        }
    }

    /// Inserts rows. User variables are set first, then SET expressions are columns of the INSERT.
    fn load_batch(
        &mut self,
        load: &LoadData,
        columns: &[LoadColumn],
        rows: &[Vec<Field>],
        running: &Running<'_>,
        totals: &mut Totals,
    ) -> Result<()> {
        let mut names = Vec::new();
        for column in columns {
            if let LoadColumn::Column(name) = column {
                names.push(name.clone());
            }
        }
        names.extend(load.set.iter().map(|assignment| assignment.column.clone()));
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            let mut cells = Vec::with_capacity(names.len());
            for (position, column) in columns.iter().enumerate() {
                let field = row.get(position);
                match column {
                    LoadColumn::Column(_) => cells.push(cell(field)),
                    LoadColumn::UserVar(name) => {
                        let ty = DataType::varchar(16_383, CollationId::UTF8MB4_0900_AI_CI);
                        let value = match field {
                            Some(Some(text)) => Value::Bytes(text.as_slice().into()),
                            Some(None) | None => Value::Null,
                        };
                        self.services.set_user_variable(&name.text, value, ty);
                    }
                }
            }
            cells.extend(load.set.iter().map(|assignment| assignment.value.clone()));
            values.push(cells);
        }
        let insert = ast::Insert {
            replace: load.duplicates == LoadDuplicates::Replace,
            priority: ast::Priority::Normal,
            // LOCAL cannot be stopped by the server, so duplicates are skipped.
            ignore: load.duplicates == LoadDuplicates::Ignore
                || (load.local && load.duplicates == LoadDuplicates::Error),
            hints: None,
            table: load.table.clone(),
            partitions: load.partitions.clone(),
            columns: Some(names),
            source: ast::InsertSource::Values(values),
            row_alias: None,
            on_duplicate: Vec::new(),
            returning: Vec::new(),
        };
        let statement = Statement::Insert(Box::new(insert));
        let running =
            Running { source: running.source, parameters: &[], origin: Origin::Text };
        let planned = self.plan_and_lock(&statement, &running)?;
        let outcome = self.run_program(&planned, &[], &mut NoRows)?;
        if let Some(generated) = outcome.generated_id {
            self.services.last_insert_id = generated;
        }
        totals.affected += outcome.affected;
        if load.duplicates == LoadDuplicates::Replace {
            totals.deleted += outcome.duplicates;
        } else {
            totals.skipped += outcome.duplicates;
        }
        Ok(())
    }
}

fn decode(text: Vec<u8>, charset: &'static charset::Charset) -> Vec<u8> {
    if charset.is_utf8() || charset.name == "binary" { text } else { charset.decode(&text).bytes }
}

/// A field as an expression of an INSERT; a missing one is the column's default.
fn cell(field: Option<&Field>) -> Expr {
    let kind = match field {
        None => ExprKind::Default(None),
        Some(None) => ExprKind::Literal(ast::Literal::Null),
        Some(Some(text)) => {
            ExprKind::Literal(ast::Literal::String(Box::new(ast::StringLiteral {
                value: text.as_slice().into(),
                introducer: None,
                national: false,
            })))
        }
    };
    Expr { kind, span: ast::Span::default() }
}

