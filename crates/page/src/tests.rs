//! A node against a sorted map, replay against the edited page, and total functions on garbage.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use proptest::prelude::*;

use crate::*;

fn words(page: &[AtomicU64]) -> Vec<u64> {
    page.iter().map(|word| word.load(Relaxed)).collect()
}

#[derive(Clone, Debug)]
enum Step {
    Put(Vec<u8>, Vec<u8>),
    Remove(Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    let key =
        prop::collection::vec(0_u8..4, 0..12).prop_map(|tail| [b"pre".to_vec(), tail].concat());
    let value = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        3 => (key.clone(), value).prop_map(|(key, value)| Step::Put(key, value)),
        1 => key.prop_map(Step::Remove),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn node_is_a_sorted_map_and_replays(steps in prop::collection::vec(step(), 1..120)) {
        let page = private_page(1024);
        let mut ops = Vec::new();
        let fences = Fences { lower: Some(b"pre".to_vec()), upper: Some(b"prf".to_vec()) };
        let mut edit = PageMut::new(&page, &mut ops, 3);
        edit.format_node(PageNo(7), 0, 9, &fences);
        let mut model = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(key, value) => {
                    let (slot, found) = edit.page().search(&key);
                    let done = if found {
                        edit.replace_value(slot, &value)
                    } else {
                        edit.insert(slot, &key, &value)
                    };
                    if done {
                        model.insert(key, value);
                    }
                }
                Step::Remove(key) => {
                    let (slot, found) = edit.page().search(&key);
                    prop_assert_eq!(found, model.remove(&key).is_some());
                    if found {
                        edit.remove(slot);
                    }
                }
            }
            prop_assert_eq!(edit.page().check_node(), Vec::<String>::new());
        }
        let view = edit.page();
        prop_assert_eq!(view.count(), model.len());
        for (slot, (key, value)) in model.iter().enumerate() {
            let (mut stored_key, mut stored_value) = (Vec::new(), Vec::new());
            view.copy_key(slot, &mut stored_key);
            view.copy_value(slot, &mut stored_value);
            prop_assert_eq!(&stored_key, key);
            prop_assert_eq!(&stored_value, value);
        }
        let copy = private_page(1024);
        copy.iter().for_each(|word| word.store(u64::MAX, Relaxed));
        prop_assert_eq!(touched(&ops), Some(Touched { any: 1 << 3, blank: 1 << 3 }));
        prop_assert!(apply_ops(&copy, &ops, 3).is_some());
        prop_assert_eq!(words(&copy), words(&page));
    }

    #[test]
    fn reading_garbage_ends(seed in prop::collection::vec(any::<u64>(), 128), key in prop::collection::vec(any::<u8>(), 0..30)) {
        let page: Vec<AtomicU64> = seed.into_iter().map(AtomicU64::new).collect();
        let view = PageRef::new(&page);
        let mut out = Vec::new();
        let (slot, _) = view.search(&key);
        view.copy_value(slot, &mut out);
        view.copy_key(slot, &mut out);
        view.child(view.child_slot(&key));
        view.covers(&key);
        view.upper_fence(&mut out);
    }
}

#[test]
fn a_sealed_page_knows_its_number() {
    let mut image = vec![0_u8; 512];
    image[4] = Kind::Free as u8;
    image[8] = 5;
    seal(&mut image);
    assert!(verify(&image, PageNo(5)) && !verify(&image, PageNo(6)));
    image[100] ^= 1;
    assert!(!verify(&image, PageNo(5)));
}

#[test]
fn a_leaf_has_its_golden_bytes() {
    const GOLDEN: &str = include_str!("../tests/golden/leaf.hex");
    let page = private_page(512);
    let mut ops = Vec::new();
    let mut edit = PageMut::new(&page, &mut ops, 0);
    let fences = Fences { lower: Some(b"pre".to_vec()), upper: Some(b"prf".to_vec()) };
    edit.format_node(PageNo(7), 0, 9, &fences);
    assert!(edit.insert(0, b"prea", b"one") && edit.insert(1, b"preb", &[0xAB; 40]));
    edit.set_max_txn(0x0102_0304_0506_0708);
    PageMut::set_lsn(&page, 0x1122_3344);
    let mut image: Vec<u8> = words(&page).iter().flat_map(|word| word.to_le_bytes()).collect();
    seal(&mut image);
    golden::check("leaf.hex", &image, GOLDEN);
    let read = golden::bytes(GOLDEN);
    assert!(verify(&read, PageNo(7)));
    let read: Vec<AtomicU64> = read
        .chunks_exact(8)
        .map(|word| AtomicU64::new(u64::from_le_bytes(word.try_into().expect("eight bytes"))))
        .collect();
    let view = PageRef::new(&read);
    let mut value = Vec::new();
    assert_eq!(view.search(b"preb"), (1, true));
    view.copy_value(0, &mut value);
    assert_eq!(value, b"one");
    assert_eq!((view.tree(), view.count(), view.lsn()), (9, 2, 0x1122_3344));
}

