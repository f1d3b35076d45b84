//! Dates, times and durations from text and numbers, by the reference's rules.

use super::packed::{Date, DateTime, MICROS_PER_DAY, Time};
use super::{days_in_month, fsp_unit};
use crate::Decimal;

/// Which dates are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TemporalMode {
    /// `0000-00-00` is refused.
    pub no_zero_date: bool,
    /// A zero month or day is refused.
    pub no_zero_in_date: bool,
    /// Any day up to 31 is accepted in any month.
    pub allow_invalid_dates: bool,
    /// Fractions that do not fit are truncated, not rounded.
    pub truncate_fraction: bool,
}

/// Result of parsing a text or number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedTemporal<T> {
    /// The value; `None` when the input has none or the mode refuses it.
    pub value: Option<T>,
    /// Something follows the value.
    pub truncated: bool,
    /// The value was clamped to the range of its type.
    pub out_of_range: bool,
    /// The text had no time of day.
    pub date_only: bool,
    /// Fraction digits that were given, up to 6.
    pub fsp: u8,
    /// A zone offset in seconds that followed; the value is local to it.
    pub offset: Option<i32>,
    /// A delimiter other than the standard one: the byte, its position, the standard one.
    pub odd_delimiter: Option<(u8, usize, u8)>,
    /// Misplaced blanks: position of the first.
    pub superfluous_blank: Option<usize>,
}

impl<T> ParsedTemporal<T> {
    fn new(value: Option<T>) -> ParsedTemporal<T> {
        ParsedTemporal {
            value,
            truncated: false,
            out_of_range: false,
            date_only: false,
            fsp: 0,
            offset: None,
            odd_delimiter: None,
            superfluous_blank: None,
        }
    }

    fn map<U>(self, value: impl FnOnce(T) -> U) -> ParsedTemporal<U> {
        ParsedTemporal {
            value: self.value.map(value),
            truncated: self.truncated,
            out_of_range: self.out_of_range,
            date_only: self.date_only,
            fsp: self.fsp,
            offset: self.offset,
            odd_delimiter: self.odd_delimiter,
            superfluous_blank: self.superfluous_blank,
        }
    }
}

/// Whether the mode accepts this date.
pub fn date_is_accepted(date: Date, mode: TemporalMode) -> bool {
    if date.is_zero() {
        return !mode.no_zero_date;
    }
    if date.has_zero_part() {
        return !mode.no_zero_in_date;
    }
    mode.allow_invalid_dates || date.day() <= days_in_month(date.year(), date.month())
}

fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && is_blank(text[at]) {
        at += 1;
    }
    at
}

fn digit_at(text: &[u8], at: usize) -> Option<u32> {
    text.get(at).filter(|c| c.is_ascii_digit()).map(|c| u32::from(c - b'0'))
}

/// Year of two digits.
fn full_year(year: u32) -> u32 {
    if year < 70 { 2000 + year } else { 1900 + year }
}

/// `+HH:MM` or `-HH:MM` that ends the text.
fn read_offset(text: &[u8]) -> Option<i32> {
    if text.len() != 6 || text[3] != b':' {
        return None;
    }
    let pair = |at| Some(digit_at(text, at)? * 10 + digit_at(text, at + 1)?);
    let (hours, minutes) = (pair(1)? as i32, pair(4)? as i32);
    let total = hours * 60 + minutes;
    match text[0] {
        _ if minutes > 59 => None,
        b'+' if total <= 14 * 60 => Some(total * 60),
        // -00:00 is not an offset.
        b'-' if total > 0 && total <= 13 * 60 + 59 => Some(-total * 60),
        _ => None,
    }
}

/// Fields of a date and time while they are read.
#[derive(Default)]
struct Fields {
    values: [u32; 7],
    lengths: [usize; 7],
    count: usize,
    at: usize,
    blank_seen: bool,
    delimiter_seen: bool,
    odd_delimiter: Option<(u8, usize, u8)>,
    superfluous_blank: Option<usize>,
    undelimited: bool,
}

