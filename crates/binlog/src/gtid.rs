//! Transaction identifiers: events that start a transaction, and sets of them as bytes.

use types::{Gtid, GtidSet, Uuid};

use crate::read::{Malformed, Reader, Result, put_lenenc, put_uint};

/// Marks the logical clock in an event.
const LOGICAL_CLOCK: u8 = 2;
/// The bit of a commit timestamp that says that the original one follows.
const ORIGINAL_TIMESTAMP_FOLLOWS: u64 = 1 << 55;
/// The bit of a server version that says that the original one follows.
const ORIGINAL_VERSION_FOLLOWS: u32 = 1 << 31;
/// Format of a set with tags.
const TAGGED: u64 = 1;

/// An event that starts a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtidEvent {
    /// Its identifier; `None` for an anonymous transaction.
    pub gtid: Option<Gtid>,
    /// Whether it may hold statements instead of rows: any statement that is no change of rows.
    pub may_have_statements: bool,
    /// The transaction with this sequence number, and all before it, must be done before this one begins.
    pub last_committed: i64,
    /// Its number in the file, from 1.
    pub sequence_number: i64,
    /// Microseconds since 1970 of the commit on the server that sends it.
    pub immediate_commit_timestamp: u64,
    /// Microseconds since 1970 of the commit on the server that it began on.
    pub original_commit_timestamp: u64,
    /// Bytes of the sealed transaction, this event and checksums included.
    pub transaction_length: u64,
    /// The version of the server that sends it: 90704 for 9.7.4.
    pub immediate_server_version: u32,
    /// The version of the server that it began on.
    pub original_server_version: u32,
}

