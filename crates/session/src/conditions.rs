//! GET DIAGNOSTICS and SIGNAL.

use errors::{Condition, Error, ErrorCode, Level, Result, bail, err};
use plugin_api::{OkInfo, ResultSink, SessionServices};
use syntax::ast::{ConditionValue, GetDiagnostics, IntoVariable, Signal};
use types::{CollationId, DataType, Value};

use crate::session::Session;
use crate::statement::Running;

impl Session {
    /// GET [CURRENT] DIAGNOSTICS.
    pub(crate) fn get_diagnostics(
        &mut self,
        get: &GetDiagnostics,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.keeps_diagnostics = true;
        if get.stacked {
            bail!(GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER);
        }
        let condition = match &get.condition {
            None => None,
            Some(expr) => {
                let number = match self.evaluate(expr, running)?.0 {
                    Value::Int(number) => usize::try_from(number).unwrap_or(0),
                    Value::UInt(number) => usize::try_from(number).unwrap_or(0),
                    _ => 0,
                };
                let conditions = self.diagnostics.conditions();
                let found = number.checked_sub(1).and_then(|at| conditions.get(at)).cloned();
                Some(found.ok_or_else(|| err!(DA_INVALID_CONDITION_NUMBER))?)
            }
        };
        for (target, item) in &get.items {
            let value = match &condition {
                None => self.statement_item(&item.text)?,
                Some(condition) => condition_item(condition, &item.text)?,
            };
            let ty = match &value {
                Value::Int(_) => DataType::bigint(),
                _ => DataType::varchar(512, CollationId::UTF8MB4_0900_AI_CI),
            };
            match target {
                IntoVariable::User(name) => {
                    self.services.set_user_variable(&name.text, value, ty);
                }
                IntoVariable::Local(name) => bail!(SP_UNDECLARED_VAR, name.text),
            }
        }
        self.send_ok(sink, OkInfo::default())
    }

    fn statement_item(&self, item: &str) -> Result<Value> {
        match item.to_ascii_uppercase().as_str() {
            "NUMBER" => Ok(Value::Int(self.diagnostics.conditions().len() as i64)),
            "ROW_COUNT" => Ok(Value::Int(self.services.row_count)),
            _ => Err(err!(PARSE_ERROR, item, 1)),
        }
    }

    /// SIGNAL; RESIGNAL has no handler to be in outside stored programs.
    pub(crate) fn run_signal(&mut self, signal: &Signal, running: &Running<'_>) -> Result<()> {
        if signal.resignal {
            bail!(RESIGNAL_WITHOUT_ACTIVE_HANDLER);
        }
        let Some(ConditionValue::SqlState(state)) = &signal.condition else {
            bail!(SIGNAL_BAD_CONDITION_TYPE);
        };
        let sqlstate: [u8; 5] =
            state.as_bytes().try_into().map_err(|_| err!(SP_BAD_SQLSTATE, state))?;
        if &sqlstate[..2] == b"00" {
            bail!(SP_BAD_SQLSTATE, state);
        }
        let (mut code, default) = match &sqlstate[..2] {
            b"01" => (ErrorCode::SIGNAL_WARN, "Unhandled user-defined warning condition"),
            b"02" => (ErrorCode::SIGNAL_NOT_FOUND, "Unhandled user-defined not found condition"),
            _ => (ErrorCode::SIGNAL_EXCEPTION, "Unhandled user-defined exception condition"),
        };
        let mut message = default.to_owned();
        for (item, value) in &signal.items {
            let value = self.evaluate(value, running)?.0;
            if value.is_null() {
                bail!(WRONG_VALUE_FOR_VAR, item.text, "NULL");
            }
            if item.is("MESSAGE_TEXT") {
                let mut text = Vec::new();
                value.write_plain_text(&mut text);
                message = String::from_utf8_lossy(&text).chars().take(128).collect();
            } else if item.is("MYSQL_ERRNO") {
                let number = match value {
                    Value::Int(number) => u16::try_from(number).ok(),
                    Value::UInt(number) => u16::try_from(number).ok(),
                    _ => None,
                };
                let number = number.filter(|number| *number > 0);
                let number = number.ok_or_else(|| err!(WRONG_VALUE_FOR_VAR, item.text, "0"))?;
                code = ErrorCode(number);
            }
        }
        if &sqlstate[..2] == b"01" {
            self.working.push(Condition { level: Level::Warning, code, sqlstate, message });
            return Ok(());
        }
        Err(Error::with_sqlstate(code, sqlstate, message))
    }
}

fn condition_item(condition: &Condition, item: &str) -> Result<Value> {
    let state = String::from_utf8_lossy(&condition.sqlstate).into_owned();
    let is_server = !matches!(&condition.sqlstate[..2], b"HY");
    Ok(match item.to_ascii_uppercase().as_str() {
        "RETURNED_SQLSTATE" => Value::text(&state),
        "MYSQL_ERRNO" => Value::Int(i64::from(condition.code.0)),
        "MESSAGE_TEXT" => Value::text(&condition.message),
        "CLASS_ORIGIN" | "SUBCLASS_ORIGIN" => {
            Value::text(if is_server { "ISO 9075" } else { "MySQL" })
        }
        "CONSTRAINT_CATALOG" | "CONSTRAINT_SCHEMA" | "CONSTRAINT_NAME" | "CATALOG_NAME"
        | "SCHEMA_NAME" | "TABLE_NAME" | "COLUMN_NAME" | "CURSOR_NAME" => Value::text(""),
        _ => bail!(PARSE_ERROR, item, 1),
    })
}
