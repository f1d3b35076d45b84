//! Definitions: tables of the cluster are made at once and dropped when the transaction ends; what the engine knows of them is a row that the transaction writes.

use engine_api::{
    EngineError, EngineResult, IndexDef, IndexId, RowBatch, RowLock, ScanSpec, TableDef, TableId,
    WaitPolicy,
};
use errors::Error;
use sys::blocking::blocking;
use sys::sync::Arc;
use types::{DataType, TypeKind};

use crate::cursor::Cursor;
use crate::engine::Counted;
use crate::error::{DUPLICATE, NO_ROW, NdbError};
use crate::link::{Link, definition_key, definition_parts, patiently};
use crate::shim::{Hold, Kind, NdbTransaction, Operation};
use crate::sizes::Sizes;
use crate::table::{Index, Table, index_name, index_part, parts, secondary};
use crate::transaction::{BATCH, NdbEngineTransaction, Undo};

fn refuse_index(index: &IndexDef) -> EngineResult<()> {
    match index.is_multi_valued() {
        true => Err(Error::not_supported("multi-valued indexes of NDB tables").into()),
        false => Ok(()),
    }
}

/// Makes a table of the cluster; one that a crash left is replaced.
fn create_part(link: &Link, part: &(String, Sizes)) -> EngineResult<()> {
    let (name, Sizes { key_bytes, row_bytes }) = part;
    blocking(|| {
        patiently(|| match link.connection.create_table(name, *key_bytes, *row_bytes) {
            // The engine has no definition that names it: see `create`.
            Err(error) if error.is_existing() => {
                link.connection.drop_table(name)?;
                link.connection.create_table(name, *key_bytes, *row_bytes)
            }
            other => other,
        })
    })
    .map_err(NdbError::into_engine)
}

impl NdbEngineTransaction {
    /// Writes the stored form of a definition; `None` removes it.
    fn store(&mut self, id: TableId, def: Option<&TableDef>) -> EngineResult<()> {
        if id.is_shared() && def.is_some() {
            // `share` writes it, with the catalog's entry.
            return Ok(());
        }
        self.store_parts(id, def.map(definition_parts).unwrap_or_default())
    }

    pub(crate) fn store_parts(&mut self, id: TableId, new: Vec<Vec<u8>>) -> EngineResult<()> {
        let link = self.link()?;
        // Parts of the old form, and one more that is not there.
        let mut at = 0;
        loop {
            let key = definition_key(id, at);
            let mut read = [Operation::read(&link.definitions, &key, Hold::Exclusive)];
            self.read_locked(&mut read, WaitPolicy::Wait)?;
            let old = (read[0].code == 0).then(|| std::mem::take(&mut read[0].row));
            let is_there = old.is_some();
            match new.get(usize::from(at)) {
                Some(part) => {
                    let mut write = [Operation::new(Kind::Write, &link.definitions, &key, part)];
                    self.write(&mut write, vec![old])?;
                }
                None if is_there => {
                    let mut write = [Operation::new(Kind::Delete, &link.definitions, &key, &[])];
                    self.write(&mut write, vec![old])?;
                }
                None => return Ok(()),
            }
            at += 1;
        }
    }

    pub(crate) fn create(&mut self, def: &TableDef) -> EngineResult<()> {
        secondary(def).try_for_each(refuse_index)?;
        let link = self.link()?;
        // The cluster gives the number of a shared table to nobody else.
        if !def.id.is_shared() {
            match link.table(def.id) {
                Err(EngineError::UnknownTable) => {}
                Ok(_) => {
                    let text = "tables in an NDB database that another Squall server uses: give this one another --ndb-database";
                    return Err(Error::not_supported(text).into());
                }
                Err(error) => return Err(error),
            }
        }
        self.begin_new_definition(def.id)?;
        let parts = parts(def);
        // Noted before: what is made is dropped if the rest fails.
        self.push_undo(Undo::Created(parts.iter().map(|part| part.0.clone()).collect()));
        parts.iter().try_for_each(|part| create_part(&link, part))?;
        let stamp = self.fences.next_stamp(def.id);
        let table = blocking(|| Table::open(&link.connection, def.clone(), stamp))?;
        self.define(def.id, Some(Arc::new(table)));
        self.store(def.id, Some(def))
    }

    pub(crate) fn drop_whole(&mut self, id: TableId) -> EngineResult<()> {
        self.lock_stamp(id)?;
        let table = self.table(id)?;
        let names = parts(&table.def).into_iter().map(|part| part.0).collect();
        self.store(id, None)?;
        self.forget_shared(id)?;
        self.remove_counters(id)?;
        self.define(id, None);
        self.push_undo(Undo::Dropped { table: id, names, whole: true });
        Ok(())
    }

    fn remove_counters(&mut self, id: TableId) -> EngineResult<()> {
        let counters = self.link()?.counters.clone();
        for kind in [Counted::AutoIncrement, Counted::RowId] {
            let key = kind.key(id);
            let mut read = [Operation::read(&counters, &key, Hold::Exclusive)];
            self.read_locked(&mut read, WaitPolicy::Wait)?;
            if read[0].code == 0 {
                let old = std::mem::take(&mut read[0].row);
                self.write(
                    &mut [Operation::new(Kind::Delete, &counters, &key, &[])],
                    vec![Some(old)],
                )?;
            }
        }
        Ok(())
    }

