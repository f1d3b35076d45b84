//! Running SELECT: by a single key, as a plain scan, or through operators.

use engine_api::{IndexId, RowBuf};
use errors::Result;
use plan::{CastKind, Expr, OutputColumn, Physical, QueryPlan};
use types::Value;

use crate::buffers::SortedRows;
use crate::context::{ExecContext, ExecScratch, Outcome, RowSink};
use crate::operator::{Operator, Source};
use crate::ops::{
    AccessNode, Node, NodeCompiler, Scan, ScanNode, Sort, SortInput, SortNode, row_count,
};
use crate::output::{self, ComputedRow, Output, RecordCell, RecordRow};
use crate::run::{Body, Run};

/// A compiled SELECT.
pub(crate) struct QueryProgram {
    pub(crate) body: Body,
    root: Node,
    outputs: Vec<Output>,
    /// Set when every result column is a plain column of the one table scanned.
    cells: Option<Vec<RecordCell>>,
    /// Columns of the sort keys, when the only operation on the scan is a sort by plain columns.
    sort_columns: Option<Vec<usize>>,
}

/// Result columns that are plain columns of `table`, which nothing between scan and result changes.
fn record_cells(root: &Physical, outputs: &[OutputColumn]) -> Option<Vec<RecordCell>> {
    let mut scan = match root {
        Physical::Limit { input, count_all: false, .. } => input,
        other => other,
    };
    if let Physical::Sort { input, .. } = scan {
        scan = input;
        if let Physical::Distinct { input, .. } = scan {
            scan = input;
        }
    }
    let Physical::Scan { table, .. } = scan else { return None };
    let cell = |output: &OutputColumn| {
        let (register, to_local) = match &output.expr {
            Expr::Column { register, .. } => (*register, false),
            Expr::Cast { operand, kind: CastKind::TimestampToLocal, .. } => {
                (operand.as_column()?, true)
            }
            _ => return None,
        };
        let (column, _) = table.columns.iter().find(|(_, have)| *have == register)?;
        Some(RecordCell { column: *column, to_local })
    };
    outputs.iter().map(cell).collect()
}

impl QueryProgram {
    pub(crate) fn compile(
        plan: &QueryPlan,
        compiler: &mut NodeCompiler<'_>,
    ) -> Result<QueryProgram> {
        compiler.all_read = true;
        let root = compiler.node(&plan.root)?;
        let sort = match &root {
            Node::Sort(sort) => Some(sort),
            Node::Limit { input, .. } => match &**input {
                Node::Sort(sort) => Some(sort),
                _ => None,
            },
            _ => None,
        };
        let sort_columns = sort.and_then(|sort| Some(sort.record_keys()?.1));
        let outputs =
            plan.outputs.iter().map(|output| Ok(Output::new(compiler.exprs.expr(&output.expr)?)));
        Ok(QueryProgram {
            root,
            outputs: outputs.collect::<Result<_>>()?,
            cells: record_cells(&plan.root, &plan.outputs),
            sort_columns,
            body: Body::default(),
        })
    }

    pub(crate) fn run(&self, ctx: &mut ExecContext<'_>, sink: &mut dyn RowSink) -> Result<Outcome> {
        let mut buffers = Buffers::take(ctx.scratch);
        let mut run = Run::new(&self.body, ctx);
        let outcome = self.run_with(&mut buffers, &mut run, sink);
        let found_rows = run.found_rows;
        let reusable = run.finish();
        reusable.give_back(ctx.scratch);
        buffers.give_back(ctx.scratch);
        outcome.map(|rows_sent| Outcome {
            rows_sent,
            found_rows: found_rows.unwrap_or(rows_sent),
            ..Outcome::default()
        })
    }

