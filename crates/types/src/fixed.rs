//! Types of a fixed number of bytes that people read as text: UUID, INET4 and INET6.
//!
//! A value is its bytes in the order in which values sort: comparison, keys and records take them as they are, and only what shows
//! a value or takes it apart makes text or the usual bytes of it.

use crate::SqlBytes;

/// The types. MariaDB has them, MySQL does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fixed {
    /// A UUID of any version.
    Uuid,
    /// An IPv4 address.
    Inet4,
    /// An IPv6 address.
    Inet6,
}

/// Bytes of a UUID and of an IPv6 address.
const LONG: usize = 16;
/// Bytes of an IPv4 address.
const SHORT: usize = 4;
/// Digits of a number in an IPv4 address, and of a group in an IPv6 address.
const OCTET_DIGITS_MAX: usize = 3;
const GROUP_DIGITS_MAX: usize = 4;
/// Groups of an IPv6 address.
const GROUPS: usize = 8;

impl Fixed {
    /// All of them.
    pub const ALL: [Fixed; 3] = [Fixed::Uuid, Fixed::Inet4, Fixed::Inet6];

    /// The type's name in lower case, as definitions and messages have it.
    pub const fn name(self) -> &'static str {
        match self {
            Fixed::Uuid => "uuid",
            Fixed::Inet4 => "inet4",
            Fixed::Inet6 => "inet6",
        }
    }

    /// Bytes of a value.
    pub const fn bytes(self) -> usize {
        match self {
            Fixed::Uuid | Fixed::Inet6 => LONG,
            Fixed::Inet4 => SHORT,
        }
    }

    /// Most characters of a value's text.
    pub const fn characters(self) -> u32 {
        match self {
            Fixed::Uuid => 36,
            Fixed::Inet4 => 15,
            Fixed::Inet6 => 39,
        }
    }

    /// The value of which all bytes are zero: what a column has instead of a wrong value, where it cannot have NULL.
    pub fn zero(self) -> SqlBytes {
        SqlBytes::new(&[0; LONG][..self.bytes()])
    }

    /// The value of a text; `None` when it is not one of the type.
    pub fn parse(self, text: &[u8]) -> Option<SqlBytes> {
        match self {
            Fixed::Uuid => parse_uuid(text).map(|bytes| SqlBytes::new(&turned(bytes))),
            Fixed::Inet4 => parse_inet4(text).map(|bytes| SqlBytes::new(&bytes)),
            Fixed::Inet6 => parse_inet6(text).map(|bytes| SqlBytes::new(&bytes)),
        }
    }

    /// The value of the usual bytes; `None` when they are not as many as the type has.
    pub fn of_native(self, bytes: &[u8]) -> Option<SqlBytes> {
        match self {
            Fixed::Uuid => bytes.try_into().ok().map(|bytes| SqlBytes::new(&turned(bytes))),
            Fixed::Inet4 | Fixed::Inet6 => {
                (bytes.len() == self.bytes()).then(|| SqlBytes::new(bytes))
            }
        }
    }

    /// The usual bytes of a value: those of the standard for UUIDs, those of the address in the order of the network.
    pub fn native(self, value: &[u8]) -> SqlBytes {
        if self == Fixed::Uuid
            && let Ok(value) = value.try_into()
        {
            return SqlBytes::new(&turned(value));
        }
        SqlBytes::new(value)
    }

    /// Appends the text of a value. Bytes that are no value, which only damage can make, stay as they are.
    pub fn write_text(self, value: &[u8], out: &mut Vec<u8>) {
        let written = match self {
            Fixed::Uuid => value.try_into().map(|value| write_uuid(&turned(value), out)),
            Fixed::Inet4 => value.try_into().map(|value| write_inet4(value, out)),
            Fixed::Inet6 => value.try_into().map(|value| write_inet6(value, out)),
        };
        if written.is_err() {
            out.extend_from_slice(value);
        }
    }
}

/// A UUID's bytes in the order of values, or back.
///
/// UUIDs of the versions 1 to 5 sort by their last part first, in which those of one machine are alike, so that their order is that of time
/// as far as a version has one: MariaDB has this order too. All others sort by their bytes. What a turned UUID looks like is known by the same
/// two bytes that decided, now in each other's place; the UUIDs of no version that look like that change places with the turned ones, so that
/// each UUID has one form and each form one UUID.
fn turned(bytes: [u8; LONG]) -> [u8; LONG] {
    let [a0, a1, a2, a3, b0, b1, c0, c1, d0, d1, e0, e1, e2, e3, e4, e5] = bytes;
    if has_version(c0, d0) {
        return [e0, e1, e2, e3, e4, e5, d0, d1, c0, c1, b0, b1, a0, a1, a2, a3];
    }
    // The same parts of a turned one: their lengths are 6, 2, 2, 2, 4.
    if has_version(d0, c0) {
        let [e0, e1, e2, e3, e4, e5, d0, d1, c0, c1, b0, b1, a0, a1, a2, a3] = bytes;
        return [a0, a1, a2, a3, b0, b1, c0, c1, d0, d1, e0, e1, e2, e3, e4, e5];
    }
    bytes
}

