//! Waits as `performance_schema` shows them, from what threads, locks and files count anyway. Times are picoseconds.

use std::collections::HashMap;
use std::time::Duration;

use errors::Result;
use plugin_api::{FileOperations, FileUseView, InfoFilter, InformationContext, TimedCounts};
use stdx::Extent;
use sys::waits::{self, ThreadWaits, Total, Wait};
use types::Value;

use crate::recorder::Recorder;
use crate::row::Emit;
use crate::sums::{MICROSECOND, NANOSECOND};

/// The event of work on a client's socket.
pub(crate) const SOCKET: &str = "wait/io/socket/sql/client_connection";
/// The kind of a base table.
const TABLE: &str = "TABLE";
/// Above the numbers of connections: numbers of threads that run no statement.
const BACKGROUND: u64 = 1 << 32;

/// The number of a thread in `performance_schema`: of the connection whose statement it runs, or one of its own.
pub(crate) fn number(thread: &ThreadWaits, connections: &HashMap<u32, u64>) -> u64 {
    let own = BACKGROUND + u64::from(thread.thread_id);
    connections.get(&thread.slot).copied().unwrap_or(own)
}

/// Connections by the slot of the thread that runs their statement.
pub(crate) fn connections(ctx: &dyn InformationContext) -> HashMap<u32, u64> {
    ctx.processes().iter().filter_map(|process| Some((process.thread?, process.id))).collect()
}

/// Event name and operation of a kind of wait, the reference's where it has one.
fn event(wait: Wait) -> (&'static str, &'static str) {
    match wait {
        Wait::Running => ("", ""),
        Wait::Idle => ("idle", "idle"),
        Wait::Mutex => ("wait/synch/mutex/squall/mutex", "lock"),
        Wait::Latch => ("wait/synch/sxlock/squall/page_latch", "lock"),
        Wait::RowLock => ("wait/lock/row/squall/row_lock", "lock"),
        Wait::MetadataLock => ("wait/lock/metadata/sql/mdl", "metadata lock"),
        Wait::LogFlush => ("wait/io/file/squall/redo_log", "sync"),
        Wait::Read => ("wait/io/file/squall/read", "read"),
        Wait::Write => ("wait/io/file/squall/write", "write"),
        Wait::Sync => ("wait/io/file/squall/sync", "sync"),
        Wait::Network => (SOCKET, "send"),
        Wait::Sleep => ("wait/synch/cond/squall/sleep", "timed_wait"),
    }
}

/// Kinds of waits that are events.
fn kinds() -> impl Iterator<Item = Wait> {
    Wait::ALL.into_iter().filter(|wait| *wait != Wait::Running)
}

fn picos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).saturating_mul(NANOSECOND)
}

/// `events_waits_current`: what each thread waits for now.
pub(crate) fn current(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    let connections = connections(ctx);
    for thread in waits::threads().iter().filter(|thread| thread.wait != Wait::Running) {
        let own = number(thread, &connections);
        if !recorder.threads.of(own).is_instrumented {
            continue;
        }
        let (name, operation) = event(thread.wait);
        let ended: u64 = kinds().map(|kind| thread.totals.of(kind).count).sum();
        let now = sys::clock::monotonic();
        let time =
            |time: Option<Duration>| time.map_or(Value::Null, |time| Value::UInt(picos(time)));
        let mut row = vec![
            Value::UInt(own),
            Value::UInt(ended + 1),
            Value::Null,
            Value::text(name),
            Value::Null,
            time(thread.since),
            time(thread.since.map(|_| now)),
            time(thread.since.map(|since| now.saturating_sub(since))),
        ];
        // Spins, and the object.
        row.extend(std::iter::repeat_n(Value::Null, 5));
        row.extend([Value::UInt(0), Value::Null, Value::Null, Value::text(operation)]);
        row.extend([Value::Null, Value::Null]);
        emit(&row)?;
    }
    Ok(())
}

