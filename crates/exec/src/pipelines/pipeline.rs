//! Pipelines: a scan divided among threads, and the stages that process its batches before a sink takes them.

use batch::{
    BATCH_ROWS, Batch, BatchExpr, Column, ColumnReader, Env, ExprCompiler, Facts, Fit, Unfit,
};
use engine_api::{
    CancelToken, EngineIndex, IndexId, KeyContent, KeyRange, RecordBlock, SnapshotReader, TableId,
};
use errors::Diagnostics;
use plan::{Access, BinaryOp, ExecutionMode, Expr, Physical, Register, RowLocking, TableAccess};
use rows::layout::Layout;
use sys::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sys::turns::{Turn, Turns};

use crate::context::Host;
use crate::expr::Code;
use crate::measure::ExecCounts;
use crate::ops::{NodeCompiler, Ranges, hold_much};
use crate::run::Run;

/// A condition on the scanned rows, with the columns that no earlier condition has read.
struct ScanFilter {
    columns: Vec<(usize, ColumnReader)>,
    condition: BatchExpr,
}

/// The scan.
struct Source {
    table: TableId,
    engine: EngineIndex,
    layout: Layout,
    /// The index whose entries are read instead of the rows.
    index: Option<IndexId>,
    /// `None`: the whole table.
    ranges: Option<Ranges>,
    /// If these ranges of an index do not hold much of the table, the row program reads them.
    unless: Option<(IndexId, Ranges)>,
    filters: Vec<ScanFilter>,
    /// Columns that only later steps read.
    columns: Vec<(usize, ColumnReader)>,
}

impl Source {
    /// Counts the rows read for status variables.
    fn count(&self, ranges: u64, rows: u64, counts: &mut ExecCounts) {
        counts.examined += rows;
        counts.read_key += ranges;
        match (&self.ranges, self.index) {
            (None, None) => {
                counts.read_first += 1;
                counts.read_rnd_next += rows + 1;
            }
            (None, Some(_)) => {
                counts.read_first += 1;
                counts.read_next += rows;
            }
            (Some(_), _) => counts.read_next += rows,
        }
    }

    fn reads_columns(&self) -> bool {
        !self.columns.is_empty() || self.filters.iter().any(|filter| !filter.columns.is_empty())
    }

    fn read<'a>(
        &self,
        reader: &ColumnReader,
        records: impl ExactSizeIterator<Item = &'a [u8]>,
    ) -> Fit<Column> {
        match self.index {
            None => reader.read(&self.layout, records),
            Some(_) => reader.read_keys(records),
        }
    }
}

/// A step that processes a batch.
enum Stage {
    Filter(BatchExpr),
    Project(Vec<(usize, BatchExpr)>),
}

/// A compiled pipeline.
pub(crate) struct Pipeline {
    source: Source,
    stages: Vec<Stage>,
    slots: usize,
    constants: Vec<Code>,
}

/// Takes batches on one thread.
pub(crate) trait Sink: Send {
    /// Takes a batch whose first row is at `position` in the scan.
    fn take(&mut self, batch: &Batch, env: &Env<'_>, position: u64) -> Fit<()>;
}

/// Compiles pipelines and their parts.
pub(crate) struct PipelineCompiler<'c, 'a> {
    nodes: &'c mut NodeCompiler<'a>,
    registers: Vec<Register>,
    constants: Vec<Code>,
    defined: plan::RegisterSet,
}

/// Whether an expression may be computed once before the rows are read.
fn is_fixed(expr: &Expr, defined: &plan::RegisterSet, nodes: &NodeCompiler<'_>) -> bool {
    if matches!(expr, Expr::Row(_)) {
        return false;
    }
    let subqueries = nodes.exprs.subqueries;
    let mut read = plan::RegisterSet::new();
    expr.add_registers(
        &|id| subqueries.get(id.0 as usize).map_or(&[], |query| query.outer.as_slice()),
        &mut read,
    );
    let moves = |node: &Expr| match node {
        Expr::UserVariable { .. }
        | Expr::AssignUserVariable { .. }
        | Expr::Stored { .. }
        | Expr::Match { .. }
        | Expr::Row(_) => true,
        Expr::Function { function, .. } => function.is_volatile(),
        _ => false,
    };
    !read.intersects(defined) && !expr.any(&mut |node| moves(node))
}

impl<'c, 'a> PipelineCompiler<'c, 'a> {
    pub(crate) fn new(nodes: &'c mut NodeCompiler<'a>) -> PipelineCompiler<'c, 'a> {
        PipelineCompiler {
            nodes,
            registers: Vec::new(),
            constants: Vec::new(),
            defined: plan::RegisterSet::new(),
        }
    }

