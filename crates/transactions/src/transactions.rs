//! A session's transactions: one for each engine that it uses, begun and ended together.
//!
//! The default engine's transaction commits last and gives the handle that the reply waits for; a temporary table's engine keeps
//! nothing that must survive.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, CatalogSnapshot, Edit, MetadataLocks, MetadataSlot, PendingDefinitions};
use engine_api::{
    CancelToken, CommitHandle, Engine, EngineIndex, IsolationLevel, Savepoint, TableId,
    Transaction, TxnOptions,
};
use errors::{Error, Result, err};
use exec::{Host, RowMark, RowWatch, TransactionSource};
use plugin_api::Registry;

use crate::report::TransactionReport;
use crate::sharing::Shared;
use crate::xa::{Branch, XaBranches};
use observation::process::SessionShared;
use observation::{ChangeOrder, Changes, RowWatcher};

/// One engine's transaction.
struct Part {
    index: EngineIndex,
    engine: Arc<dyn Engine>,
    txn: Box<dyn Transaction>,
    /// The engine has no snapshots or no gap locks: not every transaction may use it.
    is_limited: bool,
}

/// A place in the transactions to return to.
#[derive(Clone)]
pub struct Place {
    /// In each engine that had a transaction then.
    places: Vec<(&'static str, Savepoint)>,
    rows: RowMark,
    definitions: usize,
    counters: usize,
}

struct NamedSavepoint {
    name: String,
    place: Place,
}

/// Characteristics of the next transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Characteristics {
    pub isolation: IsolationLevel,
    pub read_only: bool,
}

/// State that a session's transactions share with those of other sessions.
#[derive(Clone)]
pub struct TransactionHome {
    pub registry: Arc<Registry>,
    pub locks: Arc<MetadataLocks>,
    pub branches: Arc<XaBranches>,
    pub session: Arc<SessionShared>,
    pub changes: Arc<ChangeOrder>,
    pub catalog: Arc<Catalog>,
}

/// The session's transactions.
pub struct Transactions {
    pub home: TransactionHome,
    cancel: CancelToken,
    /// The metadata locks of the tables that they used.
    pub slot: Arc<MetadataSlot>,
    parts: Vec<Part>,
    savepoints: Vec<NamedSavepoint>,
    /// Those before it belong to the callers of the running function or trigger, which cannot see them.
    visible_savepoints: usize,
    /// Definitions that they changed, with `transactional_ddl`.
    pub definitions: Option<Arc<PendingDefinitions>>,
    /// AUTO_INCREMENT counters of tables before they set them.
    counters: Vec<(TableId, u64)>,
    /// Where the running statement began, when it changes definitions within the transaction.
    pub definition_began: Option<Place>,
    /// START TRANSACTION, or the first statement without autocommit, began it.
    pub explicit: bool,
    /// WITH CONSISTENT SNAPSHOT began it.
    has_snapshot: bool,
    /// They are a branch of a global transaction.
    pub may_be_prepared: bool,
    pub characteristics: Characteristics,
    /// SET TRANSACTION: characteristics of the next transaction only.
    pub next: Option<Characteristics>,
    /// The XA branch that they are.
    pub branch: Option<Branch>,
    /// Stored functions and triggers that run: their statements are part of the calling one.
    pub function_depth: u32,
    pub row_lock_timeout: Duration,
    /// Set while somebody wants the rows that statements write.
    pub watcher: Option<Box<RowWatcher>>,
    /// Scratch: what goes from the recorder to the attachment of the commit.
    recorded: Vec<u8>,
    /// What replies tell of them.
    pub report: TransactionReport,
}

impl Transactions {
    pub fn new(home: TransactionHome, slot: Arc<MetadataSlot>) -> Transactions {
        Transactions {
            cancel: home.session.cancel.clone(),
            home,
            slot,
            parts: Vec::new(),
            savepoints: Vec::new(),
            visible_savepoints: 0,
            definitions: None,
            counters: Vec::new(),
            definition_began: None,
            explicit: false,
            has_snapshot: false,
            may_be_prepared: false,
            characteristics: Characteristics {
                isolation: IsolationLevel::RepeatableRead,
                read_only: false,
            },
            next: None,
            branch: None,
            function_depth: 0,
            row_lock_timeout: Duration::from_secs(50),
            watcher: None,
            recorded: Vec::new(),
            report: TransactionReport::default(),
        }
    }

