//! Changes of JSON documents, as partial updates have them: an operation, a path and a value each, one after the other.

use types::json::{JsonPath, JsonType, PathLeg};
use types::{JsonRef, JsonValue, SqlBytes};

use crate::json;
use crate::read::{Malformed, Reader, Result, put_lenenc};

/// What is done at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonOperation {
    /// The value that is there becomes another.
    Replace,
    /// A new member, or a new cell before the one that has its number.
    Insert,
    /// The value that is there goes.
    Remove,
}

impl JsonOperation {
    /// As documents name it.
    pub fn name(self) -> &'static str {
        match self {
            JsonOperation::Replace => "replace",
            JsonOperation::Insert => "insert",
            JsonOperation::Remove => "remove",
        }
    }
}

/// One change of a document.
#[derive(Clone, Debug)]
pub struct JsonChange {
    /// What is done.
    pub operation: JsonOperation,
    /// Where.
    pub path: JsonPath,
    /// The new value; `null` when one goes.
    pub value: JsonValue,
}

/// Changes of a document that the row before does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonChanges {
    /// Position of its column.
    pub column: usize,
    bytes: Box<[u8]>,
}

impl JsonChanges {
    pub(crate) fn new(column: usize, bytes: &[u8]) -> JsonChanges {
        JsonChanges { column, bytes: bytes.into() }
    }

    /// The changes in their order.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn list(&self) -> Result<Vec<JsonChange>> {
        list(&self.bytes)
    }

    /// The document after the changes.
    ///
    /// # Errors
    /// The bytes make no sense, or change a part that is not there.
    pub fn apply(&self, document: &[u8]) -> Result<SqlBytes> {
        apply(document, &self.bytes)
    }
}

fn list(changes: &[u8]) -> Result<Vec<JsonChange>> {
    let mut reader = Reader::new(changes);
    let mut found = Vec::new();
    while !reader.is_empty() {
        let operation = match reader.u8()? {
            0 => JsonOperation::Replace,
            1 => JsonOperation::Insert,
            2 => JsonOperation::Remove,
            _ => return Err(Malformed("JSON change")),
        };
        let path = JsonPath::parse(reader.lenenc_bytes()?)
            .map_err(|_| Malformed("path of a JSON change"))?;
        let value = match operation {
            JsonOperation::Remove => JsonValue::Null,
            JsonOperation::Replace | JsonOperation::Insert => {
                json::read_document(reader.lenenc_bytes()?)?
            }
        };
        found.push(JsonChange { operation, path, value });
    }
    Ok(found)
}

/// A document after changes.
pub(crate) fn apply(document: &[u8], changes: &[u8]) -> Result<SqlBytes> {
    let mut document = JsonValue::from_ref(JsonRef::new(document));
    for JsonChange { operation, path, value } in list(changes)? {
        match operation {
            JsonOperation::Replace => {
                *document.get_path_mut(path.legs()).ok_or(NO_PLACE)? = value;
            }
            JsonOperation::Insert => insert(&mut document, &path, value)?,
            JsonOperation::Remove => {
                if !document.remove_path(&path) {
                    return Err(NO_PLACE);
                }
            }
        }
    }
    Ok(document.to_binary())
}

const NO_PLACE: Malformed = Malformed("JSON change of a part that is not there");

fn insert(document: &mut JsonValue, path: &JsonPath, value: JsonValue) -> Result<()> {
    let (last, parents) = path.legs().split_last().ok_or(NO_PLACE)?;
    let parent = document.get_path_mut(parents).ok_or(NO_PLACE)?;
    if let (PathLeg::Member(name), JsonValue::Object(object)) = (last, &mut *parent) {
        object.insert(name.to_vec(), value);
        return Ok(());
    }
    let (PathLeg::Cell(index), JsonValue::Array(cells)) = (last, parent) else {
        return Err(NO_PLACE);
    };
    if index.from_end {
        return Err(NO_PLACE);
    }
    let at = (index.index as usize).min(cells.len());
    cells.insert(at, value);
    Ok(())
}

/// Appends the changes that lead from one document to another, in no more than so many bytes. False: they would be longer, and there is
/// no use for what was appended.
pub(crate) fn put(old: &[u8], new: &[u8], bytes_max: usize, out: &mut Vec<u8>) -> bool {
    if old == new {
        return true;
    }
    let end = out.len() + bytes_max;
    let mut writer = Writer { path: b"$".to_vec(), value: Vec::new(), end, out };
    writer.change(JsonRef::new(old), JsonRef::new(new)).is_ok()
}

struct TooLong;

type Put = std::result::Result<(), TooLong>;

struct Writer<'o> {
    /// Where the documents are compared.
    path: Vec<u8>,
    value: Vec<u8>,
    end: usize,
    out: &'o mut Vec<u8>,
}

