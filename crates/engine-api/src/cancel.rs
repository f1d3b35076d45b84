//! Cancelling a statement (KILL, a time limit, or a client that went away), the object that it waits for, and how far it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Shared by a connection, its running statement and those that may cancel it. Cloning shares.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU8,
    /// A `Wait`, as its place in `WAITS` from 1 on; 0: none.
    wait: AtomicU8,
    /// Work that a long statement has done, and the work that it is expected to do; 0: no long statement runs.
    work_done: AtomicU64,
    work_expected: AtomicU64,
    /// The token that this one follows.
    leader: Option<CancelToken>,
}

/// The objects that a statement can wait for until another session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A row, or a gap before one, that another transaction has locked.
    RowLock,
    /// A table that others use or change.
    MetadataLock,
    /// FLUSH TABLES WITH READ LOCK, or the sessions that it waits for.
    GlobalReadLock,
    /// GET_LOCK().
    UserLock,
    /// SLEEP().
    Sleep,
}

const WAITS: [Wait; 5] =
    [Wait::RowLock, Wait::MetadataLock, Wait::GlobalReadLock, Wait::UserLock, Wait::Sleep];

/// Says that a statement waits, until it is dropped.
#[derive(Debug)]
pub struct Waiting<'token>(&'token CancelToken);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.0.wait.store(0, Ordering::Relaxed);
    }
}

/// How far a long statement is, in the optimizer's unit of cost: about a row read from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Done so far.
    pub work_done: u64,
    /// The optimizer's cost of the statement: an estimate, which may be too low.
    pub work_expected: u64,
}

/// Says that a long statement runs, until it is dropped.
#[derive(Debug)]
pub struct Long<'token> {
    token: &'token CancelToken,
    /// Work done and expected of the long work that this is part of.
    outer: (u64, u64),
}

impl Drop for Long<'_> {
    fn drop(&mut self) {
        let Shared { work_done, work_expected, .. } = &*self.token.0;
        work_expected.store(self.outer.1, Ordering::Relaxed);
        work_done.store(self.outer.0, Ordering::Relaxed);
    }
}

impl Long<'_> {
    /// So much of the work is done now, whatever was counted; `expected`, when it is more than was known before.
    pub fn set_done(&self, done: u64, expected: u64) {
        let Shared { work_done, work_expected, .. } = &*self.token.0;
        work_done.store(done, Ordering::Relaxed);
        work_expected.fetch_max(expected.max(1), Ordering::Relaxed);
    }
}

const RUNNING: u8 = 0;
/// Running as long as the leader does.
const FOLLOWS: u8 = 1;
const QUERY_KILLED: u8 = 2;
const TIMED_OUT: u8 = 3;
const STATEMENT_TIMED_OUT: u8 = 4;
const CONNECTION_KILLED: u8 = 5;

