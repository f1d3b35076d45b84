//! A JSON document as a tree, for building and changing.

use super::binary::{self, JsonRef};
use super::path::{JsonPath, PathLeg};
use super::{JsonType, MAX_DEPTH, opaque, text};
use crate::{Date, DateTime, Decimal, SqlBytes, Time, Value};

/// A JSON value that owns its parts.
#[derive(Clone, Debug)]
pub enum JsonValue {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// Unsigned integer.
    UInt(u64),
    /// Finite double.
    Double(f64),
    /// Exact number.
    Decimal(Decimal),
    /// UTF-8 text.
    String(Vec<u8>),
    /// DATE.
    Date(Date),
    /// TIME.
    Time(Time),
    /// DATETIME.
    DateTime(DateTime),
    /// Bytes of another SQL type.
    Opaque(u8, Vec<u8>),
    /// Array.
    Array(Vec<JsonValue>),
    /// Object.
    Object(JsonObject),
}

/// Members of an object, sorted by length of the name, then by its bytes.
#[derive(Clone, Debug, Default)]
pub struct JsonObject(Vec<(Vec<u8>, JsonValue)>);

/// Treatment of existing and missing places by `set_path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetMode {
    /// Both: `JSON_SET`.
    Set,
    /// Only new places: `JSON_INSERT`.
    Insert,
    /// Only places that exist: `JSON_REPLACE`.
    Replace,
}

impl JsonObject {
    /// No members.
    pub fn new() -> JsonObject {
        JsonObject::default()
    }

