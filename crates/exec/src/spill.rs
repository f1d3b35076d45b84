//! Rows that a statement cannot keep in memory, in files without a name. A row is a key and values.

use std::io;
use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use sys::temporary::UnnamedFile;
use types::{Date, DateTime, Decimal, SqlBytes, Time, Value};

use crate::context::ExecSettings;

/// Bytes written at a time.
const WRITE_BYTES: usize = 64 << 10;
/// Bytes read ahead of each sequence of rows.
const READ_BYTES: usize = 32 << 10;

fn write_error(error: &io::Error) -> Error {
    let (number, text) = (error.raw_os_error().unwrap_or(0), error.to_string());
    Error::with(ErrorCode::ERROR_ON_WRITE, &[&"(temporary)", &number, &text])
}

fn read_error(error: &io::Error) -> Error {
    let (number, text) = (error.raw_os_error().unwrap_or(0), error.to_string());
    Error::with(ErrorCode::ERROR_ON_READ, &[&"(temporary)", &number, &text])
}

fn damaged() -> Error {
    Error::internal("a temporary row is damaged")
}

fn append_value(value: &Value, out: &mut Vec<u8>) {
    let mut tagged = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => tagged(0, &[]),
        Value::Int(number) => tagged(1, &number.to_le_bytes()),
        Value::UInt(number) => tagged(2, &number.to_le_bytes()),
        Value::Double(number) => tagged(3, &number.to_le_bytes()),
        Value::Date(date) => tagged(4, &date.packed().to_le_bytes()),
        Value::Time(time) => tagged(5, &time.micros().to_le_bytes()),
        Value::DateTime(time) => tagged(6, &time.packed().to_le_bytes()),
        Value::Decimal(number) => match number.as_i128() {
            Some((number, scale)) => {
                tagged(7, &[scale]);
                out.extend_from_slice(&number.to_le_bytes());
            }
            None => {
                let mut text = Vec::new();
                number.write_text(&mut text);
                append_bytes(8, &text, out);
            }
        },
        Value::Bytes(bytes) => append_bytes(9, bytes, out),
        Value::Json(bytes) => append_bytes(10, bytes, out),
    }
}

fn append_bytes(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Takes `N` bytes off the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*head)
}

fn take_bytes<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = u32::from_le_bytes(take(bytes)?) as usize;
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}

fn read_value(bytes: &mut &[u8]) -> Option<Value> {
    let [tag] = take(bytes)?;
    Some(match tag {
        0 => Value::Null,
        1 => Value::Int(i64::from_le_bytes(take(bytes)?)),
        2 => Value::UInt(u64::from_le_bytes(take(bytes)?)),
        3 => Value::Double(f64::from_le_bytes(take(bytes)?)),
        4 => Value::Date(Date::from_packed(u32::from_le_bytes(take(bytes)?))?),
        5 => Value::Time(Time::from_micros(i64::from_le_bytes(take(bytes)?))?),
        6 => Value::DateTime(DateTime::from_packed(u64::from_le_bytes(take(bytes)?))?),
        7 => {
            let [scale] = take(bytes)?;
            Value::Decimal(Decimal::from_i128(i128::from_le_bytes(take(bytes)?), scale))
        }
        8 => Value::Decimal(Decimal::parse(take_bytes(bytes)?)?),
        9 => Value::Bytes(SqlBytes::new(take_bytes(bytes)?)),
        10 => Value::Json(SqlBytes::new(take_bytes(bytes)?)),
        _ => return None,
    })
}

/// The region of a sequence of rows in a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    start: u64,
    end: u64,
}

/// A file to which sequences of rows are appended, one after another.
pub(crate) struct RowWriter {
    file: Arc<UnnamedFile>,
    buffer: Vec<u8>,
    /// Bytes in the file.
    written: u64,
    /// The start of the current sequence.
    start: u64,
}

impl RowWriter {
    /// A new file.
    pub(crate) fn create(settings: &ExecSettings) -> Result<RowWriter> {
        let file = settings.temporary_files.create();
        let file = file.map_err(|error| {
            let (number, text) = (error.raw_os_error().unwrap_or(0), error.to_string());
            Error::with(ErrorCode::CANT_CREATE_FILE, &[&"(temporary)", &number, &text])
        })?;
        Ok(RowWriter { file: Arc::new(file), buffer: Vec::new(), written: 0, start: 0 })
    }

