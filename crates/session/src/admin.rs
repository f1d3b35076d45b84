//! Statements about the server and other sessions, and SHOW through the rewriters.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{AccountName, LockMode, PrivilegeSet};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{
    Answer, ColumnMeta, CommandOutcome, OkInfo, ResultSink, SessionFactory, SessionServices,
};
use statements::encryption::{alter_instance_privilege, reload_keyring, rotate_master_key};
use syntax::Statement;
use syntax::ast::{self, Explain, Flush, FlushItem, FlushTablesMode, ShowKind};
use types::{CollationId, DataType, Value};

use crate::binary_log;
use crate::program_host::ProgramSession;
use crate::rewritten::{information, plan_rewritten};
use crate::session::{Session, enterable_schema};
use programs::{Origin, Running};
use statements::sink::send_rows;

/// KILL.
pub(crate) fn run_kill(
    session: &mut Session,
    query_only: bool,
    id: &ast::Expr,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let id = match session.evaluate(id, running)?.0 {
        Value::Int(id) => u64::try_from(id).map_err(|_| err!(NO_SUCH_THREAD, id))?,
        Value::UInt(id) => id,
        other => bail!(NO_SUCH_THREAD, variables::shown(&other)),
    };
    session.kill_connection(id, query_only)?;
    if id == session.shared.id && !query_only {
        session.statement.outcome = CommandOutcome::Close;
        bail!(QUERY_INTERRUPTED);
    }
    session.send_ok(sink, OkInfo::default())
}

impl Session {
    /// Stops a session or its statement.
    ///
    /// # Errors
    /// 1094, 1095.
    pub(crate) fn kill_connection(&mut self, id: u64, query_only: bool) -> Result<()> {
        let target = self.server.sessions.get(id).ok_or_else(|| err!(NO_SUCH_THREAD, id))?;
        let own = target.activity.lock().account == self.account.to_string();
        if !own && !self.privileges.has_dynamic("CONNECTION_ADMIN") {
            bail!(KILL_DENIED_ERROR, id);
        }
        if query_only {
            target.cancel.kill_query();
        } else {
            target.cancel.kill_connection();
        }
        Ok(())
    }
}

/// SHUTDOWN.
pub(crate) fn run_shutdown(session: &mut Session, sink: &mut dyn ResultSink) -> Result<()> {
    session.require_global(PrivilegeSet::SHUTDOWN)?;
    session.send_ok(sink, OkInfo::default())?;
    session.statement.outcome = CommandOutcome::Close;
    session.server.request_shutdown();
    Ok(())
}

/// RESTART.
///
/// # Errors
/// 1227, 3707.
pub(crate) fn run_restart(session: &mut Session, sink: &mut dyn ResultSink) -> Result<()> {
    session.require_global(PrivilegeSet::SHUTDOWN)?;
    session.server.request_restart()?;
    session.send_ok(sink, OkInfo::default())?;
    session.statement.outcome = CommandOutcome::Close;
    Ok(())
}

/// ALTER INSTANCE.
pub(crate) fn alter_instance(
    session: &mut Session,
    alter: &ast::AlterInstance,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let privilege = alter_instance_privilege(alter)?;
    match alter {
        ast::AlterInstance::ReloadTls { .. } | ast::AlterInstance::ReloadKeyring => {
            session.require_dynamic_alone(privilege)?;
        }
        ast::AlterInstance::RotateInnodbMasterKey
        | ast::AlterInstance::RotateBinlogMasterKey
        | ast::AlterInstance::EnableRedoLog
        | ast::AlterInstance::DisableRedoLog => session.require_dynamic(privilege)?,
    }
    let server = &session.server;
    let (registry, engine) = (server.registry(), &*server.default_engine);
    match alter {
        ast::AlterInstance::ReloadTls { no_rollback_on_error, .. } => {
            server.reload_tls(*no_rollback_on_error)?;
        }
        ast::AlterInstance::ReloadKeyring => reload_keyring(&registry, engine)?,
        ast::AlterInstance::RotateInnodbMasterKey
        | ast::AlterInstance::RotateBinlogMasterKey
        | ast::AlterInstance::EnableRedoLog
        | ast::AlterInstance::DisableRedoLog => {
            let uuid = SessionFactory::global_text(&**server, "server_uuid");
            rotate_master_key(&registry, engine, &uuid)?;
        }
    }
    session.send_ok(sink, OkInfo::default())
}