/// Which limit of time a statement has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// `max_execution_time`, of a SELECT.
    Select,
    /// `max_statement_time`, of a whole statement of a client.
    Statement,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// A token of a session that works for the statement of `leader`: it is cancelled as well whenever that one is.
    pub fn following(leader: &CancelToken) -> CancelToken {
        CancelToken(Arc::new(Shared {
            state: AtomicU8::new(FOLLOWS),
            leader: Some(leader.clone()),
            ..Shared::default()
        }))
    }

    /// The leader's answer; `without` a leader.
    #[cold]
    fn of_leader<T>(&self, without: T, ask: impl FnOnce(&CancelToken) -> T) -> T {
        self.0.leader.as_ref().map_or(without, ask)
    }

    /// KILL QUERY: the statement ends with 1317, the connection lives.
    pub fn kill_query(&self) {
        self.0.state.fetch_max(QUERY_KILLED, Ordering::Release);
    }

    /// A limit ran out: the statement ends with 3024 or 1969.
    pub fn time_out(&self, limit: TimeLimit) {
        let state = match limit {
            TimeLimit::Select => TIMED_OUT,
            TimeLimit::Statement => STATEMENT_TIMED_OUT,
        };
        self.0.state.fetch_max(state, Ordering::Release);
    }

    /// KILL CONNECTION, or the client is gone.
    pub fn kill_connection(&self) {
        self.0.state.fetch_max(CONNECTION_KILLED, Ordering::Release);
    }

    /// Whether the connection must end.
    #[inline]
    pub fn is_connection_killed(&self) -> bool {
        match self.0.state.load(Ordering::Acquire) {
            CONNECTION_KILLED => true,
            FOLLOWS => self.of_leader(false, CancelToken::is_connection_killed),
            _ => false,
        }
    }

    /// Whether anything asked the statement to stop. One relaxed load: cheap enough for every batch of rows.
    #[inline]
    pub fn is_cancelled(&self) -> bool {
        match self.0.state.load(Ordering::Relaxed) {
            RUNNING => false,
            FOLLOWS => self.of_leader(false, CancelToken::is_cancelled),
            _ => true,
        }
    }

    /// The error that a cancelled statement ends with.
    ///
    /// # Errors
    /// 1317, 3024 or 1969 when cancelled.
    #[inline]
    pub fn check(&self) -> errors::Result<()> {
        use errors::{Error, ErrorCode};
        match self.0.state.load(Ordering::Acquire) {
            RUNNING => Ok(()),
            FOLLOWS => self.of_leader(Ok(()), CancelToken::check),
            TIMED_OUT => Err(Error::with(ErrorCode::QUERY_TIMEOUT, &[])),
            STATEMENT_TIMED_OUT => Err(Error::with(ErrorCode::STATEMENT_TIMEOUT, &[])),
            _ => Err(Error::with(ErrorCode::QUERY_INTERRUPTED, &[])),
        }
    }

    /// Forgets a cancelled statement before the next one starts. A killed connection stays killed.
    #[inline]
    pub fn reset_statement(&self) {
        let state = self.0.state.load(Ordering::Acquire);
        if matches!(state, QUERY_KILLED | TIMED_OUT | STATEMENT_TIMED_OUT) {
            let running = if self.0.leader.is_some() { FOLLOWS } else { RUNNING };
            // A kill that arrives between the load and this store aimed at the statement that just ended.
            let _ =
                self.0.state.compare_exchange(state, running, Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Publishes the object that the statement waits for, until it is dropped.
    pub fn waiting(&self, wait: Wait) -> Waiting<'_> {
        self.0.wait.store(wait as u8 + 1, Ordering::Relaxed);
        Waiting(self)
    }

    /// The object that the statement waits for.
    pub fn waits_for(&self) -> Option<Wait> {
        let place = self.0.wait.load(Ordering::Relaxed);
        WAITS.get(usize::from(place).checked_sub(1)?).copied()
    }

    /// Publishes that a statement runs whose cost is `work_expected`, until it is dropped.
    pub fn long(&self, work_expected: u64) -> Long<'_> {
        let done = self.0.work_done.swap(0, Ordering::Relaxed);
        let expected = self.0.work_expected.swap(work_expected.max(1), Ordering::Relaxed);
        Long { token: self, outer: (done, expected) }
    }

    /// Counts work that the statement has done: to be called for each batch of rows, by its only thread.
    #[inline]
    pub fn count_work(&self, work: u64) {
        let done = self.0.work_done.load(Ordering::Relaxed);
        self.0.work_done.store(done.wrapping_add(work), Ordering::Relaxed);
    }

    /// As `count_work`, for one of several threads.
    pub fn count_work_together(&self, work: u64) {
        self.0.work_done.fetch_add(work, Ordering::Relaxed);
    }

    /// How far the statement is; `None` when no long statement runs.
    pub fn progress(&self) -> Option<Progress> {
        let work_expected = self.0.work_expected.load(Ordering::Relaxed);
        let work_done = self.0.work_done.load(Ordering::Relaxed);
        (work_expected > 0).then_some(Progress { work_done, work_expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_statement_has_a_progress_while_it_runs() {
        let token = CancelToken::new();
        token.count_work(7);
        assert_eq!(token.progress(), None);
        let long = token.long(100);
        token.count_work(3);
        token.count_work_together(20);
        assert_eq!(token.progress(), Some(Progress { work_done: 23, work_expected: 100 }));
        let inner = token.long(5);
        token.count_work(4);
        drop(inner);
        assert_eq!(token.progress(), Some(Progress { work_done: 23, work_expected: 100 }));
        long.set_done(70, 90);
        assert_eq!(token.progress(), Some(Progress { work_done: 70, work_expected: 100 }));
        long.set_done(120, 120);
        assert_eq!(token.progress(), Some(Progress { work_done: 120, work_expected: 120 }));
        drop(long);
        assert_eq!(token.progress(), None);
    }

    #[test]
    fn a_follower_stops_with_its_leader_and_alone() {
        let leader = CancelToken::new();
        let follower = CancelToken::following(&leader);
        assert!(!follower.is_cancelled() && follower.check().is_ok());
        leader.kill_query();
        // A new statement of the follower does not forget the leader's.
        follower.reset_statement();
        assert!(follower.is_cancelled() && follower.check().is_err());
        assert!(!follower.is_connection_killed());
        leader.reset_statement();
        assert!(!follower.is_cancelled());
        follower.kill_query();
        assert!(follower.is_cancelled() && !leader.is_cancelled());
        follower.reset_statement();
        assert!(!follower.is_cancelled());
        leader.kill_connection();
        assert!(follower.is_connection_killed());
    }
}
