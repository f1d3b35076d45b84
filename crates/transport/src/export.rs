//! Writes the rows of a table that nobody changes.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catalog::{CatalogSnapshot, Relation, Table};
use definitions::alter::check_transportable;
use engine_api::{
    CancelToken, Direction, Engine, IndexId, IsolationLevel, KeyRange, RowBatch, RowLock, ScanSpec,
    Transaction, TxnOptions, WaitPolicy,
};
use errors::{Error, ErrorCode, Result, bail, err};
use sys::files::{self, Existing, File};
use sys::io_times::IoTimes;
use types::{DataType, RecordLayout, Value};

use crate::definition::{Definition, carried};
use crate::file_names::{EXPORT_DIRECTORY, file_of, leaf_names};
use crate::writer::Writer;

/// Rows are for those who administer the server.
const DIRECTORY_MODE: u32 = 0o750;
const FILE_MODE: u32 = 0o640;
/// Rows that are read at once.
const FETCH_ROWS: usize = 256;

/// Where files are written, and what may stop that.
pub struct Place<'a> {
    /// The directory for exported tables.
    pub directory: &'a Path,
    /// Counts calls.
    pub times: &'a IoTimes,
    /// KILL.
    pub cancel: &'a CancelToken,
}

/// The files of exported tables, which go when this does.
#[derive(Debug, Default)]
pub struct Exported {
    paths: Vec<PathBuf>,
}

impl Drop for Exported {
    fn drop(&mut self) {
        for path in &self.paths {
            // Whoever has moved the file away has it.
            let _ = files::remove(path);
        }
    }
}

