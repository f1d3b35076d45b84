//! Stores the checked assignments of SET.

use std::sync::Arc;

use catalog::Edit;
use engine_api::CommitHandle;
use errors::Result;
use plugin_api::{EventSet, SessionServices, StateChange};
use statements::persisted::put_variable;
use types::Value;
use variables::{Changed, Globals, Origin, Provenance, VariableId, as_text, as_u64, display_text};

use super::Assignment;
use crate::program_host::ProgramSession;
use crate::server::{ENGINE_OPTIONS, Server};
use crate::session::Session;

/// Stores everything. The global values and those kept for later starts are one transaction: all change, or on an error none. The commit of
/// the latter is to be waited for.
pub(super) fn apply(
    session: &mut Session,
    assignments: Vec<Assignment>,
) -> Result<Option<CommitHandle>> {
    let changed = changed_by(session);
    let (mut globals, mut edits) = (Vec::new(), Vec::new());
    let (mut rebound, mut own) = (Vec::new(), Vec::new());
    let changes_settings = assignments.iter().any(|assignment| {
        !matches!(assignment, Assignment::Local { .. } | Assignment::User { .. })
    });
    for assignment in assignments {
        match assignment {
            Assignment::Global { id, value } => globals.push((id, value)),
            Assignment::Persist { id, value, only } => {
                edits.push(put_variable(&session.server.globals, id, &value, &changed));
                if !only {
                    globals.push((id, value));
                }
            }
            Assignment::Rebind { id, value } => rebound.push((id, value)),
            Assignment::Unpersist { id } => {
                let name = session.server.globals.definitions.get(id).name;
                edits.push(Edit::DropVariable(name.into()));
            }
            Assignment::Local { .. }
            | Assignment::User { .. }
            | Assignment::Session { .. }
            | Assignment::NextTransaction { .. }
            | Assignment::KeyCache { .. }
            | Assignment::ResultsCollation(_) => own.push(assignment),
        }
    }
    let commit = match rebound.is_empty() {
        true => store_globals(session, &globals, &edits, changed)?,
        // All assignments of the statement are such.
        false => session.server.rebind(&rebound, changed, &session.shared.cancel)?,
    };
    for assignment in own {
        apply_own(session, assignment)?;
    }
    if changes_settings {
        session.refresh_settings();
    }
    Ok(commit)
}

/// The session's user as the one who changes values now.
pub(crate) fn changed_by(session: &Session) -> Changed {
    let (user, host) = session.services.user.rsplit_once('@').unwrap_or_default();
    Changed { micros: session.server.now_micros(), user: user.into(), host: host.into() }
}

/// What belongs to the session or its statement.
fn apply_own(session: &mut Session, assignment: Assignment) -> Result<()> {
    session.statement.state_changed = true;
    match assignment {
        Assignment::Local { variable, value, ty } => {
            programs::assign_local(&mut ProgramSession::new(session), &variable, &value, &ty)?;
        }
        Assignment::User { name, value, ty } => {
            session.services.set_user_variable(&name.text, value, ty);
        }
        Assignment::Session { id, value } => apply_session(session, id, value),
        Assignment::NextTransaction { id, value } => apply_next(session, id, &value),
        Assignment::KeyCache { part, value } => session.server.globals.key_caches.set(&part, value),
        Assignment::ResultsCollation(id) => session.client.results_collation = Some(id.0),
        Assignment::Global { .. }
        | Assignment::Persist { .. }
        | Assignment::Rebind { .. }
        | Assignment::Unpersist { .. } => {}
    }
    Ok(())
}

fn apply_session(session: &mut Session, id: VariableId, value: Value) {
    let definition = session.server.globals.definitions.get(id);
    if session.server.hooks.wants(EventSet::SESSION_VARIABLE) {
        let (connection, name) = (session.shared.id, definition.name);
        session.server.hooks.tell(EventSet::SESSION_VARIABLE, |observer| {
            observer.variable_set(connection, name, &value);
        });
    }
    match definition.name {
        "timestamp" => {
            let seconds = match &value {
                Value::Double(seconds) => *seconds,
                _ => 0.0,
            };
            session.services.fixed_now_micros = (seconds > 0.0).then_some((seconds * 1e6) as i64);
        }
        "insert_id" => session.services.insert_id = Some(as_u64(&value)).filter(|id| *id > 0),
        "last_insert_id" => session.services.last_insert_id = as_u64(&value),
        "rand_seed1" => {
            session.services.seeds.0 = (as_u64(&value) % 0x3FFF_FFFF) as u32;
            session.services.seeds_given = true;
        }
        "rand_seed2" => {
            session.services.seeds.1 = (as_u64(&value) % 0x3FFF_FFFF) as u32;
            session.services.seeds_given = true;
        }
        // The connection's number does not change.
        "pseudo_thread_id" => {}
        name => {
            if matches!(name, "transaction_isolation" | "transaction_read_only") {
                session.transactions.next = None;
            }
            if name == "session_track_transaction_info" {
                session.transactions.report.restart();
            }
            if name == "gtid_next"
                && let Some(watcher) = &mut session.transactions.watcher
            {
                watcher.renew_identifier();
            }
            if name == "character_set_results" {
                session.client.results_collation = None;
            }
            if session.settings.tracks(name) {
                let shown = display_text(definition, &value);
                session.statement.changes.push(StateChange::SystemVariable(name.to_owned(), shown));
            }
            Arc::make_mut(&mut session.services.values).set(id, value);
        }
    }
}

