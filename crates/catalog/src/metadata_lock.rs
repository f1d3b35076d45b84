//! Metadata locks: a table's definition does not change while a statement or transaction uses it.
//!
//! Statements write only to their own session's slot. A session that changes a definition announces it, then scans the slots and
//! waits until none holds the table; a statement that enters its table in its slot looks for announcements afterwards. Both
//! orders are covered because each side first writes its own mark and then, after a full fence, reads the other's.
//!
//! A session that waits may let others pass (`metadata_turn`): statements do not look at its announcement then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, TableId, Wait};
use errors::{Result, bail, err};
use sys::lock_stats::{self, Class, Kind, Of};
use sys::model::breaks;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use crate::metadata_turn::{Door, Holder, LockWait, Turn};
use crate::metadata_waits::{MetadataWaits, TableWait, TableWaits};

/// Tables of a transaction that a build which is broken on purpose keeps for ever, when it has more.
const LEAKED: usize = 4;

/// How a statement uses a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// Reads rows.
    Read,
    /// Writes rows.
    Write,
}

/// The uses that an announcement forbids to all other sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Locks of all tables: some definition is about to change.
    Intent,
    /// Other changes of the definition: long work during which others may use the table.
    Definition,
    /// Writing: LOCK TABLES ... READ, FLUSH TABLES WITH READ LOCK.
    NoWrite,
    /// Any use: DDL, LOCK TABLES ... WRITE.
    Exclusive,
}

impl LockMode {
    /// Whether two sessions' announcements of a table exclude each other.
    fn clashes(self, other: LockMode) -> bool {
        self == LockMode::Exclusive
            || other == LockMode::Exclusive
            || self == LockMode::Definition && other == LockMode::Definition
            || self == LockMode::Intent && other == LockMode::NoWrite
            || self == LockMode::NoWrite && other == LockMode::Intent
    }

    /// The use of a table that a lock is counted as.
    fn usage(self) -> Usage {
        match self {
            LockMode::NoWrite | LockMode::Intent => Usage::Read,
            LockMode::Definition | LockMode::Exclusive => Usage::Write,
        }
    }

    fn forbids(self, usage: Usage) -> bool {
        match self {
            LockMode::Exclusive => true,
            LockMode::NoWrite => usage == Usage::Write,
            LockMode::Definition | LockMode::Intent => false,
        }
    }
}

#[derive(Debug, Default)]
struct Held {
    tables: Vec<(TableId, Usage)>,
    /// How often all were released: tells one transaction of the session from the next.
    releases: u32,
}

/// The tables that a session's statement or transaction uses, or a prepared transaction. Its mutex is contended only by DDL.
#[derive(Debug)]
pub struct MetadataSlot {
    owner: u64,
    held: Mutex<Held>,
    /// Whether its transaction is between two statements, or is a prepared one that no session decides now: a lock of all tables does
    /// not wait for it; instead it waits for that lock before it writes or commits.
    rests: AtomicBool,
}

impl MetadataSlot {
    /// Whether these uses, or stronger ones, are already entered.
    pub fn holds(&self, tables: &[(TableId, Usage)]) -> bool {
        let held = self.held.lock();
        tables.iter().all(|(table, usage)| {
            held.tables.iter().any(|(known, before)| known == table && before >= usage)
        })
    }

    /// The number of entries: a position for `release_to`.
    pub fn mark(&self) -> usize {
        self.held.lock().tables.len()
    }

    /// Releases everything entered since `mark`; 0 releases all.
    pub fn release_to(&self, mark: usize) {
        let mut held = self.held.lock();
        if !(held.tables.len() > LEAKED && breaks("metadata locks end with their transaction")) {
            held.tables.truncate(mark);
        }
        held.releases = held.releases.wrapping_add(u32::from(mark == 0));
    }

    /// Adds the tables that a statement uses; returns the position before them.
    fn enter(&self, tables: &[(TableId, Usage)]) -> usize {
        if tables.iter().any(|(_, usage)| *usage == Usage::Write) {
            self.rests.store(false, Ordering::Relaxed);
        }
        let mut held = self.held.lock();
        let mark = held.tables.len();
        held.tables.extend_from_slice(tables);
        mark
    }

