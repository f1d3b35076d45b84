//! Conversions between SQL types: `CAST`, implicit conversion, and assignment to columns.
//!
//! All session settings come in through `CastContext`; warnings leave through it.

mod assign;
mod assign_strings;
mod assign_temporal;
mod cast;
mod fixed;
mod numbers;
mod temporal;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Write;

use errors::{Condition, Diagnostics, ErrorCode, Level};

pub use assign::{StoreMode, store};
pub use assign_strings::must_convert;
pub use cast::{cast, json_of_value};
pub use numbers::{parse_f64, to_bool, to_decimal, to_f64, to_i64, to_u64};
pub use temporal::{json_as_temporal, to_date, to_datetime, to_time};

use crate::{Date, SqlMode, Utc, ZoneRules};

/// The session settings that conversions need, and the destination of their warnings.
pub struct CastContext<'a> {
    /// SQL mode.
    pub sql_mode: SqlMode,
    /// Where warnings go.
    pub diagnostics: &'a mut Diagnostics,
    /// The session's zone: for TIMESTAMP columns and for texts with an offset.
    pub time_zone: &'a dyn ZoneRules,
    /// The current date: a TIME becomes a DATETIME of that day.
    pub today: Date,
    /// Name of the target column.
    pub column: &'a str,
    /// Number of the row, from 1.
    pub row: u64,
}

impl<'a> CastContext<'a> {
    /// A context in UTC without a current date, for row 1 of no column.
    pub fn new(sql_mode: SqlMode, diagnostics: &'a mut Diagnostics) -> CastContext<'a> {
        CastContext {
            sql_mode,
            diagnostics,
            time_zone: &Utc,
            today: Date::ZERO,
            column: "",
            row: 1,
        }
    }

    /// Warning 1292 about a text that is not wholly a number or date.
    #[cold]
    pub fn warn_truncated(&mut self, kind: &str, text: &[u8]) {
        self.diagnostics.warn(ErrorCode::TRUNCATED_WRONG_VALUE, &[&kind, &text_for_message(text)]);
    }

    /// A warning with a different wording than the catalogue's.
    #[cold]
    pub(crate) fn warn_message(&mut self, code: ErrorCode, message: String) {
        let condition = Condition::new(Level::Warning, code, code.sqlstate(), message);
        self.diagnostics.push(condition);
    }
}

/// Longest value that a message shows.
const MESSAGE_VALUE_MAX: usize = 128;

/// A value as messages show it: bytes that are not UTF-8 as `\xNN`, truncated at 128.
pub(crate) fn text_for_message(text: &[u8]) -> Cow<'_, str> {
    let cut = charset::char_prefix(text, MESSAGE_VALUE_MAX);
    let text = &text[..cut];
    match std::str::from_utf8(text) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut out = String::new();
            for chunk in text.utf8_chunks() {
                out.push_str(chunk.valid());
                for byte in chunk.invalid() {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\x{byte:02X}");
                }
            }
            Cow::Owned(out)
        }
    }
}
