//! Functions that select among their arguments: ELT, MAKE_SET, EXPORT_SET.

use errors::Result;
use plugin_api::kit::{self, any_nullable, result_collation, scalar, text_length, text_type};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, NullRule, ScalarFunction,
};
use types::Value;

use crate::build::bytes_value;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ELT",
        Arity::at_least(2),
        "ELT(N, str1, str2, ...)\nThe Nth string of the list.",
        bind_elt,
    ).numbers(Arguments::only(0)).joins(Arguments::from(1)),
    scalar(
        "MAKE_SET",
        Arity::at_least(2),
        "MAKE_SET(bits, str1, str2, ...)\nThe strings whose bits are set, separated by commas.",
        bind_make_set,
    ).numbers(Arguments::only(0)),
    scalar(
        "EXPORT_SET",
        Arity::between(3, 5),
        "EXPORT_SET(bits, on, off[, separator[, number_of_bits]])\nOne string for each bit, lowest first.",
        bind_export_set,
    ).numbers(Arguments::only(0)).joins(Arguments::from(1)),
];

/// Most bits that EXPORT_SET shows.
const BITS_MAX: i128 = 64;

fn bind_elt(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let length = args[1..].iter().map(|arg| text_length(&arg.ty)).max().unwrap_or(0);
    let ty = text_type(length, result_collation(ctx, &args[1..]));
    let bound = BoundFunction::new(ty, vec![Coercion::Integer, Coercion::Text], |_, args| {
        let wanted = if args[0].is_null() { 0 } else { kit::integer(&args[0]) };
        let picked = usize::try_from(wanted).ok().filter(|at| *at > 0).and_then(|at| args.get(at));
        Ok(picked.cloned().unwrap_or(Value::Null))
    });
    Ok(bound.with_nulls())
}

fn bind_make_set(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let strings = &args[1..];
    let length =
        strings.iter().map(|arg| text_length(&arg.ty)).sum::<u64>() + strings.len() as u64 - 1;
    let ty = text_type(length, result_collation(ctx, strings)).with_nullable(any_nullable(args));
    let bound = BoundFunction::new(ty, vec![Coercion::Integer, Coercion::Text], |ctx, args| {
        if args[0].is_null() {
            return Ok(Value::Null);
        }
        let bits = kit::integer(&args[0]) as u64;
        let picked = |at: usize| at < 64 && bits >> at & 1 == 1;
        let strings = args[1..].iter().enumerate();
        let parts: Vec<&[u8]> = strings
            .filter(|(at, value)| picked(*at) && !value.is_null())
            .map(|(_, value)| kit::bytes(value))
            .collect();
        let out = parts.join(&b","[..]);
        Ok(if ctx.fits_packet("make_set", out.len() as u64) {
            bytes_value(out)
        } else {
            Value::Null
        })
    });
    Ok(bound.with_nulls())
}

fn bind_export_set(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let member = text_length(&args[1].ty).max(text_length(&args[2].ty));
    let separator = args.get(3).map_or(1, |arg| text_length(&arg.ty));
    let length = member.saturating_mul(64).saturating_add(separator.saturating_mul(63));
    let strings = &args[1..args.len().min(4)];
    let ty = text_type(length, result_collation(ctx, strings));
    let coercions =
        vec![Coercion::Integer, Coercion::Text, Coercion::Text, Coercion::Text, Coercion::Integer];
    let mut bound = BoundFunction::new(ty, coercions, |ctx, args| {
        let bits = kit::integer(&args[0]) as u64;
        let separator = args.get(3).map_or(&b","[..], kit::bytes);
        let count = match args.get(4).map_or(BITS_MAX, kit::integer) {
            count if (0..=BITS_MAX).contains(&count) => count as u32,
            _ => BITS_MAX as u32,
        };
        let members: Vec<&[u8]> = (0..count)
            .map(|bit| kit::bytes(&args[if bits >> bit & 1 == 1 { 1 } else { 2 }]))
            .collect();
        let length: usize = members.iter().map(|member| member.len() + separator.len()).sum();
        if !ctx.fits_packet("export_set", length as u64) {
            return Ok(Value::Null);
        }
        Ok(bytes_value(members.join(separator)))
    });
    bound.nulls = NullRule::Propagate;
    Ok(bound)
}
