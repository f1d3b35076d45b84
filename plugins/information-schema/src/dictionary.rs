//! `data_dictionary`: our own schema, one table for each internal worth showing.

use errors::Result;
use plugin_api::{
    ConditionView, EngineStatView, FunctionView, InfoFilter, InformationContext, Loading,
    PluginItemView, PluginView, SchemaView, TableDetail,
};
use types::Value;

use crate::row::{Emit, optional, time, yes_no};
use crate::tables::visit_tables;

/// `GLOBAL_VARIABLES`.
pub fn global_variables(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for variable in ctx.variables().iter().filter(|variable| variable.global.is_some()) {
        let (least, greatest) = variable.range.as_ref().map_or((None, None), both);
        let changed = variable.changed.as_ref();
        emit(&[
            Value::text(&variable.name),
            optional(variable.global.as_deref()),
            optional(variable.unit),
            optional(least),
            optional(greatest),
            Value::text(variable.effect),
            yes_no(variable.needs_restart),
            Value::text(variable.source),
            optional(variable.persisted.as_deref()),
            changed.map_or(Value::Null, |by| time(by.micros)),
            changed.map_or(Value::Null, |by| Value::text(&format!("{}@{}", by.user, by.host))),
            Value::text(variable.description),
        ])?;
    }
    Ok(())
}

fn both((least, greatest): &(String, String)) -> (Option<&str>, Option<&str>) {
    (Some(least), Some(greatest))
}

/// `SESSION_VARIABLES`.
pub fn session_variables(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.variables().iter().try_for_each(|variable| {
        emit(&[Value::text(&variable.name), Value::text(&variable.session)])
    })
}

/// `MODULES`: the loaded plugins.
pub fn modules(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    ctx.plugins().iter().filter(|plugin| plugin.is_loaded).try_for_each(|plugin| {
        let PluginView { info, library, .. } = plugin;
        emit(&[
            Value::text(&info.name),
            Value::text(&info.version),
            Value::text(&info.author),
            yes_no(library.is_none()),
            library.as_deref().map_or(Value::Null, Value::text),
            Value::text(&info.description),
            Value::text(&info.licence),
            Value::text(match info.loading {
                Loading::Always => "ALWAYS",
                Loading::ByDefault => "BY DEFAULT",
                Loading::OnRequest => "ON REQUEST",
            }),
        ])
    })
}

/// `EVENT_OBSERVERS`: each observer with each event that it wants now.
pub fn event_observers(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut observers = ctx.observers().into_iter();
    observers.try_for_each(|(name, event)| emit(&[Value::text(name), Value::text(event)]))
}

/// `PLUGINS`: what each known plugin contributes while it is loaded.
pub fn plugins(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for PluginView { info, items, is_loaded, .. } in ctx.plugins() {
        for PluginItemView { slot, name } in &items {
            let module = Value::text(&info.name);
            emit(&[Value::text(name), Value::text(slot), yes_no(is_loaded), module])?;
        }
    }
    Ok(())
}

/// `FUNCTIONS`.
pub fn functions(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    ctx.functions()
        .iter()
        .try_for_each(|FunctionView { name, help }| emit(&[Value::text(name), Value::text(help)]))
}

/// `PLAN_CACHE`.
pub fn plan_cache(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for plan in ctx.plan_cache() {
        emit(&[
            Value::text(&plan.schema),
            Value::text(&plan.text),
            Value::UInt(plan.hits),
            Value::UInt(plan.bytes),
            Value::UInt(plan.nanoseconds),
        ])?;
    }
    Ok(())
}

/// `ENGINE_STATISTICS`.
pub fn engine_statistics(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.engine_stats().iter().try_for_each(|EngineStatView { engine, group, name, value }| {
        emit(&[Value::text(engine), Value::text(group), Value::text(name), Value::text(value)])
    })
}

