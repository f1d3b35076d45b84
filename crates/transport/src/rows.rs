//! The rows of a file as a transaction's: an INSERT .. SELECT reads them like those of a table.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use catalog::{Column, ColumnHistory, Table};
use engine_api::{
    CancelToken, CommitHandle, CursorId, EngineError, EngineResult, GetOutcome, IndexDef, IndexId,
    RowBatch, RowBuf, RowLock, Savepoint, ScanSpec, TableDef, TableId, Transaction, TxnOptions,
    WaitPolicy,
};
use errors::{Error, Result, bail, err};
use sys::files::File;
use types::DataType;

use crate::check::RowCheck;
use crate::definition::{FileColumn, carried};
use crate::reader::{FileError, Reader};

/// The reference's number for what is damaged, in its error 1816.
const CORRUPTION: u32 = 39;
/// Bytes of rows that are read at once.
const BATCH_BYTES: usize = 1 << 20;

/// An open file of rows.
pub type Rows = Reader<BufReader<File>>;

/// Opens a file for the table `shown`, a quoted name.
///
/// # Errors
/// 1812 when there is none; 1808 for a version that is not known; 1816 for a damaged file; 1810.
pub fn open(path: &Path, shown: &str) -> Result<Rows> {
    let file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => err!(TABLESPACE_MISSING, shown),
        _ => unreadable(&FileError::Io(error), path, shown),
    })?;
    Reader::open(BufReader::new(file)).map_err(|error| unreadable(&error, path, shown))
}

/// What a user is told of a file that cannot be read.
pub fn unreadable(error: &FileError, path: &Path, shown: &str) -> Error {
    let path = path.display();
    match error {
        FileError::Io(error) => {
            let (number, text) = (error.raw_os_error().unwrap_or(0), error.to_string());
            let text = text.split(" (os error").next().unwrap_or_default();
            err!(IO_READ_ERROR, number, text, format!("'{path}'"))
        }
        FileError::Damaged(place) => {
            let text = format!("{path} is damaged from byte {place} on");
            err!(INNODB_IMPORT_ERROR, shown, CORRUPTION, text)
        }
        FileError::Version(version) => {
            let known = crate::VERSION;
            let text = format!("{path} is of version {version}, and {known} is the newest known");
            err!(TABLE_SCHEMA_MISMATCH, text)
        }
    }
}

/// Whether rows of a file can be rows of `table`.
///
/// # Errors
/// 1808 with the first difference.
pub fn check_alike(columns: &[FileColumn], table: &Table) -> Result<()> {
    let own: Vec<FileColumn> = carried(table).map(|(column, _)| FileColumn::of(column)).collect();
    if own.len() != columns.len() {
        let (own, read) = (own.len(), columns.len());
        let text = format!(
            "Number of columns don't match, table has {own} columns but the file has {read} columns"
        );
        bail!(TABLE_SCHEMA_MISMATCH, text);
    }
    for (own, read) in own.iter().zip(columns) {
        if !catalog::same_name(&own.name, &read.name) {
            let text = format!("Column {} is called {} in the file.", own.name, read.name);
            bail!(TABLE_SCHEMA_MISMATCH, text);
        }
        if own.type_text != read.type_text || own.collation != read.collation {
            let shown = |column: &FileColumn| match &*column.collation {
                "" => column.type_text.clone(),
                collation => format!("{} COLLATE {collation}", column.type_text),
            };
            let (mine, other) = (shown(own), shown(read));
            let text = format!("Column {} is {mine}, and {other} in the file.", own.name);
            bail!(TABLE_SCHEMA_MISMATCH, text);
        }
        if own.nullable != read.nullable {
            let text = format!("Column {} may be NULL only on one side.", own.name);
            bail!(TABLE_SCHEMA_MISMATCH, text);
        }
    }
    Ok(())
}

/// The rows of files for `table` as a table of their own, with the number `id`: its columns without those that are computed, and no keys.
pub fn file_table(table: &Table, id: TableId) -> Table {
    let mut columns = Vec::new();
    let mut stored_columns = Vec::new();
    for (place, (column, stored)) in carried(table).enumerate() {
        columns.push(Column {
            stored: Some(place),
            on_update_now: None,
            invisible: false,
            histogram: None,
            history: ColumnHistory::Kept,
            ..column.clone()
        });
        if let Some(definition) = table.definition.columns.get(stored) {
            let mut definition = definition.clone();
            definition.instant_default = None;
            stored_columns.push(definition);
        }
    }
    let name: Arc<str> = format!("#file-{}", id.0).into();
    let definition =
        TableDef { id, name: name.to_string(), columns: stored_columns, indexes: Vec::new() };
    Table {
        id,
        name,
        columns,
        indexes: Vec::new(),
        fulltext: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        options: Vec::new(),
        partitioning: None,
        period: None,
        definition,
        ..table.clone()
    }
}

