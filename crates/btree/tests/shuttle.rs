//! The tree under random schedules, with switches between the words of a page: `cargo xtask models`. A failure prints a schedule that
//! `shuttle::replay` repeats.
#![cfg(shuttle)]

use std::collections::BTreeMap;
use std::sync::Arc;

use btree::{LeafCopy, Mtr, Seek, Tree, check_tree, create_tree, format_space, pages_in_use};
use bufpool::{Pool, PoolConfig};
use shuttle::thread;
use sys::disk::{Disk, OpenMode};
use sys::entropy::SplitMix;
use sys::model::{check, is_caught};
use sys::sim::SimDisk;
use wal::{Durability, FailurePolicy, Log, LogConfig, LogPosition};

const SCHEDULES: usize = 1500;
const THREADS: u64 = 3;
const START: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

fn tree() -> (Arc<Pool>, Tree) {
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
        segment_bytes: 32 << 10,
        block_bytes: 512,
        lanes: 2,
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
    (pool, tree)
}

/// Keys of different threads lie between each other, so that they meet in every page.
fn key(thread: u64, number: u64) -> [u8; 4] {
    ((number * THREADS + thread) as u32).to_be_bytes()
}

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Random changes of own keys, each verified afterwards; values read of other threads' keys must be whole.
fn one_thread(pool: &Pool, tree: Tree, thread: u64) -> Model {
    let mut random = SplitMix::new(thread);
    let (mut model, mut found) = (Model::new(), Vec::new());
    for step in 0..12_u8 {
        let own = key(thread, random.below(6)).to_vec();
        if random.below(3) > 0 {
            let value = vec![step; 8 + random.below(30) as usize];
            assert!(tree.put(pool, &own, &value).unwrap());
            model.insert(own.clone(), value);
        } else {
            assert_eq!(tree.remove(pool, &own).unwrap(), model.remove(&own).is_some());
        }
        found.clear();
        let there = tree.get(pool, &own, &mut found).unwrap();
        assert_eq!(there.then_some(&found), model.get(&own), "an own key");
        found.clear();
        if tree.get(pool, &key((thread + 1) % THREADS, random.below(6)), &mut found).unwrap() {
            assert!(found.len() >= 8 && found.iter().all(|byte| *byte == found[0]), "{found:?}");
        }
    }
    model
}

/// A scan meets each key once and in order, while the tree changes under it.
fn scan(pool: &Pool, tree: Tree) {
    let (mut leaf, mut start, mut before) = (LeafCopy::new(pool), Vec::new(), Vec::new());
    loop {
        leaf.load(pool, tree, Seek::At(&start)).unwrap();
        for slot in 0..leaf.page().count() {
            let mut key = Vec::new();
            leaf.page().copy_key(slot, &mut key);
            if key >= start {
                assert!(before < key, "{before:?} {key:?}");
                before = key;
            }
        }
        if !leaf.page().upper_fence(&mut start) {
            return;
        }
    }
}

#[test]
fn every_thread_finds_its_keys_while_pages_split_and_merge() {
    check(SCHEDULES, changes_beside_each_other);
}

fn changes_beside_each_other() {
    let (pool, tree) = tree();
    let threads: Vec<_> = (0..THREADS)
        .map(|number| {
            let pool = pool.clone();
            thread::spawn(move || one_thread(&pool, tree, number))
        })
        .collect();
    scan(&pool, tree);
    let mut model = Model::new();
    for thread in threads {
        model.extend(thread.join().unwrap());
    }
    let shape = check_tree(&pool, tree).unwrap();
    assert_eq!(shape.wrong, Vec::<String>::new());
    assert_eq!(shape.records, model.len() as u64);
    let (count, free) = pages_in_use(&pool).unwrap();
    assert_eq!(shape.pages.len() as u64 + free + 1, count, "a page is lost");
    let mut found = Vec::new();
    for (key, value) in &model {
        found.clear();
        assert!(tree.get(&pool, key, &mut found).unwrap());
        assert_eq!(&found, value);
    }
}

#[test]
fn readers_that_trust_what_they_saw_are_caught() {
    for rule in ["T3", "validate before use"] {
        assert!(
            is_caught("every_thread_finds_its_keys_while_pages_split_and_merge", rule),
            "{rule}"
        );
    }
}
