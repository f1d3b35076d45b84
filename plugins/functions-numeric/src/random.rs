//! RAND: the session's numbers, or the reference's reproducible sequence from a seed.

use errors::Result;
use plugin_api::kit::{self, any_nullable, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext,
    ScalarFunction,
};
use sys::sync::Mutex;
use types::{DataType, Value};

/// Modulus of both generators.
const MODULUS: u64 = 0x3FFF_FFFF;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[scalar(
    "RAND",
    Arity::between(0, 1),
    "RAND([N])\nA number from 0 up to but not including 1; with N, the sequence that starts from this seed.",
    bind_rand,
).numbers(Arguments::ALL)
.volatile()];

/// Two coupled linear congruential generators.
#[derive(Clone, Copy)]
struct Sequence {
    first: u64,
    second: u64,
}

impl Sequence {
    fn seeded(seed: u32) -> Sequence {
        let seed = u64::from(seed);
        let first = (seed * 0x10001 + 55_555_555) & 0xFFFF_FFFF;
        let second = (seed * 0x1000_0001) & 0xFFFF_FFFF;
        Sequence { first: first % MODULUS, second: second % MODULUS }
    }

    fn next(&mut self) -> f64 {
        self.first = (self.first * 3 + self.second) % MODULUS;
        self.second = (self.first + self.second + 33) % MODULUS;
        self.first as f64 / MODULUS as f64
    }
}

/// Which statement a running sequence belongs to: a bound function outlives statements and may serve several sessions.
type StatementKey = (u64, i64);

fn statement_key(ctx: &FunctionContext<'_>) -> StatementKey {
    (ctx.session.connection_id(), ctx.now_micros)
}

fn bind_rand(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::double().with_nullable(any_nullable(args));
    let Some(seed) = args.first() else {
        return Ok(BoundFunction::new(ty, vec![], |ctx, _| {
            Ok(Value::Double(ctx.session.random()))
        }));
    };
    if !seed.fixed {
        let bound = BoundFunction::new(ty, vec![Coercion::Integer], |_, args| {
            Ok(Value::Double(Sequence::seeded(kit::integer(&args[0]) as u32).next()))
        });
        return Ok(bound.with_nulls());
    }
    let running: Mutex<Option<(StatementKey, Sequence)>> = Mutex::new(None);
    let bound = BoundFunction::new(ty, vec![Coercion::Integer], move |ctx, args| {
        let key = statement_key(ctx);
        let mut running = running.lock();
        let mut sequence = match *running {
            Some((owner, sequence)) if owner == key => sequence,
            _ => Sequence::seeded(kit::integer(&args[0]) as u32),
        };
        let number = sequence.next();
        *running = Some((key, sequence));
        Ok(Value::Double(number))
    });
    Ok(bound.with_nulls())
}
