//! System variables: the table of all of them, conversion of values that SET assigns, the values of the server and of a session, and
//! `Settings`, which holds the decoded values that every statement reads.
//!
//! A session shares the global values of its start and keeps only what it changed, so that an idle session costs little.
//! Must not know statements, sessions or privileges: SET, in `session`, checks the right to change a variable.

mod convert;
mod data_files;
mod deprecated;
mod effect;
mod gtid;
mod key_caches;
mod locales;
mod restricted;
mod settings;
mod table_global;
mod table_reference;
mod table_session;
#[cfg(test)]
mod tests;
mod user;

use std::sync::Arc;

use arc_swap::ArcSwap;
use errors::{Error, Result, err};
use hashbrown::{HashMap, HashSet};
use plugin_api::variable::{GlobalValue, VariableCheck};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, Ordering::Relaxed};
use types::{DataType, TypeKind, Value};

pub use convert::{convert, display_text, from_option, shown};
pub use data_files::allowed_path;
pub use deprecated::{note_value, removal_of, warning_of_set};
pub use effect::{
    Effect, Memory, data_type, effect, is_persistable, memory, operator_bytes, range,
    statement_memory_bytes, unit,
};
pub use gtid::is_gtid_purged;
pub use key_caches::{KeyCachePart, KeyCaches, key_cache_type};
pub use locales::check_locale;
pub use plugin_api::PluginVariable;
pub use plugin_api::variable::{Definition, Kind, Scope, Source, as_text, as_u64};
pub use restricted::privileges_to_set;
pub use settings::{
    CompletionType, LogSettings, Settings, TransactionTracking, is_as_of, isolation,
};
pub use user::kept_by_user;

/// Position of a variable in the sorted list of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u16);

impl VariableId {
    fn position(self) -> usize {
        usize::from(self.0)
    }
}

/// All definitions, sorted by name: the server's own and those of every plugin that the server knows. A variable of a plugin that is not
/// loaded has an id and a value, but no statement finds it.
pub struct Definitions {
    sorted: Vec<&'static Definition>,
    by_name: HashMap<&'static str, VariableId>,
    /// By id: it belongs to a plugin that is not loaded.
    hidden: Vec<AtomicBool>,
    of_plugins: Vec<VariableId>,
}

/// Old names of variables, in order, and the names that they have now.
const OLD_NAMES: &[(&str, &str)] = &[
    ("init_slave", "init_replica"),
    ("log_slave_updates", "log_replica_updates"),
    ("log_slow_slave_statements", "log_slow_replica_statements"),
    ("master_verify_checksum", "source_verify_checksum"),
    ("rpl_stop_slave_timeout", "rpl_stop_replica_timeout"),
    ("skip_slave_start", "skip_replica_start"),
    ("slave_allow_batching", "replica_allow_batching"),
    ("slave_checkpoint_group", "replica_checkpoint_group"),
    ("slave_checkpoint_period", "replica_checkpoint_period"),
    ("slave_compressed_protocol", "replica_compressed_protocol"),
    ("slave_exec_mode", "replica_exec_mode"),
    ("slave_load_tmpdir", "replica_load_tmpdir"),
    ("slave_max_allowed_packet", "replica_max_allowed_packet"),
    ("slave_net_timeout", "replica_net_timeout"),
    ("slave_parallel_workers", "replica_parallel_workers"),
    ("slave_pending_jobs_size_max", "replica_pending_jobs_size_max"),
    ("slave_preserve_commit_order", "replica_preserve_commit_order"),
    ("slave_skip_errors", "replica_skip_errors"),
    ("slave_sql_verify_checksum", "replica_sql_verify_checksum"),
    ("slave_transaction_retries", "replica_transaction_retries"),
    ("slave_type_conversions", "replica_type_conversions"),
    ("sql_slave_skip_counter", "sql_replica_skip_counter"),
    ("sync_master_info", "sync_source_info"),
];

fn new_name(old: &str) -> Option<&'static str> {
    let at = OLD_NAMES.binary_search_by(|(known, _)| (*known).cmp(old)).ok()?;
    Some(OLD_NAMES[at].1)
}

impl Default for Definitions {
    fn default() -> Definitions {
        Definitions::new()
    }
}

