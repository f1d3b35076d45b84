//! PARTITION BY SYSTEM_TIME: when it goes on to the next partition, which partitions there are, and when each ends.
//!
//! Invariant: the last partition is that of current rows, the others are those of old ones, in the order in which they are filled.

use std::sync::Arc;

use catalog::{
    ColumnHistory, Partition, PartitionKind, PartitionMethod, PartitionValue, Partitioning,
    Rotation, RotationInterval,
};
use errors::{Error, Result, bail, err};
use syntax::ast::{self, IntervalUnit, Literal, PartitionDef, PartitionValues};
use types::{DateTime, Value};

use crate::context::Context;
use crate::draft::Draft;
use crate::partitions::{PARTITIONS_MAX, unnamed};

/// What SYSTEM_TIME says after its name.
pub(crate) struct Written<'w> {
    pub(crate) interval: Option<&'w (ast::Expr, IntervalUnit)>,
    pub(crate) starts: Option<&'w ast::Expr>,
    pub(crate) limit: Option<u64>,
    pub(crate) auto: bool,
}

/// The method.
///
/// # Errors
/// 4124, 4127; 1235 for AUTO.
pub(crate) fn method(
    ctx: &mut dyn Context,
    draft: &Draft,
    written: &Written<'_>,
) -> Result<PartitionMethod> {
    let is_end = |history: ColumnHistory| matches!(history, ColumnHistory::RowEnd { .. });
    let end = draft.columns.iter().find(|own| is_end(own.column.history));
    let Some(end) = end else { bail!(VERS_NOT_VERSIONED, draft.name) };
    if written.auto {
        return Err(Error::not_supported("AUTO of PARTITION BY SYSTEM_TIME"));
    }
    if written.limit == Some(0) {
        return Err(wrong(draft, "LIMIT"));
    }
    let interval = match written.interval {
        Some((amount, unit)) => Some(interval(ctx, draft, (amount, *unit), written.starts)?),
        None => None,
    };
    Ok(PartitionMethod {
        kind: PartitionKind::SystemTime,
        linear: false,
        algorithm_one: false,
        expression: None,
        columns: vec![end.column.name.clone()],
        rotation: Rotation { interval, limit: written.limit },
    })
}

fn wrong(draft: &Draft, clause: &str) -> Error {
    err!(VERS_PARTITION_PARAMETERS, draft.name, clause)
}

fn interval(
    ctx: &mut dyn Context,
    draft: &Draft,
    (amount, unit): (&ast::Expr, IntervalUnit),
    starts: Option<&ast::Expr>,
) -> Result<RotationInterval> {
    let (value, ty) = ctx.evaluate(amount)?;
    let mut text = Vec::new();
    types::to_text(&value, &ty, &mut text);
    let length = length(&String::from_utf8_lossy(&text), unit).filter(|_| !value.is_null());
    let length = length.filter(|length| length.months > 0 || length.seconds > 0);
    let length = length.ok_or_else(|| wrong(draft, stringify!(INTERVAL)))?;
    let now = now_seconds(ctx)?;
    let starts = match starts {
        Some(written) => start(ctx, draft, written)?,
        None => rounded(ctx, now, length.unit).ok_or_else(|| wrong(draft, stringify!(INTERVAL)))?,
    };
    if starts > now {
        ctx.conditions().warn(errors::ErrorCode::VERS_STARTS_LATE, &[&draft.name]);
    }
    let (months, seconds) = (length.months, length.seconds);
    Ok(RotationInterval { text: length.text.into(), months, seconds, starts })
}

