//! What MariaDB writes in another way than MySQL: identifiers of transactions, compressed events, times in their old form, collations of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use charset::CollationId;
use types::{Date, DateTime, Time, Value};

use crate::envelope::XaPrepare;
use crate::event::EventKind;
use crate::layout::OldTemporal;
use crate::read::{Malformed, Reader, Result, put_uint, put_uint_be};

/// Most bytes of an event once it is not compressed: as many as a packet has.
const EVENT_BYTES_MAX: u64 = 1 << 30;
/// Most domains of a position.
const DOMAINS_MAX: usize = 4096;

/// Flags of the event that starts a transaction.
mod flags {
    /// No COMMIT follows: a statement that is a transaction of its own.
    pub(super) const STANDALONE: u8 = 1;
    pub(super) const GROUP_COMMIT: u8 = 2;
    pub(super) const PREPARED_XA: u8 = 0x40;
    pub(super) const COMPLETED_XA: u8 = 0x80;
}

/// An ALTER TABLE in two parts: flags that may follow.
const TWO_PHASE_ALTER: u8 = 2 | 4 | 8;

/// An identifier: `domain-server-sequence`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MariadbGtid {
    /// The domain, in which transactions have one order.
    pub domain: u32,
    /// The server that the transaction began on.
    pub server_id: u32,
    /// Its number.
    pub sequence: u64,
}

impl fmt::Display for MariadbGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.domain, self.server_id, self.sequence)
    }
}

/// How far a reader is: the last transaction of each domain (`gtid_slave_pos`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MariadbPosition {
    domains: BTreeMap<u32, MariadbGtid>,
}

impl MariadbPosition {
    /// Reads `0-1-100,1-1-7`; the empty text is the start.
    pub fn parse(text: &str) -> Option<MariadbPosition> {
        let mut position = MariadbPosition::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut numbers = part.split('-');
            let gtid = MariadbGtid {
                domain: numbers.next()?.parse().ok()?,
                server_id: numbers.next()?.parse().ok()?,
                sequence: numbers.next()?.parse().ok()?,
            };
            let is_new = position.domains.insert(gtid.domain, gtid).is_none();
            if numbers.next().is_some() || !is_new || position.domains.len() > DOMAINS_MAX {
                return None;
            }
        }
        Some(position)
    }

    /// The last transaction of a domain.
    pub fn last(&self, domain: u32) -> Option<MariadbGtid> {
        self.domains.get(&domain).copied()
    }

    /// A transaction is done.
    pub fn advance(&mut self, gtid: MariadbGtid) {
        self.domains.insert(gtid.domain, gtid);
        debug_assert!(!self.domains.is_empty(), "a position after a transaction is not the start");
    }
}

