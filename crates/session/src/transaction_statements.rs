//! Statements about transactions, and where transactions begin and end around other statements.

use ::accounts::PrivilegeChecks;
use engine_api::CommitHandle;
use errors::{Error, ErrorCode, Result, bail};
use plugin_api::{CommandOutcome, OkInfo, ResultSink};
use syntax::ast::{Completion, Isolation, SetTransaction, StartTransaction, VarScope};
use types::Value;

use crate::session::Session;
use crate::status::Counter;
use crate::transaction::Characteristics;
use variables::Origin;

/// A commit that its reply must wait for. Also one without changes, when it read what is not yet durable.
pub(crate) fn to_wait_for(handle: CommitHandle) -> Option<CommitHandle> {
    (!handle.is_durable()).then_some(handle)
}

impl Session {
    /// Whether statements do not commit by themselves.
    pub(crate) fn in_transaction(&self) -> bool {
        self.transactions.explicit || !self.settings.autocommit || self.function_depth > 0
    }

    /// Before a statement: a transaction that it starts gets the session's characteristics.
    pub(crate) fn begin_transaction_scope(&mut self) {
        if self.function_depth > 0 {
            // A part of the statement that called.
            return;
        }
        if self.transactions.is_started() {
            self.transactions.begin_statement();
        } else if !self.transactions.explicit {
            self.transactions.characteristics =
                self.next_characteristics.unwrap_or(Characteristics {
                    isolation: self.settings.isolation,
                    read_only: self.settings.transaction_read_only,
                });
        }
    }

    /// After a statement that did its work, before its reply: commits unless a transaction is open.
    pub(crate) fn finish_transaction_scope(&mut self) -> Result<Option<CommitHandle>> {
        if self.in_transaction() {
            return Ok(None);
        }
        if !self.transactions.is_started() {
            self.slot.release_to(0);
            return Ok(None);
        }
        self.next_characteristics = None;
        let handle = self.transactions.commit();
        self.slot.release_to(0);
        self.shared.counters.add(Counter::HANDLER_COMMIT, 1);
        self.settled(handle.map(to_wait_for)?)
    }

    /// After a statement that failed: a statement of its own is undone, an open transaction stays unless the engine ended it.
    pub(crate) fn abort_transaction_scope(&mut self, error: &Error) {
        if error.code() == ErrorCode::LOCK_DEADLOCK {
            self.server.log_deadlock();
        }
        if self.in_transaction() {
            if error.code() == ErrorCode::LOCK_DEADLOCK {
                // The victim's whole transaction is undone, in every engine.
                let _ = self.transactions.rollback();
                self.slot.release_to(0);
                self.branch_rolled_back(ErrorCode::XA_RBDEADLOCK);
            }
            return;
        }
        if self.transactions.is_started() {
            // A write that is refused because the next transaction only reads is not that transaction.
            if error.code() != ErrorCode::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION {
                self.next_characteristics = None;
            }
            // The statement's own error is the one to report.
            let _ = self.transactions.rollback();
            self.shared.counters.add(Counter::HANDLER_ROLLBACK, 1);
        }
        self.slot.release_to(0);
    }

    /// Before a commit that is a statement's own: one that wrote waits for FLUSH TABLES WITH READ LOCK, and a server that only reads
    /// refuses it. The transaction is rolled back then.
    pub(crate) fn check_commit(&mut self) -> Result<()> {
        if !self.transactions.has_written() {
            return Ok(());
        }
        let (locks, cancel) = (&self.server.metadata_locks, &self.shared.cancel);
        let timeout = self.settings.lock_wait_timeout;
        let awake = || locks.wake(&self.slot, self.shared.id, timeout, cancel);
        let allowed = self.check_writable().and_then(|()| awake());
        if allowed.is_err() {
            // The refusal is the one to report.
            let _ = self.transactions.rollback();
            self.slot.release_to(0);
            self.shared.counters.add(Counter::HANDLER_ROLLBACK, 1);
        }
        allowed
    }

    /// Before a statement that commits implicitly. One that only `starts` the next transaction leaves what that will be like.
    pub(crate) fn commit_implicitly(&mut self, starts: bool) -> Result<()> {
        let was_open = self.transactions.explicit || self.transactions.is_started();
        self.check_commit()?;
        let handle = self.transactions.commit();
        self.slot.release_to(0);
        if was_open || !starts {
            self.next_characteristics = None;
        }
        self.begin_transaction_scope();
        self.wait_for(&handle?)
    }

    /// Blocks until a commit is durable, and thereby seen by snapshots taken from now on.
    fn wait_for(&self, handle: &CommitHandle) -> Result<()> {
        if handle.is_durable() {
            return Ok(());
        }
        let waited = sys::blocking::blocking(|| handle.wait());
        waited.map_err(|error| error.into_error(&self.shared.cancel))
    }

    /// What the reply to a statement has to wait for. When others follow in the same text, which must see what it did, the wait
    /// is here.
    pub(crate) fn settled(&self, commit: Option<CommitHandle>) -> Result<Option<CommitHandle>> {
        match commit {
            Some(handle) if self.more_results => self.wait_for(&handle).map(|()| None),
            other => Ok(other),
        }
    }

