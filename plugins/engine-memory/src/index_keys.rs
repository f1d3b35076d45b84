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
    EngineError::Other(Error::internal("a record of the memory engine does not fit its table"))
}

impl IndexKeys {
    /// The recipe for `index` of `def`.
    pub(crate) fn new(def: &TableDef, index: &IndexDef) -> EngineResult<IndexKeys> {
        if index.is_multi_valued() {
            let what = "multi-valued indexes";
            return Err(Error::with(ErrorCode::CHECK_NOT_IMPLEMENTED, &[&what]).into());
        }
        let types: Vec<DataType> = def.columns.iter().map(|column| column.ty.clone()).collect();
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
        Ok(IndexKeys {
            layout: RecordLayout::new(&types),
            parts: parts.collect::<EngineResult<Vec<_>>>()?,
        })
    }

    fn part_value(&self, part: &Part, record: &[u8]) -> EngineResult<Value> {
        self.layout.value(record, part.column, part.missing.as_ref()).ok_or_else(damaged)
    }

    /// Appends the key of `record`; returns whether a part is NULL.
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
        scratch.clear();
        self.append(record, scratch)?;
        Ok(scratch == sql)
    }

    /// Where each part of the key of `record` ends; the key is in `out`.
    pub(crate) fn part_ends(
        &self,
        record: &[u8],
        out: &mut Vec<u8>,
        ends: &mut Vec<usize>,
    ) -> EngineResult<()> {
        out.clear();
        ends.clear();
        for part in &self.parts {
            let value = self.part_value(part, record)?;
            encode_part(&value, &part.ty, part.prefix_length, part.descending, out);
            ends.push(out.len());
        }
        Ok(())
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }
}
