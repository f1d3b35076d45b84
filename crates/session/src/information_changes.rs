//! UPDATE and TRUNCATE of the few information tables that may be changed: switches and totals that plugins keep.

use std::sync::Arc;

use ::accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use errors::{Result, bail, err};
use plugin_api::{InformationTable, OkInfo, ResultSink};
use syntax::ast::{
    ObjectName, Query, Select, SelectItem, SelectItemKind, SetExpr, Statement, TableFactor, Update,
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
pub(crate) fn updates_information(
    session: &Session,
    update: &Update,
) -> Option<Arc<dyn InformationTable>> {
    let [TableFactor::Table(table)] = update.tables.as_slice() else { return None };
    if update.with.is_some() || !update.returning.is_empty() {
        return None;
    }
    changeable(session, &table.name)
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
pub(crate) fn update_information(
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
    let query = Query {
        with: None,
        body: SetExpr::Select(Box::new(select)),
        order_by: update.order_by.clone(),
        limit: update.limit.clone(),
        locking: Vec::new(),
        into: None,
        span: Default::default(),
    };
    let planned = session.plan_and_lock(&Statement::Query(Box::new(query)), running)?;
    let rows = session.run_collecting(&planned, running.parameters)?;
    let mut changed = 0;
    for (number, row) in rows.iter().enumerate() {
        let (old, values) = row.split_at(columns.len().min(row.len()));
        let assigned: Vec<(usize, Value)> =
            places.iter().copied().zip(values.iter().cloned()).collect();
        if let Some(editor) = table.editor() {
            changed += u64::from(editor.update(old, &assigned, number as u64 + 1)?);
        }
    }
    session.server.hooks.refresh(&session.server.registry());
    session.services.row_count = changed as i64;
    let commit = session.finish_transaction_scope()?;
    let info = format!("Rows matched: {}  Changed: {changed}  Warnings: 0", rows.len());
    let ok = OkInfo { affected_rows: changed, info, commit, ..OkInfo::default() };
    session.send_ok(sink, ok)
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
