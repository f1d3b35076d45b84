//! A tree on tiny pages against a sorted map; threads; crash and redo; no page lost.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bufpool::{Pool, PoolConfig};
use page::PageNo;
use sys::disk::{Disk, OpenMode};
use sys::entropy::SplitMix;
use sys::sim::SimDisk;
use wal::{Durability, FailurePolicy, Log, LogConfig, LogPosition};

use crate::*;

const START: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

fn pool_on(disk: &SimDisk, page_bytes: usize) -> Pool {
    let file = disk.open("data", OpenMode::OrCreate).unwrap();
    let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
    disk.sync_dir().unwrap();
    Pool::restore_torn(&*file, &*doublewrite, page_bytes).unwrap();
    Pool::new(
        PoolConfig {
            page_bytes,
            frames: 64,
            frames_max: 64,
            pages_max: 100_000,
            doublewrite: true,
            reserve_pages: 0,
        },
        file,
        doublewrite,
    )
    .unwrap()
}

fn setup(disk: &SimDisk, page_bytes: usize) -> (Arc<Pool>, Tree) {
    let pool = Arc::new(pool_on(disk, page_bytes));
    let config = LogConfig {
        segment_bytes: 1 << 20,
        block_bytes: 512,
        lanes: 2,
        flights: 2,
        durability: Durability::Synced,
        failure: FailurePolicy::Report,
        reserve_segments: 0,
    };
    let log = Log::start(Arc::new(disk.clone()), config, START, 1).unwrap();
    pool.connect(Arc::new(log));
    format_space(&pool).unwrap();
    let mut mtr = Mtr::new(&pool);
    let tree = create_tree(&mut mtr, 77).unwrap();
    mtr.commit(1, &[]);
    (pool, tree)
}

fn key(random: &mut SplitMix) -> Vec<u8> {
    let number = random.below(3000);
    let mut key = format!("{:04}", number).into_bytes();
    if number.is_multiple_of(3) {
        key.extend_from_slice(&vec![b'x'; (number % 60) as usize]);
    }
    key
}

fn check(pool: &Pool, tree: Tree, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let shape = check_tree(pool, tree).unwrap();
    assert_eq!(shape.wrong, Vec::<String>::new());
    assert_eq!(shape.records, model.len() as u64);
    let (count, free) = pages_in_use(pool).unwrap();
    assert_eq!(shape.pages.len() as u64 + free + 1, count, "a page is lost");
    let unique: HashSet<PageNo> = shape.pages.iter().copied().collect();
    assert_eq!(unique.len(), shape.pages.len());
    let mut copy = LeafCopy::new(pool);
    let mut seen = Vec::new();
    copy.load(pool, tree, Seek::First).unwrap();
    loop {
        for slot in 0..copy.page().count() {
            let (mut key, mut value) = (Vec::new(), Vec::new());
            copy.page().copy_key(slot, &mut key);
            copy.page().copy_value(slot, &mut value);
            seen.push((key, value));
        }
        let mut fence = Vec::new();
        if !copy.page().upper_fence(&mut fence) {
            break;
        }
        copy.load(pool, tree, Seek::At(&fence)).unwrap();
    }
    assert_eq!(seen, model.clone().into_iter().collect::<Vec<_>>());
}

#[test]
fn a_tree_is_a_sorted_map() {
    for (seed, page_bytes) in [(1, 512), (2, 512), (3, 1024), (4, 4096)] {
        let (pool, tree) = setup(&SimDisk::new(), page_bytes);
        let mut random = SplitMix::new(seed);
        let mut model = BTreeMap::new();
        for step in 0..6000 {
            let key = key(&mut random);
            let growing = step % 3000 < 1800;
            if random.below(10) < if growing { 8 } else { 2 } {
                let value = vec![step as u8; random.below(50) as usize];
                assert!(tree.put(&pool, &key, &value).unwrap());
                model.insert(key, value);
            } else {
                assert_eq!(tree.remove(&pool, &key).unwrap(), model.remove(&key).is_some());
            }
        }
        check(&pool, tree, &model);
        for (key, value) in &model {
            let mut out = Vec::new();
            assert!(tree.get(&pool, key, &mut out).unwrap() && out == *value);
        }
        for key in model.keys() {
            assert!(tree.remove(&pool, key).unwrap());
        }
        check(&pool, tree, &BTreeMap::new());
        // Long separators keep some nearly empty nodes from merging; most pages are back.
        let left = check_tree(&pool, tree).unwrap().pages.len();
        assert!(left < 40, "{left} pages");
    }
}

