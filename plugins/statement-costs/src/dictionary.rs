//! Tables of `data_dictionary` about what sessions, users and statements cost.

use std::collections::BTreeMap;

use errors::Result;
use plugin_api::{
    CostEvents, InfoColumn, InfoFilter, InformationContext, SessionCounts, StatementCost,
    StatusScope,
};
use types::{DataType, TypeKind, Value};

use crate::recorder::{Recorder, SessionRecord, optional};
use crate::row::Emit;
use crate::statements::{time, visible_rows};
use crate::sums::Sums;
use crate::users::{COMMANDS, UserTotals};

/// Columns after those of `definitions.txt`: the amounts of a statement's cost, and the groups of statements.
pub(crate) fn further_columns(table: &str) -> Vec<InfoColumn> {
    let number = |name: &'static str| {
        let ty = DataType::new(TypeKind::BigInt, 20, 0);
        InfoColumn { name, ty: DataType { unsigned: true, ..ty } }
    };
    match table {
        "SESSION_USAGE" | "STATEMENT_COSTS" | "PERF_SAMPLES" => {
            let names = StatementCost::NAMES.iter().chain(&CostEvents::NAMES);
            names.map(|name| number(name)).collect()
        }
        "CUMULATIVE_SQL_COMMANDS" => COMMANDS.iter().map(|(name, _)| number(name)).collect(),
        _ => Vec::new(),
    }
}

/// The columns of `further_columns` for a cost.
fn cost_columns(sums: &Sums) -> Vec<Value> {
    let known = |value: u64| if sums.measured > 0 { Value::UInt(value) } else { Value::Null };
    let events = sums.cost.events.amounts();
    let events = events.into_iter().map(|event| event.map_or(Value::Null, Value::UInt));
    sums.cost.amounts().into_iter().map(known).chain(events).collect()
}

/// `SESSION_USAGE`: what each session has used, in Drizzle's columns, which are those of getrusage(), and in ours. What was not measured is NULL.
pub(crate) fn session_usage(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let counts: BTreeMap<u64, SessionCounts> =
        ctx.session_counts().into_iter().map(|counts| (counts.id, counts)).collect();
    for process in ctx.processes() {
        let total = recorder.session(process.id, SessionRecord::total).unwrap_or_default();
        let cost = &total.cost;
        let known = |value: u64| if total.measured > 0 { Value::UInt(value) } else { Value::Null };
        let attributes = process.attributes.iter();
        let application = attributes.clone().find(|(name, _)| name == "program_name");
        let mut row = vec![
            Value::UInt(process.id),
            Value::text(&process.user),
            Value::text(&process.host),
            optional(application.map(|(_, value)| value.as_str())),
            optional(process.info.as_deref()),
            known(cost.user_micros / 1_000_000),
            known(cost.user_micros % 1_000_000),
            known(cost.system_micros / 1_000_000),
            known(cost.system_micros % 1_000_000),
        ];
        row.extend([known(cost.minor_faults), known(cost.major_faults)]);
        let (received, sent) =
            counts.get(&process.id).map_or((0, 0), |counts| (counts.received, counts.sent));
        let queries = counts.get(&process.id).and_then(|counts| {
            counts.counters.iter().find(|(name, _)| *name == "Questions").map(|(_, count)| *count)
        });
        row.extend([Value::UInt(received), Value::UInt(sent), Value::UInt(queries.unwrap_or(0))]);
        row.push(Value::UInt(total.measured));
        row.extend([known(total.counts.rows_examined), known(total.sent)]);
        row.extend(cost_columns(&total));
        emit(&row)?;
    }
    Ok(())
}