    /// The slot of a register that the pipeline sets.
    pub(crate) fn slot(&self, register: Register) -> Option<usize> {
        self.registers.iter().position(|own| *own == register)
    }

    fn define(&mut self, register: Register) -> usize {
        if let Some(slot) = self.slot(register) {
            return slot;
        }
        self.defined.insert(register);
        self.registers.push(register);
        self.registers.len() - 1
    }

    /// `None`: a case for the row program.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Option<BatchExpr> {
        let (registers, constants, defined) = (&self.registers, &mut self.constants, &self.defined);
        let (registry, bind) = (self.nodes.exprs.registry, self.nodes.exprs.bind);
        let nodes = &mut *self.nodes;
        let slot_of = |register| registers.iter().position(|own| *own == register);
        let mut constant = |expr: &Expr| {
            if !is_fixed(expr, defined, nodes) {
                return None;
            }
            constants.push(nodes.exprs.expr(expr).ok()?);
            Some(constants.len() - 1)
        };
        ExprCompiler { slot_of: &slot_of, constant: &mut constant, registry, bind }.expr(expr)
    }

    /// Compiles the scan and the steps up to `plan`; `None` when it has a part that only the row program supports.
    pub(crate) fn pipeline(mut self, plan: &Physical) -> Option<(Self, Parts)> {
        let mut stages = Vec::new();
        let source = self.steps(plan, &mut stages)?;
        Some((self, Parts { source, stages }))
    }

    /// Assembles the parts once everything that reads the pipeline is compiled too.
    pub(crate) fn finish(self, parts: Parts) -> Pipeline {
        Pipeline {
            source: parts.source,
            stages: parts.stages,
            slots: self.registers.len(),
            constants: self.constants,
        }
    }

    fn steps(&mut self, plan: &Physical, stages: &mut Vec<Stage>) -> Option<Source> {
        match plan {
            // A scan that skips rows reads few.
            Physical::Scan { table, .. } if table.firsts.is_some() => None,
            Physical::Scan { table, access, filter } => self.source(table, access, filter.as_ref()),
            Physical::Filter { input, predicate } => {
                let source = self.steps(input, stages)?;
                if !predicate.ty().is_integer() {
                    return None;
                }
                stages.push(Stage::Filter(self.expr(predicate)?));
                Some(source)
            }
            Physical::Project { input, columns } => {
                let source = self.steps(input, stages)?;
                let mut computed = Vec::with_capacity(columns.len());
                for (register, expr) in columns {
                    let expr = self.expr(expr)?;
                    computed.push((self.define(*register), expr));
                }
                stages.push(Stage::Project(computed));
                Some(source)
            }
            _ => None,
        }
    }

