//! Tells the observers of plugins what sessions do. Whether anybody wants to know is one word of the server, tested once for a statement.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use exec::TableWork;
use observation::{
    Changes, CountingSink, Measuring, OwnedFacts, ResultCounts, RowWatcher, changes_of, table_rows,
};
use plugin_api::{
    AuthRequest, ConnectionEvent, ConnectionKind, EventSet, LoginAttempt, LoginFailure, Observer,
    QueryAttribute, ResultSink, SessionFacts, Severity, StatementCounts, StatementEnd,
    StatementEvent, without_secrets,
};
use syntax::ast::Statement;
use sys::waits::{self, Wait};

use crate::measured::now_nanos;
use crate::recording;
use crate::server::Server;
use crate::session::Session;
use crate::status::Counter;

impl Server {
    /// Whether an observer wants to know what the next statement costs.
    fn measures_next(&self) -> bool {
        let mut is_wanted = false;
        if self.hooks.wants(EventSet::COST) {
            self.hooks.tell(EventSet::COST, |observer| is_wanted |= observer.measures_next());
        }
        is_wanted
    }

    /// Tells observers of a log-in that was refused.
    pub(crate) fn tell_login_failure(
        &self,
        request: &AuthRequest,
        kind: &ConnectionKind,
        error: Option<&Error>,
    ) {
        if !self.hooks.wants(EventSet::LOGIN_FAILURE) {
            return;
        }
        let (hosts, _) = accounts::hosts_of(kind);
        let host = hosts.last().map_or("", String::as_str);
        let at_micros = self.now_micros();
        let account = accounts::matched_name(self.catalog.snapshot().accounts(), request, kind);
        let account = account.as_deref();
        let failure = LoginFailure { user: &request.user, host, account, error, at_micros };
        self.hooks.tell(EventSet::LOGIN_FAILURE, |observer| observer.login_failed(&failure));
    }

    /// How long observers want the answer to a log-in held back.
    pub(crate) fn answer_delay(&self, request: &AuthRequest, kind: &ConnectionKind) -> Duration {
        let mut delay = Duration::ZERO;
        if self.hooks.wants(EventSet::LOGIN_ANSWER) {
            let (hosts, _) = accounts::hosts_of(kind);
            let host = hosts.last().map_or("", String::as_str);
            let account = accounts::matched_name(self.catalog.snapshot().accounts(), request, kind);
            let account = account.as_deref();
            let attempt = LoginAttempt { user: &request.user, host, account };
            let ask = |observer: &dyn Observer| delay = delay.max(observer.login_delay(&attempt));
            self.hooks.tell(EventSet::LOGIN_ANSWER, ask);
        }
        delay
    }

    /// Passes a line of the error log on to log sinks.
    pub fn log_line(&self, severity: Severity, line: &str) {
        let registry = self.registry();
        registry.log_sinks().iter().for_each(|sink| sink.error_line(severity, line));
    }

    /// Opens the files of logs again.
    ///
    /// # Errors
    /// The first that cannot be opened; the others are opened anyway.
    pub fn reopen_logs(&self) -> Result<()> {
        let registry = self.registry();
        let results: Vec<Result<()>> =
            registry.log_sinks().iter().map(|sink| sink.reopen()).collect();
        results.into_iter().collect()
    }
}

/// The facts of a statement that is observed.
pub(crate) struct Watch<'t> {
    command: &'static str,
    text: Cow<'t, [u8]>,
    schema: Option<Arc<str>>,
    started_micros: i64,
    attributes: &'t [QueryAttribute],
    /// Of the text, when the statement is measured.
    digest_hash: Option<u128>,
    /// Counters of the session when it began.
    counts: [u64; COUNTED.len()],
    rows_examined: u64,
    bytes_written: u64,
    /// Nanoseconds that the thread had waited for row locks and for metadata locks until then.
    lock_nanos: [u64; 2],
    /// Takes the rows that it reads and writes, when an observer asks for them; and what took those of the statement around it.
    tables: Option<(Arc<TableWork>, Option<Arc<TableWork>>)>,
    /// What the thread had used, when the statement is measured.
    used: Option<Measuring>,
    /// Whether anybody is told how it ends. Otherwise nothing is counted.
    is_told_end: bool,
    /// Whether also when it was quick.
    is_told_always: bool,
}