    /// Adds an engine that no statement has used yet. Returns its index among the parts.
    #[cold]
    fn add_part(&mut self, index: EngineIndex) -> Result<usize> {
        let engine = self.engine_at(index)?.clone();
        let mut txn = engine.new_transaction();
        txn.set_session(self.home.session.id);
        let can = engine.capabilities();
        let is_limited = !can.snapshots || !can.gap_locks;
        self.parts.push(Part { index, engine, txn, is_limited });
        Ok(self.parts.len() - 1)
    }

    pub fn cancel(&self) -> &CancelToken {
        &self.cancel
    }

    #[inline]
    fn options(&self) -> TxnOptions {
        TxnOptions {
            isolation: self.characteristics.isolation,
            read_only: self.characteristics.read_only,
            may_be_prepared: self.may_be_prepared,
            lock_wait_timeout: self.row_lock_timeout,
            cancel: self.cancel.clone(),
        }
    }

    /// Sets the timeout of row locks, also in transactions that have begun.
    pub fn set_row_lock_timeout(&mut self, timeout: Duration) {
        self.row_lock_timeout = timeout;
        for part in &mut self.parts {
            part.txn.set_lock_wait_timeout(timeout);
        }
    }

    /// Whether any engine has a started transaction.
    #[inline]
    pub fn is_started(&self) -> bool {
        self.parts.iter().any(|part| part.txn.is_started())
    }

    /// Whether durable changes were written.
    #[inline]
    pub fn has_written(&self) -> bool {
        self.has_written_to(|part| part.engine.is_durable())
    }

    /// Whether changes were written, durable or not.
    #[inline]
    pub fn has_changes(&self) -> bool {
        self.has_written_to(|_| true)
    }

    #[inline]
    fn has_written_to(&self, counts: impl Fn(&Part) -> bool) -> bool {
        let wrote = |part: &Part| part.txn.is_started() && part.txn.has_written();
        self.definitions.is_some() || self.parts.iter().any(|part| counts(part) && wrote(part))
    }

    /// Begins a statement in the transactions that are started.
    #[inline]
    pub fn begin_statement(&mut self) {
        for part in &mut self.parts {
            if part.txn.is_started() {
                part.txn.begin_statement();
            }
        }
    }

    /// Starts the transaction in `engine` with a snapshot now.
    pub fn take_snapshot(&mut self, engine: &str) -> Result<()> {
        self.transaction(engine)?.take_snapshot();
        self.has_snapshot = true;
        self.report.take_snapshot();
        Ok(())
    }

    /// Ends all, keeping the changes.
    ///
    /// # Errors
    /// The first engine's error; the others are rolled back then.
    #[inline]
    pub fn commit(&mut self) -> Result<CommitHandle> {
        if self.parts.len() > 1 && self.writes_two_engines() {
            self.rollback()?;
            return Err(Error::not_supported("transactions that write to tables in two engines"));
        }
        if let Err(error) = self.attach_recorded(true) {
            // The first error is the one to report.
            let _ = self.rollback();
            return Err(error);
        }
        match self.take_changes() {
            None => self.commit_parts(),
            Some(changes) => {
                let order = self.home.changes.clone();
                order.commit(|| self.commit_parts(), |number| changes.tell(number))
            }
        }
    }

    /// Commits the transactions of all engines but some.
    ///
    /// # Errors
    /// The first engine's error; that one's transaction is over.
    pub fn commit_others(&mut self, engines: &[&str]) -> Result<()> {
        for part in &mut self.parts {
            if part.txn.is_started() && !engines.contains(&part.engine.name()) {
                part.txn.commit().map_err(|error| error.into_error(&self.cancel))?;
            }
        }
        Ok(())
    }

    /// Whether two engines that survive a crash have written: nothing commits them together.
    #[inline]
    fn writes_two_engines(&self) -> bool {
        let wrote = |part: &&Part| {
            part.engine.is_durable() && part.txn.is_started() && part.txn.has_written()
        };
        self.definitions.is_none() && self.parts.iter().filter(wrote).count() > 1
    }

