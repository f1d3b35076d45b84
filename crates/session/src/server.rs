//! State that all sessions share.

use std::sync::{Arc, Weak};
use std::time::Duration;

use ::accounts::{DEFAULT_METHOD, Logins, RootLogin, hash_password};
use catalog::{Account, AccountName, Catalog, Edit, MetadataLocks};
use engine_api::{CancelToken, Engine};
use errors::{ErrorCode, Result, bail, err};
use plugin_api::{Registry, SessionFactory};
use programs::{EventScheduler, schedule_events};
use statements::sequences::Sequences;
use sys::clock::Clock;
use sys::io_times::IoTimes;
use sys::threads::HelperLimit;
use types::{FixedOffset, Value, ZoneRules};

use crate::deadline::Deadlines;
use crate::follower::Follower;
use crate::plan_cache::PlanCache;
use crate::prepared_texts::PreparedTexts;
use crate::status::ServerCounters;
use observation::process::Sessions;
use observation::user_locks::UserLocks;
use observation::{ChangeOrder, Hooks};
use statements::live_plugins::{
    LivePlugins, PluginChoice, PluginHost, chosen, globals_with, show_variables,
};
use transactions::XaBranches;
use variables::{Globals, Origin, Provenance, SessionValues, Settings, VariableId};

/// The administrator of a first start.
#[derive(Clone, Debug)]
pub struct RootAccount {
    /// Number of the OS user that may log in as root through the UNIX socket.
    pub os_uid: Option<u32>,
    /// Password over TCP; `None` for an account without a password (`--insecure-root`).
    pub password: Option<String>,
}

/// The parts that a server is made from.
pub struct ServerConfig {
    /// Version string.
    pub version: String,
    /// The known plugins. Those that are loaded in it stay so unless `plugins` says otherwise.
    pub registry: Registry,
    /// Choices of the command line.
    pub plugins: Vec<PluginChoice>,
    /// Where files of plugins are, unless `plugin_dir` says otherwise.
    pub plugin_directory: String,
    /// Engine of the dictionary and of tables.
    pub default_engine: Arc<dyn Engine>,
    /// Engine of temporary tables.
    pub temporary_engine: Arc<dyn Engine>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Rules of the zone `SYSTEM`.
    pub system_zone: Arc<dyn ZoneRules>,
    /// Called by SHUTDOWN.
    pub shutdown: Box<dyn Fn() + Send + Sync>,
    /// Called by RESTART; `None` when nothing would start the server again.
    pub restart: Option<Box<dyn Fn() + Send + Sync>>,
    /// Values of variables that the machine decides: they are used where neither an option nor SET PERSIST gave one.
    pub defaults: Vec<(String, String)>,
    /// Variables set on the command line.
    pub options: Vec<(String, String)>,
    /// Created when no account exists yet.
    pub root: RootAccount,
    /// Every login over loopback as root succeeds without a password.
    pub insecure_root: bool,
    /// The process's counts of file operations.
    pub io_times: Arc<IoTimes>,
}

/// A running server: opens sessions.
pub struct Server {
    me: Weak<Server>,
    pub(crate) version: String,
    /// The plugins that are loaded now.
    pub(crate) plugins: LivePlugins,
    /// The plugins of the start, for their engines: those and their places never change.
    pub(crate) engines: Arc<Registry>,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) metadata_locks: Arc<MetadataLocks>,
    pub(crate) default_engine: Arc<dyn Engine>,
    pub(crate) temporary_engine: Arc<dyn Engine>,
    pub(crate) clock: Arc<dyn Clock>,
    system_zone: Arc<dyn ZoneRules>,
    shutdown: Box<dyn Fn() + Send + Sync>,
    restart: Option<Box<dyn Fn() + Send + Sync>>,
    pub(crate) globals: Globals,
    pub(crate) sessions: Sessions,
    /// Sessions that functions have opened so far.
    pub(crate) opened_by_functions: sys::sync::atomic::AtomicU64,
    pub(crate) counters: ServerCounters,
    pub(crate) user_locks: UserLocks,
    /// The values that are reserved.
    pub(crate) sequences: Sequences,
    pub(crate) xa_branches: Arc<XaBranches>,
    pub(crate) change_order: Arc<ChangeOrder>,
    /// Threads for all large scans, in addition to those of their sessions.
    pub(crate) scan_helpers: HelperLimit,
    /// What sorts, hash tables and kept rows of all statements may hold.
    pub(crate) memory: exec::MemoryBudget,
    pub(crate) logins: Logins,
    pub(crate) plan_cache: PlanCache,
    pub(crate) prepared_texts: PreparedTexts,
    /// Plans of prepared statements, in the part of `prepared_stmt_memory_limit` that the texts leave.
    pub(crate) prepared_plans: PlanCache,
    /// Keeps digests from being guessed.
    pub(crate) digest_seed: u64,
    pub(crate) deadlines: Arc<Deadlines>,
    pub(crate) events: Arc<EventScheduler>,
    pub(crate) follower: Follower,
    pub(crate) prepared_count: sys::sync::atomic::AtomicU64,
    pub(crate) started_micros: i64,
    pub(crate) io_times: Arc<IoTimes>,
    /// What plugins observe and restrict.
    pub(crate) hooks: Hooks,
}

