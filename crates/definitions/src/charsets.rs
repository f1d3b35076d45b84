//! Character sets that are declared but not stored: their substitutes, and the warnings.

use charset::Collation;
use errors::{Condition, Diagnostics, ErrorCode, Level};
use syntax::ast;

use crate::column_type::{find_charset, find_collation};

/// SQLSTATE of warnings.
const WARNING_STATE: [u8; 5] = *b"HY000";

/// Whether columns are stored in the declared character set: the others are stored in utf8mb4.
fn is_stored(declared: &Collation) -> bool {
    match declared.charset.name {
        "utf8mb4" | "binary" => true,
        // Not with a collation that a substitute replaces.
        "utf8mb3" => declared.tailored || declared.is_bin(),
        _ => false,
    }
}

/// The collation that columns declared with `declared` have.
pub fn stored_collation(declared: &'static Collation) -> &'static Collation {
    let charset = declared.charset.name;
    if is_stored(declared) {
        return declared;
    }
    let suffix = declared.name.strip_prefix(charset).unwrap_or("");
    let same = charset::collation_by_name(&format!("utf8mb4{suffix}"));
    let by_kind = || {
        charset::collation_by_name(match suffix {
            suffix if suffix.ends_with("_bin") => "utf8mb4_bin",
            suffix if suffix.ends_with("_cs") => "utf8mb4_0900_as_cs",
            _ => "utf8mb4_0900_ai_ci",
        })
    };
    same.or_else(by_kind).unwrap_or(declared)
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
        (Some(_), Some("utf8mb3")) => {
            let words: [&dyn std::fmt::Display; 2] = [&"utf8mb3", &"utf8mb4"];
            conditions.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &words);
        }
        _ => {}
    }
    let Some(collation) = collation.and_then(|name| find_collation(name).ok()) else { return };
    if collation.charset.name == "utf8mb3" {
        let code = ErrorCode::WARN_DEPRECATED_UTF8MB3_COLLATION;
        conditions.warn(code, &[&collation.name]);
    }
}

fn note_stored_as(conditions: &mut Diagnostics, declared: &Collation) {
    if !is_stored(declared) {
        let charset = declared.charset.name;
        let text = format!("Character set '{charset}' is stored as utf8mb4");
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
    conditions.push(Condition { level, code, sqlstate: WARNING_STATE, message });
}
