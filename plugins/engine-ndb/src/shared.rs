//! Definitions that all servers of the cluster share: how they are kept, and how a server reads them.
//!
//! A table has a row in `stamps` (its stamp and its name), its definition in `definitions` (the engine's, then the catalog's entry; each part begins with the stamp,
//! so that a reader notices a mixture), and a row in `names`, so that no two tables have one name. `fence` says who may change them.

use std::collections::HashMap;
use std::time::Duration;

use engine_api::{EngineError, EngineResult, SharedDefinitions, SharedTable, TableDef, TableId};
use errors::{Error, ErrorCode};
use stdx::bytes::{Reader, put_blob, put_u32, put_u64};
use sys::blocking::blocking;
use sys::sync::RwLock;

use crate::definition;
use crate::engine::{NdbEngine, number};
use crate::error::NdbError;
use crate::link::{Link, definition_key};
use crate::shim::{Hold, NdbTransaction, Operation, ScanRange};

/// Bytes of a definition in one part, which begins with the stamp and the length of all parts.
const CHUNK_BYTES: usize = 15_900;
/// Tries to read a definition that changes at that moment.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// Keys of rows in `counters` that belong to no table.
pub(crate) fn version_key() -> Vec<u8> {
    [0_u64.to_be_bytes().as_slice(), b"v"].concat()
}

fn ids_key() -> Vec<u8> {
    [0_u64.to_be_bytes().as_slice(), b"t"].concat()
}

/// 1412: the definition is not the one that the caller works with.
pub(crate) fn outdated() -> Error {
    Error::with(ErrorCode::TABLE_DEF_CHANGED, &[])
}

/// The stamps that this server's catalog follows.
#[derive(Default)]
pub(crate) struct Followed(RwLock<HashMap<TableId, u64>>);

impl Followed {
    pub(crate) fn stamp(&self, table: TableId) -> Option<u64> {
        self.0.read().get(&table).copied()
    }

    fn set(&self, table: TableId, stamp: Option<u64>) {
        let mut stamps = self.0.write();
        match stamp {
            Some(stamp) => stamps.insert(table, stamp),
            None => stamps.remove(&table),
        };
    }
}

/// A row of `stamps`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) stamp: u64,
    /// As `name_key`; empty before the table has one.
    pub(crate) name: Vec<u8>,
}

impl Stamp {
    pub(crate) fn key(table: TableId) -> Vec<u8> {
        table.0.to_be_bytes().to_vec()
    }

    pub(crate) fn to_row(&self) -> Vec<u8> {
        [self.stamp.to_le_bytes().as_slice(), &self.name].concat()
    }

    pub(crate) fn from_row(row: &[u8]) -> Option<Stamp> {
        let (stamp, name) = row.split_first_chunk()?;
        Some(Stamp { stamp: u64::from_le_bytes(*stamp), name: name.to_vec() })
    }
}

/// The key of a row in `names`.
pub(crate) fn name_key(schema: &str, name: &str) -> Vec<u8> {
    [schema.as_bytes(), b"\0", name.as_bytes()].concat()
}

/// What is kept of a shared table.
#[derive(Debug, PartialEq)]
pub(crate) struct Kept {
    pub(crate) stamp: u64,
    pub(crate) def: TableDef,
    pub(crate) entry: Vec<u8>,
}

impl Kept {
    /// The parts as they are stored.
    pub(crate) fn to_parts(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        put_blob(&mut all, &definition::encode(&self.def));
        put_blob(&mut all, &self.entry);
        let part = |chunk: &[u8]| {
            let mut part = Vec::with_capacity(chunk.len() + 12);
            put_u64(&mut part, self.stamp);
            put_u32(&mut part, all.len() as u32);
            part.extend_from_slice(chunk);
            part
        };
        all.chunks(CHUNK_BYTES).map(part).collect()
    }

    /// `None`: they are not the parts of one definition.
    pub(crate) fn from_parts(parts: &[Vec<u8>]) -> Option<Kept> {
        let (mut all, mut head) = (Vec::new(), None);
        for part in parts {
            let (own, chunk) = part.split_at_checked(12)?;
            if *head.get_or_insert(own) != own {
                return None;
            }
            all.extend_from_slice(chunk);
        }
        let mut head = Reader::new(head?);
        let (stamp, length) = (head.u64()?, head.u32()?);
        if all.len() != length as usize {
            return None;
        }
        let mut reader = Reader::new(&all);
        let def = definition::decode(reader.blob()?)?;
        Some(Kept { stamp, def, entry: reader.blob()?.to_vec() })
    }
}

impl Link {
    /// Shows `each` the committed rows of a table of the engine with keys from `low` to before `high`.
    pub(crate) fn scan_rows(
        &self,
        table: &sys::sync::Arc<crate::shim::NdbTable>,
        low: &[u8],
        high: Option<&[u8]>,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), NdbError> {
        const ROWS: usize = 64;
        let mut transaction = NdbTransaction::begin(&self.connection, None)?;
        let range = ScanRange {
            low: Some(low),
            low_inclusive: true,
            high,
            descending: false,
            with_rows: true,
            batch: 16,
        };
        let mut scan = transaction.scan(table, &range)?;
        while scan.next(ROWS, &mut each)? > 0 {}
        Ok(())
    }

