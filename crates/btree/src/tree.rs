//! A tree and the ways down it: without latches to any level, to a shared or exclusive leaf, and copies of leaves for scans.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bufpool::{Exclusive, Optimistic, Pool, Shared};
use page::{Fences, Kind, PageNo, PageRef, private_page};
use sys::model::breaks;

use crate::mtr::{KIND_PAGES, Mtr};

/// More levels than any tree can have: 2^64 rows at four a page need 32.
const LEVELS_MAX: usize = 64;
/// Failed attempts after which a descent yields to other threads.
const RESTARTS_BEFORE_YIELD: usize = 8;

/// Largest key plus value that a leaf takes, however long the keys of its tree are: two records and two fences always fit a page.
pub fn record_bytes_max(page_bytes: usize) -> usize {
    page_bytes / 4
}

/// The same for a tree whose keys never have more than `key_bytes`: nearly half a page when they are short.
pub fn record_bytes_max_for(page_bytes: usize, key_bytes: usize) -> usize {
    /// Key and value begin at multiples of 8.
    const PADDING_MAX: usize = 2 * 7;
    let half = (page_bytes - page::HEADER_BYTES) / 2;
    let others = key_bytes.next_multiple_of(8) + page::SLOT_BYTES + page::record_bytes(0, 0);
    half.saturating_sub(others + PADDING_MAX).max(record_bytes_max(page_bytes))
}

/// Where a tree is. Plain data: the root never moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Root page.
    pub root: PageNo,
    /// Written into each page.
    pub id: u64,
}

/// Where in a tree.
#[derive(Clone, Copy, Debug)]
pub enum Seek<'a> {
    /// The leaf that covers the key.
    At(&'a [u8]),
    /// The leaf that covers the keys just below.
    Below(&'a [u8]),
    /// The leftmost leaf.
    First,
    /// The rightmost leaf.
    Last,
}

impl Seek<'_> {
    fn child_slot(self, page: PageRef<'_>) -> usize {
        match self {
            Seek::At(key) => page.child_slot(key),
            Seek::Below(key) => page.child_slot_below(Some(key)),
            Seek::First => 0,
            Seek::Last => page.child_slot_below(None),
        }
    }
}

/// Makes an empty tree.
///
/// # Errors
/// I/O.
pub fn create_tree(mtr: &mut Mtr<'_>, id: u64) -> io::Result<Tree> {
    let place = mtr.allocate()?;
    let root = mtr.number(place);
    mtr.edit(place).format_node(root, 0, id, &Fences::default());
    Ok(Tree { root, id })
}

pub(crate) fn damaged(tree: Tree) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("tree at page {} is damaged", tree.root.0))
}

/// Whether `key` belongs to the last child of its parent or beyond: a tree that is being emptied (`empty_tree`) lacks what came after it.
fn is_last_child(parent: Option<Optimistic<'_>>, key: &[u8]) -> bool {
    parent.is_some_and(|parent| {
        let page = parent.page();
        page.child_slot(key) + 1 == page.count()
    })
}

