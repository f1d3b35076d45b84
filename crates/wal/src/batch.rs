//! The bytes of a batch and of the records inside it.

use stdx::bytes::Reader;

/// Bytes of a batch header.
pub(crate) const HEADER_BYTES: usize = 64;
/// Those of them that mean something.
const FIELDS_BYTES: usize = 52;
const MAGIC: u32 = 0x4C57_5153; // "SQWL"
/// Bytes before a record's body: length of the body:32, kind:8, unused:24, ticket:64.
pub(crate) const RECORD_HEADER_BYTES: usize = 16;

// The format on disk. A change of any of these changes docs/format/wal.md.
const _: () = assert!(HEADER_BYTES == 64 && RECORD_HEADER_BYTES == 16);

/// Header of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub epoch: u32,
    pub number: u64,
    /// Every ticket below it is in this batch or an earlier one.
    pub low: u64,
    /// One more than the largest ticket in this batch or an earlier one.
    pub high: u64,
    pub length: u32,
    pub previous_crc: u32,
    /// Batches with a smaller number were durable when this one was made.
    pub durable: u64,
    /// Checksum of the batch, which the next one carries. Not covered by the checksum itself.
    pub crc: u32,
}

impl Header {
    /// Fills in the header of `batch`, which already has its payload, and returns the checksum.
    pub fn seal(self, batch: &mut [u8]) -> u32 {
        let (fields, rest) = batch[..HEADER_BYTES].split_at_mut(FIELDS_BYTES);
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            fields[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        put(&MAGIC.to_le_bytes());
        put(&[0; 4]);
        put(&self.number.to_le_bytes());
        put(&self.low.to_le_bytes());
        put(&self.high.to_le_bytes());
        put(&self.epoch.to_le_bytes());
        put(&self.length.to_le_bytes());
        put(&self.previous_crc.to_le_bytes());
        put(&self.durable.to_le_bytes());
        rest.fill(0);
        let end = HEADER_BYTES + self.length as usize;
        let crc = page::crc(&batch[8..end]);
        batch[4..8].copy_from_slice(&crc.to_le_bytes());
        crc
    }

    /// Reads a header; `None` if the bytes are not one. The checksum is not verified here.
    pub fn parse(bytes: &[u8]) -> Option<Header> {
        let mut reader = Reader::new(bytes);
        if reader.u32()? != MAGIC {
            return None;
        }
        let crc = reader.u32()?;
        let (number, low, high) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let (epoch, length, previous_crc) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let durable = reader.u64()?;
        Some(Header { epoch, number, low, high, length, previous_crc, durable, crc })
    }
}

/// Appends a record.
pub(crate) fn put_record(out: &mut Vec<u8>, kind: u8, ticket: u64, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.reserve(RECORD_HEADER_BYTES + length);
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.extend_from_slice(&[kind, 0, 0, 0]);
    out.extend_from_slice(&ticket.to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// Length of the record that starts `bytes`, header included.
pub(crate) fn record_length(bytes: &[u8]) -> Option<usize> {
    let length = Reader::new(bytes).u32()? as usize + RECORD_HEADER_BYTES;
    (length <= bytes.len()).then_some(length)
}
