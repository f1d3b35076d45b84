//! Forgetting versions that no snapshot can see.

use std::collections::VecDeque;

use sys::sync::atomic::{AtomicUsize, Ordering};
use sys::sync::{Arc, Mutex};

use crate::key::Key;
use crate::status::Clock;
use crate::table::{Table, TableData};

/// Rows with history, of one committed transaction.
pub(crate) struct Garbage {
    pub(crate) stamp: u64,
    pub(crate) rows: Vec<(Arc<Table>, Key)>,
}

/// Committed garbage in commit order.
#[derive(Default)]
pub(crate) struct PurgeQueue {
    queue: Mutex<VecDeque<Garbage>>,
    length: AtomicUsize,
}

/// The most transactions that one caller purges, so that no commit pays for all others.
const PURGE_TRANSACTIONS_MAX: usize = 64;

impl PurgeQueue {
    pub(crate) fn push(&self, garbage: Garbage) {
        let mut queue = self.queue.lock();
        // Commits arrive nearly in order; a late one is inserted at its place.
        let at = queue.partition_point(|other| other.stamp <= garbage.stamp);
        queue.insert(at, garbage);
        self.length.store(queue.len(), Ordering::Release);
    }

    pub(crate) fn len(&self) -> usize {
        self.length.load(Ordering::Acquire)
    }

    /// Removes versions that no snapshot sees any more.
    pub(crate) fn run(&self, clock: &Clock) {
        if self.len() == 0 {
            return;
        }
        let horizon = clock.horizon();
        for _ in 0..PURGE_TRANSACTIONS_MAX {
            let garbage = {
                let mut queue = self.queue.lock();
                if queue.front().is_none_or(|oldest| oldest.stamp > horizon) {
                    return;
                }
                let garbage = queue.pop_front();
                self.length.store(queue.len(), Ordering::Release);
                garbage
            };
            for (table, locator) in garbage.into_iter().flat_map(|garbage| garbage.rows) {
                purge_row(&mut table.data.write(), locator.as_slice(), horizon);
            }
        }
    }
}

/// Drops the versions of a row that are older than the newest one settled at `horizon`, and the row when that one is a deletion.
fn purge_row(data: &mut TableData, locator: &[u8], horizon: u64) {
    let Some(row) = data.rows.get_mut(locator) else { return };
    let mut gone = Vec::new();
    if row.head.writer.committed_by(horizon) {
        gone.append(&mut row.older);
        row.older = Vec::new();
    } else if let Some(keep) = row.older.iter().rposition(|v| v.writer.committed_by(horizon)) {
        gone.extend(row.older.drain(..keep));
    }
    let dead = row.older.is_empty() && !row.is_live() && row.head.writer.committed_by(horizon);
    if dead {
        data.rows.remove(locator);
    }
    for record in gone.into_iter().filter_map(|version| version.record) {
        data.data_bytes -= record.len() as i64;
        // The record was indexed when it was written, so its keys can be made again.
        let _ = data.remove_entries(&record, locator);
    }
}
