//! The engine's dictionary tree: table id to stored definition, and stored counters.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use stdx::LocalArc;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use btree::{LeafCopy, Mtr, Seek, Tree, create_tree, format_space, space_field};
use bufpool::Pool;
use engine_api::{EngineError, EngineResult, TableId};
use errors::Error;
use page::PageNo;
use sys::sync::{Mutex, RwLock};
use txn::KIND_PAGES;

use crate::codec;
use crate::error::io_error;
use crate::new_tables::NewTables;
use crate::row::BlobRef;
use crate::table::{Table, TableCounters};

/// Field of the meta page: root of the dictionary.
const FIELD_ROOT: usize = 0;
const TREE_ID: u64 = 1;
const DEFINITION: u8 = 1;
const COUNTER: u8 = 2;

/// A table that there is.
#[derive(Default)]
struct Slot {
    /// `None`: not read since the start, or closed.
    table: Option<Arc<Table>>,
    /// It was requested since tables were last closed.
    is_used: AtomicBool,
}

impl Slot {
    fn open(table: Arc<Table>) -> Slot {
        Slot { table: Some(table), is_used: AtomicBool::new(true) }
    }

    fn get(&self) -> Option<&Arc<Table>> {
        if self.table.is_some() && !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        self.table.as_ref()
    }

    fn bytes(&self) -> u64 {
        self.table.as_ref().map_or(0, |table| table.memory_bytes() as u64)
    }
}

/// The tables that a session requested last, valid while the dictionary has `version`.
#[derive(Default)]
pub(crate) struct RecentTables {
    version: u64,
    /// By the lowest bits of the id; empty before the first.
    slots: Vec<Option<(TableId, LocalArc<Table>)>>,
}

/// Tables that a session remembers.
const RECENT: usize = 32;

impl RecentTables {
    /// A table.
    #[inline]
    pub fn get(&mut self, dictionary: &Dictionary, id: TableId) -> EngineResult<&LocalArc<Table>> {
        let version = dictionary.version();
        if version != self.version {
            self.slots.clear();
            self.version = version;
        }
        if self.slots.is_empty() {
            self.slots.resize(RECENT, None);
        }
        let slot = &mut self.slots[id.0 as usize % RECENT];
        let known = match slot.take() {
            Some((known, table)) if known == id => table,
            _ => Arc::new(dictionary.get(id)?),
        };
        Ok(&slot.insert((id, known)).1)
    }
}

/// All tables.
pub(crate) struct Dictionary {
    pub tree: Tree,
    pool: Arc<Pool>,
    tables: RwLock<HashMap<TableId, Slot>>,
    /// Memory of the open ones, about.
    open_bytes: AtomicU64,
    open_bytes_max: u64,
    /// From here on some are closed: more than the maximum after most were in use.
    close_at: AtomicU64,
    /// One thread at a time opens a table.
    opening: Mutex<()>,
    /// Changes with the map.
    version: AtomicU64,
    counters: Mutex<()>,
    pub new_tables: NewTables,
}

/// Fills a new space.
pub(crate) fn setup(pool: &Pool) -> io::Result<()> {
    format_space(pool)?;
    let mut mtr = Mtr::new(pool);
    let tree = create_tree(&mut mtr, TREE_ID)?;
    mtr.set_space_field(FIELD_ROOT, u64::from(tree.root.0))?;
    mtr.commit(KIND_PAGES, &[]);
    Ok(())
}

pub(crate) fn definition_key(table: TableId) -> Vec<u8> {
    let mut key = vec![DEFINITION];
    key.extend_from_slice(&table.0.to_be_bytes());
    key
}

fn counter_key(table: TableId) -> Vec<u8> {
    let mut key = vec![COUNTER];
    key.extend_from_slice(&table.0.to_be_bytes());
    key
}

impl Dictionary {
    /// Lists the existing tables. Definitions are read when they are needed.
    pub fn load(pool: &Arc<Pool>, open_bytes_max: usize) -> EngineResult<Dictionary> {
        let root = space_field(pool, FIELD_ROOT).map_err(io_error)?;
        let dictionary = Dictionary {
            tree: Tree { root: PageNo(root as u32), id: TREE_ID },
            pool: pool.clone(),
            tables: RwLock::new(HashMap::new()),
            open_bytes: AtomicU64::new(0),
            open_bytes_max: open_bytes_max as u64,
            close_at: AtomicU64::new(open_bytes_max as u64),
            opening: Mutex::new(()),
            version: AtomicU64::new(1),
            counters: Mutex::new(()),
            new_tables: NewTables::default(),
        };
        let ids = dictionary.stored_ids(pool).map_err(io_error)?;
        *dictionary.tables.write() = ids.into_iter().map(|id| (id, Slot::default())).collect();
        Ok(dictionary)
    }

