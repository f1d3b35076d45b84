//! WAIT_FOR_EXECUTED_GTID_SET: waits until transactions have been executed here, whichever way they came. SOURCE_POS_WAIT: until a
//! channel is at a position of its source.

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

/// The functions.
pub(crate) fn functions() -> [ScalarFunction; 3] {
    let about = "SOURCE_POS_WAIT(file, position [, timeout [, channel]])\nWaits until the channel has applied its source's log up to the position; the number of transactions that it applied meanwhile, -1 when the timeout, in seconds, ends before, NULL when the channel does not run.";
    let of_name = |name| scalar(name, Arity::between(2, 4), about, bind_position).volatile();
    [of_executed(), of_name("SOURCE_POS_WAIT"), of_name("MASTER_POS_WAIT")]
}

fn bind_position(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![Coercion::Text, Coercion::Integer, Coercion::Double, Coercion::Text];
    Ok(BoundFunction::new(kit::integer_type(21, true), coercions, run_position).with_nulls())
}

fn run_position(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let limit = args.get(2).map_or(0.0, kit::double);
    if limit.is_nan() || limit < 0.0 {
        return Err(err!(WRONG_ARGUMENTS, "SOURCE_POS_WAIT."));
    }
    if args.iter().any(Value::is_null) {
        return Ok(Value::Null);
    }
    let limit = if limit == 0.0 { SECONDS_MAX } else { limit.min(SECONDS_MAX) };
    let (file, name) = (kit::text(&args[0]), args.get(3).map(kit::text).unwrap_or_default());
    let Ok(offset) = u64::try_from(kit::integer(&args[1])) else { return Ok(Value::Null) };
    let known = ctx.session.shared_state(STATE);
    let known = known.and_then(|state| state.downcast::<Channels>().ok());
    let Some(channel) = known.and_then(|channels| channels.find(&name)) else {
        return Ok(Value::Null);
    };
    let until = sys::clock::monotonic() + Duration::from_secs_f64(limit);
    let before = channel.status().ended;
    loop {
        ctx.session.check_cancelled()?;
        let status = channel.status();
        if !status.is_applying {
            return Ok(Value::Null);
        }
        if (status.applied_file.as_str(), status.applied_offset) >= (&*file, offset) {
            // What is not durable yet is not seen by others.
            channel.pending.settle();
            return Ok(Value::Int((status.ended - before) as i64));
        }
        let left = until.saturating_sub(sys::clock::monotonic());
        if left.is_zero() {
            return Ok(Value::Int(-1));
        }
        ctx.session.sleep(left.min(POLL));
    }
}

fn of_executed() -> ScalarFunction {
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
