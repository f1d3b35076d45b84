//! Locks, atomics and parking behind one name, so that a model checker can replace the standard library.
//!
//! With `--cfg loom` the types are loom's, with `--cfg shuttle` shuttle's; `crate::model` has the other parts that models need. Poisoning is ignored everywhere: a panic while a mutex is held is a bug that the
//! statement boundary reports, and the data under our mutexes is valid at every await of the lock.

#[cfg(loom)]
use loom::sync as backend;
#[cfg(shuttle)]
use shuttle::sync as backend;
#[cfg(not(any(loom, shuttle)))]
use std::sync as backend;

use std::mem::ManuallyDrop;
use std::panic::Location;
use std::time::Duration;

use crate::lock_stats::{self, Kind, Of};
use crate::simulation::{self, Key, Woken};
use crate::waits::{self, Wait};

/// Reference counting is the standard library's: no model checks it.
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

/// A mutex that is never poisoned. `lock_stats` knows it by the place where it was made.
#[derive(Debug)]
pub struct Mutex<T> {
    made: &'static Location<'static>,
    inner: backend::Mutex<T>,
}

/// A mutex that is held.
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    guard: ManuallyDrop<backend::MutexGuard<'a, T>>,
    /// When it was taken, for `lock_stats`; 0 while these are off.
    since: u64,
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard is dropped once, here, or taken by `into_parts`, which does not drop `self`.
        let mut unlock = || unsafe { ManuallyDrop::drop(&mut self.guard) };
        match self.since {
            0 => unlock(),
            since => lock_stats::released(self.mutex.class(), since, unlock),
        }
    }
}

impl<'a, T> MutexGuard<'a, T> {
    /// For a condition's wait: as if given back here.
    fn into_parts(self) -> (&'a Mutex<T>, backend::MutexGuard<'a, T>) {
        let mut this = ManuallyDrop::new(self);
        if this.since != 0 {
            lock_stats::released(this.mutex.class(), this.since, || ());
        }
        // SAFETY: `this` is not used and not dropped afterwards.
        let guard = unsafe { ManuallyDrop::take(&mut this.guard) };
        (this.mutex, guard)
    }
}

impl<T: Default> Default for Mutex<T> {
    #[track_caller]
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> Mutex<T> {
    /// Wraps `value`.
    #[track_caller]
    pub fn new(value: T) -> Mutex<T> {
        Mutex { made: Location::caller(), inner: backend::Mutex::new(value) }
    }

    fn class(&self) -> Of {
        Of::Place(self.made, Kind::Mutex)
    }

    #[inline]
    fn hold<'a>(&'a self, guard: backend::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let since = if lock_stats::is_on() { lock_stats::acquired(self.class()) } else { 0 };
        MutexGuard { mutex: self, guard: ManuallyDrop::new(guard), since }
    }

    /// Waits for the mutex.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(feature = "count")]
        crate::counted::count_write(self);
        // Under a model the whole wait is the model's.
        let free = if cfg!(any(loom, shuttle)) { None } else { free(self.inner.try_lock()) };
        let guard = free.unwrap_or_else(|| self.lock_contended());
        self.hold(guard)
    }

    /// Takes the mutex when it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        free(self.inner.try_lock()).map(|guard| self.hold(guard))
    }

    /// Without the reference to the mutex, so that the returned value fits into registers.
    #[cold]
    fn lock_contended(&self) -> backend::MutexGuard<'_, T> {
        let _waiting = waits::enter(Wait::Mutex);
        let _counted = unless_modelled(self.class());
        match simulation::current() {
            Some(here) => until(&here, || free(self.inner.try_lock())),
            None => self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner()),
        }
    }
}

/// A model's locks are always taken the slow way.
fn unless_modelled(of: Of) -> Option<lock_stats::Waiting> {
    (!cfg!(any(loom, shuttle))).then(|| lock_stats::begin(of))
}

/// On a simulated machine: tries until it succeeds, while others run.
fn until<T>(here: &simulation::Here, attempt: impl Fn() -> Option<T>) -> T {
    loop {
        if let Some(value) = attempt() {
            return value;
        }
        here.give_way();
    }
}

/// A reader-writer lock that is never poisoned. `lock_stats` knows it by the place where it was made.
#[derive(Debug)]
pub struct RwLock<T> {
    made: &'static Location<'static>,
    inner: backend::RwLock<T>,
}

/// A reader-writer lock that is held, exclusively or with others.
pub struct RwLockGuard<G> {
    guard: ManuallyDrop<G>,
    made: &'static Location<'static>,
    /// As in `MutexGuard`.
    since: u64,
}

/// Shared access.
pub type RwLockReadGuard<'a, T> = RwLockGuard<backend::RwLockReadGuard<'a, T>>;
/// Exclusive access.
pub type RwLockWriteGuard<'a, T> = RwLockGuard<backend::RwLockWriteGuard<'a, T>>;

impl<G: std::ops::Deref> std::ops::Deref for RwLockGuard<G> {
    type Target = G::Target;

    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: std::ops::DerefMut> std::ops::DerefMut for RwLockGuard<G> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<G> Drop for RwLockGuard<G> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard is dropped once, here.
        let mut unlock = || unsafe { ManuallyDrop::drop(&mut self.guard) };
        match self.since {
            0 => unlock(),
            since => lock_stats::released(Of::Place(self.made, Kind::RwLock), since, unlock),
        }
    }
}

