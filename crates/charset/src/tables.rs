//! Generated weight tables and their readers. Written by `xtask/codegen/collations.py`; all numbers little-endian.
//!
//! `unicode*.bin`: u32 number of pages; 4352 u16 (one per 256 code points) that are a page number, or 0xFFFE (Hangul,
//! by decomposition), 0xFFFD (every weight FFFD) or 0xFFxx (implicit weights of base FBxx, FBxx being F*B*00 for 0xFF00);
//! then the pages of 256 u32; then a pool of u16. In the 9.0.0 table an entry is a position in the pool, where a word
//! counts the weights of the three levels (5 bits each) and the weights follow level by level. In the others it is
//! `count << 24 | position`, or with a count of 1 the weight itself.
//! `tailored.bin`: u32 count and count + 1 u32 offsets; at each of them u16 singles, u16 sequences, then sorted entries: a code
//! point and a position in the pool (u32 each), or four code points (0 for none) and a position. The pool of u16 follows
//! the last, laid out as that of 9.0.0.
//! `general.bin`: 256 page numbers (0xFF: weight = code point), then pages of 256 u16.
//! `case*.bin`: sorted triples of u32: code point, upper, lower.
//! `charsets.bin`: 256 u16 per character set, code points of its bytes, 0xFFFF for none.
//! `weights8.bin`: per collation 256 first and 256 second weight bytes (0 for none).

static UNICODE_900: &[u8; include_bytes!("tables/unicode900.bin").len()] =
    include_bytes!("tables/unicode900.bin");
static UNICODE_520: &[u8; include_bytes!("tables/unicode520.bin").len()] =
    include_bytes!("tables/unicode520.bin");
static UNICODE_400: &[u8; include_bytes!("tables/unicode400.bin").len()] =
    include_bytes!("tables/unicode400.bin");
static TAILORED: &[u8; include_bytes!("tables/tailored.bin").len()] =
    include_bytes!("tables/tailored.bin");
static GENERAL: &[u8; include_bytes!("tables/general.bin").len()] =
    include_bytes!("tables/general.bin");
static CASE_900: &[u8] = include_bytes!("tables/case900.bin");
static CASE_520: &[u8] = include_bytes!("tables/case520.bin");
static CASE_300: &[u8] = include_bytes!("tables/case300.bin");
const CHARSETS_TABLE: &[u8] = include_bytes!("tables/charsets.bin");
static CHARSETS: &[u8] = CHARSETS_TABLE;
static WEIGHTS_8: &[u8] = include_bytes!("tables/weights8.bin");

/// Code points are below this.
const INDEX_ENTRIES: usize = 0x110000 >> 8;
const INDEX_AT: usize = 4;
const PAGES_AT: usize = INDEX_AT + INDEX_ENTRIES * 2;
const PAGE_BYTES: usize = 1024;

const fn word(table: &[u8], at: usize) -> u16 {
    if at + 2 > table.len() {
        return 0xfffd;
    }
    table[at] as u16 | (table[at + 1] as u16) << 8
}

const fn long(table: &[u8], at: usize) -> u32 {
    word(table, at) as u32 | (word(table, at + 2) as u32) << 16
}

const fn pool_at(table: &[u8]) -> usize {
    PAGES_AT + long(table, 0) as usize * PAGE_BYTES
}

const POOL_900: usize = pool_at(UNICODE_900);
const POOL_520: usize = pool_at(UNICODE_520);
const POOL_400: usize = pool_at(UNICODE_400);

/// Which of the Unicode weight tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V900,
    V520,
    V400,
}

/// Weights of one code point at one level: some inline, else a run in the pool.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    table: &'static [u8],
    at: usize,
    end: usize,
    inline: [u16; 4],
}

impl Run {
    pub(crate) const EMPTY: Run = Run { table: &[], at: 0, end: 0, inline: [0; 4] };

    fn inline(inline: [u16; 4], count: usize) -> Run {
        Run { table: &[], at: 0, end: count, inline }
    }

