//! B+trees on mini-transactions: descent, splits, merges, page allocation, redo, values out of line.
//!
//! Keys and values are bytes; the meaning of a value, its visibility and locks are the caller's. The README holds the rules (T1..T11).

mod blob;
mod bulk;
mod check;
mod free;
#[cfg(test)]
mod fuzz;
mod mtr;
mod redo;
mod smo;
mod split_keys;
mod tree;

pub use blob::{free_blob_page, read_blob, visit_blob, write_blob_part};
pub use bulk::{Root, TreeBuilder};
pub use check::{
    TreeEstimate, TreeShape, check_tree, check_tree_with, estimate_tree, fraction_below,
};
pub use free::empty_tree;
pub use mtr::{Mtr, format_space, pages_in_use, space_field};
pub use redo::{Piece, RedoBody, Touch, redo, redo_page};
pub use smo::{is_small, make_room, merge_if_small};
pub use split_keys::split_keys;
pub use tree::{
    LeafCopy, LeafPlace, NearLeaf, Seek, Tree, create_tree, record_bytes_max, record_bytes_max_for,
};

#[cfg(test)]
mod tests;