impl GtidEvent {
    /// Appends the body of a GTID event (33), or that of an anonymous one (34). The tag is not written: see [`GtidEvent::write_tagged`].
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.may_have_statements));
        let (uuid, number) =
            self.gtid.as_ref().map_or((Uuid::default(), 0), |gtid| (gtid.uuid, gtid.number));
        out.extend_from_slice(&uuid.0);
        out.extend_from_slice(&number.to_le_bytes());
        out.push(LOGICAL_CLOCK);
        out.extend_from_slice(&self.last_committed.to_le_bytes());
        out.extend_from_slice(&self.sequence_number.to_le_bytes());
        let timestamp = self.immediate_commit_timestamp & (ORIGINAL_TIMESTAMP_FOLLOWS - 1);
        if self.immediate_commit_timestamp == self.original_commit_timestamp {
            put_uint(timestamp, 7, out);
        } else {
            put_uint(timestamp | ORIGINAL_TIMESTAMP_FOLLOWS, 7, out);
            put_uint(self.original_commit_timestamp, 7, out);
        }
        put_lenenc(self.transaction_length, out);
        let version = self.immediate_server_version & !ORIGINAL_VERSION_FOLLOWS;
        if self.immediate_server_version == self.original_server_version {
            out.extend_from_slice(&version.to_le_bytes());
        } else {
            out.extend_from_slice(&(version | ORIGINAL_VERSION_FOLLOWS).to_le_bytes());
            out.extend_from_slice(&self.original_server_version.to_le_bytes());
        }
    }

    /// Reads the body of a GTID event (33) or of an anonymous one (34). Parts that older servers leave out are 0.
    pub(crate) fn read(body: &[u8], anonymous: bool) -> Result<GtidEvent> {
        let mut reader = Reader::new(body);
        let may_have_statements = reader.u8()? & 1 != 0;
        let (uuid, number) = (Uuid(reader.array()?), reader.i64()?);
        if !anonymous && number < 1 {
            return Err(Malformed("transaction number"));
        }
        let gtid = (!anonymous).then(|| Gtid { uuid, tag: "".into(), number });
        let mut event = GtidEvent::empty(gtid, may_have_statements);
        if reader.is_empty() || reader.u8()? != LOGICAL_CLOCK {
            return Ok(event);
        }
        (event.last_committed, event.sequence_number) = (reader.i64()?, reader.i64()?);
        if reader.is_empty() {
            return Ok(event);
        }
        let timestamp = reader.uint(7)?;
        event.immediate_commit_timestamp = timestamp & (ORIGINAL_TIMESTAMP_FOLLOWS - 1);
        event.original_commit_timestamp = event.immediate_commit_timestamp;
        if timestamp & ORIGINAL_TIMESTAMP_FOLLOWS != 0 {
            event.original_commit_timestamp = reader.uint(7)?;
        }
        if reader.is_empty() {
            return Ok(event);
        }
        event.transaction_length = reader.lenenc()?;
        if reader.is_empty() {
            return Ok(event);
        }
        let version = reader.u32()?;
        event.immediate_server_version = version & !ORIGINAL_VERSION_FOLLOWS;
        event.original_server_version = event.immediate_server_version;
        if version & ORIGINAL_VERSION_FOLLOWS != 0 {
            event.original_server_version = reader.u32()?;
        }
        Ok(event)
    }

    fn empty(gtid: Option<Gtid>, may_have_statements: bool) -> GtidEvent {
        GtidEvent {
            gtid,
            may_have_statements,
            last_committed: 0,
            sequence_number: 0,
            immediate_commit_timestamp: 0,
            original_commit_timestamp: 0,
            transaction_length: 0,
            immediate_server_version: 0,
            original_server_version: 0,
        }
    }

    /// Appends the body of a tagged GTID event (42): numbered fields in a form of variable length.
    pub fn write_tagged(&self, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        put_var(0, &mut fields);
        put_var(u64::from(self.may_have_statements), &mut fields);
        let empty = Gtid { uuid: Uuid::default(), tag: "".into(), number: 0 };
        let gtid = self.gtid.as_ref().unwrap_or(&empty);
        put_var(1, &mut fields);
        gtid.uuid.0.iter().for_each(|byte| put_var(u64::from(*byte), &mut fields));
        put_field(2, zigzag(gtid.number), &mut fields);
        put_field(3, gtid.tag.len() as u64, &mut fields);
        fields.extend_from_slice(gtid.tag.as_bytes());
        put_field(4, zigzag(self.last_committed), &mut fields);
        put_field(5, zigzag(self.sequence_number), &mut fields);
        put_field(6, self.immediate_commit_timestamp, &mut fields);
        if self.original_commit_timestamp != self.immediate_commit_timestamp {
            put_field(7, self.original_commit_timestamp, &mut fields);
        }
        put_field(8, self.transaction_length, &mut fields);
        put_field(9, u64::from(self.immediate_server_version), &mut fields);
        if self.original_server_version != self.immediate_server_version {
            put_field(10, u64::from(self.original_server_version), &mut fields);
        }
        // The size counts itself; it takes one byte up to 127.
        let mut size = fields.len() + 3;
        if size > 127 {
            size += 1;
        }
        put_var(1, out);
        put_var(size as u64, out);
        put_var(0, out);
        out.extend_from_slice(&fields);
    }

    /// Reads the body of a tagged GTID event (42). Fields with unknown numbers end the reading: they may be left out.
    pub(crate) fn read_tagged(body: &[u8]) -> Result<GtidEvent> {
        let mut reader = Reader::new(body);
        let version = read_var(&mut reader)?;
        let (_size, needed) = (read_var(&mut reader)?, read_var(&mut reader)?);
        if version != 1 || needed > 11 {
            return Err(Malformed("version of a tagged GTID"));
        }
        let mut gtid = Gtid { uuid: Uuid::default(), tag: "".into(), number: 0 };
        let mut event = GtidEvent::empty(None, false);
        let (mut original_timestamp, mut original_version) = (None, None);
        while !reader.is_empty() {
            match read_var(&mut reader)? {
                0 => event.may_have_statements = read_var(&mut reader)? & 1 != 0,
                1 => {
                    for byte in &mut gtid.uuid.0 {
                        *byte = read_var(&mut reader)? as u8;
                    }
                }
                2 => gtid.number = unzigzag(read_var(&mut reader)?),
                3 => {
                    let length = read_var(&mut reader)?;
                    gtid.tag = read_tag(&mut reader, length)?;
                }
                4 => event.last_committed = unzigzag(read_var(&mut reader)?),
                5 => event.sequence_number = unzigzag(read_var(&mut reader)?),
                6 => event.immediate_commit_timestamp = read_var(&mut reader)?,
                7 => original_timestamp = Some(read_var(&mut reader)?),
                8 => event.transaction_length = read_var(&mut reader)?,
                9 => event.immediate_server_version = read_var(&mut reader)? as u32,
                10 => original_version = Some(read_var(&mut reader)? as u32),
                11 => _ = read_var(&mut reader)?,
                _ => break,
            }
        }
        if gtid.number < 1 {
            return Err(Malformed("transaction number"));
        }
        event.gtid = Some(gtid);
        event.original_commit_timestamp =
            original_timestamp.unwrap_or(event.immediate_commit_timestamp);
        event.original_server_version = original_version.unwrap_or(event.immediate_server_version);
        Ok(event)
    }
}

