//! The character sets of East Asia: two to four bytes a character, by table.
//!
//! `tables/multibyte.bin` (written by `xtask/codegen/multibyte.py`, little-endian): u32 number of pages, u32 number of ranges; a
//! record for each set; the pages of 256 u16; the ranges. A record: the page of single bytes; five indexes of 256 page numbers
//! (0xFFFF for none), by the high byte: code points of codes of two bytes, code points of the last two bytes after 8F, codes of code
//! points, high halves and low halves of weights; 128 weights of ASCII (0 for "ask the tables"). A code of three bytes is its last
//! two, the second without its high bit. A range is a first position among the codes of four bytes, a first code point and a count;
//! they are stored twice, by code point and by position.

use crate::tables::Run;

static TABLE: &[u8] = include_bytes!("tables/multibyte.bin");

const NONE: u16 = 0xffff;
const INDEX_BYTES: usize = 512;
const ASCII_WEIGHTS_AT: usize = 2 + 5 * INDEX_BYTES;
const SET_BYTES: usize = ASCII_WEIGHTS_AT + 128;
const SETS: usize = 9;
const PAGES_AT: usize = 8 + SETS * SET_BYTES;
const RANGE_BYTES: usize = 12;
/// Position of U+10000 among the codes of four bytes.
const SUPPLEMENTARY: u32 = 189_000;
/// Weight of the first code of four bytes.
const LONG_WEIGHTS: u32 = 0xff00_0000;

/// The indexes of a set's record, in their order.
#[derive(Clone, Copy)]
enum Index {
    Two,
    Three,
    Codes,
    WeightsHigh,
    WeightsLow,
}

/// Form of a set's codes that are not a plain pair of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Longer {
    /// The set has no such codes.
    No,
    /// 8F and two bytes.
    Three,
    /// GB 18030.
    Four,
}

/// A set of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multibyte {
    pub(crate) slot: u8,
    pub(crate) longer: Longer,
}

/// The bytes of a character.
#[derive(Clone, Copy)]
pub(crate) struct Code {
    bytes: [u8; 4],
    length: u8,
}