    fn stored_ids(&self, pool: &Pool) -> io::Result<Vec<TableId>> {
        let mut ids = Vec::new();
        let mut copy = LeafCopy::new(pool);
        let (mut start, mut key) = (vec![DEFINITION], Vec::new());
        loop {
            copy.load(pool, self.tree, Seek::At(&start))?;
            for slot in 0..copy.page().count() {
                key.clear();
                copy.page().copy_key(slot, &mut key);
                if let Some((&DEFINITION, id)) = key.split_first()
                    && let Ok(id) = id.try_into()
                {
                    ids.push(TableId(u64::from_be_bytes(id)));
                }
            }
            if !copy.page().upper_fence(&mut start) {
                return Ok(ids);
            }
        }
    }

    /// Makes the map agree with the stored definitions: after a rollback, at open.
    pub fn reload(&self, pool: &Pool, id: TableId) -> EngineResult<()> {
        let mut value = Vec::new();
        if !self.tree.get(pool, &definition_key(id), &mut value).map_err(io_error)? {
            self.remove(id);
            return Ok(());
        }
        let mut bytes = Vec::new();
        let stored = BlobRef::decode(&value).map_err(io_error)?;
        stored.read(pool, &mut bytes).map_err(io_error)?;
        let damaged = || EngineError::Other(Error::internal("a stored definition is damaged"));
        let (def, trees) = codec::decode(&bytes).ok_or_else(damaged)?;
        let present = self.present(id);
        let counters = match present {
            Some(table) => table.counters.clone(),
            None => Arc::new(self.load_counters(pool, id)?),
        };
        let table = Table::new(def, &trees, counters)?;
        if table.primary.is_none() && table.counters.next_row_id.load(Ordering::Relaxed) == 0 {
            let next = next_row_id(pool, table.clustered).map_err(io_error)?;
            table.counters.next_row_id.store(next, Ordering::Relaxed);
        }
        self.put(Arc::new(table));
        Ok(())
    }

    fn load_counters(&self, pool: &Pool, id: TableId) -> EngineResult<TableCounters> {
        let counters = TableCounters::default();
        let mut value = Vec::new();
        if self.tree.get(pool, &counter_key(id), &mut value).map_err(io_error)? {
            let stored = value.try_into().map_or(1, u64::from_le_bytes);
            let mut auto = counters.auto_increment.lock();
            (auto.next, auto.stored) = (stored, stored);
        }
        counters.committed.store(true, Ordering::Release);
        Ok(counters)
    }

    /// Stores a counter; durable with the next flush of the log.
    pub fn store_counter(&self, pool: &Pool, id: TableId, value: u64) -> EngineResult<()> {
        let _one = self.counters.lock();
        self.tree.put(pool, &counter_key(id), &value.to_le_bytes()).map_err(io_error)?;
        Ok(())
    }

    /// Forgets the counter of a dropped table.
    pub fn remove_counter(&self, pool: &Pool, id: TableId) -> io::Result<()> {
        self.tree.remove(pool, &counter_key(id)).map(drop)
    }

    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn present(&self, id: TableId) -> Option<Arc<Table>> {
        self.tables.read().get(&id).and_then(Slot::get).cloned()
    }

    pub fn get(&self, id: TableId) -> EngineResult<Arc<Table>> {
        match self.tables.read().get(&id).map(Slot::get) {
            Some(Some(table)) => return Ok(table.clone()),
            Some(None) => {}
            None => return Err(EngineError::UnknownTable),
        }
        let _one = self.opening.lock();
        if let Some(table) = self.present(id) {
            return Ok(table);
        }
        self.close_some_alone()?;
        self.reload(&self.pool, id)?;
        self.present(id).ok_or(EngineError::UnknownTable)
    }

    /// Whether a table is there, committed.
    pub fn has_committed(&self, id: TableId) -> bool {
        self.tables.read().get(&id).is_some_and(|slot| match &slot.table {
            Some(table) => table.counters.committed.load(Ordering::Acquire),
            None => true,
        })
    }

    /// Closes unused tables when open tables have used up their memory, those not requested since the last call first.
    /// Definitions that cannot be read back from the files stay in memory.
    pub fn close_some(&self) -> EngineResult<()> {
        let _one = self.opening.lock();
        self.close_some_alone()
    }