    pub(crate) fn redefine(&mut self, def: &TableDef) -> EngineResult<()> {
        self.lock_stamp(def.id)?;
        let before = self.table(def.id)?;
        if !is_instant(&before.def, def) || !before.holds(def) {
            return Err(Error::not_supported("this instant ALTER TABLE in NDB").into());
        }
        self.replace(def.clone())
    }

    fn replace(&mut self, def: TableDef) -> EngineResult<()> {
        let link = self.link()?;
        let stamp = self.fences.next_stamp(def.id);
        let table = blocking(|| Table::open(&link.connection, def, stamp))?;
        self.store(table.id(), Some(&table.def))?;
        self.define(table.id(), Some(Arc::new(table)));
        Ok(())
    }

    pub(crate) fn build_index(&mut self, id: TableId, def: &IndexDef) -> EngineResult<()> {
        refuse_index(def)?;
        self.lock_stamp(id)?;
        let (link, table) = (self.link()?, self.table(id)?);
        let mut new = TableDef::clone(&table.def);
        new.indexes.retain(|index| index.id != def.id);
        new.indexes.push(def.clone());
        let part = index_part(&new, def);
        self.push_undo(Undo::Created(vec![part.0.clone()]));
        create_part(&link, &part)?;
        let stamp = self.fences.next_stamp(id);
        let with_index = blocking(|| Table::open(&link.connection, new.clone(), stamp))?;
        self.fill_index(&link, &table, with_index.index(def.id)?)?;
        self.store(id, Some(&new))?;
        self.define(id, Some(Arc::new(with_index)));
        Ok(())
    }

    /// Gives every row its entry. Nobody changes the table meanwhile, and nobody sees the index before the commit: each batch is a transaction of its own.
    fn fill_index(&mut self, link: &Link, table: &Arc<Table>, index: &Index) -> EngineResult<()> {
        let spec = ScanSpec {
            table: table.id(),
            index: IndexId::CLUSTERED,
            range: engine_api::KeyRange::ALL,
            direction: engine_api::Direction::Forward,
            lock: RowLock::None,
            wait: WaitPolicy::Wait,
        };
        let mut cursor = Cursor::open(table.clone(), &spec, false)?;
        let mut batch = RowBatch::new();
        while self.fetch_from(&mut cursor, BATCH, &mut batch)? > 0 {
            let entries = batch.iter().map(|row| index.entry(row.record, row.locator));
            let entries = entries.collect::<EngineResult<Vec<_>>>()?;
            let mut inserts: Vec<Operation> = entries
                .iter()
                .map(|entry| Operation::new(Kind::Insert, &index.entries, &entry.key, &entry.row))
                .collect();
            let filled = blocking(|| insert_alone(link, &mut inserts));
            if let Some(at) = filled.map_err(NdbError::into_engine)? {
                let locator = batch.row(at).locator.to_vec();
                return Err(EngineError::DuplicateKey { index: index.def.id, locator });
            }
            batch.clear();
        }
        Ok(())
    }

    pub(crate) fn remove_index(&mut self, id: TableId, index: IndexId) -> EngineResult<()> {
        self.lock_stamp(id)?;
        let table = self.table(id)?;
        table.index(index)?;
        let mut new = TableDef::clone(&table.def);
        new.indexes.retain(|known| known.id != index);
        self.replace(new)?;
        let names = vec![index_name(id, index)];
        self.push_undo(Undo::Dropped { table: id, names, whole: false });
        Ok(())
    }
}

/// Inserts in a transaction of their own, again after temporary errors. Returns the place of a duplicate.
pub(crate) fn insert_alone(
    link: &Link,
    inserts: &mut [Operation],
) -> Result<Option<usize>, NdbError> {
    const TRIES: u32 = 100;
    let mut tries = 0;
    loop {
        let mut run = || {
            let mut ndb = NdbTransaction::begin(&link.connection, None)?;
            ndb.execute(inserts)?;
            let duplicate =
                inserts.iter().position(|insert| matches!(insert.code, DUPLICATE | NO_ROW));
            if duplicate.is_none() {
                ndb.commit()?;
            }
            Ok(duplicate)
        };
        match run() {
            Err(NdbError { status: 1, .. }) if tries < TRIES => {
                tries += 1;
                sys::threads::sleep(std::time::Duration::from_millis(20));
            }
            other => return other,
        }
    }
}

/// Whether no stored byte depends on the difference.
fn is_instant(old: &TableDef, new: &TableDef) -> bool {
    let (old_count, new_count) = (old.columns.len(), new.columns.len());
    let columns = old.columns.iter().zip(&new.columns);
    let same_columns = old_count <= new_count && columns.clone().all(|(a, b)| same_encoding(&a.ty, &b.ty))
        // What an older record lacks has one meaning.
        && columns.clone().all(|(a, b)| a.instant_default == b.instant_default);
    let same_indexes = old.indexes.len() == new.indexes.len()
        && old
            .indexes
            .iter()
            .zip(&new.indexes)
            .all(|(a, b)| a.id == b.id && a.parts == b.parts && a.unique == b.unique);
    same_columns && same_indexes
}

/// Whether values of `old` have the same record and key bytes in `new`.
fn same_encoding(old: &DataType, new: &DataType) -> bool {
    let widens = matches!(old.kind, TypeKind::VarChar | TypeKind::VarBinary)
        && new.length >= old.length
        // The record's length fields may depend on this border.
        && (old.length <= 255) == (new.length <= 255);
    let same = DataType { length: new.length, nullable: new.nullable, ..old.clone() } == *new;
    // A column that is not NULL has keys of another form.
    same && (old.length == new.length || widens) && new.nullable == old.nullable
}