    /// Ends a statement. The tables that the transaction used stay entered.
    pub fn rest(&self) {
        self.rests.store(true, Ordering::Relaxed);
    }

    /// The slot as a holder that blocks one of these locks.
    fn blocks(&self, wanted: &[(Option<TableId>, LockMode)]) -> Option<Holder> {
        let held = self.held.lock();
        let rests = self.rests.load(Ordering::Relaxed);
        let blocks = |(table, mode): &(Option<TableId>, LockMode)| {
            let is_used = |(used, usage): &(TableId, Usage)| {
                table.is_none_or(|table| table == *used) && mode.forbids(*usage)
            };
            (table.is_some() || !rests) && held.tables.iter().any(is_used)
        };
        let holder = Holder { owner: self.owner, releases: held.releases };
        wanted.iter().any(blocks).then_some(holder)
    }
}

/// What an announcement means to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its session waits, and lets new uses of the table pass.
    Passing,
    /// Its session waits, and new uses wait for it, but not for long: then it lets them pass again.
    Briefly,
    /// Its session waits, and new uses wait for it.
    Queueing,
    /// No forbidden use is left.
    Held,
}

#[derive(Debug)]
struct Announcement {
    /// The request that it belongs to.
    ticket: u64,
    owner: u64,
    /// `None` for all tables.
    table: Option<TableId>,
    mode: LockMode,
    state: State,
}

impl Announcement {
    fn is_waiting(&self) -> bool {
        self.state != State::Held
    }

    /// Whether statements have to look at it.
    fn concerns_statements(&self) -> bool {
        self.state != State::Passing
            && match self.mode {
                LockMode::Definition | LockMode::Intent => false,
                LockMode::NoWrite | LockMode::Exclusive => true,
            }
    }

    fn forbids(&self, usage: Usage) -> bool {
        self.state != State::Passing && self.mode.forbids(usage)
    }
}

/// A metadata lock, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataLockView {
    /// The session, or a number above those of sessions for a prepared transaction.
    pub owner: u64,
    /// `None` for all tables.
    pub table: Option<TableId>,
    /// What it is for.
    pub purpose: Purpose,
    /// Whether its session still waits for others.
    pub is_waiting: bool,
}

/// What a metadata lock is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A statement or transaction uses the table.
    Use(Usage),
    /// A session keeps others from uses.
    Lock(LockMode),
}

/// The server's metadata locks.
#[derive(Debug, Default)]
pub struct MetadataLocks {
    /// Number of announcements that concern statements: the only shared value that a statement reads.
    announced: AtomicU64,
    announcements: Mutex<Vec<Announcement>>,
    /// In an order of their own, not that of a hash with a random start: a model repeats the schedules of an earlier run.
    slots: Mutex<BTreeMap<u64, Arc<MetadataSlot>>>,
    /// Slots of prepared transactions so far.
    resting: AtomicU64,
    /// Requests for locks so far.
    tickets: AtomicU64,
    /// Sessions that wait to make an announcement, and whose announcement is in the way.
    queued: Mutex<BTreeMap<u64, u64>>,
    waits: MetadataWaits,
}

/// How often a waiter checks again.
const POLL: Duration = Duration::from_millis(1);

impl MetadataLocks {
    /// No locks.
    pub fn new() -> MetadataLocks {
        MetadataLocks::default()
    }

    /// All locks, held and waited for.
    pub fn views(&self) -> Vec<MetadataLockView> {
        let slots: Vec<_> = self.slots.lock().values().cloned().collect();
        let uses = slots.iter().flat_map(|slot| {
            let held = slot.held.lock();
            let view = |(table, usage): &(TableId, Usage)| MetadataLockView {
                owner: slot.owner,
                table: Some(*table),
                purpose: Purpose::Use(*usage),
                is_waiting: false,
            };
            held.tables.iter().map(view).collect::<Vec<_>>()
        });
        let mut views: Vec<_> = uses.collect();
        let announcements = self.announcements.lock();
        views.extend(announcements.iter().map(|one| MetadataLockView {
            owner: one.owner,
            table: one.table,
            purpose: Purpose::Lock(one.mode),
            is_waiting: one.is_waiting(),
        }));
        views
    }

