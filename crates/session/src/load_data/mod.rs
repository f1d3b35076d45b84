//! LOAD DATA: each record becomes a row of an INSERT whose values are parameters.

mod reader;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use catalog::{PrivilegeSet, Table};
use errors::{Condition, Error, ErrorCode, Level, Result, bail, err};
use hashbrown::HashMap;
use plugin_api::{OkInfo, ResultSink, SessionServices};
use syntax::ast::Span;
use syntax::ast::{
    ColumnName, Expr, ExprKind, Ident, Insert, InsertSource, LoadColumn, LoadData, LoadDuplicates,
    LoadSource, Priority, Statement,
};
use types::{CollationId, DataType, SqlMode, Value};

use crate::planned::Planned;
use crate::session::Session;
use crate::statement::{Origin, Running};

pub(crate) use reader::Format;
use reader::{Field, Reader};

/// Bytes read from a file at once.
const PIECE_BYTES: usize = 256 * 1024;
/// Name of the savepoint that a failed LOAD DATA returns to; no statement can name it.
const SAVEPOINT: &str = "\0load data";
/// Longest text of a field as its parameter's type says.
const FIELD_CHARS: u32 = 1 << 24;

/// Counts of a LOAD DATA.
#[derive(Default)]
struct Counts {
    records: u64,
    deleted: u64,
    skipped: u64,
}

/// What one LOAD DATA works with.
struct Load<'a> {
    statement: &'a LoadData,
    targets: Vec<LoadColumn>,
    /// Plans by how many fields of the list the record has.
    plans: HashMap<usize, Arc<Planned>>,
    ignore: bool,
    charset: &'static charset::Charset,
    counts: Counts,
}

impl Session {
    /// LOAD DATA.
    pub(crate) fn run_load_data(
        &mut self,
        load: &LoadData,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        refuse_unbuilt(load)?;
        let (schema, name) = self.qualify(&load.table)?;
        let table = self.find_table(&schema, &name)?;
        let mut work = self.prepare_load(load, &table)?;
        if load.local {
            self.require_local_files()?;
        } else {
            self.require_global(PrivilegeSet::FILE)?;
        }
        // Planned before the client is asked for its file, so that most mistakes are found without it.
        self.load_plan(&mut work, running, usize::MAX)?;
        self.transactions.savepoint(SAVEPOINT);
        let result = if load.local {
            let mut file = sink.local_file(&load.file)?;
            self.load_records(&mut work, running, &mut || file.read())
        } else {
            let mut file = open_file(&self.data_path(&load.file)?)?;
            self.load_records(&mut work, running, &mut || read_piece(&mut file))
        };
        if let Err(error) = result {
            // The error that stopped the load is the one to report.
            let _ = self.transactions.rollback_to(SAVEPOINT);
            let _ = self.transactions.release(SAVEPOINT);
            return Err(error);
        }
        let _ = self.transactions.release(SAVEPOINT);
        self.finish_load(&work.counts, sink)
    }

    fn finish_load(&mut self, counts: &Counts, sink: &mut dyn ResultSink) -> Result<()> {
        let stored = counts.records - counts.skipped;
        let affected_rows = stored + counts.deleted;
        self.services.row_count = affected_rows as i64;
        let info = format!(
            "Records: {}  Deleted: {}  Skipped: {}  Warnings: {}",
            counts.records,
            counts.deleted,
            counts.skipped,
            self.working.warning_count(),
        );
        let commit = self.finish_transaction_scope()?;
        self.send_ok(sink, OkInfo { affected_rows, info, commit, ..OkInfo::default() })
    }

