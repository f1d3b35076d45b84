//! `information_schema.INNODB_METRICS`: the counters that the engine and the server have, under the reference's names. All count always, from the
//! start of the server.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, StatusScope};
use types::Value;

use crate::row::{Emit, time};

/// Where a metric comes from.
enum Source {
    /// A counter of the durable engine: group and name.
    Engine(&'static str, &'static str),
    /// A number of pages of the pool, in bytes.
    PageBytes(&'static str),
    /// The same, divided.
    Parts(&'static str, &'static str, u64),
    /// The difference of two counters of a group.
    Less(&'static str, &'static str, &'static str),
    /// A status counter of the server.
    Status(&'static str),
    /// Requests to files: operation and, unless all count, the class of the files.
    Requests(&'static str, Option<&'static str>),
    /// Bytes of the same.
    Bytes(&'static str, Option<&'static str>),
    /// Indexes that are being built.
    Builds,
}

use Source::{Builds, Bytes, Engine, Less, PageBytes, Parts, Requests, Status};

/// Microseconds of a millisecond.
const MILLISECOND: u64 = 1_000;

/// A counter that only grows, and a value that also falls.
const COUNTER: &str = "counter";
const VALUE: &str = "value";

/// Name, subsystem, type, source and comment.
type Metric = (&'static str, &'static str, &'static str, Source, &'static str);

#[rustfmt::skip]
const METRICS: [Metric; 35] = [
    ("lock_deadlocks", "lock", COUNTER, Engine("locks", "deadlocks_total"), "Deadlocks"),
    ("lock_rec_lock_waits", "lock", COUNTER, Engine("locks", "waits_total"), "Requests for row locks that waited"),
    ("lock_rec_locks", "lock", VALUE, Engine("locks", "row_locks"), "Row locks that are held"),
    ("lock_row_lock_time", "lock", COUNTER, Parts("locks", "wait_total_microseconds", MILLISECOND), "Milliseconds of waiting for row locks"),
    ("lock_row_lock_time_max", "lock", VALUE, Parts("locks", "wait_max_microseconds", MILLISECOND), "Milliseconds of the longest wait for a row lock"),
    ("lock_row_lock_waits", "lock", COUNTER, Engine("locks", "wait_count"), "Waits for row locks that have ended"),
    ("buffer_pool_size", "server", VALUE, PageBytes("pages_total"), "Bytes of the buffer pool"),
    ("buffer_pool_reads", "buffer", COUNTER, Engine("pool", "page_read_count"), "Reads of pages from files"),
    ("buffer_pool_pages_total", "buffer", VALUE, Engine("pool", "pages_total"), "Pages that fit in the pool"),
    ("buffer_pool_pages_data", "buffer", VALUE, Engine("pool", "pages_data"), "Pages in the pool"),
    ("buffer_pool_bytes_data", "buffer", VALUE, PageBytes("pages_data"), "Bytes of pages in the pool"),
    ("buffer_pool_pages_dirty", "buffer", VALUE, Engine("pool", "pages_dirty"), "Pages that have to be written"),
    ("buffer_pool_bytes_dirty", "buffer", VALUE, PageBytes("pages_dirty"), "Bytes of pages that have to be written"),
    ("buffer_pool_pages_free", "buffer", VALUE, Less("pool", "pages_total", "pages_data"), "Pages that fit in the pool beside those that are there"),
    ("buffer_pages_written", "buffer", COUNTER, Engine("pool", "pages_written_total"), "Pages written"),
    ("buffer_pages_read", "buffer", COUNTER, Engine("pool", "pages_read_total"), "Pages read"),
    ("buffer_data_reads", "buffer", COUNTER, Bytes("read", None), "Bytes read from files"),
    ("buffer_data_written", "buffer", COUNTER, Bytes("write", None), "Bytes written to files"),
    ("buffer_flush_batches", "buffer", COUNTER, Engine("pool", "write_batch_count"), "Batches of pages written"),
    ("os_data_reads", "os", COUNTER, Requests("read", None), "Reads of files"),
    ("os_data_writes", "os", COUNTER, Requests("write", None), "Writes to files"),
    ("os_data_fsyncs", "os", COUNTER, Requests("sync", None), "Syncs of files"),
    ("os_log_bytes_written", "os", COUNTER, Engine("log", "written_bytes"), "Bytes of the log that were written"),
    ("os_log_fsyncs", "os", COUNTER, Engine("log", "syncs_total"), "Syncs of the log"),
    ("trx_rseg_history_len", "transaction", VALUE, Engine("purge", "transactions_waiting_for_purge"), "Transactions that wait for the purge"),
    ("trx_active_transactions", "transaction", VALUE, Engine("transactions", "active_writers"), "Transactions that have written and not ended"),
    ("log_writes", "log", COUNTER, Engine("log", "groups_total"), "Writes of the log"),
    ("log_flush_total_time", "log", COUNTER, Parts("log", "flush_total_microseconds", MILLISECOND), "Milliseconds of writing and syncing the log"),
    ("log_flush_max_time", "log", VALUE, Parts("log", "flush_max_microseconds", MILLISECOND), "Milliseconds of the longest of these"),
    ("dml_inserts", "dml", COUNTER, Status("Handler_write"), "Rows inserted"),
    ("dml_deletes", "dml", COUNTER, Status("Handler_delete"), "Rows deleted"),
    ("dml_updates", "dml", COUNTER, Status("Handler_update"), "Rows updated"),
    ("innodb_dblwr_writes", "server", COUNTER, Requests("write", Some("doublewrite")), "Writes of the doublewrite file"),
    ("innodb_page_size", "server", VALUE, Status("Innodb_page_size"), "Bytes of a page"),
    ("ddl_online_create_index", "ddl", VALUE, Builds, "Indexes that are being built"),
];

/// `INNODB_METRICS`.
pub fn metrics(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    let (stats, files) = (ctx.engine_stats(), ctx.file_operations());
    let status = ctx.status(StatusScope::Global);
    let counted = |name: &str| -> Option<u64> {
        status.iter().find(|(known, _)| known == name)?.1.parse().ok()
    };
    // The durable engine is the one with a pool.
    let engine = stats.iter().find(|stat| stat.group == "pool").map(|stat| stat.engine.clone());
    let own = || stats.iter().filter(|stat| Some(&stat.engine) == engine.as_ref());
    let counter = |group: &str, name: &str| -> Option<u64> {
        own().find(|stat| stat.group == group && stat.name == name)?.value.parse().ok()
    };
    let of_files =
        |operation: &str, class: Option<&str>, value: fn(&plugin_api::FileOperations) -> u64| {
            let wanted = |one: &&plugin_api::FileOperations| {
                one.operation == operation && class.is_none_or(|class| one.class == class)
            };
            Some(files.iter().filter(wanted).map(value).sum::<u64>())
        };
    let page_bytes = counted("Innodb_page_size");
    let elapsed = (ctx.now_micros().saturating_sub(ctx.started_micros())).max(0) / 1_000_000;
    for (name, subsystem, kind, source, comment) in &METRICS {
        let value = match source {
            Engine(group, name) => counter(group, name),
            PageBytes(name) => {
                counter("pool", name).zip(page_bytes).map(|(pages, size)| pages * size)
            }
            Parts(group, name, parts) => counter(group, name).map(|value| value / parts),
            Less(group, name, less) => counter(group, name)
                .zip(counter(group, less))
                .map(|(one, two)| one.saturating_sub(two)),
            Status(name) => counted(name),
            Requests(operation, class) => of_files(operation, *class, |one| one.requests),
            Bytes(operation, class) => of_files(operation, *class, |one| one.bytes),
            Builds => {
                let is_first = |name: &str| name.ends_with("/rows_read");
                let builds = own().filter(|stat| stat.group == "index_build");
                Some(builds.filter(|stat| is_first(&stat.name)).count() as u64)
            }
        };
        let Some(value) = value else { continue };
        let count = Value::Int(i64::try_from(value).unwrap_or(i64::MAX));
        let average =
            (*kind == COUNTER && elapsed > 0).then(|| Value::Double(value as f64 / elapsed as f64));
        emit(&[
            Value::text(name),
            Value::text(subsystem),
            count.clone(),
            Value::Null,
            Value::Null,
            average.unwrap_or(Value::Null),
            count,
            Value::Null,
            Value::Null,
            Value::Null,
            time(ctx.started_micros()),
            Value::Null,
            Value::Int(elapsed),
            Value::Null,
            Value::text("enabled"),
            Value::text(kind),
            Value::text(comment),
        ])?;
    }
    Ok(())
}
