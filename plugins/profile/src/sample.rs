//! What a session was doing at one time.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use plugin_api::ProcessView;
use sha2::{Digest as _, Sha256};
use sys::waits::{self, Wait};

use crate::stack::Frames;

/// A session that ran a statement when it was looked at.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// Microseconds since 1970 UTC.
    pub(crate) at_micros: i64,
    pub(crate) session: u64,
    pub(crate) user: Arc<str>,
    pub(crate) schema: Option<Arc<str>>,
    pub(crate) command: &'static str,
    pub(crate) state: &'static str,
    /// What its thread waited for.
    pub(crate) wait: Wait,
    pub(crate) digest: Arc<Digest>,
    /// The innermost operator of its plan that ran.
    pub(crate) operator: Option<Arc<str>>,
    /// The outermost frame first; what was waited for is the last one.
    pub(crate) stack: Arc<str>,
}

/// A statement without its literals.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) text: String,
    /// SHA-256 of the text, as `STATEMENT_DIGEST()` gives it.
    pub(crate) number: String,
}

/// The group that a wait belongs to.
pub(crate) fn class_of(wait: Wait) -> &'static str {
    match wait {
        Wait::Running => "CPU",
        Wait::Idle => "IDLE",
        Wait::Mutex | Wait::Latch | Wait::RowLock | Wait::MetadataLock => "LOCK",
        Wait::LogFlush | Wait::Read | Wait::Write | Wait::Sync => "FILE",
        Wait::Network => "NETWORK",
        Wait::Sleep => "SLEEP",
    }
}

/// Bytes of a digest's text that are kept.
const TEXT_BYTES_MAX: usize = 1024;
/// Digests, texts and their frames that are known; the known ones are forgotten when there are more.
const KNOWN_MAX: usize = 4096;

/// Takes samples; knows texts and digests of earlier ones, so that samples share them. Belongs to one thread.
#[derive(Default)]
pub(crate) struct Taker {
    texts: HashSet<Arc<str>>,
    /// By a hash of the statement.
    digests: HashMap<u64, Arc<Digest>>,
    frames: Frames,
}

impl Taker {
    /// What a session does now; `None` when it has just ended its statement. `stacks`: with the stack of its thread.
    pub(crate) fn take(&mut self, view: &ProcessView, at_micros: i64) -> Option<Sample> {
        let thread = waits::thread(view.thread?)?;
        if thread.wait == Wait::Idle {
            return None;
        }
        let addresses = sys::stacks::capture_thread(thread.thread_id).unwrap_or_default();
        let folded = self.frames.fold(&addresses, thread.wait);
        Some(Sample {
            at_micros,
            session: view.id,
            user: self.text(&view.user),
            schema: view.database.as_deref().map(|schema| self.text(schema)),
            command: view.command,
            state: view.state,
            wait: thread.wait,
            digest: self.digest(view.info.as_deref().unwrap_or_default()),
            operator: folded.operator,
            stack: self.text(&folded.stack),
        })
    }

    fn text(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.texts.get(text) {
            return known.clone();
        }
        if self.texts.len() >= KNOWN_MAX {
            self.texts.clear();
        }
        let text: Arc<str> = text.into();
        self.texts.insert(text.clone());
        text
    }

    fn digest(&mut self, statement: &str) -> Arc<Digest> {
        let mut hasher = DefaultHasher::new();
        statement.hash(&mut hasher);
        let key = hasher.finish();
        if let Some(known) = self.digests.get(&key) {
            return known.clone();
        }
        if self.digests.len() >= KNOWN_MAX {
            self.digests.clear();
        }
        let digest = Arc::new(digest_of(statement));
        // Statements with other literals share it.
        let same = self.digests.values().find(|known| **known == digest).cloned();
        let digest = same.unwrap_or(digest);
        self.digests.insert(key, digest.clone());
        digest
    }
}

fn digest_of(statement: &str) -> Digest {
    let text = syntax::digest_text(statement.as_bytes(), &syntax::ParseOptions::default());
    let mut number = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        let _always = write!(number, "{byte:02x}");
    }
    Digest { text: text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned(), number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_differ_in_literals_share_a_digest() {
        let mut taker = Taker::default();
        let one = taker.digest("SELECT a FROM t WHERE b = 1");
        let other = taker.digest("select a from t where b = 22");
        assert!(Arc::ptr_eq(&one, &other), "{} {}", one.text, other.text);
        assert_eq!(one.number.len(), 64);
        let texts = (taker.text("u"), taker.text("u"));
        assert!(Arc::ptr_eq(&texts.0, &texts.1));
    }
}