impl Definitions {
    /// The server's own variables.
    pub fn new() -> Definitions {
        Definitions::with_plugins(&[])
    }

    /// The server's own variables and those of plugins, hidden until `show_plugins` names them. A plugin cannot take a name that exists.
    pub fn with_plugins(plugins: &[PluginVariable]) -> Definitions {
        let mut sorted: Vec<&'static Definition> =
            [table_session::SESSION, table_global::GLOBAL, table_reference::REFERENCE]
                .into_iter()
                .flatten()
                .collect();
        let own: HashSet<&str> = sorted.iter().map(|definition| definition.name).collect();
        let added = plugins.iter().map(|variable| variable.definition);
        sorted.extend(added.filter(|definition| !own.contains(definition.name)));
        sorted.sort_by_key(|definition| definition.name);
        sorted.dedup_by_key(|definition| definition.name);
        let by_name: HashMap<&'static str, VariableId> = sorted
            .iter()
            .enumerate()
            .map(|(position, definition)| (definition.name, VariableId(position as u16)))
            .collect();
        let is_hidden =
            |definition: &&'static Definition| AtomicBool::new(!own.contains(definition.name));
        let hidden: Vec<AtomicBool> = sorted.iter().map(is_hidden).collect();
        let of_plugins = by_name.values().copied().filter(|id| hidden[id.position()].load(Relaxed));
        let of_plugins = of_plugins.collect();
        Definitions { sorted, by_name, hidden, of_plugins }
    }

    /// From now on statements find these variables of plugins, and no others of plugins.
    pub fn show_plugins(&self, names: &[&str]) {
        for id in &self.of_plugins {
            let is_shown = names.contains(&self.get(*id).name);
            self.hidden[id.position()].store(!is_shown, Relaxed);
        }
    }

    /// Looks a name up, without regard to case; `slave` words are the old form of `replica` words. Variables of plugins that are not
    /// loaded are not found.
    pub fn find(&self, name: &str) -> Option<VariableId> {
        self.find_known(name).filter(|id| !self.hidden[id.position()].load(Relaxed))
    }

    /// As `find`, but variables of plugins that are not loaded are found too: options may set them.
    pub fn find_known(&self, name: &str) -> Option<VariableId> {
        if let Some(id) = self.by_name.get(name) {
            return Some(*id);
        }
        let lower = name.to_ascii_lowercase();
        let other = match lower.as_str() {
            "storage_engine" => "default_storage_engine",
            "language" => "lc_messages_dir",
            "default.key_buffer_size" => "key_buffer_size",
            other => new_name(other).unwrap_or(other),
        };
        self.by_name.get(other).copied()
    }

    /// The old names under which variables are listed too.
    pub fn old_names(&self) -> impl Iterator<Item = (&'static str, VariableId)> {
        OLD_NAMES.iter().filter_map(|(old, new)| Some((*old, self.find(new)?)))
    }

