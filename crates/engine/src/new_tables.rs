//! Tables that are newer than snapshots still in use: a read from such a snapshot would find the table empty, though the table that
//! it replaces (before TRUNCATE, or an ALTER that copied it) was not.

use std::collections::HashMap;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

use engine_api::TableId;

/// Entries at which old ones are first searched for.
const FIRST_SWEEP: usize = 64;

/// The tables that were created lately, with the tickets of the commits that made them.
#[derive(Default)]
pub(crate) struct NewTables {
    /// The newest ticket: most reads need no more.
    newest: AtomicU64,
    created: Mutex<Created>,
}

#[derive(Default)]
struct Created {
    tickets: HashMap<TableId, u64>,
    /// Size of the map at which tables that all snapshots see are dropped from it.
    sweep_at: usize,
}

impl NewTables {
    /// Adds a table that a commit has created and no other transaction knows yet. All snapshots see commits below the result of `horizon`.
    pub fn add(&self, table: TableId, ticket: u64, horizon: impl FnOnce() -> u64) {
        let mut created = self.created.lock();
        if created.tickets.len() >= created.sweep_at.max(FIRST_SWEEP) {
            let horizon = horizon();
            created.tickets.retain(|_, ticket| *ticket >= horizon);
            created.sweep_at = 2 * created.tickets.len();
        }
        created.tickets.insert(table, ticket);
        drop(created);
        self.newest.fetch_max(ticket, Ordering::AcqRel);
    }

    /// Whether a table is newer than a snapshot that sees the commits below `seen`.
    #[inline]
    pub fn is_newer(&self, table: TableId, seen: u64) -> bool {
        seen <= self.newest.load(Ordering::Acquire) && self.is_newer_than(table, seen)
    }

    #[cold]
    fn is_newer_than(&self, table: TableId, seen: u64) -> bool {
        self.created.lock().tickets.get(&table).is_some_and(|ticket| seen <= *ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_everybody_sees_is_forgotten() {
        let tables = NewTables::default();
        for id in 0..1000 {
            tables.add(TableId(id), 10 + id, || 10 + id.saturating_sub(5));
        }
        assert!(tables.created.lock().tickets.len() < 2 * FIRST_SWEEP);
        assert!(tables.is_newer(TableId(999), 1009), "a snapshot sees commits below it");
        assert!(!tables.is_newer(TableId(999), 1010));
        assert!(!tables.is_newer(TableId(5000), 0), "older than the list");
    }
}
