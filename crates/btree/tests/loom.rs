//! Upgrades and the hand-over of keys at a split and at a merge while others look, every schedule with few preemptions: `cargo xtask models`.
//!
//! Latches, translation and log are loom's; the words of pages are not, they change where the program says.
#![cfg(loom)]

use std::sync::Arc;

use btree::{Mtr, Tree, create_tree, format_space};
use bufpool::{Pool, PoolConfig};
use loom::thread;
use sys::disk::{Disk, OpenMode};
use sys::model::{check_in_turn, is_caught};
use sys::sim::SimDisk;
use wal::{Durability, FailurePolicy, Log, LogConfig, LogPosition};

const START: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

const VALUE: [u8; 24] = [7; 24];

/// A tree with the keys 10, 20, ... on pages of 256 bytes.
fn tree_of(keys: u32) -> (Arc<Pool>, Tree) {
    let disk = SimDisk::new();
    let file = disk.open("data", OpenMode::OrCreate).unwrap();
    let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
    let config = PoolConfig {
        page_bytes: 256,
        frames: 32,
        frames_max: 32,
        pages_max: 64,
        doublewrite: true,
        reserve_pages: 0,
    };
    let pool = Arc::new(Pool::new(config, file, doublewrite).unwrap());
    let config = LogConfig {
        segment_bytes: 16 << 10,
        block_bytes: 512,
        lanes: 1,
        flights: 2,
        durability: Durability::Synced,
        failure: FailurePolicy::Report,
        reserve_segments: 0,
    };
    pool.connect(Arc::new(Log::start(Arc::new(disk), config, START, 1).unwrap()));
    format_space(&pool).unwrap();
    let mut mtr = Mtr::new(&pool);
    let tree = create_tree(&mut mtr, 77).unwrap();
    mtr.commit(1, &[]);
    (1..=keys).for_each(|number| assert!(tree.put(&pool, &key(number * 10), &VALUE).unwrap()));
    (pool, tree)
}

/// One thread changes the tree's shape while another reads `watched`, which is there all the time.
fn reader_beside(keys: u32, watched: u32, change: fn(&Pool, Tree)) {
    check_in_turn(move || {
        let (pool, tree) = tree_of(keys);
        let before = btree::pages_in_use(&pool).unwrap();
        let writer = {
            let pool = pool.clone();
            thread::spawn(move || change(&pool, tree))
        };
        let mut value = Vec::new();
        assert!(tree.get(&pool, &key(watched), &mut value).unwrap(), "the key was there before");
        assert_eq!(value, VALUE);
        writer.join().unwrap();
        assert_ne!(btree::pages_in_use(&pool).unwrap(), before, "the shape has changed");
    });
}

/// The leaf of 20 is full; half of it moves to a new page.
#[test]
fn a_key_that_moves_in_a_split_is_found() {
    reader_beside(6, 30, |pool, tree| {
        for number in [11, 12, 13] {
            tree.put(pool, &key(number), &VALUE).unwrap();
        }
    });
}

/// The rest of a leaf moves to its neighbour, and the page is freed.
#[test]
fn a_key_that_moves_in_a_merge_is_found() {
    reader_beside(6, 60, |pool, tree| {
        for number in [50, 40, 30, 20] {
            tree.remove(pool, &key(number)).unwrap();
        }
    });
}

#[test]
fn a_descent_that_does_not_look_back_at_the_parent_is_caught() {
    assert!(is_caught("a_key_that_moves_in_a_merge_is_found", "T3"));
}
