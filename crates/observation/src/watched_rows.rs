//! Tells observers of the rows that statements write, and keeps the changes that sinks want.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::{CatalogSnapshot, Table};
use engine_api::{CancelToken, CommitHandle, TableId};
use errors::Result;
use exec::{RowMark, RowWatch, RowWish, RowWrite};
use plugin_api::{
    ChangeSink, EventSet, LoggedColumn, LoggedTable, Observer, Recorder, Registry, RowColumn,
    RowEvent, Tracking,
};

use crate::changes::{Changes, WatchedTable};

/// Tells of the rows of one session.
pub struct RowWatcher {
    registry: Arc<Registry>,
    snapshot: Arc<CatalogSnapshot>,
    /// What was found out about tables; for one statement when observers or sinks want rows.
    tables: Vec<(TableId, Option<Arc<WatchedTable>>)>,
    /// Observers or sinks may want rows.
    tells: bool,
    /// The changes that sinks want.
    pub changes: Changes,
    /// Records the rows for the binary log.
    recorder: Option<Box<dyn Recorder>>,
    /// Whether the running statement is recorded.
    records: bool,
    /// A table that the running statement makes.
    new_table: Option<Arc<Table>>,
    /// How much of what the recorder gave stays.
    detach_to: Option<u64>,
    /// Descriptions of tables for it, with the definitions that they were made of.
    logged: HashMap<TableId, (Arc<Table>, Arc<LoggedTable>)>,
}

/// Descriptions of tables that a session keeps.
const LOGGED_TABLES_MAX: usize = 64;
/// Recorded bytes that a session keeps.
const RECORDED_BYTES_MAX: usize = 1 << 20;

/// What the binary log says of a table.
pub(crate) fn logged_table(table: &Table, snapshot: &CatalogSnapshot) -> LoggedTable {
    let is_shown = |column: &&catalog::Column| {
        !column.generated.as_ref().is_some_and(|generated| generated.hidden)
    };
    let shown: Vec<(usize, &catalog::Column)> =
        table.columns.iter().enumerate().filter(|(_, column)| is_shown(column)).collect();
    // Those that are computed when read follow the others.
    let stored = table.columns.iter().filter(|column| column.stored.is_some()).count();
    let is_computed = |column: &&catalog::Column| column.stored.is_none();
    let computed = |index: usize| table.columns[..index].iter().filter(is_computed).count();
    let columns = shown.iter().map(|(index, column)| LoggedColumn {
        name: column.name.clone(),
        ty: column.ty.clone(),
        is_visible: !column.invisible,
        place: column.stored.unwrap_or_else(|| stored + computed(*index)),
    });
    let parts = table.primary().map(|index| table.key_parts(index)).unwrap_or_default();
    let key = parts.iter().filter_map(|part| {
        let place = shown.iter().position(|(column, _)| *column == part.column)?;
        Some((place, part.prefix_length))
    });
    let has_one_unique_key = table.indexes.iter().filter(|index| index.unique).count() == 1;
    let is_plain = |part: &catalog::IndexPart| {
        part.prefix_length.is_none() && !table.columns[part.column].ty.is_text()
    };
    let is_independent = !parts.is_empty()
        // Rows with other keys may have a time in common.
        && !table.refuses_overlaps()
        && has_one_unique_key
        && parts.iter().all(is_plain)
        && table.foreign_keys.is_empty()
        && snapshot.children_of(&table.schema, &table.name).next().is_none();
    LoggedTable {
        is_independent,
        id: table.id.0,
        schema: table.schema.clone(),
        name: table.name.clone(),
        columns: columns.collect(),
        primary_key: key.collect(),
    }
}

impl RowWatcher {
    /// A watcher without changes.
    pub fn new(
        registry: Arc<Registry>,
        snapshot: Arc<CatalogSnapshot>,
        changes: Changes,
    ) -> RowWatcher {
        RowWatcher {
            registry,
            snapshot,
            tables: Vec::new(),
            tells: false,
            changes,
            recorder: None,
            records: false,
            new_table: None,
            detach_to: None,
            logged: HashMap::new(),
        }
    }

