//! The work of the crash loop on an engine, and the model of it: rows with out-of-line values and secondary indexes, savepoints, DDL,
//! transactions that hang, checkpoints and purge in between.

use engine::DurableEngine;
use engine_api::{Engine, EngineError, EngineResult, IndexId, TableDef, TableId, Transaction};
use sys::entropy::SplitMix;

use crate::support::texts::{self, Rows, record};
use crate::support::{begin, index, key};

/// The table that is always there.
const MAIN: TableId = TableId(2000);
const UNIQUE: IndexId = IndexId(1);
const PREFIX: IndexId = IndexId(2);
/// Built and dropped by the workload.
const EXTRA: IndexId = IndexId(3);
/// Rows of hanging transactions have keys from here on, a hundred for each.
const HANGING: i64 = 10_000;

/// The committed state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    rows: Rows,
    /// Whether MAIN has the extra index.
    has_extra: bool,
    /// A second table, which comes, goes and is truncated.
    other: Option<(TableId, Rows)>,
}

/// Committed states in order, how many of them are acknowledged, and the names used up.
pub struct History {
    pub states: Vec<State>,
    /// The position after each of them except the first.
    pub positions: Vec<u64>,
    pub acknowledged: usize,
    pub next_table: u64,
    /// Keys that changes choose from.
    pub keys: u64,
}

/// Tables of odd numbers have no unique secondary index: rows can be stored together there.
fn table(id: TableId, name: &str) -> TableDef {
    texts::table(id, name, id.0.is_multiple_of(2))
}

fn read_all(engine: &DurableEngine, table: TableId, index: IndexId) -> EngineResult<Rows> {
    texts::rows(&mut *begin(engine), table, index)
}

/// Makes MAIN.
pub fn set_up(engine: &DurableEngine) {
    let mut txn = begin(engine);
    txn.create_table(&table(MAIN, "test.main")).unwrap();
    txn.commit().unwrap().wait().unwrap();
}

impl History {
    /// A start with nothing committed; changes choose from `keys` keys.
    pub fn new(keys: u64) -> History {
        let states = vec![State::default()];
        History { states, positions: Vec::new(), acknowledged: 0, next_table: 2001, keys }
    }

    /// Commits the changes that lead to `state`; with `waits`, until they are acknowledged.
    fn commit(
        &mut self,
        engine: &DurableEngine,
        mut txn: Box<dyn Transaction>,
        state: State,
        waits: bool,
    ) -> EngineResult<()> {
        // Decided, and from here on possible after a crash.
        self.states.push(state);
        let has_written = txn.has_written();
        let handle = txn.commit()?;
        self.positions.push(engine.position());
        // A commit without changes waits for nobody, so it proves nothing of those before it.
        if waits && has_written {
            handle.wait()?;
            self.acknowledged = self.states.len() - 1;
        }
        Ok(())
    }
}

/// Everything the engine has, read through every index, all invariants checked.
pub fn read_state(engine: &DurableEngine, history: &History) -> State {
    let mut state =
        State { rows: read_all(engine, MAIN, IndexId::CLUSTERED).unwrap(), ..State::default() };
    state.has_extra = read_all(engine, MAIN, EXTRA).is_ok();
    let extra = state.has_extra.then_some(EXTRA);
    for index in [UNIQUE, PREFIX].into_iter().chain(extra) {
        assert_eq!(read_all(engine, MAIN, index).unwrap(), state.rows, "index {index:?}");
    }
    assert_eq!(engine.check_table(MAIN).unwrap(), Vec::<String>::new());
    for id in (MAIN.0 + 1..history.next_table).map(TableId) {
        if !engine.has_table(id) {
            continue;
        }
        assert!(state.other.is_none(), "half of a DROP and CREATE");
        let rows = read_all(engine, id, IndexId::CLUSTERED).unwrap();
        for index in [UNIQUE, PREFIX] {
            assert_eq!(read_all(engine, id, index).unwrap(), rows, "index {index:?} of {id:?}");
        }
        assert_eq!(engine.check_table(id).unwrap(), Vec::<String>::new());
        state.other = Some((id, rows));
    }
    state
}