impl Tree {
    /// One attempt at a coupled descent (T3) to `level`: the node and its parent. `None` when a page changed on the way.
    fn try_descend<'p>(
        self,
        pool: &'p Pool,
        seek: Seek<'_>,
        level: u8,
        waiting: Waiting,
    ) -> io::Result<Option<(Option<Optimistic<'p>>, Optimistic<'p>)>> {
        let look = |no: PageNo, above: u8| match waiting {
            Waiting::Allowed => pool.optimistic(no).map(Some),
            Waiting::Passing if above == 1 => pool.optimistic_once(no).map(Some),
            Waiting::Passing => pool.optimistic(no).map(Some),
            Waiting::Forbidden => pool.try_optimistic(no),
        };
        let mut parent = None;
        let Some(mut node) = look(self.root, 0)? else { return Ok(None) };
        for _ in 0..LEVELS_MAX {
            let page = node.page();
            let (kind, here) = (page.kind(), page.level());
            if here <= level || kind != Kind::Node {
                return match node.validate() {
                    true if kind == Kind::Node && here == level => Ok(Some((parent, node))),
                    true => Err(damaged(self)),
                    false => Ok(None),
                };
            }
            let child = page.child(seek.child_slot(page));
            if !node.validate() {
                return Ok(None);
            }
            let Some(next) = look(child, here)? else { return Ok(None) };
            if !breaks("T3") && !node.validate() {
                return Ok(None);
            }
            parent = Some(node);
            node = next;
        }
        Err(damaged(self))
    }

    /// The node at `level` and its parent, both unlatched.
    ///
    /// # Errors
    /// I/O.
    #[inline]
    pub(crate) fn descend<'p>(
        self,
        pool: &'p Pool,
        seek: Seek<'_>,
        level: u8,
    ) -> io::Result<(Option<Optimistic<'p>>, Optimistic<'p>)> {
        let mut restarts = 0;
        loop {
            if let Some(found) = self.try_descend(pool, seek, level, Waiting::Allowed)? {
                return Ok(found);
            }
            restarts += 1;
            if restarts > RESTARTS_BEFORE_YIELD {
                pool.give_way();
            }
        }
    }

    /// Height of the root.
    ///
    /// # Errors
    /// I/O.
    pub fn height(self, pool: &Pool) -> io::Result<u8> {
        Ok(pool.shared(self.root)?.page().level())
    }

    /// Appends the value of `key` to `out`. Takes no latch and writes no shared memory.
    ///
    /// # Errors
    /// I/O.
    #[inline]
    pub fn get(self, pool: &Pool, key: &[u8], out: &mut Vec<u8>) -> io::Result<bool> {
        let start = out.len();
        loop {
            let (_, leaf) = self.descend(pool, Seek::At(key), 0)?;
            let page = leaf.page();
            let (slot, found) = page.search(key);
            if found {
                page.copy_value(slot, out);
            }
            if leaf.validate() || breaks("validate before use") {
                return Ok(found);
            }
            out.truncate(start);
        }
    }

    /// Like `get`, for keys in ascending order: `near` is the leaf of the key before, of which most keys of a long list need no descent.
    ///
    /// # Errors
    /// I/O.
    #[inline]
    pub fn get_ascending<'p>(
        self,
        pool: &'p Pool,
        key: &[u8],
        near: &mut Option<Optimistic<'p>>,
        out: &mut Vec<u8>,
    ) -> io::Result<bool> {
        let start = out.len();
        if let Some(leaf) = near.take() {
            let page = leaf.page();
            let (slot, found) = page.search(key);
            // A greater key on the page: the key, not below one that the leaf covers, belongs to it too.
            let is_covered = found || slot < page.count();
            if found {
                page.copy_value(slot, out);
            }
            if is_covered && (leaf.validate() || breaks("validate before use")) {
                *near = Some(leaf);
                return Ok(found);
            }
            out.truncate(start);
        }
        loop {
            let (_, leaf) = self.descend(pool, Seek::At(key), 0)?;
            let page = leaf.page();
            let (slot, found) = page.search(key);
            if found {
                page.copy_value(slot, out);
            }
            if leaf.validate() || breaks("validate before use") {
                *near = Some(leaf);
                return Ok(found);
            }
            out.truncate(start);
        }
    }

    /// Like `get`, for a caller that may change the value next. `None` if no such key exists.
    ///
    /// # Errors
    /// I/O.
    pub fn find(self, pool: &Pool, key: &[u8], out: &mut Vec<u8>) -> io::Result<Option<LeafPlace>> {
        let start = out.len();
        loop {
            let (_, leaf) = self.descend(pool, Seek::At(key), 0)?;
            let page = leaf.page();
            let (slot, found) = page.search(key);
            if found {
                page.copy_value(slot, out);
            }
            if leaf.validate() || breaks("validate before use") {
                let (number, version) = (leaf.number(), leaf.version());
                return Ok(found.then_some(LeafPlace { number, version, slot }));
            }
            out.truncate(start);
        }
    }

    /// The leaf at `seek` for a scan of many, without a latch: data read from it is valid if it validates afterwards. Requests
    /// read-ahead of the next leaves now and then.
    ///
    /// # Errors
    /// I/O.
    pub fn look_at_leaf<'p>(self, pool: &'p Pool, seek: Seek<'_>) -> io::Result<Optimistic<'p>> {
        loop {
            let Some((parent, leaf)) = self.try_descend(pool, seek, 0, Waiting::Passing)? else {
                pool.give_way();
                continue;
            };
            if let Some(parent) = parent {
                let page = parent.page();
                let (slot, count) = (seek.child_slot(page), page.count());
                // In portions: a scan passes every slot.
                if slot.is_multiple_of(AHEAD_LEAVES / 2) {
                    let to = (slot + 1 + AHEAD_LEAVES).min(count);
                    let children: Vec<PageNo> = (slot + 1..to).map(|at| page.child(at)).collect();
                    if parent.validate() {
                        pool.read_ahead(children.into_iter());
                    }
                }
            }
            return Ok(leaf);
        }
    }

    /// Requests the leaves that cover some keys, each once if keys come in order. Waits for inner nodes only, and for those only if
    /// threads for reading ahead exist.
    pub fn read_ahead<'k>(self, pool: &Pool, keys: impl Iterator<Item = &'k [u8]>) {
        if !pool.reads_ahead() {
            return;
        }
        let mut leaves: Vec<PageNo> = Vec::new();
        for key in keys {
            // A root that is a leaf has no parent; a caller that needs the leaf meets an error here again.
            let Ok((_, parent)) = self.descend(pool, Seek::At(key), 1) else { break };
            let page = parent.page();
            let leaf = page.child(page.child_slot(key));
            if parent.validate() && leaves.last() != Some(&leaf) {
                leaves.push(leaf);
            }
        }
        pool.read_ahead(leaves.into_iter());
    }

    /// The leaf, latched shared.
    ///
    /// # Errors
    /// I/O.
    pub fn shared_leaf<'p>(self, pool: &'p Pool, seek: Seek<'_>) -> io::Result<Shared<'p>> {
        loop {
            let (_, leaf) = self.descend(pool, seek, 0)?;
            if let Some(shared) = leaf.share() {
                return Ok(shared);
            }
        }
    }

    /// As `shared_leaf` for a caller that holds another leaf (T7): `None` when it would have to wait.
    ///
    /// # Errors
    /// I/O.
    pub fn try_shared_leaf<'p>(
        self,
        pool: &'p Pool,
        seek: Seek<'_>,
    ) -> io::Result<Option<Shared<'p>>> {
        for _ in 0..RESTARTS_BEFORE_YIELD {
            let found = self.try_descend(pool, seek, 0, Waiting::Forbidden)?;
            if let Some(shared) = found.and_then(|(_, leaf)| leaf.share()) {
                return Ok(Some(shared));
            }
        }
        // The page is being written, or not in memory: a caller that releases its own leaf and comes again without it waits, or reads the page.
        Ok(None)
    }

    /// The leaf, latched exclusively.
    ///
    /// # Errors
    /// I/O.
    pub fn exclusive_leaf<'p>(self, pool: &'p Pool, key: &[u8]) -> io::Result<Exclusive<'p>> {
        loop {
            let (parent, leaf) = self.descend(pool, Seek::At(key), 0)?;
            if let Some(exclusive) = leaf.upgrade() {
                sys::unmodelled! {
                    debug_assert!(
                        exclusive.page().covers(key) || is_last_child(parent, key),
                        "a descent ends at the key's leaf (T3)"
                    );
                }
                return Ok(exclusive);
            }
        }
    }

    /// Like `exclusive_leaf`, for callers that often come back to the same leaf (T11).
    ///
    /// # Errors
    /// I/O.
    pub fn exclusive_leaf_near<'p>(
        self,
        pool: &'p Pool,
        key: &[u8],
        near: &mut NearLeaf,
    ) -> io::Result<Exclusive<'p>> {
        if let Some(look) = self.look_near(pool, key, near)?
            && let Some(exclusive) = look.upgrade()
        {
            return Ok(exclusive);
        }
        loop {
            let (_, leaf) = self.descend(pool, Seek::At(key), 0)?;
            if let Some(exclusive) = leaf.upgrade() {
                sys::unmodelled! {
                    debug_assert!(
                        exclusive.page().covers(key),
                        "a descent ends at the key's leaf (T3)"
                    );
                }
                near.note(leaf.number());
                return Ok(exclusive);
            }
        }
    }

    /// Like `shared_leaf`, for callers that often come back to the same leaf (T11).
    ///
    /// # Errors
    /// I/O.
    pub fn shared_leaf_near<'p>(
        self,
        pool: &'p Pool,
        key: &[u8],
        near: &mut NearLeaf,
    ) -> io::Result<Shared<'p>> {
        if let Some(look) = self.look_near(pool, key, near)?
            && let Some(shared) = look.share()
        {
            return Ok(shared);
        }
        loop {
            let (_, leaf) = self.descend(pool, Seek::At(key), 0)?;
            if let Some(shared) = leaf.share() {
                near.note(leaf.number());
                return Ok(shared);
            }
        }
    }

    /// The leaf that the caller used last, if it seems to be the key's; latching it verifies that.
    fn look_near<'p>(
        self,
        pool: &'p Pool,
        key: &[u8],
        near: &mut NearLeaf,
    ) -> io::Result<Option<Optimistic<'p>>> {
        let expected = std::mem::take(&mut near.expected);
        if !expected && !near.came_back {
            return Ok(None);
        }
        Ok(pool.try_optimistic(near.number)?.filter(|look| {
            let page = look.page();
            let is_own = page.kind() == Kind::Node && page.level() == 0 && page.tree() == self.id;
            is_own && page.covers(key)
        }))
    }

    /// Inserts or replaces, for trees with locking by the caller. False if the record is too large.
    ///
    /// # Errors
    /// I/O.
    pub fn put(self, pool: &Pool, key: &[u8], value: &[u8]) -> io::Result<bool> {
        if key.len() + value.len() > record_bytes_max(pool.page_bytes()) {
            return Ok(false);
        }
        loop {
            let mut mtr = Mtr::new(pool);
            let place = mtr.add(self.exclusive_leaf(pool, key)?);
            let (slot, found) = mtr.page(place).search(key);
            let mut edit = mtr.edit(place);
            let done = match found {
                true => edit.replace_value(slot, value),
                false => edit.insert(slot, key, value),
            };
            if done {
                mtr.commit(KIND_PAGES, &[]);
                return Ok(true);
            }
            drop(mtr);
            crate::make_room(pool, self, key)?;
        }
    }

    /// Removes a key, for trees with locking by the caller. False if it does not exist.
    ///
    /// # Errors
    /// I/O.
    pub fn remove(self, pool: &Pool, key: &[u8]) -> io::Result<bool> {
        let mut mtr = Mtr::new(pool);
        let place = mtr.add(self.exclusive_leaf(pool, key)?);
        let (slot, found) = mtr.page(place).search(key);
        if !found {
            return Ok(false);
        }
        mtr.edit(place).remove(slot);
        let small = crate::smo::is_small(mtr.page(place));
        mtr.commit(KIND_PAGES, &[]);
        if small {
            crate::merge_if_small(pool, self, key)?;
        }
        Ok(true)
    }
}

