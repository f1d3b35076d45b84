//! Estimates for the optimizer, and counters for information tables.

use sys::sync::atomic::Ordering;

use btree::{LeafCopy, Seek, Tree, estimate_tree, fraction_below, split_keys};
use bufpool::Pool;
use engine_api::{EngineResult, EngineStat, IndexId, KeyRange, RangeEstimate, TableStats};
use page::PageRef;
use txn::Recovery;

use crate::error::io_error;
use crate::keys::{IndexKeys, Span, successor};
use crate::row::{Header, append_record};
use crate::shared::Shared;
use crate::table::Table;

/// Leaves of the clustered index read for distinct counts.
const SAMPLE_LEAVES: usize = 20;
/// Multiples of it have fractions that are spread evenly and follow no period.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// Records taken of each, where the table has more.
const LEAF_RECORDS: usize = 2;

/// Made again when a tenth of the rows were inserted or deleted.
pub(crate) fn table_stats(shared: &Shared, table: &Table) -> EngineResult<TableStats> {
    let changes = &table.counters.row_changes;
    let mut cached = table.counters.stats.lock();
    if let Some(stats) = &*cached {
        let change = changes.load(Ordering::Relaxed);
        if change.unsigned_abs() * 10 <= stats.rows {
            let rows = stats.rows.saturating_add_signed(change);
            return Ok(TableStats { rows, ..stats.clone() });
        }
    }
    changes.store(0, Ordering::Relaxed);
    let pool = &shared.system.pool;
    let page_bytes = pool.page_bytes() as u64;
    let clustered = estimate_tree(pool, table.clustered).map_err(io_error)?;
    let mut index_bytes = 0;
    for index in &table.indexes {
        index_bytes += estimate_tree(pool, index.tree).map_err(io_error)?.pages * page_bytes;
    }
    let sample = sample(shared, table, clustered.pages)?;
    let count = |tree: Tree, keys: &IndexKeys| match sample.is_whole {
        true => count_distinct(keys, &sample.records),
        false => guess_distinct(shared, tree, keys, &sample.records, clustered.records),
    };
    let distinct = table.def.indexes.iter().map(|def| match (def.id, &table.primary) {
        (IndexId::CLUSTERED, Some(keys)) => count(table.clustered, keys),
        (id, _) => {
            let index = &table.indexes[table.index_at(id)?];
            count(index.tree, &index.keys)
        }
    });
    let stats = TableStats {
        rows: clustered.records,
        data_bytes: clustered.pages * page_bytes,
        index_bytes,
        distinct: distinct.collect::<EngineResult<Vec<_>>>()?,
    };
    *cached = Some(stats.clone());
    Ok(stats)
}

/// Live records of a table: all of a small one, else some of leaves spread over it.
struct Sample {
    records: Vec<Vec<u8>>,
    is_whole: bool,
}

fn sample(shared: &Shared, table: &Table, pages: u64) -> EngineResult<Sample> {
    let pool = &shared.system.pool;
    let is_whole = pages <= SAMPLE_LEAVES as u64;
    let (mut leaf, mut start, mut records) = (LeafCopy::new(pool), Vec::new(), Vec::new());
    if is_whole {
        loop {
            leaf.load(pool, table.clustered, Seek::At(&start)).map_err(io_error)?;
            take_records(pool, leaf.page(), 0..leaf.page().count(), &mut records)?;
            if !leaf.page().upper_fence(&mut start) {
                return Ok(Sample { records, is_whole });
            }
        }
    }
    let keys = split_keys(pool, table.clustered, &[], None, SAMPLE_LEAVES).map_err(io_error)?;
    let step = keys.len().div_ceil(SAMPLE_LEAVES).max(1);
    for (place, key) in keys.iter().step_by(step).enumerate() {
        leaf.load(pool, table.clustered, Seek::At(key)).map_err(io_error)?;
        let count = leaf.page().count();
        // At equal places of equally full leaves, each tenth row might always be taken, or never.
        let slots = (1..=LEAF_RECORDS).map(|part| {
            let turns = (place * LEAF_RECORDS + part) as f64 * GOLDEN;
            (turns.fract() * count as f64) as usize
        });
        take_records(pool, leaf.page(), slots, &mut records)?;
    }
    Ok(Sample { records, is_whole })
}

fn take_records(
    pool: &Pool,
    page: PageRef<'_>,
    slots: impl Iterator<Item = usize>,
    records: &mut Vec<Vec<u8>>,
) -> EngineResult<()> {
    let mut value = Vec::new();
    for slot in slots.filter(|slot| *slot < page.count()) {
        value.clear();
        page.copy_value(slot, &mut value);
        if Header::of(&value).is_deleted() {
            continue;
        }
        let mut record = Vec::new();
        append_record(pool, &value, &mut record).map_err(io_error)?;
        records.push(record);
    }
    Ok(())
}

