//! EXPLAIN FORMAT=JSON, and EXPLAIN ANALYZE: the statement runs with every operator measured, its rows are discarded, and the plan
//! is shown with the measurements.

use std::sync::Arc;

use errors::{Error, Result};
use plan::ExplainFormat;
use plugin_api::{ColumnMeta, OkInfo, ResultSink, ValueRow};
use syntax::ast::{self, Explain, Statement};
use types::{DataType, Value};

use crate::planned::planned;
use crate::planner::EngineStatistics;
use crate::profiled::actual_of;
use crate::session::Session;
use programs::Running;
use statements::sink::NoRows;

/// Maximum number of times that the plan is made again because definitions changed.
const REPLAN_MAX: usize = 16;

/// Runs the statement and describes the work of each operator.
pub(crate) fn explain_analyze(
    session: &mut Session,
    explain: &Explain,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let format = analyze_format(explain)?;
    let ast::ExplainTarget::Statement(statement) = &explain.target else {
        return Err(Error::not_supported("EXPLAIN ANALYZE FOR CONNECTION"));
    };
    if !matches!(**statement, Statement::Query(_)) {
        return Err(Error::not_supported("EXPLAIN ANALYZE on this statement"));
    }
    describe_plan(session, statement, format, true, running, sink)
}

/// EXPLAIN FORMAT=JSON of a statement with a plan.
pub(crate) fn explain_json(
    session: &mut Session,
    statement: &Statement,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let format = match session.value("explain_json_format_version") {
        Value::Int(1) | Value::UInt(1) => ExplainFormat::JsonBlocks,
        _ => ExplainFormat::Json,
    };
    describe_plan(session, statement, format, false, running, sink)
}

fn describe_plan(
    session: &mut Session,
    statement: &Statement,
    format: ExplainFormat,
    run: bool,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    for _ in 0..REPLAN_MAX {
        if let Some(text) = describe_once(session, statement, format, run, running)? {
            let commit = session.finish_transaction_scope()?;
            let mut ty = DataType::varchar(
                text.chars().count() as u32,
                session.settings.collation_connection.id,
            );
            ty.nullable = false;
            sink.columns(&[ColumnMeta::computed("EXPLAIN", ty)])?;
            sink.row(&ValueRow(&[Value::text(&text)]))?;
            let state = OkInfo { commit, ..session.state_info() };
            return sink.end(&state);
        }
    }
    Err(errors::err!(NEED_REPREPARE))
}

fn analyze_format(explain: &Explain) -> Result<ExplainFormat> {
    let name = explain.format.as_ref().map(|name| name.text.to_ascii_uppercase());
    match name.as_deref() {
        None | Some("TREE") => Ok(ExplainFormat::Tree),
        Some("JSON") => Ok(ExplainFormat::Json),
        Some("TRADITIONAL") => Err(Error::not_supported("EXPLAIN ANALYZE with TRADITIONAL format")),
        Some(other) => Err(errors::err!(UNKNOWN_EXPLAIN_FORMAT, other)),
    }
}

/// One attempt; `None` when the plan was out of date.
fn describe_once(
    session: &mut Session,
    statement: &Statement,
    format: ExplainFormat,
    run: bool,
    running: &Running<'_>,
) -> Result<Option<String>> {
    let view = session.view();
    let collation = session.settings.collation_connection.id;
    let types: Vec<DataType> = running
        .parameters
        .iter()
        .map(|value| statements::preparable::type_of_value(value, collation))
        .collect();
    let (logical, context) =
        session.planner().bind_in_view(&view, statement, running.source, Some(&types))?;
    let tables = context.tables.clone();
    let server = session.server.clone();
    let statistics = EngineStatistics::new(&server, &tables);
    let (tables, statistics) = (&tables[..], &statistics);
    let input = optimizer::OptimizeInput { tables, statistics, collation, trace: None };
    let (plan, flags, explainer) = optimizer::optimize_for_analysis(logical, &input)?;
    let (program, nodes) = {
        let bind = session.planner().bind_context();
        exec::compile_measured(&plan, &context.registry, &bind, exec::Measuring::OneByOne)?
    };
    let planned = Arc::new(planned(statement, &plan, &flags, program, context));
    if !session.lock_plan(&planned)? {
        return Ok(None);
    }
    let query = understood(session, statement, running);
    if !run {
        return Ok(Some(explainer.analysis(&plan, format, &input, query.as_deref(), None)));
    }
    session.run_program(&planned, running.parameters, &mut NoRows)?;
    let measures = std::mem::take(&mut session.scratch.measures);
    let actual = |node: &plan::Physical| actual_of(&measures, nodes.place(node)?);
    Ok(Some(explainer.analysis(&plan, format, &input, query.as_deref(), Some(&actual))))
}

/// The bound query, as readable text.
pub(crate) fn understood(
    session: &Session,
    statement: &Statement,
    running: &Running<'_>,
) -> Option<String> {
    let Statement::Query(query) = statement else { return None };
    let text =
        crate::ddl::understood_query(session, query, query.span, running.source, &[]).ok()?;
    Some(format!("/* select#1 */ {text}"))
}
