//! Texts of UUID, INET4 and INET6, and the order of their bytes. The answers are those of MariaDB 10.11.

use super::*;
use crate::key::{KeyReader, encode_part};
use crate::{DataType, TypeKind, Value, compare};

fn shown(kind: Fixed, text: &str) -> Option<String> {
    let value = kind.parse(text.as_bytes())?;
    let mut out = Vec::new();
    kind.write_text(&value, &mut out);
    Some(String::from_utf8(out).expect("ASCII"))
}

#[test]
fn uuids() {
    let known = Some("123e4567-e89b-12d3-a456-426655440000".to_owned());
    for text in [
        "123E4567-e89b-12d3-a456-426655440000",
        "123e4567e89b12d3a456426655440000",
        "1-23e4567e89b12d3a4564266554400-00",
        "123e4567--e89b12d3a456426655440000",
    ] {
        assert_eq!(shown(Fixed::Uuid, text), known, "{text}");
    }
    for text in [
        "",
        "x",
        "{123e4567-e89b-12d3-a456-426655440000}",
        "-123e4567e89b12d3a456426655440000",
        "123e4567e89b12d3a456426655440000-",
        " 123e4567e89b12d3a456426655440000",
        "123e4567e89b12d3a456426655440000 ",
        "123e4567e89b12d3a4564266554400000",
        "123e4567e89b12d3a45642665544000",
        "123e4567e89b12d3a45642665544000g",
    ] {
        assert_eq!(shown(Fixed::Uuid, text), None, "{text}");
    }
}

#[test]
fn inet4_addresses() {
    for (text, expected) in [
        ("1.2.3.4", "1.2.3.4"),
        ("255.255.255.255", "255.255.255.255"),
        ("000.000.000.000", "0.0.0.0"),
        ("001.2.3.04", "1.2.3.4"),
    ] {
        assert_eq!(shown(Fixed::Inet4, text).as_deref(), Some(expected));
    }
    for text in [
        "",
        "1.2.3",
        "0001.2.3.4",
        "1.2.3.256",
        " 1.2.3.4",
        "1.2.3.4 ",
        "1..2.3",
        "1.2.3.",
        ".1.2.3",
        "1.2.3.4.",
        "1.2.3.4.5",
        "1.2.3.x",
        "999.1.1.1",
        "::1.2.3.4",
        "+1.2.3.4",
    ] {
        assert_eq!(shown(Fixed::Inet4, text), None, "{text}");
    }
}

#[test]
fn inet6_addresses() {
    for (text, expected) in [
        ("::", "::"),
        ("0:0:0:0:0:0:0:0", "::"),
        ("1::", "1::"),
        ("ABCD::EF", "abcd::ef"),
        ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
        ("::ffff:01.2.3.4", "::ffff:1.2.3.4"),
        ("::ffff:0:0", "::ffff:0.0.0.0"),
        ("::ffff:1234:1", "::ffff:18.52.0.1"),
        ("::1.2.3.4", "::1.2.3.4"),
        ("::1:0", "::0.1.0.0"),
        ("::ffff:0", "::255.255.0.0"),
        ("::0.0.0.5", "::5"),
        ("::ffff", "::ffff"),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"),
        ("1:2:3:4:5::1.2.3.4", "1:2:3:4:5::102:304"),
        ("1:0:0:4:5:0:0:8", "1::4:5:0:0:8"),
        ("1:2:3:0:5:6:7:8", "1:2:3::5:6:7:8"),
        ("0:2:3:4:5:6:7:8", "::2:3:4:5:6:7:8"),
        ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7::"),
        ("1:0:2:0:3:0:4:0", "1::2:0:3:0:4:0"),
        ("0:0:1::", "0:0:1::"),
        ("fe80:0:0:1:0:0:0:1", "fe80:0:0:1::1"),
        ("::1:0:1:1", "::1:0:1:1"),
        ("::fffe:1:1", "::fffe:1:1"),
        ("::1:0:0", "::1:0:0"),
        ("0:1:0:0:0:0:0:1", "0:1::1"),
    ] {
        assert_eq!(shown(Fixed::Inet6, text).as_deref(), Some(expected), "{text}");
    }
    for text in [
        "",
        ":",
        ":1",
        "1:",
        "1::2:",
        ":::",
        "::1::",
        "1::2::3",
        "12345::",
        "00001::",
        "g::",
        "1.2.3.4",
        "1.2.3.4::",
        "::1.2.3.4::",
        "::1.2.3.4:5",
        "::ffff:1.2.3",
        "fe80::1%eth0",
        "::ffff:1.2.3.4.5",
        "::ffff:0001.2.3.4",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8::",
        "1:2:3:4::5:6:7:8",
        "1:2:3:4:5:6:7:1.2.3.4",
        "1:2:3:4:5:6::1.2.3.4",
        " ::1",
        "::1 ",
    ] {
        assert_eq!(shown(Fixed::Inet6, text), None, "{text}");
    }
}

#[test]
fn versions_1_to_5_sort_by_their_last_part_first() {
    let sorted = [
        "00000000-0000-0000-0000-000000000000",
        "00000005-0000-1000-8000-000000000001",
        "00000009-0000-1000-c000-000000000001",
        "00000002-0000-4000-8000-000000000004",
        "00000001-0000-1000-8000-000000000005",
        "00000002-0000-7000-8000-000000000000",
        "00000003-0000-6000-8000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ];
    let values = sorted.map(|text| Fixed::Uuid.parse(text.as_bytes()).expect("a UUID"));
    assert!(values.is_sorted_by_key(|value| value.to_vec()));
}

/// Any bytes are a value, whose text reads back as the same value, and so do its usual bytes.
#[test]
fn any_bytes() {
    bolero::check!().with_iterations(10_000).with_type::<[u8; LONG]>().for_each(|bytes| {
        for kind in Fixed::ALL {
            let bytes = &bytes[..kind.bytes()];
            let mut text = Vec::new();
            kind.write_text(bytes, &mut text);
            assert!(text.len() <= kind.characters() as usize);
            assert_eq!(kind.parse(&text).as_deref(), Some(bytes));
            assert_eq!(kind.of_native(&kind.native(bytes)).as_deref(), Some(bytes));
        }
    });
}

/// Texts never panic, and one that is a value has a text that is the same value.
#[test]
fn any_text() {
    bolero::check!().with_iterations(10_000).for_each(|text: &[u8]| {
        for kind in Fixed::ALL {
            let Some(value) = kind.parse(text) else { continue };
            let mut out = Vec::new();
            kind.write_text(&value, &mut out);
            assert_eq!(kind.parse(&out), Some(value));
        }
    });
}

/// Keys sort as values compare, and can be read back.
#[test]
fn keys() {
    bolero::check!().with_iterations(10_000).with_type::<([u8; LONG], [u8; LONG])>().for_each(
        |(a, b)| {
            for kind in Fixed::ALL {
                let ty = DataType::fixed(kind);
                let value = |bytes: &[u8]| Value::Bytes(SqlBytes::new(&bytes[..kind.bytes()]));
                let (a, b) = (value(a), value(b));
                let key = |value: &Value| {
                    let mut key = Vec::new();
                    encode_part(value, &ty, None, false, &mut key);
                    assert_eq!(KeyReader::new(&key).read(&ty, false).as_ref(), Some(value));
                    key
                };
                assert_eq!(Some(key(&a).cmp(&key(&b))), compare::compare(&a, &ty, &b, &ty));
                assert_eq!(ty.kind, TypeKind::Fixed(kind));
            }
        },
    );
}