    /// The definition of a variable.
    pub fn get(&self, id: VariableId) -> &'static Definition {
        self.sorted[id.position()]
    }

    /// The variable that an old name denotes; any other is itself.
    pub fn canonical(&self, id: VariableId) -> VariableId {
        let other = match self.get(id).name {
            "tx_isolation" => "transaction_isolation",
            "tx_read_only" => "transaction_read_only",
            "identity" => "last_insert_id",
            _ => return id,
        };
        self.find(other).unwrap_or(id)
    }

    /// The new value of the paired variable when `id` is set to `value`: the collation of a character set, or the reverse; `None` for other
    /// variables.
    ///
    /// # Errors
    /// 1115, 1273.
    pub fn partner(&self, id: VariableId, value: &str) -> Result<Option<(VariableId, Value)>> {
        let name = self.get(id).name;
        let (partner, value) = match name {
            "character_set_connection" | "character_set_server" | "character_set_database" => {
                let charset = charset::charset_by_name(value)
                    .ok_or_else(|| err!(UNKNOWN_CHARACTER_SET, value))?;
                let collation = charset::collation_or_binary(charset.default_collation);
                (name.replace("character_set", "collation"), collation.name)
            }
            "collation_connection" | "collation_server" | "collation_database" => {
                let collation = charset::collation_by_name(value)
                    .ok_or_else(|| err!(UNKNOWN_COLLATION, value))?;
                (name.replace("collation", "character_set"), collation.charset.name)
            }
            _ => return Ok(None),
        };
        Ok(self.find(&partner).map(|id| (id, Value::text(value))))
    }

    /// All variables by name, without those of plugins that are not loaded.
    pub fn iter(&self) -> impl Iterator<Item = (VariableId, &'static Definition)> + '_ {
        self.known().filter(|(id, _)| !self.hidden[id.position()].load(Relaxed))
    }

    /// All variables by id.
    fn known(&self) -> impl Iterator<Item = (VariableId, &'static Definition)> + '_ {
        let id = |(position, definition): (usize, &&'static Definition)| {
            (VariableId(position as u16), *definition)
        };
        self.sorted.iter().enumerate().map(id)
    }
}

/// A variable as an option of the server's command line.
#[derive(Clone, Copy, Debug)]
pub struct StartOption {
    /// Name with underscores.
    pub name: &'static str,
    /// Compiled-in value.
    pub default: &'static str,
    /// One sentence with the unit.
    pub description: &'static str,
    /// ON or OFF: may be given without a value.
    pub is_flag: bool,
}

/// Every variable that can be set at start.
pub fn start_options() -> Vec<StartOption> {
    let definitions = Definitions::new();
    let option = |(_, definition): (VariableId, &'static Definition)| StartOption {
        name: definition.name,
        default: definition.default,
        description: definition.description,
        is_flag: definition.kind == Kind::Bool,
    };
    let settable = |(_, definition): &(VariableId, &'static Definition)| {
        // The set of a loaded dump is given by SET.
        let fact = effect(definition) == Effect::Fact || definition.name == "gtid_purged";
        definition.scope != Scope::Session && definition.source == Source::Stored && !fact
    };
    definitions.iter().filter(settable).map(option).collect()
}

/// A size with an optional unit: `64M`.
pub fn parse_size(text: &str) -> Option<u64> {
    match convert::number_with_unit(text)? {
        Value::UInt(size) => Some(size),
        _ => None,
    }
}

/// The compiled-in value.
pub fn compiled_default(definition: &Definition) -> Value {
    convert::default_value(definition)
}

/// The type that `@@name` has in an expression.
pub fn expression_type(definition: &Definition) -> DataType {
    match definition.kind {
        Kind::Bool => DataType::new(TypeKind::BigInt, 1, 0),
        Kind::Int { .. } => DataType::bigint(),
        Kind::UInt { .. } => DataType::bigint_unsigned(),
        Kind::Double { .. } => DataType::new(TypeKind::Double, 22, 6),
        Kind::Text
        | Kind::NullableText
        | Kind::Enum(_)
        | Kind::Set(_)
        | Kind::Switches
        | Kind::SqlMode
        | Kind::Charset
        | Kind::NullableCharset
        | Kind::Collation
        | Kind::TimeZone => {
            let length = if definition.kind == Kind::Switches { 2048 } else { 1024 };
            DataType::varchar(length, types::CollationId::UTF8MB4_0900_AI_CI)
        }
    }
}

/// Where a global value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The compiled-in default.
    Compiled,
    /// An option of the command line or of a configuration file.
    CommandLine,
    /// SET PERSIST before the last start.
    Persisted,
    /// SET GLOBAL since the last start.
    Dynamic,
}

impl Origin {
    /// As `data_dictionary` prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Compiled => "COMPILED",
            Origin::CommandLine => "COMMAND_LINE",
            Origin::Persisted => "PERSISTED",
            Origin::Dynamic => "DYNAMIC",
        }
    }
}

/// Who changed a global value, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Microseconds since 1970 UTC.
    pub micros: i64,
    /// Name of the user.
    pub user: Box<str>,
    /// The host that the user came from.
    pub host: Box<str>,
}

/// Where a global value came from, and who set it; `None` when no statement did.
#[derive(Clone, Debug)]
pub struct Provenance {
    /// Where it came from.
    pub origin: Origin,
    /// The last SET of it.
    pub changed: Option<Arc<Changed>>,
}

impl Provenance {
    /// A value that no statement set.
    pub fn of(origin: Origin) -> Provenance {
        Provenance { origin, changed: None }
    }
}

