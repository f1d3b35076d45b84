//! Table options: those with an effect, those kept only for SHOW, those ignored with a warning.

use catalog::SEQUENCE_OPTION;
use errors::{Error, ErrorCode, Result, bail};
use syntax::ast::{Ident, NumberOption, TableOption};
use types::CollationId;

use crate::charsets::{note_charset, stored_collation};
use crate::column_type::{find_charset, find_collation};
use crate::context::Context;
use crate::draft::Draft;
use crate::encryption;
use crate::engines::{DECLARED_ENGINE, SHOWN_ENGINE, note_engine};
use crate::sequences::declared;
use crate::tablespaces;

/// Applies options to a draft, in order. Returns the collation that the options specify, if any.
pub fn apply_table_options<'o>(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    options: impl Iterator<Item = &'o TableOption>,
) -> Result<()> {
    let mut charset: Option<&Option<Ident>> = None;
    let mut collation: Option<&Option<Ident>> = None;
    for option in options {
        match option {
            TableOption::Charset(name) => {
                let before = charset.and_then(|before| before.as_ref());
                check_declared_once(before, name.as_ref())?;
                charset = Some(name);
            }
            TableOption::Collation(name) => collation = Some(name),
            other => apply_option(ctx, draft, other)?,
        }
    }
    if charset.is_some() || collation.is_some() {
        let flat = |option: Option<&Option<Ident>>| {
            option.and_then(|name| name.as_ref()).map(|name| name.text.clone())
        };
        let schema = schema_collation(ctx, &draft.schema);
        let (charset, collation) = (flat(charset), flat(collation));
        let declared = declared_collation(charset.as_deref(), collation.as_deref(), schema)?;
        draft.declared_collation = declared;
        draft.collation = stored(declared);
        note_charset(ctx.conditions(), charset.as_deref(), collation.as_deref());
    }
    Ok(())
}

/// Error 1302 for two character sets that differ.
///
/// # Errors
/// 1302, 1115.
pub fn check_declared_once(before: Option<&Ident>, now: Option<&Ident>) -> Result<()> {
    let (Some(before), Some(now)) = (before, now) else { return Ok(()) };
    let (before, now) = (find_charset(&before.text)?.name, find_charset(&now.text)?.name);
    if before != now {
        const WORDS: &str = "CHARACTER SET ";
        bail!(CONFLICTING_DECLARATIONS, WORDS, before, WORDS, now);
    }
    Ok(())
}

/// The collation of a schema's tables without a COLLATE clause.
pub(crate) fn schema_collation(ctx: &dyn Context, schema: &str) -> CollationId {
    let catalog = ctx.catalog();
    let known = catalog.schema(schema).map(|schema| schema.options.collation);
    known.unwrap_or(ctx.settings().collation_server.id)
}

fn apply_option(ctx: &mut dyn Context, draft: &mut Draft, option: &TableOption) -> Result<()> {
    if let Some(is_sequence) = declared(option) {
        keep(draft, SEQUENCE_OPTION, is_sequence.then(|| "1".to_owned()));
        return Ok(());
    }
    match option {
        TableOption::Engine(name) => declare_engine(ctx, draft, &name.text)?,
        TableOption::AutoIncrement(next) => draft.auto_increment = Some(*next),
        TableOption::Comment(text) => draft.comment = text.to_string(),
        TableOption::RowFormat(word) => {
            let word = word.text.to_ascii_uppercase();
            keep(draft, "ROW_FORMAT", (word != "DEFAULT").then_some(word));
        }
        TableOption::Number(which, value) => {
            let shown = value.filter(|number| *number != 0 || is_shown_as_zero(*which));
            keep(draft, number_option(*which), shown.map(|number| number.to_string()));
        }
        TableOption::Compression(text) => {
            keep(draft, "COMPRESSION", (!text.is_empty()).then(|| format!("'{text}'")));
        }
        TableOption::Encryption(text) => {
            encryption::declare(ctx, draft, text)?;
        }
        TableOption::Charset(_) | TableOption::Collation(_) => {}
        TableOption::SystemVersioning => crate::history::begin(draft)?,
        TableOption::Union(_) => return Err(Error::not_supported("UNION of tables")),
        TableOption::Tablespace(name) => tablespaces::declare(ctx, draft, &name.text)?,
        TableOption::AutoextendSize(bytes) => {
            check_autoextend(*bytes)?;
            if *bytes > 0 {
                ctx.conditions().warn(ErrorCode::OPTION_IGNORED, &[&AUTOEXTEND_SIZE]);
            }
            keep(draft, AUTOEXTEND_SIZE, (*bytes > 0).then(|| bytes.to_string()));
        }
        TableOption::SecondaryEngine(_)
        | TableOption::Storage(_)
        | TableOption::InsertMethod(_)
        | TableOption::DataDirectory(_)
        | TableOption::IndexDirectory(_)
        | TableOption::Connection(_)
        | TableOption::Password(_)
        | TableOption::StartTransaction
        | TableOption::EngineAttribute(_)
        | TableOption::SecondaryEngineAttribute(_)
        | TableOption::Other(..) => {
            let name = option_name(option);
            ctx.conditions().warn(ErrorCode::OPTION_IGNORED, &[&name]);
        }
    }
    Ok(())
}