    /// A statement begins, which is recorded if `records`: plugins and definitions may be others, and observers or sinks may want rows if
    /// `tells`.
    pub fn renew(
        &mut self,
        (registry, snapshot): (Arc<Registry>, Arc<CatalogSnapshot>),
        records: bool,
        tells: bool,
    ) {
        let is_same = Arc::ptr_eq(&registry, &self.registry)
            && Arc::ptr_eq(&snapshot, &self.snapshot)
            && self.records == records
            && !tells
            && !self.tells
            && self.tables.len() <= LOGGED_TABLES_MAX;
        if !is_same {
            self.tables.clear();
            (self.registry, self.snapshot) = (registry, snapshot);
            (self.records, self.tells) = (records, tells);
        }
    }

    /// Sets or forgets the table that the running statement makes.
    pub fn set_new_table(&mut self, table: Option<Arc<Table>>) {
        self.tables.clear();
        self.new_table = table;
    }

    /// The session's recorder, if there is a binary log.
    pub fn recorder(&mut self) -> Option<&mut (dyn Recorder + 'static)> {
        if self.recorder.is_none() {
            self.recorder = self.registry.binary_log().map(|log| log.recorder());
        }
        self.recorder.as_deref_mut()
    }

    /// What the recorder has and the attachment of the commit has not; `is_end`: the transaction is about to commit. Returns how much of
    /// what was attached stays, if not all.
    pub fn take_recorded(&mut self, is_end: bool, out: &mut Vec<u8>) -> Option<u64> {
        if let Some(recorder) = &mut self.recorder {
            if is_end {
                recorder.finish();
            }
            recorder.take(out);
        }
        self.detach_to.take()
    }

    /// Waits until replicas have what was recorded and committed since this was asked last, if they are to be waited for; `commit`
    /// is the last of it.
    ///
    /// # Errors
    /// The engine's log cannot be written.
    pub fn wait_for_replicas(&mut self, commit: Option<&CommitHandle>) -> Result<()> {
        if !self.recorder.as_mut().is_some_and(|recorder| recorder.take_logged()) {
            return Ok(());
        }
        self.registry.binary_log().map_or(Ok(()), |log| log.wait_for_replicas(commit))
    }

    /// The identifiers of the transactions that were recorded since this was asked last, or all that have committed, as a set; waits for
    /// `commit`, the last of them. `None` when there was no transaction.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn told_identifiers(
        &mut self,
        tracking: Tracking,
        commit: Option<&CommitHandle>,
        cancel: &CancelToken,
    ) -> Result<Option<String>> {
        let numbers = self.recorder.as_mut().map(|recorder| recorder.take_tracked());
        let numbers = numbers.unwrap_or_default();
        let Some(log) = self.registry.binary_log().filter(|_| !numbers.is_empty()) else {
            return Ok(None);
        };
        if let Some(commit) = commit {
            sys::blocking::blocking(|| commit.wait()).map_err(|e| e.into_error(cancel))?;
        }
        let set = match tracking {
            Tracking::Off => String::new(),
            Tracking::Own => log.tracked(&numbers)?,
            Tracking::All => log.status()?.executed,
        };
        Ok(Some(set).filter(|set| !set.is_empty()))
    }

    /// The transaction has ended.
    pub fn forget_recorded(&mut self) {
        self.detach_to = None;
        if let Some(recorder) = &mut self.recorder {
            recorder.reset();
        }
    }

    /// `gtid_next` was set.
    pub fn renew_identifier(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.renew_identifier();
        }
    }

    /// What the binary log says of a table.
    fn logged(&mut self, table: &Arc<Table>) -> Arc<LoggedTable> {
        if let Some((made_of, known)) = self.logged.get(&table.id)
            && Arc::ptr_eq(made_of, table)
        {
            return known.clone();
        }
        if self.logged.len() >= LOGGED_TABLES_MAX {
            self.logged.clear();
        }
        let made = Arc::new(logged_table(table, &self.snapshot));
        self.logged.insert(table.id, (table.clone(), made.clone()));
        made
    }

    /// What is to be known of a table; `None` when nobody wants its rows.
    fn find(&mut self, id: TableId) -> Option<Arc<WatchedTable>> {
        // Temporary tables are not in the snapshot: they are the session's own affair.
        let new = self.new_table.as_ref().filter(|table| table.id == id);
        let table = new.cloned().or_else(|| self.snapshot.table_by_id(id))?;
        let (schema, name) = (&*table.schema, &*table.name);
        let is_asking = |observer: &&Arc<dyn Observer>| {
            observer.events().meets(EventSet::ROWS) && observer.wants_rows_of(schema, name)
        };
        let is_active =
            |sink: &&Arc<dyn ChangeSink>| sink.is_active() && sink.wants_table(schema, name);
        let (mut observers, mut sinks) = (Vec::new(), Vec::new());
        if self.tells {
            observers.extend(self.registry.observers().iter().filter(is_asking).cloned());
            sinks.extend(self.registry.change_sinks().iter().filter(is_active).cloned());
        }
        let logged = self.records.then(|| self.logged(&table));
        if observers.is_empty() && sinks.is_empty() {
            let (schema, name) = (table.schema.clone(), table.name.clone());
            let (columns, places) = (Vec::new(), Vec::new());
            return logged.map(|logged| {
                let logged = Some(logged);
                Arc::new(WatchedTable { schema, name, columns, places, observers, sinks, logged })
            });
        }
        let is_shown = |column: &&catalog::Column| {
            !column.generated.as_ref().is_some_and(|generated| generated.hidden)
        };
        let stored = |column: &catalog::Column| {
            let shown = RowColumn { name: column.name.clone(), ty: column.ty.clone() };
            column.stored.map(|place| (shown, place))
        };
        let (columns, places) = table.columns.iter().filter(is_shown).filter_map(stored).unzip();
        let (schema, name) = (table.schema.clone(), table.name.clone());
        Some(Arc::new(WatchedTable { schema, name, columns, places, observers, sinks, logged }))
    }

    /// The same, found once for a statement.
    fn table(&mut self, id: TableId) -> Option<&Arc<WatchedTable>> {
        let known = self.tables.iter().position(|(table, _)| *table == id);
        let at = known.unwrap_or_else(|| {
            let found = self.find(id);
            self.tables.push((id, found));
            self.tables.len() - 1
        });
        self.tables.get(at)?.1.as_ref()
    }
}

