//! INSERT and REPLACE.

use engine_api::{
    Direction, EngineIndex, EngineResult, GetOutcome, IndexId, KeyRange, RowBatch, RowBuf, RowLock,
    ScanSpec, TableId, Transaction, WaitPolicy,
};
use errors::{Error, ErrorCode, Result};
use plan::writing::{reads_table, values_read_row};
use plan::{InsertMode, InsertPlan, InsertSource, Physical};
use plugin_api::RowSource;
use rows::convert::implicit_default;
use rows::numbers::{positive, store_id};
use rows::times::Successor;
use types::{SqlMode, Value};

use super::row::{Strictness, default_value, evaluate, not_null, store};
use super::table::{StoreCode, TableCompiler, WriteTable, engines, store_code};
use super::update::{AssignmentCode, assign, assignments, fire_after, replace_row};
use super::watched::insert_row;
use super::{Written, atomically, foreign, history, ignored, written};
use crate::buffers::RecordBuffers;
use crate::context::{ExecContext, Outcome, RowSink};
use crate::kept_rows::{KeptReader, KeptRows};
use crate::ops::{Node, NodeCompiler};
use crate::output::{self, ComputedRow, Output};
use crate::query::drive;
use crate::run::{Body, Run};

/// The source of rows.
enum Source {
    Values(Vec<Vec<Option<StoreCode>>>),
    Query {
        root: Node,
        outputs: Vec<StoreCode>,
        /// The query reads the target: its rows are collected before the first is written.
        buffered: bool,
    },
}

/// The handling of duplicates.
enum Mode {
    Error,
    Ignore,
    Replace,
    Only,
    Update { assignments: Vec<AssignmentCode>, new_columns: Vec<usize> },
}

/// A compiled INSERT.
pub(crate) struct InsertProgram {
    pub(crate) body: Body,
    table: WriteTable,
    related: Vec<WriteTable>,
    engines: Vec<EngineIndex>,
    targets: Vec<usize>,
    /// Columns that get their default because the statement does not name them.
    defaulted: Vec<usize>,
    /// Those of them without a default.
    without_default: Vec<usize>,
    source: Source,
    mode: Mode,
    ignore: bool,
    returning: Vec<Output>,
    /// A value may read another column of the new row.
    reads_row: bool,
    /// Triggers see each row before it is complete.
    fires_before: bool,
}

impl InsertProgram {
    pub(crate) fn compile(
        plan: &InsertPlan,
        compiler: &mut NodeCompiler<'_>,
    ) -> Result<InsertProgram> {
        let tables = TableCompiler::new(std::iter::once(&plan.target));
        let table = tables.table(&plan.target, compiler)?;
        let related = tables.related(compiler)?;
        let source = match &plan.source {
            InsertSource::Values(rows) => Source::Values(
                rows.iter()
                    .map(|row| {
                        row.iter()
                            .map(|value| {
                                value.as_ref().map(|value| store_code(value, compiler)).transpose()
                            })
                            .collect::<Result<Vec<_>>>()
                    })
                    .collect::<Result<_>>()?,
            ),
            InsertSource::Query(query) => {
                let in_subquery = plan
                    .subqueries
                    .iter()
                    .map(|query| &query.root)
                    .chain(plan.ctes.iter().map(|(_, root, _)| root));
                // A materialized input is read to its end before the first row arrives, and keeps its registers.
                let mut reads = !matches!(query.root, Physical::Materialize { .. })
                    && reads_table(&query.root, plan.target.table);
                in_subquery.for_each(|root| reads |= reads_table(root, plan.target.table));
                // Triggers may change what is read.
                compiler.all_read = plan.target.triggers.is_none();
                Source::Query {
                    root: compiler.node(&query.root)?,
                    outputs: query
                        .outputs
                        .iter()
                        .map(|output| store_code(&output.expr, compiler))
                        .collect::<Result<_>>()?,
                    buffered: reads,
                }
            }
        };
        let mode = match &plan.mode {
            InsertMode::Error => Mode::Error,
            InsertMode::Ignore => Mode::Ignore,
            InsertMode::Replace => Mode::Replace,
            InsertMode::Only => Mode::Only,
            InsertMode::Update { assignments: changes, new_columns } => {
                let new_columns: Vec<usize> =
                    new_columns.iter().map(|register| register.0 as usize).collect();
                Mode::Update { assignments: assignments(changes, compiler)?, new_columns }
            }
        };
        let returning = plan
            .returning
            .iter()
            .map(|output| Ok(Output::new(compiler.exprs.expr(&output.expr)?)))
            .collect::<Result<_>>()?;
        let is_defaulted = |column: &usize| {
            !plan.targets.contains(column) && table.columns[*column].generated.is_none()
        };
        let defaulted: Vec<usize> = (0..table.columns.len()).filter(is_defaulted).collect();
        let has_none =
            |at: &usize| table.auto_increment != Some(*at) && table.columns[*at].default.is_none();
        Ok(InsertProgram {
            without_default: defaulted.iter().copied().filter(has_none).collect(),
            engines: engines(std::iter::once(&table).chain(&related)),
            defaulted,
            targets: plan.targets.clone(),
            ignore: plan.ignore || matches!(plan.mode, InsertMode::Ignore),
            reads_row: values_read_row(plan),
            fires_before: table
                .triggers
                .as_deref()
                .is_some_and(|triggers| !triggers.before_insert.is_empty()),
            body: Body::default(),
            source,
            mode,
            returning,
            table,
            related,
        })
    }

