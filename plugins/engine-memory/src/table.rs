//! A table: rows with their versions, secondary entries, gap locks and counters.

use std::collections::{BTreeMap, HashMap};

use engine_api::{EngineResult, IndexDef, IndexId, TableDef, TableId};
use sys::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use sys::sync::{Arc, Mutex, RwLock};

use crate::index_keys::IndexKeys;
use crate::key::{Key, Span};
use crate::statistics::CachedStats;
use crate::status::TxnStatus;

/// One state of a row.
pub(crate) struct Version {
    pub(crate) writer: Arc<TxnStatus>,
    /// `None`: deleted.
    pub(crate) record: Option<Box<[u8]>>,
}

/// A row with its history.
pub(crate) struct Row {
    pub(crate) head: Version,
    /// Oldest first.
    pub(crate) older: Vec<Version>,
}

/// What a reader sees.
#[derive(Clone, Copy)]
pub(crate) struct View {
    /// `None`: the newest version, committed or not.
    pub(crate) snapshot: Option<u64>,
    /// Own versions are always seen.
    pub(crate) own: Option<u64>,
}

impl View {
    fn sees(self, version: &Version) -> bool {
        match self.snapshot {
            None => true,
            Some(snapshot) => {
                Some(version.writer.id) == self.own || version.writer.committed_by(snapshot)
            }
        }
    }
}

impl Row {
    /// The record that `view` sees.
    pub(crate) fn visible(&self, view: View) -> Option<&[u8]> {
        if view.sees(&self.head) {
            return self.head.record.as_deref();
        }
        let seen = self.older.iter().rev().find(|version| view.sees(version))?;
        seen.record.as_deref()
    }

    /// Newest version that is committed or written by `own`.
    pub(crate) fn newest_settled(&self, own: u64) -> Option<&Version> {
        let all = std::iter::once(&self.head).chain(self.older.iter().rev());
        all.into_iter().find(|version| version.writer.id == own || !version.writer.is_active())
    }

    pub(crate) fn is_live(&self) -> bool {
        self.head.record.is_some()
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.head).chain(&self.older).filter_map(|v| v.record.as_deref())
    }
}

/// A secondary index. Keys are the SQL columns' bytes followed by the locator.
pub(crate) struct Index {
    pub(crate) def: IndexDef,
    pub(crate) keys: IndexKeys,
    /// Value: how many bytes of the key are SQL columns.
    pub(crate) entries: BTreeMap<Key, u32>,
}

/// What the latch protects.
pub(crate) struct TableData {
    pub(crate) def: Arc<TableDef>,
    pub(crate) clustered: Option<IndexKeys>,
    pub(crate) rows: BTreeMap<Key, Row>,
    pub(crate) indexes: Vec<Index>,
    /// Bytes of records and keys.
    pub(crate) data_bytes: i64,
    pub(crate) index_bytes: i64,
}

impl TableData {
    pub(crate) fn new(def: &TableDef) -> EngineResult<TableData> {
        let clustered = def.primary().map(|index| IndexKeys::new(def, index)).transpose()?;
        let secondary = def.indexes.iter().filter(|index| index.id != IndexId::CLUSTERED);
        let indexes = secondary
            .map(|index| {
                let keys = IndexKeys::new(def, index)?;
                Ok(Index { def: index.clone(), keys, entries: BTreeMap::new() })
            })
            .collect::<EngineResult<Vec<_>>>()?;
        Ok(TableData {
            def: Arc::new(def.clone()),
            clustered,
            rows: BTreeMap::new(),
            indexes,
            data_bytes: 0,
            index_bytes: 0,
        })
    }

    /// The secondary index with `id`.
    pub(crate) fn index(&self, id: IndexId) -> Option<&Index> {
        self.indexes.iter().find(|index| index.def.id == id)
    }

    /// Adds the secondary entries of a record.
    pub(crate) fn add_entries(&mut self, record: &[u8], locator: &[u8]) -> EngineResult<()> {
        let mut key = Vec::new();
        for index in &mut self.indexes {
            key.clear();
            index.keys.append(record, &mut key)?;
            let sql_length = key.len() as u32;
            key.extend_from_slice(locator);
            if !index.entries.contains_key(key.as_slice()) {
                self.index_bytes += key.len() as i64;
                index.entries.insert(Key::new(&key), sql_length);
            }
        }
        Ok(())
    }

