//! SET in all its forms, and ALTER SYSTEM SET. All values are computed and checked first (`check`), then all are stored (`apply`), so that a statement changes
//! everything or nothing; only a set for `gtid_purged` that conflicts with the present one is found when it is stored.

mod apply;
mod check;
mod log_options;

use ::accounts::PrivilegeChecks;
use describe::{Level, PlannedSetting};
use errors::{ErrorCode, Result, bail};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{ExprKind, Ident, LocalVariable, SetItem, SystemVar};
use types::{DataType, Value};
use variables::{KeyCachePart, VariableId};

use self::apply::apply;
pub(crate) use self::apply::changed_by;
use self::check::Checker;
use crate::session::Session;
use programs::Running;

/// One checked assignment.
enum Assignment {
    Local {
        variable: LocalVariable,
        value: Value,
        ty: DataType,
    },
    User {
        name: Ident,
        value: Value,
        ty: DataType,
    },
    Session {
        id: VariableId,
        value: Value,
    },
    /// Only the next transaction: `SET @@transaction_isolation = ...`.
    NextTransaction {
        id: VariableId,
        value: Value,
    },
    Global {
        id: VariableId,
        value: Value,
    },
    Persist {
        id: VariableId,
        value: Value,
        only: bool,
    },
    /// ALTER SYSTEM SET.
    Rebind {
        id: VariableId,
        value: Value,
    },
    Unpersist {
        id: VariableId,
    },
    KeyCache {
        part: KeyCachePart,
        value: Value,
    },
    /// SET NAMES: the collation that results are described with.
    ResultsCollation(types::CollationId),
}

/// SET.
pub(crate) fn run_set(
    session: &mut Session,
    items: &[SetItem],
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let assignments = check(session, items, running)?;
    let autocommit = session.settings.autocommit;
    let kept = apply(session, assignments)?;
    let mut commit = session.autocommit_changed(autocommit)?;
    if commit.is_none() {
        commit = session.finish_transaction_scope()?;
    }
    if let (Some(kept), Some(_)) = (&kept, &commit) {
        // A reply waits for one commit.
        session.transactions.wait_for(kept)?;
    }
    let commit = commit.or(kept);
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
}

/// EXPLAIN of SET: the statement is checked, and nothing changes.
pub(crate) fn explain_set(
    session: &mut Session,
    items: &[SetItem],
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    describe::check_explainable(items)?;
    let assignments = check(session, items, running)?;
    let planned = assignments.into_iter().filter_map(|assignment| planned(session, assignment));
    let planned: Vec<PlannedSetting> = planned.collect();
    let rows = describe::setting_rows(&*session.server, &planned);
    let state = session.state_info();
    statements::sink::send_rows(sink, &describe::setting_columns(), &rows, &state)
}

/// An assignment to a system variable, for EXPLAIN.
fn planned(session: &Session, assignment: Assignment) -> Option<PlannedSetting> {
    let (id, new, level) = match assignment {
        Assignment::Session { id, value } => (id, value, Level::Session),
        Assignment::NextTransaction { id, value } => (id, value, Level::NextTransaction),
        Assignment::Global { id, value } => (id, value, Level::Global),
        Assignment::Persist { id, value, only: false } => (id, value, Level::Persist),
        Assignment::Persist { id, value, only: true } => (id, value, Level::PersistOnly),
        Assignment::Rebind { id, value } => (id, value, Level::Rebind),
        Assignment::Local { .. }
        | Assignment::User { .. }
        | Assignment::Unpersist { .. }
        | Assignment::KeyCache { .. }
        | Assignment::ResultsCollation(_) => return None,
    };
    let is_own = matches!(level, Level::Session | Level::NextTransaction);
    let name = session.server.globals.definitions.get(id).name;
    let current = session.services.variable(name, !is_own)?;
    Some(PlannedSetting { id, level, current, new })
}

/// Computes and checks the values.
fn check(
    session: &mut Session,
    items: &[SetItem],
    running: &Running<'_>,
) -> Result<Vec<Assignment>> {
    let mut checker = Checker::new(session);
    for item in items {
        match item {
            SetItem::UserVar { name, value } => {
                let (value, ty) = checker.session.evaluate(value, running)?;
                checker.assignments.push(Assignment::User { name: name.clone(), value, ty });
            }
            SetItem::Local { variable, value } => {
                let (value, ty) = match &value.kind {
                    ExprKind::Default(None) => (Value::Null, DataType::null()),
                    _ => checker.session.evaluate(value, running)?,
                };
                checker.assignments.push(Assignment::Local {
                    variable: variable.clone(),
                    value,
                    ty,
                });
            }
            SetItem::Variable { scope, at_at, component, name, value } => {
                // Variables of components have a dot in their names.
                let dotted = component
                    .as_ref()
                    .map(|component| Ident::new(&format!("{}.{}", component.text, name.text)));
                let name = dotted.as_ref().unwrap_or(name);
                checker.check_variable(*scope, *at_at, name, value, running)?;
            }
            SetItem::Names { charset, collation } => {
                checker.check_names(charset.as_ref(), collation.as_ref())?;
                let text = |name: &Option<Ident>| name.as_ref().map(|name| name.text.clone());
                let (charset, collation) = (text(charset), text(collation));
                let working = &mut checker.session.working;
                definitions::note_old_charset(working, charset.as_deref(), collation.as_deref());
            }
            SetItem::CharacterSet(charset) => {
                checker.check_character_set(charset.as_ref())?;
            }
        }
    }
    Ok(checker.assignments)
}

/// RESET PERSIST.
pub(crate) fn reset_persist(
    session: &mut Session,
    if_exists: bool,
    name: Option<&SystemVar>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_variable_admin()?;
    let snapshot = session.server.catalog.snapshot();
    let mut assignments = Vec::new();
    match name {
        None => {
            for name in snapshot.persisted().keys() {
                let id = session.server.globals.definitions.find_known(name);
                assignments.extend(id.map(|id| Assignment::Unpersist { id }));
            }
        }
        Some(variable) => {
            let name = variable.name.text.to_ascii_lowercase();
            if snapshot.persisted().contains_key(name.as_str()) {
                let id = session.server.globals.definitions.find_known(&name);
                assignments.extend(id.map(|id| Assignment::Unpersist { id }));
            } else if if_exists {
                session.working.warn(ErrorCode::VARIABLE_NOT_PERSISTED, &[&name]);
            } else {
                bail!(VARIABLE_NOT_PERSISTED, name);
            }
        }
    }
    let commit = apply(session, assignments)?;
    session.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
}
