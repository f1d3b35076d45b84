//! The schemas whose tables the server computes.

/// Their names.
pub const SYSTEM_SCHEMAS: &[&str] =
    &["data_dictionary", "information_schema", "mysql", "ndbinfo", "performance_schema", "sys"];

/// The name of a computed schema; the standard ones are found in any case.
pub fn system_schema(name: &str) -> Option<&'static str> {
    SYSTEM_SCHEMAS.iter().copied().find(|known| {
        *known == name || (known.ends_with("_schema") && known.eq_ignore_ascii_case(name))
    })
}
