//! Meaning of an ENGINE clause: there is one engine for tables, and many names that select it.

use errors::{ErrorCode, Level, Result, err};
use plugin_api::Registry;
use types::SqlMode;

use crate::context::Context;

/// Names of engines that select the server's own.
const MEANS_DEFAULT: &[&str] = &["INNODB", "SQUALL"];
/// Names that select it with a warning.
const MEANS_DEFAULT_WITH_WARNING: &[&str] = &[
    "MYISAM",
    "ARIA",
    "MEMORY",
    "HEAP",
    "CSV",
    "ARCHIVE",
    "ROCKSDB",
    "TOKUDB",
    "NDB",
    "NDBCLUSTER",
    "MRG_MYISAM",
    "MERGE",
];

/// Meaning of an ENGINE clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// The default engine, by one of its usual names.
    Default,
    /// The default engine in place of another.
    Substituted,
}

/// The engines that definitions may name.
#[derive(Clone, Copy)]
pub struct Engines<'a> {
    /// Name of the engine of tables.
    pub default: &'a str,
    /// Name of the engine of temporary tables.
    pub temporary: &'a str,
    /// Knows the names of all engines.
    pub registry: &'a Registry,
}

/// Returns the meaning of an engine name.
///
/// # Errors
/// 1286.
pub fn engine_choice(engines: &Engines<'_>, name: &str) -> Result<EngineChoice> {
    let upper = name.to_ascii_uppercase();
    let is_own = engines.default.eq_ignore_ascii_case(name);
    if is_own || MEANS_DEFAULT.contains(&&*upper) {
        return Ok(EngineChoice::Default);
    }
    let registered = engines.registry.engine(name).is_some();
    if registered || MEANS_DEFAULT_WITH_WARNING.contains(&&*upper) {
        return Ok(EngineChoice::Substituted);
    }
    Err(err!(UNKNOWN_STORAGE_ENGINE, name))
}

/// Name under which the default engine is shown.
pub const SHOWN_ENGINE: &str = "Squall";

/// Warnings of an ENGINE clause; an unknown engine is an error only in NO_ENGINE_SUBSTITUTION.
pub(crate) fn note_engine(ctx: &mut dyn Context, engine: &str, table: &str) -> Result<()> {
    match engine_choice(&ctx.engines(), engine) {
        Ok(EngineChoice::Default) => return Ok(()),
        Ok(EngineChoice::Substituted) => {}
        Err(error) if ctx.settings().sql_mode.contains(SqlMode::NO_ENGINE_SUBSTITUTION) => {
            return Err(error);
        }
        Err(error) => ctx.conditions().push_error(Level::Warning, &error),
    }
    ctx.conditions().warn(ErrorCode::WARN_USING_OTHER_HANDLER, &[&SHOWN_ENGINE, &table]);
    Ok(())
}
