//! Structure changes: splits, merges, growing and shrinking at the root.

use std::io;
use std::sync::atomic::AtomicU64;

use bufpool::{Exclusive, Pool};
use page::{Fences, HEADER_BYTES, NodeBuilder, PageMut, PageNo, PageRef, private_page};

use crate::mtr::{KIND_PAGES, Mtr};
use crate::tree::{Seek, Tree, record_bytes_max};

/// Bytes of a record besides key and value: its slot, and padding of each to words.
const RECORD_OVERHEAD_BYTES: usize = page::SLOT_BYTES + 16;

/// A node that uses less than 30 % of its bytes is merged when a neighbour has room.
pub fn is_small(page: PageRef<'_>) -> bool {
    page.used_bytes() * 10 < page.size_bytes() * 3
}

/// Splits the leaf that covers `key`.
///
/// # Errors
/// I/O; `InvalidInput` when the leaf cannot be split because the record is too large.
pub fn make_room(pool: &Pool, tree: Tree, key: &[u8]) -> io::Result<()> {
    split(pool, tree, key, 0)
}

/// Shortest key above `left` and not above `right`.
pub(crate) fn separator(left: &[u8], right: &[u8]) -> Vec<u8> {
    let common = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    right[..(common + 1).min(right.len())].to_vec()
}

/// How a node's records are divided.
struct Cut {
    /// Records of the left half.
    left: usize,
    separator: Vec<u8>,
}

pub(crate) fn capacity(pool: &Pool) -> usize {
    pool.page_bytes() - HEADER_BYTES
}

fn choose_cut(pool: &Pool, records: &NodeBuilder, page: PageRef<'_>, key: &[u8]) -> Option<Cut> {
    let count = records.len();
    if page.is_leaf() && page.is_rightmost() && count > 0 && records.key(count - 1) < key {
        // Ascending inserts: leave the left leaf full.
        let separator = separator(records.key(count - 1), key);
        let fences = Fences { lower: page.fences().lower, upper: Some(separator.clone()) };
        if records.bytes_needed(0..count, &fences) <= capacity(pool) {
            return Some(Cut { left: count, separator });
        }
    }
    if count < 2 {
        return None;
    }
    let left = records.middle();
    let separator = match page.is_leaf() {
        true => separator(records.key(left - 1), records.key(left)),
        false => records.key(left).to_vec(),
    };
    assert!(*records.key(left - 1) < *separator && *separator <= *records.key(left));
    Some(Cut { left, separator })
}

fn split(pool: &Pool, tree: Tree, key: &[u8], level: u8) -> io::Result<()> {
    loop {
        let (parent, node) = tree.descend(pool, Seek::At(key), level)?;
        let Some(parent) = parent else {
            match node.upgrade() {
                Some(root) => return split_root(pool, tree, root, key),
                None => continue,
            }
        };
        let Some(parent) = parent.upgrade() else { continue };
        let Some(node) = node.upgrade() else { continue };
        let mut records = NodeBuilder::new();
        records.take_page(node.page());
        let Some(cut) = choose_cut(pool, &records, node.page(), key) else {
            return room_was_made(pool, node.page());
        };
        let needed = page::record_bytes(cut.separator.len(), 8) + page::SLOT_BYTES;
        if parent.page().free_bytes() < needed {
            drop((parent, node));
            split(pool, tree, key, level + 1)?;
            continue;
        }
        return split_below(pool, tree, parent, node, &records, cut);
    }
}

/// A page with nothing to divide: others removed its records since the caller looked, so it now has room for any record that is not too large.
fn room_was_made(pool: &Pool, page: PageRef<'_>) -> io::Result<()> {
    if page.free_bytes() >= record_bytes_max(pool.page_bytes()) + RECORD_OVERHEAD_BYTES {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "record too large for a page"))
}

