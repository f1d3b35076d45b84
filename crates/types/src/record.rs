//! Records: the bytes of a row. The format is described in docs/format/record.md.
//!
//! Any column is found in constant time; reading never allocates unless the value itself must. Corrupt bytes are an
//! error, never a panic.

use errors::Error;

use crate::temporal::MICROS_PER_SECOND;
use crate::text::{self, write_i64, write_u64};
use crate::{DataType, DateTime, SqlBytes, Time, TypeKind, Value};

/// Bytes before the NULL bitmap.
const HEADER: usize = 4;
/// Format number in the low bits of the first byte.
const FORMAT: u8 = 1;
/// Offsets of the variable part take four bytes instead of two.
const WIDE: u8 = 0x80;

/// The reason why a record could not be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The bytes are not a record of this layout.
    Corrupt,
    /// A value does not belong to its column's type.
    WrongValue(usize),
    /// More than 4 GiB.
    TooLong,
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Error {
        match error {
            RecordError::Corrupt => Error::internal("a record does not fit its table"),
            RecordError::WrongValue(column) => {
                Error::internal(format_args!("column {column} got a value of another type"))
            }
            RecordError::TooLong => Error::internal("a record is too long"),
        }
    }
}

/// Contents of a column of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// SQL NULL.
    Null,
    /// The record is older than the column: the caller supplies the default.
    Missing,
    /// The stored bytes.
    Bytes(&'a [u8]),
}

/// Where a column is.
#[derive(Clone, Copy, Debug)]
enum Slot {
    /// `length` bytes at `at` in the fixed part.
    Fixed { at: u32, length: u8 },
    /// The n-th of the variable part.
    Var { index: u32 },
}

/// The layout of a table's rows.
#[derive(Clone, Debug)]
pub struct RecordLayout {
    types: Vec<DataType>,
    slots: Vec<Slot>,
    /// Fixed bytes and number of variable columns among the first n columns.
    prefix: Vec<(u32, u32)>,
    /// Where the columns are in records that have all.
    places: Vec<ColumnPlace>,
    schema_version: u8,
}

/// Bytes of a type in the fixed part; `None` for the variable part.
pub fn fixed_length(ty: &DataType) -> Option<u8> {
    use TypeKind::*;
    Some(match ty.kind {
        Null => 0,
        TinyInt | Year => 1,
        SmallInt => 2,
        MediumInt => 3,
        Int | Float => 4,
        BigInt | Double => 8,
        Decimal => crate::Decimal::key_length(ty.length) as u8,
        Bit => ty.length.div_ceil(8).clamp(1, 8) as u8,
        Date => 3,
        Time => {
            if ty.decimals == 0 {
                3
            } else {
                6
            }
        }
        DateTime | Timestamp => {
            if ty.decimals == 0 {
                5
            } else {
                8
            }
        }
        Enum => match ty.member_count() {
            0..256 => 1,
            256..65_536 => 2,
            _ => 3,
        },
        Set => match ty.member_count().div_ceil(8) {
            0 | 1 => 1,
            2 => 2,
            3 => 3,
            4 => 4,
            _ => 8,
        },
        Fixed(kind) => kind.bytes() as u8,
        Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Json | Vector | Geometry => return None,
    })
}

/// Positions within a record of a certain number of columns.
struct Frame {
    nulls: usize,
    fixed: usize,
    offsets: usize,
    data: usize,
    wide: bool,
}

impl RecordLayout {
    /// The layout of rows with these columns.
    pub fn new(types: &[DataType]) -> RecordLayout {
        let mut slots = Vec::with_capacity(types.len());
        let mut prefix = Vec::with_capacity(types.len() + 1);
        let (mut fixed, mut var) = (0u32, 0u32);
        prefix.push((0, 0));
        for ty in types {
            match fixed_length(ty) {
                Some(length) => {
                    slots.push(Slot::Fixed { at: fixed, length });
                    fixed += u32::from(length);
                }
                None => {
                    slots.push(Slot::Var { index: var });
                    var += 1;
                }
            }
            prefix.push((fixed, var));
        }
        let count = types.len();
        let places = (0..count).map(|column| place(&slots, &prefix, column)).collect();
        RecordLayout { types: types.to_vec(), slots, prefix, places, schema_version: 0 }
    }

