//! What a client knows of the rows that only it changes: the answer to each of its statements, and all states that others may see.
//!
//! Knows no server. Rows of all clients lie beside each other: the keys of a client are those that leave its number when divided by [`OWNERS`].

mod change;
mod look;
#[cfg(test)]
mod tests;
mod timeline;

use std::collections::BTreeMap;
use std::fmt::Write as _;

pub use change::{Change, Outcome};
pub use look::{Look, Rows};
pub use timeline::{Settled, Timeline};

/// More than there are clients.
pub const OWNERS: u32 = 16;

/// Rows of a table, by the part of the key that is the client's own.
pub type Slots<T> = BTreeMap<u32, T>;

/// A text that tells where it comes from: a number, and so many letters behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Each change writes another one.
    pub number: u32,
    /// Letters behind it.
    pub length: u32,
}

impl Text {
    /// As an expression of SQL.
    pub fn sql(self) -> String {
        format!("CONCAT('{}.', REPEAT('x', {}))", self.number, self.length)
    }

    /// As it is read.
    pub fn value(self) -> String {
        let mut text = format!("{}.", self.number);
        text.extend(std::iter::repeat_n('x', self.length as usize));
        text
    }
}

/// A row of `items`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The unique key, the client's own part of it.
    pub u: u32,
    /// The secondary key.
    pub s: Option<u32>,
    /// The text.
    pub v: Text,
    /// `n` of the document; no document without.
    pub j: Option<u32>,
}

/// A row of `notes`, which refers to an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// The item.
    pub item: u32,
    /// A number.
    pub n: u32,
}

/// A row of `parts`, which is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The secondary key.
    pub s: u32,
    /// A number.
    pub n: u32,
}

/// All rows of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Counts the transactions.
    pub version: u32,
    /// Rows of `items`.
    pub items: Slots<Item>,
    /// Rows of `notes`.
    pub notes: Slots<Note>,
    /// Rows of `parts`.
    pub parts: Slots<Part>,
}

/// The tables that clients have rows of their own in.
pub const TABLES: [&str; 4] = [
    "CREATE TABLE d.versions (owner INT PRIMARY KEY, v INT NOT NULL)",
    "CREATE TABLE d.items (id INT PRIMARY KEY, owner INT NOT NULL, u INT NOT NULL, s INT, v MEDIUMTEXT NOT NULL, j JSON, \
     UNIQUE KEY u (u), KEY s (s), KEY o (owner, s))",
    "CREATE TABLE d.notes (id INT PRIMARY KEY, owner INT NOT NULL, item INT NOT NULL, n INT NOT NULL, KEY n (n), \
     CONSTRAINT notes_item FOREIGN KEY (item) REFERENCES d.items (id) ON DELETE CASCADE ON UPDATE CASCADE)",
    "CREATE TABLE d.parts (id INT NOT NULL, owner INT NOT NULL, s INT NOT NULL, n INT NOT NULL, PRIMARY KEY (id), KEY s (s), KEY o (owner, s)) \
     PARTITION BY HASH (id) PARTITIONS 3",
];

/// The key of a client's row.
pub fn key(owner: u32, slot: u32) -> u32 {
    slot * OWNERS + owner
}

/// An optional number as SQL writes it.
fn or_null(number: Option<u32>) -> String {
    number.map_or("NULL".to_owned(), |number| number.to_string())
}

impl State {
    /// Of nothing but a version.
    pub fn new() -> State {
        State::default()
    }

    /// In a few words, for a report.
    pub fn words(&self) -> String {
        let mut text = format!("version {}", self.version);
        for (slot, Item { u, s, v, j }) in &self.items {
            let _ =
                write!(text, ", item {slot}: u {u} s {s:?} v {}+{} j {j:?}", v.number, v.length);
        }
        for (slot, Note { item, n }) in &self.notes {
            let _ = write!(text, ", note {slot}: item {item} n {n}");
        }
        for (slot, Part { s, n }) in &self.parts {
            let _ = write!(text, ", part {slot}: s {s} n {n}");
        }
        text
    }
}
