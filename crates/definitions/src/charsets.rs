//! Collations that are declared but not built: their substitutes, and the warnings.

use charset::Collation;
use errors::{Condition, Diagnostics, ErrorCode, Level};
use syntax::ast;

use crate::column_type::{find_charset, find_collation};

/// SQLSTATE of warnings.
const WARNING_STATE: [u8; 5] = *b"HY000";

/// Whether columns keep the declared collation. The bytes inside are UTF-8 whatever the character set; what is needed is the order.
fn is_stored(declared: &Collation) -> bool {
    // Languages of utf8mb4 without their own rules are kept since the first data directories, and the defaults of sets are always kept.
    declared.tailored
        || declared.is_default
        || matches!(declared.charset.name, "utf8mb4" | "binary")
}

/// The collation that columns declared with `declared` have: the declared one, or of the same character set the binary one
/// when its order is not built.
pub fn stored_collation(declared: &'static Collation) -> &'static Collation {
    if is_stored(declared) {
        return declared;
    }
    charset::collation_by_name(&format!("{}_bin", declared.charset.name)).unwrap_or(declared)
}

/// Warnings of CHARACTER SET and COLLATE in a definition.
pub fn note_charset(conditions: &mut Diagnostics, charset: Option<&str>, collation: Option<&str>) {
    note_old_charset(conditions, charset, collation);
    let charset = charset.and_then(|name| find_charset(name).ok());
    let collation = collation.and_then(|name| find_collation(name).ok());
    let of_charset =
        || charset.map(|charset| charset::collation_or_binary(charset.default_collation));
    if let Some(declared) = collation.or_else(of_charset) {
        note_stored_as(conditions, declared);
    }
}

/// Character sets that are deprecated besides utf8mb3.
fn is_old(charset: &str) -> bool {
    matches!(charset, "ucs2" | "dec8" | "hp8" | "macce" | "macroman")
}

/// Warnings of a character set and a collation that are deprecated.
pub fn note_old_charset(
    conditions: &mut Diagnostics,
    charset: Option<&str>,
    collation: Option<&str>,
) {
    let declared = charset.and_then(|name| find_charset(name).ok()).map(|charset| charset.name);
    match (charset, declared) {
        (Some(name), Some("utf8mb3")) if name.eq_ignore_ascii_case("utf8") => {
            conditions.warn(ErrorCode::DEPRECATED_UTF8_ALIAS, &[]);
        }
        (Some(_), Some(name)) if name == "utf8mb3" || is_old(name) => {
            let words: [&dyn std::fmt::Display; 2] = [&name, &"utf8mb4"];
            conditions.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &words);
        }
        _ => {}
    }
    let Some(collation) = collation.and_then(|name| find_collation(name).ok()) else { return };
    if collation.charset.name == "utf8mb3" {
        let code = ErrorCode::WARN_DEPRECATED_UTF8MB3_COLLATION;
        conditions.warn(code, &[&collation.name]);
    } else if is_old(collation.charset.name) {
        let code = ErrorCode::WARN_DEPRECATED_COLLATION;
        conditions.warn(code, &[&collation.name, &collation.charset.name, &"utf8mb4"]);
    }
}

fn note_stored_as(conditions: &mut Diagnostics, declared: &'static Collation) {
    if !is_stored(declared) {
        let stored = stored_collation(declared).name;
        let text = format!("Collation '{}' is stored as '{stored}'", declared.name);
        warn_in_words(conditions, ErrorCode::OPTION_IGNORED, text);
    }
}

/// Warnings of the character set of a column type.
pub(crate) fn note_type_charset(
    conditions: &mut Diagnostics,
    written: &ast::DataType,
    collation: Option<&str>,
) {
    note_charset(conditions, written.charset.as_ref().map(|name| &*name.text), collation);
}

/// A warning that the reference does not have.
pub fn warn_in_words(conditions: &mut Diagnostics, code: ErrorCode, message: String) {
    let level = Level::Warning;
    conditions.push(Condition::new(level, code, WARNING_STATE, message));
}
