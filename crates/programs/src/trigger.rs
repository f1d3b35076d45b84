//! Triggers: CREATE, DROP and SHOW CREATE TRIGGER, and how they follow changes of their tables.

use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit, PrivilegeSet, RelationKind, Trigger, TriggerEvent};
use definitions::quote_for;
use errors::{ErrorCode, Result, bail, err};
use plugin_api::{ColumnMeta, OkInfo, ResultSink, TriggerView};
use syntax::ast::{self, CreateTrigger, DropObject, ObjectName};
use types::{DataType, SqlMode, TypeKind, Value};

use crate::host::DefinitionHost;
use crate::load::load_trigger;
use crate::routine::{NAME_CHARS_MAX, definer_text};
use crate::running::Running;
use crate::show::{create_columns, send_row};

fn event_of(event: ast::TriggerEvent) -> TriggerEvent {
    match event {
        ast::TriggerEvent::Insert => TriggerEvent::Insert,
        ast::TriggerEvent::Update => TriggerEvent::Update,
        ast::TriggerEvent::Delete => TriggerEvent::Delete,
    }
}

/// The text of SHOW CREATE TRIGGER.
fn create_text(trigger: &Trigger, ansi_quotes: bool) -> String {
    let quote = |name: &str| quote_for(ansi_quotes, name);
    let definer = accounts::parse_account(&trigger.definer);
    format!(
        "CREATE DEFINER={}@{} TRIGGER {} {} {} ON {} FOR EACH ROW {}",
        quote(&definer.user),
        quote(&definer.host),
        quote(&trigger.name),
        trigger.timing(),
        trigger.event.as_str(),
        quote(&trigger.table),
        trigger.body
    )
}

/// A trigger as information tables see it.
pub fn trigger_view(trigger: &Trigger) -> TriggerView {
    TriggerView {
        schema: trigger.schema.to_string(),
        name: trigger.name.to_string(),
        table: trigger.table.to_string(),
        event: trigger.event.as_str(),
        timing: trigger.timing(),
        order: trigger.order,
        body: trigger.body.to_string(),
        definer: trigger.definer.to_string(),
        sql_mode: SqlMode(trigger.sql_mode).to_text(),
        created_micros: trigger.created_micros,
        session_charset: trigger.charset_client.to_string(),
        session_collation: trigger.collation_connection.to_string(),
        database_collation: charset::collation_or_binary(trigger.database_collation)
            .name
            .to_owned(),
    }
}

/// Extends edits of tables to their triggers: these are dropped with a table and follow one that is renamed. `None`: no change.
///
/// # Errors
/// 1435 when a table with triggers would move to another schema.
pub fn follow_tables(snapshot: &CatalogSnapshot, edits: &[Edit]) -> Result<Option<Vec<Edit>>> {
    let has_triggers =
        snapshot.schemas().any(|schema| snapshot.triggers(&schema.name).next().is_some());
    let moves =
        edits.iter().any(|edit| matches!(edit, Edit::DropTable(_) | Edit::ReplaceTable { .. }));
    if !has_triggers || !moves {
        return Ok(None);
    }
    let mut snapshot = snapshot.clone();
    let mut all = Vec::with_capacity(edits.len());
    for edit in edits {
        for follow in followers(&snapshot, edit)? {
            snapshot.apply(&follow)?;
            all.push(follow);
        }
        // The error of this edit is reported when it is carried out.
        if snapshot.apply(edit).is_err() {
            return Ok(None);
        }
        all.push(edit.clone());
    }
    Ok(Some(all))
}

fn followers(snapshot: &CatalogSnapshot, edit: &Edit) -> Result<Vec<Edit>> {
    let triggers_of = |id| {
        let table = snapshot.table_by_id(id);
        table.map(|table| snapshot.triggers_of(&table.schema, &table.name)).unwrap_or_default()
    };
    match edit {
        Edit::DropTable(id) => Ok(triggers_of(*id)
            .into_iter()
            .map(|trigger| Edit::DropTrigger {
                schema: trigger.schema.clone(),
                name: trigger.name.clone(),
            })
            .collect()),
        Edit::ReplaceTable { old, new } => {
            let mut edits = Vec::new();
            for trigger in triggers_of(*old) {
                if trigger.schema != new.schema {
                    bail!(TRG_IN_WRONG_SCHEMA);
                }
                if trigger.table != new.name {
                    let table = new.name.clone();
                    let renamed = Trigger { table, ..Trigger::clone(&trigger) };
                    edits.push(Edit::PutTrigger(Arc::new(renamed)));
                }
            }
            Ok(edits)
        }
        _ => Ok(Vec::new()),
    }
}

