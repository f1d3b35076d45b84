//! Collations: known pairs, and laws that relate comparison, keys and hashes.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use proptest::prelude::*;

use crate::{
    Collation, CollationId, Encoding, charset_by_name, charsets, collation, collation_by_name,
    collations,
};

fn of(name: &str) -> &'static Collation {
    collation_by_name(name).expect(name)
}

fn key(collation: &Collation, text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    collation.write_key(text, &mut out);
    out
}

fn hash(collation: &Collation, text: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    collation.hash(text, &mut hasher);
    hasher.finish()
}

#[test]
fn known_pairs() {
    let ai = of("utf8mb4_0900_ai_ci");
    assert!(ai.equal("É".as_bytes(), b"e"));
    assert!(ai.equal("ß".as_bytes(), b"SS"));
    assert!(!ai.equal(b"a", b"a "));
    assert!(!of("utf8mb4_0900_as_cs").equal(b"a", b"A"));
    assert!(of("utf8mb4_0900_as_ci").equal(b"a", b"A"));
    assert!(of("utf8mb4_general_ci").equal("É".as_bytes(), b"e  "));
    assert!(!of("utf8mb4_general_ci").equal("ß".as_bytes(), b"ss"));
    assert!(of("utf8mb4_unicode_ci").equal("ß".as_bytes(), b"ss"));
    assert!(of("utf8mb4_bin").equal(b"a", b"a "));
    assert_eq!(of("utf8mb4_bin").compare(b"a\t", b"a"), Ordering::Less);
    assert!(of("latin1_german2_ci").equal("ä".as_bytes(), b"AE"));
    assert!(of("latin1_swedish_ci").equal("ü".as_bytes(), b"y"));
    assert_eq!(of("utf8_general_ci").id, CollationId::UTF8MB3_GENERAL_CI);
    assert_eq!(ai.upper("straße é".as_bytes()), "STRAßE É".as_bytes());
    assert_eq!(ai.char_length("aé😀".as_bytes()), 3);
    let swedish = of("utf8mb4_sv_0900_ai_ci");
    assert_eq!(swedish.compare("ö".as_bytes(), b"z"), Ordering::Greater);
    assert_eq!(of("utf8mb4_cs_0900_ai_ci").compare(b"ch", b"cz"), Ordering::Greater);
    assert!(of("utf8mb4_german2_ci").equal("ä".as_bytes(), b"ae"));
    let mut weights = Vec::new();
    ai.sort_key("a각".as_bytes(), &mut weights);
    assert_eq!(weights, [0x1c, 0x47, 0x3b, 0xf5, 0x3c, 0x73, 0x3c, 0xd1]);
}

#[test]
fn patterns() {
    let ai = of("utf8mb4_0900_ai_ci");
    let like = |pattern: &str, text: &str| ai.like(pattern.as_bytes(), text.as_bytes(), Some('\\'));
    assert!(like("%ÉL_o%", "xx hello world"));
    assert!(like("", "") && like("%", "") && !like("_", "") && like("%%%", "a"));
    assert!(like("a\\%", "A%") && !like("a\\%", "ab"));
    assert!(!like("a", "a ") && like("a_", "a "));
    assert!(like("%aab", "aaaaaab") && !like("%aab", "aaaaaa"));
    assert!(!of("utf8mb4_bin").like(b"A%", b"ab", None));
}

#[test]
fn conversions() {
    let latin1 = charset_by_name("latin1").unwrap();
    assert_eq!(latin1.encode("é€".as_bytes()).bytes, [0xe9, 0x80]);
    assert_eq!(latin1.decode(&[0xe9, 0x80]).bytes, "é€".as_bytes());
    assert_eq!(latin1.encode("a漢".as_bytes()).first_bad, Some(1));
    let utf16 = charset_by_name("utf16").unwrap();
    assert_eq!(utf16.encode("😀".as_bytes()).bytes, [0xd8, 0x3d, 0xde, 0x00]);
    assert_eq!(utf16.decode(&[0xd8, 0x3d, 0xde, 0x00]).bytes, "😀".as_bytes());
    assert_eq!(charset_by_name("utf8mb4").unwrap().find_malformed(b"ab\xff"), Some(2));
    assert!(collations().iter().all(|c| collation(c.id).is_some_and(|found| found.name == c.name)));
}

fn texts() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[aAbcshlLzéÉßæ \t\u{1}zZ\u{301}가각漢😀]{0,8} {0,3}")
        .expect("a regex")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn keys_and_hashes_agree_with_comparison(a in texts(), b in texts()) {
        for name in ["utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_as_ci", "utf8mb4_0900_bin", "utf8mb4_bin",
            "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "latin1_german2_ci", "binary",
            "utf8mb4_cs_0900_as_cs", "utf8mb4_swedish_ci", "utf8mb4_spanish2_ci", "utf8mb4_hu_0900_ai_ci"] {
            let c = of(name);
            let order = c.compare(a.as_bytes(), b.as_bytes());
            let (x, y) = (key(c, a.as_bytes()), key(c, b.as_bytes()));
            prop_assert_eq!(x.cmp(&y), order, "{} {:?} {:?}", name, a, b);
            prop_assert!(x == y || !x.starts_with(&y));
            prop_assert_eq!(c.compare(b.as_bytes(), a.as_bytes()), order.reverse());
            if order.is_eq() {
                prop_assert_eq!(hash(c, a.as_bytes()), hash(c, b.as_bytes()));
            }
            let mut prefix = Vec::new();
            let cut = a.char_indices().nth(2).map_or(a.len(), |(at, _)| at);
            c.write_key_prefix(&a.as_bytes()[..cut], &mut prefix);
            prop_assert!(x.starts_with(&prefix), "{} {:?}", name, a);
        }
    }

    #[test]
    fn any_bytes(a in proptest::collection::vec(any::<u8>(), 0..20), b in proptest::collection::vec(any::<u8>(), 0..20)) {
        for c in collations() {
            c.compare(&a, &b);
            key(c, &a);
            hash(c, &a);
            c.like(&a, &b, Some('a'));
            c.upper(&a);
            c.charset.decode(&a);
            c.charset.encode(&a);
        }
    }
}