    fn run_with<'r>(
        &'r self,
        buffers: &mut Buffers,
        run: &mut Run<'r>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        let whole = (0, run.env.settings.select_limit);
        match (&self.root, &self.cells) {
            (Node::Scan(scan), Some(cells)) => match &scan.access {
                AccessNode::Unique { index, .. } if whole.1 > 0 => {
                    run_point(scan, *index, cells, buffers, run, sink)
                }
                _ => run_scan(scan, cells, whole, run, sink),
            },
            (Node::Sort(sort), Some(cells)) => {
                self.run_sorted(sort, cells, whole, buffers, run, sink)
            }
            (Node::Limit { input, limit, offset, .. }, Some(cells)) => {
                let limit = row_count(limit.as_ref(), u64::MAX, run)?;
                let offset = row_count(offset.as_ref(), 0, run)?;
                match &**input {
                    Node::Scan(scan) => run_scan(scan, cells, (offset, limit), run, sink),
                    Node::Sort(sort) if self.sort_columns.is_some() => {
                        self.run_sorted(sort, cells, (offset, limit), buffers, run, sink)
                    }
                    _ => self.run_operators(buffers, u64::MAX, run, sink),
                }
            }
            (Node::OneRow, _) if whole.1 > 0 => {
                output::compute(&self.outputs, &mut buffers.cells, run)?;
                sink.row(&ComputedRow::new(&self.outputs, &run.regs, &buffers.cells))?;
                Ok(1)
            }
            (Node::Limit { .. }, None) => self.run_operators(buffers, u64::MAX, run, sink),
            _ => self.run_operators(buffers, whole.1, run, sink),
        }
    }

    /// A sorted scan: cells from the records, while they are few.
    fn run_sorted<'r>(
        &'r self,
        node: &'r SortNode,
        cells: &[RecordCell],
        (offset, limit): (u64, u64),
        buffers: &mut Buffers,
        run: &mut Run<'r>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        let (SortInput::Scan(scan_node), Some(columns)) = (&node.input, &self.sort_columns) else {
            return self.run_operators(buffers, limit, run, sink);
        };
        if limit == 0 {
            return Ok(0);
        }
        let mut scan = Scan::new(scan_node);
        let sorted = &mut buffers.sorted;
        let read = sorted.read((node, columns), (&mut scan, scan_node), run);
        let outcome = match read {
            Ok(true) => {
                scan.close(run);
                send_sorted((node, scan_node), sorted, cells, (offset, limit), run, sink)
            }
            Ok(false) => Sort::resume(node, (scan, scan_node), sorted, run).and_then(|mut sort| {
                let range = (offset, limit);
                let sent = self.send_rest(&mut sort, &mut buffers.cells, range, run, sink);
                sort.close(run);
                sent
            }),
            Err(error) => {
                scan.close(run);
                Err(error)
            }
        };
        sorted.clear(run);
        outcome
    }

    /// Sends the rows of an operator that is open.
    fn send_rest<'r>(
        &'r self,
        operator: &mut dyn Operator<'r>,
        cells: &mut Vec<Value>,
        (mut offset, limit): (u64, u64),
        run: &mut Run<'r>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        let mut sent = 0;
        while sent < limit && operator.next(run)? {
            if offset > 0 {
                offset -= 1;
                continue;
            }
            output::compute(&self.outputs, cells, run)?;
            sink.row(&ComputedRow::new(&self.outputs, &run.regs, cells))?;
            sent += 1;
        }
        Ok(sent)
    }

    fn run_operators<'r>(
        &'r self,
        buffers: &mut Buffers,
        limit: u64,
        run: &mut Run<'r>,
        sink: &mut dyn RowSink,
    ) -> Result<u64> {
        let mut sent = 0;
        if limit == 0 {
            return Ok(0);
        }
        let cells = &mut buffers.cells;
        drive(&self.root, run, &mut |run| {
            output::compute(&self.outputs, cells, run)?;
            sink.row(&ComputedRow::new(&self.outputs, &run.regs, cells))?;
            sent += 1;
            Ok(sent < limit)
        })?;
        Ok(sent)
    }
}

/// Runs operators and gives each row to `each` until it returns false; closes everything in any case.
pub(crate) fn drive<'r>(
    node: &'r dyn Source,
    run: &mut Run<'r>,
    each: &mut dyn FnMut(&mut Run<'r>) -> Result<bool>,
) -> Result<()> {
    let mut operator = node.build();
    let outcome = pull(operator.as_mut(), run, each);
    operator.close(run);
    outcome
}

fn pull<'r>(
    operator: &mut (dyn Operator<'r> + 'r),
    run: &mut Run<'r>,
    each: &mut dyn FnMut(&mut Run<'r>) -> Result<bool>,
) -> Result<()> {
    operator.open(run)?;
    while operator.next(run)? {
        if !each(run)? {
            break;
        }
    }
    Ok(())
}