/// FLUSH: nothing has to be flushed, as everything is current; its locks are taken, and log files are opened again.
pub(crate) fn run_flush(
    session: &mut Session,
    flush: &Flush,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    ::accounts::require_flush(session, flush)?;
    for item in &flush.items {
        match item {
            FlushItem::Tables { tables, mode } => flush_tables(session, tables, *mode)?,
            FlushItem::Status => session.server.sessions.reset_sums(),
            FlushItem::Privileges => {
                session.refresh_privileges();
                session.server.logins.failed.forget_all();
                session
                    .working
                    .warn(ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT, &[&"FLUSH PRIVILEGES"]);
            }
            FlushItem::ErrorLogs | FlushItem::GeneralLogs | FlushItem::SlowLogs => {
                session.server.reopen_logs()?
            }
            FlushItem::Logs => {
                session.server.reopen_logs()?;
                binary_log::rotate(session)?;
            }
            FlushItem::BinaryLogs => binary_log::rotate(session)?,
            FlushItem::EngineLogs | FlushItem::OptimizerCosts | FlushItem::RelayLogs { .. } => {}
            FlushItem::UserResources => session.server.logins.usages.reset(),
        }
    }
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo::default())
}

fn flush_tables(
    session: &mut Session,
    tables: &[ast::ObjectName],
    mode: FlushTablesMode,
) -> Result<()> {
    session.handlers.forget_places();
    if !tables.is_empty() && mode != FlushTablesMode::Close && session.locked.is_in_force() {
        bail!(LOCK_OR_ACTIVE_TRANSACTION);
    }
    match mode {
        FlushTablesMode::Close => {
            for name in tables {
                let (schema, name) = session.qualify(name)?;
                session.find_table(&schema, &name)?;
            }
            Ok(())
        }
        FlushTablesMode::WithReadLock if tables.is_empty() => {
            let timeout = session.settings.lock_wait_timeout;
            let wanted = [(None, LockMode::NoWrite)];
            let locks = session.server.metadata_locks.clone();
            let guard = locks.lock(session.shared.id, &wanted, timeout, &session.shared.cancel)?;
            let cancel = session.shared.cancel.clone();
            sys::blocking::blocking(|| session.server.catalog.wait_for_earlier_commits(&cancel))?;
            session.locked.global_read = Some(guard);
            Ok(())
        }
        FlushTablesMode::ForExport => crate::transport::export_tables(session, tables),
        FlushTablesMode::WithReadLock => {
            let locks: Vec<ast::LockTable> = tables
                .iter()
                .map(|name| ast::LockTable {
                    name: name.clone(),
                    alias: None,
                    mode: ast::LockTableMode::Read,
                })
                .collect();
            session.take_table_locks(&locks)
        }
    }
}

/// SHOW, DESCRIBE and HELP.
pub(crate) fn run_rewritten(
    session: &mut Session,
    statement: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if let Statement::Show(show) = statement {
        if matches!(
            show.kind,
            ShowKind::Warnings(_)
                | ShowKind::Errors(_)
                | ShowKind::WarningCount
                | ShowKind::ErrorCount
        ) {
            session.statement.keeps_diagnostics = true;
        }
        let old = match show.kind {
            ShowKind::Profiles => Some("SHOW PROFILES"),
            ShowKind::Profile { .. } => Some("SHOW PROFILE"),
            _ => None,
        };
        if let Some(old) = old {
            let words: [&dyn std::fmt::Display; 2] = [&old, &"Performance Schema"];
            session.working.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &words);
        }
        if let Some(done) = show_directly(session, &show.kind, sink)? {
            return Ok(done);
        }
    }
    let types = session.parameter_types(running);
    let planned = plan_rewritten(session, statement, running.source, types.as_deref())?;
    session.lock_plan(&planned)?;
    let found_rows = session.services.found_rows;
    session.run_to_client(&planned, running.parameters, sink)?;
    if let Statement::Show(show) = statement
        && matches!(show.kind, ShowKind::Warnings(_) | ShowKind::Errors(_))
    {
        session.services.found_rows = found_rows;
    }
    Ok(())
}

