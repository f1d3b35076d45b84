//! Foreign keys: parents must exist; actions on children.
//!
//! Rows are passed as values, not in registers: cascades reach tables that the statement does not name.

use engine_api::{Direction, IndexId, KeyRange, RowBatch, RowLock, ScanSpec, TableId, WaitPolicy};
use errors::{Error, ErrorCode, Result, bail};
use plan::ForeignKeyAction;
use rows::convert::{self, KeyFit};
use rows::times::Successor;
use types::key::encode_part;
use types::{StoreMode, Value};

use super::Written;
use super::history::{keep, remove_row, stamp_apart};
use super::row::{Strictness, store};
use super::table::{ForeignKey, WriteColumn, WriteTable};
use super::watched::update_row;
use crate::run::Run;

/// Rows on a path of cascades, the statement's own counted; longer ones are refused, as in the reference.
const CASCADE_DEPTH_MAX: usize = 15;
/// Children handled at a time.
const CHILDREN_PER_FETCH: usize = 64;

/// A row that is being changed, and those above it from which cascades led here.
#[derive(Clone, Copy)]
pub(crate) struct Path<'p> {
    table: TableId,
    locator: &'p [u8],
    above: Option<&'p Path<'p>>,
    depth: usize,
}

impl<'p> Path<'p> {
    /// The statement's own row.
    pub(crate) fn new(table: &WriteTable, locator: &'p [u8]) -> Path<'p> {
        Path { table: table.id, locator, above: None, depth: 1 }
    }

    fn below(&'p self, child: &WriteTable, locator: &'p [u8]) -> Path<'p> {
        Path { table: child.id, locator, above: Some(self), depth: self.depth + 1 }
    }

    /// Whether a cascade has returned to a row above.
    fn has(&self, table: &WriteTable, locator: &[u8]) -> bool {
        let is_here = self.table == table.id && self.locator == locator;
        is_here || self.above.is_some_and(|above| above.has(table, locator))
    }
}

/// Key bytes of another table's index for values of this one; `None` when a part is NULL or cannot be there.
fn other_key(
    key: &ForeignKey,
    from: &WriteTable,
    other: &WriteTable,
    values: &[Value],
    run: &mut Run<'_>,
) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    for (column, other_column) in key.columns.iter().zip(&key.other_columns) {
        let value = &values[*column];
        if value.is_null() {
            return Ok(None);
        }
        let from_ty = &from.columns[*column].ty;
        let to_ty = &other.columns[*other_column].ty;
        match convert::to_key(value.clone(), from_ty, to_ty, true, &mut run.function)? {
            KeyFit::Exact(value) => encode_part(&value, to_ty, None, false, &mut bytes),
            KeyFit::Rounded(..) => return Ok(None),
        }
    }
    if let Some(history) = other.history.as_ref().filter(|_| key.only_current) {
        encode_part(&history.never, &other.columns[history.end].ty, None, false, &mut bytes);
    }
    Ok(Some(bytes))
}

/// Returns the current rows of `table` whose index key starts with `prefix`: locators and values, at most `limit`.
fn find_rows(
    table: &WriteTable,
    index: IndexId,
    prefix: Vec<u8>,
    lock: RowLock,
    limit: usize,
    run: &mut Run<'_>,
) -> Result<Vec<(Vec<u8>, Vec<Value>)>> {
    let spec = ScanSpec {
        table: table.id,
        index,
        range: KeyRange::prefix(prefix),
        direction: Direction::Forward,
        lock,
        wait: WaitPolicy::Wait,
    };
    let is_current = |values: &[Value]| {
        table.history.as_ref().is_none_or(|history| values[history.end] == history.never)
    };
    let mut batch = RowBatch::new();
    let mut rows = Vec::new();
    let mut damaged = None;
    let transaction = run.transaction(table.engine)?;
    let fetched = transaction.open_cursor(&spec).and_then(|cursor| {
        // Old rows are read too, and not kept: a key may have any number of them.
        while rows.len() < limit && damaged.is_none() {
            batch.clear();
            let wanted = (limit - rows.len()).min(CHILDREN_PER_FETCH);
            match transaction.fetch(cursor, wanted, &mut batch) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    transaction.close_cursor(cursor);
                    return Err(error);
                }
            }
            for row in batch.iter() {
                match table.layout.decode_all(row.record) {
                    Ok(values) if is_current(&values) => rows.push((row.locator.to_vec(), values)),
                    Ok(_) => {}
                    Err(error) => damaged = Some(error),
                }
            }
        }
        transaction.close_cursor(cursor);
        Ok(())
    });
    run.engine(fetched)?;
    damaged.map_or(Ok(rows), Err)
}

/// Whether two rows differ in some columns.
fn differ(old: Option<&[Value]>, new: &[Value], columns: &[usize]) -> bool {
    old.is_none_or(|old| columns.iter().any(|column| old[*column] != new[*column]))
}

