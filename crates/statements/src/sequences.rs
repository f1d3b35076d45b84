//! Sequences: the values that are reserved for a server, and how more are reserved.
//!
//! A sequence is a table of one row, which says how the values go on (`SequenceRow`). A server takes as many values at once as the sequence
//! caches: a transaction of its own moves the row behind them, and is durable before the first of them is given out. So a value is given
//! once, whatever ends: the transaction that got it, or the server. What is reserved is in memory and costs a lock of that sequence alone.
//! No lock is held while the row is written: whoever needs more values takes a turn, and the others wait for its end.

use std::sync::Arc;
use std::time::Duration;

use catalog::Table;
use engine_api::{
    CancelToken, Direction, Engine, IndexId, IsolationLevel, KeyRange, RowBatch, RowLock, ScanSpec,
    TableId, Transaction, TxnOptions, WaitPolicy,
};
use errors::{Error, Result, SequenceError, bail};
use hashbrown::HashMap;
use plugin_api::{SequenceCall, SequenceName, kit};
use syntax::ast::SequenceOption;
use sys::sync::{Condvar, Mutex};
use types::Value;
use types::record::RecordLayout;

/// The largest and the smallest value that a sequence may have.
pub const VALUES: (i64, i64) = (-i64::MAX, i64::MAX - 1);
/// Values that are reserved at once unless CACHE says otherwise.
const CACHE: i64 = 1000;
/// How often one who waits for another's turn looks whether his statement was cancelled.
const WAIT_STEP: Duration = Duration::from_millis(100);
/// Sequences that a session remembers.
const REMEMBERED_MAX: usize = 1000;
/// Sequences that the server remembers before it looks for dropped ones.
const KNOWN_MIN: usize = 64;

/// The row of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceRow {
    /// The first value that is not reserved; outside of the bounds when there is none.
    pub next: i64,
    /// MINVALUE.
    pub minimum: i64,
    /// MAXVALUE.
    pub maximum: i64,
    /// START.
    pub start: i64,
    /// INCREMENT.
    pub increment: i64,
    /// CACHE.
    pub cache: u64,
    /// CYCLE.
    pub cycles: bool,
    /// How often it has begun anew.
    pub round: i64,
}

/// Options as CREATE and ALTER SEQUENCE give them; `None`: not given, `Some(None)`: the NO form.
#[derive(Clone, Copy, Debug, Default)]
pub struct SequenceChanges {
    /// START.
    pub start: Option<i128>,
    /// INCREMENT.
    pub increment: Option<i128>,
    /// MINVALUE.
    pub minimum: Option<Option<i128>>,
    /// MAXVALUE.
    pub maximum: Option<Option<i128>>,
    /// CACHE.
    pub cache: Option<Option<i128>>,
    /// CYCLE.
    pub cycles: Option<bool>,
    /// RESTART, and with which value.
    pub restart: Option<Option<i128>>,
}

impl SequenceChanges {
    /// The options of a statement.
    ///
    /// # Errors
    /// 1225 for one that is given twice.
    pub fn of(options: &[SequenceOption]) -> Result<SequenceChanges> {
        let mut changes = SequenceChanges::default();
        for option in options {
            let twice = match option {
                SequenceOption::As(_) => return Err(Error::not_supported("AS type of a sequence")),
                SequenceOption::Start(value) => changes.start.replace(*value).map(|_| "START"),
                SequenceOption::Increment(value) => {
                    changes.increment.replace(*value).map(|_| "INCREMENT")
                }
                SequenceOption::Cache(value) => changes.cache.replace(*value).map(|_| "CACHE"),
                SequenceOption::Cycle(cycles) => changes.cycles.replace(*cycles).map(|_| "CYCLE"),
                // The last one counts.
                SequenceOption::MinValue(value) => {
                    changes.minimum = Some(*value);
                    None
                }
                SequenceOption::MaxValue(value) => {
                    changes.maximum = Some(*value);
                    None
                }
                SequenceOption::Restart(value) => {
                    changes.restart = Some(*value);
                    None
                }
            };
            if let Some(twice) = twice {
                bail!(DUP_ARGUMENT, twice);
            }
        }
        Ok(changes)
    }
}

