//! The binary form: writing it from a tree, reading it in place.

use super::tree::JsonValue;
use super::{JsonType, MAX_DEPTH, opaque};
use crate::{Date, DateTime, Decimal, Time};

const SMALL_OBJECT: u8 = 0;
const LARGE_OBJECT: u8 = 1;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT: u8 = 9;
const UINT: u8 = 10;
const DOUBLE: u8 = 11;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;

const NULL_LITERAL: u8 = 0;
const TRUE_LITERAL: u8 = 1;
const FALSE_LITERAL: u8 = 2;

/// Largest container with two-byte offsets.
const SMALL_LIMIT: usize = u16::MAX as usize;
/// Longest name of a member.
pub(super) const NAME_LIMIT: usize = u16::MAX as usize;

/// A JSON value inside a binary document.
#[derive(Clone, Copy, Debug)]
pub struct JsonRef<'a> {
    kind: u8,
    data: &'a [u8],
}

/// Elements of an array.
#[derive(Clone, Debug)]
pub struct ArrayIter<'a> {
    array: JsonRef<'a>,
    next: usize,
    count: usize,
}

/// Members of an object.
#[derive(Clone, Debug)]
pub struct ObjectIter<'a> {
    object: JsonRef<'a>,
    next: usize,
    count: usize,
}

impl<'a> JsonRef<'a> {
    /// `null`.
    pub const NULL: JsonRef<'static> = JsonRef { kind: LITERAL, data: &[NULL_LITERAL] };

