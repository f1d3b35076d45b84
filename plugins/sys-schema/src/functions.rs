//! The functions of `sys` that need no statement: they format values and take names apart.

use std::borrow::Cow;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::{CollationId, DataType, TypeKind, Value};

/// Characters of a name.
const NAME_LENGTH: u64 = 64;
/// Characters of a path.
const PATH_LENGTH: u64 = 512;
/// Bytes of a TEXT.
const TEXT_LENGTH: u32 = 65_535;
/// Characters that `format_statement` leaves where `@sys.statement_truncate_len` says nothing else.
const STATEMENT_LENGTH: f64 = 64.0;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "SYS.EXTRACT_SCHEMA_FROM_FILE_NAME",
        Arity::exactly(1),
        "sys.extract_schema_from_file_name(path)\nThe directory that the file is in: the name of the schema.",
        |_, _| Ok(of_text(NAME_LENGTH, schema_of_file)),
    ),
    scalar(
        "SYS.EXTRACT_TABLE_FROM_FILE_NAME",
        Arity::exactly(1),
        "sys.extract_table_from_file_name(path)\nThe name of the file without what follows a dot: the name of the table.",
        |_, _| Ok(of_text(NAME_LENGTH, table_of_file)),
    ),
    scalar(
        "SYS.FORMAT_BYTES",
        Arity::exactly(1),
        "sys.format_bytes(bytes)\nA number of bytes with a unit.",
        bind_format_bytes,
    ),
    scalar(
        "SYS.FORMAT_TIME",
        Arity::exactly(1),
        "sys.format_time(picoseconds)\nA time with a unit.",
        bind_format_time,
    ),
    scalar(
        "SYS.FORMAT_PATH",
        Arity::exactly(1),
        "sys.format_path(path)\nThe path with the name of a system variable in place of the directory that it is set to.",
        bind_format_path,
    )
    .stable(),
    scalar(
        "SYS.FORMAT_STATEMENT",
        Arity::exactly(1),
        "sys.format_statement(statement)\nBeginning and end of a statement that is longer than @sys.statement_truncate_len, 64 if that is not set.",
        bind_format_statement,
    )
    .stable()
    .one_thread(),
    scalar(
        "SYS.QUOTE_IDENTIFIER",
        Arity::exactly(1),
        "sys.quote_identifier(name)\nThe name in backticks.",
        |_, _| Ok(of_text(u64::from(TEXT_LENGTH), |name| format!("`{}`", name.replace('`', "``")))),
    ),
    scalar(
        "SYS.LIST_ADD",
        Arity::exactly(2),
        "sys.list_add(list, value)\nThe list, whose parts are divided by commas, with one more.",
        |_, _| Ok(of_list("list_add", "in_add_value", list_add)),
    ),
    scalar(
        "SYS.LIST_DROP",
        Arity::exactly(2),
        "sys.list_drop(list, value)\nThe list, whose parts are divided by commas, without the value.",
        |_, _| Ok(of_list("list_drop", "in_drop_value", list_drop)),
    ),
    scalar(
        "SYS.PS_IS_INSTRUMENT_DEFAULT_ENABLED",
        Arity::exactly(1),
        "sys.ps_is_instrument_default_enabled(instrument)\nWhether an instrument is on in a server that nobody configured.",
        |_, _| Ok(of_instrument(is_default_enabled)),
    ),
    scalar(
        "SYS.PS_IS_INSTRUMENT_DEFAULT_TIMED",
        Arity::exactly(1),
        "sys.ps_is_instrument_default_timed(instrument)\nWhether an instrument takes times in a server that nobody configured.",
        |_, _| Ok(of_instrument(is_default_timed)),
    ),
    scalar("SYS.VERSION_MAJOR", Arity::exactly(0), "sys.version_major()\nThe first number of the version.", |_, _| {
        Ok(version_part(0))
    })
    .stable(),
    scalar("SYS.VERSION_MINOR", Arity::exactly(0), "sys.version_minor()\nThe second number of the version.", |_, _| {
        Ok(version_part(1))
    })
    .stable(),
    scalar("SYS.VERSION_PATCH", Arity::exactly(0), "sys.version_patch()\nThe third number of the version.", |_, _| {
        Ok(version_part(2))
    })
    .stable(),
];

