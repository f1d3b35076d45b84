//! Case and character sets: UPPER, LOWER, CHAR, CONVERT ... USING.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, result_collation, scalar, text_length, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, FunctionRole,
    ScalarFunction,
};
use types::{CollationId, Value};

use crate::build::bytes_value;
use crate::text::Text;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("UPPER", Arity::exactly(1), "UPPER(str)\nstr in upper case.", |c, a| {
        bind_case(c, a, Case::Upper)
    })
    .aliases(&["UCASE"]),
    scalar("LOWER", Arity::exactly(1), "LOWER(str)\nstr in lower case.", |c, a| {
        bind_case(c, a, Case::Lower)
    })
    .aliases(&["LCASE"]),
    scalar(
        "CHAR",
        Arity::at_least(1),
        "CHAR(N, ... [USING charset])\nThe string of these bytes.",
        bind_char,
    )
    .role(FunctionRole::Char),
    scalar(
        "CHAR_USING",
        Arity::at_least(2),
        "CHAR(N, ... USING charset)\nThe string of these bytes.",
        bind_char_using,
    )
    .role(FunctionRole::CharUsing),
    scalar(
        "CONVERT_USING",
        Arity::exactly(2),
        "CONVERT(expr USING charset)\nexpr in another character set.",
        bind_convert_using,
    )
    .role(FunctionRole::ConvertUsing),
];

/// Which case.
#[derive(Clone, Copy)]
enum Case {
    Upper,
    Lower,
}

fn bind_case(ctx: &BindContext, args: &[ArgInfo], case: Case) -> Result<BoundFunction> {
    let id = result_collation(ctx, args);
    let collation = Text::new(id).collation();
    let ty = text_type(text_length(&args[0].ty), id);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let text = kit::bytes(&args[0]);
        Ok(bytes_value(match case {
            Case::Upper => collation.upper(text),
            Case::Lower => collation.lower(text),
        }))
    }))
}

/// The bytes of each number without leading zeros, but whole units of `unit` bytes; NULLs are left out.
fn bytes_of_numbers(numbers: &[Value], unit: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for number in numbers.iter().filter(|number| !number.is_null()) {
        let bytes = (kit::integer(number) as u32).to_be_bytes();
        let leading = bytes.iter().take_while(|byte| **byte == 0).count();
        let skipped = leading.min(bytes.len() - unit) / unit * unit;
        out.extend_from_slice(&bytes[skipped..]);
    }
    out
}

fn bind_char(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::binary_type(args.len() as u64 * 4);
    let bound = BoundFunction::new(ty, vec![Coercion::Integer], |_, args| {
        Ok(bytes_value(bytes_of_numbers(args, 1)))
    });
    Ok(bound.with_nulls())
}

/// The character set that a constant argument names.
fn named_charset(arg: &ArgInfo) -> Result<&'static charset::Charset> {
    let name = arg.constant.as_ref().map(kit::text).unwrap_or_default();
    charset::charset_by_name(&name)
        .ok_or_else(|| Error::with(ErrorCode::UNKNOWN_CHARACTER_SET, &[&name]))
}

/// The default collation, or the connection's when it has this character set.
fn collation_for(ctx: &BindContext, charset: &'static charset::Charset) -> CollationId {
    let own = charset::collation_or_binary(ctx.collation_connection);
    if own.charset.name == charset.name { own.id } else { charset.default_collation }
}

fn bind_char_using(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let (using, numbers) = (args.len() - 1, args.len() as u64 - 1);
    let charset = named_charset(&args[using])?;
    let ty = text_type(numbers * 4, collation_for(ctx, charset));
    let mut coercions = vec![Coercion::Integer; using];
    coercions.push(Coercion::AsIs);
    let bound = BoundFunction::new(ty, coercions, move |ctx, args| {
        decode(ctx, charset, &bytes_of_numbers(&args[..using], charset.min_length().into()))
    });
    Ok(bound.with_nulls())
}

/// Bytes of a character set as text; NULL with warning 1300 when they are malformed.
fn decode(
    ctx: &mut FunctionContext<'_>,
    charset: &'static charset::Charset,
    bytes: &[u8],
) -> Result<Value> {
    let converted = charset.decode(bytes);
    if let Some(at) = converted.first_bad {
        let shown: String = bytes[at..].iter().take(6).map(|byte| format!("{byte:02X}")).collect();
        ctx.diagnostics.warn(ErrorCode::INVALID_CHARACTER_STRING, &[&charset.name, &shown]);
        return Ok(Value::Null);
    }
    Ok(bytes_value(converted.bytes))
}

fn bind_convert_using(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let charset = named_charset(&args[1])?;
    let source = kit::text_collation(ctx, &args[0]);
    let binary_source = source == CollationId::BINARY;
    let length = text_length(&args[0].ty);
    let length = match charset.encoding {
        charset::Encoding::Binary => {
            let widest = charset::collation_or_binary(source).charset.max_length;
            length.saturating_mul(u64::from(widest))
        }
        _ => length,
    };
    let ty = text_type(length, collation_for(ctx, charset));
    Ok(BoundFunction::new(ty, vec![Coercion::Text, Coercion::AsIs], move |ctx, args| {
        let bytes = kit::bytes(&args[0]);
        match charset.encoding {
            charset::Encoding::Binary => {
                Ok(bytes_value(kit::native_bytes(source, bytes).into_owned()))
            }
            _ if binary_source => decode(ctx, charset, bytes),
            charset::Encoding::Utf8mb4 => Ok(args[0].clone()),
            // Characters that the character set does not have become question marks; the text itself stays UTF-8.
            _ => Ok(bytes_value(charset.decode(&charset.encode(bytes).bytes).bytes)),
        }
    }))
}
