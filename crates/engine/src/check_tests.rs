//! A check concurrent with purge, which merges leaves that the check has passed or is at.

use std::sync::Arc;

use btree::{Mtr, Tree, create_tree};
use sys::sim::SimDisk;
use txn::KIND_PAGES;

use crate::check::for_each;
use crate::entry_tree::{RemoveEntry, remove_entry};
use crate::{DurableEngine, EngineConfig};

fn engine() -> DurableEngine {
    let config = EngineConfig {
        page_bytes: 1024,
        pool_bytes: 256 << 10,
        pages_max: 1 << 16,
        background: false,
        ..EngineConfig::default()
    };
    DurableEngine::open(Arc::new(SimDisk::new()), config, |_| {}).unwrap()
}

fn key(id: u64) -> Vec<u8> {
    id.to_be_bytes().to_vec()
}

/// A tree of a few leaves.
fn tree(engine: &DurableEngine, records: u64) -> Tree {
    let pool = &engine.shared.system.pool;
    let mut mtr = Mtr::new(pool);
    let tree = create_tree(&mut mtr, 77).unwrap();
    mtr.commit(KIND_PAGES, &[]);
    for id in 0..records {
        tree.put(pool, &key(id), &[0; 8]).unwrap();
    }
    tree
}

#[test]
fn a_leaf_that_is_merged_into_one_that_was_visited_is_not_visited_twice() {
    const RECORDS: u64 = 200;
    let engine = engine();
    let pool = &engine.shared.system.pool;
    let tree = tree(&engine, RECORDS);
    let leaves = btree::check_tree(pool, tree).unwrap().leaves;
    assert!(leaves > 4, "{leaves}");
    let mut visited = Vec::new();
    for_each(&engine.shared, tree, |found, _| {
        if visited.is_empty() {
            // As purge does, when the first leaf has been copied: what is left of it and of the next ones becomes one leaf.
            for id in (0..RECORDS / 2).rev().filter(|id| id % 10 > 0) {
                remove_entry(pool, tree, &key(id), RemoveEntry::Any).unwrap();
            }
        }
        visited.push(found.to_vec());
        Ok(())
    })
    .unwrap();
    let after = btree::check_tree(pool, tree).unwrap();
    assert!(after.leaves < leaves - 1, "{} of {leaves} leaves", after.leaves);
    assert!(visited.is_sorted_by(|left, right| left < right), "{visited:?}");
    for id in (0..RECORDS).filter(|id| *id >= RECORDS / 2 || id % 10 == 0) {
        assert!(visited.contains(&key(id)), "{id}");
    }
}