    /// Same layout, writing another schema version.
    pub fn with_schema_version(mut self, version: u8) -> RecordLayout {
        self.schema_version = version;
        self
    }

    /// The schema version that a record was written with.
    pub fn schema_version_of(record: &[u8]) -> Option<u8> {
        record.get(1).copied()
    }

    /// Number of columns that a record has.
    pub fn columns_of(record: &[u8]) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes([*record.get(2)?, *record.get(3)?])))
    }

    /// Types of the columns.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Number of columns.
    pub fn column_count(&self) -> usize {
        self.types.len()
    }

    fn frame(&self, count: usize, wide: bool) -> Option<Frame> {
        let (fixed_bytes, vars) = *self.prefix.get(count)?;
        let fixed = HEADER + count.div_ceil(8);
        let offsets = fixed + fixed_bytes as usize;
        let data = offsets + vars as usize * if wide { 4 } else { 2 };
        Some(Frame { nulls: HEADER, fixed, offsets, data, wide })
    }

    /// Contents of column `column`.
    #[inline]
    pub fn cell<'a>(&self, record: &'a [u8], column: usize) -> Result<Cell<'a>, RecordError> {
        let place = self.places.get(column).ok_or(RecordError::Corrupt)?;
        self.cell_at(record, place)
    }

    /// Contents of a column of a record that lacks columns or is wide.
    fn unusual_cell<'a>(&self, record: &'a [u8], column: usize) -> Result<Cell<'a>, RecordError> {
        let slot = *self.slots.get(column).ok_or(RecordError::Corrupt)?;
        let header = record.first_chunk::<HEADER>().ok_or(RecordError::Corrupt)?;
        if header[0] & !WIDE != FORMAT {
            return Err(RecordError::Corrupt);
        }
        let count = usize::from(u16::from_le_bytes([header[2], header[3]]));
        if column >= count {
            return Ok(Cell::Missing);
        }
        let frame = self.frame(count, header[0] & WIDE != 0).ok_or(RecordError::Corrupt)?;
        let nulls = record.get(frame.nulls + column / 8).ok_or(RecordError::Corrupt)?;
        if nulls >> (column % 8) & 1 == 1 {
            return Ok(Cell::Null);
        }
        let bytes = match slot {
            Slot::Fixed { at, length } => {
                let at = frame.fixed + at as usize;
                record.get(at..at + usize::from(length))
            }
            Slot::Var { index } => var_bytes(record, &frame, index as usize),
        };
        bytes.map(Cell::Bytes).ok_or(RecordError::Corrupt)
    }

    /// The stored bytes of a column; `None` for NULL, missing and corrupt columns.
    pub fn column_bytes<'a>(&self, record: &'a [u8], column: usize) -> Option<&'a [u8]> {
        match self.cell(record, column) {
            Ok(Cell::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// The value of a column; `None` when the record is older than the column.
    #[inline]
    pub fn decode_column(
        &self,
        record: &[u8],
        column: usize,
    ) -> Result<Option<Value>, RecordError> {
        match self.cell(record, column)? {
            Cell::Null => Ok(Some(Value::Null)),
            Cell::Missing => Ok(None),
            Cell::Bytes(bytes) => decode(bytes, &self.types[column]).map(Some),
        }
    }

    /// Column `column` as a value; `missing` (or NULL) when the record is older than the column. `None` when the record
    /// is damaged.
    pub fn value(&self, record: &[u8], column: usize, missing: Option<&Value>) -> Option<Value> {
        let value = self.decode_column(record, column).ok()?;
        Some(value.unwrap_or_else(|| missing.cloned().unwrap_or(Value::Null)))
    }

    /// Appends the values of all columns that the record has; returns how many.
    pub fn decode_all(&self, record: &[u8], out: &mut Vec<Value>) -> Result<usize, RecordError> {
        let mut decoded = 0;
        for column in 0..self.types.len() {
            match self.decode_column(record, column)? {
                Some(value) => out.push(value),
                None => break,
            }
            decoded += 1;
        }
        Ok(decoded)
    }

    /// Appends the record of a row; there may be fewer values than columns, at the end.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<(), RecordError> {
        self.encode_from(values.len(), |column| &values[column], out)
    }

    /// As `encode`, of `count` values that are not contiguous.
    ///
    /// # Errors
    /// As `encode`.
    pub fn encode_from<'v>(
        &self,
        count: usize,
        value_of: impl Fn(usize) -> &'v Value,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let start = out.len();
        if count > self.types.len() || count > usize::from(u16::MAX) {
            return Err(RecordError::WrongValue(self.types.len()));
        }
        let result = match self.encode_sized(count, &value_of, false, out) {
            Err(RecordError::TooLong) => {
                out.truncate(start);
                self.encode_sized(count, &value_of, true, out)
            }
            other => other,
        };
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// As `encode_from`, of all columns, for a row of which only some columns differ from `old`: `value_of` gives a value for
    /// those. Returns false and writes nothing when `old` lacks columns, or one of the two has wide offsets.
    ///
    /// # Errors
    /// As `encode`.
    pub fn encode_over<'v>(
        &self,
        old: &[u8],
        value_of: impl Fn(usize) -> Option<&'v Value>,
        out: &mut Vec<u8>,
    ) -> Result<bool, RecordError> {
        let count = self.types.len();
        let usual = [FORMAT, (count & 0xFF) as u8, (count >> 8) as u8];
        let frame = self.frame(count, false).ok_or(RecordError::Corrupt)?;
        if old.len() < frame.data || [old[0], old[2], old[3]] != usual {
            return Ok(false);
        }
        let start = out.len();
        out.extend_from_slice(&old[..frame.data]);
        out[start + 1] = self.schema_version;
        let written = self.write_over(old, &frame, &value_of, start, out);
        match written {
            Ok(()) => Ok(true),
            Err(RecordError::TooLong) => {
                out.truncate(start);
                Ok(false)
            }
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }

    fn write_over<'v>(
        &self,
        old: &[u8],
        frame: &Frame,
        value_of: &impl Fn(usize) -> Option<&'v Value>,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        for (column, slot) in self.slots.iter().enumerate() {
            let value = value_of(column);
            if let Some(value) = value {
                let (at, mask) = (start + frame.nulls + column / 8, 1 << (column % 8));
                match value.is_null() {
                    true => out[at] |= mask,
                    false => out[at] &= !mask,
                }
            }
            match (*slot, value) {
                (Slot::Fixed { at, length }, Some(value)) => {
                    let at = start + frame.fixed + at as usize;
                    let field = &mut out[at..at + usize::from(length)];
                    field.fill(0);
                    encode_fixed(value, &self.types[column], field)
                        .ok_or(RecordError::WrongValue(column))?;
                }
                (Slot::Fixed { .. }, None) => {}
                (Slot::Var { index }, value) => {
                    match value {
                        Some(Value::Bytes(bytes) | Value::Json(bytes)) => {
                            out.extend_from_slice(bytes);
                        }
                        Some(Value::Null) => {}
                        Some(_) => return Err(RecordError::WrongValue(column)),
                        None => {
                            let bytes = var_bytes(old, frame, index as usize);
                            out.extend_from_slice(bytes.ok_or(RecordError::Corrupt)?);
                        }
                    }
                    let end = out.len() - start - frame.data;
                    let end = u16::try_from(end).map_err(|_| RecordError::TooLong)?;
                    let at = start + frame.offsets + index as usize * 2;
                    out[at..at + 2].copy_from_slice(&end.to_le_bytes());
                }
            }
        }
        Ok(())
    }

    fn encode_sized<'v>(
        &self,
        count: usize,
        value_of: &impl Fn(usize) -> &'v Value,
        wide: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), RecordError> {
        let frame = self.frame(count, wide).ok_or(RecordError::Corrupt)?;
        let start = out.len();
        out.push(if wide { FORMAT | WIDE } else { FORMAT });
        out.push(self.schema_version);
        out.extend_from_slice(&(count as u16).to_le_bytes());
        out.resize(start + frame.data, 0);
        for column in 0..count {
            let value = value_of(column);
            if value.is_null() {
                out[start + frame.nulls + column / 8] |= 1 << (column % 8);
            }
            match self.slots[column] {
                Slot::Fixed { at, length } => {
                    let at = start + frame.fixed + at as usize;
                    let field = &mut out[at..at + usize::from(length)];
                    encode_fixed(value, &self.types[column], field)
                        .ok_or(RecordError::WrongValue(column))?;
                }
                Slot::Var { index } => {
                    match value {
                        Value::Bytes(bytes) | Value::Json(bytes) => out.extend_from_slice(bytes),
                        Value::Null => {}
                        _ => return Err(RecordError::WrongValue(column)),
                    }
                    let end = out.len() - start - frame.data;
                    let at = start + frame.offsets + index as usize * if wide { 4 } else { 2 };
                    if wide {
                        let end = u32::try_from(end).map_err(|_| RecordError::TooLong)?;
                        out[at..at + 4].copy_from_slice(&end.to_le_bytes());
                    } else {
                        let end = u16::try_from(end).map_err(|_| RecordError::TooLong)?;
                        out[at..at + 2].copy_from_slice(&end.to_le_bytes());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Finds one column in records: at a precomputed place when a record has all columns, the common case.
#[derive(Clone, Copy, Debug)]
pub struct ColumnPlace {
    column: usize,
    /// Number of columns of a record with all of them.
    count: [u8; 2],
    null_at: usize,
    null_mask: u8,
    at: PlaceKind,
}

#[derive(Clone, Copy, Debug)]
enum PlaceKind {
    Fixed {
        start: usize,
        end: usize,
    },
    /// Position of the offset of the column's end, whether it is the first variable column, and the start of the variable part.
    Var {
        end_at: usize,
        is_first: bool,
        data: usize,
    },
}

fn place(slots: &[Slot], prefix: &[(u32, u32)], column: usize) -> ColumnPlace {
    let count = slots.len();
    let fixed = HEADER + count.div_ceil(8);
    let (fixed_bytes, vars) = prefix[count];
    let offsets = fixed + fixed_bytes as usize;
    let at = match slots[column] {
        Slot::Fixed { at, length } => {
            let start = fixed + at as usize;
            PlaceKind::Fixed { start, end: start + usize::from(length) }
        }
        Slot::Var { index } => PlaceKind::Var {
            end_at: offsets + index as usize * 2,
            is_first: index == 0,
            data: offsets + vars as usize * 2,
        },
    };
    ColumnPlace {
        column,
        count: (count as u16).to_le_bytes(),
        null_at: HEADER + column / 8,
        null_mask: 1 << (column % 8),
        at,
    }
}

impl RecordLayout {
    /// Position of a column.
    ///
    /// # Panics
    /// If the column does not exist.
    pub fn place(&self, column: usize) -> ColumnPlace {
        self.places[column]
    }

    /// Contents at a place of this layout.
    #[inline]
    pub fn cell_at<'a>(
        &self,
        record: &'a [u8],
        place: &ColumnPlace,
    ) -> Result<Cell<'a>, RecordError> {
        let Some([format, _, count @ ..]) = record.first_chunk::<HEADER>() else {
            return Err(RecordError::Corrupt);
        };
        if *format != FORMAT || *count != place.count {
            return self.unusual_cell(record, place.column);
        }
        let nulls = record.get(place.null_at).ok_or(RecordError::Corrupt)?;
        if nulls & place.null_mask != 0 {
            return Ok(Cell::Null);
        }
        let bytes = match place.at {
            PlaceKind::Fixed { start, end } => record.get(start..end),
            PlaceKind::Var { end_at, is_first, data } => {
                let offset = |at: usize| {
                    let bytes = record.get(at..at + 2)?.first_chunk::<2>()?;
                    Some(usize::from(u16::from_le_bytes(*bytes)))
                };
                let end = offset(end_at).ok_or(RecordError::Corrupt)?;
                let start = match is_first {
                    true => 0,
                    false => offset(end_at - 2).ok_or(RecordError::Corrupt)?,
                };
                record.get(data + start..data + end)
            }
        };
        bytes.map(Cell::Bytes).ok_or(RecordError::Corrupt)
    }
}

/// The stored integer of a column of an integer type, as signed bits.
#[inline]
pub fn integer_bits(bytes: &[u8], unsigned: bool) -> i64 {
    match (bytes.first_chunk::<4>(), bytes.len()) {
        (Some(whole), 4) if !unsigned => i64::from(i32::from_le_bytes(*whole)),
        _ if unsigned => read_u64(bytes) as i64,
        _ => read_i64(bytes),
    }
}

/// A stored cell as a value of the column's type.
///
/// # Errors
/// `Corrupt`.
pub fn decode_cell(bytes: &[u8], ty: &DataType) -> Result<Value, RecordError> {
    decode(bytes, ty)
}

fn var_bytes<'a>(record: &'a [u8], frame: &Frame, index: usize) -> Option<&'a [u8]> {
    let end_of = |index: usize| -> Option<usize> {
        if frame.wide {
            let at = frame.offsets + index * 4;
            let bytes = record.get(at..at + 4)?.first_chunk::<4>()?;
            return Some(u32::from_le_bytes(*bytes) as usize);
        }
        let at = frame.offsets + index * 2;
        Some(usize::from(u16::from_le_bytes(*record.get(at..at + 2)?.first_chunk::<2>()?)))
    };
    let from = if index == 0 { 0 } else { end_of(index - 1)? };
    record.get(frame.data + from..frame.data + end_of(index)?)
}

/// Little-endian integer of up to eight bytes.
#[inline]
fn read_u64(bytes: &[u8]) -> u64 {
    if let Some(whole) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*whole);
    }
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[inline]
fn read_i64(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
    ((read_u64(bytes) << unused) as i64) >> unused
}

