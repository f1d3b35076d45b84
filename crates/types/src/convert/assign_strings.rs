//! Assignment to strings, ENUM, SET and JSON.

use charset::{Collation, Encoding, collation_or_binary, find_malformed};
use errors::{Error, ErrorCode, Result};

use super::assign::{StoreMode, Target};
use super::cast::{is_raw, json_error, native_string_of, string_of};
use crate::json;
use crate::{CollationId, DataType, SqlBytes, TypeKind, Value};

impl Target<'_, '_, '_> {
    pub(super) fn too_long(&mut self) -> Result<()> {
        let code = match self.mode {
            StoreMode::Strict => ErrorCode::DATA_TOO_LONG,
            StoreMode::Lenient => ErrorCode::DATA_TRUNCATED,
        };
        let error = self.about_column(code);
        self.fail(error)
    }

    /// A value as a string; a float drops digits to fit the column.
    pub(super) fn string(&mut self, value: &Value, from: &DataType) -> Result<SqlBytes> {
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

    pub(super) fn text(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let collation = collation_or_binary(self.to.collation);
        let mut bytes = self.string(value, from)?;
        if !collation.charset.is_utf8() && is_raw(value, from) {
            bytes = self.own_bytes(&bytes, collation)?;
        } else if !collation.charset.has_all(&bytes) {
            bytes = self.known_characters(bytes, from, collation)?;
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

    /// Bytes that are taken as those of the column's character set, as UTF-8. What is malformed ends the text, with 1366.
    #[cold]
    fn own_bytes(&mut self, bytes: &[u8], collation: &Collation) -> Result<SqlBytes> {
        let charset = collation.charset;
        let units = charset.whole_units(bytes);
        let mut whole = &units[..];
        if let Some(at) = charset.find_malformed(whole) {
            self.incorrect("string", shown_bytes(&whole[at..]).as_bytes())?;
            whole = &whole[..at];
        }
        Ok(SqlBytes::from(charset.decode(whole).bytes))
    }

    /// A text with `?` for the characters that the column's character set lacks, with 1366.
    #[cold]
    fn known_characters(
        &mut self,
        bytes: SqlBytes,
        from: &DataType,
        collation: &Collation,
    ) -> Result<SqlBytes> {
        let charset = collation.charset;
        let at = charset.find_missing(&bytes).unwrap_or(0);
        if from.is_text() {
            let source = collation_or_binary(from.collation).charset;
            self.incorrect("string", shown_bytes(&source.native(&bytes[at..])).as_bytes())?;
        } else {
            self.incorrect("string", shown_bytes(&bytes[at..]).as_bytes())?;
        }
        Ok(match find_malformed(&bytes) {
            Some(_) => SqlBytes::new(&bytes[..at]),
            None => SqlBytes::from(charset.decode(&charset.encode(&bytes).bytes).bytes),
        })
    }

    /// Number of bytes of a text that fit the column.
    pub(super) fn text_cut(&self, bytes: &[u8], collation: &Collation) -> usize {
        let limit = match self.to.kind {
            TypeKind::TinyText => 255,
            TypeKind::Text => 65_535,
            TypeKind::MediumText => 16_777_215,
            TypeKind::LongText => u32::MAX as usize,
            _ => return collation.char_prefix(bytes, self.to.length as usize),
        };
        if collation.charset.is_utf8() && bytes.len() <= limit {
            return bytes.len();
        }
        collation.charset.fitting_prefix(bytes, limit)
    }

    pub(super) fn binary(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let mut bytes = match value {
            Value::Double(_) => self.string(value, from)?,
            _ => native_string_of(value, from),
        };
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

    pub(super) fn find_member(&self, name: &[u8]) -> Option<u64> {
        let collation = collation_or_binary(self.to.collation);
        let members = self.to.members.as_ref()?;
        let name = &name[..name.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1)];
        members
            .names()
            .position(|member| collation.equal(member, name))
            .map(|position| position as u64 + 1)
    }

    pub(super) fn enumeration(&mut self, value: &Value, from: &DataType) -> Result<Value> {
        let count = self.to.member_count() as u64;
        // A column's error value '' stays one: it is copied without another error.
        if from.kind == TypeKind::Enum && matches!(value, Value::UInt(0)) {
            return Ok(Value::UInt(0));
        }
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

    pub(super) fn set(&mut self, value: &Value, from: &DataType) -> Result<Value> {
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

    pub(super) fn json(&mut self, value: &Value, from: &DataType) -> Result<Value> {
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

/// Error 3854 for a text, of collation `from`, that a character set cannot take.
///
/// # Errors
/// 3854.
pub fn must_convert(text: &[u8], from: CollationId, to: CollationId) -> Result<()> {
    let (source, charset) = (collation_or_binary(from).charset, collation_or_binary(to).charset);
    let fits = match (source.encoding, charset.encoding) {
        (_, Encoding::Binary) => true,
        // Plain texts of drivers may hold bytes that are not UTF-8. Names in the information schema are utf8mb3 and hold
        // every character.
        (Encoding::Utf8mb4, Encoding::Utf8mb4 | Encoding::Utf8mb3) => true,
        (Encoding::Binary, _) => charset.find_malformed(&charset.whole_units(text)).is_none(),
        (_, _) => charset.has_all(text),
    };
    if fits {
        return Ok(());
    }
    let shown = shown_bytes(&source.native(text));
    Err(Error::with(ErrorCode::CANNOT_CONVERT_STRING, &[&shown, &source.name, &charset.name]))
}

/// Bytes as error 1366 shows them: six at most.
fn shown_bytes(bytes: &[u8]) -> String {
    let show = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    let shown: String = bytes.iter().take(6).map(show).collect();
    if bytes.len() > 6 { shown + "..." } else { shown }
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
