//! Transactions on lists that all clients append to. Each element is appended once, so that the lists show the order of the transactions; the checker of
//! `histories` looks for a cycle in it at the end of the run.

use histories::{Element, End, Key, Level, Op, Reading, Transaction};

use super::{Reply, Stop, Worker};
use crate::plan::Plan;

/// Lists in use at a time, and all appends after which others are taken.
const LISTS: u64 = 5;
const APPENDS: u32 = 300;
/// Lists of a range read.
const RANGE: u32 = 3;
const STEPS: u64 = 5;
/// `k` is this much above the list's number.
const SECOND_KEY: u32 = 1_000_000;

/// The table of lists.
pub(crate) const TABLE: &str = "CREATE TABLE d.lists (id INT PRIMARY KEY, k INT NOT NULL, g INT NOT NULL, list TEXT NOT NULL, UNIQUE KEY (k), KEY (g))";

/// The level at which a run uses lists: one for all, because the checker knows one.
pub(crate) fn level(plan: &Plan) -> (Level, &'static str) {
    match plan.seed % 3 {
        0 => (Level::ReadCommitted, "READ COMMITTED"),
        1 => (Level::RepeatableRead, "REPEATABLE READ"),
        _ => (Level::Serializable, "SERIALIZABLE"),
    }
}

/// The elements of a list as it is read.
fn elements(cell: Option<&String>) -> Vec<Element> {
    let parts = cell.map_or("", String::as_str).split(',').filter(|part| !part.is_empty());
    // What is no number is an element that nobody appended, which the checker reports.
    parts.map(|part| part.parse().unwrap_or(0)).collect()
}

impl Worker {
    pub(super) fn use_lists(&mut self) -> Result<(), Stop> {
        self.session.set_level(level(&self.session.world.plan).1)?;
        let began = sys::clock::monotonic().as_nanos() as u64;
        let transaction = Transaction { ops: Vec::new(), end: End::Aborted, began, ended: 0 };
        self.session.world.know().open.insert(self.number, (transaction, false));
        let outcome = self.list_transaction();
        // Nothing is left to note when the life is over: whoever ended it has noted it.
        let end = match outcome {
            Ok(end) => end,
            Err(Stop::Over) => return Err(Stop::Over),
            Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => {
                match self.session.world.know().open.get(&self.number) {
                    Some((_, true)) => End::Unknown,
                    _ => End::Aborted,
                }
            }
        };
        let ended = sys::clock::monotonic().as_nanos() as u64;
        let mut known = self.session.world.know();
        if let Some((mut transaction, _)) = known.open.remove(&self.number) {
            (transaction.end, transaction.ended) = (end, ended);
            known.counts.commits += u64::from(end == End::Committed);
            known.counts.unknown += u64::from(end == End::Unknown);
            known.history.push(transaction);
        }
        drop(known);
        outcome.map(drop)
    }

    fn list_transaction(&mut self) -> Result<End, Stop> {
        self.session.must("START TRANSACTION")?;
        for _ in 0..1 + self.session.random.below(STEPS) {
            match self.session.random.below(10) {
                0..5 => self.append(false)?,
                5 => {
                    self.session.must("SAVEPOINT s")?;
                    self.append(true)?;
                    self.session.must("ROLLBACK TO SAVEPOINT s")?;
                }
                6 => self.read_range()?,
                _ => self.read_list()?,
            }
            self.session.think();
        }
        if self.session.one_in(12) {
            self.session.must("ROLLBACK")?;
            return Ok(End::Aborted);
        }
        if let Some((_, is_committing)) = self.session.world.know().open.get_mut(&self.number) {
            *is_committing = true;
        }
        // Whatever the error is, it may have taken place.
        self.session.must("COMMIT").map_err(|stop| match stop {
            Stop::Over => stop,
            Stop::Lost | Stop::RolledBack | Stop::GiveUp => Stop::Lost,
        })?;
        Ok(End::Committed)
    }

    fn note_op(&self, op: Op) {
        if let Some((transaction, _)) = self.session.world.know().open.get_mut(&self.number) {
            transaction.ops.push(op);
        }
    }

    fn pick(&mut self) -> Key {
        let (first, second) = (self.session.random.below(LISTS), self.session.random.below(LISTS));
        // Some are used more often than others.
        let generation = self.session.world.know().next_number / APPENDS;
        generation * LISTS as u32 + first.min(second) as u32
    }

    fn append(&mut self, undone: bool) -> Result<(), Stop> {
        let (key, element) = (self.pick(), self.session.world.number());
        let k = key + SECOND_KEY;
        let upsert = format!(
            "INSERT INTO lists (id, k, g, list) VALUES ({key}, {k}, 0, '{element}') ON DUPLICATE KEY UPDATE list = CONCAT(list, ',{element}')"
        );
        let set = format!("UPDATE lists SET list = CONCAT(list, ',{element}')");
        let sql = match self.session.random.below(4) {
            0 => upsert.clone(),
            1 => format!("{set}, g = g + 1 WHERE k = {k}"),
            2 => format!("{set}, g = g + 1 WHERE id BETWEEN {key} AND {key}"),
            _ => format!("{set} WHERE id = {key}"),
        };
        // An append is noted before it is sent: others may see it before its answer is here.
        let (affected, _) = self.session.must(&sql)?;
        if affected == 0 {
            self.session.must(&upsert)?;
        }
        self.note_op(Op::Append { key, element, undone });
        Ok(())
    }

    fn read_list(&mut self) -> Result<(), Stop> {
        let key = self.pick();
        let condition = match self.session.random.below(3) {
            0 => format!("k = {}", key + SECOND_KEY),
            _ => format!("id = {key}"),
        };
        self.read_lists(&condition, key..key + 1)
    }

    fn read_range(&mut self) -> Result<(), Stop> {
        let key = self.pick();
        let (column, first) = match self.session.random.below(2) {
            0 => ("k", key + SECOND_KEY),
            _ => ("id", key),
        };
        let condition = format!("{column} BETWEEN {first} AND {}", first + RANGE - 1);
        self.read_lists(&condition, key..key + RANGE)
    }

    /// Reads lists, and notes those of `keys` that are not there as empty.
    fn read_lists(&mut self, condition: &str, keys: std::ops::Range<Key>) -> Result<(), Stop> {
        const LOCKS: [&str; 6] = ["", "", "", " FOR UPDATE", " FOR SHARE", " FOR UPDATE NOWAIT"];
        let lock = LOCKS[self.session.random.below(6) as usize];
        let sql = format!("SELECT id, list FROM lists WHERE {condition}{lock}");
        let rows = match self.session.send(&sql)? {
            Reply::Done(_, rows) => rows,
            Reply::Refused(1205 | 3572) => return Ok(()),
            Reply::Refused(code) => {
                let detail = format!("{sql}: error {code}");
                let rule = "a statement has no error that nothing explains";
                return Err(self.session.violate(rule, detail));
            }
        };
        let reading = if lock.is_empty() { Reading::Plain } else { Reading::Locking };
        let mut missing: Vec<Key> = keys.collect();
        for row in &rows {
            let id = row.first().and_then(|cell| cell.as_ref()?.parse::<Key>().ok());
            let key = id.unwrap_or(Key::MAX);
            missing.retain(|other| *other != key);
            let elements = elements(row.get(1).and_then(Option::as_ref));
            self.note_op(Op::Read { key, elements, reading });
        }
        for key in missing {
            self.note_op(Op::Read { key, elements: Vec::new(), reading });
        }
        Ok(())
    }
}