impl SequenceRow {
    /// The row of a new sequence. `name` is for errors.
    ///
    /// # Errors
    /// 4085.
    pub fn new(changes: &SequenceChanges, name: &str) -> Result<SequenceRow> {
        let rises = changes.increment.is_none_or(|step| step > 0);
        let (low, high) = if rises { (1, VALUES.1) } else { (VALUES.0, -1) };
        let minimum = changes.minimum.flatten().unwrap_or(i128::from(low));
        let maximum = changes.maximum.flatten().unwrap_or(i128::from(high));
        let first = if rises { minimum } else { maximum };
        let start = changes.start.unwrap_or(first);
        let cache = changes.cache.map_or(i128::from(CACHE), |cache| cache.unwrap_or(0));
        let increment = changes.increment.unwrap_or(1);
        let row = Self::checked([start, minimum, maximum, increment, cache], name)?;
        Ok(SequenceRow { cycles: changes.cycles.unwrap_or(false), ..row })
    }

    /// The row after ALTER SEQUENCE.
    ///
    /// # Errors
    /// 4085.
    pub fn altered(&self, changes: &SequenceChanges, name: &str) -> Result<SequenceRow> {
        let increment = changes.increment.unwrap_or(i128::from(self.increment));
        let (low, high) = if increment > 0 { (1, VALUES.1) } else { (VALUES.0, -1) };
        let kept = |given: Option<Option<i128>>, usual: i64, present: i64| match given {
            Some(given) => given.unwrap_or(i128::from(usual)),
            None => i128::from(present),
        };
        let cache = changes.cache.map_or(i128::from(self.cache), |cache| cache.unwrap_or(0));
        let options = [
            changes.start.unwrap_or(i128::from(self.start)),
            kept(changes.minimum, low, self.minimum),
            kept(changes.maximum, high, self.maximum),
            increment,
            cache,
        ];
        let row = Self::checked(options, name)?;
        let cycles = changes.cycles.unwrap_or(self.cycles);
        let Some(restart) = changes.restart else {
            return Ok(SequenceRow { cycles, next: self.next, round: self.round, ..row });
        };
        let next = i64::try_from(restart.unwrap_or(i128::from(row.start)));
        let next = next.map_err(|_| SequenceError::BadOptions.about(name))?;
        Ok(SequenceRow { cycles, next, ..row })
    }

    /// Options that agree: start, minimum, maximum, increment and cache.
    fn checked(
        [start, minimum, maximum, increment, cache]: [i128; 5],
        name: &str,
    ) -> Result<SequenceRow> {
        if increment == 0 {
            return Err(Error::not_supported("INCREMENT BY 0"));
        }
        let bounds = i128::from(VALUES.0)..=i128::from(VALUES.1);
        let agree = bounds.contains(&minimum)
            && bounds.contains(&maximum)
            && minimum < maximum
            && (minimum..=maximum).contains(&start)
            && cache >= 0
            // What is reserved, and a step to either side of it, is a number.
            && cache.checked_add(2).and_then(|count| count.checked_mul(increment.checked_abs()?))
                .is_some_and(|span| span <= i128::from(i64::MAX));
        if !agree {
            return Err(SequenceError::BadOptions.about(name));
        }
        // They were compared with the bounds.
        let row = SequenceRow {
            next: start as i64,
            minimum: minimum as i64,
            maximum: maximum as i64,
            start: start as i64,
            increment: increment as i64,
            cache: cache as u64,
            cycles: false,
            round: 0,
        };
        Ok(row)
    }

    /// The cells in the order of the table's columns.
    pub fn values(&self) -> [Value; 8] {
        [
            Value::Int(self.next),
            Value::Int(self.minimum),
            Value::Int(self.maximum),
            Value::Int(self.start),
            Value::Int(self.increment),
            Value::UInt(self.cache),
            Value::UInt(u64::from(self.cycles)),
            Value::Int(self.round),
        ]
    }

    /// The row with these cells.
    ///
    /// # Errors
    /// 4085 for what no sequence can be: an INSERT writes any row. 1815 for other cells.
    pub fn of(values: &[Value], name: &str) -> Result<SequenceRow> {
        let number = |at: usize| {
            let value = values.get(at).filter(|value| kit::is_number(value));
            value.map(kit::integer).ok_or_else(|| Error::internal("the row of a sequence"))
        };
        let options = [number(3)?, number(1)?, number(2)?, number(4)?, number(5)?];
        let row = Self::checked(options, name)?;
        let (next, round) = (number(0)? as i64, number(7)? as i64);
        Ok(SequenceRow { next, round, cycles: number(6)? != 0, ..row })
    }

    /// Whether no value is left in this round.
    fn is_over(&self) -> bool {
        if self.increment > 0 { self.next > self.maximum } else { self.next < self.minimum }
    }