impl Watch<'_> {
    /// Runs the statement, unless an observer refuses it, and tells observers of its end.
    pub(crate) fn run<T>(
        self,
        session: &mut Session,
        sink: &mut dyn ResultSink,
        run: impl FnOnce(&mut Session, &mut dyn ResultSink) -> Result<T>,
    ) -> Result<T> {
        if let Err(error) = session.before_watched(&self) {
            let refused = session.refuse_watched(error);
            let nothing = ResultCounts::default();
            session.after_watched(self, &nothing, sink.bytes_written(), Some(&refused));
            return Err(refused);
        }
        if !self.is_told_end {
            return run(session, sink);
        }
        let mut counting = CountingSink { target: sink, counts: ResultCounts::default() };
        let result = run(session, &mut counting);
        let counts = counting.counts;
        session.after_watched(self, &counts, sink.bytes_written(), result.as_ref().err());
        result
    }
}

/// The waits that are told apart from a statement's work.
const LOCKS: [Wait; 2] = [Wait::RowLock, Wait::MetadataLock];

/// The counters of a statement, in the order of `StatementCounts`.
const COUNTED: [Counter; 10] = [
    Counter::CREATED_TMP_TABLES,
    Counter::CREATED_TMP_DISK_TABLES,
    Counter::SELECT_FULL_JOIN,
    Counter::SELECT_FULL_RANGE_JOIN,
    Counter::SELECT_RANGE,
    Counter::SELECT_SCAN,
    Counter::SORT_MERGE_PASSES,
    Counter::SORT_RANGE,
    Counter::SORT_ROWS,
    Counter::SORT_SCAN,
];

impl Session {
    /// Whether statements of this session are observed.
    #[inline]
    pub(crate) fn is_observed(&self) -> bool {
        self.server.hooks.wants(EventSet::OF_STATEMENTS)
            || self.settings.statement_cost
            || self.settings.profiling
    }

    fn counts(&self) -> [u64; COUNTED.len()] {
        COUNTED.map(|counter| self.shared.counters.get(counter))
    }

    pub(crate) fn session_facts<'a>(&'a self, schema: Option<&'a str>) -> SessionFacts<'a> {
        let (user, host) = self.services.user.rsplit_once('@').unwrap_or(("", ""));
        let account = &self.services.current_user;
        SessionFacts { connection_id: self.shared.id, user, host, account, schema }
    }