/// CREATE TRIGGER.
///
/// # Errors
/// 1359, 1146, 1347, missing privileges, columns that do not exist.
pub fn create_trigger<H: DefinitionHost + ?Sized>(
    host: &mut H,
    create: &CreateTrigger,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(&create.name)?;
    // A table without a schema is in that of the trigger.
    let table_schema: Arc<str> = match &create.table.schema {
        Some(schema) => Arc::from(&*schema.text),
        None => schema.clone(),
    };
    let table_name: Arc<str> = Arc::from(&*create.table.name.text);
    check_trigger_names(host, &schema, &name, &table_schema, &table_name)?;
    host.require_on_table(&table_schema, &table_name, PrivilegeSet::TRIGGER)?;
    host.check_writable(&schema)?;
    let table = host.find_table(&table_schema, &table_name)?;
    let _guard = host.lock_for_ddl(&[table.id])?;
    // Under the lock the definition is final.
    let table = host.find_table(&table_schema, &table_name)?;
    let snapshot = host.snapshot();
    if let Some(known) = snapshot.trigger(&schema, &name) {
        if !create.flags.if_not_exists {
            bail!(TRG_ALREADY_EXISTS);
        }
        if known.table != table_name {
            bail!(IF_NOT_EXISTS_UNSUPPORTED_TRG_EXISTS_ON_DIFFERENT_TABLE, schema, name);
        }
        host.conditions()
            .working
            .note(ErrorCode::WARN_TRG_ALREADY_EXISTS, &[&name, &table_schema, &table_name]);
        return host.send_ok(sink, OkInfo::default());
    }
    let known = snapshot.schema(&schema).ok_or_else(|| err!(BAD_DB_ERROR, schema))?;
    let definer = definer_text(host, create.definer.as_ref())?;
    let body = String::from_utf8_lossy(create.body.span.of(running.source)).trim_end().into();
    let facts = host.facts();
    let mut trigger = Trigger {
        database_collation: known.options.collation,
        schema,
        name,
        table: table_name,
        event: event_of(create.event),
        before: create.before,
        order: 0,
        body,
        definer,
        sql_mode: host.settings().sql_mode.0,
        created_micros: facts.now_micros,
        charset_client: facts.charset_client,
        collation_connection: host.settings().collation_connection.name.into(),
    };
    let mut edits = place(&snapshot, &mut trigger, create.order.as_ref())?;
    let trigger = Arc::new(trigger);
    // A trigger that cannot run is not stored: columns that do not exist are found now.
    load_trigger(&|name| host.has_variable(name), &trigger, &table)?;
    edits.push(Edit::PutTrigger(trigger));
    edits.push(Edit::RenewTable(table.id));
    host.commit(&edits, sink)
}

/// Checks the name of a trigger and the table that it is made for.
fn check_trigger_names<H: DefinitionHost + ?Sized>(
    host: &H,
    schema: &str,
    name: &str,
    table_schema: &str,
    table: &str,
) -> Result<()> {
    match catalog::system_schema(table_schema) {
        Some("information_schema") => {
            let account = host.account();
            bail!(DBACCESS_DENIED_ERROR, account.user, account.host, table_schema)
        }
        Some(_) => bail!(NO_TRIGGERS_ON_SYSTEM_SCHEMA),
        None => {}
    }
    if catalog::system_schema(schema).is_some() {
        bail!(DBACCESS_DENIED_ERROR, host.account().user, host.account().host, schema);
    }
    if name.is_empty() || name.ends_with(' ') {
        bail!(SP_WRONG_NAME, name);
    }
    if name.chars().count() > NAME_CHARS_MAX {
        bail!(TOO_LONG_IDENT, name);
    }
    let view = host.view();
    if let Some(unknown) =
        [schema, table_schema].into_iter().find(|schema| view.snapshot.schema(schema).is_none())
    {
        bail!(BAD_DB_ERROR, unknown);
    }
    if schema != table_schema {
        bail!(TRG_IN_WRONG_SCHEMA);
    }
    if view.temporary_table(table_schema, table).is_some() {
        bail!(TRG_ON_VIEW_OR_TEMP_TABLE, table);
    }
    match view.snapshot.kind(table_schema, table) {
        Some(RelationKind::View) => bail!(WRONG_OBJECT, table_schema, table, "BASE TABLE"),
        Some(RelationKind::Sequence) => bail!(TRG_ON_VIEW_OR_TEMP_TABLE, table),
        Some(RelationKind::Table | RelationKind::SystemVersioned) => Ok(()),
        None => Err(err!(NO_SUCH_TABLE, table_schema, table)),
    }
}

