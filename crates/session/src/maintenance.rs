//! ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE: a result row for each table.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Edit, LockMode, PrivilegeSet, Table};
use engine_api::IndexId;
use errors::{Error, ErrorCode, Result, bail};
use exec::TransactionSource;
use plugin_api::{ColumnMeta, ResultSink};
use syntax::ast::{KeyCache, MaintenanceKind, PartitionAction, PartitionNames, TableMaintenance};
use types::{CollationId, DataType, Value};

use crate::checksum::checksum;
use crate::measured::{begin_stage, end_stage};
use crate::session::Session;
use statements::maintenance::{operation_of, outcome_columns};
use statements::sink::send_rows;

/// Runs the statement.
pub(crate) fn maintain_tables(
    session: &mut Session,
    maintenance: &TableMaintenance,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if let Some(change) = &maintenance.histogram {
        return crate::histogram::change_histograms(session, maintenance, change, sink);
    }
    if maintenance.kind == MaintenanceKind::Checksum {
        return checksum_tables(session, maintenance, sink);
    }
    let operation = operation_of(maintenance.kind);
    let mut rows = Vec::new();
    for name in &maintenance.tables {
        let (schema, table) = session.qualify(name)?;
        let (schema, table) = information_table(session, maintenance.kind, schema, table)?;
        let full = format!("{schema}.{table}");
        let mut say = |kind: &str, text: &str| {
            rows.push(vec![
                Value::text(&full),
                Value::text(operation),
                Value::text(kind),
                Value::text(text),
            ]);
        };
        if catalog::system_schema(&schema) == Some("performance_schema") {
            say("note", &format!("The storage engine for the table doesn't support {operation}"));
            continue;
        }
        match maintain_one(session, maintenance.kind, &schema, &table) {
            Ok(findings) if findings.is_empty() => match maintenance.kind {
                MaintenanceKind::Optimize => {
                    say(
                        "note",
                        "Table does not support optimize, doing recreate + analyze instead",
                    );
                    say("status", "OK");
                }
                MaintenanceKind::Repair => {
                    say("note", "The storage engine for the table doesn't support repair");
                }
                MaintenanceKind::Analyze | MaintenanceKind::Check | MaintenanceKind::Checksum => {
                    say("status", "OK")
                }
            },
            Ok(findings) => {
                for finding in &findings {
                    say("error", finding);
                }
                say("status", "Corrupt");
            }
            Err(error) => {
                let is_found = [ErrorCode::VIEW_INVALID, ErrorCode::SCHEMA_READ_ONLY];
                let is_missing = error.code() == ErrorCode::TABLESPACE_DISCARDED
                    && maintenance.kind == MaintenanceKind::Check;
                say("Error", error.message());
                match is_found.contains(&error.code()) || is_missing {
                    true => say("error", "Corrupt"),
                    false => say("status", "Operation failed"),
                }
            }
        }
    }
    let state = session.state_info();
    send_rows(sink, &outcome_columns(), &rows, &state)
}

/// ANALYZE, CHECK, OPTIMIZE and REPAIR PARTITION: as for the whole table, after the names are checked. `None` for other actions.
pub(crate) fn maintain_partitions(
    session: &mut Session,
    name: &syntax::ast::ObjectName,
    action: &PartitionAction,
    sink: &mut dyn ResultSink,
) -> Option<Result<()>> {
    let (kind, names) = match action {
        PartitionAction::Analyze { names, .. } => (MaintenanceKind::Analyze, names),
        PartitionAction::Check { names, .. } => (MaintenanceKind::Check, names),
        PartitionAction::Optimize { names, .. } => (MaintenanceKind::Optimize, names),
        PartitionAction::Repair { names, .. } => (MaintenanceKind::Repair, names),
        _ => return None,
    };
    Some(maintain_named_partitions(session, name, kind, names, sink))
}

fn maintain_named_partitions(
    session: &mut Session,
    name: &syntax::ast::ObjectName,
    kind: MaintenanceKind,
    names: &PartitionNames,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, table) = session.qualify(name)?;
    let found = session.find_table(&schema, &table)?;
    let full = format!("{schema}.{table}");
    let fault = match (&found.partitioning, names) {
        (None, _) => Some(errors::err!(PARTITION_MGMT_ON_NONPARTITIONED)),
        (Some(own), PartitionNames::List(names)) => {
            let is_unknown = |name: &syntax::ast::Ident| own.named(&name.text).is_none();
            let unknown = names.iter().any(is_unknown);
            unknown.then(|| errors::err!(DROP_PARTITION_NON_EXISTENT, full))
        }
        (Some(_), PartitionNames::All) => None,
    };
    let operation = operation_of(kind);
    let row =
        |kind: &str, text: &str| [full.as_str(), operation, kind, text].map(Value::text).to_vec();
    let rows = match (&fault, kind) {
        (Some(error), _) => {
            vec![row("Error", error.message()), row("status", "Operation failed")]
        }
        (None, MaintenanceKind::Optimize) => {
            maintain_one(session, kind, &schema, &table)?;
            let text = "Table does not support optimize on partitions. All partitions will \
                        be rebuilt and analyzed.";
            vec![row("note", text), row("status", "OK")]
        }
        (None, _) => match maintain_one(session, kind, &schema, &table) {
            Ok(findings) if findings.is_empty() => vec![row("status", "OK")],
            Ok(findings) => {
                let mut rows: Vec<_> =
                    findings.iter().map(|finding| row("error", finding)).collect();
                rows.push(row("status", "Corrupt"));
                rows
            }
            Err(error) => {
                vec![row("Error", error.message()), row("status", "Operation failed")]
            }
        },
    };
    let state = session.state_info();
    send_rows(sink, &outcome_columns(), &rows, &state)
}