/// Memory of the session's scratch while a statement uses it.
struct Buffers {
    cells: Vec<Value>,
    key: Vec<u8>,
    row: RowBuf,
    sorted: SortedRows,
}

impl Buffers {
    fn take(scratch: &mut ExecScratch) -> Buffers {
        Buffers {
            cells: std::mem::take(&mut scratch.cells),
            key: std::mem::take(&mut scratch.key),
            row: std::mem::take(&mut scratch.row),
            sorted: std::mem::take(&mut scratch.sorted),
        }
    }

    fn give_back(self, scratch: &mut ExecScratch) {
        scratch.cells = self.cells;
        scratch.key = self.key;
        scratch.row = self.row;
        scratch.sorted = self.sorted;
    }
}

/// One row by a full key: key bytes from parameters, one engine call, cells from the record.
fn run_point(
    scan: &ScanNode,
    index: IndexId,
    cells: &[RecordCell],
    buffers: &mut Buffers,
    run: &mut Run<'_>,
    sink: &mut dyn RowSink,
) -> Result<u64> {
    let AccessNode::Unique { key, .. } = &scan.access else { return Ok(0) };
    buffers.key.clear();
    for part in key {
        if !part.append(run, &mut buffers.key)? {
            return Ok(0);
        }
    }
    let table = &scan.table;
    if !table.get(index, &buffers.key, &mut buffers.row, run)? {
        return Ok(0);
    }
    if scan.filter.is_some() && !table.accept(scan.filter.as_ref(), buffers.row.as_row(), run)? {
        table.refuse(&buffers.row.locator, run)?;
        return Ok(0);
    }
    let record = &buffers.row.record;
    sink.row(&RecordRow {
        layout: &table.layout,
        record,
        cells,
        time_zone: run.function.time_zone,
    })?;
    Ok(1)
}

/// A plain scan: cells from the records, only the filter's columns in registers.
fn run_scan<'r>(
    node: &'r ScanNode,
    cells: &[RecordCell],
    (offset, limit): (u64, u64),
    run: &mut Run<'r>,
    sink: &mut dyn RowSink,
) -> Result<u64> {
    if limit == 0 {
        return Ok(0);
    }
    let mut scan = Scan::new(node);
    let outcome = send_records(&mut scan, node, cells, (offset, limit), run, sink);
    scan.close(run);
    outcome
}

fn send_records<'r>(
    scan: &mut Scan<'r>,
    node: &'r ScanNode,
    cells: &[RecordCell],
    (mut offset, limit): (u64, u64),
    run: &mut Run<'r>,
    sink: &mut dyn RowSink,
) -> Result<u64> {
    let (mut sent, time_zone) = (0, run.function.time_zone);
    scan.open(run)?;
    scan.expect(offset.saturating_add(limit));
    while sent < limit {
        let Some(row) = scan.next_record(run)? else { break };
        if offset > 0 {
            offset -= 1;
            continue;
        }
        let record = row.record;
        sink.row(&RecordRow { layout: &node.table.layout, record, cells, time_zone })?;
        sent += 1;
    }
    Ok(sent)
}

/// Sorts kept records and sends them.
fn send_sorted(
    (node, scan): (&SortNode, &ScanNode),
    sorted: &mut SortedRows,
    cells: &[RecordCell],
    (offset, limit): (u64, u64),
    run: &mut Run<'_>,
    sink: &mut dyn RowSink,
) -> Result<u64> {
    let first = row_count(node.limit.as_ref(), u64::MAX, run)?;
    sorted.sort(node.distinct);
    node.count_sorted(sorted.len().min(usize::try_from(first).unwrap_or(usize::MAX)), run);
    let (time_zone, layout) = (run.function.time_zone, &scan.table.layout);
    let mut sent = 0;
    let wanted = |rows| usize::try_from(rows).unwrap_or(usize::MAX);
    let rows = sorted.records().take(wanted(first));
    for record in rows.skip(wanted(offset)).take(wanted(limit)) {
        sink.row(&RecordRow { layout, record, cells, time_zone })?;
        sent += 1;
    }
    Ok(sent)
}