/// DROP TRIGGER.
///
/// # Errors
/// 1360, 1142.
pub fn drop_trigger<H: DefinitionHost + ?Sized>(
    host: &mut H,
    drop: &DropObject,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(&drop.name)?;
    host.check_writable(&schema)?;
    let snapshot = host.snapshot();
    if snapshot.schema(&schema).is_none() {
        bail!(BAD_DB_ERROR, schema);
    }
    let Some(trigger) = snapshot.trigger(&schema, &name) else {
        if !drop.if_exists {
            bail!(TRG_DOES_NOT_EXIST);
        }
        host.conditions().working.note(ErrorCode::TRG_DOES_NOT_EXIST, &[]);
        return host.send_ok(sink, OkInfo::default());
    };
    host.require_on_table(&schema, &trigger.table, PrivilegeSet::TRIGGER)?;
    let table = host.find_table(&schema, &trigger.table)?;
    let _guard = host.lock_for_ddl(&[table.id])?;
    let mut edits = vec![Edit::DropTrigger { schema, name }];
    edits.extend(close_gap(&snapshot, trigger));
    edits.push(Edit::RenewTable(table.id));
    host.commit(&edits, sink)
}

/// SHOW CREATE TRIGGER.
///
/// # Errors
/// 1360.
pub fn show_create_trigger<H: DefinitionHost + ?Sized>(
    host: &mut H,
    name: &ObjectName,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(name)?;
    let snapshot = host.snapshot();
    let found = snapshot.trigger(&schema, &name).filter(|trigger| {
        host.privileges().allows_table(&schema, &trigger.table, PrivilegeSet::TRIGGER)
    });
    let Some(trigger) = found else { bail!(TRG_DOES_NOT_EXIST) };
    let created = DataType { decimals: 2, ..DataType::new(TypeKind::Timestamp, 22, 2) };
    let created = ColumnMeta::computed("Created", created);
    let columns = create_columns("Trigger", "SQL Original Statement");
    let columns: Vec<_> = columns.into_iter().chain([created]).collect();
    let view = trigger_view(trigger);
    let created = host.settings().time_zone.utc_to_local(hundredths(trigger.created_micros));
    let row = vec![
        Value::text(&trigger.name),
        Value::text(&view.sql_mode),
        Value::text(&create_text(trigger, host.settings().sql_mode.contains(SqlMode::ANSI_QUOTES))),
        Value::text(&view.session_charset),
        Value::text(&view.session_collation),
        Value::text(&view.database_collation),
        Value::DateTime(created),
    ];
    send_row(host, sink, &columns, &row)
}

/// Truncates a time of creation to hundredths of a second, as it is shown.
fn hundredths(micros: i64) -> i64 {
    micros - micros.rem_euclid(10_000)
}

/// Moves the triggers after a dropped one up.
fn close_gap(snapshot: &CatalogSnapshot, gone: &Trigger) -> Vec<Edit> {
    let mut others = snapshot.triggers_of(&gone.schema, &gone.table);
    others.retain(|other| other.goes_with(gone) && other.order > gone.order);
    let moved =
        others.iter().map(|other| Trigger { order: other.order - 1, ..Trigger::clone(other) });
    moved.map(|trigger| Edit::PutTrigger(Arc::new(trigger))).collect()
}

/// Gives a new trigger its position; the triggers after it move down.
fn place(
    snapshot: &CatalogSnapshot,
    trigger: &mut Trigger,
    order: Option<&(bool, ast::Ident)>,
) -> Result<Vec<Edit>> {
    let mut others = snapshot.triggers_of(&trigger.schema, &trigger.table);
    others.retain(|other| other.goes_with(trigger));
    let at = match order {
        None => others.len(),
        Some((follows, name)) => {
            let wanted = name.text.to_lowercase();
            let found = others.iter().position(|other| other.name.to_lowercase() == wanted);
            match found {
                Some(at) => at + usize::from(*follows),
                None => bail!(REFERENCED_TRG_DOES_NOT_EXIST, name.text),
            }
        }
    };
    trigger.order = at as u64 + 1;
    let later = others.iter().zip(1..).skip(at).map(|(other, number)| {
        Edit::PutTrigger(Arc::new(Trigger { order: number + 1, ..Trigger::clone(other) }))
    });
    Ok(later.collect())
}