/// Computed tables: they can be checked, other actions are refused.
fn information_table(
    session: &Session,
    kind: MaintenanceKind,
    schema: Arc<str>,
    table: Arc<str>,
) -> Result<(Arc<str>, Arc<str>)> {
    let Some(known) = catalog::system_schema(&schema) else {
        return Ok((schema, table));
    };
    let may = matches!(kind, MaintenanceKind::Check | MaintenanceKind::Checksum);
    if !may && known == "information_schema" {
        let host = session.shown_host(&session.account);
        errors::bail!(DBACCESS_DENIED_ERROR, session.account.user, host, known);
    }
    let registry = session.server.registry();
    let exact = registry.information_table(known, &table);
    match exact {
        Some(found) => Ok((known.into(), found.name().into())),
        None if known == "information_schema" => {
            Err(errors::err!(UNKNOWN_TABLE, table.to_uppercase(), known))
        }
        None => Ok((schema, table)),
    }
}

/// CACHE INDEX and LOAD INDEX INTO CACHE: no engine has a key cache, which each table's row says.
///
/// # Errors
/// 1284 for a cache that does not exist.
pub(crate) fn cache_keys(
    session: &mut Session,
    caching: &KeyCache,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let caches = &session.server.globals.key_caches;
    if let Some(cache) = caching.cache.as_ref().filter(|cache| !caches.has(&cache.text)) {
        bail!(UNKNOWN_KEY_CACHE, cache.text);
    }
    let operation = if caching.load { "preload_keys" } else { "assign_to_keycache" };
    let mut rows = Vec::new();
    for table in &caching.tables {
        let (schema, name) = session.qualify(&table.name)?;
        let full = format!("{schema}.{name}");
        let mut say = |kind: &str, text: &str| {
            rows.push([&*full, operation, kind, text].map(Value::text).to_vec());
        };
        match check_base_table(session, &schema, &name, PrivilegeSet::INDEX) {
            Ok(()) => say(
                "note",
                &format!("The storage engine for the table doesn't support {operation}"),
            ),
            Err(error) => {
                say("Error", error.message());
                say("status", "Operation failed");
            }
        }
    }
    let state = session.state_info();
    send_rows(sink, &outcome_columns(), &rows, &state)
}

/// Whether a view can be read.
///
/// # Errors
/// 1356.
fn check_view(session: &Session, schema: &str, name: &str) -> Result<()> {
    let quoted = [schema, name].map(unparse::quote_ident);
    let text = format!("SELECT * FROM {}", quoted.join("."));
    let (query, _) = syntax::parse_one(&text, &syntax::ParseOptions::default())
        .map_err(|_| errors::err!(VIEW_INVALID, schema, name))?;
    let planned = session.planner().plan_statement(&query, text.as_bytes(), None);
    match planned {
        Err(error) if error.code() == ErrorCode::VIEW_INVALID => Err(error),
        _ => Ok(()),
    }
}

fn not_base_table(schema: &str, name: &str) -> Error {
    Error::new(ErrorCode::WRONG_OBJECT, format!("'{schema}.{name}' is not BASE TABLE"))
}

/// # Errors
/// 1146, 1347, 1142.
fn check_base_table(
    session: &Session,
    schema: &str,
    name: &str,
    needed: PrivilegeSet,
) -> Result<()> {
    match session.view().relation(schema, name) {
        None => bail!(NO_SUCH_TABLE, schema, name),
        Some(catalog::Relation::Table(_)) => session.require_on_table(schema, name, needed),
        Some(catalog::Relation::View(_)) => Err(not_base_table(schema, name)),
    }
}

