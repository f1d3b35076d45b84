//! Temporal values: parsing tables and calendar laws.

use proptest::prelude::*;

use super::*;

fn datetime(text: &str, fsp: u8) -> String {
    match parse_datetime(text.as_bytes(), fsp, TemporalMode::default()).value {
        Some(value) => {
            let mut out = Vec::new();
            value.write_text(fsp, &mut out);
            String::from_utf8(out).unwrap()
        }
        None => "NULL".into(),
    }
}

fn time(text: &str, fsp: u8) -> String {
    match parse_time(text.as_bytes(), fsp, TemporalMode::default()).value {
        Some(value) => {
            let mut out = Vec::new();
            value.write_text(fsp, &mut out);
            String::from_utf8(out).unwrap()
        }
        None => "NULL".into(),
    }
}

#[test]
fn datetimes() {
    assert_eq!(datetime("2024-1-2 3:4", 0), "2024-01-02 03:04:00");
    assert_eq!(datetime("20240102101112.999", 0), "2024-01-02 10:11:13");
    assert_eq!(datetime("2024-01-02 23:59:59.9", 0), "2024-01-03 00:00:00");
    assert_eq!(datetime("2024-01-02T03:04:05.1234567", 3), "2024-01-02 03:04:05.123");
    assert_eq!(datetime("2024-01-02 10:11:12.3456785", 6), "2024-01-02 10:11:12.345679");
    assert_eq!(datetime("24.1.2", 0), "2024-01-02 00:00:00");
    assert_eq!(datetime("700102", 0), "1970-01-02 00:00:00");
    assert_eq!(datetime("2024-02-30", 0), "NULL");
    assert_eq!(datetime("2024-13-01", 0), "NULL");
    assert_eq!(datetime("202401", 0), "NULL");
    assert_eq!(datetime("9999-12-31 23:59:59.9", 0), "NULL");
    assert_eq!(datetime("x", 0), "NULL");
    let zoned = parse_datetime(b"2024-01-02 10:11:12+01:00", 0, TemporalMode::default());
    assert_eq!(zoned.offset, Some(3600));
}

#[test]
fn times() {
    assert_eq!(time("10:11:12", 0), "10:11:12");
    assert_eq!(time("1011", 0), "00:10:11");
    assert_eq!(time("1 10:11", 0), "34:11:00");
    assert_eq!(time("-1:2:3.5555555", 6), "-01:02:03.555556");
    assert_eq!(time("900:00:00", 0), "838:59:59");
    assert_eq!(time("12:60:00", 0), "NULL");
    assert_eq!(time("2024-01-02 10:11:12", 0), "10:11:12");
    assert_eq!(time("1 2", 0), "00:00:01");
    assert_eq!(time("10:11:12.9", 0), "10:11:13");
    assert_eq!(time("abc", 0), "NULL");
}

#[test]
fn numbers() {
    let date = |n| datetime_from_number(n, TemporalMode::default()).value.map(|v| v.to_number());
    assert_eq!(date(101), Some(20_000_101_000_000));
    assert_eq!(date(100), None);
    assert_eq!(date(20_240_102), Some(20_240_102_000_000));
    assert_eq!(date(20_240_102_101_112), Some(20_240_102_101_112));
    assert_eq!(time_from_number(-101_112).value.map(|v| v.to_number()), Some(-101_112));
    assert_eq!(time_from_number(101_160).value, None);
}

#[test]
fn days() {
    assert_eq!(Date::new(0, 1, 1).unwrap().to_days(), 1);
    assert_eq!(Date::new(0, 12, 31).unwrap().to_days(), 365);
    assert_eq!(Date::new(1970, 1, 1).unwrap().to_days(), UNIX_EPOCH_DAY);
    assert_eq!(Date::MAX.to_days(), MAX_DAY);
    assert_eq!(Date::new(2024, 1, 1).unwrap().weekday(), 0);
    let mut previous = None;
    for day in 1..=MAX_DAY {
        let date = from_days(day).unwrap();
        assert!(date.exists() && date.to_days() == day, "{date:?} {day}");
        assert!(previous < Some(date));
        previous = Some(date);
    }
    assert_eq!(Date::new(2024, 1, 31).unwrap().add_months(1), Date::new(2024, 2, 29));
    assert_eq!(FixedOffset::parse("+05:30").unwrap().name(), "+05:30");
    assert!(FixedOffset::parse("+14:01").is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn any_text(text in "[-0-9:. T+/a ]{0,30}", bytes in proptest::collection::vec(any::<u8>(), 0..20), fsp in 0u8..8) {
        for text in [text.as_bytes(), &bytes] {
            parse_datetime(text, fsp, TemporalMode::default());
            parse_date(text, TemporalMode::default());
            parse_time(text, fsp, TemporalMode::default());
            let number = crate::Decimal::parse_lenient(text).value;
            datetime_from_decimal(&number, fsp, TemporalMode::default());
            time_from_decimal(&number, fsp, TemporalMode::default());
        }
    }

    #[test]
    fn round_trip(days in 366i64..MAX_DAY, micros in 0..MICROS_PER_DAY, more in -1_000_000_000_000i64..1_000_000_000_000) {
        let value = DateTime::from_date_and_micros(from_days(days).unwrap(), micros).unwrap();
        prop_assert_eq!(DateTime::from_packed(value.packed()), Some(value));
        prop_assert_eq!(DateTime::from_unix_micros(value.to_unix_micros().unwrap()), Some(value));
        let mut text = Vec::new();
        value.write_text(6, &mut text);
        prop_assert_eq!(parse_datetime(&text, 6, TemporalMode::default()).value, Some(value));
        if let Some(later) = value.add_micros(more) {
            prop_assert_eq!(later.micros_since(value), more);
            prop_assert_eq!(later.cmp(&value), more.cmp(&0));
        }
    }
}
