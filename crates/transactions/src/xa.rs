//! XA: a transaction as a branch of a global one. A branch is begun, ended, then committed in one phase, rolled back or prepared. A prepared
//! branch belongs to no session: it waits, across restarts, for any session that commits it or rolls it back.
//!
//! A branch that the session is in is an explicit transaction for all other code; the checks for statements forbidden within it are here.

use std::cell::Cell;
use std::sync::Arc;

use catalog::{MetadataLocks, MetadataSlot, Usage};
use engine_api::{CommitHandle, PreparedTransaction};
use errors::{Error, ErrorCode, Result, bail, err};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use observation::Changes;
use plugin_api::Registry;
use statements::xid::{as_written, name_of, xid_of};
use syntax::Statement;
use syntax::ast::{Xa, Xid};
use sys::sync::Mutex;
use types::Value;
use variables::Settings;

use crate::scope::{Writable, to_wait_for};
use crate::transactions::Transactions;
use statements::planned::Planned;
use statements::statement_kind::commits_implicitly;
use statements::status::Counter;

/// State of a session without a branch, as errors name it.
const NON_EXISTING: &str = "NON-EXISTING";

/// The server's existing branches.
#[derive(Debug, Default)]
pub struct XaBranches(Mutex<HashMap<Xid, Standing>>);

/// Where a branch is.
#[derive(Debug)]
enum Standing {
    /// A session is in it, or decides about it.
    Taken,
    /// It is prepared, and no session works on it.
    Prepared(Detached),
}

/// The state of a prepared branch besides its changes.
#[derive(Debug)]
struct Detached {
    /// Keeps the definitions of the tables that it used.
    slot: Arc<MetadataSlot>,
    /// What change sinks get when it commits; lost at a restart.
    changes: Option<Changes>,
}

impl XaBranches {
    /// Restores prepared branches at server start.
    pub fn take(registry: &Registry, locks: &MetadataLocks) -> XaBranches {
        let mut branches = HashMap::new();
        let engines = registry.engines().iter();
        for PreparedTransaction { name, tables } in engines.flat_map(|engine| engine.prepared()) {
            let Some(xid) = xid_of(&name) else {
                tracing::error!("a prepared transaction without an xid remains in doubt");
                continue;
            };
            let tables = tables.into_iter().map(|table| (table, Usage::Write)).collect();
            let slot = locks.register_prepared(tables);
            branches.insert(xid, Standing::Prepared(Detached { slot, changes: None }));
        }
        if !branches.is_empty() {
            tracing::warn!(
                "{} prepared XA transactions keep what they changed locked: XA RECOVER lists them, XA COMMIT or XA ROLLBACK decides",
                branches.len()
            );
        }
        XaBranches(Mutex::new(branches))
    }

    /// Rows of XA RECOVER.
    pub fn rows(&self, convert_xid: bool) -> Vec<Vec<Value>> {
        let row = |xid: Xid| {
            let data = [&*xid.gtrid, &*xid.bqual].concat();
            let data = match convert_xid {
                true => {
                    let digits = data.iter().map(|byte| format!("{byte:02X}"));
                    format!("0x{}", digits.collect::<String>()).into_bytes()
                }
                false => data,
            };
            vec![
                Value::Int(xid.format as i64),
                Value::Int(xid.gtrid.len() as i64),
                Value::Int(xid.bqual.len() as i64),
                Value::Bytes(data.as_slice().into()),
            ]
        };
        self.prepared().into_iter().map(row).collect()
    }

    /// The xids of prepared branches, in the order of their bytes.
    fn prepared(&self) -> Vec<Xid> {
        let branches = self.0.lock();
        let prepared = branches.iter().filter(|(_, at)| matches!(at, Standing::Prepared(_)));
        let mut xids: Vec<Xid> = prepared.map(|(xid, _)| xid.clone()).collect();
        xids.sort_unstable_by_key(name_of);
        xids
    }

