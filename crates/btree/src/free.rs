//! Giving a dropped tree's pages back, in steps from the right. After each the tree is valid but for its right end: keys beyond it lead to the last leaf,
//! whose upper fence stays.

use std::io;

use bufpool::Pool;
use page::Fences;

use crate::mtr::{KIND_PAGES, Mtr};
use crate::tree::{Tree, damaged};

/// Frees every page but the root, which becomes an empty leaf. `visit` sees each leaf before it is freed. No other thread uses the tree.
///
/// # Errors
/// I/O; the call can be repeated.
pub fn empty_tree(
    pool: &Pool,
    tree: Tree,
    mut visit: impl FnMut(page::PageRef<'_>) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        let mut node = pool.exclusive(tree.root)?;
        if node.page().tree() != tree.id {
            return Err(damaged(tree));
        }
        if node.page().level() == 0 {
            visit(node.page())?;
        }
        if node.page().level() == 0 || node.page().count() == 0 {
            let mut mtr = Mtr::new(pool);
            let place = mtr.add(node);
            mtr.edit(place).format_node(tree.root, 0, tree.id, &Fences::default());
            mtr.commit(KIND_PAGES, &[]);
            return Ok(());
        }
        loop {
            let last = node.page().count() - 1;
            let child = pool.exclusive(node.page().child(last))?;
            if child.page().level() > 0 && child.page().count() > 0 {
                node = child;
                continue;
            }
            visit(child.page())?;
            let mut mtr = Mtr::new(pool);
            let (node, child) = (mtr.add(node), mtr.add(child));
            mtr.prepare_free()?;
            mtr.edit(node).remove(last);
            mtr.free(child);
            mtr.commit(KIND_PAGES, &[]);
            break;
        }
    }
}
