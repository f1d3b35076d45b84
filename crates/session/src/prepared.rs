//! Prepared statements: by number for the binary protocol, by name for PREPARE. A session keeps a reference to the shared text
//! (`prepared_texts`) and the plans it used last; everything else is found in the server's cache or made again from the text.

use std::sync::Arc;

use errors::{Result, bail, err};
use hashbrown::HashMap;
use plugin_api::{
    ColumnMeta, CommandOutcome, ExecuteRequest, ForwardingSink, OkInfo, PreparedInfo, ResultSink,
    RowSource, SessionServices, SessionState, ValueRow,
};
use syntax::ast::{Expr, Ident, PrepareSource, Statement};
use sys::sync::atomic::Ordering;
use types::{DataType, TypeKind, Value};

use crate::duality_changes::has_no_plan;
use crate::plan_cache::{Described, LiftedText, LocalPlan, PlanContext, PlanSettings};
use crate::planned::Planned;
use crate::prepared_texts::{PreparedExecution, PreparedText};
use crate::server::Server;
use crate::session::Session;
use crate::status::Counter;
use accounts::Resource;
use observation::ResultCounts;
use programs::{Origin, Running};
use statements::preparable::{is_shown_directly, type_of_value};
use statements::sink::DiscardSink;

/// A statement id consists of a slot (these bits, counted from 1) and the number of earlier uses of the slot.
const SLOT_BITS: u32 = 20;
/// Maximum number of open statements of one session.
const SLOTS_MAX: usize = (1 << SLOT_BITS) - 1;
/// Plans that a session keeps a reference to.
const HOT_PLANS: usize = 32;
/// In place of the types of a statement that is only described.
const DESCRIBED: u64 = u64::MAX;

/// Rows of an open cursor.
struct Cursor {
    rows: Vec<Vec<Value>>,
    position: usize,
}

/// A prepared statement of a session: small, because a client may prepare a thousand and never close one.
#[derive(Default)]
struct Slot {
    text: Option<Arc<PreparedText>>,
    cursor: Option<Box<Cursor>>,
    generation: u32,
}

/// A statement that has a name. Its slot has no text, so that no client finds it by its number.
struct Named {
    text: Arc<PreparedText>,
    id: u32,
}

/// A plan that the session used recently, with the key that it was made for.
struct HotPlan {
    id: u32,
    /// The types of parameters that it is for; `None` when it is not to be run again and only tells whether definitions have changed.
    types: Option<Vec<DataType>>,
    context: PlanContext,
    plan: LocalPlan,
}

/// A session's prepared statements.
#[derive(Default)]
pub(crate) struct PreparedStatements {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_name: HashMap<String, Named>,
    /// Running statements by name, the innermost last: no statement may run within itself.
    running: Vec<Arc<PreparedText>>,
    /// At the slot's position modulo their number; empty until something is executed.
    hot: Vec<Option<Box<HotPlan>>>,
}

