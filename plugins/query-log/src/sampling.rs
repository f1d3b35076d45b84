//! Which sessions and statements a log takes when it takes one in so many.

use sys::sync::atomic::{AtomicU64, Ordering};

/// Counts statements.
#[derive(Debug, Default)]
pub(crate) struct Sampling(AtomicU64);

impl Sampling {
    /// Whether the next statement is taken, one in `one_in`.
    pub(crate) fn takes_next(&self, one_in: u64) -> bool {
        one_in <= 1 || self.0.fetch_add(1, Ordering::Relaxed).is_multiple_of(one_in)
    }

    /// Whether all statements of a session are taken.
    pub(crate) fn takes_session(connection_id: u64, one_in: u64) -> bool {
        one_in <= 1 || connection_id.is_multiple_of(one_in)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_so_many_is_taken() {
        let sampling = Sampling::default();
        assert_eq!((0..100).filter(|_| sampling.takes_next(10)).count(), 10);
        assert_eq!((0..100).filter(|_| sampling.takes_next(1)).count(), 100);
        assert_eq!((0..100).filter(|id| Sampling::takes_session(*id, 4)).count(), 25);
    }
}
