//! Standard deviation and variance, by Welford's recurrence.

use std::sync::Arc;

use errors::Result;
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, Arguments, Arity,
    BoundAggregate, Coercion, FunctionContext, Geometries, kit,
};
use types::{DataType, Value};

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[
    AggregateFunction {
        name: "STDDEV_POP",
        aliases: &["STD", "STDDEV"],
        arity: Arity::exactly(1),
        role: AggregateRole::StddevPop,
        numbers: Arguments::ALL,
        geometries: Geometries::Refused,
        help: "STDDEV_POP(expr)\nThe standard deviation of the population.",
        binding: AggregateBinding::Code(|_, _, _| Ok(bind(Kind { sample: false, root: true }))),
    },
    AggregateFunction {
        name: "STDDEV_SAMP",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::StddevSamp,
        numbers: Arguments::ALL,
        geometries: Geometries::Refused,
        help: "STDDEV_SAMP(expr)\nThe standard deviation of the sample; NULL for one row.",
        binding: AggregateBinding::Code(|_, _, _| Ok(bind(Kind { sample: true, root: true }))),
    },
    AggregateFunction {
        name: "VAR_POP",
        aliases: &["VARIANCE"],
        arity: Arity::exactly(1),
        role: AggregateRole::VarPop,
        numbers: Arguments::ALL,
        geometries: Geometries::Refused,
        help: "VAR_POP(expr)\nThe variance of the population.",
        binding: AggregateBinding::Code(|_, _, _| Ok(bind(Kind { sample: false, root: false }))),
    },
    AggregateFunction {
        name: "VAR_SAMP",
        aliases: &[],
        arity: Arity::exactly(1),
        role: AggregateRole::VarSamp,
        numbers: Arguments::ALL,
        geometries: Geometries::Refused,
        help: "VAR_SAMP(expr)\nThe variance of the sample; NULL for one row.",
        binding: AggregateBinding::Code(|_, _, _| Ok(bind(Kind { sample: true, root: false }))),
    },
];

#[derive(Clone, Copy)]
struct Kind {
    sample: bool,
    root: bool,
}

struct Variance {
    kind: Kind,
    count: u64,
    mean: f64,
    squares: f64,
}

fn bind(kind: Kind) -> BoundAggregate {
    BoundAggregate {
        ty: DataType::double(),
        coercions: vec![Coercion::Double],
        skip_nulls: true,
        accumulator: Arc::new(move || {
            Box::new(Variance { kind, count: 0, mean: 0.0, squares: 0.0 })
        }),
    }
}

impl Accumulator for Variance {
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        let number = kit::double(&args[0]);
        self.count += 1;
        let before = number - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (number - self.mean);
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        let divisor = self.count.saturating_sub(u64::from(self.kind.sample));
        if divisor == 0 {
            return Ok(Value::Null);
        }
        let variance = if self.count == 1 { 0.0 } else { self.squares / divisor as f64 };
        kit::finite(if self.kind.root { variance.sqrt() } else { variance }, "std", &[])
    }
    fn reset(&mut self) {
        (self.count, self.mean, self.squares) = (0, 0.0, 0.0);
    }
}