impl PreparedStatements {
    /// The slot of a statement that is open.
    fn slot(&mut self, id: u32, command: &str) -> Result<&mut Slot> {
        let (at, generation) = place_of(id);
        let slot = self.slots.get_mut(at);
        slot.filter(|slot| slot.generation == generation && slot.text.is_some())
            .ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, id, command))
    }

    fn add(&mut self, text: Option<Arc<PreparedText>>) -> Result<u32> {
        let at = match self.free.pop() {
            Some(at) => at as usize,
            None if self.slots.len() >= SLOTS_MAX => {
                bail!(MAX_PREPARED_STMT_COUNT_REACHED, SLOTS_MAX)
            }
            None => {
                self.slots.push(Slot::default());
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[at];
        slot.text = text;
        Ok(slot.generation << SLOT_BITS | (at as u32 + 1))
    }

    pub(crate) fn parameter_count(&self, id: u32) -> Result<usize> {
        let (at, generation) = place_of(id);
        let slot = self.slots.get(at).filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.text.as_ref())
            .map(|text| text.parameters as usize)
            .ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, id, "mysqld_stmt_execute"))
    }

    pub(crate) fn reset(&mut self, id: u32) -> Result<()> {
        self.slot(id, "mysqld_stmt_reset")?.cursor = None;
        Ok(())
    }

    pub(crate) fn close(&mut self, id: u32, server: &Server) {
        let Ok(slot) = self.slot(id, "") else { return };
        slot.cursor = None;
        let text = slot.text.take();
        self.free(id);
        if let Some(text) = text {
            server.forget_prepared(text);
        }
    }

    /// Its slot may be used again.
    fn free(&mut self, id: u32) {
        let (at, _) = place_of(id);
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.generation = (slot.generation + 1) % (1 << (u32::BITS - SLOT_BITS));
        self.free.push(at as u32);
        if let Some(hot) = self.hot.get_mut(at % HOT_PLANS)
            && hot.as_ref().is_some_and(|hot| hot.id == id)
        {
            *hot = None;
        }
    }

    /// Takes a statement's name away; false when there is none of that name.
    fn remove_named(&mut self, name: &str, server: &Server) -> bool {
        let Some(named) = self.by_name.remove(name) else { return false };
        self.free(named.id);
        server.forget_prepared(named.text);
        true
    }

    pub(crate) fn clear(&mut self, server: &Server) {
        self.hot = Vec::new();
        self.running = Vec::new();
        self.free = Vec::new();
        let open = std::mem::take(&mut self.slots).into_iter().filter_map(|slot| slot.text);
        let named = std::mem::take(&mut self.by_name).into_values().map(|named| named.text);
        open.chain(named).for_each(|text| server.forget_prepared(text));
    }

    /// No statement has a name, and no cursor is open.
    pub(crate) fn is_quiet(&self) -> bool {
        self.by_name.is_empty() && self.slots.iter().all(|slot| slot.cursor.is_none())
    }

    fn hot(&self, id: u32) -> Option<&HotPlan> {
        let (at, _) = place_of(id);
        self.hot.get(at % HOT_PLANS)?.as_deref().filter(|hot| hot.id == id)
    }

    fn keep_hot(&mut self, hot: HotPlan) {
        let (at, _) = place_of(hot.id);
        if self.hot.is_empty() {
            self.hot.resize_with(HOT_PLANS, || None);
        }
        self.hot[at % HOT_PLANS] = Some(Box::new(hot));
    }
}

/// Slot and generation of a statement id; the slot of id 0 does not exist.
fn place_of(id: u32) -> (usize, u32) {
    (((id & (SLOTS_MAX as u32)) as usize).wrapping_sub(1), id >> SLOT_BITS)
}

impl Server {
    /// Counts a new prepared statement with this text, sharing the text with others that are equal.
    fn remember_prepared(&self, text: PreparedText) -> Result<Arc<PreparedText>> {
        let limit = self.globals.integer("max_prepared_stmt_count");
        let count = self.prepared_count.load(Ordering::Relaxed);
        let limit_bytes = self.globals.integer("prepared_stmt_memory_limit");
        let used = self.prepared_texts.bytes() as u64 + count * size_of::<Slot>() as u64;
        // Plans give way to texts; the use without any cached plan must be within the limit.
        if count >= limit || used + text.size_bytes() as u64 > limit_bytes {
            bail!(MAX_PREPARED_STMT_COUNT_REACHED, limit.min(count));
        }
        self.prepared_count.fetch_add(1, Ordering::Relaxed);
        let room = limit_bytes.saturating_sub(used) as usize;
        self.prepared_plans.set_limit_if_far(room / 2);
        Ok(self.prepared_texts.share(text))
    }

    fn forget_prepared(&self, text: Arc<PreparedText>) {
        self.prepared_count.fetch_sub(1, Ordering::Relaxed);
        self.prepared_texts.release(text);
    }
}

/// The plan of a statement that has not run: it tells whether definitions have changed by then.
fn note_described(session: &mut Session, id: u32, plan: Option<LocalPlan>) {
    if let Some(plan) = plan {
        let context = plan_context(session);
        session.prepared.keep_hot(HotPlan { id, types: None, context, plan });
    }
}

fn plan_context(session: &Session) -> PlanContext {
    let settings = PlanSettings::of(&session.settings);
    PlanContext { database: session.services.database.clone(), settings }
}

/// Runs something in the schema in which a statement was prepared: its names mean what they meant there.
fn under_schema_of<T>(
    session: &mut Session,
    text: &PreparedText,
    body: impl FnOnce(&mut Session) -> T,
) -> T {
    if session.services.database == text.schema {
        return body(session);
    }
    let current = std::mem::replace(&mut session.services.database, text.schema.clone());
    let result = body(session);
    let catalog = session.server.catalog.snapshot();
    // The statement may have dropped it.
    session.services.database = current.filter(|name| catalog.schema(name).is_some());
    result
}