/// `STATEMENT_COSTS`: totals by digest, user, application and schema.
pub(crate) fn statement_costs(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut totals: BTreeMap<(&'static str, Option<String>), Sums> = BTreeMap::new();
    for row in visible_rows(recorder, ctx) {
        let who = &row.who;
        let schema = row.kind.schema.as_ref().map(|schema| schema.to_string());
        for key in [
            ("APPLICATION", who.application.clone()),
            ("SCHEMA", schema),
            ("USER", Some(who.user.clone())),
        ] {
            totals.entry(key).or_default().add(&row.sums);
        }
    }
    if ctx.sees_all_processes() {
        for digest in recorder.digests.all() {
            let sums = digest.seen.lock().sums.clone();
            totals.entry(("DIGEST", digest.text.clone())).or_default().add(&sums);
        }
    }
    for ((kind, name), sums) in &totals {
        let mut row = vec![Value::text(kind), optional(name.as_deref())];
        row.extend([Value::UInt(sums.statements), Value::UInt(sums.measured)]);
        row.extend([Value::UInt(sums.micros), Value::UInt(sums.counts.rows_examined)]);
        row.push(Value::UInt(sums.sent));
        row.extend(cost_columns(sums));
        emit(&row)?;
    }
    Ok(())
}

/// `PERF_SAMPLES`.
pub(crate) fn perf_samples(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let all = ctx.sees_all_processes();
    let visible: Vec<u64> = ctx.processes().iter().map(|process| process.id).collect();
    let mut samples = recorder.samples.all();
    samples.retain(|sample| all || visible.contains(&sample.session));
    samples.iter().try_for_each(|sample| {
        let mut row = vec![
            time(sample.started_micros),
            Value::UInt(sample.session),
            Value::text(&sample.who.user),
            Value::text(&sample.who.host),
            optional(sample.who.application.as_deref()),
            optional(sample.schema.as_deref()),
            sample.digest.text.as_ref().map_or(Value::Null, |_| Value::text(&sample.digest.number)),
            optional(sample.digest.text.as_deref()),
        ];
        let sums = &sample.sums;
        row.extend([sums.micros, sums.counts.rows_examined, sums.sent].map(Value::UInt));
        row.extend(cost_columns(sums));
        emit(&row)
    })
}

/// Totals of users with those of their open sessions.
fn users(recorder: &Recorder, ctx: &dyn InformationContext) -> BTreeMap<String, UserTotals> {
    let mut users = match ctx.sees_all_processes() {
        true => recorder.users.all(),
        false => BTreeMap::new(),
    };
    let names: BTreeMap<u64, String> =
        ctx.processes().into_iter().map(|process| (process.id, process.user)).collect();
    for counts in ctx.session_counts() {
        let Some(name) = names.get(&counts.id) else { continue };
        let recorded = recorder.session(counts.id, SessionRecord::total);
        let totals = users.entry(name.clone()).or_default();
        totals.add(&counts, ctx.now_micros(), recorded.as_ref());
    }
    users
}

/// `CUMULATIVE_USER_STATS`. Whether a connection was lost is not known by user; times and rows are those of statements that were recorded.
pub(crate) fn user_stats(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    users(recorder, ctx).iter().try_for_each(|(name, totals)| {
        let recorded = |value: Option<u64>| value.map_or(Value::Null, Value::UInt);
        emit(&[
            Value::text(name),
            Value::UInt(totals.received),
            Value::UInt(totals.sent),
            Value::UInt(totals.denied),
            Value::Null,
            Value::UInt(totals.access_denied),
            Value::UInt(totals.connected_micros / 1_000_000),
            recorded(totals.recorded.map(|(micros, _)| micros.saturating_mul(1_000))),
            recorded(totals.recorded.map(|(_, rows)| rows)),
            Value::UInt(totals.updated),
            Value::UInt(totals.deleted),
            Value::UInt(totals.inserted),
        ])
    })
}

/// `CUMULATIVE_SQL_COMMANDS`.
pub(crate) fn sql_commands(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    users(recorder, ctx).iter().try_for_each(|(name, totals)| {
        let mut row = vec![Value::text(name)];
        row.extend(totals.commands.map(Value::UInt));
        emit(&row)
    })
}

/// Counters of protocols: protocol, Drizzle's name, and the status variable that has it.
const PROTOCOLS: [(&str, &str, &str); 5] = [
    ("mysql_protocol", "connection_count", "Connections"),
    ("mysql_protocol", "connected", "Threads_connected"),
    ("mysql_protocol", "failed_connections", "Aborted_connects"),
    ("mysql_protocol", "bytes_received", "Bytes_received"),
    ("mysql_protocol", "bytes_sent", "Bytes_sent"),
];
/// Status variables of the HTTP server begin so.
const JSON_PREFIX: &str = "Json_server_";

/// `PROTOCOL_COUNTERS`.
pub(crate) fn protocol_counters(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for (name, value) in ctx.status(StatusScope::Global) {
        let Ok(value) = value.parse::<u64>() else { continue };
        let known = PROTOCOLS.iter().find(|(_, _, variable)| *variable == name);
        let json = name.strip_prefix(JSON_PREFIX).map(|counter| ("json_server", counter));
        let counter = known.map(|(protocol, counter, _)| (*protocol, *counter)).or(json);
        if let Some((protocol, counter)) = counter {
            emit(&[Value::text(protocol), Value::text(counter), Value::UInt(value)])?;
        }
    }
    Ok(())
}

/// `USER_DEFINED_LOCKS`: the locks of sessions that the account may see.
pub(crate) fn user_locks(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let processes = ctx.processes();
    ctx.user_locks().iter().try_for_each(|lock| {
        match processes.iter().find(|process| process.id == lock.session) {
            Some(holder) => emit(&[
                Value::text(&lock.name),
                Value::UInt(lock.session),
                Value::text(&holder.user),
            ]),
            None => Ok(()),
        }
    })
}