    /// Inserts the rows of VALUES for another statement, which does not count them.
    pub(crate) fn insert_once(&self, run: &mut Run<'_>) -> Result<()> {
        let Source::Values(rows) = &self.source else { return Ok(()) };
        let mut nobody = Nobody;
        let mut state = InsertState::new(self, &mut nobody, run);
        state.row_count = Some(rows.len() as u64);
        rows.iter().try_for_each(|row| state.values_row(row, run))
    }

    pub(crate) fn run(&self, ctx: &mut ExecContext<'_>, sink: &mut dyn RowSink) -> Result<Outcome> {
        let mut run = Run::new(&self.body, ctx);
        run.is_strict_write = !self.ignore;
        let mut state = InsertState::new(self, sink, &run);
        state.buffers = std::mem::take(&mut run.buffers.records);
        let result = atomically(&self.engines, &mut run, |run| state.insert_all(run));
        run.buffers.records = std::mem::take(&mut state.buffers);
        let mut outcome = std::mem::take(&mut state.outcome);
        outcome.generated_id = state.generated_id;
        outcome.insert_id = state.generated_id.or(state.explicit_id).unwrap_or(0);
        let warnings = run.function.diagnostics.warning_count();
        run.finish().give_back(ctx.scratch);
        result?;
        let single = matches!(&self.source, Source::Values(rows) if rows.len() == 1);
        if !single {
            let duplicates = match self.mode {
                Mode::Error | Mode::Ignore | Mode::Only => outcome.records - outcome.affected,
                Mode::Replace | Mode::Update { .. } => outcome.duplicates,
            };
            outcome.info = format!(
                "Records: {}  Duplicates: {duplicates}  Warnings: {warnings}",
                outcome.records
            );
        }
        Ok(outcome)
    }
}

/// Of rows that another statement inserts nobody is told.
struct Nobody;

impl RowSink for Nobody {
    fn row(&mut self, _row: &dyn RowSource) -> Result<()> {
        Ok(())
    }
}

/// The result for the row that conflicts with a new one.
enum Replaced {
    Deleted,
    /// It is the new row.
    Same,
    /// It disappeared in the meantime.
    Gone,
}

/// AUTO_INCREMENT values drawn in advance.
#[derive(Default)]
struct Reserved {
    next: u64,
    left: u64,
    /// Values to draw next time, when the number of rows is not known.
    batch: u64,
}

/// The largest number of values that are drawn at once for rows whose number is not known.
const RESERVE_MAX: u64 = 65_535;