    /// Takes a prepared branch to decide about it.
    fn take_prepared(self: &Arc<Self>, xid: &Xid) -> Option<(Taken, Detached)> {
        let mut branches = self.0.lock();
        let standing = branches.get_mut(xid)?;
        match std::mem::replace(standing, Standing::Taken) {
            Standing::Prepared(detached) => {
                Some((Taken { branches: self.clone(), xid: xid.clone() }, detached))
            }
            Standing::Taken => None,
        }
    }
}

/// Reserves an xid while its branch exists.
#[derive(Debug)]
struct Taken {
    branches: Arc<XaBranches>,
    xid: Xid,
}

impl Taken {
    fn new(branches: &Arc<XaBranches>, xid: &Xid) -> Result<Taken> {
        match branches.0.lock().entry(xid.clone()) {
            Entry::Occupied(_) => bail!(XAER_DUPID),
            Entry::Vacant(vacant) => vacant.insert(Standing::Taken),
        };
        Ok(Taken { branches: branches.clone(), xid: xid.clone() })
    }

    /// Leaves the branch to the session that decides it.
    fn leave_prepared(self, detached: Detached) {
        self.branches.0.lock().insert(self.xid.clone(), Standing::Prepared(detached));
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut branches = self.branches.0.lock();
        if matches!(branches.get(&self.xid), Some(Standing::Taken)) {
            branches.remove(&self.xid);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Idle,
    /// It was rolled back, and the client has been informed.
    RollbackOnly,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Active => "ACTIVE",
            State::Idle => "IDLE",
            State::RollbackOnly => "ROLLBACK ONLY",
        }
    }

    /// 1399.
    fn refusal(self) -> Error {
        err!(XAER_RMFAIL, self.name())
    }
}

/// What becomes of a prepared branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    Commit,
    Rollback,
}

/// The branch that a session is in.
#[derive(Debug)]
pub struct Branch {
    taken: Taken,
    state: State,
    /// Why the engine or the server rolled it back.
    undone: Option<ErrorCode>,
}

impl Branch {
    fn is(&self, xid: &Xid) -> bool {
        self.taken.xid == *xid
    }

    /// Whether a statement may run in it, as far as that can be decided before its tables are known.
    fn check(&self, statement: &Statement) -> Result<()> {
        match statement {
            Statement::Commit(_) | Statement::Rollback(_) => Err(self.state.refusal()),
            statement if commits_implicitly(statement) => Err(self.state.refusal()),
            Statement::Savepoint(_) if self.state == State::Idle => Err(self.state.refusal()),
            // Those of permanent tables commit implicitly.
            Statement::CreateTable(_) | Statement::DropTable(_) => bail!(XA_TEMP_TABLE),
            _ => Ok(()),
        }
    }

    /// Checks that it is still open. The error informs the client that it is not, and only then may it be rolled back.
    fn check_stands(&mut self) -> Result<()> {
        let Some(reason) = self.undone else { return Ok(()) };
        self.state = State::RollbackOnly;
        Err(Error::with(reason, &[]))
    }

    /// Whether tables may be used in it.
    fn check_tables(&mut self) -> Result<()> {
        if self.state == State::Idle {
            return Err(self.state.refusal());
        }
        self.check_stands()
    }
}

/// The facts about the session that XA statements need.
#[derive(Clone, Copy)]
pub struct XaContext<'a> {
    pub settings: &'a Settings,
    pub writable: Writable<'a>,
    /// LOCK TABLES is in force.
    pub tables_locked: bool,
}

impl Transactions {
    /// Call before a statement: returns an error if the branch forbids it.
    #[inline]
    pub fn check_branch(&self, statement: &Statement) -> Result<()> {
        self.branch.as_ref().map_or(Ok(()), |branch| branch.check(statement))
    }

    /// As `check_branch`, for the tables of a plan.
    #[inline]
    pub fn check_branch_tables(&mut self, planned: &Planned) -> Result<()> {
        let Some(branch) = &mut self.branch else { return Ok(()) };
        if planned.tables.is_empty() {
            return Ok(());
        }
        if planned.tables.iter().any(|table| table.temporary) {
            bail!(XA_TEMP_TABLE);
        }
        branch.check_tables()
    }

    /// SET autocommit = 1, which would commit.
    pub fn check_branch_goes_on(&self) -> Result<()> {
        self.branch.as_ref().map_or(Ok(()), |branch| Err(branch.state.refusal()))
    }