#[test]
fn ascending_inserts_fill_leaves_and_a_dropped_tree_gives_all_back() {
    let (pool, tree) = setup(&SimDisk::new(), 1024);
    for number in 0..2000_u32 {
        tree.put(&pool, &number.to_be_bytes(), &[7; 40]).unwrap();
    }
    let shape = check_tree(&pool, tree).unwrap();
    assert!(shape.records / shape.leaves >= 12, "{} in {}", shape.records, shape.leaves);
    empty_tree(&pool, tree, |_| Ok(())).unwrap();
    check(&pool, tree, &BTreeMap::new());
}

#[test]
fn threads_work_on_one_tree() {
    let (pool, tree) = setup(&SimDisk::new(), 512);
    let threads: Vec<_> = (0..3_u64)
        .map(|thread| {
            let pool = Arc::clone(&pool);
            std::thread::spawn(move || {
                let mut random = SplitMix::new(thread);
                let mut model = BTreeMap::new();
                for step in 0..3000_u64 {
                    let mut key = key(&mut random);
                    key.push(b'a' + thread as u8);
                    if random.below(3) > 0 {
                        let value = step.to_le_bytes().to_vec();
                        tree.put(&pool, &key, &value).unwrap();
                        model.insert(key, value);
                    } else {
                        assert_eq!(tree.remove(&pool, &key).unwrap(), model.remove(&key).is_some());
                    }
                    let probe = super::tests::key(&mut random);
                    let probe = [probe, vec![b'a' + thread as u8]].concat();
                    let mut out = Vec::new();
                    let found = tree.get(&pool, &probe, &mut out).unwrap();
                    assert_eq!(model.get(&probe), found.then_some(&out));
                }
                model
            })
        })
        .collect();
    let mut model = BTreeMap::new();
    threads.into_iter().for_each(|thread| model.extend(thread.join().unwrap()));
    check(&pool, tree, &model);
}

#[test]
fn redo_brings_back_every_durable_change() {
    for seed in 0..60 {
        let disk = SimDisk::new();
        let (pool, tree) = setup(&disk, 512);
        let log = Arc::clone(pool.log().unwrap());
        log.flush_to(log.next_ticket() - 1).unwrap();
        let mut random = SplitMix::new(seed);
        disk.crash_after(random.below(400));
        let mut history = vec![BTreeMap::new()];
        let mut durable = 0;
        for step in 0..600_u64 {
            let key = key(&mut random);
            let mut model = history[history.len() - 1].clone();
            let value = vec![step as u8; random.below(40) as usize];
            let done = match random.below(3) {
                0 => tree.remove(&pool, &key).map(|_| model.remove(&key)).map(drop),
                _ => tree.put(&pool, &key, &value).map(|_| model.insert(key, value)).map(drop),
            };
            history.push(model);
            let ticket = log.next_ticket() - 1;
            if done.is_err() || (random.below(5) == 0 && log.flush_to(ticket).is_err()) {
                break;
            }
            if log.durable() > ticket {
                durable = history.len() - 1;
            }
            if random.below(40) == 0 && pool.flush(1000, u64::MAX).is_err() {
                break;
            }
        }
        let disk = disk.after_crash(seed);
        let pool = pool_on(&disk, 512);
        let end = wal::replay(&disk, START, 0, 512, |record| {
            let body = RedoBody::parse(record.body).unwrap();
            redo(&pool, record.ticket, &body)
        })
        .unwrap();
        let shape = check_tree(&pool, tree).unwrap();
        assert_eq!(shape.wrong, Vec::<String>::new(), "seed {seed}");
        let _ = end;
        let found = history[durable..].iter().any(|model| {
            model.len() as u64 == shape.records && {
                model.iter().all(|(key, value)| {
                    let mut out = Vec::new();
                    tree.get(&pool, key, &mut out).unwrap() && out == *value
                })
            }
        });
        assert!(found, "seed {seed}: not a state at or after the last durable one");
    }
}

#[test]
fn values_out_of_line() {
    let (pool, tree) = setup(&SimDisk::new(), 512);
    let bytes: Vec<u8> = (0..20_000_u32).map(|number| number as u8).collect();
    let (mut rest, mut first) = (&bytes[..], PageNo::META);
    while !rest.is_empty() {
        let (left, pages, mtr) = write_blob_part(&pool, rest, first).unwrap();
        mtr.commit(1, &[]);
        (rest, first) = (left, *pages.last().unwrap());
    }
    let mut out = Vec::new();
    read_blob(&pool, first, bytes.len(), &mut out).unwrap();
    assert_eq!(out, bytes);
    while first != PageNo::META {
        let (next, mtr) = free_blob_page(&pool, first).unwrap().unwrap();
        mtr.commit(1, &[]);
        first = next;
    }
    check(&pool, tree, &BTreeMap::new());
}

