//! Insert, update and delete of rows.

use std::borrow::Cow;
use std::sync::Arc;
use sys::sync::atomic::Ordering;

use btree::{Mtr, make_room, record_bytes_max, write_blob_part};
use engine_api::{EngineError, EngineResult, IndexId, WaitPolicy};
use errors::{Error, ErrorCode};
use locks::Mode;
use page::PageNo;
use txn::Core;

use crate::dictionary::io_error;
use crate::difference::write_difference;
use crate::entries::{Entry, entries_of};
use crate::locking::{Locked, Obstacle};
use crate::row::{self, BlobRef, Gone, HEADER_BYTES, Header, Place, UndoEntry, append_record};
use crate::table::Table;
use crate::transaction::Txn;

/// What one attempt at a write came to.
enum Attempt {
    Done,
    /// The leaf has no room.
    Full,
    Blocked(Obstacle),
    /// There is a live row with the key.
    Duplicate,
    /// There is no live row with the key.
    Missing,
    /// Names of unique keys must be locked first.
    Claim(Vec<u8>),
}

/// What a change leaves to purge.
enum Leaves {
    /// The old version's entries are the new one's, and nothing of it is elsewhere.
    Nothing,
    Work,
}

impl Txn {
    pub(crate) fn core(&mut self) -> Arc<Core> {
        if let Some(core) = &self.core {
            return core.clone();
        }
        let owner = self.owner();
        let core = self.shared.system.begin_write(owner);
        self.core = Some(core.clone());
        core
    }

    /// The clustered key of a new record.
    fn locator_of(&self, table: &Table, record: &[u8]) -> EngineResult<Vec<u8>> {
        let mut locator = Vec::with_capacity(32);
        self.write_locator(table, record, &mut locator)?;
        Ok(locator)
    }

