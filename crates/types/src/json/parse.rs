//! JSON text to a tree.

use std::borrow::Cow;
use std::fmt;

use super::MAX_DEPTH;
use super::binary::NAME_LIMIT;
use super::path::{JsonPath, PathLeg};
use super::tree::{JsonObject, JsonValue};

/// The reason why a text is not JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonParseError {
    /// The fault, in the words that clients know.
    pub message: &'static str,
    /// Byte position.
    pub position: usize,
    /// It nests deeper than 100: error 3157, not 3140.
    pub too_deep: bool,
    /// A member's name is longer than 65,535 bytes: error 3151.
    pub name_too_long: bool,
}

impl fmt::Display for JsonParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at position {}", self.message, self.position)
    }
}

/// Parses a whole text.
pub fn parse(text: &[u8]) -> Result<JsonValue, JsonParseError> {
    whole(text, |parser| parser.value::<true>(0))
}

/// Checks that a whole text is JSON: returns the error that `parse` would, but builds no value.
pub fn check(text: &[u8]) -> Result<(), JsonParseError> {
    whole(text, |parser| parser.value::<false>(0).map(drop))
}

/// Parses a whole text but builds only the value at `path`. `None` when the path uses more than names and positions counted from the start.
pub fn parse_at(text: &[u8], path: &JsonPath) -> Option<Result<Option<JsonValue>, JsonParseError>> {
    let is_plain = |leg: &PathLeg| match leg {
        PathLeg::Member(_) => true,
        PathLeg::Cell(index) => !index.from_end,
        _ => false,
    };
    let legs = path.legs();
    legs.iter().all(is_plain).then(|| whole(text, |parser| parser.find(0, legs)))
}

fn whole<'a, T>(
    text: &'a [u8],
    root: impl FnOnce(&mut Parser<'a>) -> Result<T, JsonParseError>,
) -> Result<T, JsonParseError> {
    let mut parser = Parser { text, at: 0 };
    parser.skip_blanks();
    if parser.at >= text.len() {
        return parser.fail("The document is empty.");
    }
    let value = root(&mut parser)?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return parser.fail("The document root must not be followed by other values.");
    }
    Ok(value)
}

