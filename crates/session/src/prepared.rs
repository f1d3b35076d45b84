//! Prepared statements: by number for the binary protocol, by name for PREPARE. They keep text, tree and the last plan.

use std::sync::Arc;

use errors::{Result, bail, err};
use hashbrown::HashMap;
use plugin_api::{ColumnMeta, CommandOutcome, ExecuteRequest, OkInfo, PreparedInfo, ResultSink};
use syntax::ast::{Expr, Ident, PrepareSource, Statement};
use sys::sync::atomic::Ordering;
use types::{DataType, TypeKind, Value};

use crate::plan_cache::PlanSettings;
use crate::planned::Planned;
use crate::server::Server;
use crate::session::Session;
use crate::sink::ValueRow;
use crate::statement::{Origin, Running, parse_error};
use crate::status::Counter;

/// Most parameters of a statement.
const PARAMETERS_MAX: usize = 65_535;

/// Rows of an open cursor.
struct Cursor {
    rows: Vec<Vec<Value>>,
    position: usize,
}

/// A prepared statement.
pub(crate) struct Prepared {
    source: Arc<[u8]>,
    statement: Arc<Statement>,
    parameters: usize,
    /// The plan made last, with the types it was made for.
    plan: Option<(Vec<DataType>, PlanContext, Arc<Planned>)>,
    cursor: Option<Cursor>,
}

/// What a kept plan was made under.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanContext {
    database: Option<Arc<str>>,
    settings: PlanSettings,
}

/// A session's prepared statements.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    by_id: HashMap<u32, Box<Prepared>>,
    by_name: HashMap<String, Prepared>,
    last_id: u32,
}

