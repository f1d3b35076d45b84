//! What a transaction depends on: those that changed the same rows before it. Replicas run others side by side.

use std::collections::HashMap;

use binlog::EventKind;
use plugin_api::LoggedTable;
use types::Value;

/// An event of attachments only, the last of a transaction with rows: the numbers of the keys that it changed, 8 bytes each; nothing when
/// it may depend on any other.
pub(crate) const DEPENDENCIES: EventKind = EventKind(0xf0);

/// Keys of a transaction; one with more counts as dependent on all before it.
const KEYS_MAX: usize = 10_000;
/// Keys whose last transactions are known.
const HISTORY_MAX: usize = 25_000;

/// The keys of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Dependencies {
    keys: Vec<u64>,
    depends_on_all: bool,
}

impl Dependencies {
    /// A row was changed; nothing when it has no values.
    pub fn add(&mut self, table: &LoggedTable, row: &[Value]) {
        if row.is_empty() || self.depends_on_all {
            return;
        }
        if !table.is_independent || self.keys.len() >= KEYS_MAX {
            self.depends_on_all = true;
            return;
        }
        let mut number = stdx::hash_bytes(table.id, b"");
        for (column, _) in &table.primary_key {
            // Texts that a collation calls equal differ here: their tables are not independent.
            number = match row.get(*column) {
                Some(Value::Int(value)) => stdx::mix(number ^ *value as u64),
                Some(Value::UInt(value)) => stdx::mix(number ^ *value),
                other => stdx::hash_bytes(number, format!("{other:?}").as_bytes()),
            };
        }
        if self.keys.last() != Some(&number) {
            self.keys.push(number);
        }
    }

    /// Appends the keys.
    pub fn put(&mut self, out: &mut Vec<u8>) {
        if !self.depends_on_all {
            out.extend(self.keys.iter().flat_map(|key| key.to_le_bytes()));
        }
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.depends_on_all = false;
    }
}

/// The last transaction of each key in a file of the log.
#[derive(Debug, Default)]
pub(crate) struct History {
    last: HashMap<u64, i64>,
    /// All transactions after this one depend on it.
    floor: i64,
}

impl History {
    /// The transaction before which all must be done before that with this number, which changes these keys, begins.
    pub fn last_committed(&mut self, number: i64, keys: &[u8]) -> i64 {
        let (keys, _) = keys.as_chunks::<8>();
        if keys.is_empty() {
            self.last.clear();
            self.floor = number;
            return number - 1;
        }
        if self.last.len() + keys.len() > HISTORY_MAX {
            self.last.clear();
            self.floor = number - 1;
        }
        let mut after = self.floor;
        for key in keys {
            let before = self.last.insert(u64::from_le_bytes(*key), number);
            // A key may be named twice.
            after = after.max(before.filter(|before| *before != number).unwrap_or(0));
        }
        after
    }

    /// A new file begins: its numbers start at 1.
    pub fn reset(&mut self) {
        *self = History::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[u64]) -> Vec<u8> {
        keys.iter().flat_map(|key| key.to_le_bytes()).collect()
    }

    #[test]
    fn a_transaction_waits_for_those_with_its_keys_only() {
        let mut history = History::default();
        assert_eq!(history.last_committed(1, &keys(&[7])), 0);
        assert_eq!(history.last_committed(2, &keys(&[8, 8])), 0);
        assert_eq!(history.last_committed(3, &keys(&[7, 9])), 1);
        assert_eq!(history.last_committed(4, &[]), 3, "unknown keys: all before");
        assert_eq!(history.last_committed(5, &keys(&[100])), 4, "and all after wait for it");
        history.reset();
        assert_eq!(history.last_committed(1, &keys(&[7])), 0);
    }
}
