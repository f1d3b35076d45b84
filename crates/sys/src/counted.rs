//! Atomics that count, per thread, how often they are written: for tests that show that a path does not write shared words.
//!
//! Replaces the standard library's with the feature `count`. Stores and read-modify-writes count, loads and fences do not; a
//! mutex counts each time it is taken.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic as plain;
pub use std::sync::atomic::{Ordering, fence};

thread_local! {
    static WRITES: Cell<u64> = const { Cell::new(0) };
    static LINES: RefCell<Option<BTreeSet<usize>>> = const { RefCell::new(None) };
}

/// Bytes that processors move between their caches at once.
const LINE_BYTES: usize = 64;

pub(crate) fn count_write<T>(place: &T) {
    WRITES.with(|writes| writes.set(writes.get() + 1));
    LINES.with_borrow_mut(|lines| {
        if let Some(lines) = lines {
            lines.insert(std::ptr::from_ref(place).addr() / LINE_BYTES);
        }
    });
}

/// Numbers of the cache lines to which this thread writes shared memory that synchronises, while `work` runs.
pub fn lines_written(work: impl FnOnce()) -> BTreeSet<usize> {
    LINES.set(Some(BTreeSet::new()));
    work();
    LINES.take().unwrap_or_default()
}

/// Writes of this thread to shared memory that synchronises, so far.
pub fn shared_writes() -> u64 {
    WRITES.with(Cell::get)
}

macro_rules! writes {
    ($value:ty: $($name:ident),*) => {
        $(
            /// See `std`.
            #[inline]
            pub fn $name(&self, value: $value, order: Ordering) -> $value {
                count_write(self);
                self.0.$name(value, order)
            }
        )*
    };
}

macro_rules! counted {
    ($name:ident, $value:ty; $($operation:ident),*) => {
        /// See `std`.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(plain::$name);

        impl $name {
            /// See `std`.
            pub const fn new(value: $value) -> $name {
                $name(plain::$name::new(value))
            }

            /// See `std`.
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            /// See `std`.
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                count_write(self);
                self.0.store(value, order);
            }

            /// See `std`.
            ///
            /// # Errors
            /// The value found.
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                count_write(self);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// See `std`.
            ///
            /// # Errors
            /// The value found.
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                count_write(self);
                self.0.compare_exchange_weak(current, new, success, failure)
            }

            /// See `std`.
            ///
            /// # Errors
            /// The value found, when `change` returned none.
            #[inline]
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                count_write(self);
                self.0.fetch_update(success, failure, change)
            }

            writes!($value: $($operation),*);
        }
    };
}

counted!(AtomicU64, u64; swap, fetch_add, fetch_sub, fetch_max, fetch_min, fetch_and, fetch_or);
counted!(AtomicI64, i64; swap, fetch_add, fetch_sub, fetch_max, fetch_min);
counted!(AtomicU32, u32; swap, fetch_add, fetch_sub, fetch_max, fetch_min, fetch_and, fetch_or);
counted!(AtomicU8, u8; swap, fetch_add, fetch_sub, fetch_and, fetch_or);
counted!(AtomicUsize, usize; swap, fetch_add, fetch_sub, fetch_max, fetch_min);
counted!(AtomicBool, bool; swap, fetch_and, fetch_or);
