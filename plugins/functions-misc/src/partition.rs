//! Internal functions of partitioned tables: the first computes the hidden column with a row's partition, the others turn conditions on
//! the partition columns into ranges of it. Their first argument is a router in the form of `types::partition`.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::scalar;
use plugin_api::{
    ArgInfo, Arity, BoundFunction, Coercion, FunctionRole, Growth, PartitionQuestion,
    ScalarFunction,
};
use types::partition::{Below, NO_PARTITION, Router};
use types::{DataType, TypeKind, Value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "PARTITION_NUMBER",
        Arity::at_least(2),
        "PARTITION_NUMBER(router, value, ...)\nThe number of the partition that takes a row; the server computes it for each row of a partitioned table.",
        |_, args| bind(args, PartitionQuestion::Number),
    ).role(FunctionRole::Partition(PartitionQuestion::Number)),
    scalar(
        "PARTITION_PROBE",
        Arity::at_least(2),
        "PARTITION_PROBE(router, value, ...)\nAs PARTITION_NUMBER; 65535 for values that no partition takes.",
        |_, args| bind(args, PartitionQuestion::Probe),
    ).role(FunctionRole::Partition(PartitionQuestion::Probe)),
    scalar(
        "PARTITION_FIRST",
        Arity::at_least(2),
        "PARTITION_FIRST(router, value, ...)\nThe number of the first partition that can hold rows with these values or larger ones.",
        |_, args| bind(args, PartitionQuestion::First),
    ).role(FunctionRole::Partition(PartitionQuestion::First)),
    scalar(
        "PARTITION_LAST",
        Arity::at_least(2),
        "PARTITION_LAST(router, value, ...)\nThe number of the last partition that can hold rows with these values or smaller ones.",
        |_, args| bind(args, PartitionQuestion::Last),
    ).role(FunctionRole::Partition(PartitionQuestion::Last)),
    scalar(
        "PARTITION_BEFORE",
        Arity::at_least(2),
        "PARTITION_BEFORE(router, value, ...)\nThe number of the last partition that can hold rows with smaller values.",
        |_, args| bind(args, PartitionQuestion::Before),
    ).role(FunctionRole::Partition(PartitionQuestion::Before)),
    scalar(
        "PARTITION_SECONDS",
        Arity::exactly(1),
        "PARTITION_SECONDS(datetime)\nUNIX_TIMESTAMP of a datetime in UTC: a partition must not depend on the time zone.",
        |_, _| {
            Ok(BoundFunction::new(DataType::bigint(), vec![Coercion::AsIs], |_, args| {
                let Value::DateTime(datetime) = &args[0] else { return Ok(Value::Null) };
                let micros = if datetime.is_zero() { Some(0) } else { datetime.to_unix_micros() };
                Ok(micros.map_or(Value::Null, |micros| Value::Int(micros.div_euclid(1_000_000))))
            }))
        },
    ).role(FunctionRole::PartitionSeconds).growing(Growth::Growing),
];

fn bind(args: &[ArgInfo], asked: PartitionQuestion) -> Result<BoundFunction> {
    let router = match &args[0].constant {
        Some(Value::Bytes(written)) => Router::read(written),
        _ => None,
    };
    let wrong = || Error::with(ErrorCode::WRONG_ARGUMENTS, &[&"partition_number"]);
    let router = router.ok_or_else(wrong)?;
    let types: Vec<DataType> = args[1..].iter().map(|arg| arg.ty.clone()).collect();
    let needed = if router.sub.is_some() { router.values + 1 } else { router.values };
    if matches!(asked, PartitionQuestion::Number | PartitionQuestion::Probe) && types.len() < needed
    {
        return Err(wrong());
    }
    let mut ty = DataType::new(TypeKind::SmallInt, 5, 0);
    ty.unsigned = true;
    // A probe for NULL in a range finds nothing.
    ty.nullable = matches!(
        asked,
        PartitionQuestion::First | PartitionQuestion::Last | PartitionQuestion::Before
    );
    let bound = BoundFunction::new(ty, vec![Coercion::AsIs], move |_, args| {
        let values = &args[1..];
        let number = match asked {
            PartitionQuestion::Number => match router.leaf(values, &types) {
                Some(number) => number,
                None => return Err(no_partition(&router, &values[0], &types[0])),
            },
            PartitionQuestion::Probe => router.leaf(values, &types).unwrap_or(NO_PARTITION),
            PartitionQuestion::First | PartitionQuestion::Last | PartitionQuestion::Before
                if values.iter().any(Value::is_null) =>
            {
                return Ok(Value::Null);
            }
            PartitionQuestion::First | PartitionQuestion::Last | PartitionQuestion::Before => {
                let below = match asked {
                    PartitionQuestion::Before => Below::Excluded,
                    _ => Below::Included,
                };
                let span = router.span(values, &types, below);
                match (asked, span) {
                    (_, None) => return Ok(Value::Null),
                    (PartitionQuestion::First, Some((first, _))) => first,
                    (_, Some((_, last))) => last,
                }
            }
        };
        Ok(Value::UInt(u64::from(number)))
    });
    Ok(bound.with_nulls())
}

#[cold]
fn no_partition(router: &Router, value: &Value, ty: &DataType) -> Error {
    let mut text = Vec::new();
    match value {
        _ if !router.expression => text.extend_from_slice(b"from column_list"),
        Value::Null => text.extend_from_slice(b"NULL"),
        value => types::to_text(value, ty, &mut text),
    }
    let text = String::from_utf8_lossy(&text);
    Error::with(ErrorCode::NO_PARTITION_FOR_GIVEN_VALUE, &[&text])
}