/// `ENGINE_STATUS`: each engine's counters as one text, its memory first, its latest deadlock last.
pub fn engine_status(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut stats = ctx.engine_stats();
    stats.sort();
    let deadlocks = ctx.latest_deadlocks();
    for engine in stats.chunk_by(|left, right| left.engine == right.engine) {
        let memory = engine.iter().filter(|stat| stat.group == "memory");
        let bytes: u64 = memory.filter_map(|stat| stat.value.parse::<u64>().ok()).sum();
        let mut text = format!("Total memory allocated {bytes}\n");
        for EngineStatView { group, name, value, .. } in engine {
            text.push_str(&format!("{group}.{name} {value}\n"));
        }
        if let Some((_, deadlock)) = deadlocks.iter().find(|(name, _)| *name == engine[0].engine) {
            let mut at = Vec::new();
            time(deadlock.at_micros as i64).write_plain_text(&mut at);
            let at = String::from_utf8_lossy(&at);
            let members = deadlock.to_text(|_| None);
            text.push_str(&format!("LATEST DETECTED DEADLOCK {at} UTC\n{members}"));
        }
        emit(&[Value::text(&engine[0].engine), Value::text(&text)])?;
    }
    Ok(())
}

/// `MEMORY_BY_OWNER`: the memory that engines report, definitions, and the whole process.
pub fn memory_by_owner(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for stat in ctx.engine_stats().iter().filter(|stat| stat.group == "memory") {
        let owner = stat.name.strip_suffix("_bytes").unwrap_or(&stat.name);
        let bytes = stat.value.parse().map_or(Value::Null, Value::UInt);
        emit(&[Value::text(&stat.engine), Value::text(owner), bytes])?;
    }
    let catalog = Value::UInt(ctx.catalog_bytes());
    emit(&[Value::text("server"), Value::text("catalog"), catalog])?;
    let whole = Value::UInt(ctx.resident_bytes());
    emit(&[Value::text("server"), Value::text("process"), whole])
}

/// `RECOVERY_PROGRESS`: how far the recovery of each engine is that has one.
pub fn recovery_progress(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let stats = ctx.engine_stats();
    let recovery: Vec<_> = stats.iter().filter(|stat| stat.group == "recovery").collect();
    for engine in recovery.chunk_by(|left, right| left.engine == right.engine) {
        let text = |wanted: &str| {
            let found = engine.iter().find(|stat| stat.name == wanted);
            found.map_or("", |stat| stat.value.as_str())
        };
        let optional = |wanted: &str| text(wanted).parse().map_or(Value::Null, Value::UInt);
        let number = |wanted: &str| Value::UInt(text(wanted).parse().unwrap_or(0));
        emit(&[
            Value::text(text("phase")),
            Value::Double(text("percent").parse().unwrap_or(0.0)),
            number("pages_done"),
            number("pages_total"),
            optional("eta_seconds"),
            number("milliseconds"),
            number("log_bytes"),
            number("log_bytes_total"),
            number("undo_done"),
            number("undo_total"),
        ])?;
    }
    Ok(())
}

/// `DAMAGED_PAGES`: pages that could not be read since the start.
pub fn damaged_pages(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for stat in ctx.engine_stats().iter().filter(|stat| stat.group == "damage") {
        let number = stat.name.strip_prefix("page_").and_then(|number| number.parse().ok());
        let Some(number) = number else { continue };
        emit(&[Value::text(&stat.engine), Value::UInt(number), Value::text(&stat.value)])?;
    }
    Ok(())
}

/// `BACKUP_PROGRESS`: the backup that is running, or the last one of this run.
pub fn backup_progress(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let stats = ctx.engine_stats();
    let backup: Vec<_> = stats.iter().filter(|stat| stat.group == "backup").collect();
    for engine in backup.chunk_by(|left, right| left.engine == right.engine) {
        let text = |wanted: &str| {
            let found = engine.iter().find(|stat| stat.name == wanted);
            found.map_or("", |stat| stat.value.as_str())
        };
        let number = |wanted: &str| Value::UInt(text(wanted).parse().unwrap_or(0));
        // Unknown until the end.
        let later = |wanted: &str| match text(wanted) {
            "" | "0" => Value::Null,
            value => value.parse().map_or(Value::Null, Value::UInt),
        };
        emit(&[
            Value::text(text("state")),
            number("pages_done"),
            number("pages_total"),
            number("bytes"),
            number("started_micros"),
            later("ended_micros"),
            later("end_position"),
            Value::text(text("error")),
        ])?;
    }
    Ok(())
}

