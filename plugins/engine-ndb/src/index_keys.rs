//! Makes an index's key bytes from records.

use engine_api::{EngineError, EngineResult, IndexDef, TableDef};
use errors::{Error, ErrorCode};
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
}

/// The recipe for one index.
pub(crate) struct IndexKeys {
    layout: RecordLayout,
    parts: Vec<Part>,
}

fn damaged() -> EngineError {
    EngineError::Other(Error::internal("a record in NDB does not fit its table"))
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
            })
        });
        let parts = parts.collect::<EngineResult<Vec<_>>>()?;
        Ok(IndexKeys { layout: def.layout(), parts })
    }

    /// Appends the key of `record`, calling `end` after each part; returns whether a part is NULL.
    fn append_parts(
        &self,
        record: &[u8],
        out: &mut Vec<u8>,
        mut end: impl FnMut(usize),
    ) -> EngineResult<bool> {
        let (start, mut has_null) = (out.len(), false);
        for part in &self.parts {
            let value = self.layout.value(record, part.column, part.missing.as_ref());
            let value = value.ok_or_else(damaged)?;
            has_null |= value.is_null();
            encode_part(&value, &part.ty, part.prefix_length, part.descending, out);
            end(out.len());
        }
        if out.len() - start > KEY_BYTES_MAX {
            return Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&KEY_BYTES_MAX]).into());
        }
        Ok(has_null)
    }

    /// Appends the key of `record`; returns whether a part is NULL.
    pub(crate) fn append(&self, record: &[u8], out: &mut Vec<u8>) -> EngineResult<bool> {
        self.append_parts(record, out, |_| ())
    }

    /// Where each part of the key of `record` ends.
    pub(crate) fn ends(&self, record: &[u8], key: &mut Vec<u8>) -> EngineResult<Vec<usize>> {
        let mut ends = Vec::new();
        self.append_parts(record, key, |end| ends.push(end))?;
        Ok(ends)
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }
}