/// One change of a row; errors of the contract that change nothing are fine.
fn change(
    txn: &mut dyn Transaction,
    table: TableId,
    rows: &mut Rows,
    keys: std::ops::Range<i64>,
    random: &mut SplitMix,
) -> EngineResult<()> {
    let span = (keys.end - keys.start) as u64;
    let mut pick = || keys.start + random.below(span) as i64;
    let (a, target) = (pick(), pick());
    let b = (random.below(3) > 0).then(|| keys.start + random.below(span * 3 / 2) as i64);
    let length = match random.below(12) {
        0 => random.below(6000),
        _ => random.below(60),
    };
    let c = vec![b'a' + random.below(5) as u8; length as usize];
    let outcome = match random.below(4) {
        0 => txn.delete(table, &key(a)).map(|()| drop(rows.remove(&a))),
        1 => txn.insert(table, &record(a, b, &c)).map(|()| drop(rows.insert(a, (b, c)))),
        2 => txn.update(table, &key(a), &record(a, b, &c)).map(|()| drop(rows.insert(a, (b, c)))),
        _ => txn.update(table, &key(a), &record(target, b, &c)).map(|()| {
            rows.remove(&a);
            rows.insert(target, (b, c));
        }),
    };
    match outcome {
        Err(EngineError::DuplicateKey { .. } | EngineError::RowNotFound) => Ok(()),
        other => other,
    }
}

/// A few changes, some of them taken back.
fn changes(
    txn: &mut dyn Transaction,
    state: &mut State,
    history: &History,
    random: &mut SplitMix,
) -> EngineResult<()> {
    let keys = 0..history.keys as i64;
    let mut saved = None;
    if random.below(2) == 0 {
        txn.expect_changes()?;
    }
    for _ in 0..1 + random.below(8) {
        match random.below(12) {
            0 => saved = Some((txn.savepoint(), state.clone())),
            1 => {
                if let Some((savepoint, before)) = saved.take() {
                    txn.rollback_to(savepoint)?;
                    *state = before;
                }
            }
            2 | 3 => {
                if let Some((id, rows)) = &mut state.other {
                    change(txn, *id, rows, keys.clone(), random)?;
                }
            }
            _ => change(txn, MAIN, &mut state.rows, keys.clone(), random)?,
        }
    }
    // Otherwise the commit does it.
    if random.below(2) == 0 {
        txn.changes_are_over()?;
    }
    Ok(())
}

/// Rows for a new table, announced with `expect_rows`. Most come in the order of their keys.
fn fill(txn: &mut dyn Transaction, table: TableId, random: &mut SplitMix) -> EngineResult<Rows> {
    let mut rows = Rows::new();
    if random.below(2) == 0 {
        return Ok(rows);
    }
    txn.expect_rows(table)?;
    let strays = if random.below(3) == 0 { 400 } else { u64::MAX };
    for at in 0..200 + random.below(400) as i64 {
        let a = if random.below(strays) == 0 { -at } else { at };
        let length = if random.below(100) == 0 { 3000 } else { random.below(40) };
        let c = vec![b'a' + random.below(5) as u8; length as usize];
        // No two the same, whatever is unique.
        match txn.insert(table, &record(a, Some(at), &c)) {
            Ok(()) => drop(rows.insert(a, (Some(at), c))),
            Err(EngineError::DuplicateKey { .. }) => {}
            Err(other) => return Err(other),
        }
        // As ON DUPLICATE KEY UPDATE does.
        if random.below(300) == 0 {
            let c = vec![b'f'; random.below(60) as usize];
            txn.update(table, &key(a), &record(a, Some(at), &c))?;
            rows.insert(a, (Some(at), c));
        }
    }
    txn.rows_are_over()?;
    Ok(rows)
}

/// One definition: a table made, dropped, truncated, renamed; an index built or dropped. At the transaction's end, as sessions do it.
fn define(
    txn: &mut dyn Transaction,
    state: &mut State,
    history: &mut History,
    random: &mut SplitMix,
) -> EngineResult<()> {
    let mut fresh = || {
        history.next_table += 1;
        TableId(history.next_table - 1)
    };
    match (random.below(4), state.other.take()) {
        (0, None) => {
            let id = fresh();
            txn.create_table(&table(id, "test.other"))?;
            state.other = Some((id, fill(txn, id, random)?));
        }
        (0, Some((id, _))) => txn.drop_table(id)?,
        (1, Some((id, _))) => {
            txn.drop_table(id)?;
            let id = fresh();
            txn.create_table(&table(id, "test.other"))?;
            state.other = Some((id, fill(txn, id, random)?));
        }
        (2, other) => {
            state.other = other;
            let mut def = table(MAIN, &format!("test.main{}", random.below(100)));
            def.indexes.extend(state.has_extra.then(|| index(EXTRA, 1, false, None)));
            txn.alter_table(&def)?;
        }
        (_, other) => {
            state.other = other;
            match state.has_extra {
                true => txn.drop_index(MAIN, EXTRA)?,
                false => txn.create_index(MAIN, &index(EXTRA, 1, false, None))?,
            }
            state.has_extra = !state.has_extra;
        }
    }
    Ok(())
}

