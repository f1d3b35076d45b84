//! Character sets: conversion between them and the server's UTF-8.

use std::borrow::Cow;

use crate::id::CollationId;
use crate::multibyte::{Code, Multibyte};
use crate::{tables, utf8};

/// The table of swe7, which lacks some characters of ASCII.
const SWE7: u8 = 23;

/// The encoding of characters as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 of up to four bytes.
    Utf8mb4,
    /// UTF-8 of up to three bytes.
    Utf8mb3,
    /// Seven bits.
    Ascii,
    /// Bytes without characters.
    Binary,
    /// Two bytes, big-endian, no surrogates.
    Ucs2,
    /// UTF-16, big-endian.
    Utf16,
    /// UTF-16, little-endian.
    Utf16Le,
    /// Four bytes, big-endian.
    Utf32,
    /// One byte by table.
    Bytes(u8),
    /// Two to four bytes by table.
    Wide(Multibyte),
}

/// A character set.
#[derive(Debug)]
pub struct Charset {
    /// Name.
    pub name: &'static str,
    /// Its default collation.
    pub default_collation: CollationId,
    /// The description in `SHOW CHARACTER SET`.
    pub description: &'static str,
    /// Most bytes of a character.
    pub max_length: u8,
    /// The encoding of characters as bytes.
    pub encoding: Encoding,
}

/// A text after conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Converted bytes; `?` replaces characters that could not be converted.
    pub bytes: Vec<u8>,
    /// Position in the source of the first character that could not be converted.
    pub first_bad: Option<usize>,
}

impl Charset {
    /// Whether the character can be written.
    pub fn can_encode(&self, point: u32) -> bool {
        match self.encoding {
            Encoding::Utf8mb4 | Encoding::Utf16 | Encoding::Utf16Le | Encoding::Utf32 => true,
            Encoding::Binary => true,
            Encoding::Utf8mb3 | Encoding::Ucs2 => point < 0x10000,
            Encoding::Ascii => point < 0x80,
            Encoding::Bytes(slot) => tables::point_to_byte(slot, point).is_some(),
            Encoding::Wide(set) => set.code(point).is_some(),
        }
    }

    /// Whether the set has every character of a text in UTF-8.
    pub fn has_all(&self, text: &[u8]) -> bool {
        text.is_ascii() && self.encoding != Encoding::Bytes(SWE7)
            || self.find_missing(text).is_none()
    }

    /// Position of the first character of a text in UTF-8 that the set lacks, or of malformed bytes.
    pub fn find_missing(&self, text: &[u8]) -> Option<usize> {
        if matches!(self.encoding, Encoding::Utf8mb4) {
            return utf8::find_malformed(text);
        }
        let mut at = 0;
        while at < text.len() {
            match utf8::decode_strict(&text[at..]) {
                Some((point, length)) if self.can_encode(point) => at += length,
                Some(_) | None => return Some(at),
            }
        }
        None
    }

    /// Least bytes of a character.
    pub fn min_length(&self) -> u8 {
        match self.encoding {
            Encoding::Ucs2 | Encoding::Utf16 | Encoding::Utf16Le => 2,
            Encoding::Utf32 => 4,
            Encoding::Utf8mb4 | Encoding::Utf8mb3 | Encoding::Ascii => 1,
            Encoding::Binary | Encoding::Bytes(_) | Encoding::Wide(_) => 1,
        }
    }

    /// Whether UTF-8 bytes are already bytes of this set (so that conversion is only a check).
    pub fn is_utf8(&self) -> bool {
        matches!(self.encoding, Encoding::Utf8mb4 | Encoding::Utf8mb3)
    }

    /// Whether the characters of this set are those of Unicode.
    pub fn is_unicode(&self) -> bool {
        matches!(
            self.encoding,
            Encoding::Utf8mb4
                | Encoding::Utf8mb3
                | Encoding::Ucs2
                | Encoding::Utf16
                | Encoding::Utf16Le
                | Encoding::Utf32
        )
    }