/// NOW() of the statement.
fn now_seconds(ctx: &mut dyn Context) -> Result<u64> {
    const NOW: &str = "DO UNIX_TIMESTAMP()";
    let parsed = syntax::parse_one(NOW, &syntax::ParseOptions::default());
    let Ok((syntax::Statement::Do(items), _)) = parsed else {
        return Err(Error::internal("UNIX_TIMESTAMP was not read"));
    };
    let Some(ast::SelectItemKind::Expr { expr, .. }) = items.into_iter().next().map(|i| i.kind)
    else {
        return Err(Error::internal("UNIX_TIMESTAMP was not read"));
    };
    let (value, _) = ctx.evaluate_kept(&expr, NOW)?;
    if let Value::UInt(seconds) = value {
        return Ok(seconds);
    }
    Ok(if let Value::Int(seconds) = value { seconds.max(0) as u64 } else { 0 })
}

/// STARTS: a text or a literal of a time.
fn start(ctx: &mut dyn Context, draft: &Draft, written: &ast::Expr) -> Result<u64> {
    let is_time = matches!(
        &written.kind,
        ast::ExprKind::Literal(Literal::String(_) | Literal::Temporal { .. })
    );
    if !is_time {
        return Err(wrong(draft, "STARTS"));
    }
    let (value, ty) = ctx.evaluate(written)?;
    let mut text = Vec::new();
    types::to_text(&value, &ty, &mut text);
    let parsed = types::temporal::parse_datetime(&text, 0, types::TemporalMode::default());
    let seconds = parsed.value.and_then(|local| utc_seconds(ctx, local));
    seconds.ok_or_else(|| wrong(draft, "STARTS"))
}

fn utc_seconds(ctx: &dyn Context, local: DateTime) -> Option<u64> {
    let micros = ctx.settings().time_zone.local_to_utc(local)?;
    u64::try_from(micros.div_euclid(1_000_000)).ok()
}

/// The smallest unit that an interval has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Smallest {
    Second,
    Minute,
    Hour,
    Day,
}

/// A time without the units that are smaller than those of the interval.
fn rounded(ctx: &dyn Context, now: u64, unit: Smallest) -> Option<u64> {
    let local = ctx.settings().time_zone.utc_to_local(i64::try_from(now).ok()? * 1_000_000);
    let from = |smallest: Smallest, number: u32| if unit >= smallest { 0 } else { number };
    let hour = from(Smallest::Day, local.hour());
    let minute = from(Smallest::Hour, local.minute());
    let second = from(Smallest::Minute, local.second());
    utc_seconds(ctx, DateTime::new(local.date(), hour, minute, second, 0)?)
}

/// How long an interval is.
struct Length {
    months: u64,
    seconds: u64,
    unit: Smallest,
    text: String,
}

/// The length that a text means in a unit; fewer numbers than the unit has are the smaller ones. `None` for anything else, negative ones and
/// microseconds.
fn length(text: &str, unit: IntervalUnit) -> Option<Length> {
    use IntervalUnit as U;
    let simple = |factor: u64, months: u64, unit: Smallest, word: &str| {
        let count: u64 = text.trim().parse().ok()?;
        let shown = count.checked_mul(factor.max(months).max(1))?;
        let (days, month) = match (factor, months) {
            (_, 0) => (shown, 0),
            _ => (0, shown),
        };
        Some((days, month, unit, format!("{shown} {word}")))
    };
    const MINUTE: u64 = 60;
    const HOUR: u64 = 3600;
    const DAY: u64 = 86_400;
    let made = match unit {
        U::Second => simple(1, 0, Smallest::Second, "SECOND").map(|found| (found, 1)),
        U::Minute => simple(1, 0, Smallest::Minute, "MINUTE").map(|found| (found, MINUTE)),
        U::Hour => simple(1, 0, Smallest::Hour, "HOUR").map(|found| (found, HOUR)),
        U::Day => simple(1, 0, Smallest::Day, "DAY").map(|found| (found, DAY)),
        U::Week => simple(7, 0, Smallest::Day, "DAY").map(|found| (found, DAY)),
        U::Month => simple(1, 1, Smallest::Day, "MONTH").map(|found| (found, 1)),
        U::Quarter => simple(1, 3, Smallest::Day, "MONTH").map(|found| (found, 1)),
        U::Year => {
            let (_, months, unit, _) = simple(1, 12, Smallest::Day, "YEAR")?;
            Some(((0, months, unit, format!("{} YEAR", months / 12)), 1))
        }
        U::DayHour
        | U::DayMinute
        | U::DaySecond
        | U::HourMinute
        | U::HourSecond
        | U::MinuteSecond
        | U::YearMonth => return compound(text, unit),
        U::Microsecond
        | U::SecondMicrosecond
        | U::MinuteMicrosecond
        | U::HourMicrosecond
        | U::DayMicrosecond => None,
    };
    let ((count, months, unit, text), factor) = made?;
    Some(Length { months, seconds: count.checked_mul(factor)?, unit, text })
}

