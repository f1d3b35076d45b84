//! Streams of weights: the units that comparison, sort keys, hashes and patterns work on.

use crate::multibyte::Multibyte;
use crate::tables::{self, Run, SEQUENCE_MAX, Tailoring, Version};
use crate::utf8;

/// Source of the weights of characters.
pub(crate) trait Source: Copy {
    /// Bytes of a weight in a sort key.
    const WIDTH: usize = 2;
    /// Weight of the space.
    fn space(self) -> u16;
    /// Weight of an ASCII character that is never part of a sequence; 0 for none, or for "ask `run`".
    fn ascii(self, byte: u8) -> u16;
    /// Weights of any character.
    fn run(self, point: u32) -> Run;
    /// Whether an ASCII character with weight 0 has no weights at all.
    fn skips_ascii_zero(self) -> bool {
        true
    }
    /// Weights of characters at the start of `text` that count as one, and their bytes.
    #[inline]
    fn sequence(self, _text: &[u8]) -> Option<(Run, usize)> {
        None
    }
}

/// The rules of a language over one level of UCA 9.0.0, or over 4.0.0.
#[derive(Clone, Copy)]
pub(crate) struct Tailored<const LEVEL: usize> {
    pub(crate) rules: Tailoring,
    pub(crate) version: Version,
}

impl<const LEVEL: usize> Source for Tailored<LEVEL> {
    fn space(self) -> u16 {
        match self.version {
            Version::V900 => tables::ASCII_900[LEVEL][b' ' as usize],
            _ => tables::ASCII_400[b' ' as usize],
        }
    }
    fn ascii(self, _: u8) -> u16 {
        0
    }
    fn run(self, point: u32) -> Run {
        match self.rules.single(point, LEVEL) {
            Some(run) => run,
            None => tables::unicode(self.version, point, LEVEL),
        }
    }
    fn skips_ascii_zero(self) -> bool {
        false
    }
    fn sequence(self, text: &[u8]) -> Option<(Run, usize)> {
        if !self.rules.has_sequences() {
            return None;
        }
        let (mut points, mut ends) = ([0; SEQUENCE_MAX], [0; SEQUENCE_MAX]);
        let mut at = 0;
        for index in 0..SEQUENCE_MAX {
            if at >= text.len() {
                break;
            }
            let (point, length) = utf8::decode(&text[at..]);
            at += length;
            (points[index], ends[index]) = (point, at);
        }
        let (run, count) = self.rules.sequence(&points, LEVEL)?;
        Some((run, ends[count - 1]))
    }
}

/// One level of UCA 9.0.0.
#[derive(Clone, Copy)]
pub(crate) struct Level<const LEVEL: usize>;

impl<const LEVEL: usize> Source for Level<LEVEL> {
    fn space(self) -> u16 {
        tables::ASCII_900[LEVEL][b' ' as usize]
    }
    #[inline]
    fn ascii(self, byte: u8) -> u16 {
        tables::ASCII_900[LEVEL][(byte & 127) as usize]
    }
    fn run(self, point: u32) -> Run {
        tables::unicode(Version::V900, point, LEVEL)
    }
}

/// UCA 5.2.0.
#[derive(Clone, Copy)]
pub(crate) struct Uca520;

impl Source for Uca520 {
    fn space(self) -> u16 {
        tables::ASCII_520[b' ' as usize]
    }
    #[inline]
    fn ascii(self, byte: u8) -> u16 {
        tables::ASCII_520[(byte & 127) as usize]
    }
    fn run(self, point: u32) -> Run {
        tables::unicode(Version::V520, point, 0)
    }
}

/// UCA 4.0.0.
#[derive(Clone, Copy)]
pub(crate) struct Uca400;

impl Source for Uca400 {
    fn space(self) -> u16 {
        tables::ASCII_400[b' ' as usize]
    }
    #[inline]
    fn ascii(self, byte: u8) -> u16 {
        tables::ASCII_400[(byte & 127) as usize]
    }
    fn run(self, point: u32) -> Run {
        tables::unicode(Version::V400, point, 0)
    }
}

/// `general_ci`: one weight per character.
#[derive(Clone, Copy)]
pub(crate) struct General;

impl Source for General {
    fn space(self) -> u16 {
        0x20
    }
    #[inline]
    fn ascii(self, byte: u8) -> u16 {
        tables::ASCII_GENERAL[(byte & 127) as usize]
    }
    fn run(self, point: u32) -> Run {
        Run::one(tables::general(point))
    }
    fn skips_ascii_zero(self) -> bool {
        false
    }
}

/// No character, or one without a use: it sorts after all others of a set by table, so that it bounds ranges.
const LAST_POINT: u32 = 0x10_ffff;

/// An 8-bit collation: text is UTF-8 here too, each character is converted to its byte.
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    pub(crate) charset: u8,
    pub(crate) weights: u8,
}

impl Bytes {
    fn weights(self, point: u32) -> (u8, u8) {
        let byte = tables::point_to_byte(self.charset, point).unwrap_or(b'?');
        tables::weights_8(self.weights, byte)
    }
}

