//! Keys at which a scan can be divided among threads.

use std::io;

use bufpool::Pool;
use page::{Kind, PageNo};

use crate::tree::Tree;

/// Keys above `start` and below `end`, in order, that cut the tree into pieces of about equal size: about `wanted` of them or
/// more, fewer in a small tree. Any of them is only a hint: the tree may change at once.
///
/// # Errors
/// I/O.
pub fn split_keys(
    pool: &Pool,
    tree: Tree,
    start: &[u8],
    end: Option<&[u8]>,
    wanted: usize,
) -> io::Result<Vec<Vec<u8>>> {
    let mut level = tree.height(pool)?;
    let mut nodes = vec![tree.root];
    let mut keys = Vec::new();
    while level > 0 {
        let mut children = Vec::new();
        keys.clear();
        for node in nodes {
            children_of(pool, tree, node, level, (start, end), &mut keys, &mut children)?;
        }
        if keys.len() >= wanted {
            break;
        }
        nodes = children;
        level -= 1;
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// Adds a node's children that may hold keys of the range, and the keys at which they begin.
fn children_of(
    pool: &Pool,
    tree: Tree,
    node: PageNo,
    level: u8,
    (start, end): (&[u8], Option<&[u8]>),
    keys: &mut Vec<Vec<u8>>,
    children: &mut Vec<PageNo>,
) -> io::Result<()> {
    let latched = pool.shared(node)?;
    let page = latched.page();
    // The page may have another use by now: then it yields no keys.
    if page.kind() != Kind::Node || page.tree() != tree.id || page.level() != level {
        return Ok(());
    }
    let Some(last) = page.count().checked_sub(1) else { return Ok(()) };
    let first = if page.covers(start) { page.child_slot(start) } else { 0 };
    let last = match end {
        Some(end) if page.covers(end) => page.child_slot_below(Some(end)),
        _ => last,
    };
    for slot in first..=last {
        let mut key = Vec::new();
        page.copy_key(slot, &mut key);
        if end.is_some_and(|end| key.as_slice() >= end) {
            break;
        }
        children.push(page.child(slot));
        if key.as_slice() > start {
            keys.push(key);
        }
    }
    Ok(())
}