    fn source(
        &mut self,
        table: &TableAccess,
        access: &Access,
        filter: Option<&Expr>,
    ) -> Option<Source> {
        if table.locking != RowLocking::None || table.locator.is_some() {
            return None;
        }
        let (Access::Full { index, .. } | Access::Ranges { index, .. }) = access else {
            return None;
        };
        let (index, or_all) = match access {
            Access::Ranges { or_all: true, .. } => (None, Some(IndexId(*index))),
            _ => ((*index != 0).then_some(IndexId(*index)), None),
        };
        if index.is_some() && table.entries.is_none() {
            return None;
        }
        let ranges = match access {
            Access::Full { backward: false, .. } => None,
            // A list of keys is read as such.
            Access::Ranges { ranges, keys: true, .. }
                if ranges.len() > 1 && table.entries.is_none() =>
            {
                return None;
            }
            Access::Ranges { ranges, backward: false, .. } => {
                let ranges = ranges.iter().map(|range| self.nodes.range(range).ok());
                Some(Ranges { ranges: ranges.collect::<Option<_>>()? })
            }
            _ => return None,
        };
        let (ranges, unless) = match or_all {
            Some(index) => (None, Some((index, ranges?))),
            None => (ranges, None),
        };
        let layout = Layout::new(&table.layout, table.missing.to_vec())
            .with_entries(table.entries.as_deref());
        let mut readers = Vec::with_capacity(table.columns.len());
        for (column, register) in &table.columns {
            let reader = ColumnReader::new(&layout, *column)?;
            readers.push((*register, Some(reader)));
            self.define(*register);
        }
        let mut filters = Vec::new();
        let mut conditions = Vec::new();
        filter.into_iter().for_each(|filter| split_and(filter, &mut conditions));
        // Cheap ones first: none of them has a side effect.
        conditions.sort_by_key(|condition| is_costly(condition));
        for condition in conditions {
            if !condition.ty().is_integer() {
                return None;
            }
            let mut read = plan::RegisterSet::new();
            condition.add_registers(&|_| &[], &mut read);
            let columns = self.take_readers(&mut readers, |register| read.contains(register));
            filters.push(ScanFilter { columns, condition: self.expr(condition)? });
        }
        let columns = self.take_readers(&mut readers, |_| true);
        Some(Source {
            table: TableId(table.table),
            engine: self.nodes.exprs.registry.engine_index(&table.engine)?,
            layout,
            index,
            ranges,
            unless,
            filters,
            columns,
        })
    }

    fn take_readers(
        &self,
        readers: &mut [(Register, Option<ColumnReader>)],
        wanted: impl Fn(Register) -> bool,
    ) -> Vec<(usize, ColumnReader)> {
        let wanted = readers.iter_mut().filter(|(register, _)| wanted(*register));
        let taken = wanted.filter_map(|(register, reader)| Some((*register, reader.take()?)));
        taken.filter_map(|(register, reader)| Some((self.slot(register)?, reader))).collect()
    }
}

/// The parts of a pipeline while its sink is compiled.
pub(crate) struct Parts {
    source: Source,
    stages: Vec<Stage>,
}

fn split_and<'e>(expr: &'e Expr, out: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Binary { op: BinaryOp::And, left, right, .. } => {
            split_and(left, out);
            split_and(right, out);
        }
        other => out.push(other),
    }
}

fn is_costly(expr: &Expr) -> bool {
    expr.any(&mut |node| {
        matches!(node, Expr::Like { .. } | Expr::Function { .. }) || node.ty().is_text()
    })
}

/// Pieces into which a scan is divided; each is a morsel for one thread.
const MORSELS: usize = 64;
/// The row program runs a scan of fewer pages, when it may choose.
const PAGES_MIN: usize = 8;
/// A scan of fewer pages runs on one thread.
const PARALLEL_PAGES_MIN: usize = 48;
/// Pages that make a batch, unless their rows suffice earlier.
const BLOCKS_MAX: usize = 16;
/// Bits of a position that count rows within a morsel.
const MORSEL_SHIFT: u32 = 40;

/// State that all threads of a run share.
struct Work<'w> {
    pipeline: &'w Pipeline,
    reader: &'w dyn SnapshotReader,
    morsels: Vec<KeyRange>,
    next: AtomicUsize,
    /// Records read.
    rows: AtomicU64,
    stop: AtomicBool,
    cancel: &'w CancelToken,
    /// Of large scans.
    turns: Option<&'w Turns>,
    constants: &'w [Column],
    facts: Facts<'w>,
}

