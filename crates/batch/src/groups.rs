//! Finds the group of each row, and merges the groups of several threads.

use hashbrown::HashMap;
use rows::key_set::KeySet;
use types::{CollationId, Value};

use crate::column::Column;
use crate::keys::PartWriter;
use crate::states::{Groups, StateKind, States};
use crate::{Fit, Unfit};

type Table<K> = HashMap<K, u32, foldhash::fast::FixedState>;

/// Bytes of a group in addition to its key, its states and the kept values of its first row.
const GROUP_BYTES: usize = 28;

/// Groups with their keys, first rows and states.
pub struct Grouped {
    /// One for each key column.
    parts: Vec<PartWriter>,
    by_number: Table<u64>,
    by_key: KeySet,
    /// By key: its group.
    key_groups: Vec<u32>,
    null_group: Option<u32>,
    /// By group: the position in the scan of its first row.
    pub first: Vec<u64>,
    /// By group: the position in `kept` of its first row.
    kept_at: Vec<u32>,
    /// The key columns and the carried columns of first rows.
    kept: Vec<Column>,
    /// The states of each call.
    pub states: Vec<States>,
    /// Groups of the current batch's rows.
    rows: Vec<u32>,
    key: Vec<u8>,
    has_keys: bool,
}

impl Grouped {
    /// No groups; `collations` are those of the keys, `kinds` those of the calls.
    pub fn new(collations: &[CollationId], kinds: &[StateKind], has_keys: bool) -> Grouped {
        Grouped {
            parts: collations.iter().map(|collation| PartWriter::new(*collation)).collect(),
            by_number: Table::default(),
            by_key: KeySet::default(),
            key_groups: Vec::new(),
            null_group: None,
            first: Vec::new(),
            kept_at: Vec::new(),
            kept: Vec::new(),
            states: kinds.iter().map(|kind| States::new(*kind)).collect(),
            rows: Vec::new(),
            key: Vec::new(),
            has_keys,
        }
    }

    /// Bytes held, about.
    pub fn heap_bytes(&self) -> usize {
        let kept: usize = self.kept.iter().map(Column::heap_bytes).sum();
        let states: usize = self.states.iter().map(States::heap_bytes).sum();
        let numbers = self.by_number.len() * size_of::<(u64, u32)>() * 3 / 2;
        kept + states + numbers + self.by_key.heap_bytes() + self.first.len() * GROUP_BYTES
    }

    /// The value of a key column (or, numbered after them, a carried column) in the first row of a group.
    pub fn kept(&self, column: usize, group: usize) -> Fit<Value> {
        self.kept[column].value(self.kept_at[group] as usize)
    }

    /// Adds a batch whose first row is at `position` of the scan. `kept`: the key columns, then the carried ones.
    pub fn update(
        &mut self,
        rows: usize,
        position: u64,
        kept: &[&Column],
        args: &[Option<&Column>],
    ) -> Fit<()> {
        if rows == 0 {
            return Ok(());
        }
        if self.kept.len() < kept.len() {
            self.kept = kept.iter().map(|column| Column::new(column.data.empty_like())).collect();
        }
        let before = self.first.len();
        if self.has_keys {
            self.find_groups(rows, position, kept)?;
        } else if before == 0 {
            self.add_group(position, 0, kept)?;
        }
        if self.first.len() > before {
            let groups = self.first.len();
            self.states.iter_mut().for_each(|states| states.grow(groups));
        }
        let groups = if self.has_keys { Groups::Each(&self.rows) } else { Groups::One };
        for (states, column) in self.states.iter_mut().zip(args) {
            states.update(groups, *column, rows, position)?;
        }
        Ok(())
    }

    fn add_group(&mut self, first: u64, row: usize, kept: &[&Column]) -> Fit<u32> {
        let group = u32::try_from(self.first.len()).map_err(|_| Unfit)?;
        self.first.push(first);
        let at = self.keep(row, kept)?;
        self.kept_at.push(at);
        Ok(group)
    }

