//! Makes index keys from records, and spans of keys from ranges.

use std::sync::Arc;

use engine_api::{EngineError, EngineResult, IndexDef, KeyBound, KeyRange, TableDef};
use errors::{Error, ErrorCode};
use types::elements::entry_values;
use types::key::{encode_part, fixed_width};
use types::record::{Cell, RecordLayout};
use types::{DataType, Value};

/// Longest key of an index's columns, as in the reference.
const KEY_BYTES_MAX: usize = 3072;

struct Part {
    column: usize,
    ty: DataType,
    prefix_length: Option<u32>,
    descending: bool,
    /// For records older than the column.
    missing: Value,
    /// The type of the elements of the array in the column: each has its own key.
    elements: Option<DataType>,
}

impl Part {
    fn encode(&self, value: &Value, out: &mut Vec<u8>) {
        encode_part(value, &self.ty, self.prefix_length, self.descending, out);
    }
}

/// The recipe for one index.
pub(crate) struct IndexKeys {
    layout: Arc<RecordLayout>,
    parts: Vec<Part>,
}

fn damaged() -> EngineError {
    EngineError::Other(Error::internal("a stored record does not fit its table"))
}

impl IndexKeys {
    /// Where the columns of a table's records are; its indexes share it.
    pub fn layout(def: &TableDef) -> Arc<RecordLayout> {
        Arc::new(def.layout())
    }

    pub fn new(
        def: &TableDef,
        index: &IndexDef,
        layout: &Arc<RecordLayout>,
    ) -> EngineResult<IndexKeys> {
        let parts = index.parts.iter().map(|part| {
            let column = def.columns.get(part.column).ok_or_else(damaged)?;
            Ok(Part {
                column: part.column,
                ty: column.ty.clone(),
                prefix_length: part.prefix_length,
                descending: part.descending,
                missing: column.instant_default.clone().unwrap_or(Value::Null),
                elements: part.elements.clone(),
            })
        });
        let parts = parts.collect::<EngineResult<Vec<_>>>()?;
        Ok(IndexKeys { layout: layout.clone(), parts })
    }

    /// Longest key: of columns whose keys all have one length, the sum of these. Columns of such types keep their keys as long as the tree lives.
    pub fn bytes_max(&self) -> usize {
        let widths = self.parts.iter().map(|part| fixed_width(&part.ty));
        widths.sum::<Option<usize>>().unwrap_or(KEY_BYTES_MAX)
    }

    /// Appends the key of `record`, of an index with one key for each row; returns whether a part is NULL.
    pub fn append(&self, record: &[u8], out: &mut Vec<u8>) -> EngineResult<bool> {
        let start = out.len();
        let has_null = self.append_parts(&self.parts, record, out)?;
        check_bytes(out.len() - start)?;
        Ok(has_null)
    }

    fn append_parts(&self, parts: &[Part], record: &[u8], out: &mut Vec<u8>) -> EngineResult<bool> {
        let mut has_null = false;
        for part in parts {
            let stored = self.layout.decode_column(record, part.column).map_err(|_| damaged())?;
            let value = stored.as_ref().unwrap_or(&part.missing);
            has_null |= value.is_null();
            part.encode(value, out);
        }
        Ok(has_null)
    }

    /// Shows each key of `record` and whether a part is NULL, in the order of the keys.
    pub fn for_each(
        &self,
        record: &[u8],
        mut visit: impl FnMut(&[u8], bool) -> EngineResult<()>,
    ) -> EngineResult<()> {
        let mut key = Vec::with_capacity(24);
        let at = self.parts.iter().position(|part| part.elements.is_some());
        let Some((at, part)) = at.map(|at| (at, &self.parts[at])) else {
            let has_null = self.append(record, &mut key)?;
            return visit(&key, has_null);
        };
        let Some(ty) = &part.elements else { return Err(damaged()) };
        let mut has_null = self.append_parts(&self.parts[..at], record, &mut key)?;
        let before = key.len();
        let mut after = Vec::new();
        has_null |= self.append_parts(&self.parts[at + 1..], record, &mut after)?;
        for value in self.elements_of(record, part)? {
            key.truncate(before);
            encode_part(&value, ty, None, part.descending, &mut key);
            key.extend_from_slice(&after);
            check_bytes(key.len())?;
            visit(&key, has_null | value.is_null())?;
        }
        Ok(())
    }