    #[inline]
    fn commit_parts(&mut self) -> Result<CommitHandle> {
        self.forget_rows();
        self.explicit = false;
        self.report.end();
        self.has_snapshot = false;
        self.savepoints.clear();
        let mut handle = CommitHandle::Durable;
        let mut failure = None;
        // Their locks are kept until everything is published.
        let definitions = self.definitions.take();
        self.counters.clear();
        let catalog = self.home.catalog.clone();
        let edits = definitions.as_ref().map(|own| own.edits()).unwrap_or_default();
        let sharing = edits.iter().any(Edit::is_shared).then(|| catalog.sharing());
        let mut shared = Shared::default();
        if let (Some(_), Some(own)) = (&sharing, &definitions) {
            match self.share(&own.snapshot(&catalog), &edits) {
                Ok(told) => shared = told,
                Err(error) => failure = Some(error),
            }
        }
        let catalog_engine = self.home.catalog.engine().name();
        let count = self.parts.len();
        // The dictionary's engine last: the others may fail.
        let is_last = |part: &Part| count == 1 || part.engine.name() == catalog_engine;
        for (at, last) in
            (usize::from(count == 1)..count * 2).map(|step| (step % count, step >= count))
        {
            let Some(part) = self.parts.get_mut(at).filter(|part| is_last(part) == last) else {
                continue;
            };
            if !part.txn.is_started() {
                continue;
            }
            if failure.is_some() {
                // The first error is the one to report.
                let _ = part.txn.rollback();
                continue;
            }
            let own = definitions.as_ref().filter(|own| {
                own.mark() > 0 && part.engine.name() == self.home.catalog.engine().name()
            });
            let committed = match own {
                Some(definitions) => {
                    self.home.catalog.commit_pending(part.txn.as_mut(), definitions, &self.cancel)
                }
                None => part.txn.commit().map_err(|error| error.into_error(&self.cancel)),
            };
            match committed {
                Ok(CommitHandle::Durable) => {}
                Ok(pending) => handle = pending,
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            None => {
                shared.follow();
                Ok(handle)
            }
            Some(error) => Err(error),
        }
    }

    /// Ends all, leaving the changes in doubt: the engines get the decision later under `name`.
    ///
    /// # Errors
    /// The first engine's error; the changes in the others are rolled back then.
    pub fn prepare(&mut self, name: &[u8]) -> Result<CommitHandle> {
        if self.definitions.is_some() {
            return Err(Error::not_supported("XA PREPARE of definitions"));
        }
        self.attach_recorded(true)?;
        self.forget_recorded();
        let mut handle = CommitHandle::Durable;
        for part in self.parts.iter_mut().filter(|part| part.txn.is_started()) {
            match part.txn.prepare(name) {
                Ok(CommitHandle::Durable) => {}
                Ok(pending) => handle = pending,
                Err(error) => {
                    let error = error.into_error(&self.cancel);
                    for part in &self.parts {
                        // The error above is the one to report.
                        let _ = part.engine.rollback_prepared(name);
                    }
                    let _ = self.rollback();
                    return Err(error);
                }
            }
        }
        self.explicit = false;
        self.report.end();
        self.savepoints.clear();
        Ok(handle)
    }

    /// Ends all, undoing the changes.
    ///
    /// # Errors
    /// The first engine's error; all are ended anyway.
    #[inline]
    pub fn rollback(&mut self) -> Result<()> {
        self.forget_rows();
        self.explicit = false;
        self.report.end();
        self.has_snapshot = false;
        self.savepoints.clear();
        let mut result = Ok(());
        for part in &mut self.parts {
            if part.txn.is_started()
                && let Err(error) = part.txn.rollback()
                && result.is_ok()
            {
                result = Err(error.into_error(&self.cancel));
            }
        }
        self.restore_counters(0);
        // Only now may others use the tables.
        self.definitions = None;
        self.definition_began = None;
        result
    }

    /// The catalog as the transactions see it.
    #[inline]
    pub fn snapshot(&self) -> Arc<CatalogSnapshot> {
        match &self.definitions {
            None => self.home.catalog.snapshot(),
            Some(definitions) => definitions.snapshot(&self.home.catalog),
        }
    }

    /// Where the writes that are kept for sinks are now.
    #[inline]
    pub fn row_mark(&mut self) -> RowMark {
        self.watcher.as_mut().map_or_else(RowMark::default, |watcher| watcher.mark())
    }

    /// Writes after a mark have been undone.
    #[inline]
    pub fn undo_rows_to(&mut self, mark: RowMark) {
        if let Some(watcher) = &mut self.watcher {
            watcher.undo_to(mark);
        }
    }

    /// The transaction has ended: nothing of its writes is kept.
    #[inline]
    pub fn forget_rows(&mut self) {
        // First, or the identifier that the transaction had would not be known to be used.
        self.forget_recorded();
        self.undo_rows_to(RowMark::default());
    }

    #[inline]
    pub fn forget_recorded(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.forget_recorded();
        }
    }

