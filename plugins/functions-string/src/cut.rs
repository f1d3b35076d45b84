//! Functions that make shorter strings: LEFT, SUBSTRING, SUBSTRING_INDEX, TRIM and similar ones.

use errors::Result;
use plugin_api::kit::{self, result_collation, scalar, text_length, text_type};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionRole, ScalarFunction,
};
use types::{SqlBytes, Value};

use crate::build::constant_integer;
use crate::text::{Text, exact_matches};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("LEFT", Arity::exactly(2), "LEFT(str, len)\nThe first len characters of str.", |c, a| {
        bind_end(c, a, Side::Left)
    }).numbers(Arguments::only(1)),
    scalar("RIGHT", Arity::exactly(2), "RIGHT(str, len)\nThe last len characters of str.", |c, a| {
        bind_end(c, a, Side::Right)
    }).numbers(Arguments::only(1)),
    scalar(
        "SUBSTRING",
        Arity::between(2, 3),
        "SUBSTRING(str, pos[, len])\nlen characters of str from position pos on; a negative pos counts from the end.",
        bind_substring,
    ).role(FunctionRole::Substring).numbers(Arguments::from(1))
    .aliases(&["SUBSTR", "MID"]),
    scalar(
        "SUBSTRING_INDEX",
        Arity::exactly(3),
        "SUBSTRING_INDEX(str, delim, count)\nThe part of str before count occurrences of delim, or after them from the end.",
        bind_substring_index,
    ).numbers(Arguments::only(2)).follows(0),
    scalar("TRIM_BOTH", Arity::between(1, 2), "TRIM([BOTH [remstr] FROM] str)\nstr without remstr at its ends.", |c, a| {
        bind_trim(c, a, true, true)
    }).role(FunctionRole::TrimBoth).follows(0)
    .aliases(&["TRIM"]),
    scalar(
        "TRIM_LEADING",
        Arity::between(1, 2),
        "TRIM(LEADING [remstr] FROM str)\nstr without remstr at its start.",
        |c, a| bind_trim(c, a, true, false),
    ).role(FunctionRole::TrimLeading).follows(0),
    scalar("LTRIM", Arity::exactly(1), "LTRIM(str)\nstr without spaces at its start.", |c, a| {
        bind_trim(c, a, true, false)
    }),
    scalar(
        "TRIM_TRAILING",
        Arity::between(1, 2),
        "TRIM(TRAILING [remstr] FROM str)\nstr without remstr at its end.",
        |c, a| bind_trim(c, a, false, true),
    ).role(FunctionRole::TrimTrailing).follows(0),
    scalar("RTRIM", Arity::exactly(1), "RTRIM(str)\nstr without spaces at its end.", |c, a| {
        bind_trim(c, a, false, true)
    }),
];

/// The end from which characters are taken.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

fn slice_value(source: &Value, part: &[u8]) -> Value {
    match source {
        Value::Bytes(all) if all.len() == part.len() => source.clone(),
        _ => Value::Bytes(SqlBytes::new(part)),
    }
}

fn bind_end(ctx: &BindContext, args: &[ArgInfo], side: Side) -> Result<BoundFunction> {
    let collation = result_collation(ctx, &args[..1]);
    let whole = text_length(&args[0].ty);
    let characters =
        constant_integer(&args[1]).map_or(whole, |count| whole.min(count.max(0) as u64));
    let text = Text::new(collation);
    let coercions = vec![Coercion::Text, Coercion::Integer];
    Ok(BoundFunction::new(text_type(characters, collation), coercions, move |_, args| {
        let subject = kit::bytes(&args[0]);
        let count = kit::integer(&args[1]).clamp(0, subject.len() as i128) as usize;
        let part = match side {
            Side::Left => text.slice(subject, 0, count),
            Side::Right => {
                let skipped = text.length(subject).saturating_sub(count);
                &subject[text.prefix(subject, skipped)..]
            }
        };
        Ok(slice_value(&args[0], part))
    }))
}

