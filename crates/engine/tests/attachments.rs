//! Attachments of commits: a reader gets those of all commits, each once, in their order, whatever crashes in between.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::sync::Arc;

use engine::{DurableEngine, EngineConfig};
use engine_api::{AttachmentReader, Engine, TableId, Transaction};
use support::numbers::{self, record};
use support::{begin, begin_branch};
use sys::sim::SimDisk;

const TABLE: TableId = TableId(2000);

fn open(disk: &SimDisk) -> DurableEngine {
    let config = EngineConfig { keeps_attachments: true, ..support::config() };
    DurableEngine::open(Arc::new(disk.clone()), config, |_| {}).unwrap()
}

fn attachment(reader: &mut dyn AttachmentReader) -> Option<(u64, Vec<u8>)> {
    let commit = reader.next().unwrap()?;
    let mut bytes = Vec::new();
    while reader.read(&mut bytes).unwrap() {}
    assert_eq!(bytes.len() as u64, commit.length);
    Some((commit.position, bytes))
}

fn all(reader: &mut dyn AttachmentReader) -> Vec<(u64, Vec<u8>)> {
    std::iter::from_fn(|| attachment(reader)).collect()
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Attaches a random number of bytes in some parts, and takes some of them back.
fn attach(txn: &mut dyn Transaction, random: &mut Random, stamp: u8) -> Vec<u8> {
    let mut expected = Vec::new();
    for _ in 0..=random.below(4) {
        let length = match random.below(4) {
            0 => random.below(60_000) as usize,
            _ => random.below(100) as usize,
        };
        let part: Vec<u8> = (0..length).map(|at| stamp ^ (at / 7) as u8).collect();
        txn.attach(&part).unwrap();
        expected.extend(part);
        if random.below(4) == 0 {
            expected.truncate(random.below(expected.len() as u64 + 1) as usize);
            txn.detach_to(expected.len() as u64);
        }
        assert_eq!(txn.attached(), expected.len() as u64);
    }
    expected
}

/// One life of an engine after the other on what the crash before left. The reader goes on after the last commit that it kept.
#[test]
fn every_commit_is_read_once_and_in_order() {
    let seed = std::env::var("SQUALL_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in seed.map_or(1..13, |seed: u64| seed..seed + 1) {
        let mut random = Random(seed);
        let mut disk = SimDisk::new();
        let engine = open(&disk);
        let mut txn = begin(&engine);
        txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
        txn.commit().unwrap().wait().unwrap();
        // What the reader kept, and all attachments that were acknowledged.
        let (mut kept, mut acknowledged): (Vec<Vec<u8>>, Vec<Vec<u8>>) = Default::default();
        let (mut after, mut next_id, mut prepared) = (0, 0, Vec::<(Vec<u8>, Vec<u8>)>::new());
        let mut engine = Some(engine);
        for life in 0..6 {
            let own = engine.take().unwrap_or_else(|| open(&disk));
            let mut reader = own.attachments(Some(after)).unwrap();
            assert!(life == 0 || !reader.has_gap(), "seed {seed}, life {life}");
            for step in 0..40 {
                let stamp = (life * 40 + step) as u8;
                let is_branch = random.below(8) == 0;
                let mut txn = if is_branch { begin_branch(&own) } else { begin(&own) };
                let writes = is_branch || random.below(3) > 0;
                if writes {
                    txn.insert(TABLE, &record([next_id, next_id])).unwrap();
                    next_id += 1;
                }
                let expected = attach(&mut *txn, &mut random, stamp);
                if is_branch {
                    let name = vec![stamp, 1];
                    txn.prepare(&name).unwrap().wait().unwrap();
                    prepared.push((name, expected));
                } else if random.below(5) == 0 {
                    txn.rollback().unwrap();
                } else {
                    txn.commit().unwrap().wait().unwrap();
                    acknowledged.extend(Some(expected).filter(|bytes| !bytes.is_empty()));
                }
                if !prepared.is_empty() && random.below(6) == 0 {
                    let (name, expected) = prepared.remove(0);
                    if random.below(3) == 0 {
                        own.rollback_prepared(&name).unwrap();
                    } else {
                        let handle = own.commit_prepared(&name, &[]).unwrap();
                        handle.into_iter().for_each(|handle| handle.wait().unwrap());
                        acknowledged.extend(Some(expected).filter(|bytes| !bytes.is_empty()));
                    }
                }
                if random.below(6) == 0 {
                    for (position, bytes) in all(&mut *reader) {
                        assert!(position > after, "positions grow");
                        after = position;
                        kept.push(bytes);
                    }
                    reader.confirm().unwrap();
                }
                if random.below(10) == 0 {
                    own.tick().unwrap();
                    own.checkpoint().unwrap();
                }
            }
            let before = own.durable_position().unwrap();
            if random.below(3) == 0 {
                for (position, bytes) in all(&mut *reader) {
                    after = position;
                    kept.push(bytes);
                }
                assert!(reader.passed() >= before, "all that was durable was read");
                assert_eq!(kept, acknowledged, "seed {seed}, life {life}");
                // Not confirmed: it will be read again, and left out.
            }
            drop(reader);
            disk.crash_now();
            drop(own);
            disk = disk.after_crash(seed * 100 + life);
        }
        let own = open(&disk);
        let mut reader = own.attachments(Some(after)).unwrap();
        kept.extend(all(&mut *reader).into_iter().map(|(_, bytes)| bytes));
        assert_eq!(kept, acknowledged, "seed {seed}");
    }
}

#[test]
fn a_reader_learns_of_a_gap() {
    let disk = SimDisk::new();
    let engine = open(&disk);
    let mut reader = engine.attachments(None).unwrap();
    assert!(!reader.has_gap());
    let mut txn = begin(&engine);
    txn.attach(b"one").unwrap();
    txn.commit().unwrap().wait().unwrap();
    let (position, bytes) = attachment(&mut *reader).unwrap();
    assert_eq!(bytes, b"one");
    assert!(engine.attachments(None).is_err(), "one reader at a time");
    drop(reader);
    engine.shutdown().unwrap();
    drop(engine);
    // For a while nobody keeps the log.
    let other = DurableEngine::open(Arc::new(disk.clone()), support::config(), |_| {}).unwrap();
    assert!(begin(&other).attach(b"two").is_err());
    other.shutdown().unwrap();
    drop(other);
    let engine = open(&disk);
    let reader = engine.attachments(Some(position)).unwrap();
    assert!(reader.has_gap());
}