/// Reads a statement that is prepared. A change of an information table has no plan, nor one of a view's documents.
pub(crate) fn read_prepared(session: &Session, sql: &[u8]) -> Result<(PreparedText, Statement)> {
    let (mut text, statement) = session.reading().prepare(sql)?;
    if has_no_plan(session, &statement) {
        text.execution = PreparedExecution::Read;
    }
    Ok((text, statement))
}

impl Session {
    /// COM_STMT_PREPARE.
    pub(crate) fn prepare_binary(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        self.begin_command("Prepare", sql);
        let result = match self.is_observed() {
            false => self.prepare_one(sql),
            true => self.prepare_one_watched(sql),
        };
        self.become_idle();
        result
    }

    #[cold]
    fn prepare_one_watched(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        let watch = self.watch("Prepare", sql, &[], 0);
        let result = match self.before_watched(&watch) {
            Ok(()) => self.prepare_one(sql),
            Err(error) => Err(self.refuse_watched(error)),
        };
        self.after_watched(watch, &ResultCounts::default(), 0, result.as_ref().err());
        result
    }

    fn prepare_one(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        let _bounds = self.begin_statement();
        self.shared.counters.add(Counter::STMT_PREPARE, 1);
        let result = self
            .limits
            .check_password_current()
            .and_then(|()| self.guarded(|session| session.prepare_and_describe(sql)));
        match &result {
            Ok(_) => self.end_statement(),
            Err(error) => self.fail_statement(error),
        }
        result
    }

    fn prepare_and_describe(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        let known = if self.settings.charset_client.is_utf8() {
            let (mode, schema) = (self.reading().mode(), self.services.database.as_ref());
            self.server.prepared_texts.find(sql, mode, schema)
        } else {
            None
        };
        let (text, planned) = match known {
            // Another session has it already: its description is likely in the cache.
            Some(known) => {
                let planned = self.find_described(&known)?;
                (PreparedText::clone(&known), planned)
            }
            None => (read_prepared(self, sql)?.0, None),
        };
        let described = match planned {
            Some(planned) => {
                self.check_plan_privileges(&planned)?;
                Described::of(planned)
            }
            None => {
                let statement = self.reading().parse(&text.source)?;
                self.describe_statement(&statement, &text)?
            }
        };
        let parameter = |index: usize| {
            let ty = described.parameters.get(index).cloned().unwrap_or_else(DataType::null);
            ColumnMeta::computed("?", ty)
        };
        let parameters = (0..text.parameters as usize).map(parameter).collect();
        let text = self.server.remember_prepared(text)?;
        let statement_id = match self.prepared.add(Some(text.clone())) {
            Ok(id) => id,
            Err(error) => {
                self.server.forget_prepared(text);
                return Err(error);
            }
        };
        note_described(self, statement_id, described.plan);
        Ok(PreparedInfo {
            statement_id,
            parameters,
            columns: described.columns,
            warnings: self.working.warning_count_on_wire(),
        })
    }

    /// The cached plan of a statement whose parameters have no values yet.
    fn find_described(&mut self, text: &PreparedText) -> Result<Option<LocalPlan>> {
        if !text.is_planned() || !self.may_share_plans() {
            return Ok(None);
        }
        let key = self.planner().prepared_key(text, described_types(text));
        let server = self.server.clone();
        let lifted = LiftedText { text: &text.source, literals: &[] };
        let found = server.prepared_plans.get(&key, &lifted);
        let found = found.filter(|planned| server.catalog.has_definitions(planned.version));
        Ok(found.map(Arc::new))
    }

    /// Parameter types and result columns, without running anything.
    fn describe_statement(
        &mut self,
        statement: &Statement,
        text: &PreparedText,
    ) -> Result<Described> {
        let source = &*text.source;
        if has_no_plan(self, statement) {
            return Ok(Described::default());
        }
        match statement {
            Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Do(_)
            | Statement::Explain(_) => {
                let planned = self.planner().plan_statement(statement, source, None)?;
                self.check_plan_privileges(&planned)?;
                planned.raise_notices(&mut self.working);
                if text.is_planned() && planned.cacheable && self.may_share_plans() {
                    let key = self.planner().prepared_key(text, described_types(text));
                    let lifted = LiftedText { text: source, literals: &[] };
                    self.server.prepared_plans.insert(key, &lifted, planned.clone());
                }
                Ok(Described::of(Arc::new(planned)))
            }
            Statement::Show(_) | Statement::Describe(_) => {
                if is_shown_directly(statement) {
                    let mut sink = DiscardSink::default();
                    let running =
                        Running { source, parameters: &[], origin: Origin::Prepared, kept: None };
                    // What is shown may come to be before it runs, as in the reference.
                    let _shown_later = self.run_statement(statement, &running, &mut sink);
                    return Ok(Described { columns: sink.columns, ..Described::default() });
                }
                let planned = crate::rewritten::plan_rewritten(self, statement, source, None)?;
                Ok(Described { plan: None, ..Described::of(Arc::new(planned)) })
            }
            // The result of other statements is known when they run.
            _ => Ok(Described::default()),
        }
    }

