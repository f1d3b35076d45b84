//! Values of documents, and which statements are about documents.

use types::JsonValue;

use crate::literal::{alike, binary_value, typed};
use crate::request::changed_name;

#[test]
fn numbers_are_alike_by_value() {
    let decimal = types::json::parse(b"1.0").expect("JSON");
    assert!(alike(&JsonValue::Int(1), &JsonValue::UInt(1)));
    assert!(alike(&JsonValue::Int(1), &decimal));
    assert!(!alike(&JsonValue::Int(1), &JsonValue::string("1")));
    assert!(!alike(&JsonValue::Int(1), &JsonValue::Bool(true)));
}

#[test]
fn dates_are_alike_as_texts() {
    let date = types::Date::new(2020, 1, 2).expect("a date");
    assert!(alike(&JsonValue::Date(date), &JsonValue::string("2020-01-02")));
    assert!(!alike(&JsonValue::Date(date), &JsonValue::string("2020-01-03")));
}

#[test]
fn binary_values_need_their_header() {
    let Some(JsonValue::Opaque(252, bytes)) = binary_value(b"base64:type252:Ymlu") else {
        panic!("a binary value");
    };
    assert_eq!(bytes, b"bin");
    for text in ["plain", "base64:type252", "base64:typeX:Ymlu", "base64:type252:***"] {
        assert!(binary_value(text.as_bytes()).is_none(), "{text}");
    }
}

#[test]
fn texts_of_about_one_length_have_one_type() {
    let ty = |text: &str| typed(&JsonValue::string(text)).expect("a text").1;
    assert_eq!(ty("a"), ty("some more"));
    assert_ne!(ty("a"), ty(&"x".repeat(100)));
    assert!(typed(&JsonValue::Null).is_none());
}

#[test]
fn changes_of_one_name_are_found() {
    let name = |sql: &str| {
        let (statement, _) = syntax::parse_one(sql, &syntax::ParseOptions::default()).expect(sql);
        changed_name(&statement).map(|name| name.name.text.to_string())
    };
    assert_eq!(name("INSERT INTO v VALUES ('{}')").as_deref(), Some("v"));
    assert_eq!(name("UPDATE v AS a SET data = '{}'").as_deref(), Some("v"));
    assert_eq!(name("DELETE FROM s.v").as_deref(), Some("v"));
    assert_eq!(name("UPDATE v, t SET v.data = '{}'"), None);
    assert_eq!(name("DELETE a FROM v AS a"), None);
    assert_eq!(name("SELECT * FROM v"), None);
}
