//! PROFILE: runs a statement with its phases and operators measured, and sends the measurements instead of its results. A plugin says how they look.

use std::sync::Arc;
use std::time::Duration;

use accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use engine_api::Wait;
use errors::{Error, Result, bail, err};
use exec::{Measure, Outcome, RowSink};
use observation::{Profiling, ProgramProfile, waits_of};
use optimizer::OptimizeInput;
use optimizer::explain::Operator;
use plugin_api::{
    ColumnMeta, ConnectionProfile, ForwardingSink, OkInfo, ProfileFrame, ResultSink, RowSource,
    SessionState,
};
use programs::{Origin, Running};
use syntax::ast::{Profile, ProfileTarget, Statement};
use sys::waits::Totals;
use types::{DataType, Value};

use crate::measured::now_nanos;
use crate::planned::{Planned, PlannedKind};
use crate::planner::EngineStatistics;
use crate::profiled::{MeasuredPlan, Profiled, actual_of};
use crate::session::Session;
use statements::sink::send_rows;

/// How long it looks at a connection, unless it says so, and at most.
const SECONDS: u64 = 10;
const SECONDS_MAX: u64 = 3_600;
/// Looks at a connection come so long after each other: 499 in a second.
const LOOK_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 499);

/// PROFILE.
pub(crate) fn run_profile(
    session: &mut Session,
    profile: &Profile,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Some(printer) = session.server.registry().profile_printer().cloned() else {
        return Err(Error::not_supported("PROFILE"));
    };
    if session.profile.is_some() {
        return Err(Error::not_supported("PROFILE in a statement that is profiled"));
    }
    let format = profile.format.as_ref().map(|format| &*format.text);
    printer.check(format)?;
    let measured = match &profile.target {
        ProfileTarget::Statement(inner) => measure(session, inner, running, sink)?,
        ProfileTarget::Connection { id, seconds } => {
            look_at(session, *id, seconds.unwrap_or(SECONDS), printer.connection())?
        }
    };
    let (columns, rows) = printer.show(&measured, format)?;
    let state = session.state_info();
    send_rows(sink, &columns, &rows, &state)
}

/// What another connection does for so many seconds, or until it ends.
fn look_at(
    session: &Session,
    id: u64,
    seconds: u64,
    mut profile: Box<dyn ConnectionProfile>,
) -> Result<ProfileFrame> {
    if !(1..=SECONDS_MAX).contains(&seconds) {
        bail!(WRONG_ARGUMENTS, "PROFILE SECONDS");
    }
    let sessions = &session.server.sessions;
    let target = sessions.get(id).ok_or_else(|| err!(NO_SUCH_THREAD, id))?;
    if target.activity.lock().account != session.account.to_string() {
        session.require_global(PrivilegeSet::PROCESS)?;
    }
    if id == session.shared.id {
        return Err(Error::not_supported("PROFILE FOR CONNECTION of the connection itself"));
    }
    let started = now_nanos(session);
    let elapsed = || Duration::from_nanos(now_nanos(session).saturating_sub(started));
    let whole = Duration::from_secs(seconds);
    let mut next = Duration::ZERO;
    let _waiting = session.shared.cancel.waiting(Wait::Sleep);
    sys::blocking::blocking(|| {
        while let Some(left) = whole.checked_sub(elapsed()) {
            session.shared.cancel.check()?;
            let Some(view) = sessions.view(id, session.server.now_micros()) else { break };
            profile.look(Some(&view).filter(|view| view.thread.is_some()));
            // Looks that were missed are left out: the first one reads the program's symbols.
            next = (next + LOOK_PERIOD).max(elapsed());
            sys::threads::sleep(next.saturating_sub(elapsed()).min(left));
        }
        Ok(profile.end(now_nanos(session).saturating_sub(started)))
    })
}

