//! EXPLAIN FORMAT=JSON, and EXPLAIN ANALYZE: the statement runs with every operator measured, its rows go nowhere, and the plan
//! is shown with what it did.

use std::sync::Arc;

use errors::{Error, Result};
use optimizer::explain::Actual;
use plan::ExplainFormat;
use plugin_api::{ColumnMeta, OkInfo, ResultSink, ValueRow};
use syntax::ast::{self, Explain, Statement};
use types::{DataType, Value};

use crate::planned::planned;
use crate::planner::EngineStatistics;
use crate::session::Session;
use crate::sink::NoRows;
use crate::statement::Running;

/// How often the plan is made anew because definitions changed under it.
const REPLAN_MAX: usize = 16;

impl Session {
    /// Runs the statement and describes what each operator did.
    pub(crate) fn explain_analyze(
        &mut self,
        explain: &Explain,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let format = self.analyze_format(explain)?;
        let ast::ExplainTarget::Statement(statement) = &explain.target else {
            return Err(Error::not_supported("EXPLAIN ANALYZE FOR CONNECTION"));
        };
        if !matches!(**statement, Statement::Query(_)) {
            return Err(Error::not_supported("EXPLAIN ANALYZE on this statement"));
        }
        self.describe_plan(statement, format, true, running, sink)
    }

    /// EXPLAIN FORMAT=JSON of a statement with a plan.
    pub(crate) fn explain_json(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let format = match self.value("explain_json_format_version") {
            Value::Int(1) | Value::UInt(1) => ExplainFormat::JsonBlocks,
            _ => ExplainFormat::Json,
        };
        self.describe_plan(statement, format, false, running, sink)
    }

    fn describe_plan(
        &mut self,
        statement: &Statement,
        format: ExplainFormat,
        run: bool,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        for _ in 0..REPLAN_MAX {
            if let Some(text) = self.describe_once(statement, format, run, running)? {
                let commit = self.finish_transaction_scope()?;
                let mut ty = DataType::varchar(
                    text.chars().count() as u32,
                    self.settings.collation_connection.id,
                );
                ty.nullable = false;
                sink.columns(&[ColumnMeta::computed("EXPLAIN", ty)])?;
                sink.row(&ValueRow(&[Value::text(&text)]))?;
                let state = OkInfo { commit, ..self.state_info() };
                return sink.end(&state);
            }
        }
        Err(errors::err!(NEED_REPREPARE))
    }

    fn analyze_format(&self, explain: &Explain) -> Result<ExplainFormat> {
        let name = explain.format.as_ref().map(|name| name.text.to_ascii_uppercase());
        match name.as_deref() {
            None | Some("TREE") => Ok(ExplainFormat::Tree),
            Some("JSON") => Ok(ExplainFormat::Json),
            Some("TRADITIONAL") => {
                Err(Error::not_supported("EXPLAIN ANALYZE with TRADITIONAL format"))
            }
            Some(other) => Err(errors::err!(UNKNOWN_EXPLAIN_FORMAT, other)),
        }
    }

    /// One attempt; `None` when the plan was out of date.
    fn describe_once(
        &mut self,
        statement: &Statement,
        format: ExplainFormat,
        run: bool,
        running: &Running<'_>,
    ) -> Result<Option<String>> {
        let view = self.view();
        let collation = self.settings.collation_connection.id;
        let types: Vec<DataType> = running
            .parameters
            .iter()
            .map(|value| crate::prepared::type_of_value(value, collation))
            .collect();
        let (logical, context) =
            self.planner().bind_in_view(&view, statement, running.source, Some(&types))?;
        let tables = context.tables.clone();
        let server = self.server.clone();
        let statistics = EngineStatistics { server: &server, tables: &tables };
        let input =
            optimizer::OptimizeInput { tables: &tables, statistics: &statistics, collation };
        let (plan, flags, explainer) = optimizer::optimize_for_analysis(logical, &input)?;
        let (program, nodes) =
            exec::compile_measured(&plan, &server.registry, &self.planner().bind_context())?;
        let planned = Arc::new(planned(statement, &plan, &flags, program, context));
        if !self.lock_plan(&planned)? {
            return Ok(None);
        }
        let query = self.understood(statement, running);
        if !run {
            return Ok(Some(explainer.analysis(&plan, format, &input, query.as_deref(), None)));
        }
        self.run_program(&planned, running.parameters, &mut NoRows)?;
        let measures = std::mem::take(&mut self.scratch.measures);
        let actual = |node: &plan::Physical| {
            let measure = measures.get(nodes.place(node)?).filter(|measure| measure.loops > 0)?;
            Some(Actual {
                loops: measure.loops,
                rows: measure.rows,
                examined: measure.examined,
                first: measure.first,
                last: measure.last,
            })
        };
        Ok(Some(explainer.analysis(&plan, format, &input, query.as_deref(), Some(&actual))))
    }

    /// A query as it was understood, for people to read.
    fn understood(&self, statement: &Statement, running: &Running<'_>) -> Option<String> {
        let Statement::Query(query) = statement else { return None };
        let text =
            crate::ddl::understood_query(self, query, query.span, running.source, &[]).ok()?;
        Some(format!("/* select#1 */ {text}"))
    }
}
