//! JSON: printing, order, paths, and round trips of random documents.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::*;
use crate::Decimal;

fn round(text: &str) -> String {
    String::from_utf8(parse(text.as_bytes()).expect(text).to_text()).unwrap()
}

fn select(document: &str, path: &str) -> String {
    let tree = parse(document.as_bytes()).unwrap();
    let document = tree.to_binary();
    let mut found = Vec::new();
    let path = JsonPath::parse(path.as_bytes()).expect(path);
    path.select(JsonRef::new(&document), &mut found);
    // The tree leads to the same.
    let in_tree = tree.get_path(&path).map(JsonValue::to_binary);
    let only = found.first().map(|value| value.to_document()).filter(|_| !path.has_wildcard());
    assert_eq!(in_tree.as_deref(), only.as_deref(), "{path:?}");
    let texts: Vec<String> = found
        .iter()
        .map(|value| {
            let mut out = Vec::new();
            value.write_text(&mut out);
            String::from_utf8(out).unwrap()
        })
        .collect();
    texts.join(" | ")
}

#[test]
fn printing() {
    assert_eq!(
        round(r#"{"b":[1,2.0,"x\ny"],"a":null,"aa":true}"#),
        r#"{"a": null, "b": [1, 2.0, "x\ny"], "aa": true}"#
    );
    assert_eq!(
        round("[1e2, 1e20, -0.5, 18446744073709551615, 1e-20]"),
        "[100.0, 1e20, -0.5, 18446744073709551615, 1e-20]"
    );
    assert_eq!(round(r#"{"a":1,"a":2}"#), r#"{"a": 2}"#);
    assert_eq!(round(r#""\u00e9\ud83d\ude00\u0001""#), "\"é😀\\u0001\"");
    assert_eq!(round(" [] "), "[]");
    let mut out = Vec::new();
    write_pretty(&parse(br#"{"a":[1,{}],"b":[]}"#).unwrap().to_binary(), &mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}"
    );
    let tree = JsonValue::Array(vec![
        JsonValue::Decimal(Decimal::parse(b"1.50").unwrap()),
        JsonValue::Opaque(opaque::BLOB, b"abcd".to_vec()),
    ]);
    assert_eq!(tree.to_text(), br#"[1.50, "base64:type252:YWJjZA=="]"#);
}

#[test]
fn errors() {
    let error = |text: &str| parse(text.as_bytes()).unwrap_err();
    assert_eq!(error("").message, "The document is empty.");
    assert_eq!((error("[1,]").message, error("[1,]").position), ("Invalid value.", 3));
    assert_eq!(error("{a:1}").message, "Missing a name for object member.");
    assert_eq!(error("1 2").position, 2);
    assert!(error(&"[".repeat(101)).too_deep);
    assert!(parse(format!("{}1{}", "[".repeat(100), "]".repeat(100)).as_bytes()).is_ok());
}

#[test]
fn paths() {
    let document = r#"{"a": [1, {"b": 2}, [3, {"b": 4}]], "c d": 5, "b": 6}"#;
    assert_eq!(select(document, "$.a[0]"), "1");
    assert_eq!(select(document, "$.a[last][1].b"), "4");
    assert_eq!(select(document, "$.a[last-1]"), r#"{"b": 2}"#);
    assert_eq!(select(document, "$.a[0 to 1]"), r#"1 | {"b": 2}"#);
    assert_eq!(select(document, "$**.b"), "6 | 2 | 4");
    assert_eq!(select(document, "$.\"c d\""), "5");
    assert_eq!(select(document, "$.*"), r#"[1, {"b": 2}, [3, {"b": 4}]] | 6 | 5"#);
    assert_eq!(select(document, "$.b[0]"), "6");
    for bad in ["", "a", "$.", "$[", "$**", "$[a]", "$.a b", "$[2 to 1]", "$.1"] {
        assert!(JsonPath::parse(bad.as_bytes()).is_err(), "{bad}");
    }
    let mut tree = parse(b"{\"a\":[1]}").unwrap();
    let path = |text: &str| JsonPath::parse(text.as_bytes()).unwrap();
    assert!(tree.set_path(&path("$.a[5]"), JsonValue::Int(2), SetMode::Set));
    assert!(tree.set_path(&path("$.b"), JsonValue::Int(3), SetMode::Insert));
    assert!(!tree.set_path(&path("$.x"), JsonValue::Int(3), SetMode::Replace));
    assert!(tree.remove_path(&path("$.a[0]")));
    assert_eq!(tree.to_text(), br#"{"a": [2], "b": 3}"#);
}

fn values() -> impl Strategy<Value = JsonValue> {
    let leaf = prop_oneof![
        Just(JsonValue::Null),
        any::<bool>().prop_map(JsonValue::Bool),
        (-3i64..3).prop_map(JsonValue::Int),
        any::<i64>().prop_map(JsonValue::Int),
        any::<u64>().prop_map(JsonValue::UInt),
        (-4i32..4).prop_map(|n| JsonValue::Double(f64::from(n) / 2.0)),
        "[ab\"\\\\é]{0,4}".prop_map(|text| JsonValue::String(text.into_bytes())),
        (-9i64..9).prop_map(|n| JsonValue::Decimal(Decimal::from_i128(n.into(), 1))),
    ];
    leaf.prop_recursive(4, 30, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(JsonValue::Array),
            proptest::collection::vec(("[abc]{0,3}", inner), 0..5).prop_map(|members| {
                JsonValue::Object(JsonObject::from_members(
                    members.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect(),
                ))
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn round_trip_and_order(a in values(), b in values()) {
        let (x, y) = (a.to_binary(), b.to_binary());
        prop_assert_eq!(JsonValue::from_ref(JsonRef::new(&x)).to_binary(), x.clone());
        let text = a.to_text();
        prop_assert_eq!(parse(&text).unwrap().to_text(), text);
        let order = compare(&x, &y);
        let (mut k, mut l) = (Vec::new(), Vec::new());
        write_key(&x, &mut k);
        write_key(&y, &mut l);
        prop_assert_eq!(k.cmp(&l), order);
        prop_assert_eq!(compare(&y, &x), order.reverse());
        prop_assert_eq!(compare(&x, &x), Ordering::Equal);
    }

    #[test]
    fn garbage(bytes in proptest::collection::vec(any::<u8>(), 0..60), kind in 0u8..16) {
        let _ = parse(&bytes);
        let _ = JsonPath::parse(&bytes);
        let mut document = bytes.clone();
        document.insert(0, kind);
        let mut out = Vec::new();
        if document.len() < 30 {
            write_text(&document, &mut out);
            write_key(&document, &mut out);
            JsonValue::from_ref(JsonRef::new(&document));
        }
    }
}

#[test]
fn large_documents() {
    let text: Vec<String> =
        (0..20_000).map(|n| format!("{{\"k{n}\": [\"value {n}\", {n}]}}")).collect();
    let text = format!("[{}]", text.join(", "));
    let document = parse(text.as_bytes()).unwrap().to_binary();
    let mut out = Vec::new();
    write_text(&document, &mut out);
    assert!(out == text.as_bytes());
    let path = JsonPath::parse(b"$[19999].k19999[1]").unwrap();
    assert_eq!(path.first(JsonRef::new(&document)).unwrap().as_i64(), Some(19_999));
}

#[test]
fn what_a_path_leads_to_is_made_alone() {
    let documents = [
        r#"{"a": 1, "b": {"c": [1, {"d": "x\ny"}, []]}, "a": {"c": 2}}"#,
        r#"[{"a": [0]}, "t", 5, null, [[1, 2], 3]]"#,
        r#" {"\u0061": "escaped", "b\"": [true, false, 1.5e3]} "#,
        r#""alone""#,
        "17",
        "{}",
        "[]",
        r#"{"a": {"b": 1}, "a": 2}"#,
        r#"{"b": [1, 2"#,
        r#"{"a": 1, "b": 1e999}"#,
        r#"{"a": 1, "b": "\q"}"#,
        r#"{"a" 1}"#,
        "[1, 2] 3",
        "",
        "[tru]",
    ];
    let deep = format!("{{\"b\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    let long = format!("{{\"a\": {}}}", "9".repeat(400));
    let paths =
        ["$", "$.a", "$.b", "$.a.c", "$.b.c[1].d", "$[0]", "$[0].a", "$[4][0][1]", "$[0][0]"];
    let more = ["$.a[0].b", r#"$."b\"""#, "$.b.c[7]", "$.a.b"];
    let texts = documents.iter().copied().chain([deep.as_str(), long.as_str()]);
    for text in texts {
        let text = text.as_bytes();
        let whole = parse(text);
        assert_eq!(check(text), whole.as_ref().map(drop).map_err(|error| *error));
        for path in paths.iter().chain(&more) {
            let path = JsonPath::parse(path.as_bytes()).expect("a path");
            let found = parse_at(text, &path).expect("a plain path");
            let found = found.map(|value| value.map(|value| value.to_binary()));
            let wanted = whole.as_ref().map(|tree| tree.get_path(&path).map(JsonValue::to_binary));
            assert_eq!(found, wanted.map_err(|error| *error), "{path:?}");
        }
    }
    for path in ["$[last]", "$.*", "$**.a", "$[0 to 1]", "$[*]"] {
        let path = JsonPath::parse(path.as_bytes()).expect("a path");
        assert!(parse_at(b"[1]", &path).is_none());
    }
}