/// Count, sum, least, average and most of some times, given in a unit of so many picoseconds.
pub(crate) fn summary(count: u64, sum: u64, extent: Extent, unit: u64) -> [Value; 5] {
    let picos = |time: u64| time.saturating_mul(unit);
    let average = picos(sum).checked_div(count).unwrap_or(0);
    [count, picos(sum), picos(extent.least()), average, picos(extent.most())].map(Value::UInt)
}

/// `events_waits_summary_by_thread_by_event_name`.
pub(crate) fn by_thread(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    let connections = connections(ctx);
    for thread in waits::threads() {
        let own = number(&thread, &connections);
        if !recorder.threads.of(own).is_instrumented {
            continue;
        }
        for kind in kinds() {
            let Total { count, nanos } = thread.totals.of(kind);
            let mut row = vec![Value::UInt(own)];
            row.push(Value::text(event(kind).0));
            row.extend(summary(count, nanos, thread.extents[kind as usize], NANOSECOND));
            emit(&row)?;
        }
    }
    Ok(())
}

/// `events_waits_summary_global_by_event_name`: each class of locks and of files, and the other kinds of waits of all threads so far.
pub(crate) fn global(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut row = |name: &str, figures: [Value; 5]| {
        let mut row = vec![Value::text(name)];
        row.extend(figures);
        emit(&row)
    };
    for class in sys::lock_stats::all() {
        let name = match class.kind {
            sys::lock_stats::Kind::Mutex => format!("wait/synch/mutex/squall/{}", class.name),
            sys::lock_stats::Kind::RwLock => format!("wait/synch/rwlock/squall/{}", class.name),
            sys::lock_stats::Kind::Latch => event(Wait::Latch).0.to_owned(),
            sys::lock_stats::Kind::RowLock => event(Wait::RowLock).0.to_owned(),
            sys::lock_stats::Kind::MetadataLock => event(Wait::MetadataLock).0.to_owned(),
        };
        let time = class.wait_nanos + class.spin_nanos;
        row(&name, summary(class.waits, time, class.extent, NANOSECOND))?;
    }
    for (name, operations) in by_class(&ctx.file_operations()) {
        row(&name, operations_together(&operations))?;
    }
    let (totals, extents) = waits::all();
    [Wait::Idle, Wait::Network, Wait::Sleep].into_iter().try_for_each(|kind| {
        let Total { count, nanos } = totals.of(kind);
        row(event(kind).0, summary(count, nanos, extents[kind as usize], NANOSECOND))
    })
}

fn operations_together(operations: &[FileOperations]) -> [Value; 5] {
    let sum = |value: fn(&FileOperations) -> u64| operations.iter().map(value).sum();
    let extent = operations.iter().fold(Extent::NONE, |sum, one| sum.and(one.extent));
    summary(sum(|one| one.requests), sum(|one| one.total_micros), extent, MICROSECOND)
}

fn by_class(all: &[FileOperations]) -> Vec<(String, Vec<FileOperations>)> {
    let groups = all.chunk_by(|one, other| one.class == other.class);
    groups.map(|group| (file_event(group[0].class), group.to_vec())).collect()
}

/// The event of calls to files of a class.
fn file_event(class: &str) -> String {
    format!("wait/io/file/squall/{}", class.replace(' ', "_"))
}

/// `file_summary_by_event_name`: each class of files. What is neither read nor written are syncs.
pub(crate) fn files(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for (name, operations) in by_class(&ctx.file_operations()) {
        let of = |wanted: &str| operations.iter().find(|one| one.operation == wanted);
        let timed = |one: Option<&FileOperations>| {
            operations_together(one.map_or(&[], std::slice::from_ref))
        };
        let bytes =
            |one: Option<&FileOperations>| Value::Int(one.map_or(0, |one| one.bytes as i64));
        let mut row = vec![Value::text(&name)];
        row.extend(operations_together(&operations));
        row.extend(timed(of("read")));
        row.push(bytes(of("read")));
        row.extend(timed(of("write")));
        row.push(bytes(of("write")));
        row.extend(timed(of("sync")));
        emit(&row)?;
    }
    Ok(())
}

