//! Assignment of values to columns: ranges, lengths, and what is said when a value does not fit.

use charset::{Collation, collation_or_binary, find_malformed};
use errors::{Diagnostics, Error, ErrorCode, Level, Result};

use super::cast::{float_of_text, json_error, string_of, year_of_number, year_of_text};
use super::numbers::{json_number, trim};
use super::temporal::{apply_offset, parse_duration, parse_moment, time_on_today, warn_delimiters};
use super::{CastContext, text_for_message, to_date, to_datetime, to_decimal, to_time};
use crate::json::{self};
use crate::text::fsp_of;
use crate::{CollationId, DataType, Date, DateTime, Decimal, SqlBytes, Time, TypeKind, Value};

/// What happens to values that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// They are errors.
    Strict,
    /// They are changed so that they fit, with a warning.
    Lenient,
}

/// Makes of `value`, which has type `from`, what column type `to` holds. NULL passes. TIMESTAMP columns take local
/// time and hold UTC.
pub fn store(
    value: &Value,
    from: &DataType,
    to: &DataType,
    ctx: &mut CastContext<'_>,
    mode: StoreMode,
) -> Result<Value> {
    use TypeKind::*;
    let mut target = Target { to, ctx, mode };
    if value.is_null() {
        return Ok(Value::Null);
    }
    match to.kind {
        Null => Ok(Value::Null),
        TinyInt | SmallInt | MediumInt | Int | BigInt => target.integer(value, from),
        Decimal => target.decimal(value, from),
        Float | Double => target.float(value, from),
        Bit => target.bit(value, from),
        Year => target.year(value, from),
        Date => target.date(value, from),
        Time => target.time(value, from),
        DateTime | Timestamp => target.datetime(value, from),
        Char | VarChar | TinyText | Text | MediumText | LongText => target.text(value, from),
        Binary | VarBinary | TinyBlob | Blob | MediumBlob | LongBlob => target.binary(value, from),
        Enum => target.enumeration(value, from),
        Set => target.set(value, from),
        Json => target.json(value, from),
        Vector | Geometry => Ok(Value::Bytes(string_of(value, from))),
    }
}

/// A column that is assigned to.
struct Target<'t, 'c, 'd> {
    to: &'t DataType,
    ctx: &'c mut CastContext<'d>,
    mode: StoreMode,
}

fn plain_text(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    value.write_plain_text(&mut text);
    text
}