/// Reads up to seven numbers; `None` when a number is too large or a delimiter is misplaced.
fn read_fields(text: &[u8], start: usize) -> Option<Fields> {
    let mut fields = Fields { at: start, ..Fields::default() };
    let mut end = start;
    while end < text.len() && (text[end].is_ascii_digit() || text[end] == b'T') {
        end += 1;
    }
    let run = end - start;
    fields.undelimited = end == text.len() || text[end] == b'.';
    let mut width = 4;
    if fields.undelimited && !matches!(run, 4 | 8 | 14..) {
        width = 2;
    }
    while fields.count < 7 && digit_at(text, fields.at).is_some() {
        let index = fields.count;
        read_number(text, &mut fields, width)?;
        fields.count += 1;
        width = 2;
        if fields.at >= text.len() {
            break;
        }
        if index == 2 && text[fields.at] == b'T' {
            fields.at += 1;
            continue;
        }
        if index == 5 {
            if text[fields.at] == b'.' {
                fields.at += 1;
                width = 6;
                continue;
            }
            break;
        }
        if index == 6 {
            break;
        }
        skip_delimiters(text, &mut fields, index)?;
    }
    Some(fields)
}

fn read_number(text: &[u8], fields: &mut Fields, width: usize) -> Option<()> {
    let (index, start) = (fields.count, fields.at);
    let fixed = fields.undelimited || index == 6;
    let mut number = 0u32;
    while let Some(digit) = digit_at(text, fields.at) {
        if fixed && fields.at - start >= width {
            break;
        }
        number = number * 10 + digit;
        if number > 999_999 {
            return None;
        }
        fields.at += 1;
    }
    fields.values[index] = number;
    fields.lengths[index] = fields.at - start;
    Some(())
}

/// Skips punctuation and blanks after field `index`; blanks only between the day and the hour.
fn skip_delimiters(text: &[u8], fields: &mut Fields, index: usize) -> Option<()> {
    let start = fields.at;
    while let Some(&c) = text.get(fields.at) {
        if is_blank(c) {
            if index != 2 {
                return None;
            }
            fields.blank_seen = true;
        } else if !c.is_ascii_punctuation() {
            break;
        }
        fields.delimiter_seen = true;
        fields.at += 1;
    }
    let wanted = match index {
        0 | 1 => b'-',
        2 => b' ',
        _ => b':',
    };
    let skipped = &text[start..fields.at];
    if let Some(&first) = skipped.first()
        && first != wanted
        && fields.odd_delimiter.is_none()
    {
        fields.odd_delimiter = Some((first, start, wanted));
    } else if skipped.len() > 1 && fields.superfluous_blank.is_none() {
        fields.superfluous_blank = Some(start + 1);
    }
    Some(())
}

/// Parses a DATETIME (or DATE); the fraction is rounded or truncated to `fsp` digits.
pub fn parse_datetime(text: &[u8], fsp: u8, mode: TemporalMode) -> ParsedTemporal<DateTime> {
    parse_datetime_fields(text, fsp, mode, false).0
}

/// Also returns whether the text had the fields of a date and time, right or wrong.
fn parse_datetime_fields(
    text: &[u8],
    fsp: u8,
    mode: TemporalMode,
    only_with_blank: bool,
) -> (ParsedTemporal<DateTime>, bool) {
    let mut parsed = ParsedTemporal::new(None);
    let start = skip_blanks(text, 0);
    if start > 0 {
        parsed.superfluous_blank = Some(0);
    }
    let Some(mut fields) = read_fields(text, start) else { return (parsed, false) };
    if fields.count < 3
        || only_with_blank && (fields.count < 4 || fields.delimiter_seen && !fields.blank_seen)
    {
        return (parsed, false);
    }
    let given = fields.lengths[6];
    let mut micro = u64::from(fields.values[6]);
    let seventh = if given == 6 { digit_at(text, fields.at) } else { None };
    while given == 6 && digit_at(text, fields.at).is_some() {
        fields.at += 1;
    }
    micro *= fsp_unit(given as u8) / if given == 0 { 1_000_000 } else { 1 };
    let [mut year, month, day, hour, minute, second, _] = fields.values;
    let nonzero = fields.values.iter().any(|&value| value != 0);
    let short = if fields.undelimited { fields.lengths[0] == 2 } else { fields.lengths[0] <= 2 };
    if short && fields.lengths[0] == 2 && nonzero {
        year = full_year(year);
    }
    let rest = &text[fields.at..];
    if matches!(rest.first(), Some(b'+' | b'-')) && fields.count >= 6 {
        match read_offset(rest) {
            Some(offset) => {
                parsed.offset = Some(offset);
                fields.at = text.len();
            }
            None => return (parsed, true),
        }
    }
    parsed.truncated = skip_blanks(text, fields.at) < text.len();
    if fields.at < text.len() && is_blank(text[fields.at]) {
        parsed.superfluous_blank.get_or_insert(fields.at);
    }
    parsed.date_only = fields.count <= 3;
    parsed.fsp = given as u8;
    parsed.odd_delimiter = fields.odd_delimiter;
    parsed.superfluous_blank = parsed.superfluous_blank.or(fields.superfluous_blank);
    let Some(date) = Date::new(year, month, day) else { return (parsed, true) };
    if !date_is_accepted(date, mode) || !nonzero && parsed.truncated {
        return (parsed, true);
    }
    let Some(value) = DateTime::new(date, hour, minute, second, micro as u32) else {
        return (parsed, true);
    };
    parsed.value = round(value, seventh.unwrap_or(0) >= 5, fsp, mode);
    if parsed.value.is_none() {
        parsed.out_of_range = true;
    }
    (parsed, true)
}

