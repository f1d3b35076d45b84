//! Meaning of an ENGINE clause: there is one engine for tables, and many names that select it; and there are the engines of plugins.

use catalog::{IndexMethod, Table};
use errors::{Diagnostics, Error, ErrorCode, Level, Result, bail, err};
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
    /// An engine that a plugin brought.
    Own {
        /// Its name.
        name: &'static str,
    },
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
            EngineChoice::Own { name } => name,
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
    let meant = engines.registry.engine_meant(name).map(|engine| engine.name());
    if let Some(name) = meant.filter(|name| *name != engines.temporary) {
        return Ok(EngineChoice::Own { name });
    }
    if let Some((_, shown)) = SUBSTITUTED.iter().find(|(known, _)| *known == upper) {
        return Ok(EngineChoice::Substituted { shown });
    }
    if meant.is_some() {
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

/// The name under which a draft's table is shown.
fn shown_engine_of(draft: &Draft) -> &str {
    let declared = draft.options.iter().find(|(name, _)| name == DECLARED_ENGINE);
    declared.map_or(SHOWN_ENGINE, |(_, engine)| engine)
}

/// Whether indexes of tables shown with this engine are hash tables unless they say otherwise. Here they are trees too.
pub fn has_hash_indexes(engine: &str) -> bool {
    engine == "MEMORY"
}

/// USING HASH stays where the declared engine has such indexes; elsewhere a note says that it has no effect.
pub(crate) fn choose_methods(conditions: &mut Diagnostics, draft: &mut Draft) {
    if has_hash_indexes(shown_engine_of(draft)) {
        return;
    }
    for index in &mut draft.indexes {
        if index.method == Some(IndexMethod::Hash) {
            conditions.note(ErrorCode::UNSUPPORTED_INDEX_ALGORITHM, &[&"HASH"]);
            index.method = None;
        }
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
    draft: &mut Draft,
) -> Result<&'static str> {
    let mut shown = SHOWN_ENGINE;
    let choice = engine_choice(&ctx.engines(), engine);
    if !draft.temporary {
        let engines = ctx.engines();
        draft.engine = match choice {
            Ok(EngineChoice::Own { name }) => name.into(),
            Ok(EngineChoice::Default | EngineChoice::Substituted { .. }) | Err(_) => {
                engines.default.into()
            }
        };
    }
    match choice {
        Ok(EngineChoice::Default) => return Ok(shown),
        Ok(EngineChoice::Own { name }) if draft.temporary => {
            bail!(ILLEGAL_HA_CREATE_OPTION, name, "TEMPORARY");
        }
        Ok(EngineChoice::Own { name }) => return Ok(name),
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

/// Refuses what the reference's engine of the declared name cannot do: such a table could not be loaded there.
fn check_declared_engine(table: &Table) -> Result<()> {
    let shown = shown_engine(table);
    if shown == SHOWN_ENGINE {
        return Ok(());
    }
    for index in &table.indexes {
        if index.parts.iter().any(|part| part.descending) {
            bail!(CHECK_NOT_IMPLEMENTED, "descending indexes");
        }
    }
    Ok(())
}

/// Refuses what the engine of a table cannot do.
///
/// # Errors
/// 1214 for FULLTEXT, 1178 for what the declared engine lacks, and partitions of one without transactions, 1235 naming the rest.
pub(crate) fn check_abilities(ctx: &dyn Context, table: &Table) -> Result<()> {
    check_declared_engine(table)?;
    let engines = ctx.engines();
    let Some(engine) = engines.registry.engine(&table.engine) else { return Ok(()) };
    let can = engine.capabilities();
    if !can.full_text && !table.fulltext.is_empty() {
        bail!(TABLE_CANT_HANDLE_FT);
    }
    let refuse = |what: &str| {
        Err(Error::not_supported(format_args!("{what} of tables in engine {}", engine.name())))
    };
    if !can.foreign_keys && !table.foreign_keys.is_empty() {
        return refuse("FOREIGN KEY");
    }
    if !can.transactions && table.partitioning.is_some() {
        bail!(CHECK_NOT_IMPLEMENTED, "native partitioning");
    }
    if can.remote && table.partitioning.is_some() {
        return refuse("PARTITION BY");
    }
    if can.remote && table.refuses_overlaps() {
        return refuse("WITHOUT OVERLAPS");
    }
    if (!can.multi_valued_indexes || table.partitioning.is_some())
        && table.indexes.iter().any(|index| table.spatial_column(index).is_some())
    {
        bail!(TABLE_CANT_HANDLE_SPKEYS);
    }
    if !can.multi_valued_indexes
        && table.definition.indexes.iter().any(engine_api::IndexDef::is_multi_valued)
    {
        return refuse("multi-valued indexes");
    }
    // A parent in an engine that keeps nobody from deleting what a child relies on.
    let catalog = ctx.catalog();
    for key in &table.foreign_keys {
        let parent = catalog.table(&key.referenced_schema, &key.referenced_table);
        let engine = parent.and_then(|parent| engines.registry.engine(&parent.engine));
        if engine.is_some_and(|engine| !engine.capabilities().foreign_keys) {
            return Err(Error::not_supported("FOREIGN KEY to a table in an engine without them"));
        }
    }
    Ok(())
}

/// Refuses transactions that an engine cannot take part in.
///
/// # Errors
/// 1235.
#[cold]
pub fn check_transaction(
    engine: &dyn engine_api::Engine,
    isolation: engine_api::IsolationLevel,
    has_snapshot: bool,
) -> Result<()> {
    let can = engine.capabilities();
    let is_serializable = isolation == engine_api::IsolationLevel::Serializable;
    let what = match (is_serializable && !can.gap_locks, has_snapshot && !can.snapshots) {
        (true, _) => "SERIALIZABLE transactions",
        (false, true) => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
        (false, false) => return Ok(()),
    };
    Err(Error::not_supported(format_args!("{what} with tables in engine {}", engine.name())))
}