impl Writer<'_> {
    fn change(&mut self, old: JsonRef<'_>, new: JsonRef<'_>) -> Put {
        let both = |kind| old.kind() == kind && new.kind() == kind;
        if both(JsonType::Object) {
            self.members(old, new)
        } else if both(JsonType::Array) {
            self.cells(old, new)
        } else if is_same_scalar(old, new) {
            Ok(())
        } else {
            self.put(JsonOperation::Replace, Some(new))
        }
    }

    /// Both are in the order of their names' lengths, and of their bytes.
    fn members(&mut self, old: JsonRef<'_>, new: JsonRef<'_>) -> Put {
        let (mut olds, mut news) = (old.members().peekable(), new.members().peekable());
        loop {
            let order = match (olds.peek(), news.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some((old, _)), Some((new, _))) if old == new => std::cmp::Ordering::Equal,
                (Some((old, _)), Some((new, _))) => (old.len(), *old).cmp(&(new.len(), *new)),
            };
            let old = if order.is_le() { olds.next() } else { None };
            let new = if order.is_ge() { news.next() } else { None };
            let Some((name, _)) = old.or(new) else { return Ok(()) };
            let (old, new) = (old.map(|(_, value)| value), new.map(|(_, value)| value));
            // Most members are scalars that stay.
            let stays = old.zip(new).is_some_and(|(old, new)| is_same_scalar(old, new));
            if !stays {
                self.within(&PathLeg::Member(name.into()), |writer| writer.place(old, new))?;
            }
        }
    }

    fn cells(&mut self, old: JsonRef<'_>, new: JsonRef<'_>) -> Put {
        let (olds, news) = (old.len(), new.len());
        let common = olds.min(news);
        let (mut first, mut last) = (0, 0);
        // Cells came or went somewhere: what is before and after them stays.
        if olds != news {
            let is_same_at = |at: usize, other: usize| {
                let pair = old.at(at).zip(new.at(other));
                pair.is_some_and(|(old, new)| is_same(old, new))
            };
            while first < common && is_same_at(first, first) {
                first += 1;
            }
            while last < common - first && is_same_at(olds - 1 - last, news - 1 - last) {
                last += 1;
            }
        }
        for at in first..common - last {
            let (old, new) = (old.at(at), new.at(at));
            let stays = old.zip(new).is_some_and(|(old, new)| is_same_scalar(old, new));
            if !stays {
                self.within(&cell(at), |writer| writer.place(old, new))?;
            }
        }
        // Each removal moves the next one to its place.
        for at in common..olds {
            let gone = old.at(at);
            self.within(&cell(common - last), |writer| writer.place(gone, None))?;
        }
        for at in common - last..news - last {
            let come = new.at(at);
            self.within(&cell(at), |writer| writer.place(None, come))?;
        }
        Ok(())
    }

    fn place(&mut self, old: Option<JsonRef<'_>>, new: Option<JsonRef<'_>>) -> Put {
        match (old, new) {
            (Some(old), Some(new)) => self.change(old, new),
            (None, Some(new)) => self.put(JsonOperation::Insert, Some(new)),
            (Some(_), None) => self.put(JsonOperation::Remove, None),
            (None, None) => Ok(()),
        }
    }

    fn within(&mut self, leg: &PathLeg, then: impl FnOnce(&mut Self) -> Put) -> Put {
        let length = self.path.len();
        leg.write_text(&mut self.path);
        let put = then(self);
        self.path.truncate(length);
        put
    }

    fn put(&mut self, operation: JsonOperation, value: Option<JsonRef<'_>>) -> Put {
        self.out.push(match operation {
            JsonOperation::Replace => 0,
            JsonOperation::Insert => 1,
            JsonOperation::Remove => 2,
        });
        put_lenenc(self.path.len() as u64, self.out);
        self.out.extend_from_slice(&self.path);
        if let Some(value) = value {
            self.value.clear();
            json::put(value, &mut self.value);
            put_lenenc(self.value.len() as u64, self.out);
            self.out.extend_from_slice(&self.value);
        }
        if self.out.len() > self.end { Err(TooLong) } else { Ok(()) }
    }
}

fn cell(at: usize) -> PathLeg {
    PathLeg::Cell(types::json::ArrayIndex { index: at as u32, from_end: false })
}

