//! XA: a transaction as a branch of a global one. A branch is begun, ended and then committed in one phase or rolled back. It is never
//! prepared yet: no engine keeps a transaction in doubt.
//!
//! A branch that the session is in is an explicit transaction to everything else; what may not be done within it is asked here.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result, bail, err};
use hashbrown::HashSet;
use plugin_api::{ColumnMeta, OkInfo, ResultSink};
use syntax::Statement;
use syntax::ast::{Xa, Xid};
use sys::sync::Mutex;
use types::{CollationId, DataType};

use crate::planned::Planned;
use crate::session::Session;
use crate::statement::commits_implicitly;
use crate::status::Counter;
use crate::transaction_statements::to_wait_for;

/// State of a session without a branch, as errors name it.
const NON_EXISTING: &str = "NON-EXISTING";

/// The xids of all branches of the server.
#[derive(Debug, Default)]
pub(crate) struct XaBranches(Mutex<HashSet<Xid>>);

/// Keeps an xid from being taken again while it lives.
#[derive(Debug)]
struct Taken {
    branches: Arc<XaBranches>,
    xid: Xid,
}

impl Taken {
    fn new(branches: &Arc<XaBranches>, xid: &Xid) -> Result<Taken> {
        if !branches.0.lock().insert(xid.clone()) {
            bail!(XAER_DUPID);
        }
        Ok(Taken { branches: branches.clone(), xid: xid.clone() })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.branches.0.lock().remove(&self.xid);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Idle,
    /// It was undone, and the client has been told.
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

/// The branch that a session is in.
#[derive(Debug)]
pub(crate) struct Branch {
    taken: Taken,
    state: State,
    /// Why the engine or the server undid it.
    undone: Option<ErrorCode>,
}

impl Branch {
    fn is(&self, xid: &Xid) -> bool {
        self.taken.xid == *xid
    }

    /// Whether a statement may run in it, as far as can be told before its tables are known.
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

    /// Whether it still stands. What asks this tells the client that it does not, and only then may it be rolled back.
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

impl Session {
    /// Before a statement: what a branch forbids.
    pub(crate) fn check_branch(&self, statement: &Statement) -> Result<()> {
        self.branch.as_ref().map_or(Ok(()), |branch| branch.check(statement))
    }

    /// As `check_branch`, for what a plan uses.
    pub(crate) fn check_branch_tables(&mut self, planned: &Planned) -> Result<()> {
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
    pub(crate) fn check_branch_goes_on(&self) -> Result<()> {
        self.branch.as_ref().map_or(Ok(()), |branch| Err(branch.state.refusal()))
    }

    /// The transaction was rolled back while the session is in a branch: it can only be given up.
    pub(crate) fn branch_rolled_back(&mut self, reason: ErrorCode) {
        if let Some(branch) = &mut self.branch {
            branch.undone = Some(reason);
            self.transactions.explicit = true;
        }
    }

    /// XA ...
    pub(crate) fn run_xa(&mut self, xa: &Xa, sink: &mut dyn ResultSink) -> Result<()> {
        match xa {
            Xa::Start { xid, join, resume } => self.xa_start(xid, *join, *resume)?,
            Xa::End { suspend: true, .. } => bail!(XAER_INVAL),
            Xa::End { xid, .. } => self.xa_end(xid)?,
            Xa::Prepare(xid) => self.xa_prepare(xid)?,
            Xa::Commit { xid, one_phase } => return self.xa_commit(xid, *one_phase, sink),
            Xa::Rollback(xid) => self.xa_rollback(xid)?,
            Xa::Recover { .. } => return self.xa_recover(sink),
        }
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo::default())
    }

    fn xa_start(&mut self, xid: &Xid, join: bool, resume: bool) -> Result<()> {
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
        // What calls a function is outside.
        let is_outside = self.function_depth > 0 || self.has_open_transaction();
        if is_outside || self.locked.tables.is_some() {
            bail!(XAER_OUTSIDE);
        }
        let taken = Taken::new(&self.server.xa_branches, xid)?;
        self.begin_explicit(None);
        self.branch = Some(Branch { taken, state: State::Active, undone: None });
        Ok(())
    }

    fn has_open_transaction(&self) -> bool {
        self.transactions.explicit || self.transactions.is_started()
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

    fn xa_prepare(&self, xid: &Xid) -> Result<()> {
        let branch = self.branch.as_ref();
        let Some(branch) = branch else { bail!(XAER_RMFAIL, NON_EXISTING) };
        if branch.state != State::Idle {
            return Err(branch.state.refusal());
        }
        if !branch.is(xid) {
            bail!(XAER_NOTA);
        }
        Err(Error::not_supported("XA PREPARE"))
    }

    /// The session's branch, which `xid` must be.
    fn branch_to_end(&mut self, xid: &Xid) -> Result<&mut Branch> {
        let is_outside = self.has_open_transaction();
        match &mut self.branch {
            Some(branch) => match branch.is(xid) {
                true => Ok(branch),
                false => Err(branch.state.refusal()),
            },
            None if is_outside => bail!(XAER_RMFAIL, NON_EXISTING),
            // It could only be a prepared one.
            None => bail!(XAER_NOTA),
        }
    }

    fn xa_commit(&mut self, xid: &Xid, one_phase: bool, sink: &mut dyn ResultSink) -> Result<()> {
        let branch = self.branch_to_end(xid)?;
        let (stands, state) = (branch.check_stands(), branch.state);
        if let Err(error) = stands {
            self.roll_back_branch()?;
            return Err(error);
        }
        if state != State::Idle || !one_phase {
            return Err(state.refusal());
        }
        let handle = self.transactions.commit();
        self.slot.release_to(0);
        self.shared.counters.add(Counter::HANDLER_COMMIT, 1);
        self.branch = None;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit: to_wait_for(handle?), ..OkInfo::default() })
    }

    fn xa_rollback(&mut self, xid: &Xid) -> Result<()> {
        match self.branch_to_end(xid)?.state {
            State::Active => Err(State::Active.refusal()),
            State::Idle | State::RollbackOnly => self.roll_back_branch(),
        }
    }

    fn roll_back_branch(&mut self) -> Result<()> {
        let rolled_back = self.transactions.rollback();
        self.slot.release_to(0);
        self.shared.counters.add(Counter::HANDLER_ROLLBACK, 1);
        // Behind the rollback: the xid is free when the branch is gone.
        self.branch = None;
        rolled_back
    }

    /// No branch is ever prepared.
    fn xa_recover(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        self.require_dynamic("XA_RECOVER_ADMIN")?;
        let number = DataType::bigint();
        let text = DataType::varchar(64, CollationId::UTF8MB4_0900_AI_CI);
        let columns = [
            ColumnMeta::computed("formatID", number.clone()),
            ColumnMeta::computed("gtrid_length", number.clone()),
            ColumnMeta::computed("bqual_length", number),
            ColumnMeta::computed("data", text),
        ];
        let state = self.state_info();
        crate::sink::send_rows(sink, &columns, &[], &state)
    }
}