/// Transactions that never end, on rows of their own.
#[derive(Default)]
pub struct Hanging(Vec<Box<dyn Transaction>>);

impl Hanging {
    fn go_on(&mut self, engine: &DurableEngine, random: &mut SplitMix) -> EngineResult<()> {
        const MAX: usize = 3;
        let at = random.below(MAX as u64) as usize;
        while self.0.len() <= at {
            let mut txn = begin(engine);
            txn.expect_changes()?;
            self.0.push(txn);
        }
        let start = HANGING + at as i64 * 100;
        // Their changes must be gone after the crash, so the model ignores them.
        (0..random.below(5)).try_for_each(|_| {
            change(&mut *self.0[at], MAIN, &mut Rows::new(), start..start + 30, random)
        })
    }
}

/// A transaction that commits or rolls back, concurrently with other work.
fn beside(
    engine: &DurableEngine,
    random: &mut SplitMix,
    history: &mut History,
) -> EngineResult<()> {
    let mut txn = begin(engine);
    let mut state = history.states.last().cloned().unwrap_or_default();
    let keys = 0..history.keys as i64;
    for _ in 0..1 + random.below(6) {
        change(&mut *txn, MAIN, &mut state.rows, keys.clone(), random)?;
    }
    if random.below(3) == 0 {
        return txn.rollback();
    }
    history.commit(engine, txn, state, true)?;
    Ok(())
}

/// An index built while others write, as sessions do it: they are kept away only when it begins and ends.
fn build_among_writers(
    engine: &DurableEngine,
    random: &mut SplitMix,
    history: &mut History,
) -> EngineResult<()> {
    let mut txn = begin(engine);
    assert!(txn.begin_indexes(MAIN, &[index(EXTRA, 1, false, None)])?);
    // One writer begins before the rows are read and continues afterwards.
    let mut writer = begin(engine);
    let before = history.states.last().cloned().unwrap_or_default();
    let mut written = before.clone();
    let keys = history.keys as i64..2 * history.keys as i64;
    for _ in 0..random.below(4) {
        change(&mut *writer, MAIN, &mut written.rows, keys.clone(), random)?;
    }
    txn.fill_indexes(MAIN)?;
    for _ in 0..random.below(4) {
        change(&mut *writer, MAIN, &mut written.rows, keys.clone(), random)?;
    }
    if random.below(2) == 0 {
        writer.rollback()?;
    } else {
        history.commit(engine, writer, written, true)?;
    }
    for _ in 0..random.below(4) {
        beside(engine, random, history)?;
    }
    if random.below(4) == 0 {
        return txn.rollback();
    }
    txn.finish_indexes(MAIN)?;
    let mut state = history.states.last().cloned().unwrap_or_default();
    state.has_extra = true;
    history.commit(engine, txn, state, true)?;
    Ok(())
}

/// Random transactions until the disk crashes, or for a while.
pub fn work(
    engine: &DurableEngine,
    random: &mut SplitMix,
    history: &mut History,
    hanging: &mut Hanging,
) -> EngineResult<()> {
    for _ in 0..random.below(60) {
        let mut txn = begin(engine);
        let mut state = history.states.last().cloned().unwrap_or_default();
        match changes(&mut *txn, &mut state, history, random) {
            // A row of a loser that is not undone yet.
            Err(EngineError::LockWaitTimeout) => {
                txn.rollback()?;
                engine.tick()?;
                continue;
            }
            outcome => outcome?,
        }
        if random.below(8) == 0 && hanging.0.is_empty() {
            define(&mut *txn, &mut state, history, random)?;
        }
        if random.below(20) == 0 {
            engine.checkpoint()?;
        }
        let has_extra = history.states.last().is_some_and(|state| state.has_extra);
        if random.below(20) == 0 && hanging.0.is_empty() && !has_extra {
            txn.rollback()?;
            match build_among_writers(engine, random, history) {
                Err(EngineError::LockWaitTimeout) => engine.tick()?,
                outcome => outcome?,
            }
            continue;
        }
        if random.below(6) == 0 {
            txn.rollback()?;
        } else {
            let waits = random.below(3) > 0;
            history.commit(engine, txn, state, waits)?;
        }
        match random.below(8) {
            0 => engine.tick()?,
            1 => engine.checkpoint()?,
            2 => hanging.go_on(engine, random)?,
            _ => {}
        }
    }
    Ok(())
}
