//! Statements about transactions, and the session's part where transactions end around other statements.

use std::sync::Arc;

use ::accounts::PrivilegeChecks;
use engine_api::CommitHandle;
use errors::{Error, ErrorCode, Result};
use plugin_api::{CommandOutcome, OkInfo, ResultSink};
use syntax::ast::{SetTransaction, StartTransaction, Statement, VarScope};
use types::Value;
use variables::{Origin, Provenance};

use crate::session::Session;
use crate::set::changed_by;
use crate::status::Counter;
use observation::Phase;
use transactions::{Afterwards, Writable, isolation_name, to_wait_for};

impl Session {
    /// Call after a statement that succeeded, before its reply: commits unless a transaction is open.
    pub(crate) fn finish_transaction_scope(&mut self) -> Result<Option<CommitHandle>> {
        self.enter(Phase::Commit);
        let handle = self.transactions.finish_scope(&self.settings)?;
        let handle = self.commit_for_reply(handle)?;
        self.enter(Phase::Execute);
        Ok(handle)
    }

    /// After a statement that failed: a single-statement transaction is rolled back.
    pub(crate) fn abort_transaction_scope(&mut self, error: &Error) {
        if error.code() == ErrorCode::LOCK_DEADLOCK {
            self.server.log_deadlock();
        }
        self.transactions.abort_scope(error, &self.settings);
    }

    /// Returns the commit that the reply to a statement has to wait for. When other statements follow in the same text, they must see its
    /// changes, and a session opened by a function has no reply that could wait: then it waits here and returns `None`.
    pub(crate) fn commit_for_reply(
        &self,
        commit: Option<CommitHandle>,
    ) -> Result<Option<CommitHandle>> {
        match commit {
            Some(handle) if self.statement.more_results || self.opened_by.is_some() => {
                self.transactions.wait_for(&handle).map(|()| None)
            }
            other => Ok(other),
        }
    }

    /// Runs a statement that begins or ends a transaction, or uses a savepoint.
    pub(crate) fn run_transaction_statement(
        &mut self,
        statement: &Statement,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let before = self.transactions.characteristics;
        let mut ended = None;
        let mut commit = None;
        self.enter(Phase::Commit);
        match statement {
            Statement::StartTransaction(start) => self.start_transaction(start)?,
            Statement::Commit(completion) => {
                crate::recording::commit(self);
                let (globals, privileges) = (&self.server.globals, &*self.privileges);
                let writable = Writable { globals, privileges, is_applier: self.is_applier };
                commit = self.transactions.commit_explicitly(&self.settings, writable)?;
                ended = Some(*completion);
            }
            Statement::Rollback(completion) => {
                self.transactions.roll_back_explicitly()?;
                ended = Some(*completion);
            }
            Statement::Savepoint(name) => {
                self.shared.counters.add(Counter::HANDLER_SAVEPOINT, 1);
                // Outside a transaction it is discarded at once, as in the reference.
                if self.transactions.is_open(&self.settings) {
                    self.transactions.savepoint(&name.text);
                }
            }
            Statement::RollbackTo(name) => {
                self.shared.counters.add(Counter::HANDLER_SAVEPOINT_ROLLBACK, 1);
                self.transactions.rollback_to(&name.text)?;
            }
            Statement::ReleaseSavepoint(name) => self.transactions.release(&name.text)?,
            Statement::SetTransaction(set) => self.set_transaction(set)?,
            _ => return Err(Error::not_supported("this statement")),
        }
        if let Some(completion) = ended {
            let after = self.transactions.complete(completion, before, &self.settings);
            if after == Afterwards::Release {
                self.statement.outcome = CommandOutcome::Close;
            }
            self.services.row_count = 0;
        }
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }

    /// START TRANSACTION, BEGIN. The dispatcher has committed the previous transaction.
    fn start_transaction(&mut self, start: &StartTransaction) -> Result<()> {
        if self.locked.is_in_force() {
            // BEGIN releases LOCK TABLES.
            self.locked.release_tables();
        }
        self.transactions.begin_explicit(start.read_only, &self.settings);
        if start.consistent_snapshot {
            let engine = self.server.default_engine.name();
            self.transactions.take_snapshot(engine)?;
        }
        self.services.row_count = 0;
        Ok(())
    }

    /// SET [scope] TRANSACTION.
    fn set_transaction(&mut self, set: &SetTransaction) -> Result<()> {
        let isolation = set.isolation.map(isolation_name);
        match set.scope {
            None => self.transactions.set_next(set, &self.settings)?,
            Some(VarScope::Session) => {
                if let Some(name) = isolation {
                    self.store_session("transaction_isolation", Value::text(name));
                }
                if let Some(read_only) = set.read_only {
                    self.store_session("transaction_read_only", Value::Int(i64::from(read_only)));
                }
                self.transactions.next = None;
                self.refresh_settings();
            }
            Some(_) => {
                self.require_variable_admin()?;
                let definitions = &self.server.globals.definitions;
                let mut changes = Vec::new();
                if let (Some(name), Some(id)) =
                    (isolation, definitions.find("transaction_isolation"))
                {
                    changes.push((id, Value::text(name)));
                }
                if let (Some(read_only), Some(id)) =
                    (set.read_only, definitions.find("transaction_read_only"))
                {
                    changes.push((id, Value::Int(i64::from(read_only))));
                }
                let changed = Some(Arc::new(changed_by(self)));
                let provenance = Provenance { origin: Origin::Dynamic, changed };
                self.server.globals.set(&changes, &provenance);
            }
        }
        Ok(())
    }

    /// SET autocommit=1 ends the transaction that autocommit=0 had opened.
    pub(crate) fn autocommit_changed(&mut self, before: bool) -> Result<Option<CommitHandle>> {
        if before || !self.settings.autocommit {
            return Ok(None);
        }
        if let Err(error) = self.transactions.check_branch_goes_on() {
            self.store_session("autocommit", Value::Int(0));
            self.refresh_settings();
            return Err(error);
        }
        let handle = self.transactions.commit();
        self.transactions.slot.release_to(0);
        handle.map(to_wait_for)
    }
}
