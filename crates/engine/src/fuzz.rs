//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use sys::disk::{Disk, OpenMode};
use sys::sim::SimDisk;

use crate::backup::manifest::{Manifest, end_line};
use crate::difference::{apply_difference, write_difference};
use crate::row::{BlobRef, Header, UndoEntry};
use crate::{attachments, codec};

/// Entries of undo, and the versions that they give.
#[test]
fn undo_entries() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let (version, entry) = bytes.split_at(bytes.len().min(24));
        let _ = BlobRef::decode(bytes);
        let _ = Header::of(bytes);
        let _ = UndoEntry::subject(entry);
        let Some(read) = UndoEntry::decode(entry) else { return };
        let mut written = Vec::new();
        read.write(&mut written);
        assert_eq!(UndoEntry::decode(&written), Some(read));
        let mut out = Vec::new();
        if read.before(version, &mut out).is_some() {
            assert!(
                out.len() <= bytes.len() + 64,
                "a version is in the entry and the next version"
            );
        }
        if let UndoEntry::Update { gone, .. } = read {
            assert!(gone.iter().count() <= bytes.len());
        }
    });
}

/// Differences of two versions.
#[test]
fn differences() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((&length, rest)) = bytes.split_first() else { return };
        let (old, new) = rest.split_at(usize::from(length).min(rest.len()));
        let (mut difference, mut back) = (Vec::new(), Vec::new());
        write_difference(old, new, &mut difference);
        assert_eq!(apply_difference(&difference, new, &mut back), Some(()));
        assert_eq!(back, old);
        let _ = apply_difference(old, new, &mut Vec::new());
    });
}

/// Definitions of tables.
#[test]
fn definitions() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((table, trees)) = codec::decode(bytes) else { return };
        assert!(table.columns.len() + table.indexes.len() + trees.len() <= bytes.len());
        let stored = codec::encode(&table, &trees);
        let (again, trees) = codec::decode(&stored).expect("a written definition");
        assert_eq!(codec::encode(&again, &trees), stored);
    });
}

/// Files beside the space: the list of a backup, and where attachments begin.
#[test]
fn files() {
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let whole = format!("{text}\n{}", end_line(&format!("{text}\n")));
        for text in [&*text, &whole] {
            let Some(read) = Manifest::decode(text) else { continue };
            assert!(read.files.iter().all(|file| !file.name.contains('/')));
            assert_eq!(Manifest::decode(&read.encode()), Some(read));
        }
        let disk = SimDisk::new();
        let file = disk.open("attachments", OpenMode::OrCreate).expect("a file");
        file.write_at(bytes, 0).expect("a simulated disk");
        let _ = attachments::read(&disk);
    });
}