    /// Moves what the recorder has to the attachment of the commit; all of it when the transaction is about to commit.
    ///
    /// # Errors
    /// I/O.
    #[inline]
    pub fn attach_recorded(&mut self, is_end: bool) -> Result<()> {
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        let mut bytes = std::mem::take(&mut self.recorded);
        bytes.clear();
        let detach_to = watcher.take_recorded(is_end, &mut bytes);
        let mut attached = Ok(());
        if detach_to.is_some() || !bytes.is_empty() {
            attached = self.attach(detach_to, &bytes);
        }
        self.recorded = bytes;
        attached
    }

    pub fn attach(&mut self, detach_to: Option<u64>, bytes: &[u8]) -> Result<()> {
        let engine = self.home.catalog.engine().name();
        let transaction = self.transaction(engine)?;
        if let Some(length) = detach_to {
            transaction.detach_to(length);
        }
        transaction.attach(bytes).map_err(|error| error.into_error(&self.cancel))
    }

    /// A table that the running statement makes: its rows are recorded too.
    pub fn set_new_table(&mut self, table: Option<Arc<catalog::Table>>) {
        if let Some(watcher) = &mut self.watcher {
            watcher.set_new_table(table);
        }
    }

    /// Takes the changes that sinks want.
    #[inline]
    pub fn take_changes(&mut self) -> Option<Changes> {
        self.watcher.as_mut()?.changes.take()
    }

    /// SAVEPOINT: replaces one of the same name.
    pub fn savepoint(&mut self, name: &str) {
        let key = name.to_lowercase();
        if let Ok(position) = self.find_savepoint(name) {
            self.savepoints.remove(position);
        }
        let place = self.place();
        self.savepoints.push(NamedSavepoint { name: key, place });
    }

    /// ROLLBACK TO SAVEPOINT: later savepoints are removed, this one stays.
    ///
    /// # Errors
    /// 1305.
    pub fn rollback_to(&mut self, name: &str) -> Result<()> {
        let position = self.find_savepoint(name)?;
        self.savepoints.truncate(position + 1);
        let place = self.savepoints[position].place.clone();
        self.return_to(&place)
    }

    /// Where they are now.
    pub fn place(&mut self) -> Place {
        let rows = self.row_mark();
        let started = self.parts.iter_mut().filter(|part| part.txn.is_started());
        Place {
            places: started.map(|part| (part.engine.name(), part.txn.savepoint())).collect(),
            rows,
            definitions: self.definitions.as_ref().map_or(0, |definitions| definitions.mark()),
            counters: self.counters.len(),
        }
    }

    #[inline]
    fn restore_counters(&mut self, mark: usize) {
        let engine = self.home.catalog.engine().clone();
        for (table, next) in self.counters.drain(mark..).rev() {
            // The table is gone when they had made it.
            let _ = engine.auto_increment_set(table, next);
        }
    }

    /// A statement that changes definitions begins, and is part of the open transactions.
    pub fn begin_definition(&mut self) {
        self.definition_began = Some(self.place());
    }

    /// Whether a statement that changes definitions runs as a part of the open transactions.
    #[inline]
    pub fn is_defining(&self) -> bool {
        self.definition_began.is_some()
    }

    /// Adds changes of definitions, which others see after the commit, and keeps the locks of their tables until then.
    ///
    /// # Errors
    /// Those of the edits about names; 1412.
    pub fn add_definitions(&mut self, edits: &[Edit]) -> Result<()> {
        let catalog = &self.home.catalog;
        let guard = self.home.locks.keep(self.home.session.id);
        let new = || Arc::new(PendingDefinitions::new(catalog));
        self.definitions.get_or_insert_with(new).add(catalog, edits, guard)
    }

    /// Undoes what a statement that changes definitions has done so far.
    ///
    /// # Errors
    /// The engines' errors.
    pub fn undo_definition(&mut self) -> Result<()> {
        match self.definition_began.clone() {
            Some(place) => self.return_to(&place),
            None => self.rollback(),
        }
    }

    /// The next value of a table's AUTO_INCREMENT column, before it is set.
    pub fn note_counter(&mut self, table: TableId, next: u64) {
        if self.is_defining() {
            self.counters.push((table, next));
        }
    }