/// Texts and bytes that the reference server gives for them.
#[test]
fn east_asia() {
    let cases: [(&str, &str, &[u8]); 13] = [
        ("gbk", "a中文", &[b'a', 0xd6, 0xd0, 0xce, 0xc4]),
        ("gb2312", "中", &[0xd6, 0xd0]),
        ("big5", "中", &[0xa4, 0xa4]),
        ("sjis", "表ｱ", &[0x95, 0x5c, 0xb1]),
        ("cp932", "①", &[0x87, 0x40]),
        ("ujis", "丂ｱ亜", &[0x8f, 0xb0, 0xa1, 0x8e, 0xb1, 0xb0, 0xa1]),
        ("eucjpms", "①", &[0xad, 0xa1]),
        ("euckr", "한국", &[0xc7, 0xd1, 0xb1, 0xb9]),
        ("gb18030", "中", &[0xd6, 0xd0]),
        ("gb18030", "\u{80}", &[0x81, 0x30, 0x81, 0x30]),
        ("gb18030", "\u{1f600}", &[0x94, 0x39, 0xfc, 0x36]),
        ("gb18030", "\u{10ffff}", &[0xe3, 0x32, 0x9a, 0x35]),
        ("gb18030", "\u{ffff}", &[0x84, 0x31, 0xa4, 0x39]),
    ];
    for (set, text, bytes) in cases {
        let set = charset_by_name(set).expect("known");
        let encoded = set.encode(text.as_bytes());
        assert_eq!((encoded.bytes.as_slice(), encoded.first_bad), (bytes, None), "{text}");
        let decoded = set.decode(bytes);
        assert_eq!(
            (decoded.bytes.as_slice(), decoded.first_bad),
            (text.as_bytes(), None),
            "{text}"
        );
    }
}

/// Every character that a set writes reads back; truncated and stray bytes do no harm.
#[test]
fn east_asia_round_trip() {
    for set in charsets().iter().filter(|set| matches!(set.encoding, Encoding::Wide(_))) {
        // Some are written in another way than they are read: the full-width reverse solidus and similar ones.
        let mut others = 0;
        let points = (0..0x2_8000).step_by(5).filter_map(char::from_u32);
        for point in points.filter(|point| set.can_encode(*point as u32)) {
            let text = point.to_string();
            let encoded = set.encode(text.as_bytes()).bytes;
            others += usize::from(set.decode(&encoded).bytes != text.as_bytes());
            assert!(encoded.len() <= usize::from(set.max_length), "{} {text}", set.name);
            for cut in 0..encoded.len() {
                set.decode(&encoded[..cut]);
            }
        }
        assert!(others < 10, "{}: {others}", set.name);
        for lead in 0..=255u8 {
            for trail in 0..=255u8 {
                set.decode(&[lead, trail, 0x30, 0xff, lead]);
            }
        }
    }
}

#[test]
fn sets_of_bytes_take_their_characters_back() {
    for charset in charsets().iter().filter(|set| set.max_length == 1) {
        for byte in 0..=0xffu8 {
            if charset.encoding == Encoding::Binary || charset.find_malformed(&[byte]).is_some() {
                continue;
            }
            let text = charset.decode(&[byte]).bytes;
            assert_eq!(charset.find_missing(&text), None, "{} {byte:02X}", charset.name);
            assert_eq!(
                charset.decode(&charset.native(&text)).bytes,
                text,
                "{} {byte:02X}",
                charset.name
            );
        }
        assert_eq!(
            charset.find_missing("a\u{10ffff}".as_bytes()).is_some(),
            charset.name != "binary"
        );
    }
}

#[test]
fn a_text_is_cut_by_the_bytes_of_its_set() {
    let of = |name| charset_by_name(name).expect("a character set");
    let text = "aé€😀".as_bytes();
    assert_eq!(of("latin1").fitting_prefix("éé".as_bytes(), 2), 4);
    assert_eq!(of("latin1").fitting_prefix("ééé".as_bytes(), 2), 4);
    assert_eq!(of("utf8mb4").fitting_prefix(text, 5), 3);
    assert_eq!(of("utf8mb4").fitting_prefix(text, 6), 6);
    assert_eq!(of("utf16").fitting_prefix(text, 9), 6);
    assert_eq!(of("utf16").fitting_prefix(text, 10), text.len());
    assert_eq!(&*of("utf16").whole_units(&[0xe9]), &[0, 0xe9]);
    assert_eq!(&*of("utf32").whole_units(&[1, 2, 3, 4, 5]), &[0, 0, 0, 1, 2, 3, 4, 5]);
}

#[test]
fn nothing_sorts_after_the_last_character() {
    for collation in collations().iter().filter(|one| !one.charset.is_unicode()) {
        if collation.is_binary() {
            continue;
        }
        let end = "\u{10ffff}".repeat(4);
        for point in (0x20..0x1_0000).step_by(7).filter_map(char::from_u32) {
            let last = collation.compare(point.to_string().as_bytes(), end.as_bytes());
            let known = collation.charset.can_encode(point.into());
            // ÿ and its like may weigh as much.
            assert!(!known || last != Ordering::Greater, "{} {point}", collation.name);
        }
    }
}
