//! Sizes and distribution of tables, kept for a while: asking costs round trips.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use engine_api::{EngineResult, IndexId, TableId, TableStats};
use sys::blocking::blocking;
use sys::clock;
use sys::sync::Mutex;

use crate::error::NdbError;
use crate::index_keys::IndexKeys;
use crate::link::Link;
use crate::shim::{NdbTransaction, ScanRange};
use crate::table::Table;

/// How long figures are good.
const KEPT: Duration = Duration::from_secs(5);
/// Rows that are read for distinct counts.
const SAMPLE_ROWS: usize = 1_000;

struct Kept {
    at: Duration,
    stats: TableStats,
}

/// Figures of tables.
#[derive(Default)]
pub(crate) struct Statistics(Mutex<HashMap<TableId, Kept>>);

impl Statistics {
    pub(crate) fn forget(&self, table: TableId) {
        self.0.lock().remove(&table);
    }

    pub(crate) fn of(&self, link: &Link, table: &Table) -> EngineResult<TableStats> {
        let now = clock::monotonic();
        let indexes = table.def.indexes.len();
        if let Some(kept) = self.0.lock().get(&table.id())
            && now.saturating_sub(kept.at) < KEPT
            && kept.stats.distinct.len() == indexes
        {
            return Ok(kept.stats.clone());
        }
        let stats = blocking(|| measure(link, table))?;
        self.0.lock().insert(table.id(), Kept { at: now, stats: stats.clone() });
        Ok(stats)
    }
}

fn measure(link: &Link, table: &Table) -> EngineResult<TableStats> {
    let (rows, data_bytes) = table.rows.size().map_err(NdbError::into_engine)?;
    let mut index_bytes = 0;
    for index in &table.indexes {
        index_bytes += index.entries.size().map_err(NdbError::into_engine)?.1;
    }
    let sample = sample(link, table).map_err(NdbError::into_engine)?;
    let distinct = table.def.indexes.iter().map(|def| {
        let keys = match def.id {
            IndexId::CLUSTERED => table.clustered.as_ref(),
            id => table.indexes.iter().find(|index| index.def.id == id).map(|index| &index.keys),
        };
        keys.map_or(Ok(Vec::new()), |keys| distinct_prefixes(keys, &sample, rows))
    });
    let distinct = distinct.collect::<EngineResult<_>>()?;
    Ok(TableStats { rows, data_bytes, index_bytes, distinct })
}

fn sample(link: &Link, table: &Table) -> Result<Vec<Vec<u8>>, NdbError> {
    let mut transaction = NdbTransaction::begin(&link.connection, None)?;
    let range = ScanRange {
        low: None,
        low_inclusive: true,
        high: None,
        descending: false,
        with_rows: true,
        batch: 256,
    };
    let mut scan = transaction.scan(&table.rows, &range)?;
    let mut records = Vec::new();
    while records.len() < SAMPLE_ROWS
        && scan.next(SAMPLE_ROWS - records.len(), |_, record| records.push(record.to_vec()))? > 0
    {
    }
    Ok(records)
}

/// Distinct prefixes among the sample, scaled to the table where nearly all differ.
fn distinct_prefixes(keys: &IndexKeys, sample: &[Vec<u8>], rows: u64) -> EngineResult<Vec<u64>> {
    let mut seen: Vec<HashSet<Vec<u8>>> = vec![HashSet::new(); keys.len()];
    for record in sample {
        let mut key = Vec::new();
        let ends = keys.ends(record, &mut key)?;
        for (seen, end) in seen.iter_mut().zip(ends) {
            seen.insert(key.get(..end).unwrap_or(&key).to_vec());
        }
    }
    let read = sample.len() as u64;
    let scaled = |found: u64| match read > 0 && rows > read && found * 4 > read * 3 {
        true => (u128::from(found) * u128::from(rows) / u128::from(read)) as u64,
        false => found,
    };
    Ok(seen.iter().map(|seen| scaled(seen.len() as u64)).collect())
}
