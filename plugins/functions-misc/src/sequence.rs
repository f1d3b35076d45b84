//! Sequences. The compiler puts the number, schema and name of the sequence in front of the arguments.

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BoundFunction, Coercion, FunctionContext, ScalarFunction, SequenceCall,
    SequenceName,
};
use types::{FunctionRole, Value};

/// Arguments that name the sequence.
const NAME: usize = 3;
/// Digits and sign of a value.
const LENGTH: u32 = 20;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "NEXTVAL",
        Arity::exactly(NAME),
        "NEXTVAL(sequence)\nThe next value of a sequence, also written NEXT VALUE FOR sequence.",
        |_, _| Ok(bind(|_| SequenceCall::Next)),
    )
    .role(FunctionRole::SequenceNext)
    .volatile(),
    scalar(
        "LASTVAL",
        Arity::exactly(NAME),
        "LASTVAL(sequence)\nThe value that the session got from a sequence last, also written PREVIOUS VALUE FOR sequence.",
        |_, _| Ok(bind(|_| SequenceCall::Last)),
    )
    .role(FunctionRole::SequenceLast)
    .volatile(),
    scalar(
        "SETVAL",
        Arity::between(NAME + 1, NAME + 3),
        "SETVAL(sequence, value[, is_used[, round]])\nMoves a sequence forward, so that the next value is the one after this; value itself if is_used is 0. NULL if it is farther already.",
        |_, _| Ok(bind(set)),
    )
    .role(FunctionRole::SequenceSet)
    .volatile(),
    scalar(
        "SEQUENCE_RESTORED",
        Arity::exactly(NAME + 1),
        "SEQUENCE_RESTORED(sequence, value)\nThe value, which an INSERT gives to the sequence; statements cannot call it.",
        |_, args| Ok(bind_restored(args)),
    )
    .role(FunctionRole::SequenceRestored)
    .volatile(),
];

fn coercions() -> Vec<Coercion> {
    vec![Coercion::Integer, Coercion::Text, Coercion::Text, Coercion::Integer]
}

fn bind(call: fn(&[Value]) -> SequenceCall) -> BoundFunction {
    BoundFunction::new(kit::integer_type(LENGTH, true), coercions(), move |ctx, args| {
        used(ctx, args, call(&args[NAME..]))
    })
}

fn used(ctx: &mut FunctionContext<'_>, args: &[Value], call: SequenceCall) -> Result<Value> {
    let (schema, name) = (kit::text(&args[1]), kit::text(&args[2]));
    let table = u64::try_from(kit::integer(&args[0])).unwrap_or_default();
    let sequence = SequenceName { table, schema: &schema, name: &name };
    Ok(ctx.session.sequence(&sequence, call)?.map_or(Value::Null, Value::Int))
}

fn set(args: &[Value]) -> SequenceCall {
    SequenceCall::Set {
        value: kit::integer_i64(&args[0]),
        is_used: args.get(1).is_none_or(|used| kit::integer(used) != 0),
        round: args.get(2).map_or(0, kit::integer_i64),
    }
}

fn bind_restored(args: &[ArgInfo]) -> BoundFunction {
    let ty = args.get(NAME).map_or_else(|| kit::integer_type(LENGTH, true), |arg| arg.ty.clone());
    let coercions = vec![Coercion::Integer, Coercion::Text, Coercion::Text, Coercion::AsIs];
    BoundFunction::new(ty, coercions, |ctx, args| {
        used(ctx, args, SequenceCall::Forget)?;
        Ok(args[NAME].clone())
    })
}
