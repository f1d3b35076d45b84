//! Where transactions begin and end around statements.

use std::time::Duration;

use catalog::EffectivePrivileges;
use engine_api::{CommitHandle, IsolationLevel};
use errors::{Error, ErrorCode, Result, bail};
use syntax::ast::{Completion, Isolation, SetTransaction};
use sys::model::breaks;
use variables::{CompletionType, Globals, ReadOnly, Settings, TransactionTracking};

use crate::report::Situation;
use crate::transactions::{Characteristics, Transactions};
use statements::planned::PlannedKind;
use statements::status::Counter;

/// Whether the server accepts writes from an account.
#[derive(Clone, Copy)]
pub struct Writable<'a> {
    pub globals: &'a Globals,
    pub privileges: &'a EffectivePrivileges,
    /// What a source has done is repeated on a read-only server too.
    pub is_applier: bool,
}

impl Writable<'_> {
    /// # Errors
    /// 1290 on a read-only server.
    #[inline]
    pub fn check(self) -> Result<()> {
        match self.globals.read_only() {
            ReadOnly::All if !self.is_applier => {
                bail!(OPTION_PREVENTS_STATEMENT, "--super-read-only")
            }
            ReadOnly::Users if !self.privileges.has_dynamic("CONNECTION_ADMIN") => {
                bail!(OPTION_PREVENTS_STATEMENT, "--read-only")
            }
            ReadOnly::All | ReadOnly::Users | ReadOnly::Nobody => Ok(()),
        }
    }
}

/// The action after the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// Nothing, or another transaction like it.
    Stay,
    /// The connection ends.
    Release,
}

/// The commit that the reply must wait for. Also one without changes, when it read data that is not yet durable.
#[inline]
pub fn to_wait_for(handle: CommitHandle) -> Option<CommitHandle> {
    let waits = !handle.is_durable() && !breaks("replies wait for the log");
    waits.then_some(handle)
}

impl Transactions {
    /// Whether statements do not commit by themselves.
    #[inline]
    pub fn is_open(&self, settings: &Settings) -> bool {
        self.explicit || !settings.autocommit || self.function_depth > 0
    }

    /// How long the client may be silent in the open transaction: the limit for what the transaction has done goes before the common one.
    pub fn idle_limit(&self, settings: &Settings) -> Option<(&'static str, Duration)> {
        if !self.is_open(settings) || !(self.explicit || self.is_started()) {
            return None;
        }
        let limits = &settings.idle_transactions;
        let own = if self.has_changes() { limits.write } else { limits.readonly };
        own.or(limits.any)
    }

    /// Whether statements that change definitions are part of the open transactions.
    #[inline]
    pub fn takes_definitions(&self, settings: &Settings) -> bool {
        settings.transactional_ddl && self.is_open(settings)
    }

    /// Whether plain reads take locks: SERIALIZABLE within a transaction.
    #[inline]
    pub fn reads_lock(&self, settings: &Settings) -> bool {
        let serializable = self.characteristics.isolation == IsolationLevel::Serializable;
        serializable && (self.explicit || !settings.autocommit)
    }

    /// Whether plain reads of a statement lock: the rows that a change is computed from must not change, so that it could be repeated.
    #[inline]
    pub fn locks_reads(&self, kind: PlannedKind) -> bool {
        let isolation = self.characteristics.isolation;
        match kind {
            PlannedKind::Insert | PlannedKind::Update | PlannedKind::Delete => {
                matches!(isolation, IsolationLevel::RepeatableRead | IsolationLevel::Serializable)
            }
            PlannedKind::Query | PlannedKind::Do => {
                self.explicit && isolation == IsolationLevel::Serializable
            }
        }
    }

    /// Before a statement: a transaction that it starts gets the session's characteristics.
    #[inline]
    pub fn begin_scope(&mut self, settings: &Settings) {
        if self.function_depth > 0 {
            // It is part of the calling statement.
            return;
        }
        if self.is_started() {
            self.begin_statement();
        } else if !self.explicit {
            self.characteristics = self.next_characteristics(settings);
        }
    }

