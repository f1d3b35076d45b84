//! Constants and parameters: their values and types.

use errors::{ErrorCode, Result, bail};
use plan::Expr;
use syntax::ast::{self, Literal, TemporalKind};
use types::decimal::MAX_PRECISION;
use types::temporal::{
    MICROS_PER_SECOND, ParsedTemporal, TemporalMode, parse_date, parse_datetime, parse_time,
};
use types::{CollationId, DataType, Decimal, SqlBytes, SqlMode, TypeKind, Value};

use crate::binder::Binder;
use crate::typing::string_type;

impl Binder<'_> {
    pub(crate) fn bind_literal(&mut self, literal: &Literal) -> Result<Expr> {
        match literal {
            Literal::Null => Ok(Expr::literal(Value::Null, DataType::null())),
            Literal::Bool(truth) => Ok(Expr::literal(
                Value::Int(i64::from(*truth)),
                DataType::boolean().with_nullable(false),
            )),
            Literal::Integer(number) => Ok(integer(*number)),
            Literal::Decimal(text) => Ok(decimal(text)),
            Literal::Float(text) => float(text),
            Literal::String(text) => self.bind_string(text),
            Literal::Hex(binary) | Literal::Bit(binary) => self.bind_binary(binary),
            // In ODBC's braces an invalid text remains a text.
            Literal::Temporal { kind, text, in_braces: true } if !is_of_kind(*kind, text) => {
                self.bind_string(&ast::StringLiteral { value: text.clone(), ..Default::default() })
            }
            Literal::Temporal { kind, text, .. } => self.bind_temporal(*kind, text),
        }
    }

    fn bind_string(&mut self, literal: &ast::StringLiteral) -> Result<Expr> {
        if let Some(introducer) = &literal.introducer {
            self.note_charset(&introducer.text);
            return self.introduced(&literal.value, &introducer.text);
        }
        // Invalid UTF-8 passes, as in the reference: drivers put binary data between plain quotes.
        // A text column refuses them (1366).
        let collation = if literal.national {
            self.notice(ErrorCode::DEPRECATED_NATIONAL, &[]);
            CollationId::UTF8MB3_GENERAL_CI
        } else {
            self.coercibilities.connection
        };
        Ok(text(&literal.value, collation))
    }

    fn bind_binary(&mut self, literal: &ast::BinaryLiteral) -> Result<Expr> {
        if let Some(introducer) = &literal.introducer {
            self.note_charset(&introducer.text);
        }
        match &literal.introducer {
            Some(introducer) => self.introduced(&literal.value, &introducer.text),
            None => Ok(text(&literal.value, CollationId::BINARY)),
        }
    }

    /// A literal after `_charset`.
    fn introduced(&mut self, bytes: &[u8], name: &str) -> Result<Expr> {
        let Some(charset) = charset::charset_by_name(name) else {
            bail!(UNKNOWN_CHARACTER_SET, name)
        };
        let collation = charset.default_collation;
        let shown = |wrong: &[u8]| -> String {
            wrong.iter().take(SHOWN_BYTES_MAX).map(|byte| format!("{byte:02X}")).collect()
        };
        if collation == CollationId::BINARY || charset.is_utf8() {
            if charset.is_utf8()
                && let Some(at) = charset::find_malformed(bytes)
            {
                bail!(INVALID_CHARACTER_STRING, charset.name, shown(&bytes[at..]));
            }
            return Ok(text(bytes, collation));
        }
        if bytes.is_ascii() && charset.min_length() == 1 {
            return Ok(text(bytes, collation));
        }
        let units = charset.whole_units(bytes);
        let decoded = charset.decode(&units);
        if let Some(at) = decoded.first_bad {
            if charset.encoding != charset::Encoding::Ascii {
                bail!(INVALID_CHARACTER_STRING, charset.name, shown(&units));
            }
            let wrong = shown(&units[at..]);
            self.notice(ErrorCode::INVALID_CHARACTER_STRING, &[&charset.name, &wrong]);
        }
        Ok(text(&decoded.bytes, collation))
    }

    /// Which dates this session accepts.
    pub(crate) fn temporal_mode(&self) -> TemporalMode {
        let mode = self.input.bind.sql_mode;
        TemporalMode {
            no_zero_date: mode.contains(SqlMode::NO_ZERO_DATE),
            no_zero_in_date: mode.contains(SqlMode::NO_ZERO_IN_DATE),
            allow_invalid_dates: mode.contains(SqlMode::ALLOW_INVALID_DATES),
            truncate_fraction: mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL),
        }
    }

    fn bind_temporal(&self, kind: TemporalKind, text: &[u8]) -> Result<Expr> {
        let mode = self.temporal_mode();
        let shown = || String::from_utf8_lossy(text).into_owned();
        fn whole<T>(parsed: ParsedTemporal<T>) -> Option<T> {
            if parsed.truncated || parsed.out_of_range { None } else { parsed.value }
        }
        if !is_of_kind(kind, text) {
            bail!(WRONG_VALUE, word_of(kind), shown());
        }
        match kind {
            TemporalKind::Date => match whole(parse_date(text, mode)) {
                Some(date) => {
                    let ty = DataType::new(TypeKind::Date, 10, 0).with_nullable(false);
                    Ok(Expr::literal(Value::Date(date), ty))
                }
                None => bail!(WRONG_VALUE, "DATE", shown()),
            },
            TemporalKind::Time => {
                let parsed = parse_time(text, 6, mode);
                let fsp = parsed.fsp.min(6);
                match whole(parsed) {
                    Some(time) => {
                        let ty = DataType::new(TypeKind::Time, width(10, fsp), fsp);
                        Ok(Expr::literal(Value::Time(time), ty.with_nullable(false)))
                    }
                    None => bail!(WRONG_VALUE, "TIME", shown()),
                }
            }
            TemporalKind::Timestamp => {
                let parsed = parse_datetime(text.trim_ascii_end(), 6, mode);
                let (fsp, offset) = (parsed.fsp.min(6), parsed.offset);
                match whole(parsed) {
                    Some(at) => {
                        let ty = DataType::new(TypeKind::DateTime, width(19, fsp), fsp);
                        let ty = ty.with_nullable(false);
                        match offset {
                            None => Ok(Expr::literal(Value::DateTime(at), ty)),
                            Some(offset) => zoned(at, offset, ty).ok_or_else(|| {
                                let shown = shown();
                                errors::err!(WRONG_VALUE, "DATETIME", shown)
                            }),
                        }
                    }
                    None => bail!(WRONG_VALUE, "DATETIME", shown()),
                }
            }
        }
    }

    /// Parameter `index`; `hint` is the type that its place suggests.
    pub(crate) fn parameter(&mut self, index: u32, hint: Option<&DataType>) -> Expr {
        let position = index as usize;
        if self.parameters.len() <= position {
            self.parameters.resize(position + 1, None);
        }
        if let Some(given) = self.input.parameter_types.and_then(|types| types.get(position)) {
            let ty = given.clone();
            self.parameters[position] = Some(ty.clone());
            return Expr::Parameter { index, ty };
        }
        if self.parameters[position].is_none() {
            self.parameters[position] = hint.cloned();
        }
        let ty = self.parameters[position].clone();
        Expr::Parameter { index, ty: ty.unwrap_or_else(|| self.default_parameter_type()) }
    }

    /// Gives a parameter without a type the type of its neighbour.
    pub(crate) fn infer(&mut self, expr: &mut Expr, neighbour: &DataType) {
        if let Expr::Parameter { index, ty } = expr
            && self.input.parameter_types.is_none()
            && let Some(slot) = self.parameters.get_mut(*index as usize)
            && slot.is_none()
            && neighbour.kind != TypeKind::Null
        {
            let collation = self.input.bind.collation_connection;
            let inferred = crate::fixed::written_type(neighbour, collation).with_nullable(true);
            *slot = Some(inferred.clone());
            *ty = inferred;
        }
    }
}