/// Count, sum, least, average and most of some calls or waits.
pub(crate) fn timed(counts: &TimedCounts) -> [Value; 5] {
    summary(counts.count, counts.nanos, counts.extent, NANOSECOND)
}

pub(crate) fn together<'c>(all: impl IntoIterator<Item = &'c TimedCounts>) -> TimedCounts {
    all.into_iter().fold(TimedCounts::default(), |sum, one| TimedCounts {
        count: sum.count + one.count,
        bytes: sum.bytes + one.bytes,
        nanos: sum.nanos + one.nanos,
        extent: sum.extent.and(one.extent),
    })
}

/// The files, for accounts that may see what all threads do: names of files are the server's own.
fn visible_files(ctx: &dyn InformationContext) -> Vec<FileUseView> {
    if ctx.sees_all_processes() { ctx.file_uses() } else { Vec::new() }
}

/// `file_instances`: the files that are open, and those that were and still exist.
pub(crate) fn file_instances(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visible_files(ctx).iter().try_for_each(|file| {
        let name = Value::text(&file.path);
        emit(&[name, Value::text(&file_event(file.class)), Value::UInt(file.open_count)])
    })
}

/// `file_summary_by_instance`: the calls to each of these files. They are told apart by their position.
pub(crate) fn file_summary(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for (at, file) in visible_files(ctx).iter().enumerate() {
        let bytes = |counts: &TimedCounts| Value::Int(counts.bytes as i64);
        let mut row = vec![Value::text(&file.path), Value::text(&file_event(file.class))];
        row.push(Value::UInt(at as u64 + 1));
        row.extend(timed(&together([&file.read, &file.write, &file.sync])));
        row.extend(timed(&file.read));
        row.push(bytes(&file.read));
        row.extend(timed(&file.write));
        row.push(bytes(&file.write));
        row.extend(timed(&file.sync));
        emit(&row)?;
    }
    Ok(())
}

/// `table_lock_waits_summary_by_table`: waits for metadata locks. The server has no other locks of whole tables, so all are external ones.
pub(crate) fn table_locks(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    /// Kinds of reads before the external ones, and of writes.
    const OTHER_READS: usize = 4;
    const OTHER_WRITES: usize = 4;
    for table in ctx.table_waits() {
        let none = TimedCounts::default();
        let mut row = [TABLE, &table.schema, &table.table].map(Value::text).to_vec();
        row.extend(timed(&together([&table.read, &table.write])));
        row.extend(timed(&table.read));
        row.extend(timed(&table.write));
        (0..OTHER_READS).for_each(|_| row.extend(timed(&none)));
        row.extend(timed(&table.read));
        (0..OTHER_WRITES).for_each(|_| row.extend(timed(&none)));
        row.extend(timed(&table.write));
        emit(&row)?;
    }
    Ok(())
}

/// `metadata_locks`: uses of tables by statements and transactions, and locks that keep others from them.
pub(crate) fn metadata_locks(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for lock in ctx.metadata_locks() {
        let (kind, schema, name) = match &lock.table {
            Some((schema, name)) => (TABLE, Value::text(schema), Value::text(name)),
            None => ("GLOBAL", Value::Null, Value::Null),
        };
        emit(&[
            Value::text(kind),
            schema,
            name,
            Value::Null,
            Value::UInt(0),
            Value::text(lock.lock_type),
            Value::text("TRANSACTION"),
            Value::text(if lock.is_waiting { "PENDING" } else { "GRANTED" }),
            Value::Null,
            lock.connection.map_or(Value::Null, Value::UInt),
            Value::Null,
        ])?;
    }
    Ok(())
}