    /// The waits for each table that was waited for.
    pub fn waits(&self) -> Vec<(TableId, TableWaits)> {
        self.waits.all()
    }

    /// A slot for session `owner`.
    pub fn register(&self, owner: u64) -> Arc<MetadataSlot> {
        let (held, rests) = (Mutex::default(), AtomicBool::new(false));
        let slot = Arc::new(MetadataSlot { owner, held, rests });
        self.slots.lock().insert(owner, slot.clone());
        slot
    }

    /// A slot for a prepared transaction that uses these tables.
    pub fn register_prepared(&self, tables: Vec<(TableId, Usage)>) -> Arc<MetadataSlot> {
        self.put_prepared(&mut self.slots.lock(), tables)
    }

    /// Moves the tables that a session's transaction uses to a separate slot.
    pub fn detach(&self, from: &MetadataSlot) -> Arc<MetadataSlot> {
        // A scan of the slots sees the tables in one of the two.
        let mut slots = self.slots.lock();
        let tables = std::mem::take(&mut from.held.lock().tables);
        self.put_prepared(&mut slots, tables)
    }

    fn put_prepared(
        &self,
        slots: &mut BTreeMap<u64, Arc<MetadataSlot>>,
        tables: Vec<(TableId, Usage)>,
    ) -> Arc<MetadataSlot> {
        /// Above the numbers of sessions.
        const FIRST: u64 = 1 << 63;
        let owner = FIRST + self.resting.fetch_add(1, Ordering::Relaxed);
        let held = Mutex::new(Held { tables, releases: 0 });
        let rests = AtomicBool::new(true);
        let slot = Arc::new(MetadataSlot { owner, held, rests });
        slots.insert(owner, slot.clone());
        slot
    }

    /// Before session `owner` commits its own or a prepared transaction's changes: waits while another session locks all tables. From here on, a
    /// session that wants to lock all tables waits for `slot`.
    ///
    /// # Errors
    /// 1205 after `timeout`, cancelled; the slot rests again.
    pub fn wake(
        &self,
        slot: &MetadataSlot,
        owner: u64,
        timeout: Duration,
        cancel: &CancelToken,
    ) -> Result<()> {
        let mut waited = Duration::ZERO;
        loop {
            slot.rests.store(false, Ordering::Relaxed);
            // As in `use_tables`.
            fence(Ordering::SeqCst);
            let announcements = self.announcements.lock();
            let is_locked = announcements.iter().any(|other| {
                other.owner != owner
                    && other.table.is_none()
                    && !other.is_waiting()
                    && other.mode.forbids(Usage::Write)
            });
            drop(announcements);
            if !is_locked {
                return Ok(());
            }
            slot.rest();
            if waited >= timeout {
                bail!(LOCK_WAIT_TIMEOUT);
            }
            cancel.check()?;
            sys::blocking::blocking(|| poll(cancel, Wait::GlobalReadLock));
            waited += POLL;
        }
    }

    /// The session ended.
    pub fn unregister(&self, slot: &MetadataSlot) {
        if breaks("metadata locks end with their transaction") {
            return;
        }
        self.slots.lock().remove(&slot.owner);
    }

    /// Enters the tables of a statement. Returns whether it had to wait: definitions may have changed then.
    ///
    /// # Errors
    /// 1205 after `timeout`, 1213 when the other side waits for this session, cancelled.
    pub fn use_tables(
        &self,
        slot: &MetadataSlot,
        tables: &[(TableId, Usage)],
        timeout: Duration,
        cancel: &CancelToken,
    ) -> Result<bool> {
        let unannounced =
            breaks("enter before looking") && self.announced.load(Ordering::Relaxed) == 0;
        let mark = slot.enter(tables);
        // Pairs with the fence in `announce`.
        fence(Ordering::SeqCst);
        if unannounced || self.announced.load(Ordering::Relaxed) == 0 {
            return Ok(false);
        }
        sys::blocking::blocking(|| self.use_tables_slowly(slot, tables, mark, timeout, cancel))
    }

