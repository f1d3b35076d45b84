//! A copy of all locks for reports. Locking continues during the copy: shards are copied one after another, so a lock that moves between
//! two shards may be missing or appear twice.

use std::collections::HashMap;
use std::time::Duration;

use sys::sync::Arc;
use sys::sync::atomic::Ordering;

use crate::owner::Owner;
use crate::table::{LockTable, Mode};
use crate::waits::Waiting;

/// Where a lock is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A record, by its name.
    Record(Box<[u8]>),
    /// A span of keys of a space, against inserts.
    Span {
        /// The space.
        space: u64,
        /// First key.
        start: Vec<u8>,
        /// First key after it; `None` means no limit.
        end: Option<Vec<u8>>,
    },
    /// Many records of a space, packed.
    Packed {
        /// The space.
        space: u64,
        /// Keys, or ranges of them.
        count: usize,
    },
    /// Where a key is to be inserted, by its name.
    Insert(Box<[u8]>),
}

/// One lock, or request for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockView {
    /// Its holder.
    pub owner: u64,
    /// Where.
    pub place: Place,
    /// How.
    pub mode: Mode,
    /// Not granted yet.
    pub is_waiting: bool,
}

/// A holder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerView {
    /// Number of the holder.
    pub id: u64,
    /// As given to `LockTable::new_owner_for`.
    pub tag: Tag,
    /// When it locked or wrote first, since 1970.
    pub started: Duration,
    /// Records that it has locked explicitly.
    pub records: usize,
    /// Spans and sets of packed locks, by space.
    pub spaces: usize,
    /// Changes.
    pub weight: u64,
    /// Since when it waits, since 1970.
    pub waits_since: Option<Duration>,
}

/// The caller's facts about a holder, for its own reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag {
    /// The session that it acts for.
    pub session: u64,
    /// A small number that means something to the user.
    pub kind: u8,
}

/// A copy of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The holders and waiters, in order of their numbers.
    pub owners: Vec<OwnerView>,
    /// The locks that they hold and want.
    pub locks: Vec<LockView>,
    /// Which request waits for which lock or earlier request: positions in `locks`.
    pub waits: Vec<(usize, usize)>,
}

/// A cycle of waits that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When, since 1970.
    pub at: Duration,
    /// The members and what they waited for: each waited for the next one, the last for the first.
    pub members: Vec<(OwnerView, Place)>,
    /// The member that was rolled back.
    pub victim: u64,
}

/// Collects a report of bounded size.
struct Collector {
    report: Report,
    owners: HashMap<u64, Arc<Owner>>,
    limit: usize,
}

impl Collector {
    fn push(&mut self, owner: &Arc<Owner>, place: Place, mode: Mode, is_waiting: bool) {
        self.owners.entry(owner.id).or_insert_with(|| owner.clone());
        self.report.locks.push(LockView { owner: owner.id, place, mode, is_waiting });
    }

    fn is_full(&self) -> bool {
        self.report.locks.len() >= self.limit
    }
}

impl LockTable {
    /// All explicit locks, up to about `limit` of them; their holders, and the owners in `others`, which may hold none.
    pub fn report(&self, limit: usize, others: impl Iterator<Item = Arc<Owner>>) -> Report {
        let owners = others.map(|owner| (owner.id, owner)).collect();
        let mut out = Collector { report: Report::default(), owners, limit };
        self.report_records(&mut out);
        self.ranges.each(|owner, space, start, end| {
            let (start, end) = (start.to_vec(), end.map(<[u8]>::to_vec));
            out.push(owner, Place::Span { space, start, end }, Mode::Exclusive, false);
            !out.is_full()
        });
        self.packed.each(|owner, space, mode, count| {
            out.push(owner, Place::Packed { space, count }, mode, false);
            !out.is_full()
        });
        let waiting = self.waiters.views();
        for waiter in &waiting {
            report_insert(waiter, &mut out);
        }
        let Collector { mut report, owners, .. } = out;
        report.owners = owners.values().map(|owner| owner.view(&waiting)).collect();
        report.owners.sort_by_key(|owner| owner.id);
        report
    }

    fn report_records(&self, out: &mut Collector) {
        for shard in &self.shards {
            if out.is_full() {
                return;
            }
            if shard.count.load(Ordering::Relaxed) == 0 {
                continue;
            }
            for (name, entry) in &*shard.entries.lock() {
                if out.is_full() {
                    return;
                }
                let (first, place) = (out.report.locks.len(), Place::Record(name.clone()));
                for grant in &*entry.granted {
                    out.push(&grant.owner, place.clone(), grant.mode, false);
                }
                for (owner, mode) in &entry.waiting {
                    out.push(owner, place.clone(), *mode, true);
                }
                let pairs = entry.waits().into_iter();
                out.report.waits.extend(pairs.map(|(wants, has)| (first + wants, first + has)));
            }
        }
    }

    /// The deadlock found last.
    pub fn latest_deadlock(&self) -> Option<Deadlock> {
        self.waiters.latest_deadlock()
    }
}

/// Adds the request of a transaction that waits for the end of others, and the spans that block it.
fn report_insert(waiter: &Waiting, out: &mut Collector) {
    let Some((name, others)) = waiter.insert() else { return };
    let (space, key) = crate::packed::split(name);
    let blocks = |lock: &LockView| match &lock.place {
        Place::Span { space: locked, start, end } => {
            *locked == space
                && start.as_slice() <= key
                && end.as_deref().is_none_or(|end| key < end)
        }
        Place::Record(_) | Place::Packed { .. } | Place::Insert(_) => false,
    };
    let locks = out.report.locks.iter().enumerate();
    let blocking = locks.filter(|(_, lock)| others.contains(&lock.owner) && blocks(lock));
    let blocking: Vec<usize> = blocking.map(|(at, _)| at).collect();
    let own = out.report.locks.len();
    out.push(waiter.owner(), Place::Insert(name.into()), Mode::Exclusive, true);
    out.report.waits.extend(blocking.into_iter().map(|at| (own, at)));
}

impl Owner {
    fn view(&self, waiting: &[Waiting]) -> OwnerView {
        let waiter = waiting.iter().find(|waiter| waiter.owner().id == self.id);
        self.view_since(waiter.map(Waiting::since))
    }

    pub(crate) fn view_since(&self, waits_since: Option<Duration>) -> OwnerView {
        let held = self.held.lock();
        OwnerView {
            id: self.id,
            tag: self.tag(),
            started: self.started,
            records: held.names.len() - held.empty,
            spaces: held.spaces.len() + held.packed_spaces.len(),
            weight: self.weight(),
            waits_since,
        }
    }
}