/// Global variables that are passed to engines.
pub(crate) const ENGINE_OPTIONS: &[&str] = &[
    "commit_delay_us",
    "innodb_buffer_pool_size",
    "innodb_deadlock_detect",
    "log_archive_backlog_max_mb",
    "recovery_time_target_sec",
];

impl Server {
    /// Checks options of a start that has not made anything yet. The error is a sentence for who wrote them.
    ///
    /// # Errors
    /// No variable has the name, or it cannot have the value.
    pub fn check_options(registry: &Registry, options: &[(String, String)]) -> Result<(), String> {
        let globals = globals_with(registry);
        let given = Provenance::of(Origin::CommandLine);
        options.iter().try_for_each(|(name, value)| {
            let option = name.replace('_', "-");
            let set = globals.set_option(name, value, &given).map(|_| ());
            set.map_err(|error| match error.code() {
                ErrorCode::UNKNOWN_SYSTEM_VARIABLE => format!("unknown option '--{option}'"),
                _ => format!("option '--{option}={value}': {}", error.message()),
            })
        })
    }

    /// Opens the dictionary, creates the objects of a first start, applies options and persisted variables.
    ///
    /// # Errors
    /// A damaged dictionary, unknown options, I/O.
    pub fn open(config: ServerConfig) -> Result<Arc<Server>> {
        let globals = globals_with(&config.registry);
        let compiled = Provenance::of(Origin::Compiled);
        globals.set_option("version", &config.version, &compiled)?;
        globals.set_option("plugin_dir", &config.plugin_directory, &compiled)?;
        for (name, value) in &config.defaults {
            globals.set_option(name, value, &compiled)?;
        }
        let catalog = Arc::new(Catalog::open(config.default_engine.clone())?);
        statements::persisted::set_at_start(&globals, &catalog.snapshot(), &config.options)?;
        if catalog.has_restrictions() {
            // They hold whatever an option says.
            globals.set_option("partial_revokes", "ON", &compiled)?;
        }
        catalog.set_account_rules(::accounts::account_rules(|name| globals.text(name)));
        let plugin_dir = globals.text("plugin_dir");
        let registry = chosen(config.registry, &catalog.snapshot(), &config.plugins, &plugin_dir)?;
        let registry = Arc::new(registry);
        show_variables(&globals, &registry);
        let started_micros = micros(config.clock.wall());
        let root_login = match config.insecure_root {
            true => RootLogin::WithoutPassword,
            false => RootLogin::WithPassword,
        };
        let logins = Logins::new(&registry, root_login, config.root.os_uid);
        let deadlines = Arc::new(Deadlines::new(config.clock.clone()));
        let read_limit = globals.integer("table_definition_cache") as usize;
        catalog.with(|snapshot| snapshot.set_read_limit(read_limit));
        let plan_cache = PlanCache::new(globals.integer("plan_cache_size") as usize);
        let prepared_limit = globals.integer("prepared_stmt_memory_limit") as usize;
        let prepared_plans = PlanCache::new(prepared_limit / 2);
        let scan_helpers = match globals.integer("parallel_helpers_max") as usize {
            0 => sys::threads::sizes().helpers(),
            count => count,
        };
        let digest_seed = random_seed(started_micros);
        let metadata_locks = Arc::new(MetadataLocks::new());
        let xa_branches = Arc::new(XaBranches::take(&registry, &metadata_locks));
        let server = Arc::new_cyclic(|me| Server {
            me: me.clone(),
            version: config.version,
            plugins: LivePlugins::new(registry.clone()),
            engines: registry,
            catalog,
            metadata_locks,
            default_engine: config.default_engine,
            temporary_engine: config.temporary_engine,
            clock: config.clock,
            system_zone: config.system_zone,
            shutdown: config.shutdown,
            restart: config.restart,
            globals,
            sessions: Sessions::default(),
            opened_by_functions: sys::sync::atomic::AtomicU64::new(0),
            counters: ServerCounters::default(),
            user_locks: UserLocks::default(),
            sequences: Sequences::default(),
            xa_branches,
            change_order: Arc::default(),
            scan_helpers: HelperLimit::new(scan_helpers),
            memory: exec::MemoryBudget::default(),
            logins,
            plan_cache,
            prepared_texts: PreparedTexts::new(digest_seed),
            prepared_plans,
            digest_seed,
            deadlines,
            events: Arc::default(),
            follower: Follower::default(),
            prepared_count: sys::sync::atomic::AtomicU64::new(0),
            started_micros,
            io_times: config.io_times,
            hooks: Hooks::default(),
        });
        server.hooks.refresh(&server.registry());
        for name in ENGINE_OPTIONS {
            server.set_engine_option(name, server.global_integer(name));
        }
        server.divide_memory();
        if server.global_integer("lock_stats") == 1 {
            sys::lock_stats::set(true);
        }
        server.first_start(&config.root)?;
        Ok(server)
    }