/// Characters of a temporal value with `fsp` fraction digits.
pub(crate) fn width(whole: u32, fsp: u8) -> u32 {
    if fsp == 0 { whole } else { whole + 1 + u32::from(fsp) }
}

/// An integer literal: as wide as its digits, and a place for the sign.
pub(crate) fn integer(number: u64) -> Expr {
    let digits = number.checked_ilog10().unwrap_or(0) + 1;
    let mut ty = DataType::bigint().with_nullable(false);
    ty.length = digits + 1;
    match i64::try_from(number) {
        Ok(number) => Expr::literal(Value::Int(number), ty),
        Err(_) => {
            ty.unsigned = true;
            ty.length = digits;
            Expr::literal(Value::UInt(number), ty)
        }
    }
}

fn decimal(text: &str) -> Expr {
    let number = match Decimal::parse(text.as_bytes()) {
        Some(number) => fitting(number),
        // It has more digits than can be counted.
        None => Decimal::largest(MAX_PRECISION, 0, false),
    };
    // A zero before the point counts, nothing before it does not.
    let whole = u32::from(!text.starts_with('.'));
    let digits = number.precision().max(whole + u32::from(number.scale()));
    let ty = DataType::decimal(digits, number.scale()).with_nullable(false);
    Expr::literal(Value::Decimal(number), ty)
}