    /// The characteristics of the next transaction.
    #[inline]
    pub fn next_characteristics(&self, settings: &Settings) -> Characteristics {
        self.next.unwrap_or(Characteristics {
            isolation: settings.isolation,
            read_only: settings.transaction_read_only,
        })
    }

    /// Call after a statement that succeeded, before its reply: commits unless a transaction is open.
    #[inline]
    pub fn finish_scope(&mut self, settings: &Settings) -> Result<Option<CommitHandle>> {
        if self.is_open(settings) {
            return Ok(None);
        }
        if !self.is_started() {
            self.slot.release_to(0);
            return Ok(None);
        }
        self.next = None;
        let handle = self.commit();
        self.slot.release_to(0);
        self.home.session.counters.add(Counter::HANDLER_COMMIT, 1);
        handle.map(to_wait_for)
    }

    /// Call after a failed statement: a single-statement transaction is rolled back, an open transaction stays unless the engine ended it.
    pub fn abort_scope(&mut self, error: &Error, settings: &Settings) {
        if self.is_open(settings) {
            if error.ends_transaction() {
                // The victim's whole transaction is rolled back, in every engine.
                let _ = self.rollback();
                self.slot.release_to(0);
                self.branch_rolled_back(ErrorCode::XA_RBDEADLOCK);
            }
            return;
        }
        self.abort_single(error);
    }

    /// Rolls back a failed statement's own transaction and releases the tables that it used.
    fn abort_single(&mut self, error: &Error) {
        self.forget_rows();
        if self.is_started() {
            // A write that is refused because the next transaction is read-only does not use up that transaction.
            if error.code() != ErrorCode::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION {
                self.next = None;
            }
            // The statement's own error is the one to report.
            let _ = self.rollback();
            self.home.session.counters.add(Counter::HANDLER_ROLLBACK, 1);
        }
        self.slot.release_to(0);
    }

    /// Call after a statement that changes definitions. Because it committed before and by itself, it leaves no transaction open, even without
    /// autocommit (unless it was part of one), and no metadata locks on the tables that it read: parents of foreign keys, and those of a query.
    pub fn end_definition(&mut self, result: &Result<()>) {
        if let Some(place) = self.definition_began.take() {
            if result.is_err() {
                // The statement's own error is the one to report.
                let _ = self.return_to(&place);
            }
            return;
        }
        match result {
            Err(error) => self.abort_single(error),
            Ok(()) if !self.is_started() => self.slot.release_to(0),
            Ok(()) => {}
        }
    }

    /// Call before a statement's implicit commit: one that wrote waits for FLUSH TABLES WITH READ LOCK, and a read-only server
    /// refuses it: then the transaction is rolled back.
    #[inline]
    pub fn check_commit(&mut self, settings: &Settings, writable: Writable<'_>) -> Result<()> {
        if !self.has_written() {
            return Ok(());
        }
        let allowed = writable.check().and_then(|()| {
            let timeout = settings.lock_wait_timeout;
            self.home.locks.wake(
                &self.slot,
                self.home.session.id,
                timeout,
                &self.home.session.cancel,
            )
        });
        if allowed.is_err() {
            // The refusal is the one to report.
            let _ = self.rollback();
            self.slot.release_to(0);
            self.home.session.counters.add(Counter::HANDLER_ROLLBACK, 1);
        }
        allowed
    }

    /// Call before a statement that commits implicitly. One that only `starts` the next transaction keeps its characteristics.
    #[inline]
    pub fn commit_implicitly(
        &mut self,
        starts: bool,
        settings: &Settings,
        writable: Writable<'_>,
    ) -> Result<()> {
        let was_open = self.explicit || self.is_started();
        self.check_commit(settings, writable)?;
        let handle = self.commit();
        self.slot.release_to(0);
        if was_open || !starts {
            self.next = None;
        }
        self.begin_scope(settings);
        self.wait_for(&handle?)
    }

