//! Histograms as `COLUMN_STATISTICS` shows them and `USING DATA` gives them.

use std::cmp::Ordering;

use base64::Engine as _;
use catalog::{Histogram, HistogramBucket};
use types::compare::compare_for_sort;
use types::json::{self, JsonObject, JsonParseError, JsonValue};
use types::temporal::{ParsedTemporal, TemporalMode, parse_date, parse_datetime, parse_time};
use types::{CollationId, ComparisonKind, DataType, DateTime, Decimal, TypeKind, Value};

/// The type number of texts in JSON.
const JSON_TEXT: u8 = 254;

/// A histogram as `COLUMN_STATISTICS` shows it.
pub(crate) fn shown_histogram(histogram: &Histogram, ty: &DataType) -> Value {
    let share = JsonValue::Double;
    let bucket = |bucket: &HistogramBucket| {
        let lower = shown_value(&bucket.lower, ty);
        JsonValue::Array(if histogram.singleton {
            vec![lower, share(bucket.cumulative)]
        } else {
            let distinct = JsonValue::UInt(bucket.distinct);
            vec![lower, shown_value(&bucket.upper, ty), share(bucket.cumulative), distinct]
        })
    };
    let (data_type, collation) = kind_of(ty);
    let updated = DateTime::from_unix_micros(histogram.updated_micros);
    let text = |text: &str| JsonValue::string(text);
    let members = [
        ("buckets", JsonValue::Array(histogram.buckets.iter().map(bucket).collect())),
        ("data-type", text(data_type)),
        ("auto-update", JsonValue::Bool(histogram.auto_update)),
        ("null-values", share(histogram.nulls)),
        ("collation-id", JsonValue::UInt(u64::from(collation.0))),
        ("last-updated", updated.map_or(JsonValue::Null, JsonValue::DateTime)),
        ("sampling-rate", share(histogram.sampling_rate)),
        ("histogram-type", text(if histogram.singleton { "singleton" } else { "equi-height" })),
        ("number-of-buckets-specified", JsonValue::UInt(u64::from(histogram.buckets_max))),
    ];
    let members = members.map(|(name, value)| (name.as_bytes().to_vec(), value)).into();
    JsonValue::Object(JsonObject::from_members(members)).to_value()
}

fn shown_value(value: &Value, ty: &DataType) -> JsonValue {
    match value {
        Value::Bytes(value) if ty.as_fixed().is_some() => {
            let mut text = Vec::new();
            ty.as_fixed().iter().for_each(|kind| kind.write_text(value, &mut text));
            JsonValue::string(&text)
        }
        Value::Bytes(text) => JsonValue::Opaque(JSON_TEXT, text.to_vec()),
        other => JsonValue::from_sql(other, false),
    }
}

/// The histogram's name and collation of a type.
fn kind_of(ty: &DataType) -> (&'static str, CollationId) {
    let number = CollationId::LATIN1_SWEDISH_CI;
    match ty.kind {
        TypeKind::Enum => ("enum", ty.collation),
        TypeKind::Set => ("set", ty.collation),
        TypeKind::Bit => ("int", CollationId::BINARY),
        TypeKind::Decimal => ("decimal", number),
        TypeKind::Float | TypeKind::Double => ("double", number),
        TypeKind::Date => ("date", number),
        TypeKind::Time => ("time", number),
        TypeKind::DateTime | TypeKind::Timestamp => ("datetime", number),
        TypeKind::Fixed(kind) => (kind.name(), CollationId::BINARY),
        _ if ty.is_string() => ("string", ty.collation),
        TypeKind::BigInt if ty.unsigned => ("uint", number),
        _ => ("int", number),
    }
}

/// What is wrong with a document that should be a histogram.
#[derive(Debug)]
pub enum HistogramFault {
    /// It is no JSON.
    Text(JsonParseError),
    /// In the reference's words.
    Content(String),
}

type Read<T> = std::result::Result<T, HistogramFault>;

fn fault<T>(text: impl Into<String>) -> Read<T> {
    Err(HistogramFault::Content(text.into()))
}

fn wrong_type<T>(place: &str) -> Read<T> {
    fault(format!("Wrong attribute type at '{place}'."))
}

/// Members of the document with the places that messages name.
struct Members<'j>(&'j JsonObject);

impl<'j> Members<'j> {
    fn get(&self, name: &str) -> Read<(String, &'j JsonValue)> {
        let place = if name.contains('-') { format!("$.\"{name}\"") } else { format!("$.{name}") };
        match self.0.get(name.as_bytes()) {
            Some(value) => Ok((place, value)),
            None => fault(format!("Missing attribute at '{place}'.")),
        }
    }

    fn text(&self, name: &str) -> Read<(String, String)> {
        let (place, value) = self.get(name)?;
        let text = text_of(value, &place)?;
        Ok((place, String::from_utf8_lossy(text).into_owned()))
    }

    fn double(&self, name: &str) -> Read<(String, f64)> {
        let (place, value) = self.get(name)?;
        let number = double_of(value, &place)?;
        Ok((place, number))
    }

