//! Tables of `performance_schema` about statements.

use std::collections::BTreeMap;

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, PlanCacheView, ProcessView};
use types::{DateTime, Value};

use crate::consumers::Consumer;
use crate::digests::{Digest, Seen, sha256};
use crate::recorder::{Ended, Recorder, Row, optional};
use crate::row::Emit;
use crate::sums::{Histogram, MICROSECOND, NANOSECOND, Sums};

/// Picoseconds of a second.
const SECOND: u64 = 1_000_000_000_000;

/// `setup_consumers`.
pub(crate) fn consumers(
    recorder: &Recorder,
    _: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    recorder.consumers.rows().iter().try_for_each(|row| emit(row))
}

/// The numbers of the sessions that the account may see.
pub(crate) fn visible(ctx: &dyn InformationContext) -> Vec<u64> {
    ctx.processes().iter().map(|process| process.id).collect()
}

/// `events_statements_current`: the statement that runs, else the last one that is in the history.
pub(crate) fn current(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    if !recorder.consumers.has(Consumer::CURRENT) {
        return Ok(());
    }
    for process in ctx.processes() {
        if !recorder.threads.of(process.id).is_instrumented {
            continue;
        }
        let last = recorder.session(process.id, |record| record.history.back().cloned()).flatten();
        match (process.info.as_deref(), last) {
            (Some(text), last) => {
                let number = last.map_or(1, |last| last.number + 1);
                emit(&running_row(&process, text, number))?;
            }
            (None, Some(last)) => emit(&ended_row(&last, ctx.started_micros()))?,
            (None, None) => {}
        }
    }
    Ok(())
}

fn running_row(process: &ProcessView, text: &str, number: u64) -> Vec<Value> {
    let waited = Value::UInt(process.seconds.saturating_mul(SECOND));
    let mut row = vec![
        Value::UInt(process.id),
        Value::UInt(number),
        Value::Null,
        Value::text("statement/sql"),
        Value::Null,
        Value::UInt(0),
        waited.clone(),
        waited,
        Value::UInt(0),
        Value::text(text),
        Value::Null,
        Value::Null,
        optional(process.database.as_deref()),
    ];
    // The object, its address, and how the statement ended: it has not.
    row.extend(std::iter::repeat_n(Value::Null, 4));
    row.extend([Value::Int(0), Value::Null, Value::Null]);
    // Errors, warnings and the counters of rows, temporary tables, scans and sorts.
    row.extend(std::iter::repeat_n(Value::UInt(0), 18));
    row.extend([Value::Null, Value::Null, Value::Int(0)]);
    row.extend([Value::UInt(number), Value::UInt(0), Value::UInt(0), Value::UInt(0)]);
    row.push(Value::text("PRIMARY"));
    row
}

/// A statement that ended; its times are counted from the start of the server.
fn ended_row(ended: &Ended, server_started: i64) -> Vec<Value> {
    let micros = ended.started_micros.saturating_sub(server_started).max(0) as u64;
    let start = micros.saturating_mul(MICROSECOND);
    let wait = ended.sums.micros.saturating_mul(MICROSECOND);
    // From COUNT_STAR on; see `Sums::columns`.
    let sums = ended.sums.columns();
    let mut row = vec![
        Value::UInt(ended.session),
        Value::UInt(ended.number),
        Value::UInt(ended.number),
        Value::text(&ended.event_name),
        Value::Null,
        Value::UInt(start),
        Value::UInt(start.saturating_add(wait)),
        Value::UInt(wait),
        sums[5].clone(),
        Value::text(&ended.text),
        ended.digest.text.as_ref().map_or(Value::Null, |_| Value::text(&ended.digest.number)),
        optional(ended.digest.text.as_deref()),
        optional(ended.schema.as_deref()),
    ];
    row.extend(std::iter::repeat_n(Value::Null, 4));
    match &ended.error {
        Some((code, state, message)) => {
            let message: String = message.chars().take(128).collect();
            row.extend([Value::Int((*code).into()), Value::text(state), Value::text(&message)]);
        }
        None => row.extend([Value::Int(0), Value::text("00000"), Value::Null]),
    }
    // ERRORS to NO_GOOD_INDEX_USED.
    row.extend_from_slice(&sums[6..24]);
    row.extend([Value::Null, Value::Null, Value::Int(0), Value::UInt(ended.number)]);
    // CPU_TIME and the memory.
    row.extend_from_slice(&sums[24..27]);
    row.push(Value::text("PRIMARY"));
    row
}

/// `events_statements_history`: the last statements of each session.
pub(crate) fn history(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for session in visible(ctx) {
        let ended = recorder.session(session, |record| record.history.clone());
        let mut ended = ended.iter().flatten();
        ended.try_for_each(|ended| emit(&ended_row(ended, ctx.started_micros())))?;
    }
    Ok(())
}

/// `events_statements_history_long`: the last statements of all sessions, also of those that have ended.
pub(crate) fn history_long(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let (all, visible) = (ctx.sees_all_processes(), visible(ctx));
    let mut ended = recorder.history_long();
    ended.retain(|ended| all || visible.contains(&ended.session));
    ended.iter().try_for_each(|ended| emit(&ended_row(ended, ctx.started_micros())))
}

pub(crate) fn time(unix_micros: i64) -> Value {
    Value::DateTime(DateTime::from_unix_micros(unix_micros).unwrap_or(DateTime::ZERO))
}

