//! The session's services to functions, and the session's values that they read and change.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Accounts, EffectivePrivileges};
use engine_api::Wait;
use errors::Result;
use exec::Outcome;
use hashbrown::HashMap;
use plugin_api::{OptimizerTraceView, QueryAttribute, SequenceCall, SequenceName, SessionServices};
use statements::optimizer_traces::{OptimizerTraces, TraceWindow};
use statements::sequences::UsedSequences;
use types::geometry::KnownSystem;
use types::{DataType, Value, ZoneRules};

use crate::planned::PlannedKind;
use crate::sequences::use_sequence;
use crate::server::Server;
use observation::process::SessionShared;
use variables::allowed_path;
use variables::{SessionValues, Source};

/// How often a sleeping statement checks whether it was cancelled.
const SLEEP_STEP: Duration = Duration::from_millis(50);

/// Session values that functions use.
pub(crate) struct Services {
    pub(crate) server: Arc<Server>,
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) values: Arc<SessionValues>,
    pub(crate) user_variables: HashMap<Box<str>, (Value, DataType)>,
    pub(crate) database: Option<Arc<str>>,
    /// `USER()`.
    pub(crate) user: String,
    /// `CURRENT_USER()`.
    pub(crate) current_user: String,
    /// `CURRENT_ROLE()`.
    pub(crate) current_role: String,
    /// Those of `privileges`.
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) last_insert_id: u64,
    /// LAST_INSERT_ID(expr) was called in this statement: the OK packet carries the value.
    pub(crate) last_insert_id_set: bool,
    pub(crate) row_count: i64,
    pub(crate) found_rows: u64,
    pub(crate) seeds: (u32, u32),
    /// SET gave the seeds: a later client may not meet the same numbers.
    pub(crate) seeds_given: bool,
    pub(crate) insert_id: Option<u64>,
    /// SET timestamp, microseconds since 1970 UTC.
    pub(crate) fixed_now_micros: Option<i64>,
    /// Of the previous statement.
    pub(crate) warning_count: u32,
    pub(crate) error_count: u32,
    pub(crate) statement_number: u64,
    /// The account holds FILE.
    pub(crate) may_read_files: bool,
    pub(crate) privileges: Arc<EffectivePrivileges>,
    pub(crate) sequences: UsedSequences,
    pub(crate) traces: OptimizerTraces,
    /// What the client sent with the statement.
    pub(crate) attributes: Vec<QueryAttribute>,
}

impl Services {
    /// Takes over the attributes of a command; most have none.
    #[inline]
    pub(crate) fn note_attributes(&mut self, attributes: &[QueryAttribute]) {
        if !attributes.is_empty() || !self.attributes.is_empty() {
            self.attributes = attributes.to_vec();
        }
    }

    /// The text of a session variable.
    pub(crate) fn text(&self, name: &str) -> String {
        let id = self.server.globals.definitions.find(name);
        id.map_or_else(String::new, |id| variables::as_text(self.values.get(id)))
    }

    /// Which traces of the optimizer the session keeps.
    pub(crate) fn trace_window(&self) -> TraceWindow {
        let number = |name: &str| self.text(name).parse::<i64>().unwrap_or_default();
        let size = |name: &str| usize::try_from(number(name)).unwrap_or_default();
        TraceWindow {
            offset: number("optimizer_trace_offset"),
            limit: size("optimizer_trace_limit"),
            bytes_max: size("optimizer_trace_max_mem_size"),
        }
    }

