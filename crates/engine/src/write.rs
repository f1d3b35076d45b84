//! Insert, update and delete of rows.

use std::borrow::Cow;
use std::sync::Arc;
use sys::sync::atomic::Ordering;

use btree::{LeafPlace, Mtr, Tree, make_room, record_bytes_max_for, write_blob_part};
use bufpool::Pool;
use engine_api::{EngineError, EngineResult, IndexId, WaitPolicy};
use errors::{Error, ErrorCode};
use locks::Mode;
use page::PageNo;
use txn::TxnState;

use crate::difference::write_difference;
use crate::entries::entries_of;
use crate::entry::Entry;
use crate::error::io_error;
use crate::keys::IndexKeys;
use crate::obstacle::{Locked, Obstacle};
use crate::row::{self, BlobRef, Gone, HEADER_BYTES, Header, Place, UndoEntry, append_record};
use crate::space::{GROUP_PAGES, ROW_PAGES};
use crate::table::Table;
use crate::transaction::Txn;

/// The outcome of one attempt at a write.
enum Attempt {
    Done,
    /// The leaf has no room.
    Full,
    Blocked(Obstacle),
    /// A live row has the key.
    Duplicate,
    /// No live row has the key.
    Missing,
    /// Names of unique keys must be locked first.
    Claim(Vec<u8>),
    /// The row has changed since it was read.
    Changed,
}

/// Which version of a row a change replaces.
#[derive(Clone, Copy)]
pub(crate) enum Replaces {
    /// The newest, once no other transaction blocks it.
    Newest,
    /// The one with this header, found at this place without a lock: otherwise nothing is done, without waiting.
    Read(LeafPlace, Header),
}

impl Replaces {
    fn may_wait(self) -> bool {
        matches!(self, Replaces::Newest)
    }

    fn fits(self, header: Header) -> bool {
        match self {
            Replaces::Newest => true,
            Replaces::Read(_, read) => header == read,
        }
    }
}

/// The entries of a row in all indexes before and after a change, in order, each with the number of its index; both are empty while
/// they are not known to differ.
#[derive(Default)]
struct ChangedEntries {
    old: Vec<(usize, Entry)>,
    /// Empty for a row that is deleted.
    new: Vec<(usize, Entry)>,
    /// The names of unique keys among them are locked.
    is_claimed: bool,
}

impl ChangedEntries {
    /// The entries that only the version before has.
    fn gone(&self) -> impl Iterator<Item = (usize, &Entry)> {
        only_in(&self.old, &self.new)
    }

    /// The entries that only the new version has.
    fn added(&self) -> impl Iterator<Item = (usize, &Entry)> {
        only_in(&self.new, &self.old)
    }
}

fn only_in<'a>(
    entries: &'a [(usize, Entry)],
    others: &'a [(usize, Entry)],
) -> impl Iterator<Item = (usize, &'a Entry)> {
    let key = |(at, entry): &'a (usize, Entry)| (*at, &entry.key[..]);
    let is_other = move |own| others.binary_search_by_key(&key(own), key).is_ok();
    entries.iter().filter(move |own| !is_other(own)).map(|(at, entry)| (*at, entry))
}

/// A change of a row.
#[derive(Clone, Copy)]
struct RowChange<'a> {
    table: &'a Table,
    locator: &'a [u8],
    /// `None` deletes it.
    record: Option<&'a [u8]>,
    /// The parts of the row's value.
    place: Place,
    body: &'a [u8],
    replaces: Replaces,
}

/// The work that a change leaves to purge.
enum Leaves {
    /// Both versions have the same entries, and the old one has no out-of-line value.
    Nothing,
    Work,
}

