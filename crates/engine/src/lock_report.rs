//! Locks and transactions in words, for information tables.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{
    DeadlockView, IndexDef, IsolationLevel, LockKind, LockReport, LockView, TransactionView,
};
use locks::{Mode, OwnerView, Place};
use types::key::{KeyReader, is_reversible};
use types::{DataType, Value};

use crate::entry::unique_space;
use crate::shared::Shared;
use crate::table::Table;

const LEVELS: [IsolationLevel; 4] = [
    IsolationLevel::ReadUncommitted,
    IsolationLevel::ReadCommitted,
    IsolationLevel::RepeatableRead,
    IsolationLevel::Serializable,
];

/// For `locks::Tag`.
pub(crate) fn level_number(level: IsolationLevel) -> u8 {
    match level {
        IsolationLevel::ReadUncommitted => 0,
        IsolationLevel::ReadCommitted => 1,
        IsolationLevel::RepeatableRead => 2,
        IsolationLevel::Serializable => 3,
    }
}

/// An index by the space of its locks.
struct Known {
    table: Arc<Table>,
    /// `None`: the clustered one.
    secondary: Option<usize>,
}

/// Names of the spaces of open tables; locked rows are in such.
struct Names(HashMap<u64, Known>);

impl Names {
    fn new(shared: &Shared) -> Names {
        let mut names = HashMap::new();
        for table in shared.dictionary.all_open() {
            for (at, index) in table.indexes.iter().enumerate() {
                for space in [index.tree.id, unique_space(index.tree)] {
                    names.insert(space, Known { table: table.clone(), secondary: Some(at) });
                }
            }
            names.insert(table.clustered.id, Known { table: table.clone(), secondary: None });
        }
        Names(names)
    }

    fn table(&self, space: u64) -> String {
        self.0.get(&space).map_or_else(String::new, |known| known.table.def.name.clone())
    }

    fn index(&self, space: u64) -> Option<String> {
        let known = self.0.get(&space)?;
        match known.secondary {
            Some(at) => Some(known.table.indexes[at].def.name.clone()),
            None => known.table.def.primary().map(|index| index.name.clone()),
        }
    }

    /// A key as text: the index's columns, then the primary key's.
    fn words(&self, space: u64, key: &[u8]) -> String {
        let Some(known) = self.0.get(&space) else { return hex(key) };
        let primary = known.table.def.primary();
        let own = match known.secondary {
            Some(at) => Some(&known.table.indexes[at].def),
            None => primary,
        };
        let Some(own) = own else { return hex(key) };
        let behind = known.secondary.and(primary);
        let mut reader = KeyReader::new(key);
        let mut words = Vec::new();
        for index in std::iter::once(own).chain(behind) {
            if !read_parts(&known.table, index, &mut reader, &mut words) {
                break;
            }
        }
        match words.is_empty() {
            true => hex(key),
            false => words.join(", "),
        }
    }
}

/// Reads the values of an index's parts; false where one cannot be read back from a key, or the key ends.
fn read_parts(
    table: &Table,
    index: &IndexDef,
    reader: &mut KeyReader<'_>,
    words: &mut Vec<String>,
) -> bool {
    index.parts.iter().all(|part| {
        let ty = part.elements.as_ref().unwrap_or(&table.def.columns[part.column].ty);
        let value = match part.prefix_length.is_none() && is_reversible(ty) {
            true => reader.read(ty, part.descending),
            false => None,
        };
        words.extend(value.as_ref().map(|value| in_words(value, ty)));
        value.is_some()
    })
}

