//! Every function accepts every argument: it returns a value or an error, never panics, and keeps the packet's bounds.

use std::panic::{AssertUnwindSafe, catch_unwind};

use function_suite::Evaluator;
use types::{CollationId, DataType, Date, DateTime, Decimal, JsonValue, Time, TypeKind, Value};

/// A xorshift generator; the seed is printed with a failure.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

const INTEGERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    7,
    31,
    63,
    64,
    100,
    1000,
    65_535,
    4_294_967_296,
    20_200_101,
    99_991_231,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];
const DOUBLES: &[f64] = &[0.0, -0.0, 0.5, -1.5, 1e15, 1e30, -1e300, f64::MAX, f64::MIN_POSITIVE];
const DECIMALS: &[&str] = &[
    "0",
    "0.5",
    "-1.5",
    "99999999999999999999.5",
    "-0.000000000000000000000000000001",
    "99999999999999999999999999999999999999999999999999999999999999999",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "é",
    "héllo wörld",
    "-17",
    "1.5e3",
    "abc,def,,",
    "2020-02-29",
    "2020-01-01 10:11:12.5",
    "-838:59:59",
    "10:11",
    "0000-00-00",
    "9999-12-31 23:59:59.999999",
    "+05:30",
    "Europe/Prague",
    "%Y-%m-%d %H:%i:%s.%f %a %W %U %j",
    "%",
    "%%%",
    "$",
    "$.a[0]",
    "$**.b",
    "$[last-1]",
    "{\"a\": [1, {\"b\": null}]}",
    "[1, 2, 3]",
    "(a|b)*c{2,3}",
    "a++(?=b)\\1",
    "[[:alpha:]",
    "one",
    "all",
    "DAY",
    "SECOND_MICROSECOND",
    "YEAR_MONTH",
    "latin1",
    "::ffff:1.2.3.4",
    "6ccd780c-baba-1026-9564-5b8c656024db",
    "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-5",
    "YWJj",
    "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz",
    "\u{10FFFF}\u{0}\n",
];

fn argument(random: &mut Random) -> (Value, DataType) {
    let text = |value: &str| {
        let length = value.chars().count() as u32;
        (Value::text(value), DataType::varchar(length, CollationId::UTF8MB4_0900_AI_CI))
    };
    match random.below(14) {
        0 => (Value::Null, DataType::null()),
        1..=3 => (Value::Int(INTEGERS[random.below(INTEGERS.len())]), DataType::bigint()),
        4 => (Value::UInt(u64::MAX >> random.below(64)), DataType::bigint_unsigned()),
        5 => (Value::Double(DOUBLES[random.below(DOUBLES.len())]), DataType::double()),
        6 => {
            let number = Decimal::parse(DECIMALS[random.below(DECIMALS.len())].as_bytes())
                .unwrap_or_default();
            let ty = DataType::decimal(65, number.scale());
            (Value::Decimal(number), ty)
        }
        7 => {
            let bytes: Vec<u8> = (0..random.below(40)).map(|_| random.below(256) as u8).collect();
            let ty = DataType::varbinary(bytes.len() as u32);
            (Value::Bytes(bytes.into()), ty)
        }
        8 => {
            let dates = [
                Date::ZERO,
                Date::MAX,
                Date::new(2020, 0, 1).unwrap(),
                Date::new(0, 1, 1).unwrap(),
                Date::new(2020, 2, 31).unwrap(),
            ];
            (Value::Date(dates[random.below(5)]), DataType::new(TypeKind::Date, 10, 0))
        }
        9 => {
            let times = [Time::ZERO, Time::MAX, Time::MIN, Time::from_micros_clamped(-1)];
            (Value::Time(times[random.below(4)]), DataType::new(TypeKind::Time, 17, 6))
        }
        10 => {
            let datetimes =
                [DateTime::ZERO, DateTime::MAX, Date::new(2020, 2, 0).unwrap().at_midnight()];
            (Value::DateTime(datetimes[random.below(3)]), DataType::new(TypeKind::DateTime, 26, 6))
        }
        11 => {
            let value = types::json::parse(b"{\"a\": [1, 2.5, \"x\", null, {\"b\": true}]}")
                .unwrap_or(JsonValue::Null);
            (value.to_value(), DataType::new(TypeKind::Json, u32::MAX, 0))
        }
        _ => text(TEXTS[random.below(TEXTS.len())]),
    }
}

#[test]
fn no_function_panics() {
    const SEED: u64 = 0x5EED_0077;
    const CALLS: usize = 400;
    let evaluator = Evaluator::default();
    let mut random = Random(SEED);
    let mut names = evaluator.function_names();
    names.sort_unstable();
    let mut failures = Vec::new();
    for name in names {
        let arity = evaluator.arity(name);
        for _ in 0..CALLS {
            let most = arity.max.min(arity.min + 4);
            let count = arity.min + random.below(most - arity.min + 1);
            let args: Vec<_> = (0..count).map(|_| argument(&mut random)).collect();
            let constant = random.below(2) == 0;
            let call = || evaluator.call(name, &args, constant);
            if catch_unwind(AssertUnwindSafe(call)).is_err() {
                failures.push(format!(
                    "{name} {:?}",
                    args.iter().map(|arg| &arg.0).collect::<Vec<_>>()
                ));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "seed {SEED:#x}:\n{}", failures.join("\n"));
}
