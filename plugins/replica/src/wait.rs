//! WAIT_FOR_EXECUTED_GTID_SET: waits until transactions have been executed here, whichever way they came.

use std::sync::Arc;
use std::time::Duration;

use errors::{Error, ErrorCode, Result, err};
use plugin_api::kit::{self, scalar};
use plugin_api::variable::as_text;
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::{GtidSet, Value};

use crate::control::Channels;

/// Under which the function finds the channels.
pub(crate) const STATE: &str = "replica.channels";
const NAME: &str = "WAIT_FOR_EXECUTED_GTID_SET";
/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(10);
/// Longest wait, about 100 years; a duration must not overflow.
const SECONDS_MAX: f64 = 3.2e9;

/// The function.
pub(crate) fn function() -> ScalarFunction {
    let about = "WAIT_FOR_EXECUTED_GTID_SET(set [, timeout])\nWaits until all transactions of the set have been executed here; 1 when the timeout, in seconds, ends before.";
    scalar(NAME, Arity::between(1, 2), about, bind).volatile()
}

fn bind(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![Coercion::Text, Coercion::Double];
    Ok(BoundFunction::new(kit::integer_type(21, false), coercions, run).with_nulls())
}

fn run(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let text = if args[0].is_null() { "NULL".into() } else { kit::text(&args[0]) };
    let set = GtidSet::parse(&text).ok_or_else(|| Error::with(ErrorCode(1772), &[&text]))?;
    let limit = match args.get(1) {
        None => f64::INFINITY,
        Some(Value::Null) => return Err(err!(WRONG_ARGUMENTS, format!("{NAME}."))),
        Some(limit) => kit::double(limit),
    };
    if limit.is_nan() || limit < 0.0 {
        return Err(err!(WRONG_ARGUMENTS, format!("{NAME}.")));
    }
    // As for the reference, 0 is no limit.
    let limit = if limit == 0.0 { SECONDS_MAX } else { limit.min(SECONDS_MAX) };
    let until = sys::clock::monotonic() + Duration::from_secs_f64(limit);
    loop {
        ctx.session.check_cancelled()?;
        if set.is_subset(&executed(ctx)) {
            return Ok(Value::Int(0));
        }
        let left = until.saturating_sub(sys::clock::monotonic());
        if left.is_zero() {
            return Ok(Value::Int(1));
        }
        ctx.session.sleep(left.min(POLL));
    }
}

/// The transactions that have been executed here and can be seen.
fn executed(ctx: &FunctionContext<'_>) -> GtidSet {
    let known = ctx.session.system_variable("gtid_executed");
    let mut set = known.and_then(|known| GtidSet::parse(&as_text(&known))).unwrap_or_default();
    let channels = ctx.session.shared_state(STATE);
    let Some(channels) = channels.and_then(|state| state.downcast::<Channels>().ok()) else {
        return set;
    };
    for channel in Arc::as_ref(&channels).list() {
        let executed = channel.status().executed;
        if !executed.is_subset(&set) {
            // A replica without a binary log. What is not durable yet is not seen by others.
            channel.pending.settle();
            set.add_all(&executed);
        }
    }
    set
}
