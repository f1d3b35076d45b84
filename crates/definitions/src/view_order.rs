//! ORDER BY and GROUP BY of a view's query as they are kept: numbers and names of its results become what they stand for.
//!
//! The rules are those that the reference's stored texts show: a number becomes the expression, or the name of the result after a set operation and
//! under ROLLUP; a name becomes the expression unless the query has groups, windows or DISTINCT.

use syntax::ast::{
    ColumnName, Expr, ExprKind, GroupElement, Ident, Literal, Query, Select, SelectItem,
    SelectItemKind, SetExpr, TableFactor,
};

/// Writes out what ORDER BY and GROUP BY refer to, in a query and in those of its FROM clauses and set operations.
pub(crate) fn write_out(query: &mut Query) {
    for cte in query.with.iter_mut().flat_map(|with| &mut with.ctes) {
        write_out(&mut cte.query);
    }
    write_out_in(&mut query.body);
    match &query.body {
        SetExpr::Select(select) => {
            let is_rolled_up = select.group_by.as_ref().is_some_and(|group| group.with_rollup);
            for item in &mut query.order_by {
                let meant = match number(&item.expr) {
                    Some(number) if is_rolled_up => result_name(&select.items, number),
                    Some(number) => expression(&select.items, number),
                    None => named(select, &item.expr),
                };
                replace(&mut item.expr, meant);
            }
        }
        SetExpr::SetOp(_) | SetExpr::Query(_) => {
            let names = first_items(&query.body).unwrap_or_default();
            for item in &mut query.order_by {
                let meant = number(&item.expr).and_then(|number| result_name(names, number));
                replace(&mut item.expr, meant);
            }
        }
        SetExpr::Values(_) | SetExpr::Table(_) => {}
    }
}

fn write_out_in(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => {
            select.from.iter_mut().for_each(write_out_of);
            let Select { items, group_by, .. } = &mut **select;
            let elements = group_by.iter_mut().flat_map(|group| &mut group.elements);
            for element in elements {
                if let GroupElement::Expr(expr) = element {
                    let meant = number(expr).and_then(|number| expression(items, number));
                    replace(expr, meant);
                }
            }
        }
        SetExpr::SetOp(chain) => {
            write_out_in(&mut chain.first);
            chain.rest.iter_mut().for_each(|term| write_out_in(&mut term.right));
        }
        SetExpr::Query(query) => write_out(query),
        SetExpr::Values(_) | SetExpr::Table(_) => {}
    }
}

fn write_out_of(factor: &mut TableFactor) {
    match factor {
        TableFactor::Derived(derived) => write_out(&mut derived.query),
        TableFactor::Join(join) => {
            write_out_of(&mut join.left);
            write_out_of(&mut join.right);
        }
        TableFactor::List(factors) => factors.iter_mut().for_each(write_out_of),
        TableFactor::Table(_) | TableFactor::JsonTable(_) | TableFactor::Function(_) => {}
    }
}

fn replace(expr: &mut Expr, meant: Option<Expr>) {
    if let Some(meant) = meant {
        *expr = meant;
    }
}

/// The position of a result, counted from 0, that an expression of ORDER BY or GROUP BY names by its number.
fn number(expr: &Expr) -> Option<usize> {
    let ExprKind::Literal(Literal::Integer(number)) = &expr.kind else { return None };
    usize::try_from(*number).ok()?.checked_sub(1)
}

/// The select list that names the results of a query.
fn first_items(body: &SetExpr) -> Option<&[SelectItem]> {
    match body {
        SetExpr::Select(select) => Some(&select.items),
        SetExpr::SetOp(chain) => first_items(&chain.first),
        SetExpr::Query(query) => first_items(&query.body),
        SetExpr::Values(_) | SetExpr::Table(_) => None,
    }
}

/// A result's expression; of a number none, as it would be a position.
fn expression(items: &[SelectItem], position: usize) -> Option<Expr> {
    match &items.get(position)?.kind {
        SelectItemKind::Expr { expr, .. } => {
            let is_text = matches!(expr.kind, ExprKind::Literal(Literal::String(_)));
            (is_text || !matches!(expr.kind, ExprKind::Literal(_))).then(|| expr.clone())
        }
        SelectItemKind::Wildcard | SelectItemKind::QualifiedWildcard(_) => None,
    }
}

