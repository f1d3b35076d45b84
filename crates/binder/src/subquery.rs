//! Subqueries in expressions.

use errors::{Result, bail};
use plan::{BinaryOp, Expr, LogicalSubquery, OutputColumn, QuantifiedOp, SubqueryId, SubqueryKind};
use syntax::ast;
use types::DataType;

use crate::binder::Binder;
use crate::expr::{columns_of, comparison_op};

impl Binder<'_> {
    /// Binds a subquery and notes its outer references.
    fn bind_subquery(&mut self, query: &ast::Query) -> Result<(SubqueryId, Vec<OutputColumn>)> {
        let outside = self.enter_spelled(true);
        let first = self.instances.len();
        let bound = self.bind_query(query)?;
        self.lock_apart(first);
        self.leave_spelled(outside);
        let exprs: Vec<&Expr> = bound.outputs.iter().map(|output| &output.expr).collect();
        let outer = self.outer_registers(&bound.plan, &exprs);
        let outputs = bound.outputs.iter().map(|output| output.expr.clone()).collect();
        self.subqueries.push(LogicalSubquery {
            root: bound.plan,
            outputs,
            outer,
            block: bound.block,
        });
        Ok((SubqueryId(self.subqueries.len() as u32 - 1), bound.outputs))
    }

    /// `(SELECT ..)`: one column gives a value, several a row.
    pub(crate) fn bind_scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let (id, outputs) = self.bind_subquery(query)?;
        let columns = outputs.iter().zip(0..).map(|(output, column)| {
            let ty = output.expr.ty();
            let nullable = ty.nullable || !is_one_row(query);
            let ty = ty.with_nullable(nullable);
            Expr::Subquery { id, kind: SubqueryKind::Scalar(column), negated: false, ty }
        });
        let mut columns: Vec<Expr> = columns.collect();
        match columns.len() {
            1 => Ok(columns.remove(0)),
            _ => Ok(Expr::Row(columns)),
        }
    }

    pub(crate) fn bind_exists(&mut self, query: &ast::Query) -> Result<Expr> {
        self.asks_membership = true;
        let with_columns = self.with_columns(query);
        let (id, _) = self.bind_subquery(with_columns.as_ref().unwrap_or(query))?;
        let ty = DataType::boolean().with_nullable(false);
        Ok(Expr::Subquery { id, kind: SubqueryKind::Exists, negated: false, ty })
    }

    /// The query of an EXISTS with `1` for each `*` of no table: which columns it has does not matter.
    fn with_columns(&mut self, query: &ast::Query) -> Option<ast::Query> {
        let mut query = has_empty_stars(&query.body).then(|| query.clone())?;
        let mut stars = Vec::new();
        fill_stars(&mut query.body, &mut stars);
        if let Some(spelling) = self.spelling() {
            stars.iter().for_each(|span| spelling.push(span.start, span.end, "1".into()));
        }
        Some(query)
    }

    pub(crate) fn bind_in_subquery(
        &mut self,
        expr: &ast::Expr,
        query: &ast::Query,
        negated: bool,
    ) -> Result<Expr> {
        let operand = self.bind_expr(expr)?;
        self.asks_membership = true;
        let (id, outputs) = self.bind_subquery(query)?;
        let (left, ty) = self.match_columns(operand, id, &outputs, BinaryOp::Equal)?;
        Ok(Expr::Subquery { id, kind: SubqueryKind::In(left), negated, ty })
    }

    pub(crate) fn bind_quantified(
        &mut self,
        left: &ast::Expr,
        op: ast::BinaryOp,
        all: bool,
        query: &ast::Query,
    ) -> Result<Expr> {
        let operand = self.bind_expr(left)?;
        let op = comparison_op(op);
        // Rows are only looked for, not ordered.
        let is_search = matches!((op, all), (BinaryOp::Equal, false) | (BinaryOp::NotEqual, true));
        if !is_search && columns_of(&operand) > 1 {
            bail!(OPERAND_COLUMNS, 1);
        }
        self.asks_membership = true;
        let (id, outputs) = self.bind_subquery(query)?;
        let (left, ty) = self.match_columns(operand, id, &outputs, op)?;
        // `= ANY` is IN and `<> ALL` is NOT IN.
        let (kind, negated) = match (op, all) {
            (BinaryOp::Equal, false) => (SubqueryKind::In(left), false),
            (BinaryOp::NotEqual, true) => (SubqueryKind::In(left), true),
            (_, true) => (SubqueryKind::Quantified(left, op, QuantifiedOp::All), false),
            (_, false) => (SubqueryKind::Quantified(left, op, QuantifiedOp::Any), false),
        };
        Ok(Expr::Subquery { id, kind, negated, ty })
    }

    /// The left side as a list, converted for the comparison with the subquery's columns.
    fn match_columns(
        &mut self,
        operand: Expr,
        id: SubqueryId,
        outputs: &[OutputColumn],
        op: BinaryOp,
    ) -> Result<(Vec<Expr>, DataType)> {
        if columns_of(&operand) != outputs.len() {
            bail!(OPERAND_COLUMNS, columns_of(&operand));
        }
        let left = match operand {
            Expr::Row(items) => items,
            single => vec![single],
        };
        let mut nullable = false;
        let mut converted = Vec::with_capacity(left.len());
        for (index, (left, output)) in left.into_iter().zip(outputs).enumerate() {
            // Checks the collations, too.
            let pair = self.comparison(op, left, output.expr.clone())?;
            nullable |= pair.ty().nullable;
            if let Expr::Binary { left, right, .. } = pair {
                self.subqueries[id.0 as usize].outputs[index] = *right;
                converted.push(*left);
            }
        }
        Ok((converted, DataType::boolean().with_nullable(nullable)))
    }

    /// `(a, b) = (SELECT c, d ...)` on either side; `None` when neither side is a subquery of several columns.
    pub(crate) fn bind_row_subquery(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Option<Expr>> {
        use ast::ExprKind::{Row, Subquery};
        let (row, query, op) = match (&left.kind, &right.kind) {
            (Row(_), Subquery(query)) => (left, query, op),
            (Subquery(query), Row(_)) => (right, query, crate::compare::mirrored(op)),
            _ => return Ok(None),
        };
        let operand = self.bind_expr(row)?;
        let (id, outputs) = self.bind_subquery(query)?;
        let (left, ty) = self.match_columns(operand, id, &outputs, op)?;
        let kind = SubqueryKind::Quantified(left, op, QuantifiedOp::Any);
        let ty = ty.with_nullable(true);
        Ok(Some(Expr::Subquery { id, kind, negated: false, ty }))
    }
}