    /// The value or, when it is past the last one, the number behind that.
    fn bounded(&self, value: i128) -> i64 {
        let (low, high) = (i128::from(self.minimum) - 1, i128::from(self.maximum) + 1);
        let value = if self.increment > 0 { value.min(high) } else { value.max(low) };
        value.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }

    /// The row after as many values as it caches, and these.
    fn reserved(mut self, name: &SequenceName<'_>) -> Result<(SequenceRow, Reserved)> {
        if self.is_over() {
            if !self.cycles {
                return Err(SequenceError::RunOut.about(full(name)));
            }
            self.next = if self.increment > 0 { self.minimum } else { self.maximum };
            self.round += 1;
        }
        let first = self.next;
        let span = i128::from(self.cache.max(1)) * i128::from(self.increment);
        self.next = self.bounded(i128::from(first) + span);
        Ok((self, Reserved { next: i128::from(first), row: self }))
    }
}

/// Values that are given out without the row: from `next` on before the row's.
#[derive(Clone, Copy, Debug)]
struct Reserved {
    next: i128,
    row: SequenceRow,
}

impl Reserved {
    #[inline]
    fn draw(&mut self) -> Option<i64> {
        let (next, end) = (self.next, i128::from(self.row.next));
        let step = i128::from(self.row.increment);
        let is_left = if step > 0 { next < end } else { next > end };
        if !is_left {
            return None;
        }
        self.next = if step > 0 { (next + step).min(end) } else { (next + step).max(end) };
        Some(next as i64)
    }

    /// Whether `round` and `next` are behind what was given out.
    fn is_past(&self, round: i64, next: i64) -> bool {
        let next = i128::from(next);
        let is_before = if self.row.increment > 0 { next < self.next } else { next > self.next };
        round < self.row.round || round == self.row.round && is_before
    }

    /// Whether `round` and `next` are among what is reserved, or right behind it.
    fn holds(&self, round: i64, next: i64) -> bool {
        let end = self.row.next;
        let is_within = if self.row.increment > 0 { next <= end } else { next >= end };
        round == self.row.round && is_within
    }
}

fn full(name: &SequenceName<'_>) -> String {
    format!("{}.{}", name.schema, name.name)
}

/// A sequence that the server has used.
pub struct Sequence {
    table: Arc<Table>,
    engine: Arc<dyn Engine>,
    layout: RecordLayout,
    state: Mutex<State>,
    turn_ended: Condvar,
}

#[derive(Default)]
struct State {
    reserved: Option<Reserved>,
    /// Somebody reads or writes the row.
    has_turn: bool,
}

/// What a change of a sequence's row needs of the session.
pub struct SequenceWriter<'a> {
    /// Ends waits.
    pub cancel: &'a CancelToken,
    /// What goes to the binary log with a row, if anything.
    pub record: &'a mut dyn FnMut(&Table, &[Value]) -> Result<Option<Vec<u8>>>,
}

/// A turn at the row; ends when it is dropped.
struct Turn<'a>(&'a Sequence);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().has_turn = false;
        self.0.turn_ended.notify_all();
    }
}

impl Sequence {
    fn new(table: Arc<Table>, engine: Arc<dyn Engine>) -> Sequence {
        let layout = table.definition.layout();
        Sequence {
            table,
            engine,
            layout,
            state: Mutex::new(State::default()),
            turn_ended: Condvar::new(),
        }
    }

    /// The next value.
    fn next(&self, name: &SequenceName<'_>, writer: &mut SequenceWriter<'_>) -> Result<i64> {
        if let Some(value) = self.draw() {
            return Ok(value);
        }
        sys::blocking::blocking(|| {
            let _turn = self.turn(writer.cancel)?;
            if let Some(value) = self.draw() {
                return Ok(value);
            }
            let mut reserved = self.change(name, writer, |row| row.reserved(name).map(Some))?;
            let reserved = reserved.as_mut().ok_or_else(|| Error::internal("no values"))?;
            let value = reserved.draw().ok_or_else(|| Error::internal("no value is reserved"))?;
            self.state.lock().reserved = Some(*reserved);
            Ok(value)
        })
    }

    #[inline]
    fn draw(&self) -> Option<i64> {
        self.state.lock().reserved.as_mut()?.draw()
    }

