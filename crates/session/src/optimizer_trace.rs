//! `optimizer_trace=enabled=on`: statements are planned anew each time, and what planning considered is kept for the session.

use std::sync::Arc;

use catalog::PrivilegeSet;
use errors::Result;
use optimizer::{Trace, TraceParts};
use plugin_api::OptimizerTraceView;
use programs::Running;
use statements::optimizer_traces::TraceWindow;
use syntax::ast::Statement;
use types::DataType;

use crate::analyze::understood;
use crate::planned::Planned;
use crate::services::Services;
use crate::session::Session;

/// Whether a switch of a variable like `optimizer_trace` is on.
fn is_on(switches: &str, name: &str) -> bool {
    let is_that = |switch: &str| switch.split_once('=') == Some((name, "on"));
    switches.split(',').any(is_that)
}

fn window(services: &Services) -> TraceWindow {
    let number = |name: &str| services.text(name).parse::<i64>().unwrap_or_default();
    let size = |name: &str| usize::try_from(number(name)).unwrap_or_default();
    TraceWindow {
        offset: number("optimizer_trace_offset"),
        limit: size("optimizer_trace_limit"),
        bytes_max: size("optimizer_trace_max_mem_size"),
    }
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
    let mut view = OptimizerTraceView {
        query: String::from_utf8_lossy(running.source).into_owned(),
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
    let window = window(services);
    services.traces.begin(services.statement_number, view, window);
    Ok(planned)
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

/// The traces of the statements before the one that runs.
pub(crate) fn kept(services: &Services) -> Vec<OptimizerTraceView> {
    services.traces.read(services.statement_number, window(services))
}