/// A result's name.
fn result_name(items: &[SelectItem], position: usize) -> Option<Expr> {
    let SelectItemKind::Expr { expr, alias } = &items.get(position)?.kind else { return None };
    let name = match (&expr.kind, alias) {
        (_, Some(alias)) => &alias.text,
        (ExprKind::Column(column), None) => &column.name.text,
        (_, None) => return None,
    };
    let name = ColumnName { schema: None, table: None, name: Ident::new(name) };
    Some(Expr { kind: ExprKind::Column(Box::new(name)), span: expr.span })
}

/// The expression of the result that a name of ORDER BY means, where the reference writes it out.
fn named(select: &Select, expr: &Expr) -> Option<Expr> {
    let ExprKind::Column(column) = &expr.kind else { return None };
    let is_computed = |item: &SelectItem| match &item.kind {
        SelectItemKind::Expr { expr, .. } => {
            matches!(expr.kind, ExprKind::Aggregate(_) | ExprKind::Window(_))
        }
        SelectItemKind::Wildcard | SelectItemKind::QualifiedWildcard(_) => false,
    };
    if select.items.iter().any(is_computed)
        || column.table.is_some()
        || select.group_by.is_some()
        || select.options.distinct
    {
        return None;
    }
    let position = select.items.iter().position(|item| match &item.kind {
        SelectItemKind::Expr { alias: Some(alias), .. } => {
            alias.text.eq_ignore_ascii_case(&column.name.text)
        }
        SelectItemKind::Expr { alias: None, .. }
        | SelectItemKind::Wildcard
        | SelectItemKind::QualifiedWildcard(_) => false,
    })?;
    expression(&select.items, position).filter(is_of_one_row)
}

/// Whether an expression is surely computed from one row alone: columns, constants, subqueries, operators and calls of functions.
fn is_of_one_row(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Column(_) | ExprKind::Subquery(_) => true,
        ExprKind::Unary { expr, .. }
        | ExprKind::Not(expr)
        | ExprKind::Collate { expr, .. }
        | ExprKind::ConvertUsing { expr, .. }
        | ExprKind::Is { expr, .. } => is_of_one_row(expr),
        ExprKind::Binary { left, right, .. } => is_of_one_row(left) && is_of_one_row(right),
        ExprKind::And(parts) | ExprKind::Or(parts) | ExprKind::Concat(parts) => {
            parts.iter().all(is_of_one_row)
        }
        ExprKind::Cast(cast) => is_of_one_row(&cast.expr),
        ExprKind::Function(call) => call.over.is_none() && call.args.iter().all(is_of_one_row),
        ExprKind::Case(case) => {
            let whens =
                case.whens.iter().all(|(when, then)| is_of_one_row(when) && is_of_one_row(then));
            whens && [&case.operand, &case.otherwise].into_iter().flatten().all(is_of_one_row)
        }
        // An aggregate or a window, or what may have one.
        ExprKind::Param(_)
        | ExprKind::UserVar(_)
        | ExprKind::SystemVar(_)
        | ExprKind::Xor(..)
        | ExprKind::NotSign(_)
        | ExprKind::Between(_)
        | ExprKind::InList { .. }
        | ExprKind::InSubquery { .. }
        | ExprKind::Like(_)
        | ExprKind::Regexp { .. }
        | ExprKind::Aggregate(_)
        | ExprKind::Window(_)
        | ExprKind::DateArith(_)
        | ExprKind::Extract { .. }
        | ExprKind::Position { .. }
        | ExprKind::Substring(_)
        | ExprKind::Trim(_)
        | ExprKind::Char { .. }
        | ExprKind::WeightString(_)
        | ExprKind::GetFormat { .. }
        | ExprKind::TimestampAdd { .. }
        | ExprKind::TimestampDiff { .. }
        | ExprKind::Match(_)
        | ExprKind::Exists(_)
        | ExprKind::Quantified { .. }
        | ExprKind::Row(_)
        | ExprKind::MemberOf { .. }
        | ExprKind::JsonExtract { .. }
        | ExprKind::JsonValue(_)
        | ExprKind::DualityObject(_)
        | ExprKind::Default(_)
        | ExprKind::Values(_)
        | ExprKind::Assign { .. }
        | ExprKind::IntervalFunction(_)
        | ExprKind::SoundsLike(..)
        | ExprKind::NextValue(_)
        | ExprKind::PreviousValue(_)
        | ExprKind::Grouping(_)
        | ExprKind::OdbcEscape { .. } => false,
    }
}