fn in_words(value: &Value, ty: &DataType) -> String {
    if value.is_null() {
        return "NULL".into();
    }
    let mut text = Vec::new();
    types::text::to_text(value, ty, &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    match ty.is_text() {
        true => format!("'{text}'"),
        false => text,
    }
}

/// The beginning of a key that cannot be read back.
fn hex(key: &[u8]) -> String {
    const BYTES_MAX: usize = 64;
    let digits = key.iter().take(BYTES_MAX).map(|byte| format!("{byte:02x}"));
    format!("0x{}", digits.collect::<String>())
}

fn split(name: &[u8]) -> (u64, &[u8]) {
    let (space, key) = name.split_first_chunk::<8>().unwrap_or((&[0; 8], name));
    (u64::from_le_bytes(*space), key)
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

fn transaction_view(owner: &OwnerView) -> TransactionView {
    TransactionView {
        id: owner.id,
        session: owner.tag.session,
        started_micros: micros(owner.started),
        waits_since_micros: owner.waits_since.map(micros),
        isolation: LEVELS[usize::from(owner.tag.kind) % LEVELS.len()],
        lock_count: (owner.records + owner.spaces) as u64,
        rows_locked: owner.records as u64,
        rows_changed: owner.weight,
    }
}

impl Names {
    fn lock(&self, owner: u64, session: u64, place: &Place) -> LockView {
        let (space, kind, key) = match place {
            Place::Record(name) => {
                let (space, key) = split(name);
                (space, LockKind::Record, Some(key))
            }
            Place::Insert(name) => {
                let (space, key) = split(name);
                (space, LockKind::Insert, Some(key))
            }
            Place::Span { space, end, .. } => (*space, LockKind::Range, end.as_deref()),
            Place::Packed { space, .. } => (*space, LockKind::Record, None),
        };
        let data = match place {
            Place::Packed { count, .. } => Some(format!("{count} records or ranges")),
            _ => key.map(|key| self.words(space, key)),
        };
        let start = match place {
            Place::Span { start, .. } => start.as_slice(),
            _ => key.unwrap_or_default(),
        };
        let letter = match (place, kind) {
            (Place::Packed { .. }, _) => 'P',
            (_, LockKind::Record) => 'R',
            (_, LockKind::Range) => 'G',
            (_, LockKind::Insert) => 'I',
        };
        LockView {
            id: format!("{owner}:{space}:{letter}:{:016x}", stdx::hash_bytes(0, start)),
            transaction: owner,
            session,
            table: self.table(space),
            index: self.index(space),
            kind,
            is_shared: false,
            is_waiting: false,
            data,
        }
    }
}

/// Bits of an isolation level in the tag of a snapshot's slot.
const LEVEL_BITS: u32 = 2;
/// Numbers of transactions that have a snapshot and no owner of locks: above all those.
const FIRST_READER: u64 = 1 << 48;

/// The tag of the snapshots of a session at a level.
pub(crate) fn snapshot_tag(session: u64, level: IsolationLevel) -> u64 {
    session << LEVEL_BITS | u64::from(level_number(level))
}

/// Transactions that hold purge back and have neither changed nor locked anything.
fn readers(shared: &Shared, known: &[TransactionView]) -> Vec<TransactionView> {
    let mut found = Vec::new();
    shared.system.slots.note(sys::clock::wall().as_micros() as u64, |snapshot| {
        let session = snapshot.tag >> LEVEL_BITS;
        if session == 0 || known.iter().any(|one| one.session == session) {
            return;
        }
        found.push(TransactionView {
            id: FIRST_READER + snapshot.slot as u64,
            session,
            started_micros: snapshot.since_micros,
            waits_since_micros: None,
            isolation: LEVELS[snapshot.tag as usize % LEVELS.len()],
            lock_count: 0,
            rows_locked: 0,
            rows_changed: 0,
        });
    });
    found
}

/// The result of `Engine::locks`.
pub(crate) fn lock_report(shared: &Shared, limit: usize) -> LockReport {
    let system = &shared.system;
    let report = system.locks.report(limit, system.active_owners(limit).into_iter());
    let names = Names::new(shared);
    let sessions: HashMap<u64, u64> =
        report.owners.iter().map(|owner| (owner.id, owner.tag.session)).collect();
    let locks = report.locks.iter().map(|lock| {
        let session = sessions.get(&lock.owner).copied().unwrap_or_default();
        let view = names.lock(lock.owner, session, &lock.place);
        let id = format!("{}{}", view.id, if lock.is_waiting { ":W" } else { "" });
        let is_shared = lock.mode == Mode::Shared;
        LockView { id, is_shared, is_waiting: lock.is_waiting, ..view }
    });
    let mut transactions: Vec<_> = report.owners.iter().map(transaction_view).collect();
    transactions.extend(readers(shared, &transactions));
    LockReport { transactions, locks: locks.collect(), waits: report.waits }
}

/// The result of `Engine::latest_deadlock`.
pub(crate) fn latest_deadlock(shared: &Shared) -> Option<DeadlockView> {
    let deadlock = shared.system.locks.latest_deadlock()?;
    let names = Names::new(shared);
    let members = deadlock.members.iter().map(|(owner, place)| {
        let lock = names.lock(owner.id, owner.tag.session, place);
        (transaction_view(owner), LockView { is_waiting: true, ..lock })
    });
    Some(DeadlockView {
        at_micros: micros(deadlock.at),
        members: members.collect(),
        victim: deadlock.victim,
    })
}