    #[cold]
    fn use_tables_slowly(
        &self,
        slot: &MetadataSlot,
        tables: &[(TableId, Usage)],
        mark: usize,
        timeout: Duration,
        cancel: &CancelToken,
    ) -> Result<bool> {
        let mut waited = Duration::ZERO;
        let mut had_to_wait = false;
        let mut table_wait = TableWait::new(&self.waits);
        loop {
            let Some((circular, wait, locked)) = self.conflict(slot, tables) else {
                return Ok(had_to_wait);
            };
            let uses = tables.iter().filter(|(table, _)| locked == Some(*table));
            table_wait.begin(|| uses.copied().max());
            slot.held.lock().tables.truncate(mark);
            slot.rest();
            if circular {
                bail!(LOCK_DEADLOCK);
            }
            if waited >= timeout {
                bail!(LOCK_WAIT_TIMEOUT);
            }
            cancel.check()?;
            had_to_wait = true;
            poll(cancel, wait);
            waited += POLL;
            slot.enter(tables);
            fence(Ordering::SeqCst);
        }
    }

    /// Whether another session's announcement forbids the use: `true` when that session waits for this one, the wait of this one, and the table that it waits for.
    fn conflict(
        &self,
        slot: &MetadataSlot,
        tables: &[(TableId, Usage)],
    ) -> Option<(bool, Wait, Option<TableId>)> {
        let announcements = self.announcements.lock();
        let held = slot.held.lock();
        let held = &held.tables;
        let earlier = &held[..held.len().saturating_sub(tables.len())];
        // The announcer waits for a table that this transaction has used before: using it again changes nothing.
        let is_new = |table: &TableId, usage: &Usage| {
            !earlier.iter().any(|(known, before)| known == table && before >= usage)
        };
        // A lock of all tables is taken while this transaction rests.
        let is_global = |announcement: &Announcement| {
            announcement.table.is_none() && !announcement.is_waiting()
        };
        let hit = announcements.iter().find(|announcement| {
            announcement.owner != slot.owner
                && tables.iter().any(|(table, usage)| {
                    announcement.table.is_none_or(|locked| locked == *table)
                        && announcement.forbids(*usage)
                        && (is_global(announcement) || is_new(table, usage))
                })
        })?;
        let owner = hit.owner;
        // A session that wants all tables waits for statements only.
        let gives_way = hit.state == State::Briefly;
        let circular = announcements.iter().any(|announcement| {
            !gives_way
                && announcement.owner == owner
                && announcement.is_waiting()
                && earlier.iter().any(|(table, usage)| {
                    announcement.table == Some(*table) && announcement.mode.forbids(*usage)
                })
        });
        Some((circular, wait_for(hit.table, hit.table), hit.table))
    }

    /// Locks tables (`None`: all tables) for session `owner` and waits until no other session uses them.
    ///
    /// # Errors
    /// 1205 after the wait's timeout, 1213 when others wait for this session in a circle, cancelled.
    pub fn lock(
        self: &Arc<Self>,
        owner: u64,
        tables: &[(Option<TableId>, LockMode)],
        wait: impl Into<LockWait>,
        cancel: &CancelToken,
    ) -> Result<MetadataGuard> {
        let wait = wait.into();
        sys::blocking::blocking(|| self.lock_slowly(owner, tables, wait, cancel))
    }

    /// Before session `owner` changes definitions of any kind: waits while another locks all tables, and keeps others from doing so.
    ///
    /// # Errors
    /// As `lock`.
    pub fn lock_definitions(
        self: &Arc<Self>,
        owner: u64,
        timeout: Duration,
        cancel: &CancelToken,
    ) -> Result<MetadataGuard> {
        // Of no table: it conflicts only with locks of all tables.
        let nothing = TableId(u64::MAX - owner);
        self.lock(owner, &[(Some(nothing), LockMode::Intent)], timeout, cancel)
    }

