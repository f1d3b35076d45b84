//! Filling an empty tree from sorted records, bottom up. No other thread uses the tree at that time.
//!
//! Pages go out in groups of one mini-transaction, which the caller logs with the numbers of the pages: until the root is set, they hang
//! on nothing. The meaning of a record is the caller's.

use std::io;
use std::sync::atomic::AtomicU64;

use bufpool::Pool;
use page::{Fences, NodeBuilder, PageNo, PageRef, SLOT_BYTES, record_bytes};

use crate::mtr::Mtr;
use crate::smo::{capacity, node_image, separator};
use crate::tree::{Tree, record_bytes_max, record_bytes_max_for};

/// Pages of one mini-transaction.
const GROUP_PAGES: usize = 8;

/// The node of a level that is being filled.
#[derive(Default)]
struct Level {
    records: NodeBuilder,
    lower: Option<Vec<u8>>,
    /// Bytes of the records if no prefix is shared.
    bytes: usize,
    /// `bytes` at which to check again whether the node is full.
    look_at: usize,
    has_nodes: bool,
}

/// A node that waits for its page.
struct Ready {
    level: usize,
    records: NodeBuilder,
    count: usize,
    fences: Fences,
}

/// Builds a tree that consists of an empty root leaf.
pub struct TreeBuilder {
    tree: Tree,
    page_bytes: usize,
    levels: Vec<Level>,
    ready: Vec<Ready>,
    /// Bytes that a node has room for, and those of one that is full enough.
    room: usize,
    fill: usize,
    record_max: usize,
    /// The transaction that leaves name as the last one that changed them.
    max_txn: u64,
}

/// The content of the root, written after everything below it.
pub struct Root {
    tree: Tree,
    image: Box<[AtomicU64]>,
    max_txn: u64,
}

impl Root {
    /// Sets the root unless `may_fill` refuses, which it decides under the root's latch; `log` commits the change, by which the tree gets its
    /// records.
    ///
    /// # Errors
    /// I/O.
    pub fn put<'p, E>(
        &self,
        pool: &'p Pool,
        may_fill: impl FnOnce() -> Result<(), E>,
        log: impl FnOnce(Mtr<'p>),
    ) -> io::Result<Result<(), E>> {
        let mut mtr = Mtr::new(pool);
        let place = mtr.add(pool.exclusive(self.tree.root)?);
        if let Err(refusal) = may_fill() {
            return Ok(Err(refusal));
        }
        mtr.edit(place).put_image(PageRef::new(&self.image));
        mtr.edit(place).set_max_txn(self.max_txn);
        log(mtr);
        Ok(Ok(()))
    }
}

impl TreeBuilder {
    /// Nothing yet.
    pub fn new(pool: &Pool, tree: Tree) -> TreeBuilder {
        let room = capacity(pool);
        // A tenth is left for later inserts.
        let (levels, ready) = (Vec::new(), Vec::new());
        let page_bytes = pool.page_bytes();
        let (fill, max_txn) = (room * 9 / 10, 0);
        let record_max = record_bytes_max(page_bytes);
        TreeBuilder { tree, page_bytes, levels, ready, room, fill, record_max, max_txn }
    }

    /// No key has more than `key_bytes`: records may be as large as [`record_bytes_max_for`] says.
    pub fn with_keys(self, key_bytes: usize) -> TreeBuilder {
        TreeBuilder { record_max: record_bytes_max_for(self.page_bytes, key_bytes), ..self }
    }

    /// Leaves name a transaction as the one that changed them last.
    pub fn written_by(self, max_txn: u64) -> TreeBuilder {
        TreeBuilder { max_txn, ..self }
    }

    /// Appends a record with a key above all earlier ones. False when it is too large for a page. `log` commits each group of pages.
    ///
    /// # Errors
    /// I/O.
    pub fn push<'p>(
        &mut self,
        pool: &'p Pool,
        (key, value): (&[u8], &[u8]),
        log: impl FnMut(Mtr<'p>, &[PageNo]),
    ) -> io::Result<bool> {
        if key.len() + value.len() > self.record_max {
            return Ok(false);
        }
        debug_assert!(
            self.levels
                .first()
                .is_none_or(|leaf| leaf.lower.as_deref().is_none_or(|low| low <= key)),
            "records come in the order of their keys"
        );
        self.put(0, key, value);
        if self.ready.len() >= GROUP_PAGES {
            self.write_group(pool, log)?;
        }
        Ok(true)
    }