    fn whole(&self, name: &str) -> Read<(String, i128)> {
        let (place, value) = self.get(name)?;
        let number = whole_of(value, &place)?;
        Ok((place, number))
    }
}

fn text_of<'j>(value: &'j JsonValue, place: &str) -> Read<&'j [u8]> {
    let JsonValue::String(text) = value else { return wrong_type(place) };
    Ok(text)
}

fn double_of(value: &JsonValue, place: &str) -> Read<f64> {
    let JsonValue::Double(number) = value else { return wrong_type(place) };
    Ok(*number)
}

fn whole_of(value: &JsonValue, place: &str) -> Read<i128> {
    if let JsonValue::Int(number) = value {
        return Ok(i128::from(*number));
    }
    let JsonValue::UInt(number) = value else { return wrong_type(place) };
    Ok(i128::from(*number))
}

/// Reads a document as `COLUMN_STATISTICS` shows them, for a column of type `ty`. It counts as made at `now_micros`. Its collation must exist and
/// is not kept: values are compared by that of the column.
///
/// # Errors
/// What is wrong.
pub fn read_histogram(text: &str, ty: &DataType, now_micros: i64) -> Read<Histogram> {
    let document = json::parse(text.as_bytes()).map_err(HistogramFault::Text)?;
    let JsonValue::Object(members) = &document else {
        return fault("JSON data is not an object");
    };
    let members = Members(members);
    let (place, kind) = members.text("histogram-type")?;
    let singleton = match &*kind {
        "singleton" => true,
        "equi-height" => false,
        _ => return fault(format!("Unsupported histogram type at '{place}'.")),
    };
    let (place, data_type) = members.text("data-type")?;
    if data_type != kind_of(ty).0 {
        return fault(format!("Histogram data type does not match column data type at '{place}'."));
    }
    let (sampling_place, sampling_rate) = members.double("sampling-rate")?;
    let (buckets_place, buckets_max) = members.whole("number-of-buckets-specified")?;
    let (nulls_place, nulls) = members.double("null-values")?;
    let (collation_place, collation) = members.whole("collation-id")?;
    let (place, auto_update) = members.get("auto-update")?;
    let JsonValue::Bool(auto_update) = *auto_update else { return wrong_type(&place) };
    let share = 0.0..=1.0;
    if !share.contains(&sampling_rate) {
        return fault(format!(
            "The sampling rate must be greater than or equal to 0 and less than or equal to 1 at '{sampling_place}'."
        ));
    }
    if !(1..=1024).contains(&buckets_max) {
        return fault(format!(
            "The value of attribute number-of-buckets-specified must be an integer in the range from 1 to 1024 at '{buckets_place}'."
        ));
    }
    check_share(nulls, &nulls_place)?;
    let is_known =
        u16::try_from(collation).is_ok_and(|id| charset::collation(CollationId(id)).is_some());
    if !is_known {
        return fault(format!("The charset ID does not exist at '{collation_place}'."));
    }
    let (place, JsonValue::Array(written)) = members.get("buckets")? else {
        return wrong_type("$.buckets");
    };
    let mut buckets: Vec<HistogramBucket> = Vec::with_capacity(written.len());
    for (at, bucket) in written.iter().enumerate() {
        let place = format!("{place}[{at}]");
        let read = read_bucket(bucket, singleton, ty, buckets.last(), &place)?;
        buckets.push(read);
    }
    if let Some(last) = buckets.last()
        && (last.cumulative + nulls - 1.0).abs() > SHARES_DIFFER_MAX
    {
        return fault(
            "The sum of the null values fraction and the cumulative frequency of the last bucket should be 1.'",
        );
    }
    Ok(Histogram {
        singleton,
        buckets,
        nulls,
        buckets_max: buckets_max as u32,
        auto_update,
        updated_micros: now_micros,
        sampling_rate,
    })
}

/// Sums of shares that differ less from 1 are 1.
const SHARES_DIFFER_MAX: f64 = 1e-6;

fn check_share(share: f64, place: &str) -> Read<()> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    fault(format!(
        "The frequency must be greater than or equal to 0 and less than or equal to 1 at '{place}'."
    ))
}

