//! Memory by event: what engines, caches and the statements of threads hold, as they count it themselves. Single allocations are not
//! counted, so numbers of allocations are 0, and the highest amount is the present one.

use std::collections::BTreeMap;

use errors::Result;
use plugin_api::{InfoFilter, InformationContext};
use sys::waits;
use types::Value;

use crate::recorder::Recorder;
use crate::row::Emit;

/// Sorts, joins, groups and kept rows of running statements.
pub(crate) const QUERY: &str = "memory/squall/statement_operators";
const CATALOG: &str = "memory/squall/catalog";
const PLANS: &str = "memory/squall/plan_cache";
const REST: &str = "memory/squall/not_attributed";

/// The reference's names for what engines hold.
const KNOWN: [(&str, &str); 4] = [
    ("pages", "memory/innodb/buf_buf_pool"),
    ("locks", "memory/innodb/lock0lock"),
    ("log", "memory/innodb/log_buffer_memory"),
    ("dictionary", "memory/innodb/dict0dict"),
];

/// All events with the bytes that they hold.
pub(crate) fn events(ctx: &dyn InformationContext) -> Vec<(String, u64)> {
    let mut events: BTreeMap<String, u64> = BTreeMap::new();
    for stat in ctx.engine_stats().iter().filter(|stat| stat.group == "memory") {
        let owner = stat.name.strip_suffix("_bytes").unwrap_or(&stat.name);
        let known = KNOWN.iter().find(|(name, _)| *name == owner);
        let name = match known {
            Some((_, event)) => (*event).to_owned(),
            None => format!("memory/squall/{owner}"),
        };
        *events.entry(name).or_default() += stat.value.parse().unwrap_or(0);
    }
    let plans = ctx.plan_cache().iter().map(|plan| plan.bytes).sum();
    let held = waits::threads().iter().map(|thread| thread.held_bytes).sum();
    events.extend(
        [(CATALOG, ctx.catalog_bytes()), (PLANS, plans), (QUERY, held)]
            .map(|(name, bytes)| (name.to_owned(), bytes)),
    );
    let counted: u64 = events.values().sum();
    events.insert(REST.to_owned(), ctx.resident_bytes().saturating_sub(counted));
    events.into_iter().collect()
}

/// The columns from COUNT_ALLOC on.
fn columns(bytes: u64) -> [Value; 10] {
    let bytes = Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX));
    let (count, none) = (Value::UInt(0), Value::Int(0));
    let counts = [count.clone(), count.clone(), count.clone(), count];
    let [allocated, freed, allocated_bytes, freed_bytes] = counts;
    [
        allocated,
        freed,
        allocated_bytes,
        freed_bytes,
        none.clone(),
        none.clone(),
        none.clone(),
        none,
        bytes.clone(),
        bytes,
    ]
}

/// `memory_summary_global_by_event_name`.
pub(crate) fn global(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    events(ctx).iter().try_for_each(|(name, bytes)| {
        let mut row = vec![Value::text(name)];
        row.extend(columns(*bytes));
        emit(&row)
    })
}

/// Adds up what the statements of the sessions that the account sees hold, in groups that `names` gives.
fn held(
    ctx: &dyn InformationContext,
    emit: &mut Emit<'_>,
    names: impl Fn(u64, &str, &str) -> Vec<Value>,
) -> Result<()> {
    let mut groups: BTreeMap<String, (Vec<Value>, u64)> = BTreeMap::new();
    for process in ctx.processes() {
        let host = process.host.rsplit_once(':').map_or(&*process.host, |(host, _)| host);
        let thread = process.thread.and_then(waits::thread);
        let names = names(process.id, &process.user, host);
        let group = groups.entry(format!("{names:?}")).or_insert_with(|| (names, 0));
        group.1 += thread.map_or(0, |thread| thread.held_bytes);
    }
    groups.into_values().try_for_each(|(mut row, bytes)| {
        row.push(Value::text(QUERY));
        row.extend(columns(bytes));
        emit(&row)
    })
}

/// `memory_summary_by_thread_by_event_name`.
pub(crate) fn by_thread(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    held(ctx, emit, |id, _, _| vec![Value::UInt(id)])
}

/// `memory_summary_by_account_by_event_name`.
pub(crate) fn by_account(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    held(ctx, emit, |_, user, host| vec![Value::text(user), Value::text(host)])
}

/// `memory_summary_by_user_by_event_name`.
pub(crate) fn by_user(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    held(ctx, emit, |_, user, _| vec![Value::text(user)])
}

/// `memory_summary_by_host_by_event_name`.
pub(crate) fn by_host(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    held(ctx, emit, |_, _, host| vec![Value::text(host)])
}
