//! A connection's state between statements, and the commands that a protocol sends it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::accounts::{AccountLimits, PrivilegeChecks, Resource, has_expired_password, hosts_of};
use catalog::{
    AccountName, CatalogSnapshot, CatalogView, EffectivePrivileges, PrivilegeSet, Table,
};
use errors::{Diagnostics, Result, bail, err};
use exec::ExecScratch;
use plugin_api::{
    AuthRequest, ConnectInfo, ConnectionKind, EventSet, Observer, OkInfo, StateChange,
};
use programs::ProgramState;
use types::Value;

use crate::lifted::LiftedLiterals;
use crate::places::{LogIn, check_place};
use crate::plan_cache::{FrontCache, PlanContext};
use crate::planned::Planned;
use crate::prepared::PreparedStatements;
use crate::profiled::Profiled;
use crate::server::Server;
use crate::services::Services;
use crate::status::SessionCounters;
use observation::Phases;
use observation::process::{Activity, SessionShared, kept_attributes};
use statements::handlers::Handlers;
use statements::locked_tables::LockedTables;
use statements::statement_state::{LocalClock, StatementState};
use transactions::TransactionReport;
use transactions::{TransactionHome, Transactions};
use variables::{SessionValues, Settings, TransactionTracking};

/// Temporary tables by schema and name.
pub(crate) type TemporaryTables = Arc<BTreeMap<(Arc<str>, Arc<str>), Arc<Table>>>;

/// The client's data about itself.
#[derive(Clone, Debug)]
pub(crate) struct ClientInfo {
    pub(crate) kind: ConnectionKind,
    /// Came through the administrative address.
    pub(crate) is_administrative: bool,
    pub(crate) found_rows: bool,
    pub(crate) multi_statements: bool,
    pub(crate) ignore_space: bool,
    pub(crate) local_files: bool,
    pub(crate) expired_passwords: bool,
    pub(crate) interactive: bool,
    /// Observers could learn that it logged in.
    pub(crate) is_announced: bool,
    pub(crate) tls: Option<(String, String)>,
    pub(crate) collation: u16,
    /// Results are described with the collation of the handshake until `character_set_results` is set.
    pub(crate) results_collation: Option<u16>,
}

impl ClientInfo {
    fn new(info: &ConnectInfo, request: &AuthRequest) -> ClientInfo {
        ClientInfo {
            kind: info.kind.clone(),
            is_administrative: info.is_administrative,
            found_rows: request.found_rows,
            multi_statements: request.multi_statements,
            ignore_space: request.ignore_space,
            local_files: request.local_files,
            expired_passwords: request.expired_passwords,
            interactive: request.interactive,
            is_announced: false,
            tls: request.tls.clone(),
            collation: request.collation,
            results_collation: None,
        }
    }
}

/// A session.
pub(crate) struct Session {
    pub(crate) server: Arc<Server>,
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) client: ClientInfo,
    /// The session whose statement opened this one.
    pub(crate) opened_by: Option<u64>,
    pub(crate) account: AccountName,
    pub(crate) active_roles: Vec<AccountName>,
    /// It repeats what another server did: triggers have fired there, their changes come too.
    pub(crate) is_applier: bool,
    /// What the last description of a format in a BINLOG statement said.
    pub(crate) events_have_checksums: Option<bool>,
    /// Limits of its account: by the hour, or until it has a new password.
    pub(crate) limits: AccountLimits,
    pub(crate) privileges: Arc<EffectivePrivileges>,
    pub(crate) settings: Settings,
    pub(crate) services: Services,
    /// Conditions of the last statement.
    pub(crate) diagnostics: Diagnostics,
    /// Conditions of the running statement.
    pub(crate) working: Diagnostics,
    pub(crate) transactions: Transactions,
    pub(crate) temporary: TemporaryTables,
    pub(crate) locked: LockedTables,
    pub(crate) handlers: Handlers,
    pub(crate) prepared: PreparedStatements,
    pub(crate) front_cache: FrontCache,
    pub(crate) normalizer: syntax::Normalizer,
    pub(crate) lifted: LiftedLiterals,
    pub(crate) scratch: ExecScratch,
    pub(crate) statement: StatementState,
    pub(crate) phases: Phases,
    /// The running statement is profiled.
    pub(crate) profile: Option<Box<Profiled>>,
    /// Stored programs: those that run, and those that were loaded.
    pub(crate) programs: ProgramState<Arc<Planned>, PlanContext>,
}