fn compound(text: &str, unit: IntervalUnit) -> Option<Length> {
    use IntervalUnit as U;
    let (sizes, smallest, word): (&[u64], Smallest, &str) = match unit {
        U::DayHour => (&[86_400, 3600], Smallest::Hour, "DAY_HOUR"),
        U::DayMinute => (&[86_400, 3600, 60], Smallest::Minute, "DAY_MINUTE"),
        U::DaySecond => (&[86_400, 3600, 60, 1], Smallest::Second, "DAY_SECOND"),
        U::HourMinute => (&[3600, 60], Smallest::Minute, "HOUR_MINUTE"),
        U::HourSecond => (&[3600, 60, 1], Smallest::Second, "HOUR_SECOND"),
        U::MinuteSecond => (&[60, 1], Smallest::Second, "MINUTE_SECOND"),
        U::YearMonth => (&[12, 1], Smallest::Day, "YEAR_MONTH"),
        U::Microsecond
        | U::Second
        | U::Minute
        | U::Hour
        | U::Day
        | U::Week
        | U::Month
        | U::Quarter
        | U::Year
        | U::SecondMicrosecond
        | U::MinuteMicrosecond
        | U::HourMicrosecond
        | U::DayMicrosecond => return None,
    };
    if text.trim_start().starts_with('-') {
        return None;
    }
    let parts = text.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let parts: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
    let parts = parts.filter(|parts| !parts.is_empty() && parts.len() <= sizes.len())?;
    let mut numbers = vec![0; sizes.len() - parts.len()];
    numbers.extend(parts);
    let mut total: u64 = 0;
    let mut shown = String::new();
    let is_of_days = sizes[0] == 86_400;
    for (at, (number, size)) in numbers.iter().zip(sizes).enumerate() {
        total = total.checked_add(number.checked_mul(*size)?)?;
        shown += &match (at, is_of_days) {
            (0, _) => number.to_string(),
            (1, true) => format!(" {number}"),
            _ if unit == U::YearMonth => format!("-{number:02}"),
            _ => format!(":{number:02}"),
        };
    }
    let text = format!("'{shown}' {word}");
    let (months, seconds) = if unit == U::YearMonth { (total, 0) } else { (0, total) };
    Some(Length { months, seconds, unit: smallest, text })
}

/// The partitions that a statement lists, or those that `PARTITIONS n` makes: two if it says nothing.
///
/// # Errors
/// 4128, 4113, 1480.
pub(crate) fn check_listed(draft: &Draft, written: &ast::Partitioning) -> Result<()> {
    let listed = &written.partitions;
    for own in listed {
        check_values(own)?;
    }
    let are_right = match listed.split_last() {
        Some((last, before)) => {
            matches!(last.values, PartitionValues::Current)
                && !before.is_empty()
                && before.iter().all(|own| matches!(own.values, PartitionValues::History))
        }
        None => written.count.is_none_or(|count| count > 1),
    };
    if !are_right {
        bail!(VERS_WRONG_PARTITIONS, draft.name);
    }
    Ok(())
}

/// Several partitions of old rows need an INTERVAL or a LIMIT.
fn lacks_rotation(partitioning: &Partitioning) -> bool {
    let rotation = &partitioning.method.rotation;
    let has_one = rotation.interval.is_some() || rotation.limit.is_some();
    partitioning.by_system_time() && !has_one && partitioning.history().len() > 1
}