fn read_float(bytes: &[u8], ty: &DataType) -> Option<f64> {
    let number = match ty.kind {
        TypeKind::Float => f64::from(f32::from_le_bytes(*bytes.first_chunk()?)),
        _ => f64::from_le_bytes(*bytes.first_chunk()?),
    };
    number.is_finite().then_some(number)
}

fn read_time(bytes: &[u8]) -> Option<Time> {
    let number = read_i64(bytes);
    Time::from_micros(if bytes.len() == 3 { number * MICROS_PER_SECOND } else { number })
}

fn read_datetime(bytes: &[u8]) -> Option<DateTime> {
    let number = read_u64(bytes);
    DateTime::from_packed(if bytes.len() == 5 { number << 20 } else { number })
}

fn read_year(bytes: &[u8]) -> u64 {
    match bytes.first() {
        Some(0) | None => 0,
        Some(&year) => 1900 + u64::from(year),
    }
}

fn decode(bytes: &[u8], ty: &DataType) -> Result<Value, RecordError> {
    use TypeKind::*;
    let value = match ty.kind {
        Null => Some(Value::Null),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Some(if ty.unsigned {
            Value::UInt(read_u64(bytes))
        } else {
            Value::Int(read_i64(bytes))
        }),
        Float | Double => read_float(bytes, ty).map(Value::Double),
        Decimal => crate::Decimal::read_key(bytes, ty.length, ty.decimals).map(Value::Decimal),
        Bit | Enum | Set => Some(Value::UInt(read_u64(bytes))),
        Year => Some(Value::UInt(read_year(bytes))),
        Date => crate::Date::from_packed(read_u64(bytes) as u32).map(Value::Date),
        Time => read_time(bytes).map(Value::Time),
        DateTime | Timestamp => read_datetime(bytes).map(Value::DateTime),
        Json => Some(Value::Json(SqlBytes::new(bytes))),
        Fixed(kind) => (bytes.len() == kind.bytes()).then(|| Value::Bytes(SqlBytes::new(bytes))),
        Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Vector | Geometry => {
            Some(Value::Bytes(SqlBytes::new(bytes)))
        }
    };
    value.ok_or(RecordError::Corrupt)
}

