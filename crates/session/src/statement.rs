//! The life of a statement: text in, one result out. Errors and panics end the statement, never the session.

use ::accounts::PrivilegeChecks;
use std::panic::{AssertUnwindSafe, catch_unwind};

use catalog::MetadataGuard;
use errors::{Diagnostics, Error, ErrorCode, Level, Result, bail};
use plugin_api::{
    CommandOutcome, EventSet, Next, OkInfo, QueryAttribute, ResultSink, TextPlace, TextRequest,
    TextResults,
};
use programs::{Origin, Running, parse_error};
use syntax::ast::{CloneStatement, Statement};

use crate::binary_log;
use crate::duality_changes::change_rows;
use crate::observed::watched;
use crate::program_host::ProgramSession;
use crate::replication::run_replica;
use crate::resource_groups;
use crate::session::Session;
use crate::statement_kind::{Before, StatementKind, commits_implicitly, kind_of};
use crate::status::Counter;
use crate::{
    admin, backup, cluster, ddl, described, handler, load_data, maintenance, plugin_statements,
    profile, set, text_session,
};
use accounts::Resource;
use observation::Phase;
use statements::backup_directory::Backup;
use statements::deadline::Bounds;
use statements::locked_tables::Names;
use statements::placeholders::{is_blank, is_comment, near};
use transactions::Writable;

/// EXECUTE of a PREPARE of an EXECUTE ...: deeper is refused.
const NESTING_MAX: u32 = 8;

/// The clock for the end of a statement may be late by less than this.
const COARSE_CLOCK_MICROS: i64 = 100_000;

impl Session {
    /// COM_QUERY.
    pub(crate) fn run_text(
        &mut self,
        sql: &[u8],
        attributes: &[QueryAttribute],
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        self.statement.outcome = CommandOutcome::Continue;
        let converted;
        let text = if self.settings.charset_client.is_utf8() {
            sql
        } else {
            converted = self.settings.charset_client.decode(sql).bytes;
            &converted
        };
        // Some clients include the NUL of their strings.
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        self.begin_command("Query", text);
        self.services.note_attributes(attributes);
        let result = self.run_all(text, attributes, sink);
        self.statement.more_results = false;
        self.become_idle();
        result.map(|()| self.statement.outcome)
    }

    /// Call before a command: shows other sessions what runs, and takes the current time of its statement.
    pub(crate) fn begin_command(&mut self, command: &'static str, text: &[u8]) {
        self.statement.started_micros = self.server.now_micros();
        self.shared.begin(command, text, self.statement.started_micros);
    }

    /// After a command: the session waits for its client.
    pub(crate) fn become_idle(&self) {
        let slow = self.settings.long_query_micros;
        let coarse = slow > COARSE_CLOCK_MICROS;
        let server = &self.server;
        let now = if coarse { server.now_micros_coarse() } else { server.now_micros() };
        self.shared.idle(now, slow);
        self.transactions.slot.rest();
    }

    /// All statements of a text, until one fails.
    fn run_all(
        &mut self,
        text: &[u8],
        attributes: &[QueryAttribute],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let mut offset = 0;
        loop {
            let rest = &text[offset..];
            let outcome = match self.is_observed() {
                false => self.run_one(rest, sink),
                true => self.run_one_watched(rest, attributes, sink),
            };
            match outcome {
                Ok(consumed) => offset += consumed,
                Err(error) => return sink.error(&error),
            }
            let more =
                self.statement.more_results && self.statement.outcome == CommandOutcome::Continue;
            if !more || self.shared.cancel.is_connection_killed() {
                return Ok(());
            }
            self.statement.started_micros = self.server.now_micros();
            self.shared.cancel.reset_statement();
        }
    }

    /// Runs the first statement of a text from begin to end; returns how many bytes it took.
    pub(crate) fn run_one(&mut self, text: &[u8], sink: &mut dyn ResultSink) -> Result<usize> {
        let _bounds = self.begin_statement();
        let outcome = self.guarded(|session| session.run_next(text, sink));
        match &outcome {
            Ok(_) => self.end_statement(),
            Err(error) => self.fail_statement(error),
        }
        outcome
    }