/// Removes what a server that ended without releasing its locks left in its data directory.
///
/// # Errors
/// I/O.
pub fn remove_exports(data: &Path) -> io::Result<()> {
    match files::remove_directory(&data.join(EXPORT_DIRECTORY)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The table of this name, if its rows can be exported.
///
/// # Errors
/// 1146, 1347, 1031, 1235, 1814.
pub fn exportable(
    catalog: &CatalogSnapshot,
    (schema, name): (&str, &str),
    default_engine: &str,
) -> Result<Arc<Table>> {
    let table = match catalog.relation(schema, name) {
        None => bail!(NO_SUCH_TABLE, schema, name),
        Some(Relation::View(_)) => bail!(WRONG_OBJECT, schema, name, "BASE TABLE"),
        Some(Relation::Table(table)) => table,
    };
    check_transportable(default_engine, &table)?;
    if carried(&table).next().is_none() {
        return Err(Error::not_supported("FLUSH TABLES .. FOR EXPORT of computed columns alone"));
    }
    match table.is_discarded() {
        true => Err(err!(TABLESPACE_DISCARDED, name)),
        false => Ok(table),
    }
}

/// Writes a file for `table`, or one for each partition. `statement` makes the table. After an error dropping `exported` removes what was written.
///
/// # Errors
/// 3 where the files cannot be written; 1317; those of the engine.
pub fn export_table(
    engine: &dyn Engine,
    table: &Table,
    statement: &str,
    place: &Place<'_>,
    exported: &mut Exported,
) -> Result<()> {
    let next = match table.columns.iter().any(|column| column.auto_increment) {
        true => {
            engine.auto_increment_next(table.id).map_err(|error| error.into_error(place.cancel))?
        }
        false => 0,
    };
    let mut reader = engine.new_transaction();
    let options = TxnOptions {
        isolation: IsolationLevel::RepeatableRead,
        read_only: true,
        may_be_prepared: false,
        lock_wait_timeout: Duration::ZERO,
        cancel: place.cancel.clone(),
    };
    reader.start(&options).map_err(|error| error.into_error(place.cancel))?;
    reader.take_snapshot();
    let Some(partitioning) = &table.partitioning else {
        let definition = Definition::of(table, statement, "", next);
        return export_rows(reader.as_mut(), table, None, &definition, ("", place), exported);
    };
    for number in partitioning.numbers() {
        let names = leaf_names(partitioning, number);
        let (leaf, name) = names.ok_or_else(|| Error::internal("a partition has a name"))?;
        let definition = Definition::of(table, statement, &name, next);
        let to = (&*leaf, place);
        export_rows(reader.as_mut(), table, Some(number), &definition, to, exported)?;
    }
    Ok(())
}

/// Writes one file.
fn export_rows(
    reader: &mut dyn Transaction,
    table: &Table,
    number: Option<u16>,
    definition: &Definition,
    (leaf, place): (&str, &Place<'_>),
    exported: &mut Exported,
) -> Result<()> {
    let path = file_of(place.directory, &table.schema, &table.name, leaf);
    let word = |error: io::Error| write_error(&path, &error);
    if let Some(parent) = path.parent() {
        files::create_directories(parent, DIRECTORY_MODE).map_err(word)?;
    }
    // Whoever waits for the name finds the whole file.
    let part = path.with_extension("part");
    exported.paths.extend([part.clone(), path.clone()]);
    let file = File::create(&part, FILE_MODE, Existing::Replace).map_err(word)?;
    let mut writer = Writer::begin(BufWriter::new(file), definition).map_err(word)?;
    let rows = Rows::of(table, number);
    rows.each(reader, place.cancel, &mut |record| writer.row(record).map_err(word))?;
    let buffered = writer.finish().map_err(word)?;
    let file = buffered.into_inner().map_err(|error| word(error.into_error()))?;
    file.sync(place.times).and_then(|()| files::rename(&part, &path)).map_err(word)
}

/// The rows of a table or a partition, in the form that files have.
struct Rows<'t> {
    table: &'t Table,
    number: Option<u16>,
    stored: RecordLayout,
    carried: Vec<usize>,
    written: RecordLayout,
}

impl Rows<'_> {
    fn of(table: &Table, number: Option<u16>) -> Rows<'_> {
        let types: Vec<DataType> = carried(table).map(|(column, _)| column.ty.clone()).collect();
        Rows {
            table,
            number,
            stored: table.definition.layout(),
            carried: carried(table).map(|(_, stored)| stored).collect(),
            written: RecordLayout::new(&types),
        }
    }

    /// Calls `take` with each row's record, in the order of the primary key.
    fn each(
        &self,
        reader: &mut dyn Transaction,
        cancel: &CancelToken,
        take: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let word = |error: engine_api::EngineError| error.into_error(cancel);
        let own = self.number.and_then(|number| self.table.partition_range(number));
        // Without a range of its own a partition's rows are picked out of all.
        let picked = self.number.filter(|_| own.is_none());
        let spec = ScanSpec {
            table: self.table.id,
            index: IndexId::CLUSTERED,
            range: own.unwrap_or(KeyRange::ALL),
            direction: Direction::Forward,
            lock: RowLock::None,
            wait: WaitPolicy::Wait,
        };
        let cursor = reader.open_cursor(&spec).map_err(word)?;
        let mut batch = RowBatch::new();
        let (mut values, mut record) = (Vec::new(), Vec::new());
        while reader.fetch(cursor, FETCH_ROWS, &mut batch).map_err(word)? > 0 {
            cancel.check()?;
            for row in batch.iter() {
                if picked.is_some_and(|number| !self.table.in_partition(row.record, number)) {
                    continue;
                }
                values.clear();
                for stored in &self.carried {
                    values.push(self.value(row.record, *stored)?);
                }
                record.clear();
                let encoded = self.written.encode(&values, &mut record);
                encoded.map_err(|_| Error::internal("a stored row has values of its types"))?;
                take(&record)?;
            }
            cancel.count_work(batch.len() as u64);
            batch.clear();
        }
        reader.close_cursor(cursor);
        Ok(())
    }

    fn value(&self, record: &[u8], stored: usize) -> Result<Value> {
        let column = self.table.definition.columns.get(stored);
        let missing = column.and_then(|column| column.instant_default.as_ref());
        let value = self.stored.value(record, stored, missing);
        value.ok_or_else(|| Error::internal("a stored row is damaged"))
    }
}

/// A full disk, and whatever else keeps a file from being written.
fn write_error(path: &Path, error: &io::Error) -> Error {
    const ERROR_WRITING: ErrorCode = ErrorCode(3);
    let (number, text) = (error.raw_os_error().unwrap_or(0), error.to_string());
    let text = text.split(" (os error").next().unwrap_or_default();
    let path = path.display();
    Error::new(ERROR_WRITING, format!("Error writing '{path}' (OS errno {number} - {text})"))
}
