//! Bodies of the events around transactions: the start of a file, its end, commits, signs of life.

use types::GtidSet;

use crate::gtid;
use crate::read::{
    Malformed, Reader, Result, put_lenenc, put_lenenc_bytes, put_short_bytes, put_uint,
};

/// Version of the format.
const VERSION: u16 = 4;
/// Bytes of the server's name and version.
const SERVER_VERSION_BYTES: usize = 50;
/// Events end with a CRC32.
const CHECKSUM_CRC32: u8 = 1;
/// Bytes that kinds of events have before their variable part, from kind 1 on: as 9.7 writes them.
const FIXED_PARTS: [u8; 42] = [
    0, 13, 0, 8, 0, 0, 0, 0, 4, 0, 4, 0, 0, 0, 99, 0, 4, 26, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 10,
    10, 10, 42, 42, 0, 18, 52, 0, 10, 40, 0, 0,
];

/// The first event of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatDescription<'a> {
    /// Version of the format.
    pub version: u16,
    /// Version of the server that wrote the file.
    pub server_version: &'a [u8],
    /// Seconds since 1970 when the server started, in its first file; 0 in others.
    pub created: u32,
    /// Whether events have a CRC32.
    pub has_checksums: bool,
}

/// Appends the body of a format description: events have a CRC32, or none.
pub fn write_format_description(
    server_version: &str,
    created: u32,
    has_checksums: bool,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(&VERSION.to_le_bytes());
    let start = out.len();
    // A zero byte ends the version.
    let length = server_version.len().min(SERVER_VERSION_BYTES - 1);
    out.extend_from_slice(&server_version.as_bytes()[..length]);
    out.resize(start + SERVER_VERSION_BYTES, 0);
    out.extend_from_slice(&created.to_le_bytes());
    out.push(crate::event::HEADER_BYTES as u8);
    out.extend_from_slice(&FIXED_PARTS);
    out.push(if has_checksums { CHECKSUM_CRC32 } else { 0 });
}

/// The body of the event without its checksum.
pub(crate) fn read_format_description(body: &[u8]) -> Result<FormatDescription<'_>> {
    let mut reader = Reader::new(body);
    let version = reader.u16()?;
    let server = reader.bytes(SERVER_VERSION_BYTES)?;
    let created = reader.u32()?;
    if reader.u8()? as usize != crate::event::HEADER_BYTES {
        return Err(Malformed("length of headers"));
    }
    let end = server.iter().position(|byte| *byte == 0).unwrap_or(server.len());
    let algorithm = reader.rest().last().copied().unwrap_or(0);
    if algorithm > CHECKSUM_CRC32 && algorithm != 255 {
        return Err(Malformed("kind of checksums"));
    }
    let has_checksums = algorithm == CHECKSUM_CRC32;
    Ok(FormatDescription { version, server_version: &server[..end], created, has_checksums })
}

/// Appends the body of a rotate event: the log goes on at `position` of the file `name`.
pub fn write_rotate(position: u64, name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&position.to_le_bytes());
    out.extend_from_slice(name.as_bytes());
}

/// Appends the body of the event with the transactions of all earlier files.
pub fn write_previous_gtids(set: &GtidSet, out: &mut Vec<u8>) {
    gtid::write_set(set, out);
}

/// Appends the body of an XID event.
pub fn write_xid(xid: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&xid.to_le_bytes());
}

/// Appends the body of an event with the text of the statement that changed rows. The byte before it, once its length, is 0.
pub fn write_rows_query(text: &[u8], out: &mut Vec<u8>) {
    out.push(0);
    out.extend_from_slice(text);
}

/// Appends the body of a heartbeat: the name of the present file.
pub fn write_heartbeat(name: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
}

/// Appends the body of a heartbeat for files beyond 4 GiB: numbered fields with the name of the present file and the position.
pub fn write_heartbeat_v2(position: u64, name: &str, out: &mut Vec<u8>) {
    out.push(1);
    put_lenenc_bytes(name.as_bytes(), out);
    let mut number = Vec::new();
    put_lenenc(position, &mut number);
    out.push(2);
    put_lenenc_bytes(&number, out);
    out.push(0);
}

