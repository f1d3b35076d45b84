//! Reads of a client's rows: as SQL, and what they show of a state.

use sys::entropy::SplitMix;

use super::{Item, State, key};

/// Rows as text, sorted.
pub type Rows = Vec<Vec<Option<String>>>;

/// A read.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// The version.
    Version,
    /// An item by its primary key.
    Item(u32),
    /// An item by its unique key.
    Unique(u32),
    /// Items over a range of the primary key.
    Range(u32, u32),
    /// Items over a range of the secondary key, by the index on owner and it.
    Secondary(u32, u32),
    /// Items with a value of the secondary key, by the index on it alone.
    SecondaryAlone(u32),
    /// All items.
    Items,
    /// Primary keys of all items, read through the unique key.
    ThroughUnique,
    /// Items by a number in their documents.
    Document(u32),
    /// All notes with the unique keys of their items.
    Notes,
    /// Notes by their number.
    NotesBelow(u32),
    /// All parts.
    Parts,
    /// Parts over a range of the secondary key.
    PartsSecondary(u32, u32),
    /// A part by its key.
    Part(u32),
    /// Figures of all tables in one statement.
    Figures,
}

fn cell(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

impl Look {
    /// A random one.
    pub fn draw(random: &mut SplitMix) -> Look {
        let mut number = |limit: u64| random.below(limit) as u32;
        let (kind, first, width) = (number(17), number(14), number(5));
        match kind {
            0 => Look::Version,
            1 | 2 => Look::Item(first),
            3 => Look::Unique(first),
            4 | 5 => Look::Range(first, first + width),
            6 => Look::Secondary(first, first + width),
            7 => Look::SecondaryAlone(first),
            8 => Look::Items,
            9 => Look::ThroughUnique,
            10 => Look::Document(first * 7),
            11 => Look::Notes,
            12 => Look::NotesBelow(first * 100),
            13 => Look::Parts,
            14 => Look::PartsSecondary(first, first + width),
            15 => Look::Part(first),
            _ => Look::Figures,
        }
    }

    /// What shows all of a state.
    pub const WHOLE: [Look; 4] = [Look::Version, Look::Items, Look::Notes, Look::Parts];

    /// The statement; `locking` is put behind it.
    pub fn sql(self, owner: u32, locking: &str) -> String {
        const ITEM: &str = "SELECT id, u, s, v, j FROM items";
        let own = format!("owner = {owner}");
        let sql = match self {
            Look::Version => format!("SELECT v FROM versions WHERE {own}"),
            Look::Item(slot) => format!("{ITEM} WHERE id = {}", key(owner, slot)),
            Look::Unique(u) => format!("{ITEM} WHERE u = {}", key(owner, u)),
            Look::Range(first, last) => {
                let (first, last) = (key(owner, first), key(owner, last));
                format!(
                    "{ITEM} FORCE INDEX (PRIMARY) WHERE id BETWEEN {first} AND {last} AND {own}"
                )
            }
            Look::Secondary(first, last) => {
                format!("{ITEM} FORCE INDEX (o) WHERE {own} AND s BETWEEN {first} AND {last}")
            }
            Look::SecondaryAlone(s) => format!("{ITEM} FORCE INDEX (s) WHERE s = {s} AND {own}"),
            Look::Items => format!("{ITEM} WHERE {own}"),
            Look::ThroughUnique => {
                format!("SELECT id, u FROM items FORCE INDEX (u) WHERE u >= 0 AND {own}")
            }
            Look::Document(n) => format!("{ITEM} WHERE {own} AND j->'$.n' < {n}"),
            Look::Notes => format!(
                "SELECT notes.id, notes.item, notes.n, items.u FROM notes JOIN items ON items.id = notes.item WHERE notes.{own}"
            ),
            Look::NotesBelow(n) => {
                format!("SELECT id, item, n FROM notes WHERE n < {n} AND {own}")
            }
            Look::Parts => format!("SELECT id, s, n FROM parts WHERE {own}"),
            Look::PartsSecondary(first, last) => {
                format!("SELECT id, s, n FROM parts WHERE {own} AND s BETWEEN {first} AND {last}")
            }
            Look::Part(slot) => {
                format!("SELECT id, s, n FROM parts WHERE id = {}", key(owner, slot))
            }
            Look::Figures => format!(
                "SELECT (SELECT v FROM versions WHERE {own}), (SELECT COUNT(*) FROM items WHERE {own}), \
                 (SELECT SUM(s) FROM items WHERE {own}), (SELECT SUM(n) FROM notes WHERE {own}), \
                 (SELECT COUNT(*) FROM parts WHERE {own}), (SELECT MAX(n) FROM parts WHERE {own})"
            ),
        };
        sql + locking
    }

    /// What it shows.
    pub fn rows(self, owner: u32, state: &State) -> Rows {
        let id = |slot: u32| cell(key(owner, slot));
        let items = |chosen: &dyn Fn(u32, &Item) -> bool| -> Rows {
            let items = state.items.iter().filter(|(slot, item)| chosen(**slot, item));
            let row = |(slot, item): (&u32, &Item)| {
                let j = item.j.map(|n| format!("{{\"n\": {n}}}"));
                vec![id(*slot), id(item.u), item.s.and_then(cell), Some(item.v.value()), j]
            };
            items.map(row).collect()
        };
        let parts = |chosen: &dyn Fn(u32, u32) -> bool| -> Rows {
            let parts = state.parts.iter().filter(|(slot, part)| chosen(**slot, part.s));
            parts.map(|(slot, part)| vec![id(*slot), cell(part.s), cell(part.n)]).collect()
        };
        let rows = match self {
            Look::Version => vec![vec![cell(state.version)]],
            Look::Item(slot) => items(&|at, _| at == slot),
            Look::Unique(u) => items(&|_, item| item.u == u),
            Look::Range(first, last) => items(&|at, _| (first..=last).contains(&at)),
            Look::Secondary(first, last) => {
                items(&|_, item| item.s.is_some_and(|s| (first..=last).contains(&s)))
            }
            Look::SecondaryAlone(s) => items(&|_, item| item.s == Some(s)),
            Look::Items => items(&|_, _| true),
            Look::ThroughUnique => {
                state.items.iter().map(|(slot, item)| vec![id(*slot), id(item.u)]).collect()
            }
            Look::Document(n) => items(&|_, item| item.j.is_some_and(|j| j < n)),
            Look::Notes => {
                let u = |item: u32| state.items.get(&item).and_then(|item| id(item.u));
                let notes = state.notes.iter();
                notes.map(|(at, n)| vec![id(*at), id(n.item), cell(n.n), u(n.item)]).collect()
            }
            Look::NotesBelow(n) => {
                let notes = state.notes.iter().filter(|(_, note)| note.n < n);
                notes.map(|(at, note)| vec![id(*at), id(note.item), cell(note.n)]).collect()
            }
            Look::Parts => parts(&|_, _| true),
            Look::PartsSecondary(first, last) => parts(&|_, s| (first..=last).contains(&s)),
            Look::Part(slot) => parts(&|at, _| at == slot),
            Look::Figures => vec![figures(state)],
        };
        sorted(rows)
    }
}

fn figures(state: &State) -> Vec<Option<String>> {
    let sum = |numbers: Vec<u32>| match numbers.is_empty() {
        true => None,
        false => cell(numbers.iter().sum::<u32>()),
    };
    vec![
        cell(state.version),
        cell(state.items.len()),
        sum(state.items.values().filter_map(|item| item.s).collect()),
        sum(state.notes.values().map(|note| note.n).collect()),
        cell(state.parts.len()),
        state.parts.values().map(|part| part.n).max().and_then(cell),
    ]
}

/// Rows in an order that depends on nothing else.
pub(super) fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}