fn split_below<'p>(
    pool: &'p Pool,
    tree: Tree,
    parent: Exclusive<'p>,
    node: Exclusive<'p>,
    records: &NodeBuilder,
    cut: Cut,
) -> io::Result<()> {
    let mut mtr = Mtr::new(pool);
    let (parent, left) = (mtr.add(parent), mtr.add(node));
    let right = mtr.allocate()?;
    let (level, fences) = (mtr.page(left).level(), mtr.page(left).fences());
    sys::unmodelled! {
        assert_eq!(mtr.page(parent).level(), level + 1, "a parent is one level above its child");
    }
    let (left_no, right_no) = (mtr.number(left), mtr.number(right));
    let middle = Some(cut.separator.clone());
    let left_fences = Fences { lower: fences.lower, upper: middle.clone() };
    let right_fences = Fences { lower: middle, upper: fences.upper };
    build(
        &mut mtr,
        right,
        (right_no, level, tree.id),
        records,
        &right_fences,
        cut.left..records.len(),
    );
    // Ascending inserts leave the left node as it is.
    if cut.left < records.len() || !mtr.edit(left).close_above(&cut.separator) {
        build(&mut mtr, left, (left_no, level, tree.id), records, &left_fences, 0..cut.left);
    }
    let (slot, _) = mtr.page(parent).search(&cut.separator);
    sys::unmodelled! {
        assert_eq!(mtr.page(parent).child(slot - 1), left_no, "the right half follows its left half");
    }
    let child = u64::from(right_no.0).to_le_bytes();
    let linked = mtr.edit(parent).insert(slot, &cut.separator, &child);
    assert!(linked, "room for the separator was checked");
    mtr.commit(KIND_PAGES, &[]);
    Ok(())
}

fn build(
    mtr: &mut Mtr<'_>,
    place: usize,
    identity: (PageNo, u8, u64),
    records: &NodeBuilder,
    fences: &Fences,
    range: std::ops::Range<usize>,
) {
    let max_txn = mtr.page(place).max_txn();
    let image = node_image(mtr.page(place).size_bytes(), records, identity, fences, range);
    let mut edit = mtr.edit(place);
    edit.put_image(PageRef::new(&image));
    edit.set_max_txn(max_txn);
}

/// A node with records that were checked to fit a page.
pub(crate) fn node_image(
    page_bytes: usize,
    records: &NodeBuilder,
    identity: (PageNo, u8, u64),
    fences: &Fences,
    range: std::ops::Range<usize>,
) -> Box<[AtomicU64]> {
    let image = private_page(page_bytes);
    let mut ops = Vec::new();
    let built = records.write(&mut PageMut::new(&image, &mut ops, 0), identity, fences, range);
    assert!(built.is_ok(), "half of a page's records, or a checked merge, fit a page");
    image
}

fn split_root<'p>(pool: &'p Pool, tree: Tree, root: Exclusive<'p>, key: &[u8]) -> io::Result<()> {
    let mut records = NodeBuilder::new();
    records.take_page(root.page());
    let Some(cut) = choose_cut(pool, &records, root.page(), key) else {
        return room_was_made(pool, root.page());
    };
    let mut mtr = Mtr::new(pool);
    let root = mtr.add(root);
    let (left, right) = (mtr.allocate()?, mtr.allocate()?);
    let level = mtr.page(root).level();
    let (left_no, right_no) = (mtr.number(left), mtr.number(right));
    let middle = Some(cut.separator.clone());
    let left_fences = Fences { lower: None, upper: middle.clone() };
    let right_fences = Fences { lower: middle, upper: None };
    build(&mut mtr, left, (left_no, level, tree.id), &records, &left_fences, 0..cut.left);
    build(
        &mut mtr,
        right,
        (right_no, level, tree.id),
        &records,
        &right_fences,
        cut.left..records.len(),
    );
    let mut children = NodeBuilder::new();
    children.push(&[], &u64::from(left_no.0).to_le_bytes());
    children.push(&cut.separator, &u64::from(right_no.0).to_le_bytes());
    let identity = (tree.root, level + 1, tree.id);
    build(&mut mtr, root, identity, &children, &Fences::default(), 0..2);
    mtr.commit(KIND_PAGES, &[]);
    Ok(())
}

/// Merges the leaf that covers `key` with a neighbour if it is small and the result leaves room; continues upwards while that holds.
///
/// # Errors
/// I/O.
pub fn merge_if_small(pool: &Pool, tree: Tree, key: &[u8]) -> io::Result<()> {
    let height = tree.height(pool)?;
    for level in 0..height {
        if !merge_at(pool, tree, key, level)? && !merge_at(pool, tree, key, level)? {
            break;
        }
    }
    shrink_root(pool, tree)
}