    /// Runs `body`; a panic in it becomes error 1815.
    pub(crate) fn guarded<T>(&mut self, body: impl FnOnce(&mut Session) -> Result<T>) -> Result<T> {
        match catch_unwind(AssertUnwindSafe(|| body(self))) {
            Ok(result) => result,
            Err(panic) => {
                let text = panic
                    .downcast_ref::<&str>()
                    .map(|text| (*text).to_owned())
                    .or_else(|| panic.downcast_ref::<String>().cloned())
                    .unwrap_or_default();
                // The statement's incomplete state in the session's memory is dropped; the whole transaction is rolled back.
                self.scratch = Default::default();
                self.profile = None;
                let _ = self.transactions.rollback();
                self.transactions.slot.release_to(0);
                self.transactions.branch_rolled_back(ErrorCode::XA_RBROLLBACK);
                Err(Error::internal(format!("a statement failed unexpectedly: {text}")))
            }
        }
    }

    /// Parses and runs the first statement of `text`; returns how many bytes it took.
    fn run_next(&mut self, text: &[u8], sink: &mut dyn ResultSink) -> Result<usize> {
        self.limits.count_use(Resource::Questions, || self.server.now_micros())?;
        if !self.limits.must_change_password
            && let Some(consumed) = self.run_cached(text, sink)?
        {
            return Ok(consumed);
        }
        let options = self.reading().text_options();
        let parsed = {
            let _seen = sys::probes::parse(text);
            syntax::parse_bytes(text, &options)
        };
        let (statement, consumed) = parsed.map_err(|error| parse_error(&error))?;
        let rest = &text[consumed..];
        self.say_more_results(self.client.multi_statements && !is_blank(rest), sink);
        if !self.client.multi_statements && !is_blank(rest) && !is_comment(rest, &options) {
            return Err(near(rest, text));
        }
        if matches!(statement, Statement::Empty) {
            if is_blank(text) {
                bail!(EMPTY_QUERY);
            }
            if !is_blank(rest) {
                // A text may be only a comment, a statement followed by others may not.
                return Err(near(&text[consumed - 1..], text));
            }
        }
        let source = &text[..consumed];
        let running = Running { source, parameters: &[], origin: Origin::Text, kept: None };
        self.run_statement(&statement, &running, sink)?;
        Ok(if self.client.multi_statements { consumed } else { text.len() })
    }

    /// Records whether other statements of the text follow the one that is about to run.
    pub(crate) fn say_more_results(&mut self, more: bool, sink: &mut dyn ResultSink) {
        self.statement.more_results = more;
        if self.client.multi_statements {
            sink.followed_by(if more { Next::Result } else { Next::End });
        }
    }

    /// Before every statement. What is returned bounds it as long as it lives.
    #[must_use]
    pub(crate) fn begin_statement(&mut self) -> Option<Box<Bounds>> {
        let mut working = Diagnostics::new(self.settings.max_error_count);
        working.set_notes_enabled(self.settings.sql_notes);
        self.working = working;
        self.services.last_insert_id_set = false;
        self.services.statement_number += 1;
        self.services.warning_count = self.diagnostics.warning_count();
        self.services.error_count = self.diagnostics.error_count();
        self.statement.begin();
        self.shared.counters.add(Counter::QUERIES, 1);
        self.shared.counters.add(Counter::QUESTIONS, 1);
        self.check_privileges_current();
        self.transactions.begin_scope(&self.settings);
        let is_bounded = self.settings.max_statement_time.is_some();
        (is_bounded || !self.shared.group.is_default()).then(|| {
            let limit = self.settings.max_statement_time.filter(|_| !self.is_applier);
            let time = limit.map(|limit| (&self.server.deadlines, limit, &self.shared.cancel));
            Bounds::of(time, self.shared.group.enter())
        })
    }

    /// After a statement that succeeded.
    pub(crate) fn end_statement(&mut self) {
        if !self.statement.end() {
            self.diagnostics = std::mem::take(&mut self.working);
        }
    }

    /// After a statement that failed.
    pub(crate) fn fail_statement(&mut self, error: &Error) {
        if matches!(
            error.code(),
            ErrorCode::CONNECTION_MEMORY_LIMIT | ErrorCode::GLOBAL_CONNECTION_MEMORY_LIMIT
        ) {
            tracing::error!("{}", error.message());
            self.statement.outcome = CommandOutcome::Close;
        }
        self.working.push_error(Level::Error, error);
        self.diagnostics = std::mem::take(&mut self.working);
        self.statement.keeps_diagnostics = false;
        self.services.row_count = -1;
        self.abort_transaction_scope(error);
    }

    /// Sends an OK with the present state.
    pub(crate) fn send_ok(&mut self, sink: &mut dyn ResultSink, ok: OkInfo) -> Result<()> {
        let commit = self.commit_for_reply(ok.commit)?;
        let state = self.state_info();
        let mut merged = OkInfo {
            affected_rows: ok.affected_rows,
            last_insert_id: ok.last_insert_id,
            info: ok.info,
            warnings: state.warnings.max(ok.warnings),
            commit,
            ..state
        };
        crate::recording::track(self, &mut merged)?;
        sink.ok(&merged)
    }