    /// The root of a document.
    pub fn new(document: &'a [u8]) -> JsonRef<'a> {
        match document.split_first() {
            Some((&kind, data)) => JsonRef { kind, data },
            None => JsonRef::NULL,
        }
    }

    fn payload<const N: usize>(self) -> Option<[u8; N]> {
        self.data.first_chunk::<N>().copied()
    }

    fn opaque_kind(self) -> Option<u8> {
        if self.kind == OPAQUE { self.data.first().copied() } else { None }
    }

    /// Type of the value.
    pub fn kind(self) -> JsonType {
        match self.kind {
            SMALL_OBJECT | LARGE_OBJECT => JsonType::Object,
            SMALL_ARRAY | LARGE_ARRAY => JsonType::Array,
            LITERAL => match self.data.first() {
                Some(&(TRUE_LITERAL | FALSE_LITERAL)) => JsonType::Bool,
                _ => JsonType::Null,
            },
            INT => JsonType::Int,
            UINT => JsonType::UInt,
            DOUBLE => JsonType::Double,
            STRING => JsonType::String,
            OPAQUE => match self.opaque_kind() {
                Some(opaque::DECIMAL) => JsonType::Decimal,
                Some(opaque::DATE) => JsonType::Date,
                Some(opaque::TIME) => JsonType::Time,
                Some(opaque::DATETIME) => JsonType::DateTime,
                Some(kind) => JsonType::Opaque(kind),
                None => JsonType::Null,
            },
            _ => JsonType::Null,
        }
    }

    /// `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        match (self.kind, self.data.first()) {
            (LITERAL, Some(&TRUE_LITERAL)) => Some(true),
            (LITERAL, Some(&FALSE_LITERAL)) => Some(false),
            _ => None,
        }
    }

    /// A signed integer.
    pub fn as_i64(self) -> Option<i64> {
        if self.kind == INT { self.payload().map(i64::from_le_bytes) } else { None }
    }

    /// An unsigned integer.
    pub fn as_u64(self) -> Option<u64> {
        if self.kind == UINT { self.payload().map(u64::from_le_bytes) } else { None }
    }

    /// A double.
    pub fn as_f64(self) -> Option<f64> {
        if self.kind != DOUBLE {
            return None;
        }
        self.payload().map(f64::from_le_bytes).filter(|number| number.is_finite())
    }

    /// Bytes of a string or of an opaque value.
    pub fn as_bytes(self) -> Option<&'a [u8]> {
        let data = match self.kind {
            STRING => self.data,
            OPAQUE => self.data.get(1..)?,
            _ => return None,
        };
        let (length, used) = read_length(data)?;
        data.get(used..used.checked_add(length)?)
    }

    fn opaque_of(self, kind: u8) -> Option<&'a [u8]> {
        if self.opaque_kind() == Some(kind) { self.as_bytes() } else { None }
    }

    /// A decimal.
    pub fn as_decimal(self) -> Option<Decimal> {
        self.opaque_of(opaque::DECIMAL).and_then(Decimal::parse)
    }

    /// A date.
    pub fn as_date(self) -> Option<Date> {
        Date::from_packed(u32::from_le_bytes(*self.opaque_of(opaque::DATE)?.first_chunk()?))
    }

    /// A time.
    pub fn as_time(self) -> Option<Time> {
        Time::from_micros(i64::from_le_bytes(*self.opaque_of(opaque::TIME)?.first_chunk()?))
    }

    /// A date and time.
    pub fn as_datetime(self) -> Option<DateTime> {
        DateTime::from_packed(u64::from_le_bytes(*self.opaque_of(opaque::DATETIME)?.first_chunk()?))
    }

    fn is_object(self) -> bool {
        matches!(self.kind, SMALL_OBJECT | LARGE_OBJECT)
    }

    fn is_array(self) -> bool {
        matches!(self.kind, SMALL_ARRAY | LARGE_ARRAY)
    }

    /// Bytes of an offset.
    fn width(self) -> usize {
        if matches!(self.kind, LARGE_OBJECT | LARGE_ARRAY) { 4 } else { 2 }
    }

    fn number(self, at: usize) -> Option<usize> {
        let bytes = self.data.get(at..at + self.width())?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
    }

    /// Number of elements or members; 1 for a scalar.
    pub fn len(self) -> usize {
        if !self.is_object() && !self.is_array() {
            return 1;
        }
        // An entry takes at least this many bytes, whatever a corrupt count claims.
        let entry = 1 + self.width();
        self.number(0).unwrap_or(0).min(self.data.len() / entry)
    }

    /// Whether it is a container without elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn value_entries(self) -> usize {
        let keys = if self.is_object() { self.len() * (self.width() + 2) } else { 0 };
        2 * self.width() + keys
    }

    fn value_at(self, index: usize) -> Option<JsonRef<'a>> {
        let at = self.value_entries() + index * (1 + self.width());
        let kind = *self.data.get(at)?;
        if kind == LITERAL {
            return Some(JsonRef { kind, data: self.data.get(at + 1..at + 2)? });
        }
        // A value never lies within the entries: corrupt data cannot contain itself.
        let offset = self.number(at + 1)?;
        let entries_end = self.value_entries() + self.len() * (1 + self.width());
        if offset < entries_end {
            return None;
        }
        Some(JsonRef { kind, data: self.data.get(offset..)? })
    }

    fn name_at(self, index: usize) -> Option<&'a [u8]> {
        let at = 2 * self.width() + index * (self.width() + 2);
        let from = self.number(at)?;
        let length = self.data.get(at + self.width()..at + self.width() + 2)?;
        self.data.get(from..from + usize::from(u16::from_le_bytes([length[0], length[1]])))
    }

    /// An element of an array.
    pub fn at(self, index: usize) -> Option<JsonRef<'a>> {
        if self.is_array() && index < self.len() { self.value_at(index) } else { None }
    }

    /// A member of an object.
    pub fn get(self, name: &[u8]) -> Option<JsonRef<'a>> {
        if !self.is_object() {
            return None;
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            let found = self.name_at(middle)?;
            match (found.len(), found).cmp(&(name.len(), name)) {
                std::cmp::Ordering::Equal => return self.value_at(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Elements of an array; empty for other values.
    pub fn elements(self) -> ArrayIter<'a> {
        ArrayIter { array: self, next: 0, count: if self.is_array() { self.len() } else { 0 } }
    }

    /// Members of an object, sorted by length of the name, then bytes; empty for other values.
    pub fn members(self) -> ObjectIter<'a> {
        ObjectIter { object: self, next: 0, count: if self.is_object() { self.len() } else { 0 } }
    }

    /// Position of its bytes: distinguishes two values of one document.
    pub(super) fn place(self) -> (u8, usize) {
        (self.kind, self.data.as_ptr() as usize)
    }

    /// Copies it to a separate document.
    pub fn to_document(self) -> crate::SqlBytes {
        JsonValue::from_ref(self).to_binary()
    }

    /// Nesting: 1 for scalars and empty containers.
    pub fn depth(self) -> usize {
        self.depth_within(MAX_DEPTH + 1)
    }

    fn depth_within(self, left: usize) -> usize {
        if left == 0 {
            return 0;
        }
        let values = self.elements().chain(self.members().map(|(_, value)| value));
        1 + values.map(|value| value.depth_within(left - 1)).max().unwrap_or(0)
    }
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = JsonRef<'a>;
    fn next(&mut self) -> Option<JsonRef<'a>> {
        if self.next >= self.count {
            return None;
        }
        self.next += 1;
        Some(self.array.value_at(self.next - 1).unwrap_or(JsonRef::NULL))
    }
}

impl<'a> Iterator for ObjectIter<'a> {
    type Item = (&'a [u8], JsonRef<'a>);
    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.count {
            return None;
        }
        let at = self.next;
        self.next += 1;
        Some((
            self.object.name_at(at).unwrap_or(b""),
            self.object.value_at(at).unwrap_or(JsonRef::NULL),
        ))
    }
}

/// Length in seven-bit groups, low first; and the bytes it takes.
fn read_length(data: &[u8]) -> Option<(usize, usize)> {
    let mut length = 0usize;
    for (index, &byte) in data.iter().take(5).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((length, index + 1));
        }
    }
    None
}

fn write_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

fn write_opaque(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
    out.push(kind);
    write_length(bytes.len(), out);
    out.extend_from_slice(bytes);
    OPAQUE
}