/// # Errors
/// 4115.
pub(crate) fn check_rotation(partitioning: &Partitioning) -> Result<()> {
    if lacks_rotation(partitioning) {
        bail!(VERS_MISSING_ROTATION);
    }
    Ok(())
}

/// A warning where partitions are added that nothing goes on to.
pub(crate) fn warn_of_rotation(ctx: &mut dyn Context, partitioning: &Partitioning) {
    if lacks_rotation(partitioning) {
        ctx.conditions().warn(errors::ErrorCode::VERS_MISSING_ROTATION, &[]);
    }
}

/// A partition must be of old or of current rows.
fn check_values(own: &PartitionDef) -> Result<()> {
    match own.values {
        PartitionValues::LessThan(_) => {
            Err(err!(PARTITION_WRONG_VALUES_ERROR, "RANGE", "LESS THAN"))
        }
        PartitionValues::In(_) => Err(err!(PARTITION_WRONG_VALUES_ERROR, "LIST", "IN")),
        PartitionValues::None
        | PartitionValues::History
        | PartitionValues::Current
        | PartitionValues::Default => Ok(()),
    }
}

/// The names of partitions that the statement does not list.
pub(crate) fn unlisted(count: u64) -> impl Iterator<Item = Partition> {
    let history = (0..count.saturating_sub(1)).map(|place| unnamed(format!("p{place}")));
    history.chain(std::iter::once(unnamed("pn".into())))
}

/// ADD PARTITION: history partitions before that of current rows.
///
/// # Errors
/// 4113, 4128, 1480, 1514, 1499.
pub(crate) fn check_added(
    draft: &Draft,
    written: &[PartitionDef],
    count: Option<u64>,
) -> Result<()> {
    if count == Some(0) {
        bail!(ADD_PARTITION_NO_NEW_PARTITION);
    }
    if count.is_some_and(|count| count > PARTITIONS_MAX) {
        bail!(TOO_MANY_PARTITIONS_ERROR);
    }
    for own in written {
        check_values(own)?;
        match own.values {
            PartitionValues::History => {}
            PartitionValues::None => bail!(PARTITION_WRONG_TYPE, "HASH", "SYSTEM_TIME"),
            PartitionValues::LessThan(_)
            | PartitionValues::In(_)
            | PartitionValues::Current
            | PartitionValues::Default => bail!(VERS_WRONG_PARTITIONS, draft.name),
        }
    }
    Ok(())
}

/// Names of partitions that ADD PARTITION PARTITIONS n makes.
pub(crate) fn made_names(partitioning: &Partitioning, count: u64) -> Vec<String> {
    let mut first = partitioning.history().len() as u64;
    for own in &partitioning.partitions {
        let number = own.name.strip_prefix(['p', 'P']).and_then(|rest| rest.parse::<u64>().ok());
        if let Some(number) = number.filter(|number| *number >= first && number - first < count) {
            first = number + 1;
        }
    }
    (first..first + count).map(|number| format!("p{number}")).collect()
}

/// Puts a partition of old rows before that of current ones.
pub(crate) fn put_before_current(partitioning: &mut Partitioning, mut built: Partition) {
    let last = partitioning.history().iter().map(|own| own.number).max();
    built.number = last.map_or(0, |last| last.saturating_add(1));
    let at = partitioning.history().len();
    partitioning.partitions.insert(at, built);
    let numbers = partitioning.partitions[at..].iter().map(|own| own.number);
    if numbers.clone().min() == numbers.max() {
        partitioning.renumber();
    }
}

