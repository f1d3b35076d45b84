//! Assignment to DATE, TIME, DATETIME and TIMESTAMP columns.

use errors::{Diagnostics, Error, ErrorCode, Level, Result};

use super::assign::{StoreMode, Target, plain_text};
use super::cast::string_of;
use super::numbers::trim;
use super::temporal::{
    apply_offset, parse_as_datetime, parse_duration, time_on_today, warn_delimiters,
};
use super::{CastContext, text_for_message, to_date, to_datetime, to_time};
use crate::text::fsp_of;
use crate::{DataType, Date, DateTime, Decimal, TemporalMode, Time, TypeKind, Value};

impl Target<'_, '_, '_> {
    /// 1292 in its wording for a column.
    pub(super) fn incorrect_temporal(&self, kind: &str, text: &[u8]) -> Error {
        let (column, row) = (self.ctx.column, self.ctx.row);
        let shown = text_for_message(text);
        Error::new(
            ErrorCode::TRUNCATED_WRONG_VALUE,
            format!("Incorrect {kind} value: '{shown}' for column '{column}' at row {row}"),
        )
    }

    /// Reports a wrong value; when lenient, with a shorter message.
    pub(super) fn wrong_temporal(
        &mut self,
        kind: &str,
        text: &[u8],
        out_of_range: bool,
    ) -> Result<()> {
        match self.mode {
            StoreMode::Strict => Err(self.incorrect_temporal(kind, text)),
            StoreMode::Lenient if out_of_range => self.out_of_range(),
            StoreMode::Lenient => self.truncated(),
        }
    }

    /// Warns that a part of a value was dropped.
    pub(super) fn note_temporal(&mut self, kind: &str, text: &[u8]) {
        match self.mode {
            StoreMode::Strict => {
                let error = self.incorrect_temporal(kind, text);
                self.ctx.diagnostics.push_error(Level::Note, &error);
            }
            StoreMode::Lenient => self.note_truncated(),
        }
    }

    /// Converts a text or number; warns or fails when it is wrong.
    pub(super) fn parse_datetime(
        &mut self,
        value: &Value,
        fsp: u8,
        kind: &str,
    ) -> Result<DateTime> {
        let mode = self.ctx.sql_mode.temporal();
        let parsed = parse_as_datetime(value, fsp, mode);
        let datetime =
            parsed.value.and_then(|datetime| apply_offset(datetime, parsed.offset, self.ctx));
        let fraction_of_date = match value {
            Value::Decimal(number) => *number != number.truncate(0),
            Value::Double(number) => *number != number.trunc(),
            _ => false,
        };
        let Some(datetime) = datetime else {
            let zero_too = TemporalMode { no_zero_date: false, ..mode };
            let is_zero = parse_as_datetime(value, fsp, zero_too).value == Some(DateTime::ZERO);
            let out_of_range = match value {
                _ if is_zero => true,
                Value::Int(number) => !(0..=99_999_999_999_999).contains(number),
                Value::UInt(number) => *number > 99_999_999_999_999,
                Value::Double(number) => !(0.0..=99_999_999_999_999.0).contains(number),
                Value::Decimal(number) => {
                    number.is_negative() || *number > Decimal::from_i64(99_999_999_999_999)
                }
                Value::Bytes(text) => {
                    let lax = TemporalMode { allow_invalid_dates: true, ..TemporalMode::default() };
                    trim(text) == b"0"
                        || parsed.out_of_range
                        || crate::temporal::parse_datetime(text, fsp, lax).value.is_some()
                }
                _ => false,
            };
            self.wrong_temporal(kind, &plain_text(value), out_of_range)?;
            return Ok(DateTime::ZERO);
        };
        if parsed.truncated || parsed.date_only && fraction_of_date && !datetime.is_zero() {
            self.wrong_temporal(kind, &plain_text(value), false)?;
        }
        if let Value::Bytes(text) = value {
            warn_delimiters(&parsed, text, self.ctx);
        }
        Ok(datetime)
    }

    /// Checks the date of a temporal value against the mode; reports a date that is not accepted.
    pub(super) fn check_date(&mut self, date: Date, kind: &str) -> Result<Date> {
        if crate::temporal::date_is_accepted(date, self.ctx.sql_mode.temporal()) {
            return Ok(date);
        }
        let mut text = Vec::new();
        date.write_text(&mut text);
        self.wrong_temporal(kind, &text, true)?;
        Ok(Date::ZERO)
    }

    /// Runs a conversion of JSON; its warnings are errors in strict mode.
    pub(super) fn converted_json<T>(
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

    pub(super) fn date(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let datetime = match value {
            Value::Date(date) => return Ok(Value::Date(self.check_date(*date, "date")?)),
            Value::DateTime(datetime) => {
                let date = self.check_date(datetime.date(), "date")?;
                DateTime::from_date_and_micros(date, datetime.micros_of_day()).unwrap_or(*datetime)
            }
            Value::Time(time) => time_on_today(*time, 6, self.ctx).unwrap_or(DateTime::ZERO),
            Value::Json(_) => {
                let mode = self.ctx.sql_mode.temporal();
                let date = self.converted_json(|ctx| to_date(value, from, mode, ctx))?;
                return Ok(Value::Date(date.unwrap_or(Date::ZERO)));
            }
            _ => self.parse_datetime(value, 6, "date")?,
        };
        // A DATE is rounded by the time of day that it drops.
        let rounded = if matches!(value, Value::Date(_)) {
            datetime
        } else {
            datetime.round_fsp(0).unwrap_or(datetime)
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

    pub(super) fn time(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let fsp = fsp_of(self.to);
        let mode = self.ctx.sql_mode.temporal();
        let fit = |time: Time| {
            if mode.truncate_fraction { time.truncate_fsp(fsp) } else { time.round_fsp(fsp) }
        };
        match value {
            Value::Time(time) => return Ok(Value::Time(fit(*time))),
            Value::DateTime(datetime) => {
                return Ok(Value::Time(fit(datetime.time())));
            }
            Value::Date(_) => return Ok(Value::Time(Time::ZERO)),
            Value::Json(_) => {
                let time = self.converted_json(|ctx| to_time(value, from, fsp, mode, ctx))?;
                return Ok(Value::Time(time.unwrap_or(Time::ZERO)));
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
                    && parse_as_datetime(value, fsp, crate::TemporalMode::default())
                        .value
                        .is_some_and(|datetime| !datetime.date().is_zero())
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

    pub(super) fn datetime(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let fsp = fsp_of(self.to);
        let mode = self.ctx.sql_mode.temporal();
        let datetime = match value {
            Value::DateTime(datetime) => {
                let date = self.check_date(datetime.date(), "datetime")?;
                let datetime = if date == datetime.date() { *datetime } else { DateTime::ZERO };
                if mode.truncate_fraction {
                    datetime.truncate_fsp(fsp)
                } else if let Some(rounded) = datetime.round_fsp(fsp) {
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
                converted.unwrap_or(DateTime::ZERO)
            }
            _ => self.parse_datetime(value, fsp, "datetime")?,
        };
        if self.to.kind != TypeKind::Timestamp || datetime.is_zero() {
            return Ok(Value::DateTime(datetime));
        }
        self.timestamp(datetime, &string_of(value, from))
    }

    /// Local time to UTC, 1970-01-01 00:00:01 to 2038-01-19 03:14:07.
    pub(super) fn timestamp(&mut self, local: DateTime, shown: &[u8]) -> Result<Value> {
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
}
