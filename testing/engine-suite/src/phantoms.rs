//! Phantoms, by brute force: several open transactions lock random ranges and write random rows from one thread, so that an oracle knows
//! which rows each may count on.

use std::collections::BTreeMap;
use std::time::Duration;

use engine_api::{
    Direction, EngineError, EngineResult, IndexId, IsolationLevel, KeyBound, KeyRange, RowLock,
    Transaction, TxnOptions,
};

use crate::harness::{BY_C, Bench, Row, commit, key_a, key_c, options};
use crate::model::Random;
use crate::{Check, Factory};

pub(crate) const CHECKS: &[Check] = &[("phantoms against an oracle", phantoms)];

const KEYS: u64 = 30;
const SESSIONS: usize = 3;
/// Least number of steps in all runs that change something and record it in the oracle: with fewer the test shows nothing.
const WRITES_MIN: usize = 300;

type Rows = BTreeMap<i64, Row>;

/// A range that a transaction has read under locks, by key or by `c`.
#[derive(Clone, Debug)]
struct Span {
    by_c: bool,
    low: i64,
    high: i64,
    exclusive: bool,
}

/// `c` of the row with key `a`: sorts differently from `a`.
fn text(a: i64) -> String {
    format!("{:02}", a * 7 % KEYS as i64)
}

impl Span {
    fn random(random: &mut Random) -> Span {
        let (one, other) = (random.below(KEYS) as i64, random.below(KEYS) as i64);
        let high = one.max(other).min(one.min(other) + 6);
        let by_c = random.below(3) == 0;
        Span { by_c, low: one.min(other), high, exclusive: random.below(2) == 0 }
    }

    fn covers(&self, row: &Row) -> bool {
        match self.by_c {
            true => (format!("{:02}", self.low)..=format!("{:02}", self.high)).contains(&row.2),
            false => (self.low..=self.high).contains(&row.0),
        }
    }

    fn read(&self, bench: &Bench, txn: &mut dyn Transaction, down: bool) -> EngineResult<Vec<Row>> {
        let key = |value: i64| match self.by_c {
            true => key_c(&format!("{value:02}")),
            false => key_a(value),
        };
        let range = KeyRange {
            lower: KeyBound::Included(key(self.low)),
            upper: KeyBound::Included(key(self.high)),
        };
        let mut spec = bench.spec(if self.by_c { BY_C } else { IndexId::CLUSTERED }, range);
        spec.lock = if self.exclusive { RowLock::Exclusive } else { RowLock::Shared };
        spec.direction = if down { Direction::Backward } else { Direction::Forward };
        let mut rows = bench.scan(txn, &spec)?;
        rows.sort();
        Ok(rows)
    }
}

/// An open transaction and its state in the oracle.
struct Session {
    txn: Box<dyn Transaction>,
    spans: Vec<Span>,
    /// The earlier contents of rows that it has written, for a rollback.
    before: BTreeMap<i64, Option<Row>>,
}

/// All sessions, and the rows as they are, uncommitted ones included: every writer holds its rows to its end.
struct Oracle {
    rows: Rows,
    sessions: Vec<Option<Session>>,
    writes: usize,
    waits: usize,
}

fn phantoms(factory: Factory<'_>) {
    let (mut writes, mut waits) = (0, 0);
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        for seed in 1..=6 {
            println!("engine-suite: phantoms at {level:?}, seed {seed}");
            let oracle = one_run(factory, level, seed);
            writes += oracle.writes;
            waits += oracle.waits;
        }
    }
    assert!(writes > WRITES_MIN && waits > WRITES_MIN, "{writes} writes, {waits} waits");
}

fn one_run(factory: Factory<'_>, level: IsolationLevel, seed: u64) -> Oracle {
    let bench = Bench::new(factory);
    let mut random = Random::new(seed);
    let sessions = (0..SESSIONS).map(|_| None).collect();
    let mut oracle = Oracle { rows: Rows::new(), sessions, writes: 0, waits: 0 };
    for _ in 0..400 {
        let at = random.below(SESSIONS as u64) as usize;
        let mut session = oracle.sessions[at].take().unwrap_or_else(|| {
            let settings = TxnOptions { lock_wait_timeout: Duration::ZERO, ..options(level) };
            Session { txn: bench.begin_with(&settings), spans: Vec::new(), before: BTreeMap::new() }
        });
        let going_on = match random.below(10) {
            0 => false,
            1..4 => oracle.lock_range(&bench, &mut session, &mut random),
            4 => oracle.look_again(&bench, &mut session),
            _ => oracle.write(&bench, &mut session, &mut random),
        };
        if going_on {
            oracle.sessions[at] = Some(session);
        } else {
            oracle.end(session, random.below(3) > 0);
        }
    }
    for at in 0..SESSIONS {
        if let Some(session) = oracle.sessions[at].take() {
            oracle.end(session, true);
        }
    }
    let mut txn = bench.begin();
    assert_eq!(bench.all(&mut *txn), oracle.rows.values().cloned().collect::<Vec<_>>());
    txn.rollback().expect("rollback");
    bench.check();
    oracle
}