impl RowWatch for RowWatcher {
    fn wish(&mut self, table: TableId) -> RowWish {
        match self.table(table) {
            None => RowWish::No,
            Some(table) if table.observers.is_empty() && table.sinks.is_empty() => RowWish::Logged,
            Some(_) => RowWish::Told,
        }
    }

    fn before(&mut self, write: &RowWrite<'_>) -> Result<()> {
        let Some(table) = self.table(write.table).cloned() else { return Ok(()) };
        let asks = |observer: &&Arc<dyn Observer>| observer.events().meets(EventSet::BEFORE_ROW);
        if !table.observers.iter().any(|observer| asks(&observer)) {
            return Ok(());
        }
        let (old, new) = (write.old.map(|old| table.row(old)), write.new.map(|new| table.row(new)));
        let session = self.changes.session.facts();
        let event = RowEvent { session, change: table.change(old.as_deref(), new.as_deref()) };
        table.observers.iter().filter(asks).try_for_each(|observer| observer.before_row(&event))
    }

    fn after(&mut self, write: &RowWrite<'_>) -> Result<bool> {
        let Some(table) = self.table(write.table).cloned() else { return Ok(false) };
        let mut is_much = false;
        if let (Some(logged), Some(recorder)) = (&table.logged, &mut self.recorder) {
            recorder.row(logged, write.old, write.new, write.edited)?;
            is_much = recorder.waiting() > RECORDED_BYTES_MAX;
        }
        if table.observers.is_empty() && table.sinks.is_empty() {
            return Ok(is_much);
        }
        let (old, new) = (write.old.map(|old| table.row(old)), write.new.map(|new| table.row(new)));
        let session = self.changes.session.facts();
        let event = RowEvent { session, change: table.change(old.as_deref(), new.as_deref()) };
        for observer in &table.observers {
            if observer.events().meets(EventSet::AFTER_ROW) {
                observer.after_row(&event);
            }
        }
        if !table.sinks.is_empty() {
            self.changes.push(&table, old, new);
        }
        Ok(is_much)
    }

    fn mark(&mut self) -> RowMark {
        let logged = self.recorder.as_mut().map_or(0, |recorder| recorder.mark());
        RowMark { logged, ..self.changes.mark() }
    }

    fn undo_to(&mut self, mark: RowMark) {
        self.changes.undo_to(mark);
        if let Some(recorder) = &mut self.recorder
            && let Some(taken) = recorder.undo_to(mark.logged)
        {
            self.detach_to = Some(self.detach_to.map_or(taken, |known| known.min(taken)));
        }
    }
}