fn maintain_one(
    session: &mut Session,
    kind: MaintenanceKind,
    schema: &str,
    name: &str,
) -> Result<Vec<String>> {
    if catalog::system_schema(schema).is_some() {
        return Ok(Vec::new());
    }
    let Some(relation) = session.view().relation(schema, name) else {
        return Err(errors::err!(NO_SUCH_TABLE, schema, name));
    };
    let catalog::Relation::Table(table) = relation else {
        if kind == MaintenanceKind::Check {
            return check_view(session, schema, name).map(|()| Vec::new());
        }
        return Err(not_base_table(schema, name));
    };
    let mut needed = PrivilegeSet::SELECT;
    if kind != MaintenanceKind::Check {
        needed |= PrivilegeSet::INSERT;
    }
    session.require_on_table(schema, name, needed)?;
    if table.is_discarded() && kind != MaintenanceKind::Repair {
        bail!(TABLESPACE_DISCARDED, name);
    }
    match kind {
        MaintenanceKind::Check => {}
        MaintenanceKind::Analyze => return analyze_table(session, &table).map(|()| Vec::new()),
        MaintenanceKind::Optimize | MaintenanceKind::Repair => {
            return crate::ddl::check_schema_writable(session, schema).map(|()| Vec::new());
        }
        MaintenanceKind::Checksum => return Ok(Vec::new()),
    }
    let engine = session.transactions.engine(&table.engine)?;
    // During concurrent changes the engine would report rows that are in one index and not yet in the next.
    let (wanted, timeout) =
        ([(Some(table.id), LockMode::NoWrite)], session.settings.lock_wait_timeout);
    let cancel = session.shared.cancel.clone();
    let locks = session.server.metadata_locks.clone();
    let _guard = locks.lock(session.shared.id, &wanted, timeout, &cancel)?;
    if session.view().table(schema, name).is_none_or(|now| now.id != table.id) {
        return Err(errors::err!(NO_SUCH_TABLE, schema, name));
    }
    let mut faults = Vec::new();
    begin_stage(session, "checking table");
    // Each row, and its entries in the other indexes.
    let parts = table.engine_tables();
    let work = parts.iter().map(|part| {
        let rows = engine.table_stats(part.id).map_or(0, |stats| stats.rows);
        let others = part.indexes.iter().filter(|index| index.id != IndexId::CLUSTERED).count();
        rows.saturating_mul(1 + others as u64)
    });
    let long = cancel.long(work.sum());
    let checked: Result<()> = parts.iter().try_for_each(|part| {
        let found = sys::blocking::blocking(|| engine.check_table_counting(part.id, &cancel));
        faults.extend(found.map_err(|error| error.into_error(&cancel))?);
        Ok(())
    });
    end_stage(session, cancel.progress());
    drop(long);
    checked?;
    if table.fulltext.is_empty() {
        return Ok(faults);
    }
    let (layout, missing) = binder::record_of(&table);
    let index = |index: &catalog::FulltextIndex| {
        (index.name.to_string(), binder::fulltext_write(&table, index))
    };
    let checked = exec::FulltextTable {
        table: table.id.0,
        layout,
        missing,
        indexes: table.fulltext.iter().map(index).collect(),
    };
    let txn = session.transactions.transaction(&table.engine)?;
    let found = sys::blocking::blocking(|| exec::check_fulltext(&checked, txn, &cancel));
    faults.extend(found?);
    Ok(faults)
}

/// ANALYZE TABLE: statistics are rebuilt, and plans chosen by the old ones are discarded: they belong to a version of the table that
/// is replaced.
fn analyze_table(session: &mut Session, table: &Table) -> Result<()> {
    let cancel = session.shared.cancel.clone();
    let engine = session.transactions.engine(&table.engine)?;
    let word = |error: engine_api::EngineError| error.into_error(&cancel);
    engine.forget_stats(table.id).map_err(word)?;
    sys::blocking::blocking(|| engine.table_stats(table.id)).map_err(word)?;
    crate::histogram::renew_histograms(session, table)?;
    if !table.temporary {
        session.server.catalog.commit_alone(&[Edit::RenewTable(table.id)], &cancel)?;
    }
    Ok(())
}

/// CHECKSUM TABLE: a number that depends on the rows, not on their order.
fn checksum_tables(
    session: &mut Session,
    maintenance: &TableMaintenance,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let mut rows = Vec::new();
    let quick = maintenance.options.iter().any(|option| &**option == "QUICK");
    for name in &maintenance.tables {
        let (schema, table) = session.qualify(name)?;
        let (schema, table) = information_table(session, maintenance.kind, schema, table)?;
        let computed = catalog::system_schema(&schema).is_some();
        let found = session.find_table(&schema, &table).and_then(|found| {
            session.require_on_table(&schema, &table, PrivilegeSet::SELECT)?;
            // No checksum is stored that could be shown without reading the rows.
            let sum = (!quick).then(|| checksum(session, &found)).transpose()?;
            Ok(sum.map_or(Value::Null, Value::UInt))
        });
        let sum = match found {
            Err(_) if computed => Value::Null,
            Ok(sum) => sum,
            Err(error) => {
                session.working.push_error(errors::Level::Error, &error);
                Value::Null
            }
        };
        rows.push(vec![Value::text(&format!("{schema}.{table}")), sum]);
    }
    let text = DataType::varchar(128, CollationId::UTF8MB4_0900_AI_CI);
    let columns = [
        ColumnMeta::computed("Table", text),
        ColumnMeta::computed("Checksum", DataType::bigint_unsigned()),
    ];
    let commit = session.finish_transaction_scope()?;
    let state = plugin_api::OkInfo { commit, ..session.state_info() };
    send_rows(sink, &columns, &rows, &state)
}