impl Code {
    fn of(value: u32, length: u8) -> Code {
        Code { bytes: (value << (32 - 8 * u32::from(length))).to_be_bytes(), length }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    fn run(self) -> Run {
        Run::bytes(self.bytes, usize::from(self.length))
    }
}

fn word(at: usize) -> u16 {
    TABLE.get(at..at + 2).map_or(NONE, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

fn long(at: usize) -> u32 {
    u32::from(word(at)) | u32::from(word(at + 2)) << 16
}

fn page_entry(page: u16, low: u8) -> Option<u16> {
    if page == NONE {
        return None;
    }
    let found = word(PAGES_AT + usize::from(page) * INDEX_BYTES + usize::from(low) * 2);
    (found != NONE).then_some(found)
}

/// The two orders of ranges.
#[derive(Clone, Copy)]
enum Order {
    Point,
    Position,
}

/// First position, first code point, count.
fn range(order: Order, number: usize) -> (u32, u32, u32) {
    let number = number + order as usize * long(4) as usize;
    let at = PAGES_AT + long(0) as usize * INDEX_BYTES + number * RANGE_BYTES;
    (long(at), long(at + 4), long(at + 8))
}

/// The last range for which `before` holds.
fn find_range(order: Order, before: impl Fn((u32, u32, u32)) -> bool) -> Option<(u32, u32, u32)> {
    let (mut low, mut high) = (0, long(4) as usize);
    while low < high {
        let middle = usize::midpoint(low, high);
        if before(range(order, middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low.checked_sub(1).map(|number| range(order, number))
}

/// Code point at a position among the codes of four bytes.
fn long_to_point(position: u32) -> Option<u32> {
    if position >= SUPPLEMENTARY {
        return Some(position - SUPPLEMENTARY + 0x10000).filter(|point| *point < 0x11_0000);
    }
    let (first, point, count) = find_range(Order::Position, |(first, ..)| first <= position)?;
    (position - first < count).then(|| point + position - first)
}

fn point_to_long(point: u32) -> Option<u32> {
    if point >= 0x10000 {
        return Some(point - 0x10000 + SUPPLEMENTARY);
    }
    let (position, first, count) = find_range(Order::Point, |(_, first, _)| first <= point)?;
    (point - first < count).then(|| position + point - first)
}

/// Position of a code of four bytes.
fn long_position(bytes: [u8; 4]) -> Option<u32> {
    let digit = |byte: u8, from: u8, to: u8| {
        (from..=to).contains(&byte).then(|| u32::from(byte) - u32::from(from))
    };
    let [a, b, c, d] = bytes;
    let pair = digit(a, 0x81, 0xfe)? * 10 + digit(b, 0x30, 0x39)?;
    Some((pair * 126 + digit(c, 0x81, 0xfe)?) * 10 + digit(d, 0x30, 0x39)?)
}

fn long_code(position: u32) -> Code {
    let (d, rest) = (position % 10, position / 10);
    let (c, rest) = (rest % 126, rest / 126);
    let (b, a) = (rest % 10, rest / 10);
    let value = (a + 0x81) << 24 | (b + 0x30) << 16 | (c + 0x81) << 8 | (d + 0x30);
    Code::of(value, 4)
}

impl Multibyte {
    fn at(self) -> usize {
        8 + usize::from(self.slot) * SET_BYTES
    }

    fn entry(self, index: Index, number: u16) -> Option<u16> {
        let at = self.at() + 2 + index as usize * INDEX_BYTES;
        let [high, low] = number.to_be_bytes();
        page_entry(word(at + usize::from(high) * 2), low)
    }

    /// Code point at the start of `bytes` and its length, or the number of bytes to skip.
    pub(crate) fn read(self, bytes: &[u8]) -> Result<(u32, usize), usize> {
        let Some(&lead) = bytes.first() else { return Err(1) };
        if let Some(point) = page_entry(word(self.at()), lead) {
            return Ok((u32::from(point), 1));
        }
        let Some(&trail) = bytes.get(1) else { return Err(1) };
        match self.longer {
            Longer::Three if lead == 0x8f => {
                let third = *bytes.get(2).filter(|byte| **byte >= 0x80).ok_or(1usize)?;
                let short = u16::from_be_bytes([trail, third & 0x7f]);
                return self.entry(Index::Three, short).map(|p| (u32::from(p), 3)).ok_or(3);
            }
            Longer::Four if trail.is_ascii_digit() => {
                let code = bytes.first_chunk::<4>().ok_or(1usize)?;
                let position = long_position(*code).ok_or(1usize)?;
                return long_to_point(position).map(|point| (point, 4)).ok_or(4);
            }
            _ => {}
        }
        let short = u16::from_be_bytes([lead, trail]);
        // Bytes that are not a pair at all lose only their first byte.
        let skip = if lead >= 0x80 && trail >= 0x40 { 2 } else { 1 };
        self.entry(Index::Two, short).map(|point| (u32::from(point), 2)).ok_or(skip)
    }

    /// The bytes of a code point.
    pub(crate) fn code(self, point: u32) -> Option<Code> {
        let short = u16::try_from(point).ok().and_then(|point| self.entry(Index::Codes, point));
        match (short, self.longer) {
            (Some(short @ 0..0x100), _) => Some(Code::of(u32::from(short), 1)),
            (Some(short), Longer::Three) if short & 0x80 == 0 => {
                Some(Code::of(0x8f_0080 | u32::from(short), 3))
            }
            (Some(short), _) => Some(Code::of(u32::from(short), 2)),
            (None, Longer::Four) => point_to_long(point).map(long_code),
            (None, _) => None,
        }
    }

    /// Weight of an ASCII character; 0 for "ask `weights`".
    pub(crate) fn ascii_weight(self, byte: u8) -> u8 {
        TABLE[self.at() + ASCII_WEIGHTS_AT + usize::from(byte & 127)]
    }

    /// Weights of a code point in the set's first collation, byte by byte.
    pub(crate) fn weights(self, point: u32) -> Run {
        if let Ok(short) = u16::try_from(point)
            && let Some(low) = self.entry(Index::WeightsLow, short)
        {
            return match self.entry(Index::WeightsHigh, short) {
                Some(high) => Code::of(u32::from(high) << 16 | u32::from(low), 4).run(),
                None => Code::of(u32::from(low), 2).run(),
            };
        }
        let Some(code) = self.code(point) else { return Run::one(u16::from(b'?')) };
        match long_position(code.bytes) {
            Some(position) if code.length == 4 => Code::of(LONG_WEIGHTS + position, 4).run(),
            _ => code.run(),
        }
    }

    /// The bytes of a code point as weights.
    pub(crate) fn code_weights(self, point: u32) -> Run {
        self.code(point).map_or_else(|| Run::one(u16::from(b'?')), Code::run)
    }
}
