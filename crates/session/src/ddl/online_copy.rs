//! ALTER TABLE by copy while others use the table.
//!
//! The rows are copied at a snapshot. From before that snapshot the engine notes which rows others change. Then come rounds: each takes a newer snapshot,
//! removes from the copy what the last snapshot showed of the noted rows, and puts in what the new one shows; after it the copy is what the new
//! snapshot shows. So a duplicate or a value that does not fit was committed like this by the others, and ends the ALTER, never their
//! statements. The last round runs while the table is locked.

use std::sync::Arc;
use std::time::Duration;

use catalog::{LockWait, MetadataGuard, Table};
use definitions::alter::copy::copy_statement;
use engine_api::{EngineIndex, IsolationLevel, NotedPass, TableId, Transaction, TxnOptions};
use errors::{Diagnostics, Error, ErrorCode, Result, err};
use exec::TransactionSource;
use plugin_api::{CopyProgress, Registry};

use super::copy::{RUNNING, as_copy};
use super::create::plan_on_new_tables;
use crate::measured::{begin_stage, end_stage};
use crate::planned::Planned;
use crate::session::Session;
use observation::process::SessionShared;
use statements::copier::{Copier, Work};

/// Noted rows that may be left for the time when the table is locked.
const QUIET_ROWS: u64 = 200;
/// Rounds after which the rest is left for that time, however much it is: the others are faster.
const ROUNDS_MAX: usize = 32;
/// The first wait for the lock; between waits there is a round, so that little is left when the lock is granted.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// Copies the rows of `old`, which are noted in the session's transaction, into `copy`. `guard` excludes all others before and after.
pub(super) fn copy_beside_others(
    session: &mut Session,
    old: &Arc<Table>,
    copy: &Arc<Table>,
    origins: &[Option<usize>],
    guard: &mut MetadataGuard,
) -> Result<u64> {
    let statement = copy_statement(old, copy, origins, None, &[])?;
    let children = children_of(session, old);
    guard.downgrade();
    let checks = std::mem::replace(&mut session.settings.foreign_key_checks, false);
    let progress = Progress::begin(session, old);
    let copied = as_copy(session, old, copy, origins, |session| {
        let planned = plan_on_new_tables(session, &[copy], &statement, &RUNNING)?;
        let mut copying = Copying::new(session, old, planned)?;
        copying.fill(session)?;
        copying.follow(session)?;
        copying.lock(session, guard)?;
        copying.finish(session)
    });
    session.settings.foreign_key_checks = checks;
    drop(progress);
    end_stage(session, None);
    let rows = copied?;
    // Other tables' changes may have followed this one without its lock.
    let now = session.find_table(&old.schema, &old.name)?;
    if now.id != old.id
        || now.foreign_keys != old.foreign_keys
        || children_of(session, old) != children
    {
        return Err(err!(TABLE_DEF_CHANGED));
    }
    Ok(rows)
}

/// The tables with foreign keys to `table`.
fn children_of(session: &Session, table: &Table) -> Vec<TableId> {
    let snapshot = session.snapshot();
    snapshot.children_of(&table.schema, &table.name).map(|child| child.id).collect()
}

/// What others see of the copy, until it is dropped.
struct Progress(Arc<SessionShared>);

impl Progress {
    fn begin(session: &mut Session, old: &Table) -> Progress {
        let copying = CopyProgress {
            table: format!("{}.{}", old.schema, old.name),
            rows_total: rows_of(session, old),
            ..CopyProgress::default()
        };
        begin_stage(session, "copy to tmp table");
        session.shared.activity.lock().copying = Some(copying);
        Progress(session.shared.clone())
    }
}

/// About how many rows a table has.
pub(crate) fn rows_of(session: &Session, table: &Table) -> u64 {
    let engine = session.transactions.engine(&table.engine).ok();
    let stats = engine.and_then(|engine| engine.table_stats(table.id).ok());
    stats.map_or(0, |stats| stats.rows)
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.activity.lock().copying = None;
    }
}

/// A copy under way.
struct Copying {
    engine: EngineIndex,
    registry: Arc<Registry>,
    table: TableId,
    planned: Arc<Planned>,
    /// Sees the rows that are in the copy.
    reader: Option<Box<dyn Transaction>>,
    /// Rows in the copy.
    rows: u64,
}

impl Copying {
    fn new(session: &Session, old: &Table, planned: Arc<Planned>) -> Result<Copying> {
        let registry = session.transactions.home.registry.clone();
        let engine = registry.engine_index(&old.engine);
        let engine = engine.ok_or_else(|| err!(UNKNOWN_STORAGE_ENGINE, old.engine))?;
        Ok(Copying { engine, registry, table: old.id, planned, reader: None, rows: 0 })
    }