    /// SETVAL: whether it was moved.
    fn set(
        &self,
        name: &SequenceName<'_>,
        (value, is_used, round): (i64, bool, i64),
        writer: &mut SequenceWriter<'_>,
    ) -> Result<bool> {
        let target = |row: &SequenceRow| {
            if round != 0 && !row.cycles {
                return Err(SequenceError::RunOut.about(full(name)));
            }
            let step = if is_used { i128::from(row.increment) } else { 0 };
            Ok(row.bounded(i128::from(value) + step))
        };
        sys::blocking::blocking(|| {
            let _turn = self.turn(writer.cancel)?;
            let known = {
                let mut state = self.state.lock();
                if let Some(reserved) = &mut state.reserved {
                    let next = target(&reserved.row)?;
                    if reserved.is_past(round, next) {
                        return Ok(false);
                    }
                    if reserved.holds(round, next) {
                        reserved.next = i128::from(next);
                        return Ok(true);
                    }
                }
                state.reserved
            };
            let moved = self.change(name, writer, |row| {
                let known = known.unwrap_or(Reserved { next: i128::from(row.next), row });
                let next = target(&row)?;
                let row = SequenceRow { next, round, ..row };
                let is_past = known.is_past(round, next);
                Ok((!is_past).then_some((row, Reserved { next: i128::from(next), row })))
            })?;
            if moved.is_some() {
                self.state.lock().reserved = moved;
            }
            Ok(moved.is_some())
        })
    }

    /// Waits until nobody else is at the row.
    fn turn(&self, cancel: &CancelToken) -> Result<Turn<'_>> {
        let mut state = self.state.lock();
        while state.has_turn {
            state = self.turn_ended.wait_for(state, WAIT_STEP);
            cancel.check()?;
        }
        state.has_turn = true;
        Ok(Turn(self))
    }

    /// Changes the row in a transaction of its own, which is durable at the end; `None` leaves it. The caller has the turn.
    fn change(
        &self,
        name: &SequenceName<'_>,
        writer: &mut SequenceWriter<'_>,
        change: impl FnOnce(SequenceRow) -> Result<Option<(SequenceRow, Reserved)>>,
    ) -> Result<Option<Reserved>> {
        let cancel = writer.cancel;
        let mut txn = self.engine.new_transaction();
        let options = TxnOptions {
            isolation: IsolationLevel::ReadCommitted,
            read_only: false,
            may_be_prepared: false,
            lock_wait_timeout: Duration::from_secs(50),
            cancel: cancel.clone(),
        };
        txn.start(&options).map_err(|error| error.into_error(cancel))?;
        let changed = change_row(txn.as_mut(), &self.table, &self.layout, cancel, |values| {
            let row = SequenceRow::of(values, &full(name))?;
            Ok(change(row)?.map(|(row, reserved)| (row.values(), reserved)))
        });
        let recorded = changed.and_then(|changed| {
            let Some((values, reserved)) = changed else { return Ok(None) };
            if let Some(bytes) = (writer.record)(&self.table, &values)? {
                txn.attach(&bytes).map_err(|error| error.into_error(cancel))?;
            }
            Ok(Some(reserved))
        });
        if !matches!(recorded, Ok(Some(_))) {
            // The first error is the one to report.
            let _ = txn.rollback();
            return recorded;
        }
        let commit = txn.commit().and_then(|commit| commit.wait());
        commit.map_err(|error| error.into_error(cancel))?;
        recorded
    }
}

/// Reads the row of a sequence, locks it and replaces it with what `change` makes of it, if anything. Returns what `change` did.
///
/// # Errors
/// Those of `change` and of the engine; 1815 without a row.
pub fn change_row<T>(
    txn: &mut dyn Transaction,
    table: &Table,
    layout: &RecordLayout,
    cancel: &CancelToken,
    change: impl FnOnce(&[Value]) -> Result<Option<([Value; 8], T)>>,
) -> Result<Option<([Value; 8], T)>> {
    let spec = ScanSpec {
        table: table.id,
        index: IndexId::CLUSTERED,
        range: KeyRange::ALL,
        direction: Direction::Forward,
        lock: RowLock::Exclusive,
        wait: WaitPolicy::Wait,
    };
    let cursor = txn.open_cursor(&spec).map_err(|error| error.into_error(cancel))?;
    let mut rows = RowBatch::new();
    let found = txn.fetch(cursor, 1, &mut rows);
    txn.close_cursor(cursor);
    found.map_err(|error| error.into_error(cancel))?;
    let row = rows.iter().next().ok_or_else(|| Error::internal("a sequence without a row"))?;
    let mut values = Vec::new();
    layout.decode_all(row.record, &mut values).map_err(|_| Error::internal("a sequence's row"))?;
    let Some((values, made)) = change(&values)? else { return Ok(None) };
    let record = encoded(layout, &values)?;
    txn.update(table.id, row.locator, &record).map_err(|error| error.into_error(cancel))?;
    Ok(Some((values, made)))
}

