//! An index is begun, filled and made public (E16).

use std::sync::Arc;

use btree::{LeafCopy, Mtr, Seek, TreeBuilder};
use engine_api::{EngineError, EngineResult, IndexDef, TableDef, TableId};
use errors::Error;
use page::PageNo;
use stdx::bytes::Reader;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

use crate::entry::{Entry, check_length, entry_value};
use crate::entry_tree::{RemoveEntry, live_entries, mark_entry, put_entry, remove_entry};
use crate::error::{Failure, io_error};
use crate::keys::IndexKeys;
use crate::row::{Header, append_record, body};
use crate::side_log::{Change, read_change};
use crate::sorter::Sorter;
use crate::space::{GROUP_PAGES, ROW_PAGES};
use crate::table::{StoredTree, Table};
use crate::transaction::{Pending, Txn};

use super::{CANCEL_EVERY, HAS_NULL, IndexBuild, QUIET_BYTES_MAX, ROUNDS_MAX};

impl Txn {
    /// Makes the trees and lets writers note their changes.
    pub(crate) fn begin_builds(&mut self, id: TableId, indexes: &[IndexDef]) -> EngineResult<()> {
        self.wait_for_losers(id)?;
        let table = self.table(id)?;
        if !table.builds.is_empty() || table.notes.is_some() {
            return Err(Error::internal("indexes of this table are being built").into());
        }
        // Purge leaves everything alone that is changed from here on: it would not know the new entries.
        self.pin_snapshot()?;
        let layout = IndexKeys::layout(&table.def);
        let mut builds = Vec::with_capacity(indexes.len());
        for index in indexes {
            let keys = IndexKeys::new(&table.def, index, &layout)?;
            let tree = self.new_tree(index.id)?.tree;
            builds.push(Arc::new(IndexBuild {
                def: index.clone(),
                keys,
                tree,
                page_bytes: self.shared.system.pool.page_bytes(),
                log: self.shared.side_log(tree.id),
                failed: Mutex::new(None),
                suspects: Mutex::default(),
                read: AtomicU64::new(0),
                put: AtomicU64::new(0),
            }));
        }
        self.shared.dictionary.put(Arc::new(table.with_builds(builds)?));
        self.building = Some(id);
        Ok(())
    }

    /// Writers stop noting.
    pub(crate) fn stop_builds(&mut self) -> EngineResult<()> {
        let Some(id) = self.building.take() else { return Ok(()) };
        let Ok(table) = self.shared.dictionary.get(id) else { return Ok(()) };
        if !table.builds.is_empty() || table.notes.is_some() {
            self.shared.dictionary.put(Arc::new(table.with_builds(Vec::new())?));
        }
        Ok(())
    }

    /// Fills the trees.
    pub(crate) fn fill_builds(&mut self, id: TableId) -> EngineResult<()> {
        let table = self.table(id)?;
        for build in &table.builds {
            self.fill(&table, build)?;
            for _ in 0..ROUNDS_MAX {
                if build.log.left_bytes() <= QUIET_BYTES_MAX {
                    break;
                }
                self.catch_up(build)?;
            }
        }
        Ok(())
    }

    /// Applies the last notes and stores the definition. No other transaction changes the table any more.
    pub(crate) fn finish_builds(&mut self, id: TableId) -> EngineResult<()> {
        let table = self.table(id)?;
        debug_assert!(!table.builds.is_empty(), "indexes are begun before they are finished (E16)");
        let mut def = TableDef::clone(&table.def);
        let mut trees = table.trees();
        for build in &table.builds {
            while build.log.left_bytes() > 0 {
                self.catch_up(build)?;
            }
            build.check()?;
            self.refuse_duplicates(build)?;
            def.indexes.retain(|other| other.id != build.def.id);
            def.indexes.push(build.def.clone());
            trees.push(StoredTree { index: build.def.id, tree: build.tree });
        }
        let ticket = self.shared.system.log.draw();
        let mut built = table.counters.built.lock();
        built.retain(|(tree, _)| trees.iter().any(|stored| stored.tree.id == *tree));
        built.extend(table.builds.iter().map(|build| (build.tree.id, ticket)));
        drop(built);
        self.building = None;
        self.made_public = true;
        let mark = self.undo_mark();
        self.put_definition(&table, def, &trees)?;
        let own = table.builds.iter().map(|build| (mark + 1, Pending::Built(id, build.tree.id)));
        self.pending.extend(own);
        Ok(())
    }

    /// Fails when two live entries have the same key.
    fn refuse_duplicates(&self, build: &IndexBuild) -> EngineResult<()> {
        let pool = &self.shared.system.pool;
        for sql in build.suspects.lock().iter() {
            let mut live = live_entries(pool, build.tree, sql, 2).map_err(io_error)?;
            if let (2, Some(locator)) = (live.len(), live.pop()) {
                return Err(EngineError::DuplicateKey { index: build.def.id, locator });
            }
        }
        Ok(())
    }

