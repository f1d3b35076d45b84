//! Conversion of values that SET assigns and that SHOW VARIABLES prints.

use errors::{Result, bail, err};
use types::{SqlMode, Value};

use plugin_api::variable::{Definition, Kind};

/// A value after conversion, and whether it was changed to fit (warning 1292).
#[derive(Debug, PartialEq)]
pub struct Converted {
    /// The value to store.
    pub value: Value,
    /// It differs from the requested value.
    pub truncated: bool,
}

impl Converted {
    fn exact(value: Value) -> Result<Converted> {
        Ok(Converted { value, truncated: false })
    }
}

/// The compiled-in value.
pub(crate) fn default_value(definition: &Definition) -> Value {
    from_option(definition, definition.default).unwrap_or(Value::Null)
}

/// A value from an option, a persisted text or the table's default: numbers may have a unit K, M, G, T.
///
/// # Errors
/// As `convert`.
pub fn from_option(definition: &Definition, text: &str) -> Result<Value> {
    let nullable = matches!(definition.kind, Kind::NullableText | Kind::NullableCharset);
    if nullable && text.eq_ignore_ascii_case("NULL") {
        return Ok(Value::Null);
    }
    let value = match definition.kind {
        Kind::Int { .. } | Kind::UInt { .. } => {
            number_with_unit(text).ok_or_else(|| err!(WRONG_TYPE_FOR_VAR, definition.name))?
        }
        Kind::Double { .. } => text
            .parse()
            .map(Value::Double)
            .map_err(|_| err!(WRONG_TYPE_FOR_VAR, definition.name))?,
        Kind::Bool if text.is_empty() => Value::Int(1),
        Kind::Bool
        | Kind::Text
        | Kind::NullableText
        | Kind::Enum(_)
        | Kind::Set(_)
        | Kind::Switches
        | Kind::SqlMode
        | Kind::Charset
        | Kind::NullableCharset
        | Kind::Collation
        | Kind::TimeZone => Value::text(text),
    };
    convert(definition, &value, &Value::Null).map(|converted| converted.value)
}

pub(crate) fn number_with_unit(text: &str) -> Option<Value> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 10),
        b'm' | b'M' => (&text[..text.len() - 1], 20),
        b'g' | b'G' => (&text[..text.len() - 1], 30),
        b't' | b'T' => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    if let Some(negative) = digits.strip_prefix('-') {
        return negative.parse::<i64>().ok().map(|number| Value::Int(-number << shift));
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift).map(Value::UInt)
}

/// The value that SET stores. `current` is the present value: switches change one by one.
///
/// # Errors
/// 1231, 1232, 1115, 1273, 1298.
pub fn convert(definition: &Definition, value: &Value, current: &Value) -> Result<Converted> {
    let wrong = || err!(WRONG_VALUE_FOR_VAR, definition.name, shown(value));
    if value.is_null() {
        return match definition.kind {
            Kind::NullableText | Kind::NullableCharset => Converted::exact(Value::Null),
            Kind::Bool
            | Kind::Int { .. }
            | Kind::UInt { .. }
            | Kind::Double { .. }
            | Kind::Text
            | Kind::Enum(_)
            | Kind::Set(_)
            | Kind::Switches
            | Kind::SqlMode
            | Kind::Charset
            | Kind::Collation
            | Kind::TimeZone => Err(wrong()),
        };
    }
    // Locales have numbers too; mysqlbinlog writes that of the default.
    if definition.name == "lc_time_names"
        && let WordOrNumber::Number(number) = word_or_number(value)
    {
        return match number {
            0 => Converted::exact(Value::text("en_US")),
            _ => Err(errors::Error::not_supported("lc_time_names by number")),
        };
    }
    match definition.kind {
        Kind::Bool => to_bool(value)
            .map_or_else(|| Err(wrong()), |on| Converted::exact(Value::Int(i64::from(on)))),
        Kind::Int { min, max } => to_int(definition, value, min, max),
        Kind::UInt { min, max, block } => to_uint(definition, value, min, max, block),
        Kind::Double { min, max } => to_double(definition, value, min, max),
        Kind::Text | Kind::NullableText => match value {
            Value::Bytes(text) => Converted::exact(Value::Bytes(text.clone())),
            Value::Null
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_)
            | Value::Json(_) => Err(err!(WRONG_TYPE_FOR_VAR, definition.name)),
        },
        Kind::Enum(words) => {
            let position = match word_or_number(value) {
                WordOrNumber::Word(word) => {
                    words.iter().position(|known| known.eq_ignore_ascii_case(&word))
                }
                WordOrNumber::Number(number) => {
                    usize::try_from(number).ok().filter(|position| *position < words.len())
                }
                WordOrNumber::Neither => bail!(WRONG_TYPE_FOR_VAR, definition.name),
            };
            Converted::exact(Value::text(words[position.ok_or_else(wrong)?]))
        }
        Kind::Set(words) => {
            let bits = match word_or_number(value) {
                WordOrNumber::Word(list) => set_bits(&list, |word| {
                    words.iter().position(|known| known.eq_ignore_ascii_case(word))
                })
                .map_err(|bad| err!(WRONG_VALUE_FOR_VAR, definition.name, bad))?,
                WordOrNumber::Number(bits) if bits >> words.len().min(63) == 0 => bits,
                WordOrNumber::Number(_) => return Err(wrong()),
                WordOrNumber::Neither => bail!(WRONG_TYPE_FOR_VAR, definition.name),
            };
            let chosen = words.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1);
            let names: Vec<&str> = chosen.map(|(_, word)| *word).collect();
            Converted::exact(Value::text(&names.join(",")))
        }
        Kind::SqlMode => to_mode(definition, value),
        Kind::Switches => to_switches(definition, value, current),
        Kind::Charset | Kind::NullableCharset => to_charset(value),
        Kind::Collation => to_collation(value),
        Kind::TimeZone => match value {
            Value::Bytes(text) => Converted::exact(Value::Bytes(text.clone())),
            Value::Null
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_)
            | Value::Json(_) => Err(err!(UNKNOWN_TIME_ZONE, shown(value))),
        },
    }
}

