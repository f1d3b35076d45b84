//! The state of one run: registers, services, memory account, and values computed once per statement.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use engine_api::{EngineError, EngineIndex, EngineResult, RowLock, TableId, Transaction};
use errors::{Error, Result};
use plan::CteId;
use plugin_api::{FunctionContext, StatementKernel};
use types::Value;

use crate::buffers::RunBuffers;
use crate::context::{Environment, ExecContext, ExecScratch, Host, TriggerRows};
use crate::expr::{Code, InSet, SubqueryState};
use crate::fulltext::Found;
use crate::kept_rows::KeptRows;
use crate::measure::{ExecCounts, Measures};
use crate::operator::Source;
use crate::table_work::TableWork;
use budget::Memory;
use rows::system_partitions::Filled;

/// A subquery, compiled.
pub(crate) struct SubqueryNode {
    pub(crate) root: Box<dyn Source>,
    pub(crate) outputs: Vec<Code>,
    /// Registers of the outer query that it reads.
    pub(crate) outer: Vec<usize>,
}

/// A shared CTE, compiled.
pub(crate) struct CteNode {
    pub(crate) id: CteId,
    pub(crate) root: Box<dyn Source>,
    pub(crate) outputs: Vec<Code>,
}

/// State that every part of a statement shares.
#[derive(Default)]
pub(crate) struct Body {
    pub(crate) subqueries: Vec<SubqueryNode>,
    pub(crate) ctes: Vec<CteNode>,
    pub(crate) registers: usize,
    /// Values computed once per statement.
    pub(crate) once_slots: usize,
    /// Sets of long IN lists.
    pub(crate) set_slots: usize,
    /// Searches of MATCH.
    pub(crate) match_slots: usize,
    /// Operators that are measured: none outside EXPLAIN ANALYZE.
    pub(crate) measured: usize,
}

/// Rows of a CTE.
#[derive(Default)]
pub(crate) struct CteState {
    /// All rows, once computed.
    pub(crate) result: Option<Rc<KeptRows>>,
    /// The last round's rows while the recursive step runs.
    pub(crate) working: Option<Rc<KeptRows>>,
}

/// Values computed once per statement, or remembered from row to row, by the slots that the compiler assigned.
pub(crate) struct Memo<'r> {
    pub(crate) once: Vec<Option<Value>>,
    pub(crate) sets: Vec<Option<Rc<InSet>>>,
    pub(crate) matches: Vec<Option<Rc<Found>>>,
    pub(crate) subqueries: Vec<SubqueryState<'r>>,
    pub(crate) ctes: Vec<CteState>,
}

impl Memo<'_> {
    fn of(body: &Body) -> Self {
        Memo {
            once: empty_slots(body.once_slots),
            sets: empty_slots(body.set_slots),
            matches: empty_slots(body.match_slots),
            subqueries: body.subqueries.iter().map(|_| SubqueryState::default()).collect(),
            ctes: Vec::new(),
        }
    }
}

/// Slots without a value. Most statements have none, and each run of each statement comes here.
fn empty_slots<T: Clone>(count: usize) -> Vec<Option<T>> {
    match count {
        0 => Vec::new(),
        count => vec![None; count],
    }
}

/// Memory that outlives a run.
pub(crate) struct Reusable {
    registers: Vec<Value>,
    buffers: RunBuffers,
    counts: ExecCounts,
    measures: Option<Box<Measures>>,
}

impl Reusable {
    /// Gives the memory back to the session.
    pub(crate) fn give_back(self, scratch: &mut ExecScratch) {
        scratch.registers = self.registers;
        scratch.run = self.buffers;
        scratch.counts.add(&self.counts);
        if let Some(measures) = self.measures {
            scratch.measures = measures.list;
        }
    }
}

/// One run of a program.
pub(crate) struct Run<'r> {
    pub(crate) body: &'r Body,
    pub(crate) regs: Vec<Value>,
    pub(crate) host: &'r mut dyn Host,
    pub(crate) env: Environment<'r>,
    pub(crate) function: FunctionContext<'r>,
    pub(crate) buffers: RunBuffers,
    pub(crate) memory: Memory<'r>,
    pub(crate) memo: Memo<'r>,
    /// How rows read by MATCH are locked: a statement that changes the rows it finds must find their current versions.
    pub(crate) match_lock: RowLock,
    /// A program has failed: no error may be ignored any more.
    pub(crate) program_failed: bool,
    /// The statement changes data without IGNORE: in strict mode some warnings are errors.
    pub(crate) is_strict_write: bool,
    /// The engine has ended the transaction: its cursors are closed, and a request for it would start another.
    pub(crate) is_rolled_back: Cell<bool>,
    /// Tables partitioned by SYSTEM_TIME that have got old rows.
    pub(crate) filled: Vec<(Filled, EngineIndex)>,
    /// Rows that LIMIT cut off but SQL_CALC_FOUND_ROWS counts.
    pub(crate) found_rows: Option<u64>,
    pub(crate) counts: ExecCounts,
    /// Set while EXPLAIN ANALYZE runs the statement.
    pub(crate) measures: Option<Box<Measures>>,
    /// Set while an observer asks for the work on tables.
    pub(crate) tables: Option<Arc<TableWork>>,
    ticks: u32,
}