impl fmt::Display for MariadbPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, gtid) in self.domains.values().enumerate() {
            write!(f, "{}{gtid}", if at > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

/// The event that starts a transaction. It stands for BEGIN, or XA START, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MariadbStart<'a> {
    /// Its identifier.
    pub gtid: MariadbGtid,
    /// It is one statement, without BEGIN and COMMIT.
    pub is_standalone: bool,
    /// Transactions with the same number were committed together: none of them waits for another.
    pub group: Option<u64>,
    /// The branch that it prepares.
    pub prepares: Option<XaPrepare<'a>>,
}

impl<'a> MariadbStart<'a> {
    /// Reads the body of the event. The server is that of its header.
    ///
    /// # Errors
    /// The body is malformed, or half of an ALTER TABLE in two parts.
    pub fn read(body: &'a [u8], server_id: u32) -> Result<MariadbStart<'a>> {
        let mut reader = Reader::new(body);
        let (sequence, domain, bits) = (reader.u64()?, reader.u32()?, reader.u8()?);
        let has = |flag: u8| bits & flag != 0;
        let group = if has(flags::GROUP_COMMIT) { Some(reader.u64()?) } else { None };
        let mut prepares = None;
        if has(flags::PREPARED_XA | flags::COMPLETED_XA) {
            let format = reader.i32()?;
            let (global, branch) = (reader.u8()?, reader.u8()?);
            let (global, branch) =
                (reader.bytes(usize::from(global))?, reader.bytes(usize::from(branch))?);
            let name = XaPrepare { one_phase: false, format, global, branch };
            prepares = has(flags::PREPARED_XA).then_some(name);
        }
        if reader.rest().first().is_some_and(|extra| extra & TWO_PHASE_ALTER != 0) {
            return Err(Malformed("ALTER TABLE in two parts (binlog_alter_two_phase)"));
        }
        let gtid = MariadbGtid { domain, server_id, sequence };
        Ok(MariadbStart { gtid, is_standalone: has(flags::STANDALONE), group, prepares })
    }
}

/// The event that a compressed one stands for; `None` for one that is not compressed.
///
/// # Errors
/// The bytes are damaged, or more than a packet holds once they are not compressed.
pub fn uncompressed(kind: EventKind, body: &[u8]) -> Result<Option<(EventKind, Vec<u8>)>> {
    let kinds = [
        (EventKind::QUERY_COMPRESSED, EventKind::QUERY),
        (EventKind::WRITE_ROWS_COMPRESSED_V1, EventKind::WRITE_ROWS_V1),
        (EventKind::UPDATE_ROWS_COMPRESSED_V1, EventKind::UPDATE_ROWS_V1),
        (EventKind::DELETE_ROWS_COMPRESSED_V1, EventKind::DELETE_ROWS_V1),
        (EventKind::WRITE_ROWS_COMPRESSED, EventKind::WRITE_ROWS),
        (EventKind::UPDATE_ROWS_COMPRESSED, EventKind::UPDATE_ROWS),
        (EventKind::DELETE_ROWS_COMPRESSED, EventKind::DELETE_ROWS),
    ];
    let Some((_, plain)) = kinds.iter().find(|(compressed, _)| *compressed == kind) else {
        return Ok(None);
    };
    let start = match *plain {
        EventKind::QUERY => start_of_text(body)?,
        rows => start_of_rows(rows, body)?,
    };
    let (head, packed) = body.split_at_checked(start).ok_or(Malformed("compressed event"))?;
    let mut out = head.to_vec();
    inflate(packed, &mut out)?;
    Ok(Some((*plain, out)))
}

/// Where the text of a statement starts.
fn start_of_text(body: &[u8]) -> Result<usize> {
    let mut reader = Reader::new(body);
    reader.bytes(8)?;
    let schema = usize::from(reader.u8()?);
    reader.u16()?;
    let context = usize::from(reader.u16()?);
    Ok(13 + context + schema + 1)
}

/// Where the images of rows start.
fn start_of_rows(kind: EventKind, body: &[u8]) -> Result<usize> {
    let mut reader = Reader::new(body);
    reader.bytes(8)?;
    if [EventKind::WRITE_ROWS, EventKind::UPDATE_ROWS, EventKind::DELETE_ROWS].contains(&kind) {
        let extra = reader.u16()?.checked_sub(2).ok_or(Malformed("length of extra data"))?;
        reader.bytes(usize::from(extra))?;
    }
    let bits = reader.lenenc_usize()?.div_ceil(8);
    let is_update = kind == EventKind::UPDATE_ROWS || kind == EventKind::UPDATE_ROWS_V1;
    reader.bytes(if is_update { bits * 2 } else { bits })?;
    Ok(body.len() - reader.rest().len())
}

/// A byte with the algorithm and the bytes of the length, the length, a zlib stream.
fn inflate(packed: &[u8], out: &mut Vec<u8>) -> Result<()> {
    const BAD: Malformed = Malformed("compressed event");
    let mut reader = Reader::new(packed);
    let head = reader.u8()?;
    if head & 0xf0 != 0x80 {
        return Err(Malformed("kind of compression"));
    }
    let length = reader.uint_be(usize::from(head & 7))?;
    if length > EVENT_BYTES_MAX {
        return Err(Malformed("length of a compressed event"));
    }
    let before = out.len() as u64;
    debug_assert!(before > 0, "what comes before is not compressed");
    // One byte more would show that the length is a lie.
    let stream = flate2::read::ZlibDecoder::new(reader.rest());
    stream.take(length + 1).read_to_end(out).map_err(|_| BAD)?;
    if out.len() as u64 - before == length { Ok(()) } else { Err(BAD) }
}

/// The collation that texts of one of MariaDB's can be read and compared with: those without padding have the number of the padded one and 1024 more,
/// those of Unicode 14.0 name the character set.
pub fn collation(id: u16) -> Option<CollationId> {
    // utf8mb3, utf8mb4, ucs2, utf16, utf32, each in `general_ci`, but for `utf8mb4_0900_ai_ci`.
    const UNICODE: [u16; 5] = [33, 255, 35, 54, 60];
    let near = match id {
        0..1024 => id,
        1024..2048 => id - 1024,
        2048.. => *UNICODE.get(usize::from((id - 2048) >> 8))?,
    };
    charset::collation(CollationId(near)).map(|_| CollationId(near))
}

/// 10 to the number of digits that a fraction does not have.
fn unit(fsp: u8) -> u64 {
    10u64.pow(6 - u32::from(fsp.min(6)))
}

/// Bytes of a TIME and of a DATETIME with so many digits of a second, and of the fraction of a TIMESTAMP.
const TIME_BYTES: [usize; 7] = [3, 4, 4, 5, 5, 5, 6];
const DATETIME_BYTES: [usize; 7] = [8, 6, 6, 7, 7, 7, 8];
const FRACTION_BYTES: [usize; 7] = [0, 1, 1, 2, 2, 3, 3];
/// Microseconds above the longest TIME: added, so that its bytes sort.
const TIME_BIAS: u64 = 3_020_400_000_000;

/// Reads a value of the old form.
pub(crate) fn read_old(reader: &mut Reader<'_>, kind: OldTemporal, fsp: u8) -> Result<Value> {
    let at = usize::from(fsp.min(6));
    debug_assert_eq!(at, usize::from(fsp), "a map has at most six digits");
    Ok(match kind {
        OldTemporal::Time => Value::Time(read_time(reader, fsp, TIME_BYTES[at])?),
        OldTemporal::DateTime => Value::DateTime(read_datetime(reader, fsp, DATETIME_BYTES[at])?),
        OldTemporal::Timestamp => {
            let seconds = if fsp == 0 { reader.uint(4)? } else { reader.uint_be(4)? };
            let micros = reader.uint_be(FRACTION_BYTES[at])? * unit(fsp);
            let micros = seconds as i64 * 1_000_000 + micros as i64;
            let known =
                if micros == 0 { Some(DateTime::ZERO) } else { DateTime::from_unix_micros(micros) };
            Value::DateTime(known.ok_or(Malformed("TIMESTAMP"))?)
        }
    })
}

fn read_time(reader: &mut Reader<'_>, fsp: u8, bytes: usize) -> Result<Time> {
    const BAD: Malformed = Malformed("TIME");
    if fsp == 0 {
        let number = reader.uint(3)? as i32;
        let number = (number << 8) >> 8;
        let (is_negative, size) = (number < 0, number.unsigned_abs());
        return Time::new(is_negative, size / 10_000, size / 100 % 100, size % 100, 0).ok_or(BAD);
    }
    let shifted = reader.uint_be(bytes)? as i64 - (TIME_BIAS / unit(fsp)) as i64;
    let micros = shifted.unsigned_abs().checked_mul(unit(fsp)).ok_or(BAD)?;
    let seconds = u32::try_from(micros / 1_000_000).map_err(|_| BAD)?;
    let (minute, second) = (seconds / 60 % 60, seconds % 60);
    Time::new(shifted < 0, seconds / 3600, minute, second, (micros % 1_000_000) as u32).ok_or(BAD)
}

fn read_datetime(reader: &mut Reader<'_>, fsp: u8, bytes: usize) -> Result<DateTime> {
    const BAD: Malformed = Malformed("DATETIME");
    if fsp == 0 {
        let number = reader.uint(8)?;
        let part = |by: u64, of: u64| (number / by % of) as u32;
        let year = u32::try_from(number / 10_000_000_000).map_err(|_| BAD)?;
        let date = Date::new(year, part(100_000_000, 100), part(1_000_000, 100)).ok_or(BAD)?;
        let (hour, minute, second) = (part(10_000, 100), part(100, 100), part(1, 100));
        return DateTime::new(date, hour, minute, second, 0).ok_or(BAD);
    }
    let mut rest = reader.uint_be(bytes)?.checked_mul(unit(fsp)).ok_or(BAD)?;
    let mut part = |of: u64| {
        let part = rest % of;
        rest /= of;
        part as u32
    };
    let (micros, second, minute, hour) = (part(1_000_000), part(60), part(60), part(24));
    let (day, month) = (part(32), part(13));
    let date = u32::try_from(rest).ok().and_then(|year| Date::new(year, month, day));
    DateTime::new(date.ok_or(BAD)?, hour, minute, second, micros).ok_or(BAD)
}

/// Appends a value in the old form.
pub(crate) fn put_old(value: &Value, kind: OldTemporal, fsp: u8, out: &mut Vec<u8>) {
    let at = usize::from(fsp.min(6));
    let when = if let Value::DateTime(when) = value { *when } else { DateTime::ZERO };
    let (year, month, day) = (u64::from(when.year()), when.month(), when.day());
    let (hour, minute, second) = (when.hour(), when.minute(), when.second());
    let fold = |number: u64, (by, part): (u64, u32)| number * by + u64::from(part);
    match kind {
        OldTemporal::Time => {
            let time = if let Value::Time(time) = value { *time } else { Time::ZERO };
            let sign = if time.is_negative() { -1 } else { 1 };
            let (hour, minute, second) = (time.hour(), time.minute(), time.second());
            if fsp == 0 {
                let number = sign * i64::from(hour * 10_000 + minute * 100 + second);
                return put_uint(number as u64, 3, out);
            }
            let seconds = i64::from(hour * 3600 + minute * 60 + second);
            let micros = seconds * 1_000_000 + i64::from(time.microsecond());
            let shifted = sign * (micros / unit(fsp) as i64) + (TIME_BIAS / unit(fsp)) as i64;
            put_uint_be(shifted as u64, TIME_BYTES[at], out);
        }
        OldTemporal::DateTime if fsp == 0 => {
            let parts = [month, day, hour, minute, second];
            put_uint(parts.into_iter().map(|part| (100, part)).fold(year, fold), 8, out);
        }
        OldTemporal::DateTime => {
            let parts = [(13, month), (32, day), (24, hour), (60, minute), (60, second)];
            let seconds = parts.into_iter().fold(year, fold);
            let micros = fold(seconds, (1_000_000, when.microsecond()));
            put_uint_be(micros / unit(fsp), DATETIME_BYTES[at], out);
        }
        OldTemporal::Timestamp => {
            let micros = when.to_unix_micros().filter(|_| !when.is_zero()).unwrap_or(0);
            let micros = u64::try_from(micros).unwrap_or(0);
            if fsp == 0 {
                return put_uint(micros / 1_000_000, 4, out);
            }
            put_uint_be(micros / 1_000_000, 4, out);
            put_uint_be(micros % 1_000_000 / unit(fsp), FRACTION_BYTES[at], out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_the_last_of_each_domain() {
        let mut position = MariadbPosition::parse(" 1-2-3, 0-1-100").expect("two domains");
        assert_eq!(position.to_string(), "0-1-100,1-2-3");
        position.advance(MariadbGtid { domain: 0, server_id: 9, sequence: 101 });
        assert_eq!(position.to_string(), "0-9-101,1-2-3");
        assert_eq!(MariadbPosition::parse("").expect("the start"), MariadbPosition::default());
        for wrong in ["0-1", "0-1-2-3", "0-1-x", "0-1-2,0-1-3", "-1-2-3"] {
            assert_eq!(MariadbPosition::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn starts_of_transactions() {
        let mut body = 8u64.to_le_bytes().to_vec();
        body.extend_from_slice(&3u32.to_le_bytes());
        body.push(flags::GROUP_COMMIT);
        body.extend_from_slice(&77u64.to_le_bytes());
        let start = MariadbStart::read(&body, 7).expect("a start");
        assert_eq!(start.gtid.to_string(), "3-7-8");
        assert!(!start.is_standalone && start.group == Some(77) && start.prepares.is_none());
        for length in 0..body.len() {
            MariadbStart::read(&body[..length], 7).expect_err("it is cut");
        }
        body.push(2);
        MariadbStart::read(&body, 7).expect_err("half of an ALTER TABLE");
    }

    #[test]
    fn old_times_come_back() {
        let date = Date::new(2031, 12, 30).expect("a date");
        for fsp in 0..=6u8 {
            let micros = (123_456 / unit(fsp) * unit(fsp)) as u32;
            let at = DateTime::new(date, 23, 59, 58, micros).expect("a time");
            let time = Time::new(true, 838, 1, 2, micros).expect("a time");
            for (kind, value) in [
                (OldTemporal::Time, Value::Time(time)),
                (OldTemporal::DateTime, Value::DateTime(at)),
                (OldTemporal::Timestamp, Value::DateTime(at)),
                (OldTemporal::Timestamp, Value::DateTime(DateTime::ZERO)),
            ] {
                let mut bytes = Vec::new();
                put_old(&value, kind, fsp, &mut bytes);
                let mut reader = Reader::new(&bytes);
                assert_eq!(read_old(&mut reader, kind, fsp).expect("what was put"), value);
                assert!(reader.is_empty(), "{kind:?} with {fsp} digits");
            }
        }
    }

    #[test]
    fn lengths_of_compressed_events_are_compared() {
        use std::io::Write;
        let mut packer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(&[b'x'; 300]).expect("memory");
        let packed = packer.finish().expect("memory");
        for (length, is_right) in [(300u32, true), (299, false), (301, false), (1 << 31, false)] {
            let mut bytes = vec![0x84];
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(&packed);
            let mut out = b"head".to_vec();
            assert_eq!(inflate(&bytes, &mut out).is_ok(), is_right, "{length}");
        }
    }

    #[test]
    fn collations_of_its_own_have_near_ones() {
        for (id, near) in [(45, Some(45)), (1069, Some(45)), (2304, Some(255)), (60_000, None)] {
            assert_eq!(collation(id), near.map(CollationId), "{id}");
        }
    }
}
