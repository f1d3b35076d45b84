//! Who may change a shared table, its rows or its definition, when several servers use it.
//!
//! A transaction that writes to a table, or locks rows of it, holds the table's row in `stamps` in shared mode and compares the stamp with the one that this server's
//! catalog follows: the read travels with the first operations. A transaction that changes the definition holds the row exclusively from its beginning to its end. So
//! nobody writes while a definition changes, and nobody writes by an old one: 1297 that names 1412, and the whole transaction is rolled back.

use std::collections::{HashMap, HashSet};

use engine_api::{EngineError, EngineResult, SharedChange, TableId, WaitPolicy};
use errors::{Error, ErrorCode};
use sys::clock;
use sys::sync::Arc;

use crate::error::{LOCKED, NO_ROW, outdated};
use crate::kept::{Kept, Stamp, name_key, number, version_key};
use crate::link::Link;
use crate::shim::{Hold, Kind, NdbTable, Operation};
use crate::table::Table;
use crate::transaction::{NdbEngineTransaction, PAUSE_MAX, PAUSE_MIN};

/// A stamp that is to be read under a lock.
struct Fence {
    table: TableId,
    /// As the catalog follows it.
    stamp: u64,
    read: Operation,
}

/// The stamps that a transaction holds.
#[derive(Default)]
pub(crate) struct Fences {
    /// Tables whose stamps it holds in shared mode, or asks for.
    asked: HashSet<TableId>,
    /// Those that it does not hold yet.
    open: Vec<Fence>,
    is_outdated: bool,
    /// Tables whose definitions it changes, and their rows in `stamps` before.
    defined: HashMap<TableId, Stamp>,
    /// Tables whose definitions it has made known.
    shared: HashSet<TableId>,
    /// Others must look at what has changed.
    pub(crate) has_changes: bool,
}

impl Fences {
    /// The reads that are to travel with the next operations.
    pub(crate) fn reads(&self) -> Vec<Operation> {
        self.open.iter().map(|fence| fence.read.clone()).collect()
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.open.is_empty() || self.is_outdated
    }

    /// Takes over the answers; returns the reads that hold their rows now.
    pub(crate) fn settle(&mut self, reads: Vec<Operation>) -> Vec<Operation> {
        let mut held = Vec::new();
        let mut answers = reads.into_iter();
        let (asked, is_outdated) = (&mut self.asked, &mut self.is_outdated);
        self.open.retain(|fence| {
            let Some(read) = answers.next().filter(|read| read.code != LOCKED) else { return true };
            let same = Stamp::from_row(&read.row).is_some_and(|found| found.stamp == fence.stamp);
            if read.code != 0 || !same {
                asked.remove(&fence.table);
                *is_outdated = true;
            } else {
                held.push(read);
            }
            false
        });
        held
    }

    /// Whether a table that was made or changed is not known to others yet.
    pub(crate) fn has_unshared(&self, own: &HashMap<TableId, Option<Arc<Table>>>) -> bool {
        let changed = own.iter().filter(|(id, table)| id.is_shared() && table.is_some());
        changed.into_iter().any(|(id, _)| !self.shared.contains(id))
    }

    /// The stamp that a table gets in this transaction.
    pub(crate) fn next_stamp(&self, table: TableId) -> u64 {
        self.defined.get(&table).map_or(0, |before| before.stamp + 1)
    }
}

impl NdbEngineTransaction {
    /// The next operations write to the table, or lock rows of it.
    pub(crate) fn fence(&mut self, table: &Table) -> EngineResult<()> {
        let id = table.id();
        if !id.is_shared()
            || self.fences.asked.contains(&id)
            || self.fences.defined.contains_key(&id)
        {
            return Ok(());
        }
        let stamps = self.link()?.stamps.clone();
        let read = Operation::read(&stamps, &Stamp::key(id), Hold::Shared);
        self.fences.asked.insert(id);
        self.fences.open.push(Fence { table: id, stamp: table.stamp, read });
        Ok(())
    }

