//! Operations of a collation: compare, hash, sort keys and key bytes, case. Patterns are in `like`.

use std::cmp::Ordering;
use std::hash::Hasher;

use crate::charset::{Charset, Encoding};
use crate::id::CollationId;
use crate::multibyte::Multibyte;
use crate::tables::{self, Case, Version};
use crate::utf8;
use crate::weights::{
    Bytes, General, Level, PlainUnits, Source, Tailored, Uca400, Uca520, Units, Wide, skip_common,
};

/// Whether trailing spaces are significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PadAttribute {
    /// Trailing spaces are not significant.
    PadSpace,
    /// They do.
    NoPad,
}

/// The ordering rule of a collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Plain bytes, no padding.
    Binary,
    /// Code points, PAD SPACE.
    Bin,
    /// One weight per character.
    General,
    /// UCA 9.0.0 with this many levels.
    Unicode900(u8),
    Unicode520,
    Unicode400,
    /// 8-bit character set (first) with weights (second).
    Bytes(u8, u8),
    /// A set of East Asia, by its characters' bytes or by weights.
    Wide(Multibyte, bool),
    /// A language's rules (second) over UCA 9.0.0 with this many levels, or over 4.0.0 for 0.
    Tailored(u8, u8),
}

/// A collation. Text is always UTF-8, whatever its character set (`binary` excepted).
#[derive(Debug)]
pub struct Collation {
    /// Number on the wire.
    pub id: CollationId,
    /// Name.
    pub name: &'static str,
    /// Its character set.
    pub charset: &'static Charset,
    /// Whether trailing spaces are significant.
    pub pad: PadAttribute,
    /// Default of its character set.
    pub is_default: bool,
    /// `SORTLEN` of the information schema.
    pub sort_length: u8,
    /// False when the language's own rules are not applied: it orders like its base.
    pub tailored: bool,
    pub(crate) rule: Rule,
}

/// Runs `$body` with `$units` bound to a function from text to weights.
macro_rules! with_units {
    ($rule:expr, $source:ident => $body:expr, $bin:expr, $binary:expr, $deep:expr) => {
        match $rule {
            Rule::Binary => $binary,
            Rule::Bin => $bin,
            Rule::General => {
                let $source = General;
                $body
            }
            Rule::Unicode520 => {
                let $source = Uca520;
                $body
            }
            Rule::Unicode400 => {
                let $source = Uca400;
                $body
            }
            Rule::Bytes(charset, weights) => {
                let $source = Bytes { charset, weights };
                $body
            }
            Rule::Wide(set, by_code) => {
                let $source = Wide { set, by_code };
                $body
            }
            Rule::Tailored(0, slot) => {
                let $source =
                    Tailored::<0> { rules: tables::tailoring(slot), version: Version::V400 };
                $body
            }
            Rule::Unicode900(levels) => $deep(levels, Level::<0>, Level::<1>, Level::<2>),
            Rule::Tailored(levels, slot) => {
                let (rules, version) = (tables::tailoring(slot), Version::V900);
                $deep(
                    levels,
                    Tailored::<0> { rules, version },
                    Tailored::<1> { rules, version },
                    Tailored::<2> { rules, version },
                )
            }
        }
    };
}

impl Collation {
    /// Bytes compare directly, without padding.
    pub fn is_binary(&self) -> bool {
        self.rule == Rule::Binary
    }

    /// A `_bin` collation or `binary`: equal texts are equal bytes, except for trailing spaces.
    pub fn is_bin(&self) -> bool {
        matches!(self.rule, Rule::Binary | Rule::Bin) || self.name.ends_with("_bin")
    }