struct InsertState<'p, 's> {
    program: &'p InsertProgram,
    sink: &'s mut dyn RowSink,
    outcome: Outcome,
    strictness: Strictness,
    /// Number of the row, from 1.
    row: u64,
    /// Rows of the statement, when known.
    row_count: Option<u64>,
    reserved: Reserved,
    /// Value that was generated for this row.
    row_generated: Option<u64>,
    generated_id: Option<u64>,
    explicit_id: Option<u64>,
    forced_id: Option<u64>,
    buffers: RecordBuffers,
    found: RowBuf,
    cells: Vec<Value>,
    /// Columns of this row whose default reads other columns.
    late: Vec<usize>,
    /// Columns of this row without a value and a default, when triggers may give them one.
    unset: Vec<usize>,
}

impl<'p, 's> InsertState<'p, 's> {
    fn new(
        program: &'p InsertProgram,
        sink: &'s mut dyn RowSink,
        run: &Run<'_>,
    ) -> InsertState<'p, 's> {
        let mut strictness = Strictness::of(run, program.ignore);
        if let Source::Values(rows) = &program.source
            && rows.len() == 1
            && !program.ignore
        {
            strictness.null_is_error = true;
        }
        InsertState {
            program,
            sink,
            outcome: Outcome::default(),
            strictness,
            row: 0,
            row_count: None,
            reserved: Reserved::default(),
            row_generated: None,
            generated_id: None,
            explicit_id: None,
            forced_id: run.env.settings.insert_id,
            late: Vec::new(),
            unset: Vec::new(),
            buffers: RecordBuffers::default(),
            found: RowBuf::default(),
            cells: Vec::new(),
        }
    }