    /// A transaction that sees what is committed now.
    fn new_reader(&self, session: &Session) -> Result<Box<dyn Transaction>> {
        let engine = self.registry.engine_at(self.engine);
        let engine = engine.ok_or_else(|| Error::internal("an engine is gone"))?;
        let mut reader = engine.new_transaction();
        let options = TxnOptions {
            isolation: IsolationLevel::RepeatableRead,
            read_only: true,
            may_be_prepared: false,
            lock_wait_timeout: session.settings.row_lock_timeout,
            cancel: session.shared.cancel.clone(),
        };
        reader.start(&options).map_err(|error| error.into_error(&session.shared.cancel))?;
        reader.take_snapshot();
        Ok(reader)
    }

    /// Runs the program; returns the number of rows and the reader.
    fn run(
        &self,
        session: &mut Session,
        work: Work,
        reader: Box<dyn Transaction>,
    ) -> Result<(u64, Box<dyn Transaction>)> {
        let (engine, registry, table) = (self.engine, self.registry.clone(), self.table);
        let shared = session.shared.clone();
        let on_rows = Box::new(move |rows| {
            if work == Work::All
                && let Some(copying) = &mut shared.activity.lock().copying
            {
                copying.rows_copied += rows;
            }
        });
        let mut copier = Copier { engine, registry, table, work, reader, on_rows };
        // What is removed had its warnings when it was put.
        let silent = (work == Work::Noted(NotedPass::Remove))
            .then(|| std::mem::replace(&mut session.working, Diagnostics::new(0)));
        let outcome = session.run_copy(&self.planned, &mut copier);
        if let Some(kept) = silent {
            session.working = kept;
        }
        let outcome = outcome?;
        Ok((outcome.affected, copier.reader))
    }

    /// Copies all rows.
    fn fill(&mut self, session: &mut Session) -> Result<()> {
        let reader = self.new_reader(session)?;
        let (rows, reader) = self.run(session, Work::All, reader)?;
        (self.rows, self.reader) = (rows, Some(reader));
        let copying = session.shared.activity.lock().copying.clone();
        let progress = copying.map(|copying| engine_api::Progress {
            work_done: copying.rows_copied,
            work_expected: copying.rows_total,
        });
        end_stage(session, progress);
        begin_stage(session, "altering table");
        Ok(())
    }

    /// Brings the copy to what is committed now; returns how many rows had been noted.
    fn round(&mut self, session: &mut Session) -> Result<u64> {
        let word = |error: engine_api::EngineError| error.into_error(&session.shared.cancel);
        let mut now = self.new_reader(session)?;
        let noted = now.collect_noted(self.table).map_err(word)?;
        let last = self.reader.take().ok_or_else(|| Error::internal("a copy has no snapshot"))?;
        if noted > 0 {
            let (removed, _) = self.run(session, Work::Noted(NotedPass::Remove), last)?;
            let put;
            (put, now) = self.run(session, Work::Noted(NotedPass::Put), now)?;
            self.rows = self.rows.saturating_sub(removed) + put;
        }
        self.reader = Some(now);
        let mut activity = session.shared.activity.lock();
        if let Some(copying) = &mut activity.copying {
            copying.rounds += 1;
            copying.rows_again += noted;
        }
        drop(activity);
        Ok(noted)
    }

    /// Catches up with nearly all changes.
    fn follow(&mut self, session: &mut Session) -> Result<()> {
        for _ in 0..ROUNDS_MAX {
            if self.round(session)? <= QUIET_ROWS {
                break;
            }
        }
        Ok(())
    }

    /// Waits until no other session uses the table.
    fn lock(&mut self, session: &mut Session, guard: &mut MetadataGuard) -> Result<()> {
        let LockWait { timeout: mut left, policy } = session.ddl_wait();
        let mut timeout = FIRST_WAIT;
        loop {
            let wait = LockWait { timeout: timeout.min(left), policy };
            match guard.upgrade(wait, &session.shared.cancel) {
                Ok(()) => return Ok(()),
                Err(error) if error.code() != ErrorCode::LOCK_WAIT_TIMEOUT || timeout >= left => {
                    return Err(error);
                }
                Err(_) => {}
            }
            left -= timeout;
            timeout *= 2;
            self.round(session)?;
        }
    }

    /// Copies the last changes; returns the number of rows in the copy.
    fn finish(&mut self, session: &mut Session) -> Result<u64> {
        let cancel = session.shared.cancel.clone();
        session.server.catalog.wait_for_earlier_commits(&cancel)?;
        while self.round(session)? > 0 {}
        Ok(self.rows)
    }
}