impl Txn {
    pub(crate) fn core(&mut self) -> Arc<TxnState> {
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
        let limit = self.record_bytes_max(table) - HEADER_BYTES - 8;
        if locator.len() > limit {
            return Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&limit]).into());
        }
        Ok(())
    }

    /// Largest key plus value of a row in a leaf.
    fn record_bytes_max(&self, table: &Table) -> usize {
        record_bytes_max_for(self.shared.system.pool.page_bytes(), table.key_bytes_max)
    }

    /// A conflicting row is locked in `mode`.
    pub(crate) fn insert_row(
        &mut self,
        table: &Arc<Table>,
        record: &[u8],
        mode: Mode,
    ) -> EngineResult<()> {
        if self.keep_row(table, record)? {
            return Ok(());
        }
        let mark = self.start_change()?;
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
        if entries.iter().any(|(at, entry)| is_unique(*at, entry)) {
            self.refuse_duplicate_row(table, locator, mode)?;
            for (at, entry) in &entries {
                if is_unique(*at, entry) {
                    self.claim_unique(table, *at, entry, None, mode)?;
                }
            }
        }
        let (place, body) = self.store_record(table, locator.len(), record)?;
        self.write_new_row(table, locator, place, &body, mode)?;
        table.builds.iter().for_each(|build| build.note_row(None, Some(record), locator));
        if let Some(notes) = &table.notes {
            notes.note(locator);
        }
        for (at, entry) in &entries {
            self.put_entry_of(&table.indexes[*at], entry)?;
        }
        table.counters.row_changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Undoes a failed change, and passes the error on: a wait for a secondary entry may fail after the row was written.
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

    /// Like `refuse_duplicate_row`, when a live row was seen just before.
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
        table: &Table,
        locator: usize,
        record: &'r [u8],
    ) -> EngineResult<(Place, Cow<'r, [u8]>)> {
        if locator + HEADER_BYTES + record.len() <= self.record_bytes_max(table) {
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
            shared.room_for(GROUP_PAGES)?;
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
        self.shared.room_for(ROW_PAGES)?;
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
        table: &Table,
        locator: &[u8],
        record: &[u8],
    ) -> EngineResult<()> {
        let mark = self.start_change()?;
        if !self.keeps_key(table, locator, record)? {
            let target = self.value.clone();
            let moved = self.change_row(table, locator, None, Replaces::Newest);
            let moved = moved.and_then(|_| self.insert_at(table, &target, record, Mode::Shared));
            return moved.or_else(|error| self.fail_after(mark, error));
        }
        let changed = self.change_row(table, locator, Some(record), Replaces::Newest);
        changed.map(drop).or_else(|error| self.fail_after(mark, error))
    }

    pub(crate) fn delete_row(&mut self, table: &Table, locator: &[u8]) -> EngineResult<()> {
        let mark = self.start_change()?;
        let changed = self.change_row(table, locator, None, Replaces::Newest);
        changed.map(drop).or_else(|error| self.fail_after(mark, error))
    }

    /// Whether a record belongs at `locator`; if not, its clustered key is in the scratch value.
    fn keeps_key(&mut self, table: &Table, locator: &[u8], record: &[u8]) -> EngineResult<bool> {
        let Some(keys) = &table.primary else { return Ok(true) };
        self.value.clear();
        keys.append(record, &mut self.value)?;
        Ok(self.value == locator)
    }

    /// See `Transaction::read_unlocked`.
    pub(crate) fn read_row_unlocked(
        &mut self,
        tree: Tree,
        key: &[u8],
        record: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.before.clear();
        let found = tree.find(&self.shared.system.pool, key, &mut self.before).map_err(io_error)?;
        let header = Header::of(&self.before);
        if header.is_deleted() || header.is_out_of_line() {
            return Ok(false);
        }
        self.read = found.map(|place| (place, header));
        record.clear();
        record.extend_from_slice(row::body(&self.before));
        Ok(self.read.is_some())
    }

    /// See `Transaction::write_if_unchanged`.
    pub(crate) fn write_row_if_unchanged(
        &mut self,
        table: &Table,
        key: &[u8],
        record: Option<&[u8]>,
    ) -> EngineResult<bool> {
        let Some((place, header)) = self.read.take() else { return Ok(false) };
        if let Some(record) = record {
            // Out-of-line values are stored before the row is read.
            if key.len() + HEADER_BYTES + record.len() > self.record_bytes_max(table) {
                return Ok(false);
            }
            let same_key = |keys: &IndexKeys| keys.is_equal_in(row::body(&self.before), record);
            if !table.primary.as_ref().is_none_or(same_key)
                && !self.keeps_key(table, key, record)?
            {
                return Ok(false);
            }
        }
        let mark = self.start_change()?;
        let changed = self.change_row(table, key, record, Replaces::Read(place, header));
        changed.or_else(|error| self.fail_after(mark, error).map(|()| false))
    }

    /// Replaces the record of a row, or deletes it. False if the row has changed since it was read, or another transaction has locked it; then nothing was done.
    fn change_row(
        &mut self,
        table: &Table,
        locator: &[u8],
        record: Option<&[u8]>,
        replaces: Replaces,
    ) -> EngineResult<bool> {
        let (place, body) = match record {
            Some(record) => self.store_record(table, locator.len(), record)?,
            None => (Place::Deleted, Cow::Borrowed(&[][..])),
        };
        let change = RowChange { table, locator, record, place, body: &body, replaces };
        let mut entries = ChangedEntries::default();
        loop {
            match self.try_change_row(change, &mut entries)? {
                Attempt::Done => break,
                Attempt::Full => self.make_room(table, locator)?,
                Attempt::Blocked(obstacle) if replaces.may_wait() => {
                    self.wait_for(obstacle, Mode::Exclusive)?;
                }
                Attempt::Missing | Attempt::Duplicate if replaces.may_wait() => {
                    return Err(EngineError::RowNotFound);
                }
                Attempt::Claim(name) => {
                    let owner = self.owner();
                    self.shared.system.locks.make_explicit(&owner, &name);
                    self.claim_changed(table, locator, &entries)?;
                    entries.is_claimed = true;
                }
                Attempt::Blocked(_) | Attempt::Missing | Attempt::Duplicate | Attempt::Changed => {
                    return Ok(false);
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
        if let Some(notes) = &table.notes {
            notes.note(locator);
        }
        self.change_entries(table, &entries)?;
        if record.is_none() {
            table.counters.row_changes.fetch_sub(1, Ordering::Relaxed);
        }
        Ok(true)
    }

    /// Locks the names of unique keys that are added or removed, and refuses duplicates of the added ones.
    fn claim_changed(
        &mut self,
        table: &Table,
        locator: &[u8],
        entries: &ChangedEntries,
    ) -> EngineResult<()> {
        let is_unique =
            |(at, entry): &(usize, &Entry)| table.indexes[*at].def.unique && !entry.has_null;
        for (at, target) in entries.added().filter(is_unique) {
            self.claim_unique(table, at, target, Some(locator), Mode::Shared)?;
        }
        for (at, old) in entries.gone().filter(is_unique) {
            self.lock_unique_name(table.indexes[at].tree, old)?;
        }
        Ok(())
    }

    /// Latches the leaf of the row that is changed, for `mtr`; returns the leaf's place there, the row's slot, and whether the row exists.
    fn latch_row<'p>(
        &mut self,
        pool: &'p Pool,
        change: RowChange<'_>,
        mtr: &mut Mtr<'p>,
    ) -> EngineResult<(usize, usize, bool)> {
        if let Replaces::Read(place, _) = change.replaces
            && let Some(leaf) = place.exclusive(pool).map_err(io_error)?
        {
            let leaf = mtr.add(leaf);
            debug_assert_eq!(mtr.page(leaf).search(change.locator), (place.slot(), true));
            return Ok((leaf, place.slot(), true));
        }
        self.near.expect();
        let tree = change.table.clustered;
        let leaf = tree.exclusive_leaf_near(pool, change.locator, &mut self.near);
        let leaf = mtr.add(leaf.map_err(io_error)?);
        let (slot, found) = mtr.page(leaf).search(change.locator);
        Ok((leaf, slot, found))
    }

    fn try_change_row(
        &mut self,
        change: RowChange<'_>,
        entries: &mut ChangedEntries,
    ) -> EngineResult<Attempt> {
        let shared = self.shared.clone();
        let pool = &*shared.system.pool;
        let RowChange { table, locator, place, body, .. } = change;
        let mut mtr = Mtr::new(pool);
        let (leaf, slot, found) = self.latch_row(pool, change, &mut mtr)?;
        if !found {
            return Ok(Attempt::Missing);
        }
        self.before.clear();
        mtr.page(leaf).copy_value(slot, &mut self.before);
        let header = Header::of(&self.before);
        if !change.replaces.fits(header) {
            return Ok(Attempt::Changed);
        }
        if let Err(obstacle) = self.may_write(table.clustered.id, locator, Some(header)) {
            return Ok(Attempt::Blocked(obstacle));
        }
        if header.is_deleted() {
            return Ok(Attempt::Missing);
        }
        if !table.indexes.is_empty() {
            self.compare_entries(pool, change, entries)?;
            let mut differing = entries.gone().chain(entries.added());
            if !entries.is_claimed && differing.any(|(at, _)| table.indexes[at].def.unique) {
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
        match self.note_before(change, entries) {
            Leaves::Nothing => shared.system.log_clean_change(&core, mtr, &self.payload),
            Leaves::Work => shared.system.log_change(&core, mtr, &self.payload),
        };
        Ok(Attempt::Done)
    }

    /// Makes the entries of the row's two versions, unless no column of any index has changed its bytes.
    fn compare_entries(
        &mut self,
        pool: &Pool,
        change: RowChange<'_>,
        entries: &mut ChangedEntries,
    ) -> EngineResult<()> {
        let table = change.table;
        let old = match Header::of(&self.before).is_out_of_line() {
            true => {
                self.payload.clear();
                append_record(pool, &self.before, &mut self.payload).map_err(io_error)?;
                &self.payload[..]
            }
            false => row::body(&self.before),
        };
        (entries.old, entries.new) = (Vec::new(), Vec::new());
        if let Some(new) = change.record
            && table.indexes.iter().all(|index| index.keys.is_equal_in(old, new))
        {
            return Ok(());
        }
        entries.old = entries_of(table, pool.page_bytes(), old, change.locator)?;
        if let Some(new) = change.record {
            entries.new = entries_of(table, pool.page_bytes(), new, change.locator)?;
        }
        Ok(())
    }

    /// Writes the undo entry of a change to the scratch memory: whole versions only where purge needs them (E22).
    fn note_before(&mut self, change: RowChange<'_>, entries: &ChangedEntries) -> Leaves {
        let RowChange { table, locator, record, place, body, .. } = change;
        let before = Header::of(&self.before);
        // Purge frees out-of-line values, and an index that is being built may have entries of any version.
        let is_plain =
            place == Place::Inline && !before.is_out_of_line() && table.builds.is_empty();
        if record.is_none() || !is_plain {
            let entry = UndoEntry::Change { table: table.id.0, key: locator, before: &self.before };
            entry.write(&mut self.payload);
            return Leaves::Work;
        }
        let (difference, gone) = (&mut self.difference, &mut self.gone);
        difference.clear();
        gone.clear();
        write_difference(row::body(&self.before), body, difference);
        for (at, old) in entries.gone() {
            Gone::put(table.indexes[at].def.id.0, old, gone);
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

    /// Marks removed entries and inserts new ones, now or deferred (E20).
    fn change_entries(&mut self, table: &Table, entries: &ChangedEntries) -> EngineResult<()> {
        for (at, old) in entries.gone() {
            self.mark_entry_of(&table.indexes[at], old)?;
        }
        for (at, target) in entries.added() {
            self.put_entry_of(&table.indexes[at], target)?;
        }
        Ok(())
    }
}