/// Rows between two checks of the cancel token.
const TICKS_PER_CHECK: u32 = 256;
/// The optimizer's cost of passing on so many rows: about 0.4 each.
const WORK_PER_CHECK: u64 = 102;

impl<'r> Run<'r> {
    pub(crate) fn new<'a: 'r>(body: &'r Body, ctx: &'r mut ExecContext<'a>) -> Run<'r> {
        let mut regs = std::mem::take(&mut ctx.scratch.registers);
        regs.clear();
        regs.resize(body.registers, Value::Null);
        Run {
            body,
            regs,
            host: &mut *ctx.host,
            env: ctx.env,
            function: ctx.function.reborrow(),
            buffers: std::mem::take(&mut ctx.scratch.run),
            memory: Memory::new(
                ctx.env.settings.memory_limit_bytes,
                ctx.env.memory,
                ctx.env.connection,
            ),
            memo: Memo::of(body),
            match_lock: RowLock::None,
            program_failed: false,
            is_rolled_back: Cell::new(false),
            filled: Vec::new(),
            found_rows: None,
            is_strict_write: false,
            counts: ExecCounts::default(),
            measures: match body.measured {
                0 => None,
                count => Some(Box::new(Measures::new(count))),
            },
            tables: ctx.scratch.tables.clone(),
            ticks: 0,
        }
    }

    /// Bytes that one sort or hash table may hold now before it moves to files.
    pub(crate) fn operator_bytes(&self) -> usize {
        self.memory.operator_bytes(self.env.settings.operator_memory_bytes)
    }

    /// Memory that the next statement can reuse.
    pub(crate) fn finish(mut self) -> Reusable {
        for at in 0..self.memo.subqueries.len() {
            if let Some(mut operator) = self.memo.subqueries[at].take_operator() {
                operator.close(&mut self);
            }
        }
        Reusable {
            registers: self.regs,
            buffers: self.buffers,
            counts: self.counts,
            measures: self.measures,
        }
    }

    /// Counts a row that is inserted.
    #[inline]
    pub(crate) fn count_inserted(&mut self, table: TableId) {
        self.counts.write += 1;
        if let Some(work) = &self.tables {
            work.inserted(table);
        }
    }

    /// Counts a row that is updated.
    #[inline]
    pub(crate) fn count_updated(&mut self, table: TableId) {
        self.counts.update += 1;
        if let Some(work) = &self.tables {
            work.updated(table);
        }
    }

    /// Counts a row that is deleted.
    #[inline]
    pub(crate) fn count_deleted(&mut self, table: TableId) {
        self.counts.delete += 1;
        if let Some(work) = &self.tables {
            work.deleted(table);
        }
    }

    /// The transaction in an engine.
    #[inline]
    pub(crate) fn transaction(&mut self, engine: EngineIndex) -> Result<&mut dyn Transaction> {
        self.host.transaction_at(engine)
    }

    /// Runs triggers for a row, one after the other.
    pub(crate) fn fire(
        &mut self,
        triggers: &[u32],
        old: &[Value],
        new: &mut [Value],
    ) -> Result<()> {
        for trigger in triggers {
            let outcome = self.host.fire(*trigger, TriggerRows { old, new: &mut *new });
            self.note_program(&outcome);
            outcome?;
        }
        Ok(())
    }

    /// Calls a stored function.
    pub(crate) fn call(&mut self, function: u32, args: Vec<Value>) -> Result<Value> {
        let outcome = self.host.call(function, args);
        self.note_program(&outcome);
        outcome
    }

    /// Calls a function that runs statements.
    pub(crate) fn call_with_statements(
        &mut self,
        kernel: &StatementKernel,
        args: &[Value],
    ) -> Result<Value> {
        let function = &mut self.function;
        let outcome = self.host.lend(&mut |statements| kernel(function, statements, args));
        self.note_program(&outcome);
        outcome
    }

    /// After a program: the meaning of its failure for the statement.
    fn note_program<T>(&mut self, outcome: &Result<T>) {
        let Err(error) = outcome else { return };
        self.program_failed = true;
        if error.ends_transaction() {
            self.is_rolled_back.set(true);
        }
    }

    /// Words an engine's refusal.
    pub(crate) fn engine<T>(&self, outcome: EngineResult<T>) -> Result<T> {
        outcome.map_err(|error| self.engine_error(error))
    }

    #[cold]
    pub(crate) fn engine_error(&self, error: EngineError) -> Error {
        if error.ends_transaction() {
            self.is_rolled_back.set(true);
        }
        error.into_error(self.env.cancel)
    }

    /// To be called for each row in every loop.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<()> {
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS_PER_CHECK) { self.check() } else { Ok(()) }
    }

    #[cold]
    fn check(&self) -> Result<()> {
        self.env.cancel.count_work(WORK_PER_CHECK);
        self.env.cancel.check()
    }

    /// State of a CTE.
    pub(crate) fn cte(&mut self, id: CteId) -> &mut CteState {
        let at = id.0 as usize;
        if self.memo.ctes.len() <= at {
            self.memo.ctes.resize_with(at + 1, CteState::default);
        }
        &mut self.memo.ctes[at]
    }

    pub(crate) fn set(&mut self, register: usize, value: Value) {
        if let Some(place) = self.regs.get_mut(register) {
            *place = value;
        }
    }
}
