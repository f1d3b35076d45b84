//! INSERT, UPDATE, DELETE and TRUNCATE of the few information tables that may be changed: switches and totals that plugins keep.

use std::sync::Arc;

use ::accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use errors::{Result, bail, err};
use plugin_api::{InformationTable, OkInfo, ResultSink};
use syntax::ast::{
    Delete, DeleteTarget, Expr, ExprKind, Insert, InsertSource, ObjectName, Query, Select,
    SelectItem, SelectItemKind, SetExpr, Statement, TableFactor, Update,
};
use types::Value;

use crate::session::Session;
use programs::Running;

/// The information table of this name, if statements may change it.
fn changeable(session: &Session, name: &ObjectName) -> Option<Arc<dyn InformationTable>> {
    let schema = match &name.schema {
        Some(schema) => &*schema.text,
        None => session.services.database.as_deref()?,
    };
    let registry = session.server.registry();
    let table = registry.information_table(schema, &name.name.text)?;
    table.editor().is_some().then(|| table.clone())
}

/// The information table that an UPDATE changes.
fn updates_information(session: &Session, update: &Update) -> Option<Arc<dyn InformationTable>> {
    let [TableFactor::Table(table)] = update.tables.as_slice() else { return None };
    if update.with.is_some() || !update.returning.is_empty() {
        return None;
    }
    changeable(session, &table.name)
}