enum WordOrNumber {
    Word(String),
    Number(u64),
    Neither,
}

fn word_or_number(value: &Value) -> WordOrNumber {
    match value {
        Value::Bytes(text) => WordOrNumber::Word(String::from_utf8_lossy(text).into_owned()),
        Value::Int(number) => {
            u64::try_from(*number).map_or(WordOrNumber::Number(u64::MAX), WordOrNumber::Number)
        }
        Value::UInt(number) => WordOrNumber::Number(*number),
        Value::Null
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => WordOrNumber::Neither,
    }
}

fn to_bool(value: &Value) -> Option<bool> {
    match word_or_number(value) {
        WordOrNumber::Number(0) => Some(false),
        WordOrNumber::Number(1) => Some(true),
        WordOrNumber::Number(_) | WordOrNumber::Neither => None,
        WordOrNumber::Word(word) => match word.to_ascii_uppercase().as_str() {
            "ON" | "TRUE" | "YES" | "1" => Some(true),
            "OFF" | "FALSE" | "NO" | "0" => Some(false),
            _ => None,
        },
    }
}

/// The integer; a fraction is error 1232, as in the reference.
fn integer(definition: &Definition, value: &Value) -> Result<i128> {
    match value {
        Value::Int(number) => Ok(i128::from(*number)),
        Value::UInt(number) => Ok(i128::from(*number)),
        Value::Null
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => Err(err!(WRONG_TYPE_FOR_VAR, definition.name)),
    }
}

fn to_int(definition: &Definition, value: &Value, min: i64, max: i64) -> Result<Converted> {
    let wanted = integer(definition, value)?;
    let fitted = wanted.clamp(i128::from(min), i128::from(max));
    Ok(Converted { value: Value::Int(fitted as i64), truncated: fitted != wanted })
}

fn to_uint(
    definition: &Definition,
    value: &Value,
    min: u64,
    max: u64,
    block: u64,
) -> Result<Converted> {
    let wanted = integer(definition, value)?;
    let bounded = wanted.clamp(i128::from(min), i128::from(max)) as u64;
    let fitted = if block > 1 { (bounded - bounded % block).max(min) } else { bounded };
    Ok(Converted { value: Value::UInt(fitted), truncated: i128::from(fitted) != wanted })
}

fn to_double(definition: &Definition, value: &Value, min: f64, max: f64) -> Result<Converted> {
    let wanted = match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Decimal(number) => number.to_f64(),
        Value::Null
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => bail!(WRONG_TYPE_FOR_VAR, definition.name),
    };
    let fitted = wanted.clamp(min, max);
    Ok(Converted { value: Value::Double(fitted), truncated: fitted != wanted })
}