    fn lock_slowly(
        self: &Arc<Self>,
        owner: u64,
        tables: &[(Option<TableId>, LockMode)],
        wait: LockWait,
        cancel: &CancelToken,
    ) -> Result<MetadataGuard> {
        let guard = self.announce(owner, tables, wait.timeout, cancel)?;
        let is_global = tables.iter().any(|(table, _)| table.is_none());
        let kind = if is_global { Wait::GlobalReadLock } else { Wait::MetadataLock };
        let mut turn = Turn::new(wait.policy);
        let mut waited = Duration::ZERO;
        let mut table_wait = TableWait::new(&self.waits);
        loop {
            if self.take_turn(&guard, tables, &mut turn, waited) {
                self.set(&guard, tables, State::Held);
                // A session that rested may have continued before it could see that: one of the two gives way. Pairs with the fence in `wake`.
                let looks = is_global && !breaks("look again behind the lock");
                if !looks || self.holders(owner, tables).is_empty() {
                    return Ok(guard);
                }
                self.set(&guard, tables, State::Queueing);
            }
            table_wait.begin(|| self.first_used(owner, tables));
            if self.is_circular(owner) {
                bail!(LOCK_DEADLOCK);
            }
            if waited >= wait.timeout {
                bail!(LOCK_WAIT_TIMEOUT);
            }
            cancel.check()?;
            poll(cancel, kind);
            waited += POLL;
        }
    }

    /// Whether no forbidden use is left. New ones pass or queue until the next call, as `turn` decides.
    fn take_turn(
        &self,
        guard: &MetadataGuard,
        tables: &[(Option<TableId>, LockMode)],
        turn: &mut Turn,
        waited: Duration,
    ) -> bool {
        match turn.door(|| self.holders(guard.owner, tables), waited) {
            Door::Open => {
                self.set(guard, tables, State::Passing);
                false
            }
            Door::Closed => {
                self.set(
                    guard,
                    tables,
                    if turn.passes() { State::Briefly } else { State::Queueing },
                );
                self.holders(guard.owner, tables).is_empty()
            }
        }
    }

    /// Sets the state of a request for some of its tables.
    fn set(&self, guard: &MetadataGuard, tables: &[(Option<TableId>, LockMode)], state: State) {
        let mut announcements = self.announcements.lock();
        let is_meant = |own: &&mut Announcement| {
            own.ticket == guard.ticket && tables.iter().any(|(table, _)| *table == own.table)
        };
        announcements.iter_mut().filter(is_meant).for_each(|own| own.state = state);
        self.tell_statements(&announcements);
    }

    /// Call after every change of the announcements. Afterwards a statement sees the change, or its tables are seen in its slot.
    fn tell_statements(&self, announcements: &[Announcement]) {
        let concern = announcements.iter().filter(|own| own.concerns_statements()).count();
        self.announced.store(concern as u64, Ordering::Relaxed);
        // Pairs with the fence in `use_tables`.
        fence(Ordering::SeqCst);
    }

    /// Makes the announcement once no other announcement is in its way.
    fn announce(
        self: &Arc<Self>,
        owner: u64,
        tables: &[(Option<TableId>, LockMode)],
        timeout: Duration,
        cancel: &CancelToken,
    ) -> Result<MetadataGuard> {
        let mut waited = Duration::ZERO;
        let mut table_wait = TableWait::new(&self.waits);
        let _queued = Queued { locks: self, owner };
        loop {
            let mut announcements = self.announcements.lock();
            let clash = tables.iter().find_map(|(table, mode)| {
                let other = clash(&announcements, owner, *table, *mode)?;
                let wanted = other.table.and(*table).map(|table| (table, mode.usage()));
                Some((other.owner, wait_for(*table, other.table), wanted))
            });
            let Some((holder, wait, wanted)) = clash else {
                let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
                announcements.extend(tables.iter().map(|(table, mode)| Announcement {
                    ticket,
                    owner,
                    table: *table,
                    mode: *mode,
                    state: State::Passing,
                }));
                let tables = tables.iter().map(|(table, _)| *table).collect();
                return Ok(MetadataGuard { locks: self.clone(), owner, ticket, tables });
            };
            drop(announcements);
            table_wait.begin(|| wanted);
            self.queued.lock().insert(owner, holder);
            if self.is_circular(owner) {
                bail!(LOCK_DEADLOCK);
            }
            if waited >= timeout {
                bail!(LOCK_WAIT_TIMEOUT);
            }
            cancel.check()?;
            poll(cancel, wait);
            waited += POLL;
        }
    }

