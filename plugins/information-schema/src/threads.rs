//! What the server's threads do: `data_dictionary.THREAD_STATES`, `THREAD_STACKS` and `LOCK_STATS`. Rows are for accounts that may see all connections.

use std::collections::HashMap;
use std::time::Duration;

use errors::Result;
use plugin_api::{InfoFilter, InformationContext};
use sys::topology::list_text;
use sys::waits::{self, ThreadWaits, Wait};
use types::Value;

use crate::row::{Emit, optional, optional_number};

/// Kinds of waits that are for locks.
const LOCKS: [Wait; 4] = [Wait::Mutex, Wait::Latch, Wait::RowLock, Wait::MetadataLock];
/// Kinds of waits that are for files.
const FILES: [Wait; 4] = [Wait::LogFlush, Wait::Read, Wait::Write, Wait::Sync];

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time of waits of some kinds, with the present one.
fn waited(thread: &ThreadWaits, kinds: &[Wait], now: Duration) -> u64 {
    let ended: u64 = kinds.iter().map(|kind| thread.totals.of(*kind).nanos).sum();
    let present = thread.since.filter(|_| kinds.contains(&thread.wait));
    ended + present.map_or(0, |since| nanos(now.saturating_sub(since)))
}

/// Connections by the slot of the thread that runs their statement.
fn connections(ctx: &dyn InformationContext) -> HashMap<u32, u64> {
    ctx.processes().iter().filter_map(|process| Some((process.thread?, process.id))).collect()
}

/// `THREAD_STATES`: what each thread does now, and where its time went. Idle is what the other columns leave of the time since the thread started.
pub fn states(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    let connections = connections(ctx);
    for thread in waits::threads() {
        let now = sys::clock::monotonic();
        let run = thread.cpu.map_or(0, nanos);
        let queued = sys::clock::thread_run_queue(thread.thread_id).map_or(0, nanos);
        let locks = waited(&thread, &LOCKS, now);
        let files = waited(&thread, &FILES, now);
        let network = waited(&thread, &[Wait::Network], now);
        let known = run + queued + locks + files + network;
        let elapsed = nanos(now.saturating_sub(thread.started));
        emit(&[
            Value::UInt(thread.thread_id.into()),
            Value::text(&thread.name),
            optional_number(connections.get(&thread.slot).copied()),
            Value::text(thread.wait.name()),
            optional_number(thread.since.map(|since| nanos(now.saturating_sub(since)))),
            Value::UInt(run),
            Value::UInt(queued),
            Value::UInt(locks),
            Value::UInt(files),
            Value::UInt(network),
            Value::UInt(elapsed.saturating_sub(known)),
            Value::UInt(thread.held_bytes),
            cpus(thread.thread_id),
        ])?;
    }
    Ok(())
}

/// The processors on which a thread may run, as the kernel writes them; NULL of one that has just ended.
fn cpus(thread: u32) -> Value {
    let allowed = sys::affinity::allowed(thread.cast_signed());
    allowed.map_or(Value::Null, |allowed| Value::text(&list_text(&allowed)))
}

/// `THREAD_STACKS`: the stacks of all threads but the one that asks, in the form that flame graph tools read.
pub fn stacks(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    let connections = connections(ctx);
    let waits = waits::threads();
    for stack in sys::stacks::capture_all() {
        ctx.check_cancelled()?;
        let thread = waits.iter().find(|thread| thread.thread_id == stack.thread_id);
        let connection = thread.and_then(|thread| connections.get(&thread.slot).copied());
        let mut names = sys::stacks::symbolise(&stack.frames);
        names.reverse();
        emit(&[
            Value::UInt(stack.thread_id.into()),
            Value::text(&stack.name),
            optional_number(connection),
            thread.map_or(Value::Null, |thread| Value::text(thread.wait.name())),
            Value::UInt(names.len() as u64),
            Value::text(&names.join(";")),
        ])?;
    }
    Ok(())
}

/// `LOCK_STATS`: waits for locks by class, and while `lock_stats` is on, acquisitions and hold times.
pub fn locks(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    for stats in sys::lock_stats::all() {
        let mut stack = sys::stacks::symbolise(&stats.stack);
        stack.reverse();
        emit(&[
            Value::text(&stats.name),
            Value::text(stats.kind.name()),
            Value::UInt(stats.acquires),
            Value::UInt(stats.waits),
            Value::UInt(stats.spins),
            Value::UInt(stats.spin_nanos),
            // A release is one instruction: where it is a loop, the processor's own.
            Value::UInt(0),
            Value::UInt(stats.unlock_nanos),
            Value::UInt(stats.unlock_wakes),
            Value::UInt(stats.wait_nanos),
            Value::UInt(stats.extent.most()),
            Value::UInt(stats.hold_nanos),
            Value::UInt(stats.hold_nanos_max),
            optional(Some(stack.join(";").as_str()).filter(|stack| !stack.is_empty())),
        ])?;
    }
    Ok(())
}