/// Where a key was found; it is there as long as the leaf has the same version (B2).
#[derive(Clone, Copy, Debug)]
pub struct LeafPlace {
    number: PageNo,
    version: u64,
    slot: usize,
}

impl LeafPlace {
    /// The slot of the key in the leaf.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The leaf, latched exclusively, when it has not changed since the key was found.
    ///
    /// # Errors
    /// I/O.
    pub fn exclusive<'p>(&self, pool: &'p Pool) -> io::Result<Option<Exclusive<'p>>> {
        let look = pool.try_optimistic(self.number)?;
        Ok(look.filter(|look| look.version() == self.version).and_then(Optimistic::upgrade))
    }
}

/// The leaf that a caller had last. It is tried first when it was the one before, too, or when the caller says so: looking at a leaf in vain
/// costs more than an inner node.
#[derive(Clone, Copy, Debug)]
pub struct NearLeaf {
    number: PageNo,
    came_back: bool,
    expected: bool,
}

impl NearLeaf {
    /// The next key is most likely on the last leaf: a statement that changes a row has read it.
    pub fn expect(&mut self) {
        self.expected = true;
    }

    fn note(&mut self, number: PageNo) {
        self.came_back = self.number == number;
        self.number = number;
    }
}

impl Default for NearLeaf {
    fn default() -> Self {
        NearLeaf { number: PageNo::META, came_back: false, expected: false }
    }
}