/// Every parent of the new row exists. `old`: the row before an update; unchanged keys are not checked.
pub(crate) fn check_parents(
    table: &WriteTable,
    related: &[WriteTable],
    old: Option<&[Value]>,
    new: &[Value],
    run: &mut Run<'_>,
) -> Result<()> {
    if !run.env.settings.foreign_key_checks {
        return Ok(());
    }
    for key in &table.parents {
        if !differ(old, new, &key.columns) || key.columns.iter().any(|c| new[*c].is_null()) {
            continue;
        }
        let parent = &related[key.other];
        // A row may be its own parent.
        let is_own = parent.id == table.id
            && key.columns.iter().zip(&key.other_columns).all(|(c, other)| new[*c] == new[*other]);
        if is_own {
            continue;
        }
        // A parent table that does not exist has no columns.
        let found = !parent.columns.is_empty()
            && match other_key(key, table, parent, new, run)? {
                None => false,
                Some(prefix) => {
                    let lock = RowLock::Shared;
                    !find_rows(parent, key.other_index, prefix, lock, 1, run)?.is_empty()
                }
            };
        if !found {
            return Err(Error::with(ErrorCode::NO_REFERENCED_ROW_2, &[&key.text]));
        }
    }
    Ok(())
}

/// What becomes of a row that others may refer to.
#[derive(Clone, Copy)]
pub(crate) enum Fate<'v> {
    Deleted,
    /// It is deleted, and this row takes its place: those that refer to values of both stay.
    Replaced(&'v [Value]),
    Updated(&'v [Value]),
}

/// Applies what becomes of the row at the end of `path` to its children.
pub(crate) fn handle_children(
    table: &WriteTable,
    related: &[WriteTable],
    path: &Path<'_>,
    old: &[Value],
    fate: Fate<'_>,
    run: &mut Run<'_>,
) -> Result<()> {
    if !run.env.settings.foreign_key_checks || table.children.is_empty() {
        return Ok(());
    }
    let new = match fate {
        Fate::Deleted | Fate::Replaced(_) => None,
        Fate::Updated(new) => Some(new),
    };
    for key in &table.children {
        let stays = match fate {
            Fate::Deleted => false,
            Fate::Replaced(new) | Fate::Updated(new) => !differ(Some(old), new, &key.columns),
        };
        if stays {
            continue;
        }
        let child = &related[key.other];
        let Some(prefix) = other_key(key, table, child, old, run)? else { continue };
        let action = if new.is_some() { key.on_update } else { key.on_delete };
        let limit = match action {
            ForeignKeyAction::Cascade | ForeignKeyAction::SetNull => usize::MAX,
            ForeignKeyAction::Restrict
            | ForeignKeyAction::NoAction
            | ForeignKeyAction::SetDefault => 2,
        };
        let rows = find_rows(child, key.other_index, prefix, RowLock::Exclusive, limit, run)?;
        // Rows above are changed already: a deleted one does not block, and a cascade that returns to one ends.
        let is_above =
            |locator: &[u8]| (new.is_none() || path.depth > 1) && path.has(child, locator);
        match action {
            ForeignKeyAction::Cascade | ForeignKeyAction::SetNull => {
                if path.depth >= CASCADE_DEPTH_MAX && !rows.is_empty() {
                    return Err(Error::with(ErrorCode::FK_DEPTH_EXCEEDED, &[&CASCADE_DEPTH_MAX]));
                }
                for (locator, values) in rows.into_iter().filter(|row| !is_above(&row.0)) {
                    let below = path.below(child, &locator);
                    let mut change = Cascade { child, related, key, path: below };
                    change.apply(values, new, action, run)?;
                }
            }
            ForeignKeyAction::Restrict
            | ForeignKeyAction::NoAction
            | ForeignKeyAction::SetDefault => {
                if rows.iter().any(|(locator, _)| !is_above(locator)) {
                    return Err(Error::with(ErrorCode::ROW_IS_REFERENCED_2, &[&key.text]));
                }
            }
        }
    }
    Ok(())
}

struct Cascade<'t> {
    child: &'t WriteTable,
    related: &'t [WriteTable],
    key: &'t ForeignKey,
    path: Path<'t>,
}

