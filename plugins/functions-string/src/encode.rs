//! Strings as other strings: HEX, UNHEX, TO_BASE64, FROM_BASE64, SOUNDEX, WEIGHT_STRING.

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, NumberClass, number_class, scalar, text_length, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionRole, ScalarFunction,
};
use types::{CollationId, DateTime, SqlBytes, Time, TypeKind, Value};

use crate::build::bytes_value;
use crate::text::Text;

/// Characters in a line of Base64.
const BASE64_LINE: usize = 76;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "HEX",
        Arity::exactly(1),
        "HEX(str_or_number)\nThe bytes of a string, or a number, in hexadecimal digits.",
        bind_hex,
    ),
    scalar(
        "UNHEX",
        Arity::exactly(1),
        "UNHEX(str)\nThe bytes that hexadecimal digits stand for.",
        bind_unhex,
    ),
    scalar(
        "TO_BASE64",
        Arity::exactly(1),
        "TO_BASE64(str)\nstr in Base64, in lines of 76 characters.",
        bind_to_base64,
    ),
    scalar(
        "FROM_BASE64",
        Arity::exactly(1),
        "FROM_BASE64(str)\nThe bytes that a Base64 text stands for.",
        bind_from_base64,
    ),
    scalar(
        "SOUNDEX",
        Arity::exactly(1),
        "SOUNDEX(str)\nA code of how str sounds in English.",
        bind_soundex,
    )
    .role(FunctionRole::Soundex),
    scalar(
        "WEIGHT_STRING",
        Arity::between(1, 5),
        "WEIGHT_STRING(str [AS {CHAR|BINARY}(N)])\nThe bytes by which str sorts.",
        bind_weight_string,
    )
    .role(FunctionRole::WeightString),
];

/// Bytes that an argument may have.
fn byte_length(arg: &ArgInfo) -> u64 {
    let length = text_length(&arg.ty);
    let widest = charset::collation_or_binary(arg.ty.collation).charset.max_length;
    if arg.ty.is_text() { length.saturating_mul(widest.into()) } else { length }
}

fn hex_digits(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    bytes
        .iter()
        .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]])
        .collect()
}

fn bind_hex(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = &args[0].ty;
    let number = number_class(ty) != NumberClass::Double
        || matches!(ty.kind, TypeKind::Float | TypeKind::Double);
    if number {
        let result = text_type(16, ctx.collation_connection);
        let coercion =
            if number_class(ty) == NumberClass::Double { Coercion::Double } else { Coercion::AsIs };
        return Ok(BoundFunction::new(result, vec![coercion], |_, args| {
            let bits = match &args[0] {
                Value::UInt(number) => *number,
                Value::Double(number) if *number >= i64::MAX as f64 => i64::MAX as u64,
                other => kit::integer_i64(other) as u64,
            };
            Ok(Value::from(format!("{bits:X}").as_str()))
        }));
    }
    let collation = kit::text_collation(ctx, &args[0]);
    let (length, coercion) = match ty.as_fixed() {
        Some(kind) => {
            let bytes = kind.bytes() as u32;
            (u64::from(bytes), Coercion::To(types::DataType::varbinary(bytes)))
        }
        None => (byte_length(&args[0]), Coercion::Text),
    };
    let result = text_type(length.saturating_mul(2), ctx.collation_connection);
    Ok(BoundFunction::new(result, vec![coercion], move |ctx, args| {
        let bytes = kit::native_bytes(collation, kit::bytes(&args[0]));
        if !ctx.fits_packet("hex", bytes.len() as u64 * 2) {
            return Ok(Value::Null);
        }
        Ok(bytes_value(hex_digits(&bytes)))
    }))
}

fn bind_unhex(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::binary_type(byte_length(&args[0]).div_ceil(2));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let text = kit::bytes(&args[0]);
        match unhex(text) {
            Some(bytes) => Ok(bytes_value(bytes)),
            None => {
                let shown = format!("'{}'", String::from_utf8_lossy(text));
                ctx.diagnostics
                    .warn(ErrorCode::WRONG_VALUE_FOR_TYPE, &[&"string", &shown, &"unhex"]);
                Ok(Value::Null)
            }
        }
    }))
}

