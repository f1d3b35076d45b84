//! The encrypted disk against a plain one, under damage and crashes, and its bytes.

use std::sync::Arc;

use super::*;
use crate::entropy::SplitMix;
use crate::sim::SimDisk;
use std::sync::atomic::{AtomicU64, Ordering};

fn key(disk: &Arc<dyn Disk>) -> Arc<DirectoryKey> {
    Arc::new(DirectoryKey::make(disk, "key-1", &master(1)).unwrap())
}

fn master(fill: u8) -> Secret {
    Secret::new(vec![fill; 32])
}

fn open(below: &SimDisk) -> EncryptedDisk {
    let below: Arc<dyn Disk> = Arc::new(below.clone());
    let file = KeyFile::read(&*below).unwrap().unwrap();
    assert_eq!(file.master_id, "key-1");
    let key = DirectoryKey::open(&below, file, &master(1)).unwrap().unwrap();
    EncryptedDisk::new(below, Arc::new(key))
}

fn new_disk() -> (SimDisk, EncryptedDisk) {
    let below = SimDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(below.clone());
    let key = key(&shared);
    (below, EncryptedDisk::new(shared, key))
}

fn content(disk: &dyn Disk, name: &str) -> Vec<u8> {
    let file = disk.open(name, OpenMode::Existing).unwrap();
    let mut bytes = vec![0; file.size_bytes().unwrap() as usize + 10];
    let count = file.read_at(&mut bytes, 0).unwrap();
    bytes.truncate(count);
    bytes
}

/// Against a plain vector, with writes and sizes that end anywhere; then read by a process that starts anew.
#[test]
fn it_reads_what_was_written_and_the_disk_below_does_not_show_it() {
    let (below, disk) = new_disk();
    let (mut model, mut random) = (Vec::new(), SplitMix::new(7));
    let file = disk.open("a", OpenMode::OrCreate).unwrap();
    for round in 0..1500 {
        let offset = match random.below(3) {
            0 => random.below(20) * 512,
            _ => random.below(9000),
        } as usize;
        match random.below(8) {
            0 => {
                model.resize(offset, 0);
                file.set_size(offset as u64).unwrap();
            }
            _ => {
                let length = [512, 1024, random.below(1500) as usize][random.below(3) as usize];
                let bytes = vec![random.below(256) as u8; length];
                if length > 0 && model.len() < offset + length {
                    model.resize(offset + length, 0);
                }
                if length > 0 {
                    model[offset..offset + length].copy_from_slice(&bytes);
                }
                file.write_at(&bytes, offset as u64).unwrap();
            }
        }
        assert_eq!(file.size_bytes().unwrap(), model.len() as u64, "round {round}");
        assert!(content(&disk, "a") == model, "round {round}");
        let (from, count) = (random.below(9000) as usize, random.below(700) as usize);
        let mut part = vec![0; count];
        let read = file.read_at(&mut part, from as u64).unwrap();
        let expected = &model[from.min(model.len())..model.len().min(from + count)];
        assert!(part[..read] == *expected, "round {round}");
    }
    assert!(content(&open(&below), "a") == model);
}

#[test]
fn blocks_and_words_are_read_back_and_no_marker_is_left() {
    let (below, disk) = new_disk();
    let marker = b"a marker that nobody may read...".repeat(512);
    let file = disk.open_pages("space", OpenMode::OrCreate).unwrap();
    file.write_parts(&[(16384, &marker), (49152, &marker)]).unwrap();
    file.write_at(&marker, 0).unwrap();
    let words: Vec<AtomicU64> = (0..2048).map(|_| AtomicU64::new(0)).collect();
    assert_eq!(file.read_words(&words, 49152).unwrap(), 16384);
    let bytes: Vec<u8> =
        words.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
    assert!(bytes == marker);
    // Never written.
    assert_eq!(file.read_words(&words, 32768).unwrap(), 16384);
    assert!(words.iter().all(|word| word.load(Ordering::Relaxed) == 0));
    let stored = content(&below, "space");
    assert_eq!(stored.len(), HEADER_BYTES as usize + 65536);
    assert!(!stored.windows(16).any(|bytes| bytes == &marker[..16]));
    // The same bytes in another place are others.
    let at = HEADER_BYTES as usize;
    assert!(stored[at..at + 512] != stored[at + 512..at + 1024]);
    let mut names = disk.list().unwrap();
    names.sort();
    assert_eq!(names, ["space"]);
    // In clear, for those who have no key.
    disk.open("manifest", OpenMode::OrCreate).unwrap().write_at(b"text", 0).unwrap();
    assert_eq!(content(&below, "manifest"), b"text");
}

