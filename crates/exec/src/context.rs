//! A program's input and result.

use std::path::Path;
use std::sync::Arc;

use engine_api::{CancelToken, Engine, EngineIndex, RowBuf, Transaction};
use errors::{Error, Result};
use plan::ExecutionMode;
use plugin_api::{FunctionContext, InformationContext, Registry, RowSource, Statements};
use sys::temporary::TemporaryFiles;
use sys::threads::HelperLimit;

use budget::ConnectionMemory;
use budget::MemoryBudget;
use types::Value;

use crate::buffers::{RunBuffers, SortedRows};
use crate::measure::{ExecCounts, Measure};
use crate::table_work::TableWork;
use crate::watch::RowWatch;

/// The session's transactions, one for each engine that a statement touches.
pub trait TransactionSource {
    /// The transaction in an engine; starts it if necessary.
    ///
    /// # Errors
    /// Unknown engine, or it cannot start.
    fn transaction_at(&mut self, engine: EngineIndex) -> Result<&mut dyn Transaction>;

    /// As `transaction_at`, by name: for changes of definitions, which name their engines.
    ///
    /// # Errors
    /// As `transaction_at`.
    fn transaction(&mut self, engine: &str) -> Result<&mut dyn Transaction>;

    /// The engine itself: AUTO_INCREMENT counters.
    ///
    /// # Errors
    /// Unknown engine.
    fn engine_at(&self, engine: EngineIndex) -> Result<&Arc<dyn Engine>>;

    /// As `engine_at`, by name.
    ///
    /// # Errors
    /// Unknown engine.
    fn engine(&self, engine: &str) -> Result<Arc<dyn Engine>>;
}

/// The rows of a trigger: the columns of the table in record order, then those that are computed when read.
pub struct TriggerRows<'v> {
    /// OLD; empty when the trigger has none.
    pub old: &'v [Value],
    /// NEW; empty when the trigger has none. The row that a BEFORE trigger leaves here is written.
    pub new: &'v mut [Value],
}

/// The parts of its session that a running statement uses: transactions, and the stored programs that its plan names, by their numbers.
///
/// A program runs in the same session while the statement does, so the host of programs owns the transactions as well. Statements
/// without programs run with the transactions alone.
pub trait Host: TransactionSource {
    /// Whether programs may run while the statement does.
    fn has_programs(&self) -> bool {
        false
    }

    /// Runs a trigger for a row.
    ///
    /// # Errors
    /// Any error of the program.
    fn fire(&mut self, _trigger: u32, _rows: TriggerRows<'_>) -> Result<()> {
        Err(Error::internal("a trigger without a host that runs programs"))
    }

    /// Calls a function.
    ///
    /// # Errors
    /// Any error of the program.
    fn call(&mut self, _function: u32, _args: Vec<Value>) -> Result<Value> {
        Err(Error::internal("a stored function without a host that runs programs"))
    }

    /// Who is told of written rows; asked only while `ExecSettings::watches_rows` is set.
    fn row_watch(&mut self) -> Option<&mut dyn RowWatch> {
        None
    }

    /// Moves what `row_watch` keeps to where there is room.
    ///
    /// # Errors
    /// I/O.
    fn relieve_row_watch(&mut self) -> Result<()> {
        Ok(())
    }

    /// Lends the session to a function that runs statements.
    ///
    /// # Errors
    /// Those of `call`; its statements ended the transaction.
    fn lend(&mut self, _call: StatementCall<'_>) -> Result<Value> {
        Err(Error::internal("a function that runs statements without a host that runs programs"))
    }
}

/// The call of a function that runs statements.
pub type StatementCall<'c> = &'c mut dyn FnMut(&mut dyn Statements) -> Result<Value>;

/// Takes result rows.
pub trait RowSink {
    /// A row; it is valid only during the call.
    ///
    /// # Errors
    /// The client is gone.
    fn row(&mut self, row: &dyn RowSource) -> Result<()>;
}