    fn fill(&mut self, table: &Table, build: &IndexBuild) -> EngineResult<()> {
        let tree = build.tree;
        let mut sorter = self.shared.sorter(tree.id);
        self.collect_entries(table, build, &mut sorter)?;
        let (core, shared) = (self.core(), self.shared.clone());
        let pool = &*shared.system.pool;
        let mut builder = TreeBuilder::new(pool, tree);
        let (mut previous, mut before) = (Vec::new(), Vec::new());
        let cancel = self.cancel.clone();
        sorter.finish(|key, tag| -> Result<(), Failure> {
            let sql = usize::from(tag & !HAS_NULL);
            if key == before {
                // A row that moved while the table was read.
                return Ok(());
            }
            before.clear();
            before.extend_from_slice(key);
            if build.def.unique && tag & HAS_NULL == 0 {
                if key.get(..sql) == Some(&previous) {
                    build.suspect(&previous, key.get(sql..).unwrap_or_default())?;
                }
                previous.clear();
                previous.extend_from_slice(&key[..sql]);
            }
            let put = build.put.fetch_add(1, Ordering::Relaxed);
            if put.is_multiple_of(CANCEL_EVERY) {
                if cancel.is_cancelled() {
                    return Err(EngineError::Cancelled.into());
                }
                shared.brake();
            }
            pool.ensure_room(GROUP_PAGES)?;
            builder.push(pool, (key, &entry_value(sql)), |mtr, pages| {
                shared.log_tree_pages(&core, tree, mtr, pages);
            })?;
            Ok(())
        })?;
        let pages = |mtr: Mtr<'_>, pages: &[PageNo]| shared.log_tree_pages(&core, tree, mtr, pages);
        match builder.finish(pool, pages).map_err(io_error)? {
            Some(root) => self.fill_root(tree, &root),
            None => Ok(()),
        }
    }

    /// Gives the sorter the entry of each row that is live in its newest version.
    fn collect_entries(
        &mut self,
        table: &Table,
        build: &IndexBuild,
        sorter: &mut Sorter,
    ) -> EngineResult<()> {
        let shared = self.shared.clone();
        let pool = &*shared.system.pool;
        let mut leaf = LeafCopy::new(pool);
        let (mut start, mut locator) = (Vec::new(), Vec::new());
        let (mut value, mut record) = (Vec::new(), Vec::new());
        loop {
            leaf.load(pool, table.clustered, Seek::At(&start)).map_err(io_error)?;
            let page = leaf.page();
            for slot in 0..page.count() {
                value.clear();
                page.copy_value(slot, &mut value);
                if Header::of(&value).is_deleted() {
                    continue;
                }
                locator.clear();
                page.copy_key(slot, &mut locator);
                let newest = match Header::of(&value).is_out_of_line() {
                    true => {
                        record.clear();
                        match self.current_record(table, &locator, &mut record)? {
                            true => &record[..],
                            false => continue,
                        }
                    }
                    false => body(&value),
                };
                Entry::each(&build.keys, newest, &locator, |entry| {
                    check_length(pool.page_bytes(), &entry)?;
                    let tag = entry.sql as u16 | if entry.has_null { HAS_NULL } else { 0 };
                    sorter.add(&entry.key, tag).map_err(io_error)
                })?;
            }
            build.read.fetch_add(page.count() as u64, Ordering::Relaxed);
            self.cancel.count_work(page.count() as u64);
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            build.check()?;
            if !page.upper_fence(&mut start) {
                return Ok(());
            }
        }
    }

    /// The record of a row's newest version, which is out of line: read under its leaf's latch, so that it is not freed in the meantime.
    fn current_record(
        &self,
        table: &Table,
        locator: &[u8],
        record: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        let pool = &*self.shared.system.pool;
        let leaf = table.clustered.shared_leaf(pool, Seek::At(locator)).map_err(io_error)?;
        let (slot, found) = leaf.page().search(locator);
        let mut value = Vec::new();
        if found {
            leaf.page().copy_value(slot, &mut value);
        }
        if !found || Header::of(&value).is_deleted() {
            return Ok(false);
        }
        append_record(pool, &value, record).map_err(io_error)?;
        Ok(true)
    }

    /// Applies the changes noted so far.
    fn catch_up(&mut self, build: &IndexBuild) -> EngineResult<()> {
        let shared = self.shared.clone();
        let (pool, tree) = (&*shared.system.pool, build.tree);
        let mut bytes = Vec::new();
        build.log.take(&mut bytes).map_err(io_error)?;
        let mut reader = Reader::new(&bytes);
        while !reader.is_empty() {
            let (change, entry) =
                read_change(&mut reader).ok_or_else(|| Error::internal("a damaged side log"))?;
            match change {
                Change::Put => {
                    shared.room_for(ROW_PAGES)?;
                    // No transaction reads the tree yet, so no range of it is locked.
                    let _always = put_entry(pool, tree, &entry, 0, || Ok(()))?;
                    self.look_for_equal(build, &entry)?;
                }
                Change::Mark => mark_entry(pool, tree, &entry.key, 0).map_err(io_error)?,
                Change::Remove => {
                    remove_entry(pool, tree, &entry.key, RemoveEntry::Any).map_err(io_error)?;
                }
            }
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
        }
        shared.brake();
        build.check()
    }

    fn look_for_equal(&self, build: &IndexBuild, entry: &Entry) -> EngineResult<()> {
        if !build.def.unique || entry.has_null {
            return Ok(());
        }
        let pool = &self.shared.system.pool;
        let live = live_entries(pool, build.tree, entry.sql_key(), 2).map_err(io_error)?;
        match live.len() {
            2 => build.suspect(entry.sql_key(), &entry.key[entry.sql..]),
            _ => Ok(()),
        }
    }
}