/// `DDL_PROGRESS`: ALTER TABLE statements that copy rows beside others, and how far they are. Rows change meanwhile, so their total is about right.
pub fn ddl_progress(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for process in ctx.processes() {
        let Some(copying) = process.copying else { continue };
        let total = copying.rows_total.max(copying.rows_copied);
        let share = if total == 0 { 1.0 } else { copying.rows_copied as f64 / total as f64 };
        emit(&[
            Value::UInt(process.id),
            Value::text(&copying.table),
            Value::text(process.state),
            Value::UInt(copying.rows_copied),
            Value::UInt(total),
            Value::Double((share * 1000.0).round() / 10.0),
            Value::UInt(copying.rounds),
            Value::UInt(copying.rows_again),
        ])?;
    }
    Ok(())
}

/// `INDEX_BUILDS`: indexes that are being built, and how far that is.
pub fn index_builds(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let stats = ctx.engine_stats();
    let builds = stats.iter().filter(|stat| stat.group == "index_build");
    let counters = builds.filter_map(|stat| {
        let (index, _) = stat.name.rsplit_once('/')?;
        Some((index, Value::UInt(stat.value.parse().unwrap_or(0))))
    });
    let counters: Vec<_> = counters.collect();
    for build in counters.chunk_by(|left, right| left.0 == right.0) {
        let (table, index) = build[0].0.rsplit_once('/').unwrap_or_default();
        let mut row = vec![Value::text(table), Value::text(index)];
        row.extend(build.iter().map(|(_, value)| value.clone()));
        emit(&row)?;
    }
    Ok(())
}

/// `IO_HISTOGRAM`: how long calls to files took.
pub fn io_histogram(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.io_times().iter().try_for_each(|bucket| {
        emit(&[
            Value::text(bucket.call),
            Value::UInt(bucket.below_micros),
            Value::UInt(bucket.count),
            Value::UInt(bucket.total_micros),
        ])
    })
}

/// `CONDITIONS`: the rows of SHOW WARNINGS.
pub fn conditions(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    ctx.conditions().iter().try_for_each(|ConditionView { level, code, message }| {
        emit(&[Value::text(level), Value::UInt((*code).into()), Value::text(message)])
    })
}

/// `GRANTS`: the session's own.
pub fn grants(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    ctx.grants(None)?.iter().try_for_each(|statement| emit(&[Value::text(statement)]))
}

/// `CREATE_STATEMENTS`: the texts of SHOW CREATE TABLE and SHOW CREATE VIEW.
pub fn create_statements(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Statistics;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        emit(&[
            Value::text(&table.schema),
            Value::text(&table.name),
            Value::text(table.table_type),
            Value::text(&table.create_statement),
            Value::text(&table.session_charset),
            Value::text(&table.session_collation),
        ])
    })
}

/// `CREATE_SCHEMA_STATEMENTS`.
pub fn create_schema_statements(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for SchemaView { name: schema, .. } in ctx.schemas() {
        if let Some(text) = ctx.schema_create_statement(&schema) {
            emit(&[Value::text(&schema), Value::text(&text)])?;
        }
    }
    Ok(())
}

/// `PRIVILEGE_NAMES`: the rows of SHOW PRIVILEGES.
pub fn privilege_names(
    _: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    PRIVILEGES.iter().try_for_each(|(name, context, comment)| {
        emit(&[Value::text(name), Value::text(context), Value::text(comment)])
    })?;
    DYNAMIC_PRIVILEGES.split_whitespace().try_for_each(|name| {
        emit(&[Value::text(name), Value::text("Server Admin"), Value::text("")])
    })
}