/// The digests that the account may see: all or none.
fn seen_digests(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
) -> Vec<(std::sync::Arc<Digest>, Seen)> {
    if !ctx.sees_all_processes() {
        return Vec::new();
    }
    let copy = |digest: std::sync::Arc<Digest>| {
        let seen = digest.seen.lock().clone();
        (digest, seen)
    };
    recorder.digests.all().into_iter().map(copy).collect()
}

/// The columns that name a digest.
fn digest_name(digest: &Digest) -> [Value; 2] {
    match digest.text {
        Some(_) => [optional(digest.schema.as_deref()), Value::text(&digest.number)],
        None => [Value::Null, Value::Null],
    }
}

/// `events_statements_summary_by_digest`. While `statements_digest` is off it shows the texts of the plan cache, of which numbers and times of
/// executions are known.
pub(crate) fn by_digest(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    if !recorder.consumers.has(Consumer::DIGEST) {
        return by_cached_plan(ctx, emit);
    }
    for (digest, seen) in seen_digests(recorder, ctx) {
        let mut row = digest_name(&digest).to_vec();
        row.push(optional(digest.text.as_deref()));
        row.extend(seen.sums.columns());
        row.extend([time(seen.first_micros), time(seen.last_micros)]);
        let quantiles = [0.95, 0.99, 0.999].map(|share| seen.histogram.quantile(share));
        row.extend(quantiles.map(Value::UInt));
        let (sample, at, micros) = &seen.sample;
        row.extend([Value::text(sample), time(*at)]);
        row.push(Value::UInt(micros.saturating_mul(MICROSECOND)));
        emit(&row)?;
    }
    Ok(())
}

fn by_cached_plan(ctx: &dyn InformationContext, emit: &mut Emit<'_>) -> Result<()> {
    // A text has a plan for each combination of types and settings.
    let mut texts: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for PlanCacheView { schema, text, hits, nanoseconds, .. } in ctx.plan_cache() {
        let (count, total) = texts.entry((schema, text)).or_default();
        *count += hits;
        *total += nanoseconds;
    }
    let started = time(ctx.started_micros());
    for ((schema, text), (count, nanoseconds)) in &texts {
        let total = nanoseconds.saturating_mul(NANOSECOND);
        let mut row = vec![
            optional(Some(schema.as_str()).filter(|schema| !schema.is_empty())),
            Value::text(&sha256(text)),
            Value::text(text),
        ];
        let mut columns = Sums::default().columns();
        columns[0] = Value::UInt(*count);
        columns[1] = Value::UInt(total);
        columns[3] = Value::UInt(total.checked_div(*count).unwrap_or(0));
        row.extend(columns);
        row.extend([started.clone(), started.clone()]);
        row.extend(std::iter::repeat_n(Value::UInt(0), 3));
        row.extend([Value::Null, started.clone(), Value::UInt(0)]);
        emit(&row)?;
    }
    Ok(())
}

/// `events_statements_histogram_by_digest`.
pub(crate) fn histogram_by_digest(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for (digest, seen) in seen_digests(recorder, ctx) {
        for bucket in seen.histogram.rows() {
            let mut row = digest_name(&digest).to_vec();
            row.extend(bucket);
            emit(&row)?;
        }
    }
    Ok(())
}

/// `events_statements_histogram_global`.
pub(crate) fn histogram_global(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut all = Histogram::default();
    seen_digests(recorder, ctx).iter().for_each(|(_, seen)| all.merge(&seen.histogram));
    all.rows().iter().try_for_each(|row| emit(row))
}

/// The recorded sums that the account may see, those of ended sessions only if it may see everything.
pub(crate) fn visible_rows(recorder: &Recorder, ctx: &dyn InformationContext) -> Vec<Row> {
    let (all, visible) = (ctx.sees_all_processes(), visible(ctx));
    let may_see = |row: &Row| all || row.session.is_some_and(|session| visible.contains(&session));
    let mut rows = recorder.rows();
    rows.retain(may_see);
    rows
}

/// Adds up the recorded sums by `name` and kind of statement.
fn grouped(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    emit: &mut Emit<'_>,
    name: impl Fn(&Row) -> Option<Vec<Value>>,
) -> Result<()> {
    let mut groups: BTreeMap<(String, String), (Vec<Value>, Sums)> = BTreeMap::new();
    for row in visible_rows(recorder, ctx) {
        let Some(name) = name(&row) else { continue };
        let key = (format!("{name:?}"), row.kind.event_name.to_string());
        groups.entry(key).or_insert_with(|| (name, Sums::default())).1.add(&row.sums);
    }
    for ((_, event_name), (name, sums)) in &groups {
        let mut cells = name.clone();
        cells.push(Value::text(event_name));
        cells.extend(sums.columns());
        emit(&cells)?;
    }
    Ok(())
}

/// `events_statements_summary_by_account_by_event_name`.
pub(crate) fn by_account(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |row| {
        Some(vec![Value::text(&row.who.user), Value::text(&row.who.host)])
    })
}

/// `events_statements_summary_by_host_by_event_name`.
pub(crate) fn by_host(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |row| Some(vec![Value::text(&row.who.host)]))
}

/// `events_statements_summary_by_user_by_event_name`.
pub(crate) fn by_user(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |row| Some(vec![Value::text(&row.who.user)]))
}

/// `events_statements_summary_by_thread_by_event_name`.
pub(crate) fn by_thread(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |row| row.session.map(|session| vec![Value::UInt(session)]))
}

/// `events_statements_summary_global_by_event_name`.
pub(crate) fn by_event_name(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |_| Some(Vec::new()))
}