/// A sign of life: how far the reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heartbeat<'a> {
    /// The file.
    pub name: &'a [u8],
    /// The position; 0 when only the header has it.
    pub position: u64,
}

pub(crate) fn read_heartbeat_v2(body: &[u8]) -> Result<Heartbeat<'_>> {
    let mut reader = Reader::new(body);
    let mut heartbeat = Heartbeat { name: b"", position: 0 };
    while !reader.is_empty() {
        match reader.u8()? {
            0 => break,
            1 => heartbeat.name = reader.lenenc_bytes()?,
            2 => heartbeat.position = Reader::new(reader.lenenc_bytes()?).lenenc()?,
            _ => _ = reader.lenenc_bytes()?,
        }
    }
    Ok(heartbeat)
}

/// Appends the body of an incident: changes may be missing.
pub fn write_incident(message: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&1u16.to_le_bytes());
    put_short_bytes(message.as_bytes(), out);
}

/// The identifier of an XA transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XaPrepare<'a> {
    /// Whether it was committed in one phase.
    pub one_phase: bool,
    /// Number of the format.
    pub format: i32,
    /// The part of all branches.
    pub global: &'a [u8],
    /// The part of this branch.
    pub branch: &'a [u8],
}

impl<'a> XaPrepare<'a> {
    /// Appends the body.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.one_phase));
        out.extend_from_slice(&self.format.to_le_bytes());
        out.extend_from_slice(&(self.global.len() as u32).to_le_bytes());
        out.extend_from_slice(&(self.branch.len() as u32).to_le_bytes());
        out.extend_from_slice(self.global);
        out.extend_from_slice(self.branch);
    }

    pub(crate) fn read(body: &'a [u8]) -> Result<XaPrepare<'a>> {
        let mut reader = Reader::new(body);
        let (one_phase, format) = (reader.u8()? != 0, reader.i32()?);
        let (global, branch) = (reader.u32()? as usize, reader.u32()? as usize);
        if global > 64 || branch > 64 {
            return Err(Malformed("XA identifier"));
        }
        let (global, branch) = (reader.bytes(global)?, reader.bytes(branch)?);
        Ok(XaPrepare { one_phase, format, global, branch })
    }
}

/// Events of a transaction in compressed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionPayload<'a> {
    /// Whether the payload is compressed by zstd; it is plain otherwise.
    pub is_zstd: bool,
    /// Bytes of the events.
    pub uncompressed_size: u64,
    /// The events, without checksums once uncompressed.
    pub payload: &'a [u8],
}

impl<'a> TransactionPayload<'a> {
    /// Appends the body of a payload event with `events` (whole and not sealed) compressed at a level of zstd.
    ///
    /// # Errors
    /// The compressor failed.
    pub fn write(events: &[u8], level: i32, out: &mut Vec<u8>) -> std::io::Result<()> {
        let payload = zstd::bulk::compress(events, level)?;
        for (number, value) in [(2, 0), (3, events.len() as u64), (1, payload.len() as u64)] {
            let mut bytes = Vec::new();
            put_lenenc(value, &mut bytes);
            out.push(number);
            put_lenenc_bytes(&bytes, out);
        }
        out.push(0);
        out.extend_from_slice(&payload);
        Ok(())
    }