/// SHOW statements about accounts and programs, which are not views of a table.
fn show_directly(
    session: &mut Session,
    kind: &ShowKind,
    sink: &mut dyn ResultSink,
) -> Result<Option<()>> {
    match kind {
        ShowKind::Grants { user, using } => {
            show_grants(session, user.as_ref(), using, sink).map(Some)
        }
        ShowKind::CreateProcedure(name) => programs::show_create_routine(
            &mut ProgramSession::new(session),
            name,
            catalog::RoutineKind::Procedure,
            sink,
        )
        .map(Some),
        ShowKind::CreateLibrary(name) => {
            programs::show_create_library(&mut ProgramSession::new(session), name, sink).map(Some)
        }
        ShowKind::CreateEvent(name) => {
            programs::show_create_event(&mut ProgramSession::new(session), name, sink).map(Some)
        }
        ShowKind::Events(schema) => {
            let schema = match schema {
                Some(schema) => Arc::from(&*schema.text),
                None => session.current_schema()?,
            };
            if !session.privileges.on_schema(&schema).contains(PrivilegeSet::EVENT) {
                let AccountName { user, host } = &session.account;
                bail!(DBACCESS_DENIED_ERROR, user, host, schema);
            }
            Ok(None)
        }
        ShowKind::Tables { schema: Some(schema), .. } => {
            session.require_entry(&schema.text)?;
            Ok(None)
        }
        ShowKind::CreateTrigger(name) => {
            programs::show_create_trigger(&mut ProgramSession::new(session), name, sink).map(Some)
        }
        ShowKind::CreateFunction(name) => programs::show_create_routine(
            &mut ProgramSession::new(session),
            name,
            catalog::RoutineKind::Function,
            sink,
        )
        .map(Some),
        ShowKind::CreateUser(user) => show_create_user(session, user, sink).map(Some),
        ShowKind::CreateChangeStream(name) => {
            binary_log::check_stream(session, &name.text).map(|()| None)
        }
        _ => Ok(None),
    }
}

/// SHOW GRANTS: of an account, by default the session's own; with the roles that USING names.
fn show_grants(
    session: &mut Session,
    user: Option<&ast::UserName>,
    using: &[ast::UserName],
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let name = match user {
        Some(user) if !user.current => {
            Some(format!("{}@{}", user.user, user.host.as_deref().unwrap_or("%")))
        }
        _ => None,
    };
    let roles = using
        .iter()
        .map(|role| catalog::AccountName::new(&role.user, role.host.as_deref().unwrap_or("%")));
    let roles: Vec<catalog::AccountName> = roles.collect();
    let grants = information(session).grants_with(name.as_deref(), &roles)?;
    let shown = name.unwrap_or_else(|| session.account.to_string());
    let column = ColumnMeta::computed(&format!("Grants for {shown}"), statement_type());
    let rows: Vec<Vec<Value>> = grants.iter().map(|grant| vec![Value::text(grant)]).collect();
    let state = session.state_info();
    send_rows(sink, &[column], &rows, &state)
}

/// SHOW CREATE USER.
fn show_create_user(
    session: &mut Session,
    user: &ast::UserName,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let name = if user.current {
        session.account.clone()
    } else {
        catalog::AccountName::new(&user.user, user.host.as_deref().unwrap_or("%"))
    };
    let accounts = session.server.catalog.snapshot().accounts().clone();
    let account = accounts.get(&name).ok_or_else(|| {
        let shown = format!("'{}'@'{}'", name.user, name.host);
        err!(CANNOT_USER, "SHOW CREATE USER", format!("{shown} (User account does not exist)"))
    })?;
    if name != session.account {
        session.require_global(PrivilegeSet::CREATE_USER)?;
    }
    let column = ColumnMeta::computed(&format!("CREATE USER for {name}"), statement_type());
    let form = match variables::as_text(&session.value("print_identified_with_as_hex")).as_str() {
        "1" | "ON" => describe::SecretForm::Hex,
        _ => describe::SecretForm::Text,
    };
    let statement = describe::create_user_statement(account, form);
    let state = session.state_info();
    send_rows(sink, &[column], &[vec![Value::text(&statement)]], &state)
}

/// The column type of statement texts in SHOW.
fn statement_type() -> DataType {
    DataType::varchar(1024, CollationId::UTF8MB4_0900_AI_CI)
}

/// EXPLAIN of a statement with a plan; ANALYZE runs it.
pub(crate) fn run_explain(
    session: &mut Session,
    statement: &Statement,
    explain: &Explain,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if let Some(variable) = &explain.into {
        return explain_into(session, &variable.text, explain, running, sink);
    }
    if let Some(schema) = &explain.schema {
        return explain_for_schema(session, &schema.text, explain, running, sink);
    }
    if let ast::ExplainTarget::Connection(id) = explain.target
        && !explain.analyze
    {
        return explain_connection(session, id, explain, sink);
    }
    if let ast::ExplainTarget::Statement(inner) = &explain.target
        && matches!(**inner, Statement::Show(_) | Statement::Describe(_))
    {
        bail!(EXPLAIN_NOT_SUPPORTED);
    }
    if let ast::ExplainTarget::Statement(inner) = &explain.target
        && let Statement::Set(items) = &**inner
    {
        if explain.analyze || explain.format.is_some() {
            return Err(Error::not_supported("EXPLAIN ANALYZE and FORMAT of SET"));
        }
        return crate::set::explain_set(session, items, running, sink);
    }
    if let ast::ExplainTarget::Statement(inner) = &explain.target
        && let Statement::AlterCluster(change) = &**inner
    {
        return crate::cluster::alter_cluster(session, change, true, sink);
    }
    if let ast::ExplainTarget::Statement(inner) = &explain.target
        && !has_plan(inner)
    {
        return crate::ddl::explain_definition(session, explain, inner, running, sink);
    }
    if explain.analyze {
        return crate::analyze::explain_analyze(session, explain, running, sink);
    }
    let format = match &explain.format {
        Some(format) => format.text.to_string(),
        None => variables::as_text(&session.value("explain_format")),
    };
    if format.eq_ignore_ascii_case("JSON")
        && let ast::ExplainTarget::Statement(inner) = &explain.target
    {
        return crate::analyze::explain_json(session, inner, running, sink);
    }
    if explain.format.is_some() {
        return session.run_planned_statement(statement, running, sink);
    }
    let format = if format == "DEFAULT" { "TRADITIONAL" } else { &format };
    let formatted = Explain { format: Some(ast::Ident::new(format)), ..explain.clone() };
    session.run_planned_statement(&Statement::Explain(Box::new(formatted)), running, sink)
}