impl PreparedStatements {
    fn get(&mut self, id: u32, command: &str) -> Result<&mut Prepared> {
        let known = self.by_id.get_mut(&id).map(Box::as_mut);
        known.ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, id, command))
    }

    pub(crate) fn parameter_count(&self, id: u32) -> Result<usize> {
        let known = self.by_id.get(&id).map(|prepared| prepared.parameters);
        known.ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, id, "mysqld_stmt_execute"))
    }

    pub(crate) fn reset(&mut self, id: u32) -> Result<()> {
        self.get(id, "mysqld_stmt_reset")?.cursor = None;
        Ok(())
    }

    pub(crate) fn close(&mut self, id: u32, server: &Server) {
        if self.by_id.remove(&id).is_some() {
            server.prepared_count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn clear(&mut self, server: &Server) {
        let count = self.by_id.len() + self.by_name.len();
        server.prepared_count.fetch_sub(count as u64, Ordering::Relaxed);
        self.by_id.clear();
        self.by_name.clear();
    }
}

/// The type that a parameter's value has by itself.
pub(crate) fn type_of_value(value: &Value, collation: types::CollationId) -> DataType {
    match value {
        // A NULL says nothing of its type; as text it fits everywhere.
        Value::Null => DataType::null(),
        Value::Int(_) => DataType::bigint(),
        Value::UInt(_) => DataType::bigint_unsigned(),
        Value::Double(_) => DataType::double(),
        Value::Decimal(number) => {
            DataType::decimal(number.precision().clamp(1, 65), number.scale().min(30))
        }
        Value::Bytes(bytes) => {
            // Rounded up, so that texts of about one size share a plan.
            let chars = (bytes.len().max(1) as u32).next_power_of_two().max(64);
            match chars {
                0..=16_383 => DataType::varchar(chars, collation),
                _ => DataType { collation, ..DataType::new(TypeKind::LongText, u32::MAX, 0) },
            }
        }
        Value::Date(_) => DataType::new(TypeKind::Date, 10, 0),
        Value::Time(_) => DataType::new(TypeKind::Time, 17, 6),
        Value::DateTime(_) => DataType::new(TypeKind::DateTime, 26, 6),
        Value::Json(_) => DataType::new(TypeKind::Json, u32::MAX, 0),
    }
}

/// Statements that cannot be prepared (1295).
fn is_preparable(statement: &Statement) -> bool {
    !matches!(
        statement,
        Statement::Prepare { .. }
            | Statement::Execute { .. }
            | Statement::ExecuteText { .. }
            | Statement::Deallocate(_)
            | Statement::LoadData(_)
            | Statement::LockTables(_)
            | Statement::UnlockTables
            | Statement::Handler(_)
            | Statement::Help(_)
            | Statement::Use(_)
            | Statement::Program(_)
            | Statement::CreateTrigger(_)
            | Statement::CreateRoutine(_)
            | Statement::CreateEvent(_)
    )
}

impl Session {
    fn new_prepared(&mut self, sql: &[u8]) -> Result<Prepared> {
        let limit = self.server.globals.integer("max_prepared_stmt_count");
        if self.server.prepared_count.load(Ordering::Relaxed) >= limit {
            bail!(MAX_PREPARED_STMT_COUNT_REACHED, limit);
        }
        let source: Arc<[u8]> = if self.settings.charset_client.is_utf8() {
            sql.into()
        } else {
            self.settings.charset_client.decode(sql).bytes.into()
        };
        let options = syntax::ParseOptions { multi_statements: false, ..self.parse_options() };
        let (statement, consumed) =
            syntax::parse_bytes(&source, &options).map_err(|error| parse_error(&error))?;
        if source[consumed..].iter().any(|byte| !byte.is_ascii_whitespace() && *byte != b';') {
            bail!(PARSE_ERROR, String::from_utf8_lossy(&source[consumed..]), 1);
        }
        if matches!(statement, Statement::Empty) {
            bail!(EMPTY_QUERY);
        }
        if !is_preparable(&statement) {
            bail!(UNSUPPORTED_PS);
        }
        let parameters = crate::placeholders::count(&source, options.no_backslash_escapes);
        if parameters > PARAMETERS_MAX {
            bail!(PS_MANY_PARAM);
        }
        Ok(Prepared {
            source,
            statement: Arc::new(statement),
            parameters,
            plan: None,
            cursor: None,
        })
    }

    /// COM_STMT_PREPARE.
    pub(crate) fn prepare_binary(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        self.begin_command("Prepare", sql);
        self.begin_statement();
        self.shared.counters.add(Counter::STMT_PREPARE, 1);
        let result = self.guarded(|session| session.prepare_and_describe(sql));
        match &result {
            Ok(_) => self.end_statement(),
            Err(error) => self.fail_statement(error),
        }
        self.become_idle();
        result
    }

    fn prepare_and_describe(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        let mut prepared = self.new_prepared(sql)?;
        let statement = prepared.statement.clone();
        let source = prepared.source.clone();
        let (parameter_types, columns) = self.describe_statement(&statement, &source)?;
        let parameter = |index: usize| {
            let ty = parameter_types.get(index).cloned().unwrap_or_else(DataType::null);
            ColumnMeta::computed("?", ty)
        };
        let parameters = (0..prepared.parameters).map(parameter).collect();
        prepared.plan = None;
        let ids = &mut self.prepared;
        loop {
            ids.last_id = ids.last_id.wrapping_add(1).max(1);
            if !ids.by_id.contains_key(&ids.last_id) {
                break;
            }
        }
        let statement_id = ids.last_id;
        ids.by_id.insert(statement_id, Box::new(prepared));
        self.server.prepared_count.fetch_add(1, Ordering::Relaxed);
        Ok(PreparedInfo {
            statement_id,
            parameters,
            columns,
            warnings: self.working.warning_count_on_wire(),
        })
    }

    /// Parameter types and result columns, without running anything.
    fn describe_statement(
        &mut self,
        statement: &Statement,
        source: &[u8],
    ) -> Result<(Vec<DataType>, Vec<ColumnMeta>)> {
        match statement {
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_)
            | Statement::Explain(_) => {
                let planned = self.plan_statement(statement, source, None)?;
                Ok((planned.parameters.clone(), planned.program.columns().to_vec()))
            }
            Statement::Show(_) | Statement::Describe(_) => {
                let planned = self.plan_rewritten(statement, source)?;
                Ok((Vec::new(), planned.program.columns().to_vec()))
            }
            // The result of other statements is known when they run.
            _ => Ok((Vec::new(), Vec::new())),
        }
    }

    /// COM_STMT_EXECUTE.
    pub(crate) fn execute_binary(
        &mut self,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        self.outcome = CommandOutcome::Continue;
        let text = match self.prepared.get(request.statement_id, "mysqld_stmt_execute") {
            Ok(prepared) => prepared.source.clone(),
            Err(error) => {
                sink.error(&error)?;
                return Ok(CommandOutcome::Continue);
            }
        };
        self.begin_command("Execute", &text);
        self.begin_statement();
        self.shared.counters.add(Counter::STMT_EXECUTE, 1);
        let result = self.guarded(|session| session.execute_prepared_id(request, sink));
        let sent = match result {
            Ok(()) => {
                self.end_statement();
                Ok(())
            }
            Err(error) => {
                self.fail_statement(&error);
                sink.error(&error)
            }
        };
        self.become_idle();
        sent.map(|()| self.outcome)
    }

    fn execute_prepared_id(
        &mut self,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let id = request.statement_id;
        // The statement leaves the map while it runs, so that the session can be borrowed whole.
        let taken = self.prepared.by_id.remove(&id);
        let mut prepared =
            taken.ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, id, "mysqld_stmt_execute"))?;
        prepared.cursor = None;
        let result = if prepared.parameters != request.parameters.len() {
            Err(err!(WRONG_ARGUMENTS, "mysqld_stmt_execute"))
        } else {
            self.run_prepared(&mut prepared, request.parameters, request.cursor, sink)
        };
        self.prepared.by_id.insert(id, prepared);
        result
    }

    /// Runs a prepared statement, with its kept plan when that still fits.
    fn run_prepared(
        &mut self,
        prepared: &mut Prepared,
        parameters: &[Value],
        cursor: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let statement = prepared.statement.clone();
        let source = prepared.source.clone();
        let running = Running { source: &source, parameters, origin: Origin::Prepared };
        let plannable = match &*statement {
            Statement::Query(query) => query.into.is_none(),
            Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_) => true,
            _ => false,
        };
        if !plannable {
            return self.run_statement(&statement, &running, sink);
        }
        let planned = self.plan_prepared(prepared, &running)?;
        if cursor && !planned.program.columns().is_empty() {
            return self.open_cursor(prepared, &planned, parameters, sink);
        }
        self.run_to_client(&planned, parameters, sink)
    }

    /// The kept plan when it fits, else a new one, with metadata locks taken.
    fn plan_prepared(
        &mut self,
        prepared: &mut Prepared,
        running: &Running<'_>,
    ) -> Result<Arc<Planned>> {
        let context = self.plan_context();
        if let Some((types, made_under, planned)) = &prepared.plan
            && types.len() == running.parameters.len()
            && types.iter().zip(running.parameters).all(|(ty, value)| fits(ty, value))
            && *made_under == context
            && self.server.catalog.is_current(planned.version)
            && self.temporary.is_empty()
            && !self.reads_lock()
        {
            let planned = planned.clone();
            if self.lock_plan(&planned)? {
                return Ok(planned);
            }
        }
        let planned = self.plan_and_lock(&prepared.statement, running)?;
        if planned.cacheable {
            let collation = self.settings.collation_connection.id;
            let ty = |value| type_of_value(value, collation);
            let types = running.parameters.iter().map(ty).collect();
            prepared.plan = Some((types, context, planned.clone()));
        }
        Ok(planned)
    }

    fn plan_context(&self) -> PlanContext {
        PlanContext { database: self.services.database.clone(), settings: self.plan_settings() }
    }

    fn open_cursor(
        &mut self,
        prepared: &mut Prepared,
        planned: &Planned,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.shared.counters.add(planned.counter, 1);
        let rows = self.run_collecting(planned, parameters)?;
        let commit = self.finish_transaction_scope()?;
        sink.columns(planned.program.columns())?;
        prepared.cursor = Some(Cursor { rows, position: 0 });
        let state = OkInfo { cursor_open: true, commit, ..self.state_info() };
        sink.end(&state)
    }

    /// COM_STMT_FETCH.
    pub(crate) fn fetch_binary(
        &mut self,
        id: u32,
        count: u32,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.shared.counters.add(Counter::STMT_FETCH, 1);
        self.working.clear();
        let state = self.state_info();
        let prepared = match self.prepared.get(id, "mysqld_stmt_fetch") {
            Ok(prepared) => prepared,
            Err(error) => return sink.error(&error),
        };
        let Some(cursor) = &mut prepared.cursor else {
            return sink.error(&err!(STMT_HAS_NO_OPEN_CURSOR, id));
        };
        let end = cursor.rows.len().min(cursor.position.saturating_add(count as usize));
        for row in &cursor.rows[cursor.position..end] {
            sink.row(&ValueRow(row))?;
        }
        cursor.position = end;
        let last = end == cursor.rows.len();
        if last {
            prepared.cursor = None;
        }
        sink.end(&OkInfo { cursor_open: !last, last_row_sent: last, ..state })
    }

    /// PREPARE name FROM ...
    pub(crate) fn prepare_named(
        &mut self,
        name: &Ident,
        source: &PrepareSource,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let key = name.text.to_lowercase();
        // A failed PREPARE leaves no statement of that name behind, as in the reference.
        if self.prepared.by_name.remove(&key).is_some() {
            self.server.prepared_count.fetch_sub(1, Ordering::Relaxed);
        }
        let text = self.prepare_text(source, running)?;
        let prepared = self.new_prepared(&text)?;
        let statement = prepared.statement.clone();
        let source = prepared.source.clone();
        self.describe_statement(&statement, &source)?;
        self.prepared.by_name.insert(key, prepared);
        self.server.prepared_count.fetch_add(1, Ordering::Relaxed);
        self.send_ok(sink, OkInfo { info: "Statement prepared".into(), ..OkInfo::default() })
    }

    /// The text of PREPARE and EXECUTE IMMEDIATE.
    fn prepare_text(&mut self, source: &PrepareSource, running: &Running<'_>) -> Result<Vec<u8>> {
        let value = match source {
            PrepareSource::Text(text) => return Ok(text.to_vec()),
            PrepareSource::UserVar(name) => {
                plugin_api::SessionServices::user_variable(&self.services, &name.text)
                    .map_or(Value::Null, |(value, _)| value)
            }
            PrepareSource::Expr(expr) => self.evaluate(expr, running)?.0,
        };
        let mut text = Vec::new();
        value.write_plain_text(&mut text);
        if value.is_null() {
            text.extend_from_slice(b"NULL");
        }
        Ok(text)
    }

    /// EXECUTE name USING @a, @b.
    pub(crate) fn execute_named(
        &mut self,
        name: &Ident,
        using: &[Ident],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let key = name.text.to_lowercase();
        let taken = self.prepared.by_name.remove(&key);
        let mut prepared = taken.ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, name.text, "EXECUTE"))?;
        let parameters: Vec<Value> = using
            .iter()
            .map(|name| {
                plugin_api::SessionServices::user_variable(&self.services, &name.text)
                    .map_or(Value::Null, |(value, _)| value)
            })
            .collect();
        let result = if parameters.len() == prepared.parameters {
            self.run_prepared(&mut prepared, &parameters, false, sink)
        } else {
            Err(err!(WRONG_ARGUMENTS, "EXECUTE"))
        };
        // The statement itself may have prepared another of the same name.
        self.prepared.by_name.entry(key).or_insert(prepared);
        result
    }

    /// EXECUTE 'text' and EXECUTE IMMEDIATE.
    pub(crate) fn execute_text(
        &mut self,
        source: &PrepareSource,
        using: &[Expr],
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let text = self.prepare_text(source, running)?;
        let mut parameters = Vec::with_capacity(using.len());
        for expr in using {
            parameters.push(self.evaluate(expr, running)?.0);
        }
        let mut prepared = self.new_prepared(&text)?;
        if parameters.len() != prepared.parameters {
            bail!(WRONG_ARGUMENTS, "EXECUTE");
        }
        self.run_prepared(&mut prepared, &parameters, false, sink)
    }

    /// DEALLOCATE PREPARE.
    pub(crate) fn deallocate_named(
        &mut self,
        name: &Ident,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if self.prepared.by_name.remove(&name.text.to_lowercase()).is_none() {
            bail!(UNKNOWN_STMT_HANDLER, name.text, "DEALLOCATE PREPARE");
        }
        self.server.prepared_count.fetch_sub(1, Ordering::Relaxed);
        self.send_ok(sink, OkInfo::default())
    }
}

/// Whether a plan for parameters of type `ty` serves `value`.
fn fits(ty: &DataType, value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Int(_) => ty.kind == TypeKind::BigInt && !ty.unsigned,
        Value::UInt(_) => ty.kind == TypeKind::BigInt && ty.unsigned,
        Value::Double(_) => ty.kind == TypeKind::Double,
        Value::Bytes(bytes) => match ty.kind {
            TypeKind::VarChar => bytes.len() <= ty.length as usize,
            TypeKind::LongText => true,
            _ => false,
        },
        Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => *ty == type_of_value(value, ty.collation),
    }
}
