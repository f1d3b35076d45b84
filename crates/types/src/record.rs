//! The record format: how a row's stored columns lie in bytes. `docs/format/record.md` describes it byte by byte.
//!
//! ```text
//! format u8 = 1 | columns u16 | null bitmap | fixed part | ends u32 x variable columns | variable part
//! ```
//!
//! Any column is found without looking at the others' bytes. A record may have fewer columns than its table (instant ADD COLUMN):
//! the missing ones are `Field::Missing`. Reading is total: damaged bytes give `None`, never a panic.

use crate::{DataType, Date, DateTime, Decimal, SqlBytes, Time, TypeKind, Value};

/// First byte of every record.
const FORMAT: u8 = 1;
/// Format byte and column count.
const HEADER_BYTES: usize = 3;
/// Most columns of a table, as the reference's limit.
pub const COLUMNS_MAX: usize = 4096;

/// Where the columns of a table's records are.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordLayout {
    columns: Vec<Place>,
    types: Vec<DataType>,
}

/// Place of a column; both counts are of the columns before it, so that they hold for shorter records too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// Bytes of fixed columns before this one.
    fixed_before: u32,
    /// Variable columns before this one.
    variable_before: u32,
    /// Width of a fixed column, 0 for a variable one.
    width: u32,
}

/// A column of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// SQL NULL.
    Null,
    /// The column's bytes.
    Bytes(&'a [u8]),
    /// The record is older than the column.
    Missing,
}

/// Bytes of a fixed column; 0 when its length varies.
fn fixed_width(ty: &DataType) -> u32 {
    use TypeKind::*;
    match ty.kind {
        TinyInt => 1,
        SmallInt | Year | Enum => 2,
        MediumInt | Int | Date | Float => 4,
        BigInt | Double | Bit | Time | DateTime | Timestamp | Set => 8,
        Decimal => crate::Decimal::key_length(ty.length) as u32,
        Null | Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Json | Vector | Geometry => 0,
    }
}

impl RecordLayout {
    /// The layout of records with columns of these types.
    pub fn new(types: &[DataType]) -> RecordLayout {
        let (mut fixed_before, mut variable_before) = (0, 0);
        let place = |ty: &DataType| {
            let width = fixed_width(ty);
            let place = Place { fixed_before, variable_before, width };
            fixed_before += width;
            variable_before += u32::from(width == 0);
            place
        };
        RecordLayout { columns: types.iter().map(place).collect(), types: types.to_vec() }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Types, in record order.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Fixed bytes and variable columns of the first `count` columns.
    fn totals(&self, count: usize) -> (usize, usize) {
        match self.columns.get(count) {
            Some(place) => (place.fixed_before as usize, place.variable_before as usize),
            None => self.columns.last().map_or((0, 0), |last| {
                let variable = last.variable_before + u32::from(last.width == 0);
                ((last.fixed_before + last.width) as usize, variable as usize)
            }),
        }
    }

    /// Appends the record of `values`, one for each column, already converted to the column types.
    ///
    /// # Panics
    /// When there are more values than columns.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) {
        assert!(values.len() <= self.columns.len(), "a record has at most the table's columns");
        let start = out.len();
        let bitmap_start = start + HEADER_BYTES;
        let fixed_start = bitmap_start + values.len().div_ceil(8);
        let (fixed_bytes, variable_count) = self.totals(values.len());
        let ends_start = fixed_start + fixed_bytes;
        out.push(FORMAT);
        out.extend_from_slice(&(values.len() as u16).to_le_bytes());
        out.resize(ends_start + variable_count * 4, 0);
        let variable_start = out.len();
        for (index, value) in values.iter().enumerate() {
            let place = self.columns[index];
            if value.is_null() {
                out[bitmap_start + index / 8] |= 1 << (index % 8);
            } else if place.width > 0 {
                let at = fixed_start + place.fixed_before as usize;
                encode_fixed(value, &self.types[index], &mut out[at..at + place.width as usize]);
            } else {
                encode_variable(value, out);
            }
            if place.width == 0 {
                let end = (out.len() - variable_start) as u32;
                let at = ends_start + place.variable_before as usize * 4;
                out[at..at + 4].copy_from_slice(&end.to_le_bytes());
            }
        }
    }

