//! Inserting, updating and deleting rows with the entries of their indexes.

use engine_api::{EngineError, EngineResult, IndexId, TableId, WaitPolicy};
use locks::Mode;
use sys::blocking::blocking;
use sys::sync::Arc;

use crate::engine::Counted;
use crate::error::{LOCKED, NdbError};
use crate::pending::NewRow;
use crate::shim::{Hold, Kind, NdbTable, Operation};
use crate::table::{Entry, Index, Table, split_entry};
use crate::transaction::{BATCH, NdbEngineTransaction, is_duplicate};

/// Names of index entries are apart from those of rows.
const ENTRY_SPACE: u64 = 1 << 63;

/// Names a row for the locks of this server.
pub(crate) fn row_name(table: TableId, locator: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    locks::lock_name(table.0, locator, &mut name);
    name
}

fn entry_name(table: TableId, index: IndexId, key: &[u8]) -> Vec<u8> {
    let mut name = Vec::new();
    locks::lock_name(ENTRY_SPACE | table.0 << 16 | u64::from(index.0), key, &mut name);
    name
}

/// What a write does to the cluster: operations, the image before each, and which index each belongs to.
#[derive(Default)]
struct Plan {
    operations: Vec<Operation>,
    old: Vec<Option<Vec<u8>>>,
    indexes: Vec<IndexId>,
}

impl Plan {
    fn add(&mut self, index: IndexId, operation: Operation, old: Option<Vec<u8>>) {
        self.operations.push(operation);
        self.old.push(old);
        self.indexes.push(index);
    }

    fn insert(&mut self, index: IndexId, table: &Arc<NdbTable>, key: &[u8], row: &[u8]) {
        self.add(index, Operation::new(Kind::Insert, table, key, row), None);
    }

    fn delete(&mut self, index: IndexId, table: &Arc<NdbTable>, key: &[u8], row: Vec<u8>) {
        self.add(index, Operation::new(Kind::Delete, table, key, &[]), Some(row));
    }

    fn update(
        &mut self,
        index: IndexId,
        table: &Arc<NdbTable>,
        key: &[u8],
        row: &[u8],
        old: Vec<u8>,
    ) {
        self.add(index, Operation::new(Kind::Update, table, key, row), Some(old));
    }
}

/// The first operation that was refused as a duplicate: its place, index and key.
type Refused = (usize, IndexId, Vec<u8>);

impl NdbEngineTransaction {
    fn new_locator(&mut self, table: &Table, record: &[u8]) -> EngineResult<Vec<u8>> {
        let mut locator = Vec::new();
        match &table.clustered {
            Some(keys) => keys.append(record, &mut locator).map(|_| ())?,
            None => {
                let id = self.shared.draw(table.id(), Counted::RowId, 1, 1, 1)?;
                locator.extend_from_slice(&id.to_be_bytes());
            }
        }
        Ok(locator)
    }

    /// Nobody else of this server may insert, change or delete this row or entries like its unique ones.
    fn lock_row(&mut self, table: &Table, locator: &[u8], entries: &[Entry]) -> EngineResult<()> {
        self.lock(&row_name(table.id(), locator), Mode::Exclusive, WaitPolicy::Wait)?;
        for (index, entry) in table.indexes.iter().zip(entries) {
            if entry.is_unique() {
                let name = entry_name(table.id(), index.def.id, &entry.key);
                self.lock(&name, Mode::Exclusive, WaitPolicy::Wait)?;
            }
        }
        Ok(())
    }

    pub(crate) fn insert_row(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        let table = self.table(table)?;
        table.check_record(record)?;
        let locator = self.new_locator(&table, record)?;
        self.inserted.clear();
        self.inserted.extend_from_slice(&locator);
        let row = NewRow { table, locator, record: record.to_vec() };
        if !self.pending.is_open {
            return self.insert_rows(std::slice::from_ref(&row));
        }
        match self.pending.push(row) {
            true => self.send_pending(),
            false => Ok(()),
        }
    }

