//! Conditions on the key of a JSON duality view's documents, as a query has them.

use syntax::ast::{BinaryOp, Expr, ExprKind};

/// The path of a document's key.
const KEY_PATH: &[u8] = b"$._id";

/// A condition that the key of a document is some value.
#[derive(Clone)]
pub(crate) struct DocumentKey {
    /// What the condition calls the view.
    pub(crate) table: Option<Box<str>>,
    pub(crate) value: Expr,
}

/// The conditions `data->'$._id' = value` that each row of a query has to meet.
pub(crate) fn document_keys(filter: Option<&Expr>) -> Vec<DocumentKey> {
    let Some(filter) = filter else { return Vec::new() };
    let conditions =
        if let ExprKind::And(all) = &filter.kind { all } else { std::slice::from_ref(filter) };
    conditions.iter().filter_map(document_key).collect()
}

fn document_key(condition: &Expr) -> Option<DocumentKey> {
    let ExprKind::Binary { op: BinaryOp::Eq, left, right } = &condition.kind else {
        return None;
    };
    let (table, value) = match (keyed_table(left), keyed_table(right)) {
        (Some(table), None) => (table, right),
        (None, Some(table)) => (table, left),
        (Some(_), Some(_)) | (None, None) => return None,
    };
    // Its text is not in the view's.
    let value = Expr { kind: value.kind.clone(), span: Default::default() };
    Some(DocumentKey { table, value })
}

/// What `table.data->'$._id'` calls the view.
fn keyed_table(expr: &Expr) -> Option<Option<Box<str>>> {
    let ExprKind::JsonExtract { value, path, unquote: false } = &expr.kind else { return None };
    let ExprKind::Column(name) = &value.kind else { return None };
    let is_key = name.name.is("data") && *path.value == *KEY_PATH;
    is_key.then(|| name.table.as_ref().map(|table| table.text.clone()))
}