    fn prepare_load<'a>(&self, load: &'a LoadData, table: &Table) -> Result<Load<'a>> {
        let targets = if load.columns.is_empty() {
            let visible = table
                .columns
                .iter()
                .filter(|column| column.generated.is_none() && !column.invisible);
            visible.map(|column| LoadColumn::Column(column_name(&column.name))).collect()
        } else {
            load.columns.clone()
        };
        for assignment in &load.set {
            let twice = targets.iter().any(|target| {
                matches!(target, LoadColumn::Column(column)
                    if catalog::same_name(&column.name.text, &assignment.column.name.text))
            });
            if twice {
                return Err(Error::not_supported("LOAD DATA that sets a column of its own list"));
            }
        }
        let charset = match &load.charset {
            None => self.file_charset(),
            Some(name) => charset::charset_by_name(&name.text)
                .ok_or_else(|| err!(UNKNOWN_CHARACTER_SET, name.text))?,
        };
        let ignore = match load.duplicates {
            LoadDuplicates::Ignore => true,
            LoadDuplicates::Error => load.local,
            LoadDuplicates::Replace => false,
        };
        Ok(Load {
            statement: load,
            targets,
            plans: HashMap::new(),
            ignore,
            charset,
            counts: Counts::default(),
        })
    }

    /// `character_set_database`.
    fn file_charset(&self) -> &'static charset::Charset {
        let name = crate::variables::as_text(&self.value("character_set_database"));
        charset::charset_by_name(&name).unwrap_or_else(|| {
            charset::collation_or_binary(CollationId::UTF8MB4_0900_AI_CI).charset
        })
    }

    fn require_local_files(&self) -> Result<()> {
        if self.server.globals.integer("local_infile") == 0 || !self.client.local_files {
            bail!(CLIENT_LOCAL_FILES_DISABLED);
        }
        Ok(())
    }

    /// Path of a file of the server that statements may name.
    ///
    /// # Errors
    /// 1290.
    pub(crate) fn data_path(&self, name: &str) -> Result<PathBuf> {
        let allowed = self.value("secure_file_priv");
        let path = PathBuf::from(name);
        let path = if path.is_absolute() {
            path
        } else {
            PathBuf::from(self.server.global_text("datadir")).join(path)
        };
        let inside = match &allowed {
            Value::Null => false,
            value => {
                let directory = PathBuf::from(crate::variables::as_text(value));
                let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
                directory.as_os_str().is_empty()
                    || parent.is_some_and(|parent| {
                        directory.canonicalize().is_ok_and(|allowed| parent.starts_with(allowed))
                    })
            }
        };
        if !inside {
            bail!(OPTION_PREVENTS_STATEMENT, "--secure-file-priv");
        }
        Ok(path)
    }

    fn load_records(
        &mut self,
        work: &mut Load<'_>,
        running: &Running<'_>,
        source: &mut dyn FnMut() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let mut reader = Reader::new(source, Format::new(&work.statement.format));
        for _ in 0..work.statement.ignore_lines {
            if !reader.skip_line()? {
                return Ok(());
            }
        }
        while let Some(fields) = reader.record()? {
            self.shared.cancel.check()?;
            work.counts.records += 1;
            self.load_record(work, running, fields)?;
        }
        Ok(())
    }

    /// Stores one record. What it raises says "row 1", as every one-row INSERT does: the number is put right.
    fn load_record(
        &mut self,
        work: &mut Load<'_>,
        running: &Running<'_>,
        fields: Vec<Field>,
    ) -> Result<()> {
        let row = work.counts.records;
        self.check_field_count(work, fields.len())?;
        let planned = self.load_plan(work, running, fields.len())?;
        let mut values = Vec::with_capacity(work.targets.len());
        for (target, field) in work.targets.iter().zip(fields) {
            let value = field.map_or(Value::Null, |bytes| {
                Value::Bytes(work.charset.decode(&bytes).bytes.into())
            });
            match target {
                LoadColumn::Column(_) => values.push(value),
                LoadColumn::UserVar(name) => {
                    self.services.set_user_variable(&name.text, value, field_type());
                }
            }
        }
        let before = std::mem::take(&mut self.working);
        self.working = errors::Diagnostics::new(self.settings.max_error_count);
        let result = self.run_program(&planned, &values, &mut crate::sink::NoRows);
        let raised = std::mem::replace(&mut self.working, before);
        for condition in raised.conditions() {
            let message = at_row(&condition.message, row);
            self.working.push(Condition { message, ..condition.clone() });
        }
        let outcome = result.map_err(|error| {
            Error::with_sqlstate(error.code(), error.sqlstate(), at_row(error.message(), row))
        })?;
        match outcome.affected {
            0 => work.counts.skipped += 1,
            more => work.counts.deleted += more - 1,
        }
        if let Some(generated) = outcome.generated_id
            && work.counts.records == 1
        {
            self.services.last_insert_id = generated;
        }
        Ok(())
    }

    /// 1261, 1262: an error in strict mode, else a warning.
    fn check_field_count(&mut self, work: &Load<'_>, given: usize) -> Result<()> {
        let row = work.counts.records;
        let code = match given.cmp(&work.targets.len()) {
            std::cmp::Ordering::Equal => return Ok(()),
            std::cmp::Ordering::Less => ErrorCode::WARN_TOO_FEW_RECORDS,
            std::cmp::Ordering::Greater => ErrorCode::WARN_TOO_MANY_RECORDS,
        };
        let strict = self.settings.sql_mode.contains(SqlMode::STRICT_TRANS_TABLES)
            || self.settings.sql_mode.contains(SqlMode::STRICT_ALL_TABLES);
        if strict && !work.ignore {
            return Err(Error::with(code, &[&row]));
        }
        // One for each column that is missing, or one for the rest of the line.
        for _ in 0..work.targets.len().saturating_sub(given).max(1) {
            self.working.raise(Level::Warning, code, &[&row]);
        }
        Ok(())
    }

    /// The INSERT for records with `fields` fields.
    fn load_plan(
        &mut self,
        work: &mut Load<'_>,
        running: &Running<'_>,
        fields: usize,
    ) -> Result<Arc<Planned>> {
        let count = fields.min(work.targets.len());
        if let Some(planned) = work.plans.get(&count) {
            return Ok(planned.clone());
        }
        let statement = Statement::Insert(Box::new(insert_of(work, count)));
        let columns = work.targets[..count]
            .iter()
            .filter(|target| matches!(target, LoadColumn::Column(_)))
            .count();
        let parameters = vec![Value::text(""); columns];
        let inner =
            Running { source: running.source, parameters: &parameters, origin: Origin::Prepared };
        let planned = self.plan_and_lock(&statement, &inner)?;
        work.plans.insert(count, planned.clone());
        Ok(planned)
    }
}

