//! Tests of the catalogue, the error value and the diagnostics area.

use crate::{Condition, ConditionItem, ConditionItems, Diagnostics, Error, ErrorCode, Level, err};

#[test]
fn templates_are_filled_in_order() {
    let error = err!(DUP_ENTRY, 7, "t1.PRIMARY");
    assert_eq!(error.code().0, 1062);
    assert_eq!(&error.sqlstate(), b"23000");
    assert_eq!(error.message(), "Duplicate entry '7' for key 't1.PRIMARY'");
    assert_eq!(err!(BAD_FIELD_ERROR, "a").message(), "Unknown column 'a' in ''");
    assert_eq!(err!(NO_DB_ERROR, "surplus").message(), "No database selected");
    assert_eq!(
        err!(REGEXP_BAD_INTERVAL).message(),
        "Incorrect description of a {min,max} interval."
    );
    assert_eq!(
        Error::not_supported("CREATE EVENT").to_string(),
        "ERROR 1235 (42000): This version of Squall doesn't yet support 'CREATE EVENT'"
    );
}

#[test]
fn every_code_is_found_once_under_its_name() {
    let mut names = std::collections::HashSet::new();
    let mut codes = std::collections::HashSet::new();
    for code in ErrorCode::all() {
        assert!(codes.insert(code.0), "{} twice", code.0);
        let name = code.name().expect("listed");
        assert!(names.insert(name), "{name} twice");
        assert_eq!(code.entry().map(|entry| entry.code), Some(code.0));
        assert!(code.sqlstate().iter().all(u8::is_ascii_alphanumeric));
    }
    assert!(codes.len() > 700, "{}", codes.len());
    assert_eq!(ErrorCode(65000).name(), None);
    assert_eq!(&ErrorCode(4999).sqlstate(), b"HY000");
}

#[test]
fn messages_are_cut_between_characters() {
    let error = Error::new(ErrorCode::UNKNOWN_ERROR, "é".repeat(400));
    assert_eq!(error.message().len(), 510);
}

#[test]
fn diagnostics_store_a_bounded_number_and_count_all() {
    let mut area = Diagnostics::new(2);
    for row in 1..=5 {
        area.warn(ErrorCode::WARN_DATA_OUT_OF_RANGE, &[&"a", &row]);
    }
    area.push_error(Level::Error, &err!(NO_DB_ERROR));
    assert_eq!((area.conditions().len(), area.warning_count(), area.error_count()), (2, 6, 1));
    assert_eq!(area.conditions()[1].message, "Out of range value for column 'a' at row 2");
    area.clear();
    area.set_notes_enabled(false);
    area.note(ErrorCode::BAD_TABLE_ERROR, &[&"t1"]);
    assert!(area.is_empty());
}

#[test]
fn items_of_a_condition_follow_its_state_until_they_are_set() {
    let server = Condition::new(Level::Error, ErrorCode::DUP_ENTRY, *b"23000", String::new());
    assert_eq!(server.items().get(ConditionItem::ClassOrigin), "ISO 9075");
    let own = Condition { sqlstate: *b"XAE07", ..server.clone() };
    assert_eq!(own.items().get(ConditionItem::SubclassOrigin), "MySQL");
    let mut items = ConditionItems::default();
    items.set(ConditionItem::TableName, "t".to_owned());
    let error = Error::new(ErrorCode::DUP_ENTRY, "text").with_items(items);
    let mut area = Diagnostics::default();
    area.push_error(Level::Error, &error);
    let kept = area.conditions()[0].items();
    assert_eq!(kept.get(ConditionItem::TableName), "t");
    assert_eq!(kept.get(ConditionItem::ClassOrigin), "");
    assert_eq!(ConditionItem::of_name("cursor_name"), Some(ConditionItem::CursorName));
    assert_eq!(ConditionItem::of_name("message_text"), None);
}
