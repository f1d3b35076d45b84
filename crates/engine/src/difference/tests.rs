//! Differences: what is written makes the old version again, and stays small.

use super::{apply_difference, write_difference};

/// Returns the length of the difference.
fn check(old: &[u8], new: &[u8]) -> usize {
    let (mut difference, mut back) = (Vec::new(), Vec::new());
    write_difference(old, new, &mut difference);
    apply_difference(&difference, new, &mut back).expect("just written");
    assert_eq!(back, old, "{old:?} from {new:?}");
    difference.len()
}

#[test]
fn every_pair_of_short_texts_comes_back() {
    let mut texts = vec![Vec::new()];
    for length in 1..=6 {
        for bits in 0..1_u8 << length {
            texts.push((0..length).map(|bit| bits >> bit & 1).collect());
        }
    }
    for old in &texts {
        for new in &texts {
            check(old, new);
        }
    }
}

#[test]
fn changes_anywhere_in_longer_texts_come_back() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize % limit
    };
    for _ in 0..20_000 {
        let old: Vec<u8> = (0..next(90)).map(|_| next(3) as u8).collect();
        let mut new = old.clone();
        for _ in 0..next(4) {
            let (from, count) = (next(new.len() + 1), next(12));
            let to = (from + count).min(new.len());
            let put: Vec<u8> = (0..next(12)).map(|_| next(3) as u8).collect();
            new.splice(from..to, put);
        }
        check(&old, &new);
    }
}

#[test]
fn a_difference_is_as_long_as_what_changed() {
    let old: Vec<u8> = (0..200).collect();
    assert_eq!(check(&old, &old), 0);
    let mut new = old.clone();
    new[8..12].fill(0);
    assert_eq!(check(&old, &new), 3 + 4);
    new[190] = 0;
    assert_eq!(check(&old, &new), 3 + 4 + 4 + 1);
    new.splice(100..110, []);
    assert!(check(&old, &new) < 120);
    let longer = [&old[..150], &[7; 30], &old[150..]].concat();
    assert_eq!(check(&old, &longer), 4);
    assert_eq!(check(&longer, &old), 4 + 30);
}

#[test]
fn damaged_differences_are_refused() {
    for difference in [&[9, 0, 0][..], &[0, 9, 0], &[0, 0, 5, 1], &[1], &[0x80; 11]] {
        assert_eq!(apply_difference(difference, b"1234", &mut Vec::new()), None);
    }
}
