//! Verifying a whole tree. The nodes above the current one stay latched, so merges and splits elsewhere do not disturb it.

use std::io;

use bufpool::Pool;
use page::{Fences, Kind, PageNo};

use crate::tree::Tree;

/// The result of a walk.
#[derive(Clone, Debug, Default)]
pub struct TreeShape {
    /// Pages, root included, if requested.
    pub pages: Vec<PageNo>,
    /// Leaves among them.
    pub leaves: u64,
    /// Records in leaves.
    pub records: u64,
    /// The faults.
    pub wrong: Vec<String>,
}

/// Walks the tree and checks every invariant of its structure.
///
/// # Errors
/// I/O.
pub fn check_tree(pool: &Pool, tree: Tree) -> io::Result<TreeShape> {
    let mut pages = Vec::new();
    let shape = check_tree_with(pool, tree, &mut |no| pages.push(no))?;
    Ok(TreeShape { pages, ..shape })
}

/// Like `check_tree`; the pages are shown instead of kept.
///
/// # Errors
/// I/O.
pub fn check_tree_with(
    pool: &Pool,
    tree: Tree,
    on_page: &mut dyn FnMut(PageNo),
) -> io::Result<TreeShape> {
    let mut walk = Walk { pool, tree, on_page, shape: TreeShape::default() };
    walk.visit(tree.root, None, &Fences::default())?;
    Ok(walk.shape)
}

/// Faults reported for one tree at most; more of them say nothing new.
const WRONG_MAX: usize = 1000;

struct Walk<'w> {
    pool: &'w Pool,
    tree: Tree,
    on_page: &'w mut dyn FnMut(PageNo),
    shape: TreeShape,
}

impl Walk<'_> {
    fn find(&mut self, no: PageNo, what: &str) {
        if self.shape.wrong.len() < WRONG_MAX {
            self.shape.wrong.push(format!("page {}: {what}", no.0));
        }
    }

    /// `level`: where the parent says that the node is; the root says it itself.
    fn visit(&mut self, no: PageNo, level: Option<u8>, fences: &Fences) -> io::Result<()> {
        let pool = self.pool;
        let guard = pool.shared(no)?;
        let page = guard.page();
        let level = level.unwrap_or(page.level());
        (self.on_page)(no);
        let is_right =
            page.kind() == Kind::Node && page.level() == level && page.tree() == self.tree.id;
        if !is_right {
            self.find(no, &format!("not a node of this tree at level {level}"));
            return Ok(());
        }
        if page.fences() != *fences {
            self.find(no, "fences differ from the parent's separators");
        }
        let room = WRONG_MAX.saturating_sub(self.shape.wrong.len());
        self.shape.wrong.extend(page.check_node().into_iter().take(room));
        if level == 0 {
            self.shape.leaves += 1;
            self.shape.records += page.count() as u64;
            return Ok(());
        }
        if page.count() == 0 {
            self.find(no, "inner node without children");
        }
        for slot in 0..page.count() {
            let key_at = |slot: usize| {
                let mut key = Vec::new();
                page.copy_key(slot, &mut key);
                key
            };
            let lower = match slot {
                0 => fences.lower.clone(),
                _ => Some(key_at(slot)),
            };
            if slot == 0 && key_at(0) != fences.lower.clone().unwrap_or_default() {
                self.find(no, "first separator is not the fence");
            }
            let upper = match slot + 1 < page.count() {
                true => Some(key_at(slot + 1)),
                false => fences.upper.clone(),
            };
            self.visit(page.child(slot), Some(level - 1), &Fences { lower, upper })?;
        }
        Ok(())
    }
}

/// Sizes of a tree, without reading its leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeEstimate {
    /// Pages.
    pub pages: u64,
    /// Records, deleted ones included.
    pub records: u64,
}

/// Leaves read for the average number of records.
const SAMPLE_LEAVES: usize = 8;

/// Estimates the size of a tree from its inner nodes and a few leaves; exact for one leaf.
///
/// # Errors
/// I/O.
pub fn estimate_tree(pool: &Pool, tree: Tree) -> io::Result<TreeEstimate> {
    if tree.height(pool)? == 0 {
        let records = pool.shared(tree.root)?.page().count() as u64;
        return Ok(TreeEstimate { pages: 1, records });
    }
    let (mut inner, mut leaves) = (0, 0);
    let (mut sampled, mut records) = (0, 0);
    let mut start = Vec::new();
    loop {
        let (_, node) = tree.descend(pool, crate::Seek::At(&start), 1)?;
        let Some(node) = node.share() else { continue };
        inner += 1;
        leaves += node.page().count() as u64;
        let sample: Vec<PageNo> = match sampled {
            0 => (0..node.page().count().min(SAMPLE_LEAVES))
                .map(|at| node.page().child(at))
                .collect(),
            _ => Vec::new(),
        };
        let more = node.page().upper_fence(&mut start);
        drop(node);
        for leaf in sample {
            sampled += 1;
            records += pool.shared(leaf)?.page().count() as u64;
        }
        if !more {
            break;
        }
    }
    let records = records * leaves / sampled.max(1);
    Ok(TreeEstimate { pages: inner + leaves, records })
}

/// The share of a tree's records below `key`, from one descent.
///
/// # Errors
/// I/O.
pub fn fraction_below(pool: &Pool, tree: Tree, key: &[u8]) -> io::Result<f64> {
    'restart: loop {
        let mut node = pool.optimistic(tree.root)?;
        let (mut below, mut share) = (0.0, 1.0);
        loop {
            let page = node.page();
            let (level, count) = (page.level(), page.count().max(1) as f64);
            let slot = match level {
                0 => page.search(key).0,
                _ => page.child_slot(key),
            };
            let child = page.child(slot);
            if !node.validate() {
                continue 'restart;
            }
            below += share * slot as f64 / count;
            if level == 0 {
                return Ok(below);
            }
            share /= count;
            let next = pool.optimistic(child)?;
            if !node.validate() {
                continue 'restart;
            }
            node = next;
        }
    }
}
