//! What a new value of a variable does: when it takes effect, its unit and range, and whose memory it bounds.

use errors::{Error, Result};
use plugin_api::variable::{Definition, Kind, Scope, Source, as_text};
use types::Value;

use crate::convert;

/// Variables that tell of the server or the machine. They have names of settings, and no option sets them.
const FACTS: &[&str] = &[
    "character_set_system",
    "default_authentication_plugin",
    "gtid_executed",
    "gtid_mode",
    "gtid_owned",
    "hostname",
    "innodb_page_size",
    "innodb_version",
    "license",
    "log_bin",
    "log_bin_basename",
    "log_bin_index",
    "lower_case_file_system",
    "protocol_version",
    "server_uuid",
    "storage_barriers",
    "storage_encryption",
    "storage_file_system",
    "storage_sector_bytes",
    "storage_sync_us",
    "system_time_zone",
    "thread_handling",
];
/// What families of facts begin with.
const FACT_FAMILIES: &[&str] = &["have_", "version"];

/// Settings that a start needs before it reads the dictionary, or that the dictionary must not decide: options set them.
const OPTIONS: &[&str] = &[
    "admin_address",
    "admin_port",
    "cpu_affinity",
    "datadir",
    "innodb_doublewrite",
    "innodb_use_native_aio",
    "keyring_file_data",
    "log_archive_directory",
    "log_error",
    "open_files_limit",
    "persisted_globals_load",
    "pid_file",
    "plugin_dir",
    "secure_file_priv",
    "skip_networking",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "storage_profile",
    "tmpdir",
];

/// Settings without an effect that cannot be persisted either, as in the reference.
const NEVER_PERSISTED: &[&str] = &[
    "auto_generate_certs",
    "basedir",
    "character_sets_dir",
    "innodb_read_only",
    "lc_messages_dir",
];

/// How the description of a variable begins whose other values are refused.
const ONLY_DEFAULT: &str = "Only the default is built";

/// How the description of a variable begins whose value nothing reads: what it asks for holds anyway, or does not exist here.
const NO_EFFECT: &str = "No effect";

/// How the description of a variable begins that keeps its default: other values warn, so that option files and scripts of the reference still work.
const CONSTANT: &str = "Constant";

/// Units, as descriptions begin.
const UNITS: &[&str] = &[
    "bytes",
    "characters",
    "connections",
    "days",
    "definitions",
    "files",
    "hosts",
    "microseconds",
    "milliseconds",
    "percent",
    "rows",
    "seconds",
    "tables",
    "threads",
];

/// When a new global value takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// With SET GLOBAL.
    AtOnce,
    /// With SET GLOBAL in sessions that begin later; SET SESSION changes one.
    NewSessions,
    /// With `ALTER SYSTEM SET .. APPLY`.
    Rebinds,
    /// With the next start, for which SET PERSIST_ONLY keeps it.
    NextStart,
    /// With the next start, from its command line or option file.
    Option,
    /// It is a fact, and no setting.
    Fact,
    /// It has none: clients may set it, unless only its default is built, and nothing reads it. A constant keeps its default and warns.
    Nothing,
}

impl Effect {
    /// As `data_dictionary` prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::AtOnce => "AT ONCE",
            Effect::NewSessions => "NEW SESSIONS",
            Effect::Rebinds => "ALTER SYSTEM",
            Effect::NextStart => "NEXT START",
            Effect::Option => "OPTION",
            Effect::Fact => "FACT",
            Effect::Nothing => "NONE",
        }
    }

    /// Whether the server has to start again.
    pub fn needs_restart(self) -> bool {
        match self {
            Effect::NextStart | Effect::Option => true,
            Effect::AtOnce
            | Effect::NewSessions
            | Effect::Rebinds
            | Effect::Fact
            | Effect::Nothing => false,
        }
    }
}

/// Whether any other value would promise what is not built.
fn is_only_default(definition: &Definition) -> bool {
    definition.description.starts_with(ONLY_DEFAULT)
}

/// Whether it keeps its default, and any other value warns.
fn is_constant(definition: &Definition) -> bool {
    definition.description.starts_with(CONSTANT)
}

/// Refuses a value whose meaning is not built.
///
/// # Errors
/// 1235.
pub(crate) fn check_built(definition: &Definition, value: &Value) -> Result<()> {
    match is_only_default(definition) {
        true => unless_default(definition, value).map_or(Ok(()), Err),
        false => Ok(()),
    }
}

/// What takes the place of a value: of a constant the default, with the reason when that is another value. A reader of the variable is told what holds.
pub(crate) fn kept(definition: &Definition, value: Value) -> (Value, Option<Error>) {
    if !is_constant(definition) {
        return (value, None);
    }
    match unless_default(definition, &value) {
        Some(reason) => (convert::default_value(definition), Some(reason)),
        None => (value, None),
    }
}

/// Error 1235 about a value that is not the default.
fn unless_default(definition: &Definition, value: &Value) -> Option<Error> {
    let default = convert::default_value(definition);
    (as_text(value) != as_text(&default)).then(|| {
        let shown = convert::display_text(definition, value);
        Error::not_supported(format!("{} = {shown}", definition.name))
    })
}

