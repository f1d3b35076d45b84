//! Meaning of an ENGINE clause: there is one engine for tables, and many names that select it.

use catalog::Table;
use errors::{ErrorCode, Level, Result, err};
use plugin_api::Registry;
use types::{SqlMode, TypeKind};

use crate::context::Context;
use crate::draft::Draft;

/// Names of engines that select the server's own.
const MEANS_DEFAULT: &[&str] = &["INNODB", "SQUALL"];
/// Names that select it with a warning, and the name under which a table shows that it was declared so. Names that the reference does
/// not load are shown as the default engine, so that a dump can be loaded there.
const SUBSTITUTED: &[(&str, &str)] = &[
    ("MYISAM", "MyISAM"),
    ("MEMORY", "MEMORY"),
    ("HEAP", "MEMORY"),
    ("CSV", "CSV"),
    ("ARCHIVE", "ARCHIVE"),
    ("MRG_MYISAM", SHOWN_ENGINE),
    ("MERGE", SHOWN_ENGINE),
    ("ARIA", SHOWN_ENGINE),
    ("ROCKSDB", SHOWN_ENGINE),
    ("TOKUDB", SHOWN_ENGINE),
    ("NDB", SHOWN_ENGINE),
    ("NDBCLUSTER", SHOWN_ENGINE),
];

/// The option of a table that keeps the declared engine's name where the default one took its place.
pub const DECLARED_ENGINE: &str = "ENGINE";

/// Meaning of an ENGINE clause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineChoice {
    /// The default engine, by one of its usual names.
    Default,
    /// The default engine in place of another.
    Substituted {
        /// The name under which its tables are shown.
        shown: &'static str,
    },
}

impl EngineChoice {
    /// The name under which tables of this engine are shown.
    pub fn shown(&self) -> &'static str {
        match self {
            EngineChoice::Default => SHOWN_ENGINE,
            EngineChoice::Substituted { shown } => shown,
        }
    }
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
    if let Some((_, shown)) = SUBSTITUTED.iter().find(|(known, _)| *known == upper) {
        return Ok(EngineChoice::Substituted { shown });
    }
    if engines.registry.engine(name).is_some() {
        return Ok(EngineChoice::Substituted { shown: SHOWN_ENGINE });
    }
    Err(err!(UNKNOWN_STORAGE_ENGINE, name))
}

/// Name under which the default engine is shown wherever the reference shows its own: programs decide by it whether tables have
/// transactions and foreign keys.
pub const SHOWN_ENGINE: &str = "InnoDB";

/// The name of the engine under which a table is shown: the declared one, if it is one of the reference's.
pub fn shown_engine(table: &Table) -> &str {
    let declared = table.options.iter().find(|(name, _)| name == DECLARED_ENGINE);
    match declared {
        // The reference has no partitions in such engines.
        Some((_, engine)) if table.partitioning.is_none() => engine,
        Some(_) | None => SHOWN_ENGINE,
    }
}

/// The ROW_FORMAT of a table that does not name one.
pub fn default_row_format(table: &Table) -> &'static str {
    let is_fixed = |column: &catalog::Column| {
        let ty = &column.ty;
        let is_padded = matches!(ty.kind, TypeKind::Char | TypeKind::Binary);
        let has_length = matches!(ty.kind, TypeKind::Json | TypeKind::Vector | TypeKind::Geometry);
        is_padded || !has_length && !ty.is_text() && !ty.is_binary()
    };
    match shown_engine(table) {
        "MEMORY" | "CSV" => "Fixed",
        "ARCHIVE" => "Compressed",
        "MyISAM" if table.columns.iter().all(is_fixed) => "Fixed",
        _ => "Dynamic",
    }
}

/// The name under which a draft's table is shown if it declares this engine. Warns where another engine takes its place; an unknown
/// engine is an error only in NO_ENGINE_SUBSTITUTION.
///
/// # Errors
/// 1286.
pub(crate) fn note_engine(
    ctx: &mut dyn Context,
    engine: &str,
    draft: &Draft,
) -> Result<&'static str> {
    let mut shown = SHOWN_ENGINE;
    match engine_choice(&ctx.engines(), engine) {
        Ok(EngineChoice::Default) => return Ok(shown),
        Ok(EngineChoice::Substituted { shown: declared }) => {
            // Temporary tables are in that engine indeed.
            if draft.temporary && declared.eq_ignore_ascii_case(ctx.engines().temporary) {
                return Ok(declared);
            }
            shown = declared;
        }
        Err(error) if ctx.settings().sql_mode.contains(SqlMode::NO_ENGINE_SUBSTITUTION) => {
            return Err(error);
        }
        Err(error) => ctx.conditions().push_error(Level::Warning, &error),
    }
    ctx.conditions().warn(ErrorCode::WARN_USING_OTHER_HANDLER, &[&SHOWN_ENGINE, &draft.name]);
    Ok(shown)
}