    /// Tables have been locked, whose newest rows the statement must see.
    pub fn see_newest(&mut self) -> Result<()> {
        self.home.catalog.wait_for_earlier_commits(&self.cancel)?;
        self.parts.iter_mut().for_each(|part| part.txn.renew_snapshot());
        Ok(())
    }

    /// Undoes everything since a place.
    ///
    /// # Errors
    /// The engines' errors.
    pub fn return_to(&mut self, place: &Place) -> Result<()> {
        self.undo_rows_to(place.rows);
        for part in &mut self.parts {
            if !part.txn.is_started() {
                continue;
            }
            let name = part.engine.name();
            let place = place.places.iter().find(|(engine, _)| *engine == name);
            let undone = match place {
                Some((_, place)) => part.txn.rollback_to(*place),
                // It began after the place: all of it is rolled back.
                None => part.txn.rollback(),
            };
            undone.map_err(|error| error.into_error(&self.cancel))?;
        }
        if let Some(definitions) = &self.definitions {
            definitions.undo_to(&self.home.catalog, place.definitions);
        }
        self.restore_counters(place.counters);
        Ok(())
    }

    /// RELEASE SAVEPOINT: it and later ones are removed.
    ///
    /// # Errors
    /// 1305.
    pub fn release(&mut self, name: &str) -> Result<()> {
        let position = self.find_savepoint(name)?;
        self.savepoints.truncate(position);
        Ok(())
    }

    fn find_savepoint(&self, name: &str) -> Result<usize> {
        let key = name.to_lowercase();
        let hidden = self.visible_savepoints.min(self.savepoints.len());
        self.savepoints[hidden..]
            .iter()
            .position(|savepoint| savepoint.name == key)
            .map(|position| hidden + position)
            .ok_or_else(|| err!(SP_DOES_NOT_EXIST, "SAVEPOINT", name))
    }

    /// A function or a trigger begins: it has savepoints of its own. Give the result to `leave_savepoints`.
    pub fn enter_savepoints(&mut self) -> usize {
        std::mem::replace(&mut self.visible_savepoints, self.savepoints.len())
    }

    /// A function or a trigger has ended: its savepoints are released.
    pub fn leave_savepoints(&mut self, outside: usize) {
        debug_assert!(outside <= self.visible_savepoints, "functions end in the reverse order");
        self.savepoints.truncate(self.visible_savepoints);
        self.visible_savepoints = outside;
    }
}

/// A statement without programs is run with the transactions alone.
impl Host for Transactions {
    fn row_watch(&mut self) -> Option<&mut dyn RowWatch> {
        self.watcher.as_deref_mut().map(|watcher| watcher as &mut dyn RowWatch)
    }

    fn relieve_row_watch(&mut self) -> Result<()> {
        self.attach_recorded(false)
    }
}

impl TransactionSource for Transactions {
    #[inline]
    fn transaction_at(&mut self, engine: EngineIndex) -> Result<&mut dyn Transaction> {
        let position = match self.parts.iter().position(|part| part.index == engine) {
            Some(position) => position,
            None => self.add_part(engine)?,
        };
        if !self.parts[position].txn.is_started() {
            if self.parts[position].is_limited {
                let engine = &*self.parts[position].engine;
                let isolation = self.characteristics.isolation;
                definitions::check_transaction(engine, isolation, self.has_snapshot)?;
            }
            let options = self.options();
            let started = self.parts[position].txn.start(&options);
            started.map_err(|error| error.into_error(&self.cancel))?;
        }
        Ok(self.parts[position].txn.as_mut())
    }

    #[inline]
    fn transaction(&mut self, engine: &str) -> Result<&mut dyn Transaction> {
        let index = self.home.registry.engine_index(engine);
        self.transaction_at(index.ok_or_else(|| err!(UNKNOWN_STORAGE_ENGINE, engine))?)
    }

    #[inline]
    fn engine_at(&self, engine: EngineIndex) -> Result<&Arc<dyn Engine>> {
        let known = self.home.registry.engine_at(engine);
        known.ok_or_else(|| Error::internal("a plan names an engine that does not exist"))
    }

    fn engine(&self, engine: &str) -> Result<Arc<dyn Engine>> {
        let known = self.home.registry.engine(engine).cloned();
        known.ok_or_else(|| err!(UNKNOWN_STORAGE_ENGINE, engine))
    }
}
