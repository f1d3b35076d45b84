//! Functions that make longer strings: CONCAT, REPEAT, LPAD, REPLACE, INSERT, QUOTE and similar ones.

use errors::Result;
use plugin_api::kit::{
    self, UNBOUNDED_CHARACTERS, result_collation, scalar, text_length, text_type,
};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext, FunctionRole,
    ScalarFunction,
};
use types::{CollationId, DataType, SqlBytes, TypeKind, Value};

use crate::text::{Text, exact_matches};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "CONCAT",
        Arity::at_least(1),
        "CONCAT(str1, str2, ...)\nThe arguments joined; NULL if any is.",
        bind_concat,
    ).role(FunctionRole::Concat).joins(Arguments::ALL),
    scalar(
        "CONCAT_WS",
        Arity::at_least(2),
        "CONCAT_WS(separator, str1, str2, ...)\nThe arguments that are not NULL, joined with a separator.",
        bind_concat_ws,
    ).joins(Arguments::ALL),
    scalar(
        "REPEAT",
        Arity::exactly(2),
        "REPEAT(str, count)\nstr repeated count times.",
        bind_repeat,
    ).numbers(Arguments::only(1)),
    scalar("SPACE", Arity::exactly(1), "SPACE(N)\nN spaces.", bind_space).numbers(Arguments::ALL),
    scalar(
        "LPAD",
        Arity::exactly(3),
        "LPAD(str, len, padstr)\nstr filled on the left to len characters.",
        |c, a| bind_pad(c, a, "lpad", Side::Left),
    ).numbers(Arguments::only(1)).follows(0),
    scalar(
        "RPAD",
        Arity::exactly(3),
        "RPAD(str, len, padstr)\nstr filled on the right to len characters.",
        |c, a| bind_pad(c, a, "rpad", Side::Right),
    ).role(FunctionRole::PadRight).numbers(Arguments::only(1)).follows(0),
    scalar(
        "REPLACE",
        Arity::exactly(3),
        "REPLACE(str, from_str, to_str)\nstr with every from_str replaced; case matters.",
        bind_replace,
    ).follows(0),
    scalar(
        "INSERT",
        Arity::exactly(4),
        "INSERT(str, pos, len, newstr)\nstr with len characters from pos on replaced by newstr.",
        bind_insert,
    ).numbers(Arguments::between(1, 3)).follows(0),
    scalar(
        "REVERSE",
        Arity::exactly(1),
        "REVERSE(str)\nThe characters of str in reverse order.",
        bind_reverse,
    ),
    scalar("QUOTE", Arity::exactly(1), "QUOTE(str)\nstr as a literal of SQL.", bind_quote),
];

pub(crate) fn bytes_value(bytes: Vec<u8>) -> Value {
    Value::Bytes(SqlBytes::from(bytes))
}

/// A constant integer argument, if known.
pub(crate) fn constant_integer(arg: &ArgInfo) -> Option<i64> {
    match arg.constant.as_ref()? {
        Value::Null => None,
        Value::Bytes(text) => {
            Some(types::Decimal::parse_lenient(text).value.truncate(0).to_i64().0)
        }
        value => Some(kit::integer_i64(value)),
    }
}

fn lengths(args: &[ArgInfo], collation: CollationId) -> u64 {
    args.iter().map(|arg| kit::text_length_in(&arg.ty, collation)).fold(0, u64::saturating_add)
}

fn bind_concat(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = result_collation(ctx, args);
    let ty = text_type(lengths(args, collation), collation);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let length = args.iter().map(|arg| kit::bytes(arg).len()).sum::<usize>();
        if !ctx.fits_packet("concat", length as u64) {
            return Ok(Value::Null);
        }
        let mut out = Vec::with_capacity(length);
        args.iter().for_each(|arg| out.extend_from_slice(kit::bytes(arg)));
        Ok(bytes_value(out))
    }))
}