    /// Whether session `owner`, which waits, waits for itself through others, and is the one of them that gives way: the youngest.
    fn is_circular(&self, owner: u64) -> bool {
        let slots: Vec<Arc<MetadataSlot>> = {
            let slots = self.slots.lock();
            let own_uses = slots.get(&owner).map_or(0, |slot| slot.mark());
            let holds = |one: &Announcement| one.owner == owner && !one.is_waiting();
            if own_uses == 0 && !self.announcements.lock().iter().any(holds) {
                return false;
            }
            slots.values().cloned().collect()
        };
        let announcements = self.announcements.lock();
        let queued = self.queued.lock();
        let next_of = |session: u64| {
            let wanted =
                announcements.iter().filter(|one| one.owner == session && one.is_waiting());
            let wanted: Vec<_> = wanted.map(|one| (one.table, one.mode)).collect();
            let others = slots.iter().filter(|slot| slot.owner != session);
            let users = others.filter(|slot| slot.blocks(&wanted).is_some());
            let mut next: Vec<u64> = users.map(|slot| slot.owner).collect();
            next.extend(queued.get(&session));
            next
        };
        // The sessions seen, each with the position of the one that waits for it.
        let mut seen = vec![(owner, 0)];
        let mut at = 0;
        while let Some((session, _)) = seen.get(at).copied() {
            for next in next_of(session) {
                if next == owner {
                    let from = |at: &usize| (*at > 0).then(|| seen[*at].1);
                    let mut circle = std::iter::successors(Some(at), from);
                    return circle.all(|member| seen[member].0 <= owner);
                }
                if !seen.iter().any(|(known, _)| *known == next) {
                    seen.push((next, at));
                }
            }
            at += 1;
        }
        false
    }

    /// Keeps the exclusive locks that a session has on tables until the new guard is dropped too.
    pub fn keep(self: &Arc<Self>, owner: u64) -> Option<MetadataGuard> {
        let mut announcements = self.announcements.lock();
        let is_kept = |one: &&Announcement| {
            one.owner == owner
                && one.table.is_some()
                && one.mode == LockMode::Exclusive
                && !one.is_waiting()
        };
        let mut tables: Vec<TableId> =
            announcements.iter().filter(is_kept).filter_map(|one| one.table).collect();
        tables.sort_unstable();
        tables.dedup();
        if tables.is_empty() {
            return None;
        }
        let ticket = self.tickets.fetch_add(1, Ordering::Relaxed);
        announcements.extend(tables.iter().map(|table| Announcement {
            ticket,
            owner,
            table: Some(*table),
            mode: LockMode::Exclusive,
            state: State::Held,
        }));
        self.tell_statements(&announcements);
        drop(announcements);
        let tables = tables.into_iter().map(Some).collect();
        Some(MetadataGuard { locks: self.clone(), owner, ticket, tables })
    }

    /// Makes this session's announcement exclusive and waits until no other session uses its table.
    fn upgrade(
        &self,
        guard: &MetadataGuard,
        table: Option<TableId>,
        wait: LockWait,
        cancel: &CancelToken,
    ) -> Result<()> {
        let wanted = [(table, LockMode::Exclusive)];
        let (mut waited, mut announced) = (Duration::ZERO, false);
        let mut turn = Turn::new(wait.policy);
        let mut table_wait = TableWait::new(&self.waits);
        loop {
            if !announced {
                let mut announcements = self.announcements.lock();
                if clash(&announcements, guard.owner, table, LockMode::Exclusive).is_none() {
                    let exclusive = (LockMode::Exclusive, State::Passing);
                    change(&mut announcements, guard.ticket, table, exclusive);
                    announced = true;
                }
            }
            if announced && self.take_turn(guard, &wanted, &mut turn, waited) {
                self.set(guard, &wanted, State::Held);
                return Ok(());
            }
            let given_up = match waited >= wait.timeout {
                _ if self.is_circular(guard.owner) => Err(err!(LOCK_DEADLOCK)),
                true => Err(err!(LOCK_WAIT_TIMEOUT)),
                false => cancel.check(),
            };
            if given_up.is_err() {
                let mut announcements = self.announcements.lock();
                let back = (LockMode::Definition, State::Held);
                change(&mut announcements, guard.ticket, table, back);
                self.tell_statements(&announcements);
                return given_up;
            }
            table_wait.begin(|| table.map(|table| (table, Usage::Write)));
            poll(cancel, wait_for(table, table));
            waited += POLL;
        }
    }