impl Session {
    /// Opens a session for a login that was accepted.
    ///
    /// # Errors
    /// As `SessionFactory::open`.
    pub(crate) fn open(
        server: Arc<Server>,
        info: ConnectInfo,
        request: &AuthRequest,
    ) -> Result<Session> {
        let mut session = Session::new(server, info, request);
        session.log_in(request, LogIn::New)?;
        session.tell_connected();
        Ok(session)
    }

    /// A session before its log-in.
    pub(crate) fn new(server: Arc<Server>, info: ConnectInfo, request: &AuthRequest) -> Session {
        let shared = Arc::new(SessionShared {
            id: info.connection_id,
            opened_micros: server.now_micros(),
            cancel: info.cancel.clone(),
            counters: SessionCounters::default(),
            traffic: info.traffic.clone(),
            memory: exec::ConnectionMemory::default(),
            group: Default::default(),
            activity: sys::sync::Mutex::new(Activity::default()),
        });
        let client = ClientInfo::new(&info, request);
        let values = Arc::new(SessionValues::new(&server.globals));
        let settings = server.settings(&values);
        let slot = server.metadata_locks.register(info.connection_id);
        let services = Services {
            server: server.clone(),
            shared: shared.clone(),
            values,
            user_variables: Default::default(),
            sequences: Default::default(),
            traces: Default::default(),
            attributes: Vec::new(),
            database: None,
            user: String::new(),
            current_user: String::new(),
            current_role: "NONE".into(),
            last_insert_id: 0,
            last_insert_id_set: false,
            row_count: -1,
            found_rows: 0,
            seeds: seeds(info.connection_id),
            seeds_given: false,
            insert_id: None,
            fixed_now_micros: None,
            warning_count: 0,
            error_count: 0,
            statement_number: 0,
            may_read_files: false,
            accounts: Arc::default(),
            privileges: Arc::default(),
        };
        let home = TransactionHome {
            registry: server.engines.clone(),
            locks: server.metadata_locks.clone(),
            branches: server.xa_branches.clone(),
            session: shared.clone(),
            changes: server.change_order.clone(),
            catalog: server.catalog.clone(),
        };
        let transactions = Transactions::new(home, slot);
        let session = Session {
            shared: shared.clone(),
            client,
            opened_by: None,
            is_applier: false,
            events_have_checksums: None,
            account: AccountName::default(),
            active_roles: Vec::new(),
            limits: AccountLimits::default(),
            privileges: Arc::default(),
            settings,
            services,
            diagnostics: Diagnostics::default(),
            working: Diagnostics::default(),
            transactions,
            temporary: TemporaryTables::default(),
            locked: LockedTables::default(),
            handlers: Handlers::default(),
            prepared: PreparedStatements::default(),
            front_cache: FrontCache::default(),
            normalizer: syntax::Normalizer::new(server.digest_seed),
            lifted: LiftedLiterals::default(),
            scratch: ExecScratch::default(),
            statement: StatementState::new(server.now_micros()),
            phases: Phases::default(),
            profile: None,
            programs: ProgramState::default(),
            server: server.clone(),
        };
        // From here on `Drop` releases the session's resources.
        server.sessions.add(shared);
        session
    }

    /// Applies account, schema and character set of a login.
    pub(crate) fn log_in(&mut self, request: &AuthRequest, log_in: LogIn) -> Result<()> {
        let (server, now_micros) = (self.server.clone(), self.server.now_micros());
        let snapshot = server.catalog.snapshot();
        let kind = &self.client.kind;
        let account = server.logins.account(snapshot.accounts(), request, kind, now_micros)?;
        let lifetime = server.globals.integer("default_password_lifetime");
        let is_expired = has_expired_password(&account, lifetime, now_micros);
        let disconnects = self.server.globals.integer("disconnect_on_expired_password") == 1;
        if is_expired && disconnects && !self.client.expired_passwords {
            bail!(MUST_CHANGE_PASSWORD_LOGIN);
        }
        self.limits.must_change_password = is_expired;
        let name = account.name.to_string();
        if !self.client.is_administrative {
            self.server.check_connections_of(&account.name, account.limits[3])?;
        }
        self.limits.quota = self.server.logins.usages.quota(&account);
        self.limits.count_use(Resource::Connections, || self.server.now_micros())?;
        self.account = account.name.clone();
        let all_roles = self.server.globals.integer("activate_all_roles_on_login") == 1;
        self.active_roles = snapshot.accounts().roles_at_login(&account, all_roles);
        let (hosts, is_local) = hosts_of(&self.client.kind);
        let host = hosts.last().cloned().unwrap_or_default();
        self.services.user = format!("{}@{host}", request.user);
        self.services.current_user = name.clone();
        self.refresh_privileges();
        self.describe_roles();
        let shown_host = match (&self.client.kind, is_local) {
            (ConnectionKind::Tcp(address), false) => format!("{host}:{}", address.port()),
            _ => host,
        };
        {
            let mut activity = self.shared.activity.lock();
            activity.user = request.user.clone();
            activity.host = shown_host;
            activity.account = name;
            activity.attributes = kept_attributes(&request.attributes);
            activity.tls = request.tls.clone();
            activity.command = "Sleep";
            activity.since_micros = self.server.now_micros();
        }
        self.check_online()?;
        check_place(self, log_in)?;
        self.set_client_collation(request.collation);
        if self.client.interactive {
            let value = self.value("interactive_timeout");
            self.store_session("wait_timeout", value);
        }
        self.refresh_settings();
        if let Some(database) = request.database.as_deref().filter(|name| !name.is_empty()) {
            self.use_schema(database)?;
            self.statement.changes.clear();
            self.statement.state_changed = false;
        }
        self.run_init_connect()
    }