/// A TEXT.
pub(crate) fn long_text() -> DataType {
    let mut ty = DataType::new(TypeKind::Text, TEXT_LENGTH, 0);
    ty.collation = CollationId::UTF8MB4_0900_AI_CI;
    ty
}

/// A VARCHAR.
pub(crate) fn short_text(characters: u64) -> DataType {
    text_type(characters, CollationId::UTF8MB4_0900_AI_CI)
}

/// A function from text to text.
fn of_text(characters: u64, code: fn(&str) -> String) -> BoundFunction {
    BoundFunction::new(short_text(characters), vec![Coercion::Text], move |_, args| {
        Ok(Value::from(code(&kit::text(&args[0])).as_str()))
    })
}

fn characters(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    &text[..end]
}

/// The last part of a path, and what is before it.
fn last_part(path: &str) -> (Option<&str>, &str) {
    path.rsplit_once('/').map_or((None, path), |(before, last)| (Some(before), last))
}

fn schema_of_file(path: &str) -> String {
    let path = path.replace('\\', "/");
    let (before, last) = last_part(&path);
    let schema = before.map_or(last, |before| last_part(before).1);
    characters(schema, NAME_LENGTH as usize).to_owned()
}

fn table_of_file(path: &str) -> String {
    let path = path.replace('\\', "/").replace("@0024", "$");
    let last = last_part(&path).1;
    let table = last.split_once('.').map_or(last, |(table, _)| table);
    characters(table, NAME_LENGTH as usize).to_owned()
}

fn bind_format_bytes(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(long_text(), vec![Coercion::Text], |_, args| {
        Ok(Value::from(format_bytes(leading_number(&kit::text(&args[0]))).as_str()))
    }))
}

/// The number that a text begins with; 0 if it begins with none.
fn leading_number(text: &str) -> f64 {
    types::Decimal::parse_lenient(text.as_bytes()).value.to_f64()
}

fn format_bytes(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    const STEP: f64 = 1024.0;
    // Larger numbers of the largest unit are written with an exponent.
    const PLAIN_MAX: f64 = 100_000.0;
    let mut amount = bytes;
    let mut unit = None;
    for name in UNITS {
        if amount.abs() < STEP {
            break;
        }
        amount /= STEP;
        unit = Some(name);
    }
    match unit {
        None => format!("{:4} bytes", bytes.trunc() as i64),
        Some(unit) if amount.abs() >= PLAIN_MAX => {
            format!("{} {unit}", format!("{amount:.2e}").replace('e', "e+"))
        }
        Some(unit) => format!("{amount:.2} {unit}"),
    }
}

fn bind_format_time(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(long_text(), vec![Coercion::Text], |_, args| {
        Ok(Value::from(format_time(&kit::text(&args[0])).as_str()))
    }))
}

/// Units, the longest first, in picoseconds.
const TIME_UNITS: [(f64, &str); 8] = [
    (604_800e12, "w"),
    (86_400e12, "d"),
    (3_600e12, "h"),
    (60e12, "m"),
    (1e12, "s"),
    (1e9, "ms"),
    (1e6, "us"),
    (1e3, "ns"),
];

/// A text that is no number, or too small for a unit, stays as it is.
fn format_time(picoseconds: &str) -> String {
    let number = picoseconds.trim().parse().unwrap_or_else(|_| leading_number(picoseconds));
    let unit = TIME_UNITS.iter().find(|(length, _)| number >= *length);
    match unit {
        Some((length, unit)) => format!("{} {unit}", (number / length * 100.0).round() / 100.0),
        None => format!("{picoseconds} ps"),
    }
}

/// Variables that name directories.
const DIRECTORIES: [&str; 7] = [
    "datadir",
    "tmpdir",
    "replica_load_tmpdir",
    "innodb_data_home_dir",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "basedir",
];

fn bind_format_path(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(short_text(PATH_LENGTH), vec![Coercion::Text], |ctx, args| {
        let path = kit::text(&args[0]);
        for variable in DIRECTORIES {
            let Some(directory) = ctx.session.system_variable(variable) else { continue };
            let directory = kit::text(&directory);
            let directory = directory.trim_end_matches('/');
            let rest = path.strip_prefix(directory).filter(|_| !directory.is_empty());
            if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('/')) {
                return Ok(Value::from(format!("@@{variable}/{rest}").as_str()));
            }
        }
        Ok(args[0].clone())
    }))
}