    /// Keeps a row as a group's first one.
    fn keep(&mut self, row: usize, kept: &[&Column]) -> Fit<u32> {
        let at = self.kept.first().map_or(0, Column::len);
        for (column, from) in self.kept.iter_mut().zip(kept) {
            column.append_rows(from, &[row as u32])?;
        }
        u32::try_from(at).map_err(|_| Unfit)
    }

    fn find_groups(&mut self, rows: usize, position: u64, kept: &[&Column]) -> Fit<()> {
        self.rows.clear();
        let keys = &kept[..self.parts.len()];
        for (part, column) in self.parts.iter_mut().zip(keys) {
            part.admit(column)?;
        }
        if let [key] = keys
            && let Some(number) = key.number_of()
        {
            let mut last: Option<(u64, u32)> = None;
            for row in 0..rows {
                let number = (!key.is_null(row)).then(|| number(row));
                let group = match (number, last) {
                    // Where an index is read, equal ones are adjacent.
                    (Some(number), Some((before, group))) if before == number => group,
                    _ => self.group_of_number(number, position + row as u64, row, kept)?,
                };
                last = number.map(|number| (number, group)).or(last);
                self.rows.push(group);
            }
            return Ok(());
        }
        for row in 0..rows {
            self.key.clear();
            for (part, column) in self.parts.iter_mut().zip(keys) {
                part.append(column, row, &mut self.key);
            }
            let group = self.group_of_key(position + row as u64, row, kept)?;
            self.rows.push(group);
        }
        Ok(())
    }

    fn group_of_number(
        &mut self,
        number: Option<u64>,
        first: u64,
        row: usize,
        kept: &[&Column],
    ) -> Fit<u32> {
        let known = match number {
            Some(number) => self.by_number.get(&number).copied(),
            None => self.null_group,
        };
        if let Some(group) = known {
            return Ok(group);
        }
        let group = self.add_group(first, row, kept)?;
        match number {
            Some(number) => _ = self.by_number.insert(number, group),
            None => self.null_group = Some(group),
        }
        Ok(group)
    }

    /// The group of the key in `self.key`.
    fn group_of_key(&mut self, first: u64, row: usize, kept: &[&Column]) -> Fit<u32> {
        let (key, is_new) = self.by_key.insert(&self.key);
        if is_new {
            let group = self.add_group(first, row, kept)?;
            self.key_groups.push(group);
        }
        Ok(self.key_groups[key as usize])
    }

    /// The merged groups of several threads, in no order.
    pub fn merged(mut parts: Vec<Grouped>) -> Fit<Grouped> {
        parts.sort_by_key(|part| part.first.len());
        let mut whole = parts.pop().ok_or(Unfit)?;
        for part in &parts {
            whole.take_in(part)?;
        }
        Ok(whole)
    }

    /// Merges the groups of another thread.
    fn take_in(&mut self, other: &Grouped) -> Fit<()> {
        for (part, others) in self.parts.iter_mut().zip(&other.parts) {
            part.admit_parts(others)?;
        }
        let kept: Vec<&Column> = other.kept.iter().collect();
        let place = |group: u32| {
            let group = group as usize;
            (other.first[group], other.kept_at[group] as usize)
        };
        // By group of the other, its group here. Without keys each has one group, or none to merge.
        let mut into = vec![0; other.first.len()];
        for (key, group) in other.by_key.iter().zip(&other.key_groups) {
            let (first, row) = place(*group);
            self.key.clear();
            self.key.extend_from_slice(key);
            into[*group as usize] = self.group_of_key(first, row, &kept)?;
        }
        let numbers = other.by_number.iter().map(|(number, group)| (Some(*number), *group));
        let null = other.null_group.map(|group| (None, group));
        for (number, group) in numbers.chain(null) {
            let (first, row) = place(group);
            into[group as usize] = self.group_of_number(number, first, row, &kept)?;
        }
        for (group, own) in (0..).zip(&into) {
            let (first, row) = place(group);
            let own = *own as usize;
            if first < self.first[own] {
                self.first[own] = first;
                self.kept_at[own] = self.keep(row, &kept)?;
            }
        }
        for (states, others) in self.states.iter_mut().zip(&other.states) {
            states.grow(self.first.len());
            states.take_in(others, &into)?;
        }
        Ok(())
    }
}