/// The largest DECIMAL, for a literal with more digits before the point than a DECIMAL can hold.
fn fitting(number: Decimal) -> Decimal {
    let whole = number.precision().saturating_sub(u32::from(number.scale()));
    if whole > MAX_PRECISION { number.clamped(MAX_PRECISION, 0) } else { number }
}

fn float(text: &str) -> Result<Expr> {
    let number: f64 = text.parse().unwrap_or(f64::INFINITY);
    if !number.is_finite() {
        bail!(ILLEGAL_VALUE_FOR_TYPE, "double", text);
    }
    let mut ty = DataType::double().with_nullable(false);
    ty.length = text.len() as u32;
    Ok(Expr::literal(Value::Double(number), ty))
}

/// A string constant in `collation`; bytes when that is `binary`.
pub(crate) fn text(bytes: &[u8], collation: CollationId) -> Expr {
    let length =
        if collation == CollationId::BINARY { bytes.len() } else { charset::char_length(bytes) };
    let ty = string_type(length as u32, collation).with_nullable(false);
    Expr::literal(Value::Bytes(SqlBytes::new(bytes)), ty)
}

/// Bytes of an invalid text that error 1300 shows.
const SHOWN_BYTES_MAX: usize = 6;

/// A timestamp that was written with its zone's offset, in the session's zone.
fn zoned(at: types::DateTime, offset_seconds: i32, ty: DataType) -> Option<Expr> {
    let utc = at.add_micros(-i64::from(offset_seconds) * MICROS_PER_SECOND)?;
    let mut stored = ty.clone();
    stored.kind = TypeKind::Timestamp;
    let operand = Box::new(Expr::literal(Value::DateTime(utc), stored));
    Some(Expr::Cast { operand, kind: plan::CastKind::TimestampToLocal, ty })
}

fn word_of(kind: TemporalKind) -> &'static str {
    match kind {
        TemporalKind::Date => "DATE",
        TemporalKind::Time => "TIME",
        TemporalKind::Timestamp => "DATETIME",
    }
}

/// Whether a text has the parts that its word promises: a DATE no time, a TIME no date, a TIMESTAMP both.
pub(crate) fn is_of_kind(kind: TemporalKind, text: &[u8]) -> bool {
    /// Digits of a date and a time in one number: at least those of `yymmddhhmmss`.
    const COMPACT_MOMENT: usize = 12;
    /// Digits of a date in one number.
    const COMPACT_DATE: usize = 8;
    let text = text.trim_ascii();
    let mut runs = text.split(|byte| !byte.is_ascii_digit()).filter(|run| !run.is_empty());
    let first = runs.next().map_or(0, <[u8]>::len);
    let others = runs.count();
    let has_time = match first {
        0..5 => others > 2,
        5..=COMPACT_DATE => others > 0,
        _ => true,
    };
    match kind {
        TemporalKind::Date => !has_time,
        TemporalKind::Time => {
            let has_dash = text.iter().skip(1).any(|byte| *byte == b'-');
            !has_dash && first < COMPACT_MOMENT
        }
        TemporalKind::Timestamp => has_time,
    }
}

/// The number that a hexadecimal or bit literal is where a number is wanted.
pub fn number_of_bits(expr: &ast::Expr) -> Option<u64> {
    let ast::ExprKind::Literal(ast::Literal::Hex(binary) | ast::Literal::Bit(binary)) = &expr.kind
    else {
        return None;
    };
    let is_number = binary.introducer.is_none() && binary.value.len() <= size_of::<u64>();
    is_number.then(|| binary.value.iter().fold(0, |sum, byte| sum << u8::BITS | u64::from(*byte)))
}