/// The record of a sequence's row.
///
/// # Errors
/// 1815: the table is not that of a sequence.
pub fn encoded(layout: &RecordLayout, values: &[Value; 8]) -> Result<Vec<u8>> {
    let mut record = Vec::new();
    let written = layout.encode(values, &mut record);
    written.map_err(|_| Error::internal("a sequence's row"))?;
    Ok(record)
}

/// The sequences that a server has used.
#[derive(Default)]
pub struct Sequences(Mutex<HashMap<TableId, Arc<Sequence>>>);

impl Sequences {
    /// A sequence, by its table. `exists` says which tables there still are.
    fn open(
        &self,
        table: &Arc<Table>,
        engine: &Arc<dyn Engine>,
        exists: impl Fn(TableId) -> bool,
    ) -> Arc<Sequence> {
        let mut known = self.0.lock();
        if known.len() >= KNOWN_MIN && known.len() == known.capacity() {
            known.retain(|id, _| exists(*id));
        }
        let new = || Arc::new(Sequence::new(table.clone(), engine.clone()));
        known.entry(table.id).or_insert_with(new).clone()
    }

    /// What was reserved does not count any more: the row was written by somebody else.
    pub fn forget(&self, table: TableId) {
        let known = self.0.lock().get(&table).cloned();
        if let Some(known) = known {
            known.state.lock().reserved = None;
        }
    }
}

/// The sequences that a session has used, and the last value that it got from each.
#[derive(Default)]
pub struct UsedSequences(HashMap<TableId, Used>);

struct Used {
    sequence: Arc<Sequence>,
    last: Option<i64>,
}

/// What a session's use of a sequence needs of the server.
pub trait SequenceHost {
    /// All that the server has used.
    fn sequences(&self) -> &Sequences;
    /// The table with this number, and its engine.
    fn sequence_table(&self, table: TableId) -> Option<(Arc<Table>, Arc<dyn Engine>)>;
}

impl UsedSequences {
    /// Whether the session has used none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next value of a sequence that the session has used, while one is reserved.
    #[inline]
    pub fn draw(&mut self, table: TableId) -> Option<i64> {
        let used = self.0.get_mut(&table)?;
        let value = used.sequence.draw()?;
        used.last = Some(value);
        Some(value)
    }

    /// Uses a sequence.
    ///
    /// # Errors
    /// 4084, 4091, I/O.
    pub fn call(
        &mut self,
        name: &SequenceName<'_>,
        call: SequenceCall,
        host: &impl SequenceHost,
        writer: &mut SequenceWriter<'_>,
    ) -> Result<Option<i64>> {
        let id = TableId(name.table);
        if call == SequenceCall::Forget {
            host.sequences().forget(id);
            return Ok(None);
        }
        if call == SequenceCall::Last {
            return Ok(self.0.get(&id).and_then(|used| used.last));
        }
        let used = match self.0.contains_key(&id) {
            true => self.0.get_mut(&id),
            false => Some(self.begin(id, name, host)?),
        };
        let used = used.ok_or_else(|| SequenceError::Unknown.about(name.name))?;
        match call {
            SequenceCall::Next => {
                // After an error there is none.
                used.last = None;
                used.last = Some(used.sequence.next(name, writer)?);
                Ok(used.last)
            }
            SequenceCall::Set { value, is_used, round } => {
                let moved = used.sequence.set(name, (value, is_used, round), writer)?;
                Ok(moved.then_some(value))
            }
            SequenceCall::Last | SequenceCall::Forget => Ok(None),
        }
    }

    /// The first use of a sequence in the session.
    #[cold]
    fn begin(
        &mut self,
        id: TableId,
        name: &SequenceName<'_>,
        host: &impl SequenceHost,
    ) -> Result<&mut Used> {
        let found = host.sequence_table(id);
        let (table, engine) = found.ok_or_else(|| SequenceError::Unknown.about(name.name))?;
        if self.0.len() >= REMEMBERED_MAX {
            // Of dropped ones too: what is forgotten costs a look-up, and LASTVAL is NULL.
            self.0.clear();
        }
        let exists = |id| host.sequence_table(id).is_some();
        let sequence = host.sequences().open(&table, &engine, exists);
        Ok(self.0.entry(id).or_insert(Used { sequence, last: None }))
    }
}