impl Target<'_, '_, '_> {
    /// An error when strict, a warning when not.
    #[cold]
    fn fail(&mut self, error: Error) -> Result<()> {
        match self.mode {
            StoreMode::Strict => Err(error),
            StoreMode::Lenient => {
                self.ctx.diagnostics.push_error(Level::Warning, &error);
                Ok(())
            }
        }
    }

    fn about_column(&self, code: ErrorCode) -> Error {
        Error::with(code, &[&self.ctx.column, &self.ctx.row])
    }

    fn out_of_range(&mut self) -> Result<()> {
        let error = self.about_column(ErrorCode::WARN_DATA_OUT_OF_RANGE);
        self.fail(error)
    }

    fn truncated(&mut self) -> Result<()> {
        let error = self.about_column(ErrorCode::DATA_TRUNCATED);
        self.fail(error)
    }

    fn note_truncated(&mut self) {
        let args: [&dyn std::fmt::Display; 2] = [&self.ctx.column, &self.ctx.row];
        self.ctx.diagnostics.note(ErrorCode::DATA_TRUNCATED, &args);
    }

    /// 1366: `Incorrect integer value: 'x' for column 'c' at row 1`.
    fn incorrect(&mut self, kind: &str, text: &[u8]) -> Result<()> {
        let shown = text_for_message(text);
        let args: [&dyn std::fmt::Display; 4] = [&kind, &shown, &self.ctx.column, &self.ctx.row];
        let error = Error::with(ErrorCode::TRUNCATED_WRONG_VALUE_FOR_FIELD, &args);
        self.fail(error)
    }

    /// Runs a conversion whose only complaints are about JSON: they are errors when strict.
    fn json_scalar(&mut self, document: &[u8], target: &str) -> Result<Option<Value>> {
        let mut own = Diagnostics::new(4);
        let mut ctx = CastContext {
            sql_mode: self.ctx.sql_mode,
            diagnostics: &mut own,
            time_zone: self.ctx.time_zone,
            today: self.ctx.today,
            column: self.ctx.column,
            row: self.ctx.row,
        };
        let number = json_number(document, target, &mut ctx);
        if let Some(condition) = own.conditions().first() {
            let error = Error::new(condition.code, condition.message.clone());
            self.fail(error)?;
        }
        Ok(number)
    }

    // ---- numbers ----

    fn integer(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let (low, high) = self.to.integer_range().unwrap_or((i64::MIN, i64::MAX as u64));
        let number = self.whole_number(value, from)?;
        let (fitted, fits) = match number {
            Whole::Negative(number) if number < low => (i128::from(low), false),
            Whole::Negative(number) => (i128::from(number), true),
            Whole::Positive(number) if number > high => (i128::from(high), false),
            Whole::Positive(number) => (i128::from(number), true),
            Whole::BelowZero => (0, low < 0),
            Whole::TooLow => (i128::from(low), false),
            Whole::TooHigh => (i128::from(high), false),
        };
        if !fits {
            self.out_of_range()?;
        } else if let Value::Bytes(text) = value {
            self.check_number_text(text)?;
        }
        Ok(if self.to.unsigned { Value::UInt(fitted as u64) } else { Value::Int(fitted as i64) })
    }

    /// Complains about a text that is not wholly a number.
    fn check_number_text(&mut self, text: &[u8]) -> Result<()> {
        let parsed = Decimal::parse_lenient(text);
        if parsed.empty {
            self.incorrect("integer", text)
        } else if parsed.garbage {
            self.truncated()
        } else {
            Ok(())
        }
    }

    fn whole_number(&mut self, value: &Value, from: &DataType) -> Result<Whole> {
        Ok(match value {
            Value::Null => Whole::Positive(0),
            Value::Int(number) => Whole::of_i64(*number),
            Value::UInt(number) => Whole::Positive(*number),
            Value::Double(number) => Whole::of_f64(*number),
            Value::Decimal(number) => Whole::of_decimal(number),
            Value::Bytes(text) => {
                let parsed = Decimal::parse_lenient(text);
                match Whole::of_decimal(&parsed.value) {
                    Whole::BelowZero => Whole::Positive(0),
                    whole => whole,
                }
            }
            Value::Date(_) | Value::Time(_) | Value::DateTime(_) => {
                Whole::of_i64(super::to_i64(value, from, self.ctx))
            }
            Value::Json(document) => match self.json_scalar(document, "INTEGER")? {
                Some(number) => {
                    let whole = self.whole_number(&number, &DataType::null())?;
                    if matches!(whole, Whole::TooLow | Whole::TooHigh) {
                        let args: [&dyn std::fmt::Display; 3] =
                            [&"INTEGER", &self.ctx.column, &self.ctx.row];
                        let code = ErrorCode::NUMERIC_JSON_VALUE_OUT_OF_RANGE;
                        self.fail(Error::with(code, &args))?;
                    }
                    whole
                }
                None => Whole::Positive(0),
            },
        })
    }

    fn decimal(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let exact = match value {
            Value::Bytes(text) => {
                let parsed = Decimal::parse_lenient(text);
                let lenient = self.mode == StoreMode::Lenient;
                if lenient && parsed.garbage && !parsed.empty {
                    self.note_truncated();
                } else if parsed.truncated() {
                    self.incorrect("decimal", text)?;
                }
                parsed.value
            }
            Value::Double(number) => match Decimal::from_f64(*number) {
                Some(number) => number,
                None => Decimal::largest(81, 0, *number < 0.0),
            },
            Value::Json(document) => {
                let number = self.json_scalar(document, "DECIMAL")?.unwrap_or(Value::Int(0));
                to_decimal(&number, &DataType::null(), self.ctx)
            }
            _ => to_decimal(value, from, self.ctx),
        };
        let (precision, scale) = (self.to.length, self.to.decimals);
        if self.to.unsigned && exact.is_negative() {
            self.out_of_range()?;
            return Ok(Value::Decimal(Decimal::from_i128(0, scale)));
        }
        let rounded = exact.round(i32::from(scale));
        if rounded.integer_digits() > precision.saturating_sub(u32::from(scale)) {
            self.out_of_range()?;
            return Ok(Value::Decimal(Decimal::largest(precision, scale, exact.is_negative())));
        }
        if rounded != exact {
            self.note_truncated();
        }
        Ok(Value::Decimal(rounded.rescale(scale)))
    }

    fn float(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let single = self.to.kind == TypeKind::Float;
        let number = match value {
            Value::Bytes(text) => {
                let (number, wrong, overflow) = float_of_text(text);
                if wrong {
                    self.incorrect(if single { "FLOAT" } else { "DOUBLE" }, text)?;
                } else if overflow {
                    self.out_of_range()?;
                }
                number
            }
            Value::Json(document) => {
                let number = self.json_scalar(document, "DOUBLE")?.unwrap_or(Value::Int(0));
                super::to_f64(&number, &DataType::null(), self.ctx)
            }
            _ => super::to_f64(value, from, self.ctx),
        };
        if self.to.unsigned && number < 0.0 {
            self.out_of_range()?;
            return Ok(Value::Double(0.0));
        }
        let mut fitted = number;
        if self.to.decimals < crate::NOT_FIXED_DECIMALS {
            fitted = self.fixed_float(number)?;
        }
        if !single {
            return Ok(Value::Double(fitted));
        }
        let narrow = fitted as f32;
        if narrow.is_finite() {
            return Ok(Value::Double(f64::from(narrow)));
        }
        self.out_of_range()?;
        Ok(Value::Double(f64::from(f32::MAX).copysign(number)))
    }

    /// `FLOAT(length, decimals)`: rounded to the decimals, clamped to the digits.
    fn fixed_float(&mut self, number: f64) -> Result<f64> {
        let decimals = i32::from(self.to.decimals);
        let digits = self.to.length as i32 - decimals;
        let limit = 10f64.powi(digits) - 10f64.powi(-decimals);
        let power = 10f64.powi(decimals);
        let rounded = (number * power).round_ties_even() / power;
        let rounded = if rounded.is_finite() { rounded } else { number };
        if rounded.abs() > limit {
            self.out_of_range()?;
            return Ok(limit.copysign(number));
        }
        Ok(rounded)
    }

    fn bit(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let width = self.to.length.clamp(1, 64);
        let mask = u64::MAX >> (64 - width);
        let text = match value {
            Value::Bytes(_)
            | Value::Json(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_) => Some(string_of(value, from)),
            _ => None,
        };
        let bits = match (&text, value) {
            (Some(bytes), _) => {
                let bytes = bytes.as_slice();
                let start = bytes.iter().position(|&byte| byte != 0).unwrap_or(bytes.len());
                let bytes = &bytes[start..];
                if bytes.len() > 8 {
                    None
                } else {
                    Some(bytes.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
                }
            }
            (None, Value::Double(number)) => Some(number.trunc() as i64 as u64),
            (None, Value::Decimal(number)) if number.is_negative() || number.to_u64().1 => {
                self.out_of_range()?;
                Some(if number.is_negative() { 0 } else { mask })
            }
            (None, _) => match self.whole_number(value, from)? {
                Whole::Positive(number) => Some(number),
                Whole::Negative(number) => Some(number as u64),
                Whole::BelowZero | Whole::TooLow | Whole::TooHigh => None,
            },
        };
        match bits {
            Some(bits) if bits <= mask => Ok(Value::UInt(bits)),
            _ => {
                let code = match self.mode {
                    StoreMode::Strict => ErrorCode::DATA_TOO_LONG,
                    StoreMode::Lenient => ErrorCode::WARN_DATA_OUT_OF_RANGE,
                };
                let error = self.about_column(code);
                self.fail(error)?;
                Ok(Value::UInt(mask))
            }
        }
    }

    fn year(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let text = match value {
            Value::Bytes(text) => Some(text.clone()),
            Value::Json(_) => Some(string_of(value, from)),
            _ => None,
        };
        let year = match (&text, value) {
            (Some(text), _) => {
                let parsed = Decimal::parse_lenient(text);
                let number = match Whole::of_decimal(&parsed.value) {
                    Whole::Positive(number) => i64::try_from(number).unwrap_or(-1),
                    _ => -1,
                };
                // What stands for nothing is the year 0, not 2000.
                let nothing = parsed.empty || parsed.garbage && trim(text).starts_with(b"0x");
                let year = if nothing { Some(0) } else { year_of_text(number, trim(text).len()) };
                if year.is_some() {
                    self.check_number_text(text)?;
                }
                year
            }
            (_, Value::Date(date)) => year_of_number(i64::from(date.year())),
            (_, Value::DateTime(moment)) => year_of_number(i64::from(moment.year())),
            (_, Value::Time(_)) => year_of_number(i64::from(self.ctx.today.year())),
            (_, Value::Double(number)) if *number < 0.0 => None,
            (_, Value::Double(number)) => year_of_number(number.trunc() as i64),
            _ => match self.whole_number(value, from)? {
                Whole::Positive(number) => year_of_number(i64::try_from(number).unwrap_or(-1)),
                _ => None,
            },
        };
        if year.is_none() {
            self.out_of_range()?;
        }
        Ok(Value::UInt(year.unwrap_or(0)))
    }

    // ---- dates and times ----

    /// 1292 with the words for a column.
    fn incorrect_temporal(&self, kind: &str, text: &[u8]) -> Error {
        let (column, row) = (self.ctx.column, self.ctx.row);
        let shown = text_for_message(text);
        Error::new(
            ErrorCode::TRUNCATED_WRONG_VALUE,
            format!("Incorrect {kind} value: '{shown}' for column '{column}' at row {row}"),
        )
    }

    /// Says that a value is wrong; when lenient, in fewer words.
    fn wrong_temporal(&mut self, kind: &str, text: &[u8], out_of_range: bool) -> Result<()> {
        match self.mode {
            StoreMode::Strict => Err(self.incorrect_temporal(kind, text)),
            StoreMode::Lenient if out_of_range => self.out_of_range(),
            StoreMode::Lenient => self.truncated(),
        }
    }

    /// Notes that a part of a value was dropped.
    fn note_temporal(&mut self, kind: &str, text: &[u8]) {
        match self.mode {
            StoreMode::Strict => {
                let error = self.incorrect_temporal(kind, text);
                self.ctx.diagnostics.push_error(Level::Note, &error);
            }
            StoreMode::Lenient => self.note_truncated(),
        }
    }

    /// What a text or number means; complains when it is wrong.
    fn moment(&mut self, value: &Value, fsp: u8, kind: &str) -> Result<DateTime> {
        let mode = self.ctx.sql_mode.temporal();
        let parsed = parse_moment(value, fsp, mode);
        let moment = parsed.value.and_then(|moment| apply_offset(moment, parsed.offset, self.ctx));
        let fraction_of_date = match value {
            Value::Decimal(number) => *number != number.truncate(0),
            Value::Double(number) => *number != number.trunc(),
            _ => false,
        };
        let Some(moment) = moment else {
            let out_of_range = match value {
                Value::Int(number) => !(0..=99_999_999_999_999).contains(number),
                Value::UInt(number) => *number > 99_999_999_999_999,
                Value::Double(number) => !(0.0..=99_999_999_999_999.0).contains(number),
                Value::Decimal(number) => {
                    number.is_negative() || *number > Decimal::from_i64(99_999_999_999_999)
                }
                Value::Bytes(text) => {
                    let lax = crate::TemporalMode { allow_invalid_dates: true, ..mode };
                    trim(text) == b"0"
                        || parsed.out_of_range
                        || crate::temporal::parse_datetime(text, fsp, lax).value.is_some()
                }
                _ => false,
            };
            self.wrong_temporal(kind, &plain_text(value), out_of_range)?;
            return Ok(DateTime::ZERO);
        };
        if parsed.truncated || parsed.date_only && fraction_of_date && !moment.is_zero() {
            self.wrong_temporal(kind, &plain_text(value), false)?;
        }
        if let Value::Bytes(text) = value {
            warn_delimiters(&parsed, text, self.ctx);
        }
        Ok(moment)
    }

    /// A value of a temporal type that the mode does not take.
    fn check_date(&mut self, date: Date, kind: &str) -> Result<Date> {
        if crate::temporal::date_is_accepted(date, self.ctx.sql_mode.temporal()) {
            return Ok(date);
        }
        let mut text = Vec::new();
        date.write_text(&mut text);
        self.wrong_temporal(kind, &text, true)?;
        Ok(Date::ZERO)
    }

    /// Runs a conversion of JSON, whose warnings are errors when strict.
    fn converted_json<T>(
        &mut self,
        convert: impl FnOnce(&mut CastContext<'_>) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut own = Diagnostics::new(4);
        let mut ctx = CastContext {
            sql_mode: self.ctx.sql_mode,
            diagnostics: &mut own,
            time_zone: self.ctx.time_zone,
            today: self.ctx.today,
            column: self.ctx.column,
            row: self.ctx.row,
        };
        let converted = convert(&mut ctx);
        if let Some(condition) = own.conditions().first() {
            let error = Error::new(condition.code, condition.message.clone());
            self.fail(error)?;
        }
        Ok(converted)
    }

    fn date(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let moment = match value {
            Value::Date(date) => return Ok(Value::Date(self.check_date(*date, "date")?)),
            Value::DateTime(moment) => {
                let date = self.check_date(moment.date(), "date")?;
                DateTime::from_date_and_micros(date, moment.micros_of_day()).unwrap_or(*moment)
            }
            Value::Time(time) => time_on_today(*time, 6, self.ctx).unwrap_or(DateTime::ZERO),
            Value::Json(_) => {
                let mode = self.ctx.sql_mode.temporal();
                let date = self.converted_json(|ctx| to_date(value, from, mode, ctx))?;
                return Ok(date.map_or(Value::Null, Value::Date));
            }
            _ => self.moment(value, 6, "date")?,
        };
        // A DATE rounds what it drops.
        let rounded = if matches!(value, Value::Date(_)) {
            moment
        } else {
            moment.round_fsp(0).unwrap_or(moment)
        };
        if rounded.micros_of_day() != 0 {
            let shown = match value {
                Value::Bytes(_) | Value::Int(_) | Value::UInt(_) => plain_text(value),
                Value::Double(_) | Value::Decimal(_) => plain_text(value),
                _ => string_of(value, from).to_vec(),
            };
            self.note_temporal("date", &shown);
        }
        Ok(Value::Date(rounded.date()))
    }

    fn time(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let fsp = fsp_of(self.to);
        let mode = self.ctx.sql_mode.temporal();
        let fit = |time: Time| {
            if mode.truncate_fraction { time.truncate_fsp(fsp) } else { time.round_fsp(fsp) }
        };
        match value {
            Value::Time(time) => return Ok(Value::Time(fit(*time))),
            Value::DateTime(moment) => {
                return Ok(Value::Time(fit(moment.time())));
            }
            Value::Date(_) => return Ok(Value::Time(Time::ZERO)),
            Value::Json(_) => {
                let time = self.converted_json(|ctx| to_time(value, from, fsp, mode, ctx))?;
                return Ok(time.map_or(Value::Null, Value::Time));
            }
            Value::Bytes(text) if trim(text).is_empty() => return Ok(Value::Time(Time::ZERO)),
            _ => {}
        }
        let parsed = parse_duration(value, fsp, mode);
        let had_date = match value {
            Value::Bytes(text) => {
                parsed.value.is_some()
                    && text.len() >= 12
                    && !parsed.truncated
                    && parse_moment(value, fsp, crate::TemporalMode::default())
                        .value
                        .is_some_and(|moment| !moment.date().is_zero())
            }
            Value::Int(number) => number.unsigned_abs() >= 10_000_000_000,
            Value::UInt(number) => *number >= 10_000_000_000,
            Value::Double(number) => number.abs() >= 1e10,
            Value::Decimal(number) => number.abs() >= Decimal::from_i64(10_000_000_000),
            _ => false,
        };
        let text = plain_text(value);
        if parsed.value.is_none() || parsed.truncated || parsed.out_of_range {
            self.wrong_temporal("time", &text, parsed.out_of_range)?;
        } else if had_date {
            self.note_temporal("time", &text);
        }
        if let Value::Bytes(text) = value {
            warn_delimiters(&parsed, text, self.ctx);
        }
        Ok(Value::Time(parsed.value.unwrap_or(Time::ZERO)))
    }

    fn datetime(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let fsp = fsp_of(self.to);
        let mode = self.ctx.sql_mode.temporal();
        let moment = match value {
            Value::DateTime(moment) => {
                let date = self.check_date(moment.date(), "datetime")?;
                let moment = if date == moment.date() { *moment } else { DateTime::ZERO };
                if mode.truncate_fraction {
                    moment.truncate_fsp(fsp)
                } else if let Some(rounded) = moment.round_fsp(fsp) {
                    rounded
                } else {
                    self.wrong_temporal("datetime", &string_of(value, from), true)?;
                    DateTime::ZERO
                }
            }
            Value::Date(date) => self.check_date(*date, "datetime")?.at_midnight(),
            Value::Time(time) => time_on_today(*time, fsp, self.ctx).unwrap_or(DateTime::ZERO),
            Value::Json(_) => {
                let converted =
                    self.converted_json(|ctx| to_datetime(value, from, fsp, mode, ctx))?;
                match converted {
                    Some(moment) => moment,
                    None => return Ok(Value::Null),
                }
            }
            _ => self.moment(value, fsp, "datetime")?,
        };
        if self.to.kind != TypeKind::Timestamp || moment.is_zero() {
            return Ok(Value::DateTime(moment));
        }
        self.timestamp(moment, &string_of(value, from))
    }

    /// Local time to UTC, 1970-01-01 00:00:01 to 2038-01-19 03:14:07.
    fn timestamp(&mut self, local: DateTime, shown: &[u8]) -> Result<Value> {
        const RANGE: std::ops::Range<i64> = 1_000_000..(1 << 31) * 1_000_000;
        let utc = self
            .ctx
            .time_zone
            .local_to_utc(local)
            .filter(|micros| RANGE.contains(micros))
            .and_then(DateTime::from_unix_micros);
        if utc.is_none() {
            self.wrong_temporal("datetime", shown, true)?;
        }
        Ok(Value::DateTime(utc.unwrap_or(DateTime::ZERO)))
    }

    // ---- strings ----

    fn too_long(&mut self) -> Result<()> {
        let code = match self.mode {
            StoreMode::Strict => ErrorCode::DATA_TOO_LONG,
            StoreMode::Lenient => ErrorCode::DATA_TRUNCATED,
        };
        let error = self.about_column(code);
        self.fail(error)
    }

    /// Position of the first bytes that the column's character set does not have.
    fn find_unfit(&self, bytes: &[u8], collation: &Collation) -> Option<usize> {
        if bytes.is_ascii() {
            return None;
        }
        if let Some(at) = find_malformed(bytes) {
            return Some(at);
        }
        let text = std::str::from_utf8(bytes).ok()?;
        text.char_indices()
            .find(|(_, c)| !collation.charset.can_encode(u32::from(*c)))
            .map(|(at, _)| at)
    }

    /// A value as a string; a float gives up digits to fit the column.
    fn string(&mut self, value: &Value, from: &DataType) -> Result<SqlBytes> {
        let Value::Double(number) = value else { return Ok(string_of(value, from)) };
        use TypeKind::{Binary, Char, VarBinary, VarChar};
        let width = match self.to.kind {
            Char | VarChar | Binary | VarBinary => self.to.length as usize,
            _ => usize::MAX,
        };
        let mut text = Vec::new();
        if !crate::text::write_float_within(*number, from, width, &mut text) {
            self.too_long()?;
            text.truncate(width);
        }
        Ok(SqlBytes::from(text))
    }

    fn text(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let collation = collation_or_binary(self.to.collation);
        let mut bytes = self.string(value, from)?;
        if let Some(at) = self.find_unfit(&bytes, collation) {
            let shown: String =
                bytes[at..].iter().take(6).map(|byte| format!("\\x{byte:02X}")).collect();
            let more = if bytes.len() - at > 6 { "..." } else { "" };
            self.incorrect("string", format!("{shown}{more}").as_bytes())?;
            bytes = if find_malformed(&bytes).is_some() {
                SqlBytes::new(&bytes[..at])
            } else {
                let encoded = collation.charset.encode(&bytes).bytes;
                SqlBytes::from(collation.charset.decode(&encoded).bytes)
            };
        }
        let cut = self.text_cut(&bytes, collation);
        if cut < bytes.len() {
            let only_spaces = bytes[cut..].iter().all(|&byte| byte == b' ');
            match (only_spaces, self.to.kind) {
                (true, TypeKind::Char) => {}
                (true, _) => self.note_truncated(),
                (false, _) => self.too_long()?,
            }
            bytes = SqlBytes::new(&bytes[..cut]);
        }
        if self.to.kind == TypeKind::Char && bytes.last() == Some(&b' ') {
            let end = bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
            bytes = SqlBytes::new(&bytes[..end]);
        }
        Ok(Value::Bytes(bytes))
    }

    /// How many bytes of a text the column takes.
    fn text_cut(&self, bytes: &[u8], collation: &Collation) -> usize {
        let limit = match self.to.kind {
            TypeKind::TinyText => 255,
            TypeKind::Text => 65_535,
            TypeKind::MediumText => 16_777_215,
            TypeKind::LongText => u32::MAX as usize,
            _ => return collation.char_prefix(bytes, self.to.length as usize),
        };
        if bytes.len() <= limit {
            return bytes.len();
        }
        let mut cut = limit;
        while cut > 0 && bytes[cut] & 0xc0 == 0x80 {
            cut -= 1;
        }
        cut
    }

    fn binary(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let mut bytes = self.string(value, from)?;
        let limit = match self.to.kind {
            TypeKind::TinyBlob => 255,
            TypeKind::Blob => 65_535,
            TypeKind::MediumBlob => 16_777_215,
            TypeKind::LongBlob => u32::MAX as usize,
            _ => self.to.length as usize,
        };
        if bytes.len() > limit {
            self.too_long()?;
            bytes = SqlBytes::new(&bytes[..limit]);
        }
        if self.to.kind == TypeKind::Binary && bytes.len() < limit {
            let mut padded = bytes.to_vec();
            padded.resize(limit, 0);
            bytes = SqlBytes::from(padded);
        }
        Ok(Value::Bytes(bytes))
    }

    // ---- ENUM, SET, JSON ----

    fn find_member(&self, name: &[u8]) -> Option<u64> {
        let collation = collation_or_binary(self.to.collation);
        let members = self.to.members.as_ref()?;
        let name = &name[..name.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)];
        members
            .names
            .iter()
            .position(|member| collation.equal(member, name))
            .map(|position| position as u64 + 1)
    }

    fn enumeration(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let count = self.to.member_count() as u64;
        let text = match value {
            Value::Bytes(text) => Some(text.clone()),
            Value::UInt(_) if from.kind == TypeKind::Enum => Some(string_of(value, from)),
            Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Json(_) => {
                Some(string_of(value, from))
            }
            _ => None,
        };
        let index = match &text {
            Some(text) => self.find_member(text).or_else(|| {
                let number = whole_text_number(text)?;
                (number <= count).then_some(number)
            }),
            None => {
                let number = truncated_number(value);
                number.filter(|number| (1..=count).contains(number))
            }
        };
        if index.is_none() {
            self.truncated()?;
        }
        Ok(Value::UInt(index.unwrap_or(0)))
    }

    fn set(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let count = self.to.member_count().min(64) as u32;
        let mask = if count == 0 { 0 } else { u64::MAX >> (64 - count) };
        let text = match value {
            Value::Bytes(text) => Some(text.clone()),
            Value::UInt(_) if from.is_enum_or_set() => Some(string_of(value, from)),
            Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Json(_) => {
                Some(string_of(value, from))
            }
            _ => None,
        };
        let Some(text) = text else {
            let bits = match value {
                Value::UInt(bits) => *bits,
                _ => truncated_number_bits(value),
            };
            if bits & !mask != 0 {
                self.truncated()?;
            }
            return Ok(Value::UInt(bits & mask));
        };
        if text.is_empty() {
            return Ok(Value::UInt(0));
        }
        let (mut bits, mut unknown) = (0, false);
        for name in text.split(|&byte| byte == b',') {
            match self.find_member(name) {
                Some(index) if index <= 64 => bits |= 1 << (index - 1),
                _ => unknown = true,
            }
        }
        if unknown {
            match whole_text_number(&text) {
                Some(number) if number & !mask == 0 => return Ok(Value::UInt(number)),
                _ => self.truncated()?,
            }
        }
        Ok(Value::UInt(bits))
    }

    fn json(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        match value {
            Value::Json(_) => Ok(value.clone()),
            Value::Bytes(_) if from.is_binary() || from.collation == CollationId::BINARY => {
                Err(Error::with(ErrorCode::INVALID_JSON_CHARSET, &[&"binary"]))
            }
            Value::Bytes(text) => {
                let column = self.ctx.column;
                let tree = json::parse(text).map_err(|error| {
                    json_error(error, |e| {
                        let args: [&dyn std::fmt::Display; 3] = [&e.message, &e.position, &column];
                        Error::with(ErrorCode::INVALID_JSON_TEXT, &args)
                    })
                })?;
                Ok(tree.to_value())
            }
            _ => {
                let message = "not a JSON text, may need CAST";
                let args: [&dyn std::fmt::Display; 3] = [&message, &0, &self.ctx.column];
                Err(Error::with(ErrorCode::INVALID_JSON_TEXT, &args))
            }
        }
    }
}

