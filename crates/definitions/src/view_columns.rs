//! Names of a view's columns that its query gives.

use std::sync::Arc;

use syntax::ast;

use crate::names::check_table_name;

/// The select list that names the columns of a query.
pub fn items_mut(body: &mut ast::SetExpr) -> Option<&mut Vec<ast::SelectItem>> {
    match body {
        ast::SetExpr::Select(select) => Some(&mut select.items),
        ast::SetExpr::SetOp(chain) => items_mut(&mut chain.first),
        ast::SetExpr::Query(query) => items_mut(&mut query.body),
        ast::SetExpr::Table(_) | ast::SetExpr::Values(_) => None,
    }
}

/// The text of a view's query as it is kept, in the reference's spelling; `renamed`: the names of columns that need one, by position;
/// `charset`: of casts to texts that name none.
pub fn view_text(query: &mut ast::Query, renamed: &[(usize, Arc<str>)], charset: &str) -> String {
    let mut items = items_mut(&mut query.body);
    for (position, name) in renamed {
        if let Some(item) = items.as_mut().and_then(|items| items.get_mut(*position))
            && let ast::SelectItemKind::Expr { alias, .. } = &mut item.kind
        {
            *alias = Some(ast::Ident::new(name));
        }
    }
    crate::view_order::write_out(query);
    let options = unparse::PrintOptions {
        canonical: true,
        cast_charset: Some(charset),
        ..unparse::PrintOptions::default()
    };
    unparse::print_query(query, &options)
}

/// Renames expressions without an explicit alias where their name is taken or too long; returns which were renamed.
pub fn rename_duplicates(query: &ast::Query, columns: &mut [Arc<str>]) -> Vec<(usize, Arc<str>)> {
    let mut body = query.body.clone();
    let nameless: Vec<bool> = match items_mut(&mut body) {
        Some(items) if items.len() == columns.len() => items
            .iter()
            .map(|item| match &item.kind {
                ast::SelectItemKind::Expr { expr, alias } => {
                    alias.is_none() && !matches!(expr.kind, ast::ExprKind::Column(_))
                }
                ast::SelectItemKind::Wildcard | ast::SelectItemKind::QualifiedWildcard(_) => false,
            })
            .collect(),
        _ => return Vec::new(),
    };
    let mut renamed = Vec::new();
    for (position, column) in columns.iter_mut().enumerate() {
        // The same names may be columns and tables.
        if nameless[position] && check_table_name(column).is_err() {
            *column = format!("Name_exp_{}", position + 1).into();
            renamed.push((position, column.clone()));
        }
    }
    let written = columns.to_vec();
    for position in 1..columns.len() {
        for other in 0..position {
            if !catalog::same_name(&columns[position], &columns[other]) {
                continue;
            }
            let Some(at) = [position, other].into_iter().find(|at| nameless[*at]) else { continue };
            let name = &written[at];
            let candidates = (0..).map(|attempt| match attempt {
                0 => format!("Name_exp_{name}"),
                attempt => format!("Name_exp_{attempt}_{name}"),
            });
            let is_free =
                |name: &String| !columns.iter().any(|taken| catalog::same_name(taken, name));
            let Some(free) = candidates.take(columns.len() + 1).find(is_free) else { continue };
            columns[at] = free.into();
            renamed.push((at, columns[at].clone()));
        }
    }
    renamed
}
