//! Assignment of values to columns: ranges, lengths, and the errors and warnings for values that do not fit.

use errors::{Diagnostics, Error, ErrorCode, Level, Result};

use super::cast::{float_of_text, string_of, year_of_number, year_of_text};
use super::numbers::{json_number, trim};
use super::{CastContext, text_for_message, to_decimal};
use crate::geometry::Geometry;
use crate::{CollationId, DataType, Decimal, SqlBytes, TypeKind, Value};

/// Sizes that the error for values that are not vectors (6136) shows: those in which the reference stores numbers.
const NUMBER_BYTES: usize = 8;
const DECIMAL_BYTES: usize = 64;

/// Treatment of values that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreMode {
    /// They are errors.
    Strict,
    /// They are changed to fit, with a warning.
    Lenient,
}

/// Converts `value` of type `from` to a value that a column of type `to` holds. NULL passes. TIMESTAMP columns take local
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
    if let Some(kind) = from.as_fixed()
        && let Some(plain) = target.plain(value, kind)?
    {
        return store(&plain.0, &plain.1, to, ctx, mode);
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
        Vector => target.vector(value, from),
        Geometry => target.geometry(value, from),
        Fixed(kind) => target.fixed(value, from, kind),
    }
}

/// A column that is assigned to.
pub(super) struct Target<'t, 'c, 'd> {
    pub(super) to: &'t DataType,
    pub(super) ctx: &'c mut CastContext<'d>,
    pub(super) mode: StoreMode,
}

pub(super) fn plain_text(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    value.write_plain_text(&mut text);
    text
}

/// The number of a text that consists of a few digits only, the most common form.
fn plain_digits(value: &Value) -> Option<u64> {
    /// All numbers of at most this many digits fit.
    const DIGITS_MAX: usize = 18;
    let Value::Bytes(text) = value else { return None };
    if text.is_empty() || text.len() > DIGITS_MAX {
        return None;
    }
    text.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + u64::from(digit - b'0'))
    })
}