/// Appends a document.
pub(super) fn write_document(value: &JsonValue, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0);
    out[start] = match value {
        JsonValue::Null | JsonValue::Bool(_) => {
            out.push(literal(value));
            LITERAL
        }
        _ => write_value(value, false, out),
    };
}

fn literal(value: &JsonValue) -> u8 {
    match value {
        JsonValue::Bool(true) => TRUE_LITERAL,
        JsonValue::Bool(false) => FALSE_LITERAL,
        _ => NULL_LITERAL,
    }
}

/// Appends the payload, returns the type. `small`: the containers around it have two-byte offsets.
fn write_value(value: &JsonValue, small: bool, out: &mut Vec<u8>) -> u8 {
    match value {
        JsonValue::Null | JsonValue::Bool(_) => LITERAL,
        JsonValue::Int(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            INT
        }
        JsonValue::UInt(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            UINT
        }
        JsonValue::Double(number) => {
            out.extend_from_slice(&number.to_le_bytes());
            DOUBLE
        }
        JsonValue::String(text) => {
            write_length(text.len(), out);
            out.extend_from_slice(text);
            STRING
        }
        JsonValue::Decimal(number) => {
            let mut text = Vec::new();
            number.write_text(&mut text);
            write_opaque(opaque::DECIMAL, &text, out)
        }
        JsonValue::Date(date) => write_opaque(opaque::DATE, &date.packed().to_le_bytes(), out),
        JsonValue::Time(time) => write_opaque(opaque::TIME, &time.micros().to_le_bytes(), out),
        JsonValue::DateTime(datetime) => {
            write_opaque(opaque::DATETIME, &datetime.packed().to_le_bytes(), out)
        }
        JsonValue::Opaque(kind, bytes) => write_opaque(*kind, bytes, out),
        JsonValue::Array(elements) => {
            let small = small || size_within(value, SMALL_LIMIT).is_some();
            let values = elements.iter().map(|element| (None, element));
            write_container(values, small, out);
            if small { SMALL_ARRAY } else { LARGE_ARRAY }
        }
        JsonValue::Object(object) => {
            let small = small || size_within(value, SMALL_LIMIT).is_some();
            let values = object.members().iter().map(|(name, v)| (Some(&name[..]), v));
            write_container(values, small, out);
            if small { SMALL_OBJECT } else { LARGE_OBJECT }
        }
    }
}

fn write_container<'v>(
    values: impl ExactSizeIterator<Item = (Option<&'v [u8]>, &'v JsonValue)> + Clone,
    small: bool,
    out: &mut Vec<u8>,
) {
    let width = if small { 2 } else { 4 };
    let (start, count) = (out.len(), values.len());
    let put = |number: usize, at: usize, out: &mut Vec<u8>| {
        out[at..at + width].copy_from_slice(&(number as u32).to_le_bytes()[..width]);
    };
    let named = values.clone().next().is_some_and(|(name, _)| name.is_some());
    let key_bytes = if named { count * (width + 2) } else { 0 };
    let entries = start + 2 * width + key_bytes;
    out.resize(entries + count * (1 + width), 0);
    put(count, start, out);
    for (index, (name, _)) in values.clone().enumerate() {
        let Some(name) = name else { break };
        let name = &name[..name.len().min(NAME_LIMIT)];
        let at = start + 2 * width + index * (width + 2);
        put(out.len() - start, at, out);
        out[at + width..at + width + 2].copy_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
    }
    for (index, (_, value)) in values.enumerate() {
        let at = entries + index * (1 + width);
        let offset = out.len() - start;
        out[at] = write_value(value, small, out);
        if out[at] == LITERAL {
            out[at + 1] = literal(value);
        } else {
            put(offset, at + 1, out);
        }
    }
    put(out.len() - start, start + width, out);
}

/// Bytes of the payload with two-byte offsets; `None` above the limit.
fn size_within(value: &JsonValue, limit: usize) -> Option<usize> {
    let size = match value {
        JsonValue::Null | JsonValue::Bool(_) => 0,
        JsonValue::Int(_) | JsonValue::UInt(_) | JsonValue::Double(_) => 8,
        JsonValue::Date(_) | JsonValue::Time(_) | JsonValue::DateTime(_) => 10,
        JsonValue::Decimal(_) => 90,
        JsonValue::String(text) => text.len() + 5,
        JsonValue::Opaque(_, bytes) => bytes.len() + 6,
        JsonValue::Array(elements) => elements.iter().try_fold(4, |size: usize, element| {
            let size = size + 3 + size_within(element, limit)?;
            (size <= limit).then_some(size)
        })?,
        JsonValue::Object(object) => {
            object.members().iter().try_fold(4, |size: usize, (name, element)| {
                let size = size + 7 + name.len() + size_within(element, limit)?;
                (size <= limit).then_some(size)
            })?
        }
    };
    (size <= limit).then_some(size)
}