    /// `init_connect`, for accounts without administrative rights.
    fn run_init_connect(&mut self) -> Result<()> {
        let text = self.server.globals.text("init_connect");
        if text.is_empty()
            || self.limits.must_change_password
            || self.privileges.has_dynamic("CONNECTION_ADMIN")
        {
            return Ok(());
        }
        let mut sink = statements::sink::DiscardSink::default();
        self.run_text(text.as_bytes(), &[], &mut sink)?;
        match sink.error {
            // A broken init_connect refuses the connection, as the reference does.
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The catalog as statements see it now.
    pub(crate) fn view(&self) -> CatalogView {
        CatalogView { snapshot: self.snapshot(), temporary: self.temporary.clone() }
    }

    /// The stored objects of the catalog as statements see them now: with the changes of the open transaction.
    pub(crate) fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.transactions.snapshot()
    }

    /// Whether a plan is of the present definitions.
    #[inline]
    pub(crate) fn is_current(&self, planned: &Planned) -> bool {
        match self.transactions.definitions {
            None => self.server.catalog.with(|snapshot| planned.is_current(snapshot)),
            Some(_) => planned.is_current(&self.snapshot()),
        }
    }

    /// The current schema.
    ///
    /// # Errors
    /// 1046.
    pub(crate) fn current_schema(&self) -> Result<Arc<str>> {
        self.services.database.clone().ok_or_else(|| err!(NO_DB_ERROR))
    }

    /// Computes `privileges` from the present accounts and roles.
    pub(crate) fn refresh_privileges(&mut self) {
        let snapshot = self.server.catalog.snapshot();
        let accounts = snapshot.accounts();
        let is_root = accounts.get(&self.account).is_none() && &*self.account.user == "root";
        let effective = if is_root || self.is_applier {
            // `--insecure-root` without an account of that name, or the server itself.
            EffectivePrivileges::everything()
        } else if self.active_roles.is_empty() {
            accounts.effective(&self.account, &[])
        } else {
            // A role that was revoked counts no longer, though it stays active.
            let account = accounts.get(&self.account);
            let granted = account.map(|account| accounts.roles_of(account)).unwrap_or_default();
            let mut roles = self.active_roles.clone();
            roles.retain(|role| granted.contains(role));
            accounts.effective(&self.account, &roles)
        };
        self.services.may_read_files = effective.global().contains(PrivilegeSet::FILE);
        self.privileges = Arc::new(effective);
        self.services.privileges = self.privileges.clone();
        self.services.accounts = accounts.clone();
    }

    /// Refreshes privileges when an account changed since.
    pub(crate) fn check_privileges_current(&mut self) {
        let known = &self.services.accounts;
        let stale = self.server.catalog.with(|snapshot| !Arc::ptr_eq(snapshot.accounts(), known));
        if stale {
            self.refresh_privileges();
        }
    }

    pub(crate) fn describe_roles(&mut self) {
        self.services.current_role = if self.active_roles.is_empty() {
            "NONE".into()
        } else {
            let names: Vec<String> = self
                .active_roles
                .iter()
                .map(|role| format!("`{}`@`{}`", role.user, role.host))
                .collect();
            names.join(",")
        };
    }

    /// Decodes the variables again after a change.
    pub(crate) fn refresh_settings(&mut self) {
        let server = self.server.clone();
        self.settings = server.settings(&self.services.values);
        self.shared.memory.set_limits(exec::ConnectionLimits {
            bytes: self.settings.connection_memory_limit,
            chunk: self.settings.connection_memory_chunk,
            is_counted: self.settings.counts_memory,
            is_exempt: self.privileges.has_dynamic("CONNECTION_ADMIN"),
        });
        self.transactions.set_row_lock_timeout(self.settings.row_lock_timeout);
        self.statement.local_clock = LocalClock::default();
    }

    /// A session variable's value.
    pub(crate) fn value(&self, name: &str) -> Value {
        self.services.variable(name, false).unwrap_or(Value::Null)
    }

    /// Stores a session variable without checks.
    pub(crate) fn store_session(&mut self, name: &str, value: Value) {
        if name == "character_set_results" {
            self.client.results_collation = None;
        }
        if let Some(id) = self.server.globals.definitions.find(name) {
            Arc::make_mut(&mut self.services.values).set(id, value);
        }
    }

    /// The character set of the handshake.
    pub(crate) fn set_client_collation(&mut self, id: u16) {
        let collation = charset::collation(types::CollationId(id))
            .filter(|collation| collation.charset.min_length() == 1)
            .unwrap_or_else(|| {
                charset::collation_or_binary(types::CollationId::UTF8MB4_0900_AI_CI)
            });
        let charset = Value::text(collation.charset.name);
        self.store_session("character_set_client", charset.clone());
        self.store_session("character_set_results", charset.clone());
        self.store_session("character_set_connection", charset);
        self.store_session("collation_connection", Value::text(collation.name));
        self.client.results_collation = Some(collation.id.0);
    }

    /// USE.
    ///
    /// # Errors
    /// 1049, 1044.
    pub(crate) fn use_schema(&mut self, name: &str) -> Result<()> {
        let known = enterable_schema(self, name)?;
        let snapshot = self.snapshot();
        let collation = snapshot.schema(&known).map_or_else(
            || charset::collation_or_binary(types::CollationId::UTF8MB3_GENERAL_CI),
            |schema| charset::collation_or_binary(schema.options.collation),
        );
        self.set_database(Some(known.clone()), collation);
        if self.settings.track_schema {
            self.statement.changes.push(StateChange::Schema(known.to_string()));
        }
        self.statement.state_changed = true;
        Ok(())
    }

    /// The current schema and the variables that follow it.
    pub(crate) fn set_database(
        &mut self,
        name: Option<Arc<str>>,
        collation: &'static charset::Collation,
    ) {
        // A separate reference count, because statements use it: that of the catalog's name would be written by all sessions.
        let name: Option<Arc<str>> = name.map(|name| Arc::from(&*name));
        self.shared.activity.lock().database = name.clone();
        self.services.database = name;
        self.store_session("character_set_database", Value::text(collation.charset.name));
        self.store_session("collation_database", Value::text(collation.name));
    }

    /// Flags that go with every end of result.
    pub(crate) fn state_info(&mut self) -> OkInfo {
        if std::mem::take(&mut self.statement.state_changed) && self.settings.track_state {
            self.statement.changes.push(StateChange::State);
        }
        let tracking = self.settings.track_transaction;
        // A statement of a program has no reply of its own.
        if tracking != TransactionTracking::Off && self.programs.frame().is_none() {
            let locks_tables = self.locked.is_in_force();
            let situation = self.transactions.situation(&self.settings, locks_tables);
            let told = self.transactions.report.changes(tracking, situation);
            self.statement.changes.extend(told);
        }
        OkInfo {
            warnings: self.working.warning_count_on_wire(),
            more_results: self.statement.more_results,
            changes: std::mem::take(&mut self.statement.changes),
            ..self.flags()
        }
    }

    pub(crate) fn flags(&self) -> OkInfo {
        OkInfo {
            in_transaction: self.transactions.explicit || self.transactions.is_started(),
            autocommit: self.settings.autocommit,
            no_backslash_escapes: self
                .settings
                .sql_mode
                .contains(types::SqlMode::NO_BACKSLASH_ESCAPES),
            ..OkInfo::default()
        }
    }

    /// Restores the state after login: COM_RESET_CONNECTION, COM_CHANGE_USER.
    pub(crate) fn reset(&mut self) -> Result<()> {
        let rolled_back = self.transactions.rollback();
        self.transactions.leave_branch();
        self.transactions.slot.release_to(0);
        self.locked = LockedTables::default();
        self.handlers.retain(&self.shared.memory, &self.server.memory, |_| false);
        self.server.user_locks.release_all(self.shared.id);
        drop_temporary_tables(&self.server, &mut self.temporary);
        self.prepared.clear(&self.server);
        self.services.user_variables.clear();
        self.services.sequences = Default::default();
        self.services.values = Arc::new(SessionValues::new(&self.server.globals));
        self.services.last_insert_id = 0;
        self.services.insert_id = None;
        self.services.fixed_now_micros = None;
        if std::mem::take(&mut self.services.seeds_given) {
            self.services.seeds = seeds(self.shared.id);
        }
        self.services.found_rows = 0;
        self.services.row_count = -1;
        self.transactions.next = None;
        self.diagnostics = Diagnostics::default();
        self.working = Diagnostics::default();
        self.statement.changes.clear();
        self.statement.state_changed = false;
        self.transactions.report = TransactionReport::default();
        self.set_client_collation(self.client.collation);
        if let Some(database) = self.services.database.clone() {
            // Restores the variables that follow the schema; it may have been dropped by now.
            let _ = self.use_schema(&database);
            self.statement.changes.clear();
            self.statement.state_changed = false;
        }
        self.refresh_settings();
        if self.server.hooks.wants(EventSet::SESSION_VARIABLE) {
            let connection = self.shared.id;
            let tell = |observer: &dyn Observer| observer.variables_reset(connection);
            self.server.hooks.tell(EventSet::SESSION_VARIABLE, tell);
        }
        rolled_back
    }
}

/// Drops all temporary tables of the session.
fn drop_temporary_tables(server: &Server, temporary: &mut TemporaryTables) {
    if temporary.is_empty() {
        return;
    }
    let tables = std::mem::take(temporary);
    let mut txn = server.temporary_engine.new_transaction();
    let options = engine_api::TxnOptions {
        isolation: engine_api::IsolationLevel::ReadCommitted,
        read_only: false,
        may_be_prepared: false,
        lock_wait_timeout: std::time::Duration::ZERO,
        cancel: engine_api::CancelToken::new(),
    };
    if txn.start(&options).is_ok() {
        for table in tables.values() {
            // No other session can see the table; a failure leaks it until the server stops.
            let _ = txn.drop_table(table.id);
        }
        let _ = txn.commit();
    }
}

/// Seeds of RAND() from the connection id and the machine's entropy.
fn seeds(id: u64) -> (u32, u32) {
    let mut noise = [0; 8];
    // Without entropy the id alone decides.
    let _ = sys::entropy::fill(&mut noise);
    let number = stdx::mix(u64::from_le_bytes(noise) ^ id);
    ((number as u32) % 0x3FFF_FFFF, ((number >> 32) as u32) % 0x3FFF_FFFF)
}

impl PrivilegeChecks for Session {
    fn account(&self) -> &AccountName {
        &self.account
    }