/// Rounds to `fsp` digits; `up`: the digits after the microsecond amount to at least half of one.
fn round(value: DateTime, up: bool, fsp: u8, mode: TemporalMode) -> Option<DateTime> {
    if mode.truncate_fraction {
        return Some(value.truncate_fsp(fsp));
    }
    if fsp < 6 {
        return value.round_fsp(fsp);
    }
    if up { add_micro(value) } else { Some(value) }
}

fn add_micro(value: DateTime) -> Option<DateTime> {
    let micros = value.micros_of_day() + 1;
    match DateTime::from_date_and_micros(value.date(), micros) {
        Some(next) => Some(next),
        None => Some(value.date().add_days(1)?.at_midnight()),
    }
}

/// Parses a DATE; a time of day is dropped.
pub fn parse_date(text: &[u8], mode: TemporalMode) -> ParsedTemporal<Date> {
    // The time of day does not round into the next day.
    let cut = TemporalMode { truncate_fraction: true, ..mode };
    parse_datetime(text, 6, cut).map(DateTime::date)
}

/// Parses a TIME.
pub fn parse_time(text: &[u8], fsp: u8, mode: TemporalMode) -> ParsedTemporal<Time> {
    let mut at = skip_blanks(text, 0);
    let negative = text.get(at) == Some(&b'-');
    if negative {
        at += 1;
    }
    if text.len() - at >= 12 && !negative {
        let lax = TemporalMode { truncate_fraction: mode.truncate_fraction, ..Default::default() };
        let (parsed, recognised) = parse_datetime_fields(&text[at..], fsp, lax, true);
        if recognised {
            return parsed.map(DateTime::time);
        }
    }
    let mut parsed = match read_time(text, at) {
        Some(read) => finish_time(text, read, negative, fsp, mode),
        None => ParsedTemporal::new(None),
    };
    if text.first().is_some_and(|&c| is_blank(c)) {
        parsed.superfluous_blank = Some(0);
    }
    parsed
}

/// A duration while it is read.
struct TimeFields {
    /// Days, hours, minutes, seconds.
    parts: [u64; 4],
    micro: u32,
    given: u8,
    up: bool,
    at: usize,
}

fn read_integer(text: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0u64;
    while let Some(digit) = digit_at(text, *at) {
        number = number * 10 + u64::from(digit);
        if number > u64::from(u32::MAX) {
            return None;
        }
        *at += 1;
    }
    Some(number)
}

fn read_time(text: &[u8], start: usize) -> Option<TimeFields> {
    let mut at = start;
    digit_at(text, at).or_else(|| digit_at(text, at + 1).filter(|_| text[at] == b'.'))?;
    let first = read_integer(text, &mut at)?;
    let after_days = skip_blanks(text, at);
    let mut parts = [0u64; 4];
    if after_days > at && digit_at(text, after_days).is_some() && text.len() - after_days > 1 {
        at = after_days;
        parts[0] = first;
        read_colon_parts(text, &mut at, &mut parts, 1)?;
    } else if text.get(at) == Some(&b':') && digit_at(text, at + 1).is_some() {
        at += 1;
        parts[1] = first;
        read_colon_parts(text, &mut at, &mut parts, 2)?;
    } else {
        parts[1] = first / 10_000;
        parts[2] = first / 100 % 100;
        parts[3] = first % 100;
    }
    let mut fields = TimeFields { parts, micro: 0, given: 0, up: false, at };
    read_fraction(text, &mut fields);
    let exponent = matches!(text.get(fields.at), Some(b'e' | b'E'))
        && (digit_at(text, fields.at + 1).is_some()
            || matches!(text.get(fields.at + 1), Some(b'+' | b'-'))
                && digit_at(text, fields.at + 2).is_some());
    if exponent { None } else { Some(fields) }
}