    /// Begins to watch the first statement of `text`.
    #[cold]
    pub(crate) fn watch<'t>(
        &mut self,
        command: &'static str,
        text: &'t [u8],
        attributes: &'t [QueryAttribute],
        bytes_written: u64,
    ) -> Watch<'t> {
        // An observer may ask for privileges.
        self.check_privileges_current();
        let options = self.reading().options();
        let keeps_steps = self.settings.profiling || self.server.hooks.wants(EventSet::STEPS);
        let is_measured =
            self.settings.statement_cost || keeps_steps || self.server.measures_next();
        let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
        let whole = text.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1);
        // Only a text with a semicolon inside can have a second statement.
        let may_have_more =
            self.client.multi_statements && command == "Query" && text[..whole].contains(&b';');
        let length = match may_have_more {
            true => {
                let first = &text[..self.normalizer.normalize(text, &options).consumed];
                first.iter().rposition(|byte| !is_end(byte)).map_or(0, |last| last + 1)
            }
            false => whole,
        };
        let hooks = &self.server.hooks;
        let is_told_always =
            is_measured || hooks.wants(EventSet::AFTER_STATEMENT | EventSet::TABLES);
        let is_told_end = is_told_always || hooks.wants(EventSet::AFTER_SLOW_STATEMENT);
        let tables = self.server.hooks.wants(EventSet::TABLES).then(|| {
            let work = Arc::new(TableWork::default());
            let outer = self.scratch.tables.replace(work.clone());
            (work, outer)
        });
        let wants_digest = is_measured || self.server.hooks.wants(EventSet::DIGEST);
        let digest_hash =
            wants_digest.then(|| self.normalizer.normalize(&text[..length], &options).hash);
        Watch {
            command,
            text: without_secrets(text[..length].trim_ascii_start()),
            schema: self.services.database.clone(),
            started_micros: self.server.now_micros(),
            attributes,
            digest_hash,
            counts: if is_told_end { self.counts() } else { Default::default() },
            rows_examined: self.statement.rows_examined,
            bytes_written,
            lock_nanos: if is_told_end { waits::mine_nanos(LOCKS) } else { Default::default() },
            tables,
            used: is_measured.then(|| {
                let now = now_nanos(self);
                Measuring::begin(&mut self.phases, now, keeps_steps)
            }),
            is_told_end,
            is_told_always,
        }
    }

    fn with_event<T>(&self, watch: &Watch<'_>, body: impl FnOnce(&StatementEvent<'_>) -> T) -> T {
        let options = self.reading().options();
        let digest_text = || syntax::digest_text(&watch.text, &options);
        let connection_attributes = || self.shared.activity.lock().attributes.clone();
        body(&StatementEvent {
            session: self.session_facts(watch.schema.as_deref()),
            command: watch.command,
            text: &watch.text,
            digest_text: &digest_text,
            digest_hash: watch.digest_hash,
            connection_attributes: &connection_attributes,
            started_micros: watch.started_micros,
            services: &self.services,
            attributes: watch.attributes,
        })
    }

    /// Tells observers that the statement begins.
    ///
    /// # Errors
    /// An observer refuses it.
    pub(crate) fn before_watched(&self, watch: &Watch<'_>) -> Result<()> {
        if !self.server.hooks.wants(EventSet::BEFORE_STATEMENT) {
            return Ok(());
        }
        self.with_event(watch, |event| {
            self.server
                .hooks
                .ask(EventSet::BEFORE_STATEMENT, |observer| observer.before_statement(event))
        })
    }

    /// Tells observers that the statement ended. `bytes_written`: by its sink so far.
    pub(crate) fn after_watched(
        &mut self,
        mut watch: Watch<'_>,
        result: &ResultCounts,
        bytes_written: u64,
        error: Option<&Error>,
    ) {
        debug_assert!(result.error.is_none() || error.is_none(), "an error is reported once");
        if !watch.is_told_end {
            return;
        }
        let elapsed = self.server.now_micros().saturating_sub(watch.started_micros);
        let is_slow = elapsed > self.settings.long_query_micros;
        if !is_slow && !watch.is_told_always {
            return;
        }
        let [rows, tables] = waits::mine_nanos(LOCKS);
        let locks =
            (rows.saturating_sub(watch.lock_nanos[0]), tables.saturating_sub(watch.lock_nanos[1]));
        let measured = watch.used.take().map(|measuring| {
            let now = now_nanos(self);
            measuring.end(&mut self.phases, now, locks)
        });
        let (cost, steps) = measured.unzip();
        let steps = steps.unwrap_or_default();
        let now = self.counts();
        let since = |at: usize| now[at].saturating_sub(watch.counts[at]);
        let counts = StatementCounts {
            rows_examined: self.statement.rows_examined - watch.rows_examined,
            bytes_sent: bytes_written.saturating_sub(watch.bytes_written),
            temporary_tables: since(0),
            temporary_disk_tables: since(1),
            full_joins: since(2),
            full_range_joins: since(3),
            ranges: since(4),
            scans: since(5),
            sort_merge_passes: since(6),
            sort_ranges: since(7),
            sort_rows: since(8),
            sort_scans: since(9),
        };
        let mut tables = Vec::new();
        if let Some((work, outer)) = watch.tables.take() {
            self.scratch.tables = outer;
            tables = table_rows(&work, &self.snapshot());
        }
        let end = StatementEnd {
            error: error.or(result.error.as_ref()),
            rows_sent: result.sent,
            rows_affected: result.affected,
            counts,
            cost: cost.as_ref(),
            steps: &steps,
            tables: &tables,
            lock_micros: (locks.0 + locks.1) / 1_000,
            warnings: self.diagnostics.warning_count(),
            elapsed_micros: elapsed.max(0) as u64,
            last_insert_id: result.last_insert_id,
        };
        let mut told = EventSet::AFTER_STATEMENT;
        if is_slow {
            told = told | EventSet::AFTER_SLOW_STATEMENT;
        }
        if self.settings.statement_cost {
            told = told | EventSet::SESSION_COST;
        }
        if !steps.is_empty() && self.settings.profiling {
            told = told | EventSet::SESSION_STEPS;
        }
        self.with_event(&watch, |event| {
            self.server.hooks.tell(told, |observer| observer.after_statement(event, &end));
        });
    }

    /// Runs the first statement of a text under the eyes of observers.
    #[cold]
    pub(crate) fn run_one_watched(
        &mut self,
        text: &[u8],
        attributes: &[QueryAttribute],
        sink: &mut dyn ResultSink,
    ) -> Result<usize> {
        let watch = self.watch("Query", text, attributes, sink.bytes_written());
        watch.run(self, sink, |session, sink| session.run_one(text, sink))
    }

    /// Ends a statement that an observer refused.
    pub(crate) fn refuse_watched(&mut self, error: Error) -> Error {
        let _bounds = self.begin_statement();
        self.fail_statement(&error);
        error
    }

    fn with_connection_event(&self, body: impl FnOnce(&ConnectionEvent<'_>)) {
        let channel = match (&self.client.kind, &self.client.tls) {
            (ConnectionKind::Local, _) => "Socket",
            (ConnectionKind::Tcp(_), Some(_)) => "SSL/TLS",
            (ConnectionKind::Tcp(_), None) => "TCP/IP",
        };
        let session = self.session_facts(self.services.database.as_deref());
        let at_micros = self.server.now_micros();
        let counts = || self.shared.counts();
        body(&ConnectionEvent { session, channel, at_micros, counts: &counts });
    }

    /// Tells observers that the session is logged in.
    pub(crate) fn tell_connected(&mut self) {
        self.client.is_announced = true;
        if self.server.hooks.wants(EventSet::CONNECT) {
            self.with_connection_event(|event| {
                self.server.hooks.tell(EventSet::CONNECT, |observer| observer.connected(event));
            });
        }
    }

    /// Tells observers that the session ends, if they could know that it began.
    pub(crate) fn tell_disconnected(&self) {
        if self.client.is_announced && self.server.hooks.wants(EventSet::DISCONNECT) {
            self.with_connection_event(|event| {
                self.server
                    .hooks
                    .tell(EventSet::DISCONNECT, |observer| observer.disconnected(event));
            });
        }
    }
}

