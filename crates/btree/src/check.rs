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