    /// Order of two texts.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        if self.rule == Rule::Binary {
            return a.cmp(b);
        }
        let (a, b) = if self.joins() { (a, b) } else { skip_common(a, b) };
        if a.is_empty() && b.is_empty() {
            return Ordering::Equal;
        }
        with_units!(
            self.rule,
            source => compare_padded(Units::new(a, source), Units::new(b, source), source.space()),
            compare_padded(PlainUnits(a.iter()), PlainUnits(b.iter()), 0x20),
            a.cmp(b),
            |levels, x, y, z| compare_levels(a, b, levels, x, y, z)
        )
    }

    /// Whether two texts are equal.
    pub fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        a == b || self.compare(a, b) == Ordering::Equal
    }

    /// Feeds the hasher so that equal texts hash alike.
    pub fn hash<H: Hasher>(&self, text: &[u8], state: &mut H) {
        with_units!(
            self.rule,
            source => hash_padded(Units::new(text, source), source.space(), state),
            state.write(trim_spaces(text)),
            state.write(text),
            |levels, x, y, z| hash_levels(text, levels, x, y, z, state)
        );
        state.write_u8(0xff);
    }

    /// Weights as `WEIGHT_STRING()` shows them.
    pub fn sort_key(&self, text: &[u8], out: &mut Vec<u8>) {
        with_units!(
            self.rule,
            source => write_units(Units::new(text, source), source, out),
            Units::new(text, General).text_points(self.point_width(), out),
            out.extend_from_slice(text),
            |levels, x, y, z| write_levels(text, levels, x, y, z, out)
        );
    }

    /// Bytes of a code point as a weight of a `_bin` collation.
    fn point_width(&self) -> usize {
        match self.charset.encoding {
            Encoding::Ascii => 1,
            Encoding::Ucs2 | Encoding::Utf8mb3 => 2,
            Encoding::Utf8mb4
            | Encoding::Utf16
            | Encoding::Utf16Le
            | Encoding::Utf32
            | Encoding::Binary
            | Encoding::Bytes(_)
            | Encoding::Wide(_) => 3,
        }
    }

    /// Key bytes: plain order is the collation's order, and no key is a prefix of another.
    pub fn write_key(&self, text: &[u8], out: &mut Vec<u8>) {
        with_units!(
            self.rule,
            source => write_padded(Units::new(text, source), source.space(), width(source), out),
            write_padded(PlainUnits(text.iter()), 0x20, 1, out),
            write_escaped(text, out),
            |levels, x, y, z| {
                write_levels(text, levels, x, y, z, out);
                out.extend_from_slice(&[0, 0]);
            }
        );
    }

    /// The prefix that the keys of all texts with this beginning share; for ranges. Trailing spaces are dropped.
    pub fn write_key_prefix(&self, text: &[u8], out: &mut Vec<u8>) {
        let text = if self.pad == PadAttribute::PadSpace { trim_spaces(text) } else { text };
        let start = out.len();
        match self.rule {
            Rule::Binary => {
                write_escaped(text, out);
                out.truncate(out.len() - 2);
            }
            Rule::Unicode900(_) => write_units(Units::new(text, Level::<0>), Level::<0>, out),
            // The following characters may combine with the end of the text into one letter.
            Rule::Tailored(_, slot) if tables::tailoring(slot).has_sequences() => {}
            Rule::Tailored(1.., slot) => {
                let source =
                    Tailored::<0> { rules: tables::tailoring(slot), version: Version::V900 };
                write_units(Units::new(text, source), source, out);
            }
            Rule::Bin
            | Rule::General
            | Rule::Unicode520
            | Rule::Unicode400
            | Rule::Bytes(..)
            | Rule::Wide(..)
            | Rule::Tailored(0, _) => {
                self.write_key(text, out);
                let terminator =
                    if matches!(self.rule, Rule::Bin | Rule::Bytes(..) | Rule::Wide(..)) {
                        2
                    } else {
                        3
                    };
                out.truncate((out.len() - terminator).max(start));
            }
        }
    }

    /// Whether `key`, written by `write_key`, is of a text that begins with `text`, compared letter by letter. The result of `write_key_prefix`
    /// only bounds the range of such keys.
    pub fn key_begins_with(&self, key: &[u8], text: &[u8]) -> bool {
        let mut begin = Vec::new();
        let (Rule::Unicode900(_) | Rule::Tailored(1.., _)) = self.rule else {
            self.write_key_prefix(text, &mut begin);
            return key.starts_with(&begin);
        };
        self.sort_key(text, &mut begin);
        let levels = |key| {
            let units: &[[u8; 2]] = <[u8]>::as_chunks(key).0;
            units.split(|unit| *unit == [0, 0])
        };
        let mut key = levels(key);
        levels(&begin).all(|level| key.next().is_some_and(|whole| whole.starts_with(level)))
    }

    /// Whether sequences of characters may count as one.
    fn joins(&self) -> bool {
        matches!(self.rule, Rule::Tailored(_, slot) if tables::tailoring(slot).has_sequences())
    }

    fn case_table(&self) -> Case {
        match self.rule {
            Rule::Unicode900(_) | Rule::Tailored(1.., _) => Case::V900,
            Rule::Binary if self.id == CollationId::UTF8MB4_0900_BIN => Case::V900,
            Rule::Unicode520 => Case::V520,
            Rule::Binary
            | Rule::Bin
            | Rule::General
            | Rule::Unicode400
            | Rule::Bytes(..)
            | Rule::Wide(..)
            | Rule::Tailored(0, _) => Case::V300,
        }
    }

    /// Upper case. Bytes of `binary` are unchanged.
    pub fn upper(&self, text: &[u8]) -> Vec<u8> {
        self.map_case(text, |byte| byte.to_ascii_uppercase(), |(upper, _)| upper)
    }

    /// Lower case. Bytes of `binary` are unchanged.
    pub fn lower(&self, text: &[u8]) -> Vec<u8> {
        self.map_case(text, |byte| byte.to_ascii_lowercase(), |(_, lower)| lower)
    }

    fn map_case(&self, text: &[u8], ascii: fn(u8) -> u8, pick: fn((u32, u32)) -> u32) -> Vec<u8> {
        if self.charset.encoding == Encoding::Binary {
            return text.to_vec();
        }
        let table = self.case_table();
        let mut out = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            if text[at] < 0x80 {
                out.push(ascii(text[at]));
                at += 1;
                continue;
            }
            let (point, length) = utf8::decode(&text[at..]);
            match tables::case(table, point).map(pick) {
                Some(mapped) if self.charset.can_encode(mapped) => utf8::push(mapped, &mut out),
                _ => out.extend_from_slice(&text[at..at + length]),
            }
            at += length;
        }
        out
    }

    /// Characters of a text (bytes when binary).
    pub fn char_length(&self, text: &[u8]) -> usize {
        if self.charset.encoding == Encoding::Binary { text.len() } else { utf8::char_length(text) }
    }

    /// Bytes of the first `chars` characters.
    pub fn char_prefix(&self, text: &[u8], chars: usize) -> usize {
        if self.charset.encoding == Encoding::Binary {
            chars.min(text.len())
        } else {
            utf8::char_prefix(text, chars)
        }
    }

    /// Byte position of the first match of `needle` (not empty) at or after byte `from`, when both are plain ASCII and the collation
    /// distinguishes all ASCII characters except perhaps the case of letters; `None` otherwise.
    pub fn find_ascii(&self, text: &[u8], needle: &[u8], from: usize) -> Option<Option<usize>> {
        let is_plain = |bytes: &[u8]| bytes.iter().all(|byte| (0x20..0x7F).contains(byte));
        let rest = text.get(from..)?;
        if !matches!(self.rule, Rule::General | Rule::Unicode900(_))
            || !is_plain(needle)
            || !is_plain(rest)
        {
            return None;
        }
        let folds = self.same_char('a'.into(), 'A'.into());
        let first = *needle.first()?;
        let other = match folds && first.is_ascii_alphabetic() {
            true => first ^ 0x20,
            false => first,
        };
        let mut windows = rest.windows(needle.len());
        let found = windows.position(|window| {
            (window[0] == first || window[0] == other)
                && if folds { window.eq_ignore_ascii_case(needle) } else { window == needle }
        });
        Some(found.map(|at| from + at))
    }

    /// Whether two single characters are equal.
    pub(crate) fn same_char(&self, a: u32, b: u32) -> bool {
        if a == b {
            return true;
        }
        let ascii = a < 0x80 && b < 0x80;
        match self.rule {
            Rule::Binary | Rule::Bin => false,
            Rule::General => tables::general(a) == tables::general(b),
            Rule::Unicode900(1) if ascii => Level::<0>.ascii(a as u8) == Level::<0>.ascii(b as u8),
            Rule::Unicode900(levels) => {
                let same = |x: bool, enough: u8| x || levels < enough;
                same(same_run(Level::<0>, a, b), 1)
                    && same(same_run(Level::<1>, a, b), 2)
                    && same(same_run(Level::<2>, a, b), 3)
            }
            Rule::Tailored(0, slot) => {
                let rules = tables::tailoring(slot);
                same_run(Tailored::<0> { rules, version: Version::V400 }, a, b)
            }
            Rule::Tailored(levels, slot) => {
                let (rules, version) = (tables::tailoring(slot), Version::V900);
                let same = |x: bool, enough: u8| x || levels < enough;
                same(same_run(Tailored::<0> { rules, version }, a, b), 1)
                    && same(same_run(Tailored::<1> { rules, version }, a, b), 2)
                    && same(same_run(Tailored::<2> { rules, version }, a, b), 3)
            }
            Rule::Unicode520 => same_run(Uca520, a, b),
            Rule::Unicode400 => same_run(Uca400, a, b),
            Rule::Bytes(charset, weights) => same_run(Bytes { charset, weights }, a, b),
            Rule::Wide(set, by_code) => same_run(Wide { set, by_code }, a, b),
        }
    }
}

