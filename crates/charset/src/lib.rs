//! Character sets and collations: names and ids, weights, comparison, sort keys, patterns, conversion.
//!
//! Text inside the server is utf8mb4; other character sets exist at the border only. Independent of
//! SQL types or sessions.

mod charset;
mod collation;
#[cfg(test)]
mod fuzz;
mod id;
mod like;
mod list;
mod multibyte;
mod tables;
#[cfg(test)]
mod tests;
mod utf8;
mod weights;

pub use charset::{Charset, Converted, Encoding};
pub use collation::{Collation, PadAttribute};
pub use id::CollationId;
pub use multibyte::{Longer, Multibyte};
pub use utf8::{char_length, char_prefix, find_malformed};

/// Ids are below this.
const ID_LIMIT: usize = 330;

/// Position + 1 in the list of the collation with an id.
static BY_ID: [u16; ID_LIMIT] = {
    let mut index = [0; ID_LIMIT];
    let mut at = 0;
    while at < list::COLLATIONS.len() {
        index[list::COLLATIONS[at].id.0 as usize] = at as u16 + 1;
        at += 1;
    }
    index
};

/// The collation with an id.
pub fn collation(id: CollationId) -> Option<&'static Collation> {
    let position = usize::from(*BY_ID.get(usize::from(id.0))?);
    list::COLLATIONS.get(position.checked_sub(1)?)
}

/// The collation with an id; `binary` for an unknown one.
pub fn collation_or_binary(id: CollationId) -> &'static Collation {
    collation(id).unwrap_or(&list::COLLATIONS[BY_ID[CollationId::BINARY.0 as usize] as usize - 1])
}

/// `utf8_` means `utf8mb3_`.
fn full_name(name: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    if lower == "utf8" {
        return Some("utf8mb3".into());
    }
    lower.strip_prefix("utf8_").map(|rest| format!("utf8mb3_{rest}"))
}

/// The collation of a name, in any case.
pub fn collation_by_name(name: &str) -> Option<&'static Collation> {
    let full = full_name(name);
    let wanted = full.as_deref().unwrap_or(name);
    list::COLLATIONS.iter().find(|collation| collation.name.eq_ignore_ascii_case(wanted))
}

/// The character set of a name, in any case; `utf8` is `utf8mb3`.
pub fn charset_by_name(name: &str) -> Option<&'static Charset> {
    let full = full_name(name);
    let wanted = full.as_deref().unwrap_or(name);
    list::CHARSETS.iter().find(|charset| charset.name.eq_ignore_ascii_case(wanted))
}

/// All collations by id.
pub fn collations() -> &'static [Collation] {
    &list::COLLATIONS
}

/// All character sets by name.
pub fn charsets() -> &'static [Charset] {
    &list::CHARSETS
}