    /// Blocks until a commit is durable, and so visible to snapshots taken from now on.
    #[inline]
    pub fn wait_for(&self, handle: &CommitHandle) -> Result<()> {
        if handle.is_durable() {
            return Ok(());
        }
        let waited = sys::blocking::blocking(|| handle.wait());
        waited.map_err(|error| error.into_error(&self.home.session.cancel))
    }

    /// START TRANSACTION, XA START: the next transaction lasts until it is ended.
    #[inline]
    pub fn begin_explicit(&mut self, read_only: Option<bool>, settings: &Settings) {
        self.begin_scope(settings);
        if settings.track_transaction != TransactionTracking::Off {
            self.report.begin(read_only, self.next.is_some());
        }
        if let Some(read_only) = read_only {
            self.characteristics.read_only = read_only;
        }
        self.explicit = true;
        self.next = None;
    }

    /// COMMIT: the handle that the reply waits for.
    ///
    /// # Errors
    /// Errors of `check_commit`; the engines' errors.
    #[inline]
    pub fn commit_explicitly(
        &mut self,
        settings: &Settings,
        writable: Writable<'_>,
    ) -> Result<Option<CommitHandle>> {
        self.check_commit(settings, writable)?;
        let handle = self.commit();
        self.slot.release_to(0);
        self.home.session.counters.add(Counter::HANDLER_COMMIT, 1);
        handle.map(to_wait_for)
    }

    /// ROLLBACK.
    ///
    /// # Errors
    /// The engines' errors; it is ended anyway.
    #[inline]
    pub fn roll_back_explicitly(&mut self) -> Result<()> {
        let rolled_back = self.rollback();
        self.slot.release_to(0);
        self.home.session.counters.add(Counter::HANDLER_ROLLBACK, 1);
        rolled_back
    }

    /// Carries out AND CHAIN, RELEASE, or `completion_type`. `before`: the characteristics of the ended transaction.
    #[inline]
    pub fn complete(
        &mut self,
        completion: Completion,
        before: Characteristics,
        settings: &Settings,
    ) -> Afterwards {
        let default = settings.completion_type;
        let release = completion.release.unwrap_or(default == CompletionType::Release);
        let chain = completion.chain.unwrap_or(default == CompletionType::Chain && !release);
        self.next = None;
        if chain {
            self.characteristics = before;
            self.explicit = true;
            self.report.chain();
        }
        if release { Afterwards::Release } else { Afterwards::Stay }
    }

    /// SET TRANSACTION without a scope: characteristics of the next transaction only.
    ///
    /// # Errors
    /// 1568.
    pub fn set_next(&mut self, set: &SetTransaction, settings: &Settings) -> Result<()> {
        if self.explicit || self.is_started() {
            bail!(CANT_CHANGE_TX_CHARACTERISTICS);
        }
        let mut next = self.next_characteristics(settings);
        if let Some(isolation) = set.isolation {
            next.isolation = variables::isolation(isolation_name(isolation));
        }
        if let Some(read_only) = set.read_only {
            next.read_only = read_only;
        }
        let isolation = set.isolation.map(|_| next.isolation);
        self.report.name_next(isolation, set.read_only, self.next.is_some());
        self.next = Some(next);
        Ok(())
    }

    /// What of them the report to the client depends on.
    pub fn situation(&self, settings: &Settings, locks_tables: bool) -> Situation {
        Situation {
            explicit: self.explicit,
            implicit: !settings.autocommit && self.is_started(),
            has_next: self.next.is_some(),
            locks_tables,
        }
    }
}

/// The level's name as a value of `transaction_isolation`.
pub fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ-UNCOMMITTED",
        Isolation::ReadCommitted => "READ-COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE-READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}
