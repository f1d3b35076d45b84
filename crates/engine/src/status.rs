//! The engine's status variables, under the reference's names: tools for its default engine ask for them.

use bufpool::ResizeState;
use types::{FixedOffset, ZoneRules as _};

use crate::shared::Shared;

/// Status variables of pool, log and row locks.
pub(crate) fn status(shared: &Shared) -> Vec<(&'static str, String)> {
    let mut rows = resize_status(&shared.system.pool.resize_state());
    rows.extend(pool_status(shared));
    rows.extend(log_status(shared));
    rows.extend(lock_status(shared));
    rows
}

fn pool_status(shared: &Shared) -> Vec<(&'static str, String)> {
    let pool = &shared.system.pool;
    let (stats, page_bytes) = (pool.stats(), pool.page_bytes() as u64);
    let (reads, _) = pool.io_times();
    [
        ("Innodb_buffer_pool_bytes_data", stats.used_frames * page_bytes),
        ("Innodb_buffer_pool_bytes_dirty", stats.dirty_frames * page_bytes),
        ("Innodb_buffer_pool_pages_data", stats.used_frames),
        ("Innodb_buffer_pool_pages_dirty", stats.dirty_frames),
        ("Innodb_buffer_pool_pages_flushed", stats.writes),
        ("Innodb_buffer_pool_pages_free", stats.frames.saturating_sub(stats.used_frames)),
        // All frames are for pages.
        ("Innodb_buffer_pool_pages_misc", 0),
        ("Innodb_buffer_pool_pages_total", stats.frames),
        ("Innodb_buffer_pool_read_ahead", stats.reads_ahead),
        // Only what follows is read ahead.
        ("Innodb_buffer_pool_read_ahead_rnd", 0),
        ("Innodb_buffer_pool_read_requests", sys::waits::pages()),
        ("Innodb_buffer_pool_reads", reads.count.saturating_sub(stats.reads_ahead)),
        ("Innodb_page_size", page_bytes),
        ("Innodb_pages_read", stats.reads),
        ("Innodb_pages_written", stats.writes),
    ]
    .map(|(name, value)| (name, value.to_string()))
    .into()
}

fn log_status(shared: &Shared) -> Vec<(&'static str, String)> {
    let log = &shared.system.log;
    let stats = log.stats();
    let numbers = [
        ("Innodb_log_writes", stats.groups),
        ("Innodb_os_log_fsyncs", stats.syncs),
        ("Innodb_os_log_written", stats.written_bytes),
        // Places in the log are the numbers of its records.
        ("Innodb_redo_log_current_lsn", log.next_ticket()),
        ("Innodb_redo_log_flushed_to_disk_lsn", log.durable()),
        ("Innodb_redo_log_physical_size", stats.kept_bytes),
    ];
    let mut rows: Vec<_> = numbers.map(|(name, value)| (name, value.to_string())).into();
    rows.extend(
        [("Innodb_redo_log_enabled", "ON"), ("Innodb_redo_log_read_only", "OFF")]
            .map(|(name, value)| (name, value.to_owned())),
    );
    rows
}

fn lock_status(shared: &Shared) -> Vec<(&'static str, String)> {
    const MILLISECOND: u64 = 1_000;
    let locks = &shared.system.locks;
    let (events, times) = (locks.events(), locks.wait_times());
    let average = times.total_micros.checked_div(times.count).unwrap_or(0);
    [
        ("Innodb_row_lock_current_waits", events.waits.saturating_sub(times.count)),
        ("Innodb_row_lock_time", times.total_micros / MILLISECOND),
        ("Innodb_row_lock_time_avg", average / MILLISECOND),
        ("Innodb_row_lock_time_max", times.max_micros / MILLISECOND),
        ("Innodb_row_lock_waits", events.waits),
    ]
    .map(|(name, value)| (name, value.to_string()))
    .into()
}

/// A time in the form of the reference's messages, in UTC.
fn utc_text(seconds: i64) -> String {
    let time = FixedOffset::utc().utc_to_local(seconds * 1_000_000);
    let (year, month, day) = (time.year() % 100, time.month(), time.day());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{year:02}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Status variables about the change of the pool's size that goes on, or the last one.
fn resize_status(state: &ResizeState) -> Vec<(&'static str, String)> {
    // The reference's numbers of the stages that exist here.
    const COMPLETE: u32 = 0;
    const WITHDRAWING: u32 = 3;
    const RESIZING: u32 = 5;
    const COMPLETE_PERCENT: usize = 100;
    let ResizeState { from, frames, target, .. } = *state;
    let done = from.abs_diff(frames) * COMPLETE_PERCENT;
    let percent = done.checked_div(from.abs_diff(target)).unwrap_or(COMPLETE_PERCENT);
    let (code, text, percent) = match (&state.trouble, state.is_running) {
        (Some(trouble), true) => {
            (WITHDRAWING, format!("Withdrawing pages, {frames} of {target}: {trouble}"), percent)
        }
        (None, true) if target < frames => {
            (WITHDRAWING, format!("Withdrawing pages: {frames}, {target} are to stay"), percent)
        }
        (None, true) => (RESIZING, format!("Resizing the pool to {target} pages"), percent),
        (_, false) if state.ended_micros == 0 => (COMPLETE, String::new(), 0),
        (_, false) => {
            let seconds = state.ended_micros / 1_000_000;
            let text = format!("Completed resizing buffer pool at {}.", utc_text(seconds as i64));
            (COMPLETE, text, COMPLETE_PERCENT)
        }
    };
    vec![
        ("Innodb_buffer_pool_resize_status", text),
        ("Innodb_buffer_pool_resize_status_code", code.to_string()),
        ("Innodb_buffer_pool_resize_status_progress", percent.min(COMPLETE_PERCENT).to_string()),
    ]
}