/// Whether a UUID with this byte of the version and this one of the variant is turned. MariaDB also turns what is between the versions 0 and 1.
const fn has_version(version: u8, variant: u8) -> bool {
    matches!(version, 0x01..=0x5f) && variant >= 0x80
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

/// 32 digits, with hyphens anywhere between them.
fn parse_uuid(text: &[u8]) -> Option<[u8; LONG]> {
    if text.first() == Some(&b'-') || text.last() == Some(&b'-') {
        return None;
    }
    let mut bytes = [0; LONG];
    let mut count = 0;
    for &byte in text {
        if byte == b'-' {
            continue;
        }
        let place = bytes.get_mut(count / 2)?;
        *place = *place << 4 | digit(byte)?;
        count += 1;
    }
    (count == 2 * LONG).then_some(bytes)
}

/// Four numbers of one to three digits.
fn parse_inet4(text: &[u8]) -> Option<[u8; SHORT]> {
    let mut bytes = [0; SHORT];
    let mut count = 0;
    for part in text.split(|&byte| byte == b'.') {
        if part.is_empty() || part.len() > OCTET_DIGITS_MAX {
            return None;
        }
        let number = part.iter().try_fold(0_u16, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + u16::from(byte - b'0'))
        })?;
        *bytes.get_mut(count)? = u8::try_from(number).ok()?;
        count += 1;
    }
    (count == SHORT).then_some(bytes)
}

/// The groups of one side of `::`, with an IPv4 address in place of the last two if `may_end_in_inet4`.
fn parse_groups(text: &[u8], may_end_in_inet4: bool) -> Option<([u16; GROUPS], usize)> {
    let (mut groups, mut count) = ([0; GROUPS], 0);
    let mut push = |group: u16| {
        *groups.get_mut(count)? = group;
        count += 1;
        Some(())
    };
    let mut parts = text.split(|&byte| byte == b':').peekable();
    if text.is_empty() {
        parts.next();
    }
    while let Some(part) = parts.next() {
        if may_end_in_inet4 && parts.peek().is_none() && part.contains(&b'.') {
            let [a, b, c, d] = parse_inet4(part)?;
            push(u16::from_be_bytes([a, b]))?;
            push(u16::from_be_bytes([c, d]))?;
            continue;
        }
        if part.is_empty() || part.len() > GROUP_DIGITS_MAX {
            return None;
        }
        let group =
            part.iter().try_fold(0_u16, |group, &byte| Some(group << 4 | u16::from(digit(byte)?)));
        push(group?)?;
    }
    Some((groups, count))
}

/// Eight groups of up to four digits, or fewer and one `::` for the missing ones, at least one.
fn parse_inet6(text: &[u8]) -> Option<[u8; LONG]> {
    let gap = text.windows(2).position(|pair| pair == b"::");
    let groups = match gap {
        None => {
            let (groups, count) = parse_groups(text, true)?;
            (count == GROUPS).then_some(groups)?
        }
        Some(at) => {
            let (mut groups, before) = parse_groups(&text[..at], false)?;
            let (rest, after) = parse_groups(&text[at + 2..], true)?;
            if before + after >= GROUPS {
                return None;
            }
            groups[GROUPS - after..].copy_from_slice(&rest[..after]);
            groups
        }
    };
    let mut bytes = [0; LONG];
    for (place, group) in bytes.chunks_exact_mut(2).zip(groups) {
        place.copy_from_slice(&group.to_be_bytes());
    }
    Some(bytes)
}

fn write_uuid(bytes: &[u8; LONG], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

fn write_inet4(bytes: [u8; SHORT], out: &mut Vec<u8>) {
    for (at, byte) in bytes.into_iter().enumerate() {
        if at > 0 {
            out.push(b'.');
        }
        out.extend_from_slice(itoa::Buffer::new().format(byte).as_bytes());
    }
}

/// `::` stands for the longest run of zero groups, the first of several, even when it is one group long. Addresses that hold an IPv4 address
/// end in its text.
fn write_inet6(bytes: &[u8; LONG], out: &mut Vec<u8>) {
    let mut groups = [0_u16; GROUPS];
    for (group, pair) in groups.iter_mut().zip(bytes.as_chunks::<2>().0) {
        *group = u16::from_be_bytes(*pair);
    }
    let (start, length) = longest_zeros(&groups);
    let holds_inet4 = start == 0 && (length == 6 || length == 5 && groups[5] == u16::MAX);
    let shown = if holds_inet4 { GROUPS - 2 } else { GROUPS };
    let mut at = 0;
    while at < shown {
        if length > 0 && at == start {
            out.extend_from_slice(b"::");
            at += length;
            continue;
        }
        if at > 0 && out.last() != Some(&b':') {
            out.push(b':');
        }
        write_group(groups[at], out);
        at += 1;
    }
    if holds_inet4 {
        if out.last() != Some(&b':') {
            out.push(b':');
        }
        write_inet4([bytes[12], bytes[13], bytes[14], bytes[15]], out);
    }
}

/// Start and length of the run that `::` stands for.
fn longest_zeros(groups: &[u16; GROUPS]) -> (usize, usize) {
    let (mut start, mut length) = (0, 0);
    let mut current = 0;
    for (at, group) in groups.iter().enumerate() {
        current = if *group == 0 { current + 1 } else { 0 };
        if current > length {
            (start, length) = (at + 1 - current, current);
        }
    }
    (start, length)
}

fn write_group(group: u16, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = (16 - group.leading_zeros()).div_ceil(4).max(1);
    for at in (0..digits).rev() {
        out.push(DIGITS[usize::from(group >> (4 * at) & 15)]);
    }
}

#[cfg(test)]
mod tests;