    /// Column `index` of `record`; `None` when the record is damaged.
    pub fn field<'a>(&self, record: &'a [u8], index: usize) -> Option<Field<'a>> {
        let [FORMAT, low, high, body @ ..] = record else { return None };
        let count = usize::from(u16::from_le_bytes([*low, *high]));
        let place = self.columns.get(index)?;
        if index >= count {
            return Some(Field::Missing);
        }
        let bitmap_bytes = count.div_ceil(8);
        if body.get(index / 8)? & (1 << (index % 8)) != 0 && bitmap_bytes > index / 8 {
            return Some(Field::Null);
        }
        let fixed = body.get(bitmap_bytes..)?;
        if place.width > 0 {
            let at = place.fixed_before as usize;
            return Some(Field::Bytes(fixed.get(at..at + place.width as usize)?));
        }
        let (fixed_bytes, variable_count) = self.totals(count.min(self.columns.len()));
        let variable = fixed.get(fixed_bytes..)?;
        let end_of = |position: usize| -> Option<usize> {
            let bytes = variable.get(position * 4..position * 4 + 4)?;
            Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
        };
        let position = place.variable_before as usize;
        let start = if position == 0 { 0 } else { end_of(position - 1)? };
        let bytes = variable.get(variable_count * 4..)?;
        Some(Field::Bytes(bytes.get(start..end_of(position)?)?))
    }

    /// Column `index` of `record` as a value; `missing` stands in for a column that the record does not have.
    /// `None` when the record is damaged.
    pub fn value(&self, record: &[u8], index: usize, missing: Option<&Value>) -> Option<Value> {
        match self.field(record, index)? {
            Field::Null => Some(Value::Null),
            Field::Bytes(bytes) => decode(bytes, &self.types[index]),
            Field::Missing => Some(missing.cloned().unwrap_or(Value::Null)),
        }
    }
}

fn encode_fixed(value: &Value, ty: &DataType, out: &mut [u8]) {
    let width = out.len();
    match value {
        Value::Int(number) => out.copy_from_slice(&number.to_le_bytes()[..width.min(8)]),
        Value::UInt(number) => out.copy_from_slice(&number.to_le_bytes()[..width.min(8)]),
        Value::Double(number) if width == 4 => {
            out.copy_from_slice(&(*number as f32).to_le_bytes());
        }
        Value::Double(number) => out.copy_from_slice(&number.to_le_bytes()),
        Value::Decimal(number) => {
            let mut key = Vec::with_capacity(width);
            number.write_key(ty.length, ty.decimals, &mut key);
            out.copy_from_slice(&key[..width]);
        }
        Value::Date(date) => out.copy_from_slice(&date.packed().to_le_bytes()),
        Value::Time(time) => out.copy_from_slice(&time.micros().to_le_bytes()),
        Value::DateTime(time) => out.copy_from_slice(&time.packed().to_le_bytes()),
        Value::Null | Value::Bytes(_) | Value::Json(_) => {
            debug_assert!(false, "a value of {:?} was not converted: {value:?}", ty.kind);
        }
    }
}

fn encode_variable(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bytes(bytes) | Value::Json(bytes) => out.extend_from_slice(bytes),
        Value::Null
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_) => {
            debug_assert!(false, "a string value was not converted: {value:?}");
        }
    }
}

/// A stored field as a value; `None` when the bytes cannot be of the type.
pub fn decode(bytes: &[u8], ty: &DataType) -> Option<Value> {
    use TypeKind::*;
    Some(match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt if ty.unsigned => {
            Value::UInt(unsigned(bytes))
        }
        TinyInt | SmallInt | MediumInt | Int | BigInt => Value::Int(signed(bytes)),
        Bit | Year | Enum | Set => Value::UInt(unsigned(bytes)),
        Float => Value::Double(f32::from_le_bytes(bytes.try_into().ok()?).into()),
        Double => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
        Decimal => Value::Decimal(self::Decimal::read_key(bytes, ty.length, ty.decimals)?),
        Date => Value::Date(self::Date::from_packed(u32::from_le_bytes(bytes.try_into().ok()?))?),
        Time => Value::Time(self::Time::from_micros(signed(bytes))?),
        DateTime | Timestamp => Value::DateTime(self::DateTime::from_packed(unsigned(bytes))?),
        Json => Value::Json(SqlBytes::new(bytes)),
        Null | Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Vector | Geometry => {
            Value::Bytes(SqlBytes::new(bytes))
        }
    })
}

/// A stored unsigned integer of 1 to 8 bytes.
pub fn unsigned(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let width = bytes.len().min(8);
    word[..width].copy_from_slice(&bytes[..width]);
    u64::from_le_bytes(word)
}

/// A stored signed integer of 1 to 8 bytes.
pub fn signed(bytes: &[u8]) -> i64 {
    let unused_bits = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    ((unsigned(bytes) << unused_bits) as i64) >> unused_bits
}