impl Source for Bytes {
    const WIDTH: usize = 1;
    fn space(self) -> u16 {
        u16::from(self.weights(0x20).0)
    }
    fn ascii(self, byte: u8) -> u16 {
        match self.weights(u32::from(byte)) {
            (first, 0) => u16::from(first),
            _ => 0,
        }
    }
    fn run(self, point: u32) -> Run {
        if point == LAST_POINT {
            return Run::one(0xff);
        }
        match self.weights(point) {
            (first, 0) => Run::one(u16::from(first)),
            (first, second) => Run::two(u16::from(first), u16::from(second)),
        }
    }
    fn skips_ascii_zero(self) -> bool {
        false
    }
}

/// A collation of East Asia: as its characters' bytes, or by their weights.
#[derive(Clone, Copy)]
pub(crate) struct Wide {
    pub(crate) set: Multibyte,
    pub(crate) by_code: bool,
}

impl Source for Wide {
    const WIDTH: usize = 1;
    fn space(self) -> u16 {
        0x20
    }
    fn ascii(self, byte: u8) -> u16 {
        if self.by_code { 0 } else { u16::from(self.set.ascii_weight(byte)) }
    }
    fn run(self, point: u32) -> Run {
        match (point, self.by_code) {
            (LAST_POINT, _) => Run::one(0xff),
            (_, true) => self.set.code_weights(point),
            (_, false) => self.set.weights(point),
        }
    }
    fn skips_ascii_zero(self) -> bool {
        false
    }
}

/// Whether one of four numbers of 16 bits is zero.
#[inline]
fn has_zero_lane(lanes: u64) -> bool {
    const ONES: u64 = 0x0001_0001_0001_0001;
    lanes.wrapping_sub(ONES) & !lanes & (ONES << 15) != 0
}

/// The weights of a text, in order.
pub(crate) struct Units<'a, S> {
    text: &'a [u8],
    at: usize,
    run: Run,
    source: S,
}

impl<'a, S: Source> Units<'a, S> {
    pub(crate) fn new(text: &'a [u8], source: S) -> Self {
        Units { text, at: 0, run: Run::EMPTY, source }
    }

    /// Appends the weights of the following ASCII characters, in two bytes each, up to the first that may be part of a sequence.
    pub(crate) fn write_ascii(&mut self, out: &mut Vec<u8>) {
        /// Characters per batch: their weights are looked up without a branch between them.
        const CHARS: usize = 8;
        if !self.run.is_empty() {
            return;
        }
        while let Some(chars) = self.text[self.at..].first_chunk::<CHARS>() {
            if !chars.is_ascii() {
                break;
            }
            let [a, b, c, d, e, f, g, h] = *chars;
            let weight = |byte: u8| u64::from(self.source.ascii(byte));
            let four = |a, b, c, d| weight(a) << 48 | weight(b) << 32 | weight(c) << 16 | weight(d);
            let (first, second) = (four(a, b, c, d), four(e, f, g, h));
            if has_zero_lane(first) | has_zero_lane(second) {
                break;
            }
            let weights = u128::from(first) << 64 | u128::from(second);
            out.extend_from_slice(&weights.to_be_bytes());
            self.at += CHARS;
        }
        while let Some(byte) = self.text.get(self.at).filter(|byte| **byte < 0x80) {
            let weight = self.source.ascii(*byte);
            if weight == 0 {
                return;
            }
            out.extend_from_slice(&weight.to_be_bytes());
            self.at += 1;
        }
    }
}

impl<S: Source> Iterator for Units<'_, S> {
    type Item = u16;

    #[inline]
    fn next(&mut self) -> Option<u16> {
        loop {
            if let Some(weight) = self.run.next() {
                return Some(weight);
            }
            let &byte = self.text.get(self.at)?;
            if let Some((run, length)) = self.source.sequence(&self.text[self.at..]) {
                self.run = run;
                self.at += length;
                continue;
            }
            if byte < 0x80 {
                self.at += 1;
                let weight = self.source.ascii(byte);
                if weight != 0 {
                    return Some(weight);
                }
                if !self.source.skips_ascii_zero() {
                    self.run = self.source.run(u32::from(byte));
                }
                continue;
            }
            let (point, length) = utf8::decode(&self.text[self.at..]);
            self.at += length;
            self.run = self.source.run(point);
        }
    }
}

/// Weights of UTF-8 bytes: the bytes themselves.
pub(crate) struct PlainUnits<'a>(pub(crate) std::slice::Iter<'a, u8>);

impl Iterator for PlainUnits<'_> {
    type Item = u16;
    fn next(&mut self) -> Option<u16> {
        self.0.next().map(|&byte| u16::from(byte))
    }
}

/// Drops the common prefix of two texts, whole characters only.
#[inline]
pub(crate) fn skip_common<'a, 'b>(a: &'a [u8], b: &'b [u8]) -> (&'a [u8], &'b [u8]) {
    let limit = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= limit && a[at..at + 8] == b[at..at + 8] {
        at += 8;
    }
    while at < limit && a[at] == b[at] {
        at += 1;
    }
    // Back to where a character starts in both.
    let inside = |text: &[u8], at: usize| text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80);
    while at > 0 && (inside(a, at) || inside(b, at)) {
        at -= 1;
    }
    (&a[at..], &b[at..])
}

impl<'a, S> Units<'a, S> {
    /// The text from its start.
    pub(crate) fn into_text(self) -> &'a [u8] {
        self.text
    }
}