/// Says when each partition by INTERVAL ends.
///
/// # Errors
/// 4127 for ends that are no timestamps.
pub(crate) fn set_ends(
    ctx: &dyn Context,
    draft: &Draft,
    partitioning: &mut Partitioning,
) -> Result<()> {
    if !partitioning.by_system_time() {
        return Ok(());
    }
    let interval = partitioning.method.rotation.interval.clone();
    let Some((current, history)) = partitioning.partitions.split_last_mut() else { return Ok(()) };
    current.values = vec![vec![PartitionValue { value: None, text: Arc::from("CURRENT") }]];
    let Some(interval) = interval else {
        history.iter_mut().for_each(|own| own.values.clear());
        return Ok(());
    };
    let zone = &ctx.settings().time_zone;
    let mut end = i64::try_from(interval.starts).unwrap_or(i64::MAX).saturating_mul(1_000_000);
    for own in history {
        let next = zone.utc_to_local(end);
        let next = i64::try_from(interval.months).ok().and_then(|count| next.add_months(count));
        let micros = i64::try_from(interval.seconds.saturating_mul(1_000_000)).ok();
        let next = next.zip(micros).and_then(|(next, micros)| next.add_micros(micros));
        let micros = next.and_then(|next| zone.local_to_utc(next));
        let known = own.values.first().and_then(|tuple| tuple.first()?.value.clone());
        // An end does not change with the time zone of another statement.
        let known =
            known.and_then(|end| if let Value::DateTime(at) = end { Some(at) } else { None });
        let at = known.or_else(|| micros.and_then(DateTime::from_unix_micros));
        let never = catalog::never();
        let at = at.filter(|at| matches!(never, Value::DateTime(never) if *at < never));
        let at = at.ok_or_else(|| wrong(draft, stringify!(INTERVAL)))?;
        end = at.to_unix_micros().unwrap_or(end);
        let value = Some(Value::DateTime(at));
        own.values = vec![vec![PartitionValue { value, text: Arc::from("") }]];
    }
    Ok(())
}

/// PARTITION BY SYSTEM_TIME of a table that has such partitions keeps them unless the statement says which there are.
pub(crate) fn with_names_of(
    ctx: &dyn Context,
    draft: &Draft,
    mut built: Partitioning,
    written: &ast::Partitioning,
    before: Option<&Partitioning>,
) -> Result<Partitioning> {
    let says = built.listed || !built.by_system_time() || written.count.is_some();
    let Some(before) =
        before.filter(|before| !says && before.subpartitions() == built.subpartitions())
    else {
        return Ok(built);
    };
    built.partitions = before.partitions.clone();
    built.partitions.iter_mut().for_each(|own| own.values.clear());
    built.listed = before.listed;
    built.renumber();
    set_ends(ctx, draft, &mut built)?;
    Ok(built)
}

/// Whether the last history partition may have rows that belong into one after it.
pub(crate) fn may_overflow(
    ctx: &mut dyn Context,
    partitioning: Option<&Partitioning>,
) -> Result<bool> {
    let now = now_seconds(ctx)?;
    let end = partitioning.and_then(|known| known.history().last()).and_then(end_of);
    Ok(end.is_some_and(|end| end <= now))
}

/// When a history partition ends, by INTERVAL.
fn end_of(own: &Partition) -> Option<u64> {
    let Some(Value::DateTime(end)) = &own.values.first()?.first()?.value else { return None };
    u64::try_from(end.to_unix_micros()?.div_euclid(1_000_000)).ok()
}

/// DROP PARTITION of the partitions at `places`: at least one of old rows stays, and that of current ones.
///
/// # Errors
/// 4128, 4116.
pub(crate) fn check_dropped(
    draft: &Draft,
    partitioning: &mut Partitioning,
    places: &[usize],
) -> Result<()> {
    let history = partitioning.history().len();
    if places.iter().any(|place| *place >= history) || places.len() >= history {
        bail!(VERS_WRONG_PARTITIONS, draft.name);
    }
    let last = places.iter().max().copied().unwrap_or(0);
    let end = partitioning.partitions.get(last).and_then(end_of);
    if let Some(interval) = &mut partitioning.method.rotation.interval {
        if last >= places.len() {
            bail!(VERS_DROP_PARTITION_INTERVAL);
        }
        interval.starts = end.unwrap_or(interval.starts);
    }
    Ok(())
}
