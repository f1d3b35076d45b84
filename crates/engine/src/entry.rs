//! The bytes of secondary entries.

use btree::{Tree, record_bytes_max};
use engine_api::{EngineError, EngineResult};
use errors::{Error, ErrorCode};

use crate::keys::IndexKeys;

/// Mark in an entry's value.
pub(crate) const MARKED: u64 = 1;

/// One entry of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Columns, then locator.
    pub key: Vec<u8>,
    /// Bytes of the columns.
    pub sql: usize,
    pub has_null: bool,
}

impl Entry {
    /// The entries of a record, in order: one, except of a multi-valued index.
    pub fn all(keys: &IndexKeys, record: &[u8], locator: &[u8]) -> EngineResult<Vec<Entry>> {
        let mut all = Vec::new();
        Entry::each(keys, record, locator, |entry| {
            all.push(entry);
            Ok(())
        })?;
        Ok(all)
    }

    /// Shows them.
    pub fn each(
        keys: &IndexKeys,
        record: &[u8],
        locator: &[u8],
        mut visit: impl FnMut(Entry) -> EngineResult<()>,
    ) -> EngineResult<()> {
        if keys.is_multi_valued() {
            return keys.for_each(record, |sql, has_null| {
                visit(Entry { key: [sql, locator].concat(), sql: sql.len(), has_null })
            });
        }
        let mut key = Vec::with_capacity(locator.len() + 24);
        let has_null = keys.append(record, &mut key)?;
        let sql = key.len();
        key.extend_from_slice(locator);
        visit(Entry { key, sql, has_null })
    }

    pub fn sql_key(&self) -> &[u8] {
        &self.key[..self.sql]
    }

    pub fn value(&self) -> [u8; 8] {
        entry_value(self.sql)
    }
}

/// The value of a live entry with columns of `sql` bytes.
pub(crate) fn entry_value(sql: usize) -> [u8; 8] {
    ((sql as u64) << 16).to_le_bytes()
}

/// Space of the locks on the keys of a unique index (E5).
pub(crate) fn unique_space(tree: Tree) -> u64 {
    const UNIQUE_NAMES: u64 = 1 << 63;
    tree.id | UNIQUE_NAMES
}

/// Length of the columns of an entry, and whether it is marked, from its value.
pub(crate) fn read_entry(value: u64) -> (usize, bool) {
    ((value >> 16) as usize & 0xFFFF, value & MARKED != 0)
}

/// Refuses an entry that does not fit a page.
pub(crate) fn check_length(page_bytes: usize, entry: &Entry) -> EngineResult<()> {
    let limit = record_bytes_max(page_bytes) - 8;
    match entry.key.len() <= limit {
        true => Ok(()),
        false => Err(EngineError::Other(Error::with(ErrorCode::TOO_LONG_KEY, &[&limit]))),
    }
}

/// The first of two sorted lists without those that are in the second too.
pub(crate) fn without<'a>(
    entries: &'a [Entry],
    others: &'a [Entry],
) -> impl Iterator<Item = &'a Entry> {
    let has = |entry: &Entry| others.binary_search_by(|other| other.key.cmp(&entry.key)).is_ok();
    entries.iter().filter(move |entry| !has(entry))
}
