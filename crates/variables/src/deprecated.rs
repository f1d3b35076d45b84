//! The variables that the reference is about to remove, with the warnings that their use raises.

use errors::{Condition, Diagnostics, ErrorCode, Level};
use types::{SqlMode, Value};

use crate::{as_text, as_u64};

macro_rules! removed {
    ($($name:literal $(=> $instead:literal)?,)*) => {
        /// Names and texts of warning 1287, in the order of the names.
        const REMOVED: &[(&str, &str)] = &[$((
            $name,
            concat!(
                "'@@", $name, "' is deprecated and will be removed in a future release."
                $(, " Please use ", $instead, " instead.")?
            ),
        ),)*];
    };
}

removed! {
    "binlog_format",
    "delayed_insert_limit",
    "delayed_insert_timeout",
    "delayed_queue_size",
    "have_profiling",
    "have_query_cache",
    "log_bin_trust_function_creators",
    "max_delayed_threads",
    "max_insert_delayed_threads",
    "max_length_for_sort_data",
    "profiling",
    "profiling_history_size",
    "pseudo_slave_mode" => "pseudo_replica_mode",
    "query_prealloc_size",
    "ssl_fips_mode",
    "terminology_use_previous",
    "transaction_prealloc_size",
}

/// Variables that SET is about to lose.
const READ_ONLY_SOON: &[&str] =
    &["character_set_database", "collation_database", "default_collation_for_utf8mb4"];

/// The text of warning 1287 that reading or setting a variable raises; its name is in lower case.
pub fn removal_of(name: &str) -> Option<&'static str> {
    let at = REMOVED.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(REMOVED[at].1)
}

/// The warning that setting a variable raises.
pub fn warning_of_set(name: &str) -> Option<(ErrorCode, String)> {
    if READ_ONLY_SOON.contains(&name) {
        let text = format!(
            "Updating '{name}' is deprecated. It will be made read-only in a future release."
        );
        return Some((ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT, text));
    }
    let text = removal_of(name)?;
    Some((ErrorCode::WARN_DEPRECATED_SYNTAX, text.to_owned()))
}

/// The variable that lets foreign keys refer to columns that are not a whole unique key; it will be removed.
const RESTRICT_KEYS: &str = "restrict_fk_on_non_standard_key";
const KEYS_ARE_UNSAFE: &str =
    "Foreign key referring to non-unique or partial keys is unsafe and may break replication.";
/// The variable by which what foreign keys do fires triggers; it will be removed.
const CASCADE_TRIGGERS: &str = "enable_cascade_triggers";
const NONE_FIRE: &str = "Triggers on child table will not fire during foreign key cascade.";
/// The variable whose OFF will be removed.
const EXPLICIT_TIMESTAMPS: &str = "explicit_defaults_for_timestamp";

/// Adds the warnings about a value that is accepted. `mode`: the SQL mode until then.
pub fn note_value(name: &str, value: &Value, mode: SqlMode, conditions: &mut Diagnostics) {
    match name {
        RESTRICT_KEYS => note_safer_on(name, value, KEYS_ARE_UNSAFE, conditions),
        CASCADE_TRIGGERS => note_safer_on(name, value, NONE_FIRE, conditions),
        EXPLICIT_TIMESTAMPS if as_u64(value) == 0 => {
            let text = format!("'{name}' is deprecated and will be removed in a future release.");
            let code = ErrorCode::WARN_DEPRECATED_SYNTAX;
            conditions.push(Condition::new(Level::Warning, code, code.sqlstate(), text));
        }
        "sql_mode" => {
            if let Ok(wanted) = SqlMode::parse(&as_text(value)) {
                note_mode(wanted, mode, conditions);
            }
        }
        _ => {}
    }
}

/// A variable that will be removed, and whose OFF has `risk`.
fn note_safer_on(name: &str, value: &Value, risk: &str, conditions: &mut Diagnostics) {
    match as_u64(value) {
        0 => conditions.warn(ErrorCode::WARN_DEPRECATED_WITH_NOTE, &[&name, &risk]),
        _ => conditions.warn(ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT, &[&name]),
    }
}

fn note_mode(wanted: SqlMode, before: SqlMode, conditions: &mut Diagnostics) {
    let padded = SqlMode::PAD_CHAR_TO_FULL_LENGTH;
    if wanted.contains(padded) != before.contains(padded) {
        conditions.warn(ErrorCode::WARN_DEPRECATED_SQLMODE, &[&"PAD_CHAR_TO_FULL_LENGTH"]);
    }
    let zero_modes =
        [SqlMode::NO_ZERO_DATE, SqlMode::NO_ZERO_IN_DATE, SqlMode::ERROR_FOR_DIVISION_BY_ZERO];
    let held = zero_modes.iter().filter(|one| wanted.contains(**one)).count();
    let is_complete = wanted.is_strict() && held == zero_modes.len();
    if !is_complete && (wanted.is_strict() || held > 0) {
        conditions.warn(ErrorCode::SQL_MODE_MERGED, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_are_found() {
        assert!(REMOVED.is_sorted());
        for (name, text) in REMOVED {
            assert_eq!(removal_of(name), Some(*text), "{name}");
        }
        assert_eq!(removal_of("sql_mode"), None);
    }
}
