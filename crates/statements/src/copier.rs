//! The transactions of a program that copies a table's rows while others change them: the rows are read at a snapshot, all or only some,
//! and written in the session's own transaction, or removed there.

use std::sync::Arc;
use std::time::Duration;

use engine_api::{
    CommitHandle, CursorId, Engine, EngineError, EngineIndex, EngineResult, GetOutcome, IndexDef,
    IndexId, NotedPass, RowBatch, RowBuf, RowLock, Savepoint, ScanSpec, TableDef, TableId,
    Transaction, TxnOptions, WaitPolicy,
};
use errors::{Error, Result};
use plugin_api::Registry;

use exec::{Host, TransactionSource};

/// The rows that a run of the program reads, and what it does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Puts all rows into the copy.
    All,
    /// Only those that have been noted as changed.
    Noted(NotedPass),
}

/// One run of the program.
pub struct Copier {
    /// The engine of both tables.
    pub engine: EngineIndex,
    /// Knows the engine.
    pub registry: Arc<Registry>,
    /// The table that is copied.
    pub table: TableId,
    pub work: Work,
    /// Sees the rows that are read.
    pub reader: Box<dyn Transaction>,
    /// Called with the number of rows after each read.
    pub on_rows: Box<dyn FnMut(u64) + Send>,
}

impl Copier {
    /// The program's source of transactions. Rows are written in the one of `transactions`.
    ///
    /// # Errors
    /// Those of `TransactionSource::transaction_at`.
    pub fn around<'t>(
        &'t mut self,
        transactions: &'t mut dyn TransactionSource,
    ) -> Result<Around<'t>> {
        let txn = CopyTransaction {
            copy: transactions.transaction_at(self.engine)?,
            reader: self.reader.as_mut(),
            on_rows: self.on_rows.as_mut(),
            table: self.table,
            work: self.work,
            cursor: None,
            noted: RowBatch::new(),
            next: 0,
            row: RowBuf::default(),
        };
        Ok(Around { engine: self.engine, registry: self.registry.clone(), txn })
    }
}

/// See `Copier::around`.
pub struct Around<'t> {
    engine: EngineIndex,
    registry: Arc<Registry>,
    txn: CopyTransaction<'t>,
}

impl Host for Around<'_> {}

impl TransactionSource for Around<'_> {
    fn transaction_at(&mut self, engine: EngineIndex) -> Result<&mut dyn Transaction> {
        if engine != self.engine {
            return Err(Error::internal("a copy of rows uses one engine"));
        }
        Ok(&mut self.txn)
    }

    fn transaction(&mut self, engine: &str) -> Result<&mut dyn Transaction> {
        let index = self.registry.engine_index(engine);
        self.transaction_at(index.ok_or_else(|| Error::internal("an unknown engine"))?)
    }

    fn engine_at(&self, engine: EngineIndex) -> Result<&Arc<dyn Engine>> {
        let known = self.registry.engine_at(engine);
        known.ok_or_else(|| Error::internal("a plan names an engine that does not exist"))
    }

    fn engine(&self, engine: &str) -> Result<Arc<dyn Engine>> {
        let known = self.registry.engine(engine).cloned();
        known.ok_or_else(|| Error::internal("an unknown engine"))
    }
}

/// The cursor over the copied table's rows.
const OLD_ROWS: CursorId = CursorId(u32::MAX);

struct CopyTransaction<'t> {
    copy: &'t mut dyn Transaction,
    reader: &'t mut dyn Transaction,
    on_rows: &'t mut (dyn FnMut(u64) + Send),
    table: TableId,
    work: Work,
    /// The reader's cursor behind `OLD_ROWS`, when it reads all rows.
    cursor: Option<CursorId>,
    /// Noted rows, and the next of them.
    noted: RowBatch,
    next: usize,
    row: RowBuf,
}

