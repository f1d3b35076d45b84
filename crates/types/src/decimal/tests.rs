//! Decimals against schoolbook arithmetic on digit strings.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use proptest::prelude::*;

use super::Decimal;

fn d(text: &str) -> Decimal {
    Decimal::parse(text.as_bytes()).expect(text)
}

/// Digits of `a * b`, the long way.
fn multiply(a: &str, b: &str) -> String {
    let mut cells = vec![0u32; a.len() + b.len()];
    for (i, x) in a.bytes().rev().enumerate() {
        for (j, y) in b.bytes().rev().enumerate() {
            cells[i + j] += u32::from(x - b'0') * u32::from(y - b'0');
        }
    }
    for i in 0..cells.len() - 1 {
        cells[i + 1] += cells[i] / 10;
        cells[i] %= 10;
    }
    let text: String = cells.iter().rev().map(|c| char::from(b'0' + *c as u8)).collect();
    let text = text.trim_start_matches('0');
    if text.is_empty() { "0".into() } else { text.into() }
}

fn hash_of(value: &Decimal) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn known_results() {
    assert_eq!(d("1").div(&d("3"), 4).unwrap().to_string(), "0.3333");
    assert_eq!(d("2.00000").div(&d("3"), 4).unwrap().to_string(), "0.666666666");
    assert_eq!(d("2.000000000").div(&d("3"), 4).unwrap().to_string(), "0.6666666666667");
    assert_eq!(
        d("20.000000000000000000000000000001").div(&d("3"), 4).unwrap().to_string(),
        "6.666666666666666666666666666667"
    );
    assert_eq!(d("-5.5").rem(&d("2.1")).unwrap().to_string(), "-1.3");
    assert_eq!(d("2.5").round(0).to_string(), "3");
    assert_eq!(d("-2.5").round(0).to_string(), "-3");
    assert_eq!(d("12345.6").round(-2).to_string(), "12300");
    assert_eq!(d("99.5").round(-2).to_string(), "100");
    assert_eq!(d("-1.999").truncate(2).to_string(), "-1.99");
    assert_eq!(d("-1.5").floor().to_string(), "-2");
    assert_eq!(d("-1.5").ceil().to_string(), "-1");
    assert_eq!(d("-0.00").to_string(), "0.00");
    assert_eq!(d(".5").to_string(), "0.5");
    assert_eq!(d("1.5e3").to_string(), "1500");
    assert_eq!(d("1.5e-3").to_string(), "0.0015");
    assert_eq!(Decimal::from_f64(0.1).unwrap().to_string(), "0.1");
    assert_eq!(Decimal::from_f64(1e30).unwrap().to_string(), format!("1{}", "0".repeat(30)));
    assert!(Decimal::from_f64(1e100).is_none());
    let nines = "9".repeat(65);
    assert!(d(&nines).mul(&d(&nines)).is_none());
    assert_eq!(d(&nines).add(&d("1")).unwrap().to_string(), format!("1{}", "0".repeat(65)));
    assert!(Decimal::parse_lenient(b"abc").truncated());
    assert!(Decimal::parse_lenient(&[b'9'; 400]).overflow);
    assert_eq!(Decimal::parse_lenient(b"12.5x").value.to_string(), "12.5");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn product_and_quotient(a in "[1-9][0-9]{0,39}", b in "[1-9][0-9]{0,39}") {
        let product = multiply(&a, &b);
        let (x, y) = (d(&a), d(&b));
        let made = x.mul(&y).unwrap();
        prop_assert_eq!(made.to_string(), product);
        prop_assert_eq!(made.div_integer(&x).unwrap().to_string(), b.clone());
        prop_assert!(made.rem(&y).unwrap().is_zero());
        let bumped = made.add(&x.sub(&Decimal::from_i64(1)).unwrap()).unwrap();
        prop_assert_eq!(bumped.div_integer(&x).unwrap().to_string(), b);
        prop_assert_eq!(bumped.rem(&x).unwrap(), x.sub(&Decimal::from_i64(1)).unwrap());
    }

    #[test]
    fn sums_compare_hash(a in "-?[0-9]{1,30}\\.[0-9]{1,28}", b in "-?[0-9]{1,30}\\.[0-9]{1,28}") {
        let (x, y) = (d(&a), d(&b));
        let sum = x.add(&y).unwrap();
        prop_assert_eq!(sum.sub(&y).unwrap(), x.clone());
        prop_assert_eq!(x.cmp(&y), x.sub(&y).unwrap().sign().cmp(&0));
        let padded = x.rescale(x.scale() + 2);
        prop_assert_eq!(hash_of(&padded), hash_of(&x));
        prop_assert_eq!(&padded, &x);
        let reread = d(&x.to_string());
        prop_assert_eq!(reread.to_string(), x.to_string());
        prop_assert_eq!(x.to_f64(), a.parse::<f64>().unwrap());
    }

    #[test]
    fn key_order(a in "-?[0-9]{1,35}\\.[0-9]{1,30}", b in "-?[0-9]{0,3}\\.[0-9]{1,30}") {
        let (x, y) = (d(&a), d(&b));
        let (mut k, mut l) = (Vec::new(), Vec::new());
        x.write_key(65, 30, &mut k);
        y.write_key(65, 30, &mut l);
        prop_assert_eq!(k.cmp(&l), x.cmp(&y));
        prop_assert_eq!(Decimal::read_key(&k, 65, 30).unwrap(), x.clone());
        let (mut k, mut l) = (Vec::new(), Vec::new());
        let (x, y) = (x.clamped(12, 4), y.clamped(12, 4));
        x.write_key(12, 4, &mut k);
        y.write_key(12, 4, &mut l);
        prop_assert_eq!(k.cmp(&l), x.cmp(&y));
        prop_assert_eq!(Decimal::read_key(&k, 12, 4).unwrap(), x);
    }

    #[test]
    fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..40), more in "[-+]?[0-9]{0,100}\\.?[0-9]{0,100}(e-?[0-9]{1,4})?") {
        Decimal::parse_lenient(&text);
        let value = Decimal::parse_lenient(more.as_bytes()).value;
        let _ = (value.to_f64(), value.to_i64(), value.round(-3), value.mul(&value), value.div(&value, 4));
        let mut key = Vec::new();
        value.write_key(10, 2, &mut key);
        Decimal::read_key(&text, 65, 30);
    }
}
