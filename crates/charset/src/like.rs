//! `LIKE` patterns.

use crate::charset::Encoding;
use crate::collation::Collation;
use crate::utf8;

/// One element of a pattern.
enum Element {
    /// `%`.
    Any,
    /// `_`.
    One,
    /// A character that must be equal.
    Literal(u32),
}

impl Collation {
    /// Whether `text` matches `pattern`; `escape` makes the character after it a literal.
    pub fn like(&self, pattern: &[u8], text: &[u8], escape: Option<char>) -> bool {
        let bytewise = self.charset.encoding == Encoding::Binary;
        let read = |bytes: &[u8]| {
            if bytewise { (u32::from(bytes[0]), 1) } else { utf8::decode(bytes) }
        };
        let escape = escape.map(u32::from);
        let element = |at: usize| -> Option<(Element, usize)> {
            let rest = pattern.get(at..).filter(|rest| !rest.is_empty())?;
            let (point, length) = read(rest);
            if Some(point) == escape && rest.len() > length {
                let (literal, more) = read(&rest[length..]);
                return Some((Element::Literal(literal), length + more));
            }
            let element = match point {
                0x25 => Element::Any,
                0x5f => Element::One,
                _ => Element::Literal(point),
            };
            Some((element, length))
        };
        let (mut at, mut pattern_at) = (0, 0);
        // Where to retry after the last `%`: it takes one character more each time.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let matched = match element(pattern_at) {
                Some((Element::Any, length)) => {
                    pattern_at += length;
                    if pattern_at >= pattern.len() {
                        return true;
                    }
                    retry = Some((at, pattern_at));
                    continue;
                }
                None if at >= text.len() => return true,
                None => None,
                Some(_) if at >= text.len() => return false,
                Some((Element::One, length)) => Some((read(&text[at..]).1, length)),
                Some((Element::Literal(literal), length)) => {
                    let (point, step) = read(&text[at..]);
                    let same = point == literal || !bytewise && self.same_char(point, literal);
                    same.then_some((step, length))
                }
            };
            if let Some((step, length)) = matched {
                at += step;
                pattern_at += length;
                continue;
            }
            let Some((retry_at, after)) = retry else { return false };
            if retry_at >= text.len() {
                return false;
            }
            at = retry_at + read(&text[retry_at..]).1;
            pattern_at = after;
            retry = Some((at, after));
        }
    }
}