    fn put(&mut self, at: usize, key: &[u8], value: &[u8]) {
        let fill = self.fill;
        if self.levels.len() == at {
            self.levels.push(Level { look_at: fill, ..Level::default() });
        }
        let level = &mut self.levels[at];
        let bytes = record_bytes(key.len(), value.len()) + SLOT_BYTES;
        if level.bytes + bytes > level.look_at && level.records.len() > 1 {
            let fences = Fences { lower: level.lower.clone(), upper: level.fence(at, key) };
            let used = level.records.bytes_needed(0..level.records.len(), &fences);
            if used + bytes > fill {
                self.close(at, Some(key));
            } else {
                level.look_at = level.bytes + (fill - used);
            }
        }
        let level = &mut self.levels[at];
        level.records.push(key, value);
        level.bytes += bytes;
    }

    /// Takes the node of a level as full; `next` is the first key after it. Records that do not fit stay.
    fn close(&mut self, at: usize, next: Option<&[u8]>) {
        let room = self.room;
        let level = &mut self.levels[at];
        let mut count = level.records.len();
        let fences = loop {
            let upper = match count < level.records.len() {
                true => Some(level.cut(at, count, level.records.key(count))),
                false => next.map(|next| level.cut(at, count, next)),
            };
            let fences = Fences { lower: level.lower.clone(), upper };
            if level.records.bytes_needed(0..count, &fences) <= room || count == 1 {
                break fences;
            }
            count -= (count / 8).max(1);
        };
        let records = std::mem::take(&mut level.records);
        let rest: Vec<(Vec<u8>, Vec<u8>)> = (count..records.len())
            .map(|index| (records.key(index).to_vec(), records.value(index).to_vec()))
            .collect();
        level.lower = fences.upper.clone();
        (level.bytes, level.look_at, level.has_nodes) = (0, self.fill, true);
        self.ready.push(Ready { level: at, records, count, fences });
        rest.iter().for_each(|(key, value)| self.put(at, key, value));
    }

    /// Gives the waiting nodes their pages and their parents the numbers of these.
    fn write_group<'p>(
        &mut self,
        pool: &'p Pool,
        mut log: impl FnMut(Mtr<'p>, &[PageNo]),
    ) -> io::Result<()> {
        while !self.ready.is_empty() {
            let mut mtr = Mtr::new(pool);
            let group: Vec<Ready> = self.ready.drain(..self.ready.len().min(GROUP_PAGES)).collect();
            let mut numbers = Vec::with_capacity(group.len());
            for node in group {
                let place = mtr.allocate()?;
                let no = mtr.number(place);
                let identity = (no, node.level as u8, self.tree.id);
                let page_bytes = self.page_bytes;
                let image =
                    node_image(page_bytes, &node.records, identity, &node.fences, 0..node.count);
                mtr.edit(place).put_image(PageRef::new(&image));
                mtr.edit(place).set_max_txn(self.max_txn);
                numbers.push(no);
                let lower = node.fences.lower.unwrap_or_default();
                self.put(node.level + 1, &lower, &u64::from(no.0).to_le_bytes());
            }
            log(mtr, &numbers);
        }
        Ok(())
    }

    /// Writes the remaining nodes except the root; `None` if there was no record.
    ///
    /// # Errors
    /// I/O.
    pub fn finish<'p>(
        mut self,
        pool: &'p Pool,
        mut log: impl FnMut(Mtr<'p>, &[PageNo]),
    ) -> io::Result<Option<Root>> {
        let mut at = 0;
        while at < self.levels.len() {
            // A last node alone on its level is the root, if it fits.
            let level = &self.levels[at];
            let all = 0..level.records.len();
            let whole = Fences::default();
            let fits = level.records.bytes_needed(all.clone(), &whole) <= self.room;
            if !level.has_nodes && self.ready.is_empty() && fits {
                let identity = (self.tree.root, at as u8, self.tree.id);
                let image = node_image(self.page_bytes, &level.records, identity, &whole, all);
                return Ok(Some(Root { tree: self.tree, image, max_txn: self.max_txn }));
            }
            while !self.levels[at].records.is_empty() {
                self.close(at, None);
            }
            self.write_group(pool, &mut log)?;
            at += 1;
        }
        Ok(None)
    }
}

impl Level {
    /// The fence between record `count - 1` and the next key.
    fn cut(&self, at: usize, count: usize, next: &[u8]) -> Vec<u8> {
        match at {
            0 => separator(self.records.key(count - 1), next),
            _ => next.to_vec(),
        }
    }

    fn fence(&self, at: usize, next: &[u8]) -> Option<Vec<u8>> {
        Some(self.cut(at, self.records.len(), next))
    }
}