fn read_colon_parts(text: &[u8], at: &mut usize, parts: &mut [u64; 4], from: usize) -> Option<()> {
    for (index, part) in parts.iter_mut().enumerate().skip(from) {
        *part = read_integer(text, at)?;
        if index == 3 || text.get(*at) != Some(&b':') || digit_at(text, *at + 1).is_none() {
            break;
        }
        *at += 1;
    }
    Some(())
}

fn read_fraction(text: &[u8], fields: &mut TimeFields) {
    if text.get(fields.at) != Some(&b'.') {
        return;
    }
    fields.at += 1;
    let mut count = 0;
    while let Some(digit) = digit_at(text, fields.at) {
        match count {
            0..6 => fields.micro = fields.micro * 10 + digit,
            6 => fields.up = digit >= 5,
            _ => {}
        }
        count += 1;
        fields.at += 1;
    }
    fields.given = count.min(6);
    for _ in count..6 {
        fields.micro *= 10;
    }
}

fn finish_time(
    text: &[u8],
    fields: TimeFields,
    negative: bool,
    fsp: u8,
    mode: TemporalMode,
) -> ParsedTemporal<Time> {
    let [days, hours, minutes, seconds] = fields.parts;
    let mut parsed = ParsedTemporal::new(None);
    parsed.fsp = fields.given;
    parsed.truncated = skip_blanks(text, fields.at) < text.len();
    if minutes > 59 || seconds > 59 {
        parsed.out_of_range = true;
        return parsed;
    }
    let hours = days.saturating_mul(24).saturating_add(hours);
    let whole = hours.saturating_mul(3600).saturating_add(minutes * 60 + seconds);
    let up = u64::from(fields.up && fsp >= 6 && !mode.truncate_fraction);
    let micros = whole.saturating_mul(1_000_000).saturating_add(u64::from(fields.micro) + up);
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    let signed = if negative { -micros } else { micros };
    // 838:59:59.9 is beyond the range before it is rounded.
    parsed.out_of_range = Time::from_micros(signed).is_none();
    let time = Time::from_micros_clamped(signed);
    parsed.value =
        Some(if mode.truncate_fraction { time.truncate_fsp(fsp) } else { time.round_fsp(fsp) });
    parsed
}

/// Year, month, day, hour, minute, second of a number, after the rules for short forms.
fn expand_number(number: i64) -> Option<i64> {
    const DATE: i64 = 1_000_000;
    Some(match number {
        0 => 0,
        10_000_101_000_000..=99_999_999_999_999 => number,
        101..=691_231 => (number + 20_000_000) * DATE,
        700_101..=991_231 => (number + 19_000_000) * DATE,
        // Years below 1000 are accepted too.
        991_232..=99_991_231 => number * DATE,
        101_000_000..=691_231_235_959 => number + 20_000_000_000_000,
        700_101_000_000..=991_231_235_959 => number + 19_000_000_000_000,
        991_231_235_960..10_000_101_000_000 => number,
        _ => return None,
    })
}

/// DATETIME from a number like `20240131` or `20240131235959`.
pub fn datetime_from_number(number: i64, mode: TemporalMode) -> ParsedTemporal<DateTime> {
    let mut parsed = ParsedTemporal::new(None);
    parsed.date_only = (0..=99_991_231).contains(&number);
    let Some(full) = expand_number(number) else { return parsed };
    let (days, clock) = ((full / 1_000_000) as u32, (full % 1_000_000) as u32);
    parsed.value = Date::new(days / 10_000, days / 100 % 100, days % 100)
        .filter(|date| date_is_accepted(*date, mode))
        .and_then(|date| DateTime::new(date, clock / 10_000, clock / 100 % 100, clock % 100, 0));
    parsed
}

/// Position of a number that is not a date among dates: the end of the last date that is written with a smaller number.
pub fn place_among_dates(number: i64) -> DateTime {
    end_of(date_until(number))
}