/// When a new global value takes effect.
pub fn effect(definition: &Definition) -> Effect {
    let name = definition.name;
    if definition.rebinds {
        return Effect::Rebinds;
    }
    if is_fact(definition) {
        return Effect::Fact;
    }
    if definition.description.starts_with(NO_EFFECT)
        || is_constant(definition)
        || is_only_default(definition)
    {
        return Effect::Nothing;
    }
    if definition.is_option || OPTIONS.contains(&name) {
        return Effect::Option;
    }
    match (definition.dynamic, definition.scope) {
        (false, _) => Effect::NextStart,
        (true, Scope::Global) => Effect::AtOnce,
        (true, Scope::Both | Scope::Session) => Effect::NewSessions,
    }
}

/// Whether no option and no statement sets it.
fn is_fact(definition: &Definition) -> bool {
    let begins = |family: &&str| definition.name.starts_with(*family);
    FACTS.contains(&definition.name)
        || FACT_FAMILIES.iter().any(begins)
        || !definition.dynamic && definition.source == Source::Computed
}

/// Whether SET PERSIST_ONLY may keep a value of a variable that SET GLOBAL cannot change.
pub fn is_persistable(definition: &Definition) -> bool {
    match effect(definition) {
        Effect::AtOnce | Effect::NewSessions | Effect::NextStart => true,
        Effect::Nothing => !NEVER_PERSISTED.contains(&definition.name),
        Effect::Rebinds | Effect::Option | Effect::Fact => false,
    }
}

/// The unit of a number.
pub fn unit(definition: &Definition) -> Option<&'static str> {
    range(definition)?;
    let text = definition.description;
    let text = [NO_EFFECT, CONSTANT, ONLY_DEFAULT]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(text);
    let text = text.trim_start_matches("; ");
    let word = text.split([' ', ';', ',']).next()?;
    UNITS.iter().find(|unit| unit.eq_ignore_ascii_case(word)).copied()
}

/// The family of a variable's values, as `performance_schema.variables_metadata` names it.
pub fn data_type(definition: &Definition) -> &'static str {
    match definition.kind {
        Kind::Bool => "Boolean",
        Kind::Int { .. } | Kind::UInt { .. } => "Integer",
        Kind::Double { .. } => "Numeric",
        Kind::Enum(_) => "Enumeration",
        Kind::Set(_) | Kind::Switches | Kind::SqlMode => "Set",
        Kind::Text
        | Kind::NullableText
        | Kind::Charset
        | Kind::NullableCharset
        | Kind::Collation
        | Kind::TimeZone => "String",
    }
}

/// The least and the greatest value of a number. The greatest is one that the variable can have: a multiple of its block.
pub fn range(definition: &Definition) -> Option<(String, String)> {
    match definition.kind {
        Kind::Int { min, max } => Some((min.to_string(), max.to_string())),
        Kind::UInt { min, max, block } => {
            let max = if block > 1 { max - max % block } else { max };
            Some((min.to_string(), max.to_string()))
        }
        Kind::Double { min, max } => Some((min.to_string(), max.to_string())),
        Kind::Bool
        | Kind::Text
        | Kind::NullableText
        | Kind::Enum(_)
        | Kind::Set(_)
        | Kind::Switches
        | Kind::SqlMode
        | Kind::Charset
        | Kind::NullableCharset
        | Kind::Collation
        | Kind::TimeZone => None,
    }
}

/// Whose memory a number of bytes bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The server's.
    Server,
    /// That of each connection.
    Connection,
    /// That of each sort and hash table.
    Operator,
}

impl Memory {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Memory::Server => "server",
            Memory::Connection => "each connection",
            Memory::Operator => "each sort or hash table",
        }
    }
}

/// Whose memory a variable of the server bounds; `None` for those that bound none.
pub fn memory(definition: &Definition) -> Option<Memory> {
    match definition.name {
        "memory_limit"
        | "plan_cache_size"
        | "prepared_stmt_memory_limit"
        | "innodb_buffer_pool_size" => Some(Memory::Server),
        "max_allowed_packet" => Some(Memory::Connection),
        "sort_buffer_size" | "tmp_table_size" => Some(Memory::Operator),
        _ => None,
    }
}

/// Bytes that all statements together may keep in sorts, hash tables and rows, of a server that may use `total` bytes and has a buffer pool of `pool`: an eighth is
/// for everything else, and a sixteenth is theirs however large the pool is.
pub fn statement_memory_bytes(total: u64, pool: u64) -> u64 {
    const OTHERS: u64 = 8;
    const LEAST: u64 = 16;
    (total - total / OTHERS).saturating_sub(pool).max(total / LEAST)
}

/// Bytes that an operator may keep in memory: a row takes several times its stored bytes there.
pub fn operator_bytes(sort_buffer_size: u64, tmp_table_size: u64) -> u64 {
    sort_buffer_size.max(tmp_table_size.saturating_mul(4)).min(isize::MAX as u64)
}
