//! `binlog_row_value_options`: when it may be set, and what is said about it.

use errors::{ErrorCode, Result, bail};
use types::Value;
use variables::{as_text, as_u64};

use crate::session::Session;

const OPTIONS: &str = "binlog_row_value_options";
const IMAGE: &str = "binlog_row_image";

/// Rows of one transaction are logged in one way.
///
/// # Errors
/// 1766.
pub(super) fn check(session: &Session, name: &str) -> Result<()> {
    if name == OPTIONS && (session.transactions.explicit || session.transactions.is_started()) {
        bail!(VARIABLE_NOT_SETTABLE_IN_TRANSACTION, OPTIONS);
    }
    Ok(())
}

/// Warnings for an assignment that leaves little use in the option.
pub(super) fn note(session: &mut Session, name: &str, value: &Value, is_global: bool) {
    let services = &session.services;
    let other = match name {
        OPTIONS => services.variable(IMAGE, is_global),
        IMAGE => services.variable(OPTIONS, is_global),
        _ => return,
    };
    let other = other.map_or_else(String::new, |other| as_text(&other));
    let assigned = as_text(value);
    let (options, image) = if name == OPTIONS { (assigned, other) } else { (other, assigned) };
    if options.is_empty() {
        return;
    }
    let is_off = |name| services.variable(name, false).is_some_and(|value| as_u64(&value) == 0);
    let disabled = is_off("log_bin") || !is_global && is_off("sql_log_bin");
    let (code, words): (ErrorCode, [&dyn std::fmt::Display; 2]) = if name == OPTIONS && disabled {
        let why = &"the binary log is disabled";
        (ErrorCode::WARN_BINLOG_PARTIAL_UPDATES_DISABLED, [why, &options])
    } else if image == "FULL" {
        let code = ErrorCode::WARN_BINLOG_PARTIAL_UPDATES_SUGGESTS_PARTIAL_IMAGES;
        (code, [&image, &options])
    } else {
        return;
    };
    session.working.warn(code, &words);
}
