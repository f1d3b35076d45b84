//! JSON duality views: the object that is a document, and what may not change one.

use catalog::View;
use errors::{Error, ErrorCode, Result, bail};
use plan::Expr;
use syntax::ast;
use types::{CollationId, FunctionRole};

use crate::binder::Binder;
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

fn unsupported(what: &str) -> Error {
    Error::with(ErrorCode::JDV_CHANGE_NOT_SUPPORTED, &[&what])
}

fn not_built() -> Error {
    Error::not_supported("changes of JSON duality views")
}

/// Why an INSERT into a JSON duality view is refused.
pub(crate) fn refused_insert(insert: &ast::Insert, view: &View) -> Error {
    if insert.replace {
        return unsupported("REPLACE");
    }
    if insert.ignore {
        return unsupported("IGNORE modifier");
    }
    if insert.priority == ast::Priority::Low {
        return unsupported("LOW_PRIORITY modifier");
    }
    if !insert.on_duplicate.is_empty() {
        return unsupported("INSERT... ON DUPLICATE KEY UPDATE");
    }
    match &insert.source {
        ast::InsertSource::Query(_) => return unsupported("INSERT... SELECT"),
        ast::InsertSource::Set(_) => return unsupported("Column list in INSERT"),
        ast::InsertSource::Values(_) if insert.columns.as_ref().is_some_and(|c| !c.is_empty()) => {
            return unsupported("Column list in INSERT");
        }
        ast::InsertSource::Values(rows) if rows.len() > 1 => {
            return unsupported("Multiple object insert");
        }
        ast::InsertSource::Values(rows) if rows.iter().any(|row| row.len() != 1) => {
            return Error::with(ErrorCode::WRONG_VALUE_COUNT_ON_ROW, &[&1]);
        }
        ast::InsertSource::Values(_) => {}
    }
    untagged(view).unwrap_or_else(not_built)
}

/// The error of a view whose documents are not inserted.
fn untagged(view: &View) -> Option<Error> {
    let mut query = crate::from::view_query(view)?;
    if query.duality_root()?.tags.insert {
        return None;
    }
    let ast::SetExpr::Select(select) = &query.body else { return None };
    let [ast::TableFactor::Table(table)] = select.from.as_slice() else { return None };
    let schema = table.name.schema.as_ref()?;
    let code = ErrorCode::JDV_NO_INSERT_TAG;
    Some(Error::with(code, &[&schema.text, &table.name.name.text, &"$"]))
}

/// Why an UPDATE of a JSON duality view is refused.
pub(crate) fn refused_update(update: &ast::Update) -> Error {
    if update.is_multi_table() {
        return unsupported("Multi-table DML operation");
    }
    if update.ignore {
        return unsupported("IGNORE modifier");
    }
    if update.low_priority {
        return unsupported("LOW_PRIORITY modifier");
    }
    if !update.order_by.is_empty() {
        return unsupported("UPDATE with ORDER BY clause");
    }
    if update.limit.is_some() {
        return unsupported("UPDATE with LIMIT clause");
    }
    not_built()
}

/// Why a DELETE from a JSON duality view is refused.
pub(crate) fn refused_delete(delete: &ast::Delete) -> Error {
    if matches!(delete.target, ast::DeleteTarget::Multi { .. }) {
        return unsupported("Multi-table DML operation");
    }
    if delete.ignore {
        return unsupported("IGNORE modifier");
    }
    if delete.low_priority {
        return unsupported("LOW_PRIORITY modifier");
    }
    if !delete.order_by.is_empty() {
        return unsupported("DELETE with ORDER BY clause");
    }
    if delete.limit.is_some() {
        return unsupported("DELETE with LIMIT clause");
    }
    not_built()
}