impl Oracle {
    /// Whether other transactions' locks or writes block a locking read of `span`.
    fn others_wrote_in(&self, span: &Span) -> bool {
        self.sessions.iter().flatten().any(|other| {
            other.before.iter().any(|(key, before)| {
                let now = self.rows.get(key);
                before.iter().chain(now).any(|row| span.covers(row))
            })
        })
    }

    fn expected(&self, span: &Span) -> Vec<Row> {
        self.rows.values().filter(|row| span.covers(row)).cloned().collect()
    }

    fn lock_range(&mut self, bench: &Bench, session: &mut Session, random: &mut Random) -> bool {
        let span = Span::random(random);
        session.txn.begin_statement();
        match span.read(bench, &mut *session.txn, random.below(2) == 0) {
            Ok(rows) => {
                assert!(!self.others_wrote_in(&span), "read uncommitted rows: {span:?}");
                assert_eq!(rows, self.expected(&span), "{span:?}");
                session.spans.push(span);
                true
            }
            Err(EngineError::LockWaitTimeout) => {
                self.waits += 1;
                true
            }
            Err(EngineError::Deadlock) => false,
            Err(other) => panic!("unexpected {other:?}"),
        }
    }

    /// Checks that every range that was read is unchanged, except for the transaction's own writes, which the oracle has made too.
    fn look_again(&mut self, bench: &Bench, session: &mut Session) -> bool {
        for span in session.spans.clone() {
            session.txn.begin_statement();
            let rows = span.read(bench, &mut *session.txn, false);
            assert_eq!(
                rows.expect("it holds the locks"),
                self.expected(&span),
                "a phantom in {span:?}"
            );
        }
        true
    }

    fn write(&mut self, bench: &Bench, session: &mut Session, random: &mut Random) -> bool {
        let a = random.below(KEYS) as i64;
        let new = (a, None, text(random.below(KEYS) as i64));
        let old = self.rows.get(&a).cloned();
        session.txn.begin_statement();
        let outcome = match (&old, random.below(3)) {
            (None, _) => {
                bench.insert(&mut *session.txn, a, None, &new.2).map(|()| Some(new.clone()))
            }
            (Some(_), 0) => bench.delete(&mut *session.txn, a).map(|()| None),
            (Some(_), _) => {
                bench.update(&mut *session.txn, a, new.clone()).map(|()| Some(new.clone()))
            }
        };
        match outcome {
            Ok(now) => {
                // The write succeeded, so no other transaction may rely on the changed row.
                for other in self.sessions.iter().flatten() {
                    for row in old.iter().chain(&now) {
                        let span = other.spans.iter().find(|span| span.covers(row));
                        assert!(span.is_none(), "{row:?} changed inside another's {span:?}");
                    }
                    assert!(!other.before.contains_key(&a), "two write one row");
                }
                session.before.entry(a).or_insert(old);
                match now {
                    Some(row) => self.rows.insert(a, row),
                    None => self.rows.remove(&a),
                };
                self.writes += 1;
                true
            }
            // The oracle's row is another transaction's uncommitted one, or deleted: there is nothing to change.
            Err(EngineError::LockWaitTimeout) => {
                self.waits += 1;
                true
            }
            Err(EngineError::Deadlock) => false,
            Err(other) => panic!("unexpected {other:?} of {old:?}"),
        }
    }

    fn end(&mut self, mut session: Session, commits: bool) {
        if commits && session.txn.is_started() {
            return commit(session.txn);
        }
        session.txn.rollback().expect("rollback");
        for (key, before) in session.before {
            match before {
                Some(row) => self.rows.insert(key, row),
                None => self.rows.remove(&key),
            };
        }
    }
}