    fn close_some_alone(&self) -> EngineResult<()> {
        if self.open_bytes.load(Ordering::Relaxed) < self.close_at.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Sessions forget their own lists, which keep tables open.
        self.version.fetch_add(1, Ordering::Release);
        for closes_used in [false, true] {
            self.close_idle(closes_used, self.open_bytes_max / 8 * 7)?;
        }
        let still = self.open_bytes.load(Ordering::Relaxed) + self.open_bytes_max / 8;
        self.close_at.store(still.max(self.open_bytes_max), Ordering::Relaxed);
        Ok(())
    }

    /// Closes idle tables until the open ones have `bytes_max`.
    fn close_idle(&self, closes_used: bool, bytes_max: u64) -> EngineResult<()> {
        let idle = self.idle(closes_used);
        for table in idle {
            if self.open_bytes.load(Ordering::Relaxed) <= bytes_max {
                break;
            }
            self.store_auto_increment(&table)?;
            let (id, bytes) = (table.id, table.memory_bytes() as u64);
            drop(table);
            let mut tables = self.tables.write();
            let Some(slot) = tables.get_mut(&id) else { continue };
            let is_idle = slot.table.as_ref().is_some_and(|table| {
                let auto = table.counters.auto_increment.lock();
                Arc::strong_count(table) == 1 && auto.next == auto.stored
            });
            if is_idle {
                slot.table = None;
                self.open_bytes.fetch_sub(bytes, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Unused open tables. Unless `with_used`, only those not requested since the last call; the others lose their mark.
    fn idle(&self, with_used: bool) -> Vec<Arc<Table>> {
        let tables = self.tables.read();
        let idle = tables
            .values()
            .filter(|slot| with_used || !slot.is_used.swap(false, Ordering::Relaxed));
        let idle = idle.filter_map(|slot| slot.table.as_ref()).filter(|table| {
            // A table whose indexes are being built stays: writers find the builds through it, and likewise the notes of rows.
            Arc::strong_count(table) == 1
                && table.builds.is_empty()
                && table.notes.is_none()
                && table.counters.committed.load(Ordering::Acquire)
        });
        idle.cloned().collect()
    }

    /// Makes the stored counter the next value, so that closing the table skips none.
    pub fn store_auto_increment(&self, table: &Table) -> EngineResult<()> {
        let mut auto = table.counters.auto_increment.lock();
        if auto.stored != auto.next {
            self.store_counter(&self.pool, table.id, auto.next)?;
            auto.stored = auto.next;
        }
        Ok(())
    }

    /// Tables that are open now.
    pub fn all_open(&self) -> Vec<Arc<Table>> {
        self.tables.read().values().filter_map(|slot| slot.table.clone()).collect()
    }

    /// All tables, opened.
    pub fn all(&self) -> EngineResult<Vec<Arc<Table>>> {
        let ids: Vec<TableId> = self.tables.read().keys().copied().collect();
        ids.into_iter().map(|id| self.get(id)).collect()
    }

    /// Bytes of memory, about.
    pub fn memory_bytes(&self) -> usize {
        let slots = self.tables.read().capacity() * size_of::<(TableId, Slot)>();
        slots + self.open_bytes.load(Ordering::Relaxed) as usize
    }

    pub fn put(&self, table: Arc<Table>) {
        let new = Slot::open(table.clone());
        self.open_bytes.fetch_add(new.bytes(), Ordering::Relaxed);
        let before = self.tables.write().insert(table.id, new);
        let was_closed = before.as_ref().is_some_and(|slot| slot.table.is_none());
        self.open_bytes.fetch_sub(before.map_or(0, |slot| slot.bytes()), Ordering::Relaxed);
        // No list holds a closed table.
        if !was_closed {
            self.version.fetch_add(1, Ordering::Release);
        }
    }

    pub fn remove(&self, id: TableId) {
        let before = self.tables.write().remove(&id);
        self.open_bytes.fetch_sub(before.map_or(0, |slot| slot.bytes()), Ordering::Relaxed);
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// One more than the largest row id of a table without a primary key.
fn next_row_id(pool: &Pool, tree: Tree) -> io::Result<u64> {
    let leaf = tree.shared_leaf(pool, Seek::Last)?;
    let page = leaf.page();
    let mut key = Vec::new();
    match page.count() {
        // An emptied last leaf: its lower fence is above every key before it.
        0 => {
            page.lower_fence(&mut key);
            key.resize(8, u8::MAX);
        }
        count => page.copy_key(count - 1, &mut key),
    }
    if page.count() == 0 && page.is_leftmost() {
        return Ok(1);
    }
    Ok(key.try_into().map_or(1, u64::from_be_bytes).saturating_add(1))
}