const fn width<S: Source>(_: S) -> usize {
    S::WIDTH
}

fn same_run<S: Source>(source: S, a: u32, b: u32) -> bool {
    let (mut x, mut y) = (source.run(a), source.run(b));
    loop {
        match (x.next(), y.next()) {
            (None, None) => return true,
            (left, right) if left == right => {}
            _ => return false,
        }
    }
}

/// `text` without trailing spaces.
pub(crate) fn trim_spaces(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

fn compare_padded(
    mut a: impl Iterator<Item = u16>,
    mut b: impl Iterator<Item = u16>,
    space: u16,
) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return x.cmp(&y),
            (None, None) => return Ordering::Equal,
            (Some(x), None) if x == space => {}
            (Some(x), None) => return x.cmp(&space),
            (None, Some(y)) if y == space => {}
            (None, Some(y)) => return space.cmp(&y),
        }
    }
}

fn compare_levels(
    a: &[u8],
    b: &[u8],
    levels: u8,
    first: impl Source,
    second: impl Source,
    third: impl Source,
) -> Ordering {
    let mut order = Units::new(a, first).cmp(Units::new(b, first));
    if order.is_eq() && levels > 1 {
        order = Units::new(a, second).cmp(Units::new(b, second));
    }
    if order.is_eq() && levels > 2 {
        order = Units::new(a, third).cmp(Units::new(b, third));
    }
    order
}