    /// Runs one parsed statement and sends its result.
    pub(crate) fn run_statement(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if self.statement.depth >= NESTING_MAX {
            bail!(PS_NO_RECURSION);
        }
        self.statement.depth += 1;
        self.enter(Phase::Execute);
        let result =
            self.under_hints(statement, |session| session.dispatch(statement, running, sink));
        self.statement.depth -= 1;
        if self.locked.is_in_force() && commits_implicitly(statement) {
            // The statement has been answered: a lock that cannot be taken again counts as released.
            let (view, session) = (self.view(), &self.shared);
            let timeout = self.settings.lock_wait_timeout;
            let _ = self.locked.renew(&view, |wanted| {
                self.server.metadata_locks.lock(session.id, wanted, timeout, &session.cancel)
            });
        }
        result
    }

    /// The steps before a statement of this kind: its counters and limits, reasons to refuse it, its implicit commit, and the
    /// lock on definitions, which the statement holds.
    fn before_dispatch(
        &mut self,
        statement: &Statement,
        kind: &StatementKind,
    ) -> Result<Option<MetadataGuard>> {
        self.shared.counters.add_some(kind.counter);
        if !matches!(statement, Statement::AlterUser(_) | Statement::SetPassword(_)) {
            self.limits.check_password_current()?;
        }
        self.transactions.check_branch(statement)?;
        if !kind.commits() {
            return Ok(None);
        }
        self.limits.count_use(Resource::Updates, || self.server.now_micros())?;
        let names = Names { view: &self.view(), schema: self.services.database.as_ref() };
        self.locked.check_definition(statement, names)?;
        let may_join = kind.before == Before::CommitsOrJoins && !self.locked.is_in_force();
        if may_join && self.transactions.takes_definitions(&self.settings) {
            let lock = self.lock_definitions()?;
            self.transactions.begin_definition();
            return Ok(Some(lock));
        }
        let starts = matches!(statement, Statement::StartTransaction(_));
        let (globals, privileges) = (&self.server.globals, &*self.privileges);
        let writable = Writable { globals, privileges, is_applier: self.is_applier };
        self.transactions.commit_implicitly(starts, &self.settings, writable)?;
        match kind.before {
            Before::Stays | Before::Commits => Ok(None),
            Before::CommitsToDefine | Before::CommitsOrJoins => self.lock_definitions().map(Some),
        }
    }

    fn lock_definitions(&self) -> Result<MetadataGuard> {
        let (locks, cancel) = (&self.server.metadata_locks, &self.shared.cancel);
        locks.lock_definitions(self.shared.id, self.settings.lock_wait_timeout, cancel)
    }

    fn dispatch(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if self.server.hooks.wants(EventSet::SCHEMA_CHANGES) {
            let run = |session: &mut Session| session.dispatch_unwatched(statement, running, sink);
            return watched(self, statement, run);
        }
        self.dispatch_unwatched(statement, running, sink)
    }

    pub(crate) fn dispatch_unwatched(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if self.server.hooks.restricts() {
            self.check_changes_allowed(statement)?;
        }
        let kind = kind_of(statement);
        let definitions = self.before_dispatch(statement, &kind)?;
        if self.server.hooks.logs_commits() {
            crate::recording::note_text(self, statement, running, definitions.is_some());
        }
        let result = self.dispatch_started(statement, kind.unsupported, running, sink);
        // A statement from a cache, which notes no text, must not find this one.
        self.statement.text.clear();
        self.statement.defines = false;
        if definitions.is_some() {
            self.transactions.end_definition(&result);
            handler::close_changed(self);
        }
        result
    }