    /// Inserts rows. If one is refused, nothing of it has changed; those before it are there, those after it may be.
    pub(crate) fn insert_rows(&mut self, rows: &[NewRow]) -> EngineResult<()> {
        let mut plan = Plan::default();
        let fills =
            self.filling.is_some() && rows.iter().all(|row| Some(row.table.id()) == self.filling);
        for NewRow { table, locator, record } in rows {
            let entries = table.entries(record, locator)?;
            if !fills {
                self.fence(table)?;
                self.lock_row(table, locator, &entries)?;
            }
            plan.insert(IndexId::CLUSTERED, &table.rows, locator, record);
            for (index, entry) in table.indexes.iter().zip(&entries) {
                plan.insert(index.def.id, &index.entries, &entry.key, &entry.row);
            }
        }
        let refused = match fills {
            true => self.fill(plan)?,
            false => self.carry_out(plan, rows.len() > 1)?,
        };
        let Some((at, index, key)) = refused else { return Ok(()) };
        // Each row has an operation for itself and one for each index.
        let row = rows.iter().scan(0, |end, row| {
            *end += 1 + row.table.indexes.len();
            Some((*end, row))
        });
        let Some((_, row)) = row.into_iter().find(|(end, _)| at < *end) else { return Ok(()) };
        self.pending.refused = self.pending.is_open.then(|| row.record.clone());
        self.duplicate(&row.table, (index, key))
    }

    /// Makes the writes. Returns the first that was refused as a duplicate: unless there are several rows nothing has changed then.
    fn carry_out(&mut self, plan: Plan, has_several_rows: bool) -> EngineResult<Option<Refused>> {
        let Plan { mut operations, mut old, mut indexes } = plan;
        let (mut refused, mut done) = (None, 0);
        while !operations.is_empty() {
            let rest = (operations.len().min(BATCH * 2), operations.len());
            let later = operations.split_off(rest.0);
            let (later_old, later_indexes) = (old.split_off(rest.0), indexes.split_off(rest.0));
            let mark = self.undo_length();
            self.write(&mut operations, old)?;
            let first = operations.iter().position(|operation| operation.code != 0);
            if let Some(at) = first {
                let failed = &operations[at];
                if !is_duplicate(failed) {
                    return Err(self.refuse(failed));
                }
                refused = Some((done + at, indexes[at], failed.key.clone()));
                if !has_several_rows {
                    self.undo_to(mark)?;
                }
                break;
            }
            done += operations.len();
            (operations, old, indexes) = (later, later_old, later_indexes);
        }
        Ok(refused)
    }

    /// Fills a table that nobody else sees, in transactions of their own: the cluster's transactions are bounded.
    fn fill(&mut self, plan: Plan) -> EngineResult<Option<Refused>> {
        let Plan { mut operations, indexes, .. } = plan;
        let link = self.link()?;
        let mut done = 0;
        for part in operations.chunks_mut(BATCH * 2) {
            let filled = blocking(|| crate::ddl::insert_alone(&link, part));
            if let Some(at) = filled.map_err(NdbError::into_engine)? {
                return Ok(Some((done + at, indexes[done + at], part[at].key.clone())));
            }
            done += part.len();
        }
        self.writes += 1;
        Ok(None)
    }

    /// A write that must succeed did not.
    fn refuse(&mut self, failed: &Operation) -> EngineError {
        let text =
            format!("NDB refused a write of {} with error {}", failed.table.name, failed.code);
        EngineError::Other(errors::Error::internal(text))
    }