    fn privileges(&self) -> &EffectivePrivileges {
        &self.privileges
    }

    fn client_host(&self) -> Option<&str> {
        self.services.user.rsplit_once('@').map(|(_, host)| host)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.tell_disconnected();
        // The connection is closed: no client can be informed of a failed rollback.
        let _ = self.transactions.rollback();
        self.handlers.retain(&self.shared.memory, &self.server.memory, |_| false);
        self.prepared.clear(&self.server);
        drop_temporary_tables(&self.server, &mut self.temporary);
        self.server.user_locks.release_all(self.shared.id);
        self.server.metadata_locks.unregister(&self.transactions.slot);
        self.server.sessions.remove(self.shared.id);
    }
}

/// The schema of this name, if the account may make it the current one.
///
/// # Errors
/// 1049, 1044.
pub(crate) fn enterable_schema(session: &mut Session, name: &str) -> Result<Arc<str>> {
    let snapshot = session.snapshot();
    let known: Arc<str> = match snapshot.schema(name) {
        Some(schema) => schema.name.clone(),
        None => match catalog::system_schema(name) {
            Some(system) => system.into(),
            // An account that may not see schemas does not learn which exist.
            None if !session.privileges.sees_schema(name) => {
                bail!(DBACCESS_DENIED_ERROR, session.account.user, session.account.host, name)
            }
            None => bail!(BAD_DB_ERROR, name),
        },
    };
    session.check_privileges_current();
    session.check_schema_allowed(&known)?;
    let is_open = catalog::system_schema(&known)
        .is_some_and(|system| !matches!(system, "mysql" | "ndbinfo" | "sys"));
    if !is_open && !session.privileges.enters_schema(&known) {
        bail!(DBACCESS_DENIED_ERROR, session.account.user, session.account.host, name);
    }
    Ok(known)
}