/// An odd number of digits has an implied zero in front.
fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let (head, pairs) = text.split_at(text.len() % 2);
    let mut out = Vec::with_capacity(text.len().div_ceil(2));
    if let [only] = head {
        out.push(digit(*only)?);
    }
    for pair in pairs.chunks_exact(2) {
        out.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(out)
}

fn bind_to_base64(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let encoded = byte_length(&args[0]).div_ceil(3).saturating_mul(4);
    let length = encoded + encoded.saturating_sub(1) / BASE64_LINE as u64;
    Ok(BoundFunction::new(
        text_type(length, ctx.collation_connection),
        vec![Coercion::Bytes],
        |ctx, args| {
            let bytes = kit::bytes(&args[0]);
            let encoded = bytes.len().div_ceil(3) * 4;
            let length = encoded + encoded.saturating_sub(1) / BASE64_LINE;
            if !ctx.fits_packet("to_base64", length as u64) {
                return Ok(Value::Null);
            }
            Ok(bytes_value(to_base64(bytes, length)))
        },
    ))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    let mut column = 0;
    for group in bytes.chunks(3) {
        if column == BASE64_LINE {
            out.push(b'\n');
            column = 0;
        }
        let word = group
            .iter()
            .enumerate()
            .fold(0u32, |word, (at, byte)| word | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * at) & 63) as usize];
            out.push(if at > group.len() { b'=' } else { digit });
        }
        column += 4;
    }
    out
}

fn bind_from_base64(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::binary_type(byte_length(&args[0]) / 4 * 3);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        Ok(from_base64(kit::bytes(&args[0])).map_or(Value::Null, bytes_value))
    }))
}

/// White space is skipped; the rest must be whole groups of four.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut group: Vec<u8> = Vec::with_capacity(4);
    let mut padding = 0;
    for &byte in text.iter().filter(|byte| !byte.is_ascii_whitespace() && **byte != 0x0B) {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' if group.len() >= 2 => {
                padding += 1;
                0
            }
            _ => return None,
        };
        if padding > 0 && byte != b'=' || padding > 2 {
            return None;
        }
        group.push(value);
        if group.len() == 4 {
            let word = group.iter().fold(0u32, |word, value| word << 6 | u32::from(*value));
            out.extend_from_slice(&word.to_be_bytes()[1..4 - padding]);
            group.clear();
        }
    }
    group.is_empty().then_some(out)
}

fn bind_soundex(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(text_length(&args[0].ty).max(4), kit::text_collation(ctx, &args[0]));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        Ok(Value::from(soundex(&kit::text(&args[0])).as_str()))
    }))
}

fn soundex_code(letter: char) -> char {
    match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    }
}

/// The first letter, then a digit for each consonant that sounds unlike the previous one, at least three.
fn soundex(text: &str) -> String {
    let mut letters = text.chars().filter(|c| c.is_ascii_alphabetic() || !c.is_ascii());
    let Some(first) = letters.next() else {
        return String::new();
    };
    let mut out = String::from(first.to_ascii_uppercase());
    let mut last = soundex_code(first);
    for code in letters.map(soundex_code) {
        if code != '0' && code != last {
            out.push(code);
            last = code;
        }
    }
    while out.chars().count() < 4 {
        out.push('0');
    }
    out
}

/// The bit that makes signed numbers sort as unsigned ones.
const SIGN: u64 = 1 << 63;

/// Flag of WEIGHT_STRING: the result is filled up to its length.
const FILL: i128 = 0x80;

/// How much of a string is weighed, and how long the result is. `AS BINARY(n)` arrives as the word BINARY and the number;
/// `AS CHAR(n)` and the form with three numbers as the word CHAR and bytes (0: all), characters (0: all) and flags.
#[derive(Clone, Copy)]
enum Weighed {
    Whole,
    Bytes(usize),
    Characters { bytes: usize, characters: usize, fill: bool },
}

impl Weighed {
    fn of(args: &[ArgInfo]) -> Weighed {
        let number = |at: usize| {
            let constant = args.get(at).and_then(|arg| arg.constant.as_ref());
            constant.map_or(0, kit::integer).clamp(0, 1 << 32)
        };
        match args.get(1).and_then(|word| word.constant.as_ref()) {
            None => Weighed::Whole,
            Some(word) if kit::bytes(word) == b"BINARY" => Weighed::Bytes(number(2) as usize),
            Some(_) => Weighed::Characters {
                bytes: number(2) as usize,
                characters: number(3) as usize,
                fill: number(4) & FILL != 0,
            },
        }
    }