fn bind_concat_ws(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let separators = text_length(&args[0].ty).saturating_mul(args.len() as u64 - 2);
    let collation = result_collation(ctx, args);
    let ty = text_type(lengths(&args[1..], collation).saturating_add(separators), collation);
    let bound = BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        if args[0].is_null() {
            return Ok(Value::Null);
        }
        let parts: Vec<&[u8]> =
            args[1..].iter().filter(|arg| !arg.is_null()).map(kit::bytes).collect();
        let separator = kit::bytes(&args[0]);
        let length = parts.iter().map(|part| part.len() + separator.len()).sum::<usize>();
        if !ctx.fits_packet("concat_ws", length.saturating_sub(separator.len()) as u64) {
            return Ok(Value::Null);
        }
        Ok(bytes_value(parts.join(separator)))
    });
    Ok(bound.with_nulls())
}

fn bind_repeat(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let characters = match constant_integer(&args[1]) {
        Some(count) => text_length(&args[0].ty).saturating_mul(count.max(0) as u64),
        None if args[0].ty.kind == TypeKind::Null => 0,
        None => UNBOUNDED_CHARACTERS,
    };
    let ty = text_type(characters, result_collation(ctx, &args[..1]));
    Ok(BoundFunction::new(ty, vec![Coercion::Text, Coercion::Integer], |ctx, args| {
        let count = kit::integer(&args[1]).max(0) as u64;
        let text = kit::bytes(&args[0]);
        let length = count.saturating_mul(text.len() as u64);
        if length == 0 {
            return Ok(Value::Bytes(SqlBytes::EMPTY));
        }
        if !ctx.fits_packet("repeat", length) {
            return Ok(Value::Null);
        }
        Ok(bytes_value(text.repeat(count as usize)))
    }))
}

fn bind_space(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let characters = match (constant_integer(&args[0]), args[0].ty.kind) {
        (Some(count), _) => count.max(0) as u64,
        (None, TypeKind::Null) => 0,
        (None, _) => UNBOUNDED_CHARACTERS,
    };
    let ty = text_type(characters, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::Integer], |ctx, args| {
        let count = kit::integer(&args[0]).max(0) as u64;
        if !ctx.fits_packet("space", count) {
            return Ok(Value::Null);
        }
        Ok(bytes_value(vec![b' '; count as usize]))
    }))
}

/// The side that is padded.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

fn bind_pad(
    ctx: &BindContext,
    args: &[ArgInfo],
    name: &'static str,
    side: Side,
) -> Result<BoundFunction> {
    let is_null = args[0].ty.kind == TypeKind::Null;
    let texts = [args[0].clone(), args[2].clone()];
    let collation = if is_null { CollationId::BINARY } else { result_collation(ctx, &texts) };
    let characters = match constant_integer(&args[1]) {
        Some(length) if length >= 0 => length as u64,
        _ => UNBOUNDED_CHARACTERS,
    };
    let text = Text::new(collation);
    let coercions = vec![Coercion::Text, Coercion::Integer, Coercion::Text];
    Ok(BoundFunction::new(text_type(characters, collation), coercions, move |ctx, args| {
        pad(ctx, args, name, side, text)
    }))
}

fn pad(
    ctx: &mut FunctionContext<'_>,
    args: &[Value],
    name: &str,
    side: Side,
    text: Text,
) -> Result<Value> {
    let (subject, wanted, filling) =
        (kit::bytes(&args[0]), kit::integer(&args[1]), kit::bytes(&args[2]));
    if wanted < 0 {
        return Ok(Value::Null);
    }
    let present = text.length(subject);
    let Some(missing) = (wanted as u64).checked_sub(present as u64).filter(|missing| *missing > 0)
    else {
        return Ok(Value::Bytes(SqlBytes::new(text.slice(subject, 0, wanted as usize))));
    };
    let unit = text.length(filling) as u64;
    if unit == 0 {
        return Ok(args[0].clone());
    }
    let width = filling.len() as u64;
    let bound = (missing / unit).saturating_mul(width).saturating_add(width + subject.len() as u64);
    let sure = missing.saturating_add(subject.len() as u64);
    if !ctx.fits_packet(
        name,
        if bound <= ctx.max_allowed_packet { bound } else { sure.max(bound - width) },
    ) {
        return Ok(Value::Null);
    }
    let mut padding = filling.repeat((missing / unit) as usize);
    padding.extend_from_slice(text.slice(filling, 0, (missing % unit) as usize));
    Ok(bytes_value(match side {
        Side::Left => [&padding, subject].concat(),
        Side::Right => [subject, &padding].concat(),
    }))
}