/// Checks a bucket against the one before it.
fn read_bucket(
    bucket: &JsonValue,
    singleton: bool,
    ty: &DataType,
    before: Option<&HistogramBucket>,
    place: &str,
) -> Read<HistogramBucket> {
    let JsonValue::Array(parts) = bucket else { return wrong_type(place) };
    let (lower, upper, share, distinct) = match (&parts[..], singleton) {
        ([value, share], true) => (value, value, share, None),
        ([lower, upper, share, distinct], false) => (lower, upper, share, Some(distinct)),
        (_, true) => return fault(format!("Two elements required for bucket at '{place}'.")),
        (_, false) => return fault(format!("Four elements required for bucket at '{place}'.")),
    };
    let share_place = format!("{place}[{}]", if singleton { 1 } else { 2 });
    let cumulative = double_of(share, &share_place)?;
    check_share(cumulative, &share_place)?;
    let lower = read_value(lower, ty, &format!("{place}[0]"))?;
    let upper = match singleton {
        true => lower.clone(),
        false => read_value(upper, ty, &format!("{place}[1]"))?,
    };
    let distinct = match distinct {
        None => 1,
        Some(distinct) => read_distinct(distinct, &format!("{place}[3]"))?,
    };
    if order(&lower, &upper, ty).is_gt() {
        return fault(format!(
            "The lower inclusive value of bucket at '{place}[0]' must be less than or equal to upper inclusive value."
        ));
    }
    if let Some(before) = before {
        if order(&lower, &before.upper, ty).is_le() {
            return fault(if singleton {
                format!("The value at '{place}[0]' must be greater than that of previous bucket.")
            } else {
                format!(
                    "The lower inclusive value of bucket at '{place}[0]' must be greater than the upper inclusive value of previous bucket."
                )
            });
        }
        if cumulative <= before.cumulative {
            return fault(format!(
                "The cumulative frequency of bucket at '{share_place}' must be greater than that of previous bucket."
            ));
        }
    }
    Ok(HistogramBucket { lower, upper, cumulative, distinct })
}

fn read_distinct(value: &JsonValue, place: &str) -> Read<u64> {
    match u64::try_from(whole_of(value, place)?) {
        Ok(number @ 1..) => Ok(number),
        Ok(_) | Err(_) => {
            fault(format!("The number of distinct values must be a positive integer at '{place}'."))
        }
    }
}

fn order(a: &Value, b: &Value, ty: &DataType) -> Ordering {
    let is_whole = matches!(a, Value::Int(_) | Value::UInt(_));
    let kind = if is_whole { ComparisonKind::Integer } else { ComparisonKind::for_sort(ty) };
    compare_for_sort(kind, a, b)
}

/// A value of the column.
fn read_value(value: &JsonValue, ty: &DataType, place: &str) -> Read<Value> {
    let format_error = || HistogramFault::Content(format!("Value format error at '{place}'."));
    let text = || text_of(value, place);
    if let Some(kind) = ty.as_fixed() {
        return kind.parse(text()?).map(Value::Bytes).ok_or_else(format_error);
    }
    match kind_of(ty).0 {
        "string" => {
            let encoded = text()?.strip_prefix(b"base64:type254:").ok_or_else(format_error)?;
            let bytes = base64::engine::general_purpose::STANDARD.decode(encoded);
            bytes.map(|bytes| Value::Bytes(bytes.into())).map_err(|_| format_error())
        }
        "date" => {
            let read = parse_date(text()?, TemporalMode::default());
            whole(read).map(Value::Date).ok_or_else(format_error)
        }
        "time" => {
            let read = parse_time(text()?, 6, TemporalMode::default());
            whole(read).map(Value::Time).ok_or_else(format_error)
        }
        "datetime" => {
            let read = parse_datetime(text()?, 6, TemporalMode::default());
            whole(read).map(Value::DateTime).ok_or_else(format_error)
        }
        "double" => double_of(value, place).map(Value::Double),
        "decimal" => {
            let number = if let JsonValue::Double(number) = value {
                Decimal::from_f64(*number)
            } else if let JsonValue::Decimal(number) = value {
                Some(number.clone())
            } else {
                Some(Decimal::from_i128(whole_of(value, place)?, 0))
            };
            let digits = ty.length.saturating_sub(u32::from(ty.decimals));
            let fits = |number: &Decimal| number.integer_digits() <= digits;
            number.filter(fits).map(Value::Decimal).ok_or_else(|| out_of_range(place))
        }
        _ => read_whole(value, ty, place),
    }
}

/// The value of a text that has nothing else.
fn whole<T>(read: ParsedTemporal<T>) -> Option<T> {
    read.value.filter(|_| !read.truncated && !read.out_of_range)
}

fn out_of_range(place: &str) -> HistogramFault {
    HistogramFault::Content(format!("Out of range value for column at '{place}'."))
}

const YEAR_MAX: u64 = 2155;

/// A value of an integer, YEAR, BIT, ENUM or SET column.
fn read_whole(value: &JsonValue, ty: &DataType, place: &str) -> Read<Value> {
    let number = whole_of(value, place)?;
    let all_bits = |bits: u32| u64::MAX.checked_shr(64 - bits.min(64)).unwrap_or(0);
    let (least, greatest) = if let Some(range) = ty.integer_range() {
        range
    } else if ty.kind == TypeKind::Enum {
        (0, ty.member_count() as u64)
    } else if ty.kind == TypeKind::Set {
        (0, all_bits(ty.member_count() as u32))
    } else if ty.kind == TypeKind::Bit {
        (0, all_bits(ty.length))
    } else {
        (0, YEAR_MAX)
    };
    if !(i128::from(least)..=i128::from(greatest)).contains(&number) {
        return Err(out_of_range(place));
    }
    match i64::try_from(number) {
        Ok(number) if least < 0 || ty.kind == TypeKind::Year => Ok(Value::Int(number)),
        Ok(_) | Err(_) => Ok(Value::UInt(number as u64)),
    }
}
