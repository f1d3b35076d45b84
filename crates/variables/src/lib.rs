//! System variables: the table of all of them, conversion of values that SET assigns, the values of the server and of a session, and
//! `Settings`, which holds the decoded values that every statement reads.
//!
//! A session shares the global values of its start and keeps only what it changed, so that an idle session costs little.
//! Must not know statements, sessions or privileges: SET, in `session`, checks the right to change a variable.

mod convert;
mod definition;
mod gtid;
mod settings;
mod table_global;
mod table_session;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arc_swap::ArcSwap;
use errors::{Result, err};
use hashbrown::HashMap;
use sys::sync::Mutex;
use types::{DataType, TypeKind, Value};

pub use convert::{convert, display_text, shown};
pub use definition::{Definition, Kind, Scope, Source};
pub use gtid::is_gtid_purged;
pub use settings::{CompletionType, Settings, isolation};

/// Position of a variable in the sorted list of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableId(pub u16);

/// All definitions, sorted by name.
pub struct Definitions {
    sorted: Vec<&'static Definition>,
    by_name: HashMap<&'static str, VariableId>,
}

impl Default for Definitions {
    fn default() -> Definitions {
        Definitions::new()
    }
}

impl Definitions {
    /// Sorts the table.
    pub fn new() -> Definitions {
        let mut sorted: Vec<&'static Definition> =
            table_session::SESSION.iter().chain(table_global::GLOBAL).collect();
        sorted.sort_by_key(|definition| definition.name);
        let by_name = sorted
            .iter()
            .enumerate()
            .map(|(position, definition)| (definition.name, VariableId(position as u16)))
            .collect();
        Definitions { sorted, by_name }
    }

    /// Looks a name up, without regard to case; `slave` words are the old form of `replica` words.
    pub fn find(&self, name: &str) -> Option<VariableId> {
        if let Some(id) = self.by_name.get(name) {
            return Some(*id);
        }
        let lower = name.to_ascii_lowercase();
        let other = match lower.as_str() {
            "storage_engine" => "default_storage_engine",
            "slave_net_timeout" => "replica_net_timeout",
            "log_slave_updates" => "log_replica_updates",
            "init_slave" => "init_replica",
            "language" => "lc_messages_dir",
            other => other,
        };
        self.by_name.get(other).copied()
    }

    /// The definition of a variable.
    pub fn get(&self, id: VariableId) -> &'static Definition {
        self.sorted[usize::from(id.0)]
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

    /// All variables by name.
    pub fn iter(&self) -> impl Iterator<Item = (VariableId, &'static Definition)> + '_ {
        let id = |(position, definition): (usize, &&'static Definition)| {
            (VariableId(position as u16), *definition)
        };
        self.sorted.iter().enumerate().map(id)
    }

    fn len(&self) -> usize {
        self.sorted.len()
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
        let fact = definition.name.starts_with("have_")
            || definition.name.starts_with("version")
            || matches!(
                definition.name,
                "license" | "hostname" | "protocol_version" | "gtid_purged"
            );
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
        Kind::Double { .. } => DataType::new(TypeKind::Double, 17, 6),
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

/// One version of all global values.
#[derive(Clone)]
pub struct GlobalValues {
    values: Vec<Value>,
    origins: Vec<Origin>,
}

/// Global values, read without locks.
pub struct Globals {
    /// The table of variables.
    pub definitions: Definitions,
    current: ArcSwap<GlobalValues>,
    writer: Mutex<()>,
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
    /// Compiled-in defaults.
    ///
    /// # Panics
    /// When the table lacks a variable that the code names.
    pub fn new() -> Globals {
        let definitions = Definitions::new();
        let default =
            |(_, definition): (VariableId, &'static Definition)| convert::default_value(definition);
        let values: Vec<Value> = definitions.iter().map(default).collect();
        let origins = vec![Origin::Compiled; definitions.len()];
        let current = ArcSwap::from_pointee(GlobalValues { values, origins });
        let known = |name| definitions.find(name).expect("a variable of the table");
        let (read_only, super_read_only) = (known("read_only"), known("super_read_only"));
        Globals { definitions, current, writer: Mutex::new(()), read_only, super_read_only }
    }

    /// The accounts that may not write at present.
    pub fn read_only(&self) -> ReadOnly {
        let current = self.current.load();
        let is_on = |id: VariableId| as_u64(&current.values[usize::from(id.0)]) == 1;
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
        self.current.load().values[usize::from(id.0)].clone()
    }

    /// A global integer by name; 0 when it does not exist.
    pub fn integer(&self, name: &str) -> u64 {
        self.definitions.find(name).map_or(0, |id| as_u64(&self.get(id)))
    }

    /// A global text by name; empty when NULL.
    pub fn text(&self, name: &str) -> String {
        self.definitions.find(name).map_or_else(String::new, |id| as_text(&self.get(id)))
    }

    /// Where the present global value came from.
    pub fn origin(&self, id: VariableId) -> Origin {
        self.current.load().origins[usize::from(id.0)]
    }

    /// Changes several values in one new version.
    pub fn set(&self, changes: &[(VariableId, Value)], origin: Origin) {
        let _writer = self.writer.lock();
        self.store(changes, origin);
    }

    /// `SET GLOBAL gtid_purged`: `gtid_executed` changes with it. `+` first adds to the set, otherwise it is replaced.
    ///
    /// # Errors
    /// 1231; 3546 when an added set overlaps the present one or a replacement lacks part of it.
    pub fn set_gtid_purged(&self, assigned: &str) -> Result<()> {
        let _writer = self.writer.lock();
        let set = gtid::purged_after(&self.text("gtid_purged"), assigned)?;
        let value = Value::text(&set.to_string());
        let known = ["gtid_purged", "gtid_executed"].map(|name| self.definitions.find(name));
        let changes: Vec<_> = known.into_iter().flatten().map(|id| (id, value.clone())).collect();
        self.store(&changes, Origin::Dynamic);
        Ok(())
    }

    /// Stores a new version; the caller holds `writer`.
    fn store(&self, changes: &[(VariableId, Value)], origin: Origin) {
        let mut next = GlobalValues::clone(&self.current.load());
        for (id, value) in changes {
            next.values[usize::from(id.0)] = value.clone();
            next.origins[usize::from(id.0)] = origin;
        }
        self.current.store(Arc::new(next));
    }

    /// Sets a variable from a start-up option, `-` and `_` being equal in its name.
    ///
    /// # Errors
    /// 1193, 1231, 1232.
    pub fn set_option(&self, name: &str, text: &str, origin: Origin) -> Result<()> {
        let name = name.replace('-', "_").to_ascii_lowercase();
        let id = self.definitions.find(&name).ok_or_else(|| err!(UNKNOWN_SYSTEM_VARIABLE, name))?;
        let definition = self.definitions.get(id);
        let value = convert::from_option(definition, text)?;
        self.set(&[(id, value)], origin);
        Ok(())
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

    /// The session's value.
    pub fn get(&self, id: VariableId) -> &Value {
        match self.changed.binary_search_by_key(&id, |(changed, _)| *changed) {
            Ok(position) => &self.changed[position].1,
            Err(_) => &self.base.values[usize::from(id.0)],
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

/// A stored integer or truth value.
pub fn as_u64(value: &Value) -> u64 {
    match value {
        Value::UInt(number) => *number,
        Value::Int(number) => u64::try_from(*number).unwrap_or(0),
        Value::Double(number) => *number as u64,
        Value::Null
        | Value::Decimal(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => 0,
    }
}

/// A stored text; empty for NULL.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Null
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => String::new(),
    }
}