    fn dispatch_started(
        &mut self,
        statement: &Statement,
        unsupported: Option<&'static str>,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        match statement {
            // Only comments.
            Statement::Empty => self.send_ok(sink, OkInfo::default()),
            // Rows.
            Statement::Query(query) => self.run_query(statement, query, running, sink),
            Statement::Update(_) | Statement::Insert(_) | Statement::Delete(_) => {
                change_rows(self, statement, running, sink)
            }
            Statement::Do(_) => self.run_planned_statement(statement, running, sink),
            Statement::Handler(_) => handler::run(self, statement, running, sink),
            Statement::Explain(explain) => {
                admin::run_explain(self, statement, explain, running, sink)
            }
            Statement::Profile(profile) => profile::run_profile(self, profile, running, sink),
            Statement::LoadData(load) => load_data::run_load_data(self, load, running, sink),
            Statement::PurgeBinaryLogs { .. }
            | Statement::Reset(_)
            | Statement::ChangeStream(_) => binary_log::run(self, statement, running, sink),
            // Definitions.
            Statement::CreateDatabase(create) => ddl::create_database(self, create, sink),
            Statement::AlterDatabase(alter) => ddl::alter_database(self, alter, sink),
            Statement::DropDatabase(drop) => ddl::drop_database(self, drop, sink),
            Statement::CreateTable(create) => ddl::create_table(self, create, running, sink),
            Statement::AlterTable(alter) => ddl::alter_table(self, alter, running, sink),
            Statement::ImportTable(files) => crate::transport::import_tables(self, files, sink),
            Statement::DropTable(drop) => ddl::drop_tables(self, drop, sink),
            Statement::RenameTable(rename) => ddl::rename_tables(self, rename, sink),
            Statement::TruncateTable(name) => ddl::truncate_table(self, name, sink),
            Statement::CreateIndex(create) => ddl::create_index(self, create, running, sink),
            Statement::DropIndex(drop) => ddl::drop_index(self, drop, running, sink),
            Statement::CreateView(create) => ddl::create_view(self, create, false, running, sink),
            Statement::AlterView(create) => ddl::create_view(self, create, true, running, sink),
            Statement::DropView(drop) => ddl::drop_views(self, drop, sink),
            Statement::CreateSequence(create) => ddl::create_sequence(self, create, running, sink),
            Statement::AlterSequence(alter) => ddl::alter_sequence(self, alter, sink),
            Statement::DropSequence(drop) => ddl::drop_sequences(self, drop, sink),
            // Programs.
            Statement::CreateRoutine(create) => {
                programs::create_routine(&mut ProgramSession::new(self), create, running, sink)
            }
            Statement::AlterRoutine(alter) => {
                programs::alter_routine(&mut ProgramSession::new(self), alter, sink)
            }
            Statement::DropRoutine(drop) => {
                programs::drop_routine(&mut ProgramSession::new(self), drop, sink)
            }
            Statement::CreateLibrary(create) => {
                programs::create_library(&mut ProgramSession::new(self), create, sink)
            }
            Statement::AlterLibrary(alter) => {
                programs::alter_library(&mut ProgramSession::new(self), alter, sink)
            }
            Statement::DropLibrary(drop) => {
                programs::drop_library(&mut ProgramSession::new(self), drop, sink)
            }
            Statement::CreateTrigger(create) => {
                programs::create_trigger(&mut ProgramSession::new(self), create, running, sink)
            }
            Statement::DropTrigger(drop) => {
                programs::drop_trigger(&mut ProgramSession::new(self), drop, sink)
            }
            Statement::CreateEvent(create) => {
                programs::create_event(&mut ProgramSession::new(self), create, running, sink)
            }
            Statement::AlterEvent(alter) => {
                programs::alter_event(&mut ProgramSession::new(self), alter, running, sink)
            }
            Statement::DropEvent(drop) => {
                programs::drop_event(&mut ProgramSession::new(self), drop, sink)
            }
            Statement::Call(call) => {
                programs::run_call(&mut ProgramSession::new(self), call, running, sink)
            }
            _ => dispatch_in_no_schema(self, statement, unsupported, running, sink),
        }
    }

    /// Statements that neither read rows nor define anything: of transactions, of the session, of accounts, of the server.
    fn dispatch_control(
        &mut self,
        statement: &Statement,
        unsupported: Option<&'static str>,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        match statement {
            // Transactions.
            Statement::StartTransaction(_)
            | Statement::Commit(_)
            | Statement::Rollback(_)
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::ReleaseSavepoint(_)
            | Statement::SetTransaction(_) => self.run_transaction_statement(statement, sink),
            Statement::LockTables(tables) => self.lock_tables(tables, sink),
            Statement::UnlockTables => self.unlock_tables(sink),
            Statement::LockInstance | Statement::UnlockInstance => {
                self.require_dynamic("BACKUP_ADMIN")?;
                self.send_ok(sink, OkInfo::default())
            }
            Statement::Xa(xa) => self.run_xa(xa, sink),
            // Prepared statements.
            Statement::Prepare { name, source } => self.prepare_named(name, source, running, sink),
            Statement::Execute { name, using } => self.execute_named(name, using, sink),
            Statement::ExecuteText { source, using, concurrent, no_return, wait } => {
                if !*concurrent && !*no_return {
                    return self.execute_text(source, using, running, sink);
                }
                let results =
                    if *no_return { TextResults::Discarded } else { TextResults::Reported };
                let place = match (*concurrent, *wait) {
                    (false, _) => TextPlace::Here,
                    (true, false) => TextPlace::Beside,
                    (true, true) => TextPlace::BesideWaiting,
                };
                if !using.is_empty() {
                    bail!(WRONG_ARGUMENTS, "EXECUTE");
                }
                let text = self.executable_text(source, running)?;
                let text = String::from_utf8_lossy(&text);
                text_session::run_text(self, &TextRequest { text: &text, results, place })?;
                self.send_ok(sink, OkInfo::default())
            }
            Statement::Deallocate(name) => self.deallocate_named(name, sink),
            // Session.
            Statement::Set(items) => set::run_set(self, items, running, sink),
            Statement::Use(name) => {
                self.use_schema(&name.text)?;
                self.send_ok(sink, OkInfo::default())
            }
            Statement::Kill { query, id } => admin::run_kill(self, *query, id, running, sink),
            // Accounts.
            Statement::CreateUser(_)
            | Statement::AlterUser(_)
            | Statement::DropUser { .. }
            | Statement::RenameUser(_)
            | Statement::CreateRole { .. }
            | Statement::DropRole { .. }
            | Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::SetPassword(_)
            | Statement::SetDefaultRole { .. } => self.run_account_statement(statement, sink),
            Statement::SetRole(choice) => self.set_role(choice, sink),
            // Information.
            Statement::Show(_) | Statement::Describe(_) | Statement::Help(_) => {
                admin::run_rewritten(self, statement, running, sink)
            }
            Statement::GetDiagnostics(get) => {
                programs::get_diagnostics(&mut ProgramSession::new(self), get, running, sink)
            }
            Statement::Signal(signal) => {
                programs::run_signal(&mut ProgramSession::new(self), signal, running, sink)
            }
            // Administration.
            Statement::TableMaintenance(tables) => maintenance::maintain_tables(self, tables, sink),
            Statement::Flush(flush) => admin::run_flush(self, flush, sink),
            Statement::ResetPersist { if_exists, name } => {
                set::reset_persist(self, *if_exists, name.as_deref(), sink)
            }
            Statement::Backup { directory, is_plain } => {
                backup::run_backup(self, directory.as_deref(), *is_plain, Backup::Kept, sink)
            }
            Statement::Clone(clone) => match &**clone {
                CloneStatement::Local { directory } => {
                    backup::run_backup(self, Some(directory), false, Backup::Started, sink)
                }
                CloneStatement::Instance { .. } => run_replica(self, running, sink),
            },
            Statement::AlterInstance(alter) => admin::alter_instance(self, alter, sink),
            Statement::AlterCluster(change) => cluster::alter_cluster(self, change, false, sink),
            Statement::Shutdown => admin::run_shutdown(self, sink),
            Statement::Restart => admin::run_restart(self, sink),
            Statement::Plugin(plugin) => plugin_statements::run_plugin(self, plugin, running, sink),
            Statement::KeyCache(caching) => maintenance::cache_keys(self, caching, sink),
            Statement::Replication(_) | Statement::Binlog(_) => run_replica(self, running, sink),
            _ => Err(Error::not_supported(unsupported.unwrap_or("this statement"))),
        }
    }
}

/// Statements about objects that are in no schema; all others are of `dispatch_control`.
fn dispatch_in_no_schema(
    session: &mut Session,
    statement: &Statement,
    unsupported: Option<&'static str>,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if let Statement::Tablespace(tablespace) = statement {
        return ddl::tablespace::change(session, tablespace, running, sink);
    }
    if let Statement::LogfileGroup(group) = statement {
        return ddl::tablespace::refuse_logfiles(session, group, running);
    }
    if matches!(statement, Statement::Server(_) | Statement::DropServer { .. }) {
        return described::change_server(session, statement, sink);
    }
    if matches!(
        statement,
        Statement::CreateSpatialReferenceSystem(_) | Statement::DropSpatialReferenceSystem { .. }
    ) {
        return described::change_reference_system(session, statement, sink);
    }
    if let Statement::ResourceGroup(group) = statement {
        return resource_groups::change(session, group, sink);
    }
    if let Statement::SetResourceGroup { name, threads } = statement {
        return resource_groups::set(session, name, threads, sink);
    }
    session.dispatch_control(statement, unsupported, running, sink)
}