/// Distinct keys of each prefix in the records of a whole table.
fn count_distinct(keys: &IndexKeys, records: &[Vec<u8>]) -> EngineResult<Vec<u64>> {
    let mut seen = vec![std::collections::HashSet::new(); keys.part_count()];
    for record in records {
        keys.each_with_ends(record, |key, ends| {
            for (set, end) in seen.iter_mut().zip(ends) {
                set.insert(key[..*end].to_vec());
            }
            Ok(())
        })?;
    }
    Ok(seen.iter().map(|set| set.len() as u64).collect())
}

/// Like `count_distinct`, from some rows: the share of a key that belongs to a row, which is one part in as many as have the key, adds
/// up to the number of keys over all rows.
fn guess_distinct(
    shared: &Shared,
    tree: Tree,
    keys: &IndexKeys,
    records: &[Vec<u8>],
    rows: u64,
) -> EngineResult<Vec<u64>> {
    let mut shares = vec![0.0; keys.part_count()];
    for record in records {
        keys.each_with_ends(record, |key, ends| {
            for (share, end) in shares.iter_mut().zip(ends) {
                let start = key[..*end].to_vec();
                let span = Span { end: successor(&start), start };
                *share += 1.0 / rows_of(shared, tree, &span, rows)?.max(1.0);
            }
            Ok(())
        })?;
    }
    let mut distinct = 1.0;
    let of_share = |share: &f64| {
        distinct = (rows as f64 * share / records.len().max(1) as f64).max(distinct);
        distinct as u64
    };
    Ok(shares.iter().map(of_share).collect())
}

/// Entries of a span: counted if they are in one leaf, otherwise estimated from `rows`.
fn rows_of(shared: &Shared, tree: Tree, span: &Span, rows: u64) -> EngineResult<f64> {
    if let Some(rows) = count_in_leaf(shared, tree, span)? {
        return Ok(rows as f64);
    }
    let pool = &shared.system.pool;
    let below = |key: &[u8]| fraction_below(pool, tree, key).map_err(io_error);
    let end = span.end.as_deref().map_or(Ok(1.0), below)?;
    Ok((end - below(&span.start)?).clamp(0.0, 1.0) * rows as f64)
}

pub(crate) fn estimate_range(
    shared: &Shared,
    table: &Table,
    index: IndexId,
    range: &KeyRange,
) -> EngineResult<RangeEstimate> {
    let tree = match index {
        IndexId::CLUSTERED => table.clustered,
        id => table.indexes[table.index_at(id)?].tree,
    };
    let Some(span) = Span::of(range) else { return Ok(RangeEstimate { rows: 0, exact: true }) };
    if let Some(rows) = count_in_leaf(shared, tree, &span)? {
        return Ok(RangeEstimate { rows, exact: true });
    }
    let rows = table_stats(shared, table)?.rows;
    let rows = rows_of(shared, tree, &span, rows)? as u64;
    Ok(RangeEstimate { rows: rows.max(1), exact: false })
}

/// Entries of a span that lies in one leaf.
fn count_in_leaf(shared: &Shared, tree: Tree, span: &Span) -> EngineResult<Option<u64>> {
    let pool = &shared.system.pool;
    let leaf = tree.shared_leaf(pool, Seek::At(&span.start)).map_err(io_error)?;
    let page = leaf.page();
    let first = page.search(&span.start).0;
    let last = match &span.end {
        Some(end) if page.covers(end) => page.search(end).0,
        _ if page.is_rightmost() => page.count(),
        _ => return Ok(None),
    };
    Ok(Some(last.saturating_sub(first) as u64))
}

/// Builds of indexes, as counters of the group `index_build`: table, index and the counter's name, separated by slashes.
pub fn build_stats(shared: &Shared) -> Vec<EngineStat> {
    let mut stats = Vec::new();
    for table in shared.dictionary.all_open() {
        for build in &table.builds {
            for (name, value) in build.progress() {
                let name = format!("{}/{}/{name}", table.def.name, build.def.name);
                stats.push(EngineStat { group: "index_build", name, value: value.to_string() });
            }
        }
    }
    stats
}