impl Target<'_, '_, '_> {
    /// An error when strict, a warning when not.
    #[cold]
    pub(super) fn fail(&mut self, error: Error) -> Result<()> {
        match self.mode {
            StoreMode::Strict => Err(error),
            StoreMode::Lenient => {
                self.ctx.diagnostics.push_error(Level::Warning, &error);
                Ok(())
            }
        }
    }

    pub(super) fn about_column(&self, code: ErrorCode) -> Error {
        Error::with(code, &[&self.ctx.column, &self.ctx.row])
    }

    pub(super) fn out_of_range(&mut self) -> Result<()> {
        let error = self.about_column(ErrorCode::WARN_DATA_OUT_OF_RANGE);
        self.fail(error)
    }

    pub(super) fn truncated(&mut self) -> Result<()> {
        let error = self.about_column(ErrorCode::DATA_TRUNCATED);
        self.fail(error)
    }

    pub(super) fn note_truncated(&mut self) {
        let args: [&dyn std::fmt::Display; 2] = [&self.ctx.column, &self.ctx.row];
        self.ctx.diagnostics.note(ErrorCode::DATA_TRUNCATED, &args);
    }

    /// 1366: `Incorrect integer value: 'x' for column 'c' at row 1`.
    pub(super) fn incorrect(&mut self, kind: &str, text: &[u8]) -> Result<()> {
        let shown = text_for_message(text);
        let args: [&dyn std::fmt::Display; 4] = [&kind, &shown, &self.ctx.column, &self.ctx.row];
        let error = Error::with(ErrorCode::TRUNCATED_WRONG_VALUE_FOR_FIELD, &args);
        self.fail(error)
    }

    /// Runs a conversion whose only warnings are about JSON: they are errors in strict mode.
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

    fn integer(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let (low, high) = self.to.integer_range().unwrap_or((i64::MIN, i64::MAX as u64));
        let digits = plain_digits(value);
        let number = match digits {
            Some(number) => Whole::Positive(number),
            None => self.whole_number(value, from)?,
        };
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
        } else if let (Value::Bytes(text), None) = (value, digits) {
            self.check_number_text(text)?;
        }
        Ok(if self.to.unsigned { Value::UInt(fitted as u64) } else { Value::Int(fitted as i64) })
    }

    /// Warns or fails for a text that is not wholly a number.
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
        // Adding zero turns a negative zero that rounding made into a plain one.
        let rounded = (number * power).round_ties_even() / power + 0.0;
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

    /// Only binary strings of whole finite floats become vectors, in every mode. One with too many dimensions is an error when strict, else it
    /// becomes empty with a warning.
    fn vector(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let refuse = |kind: &str, size: usize| {
            Err(Error::with(ErrorCode::DATA_INCOMPATIBLE_WITH_VECTOR, &[&kind, &size]))
        };
        match value {
            Value::Int(_) | Value::UInt(_) | Value::Double(_) if !from.has_members() => {
                return refuse("numeric", NUMBER_BYTES);
            }
            Value::Decimal(_) => return refuse("numeric", DECIMAL_BYTES),
            _ => {}
        }
        let bytes = string_of(value, from);
        let is_raw = from.kind == TypeKind::Vector
            || from.kind != TypeKind::Geometry && from.collation == CollationId::BINARY;
        let (floats, rest) = bytes.as_chunks::<4>();
        if !is_raw || !matches!(value, Value::Bytes(_)) || floats.is_empty() || !rest.is_empty() {
            return refuse("string", bytes.len());
        }
        if !floats.iter().all(|float| f32::from_le_bytes(*float).is_finite()) {
            return refuse("NAN or INF", bytes.len());
        }
        if floats.len() > self.to.length as usize {
            let error = self.about_column(ErrorCode::DATA_TOO_LONG);
            self.fail(error)?;
            return Ok(Value::Bytes(SqlBytes::from(Vec::new())));
        }
        Ok(Value::Bytes(bytes))
    }

    /// No mode converts other types to a geometry.
    fn geometry(&self, value: &Value, from: &DataType) -> Result<Value> {
        let none = || Error::with(ErrorCode::CANT_CREATE_GEOMETRY_OBJECT, &[]);
        let Value::Bytes(bytes) = value else { return Err(none()) };
        let geometry = Geometry::read(bytes).map_err(|_| none())?;
        let column = self.to.spatial;
        if !column.kind.holds(geometry.shape.kind()) {
            return Err(none());
        }
        if let Some(srid) = column.srid.filter(|srid| *srid != geometry.srid) {
            let args: [&dyn std::fmt::Display; 3] = [&self.ctx.column, &geometry.srid, &srid];
            return Err(Error::with(ErrorCode::WRONG_SRID_FOR_COLUMN, &args));
        }
        Ok(Value::Bytes(string_of(value, from)))
    }

    fn year(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let text = match value {
            Value::Bytes(text) => Some(text),
            _ => None,
        };
        let year = match (text, value) {
            (Some(text), _) => {
                let parsed = Decimal::parse_lenient(text);
                let number = match Whole::of_decimal(&parsed.value) {
                    Whole::Positive(number) => i64::try_from(number).unwrap_or(-1),
                    _ => -1,
                };
                // A text without a number is the year 0, not 2000.
                let nothing = parsed.empty || parsed.garbage && trim(text).starts_with(b"0x");
                let year = if nothing { Some(0) } else { year_of_text(number, trim(text).len()) };
                if year.is_some() {
                    self.check_number_text(text)?;
                }
                year
            }
            (_, Value::Date(date)) => year_of_number(i64::from(date.year())),
            (_, Value::DateTime(datetime)) => year_of_number(i64::from(datetime.year())),
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
}

/// An integer before assignment to a column.
#[derive(Clone, Copy)]
enum Whole {
    Negative(i64),
    Positive(u64),
    /// Between -1 and 0 before it was rounded to 0: an unsigned column does not accept it.
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