impl Pipeline {
    /// Runs the pipeline into sinks, one for each thread, which are returned in no order. `ordered`: one thread, in the order of the scan.
    pub(crate) fn run<S: Sink>(
        &self,
        ordered: bool,
        run: &mut Run<'_>,
        new_sink: impl Fn() -> S + Sync,
    ) -> Fit<Vec<S>> {
        // As with the constants.
        let warnings = std::mem::replace(run.function.diagnostics, Diagnostics::new(1));
        let ranges = self.ranges(run);
        let warned = std::mem::replace(run.function.diagnostics, warnings);
        let ranges = ranges?;
        if !warned.is_empty() {
            return Err(Unfit);
        }
        let mode = run.env.settings.execution_mode;
        let facts = Facts::of(&run.function);
        let constants = self.constants(run)?;
        let reader = self.reader(&mut *run.host)?;
        let mut morsels = Vec::new();
        for range in &ranges {
            let parts = MORSELS.div_ceil(ranges.len());
            morsels.extend(reader.split(range, parts).map_err(|_| Unfit)?);
        }
        if mode == ExecutionMode::Auto && morsels.len() < PAGES_MIN {
            return Err(Unfit);
        }
        let is_small = mode == ExecutionMode::Auto && morsels.len() < PARALLEL_PAGES_MIN;
        let threads = match ordered || is_small {
            true => 1,
            false => run.env.settings.parallel_degree.clamp(1, morsels.len().max(1)),
        };
        let turns = (!is_small).then_some(&run.env.helpers.turns);
        // Its own thread takes one of the turns that are free.
        let free = turns.map_or(0, |turns| turns.free().saturating_sub(1));
        let helpers = run.env.helpers.take((threads - 1).min(free));
        let work = Work {
            pipeline: self,
            reader: &*reader,
            morsels,
            next: AtomicUsize::new(0),
            rows: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            cancel: run.env.cancel,
            turns,
            constants: &constants,
            facts,
        };
        let results = sys::threads::together("squall-scan", 1 + helpers.count(), |number| {
            let mut sink = new_sink();
            let done = work.run(&mut sink, number > 0);
            if done.is_err() {
                work.stop.store(true, Ordering::Relaxed);
            }
            done.map(|()| sink)
        });
        drop(helpers);
        let rows = work.rows.load(Ordering::Relaxed);
        self.source.count(ranges.len() as u64, rows, &mut run.counts);
        if let Some(work) = &run.tables {
            work.fetched(self.source.table, self.source.index, rows);
        }
        results.into_iter().collect()
    }

    /// The part of the scanned index to read, if this is a statement for the batch program.
    fn ranges(&self, run: &mut Run<'_>) -> Fit<Vec<KeyRange>> {
        let settings = run.env.settings;
        if settings.execution_mode == ExecutionMode::Row || settings.lock_reads {
            return Err(Unfit);
        }
        if let Some((index, ranges)) = &self.source.unless {
            let ranges = ranges.evaluate(false, run).map_err(|_| Unfit)?;
            let Source { table, engine, .. } = &self.source;
            if !hold_much(*table, *engine, *index, &ranges, run).map_err(|_| Unfit)? {
                return Err(Unfit);
            }
        }
        match &self.source.ranges {
            None => Ok(vec![KeyRange::ALL]),
            Some(ranges) => ranges.evaluate(false, run).map_err(|_| Unfit),
        }
    }

    /// Reads the scanned index at the statement's snapshot, from any thread.
    fn reader<'h>(&self, host: &'h mut dyn Host) -> Fit<Box<dyn SnapshotReader + 'h>> {
        let source = &self.source;
        let transaction = host.transaction_at(source.engine).map_err(|_| Unfit)?;
        let reader = match source.index {
            None => transaction.snapshot_reader(source.table),
            Some(index) => {
                let content = match source.reads_columns() {
                    true => KeyContent::Keys,
                    false => KeyContent::Count,
                };
                transaction.index_reader(source.table, index, content)
            }
        };
        reader.map_err(|_| Unfit)?.ok_or(Unfit)
    }

    /// The constants; the row program handles one that fails or warns.
    fn constants(&self, run: &mut Run<'_>) -> Fit<Vec<Column>> {
        let warnings = run.function.diagnostics.conditions().len();
        let mut columns = Vec::with_capacity(self.constants.len());
        for code in &self.constants {
            let value = code.eval(run).map_err(|_| Unfit)?;
            columns.push(Column::single(&value)?);
        }
        match run.function.diagnostics.conditions().len() == warnings {
            true => Ok(columns),
            false => Err(Unfit),
        }
    }
}

