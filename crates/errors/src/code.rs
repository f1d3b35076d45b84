//! Error numbers with their SQLSTATE and message template. Messages are formatted elsewhere.
//!
//! The numbers, names and SQLSTATEs are part of the protocol that clients program against; a number
//! never changes its meaning. `{}` marks a placeholder in a template.

use crate::{table_base, table_late};

/// Number of a server error or warning, as clients see it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ErrorCode(pub u16);

/// The catalogue's entry for one number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) code: u16,
    pub(crate) name: &'static str,
    pub(crate) sqlstate: &'static [u8; 5],
    pub(crate) template: &'static str,
}

/// SQLSTATE of numbers without an entry.
pub(crate) const GENERAL_SQLSTATE: [u8; 5] = *b"HY000";

/// Panics at compile time if `text` has not five bytes.
pub(crate) const fn sqlstate_bytes(text: &'static str) -> &'static [u8; 5] {
    match text.as_bytes().first_chunk::<5>() {
        Some(bytes) if text.len() == 5 => bytes,
        _ => panic!("an SQLSTATE has five bytes"),
    }
}

/// Defines associated constants on [`ErrorCode`] and the table that describes them.
macro_rules! catalog {
    ($table:ident; $($name:ident = $code:literal, $state:literal, $template:literal;)*) => {
        impl $crate::ErrorCode {
            $(
                #[doc = concat!("`", $template, "`")]
                pub const $name: $crate::ErrorCode = $crate::ErrorCode($code);
            )*
        }
        pub(crate) static $table: &[$crate::code::Entry] = &[
            $($crate::code::Entry {
                code: $code,
                name: stringify!($name),
                sqlstate: const { $crate::code::sqlstate_bytes($state) },
                template: $template,
            },)*
        ];
    };
}
pub(crate) use catalog;

/// Highest number the dense index covers; the rest is found by a scan (errors are rare, and few lie above).
const INDEX_LEN: usize = 4200;

/// Position + 1 of each number in the concatenated tables; 0 when unknown.
static INDEX: [u16; INDEX_LEN] = build_index();

const fn build_index() -> [u16; INDEX_LEN] {
    let mut index = [0u16; INDEX_LEN];
    let mut position = 0;
    while position < table_base::BASE.len() + table_late::LATE.len() {
        let code = entry_at(position).code as usize;
        if code < INDEX_LEN {
            assert!(index[code] == 0, "an error number is listed twice");
            index[code] = position as u16 + 1;
        }
        position += 1;
    }
    index
}

const fn entry_at(position: usize) -> &'static Entry {
    if position < table_base::BASE.len() {
        &table_base::BASE[position]
    } else {
        &table_late::LATE[position - table_base::BASE.len()]
    }
}

impl ErrorCode {
    pub(crate) fn entry(self) -> Option<&'static Entry> {
        match INDEX.get(usize::from(self.0)) {
            Some(0) => None,
            Some(position) => Some(entry_at(usize::from(*position) - 1)),
            None => table_late::LATE.iter().find(|entry| entry.code == self.0),
        }
    }

    /// The SQLSTATE of this number; `HY000` when the number is unknown.
    pub fn sqlstate(self) -> [u8; 5] {
        self.entry().map_or(GENERAL_SQLSTATE, |entry| *entry.sqlstate)
    }

    /// The symbolic name without `ER_`, if the number is known.
    pub fn name(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.name)
    }

    /// The message template with `{}` placeholders, if the number is known.
    pub fn template(self) -> Option<&'static str> {
        self.entry().map(|entry| entry.template)
    }

    /// Every code of the catalogue, in no particular order.
    pub fn all() -> impl Iterator<Item = ErrorCode> {
        table_base::BASE.iter().chain(table_late::LATE).map(|entry| ErrorCode(entry.code))
    }
}

impl std::fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