/// The option of a table for the growth of its file, which is the engine's choice.
pub const AUTOEXTEND_SIZE: &str = "AUTOEXTEND_SIZE";

/// # Errors
/// 4023, 4025.
fn check_autoextend(bytes: u64) -> Result<()> {
    const STEP: u64 = 4 << 20;
    const MOST: u64 = 4 << 30;
    if bytes > 0 && !(STEP..=MOST).contains(&bytes) {
        bail!(AUTOEXTEND_SIZE_OUT_OF_RANGE);
    }
    if !bytes.is_multiple_of(STEP) {
        bail!(INVALID_AUTOEXTEND_SIZE);
    }
    Ok(())
}

/// Keeps the name of the engine that was declared.
///
/// # Errors
/// 1286.
pub(crate) fn declare_engine(ctx: &mut dyn Context, draft: &mut Draft, engine: &str) -> Result<()> {
    let shown = note_engine(ctx, engine, draft)?;
    keep(draft, DECLARED_ENGINE, (shown != SHOWN_ENGINE).then(|| shown.to_owned()));
    Ok(())
}

/// Stores an option in the order of first mention; `None` removes it.
pub(crate) fn keep(draft: &mut Draft, name: &str, value: Option<String>) {
    draft.options.retain(|(known, _)| known != name);
    if let Some(value) = value {
        draft.options.push((name.to_owned(), value));
    }
}

/// Whether 0 differs from the default.
fn is_shown_as_zero(which: NumberOption) -> bool {
    use NumberOption::{PackKeys, StatsAutoRecalc, StatsPersistent};
    matches!(which, PackKeys | StatsAutoRecalc | StatsPersistent)
}

fn number_option(which: NumberOption) -> &'static str {
    match which {
        NumberOption::AvgRowLength => "AVG_ROW_LENGTH",
        NumberOption::Checksum => "CHECKSUM",
        NumberOption::DelayKeyWrite => "DELAY_KEY_WRITE",
        NumberOption::KeyBlockSize => "KEY_BLOCK_SIZE",
        NumberOption::MaxRows => "MAX_ROWS",
        NumberOption::MinRows => "MIN_ROWS",
        NumberOption::PackKeys => "PACK_KEYS",
        NumberOption::StatsAutoRecalc => "STATS_AUTO_RECALC",
        NumberOption::StatsPersistent => "STATS_PERSISTENT",
        NumberOption::StatsSamplePages => "STATS_SAMPLE_PAGES",
    }
}

fn option_name(option: &TableOption) -> String {
    match option {
        TableOption::SecondaryEngine(_) => "SECONDARY_ENGINE".into(),
        TableOption::Storage(_) => "STORAGE".into(),
        TableOption::InsertMethod(_) => "INSERT_METHOD".into(),
        TableOption::DataDirectory(_) => "DATA DIRECTORY".into(),
        TableOption::IndexDirectory(_) => "INDEX DIRECTORY".into(),
        TableOption::Connection(_) => "CONNECTION".into(),
        TableOption::Password(_) => "PASSWORD".into(),
        TableOption::EngineAttribute(_) => "ENGINE_ATTRIBUTE".into(),
        TableOption::SecondaryEngineAttribute(_) => "SECONDARY_ENGINE_ATTRIBUTE".into(),
        TableOption::Other(name, _) => name.text.to_ascii_uppercase(),
        _ => "START TRANSACTION".into(),
    }
}

/// The collation that text is stored in for a given CHARACTER SET and COLLATE.
///
/// # Errors
/// 1115, 1273, 1253.
pub fn choose_collation(
    charset: Option<&str>,
    collation: Option<&str>,
    default: CollationId,
) -> Result<CollationId> {
    declared_collation(charset, collation, default).map(stored)
}

/// The collation that CHARACTER SET and COLLATE together specify.
fn declared_collation(
    charset: Option<&str>,
    collation: Option<&str>,
    default: CollationId,
) -> Result<CollationId> {
    let charset = charset.map(find_charset).transpose()?;
    let collation = collation.map(find_collation).transpose()?;
    match (charset, collation) {
        (Some(charset), Some(collation)) if collation.charset.name != charset.name => {
            bail!(COLLATION_CHARSET_MISMATCH, collation.name, charset.name)
        }
        (_, Some(collation)) => Ok(collation.id),
        (Some(charset), None) => Ok(charset.default_collation),
        (None, None) => Ok(default),
    }
}

fn stored(declared: CollationId) -> CollationId {
    stored_collation(charset::collation_or_binary(declared)).id
}