    pub(crate) fn one(weight: u16) -> Run {
        Run::inline([weight, 0, 0, 0], 1)
    }

    pub(crate) fn two(first: u16, second: u16) -> Run {
        Run::inline([first, second, 0, 0], 2)
    }

    pub(crate) fn bytes(bytes: [u8; 4], count: usize) -> Run {
        Run::inline(bytes.map(u16::from), count)
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.end
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<u16> {
        if self.at >= self.end {
            return None;
        }
        let at = self.at;
        if self.table.is_empty() {
            self.at += 1;
            return self.inline.get(at).copied();
        }
        self.at += 2;
        Some(word(self.table, at))
    }
}

/// Weights of `point` at `level` (0..=2; the older tables have only level 0).
pub(crate) fn unicode(version: Version, point: u32, level: usize) -> Run {
    let table: &'static [u8] = match version {
        Version::V900 => UNICODE_900,
        Version::V520 => UNICODE_520,
        Version::V400 => UNICODE_400,
    };
    let page = word(table, INDEX_AT + (point >> 8) as usize * 2);
    match page {
        0xfffe => return hangul(point, level),
        0xfffd => return Run::one(0xfffd),
        0xff00.. => return implicit(point, page, level),
        _ => {}
    }
    let entry = long(table, PAGES_AT + page as usize * PAGE_BYTES + (point & 0xff) as usize * 4);
    match version {
        Version::V900 => pool_run(entry as usize, level),
        Version::V520 => short_run(table, POOL_520, entry),
        Version::V400 => short_run(table, POOL_400, entry),
    }
}

fn short_run(table: &'static [u8], pool: usize, entry: u32) -> Run {
    let count = (entry >> 24) as usize;
    if count == 1 {
        return Run::one(entry as u16);
    }
    let at = pool + (entry & 0xff_ffff) as usize * 2;
    Run { table, at, end: at + count * 2, inline: [0; 4] }
}

const fn pool_range(entry: usize, level: usize) -> (usize, usize) {
    level_range(UNICODE_900, POOL_900 + entry * 2, level)
}

/// Where the weights of a level are, of an entry that begins at `head`.
const fn level_range(table: &[u8], head: usize, level: usize) -> (usize, usize) {
    let counts = word(table, head) as usize;
    let (first, second, third) = (counts & 31, counts >> 5 & 31, counts >> 10 & 31);
    let (skip, count) = match level {
        0 => (0, first),
        1 => (first, second),
        _ => (first + second, third),
    };
    let at = head + 2 + skip * 2;
    (at, at + count * 2)
}

fn pool_run(entry: usize, level: usize) -> Run {
    let (at, end) = pool_range(entry, level);
    Run { table: UNICODE_900, at, end, inline: [0; 4] }
}

/// The rules of a language: its differences from the base.
#[derive(Clone, Copy)]
pub(crate) struct Tailoring {
    singles_at: usize,
    singles: usize,
    sequences_at: usize,
    sequences: usize,
}

/// Most code points of a sequence.
pub(crate) const SEQUENCE_MAX: usize = 4;
const SINGLE_BYTES: usize = 8;
const SEQUENCE_BYTES: usize = 20;
const TAILORED_POOL: usize = long(TAILORED, 4 + 4 * long(TAILORED, 0) as usize) as usize;

/// The rules in slot `slot`.
pub(crate) fn tailoring(slot: u8) -> Tailoring {
    let at = long(TAILORED, 4 + 4 * usize::from(slot)) as usize;
    let singles = usize::from(word(TAILORED, at));
    Tailoring {
        singles_at: at + 4,
        singles,
        sequences_at: at + 4 + singles * SINGLE_BYTES,
        sequences: usize::from(word(TAILORED, at + 2)),
    }
}

impl Tailoring {
    /// Whether some sequences of characters count as one.
    pub(crate) fn has_sequences(self) -> bool {
        self.sequences > 0
    }