/// Writes a value into its place; `None` when it is of another type or out of range.
fn encode_fixed(value: &Value, ty: &DataType, field: &mut [u8]) -> Option<()> {
    use TypeKind::*;
    let length = field.len();
    let mut integer = |number: u64| field.copy_from_slice(&number.to_le_bytes()[..length]);
    match (ty.kind, value) {
        (_, Value::Null) => {}
        (TinyInt | SmallInt | MediumInt | Int | BigInt, _) => {
            let (low, high) = ty.integer_range()?;
            let number = match *value {
                Value::Int(number) if number < 0 => {
                    if number < low {
                        return None;
                    }
                    number as u64
                }
                Value::Int(number) if number as u64 <= high => number as u64,
                Value::UInt(number) if number <= high => number,
                _ => return None,
            };
            integer(number);
        }
        (Float, Value::Double(number)) => {
            let narrow = *number as f32;
            if !narrow.is_finite() {
                return None;
            }
            field.copy_from_slice(&narrow.to_le_bytes());
        }
        (Double, Value::Double(number)) => field.copy_from_slice(&number.to_le_bytes()),
        (Decimal, Value::Decimal(number)) => {
            let mut key = Vec::with_capacity(length);
            number.write_key(ty.length, ty.decimals, &mut key);
            field.copy_from_slice(key.get(..length)?);
        }
        (Bit | Enum | Set, Value::UInt(number)) => {
            if length < 8 && number >> (8 * length) != 0 {
                return None;
            }
            integer(*number);
        }
        (Year, Value::UInt(0)) => integer(0),
        (Year, Value::UInt(year @ 1901..=2155)) => integer(year - 1900),
        (Date, Value::Date(date)) => integer(u64::from(date.packed())),
        (Time, Value::Time(time)) => integer(if length == 3 {
            (time.micros() / MICROS_PER_SECOND) as u64
        } else {
            time.micros() as u64
        }),
        (DateTime | Timestamp, Value::DateTime(datetime)) => {
            integer(if length == 5 { datetime.packed() >> 20 } else { datetime.packed() });
        }
        (Fixed(_), Value::Bytes(bytes)) if bytes.len() == length => field.copy_from_slice(bytes),
        _ => return None,
    }
    Some(())
}