    pub(crate) fn read(body: &'a [u8]) -> Result<TransactionPayload<'a>> {
        let mut reader = Reader::new(body);
        let (mut kind, mut size, mut length) = (255, 0, None);
        loop {
            let number = reader.u8()?;
            if number == 0 {
                break;
            }
            let mut content = Reader::new(reader.lenenc_bytes()?);
            match number {
                1 => length = Some(content.lenenc_usize()?),
                2 => kind = content.lenenc()?,
                3 => size = content.lenenc()?,
                _ => {}
            }
        }
        if kind != 0 && kind != 255 {
            return Err(Malformed("compression of a transaction"));
        }
        let payload = reader.bytes(length.unwrap_or(reader.rest().len()))?;
        let uncompressed_size = if kind == 0 { size } else { payload.len() as u64 };
        Ok(TransactionPayload { is_zstd: kind == 0, uncompressed_size, payload })
    }

    /// The events, none of which is sealed.
    ///
    /// # Errors
    /// They are longer than `bytes_max`, or the payload is damaged.
    pub fn events(&self, bytes_max: u64) -> Result<Vec<u8>> {
        if self.uncompressed_size > bytes_max {
            return Err(Malformed("size of a transaction"));
        }
        if !self.is_zstd {
            return Ok(self.payload.to_vec());
        }
        let mut events = Vec::new();
        let decoder = zstd::stream::read::Decoder::with_buffer(self.payload);
        let mut decoder = decoder.map_err(|_| Malformed("payload"))?;
        // One byte more would show that the size is a lie.
        let mut limited = std::io::Read::take(&mut decoder, self.uncompressed_size + 1);
        std::io::Read::read_to_end(&mut limited, &mut events).map_err(|_| Malformed("payload"))?;
        if events.len() as u64 != self.uncompressed_size {
            return Err(Malformed("size of a transaction"));
        }
        Ok(events)
    }
}

/// The body of a rotate event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotate<'a> {
    /// Where the log goes on.
    pub position: u64,
    /// The file.
    pub name: &'a [u8],
}

pub(crate) fn read_rotate(body: &[u8]) -> Result<Rotate<'_>> {
    let mut reader = Reader::new(body);
    Ok(Rotate { position: reader.u64()?, name: reader.rest() })
}

/// Appends what COM_BINLOG_DUMP_GTID says after the command byte.
pub fn write_dump_gtid(server_id: u32, set: &GtidSet, tagged: bool, out: &mut Vec<u8>) {
    // Without the flag that ends the stream at the end of the log; with the one that the set counts.
    out.extend_from_slice(&4u16.to_le_bytes());
    out.extend_from_slice(&server_id.to_le_bytes());
    out.extend_from_slice(&0u32.to_le_bytes());
    out.extend_from_slice(&4u64.to_le_bytes());
    let start = out.len();
    put_uint(0, 4, out);
    if tagged {
        gtid::write_tagged_set(set, out)
    } else {
        gtid::write_untagged_set(set, out)
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// What a reader of the log asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpRequest<'a> {
    /// 1: end at the end of the log instead of waiting.
    pub flags: u16,
    /// The reader.
    pub server_id: u32,
    /// The file to begin with; empty for the first, or when a set is given.
    pub name: &'a [u8],
    /// The position in it.
    pub position: u64,
    /// What the reader has.
    pub gtids: Option<GtidSet>,
}

/// Reads what follows the byte of COM_BINLOG_DUMP.
///
/// # Errors
/// The bytes are too few.
pub fn read_dump(payload: &[u8]) -> Result<DumpRequest<'_>> {
    let mut reader = Reader::new(payload);
    let position = u64::from(reader.u32()?);
    let (flags, server_id) = (reader.u16()?, reader.u32()?);
    Ok(DumpRequest { flags, server_id, name: reader.rest(), position, gtids: None })
}

/// Reads what follows the byte of COM_BINLOG_DUMP_GTID.
///
/// # Errors
/// The bytes are too few, or the set is malformed.
pub fn read_dump_gtid(payload: &[u8]) -> Result<DumpRequest<'_>> {
    let mut reader = Reader::new(payload);
    let (flags, server_id) = (reader.u16()?, reader.u32()?);
    let name_length = reader.u32()? as usize;
    let name = reader.bytes(name_length)?;
    let position = reader.u64()?;
    let gtids = if reader.is_empty() {
        None
    } else {
        let length = reader.u32()? as usize;
        Some(if length == 0 { GtidSet::default() } else { gtid::read_set(reader.bytes(length)?)? })
    };
    Ok(DumpRequest { flags, server_id, name, position, gtids })
}
