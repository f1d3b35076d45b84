//! JSON paths: `$.name[0]**.*`.

use super::binary::JsonRef;
use super::{JsonType, MAX_DEPTH, quote};

/// A place in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayIndex {
    /// Counted back from the last element.
    pub from_end: bool,
    /// From 0.
    pub index: u32,
}

impl ArrayIndex {
    /// Position in an array of `length`; `None` before its start. May be past its end.
    pub fn resolve(self, length: usize) -> Option<usize> {
        if self.from_end {
            length.checked_sub(1)?.checked_sub(self.index as usize)
        } else {
            Some(self.index as usize)
        }
    }
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathLeg {
    /// `.name`.
    Member(Box<[u8]>),
    /// `.*`.
    MemberWildcard,
    /// `[n]`, `[last]`, `[last-n]`.
    Cell(ArrayIndex),
    /// `[n to m]`.
    CellRange(ArrayIndex, ArrayIndex),
    /// `[*]`.
    CellWildcard,
    /// `**`.
    Ellipsis,
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPath {
    legs: Vec<PathLeg>,
}

/// Most legs of a path.
const MAX_LEGS: usize = MAX_DEPTH;

impl JsonPath {
    /// Parses a path; the error is the position (from 1) around which it is wrong, as error 3143 shows it.
    pub fn parse(text: &[u8]) -> Result<JsonPath, usize> {
        let mut parser = Parser { text, at: 0 };
        parser.skip_blanks();
        if parser.peek() != Some(b'$') {
            return Err(parser.at + 1);
        }
        parser.at += 1;
        let mut legs = Vec::new();
        loop {
            parser.skip_blanks();
            if parser.at >= text.len() {
                break;
            }
            if legs.len() >= MAX_LEGS {
                return Err(parser.at + 1);
            }
            legs.push(parser.leg().map_err(|()| parser.at.min(text.len()))?);
        }
        if legs.last() == Some(&PathLeg::Ellipsis) {
            return Err(text.len());
        }
        Ok(JsonPath { legs })
    }

    /// A path of these legs.
    pub fn from_legs(legs: Vec<PathLeg>) -> JsonPath {
        JsonPath { legs }
    }

    /// Its steps.
    pub fn legs(&self) -> &[PathLeg] {
        &self.legs
    }

    /// Whether it may lead to more than one value.
    pub fn has_wildcard(&self) -> bool {
        self.legs.iter().any(|leg| !matches!(leg, PathLeg::Member(_) | PathLeg::Cell(_)))
    }

    /// Appends the values at the path, in document order.
    pub fn select<'a>(&self, root: JsonRef<'a>, out: &mut Vec<JsonRef<'a>>) {
        let start = out.len();
        walk(root, &self.legs, 0, out);
        if self.legs.contains(&PathLeg::Ellipsis) {
            let mut seen = std::collections::HashSet::new();
            let mut found = out.split_off(start);
            found.retain(|value| seen.insert(value.place()));
            out.append(&mut found);
        }
    }

    /// The first value at the path.
    pub fn first<'a>(&self, root: JsonRef<'a>) -> Option<JsonRef<'a>> {
        if self.has_wildcard() {
            let mut found = Vec::new();
            self.select(root, &mut found);
            return found.first().copied();
        }
        let mut value = root;
        for leg in &self.legs {
            value = match leg {
                PathLeg::Member(name) => value.get(name)?,
                PathLeg::Cell(index) => cell(value, *index)?,
                _ => return None,
            };
        }
        Some(value)
    }

    /// Appends the path as text.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        out.push(b'$');
        for leg in &self.legs {
            leg.write_text(out);
        }
    }
}

impl PathLeg {
    /// Appends the step as text.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        let index = |index: &ArrayIndex, out: &mut Vec<u8>| {
            let text = match (index.from_end, index.index) {
                (false, n) => n.to_string(),
                (true, 0) => "last".to_owned(),
                (true, n) => format!("last-{n}"),
            };
            out.extend_from_slice(text.as_bytes());
        };
        match self {
            PathLeg::Member(name) => {
                out.push(b'.');
                if is_identifier(name) { out.extend_from_slice(name) } else { quote(name, out) }
            }
            PathLeg::MemberWildcard => out.extend_from_slice(b".*"),
            PathLeg::Cell(at) => {
                out.push(b'[');
                index(at, out);
                out.push(b']');
            }
            PathLeg::CellRange(from, to) => {
                out.push(b'[');
                index(from, out);
                out.extend_from_slice(b" to ");
                index(to, out);
                out.push(b']');
            }
            PathLeg::CellWildcard => out.extend_from_slice(b"[*]"),
            PathLeg::Ellipsis => out.extend_from_slice(b"**"),
        }
    }
}

