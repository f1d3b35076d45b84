//! GET DIAGNOSTICS, SIGNAL and RESIGNAL, in stored programs and outside.

use errors::{
    Condition, ConditionItem, ConditionItems, Error, ErrorCode, Level, Result, bail, err,
};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{
    ConditionValue, Expr, ExprKind, GetDiagnostics, Ident, IntoVariable, Literal, Signal,
};
use types::{CollationId, DataType, Value};
use variables::as_u64;

use crate::frame::assign_local;
use crate::host::ProgramHost;
use crate::running::Running;

/// Maximum length of MESSAGE_TEXT in characters.
const MESSAGE_CHARS_MAX: usize = 128;
/// Maximum length of the other items, which are names.
const NAME_CHARS_MAX: usize = 64;

/// GET DIAGNOSTICS: reads the conditions of the previous statement, and keeps them.
///
/// # Errors
/// 3028 outside a handler, errors of the assignment.
pub fn get_diagnostics<H: ProgramHost + ?Sized>(
    host: &mut H,
    get: &GetDiagnostics,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    *host.conditions().keeps = true;
    let stacked = host.state().frame().and_then(|frame| frame.handled.last()).cloned();
    let conditions = match (get.stacked, stacked) {
        (true, None) => bail!(GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER),
        (true, Some(conditions)) => conditions,
        (false, _) => host.conditions().last.conditions().to_vec(),
    };
    let row_count = host.row_count();
    let mut values = Vec::with_capacity(get.items.len());
    match &get.condition {
        None => {
            for (_, item) in &get.items {
                values.push(match &*item.text.to_ascii_uppercase() {
                    "NUMBER" => Value::UInt(conditions.len() as u64),
                    _ => Value::Int(row_count),
                });
            }
        }
        Some(number) => {
            let condition = numbered(host, &conditions, number, running);
            let condition = match condition {
                Ok(condition) => condition,
                Err(error) if matches!(number.kind, ExprKind::SystemVar(_)) => return Err(error),
                Err(error) => {
                    // The error is added to the conditions that the statement read.
                    host.conditions().last.push_error(Level::Error, &error);
                    return host.send_ok(sink, OkInfo { warnings: 1, ..OkInfo::default() });
                }
            };
            for (_, item) in &get.items {
                values.push(condition_item(&condition, &item.text));
            }
        }
    }
    for ((target, _), value) in get.items.iter().zip(values) {
        assign(host, target, value)?;
    }
    host.set_row_count(row_count);
    host.send_ok(sink, OkInfo::default())
}

/// The condition that GET DIAGNOSTICS names by its number, from 1.
fn numbered<H: ProgramHost + ?Sized>(
    host: &mut H,
    conditions: &[Condition],
    number: &Expr,
    running: &Running<'_>,
) -> Result<Condition> {
    let (number, _) = host.evaluate(number, running)?;
    let number = if let Value::Bytes(text) = &number {
        String::from_utf8_lossy(text).trim().parse().unwrap_or(0)
    } else {
        as_u64(&number)
    };
    let position = number.checked_sub(1).and_then(|at| usize::try_from(at).ok());
    let condition = position.and_then(|at| conditions.get(at)).cloned();
    condition.ok_or_else(|| err!(DA_INVALID_CONDITION_NUMBER))
}

fn assign<H: ProgramHost + ?Sized>(
    host: &mut H,
    target: &IntoVariable,
    value: Value,
) -> Result<()> {
    match target {
        IntoVariable::User(name) => {
            let ty = type_of_item(&value);
            host.set_user_variable(&name.text, value, ty);
            Ok(())
        }
        IntoVariable::Local(variable) => {
            let ty = type_of_item(&value);
            assign_local(host, variable, &value, &ty)
        }
    }
}

fn type_of_item(value: &Value) -> DataType {
    match value {
        Value::Int(_) => DataType::bigint(),
        Value::UInt(_) => DataType::bigint_unsigned(),
        _ => DataType::varchar(128, CollationId::UTF8MB3_GENERAL_CI),
    }
}

