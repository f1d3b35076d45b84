//! Makes index keys from records, and spans of keys from ranges.

use std::sync::Arc;

use engine_api::{EngineError, EngineResult, IndexDef, KeyBound, KeyRange, TableDef};
use errors::{Error, ErrorCode};
use types::key::encode_part;
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
        let types: Vec<DataType> = def.columns.iter().map(|column| column.ty.clone()).collect();
        Arc::new(RecordLayout::new(&types))
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
            })
        });
        let parts = parts.collect::<EngineResult<Vec<_>>>()?;
        Ok(IndexKeys { layout: layout.clone(), parts })
    }

    /// Appends the key of `record`; returns whether a part is NULL.
    pub fn append(&self, record: &[u8], out: &mut Vec<u8>) -> EngineResult<bool> {
        let start = out.len();
        let mut has_null = false;
        for part in &self.parts {
            let stored = self.layout.decode_column(record, part.column).map_err(|_| damaged())?;
            let value = stored.as_ref().unwrap_or(&part.missing);
            has_null |= value.is_null();
            encode_part(value, &part.ty, part.prefix_length, part.descending, out);
        }
        if out.len() - start > KEY_BYTES_MAX {
            return Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&KEY_BYTES_MAX]).into());
        }
        Ok(has_null)
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

    /// Where each part of the key of `record` ends; the key is in `out`.
    pub fn part_ends(
        &self,
        record: &[u8],
        out: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> EngineResult<()> {
        out.clear();
        ends.clear();
        for part in &self.parts {
            let stored = self.layout.decode_column(record, part.column).map_err(|_| damaged())?;
            let value = stored.as_ref().unwrap_or(&part.missing);
            encode_part(value, &part.ty, part.prefix_length, part.descending, out);
            ends.push(out.len());
        }
        Ok(())
    }

    /// Number of parts.
    pub fn part_count(&self) -> usize {
        self.parts.len()
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
