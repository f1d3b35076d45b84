//! JSON documents: binary form, text form, order, paths. The binary form is described in docs/format/json.md.
//!
//! Reading is total: bytes that are not a document read as `null`.

mod binary;
mod compare;
mod parse;
mod path;
#[cfg(test)]
mod tests;
mod text;
mod tree;

pub use binary::{ArrayIter, JsonRef, ObjectIter};
pub use compare::{compare, hash, write_key};
pub use parse::{JsonParseError, check, parse, parse_at};
pub use path::{ArrayIndex, JsonPath, PathLeg};
pub use text::{quote, write_pretty, write_text};
pub use tree::{JsonObject, JsonValue, SetMode};

use crate::geometry::{GeoJsonStyle, Geometry, SystemName};

/// Deepest nesting of a document.
pub const MAX_DEPTH: usize = 100;

/// A geometry's stored form as GeoJSON, with the long name of its reference system. Unreadable bytes become an opaque value.
pub fn of_geometry(bytes: &[u8]) -> JsonValue {
    let style = GeoJsonStyle { system: Some(SystemName::Long), ..GeoJsonStyle::default() };
    match Geometry::read(bytes) {
        Ok(geometry) => geometry.to_json(&style),
        Err(_) => JsonValue::Opaque(opaque::GEOMETRY, bytes.to_vec()),
    }
}

/// Opaque type numbers are the wire protocol's column types.
pub mod opaque {
    /// DECIMAL.
    pub const DECIMAL: u8 = 246;
    /// DATE.
    pub const DATE: u8 = 10;
    /// TIME.
    pub const TIME: u8 = 11;
    /// DATETIME and TIMESTAMP.
    pub const DATETIME: u8 = 12;
    /// BIT.
    pub const BIT: u8 = 16;
    /// TINYBLOB.
    pub const TINY_BLOB: u8 = 249;
    /// MEDIUMBLOB.
    pub const MEDIUM_BLOB: u8 = 250;
    /// LONGBLOB.
    pub const LONG_BLOB: u8 = 251;
    /// BLOB.
    pub const BLOB: u8 = 252;
    /// VARBINARY.
    pub const VARBINARY: u8 = 15;
    /// BINARY.
    pub const BINARY: u8 = 254;
    /// GEOMETRY.
    pub const GEOMETRY: u8 = 255;
}

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JsonType {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// Signed integer.
    Int,
    /// Integer above `i64::MAX`, or one that came from an unsigned column.
    UInt,
    /// Double.
    Double,
    /// Exact number.
    Decimal,
    /// String.
    String,
    /// DATE.
    Date,
    /// TIME.
    Time,
    /// DATETIME.
    DateTime,
    /// Bytes of another SQL type.
    Opaque(u8),
    /// Array.
    Array,
    /// Object.
    Object,
}

impl JsonType {
    /// The name that `JSON_TYPE()` returns.
    pub fn name(self) -> &'static str {
        match self {
            JsonType::Null => "NULL",
            JsonType::Bool => "BOOLEAN",
            JsonType::Int => "INTEGER",
            JsonType::UInt => "UNSIGNED INTEGER",
            JsonType::Double => "DOUBLE",
            JsonType::Decimal => "DECIMAL",
            JsonType::String => "STRING",
            JsonType::Date => "DATE",
            JsonType::Time => "TIME",
            JsonType::DateTime => "DATETIME",
            JsonType::Opaque(opaque::BIT) => "BIT",
            JsonType::Opaque(249..=252 | 15 | 253 | 254) => "BLOB",
            JsonType::Opaque(_) => "OPAQUE",
            JsonType::Array => "ARRAY",
            JsonType::Object => "OBJECT",
        }
    }

    /// Integers, doubles, decimals.
    pub fn is_number(self) -> bool {
        matches!(self, JsonType::Int | JsonType::UInt | JsonType::Double | JsonType::Decimal)
    }

    /// Neither array nor object.
    pub fn is_scalar(self) -> bool {
        !matches!(self, JsonType::Array | JsonType::Object)
    }
}
