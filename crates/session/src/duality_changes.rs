//! Changes through JSON duality views: each becomes statements on the tables below, within the one of the client.

use std::sync::Arc;

use binder::PrivilegeKind;
use catalog::{Relation, RelationKind, View};
use duality::{Done, Kind, Request, RowStatement, Shape, Written};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::Statement;
use types::{DataType, Value};

use crate::information_changes::{change_information, changes_information};
use crate::plan_privileges::check_on_view;
use crate::planned::Planned;
use crate::session::Session;
use programs::Running;
use statements::sink::NoRows;

/// Maximum number of times that a plan is made again because definitions changed.
const REPLAN_MAX: usize = 16;
/// Plans that a change keeps while it runs.
const PLANS_MAX: usize = 16;
/// Bytes that the documents of a change may take: what a statement may hold.
const DOCUMENTS_BYTES_MAX: usize = 1 << 30;

/// Runs an INSERT, UPDATE or DELETE.
pub(crate) fn change_rows(
    session: &mut Session,
    statement: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if let Some((table, change)) = changes_information(session, statement) {
        return change_information(session, (&*table, change), running, sink);
    }
    match changed_view(session, statement) {
        Some(view) => change_documents(session, &view, statement, running, sink),
        None => session.run_planned_statement(statement, running, sink),
    }
}

/// Whether a statement changes what is no table: information, or documents of a view.
pub(crate) fn has_no_plan(session: &Session, statement: &Statement) -> bool {
    changes_information(session, statement).is_some() || changed_view(session, statement).is_some()
}

/// The JSON duality view that a statement changes.
fn changed_view(session: &Session, statement: &Statement) -> Option<Arc<View>> {
    let name = duality::changed_name(statement)?;
    let schema = match &name.schema {
        Some(schema) => &*schema.text,
        None => session.services.database.as_deref()?,
    };
    duality_view(session, schema, &name.name.text)
}

/// The JSON duality view of a name.
pub(crate) fn duality_view(session: &Session, schema: &str, name: &str) -> Option<Arc<View>> {
    let catalog = session.view();
    let is_view = catalog.temporary_table(schema, name).is_none()
        && catalog.snapshot.kind(schema, name) == Some(RelationKind::View);
    match is_view.then(|| catalog.relation(schema, name))?? {
        Relation::View(view) => view.is_duality.then_some(view),
        Relation::Table(_) => None,
    }
}

/// The session as the one that runs the statements on a view's tables.
struct Below<'s> {
    session: &'s mut Session,
    view: &'s View,
    /// The plans of statements that have run: most rows are written like others.
    plans: Vec<(Statement, Vec<DataType>, Arc<Planned>)>,
}

impl Below<'_> {
    /// The plan of a statement, with its tables locked.
    fn plan(&mut self, row: &RowStatement) -> Result<Arc<Planned>> {
        let is_of = |known: &&(Statement, Vec<DataType>, Arc<Planned>)| {
            known.0 == row.statement && known.1 == row.types
        };
        if let Some((_, _, known)) = self.plans.iter().rev().find(is_of) {
            self.session.shared.cancel.check()?;
            return Ok(known.clone());
        }
        let planned = self.plan_anew(row)?;
        if self.plans.len() == PLANS_MAX {
            self.plans.remove(0);
        }
        self.plans.push((row.statement.clone(), row.types.clone(), planned.clone()));
        Ok(planned)
    }

    /// Plans a statement with the rights that the view reads its tables with.
    fn plan_anew(&mut self, row: &RowStatement) -> Result<Arc<Planned>> {
        let view = self.view;
        let plan = |session: &Session| {
            let (planner, types) = (session.planner(), Some(&*row.types));
            let mut planned = planner.plan_statement(&row.statement, b"", types)?;
            if let Some(planned) = Arc::get_mut(&mut planned).filter(|_| !view.invoker) {
                for needed in &mut planned.privileges {
                    needed.definer.get_or_insert(view.definer.clone());
                }
            }
            Ok(planned)
        };
        plan_locked(self.session, plan).map_err(|error| match error.code() {
            ErrorCode::TABLEACCESS_DENIED_ERROR | ErrorCode::COLUMNACCESS_DENIED_ERROR => {
                err!(VIEW_INVALID, view.schema, view.name)
            }
            _ => error,
        })
    }
}