/// EXPLAIN INTO: the plan as JSON becomes the value of a user variable.
///
/// # Errors
/// 6006, 6007, 6009, those of the EXPLAIN.
fn explain_into(
    session: &mut Session,
    variable: &str,
    explain: &Explain,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    match &explain.format {
        None => bail!(EXPLAIN_INTO_IMPLICIT_FORMAT_NOT_SUPPORTED),
        Some(format) if !format.text.eq_ignore_ascii_case("JSON") => {
            bail!(EXPLAIN_INTO_FORMAT_NOT_SUPPORTED, format.text.to_uppercase())
        }
        Some(_) if matches!(explain.target, ast::ExplainTarget::Connection(_)) => {
            bail!(EXPLAIN_INTO_FOR_CONNECTION_NOT_SUPPORTED)
        }
        Some(_) => {}
    }
    let shown = Explain { into: None, ..explain.clone() };
    let mut answer = Answer::new(1);
    run_explain(
        session,
        &Statement::Explain(Box::new(shown.clone())),
        &shown,
        running,
        &mut answer,
    )?;
    let answer = answer.finish()?;
    let (column, row) = (answer.columns.first(), answer.rows.into_iter().next());
    let value = row.and_then(|row| row.into_iter().next());
    let (Some(column), Some(value)) = (column, value) else {
        return Err(Error::internal("EXPLAIN FORMAT=JSON has one value"));
    };
    session.services.set_user_variable(variable, value, column.ty.clone());
    session.send_ok(sink, OkInfo::default())
}

/// EXPLAIN FOR SCHEMA: names without a schema are those of this one.
///
/// # Errors
/// 1049, 1044, those of the EXPLAIN.
fn explain_for_schema(
    session: &mut Session,
    schema: &str,
    explain: &Explain,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let schema = enterable_schema(session, schema)?;
    let shown = Explain { schema: None, ..explain.clone() };
    let before = session.services.database.replace(schema);
    let statement = Statement::Explain(Box::new(shown.clone()));
    let outcome = run_explain(session, &statement, &shown, running, sink);
    session.services.database = before;
    outcome
}

/// Whether a statement is planned.
fn has_plan(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)
    )
}

/// EXPLAIN FOR CONNECTION: the plan that this session would choose for another session's statement, in that session's schema.
///
/// # Errors
/// 1094, 1045, and 3012 when it runs nothing that has a plan.
fn explain_connection(
    session: &mut Session,
    id: u64,
    explain: &Explain,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let target = session.server.sessions.get(id).ok_or_else(|| err!(NO_SUCH_THREAD, id))?;
    let (own, text, database) = {
        let activity = target.activity.lock();
        let own = activity.account == session.account.to_string();
        (own, activity.info.clone(), activity.database.clone())
    };
    if !own && !session.privileges.global().contains(PrivilegeSet::PROCESS) {
        let (user, host) = (&session.account.user, &session.account.host);
        bail!(ACCESS_DENIED_ERROR, user, host, "YES");
    }
    let parsed = syntax::parse_bytes(&text, &session.reading().options());
    let Ok((inner, _)) = parsed else { bail!(EXPLAIN_NOT_SUPPORTED) };
    if !has_plan(&inner) {
        bail!(EXPLAIN_NOT_SUPPORTED);
    }
    let explain =
        Explain { target: ast::ExplainTarget::Statement(Box::new(inner)), ..explain.clone() };
    let statement = Statement::Explain(Box::new(explain.clone()));
    let running = Running { source: &text, parameters: &[], origin: Origin::Text, kept: None };
    let before = std::mem::replace(&mut session.services.database, database);
    let outcome = run_explain(session, &statement, &explain, &running, sink);
    session.services.database = before;
    outcome
}