fn refuse_unbuilt(load: &LoadData) -> Result<()> {
    if load.xml {
        return Err(Error::not_supported("LOAD XML"));
    }
    if load.source != LoadSource::File || load.bulk || load.compression.is_some() {
        return Err(Error::not_supported("LOAD DATA from URLs and bulk loading"));
    }
    if !load.partitions.is_empty() {
        return Err(Error::not_supported("PARTITION"));
    }
    let format = &load.format;
    let long = |part: &Option<Box<[u8]>>| part.as_ref().is_some_and(|bytes| bytes.len() > 1);
    if long(&format.fields_enclosed_by) || long(&format.fields_escaped_by) {
        bail!(WRONG_FIELD_TERMINATORS);
    }
    let empty = |part: &Option<Box<[u8]>>, default: bool| {
        part.as_ref().map_or(default, |bytes| bytes.is_empty())
    };
    if empty(&format.fields_terminated_by, false) && empty(&format.fields_enclosed_by, true) {
        return Err(Error::not_supported("LOAD DATA with fields of fixed size"));
    }
    Ok(())
}

fn field_type() -> DataType {
    DataType::varchar(FIELD_CHARS, CollationId::UTF8MB4_0900_AI_CI)
}

fn column_name(name: &str) -> ColumnName {
    ColumnName { schema: None, table: None, name: Ident::new(name) }
}

/// The INSERT for records with `count` fields: a parameter for each column of the list, then the SET clause.
fn insert_of(work: &Load<'_>, count: usize) -> Insert {
    let load = work.statement;
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for target in &work.targets[..count] {
        if let LoadColumn::Column(column) = target {
            let parameter = ExprKind::Param(columns.len() as u32);
            columns.push(column.clone());
            values.push(Expr { kind: parameter, span: Span::default() });
        }
    }
    for assignment in &load.set {
        columns.push(assignment.column.clone());
        values.push(assignment.value.clone());
    }
    Insert {
        replace: load.duplicates == LoadDuplicates::Replace,
        priority: Priority::Normal,
        ignore: work.ignore,
        hints: None,
        table: load.table.clone(),
        partitions: Vec::new(),
        columns: Some(columns),
        source: InsertSource::Values(vec![values]),
        row_alias: None,
        on_duplicate: Vec::new(),
        returning: Vec::new(),
    }
}

/// A message of a one-row INSERT as the message of row `row`.
fn at_row(message: &str, row: u64) -> String {
    match message.strip_suffix("at row 1") {
        Some(start) => format!("{start}at row {row}"),
        None => message.to_owned(),
    }
}

fn open_file(path: &PathBuf) -> Result<std::fs::File> {
    std::fs::File::open(path).map_err(|error| file_error(13, "Can't get stat of", path, &error))
}

/// An error of the file system, as the reference words it.
pub(crate) fn file_error(
    code: u16,
    what: &str,
    path: &std::path::Path,
    error: &std::io::Error,
) -> Error {
    let number = error.raw_os_error().unwrap_or(0);
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let path = path.display();
    Error::new(ErrorCode(code), format!("{what} '{path}' (OS errno {number} - {text})"))
}

fn read_piece(file: &mut std::fs::File) -> Result<Vec<u8>> {
    let mut piece = vec![0; PIECE_BYTES];
    let read = file.read(&mut piece).map_err(Error::internal)?;
    piece.truncate(read);
    Ok(piece)
}