    /// Appends a row.
    pub(crate) fn push<'v>(
        &mut self,
        key: &[u8],
        values: impl Iterator<Item = &'v Value>,
    ) -> Result<()> {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.buffer.extend_from_slice(key);
        values.for_each(|value| append_value(value, &mut self.buffer));
        let length = u32::try_from(self.buffer.len() - start - 4);
        let length = length.map_err(|_| Error::with(ErrorCode::OUT_OF_SORTMEMORY, &[]))?;
        self.buffer[start..start + 4].copy_from_slice(&length.to_le_bytes());
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_at(&self.buffer, self.written).map_err(|error| write_error(&error))?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends the current sequence; the next row begins another.
    pub(crate) fn end_sequence(&mut self) -> Result<Extent> {
        self.flush()?;
        let extent = Extent { start: self.start, end: self.written };
        self.start = self.written;
        Ok(extent)
    }

    /// Reads a sequence that was ended.
    pub(crate) fn reader(&self, extent: Extent) -> RowReader {
        RowReader {
            file: self.file.clone(),
            next: extent.start,
            end: extent.end,
            buffer: Vec::new(),
            at: 0,
        }
    }
}

/// Reads a sequence of rows.
pub(crate) struct RowReader {
    file: Arc<UnnamedFile>,
    /// The file's bytes from here to `end` are still to be read into the buffer.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    at: usize,
}

impl RowReader {
    /// Makes `wanted` bytes available after `at`; false at the end.
    fn fill(&mut self, wanted: usize) -> Result<bool> {
        let have = self.buffer.len() - self.at;
        if have >= wanted {
            return Ok(true);
        }
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        if have == 0 && left == 0 {
            return Ok(false);
        }
        let more = (wanted - have).max(READ_BYTES).min(left);
        self.buffer.drain(..self.at);
        self.at = 0;
        self.buffer.resize(have + more, 0);
        let read = self.file.read_at(&mut self.buffer[have..], self.next);
        read.map_err(|error| read_error(&error))?;
        self.next += more as u64;
        if self.buffer.len() < wanted { Err(damaged()) } else { Ok(true) }
    }

    /// The next row into `key` and `values`; false at the end.
    pub(crate) fn next(&mut self, key: &mut Vec<u8>, values: &mut Vec<Value>) -> Result<bool> {
        key.clear();
        values.clear();
        if !self.fill(4)? {
            return Ok(false);
        }
        let mut head = &self.buffer[self.at..];
        let length = u32::from_le_bytes(take(&mut head).ok_or_else(damaged)?) as usize;
        self.at += 4;
        self.fill(length)?;
        let mut row = self.buffer.get(self.at..self.at + length).ok_or_else(damaged)?;
        self.at += length;
        key.extend_from_slice(take_bytes(&mut row).ok_or_else(damaged)?);
        while !row.is_empty() {
            values.push(read_value(&mut row).ok_or_else(damaged)?);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_comes_back() {
        let wide =
            Decimal::parse(b"123456789012345678901234567890123456789012.5000").expect("wide");
        let values = [
            Value::Null,
            Value::Int(-5),
            Value::UInt(u64::MAX),
            Value::Double(-0.5),
            Value::Decimal(Decimal::from_i128(-1250, 2)),
            Value::Decimal(wide),
            Value::Bytes(SqlBytes::new(&[7; 300])),
            Value::Date(Date::new(2024, 2, 29).expect("date")),
            Value::Time(Time::from_micros(-1_500_000).expect("time")),
        ];
        let mut bytes = Vec::new();
        values.iter().for_each(|value| append_value(value, &mut bytes));
        let mut rest = bytes.as_slice();
        for value in &values {
            let read = read_value(&mut rest).expect("value");
            assert_eq!(&read, value);
            if let (Value::Decimal(a), Value::Decimal(b)) = (&read, value) {
                assert_eq!(a.scale(), b.scale());
            }
        }
        assert!(rest.is_empty());
        assert_eq!(read_value(&mut &[99u8][..]), None);
    }
}
