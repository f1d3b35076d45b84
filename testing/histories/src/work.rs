//! The load: rounds of connections that run random transactions (`session`) on lists that they all use.
//!
//! A list is a row, found by its place, the value of `k`. Most lists keep one place and are named by it in the checker. Lists at the few
//! fleeting places are created and deleted and change their primary key: each new one is another list for the checker, named by its
//! first element, and an empty place is not recorded.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use client::{Answer, Connection, Failure, Options};
use histories::{Element, Key, Transaction};
use sys::entropy::SplitMix;

use crate::session::Session;

/// Lists in use at a time.
const LISTS: usize = 8;
/// Appends after which a list is left for a new one.
const LENGTH_MAX: u32 = 30;
/// Lists of a range read.
pub(crate) const RANGE: u32 = 3;
/// Places whose lists are created and deleted.
pub(crate) const FLEETING: Range<u32> = 500_000..500_004;
/// Set in the checker's names of lists at fleeting places.
const FLEETING_KEY: Key = 1 << 31;
/// `k` is this much above the place.
pub(crate) const SECOND_KEY: u32 = 1_000_000;

/// Lists that all connections use.
pub(crate) struct Lists {
    active: [AtomicU32; LISTS],
    appended: [AtomicU32; LISTS],
    next: AtomicU32,
    next_element: AtomicU32,
}

impl Lists {
    fn new() -> Lists {
        Lists {
            active: std::array::from_fn(|at| AtomicU32::new(at as u32 + 1)),
            appended: Default::default(),
            next: AtomicU32::new(LISTS as u32 + 1),
            next_element: AtomicU32::new(1),
        }
    }

    pub fn pick(&self, random: &mut SplitMix) -> Key {
        // Some are used more often than others.
        let at = random.below(LISTS as u64).min(random.below(LISTS as u64));
        self.active[at as usize].load(Ordering::Relaxed)
    }

    pub fn new_element(&self) -> Element {
        self.next_element.fetch_add(1, Ordering::Relaxed)
    }

    /// Places of permanent lists, so far.
    pub fn places(&self) -> Range<u32> {
        1..self.next.load(Ordering::Relaxed)
    }

    pub fn note_append(&self, key: Key) {
        let slot = |active: &AtomicU32| active.load(Ordering::Relaxed) == key;
        let Some(at) = self.active.iter().position(slot) else { return };
        if self.appended[at].fetch_add(1, Ordering::Relaxed) + 1 == LENGTH_MAX {
            self.appended[at].store(0, Ordering::Relaxed);
            self.active[at].store(self.next.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// The checker's name for the list found at a place.
pub(crate) fn key_of(place: u32, elements: &[Element]) -> Key {
    match FLEETING.contains(&place) {
        true => FLEETING_KEY | elements.first().copied().unwrap_or_default(),
        false => place,
    }
}

/// Rows of `k, list`: places and lists. A snapshot that includes own changes may have two of a place.
#[derive(Default)]
pub(crate) struct Rows(pub Vec<(u32, Vec<Element>)>);

impl Answer for Rows {
    fn row(&mut self, cells: &[Option<&[u8]>]) {
        let text = |at: usize| std::str::from_utf8(cells[at].unwrap_or_default()).unwrap_or("");
        let elements = text(1).split(',').filter(|part| !part.is_empty());
        // A text that is not a number becomes an element that nobody appended, which the checker reports.
        let list = elements.map(|part| part.parse().unwrap_or(0)).collect();
        let place = text(0).parse::<u32>().unwrap_or(0).saturating_sub(SECOND_KEY);
        self.0.push((place, list));
    }
}

/// A note belongs to an appended element, as long as its list exists.
const TABLES: [&str; 5] = [
    "CREATE DATABASE IF NOT EXISTS histories",
    "DROP TABLE IF EXISTS histories.notes",
    "DROP TABLE IF EXISTS histories.lists",
    "CREATE TABLE histories.lists (id INT PRIMARY KEY, k INT NOT NULL, g INT NOT NULL, list TEXT NOT NULL, \
     UNIQUE KEY (k), KEY (g))",
    "CREATE TABLE histories.notes (element INT PRIMARY KEY, list INT NOT NULL, \
     FOREIGN KEY (list) REFERENCES lists (id) ON DELETE CASCADE ON UPDATE CASCADE)",
];

/// One round on empty tables; the levels take turns among the connections.
///
/// # Errors
/// The server returns an unexpected error.
pub(crate) fn round(
    login: &Options,
    levels: &[&str],
    connections: u32,
    time: Duration,
    seed: u64,
) -> Result<Vec<Transaction>, String> {
    let words = |failure: Failure| failure.to_string();
    let mut first = Connection::open(login).map_err(words)?;
    for sql in TABLES {
        first.query(sql.as_bytes(), &mut ()).map_err(words)?;
    }
    let (lists, over, clock) = (Lists::new(), AtomicBool::new(false), Instant::now());
    let outcomes: Vec<Result<Vec<Transaction>, String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|number| {
                let (lists, over) = (&lists, &over);
                let seed = seed.wrapping_mul(1009).wrapping_add(u64::from(number));
                let level = levels[number as usize % levels.len()];
                scope.spawn(move || {
                    let mut session = Session::open(login, level, lists, clock, seed)?;
                    let mut history = Vec::new();
                    while !over.load(Ordering::Relaxed) {
                        match session.transaction() {
                            Ok(transaction) => history.push(transaction),
                            Err(error) => {
                                over.store(true, Ordering::Relaxed);
                                return Err(error);
                            }
                        }
                    }
                    Ok(history)
                })
            })
            .collect();
        let step = Duration::from_millis(20);
        while clock.elapsed() < time && !over.load(Ordering::Relaxed) {
            std::thread::sleep(step);
        }
        over.store(true, Ordering::Relaxed);
        let panicked = |_| Err("a connection's thread ended badly".to_owned());
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
    });
    let mut history = Vec::new();
    for outcome in outcomes {
        history.extend(outcome?);
    }
    // The final state: lost appends are missing here.
    let mut last = Session::open(login, levels[0], &lists, clock, seed)?;
    history.push(last.read_all()?);
    Ok(history)
}
