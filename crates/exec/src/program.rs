//! The compiled statement.

use std::sync::Arc;

use errors::Result;
use plan::{CteId, Expr, Making, OutputColumn, Physical, Plan, Subquery};
use plugin_api::{BindContext, ColumnMeta, Computed, Registry, ValueRow};
use types::Value;

use crate::context::{ExecContext, Outcome, RowSink};
use crate::expr::{Code, Compiler};
use crate::measure::{MeasuredNodes, Measuring};
use crate::ops::NodeCompiler;
use crate::query::QueryProgram;
use crate::run::{Body, CteNode, Run, SubqueryNode};
use crate::write::{DeleteProgram, InsertProgram, UpdateProgram};

/// A compiled statement: immutable, shared by the plan cache.
pub struct Program {
    columns: Arc<[ColumnMeta]>,
    kind: Kind,
}

enum Kind {
    Query(Box<QueryProgram>),
    Insert(Box<InsertProgram>),
    Update(Box<UpdateProgram>),
    Delete(Box<DeleteProgram>),
    Do { body: Body, exprs: Vec<Code> },
    Rows(Vec<Vec<Value>>),
}

/// The parts that all plans share.
struct Shared<'p> {
    subqueries: &'p [Subquery],
    ctes: &'p [(CteId, Physical, Vec<Expr>)],
    registers: u32,
}

macro_rules! shared {
    ($plan:expr) => {
        Shared { subqueries: &$plan.subqueries, ctes: &$plan.ctes, registers: $plan.registers }
    };
}

/// Metadata of result columns.
fn metas(columns: &[OutputColumn]) -> Vec<ColumnMeta> {
    let meta = |column: &OutputColumn| {
        let mut meta = ColumnMeta::computed(&column.name, column.expr.ty());
        meta.name = column.name.clone();
        if let Some(source) = &column.source {
            meta.schema = source.schema.clone();
            meta.table = source.table.clone();
            meta.org_table = source.org_table.clone();
            meta.org_name = source.org_name.clone();
            meta.primary_key = source.primary_key;
            meta.unique_key = source.unique_key;
            meta.multiple_key = source.multiple_key;
            meta.auto_increment = source.auto_increment;
            meta.no_default = source.no_default;
            meta.on_update_now = source.on_update_now;
            meta.default_now = source.default_now;
            meta.materialized = source.materialized;
            if let Some(width) = source.display_width.filter(|_| column.expr.as_column().is_some())
            {
                meta.ty.length = width;
            }
        }
        meta.materialized |= column.making == Making::Kept;
        meta.computed = match (column.making, &column.expr) {
            (Making::Typed | Making::Kept, _) => None,
            (Making::IfNull, _) => Some(Computed::IfNull),
            (Making::Subquery, _) => Some(Computed::Subquery),
            (Making::Integer, _) => Some(Computed::Integer),
            (Making::Placeholder, _) => Some(Computed::Placeholder),
            (
                Making::Computed,
                Expr::Case { .. } | Expr::FirstNotNull { .. } | Expr::Held { .. },
            ) => Some(Computed::Choice),
            (Making::Computed, Expr::UserVariable { .. }) => Some(Computed::Variable),
            (Making::Computed, _) => Some(Computed::Function),
        };
        meta
    };
    columns.iter().map(meta).collect()
}

/// Compiles a plan: resolves every function to its kernel.
///
/// # Errors
/// 1235 for a plan that is not supported, or a function that refuses its arguments.
pub fn compile(plan: &Plan, registry: &Registry, bind: &BindContext) -> Result<Arc<Program>> {
    compile_with(plan, registry, bind, None).map(|(program, _)| program)
}

/// As `compile`, with every operator measured: its rows and time are in `ExecScratch::measures` after the run.
///
/// # Errors
/// As `compile`.
pub fn compile_measured(
    plan: &Plan,
    registry: &Registry,
    bind: &BindContext,
    measuring: Measuring,
) -> Result<(Arc<Program>, MeasuredNodes)> {
    let measured = Some(MeasuredNodes::new(measuring));
    compile_with(plan, registry, bind, measured)
        .map(|(program, measured)| (program, measured.unwrap_or_default()))
}