impl<T: Default> Default for RwLock<T> {
    #[track_caller]
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> RwLock<T> {
    /// Wraps `value`.
    #[track_caller]
    pub fn new(value: T) -> RwLock<T> {
        RwLock { made: Location::caller(), inner: backend::RwLock::new(value) }
    }

    fn class(&self) -> Of {
        Of::Place(self.made, Kind::RwLock)
    }

    #[inline]
    fn hold<G>(&self, guard: G) -> RwLockGuard<G> {
        let since = if lock_stats::is_on() { lock_stats::acquired(self.class()) } else { 0 };
        RwLockGuard { guard: ManuallyDrop::new(guard), made: self.made, since }
    }

    /// Waits for shared access.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        #[cfg(feature = "count")]
        crate::counted::count_write(self);
        let modelled = cfg!(any(loom, shuttle));
        let free = if modelled { None } else { free(self.inner.try_read()) };
        let guard = free.unwrap_or_else(|| self.read_contended());
        self.hold(guard)
    }

    /// Waits for exclusive access.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        #[cfg(feature = "count")]
        crate::counted::count_write(self);
        let modelled = cfg!(any(loom, shuttle));
        let free = if modelled { None } else { free(self.inner.try_write()) };
        let guard = free.unwrap_or_else(|| self.write_contended());
        self.hold(guard)
    }

    #[cold]
    fn read_contended(&self) -> backend::RwLockReadGuard<'_, T> {
        let _waiting = waits::enter(Wait::Mutex);
        let _counted = unless_modelled(self.class());
        match simulation::current() {
            Some(here) => until(&here, || free(self.inner.try_read())),
            None => self.inner.read().unwrap_or_else(|poisoned| poisoned.into_inner()),
        }
    }

    #[cold]
    fn write_contended(&self) -> backend::RwLockWriteGuard<'_, T> {
        let _waiting = waits::enter(Wait::Mutex);
        let _counted = unless_modelled(self.class());
        match simulation::current() {
            Some(here) => until(&here, || free(self.inner.try_write())),
            None => self.inner.write().unwrap_or_else(|poisoned| poisoned.into_inner()),
        }
    }
}

/// The result of an attempt.
#[inline]
fn free<G>(attempt: Result<G, std::sync::TryLockError<G>>) -> Option<G> {
    match attempt {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// Why a wait with a limit is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It was notified, or woke for no reason.
    Notified,
    /// Its time was up.
    TimedOut,
}

/// A condition variable for `Mutex`. A thread that waits for it counts as idle, unless its caller is inside a wait of another kind (`waits::enter`): most conditions are
/// a background thread's next turn.
#[derive(Default, Debug)]
pub struct Condvar(backend::Condvar);

impl Condvar {
    /// A new condition.
    pub fn new() -> Condvar {
        Condvar(backend::Condvar::new())
    }

    fn key(&self) -> Key {
        Key::Condition(std::ptr::from_ref(self).addr())
    }

    /// Gives the mutex up until notified.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let _waiting = waits::enter(Wait::Idle);
        let (mutex, guard) = guard.into_parts();
        if let Some(here) = simulation::current() {
            // No other thread runs between the two.
            drop(guard);
            here.wait(self.key(), None);
            return mutex.lock();
        }
        let guard = self.0.wait(guard).unwrap_or_else(|poisoned| poisoned.into_inner());
        mutex.hold(guard)
    }

    /// Like `wait`, for at most `limit`.
    pub fn wait_for<'a, T>(&self, guard: MutexGuard<'a, T>, limit: Duration) -> MutexGuard<'a, T> {
        self.wait_at_most(guard, limit).0
    }

    /// Like `wait_for`, and returns why the wait ended.
    pub fn wait_at_most<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        limit: Duration,
    ) -> (MutexGuard<'a, T>, Waited) {
        let _waiting = waits::enter(Wait::Idle);
        let (mutex, guard) = guard.into_parts();
        if let Some(here) = simulation::current() {
            drop(guard);
            let woken = here.wait(self.key(), Some(limit));
            let waited = match woken {
                Woken::TimedOut => Waited::TimedOut,
                Woken::Notified | Woken::Interrupted => Waited::Notified,
            };
            return (mutex.lock(), waited);
        }
        let waited = self.0.wait_timeout(guard, limit);
        let (guard, timeout) = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        let waited = if timeout.timed_out() { Waited::TimedOut } else { Waited::Notified };
        (mutex.hold(guard), waited)
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) {
        match simulation::current() {
            Some(here) => here.wake_one(self.key()),
            None => self.0.notify_one(),
        }
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) {
        match simulation::current() {
            Some(here) => here.wake_all(self.key()),
            None => self.0.notify_all(),
        }
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
    match simulation::current() {
        Some(here) => here.give_way(),
        None => core::hint::spin_loop(),
    }
}

/// Sleeps until `unpark_all` on the same address, unless `still_needed` says no under the queue's lock. May wake early.
#[cfg(not(any(loom, shuttle)))]
pub fn park(address: usize, still_needed: impl FnOnce() -> bool) {
    if let Some(here) = simulation::current() {
        // No other thread runs between the two.
        if still_needed() {
            here.wait(Key::Parked(address), None);
        }
        return;
    }
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
    if let Some(here) = simulation::current() {
        return here.wake_all(Key::Parked(address));
    }
    // SAFETY: as for `park`.
    unsafe {
        parking_lot_core::unpark_all(address, parking_lot_core::DEFAULT_UNPARK_TOKEN);
    }
}

#[cfg(any(loom, shuttle))]
pub use crate::model::{park, unpark_all};