    /// COM_STMT_EXECUTE.
    pub(crate) fn execute_binary(
        &mut self,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        self.statement.outcome = CommandOutcome::Continue;
        // The text leaves its slot while the statement runs: no shared count is touched.
        let slot = self.prepared.slot(request.statement_id, "mysqld_stmt_execute");
        let taken = slot.and_then(|slot| {
            slot.cursor = None;
            slot.text.take().ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, request.statement_id, ""))
        });
        let text = match taken {
            Ok(text) => text,
            Err(error) => {
                sink.error(&error)?;
                return Ok(CommandOutcome::Continue);
            }
        };
        self.begin_command("Execute", &text.source);
        self.services.note_attributes(request.attributes);
        let result = match self.is_observed() {
            false => self.execute_one(&text, request, sink),
            true => self.execute_one_watched(&text, request, sink),
        };
        let (at, _) = place_of(request.statement_id);
        match self.prepared.slots.get_mut(at) {
            Some(slot) => slot.text = Some(text),
            // COM_RESET_CONNECTION cannot run within a statement.
            None => self.server.forget_prepared(text),
        }
        let sent = match result {
            Ok(()) => Ok(()),
            Err(error) => sink.error(&error),
        };
        self.become_idle();
        sent.map(|()| self.statement.outcome)
    }

    #[cold]
    fn execute_one_watched(
        &mut self,
        text: &PreparedText,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let watch = self.watch("Execute", &text.source, request.attributes, sink.bytes_written());
        watch.run(self, sink, |session, sink| session.execute_one(text, request, sink))
    }

    fn execute_one(
        &mut self,
        text: &PreparedText,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let _bounds = self.begin_statement();
        self.shared.counters.add(Counter::STMT_EXECUTE, 1);
        let result = under_schema_of(self, text, |session| {
            session.guarded(|session| {
                session.limits.count_use(Resource::Questions, || session.server.now_micros())?;
                if text.parameters as usize != request.parameters.len() {
                    bail!(WRONG_ARGUMENTS, "mysqld_stmt_execute");
                }
                session.run_prepared(text, request, sink)
            })
        });
        match &result {
            Ok(()) => self.end_statement(),
            Err(error) => self.fail_statement(error),
        }
        result
    }

    /// Runs a prepared statement, with a cached plan if one fits.
    fn run_prepared(
        &mut self,
        text: &PreparedText,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let parameters = request.parameters;
        self.statement.runs_prepared = true;
        if !text.is_planned() {
            return self.run_prepared_text(text, None, parameters, sink);
        }
        let planned = self.plan_prepared(text, Some(request.statement_id), parameters)?;
        if request.cursor && !planned.program.columns().is_empty() {
            return self.open_cursor(request, &planned, sink);
        }
        self.run_to_client(&planned, parameters, sink)
    }

    /// A plan for these parameters with its metadata locks taken: the session's own, the server's, or a new one.
    /// `id`: the statement's number; one that has none is planned for once.
    fn plan_prepared(
        &mut self,
        text: &PreparedText,
        id: Option<u32>,
        parameters: &[Value],
    ) -> Result<LocalPlan> {
        let may_share = self.may_share_plans();
        let settings = PlanSettings::of(&self.settings);
        if let Some(hot) = id.and_then(|id| self.prepared.hot(id))
            && may_share
            && let Some(types) = &hot.types
            && types.len() == parameters.len()
            && types.iter().zip(parameters).all(|(ty, value)| fits(ty, value))
            && hot.context.settings == settings
            && hot.context.database == self.services.database
            && self.server.catalog.has_definitions(hot.plan.version)
        {
            let plan = hot.plan.clone();
            if self.lock_plan(&plan)? {
                return Ok(plan);
            }
        }
        let last = id.and_then(|id| self.prepared.hot(id)).map(|hot| hot.plan.clone());
        let collation = self.settings.collation_connection.id;
        let types: Vec<DataType> =
            parameters.iter().map(|value| type_of_value(value, collation)).collect();
        let lifted = LiftedText { text: &text.source, literals: &[] };
        let server = self.server.clone();
        let key = self.planner().prepared_key(text, hash_of_types(&types));
        let mut cached = if may_share { server.prepared_plans.get(&key, &lifted) } else { None };
        if let Some(planned) = &cached
            && !(server.catalog.has_definitions(planned.version) && self.lock_plan(planned)?)
        {
            cached = None;
        }
        let planned = match cached {
            Some(planned) => planned,
            None => {
                let statement = self.reading().parse(&text.source)?;
                let running = Running {
                    source: &text.source,
                    parameters,
                    origin: Origin::Prepared,
                    kept: None,
                };
                let planned = self.plan_and_lock(&statement, &running)?;
                if planned.cacheable && may_share {
                    server.prepared_plans.insert(key, &lifted, planned.clone());
                }
                planned
            }
        };
        if last.is_some_and(|last| planned.has_other_definitions(&last, &self.snapshot())) {
            self.shared.counters.add(Counter::STMT_REPREPARE, 1);
        }
        let cacheable = planned.cacheable && may_share;
        let plan = Arc::new(planned);
        if let Some(id) = id {
            if server.prepared_plans.is_crowded() {
                // Plans that only a session still holds are not counted: under pressure it holds one.
                self.prepared.hot.iter_mut().for_each(|hot| *hot = None);
            }
            let (context, types) = (plan_context(self), cacheable.then_some(types));
            self.prepared.keep_hot(HotPlan { id, types, context, plan: plan.clone() });
        }
        Ok(plan)
    }

    fn open_cursor(
        &mut self,
        request: &ExecuteRequest<'_>,
        planned: &Planned,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.shared.counters.add_some(planned.counter);
        let rows = self.run_collecting(planned, request.parameters)?;
        let commit = self.finish_transaction_scope()?;
        sink.columns(planned.program.columns())?;
        let (at, _) = place_of(request.statement_id);
        if let Some(slot) = self.prepared.slots.get_mut(at) {
            slot.cursor = Some(Box::new(Cursor { rows, position: 0 }));
        }
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
        let slot = match self.prepared.slot(id, "mysqld_stmt_fetch") {
            Ok(slot) => slot,
            Err(error) => return sink.error(&error),
        };
        let Some(cursor) = &mut slot.cursor else {
            return sink.error(&err!(STMT_HAS_NO_OPEN_CURSOR, id));
        };
        let end = cursor.rows.len().min(cursor.position.saturating_add(count as usize));
        for row in &cursor.rows[cursor.position..end] {
            sink.row(&ValueRow(row))?;
        }
        cursor.position = end;
        let last = end == cursor.rows.len();
        if last {
            slot.cursor = None;
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
        self.prepared.remove_named(&key, &self.server);
        let text = self.prepare_text(source, running)?;
        let (text, statement) = read_prepared(self, &text)?;
        let described = self.describe_statement(&statement, &text)?;
        let id = self.prepared.add(None)?;
        let text = match self.server.remember_prepared(text) {
            Ok(text) => text,
            Err(error) => {
                self.prepared.free(id);
                return Err(error);
            }
        };
        note_described(self, id, described.plan);
        self.statement.state_changed = true;
        self.prepared.by_name.insert(key, Named { text, id });
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
        let known = self.prepared.by_name.get(&key);
        // The statement itself may prepare another of the same name: this one stays valid until it ends.
        let (text, id) = known
            .map(|named| (named.text.clone(), named.id))
            .ok_or_else(|| err!(UNKNOWN_STMT_HANDLER, name.text, "EXECUTE"))?;
        let parameters: Vec<Value> = using
            .iter()
            .map(|name| {
                plugin_api::SessionServices::user_variable(&self.services, &name.text)
                    .map_or(Value::Null, |(value, _)| value)
            })
            .collect();
        text.check_values(&parameters)?;
        if self.prepared.running.iter().any(|running| Arc::ptr_eq(running, &text)) {
            bail!(PS_NO_RECURSION);
        }
        let mut returning = Returning { inner: sink, using, values: Vec::new() };
        self.prepared.running.push(text.clone());
        let result = under_schema_of(self, &text, |session| {
            session.run_prepared_text(&text, Some(id), &parameters, &mut returning)
        });
        self.prepared.running.pop();
        result?;
        for (name, value, ty) in returning.values {
            let (value, ty) = statements::preparable::given_back(value, ty);
            self.services.set_user_variable(&name.text, value, ty);
        }
        Ok(())
    }

    /// Runs a prepared statement by its text; `id`: as for `plan_prepared`.
    pub(crate) fn run_prepared_text(
        &mut self,
        text: &PreparedText,
        id: Option<u32>,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.statement.runs_prepared = true;
        let running =
            Running { source: &text.source, parameters, origin: Origin::Prepared, kept: None };
        match &text.execution {
            PreparedExecution::Planned if self.profile.is_none() => {
                let planned = self.plan_prepared(text, id, parameters)?;
                self.run_to_client(&planned, parameters, sink)
            }
            PreparedExecution::Kept(statement) => self.run_statement(statement, &running, sink),
            PreparedExecution::Planned | PreparedExecution::Read => {
                let statement = self.reading().parse(&text.source)?;
                self.run_statement(&statement, &running, sink)
            }
        }
    }

    /// The text of EXECUTE; 1210 when it is empty, or a variable without a value.
    pub(crate) fn executable_text(
        &mut self,
        source: &PrepareSource,
        running: &Running<'_>,
    ) -> Result<Vec<u8>> {
        let is_set = match source {
            PrepareSource::Text(text) => !text.is_empty(),
            PrepareSource::UserVar(name) => {
                plugin_api::SessionServices::user_variable(&self.services, &name.text)
                    .is_some_and(|(value, _)| !value.is_null())
            }
            PrepareSource::Expr(_) => true,
        };
        if is_set {
            let text = self.prepare_text(source, running)?;
            if !text.is_empty() {
                return Ok(text);
            }
        }
        bail!(WRONG_ARGUMENTS, "Invalid Variable")
    }

    /// EXECUTE 'text' and EXECUTE IMMEDIATE.
    pub(crate) fn execute_text(
        &mut self,
        source: &PrepareSource,
        using: &[Expr],
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let text = self.executable_text(source, running)?;
        let mut parameters = Vec::with_capacity(using.len());
        for expr in using {
            parameters.push(self.evaluate(expr, running)?.0);
        }
        let (text, _) = read_prepared(self, &text)?;
        text.check_values(&parameters)?;
        self.run_prepared_text(&text, None, &parameters, sink)
    }

    /// DEALLOCATE PREPARE.
    pub(crate) fn deallocate_named(
        &mut self,
        name: &Ident,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if !self.prepared.remove_named(&name.text.to_lowercase(), &self.server) {
            bail!(UNKNOWN_STMT_HANDLER, name.text, "DEALLOCATE PREPARE");
        }
        self.statement.state_changed = true;
        self.send_ok(sink, OkInfo::default())
    }
}

