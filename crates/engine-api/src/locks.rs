//! Transactions, locks and waits as an engine shows them to people.

use crate::IsolationLevel;

/// A copy of an engine's locks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockReport {
    /// Transactions that changed or locked something.
    pub transactions: Vec<TransactionView>,
    /// The locks that they hold and wait for.
    pub locks: Vec<LockView>,
    /// Which request waits for which lock or earlier request: positions in `locks`.
    pub waits: Vec<(usize, usize)>,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct TransactionView {
    /// Its number.
    pub id: u64,
    /// As given to `Transaction::set_session`; 0 for none.
    pub session: u64,
    /// When it changed or locked something first, or took the snapshot that it holds, microseconds since 1970 UTC.
    pub started_micros: u64,
    /// When it began to wait for a lock, if it does.
    pub waits_since_micros: Option<u64>,
    /// Its isolation level.
    pub isolation: IsolationLevel,
    /// Locks as they are stored.
    pub lock_count: u64,
    /// Rows that it has locked explicitly, about.
    pub rows_locked: u64,
    /// Rows that it has changed.
    pub rows_changed: u64,
}

/// The object that a lock covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// A row, or a key of a unique index.
    Record,
    /// Keys up to one, against inserts.
    Range,
    /// Room for a key that is to be inserted.
    Insert,
}

/// A lock, or a request for one.
#[derive(Clone, Debug, PartialEq)]
pub struct LockView {
    /// Names it as long as it is there.
    pub id: String,
    /// Its transaction.
    pub transaction: u64,
    /// The session of the transaction.
    pub session: u64,
    /// The table, as in its definition; empty when it is gone.
    pub table: String,
    /// The index; `None` for hidden row ids.
    pub index: Option<String>,
    /// The object that it covers.
    pub kind: LockKind,
    /// Others may have it too.
    pub is_shared: bool,
    /// It is not granted yet.
    pub is_waiting: bool,
    /// The key in words; `None` for the end of an index.
    pub data: Option<String>,
}

/// A deadlock that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadlockView {
    /// When, microseconds since 1970 UTC.
    pub at_micros: u64,
    /// The members and the lock each waited for: one of the next member's, the last of the first's.
    pub members: Vec<(TransactionView, LockView)>,
    /// The transaction that was rolled back.
    pub victim: u64,
}

impl LockReport {
    /// Keeps only the locks of sessions that `is_shown` accepts, and the waits among them.
    pub fn retain(&mut self, is_shown: impl Fn(u64) -> bool) {
        self.transactions.retain(|transaction| is_shown(transaction.session));
        let mut places = Vec::with_capacity(self.locks.len());
        let mut next = 0;
        for lock in &self.locks {
            let shown = is_shown(lock.session);
            places.push(shown.then_some(next));
            next += usize::from(shown);
        }
        self.locks.retain(|lock| is_shown(lock.session));
        let waits = self.waits.iter();
        self.waits = waits.filter_map(|(wants, has)| places[*wants].zip(places[*has])).collect();
    }
}

impl LockView {
    /// The mode, as the reference words it.
    pub fn mode(&self) -> &'static str {
        match (self.kind, self.is_shared) {
            (LockKind::Record, true) => "S,REC_NOT_GAP",
            (LockKind::Record, false) => "X,REC_NOT_GAP",
            (LockKind::Range, true) => "S,GAP",
            (LockKind::Range, false) => "X,GAP",
            (LockKind::Insert, _) => "X,GAP,INSERT_INTENTION",
        }
    }

    /// The index, as the reference words it.
    pub fn index_name(&self) -> &str {
        self.index.as_deref().unwrap_or("GEN_CLUST_INDEX")
    }

    /// The key, as the reference words it.
    pub fn data_text(&self) -> &str {
        self.data.as_deref().unwrap_or("supremum pseudo-record")
    }
}

impl DeadlockView {
    /// A report as lines of text. `statement` returns a session's statement, if known.
    pub fn to_text(&self, statement: impl Fn(u64) -> Option<String>) -> String {
        let mut text = String::new();
        for (at, (transaction, lock)) in self.members.iter().enumerate() {
            text += &format!(
                "({}) TRANSACTION {}, connection {}, {} rows changed, {} locks\n",
                at + 1,
                transaction.id,
                transaction.session,
                transaction.rows_changed,
                transaction.lock_count,
            );
            if let Some(statement) = statement(transaction.session) {
                text += &format!("{statement}\n");
            }
            text += &format!(
                "({}) WAITS FOR index {} of table {}: {}\n",
                at + 1,
                lock.index_name(),
                lock.table,
                lock.data_text(),
            );
        }
        let victim = self.members.iter().position(|(member, _)| member.id == self.victim);
        text + &format!("ROLLED BACK: ({})\n", victim.map_or(0, |at| at + 1))
    }
}