impl Work<'_> {
    /// A turn for the scan's own thread, which waits for one; a helper goes without.
    fn turn(&self, is_helper: bool) -> Fit<Option<Turn<'_>>> {
        let Some(turns) = self.turns else { return Ok(None) };
        match is_helper {
            true => Ok(turns.try_take()),
            false => turns.take(|| self.cancel.check().is_err()).map(Some).ok_or(Unfit),
        }
    }

    fn run<S: Sink>(&self, sink: &mut S, is_helper: bool) -> Fit<()> {
        let mut turn = self.turn(is_helper)?;
        if is_helper && turn.is_none() {
            return Ok(());
        }
        let env = Env::new(self.constants, self.facts);
        let mut blocks: Vec<RecordBlock> = Vec::new();
        loop {
            if is_helper && turn.as_ref().is_some_and(Turn::is_due) {
                // The others go on with what is left.
                return Ok(());
            }
            let morsel = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(range) = self.morsels.get(morsel) else { return Ok(()) };
            let (mut range, mut more) = (range.clone(), true);
            let mut position = (morsel as u64) << MORSEL_SHIFT;
            while more {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(Unfit);
                }
                if !is_helper && turn.as_ref().is_some_and(Turn::is_due) {
                    drop(turn.take());
                    turn = self.turn(is_helper)?;
                }
                let (mut used, mut rows) = (0, 0);
                while more && rows < BATCH_ROWS && used < BLOCKS_MAX {
                    if blocks.len() == used {
                        blocks.push(RecordBlock::new());
                    }
                    let block = &mut blocks[used];
                    more = self.reader.read(&mut range, block).map_err(|_| Unfit)?;
                    rows += block.len();
                    used += 1;
                }
                let batch = self.batch(&blocks[..used], rows, &env)?;
                if batch.rows > 0 {
                    sink.take(&batch, &env, position)?;
                }
                position += rows as u64;
                self.rows.fetch_add(rows as u64, Ordering::Relaxed);
                self.cancel.count_work_together(rows as u64);
            }
        }
    }

    /// A batch of the records that pass, with all stages done.
    fn batch(&self, blocks: &[RecordBlock], rows: usize, env: &Env<'_>) -> Fit<Batch> {
        let source = &self.pipeline.source;
        let mut batch = Batch::new(self.pipeline.slots);
        batch.rows = rows;
        if source.filters.is_empty() {
            for (slot, reader) in &source.columns {
                let records = Records { blocks, block: 0, at: 0, left: rows };
                batch.columns[*slot] = Some(source.read(reader, records)?);
            }
            return self.stages(batch, env);
        }
        let mut records = Vec::with_capacity(rows);
        records.extend(blocks.iter().flat_map(RecordBlock::iter));
        for filter in &source.filters {
            for (slot, reader) in &filter.columns {
                let records = records.iter().copied();
                batch.columns[*slot] = Some(source.read(reader, records)?);
            }
            let selected = filter.condition.selection(&batch, env)?;
            if selected.len() < batch.rows {
                records = selected.iter().map(|row| records[*row as usize]).collect();
                batch.select(&selected)?;
            }
            if batch.rows == 0 {
                return Ok(batch);
            }
        }
        for (slot, reader) in &source.columns {
            let records = records.iter().copied();
            batch.columns[*slot] = Some(source.read(reader, records)?);
        }
        self.stages(batch, env)
    }

    fn stages(&self, mut batch: Batch, env: &Env<'_>) -> Fit<Batch> {
        for stage in &self.pipeline.stages {
            if batch.rows == 0 {
                break;
            }
            match stage {
                Stage::Filter(condition) => {
                    let selected = condition.selection(&batch, env)?;
                    batch.select(&selected)?;
                }
                Stage::Project(columns) => {
                    for (slot, expr) in columns {
                        let column = expr.eval(&batch, env)?.into_column(batch.rows)?;
                        batch.columns[*slot] = Some(column);
                    }
                }
            }
        }
        Ok(batch)
    }
}

/// The records of several blocks.
struct Records<'b> {
    blocks: &'b [RecordBlock],
    block: usize,
    at: usize,
    left: usize,
}

impl<'b> Iterator for Records<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        loop {
            let block = self.blocks.get(self.block)?;
            if self.at < block.len() {
                self.at += 1;
                self.left -= 1;
                return Some(block.record(self.at - 1));
            }
            self.block += 1;
            self.at = 0;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Records<'_> {}