/// Session settings that execution depends on.
#[derive(Clone, Debug)]
pub struct ExecSettings {
    /// Bytes that sorts, hash tables and materialised rows of one statement may hold.
    pub memory_limit_bytes: usize,
    /// Bytes that one sort or hash table may hold before it moves to files.
    pub operator_memory_bytes: usize,
    /// Makes the files, in `tmpdir`.
    pub temporary_files: Arc<TemporaryFiles>,
    /// `cte_max_recursion_depth`.
    pub cte_max_recursion_depth: u64,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// `auto_increment_increment`.
    pub auto_increment_increment: u64,
    /// `auto_increment_offset`.
    pub auto_increment_offset: u64,
    /// `insert_id`, when it was set for this statement: the first generated value.
    pub insert_id: Option<u64>,
    /// Plain reads lock in shared mode: in a SERIALIZABLE transaction of several statements, and the additional reads of statements that
    /// write, from REPEATABLE READ on.
    pub lock_reads: bool,
    /// CLIENT_FOUND_ROWS: an unchanged row of ON DUPLICATE KEY UPDATE counts as 1.
    pub client_found_rows: bool,
    /// `sql_select_limit`.
    pub select_limit: u64,
    /// `execution_mode`.
    pub execution_mode: ExecutionMode,
    /// `parallel_degree`: threads that one scan may use.
    pub parallel_degree: usize,
    /// Somebody may want to be told of written rows.
    pub watches_rows: bool,
    /// `explicit_defaults_for_timestamp` is OFF: NULL for a NOT NULL TIMESTAMP means the present time.
    pub null_timestamp_is_now: bool,
}

impl Default for ExecSettings {
    fn default() -> Self {
        ExecSettings {
            memory_limit_bytes: 1 << 30,
            operator_memory_bytes: 16 << 20,
            temporary_files: Arc::new(TemporaryFiles::new(Path::new("/tmp"), Arc::default())),
            cte_max_recursion_depth: 1000,
            foreign_key_checks: true,
            auto_increment_increment: 1,
            auto_increment_offset: 1,
            insert_id: None,
            lock_reads: false,
            client_found_rows: false,
            select_limit: u64::MAX,
            execution_mode: ExecutionMode::Auto,
            parallel_degree: 1,
            watches_rows: false,
            null_timestamp_is_now: false,
        }
    }
}

/// Memory that a session keeps from statement to statement, so that a warm point statement allocates nothing.
#[derive(Default)]
pub struct ExecScratch {
    pub(crate) registers: Vec<Value>,
    pub(crate) cells: Vec<Value>,
    pub(crate) row: RowBuf,
    pub(crate) key: Vec<u8>,
    pub(crate) sorted: SortedRows,
    pub(crate) run: RunBuffers,
    /// Work since the session last took the counts.
    pub counts: ExecCounts,
    /// Takes the work on tables of the statements that run, while an observer asks for it.
    pub tables: Option<Arc<TableWork>>,
    /// Measures of the last measured run.
    pub measures: Vec<Measure>,
}

impl ExecScratch {
    /// The last row that a walk of the last run took: `Some(None)` when it came to its end, `None` when nothing was walked.
    pub fn take_walked(&mut self) -> Option<Option<RowBuf>> {
        self.run.walked.take()
    }
}

/// The part that a run only reads.
#[derive(Clone, Copy)]
pub struct Environment<'a> {
    /// Information tables.
    pub registry: &'a Registry,
    /// The questions that information tables may ask.
    pub information: &'a dyn InformationContext,
    /// Values of the parameters, each of the type that the plan was made for.
    pub parameters: &'a [Value],
    /// Settings.
    pub settings: &'a ExecSettings,
    /// Stops the statement.
    pub cancel: &'a CancelToken,
    /// Threads that large scans may use in addition to their own.
    pub helpers: &'a HelperLimit,
    /// What all statements may hold.
    pub memory: &'a MemoryBudget,
    /// What the statements of this connection hold.
    pub connection: &'a ConnectionMemory,
}

/// Everything around one run of a program.
pub struct ExecContext<'a> {
    /// Transactions, and programs where the plan names some.
    pub host: &'a mut dyn Host,
    /// The part that the run only reads.
    pub env: Environment<'a>,
    /// SQL mode, zone, clock, warnings, session services.
    pub function: FunctionContext<'a>,
    /// Reused memory.
    pub scratch: &'a mut ExecScratch,
}

/// The effects of a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows sent to the sink.
    pub rows_sent: u64,
    /// Rows that FOUND_ROWS() reports.
    pub found_rows: u64,
    /// Affected rows: inserted, changed or deleted, as the reference counts them. With CLIENT_FOUND_ROWS the session reports
    /// `matched` for UPDATE instead.
    pub affected: u64,
    /// Rows that an UPDATE matched.
    pub matched: u64,
    /// Rows that really changed.
    pub changed: u64,
    /// Rows given to an INSERT, or inserted by an UPDATE of a portion.
    pub records: u64,
    /// Rows of an INSERT that met a duplicate.
    pub duplicates: u64,
    /// The insert id of the OK packet: the first generated value, else the last explicit one.
    pub insert_id: u64,
    /// New value of LAST_INSERT_ID(): the first generated value that was stored.
    pub generated_id: Option<u64>,
    /// `Rows matched: 1  Changed: 1  Warnings: 0` and the like; empty where the reference sends nothing.
    pub info: String,
}