    fn run(self, entry: u32, level: usize) -> Run {
        let head = TAILORED_POOL + entry as usize * 2;
        let (at, end) = level_range(TAILORED, head, level);
        Run { table: TAILORED, at, end, inline: [0; 4] }
    }

    /// Weights of a code point, if the language has its own.
    pub(crate) fn single(self, point: u32, level: usize) -> Option<Run> {
        let entry = |index: usize| self.singles_at + index * SINGLE_BYTES;
        let (mut low, mut high) = (0, self.singles);
        while low < high {
            let middle = (low + high) / 2;
            match long(TAILORED, entry(middle)).cmp(&point) {
                std::cmp::Ordering::Equal => {
                    return Some(self.run(long(TAILORED, entry(middle) + 4), level));
                }
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// Weights of the longest sequence that begins `points` (0 after the end), and the number of code points it takes.
    pub(crate) fn sequence(
        self,
        points: &[u32; SEQUENCE_MAX],
        level: usize,
    ) -> Option<(Run, usize)> {
        for count in (2..=SEQUENCE_MAX).rev() {
            if points[count - 1] == 0 {
                continue;
            }
            let mut wanted = [0; SEQUENCE_MAX];
            wanted[..count].copy_from_slice(&points[..count]);
            if let Some(entry) = self.find_sequence(&wanted) {
                return Some((self.run(entry, level), count));
            }
        }
        None
    }

    fn find_sequence(self, wanted: &[u32; SEQUENCE_MAX]) -> Option<u32> {
        let (mut low, mut high) = (0, self.sequences);
        while low < high {
            let middle = (low + high) / 2;
            let at = self.sequences_at + middle * SEQUENCE_BYTES;
            let found: [u32; SEQUENCE_MAX] =
                std::array::from_fn(|index| long(TAILORED, at + 4 * index));
            match found.cmp(wanted) {
                std::cmp::Ordering::Equal => return Some(long(TAILORED, at + 16)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

fn implicit(point: u32, page: u16, level: usize) -> Run {
    match level {
        0 => {}
        1 => return Run::one(0x20),
        _ => return Run::one(0x02),
    }
    if page == 0xff00 {
        return Run::two(0xfb00, (point.wrapping_sub(0x17000) | 0x8000) as u16);
    }
    let base = 0xfb00 | (page & 0xff);
    Run::two(base + (point >> 15) as u16, (point & 0x7fff | 0x8000) as u16)
}

fn hangul(point: u32, level: usize) -> Run {
    let syllable = point.wrapping_sub(0xac00);
    let trailing = syllable % 28;
    let first = |point: u32| unicode_900_first(point, level);
    let inline = [
        first(0x1100 + syllable / 588),
        first(0x1161 + syllable % 588 / 28),
        first(0x11a7 + trailing),
        0,
    ];
    Run::inline(inline, if trailing > 0 { 3 } else { 2 })
}

const fn unicode_900_first(point: u32, level: usize) -> u16 {
    let page = word(UNICODE_900, INDEX_AT + (point >> 8) as usize * 2);
    if page >= 0xff00 {
        return 0;
    }
    let at = PAGES_AT + page as usize * PAGE_BYTES + (point & 0xff) as usize * 4;
    let (start, end) = pool_range(long(UNICODE_900, at) as usize, level);
    if start == end { 0 } else { word(UNICODE_900, start) }
}

/// Weights of ASCII at each level of 9.0.0; 0 for none.
pub(crate) static ASCII_900: [[u16; 128]; 3] = {
    let mut ascii = [[0; 128]; 3];
    let mut level = 0;
    while level < 3 {
        let mut point = 0;
        while point < 128 {
            ascii[level][point] = unicode_900_first(point as u32, level);
            point += 1;
        }
        level += 1;
    }
    ascii
};

const fn ascii_short(table: &[u8]) -> [u16; 128] {
    let mut ascii = [0; 128];
    let page = word(table, INDEX_AT) as usize;
    let mut point = 0;
    while point < 128 {
        let entry = long(table, PAGES_AT + page * PAGE_BYTES + point * 4);
        ascii[point] = if entry >> 24 == 1 { entry as u16 } else { 0 };
        point += 1;
    }
    ascii
}

/// Weights of ASCII in 5.2.0; 0 for none.
pub(crate) static ASCII_520: [u16; 128] = ascii_short(UNICODE_520);
/// Weights of ASCII in 4.0.0; 0 for none.
pub(crate) static ASCII_400: [u16; 128] = ascii_short(UNICODE_400);

/// Weights of ASCII in `general_ci`.
pub(crate) static ASCII_GENERAL: [u16; 128] = {
    let mut ascii = [0; 128];
    let mut point = 0;
    while point < 128 {
        ascii[point] = general(point as u32);
        point += 1;
    }
    ascii
};

/// Weight in `general_ci`.
pub(crate) const fn general(point: u32) -> u16 {
    if point > 0xffff {
        return 0xfffd;
    }
    let page = GENERAL[(point >> 8) as usize];
    if page == 0xff {
        return point as u16;
    }
    word(GENERAL, 256 + page as usize * 512 + (point & 0xff) as usize * 2)
}

/// Which of the case tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    V900,
    V520,
    V300,
}

/// Upper and lower case of `point`, if either differs from it.
pub(crate) fn case(version: Case, point: u32) -> Option<(u32, u32)> {
    let table = match version {
        Case::V900 => CASE_900,
        Case::V520 => CASE_520,
        Case::V300 => CASE_300,
    };
    let (mut low, mut high) = (0, table.len() / 12);
    while low < high {
        let middle = (low + high) / 2;
        let found = long(table, middle * 12);
        match found.cmp(&point) {
            std::cmp::Ordering::Equal => {
                return Some((long(table, middle * 12 + 4), long(table, middle * 12 + 8)));
            }
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// Code point of a byte in character set `slot`.
pub(crate) fn byte_to_point(slot: u8, byte: u8) -> Option<u32> {
    match word(CHARSETS, slot as usize * 512 + byte as usize * 2) {
        0xffff => None,
        point => Some(u32::from(point)),
    }
}

/// Byte of a code point in character set `slot`.
pub(crate) fn point_to_byte(slot: u8, point: u32) -> Option<u8> {
    if point < 128 && byte_to_point(slot, point as u8) == Some(point) {
        return Some(point as u8);
    }
    let wanted = u16::try_from(point).ok().filter(|point| *point != 0xffff)?;
    let sorted = BY_POINT.get(slot as usize)?;
    let at = sorted.partition_point(|(point, _)| *point < wanted);
    sorted.get(at).filter(|(point, _)| *point == wanted).map(|(_, byte)| *byte)
}

const CHARSET_COUNT: usize = CHARSETS_TABLE.len() / 512;

/// The characters of each set by code point. From 0x80 up first: a set may hold ASCII letters twice.
#[allow(long_running_const_eval)]
static BY_POINT: [[(u16, u8); 256]; CHARSET_COUNT] = {
    let mut sets = [[(0, 0); 256]; CHARSET_COUNT];
    let mut slot = 0;
    while slot < CHARSET_COUNT {
        let set = &mut sets[slot];
        let mut count = 0;
        while count < 256 {
            let byte = count as u8 ^ 0x80;
            let point = word(CHARSETS_TABLE, slot * 512 + byte as usize * 2);
            let mut at = count;
            while at > 0 && set[at - 1].0 > point {
                set[at] = set[at - 1];
                at -= 1;
            }
            set[at] = (point, byte);
            count += 1;
        }
        slot += 1;
    }
    sets
};

/// Weights of a byte in 8-bit collation `slot`: the first, and 0 or the second.
pub(crate) fn weights_8(slot: u8, byte: u8) -> (u8, u8) {
    let at = slot as usize * 512 + byte as usize;
    (WEIGHTS_8.get(at).copied().unwrap_or(byte), WEIGHTS_8.get(at + 256).copied().unwrap_or(0))
}
