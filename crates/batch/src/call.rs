//! Operations computed value by value: functions by their kernels, and conversions.

use plugin_api::{BoundFunction, NullRule};
use types::Value;

use crate::Fit;
use crate::column::{Column, Data};
use crate::env::{Conversion, Env};
use crate::expr::{Batch, BatchExpr, Operand};

/// Values converted row by row.
pub(super) fn convert(
    operand: &BatchExpr,
    conversion: &Conversion,
    batch: &Batch,
    env: &Env<'_>,
) -> Fit<Column> {
    let operand = operand.eval(batch, env)?;
    let (source, step) = (operand.source(), operand.step());
    let mut services = env.services.borrow_mut();
    // It adopts the kind of the first value.
    let mut out = Column::new(Data::Int(Vec::new()));
    for row in 0..batch.rows {
        match source.value(row * step)? {
            Value::Null => out.push_null(),
            value => out.push(&services.convert(value, conversion)?)?,
        }
    }
    Ok(out)
}

/// A function's values row by row, by the kernel that the row program calls too.
pub(super) fn call(
    function: &BoundFunction,
    args: &[BatchExpr],
    batch: &Batch,
    env: &Env<'_>,
) -> Fit<Column> {
    let args = args.iter().map(|arg| arg.eval(batch, env)).collect::<Fit<Vec<_>>>()?;
    let mut services = env.services.borrow_mut();
    let mut out = Column::empty(&function.ty)?;
    // Single values are put in place once.
    let values = args.iter().map(|arg| match arg {
        Operand::Single(column) => column.value(0),
        Operand::Column(_) => Ok(Value::Null),
    });
    let mut values = values.collect::<Fit<Vec<_>>>()?;
    let propagates = function.nulls == NullRule::Propagate;
    for row in 0..batch.rows {
        let mut has_null = false;
        for (value, arg) in values.iter_mut().zip(&args) {
            if let Operand::Column(column) = arg {
                *value = column.value(row)?;
            }
            has_null |= value.is_null();
        }
        match propagates && has_null {
            true => out.push_null(),
            false => out.push(&services.call(function, &values)?)?,
        }
    }
    Ok(out)
}
