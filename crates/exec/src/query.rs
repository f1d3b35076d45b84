//! Running SELECT: by a single key, as a plain scan, or through operators.

use engine_api::{IndexId, RowBuf};
use errors::Result;
use plan::{CastKind, Expr, OutputColumn, Physical, QueryPlan};
use types::Value;

use crate::context::{ExecContext, ExecScratch, Outcome, RowSink};
use crate::ops::{AccessNode, Node, NodeCompiler, Operator, Scan, ScanNode, build, row_count};
use crate::output::{self, ComputedRow, Output, RecordCell, RecordRow};
use crate::run::{Body, Run};

/// A compiled SELECT.
pub(crate) struct QueryProgram {
    pub(crate) body: Body,
    root: Node,
    outputs: Vec<Output>,
    /// Set when every result column is a plain column of the one table scanned.
    cells: Option<Vec<RecordCell>>,
}

/// Result columns that are plain columns of `table`, which nothing between scan and result changes.
fn record_cells(root: &Physical, outputs: &[OutputColumn]) -> Option<Vec<RecordCell>> {
    let scan = match root {
        Physical::Limit { input, count_all: false, .. } => input,
        other => other,
    };
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
        let root = compiler.node(&plan.root)?;
        let outputs =
            plan.outputs.iter().map(|output| Ok(Output::new(compiler.exprs.expr(&output.expr)?)));
        Ok(QueryProgram {
            root,
            outputs: outputs.collect::<Result<_>>()?,
            cells: record_cells(&plan.root, &plan.outputs),
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
        let whole = (0, run.settings.select_limit);
        match (&self.root, &self.cells) {
            (Node::Scan(scan), Some(cells)) => match &scan.access {
                AccessNode::Unique { index, .. } if whole.1 > 0 => {
                    run_point(scan, *index, cells, buffers, run, sink)
                }
                _ => run_scan(scan, cells, whole, run, sink),
            },
            (Node::Limit { input, limit, offset, .. }, Some(cells)) => {
                let Node::Scan(scan) = &**input else {
                    return self.run_operators(buffers, u64::MAX, run, sink);
                };
                let limit = row_count(limit.as_ref(), u64::MAX, run)?;
                let offset = row_count(offset.as_ref(), 0, run)?;
                run_scan(scan, cells, (offset, limit), run, sink)
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

/// Runs operators and gives each row to `each` until it says stop; closes everything whatever happens.
pub(crate) fn drive<'r>(
    node: &'r Node,
    run: &mut Run<'r>,
    each: &mut dyn FnMut(&mut Run<'r>) -> Result<bool>,
) -> Result<()> {
    let mut operator = build(node);
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
}

impl Buffers {
    fn take(scratch: &mut ExecScratch) -> Buffers {
        Buffers {
            cells: std::mem::take(&mut scratch.cells),
            key: std::mem::take(&mut scratch.key),
            row: std::mem::take(&mut scratch.row),
        }
    }

    fn give_back(self, scratch: &mut ExecScratch) {
        scratch.cells = self.cells;
        scratch.key = self.key;
        scratch.row = self.row;
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
