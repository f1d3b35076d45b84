//! Numbers in other bases: CONV, BIN, OCT. (HEX is a string function.)

use std::borrow::Cow;

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext,
    ScalarFunction,
};
use types::{DataType, TypeKind, Value};

/// Announced characters, as in the reference: 64 binary digits and a sign.
const RESULT_LENGTH: u32 = 65;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "CONV",
        Arity::exactly(3),
        "CONV(N, from_base, to_base)\nN converted between bases of 2 to 36; a negative base means signed.",
        bind_conv,
    ).numbers(Arguments::ALL),
    scalar("BIN", Arity::exactly(1), "BIN(N)\nN in base 2.", |ctx, args| Ok(bind_to_base(ctx, args, 2))).numbers(Arguments::ALL),
    scalar("OCT", Arity::exactly(1), "OCT(N)\nN in base 8.", |ctx, args| Ok(bind_to_base(ctx, args, 8))).numbers(Arguments::ALL),
];

fn result_type(ctx: &BindContext) -> DataType {
    DataType::varchar(RESULT_LENGTH, ctx.collation_connection)
}

/// Numbers are read as text; the value of a BIT is a number, although its text is not.
fn number_coercion(arg: &ArgInfo) -> Coercion {
    match arg.ty.kind {
        TypeKind::Bit => Coercion::To(DataType::bigint_unsigned()),
        _ => Coercion::Text,
    }
}

fn number_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::UInt(number) => number.to_string().into(),
        value => kit::text(value),
    }
}

fn bind_to_base(ctx: &BindContext, args: &[ArgInfo], base: u32) -> BoundFunction {
    let coercions = vec![number_coercion(&args[0])];
    BoundFunction::new(result_type(ctx), coercions, move |ctx, args| {
        convert(ctx, &number_text(&args[0]), 10, i64::from(base))
    })
}

fn bind_conv(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![number_coercion(&args[0]), Coercion::Integer, Coercion::Integer];
    Ok(BoundFunction::new(result_type(ctx), coercions, |ctx, args| {
        convert(ctx, &number_text(&args[0]), kit::integer_i64(&args[1]), kit::integer_i64(&args[2]))
    }))
}

fn convert(ctx: &mut FunctionContext<'_>, text: &str, from: i64, to: i64) -> Result<Value> {
    let bases = 2..=36;
    if !bases.contains(&from.unsigned_abs())
        || !bases.contains(&to.unsigned_abs())
        || text.is_empty()
    {
        return Ok(Value::Null);
    }
    let parsed = parse(text, from.unsigned_abs() as u32);
    if parsed.digits == 0 || parsed.overflow {
        ctx.warn_truncated("DECIMAL", text);
    }
    let bits = if from < 0 {
        let magnitude = i128::from(parsed.magnitude);
        let signed = if parsed.negative { -magnitude } else { magnitude };
        signed.clamp(i64::MIN.into(), i64::MAX.into()) as i64 as u64
    } else if parsed.negative && parsed.overflow {
        0
    } else if parsed.negative {
        parsed.magnitude.wrapping_neg()
    } else {
        parsed.magnitude
    };
    let radix = to.unsigned_abs() as u32;
    Ok(Value::from(
        if to < 0 && (bits as i64) < 0 {
            format!("-{}", in_base((bits as i64).unsigned_abs(), radix))
        } else {
            in_base(bits, radix)
        }
        .as_str(),
    ))
}

/// The longest numeric prefix of a text.
struct Parsed {
    negative: bool,
    magnitude: u64,
    digits: usize,
    overflow: bool,
}

fn parse(text: &str, radix: u32) -> Parsed {
    let text = text.trim_start();
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let mut parsed = Parsed { negative, magnitude: 0, digits: 0, overflow: false };
    for digit in digits.chars().map_while(|c| c.to_digit(radix)) {
        parsed.digits += 1;
        let next =
            parsed.magnitude.checked_mul(radix.into()).and_then(|m| m.checked_add(digit.into()));
        match next {
            Some(next) if !parsed.overflow => parsed.magnitude = next,
            _ => {
                parsed.overflow = true;
                parsed.magnitude = u64::MAX;
            }
        }
    }
    parsed
}

/// Upper-case digits of a number.
fn in_base(mut number: u64, radix: u32) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = char::from_digit((number % u64::from(radix)) as u32, radix);
        digits.push(digit.unwrap_or('0').to_ascii_uppercase());
        number /= u64::from(radix);
        if number == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}