/// The rows of a file, behind whatever cursor is opened.
pub struct FileRows {
    rows: Rows,
    path: PathBuf,
    /// The table as errors show it.
    shown: String,
    check: RowCheck,
    names: Vec<Arc<str>>,
    cancel: CancelToken,
    row: Vec<u8>,
    count: u64,
}

impl FileRows {
    /// The rows of an open file for `table`, to which `check_alike` has found it alike.
    pub fn new(
        rows: Rows,
        path: &Path,
        shown: &str,
        table: &Table,
        cancel: &CancelToken,
    ) -> FileRows {
        let types: Vec<DataType> = carried(table).map(|(column, _)| column.ty.clone()).collect();
        FileRows {
            rows,
            path: path.to_owned(),
            shown: shown.to_owned(),
            check: RowCheck::new(&types),
            names: carried(table).map(|(column, _)| column.name.clone()).collect(),
            cancel: cancel.clone(),
            row: Vec::new(),
            count: 0,
        }
    }

    /// Makes `self.row` the next row, which is one of the columns.
    fn next(&mut self) -> Result<bool> {
        let read = self.rows.next_row(&mut self.row);
        if !read.map_err(|error| unreadable(&error, &self.path, &self.shown))? {
            return Ok(false);
        }
        self.count += 1;
        let Some(at) = self.check.fault(&self.row) else { return Ok(true) };
        let (path, count) = (self.path.display(), self.count);
        let text = match self.names.get(at) {
            Some(name) => format!("row {count} of {path} has a wrong value in column {name}"),
            None => format!("row {count} of {path} is damaged"),
        };
        Err(err!(INNODB_IMPORT_ERROR, self.shown, CORRUPTION, text))
    }
}

fn unexpected() -> EngineError {
    Error::internal("the rows of a file are only read").into()
}

impl Transaction for FileRows {
    fn start(&mut self, _options: &TxnOptions) -> EngineResult<()> {
        Err(unexpected())
    }

    fn set_lock_wait_timeout(&mut self, _timeout: Duration) {}

    fn is_started(&self) -> bool {
        true
    }

    fn has_written(&self) -> bool {
        false
    }

    fn take_snapshot(&mut self) {}

    fn renew_snapshot(&mut self) {}

    fn begin_statement(&mut self) {}

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(0)
    }

    fn rollback_to(&mut self, _savepoint: Savepoint) -> EngineResult<()> {
        Err(unexpected())
    }

    fn commit(&mut self) -> EngineResult<CommitHandle> {
        Err(unexpected())
    }

    fn rollback(&mut self) -> EngineResult<()> {
        Ok(())
    }

    fn get(
        &mut self,
        _table: TableId,
        _index: IndexId,
        _key: &[u8],
        _lock: RowLock,
        _wait: WaitPolicy,
        _out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        Err(unexpected())
    }

    fn open_cursor(&mut self, _spec: &ScanSpec) -> EngineResult<CursorId> {
        match self.count {
            0 => Ok(CursorId(0)),
            _ => Err(unexpected()),
        }
    }

    fn fetch(
        &mut self,
        _cursor: CursorId,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        self.cancel.check()?;
        let mut fetched = 0;
        let before = batch.size_bytes();
        while fetched < limit && batch.size_bytes() - before < BATCH_BYTES && self.next()? {
            batch.push(&self.count.to_be_bytes(), &self.row);
            fetched += 1;
        }
        Ok(fetched)
    }

    fn close_cursor(&mut self, _cursor: CursorId) {}

    fn unlock_row(&mut self, _table: TableId, _locator: &[u8]) {}

    fn insert(&mut self, _table: TableId, _record: &[u8]) -> EngineResult<()> {
        Err(unexpected())
    }

    fn inserted_locator(&self) -> &[u8] {
        &[]
    }

    fn update(&mut self, _table: TableId, _locator: &[u8], _record: &[u8]) -> EngineResult<()> {
        Err(unexpected())
    }

    fn delete(&mut self, _table: TableId, _locator: &[u8]) -> EngineResult<()> {
        Err(unexpected())
    }

    fn create_table(&mut self, _def: &TableDef) -> EngineResult<()> {
        Err(unexpected())
    }

    fn drop_table(&mut self, _table: TableId) -> EngineResult<()> {
        Err(unexpected())
    }

    fn alter_table(&mut self, _def: &TableDef) -> EngineResult<()> {
        Err(unexpected())
    }

    fn create_index(&mut self, _table: TableId, _index: &IndexDef) -> EngineResult<()> {
        Err(unexpected())
    }

    fn drop_index(&mut self, _table: TableId, _index: IndexId) -> EngineResult<()> {
        Err(unexpected())
    }
}