#[test]
fn a_shorter_value_stays_in_its_place() {
    let page = private_page(1024);
    let mut ops = Vec::new();
    let mut edit = PageMut::new(&page, &mut ops, 0);
    edit.format_node(PageNo(7), 0, 9, &Fences::default());
    for slot in 0..4 {
        assert!(edit.insert(slot, &[slot as u8], &[7; 100]));
    }
    let (offset, free) = (edit.page().slot(1).offset, edit.page().free_bytes());
    assert!(edit.replace_value(1, &[7; 10]));
    assert_eq!(edit.page().slot(1).offset, offset);
    assert_eq!(edit.page().free_bytes(), free + 104 - 16);
    assert_eq!(edit.page().check_node(), Vec::<String>::new());
    // All the room: the space left behind by the shorter value is used again.
    let room = edit.page().free_bytes() - 8 - 8 - 8;
    assert!(edit.insert(4, &[4], &vec![1; room]));
    assert!(!edit.replace_value(1, &[7; 17]));
    assert_eq!(edit.page().check_node(), Vec::<String>::new());
    let copy = private_page(1024);
    assert!(apply_ops(&copy, &ops, 0).is_some());
    assert_eq!(words(&copy), words(&page));
}

#[test]
fn a_value_grows_into_the_garbage_behind_it() {
    let page = private_page(1024);
    let mut ops = Vec::new();
    let mut edit = PageMut::new(&page, &mut ops, 0);
    let fences = Fences { lower: Some(b"pre".to_vec()), upper: Some(b"prf".to_vec()) };
    edit.format_node(PageNo(7), 0, 9, &fences);
    for slot in 0..7 {
        assert!(edit.insert(slot, &[b'p', b'r', b'e', slot as u8], &[slot as u8; 100]));
    }
    for slot in [0, 3, 6] {
        let (offset, free) = (edit.page().slot(slot).offset, edit.page().free_bytes());
        assert!(edit.replace_value(slot, &[9; 16]));
        assert!(edit.replace_value(slot, &[slot as u8; 101]));
        assert_eq!((edit.page().slot(slot).offset, edit.page().free_bytes()), (offset, free));
        assert_eq!(edit.page().check_node(), Vec::<String>::new());
    }
    // A record follows: the value has to move.
    let (offset, free) = (edit.page().slot(3).offset, edit.page().free_bytes());
    assert!(edit.replace_value(3, &[3; 105]));
    assert_ne!(edit.page().slot(3).offset, offset);
    assert_eq!(edit.page().free_bytes(), free - 8);
    let mut value = Vec::new();
    for slot in 0..7 {
        value.clear();
        edit.page().copy_value(slot, &mut value);
        assert_eq!(value[..], vec![slot as u8; [101, 100, 100, 105, 100, 100, 101][slot]]);
    }
    assert_eq!(edit.page().check_node(), Vec::<String>::new());
    let copy = private_page(1024);
    assert!(apply_ops(&copy, &ops, 0).is_some());
    assert_eq!(words(&copy), words(&page));
}

#[test]
fn a_page_of_many_records_with_little_garbage_is_crowded() {
    let page = private_page(4096);
    let mut ops = Vec::new();
    let mut edit = PageMut::new(&page, &mut ops, 0);
    edit.format_node(PageNo(7), 0, 9, &Fences::default());
    let mut count = 0;
    while edit.insert(count, &[count as u8], &[7; 8]) {
        count += 1;
    }
    assert!(count >= 64);
    edit.remove(9);
    edit.remove(5);
    // The place of two records: each of the next two would compact the page.
    assert!(edit.page().is_crowded(1, 8) && edit.fits(1, 8));
    (0..8).for_each(|_| edit.remove(20));
    assert!(!edit.page().is_crowded(1, 8));
    assert!(edit.insert(5, &[5], &[7; 8]) && !edit.page().is_crowded(1, 8));
}

/// Whether a change of a page with the records `prea` and `prec` is refused by an assertion.
fn is_refused(change: impl FnOnce(&mut PageMut<'_>)) -> bool {
    let page = private_page(1024);
    let mut ops = Vec::new();
    let fences = Fences { lower: Some(b"pre".to_vec()), upper: Some(b"prf".to_vec()) };
    let mut edit = PageMut::new(&page, &mut ops, 0);
    edit.format_node(PageNo(7), 0, 9, &fences);
    assert!(edit.insert(0, b"prea", b"12345678") && edit.insert(1, b"prec", b"12345678"));
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| change(&mut edit))).is_err()
}

#[test]
fn changes_that_break_a_node_are_refused() {
    let fine: fn(&mut PageMut<'_>) = |edit| assert!(edit.insert(1, b"preb", b""));
    assert!(!is_refused(fine));
    let broken: [(&str, fn(&mut PageMut<'_>)); 8] = [
        ("out of order", |edit| {
            let _ = edit.insert(2, b"preb", b"");
        }),
        ("twice", |edit| {
            let _ = edit.insert(1, b"prea", b"");
        }),
        ("outside the fences", |edit| {
            let _ = edit.insert(2, b"prfa", b"");
        }),
        ("after nothing", |edit| {
            let _ = edit.insert(3, b"pred", b"");
        }),
        ("no such record", |edit| edit.remove(2)),
        ("no such value", |edit| {
            let _ = edit.replace_value(2, b"");
        }),
        ("no such word", |edit| edit.set_value_word(0, 1, 0)),
        ("no range", |edit| {
            let fence = Some(b"pre".to_vec());
            let fences = Fences { lower: fence.clone(), upper: fence };
            edit.format_node(PageNo(7), 0, 9, &fences);
        }),
    ];
    // The order of keys is checked in debug builds only: it costs a search.
    let checked = if cfg!(debug_assertions) { &broken[..] } else { &broken[3..] };
    for (what, change) in checked {
        assert!(is_refused(change), "{what}");
    }
}

#[test]
fn tickets_of_a_page_grow() {
    let page = private_page(256);
    PageMut::set_lsn(&page, 7);
    let back = std::panic::catch_unwind(|| PageMut::set_lsn(&page, 7));
    assert!(back.is_err() && PageRef::new(&page).lsn() == 7);
}