    /// Bytes that the result can have in addition to those of the argument.
    fn length(self) -> u64 {
        match self {
            Weighed::Whole => 0,
            Weighed::Bytes(bytes) => bytes as u64,
            Weighed::Characters { bytes, characters, .. } => bytes.max(characters) as u64,
        }
    }
}

fn bind_weight_string(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let text = Text::new(kit::text_collation(ctx, &args[0]));
    let weighed = Weighed::of(args);
    let length = match weighed {
        Weighed::Bytes(bytes) => bytes.max(8) as u64,
        _ => byte_length(&args[0]).saturating_mul(16).max(8),
    };
    let string = args[0].ty.is_string();
    let listed = matches!(args[0].ty.kind, TypeKind::Enum | TypeKind::Set);
    Ok(BoundFunction::new(kit::binary_type(length), vec![Coercion::AsIs], move |ctx, args| {
        let word = |word: u64| Ok(bytes_value(word.to_be_bytes().to_vec()));
        match &args[0] {
            Value::Int(number) => word((*number as u64) ^ SIGN),
            Value::UInt(number) if listed => word(number ^ SIGN),
            Value::UInt(number) => word(*number),
            Value::Date(date) => word(u64::from(date.packed()) | SIGN),
            Value::Time(time) => word(time_weight(*time)),
            Value::DateTime(moment) => word(moment_weight(*moment)),
            Value::Bytes(bytes) if string => {
                let wanted = weighed.length().max(bytes.len() as u64);
                if !ctx.fits_packet("weight_string", wanted) {
                    return Ok(Value::Null);
                }
                Ok(Value::Bytes(SqlBytes::from(weigh(text, bytes, weighed))))
            }
            _ => Ok(Value::Null),
        }
    }))
}

/// Hours, minutes and seconds over 24 bits of microseconds.
fn packed_clock(seconds: u64, micro: u64) -> u64 {
    let (hour, minute) = (seconds / 3600, seconds / 60 % 60);
    let second = seconds % 60;
    (hour << 12 | minute << 6 | second) << 24 | micro
}

/// A time below zero has all bits of its opposite inverted.
fn time_weight(time: Time) -> u64 {
    const BITS: u64 = 1 << 48;
    const ABOVE_ZERO: u64 = 1 << 47;
    let micros = time.micros().unsigned_abs();
    let weight = ABOVE_ZERO | packed_clock(micros / 1_000_000, micros % 1_000_000);
    SIGN | if time.micros() < 0 { weight ^ (BITS - 1) } else { weight }
}

fn moment_weight(moment: DateTime) -> u64 {
    let month = u64::from(moment.year() * 13 + moment.month());
    let seconds = moment.hour() * 3600 + moment.minute() * 60 + moment.second();
    let clock = packed_clock(u64::from(seconds), u64::from(moment.microsecond()));
    SIGN | (month << 5 | u64::from(moment.day())) << 41 | clock
}

fn weigh(text: Text, bytes: &[u8], weighed: Weighed) -> Vec<u8> {
    let collation = text.collation();
    let mut out = Vec::new();
    let (length, characters, fill) = match weighed {
        Weighed::Whole => (0, 0, false),
        Weighed::Bytes(wanted) => {
            out.extend_from_slice(&bytes[..bytes.len().min(wanted)]);
            out.resize(wanted, 0);
            return out;
        }
        Weighed::Characters { bytes, characters, fill } => (bytes, characters, fill),
    };
    let pads =
        collation.pad == charset::PadAttribute::PadSpace && collation.id != CollationId::BINARY;
    let taken = if characters == 0 { bytes } else { text.slice(bytes, 0, characters) };
    let mut padded = taken.to_vec();
    if pads {
        let missing = characters.saturating_sub(text.length(&padded));
        padded.extend(std::iter::repeat_n(b' ', missing));
    }
    collation.sort_key(&padded, &mut out);
    if fill && pads {
        let mut space = Vec::new();
        collation.sort_key(b" ", &mut space);
        let missing = length.saturating_sub(out.len());
        out.extend(space.iter().cycle().take(missing));
    } else if fill {
        out.resize(out.len().max(length), 0);
    }
    if length > 0 {
        out.truncate(length);
    }
    out
}
