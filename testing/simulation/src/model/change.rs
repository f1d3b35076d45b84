//! Statements that change a client's rows: as SQL, and what they do.

use sys::entropy::SplitMix;

use super::{Item, Note, OWNERS, Part, State, Text, key, or_null};

/// Slots of a table.
const SLOTS: u64 = 14;
/// Slots that a statement over a range covers.
const RANGE: u64 = 5;
/// Values of secondary keys.
const SECONDARY: u64 = 9;
/// Letters of a text that still lies in its row, and of one that does not.
const SHORT: u64 = 40;
const LONG: u64 = 30_000;

const DUPLICATE: u16 = 1062;
const NO_PARENT: u16 = 1452;

/// What a statement does: rows that it says it affected, or the number of its error, with which it does nothing.
pub type Outcome = Result<u64, u16>;

/// Slots from the first to the last.
#[derive(Clone, Copy, Debug)]
pub struct Span(u32, u32);

impl Span {
    fn has(self, slot: u32) -> bool {
        (self.0..=self.1).contains(&slot)
    }

    fn sql(self, owner: u32) -> String {
        format!("owner = {owner} AND id BETWEEN {} AND {}", key(owner, self.0), key(owner, self.1))
    }
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Change {
    /// Of items, and with them of their notes.
    Items(ItemChange),
    /// Of notes or parts.
    Others(OtherChange),
}

/// A statement that changes items.
#[derive(Clone, Debug)]
pub enum ItemChange {
    /// INSERT of some.
    Insert(Vec<(u32, Item)>),
    /// INSERT .. ON DUPLICATE KEY UPDATE of the secondary key, the text and the document.
    Upsert(u32, Item),
    /// REPLACE.
    Replace(u32, Item),
    /// UPDATE by the primary key.
    Update(u32, Option<u32>, Text),
    /// UPDATE of the unique key by the unique key.
    UpdateUnique(u32, u32, Text),
    /// UPDATE of the primary key; notes follow.
    Move(u32, u32),
    /// UPDATE over a range: the secondary key grows by one.
    UpdateRange(Span, Text),
    /// UPDATE by the secondary key.
    UpdateSecondary(u32, Text),
    /// UPDATE of the document.
    UpdateDocument(Span, u32),
    /// DELETE by the primary key; notes follow.
    Delete(u32),
    /// DELETE over a range; notes follow.
    DeleteRange(Span),
    /// DELETE by the secondary key; notes follow.
    DeleteSecondary(u32),
}

/// A statement that changes notes or parts.
#[derive(Clone, Debug)]
pub enum OtherChange {
    /// INSERT of a note.
    InsertNote(u32, Note),
    /// UPDATE of the number of an item's notes.
    UpdateNotes(u32, u32),
    /// DELETE of a note.
    DeleteNote(u32),
    /// INSERT of a part.
    InsertPart(u32, Part),
    /// UPDATE of parts over a range.
    UpdateParts(Span, u32),
    /// UPDATE of a part's key, which takes it to another partition.
    MovePart(u32, u32),
    /// DELETE of parts over a range.
    DeleteParts(Span),
    /// INSERT .. SELECT of parts from items.
    PartsFromItems(Span, u32),
}

fn slot(random: &mut SplitMix) -> u32 {
    random.below(SLOTS) as u32
}

fn span(random: &mut SplitMix) -> Span {
    let first = slot(random);
    Span(first, first + random.below(RANGE) as u32)
}

fn secondary(random: &mut SplitMix) -> Option<u32> {
    let s = random.below(SECONDARY + 1) as u32;
    (s > 0).then_some(s)
}

fn item(random: &mut SplitMix, v: Text) -> Item {
    let j = random.below(3) == 0;
    let (u, s) = (slot(random), secondary(random));
    Item { u, s, v, j: j.then(|| random.below(100) as u32) }
}

impl Change {
    /// A random one, whose texts begin with `number`. `wide`: with texts that do not fit a page now and then.
    pub fn draw(random: &mut SplitMix, number: u32, wide: bool) -> Change {
        let long = wide && random.below(12) == 0;
        let length = random.below(if long { LONG } else { SHORT }) as u32;
        match random.below(26) {
            kind @ 0..17 => Change::Items(ItemChange::draw(random, kind, Text { number, length })),
            kind => Change::Others(OtherChange::draw(random, kind, number)),
        }
    }

    /// The statement of a client.
    pub fn sql(&self, owner: u32) -> String {
        match self {
            Change::Items(change) => change.sql(owner),
            Change::Others(change) => change.sql(owner),
        }
    }

