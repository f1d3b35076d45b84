//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{PageImage, PageNo, PageRef, apply_ops, private_page, touched, verify};

const PAGE_BYTES: usize = 512;

/// A page that starts with the bytes.
fn page(bytes: &[u8]) -> Box<[AtomicU64]> {
    let words = private_page(PAGE_BYTES);
    for (word, chunk) in words.iter().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_le_bytes(eight), Relaxed);
    }
    words
}

fn content_of(words: &[AtomicU64]) -> Vec<u64> {
    words.iter().map(|word| word.load(Relaxed)).collect()
}

/// Nodes of a tree, searched and checked.
#[test]
fn nodes() {
    bolero::check!().with_iterations(100).with_max_len(PAGE_BYTES + 16).for_each(
        |bytes: &[u8]| {
            let words = page(bytes);
            let node = PageRef::new(&words);
            let key = bytes.get(PAGE_BYTES..).unwrap_or(b"key");
            let (slot, is_found) = node.search(key);
            assert!(slot <= node.count() && (!is_found || slot < node.count()));
            let _ =
                (node.kind(), node.covers(key), node.child_slot(key), node.child_slot_below(None));
            let _ = (node.free_bytes(), node.used_bytes(), node.is_crowded(8, 8), node.fences());
            let mut out = Vec::new();
            for slot in 0..node.count().min(64) {
                node.copy_key(slot, &mut out);
                node.copy_value(slot, &mut out);
                node.copy_value_from(slot, 3, &mut out);
                let _ = (node.value_length(slot), node.child(slot));
                assert!(out.len() <= 4 * PAGE_BYTES * 64);
            }
            let _ = node.check_node();
            out.clear();
            node.copy_page(&mut out);
            let _ = verify(&out, PageNo(1));
            let image = PageImage::new(&out);
            let _ = (image.count(), image.max_txn());
        },
    );
}

/// Operations of the log, on a page of any bytes.
#[test]
fn operations() {
    bolero::check!().with_iterations(100).for_each(|bytes: &[u8]| {
        let (ops, content) = bytes.split_at(bytes.len() / 2);
        let words = page(content);
        let seen = touched(ops);
        for place in 0..2 {
            let before = content_of(&words);
            let applied = apply_ops(&words, ops, place);
            if let (Some(()), Some(seen)) = (applied, seen)
                && seen.any >> place & 1 == 0
            {
                assert_eq!(content_of(&words), before, "no operation is of this page");
            }
        }
        let _ = PageRef::new(&words).check_node();
    });
}