/// Whether a SELECT has a `*` and no table. HAVING is over its columns.
fn has_empty_stars(body: &ast::SetExpr) -> bool {
    match body {
        ast::SetExpr::Select(select) => {
            select.from.is_empty() && select.having.is_none() && select.items.iter().any(is_star)
        }
        ast::SetExpr::SetOp(chain) => {
            has_empty_stars(&chain.first)
                || chain.rest.iter().any(|term| has_empty_stars(&term.right))
        }
        ast::SetExpr::Query(query) => has_empty_stars(&query.body),
        ast::SetExpr::Values(_) | ast::SetExpr::Table(_) => false,
    }
}

fn is_star(item: &ast::SelectItem) -> bool {
    match item.kind {
        ast::SelectItemKind::Wildcard | ast::SelectItemKind::QualifiedWildcard(_) => true,
        ast::SelectItemKind::Expr { .. } => false,
    }
}

/// Puts `1` in place of each `*` of no table, and notes where they were.
fn fill_stars(body: &mut ast::SetExpr, stars: &mut Vec<ast::Span>) {
    match body {
        ast::SetExpr::Select(select) if select.from.is_empty() && select.having.is_none() => {
            for item in select.items.iter_mut().filter(|item| is_star(item)) {
                let kind = ast::ExprKind::Literal(ast::Literal::Integer(1));
                let expr = ast::Expr { kind, span: item.span };
                item.kind = ast::SelectItemKind::Expr { expr, alias: None };
                stars.push(item.span);
            }
        }
        ast::SetExpr::SetOp(chain) => {
            fill_stars(&mut chain.first, stars);
            chain.rest.iter_mut().for_each(|term| fill_stars(&mut term.right, stars));
        }
        ast::SetExpr::Query(query) => fill_stars(&mut query.body, stars),
        ast::SetExpr::Select(_) | ast::SetExpr::Values(_) | ast::SetExpr::Table(_) => {}
    }
}

/// Whether a query has one row whatever the data.
fn is_one_row(query: &ast::Query) -> bool {
    let ast::SetExpr::Select(select) = &query.body else { return false };
    let filters = [&select.filter, &select.having, &select.qualify];
    query.limit.is_none()
        && select.from.is_empty()
        && select.group_by.is_none()
        && filters.iter().all(|filter| filter.is_none())
}