    /// Stores the values that later statements may read: ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(). Returns the affected rows.
    pub(crate) fn note_outcome(
        &mut self,
        kind: PlannedKind,
        outcome: &Outcome,
        client_found_rows: bool,
    ) -> u64 {
        let affected = match kind {
            PlannedKind::Update if client_found_rows => outcome.matched,
            PlannedKind::Query
            | PlannedKind::Insert
            | PlannedKind::Update
            | PlannedKind::Delete
            | PlannedKind::Do => outcome.affected,
        };
        self.row_count = match kind {
            PlannedKind::Query => -1,
            PlannedKind::Do => 0,
            PlannedKind::Insert | PlannedKind::Update | PlannedKind::Delete => affected as i64,
        };
        if kind == PlannedKind::Query {
            self.found_rows = outcome.found_rows;
        }
        if let Some(generated) = outcome.generated_id {
            self.last_insert_id = generated;
        }
        if kind == PlannedKind::Insert {
            self.insert_id = None;
        }
        affected
    }

    /// A substitute while a statement that runs programs has the session's own.
    pub(crate) fn stand_in(&self) -> Services {
        Services {
            server: self.server.clone(),
            shared: self.shared.clone(),
            values: self.values.clone(),
            user_variables: HashMap::new(),
            database: None,
            user: String::new(),
            current_user: String::new(),
            current_role: String::new(),
            accounts: self.accounts.clone(),
            privileges: self.privileges.clone(),
            sequences: UsedSequences::default(),
            traces: OptimizerTraces::default(),
            attributes: Vec::new(),
            ..*self
        }
    }

    /// The value of a system variable: of the session when it has one, else (or when `global`) the global one.
    pub(crate) fn variable(&self, name: &str, global: bool) -> Option<Value> {
        let globals = &self.server.globals;
        let Some(id) = globals.definitions.find(name) else { return globals.key_caches.get(name) };
        let definition = globals.definitions.get(id);
        if definition.source == Source::Computed {
            return Some(self.computed(definition.name, global));
        }
        Some(if global || definition.scope == variables::Scope::Global {
            self.server.global_value(id)
        } else {
            self.values.get(id).clone()
        })
    }

    fn computed(&self, name: &str, global: bool) -> Value {
        match name {
            "tx_isolation" => self.variable("transaction_isolation", global).unwrap_or(Value::Null),
            "tx_read_only" => self.variable("transaction_read_only", global).unwrap_or(Value::Null),
            "last_insert_id" | "identity" => Value::UInt(self.last_insert_id),
            "insert_id" => Value::UInt(self.insert_id.unwrap_or(0)),
            "warning_count" => Value::UInt(u64::from(self.warning_count)),
            "error_count" => Value::UInt(u64::from(self.error_count)),
            "pseudo_thread_id" => Value::UInt(self.shared.id),
            "statement_id" => Value::UInt(self.statement_number),
            "timestamp" => {
                let micros = self.fixed_now_micros.unwrap_or_else(|| self.server.now_micros());
                Value::Double(micros as f64 / 1e6)
            }
            // The seeds are not readable, as in the reference.
            _ => Value::UInt(0),
        }
    }

    /// The next value of RAND() from its two seeds, as the reference computes it.
    fn next_random(&mut self) -> f64 {
        const LIMIT: u64 = 0x3FFF_FFFF;
        let (one, two) = (u64::from(self.seeds.0), u64::from(self.seeds.1));
        let one = (one * 3 + two) % LIMIT;
        let two = (one + two + 33) % LIMIT;
        self.seeds = (one as u32, two as u32);
        one as f64 / LIMIT as f64
    }
}

impl SessionServices for Services {
    fn connection_id(&self) -> u64 {
        self.shared.id
    }

    fn user(&self) -> String {
        self.user.clone()
    }

    fn current_user(&self) -> String {
        self.current_user.clone()
    }

    fn current_role(&self) -> String {
        self.current_role.clone()
    }

    fn role_grants(&self) -> Vec<(String, String, bool)> {
        describe::all_role_grants(&self.accounts)
    }

    fn load_file(&self, name: &str, bytes_max: u64) -> Option<Vec<u8>> {
        if !self.may_read_files {
            return None;
        }
        let path = allowed_path(&self.server.globals, name)?;
        let about = sys::files::about(&path)?;
        // Devices and pipes could block or never end.
        if !about.is_file || about.size_bytes > bytes_max {
            return None;
        }
        sys::files::read(&path).ok()
    }