    /// Waits for the stamps that another server has locked, and compares them.
    ///
    /// # Errors
    /// 1297: the transaction is rolled back. 1205, and the statement must be undone.
    pub(crate) fn pass_fences(&mut self) -> EngineResult<()> {
        let began = clock::monotonic();
        let mut pause = PAUSE_MIN;
        while self.fences.is_open() {
            if self.fences.is_outdated {
                return self.refuse_outdated();
            }
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            if clock::monotonic().saturating_sub(began) > self.lock_wait_timeout {
                return Err(EngineError::LockWaitTimeout);
            }
            sys::blocking::blocking(|| sys::threads::sleep(pause));
            pause = (pause * 2).min(PAUSE_MAX);
            self.execute(&mut [])?;
        }
        Ok(())
    }

    /// The definition is not the one that this server knows: it follows soon.
    fn refuse_outdated(&mut self) -> EngineResult<()> {
        self.rollback_whole();
        // The number that tells the session that its transaction is over.
        let why = outdated();
        let why =
            Error::with(ErrorCode::GET_TEMPORARY_ERRMSG, &[&1412, &why.message(), &"NDBCLUSTER"]);
        Err(EngineError::TransactionLost(why))
    }

    /// A new table: nobody else knows its id.
    pub(crate) fn begin_new_definition(&mut self, id: TableId) -> EngineResult<()> {
        if !id.is_shared() {
            return Ok(());
        }
        let stamps = self.link()?.stamps.clone();
        let nothing = Stamp::default();
        self.write(
            &mut [Operation::new(Kind::Insert, &stamps, &Stamp::key(id), &nothing.to_row())],
            vec![None],
        )?;
        self.fences.defined.insert(id, nothing);
        Ok(())
    }

    /// See `Transaction::lock_definition`.
    pub(crate) fn lock_stamp(&mut self, id: TableId) -> EngineResult<()> {
        if !id.is_shared() || self.fences.defined.contains_key(&id) {
            return Ok(());
        }
        let (link, table) = (self.link()?, self.table(id)?);
        let read = self.read_stamp(&link, id)?;
        match Stamp::from_row(&read.row).filter(|_| read.code == 0) {
            Some(found) if found.stamp == table.stamp => {
                self.fences.defined.insert(id, found);
                Ok(())
            }
            Some(_) | None => self.refuse_outdated(),
        }
    }

    /// Reads a row of `stamps` exclusively. A transaction that has nothing to lose waits in the cluster's queue, so that it has its turn among many who write.
    fn read_stamp(&mut self, link: &Link, id: TableId) -> EngineResult<Operation> {
        let began = clock::monotonic();
        let key = Stamp::key(id);
        while !self.holds_anything() {
            let wait = Operation::read(&link.stamps, &key, Hold::Exclusive).waiting();
            if let Some(read) = self.execute_or_lose(wait)? {
                return Ok(read);
            }
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            if clock::monotonic().saturating_sub(began) > self.lock_wait_timeout {
                return Err(EngineError::LockWaitTimeout);
            }
        }
        let mut read = [Operation::read(&link.stamps, &key, Hold::Exclusive)];
        self.read_locked(&mut read, WaitPolicy::Wait)?;
        let [read] = read;
        Ok(read)
    }

    /// Sets one small row; `None` removes it.
    fn set_row(
        &mut self,
        table: &Arc<NdbTable>,
        key: &[u8],
        new: Option<&[u8]>,
    ) -> EngineResult<()> {
        let mut read = [Operation::read(table, key, Hold::Exclusive)];
        self.read_locked(&mut read, WaitPolicy::Wait)?;
        let [read] = read;
        let old = (read.code == 0).then_some(read.row);
        let write = match new {
            Some(new) => Operation::new(Kind::Write, table, key, new),
            None if old.is_none() => return Ok(()),
            None => Operation::new(Kind::Delete, table, key, &[]),
        };
        self.write(&mut [write], vec![old])
    }

