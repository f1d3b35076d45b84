//! The functions.

use std::sync::Arc;
use std::time::Duration;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
    Statements,
};
use types::Value;

use crate::STATE;
use crate::barriers::{Barriers, Observing};

/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(20);

type Run = fn(&mut FunctionContext<'_>, &[Value]) -> Result<Value>;

/// All functions.
pub(crate) fn all() -> Vec<ScalarFunction> {
    let one = Arity::exactly(1);
    let any = Arity::at_least(1);
    vec![
        scalar("GET_LOCKS", any, "GET_LOCKS(name, ..)\nTakes all these user locks, waiting as long as it takes.", |_, args| {
            bind(args, get_locks)
        })
        .volatile(),
        scalar("RELEASE_LOCKS", Arity::exactly(0), "RELEASE_LOCKS()\nReleases all user locks of the session and counts them.", |_, args| {
            bind(args, |ctx, _| Ok(Value::UInt(ctx.session.release_all_user_locks())))
        })
        .volatile(),
        scalar("WAIT_FOR_LOCK", one, "WAIT_FOR_LOCK(name)\nWaits until a session holds the user lock.", |_, args| {
            bind(args, wait_for_lock)
        })
        .volatile(),
        scalar("RELEASE_LOCK_AND_WAIT", one, "RELEASE_LOCK_AND_WAIT(name)\nReleases the user lock and waits until another session holds it.", |_, args| {
            bind(args, release_lock_and_wait)
        })
        .volatile(),
        scalar("CREATE_BARRIER", Arity::between(1, 2), "CREATE_BARRIER(name [, waiters])\nMakes a barrier; when so many sessions wait they pass. 0 if it exists.", |_, _| {
            let coercions = vec![Coercion::Text, Coercion::Integer];
            Ok(BoundFunction::new(kit::integer_type(1, true), coercions, create_barrier))
        })
        .volatile(),
        scalar("RELEASE_BARRIER", one, "RELEASE_BARRIER(name)\nRemoves the session's barrier; its waiters pass.", |_, args| {
            bind(args, release_barrier)
        })
        .volatile(),
        scalar("WAIT_BARRIER", one, "WAIT_BARRIER(name)\nWaits at a barrier.", |_, args| bind(args, wait)).volatile(),
        scalar("WAIT_UNTIL", Arity::exactly(2), "WAIT_UNTIL(name, waiters)\nWaits until so many sessions wait at the barrier.", |_, _| {
            let coercions = vec![Coercion::Text, Coercion::Integer];
            Ok(BoundFunction::new(kit::integer_type(1, true), coercions, wait_until))
        })
        .volatile(),
        scalar("SIGNAL_BARRIER", one, "SIGNAL_BARRIER(name)\nLets all waiters of the session's barrier pass.", |_, args| {
            bind(args, signal)
        })
        .volatile(),
        scalar("SHUTDOWN", Arity::exactly(0), "SHUTDOWN()\nStops the server. Needs the privilege SHUTDOWN.", bind_shutdown)
            .volatile()
            .runs_statements(),
    ]
}

fn bind(args: &[ArgInfo], run: Run) -> Result<BoundFunction> {
    let coercions = args.iter().map(|_| Coercion::Text).collect();
    Ok(BoundFunction::new(kit::integer_type(20, true), coercions, run))
}

fn barriers(ctx: &FunctionContext<'_>) -> Result<Arc<Barriers>> {
    let state = ctx.session.shared_state(STATE);
    let known = state.and_then(|state| state.downcast::<Barriers>().ok());
    known.ok_or_else(|| Error::with(ErrorCode::PLUGIN_IS_NOT_LOADED, &[&"user_locks"]))
}

/// Waits until `is_over`.
///
/// # Errors
/// The statement was cancelled.
fn wait_while(
    ctx: &mut FunctionContext<'_>,
    mut is_over: impl FnMut(&mut FunctionContext<'_>) -> bool,
) -> Result<()> {
    while !is_over(ctx) {
        ctx.session.sleep(POLL);
        ctx.session.check_cancelled()?;
    }
    Ok(())
}

fn get_locks(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    // In the order of the names, so that two calls cannot wait for each other.
    let mut names: Vec<String> = args.iter().map(|name| kit::text(name).to_lowercase()).collect();
    names.sort_unstable();
    names.dedup();
    for name in &names {
        ctx.session.get_user_lock(name, -1.0)?;
    }
    Ok(Value::Int(1))
}

fn wait_for_lock(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let name = kit::text(&args[0]).to_lowercase();
    wait_while(ctx, |ctx| ctx.session.user_lock_holder(&name).is_some())?;
    Ok(Value::Int(1))
}

fn release_lock_and_wait(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let name = kit::text(&args[0]).to_lowercase();
    match ctx.session.release_user_lock(&name) {
        None => return Ok(Value::Null),
        Some(false) => return Ok(Value::Int(0)),
        Some(true) => {}
    }
    let own = ctx.session.connection_id();
    wait_while(ctx, |ctx| ctx.session.user_lock_holder(&name).is_some_and(|holder| holder != own))?;
    Ok(Value::Int(1))
}

fn create_barrier(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let limit = args.get(1).map_or(0, kit::integer_i64);
    let limit = u64::try_from(limit)
        .map_err(|_| Error::with(ErrorCode::WRONG_ARGUMENTS, &[&"create_barrier"]))?;
    let (session, user) = (ctx.session.connection_id(), ctx.session.user());
    let user = user.rsplit_once('@').map_or(user.as_str(), |(user, _)| user);
    Ok(Value::bool(barriers(ctx)?.create(&kit::text(&args[0]), session, user, limit)?))
}

fn release_barrier(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let released = barriers(ctx)?.release(&kit::text(&args[0]), ctx.session.connection_id())?;
    Ok(released.map_or(Value::Null, Value::bool))
}

fn signal(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let signalled = barriers(ctx)?.signal(&kit::text(&args[0]), ctx.session.connection_id())?;
    Ok(signalled.map_or(Value::Null, Value::bool))
}

fn wait(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let barriers = barriers(ctx)?;
    let Some(place) = barriers.enter(&kit::text(&args[0]))? else { return Ok(Value::Null) };
    let waited = wait_while(ctx, |_| barriers.may_pass(&place));
    barriers.leave(&place);
    waited.map(|()| Value::Int(1))
}

fn wait_until(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let barriers = barriers(ctx)?;
    let (name, wanted) = (kit::text(&args[0]).into_owned(), kit::integer(&args[1]));
    if barriers.waiters(&name)?.is_none() {
        return Ok(Value::Null);
    }
    barriers.observe(&name, Observing::Begins)?;
    let is_over =
        || barriers.waiters(&name).ok().flatten().is_none_or(|count| i128::from(count) >= wanted);
    let waited = wait_while(ctx, |_| is_over());
    barriers.observe(&name, Observing::Ends)?;
    waited.map(|()| Value::Int(1))
}

fn bind_shutdown(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::with_statements(kit::integer_type(1, true), Vec::new(), shutdown))
}

fn shutdown(
    _: &mut FunctionContext<'_>,
    statements: &mut dyn Statements,
    _: &[Value],
) -> Result<Value> {
    statements.run("SHUTDOWN", &[])?;
    Ok(Value::Int(1))
}
