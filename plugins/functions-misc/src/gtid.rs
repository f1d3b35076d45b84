//! GTID_SUBSET and GTID_SUBTRACT.

use errors::{Error, Result};
use plugin_api::kit::{self, any_nullable, scalar, text_type};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::{GtidSet, Value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "GTID_SUBSET",
        Arity::exactly(2),
        "GTID_SUBSET(set1, set2)\nWhether all transactions of set1 are in set2.",
        bind_subset,
    ),
    scalar(
        "GTID_SUBTRACT",
        Arity::exactly(2),
        "GTID_SUBTRACT(set1, set2)\nThe transactions of set1 that are not in set2.",
        bind_subtract,
    ),
];

fn bind_subset(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(21, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        let (left, right) = (parse(&kit::text(&args[0]))?, parse(&kit::text(&args[1]))?);
        Ok(Value::bool(left.is_subset(&right)))
    }))
}

fn bind_subtract(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let length = kit::text_length(&args[0].ty).saturating_mul(12);
    let ty = text_type(length, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        let (left, right) = (parse(&kit::text(&args[0]))?, parse(&kit::text(&args[1]))?);
        Ok(Value::from(left.subtract(&right).to_string().as_str()))
    }))
}

fn parse(text: &str) -> Result<GtidSet> {
    GtidSet::parse(text).ok_or_else(|| malformed(text))
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::with(errors::ErrorCode(1772), &[&what])
}