/// One version of all global values.
#[derive(Clone)]
pub struct GlobalValues {
    values: Vec<Value>,
    provenances: Vec<Provenance>,
}

/// Global values, read without locks.
pub struct Globals {
    /// The table of variables.
    pub definitions: Definitions,
    /// Key caches with names of their own.
    pub key_caches: KeyCaches,
    current: ArcSwap<GlobalValues>,
    writer: Mutex<()>,
    /// Where plugins read the values of their variables.
    followers: HashMap<VariableId, GlobalValue>,
    /// What plugins say to new values of their variables.
    checks: HashMap<VariableId, VariableCheck>,
    /// Read by each statement that writes.
    read_only: VariableId,
    super_read_only: VariableId,
}

/// The accounts that may not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOnly {
    /// Writes are allowed.
    Nobody,
    /// `read_only`: accounts without the privilege CONNECTION_ADMIN.
    Users,
    /// `super_read_only`.
    All,
}

impl Default for Globals {
    fn default() -> Globals {
        Globals::new()
    }
}

impl Globals {
    /// Compiled-in defaults of the server's own variables.
    pub fn new() -> Globals {
        Globals::with_plugins(&[])
    }

    /// Compiled-in defaults, also of the variables of plugins.
    ///
    /// # Panics
    /// When the table lacks a variable that the code names.
    pub fn with_plugins(plugins: &[PluginVariable]) -> Globals {
        let definitions = Definitions::with_plugins(plugins);
        let default =
            |(_, definition): (VariableId, &'static Definition)| convert::default_value(definition);
        let values: Vec<Value> = definitions.known().map(default).collect();
        let follower = |variable: &PluginVariable| {
            let id = definitions.find_known(variable.definition.name)?;
            variable.global.store(values[id.position()].clone());
            Some((id, variable.global.clone()))
        };
        let followers = plugins.iter().filter_map(follower).collect();
        let check = |variable: &PluginVariable| {
            let id = definitions.find_known(variable.definition.name)?;
            Some((id, variable.check.clone()?))
        };
        let checks = plugins.iter().filter_map(check).collect();
        let provenances = vec![Provenance::of(Origin::Compiled); values.len()];
        let current = ArcSwap::from_pointee(GlobalValues { values, provenances });
        let known = |name| definitions.find(name).expect("a variable of the table");
        let (read_only, super_read_only) = (known("read_only"), known("super_read_only"));
        let writer = Mutex::new(());
        let key_caches = KeyCaches::default();
        Globals {
            definitions,
            key_caches,
            current,
            writer,
            followers,
            checks,
            read_only,
            super_read_only,
        }
    }

    /// The accounts that may not write at present.
    pub fn read_only(&self) -> ReadOnly {
        let current = self.current.load();
        let is_on = |id: VariableId| as_u64(&current.values[id.position()]) == 1;
        match (is_on(self.super_read_only), is_on(self.read_only)) {
            (true, _) => ReadOnly::All,
            (false, true) => ReadOnly::Users,
            (false, false) => ReadOnly::Nobody,
        }
    }

    /// The present version of all values.
    pub fn load(&self) -> Arc<GlobalValues> {
        self.current.load_full()
    }

    /// The present global value.
    pub fn get(&self, id: VariableId) -> Value {
        self.current.load().values[id.position()].clone()
    }

    /// A global integer by name; 0 when it does not exist.
    pub fn integer(&self, name: &str) -> u64 {
        self.definitions.find(name).map_or(0, |id| as_u64(&self.get(id)))
    }

    /// A global text by name; empty when NULL.
    pub fn text(&self, name: &str) -> String {
        self.definitions.find(name).map_or_else(String::new, |id| as_text(&self.get(id)))
    }

    /// Where the present global value came from, and who set it.
    pub fn provenance(&self, id: VariableId) -> Provenance {
        self.current.load().provenances[id.position()].clone()
    }

    /// Whether the value's meaning is built, and the variable's plugin takes it.
    ///
    /// # Errors
    /// 1235, the plugin's.
    pub fn check(&self, id: VariableId, value: &Value) -> Result<()> {
        effect::check_built(self.definitions.get(id), value)?;
        self.checks.get(&id).map_or(Ok(()), |check| check.check(value))
    }

    /// The value that a variable takes when it is to be set to `value`: a constant keeps its default. The error is for a warning, when that is another value.
    pub fn kept(&self, id: VariableId, value: Value) -> (Value, Option<Error>) {
        effect::kept(self.definitions.get(id), value)
    }

    /// Changes several values in one new version: no reader sees some of them without the others.
    pub fn set(&self, changes: &[(VariableId, Value)], provenance: &Provenance) {
        let _writer = self.writer.lock();
        self.store(changes, provenance);
    }

    /// Changes what `changes` returns in one new version. Nobody else changes values meanwhile, so that it may depend on present ones.
    ///
    /// # Errors
    /// That of `changes`; then nothing has changed.
    pub fn change(
        &self,
        provenance: &Provenance,
        changes: impl FnOnce() -> Result<Vec<(VariableId, Value)>>,
    ) -> Result<()> {
        let _writer = self.writer.lock();
        self.store(&changes()?, provenance);
        Ok(())
    }

    /// The values that `SET GLOBAL gtid_purged` stores: `gtid_executed` changes with it. `+` first adds to the set, otherwise it is replaced. `before` is the value of an earlier assignment of the statement.
    ///
    /// # Errors
    /// 1231; 3546 when an added set overlaps the present one or a replacement lacks part of it.
    pub fn gtid_purged_after(
        &self,
        assigned: &str,
        before: Option<&str>,
    ) -> Result<Vec<(VariableId, Value)>> {
        let present = before.map_or_else(|| self.text("gtid_purged"), str::to_owned);
        let set = gtid::purged_after(&present, assigned)?;
        let value = Value::text(&set.to_string());
        let known = ["gtid_purged", "gtid_executed"].map(|name| self.definitions.find(name));
        Ok(known.into_iter().flatten().map(|id| (id, value.clone())).collect())
    }

    /// Stores a new version; the caller holds `writer`.
    fn store(&self, changes: &[(VariableId, Value)], provenance: &Provenance) {
        let mut next = GlobalValues::clone(&self.current.load());
        for (id, value) in changes {
            next.values[id.position()] = value.clone();
            next.provenances[id.position()] = provenance.clone();
            if let Some(follower) = self.followers.get(id) {
                follower.store(value.clone());
            }
        }
        self.current.store(Arc::new(next));
    }

    /// Sets a variable from a start-up option, `-` and `_` being equal in its name; also one of a plugin that is not loaded.
    /// Returns why a constant did not take the value.
    ///
    /// # Errors
    /// 1193, 1231, 1232.
    pub fn set_option(
        &self,
        name: &str,
        text: &str,
        provenance: &Provenance,
    ) -> Result<Option<Error>> {
        let name = name.replace('-', "_").to_ascii_lowercase();
        let known = self.definitions.find_known(&name);
        let id = known.ok_or_else(|| err!(UNKNOWN_SYSTEM_VARIABLE, name))?;
        let definition = self.definitions.get(id);
        let value = convert::from_option(definition, text)?;
        self.check(id, &value)?;
        let (value, reason) = self.kept(id, value);
        self.set(&[(id, value)], provenance);
        Ok(reason)
    }
}

/// A session's values: the global ones of its start, with its own changes over them.
#[derive(Clone)]
pub struct SessionValues {
    base: Arc<GlobalValues>,
    changed: Vec<(VariableId, Value)>,
}

impl SessionValues {
    /// The present global values, unchanged.
    pub fn new(globals: &Globals) -> SessionValues {
        SessionValues { base: globals.load(), changed: Vec::new() }
    }

    /// Whether no global value has changed since.
    pub fn is_of(&self, globals: &Globals) -> bool {
        Arc::ptr_eq(&self.base, &globals.current.load())
    }

    /// The session's value.
    pub fn get(&self, id: VariableId) -> &Value {
        match self.changed.binary_search_by_key(&id, |(changed, _)| *changed) {
            Ok(position) => &self.changed[position].1,
            Err(_) => &self.base.values[id.position()],
        }
    }

    /// Changes the session's value.
    pub fn set(&mut self, id: VariableId, value: Value) {
        match self.changed.binary_search_by_key(&id, |(changed, _)| *changed) {
            Ok(position) => self.changed[position].1 = value,
            Err(position) => self.changed.insert(position, (id, value)),
        }
    }
}