    /// Takes what is known of a dropped table from the other servers.
    pub(crate) fn forget_shared(&mut self, id: TableId) -> EngineResult<()> {
        let Some(before) = self.fences.defined.get(&id).cloned() else { return Ok(()) };
        let link = self.link()?;
        if !before.name.is_empty() {
            self.set_row(&link.names.clone(), &before.name, None)?;
        }
        self.set_row(&link.stamps.clone(), &Stamp::key(id), None)?;
        self.fences.has_changes = true;
        Ok(())
    }

    /// See `Transaction::share_definitions`.
    pub(crate) fn share(&mut self, changes: &[SharedChange<'_>]) -> EngineResult<Vec<u64>> {
        let link = self.link()?;
        let new_name = |change: &SharedChange<'_>| name_key(change.schema, change.name);
        for change in changes {
            self.lock_stamp(change.table)?;
            let before = self.fences.defined.get(&change.table).cloned().unwrap_or_default();
            if !before.name.is_empty() && before.name != new_name(change) {
                self.set_row(&link.names.clone(), &before.name, None)?;
            }
        }
        let mut stamps = Vec::with_capacity(changes.len());
        for change in changes {
            let name = new_name(change);
            let before = self.fences.defined.get(&change.table).cloned().unwrap_or_default();
            if before.name != name {
                self.take_name(&link, &name, change)?;
            }
            let stamp = self.fences.next_stamp(change.table);
            let row = Stamp { stamp, name }.to_row();
            self.set_row(&link.stamps.clone(), &Stamp::key(change.table), Some(&row))?;
            let (def, entry) =
                (self.table(change.table)?.def.as_ref().clone(), change.entry.clone());
            self.store_parts(change.table, Kept { stamp, def, entry }.to_parts())?;
            self.restamp(change.table, stamp)?;
            self.fences.shared.insert(change.table);
            stamps.push(stamp);
        }
        self.fences.has_changes = true;
        Ok(stamps)
    }

    /// Makes the table that others get after the commit one of this stamp: also where nothing but the catalog's entry changes.
    fn restamp(&mut self, id: TableId, stamp: u64) -> EngineResult<()> {
        let table = self.table(id)?;
        if table.stamp != stamp {
            let link = self.link()?;
            let def = table.def.as_ref().clone();
            let table = sys::blocking::blocking(|| Table::open(&link.connection, def, stamp))?;
            self.define(id, Some(Arc::new(table)));
        }
        Ok(())
    }

    fn take_name(
        &mut self,
        link: &Link,
        name: &[u8],
        change: &SharedChange<'_>,
    ) -> EngineResult<()> {
        let mut read = [Operation::read(&link.names, name, Hold::Exclusive)];
        self.read_locked(&mut read, WaitPolicy::Wait)?;
        if read[0].code != NO_ROW {
            return Err(Error::with(ErrorCode::TABLE_EXISTS_ERROR, &[&change.name]).into());
        }
        let id = change.table.0.to_be_bytes();
        let mut insert = [Operation::new(Kind::Insert, &link.names, name, &id)];
        self.write(&mut insert, vec![None])?;
        match insert[0].code {
            0 => Ok(()),
            // Another server was faster.
            _ => Err(Error::with(ErrorCode::TABLE_EXISTS_ERROR, &[&change.name]).into()),
        }
    }

    /// Tells the other servers at the commit that definitions have changed.
    pub(crate) fn raise_version(&mut self) -> EngineResult<()> {
        if !self.fences.has_changes || !self.holds_anything() {
            return Ok(());
        }
        let counters = self.link()?.counters.clone();
        let key = version_key();
        let mut read = [Operation::read(&counters, &key, Hold::Exclusive)];
        self.read_locked(&mut read, WaitPolicy::Wait)?;
        let [read] = read;
        let old = (read.code == 0).then_some(read.row);
        let next = number(old.as_deref()) + 1;
        let write = Operation::new(Kind::Write, &counters, &key, &next.to_le_bytes());
        self.write(&mut [write], vec![old])?;
        self.fences.has_changes = false;
        Ok(())
    }
}
