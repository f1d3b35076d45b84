//! The offline check: nothing to say of files that are whole, after a stop, after a crash and of a backup; a flipped bit anywhere that counts is
//! found, with the page and its table; the files are left alone.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::sync::Arc;

use engine::{CheckNews, Checked, DurableEngine, check_files};
use engine_api::Engine;
use sys::disk::{Disk, OpenMode};
use sys::entropy::SplitMix;
use sys::overlay::OverlayDisk;
use sys::sim::SimDisk;

use crate::config;
use crate::workload::{Hanging, History, set_up, work};

const PAGE_BYTES: usize = 1024;

fn worked(seed: u64) -> (SimDisk, DurableEngine) {
    let disk = SimDisk::new();
    let engine = DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap();
    set_up(&engine);
    let (mut random, mut history) = (SplitMix::new(seed), History::new(200));
    let mut hanging = Hanging::default();
    for _ in 0..6 {
        work(&engine, &mut random, &mut history, &mut hanging).unwrap();
    }
    drop(hanging);
    (disk, engine)
}

pub fn check(disk: &SimDisk) -> (Checked, Vec<String>) {
    let overlay = OverlayDisk::new(Arc::new(disk.clone()), &std::env::temp_dir());
    let before = disk.operations();
    let mut findings = Vec::new();
    let checked = check_files(Arc::new(overlay), &config(), &mut |news| {
        if let CheckNews::Finding { place, text } = news {
            findings.push(format!("{place}: {text}"));
        }
    });
    let checked = checked.unwrap();
    assert_eq!(checked.findings, findings.len() as u64);
    // Syncs of files that are read are not changes; nothing is written.
    assert!(disk.operations() - before < 200);
    (checked, findings)
}

#[test]
fn whole_files_are_whole_after_a_stop_and_after_a_crash() {
    for seed in 1..6 {
        let (disk, engine) = worked(seed);
        disk.sync_dir().unwrap();
        let (checked, findings) = check(&disk.after_crash(seed));
        assert!(findings.is_empty() && checked.tables > 0, "seed {seed}: {findings:?}");
        engine.shutdown().unwrap();
        let (checked, findings) = check(&disk);
        assert!(findings.is_empty() && checked.pages > 10, "seed {seed}: {findings:?}");
    }
}

#[test]
fn a_flipped_bit_in_any_page_is_found_and_names_page_and_table() {
    let (disk, engine) = worked(3);
    engine.shutdown().unwrap();
    drop(engine);
    // Otherwise pages of the last batch are restored from there.
    disk.open("doublewrite", OpenMode::Existing).unwrap().set_size(0).unwrap();
    let space = disk.open("space", OpenMode::Existing).unwrap();
    let pages = space.size_bytes().unwrap() as usize / PAGE_BYTES;
    let (mut random, mut named) = (SplitMix::new(1), 0);
    for page in (0..pages).step_by(1 + pages / 40) {
        let mut image = vec![0; PAGE_BYTES];
        space.read_at(&mut image, (page * PAGE_BYTES) as u64).unwrap();
        if image.iter().all(|byte| *byte == 0) {
            continue;
        }
        // Beyond the header, whose tree id names the owner.
        let at = page * PAGE_BYTES + 64 + random.below(PAGE_BYTES as u64 - 64) as usize;
        let bit = random.below(8) as u8;
        disk.flip_bit("space", at, bit);
        let (_, findings) = check(&disk);
        let wanted = format!("page {page} ");
        assert!(findings.iter().any(|text| text.contains(&wanted)), "page {page}: {findings:?}");
        named += usize::from(findings.iter().any(|text| text.starts_with("test.")));
        disk.flip_bit("space", at, bit);
    }
    assert!(named > 5, "{named}");
    assert!(check(&disk).1.is_empty());
}

#[test]
fn damage_of_checkpoint_and_log_is_found() {
    let (disk, engine) = worked(4);
    drop(engine);
    disk.sync_dir().unwrap();
    let size = |disk: &SimDisk, name: &str| {
        disk.open(name, OpenMode::Existing).unwrap().size_bytes().unwrap() as usize
    };
    let damaged = disk.after_crash(1);
    for at in (0..size(&damaged, "checkpoint")).step_by(512) {
        damaged.flip_bit("checkpoint", at + 7, 1);
    }
    assert!(check(&damaged).1[0].starts_with("checkpoint: "));
    // The log before the last checkpoint's end.
    let mut found = 0;
    let names = disk.list().unwrap();
    for name in names.iter().filter(|name| name.starts_with("wal-")) {
        let damaged = disk.after_crash(1);
        damaged.flip_bit(name, 100, 1);
        found += usize::from(check(&damaged).1.iter().any(|text| text.contains("damaged at byte")));
    }
    assert!(found > 0, "{names:?}");
}