    /// Records that the engine rolled back the branch's transaction: only XA ROLLBACK is possible then.
    pub fn branch_rolled_back(&mut self, reason: ErrorCode) {
        if let Some(branch) = &mut self.branch {
            branch.undone = Some(reason);
            self.explicit = true;
        }
    }

    /// Runs XA statements except XA RECOVER; returns the commit that the reply waits for.
    ///
    /// # Errors
    /// Errors of the branch's state; the engines' errors.
    pub fn run_xa(&mut self, xa: &Xa, around: XaContext<'_>) -> Result<Option<CommitHandle>> {
        match xa {
            Xa::Start { xid, join, resume } => self.xa_start(xid, (*join, *resume), around)?,
            Xa::End { suspend: true, .. } => bail!(XAER_INVAL),
            Xa::End { xid, .. } => self.xa_end(xid)?,
            Xa::Prepare(xid) => return self.xa_prepare(xid),
            Xa::Commit { xid, one_phase } => return self.xa_commit(xid, *one_phase, around),
            Xa::Rollback(xid) => self.xa_rollback(xid, around.settings)?,
            Xa::Recover { .. } => {}
        }
        Ok(None)
    }

    fn xa_start(
        &mut self,
        xid: &Xid,
        (join, resume): (bool, bool),
        around: XaContext<'_>,
    ) -> Result<()> {
        match &mut self.branch {
            Some(branch) if branch.state == State::Idle && resume => {
                if !branch.is(xid) {
                    bail!(XAER_NOTA);
                }
                branch.state = State::Active;
                return Ok(());
            }
            _ if join || resume => bail!(XAER_INVAL),
            Some(branch) => return Err(branch.state.refusal()),
            None => {}
        }
        // The caller of a function is outside.
        let is_outside = self.function_depth > 0 || self.has_open_transaction();
        if is_outside || around.tables_locked {
            bail!(XAER_OUTSIDE);
        }
        let taken = Taken::new(&self.home.branches, xid)?;
        self.begin_explicit(None, around.settings);
        self.may_be_prepared = true;
        self.report.set_branch(as_written(xid));
        self.branch = Some(Branch { taken, state: State::Active, undone: None });
        Ok(())
    }

    #[inline]
    pub fn has_open_transaction(&self) -> bool {
        self.explicit || self.is_started()
    }

    fn xa_end(&mut self, xid: &Xid) -> Result<()> {
        let Some(branch) = &mut self.branch else { bail!(XAER_RMFAIL, NON_EXISTING) };
        if branch.state == State::Idle {
            return Err(branch.state.refusal());
        }
        if !branch.is(xid) {
            bail!(XAER_NOTA);
        }
        branch.check_stands()?;
        branch.state = State::Idle;
        Ok(())
    }

    fn xa_prepare(&mut self, xid: &Xid) -> Result<Option<CommitHandle>> {
        let Some(branch) = &mut self.branch else { bail!(XAER_RMFAIL, NON_EXISTING) };
        if branch.state != State::Idle {
            return Err(branch.state.refusal());
        }
        if !branch.is(xid) {
            bail!(XAER_NOTA);
        }
        branch.check_stands()?;
        let changes = self.take_changes();
        let prepared = self.prepare(&name_of(xid));
        let taken = self.take_branch();
        let handle = match prepared {
            Ok(handle) => handle,
            Err(error) => {
                self.slot.release_to(0);
                return Err(error);
            }
        };
        if let Some(taken) = taken {
            let slot = self.home.locks.detach(&self.slot);
            taken.leave_prepared(Detached { slot, changes });
        }
        self.home.session.counters.add(Counter::HANDLER_PREPARE, 1);
        Ok(to_wait_for(handle))
    }

    /// The session has left its branch.
    pub fn leave_branch(&mut self) {
        drop(self.take_branch());
    }

    fn take_branch(&mut self) -> Option<Taken> {
        self.may_be_prepared = false;
        self.branch.take().map(|branch| branch.taken)
    }