/// Inserts or replaces, as rows are.
fn put_row(pool: &Pool, tree: Tree, key: &[u8], value: &[u8]) {
    for _ in 0..100 {
        let mut mtr = Mtr::new(pool);
        let place = mtr.add(tree.exclusive_leaf(pool, key).unwrap());
        let (slot, found) = mtr.page(place).search(key);
        let mut edit = mtr.edit(place);
        let done = match found {
            true => edit.replace_value(slot, value),
            false => edit.insert(slot, key, value),
        };
        if done {
            mtr.commit(1, &[]);
            return;
        }
        drop(mtr);
        make_room(pool, tree, key).unwrap();
    }
    panic!("no room is made");
}

#[test]
fn two_records_of_short_keys_and_their_fences_fill_a_page() {
    const KEY_BYTES: usize = 11;
    for (seed, page_bytes) in [(11, 512), (12, 1024), (13, 4096), (14, 16_384)] {
        let (pool, tree) = setup(&SimDisk::new(), page_bytes);
        let most = record_bytes_max_for(page_bytes, KEY_BYTES);
        assert!(most > page_bytes / 2 - 100 && most <= (page_bytes - page::HEADER_BYTES) / 2);
        let mut random = SplitMix::new(seed);
        let mut model = BTreeMap::new();
        for step in 0..3000 {
            // No prefix is shared by all, and lengths differ.
            let mut key =
                random.below(400).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
            key.resize(8 + (key[0] % 4) as usize, b'k');
            if random.below(10) < if step % 1500 < 1000 { 8 } else { 3 } {
                let length = match random.below(3) {
                    0 => most - key.len(),
                    1 => random.below((most - key.len()) as u64 + 1) as usize,
                    _ => random.below(40) as usize,
                };
                let value = vec![step as u8; length];
                put_row(&pool, tree, &key, &value);
                model.insert(key, value);
            } else {
                assert_eq!(tree.remove(&pool, &key).unwrap(), model.remove(&key).is_some());
            }
        }
        check(&pool, tree, &model);
        // In the order of keys, one page takes two.
        let (pool, tree) = setup(&SimDisk::new(), page_bytes);
        for number in 0..200_u64 {
            put_row(&pool, tree, &number.to_be_bytes(), &vec![7; most - 8]);
        }
        let shape = check_tree(&pool, tree).unwrap();
        assert_eq!((shape.records, shape.leaves), (200, 100), "pages of {page_bytes} bytes");
        // The same from below.
        let (pool, tree) = setup(&SimDisk::new(), page_bytes);
        let mut builder = TreeBuilder::new(&pool, tree).with_keys(KEY_BYTES);
        for number in 0..200_u64 {
            let value = vec![7; most - 8];
            let log = |mtr: Mtr<'_>, _: &[PageNo]| {
                mtr.commit(1, &[]);
            };
            assert!(builder.push(&pool, (&number.to_be_bytes(), &value), log).unwrap());
        }
        let log = |mtr: Mtr<'_>, _: &[PageNo]| {
            mtr.commit(1, &[]);
        };
        let root = builder.finish(&pool, log).unwrap().unwrap();
        root.put(
            &pool,
            || Ok::<(), ()>(()),
            |mtr| {
                mtr.commit(1, &[]);
            },
        )
        .unwrap()
        .unwrap();
        let shape = check_tree(&pool, tree).unwrap();
        assert!(shape.wrong.is_empty() && shape.records == 200, "{:?}", shape.wrong);
    }
}

#[test]
fn a_leaf_tried_by_its_number_is_the_one_that_a_descent_finds() {
    let (pool, tree) = setup(&SimDisk::new(), 512);
    let mut mtr = Mtr::new(&pool);
    let other = create_tree(&mut mtr, 78).unwrap();
    mtr.commit(1, &[]);
    let (mut random, mut near) = (SplitMix::new(5), NearLeaf::default());
    for round in 0..4000_u64 {
        // Runs of neighbours, so that the last leaf is tried, among changes that split, merge and free leaves.
        let start = random.below(600);
        for number in start..start + random.below(8) {
            let key = format!("{number:04}").into_bytes();
            let tree = if number % 50 == 0 { other } else { tree };
            if number % 3 == 0 {
                near.expect();
            }
            let found = tree.exclusive_leaf_near(&pool, &key, &mut near).unwrap();
            let (number, page) = (found.number(), found.page());
            assert!(page.tree() == tree.id && page.level() == 0 && page.covers(&key));
            drop(found);
            assert_eq!(number, tree.exclusive_leaf(&pool, &key).unwrap().number());
            let found = tree.shared_leaf_near(&pool, &key, &mut near).unwrap();
            assert!(found.page().tree() == tree.id && found.page().covers(&key));
            drop(found);
            match random.below(3) == round / 2000 {
                true => drop(tree.remove(&pool, &key).unwrap()),
                false => assert!(tree.put(&pool, &key, &[7; 40]).unwrap()),
            }
        }
    }
}
