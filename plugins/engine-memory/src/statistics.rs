//! Estimates for the optimizer, and the check of a table's invariants.

use std::collections::BTreeMap;

use engine_api::{
    CancelToken, EngineError, EngineResult, IndexId, KeyRange, RangeEstimate, TableStats,
};
use sys::sync::atomic::Ordering;

use crate::index_keys::IndexKeys;
use crate::key::Key;
use crate::table::{Table, TableData};
use engine_api::Span;

/// Statistics with the row count they were made at.
pub(crate) struct CachedStats {
    rows: u64,
    distinct: Vec<Vec<u64>>,
}

/// Index entries read for distinct counts.
const SAMPLE_ENTRIES: usize = 20_000;
/// Entries of a range that are counted; longer ranges are guessed.
const COUNT_MAX: usize = 512;

pub(crate) fn table_stats(table: &Table) -> EngineResult<TableStats> {
    let rows = table.live_rows.load(Ordering::Relaxed).max(0) as u64;
    let data = table.data.read();
    let mut cached = table.stats.lock();
    // Counted again when a tenth of the rows were inserted or deleted.
    let fresh = cached.as_ref().is_some_and(|stats| {
        stats.rows.abs_diff(rows) * 10 <= rows && stats.distinct.len() == data.def.indexes.len()
    });
    if !fresh {
        *cached = Some(CachedStats { rows, distinct: count_distinct(&data, rows)? });
    }
    Ok(TableStats {
        rows,
        data_bytes: data.data_bytes.max(0) as u64,
        index_bytes: data.index_bytes.max(0) as u64,
        distinct: cached.as_ref().map(|stats| stats.distinct.clone()).unwrap_or_default(),
    })
}

fn count_distinct(data: &TableData, rows: u64) -> EngineResult<Vec<Vec<u64>>> {
    data.def
        .indexes
        .iter()
        .map(|def| match (def.id, &data.clustered) {
            (IndexId::CLUSTERED, Some(keys)) => {
                let records = data.rows.values().filter_map(|row| row.head.record.as_deref());
                distinct_prefixes(keys, records, rows)
            }
            _ => match data.index(def.id) {
                None => Ok(vec![rows; def.parts.len()]),
                Some(index) => {
                    let locators = index
                        .entries
                        .iter()
                        .map(|(key, length)| &key.as_slice()[*length as usize..]);
                    let records = locators
                        .filter_map(|locator| data.rows.get(locator)?.head.record.as_deref());
                    distinct_prefixes(&index.keys, records, rows)
                }
            },
        })
        .collect()
}

/// Counts changes of each prefix over the first records in key order, and scales them to the table.
fn distinct_prefixes<'a>(
    keys: &IndexKeys,
    records: impl Iterator<Item = &'a [u8]>,
    rows: u64,
) -> EngineResult<Vec<u64>> {
    let mut counts = vec![0u64; keys.len()];
    let mut last = Vec::new();
    let mut examined = 0u64;
    for record in records.take(SAMPLE_ENTRIES) {
        keys.each_with_ends(record, |key, ends| {
            for (count, end) in counts.iter_mut().zip(ends) {
                let same = examined > 0 && last.get(..*end) == key.get(..*end);
                *count += u64::from(!same);
            }
            last.clear();
            last.extend_from_slice(key);
        })?;
        examined += 1;
    }
    if examined > 0 && rows > examined {
        for count in &mut counts {
            *count = (u128::from(*count) * u128::from(rows) / u128::from(examined)) as u64;
        }
    }
    Ok(counts)
}

pub(crate) fn estimate_range(
    table: &Table,
    index: IndexId,
    range: &KeyRange,
) -> EngineResult<RangeEstimate> {
    let data = table.data.read();
    let Some(span) = Span::of(range) else { return Ok(RangeEstimate { rows: 0, exact: true }) };
    if index == IndexId::CLUSTERED {
        return Ok(estimate_in(&data.rows, &span));
    }
    let index = data.index(index).ok_or(EngineError::UnknownTable)?;
    Ok(estimate_in(&index.entries, &span))
}

fn estimate_in<V>(map: &BTreeMap<Key, V>, span: &Span) -> RangeEstimate {
    let Some(bounds) = span.bounds_after(None, false) else {
        return RangeEstimate { rows: 0, exact: true };
    };
    let counted = map.range::<[u8], _>(bounds).take(COUNT_MAX + 1).count();
    if counted <= COUNT_MAX {
        return RangeEstimate { rows: counted as u64, exact: true };
    }
    let ends = |mut keys: std::collections::btree_map::Range<'_, Key, V>| {
        let first = keys.next().map(|(key, _)| key.as_slice().to_vec()).unwrap_or_default();
        let last = keys.next_back().map(|(key, _)| key.as_slice().to_vec());
        (first.clone(), last.unwrap_or(first))
    };
    let (low, high) = ends(map.range::<[u8], _>(..));
    let (first, last) = ends(map.range::<[u8], _>(bounds));
    let common = low.iter().zip(&high).take_while(|(a, b)| a == b).count();
    let place = |key: &[u8]| {
        let tail = key.get(common..).unwrap_or_default();
        tail.iter()
            .take(7)
            .fold((0.0, 1.0), |(sum, unit): (f64, f64), byte| {
                (sum + f64::from(*byte) * unit / 256.0, unit / 256.0)
            })
            .0
    };
    let whole = place(&high) - place(&low);
    let part = place(&last) - place(&first);
    let share = if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 1.0 };
    let rows = (share * map.len() as f64) as u64;
    RangeEstimate { rows: rows.clamp(COUNT_MAX as u64, map.len() as u64), exact: false }
}

/// Every live row has its entries, every entry has a row with a version that explains it.
pub(crate) fn check_table(table: &Table, cancel: &CancelToken) -> EngineResult<Vec<String>> {
    cancel.count_work(table.data.read().rows.len() as u64);
    let data = table.data.read();
    let mut problems = Vec::new();
    let mut key = Vec::new();
    let live = data.rows.values().filter(|row| row.is_live()).count() as i64;
    let counted = table.live_rows.load(Ordering::Relaxed);
    if live != counted {
        problems.push(format!("{live} live rows, but the counter says {counted}"));
    }
    for index in &data.indexes {
        for (locator, row) in &data.rows {
            for record in row.records() {
                index.keys.for_each(record, &mut key, |key, _| {
                    key.extend_from_slice(locator.as_slice());
                    if !index.entries.contains_key(key.as_slice()) {
                        problems.push(format!("{}: no entry for row {locator:?}", index.def.name));
                    }
                    Ok(())
                })?;
            }
        }
        for (entry, sql_length) in &index.entries {
            cancel.count_work(1);
            if cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            let (sql, locator) = entry.as_slice().split_at(*sql_length as usize);
            let mut explained = false;
            for record in data.rows.get(locator).into_iter().flat_map(|row| row.records()) {
                explained |= index.keys.matches(record, sql, &mut key)?;
            }
            if !explained {
                problems.push(format!("{}: entry {entry:?} has no version", index.def.name));
            }
        }
    }
    Ok(problems)
}