    fn has_privilege(&self, name: &str) -> bool {
        self.privileges.has_named(name)
    }

    fn database(&self) -> Option<String> {
        self.database.as_ref().map(|name| name.to_string())
    }

    fn last_insert_id(&self) -> u64 {
        self.last_insert_id
    }

    fn set_last_insert_id(&mut self, value: u64) {
        self.last_insert_id = value;
        self.last_insert_id_set = true;
    }

    fn row_count(&self) -> i64 {
        self.row_count
    }

    fn found_rows(&self) -> u64 {
        self.found_rows
    }

    fn user_variable(&self, name: &str) -> Option<(Value, DataType)> {
        match self.user_variables.get(name) {
            Some(found) => Some(found.clone()),
            None => self.user_variables.get(name.to_lowercase().as_str()).cloned(),
        }
    }

    fn reference_system(&self, srid: u32) -> Option<KnownSystem> {
        self.server.catalog.with(|snapshot| snapshot.reference_system(srid))
    }

    fn query_attribute(&self, name: &str) -> Option<Value> {
        let found = self.attributes.iter().find(|attribute| attribute.name == name);
        found.map(|attribute| attribute.value.clone())
    }

    fn user_variables(&self) -> Vec<(String, Value, DataType)> {
        let known = self.user_variables.iter();
        let copies = known.map(|(name, (value, ty))| (name.to_string(), value.clone(), ty.clone()));
        let mut variables: Vec<_> = copies.collect();
        variables.sort_by(|one, two| one.0.cmp(&two.0));
        variables
    }

    fn optimizer_traces(&self) -> Vec<OptimizerTraceView> {
        self.traces.read(self.statement_number, self.trace_window())
    }

    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType) {
        let (value, ty) = variables::kept_by_user(value, ty);
        self.user_variables.insert(name.to_lowercase().into(), (value, ty));
    }

    fn system_variable(&self, name: &str) -> Option<Value> {
        match name.split_once('.') {
            Some(("global", name)) => self.variable(name, true),
            Some(("session" | "local", name)) => self.variable(name, false),
            _ => self.variable(name, false),
        }
    }

    fn random(&mut self) -> f64 {
        self.next_random()
    }

    fn time_zone(&self, name: &str) -> Option<Arc<dyn ZoneRules>> {
        self.server.zone(name)
    }

    fn sleep(&mut self, duration: Duration) -> bool {
        let cancel = self.shared.cancel.clone();
        let _waiting = cancel.waiting(Wait::Sleep);
        sys::blocking::blocking(|| {
            let mut left = duration;
            while !left.is_zero() {
                if cancel.is_cancelled() {
                    return false;
                }
                let step = left.min(SLEEP_STEP);
                sys::threads::sleep(step);
                left -= step;
            }
            !cancel.is_cancelled()
        })
    }

    fn check_cancelled(&self) -> Result<()> {
        self.shared.cancel.check()
    }

    fn get_user_lock(&mut self, name: &str, timeout_seconds: f64) -> Result<bool> {
        let cancel = &self.shared.cancel;
        self.server.user_locks.get(self.shared.id, name, timeout_seconds, cancel)
    }

    fn release_user_lock(&mut self, name: &str) -> Option<bool> {
        self.server.user_locks.release(self.shared.id, name)
    }

    fn release_all_user_locks(&mut self) -> u64 {
        self.server.user_locks.release_all(self.shared.id)
    }

    fn user_lock_holder(&self, name: &str) -> Option<u64> {
        self.server.user_locks.holder(name)
    }

    fn sequence(&mut self, name: &SequenceName<'_>, call: SequenceCall) -> Result<Option<i64>> {
        use_sequence(self, name, call)
    }

    fn shared_state(&self, name: &str) -> Option<plugin_api::SharedState> {
        self.server.registry().shared_state(name)
    }

    fn version(&self) -> &str {
        &self.server.version
    }
}