fn bind_format_statement(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let mut ty = DataType::new(TypeKind::LongText, u32::MAX / 4, 0);
    ty.collation = CollationId::UTF8MB4_0900_AI_CI;
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let length = statement_length(ctx)?;
        Ok(Value::from(format_statement(&kit::text(&args[0]), length).as_str()))
    }))
}

fn statement_length(ctx: &FunctionContext<'_>) -> Result<f64> {
    let value = ctx.session.user_variable("sys.statement_truncate_len").map(|(value, _)| value);
    match value {
        None | Some(Value::Null) => Ok(STATEMENT_LENGTH),
        Some(Value::Bytes(text)) => {
            let text = String::from_utf8_lossy(&text);
            let wrong =
                || Error::with(ErrorCode::TRUNCATED_WRONG_VALUE, &[&"DOUBLE", &text.as_ref()]);
            text.trim().parse().map_err(|_| wrong())
        }
        Some(number) => Ok(kit::double(&number)),
    }
}

fn format_statement(statement: &str, length: f64) -> String {
    let count = statement.chars().count();
    let cut: Cow<'_, str> = if count as f64 > length {
        let kept = (length / 2.0 - 2.0).round_ties_even().max(0.0) as usize;
        let rest = statement.char_indices().nth(count.saturating_sub(kept));
        let end = rest.map_or("", |(at, _)| &statement[at..]);
        Cow::Owned(format!("{} ... {end}", characters(statement, kept)))
    } else {
        Cow::Borrowed(statement)
    };
    cut.replace('\n', " ")
}

/// A function of a list, whose second argument may not be NULL.
fn of_list(
    name: &'static str,
    parameter: &'static str,
    code: fn(&str, &str) -> String,
) -> BoundFunction {
    let bound = BoundFunction::new(long_text(), vec![Coercion::Text], move |_, args| {
        if args[1].is_null() {
            let message =
                format!("Function sys.{name}: {parameter} input variable should not be NULL");
            return Err(Error::with_sqlstate(ErrorCode::INVALID_USE_OF_NULL, *b"02200", message));
        }
        if args[0].is_null() {
            let is_made = name == "list_add";
            return Ok(if is_made { args[1].clone() } else { Value::Null });
        }
        Ok(Value::from(code(&kit::text(&args[0]), &kit::text(&args[1])).as_str()))
    });
    bound.with_nulls()
}

fn list_add(list: &str, value: &str) -> String {
    if list.is_empty() {
        return value.to_owned();
    }
    format!("{},{value}", list.trim_matches(' ').trim_matches(','))
}

/// The reference removes the text of the value wherever a part begins with it.
fn list_drop(list: &str, value: &str) -> String {
    let list = format!(",{list}").replace(&format!(",{value}"), "");
    list.replace(&format!(", {value}"), "").trim_matches(',').to_owned()
}

/// A function that is true or not for the name of an instrument.
fn of_instrument(code: fn(&str) -> bool) -> BoundFunction {
    let bound = BoundFunction::new(short_text(3), vec![Coercion::Text], move |_, args| {
        let is_on = code(&kit::text(&args[0]).to_lowercase());
        Ok(Value::from(if is_on { "YES" } else { "NO" }))
    });
    bound.with_nulls()
}

fn is_default_enabled(instrument: &str) -> bool {
    let on =
        ["stage/innodb/", "stage/sql/copy to tmp table", "stage/sql/applying batch of row changes"];
    let off = ["wait/synch/", "wait/io/socket/", "stage/"];
    let begins = |names: &[&str]| names.iter().any(|name| instrument.starts_with(name));
    begins(&on) || !begins(&off)
}

fn is_default_timed(instrument: &str) -> bool {
    let is_socket = instrument.starts_with("wait/io/socket/");
    is_socket || is_default_enabled(instrument) && !instrument.starts_with("memory/")
}

/// A number of the version.
fn version_part(at: usize) -> BoundFunction {
    let mut ty = DataType::new(TypeKind::TinyInt, 3, 0);
    ty.unsigned = true;
    BoundFunction::new(ty, Vec::new(), move |ctx, _| {
        let version = ctx.session.version();
        let numbers = version.split('-').next().unwrap_or_default();
        let number = numbers.split('.').nth(at).and_then(|number| number.parse().ok());
        Ok(number.map_or(Value::Null, Value::UInt))
    })
}