fn apply_next(session: &mut Session, id: VariableId, value: &Value) {
    let transactions = &mut session.transactions;
    let mut next = transactions.next_characteristics(&session.settings);
    let follows = transactions.next.is_some();
    match session.server.globals.definitions.get(id).name {
        "transaction_isolation" => {
            next.isolation = variables::isolation(&as_text(value));
            transactions.report.name_next(Some(next.isolation), None, follows);
        }
        _ => {
            next.read_only = as_u64(value) == 1;
            transactions.report.name_next(None, Some(next.read_only), follows);
        }
    }
    transactions.next = Some(next);
}

/// Keeps the edits for later starts and changes the values, or on an error neither. Values and edits change in the same order, whatever other
/// sessions set at the same time.
fn store_globals(
    session: &Session,
    values: &[(VariableId, Value)],
    edits: &[Edit],
    changed: Changed,
) -> Result<Option<CommitHandle>> {
    let server = &session.server;
    if values.is_empty() && edits.is_empty() {
        return Ok(None);
    }
    let provenance = Provenance { origin: Origin::Dynamic, changed: Some(Arc::new(changed)) };
    let mut commit = None;
    server.globals.change(&provenance, || {
        let all = with_dependent(&server.globals, values)?;
        let mut edits = edits.to_vec();
        edits.extend(account_rules(&server.globals, &all));
        if !edits.is_empty() {
            commit = Some(server.catalog.commit_alone(&edits, &session.shared.cancel)?);
        }
        Ok(all)
    })?;
    if !values.is_empty() {
        values.iter().try_for_each(|(id, value)| take_effect(server, *id, value))?;
        server.hooks.refresh(&server.registry());
        server.events.wake();
    }
    Ok(commit)
}

/// The edit that gives all accounts their new rules, when one of the values is such a rule.
fn account_rules(globals: &Globals, values: &[(VariableId, Value)]) -> Option<Edit> {
    let name_of = |id: VariableId| globals.definitions.get(id).name;
    let given = |name: &str| values.iter().rev().find(|(id, _)| name_of(*id) == name);
    let value =
        |name: &str| given(name).map_or_else(|| globals.text(name), |(_, value)| as_text(value));
    let is_rule = values.iter().any(|(id, _)| ::accounts::RULES.contains(&name_of(*id)));
    is_rule.then(|| Edit::PutAccountRules(::accounts::account_rules(value)))
}

/// The values, and those of variables that change with them.
fn with_dependent(
    globals: &Globals,
    values: &[(VariableId, Value)],
) -> Result<Vec<(VariableId, Value)>> {
    let mut all: Vec<(VariableId, Value)> = Vec::with_capacity(values.len() + 1);
    for (id, value) in values {
        let definitions = &globals.definitions;
        match definitions.get(*id).name {
            "gtid_purged" => {
                let before = all.iter().rev().find(|(known, _)| known == id);
                let before = before.map(|(_, value)| as_text(value));
                all.extend(globals.gtid_purged_after(&as_text(value), before.as_deref())?);
                continue;
            }
            "super_read_only" if as_u64(value) == 1 => {
                all.extend(definitions.find("read_only").map(|id| (id, Value::Int(1))));
            }
            "read_only" if as_u64(value) == 0 => {
                all.extend(definitions.find("super_read_only").map(|id| (id, Value::Int(0))));
            }
            _ => {}
        }
        all.push((*id, value.clone()));
    }
    Ok(all)
}

/// Tells those who do not read the variable themselves.
///
/// # Errors
/// The binary log cannot be written.
fn take_effect(server: &Server, id: VariableId, value: &Value) -> Result<()> {
    match server.globals.definitions.get(id).name {
        "prepared_stmt_memory_limit" => {
            server.prepared_plans.set_limit(as_u64(value) as usize / 2);
        }
        "table_definition_cache" => {
            let tables = as_u64(value) as usize;
            server.catalog.with(|snapshot| snapshot.set_read_limit(tables));
        }
        "gtid_purged" => {
            if let Some(log) = server.registry().binary_log().filter(|log| log.is_active()) {
                log.add_purged(&as_text(value))?;
            }
        }
        "offline_mode" if as_u64(value) == 1 => crate::offline::disconnect_users(server),
        "lock_stats" => sys::lock_stats::set(as_u64(value) == 1),
        "plan_cache_size" => server.plan_cache.set_limit(as_u64(value) as usize),
        "memory_limit"
        | "connection_memory_status_limit"
        | "global_connection_memory_limit"
        | "global_connection_memory_status_limit" => server.divide_memory(),
        name if ENGINE_OPTIONS.contains(&name) => {
            server.set_engine_option(name, as_u64(value));
            server.divide_memory();
        }
        _ => {}
    }
    Ok(())
}
