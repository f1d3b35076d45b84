//! Tells observers of the rows that statements write, and keeps the changes that sinks want.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::CatalogSnapshot;
use engine_api::TableId;
use errors::Result;
use exec::{RowMark, RowWatch, RowWrite};
use plugin_api::{ChangeSink, EventSet, Observer, Registry, RowColumn, RowEvent};

use crate::changes::{Changes, WatchedTable};

/// Tells of the rows of one session.
pub struct RowWatcher {
    registry: Arc<Registry>,
    snapshot: Arc<CatalogSnapshot>,
    /// What was found out about tables, for one statement.
    tables: HashMap<TableId, Option<Arc<WatchedTable>>>,
    /// The changes that sinks want.
    pub changes: Changes,
}

impl RowWatcher {
    /// A watcher without changes.
    pub fn new(
        registry: Arc<Registry>,
        snapshot: Arc<CatalogSnapshot>,
        changes: Changes,
    ) -> RowWatcher {
        RowWatcher { registry, snapshot, tables: HashMap::new(), changes }
    }

    /// A statement begins: plugins and definitions may be others.
    pub fn renew(&mut self, registry: Arc<Registry>, snapshot: Arc<CatalogSnapshot>) {
        self.tables.clear();
        (self.registry, self.snapshot) = (registry, snapshot);
    }

    /// What is to be known of a table; `None` when nobody wants its rows.
    fn find(&self, id: TableId) -> Option<Arc<WatchedTable>> {
        // Temporary tables are not in the snapshot: they are the session's own affair.
        let table = self.snapshot.table_by_id(id)?;
        let (schema, name) = (&*table.schema, &*table.name);
        let is_asking = |observer: &&Arc<dyn Observer>| {
            observer.events().meets(EventSet::ROWS) && observer.wants_rows_of(schema, name)
        };
        let is_active =
            |sink: &&Arc<dyn ChangeSink>| sink.is_active() && sink.wants_table(schema, name);
        let observers: Vec<_> =
            self.registry.observers().iter().filter(is_asking).cloned().collect();
        let sinks: Vec<_> =
            self.registry.change_sinks().iter().filter(is_active).cloned().collect();
        if observers.is_empty() && sinks.is_empty() {
            return None;
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
        Some(Arc::new(WatchedTable { schema, name, columns, places, observers, sinks }))
    }

    fn table(&mut self, id: TableId) -> Option<Arc<WatchedTable>> {
        if let Some(known) = self.tables.get(&id) {
            return known.clone();
        }
        let found = self.find(id);
        self.tables.insert(id, found.clone());
        found
    }
}

impl RowWatch for RowWatcher {
    fn wants(&mut self, table: TableId) -> bool {
        self.table(table).is_some()
    }

    fn before(&mut self, write: &RowWrite<'_>) -> Result<()> {
        let Some(table) = self.table(write.table) else { return Ok(()) };
        let asks = |observer: &&Arc<dyn Observer>| observer.events().meets(EventSet::BEFORE_ROW);
        if !table.observers.iter().any(|observer| asks(&observer)) {
            return Ok(());
        }
        let (old, new) = (write.old.map(|old| table.row(old)), write.new.map(|new| table.row(new)));
        let session = self.changes.session.facts();
        let event = RowEvent { session, change: table.change(old.as_deref(), new.as_deref()) };
        table.observers.iter().filter(asks).try_for_each(|observer| observer.before_row(&event))
    }

    fn after(&mut self, write: &RowWrite<'_>) {
        let Some(table) = self.table(write.table) else { return };
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
    }

    fn mark(&self) -> RowMark {
        self.changes.mark()
    }

    fn undo_to(&mut self, mark: RowMark) {
        self.changes.undo_to(mark);
    }
}