/// As `place_among_dates`, among datetimes.
pub fn place_among_datetimes(number: i64) -> DateTime {
    let (days, clock) = (number.max(0) / 1_000_000, (number.max(0) % 1_000_000) as u32);
    let date = date_until(days);
    let is_date = i64::from(date.year() * 10_000 + date.month() * 100 + date.day()) == days;
    let (hour, minute, second) = match (clock / 10_000, clock / 100 % 100, clock % 100) {
        _ if !is_date => return end_of(date),
        (24.., _, _) => return end_of(date),
        (hour, 60.., _) => (hour, 59, 59),
        (hour, minute, second) => (hour, minute, second.min(59)),
    };
    DateTime::new(date, hour, minute, second, 0).unwrap_or_else(|| end_of(date))
}

/// The last date whose digits are not a greater number.
fn date_until(number: i64) -> Date {
    let number = number.clamp(0, 99_991_231) as u32;
    let (month, day) = match (number / 100 % 100, number % 100) {
        (13.., _) => (12, 31),
        (month, day) => (month, day.min(31)),
    };
    Date::new(number / 10_000, month, day).unwrap_or(Date::ZERO)
}

fn end_of(date: Date) -> DateTime {
    DateTime::from_date_and_micros(date, MICROS_PER_DAY - 1).unwrap_or_else(|| date.at_midnight())
}

/// TIME from a number like `235959`, or from a full date and time.
pub fn time_from_number(number: i64) -> ParsedTemporal<Time> {
    let mut parsed = ParsedTemporal::new(None);
    let magnitude = number.unsigned_abs();
    if magnitude > 8_385_959 {
        if magnitude >= 10_000_000_000 {
            let full = datetime_from_number(number, TemporalMode::default());
            if full.value.is_some() {
                return full.map(DateTime::time);
            }
        }
        parsed.out_of_range = true;
        parsed.value = Some(if number < 0 { Time::MIN } else { Time::MAX });
        return parsed;
    }
    let magnitude = magnitude as u32;
    parsed.value =
        Time::new(number < 0, magnitude / 10_000, magnitude / 100 % 100, magnitude % 100, 0);
    parsed.out_of_range = parsed.value.is_none();
    parsed
}

/// Whole part and billionths, both with the sign of the number; `None` beyond 64 bits.
fn split_decimal(number: &Decimal) -> Option<(i64, i64)> {
    let whole = number.truncate(0);
    let fraction = number.sub(&whole)?.truncate(9).rescale(9);
    let (whole, _) = whole.as_i128()?;
    let (nanos, _) = fraction.as_i128()?;
    Some((i64::try_from(whole).ok()?, i64::try_from(nanos).ok()?))
}

/// DATETIME from a number with a fraction of a second.
pub fn datetime_from_decimal(
    number: &Decimal,
    fsp: u8,
    mode: TemporalMode,
) -> ParsedTemporal<DateTime> {
    let Some((whole, nanos)) = split_decimal(number) else { return ParsedTemporal::new(None) };
    let mut parsed = datetime_from_number(whole, mode);
    if number.is_negative() {
        parsed.value = None;
        return parsed;
    }
    parsed.fsp = number.scale().min(6);
    if parsed.date_only && whole != 0 {
        // A fraction of a date is ignored.
        return parsed;
    }
    parsed.value = parsed.value.and_then(|value| {
        let exact = value.packed() | (nanos / 1000) as u64;
        round(DateTime::from_packed(exact)?, nanos % 1000 >= 500, fsp, mode)
    });
    parsed
}

/// TIME from a number with a fraction of a second.
pub fn time_from_decimal(number: &Decimal, fsp: u8, mode: TemporalMode) -> ParsedTemporal<Time> {
    let Some((whole, nanos)) = split_decimal(number) else {
        let mut parsed = ParsedTemporal::new(None);
        parsed.out_of_range = true;
        parsed.value = Some(if number.is_negative() { Time::MIN } else { Time::MAX });
        return parsed;
    };
    let mut parsed = time_from_number(whole);
    parsed.fsp = number.scale().min(6);
    if parsed.out_of_range {
        return parsed;
    }
    let up = if nanos % 1000 >= 500 && fsp >= 6 { 1 } else { 0 };
    let up = if nanos % 1000 <= -500 && fsp >= 6 { -1 } else { up };
    let up = if mode.truncate_fraction { 0 } else { up };
    parsed.value = parsed.value.map(|value| {
        let time = Time::from_micros_clamped(value.micros() + nanos / 1000 + up);
        if mode.truncate_fraction { time.truncate_fsp(fsp) } else { time.round_fsp(fsp) }
    });
    parsed
}
