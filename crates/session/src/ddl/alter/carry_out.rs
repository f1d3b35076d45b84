//! Makes an altered definition true: in place, with indexes built beside writers where that can be, or by a copy; then publishes it.

use std::sync::Arc;

use catalog::{Edit, Index, MetadataGuard, Table};
use engine_api::{
    CommitHandle, Direction, EngineError, EngineResult, GetOutcome, IndexDef, IndexId, KeyRange,
    RowBatch, RowBuf, RowLock, ScanSpec, TableId, Transaction, WaitPolicy,
};
use errors::{ErrorCode, Result, bail};
use exec::TransactionSource;
use types::Value;

use super::way::{
    IndexChanges, builds_online, check_demands, check_fulltext, choose_way, reference_copies,
};
use super::{Algorithm, Lock, Request};
use crate::ddl::copy::Copied;
use crate::ddl::create::materialise_indexed_columns;
use crate::ddl::draft::Draft;
use crate::session::Session;

impl Session {
    /// Makes the new definition true.
    pub(super) fn carry_out(
        &mut self,
        table: &Arc<Table>,
        mut draft: Draft,
        request: &Request,
        guard: &mut MetadataGuard,
    ) -> Result<(u64, Option<CommitHandle>)> {
        materialise_indexed_columns(&mut draft);
        draft.name_constraints(Some(table))?;
        self.check_expressions(&draft)?;
        self.renew_partition_values(&mut draft)?;
        self.check_partitioned(&draft)?;
        let next = draft.auto_increment;
        let existing: Vec<Arc<str>> = draft
            .foreign_keys
            .iter()
            .filter(|key| key.existing)
            .filter_map(|key| key.name.clone())
            .collect();
        let origins: Vec<Option<usize>> =
            draft.columns.iter().map(|column| column.origin).collect();
        let mut new = draft.finish(table.id, Some(table))?;
        self.note_repeated_indexes(&new, Some(table));
        self.check_foreign_keys(&mut new, &existing)?;
        self.check_kept_keys(table, &new, &origins, &existing)?;
        let adds_keys = new.foreign_keys.len() > existing.len();
        let adds_checks = new.checks.iter().any(|check| {
            check.enforced
                && !table
                    .checks
                    .iter()
                    .any(|known| known.enforced && known.expression == check.expression)
        });
        if let Some((schema, name)) = &request.rename {
            let same = *schema == table.schema && *name == table.name;
            let taken = self.server.catalog.with(|snapshot| snapshot.kind(schema, name).is_some());
            if !same && taken {
                bail!(TABLE_EXISTS_ERROR, name);
            }
            new.rename(schema, name);
        }
        if !table.temporary {
            let catalog = self.server.catalog.snapshot();
            catalog.check_constraint_names(&new, Some(table.id))?;
        }
        check_fulltext(table, &new, request)?;
        let way = choose_way(table, &mut new, &origins);
        let must_copy = way.is_none()
            || request.rebuild
            || adds_keys
            || adds_checks
            || self.copies_what_stays(table, &request.gone)?;
        let copies = must_copy || request.algorithm == Algorithm::Copy;
        let needs_copy = reference_copies(table, &new, &origins);
        let counts_rows = request.algorithm == Algorithm::Copy
            || request.orders
            || request.repartitions
            || adds_checks
            || adds_keys && self.settings.foreign_key_checks
            || needs_copy;
        if must_copy && request.algorithm == Algorithm::Instant && !request.rebuild {
            bail!(ALTER_OPERATION_NOT_SUPPORTED, "ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
        }
        check_demands(request, needs_copy, copies)?;
        // Where the reference rebuilds in place it looks at no value.
        let copied = Copied {
            origins: &origins,
            next,
            partitions: request.kept.as_deref(),
            checks_dates: counts_rows,
        };
        if copies {
            let (rows, commit) = self.alter_by_copy(table, new, &copied)?;
            return Ok((if counts_rows { rows } else { 0 }, commit));
        }
        let changes = way.unwrap_or_default();
        if request.algorithm == Algorithm::Instant && !changes.added.is_empty() {
            bail!(ALTER_OPERATION_NOT_SUPPORTED, "ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE");
        }
        if request.lock == Lock::None && !builds_online(table, &new, &changes) {
            let reason = "indexes over columns added by the same statement are built with a lock";
            bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", reason, "LOCK=SHARED");
        }
        let emptied = self.empty_partitions(table, &request.gone);
        match emptied.and_then(|()| self.alter_in_place(table, &new, &changes, guard)) {
            Err(EngineError::Other(error)) if error.code() == ErrorCode::NOT_SUPPORTED_YET => {
                self.transactions.rollback()?;
                if request.algorithm == Algorithm::Instant {
                    bail!(
                        ALTER_OPERATION_NOT_SUPPORTED,
                        "ALGORITHM=INSTANT",
                        "ALGORITHM=COPY/INPLACE"
                    );
                }
                let (rows, commit) = self.alter_by_copy(table, new, &copied)?;
                return Ok((if counts_rows { rows } else { 0 }, commit));
            }
            Err(EngineError::DuplicateKey { index, locator }) => {
                let index = new.indexes.iter().find(|known| known.id == index);
                let name = index.map_or("", |index| &index.name);
                let key = format!("{}.{name}", table.name);
                let entry = index.and_then(|index| self.shown_entry(&new, index, &locator));
                self.transactions.rollback()?;
                bail!(DUP_ENTRY, entry.unwrap_or_default(), key);
            }
            Err(error) => {
                // While the table is still locked: what is half done goes first.
                self.transactions.rollback()?;
                return Err(error.into_error(&self.shared.cancel));
            }
            Ok(()) => {}
        }
        let new = Arc::new(new);
        let counter = match next.filter(|next| *next > 0) {
            Some(next) => self.next_beyond_rows(table, &new, next)?,
            None => None,
        };
        let commit = self.publish_altered(table, new.clone())?;
        if let Some(counter) = counter {
            self.set_auto_increment(&new, counter)?;
        }
        Ok((0, commit))
    }

    /// `next`, or what follows the largest value of the AUTO_INCREMENT column. `None` for a table without one.
    fn next_beyond_rows(&mut self, old: &Table, new: &Table, next: u64) -> Result<Option<u64>> {
        let Some(at) = new.columns.iter().position(|column| column.auto_increment) else {
            return Ok(None);
        };
        let leads = |index: &&Index| index.parts.first().is_some_and(|part| part.column == at);
        let index = new.indexes.iter().find(leads);
        let (Some(index), Some(stored)) = (index, new.columns[at].stored) else {
            return Ok(None);
        };
        let backward = !index.parts[0].descending;
        let cancel = self.shared.cancel.clone();
        let txn = self.transactions.transaction(&old.engine)?;
        let last = last_row(txn, old.id, index.id, backward).map_err(|e| e.into_error(&cancel))?;
        let types: Vec<_> = new.definition.columns.iter().map(|c| c.ty.clone()).collect();
        let layout = types::record::RecordLayout::new(&types);
        let missing = new.definition.columns[stored].instant_default.as_ref();
        let largest = match last.and_then(|row| layout.value(&row, stored, missing)) {
            Some(Value::Int(value)) => u64::try_from(value).unwrap_or(0),
            Some(Value::UInt(value)) => value,
            _ => 0,
        };
        Ok(Some(next.max(largest.saturating_add(1))))
    }

    /// Changes the definition and its indexes without writing rows anew. New indexes are built while others use the table, if they can be.
    fn alter_in_place(
        &mut self,
        table: &Table,
        new: &Table,
        changes: &IndexChanges,
        guard: &mut MetadataGuard,
    ) -> Result<(), EngineError> {
        let engine = if table.temporary {
            self.server.temporary_engine.clone()
        } else {
            self.server.default_engine.clone()
        };
        let is_added = |index: &&IndexDef| changes.added.contains(&index.id);
        let added: Vec<_> = new.definition.indexes.iter().filter(is_added).cloned().collect();
        let online = !added.is_empty() && !table.temporary && builds_online(table, new, changes);
        let mut left = added.as_slice();
        if online && self.transactions.transaction(engine.name())?.begin_indexes(table.id, left)? {
            guard.downgrade();
            let txn = self.transactions.transaction(engine.name())?;
            sys::blocking::blocking(|| txn.fill_indexes(table.id))?;
            let timeout = self.settings.lock_wait_timeout;
            guard.upgrade(timeout, &self.shared.cancel).map_err(EngineError::Other)?;
            self.transactions.transaction(engine.name())?.finish_indexes(table.id)?;
            left = &[];
        }
        let txn = self.transactions.transaction(engine.name())?;
        for index in &changes.dropped {
            txn.drop_index(table.id, *index)?;
        }
        for index in &table.fulltext {
            if !new.fulltext.iter().any(|known| known.entries == index.entries) {
                txn.drop_table(index.entries)?;
            }
        }
        let mut definition = new.definition.clone();
        let mut before = table.definition.clone();
        before.indexes.retain(|index| !changes.dropped.contains(&index.id));
        match left {
            [] => before.indexes.extend(added.iter().cloned()),
            left => definition.indexes.retain(|index| !left.contains(index)),
        }
        if definition != before {
            txn.alter_table(&definition)?;
        }
        for index in left {
            sys::blocking::blocking(|| txn.create_index(table.id, index))?;
        }
        Ok(())
    }

    /// The columns of an index in one row, as error 1062 shows them.
    fn shown_entry(&mut self, table: &Table, index: &Index, locator: &[u8]) -> Option<String> {
        let txn = self.transactions.transaction(&table.engine).ok()?;
        let mut row = RowBuf::default();
        let (clustered, wait) = (IndexId::CLUSTERED, WaitPolicy::Wait);
        let found = txn.get(table.id, clustered, locator, RowLock::None, wait, &mut row).ok()?;
        if found != GetOutcome::Found {
            return None;
        }
        let types: Vec<_> = table.definition.columns.iter().map(|c| c.ty.clone()).collect();
        let layout = types::record::RecordLayout::new(&types);
        let columns = &table.definition.columns;
        let mut text = Vec::new();
        for (at, part) in index.parts.iter().enumerate() {
            let column = &table.columns.get(part.column)?;
            let stored = column.stored?;
            let missing = columns.get(stored)?.instant_default.as_ref();
            if at > 0 {
                text.push(b'-');
            }
            match layout.value(&row.record, stored, missing)? {
                Value::Null => text.extend_from_slice(b"NULL"),
                Value::DateTime(_) if column.ty.kind == types::TypeKind::Timestamp => return None,
                value => types::to_text(&value, &column.ty, &mut text),
            }
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Makes an altered table the current one.
    pub(in crate::ddl) fn publish_altered(
        &mut self,
        old: &Table,
        new: Arc<Table>,
    ) -> Result<Option<CommitHandle>> {
        if old.temporary {
            let tables = Arc::make_mut(&mut self.temporary);
            tables.remove(&(old.schema.clone(), old.name.clone()));
            tables.insert((new.schema.clone(), new.name.clone()), new);
            return Ok(Some(self.transactions.commit()?));
        }
        let mut edits = vec![Edit::ReplaceTable { old: old.id, new: new.clone() }];
        edits.extend(self.child_edits(old, &new));
        self.commit_definitions(&edits).map(Some)
    }

    /// Tables whose foreign keys follow renamed tables and columns of their parent.
    fn child_edits(&self, old: &Table, new: &Table) -> Vec<Edit> {
        let snapshot = self.server.catalog.snapshot();
        let mut edits = Vec::new();
        for child in snapshot.children_of(&old.schema, &old.name) {
            if child.id == old.id {
                continue;
            }
            let mut changed = Table::clone(&child);
            for key in &mut changed.foreign_keys {
                if key.referenced_schema != old.schema || key.referenced_table != old.name {
                    continue;
                }
                key.referenced_schema = new.schema.clone();
                key.referenced_table = new.name.clone();
                for column in &mut key.referenced_columns {
                    let place = old.column(column).and_then(|at| old.columns[at].stored);
                    let renamed = place.and_then(|place| {
                        new.columns.iter().find(|column| column.stored == Some(place))
                    });
                    if new.column(column).is_none()
                        && let Some(renamed) = renamed
                    {
                        *column = renamed.name.clone();
                    }
                }
            }
            if changed.foreign_keys != child.foreign_keys {
                edits.push(Edit::ReplaceTable { old: child.id, new: Arc::new(changed) });
            }
        }
        edits
    }
}

/// The record at one end of an index.
fn last_row(
    txn: &mut dyn Transaction,
    table: TableId,
    index: IndexId,
    backward: bool,
) -> EngineResult<Option<Vec<u8>>> {
    let cursor = txn.open_cursor(&ScanSpec {
        table,
        index,
        range: KeyRange::ALL,
        direction: if backward { Direction::Backward } else { Direction::Forward },
        lock: RowLock::None,
        wait: WaitPolicy::Wait,
    })?;
    let mut batch = RowBatch::new();
    let fetched = txn.fetch(cursor, 1, &mut batch);
    txn.close_cursor(cursor);
    Ok((fetched? > 0).then(|| batch.row(0).record.to_vec()))
}
