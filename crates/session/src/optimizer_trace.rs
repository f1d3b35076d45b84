//! `optimizer_trace=enabled=on`: statements are planned anew each time, and what planning considered is kept for the session.

use std::sync::Arc;

use catalog::PrivilegeSet;
use errors::Result;
use optimizer::{Trace, TraceParts};
use plugin_api::OptimizerTraceView;
use programs::{Origin, Running};
use syntax::ast::Statement;
use types::DataType;
use unparse::PrintOptions;

use crate::analyze::understood;
use crate::planned::Planned;
use crate::session::Session;

/// Whether a switch of a variable like `optimizer_trace` is on.
fn is_on(switches: &str, name: &str) -> bool {
    let is_that = |switch: &str| switch.split_once('=') == Some((name, "on"));
    switches.split(',').any(is_that)
}

/// Plans a statement and keeps the trace.
///
/// # Errors
/// Those of planning.
pub(crate) fn plan_traced(
    session: &mut Session,
    statement: &Statement,
    running: &Running<'_>,
    types: Option<&[DataType]>,
) -> Result<Arc<Planned>> {
    let features = session.services.text("optimizer_trace_features");
    let parts = TraceParts {
        orders: is_on(&features, "greedy_search"),
        paths: is_on(&features, "range_optimizer"),
    };
    let trace = Trace::new(parts);
    let (planned, plan) =
        session.planner().plan_in_trace(statement, running.source, types, &trace)?;
    // As for SET and SELECT of constants.
    if trace.is_empty() {
        return Ok(planned);
    }
    let mut view = OptimizerTraceView {
        query: text_of(statement, running),
        is_hidden: may_not_see(session, &planned),
        ..OptimizerTraceView::default()
    };
    if view.is_hidden {
        view.query.clear();
    } else {
        let query = understood(session, statement, running);
        let in_line = is_on(&session.services.text("optimizer_trace"), "one_line");
        view.trace = trace.print(query.as_deref(), &plan, in_line);
    }
    let services = &mut session.services;
    let window = services.trace_window();
    services.traces.begin(services.statement_number, view, window);
    Ok(planned)
}

/// The statement's text; the source of a program is its whole body.
fn text_of(statement: &Statement, running: &Running<'_>) -> String {
    let own = match running.origin {
        Origin::Program => unparse::print_statement(statement, &PrintOptions::default()),
        Origin::Text | Origin::Prepared => None,
    };
    own.unwrap_or_else(|| String::from_utf8_lossy(running.source).into_owned())
}

/// A trace shows the text of views and programs: not to those who may not see it otherwise.
fn may_not_see(session: &Session, planned: &Planned) -> bool {
    let user = session.services.user.rsplit_once('@').map_or("", |(user, _)| user);
    let as_other = !session.programs.is_outermost() && user != &*session.account.user;
    let hidden = |view: &Arc<catalog::View>| {
        let held = session.privileges.on_table(&view.schema, &view.name);
        !held.contains(PrivilegeSet::SHOW_VIEW | PrivilegeSet::SELECT)
    };
    as_other || planned.views.iter().any(hidden)
}