impl CopyTransaction<'_> {
    /// Appends noted rows that the reader sees.
    fn fetch_noted(
        &mut self,
        pass: NotedPass,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let (lock, wait) = (RowLock::None, WaitPolicy::Wait);
        let mut fetched = 0;
        while fetched < limit {
            if self.next == self.noted.len() {
                self.next = 0;
                self.reader.next_noted(self.table, pass, &mut self.noted)?;
                if self.noted.is_empty() {
                    break;
                }
            }
            let key = self.noted.row(self.next).locator;
            self.next += 1;
            let row = &mut self.row;
            let found = self.reader.get(self.table, IndexId::CLUSTERED, key, lock, wait, row)?;
            if found == GetOutcome::Found {
                batch.push(key, &self.row.record);
                fetched += 1;
            }
        }
        Ok(fetched)
    }
}

fn unexpected() -> EngineError {
    Error::internal("a copy of rows does nothing but copy rows").into()
}

impl Transaction for CopyTransaction<'_> {
    fn start(&mut self, _options: &TxnOptions) -> EngineResult<()> {
        Err(unexpected())
    }

    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.copy.set_lock_wait_timeout(timeout);
    }

    fn is_started(&self) -> bool {
        self.copy.is_started()
    }

    fn has_written(&self) -> bool {
        self.copy.has_written()
    }

    fn take_snapshot(&mut self) {}

    fn renew_snapshot(&mut self) {}

    fn begin_statement(&mut self) {}

    fn savepoint(&mut self) -> Savepoint {
        self.copy.savepoint()
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> EngineResult<()> {
        self.copy.rollback_to(savepoint)
    }

    fn commit(&mut self) -> EngineResult<CommitHandle> {
        Err(unexpected())
    }

    fn rollback(&mut self) -> EngineResult<()> {
        Err(unexpected())
    }

    fn get(
        &mut self,
        table: TableId,
        index: IndexId,
        key: &[u8],
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        self.copy.get(table, index, key, lock, wait, out)
    }

    fn open_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId> {
        if spec.table != self.table {
            return self.copy.open_cursor(spec);
        }
        let index = IndexId::CLUSTERED;
        let all = ScanSpec { index, lock: RowLock::None, ..spec.clone() };
        match self.work {
            Work::All => self.cursor = Some(self.reader.open_cursor(&all)?),
            Work::Noted(_) => {}
        }
        Ok(OLD_ROWS)
    }

    fn fetch(
        &mut self,
        cursor: CursorId,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        if cursor != OLD_ROWS {
            return self.copy.fetch(cursor, limit, batch);
        }
        let fetched = match (self.work, self.cursor) {
            (Work::All, Some(cursor)) => self.reader.fetch(cursor, limit, batch),
            (Work::All, None) => Err(unexpected()),
            (Work::Noted(pass), _) => self.fetch_noted(pass, limit, batch),
        };
        (self.on_rows)(fetched.as_ref().map_or(0, |rows| *rows as u64));
        fetched
    }

    fn close_cursor(&mut self, cursor: CursorId) {
        if cursor != OLD_ROWS {
            self.copy.close_cursor(cursor);
        } else if let Some(cursor) = self.cursor.take() {
            self.reader.close_cursor(cursor);
        }
    }

    fn unlock_row(&mut self, table: TableId, locator: &[u8]) {
        if table != self.table {
            self.copy.unlock_row(table, locator);
        }
    }

    fn expect_rows(&mut self, table: TableId) -> EngineResult<()> {
        match self.work {
            Work::All => self.copy.expect_rows(table),
            Work::Noted(_) => Ok(()),
        }
    }

    fn rows_are_over(&mut self) -> EngineResult<()> {
        match self.work {
            Work::All => self.copy.rows_are_over(),
            Work::Noted(_) => Ok(()),
        }
    }

    fn insert(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        match self.work {
            Work::All | Work::Noted(NotedPass::Put) => self.copy.insert(table, record),
            // The same row has the same record as when it was put.
            Work::Noted(NotedPass::Remove) => self.copy.delete_equal(table, record),
        }
    }

    fn inserted_locator(&self) -> &[u8] {
        self.copy.inserted_locator()
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