    /// Replaces `locator` with the clustered key of a new record.
    pub(crate) fn write_locator(
        &self,
        table: &Table,
        record: &[u8],
        locator: &mut Vec<u8>,
    ) -> EngineResult<()> {
        locator.clear();
        match &table.primary {
            Some(keys) => {
                keys.append(record, locator)?;
            }
            None => {
                let id = table.counters.next_row_id.fetch_add(1, Ordering::Relaxed);
                locator.extend_from_slice(&id.to_be_bytes());
            }
        }
        let limit = self.record_bytes_max() - HEADER_BYTES - 8;
        if locator.len() > limit {
            return Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&limit]).into());
        }
        Ok(())
    }

    fn record_bytes_max(&self) -> usize {
        record_bytes_max(self.shared.system.pool.page_bytes())
    }

    /// A row in the way is locked in `mode`.
    pub(crate) fn insert_row(
        &mut self,
        table: &Arc<Table>,
        record: &[u8],
        mode: Mode,
    ) -> EngineResult<()> {
        if self.keep_row(table, record)? {
            return Ok(());
        }
        let mark = self.start_change();
        let locator = self.locator_of(table, record)?;
        let inserted = self.insert_at(table, &locator, record, mode);
        self.inserted = locator;
        inserted.or_else(|error| self.fail_after(mark, error))
    }

    fn insert_at(
        &mut self,
        table: &Table,
        locator: &[u8],
        record: &[u8],
        mode: Mode,
    ) -> EngineResult<()> {
        let page_bytes = self.shared.system.pool.page_bytes();
        let entries = entries_of(table, page_bytes, record, locator)?;
        let is_unique = |at: usize, entry: &Entry| table.indexes[at].def.unique && !entry.has_null;
        if entries.iter().enumerate().any(|(at, entry)| is_unique(at, entry)) {
            self.refuse_duplicate_row(table, locator, mode)?;
            for (at, entry) in entries.iter().enumerate() {
                if is_unique(at, entry) {
                    self.claim_unique(table, at, entry, None, mode)?;
                }
            }
        }
        let (place, body) = self.store_record(locator.len(), record)?;
        self.write_new_row(table, locator, place, &body, mode)?;
        table.builds.iter().for_each(|build| build.note_row(None, Some(record), locator));
        for (index, entry) in table.indexes.iter().zip(&entries) {
            self.put_entry_of(index, entry)?;
        }
        table.counters.row_changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Takes back what a failed change did, and passes the error on: a wait for a secondary entry may fail after the row was written.
    fn fail_after(&mut self, mark: u64, error: EngineError) -> EngineResult<()> {
        if self.started && self.undo_mark() > mark {
            self.undo_to(mark, true)?;
        }
        Err(error)
    }

    /// Fails when a live row has the key, locking it.
    fn refuse_duplicate_row(
        &mut self,
        table: &Table,
        locator: &[u8],
        mode: Mode,
    ) -> EngineResult<()> {
        let shared = self.shared.clone();
        self.value.clear();
        let mut value = std::mem::take(&mut self.value);
        let found = table.clustered.get(&shared.system.pool, locator, &mut value);
        self.value = value;
        if !found.map_err(io_error)? {
            return Ok(());
        }
        let own = Header::of(&self.value);
        if own.is_deleted() && own.id() == self.own_id() {
            return Ok(());
        }
        self.lock_duplicate_row(table, locator, mode)
    }

    /// As `refuse_duplicate_row`, when there was a live row a moment ago.
    fn lock_duplicate_row(
        &mut self,
        table: &Table,
        locator: &[u8],
        mode: Mode,
    ) -> EngineResult<()> {
        match self.lock_current(table, locator, mode, WaitPolicy::Wait)? {
            Locked::Found => Err(EngineError::DuplicateKey {
                index: IndexId::CLUSTERED,
                locator: locator.to_vec(),
            }),
            Locked::Missing | Locked::Skipped => Ok(()),
        }
    }

    /// The body of a row's value: the record, or a reference to it out of line (E7).
    pub(crate) fn store_record<'r>(
        &mut self,
        locator: usize,
        record: &'r [u8],
    ) -> EngineResult<(Place, Cow<'r, [u8]>)> {
        if locator + HEADER_BYTES + record.len() <= self.record_bytes_max() {
            return Ok((Place::Inline, Cow::Borrowed(record)));
        }
        let first = self.write_blob(record)?;
        let reference = BlobRef { first, length: record.len() as u32 };
        Ok((Place::OutOfLine, Cow::Owned(reference.encode().to_vec())))
    }

    /// Writes a chain of pages; every part has an undo entry.
    pub(crate) fn write_blob(&mut self, bytes: &[u8]) -> EngineResult<PageNo> {
        let core = self.core();
        let shared = self.shared.clone();
        let (mut rest, mut first) = (bytes, PageNo::META);
        while !rest.is_empty() {
            let (left, pages, mtr) =
                write_blob_part(&shared.system.pool, rest, first).map_err(io_error)?;
            let numbers: Vec<u8> = pages.iter().flat_map(|page| page.0.to_le_bytes()).collect();
            let payload = UndoEntry::Blob { pages: &numbers }.encode();
            shared.system.log_change(&core, mtr, &payload);
            first = *pages.last().expect("a part has a page");
            rest = left;
        }
        Ok(first)
    }

    fn write_new_row(
        &mut self,
        table: &Table,
        locator: &[u8],
        place: Place,
        body: &[u8],
        mode: Mode,
    ) -> EngineResult<()> {
        loop {
            match self.try_write_new_row(table, locator, place, body)? {
                Attempt::Done => return Ok(()),
                Attempt::Full => self.make_room(table, locator)?,
                Attempt::Blocked(obstacle) => self.wait_for(obstacle, Mode::Exclusive)?,
                _ => self.lock_duplicate_row(table, locator, mode)?,
            }
        }
    }

    fn make_room(&self, table: &Table, locator: &[u8]) -> EngineResult<()> {
        make_room(&self.shared.system.pool, table.clustered, locator).map_err(io_error)
    }

    fn try_write_new_row(
        &mut self,
        table: &Table,
        locator: &[u8],
        place: Place,
        body: &[u8],
    ) -> EngineResult<Attempt> {
        let shared = self.shared.clone();
        let pool = &*shared.system.pool;
        let mut mtr = Mtr::new(pool);
        let leaf = table.clustered.exclusive_leaf_near(pool, locator, &mut self.near);
        let leaf = mtr.add(leaf.map_err(io_error)?);
        let (slot, found) = mtr.page(leaf).search(locator);
        self.before.clear();
        if found {
            mtr.page(leaf).copy_value(slot, &mut self.before);
        }
        let header = found.then(|| Header::of(&self.before));
        if let Err(obstacle) = self.may_write(table.clustered.id, locator, header) {
            return Ok(Attempt::Blocked(obstacle));
        }
        if header.is_some_and(|header| !header.is_deleted()) {
            return Ok(Attempt::Duplicate);
        }
        if let Err(obstacle) = self.may_insert(table.clustered.id, locator) {
            return Ok(Attempt::Blocked(obstacle));
        }
        let core = self.core();
        let mut value = std::mem::take(&mut self.value);
        Header::new(core.id, core.next_undo().0, place).write(body, &mut value);
        let mut edit = mtr.edit(leaf);
        let done = match found {
            true => edit.replace_value(slot, &value),
            false => edit.insert(slot, locator, &value),
        };
        self.value = value;
        if !done {
            return Ok(Attempt::Full);
        }
        let entry = match found {
            true => UndoEntry::Change { table: table.id.0, key: locator, before: &self.before },
            false => UndoEntry::Insert { table: table.id.0, key: locator },
        };
        entry.write(&mut self.payload);
        match found {
            true => shared.system.log_change(&core, mtr, &self.payload),
            false => shared.system.log_clean_change(&core, mtr, &self.payload),
        };
        Ok(Attempt::Done)
    }

    pub(crate) fn update_row(
        &mut self,
        table: &Arc<Table>,
        locator: &[u8],
        record: &[u8],
    ) -> EngineResult<()> {
        let mark = self.start_change();
        if let Some(keys) = &table.primary {
            let mut target = Vec::new();
            keys.append(record, &mut target)?;
            if target != locator {
                let moved = self.change_row(table, locator, None);
                let moved =
                    moved.and_then(|()| self.insert_at(table, &target, record, Mode::Shared));
                return moved.or_else(|error| self.fail_after(mark, error));
            }
        }
        let changed = self.change_row(table, locator, Some(record));
        changed.or_else(|error| self.fail_after(mark, error))
    }

    pub(crate) fn delete_row(&mut self, table: &Arc<Table>, locator: &[u8]) -> EngineResult<()> {
        let mark = self.start_change();
        let changed = self.change_row(table, locator, None);
        changed.or_else(|error| self.fail_after(mark, error))
    }

    /// Replaces the record of a row, or deletes it.
    fn change_row(
        &mut self,
        table: &Table,
        locator: &[u8],
        record: Option<&[u8]>,
    ) -> EngineResult<()> {
        let page_bytes = self.shared.system.pool.page_bytes();
        let new = match record {
            Some(record) => Some(entries_of(table, page_bytes, record, locator)?),
            None => None,
        };
        let (place, body) = match record {
            Some(record) => self.store_record(locator.len(), record)?,
            None => (Place::Deleted, Cow::Borrowed(&[][..])),
        };
        let mut old = Vec::new();
        let mut claimed = false;
        loop {
            let attempt = self.try_change_row(
                table,
                locator,
                (place, &body),
                new.as_deref(),
                &mut old,
                claimed,
            )?;
            match attempt {
                Attempt::Done => break,
                Attempt::Full => self.make_room(table, locator)?,
                Attempt::Blocked(obstacle) => self.wait_for(obstacle, Mode::Exclusive)?,
                Attempt::Missing | Attempt::Duplicate => return Err(EngineError::RowNotFound),
                Attempt::Claim(name) => {
                    let owner = self.owner();
                    self.shared.system.locks.make_explicit(&owner, &name);
                    self.claim_changed(table, locator, &old, new.as_deref())?;
                    claimed = true;
                }
            }
        }
        if !table.builds.is_empty() {
            let pool = &self.shared.system.pool;
            self.payload.clear();
            append_record(pool, &self.before, &mut self.payload).map_err(io_error)?;
            let before = Some(&self.payload[..]);
            table.builds.iter().for_each(|build| build.note_row(before, record, locator));
        }
        self.change_entries(table, &old, new.as_deref())?;
        if record.is_none() {
            table.counters.row_changes.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Locks the names of unique keys that come or go, and refuses duplicates of those that come.
    fn claim_changed(
        &mut self,
        table: &Table,
        locator: &[u8],
        old: &[Entry],
        new: Option<&[Entry]>,
    ) -> EngineResult<()> {
        for (at, index) in table.indexes.iter().enumerate() {
            let target = new.map(|new| &new[at]);
            if !index.def.unique || target == Some(&old[at]) {
                continue;
            }
            if let Some(target) = target
                && !target.has_null
            {
                self.claim_unique(table, at, target, Some(locator), Mode::Shared)?;
            }
            if !old[at].has_null {
                self.lock_unique_name(index.tree, &old[at])?;
            }
        }
        Ok(())
    }

    fn try_change_row(
        &mut self,
        table: &Table,
        locator: &[u8],
        (place, body): (Place, &[u8]),
        new: Option<&[Entry]>,
        old: &mut Vec<Entry>,
        claimed: bool,
    ) -> EngineResult<Attempt> {
        let shared = self.shared.clone();
        let pool = &*shared.system.pool;
        let mut mtr = Mtr::new(pool);
        self.near.expect();
        let leaf = table.clustered.exclusive_leaf_near(pool, locator, &mut self.near);
        let leaf = mtr.add(leaf.map_err(io_error)?);
        let (slot, found) = mtr.page(leaf).search(locator);
        if !found {
            return Ok(Attempt::Missing);
        }
        self.before.clear();
        mtr.page(leaf).copy_value(slot, &mut self.before);
        let header = Header::of(&self.before);
        if let Err(obstacle) = self.may_write(table.clustered.id, locator, Some(header)) {
            return Ok(Attempt::Blocked(obstacle));
        }
        if header.is_deleted() {
            return Ok(Attempt::Missing);
        }
        if !table.indexes.is_empty() {
            self.payload.clear();
            append_record(pool, &self.before, &mut self.payload).map_err(io_error)?;
            *old = entries_of(table, pool.page_bytes(), &self.payload, locator)?;
            let needs_claim =
                table.indexes.iter().enumerate().any(|(at, index)| {
                    index.def.unique && new.is_none_or(|new| new[at] != old[at])
                });
            if needs_claim && !claimed {
                let mut name = Vec::new();
                locks::lock_name(table.clustered.id, locator, &mut name);
                // Explicit under the latch: the row cannot change while names are claimed without it.
                let owner = self.owner();
                shared.system.locks.try_lock(&owner, &name, Mode::Exclusive);
                return Ok(Attempt::Claim(name));
            }
        }
        let core = self.core();
        let mut value = std::mem::take(&mut self.value);
        Header::new(core.id, core.next_undo().0, place).write(body, &mut value);
        let done = mtr.edit(leaf).replace_value(slot, &value);
        self.value = value;
        if !done {
            return Ok(Attempt::Full);
        }
        if let Some(owner) = &self.owner
            && owner.lock_count() > 0
        {
            locks::lock_name(table.clustered.id, locator, &mut self.name);
            shared.system.locks.forget_implied(owner, &self.name);
        }
        match self.note_before(table, locator, (place, body), new, old) {
            Leaves::Nothing => shared.system.log_clean_change(&core, mtr, &self.payload),
            Leaves::Work => shared.system.log_change(&core, mtr, &self.payload),
        };
        Ok(Attempt::Done)
    }

    /// Writes the undo entry of a change to the scratch memory: whole versions only where purge needs them (E22).
    fn note_before(
        &mut self,
        table: &Table,
        locator: &[u8],
        (place, body): (Place, &[u8]),
        new: Option<&[Entry]>,
        old: &[Entry],
    ) -> Leaves {
        let before = Header::of(&self.before);
        // What is elsewhere is for purge to free, and an index that is being built may have entries of any version.
        let is_plain =
            place == Place::Inline && !before.is_out_of_line() && table.builds.is_empty();
        let Some(new) = new.filter(|_| is_plain) else {
            let entry = UndoEntry::Change { table: table.id.0, key: locator, before: &self.before };
            entry.write(&mut self.payload);
            return Leaves::Work;
        };
        let (difference, gone) = (&mut self.difference, &mut self.gone);
        difference.clear();
        gone.clear();
        write_difference(row::body(&self.before), body, difference);
        for ((index, old), new) in table.indexes.iter().zip(old).zip(new) {
            if old != new {
                Gone::put(index.def.id.0, old, gone);
            }
        }
        let entry = UndoEntry::Update {
            table: table.id.0,
            key: locator,
            before,
            difference,
            gone: Gone(gone),
        };
        entry.write(&mut self.payload);
        if gone.is_empty() { Leaves::Nothing } else { Leaves::Work }
    }

    /// Marks the entries that go and puts those that come, or sees to it that this is done later (E20).
    fn change_entries(
        &mut self,
        table: &Table,
        old: &[Entry],
        new: Option<&[Entry]>,
    ) -> EngineResult<()> {
        for (at, index) in table.indexes.iter().enumerate() {
            let target = new.map(|new| &new[at]);
            if target == Some(&old[at]) {
                continue;
            }
            self.mark_entry_of(index, &old[at])?;
            if let Some(target) = target {
                self.put_entry_of(index, target)?;
            }
        }
        Ok(())
    }
}