#[derive(Clone, Copy)]
enum Waiting {
    Allowed,
    /// Like `Allowed`, for a leaf that is read once: scans do not push other pages out.
    Passing,
    Forbidden,
}

/// Leaves that a scan reads ahead.
const AHEAD_LEAVES: usize = 32;

/// A private copy of a leaf, for scans.
pub struct LeafCopy {
    words: Box<[AtomicU64]>,
    /// The copied page; the meta page means none.
    number: PageNo,
    version: u64,
    /// The parent of the leaves that are read ahead, and the slot up to which they were requested.
    ahead: (PageNo, usize),
}

impl LeafCopy {
    /// Memory for a copy.
    pub fn new(pool: &Pool) -> LeafCopy {
        let words = private_page(pool.page_bytes());
        LeafCopy { words, number: PageNo::META, version: 0, ahead: (PageNo::META, 0) }
    }

    /// The copied page.
    pub fn page(&self) -> PageRef<'_> {
        PageRef::new(&self.words)
    }

    /// Copies the leaf at `seek`.
    ///
    /// # Errors
    /// I/O.
    pub fn load(&mut self, pool: &Pool, tree: Tree, seek: Seek<'_>) -> io::Result<()> {
        self.load_unless(pool, tree, seek, |_| false).map(drop)
    }

    /// Calls `read` with the leaf at `seek` while it does not change, and copies the leaf if that returns false. True if no copy was made.
    /// `read` waits for nothing.
    ///
    /// # Errors
    /// I/O.
    pub fn load_unless(
        &mut self,
        pool: &Pool,
        tree: Tree,
        seek: Seek<'_>,
        read: impl FnOnce(PageRef<'_>) -> bool,
    ) -> io::Result<bool> {
        loop {
            let Some((parent, leaf)) = tree.try_descend(pool, seek, 0, Waiting::Passing)? else {
                pool.give_way();
                continue;
            };
            if let Some(parent) = parent {
                self.read_ahead(pool, seek, parent);
            }
            let (number, version) = (leaf.number(), leaf.version());
            let Some(shared) = leaf.share() else { continue };
            if read(shared.page()) {
                self.number = PageNo::META;
                return Ok(true);
            }
            shared.copy_to(&self.words);
            (self.number, self.version) = (number, version);
            return Ok(false);
        }
    }

    /// Requests the leaves after the one at `seek`, from the second leaf of the same parent on: that makes it a scan.
    fn read_ahead(&mut self, pool: &Pool, seek: Seek<'_>, parent: Optimistic<'_>) {
        if matches!(seek, Seek::Below(_) | Seek::Last) {
            return;
        }
        let page = parent.page();
        let (slot, count) = (seek.child_slot(page), page.count());
        if self.ahead.0 != parent.number() {
            self.ahead = (parent.number(), slot + 1);
            return;
        }
        let (from, to) = (self.ahead.1.max(slot + 1), (slot + 1 + AHEAD_LEAVES).min(count));
        // In portions, so that most leaves cost two compares.
        if from + AHEAD_LEAVES / 2 > to && to < count || from >= to {
            return;
        }
        let children: Vec<PageNo> = (from..to).map(|slot| page.child(slot)).collect();
        if parent.validate() {
            pool.read_ahead(children.into_iter());
            self.ahead.1 = to;
        }
    }

    /// Whether a copy exists and the leaf has not changed since.
    ///
    /// # Errors
    /// I/O.
    pub fn is_current(&self, pool: &Pool) -> io::Result<bool> {
        if self.number == PageNo::META {
            return Ok(false);
        }
        let look = pool.try_optimistic(self.number)?;
        Ok(look.is_some_and(|look| look.version() == self.version))
    }

    /// Word `index`, for tests.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Relaxed)
    }
}