const PRIVILEGES: &[(&str, &str, &str)] = &[
    ("Alter", "Tables", "To alter the table"),
    ("Alter routine", "Functions,Procedures", "To alter or drop stored functions/procedures"),
    ("Create", "Databases,Tables,Indexes", "To create new databases and tables"),
    ("Create routine", "Databases", "To use CREATE FUNCTION/PROCEDURE"),
    ("Create role", "Server Admin", "To create new roles"),
    ("Create temporary tables", "Databases", "To use CREATE TEMPORARY TABLE"),
    ("Create view", "Tables", "To create new views"),
    ("Create user", "Server Admin", "To create new users"),
    ("Delete", "Tables", "To delete existing rows"),
    ("Drop", "Databases,Tables", "To drop databases, tables, and views"),
    ("Drop role", "Server Admin", "To drop roles"),
    ("Event", "Server Admin", "To create, alter, drop and execute events"),
    ("Execute", "Functions,Procedures", "To execute stored routines"),
    ("File", "File access on server", "To read and write files on the server"),
    (
        "Grant option",
        "Databases,Tables,Functions,Procedures",
        "To give to other users those privileges you possess",
    ),
    ("Index", "Tables", "To create or drop indexes"),
    ("Insert", "Tables", "To insert data into tables"),
    ("Lock tables", "Databases", "To use LOCK TABLES (together with SELECT privilege)"),
    ("Process", "Server Admin", "To view the plain text of currently executing queries"),
    ("Proxy", "Server Admin", "To make proxy user possible"),
    ("References", "Databases,Tables", "To have references on tables"),
    ("Reload", "Server Admin", "To reload or refresh tables, logs and privileges"),
    ("Replication client", "Server Admin", "To ask where the slave or master servers are"),
    ("Replication slave", "Server Admin", "To read binary log events from the master"),
    ("Select", "Tables", "To retrieve rows from table"),
    ("Show databases", "Server Admin", "To see all databases with SHOW DATABASES"),
    ("Show view", "Tables", "To see views with SHOW CREATE VIEW"),
    ("Shutdown", "Server Admin", "To shut down the server"),
    ("Super", "Server Admin", "To use KILL thread, SET GLOBAL, CHANGE REPLICATION SOURCE, etc."),
    ("Trigger", "Tables", "To use triggers"),
    ("Create tablespace", "Server Admin", "To create/alter/drop tablespaces"),
    ("Update", "Tables", "To update existing rows"),
    ("Usage", "Server Admin", "No privileges - allow connect only"),
];

const DYNAMIC_PRIVILEGES: &str = "ALLOW_NONEXISTENT_DEFINER APPLICATION_PASSWORD_ADMIN AUDIT_ABORT_EXEMPT AUDIT_ADMIN \
    AUTHENTICATION_POLICY_ADMIN BACKUP_ADMIN BINLOG_ADMIN BINLOG_ENCRYPTION_ADMIN \
    CLONE_ADMIN CONNECTION_ADMIN CREATE_SPATIAL_REFERENCE_SYSTEM ENCRYPTION_KEY_ADMIN \
    FIREWALL_EXEMPT FLUSH_OPTIMIZER_COSTS FLUSH_PRIVILEGES FLUSH_STATUS FLUSH_TABLES \
    FLUSH_USER_RESOURCES GROUP_REPLICATION_ADMIN GROUP_REPLICATION_STREAM \
    INNODB_REDO_LOG_ARCHIVE INNODB_REDO_LOG_ENABLE MANAGE_DATA_MASKING_POLICY \
    OPTIMIZE_LOCAL_TABLE PASSWORDLESS_USER_ADMIN PERSIST_RO_VARIABLES_ADMIN \
    REPLICATION_APPLIER REPLICATION_SLAVE_ADMIN RESOURCE_GROUP_ADMIN RESOURCE_GROUP_USER \
    ROLE_ADMIN SENSITIVE_VARIABLES_OBSERVER SERVICE_CONNECTION_ADMIN \
    SESSION_VARIABLES_ADMIN SET_ANY_DEFINER SHOW_ROUTINE SYSTEM_USER \
    SYSTEM_VARIABLES_ADMIN TABLE_ENCRYPTION_ADMIN TELEMETRY_LOG_ADMIN \
    TRANSACTION_GTID_TAG XA_RECOVER_ADMIN";
