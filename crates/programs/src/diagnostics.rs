//! GET DIAGNOSTICS, SIGNAL and RESIGNAL, in stored programs and outside.

use errors::{Condition, Error, ErrorCode, Level, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{ConditionValue, Expr, GetDiagnostics, Ident, IntoVariable, Signal};
use types::{CollationId, DataType, Value};
use variables::as_u64;

use crate::frame::assign_local;
use crate::host::ProgramHost;
use crate::running::Running;

/// Largest valid MYSQL_ERRNO.
const ERRNO_MAX: u64 = 65_535;
/// Maximum length of MESSAGE_TEXT in characters.
const MESSAGE_CHARS_MAX: usize = 128;

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
            let (number, _) = host.evaluate(number, running)?;
            let position = as_u64(&number).checked_sub(1);
            let Some(condition) =
                position.and_then(|at| conditions.get(usize::try_from(at).ok()?)).cloned()
            else {
                // The error is added to the conditions that the statement read.
                let error = err!(DA_INVALID_CONDITION_NUMBER);
                host.conditions().last.push_error(Level::Error, &error);
                return host.send_ok(sink, OkInfo::default());
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

fn assign<H: ProgramHost + ?Sized>(
    host: &mut H,
    target: &IntoVariable,
    value: Value,
) -> Result<()> {
    match target {
        IntoVariable::User(name) => {
            let ty = match value {
                Value::Int(_) => DataType::bigint(),
                Value::UInt(_) => DataType::bigint_unsigned(),
                _ => DataType::varchar(128, CollationId::UTF8MB4_0900_AI_CI),
            };
            host.set_user_variable(&name.text, value, ty);
            Ok(())
        }
        IntoVariable::Local(variable) => {
            let text = DataType::varchar(128, CollationId::UTF8MB4_0900_AI_CI);
            let ty = match value {
                Value::Int(_) => DataType::bigint(),
                Value::UInt(_) => DataType::bigint_unsigned(),
                _ => text,
            };
            assign_local(host, variable, &value, &ty)
        }
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
    let stacked = host.state().frame().and_then(|frame| frame.handled.last());
    let mut stacked = stacked.filter(|_| signal.resignal).cloned().unwrap_or_default();
    if signal.resignal && stacked.is_empty() {
        bail!(RESIGNAL_WITHOUT_ACTIVE_HANDLER);
    }
    // RESIGNAL alone changes the condition that is handled; one with a condition adds that to it.
    let handled = if signal.condition.is_none() { stacked.pop() } else { None };
    let state = match &signal.condition {
        None if handled.is_some() => handled.as_ref().map_or([0; 5], |known| known.sqlstate),
        Some(ConditionValue::SqlState(state)) => sqlstate(state)?,
        Some(ConditionValue::Name(name)) => bail!(SP_COND_MISMATCH, name.text),
        _ => bail!(SIGNAL_BAD_CONDITION_TYPE),
    };
    let (level, mut code) = match &state[..2] {
        b"01" => (Level::Warning, ErrorCode::SIGNAL_WARN),
        b"02" => (Level::Error, ErrorCode::SIGNAL_NOT_FOUND),
        _ => (Level::Error, ErrorCode::SIGNAL_EXCEPTION),
    };
    let mut message = errors::fill_template(code, &[]);
    for condition in stacked {
        host.conditions().working.push(condition);
    }
    if let Some(handled) = handled {
        // Items that are not set again keep their values.
        (code, message) = (handled.code, handled.message);
    }
    for (item, value) in &signal.items {
        let value = signal_item(host, item, value, running)?;
        match (&*item.text.to_ascii_uppercase(), value) {
            ("MESSAGE_TEXT", Value::Bytes(bytes)) => {
                let text = String::from_utf8_lossy(bytes.as_slice());
                message = text.chars().take(MESSAGE_CHARS_MAX).collect();
            }
            ("MYSQL_ERRNO", value) => code = ErrorCode(as_u64(&value) as u16),
            // The other items are accepted but not shown yet.
            _ => {}
        }
    }
    if level == Level::Error {
        return Err(Error::with_sqlstate(code, state, message));
    }
    host.conditions().working.push(Condition { level, code, sqlstate: state, message });
    host.set_row_count(0);
    host.send_ok(sink, OkInfo::default())
}

/// The value of a SIGNAL item; texts as bytes, the number within its range.
fn signal_item<H: ProgramHost + ?Sized>(
    host: &mut H,
    item: &Ident,
    expr: &Expr,
    running: &Running<'_>,
) -> Result<Value> {
    let name = item.text.to_ascii_uppercase();
    let (value, ty) = host.evaluate(expr, running)?;
    if value.is_null() {
        bail!(WRONG_VALUE_FOR_VAR, name, "NULL");
    }
    let mut text = Vec::new();
    types::text::to_text(&value, &ty, &mut text);
    if name != "MYSQL_ERRNO" {
        return Ok(Value::Bytes(text.into()));
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    match text.parse::<u64>() {
        Ok(number) if (1..=ERRNO_MAX).contains(&number) => Ok(Value::UInt(number)),
        _ => Err(err!(WRONG_VALUE_FOR_VAR, name, text)),
    }
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
        "CLASS_ORIGIN" | "SUBCLASS_ORIGIN" => {
            Value::text(if is_standard(&state) { "ISO 9075" } else { "MySQL" })
        }
        _ => Value::text(""),
    }
}

/// Whether the SQL standard defines the class.
fn is_standard(state: &str) -> bool {
    state.starts_with(|c: char| ('0'..='4').contains(&c) || ('A'..='H').contains(&c))
}