/// A change of rows of an information table.
pub(crate) enum InformationChange<'s> {
    Update(&'s Update),
    Insert(&'s Insert),
    Delete(&'s Delete),
}

/// The information table whose rows a statement changes, and how.
pub(crate) fn changes_information<'s>(
    session: &Session,
    statement: &'s Statement,
) -> Option<(Arc<dyn InformationTable>, InformationChange<'s>)> {
    let takes_rows = |table: &Arc<dyn InformationTable>| {
        table.editor().is_some_and(plugin_api::TableEditor::takes_rows)
    };
    if let Statement::Update(update) = statement {
        let table = updates_information(session, update)?;
        return Some((table, InformationChange::Update(update)));
    }
    if let Statement::Insert(insert) = statement {
        let table = changeable(session, &insert.table).filter(takes_rows)?;
        return Some((table, InformationChange::Insert(insert)));
    }
    let Statement::Delete(delete) = statement else { return None };
    let DeleteTarget::Single(named) = &delete.target else { return None };
    let table = changeable(session, &named.name).filter(takes_rows)?;
    Some((table, InformationChange::Delete(delete)))
}

/// Changes rows of an information table.
pub(crate) fn change_information(
    session: &mut Session,
    (table, change): (&dyn InformationTable, InformationChange<'_>),
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    match change {
        InformationChange::Update(update) => {
            update_information(session, table, update, running, sink)
        }
        InformationChange::Insert(insert) => {
            insert_information(session, table, insert, running, sink)
        }
        InformationChange::Delete(delete) => {
            delete_information(session, table, delete, running, sink)
        }
    }
}

/// Whether the account may do this to the table.
fn require_on_information(
    session: &Session,
    table: &dyn InformationTable,
    needed: PrivilegeSet,
) -> Result<()> {
    let (schema, name) = (table.schema(), table.name());
    if session.privileges.allows_table(schema, name, needed) {
        return Ok(());
    }
    let word = needed.names().next().unwrap_or("UPDATE");
    let host = session.shown_host(&session.account);
    bail!(TABLEACCESS_DENIED_ERROR, word, session.account.user, host, name)
}

/// Runs an UPDATE of an information table.
fn update_information(
    session: &mut Session,
    table: &dyn InformationTable,
    update: &Update,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    require_on_information(session, table, PrivilegeSet::UPDATE)?;
    let columns = table.columns();
    let mut places = Vec::with_capacity(update.set.len());
    for assignment in &update.set {
        let name = &assignment.column.name.text;
        let place = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        places.push(place.ok_or_else(|| err!(BAD_FIELD_ERROR, name, "field list"))?);
    }
    // The rows to change, and behind each the values to assign.
    let item = |kind, span| SelectItem { kind, span };
    let mut items = vec![item(SelectItemKind::Wildcard, Default::default())];
    for assignment in &update.set {
        let expr = assignment.value.clone();
        let span = expr.span;
        items.push(item(SelectItemKind::Expr { expr, alias: None }, span));
    }
    let select = Select {
        items,
        from: update.tables.clone(),
        filter: update.filter.clone(),
        ..Select::default()
    };
    let (order_by, limit) = (update.order_by.clone(), update.limit.clone());
    let query = Query { order_by, limit, ..plain(select) };
    let rows = rows_of(session, query, running)?;
    let mut changed = 0;
    for (number, row) in rows.iter().enumerate() {
        let (old, values) = row.split_at(columns.len().min(row.len()));
        let assigned: Vec<(usize, Value)> =
            places.iter().copied().zip(values.iter().cloned()).collect();
        if let Some(editor) = table.editor() {
            changed += u64::from(editor.update(old, &assigned, number as u64 + 1)?);
        }
    }
    let info = format!("Rows matched: {}  Changed: {changed}  Warnings: 0", rows.len());
    finish(session, changed, info, sink)
}

/// The rows of a query, with the names of members.
fn rows_of(session: &mut Session, query: Query, running: &Running<'_>) -> Result<Vec<Vec<Value>>> {
    let planned = session.plan_and_lock(&Statement::Query(Box::new(query)), running)?;
    let rows = session.run_collecting(&planned, running.parameters)?;
    let columns = planned.program.columns();
    let named = |row: Vec<Value>| {
        row.into_iter()
            .zip(&**columns)
            .map(|(value, column)| column.ty.member_text(value))
            .collect()
    };
    Ok(rows.into_iter().map(named).collect())
}

/// Tells the plugins and the client that rows have changed.
fn finish(
    session: &mut Session,
    changed: u64,
    info: String,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.server.hooks.refresh(&session.server.registry());
    session.services.row_count = changed as i64;
    let commit = session.finish_transaction_scope()?;
    let ok = OkInfo { affected_rows: changed, info, commit, ..OkInfo::default() };
    session.send_ok(sink, ok)
}

/// Runs an INSERT into an information table.
fn insert_information(
    session: &mut Session,
    table: &dyn InformationTable,
    insert: &Insert,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    require_on_information(session, table, PrivilegeSet::INSERT)?;
    if insert.replace || insert.ignore || !insert.on_duplicate.is_empty() {
        bail!(NOT_SUPPORTED_YET, "REPLACE, IGNORE and ON DUPLICATE KEY UPDATE of this table");
    }
    if !insert.returning.is_empty() {
        bail!(NOT_SUPPORTED_YET, "RETURNING of this table");
    }
    let columns = table.columns();
    let place = |name: &str| {
        let found = columns.iter().position(|column| column.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| err!(BAD_FIELD_ERROR, name, "field list"))
    };
    let listed = insert.columns.as_ref().map(|names| names.iter().map(|name| &*name.name.text));
    let mut places: Vec<usize> = match listed {
        Some(names) => names.map(place).collect::<Result<_>>()?,
        None => (0..columns.len()).collect(),
    };
    let rows: Vec<Vec<Option<Value>>> = match &insert.source {
        InsertSource::Values(rows) => {
            let rows = rows.iter().map(|row| values_of(session, row.iter(), running));
            rows.collect::<Result<_>>()?
        }
        InsertSource::Set(assignments) => {
            let names = assignments.iter().map(|assignment| place(&assignment.column.name.text));
            places = names.collect::<Result<_>>()?;
            let values = assignments.iter().map(|assignment| &assignment.value);
            vec![values_of(session, values, running)?]
        }
        InsertSource::Query(query) => {
            let rows = rows_of(session, (**query).clone(), running)?;
            rows.into_iter().map(|row| row.into_iter().map(Some).collect()).collect()
        }
    };
    let Some(editor) = table.editor() else { return Ok(()) };
    let mut inserted = 0;
    for row in rows {
        inserted += 1;
        if row.len() != places.len() && !row.is_empty() {
            bail!(WRONG_VALUE_COUNT_ON_ROW, inserted);
        }
        let mut whole = vec![None; columns.len()];
        for (place, value) in places.iter().zip(row) {
            if matches!(value, Some(Value::Null)) {
                bail!(BAD_NULL_ERROR, columns[*place].name);
            }
            whole[*place] = value;
        }
        editor.insert(&whole, inserted)?;
    }
    let info = match insert.source {
        InsertSource::Values(ref rows) if rows.len() < 2 => String::new(),
        InsertSource::Set(_) => String::new(),
        InsertSource::Values(_) | InsertSource::Query(_) => {
            format!("Records: {inserted}  Duplicates: 0  Warnings: 0")
        }
    };
    finish(session, inserted, info, sink)
}

/// The values of some expressions, `None` for DEFAULT.
fn values_of<'e>(
    session: &mut Session,
    exprs: impl Iterator<Item = &'e Expr> + Clone,
    running: &Running<'_>,
) -> Result<Vec<Option<Value>>> {
    let is_default = |expr: &Expr| matches!(expr.kind, ExprKind::Default(None));
    let given = exprs.clone().filter(|expr| !is_default(expr));
    let item = |expr: &Expr| SelectItem {
        kind: SelectItemKind::Expr { expr: expr.clone(), alias: None },
        span: expr.span,
    };
    let items: Vec<SelectItem> = given.map(item).collect();
    let mut values = Vec::new();
    if !items.is_empty() {
        let select = Select { items, ..Select::default() };
        values = rows_of(session, plain(select), running)?.into_iter().flatten().collect();
    }
    let mut values = values.into_iter();
    Ok(exprs.map(|expr| if is_default(expr) { None } else { values.next() }).collect())
}

/// A query that is one SELECT.
fn plain(select: Select) -> Query {
    Query {
        with: None,
        body: SetExpr::Select(Box::new(select)),
        order_by: Vec::new(),
        limit: None,
        locking: Vec::new(),
        into: None,
        span: Default::default(),
    }
}

/// Runs a DELETE from an information table.
fn delete_information(
    session: &mut Session,
    table: &dyn InformationTable,
    delete: &Delete,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    require_on_information(session, table, PrivilegeSet::DELETE)?;
    if delete.with.is_some() || !delete.returning.is_empty() {
        bail!(NOT_SUPPORTED_YET, "WITH and RETURNING of this table");
    }
    let (DeleteTarget::Single(named), Some(editor)) = (&delete.target, table.editor()) else {
        return Ok(());
    };
    let item = SelectItem { kind: SelectItemKind::Wildcard, span: Default::default() };
    let select = Select {
        items: vec![item],
        from: vec![TableFactor::Table(named.clone())],
        filter: delete.filter.clone(),
        ..Select::default()
    };
    let (order_by, limit) = (delete.order_by.clone(), delete.limit.clone());
    let rows = rows_of(session, Query { order_by, limit, ..plain(select) }, running)?;
    let mut deleted = 0;
    for row in &rows {
        deleted += u64::from(editor.delete(row)?);
    }
    debug_assert!(deleted <= rows.len() as u64);
    finish(session, deleted, String::new(), sink)
}

/// TRUNCATE of an information table; false when it is another table or may not be emptied.
pub(crate) fn truncate_information(
    session: &mut Session,
    name: &ObjectName,
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let Some(table) = changeable(session, name) else { return Ok(false) };
    require_on_information(session, &*table, PrivilegeSet::DROP)?;
    if let Some(editor) = table.editor() {
        editor.truncate()?;
    }
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo::default())?;
    Ok(true)
}