    /// XA COMMIT and XA ROLLBACK of a prepared branch, from any session.
    fn decide(
        &mut self,
        xid: &Xid,
        settings: &Settings,
        decision: Decision,
    ) -> Result<CommitHandle> {
        let prepared = self.home.branches.take_prepared(xid);
        let Some((taken, mut detached)) = prepared else { bail!(XAER_NOTA) };
        let (locks, session) = (&self.home.locks, &self.home.session);
        let (timeout, cancel) = (settings.lock_wait_timeout, &session.cancel);
        if let Err(error) = locks.wake(&detached.slot, session.id, timeout, cancel) {
            taken.leave_prepared(detached);
            return Err(error);
        }
        let (name, mut identifier) = (name_of(xid), Vec::new());
        if let Some(watcher) = &mut self.watcher {
            watcher.take_recorded(true, &mut identifier);
        }
        let is_identified = Cell::new(identifier.is_empty());
        let decide = || {
            let (mut handle, mut result) = (CommitHandle::Durable, Ok(()));
            for engine in self.home.registry.engines() {
                let decided = match decision {
                    Decision::Commit => engine.commit_prepared(&name, &identifier),
                    Decision::Rollback => engine.rollback_prepared(&name).map(|()| None),
                };
                match decided {
                    Ok(None) => {}
                    Ok(Some(pending)) => {
                        is_identified.set(is_identified.get() || engine.keeps_attachments());
                        handle = pending;
                    }
                    Err(error) => result = result.and(Err(error.into_error(cancel))),
                }
            }
            result.map(|()| handle)
        };
        let result = match (decision, detached.changes.take()) {
            (Decision::Commit, Some(changes)) => {
                self.home.changes.commit(decide, |number| changes.tell(number))
            }
            (Decision::Commit, None) | (Decision::Rollback, _) => decide(),
        };
        locks.unregister(&detached.slot);
        if is_identified.get() || result.is_err() {
            return result;
        }
        // Nothing has changed that could have it: a transaction without changes.
        self.attach(None, &identifier)?;
        self.commit()
    }

    /// The session's branch, which `xid` must be; `None` when it is not in a branch: only a prepared branch can be meant.
    fn branch_to_end(&mut self, xid: &Xid) -> Result<Option<&mut Branch>> {
        let is_outside = self.has_open_transaction();
        match &mut self.branch {
            Some(branch) => match branch.is(xid) {
                true => Ok(Some(branch)),
                false => Err(branch.state.refusal()),
            },
            None if is_outside => bail!(XAER_RMFAIL, NON_EXISTING),
            None => Ok(None),
        }
    }

    fn xa_commit(
        &mut self,
        xid: &Xid,
        one_phase: bool,
        around: XaContext<'_>,
    ) -> Result<Option<CommitHandle>> {
        let handle = match self.branch_to_end(xid)? {
            Some(branch) => {
                let (stands, state) = (branch.check_stands(), branch.state);
                if let Err(error) = stands {
                    self.roll_back_branch()?;
                    return Err(error);
                }
                if state != State::Idle || !one_phase {
                    return Err(state.refusal());
                }
                self.check_commit(around.settings, around.writable)?;
                let handle = self.commit();
                self.slot.release_to(0);
                self.leave_branch();
                handle
            }
            None => self.decide(xid, around.settings, Decision::Commit),
        }?;
        self.home.session.counters.add(Counter::HANDLER_COMMIT, 1);
        Ok(to_wait_for(handle))
    }

    fn xa_rollback(&mut self, xid: &Xid, settings: &Settings) -> Result<()> {
        match self.branch_to_end(xid)? {
            Some(branch) if branch.state == State::Active => Err(State::Active.refusal()),
            Some(_) => self.roll_back_branch(),
            None => {
                self.decide(xid, settings, Decision::Rollback)?;
                self.home.session.counters.add(Counter::HANDLER_ROLLBACK, 1);
                Ok(())
            }
        }
    }

    fn roll_back_branch(&mut self) -> Result<()> {
        let rolled_back = self.roll_back_explicitly();
        // After the rollback: the xid is free when the branch has ended.
        self.leave_branch();
        rolled_back
    }
}