    /// The first of these tables that others use in a way that its lock forbids.
    fn first_used(
        &self,
        owner: u64,
        tables: &[(Option<TableId>, LockMode)],
    ) -> Option<(TableId, Usage)> {
        let used = tables.iter().find(|one| !self.holders(owner, &[**one]).is_empty())?;
        used.0.map(|table| (table, used.1.usage()))
    }

    /// The slots of other sessions with uses that these locks forbid.
    fn holders(&self, owner: u64, tables: &[(Option<TableId>, LockMode)]) -> Vec<Holder> {
        let slots = self.slots.lock();
        let others = slots.values().filter(|slot| slot.owner != owner);
        others.filter_map(|slot| slot.blocks(tables)).collect()
    }
}

/// The wait of a session that wants `table` where another has announced `other`; `None` means all tables.
fn wait_for(table: Option<TableId>, other: Option<TableId>) -> Wait {
    let is_global = table.is_none() || other.is_none();
    if is_global { Wait::GlobalReadLock } else { Wait::MetadataLock }
}

static DEFINITIONS: Class = Class::new("metadata lock", Kind::MetadataLock);

/// Sleeps until another check is worthwhile.
fn poll(cancel: &CancelToken, wait: Wait) {
    let _waiting = cancel.waiting(wait);
    let _waits = sys::waits::enter(sys::waits::Wait::MetadataLock);
    let _counted = lock_stats::begin(Of::Class(&DEFINITIONS));
    sys::threads::sleep(POLL);
}

/// A session that waits to make an announcement, until it has.
struct Queued<'a> {
    locks: &'a MetadataLocks,
    owner: u64,
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.locks.queued.lock().remove(&self.owner);
    }
}

/// Another session's announcement that excludes one of `mode`.
fn clash(
    announcements: &[Announcement],
    owner: u64,
    table: Option<TableId>,
    mode: LockMode,
) -> Option<&Announcement> {
    announcements.iter().find(|other| {
        let same = match (table, other.table) {
            (Some(table), Some(locked)) => table == locked,
            (None, _) | (_, None) => true,
        };
        other.owner != owner && same && mode.clashes(other.mode)
    })
}

/// Changes the mode and the state of a request's announcement.
fn change(
    announcements: &mut [Announcement],
    ticket: u64,
    table: Option<TableId>,
    (mode, state): (LockMode, State),
) {
    for own in announcements.iter_mut().filter(|own| own.ticket == ticket && own.table == table) {
        (own.mode, own.state) = (mode, state);
    }
}

impl MetadataGuard {
    /// Lets others use the tables again; no other session can change their definitions.
    pub fn downgrade(&mut self) {
        let mut announcements = self.locks.announcements.lock();
        for table in &self.tables {
            let downgraded = (LockMode::Definition, State::Held);
            change(&mut announcements, self.ticket, *table, downgraded);
        }
        self.locks.tell_statements(&announcements);
    }

    /// Excludes all other sessions again, and waits until none uses the tables. After a failure the tables locked so far stay locked.
    ///
    /// # Errors
    /// 1205 after the wait's timeout, cancelled.
    pub fn upgrade(&mut self, wait: impl Into<LockWait>, cancel: &CancelToken) -> Result<()> {
        let wait = wait.into();
        let upgrade = |table| self.locks.upgrade(self, table, wait, cancel);
        sys::blocking::blocking(|| self.tables.iter().try_for_each(|table| upgrade(*table)))
    }
}

/// Keeps locks until dropped.
#[derive(Debug)]
#[must_use]
pub struct MetadataGuard {
    locks: Arc<MetadataLocks>,
    owner: u64,
    ticket: u64,
    tables: Vec<Option<TableId>>,
}

impl Drop for MetadataGuard {
    fn drop(&mut self) {
        let mut announcements = self.locks.announcements.lock();
        announcements.retain(|own| own.ticket != self.ticket);
        self.locks.tell_statements(&announcements);
    }
}