/// A text that is wholly an unsigned integer.
fn whole_text_number(text: &[u8]) -> Option<u64> {
    let digits = match text.first() {
        Some(b'+') => &text[1..],
        Some(b'-') if text[1..].iter().all(|&c| c == b'0') => &text[1..],
        _ => text,
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A number without its fraction, as ENUM takes it.
fn truncated_number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        Value::Double(number) if *number >= 0.0 => Some(*number as u64),
        Value::Decimal(number) => match number.truncate(0).to_u64() {
            (number, false) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

/// As `truncated_number`, negative numbers as their bits.
fn truncated_number_bits(value: &Value) -> u64 {
    match value {
        Value::Int(number) => *number as u64,
        Value::Double(number) => number.trunc() as i64 as u64,
        Value::Decimal(number) => number.truncate(0).to_i64().0 as u64,
        _ => 0,
    }
}

/// An integer on its way to a column.
#[derive(Clone, Copy)]
enum Whole {
    Negative(i64),
    Positive(u64),
    /// Between -1 and 0 before it was rounded to 0: an unsigned column does not take it.
    BelowZero,
    /// Below every integer type.
    TooLow,
    /// Above every integer type.
    TooHigh,
}

impl Whole {
    fn of_i64(number: i64) -> Whole {
        match u64::try_from(number) {
            Ok(number) => Whole::Positive(number),
            Err(_) => Whole::Negative(number),
        }
    }

    fn of_f64(number: f64) -> Whole {
        let rounded = number.round_ties_even();
        if rounded >= 18_446_744_073_709_551_616.0 {
            Whole::TooHigh
        } else if rounded >= 0.0 {
            Whole::Positive(rounded as u64)
        } else if rounded < -9_223_372_036_854_775_808.0 {
            Whole::TooLow
        } else {
            Whole::of_i64(rounded as i64)
        }
    }

    fn of_decimal(number: &Decimal) -> Whole {
        if !number.is_negative() {
            let (rounded, overflow) = number.to_u64();
            return if overflow { Whole::TooHigh } else { Whole::Positive(rounded) };
        }
        match number.to_i64() {
            (_, true) => Whole::TooLow,
            (0, false) => Whole::BelowZero,
            (rounded, false) => Whole::Negative(rounded),
        }
    }
}