fn bind_substring(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = result_collation(ctx, &args[..1]);
    let ty = text_type(substring_length(args), collation);
    let text = Text::new(collation);
    let coercions = vec![Coercion::Text, Coercion::Integer, Coercion::Integer];
    Ok(BoundFunction::new(ty, coercions, move |_, args| {
        let subject = kit::bytes(&args[0]);
        let position = kit::integer(&args[1]);
        let count = args.get(2).map_or(i128::MAX, kit::integer);
        if position == 0 || count <= 0 {
            return Ok(Value::Bytes(SqlBytes::EMPTY));
        }
        let start =
            if position > 0 { position - 1 } else { text.length(subject) as i128 + position };
        if start < 0 || start >= subject.len() as i128 {
            return Ok(Value::Bytes(SqlBytes::EMPTY));
        }
        let count = count.min(subject.len() as i128) as usize;
        Ok(slice_value(&args[0], text.slice(subject, start as usize, count)))
    }))
}

fn substring_length(args: &[ArgInfo]) -> u64 {
    let whole = text_length(&args[0].ty);
    let rest = match constant_integer(&args[1]) {
        None => whole,
        Some(0) => 0,
        Some(position) if position < 0 && position.unsigned_abs() > whole => 0,
        Some(position) if position < 0 => position.unsigned_abs(),
        Some(position) => whole.saturating_sub(position as u64 - 1),
    };
    let count = args.get(2).and_then(constant_integer);
    count.map_or(rest, |count| rest.min(count.max(0) as u64))
}

fn bind_substring_index(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = result_collation(ctx, &args[..2]);
    let ty = text_type(text_length(&args[0].ty), collation);
    let coercions = vec![Coercion::Text, Coercion::Text, Coercion::Integer];
    // Where a character is a byte, occurrences that overlap are found from the end.
    let from_end = charset::collation_or_binary(collation).charset.max_length == 1;
    Ok(BoundFunction::new(ty, coercions, move |_, args| {
        let (subject, delimiter, count) =
            (kit::bytes(&args[0]), kit::bytes(&args[1]), kit::integer(&args[2]));
        if count == 0 || delimiter.is_empty() {
            return Ok(Value::Bytes(SqlBytes::EMPTY));
        }
        let part = if count > 0 {
            let matches = exact_matches(subject, delimiter);
            matches
                .get((count - 1).min(i128::from(u32::MAX)) as usize)
                .map_or(subject, |&at| &subject[..at])
        } else {
            after_last(subject, delimiter, count.unsigned_abs(), from_end)
        };
        Ok(slice_value(&args[0], part))
    }))
}

/// The text after the `count`th occurrence from the end; occurrences are found from left to right, or from the end.
fn after_last<'a>(subject: &'a [u8], delimiter: &[u8], count: u128, from_end: bool) -> &'a [u8] {
    if from_end {
        let nth = usize::try_from(count).ok().and_then(|count| count.checked_sub(1));
        let at = nth.and_then(|nth| memchr::memmem::rfind_iter(subject, delimiter).nth(nth));
        return at.and_then(|at| subject.get(at + delimiter.len()..)).unwrap_or(subject);
    }
    let matches = exact_matches(subject, delimiter);
    let index = usize::try_from(count).ok().and_then(|count| matches.len().checked_sub(count));
    index.map_or(subject, |index| &subject[matches[index] + delimiter.len()..])
}

fn bind_trim(
    ctx: &BindContext,
    args: &[ArgInfo],
    leading: bool,
    trailing: bool,
) -> Result<BoundFunction> {
    let collation = result_collation(ctx, args);
    let ty = text_type(text_length(&args[0].ty), collation);
    let text = Text::new(collation);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let subject = kit::bytes(&args[0]);
        let remove = args.get(1).map_or(&b" "[..], kit::bytes);
        let mut part = subject;
        if remove.is_empty() {
            return Ok(args[0].clone());
        }
        while leading && part.starts_with(remove) {
            part = &part[remove.len()..];
        }
        while trailing && part.ends_with(remove) && on_boundary(text, part, remove) {
            part = &part[..part.len() - remove.len()];
        }
        Ok(slice_value(&args[0], part))
    }))
}

/// Whether `remove` at the end of `part` starts where a character does; only a malformed remove string may not.
fn on_boundary(text: Text, part: &[u8], remove: &[u8]) -> bool {
    let continuation = remove.first().is_some_and(|byte| byte & 0xC0 == 0x80);
    !continuation || text.step(part) == 1
}