/// SIGNAL.
///
/// # Errors
/// The condition itself when it is an error; errors of invalid conditions.
pub fn run_signal<H: ProgramHost + ?Sized>(
    host: &mut H,
    signal: &Signal,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if let Some(ConditionValue::Name(name)) = &signal.condition {
        bail!(SP_COND_MISMATCH, name.text);
    }
    let stacked = host.state().frame().and_then(|frame| frame.handled.last());
    let mut stacked = stacked.filter(|_| signal.resignal).cloned().unwrap_or_default();
    if signal.resignal && stacked.is_empty() {
        bail!(RESIGNAL_WITHOUT_ACTIVE_HANDLER);
    }
    // RESIGNAL alone changes the condition that is handled; one with a condition adds that to it.
    let handled = match signal.condition {
        None => stacked.pop(),
        Some(_) => stacked.last().cloned(),
    };
    let state = match &signal.condition {
        None if handled.is_some() => handled.as_ref().map_or([0; 5], |known| known.sqlstate),
        Some(ConditionValue::SqlState(state)) => sqlstate(state)?,
        _ => bail!(SIGNAL_BAD_CONDITION_TYPE),
    };
    let (mut level, mut code) = match &state[..2] {
        b"01" => (Level::Warning, ErrorCode::SIGNAL_WARN),
        b"02" => (Level::Error, ErrorCode::SIGNAL_NOT_FOUND),
        _ => (Level::Error, ErrorCode::SIGNAL_EXCEPTION),
    };
    // Items that are not set again keep the values of the condition that is handled; a new condition keeps its message alone.
    let (mut message, mut items) = match &handled {
        Some(handled) if signal.condition.is_none() => (handled.message.clone(), handled.items()),
        Some(handled) => (handled.message.clone(), ConditionItems::of_server(state)),
        None => (errors::fill_template(code, &[]), ConditionItems::default()),
    };
    // The new condition has its place: the oldest give way.
    let kept = (host.conditions().working.max_error_count() as usize).saturating_sub(1);
    let lost = stacked.len().saturating_sub(kept);
    for condition in stacked.into_iter().skip(lost) {
        host.conditions().working.push(condition);
    }
    if let (None, Some(handled)) = (&signal.condition, &handled) {
        // A warning of the server stays one, whatever the class of its SQLSTATE.
        (level, code) = (handled.level, handled.code);
    }
    for (item, value) in in_order(&signal.items) {
        match ConditionItem::of_name(&item.text) {
            Some(kind) => {
                items.set(kind, item_text(host, item, value, NAME_CHARS_MAX, running)?);
            }
            None if item.text.eq_ignore_ascii_case("MESSAGE_TEXT") => {
                message = item_text(host, item, value, MESSAGE_CHARS_MAX, running)?;
            }
            None => code = item_number(host, item, value, running)?,
        }
    }
    if level == Level::Error {
        return Err(Error::with_sqlstate(code, state, message).with_items(items));
    }
    let items = Some(Box::new(items));
    host.conditions().working.push(Condition { level, code, sqlstate: state, message, items });
    host.set_row_count(0);
    host.send_ok(sink, OkInfo::default())
}

/// The items in the order in which they are evaluated, whatever the order in which they are written: it decides which error is the first.
fn in_order(items: &[(Ident, Expr)]) -> Vec<&(Ident, Expr)> {
    let mut ordered: Vec<_> = items.iter().collect();
    ordered.sort_by_key(|(item, _)| {
        let is_number = item.text.eq_ignore_ascii_case("MYSQL_ERRNO");
        (is_number, ConditionItem::of_name(&item.text).map_or(usize::MAX, |kind| kind as usize))
    });
    ordered
}

/// The text of a value of SIGNAL.
fn item_value<H: ProgramHost + ?Sized>(
    host: &mut H,
    item: &Ident,
    expr: &Expr,
    running: &Running<'_>,
) -> Result<String> {
    let (value, ty) = host.evaluate(expr, running)?;
    if value.is_null() {
        bail!(WRONG_VALUE_FOR_VAR, item.text.to_ascii_uppercase(), "NULL");
    }
    let mut text = Vec::new();
    types::text::to_text(&value, &ty, &mut text);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// An item that is a text of at most `chars_max` characters.
fn item_text<H: ProgramHost + ?Sized>(
    host: &mut H,
    item: &Ident,
    expr: &Expr,
    chars_max: usize,
    running: &Running<'_>,
) -> Result<String> {
    let text = item_value(host, item, expr, running)?;
    let Some((end, _)) = text.char_indices().nth(chars_max) else { return Ok(text) };
    let name = item.text.to_ascii_uppercase();
    if host.settings().sql_mode.is_strict() {
        bail!(COND_ITEM_TOO_LONG, name);
    }
    host.conditions().working.warn(ErrorCode::COND_ITEM_TRUNCATED, &[&name]);
    Ok(text.get(..end).unwrap_or_default().to_owned())
}

/// MYSQL_ERRNO: a number within its range.
fn item_number<H: ProgramHost + ?Sized>(
    host: &mut H,
    item: &Ident,
    expr: &Expr,
    running: &Running<'_>,
) -> Result<ErrorCode> {
    if let ExprKind::Literal(Literal::Hex(literal) | Literal::Bit(literal)) = &expr.kind
        && let Some(number) = small_number(&literal.value)
    {
        return Ok(ErrorCode(number));
    }
    let text = item_value(host, item, expr, running)?;
    let number = text.parse::<f64>().map_or(0.0, f64::round);
    match number >= 1.0 && number <= f64::from(u16::MAX) {
        true => Ok(ErrorCode(number as u16)),
        false => Err(err!(WRONG_VALUE_FOR_VAR, "MYSQL_ERRNO", text)),
    }
}

/// The number that a binary literal writes, if it may be one of an error.
fn small_number(bytes: &[u8]) -> Option<u16> {
    let add = |sum: u64, byte: &u8| sum.checked_mul(256)?.checked_add((*byte).into());
    let number = bytes.iter().try_fold(0, add)?;
    u16::try_from(number).ok().filter(|number| *number > 0)
}

/// Whether it is five letters or digits and not a success code.
fn sqlstate(text: &str) -> Result<[u8; 5]> {
    let state: Option<[u8; 5]> = text.as_bytes().try_into().ok();
    state
        .filter(|state| {
            let well_formed = |byte: &u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
            state.iter().all(well_formed) && !state.starts_with(b"00")
        })
        .ok_or_else(|| err!(SP_BAD_SQLSTATE, text))
}

fn condition_item(condition: &Condition, item: &str) -> Value {
    let state = String::from_utf8_lossy(&condition.sqlstate).into_owned();
    match &*item.to_ascii_uppercase() {
        "RETURNED_SQLSTATE" => Value::text(&state),
        "MESSAGE_TEXT" => Value::text(&condition.message),
        "MYSQL_ERRNO" => Value::UInt(condition.code.0.into()),
        name => {
            let (item, items) = (ConditionItem::of_name(name), condition.items());
            Value::text(item.map_or("", |item| items.get(item)))
        }
    }
}
