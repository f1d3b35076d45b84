//! Locks, atomics and parking behind one name, so that a model checker can stand in for the standard library.
//!
//! With `--cfg loom` the types are loom's, with `--cfg shuttle` shuttle's; `crate::model` has what else the models need. Poisoning is ignored everywhere: a panic while a mutex is held is a bug that the
//! statement boundary reports, and the data under our mutexes is valid at every await of the lock.

#[cfg(loom)]
use loom::sync as backend;
#[cfg(shuttle)]
use shuttle::sync as backend;
#[cfg(not(any(loom, shuttle)))]
use std::sync as backend;

use std::time::Duration;

pub use backend::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
/// Counting references is the standard library's business: no model looks into it.
pub use std::sync::Arc;

/// Atomic integers and fences.
pub mod atomic {
    #[cfg(all(not(any(loom, shuttle)), feature = "count"))]
    pub use crate::counted::{
        AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    #[cfg(loom)]
    pub use crate::model::AtomicU64;
    #[cfg(loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
    };
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::*;
    #[cfg(all(not(any(loom, shuttle)), not(feature = "count")))]
    pub use std::sync::atomic::*;
}

/// A mutex that is never poisoned.
#[derive(Default, Debug)]
pub struct Mutex<T>(backend::Mutex<T>);

impl<T> Mutex<T> {
    /// Wraps `value`.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(backend::Mutex::new(value))
    }

    /// Waits for the mutex.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(feature = "count")]
        crate::counted::count_write();
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the mutex when it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }
}

/// A reader-writer lock that is never poisoned.
#[derive(Default, Debug)]
pub struct RwLock<T>(backend::RwLock<T>);

impl<T> RwLock<T> {
    /// Wraps `value`.
    pub fn new(value: T) -> RwLock<T> {
        RwLock(backend::RwLock::new(value))
    }

    /// Waits for shared access.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        #[cfg(feature = "count")]
        crate::counted::count_write();
        self.0.read().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits for exclusive access.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        #[cfg(feature = "count")]
        crate::counted::count_write();
        self.0.write().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// A condition variable for `Mutex`.
#[derive(Default, Debug)]
pub struct Condvar(backend::Condvar);

impl Condvar {
    /// A new condition.
    pub fn new() -> Condvar {
        Condvar(backend::Condvar::new())
    }

    /// Gives the mutex up until notified.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// As `wait`, for at most `limit`.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, limit: Duration) -> MutexGuard<'a, T> {
        self.0.wait_timeout(guard, limit).unwrap_or_else(|poisoned| poisoned.into_inner()).0
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

pub use crate::spin::spin_until_clear;

/// Tells the processor (or the model) that this thread spins.
#[inline]
pub fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(shuttle)]
    shuttle::thread::yield_now();
    #[cfg(not(any(loom, shuttle)))]
    core::hint::spin_loop();
}

/// Sleeps until `unpark_all` on the same address, unless `still_needed` says no under the queue's lock. May wake early.
#[cfg(not(any(loom, shuttle)))]
pub fn park(address: usize, still_needed: impl FnOnce() -> bool) {
    // SAFETY: the callbacks neither panic nor call into parking_lot, and keys of this crate are addresses of live latch words.
    unsafe {
        parking_lot_core::park(
            address,
            still_needed,
            || {},
            |_, _| {},
            parking_lot_core::DEFAULT_PARK_TOKEN,
            None,
        );
    }
}

/// Wakes every thread parked on the address.
#[cfg(not(any(loom, shuttle)))]
pub fn unpark_all(address: usize) {
    // SAFETY: as for `park`.
    unsafe {
        parking_lot_core::unpark_all(address, parking_lot_core::DEFAULT_UNPARK_TOKEN);
    }
}

#[cfg(any(loom, shuttle))]
pub use crate::model::{park, unpark_all};