fn hash_padded<H: Hasher>(units: impl Iterator<Item = u16>, space: u16, state: &mut H) {
    let mut spaces = 0;
    for unit in units {
        if unit == space {
            spaces += 1;
            continue;
        }
        for _ in 0..spaces {
            state.write_u16(space);
        }
        spaces = 0;
        state.write_u16(unit);
    }
}

fn hash_levels<H: Hasher>(
    text: &[u8],
    levels: u8,
    first: impl Source,
    second: impl Source,
    third: impl Source,
    state: &mut H,
) {
    Units::new(text, first).for_each(|unit| state.write_u16(unit));
    if levels > 1 {
        Units::new(text, second).for_each(|unit| state.write_u16(unit));
    }
    if levels > 2 {
        Units::new(text, third).for_each(|unit| state.write_u16(unit));
    }
}

fn write_units<S: Source>(mut units: Units<'_, S>, _: S, out: &mut Vec<u8>) {
    loop {
        if S::WIDTH == 2 {
            units.write_ascii(out);
        }
        let Some(unit) = units.next() else { return };
        if S::WIDTH == 2 {
            out.extend_from_slice(&unit.to_be_bytes());
        } else {
            out.push(unit as u8);
        }
    }
}

fn write_levels(
    text: &[u8],
    levels: u8,
    first: impl Source,
    second: impl Source,
    third: impl Source,
    out: &mut Vec<u8>,
) {
    out.reserve(text.len() * 2 + 2);
    write_units(Units::new(text, first), first, out);
    if levels > 1 {
        out.extend_from_slice(&[0, 0]);
        write_units(Units::new(text, second), second, out);
    }
    if levels > 2 {
        out.extend_from_slice(&[0, 0]);
        write_units(Units::new(text, third), third, out);
    }
}

/// 00 becomes 00 FF, the end is 00 00.
fn write_escaped(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    let mut rest = text;
    while let Some(zero) = rest.iter().position(|&byte| byte == 0) {
        out.extend_from_slice(&rest[..zero]);
        out.extend_from_slice(&[0, 0xff]);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Byte after a space weight that ends the text.
const END: u8 = 0x60;
/// Longest run of spaces that is encoded in one byte.
const SHORT_RUN: u32 = 63;

/// PAD SPACE: the end of a text compares like spaces without end. So the end and every run of spaces begin with the
/// weight of a space, and a byte that follows puts them in order: a run before something lower, the end, a run before
/// something higher. Among the first longer runs are higher, among the last they are lower.
fn write_padded(units: impl Iterator<Item = u16>, space: u16, width: usize, out: &mut Vec<u8>) {
    let push = |unit: u16, out: &mut Vec<u8>| {
        if width == 2 {
            out.extend_from_slice(&unit.to_be_bytes());
        } else {
            out.push(unit as u8);
        }
    };
    let mut spaces = 0u32;
    for unit in units {
        if unit == space {
            spaces = spaces.saturating_add(1);
            continue;
        }
        if spaces > 0 {
            push(space, out);
            match (unit > space, spaces <= SHORT_RUN) {
                (true, true) => out.push(0xc0 - spaces as u8),
                (true, false) => {
                    out.push(0x80);
                    out.extend_from_slice(&(!spaces).to_be_bytes());
                }
                (false, true) => out.push(spaces as u8),
                (false, false) => {
                    out.push(0x40);
                    out.extend_from_slice(&spaces.to_be_bytes());
                }
            }
            spaces = 0;
        }
        push(unit, out);
    }
    push(space, out);
    out.push(END);
}

impl Units<'_, General> {
    /// `width` bytes per code point, as `WEIGHT_STRING()` of a `_bin` collation shows them.
    fn text_points(self, width: usize, out: &mut Vec<u8>) {
        let text = self.into_text();
        let mut at = 0;
        while at < text.len() {
            let (point, length) = utf8::decode(&text[at..]);
            out.extend_from_slice(&point.to_be_bytes()[4 - width..]);
            at += length;
        }
    }
}