    /// Does it, when it succeeds.
    pub fn apply(&self, state: &mut State) -> Outcome {
        let mut after = state.clone();
        let outcome = match self {
            Change::Items(change) => change.apply(&mut after),
            Change::Others(change) => change.apply(&mut after),
        };
        if outcome.is_ok() {
            *state = after;
        }
        outcome
    }
}

impl ItemChange {
    fn draw(random: &mut SplitMix, kind: u64, text: Text) -> ItemChange {
        match kind {
            0..4 => {
                let count = 1 + random.below(3).saturating_sub(1) * random.below(4);
                ItemChange::Insert((0..count).map(|_| (slot(random), item(random, text))).collect())
            }
            4..6 => ItemChange::Upsert(slot(random), item(random, text)),
            6 => ItemChange::Replace(slot(random), item(random, text)),
            7..9 => ItemChange::Update(slot(random), secondary(random), text),
            9 => ItemChange::UpdateUnique(slot(random), slot(random), text),
            10 => ItemChange::Move(slot(random), slot(random)),
            11 => ItemChange::UpdateRange(span(random), text),
            12 => ItemChange::UpdateSecondary(1 + slot(random) % SECONDARY as u32, text),
            13 => ItemChange::UpdateDocument(span(random), text.number),
            14 => ItemChange::Delete(slot(random)),
            15 => ItemChange::DeleteRange(span(random)),
            _ => ItemChange::DeleteSecondary(1 + slot(random) % SECONDARY as u32),
        }
    }

    fn sql(&self, owner: u32) -> String {
        let id = |slot: &u32| key(owner, *slot);
        match self {
            ItemChange::Insert(rows) => {
                let rows: Vec<String> = rows.iter().map(|row| values(owner, row)).collect();
                format!("INSERT INTO items (id, owner, u, s, v, j) VALUES {}", rows.join(", "))
            }
            ItemChange::Upsert(slot, item) => format!(
                "INSERT INTO items (id, owner, u, s, v, j) VALUES {} AS new ON DUPLICATE KEY UPDATE s = new.s, v = new.v, j = new.j",
                values(owner, &(*slot, item.clone()))
            ),
            ItemChange::Replace(slot, item) => format!(
                "REPLACE INTO items (id, owner, u, s, v, j) VALUES {}",
                values(owner, &(*slot, item.clone()))
            ),
            ItemChange::Update(slot, s, v) => {
                let s = or_null(*s);
                format!("UPDATE items SET s = {s}, v = {} WHERE id = {}", v.sql(), id(slot))
            }
            ItemChange::UpdateUnique(from, to, v) => {
                let v = v.sql();
                format!("UPDATE items SET u = {}, v = {v} WHERE u = {}", id(to), id(from))
            }
            ItemChange::Move(from, to) => {
                format!("UPDATE items SET id = {} WHERE id = {}", id(to), id(from))
            }
            ItemChange::UpdateRange(span, v) => {
                format!("UPDATE items SET s = s + 1, v = {} WHERE {}", v.sql(), span.sql(owner))
            }
            ItemChange::UpdateSecondary(s, v) => {
                format!("UPDATE items SET v = {} WHERE owner = {owner} AND s = {s}", v.sql())
            }
            ItemChange::UpdateDocument(span, n) => {
                format!("UPDATE items SET j = JSON_SET(j, '$.n', {n}) WHERE {}", span.sql(owner))
            }
            ItemChange::Delete(slot) => format!("DELETE FROM items WHERE id = {}", id(slot)),
            ItemChange::DeleteRange(span) => format!("DELETE FROM items WHERE {}", span.sql(owner)),
            ItemChange::DeleteSecondary(s) => {
                format!("DELETE FROM items WHERE owner = {owner} AND s = {s}")
            }
        }
    }