/// The results of EXECUTE, and the values that a CALL gives to the variables of USING.
struct Returning<'a> {
    inner: &'a mut dyn ResultSink,
    using: &'a [Ident],
    values: Vec<(&'a Ident, Value, DataType)>,
}

impl ForwardingSink for Returning<'_> {
    fn target(&mut self) -> &mut dyn ResultSink {
        self.inner
    }

    fn out_parameters(
        &mut self,
        parameters: &[usize],
        columns: &[ColumnMeta],
        row: &dyn RowSource,
        _: &SessionState,
    ) -> Result<()> {
        for (at, (parameter, column)) in parameters.iter().zip(columns).enumerate() {
            if let Some(name) = self.using.get(*parameter) {
                self.values.push((name, row.value(at)?, column.ty.clone()));
            }
        }
        Ok(())
    }
}

/// In place of the parameters' types before they are known; a statement without parameters runs by the plan that described it.
fn described_types(text: &PreparedText) -> u64 {
    if text.parameters == 0 { hash_of_types(&[]) } else { DESCRIBED }
}

/// A hash of everything that distinguishes types.
fn hash_of_types(types: &[DataType]) -> u64 {
    types.iter().fold(types.len() as u64, |hash, ty| {
        let shape = u64::from(ty.length) << 32
            | u64::from(ty.collation.0) << 16
            | u64::from(ty.decimals) << 8
            | u64::from(ty.unsigned) << 7
            | u64::from(ty.kind.number());
        stdx::mix(hash ^ shape).wrapping_add(hash.rotate_left(17))
    })
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
