//! Sums by digest: statements of a schema that differ only in their literals.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use plugin_api::{GlobalValue, StatementEnd, StatementEvent};
use sha2::{Digest as _, Sha256};
use sys::sync::Mutex;

use crate::event_name::event_name;
use crate::sums::{Histogram, Sums};

/// Bytes of a digest text that are kept.
const TEXT_BYTES_MAX: usize = 1024;
/// A power of two.
const SHARDS: usize = 16;
/// Entries of a shard from hashes to digests, which is emptied when it is full: several hashes can lead to one digest.
const SHARD_ENTRIES_MAX: usize = 4096;

/// A schema and a text without literals.
#[derive(Debug)]
pub(crate) struct Digest {
    pub(crate) schema: Option<String>,
    /// `None`: all that found no place.
    pub(crate) text: Option<String>,
    /// SHA-256 of the text, as `STATEMENT_DIGEST()` gives it.
    pub(crate) number: String,
    pub(crate) event_name: Arc<str>,
    pub(crate) seen: Mutex<Seen>,
}

/// What has been seen of a digest.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) sums: Sums,
    pub(crate) histogram: Histogram,
    pub(crate) first_micros: i64,
    pub(crate) last_micros: i64,
    /// The longest statement: its text, when it was seen, and its microseconds.
    pub(crate) sample: (String, i64, u64),
}

/// The digests that are known.
#[derive(Debug)]
pub(crate) struct Digests {
    size: GlobalValue,
    by_hash: [Mutex<HashMap<u128, Arc<Digest>>>; SHARDS],
    by_text: Mutex<HashMap<(Option<String>, String), Arc<Digest>>>,
    others: Mutex<Arc<Digest>>,
}

fn no_text() -> Arc<Digest> {
    let event_name = "statement/sql/error".into();
    let (schema, text, number) = (None, None, String::new());
    Arc::new(Digest { schema, text, number, event_name, seen: Mutex::default() })
}

/// At most so many bytes of a text.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

impl Digests {
    /// `size`: how many are kept.
    pub(crate) fn new(size: GlobalValue) -> Digests {
        Digests {
            size,
            by_hash: Default::default(),
            by_text: Mutex::default(),
            others: Mutex::new(no_text()),
        }
    }

    /// The digest of a statement.
    pub(crate) fn of(&self, event: &StatementEvent<'_>) -> Arc<Digest> {
        let schema = event.session.schema;
        let mut hasher = DefaultHasher::new();
        schema.hash(&mut hasher);
        let key = event.digest_hash.map(|hash| hash ^ u128::from(hasher.finish()));
        let shard = &self.by_hash[key.unwrap_or(0) as usize % SHARDS];
        if let Some(known) = key.and_then(|key| shard.lock().get(&key).cloned()) {
            return known;
        }
        let digest = self.by_text(schema, &(event.digest_text)());
        if let Some(key) = key {
            let mut shard = shard.lock();
            if shard.len() >= SHARD_ENTRIES_MAX {
                shard.clear();
            }
            shard.insert(key, digest.clone());
        }
        digest
    }

    fn by_text(&self, schema: Option<&str>, text: &str) -> Arc<Digest> {
        let shown = cut(text, TEXT_BYTES_MAX);
        let key = (schema.map(str::to_owned), shown.to_owned());
        let mut known = self.by_text.lock();
        if let Some(digest) = known.get(&key) {
            return digest.clone();
        }
        if known.len() as u64 >= self.size.number() {
            return self.others.lock().clone();
        }
        let digest = Arc::new(Digest {
            schema: key.0.clone(),
            text: Some(key.1.clone()),
            number: sha256(text),
            event_name: event_name(text).into(),
            seen: Mutex::default(),
        });
        known.insert(key, digest.clone());
        digest
    }

    /// All of them; last those that found no place, if there are any.
    pub(crate) fn all(&self) -> Vec<Arc<Digest>> {
        let mut digests: Vec<Arc<Digest>> = self.by_text.lock().values().cloned().collect();
        digests
            .sort_unstable_by(|one, two| (&one.schema, &one.text).cmp(&(&two.schema, &two.text)));
        digests.push(self.others.lock().clone());
        digests.retain(|digest| digest.seen.lock().sums.statements > 0);
        digests
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.by_hash.iter().for_each(|shard| shard.lock().clear());
        self.by_text.lock().clear();
        *self.others.lock() = no_text();
    }
}

impl Digest {
    /// A statement of this digest ended.
    pub(crate) fn add(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        let sums = Sums::of(end);
        let at = event.started_micros;
        let mut seen = self.seen.lock();
        if seen.sums.statements == 0 {
            seen.first_micros = at;
        }
        seen.last_micros = seen.last_micros.max(at);
        if seen.sums.statements == 0 || end.elapsed_micros > seen.sample.2 {
            let text = String::from_utf8_lossy(event.text);
            seen.sample = (cut(&text, TEXT_BYTES_MAX).to_owned(), at, end.elapsed_micros);
        }
        seen.sums.add(&sums);
        seen.histogram.add(end.elapsed_micros);
    }
}

pub(crate) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().fold(String::with_capacity(64), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