    /// Removes the secondary entries of `gone` that no version left of the row needs.
    pub(crate) fn remove_entries(&mut self, gone: &[u8], locator: &[u8]) -> EngineResult<()> {
        let TableData { indexes, rows, index_bytes, .. } = self;
        let row = rows.get(locator);
        let (mut key, mut other) = (Vec::new(), Vec::new());
        for index in indexes {
            key.clear();
            index.keys.append(gone, &mut key)?;
            let mut needed = false;
            for record in row.into_iter().flat_map(Row::records) {
                other.clear();
                index.keys.append(record, &mut other)?;
                if other == key {
                    needed = true;
                    break;
                }
            }
            if !needed {
                key.extend_from_slice(locator);
                if index.entries.remove(key.as_slice()).is_some() {
                    *index_bytes -= key.len() as i64;
                }
            }
        }
        Ok(())
    }
}

/// A locked range of an index.
struct Gap {
    index: IndexId,
    span: Span,
}

/// Names a gap lock of one transaction, so that a scan can let it grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GapId(usize);

type Gaps = HashMap<u64, (Arc<TxnStatus>, Vec<Gap>)>;

/// A table.
pub(crate) struct Table {
    pub(crate) id: TableId,
    pub(crate) data: RwLock<TableData>,
    gaps: Mutex<Gaps>,
    /// Transactions with gap locks here.
    gap_owners: AtomicUsize,
    /// Next AUTO_INCREMENT value; 0 stands for exhausted.
    pub(crate) auto_increment: Mutex<u64>,
    pub(crate) next_row_id: AtomicU64,
    /// Rows whose newest version is live.
    pub(crate) live_rows: AtomicI64,
    /// Set when the creating transaction commits.
    pub(crate) committed: AtomicBool,
    pub(crate) stats: Mutex<Option<CachedStats>>,
}

impl Table {
    pub(crate) fn new(def: &TableDef) -> EngineResult<Table> {
        Ok(Table {
            id: def.id,
            data: RwLock::new(TableData::new(def)?),
            gaps: Mutex::new(HashMap::new()),
            gap_owners: AtomicUsize::new(0),
            auto_increment: Mutex::new(1),
            next_row_id: AtomicU64::new(1),
            live_rows: AtomicI64::new(0),
            committed: AtomicBool::new(false),
            stats: Mutex::new(None),
        })
    }

    /// Locks a range against inserts by others. The caller holds `data`.
    pub(crate) fn lock_gap(
        self: &Arc<Self>,
        txn: &Arc<TxnStatus>,
        index: IndexId,
        span: Span,
    ) -> GapId {
        let mut gaps = self.gaps.lock();
        let (_, own) = gaps.entry(txn.id).or_insert_with(|| {
            self.gap_owners.fetch_add(1, Ordering::Release);
            txn.held.lock().gap_tables.push(self.clone());
            (txn.clone(), Vec::new())
        });
        let repeats = |gap: &Gap| gap.index == index && gap.span == span;
        if let Some(at) = own.iter().rev().take(4).position(repeats) {
            return GapId(own.len() - 1 - at);
        }
        own.push(Gap { index, span });
        GapId(own.len() - 1)
    }

    /// Moves the far end of a scan's gap lock.
    pub(crate) fn grow_gap(&self, txn: &TxnStatus, id: GapId, grow: impl FnOnce(&mut Span)) {
        if let Some((_, own)) = self.gaps.lock().get_mut(&txn.id)
            && let Some(gap) = own.get_mut(id.0)
        {
            grow(&mut gap.span);
        }
    }

    /// Others whose gap locks cover a key about to be inserted. The caller holds `data` exclusively.
    pub(crate) fn gap_blockers(
        &self,
        txn: &TxnStatus,
        index: IndexId,
        key: &[u8],
    ) -> Vec<Arc<TxnStatus>> {
        // Gap locks are taken under `data`, which the caller holds: the count is current.
        if self.gap_owners.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let gaps = self.gaps.lock();
        let others = gaps.iter().filter(|(id, _)| **id != txn.id).map(|(_, owner)| owner);
        others
            .filter(|(_, own)| own.iter().any(|gap| gap.index == index && gap.span.contains(key)))
            .map(|(owner, _)| owner.clone())
            .collect()
    }

    /// Forgets a transaction's gap locks.
    pub(crate) fn release_gaps(&self, txn: u64) {
        if self.gaps.lock().remove(&txn).is_some() {
            self.gap_owners.fetch_sub(1, Ordering::Release);
        }
    }
}