    /// An engine's name as clients see it.
    pub(crate) fn shown_name<'e>(&self, engine: &'e dyn Engine) -> &'e str {
        match engine.name() == self.default_engine.name() {
            true => definitions::SHOWN_ENGINE,
            false => engine.name(),
        }
    }

    /// Writes the latest deadlock to the error log, with the statements of the sessions that are still in it, if that is enabled.
    pub(crate) fn log_deadlock(&self) {
        if self.global_integer("innodb_print_all_deadlocks") == 0 {
            return;
        }
        let engines = self.engines.engines().iter();
        let latest = engines.filter_map(|engine| engine.latest_deadlock());
        let Some(deadlock) = latest.max_by_key(|deadlock| deadlock.at_micros) else { return };
        let statement = |session| {
            let session = self.sessions.get(session)?;
            let activity = session.activity.lock();
            let text = String::from_utf8_lossy(&activity.info).into_owned();
            (!text.is_empty()).then_some(text)
        };
        tracing::warn!("a deadlock\n{}", deadlock.to_text(statement));
    }

    /// Passes a global variable on to the engines.
    pub(crate) fn set_engine_option(&self, name: &str, value: u64) {
        self.engines.engines().iter().for_each(|engine| engine.set_option(name, value));
    }

    /// Gives statements what `memory_limit` leaves beside the buffer pool.
    pub(crate) fn divide_memory(&self) {
        let of_machine = || sys::process::memory_limit_bytes().unwrap_or(u64::MAX);
        let total = match self.global_integer("memory_limit") {
            0 => of_machine(),
            bytes => bytes,
        };
        let pool = self.global_integer("innodb_buffer_pool_size");
        let bytes = variables::statement_memory_bytes(total, pool);
        self.memory.set_limit(usize::try_from(bytes).unwrap_or(usize::MAX));
        let limit = |name| usize::try_from(self.global_integer(name)).unwrap_or(usize::MAX);
        self.memory.counted().set_limits(exec::CountedLimits {
            all: limit("global_connection_memory_limit"),
            watched: limit("global_connection_memory_status_limit"),
            watched_of_one: limit("connection_memory_status_limit"),
        });
    }

    /// Creates the accounts and schemas of a new data directory.
    fn first_start(&self, root: &RootAccount) -> Result<()> {
        let snapshot = self.catalog.snapshot();
        if !snapshot.accounts().is_empty() {
            return Ok(());
        }
        let mut edits = Vec::new();
        let administrator = |host: &str| {
            let name = AccountName::new("root", host);
            Account { name, password_changed_micros: self.started_micros, ..Account::default() }
                .with_all_privileges()
        };
        let secret = match &root.password {
            Some(password) => hash_password(&self.registry(), DEFAULT_METHOD, password)?,
            None => Vec::new(),
        };
        edits.push(Edit::PutAccount(Account {
            plugin: DEFAULT_METHOD.into(),
            authentication_string: secret,
            ..administrator("localhost")
        }));
        self.catalog.commit_alone(&edits, &CancelToken::new())?;
        Ok(())
    }

    /// Whether this is the very first start of the data directory with `engine`.
    pub fn is_first_start(engine: &dyn Engine) -> bool {
        !engine.has_table(engine_api::TableId::DICTIONARY)
    }

    /// Microseconds since 1970 UTC.
    pub(crate) fn now_micros(&self) -> i64 {
        micros(self.clock.wall())
    }

    /// The same, at most a few milliseconds old.
    pub(crate) fn now_micros_coarse(&self) -> i64 {
        micros(self.clock.wall_coarse())
    }

    /// Rules of a zone: `SYSTEM`, an offset, a name.
    pub(crate) fn zone(&self, name: &str) -> Option<Arc<dyn ZoneRules>> {
        if name.eq_ignore_ascii_case("SYSTEM") {
            return Some(self.system_zone.clone());
        }
        if let Some(offset) = FixedOffset::parse(name) {
            return Some(Arc::new(offset));
        }
        self.registry().time_zone(name)
    }

    /// A session's variables, decoded.
    pub(crate) fn settings(&self, values: &SessionValues) -> Settings {
        Settings::decode(&self.globals, values, &|name| self.zone(name), &self.io_times)
    }

    /// A global value, those that are facts of the running server included.
    pub(crate) fn global_value(&self, id: VariableId) -> Value {
        if self.hooks.logs_commits()
            && let Some(value) = self.value_of_binary_log(id)
        {
            return value;
        }
        self.globals.get(id)
    }

    /// A global value that the binary log knows.
    #[cold]
    fn value_of_binary_log(&self, id: VariableId) -> Option<Value> {
        let name = self.globals.definitions.get(id).name;
        if !matches!(name, "gtid_executed" | "gtid_purged") {
            return None;
        }
        let status = self.registry().binary_log()?.status().ok()?;
        let set = if name == "gtid_executed" { status.executed } else { status.purged };
        Some(Value::text(&set))
    }

    /// The known plugins, and what those contribute that are loaded now.
    pub fn registry(&self) -> Arc<Registry> {
        self.plugins.current()
    }

    /// The value that a variable has because an earlier run kept it.
    pub fn kept_value(&self, name: &str) -> Option<Value> {
        let id = self.globals.definitions.find_known(name)?;
        let is_kept = self.globals.provenance(id).origin == Origin::Persisted;
        is_kept.then(|| self.globals.get(id))
    }

    /// From now on `host` starts and stops what plugins run.
    pub fn run_plugins_by(&self, host: &Arc<dyn PluginHost>) {
        self.plugins.run_by(host);
    }

    /// Records a fact found at start: the port in use, the host's name. Where the setting behind it came from stays.
    ///
    /// # Errors
    /// 1193, 1231.
    pub fn set_fact(&self, name: &str, value: &str) -> Result<()> {
        let known = self.globals.definitions.find_known(name);
        let id = known.ok_or_else(|| err!(UNKNOWN_SYSTEM_VARIABLE, name))?;
        self.globals.set_option(name, value, &self.globals.provenance(id)).map(|_| ())
    }

    /// RESTART.
    ///
    /// # Errors
    /// 3707 when nothing would start the server again.
    pub(crate) fn request_restart(&self) -> Result<()> {
        let Some(restart) = &self.restart else {
            bail!(RESTART_SERVER_FAILED, "mysqld is not managed by supervisor process")
        };
        restart();
        Ok(())
    }

    /// SHUTDOWN.
    pub(crate) fn request_shutdown(&self) {
        (self.shutdown)();
    }

    /// Starts the event scheduler; it does nothing while `event_scheduler` is not ON.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn start_events(&self) -> Result<()> {
        schedule_events(self.events.clone(), self.arc()?)
    }

    /// Stops background threads; all sessions must be closed.
    pub fn close(&self) {
        self.events.stop();
        self.follower.stop();
        self.stop_function_sessions();
        self.deadlines.stop();
    }

    pub(crate) fn arc(&self) -> Result<Arc<Server>> {
        self.me.upgrade().ok_or_else(|| err!(SERVER_SHUTDOWN))
    }
}

fn random_seed(fallback: i64) -> u64 {
    let mut noise = [0; 8];
    match sys::entropy::fill(&mut noise) {
        Ok(()) => u64::from_le_bytes(noise),
        Err(_) => stdx::mix(fallback as u64),
    }
}

fn micros(since_1970: Duration) -> i64 {
    i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX)
}