/// The work of recovery, done or under way, as counters of the group `recovery`.
pub fn recovery_stats(recovery: &Recovery) -> Vec<EngineStat> {
    let text =
        |name: &str, value: String| EngineStat { group: "recovery", name: name.to_owned(), value };
    let stat = |name: &str, value: u64| text(name, value.to_string());
    let eta = recovery.eta_seconds().map_or_else(String::new, |seconds| seconds.to_string());
    vec![
        text("phase", recovery.phase.as_str().to_owned()),
        stat("percent", u64::from(recovery.percent)),
        stat("pages_done", recovery.pages_done),
        stat("pages_total", recovery.pages_total),
        text("eta_seconds", eta),
        stat("milliseconds", recovery.elapsed.as_millis() as u64),
        stat("records_replayed", recovery.records),
        stat("log_bytes", recovery.log_bytes),
        stat("log_bytes_total", recovery.log_bytes_total),
        stat("undo_done", recovery.undo_done),
        stat("undo_total", recovery.undo_total),
        stat("torn_pages_restored", recovery.torn_pages as u64),
        stat("transactions_rolled_back", recovery.losers_done as u64),
        stat("transactions_to_roll_back", recovery.losers as u64),
    ]
}

pub(crate) fn engine_stats(shared: &Shared, recovery: &Recovery) -> Vec<EngineStat> {
    let system = &shared.system;
    let (pool, log, locks) = (system.pool.stats(), system.log.stats(), system.locks.events());
    let (active, undo_memory, undo_files) = system.totals();
    let stat = |group, name: &str, value: u64| EngineStat {
        group,
        name: name.to_owned(),
        value: value.to_string(),
    };
    let mut stats = vec![
        stat("pool", "pages_total", pool.frames),
        stat("pool", "pages_data", pool.used_frames),
        stat("pool", "pages_dirty", pool.dirty_frames),
        stat("pool", "pages_read_total", pool.reads),
        stat("pool", "pages_written_total", pool.writes),
        stat("pool", "evictions_total", pool.evictions),
        stat("log", "written_bytes", log.written_bytes),
        stat("log", "groups_total", log.groups),
        stat("log", "commits_total", system.commits()),
        stat("log", "syncs_total", log.syncs),
        stat("log", "kept_bytes", log.kept_bytes),
        stat("log", "redo_bytes_per_second", system.redo_rate()),
        stat("log", "brake_microseconds", shared.brake_micros.load(Ordering::Relaxed)),
        stat("log", "segments", log.segments),
        stat("log", "next_ticket", system.log.next_ticket()),
        stat("log", "durable_ticket", system.log.durable()),
        stat("transactions", "active_writers", active as u64),
        stat("transactions", "undo_bytes", undo_memory),
        stat("transactions", "undo_file_bytes", undo_files),
        stat("purge", "transactions_waiting_for_purge", system.purge_backlog() as u64),
        stat("locks", "row_locks", locks.entries),
        stat("locks", "waits_total", locks.waits),
        stat("locks", "deadlocks_total", locks.deadlocks),
    ];
    let (reserve, there) = shared.reserve_bytes();
    stats.extend([
        stat("space", "reserve_bytes", reserve),
        stat("space", "reserve_there_bytes", there),
        stat("space", "is_short", u64::from(shared.lacks_reserve())),
    ]);
    stats.extend(system.pool.damaged_pages().into_iter().map(|page| {
        let (group, name) = ("damage", format!("page_{}", page.number));
        EngineStat { group, name, value: page.reason }
    }));
    let (pages, around) = system.pool.memory_bytes();
    let memory = [
        ("pages", pages as u64),
        ("page_table", around as u64),
        ("undo", undo_memory),
        ("purge_queue", system.queue_bytes() as u64),
        ("locks", system.locks.memory_bytes() as u64),
        ("dictionary", shared.dictionary.memory_bytes() as u64),
        ("log", system.log.memory_bytes() as u64),
    ];
    stats.extend(memory.map(|(owner, bytes)| stat("memory", &format!("{owner}_bytes"), bytes)));
    if let Some(archive) = &shared.archive {
        let now = archive.stats(&system.log, shared.config.log.segment_bytes);
        stats.extend([
            stat("archive", "segment", now.segment),
            stat("archive", "backlog_bytes", now.backlog_bytes),
            stat("archive", "failures_total", now.failures),
            stat("archive", "gaps_total", now.gaps),
        ]);
        let (group, name) = ("archive", "failure".to_owned());
        stats.push(EngineStat { group, name, value: now.failure });
    }
    stats.extend(shared.backups.stats());
    stats.extend(recovery_stats(recovery));
    let (reads, writes) = system.pool.io_times();
    let times = [
        ("log", "flush", system.log.flush_times()),
        ("pool", "page_read", reads),
        ("pool", "write_batch", writes),
        ("locks", "wait", system.locks.wait_times()),
    ];
    for (group, what, summary) in times {
        for (name, value) in [
            ("count", summary.count),
            ("total_microseconds", summary.total_micros),
            ("p50_microseconds", summary.p50_micros),
            ("p99_microseconds", summary.p99_micros),
            ("max_microseconds", summary.max_micros),
        ] {
            stats.push(stat(group, &format!("{what}_{name}"), value));
        }
    }
    stats
}
