//! Texts of prepared statements, shared by all sessions that prepared the same text. Knows no plan and no session.

use std::sync::Arc;

use errors::{Result, bail};
use hashbrown::HashTable;
use syntax::Statement;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicUsize, Ordering};
use types::Value;

/// Shards, so that sessions that prepare at the same time rarely contend.
const SHARDS: usize = 64;

/// The kept data of a prepared statement: everything else can be made from it.
#[derive(Clone, Debug)]
pub struct PreparedText {
    pub source: Box<[u8]>,
    /// The bits of the SQL mode that decide how it is read.
    pub mode: u64,
    /// The current schema of its PREPARE: names without one belong to it, whatever is current when it runs.
    pub schema: Option<Arc<str>>,
    pub parameters: u32,
    /// The numbers of the parameters that LIMIT counts rows by.
    pub row_counts: Box<[u32]>,
    pub execution: PreparedExecution,
}

/// How a prepared statement is run.
#[derive(Clone, Debug)]
pub enum PreparedExecution {
    /// By its plan.
    Planned,
    /// By its syntax tree, kept since PREPARE: BEGIN, COMMIT and ROLLBACK, which run often and are small.
    Kept(Box<Statement>),
    /// By parsing its text each time.
    Read,
}

impl PreparedText {
    #[inline]
    pub fn is_planned(&self) -> bool {
        matches!(self.execution, PreparedExecution::Planned)
    }

    /// Checks the values of EXECUTE: as many as parameters, and row counts are whole numbers. Clients of the binary protocol give theirs
    /// as they like: they are converted.
    ///
    /// # Errors
    /// 1210, 1690.
    pub fn check_values(&self, values: &[Value]) -> Result<()> {
        if values.len() != self.parameters as usize {
            bail!(WRONG_ARGUMENTS, "EXECUTE");
        }
        for number in &self.row_counts {
            let value = &values[*number as usize];
            if !matches!(value, Value::Null | Value::Int(_) | Value::UInt(_)) {
                bail!(WRONG_ARGUMENTS, "EXECUTE");
            }
            if matches!(value, Value::Int(..0)) {
                bail!(DATA_OUT_OF_RANGE, "unsigned integer", "EXECUTE");
            }
        }
        Ok(())
    }

    /// Digest for the plan cache, under the server's secret.
    pub fn digest(&self, seed: u64) -> u128 {
        let low = hash_of(&self.source, self.mode ^ seed);
        let high = stdx::hash_bytes(stdx::mix(low), &self.source);
        u128::from(high) << 64 | u128::from(low)
    }

    /// Bytes that it takes, including table slots and allocation overhead.
    pub fn size_bytes(&self) -> usize {
        // Two counts before the value, a slot in the table with room for growth, and the rounding of allocations.
        let kept = if matches!(self.execution, PreparedExecution::Kept(_)) {
            size_of::<Statement>()
        } else {
            0
        };
        size_of::<Self>()
            + kept
            + 2 * size_of::<usize>()
            + 2 * size_of::<usize>()
            + size_of_val(&*self.row_counts).next_multiple_of(16)
            + self.source.len().next_multiple_of(16)
    }
}

fn hash_of(source: &[u8], seed: u64) -> u64 {
    stdx::hash_bytes(seed, source)
}

/// All texts that some session has prepared.
pub struct PreparedTexts {
    shards: Vec<Mutex<HashTable<Arc<PreparedText>>>>,
    bytes: AtomicUsize,
    seed: u64,
}

impl PreparedTexts {
    pub fn new(seed: u64) -> PreparedTexts {
        let shards = (0..SHARDS).map(|_| Mutex::new(HashTable::new())).collect();
        PreparedTexts { shards, bytes: AtomicUsize::new(0), seed }
    }

    /// Bytes of all texts.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn hash(&self, source: &[u8], mode: u64, schema: Option<&Arc<str>>) -> u64 {
        let schema = schema.map_or(0, |name| hash_of(name.as_bytes(), self.seed));
        hash_of(source, self.seed ^ mode ^ schema)
    }

    fn hash_of_text(&self, text: &PreparedText) -> u64 {
        self.hash(&text.source, text.mode, text.schema.as_ref())
    }

    fn shard(&self, hash: u64) -> &Mutex<HashTable<Arc<PreparedText>>> {
        // The table takes its bits from both ends of the hash.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// A text that is already stored.
    pub fn find(
        &self,
        source: &[u8],
        mode: u64,
        schema: Option<&Arc<str>>,
    ) -> Option<Arc<PreparedText>> {
        let hash = self.hash(source, mode, schema);
        let shard = self.shard(hash).lock();
        let same = |known: &Arc<PreparedText>| {
            *known.source == *source && known.mode == mode && known.schema.as_ref() == schema
        };
        shard.find(hash, same).cloned()
    }

    /// Returns the stored text that equals `text`, or else stores this one.
    pub fn share(&self, text: PreparedText) -> Arc<PreparedText> {
        let hash = self.hash_of_text(&text);
        let mut shard = self.shard(hash).lock();
        let same = |known: &Arc<PreparedText>| {
            known.source == text.source && known.mode == text.mode && known.schema == text.schema
        };
        if let Some(known) = shard.find(hash, same) {
            return known.clone();
        }
        self.bytes.fetch_add(text.size_bytes(), Ordering::Relaxed);
        let text = Arc::new(text);
        shard.insert_unique(hash, text.clone(), |known| self.hash_of_text(known));
        text
    }

    /// Releases a reference; the last one removes the text.
    pub fn release(&self, text: Arc<PreparedText>) {
        let hash = self.hash_of_text(&text);
        let mut shard = self.shard(hash).lock();
        let Ok(entry) = shard.find_entry(hash, |known| Arc::ptr_eq(known, &text)) else { return };
        // The table's reference and this one: others are created under the shard's lock only, or from one that is still held.
        if Arc::strong_count(&text) == 2 {
            self.bytes.fetch_sub(text.size_bytes(), Ordering::Relaxed);
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str, mode: u64) -> PreparedText {
        PreparedText {
            source: source.as_bytes().into(),
            mode,
            schema: None,
            parameters: 0,
            row_counts: Box::default(),
            execution: PreparedExecution::Planned,
        }
    }

    #[test]
    fn equal_texts_are_one_and_go_with_their_last_user() {
        let texts = PreparedTexts::new(7);
        let first = texts.share(text("SELECT 1", 0));
        let bytes = texts.bytes();
        let second = texts.share(text("SELECT 1", 0));
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(texts.bytes(), bytes);
        let other = texts.share(text("SELECT 1", 4));
        assert!(!Arc::ptr_eq(&first, &other));
        texts.release(first);
        assert!(texts.find(b"SELECT 1", 0, None).is_some());
        texts.release(second);
        assert!(texts.find(b"SELECT 1", 0, None).is_none());
        texts.release(other);
        let elsewhere = PreparedText { schema: Some("shop".into()), ..text("SELECT 1", 0) };
        let elsewhere = texts.share(elsewhere);
        assert!(texts.find(b"SELECT 1", 0, None).is_none());
        assert!(texts.find(b"SELECT 1", 0, Some(&"shop".into())).is_some());
        texts.release(elsewhere);
        assert_eq!(texts.bytes(), 0);
    }
}