/// Runs `body`, which does what `statement` says and may change schemas or tables, under the eyes of observers.
#[cold]
pub(crate) fn watched(
    session: &mut Session,
    statement: &Statement,
    body: impl FnOnce(&mut Session) -> Result<()>,
) -> Result<()> {
    let schema = session.services.database.as_ref().map(|name| name.to_string());
    let changes = changes_of(statement, schema.as_deref());
    for change in &changes {
        let event = change.event(session.session_facts(schema.as_deref()));
        let ask = |observer: &dyn Observer| observer.before_schema_change(&event);
        session.server.hooks.ask(EventSet::BEFORE_SCHEMA_CHANGE, ask)?;
    }
    let result = body(session);
    for change in &changes {
        let event = change.event(session.session_facts(schema.as_deref()));
        let error = result.as_ref().err();
        let tell = |observer: &dyn Observer| observer.after_schema_change(&event, error);
        session.server.hooks.tell(EventSet::AFTER_SCHEMA_CHANGE, tell);
    }
    result
}

impl Session {
    /// Prepares the statement to tell of its rows, and to record them for the binary log.
    #[cold]
    pub(crate) fn watch_rows(&mut self) {
        let (registry, snapshot) = (self.server.registry(), self.snapshot());
        let order = self.transactions.home.changes.clone();
        let tells = self.server.hooks.tells_of_rows();
        let session = match tells || self.transactions.watcher.is_none() {
            true => Some(OwnedFacts::of(&self.session_facts(self.services.database.as_deref()))),
            false => None,
        };
        let records = recording::is_on(self);
        let watcher = self.transactions.watcher.get_or_insert_with(|| {
            let changes = Changes::new(session.clone().unwrap_or_default(), order);
            Box::new(RowWatcher::new(registry.clone(), snapshot.clone(), changes))
        });
        if let Some(session) = session {
            watcher.changes.session = session;
        }
        watcher.renew((registry.clone(), snapshot), records, tells);
        if records {
            recording::begin_statement(self);
        }
    }
}