/// Bits of a comma-separated list, or else the unknown word.
fn set_bits(list: &str, position: impl Fn(&str) -> Option<usize>) -> Result<u64, String> {
    let mut bits = 0;
    for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        bits |= 1 << position(word).ok_or_else(|| word.to_owned())?;
    }
    Ok(bits)
}

fn to_mode(definition: &Definition, value: &Value) -> Result<Converted> {
    let mode = match word_or_number(value) {
        WordOrNumber::Word(list) => {
            // A word that dumps of older servers set; it has no effect now.
            let kept: Vec<&str> = list
                .split(',')
                .filter(|word| !word.trim().eq_ignore_ascii_case("NO_AUTO_CREATE_USER"))
                .collect();
            SqlMode::parse(&kept.join(","))
                .map_err(|bad| err!(WRONG_VALUE_FOR_VAR, definition.name, bad))?
        }
        WordOrNumber::Number(bits) => SqlMode::from_bits(bits)
            .ok_or_else(|| err!(WRONG_VALUE_FOR_VAR, definition.name, bits))?,
        WordOrNumber::Neither => bail!(WRONG_TYPE_FOR_VAR, definition.name),
    };
    Converted::exact(Value::text(&mode.to_text()))
}

/// `name=on|off|default` pairs, or `default` for all, over the present value.
fn to_switches(definition: &Definition, value: &Value, current: &Value) -> Result<Converted> {
    let Value::Bytes(text) = value else { bail!(WRONG_TYPE_FOR_VAR, definition.name) };
    let text = String::from_utf8_lossy(text).into_owned();
    let current = match current {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => definition.default.to_owned(),
    };
    let split = |text: &str| -> Vec<(String, String)> {
        text.split(',')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, state)| (name.trim().to_owned(), state.trim().to_owned()))
            .collect()
    };
    let defaults = split(definition.default);
    let mut switches = split(&current);
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let wrong = || err!(WRONG_VALUE_FOR_VAR, definition.name, pair);
        if pair.eq_ignore_ascii_case("default") {
            switches.clone_from(&defaults);
            continue;
        }
        let (name, state) = pair.split_once('=').ok_or_else(wrong)?;
        let known = defaults.iter().position(|(known, _)| known.eq_ignore_ascii_case(name.trim()));
        let position = known.ok_or_else(wrong)?;
        let state = match state.trim().to_ascii_lowercase().as_str() {
            "default" => defaults[position].1.clone(),
            "on" | "1" => "on".to_owned(),
            "off" | "0" => "off".to_owned(),
            _ => return Err(wrong()),
        };
        if let Some(switch) = switches.get_mut(position) {
            switch.1 = state;
        }
    }
    let pairs: Vec<String> =
        switches.iter().map(|(name, state)| format!("{name}={state}")).collect();
    Converted::exact(Value::text(&pairs.join(",")))
}

fn to_charset(value: &Value) -> Result<Converted> {
    let found = match word_or_number(value) {
        WordOrNumber::Word(name) => charset::charset_by_name(&name).map(|found| found.name),
        // A number is a collation id.
        WordOrNumber::Number(id) => u16::try_from(id)
            .ok()
            .and_then(|id| charset::collation(types::CollationId(id)))
            .map(|collation| collation.charset.name),
        WordOrNumber::Neither => None,
    };
    let name = found.ok_or_else(|| err!(UNKNOWN_CHARACTER_SET, shown(value)))?;
    Converted::exact(Value::text(name))
}

fn to_collation(value: &Value) -> Result<Converted> {
    let found = match word_or_number(value) {
        WordOrNumber::Word(name) => charset::collation_by_name(&name),
        WordOrNumber::Number(id) => {
            u16::try_from(id).ok().and_then(|id| charset::collation(types::CollationId(id)))
        }
        WordOrNumber::Neither => None,
    };
    let collation = found.ok_or_else(|| err!(UNKNOWN_COLLATION, shown(value)))?;
    Converted::exact(Value::text(collation.name))
}

/// A value in an error message.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Bytes(bytes) | Value::Json(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) => "a date".to_owned(),
    }
}

/// The text that SHOW VARIABLES prints.
pub fn display_text(definition: &Definition, value: &Value) -> String {
    match (definition.kind, value) {
        (_, Value::Null) => String::new(),
        (Kind::Bool, value) => {
            if matches!(value, Value::Int(0)) {
                "OFF".into()
            } else {
                "ON".into()
            }
        }
        (Kind::Double { .. }, Value::Double(number)) => format!("{number:.6}"),
        (_, value) => crate::as_text(value),
    }
}