/// Whether they are scalars with the same type and value.
fn is_same_scalar(old: JsonRef<'_>, new: JsonRef<'_>) -> bool {
    let kind = old.kind();
    if kind != new.kind() {
        return false;
    }
    match kind {
        JsonType::Array | JsonType::Object => false,
        JsonType::Null => true,
        JsonType::Bool => old.as_bool() == new.as_bool(),
        JsonType::Int | JsonType::UInt => {
            (old.as_i64(), old.as_u64()) == (new.as_i64(), new.as_u64())
        }
        JsonType::Double => old.as_f64().map(f64::to_bits) == new.as_f64().map(f64::to_bits),
        JsonType::String => old.as_bytes() == new.as_bytes(),
        JsonType::Decimal
        | JsonType::Date
        | JsonType::DateTime
        | JsonType::Time
        | JsonType::Opaque(_) => old.to_document() == new.to_document(),
    }
}

fn is_same(old: JsonRef<'_>, new: JsonRef<'_>) -> bool {
    if old.kind() != new.kind() || old.len() != new.len() {
        return false;
    }
    if !matches!(old.kind(), JsonType::Array | JsonType::Object) {
        return is_same_scalar(old, new);
    }
    let cells = old.elements().zip(new.elements()).all(|(old, new)| is_same(old, new));
    cells
        && old
            .members()
            .zip(new.members())
            .all(|((name, old), (other, new))| name == other && is_same(old, new))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> SqlBytes {
        types::json::parse(text.as_bytes()).unwrap().to_binary()
    }

    /// The changes as text.
    fn changes(old: &str, new: &str) -> Option<Vec<String>> {
        let (old, new) = (document(old), document(new));
        let mut out = Vec::new();
        if !put(&old, &new, 1000, &mut out) {
            return None;
        }
        assert_eq!(apply(&old, &out).unwrap(), new, "the changes lead to the document");
        let show = |change: JsonChange| {
            let mut path = Vec::new();
            change.path.write_text(&mut path);
            let value = String::from_utf8(change.value.to_text()).unwrap();
            format!("{:?} {} {value}", change.operation, String::from_utf8(path).unwrap())
        };
        Some(list(&out).unwrap().into_iter().map(show).collect())
    }

    #[test]
    fn changes_are_small() {
        let cases: [(&str, &str, &[&str]); 12] = [
            (r#"{"a": 1}"#, r#"{"a": 1}"#, &[]),
            (r#"{"a": 1}"#, r#"{"a": 1.0}"#, &["Replace $.a 1.0"]),
            (r#"{"a": 1, "b": 2}"#, r#"{"b": 2}"#, &["Remove $.a null"]),
            (r#"{"b": 2}"#, r#"{"a b": "x", "b": 2}"#, &[r#"Insert $."a b" "x""#]),
            (r#"{"a": {"b": [1, 2]}}"#, r#"{"a": {"b": [1, 3]}}"#, &["Replace $.a.b[1] 3"]),
            ("[1, 2, 3, 4]", "[1, 4]", &["Remove $[1] null", "Remove $[1] null"]),
            ("[1, 4]", "[1, 2, 3, 4]", &["Insert $[1] 2", "Insert $[2] 3"]),
            ("[1]", "[1, 2]", &["Insert $[1] 2"]),
            ("[1, 1, 1]", "[1, 1]", &["Remove $[2] null"]),
            ("[1, 2, 3]", "[5, 3]", &["Replace $[0] 5", "Remove $[1] null"]),
            ("[1, {}]", "[1, [], null]", &["Replace $[1] []", "Insert $[2] null"]),
            (r#""x""#, "7", &["Replace $ 7"]),
        ];
        for (old, new, wanted) in cases {
            assert_eq!(changes(old, new).unwrap(), wanted, "{old} to {new}");
        }
    }

    #[test]
    fn long_changes_are_not_written() {
        let long = format!(r#"{{"a": "{}"}}"#, "x".repeat(2000));
        assert_eq!(changes(r#"{"a": 1}"#, &long), None);
    }

    #[test]
    fn any_documents_lead_to_one_another() {
        let mut seed = 7u32;
        let mut below = |end: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % end
        };
        fn text(below: &mut impl FnMut(u32) -> u32, depth: u32) -> String {
            let kind = if depth == 0 { below(3) } else { below(5) };
            let count = below(5);
            match kind {
                0 => below(3).to_string(),
                1 => "null".to_owned(),
                2 => format!("\"{}\"", "x".repeat(count as usize)),
                3 => {
                    let cells: Vec<_> = (0..count).map(|_| text(below, depth - 1)).collect();
                    format!("[{}]", cells.join(","))
                }
                _ => {
                    let members: Vec<_> = (0..count)
                        .map(|_| format!("\"k{}\": {}", below(6), text(below, depth - 1)))
                        .collect();
                    format!("{{{}}}", members.join(","))
                }
            }
        }
        for _ in 0..3000 {
            let (old, new) = (text(&mut below, 3), text(&mut below, 3));
            assert!(changes(&old, &new).is_some(), "{old} to {new}");
        }
    }
}