/// A whole number of at most this many digits is never an infinite double.
const DIGITS_SAFE: usize = 300;

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, message: &'static str) -> Result<T, JsonParseError> {
        self.fail_at(message, self.at)
    }

    fn fail_at<T>(&self, message: &'static str, position: usize) -> Result<T, JsonParseError> {
        Err(JsonParseError { message, position, too_deep: false, name_too_long: false })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next value; `null` in its place unless `BUILD`.
    fn value<const BUILD: bool>(&mut self, depth: usize) -> Result<JsonValue, JsonParseError> {
        match self.peek() {
            Some(b'{') => self.object::<BUILD>(depth + 1),
            Some(b'[') => self.array::<BUILD>(depth + 1),
            Some(b'"') => {
                let text = self.string::<BUILD>()?;
                Ok(if BUILD { JsonValue::String(text.into_owned()) } else { JsonValue::Null })
            }
            Some(b't') => self.word(b"true", JsonValue::Bool(true)),
            Some(b'f') => self.word(b"false", JsonValue::Bool(false)),
            Some(b'n') => self.word(b"null", JsonValue::Null),
            Some(b'-' | b'0'..=b'9') => self.number::<BUILD>(),
            _ => self.fail("Invalid value."),
        }
    }

    fn word(&mut self, word: &[u8], value: JsonValue) -> Result<JsonValue, JsonParseError> {
        for (index, &c) in word.iter().enumerate() {
            if self.text.get(self.at + index) != Some(&c) {
                return self.fail_at("Invalid value.", self.at + index);
            }
        }
        self.at += word.len();
        Ok(value)
    }

    fn check_depth(&self, depth: usize) -> Result<(), JsonParseError> {
        if depth <= MAX_DEPTH {
            return Ok(());
        }
        let message = "The JSON document exceeds the maximum depth.";
        Err(JsonParseError { message, position: self.at, too_deep: true, name_too_long: false })
    }

    fn array<const BUILD: bool>(&mut self, depth: usize) -> Result<JsonValue, JsonParseError> {
        let mut elements = Vec::new();
        self.elements(depth, |parser, _| {
            let element = parser.value::<BUILD>(depth)?;
            if BUILD {
                elements.push(element);
            }
            Ok(())
        })?;
        Ok(JsonValue::Array(elements))
    }

    /// Passes the place of each element to `element`, which reads it.
    fn elements(
        &mut self,
        depth: usize,
        mut element: impl FnMut(&mut Self, u32) -> Result<(), JsonParseError>,
    ) -> Result<(), JsonParseError> {
        self.check_depth(depth)?;
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        for place in 0.. {
            element(self, place)?;
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.fail("Missing a comma or ']' after an array element."),
            }
            self.skip_blanks();
        }
        self.at += 1;
        Ok(())
    }

    fn object<const BUILD: bool>(&mut self, depth: usize) -> Result<JsonValue, JsonParseError> {
        let mut members = Vec::new();
        self.members(depth, |parser, name| {
            let member = parser.value::<BUILD>(depth)?;
            if BUILD {
                members.push((name.into_owned(), member));
            }
            Ok(())
        })?;
        Ok(if BUILD {
            JsonValue::Object(JsonObject::from_members(members))
        } else {
            JsonValue::Null
        })
    }

    /// Passes the name of each member to `member`, which reads its value.
    fn members(
        &mut self,
        depth: usize,
        mut member: impl FnMut(&mut Self, Cow<'a, [u8]>) -> Result<(), JsonParseError>,
    ) -> Result<(), JsonParseError> {
        self.check_depth(depth)?;
        self.at += 1;
        self.skip_blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("Missing a name for object member.");
            }
            let name_at = self.at;
            let name = self.string::<true>()?;
            if name.len() > NAME_LIMIT {
                let message = "The JSON object contains a key name that is too long.";
                let position = name_at;
                return Err(JsonParseError {
                    message,
                    position,
                    too_deep: false,
                    name_too_long: true,
                });
            }
            self.skip_blanks();
            if self.peek() != Some(b':') {
                return self.fail("Missing a colon after a name of object member.");
            }
            self.at += 1;
            self.skip_blanks();
            member(self, name)?;
            self.skip_blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.fail("Missing a comma or '}' after an object member."),
            }
            self.skip_blanks();
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the next value and builds the value at a path of names and positions in it. A value that is not an array counts as its own only element.
    fn find(
        &mut self,
        depth: usize,
        legs: &[PathLeg],
    ) -> Result<Option<JsonValue>, JsonParseError> {
        let Some((leg, rest)) = legs.split_first() else {
            return self.value::<true>(depth).map(Some);
        };
        let mut found = None;
        match (leg, self.peek()) {
            (PathLeg::Member(wanted), Some(b'{')) => {
                self.members(depth + 1, |parser, name| {
                    if *name == **wanted {
                        // Of members with the same name the last counts.
                        found = parser.find(depth + 1, rest)?;
                    } else {
                        parser.value::<false>(depth + 1)?;
                    }
                    Ok(())
                })?;
            }
            (PathLeg::Cell(wanted), Some(b'[')) => {
                self.elements(depth + 1, |parser, place| {
                    if place == wanted.index {
                        found = parser.find(depth + 1, rest)?;
                    } else {
                        parser.value::<false>(depth + 1)?;
                    }
                    Ok(())
                })?;
            }
            (PathLeg::Cell(wanted), _) if wanted.index == 0 => return self.find(depth, rest),
            _ => _ = self.value::<false>(depth)?,
        }
        Ok(found)
    }

    /// The text of a string, without escapes; empty unless `BUILD`.
    fn string<const BUILD: bool>(&mut self) -> Result<Cow<'a, [u8]>, JsonParseError> {
        self.at += 1;
        let mut out = Cow::Borrowed(&[] as &[u8]);
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .iter()
                .position(|&c| c == b'"' || c == b'\\' || c < 0x20)
                .unwrap_or(rest.len());
            if let Err(error) = std::str::from_utf8(&rest[..plain]) {
                return self.fail_at("Invalid encoding in string.", self.at + error.valid_up_to());
            }
            match &mut out {
                _ if !BUILD => {}
                Cow::Borrowed(text) if text.is_empty() => *text = &rest[..plain],
                out => out.to_mut().extend_from_slice(&rest[..plain]),
            }
            self.at += plain;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') if BUILD => self.escape(out.to_mut())?,
                Some(b'\\') => self.escape(&mut Vec::new())?,
                Some(_) => return self.fail("Invalid encoding in string."),
                None => return self.fail("Missing a closing quotation mark in string."),
            }
        }
        self.at += 1;
        Ok(out)
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), JsonParseError> {
        let start = self.at;
        self.at += 1;
        let plain = match self.peek() {
            Some(b'"') => b'"',
            Some(b'\\') => b'\\',
            Some(b'/') => b'/',
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escape(start, out),
            _ => return self.fail_at("Invalid escape character in string.", start),
        };
        self.at += 1;
        out.push(plain);
        Ok(())
    }

    fn unicode_escape(&mut self, start: usize, out: &mut Vec<u8>) -> Result<(), JsonParseError> {
        self.at += 1;
        let mut point = self.hex4(start)?;
        if (0xd800..0xdc00).contains(&point) {
            if self.text.get(self.at..self.at + 2) != Some(b"\\u") {
                return self.fail_at("The surrogate pair in string is invalid.", start);
            }
            self.at += 2;
            let low = self.hex4(start)?;
            if !(0xdc00..0xe000).contains(&low) {
                return self.fail_at("The surrogate pair in string is invalid.", start);
            }
            point = 0x10000 + ((point & 0x3ff) << 10 | low & 0x3ff);
        }
        let Some(character) = char::from_u32(point) else {
            return self.fail_at("The surrogate pair in string is invalid.", start);
        };
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(())
    }

    fn hex4(&mut self, start: usize) -> Result<u32, JsonParseError> {
        let mut number = 0;
        for _ in 0..4 {
            match self.peek().and_then(|c| char::from(c).to_digit(16)) {
                Some(digit) => number = number << 4 | digit,
                None => {
                    let message = "Incorrect hex digit after \\u escape in string.";
                    return self.fail_at(message, start);
                }
            }
            self.at += 1;
        }
        Ok(number)
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    fn number<const BUILD: bool>(&mut self) -> Result<JsonValue, JsonParseError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else if self.digits() == 0 {
            return self.fail("Invalid value.");
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            if self.digits() == 0 {
                return self.fail("Miss fraction part in number.");
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.fail("Miss exponent in number.");
            }
        }
        if !BUILD && whole && self.at - start <= DIGITS_SAFE {
            return Ok(JsonValue::Null);
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or("0");
        if whole {
            // Beyond 32 bits a number without a sign is unsigned, as in the reference.
            match text.parse::<u64>() {
                Ok(number) if number > u64::from(u32::MAX) => return Ok(JsonValue::UInt(number)),
                _ => {}
            }
            if let Ok(number) = text.parse::<i64>() {
                return Ok(JsonValue::Int(number));
            }
        }
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(JsonValue::Double(number)),
            _ => self.fail_at("Number too big to be stored in double.", start),
        }
    }
}