    /// Whether `key` is a key of `record`; `scratch` is memory.
    pub fn has(&self, record: &[u8], key: &[u8], scratch: &mut Vec<u8>) -> EngineResult<bool> {
        if self.is_multi_valued() {
            let mut found = false;
            self.for_each(record, |own, _| {
                found |= own == key;
                Ok(())
            })?;
            return Ok(found);
        }
        scratch.clear();
        self.append(record, scratch)?;
        Ok(scratch == key)
    }

    /// Whether a record may have several keys, or none.
    pub fn is_multi_valued(&self) -> bool {
        self.parts.iter().any(|part| part.elements.is_some())
    }

    /// Whether two records have the same bytes in all columns of the key, so that the key is the same too. False says nothing.
    pub fn is_equal_in(&self, one: &[u8], other: &[u8]) -> bool {
        let cell = |record, column| match self.layout.cell(record, column) {
            Ok(cell @ (Cell::Null | Cell::Bytes(_))) => Some(cell),
            Ok(Cell::Missing) | Err(_) => None,
        };
        self.parts.iter().all(|part| {
            cell(one, part.column).is_some_and(|old| cell(other, part.column) == Some(old))
        })
    }

    /// Shows the keys of `record`, and where each part of them ends.
    pub fn each_with_ends(
        &self,
        record: &[u8],
        mut visit: impl FnMut(&[u8], &[usize]) -> EngineResult<()>,
    ) -> EngineResult<()> {
        let (mut key, mut ends) = (Vec::new(), Vec::with_capacity(self.parts.len()));
        let multiple = self.parts.iter().find(|part| part.elements.is_some());
        let values = match multiple {
            None => vec![None],
            Some(part) => self.elements_of(record, part)?.into_iter().map(Some).collect(),
        };
        for element in values {
            key.clear();
            ends.clear();
            for part in &self.parts {
                match (&part.elements, &element) {
                    (Some(ty), Some(value)) => {
                        encode_part(value, ty, None, part.descending, &mut key);
                    }
                    _ => _ = self.append_parts(std::slice::from_ref(part), record, &mut key)?,
                }
                ends.push(key.len());
            }
            visit(&key, &ends)?;
        }
        Ok(())
    }

    /// The values of the elements of a record's array.
    fn elements_of(&self, record: &[u8], part: &Part) -> EngineResult<Vec<Value>> {
        let stored = self.layout.decode_column(record, part.column).map_err(|_| damaged())?;
        let ty = part.elements.as_ref().unwrap_or(&part.ty);
        Ok(entry_values(stored.as_ref().unwrap_or(&part.missing), ty))
    }

    /// Number of parts.
    pub fn part_count(&self) -> usize {
        self.parts.len()
    }
}

fn check_bytes(bytes: usize) -> EngineResult<()> {
    match bytes <= KEY_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&KEY_BYTES_MAX]).into()),
    }
}

/// The smallest byte string greater than every string that starts with `prefix`; `None` if no such string exists.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Keys from `start` inclusive to `end` exclusive; no `end` means no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: Vec<u8>,
    pub end: Option<Vec<u8>>,
}

impl Span {
    /// `None` when the range can hold no key.
    pub fn of(range: &KeyRange) -> Option<Span> {
        let start = match &range.lower {
            KeyBound::Unbounded => Vec::new(),
            KeyBound::Included(prefix) => prefix.clone(),
            KeyBound::Excluded(prefix) => successor(prefix)?,
        };
        let end = match &range.upper {
            KeyBound::Unbounded => None,
            KeyBound::Included(prefix) => successor(prefix),
            KeyBound::Excluded(prefix) => Some(prefix.clone()),
        };
        let is_empty = end.as_ref().is_some_and(|end| *end <= start);
        (!is_empty).then_some(Span { start, end })
    }

    pub fn ends_before(&self, key: &[u8]) -> bool {
        self.end.as_deref().is_some_and(|end| end <= key)
    }
}