fn compile_with(
    plan: &Plan,
    registry: &Registry,
    bind: &BindContext,
    measured: Option<MeasuredNodes>,
) -> Result<(Arc<Program>, Option<MeasuredNodes>)> {
    debug_assert_eq!(
        plan::broken_promises(plan),
        Vec::<String>::new(),
        "the optimizer keeps P1 to P5"
    );
    let none = Shared { subqueries: &[], ctes: &[], registers: 0 };
    let shared = match plan {
        Plan::Query(query) => shared!(query),
        Plan::Insert(insert) => shared!(insert),
        Plan::Update(update) => shared!(update),
        Plan::Delete(delete) => shared!(delete),
        Plan::Do { subqueries, ctes, registers, .. } => {
            Shared { subqueries, ctes, registers: *registers }
        }
        Plan::Rows { .. } => none,
    };
    let exprs = Compiler::new(registry, bind, shared.subqueries, shared.registers);
    let mut compiler = NodeCompiler { exprs, measured, may_stop: false, all_read: false };
    let (kind, columns) = match plan {
        Plan::Query(query) => {
            let mut program = QueryProgram::compile(query, &mut compiler)?;
            program.body = body(&shared, &mut compiler)?;
            (Kind::Query(Box::new(program)), metas(&query.outputs))
        }
        Plan::Insert(insert) => {
            let mut program = InsertProgram::compile(insert, &mut compiler)?;
            program.body = body(&shared, &mut compiler)?;
            (Kind::Insert(Box::new(program)), metas(&insert.returning))
        }
        Plan::Update(update) => {
            let mut program = UpdateProgram::compile(update, &mut compiler)?;
            program.body = body(&shared, &mut compiler)?;
            (Kind::Update(Box::new(program)), metas(&update.returning))
        }
        Plan::Delete(delete) => {
            let mut program = DeleteProgram::compile(delete, &mut compiler)?;
            program.body = body(&shared, &mut compiler)?;
            (Kind::Delete(Box::new(program)), metas(&delete.returning))
        }
        Plan::Do { exprs, .. } => {
            let exprs = compiler.exprs.exprs(exprs)?;
            (Kind::Do { exprs, body: body(&shared, &mut compiler)? }, Vec::new())
        }
        Plan::Rows { columns, rows } => (Kind::Rows(rows.clone()), metas(columns)),
    };
    Ok((Arc::new(Program { columns: columns.into(), kind }), compiler.measured))
}

/// Compiles subqueries and CTEs; last, because it counts registers and slots.
fn body(shared: &Shared<'_>, compiler: &mut NodeCompiler<'_>) -> Result<Body> {
    let mut body = Body::default();
    for subquery in shared.subqueries {
        body.subqueries.push(SubqueryNode {
            root: Box::new(compiler.node(&subquery.root)?),
            outputs: compiler.exprs.exprs(&subquery.outputs)?,
            outer: subquery.outer.iter().map(|register| register.0 as usize).collect(),
        });
    }
    for (id, root, outputs) in shared.ctes {
        body.ctes.push(CteNode {
            id: *id,
            root: Box::new(compiler.node(root)?),
            outputs: compiler.exprs.exprs(outputs)?,
        });
    }
    body.registers = compiler.exprs.registers;
    body.once_slots = compiler.exprs.once_slots;
    body.set_slots = compiler.exprs.set_slots;
    body.match_slots = compiler.exprs.searches.len();
    body.measured = compiler.measured.as_ref().map_or(0, MeasuredNodes::len);
    Ok(body)
}

impl Program {
    /// Columns of the result set; empty when the statement has none.
    pub fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    /// Runs the statement. On an error every change of the statement is undone (after a deadlock, of the transaction).
    ///
    /// # Errors
    /// Any error of the statement.
    pub fn run(&self, ctx: &mut ExecContext<'_>, sink: &mut dyn RowSink) -> Result<Outcome> {
        ctx.env.cancel.check()?;
        match &self.kind {
            Kind::Query(query) => query.run(ctx, sink),
            Kind::Insert(insert) => insert.run(ctx, sink),
            Kind::Update(update) => update.run(ctx, sink),
            Kind::Delete(delete) => delete.run(ctx, sink),
            Kind::Do { body, exprs } => {
                let mut run = Run::new(body, ctx);
                let outcome = exprs.iter().try_for_each(|code| code.eval(&mut run).map(drop));
                run.finish().give_back(ctx.scratch);
                outcome.map(|()| Outcome::default())
            }
            Kind::Rows(rows) => {
                for row in rows {
                    sink.row(&ValueRow(row))?;
                }
                let count = rows.len() as u64;
                Ok(Outcome { rows_sent: count, found_rows: count, ..Outcome::default() })
            }
        }
    }
}