fn read_tag(reader: &mut Reader<'_>, length: u64) -> Result<Box<str>> {
    let length = usize::try_from(length).map_err(|_| Malformed("tag"))?;
    let tag = std::str::from_utf8(reader.bytes(length)?).map_err(|_| Malformed("tag"))?;
    if Gtid::is_sent_tag(tag) { Ok(tag.into()) } else { Err(Malformed("tag")) }
}

/// Sign in the lowest bit: the magnitude, or its complement below zero.
fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn put_field(field: u64, number: u64, out: &mut Vec<u8>) {
    put_var(field, out);
    put_var(number, out);
}

/// A number in 1 to 9 bytes: as many ones as bytes follow in the low bits of the first byte, a zero unless these are 8, then the number.
fn put_var(number: u64, out: &mut Vec<u8>) {
    let bits = 64 - number.leading_zeros().min(63);
    let bytes = bits.div_ceil(7);
    if bytes > 8 {
        out.push(0xff);
        out.extend_from_slice(&number.to_le_bytes());
        return;
    }
    let ones = (1u64 << (bytes - 1)) - 1;
    put_uint(number << bytes | ones, bytes as usize, out);
}

fn read_var(reader: &mut Reader<'_>) -> Result<u64> {
    let first = reader.rest().first().copied().unwrap_or(0);
    let following = first.trailing_ones();
    if following >= 8 {
        reader.u8()?;
        return reader.u64();
    }
    Ok(reader.uint(following as usize + 1)? >> (following + 1))
}

/// Appends a set as PREVIOUS_GTIDS has it: in the older form, which more readers know, unless there are tags.
pub fn write_set(set: &GtidSet, out: &mut Vec<u8>) {
    if set.iter().any(|(_, tag, _)| !tag.is_empty()) {
        write_tagged_set(set, out);
    } else {
        write_untagged_set(set, out);
    }
}

/// Appends a set in the form that has tags, whether there are any or not.
pub fn write_tagged_set(set: &GtidSet, out: &mut Vec<u8>) {
    let count = set.iter().count() as u64;
    out.extend_from_slice(&(TAGGED << 56 | count << 8 | TAGGED).to_le_bytes());
    for (uuid, tag, ranges) in set.iter() {
        out.extend_from_slice(&uuid.0);
        put_var(tag.len() as u64, out);
        out.extend_from_slice(tag.as_bytes());
        write_ranges(ranges, out);
    }
}

/// Appends a set in the form that servers before 8.3 read too; transactions with tags are left out.
pub fn write_untagged_set(set: &GtidSet, out: &mut Vec<u8>) {
    let untagged = || set.iter().filter(|(_, tag, _)| tag.is_empty());
    out.extend_from_slice(&(untagged().count() as u64).to_le_bytes());
    for (uuid, _, ranges) in untagged() {
        out.extend_from_slice(&uuid.0);
        write_ranges(ranges, out);
    }
}

fn write_ranges(ranges: &[(i64, i64)], out: &mut Vec<u8>) {
    out.extend_from_slice(&(ranges.len() as u64).to_le_bytes());
    for (first, last) in ranges {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&last.saturating_add(1).to_le_bytes());
    }
}

/// Reads a set in either form.
///
/// # Errors
/// The bytes are no set.
pub fn read_set(bytes: &[u8]) -> Result<GtidSet> {
    let mut reader = Reader::new(bytes);
    let head = reader.u64()?;
    let tagged = head >> 56 == TAGGED;
    let count = if tagged { (head >> 8) & 0xffff_ffff_ffff } else { head };
    let mut set = GtidSet::default();
    for _ in 0..count {
        let uuid = Uuid(reader.array()?);
        let tag = if tagged {
            let length = read_var(&mut reader)?;
            read_tag(&mut reader, length)?
        } else {
            "".into()
        };
        let mut least = 1;
        for _ in 0..reader.u64()? {
            let (first, end) = (reader.i64()?, reader.i64()?);
            if first < least || end <= first {
                return Err(Malformed("range of transaction numbers"));
            }
            set.add_range(uuid, &tag, first, end - 1);
            least = end;
        }
    }
    Ok(set)
}

/// The set that a place in the log is given as: a set, or one transaction `uuid:number` for that one, those of its source before it, and
/// those that are `purged`. `None` when it is malformed.
pub fn position(text: &str, purged: &GtidSet) -> Option<GtidSet> {
    let Some(gtid) = Gtid::parse(text) else { return GtidSet::parse(text) };
    let mut set = purged.clone();
    set.add_range(gtid.uuid, &gtid.tag, 1, gtid.number);
    Some(set)
}
