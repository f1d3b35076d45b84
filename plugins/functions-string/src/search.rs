//! Functions that measure strings or search one in another.

use std::cmp::Ordering;

use errors::Result;
use plugin_api::kit::{self, NumberClass, any_nullable, number_class, result_collation, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionRole, OperatorCall,
    ScalarFunction,
};
use types::{CollationId, TypeKind, Value};

use crate::text::Text;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("LENGTH", Arity::exactly(1), "LENGTH(str)\nThe length of str in bytes.", |c, a| bind_length(c, a, 1))
        .aliases(&["OCTET_LENGTH"]),
    scalar("BIT_LENGTH", Arity::exactly(1), "BIT_LENGTH(str)\nThe length of str in bits.", |c, a| {
        bind_length(c, a, 8)
    }),
    scalar("CHAR_LENGTH", Arity::exactly(1), "CHAR_LENGTH(str)\nThe length of str in characters.", bind_char_length)
        .aliases(&["CHARACTER_LENGTH"]),
    scalar("ASCII", Arity::exactly(1), "ASCII(str)\nThe value of the first byte of str.", bind_ascii),
    scalar("ORD", Arity::exactly(1), "ORD(str)\nThe bytes of the first character of str as one number.", bind_ord),
    scalar("INSTR", Arity::exactly(2), "INSTR(str, substr)\nThe position of the first substr in str, or 0.", |c, a| {
        bind_position(c, a, 0, 1)
    }).follows(0),
    scalar(
        "LOCATE",
        Arity::between(2, 3),
        "LOCATE(substr, str[, pos])\nThe position of the first substr in str at or after pos, or 0.",
        |c, a| bind_position(c, a, 1, 0),
    ).role(FunctionRole::Locate).follows(1)
    .aliases(&["POSITION"]),
    scalar("STRCMP", Arity::exactly(2), "STRCMP(expr1, expr2)\n-1, 0 or 1 as expr1 sorts before, with or after expr2.", bind_strcmp).compares(Arguments::ALL),
    scalar("FIELD", Arity::at_least(2), "FIELD(str, str1, str2, ...)\nThe position of str in the list that follows, or 0.", bind_field).follows(0),
    scalar(
        "FIND_IN_SET",
        Arity::exactly(2),
        "FIND_IN_SET(str, strlist)\nThe position of str in a list separated by commas, or 0.",
        bind_find_in_set,
    ).role(FunctionRole::Operator(OperatorCall::FindInSet)).compares(Arguments::ALL),
];

fn bind_length(ctx: &BindContext, args: &[ArgInfo], unit: i64) -> Result<BoundFunction> {
    let collation = kit::text_collation(ctx, &args[0]);
    let ty = kit::integer_type(11, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        Ok(Value::Int(kit::native_bytes(collation, kit::bytes(&args[0])).len() as i64 * unit))
    }))
}

fn bind_char_length(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let text = Text::new(kit::text_collation(ctx, &args[0]));
    let ty = kit::integer_type(11, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        Ok(Value::Int(text.length(kit::bytes(&args[0])) as i64))
    }))
}

fn bind_ascii(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = kit::text_collation(ctx, &args[0]);
    let ty = kit::integer_type(4, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let bytes = kit::bytes(&args[0]);
        let first = &bytes[..charset::char_prefix(bytes, 1)];
        Ok(Value::Int(
            kit::native_bytes(collation, first).first().map_or(0, |&byte| i64::from(byte)),
        ))
    }))
}

fn bind_ord(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = kit::text_collation(ctx, &args[0]);
    let text = Text::new(collation);
    let ty = kit::integer_type(21, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let bytes = kit::bytes(&args[0]);
        let first = kit::native_bytes(collation, &bytes[..text.prefix(bytes, 1)]);
        Ok(Value::Int(first.iter().fold(0, |number, &byte| number << 8 | i64::from(byte))))
    }))
}

fn bind_position(
    ctx: &BindContext,
    args: &[ArgInfo],
    subject: usize,
    needle: usize,
) -> Result<BoundFunction> {
    let text = Text::new(kit::text_collation(ctx, &args[subject]));
    let ty = kit::integer_type(11, any_nullable(args));
    let coercions = vec![Coercion::Text, Coercion::Text, Coercion::Integer];
    Ok(BoundFunction::new(ty, coercions, move |_, args| {
        let (subject, needle) = (kit::bytes(&args[subject]), kit::bytes(&args[needle]));
        let start = args.get(2).map_or(1, kit::integer) - 1;
        if start < 0 || start > subject.len() as i128 || start > text.length(subject) as i128 {
            return Ok(Value::Int(0));
        }
        let from = text.prefix(subject, start as usize);
        Ok(Value::Int(match text.find(subject, needle, from) {
            Some(at) => text.length(&subject[..at]) as i64 + 1,
            None => 0,
        }))
    }))
}

fn bind_strcmp(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    // The digits of a number compare as bytes.
    let used = match args.iter().any(|arg| arg.ty.is_numeric()) {
        true => CollationId::BINARY,
        false => result_collation(ctx, args),
    };
    let collation = Text::new(used).collation();
    let ty = kit::integer_type(2, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        Ok(Value::Int(collation.compare(kit::bytes(&args[0]), kit::bytes(&args[1])) as i64))
    }))
}

fn bind_field(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = Text::new(kit::text_collation(ctx, &args[0])).collation();
    let is_text = |arg: &ArgInfo| {
        arg.ty.is_string() || matches!(arg.ty.kind, TypeKind::Enum | TypeKind::Set | TypeKind::Null)
    };
    let exact = |arg: &ArgInfo| {
        arg.ty.kind == TypeKind::Null || number_class(&arg.ty) != NumberClass::Double
    };
    let coercion = if args.iter().all(is_text) {
        Coercion::Text
    } else if args.iter().all(exact) {
        Coercion::Decimal
    } else {
        Coercion::Double
    };
    let bound = BoundFunction::new(kit::integer_type(11, false), vec![coercion], move |_, args| {
        let wanted = &args[0];
        let same = |candidate: &Value| match (wanted, candidate) {
            (Value::Null, _) | (_, Value::Null) => false,
            (Value::Bytes(a), Value::Bytes(b)) => collation.equal(a, b),
            (Value::Decimal(a), Value::Decimal(b)) => a == b,
            (a, b) => kit::double(a) == kit::double(b),
        };
        Ok(Value::Int(args[1..].iter().position(same).map_or(0, |at| at as i64 + 1)))
    });
    Ok(bound.with_nulls())
}

fn bind_find_in_set(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = Text::new(result_collation(ctx, args)).collation();
    let ty = kit::integer_type(11, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let (wanted, list) = (kit::bytes(&args[0]), kit::bytes(&args[1]));
        if list.is_empty() || wanted.contains(&b',') {
            return Ok(Value::Int(0));
        }
        let same = |member: &[u8]| collation.compare(member, wanted) == Ordering::Equal;
        Ok(Value::Int(
            list.split(|&byte| byte == b',').position(same).map_or(0, |at| at as i64 + 1),
        ))
    }))
}