/// Makes a plan with the tables of its statement locked.
fn plan_locked(
    session: &mut Session,
    plan: impl Fn(&Session) -> Result<Arc<Planned>>,
) -> Result<Arc<Planned>> {
    for _ in 0..REPLAN_MAX {
        let planned = plan(session)?;
        if session.lock_plan(&planned)? {
            return Ok(planned);
        }
    }
    Err(err!(NEED_REPREPARE))
}

impl duality::Host for Below<'_> {
    fn read(&mut self, query: &RowStatement) -> Result<Option<Vec<Value>>> {
        let planned = self.plan(query)?;
        Ok(self.session.run_collecting(&planned, &query.values)?.into_iter().next())
    }

    fn write(&mut self, row: &RowStatement) -> Result<Written> {
        let planned = self.plan(row)?;
        let outcome = self.session.run_program(&planned, &row.values, &mut NoRows)?;
        Ok(Written { affected: outcome.affected, generated: outcome.generated_id })
    }
}

/// Runs an INSERT, UPDATE or DELETE of a JSON duality view.
fn change_documents(
    session: &mut Session,
    view: &View,
    statement: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Some(request) = Request::of(statement, view)? else {
        return Err(Error::internal("not a change of rows"));
    };
    let savepoint = format!("\0documents {}", session.transactions.function_depth);
    session.transactions.savepoint(&savepoint);
    let changed = change(session, view, &request, running);
    if changed.is_err() {
        // After a deadlock the savepoint is gone with the transaction.
        let _ = session.transactions.rollback_to(&savepoint);
    }
    let _ = session.transactions.release(&savepoint);
    let Done { affected, lacks_tag } = changed?;
    if lacks_tag {
        session.working.warn(ErrorCode::JDV_ETAG_MISSING, &[]);
    }
    session.services.row_count = affected as i64;
    let commit = session.finish_transaction_scope()?;
    let warnings = session.working.warning_count();
    let info = match request.kind {
        Kind::Delete => String::new(),
        Kind::Insert | Kind::Update => {
            format!("Rows affected: {affected}  Warnings: {warnings}.")
        }
    };
    session.send_ok(sink, OkInfo { affected_rows: affected, info, commit, ..OkInfo::default() })
}

/// Finds what a change is about, with all rows of its document locked, and does it.
fn change(
    session: &mut Session,
    view: &View,
    request: &Request,
    running: &Running<'_>,
) -> Result<Done> {
    let privilege = match request.kind {
        Kind::Insert => PrivilegeKind::Insert,
        Kind::Update => PrivilegeKind::Update,
        Kind::Delete => PrivilegeKind::Delete,
    };
    check_on_view(session, privilege, view)?;
    let catalog = session.view();
    let find = |schema: &str, name: &str| catalog.relation(schema, name);
    let invalid = |_: Error| err!(VIEW_INVALID, view.schema, view.name);
    let root = definitions::duality_of(&view.definition, &find).map_err(invalid)?;
    let shape = Shape::of(&root, &find)?;
    let planned = match request.kind {
        Kind::Insert => session.plan_and_lock(&request.query, running)?,
        Kind::Update | Kind::Delete => {
            let types = session.parameter_types(running);
            plan_locked(session, |session| {
                let planner = session.planner().reading_to_change();
                planner.plan_statement(&request.query, running.source, types.as_deref())
            })?
        }
    };
    let limit = session.settings.sql_select_limit.take();
    let rows = session.run_collecting(&planned, running.parameters);
    session.settings.sql_select_limit = limit;
    let rows = rows?;
    let (server, shared) = (session.server.clone(), session.shared.clone());
    let (memory, bytes) = (server.memory.counted(), duality::bytes_of(&rows));
    if bytes > DOCUMENTS_BYTES_MAX {
        bail!(OUT_OF_SORTMEMORY);
    }
    shared.memory.hold(bytes, memory)?;
    let done = request.run(&shape, rows, &mut Below { session, view, plans: Vec::new() });
    shared.memory.release(bytes, memory);
    done
}
