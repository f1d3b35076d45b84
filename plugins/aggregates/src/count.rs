//! COUNT.

use std::sync::Arc;

use errors::Result;
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BindContext, BoundAggregate, Coercion, FunctionContext, Geometries, kit,
};
use types::Value;

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[AggregateFunction {
    name: "COUNT",
    aliases: &[],
    arity: Arity { min: 0, max: usize::MAX },
    role: AggregateRole::Count,
    numbers: Arguments::NONE,
    geometries: Geometries::Taken,
    help: "COUNT(*) | COUNT([DISTINCT] expr, ...)\nThe number of rows, or of rows in which no expr is NULL.",
    binding: AggregateBinding::Code(bind),
}];

#[derive(Default)]
struct Count(i64);

impl Accumulator for Count {
    fn update(&mut self, _: &mut FunctionContext<'_>, _: &[Value]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(Value::Int(self.0))
    }
    fn reset(&mut self) {
        self.0 = 0;
    }
}

fn bind(_: &BindContext, _: &[ArgInfo], _: Option<&[u8]>) -> Result<BoundAggregate> {
    Ok(BoundAggregate {
        ty: kit::integer_type(21, false),
        coercions: vec![Coercion::AsIs],
        skip_nulls: true,
        accumulator: Arc::new(|| Box::new(Count::default())),
    })
}