    /// START TRANSACTION, BEGIN. The transaction before was committed by the dispatcher.
    pub(crate) fn start_transaction(
        &mut self,
        start: &StartTransaction,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if self.locked.tables.is_some() {
            // BEGIN releases LOCK TABLES.
            self.release_locked_tables();
        }
        self.begin_explicit(start.read_only);
        if start.consistent_snapshot {
            let engine = self.server.default_engine.name();
            self.transactions.take_snapshot(engine)?;
        }
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo::default())
    }

    pub(crate) fn begin_explicit(&mut self, read_only: Option<bool>) {
        self.begin_transaction_scope();
        if let Some(read_only) = read_only {
            self.transactions.characteristics.read_only = read_only;
        }
        self.transactions.explicit = true;
        self.next_characteristics = None;
    }

    /// COMMIT.
    pub(crate) fn commit_statement(
        &mut self,
        completion: Completion,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let before = self.transactions.characteristics;
        self.check_commit()?;
        let handle = self.transactions.commit();
        self.slot.release_to(0);
        self.shared.counters.add(Counter::HANDLER_COMMIT, 1);
        let handle = handle?;
        self.complete(completion, before)?;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit: to_wait_for(handle), ..OkInfo::default() })
    }

    /// ROLLBACK.
    pub(crate) fn rollback_statement(
        &mut self,
        completion: Completion,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let before = self.transactions.characteristics;
        let rolled_back = self.transactions.rollback();
        self.slot.release_to(0);
        self.shared.counters.add(Counter::HANDLER_ROLLBACK, 1);
        rolled_back?;
        self.complete(completion, before)?;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo::default())
    }

    /// AND CHAIN, RELEASE, or what `completion_type` says.
    fn complete(&mut self, completion: Completion, before: Characteristics) -> Result<()> {
        use variables::CompletionType;
        let default = self.settings.completion_type;
        let release = completion.release.unwrap_or(default == CompletionType::Release);
        let chain = completion.chain.unwrap_or(default == CompletionType::Chain && !release);
        self.next_characteristics = None;
        if chain {
            self.transactions.characteristics = before;
            self.transactions.explicit = true;
        }
        if release {
            self.outcome = CommandOutcome::Close;
        }
        Ok(())
    }

    /// SAVEPOINT; outside a transaction it is forgotten at once, as in the reference.
    pub(crate) fn savepoint_statement(
        &mut self,
        name: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.shared.counters.add(Counter::HANDLER_SAVEPOINT, 1);
        if self.in_transaction() {
            self.transactions.savepoint(name);
        }
        self.send_ok(sink, OkInfo::default())
    }

    /// ROLLBACK TO SAVEPOINT.
    pub(crate) fn rollback_to_statement(
        &mut self,
        name: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.shared.counters.add(Counter::HANDLER_SAVEPOINT_ROLLBACK, 1);
        self.transactions.rollback_to(name)?;
        self.send_ok(sink, OkInfo::default())
    }

    /// RELEASE SAVEPOINT.
    pub(crate) fn release_statement(
        &mut self,
        name: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.transactions.release(name)?;
        self.send_ok(sink, OkInfo::default())
    }

    /// SET [scope] TRANSACTION.
    pub(crate) fn set_transaction(
        &mut self,
        set: &SetTransaction,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let isolation = set.isolation.map(isolation_name);
        match set.scope {
            None => self.set_next_transaction(set)?,
            Some(VarScope::Session) => {
                if let Some(name) = isolation {
                    self.store_session("transaction_isolation", Value::text(name));
                }
                if let Some(read_only) = set.read_only {
                    self.store_session("transaction_read_only", Value::Int(i64::from(read_only)));
                }
                self.next_characteristics = None;
                self.refresh_settings();
            }
            Some(VarScope::Global | VarScope::Persist | VarScope::PersistOnly) => {
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
                self.server.globals.set(&changes, Origin::Dynamic);
            }
        }
        self.send_ok(sink, OkInfo::default())
    }

    /// Characteristics of the next transaction only.
    fn set_next_transaction(&mut self, set: &SetTransaction) -> Result<()> {
        if self.transactions.explicit || self.transactions.is_started() {
            bail!(CANT_CHANGE_TX_CHARACTERISTICS);
        }
        let mut next = self.next_characteristics.unwrap_or(Characteristics {
            isolation: self.settings.isolation,
            read_only: self.settings.transaction_read_only,
        });
        if let Some(isolation) = set.isolation {
            next.isolation = variables::isolation(isolation_name(isolation));
        }
        if let Some(read_only) = set.read_only {
            next.read_only = read_only;
        }
        self.next_characteristics = Some(next);
        Ok(())
    }

    /// SET autocommit=1 ends the transaction that autocommit=0 had opened.
    pub(crate) fn autocommit_changed(&mut self, before: bool) -> Result<Option<CommitHandle>> {
        if before || !self.settings.autocommit {
            return Ok(None);
        }
        if let Err(error) = self.check_branch_goes_on() {
            self.store_session("autocommit", Value::Int(0));
            self.refresh_settings();
            return Err(error);
        }
        let handle = self.transactions.commit();
        self.slot.release_to(0);
        handle.map(to_wait_for)
    }
}

fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ-UNCOMMITTED",
        Isolation::ReadCommitted => "READ-COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE-READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}