/// True when a merge happened and the parent has become small.
fn merge_at(pool: &Pool, tree: Tree, key: &[u8], level: u8) -> io::Result<bool> {
    if tree.height(pool)? <= level {
        return Ok(false);
    }
    let (parent, node) = tree.descend(pool, Seek::At(key), level)?;
    let Some(parent) = parent.and_then(|parent| parent.upgrade()) else { return Ok(false) };
    let Some(node) = node.upgrade() else { return Ok(false) };
    let slot = parent.page().child_slot(key);
    if !is_small(node.page()) {
        return Ok(false);
    }
    if parent.page().count() < 2 {
        // Nothing to merge with here; perhaps the parent, which is small, has a neighbour.
        return Ok(true);
    }
    let node_is_left = slot + 1 < parent.page().count();
    let neighbour = parent.page().child(if node_is_left { slot + 1 } else { slot - 1 });
    // T5: `upgrade` does not wait for a writer.
    let neighbour_no = neighbour;
    let Some(neighbour) = pool.try_optimistic(neighbour)?.and_then(|look| look.upgrade()) else {
        // Perhaps only not in memory: read it in without holding latches, for the one more attempt that the caller makes.
        drop((parent, node));
        pool.optimistic(neighbour_no)?;
        return Ok(false);
    };
    let (left, right) = if node_is_left { (node, neighbour) } else { (neighbour, node) };
    let right_slot = if node_is_left { slot + 1 } else { slot };
    sys::unmodelled! {
        assert_eq!(left.page().fences().upper, right.page().fences().lower, "neighbours touch");
    }
    sys::unmodelled! {
        assert_eq!(left.page().level(), right.page().level(), "neighbours are of one level");
    }
    let mut records = NodeBuilder::new();
    records.take_page(left.page());
    records.take_page(right.page());
    let fences = Fences { lower: left.page().fences().lower, upper: right.page().fences().upper };
    let needed = records.bytes_needed(0..records.len(), &fences);
    // A merged page keeps a fifth free, else the next insert splits it again.
    if needed * 5 > capacity(pool) * 4 {
        return Ok(false);
    }
    let mut mtr = Mtr::new(pool);
    let (parent, left, right) = (mtr.add(parent), mtr.add(left), mtr.add(right));
    mtr.prepare_free()?;
    let max_txn = mtr.page(left).max_txn().max(mtr.page(right).max_txn());
    let identity = (mtr.number(left), level, tree.id);
    build(&mut mtr, left, identity, &records, &fences, 0..records.len());
    mtr.edit(left).set_max_txn(max_txn);
    mtr.edit(parent).remove(right_slot);
    mtr.free(right);
    let parent_small = is_small(mtr.page(parent));
    mtr.commit(KIND_PAGES, &[]);
    Ok(parent_small)
}

/// A root with one child takes over the child's records.
fn shrink_root(pool: &Pool, tree: Tree) -> io::Result<()> {
    let mut attempts = 0;
    loop {
        let root = pool.optimistic(tree.root)?;
        let single = root.page().level() > 0 && root.page().count() == 1;
        if !root.validate() {
            continue;
        }
        if !single {
            return Ok(());
        }
        let Some(root) = root.upgrade() else { continue };
        let child = root.page().child(0);
        let child_no = child;
        let Some(child) = pool.try_optimistic(child)?.and_then(|look| look.upgrade()) else {
            drop(root);
            pool.optimistic(child_no)?;
            attempts += 1;
            if attempts > 2 {
                return Ok(());
            }
            continue;
        };
        let mut records = NodeBuilder::new();
        records.take_page(child.page());
        let level = child.page().level();
        let mut mtr = Mtr::new(pool);
        let (root, child) = (mtr.add(root), mtr.add(child));
        mtr.prepare_free()?;
        let max_txn = mtr.page(child).max_txn();
        let identity = (tree.root, level, tree.id);
        build(&mut mtr, root, identity, &records, &Fences::default(), 0..records.len());
        mtr.edit(root).set_max_txn(max_txn);
        mtr.free(child);
        mtr.commit(KIND_PAGES, &[]);
    }
}
