//! Sampling: one statement of so many is measured and kept in `data_dictionary.PERF_SAMPLES`.

use std::collections::VecDeque;
use std::sync::Arc;

use plugin_api::{GlobalValue, StatementEnd, StatementEvent};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

use crate::digests::Digest;
use crate::recorder::Who;
use crate::sums::Sums;

/// Samples that are kept: the oldest give way.
const SAMPLES_MAX: usize = 10_000;

/// A statement that was measured.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) session: u64,
    pub(crate) started_micros: i64,
    pub(crate) who: Who,
    pub(crate) schema: Option<String>,
    pub(crate) digest: Arc<Digest>,
    pub(crate) sums: Sums,
}

/// The last samples.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// `perf_sample_every`.
    every: GlobalValue,
    seen: AtomicU64,
    kept: Mutex<VecDeque<Arc<Sample>>>,
}

impl Samples {
    pub(crate) fn new(every: GlobalValue) -> Samples {
        Samples { every, ..Samples::default() }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.every.number() > 0
    }

    /// Whether the next statement is one of those.
    pub(crate) fn takes_next(&self) -> bool {
        let every = self.every.number();
        every > 0 && self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(every)
    }

    /// Keeps a statement.
    pub(crate) fn keep(
        &self,
        event: &StatementEvent<'_>,
        end: &StatementEnd<'_>,
        (who, digest): (Who, Arc<Digest>),
    ) {
        let sample = Arc::new(Sample {
            session: event.session.connection_id,
            started_micros: event.started_micros,
            who,
            schema: event.session.schema.map(str::to_owned),
            digest,
            sums: Sums::of(end),
        });
        let mut kept = self.kept.lock();
        kept.push_back(sample);
        while kept.len() > SAMPLES_MAX {
            kept.pop_front();
        }
    }

    /// All, the oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Sample>> {
        self.kept.lock().iter().cloned().collect()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.kept.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Value;

    #[test]
    fn one_of_so_many_is_taken_and_none_without_a_rate() {
        let every = GlobalValue::default();
        let samples = Samples::new(every.clone());
        every.store(Value::UInt(0));
        assert!(!samples.is_on() && !samples.takes_next());
        every.store(Value::UInt(4));
        let taken = (0..12).filter(|_| samples.takes_next()).count();
        assert_eq!((samples.is_on(), taken), (true, 3));
    }
}