    fn find(&self, name: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (known.len(), &known[..]).cmp(&(name.len(), name)))
    }

    /// Sets a member; the last value of a name wins.
    pub fn insert(&mut self, name: Vec<u8>, value: JsonValue) {
        match self.find(&name) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (name, value)),
        }
    }

    /// From members in any order, the last of a name wins.
    pub fn from_members(mut members: Vec<(Vec<u8>, JsonValue)>) -> JsonObject {
        members.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        members.reverse();
        members.dedup_by(|(later, _), (kept, _)| later == kept);
        members.reverse();
        JsonObject(members)
    }

    /// A member.
    pub fn get(&self, name: &[u8]) -> Option<&JsonValue> {
        self.find(name).ok().map(|at| &self.0[at].1)
    }

    /// A member, to change.
    pub fn get_mut(&mut self, name: &[u8]) -> Option<&mut JsonValue> {
        self.find(name).ok().map(|at| &mut self.0[at].1)
    }

    /// Takes a member away.
    pub fn remove(&mut self, name: &[u8]) -> Option<JsonValue> {
        self.find(name).ok().map(|at| self.0.remove(at).1)
    }

    /// Members in stored order.
    pub fn members(&self) -> &[(Vec<u8>, JsonValue)] {
        &self.0
    }

    /// Moves the members out.
    pub fn into_members(self) -> Vec<(Vec<u8>, JsonValue)> {
        self.0
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl JsonValue {
    /// A string.
    pub fn string(text: impl AsRef<[u8]>) -> JsonValue {
        JsonValue::String(text.as_ref().to_vec())
    }

    /// A copy of a binary document.
    pub fn from_ref(value: JsonRef<'_>) -> JsonValue {
        JsonValue::copy(value, 0)
    }

    fn copy(value: JsonRef<'_>, depth: usize) -> JsonValue {
        // Only corrupt data nests deeper.
        if depth > MAX_DEPTH {
            return JsonValue::Null;
        }
        match value.kind() {
            JsonType::Null => JsonValue::Null,
            JsonType::Bool => JsonValue::Bool(value.as_bool().unwrap_or(false)),
            JsonType::Int => JsonValue::Int(value.as_i64().unwrap_or(0)),
            JsonType::UInt => JsonValue::UInt(value.as_u64().unwrap_or(0)),
            JsonType::Double => JsonValue::Double(value.as_f64().unwrap_or(0.0)),
            JsonType::Decimal => JsonValue::Decimal(value.as_decimal().unwrap_or_default()),
            JsonType::String => JsonValue::String(value.as_bytes().unwrap_or(b"").to_vec()),
            JsonType::Date => JsonValue::Date(value.as_date().unwrap_or_default()),
            JsonType::Time => JsonValue::Time(value.as_time().unwrap_or_default()),
            JsonType::DateTime => JsonValue::DateTime(value.as_datetime().unwrap_or_default()),
            JsonType::Opaque(kind) => {
                JsonValue::Opaque(kind, value.as_bytes().unwrap_or(b"").to_vec())
            }
            JsonType::Array => {
                JsonValue::Array(value.elements().map(|v| JsonValue::copy(v, depth + 1)).collect())
            }
            JsonType::Object => JsonValue::Object(JsonObject::from_members(
                value
                    .members()
                    .map(|(name, v)| (name.to_vec(), JsonValue::copy(v, depth + 1)))
                    .collect(),
            )),
        }
    }

    /// The binary document.
    pub fn to_binary(&self) -> SqlBytes {
        let mut out = Vec::new();
        binary::write_document(self, &mut out);
        SqlBytes::from(out)
    }

    /// As an SQL value.
    pub fn to_value(&self) -> Value {
        Value::Json(self.to_binary())
    }

    /// The text.
    pub fn to_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        text::write_text(&self.to_binary(), &mut out);
        out
    }

    /// Type of the value.
    pub fn kind(&self) -> JsonType {
        match self {
            JsonValue::Null => JsonType::Null,
            JsonValue::Bool(_) => JsonType::Bool,
            JsonValue::Int(_) => JsonType::Int,
            JsonValue::UInt(_) => JsonType::UInt,
            JsonValue::Double(_) => JsonType::Double,
            JsonValue::Decimal(_) => JsonType::Decimal,
            JsonValue::String(_) => JsonType::String,
            JsonValue::Date(_) => JsonType::Date,
            JsonValue::Time(_) => JsonType::Time,
            JsonValue::DateTime(_) => JsonType::DateTime,
            JsonValue::Opaque(kind, _) => JsonType::Opaque(*kind),
            JsonValue::Array(_) => JsonType::Array,
            JsonValue::Object(_) => JsonType::Object,
        }
    }

    /// Nesting: 1 for scalars and empty containers.
    pub fn depth(&self) -> usize {
        1 + match self {
            JsonValue::Array(elements) => elements.iter().map(JsonValue::depth).max().unwrap_or(0),
            JsonValue::Object(object) => {
                object.members().iter().map(|(_, v)| v.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// The JSON scalar of an SQL value: strings become JSON strings (or opaque when `binary`), never parsed.
    pub fn from_sql(value: &Value, binary: bool) -> JsonValue {
        match value {
            Value::Null => JsonValue::Null,
            Value::Int(number) => JsonValue::Int(*number),
            Value::UInt(number) => JsonValue::UInt(*number),
            Value::Double(number) => JsonValue::Double(*number),
            Value::Decimal(number) => JsonValue::Decimal(number.clone()),
            Value::Bytes(bytes) if binary => JsonValue::Opaque(opaque::VARBINARY, bytes.to_vec()),
            Value::Bytes(bytes) => JsonValue::String(bytes.to_vec()),
            Value::Date(date) => JsonValue::Date(*date),
            Value::Time(time) => JsonValue::Time(*time),
            Value::DateTime(datetime) => JsonValue::DateTime(*datetime),
            Value::Json(document) => JsonValue::from_ref(JsonRef::new(document)),
        }
    }

    /// Returns the value at a path without wildcards; `None` also for a path with them.
    pub fn get_path(&self, path: &JsonPath) -> Option<&JsonValue> {
        let mut place = self;
        for leg in path.legs() {
            place = match (leg, place) {
                (PathLeg::Member(name), JsonValue::Object(object)) => object.get(name)?,
                (PathLeg::Cell(index), JsonValue::Array(elements)) => {
                    elements.get(index.resolve(elements.len())?)?
                }
                // A scalar or object counts as an array whose only element is itself.
                (PathLeg::Cell(index), other) if index.resolve(1) == Some(0) => other,
                _ => return None,
            };
        }
        Some(place)
    }

    /// Returns the place at a path without wildcards. A scalar counts as an array of itself.
    pub fn get_path_mut(&mut self, legs: &[PathLeg]) -> Option<&mut JsonValue> {
        let mut place = self;
        for leg in legs {
            place = match (leg, place) {
                (PathLeg::Member(name), JsonValue::Object(object)) => object.get_mut(name)?,
                (PathLeg::Cell(index), JsonValue::Array(elements)) => {
                    let at = index.resolve(elements.len())?;
                    elements.get_mut(at)?
                }
                (PathLeg::Cell(index), other) if index.resolve(1) == Some(0) => other,
                _ => return None,
            };
        }
        Some(place)
    }

    /// Stores a value at a path without wildcards; false when nothing changed.
    pub fn set_path(&mut self, path: &JsonPath, value: JsonValue, mode: SetMode) -> bool {
        if let Some(place) = self.get_path_mut(path.legs()) {
            if mode == SetMode::Insert {
                return false;
            }
            *place = value;
            return true;
        }
        let Some((last, parents)) = path.legs().split_last() else { return false };
        let Some(parent) = self.get_path_mut(parents) else { return false };
        if mode == SetMode::Replace {
            return false;
        }
        match (last, parent) {
            (PathLeg::Member(name), JsonValue::Object(object)) => {
                object.insert(name.to_vec(), value);
                true
            }
            (PathLeg::Cell(index), JsonValue::Array(elements)) => {
                if index.from_end {
                    elements.insert(0, value)
                } else {
                    elements.push(value)
                }
                true
            }
            (PathLeg::Cell(index), parent) => {
                let scalar = std::mem::replace(parent, JsonValue::Null);
                *parent = JsonValue::Array(if index.from_end {
                    vec![value, scalar]
                } else {
                    vec![scalar, value]
                });
                true
            }
            _ => false,
        }
    }

    /// Removes the value at a path without wildcards; false when nothing was there.
    pub fn remove_path(&mut self, path: &JsonPath) -> bool {
        let Some((last, parents)) = path.legs().split_last() else { return false };
        match (last, self.get_path_mut(parents)) {
            (PathLeg::Member(name), Some(JsonValue::Object(object))) => {
                object.remove(name).is_some()
            }
            (PathLeg::Cell(index), Some(JsonValue::Array(elements))) => {
                match index.resolve(elements.len()) {
                    Some(at) if at < elements.len() => {
                        elements.remove(at);
                        true
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }
}
