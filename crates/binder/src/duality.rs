//! JSON duality views: the object that is a document, and the forms of statements that change one.

use catalog::Relation;
use errors::{Error, ErrorCode, Result, bail};
use plan::Expr;
use syntax::ast;
use types::{CollationId, DataType, FunctionRole};

use crate::binder::Binder;
use crate::document_key::DocumentKey;
use crate::literal;

impl Binder<'_> {
    /// `JSON_DUALITY_OBJECT(..)`: an object of its members; the outermost one gets the tag of its content.
    pub(crate) fn bind_duality_object(&mut self, object: &ast::DualityObject) -> Result<Expr> {
        if !object.is_root && !self.in_duality {
            bail!(JDV_OBJECT_ELSEWHERE);
        }
        let outer = std::mem::replace(&mut self.in_duality, true);
        let members = self.duality_members(object);
        self.in_duality = outer;
        let document = self.function(FunctionRole::JsonObject, members?)?;
        if outer {
            return Ok(document);
        }
        self.function(FunctionRole::JsonDualityDocument, vec![document])
    }

    fn duality_members(&mut self, object: &ast::DualityObject) -> Result<Vec<Expr>> {
        let mut args = Vec::with_capacity(object.members.len() * 2);
        for member in &object.members {
            args.push(literal::text(member.key.as_bytes(), CollationId::UTF8MB4_0900_AI_CI));
            args.push(self.bind_single(&member.value)?);
        }
        Ok(args)
    }
}

impl Binder<'_> {
    /// Lets a view read only the documents whose key a condition of the query asks for: what the condition makes true of documents,
    /// this makes true of rows, which an index finds.
    pub(crate) fn add_document_key(&mut self, query: &mut ast::Query, alias: &str) -> Result<()> {
        let named = |key: &&DocumentKey| {
            key.table.as_ref().is_none_or(|table| crate::scope::names_equal(table, alias))
        };
        let keys: Vec<DocumentKey> = self.document_keys.iter().filter(named).cloned().collect();
        if keys.is_empty() {
            return Ok(());
        }
        let Some(object) = query.duality_root() else { return Ok(()) };
        let member = object.members.iter().find(|member| &*member.key == "_id");
        let Some(column) = member.map(|member| member.value.clone()) else { return Ok(()) };
        let ast::ExprKind::Column(name) = &column.kind else { return Ok(()) };
        let Some(select) = root_select(query) else { return Ok(()) };
        let [ast::TableFactor::Table(table)] = select.from.as_slice() else { return Ok(()) };
        let schema = self.schema_of(&table.name)?;
        let relation = self.input.catalog.relation(&schema, &table.name.name.text);
        let Some(Relation::Table(found)) = relation else { return Ok(()) };
        let Some(at) = found.column(&name.name.text) else { return Ok(()) };
        let ty = &found.columns[at].ty;
        let key = keys.into_iter().find(|key| self.is_comparable(ty, &key.value));
        select.filter = key.map(|key| {
            let (left, right) = (Box::new(column), Box::new(key.value));
            let kind = ast::ExprKind::Binary { op: ast::BinaryOp::Eq, left, right };
            ast::Expr { kind, span: Default::default() }
        });
        Ok(())
    }

    /// Whether a column equals a value whenever the document's number or text does, and comparing them warns of nothing.
    fn is_comparable(&self, column: &DataType, value: &ast::Expr) -> bool {
        let is_text =
            column.is_text() && charset::collation_or_binary(column.collation).charset.is_utf8();
        let is_number =
            |kind: &ast::ExprKind| matches!(kind, ast::ExprKind::Literal(ast::Literal::Integer(_)));
        if let ast::ExprKind::Param(number) = &value.kind {
            let known = self.input.parameter_types.and_then(|all| all.get(*number as usize));
            return known.is_some_and(|known| {
                column.is_integer() && known.is_integer() || is_text && known.is_text()
            });
        }
        if let ast::ExprKind::Literal(ast::Literal::String(text)) = &value.kind {
            return is_text && text.introducer.is_none() && !text.national;
        }
        if let ast::ExprKind::Unary { op: ast::UnaryOp::Neg, expr } = &value.kind {
            return column.is_integer() && is_number(&expr.kind);
        }
        column.is_integer() && is_number(&value.kind)
    }
}