/// Whether the stored bytes of a column are also its text.
#[inline]
pub fn is_stored_as_text(kind: TypeKind) -> bool {
    use TypeKind::*;
    match kind {
        Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Vector | Geometry => true,
        Null | TinyInt | SmallInt | MediumInt | Int | BigInt | Decimal | Float | Double | Bit
        | Year | Date | Time | DateTime | Timestamp | Enum | Set | Json | Fixed(_) => false,
    }
}

/// Appends the text of the stored bytes of a column.
///
/// # Errors
/// `Corrupt`.
pub fn write_stored_text(
    bytes: &[u8],
    ty: &DataType,
    out: &mut Vec<u8>,
) -> Result<(), RecordError> {
    use TypeKind::*;
    match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt if !ty.zerofill => {
            if ty.unsigned {
                write_u64(read_u64(bytes), out);
            } else {
                write_i64(read_i64(bytes), out);
            }
        }
        Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Vector | Geometry => {
            out.extend_from_slice(bytes)
        }
        Json => crate::json::write_text(bytes, out),
        Fixed(kind) => kind.write_text(bytes, out),
        Null | TinyInt | SmallInt | MediumInt | Int | BigInt | Decimal | Float | Double | Bit
        | Year | Date | Time | DateTime | Timestamp | Enum | Set => {
            text::to_text(&decode(bytes, ty)?, ty, out);
        }
    }
    Ok(())
}
