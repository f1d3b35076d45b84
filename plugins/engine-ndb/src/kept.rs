//! What the cluster keeps of definitions that all its servers share.
//!
//! A table has a row in `stamps` (its stamp and its name), its definition in `definitions` (the engine's, then the catalog's entry; each part begins with the stamp,
//! so that a reader notices a mixture), and a row in `names`, so that no two tables have one name.

use std::collections::HashMap;

use engine_api::{EngineError, TableDef, TableId};
use stdx::bytes::{Reader, put_blob, put_u32, put_u64};
use sys::sync::RwLock;

use crate::definition;
use crate::error::outdated;

/// Bytes of a definition in one part, which begins with the stamp and the length of all parts.
const CHUNK_BYTES: usize = 15_900;

/// Keys of rows in `counters` that belong to no table.
pub(crate) fn version_key() -> Vec<u8> {
    [0_u64.to_be_bytes().as_slice(), b"v"].concat()
}

pub(crate) fn ids_key() -> Vec<u8> {
    [0_u64.to_be_bytes().as_slice(), b"t"].concat()
}

pub(crate) fn number(bytes: Option<&[u8]>) -> u128 {
    let bytes = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    bytes.map_or(1, u128::from_le_bytes)
}

/// The stamps that this server's catalog follows.
#[derive(Default)]
pub(crate) struct Followed(RwLock<HashMap<TableId, u64>>);

impl Followed {
    pub(crate) fn stamp(&self, table: TableId) -> Option<u64> {
        self.0.read().get(&table).copied()
    }

    pub(crate) fn set(&self, table: TableId, stamp: Option<u64>) {
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
