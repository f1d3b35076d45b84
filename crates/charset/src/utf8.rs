//! Reading UTF-8 one character at a time, total on any bytes.

/// The replacement for a byte that is not UTF-8.
pub(crate) const REPLACEMENT: u32 = 0xfffd;

/// Code point at the start of `bytes` and its length; `(REPLACEMENT, 1)` for malformed bytes. `bytes` is not empty.
#[inline]
pub(crate) fn decode(bytes: &[u8]) -> (u32, usize) {
    match decode_strict(bytes) {
        Some(found) => found,
        None => (REPLACEMENT, 1),
    }
}

/// As `decode`, `None` for malformed bytes or an empty slice.
#[inline]
pub(crate) fn decode_strict(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = *bytes.first()?;
    let tail = |at: usize| {
        bytes.get(at).filter(|&&byte| byte & 0xc0 == 0x80).map(|&byte| u32::from(byte & 0x3f))
    };
    match first {
        0..0x80 => Some((u32::from(first), 1)),
        0xc2..=0xdf => Some((u32::from(first & 0x1f) << 6 | tail(1)?, 2)),
        0xe0..=0xef => {
            let point = u32::from(first & 0x0f) << 12 | tail(1)? << 6 | tail(2)?;
            if point < 0x800 || (0xd800..0xe000).contains(&point) { None } else { Some((point, 3)) }
        }
        0xf0..=0xf4 => {
            let point = u32::from(first & 0x07) << 18 | tail(1)? << 12 | tail(2)? << 6 | tail(3)?;
            if (0x10000..0x110000).contains(&point) { Some((point, 4)) } else { None }
        }
        _ => None,
    }
}

/// Appends a code point; surrogates and worse become U+FFFD.
pub(crate) fn push(point: u32, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    let character = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
    out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
}

/// Number of characters.
pub fn char_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    let mut count = 0;
    while at < bytes.len() {
        if bytes[at] < 0x80 {
            at += 1;
        } else {
            at += decode(&bytes[at..]).1;
        }
        count += 1;
    }
    count
}

/// Bytes of the first `chars` characters.
pub fn char_prefix(bytes: &[u8], chars: usize) -> usize {
    if bytes.len() <= chars {
        return bytes.len();
    }
    let mut at = 0;
    for _ in 0..chars {
        if at >= bytes.len() {
            break;
        }
        at += decode(&bytes[at..]).1;
    }
    at.min(bytes.len())
}

/// Position of the first malformed byte, if any.
pub fn find_malformed(bytes: &[u8]) -> Option<usize> {
    std::str::from_utf8(bytes).err().map(|error| error.valid_up_to())
}