/// A scalar or object counts as an array whose only element is itself.
fn cell(value: JsonRef<'_>, index: ArrayIndex) -> Option<JsonRef<'_>> {
    if value.kind() == JsonType::Array {
        value.at(index.resolve(value.len())?)
    } else if index.resolve(1) == Some(0) {
        Some(value)
    } else {
        None
    }
}

fn walk<'a>(value: JsonRef<'a>, legs: &[PathLeg], depth: usize, out: &mut Vec<JsonRef<'a>>) {
    let Some((leg, rest)) = legs.split_first() else {
        out.push(value);
        return;
    };
    match leg {
        PathLeg::Member(name) => {
            if let Some(member) = value.get(name) {
                walk(member, rest, depth, out);
            }
        }
        PathLeg::MemberWildcard => {
            value.members().for_each(|(_, member)| walk(member, rest, depth, out));
        }
        PathLeg::Cell(index) => {
            if let Some(element) = cell(value, *index) {
                walk(element, rest, depth, out);
            }
        }
        PathLeg::CellRange(from, to) => {
            range(value, *from, *to).into_iter().for_each(|element| walk(element, rest, depth, out))
        }
        PathLeg::CellWildcard => {
            value.elements().for_each(|element| walk(element, rest, depth, out));
        }
        PathLeg::Ellipsis => {
            walk(value, rest, depth, out);
            // Only corrupt data nests deeper.
            if depth > MAX_DEPTH {
                return;
            }
            value.elements().for_each(|element| walk(element, legs, depth + 1, out));
            value.members().for_each(|(_, member)| walk(member, legs, depth + 1, out));
        }
    }
}

fn range(value: JsonRef<'_>, from: ArrayIndex, to: ArrayIndex) -> Vec<JsonRef<'_>> {
    let is_array = value.kind() == JsonType::Array;
    let length = if is_array { value.len() } else { 1 };
    let Some(last) = to.resolve(length) else { return Vec::new() };
    let first = from.resolve(length).unwrap_or(0);
    if !is_array {
        return if first == 0 { vec![value] } else { Vec::new() };
    }
    (first..=last.min(length.saturating_sub(1))).filter_map(|at| value.at(at)).collect()
}

/// Whether a name needs no quotes in a path.
fn is_identifier(name: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(name) else { return false };
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
        && characters.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn leg(&mut self) -> Result<PathLeg, ()> {
        match self.peek() {
            Some(b'.') => {
                self.at += 1;
                self.member()
            }
            Some(b'[') => {
                self.at += 1;
                self.cell()
            }
            Some(b'*') => {
                self.at += 1;
                if self.peek() != Some(b'*') {
                    return Err(());
                }
                self.at += 1;
                if self.peek() == Some(b'*') { Err(()) } else { Ok(PathLeg::Ellipsis) }
            }
            _ => {
                self.at += 1;
                Err(())
            }
        }
    }

    fn member(&mut self) -> Result<PathLeg, ()> {
        self.skip_blanks();
        match self.peek() {
            Some(b'*') => {
                self.at += 1;
                Ok(PathLeg::MemberWildcard)
            }
            Some(b'"') => {
                let start = self.at;
                self.at += 1;
                while let Some(c) = self.peek() {
                    self.at += 1;
                    match c {
                        b'\\' => self.at += 1,
                        b'"' => break,
                        _ => {}
                    }
                }
                let quoted = self.text.get(start..self.at).ok_or(())?;
                match super::parse(quoted) {
                    Ok(super::JsonValue::String(name)) => Ok(PathLeg::Member(name.into())),
                    _ => Err(()),
                }
            }
            _ => {
                let start = self.at;
                while self.peek().is_some_and(|c| {
                    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'$') || c >= 0x80
                }) {
                    self.at += 1;
                }
                let name = &self.text[start..self.at];
                if is_identifier(name) { Ok(PathLeg::Member(name.into())) } else { Err(()) }
            }
        }
    }

    fn number(&mut self) -> Result<u32, ()> {
        let start = self.at;
        let mut number = 0u32;
        while let Some(c @ b'0'..=b'9') = self.peek() {
            number =
                number.checked_mul(10).and_then(|n| n.checked_add(u32::from(c - b'0'))).ok_or(())?;
            self.at += 1;
        }
        if self.at == start { Err(()) } else { Ok(number) }
    }

    fn index(&mut self) -> Result<ArrayIndex, ()> {
        self.skip_blanks();
        if !self.text[self.at.min(self.text.len())..].starts_with(b"last") {
            return Ok(ArrayIndex { from_end: false, index: self.number()? });
        }
        self.at += 4;
        self.skip_blanks();
        if self.peek() != Some(b'-') {
            return Ok(ArrayIndex { from_end: true, index: 0 });
        }
        self.at += 1;
        self.skip_blanks();
        Ok(ArrayIndex { from_end: true, index: self.number()? })
    }

    fn close(&mut self, leg: PathLeg) -> Result<PathLeg, ()> {
        self.skip_blanks();
        if self.peek() != Some(b']') {
            return Err(());
        }
        self.at += 1;
        Ok(leg)
    }

    fn cell(&mut self) -> Result<PathLeg, ()> {
        self.skip_blanks();
        if self.peek() == Some(b'*') {
            self.at += 1;
            return self.close(PathLeg::CellWildcard);
        }
        let first = self.index()?;
        let blank = matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r'))
            || self.text[..self.at].last() == Some(&b' ');
        self.skip_blanks();
        if blank && self.text[self.at..].starts_with(b"to ") {
            self.at += 3;
            let second = self.index()?;
            let wrong = match (first.from_end, second.from_end) {
                (false, false) => first.index > second.index,
                (true, true) => first.index < second.index,
                _ => false,
            };
            if wrong {
                return Err(());
            }
            return self.close(PathLeg::CellRange(first, second));
        }
        self.close(PathLeg::Cell(first))
    }
}