fn bind_replace(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let (subject, from, to) =
        (text_length(&args[0].ty), text_length(&args[1].ty), text_length(&args[2].ty));
    let growth =
        if to > from && from > 0 { (subject / from.max(1)).saturating_mul(to - from) } else { 0 };
    let null = args[0].ty.kind == TypeKind::Null;
    let collation = if null { CollationId::BINARY } else { result_collation(ctx, args) };
    let ty = text_type(subject.saturating_add(growth), collation);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let (subject, from, to) =
            (kit::bytes(&args[0]), kit::bytes(&args[1]), kit::bytes(&args[2]));
        if from.is_empty() {
            return Ok(args[0].clone());
        }
        let matches = exact_matches(subject, from);
        if matches.is_empty() {
            return Ok(args[0].clone());
        }
        let length = subject.len() - matches.len() * from.len() + matches.len() * to.len();
        if !ctx.fits_packet("replace", length as u64) {
            return Ok(Value::Null);
        }
        let mut out = Vec::with_capacity(length);
        let mut done = 0;
        for at in matches {
            out.extend_from_slice(&subject[done..at]);
            out.extend_from_slice(to);
            done = at + from.len();
        }
        out.extend_from_slice(&subject[done..]);
        Ok(bytes_value(out))
    }))
}

fn bind_insert(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = result_collation(ctx, &[args[0].clone(), args[3].clone()]);
    let ty =
        text_type(text_length(&args[0].ty).saturating_add(text_length(&args[3].ty)), collation);
    let text = Text::new(collation);
    let coercions = vec![Coercion::Text, Coercion::Integer, Coercion::Integer, Coercion::Text];
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        let (subject, new) = (kit::bytes(&args[0]), kit::bytes(&args[3]));
        let characters = text.length(subject) as i128;
        let (position, count) = (kit::integer(&args[1]), kit::integer(&args[2]));
        if position < 1 || position > characters {
            return Ok(args[0].clone());
        }
        let left = characters - (position - 1);
        let count = if (0..=left).contains(&count) { count } else { left };
        let start = text.prefix(subject, (position - 1) as usize);
        let end = start + text.prefix(&subject[start..], count as usize);
        if !ctx.fits_packet("insert", (subject.len() - (end - start) + new.len()) as u64) {
            return Ok(Value::Null);
        }
        Ok(bytes_value([&subject[..start], new, &subject[end..]].concat()))
    }))
}

fn bind_reverse(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = result_collation(ctx, args);
    let text = Text::new(collation);
    let ty = text_type(text_length(&args[0].ty), collation);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let subject = kit::bytes(&args[0]);
        let mut out = vec![0; subject.len()];
        let (mut at, mut end) = (0, subject.len());
        while at < subject.len() {
            let step = text.step(&subject[at..]).min(end);
            out[end - step..end].copy_from_slice(&subject[at..at + step]);
            at += step;
            end -= step;
        }
        Ok(bytes_value(out))
    }))
}

fn bind_quote(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let length = match args[0].ty.kind {
        TypeKind::Null => 4,
        _ => text_length(&args[0].ty).saturating_mul(2).saturating_add(2),
    };
    let collation = match args[0].ty {
        DataType { kind: TypeKind::Null, .. } => ctx.collation_connection,
        _ => result_collation(ctx, args),
    };
    let bound =
        BoundFunction::new(text_type(length, collation), vec![Coercion::Text], |ctx, args| {
            if args[0].is_null() {
                return Ok(Value::text("NULL"));
            }
            let subject = kit::bytes(&args[0]);
            let mut out = Vec::with_capacity(subject.len() + 2);
            out.push(b'\'');
            for &byte in subject {
                match byte {
                    b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                    0 => out.extend_from_slice(b"\\0"),
                    0x1A => out.extend_from_slice(b"\\Z"),
                    _ => out.push(byte),
                }
            }
            out.push(b'\'');
            Ok(if ctx.fits_packet("quote", out.len() as u64) {
                bytes_value(out)
            } else {
                Value::Null
            })
        });
    Ok(bound.with_nulls())
}
