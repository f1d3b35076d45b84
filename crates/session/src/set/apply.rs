//! Stores the checked assignments of SET.

use std::sync::Arc;

use catalog::Edit;
use errors::Result;
use plugin_api::{EventSet, SessionServices, StateChange};
use types::Value;
use variables::{Origin, VariableId, as_text, as_u64, display_text};

use super::Assignment;
use crate::program_host::ProgramSession;
use crate::server::ENGINE_OPTIONS;
use crate::session::Session;

/// Stores everything.
pub(super) fn apply(session: &mut Session, assignments: Vec<Assignment>) -> Result<()> {
    let mut edits = Vec::new();
    let changes_settings = assignments.iter().any(|assignment| {
        !matches!(assignment, Assignment::Local { .. } | Assignment::User { .. })
    });
    for assignment in assignments {
        match assignment {
            Assignment::Local { variable, value, ty } => {
                programs::assign_local(&mut ProgramSession::new(session), &variable, &value, &ty)?;
            }
            Assignment::User { name, value, ty } => {
                session.services.set_user_variable(&name.text, value, ty);
            }
            Assignment::Session { id, value } => apply_session(session, id, value),
            Assignment::NextTransaction { id, value } => apply_next(session, id, &value),
            Assignment::Global { id, value } => apply_global(session, id, &value)?,
            Assignment::Persist { id, value, only } => {
                if !only {
                    apply_global(session, id, &value)?;
                }
                let name = session.server.globals.definitions.get(id).name;
                let text = if value.is_null() { "NULL".into() } else { as_text(&value) };
                edits.push(Edit::PutVariable { name: name.into(), value: text.into() });
            }
            Assignment::ResultsCollation(id) => session.client.results_collation = Some(id.0),
            Assignment::Unpersist { id } => {
                let name = session.server.globals.definitions.get(id).name;
                edits.push(Edit::DropVariable(name.into()));
            }
        }
    }
    if changes_settings {
        session.refresh_settings();
    }
    if !edits.is_empty() {
        session.server.catalog.commit_alone(&edits, &session.shared.cancel)?;
    }
    Ok(())
}

fn apply_session(session: &mut Session, id: VariableId, value: Value) {
    let definition = session.server.globals.definitions.get(id);
    if session.server.hooks.wants(EventSet::SESSION_VARIABLE) {
        let (connection, name) = (session.shared.id, definition.name);
        session.server.tell(EventSet::SESSION_VARIABLE, |observer| {
            observer.variable_set(connection, name, &value);
        });
    }
    match definition.name {
        "timestamp" => {
            let seconds = match &value {
                Value::Double(seconds) => *seconds,
                _ => 0.0,
            };
            session.services.fixed_now_micros =
                (seconds > 0.0).then(|| (seconds * 1e6).round() as i64);
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
    if session.settings.track_state {
        session.statement.changes.push(StateChange::State);
    }
}

fn apply_next(session: &mut Session, id: VariableId, value: &Value) {
    let mut next = session.transactions.next_characteristics(&session.settings);
    match session.server.globals.definitions.get(id).name {
        "transaction_isolation" => {
            next.isolation = variables::isolation(&as_text(value));
        }
        _ => next.read_only = as_u64(value) == 1,
    }
    session.transactions.next = Some(next);
}

fn apply_global(session: &mut Session, id: VariableId, value: &Value) -> Result<()> {
    let globals = &session.server.globals;
    let mut changes = vec![(id, value.clone())];
    match globals.definitions.get(id).name {
        "super_read_only" if as_u64(value) == 1 => {
            changes.extend(globals.definitions.find("read_only").map(|id| (id, Value::Int(1))));
        }
        "read_only" if as_u64(value) == 0 => {
            let other = globals.definitions.find("super_read_only");
            changes.extend(other.map(|id| (id, Value::Int(0))));
        }
        "gtid_purged" => return globals.set_gtid_purged(&as_text(value)),
        "prepared_stmt_memory_limit" => {
            session.server.prepared_plans.set_limit(as_u64(value) as usize / 2);
        }
        "table_definition_cache" => {
            let tables = as_u64(value) as usize;
            session.server.catalog.with(|snapshot| snapshot.set_read_limit(tables));
        }
        "lock_stats" => sys::lock_stats::set(as_u64(value) == 1),
        "plan_cache_size" => session.server.plan_cache.set_limit(as_u64(value) as usize),
        name if ENGINE_OPTIONS.contains(&name) => {
            session.server.set_engine_option(name, as_u64(value));
        }
        _ => {}
    }
    globals.set(&changes, Origin::Dynamic);
    session.server.hooks.refresh(&session.server.registry());
    session.server.events.wake();
    Ok(())
}