    /// Whether a text has the same bytes in this set as inside the server.
    pub fn keeps_utf8(&self) -> bool {
        self.is_utf8() || matches!(self.encoding, Encoding::Ascii | Encoding::Binary)
    }

    /// Position of the first bytes that are not a character of this set.
    pub fn find_malformed(&self, bytes: &[u8]) -> Option<usize> {
        if matches!(self.encoding, Encoding::Utf8mb4) {
            return utf8::find_malformed(bytes);
        }
        let mut at = 0;
        while at < bytes.len() {
            match self.read(&bytes[at..]) {
                Ok((_, length)) => at += length,
                Err(_) => return Some(at),
            }
        }
        None
    }

    /// Bytes that are taken as this set's: a first unit that is not whole is filled with zeros in front.
    pub fn whole_units<'t>(&self, bytes: &'t [u8]) -> Cow<'t, [u8]> {
        let missing = bytes.len().next_multiple_of(self.min_length().into()) - bytes.len();
        if missing == 0 {
            return Cow::Borrowed(bytes);
        }
        let mut units = vec![0; missing];
        units.extend_from_slice(bytes);
        Cow::Owned(units)
    }

    /// From this set to UTF-8.
    pub fn decode(&self, bytes: &[u8]) -> Converted {
        let plain = match self.encoding {
            Encoding::Binary => true,
            Encoding::Utf8mb4 => utf8::find_malformed(bytes).is_none(),
            Encoding::Utf8mb3 | Encoding::Ascii | Encoding::Bytes(_) => {
                bytes.is_ascii() && !matches!(self.encoding, Encoding::Bytes(_))
            }
            Encoding::Ucs2 | Encoding::Utf16 | Encoding::Utf16Le | Encoding::Utf32 => false,
            Encoding::Wide(_) => false,
        };
        if plain {
            return Converted { bytes: bytes.to_vec(), first_bad: None };
        }
        let mut converted =
            Converted { bytes: Vec::with_capacity(bytes.len() * 2), first_bad: None };
        let mut at = 0;
        while at < bytes.len() {
            match self.read(&bytes[at..]) {
                Ok((point, length)) => {
                    utf8::push(point, &mut converted.bytes);
                    at += length;
                }
                Err(length) => {
                    converted.bytes.push(b'?');
                    converted.first_bad.get_or_insert(at);
                    at += length;
                }
            }
        }
        converted
    }

    /// The bytes that a text has in this set: the server keeps all text in UTF-8. Characters that the set lacks become `?`.
    pub fn native<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        match self.encoding {
            Encoding::Binary | Encoding::Utf8mb4 | Encoding::Utf8mb3 | Encoding::Ascii => {
                Cow::Borrowed(text)
            }
            Encoding::Ucs2
            | Encoding::Utf16
            | Encoding::Utf16Le
            | Encoding::Utf32
            | Encoding::Bytes(_)
            | Encoding::Wide(_) => Cow::Owned(self.encode(text).bytes),
        }
    }

    /// Bytes in UTF-8 of the longest beginning of a text that takes no more than `bytes_max` bytes in this set.
    pub fn fitting_prefix(&self, text: &[u8], bytes_max: usize) -> usize {
        if text.len().saturating_mul(self.max_length.into()) <= bytes_max {
            return text.len();
        }
        let (mut at, mut taken) = (0, 0);
        let mut code = Vec::with_capacity(4);
        while at < text.len() {
            let (point, length) = utf8::decode(&text[at..]);
            code.clear();
            self.push(point, &mut code);
            taken += code.len();
            if taken > bytes_max {
                break;
            }
            at += length;
        }
        at
    }

    /// From UTF-8 to this set.
    pub fn encode(&self, text: &[u8]) -> Converted {
        if matches!(self.encoding, Encoding::Utf8mb4 | Encoding::Binary) {
            return Converted { bytes: text.to_vec(), first_bad: None };
        }
        let mut converted = Converted { bytes: Vec::with_capacity(text.len()), first_bad: None };
        let mut at = 0;
        while at < text.len() {
            let found = utf8::decode_strict(&text[at..]);
            let (point, length) = found.unwrap_or((0x3f, 1));
            if found.is_none() || !self.can_encode(point) {
                converted.first_bad.get_or_insert(at);
                self.push(0x3f, &mut converted.bytes);
            } else {
                self.push(point, &mut converted.bytes);
            }
            at += length;
        }
        converted
    }

    /// Code point at the start of `bytes` and its length, or the number of bytes to skip.
    fn read(&self, bytes: &[u8]) -> Result<(u32, usize), usize> {
        let unit = |at: usize| match (bytes.get(at), bytes.get(at + 1)) {
            (Some(&high), Some(&low)) if self.encoding == Encoding::Utf16Le => {
                Some(u32::from(low) << 8 | u32::from(high))
            }
            (Some(&high), Some(&low)) => Some(u32::from(high) << 8 | u32::from(low)),
            _ => None,
        };
        match self.encoding {
            Encoding::Utf8mb4 => utf8::decode_strict(bytes).ok_or(1),
            Encoding::Utf8mb3 => {
                utf8::decode_strict(bytes).filter(|(point, _)| *point < 0x10000).ok_or(1)
            }
            Encoding::Ascii => match bytes.first() {
                Some(&byte) if byte < 0x80 => Ok((u32::from(byte), 1)),
                _ => Err(1),
            },
            Encoding::Binary => Ok((bytes.first().map_or(0, |&byte| u32::from(byte)), 1)),
            Encoding::Bytes(slot) => bytes
                .first()
                .and_then(|&byte| tables::byte_to_point(slot, byte))
                .map(|point| (point, 1))
                .ok_or(1),
            Encoding::Wide(set) => set.read(bytes),
            Encoding::Ucs2 => match unit(0) {
                Some(point) if !(0xd800..0xe000).contains(&point) => Ok((point, 2)),
                _ => Err(2),
            },
            Encoding::Utf16 | Encoding::Utf16Le => match (unit(0), unit(2)) {
                (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                    Ok((0x10000 + ((high & 0x3ff) << 10 | low & 0x3ff), 4))
                }
                (Some(0xd800..0xe000), _) | (None, _) => Err(2),
                (Some(point), _) => Ok((point, 2)),
            },
            Encoding::Utf32 => match bytes.first_chunk::<4>().map(|b| u32::from_be_bytes(*b)) {
                Some(point) if char::from_u32(point).is_some() => Ok((point, 4)),
                _ => Err(4),
            },
        }
    }

    fn push(&self, point: u32, out: &mut Vec<u8>) {
        let mut pair = [0u16; 2];
        let units = |pair: &mut [u16; 2]| {
            let character = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
            character.encode_utf16(pair).len()
        };
        match self.encoding {
            Encoding::Utf8mb4 | Encoding::Utf8mb3 | Encoding::Binary => utf8::push(point, out),
            Encoding::Ascii => out.push(point as u8),
            Encoding::Bytes(slot) => out.push(tables::point_to_byte(slot, point).unwrap_or(b'?')),
            Encoding::Wide(set) => {
                out.extend_from_slice(set.code(point).as_ref().map_or(b"?", Code::as_bytes));
            }
            Encoding::Ucs2 | Encoding::Utf16 => {
                let count = units(&mut pair);
                pair[..count].iter().for_each(|unit| out.extend_from_slice(&unit.to_be_bytes()));
            }
            Encoding::Utf16Le => {
                let count = units(&mut pair);
                pair[..count].iter().for_each(|unit| out.extend_from_slice(&unit.to_le_bytes()));
            }
            Encoding::Utf32 => out.extend_from_slice(&point.to_be_bytes()),
        }
    }
}