    /// May leave `state` half changed when it fails.
    fn apply(&self, state: &mut State) -> Outcome {
        match self {
            ItemChange::Insert(rows) => {
                for (slot, item) in rows {
                    state.insert_item(*slot, item.clone())?;
                }
                Ok(rows.len() as u64)
            }
            ItemChange::Upsert(slot, item) => {
                let by_unique = state.find_unique(item.u);
                let there = state.items.contains_key(slot).then_some(*slot).or(by_unique);
                let Some(there) = there.and_then(|slot| state.items.get_mut(&slot)) else {
                    return state.insert_item(*slot, item.clone()).map(|()| 1);
                };
                *there = Item { u: there.u, ..item.clone() };
                Ok(2)
            }
            ItemChange::Replace(slot, item) => {
                let by_unique = state.find_unique(item.u);
                let mut gone = u64::from(state.delete_item(*slot));
                gone += by_unique.map_or(0, |slot| u64::from(state.delete_item(slot)));
                state.items.insert(*slot, item.clone());
                Ok(1 + gone)
            }
            ItemChange::Update(slot, s, v) => Ok(state.update_items(
                |at, _| at == *slot,
                |item| {
                    item.s = *s;
                    item.v = *v;
                },
            )),
            ItemChange::UpdateUnique(from, to, v) => {
                let Some(slot) = state.find_unique(*from) else { return Ok(0) };
                if state.find_unique(*to).is_some_and(|other| other != slot) {
                    return Err(DUPLICATE);
                }
                Ok(state.update_items(
                    |at, _| at == slot,
                    |item| {
                        item.u = *to;
                        item.v = *v;
                    },
                ))
            }
            ItemChange::Move(from, to) => state.move_item(*from, *to),
            ItemChange::UpdateRange(span, v) => Ok(state.update_items(
                |at, _| span.has(at),
                |item| {
                    item.s = item.s.map(|s| s + 1);
                    item.v = *v;
                },
            )),
            ItemChange::UpdateSecondary(s, v) => {
                Ok(state.update_items(|_, item| item.s == Some(*s), |item| item.v = *v))
            }
            ItemChange::UpdateDocument(span, n) => {
                let has_another = |item: &Item| item.j.is_some_and(|before| before != *n);
                let chosen = |at: u32, item: &Item| span.has(at) && has_another(item);
                Ok(state.update_items(chosen, |item| item.j = Some(*n)))
            }
            ItemChange::Delete(slot) => Ok(u64::from(state.delete_item(*slot))),
            ItemChange::DeleteRange(span) => Ok(state.delete_items(|at, _| span.has(at))),
            ItemChange::DeleteSecondary(s) => Ok(state.delete_items(|_, item| item.s == Some(*s))),
        }
    }
}

impl OtherChange {
    fn draw(random: &mut SplitMix, kind: u64, number: u32) -> OtherChange {
        match kind {
            17..19 => {
                let note = Note { item: slot(random), n: number };
                OtherChange::InsertNote(slot(random), note)
            }
            19 => OtherChange::UpdateNotes(slot(random), number),
            20 => OtherChange::DeleteNote(slot(random)),
            21 | 22 => {
                let part = Part { s: slot(random), n: number };
                OtherChange::InsertPart(slot(random), part)
            }
            23 => OtherChange::UpdateParts(span(random), number),
            24 => match random.below(2) {
                0 => OtherChange::MovePart(slot(random), slot(random)),
                _ => OtherChange::DeleteParts(span(random)),
            },
            _ => OtherChange::PartsFromItems(span(random), number),
        }
    }

    fn sql(&self, owner: u32) -> String {
        let id = |slot: &u32| key(owner, *slot);
        match self {
            OtherChange::InsertNote(slot, Note { item, n }) => {
                let (note, item) = (id(slot), id(item));
                format!("INSERT INTO notes VALUES ({note}, {owner}, {item}, {n})")
            }
            OtherChange::UpdateNotes(item, n) => {
                format!("UPDATE notes SET n = {n} WHERE item = {}", id(item))
            }
            OtherChange::DeleteNote(slot) => format!("DELETE FROM notes WHERE id = {}", id(slot)),
            OtherChange::InsertPart(slot, Part { s, n }) => {
                format!(
                    "INSERT INTO parts (id, owner, s, n) VALUES ({}, {owner}, {s}, {n})",
                    id(slot)
                )
            }
            OtherChange::UpdateParts(span, n) => {
                format!("UPDATE parts SET n = {n}, s = s + 1 WHERE {}", span.sql(owner))
            }
            OtherChange::MovePart(from, to) => {
                format!("UPDATE parts SET id = {} WHERE id = {}", id(to), id(from))
            }
            OtherChange::DeleteParts(span) => {
                format!("DELETE FROM parts WHERE {}", span.sql(owner))
            }
            OtherChange::PartsFromItems(span, n) => format!(
                "INSERT INTO parts (id, owner, s, n) SELECT id, owner, IFNULL(s, 0), {n} FROM items WHERE {}",
                span.sql(owner)
            ),
        }
    }