#[test]
fn a_file_that_is_written_front_to_back_reads_the_same() {
    let (below, disk) = new_disk();
    for length in [0, 1, 511, 512, 513, 5000] {
        let plain: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let (mut sealer, mut bytes) = FileSealer::new(&*disk.key().unwrap()).unwrap();
        for part in plain.chunks(300) {
            bytes.extend(sealer.seal(part));
        }
        bytes.extend(sealer.end());
        below.open("f", OpenMode::OrCreate).unwrap().set_size(0).unwrap();
        below.open("f", OpenMode::OrCreate).unwrap().write_at(&bytes, 0).unwrap();
        assert_eq!(content(&disk, "f"), plain);
    }
}

/// The bytes of docs/format/encryption.md.
#[test]
fn the_header_and_the_first_unit_are_as_documented() {
    let below = SimDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(below.clone());
    let text = include_str!("../../tests/golden/encryption-key");
    shared
        .open("encryption-key", OpenMode::OrCreate)
        .unwrap()
        .write_at(text.as_bytes(), 0)
        .unwrap();
    let mut stored = vec![0; HEADER_BYTES as usize];
    stored.extend(include_bytes!("../../tests/golden/encrypted-unit"));
    stored[..28].copy_from_slice(include_bytes!("../../tests/golden/encrypted-header"));
    shared.open("f", OpenMode::OrCreate).unwrap().write_at(&stored, 0).unwrap();
    assert_eq!(content(&open(&below), "f"), b"squall");
}

#[test]
fn another_master_key_is_refused_and_nothing_is_touched() {
    let (below, _) = new_disk();
    let shared: Arc<dyn Disk> = Arc::new(below.clone());
    let operations = below.operations();
    let file = || KeyFile::read(&*shared).unwrap().unwrap();
    assert!(DirectoryKey::open(&shared, file(), &master(2)).unwrap().is_none());
    assert_eq!(below.operations(), operations);
    let text = file().encode();
    for at in 0..text.len() {
        let mut damaged = text.clone().into_bytes();
        damaged[at] ^= 1;
        assert!(KeyFile::decode(&String::from_utf8_lossy(&damaged)).is_err(), "byte {at}");
        assert!(KeyFile::decode(&text[..at]).is_err(), "cut at {at}");
    }
    let later = KeyFile::decode("squall-encryption 2\n").unwrap_err();
    assert!(later.to_string().contains("later version"));
}

/// At every step of a rotation, one of the two keys opens the directory, and the data is the same.
#[test]
fn a_crash_while_the_master_key_changes_leaves_one_of_the_two() {
    for (seed, steps) in (0..60).map(|at| (at, at % 8)) {
        let (below, disk) = new_disk();
        let file = disk.open("f", OpenMode::OrCreate).unwrap();
        file.write_at(b"kept", 0).unwrap();
        file.sync().unwrap();
        disk.sync_dir().unwrap();
        below.crash_after(steps);
        let rotated = disk.key().unwrap().rotate("key-2", &master(2));
        let next = match below.has_crashed() {
            true => below.after_crash(seed),
            false => below,
        };
        let next: Arc<dyn Disk> = Arc::new(next);
        let file = KeyFile::read(&*next).unwrap().unwrap();
        let is_new = file.master_id == "key-2";
        assert!(is_new || rotated.is_err());
        let used = master(if is_new { 2 } else { 1 });
        let key = DirectoryKey::open(&next, file, &used).unwrap().unwrap();
        assert_eq!(content(&EncryptedDisk::new(next, Arc::new(key)), "f"), b"kept");
    }
}

#[test]
fn a_plain_file_in_an_encrypted_directory_is_refused() {
    let (below, disk) = new_disk();
    let bytes = vec![1; HEADER_BYTES as usize + 1];
    below.open("f", OpenMode::OrCreate).unwrap().write_at(&bytes, 0).unwrap();
    let error = disk.open("f", OpenMode::Existing).err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
    assert!(error.to_string().starts_with("f: the file is not encrypted"));
}

/// A sync that fails drops what it should have kept, while the cache still has it: the header is made anew.
#[test]
fn a_header_whose_sync_failed_is_made_anew() {
    let (below, disk) = new_disk();
    // Made, written, its size set; the sync is the fourth operation.
    below.fail_sync_after(3);
    assert!(disk.open("f", OpenMode::OrCreate).is_err());
    let file = disk.open("f", OpenMode::OrCreate).unwrap();
    file.write_at(b"kept", 0).unwrap();
    file.sync().unwrap();
    disk.sync_dir().unwrap();
    let next: Arc<dyn Disk> = Arc::new(below.after_crash(1));
    let key = KeyFile::read(&*next).unwrap().unwrap();
    let key = DirectoryKey::open(&next, key, &master(1)).unwrap().unwrap();
    assert_eq!(content(&EncryptedDisk::new(next, Arc::new(key)), "f"), b"kept");
}
