//! The writer of a version and whether it has ended; the commit clock and the snapshots that readers hold.

use engine_api::{EngineError, TableId};
use locks::Owner;
use sys::sync::atomic::{AtomicU64, Ordering};
use sys::sync::{Arc, Mutex};

/// Commit stamp of a transaction that has not ended.
const ACTIVE: u64 = 0;
/// Commit stamp of a transaction that was undone.
const ABORTED: u64 = u64::MAX;

/// The state of one transaction that others read. Versions point to it for as long as they live.
pub(crate) struct TxnStatus {
    pub(crate) id: u64,
    commit: AtomicU64,
    /// It as a holder of locks.
    pub(crate) owner: Arc<Owner>,
}

impl TxnStatus {
    fn new(id: u64, owner: Arc<Owner>) -> TxnStatus {
        TxnStatus { id, commit: AtomicU64::new(ACTIVE), owner }
    }

    pub(crate) fn is_active(&self) -> bool {
        // Pairs with the Release stores below.
        self.commit.load(Ordering::Acquire) == ACTIVE
    }

    /// Whether it committed at or before `snapshot`.
    pub(crate) fn committed_by(&self, snapshot: u64) -> bool {
        let commit = self.commit.load(Ordering::Acquire);
        commit != ACTIVE && commit <= snapshot
    }

    pub(crate) fn set_aborted(&self) {
        self.commit.store(ABORTED, Ordering::Release);
    }
}

/// A reader's place in the list of snapshots.
pub(crate) struct SnapshotSlot(AtomicU64);

/// No snapshot.
const NO_SNAPSHOT: u64 = 0;
/// A snapshot is being taken: its stamp is not known yet.
const PENDING: u64 = 1;
/// The clock starts above the special slot values.
const FIRST_STAMP: u64 = 2;

/// Draws commit stamps and knows the oldest snapshot.
pub(crate) struct Clock {
    now: AtomicU64,
    commits: Mutex<()>,
    slots: Mutex<Vec<Arc<SnapshotSlot>>>,
    next_txn: AtomicU64,
}

impl Clock {
    pub(crate) fn new() -> Clock {
        Clock {
            now: AtomicU64::new(FIRST_STAMP),
            commits: Mutex::new(()),
            slots: Mutex::new(Vec::new()),
            next_txn: AtomicU64::new(1),
        }
    }

    pub(crate) fn new_status(&self, owner: Arc<Owner>) -> Arc<TxnStatus> {
        Arc::new(TxnStatus::new(self.next_txn.fetch_add(1, Ordering::Relaxed), owner))
    }

    pub(crate) fn new_slot(&self) -> Arc<SnapshotSlot> {
        let slot = Arc::new(SnapshotSlot(AtomicU64::new(NO_SNAPSHOT)));
        self.slots.lock().push(slot.clone());
        slot
    }

    pub(crate) fn drop_slot(&self, slot: &Arc<SnapshotSlot>) {
        self.slots.lock().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// Takes a snapshot. The pending mark comes first, so that `horizon` never passes a stamp that is about to be used.
    pub(crate) fn snapshot(&self, slot: &SnapshotSlot) -> u64 {
        // SeqCst on both sides: either `horizon` sees the mark, or this load sees a clock at least as late as the horizon's.
        slot.0.store(PENDING, Ordering::SeqCst);
        let now = self.now.load(Ordering::SeqCst);
        slot.0.store(now, Ordering::Release);
        now
    }

    pub(crate) fn release(&self, slot: &SnapshotSlot) {
        slot.0.store(NO_SNAPSHOT, Ordering::Release);
    }

    /// Decides a commit. Stamp and clock move under one mutex: a reader of the clock sees every stamp up to it.
    pub(crate) fn commit(&self, status: &TxnStatus) -> u64 {
        let _order = self.commits.lock();
        let stamp = self.now.load(Ordering::Relaxed) + 1;
        status.commit.store(stamp, Ordering::Release);
        self.now.store(stamp, Ordering::SeqCst);
        stamp
    }

    /// No snapshot sees versions older than the newest one at or below this stamp.
    pub(crate) fn horizon(&self) -> u64 {
        let mut horizon = self.now.load(Ordering::SeqCst);
        for slot in self.slots.lock().iter() {
            match slot.0.load(Ordering::SeqCst) {
                NO_SNAPSHOT => {}
                PENDING => return 0,
                stamp => horizon = horizon.min(stamp),
            }
        }
        horizon
    }

    pub(crate) fn now(&self) -> u64 {
        self.now.load(Ordering::Acquire)
    }

    pub(crate) fn open_transactions(&self) -> usize {
        self.slots.lock().len()
    }
}

/// Name of a row in the lock table.
pub(crate) type LockName = Vec<u8>;

/// Names a row for the lock table.
pub(crate) fn row_name(table: TableId, locator: &[u8]) -> LockName {
    let mut name = Vec::new();
    locks::lock_name(table.0, locator, &mut name);
    name
}

/// The obstacle of a lock attempt or a write.
pub(crate) enum Obstacle {
    /// Wait for the row lock, then try again.
    Row(LockName),
    /// Wait until one of these ends, then try again.
    Transactions(Vec<Arc<Owner>>),
    /// Give up.
    Error(EngineError),
}

impl From<EngineError> for Obstacle {
    fn from(error: EngineError) -> Self {
        Obstacle::Error(error)
    }
}