fn root_select(query: &mut ast::Query) -> Option<&mut ast::Select> {
    match &mut query.body {
        ast::SetExpr::Query(inner) => root_select(inner),
        ast::SetExpr::Select(select) => Some(select),
        ast::SetExpr::Values(_) | ast::SetExpr::Table(_) | ast::SetExpr::SetOp(_) => None,
    }
}

fn unsupported(what: &str) -> Error {
    Error::with(ErrorCode::JDV_CHANGE_NOT_SUPPORTED, &[&what])
}

/// A change that has no plan: the session makes it one of the tables' rows.
pub(crate) fn planned_change() -> Error {
    unsupported("EXPLAIN for INSERT/UPDATE/DELETE")
}

/// Checks the form of an INSERT into a JSON duality view.
///
/// # Errors
/// 6482, 1136: it is none that such a view takes.
pub fn check_duality_insert(insert: &ast::Insert) -> Result<()> {
    if insert.replace {
        return Err(unsupported("REPLACE"));
    }
    if insert.ignore {
        return Err(unsupported("IGNORE modifier"));
    }
    match insert.priority {
        ast::Priority::Low => return Err(unsupported("LOW_PRIORITY modifier")),
        ast::Priority::High => return Err(unsupported("INSERT HIGH_PRIORITY")),
        ast::Priority::Normal | ast::Priority::Delayed => {}
    }
    if !insert.on_duplicate.is_empty() {
        return Err(unsupported("INSERT... ON DUPLICATE KEY UPDATE"));
    }
    if !insert.returning.is_empty() {
        return Err(unsupported("RETURNING"));
    }
    if !insert.partitions.is_empty() {
        bail!(PARTITION_CLAUSE_ON_NONPARTITIONED);
    }
    match &insert.source {
        ast::InsertSource::Query(_) => Err(unsupported("INSERT... SELECT")),
        ast::InsertSource::Set(_) => Err(unsupported("Column list in INSERT")),
        ast::InsertSource::Values(_) if insert.columns.as_ref().is_some_and(|c| !c.is_empty()) => {
            Err(unsupported("Column list in INSERT"))
        }
        ast::InsertSource::Values(rows) => match rows.iter().position(|row| row.len() != 1) {
            Some(row) => bail!(WRONG_VALUE_COUNT_ON_ROW, row + 1),
            None if rows.len() > 1 => Err(unsupported("Multiple object insert")),
            None => Ok(()),
        },
    }
}

/// Checks the form of an UPDATE of a JSON duality view.
///
/// # Errors
/// 6482: it is none that such a view takes.
pub fn check_duality_update(update: &ast::Update) -> Result<()> {
    let refused = [
        (update.is_multi_table(), "Multi-table DML operation"),
        (update.ignore, "IGNORE modifier"),
        (update.low_priority, "LOW_PRIORITY modifier"),
        (!update.order_by.is_empty(), "UPDATE with ORDER BY clause"),
        (update.limit.is_some(), "UPDATE with LIMIT clause"),
        (!update.returning.is_empty(), "RETURNING"),
    ];
    refuse(&refused)
}

/// Checks the form of a DELETE from a JSON duality view.
///
/// # Errors
/// 6482: it is none that such a view takes.
pub fn check_duality_delete(delete: &ast::Delete) -> Result<()> {
    let is_multi_table = matches!(delete.target, ast::DeleteTarget::Multi { .. });
    let refused = [
        (is_multi_table, "Multi-table DML operation"),
        (delete.ignore, "IGNORE modifier"),
        (delete.low_priority, "LOW_PRIORITY modifier"),
        (!delete.order_by.is_empty(), "DELETE with ORDER BY clause"),
        (delete.limit.is_some(), "DELETE with LIMIT clause"),
        (!delete.returning.is_empty(), "RETURNING"),
    ];
    refuse(&refused)
}

/// The error of a statement that changes more than one document.
pub fn refuse_more_objects(word: &str) -> Error {
    unsupported(&format!("Multiple object {word}"))
}

fn refuse(refused: &[(bool, &str)]) -> Result<()> {
    match refused.iter().find(|(is_so, _)| *is_so) {
        Some((_, what)) => Err(unsupported(what)),
        None => Ok(()),
    }
}