/// Runs a statement with measurements.
fn measure(
    session: &mut Session,
    inner: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<ProfileFrame> {
    let profiled = begin(session, running);
    session.profile = Some(Box::new(profiled));
    // Its commit is waited for here, and so is part of the profile.
    let more_results = std::mem::replace(&mut session.statement.more_results, true);
    let outcome = session.run_statement(inner, running, &mut Unsent { client: sink });
    session.statement.more_results = more_results;
    let profiled = session.profile.take();
    outcome?;
    let Some(profiled) = profiled else { bail!(QUERY_INTERRUPTED) };
    Ok(profiled.profiling.end(now_nanos(session)))
}

/// What the statement took so far was spent on its text.
fn begin(session: &Session, running: &Running<'_>) -> Profiled {
    let is_text = matches!(running.origin, Origin::Text);
    let micros = session.server.now_micros().saturating_sub(session.statement.started_micros);
    let parse_nanos = if is_text { micros.max(0).cast_unsigned() * 1_000 } else { 0 };
    let profiling = Profiling::begin(now_nanos(session), parse_nanos);
    Profiled { profiling, plans: Vec::new(), last: (0, String::new()) }
}

/// A plan for the statement that is profiled, or for one that it runs.
pub(crate) fn plan_profiled(
    session: &mut Session,
    statement: &Statement,
    source: &[u8],
    types: Option<&[DataType]>,
) -> Result<Arc<Planned>> {
    let measured = session.planner().plan_measured(statement, source, types)?;
    let planned = measured.planned.clone();
    if let Some(profiled) = &mut session.profile {
        profiled.plans.push(measured);
    }
    Ok(planned)
}

/// Runs a plan as part of the profiled statement.
pub(crate) fn run_profiled(
    session: &mut Session,
    planned: &Planned,
    parameters: &[Value],
    rows: &mut dyn RowSink,
) -> Result<Outcome> {
    let now = now_nanos(session);
    if let Some(profiled) = &mut session.profile {
        profiled.profiling.begin_program(now);
    }
    let outcome = session.run_program_plain(planned, parameters, rows);
    let now = now_nanos(session);
    let Some(mut profiled) = session.profile.take() else { return outcome };
    let address = std::ptr::from_ref(planned).addr();
    let is_it = |plan: &MeasuredPlan| Arc::as_ptr(&plan.planned).addr() == address;
    let measured = profiled.plans.iter().position(is_it).map(|at| profiled.plans.remove(at));
    let mut program = match measured {
        Some(measured) => {
            let measures = std::mem::take(&mut session.scratch.measures);
            let program = described(session, &measured, &measures);
            profiled.last = (address, program.name.clone());
            program
        }
        None => {
            let is_last = profiled.last.0 == address;
            let name =
                if is_last { profiled.last.1.clone() } else { unmeasured_name(planned.kind) };
            ProgramProfile { name, ..Default::default() }
        }
    };
    if let Ok(outcome) = &outcome {
        let returns_rows = !planned.program.columns().is_empty();
        program.rows = if returns_rows { outcome.rows_sent } else { outcome.affected };
    }
    profiled.profiling.end_program(now, program);
    session.profile = Some(profiled);
    outcome
}

/// The name of a program whose operators are not measured: a plan that was made before.
fn unmeasured_name(kind: PlannedKind) -> String {
    let name = match kind {
        PlannedKind::Query => "Query",
        PlannedKind::Insert => "Insert rows",
        PlannedKind::Update => "Update rows",
        PlannedKind::Delete => "Delete rows",
        PlannedKind::Do => "Do",
    };
    name.to_owned()
}

/// The operators of a program that ran, each within its reader; subqueries and common table expressions within the operator that needed them first.
fn described(session: &Session, measured: &MeasuredPlan, measures: &[Measure]) -> ProgramProfile {
    let tables = &measured.planned.tables;
    let statistics = EngineStatistics::new(&session.server, tables);
    let collation = session.settings.collation_connection.id;
    let input = OptimizeInput { tables, statistics: &statistics, collation, trace: None };
    let actual = |node: &plan::Physical| actual_of(measures, measured.nodes.place(node)?);
    let mut trees = measured.explainer.operators(&measured.plan, &input, &actual);
    let is_written = trees.first().is_some_and(|main| main.is_heading);
    let main = if trees.is_empty() { None } else { Some(trees.remove(0)) };
    let (name, mut roots) = match main {
        Some(main) if is_written => (main.text, main.inputs),
        main => (unmeasured_name(measured.planned.kind), main.into_iter().collect()),
    };
    while let Some(tree) = trees.pop() {
        let root = tree.inputs.first().and_then(|root| root.actual);
        let mut caller = root.and_then(|root| measures.get(root.place)?.caller);
        // An operator that is not shown belongs to its own caller.
        let mut steps = measures.len();
        let home = loop {
            let Some(place) = caller.filter(|_| steps > 0) else { break &mut roots };
            let is_in = |trees: &[Operator]| trees.iter().any(|tree| holds(tree, place));
            if is_in(&roots) || is_in(&trees) {
                let trees = if is_in(&roots) { &mut roots } else { &mut trees };
                match trees.iter_mut().find_map(|tree| inputs_of(tree, place)) {
                    Some(inputs) => break inputs,
                    None => break &mut roots,
                }
            }
            steps -= 1;
            caller = measures.get(place).and_then(|measure| measure.caller);
        };
        home.push(tree);
    }
    let mut waits = Totals::default();
    measures.iter().for_each(|measure| waits.add(&measure.waits));
    let operators = roots.into_iter().map(|root| frame_of(root, measures)).collect();
    ProgramProfile { name, rows: 0, operators, waits }
}

fn is_at(operator: &Operator, place: usize) -> bool {
    operator.actual.is_some_and(|actual| actual.place == place)
}

fn holds(operator: &Operator, place: usize) -> bool {
    is_at(operator, place) || operator.inputs.iter().any(|input| holds(input, place))
}

/// The inputs of an operator below `operator`, or of that itself.
fn inputs_of(operator: &mut Operator, place: usize) -> Option<&mut Vec<Operator>> {
    if is_at(operator, place) {
        return Some(&mut operator.inputs);
    }
    operator.inputs.iter_mut().find_map(|input| inputs_of(input, place))
}

fn frame_of(operator: Operator, measures: &[Measure]) -> ProfileFrame {
    // A scan and its filter are two lines with one measure: what it waited for belongs to the scan.
    let measured = operator.actual;
    let is_upper = operator
        .inputs
        .iter()
        .any(|input| measured.is_some_and(|actual| is_at(input, actual.place)));
    let mut parts: Vec<ProfileFrame> =
        operator.inputs.into_iter().map(|input| frame_of(input, measures)).collect();
    let name = operator.text;
    let Some(actual) = measured else {
        // A heading took what is below it.
        let nanos = parts.iter().map(|part| part.nanos).sum();
        let loops = if operator.is_heading { parts.iter().map(|part| part.loops).sum() } else { 0 };
        return ProfileFrame { name, nanos, rows: None, loops, parts };
    };
    if let Some(measure) = measures.get(actual.place).filter(|_| !is_upper) {
        parts.extend(waits_of(&measure.waits));
    }
    ProfileFrame {
        name,
        nanos: u64::try_from(actual.last.as_nanos()).unwrap_or(u64::MAX),
        rows: Some(if operator.before_filter { actual.examined } else { actual.rows }),
        loops: actual.loops,
        parts,
    }
}

/// Computes the values of rows and sends nothing. Files are the client's.
struct Unsent<'a> {
    client: &'a mut dyn ResultSink,
}

impl ForwardingSink for Unsent<'_> {
    fn target(&mut self) -> &mut dyn ResultSink {
        self.client
    }

    fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn shared_columns(&mut self, _: &Arc<[ColumnMeta]>) -> Result<()> {
        Ok(())
    }

    fn followed_by(&mut self, _: plugin_api::Next) {}

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        (0..row.len()).try_for_each(|index| row.value(index).map(drop))
    }

    fn out_parameters(
        &mut self,
        _: &[usize],
        _: &[ColumnMeta],
        _: &dyn RowSource,
        _: &SessionState,
    ) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        Err(error.clone())
    }
}