    fn insert_all<'r>(&mut self, run: &mut Run<'r>) -> Result<()>
    where
        'p: 'r,
    {
        if !self.may_hold_back(run) {
            return self.insert_each(run);
        }
        let engine = self.program.table.engine;
        run.transaction(engine)?.hold_back_inserts();
        self.insert_each(run)?;
        let sent = run.transaction(engine)?.send_inserts();
        match written(sent, run)? {
            Written::Done => Ok(()),
            Written::Duplicate { index, .. } => Err(self.refused(index, run)),
        }
    }

    /// Whether the engine may hold rows back: nobody looks at them before the end, and the first that is refused ends the statement.
    fn may_hold_back(&self, run: &Run<'_>) -> bool {
        let program = self.program;
        let is_one = matches!(&program.source, Source::Values(rows) if rows.len() == 1);
        !is_one
            && matches!(program.mode, Mode::Error)
            && program.returning.is_empty()
            && program.table.is_plain
            && !run.env.settings.watches_rows
            && !run.host.has_programs()
    }

    /// 1062 for a row that may have been held back.
    #[cold]
    fn refused(&self, index: IndexId, run: &mut Run<'_>) -> Error {
        let table = &self.program.table;
        let record = match run.transaction(table.engine) {
            Ok(transaction) => transaction.refused_record(),
            Err(error) => return error,
        };
        match record.map(|record| table.load(&record, run)) {
            Some(Err(error)) => error,
            Some(Ok(())) | None => table.duplicate(index, run),
        }
    }

    fn insert_each<'r>(&mut self, run: &mut Run<'r>) -> Result<()>
    where
        'p: 'r,
    {
        match &self.program.source {
            Source::Values(rows) => {
                self.row_count = Some(rows.len() as u64);
                for row in rows {
                    run.tick()?;
                    self.values_row(row, run)?;
                }
                Ok(())
            }
            Source::Query { root, outputs, buffered: false } => {
                self.expect_rows(run)?;
                drive(root, run, &mut |run| {
                    self.query_row(outputs, run)?;
                    Ok(true)
                })?;
                self.rows_are_over(run)
            }
            Source::Query { root, outputs, buffered: true } => {
                self.buffered_rows(root, outputs, run)?;
                self.rows_are_over(run)
            }
        }
    }

    /// The number of rows is not known: the engine may store many at once.
    fn expect_rows(&self, run: &mut Run<'_>) -> Result<()> {
        let table = &self.program.table;
        if run.host.has_programs() || !table.is_plain {
            // A program may look for earlier rows, and other tables are written in between.
            return Ok(());
        }
        let expected = run.transaction(table.engine)?.expect_rows(table.id);
        run.engine(expected)
    }

    fn rows_are_over(&self, run: &mut Run<'_>) -> Result<()> {
        if run.host.has_programs() || !self.program.table.is_plain {
            return Ok(());
        }
        let stored = run.transaction(self.program.table.engine)?.rows_are_over();
        run.engine(stored)
    }

    fn buffered_rows<'r>(
        &mut self,
        root: &'r Node,
        outputs: &[StoreCode],
        run: &mut Run<'r>,
    ) -> Result<()> {
        let mut rows = KeptRows::new(outputs.len());
        let mut values = Vec::with_capacity(outputs.len());
        drive(root, run, &mut |run| {
            values.clear();
            for output in outputs {
                values.push(output.code.eval(run)?);
            }
            rows.push_values(&mut values.drain(..), run)?;
            Ok(true)
        })?;
        rows.end(run)?;
        self.row_count = Some(rows.len());
        self.expect_rows(run)?;
        let mut reader = KeptReader::default();
        while let Some(row) = reader.next(&rows)? {
            run.tick()?;
            self.begin_row(run)?;
            for (at, (value, output)) in row.iter().zip(outputs).enumerate() {
                self.take_value(at, value, output, run)?;
            }
            self.finish_row(run)?;
        }
        rows.clear(run);
        Ok(())
    }

    fn query_row(&mut self, outputs: &[StoreCode], run: &mut Run<'_>) -> Result<()> {
        self.begin_row(run)?;
        for (at, output) in outputs.iter().enumerate() {
            let value = output.code.eval(run)?;
            self.take_value(at, &value, output, run)?;
        }
        self.finish_row(run)
    }

    fn take_value(
        &mut self,
        at: usize,
        value: &Value,
        source: &StoreCode,
        run: &mut Run<'_>,
    ) -> Result<()> {
        let column = &self.program.table.columns[self.program.targets[at]];
        let mode = self.strictness.mode;
        let value = store(value, &source.from, source.is_utc, column, self.row, mode, run)?;
        run.regs[column.register] = self.accept(at, value, run)?;
        Ok(())
    }

    fn values_row(&mut self, row: &[Option<StoreCode>], run: &mut Run<'_>) -> Result<()> {
        self.begin_row(run)?;
        let (program, number, strictness) = (self.program, self.row, self.strictness);
        for (at, code) in row.iter().enumerate() {
            let column = &program.table.columns[program.targets[at]];
            if column.generated.is_some() {
                if code.is_some() {
                    return Err(Error::with(
                        ErrorCode::NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN,
                        &[&column.name, &""],
                    ));
                }
                continue;
            }
            let value = match code {
                Some(code) => evaluate(code, column, number, strictness.mode, run)?,
                None if program.table.auto_increment == Some(program.targets[at]) => Value::Null,
                None if column.late_default => {
                    self.late.push(program.targets[at]);
                    continue;
                }
                None if column.default.is_none() && program.fires_before => {
                    self.unset.push(program.targets[at]);
                    Value::Null
                }
                None => default_value(column, number, strictness, run)?,
            };
            run.regs[column.register] = self.accept(at, value, run)?;
        }
        self.finish_row(run)
    }

    /// NOT NULL, except that a NULL in an AUTO_INCREMENT column requests a value.
    fn accept(&mut self, at: usize, value: Value, run: &mut Run<'_>) -> Result<Value> {
        let column = self.program.targets[at];
        if self.program.table.auto_increment == Some(column) || self.program.fires_before {
            return Ok(value);
        }
        not_null(value, &self.program.table.columns[column], self.strictness, run)
    }

    /// Defaults for all columns that need one before the values are computed.
    fn begin_row(&mut self, run: &mut Run<'_>) -> Result<()> {
        self.row += 1;
        self.late.clear();
        self.unset.clear();
        self.outcome.records += 1;
        let (program, row, strictness) = (self.program, self.row, self.strictness);
        if program.reads_row {
            // A value may read a column without a value so far: it reads the default.
            for target in &program.targets {
                let column = &program.table.columns[*target];
                run.regs[column.register] = match &column.default {
                    Some(default) if !column.late_default => {
                        evaluate(default, column, row, strictness.mode, run)?
                    }
                    _ if !column.ty.nullable => implicit_default(&column.ty),
                    _ => Value::Null,
                };
            }
        }
        for target in &program.defaulted {
            let column = &program.table.columns[*target];
            if column.late_default {
                self.late.push(*target);
                continue;
            }
            run.regs[column.register] = if program.table.auto_increment == Some(*target) {
                Value::Null
            } else if column.default.is_none() && program.fires_before {
                self.unset.push(*target);
                Value::Null
            } else if column.default.is_none() {
                // The error is raised once the values are computed.
                implicit_default(&column.ty)
            } else {
                default_value(column, row, strictness, run)?
            };
        }
        Ok(())
    }

    /// 1364 for columns that the statement omits and that have no default.
    fn check_left_out(&self, run: &mut Run<'_>) -> Result<()> {
        for at in &self.program.without_default {
            let column = &self.program.table.columns[*at];
            run.regs[column.register] = default_value(column, self.row, self.strictness, run)?;
        }
        Ok(())
    }

    /// The row is in the registers, except generated columns.
    fn finish_row(&mut self, run: &mut Run<'_>) -> Result<()> {
        if self.program.fires_before {
            self.fire_before(run)?;
        } else {
            self.check_left_out(run)?;
        }
        match self.write_row(run) {
            Err(error) if self.program.ignore && ignored(&error, run) => {
                self.give_back_id(run);
                let uncounted = [
                    ErrorCode::VIEW_CHECK_FAILED,
                    ErrorCode::NO_REFERENCED_ROW_2,
                    ErrorCode::CHECK_CONSTRAINT_VIOLATED,
                ];
                if uncounted.contains(&error.code()) {
                    // The reference counts such a row neither as a record nor as a duplicate.
                    self.outcome.records -= 1;
                }
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// BEFORE INSERT. The triggers see NULL where no value was given, and 0 where one will be generated.
    fn fire_before(&mut self, run: &mut Run<'_>) -> Result<()> {
        let program = self.program;
        let table = &program.table;
        self.compute_late(run)?;
        let mut row = std::mem::take(&mut self.buffers.new_row);
        table.row_before(self.row, &mut row, run)?;
        let id = table.auto_increment.filter(|at| row[*at].is_null());
        let unset = id.and_then(|at| store_id(0, &table.columns[at].ty));
        if let (Some(at), Some(unset)) = (id, &unset) {
            row[at] = unset.clone();
        }
        let triggers = table.triggers.as_deref().map_or(&[][..], |all| &all.before_insert);
        run.fire(triggers, &[], &mut row)?;
        if let (Some(at), Some(unset)) = (id, unset)
            && row[at] == unset
        {
            row[at] = Value::Null;
        }
        table.take_row(&mut row, run);
        self.buffers.new_row = row;
        for column in self.unset.iter().map(|at| &table.columns[*at]) {
            if run.regs[column.register].is_null() && !column.ty.nullable {
                run.regs[column.register] = default_value(column, self.row, self.strictness, run)?;
            }
        }
        for (at, column) in table.columns.iter().enumerate() {
            if table.auto_increment != Some(at) && column.generated.is_none() {
                let value = std::mem::replace(&mut run.regs[column.register], Value::Null);
                run.regs[column.register] = not_null(value, column, self.strictness, run)?;
            }
        }
        Ok(())
    }

    /// AFTER INSERT of the row in the registers.
    fn fire_after_insert(&mut self, run: &mut Run<'_>) -> Result<()> {
        let table = &self.program.table;
        let after = table.triggers.as_deref().map_or(&[][..], |all| &all.after_insert);
        if after.is_empty() {
            return Ok(());
        }
        table.row(self.row, &mut self.buffers.new_row, run)?;
        run.fire(after, &[], &mut self.buffers.new_row)
    }

    /// Defaults that read other columns.
    fn compute_late(&mut self, run: &mut Run<'_>) -> Result<()> {
        let table = &self.program.table;
        self.late.sort_unstable();
        for column in self.late.iter().map(|column| &table.columns[*column]) {
            let value = default_value(column, self.row, self.strictness, run)?;
            run.regs[column.register] = not_null(value, column, self.strictness, run)?;
        }
        self.late.clear();
        Ok(())
    }

    /// The row was skipped: the next one takes the id that was generated for it.
    fn give_back_id(&mut self, run: &Run<'_>) {
        let step = run.env.settings.auto_increment_increment.max(1);
        if let Some(id) = self.row_generated.take()
            && self.reserved.next == id.saturating_add(step)
        {
            self.reserved.next = id;
            self.reserved.left += 1;
        }
    }

    fn write_row(&mut self, run: &mut Run<'_>) -> Result<()> {
        let program = self.program;
        let table = &program.table;
        self.row_generated = None;
        history::begin(table, &program.targets, run);
        if table.id_is_read {
            self.auto_increment(run)?;
            self.check_row(run)?;
        } else {
            // A refused row takes no value.
            self.check_row(run)?;
            self.auto_increment(run)?;
        }
        table.encode(&mut self.buffers.new, &mut self.buffers.record, run)?;
        self.store_row(run)?;
        if !program.returning.is_empty() {
            output::compute(&program.returning, &mut self.cells, run)?;
            self.sink.row(&ComputedRow::new(&program.returning, &run.regs, &self.cells))?;
            self.outcome.rows_sent += 1;
        }
        Ok(())
    }

    /// Computes columns that depend on others, and refuses rows that violate CHECK, views and foreign keys.
    fn check_row(&mut self, run: &mut Run<'_>) -> Result<()> {
        let program = self.program;
        let table = &program.table;
        if !self.late.is_empty() {
            self.compute_late(run)?;
        }
        table.generate(self.row, self.strictness, run)?;
        table.check(run)?;
        if !table.parents.is_empty() {
            table.values_for_keys(&mut self.buffers.new, run);
            foreign::check_parents(table, &program.related, None, &self.buffers.new, run)?;
        }
        Ok(())
    }

    fn store_row(&mut self, run: &mut Run<'_>) -> Result<()> {
        let program = self.program;
        let table = &program.table;
        let mut deleted = 0;
        loop {
            run.count_inserted(table.id);
            let record = &self.buffers.record;
            let insert = |transaction: &mut dyn Transaction| match program.mode {
                Mode::Error | Mode::Ignore => transaction.insert(table.id, record),
                Mode::Only => put_only_row(transaction, table.id, record),
                Mode::Replace | Mode::Update { .. } => transaction.insert_or_lock(table.id, record),
            };
            let (index, locator) = match insert_row(table, record, insert, run)? {
                Written::Done => {
                    self.outcome.affected += 1 + deleted;
                    self.outcome.duplicates += deleted;
                    self.note_id(run);
                    return self.fire_after_insert(run);
                }
                Written::Duplicate { index, locator } => (index, locator),
            };
            match &program.mode {
                // It will only be counted.
                Mode::Ignore if run.function.diagnostics.is_full() && !run.program_failed => {
                    return Err(Error::new(ErrorCode::DUP_ENTRY, ""));
                }
                Mode::Error | Mode::Ignore | Mode::Only => return Err(self.refused(index, run)),
                // No row is replaced because its number was made again: the numbers of the type are used up.
                Mode::Replace if self.row_generated.is_some() && table.is_numbered_by(index) => {
                    return Err(self.refused(index, run));
                }
                Mode::Replace => match self.delete_old(index, &locator, run)? {
                    Replaced::Same => {
                        self.outcome.affected += 1 + deleted;
                        self.outcome.duplicates += deleted;
                        self.note_id(run);
                        return self.fire_after_insert(run);
                    }
                    Replaced::Deleted => deleted += 1,
                    Replaced::Gone => {}
                },
                Mode::Update { assignments, new_columns } => {
                    if self.update_old(&locator, assignments, new_columns, run)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads the conflicting row and locks it; false when it disappeared in the meantime.
    fn read_old(&mut self, locator: &[u8], run: &mut Run<'_>) -> Result<bool> {
        let table = &self.program.table;
        let transaction = run.transaction(table.engine)?;
        let (lock, wait) = (RowLock::Exclusive, WaitPolicy::Wait);
        let outcome =
            transaction.get(table.id, IndexId::CLUSTERED, locator, lock, wait, &mut self.found);
        Ok(run.engine(outcome)? == GetOutcome::Found)
    }

    /// REPLACE: removes the conflicting row, unless it is the new one and no row refers to it.
    fn delete_old(
        &mut self,
        index: IndexId,
        locator: &[u8],
        run: &mut Run<'_>,
    ) -> Result<Replaced> {
        if !self.read_old(locator, run)? {
            return Ok(Replaced::Gone);
        }
        let table = &self.program.table;
        let triggers = table.triggers.as_deref();
        let fires = triggers
            .is_some_and(|all| !(all.before_delete.is_empty() && all.after_delete.is_empty()));
        if table.last_unique == Some(index)
            && table.children.is_empty()
            && !fires
            && self.found.record == self.buffers.record
        {
            return Ok(Replaced::Same);
        }
        let mut seen = Vec::new();
        if let Some(triggers) = triggers.filter(|_| fires) {
            let old = table.layout.decode_all(&self.found.record)?;
            seen = table.row_apart(old, self.row, run)?;
            run.fire(&triggers.before_delete, &seen, &mut [])?;
        }
        if !table.children.is_empty() {
            let old = table.layout.decode_all(&self.found.record)?;
            let path = foreign::Path::new(table, locator);
            let new = table.layout.decode_all(&self.buffers.record)?;
            let fate = foreign::Fate::Replaced(&new);
            foreign::handle_children(table, &self.program.related, &path, &old, fate, run)?;
        }
        run.count_deleted(table.id);
        let mut old = Vec::new();
        if table.history.is_some() {
            table.layout.decode_into(&self.found.record, &mut old)?;
        }
        if !history::remove_row(table, locator, &old, Successor::Another, run)? {
            return Ok(Replaced::Gone);
        }
        if let Some(triggers) = triggers.filter(|_| fires) {
            run.fire(&triggers.after_delete, &seen, &mut [])?;
        }
        Ok(Replaced::Deleted)
    }

    /// ON DUPLICATE KEY UPDATE; false when the conflicting row is gone and the insert can be tried again.
    fn update_old(
        &mut self,
        locator: &[u8],
        assignments: &[AssignmentCode],
        new_columns: &[usize],
        run: &mut Run<'_>,
    ) -> Result<bool> {
        if !self.read_old(locator, run)? {
            return Ok(false);
        }
        let table = &self.program.table;
        for (register, column) in new_columns.iter().zip(&table.columns) {
            let value = run.regs[column.register].clone();
            run.set(*register, value);
        }
        table.load(&self.found.record, run)?;
        let strictness = Strictness::of(run, self.program.ignore);
        let mut buffers = std::mem::take(&mut self.buffers);
        let changed = assign(table, assignments, self.row, strictness, &mut buffers, run);
        let outcome = match changed {
            Ok(true) => {
                replace_row(table, &self.program.related, locator, &buffers, run).map(|()| true)
            }
            other => other,
        };
        let outcome = outcome
            .and_then(|changed| fire_after(table, self.row, &mut buffers, run).map(|()| changed));
        self.buffers = buffers;
        if outcome? {
            self.outcome.affected += 2;
            self.outcome.duplicates += 1;
            raise_counter(table, run)?;
            // The OK packet names the row that was changed.
            self.give_back_id(run);
            self.note_id(run);
        } else {
            self.give_back_id(run);
            self.outcome.affected += u64::from(run.env.settings.client_found_rows);
        }
        Ok(true)
    }

    /// The row was stored: its id counts.
    fn note_id(&mut self, run: &Run<'_>) {
        let table = &self.program.table;
        let Some(column) = table.auto_increment else { return };
        match self.row_generated {
            Some(id) => self.generated_id = self.generated_id.or(Some(id)),
            None => {
                self.explicit_id = match run.regs[table.columns[column].register] {
                    // A negative value is sent in the bits of an unsigned one.
                    Value::Int(value) => Some(value as u64),
                    ref value => positive(value).or(self.explicit_id),
                };
            }
        }
    }

    /// Generates a value for NULL or 0; another value advances the counter.
    fn auto_increment(&mut self, run: &mut Run<'_>) -> Result<()> {
        let table = &self.program.table;
        let Some(column) = table.auto_increment.map(|at| &table.columns[at]) else {
            return Ok(());
        };
        let value = &run.regs[column.register];
        let is_zero = matches!(value, Value::Int(0) | Value::UInt(0))
            || matches!(value, Value::Double(number) if *number == 0.0);
        let zero_asks = !run.function.sql_mode.contains(SqlMode::NO_AUTO_VALUE_ON_ZERO);
        if !(value.is_null() || is_zero && zero_asks) {
            if let Some(value) = positive(value) {
                self.explicit_value(value, run)?;
            }
            return Ok(());
        }
        let id = self.next_id(run)?;
        // After the last value of the type, the last one is returned again, and is a duplicate.
        let high = column.ty.integer_range().map_or(u64::MAX, |(_, high)| high);
        self.row_generated = Some(id.min(high));
        run.regs[column.register] = match store_id(id.min(high), &column.ty) {
            Some(stored) if id <= high || high < i64::MAX as u64 => stored,
            _ => return Err(Error::with(ErrorCode::AUTOINC_READ_FAILED, &[])),
        };
        Ok(())
    }

    fn explicit_value(&mut self, value: u64, run: &mut Run<'_>) -> Result<()> {
        let table = &self.program.table;
        let raised = run.host.engine_at(table.engine)?.auto_increment_raise(table.id, value);
        run.engine(raised)?;
        let step = run.env.settings.auto_increment_increment.max(1);
        while self.reserved.left > 0 && self.reserved.next <= value {
            self.reserved.next = self.reserved.next.saturating_add(step);
            self.reserved.left -= 1;
        }
        Ok(())
    }

    fn next_id(&mut self, run: &mut Run<'_>) -> Result<u64> {
        let table = &self.program.table;
        let settings = run.env.settings;
        if let Some(forced) = self.forced_id.take() {
            self.explicit_value(forced, run)?;
            return Ok(forced);
        }
        let step = settings.auto_increment_increment.max(1);
        if self.reserved.left == 0 {
            let count = match self.row_count {
                // As many as the statement has rows, whatever value the first of them has.
                Some(rows) => rows.max(1),
                None => (self.reserved.batch * 2).clamp(1, RESERVE_MAX),
            };
            let engine = run.host.engine_at(table.engine)?;
            let offset = settings.auto_increment_offset;
            let first = engine.auto_increment_reserve(table.id, count, step, offset);
            self.reserved = Reserved { next: run.engine(first)?, left: count, batch: count };
        }
        let id = self.reserved.next;
        self.reserved.next = id.saturating_add(step);
        self.reserved.left -= 1;
        Ok(id)
    }
}

/// An update may have moved the AUTO_INCREMENT column beyond the counter.
pub(crate) fn raise_counter(table: &WriteTable, run: &mut Run<'_>) -> Result<()> {
    if let Some(column) = table.auto_increment
        && let Some(value) = positive(&run.regs[table.columns[column].register])
    {
        let raised = run.host.engine_at(table.engine)?.auto_increment_raise(table.id, value);
        run.engine(raised)?;
    }
    Ok(())
}

/// The only row of a table gives its place to another one.
#[cold]
fn put_only_row(
    transaction: &mut dyn Transaction,
    table: TableId,
    record: &[u8],
) -> EngineResult<()> {
    let spec = ScanSpec {
        table,
        index: IndexId::CLUSTERED,
        range: KeyRange::ALL,
        direction: Direction::Forward,
        lock: RowLock::Exclusive,
        wait: WaitPolicy::Wait,
    };
    let cursor = transaction.open_cursor(&spec)?;
    let mut rows = RowBatch::new();
    let found = transaction.fetch(cursor, 2, &mut rows);
    transaction.close_cursor(cursor);
    found?;
    rows.iter().try_for_each(|row| transaction.delete(table, row.locator))?;
    transaction.insert(table, record)
}
