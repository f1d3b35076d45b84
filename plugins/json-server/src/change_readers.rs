//! How many read changes at one time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The readers at one time: each takes a thread.
#[derive(Debug, Default)]
pub struct Readers(AtomicUsize);

/// One of them.
#[derive(Debug)]
pub struct Place<'a>(&'a Readers);

impl Readers {
    /// A place for one more, unless there are `most`.
    pub fn enter(&self, most: usize) -> Option<Place<'_>> {
        let entered = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < most).then_some(count + 1)
        });
        entered.is_ok().then_some(Place(self))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
