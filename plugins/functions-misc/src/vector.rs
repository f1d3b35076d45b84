//! Vectors of floats as text and back.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, scalar, text_type};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::{DataType, SqlBytes, TypeKind, Value};

/// Most dimensions of a vector.
const DIMENSIONS_MAX: usize = 16_383;
/// Characters of a number in a vector's text, as the reference announces them.
const NUMBER_LENGTH: u64 = 64;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "STRING_TO_VECTOR",
        Arity::exactly(1),
        "STRING_TO_VECTOR(string)\nThe vector of a text like [1,2.5].",
        bind_to_vector,
    )
    .aliases(&["TO_VECTOR"]),
    scalar(
        "VECTOR_TO_STRING",
        Arity::exactly(1),
        "VECTOR_TO_STRING(vector)\nA vector as text.",
        bind_to_string,
    )
    .aliases(&["FROM_VECTOR"]),
    scalar(
        "VECTOR_DIM",
        Arity::exactly(1),
        "VECTOR_DIM(vector)\nThe number of dimensions of a vector.",
        bind_dim,
    ),
];

fn wrong_arguments(name: &str) -> Error {
    Error::with(ErrorCode::WRONG_ARGUMENTS, &[&name])
}

fn is_vector(arg: &ArgInfo) -> bool {
    arg.ty.is_binary() || matches!(arg.ty.kind, TypeKind::Vector | TypeKind::Null)
}

fn bind_to_vector(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    if !args[0].ty.is_string() && args[0].ty.kind != TypeKind::Null {
        return Err(wrong_arguments("to_vector"));
    }
    let ty = DataType::new(TypeKind::Vector, DIMENSIONS_MAX as u32, 0);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        let text = kit::text(&args[0]);
        let bytes = parse(&text);
        bytes
            .map(|bytes| Value::Bytes(SqlBytes::from(bytes)))
            .ok_or_else(|| Error::with(ErrorCode(6138), &[&text]))
    }))
}

/// `[number,number,...]`, blanks allowed.
fn parse(text: &str) -> Option<Vec<u8>> {
    let inner = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let mut out = Vec::new();
    for number in inner.split(',') {
        let number: f32 = number.trim().parse().ok()?;
        if !number.is_finite() || out.len() / 4 >= DIMENSIONS_MAX {
            return None;
        }
        out.extend_from_slice(&number.to_le_bytes());
    }
    Some(out)
}

/// The numbers of a vector; `None` when its length is not a multiple of four.
fn numbers(bytes: &[u8]) -> Option<impl Iterator<Item = f32> + '_> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    (rest.is_empty() && !chunks.is_empty())
        .then(|| chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)))
}

fn bind_to_string(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    if !is_vector(&args[0]) {
        return Err(wrong_arguments("from_vector"));
    }
    let ty = text_type(DIMENSIONS_MAX as u64 * NUMBER_LENGTH, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::AsIs], |_, args| {
        let numbers =
            numbers(kit::bytes(&args[0])).ok_or_else(|| wrong_arguments("from_vector"))?;
        let texts: Vec<String> = numbers.map(scientific).collect();
        Ok(Value::from(format!("[{}]", texts.join(",")).as_str()))
    }))
}

/// Five decimals and an exponent of at least two digits.
fn scientific(number: f32) -> String {
    let text = format!("{number:.5e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    format!("{digits}e{sign}{exponent:0>2}")
}

fn bind_dim(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    if !is_vector(&args[0]) {
        return Err(wrong_arguments("vector_dim"));
    }
    let ty = kit::integer_type(10, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::AsIs], |_, args| {
        let numbers = numbers(kit::bytes(&args[0])).ok_or_else(|| wrong_arguments("vector_dim"))?;
        Ok(Value::Int(numbers.count() as i64))
    }))
}