    /// The error for a key that another row has; that row is locked.
    fn duplicate(&mut self, table: &Arc<Table>, refused: (IndexId, Vec<u8>)) -> EngineResult<()> {
        let (index, key) = refused;
        let locator = match index {
            IndexId::CLUSTERED => key,
            id => {
                let index = table.index(id)?;
                let mut read = [Operation::read(&index.entries, &key, Hold::Shared)];
                self.read_locked(&mut read, WaitPolicy::Wait)?;
                split_entry(&key, &read[0].row)
                    .map(|(_, locator)| locator.to_vec())
                    .unwrap_or_default()
            }
        };
        self.lock(&row_name(table.id(), &locator), Mode::Exclusive, WaitPolicy::Wait)?;
        let mut read = [Operation::read(&table.rows, &locator, Hold::Shared)];
        self.read_locked(&mut read, WaitPolicy::Wait)?;
        Err(EngineError::DuplicateKey { index, locator })
    }

    /// Locks a row exclusively and returns its record.
    fn own_row(&mut self, table: &Table, locator: &[u8]) -> EngineResult<Vec<u8>> {
        if let Some(record) = self.take_held(table.id(), locator) {
            return Ok(record);
        }
        self.fence(table)?;
        self.lock(&row_name(table.id(), locator), Mode::Exclusive, WaitPolicy::Wait)?;
        let mut read = [Operation::read(&table.rows, locator, Hold::Exclusive)];
        self.read_locked(&mut read, WaitPolicy::Wait)?;
        let [read] = read;
        match read.code {
            0 => Ok(read.row),
            LOCKED => Err(EngineError::LockWaitTimeout),
            _ => Err(EngineError::RowNotFound),
        }
    }

    pub(crate) fn update_row(
        &mut self,
        table: TableId,
        locator: &[u8],
        record: &[u8],
    ) -> EngineResult<()> {
        let table = self.table(table)?;
        table.check_record(record)?;
        let old_record = self.own_row(&table, locator)?;
        let mut new_locator = Vec::new();
        match &table.clustered {
            Some(keys) => keys.append(record, &mut new_locator).map(|_| ())?,
            None => new_locator.extend_from_slice(locator),
        }
        let old_entries = table.entries(&old_record, locator)?;
        let new_entries = table.entries(record, &new_locator)?;
        self.lock_row(&table, &new_locator, &new_entries)?;
        self.lock_row(&table, locator, &old_entries)?;
        let mut plan = Plan::default();
        if new_locator == locator {
            plan.update(IndexId::CLUSTERED, &table.rows, locator, record, old_record);
        } else {
            plan.insert(IndexId::CLUSTERED, &table.rows, &new_locator, record);
            plan.delete(IndexId::CLUSTERED, &table.rows, locator, old_record);
        }
        for ((index, old), new) in table.indexes.iter().zip(old_entries).zip(new_entries) {
            plan_entry(&mut plan, index, old, &new);
        }
        match self.carry_out(plan, false)? {
            Some((_, index, key)) => self.duplicate(&table, (index, key)),
            None => Ok(()),
        }
    }

    pub(crate) fn delete_row(&mut self, table: TableId, locator: &[u8]) -> EngineResult<()> {
        let table = self.table(table)?;
        let record = self.own_row(&table, locator)?;
        let entries = table.entries(&record, locator)?;
        self.lock_row(&table, locator, &entries)?;
        let mut plan = Plan::default();
        for (index, entry) in table.indexes.iter().zip(entries) {
            plan.delete(index.def.id, &index.entries, &entry.key, entry.row);
        }
        plan.delete(IndexId::CLUSTERED, &table.rows, locator, record);
        self.carry_out(plan, false).map(|_| ())
    }
}

/// The change of one index when its row changes.
fn plan_entry(plan: &mut Plan, index: &Index, old: Entry, new: &Entry) {
    let id = index.def.id;
    if old.key != new.key {
        plan.insert(id, &index.entries, &new.key, &new.row);
        plan.delete(id, &index.entries, &old.key, old.row);
    } else if old.row != new.row {
        plan.update(id, &index.entries, &new.key, &new.row, old.row);
    }
}
