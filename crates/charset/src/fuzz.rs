//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use std::cmp::Ordering;

use crate::{charsets, collations};

/// Texts of each character set.
#[test]
fn texts() {
    let all: Vec<_> = charsets().iter().collect();
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        let Some((&which, bytes)) = bytes.split_first() else { return };
        let set = all[usize::from(which) % all.len()];
        let malformed = set.find_malformed(bytes);
        assert!(malformed.is_none_or(|at| at < bytes.len()));
        let _ = set.whole_units(bytes);
        let decoded = set.decode(bytes);
        assert!(decoded.bytes.len() <= bytes.len() * 4 + 4);
        let _ = set.find_missing(&decoded.bytes);
        let fits = set.fitting_prefix(&decoded.bytes, bytes.len() / 2);
        assert!(fits <= decoded.bytes.len());
        let encoded = set.encode(&decoded.bytes);
        if decoded.first_bad.is_none() && encoded.first_bad.is_none() {
            let again = set.decode(&encoded.bytes);
            assert_eq!(again.bytes, decoded.bytes, "{}", set.name);
        }
    });
}

/// Orders of texts: keys agree with comparisons.
#[test]
fn orders() {
    let all = collations();
    bolero::check!().with_iterations(300).for_each(|bytes: &[u8]| {
        let Some((&[low, high, length], rest)) = bytes.split_first_chunk::<3>() else { return };
        let collation = &all[usize::from(u16::from_le_bytes([low, high])) % all.len()];
        let (a, b) = rest.split_at(usize::from(length).min(rest.len()));
        // Texts are UTF-8 but under `binary`.
        let lossy = |bytes: &[u8]| {
            if collation.is_binary() {
                bytes.to_vec()
            } else {
                String::from_utf8_lossy(bytes).into_owned().into()
            }
        };
        let (a, b): (Vec<u8>, Vec<u8>) = (lossy(a), lossy(b));
        let order = collation.compare(&a, &b);
        assert_eq!(collation.compare(&b, &a), order.reverse(), "{}", collation.name);
        assert_eq!(collation.compare(&a, &a), Ordering::Equal);
        let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
        collation.write_key(&a, &mut key_a);
        collation.write_key(&b, &mut key_b);
        assert_eq!(key_a.cmp(&key_b), order, "{} {a:?} {b:?}", collation.name);
        let _ = (collation.upper(&a), collation.lower(&a), collation.char_length(&a));
        let _ = collation.like(&b, &a, Some('\\'));
    });
}