impl Cascade<'_> {
    fn apply(
        &mut self,
        old: Vec<Value>,
        parent: Option<&[Value]>,
        action: ForeignKeyAction,
        run: &mut Run<'_>,
    ) -> Result<()> {
        if action == ForeignKeyAction::Cascade && parent.is_none() {
            return self.delete(old, run);
        }
        let (child, related, locator) = (self.child, self.related, self.path.locator);
        let mut new = old.clone();
        for (column, other_column) in self.key.columns.iter().zip(&self.key.other_columns) {
            new[*other_column] = match (action, parent) {
                (ForeignKeyAction::Cascade, Some(parent)) => parent[*column].clone(),
                _ => Value::Null,
            };
            if !holds(&child.columns[*other_column], &new[*other_column], run) {
                return Err(Error::with(ErrorCode::ROW_IS_REFERENCED_2, &[&self.key.text]));
            }
        }
        if child.has_generated {
            generate_apart(child, &mut new, run)?;
        }
        let old_row = self.fire_before_update(&old, &mut new, run)?;
        stamp_apart(child, &old, &mut new, run);
        handle_children(child, related, &self.path, &old, Fate::Updated(&new), run)?;
        let mut record = Vec::new();
        child.layout.encode(&new, &mut record)?;
        run.count_updated(child.id);
        match update_row(child, locator, &record, run)? {
            Written::Done => keep(child, &old, &new, run)?,
            Written::Duplicate { index, .. } => {
                return Err(duplicate_apart(child, &new, index, run));
            }
        }
        match &child.triggers {
            Some(triggers) if !triggers.after_update.is_empty() => {
                let mut new_row = child.row_apart(new, 1, run)?;
                run.fire(&triggers.after_update, &old_row, &mut new_row)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn delete(&self, old: Vec<Value>, run: &mut Run<'_>) -> Result<()> {
        let child = self.child;
        let row = match &child.triggers {
            Some(triggers) => {
                let row = child.row_apart(old.clone(), 1, run)?;
                run.fire(&triggers.before_delete, &row, &mut [])?;
                row
            }
            None => Vec::new(),
        };
        handle_children(child, self.related, &self.path, &old, Fate::Deleted, run)?;
        run.count_deleted(child.id);
        // False: another path of the same cascade has handled it already.
        let deleted = remove_row(child, self.path.locator, &old, Successor::None, run)?;
        match &child.triggers {
            Some(triggers) if deleted => run.fire(&triggers.after_delete, &row, &mut []),
            Some(_) | None => Ok(()),
        }
    }

    /// BEFORE UPDATE, which may change `new` except for the columns of foreign keys. Returns the old row as triggers see it.
    fn fire_before_update(
        &self,
        old: &[Value],
        new: &mut [Value],
        run: &mut Run<'_>,
    ) -> Result<Vec<Value>> {
        let child = self.child;
        let Some(triggers) = &child.triggers else { return Ok(Vec::new()) };
        let old_row = child.row_apart(old.to_vec(), 1, run)?;
        if triggers.before_update.is_empty() {
            return Ok(old_row);
        }
        let changed: Vec<Value> = with_row(child, new, run, |run| {
            let mut row = Vec::new();
            child.row_before(1, &mut row, run)?;
            run.fire(&triggers.before_update, &old_row, &mut row)?;
            child.take_row(&mut row, run);
            let strictness = Strictness { mode: StoreMode::Strict, null_is_error: true };
            child.check_nulls(strictness, run)?;
            child.generate(1, strictness, run)?;
            child.check(run)?;
            Ok::<_, Error>(child.columns.iter().map(|at| run.regs[at.register].clone()).collect())
        })?;
        let keys = child.parents.iter().flat_map(|key| &key.columns);
        if keys.chain(&self.key.other_columns).any(|column| changed[*column] != new[*column]) {
            bail!(FK_CASCADE_TRIGGER_UPDATING_FK_COLUMNS_NOT_SUPPORTED);
        }
        new.clone_from_slice(&changed);
        Ok(old_row)
    }
}

/// Whether a column can take a value of its parent: their types are the same but for lengths of texts and NULL.
fn holds(column: &WriteColumn, value: &Value, run: &mut Run<'_>) -> bool {
    if value.is_null() {
        return column.ty.nullable;
    }
    !column.ty.is_string()
        || store(value, &column.ty, false, column, 1, StoreMode::Strict, run).is_ok()
}

/// Runs `body` with the row in the registers of its table, and then restores the statement's registers.
pub(crate) fn with_row<'r, T>(
    table: &WriteTable,
    values: &[Value],
    run: &mut Run<'r>,
    body: impl FnOnce(&mut Run<'r>) -> T,
) -> T {
    let saved = run.regs.clone();
    for (column, value) in table.columns.iter().zip(values) {
        run.set(column.register, value.clone());
    }
    let outcome = body(run);
    run.regs = saved;
    outcome
}

fn generate_apart(table: &WriteTable, values: &mut [Value], run: &mut Run<'_>) -> Result<()> {
    let before = values.to_vec();
    let generated = with_row(table, &before, run, |run| {
        let strictness = Strictness { mode: StoreMode::Lenient, null_is_error: false };
        table.generate(1, strictness, run)?;
        Ok::<_, Error>(
            table
                .columns
                .iter()
                .map(|column| run.regs[column.register].clone())
                .collect::<Vec<_>>(),
        )
    })?;
    values.clone_from_slice(&generated);
    Ok(())
}

fn duplicate_apart(
    table: &WriteTable,
    values: &[Value],
    index: IndexId,
    run: &mut Run<'_>,
) -> Error {
    with_row(table, values, run, |run| table.duplicate(index, run))
}
