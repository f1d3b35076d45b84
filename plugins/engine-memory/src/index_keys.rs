//! Makes an index's key bytes from records.

use engine_api::{EngineError, EngineResult, IndexDef, TableDef};
use errors::{Error, ErrorCode};
use types::elements::entry_values;
use types::key::{KEY_BYTES_MAX, encode_part};
use types::record::RecordLayout;
use types::{DataType, Value};

struct Part {
    column: usize,
    ty: DataType,
    prefix_length: Option<u32>,
    descending: bool,
    /// For records older than the column.
    missing: Option<Value>,
    /// The type of the elements of the array in the column: each has its own key.
    elements: Option<DataType>,
}

/// The recipe for one index.
pub(crate) struct IndexKeys {
    layout: RecordLayout,
    parts: Vec<Part>,
}

fn damaged() -> EngineError {
    EngineError::Other(Error::internal("a record of the memory engine does not fit its table"))
}

impl IndexKeys {
    /// The recipe for `index` of `def`.
    pub(crate) fn new(def: &TableDef, index: &IndexDef) -> EngineResult<IndexKeys> {
        let parts = index.parts.iter().map(|part| {
            let column = def.columns.get(part.column).ok_or_else(damaged)?;
            Ok(Part {
                column: part.column,
                ty: column.ty.clone(),
                prefix_length: part.prefix_length,
                descending: part.descending,
                missing: column.instant_default.clone(),
                elements: part.elements.clone(),
            })
        });
        Ok(IndexKeys { layout: def.layout(), parts: parts.collect::<EngineResult<Vec<_>>>()? })
    }

    fn part_value(&self, part: &Part, record: &[u8]) -> EngineResult<Value> {
        self.layout.value(record, part.column, part.missing.as_ref()).ok_or_else(damaged)
    }

    /// Appends the key of `record`, of an index with one key for each row; returns whether a part is NULL.
    pub(crate) fn append(&self, record: &[u8], out: &mut Vec<u8>) -> EngineResult<bool> {
        let start = out.len();
        let mut has_null = false;
        for part in &self.parts {
            let value = self.part_value(part, record)?;
            has_null |= value.is_null();
            encode_part(&value, &part.ty, part.prefix_length, part.descending, out);
        }
        if out.len() - start > KEY_BYTES_MAX {
            return Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&KEY_BYTES_MAX]).into());
        }
        Ok(has_null)
    }

    /// Whether `record` has the key `sql`.
    pub(crate) fn matches(
        &self,
        record: &[u8],
        sql: &[u8],
        scratch: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let mut found = false;
        self.for_each(record, scratch, |key, _| {
            found |= key == sql;
            Ok(())
        })?;
        Ok(found)
    }

    /// Shows each key of `record`, and whether a part is NULL. `key` is memory for it.
    pub(crate) fn for_each(
        &self,
        record: &[u8],
        key: &mut Vec<u8>,
        mut visit: impl FnMut(&mut Vec<u8>, bool) -> EngineResult<()>,
    ) -> EngineResult<()> {
        if self.parts.iter().all(|part| part.elements.is_none()) {
            key.clear();
            let has_null = self.append(record, key)?;
            return visit(key, has_null);
        }
        let (mut ends, mut has_null) = (Vec::new(), false);
        for element in self.elements(record)? {
            has_null |= self.write_with(record, element.as_ref(), key, &mut ends)?;
            if key.len() > KEY_BYTES_MAX {
                return Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&KEY_BYTES_MAX]).into());
            }
            visit(key, has_null)?;
        }
        Ok(())
    }

    /// Shows the keys of `record`, and where each part of them ends.
    pub(crate) fn each_with_ends(
        &self,
        record: &[u8],
        mut visit: impl FnMut(&[u8], &[usize]),
    ) -> EngineResult<()> {
        let (mut key, mut ends) = (Vec::new(), Vec::new());
        for element in self.elements(record)? {
            self.write_with(record, element.as_ref(), &mut key, &mut ends)?;
            visit(&key, &ends);
        }
        Ok(())
    }

    /// The elements of the array in the record; one that stands for the record itself if the index has none.
    fn elements(&self, record: &[u8]) -> EngineResult<Vec<Option<Value>>> {
        let found = self.parts.iter().find_map(|part| Some((part, part.elements.as_ref()?)));
        let Some((part, ty)) = found else { return Ok(vec![None]) };
        let values = entry_values(&self.part_value(part, record)?, ty);
        Ok(values.into_iter().map(Some).collect())
    }

    /// Replaces `key` with the key of one element, and `ends` with where its parts end; returns whether a part is NULL.
    fn write_with(
        &self,
        record: &[u8],
        element: Option<&Value>,
        key: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> EngineResult<bool> {
        key.clear();
        ends.clear();
        let mut has_null = false;
        for part in &self.parts {
            match (&part.elements, element) {
                (Some(ty), Some(value)) => {
                    has_null |= value.is_null();
                    encode_part(value, ty, None, part.descending, key);
                }
                _ => {
                    let value = self.part_value(part, record)?;
                    has_null |= value.is_null();
                    encode_part(&value, &part.ty, part.prefix_length, part.descending, key);
                }
            }
            ends.push(key.len());
        }
        Ok(has_null)
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }
}
