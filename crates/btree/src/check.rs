//! Verifying a whole tree that nobody changes.

use std::io;

use bufpool::Pool;
use page::{Fences, Kind, PageNo};

use crate::tree::Tree;

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct TreeShape {
    /// Pages, root included.
    pub pages: Vec<PageNo>,
    /// Leaves among them.
    pub leaves: u64,
    /// Records in leaves.
    pub records: u64,
    /// What is wrong.
    pub wrong: Vec<String>,
}

/// Walks the tree and checks every invariant of its structure.
///
/// # Errors
/// I/O.
pub fn check_tree(pool: &Pool, tree: Tree) -> io::Result<TreeShape> {
    let mut shape = TreeShape::default();
    let level = tree.height(pool)?;
    walk(pool, tree, tree.root, level, &Fences::default(), &mut shape)?;
    Ok(shape)
}

fn walk(
    pool: &Pool,
    tree: Tree,
    no: PageNo,
    level: u8,
    fences: &Fences,
    shape: &mut TreeShape,
) -> io::Result<()> {
    let guard = pool.shared(no)?;
    let page = guard.page();
    shape.pages.push(no);
    let is_right = page.kind() == Kind::Node && page.level() == level && page.tree() == tree.id;
    if !is_right {
        shape.wrong.push(format!("page {}: not a node of this tree at level {level}", no.0));
        return Ok(());
    }
    if page.fences() != *fences {
        shape.wrong.push(format!("page {}: fences differ from the parent's separators", no.0));
    }
    shape.wrong.extend(page.check_node());
    if level == 0 {
        shape.leaves += 1;
        shape.records += page.count() as u64;
        return Ok(());
    }
    if page.count() == 0 {
        shape.wrong.push(format!("page {}: inner node without children", no.0));
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
            shape.wrong.push(format!("page {}: first separator is not the fence", no.0));
        }
        let upper = match slot + 1 < page.count() {
            true => Some(key_at(slot + 1)),
            false => fences.upper.clone(),
        };
        walk(pool, tree, page.child(slot), level - 1, &Fences { lower, upper }, shape)?;
    }
    Ok(())
}

/// Sizes of a tree, without reading its leaves.
#[derive(Clone, Copy, Debug, Default)]
pub struct TreeEstimate {
    /// Pages.
    pub pages: u64,
    /// Records, deleted ones included.
    pub records: u64,
}

/// Leaves looked at for the average number of records.
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

/// Which part of a tree's records lies below `key`, from one descent.
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
