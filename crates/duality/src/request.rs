//! A statement that changes documents: the query that finds what it is about, and what is done with its rows.

use binder::{
    check_duality_delete, check_duality_insert, check_duality_update, refuse_more_objects,
};
use catalog::View;
use errors::{Error, Result, bail};
use syntax::ast::{
    ColumnName, DeleteTarget, Expr, ExprKind, Ident, InsertSource, Limit, Literal, NamedTable,
    ObjectName, Query, Select, SelectItem, SelectItemKind, SetExpr, Statement, TableFactor, With,
};
use types::Value;

use crate::{Host, Shape, delete, document_of, insert, update};

/// The column of such a view.
const DATA: &str = "data";

/// What a statement does with documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
}

/// A change of documents.
#[derive(Debug)]
pub struct Request {
    /// What it does.
    pub kind: Kind,
    /// Its rows have the new document; the shown and the new one; or the shown one.
    pub query: Statement,
}

/// What a change did.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Affected rows.
    pub affected: u64,
    /// A document was replaced by one that does not say what it is for: warning 6493.
    pub lacks_tag: bool,
}

/// The one name whose rows an INSERT, UPDATE or DELETE changes.
#[must_use]
pub fn changed_name(statement: &Statement) -> Option<&ObjectName> {
    if let Statement::Insert(insert) = statement {
        return Some(&insert.table);
    }
    if let Statement::Update(update) = statement {
        let [TableFactor::Table(table)] = update.tables.as_slice() else { return None };
        return Some(&table.name);
    }
    let Statement::Delete(delete) = statement else { return None };
    let DeleteTarget::Single(named) = &delete.target else { return None };
    Some(&named.name)
}

impl Request {
    /// Reads a statement on a view; `None` of one that changes no rows.
    ///
    /// # Errors
    /// 6482, 1136, 1054: such views do not take it; 1288, 1471: the view's documents are DISTINCT.
    pub fn of(statement: &Statement, view: &View) -> Result<Option<Request>> {
        let is_distinct = is_distinct(view);
        if let Statement::Insert(insert) = statement {
            if is_distinct {
                bail!(NON_INSERTABLE_TABLE, view.name, "INSERT");
            }
            check_duality_insert(insert)?;
            let InsertSource::Values(rows) = &insert.source else { return Ok(None) };
            let Some(document) = rows.first().and_then(|row| row.first()) else {
                bail!(WRONG_VALUE_COUNT_ON_ROW, 1)
            };
            let query = select(None, vec![not_default(document)], None, None);
            return Ok(Some(Request { kind: Kind::Insert, query }));
        }
        if let Statement::Update(update) = statement {
            check_duality_update(update)?;
            if is_distinct {
                bail!(NON_UPDATABLE_TABLE, view.name, "UPDATE");
            }
            if let Some(other) = update.set.iter().find(|set| !set.column.name.is(DATA)) {
                bail!(BAD_FIELD_ERROR, other.column.name.text, "field list");
            }
            // Of several assignments the first counts.
            let ([TableFactor::Table(named)], Some(first)) = (&*update.tables, update.set.first())
            else {
                return Ok(None);
            };
            let items = vec![data_of(named), not_default(&first.value)];
            let query = select(update.with.clone(), items, Some(named), update.filter.clone());
            return Ok(Some(Request { kind: Kind::Update, query }));
        }
        let Statement::Delete(delete) = statement else { return Ok(None) };
        check_duality_delete(delete)?;
        if is_distinct {
            bail!(NON_UPDATABLE_TABLE, view.name, "DELETE");
        }
        let DeleteTarget::Single(named) = &delete.target else { return Ok(None) };
        let items = vec![data_of(named)];
        let query = select(delete.with.clone(), items, Some(named), delete.filter.clone());
        Ok(Some(Request { kind: Kind::Delete, query }))
    }

    /// Changes the documents that the query's rows are about, one at most.
    ///
    /// # Errors
    /// 6482: there are more; 6499, 6501: the new document is NULL; those of `insert`, `update` and `delete`.
    pub fn run(&self, shape: &Shape, rows: Vec<Vec<Value>>, host: &mut dyn Host) -> Result<Done> {
        let count = rows.len();
        let nothing = Done { affected: 0, lacks_tag: false };
        let Some(first) = rows.into_iter().next() else { return Ok(nothing) };
        let mut values = first.into_iter();
        let mut next =
            || values.next().ok_or_else(|| Error::internal("a row of documents is too short"));
        let value = next()?;
        match self.kind {
            Kind::Insert => {
                if matches!(value, Value::Null) {
                    bail!(JDV_NULL_INSERTED);
                }
                let affected = insert(shape, document_of(&value)?, host)?;
                Ok(Done { affected, ..nothing })
            }
            Kind::Update => {
                let new = next()?;
                if matches!(new, Value::Null) {
                    bail!(JDV_NULL_UPDATED);
                }
                let updated = update(shape, document_of(&value)?, document_of(&new)?, host)?;
                // What is wrong with the first document is said before.
                if count > 1 {
                    return Err(refuse_more_objects("update"));
                }
                Ok(Done { affected: updated.affected, lacks_tag: !updated.was_tagged })
            }
            Kind::Delete if count > 1 => Err(refuse_more_objects("delete")),
            Kind::Delete => {
                let affected = delete(shape, document_of(&value)?, host)?;
                Ok(Done { affected, ..nothing })
            }
        }
    }
}

/// Whether equal documents of a view are one row.
fn is_distinct(view: &View) -> bool {
    fn of(query: &Query) -> bool {
        match &query.body {
            SetExpr::Query(inner) => of(inner),
            SetExpr::Select(select) => select.options.distinct,
            SetExpr::Values(_) | SetExpr::Table(_) | SetExpr::SetOp(_) => false,
        }
    }
    binder::view_query(view).is_some_and(|query| of(&query))
}

fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: Default::default() }
}

/// The expression, or for DEFAULT one that is no document: there is none.
fn not_default(value: &Expr) -> Expr {
    let is_default = matches!(value.kind, ExprKind::Default(None));
    if is_default { expr(ExprKind::Literal(Literal::Integer(0))) } else { value.clone() }
}

fn data_of(named: &NamedTable) -> Expr {
    let table = named.alias.as_ref().unwrap_or(&named.name.name).clone();
    let column = ColumnName { table: Some(table), name: Ident::new(DATA), schema: None };
    expr(ExprKind::Column(Box::new(column)))
}

/// A query of at most two rows: the second only shows that there are more.
fn select(
    with: Option<With>,
    items: Vec<Expr>,
    from: Option<&NamedTable>,
    filter: Option<Expr>,
) -> Statement {
    let item = |expr: Expr| SelectItem {
        span: expr.span,
        kind: SelectItemKind::Expr { expr, alias: None },
    };
    let select = Select {
        items: items.into_iter().map(item).collect(),
        from: from.map(|named| TableFactor::Table(Box::new(named.clone()))).into_iter().collect(),
        filter,
        ..Select::default()
    };
    let two = expr(ExprKind::Literal(Literal::Integer(2)));
    Statement::Query(Box::new(Query {
        with,
        body: SetExpr::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: Some(Limit { count: two, offset: None }),
        locking: Vec::new(),
        into: None,
        span: Default::default(),
    }))
}