    /// May leave `state` half changed when it fails.
    fn apply(&self, state: &mut State) -> Outcome {
        match self {
            OtherChange::InsertNote(slot, note) => {
                if state.notes.contains_key(slot) {
                    return Err(DUPLICATE);
                }
                if !state.items.contains_key(&note.item) {
                    return Err(NO_PARENT);
                }
                state.notes.insert(*slot, *note);
                Ok(1)
            }
            OtherChange::UpdateNotes(item, n) => {
                let notes = state.notes.values_mut().filter(|note| note.item == *item);
                Ok(notes.map(|note| note.n = *n).count() as u64)
            }
            OtherChange::DeleteNote(slot) => Ok(u64::from(state.notes.remove(slot).is_some())),
            OtherChange::InsertPart(slot, part) => state.insert_part(*slot, *part).map(|()| 1),
            OtherChange::UpdateParts(span, n) => {
                let parts = state.parts.iter_mut().filter(|(slot, _)| span.has(**slot));
                Ok(parts.map(|(_, part)| *part = Part { s: part.s + 1, n: *n }).count() as u64)
            }
            OtherChange::MovePart(from, to) => {
                let Some(part) = state.parts.remove(from) else { return Ok(0) };
                state.insert_part(*to, part)?;
                Ok(u64::from(from != to))
            }
            OtherChange::DeleteParts(span) => {
                let before = state.parts.len();
                state.parts.retain(|slot, _| !span.has(*slot));
                Ok((before - state.parts.len()) as u64)
            }
            OtherChange::PartsFromItems(span, n) => {
                let items = state.items.iter().filter(|(slot, _)| span.has(**slot));
                let parts: Vec<_> =
                    items.map(|(slot, item)| (*slot, item.s.unwrap_or(0))).collect();
                for (slot, s) in &parts {
                    state.insert_part(*slot, Part { s: *s, n: *n })?;
                }
                Ok(parts.len() as u64)
            }
        }
    }
}

/// A row of `items` in parentheses.
fn values(owner: u32, (slot, item): &(u32, Item)) -> String {
    let (id, u) = (key(owner, *slot), key(owner, item.u));
    let s = or_null(item.s);
    let j = item.j.map_or("NULL".to_owned(), |n| format!("JSON_OBJECT('n', {n})"));
    format!("({id}, {owner}, {u}, {s}, {}, {j})", item.v.sql())
}

impl State {
    fn find_unique(&self, u: u32) -> Option<u32> {
        self.items.iter().find(|(_, item)| item.u == u).map(|(slot, _)| *slot)
    }

    fn insert_item(&mut self, slot: u32, item: Item) -> Result<(), u16> {
        if self.items.contains_key(&slot) || self.find_unique(item.u).is_some() {
            return Err(DUPLICATE);
        }
        self.items.insert(slot, item);
        Ok(())
    }

    fn insert_part(&mut self, slot: u32, part: Part) -> Result<(), u16> {
        if self.parts.contains_key(&slot) {
            return Err(DUPLICATE);
        }
        self.parts.insert(slot, part);
        Ok(())
    }

    /// Changes those that are chosen; how many.
    fn update_items(
        &mut self,
        chosen: impl Fn(u32, &Item) -> bool,
        change: impl Fn(&mut Item),
    ) -> u64 {
        let items = self.items.iter_mut().filter(|(slot, item)| chosen(**slot, item));
        items.map(|(_, item)| change(item)).count() as u64
    }

    fn move_item(&mut self, from: u32, to: u32) -> Outcome {
        if from == to || !self.items.contains_key(&from) {
            return Ok(0);
        }
        if self.items.contains_key(&to) {
            return Err(DUPLICATE);
        }
        if let Some(item) = self.items.remove(&from) {
            self.items.insert(to, item);
        }
        let notes = self.notes.values_mut().filter(|note| note.item == from);
        notes.for_each(|note| note.item = to);
        Ok(1)
    }

    fn delete_item(&mut self, slot: u32) -> bool {
        self.notes.retain(|_, note| note.item != slot);
        self.items.remove(&slot).is_some()
    }

    fn delete_items(&mut self, chosen: impl Fn(u32, &Item) -> bool) -> u64 {
        let items = self.items.iter().filter(|(slot, item)| chosen(**slot, item));
        let gone: Vec<u32> = items.map(|(slot, _)| *slot).collect();
        gone.iter().filter(|slot| self.delete_item(**slot)).count() as u64
    }
}

const _: () = assert!(SLOTS < OWNERS as u64 * 1000, "keys stay small");