    /// The committed definition of a shared table.
    ///
    /// # Errors
    /// 1412 while it changes.
    pub(crate) fn kept(&self, table: TableId) -> EngineResult<Option<Kept>> {
        let (low, high) = (definition_key(table, 0), definition_key(TableId(table.0 + 1), 0));
        for _ in 0..TRIES {
            let mut parts = Vec::new();
            let take = |_: &[u8], part: &[u8]| parts.push(part.to_vec());
            self.scan_rows(&self.definitions, &low, Some(&high), take)
                .map_err(NdbError::into_engine)?;
            if parts.is_empty() {
                return Ok(None);
            }
            if let Some(kept) = Kept::from_parts(&parts) {
                return Ok(Some(kept));
            }
            sys::threads::sleep(PAUSE);
        }
        Err(outdated().into())
    }
}

impl SharedDefinitions for NdbEngine {
    fn new_table_id(&self) -> EngineResult<TableId> {
        let link = self.0.links.get()?;
        let draw = |old: Option<&[u8]>| {
            let id = number(old).max(u128::from(TableId::FIRST_SHARED.0));
            (Some((id + 1).to_le_bytes().to_vec()), id)
        };
        let drawn = blocking(|| link.change_row(&link.counters, &ids_key(), draw));
        let drawn = drawn.map_err(NdbError::into_engine)?;
        let id = u64::try_from(drawn).map_err(|_| Error::internal("no ids are left in NDB"))?;
        Ok(TableId(id))
    }

    fn version(&self) -> EngineResult<u64> {
        let link = self.0.links.look()?;
        let read = || {
            let mut transaction = NdbTransaction::begin(&link.connection, None)?;
            let mut read = [Operation::read(&link.counters, &version_key(), Hold::Nothing)];
            transaction.execute(&mut read)?;
            let [read] = read;
            Ok(if read.code == 0 { number(Some(&read.row)) as u64 } else { 0 })
        };
        blocking(read).map_err(|error: NdbError| {
            self.0.look_at(&link, &error.clone().into_engine());
            error.into_engine()
        })
    }

    fn stamps(&self) -> EngineResult<Vec<(TableId, u64)>> {
        let link = self.0.links.get()?;
        let mut stamps = Vec::new();
        let take = |key: &[u8], row: &[u8]| {
            let id = <[u8; 8]>::try_from(key).ok().map(|key| TableId(u64::from_be_bytes(key)));
            if let (Some(id), Some(stamp)) = (id, Stamp::from_row(row)) {
                stamps.push((id, stamp.stamp));
            }
        };
        let read = blocking(|| link.scan_rows(&link.stamps, &[], None, take));
        read.map_err(NdbError::into_engine)?;
        Ok(stamps)
    }

    fn read(&self, table: TableId) -> EngineResult<Option<SharedTable>> {
        let link = self.0.links.get()?;
        let kept = blocking(|| link.kept(table))?;
        Ok(kept.map(|kept| SharedTable { stamp: kept.stamp, entry: kept.entry }))
    }

    fn follow(&self, table: TableId, stamp: Option<u64>) {
        self.0.links.followed.set(table, stamp);
        let link = self.0.links.present();
        let known = link.and_then(|link| link.known(table));
        // What this server has changed itself needs no new look.
        if stamp.is_none() || known.map(|known| known.stamp) != stamp {
            self.0.links.forget(table);
            self.0.statistics.forget(table);
            self.0.forget_counters(table);
        }
    }

    fn followed(&self, table: TableId) -> Option<u64> {
        self.0.links.followed.stamp(table)
    }
}

/// Refuses a definition that the catalog does not follow.
pub(crate) fn check_followed(followed: Option<u64>, stamp: u64) -> Result<(), EngineError> {
    match followed == Some(stamp) {
        true => Ok(()),
        false => Err(outdated().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine_api::ColumnDef;
    use types::DataType;

    #[test]
    fn a_definition_comes_back_and_a_mixture_does_not() {
        let column = |at: usize| ColumnDef {
            name: format!("column {at}"),
            ty: DataType::bigint(),
            instant_default: None,
        };
        let kept = |stamp, columns| Kept {
            stamp,
            def: TableDef {
                id: TableId::FIRST_SHARED,
                name: "n.t".into(),
                columns: (0..columns).map(column).collect(),
                indexes: Vec::new(),
            },
            entry: b"the catalog's".repeat(1000),
        };
        let old = kept(1, 400).to_parts();
        let new = kept(2, 400).to_parts();
        assert!(old.len() > 1 && new.len() == old.len());
        assert_eq!(Kept::from_parts(&old), Some(kept(1, 400)));
        let mixed = [&old[..1], &new[1..]].concat();
        assert_eq!(Kept::from_parts(&mixed), None);
        assert_eq!(Kept::from_parts(&old[..old.len() - 1]), None);
        assert_eq!(Kept::from_parts(&[]), None);
        let stamp = Stamp { stamp: 7, name: name_key("n", "t") };
        assert_eq!(Stamp::from_row(&stamp.to_row()), Some(stamp));
        assert_eq!(Stamp::from_row(b"short"), None);
    }
}
